"""Projections to the bit, and kernels against pure Python."""

from fractions import Fraction

import brute_force
import numpy as np
import pytest

from pymc_dpdepth.depths import Directions, Halfspace, IntegratedDual, IntegratedRankWeighted
from pymc_dpdepth.depths.aggregate import (
    CLAMP,
    PROJECTION_BLOCK,
    check_counts_fit,
    project,
    project_clamped,
    project_point,
    smoothing_block,
    smoothing_factors,
)

STEP = [Halfspace, IntegratedRankWeighted, IntegratedDual]
EPSILON = 2.0**-52


def bits(array):
    return np.ascontiguousarray(array).view(np.uint64)


@pytest.mark.parametrize("d", [1, 2, 3, 8, 17, 64])
def test_a_projection_depends_on_its_row_alone(d):
    """Alone, among others, in another order, at another length and memory layout, and as a point: the same 64 bits."""
    generator = np.random.default_rng(d)
    n = 2 * PROJECTION_BLOCK + 37
    rows = generator.standard_normal((n, d)) * 10.0 ** generator.integers(-8, 9, size=(n, d))
    directions = Directions.balanced(d, 2 * d + 1, seed=1).matrix()
    together = bits(project(rows, directions))
    order = generator.permutation(n)
    assert np.array_equal(bits(project(rows[order], directions)), together[:, order])
    assert np.array_equal(bits(project(np.asfortranarray(rows), directions)), together)
    for length in (1, 2, 3, 5, 9, PROJECTION_BLOCK - 1, PROJECTION_BLOCK, PROJECTION_BLOCK + 1):
        for start in (0, 1, 2, 3):
            part = project(rows[start : start + length], directions)
            assert np.array_equal(bits(part), together[:, start : start + length])
    for i in (0, 1, PROJECTION_BLOCK, n - 1):
        alone = np.array([project_point(rows[i], direction) for direction in directions])
        assert np.array_equal(bits(alone), together[:, i])


def test_a_projection_is_the_documented_sum_to_the_bit():
    generator = np.random.default_rng(0)
    rows = generator.standard_normal((50, 6)) * 10.0 ** generator.integers(-300, 300, size=(50, 6))
    directions = np.vstack([Directions.uniform(6, 5, seed=2).matrix(), np.eye(6)[3], -np.eye(6)[1]])
    expected = [[brute_force.double_dot(row, u) for row in rows] for u in directions.tolist()]
    assert np.array_equal(project(rows, directions), expected)


def test_axis_directions_give_the_coordinate_itself():
    rows = np.array([[1e308, -5e-324], [-1.7e308, 0.1]])
    assert np.array_equal(project(rows, np.array([[1.0, 0.0], [0.0, -1.0]])), [rows[:, 0], -rows[:, 1]])


def test_huge_rows_do_not_overflow_in_oblique_directions():
    rows = np.array([[1.7e308, -1.7e308, 1.7e308], [1.7e308, 1.7e308, 1.7e308]])
    directions = Directions.uniform(3, 50, seed=0).matrix()
    assert np.isfinite(project(rows, directions)).all()
    assert np.max(np.abs(project_clamped(rows, np.eye(3)))) == CLAMP


def small_tables():
    """Yield (label, rows, points): ties, duplicates, one row, none, collinear rows, huge and tiny scales."""
    generator = np.random.default_rng(11)
    for d in (1, 2, 3, 5):
        gaussian = generator.standard_normal((9, d))
        integers = generator.integers(-2, 3, size=(12, d)).astype(float)
        yield f"gaussian-{d}", gaussian
        yield f"integers-{d}", integers
        yield f"duplicates-{d}", np.repeat(gaussian[:2], [5, 3], axis=0)
        yield f"one row-{d}", gaussian[:1]
        yield f"no rows-{d}", np.empty((0, d))
        yield f"collinear-{d}", np.outer(np.arange(-3.0, 4.0), gaussian[0])
        yield f"constant column-{d}", np.where(np.arange(d) == 0, 7.0, integers)
        yield f"huge-{d}", gaussian * 2.0**200
        yield f"beyond the clamp-{d}", gaussian * 2.0**1000
        yield f"tiny-{d}", gaussian * 2.0**-200
        yield f"subnormal-{d}", integers * 5e-324


TABLES = list(small_tables())


