"""Numba kernels that count the closed simplices which contain a point, exactly, in one, two and three dimensions.

Write v_i = X_i - x. A closed simplex contains x if and only if 0 is in the convex hull of its d + 1 vectors v. If it is
not, a hyperplane through 0 has them all strictly on one side (separation of a point from a compact convex set), and
the other way round. So a simplex **misses** x if and only if its vectors lie in one open halfspace bounded by a
hyperplane through 0. This holds for degenerate simplices (segments, points) too, and a row equal to x, v = 0, is in no
open halfspace: every simplex with such a vertex contains x.

All decisions are comparisons of doubles and exact signs of determinants; counts are 64-bit integers.
"""

from __future__ import annotations

import numba
import numpy as np

from pymc_dpdepth.depths.binomials import pairs, quadruples, triples
from pymc_dpdepth.depths.predicates import orient2d
from pymc_dpdepth.depths.simplicial_space_kernels import count_in_space
from pymc_dpdepth.depths.threads import on_all_cores

__all__ = ["simplicial_depth", "simplicial_depths", "simplicial_depths_on_all_cores"]

# The key of a line through x (see `_line_keys`) is computed with an error of at most 3 * 2^-53: the two differences
# have relative errors u = 2^-53 and move it by at most u/2 together, the sum and the quotient by u each, and it is at
# most 1 in size; second-order terms and underflow are far below the rest. Two keys farther apart than 6 * 2^-53 are
# therefore in their true order. The next power of two is used.
NEAR = 2.0**-50

SMALL = 16  # Up to so many keys in a bucket, insertion is faster than a call of a general sort.


# One dimension


@numba.njit(cache=True, nogil=True)
def _count_on_line(t, ordered):
    """Return the number of closed intervals [X_i, X_j] that contain t: all but those on one side of it."""
    n = ordered.size
    below = np.searchsorted(ordered, t, side="left")
    above = n - np.searchsorted(ordered, t, side="right")
    return pairs(n) - pairs(below) - pairs(above)


# Two dimensions
#
# Order the vectors v != 0 that lie in an open half-plane by their angle, anticlockwise, equal angles by any fixed order
# of the rows. So a missing triple has exactly one first vector i, and both others lie less than a half-turn ahead of
# i, or on the ray of i and later in the fixed order. Conversely a vector and any two such followers span less than a
# half-turn, and lie in an open half-plane. If k_i rows follow i,
#
#     missing triples = sum over i of C(k_i, 2).
#
# To find the k_i, turn the vectors with an angle in [pi, 2 pi), the lower ones, by a half-turn, and sort all by the
# angle in [0, pi) of the line that they are on. With U_b upper and L_b lower rows on earlier lines, of U and L in all,
# and u and l rows on this line, less than a half-turn ahead of its upper ray are U - U_b - u upper rows, on later
# lines, and L_b lower ones, on earlier lines; and ahead of its lower ray, L - L_b - l lower and U_b upper ones. The
# m = u or l rows of a ray with h rows ahead are followed by h, h + 1, ..., h + m - 1 rows:
#
#     sum over t < m of C(h + t, 2) = C(h + m, 3) - C(h, 3).


@numba.njit(cache=True, nogil=True)
def _line_keys(x, y, first, second, keys, codes):
    """Fill keys and codes of the rows other than (x, y); return their number and how many of them are upper.

    The key grows with the angle of a row's line in [0, pi), from -1 to 1: it is -fx / (|fx| + fy) for the vector
    (fx, fy), fy >= 0, on it. The code is twice the row's index, plus 1 for a lower row.
    """
    m, upper = 0, 0
    for i in range(first.size):
        a, b = first[i], second[i]
        lower = (b < y) | ((b == y) & (a < x))
        fx, fy = a - x, abs(b - y)
        length = abs(fx) + fy
        if length == np.inf:
            # The sum, or a difference, is beyond the doubles: a quarter of it is not. What a quarter of a tiny entry
            # loses is less than 2^-1074, beside a length above 2^1021.
            fx, fy = a / 4 - x / 4, abs(b / 4 - y / 4)
            length = abs(fx) + fy
        if length > 0.0:
            keys[m] = fx / length if lower else -fx / length
            codes[m] = 2 * i + lower
            m += 1
            upper += not lower
    return m, upper


@numba.njit(cache=True, nogil=True)
def _sort_by_key(keys, codes):
    """Return the keys in ascending order, and the codes with them: one bucket for each key, in linear time mostly."""
    m = keys.size
    sorted_keys, sorted_codes = np.empty(m), np.empty(m, np.int64)
    lowest, highest = np.inf, -np.inf
    for i in range(m):
        lowest, highest = min(lowest, keys[i]), max(highest, keys[i])
    # Computed buckets do not decrease as the key grows, since a difference and a product are rounded monotonically.
    scale = (m - 1) / (highest - lowest) if highest - lowest > NEAR else 0.0
    ends = np.zeros(m + 1, np.int64)
    for i in range(m):
        ends[min(np.int64((keys[i] - lowest) * scale), m - 1)] += 1
    largest, total = 0, 0
    for bucket in range(m):
        largest = max(largest, ends[bucket])
        total += ends[bucket]
        ends[bucket] = total
    for i in range(m):
        bucket = min(np.int64((keys[i] - lowest) * scale), m - 1)
        ends[bucket] -= 1
        sorted_keys[ends[bucket]] = keys[i]
        sorted_codes[ends[bucket]] = codes[i]
    ends[m] = m
    if largest > SMALL:
        for bucket in range(m):
            start, stop = ends[bucket], ends[bucket + 1]
            if stop - start > SMALL:
                order = np.argsort(sorted_keys[start:stop], kind="mergesort") + start
                sorted_keys[start:stop] = sorted_keys[order]
                sorted_codes[start:stop] = sorted_codes[order]
    for i in range(1, m):
        key, code, j = sorted_keys[i], sorted_codes[i], i
        while j > 0 and sorted_keys[j - 1] > key:
            sorted_keys[j], sorted_codes[j] = sorted_keys[j - 1], sorted_codes[j - 1]
            j -= 1
        sorted_keys[j], sorted_codes[j] = key, code
    return sorted_keys, sorted_codes


