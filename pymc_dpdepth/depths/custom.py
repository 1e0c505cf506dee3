"""An objective that the user writes in PyTensor, with a sensitivity that the user proves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from pymc_dpdepth.depths.base import Depth, check_size, positive_number
from pymc_dpdepth.errors import NotDifferentiableError

if TYPE_CHECKING:
    from pymc_dpdepth.depths.box_bounds import BoxBound

__all__ = ["CustomObjective"]

# Compiled expressions that are kept: each holds a compiled function, and a session rarely has more than a few.
_CACHED_FUNCTIONS = 16


@dataclass(frozen=True, init=False)
class CustomObjective(Depth):
    """An objective given as a PyTensor expression, with its global sensitivity.

    The exponential mechanism is exactly as private as the sensitivity is right: it must bound
    |f(theta, X) - f(theta, Y)| for every theta and every two tables X, Y of n rows that differ in one row. Nothing here
    can check that proof.

    Parameters
    ----------
    expression : callable
        ``expression(theta, X)`` takes a PyTensor vector (d,) and matrix (n, d), and returns a scalar of float type that
        depends on both. The rows must come in through X: rows that the function closes over would enter the graph as
        constants, which PyTensor may write to its compile cache on disk.
    sensitivity : float or callable
        The global sensitivity of replacing one row, finite and above 0; or a function of (n, d) that returns it.
    name : str
        A public word for the objective in records.
    box_bound : callable, optional
        ``box_bound(lower, upper, X)`` takes two PyTensor vectors (d,), the corners of a box, and the matrix (n, d), and
        returns a scalar that is at least the objective at every point lower <= theta <= upper, as computed: leave room
        for rounding, some 2^-40 of the size of the terms. Branch and bound draws exactly by it, so those draws are only
        as right, and as private, as this bound; nothing here can check it.

    Raises
    ------
    TypeError
        If the expression, the sensitivity or the box bound is of the wrong type.
    ValueError
        If the sensitivity is not finite and above 0.

    Examples
    --------
    The mean distance to the rows, cut at 1, moves by at most 1/n:

    >>> import pytensor.tensor as pt
    >>> from pymc_dpdepth.depths import CustomObjective
    >>> def closeness(theta, X):
    ...     return -pt.mean(pt.minimum(pt.sqrt(pt.sum((X - theta) ** 2, axis=1)), 1.0))
    >>> objective = CustomObjective(closeness, sensitivity=lambda n, d: 1 / n)
    >>> objective.evaluate([[0.0]], [[0.0], [0.5]]).tolist()
    [-0.25]

    The point of a box that is nearest to a row is the row clipped to the box:

    >>> import numpy as np
    >>> def most(lower, upper, X):
    ...     away = X - pt.clip(X, lower, upper)
    ...     return -pt.mean(pt.minimum(pt.sqrt(pt.sum(away**2, axis=1)), 1.0)) + 1e-12
    >>> objective = CustomObjective(closeness, sensitivity=lambda n, d: 1 / n, box_bound=most)
    >>> bound = objective.box_bound(np.array([[0.0], [0.5]]))
    >>> bound.upper(np.array([[0.1]]), np.array([[0.3]])).round(6).tolist()
    [-0.15]
    """

    expression: Callable[[Any, Any], Any]
    bound: float | Callable[[int, int], float]
    name: str
    over_box: Callable[[Any, Any, Any], Any] | None

    def __init__(
        self,
        expression: Callable[[Any, Any], Any],
        sensitivity: float | Callable[[int, int], float],
        name: str = "custom",
        box_bound: Callable[[Any, Any, Any], Any] | None = None,
    ) -> None:
        """Check and keep the expression, the sensitivity, the name and the bound over boxes."""
        if not callable(expression):
            raise TypeError(
                f"expression must be a function of (theta, X) that returns a PyTensor scalar; got "
                f"{type(expression).__name__}."
            )
        if not callable(sensitivity):
            sensitivity = positive_number(sensitivity, "sensitivity")
        if not isinstance(name, str) or not name:
            raise TypeError(f"name must be a non-empty string; got {type(name).__name__}.")
        if box_bound is not None and not callable(box_bound):
            raise TypeError(
                "box_bound must be a function of (lower, upper, X) that returns a PyTensor scalar, or None; got "
                f"{type(box_bound).__name__}."
            )
        object.__setattr__(self, "expression", expression)
        object.__setattr__(self, "bound", sensitivity)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "over_box", box_bound)

    @property
    def differentiable(self) -> bool:
        """Whether the depth has a gradient in theta: as the expression has, so taken to be true."""
        return True

    def resolve(self, d: int) -> Self:
        """Return the objective itself: nothing in it waits for the dimension."""
        check_size(0, d)
        return self

    def build(self, theta: Any, X: Any) -> Any:
        """Return the scalar expression of a PyTensor vector theta (d,) and matrix X (n, d).

        Raises
        ------
        TypeError
            If the expression is not a PyTensor scalar of float type.
        ValueError
            If it does not depend on theta and on X.
        """
        from pytensor.graph.traversal import ancestors

        value = self._scalar(self.expression(theta, X), "expression", "theta and X")
        used = set(ancestors([value]))
        unused = [label for label, variable in (("theta", theta), ("X", X)) if variable not in used]
        if unused:
            raise ValueError(
                f"The expression of {self.name!r} must depend on theta and X; it does not use {' and '.join(unused)}. "
                "Take the rows from the argument X, never from a variable outside the function."
            )
        return value

    def build_box_bound(self, lower: Any, upper: Any, X: Any) -> Any:
        """Return the user's scalar bound over a box, of PyTensor vectors lower and upper (d,) and matrix X (n, d).

        Raises
        ------
        TypeError
            If there is none, or it is not a PyTensor scalar of float type.
        """
        if self.over_box is None:
            raise TypeError(
                f"The objective {self.name!r} has no box bound, which branch and bound needs. Give CustomObjective a "
                "box_bound=, a function of (lower, upper, X), or use another sampler."
            )
        return self._scalar(self.over_box(lower, upper, X), "box bound", "lower, upper and X")

    def _scalar(self, value: Any, what: str, arguments: str) -> Any:
        from pytensor.tensor.variable import TensorVariable

        if not isinstance(value, TensorVariable):
            raise TypeError(
                f"The {what} of {self.name!r} must return a PyTensor scalar; got {type(value).__name__}. Build it "
                f"from {arguments} with pytensor.tensor."
            )
        if value.ndim != 0 or not value.dtype.startswith("float"):
            raise TypeError(
                f"The {what} of {self.name!r} must be a scalar of float type; got {value.ndim} dimension(s) of "
                f"dtype {value.dtype}. Sum or average over the rows, and divide by a float."
            )
        return value

    def box_bound(self, rows: np.ndarray) -> BoxBound:
        """Return the user's upper bounds over boxes; see `Depth.box_bound`.

        Raises
        ------
        TypeError
            If there are none, or the user's function does not return a PyTensor scalar of float type.
        """
        from pymc_dpdepth.depths.custom_bounds import CustomBoxBound

        return CustomBoxBound(self, rows)

    def prepare(self, rows: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the rows themselves: the expression's second argument."""
        return (rows,)

    def kernel(self) -> Any:
        """Refuse: the expression enters a graph by `build`.

        Raises
        ------
        TypeError
            Always.
        """
        raise TypeError(
            f"{self.name!r} is a PyTensor expression and has no numba kernel; put build(theta, X) into the graph."
        )

    def batch_kernel(self) -> Any:
        """Refuse, as `kernel` does."""
        return self.kernel()

    def sensitivity(self, n: int, d: int) -> float:
        """Return the user's global sensitivity for n rows and d columns; 0 with no rows.

        Raises
        ------
        TypeError, ValueError
            If a sensitivity given as a function returns what is not a finite number above 0.
        """
        n, d = check_size(n, d)
        if n == 0:
            return 0.0
        if not callable(self.bound):
            return self.bound
        return positive_number(self.bound(n, d), f"sensitivity({n}, {d}) of {self.name!r}")

    def upper_bound(self, n: int, d: int) -> float:
        """Return infinity: an expression says nothing of its supremum. With no rows it is 0."""
        n, _ = check_size(n, d)
        return 0.0 if n == 0 else math.inf

    def describe(self) -> dict[str, Any]:
        """Return a public record of the objective that JSON can hold; the expression is not part of it."""
        return {"name": self.name, "smoothing": None, "directions": None}

    def _evaluate(self, points: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._run(points, rows, gradient=True)

    def evaluate(self, points: Any, X: Any) -> np.ndarray:
        """Return the objective at points. Not private. See `Depth.evaluate`; with no rows it is 0."""
        from pymc_dpdepth.depths.base import as_points_and_rows

        return self._run(*as_points_and_rows(points, X), gradient=False)[0]

    def _run(self, points: np.ndarray, rows: np.ndarray, gradient: bool) -> tuple[np.ndarray, np.ndarray]:
        values, gradients = np.zeros(len(points)), np.zeros(points.shape)
        if len(rows):
            function = _compiled(self, gradient)
            for i, point in enumerate(points):
                values[i], *rest = function(point, rows)
                if gradient:
                    gradients[i] = rest[0]
        return values, gradients


@lru_cache(maxsize=_CACHED_FUNCTIONS)
def _compiled(objective: CustomObjective, gradient: bool) -> Any:
    """Compile theta, X -> [value] or [value, gradient]."""
    import pytensor
    import pytensor.tensor as pt
    from pytensor.gradient import DisconnectedInputError, NullTypeGradError

    theta, X = pt.vector("theta", dtype="float64"), pt.matrix("X", dtype="float64")
    outputs = [objective.build(theta, X)]
    if gradient:
        try:
            outputs.append(pytensor.grad(outputs[0], theta))
        except (DisconnectedInputError, NullTypeGradError):
            raise NotDifferentiableError(
                f"The expression of {objective.name!r} has no gradient in theta. Use slice (pm.Slice), SMC "
                "(pm.sample_smc) or an exact sampler."
            ) from None
    return pytensor.function([theta, X], outputs)
