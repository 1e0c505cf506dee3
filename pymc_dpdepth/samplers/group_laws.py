"""The law of one group's location given its normal prior: its constant, in doubles and between integers, and draws.

Rows that are not equal may share a cell where the scale is large or they lie far out, and a cell that holds all rows
would be deeper than their middle, for no reason but the grid. So counts are cut off at the largest count that a point
has among the rows themselves. That number moves by no more than a count does when a row is replaced, and the smaller
one of two such numbers moves by no more either: the sensitivity stays what it is.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pymc_dpdepth.depths.univariate import DUAL_CODE
from pymc_dpdepth.grid import LAST_KEY, TAIL_FLOOR_KEY, normal_keys
from pymc_dpdepth.randomness import RandomBits
from pymc_dpdepth.samplers.boxes import BoxLaw, level_weights, tied_level
from pymc_dpdepth.samplers.hierarchy_bounds import MARGIN, dual_bounds, level_bounds
from pymc_dpdepth.samplers.segments import SegmentLaw, segment_weights, segments_of
from pymc_dpdepth.samplers.weights import Interval, WeightBase

__all__ = ["DualFactor", "LevelFactor", "total_of"]

LN2 = math.log(2.0)
# Rounding of counts times the unit, as a share of the largest exponent: far above 2^-53.
EXPONENT_ERROR = 2.0**-45
# Levels are joined whose weights differ by a factor of at most e^JOINED, or k // JOINED_SHARE of them k levels below
# the middle of the rows: a bound, and with it the work, grows by a few parts in a hundred.
JOINED, JOINED_SHARE = 0.05, 16


def _log_sum(significands: np.ndarray, exponents: np.ndarray) -> float:
    """Return the log of a sum of numbers s * 2^e."""
    top = int(exponents[significands > 0.0].max())
    shifts = np.maximum(exponents - top, -1100).astype(np.int32)  # below, a term is nothing beside the largest
    return math.log(float(np.ldexp(significands, shifts).sum())) + top * LN2


def _joined(levels: np.ndarray, logs: np.ndarray, half: int) -> tuple[np.ndarray, np.ndarray]:
    """Return levels and the logs of what they add to a weight, from the logs of the weights of levels 0, 1, ...

    A weight e^logs[l] is the sum of what levels up to l add. Neighbouring levels between 1 and `half` are joined into
    the lowest of them, with the sum of what they add, where that makes little difference: where the weight hardly
    changes, or far below `half`, where it is small.
    """
    starts, high = [0, *range(half + 1, len(logs))], half
    while high >= 1:
        low, lowest = high, high - (half - high) // JOINED_SHARE
        while low > 1 and (low > lowest or logs[high] - logs[low - 2] <= JOINED):
            low -= 1
        starts.append(low)
        high = low - 1
    starts = np.array(sorted(starts), dtype=np.int64)
    reached = logs[np.append(starts[1:] - 1, len(logs) - 1)]  # at the highest level of each
    added = reached.copy()
    with np.errstate(divide="ignore"):
        added[1:] += np.log(-np.expm1(reached[:-1] - reached[1:]))
    kept = added > -np.inf
    return levels[starts[kept]].astype(np.int64), added[kept]


@dataclass(frozen=True, eq=False, repr=False)  # a repr would show the rows
class _Factor:
    """One group's part of the joint density, in the coordinates that its depth ties together.

    Attributes
    ----------
    rows : ndarray, shape (M, n)
        Ascending along each coordinate; n >= 1.
    base : WeightBase
        Of one count.
    """

    rows: np.ndarray
    base: WeightBase

    @functools.cached_property
    def unit(self) -> float:
        """-ln b, what one count is worth, right to a few roundings."""
        share = Fraction(self.base.numerator, 1 << self.base.shift)
        if share > Fraction(1, 2):
            return -math.log1p(-float(1 - share))
        return self.base.shift * LN2 - math.log(self.base.numerator)  # the share itself may be below all doubles

    def keys(self, mean: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Return the ascending keys of the rows on the grids of N(mean, scale), shape (M, n)."""
        keys = np.empty(self.rows.shape, dtype=np.int64)
        normal_keys(np.ascontiguousarray(self.rows.T), mean, scale, keys)
        keys.sort(axis=1)  # rounding might exchange rows that are nearly equal
        return keys

    def floors(self) -> np.ndarray:
        """Return the floors of the grids of normal priors."""
        return np.full((len(self.rows), 2), TAIL_FLOOR_KEY, dtype=np.int64)

    def draw(self, mean: np.ndarray, scale: np.ndarray, bits: RandomBits) -> np.ndarray:
        """Draw a cell, shape (M,)."""
        return self._law(self.keys(mean, scale)).draw(bits, 1)[0]

    def _padded(self, bounds: np.ndarray) -> np.ndarray:
        """Return bounds with the margin for rounding; log Z is at most 0, which bounds it where a bound is nan."""
        return np.fmin(bounds + MARGIN + EXPONENT_ERROR * self.unit * self.largest, 0.0)


