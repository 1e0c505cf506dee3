"""Upper bounds of simplicial depth over boxes, on a line and in the plane, in counts of simplices.

On a line the count of a place depends on the rows to either side of it, and a box has a place with the most among
those with as few rows on either side as its ends have.

In the plane, triangles that miss x are counted by their first row as seen from x, anticlockwise: with k_i rows less
than a half-turn ahead of row i, sum_i C(k_i, 2) of them (`simplicial_kernels`; rows on the ray of row i add to that).
Seen from the points of a box, a row outside of it lies between two angles a_i <= b_i < a_i + pi. Row j is ahead of row
i, by less than a half-turn, from all points of the box, if some turn of it has b_i < a_j and b_j < a_i + pi. Among the
turns of all rows by 0 and 2 pi, with 0 <= a < 2 pi before,

    k_i >= #{b_j < a_i + pi and a_j > b_i} >= #{b_j < a_i + pi} - #{a_j <= b_i},

and no row is counted with both turns, since a_j > b_i and b_j + 2 pi < a_i + pi contradict each other. Rows in the box
are left out: they have no angle, and some triangles are lost. Computed angles are moved apart by more than their error.
With a_i > b_j in place of a_j > b_i the same counts rows behind i, so that k_i has an upper bound too.

What the bounds of single k_i lose would add up, though k_i that grows makes another one fall: of two rows one is ahead
of the other, unless they are on opposite rays. With m rows outside the box,

    sum_i k_i = C(m, 2) - the number of pairs on opposite rays,

and the sum of C(k_i, 2) is at least its minimum under that constraint. The row i has no more rows on the ray opposite
to it than there are on one ray from X_i, which is 1 for rows in general position, or than are neither ahead nor behind
for certain. Half the sum of these bounds the pairs.

A triangle that contains x has a vertex in every closed half-plane that does. So where one holds k rows, no more than
C(n, 3) - C(n - k, 3) contain x.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numba
import numpy as np

from pymc_dpdepth.depths.aggregate import count_below, count_up_to
from pymc_dpdepth.depths.binomials import pairs, triples
from pymc_dpdepth.depths.box_bounds import BoxBound
from pymc_dpdepth.depths.halfspace_bounds import fewest_in_halfspaces, side_keys, spread_directions
from pymc_dpdepth.depths.simplicial_kernels import _count_in_plane, _count_on_line, _is_outside_box

if TYPE_CHECKING:
    from pymc_dpdepth.depths.simplicial import Simplicial

__all__ = ["LineSimplicialBoxBound", "PlaneSimplicialBoxBound", "simplicial_box_bound"]

# Of half-planes: they settle boxes far out, and cost little beside the angles.
DIRECTIONS = 16
# Differences of doubles have relative errors of 2^-53, so their angle is wrong by no more; arc tangents, and sums and
# differences below 4 pi, by less than 2^-49 each.
ANGLE_ROUNDING = 2.0**-46
FULL_TURN = 2 * math.pi
# Keys of rays are wrong by less than 2^-50.
NEAR_KEY = 2.0**-48
MOST_ROWS_FOR_RAYS = 2**13  # for more, n sorts of n rays take seconds
MOST_ROWS = 2**20  # for more, n^3 / 2 may not fit in 63 bits
LARGEST_INFLUENCE = 2.0**512
SMALL_SORT = 16  # up to so many angles in a bucket, insertion is faster than a general sort


def simplicial_box_bound(depth: Simplicial, rows: np.ndarray) -> BoxBound:
    """Return the bounds for rows of one or two columns.

    Raises
    ------
    TypeError
        If there are more columns.
    """
    d = rows.shape[1]
    if d > 2:
        raise TypeError(
            f"The depth {depth.name!r} has a box bound for up to two columns; got {d}. Choose columns, or use "
            "halfspace, integrated_rank_weighted, integrated_dual or spatial."
        )
    return (LineSimplicialBoxBound if d == 1 else PlaneSimplicialBoxBound)(depth, rows)


class LineSimplicialBoxBound(BoxBound):
    """Bounds of the number of closed intervals between two rows that contain a point.

    Parameters
    ----------
    depth : Simplicial
    rows : ndarray of float64, shape (n, 1)
    """

    def __init__(self, depth: Simplicial, rows: np.ndarray) -> None:
        (columns,) = depth.prepare(rows)
        self._ordered = columns[0]
        self._most = _most_intervals(self._ordered)
        self.sensitivity_count = max(len(rows) - 1, 0)
        self.influence = np.ones(1)

    def upper(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return upper bounds of the count over boxes."""
        return _upper_intervals(low, high, self._ordered, *self._most)

    def score(self, points: np.ndarray, least: np.ndarray) -> np.ndarray:
        """Return the counts of points."""
        return _interval_counts(points, self._ordered)


