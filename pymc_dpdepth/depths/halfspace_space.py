"""Numba kernels that count the rows in the emptiest closed half-space that contains a point, exactly; and the depth.

Write v_i = X_i - x, and leave out rows equal to x, which are in every closed half-space with x on its boundary. As in
the plane, planes through 0 that avoid all other v are enough. Turn such a plane with the fewest v on one side until it
first meets some; turn it on inside the plane that it then is in, about 0, until a line of it is met. It holds a v_i
now, and the first plane differs from it by a small turn about v_i and a small tilt of v_i itself to one side.
Conversely every plane through v_i, turned and tilted so, avoids all v. So

    count = #{i : v_i = 0} + min_i ( c_i + min(p_i, q_i) ),

p_i and q_i the numbers of rows on the rays of v_i and -v_i, and c_i the smallest number of rows on one side in the
plane problem of `halfspace_plane`, for the other rows projected along v_i. n plane problems cost n^2 log n at worst.

The projection of v_j along v_i on the plane of the two coordinates a, b, with v_ik the largest entry of v_i, is
w_j = (v_ja - v_jk v_ia / v_ik, v_jb - v_jk v_ib / v_ik). It is computed in doubles to find its place among the others.
The sign of an angle between w_j and w_l is that of det(v_j, v_l, v_i) / v_ik, and the sign of an entry of w_j is that
of a two-row determinant over v_ik: both are computed exactly where doubles may be wrong.
"""

from __future__ import annotations

import numba
import numpy as np

from pymc_dpdepth.depths.halfspace_plane import (
    SHRINK,
    bucket_sizes,
    count_in_plane,
    fewest_on_a_side,
    merge_buckets,
)
from pymc_dpdepth.depths.predicates import orient2d
from pymc_dpdepth.depths.threads import on_all_cores

__all__ = ["count_in_space", "halfspace_depth", "halfspace_depths", "halfspace_depths_on_all_cores"]

# Vectors are divided by their largest entry, so an entry is at most 1 and has an error of 2 u, u = 2^-53. A ratio of
# two has 5 u, its product with a third 8 u, an entry of w 12 u < 2^-49 in all. Entries of w above SURE have the right
# sign.
SURE = 2.0**-48
# A projection this short is too uncertain to be placed. The key of a longer one is wrong by at most 2^-49 / SHORT,
# roundings of the key itself far below; two keys by 2^-28 together, and NEAR_KEY is above that.
SHORT = 2.0**-20
NEAR_KEY = 2.0**-26


@numba.njit(cache=True, nogil=True)
def _differences(theta, columns, units):
    """Return the rows that differ from theta as columns (3, m), and their vectors, each over its largest entry."""
    n = columns.shape[1]
    rows, vectors, m = np.empty((3, n)), np.empty((3, n)), 0
    for i in range(n):
        if columns[0, i] == theta[0] and columns[1, i] == theta[1] and columns[2, i] == theta[2]:
            continue
        largest = 0.0
        for j in range(3):
            rows[j, m] = columns[j, i]
            vectors[j, m] = (columns[j, i] - theta[j]) * units[j]
            largest = max(largest, abs(vectors[j, m]))
        if largest == np.inf:
            largest = 0.0
            for j in range(3):
                vectors[j, m] = (columns[j, i] * SHRINK - theta[j] * SHRINK) * units[j]
                largest = max(largest, abs(vectors[j, m]))
        for j in range(3):
            vectors[j, m] /= largest
        m += 1
    return np.ascontiguousarray(rows[:, :m]), np.ascontiguousarray(vectors[:, :m])


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _place_projections(va, vb, vk, ratio_a, ratio_b, scale, near, buckets, places, codes):
    """Fill places and codes as for lines in the plane; short projections get the bucket after the last one.

    Returned: how many are short, how many have a second entry whose sign is unsure, and whether a place is close to the
    edge of a bucket.
    """
    short, unsure, edge = 0, 0, False
    outside = buckets + 0.5
    for i in range(va.size):
        wa, wb = va[i] - ratio_a * vk[i], vb[i] - ratio_b * vk[i]
        lower = (wb < 0.0) | ((wb == 0.0) & (wa < 0.0))
        length = abs(wa) + abs(wb)
        place = ((wa if lower else -wa) / length + 1.0) * scale + 0.5
        place = place if length > SHORT else outside
        bucket = np.int32(place)
        short += not length > SHORT
        unsure += abs(wb) < SURE
        edge |= abs(place - bucket - 0.5) > 0.5 - near
        places[i] = place
        codes[i] = 2 * bucket + lower
    return short, unsure, edge


@numba.njit(cache=True, nogil=True)
def _sign_of_entry(theta, rows, i, pivot, axis, k, flip):
    """Return the exact sign of the entry `axis` of the projection of row i along the pivot's vector."""
    return flip * orient2d(rows[axis, i], rows[k, i], rows[axis, pivot], rows[k, pivot], theta[axis], theta[k])


