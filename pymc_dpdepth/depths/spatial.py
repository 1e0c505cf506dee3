"""Spatial depths: how well the unit vectors from the rows to a point cancel."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from pymc_dpdepth.depths.base import Depth, as_points_and_rows, check_size

if TYPE_CHECKING:
    from pymc_dpdepth.depths.spatial_bounds import SpatialBoxBound

__all__ = ["ModifiedSpatial", "Spatial"]

_ENTRIES_PER_VISIT = 8  # entries of a table that take as long as a visit of `on_all_cores`


def _on_all_cores(kernel: Any, points: np.ndarray, columns: np.ndarray) -> np.ndarray:
    from pymc_dpdepth.depths.threads import on_all_cores

    return on_all_cores(kernel, points, (columns,), visits=columns.size // _ENTRIES_PER_VISIT)


def _values_and_gradients(kernel: Any, points: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    joined = _on_all_cores(kernel, points, columns)
    return joined[:, 0].copy(), joined[:, 1:].copy()


class _SpatialDepth(Depth):
    """What the two spatial depths share."""

    @property
    def differentiable(self) -> bool:
        """True: there is a gradient except at the rows."""
        return True

    def resolve(self, d: int) -> Self:
        """Return the depth itself: nothing depends on the dimension.

        Parameters
        ----------
        d : int
            Number of columns, at least 1.
        """
        check_size(0, d)
        return self

    def prepare(self, rows: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the rows as columns (d, n), clamped to +-2^1020.

        Parameters
        ----------
        rows : ndarray of float64, shape (n, d)
        """
        from pymc_dpdepth.depths.spatial_kernels import CLAMP

        columns = np.array(rows.T, order="C")
        return (np.clip(columns, -CLAMP, CLAMP, out=columns),)

    def evaluate(self, points: Any, X: Any) -> np.ndarray:
        """Return the depth of points in a table, without gradients, in half the time; see `Depth.evaluate`.

        Parameters
        ----------
        points : array_like, shape (k, d)
            One point in each row.
        X : array_like, shape (n, d)
            The rows; n = 0 gives depth 0 everywhere.
        """
        points, rows = as_points_and_rows(points, X)
        return _on_all_cores(self._values_kernel(), points, *self.prepare(rows))

    def box_bound(self, rows: np.ndarray) -> SpatialBoxBound:
        """Return upper bounds over boxes; see `Depth.box_bound`."""
        from pymc_dpdepth.depths.spatial_bounds import SpatialBoxBound

        return SpatialBoxBound(self, rows)

    @abc.abstractmethod
    def _values_kernel(self) -> Any:
        """Return the compiled function of many points that leaves out the gradients."""

    def median(self, X: Any) -> np.ndarray:
        """Return the spatial median, the point with the least sum of distances to the rows. Not private.

        Off the rows it is a deepest point of both spatial depths: unit vectors cancel there. Where it is a row, they
        need not cancel, and points beside it may be deeper, as in the second example. Where it is not unique, since all
        rows lie on a line and their number is even, it is the middle of the two middle rows. Distances are taken in the
        units of X, while a mechanism standardises by the prior: the median of the standardised rows is another point.

        Parameters
        ----------
        X : array_like, shape (n, d)
            The rows, n >= 1.

        Returns
        -------
        ndarray of float64, shape (d,)

        Raises
        ------
        ValueError
            If there are no rows, the shape is wrong or an entry is not finite.
        TypeError
            If the array is not numeric.

        Examples
        --------
        >>> from pymc_dpdepth.depths import Spatial
        >>> Spatial().median([[0, 0], [4, 0], [5, 3], [0, 2]]).round(4).tolist()
        [1.8182, 1.0909]

        Two unit vectors from a row that are not opposite do not cancel, but their sum is short enough for a median.

        >>> rows = [[0, 0], [1, 0], [-3, 4]]
        >>> Spatial().median(rows).tolist(), Spatial().evaluate([[0, 0], [0.0045, 0.0089]], rows).round(3).tolist()
        ([0.0, 0.0], [0.702, 0.962])
        """
        from pymc_dpdepth.depths.medians import as_sample, spatial_median

        return spatial_median(as_sample(X))

    def upper_bound(self, n: int, d: int) -> float:
        """Return the supremum of the depth over all points and tables: 1, at the middle of a symmetric table."""
        n, _ = check_size(n, d)
        return 1.0 if n else 0.0

    def describe(self) -> dict[str, Any]:
        """Return a public record of the depth that JSON can hold."""
        return {"name": self.name, "smoothing": None, "directions": None}


