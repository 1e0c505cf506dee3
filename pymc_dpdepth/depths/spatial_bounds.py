"""Upper bounds of the spatial depths over boxes.

Let c be the center of a box, r the largest distance of its points from c, m(x) = mean_i SR(x - X_i), and for each row
v = c - X_i, s = SR(v), t = r / |v|. For any unit vector w, |m(x)| >= w.m(x), and w.m(x) is bounded row by row:

- With t <= 1/2, by Taylor's formula. For a step d the derivatives of SR at v are (d - s (s.d)) / |v| and, with a = s.d
  and p = d - a s, -(2 a p + |p|^2 s) / |v|^2. The second is at most (2 / sqrt 3) |d|^2 / |v|^2 long: p^2 (4 a^2 + p^2)
  = p^2 (4 - 3 p^2) where a^2 + p^2 = 1, largest at p^2 = 2/3. On the way to v + d the distance is at least |v| - |d|
  times the share of the way, so the remainder is at most

      (2 / sqrt 3) integral_0^1 (1 - q) t^2 / (1 - q t)^2 dq = (2 / sqrt 3) (-log(1 - t) - t)
                                                           <= (2 / sqrt 3) (t^2 / 2 + 0.5453 t^3),

  as the series of (-log(1 - t) - t - t^2 / 2) / t^3 grows with t and is (log 2 - 5/8) 8 < 0.5453 at t = 1/2. First
  derivatives are added up before their signs are lost, so that opposite rows cancel.
- Otherwise, the angle of v + d to w is at most the sum of that of v and asin t, and w.SR(v + d) at least its cosine;
  at least -1 always, also where v + d = 0 or t >= 1.

The w is the direction of the shortest m(c) + J d over the box, J the sum of first derivatives. Any other is valid too,
so how well it is found decides the tightness alone.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numba
import numpy as np

from pymc_dpdepth.depths.box_bounds import BoxBound
from pymc_dpdepth.depths.spatial_kernels import CLAMP, modified_spatial_depths, spatial_depths

if TYPE_CHECKING:
    from pymc_dpdepth.depths.spatial import ModifiedSpatial, Spatial

__all__ = ["SpatialBoxBound"]

CURVATURE = 1.1547006  # 2 / sqrt 3, rounded up
CUBE = 0.5453  # see above
# Squared distances outside these are left to the careful path of the near rows.
SMALLEST_SQUARE, LARGEST_SQUARE = 1e-280, 1e280
BLOCK = 128  # rows side by side; a power of two
MOST_SWEEPS, SHORTEST_MOVE = 24, 2.0**-10  # of coordinate descent, as a share of the radius
SHORTEST = 2.0**-40  # a vector of this length has no certain direction
# A radius is rounded up by this factor, far more than the roundings of r and t add up to.
UP = 1.0 + 2.0**-40
# 1 - (w.s)^2 is wrong by some units of 2^-53; this is more, and added before the root is taken.
SQUARE_ROUNDING = 2.0**-48
# Each row adds terms of a total size below 8 (d + 2), each with some 32 roundings of at most 2^-53 of it, and a sum
# over n rows n more; the depth's own kernel makes fewer. So this times (d + 2) (n + 64) bounds all of them.
ROUNDING = 2.0**-49


class SpatialBoxBound(BoxBound):
    """Bounds of a spatial depth, in terms of its value: 1 - |m|, or 1 - |m|^2.

    Parameters
    ----------
    depth : Spatial or ModifiedSpatial
    rows : ndarray of float64, shape (n, d)
        In the units of the points.
    """

    def __init__(self, depth: Spatial | ModifiedSpatial, rows: np.ndarray) -> None:
        (self._columns,) = depth.prepare(rows)
        self._squared = depth.name == "modified_spatial"
        self.sensitivity_count = None
        self.influence = _influence(self._columns)

    def upper(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return upper bounds of the depth over boxes."""
        return _upper_depths(low, high, self._columns, self._squared)

    def score(self, points: np.ndarray, least: np.ndarray) -> np.ndarray:
        """Return the depths of points."""
        return (modified_spatial_depths if self._squared else spatial_depths)(points, self._columns)


