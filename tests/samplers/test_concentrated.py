"""Concentrated release: its cost, its law, and the choice between it and the joint draw."""

import math
from fractions import Fraction

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dpdepth as dpd
from pymc_dpdepth.mechanism import set_up
from pymc_dpdepth.privacy.composition import bounded_range_rho, epsilon_of_rho, rho_of_budget, rho_to_epsilon
from pymc_dpdepth.randomness import SeededBits
from pymc_dpdepth.samplers.concentrated import cost_of, plan_concentrated, prefers_concentrated, read_budget
from pymc_dpdepth.samplers.exact import NoExactSamplerError, plan_exact
from pymc_dpdepth.samplers.weights import WeightBase

ROWS = np.random.default_rng(0).normal(size=(50, 6))
PRIOR = "normal(0, 5)"


def plans(budget, d, n=50, depth="halfspace", m=1, prior=None):
    prior = pm.Normal.dist(0, 5, shape=d) if prior is None else prior
    settings, product, _ = set_up(
        "m",
        prior,
        np.zeros((n, d)),
        depth=depth,
        directions="axes",
        epsilon=budget.joint_epsilon,
        max_rows_per_unit=m,
    )
    return plan_exact(settings, product), plan_concentrated(settings, product, budget.rho)


@pytest.mark.parametrize("d", [1, 2, 7, 100])
@pytest.mark.parametrize("rho", [1e-4, 0.123, 3.0])
def test_the_draws_cost_rho_and_hardly_less(d, rho):
    budget = read_budget(None, 0.0, rho)
    joint, concentrated = plans(budget, d)
    cost = cost_of(concentrated, budget)
    assert len(cost.bounded_range) == d and len(set(cost.bounded_range)) == 1
    # k - 1 - ln k in its own words, with log1p-free arithmetic good to 1e-9 at these sizes.
    (epsilon,) = set(cost.bounded_range)
    k = epsilon / math.expm1(epsilon)
    assert d * (k - 1 - math.log(k)) == pytest.approx(rho, rel=1e-5)
    assert cost.rho <= rho and cost.rho == pytest.approx(rho, rel=1e-12)
    assert (cost.epsilon, cost.delta) == (pytest.approx(d * epsilon), 0.0)
    alone = cost_of(joint, budget)
    assert alone.rho <= rho and alone.bounded_range == (budget.joint_epsilon,)
    assert bounded_range_rho(budget.joint_epsilon) == pytest.approx(rho, rel=1e-12)


def test_epsilon_and_delta_are_met():
    budget = read_budget(2.0, 1e-6, None)
    joint, concentrated = plans(budget, 20)
    cost = cost_of(concentrated, budget)
    assert (cost.epsilon, cost.delta) == (2.0, 1e-6)
    assert rho_to_epsilon(cost.rho, 1e-6) <= 2.0
    assert rho_to_epsilon(cost.rho * 1.001, 1e-6) > 2.0
    assert cost_of(joint, budget) == type(cost)(2.0, 0.0, None, (2.0,))


def test_few_directions_get_their_share_of_a_pure_epsilon():
    for d in (1, 2, 3, 100):
        release = dpd.private_median(
            np.zeros((50, d)), epsilon=1.0, delta=1e-6, prior=PRIOR, sampler="concentrated", directions="axes"
        )
        assert (release.epsilon, release.delta) == (1.0, 1e-6)
        one = release.mechanisms[0]["direction_epsilon"]
        assert one >= epsilon_of_rho(rho_of_budget(1.0, 1e-6), d)
        pure = d * Fraction(repr(one))
        assert (pure <= 1) if d < 10 else (pure > 1)
        if d < 10:
            assert one == pytest.approx(1 / d, rel=1e-15)
        assert dpd.Release.from_dict(release.to_dict()) == release


def test_several_rows_of_a_person_cost_more_than_their_number():
    budget = read_budget(2.0, 1e-6, None)
    _, concentrated = plans(budget, 20, m=3)
    cost = cost_of(concentrated, budget)
    (one,) = set(concentrated.draw_epsilons)
    assert cost.bounded_range == (pytest.approx(3 * one),) * 20
    assert cost.rho == pytest.approx(9 * rho_of_budget(2.0, 1e-6), rel=1e-2)  # about the square, for small epsilon
    assert cost.epsilon == rho_to_epsilon(cost.rho, 1e-6) > 6.0


@pytest.mark.parametrize("depth", ["halfspace", "integrated_rank_weighted", "integrated_dual"])
def test_each_direction_is_the_segment_law_at_its_own_epsilon(depth):
    budget = read_budget(None, 0.0, 0.3)
    _, concentrated = plans(budget, 4, depth=depth)
    counts = 50 if depth == "integrated_dual" else 1
    (epsilon,) = set(concentrated.draw_epsilons)
    # A row moves 1 count (n for the dual depth), and the density is exp(epsilon_1 D / (2 GS)).
    assert abs(concentrated.base.unit - Fraction(epsilon) / (2 * counts)) < Fraction(1, 2**50)
    assert concentrated.base == WeightBase.of(concentrated.base.unit)
    keys = np.sort(concentrated.frame.keys(ROWS[:, :4]), axis=1)
    law = concentrated._law(keys, concentrated.frame.floors())
    alone, product, _ = set_up("m", pm.Normal.dist(0, 5, shape=1), ROWS[:, :1], depth=depth, epsilon=epsilon)
    assert plan_exact(alone, product)._law(keys[:1], law.floors[:1]).base == law.base


