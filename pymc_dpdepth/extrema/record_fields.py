"""The JSON of an interval: its fields, which are an allow-list, and what must agree among them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from pymc_dpdepth.extrema.analysis import CHOICES, CROSS_VALIDATION, EXTREMA, NONE, Settings, read_settings
from pymc_dpdepth.extrema.cross_validation import CrossValidation
from pymc_dpdepth.extrema.limits import SIDES
from pymc_dpdepth.extrema.noisy_sums import NoisySums, ReleasedStatistic
from pymc_dpdepth.extrema.registry import FLOAT64, RELATIONS, check_description, family_of
from pymc_dpdepth.extrema.replay import tolerance
from pymc_dpdepth.frozen import thaw
from pymc_dpdepth.mechanism import MOST_ROWS_PER_UNIT
from pymc_dpdepth.privacy.noise import LAPLACE, IntegerNoise
from pymc_dpdepth.privacy.rounding import float_above, written
from pymc_dpdepth.record import GUARANTEES
from pymc_dpdepth.record_fields import (
    a_list,
    a_number,
    a_text,
    a_yes_or_no,
    an_integer,
    an_object,
    at_least_0,
    by_name,
    or_none,
    refuse,
)

if TYPE_CHECKING:
    from pymc_dpdepth.extrema.record import ExtremaInterval

__all__ = ["SCHEMA", "SCHEMA_VERSION", "check_outcome", "fields_of", "to_record"]

SCHEMA = "pymc_dpdepth.extrema_interval"
SCHEMA_VERSION = 1

INTERVALS = {
    "lower": "from the lower limit to infinity",
    "upper": "from minus infinity to the upper limit",
    "two": "between two limits, each with half of the error (Bonferroni)",
}
SUM, FRESH = "sum", "fresh"
# Costs are rounded upwards a few times, each time by a part in 2^53.
SLACK = 1e-12
# Limits follow from the replicates that stand in the record by sums and powers, with no matrix in between.
OF_OUTCOME = 1e-9


def a_word_of(words: tuple[str, ...]):
    """Return the check of one of some words."""

    def check(value: Any, where: str) -> None:
        if not isinstance(value, str) or value not in words:
            refuse(where, f"one of {words}", value)

    return check


def above_0(value: Any, where: str) -> None:
    """Check a number > 0."""
    at_least_0(value, where)
    if not value:
        refuse(where, "a number > 0", value)


STATISTIC = {
    "epsilon": above_0,
    "realised_epsilon": at_least_0,
    "sensitivity": at_least_0,
    "noise_scale": at_least_0,
    "grid": above_0,
    "sums": a_list(a_list(a_number)),
}
RELEASE = {"rows": a_list(an_integer(1)), "statistics": by_name(an_object(STATISTIC))}
CRITERION = {"candidates": a_list(above_0), "criterion": a_list(a_list(a_number))}
FIELDS = {
    "schema": a_text,
    "schema_version": an_integer(1),
    "package_version": a_text,
    "extremum": a_word_of(EXTREMA),
    "interval": a_text,
    "lower": or_none(a_number),
    "upper": or_none(a_number),
    "estimate": a_number,
    "selected": a_text,
    "ci_prob": above_0,
    "sided": a_word_of(SIDES),
    "correction": or_none(above_0),
    "correction_choice": a_word_of(CHOICES),
    "cross_validation": or_none(an_object(CRITERION)),
    "n": an_integer(1),
    "epsilon": above_0,
    "delta": at_least_0,
    "guarantee": a_word_of(("exact", FLOAT64)),
    "guarantee_meaning": a_text,
    "neighboring": a_word_of(RELATIONS),
    "max_rows_per_unit": an_integer(1),
    "nonfinite": a_word_of(("raise", "center")),
    "simulation": a_yes_or_no,
    "distribution": a_word_of((LAPLACE,)),
    "family": check_description,
    "columns": a_list(a_text),
    "parameters": a_list(a_text),
    "estimates": a_list(a_number),
    "release": an_object(RELEASE),
    "final": a_word_of((SUM, FRESH)),
    "fold_release": or_none(an_object(RELEASE)),
    "replicates": an_integer(1),
    "bootstrap_seed": an_integer(0),
    "bootstrap": by_name(a_list(a_number)),
}


def to_record(interval: ExtremaInterval) -> dict[str, Any]:
    """Return the record of an interval as plain Python objects."""
    chosen, folds = interval.cross_validation, interval.folds
    fresh = folds is not None and folds is not interval.released
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "package_version": interval.package_version,
        "extremum": interval.extremum,
        "interval": INTERVALS[interval.sided],
        "lower": interval.lower,
        "upper": interval.upper,
        "estimate": interval.estimate,
        "selected": interval.selected,
        "ci_prob": interval.ci_prob,
        "sided": interval.sided,
        "correction": interval.correction,
        "correction_choice": interval.correction_choice,
        "cross_validation": None
        if chosen is None
        else {"candidates": list(chosen.candidates), "criterion": chosen.criterion.tolist()},
        "n": interval.n,
        "epsilon": interval.epsilon,
        "delta": interval.delta,
        "guarantee": interval.guarantee,
        "guarantee_meaning": GUARANTEES[interval.guarantee],
        "neighboring": interval.neighboring,
        "max_rows_per_unit": interval.max_rows_per_unit,
        "nonfinite": interval.nonfinite,
        "simulation": interval.simulation,
        "distribution": LAPLACE,
        "family": thaw(interval.family),
        "columns": list(interval.columns),
        "parameters": interval.parameters,
        "estimates": interval.estimates.values.tolist(),
        "release": _release_record(interval.released),
        "final": FRESH if fresh else SUM,
        "fold_release": _release_record(folds) if fresh else None,
        "replicates": interval.replicates,
        "bootstrap_seed": interval.bootstrap_seed,
        "bootstrap": dict(zip(interval.parameters, interval.bootstrap_estimates.T.tolist(), strict=True)),
    }


def _release_record(sums: NoisySums) -> dict[str, Any]:
    """Return the record of one release; sensitivity and scale are in the units of the sums."""
    statistics = {
        name: {
            "epsilon": one.noise.epsilon,
            "realised_epsilon": one.noise.realised_epsilon,
            "sensitivity": one.sensitivity * one.grid,
            "noise_scale": one.noise.scale * one.grid,
            "grid": one.grid,
            "sums": one.sums.tolist(),
        }
        for name, one in sums.released.items()
    }
    return {"rows": list(sums.rows), "statistics": statistics}


def fields_of(record: Any) -> dict[str, Any]:
    """Return the arguments of an ExtremaInterval, from a record whose form and rules were checked.

    Parameters
    ----------
    record : dict
        With the schema of this version.

    Raises
    ------
    ValueError
        If fields are missing, unknown or of another form, or contradict one another.
    """
    import xarray as xr

    an_object(FIELDS)(record, "record")
    names = record["parameters"]
    if len(set(names)) < len(names) or len(record["estimates"]) != len(names) or list(record["bootstrap"]) != names:
        raise ValueError("parameters: expected different names, with an estimate and replicates for each.")
    if {len(drawn) for drawn in record["bootstrap"].values()} != {record["replicates"]}:
        raise ValueError("bootstrap: expected as many replicates of each parameter as the record says.")
    released = _release_of(record["release"], record["n"])
    folds = None if record["fold_release"] is None else _release_of(record["fold_release"], record["n"])
    if (folds is None) != (record["final"] == SUM):
        raise ValueError('fold_release: expected one with final="fresh" alone.')
    if folds is None and len(released.rows) > 1:
        folds = released
    settings, chosen = _settings(record, folds)
    _check_cost(record, released, folds)
    _check_family(record, released, folds)
    return (
        {
            "family": record["family"],
            "columns": tuple(record["columns"]),
            "settings": settings,
            "released": released,
            "folds": folds,
            "cross_validation": chosen,
            "estimates": xr.DataArray(
                np.array(record["estimates"], dtype=np.float64), dims=["parameter"], coords={"parameter": names}
            ),
            "bootstrap_estimates": np.array(list(record["bootstrap"].values()), dtype=np.float64).T,
        }
        | {
            name: record[name]
            for name in (
                "n",
                "guarantee",
                "max_rows_per_unit",
                "nonfinite",
                "simulation",
                "neighboring",
                "package_version",
            )
        }
        | {"epsilon": float(record["epsilon"])}
    )


def _release_of(record: dict[str, Any], n: int) -> NoisySums:
    """Return one release, its sums on their grid and its noise as large as it has to be."""
    rows = tuple(record["rows"])
    if sum(rows) != n or max(rows) - min(rows) > 1:
        raise ValueError("rows: expected those of all parts to add up to n, as equal as they can be.")
    released = {}
    for name, one in record["statistics"].items():
        grid, epsilon = float(one["grid"]), float(one["epsilon"])
        if math.frexp(grid)[0] != 0.5:
            raise ValueError(f"{name}: expected a grid that is a power of two, got {grid}.")
        units, scale = one["sensitivity"] / grid, one["noise_scale"] / grid
        needed = float_above(Fraction(units) / written(epsilon))
        realised = one["realised_epsilon"]
        if realised > epsilon or abs(realised * scale - units) > SLACK * units:
            raise ValueError(f"{name}: expected the realised_epsilon sensitivity / noise_scale, got {realised}.")
        if units != int(units) or not abs(scale - needed) <= SLACK * needed:
            raise ValueError(
                f"{name}: expected a sensitivity on the grid, and noise of scale sensitivity / epsilon = "
                f"{needed * grid:g}, got {one['noise_scale']}."
            )
        lengths = {len(part) for part in one["sums"]}
        if len(one["sums"]) != len(rows) or len(lengths) != 1 or lengths == {0}:
            raise ValueError(f"{name}: expected sums of one length for each of {len(rows)} parts.")
        sums = np.array(one["sums"], dtype=np.float64)
        if (sums / grid != np.rint(sums / grid)).any():
            raise ValueError(f"{name}: expected sums that are multiples of the grid.")
        sums.flags.writeable = False
        noise = IntegerNoise(LAPLACE, scale, units, epsilon, 0.0, None, float(realised))
        released[name] = ReleasedStatistic(grid, int(units), noise, sums)
    return NoisySums(rows, released)


def _settings(record: dict[str, Any], folds: NoisySums | None) -> tuple[Settings, CrossValidation | None]:
    """Return the settings, and how r was chosen."""
    table, choice, r = record["cross_validation"], record["correction_choice"], record["correction"]
    cross_validated = choice == CROSS_VALIDATION
    if (table is None) == cross_validated or (r is None) != (choice == NONE) or (cross_validated and folds is None):
        raise ValueError(
            'correction_choice: expected "cv" with a criterion and folds, "none" without a correction, or "fixed".'
        )
    arguments = [record[name] for name in ("extremum", "ci_prob", "sided")]
    candidates = table["candidates"] if cross_validated else ()
    settings = read_settings(
        *arguments,
        CROSS_VALIDATION if cross_validated else r,
        record["replicates"],
        candidates,
        record["bootstrap_seed"],
    )
    if not cross_validated:
        return settings, None
    if [len(row) for row in table["criterion"]] != [len(record["parameters"])] * len(settings.candidates):
        raise ValueError("criterion: expected a row for each candidate, with a number for each parameter.")
    chosen = CrossValidation(settings.candidates, np.array(table["criterion"], dtype=np.float64))
    if list(settings.candidates) != candidates or chosen.choice != r:
        raise ValueError("correction: expected the candidate, in increasing order, with the least criterion.")
    return settings.chosen(r), chosen


def _check_cost(record: dict[str, Any], released: NoisySums, folds: NoisySums | None) -> None:
    """Refuse a cost that is not that of the statistics, times the rows of a person."""
    if record["delta"] or record["max_rows_per_unit"] > MOST_ROWS_PER_UNIT:
        raise ValueError("delta: expected 0 for Laplace noise, and max_rows_per_unit at most 2^53.")
    releases = [released] + ([folds] if folds is not released and folds is not None else [])
    needed = record["max_rows_per_unit"] * sum(
        written(one.noise.epsilon) for each in releases for one in each.released.values()
    )
    if abs(record["epsilon"] - float(needed)) > SLACK * float(needed):
        raise ValueError(f"epsilon: expected {float(needed):g}, what the statistics cost a person.")


def _check_family(record: dict[str, Any], released: NoisySums, folds: NoisySums | None) -> None:
    """Refuse statistics and estimates that are not those of the family, where it is one of the package."""
    family = family_of(record["family"])
    if family is None:
        if record["guarantee"] != FLOAT64:
            raise ValueError('guarantee: expected "float64" for a family that is not of the package.')
        return
    if family.guarantee != record["guarantee"] or family.parameters(record["columns"]) != record["parameters"]:
        raise ValueError("family: expected its guarantee and its parameters in the record.")
    own = family.columns()
    if own is not None and (
        len(own) != len(record["columns"])
        # A column may be chosen by its position, which the record does not have the name of.
        or any(isinstance(label, str) and label != name for label, name in zip(own, record["columns"], strict=True))
    ):
        raise ValueError(f"columns: expected those of the family, {list(own)!r}.")
    if family.neighboring != record["neighboring"]:
        raise ValueError(f"neighboring: expected {family.neighboring!r}, between which the family's sums are private.")
    for each in [released] if folds is None else [released, folds]:
        sums, expected = each.pool().sums, {}
        while set(expected) <= set(sums) and (
            new := family.statistics(record["n"], record["columns"], {name: sums[name] for name in expected})
        ):
            expected |= {one.name: (one.size, one.grid, float(one.sensitivity)) for one in new}
        found = {name: (one.sums.shape[1], one.grid, float(one.sensitivity)) for name, one in each.released.items()}
        if found != expected:
            raise ValueError("statistics: expected names, sizes, grids and sensitivities of the family, got others.")
    pooled = released.pool()
    estimates = family.estimates(pooled.sums, pooled.n, pooled.deviations)
    drawn = np.array(list(record["bootstrap"].values())).T
    if not np.allclose(estimates, record["estimates"], rtol=0.0, atol=tolerance(estimates, drawn)):
        raise ValueError("estimates: expected those of the released sums, got others.")


def check_outcome(interval: ExtremaInterval, record: dict[str, Any]) -> None:
    """Refuse a record whose outcome, computed again, is another one."""
    mine = to_record(interval)
    allowed = tolerance(interval.estimates.values, interval.bootstrap_estimates, OF_OUTCOME)
    for name in ("lower", "upper", "estimate"):
        found, expected = record[name], mine[name]
        if (found is None) != (expected is None) or (found is not None and abs(found - expected) > allowed):
            raise ValueError(f"{name}: expected that of the replicates in the record, got another one.")
    for name in ("selected", "interval", "guarantee_meaning"):
        if record[name] != mine[name]:
            raise ValueError(f"{name}: expected {mine[name]!r}, got another one.")
