"""Statistics that move little when few rows are replaced, with the number of replaced rows that it takes to move them.

Everything here is a function of the raw rows and stays with the curator; `pymc_dpdepth.ptr.release_statistic` and
`propose_test_release` are what makes a release of it.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pymc_dpdepth.depths.base import as_rows, positive_number

__all__ = [
    "InterquartileRange",
    "MedianAbsoluteDeviation",
    "Median",
    "StableStatistic",
    "TrimmedMean",
    "bound_of",
    "clamped",
    "first_above",
]

Diameter = Callable[[int], float]


def first_above(diameter: Diameter, threshold: float, n: int) -> int:
    """Return the smallest k >= 1 with diameter(k) > threshold, and n + 1 where no k <= n has.

    A NaN counts as infinite: what is not known to be within the threshold is beyond it.

    Parameters
    ----------
    diameter : callable
        Does not decrease in k; called with 1 <= k <= n.
    threshold : float
    n : int
    """
    within, beyond = 0, 1  # diameter(within) <= threshold; 0 replaced rows move nothing
    while beyond <= n and diameter(beyond) <= threshold:
        within, beyond = beyond, 2 * beyond
    beyond = min(beyond, n + 1)
    while beyond - within > 1:
        middle = (within + beyond) // 2
        if diameter(middle) <= threshold:
            within = middle
        else:
            beyond = middle
    return beyond


def clamped(rows: np.ndarray) -> np.ndarray:
    """Return rows that cannot be written to, entries beyond +-2^256 set to that: a fixed public map of one entry.

    So no sum, and no difference, of entries overflows, whatever one of them is.
    """
    from pymc_dpdepth.depths.aggregate import CLAMP

    result = np.clip(rows, -CLAMP, CLAMP)
    result.flags.writeable = False
    return result


def bound_of(statistic: StableStatistic, rows: np.ndarray) -> Diameter:
    """Return k -> U_k(X) as a float, infinite where the statistic says NaN; refuse what is no number. Private."""
    diameter = statistic.diameters(rows)
    if not callable(diameter):
        raise TypeError(f"statistic.diameters: expected a function k -> U_k, got {type(diameter).__name__}.")

    def bound(k: int) -> float:
        found = diameter(k)
        if isinstance(found, bool) or not isinstance(found, int | float | np.integer | np.floating):
            raise TypeError(f"statistic.diameters: expected a number U_k for each k, got {type(found).__name__}.")
        return math.inf if math.isnan(found) else float(found)

    return bound


class StableStatistic(abc.ABC):
    """A statistic T(X) with a bound of its diameter among the tables within k rows of X.

    A subclass gives the values and U_k(X) >= sup |T(Y) - T(Z)|, the largest component, over all tables Y, Z of n rows
    that differ from X in at most k. The privacy of a release rests on one property beside that bound:

        U_k(X) <= U_(k+1)(X') for all tables X, X' that differ in one row.

    It holds for the supremum itself, and for any bound that is made of nested windows: windows that, for k + 1 and X',
    contain those for k and X.

    Both must hold for what the numbers count as, where they are none: a bound that is NaN counts as infinite, and where
    a component of T(X) is NaN all bounds do, so that the test refuses. Entries of X beyond +-2^256 are set to that
    before the statistic sees them. A release calls `value` and `diameters` before it charges; so an error that they
    raise costs nothing, and the curator, who sees it, keeps it.

    Attributes
    ----------
    name : str
        The statistic's word in the record.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_dpdepth import ptr
    >>> class Share(ptr.StableStatistic):
    ...     name = "share_of_positive_entries"
    ...     def value(self, rows):
    ...         return (rows > 0).mean(axis=0)
    ...     def diameters(self, rows):  # k rows move a share within k/n, and never outside of [0, 1]
    ...         n, shares = len(rows), (rows > 0).mean(axis=0)
    ...         return lambda k: float(np.max(np.minimum(1, shares + k / n) - np.maximum(0, shares - k / n)))
    >>> Share().breakdown([[-1.0], [1.0], [2.0], [3.0]], threshold=0.5)
    2
    """

    name: ClassVar[str]

    @abc.abstractmethod
    def value(self, rows: np.ndarray) -> np.ndarray:
        """Return the components of the statistic.

        Parameters
        ----------
        rows : ndarray of float64, shape (n, d), finite, n >= 1
            Not to be written to.

        Returns
        -------
        ndarray of float64, shape (p,)
        """

    @abc.abstractmethod
    def diameters(self, rows: np.ndarray) -> Diameter:
        """Return the function k -> U_k(X), for 1 <= k <= n; it must not decrease in k, and may be infinite."""

    def labels(self, columns: Sequence[str]) -> list[str]:
        """Return the public names of the p components, texts that differ: by default one for each column."""
        return list(columns)

    def describe(self) -> dict[str, Any]:
        """Return the public record of the statistic.

        Returns
        -------
        dict
            The name, and if there are settings, "parameters": a dict of numbers, or lists of numbers, by name.
        """
        return {"name": self.name}

    def breakdown(self, X: Any, threshold: float) -> int:
        """Return B(X) = min{k >= 1: U_k(X) > threshold}, or n + 1 where there is none. Not private.

        It changes by at most 1 when one row is replaced.

        Parameters
        ----------
        X : array_like, shape (n, d)
            At least one row.
        threshold : float
            > 0, chosen without looking at X.

        Returns
        -------
        int
        """
        rows, threshold = as_rows(X), positive_number(threshold, "threshold")
        if not len(rows):
            raise ValueError("X: expected at least one row, got none.")
        return first_above(bound_of(self, clamped(rows)), threshold, len(rows))


class WindowStatistic(StableStatistic):
    """A statistic of each column by itself; its window gives both the bound and, for k = 0, the value."""

    @abc.abstractmethod
    def window(self, ordered: np.ndarray, k: int) -> tuple[float, float]:
        """Return bounds of the statistic over the tables within k rows.

        Parameters
        ----------
        ordered : ndarray of float64, shape (n,)
            One column, ascending.
        k : int
            At least 0.
        """

    def value(self, rows: np.ndarray) -> np.ndarray:
        """Return the statistic of each column."""
        return np.array([self.window(np.sort(column), 0)[0] for column in clamped(rows).T])

    def diameters(self, rows: np.ndarray) -> Diameter:
        """Return the function k -> the widest window of a column."""
        columns = [np.sort(column) for column in clamped(rows).T]

        def widest(k: int) -> float:
            return max(high - low for low, high in (self.window(column, k) for column in columns))

        return widest


@dataclass(frozen=True)
class Median(WindowStatistic):
    """The median of each column.

    Between the tables within k rows of X it takes all values in [x_(m-k), x_(m+k)], so its bound is the supremum.

    Examples
    --------
    >>> from pymc_dpdepth import ptr
    >>> ptr.Median().breakdown([[0.0], [1.0], [2.0], [3.0], [10.0]], threshold=2.0)
    2
    """

    name: ClassVar[str] = "median"

    def window(self, ordered: np.ndarray, k: int) -> tuple[float, float]:
        """Return the smallest and the largest median."""
        from pymc_dpdepth.ptr.windows import median_window

        return median_window(ordered, k)


@dataclass(frozen=True)
class TrimmedMean(WindowStatistic):
    """The mean of each column without the smallest and the largest g = floor(share * n) entries.

    Between the tables within k <= g rows of X it is smallest, and largest, where k rows lie far below, and far above,
    all others: the mean of x_(g+1-k), ..., x_(n-g-k), and of x_(g+1+k), ..., x_(n-g+k).

    Parameters
    ----------
    share : float
        Cut off on either side, in [0, 0.5). With 0 any row moves the mean without bound.

    Examples
    --------
    >>> from pymc_dpdepth import ptr
    >>> ptr.TrimmedMean(0.25).breakdown([[0.0], [1.0], [2.0], [3.0]], threshold=1.0)
    1
    """

    share: float = 0.1

    name: ClassVar[str] = "trimmed_mean"

    def __post_init__(self) -> None:
        """Check the share."""
        if isinstance(self.share, bool) or not isinstance(self.share, int | float) or not 0 <= self.share < 1 / 2:
            raise ValueError(f"share: expected a number in [0, 0.5), got {self.share!r}.")

    def window(self, ordered: np.ndarray, k: int) -> tuple[float, float]:
        """Return the smallest and the largest trimmed mean; sums are rounded once, so they keep order."""
        cut, n = math.floor(self.share * len(ordered)), len(ordered)
        if k > cut:
            return -math.inf, math.inf
        low, high = (math.fsum(ordered[cut + shift : n - cut + shift]) for shift in (-k, k))
        return low / (n - 2 * cut), high / (n - 2 * cut)

    def describe(self) -> dict[str, Any]:
        """Return a public record of the statistic."""
        return {"name": self.name, "share": self.share}


@dataclass(frozen=True)
class InterquartileRange(WindowStatistic):
    """The interquartile range of each column, quartiles by linear interpolation.

    Of k replaced rows some move the lower quartile and the others the upper one, so the bound is the supremum but for
    the smallest tables.

    Examples
    --------
    >>> from pymc_dpdepth import ptr
    >>> ptr.InterquartileRange().breakdown([[float(i)] for i in range(41)], threshold=3.0)
    2
    """

    name: ClassVar[str] = "interquartile_range"

    def window(self, ordered: np.ndarray, k: int) -> tuple[float, float]:
        """Return bounds of the interquartile range."""
        from pymc_dpdepth.ptr.windows import iqr_window

        return iqr_window(ordered, k)


@dataclass(frozen=True)
class MedianAbsoluteDeviation(WindowStatistic):
    """The median absolute deviation of each column from its median; `ptr.MAD` is a shorter name.

    Its window lets center and distances move by k rows each, which is a little more than k rows can do.

    Examples
    --------
    >>> from pymc_dpdepth import ptr
    >>> ptr.MAD().breakdown([[float(i)] for i in range(41)], threshold=3.0)
    3
    """

    name: ClassVar[str] = "median_absolute_deviation"

    def window(self, ordered: np.ndarray, k: int) -> tuple[float, float]:
        """Return bounds of the median absolute deviation."""
        from pymc_dpdepth.ptr.windows import mad_window

        return mad_window(ordered, k)
