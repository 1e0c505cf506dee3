"""Audits: right mechanisms pass, every planted bug is caught, and the bound is what it says.

False alarms: each audit of a right mechanism reports more than its true epsilon with probability at most 1 - CONFIDENCE
= 1e-8. This file makes fewer than 100 such audits, so all of them together pass with probability above 1 - 1e-6; seeds
are fixed, so they do so every time.
"""

import math
from fractions import Fraction

import numpy as np
import planted_bugs as planted
import pymc as pm
import pytest
from scipy import stats

import pymc_dpdepth as dpd
from pymc_dpdepth.depths.univariate import UnivariateDepth
from pymc_dpdepth.mechanism import set_up
from pymc_dpdepth.privacy.audit import _bound
from pymc_dpdepth.randomness import SeededBits
from pymc_dpdepth.samplers import boxes
from pymc_dpdepth.samplers.exact import EXACT_SAMPLERS, plan_exact
from pymc_dpdepth.samplers.weights import WeightBase

CONFIDENCE = 1 - 1e-8
TRIALS = 40_000
ONE_BY_ONE = 4000  # for mechanisms that are called once per draw


def attack(mechanism, X, neighbour, trials=TRIALS, **options):
    options = {"confidence": CONFIDENCE, "random_seed": 1, "progressbar": False} | options
    return dpd.audit(mechanism, X, neighbour, trials=trials, **options)


# Planted bugs in mechanisms of our own


def test_the_three_forms_agree_without_a_bug():
    generator = np.random.default_rng(1)
    tables = [planted.SMALL_BOX, planted.INNER_POINT, planted.TIED, planted.LESS_TIED]
    tables += [generator.integers(0, planted.SIDE, size=(n, 2)).astype(float) for n in range(1, 8)]
    for rows in tables:
        for epsilon in (0.1, 3.0):
            law = planted.directly(rows, epsilon)
            np.testing.assert_allclose(planted.in_boxes(rows, epsilon), law, atol=1e-12)
            np.testing.assert_allclose(planted.in_rings(rows, epsilon), law, atol=1e-12)


@pytest.mark.parametrize("case", planted.PLANTED, ids=lambda case: f"{case[0]}-{case[1].__name__}")
def test_every_planted_bug_is_caught_and_the_right_mechanism_passes(case):
    bug, make, X, neighbour, epsilon = case
    trials = ONE_BY_ONE if make is planted.one_noisy_count_at_a_time else TRIALS
    wrong, right = (attack(make(epsilon, kind), X, neighbour, trials) for kind in (bug, None))
    assert right.epsilon_lower_bound <= epsilon < wrong.epsilon_lower_bound, (right, wrong)


# The package's exact samplers

