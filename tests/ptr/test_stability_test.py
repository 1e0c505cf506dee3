import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from pymc_dpdepth.privacy.gaussian_calibration import gaussian_delta
from pymc_dpdepth.ptr.stability_test import PARTS, gaussian_cut, laplace_cut, read_budget, stability_test, unit_cost
from pymc_dpdepth.randomness import SeededBits

CASES = [(1.0, 2e-4), (1.0, 1e-6), (0.01, 1e-9), (0.3, 0.2), (20.0, 1e-12)]


def laplace_tail(h, scale):
    """Return P(N >= h) of discrete Laplace noise to 80 digits, from the sum of its probabilities."""
    with localcontext(prec=80):
        q = (-1 / Decimal(scale)).exp()
        return q**h / (1 - q) / ((1 + q) / (1 - q))  # (q^h + q^(h+1) + ...) / (1 + 2 (q + q^2 + ...))


@pytest.mark.parametrize("epsilon, delta", CASES)
def test_false_pass_of_laplace_noise_in_exact_arithmetic(epsilon, delta):
    test = stability_test("laplace", epsilon, 0.0, delta)
    assert laplace_tail(test.cut_parts, test.noise.scale) <= Decimal(delta)
    assert laplace_tail(test.cut_parts - 1, test.noise.scale) > Decimal(delta)  # no larger cut than needed
    # The formula of the docs, 1 + log(1 / (2 delta)) / epsilon, but for the grid.
    assert test.cut == pytest.approx(1 + math.log(1 / (2 * delta)) / epsilon, abs=4 / PARTS * (1 + 1 / epsilon))


@pytest.mark.parametrize("epsilon, delta", CASES)
def test_laplace_noise_of_the_test_spends_its_epsilon(epsilon, delta):
    test = stability_test("laplace", epsilon, 0.0, delta)
    # Log ratio of the discrete Laplace law for breakdowns that differ by 1, in units of 1 / PARTS.
    assert Fraction(PARTS) / Fraction(test.noise.scale) <= Fraction(epsilon)
    assert PARTS / test.noise.scale == pytest.approx(epsilon, rel=1e-9)
    assert (test.noise.epsilon, test.noise.delta, test.false_pass) == (epsilon, 0.0, delta)


@pytest.mark.parametrize("scale", [0.7, 3.0, 41.5])
@pytest.mark.parametrize("delta", [0.2, 1e-3, 1e-8])
def test_cuts_of_small_scales_by_summing_up(scale, delta):
    x = np.arange(-3000, 3001)
    for cut, weights in (
        (laplace_cut(scale, delta), np.exp(-np.abs(x) / scale)),
        (gaussian_cut(scale, delta), np.exp(-((x / scale) ** 2) / 2)),
    ):
        assert weights[x >= cut].sum() / weights.sum() <= delta * (1 + 1e-9)


@pytest.mark.parametrize("epsilon, delta", CASES)
def test_gaussian_test(epsilon, delta):
    from mpmath import mp, mpf, ncdf

    test = stability_test("gaussian", epsilon, delta, delta)
    with mp.workdps(40):
        tail = ncdf(-(mpf(test.cut_parts) - 1) / (mpf(test.noise.scale) * test.noise.refinement))
        assert tail <= mpf(delta)
    assert test.pass_probability(1) == pytest.approx(delta, rel=1e-3)
    assert gaussian_delta(epsilon, test.scale) <= delta


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_answers_have_the_stated_probabilities(noise):
    # 2000 answers at each breakdown. By Hoeffding a frequency is off by more than .055 with probability 2 exp(-2 * 2000
    # * .055^2) < 1.2e-5; 10 of them: 1.2e-4.
    test, bits = stability_test(noise, 1.0, 1e-2, 1e-2), SeededBits(1)
    for breakdown in range(1, 11, 2):
        answers = [test.passes(breakdown, bits) for _ in range(2000)]
        assert np.mean(answers) == pytest.approx(test.pass_probability(breakdown), abs=0.055)
    assert 0.1 < test.pass_probability(5) < 0.9


def test_certain_breakdown():
    for noise in ("laplace", "gaussian"):
        test = stability_test(noise, 0.5, 1e-6, 1e-6)
        place = test.certain_breakdown(1e-4)
        assert test.pass_probability(place) >= 1 - 1e-4 > test.pass_probability(place - 5)


def test_budgets():
    assert read_budget(2.0, 1e-6).test_epsilon == read_budget(2.0, 1e-6).release_epsilon == 1.0
    split = read_budget((0.1, 0.2), 1e-6)
    assert (split.test_epsilon, split.release_epsilon, split.epsilon) == (0.1, 0.2, 0.3)
    for epsilon in (0.0, -1.0, float("inf"), (1.0,), (1.0, 0.0), (1.0, 1.0, 1.0), 5e-324):
        with pytest.raises(ValueError, match="epsilon: expected"):
            read_budget(epsilon, 1e-6)
    for delta in (0.0, 0.5, 1.0, -0.1, float("nan")):
        with pytest.raises(ValueError, match="delta: expected"):
            read_budget(1.0, delta)


def test_cost_of_several_rows_by_steps_of_one():
    budget = read_budget((0.5, 0.7), 1e-6)
    assert unit_cost(budget, 1) == (1.2, 1e-6)
    epsilon, delta = unit_cost(budget, 4)
    assert epsilon == pytest.approx(4.8) and epsilon >= 4 * 1.2
    assert delta == pytest.approx(1e-6 * sum(math.exp(1.2 * i) for i in range(4)), rel=1e-12)
    with pytest.raises(ValueError, match="grows to"):
        unit_cost(budget, 40)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_answers_are_private_for_breakdowns_that_differ_by_one(noise):
    test, delta = stability_test(noise, 0.8, 1e-4, 1e-4), 1e-4 if noise == "gaussian" else 0.0
    passing = np.array([test.pass_probability(breakdown) for breakdown in range(1, 60)])
    for first, second in ((passing[1:], passing[:-1]), (passing[:-1], passing[1:])):
        for p, q in ((first, second), (1 - first, 1 - second)):
            assert (p <= math.exp(0.8) * q + delta + 1e-12).all()
    # The counterexample of the printed breakdown, 2 against 1000 on neighbours: no such inequality.
    assert test.pass_probability(1000) > math.exp(0.8) * test.pass_probability(2) + 1e-4
