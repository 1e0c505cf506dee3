"""Draws against the density they claim, by chi-square, with tied rows.

Each test draws once with a fixed seed. The level of one test is 1e-6 divided by the number of tests in the family, so
that all of them together reject a right sampler with probability below 1e-6.
"""

import itertools

import numpy as np
import pymc as pm
import pytest
from scipy import stats

from pymc_dpdepth.depths import Directions, Halfspace, IntegratedDual, IntegratedRankWeighted
from pymc_dpdepth.mechanism import set_up
from pymc_dpdepth.randomness import SeededBits
from pymc_dpdepth.samplers.exact import plan_exact

FAMILY, LEVEL = 12, 1e-6
DRAWS = 40_000
TIED = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 0.0], [2.0, 0.0], [2.0, -1.0], [-1.0, 1.0]])
SCATTERED = np.random.default_rng(8).normal(size=(7, 2))
FINE = 400  # points of the midpoint rule per axis and bin: the density is a step function along few lines


def draw(rows, prior, depth, epsilon, seed, draws=DRAWS):
    settings, product, rows = set_up("m", prior, rows, depth=depth, epsilon=epsilon)
    plan = plan_exact(settings, product)
    return plan, plan.draw(rows, SeededBits(seed), draws)


def axis_bins(values, edges):
    """Return the bin of each value; a value on an edge is a bin of its own: that is where the atoms are."""
    edges = np.asarray(edges)
    return np.where(np.isin(values, edges), 2 * np.searchsorted(edges, values) + 1, 2 * np.searchsorted(edges, values))


def expected_on_axes(rows, priors, depth, epsilon, edges):
    """Return the probability of each cell of the product of bins, for a depth along the axes, by direct counting.

    Between edges (all row values are edges) the counts are constant; an atom's prior mass, 2^-41 or so, is nothing at
    this sample size and epsilon.
    """
    masses = [np.diff([0.0, *prior.cdf(e), 1.0]) for prior, e in zip(priors, edges, strict=True)]
    middles = [np.array([e[0] - 1, *(0.5 * (e[1:] + e[:-1])), e[-1] + 1]) for e in edges]
    beta = epsilon / (2 * depth.sensitivity(len(rows), 2))
    table = np.empty((len(middles[0]), len(middles[1])))
    for (i, a), (j, b) in itertools.product(enumerate(middles[0]), enumerate(middles[1])):
        le = (rows <= (a, b)).sum(axis=0)
        ge = (rows >= (a, b)).sum(axis=0)
        n = len(rows)
        univariate = le * ge / n**2 if isinstance(depth, IntegratedDual) else np.minimum(le, ge) / n
        value = univariate.min() if isinstance(depth, Halfspace) else univariate.mean()
        table[i, j] = masses[0][i] * masses[1][j] * np.exp(beta * value)
    return table / table.sum()


def assert_chi_square(counts, probabilities):
    """Compare counts with probabilities; cells that expect fewer than 10 are put together."""
    expected = counts.sum() * probabilities.ravel()
    counts = counts.ravel()
    small = expected < 10
    observed = np.append(counts[~small], counts[small].sum())
    wanted = np.append(expected[~small], expected[small].sum())
    if wanted[-1] < 10:  # too few even together: into the largest cell
        largest = np.argmax(wanted)
        wanted[largest] += wanted[-1]
        observed[largest] += observed[-1]
        observed, wanted = observed[:-1], wanted[:-1]
    statistic = ((observed - wanted) ** 2 / wanted).sum()
    assert stats.chi2.sf(statistic, len(wanted) - 1) > LEVEL / FAMILY, statistic
    return statistic


