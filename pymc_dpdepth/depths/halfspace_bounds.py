"""Upper bounds of halfspace depth over all directions, in counts: the emptiest of some fixed halfspaces.

A halfspace with a point of the box on its boundary holds no fewer rows than the depth counts, whatever its normal
vector. So a fixed, public set of directions bounds the depth over all of them, and only points that come close to the
bound need the exact count.

The exact count is that of the doubles given, but projections are rounded, and one that is rounded past another could
leave a row out. So each row has two keys in each direction, below and above its true projection: it is left out of a
side only where its projection is on the other one for certain.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numba
import numpy as np

from pymc_dpdepth.depths.aggregate import CLAMP, axis_of, count_below, count_up_to
from pymc_dpdepth.depths.box_bounds import BoxBound
from pymc_dpdepth.depths.directions import Directions
from pymc_dpdepth.depths.halfspace_plane import count_in_plane
from pymc_dpdepth.depths.halfspace_space import count_in_space

if TYPE_CHECKING:
    from pymc_dpdepth.depths.halfspace import Halfspace

__all__ = ["HalfspaceBoxBound", "fewest_in_halfspaces", "side_keys", "spread_directions"]

# How many fixed directions. With 1,000 normal rows and boxes of half-width 0.01 around the middle, 64 in the plane
# leave a gap of 6.4 counts, 128 one of 6.1 for twice the time; in space 256 leave 12.5, and 512 12.4.
DIRECTIONS = {2: 64, 3: 256}
# A search around the best direction, before the exact count in space, which takes milliseconds with 1,000 rows: steps
# from about the spacing of the fixed directions on, each shorter than the last where no neighbour is better.
FIRST_STEP, LAST_STEP, SHRINK = 0.1, 0.002, 0.6
NEIGHBOURS = 6
GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))
# A projection is a sum of d products: it is wrong by at most (d + 1) 2^-53 of the sum of their sizes, a key by one
# rounding more; what underflows is below 2^-1000 in all.
ROUNDING, UNDERFLOW = 2.0**-52, 2.0**-1000


class HalfspaceBoxBound(BoxBound):
    """Bounds of halfspace depth over all directions in the plane and in space.

    Parameters
    ----------
    depth : Halfspace
        With directions=None.
    rows : ndarray of float64, shape (n, d), d = 2 or 3
    """

    def __init__(self, depth: Halfspace, rows: np.ndarray) -> None:
        n, d = rows.shape
        self._columns, self._units = depth.prepare(rows)
        self._directions = spread_directions(d, DIRECTIONS[d])
        self._keys = side_keys(self._columns, self._directions)
        # Some direction has only rows equal to the point on both of its sides, so one side has at most this many.
        same = np.unique(rows, axis=0, return_counts=True)[1].max() if n else 0
        self._most = (n + int(same)) // 2
        self.sensitivity_count = 1 if n else 0
        self.influence = self._units / self._units.max()

    def upper(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return upper bounds of the count over boxes."""
        return _fewest_of_boxes(low, high, *self._keys, self._directions, self._most)

    def score(self, points: np.ndarray, least: np.ndarray) -> np.ndarray:
        """Return the counts of points; of one whose bound is below `least`, the bound."""
        least = np.asarray(least, dtype=np.int64)
        return _exact_counts(points, least, *self._keys, self._directions, self._columns, self._units)


