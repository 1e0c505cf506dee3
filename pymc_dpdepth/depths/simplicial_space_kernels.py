"""Numba kernels that count the closed tetrahedra which contain a point, exactly.

A row equal to the point is a vertex of tetrahedra that all contain it. The others are counted by enumeration.
"""

from __future__ import annotations

import numba
import numpy as np

from pymc_dpdepth.depths.binomials import quadruples
from pymc_dpdepth.depths.predicates import orient2d, orient3d

__all__ = ["count_in_space"]

WORD = 64  # bits of an unsigned integer


# Four vectors a, b, c, e satisfy  |b c e| a - |a c e| b + |a b e| c - |a b c| e = 0  (Cramer's rule). If one of these
# determinants is not 0, the vectors span the space, and this is their only linear relation, up to a factor. So 0 is in
# their convex hull if and only if no two of the four coefficients have opposite signs. If all are 0, the vectors lie in
# a plane through 0, and 0 is in their hull if and only if it is in the hull of three of them (Caratheodory), and e may
# be one of the three: let 0 be in the hull of a, b, c. If it is in their interior, every vector of the plane is a
# combination of two of them with coefficients >= 0, -e too; else 0 is in the hull of two of them.
#
# For each pair p < q the signs of |v_p v_q v_l| over l > q are kept as bits, one set for "> 0", one for "< 0", and one
# for "= 0 and the triangle contains 0". The loop over triples i < j < k then settles 64 fourth rows at once.


@numba.njit(cache=True, nogil=True)
def _flat_triangle_contains(theta, columns, i, j, k):
    """Return whether the triangle of three rows that are not theta, but in a plane with it, contains theta.

    Where the vectors span a plane, some coordinate projection keeps it a plane; there the relation
    |b c| a + |c a| b + |a b| c = 0 is the only one. Else they are on one line, and lexicographic order tells the sides.
    """
    for p in range(2):
        for q in range(p + 1, theta.size):
            x, y, first, second = theta[p], theta[q], columns[p], columns[q]
            bc = orient2d(first[j], second[j], first[k], second[k], x, y)
            ca = orient2d(first[k], second[k], first[i], second[i], x, y)
            ab = orient2d(first[i], second[i], first[j], second[j], x, y)
            if bc != 0 or ca != 0 or ab != 0:
                return (bc >= 0 and ca >= 0 and ab >= 0) or (bc <= 0 and ca <= 0 and ab <= 0)
    side = _side(theta, columns, i)
    return side != _side(theta, columns, j) or side != _side(theta, columns, k)


@numba.njit(cache=True, nogil=True)
def _side(theta, columns, i):
    """Return the sign of the first coordinate in which a row differs from theta; 0 for theta itself."""
    for p in range(theta.size):
        if columns[p, i] != theta[p]:
            return 1 if columns[p, i] > theta[p] else -1
    return 0


@numba.njit(cache=True, nogil=True)
def _level_with(theta, columns):
    """Return for each row a number whose bit p tells whether its coordinate p is that of theta.

    Three rows that share such a bit are in a plane with theta. A constant column makes that frequent.
    """
    level = np.zeros(columns.shape[1], np.int64)
    for p in range(theta.size):
        for i in range(columns.shape[1]):
            level[i] |= (columns[p, i] == theta[p]) << p
    return level


@numba.njit(cache=True, nogil=True)
def _sign_bits(theta, columns):
    """Return the bits of |v_p v_q v_l| > 0, of < 0, and of = 0 with theta in the triangle; each (n, n, words)."""
    n = columns.shape[1]
    level = _level_with(theta, columns)
    words = (n + WORD - 1) // WORD
    above, under, flat = (
        np.zeros((n, n, words), np.uint64),
        np.zeros((n, n, words), np.uint64),
        np.zeros((n, n, words), np.uint64),
    )
    x, y, z = theta[0], theta[1], theta[2]
    for p in range(n):
        for q in range(p + 1, n):
            for k in range(q + 1, n):
                turn = 0
                if level[p] & level[q] & level[k] == 0:
                    turn = orient3d(
                        columns[0, p], columns[1, p], columns[2, p],
                        columns[0, q], columns[1, q], columns[2, q],
                        columns[0, k], columns[1, k], columns[2, k],
                        x, y, z,
                    )  # fmt: skip
                bit = np.uint64(1) << np.uint64(k % WORD)
                if turn > 0:
                    above[p, q, k // WORD] |= bit
                elif turn < 0:
                    under[p, q, k // WORD] |= bit
                elif _flat_triangle_contains(theta, columns, p, q, k):
                    flat[p, q, k // WORD] |= bit
    return above, under, flat


@numba.njit(cache=True, nogil=True)
def _bits_set(word):
    """Return the number of bits that are 1: counts of 2, 4 and 8 neighbouring bits, then their sum by a product."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@numba.njit(cache=True, nogil=True)
def count_in_space(theta, all_columns):
    """Return the number of closed tetrahedra that contain theta."""
    is_other = np.zeros(all_columns.shape[1], np.bool_)
    for i in range(all_columns.shape[1]):
        is_other[i] = _side(theta, all_columns, i) != 0
    columns = all_columns[:, is_other]
    n = columns.shape[1]
    above, under, flat = _sign_bits(theta, columns)
    words = above.shape[2]
    nothing, everything = np.uint64(0), ~np.uint64(0)
    in_last_word = everything >> np.uint64(words * WORD - n)
    found = 0
    for i in range(n):
        for j in range(i + 1, n):
            for k in range(j + 1, n):
                word, bit = k // WORD, np.uint64(1) << np.uint64(k % WORD)
                ijk_above = everything if above[i, j, word] & bit else nothing
                ijk_under = everything if under[i, j, word] & bit else nothing
                for w in range(word, words):
                    # The coefficients |j k l|, -|i k l|, |i j l|, -|i j k|: is one of them positive, negative?
                    positive = above[j, k, w] | under[i, k, w] | above[i, j, w] | ijk_under
                    negative = under[j, k, w] | above[i, k, w] | under[i, j, w] | ijk_above
                    in_plane = flat[j, k, w] | flat[i, k, w] | flat[i, j, w]
                    inside = (positive ^ negative) | (~(positive | negative) & in_plane)
                    if w == word:
                        inside &= ~(bit | (bit - np.uint64(1)))  # rows after k
                    if w == words - 1:
                        inside &= in_last_word
                    found += _bits_set(inside)
    return quadruples(all_columns.shape[1]) - quadruples(n) + found
