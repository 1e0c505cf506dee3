"""Choosing an index: the same index as exact arithmetic for the same bits, near every boundary."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scripted import ScriptedBits, index_of, word_near

from pymc_dpdepth.randomness import SeededBits
from pymc_dpdepth.samplers.choice import choose, relative_doubles
from pymc_dpdepth.samplers.weights import Interval


def scaled(weight):
    """Return significand and exponent of a fraction."""
    if weight == 0:
        return 0.0, 0
    exponent = weight.numerator.bit_length() - weight.denominator.bit_length()
    significand = float(weight / Fraction(2) ** exponent)
    while significand >= 2:
        significand, exponent = significand / 2, exponent + 1
    while significand < 1:
        significand, exponent = significand * 2, exponent - 1
    return significand, exponent


def interval(weight, precision):
    """Return an interval of that many bits around a fraction."""
    if weight == 0:
        return Interval(0, 0)
    shift = precision - (weight.numerator.bit_length() - weight.denominator.bit_length())
    value = weight * Fraction(2) ** shift
    return Interval(math.floor(value), math.ceil(value), -shift)


def choose_from(weights, bits, draws=1, roundings=1):
    significands, exponents = zip(*(scaled(w) for w in weights), strict=True)
    return choose(
        np.array(significands),
        np.array(exponents, dtype=np.int64),
        roundings,
        lambda precision: [interval(w, precision) for w in weights],
        bits,
        draws,
    )


def random_weights(generator, count):
    weights = [
        Fraction(int(generator.integers(1, 2**62)), 3) * Fraction(2) ** int(generator.integers(-1500, 1))
        if generator.random() < 0.3
        else Fraction(int(generator.integers(0, 5)), 7)
        for _ in range(count)
    ]
    weights[int(generator.integers(count))] += 1
    return weights


@pytest.mark.parametrize("roundings", [1, 2**60], ids=["doubles", "integers alone"])
def test_the_index_is_that_of_exact_arithmetic_near_every_boundary(roundings):
    generator = np.random.default_rng(1)
    went_on = 0
    for case in range(40):
        weights = random_weights(generator, int(generator.integers(1, 12)))
        total, running = sum(weights), Fraction(0)
        for weight in weights:
            running += weight
            for offset in (-2, -1, 0, 1):
                bits = ScriptedBits([word_near(running / total, offset)], seed=case)
                (chosen,) = choose_from(weights, bits, roundings=roundings)
                assert weights[chosen] > 0
                # Bits that were not asked for do not matter: the lowest and the highest number give the same index.
                low = bits.uniform()
                high = low + Fraction(1, 2 ** (64 * len(bits.given))) * (1 - Fraction(1, 2**64))
                assert index_of(low, weights) == chosen == index_of(high, weights)
                went_on += bits.asked > 1
    assert went_on > 50


def test_a_boundary_at_all_words_goes_on_and_ends():
    # Two equal weights: the boundary 1/2 has the bits 0111... and 1000...
    for words, expected in (([2**63 - 1, 2**64 - 1, 2**64 - 1, 5], 0), ([2**63, 0, 0, 0, 0, 7], 1)):
        bits = ScriptedBits(words)
        assert choose_from([Fraction(1), Fraction(1)], bits).tolist() == [expected]
        assert bits.asked > 1


def test_weights_far_below_the_smallest_double_are_drawn():
    # 2^-3000 of the mass comes first: its index has the numbers below 2^-3000.
    weights = [Fraction(1, 2**3000), Fraction(1)]
    assert choose_from(weights, ScriptedBits([0] * 47)).tolist() == [0]
    assert choose_from(weights, ScriptedBits([0] * 46 + [2**63])).tolist() == [1]


def test_an_error_bound_that_is_too_small_is_noticed():
    # Significands that are off by 2^10 roundings but said to be off by 1: near a boundary the wrong index comes.
    weights = [Fraction(1)] * 8
    wrong = np.array([1.0 + 2.0**-40] * 4 + [1.0] * 4)
    word = word_near(Fraction(1, 2), 2**20)  # above 1/2 by 2^-44

    def chosen(roundings):
        exponents, exact = np.zeros(8, dtype=np.int64), lambda precision: [interval(w, precision) for w in weights]
        return choose(wrong, exponents, roundings, exact, ScriptedBits([word]), 1).tolist()

    assert chosen(1) == [3]
    assert chosen(2**14) == [4] == [index_of(Fraction(word, 2**64), weights)]


def test_shares_are_those_of_the_weights():
    weights = [Fraction(1), Fraction(0), Fraction(2), Fraction(5)]
    chosen = choose_from(weights, SeededBits(3), draws=40_000)
    counts = np.bincount(chosen, minlength=4)
    assert counts[1] == 0
    # Six standard deviations of a binomial share: fewer than 1e-8 of right samplers fail on one of three shares.
    for count, weight in zip(counts, weights, strict=True):
        share = float(weight) / 8
        assert abs(count - 40_000 * share) <= 6 * math.sqrt(40_000 * share * (1 - share))


def test_a_single_weight_and_many_draws_need_no_more_bits():
    bits = ScriptedBits([0, 2**64 - 1])
    assert choose_from([Fraction(1, 3)], bits, draws=2).tolist() == [0, 0]


def test_doubles_are_relative_to_the_largest():
    values = relative_doubles(np.array([0.0, 1.0, 1.5, 1.25]), np.array([99, -5000, -4000, -3999]))
    assert values.tolist() == [0.0, 0.0, 0.75, 1.25]
