"""Attacks on every claimed sensitivity; each attack must also break a claim that is too small."""

import dataclasses
from fractions import Fraction
from typing import Any, ClassVar

import attacks
import numpy as np
import pytest

from pymc_dpdepth.depths import Directions, Halfspace, IntegratedDual, IntegratedRankWeighted, Projection

TOO_SMALL = Fraction(105, 100)  # a bound divided by this must be broken where it is attained or approached
STEP = [Halfspace, IntegratedRankWeighted, IntegratedDual]
PLANE_DIRECTIONS = [
    Directions.axes(2),
    Directions.from_array([[1, 1], [1, -1], [1, 2], [0, 1]]),
    Directions.orthonormal(2, seed=3),
]


def step_bound(n):
    return Fraction(1, n)


def smoothed_bound(n):
    return Fraction(1, 4) if n == 1 else Fraction(n - 1, n**2)


@pytest.mark.parametrize("n", range(1, 6))
@pytest.mark.parametrize("depth", STEP)
def test_step_depths_on_every_weak_order_of_a_line(depth, n):
    worst = attacks.exhaustive(depth(), n, *attacks.line(n))
    assert not attacks.breaks(worst, step_bound(n))
    assert attacks.breaks(worst, step_bound(n) / TOO_SMALL)
    assert worst == step_bound(n)


@pytest.mark.parametrize("directions", PLANE_DIRECTIONS, ids=lambda directions: directions.kind)
@pytest.mark.parametrize("n", range(1, 4))
@pytest.mark.parametrize("depth", STEP)
def test_step_depths_on_every_table_of_a_planar_grid(depth, n, directions):
    worst = attacks.exhaustive(depth(directions=directions), n, *attacks.plane())
    assert not attacks.breaks(worst, step_bound(n))
    assert attacks.breaks(worst, step_bound(n) / TOO_SMALL)


@pytest.mark.parametrize("smoothing", [0.3, 2.0, 300.0])
@pytest.mark.parametrize("n", range(1, 6))
def test_smoothed_dual_on_every_weak_order_of_a_line(n, smoothing):
    worst = attacks.exhaustive(IntegratedDual(smoothing), n, *attacks.line(n))
    assert not attacks.breaks(worst, smoothed_bound(n))
    if smoothing == 300.0:  # steep enough on a grid of step 1/2 for the supremum to be reached in doubles
        assert attacks.breaks(worst, smoothed_bound(n) / TOO_SMALL)


@pytest.mark.parametrize("directions", PLANE_DIRECTIONS, ids=lambda directions: directions.kind)
@pytest.mark.parametrize("n", range(1, 4))
def test_smoothed_dual_on_every_table_of_a_planar_grid(n, directions):
    for smoothing in (1.0, 300.0):
        depth = IntegratedDual(smoothing, directions=directions)
        worst = attacks.exhaustive(depth, n, *attacks.plane())
        assert not attacks.breaks(worst, smoothed_bound(n))
    if n > 1 or directions.kind != "array":  # one row on the grid cannot be at the middle of every oblique direction
        assert attacks.breaks(worst, smoothed_bound(n) / TOO_SMALL)


SEARCHES = [
    (1, 1, None),
    (2, 1, None),
    (9, 1, None),
    (1, 3, Directions.balanced(3, 7, seed=1)),
    (6, 2, Directions.axes(2)),
    (7, 3, Directions.orthonormal(3, seed=2)),
    (12, 3, Directions.balanced(3, 10, seed=5)),
    (40, 4, Directions.uniform(4, 9, seed=4)),
]


@pytest.mark.parametrize(("n", "d", "directions"), SEARCHES)
@pytest.mark.parametrize("depth", [*STEP, IntegratedDual(30.0)], ids=["halfspace", "irw", "dual", "smoothed"])
def test_adversarial_search(depth, n, d, directions):
    depth = depth.with_directions(directions) if isinstance(depth, IntegratedDual) else depth(directions=directions)
    bound = smoothed_bound(n) if depth.differentiable else step_bound(n)
    worst = attacks.adversarial(depth, n, d, trials=500, seed=n * 10 + d)
    assert not attacks.breaks(worst, bound)
    assert attacks.breaks(worst, bound / TOO_SMALL)


