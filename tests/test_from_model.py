import inspect
import logging

import arviz as az
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
import xarray as xr

import pymc_dpdepth as dpd
from pymc_dpdepth import randomness
from pymc_dpdepth.mechanism import exponential_mechanism
from pymc_dpdepth.samplers import markov
from pymc_dpdepth.samplers.exact import NoExactSamplerError

ROWS = np.array([[0.31, -1.2], [0.31, 0.4], [-2.07, 0.9], [1.44, 2.3], [0.05, -0.6]])
SMOOTH = dpd.IntegratedDual(smoothing=2.0)
SIMULATION = pytest.warns(dpd.PrivacyLeakWarning, match="random_seed")
NOMINAL = pytest.warns(dpd.ApproximateSamplingWarning, match="nominal")


@pytest.fixture
def short_chains(monkeypatch):
    """Chains as short as PyMC allows: these tests look at the record, not at the law."""
    for name, value in {"CHAINS": 2, "DRAWS": 10, "TUNE": 10, "PARTICLES": 20}.items():
        monkeypatch.setattr(markov, name, value)


@pytest.fixture(scope="module")
def smooth_model(model_of):
    return model_of(ROWS, SMOOTH, coords={"coordinate": ["age", "income"]})


def tree(model, chains=2, draws=3):
    """Return a made-up trace of a model whose variables all have a known place."""
    shapes = model.eval_rv_shapes()
    posterior = {}
    for variable in model.free_RVs:
        shape = (chains, draws, *shapes[variable.name])
        posterior[variable.name] = np.arange(np.prod(shape), dtype=float).reshape(shape) / 8
    dims = {name: list(names) for name, names in model.named_vars_to_dims.items()}
    return az.from_dict({"posterior": posterior}, dims=dims, coords={k: list(v) for k, v in model.coords.items()})


def hierarchical():
    with pm.Model() as model:
        spread = pm.HalfNormal("spread", 1)
        location = pm.Normal("location", 0, spread, shape=2)
        exponential_mechanism("median", location, ROWS, epsilon=1.0)
    return model


# sample_exact


def rich_model():
    with pm.Model(coords={"coordinate": ["age", "income"], "city": ["x", "y", "z"]}) as model:
        location = pm.Normal("location", 0, 3, dims="coordinate")
        pm.Uniform("other", 4, 6)
        effects = pm.Laplace("effects", 50, 1, dims="city")
        exponential_mechanism("median", location, ROWS, epsilon=1.0, directions=dpd.Directions.axes(2))
        pm.Deterministic("twice", 2 * location, dims="coordinate")
        pm.Deterministic("total", effects.sum())
    return model


def test_exact_draws_come_as_a_trace():
    with rich_model(), SIMULATION:
        idata = dpd.sample_exact(draws=300, chains=2, random_seed=1)
    assert isinstance(idata, xr.DataTree) and list(idata.children) == ["posterior"]
    posterior = idata.posterior
    assert set(posterior.data_vars) == {"location", "other", "effects", "twice", "total"}
    assert posterior["location"].dims == ("chain", "draw", "coordinate")
    assert posterior["location"].shape == (2, 300, 2) and posterior["other"].shape == (2, 300)
    assert posterior["coordinate"].values.tolist() == ["age", "income"]
    assert posterior["effects"].dims == ("chain", "draw", "city") and posterior["effects"].shape[-1] == 3
    np.testing.assert_array_equal(posterior["twice"], 2 * posterior["location"])
    np.testing.assert_allclose(posterior["total"], posterior["effects"].sum("city"), rtol=1e-15)
    summary = az.summary(idata, var_names=["location", "other"])
    assert list(summary.index) == ["location[age]", "location[income]", "other"]
    # 1800 Laplace(50, 1) have sd sqrt(2) and their mean 0.033, 600 uniforms a mean of sd 0.024: six of each.
    assert abs(float(posterior["effects"].mean()) - 50) < 0.2 and abs(float(posterior["other"].mean()) - 5) < 0.15
    assert 4 < posterior["other"].min() and posterior["other"].max() < 6
    assert len(np.unique(posterior["location"].values)) > 1000
    assert posterior.attrs["simulation"] == "True" and posterior.attrs["curator_side"] == "not releasable"


