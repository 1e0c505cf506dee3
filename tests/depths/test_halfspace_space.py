"""Halfspace depth over all directions in space: brute force, flat and degenerate tables, extreme doubles."""

import numpy as np
import pytest
from brute_force_halfspace import as_integers, count_in_plane, count_in_space
from reference_values import TETRAHEDRON

from pymc_dpdepth.depths import Halfspace
from pymc_dpdepth.depths.halfspace_plane import bucket_sizes

ALL = Halfspace(directions=None)


def counts(points, rows):
    rows = np.asarray(rows, dtype=float)
    scaled = ALL.evaluate(points, rows) * len(rows)
    whole = np.rint(scaled).astype(int)
    assert np.abs(scaled - whole).max(initial=0.0) < 1e-9
    return whole.tolist()


def test_known_values():
    assert counts([TETRAHEDRON["z"]], TETRAHEDRON["X"]) == [TETRAHEDRON["HD_count"]]
    cube = np.array([[x, y, z] for x in (0, 2) for y in (0, 2) for z in (0, 2)])
    assert counts([[1, 1, 1], [0, 0, 0], [1, 1, 0], [1, 0, 0], [3, 1, 1]], cube) == [4, 1, 2, 1, 0]
    assert counts([[1, 1, 1]], np.vstack([cube, [[1, 1, 1]] * 3])) == [7]
    assert counts([[1e-9, 1e-9, 1e-9], [0, 0, 0], [1e-9, 1e-9, 0]], 1e-9 * cube) == [4, 1, 2]


