"""The command of depth values: `pymc-dpdepth depth data.csv --at points.csv --epsilon 1`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pymc_dpdepth.cli_ledger import names_of, open_for_charges
from pymc_dpdepth.cli_messages import in_options, one_line_errors, show

if TYPE_CHECKING:
    from pymc_dpdepth.record import Release

__all__ = ["depth"]

POINTS, MECHANISM, BUDGET, OUTPUT = "What is released", "Mechanism", "Budget", "Output"


def _option(panel: str, description: str, metavar: str | None = None, *names: str) -> Any:
    """Return an option that the help lists under a heading."""
    return typer.Option(*names, rich_help_panel=panel, help=description, metavar=metavar)


def depth(
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="Private table with one row for each person: .csv or .parquet.")
    ],
    at: Annotated[
        Path, typer.Option(metavar="FILE", help="Public table of points, chosen without the data: .csv or .parquet.")
    ],
    epsilon: Annotated[float, typer.Option(metavar="NUMBER", help="Privacy loss of all values together, above 0.")],
    delta: Annotated[
        float, typer.Option(metavar="NUMBER", help="0: Laplace noise. Above 0, far below 1/n: Gaussian noise.")
    ] = 0.0,
    columns: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Columns to use, separated by commas; by default all.")
    ] = None,
    clamp: Annotated[
        bool, _option(POINTS, "Bring noisy values into the range of the depth.", None, "--clamp/--no-clamp")
    ] = True,
    isotonic_from: Annotated[
        str | None,
        _option(POINTS, "Public point; values may not increase along rays from it.", "A,B,...", "--isotonic-from"),
    ] = None,
    depth_name: Annotated[
        str, _option(MECHANISM, "halfspace, integrated_rank_weighted, integrated_dual, ...", "NAME", "--depth")
    ] = "halfspace",
    smoothing: Annotated[float | None, _option(MECHANISM, "Smooth the integrated dual depth.", "NUMBER")] = None,
    directions: Annotated[
        str | None, _option(MECHANISM, "Directions of the depth: axes, or orthonormal (a random rotation).", "KIND")
    ] = None,
    directions_seed: Annotated[
        int, _option(MECHANISM, "Public seed of random directions; it is recorded.", "INTEGER")
    ] = 0,
    center: Annotated[
        str | None, _option(MECHANISM, "Public center of each column, for depths that depend on units.", "A,B,...")
    ] = None,
    scale: Annotated[str | None, _option(MECHANISM, "Public scale of each column.", "A,B,...")] = None,
    nonfinite: Annotated[
        str, _option(MECHANISM, "Missing entries: raise refuses them, center takes --center.", "WORD")
    ] = "raise",
    max_rows_per_unit: Annotated[
        int, _option(MECHANISM, "Most rows that one person may have; multiplies the cost.", "INTEGER")
    ] = 1,
    simulate_seed: Annotated[
        int | None,
        _option(MECHANISM, "Make a reproducible simulation instead of a release; it is not private.", "INTEGER"),
    ] = None,
    ledger: Annotated[
        Path | None,
        _option(BUDGET, "Charge the ledger in this file before noise is drawn; see pymc-dpdepth ledger.", "PATH"),
    ] = None,
    data_id: Annotated[
        str | None, _option(BUDGET, "The data set, by the name that its ledger has; another ledger is refused.", "NAME")
    ] = None,
    key: Annotated[
        Path | None, _option(BUDGET, "The secret key that the ledger was made with: it must be of this table.", "FILE")
    ] = None,
    label: Annotated[
        str | None, _option(BUDGET, "What the ledger calls the charge, by default depth; it is public.", "TEXT")
    ] = None,
    out: Annotated[Path | None, _option(OUTPUT, "Write the release, a JSON record, to this file.", "FILE")] = None,
    overwrite: Annotated[bool, _option(OUTPUT, "Replace files that exist.", None, "--overwrite")] = False,
) -> None:
    """Release the private depth of public points in a table.

    All values together cost EPSILON, or EPSILON and DELTA. The points, the columns and every option must be chosen
    without looking at the data; the number of rows is public. Bad input gets one line and exit code 2, before anything
    is charged or written.

    For instance:

    `pymc-dpdepth depth people.csv --at points.csv --columns age,income --epsilon 1 --out release.json`
    """
    from pymc_dpdepth import cli

    with one_line_errors():
        sources = {"the private table": data, "the points": at, "the ledger": ledger, "the key": key}
        cli._check_targets(sources, {"--out": out}, overwrite)
        request = {
            "epsilon": epsilon,
            "delta": delta,
            "clamp": clamp,
            "isotonic_from": None if isotonic_from is None else _numbers(isotonic_from, "--isotonic-from"),
            "standardize": _standardize(center, scale),
            "nonfinite": nonfinite,
            "max_rows_per_unit": max_rows_per_unit,
            "random_seed": simulate_seed,
            "ledger": open_for_charges(ledger, data_id, data, key),
            "label": label,
        }
        shape = (depth_name, smoothing, directions, directions_seed)
        release, notes = _draw(data, at, names_of(columns), shape, request, reread=key is not None)
        cli._write(release, out, None)
        show(release, {"record": out, "ledger charged": ledger})
        for note in notes:
            typer.echo(f"Note: {note}", err=True)


def _draw(
    data: Path, at: Path, columns, shape: tuple, request: dict[str, Any], *, reread: bool
) -> tuple[Release, list[str]]:
    """Read the tables and release; return the notes that the library made on the way as well.

    With `reread` the file is passed on, since a ledger with a key looks at columns that are not used, too.
    """
    from pymc_dpdepth import cli
    from pymc_dpdepth.errors import PrivacyLeakWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        from pymc_dpdepth.depth_values import private_depth
        from pymc_dpdepth.tables import read_table

        table = read_table(data, columns)
        if not len(table.rows):
            raise ValueError(f"Expected a row for each person; {data} has column names and no rows.")
        made = cli._depth(*shape, d=len(table.columns))
        rows = {"X": data, "columns": columns} if reread else {"X": table}
        release = private_depth(at, **rows, depth=made, **request)
    return release, [in_options(str(each.message)) for each in caught if issubclass(each.category, PrivacyLeakWarning)]


def _numbers(text: str, option: str) -> list[float]:
    """Return the numbers of an option, separated by commas."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{option}: expected numbers separated by commas, one for each column.") from None


def _standardize(center: str | None, scale: str | None) -> tuple[list[float], list[float]] | None:
    """Return the public center and scale, or None where neither is given."""
    if center is None and scale is None:
        return None
    if center is None or scale is None:
        raise ValueError("--center and --scale: expected both or neither; got one. Give the other as well.")
    return _numbers(center, "--center"), _numbers(scale, "--scale")
