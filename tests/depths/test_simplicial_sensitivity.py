"""Attacks on the sensitivity of simplicial depth, (d + 1) / n for n > d and 0 else; a smaller claim must fall."""

import itertools
import math
from fractions import Fraction

import attacks
import numpy as np
import pytest

from pymc_dpdepth.depths import Simplicial
from pymc_dpdepth.mechanism import set_up

DEPTH = Simplicial()
TOO_SMALL = Fraction(105, 100)


@pytest.fixture(autouse=True)
def count_simplices(monkeypatch):
    """Depth 1 stands for all C(n, d + 1) simplices; where there are none, the depth is 0 in any unit."""
    monkeypatch.setattr(attacks, "unit", lambda depth, n, d: max(1, math.comb(n, d + 1)))


def bound(n, d):
    return Fraction(d + 1, n) if n > d else Fraction(0)


def space():
    """Return the corners of a cube and its centre, and the points of a grid twice as fine."""
    values = [*itertools.product((0.0, 2.0), repeat=3), (1.0, 1.0, 1.0)]
    return np.array(values), np.array(list(itertools.product((0.0, 1.0, 2.0), repeat=3)))


SEARCHES = {1: attacks.line, 2: lambda n: attacks.plane(), 3: lambda n: space()}


@pytest.mark.parametrize(
    ("n", "d"), [*((n, 1) for n in range(1, 7)), *((n, 2) for n in range(1, 5)), (3, 3), (4, 3), (5, 3)]
)
def test_every_small_table_and_neighbour(n, d):
    worst = attacks.exhaustive(DEPTH, n, *SEARCHES[d](n))
    assert not attacks.breaks(worst, bound(n, d))
    assert worst == bound(n, d)
    if n > d:
        assert attacks.breaks(worst, bound(n, d) / TOO_SMALL)


@pytest.mark.parametrize(("n", "d"), [(2, 1), (9, 1), (40, 1), (3, 2), (7, 2), (25, 2), (4, 3), (6, 3), (14, 3)])
def test_random_search_with_climbing(n, d):
    worst = attacks.adversarial(DEPTH, n, d, trials=300, seed=n + d)
    assert not attacks.breaks(worst, bound(n, d))
    assert attacks.breaks(worst, bound(n, d) / TOO_SMALL)


@pytest.mark.parametrize(("n", "d"), [(2, 1), (7, 1), (100, 1), (3, 2), (5, 2), (100, 2), (4, 3), (9, 3), (70, 3)])
def test_the_bound_is_reached_by_a_row_that_moves_to_the_point(n, d):
    rows = np.full((n, d), -1.0)
    moved = rows.copy()
    moved[n // 2] = 0.0
    before, after = (DEPTH.evaluate(np.zeros((1, d)), table)[0] for table in (rows, moved))
    assert before == 0.0
    assert after == pytest.approx(float(bound(n, d)), rel=1e-15)  # two divisions of integers, each rounded once


@pytest.mark.parametrize(("n", "d"), [(4, 1), (5, 2), (6, 3)])
def test_beta_cannot_be_larger(n, d):
    """At one point the depth falls by the sensitivity, at another it rises by it, for the same two neighbours."""
    rows = np.zeros((n, d))
    rows[0] = -1.0
    points = np.vstack([np.full(d, -1.0), np.full(d, 1.0)])
    differences = DEPTH.evaluate(points, rows) - DEPTH.evaluate(points, -rows)
    assert differences.tolist() == pytest.approx([float(bound(n, d)), -float(bound(n, d))], rel=1e-15)


@pytest.mark.parametrize("d", [1, 2, 3, 7])
def test_the_published_formula(d):
    for n in range(40):
        assert DEPTH.sensitivity(n, d) == float(bound(n, d)) == (min(1.0, (d + 1) / n) if n > d else 0.0)
    with pytest.raises(ValueError, match="Expected n >= 0 rows"):
        DEPTH.sensitivity(-1, d)


@pytest.mark.parametrize(("n", "beta"), [(0, 0.0), (2, 0.0), (3, 0.5), (12, 2.0)])
def test_beta_of_a_mechanism_is_0_where_no_row_can_matter(n, beta):
    import pymc as pm

    location = pm.Normal.dist(0, 1, shape=2)
    settings, _, _ = set_up("m", location, np.ones((n, 2)), depth=DEPTH, epsilon=1.0)
    assert settings.beta == beta