def points_for(rows):
    """Return points at rows, between them, beyond them, and at the origin."""
    d = rows.shape[1]
    if not len(rows):
        return np.vstack([np.zeros(d), np.ones(d)])
    shifted = rows + np.roll(rows, 1, axis=0)
    middles = np.where(np.isfinite(shifted), shifted, 0.0) / 2
    return np.vstack([rows, middles, rows.max(axis=0), rows.min(axis=0), -rows[:2], np.zeros(d)])


def direction_sets(d):
    return [
        Directions.axes(d),
        Directions.balanced(d, d + 2, seed=6),
        Directions.from_array(np.eye(d) + np.eye(d)[::-1]),
    ]


@pytest.mark.parametrize(("label", "rows"), TABLES, ids=[label for label, _ in TABLES])
@pytest.mark.parametrize("depth", STEP)
def test_step_kernels_equal_pure_python_in_every_count(depth, label, rows):
    points = points_for(rows)
    for directions in direction_sets(rows.shape[1]):
        found = depth(directions=directions).evaluate(points, rows)
        reference = brute_force.STEP_DEPTHS[depth.name]
        us = directions.matrix().tolist()
        expected = [reference(point, rows.tolist(), us, brute_force.double_dot) for point in points.tolist()]
        # A correctly rounded division of exact counts is the double nearest to the fraction.
        assert found.tolist() == [float(value) for value in expected]


@pytest.mark.parametrize("depth", STEP)
def test_step_kernels_equal_rational_arithmetic(depth):
    """Gaussian rows have no projections within rounding of each other, so exact projections give the same counts."""
    generator = np.random.default_rng(3)
    for d in (1, 2, 4):
        rows = generator.standard_normal((11, d))
        points = np.vstack([rows, generator.standard_normal((10, d))])
        directions = Directions.balanced(d, 2 * d, seed=2)
        found = depth(directions=directions).evaluate(points, rows)
        reference = brute_force.STEP_DEPTHS[depth.name]
        us = directions.matrix().tolist()
        assert found.tolist() == [float(reference(point, rows.tolist(), us)) for point in points.tolist()]


@pytest.mark.parametrize("depth", [*(depth() for depth in STEP), IntegratedDual(3.0)], ids=repr)
def test_one_kernel_call_is_what_evaluate_returns(depth):
    generator = np.random.default_rng(5)
    rows, points = generator.standard_normal((20, 3)), generator.standard_normal((4, 3))
    depth = depth.with_directions(Directions.balanced(3, 5))
    prepared, kernel = depth.prepare(rows), depth.kernel()
    results = [kernel(point, *prepared) for point in points]
    if depth.differentiable:
        values, gradients = depth.value_and_gradient(points, rows)
        assert np.array_equal([value for value, _ in results], values)
        assert np.array_equal([gradient for _, gradient in results], gradients)
    else:
        values = results
    assert np.array_equal(values, depth.evaluate(points, rows))


def test_a_point_equal_to_a_row_ties_with_it_in_every_direction():
    """One row, the point on it: le = ge = 1 in each direction, so a single missed tie would give depth 0."""
    generator = np.random.default_rng(1)
    for d in (2, 5, 33):
        rows = generator.standard_normal((200, d)) * 1e3
        depth = Halfspace(directions=Directions.uniform(d, 20, seed=1))
        prepared = [depth.prepare(rows[i : i + 1]) for i in range(len(rows))]
        assert all(depth.kernel()(row, *arrays) == 1.0 for row, arrays in zip(rows, prepared, strict=True))


def test_halfspace_on_axes_by_hand():
    """The four corners and the centre of a square: a corner, the centre, an edge's middle, beside it, outside."""
    rows = [[0, 0], [0, 2], [2, 0], [2, 2], [1, 1]]
    points = [[0, 0], [1, 1], [0, 1], [0.5, 1], [-1, 1], [0, 3]]
    # Per axis (le, ge) at 0: (2, 5); at 0.5: (2, 3); at 1: (3, 3); below 0: (0, 5); above 2: (5, 0).
    expected = [2 / 5, 3 / 5, 2 / 5, 2 / 5, 0.0, 0.0]
    assert Halfspace("axes").evaluate(points, rows).tolist() == expected
    irw = [2 / 5, 3 / 5, (2 + 3) / 10, (2 + 3) / 10, (0 + 3) / 10, (2 + 0) / 10]
    assert IntegratedRankWeighted().evaluate(points, rows).tolist() == irw
    dual = [10 / 25, 9 / 25, (10 + 9) / 50, (6 + 9) / 50, (0 + 9) / 50, (10 + 0) / 50]
    assert IntegratedDual().evaluate(points, rows).tolist() == dual


