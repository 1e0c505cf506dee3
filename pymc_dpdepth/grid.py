r"""The dyadic grid of u-space on which every exact draw lives.

A coordinate of the location is theta = icdf(u) under its prior, u uniform. The tail probability v = min(u, 1 - u) is
cut into the cells [m, m + 1) * 2**(e - 40), 2**40 <= m < 2**41, so cells grow finer towards both ends with a constant
relative width, like doubles with 40 bits after the leading one. Cells are numbered from left to right by an integer
*key*: on the lower side the leading bits of the double v, on the upper side the mirror image. The cells end at v =
2**-980 (36.7 standard deviations of a normal): rows beyond that share the outermost cell.

Three facts carry the privacy proofs and do not depend on any approximation:

- the grid and the number theta that stands for a cell are fixed before the data are seen;
- a row enters through its key alone, and that key depends on that row alone;
- the prior mass of a run of cells is a difference of two doubles that the keys name exactly.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from pymc_dpdepth.bits import bits_to_float, float_to_bits, fma

__all__ = [
    "FIRST_UPPER_KEY",
    "FLOOR_KEY",
    "LAST_KEY",
    "TAIL_FLOOR_KEY",
    "cell_count",
    "edge_integer",
    "mass",
    "normal_keys",
    "tail_edges",
    "tail_keys",
]

SIGNIFICAND_BITS = 52
CELL_BITS = 40
SHIFT = SIGNIFICAND_BITS - CELL_BITS
EXPONENT_BIAS = 1023
HALF_BITS = (EXPONENT_BIAS - 1) << SIGNIFICAND_BITS  # the bits of 0.5

#: Keys below are on the lower side (u < 1/2), this one and those above on the upper side.
FIRST_UPPER_KEY = HALF_BITS >> SHIFT
#: Largest key; the smallest is 0.
LAST_KEY = 2 * FIRST_UPPER_KEY - 1
# Every end of a cell is a multiple of this: the floor 2^-980 has 40 bits after its leading one.
EDGE_BITS = 1020
# Cells up to a *floor* are one cell, so that no cell's mass is a subnormal double.
UNBOUNDED_TAIL, FINITE_END = 980, CELL_BITS + 2
#: Floor of a tail without end: 2**-980.
TAIL_FLOOR_KEY = (EXPONENT_BIAS - UNBOUNDED_TAIL) << CELL_BITS
#: Floor where the support ends at a finite point: 2**-42. The outermost cell then contains the end point, so an atom
#: there (many zeros under a prior on [0, b]) has a prior mass of about 2**-42, like any other.
FLOOR_KEY = (EXPONENT_BIAS - FINITE_END) << CELL_BITS


@numba.njit(cache=True, nogil=True)
def lower_edge(key, floor):
    """Left end, as a tail probability, of the lower-side cell `key`."""
    return bits_to_float(key << SHIFT) if key > floor else 0.0


@numba.njit(cache=True, nogil=True)
def mass(first, last, low_floor, high_floor):
    """Prior mass of the cells first, ..., last (inclusive), first <= last.

    With tails a at the left end and b at the right end of the run: b - a on the lower side, a - b on the upper side,
    (1/2 - a) + (1/2 - b) across the median. The tails are exact, so the mass is right to one rounding on one side and
    to three across. Written without branches, so that loops over it become vector instructions.
    """
    left_is_low, right_is_low = first < FIRST_UPPER_KEY, last < FIRST_UPPER_KEY
    left = lower_edge(first if left_is_low else LAST_KEY - first + 1, low_floor if left_is_low else high_floor)
    right = lower_edge(last + 1 if right_is_low else LAST_KEY - last, low_floor if right_is_low else high_floor)
    half = 0.5 if left_is_low and not right_is_low else 0.0
    return (half + (-left if left_is_low else left)) + (half + (right if right_is_low else -right))


def edge_integer(edge: float) -> int:
    """Return a cell's end, as a tail probability, in units of 2^-1020."""
    numerator, denominator = edge.as_integer_ratio()
    return (numerator << EDGE_BITS) // denominator


