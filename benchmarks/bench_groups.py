"""Partial pooling of groups against separate releases: mean squared error at the same epsilon.

G = 12 groups of n rows N(theta_g, 1), theta_g ~ N(m, tau) with m ~ N(0, 1): groups that hardly differ (tau = 0.1),
differ by half a standard deviation of the rows, or by two. In the last case all are alike (tau = 0.1) but one, which
lies 5 away. Halfspace depth, epsilon = 0.5. Separate releases have a prior N(0, 10) or N(0, 3) for each group; the
pooled one has theta_g ~ N(mu, sigma), mu ~ N(0, 10), sigma ~ HalfNormal(2), drawn exactly. Errors are means over data
sets, draws and groups, with the standard error over data sets.

Run: python benchmarks/bench_groups.py [DATA SETS]
"""

from __future__ import annotations

import sys
import time

import numpy as np
import pymc as pm

import pymc_dpdepth as dpd

GROUPS, EPSILON, DRAWS, FAR = 12, 0.5, 20, 5.0
SIZES = (30, 50, 100)
CASES = {"tau = 0.1": (0.1, 0.0), "tau = 0.5": (0.5, 0.0), "tau = 2": (2.0, 0.0), "one far": (0.1, FAR)}


def squared_errors(rows, labels, theta, prior):
    """Return the mean squared error of each group's draws."""
    with pm.Model(coords={"group": np.arange(GROUPS)}) as model:
        location = prior()
        dpd.exponential_mechanism("median", location, rows, groups=labels, epsilon=EPSILON)
    draws = dpd.sample_exact(DRAWS, model=model).posterior["location"].values[0]
    return ((draws - theta) ** 2).mean(axis=0)


def separate(scale):
    """Return the prior of independent groups."""
    return lambda: pm.Normal("location", 0, scale, dims="group")


def pooled():
    """Return the prior of groups that are pooled."""
    return pm.Normal("location", pm.Normal("mu", 0, 10), pm.HalfNormal("sigma", 2), dims="group")


PRIORS = {"separate, N(0, 10)": separate(10), "separate, N(0, 3)": separate(3), "pooled": pooled}


def main():
    """Print the table."""
    data_sets = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    for n in SIZES:
        for case, (tau, far) in CASES.items():
            found, start = {name: [] for name in PRIORS}, time.perf_counter()
            for seed in range(data_sets):
                generator = np.random.default_rng(seed)
                theta = generator.normal() + tau * generator.normal(size=GROUPS)
                theta[0] += far
                labels = np.repeat(np.arange(GROUPS), n)
                rows = theta[labels] + generator.normal(size=GROUPS * n)
                for name, prior in PRIORS.items():
                    found[name].append(squared_errors(rows, labels, theta, prior))
            parts = {"all": slice(None)} if not far else {"the far group": slice(1), "the others": slice(1, None)}
            for part, which in parts.items():
                texts = []
                for name, errors in found.items():
                    by_set = np.array(errors)[:, which].mean(axis=1)
                    texts.append(f"{name}: {by_set.mean():8.4f} ({by_set.std(ddof=1) / data_sets**0.5:.4f})")
                print(f"n={n:3} {case}, {part:14}", *texts, sep="  ", flush=True)
            print(f"   {(time.perf_counter() - start) / data_sets:.1f} s a data set", flush=True)


if __name__ == "__main__":
    main()
