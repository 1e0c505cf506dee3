"""Numba kernels of lines through pairs of rows in the plane: all of them, their crossings, exact sides of crossings.

A directed line is 2 * (its index) + (1 if reversed), from one of its two points to the other. A crossing of two lines
is kept as the two lines, its coordinates in doubles and a bound of their error. The coordinates decide most questions
about it; determinants of the points, with exact signs, decide the others.
"""

from __future__ import annotations

import numba
import numpy as np

from pymc_dpdepth.bits import fma
from pymc_dpdepth.depths.halfspace_plane import (
    NEAR_KEY,
    bucket_sizes,
    line_turn,
    place_lines,
    replace_overflown,
    sort_lines,
)
from pymc_dpdepth.depths.predicates import (
    BOUND_2D,
    SAFE,
    error_is_double,
    orient2d,
    product_is_exact,
    sign,
    sign_of_sum_of_products,
)

__all__ = ["lines_through_rows", "side", "turn", "visit_levels", "write_crossing"]

# Errors of arithmetic with pairs of doubles, in units of u^2, u = 2^-53, and up to terms of u^3. What is rounded to
# subnormal numbers on the way comes after them.
#
# `_cross`, of differences (a0, a1) with |a1| <= u |a0|, and so of products p = fl(a0 b0) and q of size S = |p| + |q|:
# rounding a0 b1, a1 b0, their sum (of 2 u |p| at most), and the sum with p's own error (3 u |p|), and leaving a1 b1 out
# costs (2 + 2 + 3 + 1) u^2 |p|; p_low - q_low is at most 3 u S, and 4 u S with the error of p - q: 3 u^2 S and 4 u^2 S.
# In all 15 u^2 S. The last sum is exact as a pair, whose low part is at most u times the high part: without it, after
# cancellation, the low part may be the greater one, and nothing below would hold.
#
# The ratio of t = t0 + t1 (size S) and b = b0 + b1 (size T), r = fl(t0 / b0): the remainder t0 - r b0 is exact, at most
# u |t0|, as t1 and r b1 are, so that the numerator t0 - r b0 + t1 - r b1 is at most 3 u |t0|. Rounding r b1, two sums
# and the quotient costs (1 + 2 + 3 + 3) u^2 |r|, and b0 for b in the quotient 3 u |r| |b - b0| / |b|. Where |b0| is at
# least 2^8 u^2 T, |b| is at least 15/16 |b0|: errors of t and b cost 15 (16/15) u^2 (S + |r| T) / |b0|, and that of the
# quotient 3 (16/15) u^2 |r| and a part u of the others. In all less than 17 u^2 (S + |r| T) / |b0| + 13 u^2 |r|.
#
# `_point_on_line`, of a ratio t0 + t1 with |t1| <= 4 u |t0| and a step (s0, s1): rounding t0 s1, t1 s0, their sum, and
# the sum with the error of t0 s0, and leaving t1 s1 out costs (1 + 4 + 5 + 6 + 4) u^2 |t0 s0|; rounding the sum with
# the error of the last one costs 7 u^2 |t0 s0|, and u^2 of the result, which is nothing beside its own rounding.
#
# Less than 40 u^2 ((S + |r| T) / |b0| + |r|) |s0| together, of which 2^8 u^2 is a safe multiple.
PAIR_ERROR = 2.0**-98
# Where the ratio is below 2^-1022, its remainder and r b1 are rounded by 2^-1075 at most, and so is its low part.
TINY = 2.0**-1072
ROUNDOFF = 2.0**-52  # twice that of a double
# A determinant of three lines has 3! terms of three coefficients, which are sums of two; in all, four coordinates each.
EXACT_PRODUCTS, EXACT_FACTORS = 6 * 2 * 2 * 2, 4


@numba.njit(cache=True, nogil=True)
def _order_around(i, points, units, places, codes):
    """Return the points other than i in the exact order of their lines through it; codes tell upper from lower."""
    n = points.shape[1]
    theta = points[:, i].copy()
    buckets, scale, near = bucket_sizes(n, NEAR_KEY)
    overflow, _ = place_lines(theta, points, units, scale, near, buckets, places, codes)
    if overflow:
        replace_overflown(theta, points, units, scale, places, codes)
    order = np.argsort(places)
    order = order[order != i]
    start = 0
    while start < order.size:
        stop = start + 1
        while stop < order.size and places[order[stop]] - places[order[stop - 1]] <= near:
            stop += 1
        if stop - start > 1:
            sort_lines(theta, points, -1, 1, codes, order[start:stop])
        start = stop
    return order


