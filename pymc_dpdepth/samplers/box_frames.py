"""Coordinates for branch and bound: cells of the grid, the points that they stand for, and boxes around them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pymc_dpdepth.grid import normal_keys, tail_edges
from pymc_dpdepth.normal_vector import NormalVector
from pymc_dpdepth.priors import ProductPrior

__all__ = ["NormalBoxFrame", "ProductBoxFrame"]

LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False)
class ProductBoxFrame:
    """Any product prior: the coordinates are those of the location.

    Attributes
    ----------
    prior : ProductPrior
    """

    prior: ProductPrior

    def floors(self) -> np.ndarray:
        """Return the grid's floors, shape (d, 2)."""
        return self.prior.floors()

    def keys(self, rows: np.ndarray) -> np.ndarray:
        """Return the cells of rows, shape (d, n)."""
        return self.prior.keys(rows)

    def locations(self, cells: np.ndarray) -> np.ndarray:
        """Return the locations of cells, shape (k, d)."""
        return self.prior.values(cells)

    def enclose(self, first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return low and high ends (k, d) of the locations in boxes of cells."""
        return self.prior.enclose(first, last)


@dataclass(frozen=True, eq=False)
class NormalBoxFrame:
    """A multivariate normal prior: location = mean + L z, with independent standard normal z.

    Attributes
    ----------
    prior : NormalVector
    """

    prior: NormalVector

    def floors(self) -> np.ndarray:
        """Return the grid's floors, shape (d, 2)."""
        return self.prior.floors()

    def keys(self, rows: np.ndarray) -> np.ndarray:
        """Return the cells of rows along z, shape (d, n)."""
        from scipy.linalg import solve_triangular

        with np.errstate(all="ignore"):
            z = solve_triangular(self.prior.factor, (rows - self.prior.mean).T, lower=True, check_finite=False)
        z = np.nan_to_num(z, nan=0.0)
        keys = np.empty(z.shape, dtype=np.int64)
        normal_keys(np.ascontiguousarray(z.T), np.zeros(len(z)), np.ones(len(z)), keys)
        return keys

    def locations(self, cells: np.ndarray) -> np.ndarray:
        """Return the locations of cells, shape (k, d)."""
        z = self._middles(cells)
        return self._from_z(z, z)

    def enclose(self, first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return low and high ends (k, d) of the locations in boxes of cells.

        The sum that makes a location rounds in a fixed order, which keeps order in every z.
        """
        low, high = self._middles(first), self._middles(last)
        return self._from_z(low, high), self._from_z(high, low)

    def _middles(self, cells: np.ndarray) -> np.ndarray:
        """Return z at the middles of cells."""
        from pymc_dpdepth.families import NormalFamily

        floors = self.floors()
        upper, near, far = tail_edges(cells, floors[:, 0], floors[:, 1])
        z = NormalFamily.standard_inverse(0.5 * (near + far))
        return np.where(upper, z, -z)

    def _from_z(self, rising: np.ndarray, falling: np.ndarray) -> np.ndarray:
        """Return mean + L z, with z from `rising` where the entry of L is positive and from `falling` elsewhere."""
        locations = np.empty(rising.shape)
        with np.errstate(over="ignore"):
            for i, row in enumerate(self.prior.factor):
                total = np.zeros(len(rising))
                for j in range(i + 1):
                    total = total + row[j] * (rising if row[j] >= 0 else falling)[:, j]
                locations[:, i] = self.prior.mean[i] + total
        return np.clip(locations, -LARGEST, LARGEST)
