"""Monte Carlo error of quantiles, where particles share ancestors."""

import numpy as np
import pytest
from scipy import stats

from pymc_dpdepth.downstream.stability import errors_of_ends, families_of, largest_r_hat, warn_of_unstable_ends

TAILS = (0.025, 0.975)


def draws(generator, families, copies):
    """Return two chains, in each of which every ancestor has `copies` equal particles."""
    values = generator.standard_normal((2, families, 1)).repeat(copies, axis=1)
    return values, [np.arange(families).repeat(copies)] * 2


@pytest.mark.parametrize("copies", [1, 20])
def test_the_error_is_that_of_independent_families(copies):
    # The asymptotic standard error of a quantile of K independent values is sqrt(p (1 - p) / K) / f(q).
    generator, families = np.random.default_rng(3), 500
    errors = np.mean([errors_of_ends(*draws(generator, families, copies), TAILS) for _ in range(100)], axis=0)
    exact = np.sqrt(0.025 * 0.975 / (2 * families)) / stats.norm.pdf(stats.norm.ppf(0.025))
    np.testing.assert_allclose(errors, np.full((1, 2), exact), rtol=0.15)  # one error varies by 0.3; the mean by 0.03
    ends = [np.quantile(draws(generator, families, copies)[0], 0.975) for _ in range(400)]
    assert abs(np.std(ends) / exact - 1) < 0.2  # 4.5 times the 0.035 of a standard deviation of 400, and the bias


def test_families_that_have_moved_apart_count_as_many():
    generator = np.random.default_rng(4)
    values = generator.standard_normal((1, 4000, 1))
    apart = errors_of_ends(values, [np.arange(4000)], TAILS)
    mixed = errors_of_ends(values, [np.arange(4000) // 10], TAILS)
    np.testing.assert_allclose(mixed, apart, rtol=0.4)


def test_one_ancestor_tells_no_error():
    values = np.random.default_rng(4).standard_normal((1, 400, 1))
    assert np.all(np.isinf(errors_of_ends(values, [np.zeros(400, dtype=int)], TAILS)))
    family, effective = families_of([np.array([3, 3, 7, 7]), np.array([3, 3, 3, 3])])
    assert family.tolist() == [0, 0, 1, 1, 2, 2, 2, 2] and effective == pytest.approx(1 / (1 / 16 + 1 / 16 + 1 / 4))


def test_r_hat_sees_chains_that_differ():
    values = np.random.default_rng(5).standard_normal((2, 400, 2))
    assert largest_r_hat(values) < 1.03
    values[1, :, 1] += 1
    assert largest_r_hat(values) > 1.1
    assert np.isnan(largest_r_hat(values[:1]))


def test_warns_of_ends_above_a_tenth_of_the_width():
    intervals = np.array([[0.0, 1.0], [0.0, 10.0]])
    warn_of_unstable_ends(np.array([[0.09, 0.09], [0.9, 0.9]]), intervals, np.nan, 20.0)
    warn_of_unstable_ends(np.array([[0.09, 0.09], [0.9, 0.9]]), intervals, 1.04, 3.0)
    for errors, r_hat, ancestors in (([0.11, 0.01], np.nan, 90), ([0.01, 0.01], 1.06, 90), ([0.01, 0.01], np.nan, 19)):
        with pytest.warns(UserWarning, match="not stable"):
            warn_of_unstable_ends(np.array([errors, [0.1, 0.1]]), intervals, r_hat, ancestors)
