"""Crossings of lines through rows, and regions of rows nearly on a line, in rational numbers."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from test_regions import hull

from pymc_dpdepth.depths import Halfspace
from pymc_dpdepth.depths.predicates import SAFE
from pymc_dpdepth.depths.regions import centroid
from pymc_dpdepth.depths.regions_kernels import _deepest_cut
from pymc_dpdepth.depths.row_lines import write_crossing

ALL = Halfspace(directions=None)


def side(a, b, p):
    return (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0])


def clip(polygon, a, b):
    """Return the part of a convex polygon, maybe of one or two corners, on the left of the line from a to b."""
    kept, sides = [], [side(a, b, p) for p in polygon]
    for i, (p, s) in enumerate(zip(polygon, sides, strict=True)):
        q, t = polygon[i - 1], sides[i - 1]
        if s * t < 0:
            kept.append((p[0] + s / (s - t) * (q[0] - p[0]), p[1] + s / (s - t) * (q[1] - p[1])))
        if s >= 0:
            kept.append(p)
    return hull(set(kept))


def regions_of(rows):
    """Return the corners of all regions, each cut from the one before, all lines through two rows in rational numbers.

    A point beyond a line with fewer than k rows beyond it is less than k deep; those lines bound the region of level k.
    Where all rows are on one line, lines across it do.
    """
    rows = [(Fraction(x), Fraction(y)) for x, y in rows.tolist()]
    pairs, cuts = list(itertools.permutations(sorted(set(rows)), 2)), {}
    if all(side(*pair, p) == 0 for pair in pairs[:1] for p in rows):
        pairs += [(a, (a[0] - b[1] + a[1], a[1] + b[0] - a[0])) for a, b in pairs]
    for a, b in pairs:
        cuts.setdefault(sum(side(a, b, p) < 0 for p in rows), []).append((a, b))
    (left, bottom), (right, top) = map(min, zip(*rows, strict=True)), map(max, zip(*rows, strict=True))
    region, regions = hull({(left, bottom), (right, bottom), (right, top), (left, top)}), []
    for outside in range(len(rows)):
        for a, b in cuts.get(outside, []):
            region = clip(region, a, b)
        if not region:
            break
        regions.append(region)
    return regions


def assert_regions_are_right(rows):
    rows = np.asarray(rows, dtype=float)
    found, expected = ALL.regions(rows), regions_of(rows)
    assert found.levels == tuple(range(1, len(expected) + 1))
    for level, polygon in zip(found.levels, expected, strict=True):
        exact = found.exact_polygon(level)
        turn = exact.index(polygon[0])  # the first one is the least after rounding
        assert exact[turn:] + exact[:turn] == polygon
        # `regions` rounds what is known to 2^-60 of itself: by a half and 2^-60 2^53 units in the last place.
        for x, y in zip(found.polygon(level).ravel(), itertools.chain(*exact), strict=True):
            assert abs(Fraction(x) - y) <= Fraction(0.51) * Fraction(np.spacing(abs(x)))
    assert ALL.median(rows).tolist() == [float(x) for x in centroid(expected[-1])]


def decimal_table(generator):
    """Return decimals that are nearly on a line: x on a grid of 0.1, y = s x + c to two digits, a fifth moved off."""
    n = generator.integers(5, 30)
    x = np.round(0.1 * generator.integers(-20, 21, size=n) + generator.choice([0, 100]), 1)
    y = np.round(generator.choice([1, 1.1, -0.3, 3]) * x + generator.choice([0, 0.1, 0.7]), 2)
    moved = generator.random(n) < 0.2
    y[moved] = np.round(y[moved] + generator.choice([0.1, 0.01, 1, -2], size=moved.sum()), 2)
    return np.column_stack([x, y])


def test_regions_of_decimal_rows_near_a_line():
    generator = np.random.default_rng(1)
    for _ in range(40):
        assert_regions_are_right(decimal_table(generator))


@pytest.mark.parametrize(
    "x",
    [
        [1.9, -0.8, 1.5, -1.1, -1.4, 1.8, 1.1, 0.7],
        [-0.7, -1.4, 1.5, -2.0, 1.7, -1.8, 1.2, 0.7],
    ],
)
def test_rows_a_tenth_above_the_diagonal(x):
    """Once a hang and a division by zero: in doubles x + 0.1 is on no line; the last row is far off it."""
    assert_regions_are_right([[a, round(a + 0.1, 1)] for a in x[:-1]] + [[x[-1], 1.6]])


@pytest.mark.parametrize(
    "rows",
    [
        [[0, 99.3], [0.1 + 0.2, 1.6], [0.1, 1.0], [-0.1, 0.4], [-0.1 - 0.2, -0.2], [0, 0.7]],
        [[99.6, 109.66], [99.4, 109.44], [99.7, 109.77], [99.8, 109.88], [100.7, 110.87]],
        np.array([[3, 3], [0, 3], [2, 0], [-2, 0], [0, -3], [-3, -3]]) * 2.0**-52 + np.array([[1], [-1]]).repeat(3, 0),
        # Steps of 1e307 between columns of size 1: the ratio of a crossing is below 2^-1022.
        [[-1e307, 1 - 6 * 2**-53], [0, 1 - 2 * 2**-53], [3, 1 - 4 * 2**-53], [-1e307, 1 + 2**-51], [0, 1 + 3 * 2**-52]],
    ],
)
def test_tables_once_wrong(rows):
    assert_regions_are_right(rows)


def crossing_of(a, b, p, q):
    """Return the crossing of the lines a b and p q in rational numbers, None where they are parallel."""
    a, b, p, q = ([Fraction(float(x)) for x in point] for point in (a, b, p, q))
    bottom = (b[0] - a[0]) * (q[1] - p[1]) - (b[1] - a[1]) * (q[0] - p[0])
    if bottom == 0:
        return None
    ratio = ((p[0] - a[0]) * (q[1] - p[1]) - (p[1] - a[1]) * (q[0] - p[0])) / bottom
    return [a[j] + ratio * (b[j] - a[j]) for j in range(2)]


def test_crossings_are_as_near_as_their_bounds_say():
    generator = np.random.default_rng(2)
    ends, known, exact = np.array([[0, 1], [2, 3]], dtype=np.int32), 0, 0
    for trial in range(4000):
        points = np.round(generator.normal(size=(4, 2)), generator.integers(0, 17))
        if trial % 4 > 0:  # on a line, but for the last bits
            points[:, 1] = np.round(points[:, 0] * 1.1 + 0.7, 2)
            points = np.nextafter(points, generator.choice([-9.0, 9.0, 0.0], size=(4, 2)))
        if trial % 4 > 1:
            points *= 2.0 ** generator.integers(-500, 1020, size=2).astype(float)  # columns of extreme sizes
        if trial % 4 > 2:
            points[generator.integers(4)] *= 2.0 ** float(generator.integers(-1000, 0))  # a row near the origin
        right = crossing_of(*points)
        if right is None:
            continue
        coords, lines = np.empty((1, 4)), np.empty((1, 3), dtype=np.int32)
        write_crossing(0, 2, np.ascontiguousarray(points.T), ends, 0, coords, lines)
        x, y, error, before_rounding = coords[0].tolist()
        exact += error == 0.0
        if error < np.inf:
            known += 1
            for found, wanted in ((x, right[0]), (y, right[1])):
                assert abs(Fraction(found) - wanted) <= Fraction(error)
                # Rounded once: by 2^-53 of itself, the double's half spacing.
                assert abs(Fraction(found) - wanted) <= Fraction(before_rounding) + abs(wanted) / 2**52 + Fraction(SAFE)
    assert exact > 20 and known > 2000


def test_edges_that_contradict_each_other_raise_an_error():
    # Two nodes whose edges both point down: no vertex is farthest to the right of a line that points right.
    points = np.array([[0.0, 1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0, -1.0]])
    ends = np.array([[0, 1], [2, 0], [0, 4]], dtype=np.int32)
    lines = np.array([[0, 0, 2], [0, 0, 4]], dtype=np.int32)
    links = np.array([[1, 1], [0, 0]], dtype=np.int32)
    for line in (0, 1):  # to the right, walking on; to the left, walking back
        with pytest.raises(RuntimeError, match="Internal error: the signs"):
            _deepest_cut(line, 0, 2, points, ends, lines, links)
