"""Projection depth: how far a point's projections lie from the median, in units of a robust scale."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np

from pymc_dpdepth.depths.base import Depth, check_size
from pymc_dpdepth.depths.directional import describe_directions, resolve_directions
from pymc_dpdepth.depths.directions import AUTO, as_directions

__all__ = ["Projection"]

_SCALES = ("mad", "iqr")


@dataclass(frozen=True)
class Projection(Depth):
    """Projection depth over a set of directions.

    D(x; X) = 1 / (1 + max_u |x.u - med_u| / scale_u), where med_u is the median of the projections X_i.u and scale_u
    their median absolute deviation from it ("mad") or interquartile range ("iqr", quartiles by linear interpolation).
    Where a scale is 0, a point whose projection is the median has outlyingness 0 in that direction, and any other an
    infinite one.

    Its sensitivity is 1 for every n >= 1: one row can take a scale to 0 or to infinity. The exponential mechanism has
    no use for that and refuses it; `propose_test_release` is the mechanism for this depth.

    Parameters
    ----------
    scale : {"mad", "iqr"}
        The robust scale.
    directions : Directions, "auto", None or array_like of shape (m, d)
        Public directions. "auto" is the axes; None, all directions, works for one column.

    References
    ----------
    .. [1] Y. Zuo, Projection-based depth functions and associated medians, Annals of Statistics 31 (2003) 1460-1490,
           doi:10.1214/aos/1065705115.

    Examples
    --------
    >>> from pymc_dpdepth.depths import Projection
    >>> Projection("mad").evaluate([[0.0], [1.0]], [[-1.0], [0.0], [1.0]]).tolist()
    [1.0, 0.5]
    """

    scale: Literal["mad", "iqr"] = "mad"
    directions: Any = AUTO

    name: ClassVar[str] = "projection"
    bounded_sensitivity: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the scale and coerce an array of directions."""
        if self.scale not in _SCALES:
            raise ValueError(f'scale must be "mad" or "iqr"; got {self.scale!r}.')
        object.__setattr__(self, "directions", as_directions(self.directions))

    @property
    def differentiable(self) -> bool:
        """Whether the depth has a gradient in theta: no, it has kinks and no kernel for its derivative."""
        return False

    def resolve(self, d: int) -> Self:
        """Return the same depth over concrete directions for dimension d.

        Parameters
        ----------
        d : int
            Number of columns.
        """
        directions = resolve_directions(self.directions, d, self.name)
        return self if directions == self.directions else dataclasses.replace(self, directions=directions)

    def with_directions(self, directions: Any) -> Self:
        """Return the same depth over other directions.

        Parameters
        ----------
        directions : Directions, "auto", None or array_like of shape (m, d)
        """
        return dataclasses.replace(self, directions=directions)

    def prepare(self, rows: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the medians (m,), the scales (m,) and the directions (m, d).

        Parameters
        ----------
        rows : ndarray of float64, shape (n, d)
            With no rows the medians are infinite, and the depth is 0 everywhere.
        """
        from pymc_dpdepth.depths.aggregate import project_clamped

        n, d = rows.shape
        directions = self.resolve(d).directions.matrix()
        if n == 0:
            return np.full(len(directions), np.inf), np.ones(len(directions)), directions
        projections = project_clamped(rows, directions)
        centers = np.median(projections, axis=1)
        if self.scale == "mad":
            scales = np.median(np.abs(projections - centers[:, None]), axis=1)
        else:
            lower, upper = np.quantile(projections, [1 / 4, 3 / 4], axis=1)
            scales = upper - lower
        return centers, scales, directions

    def kernel(self) -> Any:
        """Return the compiled function of one point; see `Depth.kernel`."""
        from pymc_dpdepth.depths.aggregate import max_outlyingness_depth

        return max_outlyingness_depth

    def batch_kernel(self) -> Any:
        """Return the compiled function of many points."""
        from pymc_dpdepth.depths.aggregate import max_outlyingness_depths

        return max_outlyingness_depths

    def sensitivity(self, n: int, d: int) -> float:
        """Return the global sensitivity: 1, and 0 with no rows.

        Parameters
        ----------
        n : int
            Number of rows, at least 0.
        d : int
            Number of columns, at least 1.
        """
        n, _ = check_size(n, d)
        return 0.0 if n == 0 else 1.0

    def upper_bound(self, n: int, d: int) -> float:
        """Return the supremum of the depth: 1, at the median of every direction."""
        n, _ = check_size(n, d)
        return 0.0 if n == 0 else 1.0

    def describe(self) -> dict[str, Any]:
        """Return a public record of the depth that JSON can hold."""
        return {
            "name": self.name,
            "scale": self.scale,
            "smoothing": None,
            "directions": describe_directions(self.directions),
        }
