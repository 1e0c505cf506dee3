"""Numba kernels that count the rows in the emptiest closed half-plane that contains a point, exactly.

Write v_i = X_i - x. Of the lines through x, only those that pass through no other row matter: turn a line a little, and
rows on it leave a closed side of it, none enters. Rows equal to x are on both sides of every line. So

    count = #{i : v_i = 0} + min over lines through 0 that avoid all v_i != 0 of the number of v_i on one side.

Turn the vectors with an angle in [pi, 2 pi), the **lower** ones, by a half-turn, and order all by the angle in [0, pi)
of the line that they are on. A line that has passed `ahead` more upper than lower rows has U - ahead rows on its left
and L + ahead on its right, with U upper and L lower rows in all. So the count is found by a walk of steps 1 and -1,
which is only looked at between different lines.

Angles are replaced by a monotone key that is cheap, and rows are put in buckets of keys. The steps of a bucket bound
what the walk does inside it; only the few buckets where it may become extreme are sorted. The computed order is trusted
where keys differ by more than their error. Elsewhere the exact sign of a determinant decides, never a tolerance.
"""

from __future__ import annotations

import numba
import numpy as np

from pymc_dpdepth.depths.predicates import orient2d, orient3d

__all__ = [
    "bucket_sizes",
    "count_in_plane",
    "fewest_on_a_side",
    "line_turn",
    "merge_buckets",
    "place_lines",
    "replace_overflown",
    "sort_lines",
]

# The key of the line of (fx, fy), fy >= 0, is -fx / (|fx| + fy). Relative errors u = 2^-53 of the two differences move
# it by at most u/2 together, and the sum and the quotient by u each. So keys that differ by more than 5 u (second-order
# terms aside) are in their true order; the next power of two is used.
NEAR_KEY = 2.0**-50
# A key is placed at (key + 1) scale + 1/2: two roundings of at most 2 scale u each, for each of two places.
NEAR_PLACE = 2.0**-49

ROWS_PER_BUCKET = 4  # fewer cost a longer walk, more a longer sort
# Half the range of places is this above an integer, so that keys which are simple ratios do not fall between buckets.
OFFSET = 0.309
SMALL_SORT = 32  # up to so many rows, insertion is faster than a general sort

# Where a difference of doubles overflows, all is divided by 2^64 first; what tiny entries lose then is far below an
# error of 2^-53 beside the large ones.
SHRINK = 2.0**-64


@numba.njit(cache=True, nogil=True)
def bucket_sizes(n, near_key):
    """Return the number of buckets for n rows, the scale of places, and the distance of places that are unsure."""
    scale = n // (2 * ROWS_PER_BUCKET) + 1 + OFFSET
    return np.int64(2.0 * scale) + 2, scale, scale * (near_key + NEAR_PLACE)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def place_lines(theta, columns, units, scale, near, buckets, places, codes):
    """Fill places and codes, twice the bucket plus 1 for a lower row; return what needs a second look.

    Rows equal to theta get the bucket after the last one. Returned: whether a difference overflowed, and whether a
    place is so close to the edge of a bucket that it may belong to the next one.
    """
    x, y, first, second, ux, uy = theta[0], theta[1], columns[0], columns[1], units[0], units[1]
    overflow, edge = False, False
    outside = buckets + 0.5
    for i in range(first.size):
        a, b = first[i], second[i]
        lower = (b < y) | ((b == y) & (a < x))
        fx, fy = (a - x) * ux, abs(b - y) * uy
        length = abs(fx) + fy
        overflow |= length == np.inf
        place = ((fx if lower else -fx) / length + 1.0) * scale + 0.5
        place = place if place < outside else outside  # 0 / 0 compares as false
        bucket = np.int32(place)
        edge |= abs(place - bucket - 0.5) > 0.5 - near
        places[i] = place
        codes[i] = 2 * bucket + lower
    return overflow, edge


