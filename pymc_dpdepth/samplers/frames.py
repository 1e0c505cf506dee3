"""Frames: coordinates in which the prior is a product and every direction of the depth is one coordinate.

Segments, boxes and products work one direction at a time, so they need such a frame. There are two:

- directions along axes, with any product prior;
- orthonormal directions, with independent normal priors: standardised by median and interquartile range they are
  isotropic, so every rotation of them is a product of the same normals.

Directions that leave part of the space free (fewer than d) are completed; the free coordinates are drawn from the
prior.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pymc_dpdepth.mechanism import Mechanism
from pymc_dpdepth.priors import ProductPrior

__all__ = ["AxisFrame", "NoFrameError", "RotatedFrame", "find_frame"]

# Entries of u_j . u_k - [j = k] for directions that were orthonormalised in doubles.
ORTHONORMAL_TOLERANCE = 1e-12
LARGEST = np.finfo(np.float64).max


class NoFrameError(ValueError):
    """Prior and directions have no common frame; the message is the reason."""


@dataclass(frozen=True, eq=False)
class AxisFrame:
    """Directions along distinct axes.

    Attributes
    ----------
    prior : ProductPrior
    active : ndarray of int
        Coordinate of each direction.
    """

    prior: ProductPrior
    active: np.ndarray

    def floors(self) -> np.ndarray:
        """Return the grid's floors, shape (d, 2)."""
        return self.prior.floors()

    def keys(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows' keys along each direction, shape (M, n)."""
        keys = self.prior.keys(rows)
        return keys if np.array_equal(self.active, np.arange(len(keys))) else keys[self.active]

    def locations(self, keys: np.ndarray) -> np.ndarray:
        """Return the locations of cells, shape (k, d)."""
        return self.prior.values(keys)


@dataclass(frozen=True, eq=False)
class RotatedFrame:
    """Orthonormal directions under independent normal priors.

    With z = (theta - median) / IQR, standard normal up to one factor, y = Q z has independent coordinates of the same
    law.

    Attributes
    ----------
    prior : ProductPrior
        Normal.
    rotation : ndarray, shape (d, d)
        Orthonormal rows, the directions first.
    active : ndarray of int
        0, ..., M - 1.
    """

    prior: ProductPrior
    rotation: np.ndarray
    active: np.ndarray

    def floors(self) -> np.ndarray:
        """Return the grid's floors, shape (d, 2)."""
        return self.prior.floors()

    def keys(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows' keys along each direction, shape (M, n)."""
        from pymc_dpdepth.depths.aggregate import project
        from pymc_dpdepth.grid import normal_keys

        center, scale = self.prior.center_and_scale()
        with np.errstate(all="ignore"):  # a warning of an overflow would tell of a far row
            projected = project((rows - center) / scale, self.rotation[self.active])
        keys = np.empty(projected.shape, dtype=np.int64)
        normal_keys(projected.T, np.zeros(len(keys)), np.full(len(keys), self._standard_deviation()), keys)
        return keys

    def locations(self, keys: np.ndarray) -> np.ndarray:
        """Return the locations of cells, shape (k, d): theta = median + IQR * Q^T y at the cells' middles.

        What overflows, under a prior near the largest double, is that double with its sign: a location is finite.
        """
        from pymc_dpdepth.families import NormalFamily
        from pymc_dpdepth.grid import tail_edges

        floors = self.floors()
        upper, near, far = tail_edges(keys, floors[:, 0], floors[:, 1])
        z = NormalFamily.standard_inverse(0.5 * (near + far)) * self._standard_deviation()
        center, scale = self.prior.center_and_scale()
        # A fixed order of additions: the location is a function of the cells alone, whatever other draws are made with
        # it.
        rotated = np.zeros(keys.shape)
        for y, direction in zip(np.where(upper, z, -z).T, self.rotation, strict=True):
            rotated += y[:, None] * direction
        with np.errstate(over="ignore"):
            return np.clip(center + scale * rotated, -LARGEST, LARGEST)

    @staticmethod
    def _standard_deviation() -> float:
        """Return the standard deviation of a normal variable whose interquartile range is 1."""
        from scipy.special import ndtri

        return float(0.5 / ndtri(0.75))


def find_frame(settings: Mechanism, prior: ProductPrior) -> AxisFrame | RotatedFrame:
    """Return the frame of a mechanism over directions.

    Raises
    ------
    NoFrameError
        With the reason.
    """
    directions = settings.depth.directions.matrix()
    along = np.count_nonzero(directions, axis=1) == 1
    if along.all():
        axes = np.argmax(directions != 0.0, axis=1)
        if len(set(axes.tolist())) == len(axes):
            return AxisFrame(prior, axes)
        raise NoFrameError("two directions lie along the same axis")
    if len(directions) > settings.d:
        raise NoFrameError(f"{len(directions)} directions in {settings.d} dimensions are not orthonormal")
    if np.abs(directions @ directions.T - np.eye(len(directions))).max() > ORTHONORMAL_TOLERANCE:
        raise NoFrameError("the directions are not orthonormal")
    if not prior.is_normal:
        raise NoFrameError(
            "orthonormal directions off the axes need independent normal priors, which stay a product when they are "
            "rotated"
        )
    if not _standardized_by(settings, prior):
        raise NoFrameError(
            "orthonormal directions off the axes need rows standardised by the prior (standardize='prior')"
        )
    return RotatedFrame(prior, _completed(directions), np.arange(len(directions)))


def _standardized_by(settings: Mechanism, prior: ProductPrior) -> bool:
    center, scale = prior.center_and_scale()
    return np.array_equal(settings.center, center) and np.array_equal(settings.scale, scale)


def _completed(directions: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis whose first rows are the directions, bit for bit."""
    count, d = directions.shape
    if count == d:
        return directions
    rest = np.linalg.svd(directions)[2][count:]
    return np.vstack([directions, rest])
