"""Sensitivities of vectors of depths: every weak order on a line, hard and random tables in the plane, planted bugs."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import pymc_dpdepth as dpd
from pymc_dpdepth.depths.vector_sensitivity import (
    count_unit,
    point_sensitivity,
    sample_sensitivity,
    values_sensitivity,
)

DEPTHS = {
    "halfspace": dpd.Halfspace("axes"),
    "irw": dpd.IntegratedRankWeighted(),
    "dual": dpd.IntegratedDual(),
    "simplicial": dpd.Simplicial(),
    "spatial": dpd.Spatial(),
    "modified": dpd.ModifiedSpatial(),
}
MOST_ROWS = 8


def own_depths(kind, counts):
    """Return the rows' depths on a line in units of `units(kind, n)`, from how many are at or below and at or above."""
    le, ge = counts
    n = le.shape[-1]
    if kind in ("halfspace", "irw"):
        return np.minimum(le, ge)
    if kind == "dual":
        return le * ge
    if kind == "simplicial":  # intervals of two rows that contain x: all but those strictly below or above it
        left, right = n - ge, n - le
        return math.comb(n, 2) - left * (left - 1) // 2 - right * (right - 1) // 2
    signs = np.abs(le - ge)  # the sum of sign(x - X_i) is (n - ge) - (n - le)
    return n - signs if kind == "spatial" else n**2 - signs**2


def unit(kind, n):
    return {"halfspace": n, "irw": n, "spatial": n, "simplicial": max(math.comb(n, 2), 1)}.get(kind, n**2)


def counts_of(tables):
    le = (tables[..., None, :] <= tables[..., :, None]).sum(axis=-1)
    ge = (tables[..., None, :] >= tables[..., :, None]).sum(axis=-1)
    return le, ge


def weak_orders(n):
    """Return all pairs of neighbours of n numbers up to what ranks can tell: the first row goes from a to b.

    The other n - 1 rows are a composition of n - 1 into ties; a and b are at one of their values or between.
    """
    befores, afters = [], []
    for steps in itertools.product((0, 2), repeat=max(n - 2, 0)):
        others = np.cumsum([0, *steps])[: n - 1]
        places = range(-1, (others[-1] if n > 1 else 0) + 2)
        for a, b in itertools.combinations(places, 2):
            befores.append([a, *others])
            afters.append([b, *others])
    return np.array(befores), np.array(afters)


@pytest.fixture(scope="module")
def worst_on_a_line():
    """The largest L1 and squared L2 moves, by depth and number of rows, as fractions of the depth's unit."""
    worst = {}
    for n in range(2, MOST_ROWS + 1):
        before, after = (counts_of(tables) for tables in weak_orders(n))
        for kind in DEPTHS:
            moves = np.abs(own_depths(kind, before) - own_depths(kind, after))
            l1, l2 = moves.sum(axis=1).max(), (moves**2).sum(axis=1).max()
            worst[kind, n] = Fraction(int(l1), unit(kind, n)), Fraction(int(l2), unit(kind, n) ** 2)
    return worst


@pytest.mark.parametrize("kind", DEPTHS)
def test_no_pair_of_neighbours_on_a_line_moves_more(worst_on_a_line, kind):
    for n in range(2, MOST_ROWS + 1):
        bound, (l1, l2) = sample_sensitivity(DEPTHS[kind], n, 1), worst_on_a_line[kind, n]
        assert l1 <= bound.l1 and l2 <= bound.l2_squared
        if kind in ("halfspace", "irw", "dual"):
            assert l1 == bound.l1 == Fraction(2 * (n - 1), n) and l2 == bound.l2_squared == Fraction(n - 1, n)
        elif n > 2:  # within a factor of the bound; a bound of half the size fails
            assert l1 > bound.l1 / 2 and l2 > bound.l2_squared / 2 ** (1 if kind != "modified" else 2)


def test_printed_l1_and_l2_without_ties_are_exceeded(worst_on_a_line):
    # Without the replaced row's own move the others alone would give (n - 1)/n and sqrt(n - 1)/n.
    for n in range(3, MOST_ROWS + 1):
        l1, l2 = worst_on_a_line["halfspace", n]
        assert l1 > Fraction(n - 1, n) and l2 > Fraction(n - 1, n**2)


