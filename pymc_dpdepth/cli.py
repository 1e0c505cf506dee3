"""The command line: `pymc-dpdepth median data.csv --columns a,b --epsilon 1 --prior "normal(0, 100)"`."""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

if TYPE_CHECKING:
    from pymc_dpdepth.record import Release

__all__ = ["app"]

USAGE_ERROR = 2
MEANINGS = {
    "float64": "exact in real arithmetic, run in doubles",
    "asymptotic": "a Markov chain: epsilon is nominal",
}


class OneLineErrors(typer.core.TyperGroup):
    """A command group whose usage errors are one line, like all others."""

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run; a usage error (a missing or malformed option) is told in one line with exit code 2."""
        if not standalone_mode:
            return super().main(*args, standalone_mode=False, **extra)
        try:
            code = super().main(*args, standalone_mode=False, **extra)
        except Exception as error:
            if not hasattr(error, "format_message"):
                raise
            message = " ".join(error.format_message().split())
            if message:  # without arguments the help has been shown
                typer.echo(f"Error: {message.rstrip('.')}. See --help.", err=True)
            code = USAGE_ERROR
        sys.exit(code if isinstance(code, int) else 0)


app = typer.Typer(
    name="pymc-dpdepth",
    cls=OneLineErrors,
    help="Differentially private multivariate medians. Errors and notes are for the curator of the data alone.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@contextmanager
def one_line_errors():
    """Turn what the library refuses, and anything unexpected, into one line on standard error and exit code 2."""
    try:
        yield
    except (typer.Exit, typer.Abort):
        raise
    except Exception as error:  # noqa: BLE001
        fail(str(error) or type(error).__name__)


def fail(message: str) -> None:
    """Print one line on standard error and leave with exit code 2."""
    typer.echo(f"Error: {' '.join(message.split())}", err=True)
    raise typer.Exit(USAGE_ERROR)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"pymc-dpdepth {version('pymc_dpdepth')}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Differentially private multivariate medians. Errors and notes are for the curator of the data alone."""


@app.command()
def median(
    data: Annotated[Path, typer.Argument(help="CSV or Parquet file, one row for each person.")],
    epsilon: Annotated[float, typer.Option(help="Privacy loss of the release, above 0.")],
    columns: Annotated[str | None, typer.Option(help="Columns to use, separated by commas; by default all.")] = None,
    prior: Annotated[
        list[str] | None,
        typer.Option(help='Where the median may lie: "normal(0, 100)" for all, or "column=normal(0, 100)" for each.'),
    ] = None,
    lower: Annotated[
        str | None, typer.Option(help="Lower ends of a uniform prior: one number, or one a column.")
    ] = None,
    upper: Annotated[
        str | None, typer.Option(help="Upper ends of a uniform prior: one number, or one a column.")
    ] = None,
    depth: Annotated[str, typer.Option(help="halfspace, integrated_rank_weighted or integrated_dual.")] = "halfspace",
    sampler: Annotated[str, typer.Option(help="auto, segments, boxes, products, nuts, slice or smc.")] = "auto",
    nonfinite: Annotated[
        str, typer.Option(help="raise: refuse missing entries; prior: put its median there.")
    ] = "raise",
    max_rows_per_unit: Annotated[int, typer.Option(help="Rows that one person may have; multiplies the cost.")] = 1,
    accept_asymptotic: Annotated[
        bool, typer.Option("--accept-asymptotic", help="Allow a Markov chain where there is no exact sampler.")
    ] = False,
    simulate_seed: Annotated[
        int | None, typer.Option(help="Make a reproducible simulation, which is not private.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the Release as JSON to this file.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file of --out if it exists.")] = False,
) -> None:
    """Release one private median of the columns of a table.

    The prior says where the median may lie. Choose it, and the columns, without looking at the data. The number of rows
    is public. Exit code 2 means that nothing was drawn and nothing written.

    Example: pymc-dpdepth median people.csv --columns age,income --epsilon 1 --prior "age=uniform(0, 100)" --prior
    "income=lognormal(10, 1)" --out release.json
    """
    with one_line_errors():
        if out is not None:
            check_target(out, overwrite)
        with plain_notes():
            release = _release(
                data,
                _names(columns),
                _prior_texts(prior, lower, upper),
                {
                    "epsilon": epsilon,
                    "depth": depth,
                    "sampler": sampler,
                    "nonfinite": nonfinite,
                    "max_rows_per_unit": max_rows_per_unit,
                    "accept_asymptotic": accept_asymptotic,
                    "random_seed": simulate_seed,
                },
            )
        if out is not None:
            release.to_json(out)
        show(release, out)


