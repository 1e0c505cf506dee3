"""Options that several commands take, and what is read from them.

A command annotates its parameters with the names below, as in `def extrema(data: Data, columns: Columns = None)`, and
reads their text with the functions. All errors name the option.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from pymc_dpdepth.budget import BudgetLedger
    from pymc_dpdepth.tables import Table

__all__ = [
    "BUDGET",
    "Center",
    "Columns",
    "Data",
    "DataId",
    "DepthName",
    "DirectionsKind",
    "DirectionsSeed",
    "Key",
    "LedgerPath",
    "MECHANISM",
    "MaxRowsPerUnit",
    "NonfiniteCenter",
    "OUTPUT",
    "Out",
    "Overwrite",
    "Scale",
    "SimulateSeed",
    "Smoothing",
    "depth_of",
    "directions_of",
    "label_option",
    "names_of",
    "numbers_of",
    "one_or_many",
    "open_for_charges",
    "option",
    "standardize_of",
    "table_of",
]

DIRECTIONS = "axes, orthonormal, uniform:M or balanced:M"

# Headings of the help.
MECHANISM, BUDGET, OUTPUT = "Mechanism", "Budget", "Output"


def option(panel: str, description: str, metavar: str | None = None, *names: str) -> Any:
    """Return an option that the help lists under a heading."""
    return typer.Option(*names, rich_help_panel=panel, help=description, metavar=metavar)


def label_option(default: str) -> Any:
    """Return the option --label of a command whose charges are called `default` by themselves."""
    return option(BUDGET, f"What the ledger calls the charge, by default {default}; it is public.", "TEXT")


Data = Annotated[
    Path, typer.Argument(metavar="DATA", help="Private table with one row for each person: .csv or .parquet.")
]
Columns = Annotated[
    str | None, typer.Option(metavar="A,B,...", help="Columns to use, separated by commas; by default all.")
]
DepthName = Annotated[
    str, option(MECHANISM, "halfspace, integrated_rank_weighted, integrated_dual, ...", "NAME", "--depth")
]
Smoothing = Annotated[float | None, option(MECHANISM, "Smooth the integrated dual depth.", "NUMBER")]
DirectionsKind = Annotated[
    str | None,
    option(MECHANISM, "axes, orthonormal (a random rotation), uniform:M or balanced:M (M random directions).", "KIND"),
]
DirectionsSeed = Annotated[int, option(MECHANISM, "Public seed of random directions; it is recorded.", "INTEGER")]
Center = Annotated[
    str | None, option(MECHANISM, "Public center of each column, for depths that depend on units.", "A,B,...")
]
Scale = Annotated[str | None, option(MECHANISM, "Public scale of each column.", "A,B,...")]
NonfiniteCenter = Annotated[
    str, option(MECHANISM, "Missing entries: raise refuses them, center takes --center.", "WORD")
]
MaxRowsPerUnit = Annotated[int, option(MECHANISM, "Most rows that one person may have; raises the cost.", "INTEGER")]
SimulateSeed = Annotated[
    int | None,
    option(MECHANISM, "Make a reproducible simulation instead of a release; it is not private.", "INTEGER"),
]
LedgerPath = Annotated[
    Path | None,
    option(BUDGET, "Charge the ledger in this file before anything is drawn; see pymc-dpdepth ledger.", "PATH"),
]
DataId = Annotated[
    str | None, option(BUDGET, "The data set, by the name that its ledger has; another ledger is refused.", "NAME")
]
Key = Annotated[
    Path | None, option(BUDGET, "The secret key that the ledger was made with: it must be of this table.", "FILE")
]
Out = Annotated[Path | None, option(OUTPUT, "Write the release, a JSON record, to this file.", "FILE")]
Overwrite = Annotated[bool, option(OUTPUT, "Replace files that exist.", None, "--overwrite")]


def names_of(columns: str | None) -> list[str] | None:
    """Return the names of --columns; one that holds a comma stands in double quotes, as in a CSV file."""
    if columns is None:
        return None
    fields = next(csv.reader([columns], skipinitialspace=True), [])
    names = [name.strip() for name in fields]
    if not names or not all(names):
        raise ValueError("--columns: expected names separated by commas, got an empty name.")
    return names


def numbers_of(text: str, option: str) -> list[float]:
    """Return the numbers of an option, separated by commas."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{option}: expected a number, or numbers separated by commas, one for each column.") from None


