"""The batched kernel draws what PyMC's Metropolis kernel draws, and both approach the law of exact draws."""

import pickle

import cloudpickle
import numpy as np
import pymc as pm
import pytest
from energy import energy_test, thinned
from pymc.smc.kernels import MH

import pymc_dpdepth as dpd
from pymc_dpdepth.samplers import smc_kernel
from pymc_dpdepth.samplers.smc_kernel import BatchedMetropolis

QUIET = {"cores": 1, "progressbar": False, "compute_convergence_checks": False}
LEVEL, DRAWS = 1e-3, 400  # as in test_markov_against_exact.py: seeded, and twice the epsilon must be seen


def model_of(depth="halfspace", epsilon=4.0, prior=lambda name: pm.Normal(name, 0.0, 3.0, shape=2)):
    rows = np.random.default_rng(2).normal(1.0, 1.0, size=(30, 2))
    with pm.Model() as model:
        dpd.exponential_mechanism("median", prior("location"), rows, depth=depth, epsilon=epsilon)
    return model


def hierarchical(name):
    """Return a location with a hyperprior, of another size and transformed: several value variables."""
    scale = pm.HalfNormal("scale", 2.0)
    return pm.Deterministic(name, scale * pm.Uniform("offset", -3.0, 3.0, shape=(1, 2))[0])


MODELS = {
    "step": lambda: model_of(),
    "smooth": lambda: model_of(dpd.Spatial()),
    "hierarchical": lambda: model_of(prior=hierarchical),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_same_seed_gives_the_draws_of_pymc(name):
    traces = []
    for kernel in (MH, BatchedMetropolis):
        with MODELS[name]():
            traces.append(pm.sample_smc(150, kernel=kernel, chains=2, random_seed=[1, 2], **QUIET))
    ours, theirs = (trace["posterior"].dataset for trace in traces)
    assert set(ours.data_vars) == set(theirs.data_vars)
    for variable in ours.data_vars:
        np.testing.assert_array_equal(ours[variable], theirs[variable])
    for stage, other in zip(*(trace["sample_stats"].dataset.data_vars.values() for trace in traces), strict=True):
        for chain, other_chain in zip(stage.values, other.values, strict=True):
            np.testing.assert_allclose(np.array(chain, float), np.array(other_chain, float), rtol=1e-12)
    settings = [
        {k: v for k, v in trace["sample_stats"].attrs.items() if k in ("_n_draws", "_n_tune")} for trace in traces
    ]
    assert settings[0] == settings[1] and len(settings[0]) == 2


def test_a_start_is_taken():
    start = {"location": np.random.default_rng(0).normal(size=(100, 2))}
    draws = []
    for kernel in (MH, BatchedMetropolis):
        with model_of():
            idata = pm.sample_smc(100, kernel=kernel, chains=1, start=start, random_seed=[3], **QUIET)
        draws.append(idata.posterior["location"].values)
    np.testing.assert_array_equal(*draws)


def test_one_particle_is_refused():
    with model_of(), pytest.raises(ValueError, match="draws: expected at least 2 particles.*got 1"):
        pm.sample_smc(1, kernel=BatchedMetropolis, chains=1, random_seed=[3], **QUIET)


def test_particles_are_shared_among_threads_and_stay_in_order(monkeypatch):
    monkeypatch.setattr("numba.config.NUMBA_NUM_THREADS", 3)
    monkeypatch.setattr("pymc_dpdepth.depths.threads.WORTH_A_THREAD", 1)
    with model_of():
        kernel = BatchedMetropolis(draws=101, random_seed=1)
    points = np.random.default_rng(1).normal(1.0, 2.0, size=(101, 2))
    likelihood, prior = kernel._evaluate(points)
    np.testing.assert_array_equal(likelihood, [float(kernel.likelihood_logp_func(point)) for point in points])
    np.testing.assert_array_equal(prior, [float(kernel.prior_logp_func(point)) for point in points])


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "NUMBA"])
def test_other_modes_evaluate_one_by_one(mode, monkeypatch):
    batches = []
    whole = smc_kernel.on_all_cores
    monkeypatch.setattr(smc_kernel, "on_all_cores", lambda *arguments: batches.append(1) or whole(*arguments))
    with model_of():
        kernel = BatchedMetropolis(draws=20, random_seed=1, compile_kwargs={"mode": mode})
    points = np.random.default_rng(1).normal(1.0, 2.0, size=(20, 2))
    likelihood, prior = kernel._evaluate(points)
    np.testing.assert_allclose(likelihood, [float(kernel.likelihood_logp_func(point)) for point in points], rtol=1e-12)
    np.testing.assert_allclose(prior, [float(kernel.prior_logp_func(point)) for point in points], rtol=1e-12)
    assert len(batches) == (mode == "NUMBA")


def test_a_worker_process_gets_a_kernel_that_works():
    with model_of():
        kernel = BatchedMetropolis(draws=20, random_seed=1)
    points = np.random.default_rng(1).normal(1.0, 2.0, size=(20, 2))
    before = kernel._evaluate(points)
    copy = pickle.loads(cloudpickle.dumps(kernel))
    assert copy._log_densities is None
    np.testing.assert_array_equal(copy._evaluate(points), before)


def test_log_densities_hold_no_generator():
    """`set_rng` keeps the compiled functions, which is right only as long as nothing in them draws."""
    from pytensor.tensor.random.type import RandomGeneratorType

    with model_of(prior=hierarchical):
        kernel = BatchedMetropolis(draws=20, random_seed=1)
    for function in (kernel.likelihood_logp_func, kernel.prior_logp_func):
        assert not [v for v in function.get_shared() if isinstance(v.type, RandomGeneratorType)]


@pytest.mark.filterwarnings("ignore:random_seed makes this draw:pymc_dpdepth.PrivacyLeakWarning")
@pytest.mark.parametrize("depth", ["halfspace", "spatial"])
def test_the_law_is_that_of_exact_draws(depth):
    exact, twice = (
        dpd.sample_exact(DRAWS, model=model_of(depth, epsilon), sampler="branch_and_bound", random_seed=seed)
        .posterior["location"]
        .values[0]
        for epsilon, seed in ((4.0, 1), (8.0, 2))
    )
    with model_of(depth):
        idata = pm.sample_smc(800, kernel=BatchedMetropolis, chains=4, random_seed=[21, 22, 23, 24], **QUIET)
    draws = thinned(idata.posterior["location"].values, DRAWS)
    assert energy_test(draws, exact)[1] > LEVEL
    assert energy_test(draws, twice)[1] <= LEVEL
