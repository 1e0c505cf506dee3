"""Time the value and gradient of the smoothed integrated dual depth against plain NumPy, one thread, in one run.

    python benchmarks/bench_smoothed_depth.py

n = 2000 standard normal rows in d = 20, m = 200 directions, smoothing s = 100. Both sides get the rows projected
beforehand, as a sampler does: the projections do not depend on the point. Points are the middle itself, where most rows
lie inside the logistic's reach, and normal draws around it. The median over repeats is printed.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

import statistics  # noqa: E402
import time  # noqa: E402

import numpy as np  # noqa: E402

from pymc_dpdepth.depths import Directions, IntegratedDual  # noqa: E402

N, D, M, SMOOTHING = 2_000, 20, 200, 100.0
POINT_SCALES = (0.0, 0.1, 1.0)
POINTS, REPEATS = 20, 15
AGREEMENT = 1e-12  # values are at most 1/4 and sum n doubles; gradients are compared relative to s


def numpy_value_and_gradient(theta, projections, directions, s):
    """Return the same value and gradient from the formula, in whole-array NumPy."""
    share_of_each = 1.0 / (1.0 + np.exp(s * (projections - (directions @ theta)[:, None])))
    share = share_of_each.mean(axis=1)
    slope = s * (share_of_each * (1.0 - share_of_each)).mean(axis=1)
    return np.mean(share * (1.0 - share)), ((1.0 - 2.0 * share) * slope) @ directions / len(directions)


def milliseconds(function, points):
    """Return the median over repeats of the mean time of a call."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        for theta in points:
            function(theta)
        times.append((time.perf_counter() - start) / len(points) * 1e3)
    return statistics.median(times)


def main():
    """Print the milliseconds of both and their ratio for each spread of points."""
    generator = np.random.default_rng(0)
    rows = generator.standard_normal((N, D))
    depth = IntegratedDual(smoothing=SMOOTHING, directions=Directions.balanced(D, M))
    prepared, kernel = depth.prepare(rows), depth.kernel()
    directions = depth.directions.matrix()
    projections = directions @ rows.T

    def ours(theta):
        return kernel(theta, *prepared)

    def plain(theta):
        with np.errstate(over="ignore"):
            return numpy_value_and_gradient(theta, projections, directions, SMOOTHING)

    print(f"n = {N}, d = {D}, m = {M}, s = {SMOOTHING:g}, one thread")
    print(f"{'points':>12} {'kernel ms':>10} {'NumPy ms':>10} {'ratio':>7}")
    for scale in POINT_SCALES:
        points = scale * generator.standard_normal((POINTS, D))
        for theta in points:
            value, gradient = ours(theta)
            expected_value, expected_gradient = plain(theta)
            assert abs(value - expected_value) < AGREEMENT
            assert np.max(np.abs(gradient - expected_gradient)) < AGREEMENT * SMOOTHING
        kernel_time, numpy_time = milliseconds(ours, points), milliseconds(plain, points)
        print(f"{scale:>10g} sd {kernel_time:>10.3f} {numpy_time:>10.3f} {numpy_time / kernel_time:>7.1f}")


if __name__ == "__main__":
    main()
