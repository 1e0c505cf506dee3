r"""Choosing the correction r by cross-validation over folds whose noisy sums were released.

For each fold v the other folds' noisy sums are added up, with the noises in them, and a bootstrap from them gives the
bias-reduced estimate b_red^(-v)(r). It is compared with the estimates b_j^(v) of the fold:

    H_j(r) = sum_v [ (b_red^(-v)(r) - b_j^(v))^2 - var_j^(v) ],        r = argmin_r min_j H_j(r).

var_j^(v) is the variance of b_j^(v), so that H_j(r) estimates the squared error of b_red(r) as an estimate of
parameter j; the least over j stands for the parameter that is the largest. It is taken from simulations of a table of
the fold's size, with one noise, under the model of all folds. Everything is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pymc_dpdepth.extrema.bootstrap import bootstrap_estimates, point_estimates
from pymc_dpdepth.extrema.family import Family
from pymc_dpdepth.extrema.limits import bias_reduced
from pymc_dpdepth.extrema.noisy_sums import NoisySums

__all__ = ["CANDIDATES", "LEAST_REPLICATES", "CrossValidation", "cross_validate"]

CANDIDATES = (1 / 30, 1 / 15, 1 / 10, 1 / 5, 1 / 3)
# var_j is estimated from replicates; of so few it has a relative error of sqrt(2 / 19) = .3 already.
LEAST_REPLICATES = 20


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """The criterion and the choice.

    Attributes
    ----------
    candidates : tuple of float
        Corrections r, in increasing order.
    criterion : ndarray, shape (candidates, k)
        H_j(r).
    """

    candidates: tuple[float, ...]
    criterion: np.ndarray

    @property
    def choice(self) -> float:
        """The r with the least min_j H_j(r); of equal ones the smallest, which corrects the most."""
        return self.candidates[int(np.argmin(self.criterion.min(axis=1)))]


def cross_validate(
    family: Family, folds: NoisySums, candidates: Sequence[float], sign: float, replicates: int, generators: Sequence
) -> CrossValidation:
    """Return H_j(r) of each candidate.

    Parameters
    ----------
    family : Family
    folds : NoisySums
        Two or more parts.
    candidates : sequence of float
        In (0, 1/2).
    sign : float
        1 for the largest parameter, -1 for the smallest, as that of the negatives.
    replicates : int
        Replicates of each bootstrap.
    generators : sequence of NumPy Generator
        One for each fold, and one more.
    """
    *of_fold, last = generators
    variances = _variances(family, folds, replicates, last)
    candidates = tuple(sorted(candidates))
    criterion = 0.0
    for part, generator in enumerate(of_fold):
        others = folds.pool([other for other in range(len(folds.rows)) if other != part])
        estimates = sign * point_estimates(family, others)
        drawn = sign * bootstrap_estimates(family, others, replicates, generator)
        reduced = np.array([bias_reduced(estimates, drawn, others.n, r) for r in candidates])
        held_out = sign * point_estimates(family, folds.pool([part]))
        criterion = criterion + (reduced[:, None] - held_out) ** 2 - variances[folds.rows[part]]
    return CrossValidation(candidates, criterion)


def _variances(family: Family, folds: NoisySums, replicates: int, generator: Any) -> dict[int, np.ndarray]:
    """Return the variances of a fold's estimates, shape (k,), for each size that a fold has."""
    everything = folds.pool()
    return {
        size: bootstrap_estimates(family, everything, replicates, generator, n=size, copies=1).var(axis=0, ddof=1)
        for size in sorted(set(folds.rows))
    }
