"""An objective that the user writes in PyTensor, with a sensitivity that the user proves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

import numpy as np

from pymc_dpdepth.depths.base import Depth, check_size, positive_number
from pymc_dpdepth.errors import NotDifferentiableError

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

    Raises
    ------
    TypeError
        If the expression or the sensitivity is of the wrong type.
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
    """

    expression: Callable[[Any, Any], Any]
    bound: float | Callable[[int, int], float]
    name: str

    def __init__(
        self,
        expression: Callable[[Any, Any], Any],
        sensitivity: float | Callable[[int, int], float],
        name: str = "custom",
    ) -> None:
        """Check and keep the expression, the sensitivity and the name."""
        if not callable(expression):
            raise TypeError(
                f"expression must be a function of (theta, X) that returns a PyTensor scalar; got "
                f"{type(expression).__name__}."
            )
        if not callable(sensitivity):
            sensitivity = positive_number(sensitivity, "sensitivity")
        if not isinstance(name, str) or not name:
            raise TypeError(f"name must be a non-empty string; got {type(name).__name__}.")
        object.__setattr__(self, "expression", expression)
        object.__setattr__(self, "bound", sensitivity)
        object.__setattr__(self, "name", name)

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
        from pytensor.tensor.variable import TensorVariable

        value = self.expression(theta, X)
        if not isinstance(value, TensorVariable):
            raise TypeError(
                f"The expression of {self.name!r} must return a PyTensor scalar; got {type(value).__name__}. Build it "
                "from theta and X with pytensor.tensor."
            )
        if value.ndim != 0 or not value.dtype.startswith("float"):
            raise TypeError(
                f"The expression of {self.name!r} must be a scalar of float type; got {value.ndim} dimension(s) of "
                f"dtype {value.dtype}. Sum or average over the rows, and divide by a float."
            )
        used = set(ancestors([value]))
        unused = [label for label, variable in (("theta", theta), ("X", X)) if variable not in used]
        if unused:
            raise ValueError(
                f"The expression of {self.name!r} must depend on theta and X; it does not use {' and '.join(unused)}. "
                "Take the rows from the argument X, never from a variable outside the function."
            )
        return value

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
