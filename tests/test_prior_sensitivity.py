"""Power-scaling of private medians: the groups that ArviZ needs, for every sampler and prior, and what they mean."""

import arviz as az
import arviz_base
import matplotlib
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
import xarray as xr

import pymc_dpdepth as dpd
from pymc_dpdepth.prior_sensitivity import LIKELIHOOD_MEANS, TIE_BREAK, compute_log_prior_and_potential
from pymc_dpdepth.trace_values import free_draws, locations, log_priors, mechanisms_of, objectives

matplotlib.use("agg")

ROWS = np.random.default_rng(0).normal([0.5, -0.5], 1.0, size=(40, 2))
DRAWS = 60
LABELS = {"coordinate": ["a", "b"], "group": ["x", "y", "z"]}
SMOOTH = dpd.IntegratedDual(smoothing=5.0)
ROUNDING = 1e-12  # doubles, some hundred operations
quiet = pytest.mark.filterwarnings("ignore::pymc_dpdepth.PrivacyLeakWarning")


def build(prior, depth="halfspace", **options):
    options = {"standardize": None} | options
    with pm.Model(coords=LABELS) as model:
        dpd.exponential_mechanism("median", prior(), ROWS, depth=depth, epsilon=2.0, **options)
    return model


def ordered_normal():
    return pm.Normal("location", 0, 1, shape=2, transform=pm.distributions.transforms.ordered, initval=[-1.0, 1.0])


def hierarchy():
    return pm.Normal("location", pm.Normal("mu", 0, 1), pm.HalfNormal("tau", 1), dims="coordinate")


def shifted():
    z = pm.Normal("z", 0, 1, dims="coordinate")
    return pm.Deterministic("location", pm.Normal("mu", 0, 1) + pm.HalfCauchy("tau", 1) * z, dims="coordinate")


def correlated():
    factor, _, _ = pm.LKJCholeskyCov("factor", n=2, eta=2.0, sd_dist=pm.Exponential.dist(1.0))
    return pm.MvNormal("location", [0, 1], chol=factor, dims="coordinate")


def mixed():
    components = [pm.Normal.dist(0, 1), pm.StudentT.dist(3, mu=0, sigma=1)]
    return pm.Mixture("location", pm.Dirichlet("w", [1, 1]), components, shape=(2,))


def truncated():
    return pm.Truncated("location", pm.Normal.dist([0, 1], [1, 2]), lower=-2, upper=2.5, dims="coordinate")


PRIORS = {
    "normal": lambda: pm.Normal("location", 0, 3, dims="coordinate"),
    "uniform": lambda: pm.Uniform("location", -5, 5, shape=2),
    "truncated": truncated,
    "truncated normal": lambda: pm.TruncatedNormal("location", mu=0, sigma=2, lower=-1, dims="coordinate"),
    "hierarchy": hierarchy,
    "not centred": shifted,
    "multivariate": lambda: pm.MvNormal("location", [0, 1], [[2, 0.5], [0.5, 1]], dims="coordinate"),
    "correlated": correlated,
    "mixed": mixed,
    "stacked": lambda: pt.stack([pm.Gamma("a", 2, 1), pm.StudentT("b", 3, mu=pm.Normal("mu", 0, 1), sigma=1)]),
    "walk": lambda: pm.GaussianRandomWalk("location", sigma=1, init_dist=pm.Normal.dist(0, 1), steps=1),
    "zero sum": lambda: pm.ZeroSumNormal("location", 1, shape=2),
    "row of groups": lambda: pm.Normal("all", pm.Normal("mu", 0, 1), 1, dims=("group", "coordinate"))[1],
}


