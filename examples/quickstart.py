"""Private medians of a real table: the RAND Health Insurance Experiment, one row per person.

Run: python examples/quickstart.py [FOLDER]

Releases one private median of four columns, prints it, and writes release.json and release.png into FOLDER (by default
the current one). The picture is drawn from the Release and its prior alone, so it may be shared with it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

import pymc_dpdepth as dpd
from pymc_dpdepth.plots import save_release_plot

DATA = Path(__file__).parent / "data" / "rand_hie_first_year.csv"
EPSILON = 1.0

# Where each median may lie, from what anyone knows without the data: ages up to 100; a family income of the 1970s,
# thousands of dollars with a wide margin; a year's medical spending in dollars and visits to a doctor, which cannot be
# negative. Writing these numbers after a look at the table would break the guarantee.
PRIORS = {
    "age": "uniform(0, 100)",
    "income": "lognormal(9, 1)",
    "meddol": "half_normal(500)",
    "mdvis": "half_normal(10)",
}


def main() -> None:
    """Release, print and write."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()
    folder.mkdir(parents=True, exist_ok=True)
    # The unit of privacy is a row, and in this table a row is a person. With several rows per person one would pass
    # max_rows_per_unit, which multiplies the cost. Along the axes each column's own atoms count (many people have no
    # spending at all, and visits are whole numbers), and the draw takes no time.
    release = dpd.private_median(DATA, columns=list(PRIORS), prior=PRIORS, epsilon=EPSILON, directions="axes")

    table = Table(title="Private median of the RAND Health Insurance Experiment", title_justify="left")
    for heading in ("column", "released value", "epsilon spent", "guarantee"):
        table.add_column(heading, justify="right" if heading in ("released value", "epsilon spent") else "left")
    for number, (name, value) in enumerate(zip(release.value.coordinate.values, release.value.values, strict=True)):
        # One joint draw releases all columns together, so epsilon is spent once.
        cost = (f"{release.epsilon:g}, once for all", release.guarantee) if number == 0 else ("", "")
        table.add_row(str(name), f"{value:,.2f}", *cost)
    console = Console()
    console.print(table)

    release.to_json(folder / "release.json")
    save_release_plot(release, folder / "release.png")
    console.print(f"Sampler: {release.sampler}, {release.neighboring} neighbours, delta = {release.delta:g}.")
    console.print(f"Written: {folder / 'release.json'} and {folder / 'release.png'}", soft_wrap=True)


if __name__ == "__main__":
    main()