@numba.njit(cache=True, nogil=True)
def lines_through_rows(points, weights, units):
    """Return all lines through two of some distinct points.

    Parameters: the points (2, m), how many rows are at each (m,), and the units of `count_in_plane` (2,).

    Returned: two points of each line (l, 2), the numbers of rows on its right, on it and on its left (l, 3), and a
    number (l,) that grows, but for rounding, with the line's angle in [0, pi).
    """
    m = points.shape[1]
    most = m * (m - 1) // 2
    ends, sides, keys, filled = np.empty((most, 2), np.int32), np.empty((most, 3), np.int32), np.empty(most), 0
    places, codes = np.empty(m), np.empty(m, np.int32)
    total = weights.sum()
    for i in range(m):
        theta = points[:, i].copy()
        order = _order_around(i, points, units, places, codes)
        left = 0  # of a line at the angle 0, or a little less: the upper rows
        for j in order:
            left += 0 if codes[j] & 1 else weights[j]
        start = 0
        while start < order.size:
            first, smallest, on, stop = order[start], m, weights[i], start
            lower_on = 0
            while stop < order.size and line_turn(theta, points, -1, 1, codes, first, order[stop]) == 0:
                j = order[stop]
                smallest = min(smallest, j)
                on += weights[j]
                if codes[j] & 1:
                    lower_on += weights[j]
                else:
                    left -= weights[j]
                stop += 1
            if smallest > i:  # each line once, at its first point
                lower = codes[first] & 1
                ends[filled, 0], ends[filled, 1] = (first, i) if lower else (i, first)
                sides[filled, 0], sides[filled, 1], sides[filled, 2] = total - on - left, on, left
                keys[filled] = places[first]
                filled += 1
            left += lower_on
            start = stop
    return ends[:filled], sides[:filled], keys[:filled]


@numba.njit(cache=True, nogil=True)
def visit_levels(sides, order, slots, ends, codes):
    """Move `ends[slot]` on by one for each half-plane of `slots[level]`; write its line, unless codes is empty."""
    for reverse in range(2):
        for line in order:
            outside = sides[line, 2 * reverse]
            for level in range(outside + 1, min(outside + sides[line, 1] + 1, slots.size)):
                slot = slots[level]
                if slot >= 0:
                    if codes.size:
                        codes[ends[slot]] = 2 * line + reverse
                    ends[slot] += 1


# Crossings of lines


@numba.njit(cache=True, nogil=True)
def _tail_and_head(code, ends):
    """Return the points that a directed line comes from and goes to."""
    return ends[code >> 1, code & 1], ends[code >> 1, 1 - (code & 1)]


@numba.njit(cache=True, nogil=True)
def turn(c, e, points, ends):
    """Return the exact sign of the cross product of the directions of two directed lines."""
    if c >> 1 == e >> 1:
        return 0
    (s, t), (p, q) = _tail_and_head(c, ends), _tail_and_head(e, ends)
    sx, sy, tx, ty = points[0, s], points[1, s], points[0, t], points[1, t]
    px, py, qx, qy = points[0, p], points[1, p], points[0, q], points[1, q]
    left, right = (tx - sx) * (qy - py), (ty - sy) * (qx - px)
    size = abs(left) + abs(right)
    if abs(left - right) > BOUND_2D * size and size > SAFE:
        return sign(left - right)
    factors = np.array(
        ((tx, qy), (-tx, py), (-sx, qy), (sx, py), (-ty, qx), (ty, px), (sy, qx), (-sy, px)),
    )
    return sign_of_sum_of_products(factors)


@numba.njit(cache=True, nogil=True)
def _difference(a, b):
    """Return a - b as a rounded double and its error (Knuth)."""
    total = a - b
    part = total - a
    return total, (a - (total - part)) - (b + part)


@numba.njit(cache=True, nogil=True)
def _cross(ax, ay, bx, by):
    """Return the cross product of two vectors whose entries are pairs of doubles.

    Returned: the pair, its low part at most a rounding error of the high one; the size of its terms; and whether
    nothing was rounded.
    """
    p, q = ax[0] * by[0], ay[0] * bx[0]
    p_low = fma(ax[0], by[0], -p) + (ax[0] * by[1] + ax[1] * by[0])
    q_low = fma(ay[0], bx[0], -q) + (ay[0] * bx[1] + ay[1] * bx[0])
    high, low = _difference(p, q)
    exact = ax[1] == 0.0 and ay[1] == 0.0 and bx[1] == 0.0 and by[1] == 0.0 and low == 0.0
    exact = exact and product_is_exact(ax[0], by[0]) and product_is_exact(ay[0], bx[0])
    high, low = _difference(high, -(low + (p_low - q_low)))
    return high, low, abs(p) + abs(q), exact


@numba.njit(cache=True, nogil=True)
def _point_on_line(start, step, t, t_low):
    """Return start + t step for pairs of doubles t and step, and whether nothing was rounded."""
    product = t * step[0]
    low = fma(t, step[0], -product) + (t * step[1] + t_low * step[0])
    total, error = _difference(start, -product)
    exact = t_low == 0.0 and step[1] == 0.0 and product_is_exact(t, step[0]) and error == 0.0
    return total + (error + low), exact