def small_case(generator):
    """Return a point and rows of small integers: ties, duplicates, antipodal rows, planes, lines, one point."""
    n, width = generator.integers(1, 10), generator.choice([1, 2, 3, 9])
    rows = generator.integers(-width, width + 1, size=(n, 3))
    kind = generator.integers(8)
    if kind == 0:
        rows = rows[:, :2] @ generator.integers(-2, 3, size=(2, 3))  # a plane through the origin
    elif kind == 1:
        rows = rows[:, :1] @ generator.integers(-2, 3, size=(1, 3))  # a line, or one point
    elif kind == 2:
        rows = np.vstack([rows[: n // 2 + 1], -rows[: n // 2 + 1]])
    elif kind == 3:
        rows = rows[generator.integers(n, size=n)]
    elif kind == 4:
        rows[:, generator.integers(3)] = 1
    kind = generator.integers(3)
    if kind == 0:
        return rows[0], rows
    return (np.zeros(3, int) if kind == 1 else generator.integers(-width, width + 1, size=3)), rows


def test_brute_force_on_small_integers():
    generator = np.random.default_rng(1)
    seen = set()
    for _ in range(3000):
        point, rows = small_case(generator)
        expected = count_in_space(point, rows)
        assert counts([point], rows) == [expected]
        seen.add(expected)
    assert seen >= set(range(6))


@pytest.mark.parametrize("width", [1, 3, 20, 1000])
def test_brute_force_on_dozens_of_integers(width):
    generator = np.random.default_rng(2)
    rows = generator.integers(-width, width + 1, size=(40, 3))
    points = np.vstack([rows[:5], generator.integers(-width // 2, width // 2 + 1, size=(5, 3)), np.zeros((1, 3), int)])
    assert counts(points, rows) == [count_in_space(point, rows) for point in points]


def test_brute_force_where_the_last_bit_decides():
    generator = np.random.default_rng(3)
    plain_is_wrong = 0
    for trial in range(60):
        n, (a, b, c) = generator.integers(4, 8), generator.normal(size=(3, 3))
        steps = np.round(generator.normal(size=(n, 2)), 1)
        rows = a + steps[:, :1] * b + (steps[:, 1:] * c if trial % 2 else 0.0)  # a plane, or a line
        moved = generator.integers(n)
        rows[moved] = np.nextafter(rows[moved], generator.choice([-9.0, 9.0], size=3))
        point = a if generator.integers(2) else rows[0].copy()
        expected = count_in_space(*as_integers(point, rows))
        assert counts([point], rows) == [expected]
        plain_is_wrong += count_in_space(point, rows) != expected
    assert plain_is_wrong > 10


def table_that_doubles_misjudge(generator, kind):
    """Return rows around the origin whose projections along some row are hard to place in doubles.

    They are in a narrow cone ("cone"), nearly in a plane through a row and an axis ("axis"), or their lines, projected
    along an axis, are nearly equal and at the edge of a bucket ("edge").
    """
    signs = generator.choice([-1.0, 1.0], size=(8, 1))
    if kind == "cone":
        return signs * (
            generator.choice([2.0**25, 2.0**38]) * np.array([3.0, 5.0, -7.0]) + generator.integers(-2, 3, size=(8, 3))
        )
    if kind == "axis":
        rows = generator.normal(size=(8, 1)) * generator.normal(size=3)
        rows[:, generator.integers(3)] += generator.normal(size=8)
        return rows
    _, scale, _ = bucket_sizes(8, 2.0**-26)
    key = (generator.integers(1, 4) - 0.5) / scale - 1.0  # placed at an integer
    rows = generator.normal(size=(8, 3))
    rows[0] = 0.0, 0.0, signs[0, 0]
    rows[1:6, :2] = generator.normal(size=(5, 1)) * [-key, 1.0 - abs(key)]
    return rows


@pytest.mark.parametrize("kind", ["cone", "axis", "edge"])
def test_brute_force_where_projections_are_hard_to_place(kind):
    generator = np.random.default_rng(8)
    for _ in range(150):
        rows = table_that_doubles_misjudge(generator, kind)
        expected = count_in_space(*as_integers(np.zeros(3), rows))
        assert counts([[0.0, 0.0, 0.0]], rows) == [expected]


@pytest.mark.parametrize("axis", range(3))
def test_a_flat_table_has_the_depth_of_its_plane(axis):
    generator = np.random.default_rng(4)
    flat = generator.integers(-6, 7, size=(50, 2))
    points = np.vstack([flat[:8], generator.integers(-3, 4, size=(8, 2))])
    shear = np.array([[1, 0, 2], [3, 1, 7], [0, 0, 1]])

    def lifted(xy, height):
        return np.insert(xy, axis, height, axis=1).astype(np.int64) @ shear

    assert counts(lifted(points, 5), lifted(flat, 5)) == [count_in_plane(point, flat) for point in points]
    assert counts(lifted(points, 6), lifted(flat, 5)) == [0] * 16
    off = lifted(points, 5).astype(float)
    off[:, axis] = np.nextafter(off[:, axis], 100.0)
    assert counts(off, lifted(flat, 5).astype(float)) == [0] * 16


def test_a_line_has_the_depth_of_a_line():
    steps = np.array([-3, -1, 0, 0, 2, 5, 5, 5, 9])
    rows = np.outer(steps, [3, -7, 2]) + [1, 1, 1]
    for t in (-4, -3, 0, 1, 5, 9, 10):
        expected = min((steps <= t).sum(), (steps >= t).sum())
        assert counts([np.array([3, -7, 2]) * t + 1], rows) == [expected]
        assert counts([np.array([3, -7, 2]) * t + [1, 1, 2]], rows) == [0]


def test_powers_of_two_and_integer_shifts_change_nothing():
    generator = np.random.default_rng(5)
    rows = generator.integers(-5, 6, size=(30, 3)).astype(float)
    points = np.vstack([rows[:6], generator.integers(-2, 3, size=(6, 3))])
    expected = counts(points, rows)
    assert max(expected) > 5
    for scale in (2.0**-40, 2.0**40, 2.0**-1074, 2.0**1019):
        assert counts(scale * points, scale * rows) == expected
    for shift in ([1000.0, -77.0, 12.0], [2.0**45] * 3):
        assert counts(points + shift, rows + shift) == expected
    for scales in ([2.0**-40, 2.0**40, 1.0], [2.0**900, 2.0**-900, 2.0**-1000], [-1.0, 3.0, 5.0]):
        assert counts(points * scales, rows * scales) == expected
    for matrix in ([[1, 1, 0], [0, 1, 5], [0, 0, 1]], [[0, 1, 0], [0, 0, 1], [1, 0, 0]]):
        assert counts(points @ matrix, rows @ matrix) == expected


def test_differences_beyond_the_largest_double():
    generator = np.random.default_rng(6)
    rows = generator.integers(-3, 4, size=(25, 3))
    points = rows[:8]
    assert counts(points * 2.0**1022, rows * 2.0**1022) == [count_in_space(point, rows) for point in points]


def test_a_symmetric_cloud_and_few_rows():
    generator = np.random.default_rng(7)
    half = generator.standard_normal((150, 3))
    assert counts([[0.0, 0.0, 0.0]], np.vstack([half, -half])) == [150]
    assert counts([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]], [[1.0, 2.0, 3.0]]) == [1, 0]
    assert counts([[0.5, 1.0, 1.5]], [[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]) == [1]
    assert ALL.evaluate([[0.0, 0.0, 0.0]], np.empty((0, 3))).tolist() == [0.0]


def test_misuse_is_refused_by_name():
    with pytest.raises(ValueError, match="points must have as many columns as X, 3; got 2"):
        ALL.evaluate([[0.0, 0.0]], np.eye(3))
    with pytest.raises(ValueError, match=r"X must be finite.*\[2\]"):
        ALL.evaluate([[0.0, 0.0, 0.0]], [[0.0, 1.0, np.nan]])
    with pytest.raises(ValueError, match="points must have shape"):
        ALL.evaluate([0.0, 0.0, 0.0], np.eye(3))


def test_a_point_that_is_not_finite_has_depth_0():
    prepared, kernel = ALL.prepare(np.eye(3)), ALL.kernel()
    assert kernel(np.array([1.0, 0.0, 0.0]), *prepared) == 1 / 3
    assert kernel(np.array([1.0, np.nan, 0.0]), *prepared) == 0.0
    assert kernel(np.array([1.0, 0.0, -np.inf]), *prepared) == 0.0
