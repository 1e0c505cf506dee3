"""From noisy sums to an interval: the settings of the post-processing, and its steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from pymc_dpdepth.extrema.bootstrap import bootstrap_estimates, check_memory, point_estimates
from pymc_dpdepth.extrema.cross_validation import LEAST_REPLICATES, CrossValidation, cross_validate
from pymc_dpdepth.extrema.family import Family
from pymc_dpdepth.extrema.limits import (
    SIDES,
    Limits,
    bias_reduced,
    bonferroni_limits,
    extremum_limits,
    naive_limits,
    plain_limits,
    side_errors,
)
from pymc_dpdepth.extrema.noisy_sums import NoisySums
from pymc_dpdepth.mechanism import positive_integer
from pymc_dpdepth.privacy.rounding import number, written
from pymc_dpdepth.randomness import curator_generator

__all__ = [
    "CHOICES",
    "EXTREMA",
    "SEEDS",
    "Settings",
    "analyse",
    "comparison",
    "outcome",
    "read_candidates",
    "read_settings",
]

EXTREMA = ("max", "min")
FIXED, NONE, CROSS_VALIDATION = "fixed", "none", "cv"
CHOICES = (FIXED, NONE, CROSS_VALIDATION)
LARGEST_CORRECTION = 0.5
# A seed that every reader of JSON keeps; it hides nothing.
SEEDS = 2**53


@dataclass(frozen=True)
class Settings:
    """What the interval is to be; none of it costs anything.

    Attributes
    ----------
    extremum : {"max", "min"}
    ci_prob : float
    sided : {"lower", "upper", "two"}
    correction_choice : {"fixed", "none", "cv"}
    correction : float or None
        r; None for "none", and for "cv" before it is chosen.
    candidates : tuple of float
        For "cv", otherwise empty.
    replicates : int
    bootstrap_seed : int or None
        None before one is drawn.
    """

    extremum: str
    ci_prob: float
    sided: str
    correction_choice: str
    correction: float | None
    candidates: tuple[float, ...]
    replicates: int
    bootstrap_seed: int | None

    @property
    def cross_validated(self) -> bool:
        """Whether r is chosen by cross-validation."""
        return self.correction_choice == CROSS_VALIDATION

    @property
    def alpha(self) -> Fraction:
        """The error that is allowed: 1 less the decimal that was written."""
        return 1 - written(self.ci_prob)

    @property
    def sign(self) -> float:
        """The smallest parameter is the negative of the largest of the negatives."""
        return 1.0 if self.extremum == "max" else -1.0

    @property
    def mirrored_side(self) -> str:
        """The side of the largest parameter that is computed."""
        return self.sided if self.extremum == "max" else {"lower": "upper", "upper": "lower"}.get(self.sided, "two")

    @property
    def least_replicates(self) -> int:
        """The fewest replicates that have the quantiles, and the variances of a choice by cross-validation.

        A quantile is an order statistic, the ceil((R + 1)(1 - a))-th of R, so that R + 1 has to be 1 / a or more.
        """
        error = min(error for error in side_errors(self.alpha, self.sided) if error is not None)
        return max(math.ceil(1 / error) - 1, LEAST_REPLICATES if self.cross_validated else 1)

    def seeded(self, seed: int) -> Settings:
        """Return the settings with a seed."""
        return replace(self, bootstrap_seed=seed)

    def chosen(self, r: float) -> Settings:
        """Return the settings with the correction that cross-validation chose."""
        return replace(self, correction=r)


def read_settings(extremum, ci_prob, sided, correction, replicates, candidates, bootstrap_seed) -> Settings:
    """Check the arguments of the post-processing."""
    for name, value, words in (("extremum", extremum, EXTREMA), ("sided", sided, SIDES)):
        if not isinstance(value, str) or value not in words:
            raise ValueError(f"{name}: expected one of {words}, got {value!r}.")
    ci_prob = float(number(ci_prob, "ci_prob"))
    if ci_prob >= 1:
        raise ValueError(f"ci_prob: expected a number in (0, 1), such as 0.95, got {ci_prob}.")
    choice, r, kept = FIXED, None, ()
    if correction is None:
        choice = NONE
    elif isinstance(correction, str):
        if correction != CROSS_VALIDATION:
            raise ValueError(f'correction: expected a number in (0, 0.5), "cv" or None, got {correction!r}.')
        choice, kept = CROSS_VALIDATION, read_candidates(candidates)
    else:
        r = _correction(correction, "correction")
    settings = Settings(extremum, ci_prob, sided, choice, r, kept, positive_integer(replicates, "replicates"), None)
    least = settings.least_replicates
    if settings.replicates < least:
        cv = ' and correction="cv"' if settings.cross_validated else ""
        raise ValueError(
            f"replicates: expected at least {least} for ci_prob={ci_prob:g}, sided={sided!r}{cv}, got "
            f"{settings.replicates}."
        )
    check_memory(settings.replicates, 1)
    if bootstrap_seed is None:
        return settings
    if isinstance(bootstrap_seed, bool) or not isinstance(bootstrap_seed, int | np.integer) or bootstrap_seed < 0:
        raise ValueError(
            f"bootstrap_seed: expected None or a non-negative int, got {type(bootstrap_seed).__name__}; it does not "
            "touch the noise of privacy."
        )
    return settings.seeded(int(bootstrap_seed))


def _correction(value: Any, name: str) -> float:
    r = float(number(value, name))
    if r >= LARGEST_CORRECTION:
        raise ValueError(f"{name}: expected a number in (0, 0.5), got {r}; the smaller, the stronger the correction.")
    return r


def read_candidates(candidates: Any) -> tuple[float, ...]:
    """Return checked corrections among which cross-validation chooses."""
    if isinstance(candidates, str | bytes) or not isinstance(candidates, Sequence | np.ndarray):
        raise TypeError(f"candidates: expected a list of numbers in (0, 0.5), got {type(candidates).__name__}.")
    if not len(candidates):
        raise ValueError("candidates: expected one or more numbers in (0, 0.5), got none.")
    kept = tuple(sorted(_correction(value, "candidates") for value in candidates))
    if len(set(kept)) < len(kept):
        raise ValueError("candidates: expected different numbers, one came twice.")
    return kept


@dataclass(frozen=True, eq=False)
class Analysis:
    """Estimates, shape (k,), their replicates, shape (R, k), and how r was chosen."""

    settings: Settings
    estimates: np.ndarray
    replicates: np.ndarray
    cross_validation: CrossValidation | None


def analyse(family: Family, released: NoisySums, folds: NoisySums | None, settings: Settings) -> Analysis:
    """Estimate, draw the bootstrap and choose r, all from noisy sums and a seed.

    Parameters
    ----------
    family : Family
    released : NoisySums
        What the interval is computed from.
    folds : NoisySums or None
        What r is chosen by.
    settings : Settings
        With a seed.
    """
    # Streams of their own, so that the bootstrap is the same whether or not r is chosen by cross-validation.
    generator = curator_generator(settings.bootstrap_seed)
    main, *others = generator.spawn(1 if folds is None else 2 + len(folds.rows))
    pooled = released.pool()
    estimates = point_estimates(family, pooled)
    replicates = bootstrap_estimates(family, pooled, settings.replicates, main)
    chosen = None
    if settings.cross_validated:
        chosen = cross_validate(family, folds, settings.candidates, settings.sign, settings.replicates, others)
        settings = settings.chosen(chosen.choice)
    return Analysis(settings, estimates, replicates, chosen)


def outcome(settings: Settings, estimates: np.ndarray, replicates: np.ndarray, n: int) -> tuple[Limits, float, int]:
    """Return the limits, the bias-reduced estimate and the position of the extreme estimate."""
    signed, drawn = settings.sign * estimates, settings.sign * replicates
    limits = extremum_limits(signed, drawn, n, settings.correction, settings.alpha, settings.mirrored_side)
    reduced = settings.sign * bias_reduced(signed, drawn, n, settings.correction)
    return _unmirrored(limits, settings), reduced, int(np.argmax(signed))


def comparison(settings: Settings, estimates: np.ndarray, replicates: np.ndarray, n: int) -> dict[str, Limits]:
    """Return the limits of other methods beside the corrected ones, from the same replicates."""
    signed, drawn = settings.sign * estimates, settings.sign * replicates
    alpha, side = settings.alpha, settings.mirrored_side
    limits = {
        "naive": naive_limits(signed, drawn, alpha, side),
        "uncorrected": plain_limits(signed, drawn, alpha, side),
        "corrected": extremum_limits(signed, drawn, n, settings.correction, alpha, side),
        "bonferroni": bonferroni_limits(signed, drawn, alpha, side),
    }
    return {name: _unmirrored(each, settings) for name, each in limits.items()}


def _unmirrored(limits: Limits, settings: Settings) -> Limits:
    return limits if settings.extremum == "max" else limits.mirrored()
