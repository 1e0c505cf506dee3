"""Markov chains against exact draws: energy distance, effective sample size, divergences and time, in one run.

    python benchmarks/oracle_mcmc.py

NUTS and SMC of PyMC, and exact draws by branch and bound, of the same models: spatial and smoothed integrated dual
depth, 30 normal rows around 1, prior N(0, 3) on each coordinate, d = 2 and 3; and, as "far", a prior N(0, 100) with
rows around 150. Columns:

    distance, p    energy distance of 2,000 thinned draws to 2,000 exact ones, and its permutation p-value
    p at 2 eps     the same against exact draws at twice the epsilon: near 0, or the test has no power
    ESS            the smallest over coordinates, from ArviZ; of SMC it is not a measure of anything, since the order of
                   its draws means nothing
    in ball        share of draws within prior sd / 10 of the rows' median, with the error that independent chains
                   (runs, for SMC) give, and the same of 20,000 exact draws
    seconds        of the chains, and of as many exact draws as the chains gave effective ones
"""

from __future__ import annotations

import logging
import sys
import time
import warnings
from pathlib import Path

import arviz as az
import numpy as np
import pymc as pm

import pymc_dpdepth as dpd

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "samplers"))
from energy import energy_test, thinned  # noqa: E402

DRAWS, EXACT_DRAWS, CHAINS = 2000, 20_000, 8
NUTS_DRAWS, NUTS_TUNE, PARTICLES = 2500, 1000, 2000
NEAR, FAR = (0.0, 3.0, 1.0), (0.0, 100.0, 150.0)  # prior mean and sd, and the rows' middle
DEPTHS = {
    "spatial": (lambda d: dpd.Spatial(), 2.0),
    "smoothed dual": (lambda d: dpd.IntegratedDual(smoothing=5.0, directions=dpd.Directions.balanced(d, 4 * d)), 6.0),
}
QUIET = {"cores": 1, "progressbar": False, "compute_convergence_checks": False}


def model_of(name, d, place, factor=1.0):
    """Return the model and the rows' median."""
    mean, sd, middle = place
    make, epsilon = DEPTHS[name]
    rows = np.random.default_rng(d).normal(middle, 1.0, size=(30, d))
    with pm.Model() as model:
        location = pm.Normal("location", mean, sd, shape=d)
        dpd.exponential_mechanism("median", location, rows, depth=make(d), epsilon=factor * epsilon)
    return model, np.median(rows, axis=0)


def exact(model, draws, seed):
    """Return exact draws (draws, d)."""
    return (
        dpd.sample_exact(draws, model=model, sampler="branch_and_bound", random_seed=seed)
        .posterior["location"]
        .values[0]
    )


def markov(model, sampler):
    """Return the trace of NUTS or SMC."""
    seeds = list(range(1, CHAINS + 1))
    with model:
        if sampler == "SMC":
            return pm.sample_smc(draws=PARTICLES, chains=CHAINS, random_seed=seeds, **QUIET)
        options = {"tune": NUTS_TUNE, "chains": CHAINS, "nuts_sampler": "pymc", "random_seed": seeds}
        return pm.sample(draws=NUTS_DRAWS, **options, **QUIET)


def timed(function, *arguments):
    """Return the result and the seconds it took."""
    start = time.perf_counter()
    result = function(*arguments)
    return result, time.perf_counter() - start


def report(name, d, place):
    """Print one line for each sampler."""
    model, middle = model_of(name, d, place)
    reference, exact_seconds = timed(exact, model, EXACT_DRAWS, 1)
    twice = exact(model_of(name, d, place, factor=2.0)[0], DRAWS, 2)

    def near(draws):
        return np.linalg.norm(draws - middle, axis=-1) < place[1] / 10

    for sampler in ("NUTS", "SMC"):
        idata, seconds = timed(markov, model, sampler)
        draws = idata.posterior["location"].values
        some = thinned(draws, DRAWS)
        distance, p_value = energy_test(some, reference[:DRAWS])
        p_twice = energy_test(some, twice)[1]
        effective = float(az.ess(idata)["location"].min())
        divergences = int(idata.sample_stats["diverging"].sum()) if sampler == "NUTS" else "-"
        shares = near(draws).mean(axis=1)
        error = shares.std(ddof=1) / np.sqrt(CHAINS)
        print(
            f"{name:>14} {d} {'far' if place is FAR else 'near':>5} {sampler:>5} {distance:>9.4f} {p_value:>7.4f} "
            f"{p_twice:>7.4f} {effective:>7.0f} {divergences:>5} {shares.mean():>7.4f} +- {error:.4f} "
            f"{near(reference).mean():>8.4f} {seconds:>8.1f} {exact_seconds * effective / EXACT_DRAWS:>7.2f}",
            flush=True,
        )


def main():
    """Print the table."""
    warnings.simplefilter("ignore", dpd.PrivacyLeakWarning)
    logging.getLogger("pymc").setLevel(logging.ERROR)
    print(
        f"{'depth':>14} d {'rows':>5} {'chain':>5} {'distance':>9} {'p':>7} {'p at 2e':>7} {'ESS':>7} {'div.':>5} "
        f"{'in ball':>17} {'exact':>8} {'chains s':>8} {'exact s':>7}"
    )
    for place in (NEAR, FAR):
        for d in (2, 3):
            for name in DEPTHS:
                report(name, d, place)


if __name__ == "__main__":
    main()
