"""Boxes against brute force and the ring form, and their exact privacy loss in the plane."""

import functools
import math
from fractions import Fraction

import exact_grid
import numpy as np
import pytest
from exact_laws import (
    boxes_of,
    brute_force_law,
    keys_of,
    law_of_boxes,
    level_log_weights,
    log_of,
    log_of_scaled,
    partition,
    plan_of,
    tables,
    worst_log_ratio,
)

from pymc_dpdepth.samplers.boxes import BoxLaw, box_masses, tied_level

SLACK = 1e-9  # on log ratios, for rounding; masses and weights are right to about 1e-13
EPSILON = 1.5
# Values of one coordinate: both sides of the prior's centre, the centre itself, and a row so far off that its cell is a
# far tail.
GRID = [-20.0, -0.2, 0.0, 0.7, 20.0]


def box_law(plan, rows):
    law = plan._law(keys_of(plan, rows), plan.frame.floors())
    assert isinstance(law, BoxLaw)
    return law


def weights_of(law):
    return level_log_weights(law)


# Planted bugs: each takes a law and returns wrong level log weights.


def beta_doubled(law):
    return level_log_weights(law, unit_factor=2)


def bottom_level_too_light(law):
    weights = weights_of(law)
    weights[0] = math.log(-math.expm1(-EPSILON / 2))
    return weights


def stopped_at_half(law):
    weights = weights_of(law)
    weights[-1] = -np.inf
    return weights


def one_level_off(law):
    weights = weights_of(law)
    weights[1:] += EPSILON / 2
    return weights


def bottom_level_forgotten(law):
    weights = weights_of(law)
    weights[0] = -np.inf
    return weights


BUGS = [beta_doubled, bottom_level_too_light, stopped_at_half, one_level_off, bottom_level_forgotten]


# The law


def axes_of(plan, keys):
    return [partition(row, floors) for row, floors in zip(keys, plan.frame.floors(), strict=True)]


def random_tables(seed):
    """Yield (n, d, prior, rows) with ties along axes: few values for each coordinate, some of them far."""
    generator = np.random.default_rng(seed)
    for n in range(1, 7):
        for d in (2, 3):
            for prior in ("normal", "uniform"):
                for values in (
                    GRID,
                    [0.3],
                    [0.3] * 9 + [1.0],
                    [-0.4, 0.4],
                    [-1.0, 0.0, 1.0],
                    generator.normal(size=7).tolist(),
                ):
                    yield n, d, prior, generator.choice(values, size=(n, d))


