"""Time NUTS of nutpie and of numpyro against `pm.sample`'s own, on the same models, in one run.

    pip install -e ".[nutpie,jax]"
    python benchmarks/bench_backends.py

Smoothed integrated dual and spatial depth of normal rows, two chains, one after the other on one thread, 1,000 tuning
steps. Seconds are those of the processor, all its threads, since others may use the machine. Columns: seconds of a run
of 1,000 draws, compiling included, in a process that has compiled it before; seconds of each further 1,000 draws,
from a run of 5,000; effective draws (bulk, the worst coordinate) for each of these seconds, with the ratio to PyMC's.
Samplers that are not installed are left out with a message. Runs are in turn; medians are shown.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

import logging  # noqa: E402
import time  # noqa: E402
import warnings  # noqa: E402
from importlib.util import find_spec  # noqa: E402

import arviz as az  # noqa: E402
import numpy as np  # noqa: E402
import pymc as pm  # noqa: E402

import pymc_dpdepth as dpd  # noqa: E402

DRAWS, MORE, TUNE, REPEATS = 1_000, 5, 1_000, 3
CASES = [
    (
        "smoothed dual",
        1_000,
        2,
        lambda d: dpd.IntegratedDual(smoothing=5.0, directions=dpd.Directions.balanced(d, 4 * d)),
    ),
    ("smoothed dual", 1_000, 10, lambda d: dpd.IntegratedDual(smoothing=5.0)),
    ("spatial", 1_000, 10, lambda d: dpd.Spatial()),
]
QUIET = {"chains": 2, "cores": 1, "progressbar": False, "compute_convergence_checks": False}


def model_of(n, d, depth):
    """Return the model."""
    rows = np.random.default_rng(0).normal(1.0, 1.0, size=(n, d))
    with pm.Model() as model:
        location = pm.Normal("location", 0.0, 3.0, shape=d)
        dpd.exponential_mechanism("median", location, rows, depth=depth, epsilon=4.0)
    return model


def seconds_and_size(model, sampler, draws, seed):
    """Return the processor's seconds of a run and its smallest effective sample size."""
    start = time.process_time()
    with model:
        idata = pm.sample(draws, tune=TUNE, nuts_sampler=sampler, random_seed=seed, **QUIET)
    return time.process_time() - start, float(az.ess(idata)["location"].min())


def figures(model, sampler, seed):
    """Return the seconds of a short run, those of each further 1,000 draws, and effective draws in one of those."""
    short, size = seconds_and_size(model, sampler, DRAWS, seed)
    long, long_size = seconds_and_size(model, sampler, MORE * DRAWS, seed)
    further = (long - short) / (MORE - 1)
    return short, further, (long_size - size) / (MORE - 1) / further


def main():
    """Print the table."""
    logging.getLogger("pymc").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    samplers = ["pymc", *(name for name in ("nutpie", "numpyro") if find_spec(name))]
    for name in {"nutpie", "numpyro"} - set(samplers):
        print(f'{name} is not installed: pip install -e ".[nutpie,jax]"')
    print(
        f"{'depth':>14} {'n':>6} {'d':>3} {'sampler':>8} {'s of 1,000':>10} {'s more':>7} {'ESS / s':>8} {'ratio':>6}"
    )
    for name, n, d, make in CASES:
        model = model_of(n, d, make(d))
        for sampler in samplers:
            seconds_and_size(model, sampler, 10, 1)  # compiles
        runs = {sampler: [] for sampler in samplers}
        for seed in range(REPEATS):
            for sampler in samplers:
                runs[sampler].append(figures(model, sampler, seed + 1))
        medians = {sampler: np.median(rows, axis=0) for sampler, rows in runs.items()}
        for sampler, (short, further, rate) in medians.items():
            ratio = rate / medians["pymc"][2]
            print(
                f"{name:>14} {n:>6} {d:>3} {sampler:>8} {short:>10.2f} {further:>7.2f} {rate:>8.0f} {ratio:>6.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
