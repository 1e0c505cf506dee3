"""Priors compared on synthetic rows: the right errors, the same tables for all, and nothing private or charged."""

import io

import numpy as np
import pymc as pm
import pytest
from rich.console import Console

import pymc_dpdepth as dpd
from pymc_dpdepth.prior_comparison import prior_grid
from pymc_dpdepth.prior_grid_record import FOOTNOTES

N = 40


def population(generator, n):
    return generator.normal([1.0, 2.0], [1.0, 3.0], size=(n, 2))


def grid(priors, **options):
    settings = {"population": population, "n": N, "replicates": 6, "draws": 5, "random_seed": 1, "progressbar": False}
    return prior_grid(priors=priors, **({"epsilon": 1.0, "directions": "axes"} | settings | options))


def build(rows, sigma):
    with pm.Model() as model:
        location = pm.Normal("location", [1, 2], sigma, shape=2)
        dpd.exponential_mechanism("median", location, rows, directions="axes", epsilon=1.0)
    return model


def test_the_errors_are_those_of_the_draws():
    found = grid({"a": "normal(1, 5)", "b": "normal(0, 50)"}, target=[1.0, 2.0]).dataset
    assert dict(found.sizes) == {"prior": 2, "replicate": 6, "draw": 5, "coordinate": 2, "quantile": 2}
    errors, spread = found["error"].values, found["spread"].values
    np.testing.assert_allclose(spread, 1.349 * np.array([1, 3]), rtol=0.25)  # of 240 rows; a quartile's error is 9%
    distances = np.sqrt(((errors / spread) ** 2).sum(axis=-1))
    np.testing.assert_allclose(found["distance_rms"], np.sqrt((distances**2).mean(axis=(1, 2))))
    np.testing.assert_allclose(found["rmse"], np.sqrt((errors**2).mean(axis=(1, 2))))
    np.testing.assert_allclose(found["distance_quantile"].sel(quantile=0.5), np.median(distances, axis=(1, 2)))


def test_the_draws_are_those_of_the_mechanism():
    """With an epsilon that decides everything, each draw is the median of its table, whatever the prior."""
    tables = []

    def remembered(generator, n):
        tables.append(population(generator, n + 1 - n % 2))  # an odd number of rows has one median
        return tables[-1]

    found = grid({"a": "normal(1, 5)", "b": "normal(3, 8)"}, population=remembered, n=41, epsilon=1e4, target=[0, 0])
    medians = np.stack([np.median(table, axis=0) for table in tables])
    np.testing.assert_allclose(found.dataset["error"], np.broadcast_to(medians[None, :, None], (2, 6, 5, 2)), atol=1e-6)
    assert found.dataset["nonprivate_rms"] == pytest.approx(found.dataset["distance_rms"].values[0], abs=1e-6)


def test_all_priors_see_the_same_tables_and_a_seed_repeats_them():
    same = grid(["normal(0, 10)", "normal(0, 10.0)"]).dataset
    assert (same["error"][0] == same["error"][1]).all()
    assert same.identical(grid(["normal(0, 10)", "normal(0, 10.0)"]).dataset)
    assert not same.identical(grid(["normal(0, 10)", "normal(0, 10.0)"], random_seed=2).dataset)


def test_a_prior_in_the_wrong_place_or_far_too_wide_is_worse_and_seen():
    priors = {"near": "normal(1, 4)", "wrong": "normal(-300, 1)", "wide": "normal(0, 1e9)"}
    found = grid(priors)
    table = found.dataset
    assert found.best == "near" and table["as_good"].values.tolist() == [True, False, False]
    assert table["outside"].sel(prior="wide") > 0.3 > table["outside"].sel(prior="near")
    # Masses from 4,000 draws, four standard errors .03; the width of a quartile range, four standard errors 8%.
    np.testing.assert_allclose(table["prior_below"].sel(prior="near"), [0.5, 0.599], atol=0.1)
    assert (table["prior_below"].sel(prior="wrong") == 1).all()
    np.testing.assert_allclose(table["prior_width"].sel(prior="near") * table["spread"], [5.4, 5.4], rtol=0.08)


def test_the_standard_error_is_that_of_independent_tables():
    """The jackknife over tables knows no formula; both estimate the same, with errors of order 1 / replicates."""
    replicates = 60
    found = grid(["normal(0, 5)"], replicates=replicates, draws=3, target=[1, 2]).dataset
    squares = ((found["error"].values[0] / found["spread"].values) ** 2).sum(axis=-1).mean(axis=1)
    left_out = np.sqrt((squares.sum() - squares) / (replicates - 1))
    jackknife = np.sqrt((replicates - 1) / replicates * ((left_out - left_out.mean()) ** 2).sum())
    assert found["standard_error"].item() == pytest.approx(jackknife, rel=0.15)


# Models


def test_a_builder_gives_what_the_median_alone_gives():
    sigmas = {"a": 5.0, "b": 50.0}
    plain = grid({name: pm.Normal.dist([1, 2], sigma, shape=2) for name, sigma in sigmas.items()})
    built = grid(sigmas, model_builder=build, epsilon=None, directions=None)
    assert plain.dataset.identical(built.dataset)


