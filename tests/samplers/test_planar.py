"""The planar sampler: the law of levels, draws against other laws, planted errors, odd tables."""

import functools
import math
from fractions import Fraction

import numpy as np
import pymc as pm
import pytest
from planar_laws import DEPTH, ROWS, SMALL, exact_masses, law_of, plan_of, uniform
from scipy import stats
from scipy.spatial.distance import cdist

import pymc_dpdepth as dpd
from pymc_dpdepth.depths import Halfspace
from pymc_dpdepth.mechanism import set_up
from pymc_dpdepth.randomness import SeededBits
from pymc_dpdepth.samplers import planar
from pymc_dpdepth.samplers.dispatch import plan_draws
from pymc_dpdepth.samplers.exact import NoExactSamplerError
from pymc_dpdepth.samplers.planar import PlanarLaw, PlanarPlan

# Family-wise level 1e-6 of the statistical tests of this file, fewer than 100.
LEVEL = 1e-6 / 100


def draws_of(rows, prior, count, seed=0, **options):
    plan, rows = plan_of(rows, prior, **options)
    return plan.draw(rows, SeededBits(seed), count)


# The law of levels


def ring_law(masses, n_levels, unit):
    """Return P(n D = k), k = 0, ..., n_levels, in the ring form e^(unit k) (V_k - V_(k+1))."""
    v = [1.0] + [float(masses.get(k, 0)) for k in range(1, n_levels + 2)]
    rings = [float(Fraction(a) - Fraction(b)) for a, b in zip(v[:-1], v[1:], strict=True)]
    weights = [math.exp(unit * k) * ring for k, ring in enumerate(rings)]
    return np.array(weights) / math.fsum(weights)


def mixture_law(law, masses, n_levels):
    """Return P(n D = k) when level l is drawn by its weight, and then a point in its region."""
    v = np.array([1.0] + [float(masses.get(k, 0)) for k in range(1, n_levels + 2)])
    total = np.logaddexp.reduce(law.log_weights, initial=planar.LEVEL_ZERO)
    shares = np.zeros(n_levels + 1)
    shares[0] = math.exp(planar.LEVEL_ZERO - total)
    shares[law.levels] = np.exp(law.log_weights - total)
    rings = v[:-1] - v[1:]
    inside = np.divide(shares, v[:-1], out=np.zeros_like(shares), where=v[:-1] > 0)
    return rings * np.cumsum(inside)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
@pytest.mark.parametrize("rows", [SMALL, ROWS], ids=["ties", "normal"])
def test_levels_have_the_law_of_rings(rows, epsilon):
    masses = exact_masses(rows, 2)
    law = law_of(rows, uniform(), epsilon)
    top = max(masses)
    np.testing.assert_allclose(
        mixture_law(law, masses, top), ring_law(masses, top, epsilon / 2), rtol=1e-11, atol=1e-19
    )
    # What is drawn are the panels: their weights are those of the levels.
    steps = np.diff(law._steps, prepend=0.0) / law._steps[-1]
    total = np.logaddexp.reduce(law.log_weights, initial=0.0)
    assert steps[0] == pytest.approx(math.exp(-total), rel=1e-12)
    assert steps[1:].sum() == pytest.approx(-math.expm1(-total), rel=1e-12)


def depth_chi_square(draws, rows, epsilon):
    masses = exact_masses(rows, 2)
    top = max(masses)
    expected = ring_law(masses, top, epsilon / 2) * len(draws)
    counts = np.bincount(np.rint(len(rows) * DEPTH.evaluate(draws, rows)).astype(int), minlength=top + 1)
    few = expected < 10
    observed, wanted = (np.append(x[~few], x[few].sum()) for x in (counts, expected))
    keep = wanted > 1
    return stats.chi2.sf(((observed - wanted)[keep] ** 2 / wanted[keep]).sum(), keep.sum() - 1)


@pytest.mark.parametrize(("rows", "epsilon"), [(SMALL, 2.0), (ROWS, 0.4)], ids=["ties", "normal"])
def test_depths_of_draws_and_planted_errors(rows, epsilon, monkeypatch):
    draws = 20_000
    assert depth_chi_square(draws_of(rows, uniform(), draws, epsilon=epsilon), rows, epsilon) > LEVEL
    honest = planar.level_log_weights
    with monkeypatch.context() as patch:  # levels shifted by one
        patch.setattr(planar, "level_log_weights", lambda levels, *rest: honest(levels - 1, *rest))
        assert depth_chi_square(draws_of(rows, uniform(), draws, epsilon=epsilon), rows, epsilon) < LEVEL
    with monkeypatch.context() as patch:  # level 0 weighed like the others
        patch.setattr(planar, "LEVEL_ZERO", math.log(-math.expm1(-epsilon / 2)))
        assert depth_chi_square(draws_of(rows, uniform(), draws, epsilon=epsilon), rows, epsilon) < LEVEL
    with monkeypatch.context() as patch:  # epsilon in place of epsilon / 2
        patch.setattr(planar, "level_log_weights", lambda levels, masses, unit: honest(levels, masses, 2 * unit))
        assert depth_chi_square(draws_of(rows, uniform(), draws, epsilon=epsilon), rows, epsilon) < LEVEL


