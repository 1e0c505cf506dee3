"""Certified draws: tries and time of a release for typical settings, and how far time follows the rows.

Prior N(0, 5^2) in two dimensions, delta = 1e-6, one thread. Times are those of the second release of each kind, as
ratios to one evaluation of the depth at as many points in one batch.

Run: python benchmarks/bench_certified.py
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import time  # noqa: E402

import numpy as np  # noqa: E402

import pymc_dpdepth as dpd  # noqa: E402

DELTA, EPSILON, PRIOR = 1e-6, 1.0, "normal(0, 5)"
SETTINGS = [
    ("halfspace, axes", dpd.Halfspace(), 20),
    ("halfspace, 100 directions", dpd.Halfspace(directions=dpd.Directions.balanced(2, 100)), 20),
    ("spatial", dpd.Spatial(), 40),
    ("smoothed dual, s = 4", dpd.IntegratedDual(smoothing=4.0), 80),
    ("smoothed dual, s = 0.2", dpd.IntegratedDual(smoothing=0.2), 1_000),
    ("smoothed dual, s = 0.05", dpd.IntegratedDual(smoothing=0.05), 10_000),
]
REPEATS = 5


def release_time(rows, depth):
    """Return the median time of a release and its tries."""
    times = []
    for _ in range(REPEATS + 1):
        start = time.perf_counter()
        release = dpd.private_median(rows, epsilon=EPSILON, delta=DELTA, prior=PRIOR, depth=depth, sampler="certified")
        times.append(time.perf_counter() - start)
    return float(np.median(times[1:])), release.mechanisms[0]


def main():
    """Print the figures."""
    generator = np.random.default_rng(0)
    for name, depth, n in SETTINGS:
        rows = generator.normal(size=(n, 2))
        seconds, record = release_time(rows, depth)
        far, _ = release_time(np.full((n, 2), 1e6), depth)
        points = generator.normal(0, 5, size=(record["tries"], 2))
        depth.evaluate(points[:10], rows)
        start = time.perf_counter()
        depth.evaluate(points, rows)
        base = time.perf_counter() - start
        print(
            f"{name}, n = {n}: {record['tries']} tries from the {record['proposals']}, {seconds:.3f} s, "
            f"{seconds / base:.1f} evaluations of as many points; rows all far off: {far / seconds:.2f} of that time"
        )


if __name__ == "__main__":
    main()
