"""The command line: `pymc-dpdepth median data.csv --columns a,b --epsilon 1 --prior "normal(0, 100)"`."""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

from pymc_dpdepth.cli_depth import depth
from pymc_dpdepth.cli_ledger import ledger_app
from pymc_dpdepth.cli_ledger import names_of as _names
from pymc_dpdepth.cli_ledger import open_for_charges as _ledger
from pymc_dpdepth.cli_messages import REFUSED, in_options, one_line, one_line_errors, show
from pymc_dpdepth.cli_ptr import ptr_median

if TYPE_CHECKING:
    from pymc_dpdepth.record import Release

__all__ = ["app"]

DIRECTIONS = ("axes", "orthonormal")


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


def _option(panel: str, description: str, metavar: str | None = None, *names: str) -> Any:
    """Return an option that the help lists under a heading."""
    return typer.Option(*names, rich_help_panel=panel, help=description, metavar=metavar)


PRIOR, MECHANISM, BUDGET, OUTPUT = "Where the median may lie", "Mechanism and sampler", "Budget", "Output"


@app.command()
def median(
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="Private table with one row for each person: .csv or .parquet.")
    ],
    epsilon: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="Privacy loss of the release, above 0.")
    ] = None,
    delta: Annotated[
        float, typer.Option(metavar="NUMBER", help="Beside epsilon, far below 1/n; 0 is pure epsilon-DP.")
    ] = 0.0,
    rho: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="In place of epsilon: cost in zero-concentrated DP.")
    ] = None,
    columns: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Columns to use, separated by commas; by default all.")
    ] = None,
    prior: Annotated[
        list[str] | None,
        _option(PRIOR, 'A prior for all columns, "normal(0, 100)", or "COLUMN=normal(0, 100)" for each.', "PRIOR"),
    ] = None,
    lower: Annotated[
        str | None, _option(PRIOR, "Lower ends of a uniform prior: a number, or one for each column.", "A,B,...")
    ] = None,
    upper: Annotated[str | None, _option(PRIOR, "Its upper ends.", "A,B,...")] = None,
    depth: Annotated[
        str, _option(MECHANISM, "halfspace, integrated_rank_weighted, integrated_dual, ...", "NAME")
    ] = "halfspace",
    smoothing: Annotated[
        float | None, _option(MECHANISM, "Smooth the integrated dual depth, so that NUTS can be used.", "NUMBER")
    ] = None,
    directions: Annotated[
        str | None, _option(MECHANISM, "Directions of the depth: axes, or orthonormal (a random rotation).", "KIND")
    ] = None,
    directions_seed: Annotated[
        int, _option(MECHANISM, "Public seed of random directions; it is recorded.", "INTEGER")
    ] = 0,
    sampler: Annotated[
        str,
        _option(
            MECHANISM, "auto (exact where possible), segments, boxes, products, concentrated, nuts, slice, smc.", "NAME"
        ),
    ] = "auto",
    accept_asymptotic: Annotated[
        bool,
        _option(MECHANISM, "Allow a Markov chain, whose epsilon is nominal, not proved.", None, "--accept-asymptotic"),
    ] = False,
    nonfinite: Annotated[
        str, _option(MECHANISM, "Missing entries: raise refuses them, prior takes the prior's median.", "WORD")
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
        _option(BUDGET, "Charge the ledger in this file before the draw; see pymc-dpdepth ledger.", "PATH"),
    ] = None,
    data_id: Annotated[
        str | None, _option(BUDGET, "The data set, by the name that its ledger has; another ledger is refused.", "NAME")
    ] = None,
    key: Annotated[
        Path | None, _option(BUDGET, "The secret key that the ledger was made with: it must be of this table.", "FILE")
    ] = None,
    label: Annotated[
        str | None, _option(BUDGET, "What the ledger calls the charge, by default median; it is public.", "TEXT")
    ] = None,
    out: Annotated[Path | None, _option(OUTPUT, "Write the release, a JSON record, to this file.", "FILE")] = None,
    plot: Annotated[
        Path | None, _option(OUTPUT, "Write a picture of release and prior, which may leave too.", "FILE.png")
    ] = None,
    overwrite: Annotated[bool, _option(OUTPUT, "Replace files that exist.", None, "--overwrite")] = False,
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
    with one_line_errors():
        sources = {"the private table": data, "the ledger": ledger, "the key": key}
        _check_targets(sources, {"--out": out, "--plot": plot}, overwrite)
        request = {
            "epsilon": epsilon,
            "delta": delta,
            "rho": rho,
            "sampler": sampler,
            "nonfinite": nonfinite,
            "max_rows_per_unit": max_rows_per_unit,
            "accept_asymptotic": accept_asymptotic,
            "random_seed": simulate_seed,
            "ledger": _ledger(ledger, data_id, data, key, label),
        }
        release, notes = _draw(
            data,
            _names(columns),
            _prior_texts(prior, lower, upper),
            (depth, smoothing, directions, directions_seed),
            request,
            reread=key is not None,
        )
        _write(release, out, plot)
        show(release, {"record": out, "picture": plot, "ledger charged": ledger})
        for note in notes:
            typer.echo(f"Note: {note}", err=True)


