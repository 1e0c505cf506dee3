"""NUTS and SMC against exact draws by branch and bound, by an energy test on thinned draws.

Level 1/1000 for each of the eight comparisons, so that a wrong alarm has probability below 1% over the choice of seeds;
draws are seeded, and a test passes or fails for good. The same comparison against twice the epsilon must reject at the
same level, for which 2,000 permutations suffice. `benchmarks/oracle_mcmc.py` is the heavier version.
"""

import numpy as np
import pymc as pm
import pytest
from energy import energy_test, thinned

import pymc_dpdepth as dpd

pytestmark = pytest.mark.filterwarnings("ignore:random_seed makes this draw:pymc_dpdepth.PrivacyLeakWarning")

LEVEL = 1e-3
DRAWS = 400
CASES = {
    # Twice the epsilon narrows these laws by a fifth or more, which 400 draws show.
    "spatial": (dpd.Spatial(), 2.0),
    "smoothed dual": (dpd.IntegratedDual(smoothing=5.0), 6.0),
}
QUIET = {"cores": 1, "progressbar": False, "compute_convergence_checks": False}


def model_of(name, d, factor=1.0):
    depth, epsilon = CASES[name]
    rows = np.random.default_rng(d).normal(1.0, 1.0, size=(30, d))
    if depth.name == "integrated_dual":
        depth = depth.with_directions(dpd.Directions.balanced(d, 4 * d))
    with pm.Model() as model:
        location = pm.Normal("location", 0.0, 3.0, shape=d)
        dpd.exponential_mechanism("median", location, rows, depth=depth, epsilon=factor * epsilon)
    return model


def exact_draws(name, d, seed, factor=1.0):
    idata = dpd.sample_exact(DRAWS, model=model_of(name, d, factor), sampler="branch_and_bound", random_seed=seed)
    return idata.posterior["location"].values[0]


def markov_draws(sampler, name, d):
    with model_of(name, d):
        if sampler == "smc":
            # Draws of one run share what its few stages went through, so runs are several.
            idata = pm.sample_smc(draws=800, chains=4, random_seed=[21, 22, 23, 24], **QUIET)
        else:
            idata = pm.sample(draws=1000, tune=400, chains=2, nuts_sampler="pymc", random_seed=[11, 12], **QUIET)
    return thinned(idata.posterior["location"].values, DRAWS)


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("name", CASES)
def test_markov_chains_have_the_exact_law(name, d):
    exact = exact_draws(name, d, seed=1)
    twice = exact_draws(name, d, seed=2, factor=2.0)
    for sampler in ("nuts", "smc"):
        draws = markov_draws(sampler, name, d)
        assert energy_test(draws, exact)[1] > LEVEL, sampler
        assert energy_test(draws, twice)[1] <= LEVEL, sampler


def test_nuts_misses_a_peak_at_rows_far_inside_a_wide_prior():
    # Spatial depth is flat away from the rows, so chains that start at the prior's middle wander through the prior and
    # never find the peak, which holds more than a quarter of the law. None of it shows in a divergence.
    rows = np.random.default_rng(2).normal(150.0, 1.0, size=(30, 2))
    with pm.Model():
        location = pm.Normal("location", 0.0, 100.0, shape=2)
        dpd.exponential_mechanism("median", location, rows, depth=dpd.Spatial(), epsilon=2.0)
        exact = dpd.sample_exact(DRAWS, random_seed=3).posterior["location"].values[0]
        idata = pm.sample(draws=1000, tune=400, chains=2, nuts_sampler="pymc", random_seed=[31, 32], **QUIET)
    draws = thinned(idata.posterior["location"].values, DRAWS)
    near = [(np.linalg.norm(sample - 150.0, axis=1) < 10.0).mean() for sample in (exact, draws)]
    assert near[0] > 0.2 and near[1] < 0.02
    assert idata.sample_stats["diverging"].mean() < 0.01
    assert energy_test(draws, exact)[1] <= LEVEL


def test_p_values_are_uniform_under_the_null():
    generator = np.random.default_rng(0)
    p_values = [energy_test(*generator.standard_t(3, size=(2, 30, 2)), permutations=19)[1] for _ in range(1000)]
    # Each of 20 values is as likely as any other: chi-square with 19 degrees, whose quantile at 1 - 1e-6 is 63.7.
    counts = np.bincount(np.round(20 * np.array(p_values)).astype(int), minlength=21)[1:]
    assert ((counts - 50) ** 2 / 50).sum() < 63.7
