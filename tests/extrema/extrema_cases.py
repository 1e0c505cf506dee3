"""What the tests of intervals share."""

import numpy as np

from pymc_dpdepth.extrema.noisy_sums import Folds, NoisySums, ReleasedStatistic
from pymc_dpdepth.privacy.noise import laplace_noise

BOUNDS = (-4.0, 4.0)


def normal_rows(n=300, k=3, seed=0, mu=0.0):
    return np.random.default_rng(seed).normal(size=(n, k)) + mu


def simulated_sums(family, rows, epsilons, generator, folds=None):
    """Return noisy sums with seeded noise: the law of a release, without its randomness."""
    n, k = rows.shape
    folds = Folds.whole(n) if folds is None else folds
    released = {}
    for statistic in family.statistics(n, [f"x{j}" for j in range(k)], {}):
        noise = laplace_noise(statistic.sensitivity, epsilons[statistic.name])
        labels = np.zeros(n, dtype=int) if folds.labels is None else folds.labels
        counts = np.array([family.counts(rows[labels == part], statistic, {}) for part in range(len(folds.sizes))])
        sums = (counts + noise.simulate(counts.shape, generator)) * statistic.grid
        released[statistic.name] = ReleasedStatistic(statistic.grid, statistic.sensitivity, noise, sums)
    return NoisySums(folds.sizes, released)