@np.errstate(all="ignore")  # a warning of an overflow would tell of a far row
def _influence(columns: np.ndarray) -> np.ndarray:
    """Return the mean size of the derivative of m along each coordinate, at the middle of the rows; shape (d,).

    It decides which side of a box is split, and so the work alone.
    """
    d, n = columns.shape
    if n == 0:
        return np.ones(d)
    differences = columns / (2 * 2) - np.median(columns / (2 * 2), axis=1)[:, None]
    largest = np.abs(differences).max(axis=0)
    differences, largest = differences[:, largest > 0.0], largest[largest > 0.0]
    if largest.size == 0:
        return np.ones(d)
    scaled = differences / largest
    lengths = np.sqrt((scaled * scaled).sum(axis=0))
    units = scaled / lengths
    # One row next to the middle must not decide alone: distances below a typical one count as that.
    nearness = 1.0 / np.maximum(np.maximum(largest * lengths / np.median(largest), 1 / 2), 1 / 2)
    influence = ((1.0 - units * units) * nearness).sum(axis=1)
    # A coordinate along which all rows lie has no curvature at the middle, but still moves the depth far from it.
    return np.maximum(influence, 2.0**-6 * influence.max()) if influence.max() > 0.0 else np.ones(d)


@numba.njit(cache=True, nogil=True)
def _fold(partial):
    """Return the sum of BLOCK numbers, and spoil them."""
    width = BLOCK // 2
    while width >= 1:
        for k in range(width):
            partial[k] += partial[width + k]
        width //= 2
    return partial[0]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _block_units(center, radius, columns, start, stop, units, ratios, squares):
    """Fill unit vectors (d, BLOCK) and ratios t of far rows, and 0 for near ones; return the number of near rows."""
    size = stop - start
    squares[:size] = 0.0
    for j in range(center.size):
        middle, column, unit = center[j], columns[j, start:stop], units[j]
        for k in range(size):
            unit[k] = middle - column[k]
            squares[k] += unit[k] * unit[k]
    least = max(4.0 * radius * radius, SMALLEST_SQUARE)
    near = 0
    for k in range(size):
        far = (squares[k] >= least) & (squares[k] <= LARGEST_SQUARE)
        squares[k] = 1.0 / math.sqrt(squares[k]) if far else 0.0
        ratios[k] = radius * squares[k]
        near += not far
    for j in range(center.size):
        unit = units[j]
        for k in range(size):
            unit[k] *= squares[k]
    return near


@numba.njit(cache=True, nogil=True)
def _add_block(units, ratios, size, sums):
    """Add the terms of a block: s_j, t s_j s_k for j <= k, t^2 and t^3, each to its row of `sums`, k by k."""
    d, place = units.shape[0], 0
    for j in range(d):
        unit, partial = units[j], sums[place]
        for k in range(size):
            partial[k] += unit[k]
        place += 1
    for j in range(d):
        for other in range(j, d):
            one, two, partial = units[j], units[other], sums[place]
            for k in range(size):
                partial[k] += ratios[k] * (one[k] * two[k])
            place += 1
    second, third = sums[place], sums[place + 1]
    for k in range(size):
        square = ratios[k] * ratios[k]
        second[k] += square
        third[k] += square * ratios[k]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _near_unit(center, radius, columns, i, unit):
    """Put SR(c - X_i) and t into `unit` (d + 1,); zeros and infinity at a row."""
    d = center.size
    largest, total = 0.0, 0.0
    for j in range(d):
        unit[j] = center[j] - columns[j, i]
        largest = max(largest, abs(unit[j]))
    if largest == 0.0:
        unit[d] = np.inf
        return
    for j in range(d):
        unit[j] /= largest
        total += unit[j] * unit[j]
    length = math.sqrt(total)
    for j in range(d):
        unit[j] /= length
    unit[d] = radius / length / largest


@numba.njit(cache=True, nogil=True)
def _cosines_below(units, w):
    """Return a lower bound of the sum of w.SR(v + d), |d| <= t |v|, for rows of unit vectors s, each followed by t."""
    total = 0.0
    for i in range(units.shape[0]):
        along, ratio = 0.0, units[i, w.size]
        for j in range(w.size):
            along += units[i, j] * w[j]
        cosine = math.sqrt(1.0 - ratio * ratio) if ratio < 1.0 else -1.0
        sine = math.sqrt(max(1.0 - along * along, 0.0) + SQUARE_ROUNDING)
        total += max(along * cosine - sine * ratio, -1.0) if (ratio < 1.0) & (along >= -cosine) else -1.0
    return total


