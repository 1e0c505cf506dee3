"""The exact privacy loss of the computed laws, over neighbouring tables, cell by cell.

Between the keys of two tables nothing changes, so the largest log ratio over finitely many representative cells is the
privacy loss itself: no estimate, no sampling. The laws are taken from the weights that the samplers draw with, so a
wrong beta, a lost level or a forgotten tie shows here. Masses are rational (`exact_grid`).
"""

import itertools
import math
from fractions import Fraction

import exact_grid
import exact_laws
import numpy as np
import pymc as pm
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from pymc_dpdepth.depths import Directions, Halfspace, IntegratedDual, IntegratedRankWeighted
from pymc_dpdepth.mechanism import set_up
from pymc_dpdepth.samplers.boxes import BoxLaw
from pymc_dpdepth.samplers.exact import plan_exact
from pymc_dpdepth.samplers.segments import segments_of
from pymc_dpdepth.samplers.weights import WeightBase

# Weights are sums of logs and exponents of at most a few hundred, with an error of 1e-13 each.
SLACK = 1e-9
DEPTHS = [Halfspace("axes"), IntegratedRankWeighted(), IntegratedDual()]
PRIORS = {
    "normal": (pm.Normal.dist(0, 1, shape=1), [-40.0, -6.0, -0.5, 0.0, 1e-9, 0.5, 40.0]),
    "uniform": (pm.Uniform.dist(0, 1, shape=1), [-3.0, 0.0, 1e-13, 0.25, 0.5, 1.0, 2.0]),
    "exponential": (pm.Exponential.dist(2.0, shape=1), [-1.0, 0.0, 0.1, 0.3465, 5.0, 400.0]),
}


def plan_and_keys(rows, prior, depth, epsilon):
    """Return the exact plan of a table and the sorted keys that it draws with."""
    mechanism, product, rows = set_up("m", prior, rows, depth=depth, epsilon=epsilon)
    plan = plan_exact(mechanism, product)
    return plan, np.sort(plan.frame.keys(rows), axis=1)


def representatives(keys):
    """Return one cell of every piece of the line that the keys of both tables make."""
    cuts = sorted(set(np.asarray(keys).tolist()))
    cells = set(cuts)
    for cut in cuts:
        cells |= {max(cut - 1, 0), min(cut + 1, exact_grid.LAST)}
    return sorted(cells)


def log_of(fraction: Fraction) -> float:
    """Logarithm of a rational number that may be too small for a double."""
    return math.log(fraction.numerator) - math.log(fraction.denominator)


def segment_density(law, cells, factor=1.0):
    """Return the log density, relative to the prior, of a segment law at cells, by its own weights."""
    (keys,), ((low, high),) = law.keys, law.floors
    if factor != 1.0:
        law = type(law)(law.keys, law.floors, law.code, WeightBase.of(law.base.unit * Fraction(factor)))
    weights = exact_laws.segment_log_weights(law)
    first, last = segments_of(keys)
    total, densities = logsumexp(weights), []
    for cell in cells:
        (index,) = [i for i in range(len(first)) if first[i] <= cell <= last[i]]
        mass = exact_grid.mass(int(first[index]), int(last[index]), int(low), int(high))
        densities.append(weights[index] - log_of(mass) - total if mass else -np.inf)
    return np.array(densities)


def box_density(keys, floors, epsilon, cells, bug=None):
    """Return the log density, relative to the prior, of the box law at vectors of cells.

    `bug` plants a mistake: "beta" doubles it, "bottom" weights level 0 by 1 - exp(-epsilon/2), "stop" forgets what
    ties open above n/2, "shift" takes the next smaller box for a level.
    """
    count, n = keys.shape
    half = (n + 1) // 2
    law = BoxLaw(keys, floors, WeightBase.of(Fraction(epsilon) / 2))
    weights = exact_laws.level_log_weights(law, unit_factor=2 if bug == "beta" else 1)
    if bug == "bottom":
        weights[0] += math.log(-math.expm1(-epsilon / 2))
    if bug == "stop":
        weights[-1] = -np.inf
    boxes = [[(0, exact_grid.LAST)] * count]
    for level in range(1, half + 1):
        shown = min(level + 1, half) if bug == "shift" else level
        boxes.append([(int(row[shown - 1]), int(row[n - shown])) for row in keys])
    boxes.append([(int(row[half - 1]), int(row[half - 1])) for row in keys])
    per_mass = []
    for weight, box in zip(weights, boxes, strict=True):
        masses = [exact_grid.mass(a, b, int(low), int(high)) for (a, b), (low, high) in zip(box, floors, strict=True)]
        per_mass.append(weight - sum(map(log_of, masses)) if np.isfinite(weight) else -np.inf)
    total = logsumexp(weights)
    return np.array(
        [
            logsumexp(
                [
                    value
                    for value, box in zip(per_mass, boxes, strict=True)
                    if all(a <= k <= b for k, (a, b) in zip(cell, box, strict=True))
                ]
            )
            - total
            for cell in cells
        ]
    )


