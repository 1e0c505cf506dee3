"""Diagnosis of draws: what each sampler wrote is read, wrong draws are found out, and nothing is promised."""

import io

import arviz_base
import numpy as np
import pymc as pm
import pytest
import xarray as xr
from rich.console import Console

import pymc_dpdepth as dpd
from pymc_dpdepth.diagnostics.advice import CAVEATS
from pymc_dpdepth.diagnostics.diagnose import FEWEST, MOST, diagnose

ROWS = np.random.default_rng(0).normal([0.5, -0.5], 1.0, size=(60, 2))
pytestmark = pytest.mark.filterwarnings("ignore::pymc_dpdepth.PrivacyLeakWarning")


@pytest.fixture(scope="module")
def model():
    with pm.Model(coords={"coordinate": ["a", "b"]}) as built:
        location = pm.Normal("location", 0, 3, dims="coordinate")
        dpd.exponential_mechanism("median", location, ROWS, directions="axes", epsilon=2.0)
    return built


@pytest.fixture(scope="module")
def exact(model):
    return dpd.sample_exact(250, chains=4, model=model, random_seed=1)


def trace(values, sample_stats=None):
    """Return values (chains, draws, 2) as a trace of another sampler."""
    tree = arviz_base.from_dict({"posterior": {"location": values}})
    if sample_stats is not None:
        tree["sample_stats"] = sample_stats
    return tree


def flags(name, count):
    values = np.zeros((4, 250), dtype=bool)
    values[0, :count] = True
    return {name: (("chain", "draw"), values)}


def objects(lists):
    array = np.empty(len(lists), dtype=object)
    array[:] = lists
    return ("chain", array)


def advised(found, words):
    return [line for line in found.advice if words in line]


# Draws, right and wrong


def test_independent_draws_of_the_right_law_are_left_in_peace(model, exact):
    found = diagnose(trace(exact.posterior["location"].values), model=model, random_seed=2)
    assert found.comparison.p_value > 0.01 and found.comparison.kept >= 200
    assert found.comparison.distance < 0.02
    assert not advised(found, "differ")
    assert advised(found, "dpd.release(model), which needs no chain")


def test_exact_draws_are_known_as_such_and_all_compared(model, exact):
    found = diagnose(exact, model=model, random_seed=2)
    assert found.sampler == "exact" and found.comparison.kept == 1000
    assert found.advice == ["Nothing was found against these draws, which proves nothing."]


@pytest.mark.parametrize(
    "wrong", [lambda x: x + 0.15, lambda x: 1.5 * x, lambda x: x[..., ::-1]], ids=["shift", "scale", "swap"]
)
def test_draws_of_another_law_are_found_out_though_the_chains_agree(model, exact, wrong):
    found = diagnose(trace(wrong(exact.posterior["location"].values)), model=model, random_seed=2)
    assert found.convergence["r_hat"].max() < 1.02
    assert found.comparison.p_value < 0.01
    assert found.advice[0].startswith("The draws differ from exact ones")


def test_correlated_draws_are_thinned_until_the_p_value_is_right(model):
    """Each exact draw stands 20 times in a row: the naive test would see a difference that is not there."""
    drawn = dpd.sample_exact(100, chains=4, model=model, random_seed=3).posterior["location"].values
    found = diagnose(trace(np.repeat(drawn, 20, axis=1)), model=model, random_seed=4)
    assert FEWEST <= found.comparison.kept <= 400
    assert found.comparison.p_value > 0.01


def test_too_few_effective_draws_give_no_p_value(model):
    path = np.cumsum(np.random.default_rng(5).normal(size=(2, 100, 2)), axis=1)
    found = diagnose(trace(path), model=model, random_seed=6)
    assert found.comparison.kept < FEWEST and np.isnan(found.comparison.p_value)
    assert "too few for a p-value" in found.summary()
    assert advised(found, "R-hat is") and advised(found, "effective draws")


def test_no_more_draws_are_compared_than_memory_should_hold(model):
    values = np.random.default_rng(7).normal(size=(2, 3000, 2))
    assert diagnose(trace(values), model=model, exact_draws=50).comparison.kept <= MOST


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_draws_that_are_not_finite_are_a_fault(model, exact, value):
    values = exact.posterior["location"].values.copy()
    values[0, 5, 1] = value
    found = diagnose(trace(values), model=model, random_seed=2)
    assert found.not_finite == ("location",) and found.advice[0].startswith("Not finite draws of location: a fault")
    assert found.comparison is None and "not finite" in found.summary()
    assert diagnose(trace(values), model=model, exact_draws=0).no_comparison == "none was asked for"