@pytest.mark.parametrize("rows", [TIED, SCATTERED], ids=["tied", "scattered"])
@pytest.mark.parametrize(
    "depth", [Halfspace("axes"), IntegratedRankWeighted(), IntegratedDual()], ids=lambda depth: depth.name
)
def test_axes_against_direct_counting(depth, rows):
    prior = [pm.Normal.dist(0, 1.5), pm.Uniform.dist(-3, 3)]
    import pytensor.tensor as pt

    _, draws = draw(rows, pt.stack(prior), depth, 3.0, seed=len(depth.name))
    edges = [np.unique(rows[:, j]) for j in (0, 1)]
    probabilities = expected_on_axes(rows, [stats.norm(0, 1.5), stats.uniform(-3, 6)], depth, 3.0, edges)
    bins = [axis_bins(draws[:, j], edges[j]) for j in (0, 1)]
    assert all((b % 2 == 0).all() for b in bins)  # no draw on an atom at this epsilon
    counts = np.zeros(probabilities.shape)
    np.add.at(counts, (bins[0] // 2, bins[1] // 2), 1)
    assert_chi_square(counts, probabilities)
    with pytest.raises(AssertionError):  # the same test with a doubled epsilon fails: it can
        assert_chi_square(counts, expected_on_axes(rows, [stats.norm(0, 1.5), stats.uniform(-3, 6)], depth, 6.0, edges))


@pytest.mark.parametrize("depth_class", [Halfspace, IntegratedRankWeighted])
def test_rotated_directions_against_the_midpoint_rule(depth_class):
    # Coarse bins of the plane. The midpoint rule with FINE^2 points per bin errs by about the share of points that a
    # step line crosses, 1/FINE, times the jump: below 0.5% of a cell, against sampling errors of 1% and more.
    prior_sd, epsilon = np.array([1.5, 1.0]), 3.0
    depth = depth_class(directions=Directions.orthonormal(2, seed=4))
    plan, draws = draw(TIED, pm.Normal.dist(0, prior_sd, shape=2), depth, epsilon, seed=5, draws=10_000)
    center, scale = np.array(plan.settings.center), np.array(plan.settings.scale)
    edges = [np.array([-6.0, -1.0, 0.3, 1.1, 6.0]) * s for s in prior_sd]
    beta = epsilon / (2 * depth.sensitivity(len(TIED), 2))
    probabilities = np.zeros((4, 4))
    for i, j in itertools.product(range(4), range(4)):
        axes = [np.linspace(e[k], e[k + 1], 2 * FINE + 1)[1::2] for e, k in zip(edges, (i, j), strict=True)]
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
        density = np.exp(
            beta * depth.evaluate((points - center) / scale, (TIED - center) / scale)
            - 0.5 * ((points / prior_sd) ** 2).sum(axis=1)
        )
        probabilities[i, j] = density.mean() * np.prod(
            [np.ptp(e[k : k + 2]) for e, k in zip(edges, (i, j), strict=True)]
        )
    counts = np.histogram2d(*draws.T, bins=edges)[0]
    assert counts.sum() == len(draws)
    assert_chi_square(counts, probabilities / probabilities.sum())


@pytest.mark.parametrize(
    "depth", [Halfspace("axes"), IntegratedRankWeighted(), IntegratedDual()], ids=lambda depth: depth.name
)
def test_a_value_that_most_rows_share_comes_out_as_itself(depth):
    rows = np.concatenate([np.full(800, 65_000.0), np.random.default_rng(2).uniform(0, 500_000, 200)])[:, None]
    _, draws = draw(rows, pm.Uniform.dist(0, 500_000, shape=1), depth, 1.0, seed=9, draws=200)
    # The atom outweighs all else by exp(epsilon (n/2) 0.3) 2^-42 > e^100.
    assert (draws == 65_000.0).all()


def test_fewer_directions_than_dimensions_leave_the_rest_to_the_prior():
    depth = Halfspace(directions=np.array([[0.0, 1.0]]))
    plan, draws = draw(SCATTERED + 5.0, pm.Normal.dist(0, [1.0, 4.0], shape=2), depth, 200.0, seed=10, draws=4000)
    assert plan.sampler == "segments"
    # Kolmogorov-Smirnov of the free coordinate; the other one sits at the rows' median, about 5.
    assert stats.kstest(draws[:, 0], "norm").pvalue > LEVEL / FAMILY
    assert 4.0 < draws[:, 1].mean() < 6.0


@pytest.mark.parametrize(
    "rows", [np.empty((0, 2)), np.full((1, 2), 1e300), np.full((3, 2), -7.0)], ids=["none", "far", "equal"]
)
def test_degenerate_tables_draw_finite_points(rows):
    for depth in (Halfspace("axes"), IntegratedRankWeighted(), IntegratedDual()):
        _, draws = draw(rows, pm.Normal.dist(0, 2, shape=2), depth, 1.0, seed=11, draws=2000)
        assert np.isfinite(draws).all()
        if not len(rows):
            assert stats.kstest(draws[:, 0] / 2, "norm").pvalue > LEVEL / FAMILY


def test_rows_twenty_prior_sds_away_are_reached():
    rows = np.full((500, 1), 20.0) + np.random.default_rng(1).normal(0, 0.1, (500, 1))
    _, draws = draw(rows, pm.Normal.dist(0, 1, shape=1), Halfspace("axes"), 5.0, seed=12, draws=50)
    # Prior mass there is e^-200; the depth pays e^(epsilon n / 4) = e^625.
    assert (np.abs(draws - 20.0) < 0.5).all()