def cell_count(first: int, last: int, low_floor: int, high_floor: int) -> int:
    """Return the prior mass of the cells first, ..., last as the integer count of the grid's smallest unit, 2^-1020."""
    ends = []
    for key in (first, last + 1):
        if key < FIRST_UPPER_KEY:
            ends.append(edge_integer(lower_edge(key, low_floor)))
        else:  # tail 1/2 at the median itself, which LAST_KEY + 1 - FIRST_UPPER_KEY = FIRST_UPPER_KEY stands for
            ends.append((1 << EDGE_BITS) - edge_integer(lower_edge(LAST_KEY + 1 - key, high_floor)))
    return ends[1] - ends[0]


@numba.njit(cache=True, nogil=True)
def clamp(key, low_floor, high_floor):
    """Move a key that lies beyond an end cell into it."""
    return min(max(key, low_floor), LAST_KEY - high_floor)


@numba.njit(cache=True, nogil=True)
def tail_keys(lower, upper, low_floor, high_floor):
    """Keys of points with lower tail `lower` = P(T <= x) and upper tail `upper` = P(T > x).

    The smaller tail decides, since it is the one that is known accurately.

    Parameters
    ----------
    lower, upper : ndarray of float64, shape (n,)
    low_floor, high_floor : int

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    keys = np.empty(lower.shape[0], dtype=np.int64)
    for i in range(lower.shape[0]):
        if lower[i] < upper[i]:
            key = min(float_to_bits(max(lower[i], 0.0)) >> SHIFT, FIRST_UPPER_KEY - 1)
        else:
            key = LAST_KEY - min(float_to_bits(max(upper[i], 0.0)) >> SHIFT, FIRST_UPPER_KEY - 1)
        keys[i] = clamp(key, low_floor, high_floor)
    return keys


def tail_edges(keys, low_floor, high_floor):
    """Return side and tail probabilities of cells.

    Parameters
    ----------
    keys : ndarray of int64
    low_floor, high_floor : int or ndarray

    Returns
    -------
    upper : ndarray of bool
        Whether the cell lies on the upper side.
    near, far : ndarray of float64
        The tail probabilities at the cell's end near the tail and at the other one.
    """
    keys = np.asarray(keys, dtype=np.int64)
    upper = keys >= FIRST_UPPER_KEY
    folded = np.where(upper, LAST_KEY - keys, keys)
    floor = np.where(upper, high_floor, low_floor)
    near = np.where(folded > floor, (folded << SHIFT).view(np.float64), 0.0)
    far = ((folded + 1) << SHIFT).view(np.float64)
    return upper, near, far


# The normal family: n * d tails in a release, so this map is worth a vectorised kernel.
#
# Q(z) = exp(-z^2/2) R(z), z >= 0, with R(z) = erfcx(z / sqrt 2) / 2. In t = (z - 5) / (z + 5) the function R is smooth
# on [-1, 1); its Chebyshev interpolant of degree 20 is right to 1e-13 for z <= 36.5, which the tests check. The cells
# are 2**-40 = 9e-13 wide, and accuracy here is quality, not privacy: any map of one row to a key would do.

CENTER = 5.0
LARGEST_Z = 36.5  # Q(36.5) = 5.5e-292 is above 2**-980 = 9.8e-296, so no key falls below the floor
# Q(5e-13) is 0.44 cells below 1/2: at the median itself the tail stays in the last cell of its side.
SMALLEST_Z = 5e-13
RATIO_DEGREE = 20
LOG2_E = 1.0 / math.log(2.0)
# ln 2 in two parts (Cody and Waite 1980): the first has 32 trailing zero bits, so its multiples up to 2**11 are exact.
LN2_HIGH = float.fromhex("0x1.62e42feep-1")
LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
ROUND = 1.5 * 2.0**SIGNIFICAND_BITS  # adding it rounds to an integer that then sits in the low bits
ROUND_BITS = int(np.float64(ROUND).view(np.int64))
EXP = tuple(1.0 / math.factorial(k) for k in range(12))  # |x| <= ln(2)/2: the remainder is below 7e-15
BLOCK = 512
LARGEST = float(np.finfo(np.float64).max)


def _ratio_coefficients():
    from numpy.polynomial import chebyshev
    from scipy.special import erfcx

    def ratio(t):
        z = CENTER * (1.0 + t) / (1.0 - t)
        return 0.5 * erfcx(z / math.sqrt(2.0))

    return tuple(float(c) for c in chebyshev.cheb2poly(chebyshev.chebinterpolate(ratio, RATIO_DEGREE)))


RATIO = _ratio_coefficients()


@numba.njit(inline="always")
def _quartic(c0, c1, c2, c3, x, x2):
    """Cubic c0 + c1 x + c2 x^2 + c3 x^3, in two independent halves for speed (Estrin's scheme)."""
    return fma(fma(c3, x, c2), x2, fma(c1, x, c0))


@numba.njit(inline="always")
def _ratio(t):
    """Polynomial of degree 20 with the coefficients RATIO."""
    t2 = t * t
    t4 = t2 * t2
    t8 = t4 * t4
    p0 = _quartic(RATIO[0], RATIO[1], RATIO[2], RATIO[3], t, t2)
    p1 = _quartic(RATIO[4], RATIO[5], RATIO[6], RATIO[7], t, t2)
    p2 = _quartic(RATIO[8], RATIO[9], RATIO[10], RATIO[11], t, t2)
    p3 = _quartic(RATIO[12], RATIO[13], RATIO[14], RATIO[15], t, t2)
    p4 = _quartic(RATIO[16], RATIO[17], RATIO[18], RATIO[19], t, t2)
    low, high = fma(p1, t4, p0), fma(p3, t4, p2)
    return fma(fma(fma(RATIO[20], t4, p4), t8, high), t8, low)


@numba.njit(inline="always")
def _exp_reduced(x):
    """exp(x) for |x| <= ln(2)/2 by its Taylor polynomial of degree 11."""
    x2 = x * x
    x4 = x2 * x2
    p0 = _quartic(EXP[0], EXP[1], EXP[2], EXP[3], x, x2)
    p1 = _quartic(EXP[4], EXP[5], EXP[6], EXP[7], x, x2)
    p2 = _quartic(EXP[8], EXP[9], EXP[10], EXP[11], x, x2)
    return fma(fma(p2, x4, p1), x4, p0)


@numba.njit(inline="always")
def _normal_tail(z):
    """P(N(0, 1) > z) for 0 <= z <= LARGEST_Z."""
    exponent = -0.5 * z * z
    shifted = exponent * LOG2_E + ROUND
    power = float_to_bits(shifted) - ROUND_BITS
    whole = shifted - ROUND
    remainder = fma(-whole, LN2_LOW, fma(-whole, LN2_HIGH, exponent))
    scale = bits_to_float((power + EXPONENT_BIAS) << SIGNIFICAND_BITS)
    return _ratio((z - CENTER) / (z + CENTER)) * _exp_reduced(remainder) * scale


@numba.njit(cache=True, nogil=True, error_model="numpy")
def normal_keys(rows, mu, sigma, keys):
    """Write the keys of rows under independent N(mu_j, sigma_j) priors into `keys`.

    Rows pass through a buffer of fixed length, so every row takes the same instructions wherever it stands and its key
    depends on it alone.

    Parameters
    ----------
    rows : ndarray of float64, shape (n, d), finite
    mu, sigma : ndarray of float64, shape (d,)
    keys : ndarray of int64, shape (d, n)
        Overwritten.
    """
    n, d = rows.shape
    column = np.zeros(BLOCK)
    block_keys = np.empty(BLOCK, dtype=np.int64)
    for start in range(0, n, BLOCK):
        length = min(BLOCK, n - start)
        for j in range(d):
            for i in range(length):
                column[i] = rows[start + i, j]
            # Finite under a subnormal sigma, too: a row equal to mu then gives 0 and not nan.
            center, inverse = mu[j], min(1.0 / sigma[j], LARGEST)
            for i in range(BLOCK):
                z = (column[i] - center) * inverse
                key = float_to_bits(_normal_tail(max(min(abs(z), LARGEST_Z), SMALLEST_Z))) >> SHIFT
                block_keys[i] = key if z < 0.0 else LAST_KEY - key
            out = keys[j]
            for i in range(length):
                out[start + i] = block_keys[i]
