"""Populations as PyMC models: the law of a row for many parameter values at a time."""

import itertools

import numpy as np
import pymc as pm
import pytest
from scipy import stats

from pymc_dpdepth.downstream.population import read_population

CONSTANTS = {"one": 3.0, "each": np.array([10.0, 3.0])}
RANDOM = {"random one": None, "random each": 2, "random one shifted": None}
SHIFT = np.array([0.0, 20.0])
POINTS = np.array([2.0, 9.0, 30.0])


def in_the_model(name, kind):
    """Return a row's parameter: a constant or a random one, for all columns or for each."""
    if kind in CONSTANTS:
        return CONSTANTS[kind]
    variable = pm.Uniform(name, 1.0, 5.0, shape=RANDOM[kind])
    return variable + SHIFT if "shifted" in kind else variable


def in_the_draws(shown, name, kind, count):
    """Return the same, of shape (count, 2)."""
    value = CONSTANTS[kind] if kind in CONSTANTS else shown[name].reshape(count, -1)
    return np.broadcast_to(value + SHIFT if "shifted" in kind else value, (count, 2))


def test_a_row_has_its_parameters_whatever_depends_on_what():
    pairs = list(enumerate(itertools.product([*CONSTANTS, *RANDOM], repeat=2)))
    with pm.Model() as model:
        pm.Deterministic("constant", pm.math.constant([7.0, 8.0]))
        for i, (center, scale) in pairs:
            pm.Normal(f"row{i}", in_the_model(f"mu{i}", center), in_the_model(f"sigma{i}", scale), shape=2)
    population = read_population(model, [f"row{i}" for i, _ in pairs])
    # At two places, as many as columns, a vector for each column has the shape of a number for each place.
    for count in (1, 2, 3):
        places = population.initial(count, seed=1)
        shown, laws = population.values(places), population.rows(places)
        np.testing.assert_array_equal(shown["constant"], np.tile([7.0, 8.0], (count, 1)))
        for i, (center, scale) in pairs:
            mus = in_the_draws(shown, f"mu{i}", center, count)
            sigmas = in_the_draws(shown, f"sigma{i}", scale, count)
            for j in range(2):
                normal = stats.norm(mus[:, j, None], sigmas[:, j, None])
                lower, upper = laws[2 * i + j].tails(POINTS)
                np.testing.assert_allclose(lower, normal.cdf(POINTS), rtol=1e-10, err_msg=f"{center}, {scale}")
                np.testing.assert_allclose(upper, normal.sf(POINTS), rtol=1e-10, err_msg=f"{center}, {scale}")


def test_columns_of_several_variables_keep_their_constants():
    with pm.Model() as model:
        center = pm.Normal("center", 0, 1)
        pm.Normal("age", center, [10.0, 3.0])
        pm.Laplace("income", 5.0, pm.math.exp(center))
    places = read_population(model, ["age", "income"]).initial(2, seed=1)
    laws = read_population(model, ["age", "income"]).rows(places)
    spreads = [law.parameters[1] for law in laws]
    np.testing.assert_allclose(spreads, [[10.0, 10.0], [3.0, 3.0], np.exp(places[:, 0])])


def test_columns_that_depend_on_one_another_are_refused():
    with pm.Model() as model:
        age = pm.Normal("age", pm.Normal("center", 50, 20), 10)
        pm.Normal("income", 0.4 * age, 1.0)
    with pytest.raises(ValueError, match="'income' depends on \\['age'\\].*independent given the parameters"):
        read_population(model, ["age", "income"])


@pytest.mark.parametrize("flat", [pm.Flat, pm.HalfFlat])
def test_flat_priors_are_refused(flat):
    with pm.Model() as model:
        pm.Normal("row", flat("center"), 10.0)
    with pytest.raises(ValueError, match="'center' is flat.*proper"):
        read_population(model, "row")


def test_priors_without_draws_are_refused():
    with pm.Model() as model:
        center = pm.CustomDist("center", logp=lambda value: -(value**2))
        pm.Normal("row", center, 10.0)
    with pytest.raises(ValueError, match="can be drawn from"):
        read_population(model, "row").initial(3, seed=1)
