"""The tilted laws of counts against enumeration in exact or log arithmetic."""

import itertools

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from pymc_dpdepth.downstream.counts import box_counts, chain_counts, log_factorials

DRAWS = 20_000


def chain_law(shares, factors):
    """Return all chains of counts and their log weights: multinomial cells times factors."""
    k, n = len(shares), factors.shape[1] - 1
    cells = np.diff(np.concatenate([[0.0], shares, [1.0]]))
    chains = [c for c in itertools.product(range(n + 1), repeat=k) if all(np.diff(c) >= 0)]
    sizes = [np.diff([0, *chain, n]) for chain in chains]
    logs = [stats.multinomial.logpmf(size, n, cells) for size in sizes]
    return chains, np.array(logs) + [sum(factors[i, c] for i, c in enumerate(chain)) for chain in chains]


def box_law(shares, rate, n):
    """Return all pairs of counts and their log weights: independent binomials times a^(least depth - n // 2)."""
    pairs = list(itertools.product(range(n + 1), repeat=len(shares)))
    logs = [
        sum(stats.binom.logpmf(c, n, p) for c, p in zip(pair, shares, strict=True))
        + rate * (min(min(c, n - c) for c in pair) - n // 2)
        for pair in pairs
    ]
    return pairs, np.array(logs)


def fits(drawn, states, logs):
    """Return the p-value of a chi-square test of draws; states of few expected draws are put together."""
    expected = DRAWS * np.exp(logs - logsumexp(logs))
    places = {state: i for i, state in enumerate(states)}
    observed = np.bincount([places[tuple(row)] for row in drawn.tolist()], minlength=len(states))
    few = expected < 10
    observed = np.append(observed[~few], observed[few].sum())
    expected = np.append(expected[~few], expected[few].sum())
    used = expected > 1e-6
    return stats.chisquare(observed[used], expected[used] * observed.sum() / expected[used].sum()).pvalue


@pytest.mark.parametrize("n", [1, 2, 7])
@pytest.mark.parametrize("shares", [[0.3], [0.45, 0.8], [1e-4, 0.5, 0.999]])
def test_chains_of_counts_have_their_law(n, shares):
    generator = np.random.default_rng([n, len(shares)])
    factors = generator.normal(0, 2, size=(len(shares), n + 1))
    chains, logs = chain_law(shares, factors)
    shares = np.array([shares])
    uniforms = generator.random((1, DRAWS, shares.shape[1]))
    total, counts = chain_counts(shares, 1 - shares, factors, log_factorials(n), uniforms)
    # States below e^-20 of a point's largest are left out: at most k (n + 1) e^-20 = 5e-8.
    assert total[0] == pytest.approx(logsumexp(logs), abs=1e-7)
    # Nine settings here and five below: 1e-4 in each is 1.4e-3 together.
    assert fits(counts[0], chains, logs) > 1e-4


@pytest.mark.parametrize(
    ("n", "shares"), [(1, [0.3]), (6, [0.5, 0.2]), (7, [0.4, 0.9]), (4, [0.1, 0.5, 0.6]), (7, [0.5])]
)
def test_counts_of_coupled_columns_have_their_law(n, shares):
    pairs, logs = box_law(shares, 0.7, n)
    uniforms = np.random.default_rng(n).random((1, DRAWS, len(shares) + 1))
    shares = np.array([shares])
    total, counts = box_counts(shares, 1 - shares, 0.7, log_factorials(n), uniforms)
    assert total[0] == pytest.approx(logsumexp(logs), abs=1e-12)
    assert fits(counts[0], pairs, logs) > 1e-4


def test_parameters_far_from_the_release_keep_a_finite_likelihood():
    # The middle has a probability near 1e-2000 here, below all doubles.
    n, share, rate = 1000, 1e-6, 3.0
    counts = np.arange(n + 1)
    logs = stats.binom.logpmf(counts, n, share) + rate * (np.minimum(counts, n - counts) - n // 2)
    shares, uniforms = np.full((1, 1), share), np.full((1, 1, 2), 0.5)
    total, _ = box_counts(shares, 1 - shares, rate, log_factorials(n), uniforms)
    assert total[0] == pytest.approx(logsumexp(logs), rel=1e-9)


def test_points_whose_likely_counts_contradict_one_another_have_a_finite_likelihood():
    # Each point's factor insists on a count, 40 below the first and 10 below the second, in the wrong order.
    n = 50
    factors = np.full((2, n + 1), -60.0)
    factors[0, 40] = factors[1, 10] = 0.0
    shares = np.array([[0.4, 0.6]])
    total, counts = chain_counts(shares, 1 - shares, factors, log_factorials(n), np.full((1, 1, 2), 0.5))
    assert -200 < total[0] < -60  # one of the two is missed
    assert counts[0, 0, 0] <= counts[0, 0, 1]