@pytest.mark.parametrize("kind", DEPTHS)
def test_the_enumeration_computes_the_depths_of_the_package(kind):
    before, _ = weak_orders(5)
    tables = before[:: len(before) // 20]
    for table, counts in zip(tables, own_depths(kind, counts_of(tables)), strict=True):
        rows = table[:, None].astype(float)
        np.testing.assert_allclose(DEPTHS[kind].evaluate(rows, rows), counts / unit(kind, 5), rtol=0, atol=1e-14)


# In the plane

PLANE = DEPTHS | {
    "halfspace over all directions": dpd.Halfspace(directions=None),
    "irw over oblique directions": dpd.IntegratedRankWeighted(directions=dpd.Directions.uniform(2, 5, 1)),
    "halfspace over oblique directions": dpd.Halfspace(directions=dpd.Directions.uniform(2, 5, 1)),
    "smoothed dual": dpd.IntegratedDual(smoothing=3.0),
    "sharply smoothed dual": dpd.IntegratedDual(smoothing=1e6, directions=dpd.Directions.uniform(2, 3, 2)),
}
ALLOWANCE = 1e-9  # rounding of sums of up to 9 differences of depths


def hard_pairs(n, generator):
    """Yield tables of n rows and the place of the replaced row: ties, lines, circles, clusters and random ones."""
    angles = 2 * np.pi * np.arange(n) / n
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    line = np.column_stack([np.arange(n), np.zeros(n)]) - (n - 1) / 2
    two = np.repeat([[-1.0, 0.0], [1.0, 0.0]], [n // 2, n - n // 2], axis=0)
    corners = generator.integers(-1, 2, (12, n, 2)).astype(float)
    normal = generator.normal(size=(6, n, 2))
    places = np.array([[0.0, 0.0], [50.0, 0.0], [-50.0, 1.0], [1.0, 0.0], [0.5, 0.5], [0.0, 1e3]])
    for others in (np.zeros((n, 2)), circle, line, two, *corners, *normal):
        for a, b in itertools.combinations(places, 2):
            before, after = others.copy(), others.copy()
            before[0], after[0] = a, b
            yield before, after


@pytest.mark.parametrize("n", [2, 3, 4, 9])
@pytest.mark.parametrize("kind", PLANE)
def test_no_hard_pair_in_the_plane_moves_more(kind, n):
    depth = PLANE[kind]
    bound = sample_sensitivity(depth, n, 2)
    worst1 = worst2 = 0.0
    for before, after in hard_pairs(n, np.random.default_rng(3)):
        moves = np.abs(depth.evaluate(before, before) - depth.evaluate(after, after))
        worst1, worst2 = max(worst1, moves.sum()), max(worst2, (moves**2).sum())
    assert worst1 <= float(bound.l1) + ALLOWANCE and worst2 <= float(bound.l2_squared) + ALLOWANCE
    if "halfspace" in kind or "irw" in kind or kind == "dual":  # reached: all rows equal, one moves far away
        assert worst1 >= float(bound.l1) - ALLOWANCE and worst2 >= float(bound.l2_squared) - ALLOWANCE
    elif n == 9:
        assert worst1 > float(bound.l1) / 3


def test_smoothed_bound_by_search_on_a_line():
    """Random searches on a line, in units of 1 / smoothing, beside the transitive order, which is the worst."""
    depth = dpd.IntegratedDual(smoothing=1.0)
    generator = np.random.default_rng(5)
    for n in (2, 3, 4, 7):
        bound, worst = sample_sensitivity(depth, n, 1), 0.0
        for trial in range(150):
            rows = 40 * np.arange(n, dtype=float) if trial == 0 else 40 * generator.normal(size=n)
            other = rows.copy()
            other[0 if trial else n // 2] = (1e3, -1e3)[trial % 2]
            moves = np.abs(np.subtract(*(depth.evaluate(z[:, None], z[:, None]) for z in (rows, other))))
            assert moves.sum() <= float(bound.l1) + ALLOWANCE
            assert (moves**2).sum() <= float(bound.l2_squared) + ALLOWANCE
            worst = max(worst, moves.sum())
        assert worst > 0.4 * float(bound.l1)


@pytest.mark.parametrize("n", range(2, 12))
def test_smoothed_bound_is_the_sum_over_a_transitive_tournament(n):
    m = n - 2
    each = [abs(m - 2 * score) or Fraction(1, 4) for score in range(m + 1)]
    own = Fraction((n - 1) ** 2, 4 * n**2)
    bound = sample_sensitivity(dpd.IntegratedDual(smoothing=2.0), n, 3)
    assert bound.l1 == own + Fraction(sum(each), n**2)
    assert bound.l2_squared == own**2 + Fraction(sum(x * x for x in each), n**4)


# Points, units, refusals


@pytest.mark.parametrize("kind", PLANE)
def test_point_sensitivity_is_the_depths_own_without_rounding(kind):
    for n in (0, 1, 2, 3, 7, 1000):
        exact = point_sensitivity(PLANE[kind], n, 2)
        assert float(exact) == pytest.approx(PLANE[kind].sensitivity(n, 2), rel=1e-15)
        assert values_sensitivity(PLANE[kind], n, 2, 3).l1 == 3 * exact
        assert values_sensitivity(PLANE[kind], n, 2, 3).l2_squared == 3 * exact**2


@pytest.mark.parametrize("kind", [kind for kind in PLANE if count_unit(PLANE[kind], 5, 2)])
def test_counted_depths_are_integers_over_their_unit(kind):
    generator = np.random.default_rng(2)
    for n in (0, 1, 2, 5, 40):
        rows = generator.integers(-3, 4, (n, 2)).astype(float)
        counts = PLANE[kind].evaluate(np.array([[0.0, 0.0], [1.0, 2.0]]), rows) * count_unit(PLANE[kind], n, 2)
        np.testing.assert_allclose(counts, np.rint(counts), rtol=0, atol=1e-9)
        for bound in (point_sensitivity(PLANE[kind], n, 2), sample_sensitivity(PLANE[kind], n, 2).l1):
            assert (bound * count_unit(PLANE[kind], n, 2)).denominator == 1


def test_real_depths_have_no_unit_and_lone_rows_do_not_move():
    assert count_unit(dpd.Spatial(), 5, 2) is None and count_unit(dpd.IntegratedDual(smoothing=1.0), 5, 2) is None
    for depth in PLANE.values():
        assert sample_sensitivity(depth, 1, 2).l1 == 0 == sample_sensitivity(depth, 0, 2).l2_squared


def test_depths_without_a_proof_are_refused():
    class Bolder(dpd.Halfspace):
        pass

    for depth in (dpd.Projection(), Bolder(), dpd.CustomObjective(lambda theta, X: theta.sum() + X.sum(), 1.0)):
        for ask in (lambda depth=depth: sample_sensitivity(depth, 5, 2), lambda depth=depth: count_unit(depth, 5, 2)):
            with pytest.raises(TypeError, match="proved sensitivity"):
                ask()
