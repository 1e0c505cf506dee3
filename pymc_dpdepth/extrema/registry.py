"""The families of the package by name, so that a record that was read from a file can make its family again."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from pymc_dpdepth.extrema.family import Family
from pymc_dpdepth.frozen import thaw
from pymc_dpdepth.mechanism import NEIGHBORING, NEIGHBORING_IN_GROUPS
from pymc_dpdepth.record_fields import a_list, a_number, a_text, by_name

__all__ = ["FLOAT64", "RELATIONS", "check_description", "check_name", "described", "family_of", "guarantee_of"]

FLOAT64 = "float64"
RELATIONS = (NEIGHBORING, NEIGHBORING_IN_GROUPS)

_HOMES = {
    "gaussian": ("gaussian", "Gaussian"),
    "linear_regression": ("regression", "LinearRegression"),
    "bernoulli": ("counts", "Bernoulli"),
    "poisson": ("counts", "Poisson"),
}


def _class_of(name: str) -> type[Family]:
    module, title = _HOMES[name]
    return getattr(import_module(f"{__package__}.{module}"), title)


def check_name(family: Family) -> None:
    """Refuse a family of a user under the name of one of the package, for which its record would be taken."""
    name = family.name
    if not isinstance(name, str) or not name or (name in _HOMES and type(family) is not _class_of(name)):
        raise ValueError(
            f"family: expected a name of its own, not empty and none of {sorted(_HOMES)}, got {name!r}. Set the "
            "attribute `name` of the class."
        )


def guarantee_of(family: Family) -> str:
    """Return the guarantee of a family's sums: "float64" for a family of a user, whose entries cannot be checked."""
    return family.guarantee if family.name in _HOMES else FLOAT64


def _plain(value: Any, where: str) -> None:
    """Check plain settings of a family: texts, numbers, lists and objects of these."""
    if isinstance(value, dict):
        by_name(_plain)(value, where)
    elif isinstance(value, list):
        a_list(_plain)(value, where)
    elif not isinstance(value, str) and value is not None and not isinstance(value, bool):
        a_number(value, where)


def check_description(value: Any, where: str) -> None:
    """Check the description of a family."""
    by_name(_plain)(value, where)
    a_text(value.get("name"), f"{where}.name")


def described(family: Family) -> dict[str, Any]:
    """Return what a family says of itself, with lists in the place of tuples; refuse what a record cannot hold."""
    found = thaw(family.describe())
    check_description(found, "describe()")
    if found["name"] != family.name:
        raise ValueError(f'describe(): expected the name {family.name!r} of the family as its "name".')
    return found


def family_of(description: Mapping[str, Any]) -> Family | None:
    """Return the family that `Family.describe` described; None for one that is not of the package."""
    arguments = dict(description)
    name = arguments.pop("name")
    if name not in _HOMES:
        return None
    try:
        family = _class_of(name)(**arguments)
    except TypeError:
        family = None
    if family is None or described(family) != thaw(description):
        raise ValueError(f"family: expected the arguments of {name!r}, got {sorted(arguments)}.")
    return family
