"""Coverage and width of 95% intervals of `posterior_given_release`, over data sets of a known population.

Rows are normal with standard deviation 1 in each of d columns; the true medians are 3 (and -2). The mechanism is
halfspace depth along the axes with the prior N(0, 10); the population's prior of each median is N(0, 10). The scale of
the population is, by its prior,

- known: 1;
- half: taken for 1/2, wrongly; twice: taken for 2, wrongly;
- prior: HalfNormal(2), public and vague;
- misplaced: LogNormal(log 1/3, 0.5), a public prior centered at a third of the truth.

With a second release: the depths of the points 2 and 4 (`private_depth`, one column) at the same epsilon from the same
rows, or a second median at twice the epsilon. Printed: the share of data sets whose interval holds the truth (of all
columns' intervals for d = 2), the mean width, and the mean posterior standard deviation of log scale.

The part "grid" takes the same likelihood with a scale that is taken for known to a grid of medians in place of the
sampler: it is fast, and shows the coverage of the posterior itself, without the error of 300 draws.

Run: python -P benchmarks/bench_posterior_given_release.py [DATA_SETS [PART ...]]    PART: grid, one, two, second
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pymc as pm

import pymc_dpdepth as dpd
from pymc_dpdepth.downstream.likelihood import Randomness, log_likelihood_of, tables_of
from pymc_dpdepth.downstream.observations import read_release
from pymc_dpdepth.downstream.population import read_population

TRUTH = np.array([3.0, -2.0])
MECHANISM = {"prior": "normal(0, 10)", "directions": "axes"}
SAMPLER = {"draws": 300, "chains": 1, "replicates": 10, "progressbar": False}
POINTS = [[2.0], [4.0]]
CASES = ((1000, 1.0), (1000, 0.2), (100, 1.0), (100, 0.2))
PARTS = {
    "grid": [(1, n, epsilon, scale, "grid") for n, epsilon in CASES for scale in ("known", "half", "twice")],
    "one": [(1, n, epsilon, scale, None) for n, epsilon in CASES for scale in ("known", "prior")],
    "two": [(2, n, epsilon, "known", None) for n, epsilon in CASES] + [(2, 1000, 1.0, "prior", None)],
    "second": [(1, 1000, 1.0, "misplaced", second) for second in (None, "median", "depths")],
}
FARTHEST, PLACES, CURVATURE = 60.0, 201, 8.0  # of the grid: its places lie closer near the released value


def population(d, scale):
    """Return the model of one row."""
    with pm.Model(coords={"coordinate": [f"x{j}" for j in range(d)]}) as model:
        center = pm.Normal("center", 0, 10, dims="coordinate")
        known = {"known": 1.0, "half": 0.5, "twice": 2.0}
        if scale in known:
            spread = known[scale]
        elif scale == "prior":
            spread = pm.HalfNormal("spread", 2)
        else:
            spread = pm.LogNormal("spread", np.log(1 / 3), 0.5)
        pm.Normal("row", center, spread, dims="coordinate")
    return model


def releases_of(rows, epsilon, second, seed):
    """Return one release or two of the same rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpd.PrivacyLeakWarning)  # a simulation
        median = dpd.private_median(rows, epsilon=epsilon, random_seed=seed, **MECHANISM)
        if second == "depths":
            return [median, dpd.private_depth(POINTS, rows, epsilon=epsilon, random_seed=seed)]
        if second == "median":
            return [median, dpd.private_median(rows, epsilon=2 * epsilon, random_seed=seed + 1, **MECHANISM)]
    return median


def interval_on_a_grid(release, model, seed):
    """Return the interval of the median with the population's prior N(0, 10) and a known scale."""
    population = read_population(model, "row")
    tables = tables_of([read_release(release)], 1, True)
    bend = np.sinh(np.linspace(-CURVATURE, CURVATURE, PLACES)) / np.sinh(CURVATURE)
    places = release.value.values[0] + FARTHEST * bend
    evaluate = log_likelihood_of(tables, population, Randomness(np.random.default_rng(seed), 20))
    logs = evaluate(places[:, None]) - 0.5 * (places / 10) ** 2
    density = np.exp(logs - logs.max())
    passed = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(places))])
    return np.interp([[0.025], [0.975]], passed / passed[-1], places)


def measure(d, n, epsilon, scale, second, data_sets):
    """Return coverage, mean width and mean standard deviation of log scale."""
    model, inside, widths, spreads = population(d, scale), [], [], []
    for seed in range(data_sets):
        rows = np.random.default_rng([seed, n, d]).normal(TRUTH[:d], 1.0, size=(n, d))
        made = releases_of(rows, epsilon, second, 2 * seed)
        if second == "grid":
            low, high = interval_on_a_grid(made, model, seed)
        else:
            idata = dpd.posterior_given_release(made, model, random_seed=seed, **SAMPLER)
            low, high = idata["interval"]["population_median"].values.T
            if "spread" in idata.posterior:
                spreads.append(float(np.log(idata.posterior["spread"]).std()))
        inside.append((low <= TRUTH[:d]) & (TRUTH[:d] <= high))
        widths.append(high - low)
    return np.mean(inside), np.mean(widths), np.mean(spreads) if spreads else 0.0


def main():
    """Print the table."""
    data_sets = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    parts = sys.argv[2:] or list(PARTS)
    print(f"{data_sets} data sets: standard error of a coverage near 0.95 is {np.sqrt(0.05 * 0.95 / data_sets):.3f}")
    for d, n, epsilon, scale, second in [setting for part in parts for setting in PARTS[part]]:
        coverage, width, spread = measure(d, n, epsilon, scale, second, data_sets)
        print(
            f"d={d} n={n:5} epsilon={epsilon:<4} scale {scale:9} second {second or 'none':7} "
            f"coverage {coverage:.3f}  width {width:.3f}  sd of log scale {spread:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
