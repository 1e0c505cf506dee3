r"""Choosing an index with given weights, exactly.

With running sums C_0 <= C_1 <= ... of the weights and total T, a uniform real U in [0, 1) chooses the first i with
U T < C_i. The bits of U are drawn as they are needed. Doubles with proved error bounds decide nearly every draw from
the first 53 bits:

    doubles know C_i up to a relative error r, so U T lies surely below C_i, surely at or above it, or too close to say.

In the last case the same bits of U go on, with more bits after them, and integers of twice the precision take the place
of the doubles, until it is decided. The index is therefore a function of U alone, the one that exact arithmetic would
give, and its law is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numba
import numpy as np

from pymc_dpdepth.randomness import DISCARDED_BITS, RandomBits
from pymc_dpdepth.samplers.weights import POWER_ROUNDINGS, ROUNDOFF, Interval, WeightBase, scaled_power

__all__ = ["accept", "choose", "relative_doubles"]

WORD_BITS = 64
SUM_ROUNDINGS = 3  # two, and one to spare for the squared ones
FIRST_PRECISION = 192
# Beside the largest weight, doubles take weights below 2^-1000 for 0, and their bounds take them for at most 2^-999.
LOWEST_SHOWN = -1000
UNSHOWN = 2.0**-999


@numba.njit(cache=True, nogil=True)
def relative_doubles(significands, exponents):
    """Return s * 2^(e - E), E the largest exponent of a positive weight; 0 where that is below 2^-1000."""
    top = np.int64(-(2**62))
    for i in range(significands.size):
        if significands[i] > 0.0 and exponents[i] > top:
            top = exponents[i]
    values = np.zeros(significands.size)
    for i in range(significands.size):
        if significands[i] > 0.0 and exponents[i] - top >= LOWEST_SHOWN:
            values[i] = np.ldexp(significands[i], exponents[i] - top)
    return values


@numba.njit(cache=True, nogil=True)
def _bounds(significands, exponents, roundings):
    """Return lower and upper bounds of the running sums, in units of 2^E.

    Each weight is right to `roundings` roundings and at most UNSHOWN too small. A compensated sum (Kahan 1965) of m
    terms >= 0 is right to 2 roundings, and m squared ones that are nothing for m below 2^32; 4 more cover the two
    products here, and the factor 2 all terms of second order.
    """
    values = relative_doubles(significands, exponents)
    error = 2.0 * ROUNDOFF * (roundings + SUM_ROUNDINGS + 4)
    slack = UNSHOWN * values.size
    lower, upper = np.empty(values.size), np.empty(values.size)
    total = lost = 0.0
    for i in range(values.size):
        term = values[i] - lost
        new = total + term
        lost = (new - total) - term
        total = new
        lower[i] = max(total * (1.0 - error) - slack, 0.0)
        upper[i] = total * (1.0 + error) + slack
    return lower, upper


@numba.njit(cache=True, nogil=True)
def _decide(lower, upper, words):
    """Return the chosen index for each word's leading 53 bits, or -1 where the doubles cannot tell."""
    chosen = np.empty(words.size, dtype=np.int64)
    last = lower.size - 1
    for draw in range(words.size):
        head = np.float64(words[draw] >> np.uint64(DISCARDED_BITS))
        # One rounding each; 4 of them are a safe margin.
        least = head * ROUNDOFF * lower[last] * (1.0 - 4.0 * ROUNDOFF)
        most = (head + 1.0) * ROUNDOFF * upper[last] * (1.0 + 4.0 * ROUNDOFF)
        # U T >= least, so no index with C_i <= least; U T < most, so none after the first with C_i >= most.
        first = np.searchsorted(upper, least, side="right")
        end = np.searchsorted(lower, most, side="left")
        chosen[draw] = first if first == end else -1
    return chosen


