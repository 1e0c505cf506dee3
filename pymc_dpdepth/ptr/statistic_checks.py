"""What is checked of a user's statistic, and what its numbers count as, before anything is charged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pymc_dpdepth.ptr.stable import StableStatistic
from pymc_dpdepth.record_fields import STATISTIC

__all__ = ["PublicStatistic", "check_statistic", "read_statistic", "value_of"]

#: Names under which the other releases of propose-test-release are recorded.
TAKEN = ("projection_median", "projection_depth")


@dataclass(frozen=True)
class PublicStatistic:
    """What is public about a statistic.

    Attributes
    ----------
    name : str
    labels : list of str
    description : dict
    """

    name: str
    labels: list[str]
    description: dict[str, Any]


def check_statistic(statistic: Any) -> None:
    """Refuse what is no StableStatistic."""
    if not isinstance(statistic, StableStatistic):
        got = f"the class {statistic.__name__}" if isinstance(statistic, type) else type(statistic).__name__
        raise TypeError(f"statistic: expected a StableStatistic such as ptr.Median(), got {got}.")


def read_statistic(statistic: Any, columns: Sequence[str]) -> PublicStatistic:
    """Return the checked name, labels and record of a statistic."""
    check_statistic(statistic)
    name = getattr(statistic, "name", None)
    if not isinstance(name, str):
        raise TypeError(f"statistic.name: expected a text, its word in the record, got {type(name).__name__}.")
    if not name or name in TAKEN:
        raise ValueError(f"statistic.name: expected a text that is not empty and none of {TAKEN}, got {name!r}.")
    labels = statistic.labels(columns)
    if isinstance(labels, str) or not isinstance(labels, Sequence) or not all(isinstance(one, str) for one in labels):
        raise TypeError("statistic.labels: expected a list of texts, one for each component.")
    if not labels or not all(labels) or len(set(labels)) < len(labels):
        raise ValueError("statistic.labels: expected one or more different texts, none of them empty.")
    description = statistic.describe()
    try:
        STATISTIC(description, "statistic.describe()")
    except ValueError as reason:
        raise ValueError(
            f'{reason} Return {{"name": ..., "parameters": {{...}}}}, with numbers, or lists of them, by name.'
        ) from None
    if description["name"] != name:
        raise ValueError(f"statistic.describe(): expected the name {name!r}, which the statistic has, got another one.")
    return PublicStatistic(name, list(labels), dict(description))


def value_of(statistic: StableStatistic, rows: np.ndarray, size: int) -> tuple[np.ndarray, bool]:
    """Return T(X) with 0 for NaN, and whether it had none. Private.

    Parameters
    ----------
    statistic : StableStatistic
    rows : ndarray of float64, shape (n, d)
    size : int
        Public number of components.
    """
    found = statistic.value(rows)
    try:
        values = np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"statistic.value: expected an array of {size} numbers, got {type(found).__name__} of something else."
        ) from None
    if values.shape != (size,):
        raise ValueError(
            f"statistic.value: expected {size} components, one for each label, got an array of another shape. Give "
            "labels(columns) as many texts as there are components."
        )
    missing = np.isnan(values)
    return np.where(missing, 0.0, values), not missing.any()
