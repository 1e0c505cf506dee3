"""Numba kernels of the spatial depths: means of unit vectors from the rows to a point.

With differences v_i = x - X_i, norms r_i = |v_i| and unit vectors s_i = SR(v_i) = v_i / r_i, SR(0) = 0, let m = mean_i
s_i. Its derivative in x is J = mean_i (I - s_i s_i') / r_i, a symmetric matrix, where a row equal to x is left out: SR
has no derivative at 0 and takes 0 for it.

Loops run along blocks of rows, for one or two columns at a time, so that they vectorise without reordering any sum: a
block adds its terms to BLOCK / 2 partial sums side by side.
"""

from __future__ import annotations

import math

import numba
import numpy as np

__all__ = [
    "CLAMP",
    "modified_spatial_depth",
    "modified_spatial_depths",
    "modified_spatial_depths_and_gradients",
    "spatial_depth",
    "spatial_depths",
    "spatial_depths_and_gradients",
]

# Points and rows are clamped, so that differences do not overflow. A fixed map of one entry costs no privacy.
CLAMP = 2.0**1020
# A norm outside these may come from squares that lost digits to subnormal numbers, or overflowed: it is scaled first.
SMALLEST_NORM, LARGEST_NORM = 1e-140, 1e140
# 1 / r is cut short here, so that a gradient beside a row is not infinite.
LARGEST_INVERSE = 1e300
# Rows in a block: long enough that the start of a loop costs little, short enough that columns stay in a cache.
BLOCK = 512


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _unit_vector(theta, columns, i, unit):
    """Put SR(theta - X_i) into `unit`, by way of the largest component, and return 1 / |theta - X_i|; 0 at a row."""
    largest = 0.0
    for j in range(theta.size):
        unit[j] = theta[j] - columns[j, i]
        largest = max(largest, abs(unit[j]))
    if largest == 0.0:
        return 0.0
    total = 0.0
    for j in range(theta.size):
        unit[j] /= largest
        total += unit[j] * unit[j]
    length = math.sqrt(total)
    for j in range(theta.size):
        unit[j] /= length
    return min(1.0 / length / largest, LARGEST_INVERSE)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _inverse_norms(theta, columns, start, inverse):
    """Put 1 / |theta - X_i| of the rows from start on into `inverse`; return whether all norms are in range."""
    d = theta.size
    if d % 2:
        center, column = theta[0], columns[0, start : start + BLOCK]
        for k in range(inverse.size):
            inverse[k] = (center - column[k]) * (center - column[k])
    else:
        inverse[:] = 0.0
    for j in range(d % 2, d, 2):
        center, column = theta[j], columns[j, start : start + BLOCK]
        next_center, next_column = theta[j + 1], columns[j + 1, start : start + BLOCK]
        for k in range(inverse.size):
            x, y = center - column[k], next_center - next_column[k]
            inverse[k] += x * x + y * y
    outside = 0
    for k in range(inverse.size):
        inverse[k] = 1.0 / math.sqrt(inverse[k])
        outside += not 1.0 / LARGEST_NORM < inverse[k] < 1.0 / SMALLEST_NORM
    return outside == 0


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_weighted(theta, columns, start, weights, sums):
    """Add (theta_j - X_ij) * weights_i of the rows from start on to `sums` (d, BLOCK / 2), two rows to a place."""
    half, odd = weights.size // 2, weights.size % 2
    left_weights, right_weights = weights[:half], weights[half:]
    for j in range(theta.size):
        center, partial = theta[j], sums[j]
        left, right = columns[j, start : start + half], columns[j, start + half : start + BLOCK]
        for k in range(half):
            partial[k] += (center - left[k]) * left_weights[k] + (center - right[k]) * right_weights[k]
        if odd:
            partial[0] += (center - right[half]) * right_weights[half]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _mean_sign(theta, columns, inverse):
    """Return m, and put 1 / r_i into `inverse` (n,), 0 for rows whose norm is 0 or out of range."""
    d, n = columns.shape
    sums, mean, unit = np.zeros((d, BLOCK // 2)), np.zeros(d), np.empty(d)
    for start in range(0, n, BLOCK):
        block = inverse[start : start + BLOCK]
        if not _inverse_norms(theta, columns, start, block):
            for k in range(block.size):
                if not 1.0 / LARGEST_NORM < block[k] < 1.0 / SMALLEST_NORM:
                    block[k] = 0.0
                    if _unit_vector(theta, columns, start + k, unit) > 0.0:
                        mean += unit
        _add_weighted(theta, columns, start, block, sums)
    for j in range(d):
        mean[j] = (mean[j] + sums[j].sum()) / n
    return mean


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _pullback(theta, columns, inverse, mean):
    """Return J m = mean_i (m - s_i (s_i.m)) / r_i, with `inverse` as `_mean_sign` left it."""
    d, n = columns.shape
    sums, pulled, unit = np.zeros((d, BLOCK // 2)), np.zeros(d), np.empty(d)
    weights = np.empty(BLOCK)
    for start in range(0, n, BLOCK):
        block = inverse[start : start + BLOCK]
        along = weights[: block.size]
        along[:] = 0.0
        for j in range(d):
            center, column, factor = theta[j], columns[j, start : start + BLOCK], mean[j]
            for k in range(block.size):
                along[k] += factor * (center - column[k])
        for k in range(block.size):
            along[k] = ((along[k] * block[k]) * block[k]) * block[k]  # s_i.m / r_i^2, in range at each step
            if block[k] == 0.0:
                scale = _unit_vector(theta, columns, start + k, unit)
                pulled += (mean - unit * (unit * mean).sum()) * scale
        _add_weighted(theta, columns, start, along, sums)
    total = inverse.sum()
    for j in range(d):
        pulled[j] = (pulled[j] + mean[j] * total - sums[j].sum()) / n
    return pulled


@numba.njit(cache=True, nogil=True)
def _clamped(theta):
    return np.minimum(np.maximum(theta, -CLAMP), CLAMP)


@numba.njit(cache=True, nogil=True)
def _spatial_value(length):
    return max(1.0 - length, 0.0)


@numba.njit(cache=True, nogil=True)
def _modified_value(length):
    return max(1.0 - length * length, 0.0)


@numba.njit(cache=True, nogil=True)
def _length(mean):
    return math.sqrt((mean * mean).sum())


@numba.njit(cache=True, nogil=True)
def spatial_depth(theta, columns):
    """Return 1 - |m| and its gradient -J m / |m|, taken to be 0 where m = 0; 0 without rows.

    Parameters: the point (d,), the clamped rows as columns (d, n).
    """
    if columns.shape[1] == 0:
        return 0.0, np.zeros(theta.size)
    theta, inverse = _clamped(theta), np.empty(columns.shape[1])
    mean = _mean_sign(theta, columns, inverse)
    length = _length(mean)
    if length == 0.0:
        return 1.0, np.zeros(theta.size)
    return _spatial_value(length), _pullback(theta, columns, inverse, mean) / -length


@numba.njit(cache=True, nogil=True)
def modified_spatial_depth(theta, columns):
    """Return 1 - |m|^2 and its gradient -2 J m; 0 without rows. Parameters as in `spatial_depth`."""
    if columns.shape[1] == 0:
        return 0.0, np.zeros(theta.size)
    theta, inverse = _clamped(theta), np.empty(columns.shape[1])
    mean = _mean_sign(theta, columns, inverse)
    return _modified_value(_length(mean)), -2.0 * _pullback(theta, columns, inverse, mean)


@numba.njit(cache=True, nogil=True)
def _lengths(points, columns):
    """Return |m| of each row of points; there must be rows."""
    lengths, inverse = np.empty(points.shape[0]), np.empty(columns.shape[1])
    for i in range(points.shape[0]):
        lengths[i] = _length(_mean_sign(_clamped(points[i]), columns, inverse))
    return lengths


@numba.njit(cache=True, nogil=True)
def spatial_depths(points, columns):
    """Return the values of `spatial_depth` at each row of points, without gradients: half the work."""
    if columns.shape[1] == 0:
        return np.zeros(points.shape[0])
    values = _lengths(points, columns)
    for i in range(values.size):
        values[i] = _spatial_value(values[i])
    return values


@numba.njit(cache=True, nogil=True)
def modified_spatial_depths(points, columns):
    """Return the values of `modified_spatial_depth` at each row of points, without gradients."""
    if columns.shape[1] == 0:
        return np.zeros(points.shape[0])
    values = _lengths(points, columns)
    for i in range(values.size):
        values[i] = _modified_value(values[i])
    return values


@numba.njit(cache=True, nogil=True)
def spatial_depths_and_gradients(points, columns):
    """Return `spatial_depth` of each row of points, side by side in an array (k, 1 + d)."""
    joined = np.empty((points.shape[0], 1 + points.shape[1]))
    for i in range(points.shape[0]):
        joined[i, 0], joined[i, 1:] = spatial_depth(points[i], columns)
    return joined


@numba.njit(cache=True, nogil=True)
def modified_spatial_depths_and_gradients(points, columns):
    """Return `modified_spatial_depth` of each row of points, side by side in an array (k, 1 + d)."""
    joined = np.empty((points.shape[0], 1 + points.shape[1]))
    for i in range(points.shape[0]):
        joined[i, 0], joined[i, 1:] = modified_spatial_depth(points[i], columns)
    return joined
