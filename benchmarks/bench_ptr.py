"""Projection-depth median by propose-test-release: error, refusals and time, with and without the cap.

Rows: n = 50,000, d = 2, standard normal, or a quarter of them around (5, 5). Total epsilon 2, half of it for the test;
radius 5; 500 directions; thresholds from `suggest_threshold` with standard normal rows. Of 60 tables, the probability
that one is refused is computed from its breakdown, and its mean and standard error are shown. The error is the squared
distance from 0; its mean over the releases, without the largest and the smallest tenth, is what was asked for: at most
.0008, and .45 with contamination. The authors' code, whose test is not private as printed, reports .00083 and .40.

Run: python benchmarks/bench_ptr.py
"""

from __future__ import annotations

import time
import warnings

import numpy as np

import pymc_dpdepth as dpd
from pymc_dpdepth import ptr
from pymc_dpdepth.ptr.outlyingness import NO_CAP, OutlyingnessTable
from pymc_dpdepth.ptr.stability_test import stability_test
from pymc_dpdepth.ptr.stable import first_above

N, D, EPSILON, RADIUS = 50_000, 2, 2.0, 5.0
DIRECTIONS = dpd.Directions.uniform(D, 500)
RELEASES, TRIMMED = 60, 0.1
SETTINGS = [  # scale, cap, delta
    ("mad", 2.0, 10 / N),
    ("mad", 5.0, 10 / N),
    ("mad", None, 10 / N),
    ("mad", 2.0, 1e-6),
    ("iqr", 2.0, 10 / N),
    ("iqr", 2.0, 1e-6),
]


def rows_of(kind, generator):
    """Return a table."""
    rows = generator.normal(size=(N, D))
    if kind == "contaminated":
        rows[: N // 4] += 5.0
    return rows


def refusal(rows, scale, cap, test, threshold):
    """Return the probability that the test refuses a table."""
    table = OutlyingnessTable(rows / RADIUS, DIRECTIONS.matrix(), scale, NO_CAP if cap is None else cap)
    return 1 - test.pass_probability(first_above(table.diameters(None), threshold, N))


def trimmed_mean(values):
    """Return the mean without the largest and the smallest tenth."""
    cut = int(TRIMMED * len(values))
    return np.mean(np.sort(values)[cut : len(values) - cut]) if len(values) else np.nan


def main():
    """Print one line for each setting and kind of rows."""
    warnings.simplefilter("ignore", dpd.PrivacyLeakWarning)  # delta = 10/n is the authors', above 1/n
    print("scale  cap   delta    threshold  rows          trimmed   mean      refused        seconds each")
    for scale, cap, delta in SETTINGS:
        threshold = ptr.suggest_threshold(
            N, D, EPSILON, delta, radius=RADIUS, directions=DIRECTIONS, scale=scale, cap=cap
        )
        test = stability_test("laplace", EPSILON / 2, delta, delta)
        for kind in ("normal", "contaminated"):
            errors, start = [], time.perf_counter()
            for seed in range(RELEASES):
                release = dpd.propose_test_release(
                    rows_of(kind, np.random.default_rng(seed)),
                    epsilon=EPSILON,
                    delta=delta,
                    threshold=threshold,
                    radius=RADIUS,
                    depth=dpd.Projection(scale, DIRECTIONS),
                    cap=cap,
                )
                if not release.refused:
                    errors.append(np.sum(release.value.values**2))
            seconds = (time.perf_counter() - start) / RELEASES
            mean = np.mean(errors) if errors else np.nan
            tables = (rows_of(kind, np.random.default_rng(seed)) for seed in range(RELEASES))
            refused = [refusal(rows, scale, cap, test, threshold) for rows in tables]
            error = np.std(refused, ddof=1) / np.sqrt(RELEASES)
            print(
                f"{scale:5} {cap!s:5} {delta:8.1e} {threshold:8.4g}   {kind:13} {trimmed_mean(errors):8.5f} "
                f"{mean:9.5f}  {np.mean(refused):.3f} +- {error:.3f} {seconds:7.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
