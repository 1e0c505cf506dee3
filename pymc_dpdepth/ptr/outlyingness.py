"""Projection outlyingness of one table, capped by a public constant: its values, breakdown, and bounds over boxes.

Rows and points are in public units in which the ball that the median is sought in is the unit ball around 0.
"""

from __future__ import annotations

import numba
import numpy as np

from pymc_dpdepth.depths.aggregate import project_clamped, project_point_clamped
from pymc_dpdepth.depths.box_bounds import BoxBound
from pymc_dpdepth.ptr.stable import Diameter
from pymc_dpdepth.ptr.windows import IQR, MAD, ball_diameter, direction_windows, point_diameter

__all__ = ["NO_CAP", "OutlyingnessBound", "OutlyingnessTable", "capped_outlyingness"]

SCALES = {"mad": MAD, "iqr": IQR}
#: Stands for no cap: finite, so that a law is proper where a scale is 0, and far above any outlyingness of use.
NO_CAP = 2.0**20
DIRECTIONS_AT_ONCE = 64  # projections are sorted in blocks, so that one copy of them is in memory


class OutlyingnessTable:
    """Sorted projections of a table on public directions. Everything it returns is a function of the private rows.

    Parameters
    ----------
    rows : ndarray of float64, shape (n, d), n >= 1
    directions : ndarray of float64, shape (m, d)
    scale : {"mad", "iqr"}
    cap : float
        Finite; O is replaced by min(O, cap).
    """

    def __init__(self, rows: np.ndarray, directions: np.ndarray, scale: str, cap: float) -> None:
        self.directions, self.cap, self._scale = directions, cap, SCALES[scale]
        self._ordered = np.empty((len(directions), len(rows)))
        for start in range(0, len(directions), DIRECTIONS_AT_ONCE):
            block = slice(start, start + DIRECTIONS_AT_ONCE)
            projections = project_clamped(rows, directions[block])
            projections.sort(axis=1)
            self._ordered[block] = projections

    def centers_and_scales(self) -> tuple[np.ndarray, np.ndarray]:
        """Return median and scale along each direction, each of shape (m,)."""
        windows = self.windows(0)
        return windows[:, 0].copy(), windows[:, 2].copy()

    def windows(self, k: int) -> np.ndarray:
        """Return the windows of median and scale for k replaced rows, shape (m, 4)."""
        return direction_windows(self._ordered, k, self._scale)

    def diameters(self, points: np.ndarray | None) -> Diameter:
        """Return the function k -> U_k: over the unit ball, or over points of shape (p, d)."""
        if points is None:
            return lambda k: ball_diameter(self.windows(k), self.cap)
        targets = self.targets(points)
        return lambda k: point_diameter(self.windows(k), targets, self.cap)

    def targets(self, points: np.ndarray) -> np.ndarray:
        """Return the projections (p, m) of points, those that `values` uses: what is tested is what is released."""
        return _targets(points, self.directions)

    def values(self, points: np.ndarray) -> np.ndarray:
        """Return min(O, cap) at points (p, d)."""
        return capped_outlyingness(points, *self.centers_and_scales(), self.directions, self.cap)


@numba.njit(cache=True, nogil=True)
def _targets(points, directions):
    targets = np.empty((points.shape[0], directions.shape[0]))
    for i in range(points.shape[0]):
        for u in range(directions.shape[0]):
            targets[i, u] = project_point_clamped(points[i], directions[u])
    return targets


@numba.njit(cache=True, nogil=True)
def _distance_in_scales(distance, scale):
    """Return distance / scale; 0 / 0 is 0, and a positive distance over no scale is infinite."""
    if distance <= 0.0:
        return 0.0
    if scale <= 0.0:
        return np.inf
    return distance / scale


@numba.njit(cache=True, nogil=True)
def capped_outlyingness(points, centers, scales, directions, cap):
    """Return min(cap, max_u |x.u - center_u| / scale_u) of each point.

    Parameters
    ----------
    points : ndarray, shape (p, d)
    centers, scales : ndarray, shape (m,)
    directions : ndarray, shape (m, d)
    cap : float
    """
    values = np.empty(points.shape[0])
    for i in range(points.shape[0]):
        largest = 0.0
        for u in range(directions.shape[0]):
            distance = abs(project_point_clamped(points[i], directions[u]) - centers[u])
            largest = max(largest, _distance_in_scales(distance, scales[u]))
            if largest >= cap:
                largest = cap
                break
        values[i] = largest
    return values


@numba.njit(cache=True, nogil=True)
def _least_outlyingness(low, high, centers, scales, directions, cap):
    """Return lower bounds over boxes: at least the distance from the center to the projections of a box.

    A point's projection, as it is computed, is monotone in each coordinate, so it lies between those of two corners.
    """
    values, d = np.empty(low.shape[0]), low.shape[1]
    near, far = np.empty(d), np.empty(d)
    for i in range(low.shape[0]):
        largest = 0.0
        for u in range(directions.shape[0]):
            for j in range(d):
                rising = directions[u, j] >= 0.0
                near[j] = low[i, j] if rising else high[i, j]
                far[j] = high[i, j] if rising else low[i, j]
            left = project_point_clamped(near, directions[u]) - centers[u]
            right = centers[u] - project_point_clamped(far, directions[u])
            largest = max(largest, _distance_in_scales(max(left, right), scales[u]))
            if largest >= cap:
                largest = cap
                break
        values[i] = largest
    return values


def _squared_norms(points: np.ndarray) -> np.ndarray:
    """Return |x|^2, added up in one order, so that it is monotone in each |x_j| as computed."""
    total = np.zeros(len(points))
    for column in points.T:
        total = total + column * column
    return total


class OutlyingnessBound(BoxBound):
    """The score -min(O, cap) in the unit ball, -infinity outside, and its bounds over boxes.

    Parameters
    ----------
    table : OutlyingnessTable
    """

    def __init__(self, table: OutlyingnessTable) -> None:
        self._law = *table.centers_and_scales(), table.directions, table.cap
        self._outside = -4.0 * table.cap  # a bound must be finite; far below, such boxes are hardly ever chosen
        self.sensitivity_count = None
        self.influence = np.abs(table.directions).mean(axis=0)

    def upper(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return upper bounds of the score over boxes."""
        nearest = np.maximum(np.maximum(low, -high), 0.0)
        inside = _squared_norms(nearest) <= 1.0
        bounds = np.full(len(low), self._outside)
        bounds[inside] = -_least_outlyingness(low[inside], high[inside], *self._law)
        return bounds

    def score(self, points: np.ndarray, least: np.ndarray) -> np.ndarray:
        """Return the scores of points."""
        return np.where(_squared_norms(points) <= 1.0, -capped_outlyingness(points, *self._law), -np.inf)