# Large exponents


def nested_boxes(n):
    """Return levels 1, ..., n / 2 with squares of side 1 - l / n around (1/2, 1/2)."""
    levels = np.arange(1, n // 2 + 1)
    sides = 1 - levels / n
    square = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]) / 2
    return levels, [0.5 + side * square for side in sides], 2 * np.log(sides)


@pytest.mark.parametrize("epsilon", [1e-4, 0.1, 10.0, 1e6])
def test_large_exponents_do_not_overflow_and_little_is_left_out(epsilon):
    n, unit = 10_000, epsilon / 2
    levels, polygons, log_masses = nested_boxes(n)
    plan, _ = plan_of(SMALL, pm.Uniform.dist(0, 1, shape=2))
    law = PlanarLaw(levels, polygons, plan._coordinates([])[1], unit)
    wanted = log_masses + unit * levels + np.log(-np.expm1(-unit))
    kept = len(law.levels)
    np.testing.assert_allclose(law.log_weights, wanted[len(levels) - kept :], rtol=1e-12, atol=1e-11)
    left_out = np.logaddexp.reduce(wanted[: len(levels) - kept], initial=-np.inf)
    assert left_out < np.logaddexp.reduce(wanted, initial=0.0) + math.log(planar.NEGLIGIBLE)
    assert kept == len(levels) if epsilon < 1e-3 else kept < len(levels)
    draws = plan.frame.locations(law.draw(plan.frame.floors(), SeededBits(2), 500))
    if unit * n > 1e4:  # all of the weight is on the deepest boxes
        assert np.abs(draws - 0.5).max() <= 0.251


# Draws


def grid_chi_square(draws, rows, log_prior, epsilon, edges, fine=60):
    """Compare draws with the density on the midpoints of a fine grid in each bin of a coarse one."""
    bins = len(edges) - 1
    parts = [np.linspace(a, b, 2 * fine + 1)[1::2] for a, b in zip(edges[:-1], edges[1:], strict=True)]
    points, widths = np.concatenate(parts), np.repeat(np.diff(edges), fine)
    mesh = np.stack(np.meshgrid(points, points, indexing="ij"), axis=-1).reshape(-1, 2)
    exponent = epsilon * len(rows) / 2 * DEPTH.evaluate(mesh, rows) + log_prior(mesh)
    mass = np.exp(exponent - exponent.max()).reshape(bins * fine, -1) * widths[:, None] * widths
    expected = mass.reshape(bins, fine, bins, fine).sum(axis=(1, 3))
    expected *= len(draws) / expected.sum()
    counts = np.histogram2d(*draws.T, bins=[edges, edges])[0]
    assert counts.sum() == len(draws)
    few = expected < 8
    observed, wanted = (np.append(x[~few], x[few].sum()) for x in (counts, expected))
    keep = wanted > 0
    return stats.chi2.sf(((observed - wanted)[keep] ** 2 / wanted[keep]).sum(), keep.sum() - 1)


PRIORS = {
    "normal": (lambda: pm.Normal.dist(0.5, 1.2, shape=2), lambda x: stats.norm(0.5, 1.2).logpdf(x).sum(axis=1)),
    "laplace": (lambda: pm.Laplace.dist(0, 0.5, shape=2), lambda x: stats.laplace(0, 0.5).logpdf(x).sum(axis=1)),
    "correlated": (
        lambda: pm.MvNormal.dist(np.zeros(2), np.array([[1.0, -0.8], [-0.8, 1.0]])),
        stats.multivariate_normal(np.zeros(2), [[1.0, -0.8], [-0.8, 1.0]]).logpdf,
    ),
}
EDGES = np.array([-15.0, -1.2, -0.7, -0.35, 0.0, 0.35, 0.7, 1.2, 15.0])


