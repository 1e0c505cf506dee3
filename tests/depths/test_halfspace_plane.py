"""Halfspace depth over all directions in the plane: known values, brute force, extreme and degenerate data."""

import numpy as np
import pytest
from brute_force_halfspace import as_integers, count_in_plane
from reference_values import REAL, TOYS, rows_of

from pymc_dpdepth.depths import Halfspace
from pymc_dpdepth.depths.halfspace_plane import bucket_sizes, merge_buckets

ALL = Halfspace(directions=None)


def counts(points, rows):
    rows = np.asarray(rows, dtype=float)
    scaled = ALL.evaluate(points, rows) * len(rows)
    whole = np.rint(scaled).astype(int)
    assert np.abs(scaled - whole).max(initial=0.0) < 1e-9
    return whole.tolist()


@pytest.mark.parametrize("name", TOYS)
def test_small_figures(name):
    toy = TOYS[name]
    queries = toy["queries"]
    assert counts([query["z"] for query in queries], toy["X"]) == [query["HD_count"] for query in queries]


@pytest.mark.parametrize("name", REAL)
def test_real_tables(name):
    rows, exact = rows_of(name), REAL[name]["exact"]
    n = len(rows)
    assert counts(rows, rows) == exact["HD_count_at_each_point"]
    assert counts([exact["mean_times_n"]], n * rows) == exact["HD_SD_count_at_mean"][:1]
    assert counts([exact["coordwise_median_times2"]], 2 * rows) == exact["HD_SD_count_at_cwmed"][:1]


def small_case(generator):
    """Return a point and rows of small integers: ties, duplicates, antipodal, collinear rows, few distinct ones."""
    n, width = generator.integers(1, 12), generator.choice([1, 2, 3, 8])
    rows = generator.integers(-width, width + 1, size=(n, 2))
    kind = generator.integers(6)
    if kind == 0:
        rows = np.outer(rows[:, 0], generator.integers(-2, 3, size=2))  # a line, or all equal
    elif kind == 1:
        rows = np.vstack([rows, -rows, 2 * rows])[generator.permutation(3 * n)]
    elif kind == 2:
        rows = rows[generator.integers(n, size=n)]
    elif kind == 3:
        rows[:, 1] = rows[0, 1]
    return (rows[0] if generator.integers(4) == 0 else generator.integers(-width, width + 1, size=2)), rows


def test_brute_force_on_small_integers():
    generator = np.random.default_rng(1)
    seen = set()
    for _ in range(4000):
        point, rows = small_case(generator)
        expected = count_in_plane(point, rows)
        assert counts([point], rows) == [expected]
        seen.add(expected)
    assert seen >= set(range(8))