class PlaneSimplicialBoxBound(BoxBound):
    """Bounds of the number of closed triangles between three rows that contain a point.

    Parameters
    ----------
    depth : Simplicial
    rows : ndarray of float64, shape (n, 2)
    """

    def __init__(self, depth: Simplicial, rows: np.ndarray) -> None:
        (self._columns,) = depth.prepare(rows)
        self._directions = spread_directions(2, DIRECTIONS)
        self._keys = side_keys(self._columns, self._directions)
        self._opposite = _most_on_rays(self._columns)
        self.sensitivity_count = math.comb(len(rows) - 1, 2) if len(rows) > 2 else 0
        spreads = np.ptp(rows / (2 * 2), axis=0) if len(rows) else np.zeros(2)
        with np.errstate(over="ignore"):  # a warning of an overflow would tell of a far row
            self.influence = np.minimum(spreads.max() / spreads, LARGEST_INFLUENCE) if spreads.min() > 0 else np.ones(2)

    def upper(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return upper bounds of the count over boxes."""
        return _upper_triangles(low, high, self._columns, self._opposite, *self._keys, self._directions)

    def score(self, points: np.ndarray, least: np.ndarray) -> np.ndarray:
        """Return the counts of points."""
        return _triangle_counts(points, self._columns)


# On a line


@numba.njit(cache=True, nogil=True)
def _most_intervals(ordered):
    """Return the largest count of a place with at most i rows at or below it, i = 0..n, and at or above it."""
    n = ordered.size
    below, above = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    start = 0
    for i in range(n + 1):
        gap = pairs(n) - pairs(i) - pairs(n - i)
        below[i], above[n - i] = max(below[i], gap), max(above[n - i], gap)
        if i > 0 and (i == n or ordered[i] != ordered[i - 1]):
            atom = pairs(n) - pairs(start) - pairs(n - i)  # rows start, ..., i - 1 are equal
            below[i], above[n - start] = max(below[i], atom), max(above[n - start], atom)
            start = i
    for i in range(n):
        below[i + 1], above[i + 1] = max(below[i + 1], below[i]), max(above[i + 1], above[i])
    return below, above


@numba.njit(cache=True, nogil=True)
def _upper_intervals(low, high, ordered, most_below, most_above):
    n = ordered.size
    counts = np.empty(low.shape[0], np.int64)
    for i in range(counts.size):
        first = count_below(ordered, low[i, 0], 0, n)
        counts[i] = min(most_below[count_up_to(ordered, high[i, 0], first, n)], most_above[n - first])
    return counts


@numba.njit(cache=True, nogil=True)
def _interval_counts(points, ordered):
    counts = np.zeros(points.shape[0], np.int64)
    if ordered.size > 1:
        for i in range(counts.size):
            counts[i] = _count_on_line(points[i, 0], ordered)
    return counts


# In the plane


@numba.njit(cache=True, nogil=True)
def _angles(left, right, bottom, top):
    """Return the angles a <= b < a + pi, 0 <= a < 2 pi, of a rectangle of vectors that does not hold 0."""
    if bottom > 0.0:
        first, second = (right, bottom if right > 0.0 else top), (left, bottom if left < 0.0 else top)
    elif top < 0.0:
        first, second = (left, top if left < 0.0 else bottom), (right, top if right > 0.0 else bottom)
    elif left > 0.0:
        first, second = (left, bottom), (left, top)
    else:
        first, second = (right, top), (right, bottom)
    a, b = math.atan2(first[1], first[0]), math.atan2(second[1], second[0])
    if a < 0.0:
        a, b = a + FULL_TURN, b + FULL_TURN
    # b - a is that of the vectors, 0 to pi, or a turn less. A row as good as on the side of a box is seen under half a
    # turn, and a turn less than that must not pass for none.
    while b < a - math.pi / 2:
        b += FULL_TURN
    return a, b


@numba.njit(cache=True, nogil=True)
def _is_outside(x, y, low, high):
    return (x > high[0]) | (x < low[0]) | (y > high[1]) | (y < low[1])


@numba.njit(cache=True, nogil=True)
def _put_outside(low, high, columns, values, chosen):
    """Put the values of the rows outside a box into `chosen`, in the order of `_row_angles`."""
    m = 0
    for i in range(columns.shape[1]):
        if _is_outside(columns[0, i], columns[1, i], low, high):
            chosen[m] = values[i]
            m += 1


@numba.njit(cache=True, nogil=True)
def _row_angles(low, high, columns, starts, stops):
    """Fill the angles between which rows outside a box are seen, moved apart; return their number."""
    m = 0
    for i in range(columns.shape[1]):
        x, y = columns[0, i], columns[1, i]
        if _is_outside(x, y, low, high):
            left, right, bottom, top = x - high[0], x - low[0], y - high[1], y - low[1]
            if max(max(-left, right), max(-bottom, top)) == np.inf:
                left, right, bottom, top = (
                    x / 4 - high[0] / 4,
                    x / 4 - low[0] / 4,
                    y / 4 - high[1] / 4,
                    y / 4 - low[1] / 4,
                )
            a, b = _angles(left, right, bottom, top)
            starts[m], stops[m] = a - ANGLE_ROUNDING, max(a, b) + ANGLE_ROUNDING
            m += 1
    return m


@numba.njit(cache=True, nogil=True)
def _bucket(t, scale, size):
    """Return the bucket of an angle; it does not decrease with the angle, also as computed."""
    return min(max(np.int64(t * scale), 0), size - 1)


@numba.njit(cache=True, nogil=True)
def _sort(values, scale, ends, ordered):
    """Fill `ordered` with the values in ascending order, and `ends` with the first place of each of its buckets."""
    m = values.size
    ends[: m + 1] = 0
    for i in range(m):
        ends[_bucket(values[i], scale, m)] += 1
    total = 0
    for bucket in range(m):
        total += ends[bucket]
        ends[bucket] = total
    for i in range(m):
        bucket = _bucket(values[i], scale, m)
        ends[bucket] -= 1
        ordered[ends[bucket]] = values[i]
    ends[m] = m
    for bucket in range(m):
        start, stop = ends[bucket], ends[bucket + 1]
        if stop - start > SMALL_SORT:
            ordered[start:stop] = np.sort(ordered[start:stop])
            continue
        for i in range(start + 1, stop):
            value, j = ordered[i], i
            while j > start and ordered[j - 1] > value:
                ordered[j] = ordered[j - 1]
                j -= 1
            ordered[j] = value


@numba.njit(cache=True, nogil=True)
def _most_on_rays(columns):
    """Return, for each row, a bound of the number of others that are on one ray from it."""
    n = columns.shape[1]
    most = np.full(n, n, np.int64)
    if n > MOST_ROWS_FOR_RAYS:
        return most
    keys, ordered, ends = np.empty(n), np.empty(n), np.empty(n + 1, np.int64)
    for i in range(n):
        m = 0
        for j in range(n):
            x, y = columns[0, j] - columns[0, i], columns[1, j] - columns[1, i]
            if abs(x) + abs(y) == np.inf:
                x, y = columns[0, j] / 4 - columns[0, i] / 4, columns[1, j] / 4 - columns[1, i] / 4
            length = abs(x) + abs(y)
            if length > 0.0:
                keys[m] = 1.0 - x / length if y >= 0.0 else 3.0 + x / length  # grows with the angle, from 0 to 4
                m += 1
        if m == 0:
            most[i] = 0
            continue
        _sort(keys[:m], m / 4, ends, ordered)
        # Rows on one ray have nearly the same key, and neighbours with nearly the same key may be on one.
        largest, run, first = 1, 1, m
        for j in range(1, m):
            if ordered[j] - ordered[j - 1] <= NEAR_KEY:
                run += 1
            else:
                first = min(first, j)
                run = 1
            largest = max(largest, run)
        # A key of almost 4 is next to one of 0.
        most[i] = min(max(largest, run + first), m) if ordered[m - 1] >= 4.0 - NEAR_KEY else largest
    return most


@numba.njit(cache=True, nogil=True)
def _certain_pairs(low, high, columns, room, ends, fewest, most):
    """Fill the fewest and the most followers of each row outside a box, among these rows; return their number."""
    starts, stops, by_start, by_stop = room
    m = _row_angles(low, high, columns, starts, stops)
    if m < 3:
        return m
    # Starts are below 2 pi, stops below 3 pi.
    start_scale, stop_scale = m / FULL_TURN, m / (FULL_TURN + math.pi)
    _sort(starts[:m], start_scale, ends[0], by_start)
    _sort(stops[:m], stop_scale, ends[1], by_stop)
    for i in range(m):
        ahead = behind = 0
        for turn in (0.0, FULL_TURN):
            t = starts[i] + math.pi - turn - ANGLE_ROUNDING
            bucket = _bucket(t, stop_scale, m)
            ahead += count_below(by_stop, t, ends[1, bucket], ends[1, bucket + 1])
            t = stops[i] - turn + ANGLE_ROUNDING
            bucket = _bucket(t, start_scale, m)
            ahead -= count_up_to(by_start, t, ends[0, bucket], ends[0, bucket + 1])
            t = starts[i] + turn - ANGLE_ROUNDING
            bucket = _bucket(t, stop_scale, m)
            behind += count_below(by_stop, t, ends[1, bucket], ends[1, bucket + 1])
            t = stops[i] - math.pi + turn + ANGLE_ROUNDING
            bucket = _bucket(t, start_scale, m)
            behind -= count_up_to(by_start, t, ends[0, bucket], ends[0, bucket + 1])
        fewest[i] = max(ahead, 0)
        most[i] = m - 1 - max(behind, 0)
    return m


@numba.njit(cache=True, nogil=True)
def _least_missing(fewest, most, total):
    """Return a lower bound of sum_i C(k_i, 2) for whole numbers fewest_i <= k_i <= most_i that add up to `total`.

    For any whole number c, k (k - 1) / 2 - c k is least at k = c, so that the sum is at least that of C(k_i, 2) at c
    clipped to the limits, and c times what these k_i lack of the total. The largest bound is where they lack least.
    """
    m = fewest.size
    level, above = 0, m if m <= MOST_ROWS else 1
    while above - level > 1:
        middle = (level + above) // 2
        clipped = 0
        for i in range(m):
            clipped += min(max(middle, fewest[i]), most[i])
        if clipped <= total:
            level = middle
        else:
            above = middle
    missing, clipped = 0, 0
    for i in range(m):
        k = min(max(level, fewest[i]), most[i])
        missing += pairs(k)
        clipped += k
    return missing + level * (total - clipped)


@numba.njit(cache=True, nogil=True)
def _missing_for_certain(low, high, columns, opposite, room, ends, limits):
    """Return a lower bound of the number of triangles that miss x, for all x of a box.

    `room` (4, n), `ends` (2, n + 1) and `limits` (3, n) are there to work in.
    """
    fewest, most, seen = limits
    m = _certain_pairs(low, high, columns, room, ends, fewest, most)
    if m < 3:
        return 0
    _put_outside(low, high, columns, opposite, seen)
    on_opposite_rays = 0
    for i in range(m):
        on_opposite_rays += min(most[i] - fewest[i], seen[i])
    return _least_missing(fewest[:m], most[:m], pairs(m) - on_opposite_rays // 2)


@numba.njit(cache=True, nogil=True)
def _upper_triangles(low, high, columns, opposite, low_keys, high_keys, directions):
    n = columns.shape[1]
    counts = np.zeros(low.shape[0], np.int64)
    if n < 3:
        return counts
    room, ends, limits = np.empty((4, n)), np.empty((2, n + 1), np.int64), np.empty((3, n), np.int64)
    for i in range(counts.size):
        fewest = fewest_in_halfspaces(low[i], high[i], low_keys, high_keys, directions, n)
        if fewest > 0:
            missing = _missing_for_certain(low[i], high[i], columns, opposite, room, ends, limits)
            counts[i] = triples(n) - max(missing, triples(n - fewest))
    return counts


@numba.njit(cache=True, nogil=True)
def _triangle_counts(points, columns):
    counts = np.zeros(points.shape[0], np.int64)
    if columns.shape[1] > 2:
        for i in range(counts.size):
            if not _is_outside_box(points[i], columns):
                counts[i] = _count_in_plane(points[i, 0], points[i, 1], columns[0], columns[1])
    return counts
