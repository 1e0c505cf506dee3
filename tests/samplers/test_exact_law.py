"""The law itself in fractions: the weights that the samplers hold, and its privacy loss without any slack.

The base b of the weights is rational, so the law that `choose` and `draw_cells` realise is one, too. The loss of small
tables is worked out here as a fraction and compared with b^-2 >= e^-epsilon's bound: no rounding anywhere.
"""

import itertools
from fractions import Fraction

import exact_grid
import numpy as np
import pytest
from exact_laws import keys_of, plan_of, tables

from pymc_dpdepth.samplers.boxes import BoxLaw, level_weights
from pymc_dpdepth.samplers.segments import SEGMENT_ROUNDINGS, SegmentLaw, segment_counts, segment_weights, segments_of
from pymc_dpdepth.samplers.weights import ROUNDOFF, WeightBase

EPSILON = 1.5
VALUES = np.array([-25.0, -0.3, 0.0, 0.4, 25.0])


def fraction_of(base):
    return Fraction(base.numerator, 2**base.shift)


def segments(law, j=0):
    """Return (first, last, weight) of the segments, by direct counting of the keys."""
    keys, floors, b = law.keys[j].tolist(), law.floors[j].tolist(), fraction_of(law.base)
    pieces, below = [], 0
    for i, key in enumerate(keys):
        pieces += [(below, key - 1), (key, key) if i == len(keys) - 1 or keys[i + 1] != key else (key, key - 1)]
        below = key + 1
    pieces.append((below, exact_grid.LAST))
    counts, masses = [], []
    for first, last in pieces:
        le, ge = sum(k <= first for k in keys), sum(k >= first for k in keys)
        counts.append(le * ge if law.code else min(le, ge))
        masses.append(exact_grid.mass(first, last, *floors) if first <= last else Fraction(0))
    top = max(count for count, mass in zip(counts, masses, strict=True) if mass)
    return [
        (first, last, mass * b ** (top - count) if mass else Fraction(0))
        for (first, last), count, mass in zip(pieces, counts, masses, strict=True)
    ]


def levels(law):
    """Return (boxes, weight) of the levels 0, ..., ceil(n/2) and the ties above, from the telescoping sum of a^k."""
    n, b = law.keys.shape[1], fraction_of(law.base)
    half = (n + 1) // 2
    rows = law.keys.tolist()
    highest = max(k for k in range(1, n + 1) if k <= half or all(row[k - 1] <= row[n - k] for row in rows))
    boxes = [[(0, exact_grid.LAST)] * len(rows)]
    weights = [b**highest]
    for k in range(1, highest + 1):
        boxes.append([(row[k - 1], row[n - k]) for row in rows])
        mass = Fraction(1)
        # Above n/2 the box is the median's cell, though the order statistics of the level have crossed.
        for (first, last), floors in zip(boxes[min(k, half)], law.floors.tolist(), strict=True):
            first, last = (first, last) if k <= half else (min(first, last),) * 2
            mass *= exact_grid.mass(first, last, *floors)
        weights.append(mass * (b ** (highest - k) - b ** (highest - k + 1)))
    return boxes, [*weights[: half + 1], sum(weights[half + 1 :])]


def assert_held(significands, exponents, roundings, intervals, exact):
    """Compare a sampler's doubles and integers with the weights as fractions."""
    for s, e, interval, weight in zip(significands.tolist(), exponents.tolist(), intervals, exact, strict=True):
        if weight == 0:
            assert s == 0 and interval.high == 0
            continue
        assert abs(Fraction(s) * Fraction(2) ** e / weight - 1) <= roundings * ROUNDOFF
        unit = Fraction(2) ** interval.exponent
        assert interval.low * unit <= weight <= interval.high * unit
        assert (interval.high - interval.low) * unit <= weight / 2**100


@pytest.mark.parametrize("name", ["halfspace", "integrated_rank_weighted", "integrated_dual"])
@pytest.mark.parametrize("prior", ["normal", "uniform"])
def test_segments_hold_the_weights(name, prior):
    generator = np.random.default_rng(1)
    for n in (1, 2, 3, 7, 40):
        for pool in (VALUES, generator.normal(size=n), np.array([0.25])):
            plan = plan_of(name, n, 1, EPSILON, prior)
            law = plan._law(keys_of(plan, generator.choice(pool, size=(n, 1))), plan.frame.floors())
            ends, counts = segments_of(law.keys[0]), segment_counts(law.keys[0], law.code)
            held = segment_weights(*ends, counts, *law.floors[0], *law.base.table)
            exact = [weight for _, _, weight in segments(law)]
            assert_held(*held, SEGMENT_ROUNDINGS, law.intervals(0, 192), exact)


