"""Choosing a prior, and the units in which a depth measures: both must be chosen without the private rows.

Run: python examples/choosing_prior.py [FOLDER [ROWS [REPLICATES]]]

Synthetic rows of an age in years and an income in dollars stand for the private ones. The same release, at epsilon = 1,
under three priors: a vague guess, one twenty times as wide, one that is certain and wrong; and each with two
ways to measure distances. Spatial depth adds up units, so by default rows are standardised by the prior (its median and
interquartile range); without that, a year counts as much as a dollar and the age is lost.

Prints the comparison and writes choosing_prior.png into FOLDER (by default the current one). No private row is used, so
no budget is spent and the result may be shown to anyone.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pymc as pm
from rich.console import Console

import pymc_dpdepth as dpd
from pymc_dpdepth.plot_marks import SYNTHETIC, marked_figure

EPSILON, SEED = 1.0, 2210
COLUMNS = ["age", "income"]
# Name: the prior's mean, its standard deviation, and what rows are standardised by.
VAGUE = ([50, 20_000], [30, 20_000])
WIDE = ([50, 20_000], [600, 400_000])
WRONG = ([20, 60_000], [2, 3_000])
CHOICES = {
    f"{name}{', raw units' if units is None else ''}": (*prior, units)
    for units in ("prior", None)
    for name, prior in {"vague": VAGUE, "very wide": WIDE, "certain, wrong": WRONG}.items()
}


def population(generator, n):
    """Return what such rows may look like, from public knowledge alone."""
    age = generator.normal(42, 13, size=n)
    return np.column_stack([age, np.exp(generator.normal(9.5, 0.5, size=n)) * (0.7 + age / 140)])


def build(rows, choice):
    """Return the model under one choice; the private rows would go into the same function."""
    center, width, units = choice
    with pm.Model(coords={"coordinate": COLUMNS}) as model:
        location = pm.Normal("location", center, width, dims="coordinate")
        dpd.exponential_mechanism("median", location, rows, depth="spatial", epsilon=EPSILON, standardize=units)
    return model


def main() -> None:
    """Compare, print and draw."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()
    n, replicates = (int(argument) for argument in (*sys.argv[2:], *["300", "20"][len(sys.argv[2:]) :]))
    folder.mkdir(parents=True, exist_ok=True)
    grid = dpd.prior_grid(
        build, CHOICES, population=population, n=n, replicates=replicates, draws=5, random_seed=SEED, progressbar=False
    )
    Console().print(grid)

    found = grid.dataset
    figure = marked_figure(SYNTHETIC, figsize=(9, 3.2))
    panels = figure.subplots(1, 2, sharey=True)
    places = np.arange(len(CHOICES))
    colors = np.where([choice[2] is None for choice in CHOICES.values()], "#b3401f", "#1b6e6a")
    for j, (axes, column, unit) in enumerate(zip(panels, COLUMNS, ("years", "dollars"), strict=True)):
        axes.barh(places, found["rmse"].isel(coordinate=j), color=colors, alpha=0.8)
        axes.set(xscale="log", xlabel=f"root mean square error of {column}, {unit}")
    panels[0].set_yticks(places, list(CHOICES))
    panels[0].invert_yaxis()
    dpd.save_plot(figure, folder / "choosing_prior.png")


if __name__ == "__main__":
    main()
