"""Audits of branch and bound and of concentrated releases, on worst-case neighbours; planted bugs are caught."""

import numpy as np
import pymc as pm
import pytest
from audits import TRIALS, attack
from test_sampler_audits import NORMAL, ROWS, UNIFORM, prior_of, worst_pair

import pymc_dpdepth as dpd
from pymc_dpdepth.mechanism import set_up
from pymc_dpdepth.randomness import SeededBits
from pymc_dpdepth.samplers.concentrated import plan_concentrated, read_budget
from pymc_dpdepth.samplers.dispatch import plan_draws
from pymc_dpdepth.samplers.weights import WeightBase

EPSILON = 1.5
AXES = dpd.Directions.axes(2)
#: Along axes the law is that of boxes and products, whose worst pair is known; the others get a far row that moves.
ALONG_AXES = {"halfspace": dpd.Halfspace(AXES), "rank-weighted": dpd.IntegratedRankWeighted(AXES)}
OTHERS = {
    "halfspace of 6 directions": dpd.Halfspace(directions=dpd.Directions.balanced(2, 6)),
    "halfspace over all directions": dpd.Halfspace(directions=None),
    "spatial": dpd.Spatial(),
    "smoothed dual": dpd.IntegratedDual(smoothing=5.0),
    "simplicial": dpd.Simplicial(),
}


def sampler_of(depth, prior, n):
    settings, product, _ = set_up("m", prior_of(prior, 2), np.zeros((n, 2)), depth=depth, epsilon=EPSILON)
    plan = plan_draws(settings, product, None, "branch_and_bound")
    bits = SeededBits(5)

    def mechanism(rows, draws):
        return plan.draw(rows, bits, draws)

    return mechanism


def far_pair(n):
    far = np.tile([-20.0, -20.0], (n, 1))
    neighbour = far.copy()
    neighbour[0] = 20.0
    return far, neighbour


@pytest.mark.parametrize("name", ALONG_AXES)
def test_branch_and_bound_along_axes_passes_and_a_doubled_exponent_is_caught(name, monkeypatch):
    pair = worst_pair(ALONG_AXES[name], 2, UNIFORM)
    found = attack(sampler_of(ALONG_AXES[name], UNIFORM, ROWS), *pair)
    assert 0.5 < found.epsilon_lower_bound <= EPSILON
    original = WeightBase.of
    monkeypatch.setattr(WeightBase, "of", lambda unit: original(2 * unit))
    assert attack(sampler_of(ALONG_AXES[name], UNIFORM, ROWS), *pair, 2 * TRIALS).epsilon_lower_bound > EPSILON


@pytest.mark.parametrize("name", OTHERS)
def test_branch_and_bound_passes(name):
    for n in (1, 3, 6):
        found = attack(sampler_of(OTHERS[name], NORMAL, n), *far_pair(n), TRIALS // 4)
        assert found.epsilon_lower_bound <= EPSILON


def concentrated(rho):
    budget = read_budget(None, 0.0, rho)
    prior = pm.Uniform.dist(0, 1, shape=2)
    settings, product, _ = set_up(
        "m", prior, np.zeros((ROWS, 2)), depth=dpd.Halfspace(AXES), epsilon=budget.joint_epsilon
    )
    plan = plan_concentrated(settings, product, rho)
    bits = SeededBits(6)
    return sum(plan.draw_epsilons), lambda rows, draws: plan.draw(rows, bits, draws)


def test_concentrated_releases_pass_at_the_sum_of_their_draws():
    pair = worst_pair(dpd.Halfspace(AXES), 2, UNIFORM)
    pure, mechanism = concentrated(0.1)
    # The worst pair moves both directions at once, so the loss comes near the sum.
    assert 0.4 * pure < attack(mechanism, *pair).epsilon_lower_bound <= pure
    twice, mechanism = concentrated(0.4)  # rho is about 2 epsilon_1^2 / 8
    assert twice == pytest.approx(2 * pure, rel=0.01)
    assert attack(mechanism, *pair, 2 * TRIALS).epsilon_lower_bound > pure
