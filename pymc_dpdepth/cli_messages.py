"""What the commands say where something fails: each error in one line that holds no entry of a row."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

import typer

__all__ = ["REFUSED", "in_options", "one_line", "one_line_errors"]

REFUSED = 2  # exit code

# What an error of the library tells a Python user to write, and what that is on the command line.
AS_OPTIONS = {
    'nonfinite="center" with standardize=(center, scale)': "--nonfinite center with --center and --scale",
    'nonfinite="center"': "--nonfinite center",
    'nonfinite="prior"': "--nonfinite prior",
    "accept_asymptotic=True": "--accept-asymptotic",
    "columns=[...]": "--columns",
    "random_seed": "--simulate-seed",
    "bootstrap_seed": "--bootstrap-seed",
    "ci_prob": "--ci-prob",
    "as sizes= says": "as --sizes says",
    "that are in sizes=;": "that are in --sizes;",
    "or do not use by=.": "or leave out --by.",
    "max_rows_per_unit": "--max-rows-per-unit",
    "epsilon=1.0 (with delta=1e-6 or not) or rho=0.1": "--epsilon 1 (with --delta 1e-6 or not) or --rho 0.1",
    "Give PrivacyAccountant an epsilon and a delta, with composition='basic' or a charge_delta.": "Make a ledger with "
    "--epsilon and --delta, and --composition basic or --charge-delta.",
    'sampler="concentrated"': "--sampler concentrated",
    'sampler="branch_and_bound"': "--sampler branch_and_bound",
    'sampler="certified"': "--sampler certified",
    "pass delta=1e-6 (below 1/n) beside epsilon.": "pass --delta 1e-6 (below 1/n) beside --epsilon.",
    "pass delta=1e-6 (below 1/n) beside epsilon, or rho= in its place": "pass --delta 1e-6 (below 1/n) beside "
    "--epsilon, or --rho in its place",
}


@contextmanager
def one_line_errors(function: str) -> Iterator[None]:
    """Turn what the library refuses, and anything unexpected, into one line on standard error and exit code 2.

    Parameters
    ----------
    function : str
        The full name of what does the same in Python, such as "pymc_dpdepth.private_median": where a message may not be
        shown here, the curator finds it there.
    """
    try:
        yield
    except (typer.Exit, typer.Abort):
        raise
    except Exception as error:
        typer.echo(f"Error: {in_options(_message(error, function))}", err=True)
        raise typer.Exit(REFUSED) from None


def _message(error: Exception, function: str) -> str:
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
        f"{function} in Python shows it to the curator."
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
