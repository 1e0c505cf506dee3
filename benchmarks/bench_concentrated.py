"""Concentrated release against the joint draw at the same rho, and where `sampler="auto"` goes over to it.

First table: rho = 0.123 (that of one exponential-mechanism draw at epsilon = 1), prior N(0, 25 d I), the mean distance
to the center of the rows' law. Rows: standard normal, Cauchy, or a tenth of them at (5, ..., 5); d = 100.
Second table: the ratio of the two errors over dimensions, beside the ratio of summed epsilons that the rule looks at.

Run: python benchmarks/bench_concentrated.py
"""

from __future__ import annotations

import numpy as np
import pymc as pm

import pymc_dpdepth as dpd
from pymc_dpdepth.privacy.composition import epsilon_of_rho

RHO, D = 0.123, 100
DATA_SETS, SMALL_SETS = 20, 100
ASKED = {  # concentrated, joint, non-private median: figures of a first prototype
    ("normal", 1000): (0.85, 487, 0.42),
    ("normal", 10_000): (0.132, 0.333, 0.119),
    ("cauchy", 10_000): (0.18, 0.40, 0.16),
    ("contaminated", 10_000): (1.40, 1.45, 1.40),
}


def rows_of(kind, n, d, generator):
    """Return a table."""
    rows = generator.standard_cauchy(size=(n, d)) if kind == "cauchy" else generator.normal(size=(n, d))
    if kind == "contaminated":
        rows[: n // 10] += 5.0
    return rows


def errors(kind, n, d, data_sets):
    """Return the mean distances of the concentrated release, the joint draw, and the non-private median."""
    prior = pm.Normal.dist(0, 5 * np.sqrt(d), shape=d)
    found = []
    for seed in range(data_sets):
        rows = rows_of(kind, n, d, np.random.default_rng(seed))
        release = [
            dpd.private_median(
                rows, rho=RHO, prior=prior, sampler=sampler, directions=dpd.Directions.axes(d)
            ).value.values
            for sampler in ("concentrated", "boxes")
        ]
        found.append([np.linalg.norm(value) for value in (*release, np.median(rows, axis=0))])
    return np.mean(found, axis=0)


def main():
    """Print both tables."""
    for (kind, n), asked in ASKED.items():
        measured = errors(kind, n, D, DATA_SETS)
        for name, value, wanted in zip(("concentrated", "joint", "non-private median"), measured, asked, strict=True):
            print(f"{kind:13} n={n:6} {name:19} {value:8.3f}   (prototype {wanted})", flush=True)
    for d in (2, 3, 5, 8, 12):
        for n in (100, 300, 1000):
            concentrated, joint, _ = errors("normal", n, d, SMALL_SETS)
            gain = d * epsilon_of_rho(RHO, d) / epsilon_of_rho(RHO)
            print(
                f"d={d:2} n={n:5} summed epsilons {gain:.2f}   joint error / concentrated {joint / concentrated:7.2f}"
            )


if __name__ == "__main__":
    main()
