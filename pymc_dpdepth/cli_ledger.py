"""The commands of a ledger: `pymc-dpdepth ledger init study.jsonl --epsilon 3 --data-id study-7`, and `ledger show`."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pymc_dpdepth.cli_messages import one_line_errors
from pymc_dpdepth.cli_options import names_of
from pymc_dpdepth.cli_output import print_facts, print_files, print_table

if TYPE_CHECKING:
    from pymc_dpdepth.privacy.ledger import Ledger

__all__ = ["ledger_app"]

ledger_app = typer.Typer(
    help=(
        "Make and read the ledger of a privacy budget.\n\nA ledger is the curator's, but holds public quantities only. "
        "`median --ledger PATH` charges it before it draws; asking twice charges twice."
    ),
    rich_markup_mode="markdown",
    no_args_is_help=True,
)

PathOfLedger = Annotated[Path, typer.Argument(metavar="PATH", help="The ledger, a file of JSON lines.")]


@ledger_app.command()
def init(
    path: PathOfLedger,
    data_id: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A public name of the data set whose budget this is, such as study-7."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Instead or besides: the table, named by a secret --key.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The curator's secret key; see pymc-dpdepth ledger key.")
    ] = None,
    columns: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="The columns of --data that count, by default all.")
    ] = None,
    epsilon: Annotated[float | None, typer.Option(metavar="NUMBER", help="The budget, above 0.")] = None,
    delta: Annotated[float, typer.Option(metavar="NUMBER", help="Its delta, below 1 / number of rows.")] = 0.0,
    rho: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="A budget in zero-concentrated privacy, instead of epsilon.")
    ] = None,
    composition: Annotated[
        str, typer.Option(metavar="NAME", help="How charges add up: auto, basic, zcdp, advanced or bounded_range.")
    ] = "auto",
    planned: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="The epsilons of all charges to come, for advanced and bounded_range."),
    ] = None,
    charge_delta: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="The part of delta for charges that have a delta.")
    ] = None,
) -> None:
    """Make a ledger with a budget, which is fixed from then on. An existing file is never overwritten.

    For instance:

    `pymc-dpdepth ledger init study.jsonl --epsilon 3 --data-id study-7`

    `pymc-dpdepth ledger init study.jsonl --epsilon 3 --data people.csv --key key.txt`
    """
    with one_line_errors("pymc_dpdepth.Ledger.create"):
        from pymc_dpdepth.privacy.ledger import Ledger

        if data_id is None and data is None and key is None:
            raise ValueError(
                "--data-id: expected the name of the data set, such as study-7, or --data FILE with a secret --key "
                "FILE, so that the budget of one data set is not spent on another."
            )

        ledger = Ledger.create(
            path,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            composition=composition,
            planned=None if planned is None else _numbers(planned),
            charge_delta=charge_delta,
            data_id=data_id,
            data=data,
            key=key,
            columns=names_of(columns),
        )
        _show(ledger)


@ledger_app.command()
def key(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The new file of the key.")],
) -> None:
    """Make a secret key, by which ledgers name tables without saying anything about them.

    Keep it apart from the ledgers and as secret as the table. An existing file is never overwritten. For instance:

    `pymc-dpdepth ledger key key.txt`
    """
    with one_line_errors("pymc_dpdepth.Ledger.create_key"):
        from pymc_dpdepth.privacy.ledger_data import create_key

        create_key(path)
        typer.echo(f"key: {path}")


@ledger_app.command()
def show(
    path: PathOfLedger,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show a ledger: the budget, what is spent, what is left, and each charge. The file is not changed.

    For instance:

    `pymc-dpdepth ledger show study.jsonl`
    """
    with one_line_errors("pymc_dpdepth.Ledger"):
        from pymc_dpdepth.privacy.ledger import Ledger

        ledger = Ledger(path)
        if as_json:
            typer.echo(json.dumps(_facts(ledger) | {"entries": ledger.entries()}, indent=2))
        else:
            _show(ledger)


# Columns of the table of entries: a field of an entry, and how rich shows it.
COLUMNS = {
    "number": {"justify": "right", "no_wrap": True},
    "time": {"header": "time (UTC)", "no_wrap": True},
    "label": {"overflow": "fold"},
    "group": {"overflow": "fold"},
    "epsilon": {"justify": "right", "no_wrap": True},
    "delta": {"justify": "right", "no_wrap": True},
}


SECONDS = len("2026-01-31T12:00:00")


def _facts(ledger: Ledger) -> dict[str, Any]:
    spent, remaining = dataclasses.asdict(ledger.spent()), dataclasses.asdict(ledger.remaining())
    return ledger.describe() | {"spent": spent, "remaining": remaining}


def _numbers(text: str) -> list[float]:
    """Return the numbers of --planned."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError("--planned: expected numbers separated by commas, such as 0.5,0.5,1.") from None


def _in_words(value: Any) -> str:
    """Return a fact as text; of several numbers, those that there are."""
    if not isinstance(value, dict):
        return str(value)
    names = {"draw_epsilon": "of one exponential-mechanism draw"}
    return ", ".join(f"{names.get(name, name)} {number}" for name, number in value.items() if number not in (None, ()))


def _show(ledger: Ledger) -> None:
    """Print budget, spent and remaining, then one row for each entry."""
    facts = {name.replace("_", " "): _in_words(fact) for name, fact in _facts(ledger).items() if fact is not None}
    print_facts(facts)
    entries = ledger.entries()
    if entries:
        for entry in entries:
            entry["time"] = (entry["time"] or "")[:SECONDS].replace("T", " ")
        cells = (("" if entry[name] is None else str(entry[name]) for name in COLUMNS) for entry in entries)
        print_table([{"header": name} | options for name, options in COLUMNS.items()], cells)
    print_files({"ledger": ledger.path})
