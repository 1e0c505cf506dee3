"""What the functions of depth values check before anything is computed or charged."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pymc_dpdepth.budget import check_data, check_ledger, warn_if_delta_is_large
from pymc_dpdepth.depths.base import Depth, as_points
from pymc_dpdepth.depths.registry import as_depth
from pymc_dpdepth.depths.vector_sensitivity import point_sensitivity
from pymc_dpdepth.errors import PrivacyLeakWarning, UnboundedSensitivityError, warn_user
from pymc_dpdepth.location_prior import standardization
from pymc_dpdepth.mechanism import positive_integer, standardized
from pymc_dpdepth.privacy.rounding import number, probability
from pymc_dpdepth.tables import Table, read_table

__all__ = ["DepthInputs", "check_flag", "read_inputs", "read_points", "start_of_rays", "warn_if_points_are_rows"]

WRITTEN_DIGITS = 3  # a coordinate with so few digits was written by a person, not read off a row


@dataclass(frozen=True, eq=False, repr=False)
class DepthInputs:
    """What both functions check first; the rows are private and not standardised."""

    depth: Depth
    table: Table
    rows: np.ndarray
    center: np.ndarray
    scale: np.ndarray
    epsilon: float
    delta: float
    max_rows_per_unit: int
    nonfinite: str

    @property
    def size(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.rows.shape

    def evaluate(self, points: np.ndarray | None) -> np.ndarray:
        """Return the depth of points (in the units of the rows), or of all rows. Not private."""
        rows = standardized(self.rows, self.center, self.scale)
        return self.depth.evaluate(rows if points is None else standardized(points, self.center, self.scale), rows)


def read_inputs(
    X, depth, directions, columns, standardize, epsilon, delta, nonfinite, max_rows_per_unit, ledger
) -> DepthInputs:
    """Check what a user passes in."""
    check_ledger(ledger)
    check_data(ledger, X)
    epsilon = float(number(epsilon, "epsilon"))
    delta = float(probability(delta, zero=True))
    max_rows_per_unit = positive_integer(max_rows_per_unit, "max_rows_per_unit")
    depth = as_depth(depth)
    if directions is not None:
        depth = depth.with_directions(directions)
    if not depth.bounded_sensitivity:
        raise UnboundedSensitivityError(
            f"The depth {depth.name!r} has sensitivity 1 whatever the number of rows, so noise would hide it. Use "
            "propose_test_release for it, or another depth here."
        )
    if isinstance(standardize, str):
        raise ValueError(f"standardize: expected None or a public pair (center, scale), got {standardize!r}.")
    table = X if isinstance(X, Table) else read_table(X, columns)
    n, d = table.rows.shape
    depth = depth.resolve(d)
    point_sensitivity(depth, n, d)  # refuses depths without a proof
    center, scale = standardization(None, None, d, depth, standardize)
    rows = _finite(table, nonfinite, None if standardize is None else center)
    warn_if_delta_is_large(delta, n)
    return DepthInputs(depth, table, rows, center, scale, epsilon, delta, max_rows_per_unit, nonfinite)


def _finite(table: Table, nonfinite: str, center: np.ndarray | None) -> np.ndarray:
    """Return rows without non-finite entries: each is replaced by a public number, or all are refused."""
    if nonfinite not in ("raise", "center"):
        raise ValueError(f'nonfinite: expected "raise" or "center", got {nonfinite!r}.')
    if nonfinite == "center" and center is None:
        raise ValueError(
            "nonfinite: a public center must stand in for missing entries, got none. Pass "
            'nonfinite="center" with standardize=(center, scale).'
        )
    finite = np.isfinite(table.rows)
    if finite.all():
        return table.rows
    if nonfinite == "raise":
        bad = [table.columns[j] for j in np.flatnonzero(~finite.all(axis=0))]
        raise ValueError(
            f"Expected finite numbers; missing or infinite entries in {bad}. Fill them by a rule that looks at one row "
            'alone, or use nonfinite="center" with standardize=(center, scale); dropping rows makes their number '
            "private, which the guarantee does not cover."
        )
    return np.where(finite, table.rows, center)


def read_points(points: Any, columns: Sequence[str]) -> np.ndarray:
    """Return points as an array of shape (k, d), in the order of the columns; a table is read by their names."""
    if isinstance(points, str | os.PathLike) or hasattr(points, "columns"):
        try:
            points = read_table(points, list(columns)).rows
        except (ValueError, TypeError) as error:
            if type(error) not in (ValueError, TypeError):
                raise
            raise type(error)(
                f"points: {error} A table of points is read by the names of X's columns; an array has them in order."
            ) from None
    where = as_points(points, len(columns))
    if not len(where):
        raise ValueError("points: expected at least one point, got none.")
    return where


def start_of_rays(point: Any, d: int) -> np.ndarray:
    """Return the point that rays start from."""
    expected = f"isotonic_from: expected {d} finite numbers, one for each column, got"
    try:
        start = np.asarray(point, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{expected} {'a text' if isinstance(point, str) else 'something else'}.") from None
    if start.shape != (d,):
        raise ValueError(f"{expected} an array of shape {start.shape}.")
    if not np.isfinite(start).all():
        raise ValueError(f"{expected} some that are not finite.")
    return start


def check_flag(name: str, value: Any) -> None:
    """Refuse what is not True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}: expected True or False, got {type(value).__name__}.")


def warn_if_points_are_rows(points: np.ndarray, rows: np.ndarray) -> None:
    """Warn where a point equals a row and has more digits than a person writes."""
    known = {row.tobytes() for row in rows + 0.0}  # -0.0 + 0.0 is 0.0
    if any(point.tobytes() in known and not _written(point) for point in points + 0.0):
        warn_user(
            "A point equals a row of the table exactly. Points that are read off private rows break the guarantee; "
            "choose them from public knowledge, or use private_sample_depths for the depths of the rows.",
            PrivacyLeakWarning,
        )


def _written(point: np.ndarray) -> bool:
    return all(float(f"{value:.{WRITTEN_DIGITS}g}") == value for value in point.tolist())
