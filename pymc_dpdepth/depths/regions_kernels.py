"""Numba kernels of the depth regions {x : at least k rows in every closed half-plane that contains x} in the plane.

Let q_k(u) be the k-th smallest X_i.u. The region of level k is the intersection over all u of {x : x.u >= q_k(u)}.
While u turns from one normal vector of a line through two different rows to the next, by less than a half-turn unless
all rows are on one line, the k-th row is the same point P; and {x : x.u >= P.u} for the two ends implies it for all u
between. So finitely many half-planes are enough: with r rows strictly outside and o rows on its boundary, a half-plane
bounded by a line through two different rows belongs to the levels r + 1, ..., r + o.

The polygon of a level starts from that of the level before, or from the box of the rows, and is cut by one half-plane
after the other. Half-planes come in the order of their angles, so that the vertex that a half-plane cuts off first is
found by walking on from the one before. A vertex is known as the crossing of two lines through rows; its coordinates in
doubles, with a bound of their error, decide most questions about it, and determinants of the rows, with exact signs,
decide the others. Polygons of one or two vertices, points and segments, are regions like others.

A directed line is 2 * (its index) + (1 if reversed), and keeps what is on its left.
"""

from __future__ import annotations

import numba
import numpy as np

from pymc_dpdepth.depths.row_lines import side, turn, visit_levels, write_crossing

__all__ = ["cut_levels"]

# A walk around a polygon that is longer than the polygon has met signs that contradict each other: no convex polygon
# has them, so a sign is wrong. It must neither go on for ever nor return a wrong region.
CONTRADICTION = (
    "Internal error: the signs of the region's edges contradict each other. Nothing is wrong with X; please report it."
)

# A vertex is a node: `coords[node]` and `lines[node]` as `write_crossing` leaves them, the line of the edge to the next
# vertex `lines[node, 2]`, and `links[node]`, the next node and the one before. Vertices go anticlockwise, so that a
# polygon is to the left of its edges. A segment has two nodes, a point one.


@numba.njit(cache=True, nogil=True)
def _link(one, other, links):
    links[one, 0], links[other, 1] = other, one


@numba.njit(cache=True, nogil=True)
def _cut_small(c, start, used, points, ends, coords, lines, links):
    """Cut a point or a segment by the half-plane of a directed line; as `_cut`."""
    i, j = start, links[start, 0]
    side_i, side_j = side(c, i, points, ends, coords, lines), side(c, j, points, ends, coords, lines)
    if side_i >= 0 and side_j >= 0:
        return start, used
    if side_i < 0 and side_j < 0:
        return -1, used
    if side_i >= 0:
        i, j, side_j = j, i, side_i
    if side_j == 0:
        _link(j, j, links)
        return j, used
    write_crossing(lines[j, 2], c, points, ends, used, coords, lines)
    lines[used, 2] = lines[j, 2]
    _link(j, used, links)
    _link(used, j, links)
    return j, used + 1


@numba.njit(cache=True, nogil=True)
def _deepest_cut(c, start, used, points, ends, lines, links):
    """Return the vertex farthest to the right of c: the edge after it turns left of c, the one before right."""
    i = start
    for step in range(used + 1):
        if turn(c, lines[i, 2], points, ends) >= 0:
            break
        if step == used:
            raise RuntimeError(CONTRADICTION)
        i = links[i, 0]
    for step in range(used + 1):
        if turn(c, lines[links[i, 1], 2], points, ends) <= 0:
            break
        if step == used:
            raise RuntimeError(CONTRADICTION)
        i = links[i, 1]
    return i