def test_groups_and_several_mechanisms_stand_side_by_side():
    labels = np.repeat(["x", "y"], N // 2)

    def grouped(rows, sigma):
        with pm.Model(coords={"group": ["x", "y"], "coordinate": ["a", "b"]}) as model:
            location = pm.Normal("location", 0, sigma, dims=("group", "coordinate"))
            dpd.exponential_mechanism("median", location, rows, groups=labels, directions="axes", epsilon=1.0)
        return model

    options = {"population": population, "n": N, "replicates": 2, "draws": 3, "random_seed": 1, "progressbar": False}
    found = prior_grid(grouped, {"only": 10.0}, target=[1, 2, 1, 2], **options).dataset
    assert found["coordinate"].values.tolist() == [f"median[{g}]: x{j}" for g in "xy" for j in range(2)]
    assert found["prior_width"].shape == (1, 4)
    with pytest.raises(ValueError, match="target: expected 4 numbers"):
        prior_grid(grouped, {"only": 10.0}, **options)


def test_a_location_that_is_computed_is_followed():
    def computed(rows, sigma):
        with pm.Model() as model:
            parts = [pm.Normal(name, 1.0, sigma) for name in "ab"]
            dpd.exponential_mechanism("median", pm.math.stack(parts), rows, directions="axes", epsilon=1e4)
        return model

    options = {"population": population, "n": 41, "replicates": 2, "draws": 2, "random_seed": 1, "progressbar": False}
    found = prior_grid(computed, {"only": 5.0}, **options).dataset
    assert np.ptp(found["error"].values, axis=2).max() < 1e-6  # the median of each table, at every draw


def test_a_population_may_be_a_distribution():
    found = grid(["normal(0, 5)"], population=pm.MvNormal.dist([3.0, 4.0], [[1.0, 0.9], [0.9, 1.0]])).dataset
    np.testing.assert_allclose(found["target"], [3, 4], atol=0.5)  # 240 rows: six standard errors
    one = grid(["normal(0, 5)"], population=lambda generator, n: generator.normal(size=n)).dataset
    assert one.sizes["coordinate"] == 1


def test_priors_by_column_need_the_columns():
    prior = {"age": "normal(0, 5)", "height": "uniform(-9, 9)"}
    assert grid({"both": prior}, columns=["age", "height"]).dataset["coordinate"].values.tolist() == ["age", "height"]
    with pytest.raises(ValueError, match="one entry for each column"):
        grid({"both": prior})


# What is shown, and refused


def test_the_table_says_what_it_is_made_of():
    found = grid({"near": "normal(1, 4)", "[bold]far": "normal(99, 1)"})
    text = io.StringIO()
    Console(file=text, width=200).print(found)
    for shown in (str(found), text.getvalue()):
        assert all(line in shown for line in FOOTNOTES)
        assert "near *" in shown and "[bold]far" in shown
    assert repr(found).endswith("best 'near'>")


BAD = {
    "priors a text": ({"priors": "normal(0, 1)"}, TypeError, "priors: expected a mapping"),
    "no priors": ({"priors": {}}, ValueError, "one or more"),
    "two of one name": ({"priors": ["normal(0, 1)"] * 2}, ValueError, "a name of its own"),
    "one replicate": ({"replicates": 1}, ValueError, "at least 2"),
    "no epsilon": ({"epsilon": None}, ValueError, "epsilon: expected a number"),
    "negative epsilon": ({"epsilon": -1.0}, ValueError, "epsilon must be finite and above 0"),
    "no population": ({"population": np.zeros((N, 2))}, TypeError, "never pass private ones"),
    "too few rows": ({"population": lambda g, n: np.zeros((n - 1, 2))}, ValueError, "expected 40 rows"),
    "missing entries": ({"population": lambda g, n: np.full((n, 2), np.nan)}, ValueError, "finite rows"),
    "cubes": ({"population": lambda g, n: np.zeros((n, 2, 2))}, ValueError, "3 dimensions"),
    "target": ({"target": [1.0]}, ValueError, "target: expected 2 finite numbers"),
    "columns": ({"columns": ["a"]}, ValueError, "columns: expected 2 names"),
    "builder": ({"model_builder": {"near": "normal(0, 1)"}}, TypeError, "Priors are the second argument"),
    "builder with epsilon": ({"model_builder": build}, ValueError, "epsilon, directions: with a model_builder"),
    "n": ({"n": 0}, ValueError, "n: expected an integer >= 1"),
    "hierarchy": (
        {"model_builder": lambda rows, prior: hierarchy(rows), "epsilon": None, "directions": None},
        dpd.NoExactSamplerError,
        "depends on another random variable",
    ),
}


def hierarchy(rows):
    with pm.Model() as model:
        location = pm.Normal("location", pm.Normal("mu", 0, 1), 1, shape=2)
        dpd.exponential_mechanism("median", location, rows, directions="axes", epsilon=1.0)
    return model


@pytest.mark.parametrize(("options", "error", "match"), BAD.values(), ids=BAD)
def test_bad_arguments_are_refused(options, error, match):
    with pytest.raises(error, match=match):
        grid(**({"priors": {"near": "normal(0, 1)"}} | options))