NORMAL, UNIFORM = "normal", "uniform"
ROTATED = dpd.Directions.orthonormal(2, seed=3)
#: Sampler, depth, columns, prior of each column. A new exact sampler adds a line.
SAMPLERS = [
    ("segments", dpd.Halfspace(), 1, UNIFORM),
    ("segments", dpd.IntegratedRankWeighted(), 1, NORMAL),
    ("segments", dpd.IntegratedDual(), 1, UNIFORM),
    ("boxes", dpd.Halfspace(), 2, UNIFORM),
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


def light_bottom_level(keys, floors, base, original=boxes.level_weights):
    significands, exponents, roundings = original(keys, floors, base)
    step, exponent = base.scaled_complement(1)  # 1 - exp(-epsilon / 2)
    significands[0], exponents[0] = significands[0] * step / 2, exponents[0] + exponent + 1
    if significands[0] < 1.0:
        significands[0], exponents[0] = 2 * significands[0], exponents[0] - 1
    return significands, exponents, roundings


def next_box(law, levels, original=boxes.BoxLaw.boxes):
    half = (law.keys.shape[1] + 1) // 2
    return original(law, np.where(levels > 0, np.minimum(levels + 1, half), 0))


def no_level_above_half(keys, floors, base, original=boxes.level_weights):
    significands, exponents, roundings = original(keys, floors, base)
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
    plan = plan_of(dpd.Halfspace(), 2, UNIFORM, len(X), epsilon)
    assert attack(sampler_of(plan), X, neighbour).epsilon_lower_bound <= epsilon
    monkeypatch.setattr(where, name, wrong)
    assert attack(sampler_of(plan), X, neighbour).epsilon_lower_bound > epsilon


def test_boxes_stopped_at_half_are_another_law(monkeypatch):
    # A mixture without the levels above n/2 is the mechanism of min(D, 1/2), whose sensitivity is 1/n too: it stays
    # private, and no audit of neighbours can object. It is caught as another law, by an audit at epsilon = 0 between
    # the sampler and the lattice's law in rings of the same table. (The ring form without those levels is not private:
    # see PLANTED.) The atom of 14 tied rows weighs e^56 times its prior mass, or e^28 times that when it is clipped.
    epsilon, rows = 8.0, np.full((14, 2), 0.5)
    plan = plan_of(dpd.Halfspace(), 2, UNIFORM, len(rows), epsilon)
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
    plan = plan_of(dpd.Halfspace(), 1, UNIFORM, 2, epsilon / 2)
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


# The bound


@pytest.mark.parametrize(("common", "rare"), [(900, 10), (1000, 0), (500, 499), (0, 3), (3, 1000)])
@pytest.mark.parametrize("delta", [0.0, 0.05, 0.95])
def test_the_bound_is_clopper_and_pearson_s(common, rare, delta):
    error = 0.0125
    # A two-sided interval at 1 - 2 error has limits that are each wrong with probability `error`.
    low, high = (stats.binomtest(count, 1000).proportion_ci(1 - 2 * error, method="exact") for count in (common, rare))
    expected = max(0.0, math.log((low.low - delta) / high.high)) if low.low > delta else 0.0
    assert _bound(common, rare, 1000, delta, error) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def randomized_response(epsilon, seed):
    generator = np.random.default_rng(seed)

    def mechanism(table, draws):
        keep = generator.random(draws) < 1 / (1 + math.exp(-epsilon))
        return np.where(keep, table[0, 0], 1 - table[0, 0])

    return mechanism


def test_the_bound_is_wrong_no_more_often_than_it_says():
    # At the true loss, 1, a right bound exceeds it with probability at most 1 - confidence = 0.5 in each of 200 audits.
    # The mechanism and the split have the same seed: they must not share a stream.
    X, neighbour, audits = np.zeros((1, 1)), np.ones((1, 1)), 200
    bounds = [
        attack(randomized_response(1.0, seed), X, neighbour, 400, confidence=0.5, random_seed=seed).epsilon_lower_bound
        for seed in range(audits)
    ]
    assert sum(bound > 1.0 for bound in bounds) <= stats.binom.isf(1e-6, audits, 0.5)
    assert np.median(bounds) > 0.5  # and it finds most of the loss


def test_more_draws_and_less_confidence_find_more():
    X, neighbour = np.zeros((1, 1)), np.ones((1, 1))
    options = [(1000, 0.999), (1000, 0.9), (100_000, 0.9)]
    bounds = [attack(randomized_response(2.0, 5), X, neighbour, t, confidence=c) for t, c in options]
    few, sure, many = (bound.epsilon_lower_bound for bound in bounds)
    assert 1.0 < few < sure < many < 2.0


def test_delta_is_granted():
    # With probability 0.1 the table itself comes out: (0, 0.1)-private, and not epsilon-private at all.
    generator = np.random.default_rng(6)

    def leaks(table, draws):
        return np.where(generator.random(draws) < 0.1, table[0, 0], 7.0)

    X, neighbour = np.zeros((1, 1)), np.ones((1, 1))
    assert attack(leaks, X, neighbour).epsilon_lower_bound > 4
    assert attack(leaks, X, neighbour, delta=0.1).epsilon_lower_bound == 0.0


# Outputs and events


def test_an_atom_in_the_middle_is_an_event():
    generator = np.random.default_rng(7)

    def mechanism(table, draws):
        # The atom 0 is hidden among normal numbers on both sides, with the same median.
        return np.where(generator.random(draws) < table[0, 0], 0.0, generator.normal(size=draws))

    found = attack(mechanism, np.array([[0.2]]), np.array([[0.01]]))
    assert found.epsilon_lower_bound > 2.3 and found.event == "coordinate 0 = 0, more likely on X"


def test_missing_and_infinite_outputs_are_events():
    def mechanism(value):
        def draw(table, draws):
            outputs = np.full((draws, 2), 0.5)
            outputs[: int(draws * table[0, 0]), 1] = value
            return outputs

        return draw

    for value, word in ((np.nan, "coordinate 1 missing"), (np.inf, "coordinate 1"), (-np.inf, "coordinate 1")):
        found = attack(mechanism(value), np.array([[0.5]]), np.zeros((1, 1)))
        assert found.epsilon_lower_bound > 5 and word in found.event


def test_corners_in_many_dimensions_are_events():
    generator, d = np.random.default_rng(8), 12

    def mechanism(table, draws):
        return generator.random((draws, d)) ** (1 - 0.5 * table[0, 0])

    # Coordinates of density 2 t against 1: one alone gives log 2 at most.
    assert attack(mechanism, np.ones((1, 1)), np.zeros((1, 1)), TRIALS // 2).epsilon_lower_bound > 2.0


def test_releases_are_read_whole():
    rows = np.linspace(0, 1, 10).reshape(5, 2)
    seen = []

    def mechanism(table):
        release = dpd.private_median(table, epsilon=1.0, prior="normal(0, 1)")
        seen.append((table is rows, release))
        return release

    found = attack(mechanism, rows, rows[::-1], 20, confidence=0.95)
    assert found.epsilon_lower_bound == 0.0
    assert [of_rows for of_rows, _ in seen] == [True, False] * 20  # in turns


@pytest.mark.parametrize(
    ("output", "error", "match"),
    [
        (lambda table: "text", TypeError, "str"),
        (lambda table: {"a": 1}, TypeError, "dict"),
        (lambda table: None, ValueError, "none"),
        (lambda table: np.zeros(int(table[0, 0]) + 1), ValueError, "one shape"),
        (lambda table: np.zeros(0), ValueError, "at least one number"),
        (lambda table, draws: np.zeros(draws + 1), ValueError, "draws along its first axis"),
        (lambda table, draws: 1.0, ValueError, "draws along its first axis"),
        (3.0, TypeError, "callable"),
    ],
)
def test_unusable_mechanisms(output, error, match):
    if match == "none":  # None becomes NaN, a missing output, which is the same for both tables
        assert attack(output, [[1.0]], [[2.0]], 20).epsilon_lower_bound == 0.0
        return
    with pytest.raises(error, match=match):
        attack(output, np.array([[1.0]]), np.array([[2.0]]), 20)


# Arguments


@pytest.mark.parametrize(
    ("X", "neighbour", "options", "match"),
    [
        (np.zeros((3, 2)), np.zeros((2, 2)), {}, "same shape"),
        (np.zeros((3, 2)), np.zeros((3, 1)), {}, "same shape"),
        ([[0.0], [1.0], [2.0]], [[3.0], [4.0], [2.0]], {}, "at most one row"),
        ([[0.0], [0.0]], [[1.0], [1.0]], {}, "at most one row"),
        ([[0.0], [1.0], [2.0]], [[3.0], [4.0], [5.0]], {"max_rows_per_unit": 2}, "max_rows_per_unit = 2"),
        ([["a"]], [["a"]], {}, "real numbers"),
    ],
)
def test_tables_that_are_no_neighbours(X, neighbour, options, match):
    with pytest.raises(ValueError, match=match):
        attack(lambda table, draws: np.zeros(draws), X, neighbour, 20, **options)


def test_neighbours_in_any_order():
    mechanism = randomized_response(1.0, 1)
    X = np.array([[0.0, -0.0], [1.0, np.nan], [0.0, 5.0]])
    for neighbour in (X[::-1], np.array([[9.0, 9.0], [0.0, 5.0], [0.0, 0.0]])):
        assert attack(mechanism, X, neighbour, 20).trials == 20
    assert attack(mechanism, X, X + 1.0, 20, max_rows_per_unit=3).trials == 20


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"trials": 0}, ValueError, "trials"),
        ({"trials": 1}, ValueError, "trials"),
        ({"trials": 10.0}, TypeError, "trials"),
        ({"trials": True}, TypeError, "trials"),
        ({"confidence": 1.0}, ValueError, r"confidence.*\(0, 1\)"),
        ({"confidence": 0.0}, ValueError, "confidence"),
        ({"confidence": "high"}, TypeError, "confidence"),
        ({"delta": 1.0}, ValueError, r"delta.*\[0, 1\)"),
        ({"delta": -0.1}, ValueError, "delta"),
        ({"delta": float("nan")}, ValueError, "delta"),
        ({"max_rows_per_unit": 0}, ValueError, "max_rows_per_unit"),
        ({"random_seed": -1}, ValueError, "random_seed"),
        ({"random_seed": 0.5}, ValueError, "random_seed"),
    ],
)
def test_bad_arguments(options, error, match):
    def never(table):
        raise AssertionError("drawn before the arguments were checked")

    with pytest.raises(error, match=match):
        attack(never, [[0.0]], [[1.0]], **options)


