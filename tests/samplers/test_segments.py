"""Segments against brute force, and their exact privacy loss over neighbouring tables."""

import functools
from fractions import Fraction

import exact_grid
import numpy as np
import pytest
from exact_laws import (
    DEPTHS,
    brute_force_law,
    floors_of,
    keys_of,
    law_of_segments,
    partition,
    plan_of,
    tables,
    worst_log_ratio,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from pymc_dpdepth.samplers.segments import SegmentLaw, segments_of
from pymc_dpdepth.samplers.weights import WeightBase

SLACK = 1e-9  # on log ratios, for rounding: weights and their sums are right to about 1e-13

# Rows that stress the grid: the prior's centre and the cells beside it, rows at and beyond finite ends, far-off rows,
# and near ones. (The uniform prior lives on [-1, 1].)
VALUES = [0.0, -5e-324, 1e-13, 0.3, -0.3, 1.0, -1.0, np.nextafter(1.0, 0.0), -1.0 + 1e-12, 25.0, -25.0, 1e9, -1e9]


@st.composite
def neighbouring_tables(draw):
    """Return two tables of 1 to 5 rows that differ in one row; few values, so ties are common."""
    pool = draw(st.lists(st.sampled_from(VALUES) | st.floats(-3, 3), min_size=1, max_size=4))
    rows = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=5))
    other = list(rows)
    other[draw(st.integers(0, len(rows) - 1))] = draw(st.sampled_from([*pool, *VALUES]))
    return np.array(rows)[:, None], np.array(other)[:, None]


def segment_law(plan, rows, unit_factor=1.0):
    keys = keys_of(plan, rows)
    law = plan._law(keys, plan.frame.floors())
    assert isinstance(law, SegmentLaw)
    base = law.base if unit_factor == 1.0 else WeightBase.of(law.base.unit * Fraction(unit_factor))
    return SegmentLaw(law.keys, law.floors, law.code, base)


def laws(name, epsilon, prior, x, y, unit_factor=1.0):
    """Return the package's log probabilities of the common pieces of two tables, and those by brute force."""
    plan = plan_of(name, len(x), 1, epsilon, prior)
    keys = [keys_of(plan, rows) for rows in (x, y)]
    axis = partition(np.concatenate(keys, axis=None), plan.frame.floors()[0])
    computed = [law_of_segments(segment_law(plan, rows, unit_factor), axis) for rows in (x, y)]
    expected = [brute_force_law(name, epsilon, [axis], k, unit_factor) for k in keys]
    return computed, expected


@pytest.mark.parametrize("prior", ["normal", "uniform"])
@pytest.mark.parametrize("name", DEPTHS)
@settings(max_examples=120, deadline=None, derandomize=True, database=None)
@given(pair=neighbouring_tables(), epsilon=st.sampled_from([0.1, 1.0, 5.0, 60.0]))
def test_the_law_is_that_of_brute_force_and_its_loss_is_at_most_epsilon(name, prior, pair, epsilon):
    computed, expected = laws(name, epsilon, prior, *pair)
    for law, brute in zip(computed, expected, strict=True):
        # Masses are right to two roundings, exponents below 1e3 to 1e-13; 1e-10 leaves room for the sums.
        np.testing.assert_allclose(law, brute, rtol=0, atol=1e-10)
    assert worst_log_ratio(*computed) <= epsilon + SLACK
    assert worst_log_ratio(*expected) <= epsilon + SLACK


@functools.cache
def exhaustive_worst(name, n, epsilon, unit_factor=1.0):
    """Return the worst log ratio over all tables of n rows from five values and all their neighbours."""
    points = np.array([-25.0, -0.3, 0.0, 0.4, 25.0])[:, None]
    plan = plan_of(name, n, 1, epsilon, "normal")
    axis = partition(keys_of(plan, points).ravel(), plan.frame.floors()[0])
    law = {t: law_of_segments(segment_law(plan, points[list(t)], unit_factor), axis) for t in tables(points, n)}
    worst = 0.0
    for table, p in law.items():
        for i in range(n):
            for new in range(len(points)):
                worst = max(worst, worst_log_ratio(p, law[tuple(sorted((*table[:i], new, *table[i + 1 :])))]))
    return worst


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("name", DEPTHS)
def test_the_worst_loss_of_small_tables_is_at_most_epsilon(name, n):
    epsilon = 1.5
    worst = exhaustive_worst(name, n, epsilon)
    assert worst <= epsilon + SLACK
    # The attack has teeth: half the loss comes from one atom alone, and more from the normalising sums.
    assert worst > epsilon / 2 + 1e-3 if n > 1 else worst > epsilon / 2 - 1e-3


