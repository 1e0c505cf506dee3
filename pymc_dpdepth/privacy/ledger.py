"""A privacy budget on disk, shared by the processes and days over which one data set is used."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from pymc_dpdepth.errors import BudgetExceededError
from pymc_dpdepth.privacy import ledger_arguments as arguments
from pymc_dpdepth.privacy import ledger_data, ledger_entries, ledger_file
from pymc_dpdepth.privacy.accountant import PrivacyAccountant, PrivacyRemaining, PrivacySpent
from pymc_dpdepth.privacy.ledger_arguments import REPLACE_ONE, absolute_path, amount, amounts, public_text
from pymc_dpdepth.privacy.ledger_entries import BUDGET, stamp
from pymc_dpdepth.privacy.ledger_file import CHARGE, TORN, Contents, entry
from pymc_dpdepth.privacy.ledger_lock import locked, refused

__all__ = ["Ledger"]

PUBLIC_HEADER = (*BUDGET, "neighboring", "data_id", "data_columns", "created", "package_version")
SECONDS_TO_WAIT = 60.0

Answer = TypeVar("Answer")


class Ledger:
    r"""Keep the privacy budget of one data set in a file, from which it can never be spent twice.

    A charge is on disk before `charge` returns, and so before the draw that it pays for. A crash may waste budget; it
    never creates any. Processes, threads and `Ledger` objects may share the file: reading, checking and appending are
    done under a lock, so that together they never spend more than the budget.

    Parameters
    ----------
    path : path-like
        A ledger that `Ledger.create` or ``pymc-dpdepth ledger init`` made.
    data_id : str, optional
        The name of the data set. A ledger of another one is refused. To charge, `data_id` or `data` and `key` are
        needed; to read, neither.
    data : table, optional
        The rows themselves, in any form that `private_median` takes, with `key`: refused unless the ledger was made for
        exactly these rows, in any order.
    key : path-like or bytes, optional
        The curator's secret key; see `create_key`.
    neighboring : str, optional
        The adjacency. A ledger of another one is refused.
    timeout : float, default=60.0
        Seconds to wait while others hold the lock.

    Raises
    ------
    FileNotFoundError, IsADirectoryError, PermissionError
        If the file is not there, is a folder, or may not be read.
    ValueError
        If it is not a ledger, is of another data set or adjacency, comes from a newer version, or is damaged: a changed
        line may hide a charge, so nothing is granted from there on. An incomplete last line, as a crash leaves it of a
        charge that was never granted, is no damage: the next charge puts a record in its place that says so.
    TimeoutError
        If the lock does not come free.

    Notes
    -----
    The ledger is the curator's, but holds public quantities only: costs, labels, times, and a name of the data set that
    is chosen by you or made with a secret key, never a plain hash of the rows, with which anyone could test a guess of
    them. Labels are written as they are given, so they must not come from the rows.

    The data set is checked when the ledger is opened. A name is all that `data_id` compares: a ledger opened for one
    table and passed along with another is not noticed. With `key`, `private_median` and `private_depth` have the ledger
    check the very table that they were given (`check_data`); `release` of a model cannot, since a model no longer holds
    the table as it was.

    Asking twice charges twice: two draws reveal twice as much as one, whether or not the requests were the same.

    The sum is made by `PrivacyAccountant` with the composition that the header names. What the lines prove, and what
    they cannot: an edited, doubled, moved or missing line is noticed; lines missing at the end, as in an old backup or
    a copy, are not, and a last line that was cut off looks as if a crash had done it. Keep one file, and do not charge
    copies of it. The file must be on a disk whose file system locks files.

    Examples
    --------
    >>> import numpy as np, pymc_dpdepth as dpd
    >>> ledger = dpd.Ledger.create("study.jsonl", epsilon=3.0, data_id="study-7")
    >>> rows = np.linspace(20, 60, 500)
    >>> release = dpd.private_median(rows, epsilon=1.0, prior="normal(40, 30)", ledger=ledger)
    >>> [(entry["label"], entry["epsilon"]) for entry in dpd.Ledger("study.jsonl", data_id="study-7").entries()]
    [('median', 1.0)]
    """

    def __init__(
        self,
        path: str | os.PathLike,
        *,
        data_id: str | None = None,
        data: Any = None,
        key: str | os.PathLike | bytes | None = None,
        neighboring: str | None = None,
        timeout: float = SECONDS_TO_WAIT,
    ):
        self._path = absolute_path(path)
        self._timeout = amount("timeout", timeout, zero=True)
        if neighboring is not None:
            arguments.check_neighboring(neighboring)
        name = arguments.name_of_data(data_id, None, None)
        self._known: Contents | None = None
        self._accounts: dict[str, tuple[Contents, PrivacyAccountant]] = {}
        self._header = self._read().header
        name |= arguments.name_of_data(None, data, key, self._header.get("data_columns"))
        arguments.check_same_data(self._path, self._header, name)
        self._named, self._key = bool(name), key
        arguments.check_same_neighboring(self._path, self._header, neighboring)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike,
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
        rho: float | None = None,
        composition: str = "auto",
        planned: Iterable[float] | None = None,
        charge_delta: float | None = None,
        data_id: str | None = None,
        data: Any = None,
        key: str | os.PathLike | bytes | None = None,
        columns: Any = None,
        neighboring: str = REPLACE_ONE,
        timeout: float = SECONDS_TO_WAIT,
    ) -> Ledger:
        """Make the ledger of a data set, with a budget that is fixed from now on.

        Parameters
        ----------
        path : path-like
            A new file; an existing one is never overwritten.
        epsilon, delta, rho, composition, planned, charge_delta : optional
            The budget, and how costs add up, as `PrivacyAccountant` takes them.
        data_id : str, optional
            A public name of the data set, such as "study-7".
        data, key : optional
            The rows and the curator's secret key: names the data set by `fingerprint`, instead or in addition.
        columns : sequence of str, optional
            The columns of `data` that are fingerprinted; their names are written down. By default all.
        neighboring : {"replace_one", "add_or_remove_one"}
            The adjacency of all charges. What this package releases is for "replace_one".
        timeout : float
            As for `Ledger`.

        Returns
        -------
        Ledger
            Open, with nothing spent.

        Raises
        ------
        FileExistsError, FileNotFoundError
            If the file exists, or its folder does not.
        ValueError, TypeError, BudgetExceededError
            If the budget is not one or does not hold the plan, or the data set has no name. No file is made.
        """
        path = absolute_path(path)
        if columns is not None:
            if data is None:
                raise ValueError("columns: expected with data= and key=, whose columns they are; leave it out.")
            columns = [columns] if isinstance(columns, str) else list(columns)
        name = arguments.name_of_data(data_id, data, key, columns)
        if not name:
            raise ValueError(
                'data_id: expected the name of the data set, such as "study-7", so that the budget of one is not spent '
                "on another; got None. Or pass the rows as data= with a secret key=."
            )
        arguments.check_neighboring(neighboring)
        amount("timeout", timeout, zero=True)
        budget = {"epsilon": epsilon, "delta": delta, "rho": rho, "charge_delta": charge_delta}
        budget = arguments.budget_as_written(budget) | {"composition": composition}
        budget["planned"] = None if planned is None else amounts("planned", planned)
        PrivacyAccountant(**budget)  # refuses what is no budget
        name |= {} if columns is None else {"data_columns": columns}
        made = stamp()
        made["created"] = made.pop("time")
        ledger_file.create(path, budget | {"neighboring": neighboring} | name | made, timeout)
        ledger = cls(path, neighboring=neighboring, timeout=timeout)
        ledger._named, ledger._key = True, key
        return ledger

    create_key = staticmethod(ledger_data.create_key)
    fingerprint = staticmethod(ledger_data.fingerprint)

    def check_data(self, data: Any) -> None:
        """Refuse rows that are not those of the ledger, where it was opened with them and a key.

        Releases call this with the table that they were given, before they charge.

        Parameters
        ----------
        data : table
            As for `private_median`, with all columns that are fingerprinted.

        Raises
        ------
        ValueError, TypeError
            If they are other rows, or the ledger comes from another process and its key was no file.
        """
        if self._key is not None:
            columns = self._header.get("data_columns")
            arguments.check_same_data(self._path, self._header, arguments.name_of_data(None, data, self._key, columns))

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    def charge(
        self,
        *,
        epsilon: float,
        delta: float = 0.0,
        label: str,
        bounded_range: Iterable[float] = (),
        group: str | None = None,
        neighboring: str = REPLACE_ONE,
    ) -> dict[str, Any]:
        """Spend, durably: when this returns, the charge is on disk; when it raises, nothing is granted.

        Parameters
        ----------
        epsilon, delta : float
            The cost.
        label : str
            What it pays for. It is public and must not come from the rows.
        bounded_range : iterable of float, optional
            The same cost as single draws of exponential mechanisms with these epsilons, where it is one.
        group : str, optional
            Charges of disjoint groups of rows with public labels cost their largest sum.
        neighboring : str, default="replace_one"
            The adjacency for which the cost holds.

        Returns
        -------
        dict
            The entry; see `entries`.

        Raises
        ------
        BudgetExceededError
            If the budget does not suffice. Nothing is charged.
        ValueError, TypeError
            If an argument is not usable, the ledger was opened without naming the data set, or the file was damaged or
            replaced since.
        OSError, TimeoutError
            If the file cannot be written, or its lock does not come free.
        """
        delta = amount("delta", delta, zero=True)
        cost = {
            "epsilon": amount("epsilon", epsilon, zero=delta > 0),
            "delta": delta,
            "bounded_range": amounts("bounded_range", bounded_range),
            "group": None if group is None else public_text("group", group),
            "label": public_text("label", label),
        }
        arguments.check_neighboring(neighboring)
        arguments.check_same_neighboring(self._path, self._header, neighboring)
        if not self._named:
            raise ValueError(
                f"Expected a ledger that was opened for a data set; {self._path} was opened by its path alone, which "
                "is for reading. Open it with Ledger(path, data_id=...), or data= and key=, so that the budget of one "
                "data set is not spent on another."
            )
        if not self._accounts:
            self._ask(lambda accountant: None)  # books what there is before others have to wait for the lock
        written_at = stamp()
        with locked(self._path, write=True, timeout=self._timeout) as descriptor:
            contents = self._verified(descriptor)
            accountant = self._accountant(contents)
            try:
                accountant.charge(**cost)
            except BudgetExceededError as error:
                self._keep(contents, accountant)
                raise BudgetExceededError(
                    f"{error} Of this ledger, see ledger.remaining() and `pymc-dpdepth ledger show {self._path}`."
                ) from None
            try:
                written = ledger_file.append(
                    descriptor, contents, {"kind": CHARGE} | cost | written_at, {"kind": TORN} | written_at
                )
            except OSError as error:
                raise refused(error, f"The charge cannot be written to {self._path}") from None
            self._known = written
            self._keep(written, accountant)
        return entry(written.records[-1])

    def spent(self) -> PrivacySpent:
        """Return what all charges cost together, as `PrivacyAccountant.spent` does: epsilon, delta and rho."""
        return self._ask(PrivacyAccountant.spent)

    def remaining(self, group: str | None = None) -> PrivacyRemaining:
        """Return what one more charge may ask for, as `PrivacyAccountant.remaining` does; in a group, or of all."""
        if group is not None:
            public_text("group", group)
        return self._ask(lambda accountant: accountant.remaining(group))

    def entries(self) -> list[dict[str, Any]]:
        """Return the lines behind the header, oldest first; ``pandas.DataFrame(ledger.entries())`` is a table of them.

        Returns
        -------
        list of dict
            With number, kind, time, label, epsilon, delta, bounded_range, group, package_version. An entry of kind
            "torn" is an incomplete last line, as a crash leaves it of a charge that was never granted; it costs
            nothing.
        """
        contents = self._read()
        entries = [entry(record) for record in contents.records]
        if contents.tail:
            entries.append(entry({"kind": TORN, "number": len(entries) + 1, "bytes": len(contents.tail)}))
        return entries

    def describe(self) -> dict[str, Any]:
        """Return the public fields of the header: budget, composition, adjacency, name of the data set, origin."""
        return {field: self._header.get(field) for field in PUBLIC_HEADER}

    def __repr__(self) -> str:
        """Show what the ledger is for; neither charges nor the fingerprint."""
        fields = (*BUDGET, "neighboring", "data_id")
        shown = [f"{field}={self._header[field]!r}" for field in fields if self._header.get(field) is not None]
        return f"Ledger({str(self._path)!r}, {', '.join(shown)})"

    def _read(self) -> Contents:
        with locked(self._path, write=False, timeout=self._timeout) as descriptor:
            return self._verified(descriptor)

    def _verified(self, descriptor: int) -> Contents:
        """Read the file, and refuse one that is no longer what this object has read, which lines alone cannot tell."""
        known = self._known
        contents = ledger_file.read(descriptor, self._path, known)
        if known is None:
            ledger_entries.check_header(self._path, contents.header)
        elif not (contents.raw + b"\n").startswith(known.raw):
            raise ValueError(
                f"Expected {self._path} to have all lines that it had; some are gone, or it is another ledger now. "
                "Restore it from the latest backup; if another ledger is meant to be there, open that one anew."
            )
        ledger_entries.check_records(self._path, contents.records[0 if known is None else len(known.records) :])
        self._known = contents
        return contents

    def _ask(self, question: Callable[[PrivacyAccountant], Answer]) -> Answer:
        contents = self._read()
        accountant = self._accountant(contents)
        answer = question(accountant)
        self._keep(contents, accountant)
        return answer

    def _accountant(self, contents: Contents) -> PrivacyAccountant:
        """Return an accountant that was charged with all entries: the one of the last call where it can go on."""
        # Taken out while it is used, so that no two threads, and no forked child, charge the same object.
        known, accountant = self._accounts.pop("last", (None, None))
        if known is None or not contents.raw.startswith(known.raw):
            known, accountant = None, ledger_entries.accountant_of(self._path, contents.header)
        ledger_entries.book(self._path, accountant, contents.records[0 if known is None else len(known.records) :])
        return accountant

    def _keep(self, contents: Contents, accountant: PrivacyAccountant) -> None:
        """Keep an accountant that was charged with just these contents, for the next call."""
        self._accounts["last"] = contents, accountant

    def __getstate__(self) -> dict[str, Any]:
        """Leave the accountant behind, and a key that is not in a file; a copy makes its own from the file."""
        key = b"" if isinstance(self._key, bytes | bytearray) else self._key
        return self.__dict__ | {"_accounts": {}, "_key": key}
