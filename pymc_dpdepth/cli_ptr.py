"""The command of propose-test-release: `pymc-dpdepth ptr-median data.csv --epsilon 2 --delta 1e-6 ...`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pymc_dpdepth import cli_options as take
from pymc_dpdepth.cli_messages import one_line_errors
from pymc_dpdepth.cli_output import check_targets, library_notes, print_notes, show, write

if TYPE_CHECKING:
    from pymc_dpdepth.record import Release

__all__ = ["ptr_median"]

WHERE = "Where the median may lie"
NO_CAP = "none"


def ptr_median(
    data: take.Data,
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
        str, take.option(WHERE, "How far from the center it may lie: a number, or one for each column.", "A,B,...")
    ],
    columns: take.Columns = None,
    center: Annotated[
        str, take.option(WHERE, "Public center: a number, or one for each column.", "A,B,...", "--center")
    ] = "0",
    scale: Annotated[str, take.option(take.MECHANISM, "Scale of the outlyingness: mad or iqr.", "NAME")] = "mad",
    directions: take.DirectionsKind = "axes",
    directions_seed: take.DirectionsSeed = 0,
    cap: Annotated[
        str, take.option(take.MECHANISM, "Outlyingness above it counts as it: a number, auto (2) or none.", "NUMBER")
    ] = "auto",
    noise: Annotated[str, take.option(take.MECHANISM, "Noise of the test: laplace or gaussian.", "NAME")] = "laplace",
    sampler: Annotated[
        str, take.option(take.MECHANISM, "auto (exact in up to 5 columns), branch_and_bound or smc.", "NAME")
    ] = "auto",
    accept_asymptotic: Annotated[
        bool,
        take.option(
            take.MECHANISM, "Allow sequential Monte Carlo beyond 5 columns; its epsilon is nominal, not proved."
        ),
    ] = False,
    nonfinite: take.NonfiniteCenter = "raise",
    max_rows_per_unit: take.MaxRowsPerUnit = 1,
    simulate_seed: take.SimulateSeed = None,
    ledger: take.LedgerPath = None,
    data_id: take.DataId = None,
    key: take.Key = None,
    label: Annotated[str | None, take.label_option("projection_median")] = None,
    out: take.Out = None,
    overwrite: take.Overwrite = False,
) -> None:
    """Release the projection-depth median, where a private test finds it stable.

    It costs EPSILON and DELTA, also where the test refuses: a refusal is an output, with exit code 0, and its record
    is written. Every option must be chosen without looking at the data; pymc_dpdepth.ptr.suggest_threshold in Python
    finds a threshold on synthetic rows. Bad input gets one line and exit code 2, before anything is charged.

    For instance:

    `pymc-dpdepth ptr-median people.csv --columns height,weight --epsilon 2 --delta 1e-6 --threshold 0.02 --center
    170,75 --radius 50,60 --out release.json`
    """
    with one_line_errors("pymc_dpdepth.propose_test_release"):
        sources = {"the private table": data, "the ledger": ledger, "the key": key}
        check_targets(sources, {"--out": out}, overwrite)
        request = {
            "epsilon": _epsilon(epsilon),
            "delta": delta,
            "threshold": threshold,
            "radius": take.one_or_many(radius, "--radius"),
            "center": take.one_or_many(center, "--center"),
            "cap": cap if cap == "auto" else None if cap == NO_CAP else take.one_or_many(cap, "--cap"),
            "noise": noise,
            "sampler": sampler,
            "accept_asymptotic": accept_asymptotic,
            "nonfinite": nonfinite,
            "max_rows_per_unit": max_rows_per_unit,
            "random_seed": simulate_seed,
            "ledger": take.open_for_charges(ledger, data_id, data, key, label),
        }
        shape = scale, directions, directions_seed
        with library_notes() as notes:
            release = _release(data, take.names_of(columns), shape, request, reread=key is not None)
        write(release, out)
        show(release, {"record": out, "ledger charged": ledger})
        print_notes(notes)


def _release(
    data: Path,
    columns: list[str] | None,
    shape: tuple[str, str, int],
    request: dict[str, Any],
    *,
    reread: bool,
) -> Release:
    """Read the table and release.

    With `reread` the file is passed on, since a ledger with a key looks at columns that are not used, too.
    """
    from pymc_dpdepth.depths import Projection
    from pymc_dpdepth.ptr import propose_test_release

    scale, kind, seed = shape
    table = take.table_of(data, columns)
    # A number alone is so many uniform directions.
    kind = f"uniform:{kind}" if kind.isdigit() else kind
    depth = Projection(scale, take.directions_of(kind, seed, len(table.columns)))
    rows = {"X": data, "columns": columns} if reread else {"X": table}
    # A bar counts steps, which depend on the rows.
    return propose_test_release(**rows, depth=depth, progressbar=False, **request)


def _epsilon(text: str) -> float | tuple[float, ...]:
    """Return the total, or the parts of test and release."""
    numbers = take.numbers_of(text, "--epsilon")
    return numbers[0] if len(numbers) == 1 else tuple(numbers)
