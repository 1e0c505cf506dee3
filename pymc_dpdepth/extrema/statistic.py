"""A statistic that is summed over the rows in fixed point, and how far one row can move its sum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

__all__ = ["Statistic", "bits_of_entries", "bounded_statistic", "power_of_two_above"]

# A sum must fit in the 64 bits of the noise, with room for the noise itself (privacy/noise.py cuts off at 2^61).
BITS_OF_SUMS = 60
# An entry on a grid this much finer than its range loses nothing that noise would leave visible.
BITS_OF_ENTRIES = 30


@dataclass(frozen=True, eq=False)
class Statistic:
    """What each row adds to a sum: a vector of numbers on a public grid.

    Attributes
    ----------
    name : str
        Its key in the split of epsilon.
    size : int
        Length of the vector.
    grid : float
        A power of two. Entries are integers times this; sums are added up in these integers, hence exactly.
    lower, upper : ndarray of int64, shape (size,)
        Public range of a row's entries, in units of the grid. Entries are cut off there.
    sensitivity : int
        L1 sensitivity of the sum in units of the grid: the largest sum of absolute changes of the entries, as they are
        on the grid, when one row is replaced. Not below the largest range of a single entry.
    public : ndarray, optional
        Public numbers that a family's `counts` reads beside the rows, such as released coefficients.
    """

    name: str
    size: int
    grid: float
    lower: np.ndarray
    upper: np.ndarray
    sensitivity: int
    public: np.ndarray | None = None

    def counts(self, entries: np.ndarray) -> np.ndarray:
        """Return real entries, shape (rows, size), as integers on the grid: a fixed map of each entry."""
        entries = np.asarray(entries)
        if entries.dtype.kind not in "biuf":  # of complex numbers a part would be lost without a word
            raise TypeError(f"{self.name}: expected real numbers from the family's entries, got {entries.dtype}.")
        entries = entries.astype(np.float64, copy=False)
        if entries.ndim != 2 or entries.shape[1] != self.size:
            raise ValueError(
                f"{self.name}: expected entries of shape (rows, {self.size}) from the family, got {entries.shape}."
            )
        if np.isnan(entries).any():  # as an integer it would be beyond all bounds
            raise ValueError(f"{self.name}: expected numbers from the family, got NaN. Map every row to numbers.")
        with np.errstate(over="ignore"):
            units = np.rint(entries / self.grid)  # the division by a power of two is exact, or infinite
        return np.clip(units, self.lower, self.upper).astype(np.int64)

    @property
    def real_sensitivity(self) -> float:
        """L1 sensitivity in the units of the values."""
        return self.sensitivity * self.grid


def power_of_two_above(value: float) -> int:
    """Return the least integer e with value <= 2^e, for a positive number."""
    fraction, exponent = math.frexp(value)
    return exponent - 1 if fraction == 0.5 else exponent


def bits_of_entries(n: int) -> int:
    """Return how many bits the largest entry of a bounded statistic of n rows takes on its grid, at most."""
    return min(BITS_OF_ENTRIES, BITS_OF_SUMS - power_of_two_above(max(n, 1)))


def bounded_statistic(
    name: str, lower: np.ndarray, upper: np.ndarray, n: int, sensitivity: float | Fraction | None = None
) -> Statistic:
    """Return a statistic whose entries lie in public intervals.

    Parameters
    ----------
    name : str
        Its key in the split of epsilon.
    lower, upper : array_like, shape (size,)
        Public range of each entry of a row's vector, in the units of the values.
    n : int
        Number of rows, public: with many rows the grid is coarser, so that the sum fits in 64 bits.
    sensitivity : float, optional
        A proved bound of the L1 change of the sum in real numbers, where it is less than the sum of the ranges.
        Rounding to the grid adds one unit for each entry.

    Returns
    -------
    Statistic
    """
    lower, upper = (np.atleast_1d(np.asarray(bound, dtype=np.float64)) for bound in (lower, upper))
    if lower.shape != upper.shape or lower.ndim != 1 or not np.isfinite([lower, upper]).all() or (lower > upper).any():
        raise ValueError(f"{name}: expected finite bounds lower <= upper, one pair for each entry.")
    largest = max(float(np.abs([lower, upper]).max()), math.ulp(0.0))
    grid = math.ldexp(1.0, max(power_of_two_above(largest) - bits_of_entries(n), -1022))
    low, high = (np.rint(bound / grid).astype(np.int64) for bound in (lower, upper))
    total = int((high - low).sum())
    if sensitivity is not None:
        # Two entries that differ by c on a grid of step g are rounded to integers that differ by at most c / g + 1.
        total = min(total, math.floor(Fraction(sensitivity) / Fraction(grid)) + len(low))
    return Statistic(name, len(low), grid, low, high, total)