@numba.njit(cache=True, nogil=True, error_model="numpy")
def replace_overflown(theta, columns, units, scale, places, codes):
    """Correct places and codes of the rows whose difference to theta is not a finite double."""
    x, y, first, second = theta[0] * SHRINK, theta[1] * SHRINK, columns[0], columns[1]
    for i in range(first.size):
        fx, fy = (first[i] - theta[0]) * units[0], (second[i] - theta[1]) * units[1]
        if abs(fx) + abs(fy) == np.inf:
            fx, fy = (first[i] * SHRINK - x) * units[0], abs(second[i] * SHRINK - y) * units[1]
            lower = codes[i] & 1
            places[i] = ((fx if lower else -fx) / (abs(fx) + fy) + 1.0) * scale + 0.5
            codes[i] = 2 * np.int32(places[i]) + lower


@numba.njit(cache=True, nogil=True)
def merge_buckets(places, codes, near, buckets):
    """Join neighbouring buckets where a place is within `near` of the edge between them."""
    joined = np.zeros(buckets + 2, np.bool_)  # joined[b]: bucket b continues bucket b - 1
    for i in range(codes.size):
        bucket = codes[i] >> 1
        if bucket < buckets:
            if places[i] - bucket <= near:
                joined[bucket] = True
            if bucket + 1 - places[i] <= near:
                joined[bucket + 1] = True
    heads = np.arange(buckets + 1)
    for bucket in range(1, buckets):
        if joined[bucket]:
            heads[bucket] = heads[bucket - 1]
    for i in range(codes.size):
        codes[i] = 2 * heads[codes[i] >> 1] + (codes[i] & 1)


@numba.njit(cache=True, nogil=True)
def line_turn(theta, columns, pivot, flip, codes, i, j):
    """Return the sign of the angle in (-pi, pi) from the line of row i to that of row j; 0 for the same line.

    In the plane the vectors are v_i. In space they are projected along v_pivot, and flip is the sign which that takes.
    """
    if pivot < 0:
        turn = orient2d(columns[0, i], columns[1, i], columns[0, j], columns[1, j], theta[0], theta[1])
    else:
        turn = flip * orient3d(
            columns[0, i], columns[1, i], columns[2, i],
            columns[0, j], columns[1, j], columns[2, j],
            columns[0, pivot], columns[1, pivot], columns[2, pivot],
            theta[0], theta[1], theta[2],
        )  # fmt: skip
    return -turn if (codes[i] ^ codes[j]) & 1 else turn


@numba.njit(cache=True, nogil=True)
def sort_lines(theta, columns, pivot, flip, codes, rows):
    """Sort rows by the angle of their lines, by merging, with exact signs."""
    m = rows.size
    source, target = rows.copy(), np.empty_like(rows)
    width = 1
    while width < m:
        for start in range(0, m, 2 * width):
            middle, stop = min(start + width, m), min(start + 2 * width, m)
            i, j = start, middle
            for k in range(start, stop):
                from_left = j == stop
                if i < middle and j < stop:
                    from_left = line_turn(theta, columns, pivot, flip, codes, source[i], source[j]) >= 0
                if from_left:
                    target[k] = source[i]
                    i += 1
                else:
                    target[k] = source[j]
                    j += 1
        source, target = target, source
        width *= 2
    rows[:] = source


@numba.njit(cache=True, nogil=True)
def _walk_run(theta, columns, pivot, flip, codes, rows, ahead, upper, lower, best):
    """Walk over rows whose order is unsure; return `ahead` and `best` after them."""
    m = rows.size
    same = 1
    while same < m and line_turn(theta, columns, pivot, flip, codes, rows[0], rows[same]) == 0:
        same += 1
    if same < m:
        sort_lines(theta, columns, pivot, flip, codes, rows)
    for k in range(m):
        ahead += 1 - 2 * (codes[rows[k]] & 1)
        last = k + 1 == m
        if last or (same < m and line_turn(theta, columns, pivot, flip, codes, rows[k], rows[k + 1]) != 0):
            best = min(best, upper - ahead, lower + ahead)
    return ahead, best