@pytest.mark.parametrize("name", PRIORS)
def test_draws_have_the_density_of_the_mechanism(name):
    # The midpoint rule errs by the share of fine cells that steps of the depth cross, below 1% of a bin; the sampling
    # errors are 3% and more at 4,000 draws.
    prior, log_prior = PRIORS[name]
    epsilon = 0.5
    draws = draws_of(ROWS, prior(), 4000, seed=5, epsilon=epsilon)
    assert grid_chi_square(draws, ROWS, log_prior, epsilon, EDGES) > LEVEL
    assert grid_chi_square(draws, ROWS, log_prior, 2.5 * epsilon, EDGES) < LEVEL


# Q / mean of Q under equal laws is a quadratic form of normal variables with weights that add up to 1, for large
# samples. Its tail is at most that of one chi-square variable with one degree of freedom beyond the 78.5% quantile
# (Szekely and Bakirov 2003), so this bound holds whatever the law is.
ENERGY_BOUND = stats.chi2.isf(LEVEL, 1)


def energy(one, other):
    """Return the two-sample energy statistic over an estimate of its mean."""
    between, within_one, within_other = (cdist(*pair).mean() for pair in ((one, other), (one, one), (other, other)))
    size = len(one) * len(other) / (len(one) + len(other))
    return size * (2 * between - within_one - within_other) / between


@pytest.mark.parametrize("name", ["uniform", *PRIORS])
@pytest.mark.parametrize("rows", [SMALL, ROWS], ids=["ties", "normal"])
def test_draws_are_those_of_branch_and_bound(name, rows):
    prior = uniform() if name == "uniform" else PRIORS[name][0]()
    # At this epsilon the atoms of the table with ties, whose cells have a prior mass of 2^-80, weigh nothing.
    one = draws_of(rows, prior, 3000, seed=1, epsilon=0.5)
    other = draws_of(rows, prior, 3000, seed=2, epsilon=0.5, sampler="branch_and_bound")
    for angle in (0.0, 0.785, 1.571, 2.356):
        direction = [math.cos(angle), math.sin(angle)]
        assert stats.ks_2samp(one @ direction, other @ direction).pvalue > LEVEL
    assert energy(one, other) < ENERGY_BOUND


def test_the_energy_test_finds_a_wrong_epsilon():
    one = draws_of(ROWS, uniform(), 3000, seed=1, epsilon=0.5)
    other = draws_of(ROWS, uniform(), 3000, seed=2, epsilon=0.15, sampler="branch_and_bound")
    assert energy(one, other) > ENERGY_BOUND


def test_draws_in_thin_and_oblique_regions():
    # Rows within 1e-4 of a diagonal: in the frame of the diagonal the draws inside are those of a box.
    t = np.random.default_rng(4).uniform(-1, 1, size=(30, 2)) * [1.0, 1e-4]
    turn = np.array([[1.0, 1.0], [-1.0, 1.0]]) / math.sqrt(2)
    draws = draws_of(t @ turn, uniform(), 3000, epsilon=3.0)
    back = draws_of(t * [1.0, 1e4], uniform(), 3000, seed=1, epsilon=3.0)
    inside = draws @ turn.T * [1.0, 1e4]
    for j in range(2):  # under a uniform prior the law in the rows' hull is equivariant; nearly all draws are there
        assert (
            stats.ks_2samp(inside[np.abs(inside).max(axis=1) < 1, j], back[np.abs(back).max(axis=1) < 1, j]).pvalue
            > LEVEL
        )
    assert (np.abs(inside).max(axis=1) < 1).mean() > 0.9


def test_draws_are_points_of_the_grid():
    for prior in (pm.Normal.dist(0, 2, shape=2), uniform()):
        plan, rows = plan_of(ROWS, prior)
        draws = plan.draw(rows, SeededBits(1), 500)
        keys = plan.prior.keys(draws).T  # a number may be mapped to the cell beside its own
        near = np.stack([plan.prior.values(keys + step) for step in (-1, 0, 1)])
        assert (near == draws).any(axis=0).all()


# Odd tables


LINE = np.column_stack([np.arange(9.0), 2 * np.arange(9.0) - 3])
WITHOUT_MASS = {
    "none": np.empty((0, 2)),
    "one": np.array([[0.3, -0.2]]),
    "two": np.array([[0.3, -0.2], [1.0, 1.0]]),
    "equal": np.full((5, 2), 0.25),
    "one line": LINE,
    "vertical": np.column_stack([np.full(6, 0.5), np.arange(6.0)]),
    "far": np.full((3, 2), 1e300) + [[0, 0], [1e299, 0], [0, 1e299]],
    "largest doubles": np.finfo(float).max * np.array([[1.0, 1.0], [-1.0, 1.0], [1.0, 0.9]]),
}