def test_exact_draws_are_not_reproducible_without_a_seed_and_are_with_one():
    model = rich_model()
    free = [dpd.sample_exact(50, model=model).posterior["location"].values for _ in range(2)]
    assert (free[0] != free[1]).all()
    with SIMULATION:
        seeded = [dpd.sample_exact(50, model=model, random_seed=7).posterior for _ in range(2)]
    assert (seeded[0]["location"] == seeded[1]["location"]).all()
    assert dpd.sample_exact(3, model=model).posterior.attrs["simulation"] == "False"


def test_a_scalar_location():
    with pm.Model() as model:
        exponential_mechanism("median", pm.Normal("location", 0, 3), ROWS[:, 0], epsilon=1.0)
    assert dpd.sample_exact(20, model=model).posterior["location"].dims == ("chain", "draw")
    made = dpd.release(model)
    assert made.value.dims == ("coordinate",) and made.parameters["location"].dims == ()
    assert made.value.values[0] == made.parameters["location"].values


def test_a_stacked_location_draws_each_part():
    with pm.Model() as model:
        parts = [pm.Uniform("a", 100, 101), pm.Normal("b", -50, 1)]
        exponential_mechanism("median", pm.Deterministic("location", pt.stack(parts)), ROWS, epsilon=1.0)
    posterior = dpd.sample_exact(40, model=model).posterior
    assert (posterior["a"] >= 100).all() and (posterior["b"] < 0).all()
    np.testing.assert_array_equal(posterior["location"].values[0, :, 0], posterior["a"].values[0])
    np.testing.assert_array_equal(posterior["location"].values[0, :, 1], posterior["b"].values[0])
    made = dpd.release(model)
    assert set(made.parameters) == {"a", "b"}
    np.testing.assert_array_equal(made.value, [made.parameters["a"], made.parameters["b"]])


def test_submodels_keep_their_mechanisms_apart():
    with pm.Model() as outer:
        for name, shift in (("men", 0.0), ("women", 50.0)):
            with pm.Model(name=name):
                location = pm.Normal("location", shift, 1, shape=2)
                exponential_mechanism("median", location, ROWS + shift, epsilon=0.5)
    made = dpd.release(outer)
    assert set(made.locations) == {"men::median", "women::median"} and made.epsilon == 1.0
    assert made.locations["men::median"].max() < 20 < made.locations["women::median"].min()


@pytest.mark.parametrize("bad", [{"draws": 0}, {"draws": 1.5}, {"chains": 0}, {"draws": True}, {"sampler": "nuts"}])
def test_bad_arguments_of_sample_exact(bad):
    with rich_model(), pytest.raises((ValueError, TypeError), match=next(iter(bad))):
        dpd.sample_exact(**bad)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (hierarchical, "depends on another random variable"),
        (lambda: model_with(pm.Dirichlet, np.ones(2)), "multivariate"),
        (lambda: model_with(pm.Dirichlet, np.ones(2), depth=SMOOTH), "smooth"),
        (lambda: model_with(pm.Normal, 0, 1, depth=custom(), shape=2), "custom"),
        (lambda: model_with(pm.Wald, 1, 1, shape=2), "Wald"),
    ],
    ids=["hierarchical", "multivariate", "smooth", "custom", "no icdf"],
)
def test_no_exact_draw_and_why(make, reason):
    model = make()
    with pytest.raises(NoExactSamplerError, match=reason):
        dpd.sample_exact(5, model=model)
    with pytest.raises(dpd.InexactReleaseError, match=rf"{reason}.*accept_asymptotic=True"):
        dpd.release(model)


def model_with(distribution, *arguments, depth="halfspace", **options):
    with pm.Model() as model:
        exponential_mechanism("median", distribution("location", *arguments, **options), ROWS, depth=depth, epsilon=1.0)
    return model


def rotated():
    return dpd.IntegratedDual(directions=dpd.Directions.orthonormal(2, seed=0))


def custom():
    return dpd.CustomObjective(lambda theta, X: -pt.mean(pt.minimum(abs(X - theta).sum(1), 1.0)), lambda n, d: 1 / n)


def test_other_variables_must_have_a_prior_that_can_be_drawn():
    model = rich_model()
    with model:
        pm.Normal("below", model["other"], 1)
    with pytest.raises(NoExactSamplerError, match="below"):
        dpd.sample_exact(5, model=model)
    with rich_model() as model:
        pm.Poisson("count", 3)
    with pytest.raises(NoExactSamplerError, match="count"):
        dpd.sample_exact(5, model=model)


