"""Upper bounds of a depth over boxes: what branch and bound asks of a depth.

A `BoxBound` belongs to one table. Its `score` is the depth at points, its `upper` is at least the score of every point
of a box, as computed in doubles and not only in real arithmetic. A counted depth scores in counts, integers, so that
the samplers can weigh them exactly; any other depth scores by its value.
"""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING

import numba
import numpy as np

from pymc_dpdepth.depths.aggregate import CLAMP, axis_of, count_below, count_up_to, direction_count
from pymc_dpdepth.depths.univariate import TUKEY, univariate_count

if TYPE_CHECKING:
    from pymc_dpdepth.depths.directional import DirectionalDepth

__all__ = ["BoxBound", "DirectionalBoxBound"]


class BoxBound(abc.ABC):
    """The depth of points of one table, and upper bounds over boxes. Both are functions of the private rows.

    Attributes
    ----------
    sensitivity_count : int or None
        For a counted depth, the most counts by which one replaced row moves the score of a point; None where the score
        is the depth itself.
    influence : ndarray, shape (d,)
        How far a unit step along each coordinate moves the score, up to one factor: where a box is split.
    """

    sensitivity_count: int | None
    influence: np.ndarray

    @abc.abstractmethod
    def upper(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return upper bounds of the score over the boxes low <= x <= high.

        Parameters
        ----------
        low, high : ndarray of float64, shape (k, d), finite

        Returns
        -------
        ndarray of int64 (counts) or float64 (depths), shape (k,)
        """

    @abc.abstractmethod
    def score(self, points: np.ndarray, least: np.ndarray) -> np.ndarray:
        """Return the scores of points, each a function of that point and the rows alone.

        Parameters
        ----------
        points : ndarray of float64, shape (k, d), finite
        least : ndarray, shape (k,)
            A score below it may come back as any number below it: the caller would reject the point either way.

        Returns
        -------
        ndarray of int64 (counts) or float64 (depths), shape (k,)
        """


class DirectionalBoxBound(BoxBound):
    """Bounds of a step depth over a set of directions.

    The projection of a point on u, as it is computed, is a sum of products in a fixed order, and rounding keeps order:
    it is monotone in every coordinate. So over a box it lies between its values a, b at two corners, and at every point
    le <= le(b), ge <= ge(a). The count of a direction is at most the largest one with as few rows on either side.

    Parameters
    ----------
    depth : DirectionalDepth
        Not smoothed, with concrete directions.
    rows : ndarray of float64, shape (n, d)
        In the units of the points.
    """

    def __init__(self, depth: DirectionalDepth, rows: np.ndarray) -> None:
        self._ordered, self._directions, self._code = depth.prepare(rows)
        m, n = self._ordered.shape
        self._mean = depth.aggregation == "mean"
        # min(le, ge) grows with both counts, so min(le(b), ge(a)) and the direction's largest count say it all.
        tables = _count_tables if self._code[0] != TUKEY.code else _largest_counts
        self._most_below, self._most_above = tables(self._ordered, self._code[0])
        self.sensitivity_count = (m if self._mean else 1) * depth.univariate.sensitivity_count(n)
        self.influence = np.abs(self._directions).mean(axis=0)

    def upper(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return upper bounds of the count over boxes; the sum of the directions' counts where the depth is a mean."""
        tables = self._ordered, self._directions, self._most_below, self._most_above
        return _upper_counts(low, high, *tables, self._mean)

    def score(self, points: np.ndarray, least: np.ndarray) -> np.ndarray:
        """Return the counts of points; of a minimum that falls below `least`, the first count that does."""
        tables = self._ordered, self._directions, self._code[0]
        if self._mean:
            return _total_counts(points, *tables)
        return _least_counts(points, np.asarray(least, dtype=np.int64), *tables)


@numba.njit(cache=True, nogil=True)
def _count_tables(ordered, code):
    """Return, for each direction, the largest count of a place with at most i rows at or below (above) it, i = 0..n."""
    m, n = ordered.shape
    below, above = np.zeros((m, n + 1), dtype=np.int64), np.zeros((m, n + 1), dtype=np.int64)
    for k in range(m):
        for i in range(n + 1):
            gap = univariate_count(code, i, n - i)
            below[k, i] = max(below[k, i], gap)
            above[k, n - i] = max(above[k, n - i], gap)
        start = 0
        for i in range(n):
            if i + 1 == n or ordered[k, i + 1] != ordered[k, i]:
                atom = univariate_count(code, i + 1, n - start)
                below[k, i + 1] = max(below[k, i + 1], atom)
                above[k, n - start] = max(above[k, n - start], atom)
                start = i + 1
        for i in range(1, n + 1):
            below[k, i] = max(below[k, i], below[k, i - 1])
            above[k, i] = max(above[k, i], above[k, i - 1])
    return below, above


@numba.njit(cache=True, nogil=True)
def _largest_counts(ordered, code):
    """Return each direction's largest count, as tables of one column."""
    m, n = ordered.shape
    largest = np.zeros((m, 1), dtype=np.int64)
    for k in range(m):
        start = 0
        for i in range(n):
            if i + 1 == n or ordered[k, i + 1] != ordered[k, i]:
                # At the atom, and in the gap below it.
                largest[k, 0] = max(largest[k, 0], univariate_count(code, i + 1, n - start))
                largest[k, 0] = max(largest[k, 0], univariate_count(code, start, n - start))
                start = i + 1
    return largest, largest


@numba.njit(cache=True, nogil=True)
def _ends(low, high, direction):
    """Return the smallest and the largest computed projection over a box; the additions are those of project_point."""
    axis = axis_of(direction)
    if axis >= 0:
        a, b = direction[axis] * low[axis], direction[axis] * high[axis]
        return min(a, b), max(a, b)
    a = b = 0.0
    for j in range(direction.size):
        left, right = direction[j] * max(min(low[j], CLAMP), -CLAMP), direction[j] * max(min(high[j], CLAMP), -CLAMP)
        if direction[j] < 0.0:
            left, right = right, left
        a += left
        b += right
    return a, b


@numba.njit(cache=True, nogil=True)
def _upper_counts(low, high, ordered, directions, most_below, most_above, mean):
    count, (m, n) = low.shape[0], ordered.shape
    bounds = np.empty(count, dtype=np.int64)
    for i in range(count):
        total, smallest = np.int64(0), np.int64(2**62)
        for k in range(m):
            a, b = _ends(low[i], high[i], directions[k])
            first = count_below(ordered[k], a, 0, n)
            below, above = count_up_to(ordered[k], b, first, n), n - first
            if most_below.shape[1] == 1:
                most = min(below, above, most_below[k, 0])
            else:
                # The product of the counts grows with both, and at a single point it is the score itself.
                most = min(most_below[k, below], most_above[k, above], below * above)
            total += most
            smallest = min(smallest, most)
        bounds[i] = total if mean else smallest
    return bounds


@numba.njit(cache=True, nogil=True)
def _total_counts(points, ordered, directions, code):
    counts = np.zeros(points.shape[0], dtype=np.int64)
    for i in range(points.shape[0]):
        for k in range(directions.shape[0]):
            counts[i] += direction_count(points[i], ordered[k], directions[k], code)
    return counts


@numba.njit(cache=True, nogil=True)
def _least_counts(points, least, ordered, directions, code):
    counts = np.full(points.shape[0], 2**62)
    for i in range(points.shape[0]):
        for k in range(directions.shape[0]):
            counts[i] = min(counts[i], direction_count(points[i], ordered[k], directions[k], code))
            if counts[i] < least[i]:
                break
    return counts
