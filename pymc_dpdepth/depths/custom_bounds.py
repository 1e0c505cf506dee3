"""The user's upper bounds of a custom objective over boxes."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from pymc_dpdepth.depths.box_bounds import BoxBound

if TYPE_CHECKING:
    from pymc_dpdepth.depths.custom import CustomObjective

__all__ = ["CustomBoxBound"]

# Compiled bounds that are kept, as many as compiled expressions.
_CACHED_FUNCTIONS = 16


class CustomBoxBound(BoxBound):
    """The user's bound over boxes, and the objective as the score.

    Parameters
    ----------
    objective : CustomObjective
    rows : ndarray of float64, shape (n, d)
        In the units of the points.
    """

    def __init__(self, objective: CustomObjective, rows: np.ndarray) -> None:
        self._objective, self._rows = objective, rows
        self._function = _compiled(objective)
        self.sensitivity_count = None
        self.influence = np.ones(rows.shape[1])

    def upper(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return the user's upper bounds of the objective over boxes; 0 without rows.

        Raises
        ------
        ValueError
            If one is not finite.
        """
        uppers = np.zeros(len(low))
        if len(self._rows):
            for i, corners in enumerate(zip(low, high, strict=True)):
                uppers[i] = self._function(*corners, self._rows)
            if not np.isfinite(uppers).all():
                raise ValueError(
                    f"The box bound of {self._objective.name!r} must be finite for every box lower <= upper and table; "
                    "it was not for one. Bound each row's term by its supremum where nothing better is known."
                )
        return uppers

    def score(self, points: np.ndarray, least: np.ndarray) -> np.ndarray:
        """Return the objective at points."""
        return self._objective.evaluate(points, self._rows)


@lru_cache(maxsize=_CACHED_FUNCTIONS)
def _compiled(objective: CustomObjective) -> Any:
    """Compile lower, upper, X -> bound."""
    import pytensor
    import pytensor.tensor as pt

    lower, upper = pt.vector("lower", dtype="float64"), pt.vector("upper", dtype="float64")
    X = pt.matrix("X", dtype="float64")
    # A bound may leave out an argument: a constant is one, if seldom a good one.
    return pytensor.function(
        [lower, upper, X], objective.build_box_bound(lower, upper, X), on_unused_input="ignore", trust_input=False
    )