def choose(
    significands: np.ndarray,
    exponents: np.ndarray,
    roundings: int,
    intervals: Callable[[int], Sequence[Interval]],
    bits: RandomBits,
    draws: int,
) -> np.ndarray:
    """Draw indices with the given weights.

    Parameters
    ----------
    significands : ndarray of float64, shape (m,)
        In [1, 2), or 0 for a weight of 0.
    exponents : ndarray of int64, shape (m,)
    roundings : int
        Bound on the relative error of each significand, in units of 2^-53.
    intervals : callable
        precision -> the same weights as intervals whose relative width falls with 2^-precision, all in one unit.
    bits : RandomBits
    draws : int

    Returns
    -------
    ndarray of int64, shape (draws,)
    """
    words = bits.words(draws)
    lower, upper = _bounds(significands, exponents, roundings)
    chosen = _decide(lower, upper, words)
    for draw in np.flatnonzero(chosen < 0):
        chosen[draw] = _choose_exactly(intervals, int(words[draw]), bits)
    return chosen


def _choose_exactly(intervals, uniform: int, bits: RandomBits) -> int:
    """Go on with the 64 bits `uniform` of U in integers, with more bits and more precision until they decide."""
    length, precision = WORD_BITS, FIRST_PRECISION
    while True:
        while length < precision:
            uniform, length = uniform << WORD_BITS | int(bits.words(1)[0]), length + WORD_BITS
        weights = [weight.rounded(precision) for weight in intervals(precision)]
        unit = max(weight.exponent + weight.high.bit_length() for weight in weights if weight.high) - precision
        lower, upper, low, high = [], [], 0, 0
        for weight in weights:
            a, b = weight.ends(unit)
            low, high = low + a, high + b
            lower.append(low << length)
            upper.append(high << length)
        least, most = uniform * low, (uniform + 1) * high
        first = next(i for i, end in enumerate(upper) if end > least)
        end = next((i for i, end in enumerate(lower) if end >= most), -1)
        if first == end:
            return first
        precision *= 2


@numba.njit(cache=True, nogil=True)
def _decide_powers(counts, powers, power_exponents, words):
    """Return 1 where U < b^count, 0 where not, -1 where the word's leading 53 bits and doubles cannot tell."""
    decided = np.empty(counts.size, dtype=np.int64)
    for i in range(counts.size):
        if counts[i] == 0:
            decided[i] = 1
            continue
        significand, exponent = scaled_power(powers, power_exponents, counts[i])
        power = np.ldexp(significand, exponent) if exponent >= LOWEST_SHOWN else 0.0
        head = np.float64(words[i] >> np.uint64(DISCARDED_BITS))
        error = 2.0 * POWER_ROUNDINGS * ROUNDOFF
        if (head + 1.0) * ROUNDOFF <= power * (1.0 - error):
            decided[i] = 1
        else:
            decided[i] = 0 if head * ROUNDOFF >= power * (1.0 + error) + UNSHOWN else -1
    return decided


def accept(counts: np.ndarray, base: WeightBase, words: np.ndarray, bits: RandomBits) -> np.ndarray:
    """Accept with probabilities b^count: U < b^count, U the number whose first 64 bits are the word, exactly.

    Parameters
    ----------
    counts : ndarray of int64, shape (k,)
        At least 0.
    base : WeightBase
    words : ndarray of uint64, shape (k,)
    bits : RandomBits
        For more bits of U where the word does not decide.

    Returns
    -------
    ndarray of bool, shape (k,)
    """
    decided = _decide_powers(counts, *base.table, words)
    for i in np.flatnonzero(decided < 0):
        decided[i] = _accept_exactly(int(counts[i]), base, int(words[i]), bits)
    return decided == 1


def _accept_exactly(count: int, base: WeightBase, uniform: int, bits: RandomBits) -> bool:
    """Go on with the 64 bits `uniform` of U in integers."""
    length, precision = WORD_BITS, FIRST_PRECISION
    while True:
        low, high = base.power(count, precision).ends(-length)
        if uniform + 1 <= low:
            return True
        if uniform >= high:
            return False
        uniform, length = uniform << WORD_BITS | int(bits.words(1)[0]), length + WORD_BITS
        precision = max(precision, 2 * length)
