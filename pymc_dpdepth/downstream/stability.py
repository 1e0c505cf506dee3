r"""Monte Carlo error of the ends of an interval, from independent runs of particles.

Particles of one run that go back to one draw of the prior are not independent; how much they move apart afterwards is
not known. With x_i the P particles of all runs, p the share below an end q, and A the ancestors,

    var(share) ~ sum_A ( sum_{i of A} ([x_i <= q] - p) / P )^2 / (1 - sum_A w_A^2),    w_A = particles of A / P,

the estimate of Lee and Whiteley over what is lost by taking q from the same particles. It is p (1 - p) / (P - 1) where
no two particles share an ancestor. The error of q is half the distance of the quantiles at p - s and p + s, s the root.
From few ancestors, of which 1 / sum_A w_A^2 is a number, no error can be told.

References
----------
.. [1] A. Lee and N. Whiteley, Variance estimation in the particle filter, Biometrika 105 (2018) 609-625,
       doi:10.1093/biomet/asy028.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from pymc_dpdepth.errors import warn_user

__all__ = ["errors_of_ends", "families_of", "largest_r_hat", "warn_of_unstable_ends"]

# Of the interval's width, above which an end is not stable; and R-hat of runs that differ (Vehtari and others, 2021).
LARGEST_SHARE, LARGEST_R_HAT = 0.1, 1.05
FEWEST_ANCESTORS = 20  # an error from so many is itself uncertain by a sixth, or by more where they are unlike


def families_of(ancestors: Sequence[np.ndarray]) -> tuple[np.ndarray, float]:
    """Return the number of each particle's family, over all chains, and the effective number of families."""
    numbers = np.concatenate([chain + i * (2**32) for i, chain in enumerate(ancestors)])
    _, family = np.unique(numbers, return_inverse=True)
    shares = np.bincount(family) / len(family)
    return family, float(1 / (shares**2).sum())


def errors_of_ends(draws: np.ndarray, ancestors: Sequence[np.ndarray], tails: Sequence[float]) -> np.ndarray:
    """Return the standard errors of quantiles.

    Parameters
    ----------
    draws : ndarray, shape (chains, P, d)
    ancestors : sequence of ndarray of int, each of shape (P,)
        Of each chain.
    tails : sequence of float
        Probabilities of the quantiles.

    Returns
    -------
    ndarray, shape (d, len(tails))
        Infinite where all particles have one ancestor.
    """
    pooled = draws.reshape(-1, draws.shape[2])
    family, effective = families_of(ancestors)
    if family.max() == 0:
        return np.full((pooled.shape[1], len(tails)), np.inf)
    errors = np.empty((pooled.shape[1], len(tails)))
    for j, column in enumerate(pooled.T):
        for k, tail in enumerate(tails):
            below = (column <= np.quantile(column, tail)) - tail
            variance = (np.bincount(family, below) ** 2).sum() / len(column) ** 2 / (1 - 1 / effective)
            steps = np.array([-1.0, 1.0]) * np.sqrt(variance)
            low, high = np.quantile(column, np.clip(tail + steps, 0.0, 1.0))
            errors[j, k] = (high - low) / 2
    return errors


def largest_r_hat(draws: np.ndarray) -> float:
    """Return the largest rank-normalised split R-hat of columns of draws (chains, P, d); NaN for one chain."""
    from arviz_stats.base import array_stats

    if len(draws) == 1:
        return np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of constant columns
        return float(max(array_stats.rhat(draws[..., j]) for j in range(draws.shape[2])))


def warn_of_unstable_ends(errors: np.ndarray, intervals: np.ndarray, r_hat: float, ancestors: float) -> None:
    """Warn where other random numbers would give an interval that looks different.

    Parameters
    ----------
    errors, intervals : ndarray, shape (d, 2)
    r_hat : float
    ancestors : float
        Effective number of families. Few do no harm where the particles have moved since, which R-hat of several chains
        shows, so it counts for one chain alone.
    """
    alone = np.isnan(r_hat)  # one chain, and no other to vouch for particles that have forgotten their ancestors
    shares = errors / np.maximum(np.ptp(intervals, axis=1, keepdims=True), np.finfo(float).tiny)
    if shares.max() > LARGEST_SHARE or r_hat > LARGEST_R_HAT or (alone and ancestors < FEWEST_ANCESTORS):
        warn_user(
            f"The interval is not stable: its ends have Monte Carlo errors of up to {shares.max():.2g} of its width, "
            f"R-hat is {r_hat:.3g}, and the particles go back to {ancestors:.0f} draws of the prior, so another "
            "random_seed gives a different one. Take more draws and chains, or a narrower prior of the population.",
            UserWarning,
        )
