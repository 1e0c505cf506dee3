"""Simplicial depth: the share of the simplices with vertices among the rows that contain a point."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from pymc_dpdepth.depths.base import Depth, check_size

if TYPE_CHECKING:
    from pymc_dpdepth.depths.box_bounds import BoxBound

__all__ = ["Simplicial"]

_LARGEST_DIMENSION = 3
# In three dimensions the work grows as n^3 and the memory as 3 n^3 / 8 bytes: some 50 MB at this size.
_MOST_ROWS_IN_SPACE = 500


@dataclass(frozen=True)
class Simplicial(Depth):
    """Simplicial depth, exact in one, two and three dimensions.

    D(x; X) = the share of the C(n, d + 1) closed simplices with vertices among the n rows that contain x, and 0 where
    n <= d. Simplices are intervals for d = 1, triangles for d = 2 and tetrahedra for d = 3. Boundaries belong to them;
    where vertices coincide or lie in a plane, a simplex is their convex hull, a segment or a point perhaps. A row that
    is there twice counts twice. The depth is the same after any invertible affine map of rows and point.

    The counts are exact for the doubles given: a close call is settled by the exact sign of a determinant, never by a
    tolerance. One division ends the computation. Rows that are nearly on a line, or in a plane, with the point take
    longer, up to 100 times where all are so.

    | d | time of one point | most rows                                  |
    |---|-------------------|--------------------------------------------|
    | 1 | log n             | 4,294,967,296: C(n, 2) must fit in 63 bits |
    | 2 | n log n at most   | 3,810,779: C(n, 3) must fit in 63 bits     |
    | 3 | n^3               | 500                                        |

    The global sensitivity is (d + 1) / n for n > d: the simplices with a given row as a vertex are C(n - 1, d) of all
    C(n, d + 1). For n <= d there are no simplices, the depth is 0 everywhere, and so is the sensitivity: an
    exponential mechanism then draws from the prior.

    References
    ----------
    .. [1] R. Y. Liu, On a notion of data depth based on random simplices, Annals of Statistics 18 (1990) 405-414,
           doi:10.1214/aos/1176347507.
    .. [2] P. J. Rousseeuw and I. Ruts, Algorithm AS 307: Bivariate location depth, Applied Statistics 45 (1996)
           516-526, doi:10.2307/2986073.

    Examples
    --------
    The centre of a square is in all four triangles of its corners, on their sides; a corner is in three of them.

    >>> from pymc_dpdepth.depths import Simplicial
    >>> Simplicial().evaluate([[1, 1], [0, 0], [3, 3]], [[0, 0], [2, 0], [2, 2], [0, 2]]).tolist()
    [1.0, 0.75, 0.0]
    """

    name: ClassVar[str] = "simplicial"

    @property
    def differentiable(self) -> bool:
        """Whether the depth has a gradient in theta: no, it is a step function."""
        return False

    @property
    def unit_free(self) -> bool:
        """Whether units of the columns make no difference: yes, a simplex and a point are mapped together."""
        return True

    def resolve(self, d: int) -> Self:
        """Return the depth itself; refuse more than three columns.

        Parameters
        ----------
        d : int
            Number of columns.

        Raises
        ------
        ValueError
            If there are more than three.
        """
        _, d = check_size(0, d)
        if d > _LARGEST_DIMENSION:
            raise ValueError(
                f"The depth {self.name!r} is computed exactly for up to {_LARGEST_DIMENSION} columns; got {d}. Choose "
                "columns, or use a depth for any number of them: halfspace, integrated_rank_weighted, integrated_dual."
            )
        return self

    def prepare(self, rows: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the columns of the rows (d, n), in ascending order where d = 1.

        Parameters
        ----------
        rows : ndarray of float64, shape (n, d)

        Raises
        ------
        ValueError
            If there are more rows or columns than the depth can be computed for.
        """
        n, d = rows.shape
        self.resolve(d)
        if d == _LARGEST_DIMENSION and n > _MOST_ROWS_IN_SPACE:
            raise ValueError(
                f"The depth {self.name!r} of three columns takes up to {_MOST_ROWS_IN_SPACE} rows, since its work "
                f"grows as n^3; got {n}. Choose two columns, or use halfspace, integrated_rank_weighted or "
                "integrated_dual."
            )
        largest = np.iinfo(np.int64).max
        if math.comb(n, d + 1) > largest:
            raise ValueError(
                f"The depth {self.name!r} counts up to C(n, {d + 1}) simplices, which must not exceed {largest}; got "
                f"n = {n} rows. Use halfspace, integrated_rank_weighted or integrated_dual."
            )
        columns = np.ascontiguousarray(rows.T)
        return (np.sort(columns) if d == 1 else columns,)

    def kernel(self) -> Any:
        """Return the compiled function of one point; see `Depth.kernel`."""
        from pymc_dpdepth.depths.simplicial_kernels import simplicial_depth

        return simplicial_depth

    def batch_kernel(self) -> Any:
        """Return the function of many points; it uses all cores."""
        from pymc_dpdepth.depths.simplicial_kernels import simplicial_depths_on_all_cores

        return simplicial_depths_on_all_cores

    def box_bound(self, rows: np.ndarray) -> BoxBound:
        """Return upper bounds over boxes, for one and two columns; see `Depth.box_bound`."""
        from pymc_dpdepth.depths.simplicial_bounds import simplicial_box_bound

        return simplicial_box_bound(self, rows)

    def sensitivity(self, n: int, d: int) -> float:
        """Return the global sensitivity, (d + 1) / n; 0 where n <= d, as the depth is 0 everywhere.

        Parameters
        ----------
        n : int
            Number of rows, at least 0.
        d : int
            Number of columns, at least 1.
        """
        n, d = check_size(n, d)
        return (d + 1) / n if n > d else 0.0

    def upper_bound(self, n: int, d: int) -> float:
        """Return the supremum of the depth: 1, where all rows are equal to the point; 0 where n <= d."""
        n, d = check_size(n, d)
        return 1.0 if n > d else 0.0

    def describe(self) -> dict[str, Any]:
        """Return a public record of the depth that JSON can hold."""
        return {"name": self.name, "smoothing": None, "directions": None}