def test_draws_of_directions_are_independent_of_each_other():
    budget = read_budget(None, 0.0, 0.5)
    _, concentrated = plans(budget, 2)
    draws = concentrated.draw(ROWS[:, :2], SeededBits(1), 4000)
    _, pvalue = stats.spearmanr(*draws.T)
    assert pvalue > 1e-7


def test_the_choice_looks_at_directions_and_budget_alone():
    for d, expected in ((1, False), (2, False), (3, True), (10, True)):
        assert prefers_concentrated(*plans(read_budget(None, 0.0, 0.123), d)) is expected
    # 3 directions at epsilon = 1 and a delta so small that composition pays too much for it
    assert not prefers_concentrated(*plans(read_budget(1.0, 1e-9, None), 3))
    assert prefers_concentrated(*plans(read_budget(1.0, 1e-9, None), 100))


def test_private_median_records_what_was_chosen():
    wide = dpd.private_median(ROWS, rho=0.2, prior=PRIOR)
    assert (wide.sampler, wide.guarantee, wide.delta) == ("concentrated", "exact", 0.0)
    (record,) = wide.mechanisms
    assert record["direction_epsilon"] == epsilon_of_rho(0.2, 6)
    assert record["epsilon"] == wide.epsilon == pytest.approx(6 * epsilon_of_rho(0.2, 6))
    assert wide.rho == pytest.approx(0.2) and wide.rho <= 0.2
    narrow = dpd.private_median(ROWS[:, :2], rho=0.2, prior=PRIOR, directions="axes")
    assert (narrow.sampler, narrow.mechanisms[0]["epsilon"]) == ("boxes", epsilon_of_rho(0.2))
    pair = dpd.private_median(ROWS, epsilon=3.0, delta=1e-6, prior=PRIOR)
    assert (pair.epsilon, pair.delta, pair.sampler) in ((3.0, 1e-6, "concentrated"), (3.0, 0.0, "boxes"))
    forced = dpd.private_median(ROWS, epsilon=3.0, delta=1e-6, prior=PRIOR, sampler="concentrated")
    assert (forced.epsilon, forced.delta, forced.sampler) == (3.0, 1e-6, "concentrated")
    assert dpd.Release.from_dict(forced.to_dict()) == forced
    joint = dpd.private_median(ROWS, epsilon=3.0, delta=1e-6, prior=PRIOR, sampler="boxes")
    assert (joint.epsilon, joint.delta, joint.rho) == (3.0, 0.0, None)
    rotated = dpd.private_median(
        ROWS, rho=0.2, prior=pm.Normal.dist(0, 5, shape=6), directions=dpd.Directions.orthonormal(6)
    )
    assert rotated.sampler == "concentrated"


def test_an_accountant_of_the_same_rho_is_used_up_exactly():
    with dpd.PrivacyAccountant(rho=0.2) as budget:
        dpd.private_median(ROWS, rho=0.2, prior=PRIOR, ledger=budget)
        with pytest.raises(dpd.BudgetExceededError):
            dpd.private_median(ROWS, rho=1e-9, prior=PRIOR, ledger=budget)


@pytest.mark.parametrize(
    ("budget", "match"),
    [
        ({}, "neither"),
        ({"epsilon": 1.0, "rho": 0.1}, "both"),
        ({"rho": 0.1, "delta": 1e-6}, "delta"),
        ({"rho": 0.0}, "rho"),
        ({"rho": math.nan}, "rho"),
        ({"rho": -1}, "rho"),
        ({"rho": 10**400}, "rho must be finite and above 0; got an integer beyond all doubles"),
        ({"rho": 1e-300}, "^rho: expected a cost .* got rho=1e-300. Useful"),
        ({"rho": 1e300}, r"^rho: expected a cost .* got rho=1e\+300"),
        ({"epsilon": 1.0, "delta": 10**400}, "^delta: expected a finite number"),
        ({"epsilon": 1.0, "delta": 1.0}, "delta"),
        ({"epsilon": 1.0, "delta": -1e-9}, "delta"),
        ({"epsilon": 1.0, "delta": math.nan}, "delta"),
        ({"epsilon": 1.0, "sampler": "concentrated"}, "delta=1e-6"),
    ],
)
def test_budgets_that_are_refused_before_the_charge(budget, match):
    with dpd.PrivacyAccountant(epsilon=100.0, delta=0.5) as ledger:
        with pytest.raises(ValueError, match=match):
            dpd.private_median(ROWS, **budget, prior=PRIOR, ledger=ledger)
        assert ledger.charges == () or len(ledger.charges) == 0


def test_a_large_delta_warns():
    with pytest.warns(dpd.PrivacyLeakWarning, match="1/50"):
        dpd.private_median(ROWS, epsilon=1.0, delta=0.02, prior=PRIOR)


def test_no_frame_is_the_same_refusal_as_for_the_joint_draw():
    with pytest.raises(NoExactSamplerError, match="normal priors"):
        dpd.private_median(
            ROWS, rho=0.1, prior="uniform(-5, 5)", directions=dpd.Directions.orthonormal(6), sampler="concentrated"
        )