def test_one_draw_for_each_chain_says_nothing(model):
    posterior = xr.Dataset({"location": (("chain", "draw", "coordinate"), np.zeros((4, 1, 2)))})
    found = diagnose(xr.DataTree.from_dict({"posterior": posterior}), model=model, random_seed=2)
    assert advised(found, "One draw for each chain says nothing about convergence")
    assert "4 chains of 1 draw," in found.summary()


def test_texts_beside_the_draws_are_left_out(model, exact):
    draws = trace(exact.posterior["location"].values)
    draws["posterior"]["words"] = draws.posterior["location"].astype(str)
    draws["posterior"]["things"] = draws.posterior["location"].astype(object)
    found = diagnose(draws, model=model, exact_draws=0)
    assert len(found.convergence) == 2
    with pytest.raises(TypeError, match="expected draws of 'location' that are numbers, got an array of object"):
        diagnose(trace(exact.posterior["location"].values.astype(object)), model=model)


# What samplers write


@pytest.mark.parametrize("names", [("diverging", "reached_max_treedepth"), ("diverging", "maxdepth_reached")])
def test_divergences_and_tree_depths_are_counted(model, exact, names):
    stats = xr.Dataset(flags(names[0], 3) | flags(names[1], 5))
    found = diagnose(trace(exact.posterior["location"].values, stats), model=model, exact_draws=0)
    assert (found.sampler, found.divergences, found.tree_depth_hits) == ("nuts", 3, 5)
    assert advised(found, "3 divergences") and advised(found, "5 draws at the maximal tree depth")
    assert found.no_comparison == "none was asked for"


EXPONENTS = [[0.25, 1.0], [0.125, 0.5, 1.0], [0.5, 1.0], [0.3, 1.0]]
EVIDENCES = [[np.nan, -1.5], [np.nan, np.nan, -4.5], [np.nan, -1.5], [np.nan, -1.0]]


def ragged():
    scales = [[1.0] * len(chain) for chain in EXPONENTS]
    parts = {"beta": EXPONENTS, "log_marginal_likelihood": EVIDENCES, "mean_proposal_scale": scales}
    return xr.Dataset({name: objects(lists) for name, lists in parts.items()})


def test_ragged_stages_of_smc_are_read(model, exact):
    found = diagnose(trace(exact.posterior["location"].values, ragged()), model=model, exact_draws=0)
    assert found.sampler == "smc"
    assert found.stages == (2, 3, 2, 2) and found.log_evidence == (-1.5, -4.5, -1.5, -1.0)
    assert set(found.exponents) == {1.0}
    assert advised(found, "more particles") and not advised(found, "independent proposals")
    assert "SMC stages: 2, 3, 2, 2; log evidence: -1.50, -4.50, -1.50, -1.00" in found.summary()


def test_stages_that_have_been_made_writable_are_the_same(model, exact):
    tree = trace(exact.posterior["location"].values, ragged())
    first, second = (diagnose(t, model=model, exact_draws=0) for t in (tree, dpd.writable(tree)))
    assert (first.stages, first.log_evidence) == (second.stages, second.log_evidence)


@pytest.mark.parametrize("as_objects", [True, False])
def test_stages_of_equal_number_and_of_one_chain_are_read(model, exact, as_objects):
    values = exact.posterior["location"].values
    if as_objects:
        dims = ("chain", "beta_dim_0"), ("chain", "log_marginal_likelihood_dim_0")
        tables = np.array([[0.5, 1.0]] * 4, dtype=object), np.array([[np.nan, -2.0]] * 4, dtype=object)
    else:
        values, dims = values[:1], (("chain",), ("chain",))
        tables = np.array([0.5, 1.0]), np.array([np.nan, -2.0])
    stats = xr.Dataset({"beta": (dims[0], tables[0]), "log_marginal_likelihood": (dims[1], tables[1])})
    found = diagnose(trace(values, stats), model=model, exact_draws=0)
    assert found.stages == (2,) * len(values) and found.log_evidence == (-2.0,) * len(values)
    assert advised(found, "independent proposals")
    assert bool(advised(found, "One chain")) is not as_objects