def test_halfspace_regions_on_axes_are_boxes_between_order_statistics():
    """D(x) >= k/n exactly when x_(k) <= x <= x_(n+1-k) on every axis."""
    generator = np.random.default_rng(4)
    rows = generator.integers(0, 6, size=(11, 2)).astype(float)
    points = np.array([[a, b] for a in np.arange(-0.5, 6, 0.5) for b in np.arange(-0.5, 6, 0.5)])
    ordered, n = np.sort(rows, axis=0), len(rows)
    depths = Halfspace("axes").evaluate(points, rows)
    for k in range(1, n + 1):
        inside = np.all((ordered[k - 1] <= points) & (points <= ordered[n - k]), axis=1)
        assert np.array_equal(depths >= k / n, inside)


@pytest.mark.parametrize("depth", STEP)
def test_a_direction_and_its_opposite_give_the_same_depth(depth):
    generator = np.random.default_rng(2)
    rows = generator.integers(-2, 3, size=(15, 3)).astype(float)
    matrix = Directions.uniform(3, 6, seed=3).matrix()
    one, other = (depth(directions=sign * matrix).evaluate(rows, rows) for sign in (1, -1))
    assert np.array_equal(one, other)


def test_counts_that_do_not_fit_are_refused_before_any_work():
    check_counts_fit(3_000_000_000, 1, 2)
    with pytest.raises(ValueError, match="Use fewer directions"):
        check_counts_fit(3_000_000_000, 2, 2)
    many = np.broadcast_to(np.zeros((1, 1)), (4_000_000_000, 1))  # one number in memory
    with pytest.raises(ValueError, match="must not exceed 9223372036854775807"):
        IntegratedDual().prepare(many)


def projection_error(rows, points, d):
    """Bound the rounding of d products and their sum: terms add up to at most |row| (Cauchy-Schwarz)."""
    largest = max(np.sqrt(np.sum(rows**2, axis=1)).max(), np.sqrt(np.sum(points**2, axis=1)).max())
    return (d + 1) * EPSILON * largest


def smoothed_cases():
    """Yield tables that decimals can exponentiate; some have projections so small that their quotients underflow."""
    for label, rows in TABLES:
        if label.startswith(("gaussian", "integers", "tiny", "subnormal")):
            yield from ((rows, s) for s in (0.5, 10.0, 1e3))
    yield np.array([[-1e-300], [-5e-324], [-1.0], [5e-324], [1.0]]), 0.5


@pytest.mark.parametrize(("rows", "s"), list(smoothed_cases()))
def test_smoothed_kernel_equals_sixty_digit_arithmetic(rows, s):
    """Value and gradient against decimals, and decimals' central differences.

    F has slope at most s/4 in each projection and F (1 - F) slope at most 1 in F, so a projection error delta moves the
    value by s delta / 2 (row and point), and the gradient by s^2 delta (the second derivative of F (1 - F) in t is
    below s^2 / 2). A logistic of exponents below 64 + 40 has relative error 104 * 2^-52; n additions add n * 2^-52.
    """
    d = rows.shape[1]
    points = np.vstack([rows[:2], (rows[:1] + rows[1:2]) / 2, rows.max(axis=0) + 1 / s])
    directions = Directions.balanced(d, d + 1, seed=6)
    values, gradients = IntegratedDual(s, directions).value_and_gradient(points, rows)
    us = directions.matrix().tolist()
    delta = projection_error(rows, points, d)
    noise = (104 + len(rows)) * EPSILON
    for point, value, gradient in zip(points.tolist(), values, gradients, strict=True):
        assert value == pytest.approx(float(brute_force.smoothed_dual(point, rows, us, s)), abs=s * delta + noise)
        expected = brute_force.smoothed_dual_gradient(point, rows, us, s)
        assert gradient.tolist() == pytest.approx(expected, abs=s * (s * delta + noise))