def positive_mass(cells, floors):
    """Keep the cells that the prior can draw: those beyond a floor have mass 0."""
    ((low, high),) = floors
    return [cell for cell in cells if exact_grid.mass(cell, cell, int(low), int(high)) > 0]


def segment_loss(x, y, prior, depth, epsilon, factor=1.0):
    """Return the largest absolute log ratio of the two tables' laws in one dimension."""
    laws = []
    for rows in (x, y):
        plan, keys = plan_and_keys(np.array(rows)[:, None], prior, depth, epsilon)
        laws.append(plan._law(keys, plan.frame.floors()))
    cells = positive_mass(representatives(np.concatenate([law.keys[0] for law in laws])), laws[0].floors)
    densities = [segment_density(law, cells, factor) for law in laws]
    return np.abs(densities[0] - densities[1]).max()


@st.composite
def neighbours(draw, pool):
    """Two tables of 1 to 5 rows that differ in one."""
    x = draw(st.lists(st.sampled_from(pool) | st.floats(-1e6, 1e6), min_size=1, max_size=5))
    y = list(x)
    y[draw(st.integers(0, len(x) - 1))] = draw(st.sampled_from(pool) | st.floats(-1e6, 1e6))
    return x, y


@pytest.mark.parametrize("depth", DEPTHS, ids=lambda depth: depth.name)
@pytest.mark.parametrize("name", PRIORS)
def test_segments_never_lose_more_than_epsilon(depth, name):
    prior, pool = PRIORS[name]

    @settings(max_examples=40, deadline=None, derandomize=True)
    @given(neighbours(pool), st.sampled_from([0.1, 1.0, 8.0]))
    def attack(tables, epsilon):
        assert segment_loss(*tables, prior, depth, epsilon) <= epsilon + SLACK

    attack()


def worst_in_unit_interval(depth, others, epsilon, factor=1.0):
    """Return the largest loss over moves of one row, with most prior mass beside the other rows."""
    prior = pm.Uniform.dist(0, 1, shape=1)
    places = [1e-9, 0.001, 0.5, 1 - 1e-9, 1.0]
    return max(
        segment_loss([*others, a], [*others, b], prior, depth, epsilon, factor)
        for a, b in itertools.permutations(places, 2)
    )


@pytest.mark.parametrize("depth", DEPTHS, ids=lambda depth: depth.name)
@pytest.mark.parametrize("n", [2, 5])
def test_a_doubled_beta_is_caught(depth, n):
    # As in docs/sensitivity.md: rows at one end, so that the normalising constants move as far as the density does.
    epsilon = 1.0
    assert worst_in_unit_interval(depth, [0.001] * (n - 1), epsilon) <= epsilon + SLACK
    assert worst_in_unit_interval(depth, [0.001] * (n - 1), epsilon, factor=2.0) > 1.2 * epsilon


@pytest.mark.parametrize("depth", DEPTHS, ids=lambda depth: depth.name)
def test_one_row_loses_half_of_epsilon(depth):
    # The depth is 1 on the row's cell and 0 elsewhere; the cell has next to no prior mass, so the constants stay.
    assert worst_in_unit_interval(depth, [], 1.0) == pytest.approx(0.5, abs=1e-9)


def box_loss(x, y, prior, epsilon, bug=None):
    """Return the largest absolute log ratio of the box laws of two tables in the plane."""
    tables = []
    for rows in (x, y):
        plan, keys = plan_and_keys(np.array(rows, dtype=float), prior, Halfspace(Directions.axes(2)), epsilon)
        tables.append(keys)
    floors = plan.frame.floors()
    axes = [
        positive_mass(representatives(np.concatenate([keys[j] for keys in tables])), floors[j : j + 1]) for j in (0, 1)
    ]
    cells = list(itertools.product(*axes))
    densities = [box_density(keys, floors, epsilon, cells, bug) for keys in tables]
    return np.abs(densities[0] - densities[1]).max()


