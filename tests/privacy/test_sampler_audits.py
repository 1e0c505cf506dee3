"""Audits of the package's exact samplers: they pass, and bugs planted in them are caught."""

import math
from fractions import Fraction

import numpy as np
import planted_bugs as planted
import pymc as pm
import pytest
from audits import TRIALS, attack
from scipy import stats

import pymc_dpdepth as dpd
from pymc_dpdepth.depths.univariate import UnivariateDepth
from pymc_dpdepth.mechanism import set_up
from pymc_dpdepth.randomness import SeededBits
from pymc_dpdepth.samplers import boxes
from pymc_dpdepth.samplers.exact import EXACT_SAMPLERS, plan_exact
from pymc_dpdepth.samplers.weights import WeightBase

NORMAL, UNIFORM = "normal", "uniform"
ROTATED = dpd.Directions.orthonormal(2, seed=3)
#: Sampler, depth, columns, prior of each column. A new exact sampler adds a line.
SAMPLERS = [
    ("segments", dpd.Halfspace("axes"), 1, UNIFORM),
    ("segments", dpd.IntegratedRankWeighted(), 1, NORMAL),
    ("segments", dpd.IntegratedDual(), 1, UNIFORM),
    ("boxes", dpd.Halfspace("axes"), 2, UNIFORM),
    ("boxes", dpd.Halfspace(ROTATED), 2, NORMAL),
    ("products", dpd.IntegratedRankWeighted(), 2, UNIFORM),
    ("products", dpd.IntegratedDual(directions=ROTATED), 2, NORMAL),
]
EPSILONS = (0.5, 1.5, 4.0)
PRIOR_SD = 0.5
ROWS = 12  # the dual's largest step is (n - 1) / n^2, near its sensitivity 1/n only where n is not small


def prior_of(name, d):
    return pm.Uniform.dist(0, 1, shape=d) if name == UNIFORM else pm.Normal.dist(0, PRIOR_SD, shape=d)


def plan_of(depth, d, prior, n, epsilon):
    settings, product, _ = set_up("m", prior_of(prior, d), np.zeros((n, d)), depth=depth, epsilon=epsilon)
    return plan_exact(settings, product)


def sampler_of(plan, seed=0):
    """Return a plan's draws as a mechanism."""
    bits = SeededBits(seed)

    def mechanism(table, draws):
        return plan.draw(np.asarray(table), bits, draws)

    return mechanism


def worst_pair(depth, d, prior):
    """Return neighbours whose one row moves from one end to the other, past a fifth of the prior and then the rest.

    Along each direction the others lie at that fifth: the depth is 1/n on the fifth for X and 0 for the neighbour, and
    the other way round on the rest, so that density and normalising constant move by exp(epsilon / 2) each.
    """
    shares = np.vstack([np.full((ROWS - 1, d), 0.2), np.full((1, d), 1e-9), np.full((1, d), 1 - 1e-9)])
    if prior == NORMAL:
        shares = PRIOR_SD * stats.norm.ppf(shares) @ (depth.directions.matrix() if d > 1 else np.eye(1))
    return shares[:-1], np.delete(shares, ROWS - 1, axis=0)


def random_pair(d, generator):
    n = int(generator.integers(1, 7))
    X = generator.choice([0.0, 0.1, 0.5, 0.9, 2.0, *generator.random(3)], size=(n, d))
    neighbour = generator.permutation(X)
    neighbour[generator.integers(n)] = generator.choice([-1.0, 0.0, 0.3, 1.0], size=d)
    return X, neighbour


def test_every_exact_sampler_is_audited():
    assert {sampler for sampler, *_ in SAMPLERS} == set(EXACT_SAMPLERS)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("sampler", "depth", "d", "prior"), SAMPLERS)