def test_smoothed_gradient_equals_finite_differences_of_the_kernel():
    """Central differences with s h = 1e-5: truncation below s (s h)^2 / 2, rounding 2^-52 / h."""
    generator = np.random.default_rng(8)
    rows, points, s, h = generator.standard_normal((300, 3)), generator.standard_normal((6, 3)), 4.0, 1e-5 / 4.0
    depth = IntegratedDual(s, Directions.balanced(3, 20))
    _, gradients = depth.value_and_gradient(points, rows)
    for j, step in enumerate(h * np.eye(3)):
        difference = (depth.evaluate(points + step, rows) - depth.evaluate(points - step, rows)) / (2 * h)
        assert np.max(np.abs(difference - gradients[:, j])) < s * 1e-10 + 300 * EPSILON / h


@pytest.mark.parametrize("shift", [0.0, 2.0**30, 2.0**40])
@pytest.mark.parametrize("scale", [2.0**-200, 1.0, 2.0**200])
def test_smoothed_kernel_keeps_its_digits_far_from_zero_and_at_any_scale(shift, scale):
    """Multiples of 2^-10 shifted by a power of two are exact, so the shifted and scaled table has the same depth."""
    generator = np.random.default_rng(9)
    rows = generator.integers(-2048, 2049, size=(60, 1)) / 1024.0
    points = np.linspace(-2.0, 2.0, 9)[:, None]
    value, gradient = IntegratedDual(8.0).value_and_gradient(points, rows)
    moved, slope = IntegratedDual(8.0 / scale).value_and_gradient((points + shift) * scale, (rows + shift) * scale)
    assert np.max(np.abs(moved - value)) < 104 * EPSILON
    assert np.max(np.abs(slope * scale - gradient)) < 8.0 * 104 * EPSILON


def test_smoothed_shares_saturate_to_exact_zero_and_one():
    rows = np.array([[-1.0], [1.0], [3.0]])
    values, gradients = IntegratedDual(100.0).value_and_gradient([[-50.0], [50.0], [0.0], [2.0]], rows)
    assert values[:2].tolist() == [0.0, 0.0]
    assert gradients.tolist() == [[0.0], [0.0], [0.0], [0.0]]
    assert values[2:].tolist() == [float(Fraction(1, 3)) * (1 - float(Fraction(1, 3)))] * 2


def test_smoothed_kernel_with_one_row_and_none():
    value, gradient = IntegratedDual(7.0).value_and_gradient([[0.3]], [[0.3]])
    assert (value.tolist(), gradient.tolist()) == ([0.25], [[0.0]])
    value, gradient = IntegratedDual(7.0).value_and_gradient([[0.3, 1.0]], np.empty((0, 2)))
    assert (value.tolist(), gradient.tolist()) == ([0.0], [[0.0, 0.0]])


@pytest.mark.parametrize("s", [2.0**-256, 1e-3, 1.0, 100.0, 2.0**256])
def test_smoothed_values_stay_between_zero_and_a_quarter_for_any_rows(s):
    generator = np.random.default_rng(10)
    rows = generator.standard_normal((40, 2)) * 10.0 ** generator.integers(-300, 300, size=(40, 1))
    for directions in (Directions.axes(2), Directions.balanced(2, 5)):
        values, gradients = IntegratedDual(s, directions).value_and_gradient(rows, rows)
        assert np.all((values >= 0) & (values <= 0.25))
        assert np.isfinite(gradients).all()


def test_the_smoothed_dual_tends_to_the_step_dual_off_the_data():
    generator = np.random.default_rng(12)
    rows, points = generator.integers(0, 9, size=(30, 2)), generator.integers(0, 9, size=(20, 2)) + 0.5
    # Every |x - X| is at least 1/2, so at s = 1000 each logistic is 0 or 1 to double precision.
    smooth = IntegratedDual(1e3).evaluate(points, rows)
    assert np.max(np.abs(smooth - IntegratedDual().evaluate(points, rows))) < 4 * EPSILON


def test_smoothing_factors_depend_on_their_row_alone_and_stay_in_range():
    for s in (1e-3, 1.0, 37.0, 1e5):
        width = smoothing_block(s)
        assert 32 < s * width <= 64
        z = np.linspace(-5, 5, 1001) / s * 100
        factors = smoothing_factors(z[None], s, width)[0]
        assert np.all((factors >= 1) & (factors <= np.exp(64)))
        assert np.array_equal(bits(smoothing_factors(z[None, 17:18], s, width)[0]), bits(factors[17:18]))
