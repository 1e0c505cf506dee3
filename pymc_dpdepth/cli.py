"""The command line: `pymc-dpdepth median data.csv --columns a,b --epsilon 1 --prior "normal(0, 100)"`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

from pymc_dpdepth import cli_options as take
from pymc_dpdepth.cli_depth import depth
from pymc_dpdepth.cli_extrema import extrema
from pymc_dpdepth.cli_ledger import ledger_app
from pymc_dpdepth.cli_messages import REFUSED, one_line, one_line_errors
from pymc_dpdepth.cli_output import check_targets, library_notes, print_notes, show, write
from pymc_dpdepth.cli_ptr import ptr_median
from pymc_dpdepth.cli_scale import scale_test

if TYPE_CHECKING:
    from pymc_dpdepth.record import Release

__all__ = ["app"]

PRIOR = "Where the median may lie"


class OneLineErrors(typer.core.TyperGroup):
    """A command group whose usage errors are one line, like all others."""

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run; a usage error (a missing or malformed option) is told in one line with exit code 2."""
        if not standalone_mode:
            return super().main(*args, standalone_mode=False, **extra)
        try:
            code = super().main(*args, standalone_mode=False, **extra)
        except typer.Abort:
            code = 1
        except Exception as error:
            if not hasattr(error, "format_message"):
                raise
            if message := one_line(error.format_message()):  # empty without arguments: the help has been shown
                typer.echo(f"Error: {message.rstrip('.')}. See --help.", err=True)
            code = REFUSED
        sys.exit(code if isinstance(code, int) else 0)


app = typer.Typer(
    name="pymc-dpdepth",
    cls=OneLineErrors,
    help=(
        "Differentially private multivariate medians.\n\nErrors and notes are for the curator of the data: they may "
        "depend on private rows, so do not pass them on. What may leave is the release."
    ),
    rich_markup_mode="markdown",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(ledger_app, name="ledger")
app.command(name="ptr-median")(ptr_median)
app.command()(depth)
app.command(name="scale-test")(scale_test)
app.command()(extrema)


def _version(asked: bool) -> None:
    if asked:
        from pymc_dpdepth import __version__

        typer.echo(f"pymc-dpdepth {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Take the options that stand before a command."""


@app.command()
def median(
    data: take.Data,
    epsilon: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="Privacy loss of the release, above 0.")
    ] = None,
    delta: Annotated[
        float, typer.Option(metavar="NUMBER", help="Beside epsilon, far below 1/n; 0 is pure epsilon-DP.")
    ] = 0.0,
    rho: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="In place of epsilon: cost in zero-concentrated DP.")
    ] = None,
    columns: take.Columns = None,
    prior: Annotated[
        list[str] | None,
        take.option(PRIOR, 'A prior for all columns, "normal(0, 100)", or "COLUMN=normal(0, 100)" for each.', "PRIOR"),
    ] = None,
    lower: Annotated[
        str | None, take.option(PRIOR, "Lower ends of a uniform prior: a number, or one for each column.", "A,B,...")
    ] = None,
    upper: Annotated[str | None, take.option(PRIOR, "Its upper ends.", "A,B,...")] = None,
    depth: take.DepthName = "halfspace",
    smoothing: Annotated[
        float | None,
        take.option(take.MECHANISM, "Smooth the integrated dual depth, so that NUTS can be used.", "NUMBER"),
    ] = None,
    directions: take.DirectionsKind = None,
    directions_seed: take.DirectionsSeed = 0,
    sampler: Annotated[
        str,
        take.option(
            take.MECHANISM,
            "auto (exact where possible), segments, boxes, products, branch_and_bound, planar, concentrated, "
            "certified, nuts, slice, smc.",
            "NAME",
        ),
    ] = "auto",
    accept_asymptotic: Annotated[
        bool,
        take.option(
            take.MECHANISM, "Allow a Markov chain, whose epsilon is nominal, not proved.", None, "--accept-asymptotic"
        ),
    ] = False,
    nonfinite: Annotated[
        str, take.option(take.MECHANISM, "Missing entries: raise refuses them, prior takes the prior's median.", "WORD")
    ] = "raise",
    max_rows_per_unit: take.MaxRowsPerUnit = 1,
    simulate_seed: take.SimulateSeed = None,
    ledger: take.LedgerPath = None,
    data_id: take.DataId = None,
    key: take.Key = None,
    label: Annotated[str | None, take.label_option("median")] = None,
    out: take.Out = None,
    plot: Annotated[
        Path | None,
        take.option(take.OUTPUT, "Write a picture of release and prior, which may leave too.", "FILE.png"),
    ] = None,
    overwrite: take.Overwrite = False,
) -> None:
    """Release one private median of the columns of a table.

    The release costs EPSILON for all columns together, or EPSILON and DELTA, or RHO. The prior, the columns and every
    option must be chosen without looking at the data; the number of rows is public. Bad input gets one line and exit
    code 2, before anything is drawn or written.

    For instance:

    `pymc-dpdepth median people.csv --columns age,income --epsilon 1 --prior "age=uniform(0, 100)" --prior
    "income=lognormal(10, 1)" --out release.json`

    `pymc-dpdepth median people.csv --columns age,income --epsilon 1 --lower 0 --upper 100,200000`
    """
    with one_line_errors("pymc_dpdepth.private_median"):
        sources = {"the private table": data, "the ledger": ledger, "the key": key}
        check_targets(sources, {"--out": out, "--plot": plot}, overwrite)
        request = {
            "epsilon": epsilon,
            "delta": delta,
            "rho": rho,
            "sampler": sampler,
            "nonfinite": nonfinite,
            "max_rows_per_unit": max_rows_per_unit,
            "accept_asymptotic": accept_asymptotic,
            "random_seed": simulate_seed,
            "ledger": take.open_for_charges(ledger, data_id, data, key, label),
        }
        texts, shape = _prior_texts(prior, lower, upper), (depth, smoothing, directions, directions_seed)
        with library_notes() as notes:
            release = _release(data, take.names_of(columns), texts, shape, request, reread=key is not None)
        write(release, out, plot)
        show(release, {"record": out, "picture": plot, "ledger charged": ledger})
        print_notes(notes)


