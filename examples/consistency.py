"""Errors of private depth values, medians and propose-test-release medians fall as n grows, though epsilon falls too.

Run: python examples/consistency.py FOLDER [LARGEST_N [RELEASES]]

Rows are standard normal in two columns, so the true answers are known: the median is 0, and the halfspace depth along
the axes of a point x is the smallest Phi(-|x_j|). At n rows a release costs epsilon_n = 40 n^(-1/4), which tends to 0,
and for propose-test-release also delta_n = n^(-2). Rates of the root mean square error (Ramsay and Chenouri 2021,
arXiv:2101.02800, for the consistency):

- The rows themselves leave n^(-1/2), with or without privacy.
- Depth values get noise of scale k / (n epsilon_n), so n^(-3/4): the sum falls as n^(-1/2).
- Depth falls at a constant slope from the median, so the draw's density exp(n epsilon_n D / 2) has width
  1 / (n epsilon_n), again n^(-3/4): n^(-1/2) in all.
- The threshold eta that the test passes is the one of log(1 / delta_n) / epsilon_n rows, so of order log(n) / (n
  epsilon_n); the draw has width eta / epsilon_n, log(n) / (n epsilon_n^2) = log(n) n^(-1/2).

Prints the errors and the slopes in log-log scale, and writes consistency.png into FOLDER.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
import numpy as np
import pymc as pm
from scipy.special import ndtr

import pymc_dpdepth as dpd
from pymc_dpdepth import ptr

SMALLEST_N, FACTOR, D = 4000, 4, 2
POINTS = np.array([[0.0, 0.0], [0.5, 0.5], [1.0, -1.0], [2.0, 0.0]])
TRUE_DEPTHS = ndtr(-np.abs(POINTS).max(axis=1))
DIRECTIONS, RADIUS, CAP = dpd.Directions.uniform(D, 16), 5.0, 2.0
ROWS_SEED = 2021  # of the synthetic rows; the releases draw from the operating system
KINDS = {"depth values": "n^(-1/2)", "median": "n^(-1/2)", "propose-test-release median": "log(n) n^(-1/2)"}


def epsilon_of(n: int) -> float:
    """Return the cost of each release at n rows."""
    return 40 * n**-0.25


def errors_at(n: int, releases: int, generator: np.random.Generator) -> list[float]:
    """Return the root mean square error of each kind of release at n rows."""
    epsilon, delta = epsilon_of(n), n**-2.0
    where = {"radius": RADIUS, "directions": DIRECTIONS, "cap": CAP}
    threshold = ptr.suggest_threshold(n, D, epsilon, delta, scale="mad", **where)  # by synthetic rows of its own
    squares = [[], [], []]
    for _ in range(releases):
        rows = generator.normal(size=(n, D))
        values = dpd.private_depth(POINTS, rows, epsilon=epsilon, directions="axes").value.values
        squares[0].append(np.mean((values - TRUE_DEPTHS) ** 2))
        prior = pm.Normal.dist(0, RADIUS, shape=D)
        median = dpd.private_median(rows, epsilon=epsilon, prior=prior, directions="axes").value.values
        squares[1].append(np.sum(median**2))
        release = dpd.propose_test_release(
            rows, depth=dpd.Projection("mad"), epsilon=epsilon, delta=delta, threshold=threshold, **where
        )
        if not release.refused:  # by the choice of the threshold one in a hundred is
            squares[2].append(np.sum(release.value.values**2))
    return [float(np.sqrt(np.mean(kind))) if kind else np.nan for kind in squares]


def main() -> None:
    """Measure, print and plot."""
    folder = Path(sys.argv[1])
    largest = int(sys.argv[2]) if len(sys.argv) > 2 else 256_000
    releases = int(sys.argv[3]) if len(sys.argv) > 3 else 40
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(ROWS_SEED)
    sizes = np.array([SMALLEST_N * FACTOR**k for k in range(20) if SMALLEST_N * FACTOR**k <= largest])
    errors = np.array([errors_at(int(n), releases, generator) for n in sizes])
    print("n".rjust(8), "epsilon".rjust(8), *(kind.rjust(28) for kind in KINDS))
    for n, line in zip(sizes, errors, strict=True):
        print(f"{n:8} {epsilon_of(n):8.3f}", *(f"{error:28.4f}" for error in line))
    if len(sizes) > 1:
        slopes = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
        print("slope".rjust(17), *(f"{slope:28.2f}" for slope in slopes))

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for (kind, rate), line, color in zip(KINDS.items(), errors.T, ("C0", "C1", "C2"), strict=True):
        axes.loglog(sizes, line, "o-", color=color, label=f"{kind}, rate {rate}")
        shape = sizes**-0.5 * (np.log(sizes) if "log" in rate else 1.0)
        axes.loglog(sizes, line[0] * shape / shape[0], ":", color=color)
    axes.set(xlabel="rows n; epsilon = 40 n^(-1/4)", ylabel="root mean square error", title="Dotted: the stated rate")
    axes.legend(loc="lower left", fontsize="small")
    figure.savefig(folder / "consistency.png", dpi=150)


if __name__ == "__main__":
    main()