def prior_draws(model):
    """Return draws of the prior as a trace: any point with density will do for the densities."""
    values = pm.draw(model.free_RVs, draws=DRAWS, random_seed=1, mode="FAST_COMPILE")
    posterior = {
        v.name: np.reshape(x, (2, DRAWS // 2, *x.shape[1:])) for v, x in zip(model.free_RVs, values, strict=True)
    }
    return arviz_base.from_dict({"posterior": posterior})


@pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS")
@pytest.mark.parametrize("name", PRIORS)
def test_log_priors_are_those_of_pymc(name):
    model = build(PRIORS[name])
    idata = prior_draws(model)
    own = compute_log_prior_and_potential(idata, model=model, extend_inferencedata=False)["log_prior"]
    theirs = pm.stats.compute_log_prior(
        idata, model=model, extend_inferencedata=False, progressbar=False, compile_kwargs={"mode": "FAST_COMPILE"}
    )
    assert set(own.data_vars) == set(theirs.data_vars)
    for variable in theirs.data_vars:
        # Values that draws share are moved apart by up to this much.
        apart = TIE_BREAK * max(1.0, np.abs(theirs[variable]).max() * theirs[variable][0, 0].size)
        assert own[variable].shape == theirs[variable].shape
        np.testing.assert_allclose(own[variable], theirs[variable], rtol=ROUNDING, atol=ROUNDING + apart)


def test_an_ordering_transform_leaves_the_density_of_its_own_space():
    model = build(ordered_normal)
    values = free_draws(prior_draws(model), model)
    density = log_priors(model, values)["location"]
    np.testing.assert_allclose(density, -0.5 * values["location"] ** 2 - 0.5 * np.log(2 * np.pi), atol=ROUNDING)


CUSTOM = dpd.CustomObjective(lambda t, X: -pt.mean(pt.minimum(abs(X - t).sum(1), 1.0)), lambda n, d: 1 / n)
ROTATED = dpd.IntegratedDual(directions=dpd.Directions.orthonormal(2, 1))
CASES = {
    "step": ("halfspace", shifted),
    "smooth": (SMOOTH, PRIORS["normal"]),
    "spatial": ("spatial", PRIORS["stacked"]),
    "counted": ("simplicial", PRIORS["row of groups"]),
    "rotated": (ROTATED, PRIORS["normal"]),
    "custom": (CUSTOM, PRIORS["normal"]),
}


@pytest.mark.parametrize(("depth", "prior"), CASES.values(), ids=CASES)
def test_objectives_are_what_the_potential_is_in_the_graph(depth, prior):
    standardize = None if depth is CUSTOM else ([0.3, -0.2], [2.0, 0.5])
    model = build(prior, depth, standardize=standardize)
    values = free_draws(prior_draws(model), model)
    (mechanism,) = mechanisms_of(model)
    (theta,) = locations([mechanism], model, values)
    options = {"point_fn": False, "mode": "FAST_COMPILE", "on_unused_input": "ignore"}
    function = model.compile_fn(model["median"], inputs=model.free_RVs, **options)
    there = [function(*(values[v.name][i] for v in model.free_RVs)) for i in range(DRAWS)]
    np.testing.assert_allclose(objectives(mechanism, theta), there, rtol=ROUNDING)
    assert np.ptp(there) > 0


def test_the_groups_say_what_they_are_and_that_they_stay():
    model = build(PRIORS["normal"])
    idata = prior_draws(model)
    assert compute_log_prior_and_potential(idata, model=model) is idata
    assert idata["log_likelihood"].attrs["meaning"] == LIKELIHOOD_MEANS
    assert "sensitivity of the draws to epsilon" in LIKELIHOOD_MEANS
    for group in ("log_prior", "log_likelihood"):
        assert idata[group].attrs["curator_side"] == "not releasable"
    assert idata["log_likelihood"]["median"].dims == ("chain", "draw")
    assert idata["log_prior"]["location"].dims == ("chain", "draw", "coordinate")
    assert list(idata["log_prior"]["coordinate"].values) == ["a", "b"]


def test_scaling_the_likelihood_row_is_scaling_epsilon():
    """Weights exp((alpha - 1) * log_likelihood) turn draws at epsilon into draws at alpha * epsilon."""
    alpha, epsilon, count = 2.0, 0.2, 4000
    means = {}
    for factor in (1.0, alpha):
        with pm.Model() as model:
            location = pm.Normal("location", 3, 2, shape=1)
            dpd.exponential_mechanism("median", location, ROWS[:, :1], depth="halfspace", epsilon=factor * epsilon)
            with pytest.warns(dpd.PrivacyLeakWarning, match="random_seed"):
                idata = dpd.sample_exact(count, random_seed=2)
        compute_log_prior_and_potential(idata, model=model)
        theta = idata.posterior["location"].values.ravel()
        if factor == 1.0:
            weights = np.exp((alpha - 1) * idata["log_likelihood"]["median"].values.ravel())
            means["reweighted"] = np.average(theta, weights=weights)
            effective = weights.sum() ** 2 / (weights**2).sum()
            unscaled = theta.mean()
        else:
            means["drawn"] = theta.mean()
    # Four standard errors of the difference of the two means, by the larger of the spreads.
    tolerance = 4 * theta.std() * np.sqrt(1 / effective + 1 / count)
    assert abs(means["reweighted"] - means["drawn"]) < tolerance
    assert abs(unscaled - means["drawn"]) > 2 * tolerance  # the scaling did something


# ArviZ, unchanged


def nuts(model):
    with model:
        return pm.sample(draws=100, tune=100, chains=2, cores=1, nuts_sampler="pymc", progressbar=False, random_seed=1)


def smc(chains):
    def sample(model):
        with model:
            kernel = pm.smc.kernels.MH
            return pm.sample_smc(draws=100, chains=chains, cores=1, kernel=kernel, progressbar=False, random_seed=5)

    return sample


def exact(model):
    return dpd.sample_exact(200, model=model, random_seed=1)


SAMPLED = [
    ("nuts", lambda: build(PRIORS["stacked"], SMOOTH), nuts),
    ("SMC", lambda: build(hierarchy), smc(1)),
    ("exact", lambda: build(PRIORS["normal"]), exact),
    ("exact, uniform", lambda: build(PRIORS["uniform"], directions="axes"), exact),
    ("exact, all deepest", lambda: deep(), exact),
]


def deep():
    with pm.Model() as model:
        dpd.exponential_mechanism(
            "median", pm.Uniform("location", -5, 5, shape=2), ROWS, directions="axes", epsilon=300.0
        )
    return model


@quiet
@pytest.mark.parametrize(("build_model", "sample"), [case[1:] for case in SAMPLED], ids=[case[0] for case in SAMPLED])
def test_arviz_works_on_draws_of_every_sampler(build_model, sample, caplog):
    model = build_model()
    idata = compute_log_prior_and_potential(sample(model), model=model)
    table = az.psense_summary(idata)
    assert np.isfinite(table[["prior", "likelihood"]].to_numpy()).all()
    for plot in (az.plot_psense_dist, az.plot_psense_quantities):
        assert type(plot(idata, var_names=[str(next(iter(idata.posterior.data_vars)))])).__name__ == "PlotCollection"
    matplotlib.pyplot.close("all")


@quiet
def test_the_rows_of_the_summary_follow_prior_and_epsilon():
    def table(sigma, epsilon):
        with pm.Model() as model:
            location = pm.Normal("location", 2, sigma, shape=2)
            dpd.exponential_mechanism("median", location, ROWS, directions="axes", epsilon=epsilon)
            idata = dpd.sample_exact(2000, random_seed=3)
        return az.psense_summary(compute_log_prior_and_potential(idata, model=model)).loc["location[0]"]

    assert table(1.0, 1e-4)["likelihood"] < 0.01 < table(1.0, 2.0)["likelihood"]
    assert table(30.0, 2.0)["prior"] < 0.05 < table(0.3, 2.0)["prior"]


@quiet
def test_two_mechanisms_are_two_variables():
    with pm.Model():
        for name in ("first", "second"):
            dpd.exponential_mechanism(name, pm.Normal(f"{name}_at", 0, 3), ROWS[:, :1], epsilon=1.0)
        idata = compute_log_prior_and_potential(dpd.sample_exact(200, random_seed=1))
    assert set(idata["log_likelihood"].data_vars) == {"first", "second"}
    one = az.psense_summary(idata, likelihood_var_names=["first"])["likelihood"]
    assert one["first_at"] > one["second_at"]


def test_public_data_beside_a_mechanism_are_left_out():
    model = build(PRIORS["normal"])
    with model:
        pm.Normal("observed", model["location"][0], 1, observed=[0.1, 0.2])
        pm.Potential("other", -(model["location"][1] ** 2))
    idata = prior_draws(model)
    assert set(compute_log_prior_and_potential(idata, model=model)["log_likelihood"].data_vars) == {"median"}


def test_a_second_call_replaces_the_groups_and_a_tree_of_its_own_leaves_the_draws_alone():
    model = build(PRIORS["normal"])
    idata = prior_draws(model)
    alone = compute_log_prior_and_potential(idata, model=model, extend_inferencedata=False)
    assert set(alone.children) == {"log_prior", "log_likelihood"}
    assert set(idata.children) == {"posterior"} and set(idata.posterior.data_vars) == {"location"}
    compute_log_prior_and_potential(idata, model=model)
    compute_log_prior_and_potential(idata, model=model)
    assert set(idata.children) == {"posterior", "log_prior", "log_likelihood"}
    assert alone["log_likelihood"]["median"].equals(idata["log_likelihood"]["median"])


def test_draws_in_another_order_of_dimensions_give_the_same():
    model = build(hierarchy)
    idata = prior_draws(model)
    turned = xr.DataTree.from_dict({"posterior": idata.posterior.to_dataset().transpose(..., "draw", "chain")})
    first, second = (compute_log_prior_and_potential(tree, model=model) for tree in (idata, turned))
    for group in ("log_prior", "log_likelihood"):
        assert first[group].to_dataset().equals(second[group].to_dataset())


def test_a_table_without_rows_leaves_the_prior():
    with pm.Model() as model:
        location = pm.Normal("location", 0, 3, shape=2)
        dpd.exponential_mechanism("median", location, np.empty((0, 2)), directions="axes", epsilon=1.0)
    idata = compute_log_prior_and_potential(prior_draws(model), model=model)
    assert np.abs(idata["log_likelihood"]["median"]).max() <= TIE_BREAK


# Refusals; nothing is added


def refused(idata, model, error, match):
    before = set(idata.children) if hasattr(idata, "children") else None
    with pytest.raises(error, match=match):
        compute_log_prior_and_potential(idata, model=model)
    assert before is None or set(idata.children) == before


def test_what_does_not_belong_together_is_refused():
    model = build(PRIORS["normal"])
    idata = prior_draws(model)
    with pm.Model() as plain:
        pm.Normal("location", 0, 1, shape=2)
    refused(idata, plain, ValueError, "no exponential mechanism")
    refused(idata, build(hierarchy), ValueError, r"lacks the free variables \['mu', 'tau'\]")
    refused(idata, build(lambda: pm.Normal("location", 0, 1)[None].repeat(2)), ValueError, "other shapes")
    refused(arviz_base.from_dict({"prior": {"location": np.zeros((1, 3, 2))}}), model, TypeError, "posterior group")
    refused({"location": np.zeros(3)}, model, TypeError, "posterior group, got dict")
    refused(idata.isel(draw=slice(0, 0)), model, ValueError, "each of length 1 or more")
    refused(idata.isel(chain=0), model, ValueError, "chain and draw")
    refused(idata, "model", TypeError, "expected the pm.Model")


# What stands in the tree


def test_a_single_variable_gets_the_location_beside_it_and_more_get_none():
    idata = prior_draws(build(PRIORS["normal"]))
    compute_log_prior_and_potential(idata, model=build(PRIORS["normal"]))
    assert idata.posterior["median"].dims == ("chain", "draw", "location_dim_0")
    np.testing.assert_array_equal(idata.posterior["median"], idata.posterior["location"])
    several = prior_draws(build(hierarchy))
    compute_log_prior_and_potential(several, model=build(hierarchy))
    assert set(several.posterior.data_vars) == {"location", "mu", "tau"}


@quiet
def test_groups_have_a_variable_each():
    coords = {"group": ["x", "y"], "coordinate": ["a", "b"]}
    with pm.Model(coords=coords) as model:
        location = pm.Normal("location", 0, 3, dims=("group", "coordinate"))
        labels = np.repeat(coords["group"], 20)
        dpd.exponential_mechanism("median", location, ROWS, groups=labels, epsilon=1.0, directions="axes")
    idata = compute_log_prior_and_potential(dpd.sample_exact(150, model=model, random_seed=1), model=model)
    assert list(idata["log_likelihood"].data_vars) == ["median[x]", "median[y]"]
    np.testing.assert_array_equal(idata.posterior["median[x]"], idata.posterior["location"][:, :, 0])
    one = az.psense_summary(idata, var_names=["location"], likelihood_var_names=["median[y]"])["likelihood"]
    assert one.loc[["location[y, a]", "location[y, b]"]].min() > one.loc[["location[x, a]", "location[x, b]"]].max()


def test_the_location_that_is_added_has_the_order_of_its_draws():
    model = build(PRIORS["normal"])
    theta = np.random.default_rng(4).normal(size=(1, 50, 2))
    for labels in (["a", "b"], ["b", "a"]):
        posterior = xr.Dataset({"location": (("chain", "draw", "coordinate"), theta)}, coords={"coordinate": labels})
        idata = compute_log_prior_and_potential(xr.DataTree.from_dict({"posterior": posterior}), model=model)
        assert idata.posterior["median"].dims == ("chain", "draw", "coordinate")
        np.testing.assert_array_equal(idata.posterior["median"], theta)


# Draws outside the prior's support, and draws that are no numbers


def test_draws_outside_the_support_leave_ties_of_others_finite():
    model = build(PRIORS["uniform"])
    theta = np.random.default_rng(5).uniform(-5, 5, size=(1, 20, 2))
    theta[0, :3] = 60.0
    idata = xr.DataTree.from_dict({"posterior": xr.Dataset({"location": (("chain", "draw", "location_dim_0"), theta)})})
    density = compute_log_prior_and_potential(idata, model=model)["log_prior"]["location"].values[0]
    assert (density[:3] == -np.inf).all()
    np.testing.assert_allclose(density[3:], -np.log(10.0), atol=20 * TIE_BREAK)  # a total is at most 2 * log(10) < 20
    assert len(set(density[3:, 0])) == 17


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_draws_that_are_not_finite_are_refused(value):
    model = build(PRIORS["normal"])
    idata = prior_draws(model)
    idata["posterior"]["location"].values[0, 3] = value
    refused(idata, model, ValueError, r"expected finite draws; those of \['location'\]")


@pytest.mark.parametrize("kind", [object, str])
def test_draws_that_are_no_numbers_are_refused(kind):
    model = build(PRIORS["normal"])
    idata = prior_draws(model)
    held = idata.posterior.to_dataset()
    held["location"] = held["location"].astype(kind)
    refused(xr.DataTree.from_dict({"posterior": held}), model, TypeError, "'location' that are numbers.*dpd.writable")
