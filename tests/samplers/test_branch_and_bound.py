"""Branch and bound: exact acceptance, trees that partition the grid, and draws against other exact laws."""

from fractions import Fraction

import numpy as np
import pymc as pm
import pytest
from scipy import stats
from scripted import ScriptedBits, word_near

import pymc_dpdepth as dpd
from pymc_dpdepth.depths import (
    Directions,
    Halfspace,
    IntegratedDual,
    IntegratedRankWeighted,
    ModifiedSpatial,
    Simplicial,
    Spatial,
)
from pymc_dpdepth.depths.box_bounds import BoxBound
from pymc_dpdepth.grid import LAST_KEY, cell_count
from pymc_dpdepth.mechanism import set_up
from pymc_dpdepth.randomness import SeededBits
from pymc_dpdepth.samplers import branch_and_bound
from pymc_dpdepth.samplers.branch_and_bound import BranchAndBound, WorkLimitError
from pymc_dpdepth.samplers.branch_plan import BranchPlan
from pymc_dpdepth.samplers.choice import accept
from pymc_dpdepth.samplers.dispatch import plan_draws
from pymc_dpdepth.samplers.exact import NoExactSamplerError
from pymc_dpdepth.samplers.leaves import box_interval, split_boxes
from pymc_dpdepth.samplers.weights import WeightBase

# Family-wise level 1e-6 of the chi-square and Kolmogorov-Smirnov tests of this file, fewer than 60.
LEVEL = 1e-6 / 60
ROWS = np.random.default_rng(3).normal(size=(40, 2))


def plan_of(rows, depth, epsilon=2.0, prior=None, sampler="branch_and_bound"):
    d = rows.shape[1]
    prior = pm.Normal.dist(0, 2, shape=d) if prior is None else prior
    settings, product, rows = set_up("m", prior, rows, depth=depth, epsilon=epsilon)
    return plan_draws(settings, product, prior, sampler), rows


def draws_of(rows, depth, count, seed=0, **options):
    plan, rows = plan_of(rows, depth, **options)
    return plan.draw(rows, SeededBits(seed), count)


# Acceptance


@pytest.mark.parametrize("unit", [Fraction(1, 2), Fraction(1, 3000), Fraction(40)])
def test_acceptance_is_that_of_exact_arithmetic(unit):
    base = WeightBase.of(unit)
    b = Fraction(base.numerator, 2**base.shift)
    went_on = 0
    for count in (0, 1, 2, 17, 300):
        for offset in (-(2**20), -1, 0, 1, 2**20):
            word = word_near(b**count, offset)
            bits = ScriptedBits([], seed=count)
            (taken,) = accept(np.array([count]), base, np.array([word], dtype=np.uint64), bits)
            number = Fraction(word, 2**64) + bits.uniform() / 2**64
            assert taken == (number < b**count)
            assert taken == (number + Fraction(1, 2 ** (64 * (1 + len(bits.given)))) * Fraction(99, 100) < b**count)
            went_on += bits.asked > 0
    assert went_on >= 3


# The tree


class Peaked(BoxBound):
    """A score that is the number of coordinates' cells near a point, with exact bounds."""

    sensitivity_count = 1
    influence = np.ones(2)

    def upper(self, low, high):
        nearest = np.clip(0.3, low, high)
        return self.score(nearest, None)

    def score(self, points, least):
        return np.floor(20 / (1 + 10 * np.abs(points - 0.3).max(axis=1))).astype(np.int64)


def tree_of(bound, rows=ROWS, unit=Fraction(1, 2), beta=0.0):
    plan, rows = plan_of(rows, Halfspace("axes"))
    frame = plan.frame
    keys = np.sort(frame.keys(rows), axis=1)
    base = WeightBase.of(unit) if bound.sensitivity_count else None
    return BranchAndBound(bound, base, beta, frame.floors(), frame.locations, frame.enclose, keys), frame


def test_the_boxes_partition_the_grid_and_their_bounds_fall():
    tree, frame = tree_of(Peaked())
    tree.draw(SeededBits(1), 400)
    leaves, floors = tree._leaves, frame.floors()
    ends = list(zip(leaves.first.tolist(), leaves.last.tolist(), strict=True))
    total = sum(
        np.prod([cell_count(a, b, *f) for a, b, f in zip(first, last, floors.tolist(), strict=True)], dtype=object)
        for first, last in ends
    )
    assert total == (1 << 1020) ** 2  # masses of all boxes add up to 1, to the last bit
    assert (leaves.first <= leaves.last).all() and len(leaves) > 20
    # No cell is in two boxes: of any two, one lies beyond the other along some axis.
    first, last = leaves.first, leaves.last
    for i in range(len(leaves)):
        overlap = ((first[i] <= last) & (last[i] >= first)).all(axis=1)
        assert overlap.sum() == 1
    low, high = frame.enclose(first, last)
    assert (leaves.bounds >= tree._bound.upper(low, high)).all()
    for s, e, a, b, bound in zip(
        leaves.significands, leaves.exponents, first, last, leaves.bounds.tolist(), strict=True
    ):
        exact = box_interval(a, b, floors, 192) * tree._base.power(int(tree._top) - bound, 192)
        low_end, high_end = exact.ends(int(e) - 300)
        weight = int(s * 2**52) << 248
        assert abs(weight - low_end) <= tree._roundings * 2.0**-53 * high_end


