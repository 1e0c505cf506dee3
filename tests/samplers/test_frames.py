"""Frames: keys of rotated rows, locations of cells, free directions, and draws through them against brute force."""

import itertools

import exact_grid
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from exact_laws import brute_force_law, partition
from scipy import stats

from pymc_dpdepth.depths import Directions, Halfspace, IntegratedDual, IntegratedRankWeighted
from pymc_dpdepth.mechanism import set_up
from pymc_dpdepth.randomness import SeededBits
from pymc_dpdepth.samplers.exact import NoExactSamplerError, plan_exact
from pymc_dpdepth.samplers.frames import AxisFrame, RotatedFrame

# Family-wise error 1e-6, shared by the 12 tests of this file that draw (each asserts one p-value or two).
LEVEL = 1e-6 / 24
NORMAL_IQR = 1.3489795003921634  # of a standard normal
MU, SIGMA = np.array([1.0, -2.0, 0.5]), np.array([1.5, 0.3, 4.0])
ROWS = np.random.default_rng(1).normal(size=(6, 3)) * SIGMA * 0.7 + MU + 0.3 * SIGMA


def plan_for(rows, location, depth, epsilon=1.0):
    settings, product, _ = set_up("m", location, rows, depth=depth, epsilon=epsilon)
    return plan_exact(settings, product)


def rotated_plan(depth_class, n=6, epsilon=1.0, directions=None):
    depth = depth_class(directions=Directions.orthonormal(3, seed=2) if directions is None else directions)
    return plan_for(np.zeros((n, 3)), pm.Normal.dist(MU, SIGMA, shape=3), depth, epsilon)


def test_a_rotated_key_depends_on_its_row_alone():
    # In 60 dimensions a matrix product of a linear-algebra library changes its last bits with the shape of the table.
    d, n = 60, 611
    depth = Halfspace(directions=Directions.orthonormal(d, seed=2))
    frame = plan_for(np.zeros((2, d)), pm.Normal.dist(0.1, 1.3, shape=d), depth).frame
    assert isinstance(frame, RotatedFrame)
    generator = np.random.default_rng(3)
    rows = generator.normal(size=(n, d)) * np.exp2(generator.integers(-1, 5, size=(n, 1)))
    keys, order = frame.keys(rows), generator.permutation(n)
    assert np.array_equal(frame.keys(rows[order]), keys[:, order])
    assert np.array_equal(frame.keys(np.asfortranarray(rows)), keys)
    assert np.array_equal(frame.keys(np.repeat(rows, 2, axis=1)[:, ::2]), keys)
    for start, stop in ((0, 1), (3, 10), (300, 320), (n - 1, n)):
        assert np.array_equal(frame.keys(rows[start:stop]), keys[:, start:stop])
    far = np.full((2, d), 1e300)
    assert np.array_equal(frame.keys(np.concatenate([rows, far]))[:, :-2], keys)


def test_rotated_locations_are_the_cells_turned_back_and_depend_on_their_own_cells():
    frame = rotated_plan(Halfspace).frame
    generator = np.random.default_rng(4)
    y = generator.normal(size=(200, 3))
    v = stats.norm.sf(np.abs(y))
    cells = np.vectorize(exact_grid.key_of_tail)(v)
    cells = np.where(y > 0, exact_grid.LAST - cells, cells)
    theta = frame.locations(cells)
    # A rotation of standard normals, times sigma: cells are 2^-40 of the tail wide, so y is known to 1e-12.
    np.testing.assert_allclose(theta, MU + SIGMA * (y @ frame.rotation), rtol=1e-11, atol=1e-11)
    assert theta.tolist() == [frame.locations(cell[None])[0].tolist() for cell in cells]


def test_rows_come_back_from_their_own_cells():
    frame = rotated_plan(Halfspace).frame
    rows = np.random.default_rng(5).normal(size=(50, 3)) * 3
    np.testing.assert_allclose(frame.locations(frame.keys(rows).T), rows, rtol=1e-10, atol=1e-10)


def test_rows_that_overflow_when_standardised_give_no_warning_and_the_outermost_cells():
    # Warnings are errors here: one that comes with a far row would tell of it, after the charge.
    frame = plan_for(
        np.zeros((1, 2)), pm.Normal.dist(0, 1e-300, shape=2), Halfspace(directions=Directions.orthonormal(2, seed=2))
    ).frame
    far = np.finfo(float).max
    rows = np.array([[far, -far], [-far, far], [1e-300, 0.0], [far, far]])
    keys = frame.keys(rows)
    assert np.array_equal(frame.keys(rows[2:3]), keys[:, 2:3])
    assert np.array_equal(keys[:, 0], exact_grid.LAST - keys[:, 1])
    # The map of normal keys stops 36.5 standard deviations out, and a rotation has a direction that sees the far row.
    y = frame.rotation @ (frame.locations(keys.T) / 1e-300).T
    assert (np.abs(y[:, [0, 1, 3]]).max(axis=0) > 36).all() and (np.abs(y[:, 2]) <= 1.001).all()