@lru_cache
def spread_directions(d: int, m: int) -> np.ndarray:
    """Return m public directions of the plane or space, well spread, the axes first; shape (m, d).

    Parameters
    ----------
    d : {2, 3}
    m : int
        In the plane, even.
    """
    if d == 2:
        angles = np.pi * np.arange(m) / m
        first = np.column_stack([np.cos(angles), np.sin(angles)])
        first[m // 2] = 0.0, 1.0
        order = np.argsort(np.arange(m) % (m // 2), kind="stable")
        return Directions.from_array(first[order]).matrix()
    # Points of a spiral at equal steps of height, and so of area, on half of the sphere.
    k = np.arange(m - d)
    height = (k + 1 / 2) / (m - d)
    across = np.sqrt(1.0 - height * height)
    spiral = np.column_stack([across * np.cos(GOLDEN_ANGLE * k), across * np.sin(GOLDEN_ANGLE * k), height])
    return Directions.from_array(np.concatenate([np.eye(d), spiral])).matrix()


def side_keys(columns: np.ndarray, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each direction, keys below and above the projections of the rows, each ascending; shapes (m, n)."""
    low, high = _side_keys(columns, directions)
    low.sort(axis=1)
    high.sort(axis=1)
    return low, high


@numba.njit(cache=True, nogil=True)
def _corner(values, direction, sign):
    """Return a bound of the projections of points x with sign * direction_j * (x_j - values_j) <= 0 for all j."""
    total = size = 0.0
    for j in range(direction.size):
        if abs(values[j]) > CLAMP and direction[j] != 0.0:
            return sign * np.inf
        product = direction[j] * values[j]
        total += product
        size += abs(product)
    return total + sign * (size * ROUNDING * (direction.size + 2) + UNDERFLOW)


@numba.njit(cache=True, nogil=True)
def _side_keys(columns, directions):
    (d, n), m = columns.shape, directions.shape[0]
    low, high = np.zeros((m, n)), np.zeros((m, n))
    for k in range(m):
        axis, total, size = axis_of(directions[k]), low[k], high[k]
        if axis >= 0:
            total[:] = directions[k, axis] * columns[axis]
            size[:] = total
            continue
        for j in range(d):
            weight, column = directions[k, j], columns[j]
            for i in range(n):
                entry = column[i] if abs(column[i]) <= CLAMP else np.inf
                total[i] += weight * (entry if entry < np.inf else 0.0)
                size[i] += abs(weight * entry) if weight != 0.0 else 0.0
        for i in range(n):
            error = size[i] * (ROUNDING * (d + 2)) + UNDERFLOW
            total[i], size[i] = total[i] - error, total[i] + error
    return low, high


@numba.njit(cache=True, nogil=True)
def fewest_in_halfspaces(low, high, low_keys, high_keys, directions, most):
    """Return a bound of the rows in the emptiest closed halfspace on whose boundary a point of a box is.

    Parameters: the corners of the box (d,), the keys (m, n), the directions (m, d), and a bound that is known.
    """
    d, n = low.size, low_keys.shape[1]
    left, right = np.empty(d), np.empty(d)
    for k in range(directions.shape[0]):
        direction = directions[k]
        axis = axis_of(direction)
        for j in range(d):
            left[j], right[j] = (high[j], low[j]) if direction[j] < 0.0 else (low[j], high[j])
        if axis >= 0:
            a, b = direction[axis] * left[axis], direction[axis] * right[axis]
        else:
            a, b = _corner(left, direction, -1.0), _corner(right, direction, 1.0)
        # Only whether a side holds fewer rows than the best so far matters: most directions need no search.
        if most < n and low_keys[k, most] <= b and high_keys[k, n - 1 - most] >= a:
            continue
        below = count_up_to(low_keys[k], b, 0, n)
        above = n - count_below(high_keys[k], a, 0, n)
        most = min(most, below, above)
    return most


@numba.njit(cache=True, nogil=True)
def _fewest_of_boxes(low, high, low_keys, high_keys, directions, most):
    counts = np.empty(low.shape[0], np.int64)
    for i in range(counts.size):
        counts[i] = fewest_in_halfspaces(low[i], high[i], low_keys, high_keys, directions, most)
    return counts


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _rows_on_a_side(theta, columns, x, y, z, room):
    """Return a bound of the rows in the emptier closed halfspace with theta on its boundary and normal (x, y, z)."""
    n = columns.shape[1]
    first, second, third, a, b, c = columns[0], columns[1], columns[2], theta[0], theta[1], theta[2]
    left = right = 0
    for i in range(n):
        p, q, r = x * (first[i] - a), y * (second[i] - b), z * (third[i] - c)
        total, error = p + q + r, (abs(p) + abs(q) + abs(r)) * room + UNDERFLOW
        left += not total > error  # also where a difference overflowed
        right += not total < -error
    return min(left, right)


@numba.njit(cache=True, nogil=True)
def _search_around(theta, columns, directions, least, best):
    """Return the fewest rows on a side that a search over directions finds; it ends below `least`."""
    room = ROUNDING * (columns.shape[0] + 2)
    u, count = directions[0], columns.shape[1] + 1
    for k in range(directions.shape[0]):
        here = _rows_on_a_side(theta, columns, directions[k, 0], directions[k, 1], directions[k, 2], room)
        if here < count:
            u, count = directions[k], here
    step, side, across, there = FIRST_STEP, np.empty(3), np.empty(3), np.empty(3)
    while step > LAST_STEP and min(count, best) >= least:
        # Two unit vectors at right angles to u and to each other.
        smallest = np.argmin(np.abs(u))
        side[:] = -u[smallest] * u
        side[smallest] += 1.0
        side /= math.sqrt((side * side).sum())
        across[:] = np.cross(u, side)
        found = False
        for k in range(NEIGHBOURS):
            angle = 2.0 * math.pi * k / NEIGHBOURS
            there[:] = u + step * (math.cos(angle) * side + math.sin(angle) * across)
            here = _rows_on_a_side(theta, columns, there[0], there[1], there[2], room)
            if here < count:
                count, found = here, True
                u = there / math.sqrt((there * there).sum())
                break
        if not found:
            step *= SHRINK
    return min(count, best)


@numba.njit(cache=True, nogil=True)
def _exact_counts(points, least, low_keys, high_keys, directions, columns, units):
    d, n = columns.shape
    counts = np.zeros(points.shape[0], np.int64)
    if n == 0:
        return counts
    for i in range(counts.size):
        counts[i] = fewest_in_halfspaces(points[i], points[i], low_keys, high_keys, directions, n)
        if d == 3 and 0 < least[i] <= counts[i]:
            counts[i] = _search_around(points[i], columns, directions, least[i], counts[i])
        if counts[i] > 0 and counts[i] >= least[i]:
            if d == 2:
                counts[i] = count_in_plane(points[i], columns, units)
            else:
                counts[i] = count_in_space(points[i], columns, units)
    return counts
