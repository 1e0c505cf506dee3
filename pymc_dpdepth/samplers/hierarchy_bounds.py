r"""Upper bounds of the normalising constant of one group under N(mean, scale), over boxes of means and scales.

Given mean and scale, a group's location lives on the grid of N(mean, scale), and with K the largest count there can be

    Z(mean, scale) = sum over cells of mass(cell) * b^(K - count(cell)).

Bounded are the masses. In each coordinate the cells with at least l rows on either side are the run I_l from the key of
x_(l) to that of x_(n+1-l), and Z is a sum of their masses with weights >= 0 (`level_bounds`; `dual_bounds` adds the
cells of the rows). The mass of a run from a to b differs from P(a <= T <= b), T ~ N(mean, scale), by the rounding of
two tails to cells of 2^-40 of their size. P itself has its largest value over a box at

    the mean nearest to (a + b) / 2, and there, with distances 0 < lo < hi to the ends, at the scale nearest to
    sqrt((hi^2 - lo^2) / (2 ln(hi / lo))), where the derivative in the scale changes its sign; if the mean lies in
    [a, b], at the smallest scale.

Beyond 36.5 scales all rows share a cell, of a mass below 1e-290, which is added where it can play a part.
`docs/groups.md` has the proof; the tests attack it.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from pymc_dpdepth.grid import CELL_BITS, LARGEST_Z

__all__ = ["MARGIN", "dual_bounds", "level_bounds"]

#: Relative margin of a bound, far above the rounding of the normal tails and of the sums here.
MARGIN = 2.0**-30
# A key's tail is off by less than a cell, 2^-40 of it, and by rounding of the standardised row (at most z^2 2^-52 <
# 3e-13) and of the tail (1e-13, see grid.py): together less than 2^-39.
TAIL_ERROR = 2.0**-39
# A cell is at most 2^-40 t wide in the tail probability t, and t over the density at most sqrt(pi / 2) scales; near
# the mean 1e-12 scales share a cell by decree. Rows that lie farther apart than this have cells of their own.
CELL_WIDTH = 1e-11
SATURATED = LARGEST_Z - 0.1
SATURATED_MASS = 1e-290
SMALLEST = 1e-290
COMMON = 1e-6  # beside such a mass the error of the largest tails is small
BELOW_HALF = 0.5 - 2.0**-54
ROOT_HALF = math.sqrt(0.5)
LARGEST = np.finfo(np.float64).max
SUBNORMAL = 2.0**-1074  # the mean between two subnormal numbers is off by as much
# Keys multiply by 1 / scale, at most the largest double, so scales below its inverse act as that. Rounded down; a
# larger scale is safe where a mass grows with it.
LEAST_SCALE = 2.0**-1024 * (1.0 - 2.0**-40)


@numba.njit(inline="always")
def _tail(z):
    """P(N(0, 1) > z)."""
    return 0.5 * math.erfc(z * ROOT_HALF)


@numba.njit(cache=True, nogil=True)
def _best_scale(lo, hi):
    """Return the scale at which P(lo <= N(0, scale) <= hi) is largest, 0 < lo < hi <= inf."""
    excess = (hi - lo) / lo
    if excess <= 1.0:  # here the logs of the ends cancel
        return lo * math.sqrt((2.0 * excess + excess * excess) / (2.0 * math.log1p(excess)))
    if hi == np.inf:
        return np.inf
    ratio = lo / hi  # may vanish, as the square of hi / lo may overflow
    return hi * math.sqrt((1.0 - ratio * ratio) / (2.0 * (math.log(hi) - math.log(lo))))


@numba.njit(cache=True, nogil=True)
def _interval(a, b, mean_low, mean_high, scale_low, scale_high):
    """Return the largest P(a <= T <= b) over a box of means and scales, a <= b; 1 where that is in doubt."""
    if not ((a <= b) & (mean_low <= mean_high) & (scale_low <= scale_high)):  # nan, too
        return 1.0
    scale_low, scale_high = max(scale_low, LEAST_SCALE), max(scale_high, LEAST_SCALE * (1.0 + MARGIN))
    mean = min(max(0.5 * a + 0.5 * b, mean_low), mean_high)
    lo, hi = a - mean, b - mean  # what overflows to infinity does so in the keys as well
    if hi < 0.0:
        lo, hi = -hi, -lo
    if lo <= SMALLEST:  # the mean lies inside, or as good as that
        lo, hi = max(-lo, 0.0) + SUBNORMAL, hi + SUBNORMAL
        bound = 1.0 - _tail(lo / scale_low) - _tail(hi / scale_low)
    elif lo < hi:
        scale = max(min(_best_scale(lo, hi), scale_high), scale_low)
        bound = max(_tail(lo / scale) - _tail(hi / scale), 0.0)
    else:
        bound = 0.0
    return bound if bound <= 1.0 else 1.0


@numba.njit(cache=True, nogil=True)
def _largest_tail(low, high, mean_low, mean_high, scale_high):
    """Return the largest tail probability, at most 1/2, of points of [low, high] over a box; 1/2 where in doubt."""
    distance = 0.0
    if mean_low > high:
        distance = mean_low - high
    elif low > mean_high:
        distance = low - mean_high
    if not (distance > SMALLEST and scale_high >= 0.0):
        return 0.5
    tail = _tail(distance / max(scale_high, LEAST_SCALE * (1.0 + MARGIN)))
    return tail if tail <= 0.5 else 0.5  # noqa: PLR2004


@numba.njit(cache=True, nogil=True)
def _saturates(a, b, mean_low, mean_high, scale_low):
    """Whether a <= b may both lie 36.5 scales above the mean, or both below it."""
    return _lies_far(a - mean_low, scale_low) or _lies_far(mean_high - b, scale_low)


@numba.njit(inline="always")
def _lies_far(distance, scale_low):
    """Whether a row at most so far above the mean may lie 36.5 scales above it; true where it is in doubt."""
    return not distance <= min(SATURATED * scale_low, LARGEST)


@numba.njit(cache=True, nogil=True)
def _run_mass(a, b, mean_low, mean_high, scale_low, scale_high):
    """Return a bound, at most 1, of the mass of the cells from a row at a to a row at b, a <= b."""
    bound = _interval(a, b, mean_low, mean_high, scale_low, scale_high)
    if bound > COMMON:
        bound += TAIL_ERROR  # two tails, at most 1/2 each
    else:
        for x in (a, b):
            bound += TAIL_ERROR * _largest_tail(x, x, mean_low, mean_high, scale_high)
    if _saturates(a, b, mean_low, mean_high, scale_low):
        bound += SATURATED_MASS
    return bound if bound <= 1.0 else 1.0


@numba.njit(cache=True, nogil=True)
def _cell_mass(low, high, mean_low, mean_high, scale_high):
    """Return a bound of the mass of one cell that holds points of [low, high]: 2^-40 of its tail's binade."""
    tail = _largest_tail(low, high, mean_low, mean_high, scale_high) * (1.0 + MARGIN) + SATURATED_MASS
    _, exponent = math.frexp(min(tail, BELOW_HALF))
    return math.ldexp(1.0, exponent - 1 - CELL_BITS)


