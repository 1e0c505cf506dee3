"""Projections of rows, and numba kernels that aggregate a univariate depth over directions.

Two rules make a computed sensitivity the proved one (docs/sensitivity.md):

- A row's projection depends on that row alone. It is a sum in a fixed order, the same for rows and for points; a BLAS
  product would change its last bits with the number and the place of the other rows.
- The rows enter through comparisons of those projections only. Counts are integers; one division comes at the end.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from pymc_dpdepth.depths.univariate import TUKEY_CODE, univariate_count

__all__ = [
    "CLAMP",
    "check_counts_fit",
    "direction_count",
    "max_outlyingness_depth",
    "max_outlyingness_depths",
    "mean_depth",
    "mean_depths",
    "mean_smoothed_depth",
    "mean_smoothed_depths",
    "min_depth",
    "min_depths",
    "project",
    "project_clamped",
    "project_point_clamped",
    "smoothing_block",
    "smoothing_factors",
]

# Entries are clamped to +-CLAMP before they are multiplied by a direction, so that no sum overflows to inf or nan. It
# is a fixed public map of one entry, so it costs no privacy. d * CLAMP stays below the largest double, 2^1024, for
# every d.
CLAMP = 2.0**256

# Beyond |s (t - z)| = 40 the logistic is within e^-40 = 4e-18 of 0 or 1, which is less than half the spacing of doubles
# at 1 (2^-53 = 1.1e-16): F, a mean of such terms, is the same to double precision.
SATURATION = 40.0

# The span of s z inside one block of precomputed exponentials. Any span works that keeps exp in range (below 709); a
# longer one loses digits of the exponent, a shorter one costs more exponentials at each call.
BLOCK_SPAN = 64.0

# Rows are projected in blocks whose d columns stay in the processor's second-level cache.
PROJECTION_BLOCK = 512


def check_counts_fit(n: int, m: int, power: int) -> None:
    """Refuse sizes whose summed counts do not fit a 64-bit integer.

    Parameters
    ----------
    n : int
        Number of rows.
    m : int
        Number of directions.
    power : int
        A count is at most ``n**power``.
    """
    largest = np.iinfo(np.int64).max
    if n**power * m > largest:
        raise ValueError(
            f"Counts of this depth reach n^{power} * m = {n**power * m} with n = {n} rows and m = {m} directions, but "
            f"must not exceed {largest}. Use fewer directions."
        )


def project(rows: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Return the projections of rows on directions.

    Parameters
    ----------
    rows : ndarray of float64, shape (n, d)
    directions : ndarray of float64, shape (m, d)

    Returns
    -------
    ndarray of float64, shape (m, n)
        The sum over j of ``directions[k, j] * clamp(rows[i, j])``, added up from j = 0 to d - 1. A direction along an
        axis gives the coordinate itself, not clamped.
    """
    return _project(np.ascontiguousarray(rows.T), directions)