@pytest.mark.parametrize("mu", [0.0, 1e308, -1e308])
def test_locations_are_finite_under_a_prior_near_the_largest_double(mu):
    # The prior's quartiles are finite, its outer cells are not: to_json refuses infinities, after the charge.
    sigma = np.array([1e308, 1e308])
    frame = plan_for(
        np.zeros((1, 2)),
        pm.Normal.dist(np.full(2, mu), sigma, shape=2),
        Halfspace(directions=Directions.orthonormal(2, seed=2)),
    ).frame
    cells = np.array([[0, 0], [0, exact_grid.LAST], [exact_grid.LAST, 0], [exact_grid.LAST, exact_grid.LAST]])
    theta = frame.locations(cells)
    assert np.isfinite(theta).all()
    assert (np.abs(theta) == np.finfo(float).max).any(axis=1).all()
    assert theta.tolist() == [frame.locations(cell[None])[0].tolist() for cell in cells]


def chi_square(observed, log_probabilities):
    """Return the p-value of counts; pieces that expect fewer than 10 are put together."""
    observed, expected = observed.ravel(), np.exp(log_probabilities).ravel() * observed.sum()
    order = np.argsort(expected)
    split = int(np.searchsorted(np.cumsum(expected[order]), 10.0)) + 1
    parts = [order[:split], *order[split:, None]]
    observed, expected = (np.array([a[part].sum() for part in parts]) for a in (observed, expected))
    return stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1)


def brute_force_counts(plan, rows, projected, draws):
    """Return counts of draws by piece and the log probabilities of the pieces, along the plan's directions.

    `projected` and `draws` are rows and draws along the directions. Atoms expect nothing at this epsilon (2^-40) and
    fall into the pooled pieces.
    """
    keys = np.sort(plan.frame.keys(rows), axis=1)
    floors = plan.frame.floors()[plan.frame.active]
    axes = [partition(row, floor) for row, floor in zip(keys, floors, strict=True)]
    law = brute_force_law(plan.settings.depth.name, plan.settings.epsilon, axes, keys)
    counts = np.zeros(law.shape)
    # Pieces alternate gap, atom, gap, ...: a draw above k distinct rows is in piece 2 k.
    places = [2 * np.searchsorted(np.unique(p), d) for p, d in zip(projected, draws, strict=True)]
    np.add.at(counts, tuple(places), 1)
    return counts, law


@pytest.mark.parametrize("depth_class", [Halfspace, IntegratedRankWeighted, IntegratedDual])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_draws_along_rotated_directions(depth_class, count):
    directions = Directions.from_array(Directions.orthonormal(3, seed=2).matrix()[:count])
    plan = rotated_plan(depth_class, epsilon=4.0, directions=directions)
    theta = plan.draw(ROWS, SeededBits(count), 20_000)
    projected, draws = (directions.matrix() @ ((x - MU) / (NORMAL_IQR * SIGMA)).T for x in (ROWS, theta))
    counts, law = brute_force_counts(plan, ROWS, projected, draws)
    assert chi_square(counts, law) > LEVEL
    # The attack has teeth: it rejects the law of the same rows at half the epsilon.
    weaker = rotated_plan(depth_class, epsilon=2.0, directions=directions)
    assert chi_square(*brute_force_counts(weaker, ROWS, projected, draws)) < LEVEL
    for free in plan.frame.rotation[count:]:
        # What the directions leave free is standard normal, and independent of the rest: in particular of the depth.
        y = free @ ((theta - MU) / SIGMA).T
        assert stats.kstest(y, "norm").pvalue > LEVEL
        assert stats.kendalltau(y[:2000], draws[0, :2000]).pvalue > LEVEL


@pytest.mark.parametrize("depth", [Halfspace("axes"), IntegratedRankWeighted(), IntegratedDual()], ids=lambda d: d.name)
def test_draws_along_axes_with_mixed_priors(depth):
    location = pt.concatenate([pm.Gamma.dist(2.2, 1.3, shape=1), pm.Exponential.dist(0.5, shape=1)])
    rows = np.array([[0.5, 0.1], [0.5, 0.1], [2.0, 0.1], [2.0, 3.0], [3.1, 3.0], [1.0, 3.0]])
    plan = plan_for(rows, location, depth, epsilon=4.0)
    assert isinstance(plan.frame, AxisFrame)
    theta = plan.draw(rows, SeededBits(9), 20_000)
    assert (theta >= 0).all()
    counts, law = brute_force_counts(plan, rows, rows.T, theta.T)
    assert chi_square(counts, law) > LEVEL


