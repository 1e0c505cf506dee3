"""Exact signs of determinants of points given in doubles, as numba kernels.

`orient2d` and `orient3d` return the sign of the determinant of the **real** numbers that the doubles stand for. The
doubles may be any finite ones: zeros, subnormal numbers, and sizes whose products leave the range of doubles on either
side included. Nothing is scaled, clamped or rounded away. Three stages, each tried when the one before it can't decide:

1. The determinant in doubles, with a bound of its rounding error [1]_. A few nanoseconds, nearly always enough for data
   that were measured.
2. The same operations with their rounding errors, by error-free transformations. Where there are none, or only those of
   the last products, the computed signs are exact. This settles most ties of small integers and grids.
3. The determinant as a sum of products of coordinates, added up in a fixed-point number that is long enough for all of
   them. Its length follows the exponents that are there.

References
----------
.. [1] J. R. Shewchuk, Adaptive precision floating-point arithmetic and fast robust geometric predicates, Discrete and
       Computational Geometry 18 (1997) 305-363, doi:10.1007/PL00009321.
"""

from __future__ import annotations

import numba
import numpy as np

from pymc_dpdepth.bits import float_to_bits, fma

__all__ = [
    "difference_is_exact",
    "error_is_double",
    "orient2d",
    "orient3d",
    "product_is_exact",
    "sign",
    "sign_of_sum_of_products",
]

UNIT_ROUNDOFF = 2.0**-53
# Shewchuk's bounds A: relative to the sum of the absolute values of the products, in units of the roundoff.
BOUND_2D = (3.0 + 16.0 * UNIT_ROUNDOFF) * UNIT_ROUNDOFF
BOUND_3D = (7.0 + 56.0 * UNIT_ROUNDOFF) * UNIT_ROUNDOFF
# Both stages in doubles ask that products lose no digits to subnormal numbers, which begin below 2^-1022. The last bit
# of a product of two doubles lies at most 106 bits below its first; this leaves room, and a second-order part of the
# bounds, 2^-106 SAFE, that is far above what rounding to subnormal numbers adds, some 2^-1074 for each product.
SAFE, LARGEST = 2.0**-800, 2.0**1023

# Format of a double: 52 stored bits of the significand, 11 of the exponent; value = significand * 2^(exponent - 1075).
STORED_BITS = 52
EXPONENT_MASK = 0x7FF
EXPONENT_BIAS = 1075
# Digits of the fixed-point number have 24 bits in 64-bit integers: a significand is 3 digits, and a digit shifted by
# less than 24 bits stays below 2^48, so that 2^14 of them can be added without a carry.
DIGIT_BITS = 24
DIGIT_MASK = (1 << DIGIT_BITS) - 1
DIGITS = 3


@numba.njit(cache=True, nogil=True)
def sign(x):
    """Return -1, 0 or 1, the sign of a number."""
    return (x > 0) - (x < 0)


@numba.njit(cache=True, nogil=True)
def orient2d(ax, ay, bx, by, cx, cy):
    """Return the exact sign of (a - c) x (b - c): 1 where a, b, c turn left, 0 where they are on one line.

    Parameters
    ----------
    ax, ay, bx, by, cx, cy : float
        Finite coordinates of three points.
    """
    left = (ax - cx) * (by - cy)
    right = (ay - cy) * (bx - cx)
    size = abs(left) + abs(right)
    determinant = left - right
    # A size that is not finite makes the comparison false.
    if abs(determinant) > BOUND_2D * size and size > SAFE:
        return sign(determinant)
    return _near_orient2d(ax, ay, bx, by, cx, cy)