def test_the_split_is_seeded_or_not():
    X, neighbour = np.zeros((1, 1)), np.ones((1, 1))
    same = [attack(randomized_response(1.0, 3), X, neighbour, 1000, random_seed=4) for _ in range(2)]
    assert same[0] == same[1]
    fresh = {
        attack(randomized_response(1.0, 3), X, neighbour, 1000, random_seed=None).epsilon_lower_bound for _ in range(4)
    }
    assert len(fresh) > 1


def test_the_result_says_what_it_is():
    found = attack(randomized_response(3.0, 3), np.zeros((1, 1)), np.ones((1, 1)), 1000, confidence=0.9)
    assert (found.confidence, found.trials, found.delta, found.neighboring) == (0.9, 1000, 0.0, "replace_one")
    assert "coordinate 0" in found.event and "more likely on" in found.event
    for text in (repr(found), dpd.AuditResult.__doc__):
        assert "not releasable" in " ".join(text.split()) and "proves nothing" in " ".join(text.split())
    assert "coordinate" not in repr(found)  # the cut points come from the draws


def test_the_progress_bar_is_for_one_draw_at_a_time(capsys):
    attack(lambda table: 0.0, [[0.0]], [[1.0]], 20, progressbar=True)
    assert "Audit" in capsys.readouterr().out
    attack(lambda table: 0.0, [[0.0]], [[1.0]], 20)
    assert capsys.readouterr().out == ""
