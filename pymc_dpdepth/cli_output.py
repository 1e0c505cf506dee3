"""What the commands write and print: targets checked before the draw, records, and results in plain words."""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import typer

from pymc_dpdepth.cli_messages import in_options

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from pymc_dpdepth.record import Release

__all__ = [
    "Recorded",
    "cell",
    "check_targets",
    "console",
    "cost_facts",
    "library_notes",
    "print_facts",
    "print_files",
    "print_notes",
    "print_table",
    "show",
    "simulation_fact",
    "write",
]

SAMPLERS_IN_WORDS = {
    "segments": "an exact draw",
    "boxes": "an exact draw",
    "products": "an exact draw",
    "branch_and_bound": "an exact draw",
    "concentrated": "an exact draw for each direction",
    "planar": "a draw of the law itself, computed in double precision",
    "laplace": "depths with discrete Laplace noise",
    "gaussian": "depths with discrete Gaussian noise",
    "certified": "a fixed number of tries, with a proved delta",
    "nuts": "one draw of a Markov chain",
    "slice": "one draw of a Markov chain",
    "smc": "one draw of sequential Monte Carlo",
}
RECORD = "record"  # the file of --out, among those that are named below a result
SIMULATION = "simulation"
REFUSAL = "The test found the value not stable enough at this threshold; no value is released."
VALUES = {"header": "released value", "justify": "right", "no_wrap": True}


class Recorded(Protocol):
    """What a command releases: it has a cost, and a JSON record."""

    @property
    def epsilon(self) -> float:
        """What was spent."""

    @property
    def simulation(self) -> bool | str:
        """Whether it was seeded."""

    def to_json(self, path: Path | None = None) -> str:
        """Write the record."""


# Files


def check_targets(sources: dict[str, Path | None], targets: dict[str, Path | None], overwrite: bool) -> None:
    """Refuse files that could not be written, or must not be, before anything is drawn.

    Parameters
    ----------
    sources : dict of str to path
        What is read, by what it is called in an error, such as "the private table"; none of it is ever replaced.
    targets : dict of str to path
        What would be written, by option.
    overwrite : bool
        Whether files that exist may be replaced.
    """
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


def write(
    result: Recorded, out: Path | None, plot: Path | None = None, save_plot: Callable[[Any, Path], None] | None = None
) -> None:
    """Write the record and the picture, by default that of a Release.

    The draw has been made, so a failure says that it counts.
    """
    try:
        if out is not None:
            result.to_json(out)
        if plot is not None:
            if save_plot is None:
                from pymc_dpdepth.plots import save_release_plot as save_plot

            save_plot(result, plot)
    except OSError as error:
        raise ValueError(
            f"The release was drawn, but could not be written: {error.strerror}. Count its epsilon, "
            f"{result.epsilon:g}, as spent."
        ) from None


# Notes


@contextmanager
def library_notes() -> Iterator[list[str]]:
    """Collect the package's own warnings, in the words of the command line, in a list that is full at the end."""
    from pymc_dpdepth.errors import ApproximateSamplingWarning, PrivacyLeakWarning

    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    ours = (ApproximateSamplingWarning, PrivacyLeakWarning)
    notes += [in_options(str(each.message)) for each in caught if issubclass(each.category, ours)]


def print_notes(notes: Iterable[str]) -> None:
    """Print notes on standard error, each on a line."""
    for note in notes:
        typer.echo(f"Note: {note}", err=True)


# Results


def console() -> Console:
    """Return what prints to standard output."""
    from rich.console import Console

    return Console(highlight=False)


def cell(text: str, style: str = "") -> Text:
    """Return text as it is: brackets are no markup, nothing moves the cursor, and unknown letters become "?"."""
    from rich.text import Text

    plain = "".join(character if character.isprintable() else " " for character in text)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return Text(plain.encode(encoding, "replace").decode(encoding), style)


def print_table(columns: Iterable[dict[str, Any]], rows: Iterable[Iterable[str]]) -> None:
    """Print a table.

    Parameters
    ----------
    columns : iterable of dict
        For each column its "header", and how rich shows it.
    rows : iterable of iterables of str
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(**column)
    for row in rows:
        table.add_row(*(cell(text) for text in row))
    console().print(table)


def print_facts(facts: dict[str, str]) -> None:
    """Print one fact on each line, after what it is called; that of a simulation stands out."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in facts.items():
        grid.add_row(cell(name), cell(text, "bold red" if name == SIMULATION else ""))
    console().print(grid)


def print_files(files: dict[str, Path | None]) -> None:
    """Print the files that were written or charged, by what they are called, each in one line that can be copied."""
    for name, path in files.items():
        if path is not None:
            console().print(cell(f"{name}: {path}"), soft_wrap=True)
    if RECORD in files and files[RECORD] is None:
        console().print("The record is not written; --out FILE keeps it.")


def show(release: Release, files: dict[str, Path | None]) -> None:
    """Print a Release: the values, or that a test refused them, then what they cost and what stands behind them."""
    if release.refused:
        spent = {"epsilon spent": f"{release.epsilon:g}; delta {release.delta:g}"}
        print_facts({"refused": REFUSAL} | spent | simulation_fact(release))
        print_files(files)
        return
    (dim,) = release.value.dims
    first = {"header": "column" if dim == "coordinate" else dim, "overflow": "fold"}
    names = release.value.coords[dim].values
    rows = ((str(name), f"{float(number):,}") for name, number in zip(names, release.value.values, strict=True))
    print_table([first, VALUES], rows)
    print_facts(cost_facts(release, "all columns" if dim == "coordinate" else "all points"))
    print_files(files)


def cost_facts(release: Release, whole: str) -> dict[str, str]:
    """Return what is said below the values, by name; the cost is "once for" the whole."""
    from pymc_dpdepth.record import GUARANTEES

    units = release.max_rows_per_unit
    each = f"at {release.epsilon / units:g} each" if release.rho is None else "counted"
    share = f", {units} rows per person {each}" if units > 1 else ""
    rho = "" if release.rho is None else f"; the same cost in zCDP: rho {release.rho:g}"
    return {
        "epsilon spent": f"{release.epsilon:g}, once for {whole}{share}; delta {release.delta:g}{rho}",
        "guarantee": f"{release.guarantee}: {GUARANTEES[release.guarantee]}",
        "neighbours": "tables of the same number of rows that differ in one replaced row",
        "sampler": f"{release.sampler}: {SAMPLERS_IN_WORDS.get(release.sampler, 'one draw')}",
    } | simulation_fact(release)


def simulation_fact(release: Recorded) -> dict[str, str]:
    """Return the fact that a release was seeded, where it was."""
    words = "This was seeded. It is a simulation, not private and not a release."
    return {SIMULATION: words} if release.simulation else {}
