"""The planar sampler: its set-up beside the regions alone, its draws, and branch and bound on the same tables.

Setting: n standard normal rows in the plane, epsilon = 1, prior uniform on [-10, 10]^2 and N(0, 10), one thread. Times
are of the process's own processor, the least of some repeats, so that other work on the machine counts little.

Run: python benchmarks/bench_planar.py
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import time  # noqa: E402

import numpy as np  # noqa: E402
import pymc as pm  # noqa: E402

from pymc_dpdepth.depths import Halfspace  # noqa: E402
from pymc_dpdepth.mechanism import set_up  # noqa: E402
from pymc_dpdepth.randomness import SystemBits  # noqa: E402
from pymc_dpdepth.samplers.dispatch import plan_draws  # noqa: E402

SIZES, EPSILONS = (100, 1000, 2000), (0.01, 1.0)
REPEATS, DRAWS, TREE_DRAWS = 5, 10_000, 100
PRIORS = {
    "uniform": pm.Uniform.dist(-10, 10, shape=2),
    "normal": pm.Normal.dist(0, 10, shape=2),
    "Cauchy": pm.Cauchy.dist(0, 10, shape=2),
    "MvNormal": pm.MvNormal.dist(np.zeros(2), 100 * (np.eye(2) + 0.5)),
}


def least_time(function):
    """Return the least processor time of some calls, after one that compiles."""
    function()
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def main():
    """Print the figures."""
    generator, depth = np.random.default_rng(0), Halfspace(directions=None)
    for n in SIZES:
        rows = generator.normal(size=(n, 2))
        print(f"n = {n}: regions alone {least_time(lambda rows=rows: depth.regions(rows)):.3f} s")
        for name, prior in PRIORS.items():
            for epsilon in EPSILONS:
                settings, product, clean = set_up("m", prior, rows, depth=depth, epsilon=epsilon)
                plan = plan_draws(settings, product, prior, "planar")
                tree = plan_draws(settings, product, prior, "branch_and_bound")
                set_up_time = least_time(lambda plan=plan, clean=clean: plan.law(clean))
                law, floors = plan.law(clean), plan.frame.floors()
                draw_time = least_time(lambda law=law, floors=floors: law.draw(floors, SystemBits(), DRAWS)) / DRAWS
                tree_time = least_time(lambda tree=tree, clean=clean: tree.draw(clean, SystemBits(), TREE_DRAWS))
                print(
                    f"  {name}, epsilon = {epsilon}: set-up {set_up_time:.3f} s of {len(law.levels)} levels, then "
                    f"{1e6 * draw_time:.1f} us a draw; relative error of a mass at most {law.errors.max():.0e}; "
                    f"{TREE_DRAWS} draws of branch and bound {tree_time:.3f} s"
                )


if __name__ == "__main__":
    main()
