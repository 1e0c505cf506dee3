"""Bounds of the mass of an interval over boxes of means and scales: extreme ends, and what is not a number."""

import itertools

import numpy as np
import pymc as pm
import pytest
from scipy.special import log_ndtr, ndtr

import pymc_dpdepth as dpd
from pymc_dpdepth.samplers.group_laws import DualFactor, LevelFactor
from pymc_dpdepth.samplers.hierarchy_bounds import MARGIN, _cell_mass, _interval, _largest_tail, _run_mass
from pymc_dpdepth.samplers.weights import WeightBase

# Rounding of a difference of two tails, as `_run_mass` allows for it.
ROUNDING = 2.0**-39
UNIT = 2.0**-1074
LARGEST = np.finfo(np.float64).max
SMALLEST_SCALE = 1 / LARGEST  # keys know no smaller one, see `normal_keys`


def mass(a, b, mean, scale):
    """Return P(a <= T <= b), from the tails on the side where they are small."""
    with np.errstate(over="ignore"):
        low, high = (a - mean) / scale, (b - mean) / scale
    return np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))


def scales_within(low, high):
    """Return scales from low to high, even in their logs."""
    low = max(low, SMALLEST_SCALE)
    return np.clip(np.exp(np.linspace(np.log(low), np.log(max(high, low)), 400)), low, max(high, low))


def excess(a, b, mean_low, mean_high, scale_low, scale_high):
    """Return by how much a mass inside a box exceeds its bound at most."""
    middle = np.clip(a / 2 + b / 2, mean_low, mean_high)
    means = np.array([mean_low, mean_high, middle, *(mean_low * (1 - U) + mean_high * U)])
    inside = mass(a, b, np.clip(means, mean_low, mean_high)[:, None], scales_within(scale_low, scale_high))
    bound = _run_mass(a, b, mean_low, mean_high, scale_low, scale_high)
    assert bound <= 1.0
    return float(np.max(inside - bound * (1 + MARGIN)))


U = np.linspace(0.05, 0.95, 5)
WIDE = [150, 153, 154, 155, 160, 200, 300, 308, 350, 460, 600]


@pytest.mark.parametrize("digits", WIDE)
def test_intervals_with_ends_of_very_different_size_are_bounded(digits):
    # hi / lo = 10^digits, beyond the largest double, too; in units from 1e-300 up.
    for low in (10.0 ** -min(digits, 300), 10.0 ** -min(digits // 2, 300)):
        high = low * 10.0 ** (digits // 2) * 10.0 ** (digits - digits // 2)
        if not np.isfinite(high):
            continue
        for scale_low, scale_high in ((0.0, LARGEST), (0.0, 100.0), (low, high / 10), (high / 1e3, high), (1.0, 1e152)):
            for sign in (1, -1):
                a, b = sorted((sign * low, sign * high))
                assert excess(a, b, 0.0, 0.0, scale_low, max(scale_low, scale_high)) <= 0.0


def test_the_bound_of_an_interval_beside_its_mean_is_attained():
    # Between the ends' scales there is room for nearly all of one half.
    assert _interval(1e-160, 1.0, 0.0, 0.0, 0.0, 100.0) == pytest.approx(0.5)
    assert _interval(1e-200, 1e150, 0.0, 0.0, 1.0, 1e152) == pytest.approx(0.5)
    for ratio in (1 + 1e-12, 1.1, 1.9, 2.1, 10.0, 1e100):
        scales = np.exp(np.linspace(-2, 250, 100_000))
        assert _interval(1.0, ratio, 0.0, 0.0, 0.0, LARGEST) == pytest.approx(mass(1.0, ratio, 0.0, scales).max(), 1e-4)


def ends(generator):
    """Return a sorted pair of numbers of any size, subnormal and huge ones among them, or nearly equal ones."""
    kind = generator.integers(0, 4)
    numbers = generator.choice([-1, 1], 2) * np.float64(10) ** generator.uniform(-323, 308.2, 2)
    if kind == 0:
        numbers = np.abs(numbers)
    elif kind == 1:
        numbers = UNIT * generator.integers(-6, 7, 2)
    elif kind == 2:
        numbers[1] = numbers[0] * (1 + 10 ** generator.uniform(-16, 0))
    return np.sort(np.clip(numbers, -LARGEST, LARGEST)).tolist()


def test_no_interval_exceeds_its_bound_at_any_size():
    generator = np.random.default_rng(21)
    worst = -np.inf
    for _ in range(4000):
        a, b = ends(generator)
        mean = ends(generator)
        if generator.integers(0, 2):
            mean = [generator.choice([0.0, a, b, mean[0]])] * 2
        scale = np.abs(ends(generator))
        scale.sort()
        if generator.integers(0, 2):  # scales of the size of the ends
            scale = np.sort(np.minimum(np.abs([a, b]), LARGEST / 100) * 10 ** generator.uniform(-2, 2, 2))
        worst = max(worst, excess(a, b, *mean, *scale.tolist()))
    assert worst <= ROUNDING * MARGIN


def test_small_masses_far_out_keep_their_bounds():
    # In logs: what the fuzz above sees as nothing. The last factor is the rounding of the tails.
    for lo, hi in ((1e-170, 1e-10), (1.0, 30.0), (1.0, 1.0 + 1e-9), (1e5, 1e300)):
        for scale in (lo / 5, lo / 20, lo / 36):
            top = log_ndtr(-lo / scale)
            bound = _run_mass(lo, hi, 0.0, 0.0, scale, scale)
            assert np.log(bound) >= top + np.log(-np.expm1(log_ndtr(-hi / scale) - top)) - 1e-12


BOX = (0.5, 1.0, 0.0, 0.25, 0.5, 2.0)


@pytest.mark.parametrize(
    "places", [*itertools.combinations(range(6), 1), *itertools.combinations(range(6), 2), range(6)]
)
def test_what_is_not_a_number_is_bounded_by_one(places):
    box = [np.nan if i in places else value for i, value in enumerate(BOX)]
    assert _interval(*box) == 1.0 and _run_mass(*box) == 1.0
    if set(places) == set(range(6)):
        assert _largest_tail(*box[:4], box[5]) == 0.5
        assert _cell_mass(*box[:4], box[5]) == 2.0**-42  # the binade below 1/2


@pytest.mark.parametrize("factor", [LevelFactor, DualFactor])
def test_a_box_that_is_not_a_number_has_the_loosest_bound(factor):
    law = factor(np.array([[-1.0, 0.0, 2.0]]), WeightBase.of_epsilon(1.0, 3))
    for place in range(4):
        box = [np.full((1, 1), value) for value in (0.0, 0.1, 1.0, 1.1)]
        box[place][:] = np.nan
        assert law.log_bounds(*box) == 0.0


@pytest.mark.parametrize("depth", ["halfspace", "integrated_dual"])
def test_rows_of_very_different_size_have_bounds(depth):
    # Such a release raised after its charge, and whether it did depended on the rows.
    for smallest in (1e-160, 1e-300, UNIT):
        rows = [smallest, 0.2, 0.5, 1.0, 1e155, LARGEST]
        for random_mean in (False, True):
            with pm.Model(coords={"group": ["a", "b"]}) as model:
                mean = pm.Normal("mean", 0, 2) if random_mean else 0.0
                location = pm.Normal("location", mean, pm.HalfNormal("scale", 1.5), dims="group")
                dpd.exponential_mechanism(
                    "median", location, rows, groups=list("aaaaab"), depth=depth, directions="axes", epsilon=20.0
                )
            for _ in range(5):
                assert np.isfinite(dpd.release(model).value).all()