POINTS = [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (2.0, 2.0)]
PLANE = pm.Normal.dist([0.0, 1.0], 1.5, shape=2)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_boxes_never_lose_more_than_epsilon(n):
    for others in itertools.combinations_with_replacement(POINTS, n - 1):
        for a, b in itertools.combinations(POINTS, 2):
            assert box_loss([*others, a], [*others, b], PLANE, 1.0) <= 1.0 + SLACK


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.data())
def test_boxes_never_lose_more_than_epsilon_on_random_neighbours(data):
    entry = st.sampled_from([-40.0, -1.0, 0.0, 1.0, 40.0]) | st.floats(-3, 3)
    row = st.tuples(entry, entry)
    x = data.draw(st.lists(row, min_size=1, max_size=6))
    y = list(x)
    y[data.draw(st.integers(0, len(x) - 1))] = data.draw(row)
    epsilon = data.draw(st.sampled_from([0.1, 2.0]))
    assert box_loss(x, y, PLANE, epsilon) <= epsilon + SLACK


# A bottom level that is too light shows where epsilon is small: the step from depth 0 to 1/n is then log 2 or more.
@pytest.mark.parametrize(("bug", "epsilon"), [("beta", 8.0), ("bottom", 0.1), ("shift", 8.0)])
def test_planted_bugs_break_the_boxes(bug, epsilon):
    near, far = (0.0, 0.0), (40.0, 40.0)
    pairs = [
        ((*others, a), (*others, b))
        for others in ((near,) * 5, (near,) * 4, (near, near, far, far), (), (far,) * 3)
        for a, b in itertools.permutations([near, far], 2)
    ]
    worst = {kind: max(box_loss(x, y, PLANE, epsilon, kind) for x, y in pairs) for kind in (None, bug)}
    assert worst[None] <= epsilon + SLACK < worst[bug], worst


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_boxes_are_the_ring_form(n):
    # exp(epsilon k / 2) (V_k - V_{k+1}) is the mass of the points of depth exactly k/n: another way to the same law.
    generator = np.random.default_rng(n)
    tied = np.zeros((n, 2))
    tied[n - 1] = 1.0  # all rows but one equal: levels up to n - 1 are not empty
    for rows in (generator.normal(size=(n, 2)), generator.integers(0, 2, size=(n, 2)).astype(float), tied):
        plan, keys = plan_and_keys(rows, PLANE, Halfspace(Directions.axes(2)), 1.0)
        floors = plan.frame.floors()
        masses = [Fraction(1)]
        for level in range(1, n + 1):
            runs = [(int(row[level - 1]), int(row[n - level])) for row in keys]
            inside = all(a <= b for a, b in runs)
            parts = [exact_grid.mass(a, b, int(f[0]), int(f[1])) for (a, b), f in zip(runs, floors, strict=True)]
            masses.append(parts[0] * parts[1] if inside else Fraction(0))
        masses.append(Fraction(0))
        rings = [masses[k] - masses[k + 1] for k in range(n + 1)]
        total = logsumexp([log_of(r) + k / 2 for k, r in enumerate(rings) if r])
        cells = list(itertools.product(*(positive_mass(representatives(keys[j]), floors[j : j + 1]) for j in (0, 1))))
        expected = [
            min(min(np.sum(row <= k), np.sum(row >= k)) for row, k in zip(keys, cell, strict=True)) / 2 - total
            for cell in cells
        ]
        np.testing.assert_allclose(box_density(keys, floors, 1.0, cells), expected, atol=1e-11)
        if rows is tied and n > 3:  # levels above n/2: forgetting them keeps epsilon, but is another law
            assert np.abs(box_density(keys, floors, 1.0, cells, "stop") - expected).max() > 0.4


@pytest.mark.parametrize("depth", [IntegratedRankWeighted(), IntegratedDual()], ids=lambda depth: depth.name)
def test_products_never_lose_more_than_epsilon(depth):
    # Independent directions: the log ratios add up, so the joint loss is the sum of the worst ones of each sign.
    epsilon = 1.0
    worst = 0.0
    for a, b in itertools.permutations(POINTS, 2):
        for others in itertools.combinations_with_replacement(POINTS, 2):
            densities, floors = [], None
            plans = [plan_and_keys(np.array([*others, row]), PLANE, depth, epsilon) for row in (a, b)]
            floors = plans[0][0].frame.floors()
            ratios = []
            for j in (0, 1):
                cells = positive_mass(
                    representatives(np.concatenate([keys[j] for _, keys in plans])), floors[j : j + 1]
                )
                densities = []
                for plan, keys in plans:
                    law = plan._law(keys, floors)
                    one = type(law)(law.keys[j : j + 1], law.floors[j : j + 1], law.code, law.base)
                    densities.append(segment_density(one, cells))
                ratios.append(densities[0] - densities[1])
            worst = max(worst, sum(r.max() for r in ratios), -sum(r.min() for r in ratios))
    assert 0.5 * epsilon < worst <= epsilon + SLACK
