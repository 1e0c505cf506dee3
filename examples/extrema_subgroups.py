"""Where did free care raise the visits to a doctor most? A private limit for the largest of six effects.

Run: python examples/extrema_subgroups.py [folder]

Rows are the first year of 5,912 people of the RAND Health Insurance Experiment, at six sites (see data/README.md). The
effect at a site is the mean number of visits of people on the free plan less that of all others there. The site with
the largest estimate was selected for being large, so an interval of its own is too optimistic.

Public: codes of sites and plans, the range of visits that counts, the split of epsilon, the number of rows. Private:
all about a person, site and plan included. Assumed, but not for privacy: people are independent (in truth families
were assigned together, so the limits are a little too high), and sums over hundreds of them are normal.

Writes extrema.json and extrema.png into it. Prints the answer without privacy, too, since these data are public.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import pymc_dpdepth as dpd
from pymc_dpdepth.tables import read_table

DATA = Path(__file__).parent / "data" / "rand_hie_first_year.csv"
CELLS, FREE_PLAN = 12, 11  # six sites, with two arms each
CENTER, LOW, HIGH = 3, -3, 9  # visits less 3, a usual number; more than 12 in a year count as 12
EPSILON = {"people": 0.2, "visits": 1.4, "squares": 0.4}


class EffectsOfFreeCare(dpd.extrema.Family):
    """Differences of the means of two arms, at each site; docs/extrema_family.md explains the methods.

    Cell 2 (site - 1) is the site's paying arm, the next one its free arm. A row adds 1, v and v^2 to its cell. One
    replaced row changes two cells at most, each by at most 1, 9 and 81.
    """

    name, statistic_names = "effects_of_free_care", tuple(EPSILON)

    def columns(self):
        """Name the columns that are read."""
        return ["site", "plan", "mdvis"]

    def parameters(self, columns):
        """Name the effects."""
        return [f"site {site}" for site in range(1, CELLS // 2 + 1)]

    def statistics(self, n, columns, released):
        """Bound what a row adds, and how far one row moves the sums."""
        ranges = {"people": (0, 1), "visits": (LOW, HIGH), "squares": (0, HIGH**2)}
        return () if released else tuple(
            dpd.extrema.bounded_statistic(name, [low] * CELLS, [high] * CELLS, n, sensitivity=2 * high)
            for name, (low, high) in ranges.items()
        )  # fmt: skip

    def entries(self, rows, name, released):
        """Put a power of the visits into the cell of each row."""
        site, plan, visits = rows.T
        value = np.clip(visits - CENTER, LOW, HIGH) ** self.statistic_names.index(name)
        cell = 2 * (site - 1) + (plan == FREE_PLAN)
        return np.where(cell[:, None] == np.arange(CELLS), value[:, None], 0.0)

    def estimates(self, sums, n, deviations):
        """Subtract means."""
        means = sums["visits"] / np.maximum(sums["people"], 1.0)
        return means[..., 1::2] - means[..., ::2]

    def model(self, sums, n, deviations):
        """Return sizes, sums and standard deviations of sums of the cells, whose sizes are taken as given."""
        people, visits = np.maximum(sums["people"], 1.0), sums["visits"]
        square = np.maximum(sums["squares"] - visits**2 / people, deviations["squares"])
        return {"people": people, "visits": visits, "deviation": np.sqrt(square)}

    def simulate(self, model, n, replicates, generator):
        """Draw the sums of visits from normal laws."""
        normal = generator.standard_normal((replicates, CELLS))
        return {"people": model["people"] + 0 * normal, "visits": model["visits"] + normal * model["deviation"]}


def main() -> None:
    """Release the interval, draw it, and print it beside the answer without privacy."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()
    folder.mkdir(parents=True, exist_ok=True)
    family = EffectsOfFreeCare()
    interval = dpd.extrema_interval(DATA, family=family, epsilon=EPSILON)
    interval.to_json(folder / "extrema.json")
    dpd.save_plot(interval.plot(), folder / "extrema.png")
    rows = read_table(DATA, family.columns()).rows
    effects = family.estimates({name: family.entries(rows, name, {}).sum(axis=0) for name in EPSILON}, len(rows), {})
    print(f"Effects, in visits a year: private (epsilon = {interval.epsilon:g}), and without privacy")
    for name, private, effect in zip(interval.parameters, interval.estimates.values, effects, strict=True):
        print(f"{name}  {private:5.2f}  {effect:5.2f}{'  selected' * (name == interval.selected)}")
    print("95% lower limits of the largest effect")
    for name, limit in interval.compare()["lower"].items():
        print(f"{name:11}  {limit:.2f}")


if __name__ == "__main__":
    main()