@numba.njit(cache=True, nogil=True)
def _cut(c, start, used, points, ends, coords, lines, links):
    """Cut a polygon by the half-plane of a directed line.

    Returned: a node of what is left, -1 if nothing is, and the number of nodes in use.
    """
    if links[links[start, 0], 0] == start:
        return _cut_small(c, start, used, points, ends, coords, lines, links)
    i = _deepest_cut(c, start, used, points, ends, lines, links)
    if side(c, i, points, ends, coords, lines) >= 0:
        return i, used
    first = links[i, 0]
    while first != i and side(c, first, points, ends, coords, lines) < 0:
        first = links[first, 0]
    if first == i:
        return -1, used
    last = links[i, 1]
    while side(c, last, points, ends, coords, lines) < 0:
        last = links[last, 1]
    before = lines[links[first, 1], 2]
    opens, closes = side(c, first, points, ends, coords, lines) > 0, side(c, last, points, ends, coords, lines) > 0
    if closes:
        write_crossing(lines[last, 2], c, points, ends, used, coords, lines)
        _link(last, used, links)
        last = used
        used += 1
    if opens:
        write_crossing(before, c, points, ends, used, coords, lines)
        lines[used, 2] = before
        _link(used, first, links)
        first = used
        used += 1
    lines[last, 2] = c
    _link(last, first, links)
    return last, used


@numba.njit(cache=True, nogil=True)
def _compact(start, room, coords, lines, links):
    """Copy a polygon to new arrays of nodes with room for more; its nodes become 0, 1, ..., size - 1."""
    size, node = 1, links[start, 0]
    while node != start:
        size += 1
        node = links[node, 0]
    new_coords, new_lines, new_links = (
        np.empty((size + room, 4)),
        np.empty((size + room, 3), np.int32),
        np.empty((size + room, 2), np.int32),
    )
    for i in range(size):
        new_coords[i], new_lines[i] = coords[node], lines[node]
        new_links[i, 0], new_links[i, 1] = (i + 1) % size, (i - 1) % size
        node = links[node, 0]
    return size, new_coords, new_lines, new_links


@numba.njit(cache=True, nogil=True)
def _box(points, ends, edges):
    """Return the nodes of the polygon whose edges are four directed lines."""
    coords, lines, links = np.empty((4, 4)), np.empty((4, 3), np.int32), np.empty((4, 2), np.int32)
    for i in range(4):
        write_crossing(edges[i - 1], edges[i], points, ends, i, coords, lines)
        lines[i, 2], links[i, 0], links[i, 1] = edges[i], (i + 1) % 4, (i - 1) % 4
    return coords, lines, links


@numba.njit(cache=True, nogil=True)
def cut_levels(points, ends, sides, order, slots, edges):
    """Return the regions of some levels.

    Parameters
    ----------
    points : (2, m), rows, and the corners of their box
    ends, sides : lines through them, as `lines_through_rows` returns, and the edges of the box
    order : indices of the lines through rows, by their angles
    slots : the place of each level among those asked for, or -1; places grow with the levels
    edges : the four directed lines around the box, anticlockwise

    Returns
    -------
    coords : (v, 4), lines : (v, 2)
        Vertices, see `write_crossing`, one level after the other, each anticlockwise.
    stops : (levels,)
        Where each level ends.
    """
    starts = np.zeros(slots.max() + 2, np.int64)
    visit_levels(sides, order, slots, starts[1:], np.empty(0, np.int32))
    starts = np.cumsum(starts)
    codes = np.empty(starts[-1], np.int32)
    visit_levels(sides, order, slots, starts[:-1].copy(), codes)
    coords, lines, links = _box(points, ends, edges)
    all_coords, all_lines, total = np.empty((64, 4)), np.empty((64, 2), np.int32), 0
    stops = np.zeros(starts.size - 1, np.int64)
    start = np.int64(0)
    for slot in range(stops.size):
        if start >= 0:
            # Each half-plane adds two nodes at most.
            room = 2 * (starts[slot + 1] - starts[slot])
            used, coords, lines, links = _compact(start, room, coords, lines, links)
            start = np.int64(0)
            for c in codes[starts[slot] : starts[slot + 1]]:
                start, used = _cut(c, start, used, points, ends, coords, lines, links)
                if start < 0:
                    break
        if start >= 0:
            size, coords, lines, links = _compact(start, 0, coords, lines, links)
            start = np.int64(0)
            while total + size > all_lines.shape[0]:
                all_coords, all_lines = np.concatenate((all_coords, all_coords)), np.concatenate((all_lines, all_lines))
            all_coords[total : total + size], all_lines[total : total + size] = coords, lines[:, :2]
            total += size
        stops[slot] = total
    return all_coords[:total], all_lines[:total], stops