def _release(data: Path, columns: list[str] | None, prior: Any, settings: dict[str, Any]) -> Release:
    """Read the table, then draw."""
    from pymc_dpdepth.median import private_median
    from pymc_dpdepth.prior_strings import parse_priors
    from pymc_dpdepth.tables import read_table

    table = read_table(data, columns)
    if not len(table.rows):
        raise ValueError(f"{data} has no rows, so there is nothing to release; expected one row for each person.")
    return private_median(
        table, prior=prior if isinstance(prior, str) else parse_priors(prior, table.columns), **settings
    )


def _names(columns: str | None) -> list[str] | None:
    if columns is None:
        return None
    names = [name.strip() for name in columns.split(",")]
    if not all(names):
        raise ValueError("--columns: expected names separated by commas, got an empty name.")
    return names


def _prior_texts(prior: list[str] | None, lower: str | None, upper: str | None) -> str | list[str]:
    """Return the prior as text, from --prior or from the ends of a box."""
    if prior and (lower is not None or upper is not None):
        raise ValueError("Expected either --prior or --lower and --upper, got both; leave one out.")
    if prior:
        return prior[0] if len(prior) == 1 and _is_plain(prior[0]) else prior
    if lower is None or upper is None:
        raise ValueError(
            "Expected where the median may lie, chosen without the data, got neither --prior (such as "
            '"normal(0, 100)") nor both --lower and --upper.'
        )
    return f"uniform({_ends(lower, '--lower')}, {_ends(upper, '--upper')})"


def _is_plain(text: str) -> bool:
    """Whether a text is a prior without a column before it."""
    return text.split("(")[0].strip().replace("_", "").isalnum()


def _ends(text: str, option: str) -> str:
    """Return numbers separated by commas as prior text."""
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{option}: expected a number, or numbers separated by commas, one for each column.") from None
    return repr(numbers[0]) if len(numbers) == 1 else repr(numbers)


def check_target(out: Path, overwrite: bool) -> None:
    """Refuse a file that could not be written, before anything is drawn."""
    if out.is_dir():
        raise ValueError(f"--out: expected a file, got the folder {out}.")
    if out.exists() and not overwrite:
        raise ValueError(f"--out: {out} exists; choose another name, or pass --overwrite.")
    if not out.parent.is_dir():
        raise ValueError(f"--out: the folder {out.parent} does not exist; make it first.")
    if not os.access(out.parent, os.W_OK):
        raise ValueError(f"--out: the folder {out.parent} cannot be written to.")


@contextmanager
def plain_notes():
    """Print the package's warnings as one line each; hide what other libraries warn of."""
    from pymc_dpdepth.errors import ApproximateSamplingWarning, PrivacyLeakWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        if issubclass(warning.category, ApproximateSamplingWarning | PrivacyLeakWarning):
            typer.echo(f"Note: {' '.join(str(warning.message).split())}", err=True)


def show(release: Release, out: Path | None) -> None:
    """Print the Release as a table and a few lines."""
    from rich.console import Console
    from rich.table import Table

    console = Console(file=sys.stdout)
    table = Table()
    table.add_column("column", overflow="fold")
    table.add_column("released value", justify="right", no_wrap=True)
    value = release.value
    for name, number in zip(value.coords["coordinate"].values, value.values, strict=True):
        table.add_row(str(name), repr(float(number)))
    console.print(table)
    console.print(f"epsilon spent: {release.epsilon:g}, delta: {release.delta:g}", highlight=False)
    console.print(f"guarantee: {release.guarantee} ({MEANINGS[release.guarantee]})", highlight=False)
    console.print(f"sampler: {release.sampler}; neighbours differ in one replaced row", highlight=False)
    if release.simulation:
        console.print("This is a simulation: it was seeded and is not private.", highlight=False)
    if out is not None:
        console.print(f"written: {out}", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    app()