@numba.njit(cache=True, nogil=True)
def _line_turn(x, y, first, second, one, other):
    """Return the sign of the angle in (-pi, pi) from the line of a code to that of another; 0 for the same line."""
    i, j = one >> 1, other >> 1
    turn = orient2d(first[i], second[i], first[j], second[j], x, y)
    return -turn if (one ^ other) & 1 else turn


@numba.njit(cache=True, nogil=True)
def _sort_exactly(x, y, first, second, codes):
    """Sort codes by the angle of their lines, by merging, with exact signs."""
    m = codes.size
    source, target = codes, np.empty_like(codes)
    width = 1
    while width < m:
        for start in range(0, m, 2 * width):
            middle, stop = min(start + width, m), min(start + 2 * width, m)
            i, j = start, middle
            for k in range(start, stop):
                left = j == stop
                if i < middle and j < stop:
                    left = _line_turn(x, y, first, second, source[i], source[j]) >= 0
                if left:
                    target[k] = source[i]
                    i += 1
                else:
                    target[k] = source[j]
                    j += 1
        source, target = target, source
        width *= 2
    codes[:] = source.copy()


@numba.njit(cache=True, nogil=True)
def _missing_from_run(x, y, first, second, codes, upper, lower, ahead):
    """Return the missing triples whose first vector is on the lines of a run of sorted codes, and the new `ahead`.

    `ahead` is U_b - L_b: an upper ray has U - u - (U_b - L_b) rows ahead, a lower one L - l + (U_b - L_b).
    """
    missing, start = 0, 0
    while start < codes.size:
        stop = start + 1
        while stop < codes.size and _line_turn(x, y, first, second, codes[stop - 1], codes[stop]) == 0:
            stop += 1
        on_lower = 0
        for i in range(start, stop):
            on_lower += codes[i] & 1
        on_upper = stop - start - on_lower
        missing += triples(upper - ahead) - triples(upper - ahead - on_upper)
        missing += triples(lower + ahead) - triples(lower + ahead - on_lower)
        ahead += on_upper - on_lower
        start = stop
    return missing, ahead


@numba.njit(cache=True, nogil=True)
def _count_in_plane(x, y, first, second):
    """Return the number of closed triangles that contain (x, y)."""
    n = first.size
    keys, codes = np.empty(n), np.empty(n, np.int64)
    m, upper = _line_keys(x, y, first, second, keys, codes)
    keys, codes = _sort_by_key(keys[:m], codes[:m])
    lower = m - upper
    missing, ahead, start = 0, 0, 0
    while start < m:
        stop = start + 1
        while stop < m and keys[stop] - keys[stop - 1] <= NEAR:
            stop += 1
        if stop - start == 1:
            # One row on its line, by far the most frequent case: the two formulas of `_missing_from_run` in one.
            is_lower = codes[start] & 1
            missing += pairs(lower - 1 + ahead if is_lower else upper - 1 - ahead)
            ahead += 1 - 2 * is_lower
        else:
            run = codes[start:stop]
            _sort_exactly(x, y, first, second, run)
            more, ahead = _missing_from_run(x, y, first, second, run, upper, lower, ahead)
            missing += more
        start = stop
    return triples(n) - missing


@numba.njit(cache=True, nogil=True)
def _is_outside_box(theta, columns):
    """Return whether all rows are strictly on one side of theta in some coordinate, so that no simplex contains it."""
    for p in range(theta.size):
        at_least, at_most = False, False
        for entry in columns[p]:
            at_least |= entry >= theta[p]
            at_most |= entry <= theta[p]
            if at_least and at_most:
                break
        if not (at_least and at_most):
            return True
    return False


@numba.njit(cache=True, nogil=True)
def simplicial_depth(theta, columns):
    """Return the share of the closed simplices of d + 1 rows that contain a point; 0 where n <= d.

    Parameters: the point (d,) with d = 1, 2 or 3, and the columns of the rows (d, n), in ascending order where d = 1.
    """
    d, n = columns.shape
    if n <= d:
        return 0.0
    if d == 1:
        return _count_on_line(theta[0], columns[0]) / pairs(n)
    if _is_outside_box(theta, columns):
        return 0.0
    if d == 2:
        return _count_in_plane(theta[0], theta[1], columns[0], columns[1]) / triples(n)
    return count_in_space(theta, columns) / quadruples(n)


@numba.njit(cache=True, nogil=True)
def simplicial_depths(points, columns):
    """Return `simplicial_depth` of each row of points."""
    values = np.empty(points.shape[0])
    for i in range(points.shape[0]):
        values[i] = simplicial_depth(points[i], columns)
    return values


def simplicial_depths_on_all_cores(points, columns):
    """Return `simplicial_depths`, the points shared out among threads."""
    d, n = columns.shape
    return on_all_cores(simplicial_depths, points, (columns,), n ** max(1, d - 1))
