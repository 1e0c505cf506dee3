"""Medians against known points, first-order conditions, and searches that would find anything better."""

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from pymc_dpdepth.depths import Directions, IntegratedDual, IntegratedRankWeighted, ModifiedSpatial, Spatial
from pymc_dpdepth.depths.medians import coordinatewise_median, smoothed_dual_median, spatial_median

REFERENCE = json.loads((Path(__file__).parent / "median_reference.json").read_text())
EPS = np.finfo(float).eps
TABLES = 600


def exact_total(point, rows):
    """Return the sum of distances, each rounded once or twice from rational squares."""
    squares = [
        sum((Fraction(float(a)) - Fraction(float(b))) ** 2 for a, b in zip(point, row, strict=True)) for row in rows
    ]
    return math.fsum(math.sqrt(square) for square in squares)


def excess_force(point, rows):
    """Return |sum of unit vectors| less the number of rows at the point: at most 0 at a spatial median, if exact."""
    differences = point - np.asarray(rows, dtype=float)
    lengths = np.hypot.reduce(differences, axis=1)
    units = differences[lengths > 0] / lengths[lengths > 0, None]
    return np.linalg.norm(units.sum(axis=0)) - (lengths == 0).sum()


def tables(seed, cases=TABLES):
    """Yield tables with ties, duplicates, symmetric and collinear rows, of many scales."""
    generator = np.random.default_rng(seed)
    for case in range(cases):
        n, d = int(generator.integers(1, 10)), int(generator.integers(1, 5))
        kind = case % 6
        rows = generator.integers(-3, 4, size=(n, d)).astype(float) if kind < 3 else generator.normal(size=(n, d))
        if kind == 1:
            rows[n // 2 :] = rows[0]
        elif kind == 2:
            rows = np.concatenate([rows, -rows]) + 5.0
        elif kind == 3:
            rows = np.outer(generator.normal(size=n), generator.normal(size=d)) + 1000.0
        elif kind == 4:
            rows *= 10.0 ** generator.integers(-6, 7, size=(n, 1))
        yield generator, rows


# The spatial median


@pytest.mark.parametrize("table", REFERENCE["tables"], ids=lambda table: table["name"])
def test_spatial_median_of_real_tables(table):
    found = Spatial().median(table["rows"])
    np.testing.assert_allclose(found, table["spatial_median"], rtol=1e-9)
    assert exact_total(found, table["rows"]) == pytest.approx(table["least_sum_of_distances"], rel=1e-14)
    np.testing.assert_array_equal(ModifiedSpatial().median(table["rows"]), found)


@pytest.mark.parametrize(
    ("rows", "median"),
    [
        ([[0, 0], [1, 0], [-2, 1]], [0, 0]),  # an angle of more than 120 degrees: that corner
        ([[1, 0], [-2, 1], [0, 0]], [0, 0]),
        ([[0, 0], [4, 0], [5, 3], [0, 2]], [20 / 11, 12 / 11]),  # convex quadrilateral: where the diagonals cross
        ([[0, 0], [6, 0], [3, 1], [3, 9]], [3, 1]),  # a row inside the triangle of the others
        ([[0, 0], [2, 0], [2, 2], [0, 2]], [1, 1]),
        ([[0, 0], [1, 2], [2, 4], [3, 6], [4, 8]], [2, 4]),
        ([[0, 0], [1, 2], [2, 4], [9, 18]], [1.5, 3]),  # on a line, even: the middle of the middle two
        ([[0, 0], [0, 0], [1, 1], [5, 0]], [0, 0]),  # two of four rows in one place
        ([[1, 1], [1, 1], [1, 1]], [1, 1]),
        ([[1, 2], [4, 8]], [2.5, 5]),
        ([[7, -1, 2]], [7, -1, 2]),
        ([[3], [1], [10]], [3]),
        ([[3], [1], [10], [4]], [3.5]),
        ([[0, 5], [1, 5], [7, 5]], [1, 5]),  # a constant column
    ],
)
def test_spatial_median_of_known_figures(rows, median):
    for scale in (1.0, 2.0**40, 2.0**-40, 2.0**900, 2.0**-900):
        found = Spatial().median(np.array(rows) * scale) / scale
        np.testing.assert_allclose(found, median, rtol=0, atol=4 * EPS * np.abs(rows).max())
    shift = np.array([2.0**20, -(2.0**21), 12345.0])[: len(median)]
    np.testing.assert_allclose(Spatial().median(rows + shift), median + shift, rtol=4 * EPS)


def test_fermat_point_of_an_equilateral_triangle_and_of_nearly_120_degrees():
    triangle = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, math.sqrt(0.75)]])
    np.testing.assert_allclose(Spatial().median(triangle), triangle.mean(axis=0), rtol=0, atol=4 * EPS)
    for excess, at_corner in ((1e-3, True), (-1e-3, False)):
        angle = math.radians(60) + excess / 2
        rows = np.array([[0.0, 0.0], [math.sin(angle), math.cos(angle)], [-math.sin(angle), math.cos(angle)]])
        found = Spatial().median(rows)
        # The point below 120 degrees sees every side under 120 degrees: two rows at height cos, half-width sin.
        height = 0.0 if at_corner else math.cos(angle) - math.sin(angle) / math.sqrt(3)
        np.testing.assert_allclose(found, [0.0, height], rtol=0, atol=1e-12)
        assert (found == 0.0).all() == at_corner