@numba.njit(cache=True, nogil=True)
def orient3d(ax, ay, az, bx, by, bz, cx, cy, cz, dx, dy, dz):
    """Return the exact sign of det(a - d, b - d, c - d): 0 where the four points are in one plane.

    Parameters
    ----------
    ax, ay, az, ..., dx, dy, dz : float
        Finite coordinates of four points.
    """
    adx, ady, adz = ax - dx, ay - dy, az - dz
    bdx, bdy, bdz = bx - dx, by - dy, bz - dz
    cdx, cdy, cdz = cx - dx, cy - dy, cz - dz
    bc, cb = bdx * cdy, cdx * bdy
    ca, ac = cdx * ady, adx * cdy
    ab, ba = adx * bdy, bdx * ady
    determinant = adz * (bc - cb) + bdz * (ca - ac) + cdz * (ab - ba)
    size = (abs(bc) + abs(cb)) * abs(adz) + (abs(ca) + abs(ac)) * abs(bdz) + (abs(ab) + abs(ba)) * abs(cdz)
    # A minor that became subnormal is multiplied by a third factor afterwards.
    if abs(determinant) > BOUND_3D * size and abs(determinant) > SAFE * (1.0 + abs(adz) + abs(bdz) + abs(cdz)):
        return sign(determinant)
    return _near_orient3d(ax, ay, az, bx, by, bz, cx, cy, cz, dx, dy, dz)


@numba.njit(cache=True, nogil=True)
def difference_is_exact(a, b):
    """Return whether a - b is a double (two-sum of D. E. Knuth)."""
    total = a - b
    part = total - a
    return (a - (total - part)) - (b + part) == 0.0


@numba.njit(cache=True, nogil=True)
def error_is_double(a, b, product):
    """Return whether the rounding error of a product is a double, which fma then returns."""
    return a == 0.0 or b == 0.0 or SAFE < abs(product) < LARGEST


@numba.njit(cache=True, nogil=True)
def product_is_exact(a, b):
    """Return whether a * b is a double, and one of a size for which this can be told."""
    product = a * b
    return error_is_double(a, b, product) and fma(a, b, -product) == 0.0


@numba.njit(cache=True, nogil=True)
def _near_orient2d(ax, ay, bx, by, cx, cy):
    """Return `orient2d` where the filter could not decide."""
    if (ax == bx and ay == by) or (ax == cx and ay == cy) or (bx == cx and by == cy):
        return 0
    acx, acy, bcx, bcy = ax - cx, ay - cy, bx - cx, by - cy
    left, right = acx * bcy, acy * bcx
    if (
        error_is_double(acx, bcy, left)
        and error_is_double(acy, bcx, right)
        and difference_is_exact(ax, cx)
        and difference_is_exact(ay, cy)
        and difference_is_exact(bx, cx)
        and difference_is_exact(by, cy)
    ):
        # Rounding is monotone: rounded products that differ are in the order of the products themselves.
        if left != right:
            return sign(left - right)
        return sign(fma(acx, bcy, -left) - fma(acy, bcx, -right))
    # (a - c) x (b - c) = a x b - a x c - c x b
    factors = np.array(((ax, by), (-ay, bx), (-ax, cy), (ay, cx), (-cx, by), (cy, bx)))
    return sign_of_sum_of_products(factors)


@numba.njit(cache=True, nogil=True)
def _near_orient3d(ax, ay, az, bx, by, bz, cx, cy, cz, dx, dy, dz):
    """Return `orient3d` where the filter could not decide."""
    points = np.array(((ax, ay, az), (bx, by, bz), (cx, cy, cz), (dx, dy, dz)))
    for i in range(points.shape[0]):
        for j in range(i):
            if points[i, 0] == points[j, 0] and points[i, 1] == points[j, 1] and points[i, 2] == points[j, 2]:
                return 0
    determinant, exact = _determinant_if_exact(points)
    if exact:
        return sign(determinant)
    # det(a - d, b - d, c - d) = |a b c| - |d b c| - |a d c| - |a b d|, each of six products
    factors = np.empty((24, 3))
    _write_determinant(factors[:6], points[0], points[1], points[2], 1.0)
    _write_determinant(factors[6:12], points[3], points[1], points[2], -1.0)
    _write_determinant(factors[12:18], points[0], points[3], points[2], -1.0)
    _write_determinant(factors[18:], points[0], points[1], points[3], -1.0)
    return sign_of_sum_of_products(factors)


@numba.njit(cache=True, nogil=True)
def _determinant_if_exact(points):
    """Return det(a - d, b - d, c - d) in doubles, and whether no operation rounded."""
    differences = np.empty((3, 3))
    exact = True
    for i in range(3):
        for j in range(3):
            exact &= difference_is_exact(points[i, j], points[3, j])
            differences[i, j] = points[i, j] - points[3, j]
    total = 0.0
    for i in range(3):
        p, q, z = differences[(i + 1) % 3], differences[(i + 2) % 3], differences[i, 2]
        left, right = p[0] * q[1], q[0] * p[1]
        minor = left - right
        term = z * minor
        exact &= product_is_exact(p[0], q[1]) and product_is_exact(q[0], p[1]) and difference_is_exact(left, right)
        exact &= product_is_exact(z, minor) and difference_is_exact(total, -term)
        total += term
    return total, exact


