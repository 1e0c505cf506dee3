"""Private scale rank test: power against the test on depths without noise, and size.

Rows: two samples of n = m = 100 or 500, standard normal in d = 2, the second one times 2 (power) or 1 (size); depth IRW
(integrated rank-weighted), level .05. "in all" has n rows in both samples together. A share of REPLICATES has a Monte
Carlo error of at most .5 / sqrt(REPLICATES) = .016, a size of .05 one of .007.

Run: python benchmarks/bench_scale_test.py
"""

from __future__ import annotations

import numpy as np

import pymc_dpdepth as dpd
from pymc_dpdepth.scale_test import ScaleTest, rank_sum_test

REPLICATES, D, RATIO, LEVEL = 1000, 2, 2.0, 0.05
DEPTH = dpd.IntegratedRankWeighted()
SIZES = [(50, "100 in all"), (100, "100 each"), (250, "500 in all"), (500, "500 each")]
EPSILONS = [None, 10.0, 5.0, 1.0]  # None: no noise
ALTERNATIVES = ["two-sided", "greater"]


def p_values(n, ratio, epsilon, generator):
    """Return the p-value of each alternative for one pair of samples."""
    X, Y = generator.normal(size=(n, D)), ratio * generator.normal(size=(n, D))
    if epsilon is None:
        pooled = np.concatenate([X, Y])
        depths = DEPTH.resolve(D).evaluate(pooled, pooled)
        return [rank_sum_test(depths, n, alternative)[1] for alternative in ALTERNATIVES]
    release = dpd.private_scale_test(X, Y, depth=DEPTH, epsilon=epsilon).depths
    return [ScaleTest.from_release(release, n, alternative).p_value for alternative in ALTERNATIVES]


def main():
    """Print one line for each number of rows and epsilon."""
    print("rows        epsilon  power two-sided  one-sided   size two-sided  one-sided")
    for n, name in SIZES:
        for epsilon in EPSILONS:
            shares = []
            for ratio in (RATIO, 1.0):
                generator = np.random.default_rng(n)
                rejected = [np.less_equal(p_values(n, ratio, epsilon, generator), LEVEL) for _ in range(REPLICATES)]
                shares += np.mean(rejected, axis=0).tolist()
            epsilon = epsilon or "no noise"
            print(f"{name:11} {epsilon!s:9}" + "{:14.3f} {:10.3f} {:16.3f} {:10.3f}".format(*shares), flush=True)


if __name__ == "__main__":
    main()
