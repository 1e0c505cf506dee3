"""Depths made of a univariate depth of the projected rows, aggregated over directions.

| depth                  | univariate, on (le, ge)           | aggregation | sensitivity |
|------------------------|-----------------------------------|-------------|-------------|
| Halfspace              | min(le, ge) / n                   | min         | 1/n         |
| IntegratedRankWeighted | min(le, ge) / n                   | mean        | 1/n         |
| IntegratedDual         | le * ge / n^2                     | mean        | 1/n         |
| IntegratedDual(s)      | F (1 - F), F a mean of logistics  | mean        | (n-1)/n^2   |

le and ge count the rows X_i with X_i.u <= x.u and X_i.u >= x.u. The kernels import when they are first used.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from pymc_dpdepth.depths.base import Depth, check_size, positive_number
from pymc_dpdepth.depths.directions import AUTO, AXES, Directions, as_directions

if TYPE_CHECKING:
    from pymc_dpdepth.depths.box_bounds import BoxBound
    from pymc_dpdepth.depths.univariate import UnivariateDepth

__all__ = ["DirectionalDepth", "IntegratedDual", "IntegratedRankWeighted"]

# s (z - a) and s (t - z) stay in range for projections clamped to 2^256 when s lies between these (no use needs more).
_SMOOTHING_RANGE = (2.0**-256, 2.0**256)


def resolve_directions(
    directions: Directions | Literal["auto"] | None, d: int, depth_name: str, most_for_all: int = 1
) -> Directions:
    """Return concrete directions for dimension d.

    "auto" and "axes" become the axes. In one dimension every direction is 1 or -1, so any set becomes the one axis.

    Raises
    ------
    ValueError
        If the set is for another dimension, or all directions (None) are asked for where d > 1.
    """
    _, d = check_size(0, d)
    if isinstance(directions, Directions) and directions.d != d:
        raise ValueError(
            f"The directions of the depth {depth_name!r} must have as many entries as the data have columns, {d}; got "
            f"{directions.d}. Build them for d = {d}."
        )
    if d == 1 or (isinstance(directions, str) and directions in (AUTO, AXES)):
        return Directions.axes(d)
    if directions is None:
        raise ValueError(
            f"All directions (directions=None) of the depth {depth_name!r} are available for d <= {most_for_all} "
            f'column(s); got d = {d}. Use directions="auto" (the axes) or Directions.balanced({d}, m).'
        )
    return directions


def describe_directions(directions: Directions | Literal["auto"] | None) -> dict[str, Any]:
    """Return the public record of a direction set that may not be settled yet."""
    if isinstance(directions, Directions):
        return directions.describe()
    return {"kind": "all" if directions is None else directions}


class DirectionalDepth(Depth):
    """A univariate depth aggregated over directions by min or mean.

    Attributes
    ----------
    directions : Directions, "auto" or None
        The public direction set; "auto" is one direction in one dimension and the axes otherwise.
    aggregation : {"min", "mean"}
        How the directions are put together.
    univariate : UnivariateDepth
        What is aggregated.
    most_columns_for_all_directions : int
        For how many columns the depth over all directions can be computed.
    """

    directions: Any
    aggregation: ClassVar[Literal["min", "mean"]]
    most_columns_for_all_directions: ClassVar[int] = 1

    def __post_init__(self) -> None:
        """Coerce an array of directions."""
        object.__setattr__(self, "directions", as_directions(self.directions))

    @property
    def univariate(self) -> UnivariateDepth:
        """The univariate depth of the projections."""
        from pymc_dpdepth.depths.univariate import TUKEY

        return TUKEY

    @property
    def differentiable(self) -> bool:
        """Whether the depth has a gradient in theta."""
        return False

    @property
    def unit_free(self) -> bool:
        """Whether units make no difference: a step depth whose concrete directions are all along axes."""
        if self.differentiable or not isinstance(self.directions, Directions):
            return False
        return bool((np.count_nonzero(self.directions.matrix(), axis=1) == 1).all())

    def resolve(self, d: int) -> Self:
        """Return the same depth over concrete directions for dimension d.

        Parameters
        ----------
        d : int
            Number of columns.

        Raises
        ------
        ValueError
            If the directions are for another dimension, or are all directions (None) where d > 1.
        """
        directions = resolve_directions(self.directions, d, self.name, self.most_columns_for_all_directions)
        return self if directions == self.directions else dataclasses.replace(self, directions=directions)

    def with_directions(self, directions: Any) -> Self:
        """Return the same depth over other directions.

        Parameters
        ----------
        directions : Directions, "auto", None or array_like of shape (m, d)
        """
        return dataclasses.replace(self, directions=directions)

    def prepare(self, rows: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the sorted projections (m, n), the directions (m, d) and the univariate code (1,).

        Parameters
        ----------
        rows : ndarray of float64, shape (n, d)
        """
        from pymc_dpdepth.depths import aggregate

        n, d = rows.shape
        directions = self.resolve(d).directions.matrix()
        aggregate.check_counts_fit(n, len(directions), self.univariate.power)
        ordered = aggregate.project(rows, directions)
        ordered.sort(axis=1)
        return ordered, directions, np.array([self.univariate.code], dtype=np.int64)

    def kernel(self) -> Any:
        """Return the compiled function of one point; see `Depth.kernel`."""
        from pymc_dpdepth.depths import aggregate

        return aggregate.min_depth if self.aggregation == "min" else aggregate.mean_depth

    def batch_kernel(self) -> Any:
        """Return the compiled function of many points."""
        from pymc_dpdepth.depths import aggregate

        return aggregate.min_depths if self.aggregation == "min" else aggregate.mean_depths

    def box_bound(self, rows: np.ndarray) -> BoxBound:
        """Return upper bounds over boxes; see `Depth.box_bound`."""
        if self.differentiable:
            from pymc_dpdepth.depths.smoothed_bounds import SmoothedBoxBound

            return SmoothedBoxBound(self, rows)
        from pymc_dpdepth.depths.box_bounds import DirectionalBoxBound

        return DirectionalBoxBound(self, rows)

    def sensitivity(self, n: int, d: int) -> float:
        """Return the global sensitivity of replacing one of n rows: that of the univariate depth.

        A min and a mean over directions move by no more than the direction that moves most, and one far row moves all
        of them together, so neither the directions nor d change it (docs/sensitivity.md).

        Parameters
        ----------
        n : int
            Number of rows, at least 0; no rows give 0.
        d : int
            Number of columns, at least 1.
        """
        n, _ = check_size(n, d)
        return self.univariate.sensitivity(n)

    def median(self, X: Any) -> np.ndarray:
        """Return a point whose projections are the medians of the rows' projections. Not private.

        Along axes it is the coordinatewise median. It is a deepest point of a depth made of min(F, 1 - F), and of one
        made of F (1 - F) off the rows.

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
            If the array is not numeric, or the directions are not independent: then no such point exists in general.
        """
        from pymc_dpdepth.depths.medians import as_sample, median_of_projections

        rows = as_sample(X)
        directions = self.resolve(rows.shape[1]).directions.matrix()
        if np.linalg.matrix_rank(directions) < len(directions):
            raise TypeError(
                f"The median of the step depth {self.name!r} needs independent directions, at most as many as columns; "
                f"got {len(directions)} for {rows.shape[1]} column(s). Use the axes, Directions.orthonormal, or "
                "IntegratedDual(smoothing=s), which takes any."
            )
        return median_of_projections(rows, directions)

    def upper_bound(self, n: int, d: int) -> float:
        """Return the supremum of the depth over all points and all tables of n rows: every row equal to the point."""
        n, _ = check_size(n, d)
        return self.univariate.upper_bound(n)

    def describe(self) -> dict[str, Any]:
        """Return a public record of the depth that JSON can hold."""
        return {"name": self.name, "smoothing": None, "directions": describe_directions(self.directions)}


