"""The fields of a Release's record as read from a file: what they are called and what they hold, nested ones too.

The tables below are allow-lists. A mechanism that records more adds its keys here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

__all__ = ["check_record"]

VALUE_DIMS = ("coordinate", "point")  # a location has coordinates, depth values belong to points
GROUPED_DIM = "coordinate"  # with groups, the dimension behind theirs
WORDS_FOR_NUMBERS = ("inf", "-inf", "nan")  # in parameters of priors: JSON has no such numbers

Check = Callable[[Any, str], None]


def refuse(where: str, expected: str, value: Any) -> None:
    """Raise the one error of this module; what came is named by its kind, or shown where it is a number."""
    number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    raise ValueError(f"{where}: expected {expected}, got {value if number else type(value).__name__}.")


def is_number(value: Any) -> bool:
    """Whether a value is a finite number that a double can hold."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def a_text(value: Any, where: str) -> None:
    """Check a text that is not empty."""
    if not isinstance(value, str) or not value:
        refuse(where, "a text", value)


def a_number(value: Any, where: str) -> None:
    """Check a finite number."""
    if not is_number(value):
        refuse(where, "a finite number", value)


def at_least_0(value: Any, where: str) -> None:
    """Check a finite number >= 0."""
    if not is_number(value) or value < 0:
        refuse(where, "a finite number >= 0", value)


def a_yes_or_no(value: Any, where: str) -> None:
    """Check true or false."""
    if not isinstance(value, bool):
        refuse(where, "true or false", value)


def an_integer(least: int) -> Check:
    """Return the check of an integer of at least a given size."""

    def check(value: Any, where: str) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            refuse(where, f"an integer >= {least}", value)

    return check


def or_none(check: Check) -> Check:
    """Return the check of a value that may be null."""
    return lambda value, where: None if value is None else check(value, where)


def a_list(check: Check) -> Check:
    """Return the check of a list."""

    def check_list(value: Any, where: str) -> None:
        if not isinstance(value, list | tuple):
            refuse(where, "a list", value)
        for j, entry in enumerate(value):
            check(entry, f"{where}[{j}]")

    return check_list


def by_name(check: Check) -> Check:
    """Return the check of an object whose names are free."""

    def check_names(value: Any, where: str) -> None:
        if not isinstance(value, dict):
            refuse(where, "an object with names", value)
        for name, entry in value.items():
            a_text(name, f"a name in {where}")
            check(entry, f"{where}[{name!r}]")

    return check_names


def an_object(required: dict[str, Check], optional: dict[str, Check] | None = None) -> Check:
    """Return the check of an object with given fields."""
    optional = optional or {}

    def check_fields(value: Any, where: str) -> None:
        if not isinstance(value, dict):
            refuse(where, f"an object with the fields {sorted(required)}", value)
        missing, unknown = sorted(set(required) - set(value)), sorted(map(str, set(value) - set(required | optional)))
        if missing or unknown:
            raise ValueError(
                f"{where}: expected the fields {sorted(required)}; missing {missing}, unknown {unknown}. A record with "
                "unknown fields may come from a newer pymc_dpdepth."
            )
        for name, entry in value.items():
            (required | optional)[name](entry, f"{where}.{name}")

    return check_fields


def _parameter(value: Any, where: str) -> None:
    if isinstance(value, list):
        a_list(_parameter_number)(value, where)
    else:
        _parameter_number(value, where)


def _parameter_number(value: Any, where: str) -> None:
    if not is_number(value) and not (isinstance(value, str) and value in WORDS_FOR_NUMBERS):
        refuse(where, f"a number or one of {WORDS_FOR_NUMBERS}", value)


def _label(value: Any, where: str) -> None:
    if not is_number(value):
        a_text(value, where)


def _values(value: Any, where: str) -> None:
    """Check numbers in lists of any depth; that the lists are of one length is checked where the array is made."""
    if isinstance(value, list):
        a_list(_values)(value, where)
    else:
        a_number(value, where)


