"""Fields of one record that must agree with one another, whatever made the release.

Each rule holds for every record that the package writes. A record that breaks one was altered, or put together by hand.
"""

from __future__ import annotations

from typing import Any

from pymc_dpdepth.mechanism import MOST_ROWS_PER_UNIT, NEIGHBORING, NEIGHBORING_IN_GROUPS
from pymc_dpdepth.privacy.composition import bounded_range_rho, rho_to_epsilon
from pymc_dpdepth.privacy.rounding import float_above, written

__all__ = ["check_rules"]

#: Samplers whose draws only approach their target; "trace" is someone else's.
MARKOV = {"nuts", "slice", "smc", "trace"}
CERTIFIED, CONCENTRATED, GAUSSIAN, TRACE = "certified", "concentrated", "gaussian", "trace"
# Costs are rounded upwards a few times, each time by a part in 2^53; numbers that were changed differ by more.
SLACK = 1e-12


def check_rules(fields: dict[str, Any]) -> None:
    """Refuse a record whose fields contradict one another.

    Parameters
    ----------
    fields : dict
        The fields of a Release, each of the right form by itself.

    Raises
    ------
    ValueError
        Names the fields.
    """
    grouped = any("group" in mechanism for mechanism in fields["mechanisms"])
    relation = NEIGHBORING_IN_GROUPS if grouped else NEIGHBORING
    if fields["neighboring"] != relation:
        raise ValueError(f"neighboring: expected {relation!r}, the one relation of such a release.")
    _check_names(fields)
    _check_groups(fields)
    _check_guarantee(fields)
    _check_cost(fields)
    _check_draw(fields)


def _check_names(fields: dict[str, Any]) -> None:
    """Refuse a mechanism without a name of its own, under which its location and its prior are found."""
    mechanisms = fields["mechanisms"]
    names = [mechanism["name"] for mechanism in mechanisms]
    if not names or len(set(names)) < len(names):
        raise ValueError("mechanisms: expected one or more, each with a name of its own.")
    released = {_call(mechanism) for mechanism in mechanisms if not mechanism.get("refused")}
    if set(fields["locations"]) != released:
        raise ValueError(
            f"locations: expected one of each mechanism that released something, {sorted(released)}, got "
            f"{sorted(fields['locations'])}."
        )
    # Noise is added to a value, which has no prior.
    drawn = {mechanism["name"] for mechanism in mechanisms if "noise_scale" not in mechanism}
    if not drawn <= set(fields["priors"]) <= set(names):
        raise ValueError(f"priors: expected those of the mechanisms {sorted(drawn)}, got {sorted(fields['priors'])}.")


def _call(mechanism: dict[str, Any]) -> str:
    """Return the name under which a mechanism released something: that of its call, where it is one of its groups."""
    return mechanism["group"]["mechanism"] if "group" in mechanism else mechanism["name"]


def _check_groups(fields: dict[str, Any]) -> None:
    """Refuse groups of one call that differ in what a call shares, or are not those of the location."""
    found: dict[str, list[dict[str, Any]]] = {}
    for mechanism in fields["mechanisms"]:
        found.setdefault(_call(mechanism), []).append(mechanism)
    for name, groups in found.items():
        if all("group" not in mechanism for mechanism in groups):
            continue
        labels = [mechanism.get("group", {}).get("label") for mechanism in groups]
        names = [f"{name}[{label}]" for label in labels]
        if names != [mechanism["name"] for mechanism in groups]:
            raise ValueError(f"mechanisms: expected those of {name!r} to be its groups, named {name}[label].")
        for field in ("depth", "epsilon", "max_rows_per_unit", "nonfinite"):
            if any(mechanism.get(field) != groups[0].get(field) for mechanism in groups):
                raise ValueError(f"mechanisms: expected one {field} for all groups of {name!r}, got several.")
        dim = groups[0]["group"]["dim"]
        if any(mechanism["group"]["dim"] != dim for mechanism in groups):
            raise ValueError(f"mechanisms: expected one dim for all groups of {name!r}, got several.")
        if fields["locations"][name]["coords"].get(dim) != labels:
            raise ValueError(f"locations[{name!r}]: expected the labels {labels} over {dim!r}, in this order.")