def test_spatial_median_meets_the_first_order_condition_and_nothing_near_is_better():
    for generator, rows in tables(seed=1):
        found = Spatial().median(rows)
        least = exact_total(found, rows)
        size = np.abs(rows - found).max()
        for step in (1e-1, 1e-3, 1e-5, 1e-7):
            for near in found + step * size * generator.normal(size=(2, rows.shape[1])):
                assert exact_total(near, rows) >= least * (1 - 8 * EPS)
        for row in rows:
            assert exact_total(row, rows) >= least * (1 - 8 * EPS)


def test_spatial_median_is_exact_to_rounding_on_integers():
    # Where the force is not 0 to n roundings it is because x itself is rounded: the force's derivative is the sum of
    # 1 / r_i, and the nearest of these rows is farther than 1e-3.
    found = 0
    for _, rows in tables(seed=2):
        if (rows == np.rint(rows)).all():
            median = Spatial().median(rows)
            assert excess_force(median, rows) <= 1e3 * len(rows) * EPS * np.abs(rows).max()
            found += 1
    assert found > TABLES // 3


def test_symmetric_rows_and_rows_on_lines_have_the_middle():
    generator = np.random.default_rng(3)
    for d in (2, 3, 7):
        half = generator.integers(-50, 51, size=(40, d))
        np.testing.assert_array_equal(Spatial().median(np.concatenate([half, 20 - half])), np.full(d, 10.0))
        for n in (1, 2, 7, 8):
            places, direction = np.sort(generator.integers(-50, 51, size=n)), generator.integers(-3, 4, size=d)
            middle = np.median(places) * direction + 1
            np.testing.assert_array_equal(Spatial().median(np.outer(places, direction) + 1), middle)


def test_spatial_median_of_many_rows():
    generator = np.random.default_rng(4)
    for n, d in ((20_000, 3), (500, 60)):
        rows = generator.standard_cauchy(size=(n, d))
        found = Spatial().median(rows)
        assert Spatial().evaluate([found], rows)[0] > 1 - 1e-13
        # Rotation and reflection take the median along.
        turn = np.linalg.qr(generator.normal(size=(d, d)))[0]
        np.testing.assert_allclose(Spatial().median(rows @ turn), found @ turn, rtol=0, atol=1e-11)


