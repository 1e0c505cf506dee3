"""What a ledger is given: each argument checked and brought into the form that the file keeps."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pymc_dpdepth.privacy import ledger_data
from pymc_dpdepth.privacy.rounding import float_above, float_below, number

__all__ = [
    "NEIGHBORING",
    "REPLACE_ONE",
    "absolute_path",
    "amount",
    "amounts",
    "budget_as_written",
    "check_neighboring",
    "check_same_data",
    "check_same_neighboring",
    "name_of_data",
    "public_text",
]

REPLACE_ONE = "replace_one"
NEIGHBORING = (REPLACE_ONE, "add_or_remove_one")
LONGEST_TEXT = 1000  # characters of a label or a name; longer ones are no labels but data that went astray


def absolute_path(path: Any) -> Path:
    """Return the path of a file, whatever the working folder will be."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path: expected the name of a file, got {type(path).__name__}.")
    if not os.fspath(path):
        raise ValueError('path: expected the name of a file, got empty text. Give one such as "study.jsonl".')
    return Path(path).absolute()


def amount(name: str, value: Any, round_to_double: Any = float_above, *, zero: bool = False) -> float:
    """Return a finite number > 0, or with `zero` >= 0, as the double that is written.

    A fraction is rounded to the safe side.
    """
    kept = number(value, name, zero=zero)
    return kept if isinstance(kept, float) else round_to_double(kept)


def amounts(name: str, values: Any) -> tuple[float, ...]:
    """Return finite numbers > 0 as doubles."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"{name}: expected a tuple of epsilons, such as (0.5, 0.5), got {type(values).__name__}.")
    return tuple(amount(name, value) for value in values)


def budget_as_written(budget: dict[str, Any]) -> dict[str, float | None]:
    """Return the numbers of a budget as doubles, fractions rounded downwards; None stays None."""
    return {
        field: None if value is None else amount(field, value, float_below, zero=field not in ("epsilon", "rho"))
        for field, value in budget.items()
    }


def public_text(name: str, value: Any) -> str:
    """Return text of a reasonable length."""
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected text, got {type(value).__name__}.")
    if not value or len(value) > LONGEST_TEXT:
        raise ValueError(f"{name}: expected 1 to {LONGEST_TEXT:,} characters, got {len(value):,}; choose another.")
    return value


def name_of_data(data_id: str | None, data: Any, key: Any, columns: Any = None) -> dict[str, str]:
    """Return the names of the data set that can be told from what was given; `columns` are those of the fingerprint."""
    if (data is None) != (key is None):
        raise ValueError("data and key: expected both, or neither; rows are named with a secret key alone.")
    name = {} if data_id is None else {"data_id": public_text("data_id", data_id)}
    return name if data is None else name | {"data_hmac": ledger_data.fingerprint(data, key, columns)}


def check_neighboring(neighboring: str) -> None:
    """Refuse what is not the name of an adjacency."""
    if neighboring not in NEIGHBORING:
        raise ValueError(f"neighboring: expected one of {NEIGHBORING}, got {neighboring!r}.")


def check_same_data(path: Path, header: dict[str, Any], name: dict[str, str]) -> None:
    """Refuse a ledger of another data set. Fingerprints are not shown."""
    for field, wanted in name.items():
        found = header.get(field)
        if found is None:
            other = "a fingerprint; pass data= and key= (--key)" if field == "data_id" else "data_id"
            raise ValueError(f"Expected a ledger with {field}; {path} names its data set by {other}.")
        if found != wanted:
            shown = f"data_id={wanted!r}; {path} is of {found!r}" if field == "data_id" else "these rows and this key"
            raise ValueError(
                f"Expected the ledger of {shown}. Open the ledger of this data set, or make one with Ledger.create."
            )


def check_same_neighboring(path: Path, header: dict[str, Any], neighboring: str | None) -> None:
    """Refuse a ledger of another adjacency."""
    if neighboring is not None and neighboring != header["neighboring"]:
        raise ValueError(
            f"Expected a ledger for neighboring={neighboring!r}; {path} is for {header['neighboring']!r}. Costs of the "
            "two do not add up; make a ledger for each."
        )
