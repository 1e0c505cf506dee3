"""The command of depth values: `pymc-dpdepth depth data.csv --at points.csv --epsilon 1`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pymc_dpdepth import cli_options as take
from pymc_dpdepth.cli_messages import one_line_errors
from pymc_dpdepth.cli_output import check_targets, library_notes, print_notes, show, write

if TYPE_CHECKING:
    from pymc_dpdepth.record import Release

__all__ = ["depth"]

POINTS = "What is released"


def depth(
    data: take.Data,
    at: Annotated[
        Path, typer.Option(metavar="FILE", help="Public table of points, chosen without the data: .csv or .parquet.")
    ],
    epsilon: Annotated[float, typer.Option(metavar="NUMBER", help="Privacy loss of all values together, above 0.")],
    delta: Annotated[
        float, typer.Option(metavar="NUMBER", help="0: Laplace noise. Above 0, far below 1/n: Gaussian noise.")
    ] = 0.0,
    columns: take.Columns = None,
    clamp: Annotated[
        bool, take.option(POINTS, "Bring noisy values into the range of the depth.", None, "--clamp/--no-clamp")
    ] = True,
    isotonic_from: Annotated[
        str | None,
        take.option(POINTS, "Public point; values may not increase along rays from it.", "A,B,...", "--isotonic-from"),
    ] = None,
    depth_name: take.DepthName = "halfspace",
    smoothing: take.Smoothing = None,
    directions: take.DirectionsKind = None,
    directions_seed: take.DirectionsSeed = 0,
    center: take.Center = None,
    scale: take.Scale = None,
    nonfinite: take.NonfiniteCenter = "raise",
    max_rows_per_unit: take.MaxRowsPerUnit = 1,
    simulate_seed: take.SimulateSeed = None,
    ledger: take.LedgerPath = None,
    data_id: take.DataId = None,
    key: take.Key = None,
    label: Annotated[str | None, take.label_option("depth")] = None,
    out: take.Out = None,
    overwrite: take.Overwrite = False,
) -> None:
    """Release the private depth of public points in a table.

    All values together cost EPSILON, or EPSILON and DELTA. The points, the columns and every option must be chosen
    without looking at the data; the number of rows is public. Bad input gets one line and exit code 2, before anything
    is charged or written.

    For instance:

    `pymc-dpdepth depth people.csv --at points.csv --columns age,income --epsilon 1 --out release.json`
    """
    with one_line_errors("pymc_dpdepth.private_depth"):
        sources = {"the private table": data, "the points": at, "the ledger": ledger, "the key": key}
        check_targets(sources, {"--out": out}, overwrite)
        request = {
            "epsilon": epsilon,
            "delta": delta,
            "clamp": clamp,
            "isotonic_from": None if isotonic_from is None else take.numbers_of(isotonic_from, "--isotonic-from"),
            "standardize": take.standardize_of(center, scale),
            "nonfinite": nonfinite,
            "max_rows_per_unit": max_rows_per_unit,
            "random_seed": simulate_seed,
            "ledger": take.open_for_charges(ledger, data_id, data, key, label),
        }
        shape = (depth_name, smoothing, directions, directions_seed)
        with library_notes() as notes:
            release = _release(data, at, take.names_of(columns), shape, request, reread=key is not None)
        write(release, out)
        show(release, {"record": out, "ledger charged": ledger})
        print_notes(notes)


def _release(
    data: Path, at: Path, columns: list[str] | None, shape: tuple, request: dict[str, Any], *, reread: bool
) -> Release:
    """Read the tables and release.

    With `reread` the file is passed on, since a ledger with a key looks at columns that are not used, too.
    """
    from pymc_dpdepth.depth_values import private_depth

    table = take.table_of(data, columns)
    made = take.depth_of(*shape, d=len(table.columns))
    rows = {"X": data, "columns": columns} if reread else {"X": table}
    return private_depth(at, **rows, depth=made, **request)