def test_two_mechanisms_on_one_variable_have_no_exact_draw():
    model = rich_model()
    with model:
        exponential_mechanism("second", model["location"], ROWS, epsilon=0.5)
    with pytest.raises(NoExactSamplerError, match="share"):
        dpd.sample_exact(5, model=model)
    with pytest.raises(dpd.InexactReleaseError, match="share"):
        dpd.release(model)


# Exact releases


def test_an_exact_release(monkeypatch):
    model, drawn = rich_model(), []
    monkeypatch.setattr(randomness.np.random, "default_rng", lambda *args: pytest.fail("a seeded stream in a release"))
    tokens = randomness.secrets.token_bytes
    monkeypatch.setattr(randomness.secrets, "token_bytes", lambda count: drawn.append(count) or tokens(count))
    made = dpd.release(model)
    assert sum(drawn) > 0
    assert (made.guarantee, made.simulation, made.sampler, made.delta) == ("exact", False, "boxes", 0.0)
    assert made.value.coords["coordinate"].values.tolist() == ["age", "income"]
    assert set(made.parameters) == {"location", "other", "effects"}
    assert made.parameters["effects"].coords["city"].values.tolist() == ["x", "y", "z"]
    np.testing.assert_array_equal(made.value, made.parameters["location"])


def test_several_mechanisms_add_up():
    model = rich_model()
    with model:
        elsewhere = pm.Normal("elsewhere", 0, 9)
        options = {"epsilon": 0.25, "max_rows_per_unit": 3, "depth": "integrated_dual"}
        exponential_mechanism("second", elsewhere, ROWS[:, 0], **options)
    made = dpd.release(model)
    assert made.epsilon == 1.0 + 3 * 0.25
    assert [m["epsilon"] * m["max_rows_per_unit"] for m in made.mechanisms] == [1.0, 0.75]
    assert made.sampler == "boxes+segments" and set(made.locations) == {"median", "second"}
    with pytest.raises(ValueError, match=r"median.*second"):
        made.value  # noqa: B018


def test_asking_again_draws_again():
    model = rich_model()
    first, second = dpd.release(model), dpd.release(model)
    assert (first.value.values != second.value.values).all()
    with SIMULATION:
        third = dpd.release(model, random_seed=3)
    with SIMULATION:
        fourth = dpd.release(model, random_seed=3)
    assert third == fourth and third.simulation is True and first.simulation is False


@pytest.mark.parametrize("seed", [True, 1.5, -1, "1"])
def test_bad_seeds(seed):
    with pytest.raises(ValueError, match="random_seed"):
        dpd.release(rich_model(), random_seed=seed)


# Releases of a trace


def test_there_is_no_way_to_choose_a_draw():
    assert not set(inspect.signature(dpd.release).parameters) & {"draw", "chain", "draws", "index"}


def test_a_trace_needs_consent_and_is_labelled(smooth_model):
    idata = tree(smooth_model)
    with pytest.raises(dpd.InexactReleaseError, match="accept_asymptotic"):
        dpd.release(idata, model=smooth_model)
    with NOMINAL:
        made = dpd.release(idata, model=smooth_model, accept_asymptotic=True)
    assert (made.guarantee, made.simulation, made.sampler, made.epsilon) == ("asymptotic", "unknown", "trace", 1.0)
    assert "simulation unknown" in repr(made)
    assert made.value.values.tolist() in idata.posterior["location"].values.reshape(-1, 2).tolist()
    assert made.value.coords["coordinate"].values.tolist() == ["age", "income"]


@pytest.mark.parametrize(("chain", "draw"), [(0, 0), (1, 2), (1, 0)])
def test_the_draw_is_picked_by_secrets(smooth_model, monkeypatch, chain, draw):
    asked = []

    def randbelow(count):
        asked.append(count)
        return [chain, draw][len(asked) - 1]

    monkeypatch.setattr(randomness.secrets, "randbelow", randbelow)
    idata = tree(smooth_model)
    with NOMINAL:
        made = dpd.release(idata, model=smooth_model, accept_asymptotic=True)
    assert asked == [2, 3]
    np.testing.assert_array_equal(made.value, idata.posterior["location"][chain, draw])


