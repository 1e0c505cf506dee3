r"""Limits for the largest of several parameters, from estimates and their bootstrap replicates.

With estimates b_j, their largest m, and replicates b*_j:

    d_j = (1 - n^(r - 1/2)) (m - b_j)                                   (0 in the plain bootstrap)
    lower limit   m - q_{1-a}(max_j(b*_j + d_j) - m)
    estimate      m - mean(max_j(b*_j + d_j) - m)
    upper limit   max_j of the limits b_j - q_a(b*_j - b_j) of single parameters

The shift d_j brings the replicates of parameters near the top up to it, so that their maximum varies as it does where
several parameters share the largest value. The upper limit is valid since it is not below that of the true arg max. The
mirrored quantile, m - q_a(max_j b*_j - m), is not valid.

Quantiles are order statistics, the ceil((R + 1)(1 - a))-th smallest of R: among R + 1 exchangeable values the last one
is not above it with probability at least 1 - a.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

__all__ = [
    "SIDES",
    "Limits",
    "bias_reduced",
    "bonferroni_limits",
    "extremum_limits",
    "largest_replicates",
    "naive_limits",
    "plain_limits",
    "rank_of_quantile",
    "side_errors",
]

# "two" gives each side half of the error: Bonferroni.
ERRORS = {"lower": (1, None), "upper": (None, 1), "two": (Fraction(1, 2), Fraction(1, 2))}
SIDES = tuple(ERRORS)


@dataclass(frozen=True)
class Limits:
    """Limits where they were asked for; None elsewhere."""

    lower: float | None
    upper: float | None

    def mirrored(self) -> Limits:
        """Return the limits of the smallest parameter, from those of the largest of the negatives."""
        return Limits(None if self.upper is None else -self.upper, None if self.lower is None else -self.lower)


def side_errors(alpha: Fraction, sided: str) -> tuple[Fraction | None, Fraction | None]:
    """Return the error that the lower and the upper limit may each have."""
    return tuple(None if share is None else share * alpha for share in ERRORS[sided])


def correction_shift(estimates: np.ndarray, n: int, r: float | None) -> np.ndarray:
    """Return d_j, shape (k,); 0 for r = None."""
    if r is None:
        return np.zeros_like(estimates)
    return (1.0 - n ** (r - 0.5)) * (estimates.max() - estimates)


def largest_replicates(estimates: np.ndarray, replicates: np.ndarray, n: int, r: float | None) -> np.ndarray:
    """Return max_j(b*_j + d_j), shape (R,)."""
    return (replicates + correction_shift(estimates, n, r)).max(axis=1)


def bias_reduced(estimates: np.ndarray, replicates: np.ndarray, n: int, r: float | None) -> float:
    """Return m - mean(max_j(b*_j + d_j) - m)."""
    largest = float(estimates.max())
    return largest - float((largest_replicates(estimates, replicates, n, r) - largest).mean())


def rank_of_quantile(count: int, alpha: Fraction) -> int:
    """Return which of `count` sorted values, from 1, is the upper limit of error alpha; count + 1 if none is."""
    return math.ceil((count + 1) * (1 - alpha))


def upper_quantile(values: np.ndarray, alpha: Fraction) -> np.ndarray:
    """Return q_{1-alpha} of each column of shape (R, ...), infinity where R is too small for it."""
    rank = rank_of_quantile(len(values), alpha)
    if rank > len(values):
        return np.full(values.shape[1:], math.inf)
    return np.partition(values, rank - 1, axis=0)[rank - 1]


def extremum_limits(
    estimates: np.ndarray, replicates: np.ndarray, n: int, r: float | None, alpha: Fraction, sided: str
) -> Limits:
    """Return the limits of the largest parameter.

    Parameters
    ----------
    estimates : ndarray, shape (k,)
    replicates : ndarray, shape (R, k)
    n : int
        Number of rows.
    r : float or None
        The correction, in (0, 1/2), or None.
    alpha : Fraction
        Error that is allowed, on both sides together.
    sided : {"lower", "upper", "two"}
    """
    below, above = side_errors(alpha, sided)
    largest = float(estimates.max())
    lower = upper = None
    if below is not None:
        shifted = largest_replicates(estimates, replicates, n, r)
        lower = largest - float(upper_quantile(shifted - largest, below))
    if above is not None:
        upper = float(_single_upper(estimates, replicates, above).max())
    return Limits(lower, upper)


def plain_limits(estimates: np.ndarray, replicates: np.ndarray, alpha: Fraction, sided: str) -> Limits:
    """Return the quantiles of the plain bootstrap of the maximum on both sides, for comparison: neither is valid."""
    below, above = side_errors(alpha, sided)
    largest = float(estimates.max())
    moved = replicates.max(axis=1) - largest
    return Limits(
        None if below is None else largest - float(upper_quantile(moved, below)),
        None if above is None else largest + float(upper_quantile(-moved, above)),
    )


def naive_limits(estimates: np.ndarray, replicates: np.ndarray, alpha: Fraction, sided: str) -> Limits:
    """Return the limits of the parameter with the largest estimate, as if it had been chosen beforehand."""
    below, above = side_errors(alpha, sided)
    best = [int(np.argmax(estimates))]
    return Limits(
        None if below is None else float(_single_lower(estimates[best], replicates[:, best], below)[0]),
        None if above is None else float(_single_upper(estimates[best], replicates[:, best], above)[0]),
    )


def bonferroni_limits(estimates: np.ndarray, replicates: np.ndarray, alpha: Fraction, sided: str) -> Limits:
    """Return the limits that simultaneous intervals for all parameters give, each with error alpha / k."""
    below, above = side_errors(alpha / len(estimates), sided)
    return Limits(
        None if below is None else float(_single_lower(estimates, replicates, below).max()),
        None if above is None else float(_single_upper(estimates, replicates, above).max()),
    )


def _single_lower(estimates: np.ndarray, replicates: np.ndarray, alpha: Fraction) -> np.ndarray:
    """Return b_j - q_{1-alpha}(b*_j - b_j)."""
    return estimates - upper_quantile(replicates - estimates, alpha)


def _single_upper(estimates: np.ndarray, replicates: np.ndarray, alpha: Fraction) -> np.ndarray:
    """Return b_j - q_alpha(b*_j - b_j), the quantile being less that of the negatives."""
    return estimates + upper_quantile(estimates - replicates, alpha)
