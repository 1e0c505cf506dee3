"""From a Release to the median of the population: a full Bayesian analysis that costs no privacy.

Run: python examples/posterior_given_release.py FOLDER [ROWS [DRAWS]]

A curator holds the systolic blood pressures of 1,000 people (synthetic here) and publishes a private median and, in a
second release, the private depths of two values. An analyst who sees these two alone, and never the rows, asks for the
median of the population that the people were sampled from. Both the sampling of the people and the privacy noise are
part of the answer. The first release says where the population lies; only the second says how spread out it is.

Prints posterior means and 95% intervals, and writes posterior.png into FOLDER. Everything in it may be published.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
import numpy as np
import pymc as pm

import pymc_dpdepth as dpd

TRUE_CENTER, TRUE_SPREAD, EPSILON = 124.0, 16.0, 0.5
ROWS_SEED = 2022  # of the synthetic rows; the releases draw from the operating system


def curator(people: int) -> tuple[dpd.Release, dpd.Release]:
    """Return what leaves the curator: epsilon is 0.5 for each release, 1 in all."""
    rows = np.random.default_rng(ROWS_SEED).normal(TRUE_CENTER, TRUE_SPREAD, size=(people, 1))
    median = dpd.private_median(rows, epsilon=EPSILON, prior="normal(120, 40)")
    depths = dpd.private_depth([[100.0], [140.0]], rows, epsilon=EPSILON)  # points chosen without the rows
    return median, depths


def population() -> pm.Model:
    """Return the analyst's model of one person's blood pressure, with public priors."""
    with pm.Model(coords={"coordinate": ["x0"]}) as model:
        center = pm.Normal("center", 120, 20)
        spread = pm.HalfNormal("spread", 30)
        pm.Normal("row", center, spread, dims="coordinate")
    return model


def main() -> None:
    """Release, infer, print and plot."""
    folder = Path(sys.argv[1])
    people = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    draws = int(sys.argv[3]) if len(sys.argv) > 3 else 1000
    folder.mkdir(parents=True, exist_ok=True)
    median, depths = curator(people)
    cases = {"the median": [median], "the median and two depths": [median, depths]}
    print(f"released median {median.value.item():.2f}; released depths {np.round(depths.value.values, 3).tolist()}")

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    for case, releases in cases.items():
        idata = dpd.posterior_given_release(releases, population(), draws=draws, progressbar=False)
        low, high = idata["interval"]["population_median"].values[0]
        spread = idata.posterior["spread"].values.ravel()
        print(
            f"given {case}: population median {idata.posterior['population_median'].mean().item():.2f}, 95% interval "
            f"[{low:.2f}, {high:.2f}]; spread {spread.mean():.1f} +- {spread.std():.1f}"
        )
        for axis, values in zip(axes, (idata.posterior["population_median"].values.ravel(), spread), strict=True):
            axis.hist(values, bins=40, density=True, alpha=0.5, label=f"given {case}")
    for axis, name, truth in zip(axes, ("median", "standard deviation"), (TRUE_CENTER, TRUE_SPREAD), strict=True):
        axis.axvline(truth, color="black", linestyle=":", label="truth")
        axis.set(xlabel=f"{name} of the population, mmHg", yticks=[])
    axes[0].legend(loc="upper left", fontsize="small")
    figure.savefig(folder / "posterior.png", dpi=150)


if __name__ == "__main__":
    main()
