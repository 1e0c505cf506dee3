"""Private confidence intervals for the largest or smallest of several parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from pymc_dpdepth.budget import BudgetLedger, charge, check_data, labelled
from pymc_dpdepth.errors import UnfinishedReleaseError
from pymc_dpdepth.extrema.analysis import SEEDS, Settings, read_candidates, read_settings
from pymc_dpdepth.extrema.cross_validation import CANDIDATES
from pymc_dpdepth.extrema.family import Family
from pymc_dpdepth.extrema.noisy_sums import Folds, PendingSums
from pymc_dpdepth.extrema.record import ExtremaInterval
from pymc_dpdepth.extrema.registry import RELATIONS, check_name, described, guarantee_of
from pymc_dpdepth.extrema.rehearsal import rehearse
from pymc_dpdepth.extrema.released import ReleasedSums
from pymc_dpdepth.extrema.rows import RowSource, finite_rows, read_rows
from pymc_dpdepth.mechanism import MOST_ROWS_PER_UNIT, positive_integer
from pymc_dpdepth.privacy.rounding import float_above, float_below, number, written
from pymc_dpdepth.randomness import RandomBits, random_bits
from pymc_dpdepth.record_fields import a_list, a_text

__all__ = ["extrema_interval"]

NAME = "extrema_interval"
SUM, FRESH = "sum", "fresh"


def extrema_interval(
    data: Any,
    *,
    family: Family,
    epsilon: float | Mapping[str, float],
    extremum: str = "max",
    ci_prob: float = 0.95,
    sided: str = "lower",
    correction: float | str | None = 0.1,
    replicates: int = 2000,
    folds: int = 5,
    candidates: Sequence[float] = CANDIDATES,
    final: str = SUM,
    columns: Any = None,
    nonfinite: str = "raise",
    max_rows_per_unit: int = 1,
    ledger: BudgetLedger | None = None,
    label: str | None = None,
    random_seed: int | None = None,
    bootstrap_seed: int | None = None,
) -> ExtremaInterval:
    r"""Return a private confidence interval for the largest (or smallest) of several parameters.

    The largest of several estimates is too large: it was selected. The interval allows for that, and for the noise of
    privacy. Noisy sums of the rows are released once; everything else is computed from them. With estimates b_j, their
    largest m, n rows and bootstrap replicates b*_j, which get fresh noise of the same law,

        d_j = (1 - n^(r - 1/2)) (m - b_j),    lower limit = m - q_{1-a}(max_j(b*_j + d_j) - m),  a = 1 - ci_prob.

    Parameters
    ----------
    data : array_like, DataFrame or path, shape (n, d)
        Private rows, one for each unit; n is public.
    family : Family
        The model of the rows, such as ``dpd.extrema.Gaussian(bounds=(-4, 4))``.
    epsilon : float or dict
        Privacy loss of the whole call. A number is split evenly over the family's statistics; a dict gives each its
        own, such as ``{"mean": 1, "covariance": 1}``, and the cost is their sum.
    extremum : {"max", "min"}
        Whether the interval is for the largest or the smallest parameter.
    ci_prob : float
        Nominal probability that the interval holds the extremum.
    sided : {"lower", "upper", "two"}
        "lower": from a lower limit to infinity; "upper": from minus infinity to an upper limit; "two": both, each with
        half of the error (Bonferroni), so the probability is at least the nominal one.
    correction : float, "cv" or None
        r in (0, 1/2): the smaller, the stronger the correction. "cv" chooses it among `candidates`; None is the plain
        bootstrap, which covers too seldom where several parameters are near the extremum: for comparison only.
    replicates : int
        Bootstrap replicates: at least 1 / (1 - ci_prob) - 1, twice that for two limits, at least 20 with
        ``correction="cv"``, and at most 2^26 by the numbers that one has.
    folds : int
        With ``correction="cv"``: random folds, of which each gets noise of its own. Sizes are public.
    candidates : sequence of float
        With ``correction="cv"``: the values of r among which it chooses.
    final : {"sum", "fresh"}
        With ``correction="cv"``: what the interval itself is computed from. "sum": the sum of the noisy folds, at the
        full epsilon, with as many noises in it as there are folds. "fresh": half of each epsilon pays for the folds and
        half for another release of all rows, with one noise of twice the scale. The cost is the same.
    columns : sequence of str or int, optional
        Columns of the data to use, where the family does not name its own.
    nonfinite : {"raise", "center"}
        Refuse rows with non-finite entries before anything is charged, or set these entries to a public number of the
        family (for `Gaussian` the middle of the bounds).
    max_rows_per_unit : int
        Largest number of rows that one person may have; the cost is so many times epsilon.
    ledger : BudgetLedger, optional
        Charged once, before any noise is drawn. A `Ledger` that was opened with a key checks that `data` are its rows.
    label : str, optional
        What the ledger calls the charge, by default "extrema_interval". It is public and must not come from the rows.
    random_seed : int, optional
        For simulation: seeds noise, folds and bootstrap; warns and is recorded.
    bootstrap_seed : int, optional
        Seeds the bootstrap alone, which is post-processing: the release stays private. By default a fresh one, which is
        recorded, so that the interval can be computed again from its record.

    Returns
    -------
    ExtremaInterval
        `lower`, `upper`, `estimate` (bias-reduced), `selected`, and all that they were computed from; it may be
        published as a whole.

    Raises
    ------
    BudgetExceededError
        If the ledger's budget does not suffice.
    ValueError, TypeError
        If an argument is not usable, or the family fails in a rehearsal with made-up sums. In all cases so far nothing
        has been charged.
    UnfinishedReleaseError
        If a family of a user fails with the noisy sums all the same, or a file changes between two readings. They are
        released and paid for; the error's `released` holds them, and `ExtremaInterval.from_sums` computes the interval
        once the family is mended.

    Warns
    -----
    PrivacyLeakWarning
        If `random_seed` is given.

    Notes
    -----
    epsilon-DP for neighbours that differ in one replaced row; with folds too, since a replaced row is in one fold. The
    groups of `Bernoulli` and `Poisson` (by=) are public, and a row is replaced within its group: the record's
    `neighboring` then says "replace_one_within_group". Sums are added up as integers and get discrete Laplace noise of
    scale sensitivity / epsilon, so the families of the package that say so are at level "exact".

    The coverage is that of a bootstrap: it tends to the nominal one as n grows, if the family's model holds. The upper
    limit of the largest parameter is the largest of the single upper limits. The bias-reduced estimate is biased
    downwards where the parameters are well separated.

    References
    ----------
    .. [1] X. Fu, Y. Xiang and X. Guo, Differentially private confidence interval for extrema of parameters, 2023.

    Examples
    --------
    >>> import numpy as np, pymc_dpdepth as dpd
    >>> rows = np.sin(np.arange(6000.0)).reshape(2000, 3) + [0.0, 0.5, 2.0]
    >>> ci = dpd.extrema_interval(rows, family=dpd.extrema.Gaussian(bounds=(-4, 4)), epsilon=20.0)
    >>> ci.selected, ci.lower < 2.0, ci.upper, ci.epsilon, ci.guarantee
    ('x2', True, None, 20.0, 'exact')
    """
    ledger = labelled(ledger, label)
    read_candidates(candidates)  # what is given must be usable, used or not
    settings = read_settings(extremum, ci_prob, sided, correction, replicates, candidates, bootstrap_seed)
    plan = _read_plan(family, epsilon, settings, folds, final, max_rows_per_unit)
    check_data(ledger, data)
    rows, names = _read_rows(family, data, columns, nonfinite)
    if settings.cross_validated and plan.folds > rows.n:
        raise ValueError(f"folds: expected at most {rows.n}, the number of rows, got {plan.folds}.")
    draft = ReleasedSums(
        family=described(family),
        parameters=tuple(names),
        columns=tuple(rows.columns),
        settings=settings,
        n=rows.n,
        epsilon=plan.cost,
        guarantee=guarantee_of(family),
        neighboring=family.neighboring,
        max_rows_per_unit=plan.max_rows_per_unit,
        nonfinite=nonfinite,
        simulation=random_seed is not None,
    )
    bits = random_bits(random_seed)
    splits = _splits(plan, rows.n, settings, bits)
    rehearse(family, draft, [(folds.sizes, epsilons) for folds, epsilons in splits])
    sums = PendingSums(family, rows, splits)
    charge(ledger, epsilon=plan.cost, delta=0.0, label=NAME)
    return _finish(family, draft, sums, bits)


def _finish(family: Family, draft: ReleasedSums, sums: PendingSums, bits: RandomBits) -> ExtremaInterval:
    """Add the noise and compute the interval; once paid for, nothing that was released is lost."""
    try:
        sums.finish(bits)
        # From here on the rows play no part.
        if draft.settings.bootstrap_seed is None:
            draft = replace(draft, settings=draft.settings.seeded(bits.index(SEEDS)))
        return ExtremaInterval.from_sums(family, draft.holding(sums.released))
    except Exception as error:
        if sums.missing:
            what = f"The release stopped before the statistics {sums.missing} were released"
            cure = "The charge stands. What was released is in the error's `released`."
        else:
            what = "The noisy sums were released, and the interval could not be computed from them"
            cure = (
                "They are in the error's `released`, paid for: mend the family, and compute the interval with "
                "dpd.ExtremaInterval.from_sums(family, error.released), free of cost."
            )
        raise UnfinishedReleaseError(
            f"{what}, since {type(error).__name__} came from the family {draft.family['name']!r}. {cure}",
            draft.holding(sums.released),
        ) from error


@dataclass(frozen=True)
class _Plan:
    """What is paid for: epsilons of the statistics, the cost for a person, and how folds share it."""

    epsilons: dict[str, float]
    cost: float
    max_rows_per_unit: int
    folds: int
    final: str


def _read_plan(family, epsilon, settings: Settings, folds, final, max_rows_per_unit) -> _Plan:
    """Check the family and what is paid."""
    if isinstance(family, type) or not isinstance(family, Family):
        got = (
            f"the class {family.__name__}; make an object of it" if isinstance(family, type) else type(family).__name__
        )
        raise TypeError(f"family: expected an object such as dpd.extrema.Gaussian(bounds=(-4, 4)), got {got}.")
    check_name(family)
    if family.neighboring not in RELATIONS:
        raise ValueError(f"family: expected its neighboring to be one of {RELATIONS}, got {family.neighboring!r}.")
    names = family.statistic_names
    # A text would be taken for the tuple of its letters.
    texts = isinstance(names, tuple | list) and all(isinstance(name, str) and name for name in names)
    if not texts or not names or len(set(names)) < len(names):
        raise ValueError(f"family: expected a tuple of one or more different statistic_names, got {names!r}.")
    max_rows_per_unit = positive_integer(max_rows_per_unit, "max_rows_per_unit")
    if max_rows_per_unit > MOST_ROWS_PER_UNIT:
        raise ValueError(f"max_rows_per_unit: expected at most 2^53, got {max_rows_per_unit}.")
    epsilons, total = _split(epsilon, names)
    folds = positive_integer(folds, "folds")
    if folds < 2:
        raise ValueError(f"folds: expected at least 2, got {folds}.")
    if final not in (SUM, FRESH):
        raise ValueError(f'final: expected "sum" or "fresh", got {final!r}.')
    if settings.cross_validated and final == FRESH:
        epsilons = {name: float_below(written(value) / 2) for name, value in epsilons.items()}
    return _Plan(epsilons, float_above(max_rows_per_unit * total), max_rows_per_unit, folds, final)


def _split(epsilon: Any, names: Sequence[str]) -> tuple[dict[str, float], Fraction]:
    """Return the epsilon of each statistic, as decimals that add up to at most the total, and the total."""
    if not isinstance(epsilon, Mapping):
        total = written(float(number(epsilon, "epsilon")))
        return dict.fromkeys(names, float_below(total / len(names))), total
    if set(epsilon) != set(names):
        raise ValueError(
            f"epsilon: expected a number, or one for each of {sorted(names)}; got {sorted(map(str, epsilon))}."
        )
    epsilons = {name: float(number(epsilon[name], f"epsilon[{name!r}]")) for name in names}
    return epsilons, sum(map(written, epsilons.values()), Fraction(0))


def _read_rows(family: Family, data: Any, columns: Any, nonfinite: str) -> tuple[RowSource, list[str]]:
    """Return the checked rows and the names of the parameters."""
    own = family.columns()
    if own is not None and columns is not None:
        raise ValueError("columns: expected None, since the family names its columns; leave it out.")
    rows = read_rows(data, columns if own is None else own)
    a_list(a_text)(rows.columns, "columns")
    names = family.parameters(rows.columns)
    a_list(a_text)(names, "parameters")
    if not names or len(set(names)) < len(names):
        raise ValueError(f"parameters: expected one or more different names from the family, got {names!r}.")
    if not rows.n:
        raise ValueError("data: expected at least one row, got none.")
    rows = finite_rows(rows, nonfinite, family.centers)
    if type(family).check is not Family.check:
        family.check(rows.chunks(), rows.columns)
    return rows, list(names)


def _splits(plan: _Plan, n: int, settings: Settings, bits: RandomBits) -> list[tuple[Folds, dict[str, float]]]:
    """Return how the rows are split: what the interval is computed from first, what r is chosen by last."""
    if not settings.cross_validated:
        return [(Folds.whole(n), plan.epsilons)]
    folds = (Folds.at_random(n, plan.folds, bits), plan.epsilons)
    return [folds] if plan.final == SUM else [(Folds.whole(n), plan.epsilons), folds]
