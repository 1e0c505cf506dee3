"""The law of the bootstrap against tables of simulated rows with noise, without any code in common."""

import math

import numpy as np
import pytest
from extrema_cases import BOUNDS, normal_rows, simulated_sums

from pymc_dpdepth.extrema import Gaussian
from pymc_dpdepth.extrema.bootstrap import bootstrap_estimates, point_estimates
from pymc_dpdepth.extrema.noisy_sums import Folds
from pymc_dpdepth.randomness import SeededBits

R = 20_000
EPSILONS = {"mean": 6.0, "covariance": 30.0}


def distance(first, second):
    """Return the largest distance of two empirical distribution functions."""
    both = np.sort(np.concatenate([first, second]))
    shares = [np.searchsorted(np.sort(values), both, side="right") / len(values) for values in (first, second)]
    return np.abs(shares[0] - shares[1]).max()


# Each of the two empirical functions is further than sqrt(log(2 / p) / (2 R)) from its law with probability below p
# (Dvoretzky, Kiefer and Wolfowitz; Massart 1990), here 1e-9; 6 comparisons in each test.
FURTHEST = 2 * math.sqrt(math.log(2 / 1e-9) / (2 * R))


def tables_of_rows(mean, covariance, n, scale, generator, copies=1):
    """Return means of n normal rows each, plus Laplace noise, by simulating all rows."""
    rows = generator.multivariate_normal(mean, covariance, (R, n))
    noise = generator.laplace(0.0, scale, (copies, R, len(mean))).sum(axis=0)
    return rows.mean(axis=1) + noise / n


@pytest.mark.parametrize("copies", [1, 4])
def test_replicates_have_the_law_of_estimates_from_new_tables(copies):
    n = 24
    family, generator = Gaussian(BOUNDS), np.random.default_rng(1)
    folds = Folds.whole(n) if copies == 1 else Folds.at_random(n, copies, SeededBits(2))
    rows = normal_rows(n) @ np.array([[1.0, 0.5, 0], [0, 1, 0], [0, 0, 0.5]])
    sums = simulated_sums(family, rows, EPSILONS, generator, folds).pool()
    model = family.model(sums.sums, n, sums.deviations)
    drawn = bootstrap_estimates(family, sums, R, generator)
    scale = 24.0 / EPSILONS["mean"]  # D1 / epsilon: three ranges of 8
    expected = tables_of_rows(point_estimates(family, sums), model["covariance"], n, scale, generator, copies)
    # Of single parameters, of their maximum, and of sums and differences, where the covariance shows.
    looks = [lambda b, j=j: b[:, j] for j in range(3)] + [
        lambda b: b.max(axis=1),
        lambda b: b[:, 0] - b[:, 1],
        lambda b: b.sum(axis=1),
    ]
    assert max(distance(look(drawn), look(expected)) for look in looks) < FURTHEST
    without = tables_of_rows(point_estimates(family, sums), model["covariance"], n, 1e-9, generator)
    assert max(distance(look(drawn), look(without)) for look in looks) > FURTHEST


def test_sizes_and_noises_can_differ_from_those_of_the_sums():
    family, generator = Gaussian(BOUNDS), np.random.default_rng(1)
    sums = simulated_sums(family, normal_rows(60), EPSILONS, generator).pool()
    model = family.model(sums.sums, 60, sums.deviations)
    drawn = bootstrap_estimates(family, sums, R, generator, n=12, copies=3)
    expected = tables_of_rows(point_estimates(family, sums), model["covariance"], 12, 4.0, generator, 3)
    assert distance(drawn.max(axis=1), expected.max(axis=1)) < FURTHEST


class Odd(Gaussian):
    """Gaussian with one method in the place of its own."""

    def __init__(self, method, function):
        super().__init__(BOUNDS)
        setattr(self, method, function)


TRUE = Gaussian(BOUNDS)


@pytest.mark.parametrize(
    ("method", "function", "words"),
    [
        ("simulate", lambda model, n, r, _: {"mean": np.zeros(3)}, r"\(7, 3\)"),  # one table for all replicates
        ("simulate", lambda model, n, r, _: {"mean": np.zeros((r, 1))}, r"\(7, 3\)"),
        ("simulate", lambda model, n, r, _: {"mean": np.zeros((r // 2, 3))}, r"\(7, 3\)"),
        ("simulate", lambda model, n, r, _: {"mean": np.zeros((r, 3), dtype=complex)}, "real numbers"),
        ("simulate", lambda model, n, r, _: {}, "'mean'"),
        ("simulate", lambda model, n, r, _: {"covariance": np.zeros((r, 6))}, "'mean'"),
        ("simulate", lambda model, n, r, _: {"mean": np.zeros((r, 3)), "q": np.zeros((r, 3))}, "'q'"),
        ("simulate", lambda model, n, r, _: np.zeros((r, 3)), "dict"),
        (
            "simulate",
            lambda model, n, r, _: {"mean": np.zeros((r, 3)), "covariance": np.zeros((r, 6))},
            "reads",
        ),
        ("estimates", lambda sums, n, _: sums["mean"][..., :1] if sums["mean"].ndim > 1 else sums["mean"], r"\(7, 3\)"),
        ("estimates", lambda sums, n, _: sums["mean"].mean(axis=-1), "parameters"),
        ("estimates", lambda sums, n, _: sums["mean"].reshape(-1, 3)[0], r"\(7, 3\)"),
        ("estimates", lambda sums, n, _: sums["mean"] * 1j, "real numbers"),
        ("estimates", lambda sums, n, _: sums["mean"] * np.nan, "floor"),
    ],
)
def test_shapes_of_replicates_are_checked(method, function, words):
    """Broadcasting would make replicates of the wrong law of them, without a word."""
    sums = simulated_sums(TRUE, normal_rows(30), EPSILONS, np.random.default_rng(1)).pool()
    with pytest.raises((ValueError, TypeError, FloatingPointError), match=words):
        bootstrap_estimates(Odd(method, function), sums, 7, np.random.default_rng(2))


def test_pooled_sums_know_their_rows_and_noises():
    family, generator = Gaussian(BOUNDS), np.random.default_rng(1)
    rows = normal_rows(23)
    sums = simulated_sums(family, rows, EPSILONS, generator, Folds.at_random(23, 4, SeededBits(1)))
    some = sums.pool([0, 3])
    assert (some.n, some.copies) == (6 + 5, 2)
    one = sums.released["mean"]
    assert some.sums["mean"] == pytest.approx(one.sums[0] + one.sums[3])
    # Laplace noise of scale b has standard deviation sqrt(2) b; the discrete law on so fine a grid as well.
    assert some.deviations["mean"] == pytest.approx(math.sqrt(2 * 2) * 4.0, rel=1e-9)
    with pytest.raises(ValueError, match="read-only"):
        some.sums["mean"][0] = 1.0
