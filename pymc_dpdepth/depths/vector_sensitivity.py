"""Exact sensitivities of depth values, one at a time and as the vector of the rows' own depths, and their units.

docs/private_depths.md proves what stands here. All numbers are fractions: the sensitivity that noise must cover may not
be rounded down.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from pymc_dpdepth.depths.base import Depth, check_size
from pymc_dpdepth.depths.directional import DirectionalDepth, IntegratedDual, IntegratedRankWeighted
from pymc_dpdepth.depths.halfspace import Halfspace
from pymc_dpdepth.depths.simplicial import Simplicial
from pymc_dpdepth.depths.spatial import ModifiedSpatial, Spatial

__all__ = ["VectorSensitivity", "count_unit", "point_sensitivity", "sample_sensitivity", "values_sensitivity"]

ZERO = Fraction(0)


@dataclass(frozen=True)
class VectorSensitivity:
    """How far a vector of depths can move when one of n rows is replaced.

    Attributes
    ----------
    l1 : Fraction
        Bound of the sum of the absolute changes.
    l2_squared : Fraction
        Bound of the sum of the squared changes.
    """

    l1: Fraction
    l2_squared: Fraction


def count_unit(depth: Depth, n: int, d: int) -> int | None:
    """Return N where the depth is always an integer over N, or None where it is a real number.

    Parameters
    ----------
    depth : Depth
    n : int
        Number of rows.
    d : int
        Number of columns.

    Returns
    -------
    int or None
        At least 1: with no rows, or no simplices, every depth is 0.
    """
    depth = _known(depth, d)
    if isinstance(depth, DirectionalDepth):
        if depth.differentiable:
            return None
        together = 1 if depth.aggregation == "min" else len(depth.directions.matrix())
        return max(1, depth.univariate.denominator(n) * together)
    return max(1, math.comb(n, d + 1)) if isinstance(depth, Simplicial) else None


def point_sensitivity(depth: Depth, n: int, d: int) -> Fraction:
    """Return `depth.sensitivity(n, d)`, the most that the depth of a fixed point moves, without rounding.

    Parameters
    ----------
    depth : Depth
    n : int
        Number of rows.
    d : int
        Number of columns.

    Returns
    -------
    Fraction

    Raises
    ------
    TypeError
        If the depth is not one of the package's with a sensitivity that falls with n.
    """
    n, d = check_size(n, d)
    depth = _known(depth, d)
    if n == 0:
        return ZERO
    if isinstance(depth, Simplicial):
        return Fraction(d + 1, n) if n > d else ZERO
    if isinstance(depth, Spatial):
        return min(Fraction(1), Fraction(2, n))
    if isinstance(depth, ModifiedSpatial):
        return Fraction(4 * (n - 1), n**2) if n > 1 else Fraction(1)
    if depth.differentiable:
        return Fraction(n - 1, n**2) if n > 1 else Fraction(1, 4)
    return Fraction(1, n)


def values_sensitivity(depth: Depth, n: int, d: int, size: int) -> VectorSensitivity:
    """Return the sensitivity of the depths of fixed points: each may move by as much as one.

    Parameters
    ----------
    depth : Depth
    n : int
        Number of rows.
    d : int
        Number of columns.
    size : int
        Number of points.

    Returns
    -------
    VectorSensitivity

    Examples
    --------
    >>> from pymc_dpdepth.depths import Halfspace
    >>> from pymc_dpdepth.depths.vector_sensitivity import values_sensitivity
    >>> values_sensitivity(Halfspace(), n=10, d=2, size=4)
    VectorSensitivity(l1=Fraction(2, 5), l2_squared=Fraction(1, 25))
    """
    each = point_sensitivity(depth, n, d)
    return VectorSensitivity(size * each, size * each**2)


def sample_sensitivity(depth: Depth, n: int, d: int) -> VectorSensitivity:
    """Return the sensitivity of the vector D(X_1; X), ..., D(X_n; X) when one row is replaced at its place.

    The replaced row's own depth moves by up to the range of a row's depth, the others by at most what a point that is a
    row can move.

    Parameters
    ----------
    depth : Depth
    n : int
        Number of rows.
    d : int
        Number of columns.

    Returns
    -------
    VectorSensitivity

    Raises
    ------
    TypeError
        If the depth is not one of the package's with a sensitivity that falls with n.

    Examples
    --------
    >>> from pymc_dpdepth.depths import Halfspace
    >>> from pymc_dpdepth.depths.vector_sensitivity import sample_sensitivity
    >>> sample_sensitivity(Halfspace(), n=10, d=2)
    VectorSensitivity(l1=Fraction(9, 5), l2_squared=Fraction(9, 10))
    """
    n, d = check_size(n, d)
    depth = _known(depth, d)
    if n <= 1:  # a row that is alone has the same depth wherever it is
        return VectorSensitivity(ZERO, ZERO)
    if isinstance(depth, IntegratedDual) and depth.differentiable:
        return _smoothed(n)
    own, other = _own_and_other(depth, n, d)
    return VectorSensitivity(own + (n - 1) * other, own**2 + (n - 1) * other**2)


def _own_and_other(depth: Depth, n: int, d: int) -> tuple[Fraction, Fraction]:
    """Return the most that the replaced row's depth moves, and that each other's does, for n >= 2."""
    if isinstance(depth, Simplicial):
        if n <= d:
            return ZERO, ZERO
        return Fraction(n - d - 1, n), Fraction((d + 1) * (n - d - 1), n * (n - 1))
    if isinstance(depth, Spatial):
        return Fraction(n - 1, n), Fraction(1 if n == 2 else 2, n)
    if isinstance(depth, ModifiedSpatial):
        return Fraction(n - 1, n) ** 2, Fraction(1 if n == 2 else 4 * (n - 2), n**2)
    return Fraction(n - 1, n), Fraction(1, n)


def _smoothed(n: int) -> VectorSensitivity:
    """Return the sensitivity of smoothed depths: the others' moves balance, since logistics of x and -x add up to 1.

    With m = n - 2 and x = |m - 2 S_j|, the j-th other row moves by at most x / n^2, or (1 + x)^2 / (4 n^2) where
    x < 1. The S_j are the scores of a tournament, and sums of convex functions of them are largest for the scores
    0, 1, ..., m (Landau 1953).
    """
    m = n - 2
    middle = Fraction((m + 1) % 2, 4)  # m even: the score m / 2 has x = 0 and moves by 1 / (4 n^2)
    total = (m + 1) ** 2 // 2 + middle
    squares = m * (m + 1) * (m + 2) // 3 + middle**2
    own = Fraction((n - 1) ** 2, 4 * n**2)
    return VectorSensitivity(own + Fraction(total, n**2), own**2 + Fraction(squares, n**4))


def _known(depth: Depth, d: int) -> Depth:
    """Return the depth for d columns; refuse one whose sensitivity is not proved here, subclasses included."""
    if type(depth) not in (Halfspace, IntegratedRankWeighted, IntegratedDual, Simplicial, Spatial, ModifiedSpatial):
        raise TypeError(
            f"Expected a depth whose values have a proved sensitivity (halfspace, integrated_rank_weighted, "
            f"integrated_dual, simplicial, spatial, modified_spatial); got {getattr(depth, 'name', type(depth))!r}."
        )
    return depth.resolve(d)