@dataclass(frozen=True)
class Spatial(_SpatialDepth):
    """Spatial depth.

    D(x; X) = 1 - |mean_i SR(x - X_i)|, with SR(y) = y / |y| and SR(0) = 0; the divisor of the mean is n, rows equal to
    x included. It is 1 where the unit vectors cancel, as they do at a spatial median that is no row, and tends to 0 far
    outside. Entries of points and rows beyond +-2^1020, some 1.1e307, count as that: a fixed map, which keeps
    differences in the range of doubles.

    The global sensitivity is 2/n when one of n rows is replaced, and 1 for one row. The gradient exists except at the
    rows and where the unit vectors cancel; there the terms without one count as 0. Norms depend on units, so a
    mechanism standardises rows and location by the prior first.

    References
    ----------
    .. [1] Y. Vardi and C.-H. Zhang, The multivariate L1-median and associated data depth, PNAS 97 (2000) 1423-1426,
           doi:10.1073/pnas.97.4.1423.
    .. [2] R. Serfling, A depth function and a scale curve based on spatial quantiles, in Statistical Data Analysis
           Based on the L1-Norm and Related Methods (2002) 25-38, doi:10.1007/978-3-0348-8201-9_3.

    Examples
    --------
    >>> from pymc_dpdepth.depths import Spatial
    >>> Spatial().evaluate([[0.5, 0.5], [0.0, 0.0]], [[0, 0], [1, 0], [1, 1], [0, 1]]).round(4).tolist()
    [1.0, 0.3964]
    """

    name: ClassVar[str] = "spatial"

    def kernel(self) -> Any:
        """Return the compiled function of one point; see `Depth.kernel`."""
        from pymc_dpdepth.depths.spatial_kernels import spatial_depth

        return spatial_depth

    def batch_kernel(self) -> Any:
        """Return the function of many points; it uses all cores."""
        from pymc_dpdepth.depths.spatial_kernels import spatial_depths_and_gradients

        return partial(_values_and_gradients, spatial_depths_and_gradients)

    def _values_kernel(self) -> Any:
        """Return the compiled function of many points that leaves out the gradients."""
        from pymc_dpdepth.depths.spatial_kernels import spatial_depths

        return spatial_depths

    def sensitivity(self, n: int, d: int) -> float:
        """Return the global sensitivity of replacing one of n rows: 2/n, and 1 for one row (docs/sensitivity.md).

        Parameters
        ----------
        n : int
            Number of rows, at least 0; no rows give 0.
        d : int
            Number of columns, at least 1.
        """
        n, _ = check_size(n, d)
        return min(1.0, 2.0 / n) if n else 0.0


@dataclass(frozen=True)
class ModifiedSpatial(_SpatialDepth):
    """Spatial depth with the squared norm.

    D(x; X) = 1 - |mean_i SR(x - X_i)|^2, with SR and the largest entries as in `Spatial`. Its gradient exists except at
    the rows, also where the unit vectors cancel, where it is 0.

    The global sensitivity is 4 (n - 1) / n^2 when one of n rows is replaced, and 1 for one row.

    References
    ----------
    .. [1] K. Ramsay, A. Jagannath and S. Chenouri, Differentially private multivariate medians, JMLR 26 (2025),
           arXiv:2210.06459.

    Examples
    --------
    >>> from pymc_dpdepth.depths import ModifiedSpatial
    >>> ModifiedSpatial().evaluate([[0.5], [3.0]], [[0.0], [1.0]]).tolist()
    [1.0, 0.0]
    """

    name: ClassVar[str] = "modified_spatial"

    def kernel(self) -> Any:
        """Return the compiled function of one point; see `Depth.kernel`."""
        from pymc_dpdepth.depths.spatial_kernels import modified_spatial_depth

        return modified_spatial_depth

    def batch_kernel(self) -> Any:
        """Return the function of many points; it uses all cores."""
        from pymc_dpdepth.depths.spatial_kernels import modified_spatial_depths_and_gradients

        return partial(_values_and_gradients, modified_spatial_depths_and_gradients)

    def _values_kernel(self) -> Any:
        """Return the compiled function of many points that leaves out the gradients."""
        from pymc_dpdepth.depths.spatial_kernels import modified_spatial_depths

        return modified_spatial_depths

    def sensitivity(self, n: int, d: int) -> float:
        """Return the global sensitivity of replacing one of n rows: 4 (n - 1) / n^2, and 1 for one row.

        Parameters
        ----------
        n : int
            Number of rows, at least 0; no rows give 0.
        d : int
            Number of columns, at least 1.
        """
        n, _ = check_size(n, d)
        if n == 0:
            return 0.0
        return 1.0 if n == 1 else 4.0 * (n - 1) / n**2