@numba.njit(cache=True, nogil=True)
def _write_determinant(factors, a, b, c, factor):
    """Write the six products of factor * |a b c|; factor is 1 or -1."""
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        factors[2 * i, 0], factors[2 * i, 1], factors[2 * i, 2] = factor * a[i], b[j], c[k]
        factors[2 * i + 1, 0], factors[2 * i + 1, 1], factors[2 * i + 1, 2] = -factor * a[i], b[k], c[j]


@numba.njit(cache=True, nogil=True)
def _exponent(x):
    """Return e such that |x| = m 2^e with an integer m < 2^53."""
    return max((float_to_bits(x) >> STORED_BITS) & EXPONENT_MASK, 1) - EXPONENT_BIAS


@numba.njit(cache=True, nogil=True)
def _significand(x):
    """Return the integer m of `_exponent`."""
    bits = float_to_bits(x)
    stored = bits & ((1 << STORED_BITS) - 1)
    return stored if (bits >> STORED_BITS) & EXPONENT_MASK == 0 else stored | (1 << STORED_BITS)


@numba.njit(cache=True, nogil=True)
def sign_of_sum_of_products(factors):
    """Return the sign of the sum over i of the products over j of factors[i, j], exactly.

    The sum is a fixed-point number in base 2^24 that reaches from the lowest to the highest bit of any of the products.

    Parameters
    ----------
    factors : ndarray of float64, shape (k, t)
        Finite; k <= 2^14.
    """
    k, t = factors.shape
    exponents = np.zeros(k, np.int64)
    is_zero = np.zeros(k, np.bool_)
    lowest, highest = np.int64(2**31), np.int64(-(2**31))
    for i in range(k):
        for j in range(t):
            is_zero[i] |= factors[i, j] == 0.0
            exponents[i] += _exponent(factors[i, j])
        if not is_zero[i]:
            lowest, highest = min(lowest, exponents[i]), max(highest, exponents[i])
    if lowest > highest:
        return 0
    product = np.empty(DIGITS * t + 1, np.int64)
    digits = np.zeros((highest - lowest) // DIGIT_BITS + product.size + 1, np.int64)
    for i in range(k):
        if not is_zero[i]:
            _add_product(factors[i], exponents[i] - lowest, product, digits)
    carry, any_digit = np.int64(0), False
    for position in range(digits.size):
        total = digits[position] + carry
        carry = total >> DIGIT_BITS  # rounds down, so that every digit is between 0 and 2^24 - 1
        any_digit |= (total & DIGIT_MASK) != 0
    # The sum is carry * base^size plus the number of the digits, which is at least 0 and less than base^size.
    return np.int64(carry > 0 or any_digit) if carry >= 0 else np.int64(-1)


@numba.njit(cache=True, nogil=True)
def _add_product(factors, exponent, product, digits):
    """Add the product of the factors' significands, times 2^exponent, to the digits, without carries."""
    product[:] = 0
    product[0] = 1
    negative = False
    for j in range(factors.size):
        negative ^= factors[j] < 0.0
        m = _significand(factors[j])
        m0, m1, m2 = m & DIGIT_MASK, (m >> DIGIT_BITS) & DIGIT_MASK, m >> (2 * DIGIT_BITS)
        for position in range(product.size - 1, -1, -1):
            total = product[position] * m0
            if position > 0:
                total += product[position - 1] * m1
            if position > 1:
                total += product[position - 2] * m2
            product[position] = total
        carry = np.int64(0)
        for position in range(product.size):
            total = product[position] + carry
            product[position] = total & DIGIT_MASK
            carry = total >> DIGIT_BITS
    start, shift = exponent // DIGIT_BITS, exponent % DIGIT_BITS
    for position in range(product.size):
        shifted = product[position] << shift
        digits[start + position] += -shifted if negative else shifted
