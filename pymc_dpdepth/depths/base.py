"""The protocol that every depth follows, and the checks of what a user passes in."""

from __future__ import annotations

import abc
import math
import operator
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from pymc_dpdepth.errors import NotDifferentiableError

if TYPE_CHECKING:
    from pymc_dpdepth.depths.box_bounds import BoxBound

__all__ = ["Depth", "as_points", "as_points_and_rows", "as_rows", "check_size", "positive_number"]

_NUMERIC_KINDS = "fiub"  # numpy's codes: floating, signed, unsigned, boolean


class Depth(abc.ABC):
    """A depth function D(theta; X): large in the middle of the rows of X, small outside.

    Subclasses are frozen dataclasses, so that a depth can be compared and hashed. A depth by itself is not private:
    what `evaluate`, `value_and_gradient` and `prepare` return are functions of the raw rows and stay with the curator.
    `sensitivity`, `upper_bound` and `describe` are public.

    Attributes
    ----------
    name : str
        The depth's word in the registry.
    bounded_sensitivity : bool
        Whether the sensitivity shrinks as n grows. The exponential mechanism needs that.
    """

    name: ClassVar[str]
    bounded_sensitivity: ClassVar[bool] = True

    @property
    @abc.abstractmethod
    def differentiable(self) -> bool:
        """Whether the depth has a gradient in theta."""

    @property
    def unit_free(self) -> bool:
        """Whether standardising rows and points by a center and a scale makes no difference; then it is left out."""
        return False

    @abc.abstractmethod
    def resolve(self, d: int) -> Self:
        """Return the same depth with everything that depends on the dimension settled.

        Parameters
        ----------
        d : int
            Number of columns.

        Returns
        -------
        Depth
            The depth itself where nothing was open.
        """

    @abc.abstractmethod
    def prepare(self, rows: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return what the kernel needs beside theta: arrays made of the rows, and public ones.

        Parameters
        ----------
        rows : ndarray of float64, shape (n, d)
            Finite; n = 0 is allowed.
        """

    @abc.abstractmethod
    def kernel(self) -> Any:
        """Return the compiled function of one point.

        Returns
        -------
        numba dispatcher
            ``kernel(theta, *prepare(rows))`` is the value, or (value, gradient) for a differentiable depth.
        """

    @abc.abstractmethod
    def batch_kernel(self) -> Any:
        """Return the compiled function of many points, ``batch_kernel(points, *prepare(rows))``."""

    @abc.abstractmethod
    def sensitivity(self, n: int, d: int) -> float:
        """Return the global sensitivity when one of n rows in R^d is replaced.

        The largest |D(x; X) - D(x; Y)| over all points x and all tables X, Y of n rows that differ in one row. It does
        not depend on the rows and is public. With no rows it is 0.

        Parameters
        ----------
        n : int
            Number of rows, at least 0.
        d : int
            Number of columns, at least 1.
        """

    @abc.abstractmethod
    def upper_bound(self, n: int, d: int) -> float:
        """Return the supremum of the depth over all points and all tables of n rows in R^d; it is public."""

    @abc.abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return a public record of the depth that JSON can hold: its name, smoothing and directions."""

    def with_directions(self, directions: Any) -> Self:
        """Return the same depth over other directions.

        Parameters
        ----------
        directions : Directions, "auto", None or array_like of shape (m, d)

        Raises
        ------
        TypeError
            If the depth is not defined by directions.
        """
        raise TypeError(
            f"The depth {self.name!r} has no directions, so it cannot take others; leave directions out, or use a "
            "depth over directions (halfspace, integrated_rank_weighted, integrated_dual, projection)."
        )

    def evaluate(self, points: Any, X: Any) -> np.ndarray:
        """Return the depth of points in a table. Not private.

        Parameters
        ----------
        points : array_like, shape (k, d)
            One point in each row.
        X : array_like, shape (n, d)
            The rows; n = 0 gives depth 0 everywhere.

        Returns
        -------
        ndarray of float64, shape (k,)

        Raises
        ------
        ValueError
            If a shape is wrong, the widths differ, or an entry is missing (NaN, masked, NA) or infinite.
        TypeError
            If an array is not numeric.
        """
        points, rows = as_points_and_rows(points, X)
        return self._evaluate(points, rows)[0]

    def value_and_gradient(self, points: Any, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the depth of points in a table, and its gradient in the point. Not private.

        Parameters
        ----------
        points : array_like, shape (k, d)
            One point in each row.
        X : array_like, shape (n, d)
            The rows.

        Returns
        -------
        values : ndarray of float64, shape (k,)
        gradients : ndarray of float64, shape (k, d)

        Raises
        ------
        NotDifferentiableError
            If the depth is a step function.
        ValueError, TypeError
            As in `evaluate`.
        """
        if not self.differentiable:
            raise NotDifferentiableError(
                f"A gradient was asked of the depth {self.name!r}, which is a step function of the point and has "
                "none. Use an "
                "exact sampler (sample_exact), SMC (pm.sample_smc) or slice (pm.Slice), or a smooth depth "
                "(IntegratedDual(smoothing=s))."
            )
        points, rows = as_points_and_rows(points, X)
        return self._evaluate(points, rows)

    def median(self, X: Any) -> np.ndarray:
        """Return a median of a table: a deepest point, or one that the subclass names. Not private.

        Parameters
        ----------
        X : array_like, shape (n, d)
            The rows, n >= 1.

        Returns
        -------
        ndarray of float64, shape (d,)

        Raises
        ------
        TypeError
            If there is no median of this depth.
        """
        from pymc_dpdepth.depths.registry import DEPTHS

        able = sorted(name for name, depth in DEPTHS.items() if depth.median is not Depth.median)
        raise TypeError(
            f"There is no median(X) of the depth {self.name!r}; use a depth that has one: {', '.join(able)}."
        )

    def box_bound(self, rows: np.ndarray) -> BoxBound:
        """Return upper bounds of the depth over boxes, for one table: what branch and bound draws by. Not private.

        Parameters
        ----------
        rows : ndarray of float64, shape (n, d)
            Finite, in the units of the points; n = 0 is allowed.

        Raises
        ------
        TypeError
            If the depth has none.
        """
        raise TypeError(
            f"The depth {self.name!r} has no box bound, so branch and bound can't draw from it; use another depth, or "
            "another sampler."
        )

    def _evaluate(self, points: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return values, and gradients (of width 0 for a step depth)."""
        depth = self.resolve(rows.shape[1])
        result = depth.batch_kernel()(points, *depth.prepare(rows))
        return result if depth.differentiable else (result, np.empty((len(points), 0)))


def as_points_and_rows(points: Any, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Check points and rows together."""
    rows = as_rows(X)
    return as_points(points, rows.shape[1]), rows


def as_rows(X: Any) -> np.ndarray:
    """Return a table as float64, shape (n, d); refuse other shapes, text, and missing and infinite entries."""
    rows = _numeric(X, "X")
    if rows.ndim != 2:
        raise ValueError(
            f"X must have shape (n, d), one row for each unit; got {rows.ndim} dimension(s). For one column of "
            "numbers pass X[:, None]."
        )
    return _finite(rows, "X")


def as_points(points: Any, d: int) -> np.ndarray:
    """Return points as float64, shape (k, d); refuse other shapes, text and non-finite entries."""
    array = _numeric(points, "points")
    if array.ndim != 2:
        cure = "points[None, :] for one point" if d > 1 else "points[:, None] for many numbers"
        raise ValueError(
            f"points must have shape (k, d), one point in each row; got {array.ndim} dimension(s). Pass {cure}."
        )
    if array.shape[1] != d:
        raise ValueError(
            f"points must have as many columns as X, {d}; got {array.shape[1]}. Pass the coordinates of every column "
            "of X."
        )
    return _finite(array, "points")


def check_size(n: int, d: int) -> tuple[int, int]:
    """Return n and d as integers; refuse n < 0 and d < 1."""
    try:
        n, d = operator.index(n), operator.index(d)
    except TypeError:
        raise TypeError(
            f"The numbers of rows n and columns d must be integers; got {type(n).__name__} and {type(d).__name__}."
        ) from None
    if n < 0 or d < 1:
        raise ValueError(f"Expected n >= 0 rows and d >= 1 columns; got n = {n} and d = {d}.")
    return n, d


def positive_number(value: Any, name: str) -> float:
    """Return a value as a finite float > 0."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{name} must be a number; got {type(value).__name__}.")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"{name} must be finite and above 0; got an integer beyond all doubles.") from None
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be finite and above 0; got {number}.")
    return number


def _numeric(values: Any, name: str) -> np.ndarray:
    """Return an array of real numbers as float64; missing entries of masked arrays and data frames become NaN."""
    try:
        array = np.asarray(_with_nan_for_missing(values))
    except ValueError:  # numpy's own message speaks of shapes and sequences
        raise ValueError(
            f"{name} must be a table; got rows, or entries, of different lengths. Give every row one number for each "
            "column."
        ) from None
    if array.dtype.kind not in _NUMERIC_KINDS:
        raise TypeError(
            f"{name} must hold real numbers; got an array of dtype {array.dtype}. Select the numeric columns, or "
            "convert them."
        )
    with np.errstate(over="ignore"):  # a long double beyond float64 becomes infinite, and is refused as that
        return np.ascontiguousarray(array, dtype=np.float64)


def _with_nan_for_missing(values: Any) -> Any:
    """Return float64 with NaN for what a mask or a nullable column hides; anything else as it is."""
    if isinstance(values, list | tuple) and any(np.ma.isMaskedArray(row) for row in values):
        values = np.ma.array(values)
    if np.ma.isMaskedArray(values) and values.dtype.kind in _NUMERIC_KINDS:
        with np.errstate(over="ignore"):
            return values.astype(np.float64).filled(np.nan)
    # pandas' nullable columns become objects in an array, and their kind tells what they hold.
    dtypes = getattr(values, "dtypes", None)
    if hasattr(values, "to_numpy") and hasattr(dtypes, "tolist"):
        kinds = [getattr(dtype, "kind", "O") for dtype in dtypes.tolist()]
        if any(not isinstance(dtype, np.dtype) for dtype in dtypes.tolist()) and set(kinds) <= set(_NUMERIC_KINDS):
            return values.to_numpy(dtype=np.float64, na_value=np.nan)
    return values


def _finite(array: np.ndarray, name: str) -> np.ndarray:
    if array.shape[1] < 1:
        raise ValueError(f"{name} must have at least one column; got none.")
    finite = np.isfinite(array)
    if not finite.all():  # by column, ten times slower, only where it is needed
        bad = np.flatnonzero(~finite.all(axis=0)).tolist()
        raise ValueError(
            f"{name} must be finite; missing or infinite entries in the columns with index {bad}. Fill or drop them "
            "first."
        )
    return array