@numba.njit(cache=True, nogil=True)
def _sort_by_place(places, rows):
    """Sort rows by their places."""
    if rows.size > SMALL_SORT:
        rows[:] = rows[np.argsort(places[rows])]
        return
    for i in range(1, rows.size):
        row, j = rows[i], i
        while j > 0 and places[rows[j - 1]] > places[row]:
            rows[j] = rows[j - 1]
            j -= 1
        rows[j] = row


@numba.njit(cache=True, nogil=True)
def _walk_inside(theta, columns, pivot, flip, near, places, codes, rows, starts, upper, lower, best):
    """Walk through whole buckets, given by their rows; return the smaller of best and the fewest rows on a side."""
    _sort_by_place(places, rows)
    bucket, ahead, i = -1, 0, 0
    while i < rows.size:
        if codes[rows[i]] >> 1 != bucket:
            bucket = codes[rows[i]] >> 1
            ahead = starts[bucket]
        j = i + 1
        while j < rows.size and codes[rows[j]] >> 1 == bucket and places[rows[j]] - places[rows[j - 1]] <= near:
            j += 1
        if j == i + 1:
            ahead += 1 - 2 * (codes[rows[i]] & 1)
            best = min(best, upper - ahead, lower + ahead)
        else:
            ahead, best = _walk_run(theta, columns, pivot, flip, codes, rows[i:j], ahead, upper, lower, best)
        i = j
    return best


@numba.njit(cache=True, nogil=True)
def fewest_on_a_side(theta, columns, pivot, flip, near, places, codes, buckets, best):
    """Return the smaller of best and the fewest rows on a side of a line through 0 that avoids all rows.

    Rows with the code of a bucket after the last one are left out. See `line_turn` for pivot and flip.
    """
    counts = np.zeros(2 * buckets + 2, np.int64)
    for code in codes:
        counts[code] += 1
    starts = np.empty(buckets, np.int64)
    ahead, most, least = 0, 0, 0
    for bucket in range(buckets):
        starts[bucket] = ahead
        ahead += counts[2 * bucket] - counts[2 * bucket + 1]
        most, least = max(most, ahead), min(least, ahead)
    rows = codes.size - counts[2 * buckets] - counts[2 * buckets + 1]
    lower = (rows - ahead) // 2
    upper = rows - lower
    best = min(best, upper - most, lower + least)
    wanted, total = np.zeros(buckets + 1, np.bool_), 0
    for bucket in range(buckets):
        up, down = counts[2 * bucket], counts[2 * bucket + 1]
        if up + down > 1 and min(upper - starts[bucket] - up, lower + starts[bucket] - down) < best:
            wanted[bucket] = True
            total += up + down
    if total == 0:
        return best
    chosen, filled = np.empty(total + 1, np.int64), 0
    for i in range(codes.size):
        chosen[filled] = i
        filled += wanted[codes[i] >> 1]
    return _walk_inside(
        theta, columns, pivot, flip, near, places, codes, chosen[:total], starts, upper, lower, best
    )  # fmt: skip


@numba.njit(cache=True, nogil=True)
def count_in_plane(theta, columns, units):
    """Return the number of rows in the emptiest closed half-plane that contains a point.

    Parameters: the point (2,), the columns of the rows (2, n), and powers of two (2,), at least 1, by which columns may
    be multiplied to make them of like size; these matter for speed alone.
    """
    n = columns.shape[1]
    buckets, scale, near = bucket_sizes(n, NEAR_KEY)
    places, codes = np.empty(n), np.empty(n, np.int32)
    overflow, edge = place_lines(theta, columns, units, scale, near, buckets, places, codes)
    if overflow:
        replace_overflown(theta, columns, units, scale, places, codes)
    if overflow or edge:
        merge_buckets(places, codes, near, buckets)
    equal = 0
    for i in range(n):
        equal += codes[i] >> 1 == buckets
    return equal + fewest_on_a_side(theta, columns, -1, 1, near, places, codes, buckets, (n - equal) // 2)