class LevelFactor(_Factor):
    """Halfspace depth over the axes, in one coordinate or several; counts up to the highest level of the rows."""

    @functools.cached_property
    def largest(self) -> int:
        """The highest level: ceil(n/2), or what rows that are equal to each other allow."""
        ranks = [np.unique(column, return_inverse=True)[1] for column in self.rows]
        return int(tied_level(np.array(ranks, dtype=np.int64)))

    def log_bounds(self, mean_low, mean_high, scale_low, scale_high) -> np.ndarray:
        """Return upper bounds of log Z over boxes, ends of shape (k, M)."""
        return self._padded(level_bounds(self.rows, *self._levels, mean_low, mean_high, scale_low, scale_high))

    @functools.cached_property
    def _levels(self) -> tuple[np.ndarray, np.ndarray]:
        half = (self.rows.shape[1] + 1) // 2
        levels = np.append(np.arange(half + 1), [self.largest] * (self.largest > half))  # the ties, all together
        return _joined(levels, -self.unit * (self.largest - levels), half)

    def log_constant(self, mean: np.ndarray, scale: np.ndarray) -> float:
        """Return log Z, right to far less than `MARGIN`."""
        significands, exponents, _ = level_weights(self.keys(mean, scale), self.floors(), self.base, self.largest)
        return _log_sum(significands, exponents)

    def constant(self, mean: np.ndarray, scale: np.ndarray, precision: int) -> list[Interval]:
        """Return numbers between integers whose sum is Z."""
        return self._law(self.keys(mean, scale)).intervals(precision)

    def _law(self, keys: np.ndarray) -> BoxLaw:
        return BoxLaw(keys, self.floors(), self.base, self.largest)


class DualFactor(_Factor):
    """Dual depth of one coordinate; counts up to the largest of the rows."""

    @functools.cached_property
    def largest(self) -> int:
        """The largest count that a row, or a point between rows, has among the rows themselves."""
        (row,), n = self.rows, self.rows.shape[1]
        counts = np.searchsorted(row, row, side="right") * (n - np.searchsorted(row, row, side="left"))
        return max(int(counts.max()), (n // 2) * (n - n // 2))

    def log_bounds(self, mean_low, mean_high, scale_low, scale_high) -> np.ndarray:
        """Return upper bounds of log Z over boxes, ends of shape (k, 1)."""
        ends = (np.ascontiguousarray(end[:, 0]) for end in (mean_low, mean_high, scale_low, scale_high))
        return self._padded(dual_bounds(self.rows[0], *self._levels, self.unit, self.largest, *ends))

    @functools.cached_property
    def _levels(self) -> tuple[np.ndarray, np.ndarray]:
        n = self.rows.shape[1]
        levels = np.arange((n + 1) // 2 + 1)
        return _joined(levels, -self.unit * (self.largest - levels * (n - levels)), (n + 1) // 2)

    def log_constant(self, mean: np.ndarray, scale: np.ndarray) -> float:
        """Return log Z, right to far less than `MARGIN`."""
        law = self._law(self.keys(mean, scale))
        counts, ends = law.counts(0), segments_of(law.keys[0])
        weights = segment_weights(*ends, counts, *law.floors[0], *self.base.table)
        return _log_sum(*weights) - self.unit * (self.largest - self._top(counts, ends))

    def constant(self, mean: np.ndarray, scale: np.ndarray, precision: int) -> list[Interval]:
        """Return numbers between integers whose sum is Z."""
        law = self._law(self.keys(mean, scale))
        power = self.base.power(self.largest - self._top(law.counts(0), segments_of(law.keys[0])), precision)
        return [(weight * power).rounded(precision) for weight in law.intervals(0, precision)]

    def _law(self, keys: np.ndarray) -> SegmentLaw:
        return SegmentLaw(keys, self.floors(), DUAL_CODE, self.base, self.largest)

    @staticmethod
    def _top(counts: np.ndarray, ends: tuple[np.ndarray, np.ndarray]) -> int:
        """Return the largest count of a segment with prior mass."""
        first, last = ends
        low, high = TAIL_FLOOR_KEY, LAST_KEY - TAIL_FLOOR_KEY
        massive = (first <= last) & (last >= low) & (first <= high)
        return int(counts[massive].max())


def total_of(parts: list[Interval]) -> Interval:
    """Return the sum of numbers between integers."""
    exponent = min(part.exponent for part in parts if part.high)
    ends = [part.ends(exponent) for part in parts if part.high]
    return Interval(sum(low for low, _ in ends), sum(high for _, high in ends), exponent)
