"""Private medians of the insurance plans of a real table, each by itself and pooled towards each other.

Run: python examples/hierarchical_medians.py [FOLDER [ROWS [PLANS]]]

A year's medical spending of 5,912 people under 18 insurance plans (RAND Health Insurance Experiment). Two releases of
all plans' medians, at epsilon = 0.5 each: with independent priors, and with a prior that lets plans learn from each
other (theta_g ~ N(mu, sigma)). A person is in one plan, so a release costs 0.5, not 18 times 0.5. Both are exact draws,
no Markov chain runs. Prints both, and writes hierarchical_medians.png into FOLDER (by default the current one), drawn
from the two releases alone. ROWS and PLANS take a part of the table, the first rows of each plan, to run faster.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # no window, and none is needed to write a file
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pymc as pm

import pymc_dpdepth as dpd

DATA = Path(__file__).parent / "data" / "rand_hie_first_year.csv"
EPSILON = 0.5
# Medians go along with increasing functions, so spending is taken on the scale log(1 + dollars), where plans differ by
# factors. From what anyone knows without the data: a year's spending of the 1970s between a few and a few thousand
# dollars, and plans whose medians hardly differ by more than a factor of 20.
CENTER, WIDTH, SPREAD = np.log(50.0), 1.5, 1.0


def independent():
    """Return the prior of plans that have nothing to do with each other."""
    return pm.Normal("log_median", CENTER, np.hypot(WIDTH, SPREAD), dims="plan")


def pooled():
    """Return the prior of plans that are alike, more or less."""
    return pm.Normal("log_median", pm.Normal("mu", CENTER, WIDTH), pm.HalfNormal("sigma", SPREAD), dims="plan")


def release_of(table: pd.DataFrame, plans: list[int], prior) -> dpd.Release:
    """Release the medians of all plans together."""
    # Which plan a person is in, and how many there are in each, is public here; the spending is private.
    with pm.Model(coords={"plan": plans}) as model:
        dpd.exponential_mechanism(
            "median", prior(), np.log1p(table["meddol"]), groups=table["plan"], epsilon=EPSILON, depth="halfspace"
        )
    return dpd.release(model)


def main() -> None:
    """Release twice, print and draw."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()
    rows, count = (int(argument) for argument in (*sys.argv[2:], *["100000"] * 2)[:2])
    folder.mkdir(parents=True, exist_ok=True)
    table = pd.read_csv(DATA)
    plans = sorted(table["plan"].unique().tolist())[:count]
    table = table[table["plan"].isin(plans)].sample(frac=1.0, random_state=0).groupby("plan").head(rows)
    priors = {"separate": independent, "pooled": pooled}
    releases = {name: release_of(table, plans, prior) for name, prior in priors.items()}
    dollars = {name: np.expm1(release.value.values[:, 0]) for name, release in releases.items()}
    sizes = table["plan"].value_counts()

    print(f"{'plan':>5} {'people':>7} {'separate':>10} {'pooled':>10}")
    for place, plan in enumerate(plans):
        print(f"{plan:>5} {sizes[plan]:>7} {dollars['separate'][place]:>10,.2f} {dollars['pooled'][place]:>10,.2f}")
    for name, release in releases.items():
        print(f"{name}: epsilon = {release.epsilon:g}, {release.neighboring}, {release.guarantee} ({release.sampler})")
    spread = float(releases["pooled"].parameters["sigma"])
    print(f"pooled: the plans' medians differ by a factor of about {np.exp(spread):.2f} (also part of the release)")

    figure, axes = plt.subplots(figsize=(6.4, 1.5 + 0.25 * len(plans)), layout="constrained")
    places = np.arange(len(plans))
    for name, marker, shift in (("separate", "o", 0.12), ("pooled", "s", -0.12)):
        axes.plot(1.0 + dollars[name], places + shift, marker, label=f"{name}, epsilon = {EPSILON:g}")
    axes.set(
        xscale="log",
        xlabel="1 + private median of a year's medical spending [dollars]",
        ylabel="plan (people)",
        yticks=places,
        yticklabels=[f"{plan} ({sizes[plan]})" for plan in plans],
    )
    for ticks in ("major", "minor"):
        getattr(axes.xaxis, f"set_{ticks}_formatter")("{x:g}")
    axes.legend()
    figure.savefig(folder / "hierarchical_medians.png", dpi=150)


if __name__ == "__main__":
    main()