ARRAY = an_object({"dims": a_list(a_text), "coords": by_name(a_list(_label)), "values": _values})
DIRECTIONS = an_object(
    {"kind": a_text},
    {
        "d": an_integer(1),
        "m": or_none(an_integer(1)),
        "seed": or_none(an_integer(0)),
        "rows": a_list(a_list(a_number)),
    },
)
DEPTH = an_object(
    {"name": a_text},
    {"smoothing": or_none(at_least_0), "directions": or_none(DIRECTIONS), "scale": or_none(a_text)},
)
GROUP = an_object({"mechanism": a_text, "dim": a_text, "label": a_text})
STATISTIC = an_object({"name": a_text}, {"share": at_least_0, "parameters": by_name(_parameter)})
MECHANISM = an_object(
    {
        "name": a_text,
        "epsilon": at_least_0,
        "max_rows_per_unit": an_integer(1),
        "sensitivity": at_least_0,
        "n": an_integer(0),
        "center": a_list(a_number),
        "scale": a_list(a_number),
        "nonfinite": a_text,
    },
    {
        "depth": DEPTH,
        "group": GROUP,  # one group of a call: the call's name, the location's dim and the group's label
        "realised_epsilon": at_least_0,
        "direction_epsilon": at_least_0,
        "tries": an_integer(0),
        "proposals": a_text,
        # Depth values: the noise, in units of the depth, and what was done with the noisy values.
        "delta": at_least_0,
        "noise_scale": at_least_0,
        "noise_grid": at_least_0,
        "vector_sensitivity": at_least_0,
        "points": a_list(a_list(a_number)),
        "clamped": or_none(a_list(a_number)),
        "isotonic_from": or_none(a_list(a_number)),
        # Propose-test-release: what was proposed, the test, and its answer.
        "statistic": STATISTIC,
        "threshold": at_least_0,
        "radius": or_none(a_list(at_least_0)),
        "cap": or_none(at_least_0),
        "noise": a_text,
        "test_epsilon": at_least_0,
        "test_delta": at_least_0,
        "test_scale": at_least_0,
        "test_cut": a_number,
        "false_pass": at_least_0,
        "release_epsilon": at_least_0,
        "release_delta": at_least_0,
        "refused": a_yes_or_no,
    },
)
PRIOR = an_object({"family": a_text, "parameters": by_name(_parameter), "start": an_integer(0), "stop": an_integer(1)})
# What is in a record besides the schema; `Release` says which of these fields there must be.
RECORD: dict[str, Check] = {
    "epsilon": at_least_0,
    "delta": at_least_0,
    "rho": or_none(at_least_0),
    "guarantee": a_text,
    "neighboring": a_text,
    "max_rows_per_unit": an_integer(1),
    "sampler": a_text,
    "package_version": a_text,
    "locations": by_name(ARRAY),
    "parameters": by_name(ARRAY),
    "mechanisms": a_list(MECHANISM),
    "priors": by_name(a_list(PRIOR)),
}


def check_record(fields: dict[str, Any]) -> None:
    """Check the fields of a record, and that its arrays fit together.

    Parameters
    ----------
    fields : dict
        The fields of a Release, without the schema.

    Raises
    ------
    ValueError
        Names the field, what was expected and what came.
    """
    for name, check in RECORD.items():
        if name in fields:
            try:
                check(fields[name], name)
            except RecursionError:
                raise ValueError(f"{name}: expected the fields of a Release, got lists nested too deeply.") from None
    for mechanism in fields["mechanisms"]:
        if "depth" not in mechanism and "statistic" not in mechanism:
            raise ValueError(f"mechanisms: expected the depth, or the statistic, of {mechanism['name']!r}.")
    refused = {mechanism["name"] for mechanism in fields["mechanisms"] if mechanism.get("refused")}
    if refused & set(fields["locations"]):
        raise ValueError("locations: expected none of a mechanism whose test refused the release.")
    if not fields["locations"] and not refused:
        raise ValueError("locations: expected one location for each mechanism, got none.")
    group_dims = {m["group"]["mechanism"]: m["group"]["dim"] for m in fields["mechanisms"] if "group" in m}
    for name, array in fields["locations"].items():
        (dim, *more) = array["dims"] or [None]
        if name in group_dims:
            fits = [dim, *more] == [group_dims[name], GROUPED_DIM] and dim != GROUPED_DIM
        else:
            fits = not more and dim in VALUE_DIMS
        if not fits or set(array["coords"]) != {dim, *more} or not array["values"]:
            raise ValueError(
                f"locations[{name!r}]: expected values over the one dimension 'coordinate' (for depth values 'point', "
                "and with groups their dimension before it) and its labels, got the dimensions "
                f"{array['dims']} with labels of {sorted(array['coords'])}."
            )
    _check_labels(fields["parameters"])


def _check_labels(arrays: dict[str, Any]) -> None:
    """Refuse labels that belong to no dimension, and different labels of one dimension, which xarray would merge."""
    known: dict[str, list] = {}
    for name, array in arrays.items():
        for dim, labels in array["coords"].items():
            if dim not in array["dims"] or known.setdefault(dim, labels) != labels:
                raise ValueError(
                    f"parameters[{name!r}].coords: expected labels of its own dimensions, the same wherever a "
                    f"dimension comes again; got others for {dim!r}."
                )