def test_the_law_is_that_of_brute_force():
    highest = set()
    for n, d, prior, rows in random_tables(1):
        plan = plan_of("halfspace", n, d, EPSILON, prior)
        law = box_law(plan, rows)
        axes = axes_of(plan, law.keys)
        computed = law_of_boxes(law, axes, weights_of(law))
        np.testing.assert_allclose(computed, brute_force_law("halfspace", EPSILON, axes, law.keys), atol=1e-10, rtol=0)
        highest.add((n, int(tied_level(law.keys))))
    # All levels from ceil(n/2) to n occurred, those above n/2 through ties.
    assert highest >= {(n, level) for n in range(1, 7) for level in ((n + 1) // 2, n)}
    assert {(5, 4), (6, 4), (6, 5)} <= highest


@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_change_the_law(bug):
    worst = 0.0
    for n, d, prior, rows in random_tables(1):
        plan = plan_of("halfspace", n, d, EPSILON, prior)
        law = box_law(plan, rows)
        axes = axes_of(plan, law.keys)
        with np.errstate(invalid="ignore"):
            difference = law_of_boxes(law, axes, bug(law)) - brute_force_law("halfspace", EPSILON, axes, law.keys)
        worst = max(worst, np.abs(difference).max())
    assert worst > 0.1


def exact_box_mass(keys, floors, level):
    """Return V_level as a fraction: the prior mass of {x_(l) <= theta_j <= x_(n+1-l) for all j}, 1 at level 0."""
    n = keys.shape[1]
    if level == 0:
        return Fraction(1)
    total = Fraction(1)
    for row, (low_floor, high_floor) in zip(keys.tolist(), floors.tolist(), strict=True):
        first, last = row[level - 1], row[n - level]
        if first > last:
            return Fraction(0)
        total *= exact_grid.mass(first, last, low_floor, high_floor)
    return total


def test_the_law_of_the_depth_is_that_of_the_ring_form():
    # Ring k = {D = k/n} has probability proportional to e^(epsilon k/2) (V_k - V_{k+1}); a draw of level l lies in ring
    # k >= l with probability (V_k - V_{k+1}) / V_l.
    for n, d, prior, rows in random_tables(2):
        plan = plan_of("halfspace", n, d, EPSILON, prior)
        law = box_law(plan, rows)
        masses = [exact_box_mass(law.keys, law.floors, level) for level in range(n + 1)]
        masses.append(Fraction(0))
        rings = [masses[k] - masses[k + 1] for k in range(n + 1)]
        ring_weights = np.array([EPSILON * k / 2 + log_of(r) if r > 0 else -np.inf for k, r in enumerate(rings)])
        expected = ring_weights - np.logaddexp.reduce(ring_weights)
        half, weights = (n + 1) // 2, weights_of(law)
        weights -= np.logaddexp.reduce(weights)
        computed = np.full(n + 1, -np.inf)
        for level, weight in enumerate(weights.tolist()):
            box = min(level, half + 1)
            mass = masses[box]
            for k in range(box, n + 1):
                if weight > -np.inf and rings[k] > 0:
                    computed[k] = np.logaddexp(computed[k], weight + log_of(rings[k] / mass))
        np.testing.assert_allclose(computed, expected, atol=1e-10, rtol=0)


def test_boxes_are_those_of_the_order_statistics():
    generator = np.random.default_rng(3)
    for n in (1, 2, 5, 8):
        plan = plan_of("halfspace", n, 2, EPSILON, "normal")
        law = box_law(plan, generator.normal(size=(n, 2)))
        levels, first, last = boxes_of(law, weights_of(law))
        assert levels.tolist() == list(range((n + 1) // 2 + 1))
        assert (first[0] == 0).all() and (last[0] == exact_grid.LAST).all()
        for level in levels[1:]:
            assert first[level].tolist() == law.keys[:, level - 1].tolist()
            assert last[level].tolist() == law.keys[:, n - level].tolist()


@pytest.mark.parametrize(
    ("rows", "level"),
    [
        ([[1, 1]], 1),
        ([[1, 1], [1, 2]], 1),
        ([[1, 1], [1, 1]], 2),
        ([[1, 1], [1, 1], [5, 1]], 2),
        ([[1, 1], [1, 1], [0, 0], [2, 2]], 3),
        ([[1, 1], [1, 1], [1, 1], [2, 2]], 3),
        ([[1, 1], [1, 1], [1, 2], [1, 3]], 2),
        ([[1, 7]] * 6, 6),
        ([[1, 7]] * 3 + [[2, 7]] * 3, 3),
        ([[1, 7]] * 4 + [[2, 7]] * 2, 4),
    ],
)
def test_the_highest_level_of_ties(rows, level):
    keys = np.sort(np.array(rows, dtype=np.int64).T + exact_grid.FIRST_UPPER, axis=1)
    assert tied_level(keys) == level


# The exact privacy loss in the plane


@functools.cache
def laws_of_all_tables(n, values, bug=None):
    """Return the laws of all tables of n rows whose coordinates come from the values, on one partition."""
    points = np.array([(a, b) for a in values for b in values])
    plan = plan_of("halfspace", n, 2, EPSILON, "normal")
    axes = axes_of(plan, keys_of(plan, points))
    laws = {}
    for table in tables(points, n):
        law = box_law(plan, points[list(table)])
        weights = (bug or weights_of)(law)
        laws[table] = law_of_boxes(law, axes, weights)
    return laws, len(points)


def worst_loss(n, values, bug=None):
    laws, count = laws_of_all_tables(n, values, bug)
    worst = 0.0
    for table, p in laws.items():
        for i in range(n):
            for new in range(count):
                worst = max(worst, worst_log_ratio(p, laws[tuple(sorted((*table[:i], new, *table[i + 1 :])))]))
    return worst


FAR = (-20.0, 20.0)
SIZES = [(1, tuple(GRID)), (2, tuple(GRID)), (3, (-20.0, 0.3, 20.0)), (4, FAR), (5, FAR), (6, FAR)]


@pytest.mark.parametrize(("n", "values"), SIZES)
def test_the_worst_loss_is_at_most_epsilon(n, values):
    worst = worst_loss(n, values)
    assert worst <= EPSILON + SLACK
    # Half of epsilon from an atom, the rest from the normalising sum; with one row the sum hardly moves.
    assert worst > (0.99 if n > 1 else 0.49) * EPSILON


@pytest.mark.parametrize(("n", "values"), SIZES[1:])
def test_a_doubled_beta_is_caught(n, values):
    assert worst_loss(n, values, beta_doubled) > EPSILON + 0.5


@pytest.mark.parametrize("bug", [bottom_level_too_light, one_level_off])
def test_wrong_weights_of_levels_are_caught(bug):
    # e^(epsilon/2) - 1 + (1 - e^(-epsilon/2)) at depth 1 against 1 - e^(-epsilon/2) at depth 0, for instance.
    assert max(worst_loss(n, values, bug) for n, values in SIZES[:3]) > EPSILON + 0.1


def test_no_bottom_level_gives_an_infinite_loss():
    laws, _ = laws_of_all_tables(1, tuple(GRID), bottom_level_forgotten)
    with pytest.raises(AssertionError):
        worst_log_ratio(laws[(0,)], laws[(1,)])


def test_losses_with_uniform_priors_and_rows_at_their_ends():
    values = (-1.0, 0.0, 1.0, 9.0)  # 9 lies in the outermost cell, with 1
    points = np.array([(a, b) for a in values for b in values])
    plan = plan_of("halfspace", 2, 2, EPSILON, "uniform")
    axes = axes_of(plan, keys_of(plan, points))
    laws = {}
    for table in tables(points, 2):
        law = box_law(plan, points[list(table)])
        laws[table] = law_of_boxes(law, axes, weights_of(law))
    worst = max(worst_log_ratio(laws[(0, 0)], law) for table, law in laws.items() if 0 in table)
    assert 0.5 * EPSILON < worst <= EPSILON + SLACK


# Size


@pytest.mark.parametrize("d", [1, 3, 999, 1000, 1001, 2500])
def test_masses_of_many_directions_neither_underflow_nor_overflow(d):
    generator = np.random.default_rng(4)
    n = 6
    rows = generator.normal(size=(n, d)) * np.exp2(generator.integers(-30, 5, size=(1, d)))
    keys = keys_of(plan_of("halfspace", n, d, EPSILON, "normal"), rows)
    floors = np.full((d, 2), exact_grid.NO_END)
    expected = [
        math.fsum(
            log_of(exact_grid.mass(*row[[level - 1, n - level]].tolist(), *[exact_grid.NO_END] * 2)) for row in keys
        )
        for level in (1, 2, 3)
    ]
    # Each product of d significands carries d roundings of 2^-53: 3e-13 at d = 2500; the sum is of order d * 20.
    np.testing.assert_allclose(log_of_scaled(*box_masses(keys, floors)), expected, rtol=1e-13, atol=1e-12)


def test_a_draw_in_a_thousand_directions():
    from pymc_dpdepth.randomness import SeededBits

    n, d = 400, 1000
    generator = np.random.default_rng(5)
    plan = plan_of("halfspace", n, d, 500.0, "normal")
    rows = generator.normal(size=(n, d))
    (theta,) = plan.draw(rows, SeededBits(1), 1)
    # beta D = epsilon k / 2 = 250 k pays for halving the box in every one of 1000 directions (693) within 3 levels, so
    # the draw is deep: at least 40% of the rows on either side of every coordinate, where a prior draw has 0.
    below, above = (rows <= theta).sum(axis=0), (rows >= theta).sum(axis=0)
    assert np.minimum(below, above).min() >= 0.4 * n


def test_levels_of_a_thousand_directions_are_weighed_right():
    n, d = 5, 1000
    rows = np.random.default_rng(6).normal(size=(n, d))
    plan = plan_of("halfspace", n, d, 900.0, "normal")
    law = box_law(plan, rows)
    weights = level_log_weights(law)
    for level in (1, 2, 3):
        runs = law.keys[:, [level - 1, n - level]].tolist()
        exact = math.fsum(log_of(exact_grid.mass(*run, *[exact_grid.NO_END] * 2)) for run in runs)
        # log V is about -1400, a double with spacing 2e-13, and a product of 1000 masses with 3 roundings each.
        assert weights[level] == pytest.approx(exact + 450.0 * level, abs=1e-12)
    assert weights[0] == 0.0 and weights[-1] == -np.inf
