import math

import numpy as np
import pytest
from replaced_rows import neighbours, outlyingness, tables_within

from pymc_dpdepth.depths import Directions, Projection
from pymc_dpdepth.ptr.ball_median import Ball, draw_by_branch_and_bound
from pymc_dpdepth.ptr.outlyingness import NO_CAP, OutlyingnessBound, OutlyingnessTable
from pymc_dpdepth.ptr.stable import first_above
from pymc_dpdepth.ptr.windows import _highest, _lowest
from pymc_dpdepth.randomness import SeededBits

SCALES = ["mad", "iqr"]
LINE = np.array([[1.0]])
PLANE = Directions.uniform(2, 7, seed=3).matrix()
ROUNDING = 1e-9  # relative: a supremum over tables and places is found up to roundings; bounds are nested to the bit


def breakdown(rows, directions, scale, cap, points, threshold):
    table = OutlyingnessTable(rows, directions, scale, cap)
    return first_above(table.diameters(points), threshold, len(rows))


@pytest.mark.parametrize("scale", SCALES)
def test_values_are_those_of_the_depth(scale):
    generator = np.random.default_rng(0)
    for n in (1, 2, 5, 40, 41):
        rows, points = generator.normal(size=(n, 2)), generator.normal(size=(50, 2))
        depth = Projection(scale, Directions.uniform(2, 7, seed=3)).evaluate(points, rows)
        values = OutlyingnessTable(rows, PLANE, scale, NO_CAP).values(points)
        assert 1 / (1 + values) == pytest.approx(depth, abs=1e-6)  # where the depth is 0 the cap shows
        capped = OutlyingnessTable(rows, PLANE, scale, 1.5).values(points)
        assert capped == pytest.approx(np.minimum(values, 1.5), rel=1e-12)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("directions", [LINE, np.eye(2), -np.eye(2), PLANE], ids=["line", "axes", "back", "oblique"])
def test_what_is_tested_is_what_is_released_at_every_size(scale, directions):
    # The windows for k = 0 hold one median and one scale, so the test's envelope at a point is the value itself. From
    # numbers that are 0 next to the scale to the largest double, beyond the clamp 2^256 (1.2e77) of the projections.
    generator, d = np.random.default_rng(9), directions.shape[1]
    sizes = [5e-324, 1e-300, 1.0, 1e76, 1e77, 3e80, 1e300, 1.7e308]
    for size in sizes:
        rows = np.clip(generator.normal(size=(21, d)), -1, 1) * size
        points = np.array([[sign * s] * d for s in sizes for sign in (-1, 1)] + rows[:3].tolist())
        table = OutlyingnessTable(rows, directions, scale, NO_CAP)
        windows, targets = table.windows(0), table.targets(points)
        values = table.values(points)
        for envelope in (_highest, _lowest):
            tested = [max(envelope(t, w, NO_CAP) for t, w in zip(at, windows, strict=True)) for at in targets]
            assert values.tolist() == tested


def test_points_beyond_the_clamp_move_by_no_more_than_the_bound():
    # Rows of size 1e76 and a point at 3e80: the bound was that of the clamped point, the value that of the point.
    rows = np.random.default_rng(1).normal(size=(2001, 1)) * 1e76
    other = rows.copy()
    other[np.argmin(np.abs(rows[:, 0]))] = 1e77
    point = np.array([[3e80]])
    tables = [OutlyingnessTable(x, LINE, "mad", NO_CAP) for x in (rows, other)]
    (first,), (second,) = (table.values(point) for table in tables)
    assert abs(first - second) <= min(table.diameters(point)(1) for table in tables)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("cap", [2.0, 50.0])
def test_bounds_are_not_below_the_diameter_of_all_tables_on_a_line(scale, cap):
    generator, v = np.random.default_rng(1), np.linspace(-1, 1, 201)[:, None]
    values = [[-100.0], [100.0], *([x] for x in np.arange(-1, 1.01, 1 / 8))]
    for k, n, count in ((1, 7, 6), (1, 10, 4), (2, 6, 1)):
        for _ in range(count):
            rows = generator.integers(-8, 9, (n, 1)) / 8
            table = OutlyingnessTable(rows, LINE, scale, cap)
            found = np.array([outlyingness(t, v, LINE, scale, cap) for t in tables_within(rows, k, values)])
            spread = found.max(axis=0) - found.min(axis=0)
            assert table.diameters(None)(k) >= spread.max() * (1 - ROUNDING)
            for point in (3, 100, 160):
                assert table.diameters(v[[point]])(k) >= spread[point] * (1 - ROUNDING)