@numba.njit(cache=True, nogil=True)
def _add(total, term):
    """Return log(e^total + e^term)."""
    if term <= -np.inf:
        return total
    if term > total:
        total, term = term, total
    return total + math.log1p(math.exp(term - total))


@numba.njit(cache=True, nogil=True)
def level_bounds(rows, levels, log_weights, mean_low, mean_high, scale_low, scale_high):
    """Return bounds of log Z for halfspace depth over the axes.

    Parameters
    ----------
    rows : ndarray, shape (d, n), ascending along the last axis, n >= 1
    levels : ndarray of int64, shape (m,), ascending
        The first is 0; level l adds its weight on the box of the d runs I_l. Above (n + 1) // 2 they are values that
        many rows share.
    log_weights : ndarray, shape (m,)
        Several levels may be joined into the lowest of them, whose box holds the others.
    mean_low, mean_high, scale_low, scale_high : ndarray, shape (k, d)

    Returns
    -------
    ndarray, shape (k,)
    """
    d, n = rows.shape
    half = (n + 1) // 2
    bounds = np.empty(len(mean_low))
    for i in range(len(mean_low)):
        total = log_weights[0]
        for place in range(1, levels.size):
            level = levels[place]
            mass = 1.0
            for j in range(d):
                box = (mean_low[i, j], mean_high[i, j], scale_low[i, j], scale_high[i, j])
                a, b = rows[j, level - 1], rows[j, n - level]
                if level <= half:
                    mass *= _run_mass(a, b, *box)
                    continue
                mass *= _cell_mass(b, a, box[0], box[1], box[3])  # a = b: a value of many rows
            if mass > 0.0:
                total = _add(total, log_weights[place] + math.log(mass))
        bounds[i] = total
    return bounds


@numba.njit(cache=True, nogil=True)
def dual_bounds(rows, levels, log_weights, unit, largest, mean_low, mean_high, scale_low, scale_high):
    """Return bounds of log Z for the dual depth of one coordinate, counts le * ge.

    A cell without a row has the count l (n - l), l the fewer rows on a side; the runs' weights add up to that. The
    cells of the rows are added with their full counts.

    Parameters
    ----------
    rows : ndarray, shape (n,), ascending, n >= 1
    levels : ndarray of int64, shape (m,), ascending, the first 0 and the last at most (n + 1) // 2
    log_weights : ndarray, shape (m,)
    unit : float
        Worth of one count.
    largest : int
        Where counts are cut off.
    mean_low, mean_high, scale_low, scale_high : ndarray, shape (k,)
    """
    n = rows.size
    bounds = np.empty(mean_low.size)
    for i in range(mean_low.size):
        box = (mean_low[i], mean_high[i], scale_low[i], scale_high[i])
        if not ((box[0] <= box[1]) & (box[2] <= box[3])):  # nan, too: no bound but that of all masses together
            bounds[i] = 0.0
            continue
        total = log_weights[0]
        for place in range(1, levels.size):
            mass = _run_mass(rows[levels[place] - 1], rows[n - levels[place]], *box)
            if mass > 0.0:
                total = _add(total, log_weights[place] + math.log(mass))
        width = CELL_WIDTH * box[3]
        le, below = 0, 0
        for row in range(n):
            if row > 0 and rows[row] == rows[row - 1]:
                continue
            while le < n and rows[le] - rows[row] <= width:
                le += 1
            while rows[row] - rows[below] > width:
                below += 1
            count = min(float(le) * (n - below), float(largest))
            mass = _cell_mass(rows[row] - width, rows[row] + width, box[0], box[1], box[3])
            total = _add(total, -unit * (largest - count) + math.log(mass))
        above = under = 0
        for row in range(n):
            above += _lies_far(rows[row] - box[0], box[2])
            under += _lies_far(box[1] - rows[row], box[2])
        for saturated in (above, under):
            if saturated > 0:
                count = min(float(n) * saturated, float(largest))
                total = _add(total, -unit * (largest - count) + math.log(SATURATED_MASS))
        bounds[i] = total
    return bounds