def _release(
    data: Path, columns: list[str] | None, texts: list[str], shape: tuple, request: dict[str, Any], *, reread: bool
) -> Release:
    """Read the table and draw.

    With `reread` the file is passed on, since a ledger with a key looks at columns that are not used, too.
    """
    from pymc_dpdepth.median import private_median
    from pymc_dpdepth.prior_strings import parse_priors

    table = take.table_of(data, columns)
    return private_median(
        data if reread else table,
        columns=columns if reread else None,
        prior=parse_priors(texts, table.columns),
        depth=take.depth_of(*shape, d=len(table.columns)),
        # A bar counts steps, which depend on the rows; what is piped on is the release alone.
        progressbar=sys.stdout.isatty(),
        **request,
    )


def _prior_texts(prior: list[str] | None, lower: str | None, upper: str | None) -> list[str]:
    """Return the prior as text, from --prior or from the ends of a box."""
    if prior and (lower is not None or upper is not None):
        raise ValueError("Expected either --prior, or --lower and --upper; got both. Leave one out.")
    if prior:
        return prior
    if lower is None or upper is None:
        raise ValueError(
            "Expected where the median may lie, chosen without the data; got neither --prior (such as "
            '"normal(0, 100)") nor both --lower and --upper.'
        )
    return [f"uniform({_ends(lower, '--lower')}, {_ends(upper, '--upper')})"]


def _ends(text: str, option: str) -> str:
    """Return numbers separated by commas as prior text."""
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{option}: expected a number, or numbers separated by commas, one for each column.") from None
    return repr(numbers[0]) if len(numbers) == 1 else repr(numbers)


if __name__ == "__main__":
    app()