@numba.njit(cache=True, nogil=True)
def _settle_projections(theta, rows, vectors, ratio_b, pivot, k, flip, scale, buckets, places, codes):
    """Correct places and codes where doubles were unsure.

    Return the numbers of rows on the rays of the pivot's vector and of its opposite. Where some projection is too short
    to be placed, but not zero, all get one place, so that their order is settled exactly.
    """
    a, b = (k + 1) % 3, (k + 2) % 3
    same, opposite, placeless = 0, 0, False
    for i in range(codes.size):
        is_short = codes[i] >> 1 == buckets
        if not is_short and abs(vectors[b, i] - ratio_b * vectors[k, i]) >= SURE:
            continue
        side = _sign_of_entry(theta, rows, i, pivot, b, k, flip)
        if side == 0:
            side = _sign_of_entry(theta, rows, i, pivot, a, k, flip)
        if side == 0:
            ahead = (rows[k, i] > theta[k]) == (rows[k, pivot] > theta[k])
            same += ahead
            opposite += not ahead
            places[i], codes[i] = buckets + 0.5, 2 * buckets
        elif is_short:
            placeless = True
            codes[i] = side < 0
        elif (codes[i] & 1) != (side < 0):
            # The line is at the other end of the order.
            places[i] = 2.0 * scale + 1.0 - places[i]
            codes[i] = 2 * np.int32(places[i]) + (side < 0)
    if placeless:
        for i in range(codes.size):
            if codes[i] >> 1 < buckets:
                places[i], codes[i] = 0.5, codes[i] & 1
    return same, opposite


@numba.njit(cache=True, nogil=True)
def _fewest_around(theta, rows, vectors, pivot, places, codes, best):
    """Return the smaller of best and c + min(p, q) for the line of one row; see above."""
    m = codes.size
    k = 0
    for j in range(1, 3):
        if abs(vectors[j, pivot]) > abs(vectors[k, pivot]):
            k = j
    a, b = (k + 1) % 3, (k + 2) % 3
    # (a, b, k) is an even permutation, so det(v_j, v_l, v_i) = v_ik (w_ja w_lb - w_jb w_la).
    flip = 1 if rows[k, pivot] > theta[k] else -1
    ratio_a, ratio_b = vectors[a, pivot] / vectors[k, pivot], vectors[b, pivot] / vectors[k, pivot]
    buckets, scale, near = bucket_sizes(m, NEAR_KEY)
    short, unsure, edge = _place_projections(
        vectors[a], vectors[b], vectors[k], ratio_a, ratio_b, scale, near, buckets, places, codes
    )
    same, opposite = 1, 0
    if short > 1 or unsure > 1:
        same, opposite = _settle_projections(
            theta, rows, vectors, ratio_b, pivot, k, flip, scale, buckets, places, codes
        )
        edge = True
    if edge:
        merge_buckets(places, codes, near, buckets)
    tilt = min(same, opposite)
    if tilt >= best:
        return best
    return tilt + fewest_on_a_side(theta, rows, pivot, flip, near, places, codes, buckets, best - tilt)


@numba.njit(cache=True, nogil=True)
def count_in_space(theta, columns, units):
    """Return the number of rows in the emptiest closed half-space that contains a point.

    Parameters as in `count_in_plane`, with three columns.
    """
    rows, vectors = _differences(theta, columns, units)
    m = rows.shape[1]
    places, codes = np.empty(m), np.empty(m, np.int32)
    best = m // 2
    for pivot in range(m):
        best = _fewest_around(theta, rows, vectors, pivot, places, codes, best)
        if best == 0:
            break
    return columns.shape[1] - m + best


@numba.njit(cache=True, nogil=True)
def halfspace_depth(theta, columns, units):
    """Return the halfspace depth of a point over all directions; 0 for a point that is not finite, or without rows.

    Parameters: the point (d,) with d = 2 or 3, the columns of the rows (d, n), and the units of `count_in_plane` (d,).
    """
    d, n = columns.shape
    for j in range(d):
        if not np.isfinite(theta[j]):
            return 0.0
    if n == 0:
        return 0.0
    count = count_in_plane(theta, columns, units) if d == 2 else count_in_space(theta, columns, units)
    return count / n


@numba.njit(cache=True, nogil=True)
def halfspace_depths(points, columns, units):
    """Return `halfspace_depth` of each row of points."""
    values = np.empty(points.shape[0])
    for i in range(points.shape[0]):
        values[i] = halfspace_depth(points[i], columns, units)
    return values


def halfspace_depths_on_all_cores(points, columns, units):
    """Return `halfspace_depths`, the points shared out among threads."""
    d, n = columns.shape
    return on_all_cores(halfspace_depths, points, (columns, units), n ** (d - 1))
