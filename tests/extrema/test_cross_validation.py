"""Choosing r: the criterion by hand, the variances by their formula, the choice."""

import math

import numpy as np
import pytest
from extrema_cases import BOUNDS, normal_rows, simulated_sums

import pymc_dpdepth as dpd
from pymc_dpdepth.extrema import Gaussian, cross_validation
from pymc_dpdepth.extrema.cross_validation import CrossValidation, cross_validate
from pymc_dpdepth.extrema.noisy_sums import Folds
from pymc_dpdepth.randomness import SeededBits

EPSILONS = {"mean": 2.0, "covariance": 3.0}
CANDIDATES = (0.05, 0.25, 0.45)


def folds_of(n=52, count=4, k=3, seed=1, mu=0.0):
    family = Gaussian(BOUNDS)
    folds = Folds.at_random(n, count, SeededBits(seed))
    return family, simulated_sums(family, normal_rows(n, k, mu=mu), EPSILONS, np.random.default_rng(seed), folds)


def test_variances_are_those_of_the_formula():
    """Sigma_jj / n_v + 2 (D1 / e1)^2 / n_v^2, with Sigma from all folds.

    A sample variance of R values has the relative error sqrt((kurtosis - 1) / R), at most sqrt(5 / R) for a sum of
    normal and Laplace variables; 6 of them for R = 40,000 are .067.
    """
    family, folds = folds_of(n=50)
    found = cross_validation._variances(family, folds, 40_000, np.random.default_rng(3))
    assert set(found) == {12, 13} == set(folds.rows)
    everything = folds.pool()
    covariance = family.model(everything.sums, everything.n, everything.deviations)["covariance"]
    for size, variances in found.items():
        formula = np.diag(covariance) / size + 2 * (24.0 / 2.0) ** 2 / size**2
        assert variances == pytest.approx(formula, rel=0.067)
        assert np.abs(variances / (formula - np.diag(covariance) / size) - 1).min() > 0.0  # both terms are there
    # Where the rows' variance is the larger term, it shows.
    quiet = {name: 400.0 for name in EPSILONS}
    sums = simulated_sums(
        family, normal_rows(50), quiet, np.random.default_rng(1), Folds.at_random(50, 4, SeededBits(1))
    )
    pooled = sums.pool()
    spread = np.diag(family.model(pooled.sums, 50, pooled.deviations)["covariance"])
    variances = cross_validation._variances(family, sums, 40_000, np.random.default_rng(3))[12]
    assert variances == pytest.approx(spread / 12 + 2 * 0.06**2 / 144, rel=0.067)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_criterion_is_that_of_the_definition(sign):
    """H_j(r) in loops, with the same streams of random numbers for the simulated sums."""
    family, folds = folds_of(mu=[0.0, 0.3, 0.6])
    R, V = 50, 4
    found = cross_validate(family, folds, CANDIDATES, sign, R, np.random.default_rng(9).spawn(V + 1))
    *streams, last = np.random.default_rng(9).spawn(V + 1)
    mean, second = folds.released["mean"], folds.released["covariance"]

    def simulate(rows_n, copies, sums, n, stream):
        deviations = {
            name: math.sqrt(len(sums)) * math.sqrt(2) * one.noise.scale * one.grid
            for name, one in folds.released.items()
        }
        totals = {"mean": mean.sums[sums].sum(axis=0), "covariance": second.sums[sums].sum(axis=0)}
        model = family.model(totals, n, deviations)
        drawn = family.simulate(model, rows_n, R, stream)["mean"]
        for _ in range(copies):
            drawn = drawn + mean.noise.simulate((R, 3), stream) * mean.grid
        return sign * totals["mean"] / n, sign * drawn / rows_n

    n = sum(folds.rows)
    variances = simulate(13, 1, list(range(V)), n, last)[1].var(axis=0, ddof=1)
    expected = np.zeros((len(CANDIDATES), 3))
    for v in range(V):
        others = [u for u in range(V) if u != v]
        m = sum(folds.rows[u] for u in others)
        b, drawn = simulate(m, V - 1, others, m, streams[v])
        held_out = sign * mean.sums[v] / folds.rows[v]
        for i, r in enumerate(CANDIDATES):
            d = (1 - m ** (r - 0.5)) * (b.max() - b)
            reduced = b.max() - ((drawn + d).max(axis=1) - b.max()).mean()
            expected[i] += (reduced - held_out) ** 2 - variances
    assert found.criterion == pytest.approx(expected, rel=1e-9)
    assert found.choice == CANDIDATES[int(expected.min(axis=1).argmin())]


def test_the_choice_is_the_least_and_of_equal_ones_the_strongest():
    table = np.array([[5.0, 3.0], [4.0, 2.0], [2.0, 9.0]])
    assert CrossValidation((0.1, 0.2, 0.3), table).choice == 0.2


def test_candidates_come_in_any_order():
    family, folds = folds_of()
    streams = lambda: np.random.default_rng(9).spawn(5)  # noqa: E731
    one = cross_validate(family, folds, CANDIDATES, 1.0, 20, streams())
    other = cross_validate(family, folds, CANDIDATES[::-1], 1.0, 20, streams())
    assert one.candidates == other.candidates and (one.criterion == other.criterion).all()


def test_the_interval_uses_the_r_that_was_chosen():
    rows = normal_rows(400)
    ci = dpd.extrema_interval(rows, family=Gaussian(BOUNDS), epsilon=5.0, correction="cv", replicates=99)
    assert ci.correction_choice == "cv" and ci.correction == ci.cross_validation.choice
    assert ci.cross_validation.candidates == cross_validation.CANDIDATES
    fixed = ci.recompute(correction=ci.correction)
    assert (fixed.lower, fixed.correction_choice, fixed.cross_validation) == (ci.lower, "fixed", None)
    # The main bootstrap is the same whether or not r was chosen by folds.
    assert (
        fixed.recompute(bootstrap_seed=3).bootstrap_estimates == ci.recompute(bootstrap_seed=3).bootstrap_estimates
    ).all()
    again = fixed.recompute(correction="cv")
    assert again == ci
