"""Directions of halfspace depth in two to four dimensions: error and time of the axes and of the default.

Rows: clean (standard normal), contaminated (a tenth at (5, ..., 5)), correlated (equicorrelation 0.9), heavy-tailed
(Cauchy). n = 1,000, epsilon = 1, prior N(0, 10). The error is the root mean square, over data sets, of the distance to
the center of the rows' law, in units of the rows' covariance (Mahalanobis): the same for all affine images of the rows.

Run: python benchmarks/bench_defaults.py
"""

from __future__ import annotations

import time

import numpy as np
import pymc as pm

import pymc_dpdepth as dpd

N, EPSILON, DATA_SETS = 1000, 1.0, 40


def rows_of(kind, d, generator):
    """Return rows and the inverse of their law's scatter matrix."""
    scatter = np.eye(d)
    if kind == "correlated":
        scatter = np.full((d, d), 0.9) + 0.1 * np.eye(d)
    rows = generator.normal(size=(N, d)) @ np.linalg.cholesky(scatter).T
    if kind == "contaminated":
        rows[: N // 10] += 5.0
    if kind == "heavy-tailed":
        rows /= np.abs(generator.normal(size=(N, 1)))
    return rows, np.linalg.inv(scatter)


def main():
    """Print the table."""
    for d in (2, 3, 4):
        choices = {"axes": dpd.Directions.axes(d), "default": "auto"}
        prior = pm.Normal.dist(0, 10, shape=d)
        for kind in ("clean", "contaminated", "correlated", "heavy-tailed"):
            for name, directions in choices.items():
                squares, start = [], time.perf_counter()
                for seed in range(DATA_SETS):
                    rows, precision = rows_of(kind, d, np.random.default_rng(seed))
                    depth = dpd.Halfspace(directions=directions)
                    value = dpd.private_median(rows, epsilon=EPSILON, prior=prior, depth=depth).value.values
                    squares.append(value @ precision @ value)
                seconds = (time.perf_counter() - start) / DATA_SETS
                print(
                    f"d={d} {kind:12} {name:8} error {np.sqrt(np.mean(squares)):.4f}  {seconds:.3f} s a release",
                    flush=True,
                )


if __name__ == "__main__":
    main()