def far_cloud(n, d, new):
    """Return n equal rows far from the origin, and the same with the first row replaced."""
    rows = np.full((n, d), -1000.0) * (1 + np.arange(d) / 10)
    other = rows.copy()
    other[0] = new
    return rows, other


@pytest.mark.parametrize("n", [1, 2, 3, 50, 2001])
@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("depth", STEP)
def test_the_documented_pair_attains_the_step_bound_for_any_directions(depth, n, d):
    """All rows on one side of x in every direction; one of them comes to x itself."""
    depth = depth(directions=Directions.balanced(d, 3 * d + 1, seed=8))
    point = np.zeros((1, d))
    rows, other = far_cloud(n, d, new=0.0)
    difference = depth.evaluate(point, other) - depth.evaluate(point, rows)
    assert difference[0] == pytest.approx(1 / n, rel=1e-12)
    assert depth.sensitivity(n, d) == 1 / n


@pytest.mark.parametrize("n", [2, 3, 50, 2001])
def test_the_documented_pair_approaches_the_smoothed_bound(n):
    """All rows far on one side of x; one of them goes far to the other side."""
    depth = IntegratedDual(5.0, directions=Directions.balanced(3, 10, seed=8))
    rows, other = far_cloud(n, 3, new=1000.0 * (1 + np.arange(3) / 10))
    difference = depth.evaluate(np.zeros((1, 3)), other) - depth.evaluate(np.zeros((1, 3)), rows)
    assert difference[0] == pytest.approx((n - 1) / n**2, rel=1e-12)
    assert depth.sensitivity(n, 3) == (n - 1) / n**2


def test_one_row_smoothed():
    """With one row F is a single logistic: from far (depth 0) to the row at the point (1/4)."""
    depth = IntegratedDual(5.0)
    values = [depth.evaluate([[0.0]], [[row]])[0] for row in (0.0, 100.0)]
    assert values == [0.25, 0.0]
    assert depth.sensitivity(1, 1) == 0.25


@pytest.mark.parametrize("n", [1, 3, 4, 5, 8, 51])
def test_projection_depth_with_mad_moves_by_one(n):
    """Half the rows at -1 and half at 1 (and one at 0 when n is odd), against one row more at -1: the MAD becomes 0."""
    half = n // 2
    rows = np.concatenate([np.full(half, -1.0), np.zeros(n % 2), np.ones(half)])[:, None]
    other = rows.copy()
    if n % 2:
        other[half] = -1.0
    else:
        other[-1] = -1.0
    depth = Projection("mad")
    before, after = depth.evaluate([[0.0]], rows)[0], depth.evaluate([[0.0]], other)[0]
    assert (before, after) == (1.0, 0.0)
    assert depth.sensitivity(n, 1) == 1.0


@pytest.mark.parametrize("n", [1, 2, 4, 9, 101])
@pytest.mark.parametrize("scale", ["mad", "iqr"])
def test_projection_depth_moves_by_as_much_as_one_with_either_scale(scale, n):
    """Rows at 0 and far rows: one row more on either side takes the scale from 0 to far, or moves the median."""
    far = 1e6
    depth = Projection(scale)
    worst = 0.0
    for zeros in range(n + 1):
        rows = np.concatenate([np.zeros(zeros), np.full(n - zeros, far)])[:, None]
        other = rows.copy()
        other[0] = far if zeros else 0.0
        points = [[0.0], [1.0], [far / 2], [far]]
        worst = max(worst, np.abs(depth.evaluate(points, rows) - depth.evaluate(points, other)).max())
    assert worst <= depth.sensitivity(n, 1)
    assert worst > depth.sensitivity(n, 1) / float(TOO_SMALL)


@pytest.mark.parametrize("depth", [*(depth() for depth in STEP), IntegratedDual(1.0), Projection()], ids=repr)
def test_no_rows_and_refused_sizes(depth):
    assert depth.sensitivity(0, 2) == 0.0
    assert depth.upper_bound(0, 2) == 0.0
    for n, d in ((-1, 1), (3, 0)):
        with pytest.raises(ValueError, match="n >= 0 rows and d >= 1"):
            depth.sensitivity(n, d)
        with pytest.raises(ValueError, match="n >= 0 rows and d >= 1"):
            depth.upper_bound(n, d)
    with pytest.raises(TypeError, match="must be integers"):
        depth.sensitivity(2.5, 1)


