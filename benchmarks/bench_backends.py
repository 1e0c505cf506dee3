"""Time NUTS of nutpie and of numpyro against `pm.sample`'s own, on the same models, in one run.

    pip install -e ".[nutpie,jax]"
    python benchmarks/bench_backends.py

Smoothed integrated dual and spatial depth of normal rows, 1,000 tuning steps and 1,000 draws on each of two chains, one
after the other on one thread. Columns: seconds in all, compiling included; seconds of a run of ten draws, which is
compiling for the most part; and the effective draws for each second beyond those, from ArviZ (bulk, the worst
coordinate), with its ratio to PyMC's. Samplers that are not installed are left out with a message. Runs are in turn;
medians are shown.
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

DRAWS, SHORT, REPEATS = 1_000, 10, 3
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
    """Return the seconds of a run and its smallest effective sample size."""
    start = time.perf_counter()
    with model:
        idata = pm.sample(draws, tune=draws, nuts_sampler=sampler, random_seed=seed, **QUIET)
    seconds = time.perf_counter() - start
    return seconds, float(az.ess(idata)["location"].min()) if draws == DRAWS else np.nan


def main():
    """Print the table."""
    logging.getLogger("pymc").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    samplers = ["pymc", *(name for name in ("nutpie", "numpyro") if find_spec(name))]
    for name in {"nutpie", "numpyro"} - set(samplers):
        print(f'{name} is not installed: pip install -e ".[nutpie,jax]"')
    print(
        f"{'depth':>14} {'n':>6} {'d':>3} {'sampler':>8} {'s in all':>9} {'compiling':>10} {'ESS / s':>9} {'ratio':>6}"
    )
    for name, n, d, make in CASES:
        model = model_of(n, d, make(d))
        runs = {sampler: [] for sampler in samplers}
        for seed in range(REPEATS):
            for sampler in samplers:
                short, _ = seconds_and_size(model, sampler, SHORT, seed + 1)
                whole, size = seconds_and_size(model, sampler, DRAWS, seed + 1)
                runs[sampler].append((whole, short, size / max(whole - short, 1e-3)))
        medians = {sampler: np.median(figures, axis=0) for sampler, figures in runs.items()}
        for sampler, (whole, short, rate) in medians.items():
            ratio = rate / medians["pymc"][2]
            print(
                f"{name:>14} {n:>6} {d:>3} {sampler:>8} {whole:>9.2f} {short:>10.2f} {rate:>9.0f} {ratio:>6.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
