"""Noise variance in private linear regression: the residual sum of squares against y'y.

Rows: k = 5 columns uniform on [-1, 1], y = x'b + N(0, 1) clipped to [-5, 5]; all coefficients b equal; no intercept.
epsilon is split evenly. Printed for both ways: bias and root mean square error of sigma (true value 1), coverage of the
95% lower limit of the largest coefficient and its mean distance from the truth. Both ways get the same tables. A
coverage of TABLES tables has a Monte Carlo error of about .22 / sqrt(TABLES) = .010.

Run: python benchmarks/bench_extrema_variance.py
"""

from __future__ import annotations

import numpy as np

import pymc_dpdepth as dpd

TABLES, REPLICATES, K, LARGEST = 500, 500, 5, 5.0
SIZES = [300, 1000, 5000]
EPSILONS = [2.0, 5.0]
COEFFICIENTS = [0.0, 0.5, 1.0]
NAMES = [f"x{j}" for j in range(1, K + 1)]


def sigma_of(ci, family):
    """Return the estimate of sigma in units of the response."""
    deviations = {name: np.sqrt(2) * scale for name, scale in ci.noise_scales.items()}
    return LARGEST * float(np.sqrt(family.model(ci.statistics, ci.n, deviations)["variance"]))


def main():
    """Print one line for each setting."""
    print("n      epsilon  b     variance   bias    rmse    coverage  width")
    bounds = {"x0": (-LARGEST, LARGEST)} | dict.fromkeys(NAMES, (-1, 1))
    for n in SIZES:
        for epsilon in EPSILONS:
            for b in COEFFICIENTS:
                for variance in ("residual", "moments"):
                    family = dpd.extrema.LinearRegression(
                        "x0", NAMES, bounds=bounds, intercept=False, variance=variance
                    )
                    generator = np.random.default_rng(n)
                    sigmas, lowers = [], []
                    for _ in range(TABLES):
                        columns = generator.uniform(-1, 1, (n, K))
                        rows = np.column_stack([columns.sum(axis=1) * b + generator.normal(size=n), columns])
                        ci = dpd.extrema_interval(rows, family=family, epsilon=epsilon, replicates=REPLICATES)
                        sigmas.append(sigma_of(ci, family))
                        lowers.append(ci.lower)
                    error, gap = np.array(sigmas) - 1, b - np.array(lowers)
                    figures = error.mean(), np.sqrt((error**2).mean()), (gap >= 0).mean(), gap.mean()
                    print(
                        f"{n:<6} {epsilon:<8} {b:<5} {variance:9}"
                        + " {:+7.3f} {:7.3f} {:9.3f} {:8.3f}".format(*figures),
                        flush=True,
                    )


if __name__ == "__main__":
    main()
