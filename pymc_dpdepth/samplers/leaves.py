"""The leaves of a tree of boxes in u-space, and how a box is weighed and split.

Boxes are runs of cells of the grid, so they partition it and their prior masses are exact.
"""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np

from pymc_dpdepth.bits import float_to_bits
from pymc_dpdepth.grid import FIRST_UPPER_KEY, LAST_KEY, SHIFT, cell_count, lower_edge, mass
from pymc_dpdepth.samplers.weights import Interval, normalise

__all__ = ["Leaves", "box_interval", "box_significands", "split_boxes"]

FIRST_CAPACITY = 256
# A mass is right to 3 roundings, its product with the others adds one.
SIDE_ROUNDINGS = 4


@numba.njit(cache=True, nogil=True)
def box_significands(first, last, floors):
    """Return the prior masses of boxes, as significands in [1, 2) (right to 4 d roundings) and exponents."""
    count, d = first.shape
    significands, exponents = np.ones(count), np.zeros(count, dtype=np.int64)
    for i in range(count):
        for j in range(d):
            side = mass(first[i, j], last[i, j], floors[j, 0], floors[j, 1])
            significands[i], exponents[i] = normalise(significands[i] * side, exponents[i])
    return significands, exponents


def box_interval(first: np.ndarray, last: np.ndarray, floors: np.ndarray, precision: int) -> Interval:
    """Return the prior mass of a box between integers."""
    product = Interval(1, 1)
    for ends in zip(first.tolist(), last.tolist(), *floors.T.tolist(), strict=True):
        product = (product * Interval.of_cells(cell_count(*ends))).rounded(precision)
    return product


@numba.njit(cache=True, nogil=True)
def _middle_cell(first, last, low_floor, high_floor):
    """Return the cell in first..last - 1 behind which a run is cut: at the median, or into halves of its mass."""
    if first < FIRST_UPPER_KEY <= last:
        return FIRST_UPPER_KEY - 1
    if first < FIRST_UPPER_KEY:
        middle = 0.5 * (lower_edge(first, low_floor) + lower_edge(last + 1, low_floor))
        return min(max(float_to_bits(middle) >> SHIFT, first), last - 1)
    middle = 0.5 * (lower_edge(LAST_KEY - last, high_floor) + lower_edge(LAST_KEY - first + 1, high_floor))
    return min(max(LAST_KEY - (float_to_bits(middle) >> SHIFT) - 1, first), last - 1)


@numba.njit(cache=True, nogil=True)
def split_boxes(first, last, low, high, influence, floors):
    """Return the coordinate to split each box along and the last cell of its first half; -1 for a box of one cell.

    The longest side is split, measured by how far it moves the score.

    Parameters
    ----------
    first, last : ndarray of int64, shape (k, d)
    low, high : ndarray of float64, shape (k, d)
        The boxes in the units of the depth.
    influence : ndarray of float64, shape (d,)
    floors : ndarray of int64, shape (d, 2)
    """
    count, d = first.shape
    axes, cells = np.full(count, -1, dtype=np.int64), np.zeros(count, dtype=np.int64)
    for i in range(count):
        longest = -1.0
        for j in range(d):
            if last[i, j] > first[i, j]:
                length = (high[i, j] - low[i, j]) * influence[j]
                if length > longest:
                    longest, axes[i] = length, j
        if axes[i] >= 0:
            j = axes[i]
            cells[i] = _middle_cell(first[i, j], last[i, j], floors[j, 0], floors[j, 1])
    return axes, cells


class Leaves:
    """Growing arrays of boxes with bounds and weights.

    Parameters
    ----------
    floors : ndarray of int64, shape (d, 2)
    weigh : callable
        (significands, exponents, bounds) of boxes to the significands and exponents of their weights.
    bound_type : dtype
        int64 for counts, float64 for depths.
    """

    def __init__(self, floors: np.ndarray, weigh: Callable, bound_type: type) -> None:
        self.floors, self._weigh, self._size = floors, weigh, 0
        shape = (FIRST_CAPACITY, len(floors))
        self._arrays = {
            "first": np.empty(shape, dtype=np.int64),
            "last": np.empty(shape, dtype=np.int64),
            "bounds": np.empty(FIRST_CAPACITY, dtype=bound_type),
            "significands": np.empty(FIRST_CAPACITY),
            "exponents": np.empty(FIRST_CAPACITY, dtype=np.int64),
        }

    def __len__(self) -> int:
        """Return the number of boxes."""
        return self._size

    def __getattr__(self, name: str) -> np.ndarray:
        """Return the array of that name, one entry for each box."""
        arrays = self.__dict__.get("_arrays", {})
        if name not in arrays:
            raise AttributeError(name)
        return arrays[name][: self._size]

    def add(self, first: np.ndarray, last: np.ndarray, bounds: np.ndarray) -> None:
        """Append boxes."""
        while self._size + len(first) > len(self._arrays["bounds"]):
            self._arrays = {name: np.concatenate([a, np.empty_like(a)]) for name, a in self._arrays.items()}
        start, self._size = self._size, self._size + len(first)
        self._put(np.arange(start, self._size), first, last, bounds)

    def replace(self, index: np.ndarray, first: np.ndarray, last: np.ndarray, bounds: np.ndarray) -> None:
        """Put boxes in the place of others."""
        self._put(index, first, last, bounds)

    def _put(self, index, first, last, bounds) -> None:
        self.first[index], self.last[index], self.bounds[index] = first, last, bounds
        weights = self._weigh(*box_significands(first, last, self.floors), bounds)
        self.significands[index], self.exponents[index] = weights
