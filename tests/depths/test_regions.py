"""Depth regions in the plane against all crossings of lines through rows, in rational arithmetic; and medians."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from brute_force_halfspace import as_fractions, count_in_plane
from reference_values import REAL, rows_of

from pymc_dpdepth.depths import DEPTHS, CustomObjective, Directions, Halfspace, Projection, Simplicial
from pymc_dpdepth.depths.regions import centroid

ALL = Halfspace(directions=None)


def crossings(rows):
    """Return all crossings of two lines through rows, and the rows: every vertex of a region is one of these."""
    rows = [tuple(row) for row in rows]
    lines = [(a, (b[0] - a[0], b[1] - a[1])) for a, b in itertools.combinations(sorted(set(rows)), 2)]
    points = set(rows)
    for (a, u), (b, v) in itertools.combinations(lines, 2):
        cross = u[0] * v[1] - u[1] * v[0]
        if cross:
            ratio = Fraction((b[0] - a[0]) * v[1] - (b[1] - a[1]) * v[0]) / cross
            points.add((a[0] + ratio * u[0], a[1] + ratio * u[1]))
    return points


def depth_of(point, rows):
    """Return the exact count of a rational point among integer rows: both times the denominator."""
    denominator = Fraction(point[0]).denominator * Fraction(point[1]).denominator
    # Python integers where int64 might overflow
    kind = np.int64 if denominator < 10**6 else object
    point = np.array([int(x * denominator) for x in point], dtype=kind)
    return count_in_plane(point, np.array(rows, dtype=kind) * denominator)


def hull(points):
    """Return the corners of the convex hull, anticlockwise from the least point."""
    points = sorted(points)
    chains = []
    for ordered in (points, points[::-1]):
        chain = []
        for p in ordered:
            while len(chain) > 1 and (
                (chain[-1][0] - chain[-2][0]) * (p[1] - chain[-2][1])
                <= (chain[-1][1] - chain[-2][1]) * (p[0] - chain[-2][0])
            ):
                chain.pop()
            chain.append(p)
        chains.append(chain)
    return points if len(points) < 2 else chains[0][:-1] + chains[1][:-1]


def small_table(generator):
    n, width = generator.integers(1, 8), generator.choice([1, 2, 4, 30])
    rows = generator.integers(-width, width + 1, size=(n, 2))
    kind = generator.integers(6)
    if kind == 0:
        rows = np.outer(rows[:, 0], generator.integers(-2, 3, size=2)) + 1  # a line, or one point
    elif kind == 1:
        rows = np.vstack([rows[: n // 2 + 1], -rows[: n // 2 + 1]])  # a symmetric table: often a deepest point
    elif kind == 2:
        rows = rows[generator.integers(n, size=n)]
    return rows


def test_every_region_is_the_hull_of_the_crossings_that_are_deep_enough():
    generator = np.random.default_rng(1)
    seen = set()
    for _ in range(120):
        rows = small_table(generator)
        depths = {point: depth_of(point, rows) for point in crossings(rows.tolist())}
        regions = ALL.regions(rows)
        assert regions.n == len(rows)
        assert regions.levels == tuple(range(1, max(depths.values()) + 1))
        for level in regions.levels:
            expected = hull(point for point, depth in depths.items() if depth >= level)
            assert regions.exact_polygon(level) == expected
            assert regions.polygon(level).tolist() == [[float(x) for x in point] for point in expected]
            seen.add(min(len(expected), 5))
    assert seen == {1, 2, 3, 4, 5}


def test_regions_where_the_last_bit_decides():
    generator = np.random.default_rng(8)
    for _ in range(25):
        start, step = generator.normal(size=(2, 2))
        rows = start + np.round(generator.normal(size=(5, 1)), 1) * step
        rows[:2] = np.nextafter(rows[:2], generator.choice([-9.0, 9.0], size=(2, 2)))
        rows[2] = start + generator.integers(3) * np.array([step[1], -step[0]])
        exact = as_fractions(rows)
        depths = {point: count_in_plane(np.array(point), exact) for point in crossings(exact.tolist())}
        regions = ALL.regions(rows)
        assert regions.levels == tuple(range(1, max(depths.values()) + 1))
        for level in regions.levels:
            # The first vertex is the least one after rounding.
            expected, found = (
                hull(point for point, depth in depths.items() if depth >= level),
                regions.exact_polygon(level),
            )
            turn = expected.index(found[0])
            expected = expected[turn:] + expected[:turn]
            assert found == expected
            spacings = np.spacing(np.abs(rows).max(axis=0))
            errors = np.abs(regions.polygon(level) - [[float(x) for x in point] for point in expected])
            assert (errors <= spacings).all()


@pytest.mark.parametrize("name", REAL)
def test_real_tables(name):
    rows, exact = rows_of(name), REAL[name]["exact"]
    regions = ALL.regions(rows)
    assert regions.levels == tuple(range(1, exact["Tukey_max_depth_count"] + 1))
    deepest = {tuple(map(Fraction, vertex)) for vertex in exact["Tukey_median_region_vertices"]}
    assert set(regions.exact_polygon(regions.levels[-1])) == deepest
    assert {tuple(vertex) for vertex in regions.deepest.tolist()} == {(float(x), float(y)) for x, y in deepest}
    assert ALL.median(rows) == pytest.approx(exact["Tukey_median_centroid"], rel=1e-15)
    (x, y), area = regions.deepest[0], 0.0
    for a, b in itertools.pairwise(regions.deepest[1:]):
        area += ((a[0] - x) * (b[1] - y) - (a[1] - y) * (b[0] - x)) / 2
    assert area == pytest.approx(exact["Tukey_region_area"], rel=1e-12)


def test_regions_of_many_rows_are_tight_and_nested():
    # Vertices are k deep, and each edge has fewer than k rows strictly outside: no point beyond it is k deep.
    rows = np.random.default_rng(2).standard_normal((40, 2))
    rows[20:] = np.round(rows[20:], 1)
    regions = ALL.regions(rows)
    exact_rows = as_fractions(rows)
    for level in (1, 8, regions.levels[-1]):
        polygon = regions.exact_polygon(level)
        assert len(polygon) > 2
        for a, b in zip(polygon, polygon[1:] + polygon[:1], strict=True):
            assert count_in_plane(np.array(a), exact_rows) >= level
            outside = sum((b[0] - a[0]) * (y - a[1]) < (b[1] - a[1]) * (x - a[0]) for x, y in exact_rows)
            assert outside < level
    assert 40 / 3 <= regions.levels[-1] <= 21
    inside = np.mean(regions.deepest, axis=0)
    assert ALL.evaluate([inside], rows)[0] >= regions.levels[-1] / 40


def test_vertices_are_rounded_once():
    rows = np.random.default_rng(3).standard_normal((40, 2)) + 1e6
    regions = ALL.regions(rows)
    for level in regions.levels:
        for found, exact in zip(regions.polygon(level), regions.exact_polygon(level), strict=True):
            assert (
                max(abs(Fraction(x) - y) / Fraction(np.spacing(x)) for x, y in zip(found, exact, strict=True)) <= 0.51
            )


@pytest.mark.parametrize("scale", [2.0**-1060, 2.0**-500, 1.0, 2.0**500, 2.0**1018])
def test_powers_of_two_scale_the_regions(scale):
    rows = np.random.default_rng(4).integers(-7, 8, size=(12, 2)).astype(float)
    plain, scaled = ALL.regions(rows), ALL.regions(rows * scale)
    assert scaled.levels == plain.levels
    for level in plain.levels:
        expected = [(x * Fraction(scale), y * Fraction(scale)) for x, y in plain.exact_polygon(level)]
        assert scaled.exact_polygon(level) == expected
        assert scaled.polygon(level).tolist() == [[float(x), float(y)] for x, y in expected]
    wide = ALL.regions(rows * [scale, 1.0])
    assert [len(polygon) for polygon in wide.vertices] == [len(polygon) for polygon in plain.vertices]


def test_chosen_levels_are_those_of_all_levels():
    rows = np.random.default_rng(5).standard_normal((50, 2))
    regions, chosen = ALL.regions(rows), ALL.regions(rows, levels=[20, 3, 3, 49])
    assert chosen.levels == (3, 20, 49)
    for level in (3, 20):
        assert np.array_equal(chosen.polygon(level), regions.polygon(level))
    assert chosen.polygon(49).shape == (0, 2)
    assert chosen.exact_polygon(49) == []
    assert np.array_equal(chosen.deepest, regions.polygon(20))
    assert [depth for depth, _ in chosen.contours] == [3 / 50, 20 / 50]
    for _, contour in chosen.contours:
        assert np.array_equal(contour[0], contour[-1])
    with pytest.raises(ValueError, match=r"got 4. Ask for it with regions\(X, levels"):
        chosen.polygon(4)


def test_degenerate_tables():
    point = ALL.regions([[1.0, 2.0]] * 3)
    assert point.levels == (1, 2, 3)
    assert [polygon.tolist() for polygon in point.vertices] == [[[1.0, 2.0]]] * 3
    segment = ALL.regions([[0.0, 5], [1, 5], [4, 5], [9, 5]])
    assert [polygon.tolist() for polygon in segment.vertices] == [[[0.0, 5.0], [9.0, 5.0]], [[1.0, 5.0], [4.0, 5.0]]]
    cross = ALL.regions([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]])
    assert [polygon.tolist() for polygon in cross.vertices][1:] == [[[0.0, 0.0]]] * 2
    assert ALL.regions([[-0.0, 0.0], [0.0, -0.0]]).levels == (1, 2)


def test_medians_of_known_tables():
    assert ALL.median([[0.0, 5], [1, 5], [4, 5], [9, 5]]).tolist() == [2.5, 5.0]
    assert ALL.median([[3.0, 4.0]]).tolist() == [3.0, 4.0]
    assert ALL.median([[3.0, 4.0], [5.0, 8.0]]).tolist() == [4.0, 6.0]
    assert ALL.median([[0, 0], [3, 0], [0, 3]]).tolist() == [1.0, 1.0]
    assert ALL.median([[0, 0], [2, 0], [2, 2], [0, 2]]).tolist() == [1.0, 1.0]
    assert ALL.median([[1.0, 1.0]] * 5 + [[9.0, 0.0], [0.0, 9.0]]).tolist() == [1.0, 1.0]
    # Two pairs of crossing diagonals: the deepest region of a convex quadrilateral is where they cross.
    assert ALL.median([[0, 0], [4, 0], [5, 3], [0, 2]]) == pytest.approx([20 / 11, 12 / 11], rel=1e-15)
    assert ALL.median([[1.0], [7.0], [2.0], [9.0]]).tolist() == [4.5]
    assert ALL.median([[1.7e308], [1.7e308]]).tolist() == [1.7e308]


def test_median_along_axes_is_coordinatewise():
    rows = np.random.default_rng(6).integers(-9, 10, size=(20, 3)).astype(float)
    for depth in (Halfspace("axes"), Halfspace(Directions.axes(3)), Halfspace(-2 * np.eye(3)[[2, 0, 1]])):
        assert depth.median(rows).tolist() == np.median(rows, axis=0).tolist()
    assert Halfspace("axes").median(rows[:19]).tolist() == np.median(rows[:19], axis=0).tolist()
    assert Halfspace([[1.0]]).median([[1.0], [4.0]]).tolist() == [2.5]


def test_the_median_is_as_deep_as_any_row():
    generator = np.random.default_rng(7)
    for _ in range(20):
        rows = generator.integers(-20, 21, size=(15, 2))
        found = centroid(ALL.regions(rows).exact_polygon(ALL.regions(rows).levels[-1]))
        assert ALL.median(rows).tolist() == [float(x) for x in found]
        assert (
            depth_of(found, rows) == len(ALL.regions(rows).levels) >= max(depth_of(row, rows) for row in rows.tolist())
        )


def test_centroids():
    one, half = Fraction(1), Fraction(1, 2)
    assert centroid([(one, half)]) == (1, half)
    assert centroid([(0 * one, half), (one, one)]) == (half, Fraction(3, 4))
    # An L-free trapezoid, as a square and a triangle: (4 * (1, 1) + 2 * (8/3, 2/3)) / 6
    trapezoid = [(Fraction(x), Fraction(y)) for x, y in ((0, 0), (4, 0), (2, 2), (0, 2))]
    assert centroid(trapezoid) == ((4 + 2 * Fraction(8, 3)) / 6, (4 + 2 * Fraction(2, 3)) / 6)


def test_nothing_private_in_the_repr():
    regions = ALL.regions([[0, 0], [2, 0], [2, 2], [0, 2]])
    assert repr(regions) == "DepthRegions(n=4)"
    assert set(map(repr, regions._exact)) == {"_Crossings()"}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Halfspace().regions(np.eye(2)), TypeError, r"Use Halfspace\(directions=None\)"),
        (
            lambda: ALL.regions(np.eye(3)),
            ValueError,
            r"two columns and at least one row for regions; got shape \(3, 3\)",
        ),
        (lambda: ALL.regions(np.empty((0, 2))), ValueError, "at least one row"),
        (lambda: ALL.regions([[0.0, np.nan]]), ValueError, r"X must be finite.*\[1\]"),
        (lambda: ALL.regions(np.eye(2), levels=[0]), ValueError, "between 1 and n = 2, got 0"),
        (lambda: ALL.regions(np.eye(2), levels=[3]), ValueError, "between 1 and n = 2, got 3"),
        (lambda: ALL.regions(np.eye(2), levels=[0.5]), TypeError, "expected an integer"),
        (lambda: ALL.regions(np.eye(2), levels=1), TypeError, r"a list of levels, got int. Use levels=\[k\]"),
        (lambda: ALL.regions(np.eye(2), levels=[]), ValueError, "at least one level"),
        (lambda: ALL.regions(np.eye(2)).polygon("1"), TypeError, "expected an integer"),
        (lambda: ALL.median(np.eye(3)), TypeError, "all directions is computed for two columns; got 3"),
        (lambda: ALL.median(np.eye(4)), ValueError, r"Directions.balanced\(4, m\)"),
        (lambda: ALL.median(np.empty((0, 2))), ValueError, "at least one row"),
        (lambda: Projection().median(np.eye(2)), TypeError, "use a depth that has one: .*halfspace"),
        (lambda: Simplicial().median(np.eye(2)), TypeError, r"no median\(X\) of the depth 'simplicial'"),
    ],
)
def test_misuse_is_refused_with_the_cure(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_every_depth_has_a_median_or_names_those_that_have_one():
    able = []
    for name, depth in DEPTHS.items():
        try:
            assert depth().median(np.eye(2)).shape == (2,)
            able.append(name)
        except TypeError as error:
            assert "use a depth that has one" in str(error)
    assert "halfspace" in able
    with pytest.raises(TypeError, match=f"has one: {', '.join(sorted(able))}."):
        CustomObjective(lambda theta, X: 0.0, 1.0).median(np.eye(2))
