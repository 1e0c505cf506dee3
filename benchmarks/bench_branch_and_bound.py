"""Branch and bound: seconds for the first draw of a table, and for each of 20 more from the same tree.

Setting: n = 1,000 standard normal rows, epsilon = 1, 100 balanced directions where the depth has any, prior
U[-10, 10]^d, one thread. Each figure is the median of five tables. A first prototype took .03, .23, 6, .4, .85 and .08
seconds a draw for the rows marked with a limit.

Run: python benchmarks/bench_branch_and_bound.py
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import time  # noqa: E402

import numpy as np  # noqa: E402
import pymc as pm  # noqa: E402

import pymc_dpdepth as dpd  # noqa: E402
from pymc_dpdepth.mechanism import set_up  # noqa: E402
from pymc_dpdepth.randomness import SystemBits  # noqa: E402
from pymc_dpdepth.samplers.dispatch import plan_draws  # noqa: E402

N, EPSILON, TABLES, MORE = 1000, 1.0, 5, 20


def balanced(d):
    """Return the directions."""
    return dpd.Directions.balanced(d, 100)


CASES = [  # name, d, depth, seconds asked for
    ("halfspace, 100 directions", 3, dpd.Halfspace(directions=balanced(3)), 0.03),
    ("halfspace, 100 directions", 5, dpd.Halfspace(directions=balanced(5)), 0.2),
    ("halfspace, 100 directions", 8, dpd.Halfspace(directions=balanced(8)), 5.0),
    ("integrated dual", 5, dpd.IntegratedDual(directions=balanced(5)), 0.4),
    ("integrated rank-weighted", 4, dpd.IntegratedRankWeighted(directions=balanced(4)), 0.85),
    ("spatial", 3, dpd.Spatial(), 0.08),
    ("modified spatial", 3, dpd.ModifiedSpatial(), None),
    ("smoothed dual, s = 10", 3, dpd.IntegratedDual(smoothing=10.0, directions=balanced(3)), None),
    ("halfspace, all directions", 2, dpd.Halfspace(directions=None), None),
    ("halfspace, all directions", 3, dpd.Halfspace(directions=None), None),
    ("simplicial", 2, dpd.Simplicial(), None),
]


def seconds(d, depth):
    """Return the seconds of a first draw and of a further one, after a first call that compiles."""
    first, further = [], []
    for table in range(TABLES + 1):
        rows = np.random.default_rng(table).normal(size=(N, d))
        settings, product, rows = set_up("m", pm.Uniform.dist(-10, 10, shape=d), rows, depth=depth, epsilon=EPSILON)
        plan = plan_draws(settings, product, None, "branch_and_bound")
        times = []
        for draws in (1, MORE + 1):
            start = time.perf_counter()
            plan.draw(rows, SystemBits(), draws)
            times.append(time.perf_counter() - start)
        if table:
            first.append(times[0])
            further.append(max(times[1] - times[0], 0.0) / MORE)
    return np.median(first), np.median(further)


def main():
    """Print the table."""
    for name, d, depth, asked in CASES:
        first, further = seconds(d, depth)
        limit = "" if asked is None else f"   (asked: under {asked} s)"
        print(f"{name:27} d={d}: first draw {first:.3f} s, each of {MORE} more {further:.3f} s{limit}", flush=True)


if __name__ == "__main__":
    main()
