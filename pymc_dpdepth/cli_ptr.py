"""The command of propose-test-release: `pymc-dpdepth ptr-median data.csv --epsilon 2 --delta 1e-6 ...`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pymc_dpdepth.cli_ledger import names_of, open_for_charges
from pymc_dpdepth.cli_messages import in_options, one_line_errors, show

if TYPE_CHECKING:
    from pymc_dpdepth.record import Release

__all__ = ["ptr_median"]

WHERE, MECHANISM, BUDGET, OUTPUT = "Where the median may lie", "Mechanism", "Budget", "Output"
NO_CAP = "none"


def _option(panel: str, description: str, metavar: str | None = None, *names: str) -> Any:
    """Return an option that the help lists under a heading."""
    return typer.Option(*names, rich_help_panel=panel, help=description, metavar=metavar)


def ptr_median(
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="Private table with one row for each person: .csv or .parquet.")
    ],
    epsilon: Annotated[
        str, typer.Option(metavar="NUMBER", help='Privacy loss, half of it for the test; or "TEST,RELEASE".')
    ],
    delta: Annotated[float, typer.Option(metavar="NUMBER", help="Far below 1/n, such as 1e-6.")],
    threshold: Annotated[
        float,
        typer.Option(
            metavar="NUMBER", help="How far outlyingnesses may move; chosen on synthetic rows, never on DATA."
        ),
    ],
    radius: Annotated[
        str, _option(WHERE, "How far from the center it may lie: a number, or one for each column.", "A,B,...")
    ],
    columns: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Columns to use, separated by commas; by default all.")
    ] = None,
    center: Annotated[
        str, _option(WHERE, "Public center: a number, or one for each column.", "A,B,...", "--center")
    ] = "0",
    scale: Annotated[str, _option(MECHANISM, "Scale of the outlyingness: mad or iqr.", "NAME")] = "mad",
    directions: Annotated[
        int | None, _option(MECHANISM, "Number of random directions; by default the axes.", "INTEGER")
    ] = None,
    directions_seed: Annotated[
        int, _option(MECHANISM, "Public seed of random directions; it is recorded.", "INTEGER")
    ] = 0,
    cap: Annotated[
        str, _option(MECHANISM, "Outlyingness above it counts as it: a number, auto (2) or none.", "NUMBER")
    ] = "auto",
    noise: Annotated[str, _option(MECHANISM, "Noise of the test: laplace or gaussian.", "NAME")] = "laplace",
    accept_asymptotic: Annotated[
        bool,
        _option(MECHANISM, "Allow sequential Monte Carlo beyond 5 columns; its epsilon is nominal, not proved."),
    ] = False,
    nonfinite: Annotated[
        str, _option(MECHANISM, "Missing entries: raise refuses them, center takes --center.", "WORD")
    ] = "raise",
    max_rows_per_unit: Annotated[
        int, _option(MECHANISM, "Most rows that one person may have; raises the cost.", "INTEGER")
    ] = 1,
    simulate_seed: Annotated[
        int | None,
        _option(MECHANISM, "Make a reproducible simulation instead of a release; it is not private.", "INTEGER"),
    ] = None,
    ledger: Annotated[
        Path | None,
        _option(BUDGET, "Charge the ledger in this file before the test; see pymc-dpdepth ledger.", "PATH"),
    ] = None,
    data_id: Annotated[
        str | None, _option(BUDGET, "The data set, by the name that its ledger has; another ledger is refused.", "NAME")
    ] = None,
    key: Annotated[
        Path | None, _option(BUDGET, "The secret key that the ledger was made with: it must be of this table.", "FILE")
    ] = None,
    out: Annotated[Path | None, _option(OUTPUT, "Write the release, a JSON record, to this file.", "FILE")] = None,
    overwrite: Annotated[bool, _option(OUTPUT, "Replace files that exist.", None, "--overwrite")] = False,
) -> None:
    """Release the projection-depth median, where a private test finds it stable.

    It costs EPSILON and DELTA, also where the test refuses: a refusal is an output, with exit code 0, and its record
    is written. Every option must be chosen without looking at the data; pymc_dpdepth.ptr.suggest_threshold in Python
    finds a threshold on synthetic rows. Bad input gets one line and exit code 2, before anything is charged.

    For instance:

    `pymc-dpdepth ptr-median people.csv --columns height,weight --epsilon 2 --delta 1e-6 --threshold 0.02 --center
    170,75 --radius 50,60 --out release.json`
    """
    from pymc_dpdepth import cli

    with one_line_errors():
        sources = {"the private table": data, "the ledger": ledger, "the key": key}
        cli._check_targets(sources, {"--out": out}, overwrite)
        request = {
            "epsilon": _epsilon(epsilon),
            "delta": delta,
            "threshold": threshold,
            "radius": _one_or_many(radius, "--radius"),
            "center": _one_or_many(center, "--center"),
            "cap": cap if cap == "auto" else None if cap == NO_CAP else _one_or_many(cap, "--cap"),
            "noise": noise,
            "accept_asymptotic": accept_asymptotic,
            "nonfinite": nonfinite,
            "max_rows_per_unit": max_rows_per_unit,
            "random_seed": simulate_seed,
            "ledger": open_for_charges(ledger, data_id, data, key),
        }
        shape = scale, directions, directions_seed
        release, notes = _draw(data, names_of(columns), shape, request, reread=key is not None)
        cli._write(release, out, None)
        files = {"record": out, "ledger charged": ledger}
        if release.refused:
            _show_refusal(release, files)
        else:
            show(release, files)
        for note in notes:
            typer.echo(f"Note: {note}", err=True)


def _draw(
    data: Path, columns, shape: tuple[str, int | None, int], request: dict[str, Any], *, reread: bool
) -> tuple[Release, list[str]]:
    """Read the table and release; return the notes that the library made on the way as well.

    With `reread` the file is passed on, since a ledger with a key looks at columns that are not used, too.
    """
    from pymc_dpdepth.errors import ApproximateSamplingWarning, PrivacyLeakWarning

    scale, count, seed = shape
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        from pymc_dpdepth.depths import Directions, Projection
        from pymc_dpdepth.ptr import propose_test_release
        from pymc_dpdepth.tables import read_table

        table = read_table(data, columns)
        if not len(table.rows):
            raise ValueError(f"Expected a row for each person; {data} has column names and no rows.")
        depth = Projection(scale)
        if count is not None:
            depth = depth.with_directions(Directions.uniform(len(table.columns), count, seed))
        rows = {"X": data, "columns": columns} if reread else {"X": table}
        # A bar counts steps, which depend on the rows.
        release = propose_test_release(**rows, depth=depth, progressbar=False, **request)
    ours = (ApproximateSamplingWarning, PrivacyLeakWarning)
    return release, [in_options(str(each.message)) for each in caught if issubclass(each.category, ours)]


def _show_refusal(release: Release, files: dict[str, Path | None]) -> None:
    """Say that nothing was released and what that cost."""
    typer.echo("refused        The test found the median not stable enough at this threshold; no value is released.")
    typer.echo(f"epsilon spent  {release.epsilon:g}; delta {release.delta:g}")
    for label, path in files.items():
        if path is not None:
            typer.echo(f"{label}: {path}")
    if release.simulation:
        typer.echo("This was seeded. It is a simulation, not private and not a release.")


def _epsilon(text: str) -> float | tuple[float, ...]:
    """Return the total, or the parts of test and release."""
    numbers = _numbers(text, "--epsilon")
    return numbers[0] if len(numbers) == 1 else tuple(numbers)


def _one_or_many(text: str, option: str) -> float | list[float]:
    """Return one number for all columns, or one for each."""
    numbers = _numbers(text, option)
    return numbers[0] if len(numbers) == 1 else numbers


def _numbers(text: str, option: str) -> list[float]:
    """Return the numbers of an option, separated by commas."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{option}: expected a number, or numbers separated by commas.") from None
