"""Densities of a mechanism, against the formula, exact draws, and SciPy's priors."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dpdepth as dpd
from pymc_dpdepth.mechanism_law import BINS, law_of, private_median_point
from pymc_dpdepth.trace_values import mechanisms_of

ROWS = np.random.default_rng(0).normal([0.5, -0.5], [1.0, 2.0], size=(40, 2))
DRAWS = 2000
# The largest gap of two cdfs, one of them of DRAWS independent draws: exceeded with probability 1e-7 (Dvoretzky,
# Kiefer, Wolfowitz: 2 exp(-2 m t^2)). Five comparisons in this file.
DKW = np.sqrt(np.log(2 / 1e-7) / (2 * DRAWS))


def build(prior, rows=ROWS, **options):
    with pm.Model() as model:
        dpd.exponential_mechanism("median", prior(), rows, **({"epsilon": 1.0, "depth": "halfspace"} | options))
    return model


def middles(edges):
    return 0.5 * (edges[:-1] + edges[1:])


def test_a_density_in_one_dimension_is_the_formula():
    rows = np.array([[0.1], [0.3], [0.4], [0.8]])
    law = law_of(build(lambda: pm.Uniform("location", 0, 1, shape=1), rows, epsilon=4.0), None, None, DRAWS)
    x = middles(law.edges[0])
    below = (rows.ravel()[:, None] <= x).sum(axis=0)
    inside = (law.edges[0][:-1] >= 0) & (law.edges[0][1:] <= 1)
    expected = np.exp(4.0 / 2 * np.minimum(below, 4 - below))  # beta * D = epsilon n / 2 * k / n
    # Levels 0, 1, 2, 1, 0 on intervals of lengths .1, .2, .1, .4, .2.
    total = 0.3 + 0.6 * np.exp(2) + 0.1 * np.exp(4)
    # The share of the draws within the frame scales the whole: at least .99 of them, by the choice of the frame.
    ratio = law.density[0][inside] / (expected[inside] / total)
    assert np.ptp(ratio) < 1e-9 and 0.97 < ratio[0] < 1.03
    np.testing.assert_allclose(law.prior[0][inside], 1.0)
    assert law.joint is None and law.source == "on a grid"


@pytest.mark.parametrize(
    ("prior", "options"),
    [
        (lambda: pm.Normal("location", [0, 1], [2, 3]), {"directions": "axes"}),
        (lambda: pm.MvNormal("location", [0, 1], cov=[[4, 2], [2, 9]]), {"depth": "spatial"}),
    ],
    ids=["boxes", "branch and bound"],
)
def test_marginals_on_the_grid_are_those_of_exact_draws(prior, options):
    model = build(prior, epsilon=3.0, **options)
    law = law_of(model, None, None, 500)
    with model:
        theta = dpd.sample_exact(DRAWS).posterior["location"].values[0]
    assert law.joint.shape == (140, 140)
    for j in (0, 1):
        cdf = np.cumsum(law.density[j] * np.diff(law.edges[j]))
        inside = (theta[:, j] >= law.edges[j][0]) & (theta[:, j] <= law.edges[j][-1])
        within = np.searchsorted(np.sort(theta[inside, j]), law.edges[j][1:]) / inside.sum()
        assert np.abs(cdf / cdf[-1] - within).max() < DKW


def test_priors_of_the_plane_are_scipys():
    covariance = np.array([[4.0, 2.0], [2.0, 9.0]])
    law = law_of(build(lambda: pm.MvNormal("location", [0, 1], cov=covariance)), None, None, 200)
    points = np.stack(np.meshgrid(*map(middles, law.edges)), axis=-1)
    expected = stats.multivariate_normal([0, 1], covariance).pdf(points)
    np.testing.assert_allclose(law.joint_prior, expected, rtol=1e-9)
    for j, one in enumerate((stats.norm(0, 2), stats.norm(1, 3))):
        np.testing.assert_allclose(law.prior[j], np.diff(one.cdf(law.edges[j])) / np.diff(law.edges[j]), rtol=1e-7)
    product = law_of(build(lambda: pm.Gamma("location", 3, [1, 2]), np.abs(ROWS)), None, None, 200)
    for j, rate in enumerate((1, 2)):
        edges = product.edges[j]
        np.testing.assert_allclose(
            product.prior[j], np.diff(stats.gamma(3, scale=1 / rate).cdf(edges)) / np.diff(edges), atol=1e-9
        )


def test_draws_are_histograms():
    model = build(lambda: pm.Normal("location", 0, 5, shape=3), np.column_stack([ROWS, ROWS[:, 0]]), directions="axes")
    with model:
        idata = dpd.sample_exact(300)
    law = law_of(model, "median", idata, DRAWS)
    theta = idata.posterior["location"].values[0]
    for j in range(3):
        counts, _ = np.histogram(theta[:, j], law.edges[j])
        np.testing.assert_allclose(law.density[j] * np.diff(law.edges[j]) * 300, counts, atol=1e-9)
        area = (law.prior[j] * np.diff(law.edges[j])).sum()
        assert abs(area - np.diff(stats.norm(0, 5).cdf(law.edges[j][[0, -1]]))[0]) < 0.02  # 20,000 draws, 5 deviations
    assert len(law.density[0]) == BINS and law.source == "300 draws of a trace"


def test_groups_are_named_and_an_empty_one_has_no_median():
    with pm.Model(coords={"group": ["a", "b"]}) as model:
        location = pm.Normal("location", pm.Normal("mu", 0, 1), 1, dims=("group", "coordinate"), shape=(2, 2))
        dpd.exponential_mechanism("m", location, ROWS, groups=["a"] * 40, epsilon=1.0, directions="axes")
    law = law_of(model, "m[a]", None, 100)
    assert law.median is not None and law.joint_prior is None and law.source == "100 exact draws"
    assert law_of(model, "m[b]", None, 100).median is None
    with pytest.raises(ValueError, match=r"mechanism: expected one of \['m\[a\]', 'm\[b\]'\], got None"):
        law_of(model, None, None, 100)


def test_the_median_is_taken_in_the_mechanisms_units():
    prior = {"prior": lambda: pm.Normal("location", [0, 1], [1, 50])}
    ((label, point),) = [private_median_point(m) for m in mechanisms_of(build(**prior, depth="spatial"))]
    iqr = 2 * stats.norm.ppf(0.75) * np.array([1.0, 50.0])
    np.testing.assert_allclose(point, np.array([0, 1]) + iqr * dpd.Spatial().median((ROWS - [0, 1]) / iqr), rtol=1e-6)
    assert label == "non-private median" and not np.allclose(point, dpd.Spatial().median(ROWS), rtol=1e-3)
    (mechanism,) = mechanisms_of(build(**prior))
    np.testing.assert_allclose(private_median_point(mechanism)[1], dpd.Halfspace(directions=None).median(ROWS))
    (mechanism,) = mechanisms_of(build(**prior, depth="simplicial"))
    label, point = private_median_point(mechanism)
    assert "each column" in label and np.array_equal(point, np.median(ROWS, axis=0))


def test_no_exact_draws_names_the_cure():
    model = build(lambda: pm.AsymmetricLaplace("location", 1, 1, 0, shape=2))
    with pytest.raises(dpd.NoExactSamplerError, match=r"idata=pm.sample\(\)"):
        law_of(model, None, None, 100)
    with pytest.raises(TypeError, match="pm.Model"):
        law_of(None, None, None, 100)
