"""Upper bounds of the smoothed integrated dual depth over boxes.

Over a box the projection t of a point on a direction lies between two numbers a and b, and F, a mean of logistics,
increases with t. So F (1 - F) is at most its value at whichever of F(a) and F(b) is nearer to 1/2, or 1/4 where they
are on both sides of it.

F takes a pass over the rows. It is kept at knots of a fixed spacing g around the median of the projections, each filled
when it is first asked for. Between knots F is bounded by the value at the next one, and by the chord plus an error:

    |sigma''| = |sigma (1 - sigma) (1 - 2 sigma)| <= 1 / (6 sqrt 3),   so   |F - chord| <= s^2 g^2 / (48 sqrt 3).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numba
import numpy as np

from pymc_dpdepth.depths.aggregate import CLAMP, _logistic_sums, project_point
from pymc_dpdepth.depths.box_bounds import BoxBound, _ends

if TYPE_CHECKING:
    from pymc_dpdepth.depths.directional import IntegratedDual

__all__ = ["SmoothedBoxBound"]

KNOTS = 2048  # for each direction
KNOTS_PER_WIDTH = 16  # in a length 1 / s: a chord is then off by less than 5e-5
CURVATURE = 1.0 / (48 * math.sqrt(3)) * (1 + 2.0**-40)
# Computed odds exp(s (z - a)) exp(s (a - t)) are wrong by less than 2^9 units u = 2^-53 of them: two arguments of at
# most 64 and 128 with one rounding or two each, two exponentials and a product. A term changes by a quarter of that at
# most, saturation by less than u, a sum over n rows by n u, and a mean over m directions by m u. A bound and the score
# it must not fall below are each this far off: twice that at most.
TERM_ROUNDING, UNIT = 2**9, 2.0**-53


class SmoothedBoxBound(BoxBound):
    """Bounds of the smoothed integrated dual depth, in terms of its value.

    Parameters
    ----------
    depth : IntegratedDual
        With a smoothing.
    rows : ndarray of float64, shape (n, d)
        In the units of the points.
    """

    def __init__(self, depth: IntegratedDual, rows: np.ndarray) -> None:
        self._ordered, self._factors, self._directions, self._parameters = depth.prepare(rows)
        m, n = self._ordered.shape
        # A power of two, so that places of knots are exact where they are not far out beyond all doubles of interest.
        self._gap = 2.0 ** math.floor(math.log2(1.0 / (KNOTS_PER_WIDTH * depth.smoothing)))
        middle = self._ordered[:, n // 2] if n else np.zeros(m)
        self._starts = np.floor(middle / self._gap) * self._gap - KNOTS // 2 * self._gap
        self._shares = np.full((m, KNOTS), np.nan)
        self._slack = (2 * n + 2 * m + 2 * TERM_ROUNDING) * UNIT
        self.sensitivity_count = None
        self.influence = np.abs(self._directions).mean(axis=0)

    def upper(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return upper bounds of the depth over boxes."""
        knots = self._starts, self._gap, self._shares
        tables = self._ordered, self._factors, self._directions, self._parameters
        return _upper_depths(low, high, *tables, *knots, self._slack)

    def score(self, points: np.ndarray, least: np.ndarray) -> np.ndarray:
        """Return the depths of points; of one that falls below `least`, a number between them."""
        tables = self._ordered, self._factors, self._directions, self._parameters
        return _depths(points, np.asarray(least, dtype=np.float64), *tables, self._slack)


@numba.njit(cache=True, nogil=True)
def _share(t, ordered, factors, parameters):
    """Return F(t)."""
    return _logistic_sums(t, ordered, factors, parameters[0], parameters[1])[0] / ordered.size


@numba.njit(cache=True, nogil=True)
def _share_at_knot(k, ordered, factors, parameters, start, gap, shares):
    if np.isnan(shares[k]):
        shares[k] = _share(start + k * gap, ordered, factors, parameters)
    return shares[k]


@numba.njit(cache=True, nogil=True)
def _share_towards(t, sign, ordered, factors, parameters, start, gap, shares):
    """Return a bound of F(t), to rounding: an upper one for sign 1, a lower one for sign -1."""
    place = (t - start) / gap
    if not 0.0 <= place < KNOTS - 1:
        return _share(t, ordered, factors, parameters)
    k = min(np.int64(place), KNOTS - 2)
    left, right = start + k * gap, start + (k + 1) * gap
    if not left <= t <= right or right - left != gap:
        return _share(t, ordered, factors, parameters)
    first = _share_at_knot(k, ordered, factors, parameters, start, gap, shares)
    second = _share_at_knot(k + 1, ordered, factors, parameters, start, gap, shares)
    chord = first + (second - first) * ((t - left) / gap)
    error = CURVATURE * (parameters[0] * gap) ** 2
    return min(chord + error, second) if sign > 0 else max(chord - error, first)


@numba.njit(cache=True, nogil=True)
def _upper_depths(low, high, ordered, factors, directions, parameters, starts, gap, shares, slack):
    count, (m, n) = low.shape[0], ordered.shape
    uppers = np.zeros(count)
    if n == 0:
        return uppers
    for i in range(count):
        for k in range(m):
            a, b = _ends(low[i], high[i], directions[k])
            a, b = max(min(a, CLAMP), -CLAMP), max(min(b, CLAMP), -CLAMP)
            knots = starts[k], gap, shares[k]
            share = _share_towards(b, 1.0, ordered[k], factors[k], parameters, *knots)
            if share > 1 / 2:
                share = _share_towards(a, -1.0, ordered[k], factors[k], parameters, *knots)
                share = max(share, 1 / 2)
            uppers[i] += share * (1.0 - share)
        uppers[i] = min(uppers[i] / m + slack, 1 / 4 + slack)
    return uppers


@numba.njit(cache=True, nogil=True)
def _depths(points, least, ordered, factors, directions, parameters, slack):
    """Return the values of `mean_smoothed_depth`, by its additions, as far as they can reach `least`."""
    m, n = ordered.shape
    values = np.zeros(points.shape[0])
    if n == 0:
        return values
    for i in range(values.size):
        value = 0.0
        for k in range(m):
            t = max(min(project_point(points[i], directions[k]), CLAMP), -CLAMP)
            share = _share(t, ordered[k], factors[k], parameters)
            value += share * (1.0 - share)
            most = (value + (m - 1 - k) / 4) / m + slack
            if most < least[i]:
                value = most * m
                break
        values[i] = value / m
    return values
