"""The estimate of the likelihood against plain means of the mechanism's density over simulated tables."""

import dataclasses

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dpdepth as dpd
from pymc_dpdepth.downstream.likelihood import Randomness, log_likelihood_of, tables_of
from pymc_dpdepth.downstream.observations import read_release
from pymc_dpdepth.downstream.population import read_population

N, TABLES, REPLICATES = 40, 10_000, 2000
# Errors are compared in standard errors of the plain mean; there are 24 comparisons, and |z| > 4.5 has a probability
# below 1e-5. The estimate's own error, from REPLICATES tables and without the sharp factor, is allowed for by 0.05.
LARGEST_Z, OWN = 4.5, 0.05


def population(d):
    with pm.Model() as model:
        center = pm.Normal("center", 0, 5, shape=d)
        spread = pm.HalfNormal("spread", 2)
        pm.Normal("row", center, spread, shape=d)
    return read_population(model, "row")


@pytest.fixture(scope="module")
def populations():
    return {d: population(d) for d in (1, 2)}


@pytest.fixture(scope="module")
def data():
    return np.random.default_rng(7).normal([1.0, -1.0], 1.0, size=(N, 2))


def median(rows, seed, **options):
    with pytest.warns(dpd.PrivacyLeakWarning):
        return dpd.private_median(rows, prior="normal(0, 3)", directions="axes", random_seed=seed, **options)


def depth_counts(rows, values, dual):
    """Return the columns' counts of depth at values, and those of the gaps between sorted rows."""
    below = (rows < values).sum(axis=1)
    gaps = np.arange(N + 1)
    count = (lambda c: c * (N - c)) if dual else (lambda c: np.minimum(c, N - c))
    return count(below), count(gaps)


def density(rows, release, dual=False):
    """Return the mechanism's density at the released value over its prior's, for tables (TABLES, N, d)."""
    value, d = release.value.values, rows.shape[2]
    ends = stats.norm.cdf(np.sort(rows, axis=1), 0, 3)
    ends = np.concatenate([np.zeros((len(rows), 1, d)), ends, np.ones((len(rows), 1, d))], axis=1)
    masses = np.diff(ends, axis=1)
    counts, gaps = depth_counts(rows, value, dual)
    epsilon = release.mechanisms[0]["realised_epsilon"]
    if dual or d == 1:
        each = np.exp(epsilon / d / (2 * (N if dual else 1)) * counts)
        weights = np.exp(epsilon / d / (2 * (N if dual else 1)) * gaps)
        return np.prod(each / np.einsum("tgd,g->td", masses, weights), axis=1)
    least = np.minimum(gaps[:, None], gaps[None, :])
    normaliser = np.einsum("tg,gh,th->t", masses[..., 0], np.exp(epsilon / 2 * least), masses[..., 1])
    return np.exp(epsilon / 2 * counts.min(axis=1)) / normaliser


def noise_density(rows, release):
    """Return the density of noisy depths of one column."""
    record, values = release.mechanisms[0], release.value.values
    product = np.ones(len(rows))
    for (point,), value in zip(record["points"], values, strict=True):
        below = (rows[..., 0] < point).sum(axis=1)
        product *= stats.laplace.pdf(value, np.minimum(below, N - below) / N, record["noise_scale"])
    return product


def compare(population, releases, of_rows, d):
    """Compare log likelihoods at four parameter values, up to one constant that the first fixes."""
    tables = tables_of([read_release(one) for one in releases], d, True)
    generator = np.random.default_rng(11)
    evaluate = log_likelihood_of(tables, population, Randomness(generator, REPLICATES))
    centers, spreads = [(1.0, -1.0), (1.3, -1.2), (0.7, -1.0), (1.0, -0.6)], [1.0, 0.8, 1.2, 2.0]
    places = np.array([[*center[:d], np.log(s)] for center, s in zip(centers, spreads, strict=True)])
    plain, errors = [], []
    for center, spread in zip(centers, spreads, strict=True):
        densities = of_rows(generator.normal(center[:d], spread, size=(TABLES, N, d)))
        plain.append(np.log(densities.mean()))
        errors.append(densities.std() / densities.mean() / np.sqrt(TABLES))
    gaps = evaluate(places) - plain
    errors = np.hypot(errors, errors[0])
    assert np.all(np.abs(gaps - gaps[0])[1:] < LARGEST_Z * errors[1:] + OWN), (gaps, errors)
    assert np.ptp(plain) > 10 * OWN  # the values differ by more than what is allowed


@pytest.mark.parametrize("depth", ["halfspace", "integrated_dual"])
@pytest.mark.parametrize("d", [1, 2])
def test_one_median(populations, data, depth, d):
    release = median(data[:, :d], 5, epsilon=2.0, depth=depth)
    compare(populations[d], [release], lambda rows: density(rows, release, depth == "integrated_dual"), d)


def test_two_medians_of_the_same_rows(populations, data):
    first, second = (median(data[:, :1], seed, epsilon=epsilon) for seed, epsilon in ((5, 2.0), (6, 0.5)))
    compare(populations[1], [first, second], lambda rows: density(rows, first) * density(rows, second), 1)


def test_a_median_and_depth_values_of_the_same_rows(populations, data):
    first = median(data[:, :1], 5, epsilon=2.0)
    with pytest.warns(dpd.PrivacyLeakWarning):
        second = dpd.private_depth([[2.0], [0.0]], data[:, :1], epsilon=2.0, clamp=False, random_seed=3)
    compare(populations[1], [second, first], lambda rows: density(rows, first) * noise_density(rows, second), 1)


def test_the_stand_in_is_close_to_the_estimate(populations, data):
    tables = tables_of([read_release(median(data[:, :1], 5, epsilon=2.0))], 1, True)
    places = np.array([[1.0, 0.0], [1.3, -0.2], [0.7, 0.2]])
    exact = log_likelihood_of(tables, populations[1], Randomness(np.random.default_rng(0), REPLICATES))(places)
    rough = log_likelihood_of(tables, populations[1], Randomness(None, 1))(places)
    assert np.ptp(exact - rough) < 0.2  # it only has to give a good effective share


def test_the_estimate_is_relative_to_releases_that_no_row_has_touched(data, populations):
    """Its mean over these is 1: over values drawn from the mechanism's prior, and over depths of a uniform count.

    So by Markov's inequality an estimate below c has at most probability c under the parameters it is taken at.
    """
    seen = read_release(median(data[:8, :1], 0, epsilon=3.0))
    places = np.array([[1.0, 0.0], [-2.0, 1.0], [4.0, -1.0]])
    shares = (np.arange(400) + 0.5) / 400
    logs = []
    for value in stats.norm.ppf(shares, 0, 3):
        tables = tables_of([dataclasses.replace(seen, values=np.array([value]))], 1, True)
        logs.append(log_likelihood_of(tables, populations[1], Randomness(np.random.default_rng(0), 200))(places))
    # 200 tables, the same random numbers for all values: a few percent; 400 values resolve the densities.
    np.testing.assert_allclose(np.exp(logs).mean(axis=0), 1.0, atol=0.1)
    with pytest.warns(dpd.PrivacyLeakWarning):
        depths = dpd.private_depth([[0.0], [2.0]], data[:, :1], epsilon=1.0, random_seed=1)
    (table,) = tables_of([read_release(depths)], 1, True)
    _, factors = table.columns[0]
    np.testing.assert_allclose(np.exp(factors).mean(axis=1), 1.0)
