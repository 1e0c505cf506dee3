"""Speed of intervals for extrema: k = 10 columns, n = 1,000,000 rows, 2,000 bootstrap replicates.

After the sums: everything that follows from the noisy sums (model, replicates with fresh noise, limits, record), as a
ratio to one draw of 2,000 multivariate normal vectors of length k, which is the least that a parametric bootstrap does.
The sums: exact sums of integers on the grid, as a ratio to one product of matrices of doubles, X'X by `np.dot`, which
reads the same rows. Medians of pairs that are timed in turn, on one thread.

Run: python benchmarks/bench_extrema.py
"""

from __future__ import annotations

# ruff: noqa: E402
import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import time

import numpy as np

import pymc_dpdepth as dpd

N, K, REPLICATES, PAIRS = 1_000_000, 10, 2000, 7


def seconds(action):
    """Return how long a call takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def compare(name, ours, baseline, against):
    """Print medians of times, and of ratios of pairs."""
    ours(), baseline()
    times = np.array([(seconds(ours), seconds(baseline)) for _ in range(PAIRS)])
    ratio = np.median(times[:, 0] / times[:, 1])
    print(f"{name:46} {np.median(times[:, 0]):8.4f} s   {ratio:7.2f} times {against} ({np.median(times[:, 1]):.4f} s)")


def main():
    """Print one line for each family and stage."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(N, K))
    y = X @ np.linspace(0, 1, K) + generator.normal(size=N)
    table = np.column_stack([X, y])
    names = [f"x{j}" for j in range(K)]
    families = {
        "Gaussian": (dpd.extrema.Gaussian(bounds=(-4, 4)), X),
        "LinearRegression": (dpd.extrema.LinearRegression(f"x{K}", names, bounds=(-10, 10)), table),
        "Bernoulli": (dpd.extrema.Bernoulli(), (X > 0).astype(float)),
    }
    covariance, normal = np.eye(K), "one multivariate normal draw"
    for name, (family, rows) in families.items():
        ci = dpd.extrema_interval(rows, family=family, epsilon=2.0, replicates=REPLICATES)
        seeds = iter(range(10**9))
        compare(
            f"{name}: after the sums",
            lambda ci=ci, seeds=seeds: ci.recompute(bootstrap_seed=next(seeds)),
            lambda: generator.multivariate_normal(np.zeros(K), covariance, REPLICATES),
            normal,
        )
        compare(
            f"{name}: whole call",
            lambda family=family, rows=rows: dpd.extrema_interval(rows, family=family, epsilon=2.0),
            lambda rows=rows: np.dot(rows.T, rows),
            "X'X by np.dot",
        )


if __name__ == "__main__":
    main()