@pytest.mark.parametrize("width", [1, 5, 40, 10**6])
def test_brute_force_on_hundreds_of_integers(width):
    generator = np.random.default_rng(2)
    for n in (60, 61, 400):
        rows = generator.integers(-width, width + 1, size=(n, 2))
        points = np.vstack([rows[:8], generator.integers(-width // 2, width // 2 + 1, size=(8, 2))])
        assert counts(points, rows) == [count_in_plane(point, rows) for point in points]


def test_brute_force_where_the_last_bit_decides():
    generator = np.random.default_rng(3)
    plain_is_wrong = 0
    for _ in range(250):
        n, (a, b) = generator.integers(3, 10), generator.normal(size=(2, 2))
        rows = a + np.round(generator.normal(size=(n, 1)), 1) * b
        moved = generator.integers(n)
        rows[moved] = np.nextafter(rows[moved], generator.choice([-9.0, 9.0], size=2))
        point = a if generator.integers(2) else rows[0].copy()
        expected = count_in_plane(*as_integers(point, rows))
        assert counts([point], rows) == [expected]
        plain_is_wrong += count_in_plane(point, rows) != expected
    assert plain_is_wrong > 20


def test_powers_of_two_and_integer_shifts_change_nothing():
    generator = np.random.default_rng(4)
    rows = generator.integers(-9, 10, size=(40, 2)).astype(float)
    points = np.vstack([rows[:10], generator.integers(-4, 5, size=(10, 2))])
    expected = counts(points, rows)
    for scale in (2.0**-40, 2.0**40, 2.0**-1074, 2.0**1018):
        assert counts(scale * points, scale * rows) == expected
    for shift in ([1000.0, -77.0], [2.0**45, 2.0**45]):
        assert counts(points + shift, rows + shift) == expected
    for scales in ([2.0**-40, 2.0**40], [2.0**900, 2.0**-900], [-1.0, 3.0]):
        assert counts(points * scales, rows * scales) == expected
    for matrix in ([[1, 1], [0, 1]], [[1000, 999], [1001, 1000]], [[3, -1], [1, 2]], [[0, 1], [1, 0]]):
        assert counts(points @ matrix, rows @ matrix) == expected


def test_differences_beyond_the_largest_double():
    largest = np.finfo(float).max
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * largest
    assert counts([[0.0, 0.0], [largest, largest], [largest, 0.0], [largest, 1e300]], corners) == [2, 1, 1, 1]
    generator = np.random.default_rng(5)
    whole = generator.integers(-3, 4, size=(50, 2))
    points = whole[:12]
    assert counts(points * 2.0**1022, whole * 2.0**1022) == [count_in_plane(p, whole) for p in points]


def test_tiny_scale_constant_column_and_multiplicities():
    square = np.array([[0.0, 0], [2, 0], [2, 2], [0, 2], [1, 1]])
    assert counts([[1e-9, 1e-9], [1e-9, 0.0]], 1e-9 * square) == [3, 1]
    flat = np.array([[0.0, 5], [1, 5], [1, 5], [4, 5], [7, 5]])
    assert counts([[1.0, 5.0], [2.0, 5.0], [2.0, np.nextafter(5.0, 6.0)], [8.0, 5.0]], flat) == [3, 2, 0, 0]
    heavy = np.array([[0.0, 0]] * 3 + [[10, 0], [0, 10], [20, 20]])
    assert counts([[0.0, 0.0], [1.0, 1.0], [10.0, 10.0]], heavy) == [3, 2, 1]
    assert counts([[2.0, 2.0]], [[2.0, 2.0]] * 7) == [7]
    assert counts([[2.0, 2.0], [0.0, 0.0]], [[2.0, 2.0]]) == [1, 0]
    assert ALL.evaluate([[0.0, 0.0]], np.empty((0, 2))).tolist() == [0.0]


def test_center_of_a_symmetric_table():
    # Every line through the center of pairs of opposite rows has one row of each pair on either side.
    generator = np.random.default_rng(6)
    half = generator.integers(-(10**6), 10**6, size=(1000, 2))
    assert counts([[0.0, 0.0]], np.vstack([half, -half])) == [1000]
    assert counts([[0.0, 0.0]], np.vstack([half, -half, [[0, 0]]])) == [1001]


def test_some_row_or_point_is_as_deep_as_the_centerpoint_theorem_says():
    generator = np.random.default_rng(7)
    rows = generator.standard_normal((2000, 2))
    assert max(counts(generator.standard_normal((100, 2)) * 0.1, rows)) >= 2000 / 3


def test_rows_in_one_narrow_cone():
    # All keys in one bucket: neighbours on lines that differ in the last bits.
    generator = np.random.default_rng(8)
    rows = (
        np.stack([np.full(300, 2.0**30), generator.integers(-4, 5, size=300)], axis=1)
        * generator.choice([-1, 1], 300)[:, None]
    )
    whole = rows.astype(np.int64)
    assert counts([[0, 0], [0, 1]], rows) == [count_in_plane(np.array(p), whole) for p in ([0, 0], [0, 1])]


def test_rows_near_the_edge_of_a_bucket():
    # Lines so close together that their keys, which are rounded, may be on the wrong sides of an edge.
    generator = np.random.default_rng(10)
    n = 16
    _, scale, _ = bucket_sizes(n, 2.0**-50)
    for _ in range(150):
        key = (generator.integers(1, 4) - 0.5) / scale - 1.0  # placed at an integer
        line = np.array([-key, 1.0 - abs(key)])
        rows = generator.normal(size=(n, 2))
        rows[:10] = generator.normal(size=(10, 1)) * line
        expected = count_in_plane(*as_integers(np.zeros(2), rows))
        assert counts([[0.0, 0.0]], rows) == [expected]


def test_joined_buckets_hold_the_rows_near_an_edge():
    buckets, scale, near = bucket_sizes(64, 2.0**-50)
    places = np.array([0.5, 2.0 - near / 2, 2.0 + near / 2, 2.7, 4.0, buckets + 0.5])
    codes = (2 * places.astype(np.int32) + np.array([0, 1, 0, 1, 1, 0])).astype(np.int32)
    merge_buckets(places, codes, near, buckets)
    assert codes.tolist() == [0, 3, 2, 3, 2 * 3 + 1, 2 * buckets]


def test_a_point_that_is_not_finite_has_depth_0():
    prepared, kernel = ALL.prepare(np.eye(2)), ALL.kernel()
    assert kernel(np.zeros(2), *prepared) == 0.0
    assert kernel(np.array([1.0, 0.0]), *prepared) == 0.5
    for theta in ([np.nan, 0.0], [0.0, np.inf], [-np.inf, np.nan]):
        assert kernel(np.array(theta), *prepared) == 0.0


def test_many_points_at_once_are_the_points_one_by_one():
    generator = np.random.default_rng(9)
    rows, points = generator.standard_normal((300, 2)), generator.standard_normal((1501, 2))
    prepared, kernel = ALL.prepare(rows), ALL.kernel()
    together = ALL.evaluate(points, rows)
    assert together.tolist() == [kernel(point, *prepared) for point in points]
    assert len(set(together)) > 100


@pytest.mark.parametrize(
    ("points", "rows", "message"),
    [
        ([0.0, 0.0], np.eye(2), "points must have shape"),
        ([[0.0, 0.0, 0.0]], np.eye(2), "points must have as many columns as X, 2; got 3"),
        ([[0.0, np.nan]], np.eye(2), r"points must be finite.*\[1\]"),
        ([[0.0, 0.0]], [[0.0, 1.0], [np.nan, 1.0]], r"X must be finite.*\[0\]"),
        ([[0.0, 0.0]], [0.0, 1.0], "X must have shape"),
    ],
)
def test_misuse_is_refused_by_name(points, rows, message):
    with pytest.raises(ValueError, match=message):
        ALL.evaluate(points, rows)


def test_more_than_three_columns_are_refused_with_the_cure():
    for call in (lambda: ALL.resolve(4), lambda: ALL.prepare(np.eye(4)), lambda: ALL.evaluate(np.eye(4), np.eye(4))):
        with pytest.raises(ValueError, match=r"d <= 3 .*got d = 4.*Directions.balanced\(4, m\)"):
            call()


def test_units_make_no_difference_over_all_directions():
    assert ALL.unit_free and ALL.resolve(2).unit_free and ALL.resolve(3) is ALL
    assert not Halfspace([[1.0, 2.0]]).unit_free
    assert ALL.sensitivity(8, 2) == 1 / 8
    assert ALL.describe()["directions"] == {"kind": "all"}