@numba.njit(cache=True, nogil=True)
def _shortest(pull, slopes, reach, best):
    """Put the shortest pull + slopes @ step over |step_j| <= reach_j, nearly, into `best`, by coordinate descent."""
    d = pull.size
    step = np.zeros(d)
    best[:] = pull
    for _ in range(MOST_SWEEPS):
        moved = 0.0
        for j in range(d):
            slope, square, along = slopes[j], 0.0, 0.0
            for k in range(d):
                square += slope[k] * slope[k]
                along += slope[k] * best[k]
            if square > 0.0:
                there = min(max(step[j] - along / square, -reach[j]), reach[j])
                change = there - step[j]
                step[j] = there
                moved = max(moved, abs(change))
                for k in range(d):
                    best[k] += slope[k] * change
        if moved < SHORTEST_MOVE:
            break


@numba.njit(cache=True, nogil=True)
def _directed(pull, slopes, reach, w):
    """Return w.pull less the most that steps |step_j| <= reach_j take away."""
    total = 0.0
    for j in range(w.size):
        along = 0.0
        for k in range(w.size):
            along += slopes[j, k] * w[k]
        total += w[j] * pull[j] - abs(along) * reach[j]
    return total


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _least_length(low, high, columns, units, ratios, squares, sums, near):
    """Return a lower bound of |m(x)| over low <= x <= high; there must be rows. From `units` on it is room to work."""
    d, n = columns.shape
    center, reach = np.empty(d), np.empty(d)
    widest = 0.0
    for j in range(d):
        a, b = max(min(low[j], CLAMP), -CLAMP), max(min(high[j], CLAMP), -CLAMP)
        center[j] = a / 2 + b / 2
        reach[j] = max(b - center[j], center[j] - a)
        widest = max(widest, reach[j])
    radius = 0.0
    if widest > 0.0:
        for j in range(d):
            reach[j] /= widest
            radius += reach[j] * reach[j]
        radius = math.sqrt(radius)
        reach /= radius
        radius = radius * widest * UP + 2.0**-1074
    found = 0
    sums[:] = 0.0
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        if _block_units(center, radius, columns, start, stop, units, ratios, squares) > 0:
            for k in range(stop - start):
                if squares[k] == 0.0:
                    _near_unit(center, radius, columns, start + k, near[found])
                    found += 1
        _add_block(units, ratios, stop - start, sums)
    return _length_from_sums(n, reach, sums, near[:found])


@numba.njit(cache=True, nogil=True)
def _length_from_sums(n, reach, sums, near):
    d = reach.size
    pull, slopes, whole, w = np.empty(d), np.empty((d, d)), np.empty(d), np.empty(d)
    place, trace = d, 0.0
    for j in range(d):
        pull[j] = _fold(sums[j]) / n
        for k in range(j, d):
            slopes[j, k] = slopes[k, j] = -_fold(sums[place]) / n
            place += 1
        trace -= slopes[j, j]  # |s| = 1: the sum of t
    for j in range(d):
        slopes[j, j] += trace
        whole[j] = pull[j] + near[:, j].sum() / n
    remainder = CURVATURE * (_fold(sums[place]) / 2 + CUBE * _fold(sums[place + 1])) / n
    _shortest(whole, slopes, reach, w)
    length = 0.0
    for j in range(d):
        length += w[j] * w[j]
    length = math.sqrt(length)
    if length < SHORTEST:
        return 0.0
    for j in range(d):
        w[j] /= length
    bound = _directed(pull, slopes, reach, w) + _cosines_below(near, w) / n - remainder
    return min(max(bound - ROUNDING * (d + 2) * (n + 64.0), 0.0), 1.0)


@numba.njit(cache=True, nogil=True)
def _upper_depths(low, high, columns, squared):
    count, (d, n) = low.shape[0], columns.shape
    uppers = np.zeros(count)
    if n == 0:
        return uppers
    units, ratios, squares = np.empty((d, BLOCK)), np.empty(BLOCK), np.empty(BLOCK)
    sums, near = np.empty((d + d * (d + 1) // 2 + 2, BLOCK)), np.empty((n, d + 1))
    for i in range(count):
        length = _least_length(low[i], high[i], columns, units, ratios, squares, sums, near)
        uppers[i] = 1.0 - length * length if squared else 1.0 - length
    return uppers