def test_all_variables_of_a_trace_come_from_one_draw():
    model = hierarchical()
    idata = tree(model)
    with NOMINAL:
        made = dpd.release(idata, model=model, accept_asymptotic=True)
    spreads = idata.posterior["spread"].values
    ((chain, draw),) = np.argwhere(spreads == made.parameters["spread"].item())
    np.testing.assert_array_equal(made.parameters["location"], idata.posterior["location"][chain, draw])


def test_a_computed_location_is_evaluated_at_the_draw():
    with pm.Model() as model:
        raw = pm.Normal("raw", shape=2)
        exponential_mechanism("median", pt.exp(raw), ROWS, epsilon=1.0)
    idata = tree(model)
    with NOMINAL:
        made = dpd.release(idata, model=model, accept_asymptotic=True)
    np.testing.assert_allclose(made.value, np.exp(made.parameters["raw"].values), rtol=1e-14)


def test_other_traces_are_refused(smooth_model):
    right = tree(smooth_model)
    wrong_name = az.from_dict({"posterior": {"place": right.posterior["location"].values}})
    wrong_shape = az.from_dict({"posterior": {"location": right.posterior["location"].values[..., :1]}})
    for idata, word in ((wrong_name, "lacks"), (wrong_shape, "shapes")):
        with pytest.raises(ValueError, match=f"{word}|location"):
            dpd.release(idata, model=smooth_model, accept_asymptotic=True)
    for thing in (None, ROWS, "trace", right.posterior.to_dataset(), xr.DataTree()):
        with pytest.raises(TypeError, match=r"pm\.Model or a trace"):
            dpd.release(thing, model=smooth_model, accept_asymptotic=True)
        with pytest.raises(TypeError, match=r"pm\.Model or a trace"):
            dpd.release(thing)
    for model in (None, "model", right):
        with pytest.raises(TypeError, match="model"):
            dpd.release(right, model=model, accept_asymptotic=True)
    with pytest.raises(ValueError, match="sampler"):
        dpd.release(right, model=smooth_model, sampler="nuts", accept_asymptotic=True)
    with pytest.raises(ValueError, match="model"):
        dpd.release(smooth_model, model=hierarchical(), accept_asymptotic=True)


# Markov chains

CONSENT = {"accept_asymptotic": True, "progressbar": False}


@pytest.mark.parametrize(
    ("make", "sampler", "chosen"),
    [
        (lambda: model_with(pm.Dirichlet, np.ones(2), depth=SMOOTH), "auto", "nuts"),
        (lambda: model_with(pm.Normal, 0, 1, depth=SMOOTH, shape=2), "nuts", "nuts"),
        (hierarchical, "auto", "smc"),
        (hierarchical, "slice", "slice"),
        (lambda: model_with(pm.Normal, 0, 1, shape=2), "smc", "smc"),
    ],
)
def test_markov_chains_with_consent(short_chains, capsys, caplog, make, sampler, chosen):
    model = make()
    with caplog.at_level(logging.DEBUG), NOMINAL:
        made = dpd.release(model, sampler=sampler, accept_asymptotic=True, progressbar=False)
    assert (made.guarantee, made.simulation, made.sampler) == ("asymptotic", False, chosen)
    assert np.isfinite(made.value).all()
    assert not [r for r in caplog.records if r.name == "pymc"]  # nothing about divergences or convergence
    assert capsys.readouterr().out == ""
    assert logging.getLogger("pymc").getEffectiveLevel() <= logging.INFO  # the silence ended with the chains


def test_a_seeded_chain_is_a_reproducible_simulation(short_chains, smooth_model):
    made = []
    for _ in range(2):
        with NOMINAL, SIMULATION:
            made.append(dpd.release(smooth_model, sampler="nuts", random_seed=5, **CONSENT))
    assert made[0] == made[1] and made[0].simulation is True


def test_chains_get_wide_seeds(monkeypatch, short_chains, smooth_model):
    seen = []
    monkeypatch.setattr(pm, "sample", lambda **options: seen.append(options) or tree(smooth_model))
    with NOMINAL:
        dpd.release(smooth_model, sampler="nuts", **CONSENT)
    (options,) = seen
    assert len(set(options["random_seed"])) == 2 and max(options["random_seed"]) > 2**64
    assert options["compute_convergence_checks"] is False


@pytest.mark.parametrize("sampler", markov.MARKOV_SAMPLERS)
def test_markov_chains_need_consent_even_by_name(smooth_model, sampler):
    with pytest.raises(dpd.InexactReleaseError, match=sampler):
        dpd.release(smooth_model, sampler=sampler)


