"""The command of intervals for extrema: `pymc-dpdepth extrema data.csv --family gaussian --bounds -4,4 --epsilon 2`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pymc_dpdepth import cli_options as take
from pymc_dpdepth.cli_families import FAMILY, family_of
from pymc_dpdepth.cli_messages import one_line_errors
from pymc_dpdepth.cli_output import (
    VALUES,
    check_targets,
    library_notes,
    print_facts,
    print_files,
    print_notes,
    print_table,
    simulation_fact,
    write,
)

if TYPE_CHECKING:
    from pymc_dpdepth.extrema.record import ExtremaInterval

__all__ = ["extrema"]

INTERVAL = "The interval"
NO_CORRECTION, CROSS_VALIDATION = "none", "cv"

METHODS_IN_WORDS = {
    "naive": "naive: as if the selected parameter had been chosen beforehand; not valid",
    "uncorrected": "uncorrected: plain bootstrap of the extremum; not valid",
    "corrected": "corrected: this interval",
    NO_CORRECTION: "this interval, without a correction: not valid",
    "bonferroni": "Bonferroni: all parameters at once",
}


def extrema(
    data: take.Data,
    family: Annotated[str, typer.Option(metavar="NAME", help="gaussian, regression, bernoulli or poisson.")],
    epsilon: Annotated[
        str,
        typer.Option(
            metavar="NUMBER", help='Privacy loss, split evenly over the sums; or one for each, "mean=1,covariance=1".'
        ),
    ],
    columns: take.Columns = None,
    bounds: Annotated[
        list[str] | None,
        take.option(
            FAMILY,
            'Public bounds that entries are clipped to: "LOW,HIGH" for all columns, or "COLUMN=LOW,HIGH" for each.',
            "BOUNDS",
        ),
    ] = None,
    response: Annotated[
        str | None, take.option(FAMILY, "Regression: the column y. With --by: the column that is counted.", "COLUMN")
    ] = None,
    interest: Annotated[
        str | None, take.option(FAMILY, "Regression: the columns whose coefficients are the parameters.", "A,B,...")
    ] = None,
    nuisance: Annotated[str | None, take.option(FAMILY, "Regression: further columns of the model.", "A,B,...")] = None,
    intercept: Annotated[
        bool | None,
        take.option(
            FAMILY, "Regression: whether it has a constant; by default it has.", None, "--intercept/--no-intercept"
        ),
    ] = None,
    orthogonal: Annotated[
        bool,
        take.option(
            FAMILY,
            "Regression: the columns of interest are orthogonal to all others, and to ones, by design.",
            None,
            "--orthogonal",
        ),
    ] = False,
    variance: Annotated[
        str | None, take.option(FAMILY, "Regression: from residual (default) or moments.", "WORD")
    ] = None,
    by: Annotated[
        str | None, take.option(FAMILY, "Bernoulli and Poisson: the column of the group's code.", "COLUMN")
    ] = None,
    sizes: Annotated[
        str | None, take.option(FAMILY, "With --by: public number of rows of each group.", "CODE=ROWS,...")
    ] = None,
    labels: Annotated[
        str | None, take.option(FAMILY, "With --by: what the groups are called.", "CODE=TEXT,...")
    ] = None,
    extremum: Annotated[
        str, take.option(INTERVAL, "The largest parameter (max) or the smallest (min).", "WORD")
    ] = "max",
    ci_prob: Annotated[float, take.option(INTERVAL, "Nominal probability of the interval.", "NUMBER")] = 0.95,
    sided: Annotated[str, take.option(INTERVAL, "Limits: lower, upper, or two (Bonferroni).", "WORD")] = "lower",
    correction: Annotated[
        str, take.option(INTERVAL, "r between 0 and 0.5, cv to choose it, none for comparison only.", "NUMBER")
    ] = "0.1",
    candidates: Annotated[str | None, take.option(INTERVAL, "With cv: the values of r.", "A,B,...")] = None,
    folds: Annotated[
        int | None, take.option(INTERVAL, "With cv: number of random folds, by default 5.", "INTEGER")
    ] = None,
    final: Annotated[
        str | None,
        take.option(INTERVAL, "With cv: sum of the noisy folds (default), or fresh noise for half of epsilon.", "WORD"),
    ] = None,
    replicates: Annotated[int, take.option(INTERVAL, "Bootstrap replicates.", "INTEGER")] = 2000,
    bootstrap_seed: Annotated[
        int | None, take.option(INTERVAL, "Seed of the bootstrap, which hides nothing.", "INTEGER")
    ] = None,
    nonfinite: Annotated[
        str,
        take.option(
            take.MECHANISM, "Missing entries: raise refuses them, center takes the middle of the bounds.", "WORD"
        ),
    ] = "raise",
    max_rows_per_unit: take.MaxRowsPerUnit = 1,
    simulate_seed: take.SimulateSeed = None,
    ledger: take.LedgerPath = None,
    data_id: take.DataId = None,
    key: take.Key = None,
    label: Annotated[str | None, take.label_option("extrema_interval")] = None,
    out: take.Out = None,
    plot: Annotated[
        Path | None, take.option(take.OUTPUT, "Write a picture of the interval, which may leave too.", "FILE.png")
    ] = None,
    overwrite: take.Overwrite = False,
) -> None:
    """Release a private confidence interval for the largest (or smallest) of several parameters.

    The parameters are means of columns (gaussian), coefficients (regression), or proportions and rates (bernoulli,
    poisson), of columns or of groups. Everything costs EPSILON together. Bounds, columns, groups and every option must
    be chosen without looking at the data; the number of rows is public. Bad input gets one line and exit code 2, before
    anything is charged or written.

    For instance:

    `pymc-dpdepth extrema scores.csv --family gaussian --bounds -4,4 --epsilon 2 --out interval.json`

    `pymc-dpdepth extrema people.csv --family regression --response y --interest a,b --bounds "y=0,10" --bounds
    "a=0,1" --bounds "b=0,1" --epsilon gram=2,response=2,residual=1`
    """
    with one_line_errors("pymc_dpdepth.extrema_interval"):
        sources = {"the private table": data, "the ledger": ledger, "the key": key}
        check_targets(sources, {"--out": out, "--plot": plot}, overwrite)
        groups = {"--by": by, "--sizes": sizes, "--labels": labels}
        model = {"--interest": interest, "--nuisance": nuisance, "--intercept": intercept, "--variance": variance}
        model["--orthogonal"] = orthogonal or None
        made, chosen = family_of(family, bounds or [], columns, {"--response": response, **model, **groups})
        request = {
            "family": made,
            "epsilon": _epsilon(epsilon),
            "columns": chosen,
            "extremum": extremum,
            "ci_prob": ci_prob,
            "sided": sided,
            "correction": _correction(correction),
            "replicates": replicates,
            "nonfinite": nonfinite,
            "max_rows_per_unit": max_rows_per_unit,
            "random_seed": simulate_seed,
            "bootstrap_seed": bootstrap_seed,
            "ledger": take.open_for_charges(ledger, data_id, data, key, label),
        }
        request |= _of_folds(correction, candidates, folds, final)
        with library_notes() as notes:
            interval = _interval(data, request)
        write(interval, out, plot, _save_plot)
        _show(interval, {"record": out, "picture": plot, "ledger charged": ledger})
        print_notes(notes)


def _interval(data: Path, request: dict[str, Any]) -> ExtremaInterval:
    """Read the file in pieces and release."""
    from pymc_dpdepth.extrema.interval import extrema_interval

    return extrema_interval(data, **request)


def _save_plot(interval: ExtremaInterval, path: Path) -> None:
    from pymc_dpdepth.plot_marks import save_plot

    save_plot(interval.plot(), path)


def _epsilon(text: str) -> float | dict[str, float]:
    """Return the number of --epsilon, or one for each statistic by its name."""
    if "=" not in text:
        return _number(text, "--epsilon")
    parts = [part.partition("=") for part in text.split(",")]
    names = [name.strip() for name, _, _ in parts]
    if len(set(names)) < len(names):
        raise ValueError("--epsilon: expected each name once, one came twice.")
    return {name: _number(value, "--epsilon") for name, (_, _, value) in zip(names, parts, strict=True)}


def _correction(text: str) -> float | str | None:
    """Return what --correction says."""
    if text == NO_CORRECTION:
        return None
    return text if text == CROSS_VALIDATION else _number(text, "--correction")


def _of_folds(correction: str, candidates: str | None, folds: int | None, final: str | None) -> dict[str, Any]:
    """Return what was given of the options of cross-validation; refuse them without it, where they would do nothing."""
    given = {"candidates": candidates, "folds": folds, "final": final}
    given = {name: value for name, value in given.items() if value is not None}
    if given and correction != CROSS_VALIDATION:
        raise ValueError(
            f"{', '.join('--' + name for name in given)}: expected only with --correction {CROSS_VALIDATION}, got with "
            f"--correction {correction}, which has no folds; leave it out."
        )
    if candidates is not None:
        given["candidates"] = take.numbers_of(candidates, "--candidates")
    return given


def _number(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        expected = {
            "--epsilon": 'a number, or NAME=NUMBER for each sum, such as "mean=1,covariance=1"',
            "--correction": f"a number between 0 and 0.5, {CROSS_VALIDATION} or {NO_CORRECTION}",
        }[option]
        raise ValueError(f"{option}: expected {expected}; got {text!r}.") from None


def _show(interval: ExtremaInterval, files: dict[str, Path | None]) -> None:
    """Print estimates, limits, those of other methods, then what all cost and what stands behind it."""
    estimates = (
        (name, f"{number:,.6g}") for name, number in zip(interval.parameters, interval.estimates.values, strict=True)
    )
    print_table([{"header": "parameter", "overflow": "fold"}, VALUES | {"header": "private estimate"}], estimates)
    compared = interval.compare()
    if interval.correction is None:
        compared = compared.drop(index="uncorrected").rename(index={"corrected": NO_CORRECTION})
    print_table(
        [
            {"header": "method", "overflow": "fold"},
            *(VALUES | {"header": f"{side} limit"} for side in compared.columns),
        ],
        [[METHODS_IN_WORDS[name], *(f"{number:,.6g}" for number in row)] for name, row in compared.iterrows()],
    )
    print_facts(_outcome(interval) | _cost(interval))
    print_files(files)


def _outcome(interval: ExtremaInterval) -> dict[str, str]:
    """Return the limits and what they are limits of."""
    which = "largest" if interval.extremum == "max" else "smallest"
    low, high = -math.inf if interval.lower is None else interval.lower, interval.upper
    bonferroni = ", Bonferroni: half of the error on each side" if interval.sided == "two" else ""
    kinds = {"none": "none: for comparison only, not valid", "fixed": f"r = {interval.correction}"}
    kinds["cv"] = f"r = {interval.correction}, chosen by cross-validation"
    return {
        f"{which} of {len(interval.parameters)}": f"from {low:,.6g} to {math.inf if high is None else high:,.6g}",
        "probability": f"{interval.ci_prob:g}{bonferroni}",
        "estimate": f"{interval.estimate:,.6g}, bias-reduced",
        "selected": f"{interval.selected}, the parameter with the {which} private estimate",
        "correction": kinds[interval.correction_choice],
        "bootstrap": f"{interval.replicates:,} replicates, seed {interval.bootstrap_seed}",
        "rows": f"{interval.n:,}",
    }


def _cost(interval: ExtremaInterval) -> dict[str, str]:
    """Return what was spent, and what stands behind it."""
    from pymc_dpdepth.record import GUARANTEES

    split = ", ".join(f"{name} {epsilon:g}" for name, epsilon in interval.epsilons.items())
    units = interval.max_rows_per_unit
    share = f", times {units} rows per person" if units > 1 else ""
    groups = "; the replaced row stays in its group" if interval.family.get("by") else ""
    return {
        "epsilon spent": f"{interval.epsilon:g}, once for everything shown ({split}{share}); delta {interval.delta:g}",
        "guarantee": f"{interval.guarantee}: {GUARANTEES[interval.guarantee]}",
        "neighbours": f"tables of the same number of rows that differ in one replaced row{groups}",
        "sampler": "laplace: sums with discrete Laplace noise",
    } | simulation_fact(interval)