@pytest.mark.parametrize("n", [1, 2, 7])
@pytest.mark.parametrize("depth", [*(depth() for depth in STEP), IntegratedDual(1.0), Projection()], ids=repr)
def test_upper_bound_is_reached_where_all_rows_equal_the_point(depth, n):
    rows = np.full((n, 3), 2.5)
    assert depth.evaluate(rows[:1], rows)[0] == depth.upper_bound(n, 3)
    generator = np.random.default_rng(n)
    points = generator.standard_normal((200, 3))
    assert depth.evaluate(points, generator.standard_normal((n, 3))).max() <= depth.upper_bound(n, 3)


@pytest.mark.parametrize("n", [1, 2, 10, 101])
@pytest.mark.parametrize("depth", [*(depth() for depth in STEP), IntegratedDual(1e3)], ids=repr)
def test_one_pair_moves_up_by_the_sensitivity_at_one_point_and_down_at_another(depth, n):
    """Hence beta = epsilon / (2 GS): with weight q at the first point the log ratio tends to 2 beta GS as q falls."""
    rows, other = np.zeros((n, 2)), np.zeros((n, 2))
    rows[0], other[0] = -1.0, 1.0
    # On the data for the step dual and at n = 1 (atoms are counted there), between the rows otherwise.
    on_the_data = n == 1 or depth == IntegratedDual()
    points = np.array([[-1.0, -1.0], [1.0, 1.0]]) * (1.0 if on_the_data else 0.5)
    gs, epsilon = depth.sensitivity(n, 2), 1.0
    at_rows, at_other = depth.evaluate(points, rows), depth.evaluate(points, other)
    assert (at_rows - at_other).tolist() == pytest.approx([gs, -gs], rel=1e-12)

    def log_ratio(q, beta):
        weights = np.array([q, 1 - q])
        laws = [
            weights * np.exp(beta * depths) / np.sum(weights * np.exp(beta * depths)) for depths in (at_rows, at_other)
        ]
        return np.log(laws[0][0] / laws[1][0])

    assert log_ratio(1e-9, epsilon / (2 * gs)) == pytest.approx(epsilon, abs=1e-8)
    assert log_ratio(1e-9, epsilon / (2 * gs)) <= epsilon
    assert log_ratio(1e-9, 1.05 * epsilon / (2 * gs)) > 1.04 * epsilon


# Planted bugs: depths that claim more than they keep. Every attack must see them.


@dataclasses.dataclass(frozen=True)
class OpenAndClosed(Halfspace):
    """Adds the strict count to the closed one, as a wrong merge of two conventions would: one row can move both."""

    directions: Any = "auto"
    name: ClassVar[str] = "open_and_closed"

    def evaluate(self, points, X):
        rows, points = np.asarray(X, dtype=float), np.asarray(points, dtype=float)
        le = (rows[None] <= points[:, None]).sum(axis=1)
        strict = (rows[None] < points[:, None]).sum(axis=1)
        return (np.minimum(le, len(rows) - strict) + np.minimum(strict, len(rows) - le)).min(axis=1) / len(rows)


@dataclasses.dataclass(frozen=True)
class CentredOnTheData(IntegratedRankWeighted):
    """Moves the rows to their own mean first: a standardisation that looks at the data."""

    directions: Any = "auto"
    name: ClassVar[str] = "centred_on_the_data"

    def evaluate(self, points, X):
        return super().evaluate(points, np.asarray(X) - np.mean(X, axis=0))


@pytest.mark.parametrize("planted", [OpenAndClosed(), CentredOnTheData()], ids=lambda depth: depth.name)
def test_attacks_see_planted_bugs(planted):
    n = 4
    assert attacks.breaks(attacks.exhaustive(planted, n, *attacks.line(n)), planted.sensitivity(n, 1))
    assert attacks.breaks(attacks.adversarial(planted, n, 1, trials=500, seed=0), planted.sensitivity(n, 1))