def one_or_many(text: str, option: str) -> float | list[float]:
    """Return one number for all columns, or one for each."""
    numbers = numbers_of(text, option)
    return numbers[0] if len(numbers) == 1 else numbers


def standardize_of(center: str | None, scale: str | None) -> tuple[list[float], list[float]] | None:
    """Return the public center and scale, or None where neither is given."""
    if center is None and scale is None:
        return None
    if center is None or scale is None:
        raise ValueError("--center and --scale: expected both or neither; got one. Give the other as well.")
    return numbers_of(center, "--center"), numbers_of(scale, "--scale")


def depth_of(name: str, smoothing: float | None, kind: str | None, seed: int, *, d: int) -> Any:
    """Return the depth of --depth, --smoothing, --directions and --directions-seed, for d columns."""
    import dataclasses

    from pymc_dpdepth.depths import as_depth

    depth = as_depth(name)
    fields = {field.name for field in dataclasses.fields(depth)}
    if smoothing is not None:
        if "smoothing" not in fields:
            raise ValueError(f"--smoothing: expected with --depth integrated_dual, got with {name}; leave it out.")
        depth = dataclasses.replace(depth, smoothing=smoothing)
    if kind is None:
        return depth
    if "directions" not in fields:
        raise ValueError(f"--directions: expected with a depth over directions, got with {name}; leave it out.")
    return dataclasses.replace(depth, directions=directions_of(kind, seed, d))


def directions_of(kind: str, seed: int, d: int) -> Any:
    """Return the directions of --directions and --directions-seed, for d columns."""
    from pymc_dpdepth.depths import Directions

    word, _, count = kind.partition(":")
    if kind == "axes":
        return Directions.axes(d)
    if kind == "orthonormal":
        return Directions.orthonormal(d, seed)
    if word not in ("uniform", "balanced") or not (count.isascii() and count.isdigit() and int(count)):
        raise ValueError(f"--directions: expected {DIRECTIONS}, M at least 1, such as uniform:100; got {kind!r}.")
    return (Directions.uniform if word == "uniform" else Directions.balanced)(d, int(count), seed)


def table_of(data: Path, columns: list[str] | None) -> Table:
    """Return the private table, which must have a row."""
    from pymc_dpdepth.tables import read_table

    table = read_table(data, columns)
    if not len(table.rows):
        raise ValueError(f"Expected a row for each person; {data} has column names and no rows.")
    return table


def open_for_charges(
    path: Path | None, data_id: str | None, data: Any = None, key: Path | None = None, label: str | None = None
) -> BudgetLedger | None:
    """Open the ledger of --ledger, for the data set that --data-id names or the table that --key does."""
    if path is None:
        for name, value in {"--data-id": data_id, "--key": key, "--label": label}.items():
            if value is not None:
                raise ValueError(f"{name}: expected with --ledger PATH, to which it belongs; leave it out.")
        return None
    if data_id is None and key is None:
        raise ValueError(
            "--ledger: expected with --data-id NAME, or with --key FILE where the ledger was made with a key, so that "
            "the budget of one data set is not spent on another. The name that a ledger has is shown by `pymc-dpdepth "
            f"ledger show {path}`."
        )
    from pymc_dpdepth.budget import labelled
    from pymc_dpdepth.privacy.ledger import Ledger

    return labelled(Ledger(path, data_id=data_id, data=None if key is None else data, key=key), label)