@pytest.mark.parametrize("scale", SCALES)
def test_bounds_are_not_below_the_diameter_of_tables_in_the_plane(scale):
    generator = np.random.default_rng(2)
    v = np.array([[r * math.cos(a), r * math.sin(a)] for r in (0.2, 0.6, 1) for a in np.linspace(0, 6.28, 17)])
    close = 0
    for _ in range(5):
        rows = generator.normal(size=(11, 2)) / 3
        values = np.concatenate([generator.normal(size=(40, 2)) / 3, [[50, 0], [-50, 0], [0, 50], [0, -50], [0, 0]]])
        found = np.array([outlyingness(t, v, PLANE, scale, 3.0) for t in tables_within(rows, 1, values)])
        spread = found.max(axis=0) - found.min(axis=0)
        table = OutlyingnessTable(rows, PLANE, scale, 3.0)
        assert table.diameters(None)(1) >= spread.max()
        assert table.diameters(v)(1) >= spread.max()
        close += table.diameters(v)(1) <= 3 * spread.max()
    assert close  # the bound is of the order of what was found


def worst_rows(rows):
    """Return rows that one of the table is replaced by: far, at the center, on other rows, on the sphere."""
    center = np.median(rows, axis=0)
    far = np.array([[1e6, 0.0], [-1e6, 1e6], [0.0, -1e6]])
    return np.concatenate([far, [center], rows[:3], np.zeros((1, 2)), [[0.6, 0.8]]])


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("where", ["ball", "points"])
def test_breakdown_is_one_sensitive(scale, where):
    # A threshold from a continuous law lies within the rounding error of a bound with probability 0 for all purposes.
    generator, moved, pairs = np.random.default_rng(4), 0, 0
    points = None if where == "ball" else np.array([[0.0, 0.0], [0.5, 0.2], [-2.0, 1.0]])
    for _ in range(220):
        n = int(generator.integers(3, 50))
        kind = generator.integers(3)
        rows = generator.normal(size=(n, 2)) / 3
        if kind == 0:
            rows = np.round(rows * 3) / 3  # ties
        if kind == 1:
            rows[: n // 2] = rows[0]  # an atom
        cap, threshold = float(generator.choice([1.0, 2.0, NO_CAP])), float(generator.exponential(1.0)) + 0.05
        first = breakdown(rows, PLANE, scale, cap, points, threshold)
        assert 1 <= first <= n + 1
        for other in neighbours(rows, generator, worst_rows(rows), 8):
            change = abs(breakdown(other, PLANE, scale, cap, points, threshold) - first)
            assert change <= 1
            moved, pairs = moved + change, pairs + 1
    assert pairs > 1500 and moved > 20


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("cap", [2.0, NO_CAP])
def test_bounds_are_nested_between_neighbours(scale, cap):
    generator, points = np.random.default_rng(5), np.array([[0.0, 0.0], [0.7, -0.7], [3.0, 0.0]])
    for _ in range(60):
        n = int(generator.integers(3, 30))
        rows = generator.integers(-4, 5, (n, 2)) / 4
        for other in neighbours(rows, generator, worst_rows(rows), 2):
            for where in (None, points):
                first = OutlyingnessTable(rows, PLANE, scale, cap).diameters(where)
                second = OutlyingnessTable(other, PLANE, scale, cap).diameters(where)
                for k in range(1, n):
                    assert first(k) <= second(k + 1)
                    assert first(k) <= cap


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("directions", [LINE, PLANE], ids=["line", "plane"])
@pytest.mark.parametrize("where", ["ball", "points"])
def test_breakdown_is_one_sensitive_to_the_last_bit(scale, directions, where):
    # Thresholds at the bounds themselves, and at the doubles beside them, on rows that rounding hurts.
    generator, moved, d = np.random.default_rng(10), 0, directions.shape[1]
    points = None if where == "ball" else np.array([[0.0, 0.0], [0.7, -0.7], [3e80, 1.0]])[:, :d]
    for _ in range(1000):
        n, cap = int(generator.integers(2, 32)), float(generator.choice([0.5, 5.0, 5.0, NO_CAP]))
        rows = generator.normal(size=(n, d)) * 10.0 ** generator.choice([-2, -1, 0, 76])
        if generator.random() < 0.4:
            rows = np.round(rows, 1) + generator.choice([0.0, 0.1])
        for other in neighbours(rows, generator, worst_rows(np.pad(rows, ((0, 0), (0, 2 - d))))[:, :d], 2):
            pair = [OutlyingnessTable(x, directions, scale, cap).diameters(points) for x in (rows, other)]
            bounds = [[bound(k) for k in range(1, n + 1)] for bound in pair]
            for edge in {u for each in bounds for u in each if 0 < u < np.inf}:
                for threshold in (np.nextafter(edge, 0), edge, np.nextafter(edge, 9 * cap)):
                    first, second = (first_above(lambda k, u=u: u[k - 1], threshold, n) for u in bounds)
                    assert abs(first - second) <= 1
                    moved += first != second
    assert moved > 100


def test_tables_that_are_far_apart_have_breakdown_one():
    # The proof's second case: |O - O'| > threshold somewhere in the ball, so B = 1 for both.
    generator, cases, v = np.random.default_rng(6), 0, np.linspace(-1, 1, 401)[:, None]
    for _ in range(300):
        rows = generator.integers(-8, 9, (int(generator.integers(2, 9)), 1)) / 8
        for other in neighbours(rows, generator, np.array([[-5.0], [5.0], [0.0]]), 1):
            apart = np.abs(outlyingness(rows, v, LINE, "mad", 4.0) - outlyingness(other, v, LINE, "mad", 4.0)).max()
            if apart > 0.5:
                cases += 1
                assert (
                    breakdown(rows, LINE, "mad", 4.0, None, 0.5) == breakdown(other, LINE, "mad", 4.0, None, 0.5) == 1
                )
    assert cases > 100


def test_bounds_over_boxes():
    generator = np.random.default_rng(7)
    for scale in SCALES:
        bound = OutlyingnessBound(OutlyingnessTable(generator.normal(size=(31, 2)) / 3, PLANE, scale, 2.0))
        low = generator.uniform(-1, 1, (300, 2))
        high = low + generator.exponential(0.1, (300, 2))
        upper = bound.upper(low, high)
        for share in [(0.0, 0.0), (1.0, 1.0), (0.0, 1.0), *generator.uniform(size=(20, 2))]:
            points = low + share * (high - low)
            assert (bound.score(points, np.full(300, -np.inf)) <= upper).all()
        corners = np.abs(generator.normal(size=(50, 2))) + 1
        assert (bound.score(corners, np.zeros(50)) == -np.inf).all()
        assert (bound.upper(corners, corners) < -2).all()


def law_of_first_coordinate(rows, directions, scale, cap, beta, edges):
    """Return the law's distribution function of the first coordinate at edges, by summing over a fine grid."""
    grid = np.linspace(-1, 1, 801)[:-1] + 1 / 800
    if rows.shape[1] == 1:
        points, inside = grid[:, None], np.ones(800, dtype=bool)
    else:
        points = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
        inside = (points**2).sum(axis=1) <= 1
    weights = inside * np.exp(-beta * outlyingness(rows, points, directions, scale, cap))
    return np.array([weights[points[:, 0] < edge].sum() for edge in edges]) / weights.sum()


@pytest.mark.parametrize("directions, beta, cap", [(LINE, 6.0, 2.0), (PLANE, 3.0, 2.0), (PLANE, 0.0001, 2.0)])
def test_draws_have_the_law(directions, beta, cap):
    # Dvoretzky-Kiefer-Wolfowitz with Massart's constant: 4000 draws miss by more than .045 with probability
    # 2 exp(-2 * 4000 * .045^2) < 2e-7; the grid adds its step times the density, below .01 here.
    d, generator = directions.shape[1], np.random.default_rng(8)
    rows = generator.normal(size=(25, d)) / 2 + 0.3
    ball = Ball(np.full(d, 1.0), np.full(d, 10.0))
    table = OutlyingnessTable(rows, directions, "mad", cap)
    draws = draw_by_branch_and_bound(table, ball.center + rows * ball.radius, ball, beta, SeededBits(2), draws=4000)
    units = (draws - ball.center) / ball.radius
    assert (np.sum(units**2, axis=1) <= 1 + 1e-12).all()
    edges = np.linspace(-0.95, 0.95, 39)
    found = np.array([np.mean(units[:, 0] < edge) for edge in edges])
    expected = law_of_first_coordinate(rows, directions, "mad", cap, beta, edges)
    assert np.abs(found - expected).max() < 0.055


def test_a_table_without_spread_still_draws():
    # A scale of 0 in every direction: passing the test has probability delta there, and must not end in an error.
    rows, ball = np.tile([math.pi / 10, -math.e / 10], (9, 1)), Ball(np.zeros(2), np.full(2, 5.0))
    table = OutlyingnessTable(ball.units(rows), PLANE, "mad", NO_CAP)
    draws = draw_by_branch_and_bound(table, rows, ball, 1.0, SeededBits(3), draws=50)
    assert (np.linalg.norm(draws, axis=1) <= 5).all() and draws.std() > 1  # the cap everywhere: uniform
    assert first_above(table.diameters(None), 1.0, 9) == 1