def test_a_tempering_that_ended_early_is_reported(model, exact):
    stats = ragged()
    stats["beta"] = objects([[0.25, 0.5]] * 4)
    found = diagnose(trace(exact.posterior["location"].values, stats), model=model, exact_draws=0)
    assert advised(found, "did not reach the mechanism")


def test_real_chains_are_read():
    with pm.Model():
        location = pm.Normal("location", 0, 3, shape=1)
        depth = dpd.IntegratedDual(smoothing=5.0)
        dpd.exponential_mechanism("median", location, ROWS[:, :1], depth=depth, epsilon=1.0)
        options = {"cores": 1, "progressbar": False, "random_seed": 1, "compute_convergence_checks": False}
        idata = pm.sample(draws=200, tune=200, chains=2, nuts_sampler="pymc", **options)
        found = diagnose(idata, exact_draws=100, random_seed=1)
    assert found.sampler == "nuts" and found.divergences == int(idata.sample_stats["diverging"].sum())
    assert found.comparison.p_value > 0.001


# Models without exact draws, and other data


def test_without_an_exact_sampler_the_reason_is_given():
    with pm.Model() as hierarchy:
        location = pm.Normal("location", pm.Normal("mu", 0, 1), 1, shape=2)
        dpd.exponential_mechanism("median", location, ROWS, directions="axes", epsilon=1.0)
    tree = arviz_base.from_dict({"posterior": {"location": np.zeros((2, 40, 2)), "mu": np.zeros((2, 40))}})
    found = diagnose(tree, model=hierarchy)
    assert found.comparison is None and "depends on another random variable" in found.no_comparison
    assert f"no comparison with exact draws: {found.no_comparison}" in found.summary()
    assert advised(found, "do not vary")
    assert not advised(found, "dpd.release(model)")


def test_groups_of_one_call_are_compared_too():
    with pm.Model(coords={"group": ["x", "y"], "coordinate": ["a", "b"]}) as grouped:
        location = pm.Normal("location", 0, 3, dims=("group", "coordinate"))
        labels = np.repeat(["x", "y"], 30)
        dpd.exponential_mechanism("median", location, ROWS, groups=labels, epsilon=1.0, directions="axes")
    idata = dpd.sample_exact(100, chains=2, model=grouped, random_seed=1)
    found = diagnose(idata, model=grouped, exact_draws=100, random_seed=2)
    assert found.comparison.p_value > 0.001 and len(found.convergence) == 4
    dpd.compute_log_prior_and_potential(idata, model=grouped)
    assert set(idata["log_likelihood"].data_vars) == {"median[x]", "median[y]"}


def test_what_does_not_belong_together_is_refused(model, exact):
    with pm.Model() as plain:
        pm.Normal("location", 0, 1, shape=2)
    with pytest.raises(ValueError, match="no exponential mechanism"):
        diagnose(exact, model=plain)
    with pytest.raises(ValueError, match="lacks the free variables"):
        diagnose(arviz_base.from_dict({"posterior": {"other": np.zeros((1, 5))}}), model=model)
    for wrong in (-1, 2.5, True, "many"):
        with pytest.raises(ValueError, match="exact_draws: expected an integer"):
            diagnose(exact, model=model, exact_draws=wrong)


# What is shown


def test_the_caveats_are_always_shown_and_the_figures_never_by_repr(model, exact):
    found = diagnose(exact, model=model, exact_draws=0)
    text = io.StringIO()
    Console(file=text, width=200).print(found)
    for shown in (str(found), text.getvalue()):
        for caveat in CAVEATS:
            assert caveat in shown
        assert "location[a]" in shown
    assert repr(found) == "<Diagnosis of 4 chains of 250 draws, exact; for the curator, not releasable>"
    assert "not releasable" in CAVEATS[0] and "None of it certifies privacy" in CAVEATS[1]


def test_a_seed_makes_the_comparison_reproducible(model, exact):
    first, second, other = (diagnose(exact, model=model, exact_draws=60, random_seed=s).comparison for s in (1, 1, 2))
    assert first == second != other