def test_a_box_of_one_cell_is_not_split():
    first = np.array([[5 << 40, 7 << 40], [5 << 40, 7 << 40]])
    last = np.array([[5 << 40, 7 << 40], [5 << 40, (7 << 40) + 1]])
    low, high = np.zeros((2, 2)), np.array([[0.0, 0.0], [0.0, 1e-9]])
    axes, cells = split_boxes(first, last, low, high, np.ones(2), np.zeros((2, 2), dtype=np.int64))
    assert axes.tolist() == [-1, 1] and cells[1] == 7 << 40


def test_splits_leave_mass_on_both_sides():
    generator = np.random.default_rng(5)
    floors = plan_of(ROWS, Halfspace("axes"))[0].frame.floors()
    low_floor = floors[0, 0]
    for _ in range(500):
        first, last = np.sort(generator.integers(low_floor, LAST_KEY - low_floor + 1, size=2))
        if first == last:
            continue
        run = np.array([[first]]), np.array([[last]])
        axes, cells = split_boxes(*run, np.zeros((1, 1)), np.ones((1, 1)), np.ones(1), floors[:1])
        assert axes[0] == 0 and first <= cells[0] < last
        assert cell_count(int(first), int(cells[0]), *floors[0].tolist()) > 0
        assert cell_count(int(cells[0]) + 1, int(last), *floors[0].tolist()) > 0


def test_a_bound_that_is_too_small_is_noticed():
    class TooSmall(Peaked):
        def upper(self, low, high):
            return np.maximum(super().upper(low, high) - 3, 0)

    with pytest.raises(ValueError, match="exceeds its box bound"):
        tree_of(TooSmall())[0].draw(SeededBits(1), 500)


def test_a_tree_that_reaches_its_limit_raises_and_says_what_that_means(monkeypatch):
    class Hopeless(Peaked):
        def upper(self, low, high):
            return np.full(len(low), 10_000)

    monkeypatch.setattr(branch_and_bound, "LARGEST_TREE", 300)
    with pytest.raises(WorkLimitError, match="must not be published"):
        tree_of(Hopeless())[0].draw(SeededBits(1), 1)


def test_tries_that_lead_nowhere_end_too(monkeypatch):
    class Stuck(Peaked):
        def upper(self, low, high):
            return np.full(len(low), 10_000)

    monkeypatch.setattr(branch_and_bound, "MOST_TRIES", 500)
    monkeypatch.setattr(BranchAndBound, "_split", lambda self, index: None)
    with pytest.raises(WorkLimitError, match="without a draw"):
        tree_of(Stuck())[0].draw(SeededBits(1), 1)


# Laws


def grid_chi_square(draws, rows, depth, prior_sd, epsilon, edges, settings):
    """Compare draws in the plane with the density on a fine midpoint grid of each bin of a coarse one."""
    center, scale = np.array(settings.center), np.array(settings.scale)
    fine, bins = 60, len(edges) - 1
    points = np.concatenate([np.linspace(a, b, 2 * fine + 1)[1::2] for a, b in zip(edges[:-1], edges[1:], strict=True)])
    mesh = np.stack(np.meshgrid(points, points, indexing="ij"), axis=-1).reshape(-1, 2)
    exponent = (
        epsilon
        / (2 * depth.sensitivity(len(rows), 2))
        * depth.evaluate((mesh - center) / scale, (rows - center) / scale)
    )
    density = np.exp(exponent - exponent.max()) * stats.norm(0, prior_sd).pdf(mesh).prod(axis=1)
    widths = np.repeat(np.diff(edges), fine)
    mass = density.reshape(bins * fine, bins * fine) * widths[:, None] * widths[None, :]
    expected = mass.reshape(bins, fine, bins, fine).sum(axis=(1, 3))
    expected *= len(draws) / expected.sum()
    counts = np.histogram2d(*draws.T, bins=[edges, edges])[0]
    assert counts.sum() == len(draws)
    small = expected < 8
    observed = np.append(counts[~small], counts[small].sum())
    wanted = np.append(expected[~small], expected[small].sum())
    keep = wanted > 0
    return stats.chi2.sf(((observed - wanted)[keep] ** 2 / wanted[keep]).sum(), keep.sum() - 1)


