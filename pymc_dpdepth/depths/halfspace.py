"""Halfspace (Tukey) depth: over a set of directions, or over all directions in up to three dimensions."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from pymc_dpdepth.depths.base import as_rows
from pymc_dpdepth.depths.directional import DirectionalDepth
from pymc_dpdepth.depths.directions import AUTO, AXES, Directions

if TYPE_CHECKING:
    from pymc_dpdepth.depths.box_bounds import BoxBound
    from pymc_dpdepth.depths.regions import DepthRegions

__all__ = ["Halfspace"]

_PLANE, _SPACE = 2, 3
# Oblique directions err less than the axes (benchmarks/bench_defaults.py); exact draws over them take long beyond this.
# Not all directions of the plane: rows on a line have depth on that line alone, which branch and bound cannot find.
_MOST_OBLIQUE, _MANY = 4, 100

# Columns are brought to like sizes, for speed alone, by factors of no more than this: then no product with a difference
# of doubles that were divided by 2^64 overflows.
_LARGEST_UNIT = 2.0**60


def _units(rows: np.ndarray) -> np.ndarray:
    """Return powers of two, at least 1, that make the spreads of the columns similar; shape (d,)."""
    if len(rows) == 0:
        return np.ones(rows.shape[1])
    quartered = rows / (2 * 2)  # a difference of two does not overflow
    low, high = np.quantile(quartered, [1 / 4, 3 / 4], axis=0)
    spreads = np.where(high > low, high - low, np.ptp(quartered, axis=0))
    spreads = np.where(spreads > 0, spreads, spreads.max())
    if not spreads.max() > 0:
        return np.ones(rows.shape[1])
    exponents = np.log2(spreads.max()) - np.log2(spreads)
    return np.minimum(2.0 ** np.minimum(np.floor(exponents), np.log2(_LARGEST_UNIT)), _LARGEST_UNIT)


@dataclass(frozen=True)
class Halfspace(DirectionalDepth):
    """Halfspace (Tukey) depth over a set of directions, or over all of them.

    D(x; X) = min_u min(F(x, u), 1 - F(x-, u)), where F(x, u) is the share of rows with X.u <= x.u and F(x-, u) the
    share with X.u < x.u: the smallest share of rows in a closed halfspace that has x on its boundary and u as a normal
    vector.

    Over all directions (``directions=None``) it is the smallest share of rows in any closed halfspace that contains x.
    That is computed for up to three columns, in n log n steps at most for two and n^2 log n for three. The counts are
    exact for the doubles given: close calls are settled by exact signs of determinants, never by a tolerance. It is
    the same after any invertible affine map of rows and point.

    Its sensitivity is 1/n when one of n rows is replaced. It is a step function: it has no gradient.

    Parameters
    ----------
    directions : Directions, "auto", None or array_like of shape (m, d)
        Public directions. "auto" is 100 balanced directions for two to four columns and the axes for others; None is
        all directions, for up to three columns.

    References
    ----------
    .. [1] J. W. Tukey, Mathematics and the picturing of data, Proc. Int. Congress of Mathematicians 2 (1975) 523-531.
    .. [2] J. A. Cuesta-Albertos and A. Nieto-Reyes, The random Tukey depth, Computational Statistics and Data Analysis
           52 (2008) 4979-4988, doi:10.1016/j.csda.2008.04.021.
    .. [3] P. J. Rousseeuw and I. Ruts, Algorithm AS 307: Bivariate location depth, Applied Statistics 45 (1996)
           516-526, doi:10.2307/2986073.
    .. [4] P. J. Rousseeuw and A. Struyf, Computing location depth and regression depth in higher dimensions, Statistics
           and Computing 8 (1998) 193-203, doi:10.1023/A:1008945009397.

    Examples
    --------
    >>> from pymc_dpdepth.depths import Halfspace
    >>> Halfspace().evaluate([[0.0], [1.0]], [[-1.0], [0.0], [1.0]]).round(3).tolist()
    [0.667, 0.333]

    Along each axis a row is to either side of (3, 3), but an oblique line has all rows on one side of it.

    >>> from pymc_dpdepth.depths import Directions
    >>> rows, axes = [[0, 0], [4, 0], [0, 4], [1, 1]], Halfspace(directions=Directions.axes(2))
    >>> axes.evaluate([[3, 3]], rows).tolist(), Halfspace().evaluate([[3, 3]], rows).tolist()
    ([0.25], [0.0])
    """

    directions: Any = AUTO

    name: ClassVar[str] = "halfspace"
    aggregation: ClassVar[Literal["min", "mean"]] = "min"
    most_columns_for_all_directions: ClassVar[int] = _SPACE

    @property
    def unit_free(self) -> bool:
        """Whether units make no difference: over all directions, and along axes."""
        return self.directions is None or super().unit_free

    def resolve(self, d: int) -> Self:
        """Return the same depth over concrete directions for dimension d; all directions stay all directions.

        Parameters
        ----------
        d : int
            Number of columns.

        Raises
        ------
        ValueError
            If the directions are for another dimension, or are all directions (None) where d > 3.
        """
        if self.directions == AUTO and 1 < d <= _MOST_OBLIQUE:
            return dataclasses.replace(self, directions=Directions.balanced(d, _MANY))
        return self if self.directions is None and d in (_PLANE, _SPACE) else super().resolve(d)

    def prepare(self, rows: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return what the kernel needs beside theta.

        Parameters
        ----------
        rows : ndarray of float64, shape (n, d)

        Returns
        -------
        tuple of ndarray
            As in `DirectionalDepth.prepare`; over all directions, where d is 2 or 3, the columns of the rows (d, n)
            and a power of two for each (d,), which make their sizes similar and change no count.
        """
        if self.resolve(rows.shape[1]).directions is not None:
            return super().prepare(rows)
        return np.ascontiguousarray(rows.T), _units(rows)

    def kernel(self) -> Any:
        """Return the compiled function of one point; see `Depth.kernel`."""
        if self.directions is not None:
            return super().kernel()
        from pymc_dpdepth.depths.halfspace_space import halfspace_depth

        return halfspace_depth

    def batch_kernel(self) -> Any:
        """Return the function of many points; over all directions it uses all cores."""
        if self.directions is not None:
            return super().batch_kernel()
        from pymc_dpdepth.depths.halfspace_space import halfspace_depths_on_all_cores

        return halfspace_depths_on_all_cores

    def box_bound(self, rows: np.ndarray) -> BoxBound:
        """Return upper bounds over boxes; see `Depth.box_bound`."""
        if self.resolve(rows.shape[1]).directions is not None:
            return super().box_bound(rows)
        from pymc_dpdepth.depths.halfspace_bounds import HalfspaceBoxBound

        return HalfspaceBoxBound(self, rows)

    def median(self, X: Any) -> np.ndarray:
        """Return the centroid of the deepest region over all directions, or the median of the projections. Not private.

        Over all directions of the plane the deepest region is a polygon, a segment or a point; its centroid is computed
        in rational arithmetic and rounded once. Ties, duplicates and rows on one line are allowed. Along axes the
        result is the coordinatewise median; see `DirectionalDepth.median` for other directions. "auto" is all
        directions of the plane here, and the axes in other dimensions.

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
            If the array is not numeric, or there is no median: for directions that are not independent, and for all
            directions and three columns.

        Examples
        --------
        >>> from pymc_dpdepth.depths import Directions, Halfspace
        >>> rows, axes = [[0, 0], [4, 0], [0, 4], [1, 1]], Halfspace(directions=Directions.axes(2))
        >>> axes.median(rows).tolist(), Halfspace(directions=None).median(rows).tolist()
        ([0.5, 0.5], [1.0, 1.0])
        """
        from pymc_dpdepth.depths.medians import as_sample

        rows = as_sample(X)
        if self.directions == AUTO:
            # Of many directions there is no point that is a median along each; those that have one take their place.
            return dataclasses.replace(self, directions=None if rows.shape[1] == _PLANE else AXES).median(rows)
        if self.resolve(rows.shape[1]).directions is not None:
            return super().median(rows)
        if rows.shape[1] != _PLANE:
            raise TypeError(
                "The median of halfspace depth over all directions is computed for two columns; got "
                f'{rows.shape[1]}. Choose two, or use Halfspace(directions="auto") or Spatial().'
            )
        from pymc_dpdepth.depths.regions import centroid, deepest_region

        return np.array([float(x) for x in centroid(deepest_region(rows, _units(rows)))])

    def regions(self, X: Any, levels: Iterable[int] | None = None) -> DepthRegions:
        """Return the regions {x : D(x; X) >= k / n} over all directions of the plane. Not private.

        For n rows it takes time of order n^2 log n, and memory of some 60 n^2 bytes for all levels.

        Parameters
        ----------
        X : array_like, shape (n, 2)
            The rows, n >= 1.
        levels : iterable of int, optional
            The levels k, between 1 and n; all that are not empty by default.

        Returns
        -------
        DepthRegions

        Raises
        ------
        ValueError
            If the rows are not a finite table of two columns and at least one row, or a level is out of range.
        TypeError
            If the depth is not over all directions (directions=None), or a level is not an integer.
        """
        if self.directions is not None:
            raise TypeError(
                f"Regions are those of halfspace depth over all directions, Halfspace(directions=None); got "
                f"directions={self.directions!r}. Use Halfspace(directions=None).regions(X)."
            )
        rows = as_rows(X)
        if rows.shape[1] != _PLANE or len(rows) == 0:
            raise ValueError(f"X must have two columns and at least one row for regions; got shape {rows.shape}.")
        from pymc_dpdepth.depths.regions import depth_regions

        return depth_regions(rows, _units(rows), levels)