def test_an_exact_sampler_by_name_is_never_replaced(smooth_model):
    for sampler in ("segments", "boxes", "products"):
        with pytest.raises(NoExactSamplerError):
            dpd.release(smooth_model, sampler=sampler, accept_asymptotic=True)
    for sampler in ("hmc", ROWS, None):
        with pytest.raises(ValueError, match="sampler: expected one of"):
            dpd.release(smooth_model, sampler=sampler, accept_asymptotic=True)


def test_the_warnings_of_a_chain_point_at_the_caller(short_chains, smooth_model):
    options = {"accept_asymptotic": True, "random_seed": 1}
    with pytest.warns() as caught:
        dpd.release(smooth_model, sampler="nuts", progressbar=False, **options)
        dpd.release(tree(smooth_model), smooth_model, **options)
    ours = [w for w in caught if issubclass(w.category, (dpd.PrivacyLeakWarning, dpd.ApproximateSamplingWarning))]
    assert len(ours) == 4 and {w.filename for w in ours} == {__file__}


def test_consent_does_not_weaken_an_exact_draw():
    made = dpd.release(rich_model(), accept_asymptotic=True)
    assert made.guarantee == "exact"


def charged_by(ledger, call):
    with pytest.raises((ValueError, TypeError, dpd.ImproperMechanismError)) as caught:
        call()
    assert ledger.charges == [] and len(str(caught.value)) > 20
    return str(caught.value)


def test_what_a_chain_cannot_draw_is_refused_before_the_charge(ledger):
    rows = np.arange(20.0).reshape(10, 2)
    consent = {"accept_asymptotic": True, "ledger": ledger, "progressbar": False}
    discrete = pm.Poisson.dist(3, shape=2)
    for sampler in ("slice", "smc"):
        text = charged_by(
            ledger, lambda s=sampler: dpd.private_median(rows, epsilon=1, prior=discrete, sampler=s, **consent)
        )
        assert "discrete" in text
    with pm.Model() as model:
        location = pm.Normal("location", 0, 10, shape=2)
        dpd.exponential_mechanism("median", location, rows, epsilon=1.0)
        idata = dpd.sample_exact(draws=5, chains=2)
    assert "no free variables" in charged_by(ledger, lambda: dpd.release(pm.do(model, {"location": [0, 0]}), **consent))
    empty = idata.isel(draw=slice(0, 0))
    assert "no draws" in charged_by(ledger, lambda: dpd.release(empty, model, **consent))
    assert "accept_asymptotic" in charged_by(
        ledger, lambda: dpd.release(idata, model, accept_asymptotic="no", ledger=ledger)
    )
    with model:
        pm.Flat("z")
    assert "flat" in charged_by(ledger, lambda: dpd.release(model, sampler="slice", **consent))


@pytest.mark.filterwarnings("ignore::pymc_dpdepth.ApproximateSamplingWarning")
def test_a_trace_whose_dimensions_stand_elsewhere():
    with pm.Model() as model:
        location = pm.Normal("location", 0, 10, shape=2)
        dpd.exponential_mechanism("median", location, np.arange(20.0).reshape(10, 2), epsilon=1.0)
        idata = dpd.sample_exact(draws=5, chains=2)
    draws = idata.posterior["location"].values.reshape(-1, 2).tolist()
    idata["posterior"] = type(idata)(idata.posterior.dataset.transpose("draw", ..., "chain"))
    assert dpd.release(idata, model, accept_asymptotic=True).value.values.tolist() in draws


def test_a_location_outside_the_model_is_refused():
    with pm.Model(), pytest.raises(ValueError, match="without .dist"):
        dpd.exponential_mechanism("median", pm.Normal.dist(0, 1, shape=2), np.zeros((3, 2)), epsilon=1.0)


@pytest.mark.filterwarnings("ignore::pymc_dpdepth.ApproximateSamplingWarning")
def test_one_prior_object_in_two_places_of_a_list():
    same = pm.Normal.dist(0, 1)
    rows = np.zeros((5, 2))
    settings = {"accept_asymptotic": True, "progressbar": False}
    value = dpd.private_median(rows, epsilon=1.0, prior=[same, same], sampler="slice", **settings).value.values
    assert value[0] != value[1]