def test_spatial_median_at_the_ends_of_the_doubles():
    largest, smallest = np.finfo(float).max, 5e-324
    corners = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
    for scale in (largest, smallest):
        np.testing.assert_array_equal(Spatial().median(corners * scale), [0.0, 0.0])
    rows = np.array([[0.0, 0.0], [1e-310, 0.0], [0.0, 1e-310], [1.0, 1.0], [1e300, -1e300]])
    assert np.isfinite(Spatial().median(rows)).all()
    rows = np.array([[0.0, 0.0], [1e-310, 0.0], [0.0, 1e-310], [2e-310, 1e-310], [1.0, 1.0], [-1.0, 0.5]])
    assert np.abs(Spatial().median(rows)).max() <= 2e-310


@pytest.mark.parametrize("depth", [Spatial(), ModifiedSpatial()], ids=lambda depth: depth.name)
def test_the_spatial_median_is_deepest_off_the_rows(depth):
    for generator, rows in tables(seed=5, cases=60):
        points = np.concatenate([rows, generator.normal(size=(50, rows.shape[1])) * np.abs(rows).max()])
        if np.isin(depth.median(rows), rows).all():
            continue  # at a row the depth itself is not continuous, and smaller than nearby
        deepest = depth.evaluate([depth.median(rows)], rows)[0]
        assert depth.evaluate(points, rows).max() <= deepest + 1e-12


# The smoothed integrated dual depth


def worst_of_grid(rows, depth, sides):
    """Return how much deeper the deepest point of a grid over the rows, or row, is than the median found."""
    found = depth.median(rows)
    low, high = rows.min(axis=0) - 0.1, rows.max(axis=0) + 0.1
    axes = [np.linspace(a, b, sides) for a, b in zip(low, high, strict=True)]
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, rows.shape[1])
    return depth.evaluate(np.concatenate([grid, rows]), rows).max() - depth.evaluate([found], rows)[0]


@pytest.mark.parametrize("smoothing", [0.1, 3.0, 100.0, 3000.0])
@pytest.mark.parametrize(("d", "m"), [(1, 1), (2, 1), (2, 2), (2, 3), (2, 7), (2, 25)])
def test_no_point_of_a_grid_is_deeper(d, m, smoothing):
    generator = np.random.default_rng([d, m, int(smoothing * 10)])
    directions = Directions.axes(d) if m == d else Directions.uniform(d, m, seed=m)
    depth = IntegratedDual(smoothing=smoothing, directions=directions)
    for case in range(4):
        n = int(generator.integers(1, 25))
        rows = generator.normal(size=(n, d)) if case % 2 else generator.integers(-3, 4, size=(n, d)).astype(float)
        assert worst_of_grid(rows, depth, 1001 if d == 1 else 61) <= 1e-9
        _, gradient = depth.value_and_gradient([depth.median(rows)], rows)
        # Slopes are at most s / 4 in each direction.
        assert np.abs(gradient).max() <= 1e-9 * max(smoothing, 1.0)


@pytest.mark.parametrize("seed", [54, 225, 234, 383])
def test_sharp_depths_that_need_several_starts(seed):
    # Found among 800 tables: a search from the coordinatewise median alone ends on a lower plateau, and so do all
    # searches for seeds 225 and 234 where steps along sums of directions are left out.
    generator = np.random.default_rng(seed)
    depth = IntegratedDual(3000.0, Directions.uniform(2, 7, seed=seed))
    integers = generator.integers(-3, 4, size=(int(generator.integers(1, 25)), 2)).astype(float)
    assert worst_of_grid(integers, depth, 61) <= 1e-9
    assert worst_of_grid(generator.normal(size=(int(generator.integers(1, 25)), 2)), depth, 61) <= 1e-9


@pytest.mark.parametrize("kind", ["axes", "orthonormal"])
def test_the_largest_depth_is_reached_where_directions_are_orthogonal(kind):
    generator = np.random.default_rng(7)
    for d in (1, 3, 10):
        directions = Directions.axes(d) if kind == "axes" else Directions.orthonormal(d)
        depth = IntegratedDual(smoothing=10.0, directions=directions)
        rows = generator.standard_t(2, size=(101, d)) * 3.0 + 100.0
        assert depth.evaluate([depth.median(rows)], rows)[0] == pytest.approx(0.25, abs=4 * EPS)