@numba.njit(cache=True, nogil=True)
def write_crossing(c, e, points, ends, node, coords, lines):
    """Write the crossing of two directed lines that are not parallel: the lines, and x, y and bounds in `coords[node]`.

    The bounds are one of the error of x and y, and the part of it that is not their last rounding: 0 where x and y are
    exact, infinite where nothing is known of them.
    """
    lines[node, 0], lines[node, 1] = c, e
    (s, t), (p, q) = _tail_and_head(c, ends), _tail_and_head(e, ends)
    if s == p or s == q or t == p or t == q:
        common = s if s == p or s == q else t
        coords[node, 0], coords[node, 1], coords[node, 2], coords[node, 3] = (
            points[0, common],
            points[1, common],
            0.0,
            0.0,
        )
        return
    cx, cy = _difference(points[0, t], points[0, s]), _difference(points[1, t], points[1, s])
    ex, ey = _difference(points[0, q], points[0, p]), _difference(points[1, q], points[1, p])
    gx, gy = _difference(points[0, p], points[0, s]), _difference(points[1, p], points[1, s])
    # s + ratio (t - s) is on the line from p to q where ratio (t - s) x (q - p) = (p - s) x (q - p).
    top, top_low, top_size, top_exact = _cross(gx, gy, ex, ey)
    bottom, bottom_low, bottom_size, bottom_exact = _cross(cx, cy, ex, ey)
    coords[node, 0], coords[node, 1], coords[node, 2], coords[node, 3] = np.nan, np.nan, np.inf, np.inf
    if not abs(bottom) > max(SAFE, PAIR_ERROR * bottom_size) or not (top_size > SAFE or (top == 0.0 and top_exact)):
        return
    ratio = top / bottom
    remainder = fma(-ratio, bottom, top)
    ratio_low = (remainder + (top_low - ratio * bottom_low)) / bottom
    x, x_exact = _point_on_line(points[0, s], cx, ratio, ratio_low)
    y, y_exact = _point_on_line(points[1, s], cy, ratio, ratio_low)
    ratio_exact = remainder == 0.0 and error_is_double(ratio, bottom, top)
    error = 0.0
    if not (top_exact and bottom_exact and ratio_exact and x_exact and y_exact):
        of_ratio = (top_size + abs(ratio) * bottom_size) / abs(bottom) + abs(ratio)
        error = (PAIR_ERROR * of_ratio + TINY * (1.0 + 1.0 / abs(bottom))) * (abs(cx[0]) + abs(cy[0])) + SAFE
    if error < np.inf and abs(x) + abs(y) < np.inf:
        coords[node, 0], coords[node, 1], coords[node, 3] = x, y, error
        coords[node, 2] = error + ROUNDOFF * (abs(x) + abs(y)) if error > 0.0 else 0.0


@numba.njit(cache=True, nogil=True)
def _exact_side(c, p, q, points, ends):
    """Return the exact sign, for the crossing of p and q, of the side of c that it is on: 1 for the left.

    A directed line from (ax, ay) to (bx, by) has the points with f x + g y + h >= 0 on its left, where f = ay - by,
    g = bx - ax and h = ax by - bx ay. At the crossing this is the determinant of the three lines' (f, g, h) over that
    of the two lines' (f, g).
    """
    denominator = turn(p, q, points, ends)
    three = (p, q, c)
    factors, row = np.empty((EXACT_PRODUCTS, EXACT_FACTORS)), 0
    for i in range(3):
        for step in (1, 2):
            j, k = (i + step) % 3, (i + 2 * step) % 3
            factor = 1.0 if step == 1 else -1.0
            (s, t), (u, v), (w, z) = (
                _tail_and_head(three[i], ends),
                _tail_and_head(three[j], ends),
                _tail_and_head(three[k], ends),
            )
            for f in (points[1, s], -points[1, t]):
                for g in (points[0, v], -points[0, u]):
                    factors[row, 0], factors[row, 1] = factor * f, g
                    factors[row, 2], factors[row, 3] = points[0, w], points[1, z]
                    factors[row + 1, 0], factors[row + 1, 1] = -factor * f, g
                    factors[row + 1, 2], factors[row + 1, 3] = points[0, z], points[1, w]
                    row += 2
    return sign_of_sum_of_products(factors) * denominator


@numba.njit(cache=True, nogil=True)
def side(c, node, points, ends, coords, lines):
    """Return the exact sign of the side of a directed line that a vertex is on: 1 for the left, 0 for the line."""
    if lines[node, 0] >> 1 == c >> 1 or lines[node, 1] >> 1 == c >> 1:
        return 0
    s, t = _tail_and_head(c, ends)
    x, y, error = coords[node, 0], coords[node, 1], coords[node, 2]
    sx, sy, tx, ty = points[0, s], points[1, s], points[0, t], points[1, t]
    if error == 0.0:
        return orient2d(sx, sy, tx, ty, x, y)
    left, right = (sx - x) * (ty - y), (sy - y) * (tx - x)
    size = abs(left) + abs(right)
    # The error of x and y moves the product by that much times the length of the line, the lengths' own rounding apart.
    moved = (1.0 + ROUNDOFF) ** 2 * error * (abs(tx - sx) + abs(ty - sy))
    if abs(left - right) > BOUND_2D * size + moved and size > SAFE:
        return sign(left - right)
    return _exact_side(c, lines[node, 0], lines[node, 1], points, ends)
