"""Drawing a cell of the grid among a run of cells by prior mass, exactly.

A run first, ..., last covers a stretch of each tail, [a, b) below the median and [c, d) above it, whose ends are
doubles. With a uniform real U in [0, 1), R = U (b - a + d - c) falls below b - a and names the point a + R of the lower
tail, or the point c + (R - (b - a)) of the upper one; the cell that holds the point is drawn. The bits of U are drawn
as they are needed: doubles with error bounds decide nearly every cell from the first 53 bits, and integers go on from
the same bits where they do not. The cell is a function of U alone, the one that exact arithmetic would give.
"""

from __future__ import annotations

import numba
import numpy as np

from pymc_dpdepth.bits import float_to_bits
from pymc_dpdepth.grid import (
    CELL_BITS,
    EDGE_BITS,
    EXPONENT_BIAS,
    FIRST_UPPER_KEY,
    LAST_KEY,
    SHIFT,
    edge_integer,
    lower_edge,
)
from pymc_dpdepth.randomness import DISCARDED_BITS, RandomBits
from pymc_dpdepth.samplers.choice import WORD_BITS
from pymc_dpdepth.samplers.weights import ROUNDOFF

__all__ = ["draw_cells", "draw_prior_cells"]


@numba.njit(cache=True, nogil=True)
def _stretches(first, last, low_floor, high_floor):
    """Return a, b, c, d: the run's stretch of the lower tail and of the upper one, empty ones as two equal ends."""
    a = b = c = d = 0.0
    if first < FIRST_UPPER_KEY:
        a = lower_edge(first, low_floor)
        b = 0.5 if last >= FIRST_UPPER_KEY - 1 else lower_edge(last + 1, low_floor)
    if last >= FIRST_UPPER_KEY:
        c = lower_edge(LAST_KEY - last, high_floor)
        d = 0.5 if first <= FIRST_UPPER_KEY else lower_edge(LAST_KEY - first + 1, high_floor)
    return a, b, c, d


@numba.njit(cache=True, nogil=True)
def _tail_cell(low, high, floor, furthest):
    """Return the lower-side cell of a point between two doubles, or -1 if it may lie in two."""
    left = max(float_to_bits(max(low, 0.0)) >> SHIFT, floor)
    right = max(float_to_bits(high) >> SHIFT, floor)
    # A point is below the end of the run, though its upper bound may be at it.
    return left if left == min(right, furthest) else -1


@numba.njit(cache=True, nogil=True)
def _decide(first, last, floors, words):
    """Return the drawn cells, or -1 where doubles cannot tell; shapes as in `draw_cells`."""
    cells = np.empty_like(first)
    margin = 8.0 * ROUNDOFF
    for draw in range(first.shape[0]):
        for j in range(first.shape[1]):
            low_floor, high_floor = floors[j, 0], floors[j, 1]
            a, b, c, d = _stretches(first[draw, j], last[draw, j], low_floor, high_floor)
            below, above = b - a, d - c
            head = np.float64(words[draw, j] >> np.uint64(DISCARDED_BITS))
            # Sums and differences of doubles that are right to one rounding each; 8 roundings are a safe margin.
            least = head * ROUNDOFF * (below + above) * (1.0 - margin)
            most = (head + 1.0) * ROUNDOFF * (below + above) * (1.0 + margin)
            cells[draw, j] = -1
            if most < below * (1.0 - margin) or above == 0.0:
                furthest = min(last[draw, j], FIRST_UPPER_KEY - 1)
                cells[draw, j] = _tail_cell(
                    (a + least) * (1.0 - margin), (a + most) * (1.0 + margin), low_floor, furthest
                )
            elif least > below * (1.0 + margin) or below == 0.0:
                slack = margin * (below + most)
                furthest = LAST_KEY - max(first[draw, j], FIRST_UPPER_KEY)
                cell = _tail_cell(
                    (c + (least - below - slack)) * (1.0 - margin),
                    (c + (most - below + slack)) * (1.0 + margin),
                    high_floor,
                    furthest,
                )
                cells[draw, j] = LAST_KEY - cell if cell >= 0 else -1
    return cells


def draw_cells(first: np.ndarray, last: np.ndarray, floors: np.ndarray, bits: RandomBits) -> np.ndarray:
    """Draw one cell for each entry of `first` and `last` by prior mass.

    Parameters
    ----------
    first, last : ndarray of int64, shape (draws, d)
        Inclusive ends of runs of cells with positive mass.
    floors : ndarray of int64, shape (d, 2)
        Floors of the lower and the upper side of each coordinate.
    bits : RandomBits

    Returns
    -------
    ndarray of int64, shape (draws, d)
    """
    words = bits.words(first.size).reshape(first.shape)
    cells = _decide(first, last, floors, words)
    for draw, j in np.argwhere(cells < 0):
        low_floor, high_floor = (int(floor) for floor in floors[j])
        stretches = _stretches(first[draw, j], last[draw, j], low_floor, high_floor)
        cells[draw, j] = _draw_exactly(stretches, low_floor, high_floor, int(words[draw, j]), bits)
    return cells


def draw_prior_cells(floors: np.ndarray, bits: RandomBits, draws: int) -> np.ndarray:
    """Draw cells of all of each coordinate's grid by prior mass, shape (draws, len(floors))."""
    first = np.zeros((draws, len(floors)), dtype=np.int64)
    return draw_cells(first, first + LAST_KEY, floors, bits)


def _draw_exactly(stretches, low_floor: int, high_floor: int, uniform: int, bits: RandomBits) -> int:
    """Go on with the 64 bits `uniform` of U in integers, with more bits until one cell is left."""
    a, b, c, d = (edge_integer(end) for end in stretches)
    below, total, length = b - a, b - a + d - c, WORD_BITS
    while True:
        # R lies in [least, most) / 2^length.
        least, most = uniform * total, (uniform + 1) * total
        split = below << length
        if most <= split:
            ends = ((a << length) + least, (a << length) + most - 1)
            left, right = (_cell_of(point >> length, low_floor) for point in ends)
            if left == right:
                return left
        elif least >= split:
            ends = ((c << length) + least - split, (c << length) + most - split - 1)
            left, right = (_cell_of(point >> length, high_floor) for point in ends)
            if left == right:
                return LAST_KEY - left
        uniform, length = uniform << WORD_BITS | int(bits.words(1)[0]), length + WORD_BITS


def _cell_of(point: int, floor: int) -> int:
    """Return the lower-side cell of a tail probability in units of 2^-1020: exponent and 40 bits of its significand."""
    length = point.bit_length()
    if length <= CELL_BITS:
        return floor
    exponent = length - 1 - EDGE_BITS
    leading = point >> (length - 1 - CELL_BITS)
    return max(((exponent + EXPONENT_BIAS) << CELL_BITS) + leading - (1 << CELL_BITS), floor)
