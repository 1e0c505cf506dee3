"""Errors on synthetic rows, against what they must tend to, and their own definition."""

import numpy as np
import pymc as pm
import pytest

import pymc_dpdepth as dpd
from pymc_dpdepth.synthetic_errors import REFERENCE_ROWS, error_grid

SETTINGS = {"prior": "normal([1, 0], [3, 2])", "directions": "axes", "progressbar": False, "random_seed": 1}


def normal(generator, n):
    return generator.normal([0, 1], [1, 2], size=(n, 2))


def test_a_small_epsilon_draws_from_the_prior_and_a_large_one_the_median():
    errors = error_grid(normal, n=[31, 201], epsilon=[1e-6, 1000.0], **SETTINGS, replicates=40, draws=10)
    spread, target = errors["spread"].values, errors["target"].values
    # Quantiles of 100,000 rows: a standard error of the median is 1.25 / 316 = .004 deviations, of the range .005.
    assert np.abs(target - [0, 1]).max() < 0.05 and np.abs(spread / 1.349 - [1, 2]).max() < 0.06
    expected = np.sqrt(((np.array([3, 2]) ** 2 + (np.array([1, 0]) - target) ** 2) / spread**2).sum())
    few = errors.sel(epsilon=1e-6)
    # A true mean square within 6 standard errors fails in about 1 of 10^8; the standard error is itself an estimate.
    assert (np.abs(few["distance_rms"] - expected) < 6 * few["standard_error"]).all()
    # At epsilon = 1000 the draw lies between the two middle rows, as the non-private median does.
    many = errors.sel(epsilon=1000.0)
    np.testing.assert_allclose(many["distance_rms"], errors["nonprivate_rms"], rtol=0.2)
    assert errors.attrs == {"contents": "synthetic rows alone", "replicates": 40}


def test_the_numbers_are_what_they_are_said_to_be():
    tables = []

    def recorded(generator, n):
        tables.append(normal(generator, n))
        return tables[-1]

    options = SETTINGS | {"replicates": 5, "target": [0.5, 0.5]}
    errors = error_grid(recorded, n=[50, 20, 50], epsilon=[2.0, 1.0], **options)
    assert errors["n"].values.tolist() == [20, 50] and errors["epsilon"].values.tolist() == [1.0, 2.0]
    reference, *rest = tables
    assert len(reference) == REFERENCE_ROWS and [len(t) for t in rest] == [20] * 10 + [50] * 10
    for first in (0, 10):  # the same tables for both epsilons
        assert all(
            np.array_equal(a, b) for a, b in zip(rest[first : first + 5], rest[first + 5 : first + 10], strict=True)
        )
    quartiles = np.quantile(reference, [0.25, 0.75], axis=0)
    np.testing.assert_allclose(errors["spread"], quartiles[1] - quartiles[0])
    medians = np.array([np.median(t, axis=0) for t in rest[:5]])
    distances = (((medians - 0.5) / errors["spread"].values) ** 2).sum(axis=1)
    np.testing.assert_allclose(errors["nonprivate_rms"].sel(n=20), np.sqrt(distances.mean()))
    squares = ((errors["rmse"] / errors["spread"]) ** 2).sum("coordinate")
    np.testing.assert_allclose(errors["distance_rms"] ** 2, squares)
    again = error_grid(normal, n=[20, 50], epsilon=[1.0, 2.0], **options)
    assert errors.equals(again)


def test_distributions_and_other_depths():
    population = pm.MvNormal.dist([0, 1], np.eye(2))
    options = SETTINGS | {"directions": None, "depth": dpd.Spatial(), "replicates": 2}
    errors = error_grid(population, n=40, epsilon=3, columns=["a", "b"], **options)
    assert errors["coordinate"].values.tolist() == ["a", "b"] and errors["distance_rms"].shape == (1, 1)
    assert np.abs(errors["target"] - [0, 1]).max() < 0.03  # 7 standard errors
    vector = error_grid(lambda g, n: g.normal(size=n), n=40, epsilon=3.0, prior="normal(0, 3)", replicates=2)
    assert vector.sizes["coordinate"] == 1


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n": [0]}, ValueError, "n"),
        ({"n": []}, ValueError, "n: expected one number or more"),
        ({"epsilon": "one"}, TypeError, "epsilon: expected a number"),
        ({"epsilon": [-1.0]}, ValueError, "epsilon"),
        ({"population": np.eye(2)}, TypeError, "never pass private ones"),
        ({"population": lambda g, n: g.normal(size=(3, 2))}, ValueError, r"expected 100,000 rows.*\(3, 2\)"),
        ({"replicates": 1}, ValueError, "replicates"),
        ({"target": [0.0]}, ValueError, "target: expected 2"),
        ({"depth": "projection"}, ValueError, "propose_test_release"),
    ],
)
def test_misuse_is_refused(arguments, error, message):
    good = {"population": normal, "n": 20, "epsilon": 1.0, "replicates": 2, **SETTINGS, "directions": None}
    with pytest.raises(error, match=message):
        error_grid(**(good | arguments))