def _check_guarantee(fields: dict[str, Any]) -> None:
    """Refuse a guarantee that the sampler cannot give."""
    guarantee, sampler = fields["guarantee"], fields["sampler"]
    parts = set(sampler.split("+"))
    if (guarantee == "asymptotic") != bool(parts & MARKOV) or (guarantee == CERTIFIED) != (CERTIFIED in parts):
        raise ValueError(
            f"guarantee: expected one that goes with the sampler {sampler!r}, got {guarantee!r}. Markov chains and "
            "traces are asymptotic, certified draws certified, and no other sampler is either."
        )
    if TRACE in parts and fields["simulation"] is False:
        raise ValueError('simulation: expected True or "unknown" for a draw of a trace, got False.')


def _check_cost(fields: dict[str, Any]) -> None:
    """Refuse a cost for a person below what the mechanisms cost a row, times the person's rows."""
    mechanisms, parts = fields["mechanisms"], set(fields["sampler"].split("+"))
    rows = max(mechanism["max_rows_per_unit"] for mechanism in mechanisms)
    if fields["max_rows_per_unit"] != rows or rows > MOST_ROWS_PER_UNIT:
        raise ValueError("max_rows_per_unit: expected the most of a mechanism, and at most 2^53; got another number.")
    for mechanism in mechanisms:
        for part in ("realised_epsilon", "direction_epsilon", "test_epsilon", "release_epsilon"):
            if mechanism.get(part, 0) > mechanism["epsilon"] * (1 + SLACK):
                raise ValueError(f"mechanisms: expected {part} of {mechanism['name']!r} to be at most its epsilon.")
    delta, least = fields["delta"], max(mechanism.get("delta", 0) for mechanism in mechanisms)
    if not least <= delta < 1:
        raise ValueError(f"delta: expected a number below 1 and not below a mechanism's, {least}, got {delta}.")
    if delta and not least and not parts & {CERTIFIED, CONCENTRATED}:
        raise ValueError(f"delta: expected 0, as no mechanism of the sampler {fields['sampler']!r} has one.")
    if not delta and GAUSSIAN in parts:
        raise ValueError("delta: expected a number above 0 for Gaussian noise, got 0.")
    # Several mechanisms of one model add up; of the groups of one call, a person's rows are in one each.
    costs: dict[str, Any] = {}
    for mechanism in mechanisms:
        cost = mechanism["max_rows_per_unit"] * written(float(mechanism["epsilon"]))
        costs[_call(mechanism)] = max(cost, costs.get(_call(mechanism), 0))
    pure = float_above(sum(costs.values()))
    if CONCENTRATED in parts:
        _check_concentrated(fields, pure)
    elif fields["epsilon"] < pure * (1 - SLACK):
        raise ValueError(
            f"epsilon: expected at least {pure:g}, what the mechanisms cost a person, got {fields['epsilon']}."
        )


def _check_concentrated(fields: dict[str, Any], pure: float) -> None:
    """Refuse a rho below that of the draws, and an epsilon below their sum or, with a delta, what rho converts to."""
    (mechanism, *more) = fields["mechanisms"]
    rho, one = fields["rho"], mechanism.get("direction_epsilon")
    if more or one is None or rho is None:
        raise ValueError("rho: expected it, and the direction_epsilon of the one mechanism, for a concentrated draw.")
    draws = mechanism["epsilon"] / one if one else 0.0
    needed = draws * bounded_range_rho(mechanism["max_rows_per_unit"] * one) if one else 0.0
    if rho < needed * (1 - SLACK):
        raise ValueError(f"rho: expected at least {needed:g}, what {draws:g} draws cost, got {rho}.")
    least = min(pure, rho_to_epsilon(rho, fields["delta"])) if fields["delta"] and rho else pure
    if fields["epsilon"] < least * (1 - SLACK):
        raise ValueError(f"epsilon: expected at least {least:g}, what rho = {rho:g} costs, got {fields['epsilon']}.")


def _check_draw(fields: dict[str, Any]) -> None:
    """Refuse a location with a number that is no variable's, where it was drawn without a chain.

    It then consists of variables. Where chains ran it may be computed from them, and nothing can be compared.
    """
    if fields["guarantee"] == "asymptotic" or not fields["parameters"]:
        return
    known = {number for array in fields["parameters"].values() for number in _numbers(array["values"])}
    for name, array in fields["locations"].items():
        if "coordinate" in array["dims"] and not set(_numbers(array["values"])) <= known:
            raise ValueError(
                f"parameters: expected the numbers of locations[{name!r}] among the variables that were drawn, got "
                "others."
            )


def _numbers(values: Any) -> list[float]:
    if isinstance(values, list):
        return [number for entry in values for number in _numbers(entry)]
    return [values]
