"""NUTS against exact draws of the same private median: when a chain has found the law, and when it only says so.

Run: python examples/nuts_against_exact.py [FOLDER [DRAWS [WIDTHS]]]

A smooth depth (the dual depth with smoothing), 60 synthetic rows around 0, epsilon = 4, and a normal prior of each of
the WIDTHS, by default 2,2000, whose centre is half a width away. Under the first the law has one hill, and NUTS draws
from it. Under the second nearly all of the law is a small hill in a wide plain: chains start in the plain, never find
the hill, and agree with each other, so R-hat and effective sizes look as good as can be; at most a few divergences hint
at it. Exact draws find the hill and need no chain, and their guarantee is not that of a diagnosis. All this is for the
curator: nothing of it may leave but a Release.

Prints what `dpd.diagnose` finds, and writes nuts_against_exact.png into FOLDER (by default the current one): quantiles
of the chains' draws against those of exact draws, which lie on the diagonal where the laws are equal.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import numpy as np
import pymc as pm

import pymc_dpdepth as dpd
from pymc_dpdepth.plot_marks import RAW_DRAWS, marked_figure, note_curator_side_below

ROWS = np.random.default_rng(2210).normal(size=(60, 2))
EPSILON, CHAINS, SEED = 4.0, 4, 2210
SHARES = np.linspace(0.01, 0.99, 99)


def build(width: float) -> pm.Model:
    """Return the model with a prior of this width; rows are left in their own units, whatever the prior's."""
    with pm.Model(coords={"coordinate": ["a", "b"]}) as model:
        location = pm.Normal("location", width / 2, width, dims="coordinate")
        depth = dpd.IntegratedDual(smoothing=5)
        dpd.exponential_mechanism("median", location, ROWS, depth=depth, epsilon=EPSILON, standardize=None)
    return model


def main() -> None:
    """Sample, compare, print and draw."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()
    draws = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    widths = [float(width) for width in (sys.argv[3] if len(sys.argv) > 3 else "2,2000").split(",")]
    folder.mkdir(parents=True, exist_ok=True)
    logging.getLogger("pymc").setLevel(logging.ERROR)  # what it would say, diagnose says below
    figure = marked_figure(RAW_DRAWS, figsize=(4.4 * len(widths), 4))
    panels = figure.subplots(1, len(widths), squeeze=False)
    for axes, width in zip(panels[0], widths, strict=True):
        with build(width):
            nuts = pm.sample(
                draws, tune=draws, chains=CHAINS, cores=1, nuts_sampler="pymc", random_seed=SEED, progressbar=False
            )
            exact = dpd.sample_exact(CHAINS * draws)
            diagnosis = dpd.diagnose(nuts, random_seed=SEED)
        print(f"\nPrior of width {width:g}\n{diagnosis}")
        for name, color in (("a", "#1b6e6a"), ("b", "#b3401f")):
            pair = [np.quantile(one.posterior["location"].sel(coordinate=name), SHARES) for one in (exact, nuts)]
            axes.plot(*pair, ".", color=color, label=f"coordinate {name}")
            axes.axline((0, 0), slope=1, color="#888888", linewidth=0.8)
        found = diagnosis.comparison
        worst = diagnosis.convergence["r_hat"].max()
        axes.set_title(f"prior of width {width:g}: R-hat {worst:.3f}, p = {found.p_value:.3g}", fontsize=10)
        axes.set(xlabel="quantiles of exact draws", ylabel="quantiles of NUTS")
        axes.legend()
    note_curator_side_below(figure)
    dpd.save_plot(figure, folder / "nuts_against_exact.png")


if __name__ == "__main__":
    main()