@pytest.mark.parametrize("d", [2, 3])
def test_boxes_hold_the_weights(d):
    generator = np.random.default_rng(2)
    highest = set()
    for n in (1, 2, 3, 5, 6, 20):
        for pool in (VALUES, generator.normal(size=n), np.array([0.25]), np.array([0.25] * 9 + [1.0])):
            plan = plan_of("halfspace", n, d, EPSILON, "normal")
            law = plan._law(keys_of(plan, generator.choice(pool, size=(n, d))), plan.frame.floors())
            _, exact = levels(law)
            assert_held(*level_weights(law.keys, law.floors, law.base), law.intervals(192), exact)
            highest.add(exact[-1] > 0)
    assert highest == {True, False}


def segment_masses(law, cells):
    """Return the probability of a cell relative to its prior mass, for each cell, as fractions."""
    pieces = segments(law)
    total = sum(weight for _, _, weight in pieces)
    found = []
    for cell in cells:
        ((first, last, weight),) = [piece for piece in pieces if piece[0] <= cell <= piece[1]]
        found.append(weight / exact_grid.mass(first, last, *law.floors[0].tolist()) / total)
    return found


def box_masses(law, cells):
    """Return the same for vectors of cells."""
    boxes, weights = levels(law)
    n = law.keys.shape[1]
    half = (n + 1) // 2
    median = [(row[half - 1],) * 2 for row in law.keys.tolist()]
    found = []
    for cell in cells:
        density = Fraction(0)
        for box, weight in zip([*boxes[: half + 1], median], weights, strict=True):
            if weight and all(a <= k <= b for k, (a, b) in zip(cell, box, strict=True)):
                masses = [exact_grid.mass(a, b, *f) for (a, b), f in zip(box, law.floors.tolist(), strict=True)]
                density += weight / np.prod(masses)
        found.append(density / sum(weights))
    return found


def representatives(keys, floors):
    """Return a cell of every piece of a line that the keys cut, without those that have no mass."""
    cuts = {int(key) for key in np.ravel(keys)}
    cells = cuts | {max(c - 1, 0) for c in cuts} | {min(c + 1, exact_grid.LAST) for c in cuts}
    return [cell for cell in sorted(cells) if exact_grid.mass(cell, cell, *floors) > 0]


def worst_ratio(laws_of, n, count):
    """Return the largest ratio of the laws of neighbouring tables of n rows from `count` points."""
    laws = {table: laws_of(table) for table in tables(range(count), n)}
    return max(
        p / q
        for table, law in laws.items()
        for i, new in itertools.product(range(n), range(count))
        for p, q in zip(law, laws[tuple(sorted((*table[:i], new, *table[i + 1 :])))], strict=True)
    )


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["halfspace", "integrated_rank_weighted", "integrated_dual"])
def test_the_loss_of_segments_is_at_most_what_the_base_says(name, n):
    plan = plan_of(name, n, 1, EPSILON, "normal")
    floors = plan.frame.floors()
    cells = representatives(keys_of(plan, VALUES[:, None]), floors[0].tolist())

    def law_of(table, factor=1):
        law = plan._law(keys_of(plan, VALUES[list(table)][:, None]), floors)
        base = plan.base if factor == 1 else WeightBase.of(plan.base.unit * factor)
        return segment_masses(SegmentLaw(law.keys, law.floors, law.code, base), cells)

    # A row moves n counts of the dual depth or one of the others, in the density and again in the sum.
    counts = n if name == "integrated_dual" else 1
    bound = fraction_of(plan.base) ** (-2 * counts)
    worst = worst_ratio(law_of, n, len(VALUES))
    assert fraction_of(plan.base) ** (-counts // 2) < worst <= bound
    if n > 1:
        assert worst_ratio(lambda table: law_of(table, 2), n, len(VALUES)) > bound


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_loss_of_boxes_is_at_most_what_the_base_says(n):
    points = np.array(list(itertools.product(VALUES[::2], VALUES[::2])))[:: 1 if n < 3 else 2]
    plan = plan_of("halfspace", n, 2, EPSILON, "normal")
    floors = plan.frame.floors()
    lines = [representatives(row, f) for row, f in zip(keys_of(plan, points), floors.tolist(), strict=True)]
    cells = list(itertools.product(*lines))

    def law_of(table, factor=1):
        base = plan.base if factor == 1 else WeightBase.of(plan.base.unit * factor)
        return box_masses(BoxLaw(keys_of(plan, points[list(table)]), floors, base), cells)

    bound = fraction_of(plan.base) ** -2
    worst = worst_ratio(law_of, n, len(points))
    assert worst <= bound
    if n > 1:
        assert worst > bound * Fraction(9, 10)
        assert worst_ratio(lambda table: law_of(table, 2), n, len(points)) > bound
