"""The command of the scale test: `pymc-dpdepth scale-test x.csv y.csv --epsilon 5`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pymc_dpdepth import cli_options as take
from pymc_dpdepth.cli_messages import one_line_errors
from pymc_dpdepth.cli_output import (
    check_targets,
    cost_facts,
    library_notes,
    print_facts,
    print_files,
    print_notes,
    write,
)

if TYPE_CHECKING:
    from pymc_dpdepth.scale_test import ScaleTest

__all__ = ["scale_test"]

TEST = "What is tested"

ALTERNATIVES_IN_WORDS = {
    "two-sided": "one of the samples is more spread out",
    "greater": "Y is more spread out than X",
    "less": "Y is less spread out than X",
}
NULLS_IN_WORDS = {
    "exact": "all choices of Y's rows, counted",
    "normal": "the normal law, corrected for ties and continuity",
}


def scale_test(
    x: Annotated[Path, typer.Argument(metavar="X", help="Private table of the first sample, one row for each person.")],
    y: Annotated[
        Path, typer.Argument(metavar="Y", help="Private table of the second sample, with the same column names.")
    ],
    epsilon: Annotated[float, typer.Option(metavar="NUMBER", help="Privacy loss of the test, above 0.")],
    delta: Annotated[
        float, typer.Option(metavar="NUMBER", help="0: Laplace noise. Above 0, far below 1/n: Gaussian noise.")
    ] = 0.0,
    columns: take.Columns = None,
    alternative: Annotated[
        str, take.option(TEST, "two-sided, greater (Y is more spread out than X) or less.", "WORD")
    ] = "two-sided",
    depth_name: take.DepthName = "integrated_rank_weighted",
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
    key: Annotated[
        Path | None,
        take.option(
            take.BUDGET,
            "The secret key that the ledger was made with: it must be of the columns used, the rows of both tables in "
            "one.",
            "FILE",
        ),
    ] = None,
    label: Annotated[str | None, take.label_option("scale_test")] = None,
    out: take.Out = None,
    overwrite: take.Overwrite = False,
) -> None:
    """Test privately whether one of two samples is more spread out, by the ranks of noisy depths.

    The test costs EPSILON, or EPSILON and DELTA, for both tables together. The alternative, the columns and every
    option must be chosen without looking at the data; the numbers of rows and their order are public. The noise is
    large: with hundreds of rows take an EPSILON of 5 or more. Bad input gets one line and exit code 2, before anything
    is charged or written.

    For instance:

    `pymc-dpdepth scale-test north.csv south.csv --columns height,weight --epsilon 5 --out test.json`
    """
    with one_line_errors("pymc_dpdepth.private_scale_test"):
        sources = {"the first table": x, "the second table": y, "the ledger": ledger, "the key": key}
        check_targets(sources, {"--out": out}, overwrite)
        request = {
            "epsilon": epsilon,
            "delta": delta,
            "alternative": alternative,
            "standardize": take.standardize_of(center, scale),
            "nonfinite": nonfinite,
            "max_rows_per_unit": max_rows_per_unit,
            "random_seed": simulate_seed,
        }
        shape = (depth_name, smoothing, directions, directions_seed)
        with library_notes() as notes:
            test = _test(x, y, take.names_of(columns), shape, (ledger, data_id, key, label), request)
        write(test, out)
        _show(test, {"record": out, "ledger charged": ledger})
        print_notes(notes)


def _test(
    x: Path, y: Path, columns: list[str] | None, shape: tuple, budget: tuple, request: dict[str, Any]
) -> ScaleTest:
    """Read the tables, open the ledger and test."""
    from pymc_dpdepth.scale_test import pooled_table, private_scale_test

    first = take.table_of(x, columns)
    second = take.table_of(y, list(first.columns))
    path, data_id, key, label = budget
    pooled = None if key is None else pooled_table(first, second)[0]
    ledger = take.open_for_charges(path, data_id, pooled, key, label)
    made = take.depth_of(*shape, d=len(first.columns))
    return private_scale_test(first, second, depth=made, ledger=ledger, **request)


def _show(test: ScaleTest, files: dict[str, Path | None]) -> None:
    """Print the outcome, then what it cost and what stands behind it."""
    outcome = {
        "p-value": f"{test.p_value:.6g}",
        "alternative": f"{test.alternative}: {ALTERNATIVES_IN_WORDS[test.alternative]}",
        "statistic": f"{test.statistic:,}, the rank sum of Y's noisy depths",
        "read from": f"{test.null}: {NULLS_IN_WORDS[test.null]}",
        "rows": f"{test.n:,} of X, {test.m:,} of Y",
    }
    print_facts(outcome | cost_facts(test.depths, "both tables"))
    print_files(files)
