"""Limits against loops over the definitions, and the smallest parameter against the largest of the negatives."""

import math
from fractions import Fraction

import numpy as np
import pytest

from pymc_dpdepth.extrema import limits
from pymc_dpdepth.extrema.analysis import comparison, outcome, read_settings

ESTIMATES = np.array([0.2, 1.0, 0.9])
R = 199


def replicates(seed=0, spread=0.3):
    return ESTIMATES + spread * np.random.default_rng(seed).normal(size=(R, 3))


def order_statistic(values, rank):
    return sorted(values)[rank - 1]


def settings(sided="lower", extremum="max", correction=0.1, ci_prob=0.95):
    return read_settings(extremum, ci_prob, sided, correction, R, (), 0)


def by_hand(drawn, n, r, alpha):
    """The definitions, in loops: (lower, upper, estimate), each limit with error alpha."""
    m = max(ESTIMATES)
    maxima = []
    for row in drawn:
        shifts = [0.0 if r is None else (1 - n ** (r - 0.5)) * (m - b) for b in ESTIMATES]
        maxima.append(max(x + d for x, d in zip(row, shifts, strict=True)) - m)
    # 200 * .95 = 190, 200 * .975 = 195, 200 * .9 = 180
    rank = {0.05: 190, 0.025: 195, 0.1: 180}[alpha]
    lower = m - order_statistic(maxima, rank)
    singles = [b - order_statistic([x - b for x in drawn[:, j]], R + 1 - rank) for j, b in enumerate(ESTIMATES)]
    return lower, max(singles), m - sum(maxima) / R


@pytest.mark.parametrize("r", [None, 1 / 30, 0.1, 1 / 3])
def test_limits_are_those_of_the_definitions(r):
    drawn = replicates()
    lower, upper, estimate = by_hand(drawn, 500, r, 0.05)
    below, reduced, position = outcome(settings("lower", correction=r), ESTIMATES, drawn, 500)
    above, *_ = outcome(settings("upper", correction=r), ESTIMATES, drawn, 500)
    assert (below.lower, below.upper, position) == (pytest.approx(lower), None, 1)
    assert (above.lower, above.upper) == (None, pytest.approx(upper))
    assert reduced == pytest.approx(estimate)
    lower, upper, _ = by_hand(drawn, 500, r, 0.025)
    both, *_ = outcome(settings("two", correction=r), ESTIMATES, drawn, 500)
    assert (both.lower, both.upper) == (pytest.approx(lower), pytest.approx(upper))


def test_a_case_that_can_be_done_in_the_head():
    """n = 100, r = 1/4: n^(r - 1/2) = 100^(-1/4); two parameters at 0 and 1, replicates that do not vary."""
    estimates, drawn = np.array([0.0, 1.0]), np.tile([0.5, 1.0], (19, 1))
    shift = 1 - 1 / math.sqrt(10)
    assert limits.largest_replicates(estimates, drawn, 100, 0.25) == pytest.approx(np.full(19, 0.5 + shift))
    found, reduced, _ = outcome(read_settings("max", 0.95, "lower", 0.25, 19, (), 0), estimates, drawn, 100)
    assert found.lower == pytest.approx(1 - (shift - 0.5)) == reduced


def test_a_smaller_r_corrects_more_and_one_row_leaves_no_correction():
    drawn = replicates()
    lower = [outcome(settings(correction=r), ESTIMATES, drawn, 1000)[0].lower for r in (1 / 30, 0.1, 0.2, 1 / 3, None)]
    assert lower == sorted(lower) and lower[0] < lower[-1]
    assert outcome(settings(), ESTIMATES, drawn, 1) == outcome(settings(correction=None), ESTIMATES, drawn, 1)


@pytest.mark.parametrize("sided", ["lower", "upper", "two"])
def test_the_smallest_is_the_negative_of_the_largest_of_the_negatives(sided):
    drawn = replicates()
    small, reduced, position = outcome(settings(sided, "min"), ESTIMATES, drawn, 500)
    other = {"lower": "upper", "upper": "lower", "two": "two"}[sided]
    large, mirrored, same = outcome(settings(other, "max"), -ESTIMATES, -drawn, 500)
    assert (small.lower, small.upper) == tuple(None if x is None else -x for x in (large.upper, large.lower))
    assert (reduced, position) == (-mirrored, same) and position == 0
    if sided != "upper":  # the lower limit is the least of the single lower limits
        rank = 190 if sided == "lower" else 195
        singles = [b - order_statistic(drawn[:, j] - b, rank) for j, b in enumerate(ESTIMATES)]
        assert small.lower == pytest.approx(min(singles))


def test_one_parameter_has_the_basic_bootstrap_interval():
    one, drawn = ESTIMATES[:1], replicates()[:, :1]
    found, *_ = outcome(settings("two", ci_prob=0.9), one, drawn, 500)
    table = comparison(settings("two", ci_prob=0.9), one, drawn, 500)
    rank = 190
    expected = (
        one[0] - order_statistic(drawn[:, 0] - one[0], rank),
        one[0] - order_statistic(drawn[:, 0] - one[0], R + 1 - rank),
    )
    for each in (found, *table.values()):
        assert (each.lower, each.upper) == (pytest.approx(expected[0]), pytest.approx(expected[1]))


def test_the_other_methods_of_the_comparison():
    drawn = replicates()
    table = comparison(settings("two", ci_prob=0.9), ESTIMATES, drawn, 500)
    best = 1
    errors = drawn - ESTIMATES
    assert table["naive"].lower == pytest.approx(1.0 - order_statistic(errors[:, best], 190))
    assert table["naive"].upper == pytest.approx(1.0 - order_statistic(errors[:, best], 10))
    assert table["uncorrected"].lower == pytest.approx(1.0 - order_statistic(drawn.max(axis=1) - 1.0, 190))
    assert table["uncorrected"].upper == pytest.approx(1.0 - order_statistic(drawn.max(axis=1) - 1.0, 10))
    # 200 * (1 - .05 / 3) = 196.67, so rank 197
    singles = [b - order_statistic(errors[:, j], 197) for j, b in enumerate(ESTIMATES)]
    assert table["bonferroni"].lower == pytest.approx(max(singles))
    assert table["corrected"] == outcome(settings("two", ci_prob=0.9), ESTIMATES, drawn, 500)[0]
    assert table["corrected"].lower < table["naive"].lower


def test_the_rank_is_that_of_the_decimals():
    """(1999 + 1)(1 - .95) is exactly 100: in doubles 1 - .95 is above .05, and the rank would be one off."""
    assert limits.rank_of_quantile(1999, 1 - Fraction("0.95")) == 1900
    assert limits.rank_of_quantile(19, Fraction(1, 20)) == 19
    assert limits.rank_of_quantile(18, Fraction(1, 20)) == 19  # none of 18
    assert limits.upper_quantile(np.zeros((18, 2)), Fraction(1, 20)).tolist() == [math.inf, math.inf]


def test_the_order_statistic_covers_a_new_value_often_enough():
    """Among 20 exchangeable values the last one is not above the 19th smallest of the others with probability .95.

    4,000 tries: .95 - 5 sqrt(.95 * .05 / 4000) = .933.
    """
    values = np.random.default_rng(1).normal(size=(20, 4000))
    quantile = limits.upper_quantile(values[:19], Fraction(1, 20))
    assert (values[19] <= quantile).mean() > 0.933
