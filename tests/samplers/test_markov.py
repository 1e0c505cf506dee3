"""Markov chains against exact draws and quadrature, on the same models.

Means and standard deviations must agree within 4 Monte Carlo errors. Draws are seeded: a test passes or fails for good.
"""

import arviz as az
import numpy as np
import pymc as pm
import pytest

import pymc_dpdepth as dpd
from pymc_dpdepth.mechanism import read_mechanisms
from pymc_dpdepth.samplers.markov import choose_markov

ERRORS = 4.0
EXACT_DRAWS = 20_000


def model_of(rows, depth, epsilon, sigma=3.0):
    with pm.Model() as model:
        location = pm.Normal("location", 0.0, sigma, shape=rows.shape[1])
        dpd.exponential_mechanism("median", location, rows, depth=depth, epsilon=epsilon)
    return model


def moments_with_errors(draws):
    """Return mean, standard deviation and their Monte Carlo errors; draws of shape (chain, draw, d)."""
    flat = draws.reshape(-1, draws.shape[-1])
    mean, sd = flat.mean(axis=0), flat.std(axis=0)
    tree = az.from_dict({"posterior": {"x": draws}})
    errors = [az.mcse(tree, method=method)["x"].values for method in ("mean", "sd")]
    return np.array([mean, sd]), np.array(errors)


def assert_same_moments(draws, exact_moments, exact_errors=0.0):
    moments, errors = moments_with_errors(draws)
    distance = np.abs(moments - exact_moments) / np.hypot(errors, exact_errors)
    assert (distance < ERRORS).all(), distance


@pytest.fixture(scope="module")
def rows():
    # Continuous rows: no atoms, which exact draws on the grid would find and chains on the line would not.
    return np.random.default_rng(3).normal(1.0, 1.0, size=(30, 2))


@pytest.mark.filterwarnings("ignore:random_seed makes this draw:pymc_dpdepth.PrivacyLeakWarning")
@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("sampler", ["smc", "slice"])
def test_smc_and_slice_on_a_step_depth(rows, d, sampler):
    model = model_of(rows[:, :d], dpd.Halfspace(), epsilon=1.0)
    with model:
        exact = dpd.sample_exact(EXACT_DRAWS, random_seed=1).posterior["location"].values
        quiet = {
            "chains": 2,
            "cores": 1,
            "progressbar": False,
            "random_seed": [11, 12],
            "compute_convergence_checks": False,
        }
        if sampler == "smc":
            idata = pm.sample_smc(draws=2000, **quiet)
        else:
            idata = pm.sample(draws=2000, tune=300, step=pm.Slice(), **quiet)
    assert_same_moments(idata.posterior["location"].values, *moments_with_errors(exact))


def quadrature(rows, depth, epsilon, sigma=3.0, points=301, reach=5.0):
    """Return mean and standard deviation of each coordinate by the midpoint rule on prior +- reach sds."""
    n, d = rows.shape
    edges = np.linspace(-reach * sigma, reach * sigma, points + 1)
    axis = 0.5 * (edges[1:] + edges[:-1])
    grid = np.stack(np.meshgrid(*[axis] * d, indexing="ij"), axis=-1).reshape(-1, d)
    iqr = 1.3489795003921634 * sigma  # of a normal prior: what rows and location are standardised by
    beta = epsilon / (2 * depth.sensitivity(n, d))
    log_density = beta * depth.evaluate(grid / iqr, rows / iqr) - (grid**2).sum(axis=1) / (2 * sigma**2)
    weight = np.exp(log_density - log_density.max())
    weight /= weight.sum()
    mean = weight @ grid
    return np.array([mean, np.sqrt(weight @ (grid - mean) ** 2)])


@pytest.mark.parametrize("d", [1, 2])
def test_nuts_on_the_smoothed_depth(rows, d):
    depth = dpd.IntegratedDual(smoothing=5.0, directions=dpd.Directions.orthonormal(d, seed=1))
    epsilon = 4.0
    with model_of(rows[:, :d], depth, epsilon):
        idata = pm.sample(
            draws=1500,
            tune=500,
            chains=2,
            cores=1,
            nuts_sampler="pymc",
            progressbar=False,
            random_seed=[5, 6],
            compute_convergence_checks=False,
        )
    assert_same_moments(idata.posterior["location"].values, quadrature(rows[:, :d], depth, epsilon))


def test_a_wrong_beta_is_seen(rows):
    # The same comparison with epsilon off by a factor of two fails: it can.
    depth = dpd.IntegratedDual(smoothing=5.0)
    right, wrong = (quadrature(rows[:, :1], depth, epsilon) for epsilon in (4.0, 8.0))
    generator = np.random.default_rng(0)
    draws = generator.normal(right[0], right[1], size=(2, 1500, 1))
    assert_same_moments(draws, right)
    with pytest.raises(AssertionError):
        assert_same_moments(draws, wrong)


def test_auto_takes_nuts_for_smooth_depths_and_smc_for_steps(rows):
    for depth, expected in ((dpd.IntegratedDual(smoothing=5.0), "nuts"), (dpd.Halfspace(), "smc")):
        mechanisms = read_mechanisms(model_of(rows, depth, 1.0))
        assert choose_markov(mechanisms) == expected
        assert choose_markov(mechanisms, "slice") == "slice"