def project_clamped(rows: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Return `project`, with projections along axes clamped too, so that differences of projections do not overflow."""
    return np.clip(project(rows, directions), -CLAMP, CLAMP)


@numba.njit(cache=True, nogil=True)
def _clamp(x):
    return min(max(x, -CLAMP), CLAMP)


@numba.njit(cache=True, nogil=True)
def axis_of(direction):
    """Return the index of the only non-zero entry of a direction, or -1 where there are several."""
    axis = -1
    for j in range(direction.size):
        if direction[j] != 0.0:
            if axis >= 0:
                return -1
            axis = j
    return axis


@numba.njit(cache=True, nogil=True)
def _project(columns, directions):
    d, n = columns.shape
    m = directions.shape[0]
    projections = np.zeros((m, n))
    clamped = np.empty((d, PROJECTION_BLOCK))
    for start in range(0, n, PROJECTION_BLOCK):
        stop = min(start + PROJECTION_BLOCK, n)
        for j in range(d):
            for i in range(start, stop):
                clamped[j, i - start] = _clamp(columns[j, i])
        for k in range(m):
            axis = axis_of(directions[k])
            if axis >= 0:
                for i in range(start, stop):
                    projections[k, i] = directions[k, axis] * columns[axis, i]
            else:
                # The order of additions within one row is j = 0, ..., d-1; only different rows run side by side.
                for j in range(d):
                    weight = directions[k, j]
                    for i in range(start, stop):
                        projections[k, i] += weight * clamped[j, i - start]
    return projections


@numba.njit(cache=True, nogil=True)
def project_point(theta, direction):
    """Return the projection of a point, by the same additions as `project`: a point equal to a row ties with it."""
    axis = axis_of(direction)
    if axis >= 0:
        return direction[axis] * theta[axis]
    total = 0.0
    for j in range(direction.size):
        total += direction[j] * _clamp(theta[j])
    return total


@numba.njit(cache=True, nogil=True)
def project_point_clamped(theta, direction):
    """Return the projection of a point as `project_clamped` has that of a row; what uses the one uses the other."""
    return _clamp(project_point(theta, direction))


@numba.njit(cache=True, nogil=True)
def count_below(ordered, t, first, last):
    """Return the first index in [first, last) of an ascending array with ordered[index] >= t, or last."""
    while first < last:
        middle = (first + last) // 2
        if ordered[middle] < t:
            first = middle + 1
        else:
            last = middle
    return first


@numba.njit(cache=True, nogil=True)
def count_up_to(ordered, t, first, last):
    """Return the first index in [first, last) of an ascending array with ordered[index] > t, or last."""
    while first < last:
        middle = (first + last) // 2
        if ordered[middle] <= t:
            first = middle + 1
        else:
            last = middle
    return first


@numba.njit(cache=True, nogil=True)
def direction_count(theta, ordered, direction, code):
    """Return the univariate count of a point along one direction, from the ascending projections of the rows."""
    n = ordered.size
    t = project_point(theta, direction)
    below = count_below(ordered, t, 0, n)
    return univariate_count(code, count_up_to(ordered, t, below, n), n - below)


@numba.njit(cache=True, nogil=True)
def _unit(code, n):
    """Return the count that stands for depth 1: n for min(le, ge), n^2 for le * ge."""
    return univariate_count(code, n, n)


@numba.njit(cache=True, nogil=True)
def min_depth(theta, ordered, directions, code):
    """Return the smallest univariate depth over the directions.

    Parameters: the point (d,), the ascending projections (m, n), the directions (m, d), the univariate code (1,).
    """
    n = ordered.shape[1]
    if n == 0:
        return 0.0
    smallest = _unit(code[0], n)
    for k in range(directions.shape[0]):
        if code[0] == TUKEY_CODE and smallest < n:
            # min(le, ge) >= smallest where this many rows lie on both closed sides: two looks in place of two searches.
            t = project_point(theta, directions[k])
            if ordered[k, smallest - 1] <= t <= ordered[k, n - smallest]:
                continue
        smallest = min(smallest, direction_count(theta, ordered[k], directions[k], code[0]))
        if smallest == 0:
            break
    return smallest / _unit(code[0], n)


@numba.njit(cache=True, nogil=True)
def mean_depth(theta, ordered, directions, code):
    """Return the mean univariate depth over the directions; parameters as in `min_depth`."""
    m, n = ordered.shape
    if n == 0:
        return 0.0
    total = 0
    for k in range(m):
        total += direction_count(theta, ordered[k], directions[k], code[0])
    return total / (_unit(code[0], n) * m)


@numba.njit(cache=True, nogil=True)
def min_depths(points, ordered, directions, code):
    """Return `min_depth` of each row of points."""
    values = np.empty(points.shape[0])
    for i in range(points.shape[0]):
        values[i] = min_depth(points[i], ordered, directions, code)
    return values


@numba.njit(cache=True, nogil=True)
def mean_depths(points, ordered, directions, code):
    """Return `mean_depth` of each row of points."""
    values = np.empty(points.shape[0])
    for i in range(points.shape[0]):
        values[i] = mean_depth(points[i], ordered, directions, code)
    return values


def smoothing_block(smoothing: float) -> float:
    """Return the width of the blocks of `smoothing_factors`: the power of two with BLOCK_SPAN/2 < s h <= BLOCK_SPAN."""
    return 2.0 ** math.floor(math.log2(BLOCK_SPAN / smoothing))


@numba.njit(cache=True, nogil=True)
def block_anchor(z, width):
    """Return z rounded down to a multiple of the block width: a power of two, so that z - anchor is exact."""
    anchor = np.floor(z / width) * width
    return anchor - width if anchor > z else anchor  # z / width can underflow to -0 where z < 0


@numba.njit(cache=True, nogil=True)
def smoothing_factors(ordered, smoothing, width):
    """Return exp(s (z - anchor)) for every projection z (m, n): between 1 and e^BLOCK_SPAN, from its own row alone."""
    factors = np.empty(ordered.shape)
    for k in range(ordered.shape[0]):
        for i in range(ordered.shape[1]):
            z = ordered[k, i]
            factors[k, i] = math.exp(smoothing * (z - block_anchor(z, width)))
    return factors


@numba.njit(cache=True, nogil=True)
def _logistic_sums(t, ordered, factors, s, width):
    """Return the sums over the rows of p_i = sigma(s (t - z_i)) and of p_i (1 - p_i)."""
    n = ordered.size
    reach = SATURATION / s
    first = count_below(ordered, t - reach, 0, n)
    last = count_up_to(ordered, t + reach, first, n)
    # Every row adds a number in [0, 1] that depends on that row and t alone: 1 (saturated), p_i, or 0 (saturated). The
    # proof of the sensitivity asks no more of it.
    total, slope = float(first), 0.0
    start = first
    while start < last:
        anchor = block_anchor(ordered[start], width)
        stop = count_below(ordered, anchor + width, start, last)
        if stop == start:
            # Projections so far out that doubles are spaced wider than a block: a block is then a single number.
            stop = count_up_to(ordered, anchor, start, last)
        scale = math.exp(s * (anchor - t))
        for i in range(start, stop):
            odds = factors[i] * scale  # exp(s (z_i - t))
            p = 1.0 / (1.0 + odds)
            total += p
            slope += odds * p * p
        start = stop
    return total, slope


@numba.njit(cache=True, nogil=True)
def mean_smoothed_depth(theta, ordered, factors, directions, parameters):
    """Return the mean over directions of F (1 - F), F = mean_i sigma(s (theta - X_i).u), and its gradient in theta.

    Parameters: the point (d,), the ascending clamped projections (m, n), their `smoothing_factors` (m, n), the
    directions (m, d), and the array (s, block width).
    """
    m, n = ordered.shape
    d = theta.size
    gradient = np.zeros(d)
    if n == 0:
        return 0.0, gradient
    s, width = parameters[0], parameters[1]
    value = 0.0
    for k in range(m):
        t = project_point_clamped(theta, directions[k])
        total, slope = _logistic_sums(t, ordered[k], factors[k], s, width)
        share = total / n
        value += share * (1.0 - share)
        weight = (1.0 - 2.0 * share) * slope
        for j in range(d):
            gradient[j] += weight * directions[k, j]
    for j in range(d):
        gradient[j] *= s / n / m
    return value / m, gradient


@numba.njit(cache=True, nogil=True)
def mean_smoothed_depths(points, ordered, factors, directions, parameters):
    """Return `mean_smoothed_depth` of each row of points."""
    values = np.empty(points.shape[0])
    gradients = np.empty(points.shape)
    for i in range(points.shape[0]):
        values[i], gradients[i] = mean_smoothed_depth(points[i], ordered, factors, directions, parameters)
    return values, gradients


@numba.njit(cache=True, nogil=True)
def max_outlyingness_depth(theta, centers, scales, directions):
    """Return 1 / (1 + max over directions of |theta.u - center| / scale).

    Where a scale is 0 the outlyingness is 0 at the center and infinite elsewhere. An infinite center (no rows) gives 0.
    """
    largest = 0.0
    for k in range(directions.shape[0]):
        distance = abs(project_point_clamped(theta, directions[k]) - centers[k])
        if distance > 0.0:
            largest = max(largest, distance / scales[k] if scales[k] > 0.0 else np.inf)
    return 1.0 / (1.0 + largest)


@numba.njit(cache=True, nogil=True)
def max_outlyingness_depths(points, centers, scales, directions):
    """Return `max_outlyingness_depth` of each row of points."""
    values = np.empty(points.shape[0])
    for i in range(points.shape[0]):
        values[i] = max_outlyingness_depth(points[i], centers, scales, directions)
    return values