@pytest.mark.parametrize("name", WITHOUT_MASS)
@pytest.mark.parametrize("family", ["uniform", "MvNormal"])
def test_regions_without_mass_leave_the_prior(name, family):
    if family == "uniform":
        prior, wanted = uniform(), stats.uniform(-2, 4)
    else:
        prior, wanted = pm.MvNormal.dist(np.zeros(2), 0.01 * np.eye(2)), stats.norm(0, 0.1)
    plan, rows = plan_of(WITHOUT_MASS[name], prior, epsilon=3.0)
    assert (plan.law(rows).log_masses < -400).all()
    draws = plan.draw(rows, SeededBits(4), 3000)
    wanted = (
        stats.norm(0, 0.1) if not hasattr(plan.prior, "floors") or hasattr(plan.prior, "mean") else stats.uniform(-2, 4)
    )
    for j in range(2):
        assert stats.kstest(draws[:, j], wanted.cdf).pvalue > LEVEL


def test_levels_above_half_of_the_rows():
    # 6 of 10 rows are one vertex of a triangle: it is the only point of the levels from 3 to 6, and has no mass.
    rows = np.array([[0.0, 0.0]] * 6 + [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    law = law_of(rows, uniform(), epsilon=1.0)
    assert law.levels.tolist() == [1, 2, 3, 4, 5, 6]
    np.testing.assert_allclose(np.exp(law.log_masses), [1 / 32, 1 / 32, 0, 0, 0, 0], rtol=1e-14)
    draws = draws_of(rows, uniform(), 4000, epsilon=1.0)
    inside = (draws > 0).all(axis=1) & (draws.sum(axis=1) < 1)
    share = math.e / 32 / (math.e / 32 + 31 / 32)
    assert stats.binomtest(int(inside.sum()), 4000, share).pvalue > LEVEL


def test_a_region_around_the_support_changes_nothing():
    rows = [[-100.0, -100.0], [200.0, -50.0], [-50.0, 300.0]]
    law = law_of(rows, uniform(), epsilon=1.0)
    assert law.log_masses[0] == pytest.approx(0.0, abs=1e-14)
    assert stats.kstest(draws_of(rows, uniform(), 2000)[:, 0], stats.uniform(-2, 4).cdf).pvalue > LEVEL


def test_the_order_of_rows_changes_no_draw():
    turned = ROWS[np.random.default_rng(1).permutation(len(ROWS))]
    assert (draws_of(ROWS, uniform(), 50) == draws_of(turned, uniform(), 50)).all()


# Front doors


def test_it_is_taken_when_named_and_recorded():
    median = functools.partial(
        dpd.private_median, ROWS, epsilon=1.0, prior="normal(0, 2)", depth=Halfspace(directions=None)
    )
    release = median(sampler="planar")
    assert (release.sampler, release.guarantee, release.epsilon) == ("planar", "float64", 1.0)
    assert dpd.Release.from_dict(release.to_dict()) == release
    assert median().sampler == "branch_and_bound"
    with pm.Model() as model:
        location = pm.MvNormal("location", np.zeros(2), np.eye(2) + 0.5)
        dpd.exponential_mechanism("median", location, ROWS, depth=Halfspace(directions=None), epsilon=1.0)
        assert dpd.sample_exact(draws=50, sampler="planar").posterior["location"].shape == (1, 50, 2)
    assert dpd.release(model, sampler="planar").guarantee == "float64"


def test_what_does_not_fit_is_refused():
    for depth, rows in ((Halfspace(), ROWS), (dpd.Spatial(), ROWS), (Halfspace(directions=None), np.zeros((4, 3)))):
        prior = pm.Normal.dist(0, 1, shape=rows.shape[1])
        settings, product, _ = set_up("m", prior, rows, depth=depth, epsilon=1.0)
        with pytest.raises(NoExactSamplerError, match="all directions of two columns"):
            plan_draws(settings, product, prior, "planar")
    with pytest.raises(NoExactSamplerError, match="up to 10000 rows"):
        plan_of(np.zeros((10_001, 2)), pm.Normal.dist(0, 1, shape=2))
    with pytest.raises(NoExactSamplerError, match="Dirichlet"):
        plan_of(ROWS, pm.Dirichlet.dist([1.0, 1.0]))


def test_nothing_of_the_rows_is_shown():
    plan, rows = plan_of(ROWS, uniform())
    assert isinstance(plan, PlanarPlan)
    assert all(str(round(float(x), 3)) not in repr(plan.law(rows)) + repr(plan.describe()) for x in ROWS.ravel())
