"""Composition against high-precision arithmetic, brute force over worst cases, and dp-accounting."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from pymc_dpdepth.privacy import composition
from pymc_dpdepth.privacy.composition import (
    advanced_composition,
    basic_composition,
    bounded_range_composition,
    bounded_range_rho,
    concentrated_composition,
    epsilon_of_rho,
    pure_rho,
    rho_of_budget,
    rho_to_epsilon,
)

mp = pytest.importorskip("mpmath")
mp.mp.dps = 60
DELTA = 1e-6
SLACK = mp.mpf(2) ** -52  # one step of a double: how far above the truth a result that is rounded upwards may lie


def exact(value):
    return mp.mpf(repr(value))


def double(value):
    return mp.mpf(value)


def assert_just_above(result, truth):
    assert truth <= double(result) <= truth * (1 + SLACK)


# The numbers of docs/composition.md


@pytest.mark.parametrize(
    "draws, zcdp, optimal, basic, advanced", [(10, 8.775, 7.71, 10, 10.0), (50, 23.49, 21.77, 50, 47.65)]
)
def test_table_of_the_documentation(draws, zcdp, optimal, basic, advanced):
    epsilons = [1.0] * draws
    assert basic_composition(epsilons) == basic
    assert round(advanced_composition(epsilons, DELTA), 2) == advanced
    assert concentrated_composition(epsilons, DELTA) == pytest.approx(zcdp, abs=0.005)
    assert bounded_range_composition(epsilons, DELTA) == pytest.approx(optimal, abs=0.005)


# Rho of one mechanism

SIZES = [1e-150, 1e-11, 0.999e-10, 1e-10, 1e-6, 0.1, 0.5, 1, 3.7, 40, 800, 1e5]


def kl_of_bounded_range(epsilon):
    with mp.workdps(200):  # 1e-150 squared, and then 40 digits of it
        k = epsilon / mp.expm1(epsilon)
        return k - 1 - mp.log(k)


@pytest.mark.parametrize("epsilon", SIZES)
def test_rho_is_rounded_upwards_from_the_formula(epsilon):
    if epsilon > 1e-100:
        assert_just_above(bounded_range_rho(epsilon), kl_of_bounded_range(exact(epsilon)))
    assert bounded_range_rho(epsilon) <= math.nextafter(epsilon**2 / 8, math.inf)
    assert_just_above(pure_rho(epsilon), exact(epsilon) * mp.tanh(exact(epsilon) / 2))


def test_rho_at_the_ends_of_the_doubles():
    assert bounded_range_rho(5e-324) == pure_rho(5e-324) == 5e-324  # rounded upwards, not to nothing
    assert pure_rho(1e308) == 1e308
    assert bounded_range_rho(1e308) == pytest.approx(1e308)


def renyi_exponent(loss_high, loss_low, alpha):
    """Return ln E_Q e^(alpha L) of the bit with these two losses, E_Q e^L = 1."""
    high, low = mp.exp(loss_high), mp.exp(loss_low)
    q = (1 - low) / (high - low)
    return mp.log(q * high**alpha + (1 - q) * low**alpha)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 4.0, 12.0])
def test_rho_bounds_every_renyi_divergence_and_is_reached(epsilon):
    orders = [1 + mp.mpf(10) ** -9, 1.01, 1.3, 1.9, 2, 2.1, 3, 5, 17, 80]
    width = exact(epsilon)
    offsets = [width * i / 400 for i in range(1, 400)]
    ranged = [
        renyi_exponent(t, t - width, alpha) / (alpha * (alpha - 1)) for alpha in map(mp.mpf, orders) for t in offsets
    ]
    assert max(ranged) <= bounded_range_rho(epsilon) <= max(ranged) * (1 + 1e-4)  # offsets of 1/400: error (1/400)^2
    pure = [renyi_exponent(width, -width, alpha) / (alpha * (alpha - 1)) for alpha in map(mp.mpf, orders)]
    assert max(pure) <= pure_rho(epsilon) <= max(pure) * (1 + 1e-6)


@pytest.mark.parametrize("draws", [1, 3, 100])
@pytest.mark.parametrize("rho", [1e-300, 1e-30, 0.01, 0.1, 0.123, 0.3, 2.0, 1e9])
def test_epsilon_of_rho_is_the_largest_that_fits(rho, draws):
    epsilon = epsilon_of_rho(rho, draws)
    limit = Fraction(repr(rho))
    assert draws * Fraction(bounded_range_rho(epsilon)) <= limit
    assert draws * Fraction(bounded_range_rho(math.nextafter(epsilon, math.inf))) > limit
    assert epsilon == pytest.approx(epsilon_of_rho(rho / draws), rel=1e-12)


# zCDP to approximate DP


def tight_epsilon(rho, delta):
    def objective(step):
        return rho * (1 + step) - mp.log(delta * (1 + step)) / step + mp.log(step / (1 + step))

    scale = mp.sqrt(-mp.log(delta) / rho)
    low, high = mp.log(scale) - 12, mp.log(scale) + 3
    for _ in range(400):  # the objective falls and then grows; thirds of the interval of ln(alpha - 1)
        third = (high - low) / 3
        if objective(mp.exp(low + third)) < objective(mp.exp(high - third)):
            high -= third
        else:
            low += third
    return max(objective(mp.exp(low)), mp.mpf(0))


@pytest.mark.parametrize("rho", [1e-9, 1e-4, 0.1, 1.233015614822245, 30, 1e8])
@pytest.mark.parametrize("delta", [1e-300, 1e-6, 0.1])
def test_conversion_is_tight_and_never_below_the_truth(rho, delta):
    truth = tight_epsilon(exact(rho), exact(delta))
    result = rho_to_epsilon(rho, delta)
    assert truth <= result <= truth * (1 + mp.mpf("1e-14")) + mp.mpf("1e-40")
    assert result <= rho + 2 * math.sqrt(rho * math.log(1 / delta)) * (1 + 1e-15)  # Bun and Steinke's


def test_conversion_at_the_ends():
    assert rho_to_epsilon(0, 1e-6) == 0
    assert rho_to_epsilon(1e-300, 1e-6) == 0  # so close that delta alone covers the difference
    assert rho_to_epsilon(1e300, 1e-6) == pytest.approx(1e300)
    assert rho_to_epsilon(1e305, 0.999) >= 1e305


@pytest.mark.parametrize("epsilon, delta", [(1, 1e-6), (3.0, 1e-9), (1e-5, 1e-6), (40, 0.2), (0.1, 1e-200)])
def test_rho_of_a_budget_is_the_largest_that_fits(epsilon, delta):
    rho = rho_of_budget(epsilon, delta)
    assert rho_to_epsilon(rho, delta) <= epsilon
    assert rho_to_epsilon(rho * (1 + 1e-12), delta) > epsilon


# Pure mechanisms


def hockey_stick(bits, epsilon):
    """Return delta(epsilon) of a product of bits, each ((loss, P, Q), (loss, P, Q)), by enumeration."""
    total = mp.mpf(0)
    for outcome in itertools.product(*bits):
        p, q = mp.fprod(o[1] for o in outcome), mp.fprod(o[2] for o in outcome)
        total += max(p - mp.exp(epsilon) * q, 0)
    return total


def bit(epsilon, offset):
    """Return the bit with losses offset and offset - epsilon."""
    high, low = mp.exp(offset), mp.exp(offset - epsilon)
    q = (1 - low) / (high - low)
    return (offset, high * q, q), (offset - epsilon, low * (1 - q), 1 - q)


def response(epsilon):
    return bit(2 * epsilon, epsilon)


@pytest.mark.parametrize("epsilons", [[1.0], [0.3] * 7, [0.1, 0.1, 0.7, 1.5], [3.0, 0.2, 0.2], [20.0, 1e-9]])
@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.2])
def test_advanced_composition_is_the_optimum(epsilons, delta):
    bits = [response(exact(e)) for e in epsilons]
    result = advanced_composition(epsilons, delta)
    assert hockey_stick(bits, double(result)) <= exact(delta)
    if result > 0:
        assert hockey_stick(bits, double(result) * (1 - mp.mpf("1e-14"))) > exact(delta)


def test_advanced_composition_with_many_different_epsilons_is_bounded():
    epsilons = [0.01 * i for i in range(1, 31)]
    result = advanced_composition(epsilons, DELTA)
    squares = math.fsum(e * e for e in epsilons)
    drift = math.fsum(e * math.tanh(e / 2) for e in epsilons)
    assert result <= drift + math.sqrt(2 * squares * math.log(1 / DELTA))  # Kairouz, Oh and Viswanath (2015)
    rounded_up = [0.1 * math.ceil(e / 0.1) for e in epsilons]
    rounded_down = [0.15] * 15 + [0.0001] * 15
    assert advanced_composition(rounded_down, DELTA) <= result <= advanced_composition(rounded_up, DELTA) * 1.1


@pytest.mark.parametrize("epsilon, count", [(1.0, 10), (1.0, 50), (0.25, 40)])
def test_advanced_composition_agrees_with_dp_accounting(epsilon, count):
    pytest.importorskip("dp_accounting")
    from dp_accounting.pld import common, privacy_loss_distribution

    interval = 1e-3  # its losses are rounded upwards to multiples of this, so it adds at most count * interval
    one = privacy_loss_distribution.from_privacy_parameters(
        common.DifferentialPrivacyParameters(epsilon), value_discretization_interval=interval
    )
    theirs = one.self_compose(count).get_epsilon_for_delta(DELTA)
    ours = advanced_composition([epsilon] * count, DELTA)
    assert ours - 1e-9 <= theirs <= ours + count * interval  # 1e-9: its sums are in doubles, delta = 1e-6
    assert bounded_range_composition([epsilon] * count, DELTA) < theirs
    assert concentrated_composition([epsilon] * count, DELTA) < theirs


# Bounded range


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("delta", [1e-6, 0.03])
def test_no_offsets_beat_the_bounded_range_optimum(epsilon, count, delta):
    result = bounded_range_composition([epsilon] * count, delta)
    width, steps = exact(epsilon), {1: 200, 2: 24, 3: 10}[count]
    offsets = [width * i / steps for i in range(1, steps)]
    for chosen in itertools.combinations_with_replacement(offsets, count):
        assert hockey_stick([bit(width, t) for t in chosen], double(result)) <= exact(delta)
    # just below the result, one of the equal offsets of the theorem does: so the result is the smallest
    lower = double(result) * (1 - mp.mpf("1e-13"))
    equal = [(lower + (level + 1) * width) / (count + 1) for level in range(count)]
    worst = max(hockey_stick([bit(width, t)] * count, lower) for t in equal if t < width)
    assert result == 0 or worst > exact(delta)


def test_random_offsets_of_many_draws_stay_below_the_optimum():
    rng = np.random.default_rng(20)
    epsilon, count, delta = 0.8, 6, 1e-4
    result = double(bounded_range_composition([epsilon] * count, delta))
    for _ in range(40):
        centre = rng.uniform(0.2, 0.8)
        offsets = np.clip(centre + rng.normal(0, 0.1, count), 0.01, 0.99) * epsilon
        assert hockey_stick([bit(exact(epsilon), mp.mpf(t)) for t in offsets], result) <= exact(delta)


@pytest.mark.parametrize("epsilons", [[0.5, 1.0], [0.1, 0.1, 2.0], [1.0, 1.1, 1.2]])
def test_unequal_bounded_range_draws_are_bounded(epsilons):
    delta = 1e-3
    result = bounded_range_composition(epsilons, delta)
    shares = [mp.mpf(i) / 8 for i in range(1, 8)]
    for chosen in itertools.product(shares, repeat=len(epsilons)):
        bits = [bit(exact(e), exact(e) * share) for e, share in zip(epsilons, chosen, strict=True)]
        assert hockey_stick(bits, double(result)) <= exact(delta)


def test_adaptive_choice_of_draws_can_break_the_non_adaptive_bound():
    """Later offsets depend on earlier outcomes: an explicit strategy, and so the reason why the plan must be fixed."""
    width, delta = mp.mpf(1), mp.mpf("0.1")
    target = double(bounded_range_composition([1.0] * 3, 0.1))
    shares = [width * i / 12 for i in range(1, 12)]

    def last(log_odds):
        offset = min(max((log_odds + width) / 2, width / 100), width * 99 / 100)  # the best single bit of the theorem
        return hockey_stick([bit(width, offset)], log_odds)

    def then(follow, log_odds):
        return max(sum(p * follow(log_odds - loss) for loss, p, _ in bit(width, t)) for t in shares)

    assert then(lambda log_odds: then(last, log_odds), target) > delta * mp.mpf("1.03")
    assert concentrated_composition([1.0] * 3, 0.1) > target  # the bound that does allow adaptive choice


def test_bounds_are_in_their_order():
    for count in (2, 5, 30):
        for epsilon in (0.01, 0.4, 2.0):
            epsilons = [epsilon] * count
            optimal = bounded_range_composition(epsilons, DELTA)
            pure = advanced_composition(epsilons, DELTA)
            assert optimal <= concentrated_composition(epsilons, DELTA) <= basic_composition(epsilons)
            assert optimal <= pure <= concentrated_composition(epsilons, DELTA, bounded_range=False)
            assert optimal <= bounded_range_composition([*epsilons, epsilon], DELTA)


def test_many_draws_get_the_concentrated_bound(monkeypatch):
    monkeypatch.setattr(composition, "DRAWS", 5)
    assert bounded_range_composition([1.0] * 6, DELTA) == concentrated_composition([1.0] * 6, DELTA)
    assert bounded_range_composition([1.0] * 5, 0.01) < concentrated_composition([1.0] * 5, 0.01)


# Arguments


def test_numbers_are_read_as_written():
    assert basic_composition([0.1] * 10) == 1.0
    assert basic_composition([0.1] * 3) == 0.3  # though the double 0.3 is below 3/10, and three doubles 0.1 above it
    assert basic_composition([Fraction(1, 3)] * 3) == 1.0
    assert bounded_range_rho(np.float64(1)) == bounded_range_rho(1) == bounded_range_rho(np.int64(1))


@pytest.mark.parametrize("compose", [advanced_composition, bounded_range_composition])
def test_without_delta_or_without_releases(compose):
    assert compose([1.0, 2.0], 0.0) == 3.0
    assert compose([], 1e-6) == 0.0
    assert compose([1e5] * 20, 1e-6) == 2e6
    assert compose([1e-11] * 3, 1e-6) <= 3e-11


@pytest.mark.parametrize("bad", [0, -1.0, math.nan, math.inf, True, np.bool_(True), "1", None, [1.0], 1j])
def test_bad_numbers_are_refused_by_name(bad):
    for call in (bounded_range_rho, pure_rho):
        with pytest.raises((TypeError, ValueError), match="^epsilon: expected a finite number > 0"):
            call(bad)
    for compose in (advanced_composition, bounded_range_composition, concentrated_composition):
        with pytest.raises((TypeError, ValueError), match=r"^epsilons\[1\]: expected a finite number > 0"):
            compose([1.0, bad], 1e-6)
    with pytest.raises((TypeError, ValueError), match="^rho: expected"):
        epsilon_of_rho(bad)


@pytest.mark.parametrize("bad", [-1e-6, math.nan, 1.0, 2, True, "small"])
def test_bad_delta_is_refused_by_name(bad):
    for compose in (advanced_composition, bounded_range_composition, concentrated_composition):
        with pytest.raises((TypeError, ValueError), match="^delta: expected"):
            compose([1.0], bad)
    with pytest.raises((TypeError, ValueError), match="^delta: expected"):
        rho_to_epsilon(1.0, bad)
    with pytest.raises(ValueError, match="^delta: expected"):
        rho_to_epsilon(1.0, 0)


def test_other_bad_arguments():
    with pytest.raises(TypeError, match="^epsilons: expected a sequence"):
        basic_composition("1.0")
    with pytest.raises(TypeError, match="^epsilons: expected a sequence"):
        basic_composition(1.0)
    for bad in (0, 1.5, True):
        with pytest.raises(ValueError, match="^draws: expected an integer"):
            epsilon_of_rho(1.0, bad)
