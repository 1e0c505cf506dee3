"""The grid of u-space in rational arithmetic, written from its definition: no code of the package."""

import struct
from fractions import Fraction

import numpy as np

CELL_BITS = 40
BIAS = 1023
FIRST_UPPER = (BIAS - 1) << CELL_BITS  # 0.5 = 2^-1, so its cell is [2^40, 2^40 + 1) 2^(-1 - 40)
LAST = 2 * FIRST_UPPER - 1
FINITE_END = (BIAS - 42) << CELL_BITS
NO_END = (BIAS - 980) << CELL_BITS
HALF = Fraction(1, 2)


def key_of_tail(v):
    """Return the lower-side cell that holds the tail 0 < v < 1/2, a double."""
    (bits,) = struct.unpack("<q", struct.pack("<d", v))
    return bits >> 12


def tail_edge(key, floor):
    """Return the end near the tail of the lower-side cell `key`: m 2^(e - 40) with 2^40 <= m < 2^41."""
    if key <= floor:
        return Fraction(0)
    exponent, m = (key >> CELL_BITS) - BIAS, (1 << CELL_BITS) + (key & ((1 << CELL_BITS) - 1))
    return Fraction(m) * Fraction(2) ** (exponent - CELL_BITS)


def left_end(key, low_floor, high_floor):
    """Return the left end u of any cell; that of LAST + 1 is 1."""
    if key < FIRST_UPPER:
        return tail_edge(key, low_floor)
    if key == FIRST_UPPER:
        return HALF
    return 1 - tail_edge(LAST - key + 1, high_floor)


def mass(first, last, low_floor, high_floor):
    """Return the prior mass of the cells first, ..., last."""
    return left_end(last + 1, low_floor, high_floor) - left_end(first, low_floor, high_floor)


def random_keys(generator, count, floor, side=None):
    """Return keys that are uniform over cells, so that every binade of a side is met."""
    lower = generator.integers(0, FIRST_UPPER, size=count)
    near = FIRST_UPPER - 1 - generator.integers(0, 4 << CELL_BITS, size=count)  # the binades around 1/2
    around_floor = floor + generator.integers(-2, 3, size=count)
    keys = np.choose(generator.integers(0, 3, size=count), [lower, near, around_floor])
    upper = generator.random(count) < 0.5 if side is None else np.full(count, side == "upper")
    return np.where(upper, LAST - keys, keys)
