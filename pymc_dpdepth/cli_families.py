"""Families of the command `extrema`, from the text of its options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pymc_dpdepth.cli_options import names_of

if TYPE_CHECKING:
    from pymc_dpdepth.extrema.family import Family

__all__ = ["FAMILY", "family_of"]

FAMILY = "The family"  # heading of the help

GROUPS = ("--response", "--by", "--sizes", "--labels")
# Options beside --bounds and --columns that a family takes.
TAKES = {
    "gaussian": (),
    "regression": ("--response", "--interest", "--nuisance", "--intercept", "--orthogonal", "--variance"),
    "bernoulli": GROUPS,
    "poisson": GROUPS,
}

Bounds = list[float] | dict[str, list[float]]


def family_of(
    name: str, bounds: Sequence[str], columns: str | None, given: Mapping[str, Any]
) -> tuple[Family, list[str] | None]:
    """Return the family, and the columns to read where it does not name its own.

    Parameters
    ----------
    name : str
        That of --family.
    bounds : sequence of str
        All of --bounds.
    columns : str or None
        That of --columns.
    given : mapping
        Values of the other options of families by their names; None where they were left out.
    """
    if name not in TAKES:
        raise ValueError(f"--family: expected one of {', '.join(TAKES)}; got {name!r}.")
    given = {option: value for option, value in given.items() if value is not None}
    for option in given:
        if option not in TAKES[name]:
            takers = " or ".join(family for family, options in TAKES.items() if option in options)
            raise ValueError(f"{option}: expected with --family {takers}, got with {name}; leave it out.")
    chosen = names_of(columns)
    if name == "gaussian":
        return _gaussian(_needed(bounds), chosen)
    if name == "regression":
        return _regression(_needed(bounds), chosen, given), None
    return _counts(name, bounds, chosen, given)


def _gaussian(bounds: Bounds, columns: list[str] | None) -> tuple[Family, list[str]]:
    from pymc_dpdepth.extrema.gaussian import Gaussian

    if not isinstance(bounds, dict):
        return Gaussian(bounds), columns
    columns = list(bounds) if columns is None else columns
    if set(columns) != set(bounds):
        raise ValueError(
            f"--bounds: expected one pair for each of the columns {columns!r}, got those of {list(bounds)!r}. Without "
            "--columns, those with bounds are used."
        )
    return Gaussian([[bounds[name][end] for name in columns] for end in (0, 1)]), columns


def _regression(bounds: Bounds, columns: list[str] | None, given: Mapping[str, Any]) -> Family:
    from pymc_dpdepth.extrema.regression import LinearRegression

    if columns is not None:
        raise ValueError("--columns: expected --response, --interest and --nuisance in its place; leave it out.")
    for option in ("--response", "--interest"):
        if option not in given:
            raise ValueError(f"{option}: expected with --family regression; give it the name of a column.")
    more = {option[2:]: given[option] for option in ("--intercept", "--orthogonal", "--variance") if option in given}
    nuisance = _columns(given["--nuisance"], "--nuisance") if "--nuisance" in given else ()
    return LinearRegression(
        given["--response"], _columns(given["--interest"], "--interest"), nuisance, bounds=bounds, **more
    )


def _counts(
    name: str, bounds: Sequence[str], columns: list[str] | None, given: Mapping[str, Any]
) -> tuple[Family, list[str] | None]:
    from pymc_dpdepth.extrema.counts import Bernoulli, Poisson

    if "--by" in given and columns is not None:
        raise ValueError("--columns: expected --response and --by in its place; leave it out.")
    grouped = {"column": given.get("--response"), "by": given.get("--by")}
    if ("--by" in given) != ("--response" in given) or ("--by" in given) != ("--sizes" in given):
        raise ValueError(
            "--by: expected together with --response COLUMN and --sizes CODE=ROWS,..., or none of the three, for a "
            "parameter of each column."
        )
    for option in ("--sizes", "--labels"):
        if option in given:
            grouped[option[2:]] = _by_code(given[option], option)
    if name == "bernoulli":
        if bounds:
            raise ValueError("--bounds: expected none with --family bernoulli, whose entries are 0 or 1; leave it out.")
        return Bernoulli(**grouped), columns
    limits = _needed(bounds)
    if isinstance(limits, dict):
        raise ValueError('--bounds: expected one pair "0,HIGH" for all counts with --family poisson.')
    return Poisson(bounds=limits, **grouped), columns


def _needed(bounds: Sequence[str]) -> Bounds:
    """Return the pair of numbers for all columns, or one for each column by its name."""
    if not bounds:
        raise ValueError(
            '--bounds: expected the public bounds of the entries, "LOW,HIGH", chosen without the data; got none.'
        )
    pairs = [text.rpartition("=") for text in bounds]  # a name may hold an equals sign, a number does not
    numbers = [_pair(text) for _, _, text in pairs]
    if len(pairs) == 1 and not pairs[0][1]:
        return numbers[0]
    names = [name.strip() for name, _, _ in pairs]
    if not all(names):
        raise ValueError('--bounds: expected one pair "LOW,HIGH", or "COLUMN=LOW,HIGH" for each column; got both.')
    if len(set(names)) < len(names):
        raise ValueError("--bounds: expected one pair for each column; a column came twice.")
    return dict(zip(names, numbers, strict=True))


def _pair(text: str) -> list[float]:
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f'--bounds: expected two numbers, "LOW,HIGH" or "COLUMN=LOW,HIGH"; got {text!r}.') from None
    return [low, high]


def _columns(text: str, option: str) -> list[str]:
    """Return what is separated by commas."""
    try:
        return names_of(text)
    except ValueError:
        raise ValueError(f"{option}: expected a list separated by commas, got an empty entry.") from None


def _by_code(text: str, option: str) -> dict[int, Any]:
    """Return numbers of rows, or labels, by the code of the group."""
    found: dict[int, Any] = {}
    for part in _columns(text, option):
        code, sign, value = part.partition("=")
        try:
            number = int(code)
            kept = int(value) if option == "--sizes" else value.strip()
        except ValueError:
            sign = ""
        if not sign or kept == "":
            what = "ROWS" if option == "--sizes" else "TEXT"
            raise ValueError(f"{option}: expected CODE={what} for each group, separated by commas; got {part!r}.")
        if number in found:
            raise ValueError(f"{option}: expected each code once; {number} came twice.")
        found[number] = kept
    return found