def _draw(
    data: Path, columns, texts: list[str], shape: tuple, request: dict[str, Any], *, reread: bool
) -> tuple[Release, list[str]]:
    """Read the table and draw; return the notes that the library made on the way as well.

    With `reread` the file is passed on, since a ledger with a key looks at columns that are not used, too.
    """
    from pymc_dpdepth.errors import ApproximateSamplingWarning, PrivacyLeakWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        from pymc_dpdepth.median import private_median
        from pymc_dpdepth.prior_strings import parse_priors
        from pymc_dpdepth.tables import read_table

        table = read_table(data, columns)
        if not len(table.rows):
            raise ValueError(f"Expected a row for each person; {data} has column names and no rows.")
        release = private_median(
            data if reread else table,
            columns=columns if reread else None,
            prior=parse_priors(texts, table.columns),
            depth=_depth(*shape, d=len(table.columns)),
            # A bar counts steps, which depend on the rows; what is piped on is the release alone.
            progressbar=sys.stdout.isatty(),
            **request,
        )
    ours = (ApproximateSamplingWarning, PrivacyLeakWarning)
    return release, [in_options(str(warning.message)) for warning in caught if issubclass(warning.category, ours)]


def _depth(name: str, smoothing: float | None, kind: str | None, seed: int, *, d: int) -> Any:
    """Return the depth of the options."""
    import dataclasses

    from pymc_dpdepth.depths import Directions, as_depth

    depth = as_depth(name)
    fields = {field.name for field in dataclasses.fields(depth)}
    if smoothing is not None:
        if "smoothing" not in fields:
            raise ValueError(f"--smoothing: expected with --depth integrated_dual, got with {name}; leave it out.")
        depth = dataclasses.replace(depth, smoothing=smoothing)
    if kind is None:
        return depth
    if kind not in DIRECTIONS or "directions" not in fields:
        raise ValueError(f"--directions: expected {' or '.join(DIRECTIONS)}, with a depth over directions; got {kind}.")
    return dataclasses.replace(
        depth, directions=Directions.axes(d) if kind == "axes" else Directions.orthonormal(d, seed)
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


def _check_targets(sources: dict[str, Path | None], targets: dict[str, Path | None], overwrite: bool) -> None:
    """Refuse files that could not be written, or must not be, before anything is drawn."""
    given = {option: path for option, path in targets.items() if path is not None}
    for option, path in given.items():
        if path.is_dir():
            raise ValueError(f"{option}: expected a file; {path} is a folder.")
        if path.exists():
            for what, source in sources.items():
                if source is not None and source.exists() and path.samefile(source):
                    raise ValueError(f"{option}: expected another file than {what} {source}.")
            if not path.is_file():
                raise ValueError(f"{option}: expected a file; {path} is a device or a pipe.")
            if not overwrite:
                raise ValueError(f"{option}: {path} exists; choose another name, or pass --overwrite.")
        if not path.parent.is_dir():
            raise ValueError(f"{option}: the folder {path.parent} does not exist; make it first.")
        try:
            with tempfile.TemporaryFile(dir=path.parent):
                pass
        except OSError as error:
            raise ValueError(f"{option}: cannot write into the folder {path.parent}: {error.strerror}.") from None
    picture = given.get("--plot")
    if picture is not None and picture.suffix.lower() != ".png":
        raise ValueError(f"--plot: expected a name that ends in .png, got {picture.name}.")
    if len({path.resolve() for path in given.values()}) < len(given):
        raise ValueError("--out and --plot: expected two different files.")


def _write(release: Release, out: Path | None, plot: Path | None) -> None:
    """Write the record and the picture. The draw has been made, so a failure says that it counts."""
    try:
        if out is not None:
            release.to_json(out)
        if plot is not None:
            from pymc_dpdepth.plots import save_release_plot

            save_release_plot(release, plot)
    except OSError as error:
        raise ValueError(
            f"The release was drawn, but could not be written: {error.strerror}. Count its epsilon, "
            f"{release.epsilon:g}, as spent."
        ) from None


if __name__ == "__main__":
    app()
