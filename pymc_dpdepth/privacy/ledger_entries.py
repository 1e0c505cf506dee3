"""The lines of a ledger as charges: checked when they are read, and booked again by an accountant."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pymc_dpdepth.errors import BudgetExceededError
from pymc_dpdepth.privacy.accountant import PrivacyAccountant
from pymc_dpdepth.privacy.charges import read_charge
from pymc_dpdepth.privacy.ledger_arguments import check_neighboring
from pymc_dpdepth.privacy.ledger_file import CHARGE, TORN

__all__ = ["BUDGET", "accountant_of", "book", "check_header", "check_records", "stamp"]

# Fields of the header that make the accountant, and fields of a charge that it takes.
BUDGET = ("epsilon", "delta", "rho", "composition", "planned", "charge_delta")
COST = ("epsilon", "delta", "bounded_range", "group", "label")
NEWER = "It was written by a newer pymc_dpdepth or by another program; upgrade this one, or restore it from a backup."


def stamp() -> dict[str, str]:
    """Return time and version for a line. Entries are in the order of their numbers; a clock may go backwards."""
    from pymc_dpdepth import __version__

    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds")
    return {"time": now, "package_version": __version__}


def check_header(path: Path, header: dict[str, Any]) -> None:
    """Refuse a first line without a budget or an adjacency."""
    missing = [field for field in (*BUDGET, "neighboring") if field not in header]
    if missing:
        raise ValueError(f"Expected a budget and an adjacency in line 1 of {path}; it lacks {missing}. {NEWER}")
    try:
        check_neighboring(header["neighboring"])
    except ValueError as error:
        raise ValueError(f"Line 1 of {path}: {error} {NEWER}") from None


def check_records(path: Path, records: Iterable[dict[str, Any]]) -> None:
    """Refuse entries that are neither charges with a cost nor remains of a crash."""
    for record in records:
        if record.get("kind") not in (CHARGE, TORN):
            raise ValueError(f"Expected entries of the kinds {CHARGE} and {TORN}; {path} has another. {NEWER}")
        if record["kind"] == CHARGE:
            try:
                read_charge(**{field: record[field] for field in COST})
            except KeyError as error:
                raise ValueError(
                    f"Expected a charge as entry {record['number']} of {path}; it lacks {error}."
                ) from None
            except (TypeError, ValueError) as error:
                raise ValueError(f"Expected a charge as entry {record['number']} of {path}: {error} {NEWER}") from None


def accountant_of(path: Path, header: dict[str, Any]) -> PrivacyAccountant:
    """Return an accountant with the budget of a ledger, of which nothing is spent."""
    try:
        return PrivacyAccountant(**{field: header[field] for field in BUDGET})
    except (TypeError, ValueError) as error:  # of the same type: a plan may cost more than a newer version grants
        raise type(error)(f"The budget in line 1 of {path}: {error}") from None


def book(path: Path, accountant: PrivacyAccountant, records: Iterable[dict[str, Any]]) -> None:
    """Charge an accountant with entries that a ledger once granted."""
    for record in records:
        if record["kind"] == CHARGE:
            try:
                accountant.charge(**{field: record[field] for field in COST})
            except BudgetExceededError:  # it was granted once: by a version that composes in another way
                raise BudgetExceededError(
                    f"Expected entries that fit the budget of {path}; those up to number {record['number']} cost more, "
                    f"by pymc_dpdepth {stamp()['package_version']}; {record.get('package_version')} charged it. Treat "
                    "the budget as spent; ledger.entries() has all charges."
                ) from None
            except ValueError as error:
                raise ValueError(f"Entry {record['number']} of {path}: {error}") from None
