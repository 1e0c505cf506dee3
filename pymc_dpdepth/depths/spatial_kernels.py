"""Numba kernels of the spatial depths: means of unit vectors from the rows to a point.

With differences v_i = x - X_i, norms r_i = |v_i| and unit vectors SR(v_i) = v_i / r_i, SR(0) = 0, let m = mean_i
SR(v_i). Its derivative in x is J = mean_i (I - SR(v_i) SR(v_i)') / r_i, a symmetric matrix, where a row equal to x is
left out: SR has no derivative at 0 and takes 0 for it.
"""

from __future__ import annotations

import math

import numba
import numpy as np

__all__ = ["CLAMP", "modified_spatial_depth", "modified_spatial_depths", "spatial_depth", "spatial_depths"]

# Points and rows are clamped, so that differences do not overflow. A fixed map of one entry costs no privacy.
CLAMP = 2.0**1020
# Sums of squares between these neither lost digits to subnormal numbers nor overflowed; others are scaled first.
SMALLEST_SQUARE, LARGEST_SQUARE = 1e-280, 1e280
LANES = 8  # partial sums, so that additions of a loop do not wait for each other


@numba.njit(cache=True, nogil=True)
def _scaled_norm(theta, columns, i):
    """Return |theta - X_i| by way of the largest component, which keeps the squares in range."""
    largest = 0.0
    for j in range(theta.size):
        largest = max(largest, abs(theta[j] - columns[j, i]))
    if largest == 0.0:
        return 0.0
    total = 0.0
    for j in range(theta.size):
        part = (theta[j] - columns[j, i]) / largest
        total += part * part
    return largest * math.sqrt(total)


@numba.njit(cache=True, nogil=True)
def inverse_norms(theta, columns):
    """Return 1 / |theta - X_i| for the rows X_i, columns[:, i]; 0 for a row equal to theta."""
    d, n = columns.shape
    inverse = np.zeros(n)
    for j in range(d):
        center, column = theta[j], columns[j]
        for i in range(n):
            difference = center - column[i]
            inverse[i] += difference * difference
    for i in range(n):
        square = inverse[i]
        if SMALLEST_SQUARE < square < LARGEST_SQUARE:
            inverse[i] = 1.0 / math.sqrt(square)
        else:
            norm = _scaled_norm(theta, columns, i)
            inverse[i] = 1.0 / norm if norm > 0.0 else 0.0
    return inverse


@numba.njit(cache=True, nogil=True)
def _weighted_sum(center, column, inverse, weights):
    """Return sum_i SR_i * weights[i] with SR_i = (center - column[i]) * inverse[i], in LANES partial sums."""
    n = column.size
    sums = np.zeros(LANES)
    whole = n - n % LANES
    for start in range(0, whole, LANES):
        for lane in range(LANES):
            i = start + lane
            sums[lane] += ((center - column[i]) * inverse[i]) * weights[i]
    for i in range(whole, n):
        sums[i - whole] += ((center - column[i]) * inverse[i]) * weights[i]
    return sums.sum()


@numba.njit(cache=True, nogil=True)
def mean_sign_and_pullback(theta, columns):
    """Return m, the mean of SR(theta - X_i), and J m."""
    d, n = columns.shape
    mean, pulled = np.zeros(d), np.zeros(d)
    theta = np.minimum(np.maximum(theta, -CLAMP), CLAMP)
    inverse, ones = inverse_norms(theta, columns), np.ones(n)
    for j in range(d):
        mean[j] = _weighted_sum(theta[j], columns[j], inverse, ones) / n
    # J m = m * mean_i 1/r_i - mean_i SR(v_i) (SR(v_i).m) / r_i
    along = np.zeros(n)
    for j in range(d):
        center, column, factor = theta[j], columns[j], mean[j]
        for i in range(n):
            along[i] += factor * ((center - column[i]) * inverse[i])
    curvature = inverse.sum() / n
    for i in range(n):
        along[i] *= inverse[i]
    for j in range(d):
        pulled[j] = mean[j] * curvature - _weighted_sum(theta[j], columns[j], inverse, along) / n
    return mean, pulled


@numba.njit(cache=True, nogil=True)
def spatial_depth(theta, columns):
    """Return 1 - |m| and its gradient -J m / |m|, taken to be 0 where m = 0; 0 without rows.

    Parameters: the point (d,), the rows as columns (d, n).
    """
    if columns.shape[1] == 0:
        return 0.0, np.zeros(theta.size)
    mean, pulled = mean_sign_and_pullback(theta, columns)
    length = math.sqrt((mean * mean).sum())
    if length == 0.0:
        return 1.0, np.zeros(theta.size)
    return max(1.0 - length, 0.0), -pulled / length


@numba.njit(cache=True, nogil=True)
def modified_spatial_depth(theta, columns):
    """Return 1 - |m|^2 and its gradient -2 J m; 0 without rows. Parameters as in `spatial_depth`."""
    if columns.shape[1] == 0:
        return 0.0, np.zeros(theta.size)
    mean, pulled = mean_sign_and_pullback(theta, columns)
    return max(1.0 - (mean * mean).sum(), 0.0), -2.0 * pulled


@numba.njit(cache=True, nogil=True, parallel=True)
def spatial_depths(points, columns):
    """Return `spatial_depth` of each row of points, on all cores."""
    values = np.empty(points.shape[0])
    gradients = np.empty(points.shape)
    for i in numba.prange(points.shape[0]):
        values[i], gradients[i] = spatial_depth(points[i], columns)
    return values, gradients


@numba.njit(cache=True, nogil=True, parallel=True)
def modified_spatial_depths(points, columns):
    """Return `modified_spatial_depth` of each row of points, on all cores."""
    values = np.empty(points.shape[0])
    gradients = np.empty(points.shape)
    for i in numba.prange(points.shape[0]):
        values[i], gradients[i] = modified_spatial_depth(points[i], columns)
    return values, gradients