def test_exact_samplers_pass(sampler, depth, d, prior, epsilon):
    pairs = [worst_pair(depth, d, prior), random_pair(d, np.random.default_rng(len(depth.name) + d))]
    for (X, neighbour), trials in zip(pairs, (TRIALS, TRIALS // 4), strict=True):
        plan = plan_of(depth, d, prior, len(X), epsilon)
        assert plan.sampler == sampler
        found = attack(sampler_of(plan), X, neighbour, trials)
        # The audit's bound lies below the exact loss of the law, which lies below epsilon.
        exact = dpd.exact_privacy_loss(X, neighbour, epsilon=epsilon, prior=prior_of(prior, d), depth=depth)
        assert exact.max_loss <= epsilon + exact.error
        assert found.epsilon_lower_bound <= exact.max_loss + exact.error


def base_of_twice(unit, original=WeightBase.of):
    return original(2 * unit)


def half_the_sensitivity(univariate, n, original=UnivariateDepth.sensitivity_count):
    return Fraction(original(univariate, n), 2)


DOUBLED = {
    "beta doubled": lambda patch: patch.setattr(WeightBase, "of", base_of_twice),
    "sensitivity halved": lambda patch: patch.setattr(UnivariateDepth, "sensitivity_count", half_the_sensitivity),
}


@pytest.mark.parametrize(
    ("bug", "case"),
    [("beta doubled", case) for case in SAMPLERS] + [("sensitivity halved", case) for case in SAMPLERS[1::2]],
)
def test_a_doubled_exponent_is_caught_in_every_exact_sampler(bug, case, monkeypatch):
    _, depth, d, prior = case
    DOUBLED[bug](monkeypatch)
    X, neighbour = worst_pair(depth, d, prior)
    found = attack(sampler_of(plan_of(depth, d, prior, ROWS, 1.5)), X, neighbour, 2 * TRIALS)
    assert found.epsilon_lower_bound > 1.5  # 1.5 passes in the test above


# Bugs in the package's boxes


def light_bottom_level(keys, floors, base, highest=None, original=boxes.level_weights):
    significands, exponents, roundings = original(keys, floors, base, highest)
    step, exponent = base.scaled_complement(1)  # 1 - exp(-epsilon / 2)
    significands[0], exponents[0] = significands[0] * step / 2, exponents[0] + exponent + 1
    if significands[0] < 1.0:
        significands[0], exponents[0] = 2 * significands[0], exponents[0] - 1
    return significands, exponents, roundings


def next_box(law, levels, original=boxes.BoxLaw.boxes):
    half = (law.keys.shape[1] + 1) // 2
    return original(law, np.where(levels > 0, np.minimum(levels + 1, half), 0))


def no_level_above_half(keys, floors, base, highest=None, original=boxes.level_weights):
    significands, exponents, roundings = original(keys, floors, base, highest)
    significands[-1] = 0.0
    return significands, exponents, roundings


BOX_BUGS = {
    "bottom level": (boxes, "level_weights", light_bottom_level, planted.SMALL_BOX, planted.LARGE_BOX, 0.2),
    "off by one": (boxes.BoxLaw, "boxes", next_box, planted.INNER_POINT, planted.INNER_SQUARE, 1.0),
}


@pytest.mark.parametrize("bug", BOX_BUGS)
def test_bugs_in_the_package_s_boxes_are_caught(bug, monkeypatch):
    where, name, wrong, X, neighbour, epsilon = BOX_BUGS[bug]
    X, neighbour = X / 10, neighbour / 10
    plan = plan_of(dpd.Halfspace("axes"), 2, UNIFORM, len(X), epsilon)
    assert attack(sampler_of(plan), X, neighbour).epsilon_lower_bound <= epsilon
    monkeypatch.setattr(where, name, wrong)
    assert attack(sampler_of(plan), X, neighbour).epsilon_lower_bound > epsilon


def test_boxes_stopped_at_half_are_another_law(monkeypatch):
    # A mixture without the levels above n/2 is the mechanism of min(D, 1/2), whose sensitivity is 1/n too: it stays
    # private, and no audit of neighbours can object. It is caught as another law, by an audit at epsilon = 0 between
    # the sampler and the lattice's law in rings of the same table. (The ring form without those levels is not private:
    # see PLANTED.) The atom of 14 tied rows weighs e^56 times its prior mass, or e^28 times that when it is clipped.
    epsilon, rows = 8.0, np.full((14, 2), 0.5)
    plan = plan_of(dpd.Halfspace("axes"), 2, UNIFORM, len(rows), epsilon)
    draw, generator = sampler_of(plan), np.random.default_rng(2)
    atom = math.exp(epsilon * 14 / 2) * 2.0**-84  # a cell next to the median has mass 2^-42 on each axis

    def at_the_atom(table, draws):
        if table is reference:
            return generator.random(draws) < atom / (1 + atom)
        return (draw(table, draws) == 0.5).all(axis=1)

    reference = rows.copy()
    assert attack(at_the_atom, rows, reference).epsilon_lower_bound == 0.0
    monkeypatch.setattr(boxes, "level_weights", no_level_above_half)
    assert attack(at_the_atom, rows, reference).epsilon_lower_bound > 0.0


def two_medians(epsilon, bug=None):
    """Return a mechanism: one median of each column at epsilon / 2, one release at a time."""
    plan = plan_of(dpd.Halfspace("axes"), 1, UNIFORM, 2, epsilon / 2)
    counter = iter(range(10**9))

    def mechanism(table):
        table = np.asarray(table)
        seeds = [next(counter)] * 2 if bug else [next(counter), next(counter)]
        return [plan.draw(table[:, j : j + 1], SeededBits(seed), 1)[0, 0] for j, seed in enumerate(seeds)]

    return mechanism


def test_a_seed_that_is_used_twice_is_caught_in_the_package():
    # With one seed for both columns the medians of X are equal; those of the neighbour only in the gap above 0.95.
    X, neighbour = np.array([[0.05, 0.05], [0.95, 0.95]]), np.array([[0.5, 0.05], [0.95, 0.95]])
    epsilon = 1.0
    assert attack(two_medians(epsilon), X, neighbour, 400).epsilon_lower_bound <= epsilon
    assert attack(two_medians(epsilon, "reused"), X, neighbour, 400).epsilon_lower_bound > epsilon


@pytest.mark.filterwarnings("ignore::pymc_dpdepth.errors.PrivacyLeakWarning")
def test_a_fixed_seed_in_private_median_is_caught():
    X, neighbour, prior = np.array([[0.1], [0.4]]), np.array([[0.1], [0.9]]), pm.Uniform.dist(0, 1, shape=1)

    def mechanism(table, **seed):
        return dpd.private_median(table, epsilon=0.5, prior=prior, **seed)

    # 60 held-out draws that never agree: each limit is 2.5e-9^(1/60) = 0.72, so log(0.72 / 0.28) = 0.94.
    wrong = attack(lambda table: mechanism(table, random_seed=3), X, neighbour, 120)
    right = attack(mechanism, X, neighbour, 120)
    assert right.epsilon_lower_bound <= 0.5 < 0.9 < wrong.epsilon_lower_bound
