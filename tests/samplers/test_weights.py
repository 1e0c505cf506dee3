"""Weights: the rational base against exp by its series, and powers in doubles and integers against fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest

from pymc_dpdepth.samplers.weights import (
    LARGEST_UNIT,
    POWER_ROUNDINGS,
    ROUNDOFF,
    TABLE_LENGTH,
    Interval,
    WeightBase,
    scaled_power,
)

UNITS = [
    Fraction(1, 2),
    Fraction(1, 20_000),
    Fraction(0.1) / 2,
    Fraction(5),
    Fraction(2) ** -256,
    Fraction(300),
    Fraction(1, 3),
]


def exp_bounds(x, terms=60):
    """Return fractions below and above exp(-x), x >= 0: the Taylor series of exp(x / 2^k) with remainder, k squarings.

    For 0 <= y <= 1/2 the remainder after m terms is below 2 y^m / m!.
    """
    halvings = max(0, math.ceil(math.log2(max(float(x), 1e-300)))) + 1
    y = x / 2**halvings
    term, total = Fraction(1), Fraction(0)
    for k in range(terms):
        total += term
        term = term * y / (k + 1)
        # Keep the fractions short; each cut loses less than 2^-2000 and is added to the upper bound below.
        term = Fraction(math.floor(term * 2**2000), 2**2000)
    low, high = total, total + 2 * term + Fraction(terms * 4, 2**2000)
    for _ in range(halvings):
        low = Fraction(math.floor(low**2 * 2**2000), 2**2000)
        high = Fraction(math.ceil(high**2 * 2**2000), 2**2000)
    return 1 / high, 1 / low


@pytest.mark.parametrize("unit", UNITS)
def test_the_base_is_at_least_exp_of_minus_the_unit_and_hardly_more(unit):
    base = WeightBase.of(unit)
    b = Fraction(base.numerator, 2**base.shift)
    low, high = exp_bounds(unit)
    assert low <= high < low * (1 + Fraction(1, 2**300))
    assert b >= high and 0 < b < 1
    # b is off by one unit of its last bit at most, which is less than 2^-120 of b and of 1 - b: of the unit, that is.
    assert b - low < min(low, 1 - low, unit) / 2**120
    assert base.realised_share == 1.0


def test_a_planted_base_below_exp_is_noticed():
    base = WeightBase.of(UNITS[0])
    assert Fraction(base.numerator - 2, 2**base.shift) < exp_bounds(UNITS[0])[0]


def test_the_largest_unit_is_a_cap_and_the_share_says_so():
    base = WeightBase.of(Fraction(3 * LARGEST_UNIT))
    assert base.realised_share == pytest.approx(1 / 3, rel=1e-12)
    assert WeightBase.of(Fraction(2.0**255)).realised_share < 1e-70


@pytest.mark.parametrize("unit", UNITS)
def test_powers_are_right_to_the_stated_roundings(unit):
    base = WeightBase.of(unit)
    b = Fraction(base.numerator, 2**base.shift)
    for count in [0, 1, 2, 3, 7, 100, 255]:
        exact = b**count
        significand, exponent = scaled_power(*base.table, count)
        assert 1 <= significand < 2
        assert abs(Fraction(significand) * Fraction(2) ** int(exponent) / exact - 1) <= POWER_ROUNDINGS * ROUNDOFF
        for precision in (64, 200):
            power = base.power(count, precision)
            unit_of = Fraction(2) ** power.exponent
            assert power.low * unit_of <= exact <= power.high * unit_of
            assert power.high - power.low <= power.high / 2 ** (precision - 12)
        if count:
            significand, exponent = base.scaled_complement(count)
            assert 1 <= significand < 2
            assert abs(Fraction(significand) * Fraction(2) ** exponent / (1 - exact) - 1) <= 2 * ROUNDOFF


@pytest.mark.parametrize("count", [2**31 - 1, 10**10, 2**40 + 12_345])
def test_high_powers_agree_with_wide_integers(count):
    base = WeightBase.of(Fraction(1, 20_000))
    power = base.power(count, 400)
    low, high = power.ends(power.exponent)
    significand, exponent = scaled_power(*base.table, count)
    nearest = Fraction(significand) * Fraction(2) ** (int(exponent) - power.exponent)
    assert high - low < high / 2**340
    assert abs(nearest / low - 1) <= POWER_ROUNDINGS * ROUNDOFF


def test_no_power_in_range_overflows_its_exponent():
    for unit in (Fraction(LARGEST_UNIT), Fraction(2) ** 200):
        significands, exponents = WeightBase.of(unit).table
        assert len(significands) == TABLE_LENGTH
        assert (significands >= 1).all() and (significands < 2).all()
        assert sum(exponents.tolist()) > -(2**62)
        significand, exponent = scaled_power(significands, exponents, 2**TABLE_LENGTH - 1)
        assert 1 <= significand < 2 and exponent == sum(exponents.tolist()) + round(math.log2(1.0)) or exponent < 0


def test_intervals_round_outwards():
    generator = np.random.default_rng(0)
    for _ in range(300):
        low = int(generator.integers(0, 2**62))
        high = low + int(generator.integers(0, 2**40))
        interval = Interval(low, high, int(generator.integers(-100, 100)))
        for precision in (8, 30, 61, 80):
            rounded = interval.rounded(precision)
            scale = Fraction(2) ** (rounded.exponent - interval.exponent)
            assert rounded.low * scale <= low and high <= rounded.high * scale
            assert rounded.high.bit_length() <= precision + 1
        for exponent in (interval.exponent - 5, interval.exponent, interval.exponent + 30):
            a, b = interval.ends(exponent)
            scale = Fraction(2) ** (exponent - interval.exponent)
            assert low - scale < a * scale <= low and high <= b * scale < high + scale


@pytest.mark.parametrize("unit", [Fraction(0), Fraction(-1)])
def test_a_unit_that_is_not_positive_is_refused(unit):
    with pytest.raises(ValueError, match="unit"):
        WeightBase.of(unit)
