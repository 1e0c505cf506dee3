"""Exact signs of orientation determinants of points given as doubles.

A determinant of differences is computed in plain doubles first, with a bound of its error; a value beyond the bound has
the right sign. Otherwise the determinant is computed exactly, as an *expansion*: a sum of doubles that do not overlap,
built from error-free sums and products [1]_. No tolerance enters, and 0 means that the points lie on a line or in a
plane exactly.

Points are divided by a common power of two first, so that no product overflows. Signs are exact as long as no product
of differences falls below the smallest subnormal double, that is for points whose coordinates, relative to the largest
one, are 0 or above 2^-250.

References
----------
.. [1] J. R. Shewchuk, Adaptive precision floating-point arithmetic and fast robust geometric predicates, Discrete and
       Computational Geometry 18 (1997) 305-363, doi:10.1007/PL00009321.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from pymc_dpdepth.bits import fma

__all__ = ["orient2d", "orient3d"]

ROUNDOFF = 2.0**-53
# Bounds of the error of the plain formulas, in units of the sum of the absolute products; Shewchuk's A bounds, doubled.
ERROR_2D = 2.0 * (3.0 + 16.0 * ROUNDOFF) * ROUNDOFF
ERROR_3D = 2.0 * (7.0 + 56.0 * ROUNDOFF) * ROUNDOFF
# A plain determinant above this did not lose digits to subnormal numbers, nor overflow.
SMALLEST_SAFE, LARGEST_SAFE = 2.0**-800, 2.0**1000


@numba.njit(cache=True, nogil=True)
def two_sum(a, b):
    """Return the rounded sum and its exact error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@numba.njit(cache=True, nogil=True)
def two_product(a, b):
    """Return the rounded product and its exact error."""
    product = a * b
    return product, fma(a, b, -product)


@numba.njit(cache=True, nogil=True)
def grow(expansion, length, value):
    """Add a double to an expansion in place; return its new length, zeros left out."""
    carry, new_length = value, 0
    for i in range(length):
        carry, error = two_sum(carry, expansion[i])
        if error != 0.0:
            expansion[new_length] = error
            new_length += 1
    if carry != 0.0:
        expansion[new_length] = carry
        new_length += 1
    return new_length


@numba.njit(cache=True, nogil=True)
def add_product(expansion, length, a, b, c):
    """Add the exact product a * b * c of doubles to an expansion; return its new length."""
    high, low = two_product(a, b)
    for part in (low, high):
        product, error = two_product(part, c)
        length = grow(expansion, length, error)
        length = grow(expansion, length, product)
    return length


@numba.njit(cache=True, nogil=True)
def sign_of(expansion, length):
    """Return the sign of an expansion: that of its last, largest entry."""
    if length == 0:
        return 0
    return 1 if expansion[length - 1] > 0.0 else -1


@numba.njit(cache=True, nogil=True)
def _shrink(largest):
    """Return the power of two that brings the largest coordinate near 1."""
    if largest == 0.0:
        return 1.0
    exponent = math.frexp(largest)[1]
    return math.ldexp(1.0, -min(max(exponent, -1000), 1000))


@numba.njit(cache=True, nogil=True)
def orient2d(ax, ay, bx, by, cx, cy):
    """Return the exact sign of the determinant of (a - c, b - c): 1 where a, b, c turn left, 0 on a line.

    Parameters
    ----------
    ax, ay, bx, by, cx, cy : float
        Finite coordinates of three points.
    """
    left, right = (ax - cx) * (by - cy), (ay - cy) * (bx - cx)
    determinant, size = left - right, abs(left) + abs(right)
    if SMALLEST_SAFE < size < LARGEST_SAFE and abs(determinant) > ERROR_2D * size:
        return 1 if determinant > 0.0 else -1
    largest = max(max(abs(ax), abs(ay)), max(max(abs(bx), abs(by)), max(abs(cx), abs(cy))))
    s = _shrink(largest)
    ax, ay, bx, by, cx, cy = ax * s, ay * s, bx * s, by * s, cx * s, cy * s
    # (a - c) x (b - c) = a x b + b x c + c x a, six products of the given doubles
    expansion = np.empty(2 * 2 * 6 + 1)
    length = 0
    length = add_product(expansion, length, ax, by, 1.0)
    length = add_product(expansion, length, -ay, bx, 1.0)
    length = add_product(expansion, length, bx, cy, 1.0)
    length = add_product(expansion, length, -by, cx, 1.0)
    length = add_product(expansion, length, cx, ay, 1.0)
    length = add_product(expansion, length, -cy, ax, 1.0)
    return sign_of(expansion, length)


@numba.njit(cache=True, nogil=True)
def _add_determinant(expansion, length, p, q, r, sign):
    """Add sign * det(p, q, r), six exact triple products, to an expansion; return its new length."""
    length = add_product(expansion, length, sign * p[0], q[1], r[2])
    length = add_product(expansion, length, -sign * p[0], q[2], r[1])
    length = add_product(expansion, length, sign * p[1], q[2], r[0])
    length = add_product(expansion, length, -sign * p[1], q[0], r[2])
    length = add_product(expansion, length, sign * p[2], q[0], r[1])
    return add_product(expansion, length, -sign * p[2], q[1], r[0])


@numba.njit(cache=True, nogil=True)
def orient3d(ax, ay, az, bx, by, bz, cx, cy, cz, dx, dy, dz):
    """Return the exact sign of the determinant of (a - d, b - d, c - d): 0 where the four points lie in a plane.

    Parameters
    ----------
    ax, ay, az, ..., dx, dy, dz : float
        Finite coordinates of four points.
    """
    px, py, pz = ax - dx, ay - dy, az - dz
    qx, qy, qz = bx - dx, by - dy, bz - dz
    rx, ry, rz = cx - dx, cy - dy, cz - dz
    yz, zy, zx, xz, xy, yx = qy * rz, qz * ry, qz * rx, qx * rz, qx * ry, qy * rx
    determinant = px * (yz - zy) + py * (zx - xz) + pz * (xy - yx)
    size = abs(px) * (abs(yz) + abs(zy)) + abs(py) * (abs(zx) + abs(xz)) + abs(pz) * (abs(xy) + abs(yx))
    if SMALLEST_SAFE < size < LARGEST_SAFE and abs(determinant) > ERROR_3D * size:
        return 1 if determinant > 0.0 else -1
    points = np.array([[ax, ay, az], [bx, by, bz], [cx, cy, cz], [dx, dy, dz]])
    points *= _shrink(np.abs(points).max())
    a, b, c, d = points[0], points[1], points[2], points[3]
    # det(a - d, b - d, c - d) = det(a, b, c) - det(a, b, d) + det(a, c, d) - det(b, c, d)
    expansion = np.empty(4 * 6 * 4 + 1)
    length = 0
    length = _add_determinant(expansion, length, a, b, c, 1.0)
    length = _add_determinant(expansion, length, a, b, d, -1.0)
    length = _add_determinant(expansion, length, a, c, d, 1.0)
    length = _add_determinant(expansion, length, b, c, d, -1.0)
    return sign_of(expansion, length)
