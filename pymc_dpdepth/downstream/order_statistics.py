r"""The rows in the middle, given the counts at the released points, and the mechanism's normaliser over them.

Given that N_i of n rows lie below t_i, the rows between two points are independent draws of the population restricted
to that cell. In the scale of the population's cdf they are uniform, so their order statistics are drawn one after the
other: the least of R uniforms on (u, F) is u + (F - u) (1 - exp(-E / R)), E standard exponential. Far from the middle
the mechanism's weights are negligible, so only the ranks of a *window* around it are drawn; the first of them is the
a-th of the m rows of its cell, at the share Beta(a, m + 1 - a) of the cell's width.
"""

from __future__ import annotations

import math

import numba
import numpy as np

__all__ = ["box_log_normalisers", "log_normalisers", "place_of_first", "uniform_order_statistics"]

SMALLEST = 1e-300  # sums are kept above, so that their logarithms are finite


@numba.njit(cache=True, nogil=True)
def _cell_of(rank, counts):
    """Return the number of points below the row of a rank."""
    cell = 0
    while cell < counts.size and counts[cell] < rank:
        cell += 1
    return cell


@numba.njit(cache=True, nogil=True)
def place_of_first(counts, n, first):
    """Return the parameters of the Beta law of the row of rank `first` in its cell.

    Parameters
    ----------
    counts : ndarray of int64, shape (P, M, k)
    n, first : int

    Returns
    -------
    ndarray of float64, shape (2, P, M)
    """
    populations, replicates, points = counts.shape
    places = np.empty((2, populations, replicates))
    for p in range(populations):
        for m in range(replicates):
            cell = _cell_of(first, counts[p, m])
            left = counts[p, m, cell - 1] if cell > 0 else 0
            right = counts[p, m, cell] if cell < points else n
            places[0, p, m] = first - left
            places[1, p, m] = right - first + 1
    return places


@numba.njit(cache=True, nogil=True)
def uniform_order_statistics(shares, counts, n, first, starts, exponentials):
    """Turn exponentials into the order statistics of ranks first, first + 1, ..., in place.

    Parameters
    ----------
    shares : ndarray of float64, shape (P, k)
        F at the points.
    counts : ndarray of int64, shape (P, M, k)
    n, first : int
    starts : ndarray of float64, shape (P, M)
        Draws of the law of `place_of_first`.
    exponentials : ndarray of float64, shape (P, M, W)
        Overwritten by cdf values, ascending along the last axis; the first exponential is not used.
    """
    populations, replicates, window = exponentials.shape
    points = counts.shape[2]
    for p in range(populations):
        for m in range(replicates):
            cell = _cell_of(first, counts[p, m])
            low = shares[p, cell - 1] if cell > 0 else 0.0
            high = shares[p, cell] if cell < points else 1.0
            place = low + (high - low) * starts[p, m]
            exponentials[p, m, 0] = place
            for i in range(1, window):
                rank = first + i
                if cell < points and rank > counts[p, m, cell]:
                    while cell < points and rank > counts[p, m, cell]:
                        cell += 1
                    place = shares[p, cell - 1]
                    high = shares[p, cell] if cell < points else 1.0
                left = (counts[p, m, cell] if cell < points else n) - rank + 1
                place += (high - place) * -math.expm1(-exponentials[p, m, i] / left)
                exponentials[p, m, i] = place


@numba.njit(cache=True, nogil=True)
def _mass(lower_left, upper_left, lower_right, upper_right):
    """Return the prior mass between two places from the accurate tails."""
    if lower_right < 0.5:
        return lower_right - lower_left
    if upper_left < 0.5:
        return upper_left - upper_right
    return max(1.0 - lower_left - upper_right, 0.0)


@numba.njit(cache=True, nogil=True)
def log_normalisers(lower, upper, weights):
    """Return log sum_i mass_i weight_i over the gaps between the rows of the window.

    Parameters
    ----------
    lower, upper : ndarray of float64, shape (P, M, W)
        The mechanism prior's tails at the rows.
    weights : ndarray of float64, shape (W + 1,)
        Of the gap below the first row, between the first two, ..., above the last.

    Returns
    -------
    ndarray of float64, shape (P, M)
    """
    populations, replicates, window = lower.shape
    logs = np.empty((populations, replicates))
    for p in range(populations):
        for m in range(replicates):
            low, high = lower[p, m], upper[p, m]
            total = low[0] * weights[0] + high[window - 1] * weights[window]
            for i in range(1, window):
                total += weights[i] * _mass(low[i - 1], high[i - 1], low[i], high[i])
            logs[p, m] = math.log(max(total, SMALLEST))
    return logs


@numba.njit(cache=True, nogil=True)
def box_log_normalisers(lower, upper, weights):
    """Return log sum_l weight_l prod_j mass_jl over the boxes between the l-th row from below and from above.

    Parameters
    ----------
    lower, upper : ndarray of float64, shape (d, P, M, W)
        The mechanism prior's tails at the rows; the window is symmetric about the middle.
    weights : ndarray of float64, shape (W // 2 + 1,)
        Of everything outside the window, and of its boxes from the outermost inwards.

    Returns
    -------
    ndarray of float64, shape (P, M)
    """
    d, populations, replicates, window = lower.shape
    logs = np.empty((populations, replicates))
    for p in range(populations):
        for m in range(replicates):
            total = weights[0]
            for i in range(window // 2):
                product = weights[i + 1]
                for j in range(d):
                    low, high = lower[j, p, m], upper[j, p, m]
                    product *= _mass(low[i], high[i], low[window - 1 - i], high[window - 1 - i])
                total += product
            logs[p, m] = math.log(max(total, SMALLEST))
    return logs