EDGES = np.array([-15.0, -1.2, -0.7, -0.35, 0.0, 0.35, 0.7, 1.2, 15.0])
DEPTHS = {
    "halfspace of 20 directions": Halfspace(directions=Directions.balanced(2, 20)),
    "halfspace": Halfspace(directions=None),
    "rank-weighted": IntegratedRankWeighted(directions=Directions.uniform(2, 11, seed=1)),
    "dual": IntegratedDual(directions=Directions.balanced(2, 10)),
    "smoothed dual": IntegratedDual(smoothing=4.0, directions=Directions.balanced(2, 6)),
    "spatial": Spatial(),
    "modified spatial": ModifiedSpatial(),
    "simplicial": Simplicial(),
}


@pytest.mark.parametrize("name", DEPTHS)
def test_draws_in_the_plane_have_the_density(name):
    # The midpoint rule errs by the share of fine cells that the steps of a step depth cross, below 1% of a bin against
    # sampling errors of 3% and more at 4,000 draws.
    depth = DEPTHS[name]
    epsilon = 6.0 if name == "dual" else 2.0
    plan, rows = plan_of(ROWS, depth, epsilon)
    draws = plan.draw(rows, SeededBits(7), 4000)
    assert plan.guarantee == ("exact" if plan.counted else "float64")
    assert plan.counted == (name not in ("smoothed dual", "spatial", "modified spatial"))
    depth = plan.settings.depth
    assert grid_chi_square(draws, rows, depth, 2.0, epsilon, EDGES, plan.settings) > LEVEL
    assert grid_chi_square(draws, rows, depth, 2.0, 2.5 * epsilon, EDGES, plan.settings) < LEVEL


@pytest.mark.parametrize(
    "depth", [Halfspace("axes"), IntegratedRankWeighted(), IntegratedDual()], ids=lambda depth: depth.name
)
def test_along_axes_it_is_the_law_of_the_other_samplers(depth):
    tied = np.round(ROWS)
    for seed, rows in enumerate((ROWS, tied)):
        one = draws_of(rows, depth, 3000, seed=seed)
        other = draws_of(rows, depth, 3000, seed=seed + 50, sampler="auto")
        for j in range(2):
            assert stats.ks_2samp(one[:, j], other[:, j]).pvalue > LEVEL
        assert stats.ks_2samp(one.sum(axis=1), other.sum(axis=1)).pvalue > LEVEL


def test_an_atom_that_most_rows_share_comes_out_as_itself():
    rows = np.concatenate([np.full((80, 2), [3.0, 1.0]), np.random.default_rng(1).normal(size=(20, 2))])
    directions = Directions.balanced(2, 8)
    draws = draws_of(rows, Halfspace(directions=directions), 20, epsilon=4.0)
    # Depth .8 against .2 elsewhere: e^(epsilon/2 * 60) = e^120 outweighs the cell's prior mass, 2^-84 = e^-58.
    assert (draws == [3.0, 1.0]).all()


def test_large_epsilon_of_the_dual_depth_and_few_rows():
    depth = IntegratedDual(directions=Directions.balanced(2, 10))
    for rows in (ROWS, ROWS[:2]):
        assert np.isfinite(draws_of(rows, depth, 20, epsilon=50.0)).all()


def test_a_box_of_one_cell_takes_its_score_as_its_bound():
    class OnePoint(BoxBound):
        """A score of 40 at one point and 0 elsewhere, and a bound there that is 30 too high: e^-120 to be accepted."""

        sensitivity_count = 1
        influence = np.ones(2)

        def upper(self, low, high):
            return 70 * ((low <= 0.3) & (high >= 0.3)).all(axis=1).astype(np.int64)

        def score(self, points, least):
            return 40 * (points == 0.3).all(axis=1).astype(np.int64)

    tree, frame = tree_of(OnePoint(), unit=Fraction(4))
    # The cell's prior mass is about 2^-82 = e^-57, its weight e^160.
    assert (frame.locations(tree.draw(SeededBits(2), 5)) == 0.3).all()


def test_multivariate_normal_priors_are_checked():
    for mu, cov in (([0, 0], [[1, np.nan], [np.nan, 1]]), ([np.inf, 0], np.eye(2)), ([0, 0], [[1, 0.9], [0.1, 1]])):
        with pytest.raises(ValueError, match="finite"):
            plan_of(ROWS, Halfspace("axes"), prior=pm.MvNormal.dist(np.array(mu, dtype=float), np.array(cov)))


KOLMOGOROV = 2.95  # the statistic's quantile at 1 - 6e-8: 2 exp(-2 * 2.95^2)


