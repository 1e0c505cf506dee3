"""Choosing a depth and its directions: errors of private medians under outliers and heavy tails.

Run: python examples/choosing_depth.py [FOLDER [ROWS [REPLICATES]]]

Synthetic rows of two correlated columns, centred at 0, in three populations: normal; with a tenth of the rows far away
in one corner; and with tails so heavy that they have no mean (Student's t with one degree of freedom). Exact draws at
epsilon = 1 from five depths would cost five times epsilon on private rows; on synthetic ones they cost nothing.

Prints root mean square distances from 0 in interquartile ranges of each population, and writes choosing_depth.png into
FOLDER (by default the current one). The mean of the rows, without any privacy, is there to compare.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import pymc_dpdepth as dpd
from pymc_dpdepth.plot_marks import SYNTHETIC, marked_figure

EPSILON, PRIOR, SEED = 1.0, "normal(0, 10)", 2210
TICKS = [0.05, 0.1, 0.2, 0.5, 1, 2]
MIX = np.array([[1.0, 0.8], [0.0, 0.6]])  # columns of correlation 0.8


def normal(generator, n):
    """Return rows without anything odd."""
    return generator.normal(size=(n, 2)) @ MIX


def contaminated(generator, n):
    """Return rows of which every tenth lies far from the others."""
    outlier = np.arange(n) % 10 == 0
    return np.where(outlier[:, None], generator.normal([8, -8], 0.5, size=(n, 2)), normal(generator, n))


def heavy_tailed(generator, n):
    """Return rows of a multivariate t distribution with one degree of freedom."""
    return normal(generator, n) / np.abs(generator.normal(size=(n, 1)))


POPULATIONS = {"normal": normal, "10% far away": contaminated, "no mean": heavy_tailed}
CHOICES = {
    "halfspace, axes": {"depth": "halfspace", "directions": "axes"},
    "halfspace, 100 directions": {"depth": "halfspace"},
    "rank-weighted, axes": {"depth": "integrated_rank_weighted"},
    "dual, axes": {"depth": "integrated_dual"},
    "spatial": {"depth": "spatial"},
}


def main() -> None:
    """Compute, print and draw."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()
    n, replicates = (int(argument) for argument in (*sys.argv[2:], *["300", "30"][len(sys.argv[2:]) :]))
    folder.mkdir(parents=True, exist_ok=True)
    figure = marked_figure(SYNTHETIC, figsize=(10, 3.4))
    panels = figure.subplots(1, len(POPULATIONS), sharex=True, sharey=True)
    settings = {"n": n, "epsilon": EPSILON, "prior": PRIOR, "target": [0, 0], "replicates": replicates, "draws": 3}
    places = np.arange(len(CHOICES) + 2)
    for axes, (population, rows) in zip(panels, POPULATIONS.items(), strict=True):
        found = {
            name: dpd.error_grid(rows, **settings, **choice, random_seed=SEED, progressbar=False)
            for name, choice in CHOICES.items()
        }
        spread = found["spatial"]["spread"].values
        generator = np.random.default_rng(SEED)
        means = np.array([rows(generator, n).mean(axis=0) for _ in range(replicates)])
        lines = {name: (one["distance_rms"].item(), one["standard_error"].item()) for name, one in found.items()}
        lines["median, not private"] = (found["spatial"]["nonprivate_rms"].item(), 0.0)
        lines["mean, not private"] = (np.sqrt(((means / spread) ** 2).sum(axis=1).mean()), 0.0)
        print(f"\n{population}: {n} rows, epsilon = {EPSILON:g}")
        for name, (rms, error) in lines.items():
            print(f"  {name:26} {rms:8.3f}" + (f" +- {error:.3f}" if error else ""))
        values, errors = np.array(list(lines.values())).T
        axes.errorbar(values, places, xerr=2 * np.minimum(errors, 0.45 * values), fmt="o", color="#1b6e6a")
        axes.set(xscale="log", title=population, xlabel="rms distance, interquartile ranges")
        axes.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
        axes.set_xticks([], minor=True)
        axes.grid(axis="x", color="#eeeeee")
    panels[0].set_yticks(places, list(lines))
    panels[0].invert_yaxis()
    dpd.save_plot(figure, folder / "choosing_depth.png")


if __name__ == "__main__":
    main()
