"""What the commands say: a release in plain words, and each error in one line that holds no entry of a row."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from pymc_dpdepth.record import Release

__all__ = ["REFUSED", "in_options", "one_line", "one_line_errors", "show"]

REFUSED = 2  # exit code

# What an error of the library tells a Python user to write, and what that is on the command line.
AS_OPTIONS = {
    'nonfinite="center" with standardize=(center, scale)': "--nonfinite center with --center and --scale",
    'nonfinite="prior"': "--nonfinite prior",
    "accept_asymptotic=True": "--accept-asymptotic",
    "columns=[...]": "--columns",
    "random_seed": "--simulate-seed",
    "max_rows_per_unit": "--max-rows-per-unit",
    "epsilon=1.0 (with delta=1e-6 or not) or rho=0.1": "--epsilon 1 (with --delta 1e-6 or not) or --rho 0.1",
    'sampler="concentrated"': "--sampler concentrated",
    'sampler="certified"': "--sampler certified",
    "pass delta=1e-6 (below 1/n) beside epsilon.": "pass --delta 1e-6 (below 1/n) beside --epsilon.",
    "pass delta=1e-6 (below 1/n) beside epsilon, or rho= in its place": "pass --delta 1e-6 (below 1/n) beside "
    "--epsilon, or --rho in its place",
}

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


def show(release: Release, files: dict[str, Path | None]) -> None:
    """Print a Release: the values, then what they cost and what stands behind them."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from pymc_dpdepth.record import GUARANTEES

    console = Console(highlight=False)

    def cell(text: str, style: str = "") -> Text:
        """Return text as it is: brackets are no markup, and what the terminal cannot show becomes a question mark."""
        plain = "".join(character if character.isprintable() else " " for character in text)
        return Text(plain.encode(console.encoding, "replace").decode(console.encoding), style)

    values = Table(box=SIMPLE_HEAD, pad_edge=False)
    (dim,) = release.value.dims
    values.add_column("column" if dim == "coordinate" else dim, overflow="fold")
    values.add_column("released value", justify="right", no_wrap=True)
    for name, number in zip(release.value.coords[dim].values, release.value.values, strict=True):
        values.add_row(cell(str(name)), cell(f"{float(number):,}"))
    facts = Table.grid(padding=(0, 2))
    facts.add_column(no_wrap=True)
    facts.add_column(overflow="fold")
    for label, text in _facts(release, GUARANTEES[release.guarantee]).items():
        facts.add_row(cell(label), cell(text, "bold red" if label == "simulation" else ""))
    console.print(values)
    console.print(facts)
    for label, path in files.items():
        if path is not None:
            console.print(cell(f"{label}: {path}"), soft_wrap=True)  # one line, so that it can be copied
    if files["record"] is None:
        console.print("The record is not written; --out FILE keeps it.")


def _facts(release: Release, meaning: str) -> dict[str, str]:
    """Return what is said below the values, by label."""
    units = release.max_rows_per_unit
    each = f"at {release.epsilon / units:g} each" if release.rho is None else "counted"
    share = f", {units} rows per person {each}" if units > 1 else ""
    rho = "" if release.rho is None else f"; the same cost in zCDP: rho {release.rho:g}"
    together = "columns" if "coordinate" in release.value.dims else "points"
    facts = {
        "epsilon spent": f"{release.epsilon:g}, once for all {together}{share}; delta {release.delta:g}{rho}",
        "guarantee": f"{release.guarantee}: {meaning}",
        "neighbours": "tables of the same number of rows that differ in one replaced row",
        "sampler": f"{release.sampler}: {SAMPLERS_IN_WORDS.get(release.sampler, 'one draw')}",
    }
    if release.simulation:
        facts["simulation"] = "This was seeded. It is a simulation, not private and not a release."
    return facts


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn what the library refuses, and anything unexpected, into one line on standard error and exit code 2."""
    try:
        yield
    except (typer.Exit, typer.Abort):
        raise
    except Exception as error:
        typer.echo(f"Error: {in_options(_message(error))}", err=True)
        raise typer.Exit(REFUSED) from None


def _message(error: Exception) -> str:
    """Return what may be shown of an error: the package's own words, which hold no entry of a row.

    Other libraries quote what they stumble over ("could not convert string to float: ..."), so of theirs only the type
    is shown, and for files the reason that the system gives.
    """
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'file'}: {error.strerror}."
    module, deliberate = _origin(error.__traceback__)
    if deliberate and module.startswith("pymc_dpdepth"):
        return str(error)
    return (
        f"{type(error).__name__} in {module}. Its message could quote the table and is not shown; "
        "pymc_dpdepth.private_median in Python shows it to the curator."
    )


def _origin(trace: TracebackType | None) -> tuple[str, bool]:
    """Return the module where an error arose, and whether a raise statement made it (not a failing call)."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "an unknown place", False
    code = trace.tb_frame.f_code.co_code
    module = trace.tb_frame.f_globals.get("__name__", "an unknown place")
    return module, dis.opname[code[trace.tb_lasti]] == "RAISE_VARARGS"


def in_options(message: str) -> str:
    """Return a message on one line, with the command line's options for the arguments of Python."""
    for argument, option in AS_OPTIONS.items():
        message = message.replace(argument, option)
    return one_line(message)


def one_line(message: str) -> str:
    """Return a message without its line ends."""
    return " ".join(message.split())