def test_atoms_compete_with_gaps_at_a_large_epsilon():
    # Eight equal rows: depth 1 on the atom, of prior mass 2^-42 or so, and 0 elsewhere. epsilon n / 2 = log(2^42) makes
    # both about equally likely, so that draws see the atom's mass as well.
    rows = np.full((8, 1), 0.25)
    plan = plan_for(rows, pm.Normal.dist(0, 1, shape=1), Halfspace("axes"), epsilon=42 * np.log(2) / 4)
    theta = plan.draw(rows, SeededBits(10), 20_000)[:, 0]
    keys = plan.frame.keys(rows)
    law = brute_force_law("halfspace", plan.settings.epsilon, [partition(keys[0], plan.frame.floors()[0])], keys)
    counts = np.array([(theta < 0.25).sum(), (theta == 0.25).sum(), (theta > 0.25).sum()])
    assert 0.1 < np.exp(law[1]) < 0.9
    assert counts.sum() == len(theta)
    assert stats.chisquare(counts, np.exp(law) * counts.sum()).pvalue > LEVEL


def test_constant_columns_and_one_row():
    generator = np.random.default_rng(6)
    constant = np.column_stack([np.full(200, 3.0), generator.normal(size=200)])
    for rows, epsilon, exact in ((constant, 20.0, [0]), (np.array([[3.0, -1.5]]), 400.0, [0, 1])):
        for depth in (Halfspace("axes"), IntegratedRankWeighted(), IntegratedDual()):
            plan = plan_for(rows, pm.Normal.dist(0, 2, shape=2), depth, epsilon)
            theta = plan.draw(rows, SeededBits(11), 300)
            # IRW and IDD share beta between two directions: exp(epsilon n / 4) = e^1000 or e^100 against 2^-43 = e^-30.
            for j in exact:
                assert (theta[:, j] == rows[0, j]).all()


@pytest.mark.parametrize("n", [0, 1])
def test_no_rows_and_one_row_follow_the_prior_at_a_small_epsilon(n):
    rows = np.full((n, 2), 0.7)
    location = pt.concatenate([pm.Uniform.dist(-3, 5, shape=1), pm.Laplace.dist(1, 2, shape=1)])
    plan = plan_for(rows, location, Halfspace("axes"), 0.01)
    theta = plan.draw(rows, SeededBits(12), 5000)
    assert stats.kstest(theta[:, 0], stats.uniform(-3, 8).cdf).pvalue > LEVEL
    assert stats.kstest(theta[:, 1], stats.laplace(1, 2).cdf).pvalue > LEVEL


# What has no frame


@pytest.mark.parametrize(
    ("location", "directions", "reason"),
    [
        (lambda: pm.Uniform.dist(0, 1, shape=2), Directions.orthonormal(2), "normal priors"),
        (lambda: pm.Normal.dist(0, 1, shape=2), Directions.uniform(2, 3), "not orthonormal"),
        (lambda: pm.Normal.dist(0, 1, shape=2), np.array([[1.0, 0.0], [1.0, 1.0]]), "not orthonormal"),
        (lambda: pm.Normal.dist(0, 1, shape=2), np.array([[1.0, 0.0], [-1.0, 0.0]]), "same axis"),
        (lambda: pm.MvNormal.dist(np.zeros(2), np.eye(2)), Directions.axes(2), "multivariate"),
    ],
)
def test_other_frames_are_refused(location, directions, reason):
    for depth_class in (Halfspace, IntegratedDual):
        with pytest.raises(NoExactSamplerError, match=reason):
            plan_for(np.zeros((3, 2)), location(), depth_class(directions=directions))


def test_the_sign_and_order_of_axes_do_not_matter():
    rows = np.random.default_rng(7).normal(size=(9, 3)) + [-20.0, 0.0, 20.0]
    location = pm.Normal.dist(0, 10, shape=3)
    expected = plan_for(rows, location, Halfspace("axes")).frame.keys(rows)
    for signs, order in itertools.product(([1, 1, 1], [-1, 1, -1]), ([0, 1, 2], [2, 0, 1])):
        plan = plan_for(rows, location, Halfspace(directions=np.diag(signs)[order].astype(float)), 30.0)
        assert plan.sampler == "boxes"
        assert np.array_equal(plan.frame.keys(rows), expected[order])
        # Depth 4/9 gains e^60 over depth 0, and all points within the rows have a prior mass above e^-15.
        theta = plan.draw(rows, SeededBits(13), 200)
        assert ((theta > rows.min(axis=0)) & (theta < rows.max(axis=0))).all()
