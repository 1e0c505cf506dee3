"""Draws of a trace are read in the order of the model's dims and labels, or refused where it cannot be told."""

import arviz_base
import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_dpdepth as dpd
from pymc_dpdepth.prior_sensitivity import compute_log_prior_and_potential
from pymc_dpdepth.trace_values import free_draws

ROWS = np.random.default_rng(0).normal([0.5, -0.5], 1.0, size=(40, 2))
DRAWS = 60
GROUPED = {"group": ["y", "x"], "coordinate": ["a", "b"]}  # as many groups as columns: shapes tell nothing apart


def grouped():
    with pm.Model(coords=GROUPED) as model:
        location = pm.Normal("location", [[0.0, 1.0], [2.0, 3.0]], 3, dims=("group", "coordinate"))
        pm.Normal("numbered", [0.0, 5.0], 1, shape=2)
        labels = np.repeat(GROUPED["group"], 20)
        dpd.exponential_mechanism("median", location, ROWS, groups=labels, epsilon=3.0, directions="axes")
    return model


@pytest.fixture(scope="module")
def grouped_draws():
    model = grouped()
    values = pm.draw(model.free_RVs, draws=DRAWS, random_seed=1, mode="FAST_COMPILE")
    posterior = {v.name: x[None] for v, x in zip(model.free_RVs, values, strict=True)}
    dims = {"location": ["group", "coordinate"]}
    posterior = arviz_base.from_dict({"posterior": posterior}, dims=dims, coords=GROUPED).posterior
    return model, posterior.to_dataset()


ORDERS = {
    "transposed": lambda draws: draws.transpose("coordinate", "chain", "group", "draw", ...),
    "labels": lambda draws: draws.sel(group=["x", "y"]),
    "positions": lambda draws: draws.isel(coordinate=[1, 0]),
    "numbers": lambda draws: draws.isel(numbered_dim_0=[1, 0]),
    "numbers from 1": lambda draws: draws.assign_coords(numbered_dim_0=[1, 2]).isel(numbered_dim_0=[1, 0]),
    "automatic names": lambda draws: (
        draws.rename(group="location_dim_0", coordinate="location_dim_1")
        .drop_vars(["location_dim_0", "location_dim_1"])
        .transpose(..., "location_dim_1", "location_dim_0")
    ),
    "no labels": lambda draws: draws.drop_vars(["group", "coordinate", "numbered_dim_0"]),
    "a name of one's own": lambda draws: draws.rename(numbered_dim_0="mine").assign_coords(mine=["q", "p"]),
}


@pytest.mark.parametrize("turn", ORDERS.values(), ids=ORDERS)
def test_draws_are_put_into_the_models_order(grouped_draws, turn):
    model, draws = grouped_draws
    right, turned = (
        compute_log_prior_and_potential(
            xr.DataTree.from_dict({"posterior": one}), model=model, extend_inferencedata=False
        )
        for one in (draws, turn(draws))
    )
    assert np.ptp(right["log_likelihood"]["median[x]"].values) > 0.1
    for group in ("log_prior", "log_likelihood"):
        for name in right[group].data_vars:
            np.testing.assert_array_equal(turned[group][name].values, right[group][name].values)


UNTOLD = {
    "other labels": (lambda draws: draws.assign_coords(group=["x", "z"]), "labels of the model along 'group'"),
    "some labels": (lambda draws: draws.sel(group=["x"]), "labels of the model along 'group'"),
    "twice the same": (lambda draws: draws.sel(group=["x", "x"]), "labels of the model along 'group'"),
    "another name": (lambda draws: draws.rename(group="city"), r"\('group', 'coordinate'\) of 'location'.*'city'"),
}


@pytest.mark.parametrize(("turn", "words"), UNTOLD.values(), ids=UNTOLD)
def test_an_order_that_cannot_be_told_is_refused(grouped_draws, turn, words):
    model, draws = grouped_draws
    with pytest.raises(ValueError, match=words):
        free_draws(xr.DataTree.from_dict({"posterior": turn(draws)}), model)


def test_labels_of_several_types_are_those_of_a_file():
    with pm.Model(coords={"coordinate": [1, "b"]}) as model:
        location = pm.Normal("location", [0.0, 5.0], 1, dims="coordinate")
        dpd.exponential_mechanism("median", location, ROWS, epsilon=1.0)
    theta = np.arange(20.0).reshape(1, 10, 2)
    posterior = xr.Dataset({"location": (("chain", "draw", "coordinate"), theta)}, coords={"coordinate": ["b", "1"]})
    found = free_draws(xr.DataTree.from_dict({"posterior": posterior}), model)["location"]
    np.testing.assert_array_equal(found, theta[0][:, ::-1])
