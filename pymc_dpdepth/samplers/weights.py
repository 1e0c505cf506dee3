r"""Weights of the exponential mechanism as powers of a rational base, in three precisions.

A count k of the depth weighs b^(-k), where

    b = numerator / 2^shift >= exp(-unit),    0 < b < 1,

is rational and rounded upwards. A law with these weights is the exponential mechanism at the epsilon that b stands for,
which never exceeds the one that was asked for and falls short of it by less than one part in 2^120. So the law is a
rational one: tests enumerate it with fractions, and no library function's rounding is trusted.

A weight is kept as *significand* and *exponent*, s * 2^e with s in [1, 2) or 0, with a proved bound on the relative
error of s. Where that does not decide a draw, `Interval` gives the same weight between two integers of any precision.

References
----------
.. [1] C. Ilvento, Implementing the exponential mechanism with base-2 differential privacy, CCS 2020,
       arXiv:1912.04222.
"""

from __future__ import annotations

import decimal
import functools
import math
from dataclasses import dataclass
from fractions import Fraction

import numba
import numpy as np

from pymc_dpdepth.bits import bits_to_float, float_to_bits
from pymc_dpdepth.grid import EDGE_BITS, EXPONENT_BIAS, SIGNIFICAND_BITS
from pymc_dpdepth.privacy.rounding import written

__all__ = [
    "POWER_ROUNDINGS",
    "Interval",
    "WeightBase",
    "normalise",
    "scaled_exponentials",
    "scaled_power",
    "scaled_powers",
]

#: Rounding error of one operation on doubles, relative.
ROUNDOFF = 2.0**-53
SIGNIFICAND_MASK = (1 << SIGNIFICAND_BITS) - 1
ONE_BITS = EXPONENT_BIAS << SIGNIFICAND_BITS
# Bits of b beyond those that tell it from 0 and from 1.
BASE_BITS = 128
# A count worth more than this decides every draw alone (e^-4096), and larger exponents would not fit into words.
LARGEST_UNIT = 4096
# A power is the product of at most this many entries of a table: counts are below 2^62.
TABLE_LENGTH = 62
#: Bound on the relative error of a power's significand, in roundings: two for each entry, one for each product.
POWER_ROUNDINGS = 3 * TABLE_LENGTH
LOG2_E = 1.0 / math.log(2.0)
DIGITS_PER_BIT = math.log10(2.0)
GUARD_DIGITS = 20
TABLE_PRECISION = 192
# Sums of 62 exponents stay within a word.
LOWEST_EXPONENT = -(2**55)


@dataclass(frozen=True)
class Interval:
    """A non-negative real number between low * 2^exponent and high * 2^exponent, with integers low and high."""

    low: int
    high: int
    exponent: int = 0

    def __mul__(self, other: Interval) -> Interval:
        """Return the interval of products."""
        return Interval(self.low * other.low, self.high * other.high, self.exponent + other.exponent)

    def rounded(self, precision: int) -> Interval:
        """Return an interval around this one whose ends have at most precision + 1 bits."""
        extra = self.high.bit_length() - precision
        if extra <= 0:
            return self
        return Interval(self.low >> extra, -(-self.high >> extra), self.exponent + extra)

    def ends(self, exponent: int) -> tuple[int, int]:
        """Return integers (a, b) with a * 2^exponent <= number <= b * 2^exponent."""
        shift = self.exponent - exponent
        if shift >= 0:
            return self.low << shift, self.high << shift
        return self.low >> -shift, -(-self.high >> -shift)

    @classmethod
    def of_double(cls, significand: float, exponent: int) -> Interval:
        """Return significand * 2^exponent, a double's significand in [1, 2) or 0, exactly."""
        whole = int(math.ldexp(significand, SIGNIFICAND_BITS))
        return cls(whole, whole, exponent - SIGNIFICAND_BITS)

    @classmethod
    def of_cells(cls, count: int) -> Interval:
        """Return a prior mass that is a whole number of 2^-1020, see `grid.cell_count`."""
        return cls(count, count, -EDGE_BITS)