@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("name", DEPTHS)
def test_a_doubled_beta_is_caught(name, n):
    epsilon = 1.5
    assert exhaustive_worst(name, n, epsilon, unit_factor=2.0) > epsilon + 0.3


# One far row more on the right makes nearly the whole line one count deeper (its share of the normalising sum), and the
# atom of the far left rows one count shallower: epsilon / 2 each. For the product depth these are n - 1 and n of n.
TIGHT = {
    "halfspace": (np.array([-20.0, 20.0]), np.array([-20.0, -20.0]), 1.0),
    "integrated_rank_weighted": (np.array([-20.0, 20.0]), np.array([-20.0, -20.0]), 1.0),
    "integrated_dual": (np.array([-20.0] * 9 + [20.0]), np.array([-20.0] * 10), 1 - 1 / 20),
}


@pytest.mark.parametrize("name", DEPTHS)
def test_the_bound_is_attained_and_a_doubled_beta_exceeds_it_on_the_same_pair(name):
    epsilon = 2.0
    x, y, share = TIGHT[name]
    computed, expected = laws(name, epsilon, "normal", x[:, None], y[:, None])
    assert share > 0.9
    assert worst_log_ratio(*computed) == pytest.approx(share * epsilon, abs=1e-9)
    assert worst_log_ratio(*expected) == pytest.approx(share * epsilon, abs=1e-9)
    doubled, _ = laws(name, epsilon, "normal", x[:, None], y[:, None], unit_factor=2.0)
    assert worst_log_ratio(*doubled) > epsilon + 1.0


def test_one_count_too_many_at_an_atom_is_caught():
    # A planted bug: `le` at an atom also counts the next row above it.
    epsilon, n = 1.0, 3
    plan = plan_of("integrated_dual", n, 1, epsilon, "normal")
    x, y = np.array([[-1.0], [-1.0], [2.0]]), np.array([[-1.0], [-1.0], [-1.0]])
    keys = keys_of(plan, x)
    axis = partition(np.concatenate([keys, keys_of(plan, y)], axis=None), plan.frame.floors()[0])
    right = law_of_segments(segment_law(plan, x), axis)
    shifted = SegmentLaw(keys.copy(), *[getattr(segment_law(plan, x), f) for f in ("floors", "code", "base")])
    shifted.keys[0, 2] = shifted.keys[0, 1]
    assert np.abs(law_of_segments(shifted, axis) - right).max() > 0.1
    np.testing.assert_allclose(right, brute_force_law("integrated_dual", epsilon, [axis], keys), atol=1e-10, rtol=0)


def test_segments_cover_every_cell_once():
    generator = np.random.default_rng(1)
    for n in (1, 2, 5, 9):
        keys = np.sort(generator.choice(generator.integers(0, exact_grid.LAST, size=4), size=n))
        first, last = segments_of(keys)
        used = last >= first
        assert first[used][0] == 0 and last[used][-1] == exact_grid.LAST
        assert (first[used][1:] == last[used][:-1] + 1).all()
        assert len(first) == 2 * n + 1


@pytest.mark.parametrize("name", DEPTHS)
def test_large_tables_keep_the_law(name):
    # n = 500 with half the rows tied: sums of 1001 weights against fsum over the pieces of one table.
    generator = np.random.default_rng(2)
    rows = np.where(generator.random(500) < 0.5, 0.25, generator.normal(size=500))[:, None]
    epsilon = 0.3
    plan = plan_of(name, 500, 1, epsilon, "normal")
    keys = keys_of(plan, rows)
    axis = partition(keys[0], plan.frame.floors()[0])
    le = np.searchsorted(keys[0], axis.first, side="right")
    ge = 500 - np.searchsorted(keys[0], axis.first, side="left")
    exponent = epsilon / 2 * (le * ge / 500 if name == "integrated_dual" else np.minimum(le, ge))
    log_weights = exponent + axis.log_masses
    expected = log_weights - np.logaddexp.reduce(log_weights)
    np.testing.assert_allclose(law_of_segments(segment_law(plan, rows), axis), expected, atol=1e-10, rtol=0)


def test_floors_are_those_of_the_prior():
    assert floors_of("normal", 1).tolist() == [[exact_grid.NO_END] * 2]
    assert floors_of("uniform", 1).tolist() == [[exact_grid.FINITE_END] * 2]