@dataclass(frozen=True)
class IntegratedRankWeighted(DirectionalDepth):
    """Integrated rank-weighted depth over a set of directions.

    D(x; X) = mean_u min(F(x, u), 1 - F(x-, u)), with F as in `Halfspace`: the mean over directions of the univariate
    halfspace depth of the projections.

    Its sensitivity is 1/n when one of n rows is replaced. It is a step function: it has no gradient.

    Parameters
    ----------
    directions : Directions, "auto", None or array_like of shape (m, d)
        Public directions. "auto" is the axes; None, all directions, works for one column.

    References
    ----------
    .. [1] K. Ramsay, S. Durocher and A. Leblanc, Integrated rank-weighted depth, Journal of Multivariate Analysis 173
           (2019) 51-69, doi:10.1016/j.jmva.2019.02.001.

    Examples
    --------
    >>> from pymc_dpdepth.depths import IntegratedRankWeighted
    >>> IntegratedRankWeighted().evaluate([[0.0, 5.0]], [[-1.0, 5.0], [0.0, 6.0]]).tolist()
    [0.5]
    """

    directions: Any = AUTO

    name: ClassVar[str] = "integrated_rank_weighted"
    aggregation: ClassVar[Literal["min", "mean"]] = "mean"


@dataclass(frozen=True)
class IntegratedDual(DirectionalDepth):
    """Integrated dual depth over a set of directions, as a step function or smoothed.

    D(x; X) = mean_u F(x, u) (1 - F(x-, u)), with F as in `Halfspace`. Off the data this is the mean of F (1 - F); at a
    row both closed sides count it. With smoothing s, D(x; X) = mean_u F (1 - F) where

        F(x, u) = mean_i sigma(s (x - X_i).u),    sigma(y) = 1 / (1 + exp(-y)),

    which has a gradient and tends to the step version off the data as s grows.

    The sensitivity, when one of n rows is replaced, is 1/n; smoothed, (n-1)/n^2, and 1/4 when n = 1.

    Parameters
    ----------
    smoothing : float or None
        s > 0, in units of one over the data's; chosen without looking at the rows. None is the step version.
    directions : Directions, "auto", None or array_like of shape (m, d)
        Public directions. "auto" is the axes; None, all directions, works for one column.

    References
    ----------
    .. [1] A. Cuevas and R. Fraiman, On depth measures and dual statistics: a methodology for dealing with general data,
           Journal of Multivariate Analysis 100 (2009) 753-766, doi:10.1016/j.jmva.2008.08.002.

    Examples
    --------
    >>> from pymc_dpdepth.depths import IntegratedDual
    >>> rows = [[-1.0], [0.0], [1.0]]
    >>> IntegratedDual().evaluate([[0.5]], rows).round(3).tolist()
    [0.222]
    >>> value, gradient = IntegratedDual(smoothing=10.0).value_and_gradient([[0.0]], rows)
    >>> value.round(3).tolist(), abs(gradient).round(3).tolist()
    ([0.25], [[0.0]])
    """

    smoothing: float | None = None
    directions: Any = AUTO

    name: ClassVar[str] = "integrated_dual"
    aggregation: ClassVar[Literal["min", "mean"]] = "mean"

    def __post_init__(self) -> None:
        """Check the smoothing and coerce an array of directions."""
        super().__post_init__()
        if self.smoothing is None:
            return
        smoothing = positive_number(self.smoothing, "smoothing")
        low, high = _SMOOTHING_RANGE
        if not low <= smoothing <= high:
            raise ValueError(f"smoothing must lie between 2^-256 and 2^256; got {smoothing}. Rescale the columns.")
        object.__setattr__(self, "smoothing", smoothing)

    @property
    def univariate(self) -> UnivariateDepth:
        """The univariate depth of the projections."""
        from pymc_dpdepth.depths.univariate import DUAL, SMOOTHED_DUAL

        return DUAL if self.smoothing is None else SMOOTHED_DUAL

    @property
    def differentiable(self) -> bool:
        """Whether the depth has a gradient in theta: when it is smoothed."""
        return self.smoothing is not None

    def prepare(self, rows: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return what the kernel needs beside theta.

        Parameters
        ----------
        rows : ndarray of float64, shape (n, d)

        Returns
        -------
        tuple of ndarray
            As in `DirectionalDepth.prepare`; when smoothed, the sorted projections (m, n), their exponential factors
            (m, n), the directions (m, d), and the smoothing with the width of the factors' blocks (2,).
        """
        if self.smoothing is None:
            return super().prepare(rows)
        from pymc_dpdepth.depths import aggregate

        directions = self.resolve(rows.shape[1]).directions.matrix()
        ordered = aggregate.project_clamped(rows, directions)
        ordered.sort(axis=1)
        width = aggregate.smoothing_block(self.smoothing)
        factors = aggregate.smoothing_factors(ordered, self.smoothing, width)
        return ordered, factors, directions, np.array([self.smoothing, width])

    def kernel(self) -> Any:
        """Return the compiled function of one point; see `Depth.kernel`."""
        from pymc_dpdepth.depths import aggregate

        return super().kernel() if self.smoothing is None else aggregate.mean_smoothed_depth

    def batch_kernel(self) -> Any:
        """Return the compiled function of many points."""
        from pymc_dpdepth.depths import aggregate

        return super().batch_kernel() if self.smoothing is None else aggregate.mean_smoothed_depths

    def median(self, X: Any) -> np.ndarray:
        """Return a deepest point. Not private.

        Smoothed, it is the deepest point that searches from several starts find, and the coordinatewise median counts
        as one where it is as deep. Without smoothing it is as for other depths over directions.

        Parameters
        ----------
        X : array_like, shape (n, d)
            The rows, n >= 1.

        Returns
        -------
        ndarray of float64, shape (d,)

        Raises
        ------
        ValueError, TypeError
            As for other depths over directions; smoothed, any directions will do.

        Examples
        --------
        >>> from pymc_dpdepth.depths import IntegratedDual
        >>> IntegratedDual(smoothing=2.0).median([[0.0, 0.0], [1.0, 2.0], [2.0, 9.0], [1.0, 3.0]]).round(3).tolist()
        [1.0, 2.508]
        """
        if self.smoothing is None:
            return super().median(X)
        from pymc_dpdepth.depths.medians import as_sample, smoothed_dual_median

        rows = as_sample(X)
        return smoothed_dual_median(rows, self.resolve(rows.shape[1]).directions.matrix(), self.smoothing)

    def describe(self) -> dict[str, Any]:
        """Return a public record of the depth that JSON can hold."""
        return {**super().describe(), "smoothing": self.smoothing}