@dataclass(frozen=True)
class WeightBase:
    """The base b = numerator / 2^shift of the weights b^(-count).

    Attributes
    ----------
    numerator, shift : int
    unit : Fraction
        Exponent that one count was asked to be worth; b >= exp(-unit).
    """

    numerator: int
    shift: int
    unit: Fraction

    @classmethod
    def of(cls, unit: Fraction) -> WeightBase:
        """Return the base of a unit > 0.

        exp is `decimal`'s, which rounds correctly; one step up from there is an upper bound.
        """
        used = min(unit, Fraction(LARGEST_UNIT))
        # b has BASE_BITS after its leading one, and 1 - b too: -log2 b = unit log2 e, and 1 - b is about unit.
        shift = BASE_BITS + math.ceil(float(used) * LOG2_E) + max(0, used.denominator.bit_length())
        with decimal.localcontext(_context(shift)) as context:
            context.rounding = decimal.ROUND_FLOOR
            exponent = decimal.Decimal(used.numerator) / decimal.Decimal(used.denominator)
            context.rounding = decimal.ROUND_HALF_EVEN
            above = Fraction((-exponent).exp().next_plus())
        numerator = -(-(above.numerator << shift) // above.denominator)
        if not 0 < numerator < 1 << shift:
            raise ValueError("unit: expected a number > 0 that 1 - exp(-unit) can be told from 0.")
        return cls(numerator, shift, unit)

    @classmethod
    def of_epsilon(cls, epsilon: float, counts: int) -> WeightBase:
        """Return the base of one count where a row moves a score by at most so many: unit = epsilon / (2 counts).

        The double and the decimal that it was written as differ by a rounding; the smaller one is spent.
        """
        return cls.of(min(Fraction(epsilon), written(epsilon)) / (2 * counts))

    @functools.cached_property
    def realised_share(self) -> float:
        """-ln(b) / unit, rounded up to a double: the part of the asked epsilon that the draws spend, at most 1."""
        with decimal.localcontext(_context(self.shift)) as context:
            spent = Fraction(-(decimal.Decimal(self.numerator) / decimal.Decimal(1 << self.shift)).ln(context))
        share = spent / self.unit
        nearest = float(share)
        return min(1.0, nearest if Fraction(nearest) >= share else math.nextafter(nearest, math.inf))

    @functools.cached_property
    def table(self) -> tuple[np.ndarray, np.ndarray]:
        """Significands and exponents of b^(2^i), i = 0, ..., 61; each is right to two roundings of a double.

        Exponents stop at `LOWEST_EXPONENT`: a weight that small is below every one that a double can hold beside the
        largest, so its size plays no part.
        """
        significands, exponents = np.empty(TABLE_LENGTH), np.empty(TABLE_LENGTH, dtype=np.int64)
        power = self.power(1, TABLE_PRECISION)
        for i in range(TABLE_LENGTH):
            significands[i], exponent = nearest_scaled(power)
            exponents[i] = max(exponent, LOWEST_EXPONENT)
            power = (power * power).rounded(TABLE_PRECISION)
        return significands, exponents

    def power(self, count: int, precision: int) -> Interval:
        """Return b^count between integers of the given precision (b itself exactly)."""
        result = Interval(1, 1)
        square = Interval(self.numerator, self.numerator, -self.shift)
        while count:
            if count & 1:
                result = (result * square).rounded(precision)
            count >>= 1
            if count:
                square = (square * square).rounded(precision)
        return result

    def complement(self, count: int, precision: int) -> Interval:
        """Return 1 - b^count."""
        # b^count = 1 - small: the bits of the small number come after as many ones as its size asks for.
        precision += self.shift
        low, high = self.power(count, precision).ends(-precision)
        return Interval((1 << precision) - high, (1 << precision) - low, -precision).rounded(precision)

    def scaled_complement(self, count: int) -> tuple[float, int]:
        """Return significand and exponent of 1 - b^count, right to two roundings of a double."""
        return nearest_scaled(self.complement(count, TABLE_PRECISION))


def _context(bits: int) -> decimal.Context:
    digits = math.ceil(bits * DIGITS_PER_BIT) + GUARD_DIGITS
    return decimal.Context(prec=digits, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[decimal.InvalidOperation])


def nearest_scaled(number: Interval) -> tuple[float, int]:
    """Return s in [1, 2) and e with s * 2^e near a positive number that its interval knows to more than 60 bits."""
    length = number.high.bit_length()
    significand = math.ldexp(number.high >> max(0, length - 64), max(0, length - 64) - length + 1)
    exponent = number.exponent + length - 1
    # Rounding 64 bits to 53 can give 2.0.
    return (1.0, exponent + 1) if significand >= 2.0 else (significand, exponent)


@numba.njit(inline="always")
def normalise(significand, exponent):
    """Return the same number with a significand in [1, 2), from a positive normal one."""
    bits = float_to_bits(significand)
    return bits_to_float((bits & SIGNIFICAND_MASK) | ONE_BITS), exponent + (bits >> SIGNIFICAND_BITS) - EXPONENT_BIAS


@numba.njit(cache=True, nogil=True)
def scaled_power(significands, exponents, count):
    """Return significand and exponent of b^count from the base's table, right to POWER_ROUNDINGS."""
    significand, exponent = 1.0, np.int64(0)
    i = 0
    while count > 0:
        if count & 1:
            significand *= significands[i]
            exponent += exponents[i]
            if significand >= 2.0:
                significand *= 0.5
                exponent += 1
        count >>= 1
        i += 1
    return significand, exponent


@numba.njit(cache=True, nogil=True)
def scaled_powers(significands, exponents, counts, powers, power_exponents):
    """Return s * 2^e * b^count for arrays; POWER_ROUNDINGS + 1 roundings are added."""
    products, product_exponents = np.empty(counts.size), np.empty(counts.size, dtype=np.int64)
    for i in range(counts.size):
        power, exponent = scaled_power(powers, power_exponents, counts[i])
        products[i], product_exponents[i] = normalise(significands[i] * power, exponents[i] + exponent)
    return products, product_exponents


@numba.njit(cache=True, nogil=True)
def scaled_exponentials(significands, exponents, logarithms):
    """Return s * 2^e * exp(x) for arrays, x <= 0, as doubles; no bound on their rounding is claimed."""
    products, product_exponents = np.empty(logarithms.size), np.empty(logarithms.size, dtype=np.int64)
    for i in range(logarithms.size):
        whole = np.floor(logarithms[i] * LOG2_E)
        power = math.exp(logarithms[i] - whole / LOG2_E)
        products[i], product_exponents[i] = normalise(significands[i] * power, exponents[i] + np.int64(whole))
    return products, product_exponents