def distance_of_cdfs(draws, points, weights):
    """Return the largest distance between the cdf of draws and that of weighted points."""
    order = np.argsort(points)
    cdf = np.cumsum(weights[order]) / weights.sum()
    return np.abs(np.searchsorted(np.sort(draws), points[order]) / len(draws) - cdf).max()


def test_multivariate_normal_priors():
    covariance = np.array([[4.0, 3.0], [3.0, 4.0]])
    prior = pm.MvNormal.dist(np.array([0.5, -0.5]), covariance)
    plan, rows = plan_of(ROWS, Halfspace("axes"), prior=prior, epsilon=1.0, sampler="auto")
    assert isinstance(plan, BranchPlan) and plan.prior.describe()[0]["family"] == "MvNormal"
    draws = plan.draw(rows, SeededBits(1), 4000)
    # The law by importance from the prior: an effective sample size of some thousands, so its cdf is right to 0.03.
    z = np.random.default_rng(2).normal(size=(400_000, 2))
    x = np.array([0.5, -0.5]) + z @ np.linalg.cholesky(covariance).T
    weights = np.exp(20 * (Halfspace("axes").evaluate(x, ROWS) - 0.5))
    assert weights.sum() ** 2 / (weights**2).sum() > 2000
    for direction in ([1, 0], [0, 1], [1, 1], [1, -1]):
        assert distance_of_cdfs(draws @ direction, x @ direction, weights) < 0.03 + KOLMOGOROV / np.sqrt(len(draws))


def test_marginals_in_space():
    rows = np.random.default_rng(9).normal(size=(30, 3))
    depth = Halfspace(directions=Directions.balanced(3, 12))
    draws = draws_of(rows, depth, 3000, epsilon=2.0)
    # Importance weights from a wide normal: effective sample size some thousands, so the cdf is right to about .02.
    generator = np.random.default_rng(1)
    proposals = generator.normal(0, 1.2, size=(200_000, 3))
    log_weights = 0.5 * 2.0 * 30 * depth.evaluate(proposals / (2 * 1.349), rows / (2 * 1.349))
    log_weights += stats.norm(0, 2).logpdf(proposals).sum(axis=1) - stats.norm(0, 1.2).logpdf(proposals).sum(axis=1)
    weights = np.exp(log_weights - log_weights.max())
    assert weights.sum() ** 2 / (weights**2).sum() > 2000
    for j in range(3):
        distance = distance_of_cdfs(draws[:, j], proposals[:, j], weights)
        assert distance < 0.03 + KOLMOGOROV / np.sqrt(len(draws))


# The front doors


def test_it_is_taken_where_nothing_else_fits_and_recorded():
    release = dpd.private_median(ROWS, epsilon=1.0, prior="normal(0, 2)", depth=Spatial())
    assert (release.sampler, release.guarantee) == ("branch_and_bound", "float64")
    release = dpd.private_median(ROWS, epsilon=1.0, prior="uniform(-5, 5)", depth=Halfspace(directions=None))
    assert (release.sampler, release.guarantee) == ("branch_and_bound", "exact")
    assert release.mechanisms[0]["realised_epsilon"] == 1.0
    assert dpd.Release.from_dict(release.to_dict()) == release
    with pm.Model() as model:
        location = pm.MvNormal("location", np.zeros(2), np.eye(2) + 0.5)
        dpd.exponential_mechanism("median", location, ROWS, depth=IntegratedRankWeighted(), epsilon=1.0)
        idata = dpd.sample_exact(draws=50)
    assert idata.posterior["location"].shape == (1, 50, 2)
    made = dpd.release(model)
    assert (made.sampler, made.guarantee) == ("branch_and_bound", "exact")
    assert made.priors["median"][0]["family"] == "MvNormal"
    assert dpd.Release.from_dict(made.to_dict()) == made


def test_far_dimensions_are_refused_unless_insisted_on():
    rows = np.zeros((10, 6))
    with pytest.raises(NoExactSamplerError, match="up to 5 dimensions"):
        plan_of(rows, Spatial(), sampler="auto")
    assert draws_of(rows, Spatial(), 3, epsilon=0.1).shape == (3, 6)


@pytest.mark.parametrize(
    "rows", [np.empty((0, 2)), np.full((1, 2), 1e300), np.full((3, 2), -7.0)], ids=["none", "far", "equal"]
)
@pytest.mark.parametrize("name", DEPTHS)
def test_degenerate_tables_draw_finite_points(name, rows):
    draws = draws_of(rows, DEPTHS[name], 200)
    assert np.isfinite(draws).all()
    if not len(rows):
        assert stats.kstest(draws[:, 0] / 2, "norm").pvalue > LEVEL
