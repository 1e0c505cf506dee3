"""Halfspace medians along axes in 100 dimensions: the box kernel, a whole release, and the price of privacy.

Setting: n = 10,000 standard normal rows, d = 100, epsilon = 10, prior N(0, 25 d I), one thread. Figures are ratios to a
baseline of the same run: `np.sort(X, axis=0)` for time, the non-private coordinatewise median for error.

Run: python benchmarks/bench_boxes.py
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import time  # noqa: E402
from fractions import Fraction  # noqa: E402

import numpy as np  # noqa: E402
import pymc as pm  # noqa: E402

import pymc_dpdepth as dpd  # noqa: E402
from pymc_dpdepth.priors import read_prior  # noqa: E402
from pymc_dpdepth.samplers.boxes import level_weights  # noqa: E402
from pymc_dpdepth.samplers.weights import WeightBase  # noqa: E402

N, D, EPSILON = 10_000, 100, 10.0
SCALE = 5.0 * np.sqrt(D)
REPEATS, DATA_SETS = 31, 20


def paired_ratio(measured, baseline, repeats=REPEATS):
    """Return the median over pairs, run in turn, of the ratio of two times, and the baseline's median time."""
    measured(), baseline()
    ratios, times = [], []
    for _ in range(repeats):
        start = time.perf_counter()
        measured()
        middle = time.perf_counter()
        baseline()
        end = time.perf_counter()
        ratios.append((middle - start) / (end - middle))
        times.append(end - middle)
    return float(np.median(ratios)), float(np.median(times))


def kernel_ratio(rows):
    """From rows to the weights of all levels: keys of the prior's grid, sort, masses."""
    prior = read_prior(pm.Normal.dist(0, SCALE, shape=D), D)
    floors, base = prior.floors(), WeightBase.of(Fraction(EPSILON) / 2)
    level_weights(prior.keys(rows), floors, base)  # the base's table is worked out once

    def kernel():
        keys = prior.keys(rows)
        keys.sort(axis=1)
        return level_weights(keys, floors, base)

    return paired_ratio(kernel, lambda: np.sort(rows, axis=0))


def release_ratio(generator):
    """Time whole private_median calls, each with another prior and other data, after the first call of the process."""
    cases = [(generator.normal(size=(N, D)), pm.Normal.dist(0.1 * i, SCALE + i, shape=D)) for i in range(REPEATS + 1)]
    tables = iter(cases)

    def call():
        rows, prior = next(tables)
        dpd.private_median(rows, epsilon=EPSILON, prior=prior)

    return paired_ratio(call, lambda: np.sort(cases[0][0], axis=0))


def errors(generator):
    """Return root mean squares of |estimate| over the data sets: halfspace, IRW, IDD, coordinatewise median, mean."""
    depths = {
        "halfspace, axes": "halfspace",
        "IRW, orthonormal": dpd.IntegratedRankWeighted(directions=dpd.Directions.orthonormal(D)),
        "IDD, orthonormal": dpd.IntegratedDual(directions=dpd.Directions.orthonormal(D)),
    }
    prior = pm.Normal.dist(0, SCALE, shape=D)
    squares = {name: [] for name in (*depths, "non-private median", "non-private mean")}
    for _ in range(DATA_SETS):
        rows = generator.normal(size=(N, D))
        for name, depth in depths.items():
            value = dpd.private_median(rows, epsilon=EPSILON, prior=prior, depth=depth).value.values
            squares[name].append(value @ value)
        squares["non-private median"].append((np.median(rows, axis=0) ** 2).sum())
        squares["non-private mean"].append((rows.mean(axis=0) ** 2).sum())
    return {name: float(np.sqrt(np.mean(values))) for name, values in squares.items()}


def main():
    """Print the figures."""
    generator = np.random.default_rng(0)
    ratio, base = kernel_ratio(generator.normal(size=(N, D)))
    print(f"np.sort(X, axis=0): {1e3 * base:.1f} ms")
    print(f"box kernel / sort: {ratio:.2f}   (asked: at most 1.5)")
    ratio, _ = release_ratio(generator)
    print(f"second private_median call, other prior and data / sort: {ratio:.2f}   (asked: at most 3)")
    result = errors(generator)
    base = result["non-private median"]
    for name, error in result.items():
        print(f"error of {name}: {error:.3f}, {error / base:.2f} times the non-private median's")
    print("(asked: halfspace at most 1.1, IRW at most 1.25)")


if __name__ == "__main__":
    main()