def test_smoothed_median_follows_scale_and_shift():
    generator = np.random.default_rng(8)
    rows, directions = generator.normal(size=(60, 2)), Directions.balanced(2, 10)
    expected = IntegratedDual(5.0, directions).median(rows)
    for scale in (2.0**-200, 1e-9, 1e9, 2.0**200):
        found = IntegratedDual(5.0 / scale, directions).median(rows * scale)
        np.testing.assert_allclose(found / scale, expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(IntegratedDual(5.0, directions).median(rows + 7.0), expected + 7.0, rtol=0, atol=1e-9)


def test_smoothed_median_of_few_and_equal_rows():
    depth = IntegratedDual(50.0, Directions.balanced(2, 8))
    for rows, median in (([[3, 4]], [3, 4]), ([[3, 4]] * 5, [3, 4]), ([[0, 0], [2, 6]], [1, 3])):
        np.testing.assert_allclose(depth.median(rows), median, rtol=0, atol=1e-12)
    # Sharp smoothing is flat between rows; the middle stays.
    np.testing.assert_array_equal(IntegratedDual(1e6).median([[0.0], [1.0], [3.0], [9.0]]), [2.0])
    np.testing.assert_array_equal(IntegratedDual(1e6).median([[1e200], [-1e200], [0.0]]), [0.0])


# Coordinates one by one


def test_coordinatewise_median():
    generator = np.random.default_rng(9)
    for n in (1, 2, 5, 8):
        rows = generator.integers(-9, 10, size=(n, 3)).astype(float)
        np.testing.assert_array_equal(coordinatewise_median(rows), np.median(rows, axis=0))
    largest = np.finfo(float).max
    assert coordinatewise_median(np.array([[largest], [largest]]))[0] == largest
    smallest = 5e-324
    assert coordinatewise_median(np.array([[smallest], [smallest]]))[0] == smallest


@pytest.mark.parametrize("depth", [IntegratedRankWeighted(), IntegratedDual()], ids=lambda depth: depth.name)
def test_medians_of_step_depths_along_axes_and_rotated_axes(depth):
    generator = np.random.default_rng(10)
    for n in (1, 2, 7, 30):
        rows = generator.normal(size=(n, 3))
        middle = np.median(rows, axis=0)
        np.testing.assert_array_equal(depth.median(rows), middle)
        turned = depth.with_directions(Directions.orthonormal(3, seed=n))
        rotation = turned.directions.matrix()
        np.testing.assert_allclose(rotation @ turned.median(rows), np.median(rows @ rotation.T, axis=0), atol=1e-14)
        if depth.name == "integrated_rank_weighted":
            around = np.concatenate([rows, middle + generator.normal(size=(200, 3))])
            assert depth.evaluate(around, rows).max() <= depth.evaluate([middle], rows)[0]
    with pytest.raises(TypeError, match="independent directions.*got 8 for 2"):
        depth.with_directions(Directions.uniform(2, 8, seed=0)).median([[0.0, 1.0]])
    np.testing.assert_array_equal(depth.with_directions([[0.0, 1.0]]).median([[1.0, 5.0], [3.0, 7.0]]), [2.0, 6.0])


def test_medians_need_rows():
    for depth in (Spatial(), ModifiedSpatial(), IntegratedDual(smoothing=1.0), IntegratedDual()):
        with pytest.raises(ValueError, match="at least one row"):
            depth.median(np.empty((0, 2)))
        with pytest.raises(ValueError, match="finite"):
            depth.median([[np.nan, 0.0]])
        with pytest.raises(ValueError, match=r"shape \(n, d\)"):
            depth.median([1.0, 2.0])
    assert spatial_median(np.ones((1, 1)))[0] == smoothed_dual_median(np.ones((1, 1)), np.ones((1, 1)), 1.0)[0] == 1.0
