import itertools
import math
import re
import warnings

import numpy as np
import pandas as pd
import pytest

import pymc_dpdepth as dpd
from pymc_dpdepth import ptr
from pymc_dpdepth.ptr.information import SHARED
from pymc_dpdepth.ptr.outlyingness import OutlyingnessTable
from pymc_dpdepth.ptr.stability_test import stability_test
from pymc_dpdepth.ptr.threshold import _distance_from_uniform, _round_up, _smallest, _uniform_sample

SMALL = {"epsilon": 4.0, "delta": 1e-5, "radius": 5.0, "replicates": 4}


def test_the_suggested_threshold_passes_and_a_smaller_one_does_not():
    # Releases of fresh rows: at .99 each, 60 of them are refused more than 6 times with probability below 2e-5; at half
    # the threshold a breakdown of about half is left, and the test hardly ever passes.
    threshold = ptr.suggest_threshold(1001, 2, **SMALL)
    generator = np.random.default_rng(11)
    refused = {threshold: 0, threshold / 2: 0}
    for _ in range(60):
        rows = generator.normal(size=(1001, 2))
        for proposed in refused:
            with pytest.warns(dpd.PrivacyLeakWarning, match="random_seed"):
                release = dpd.propose_test_release(
                    rows,
                    epsilon=4.0,
                    delta=1e-5,
                    radius=5.0,
                    threshold=proposed,
                    random_seed=int(generator.integers(2**31)),
                )
            refused[proposed] += release.refused
    assert refused[threshold] <= 6 and refused[threshold / 2] > 20


def test_smallest_threshold_of_given_bounds():
    test = stability_test("laplace", 1.0, 0.0, 1e-3)
    generator = np.random.default_rng(0)
    bounds = np.cumsum(generator.exponential(size=(5, 30)), axis=1)
    passing = np.array([test.pass_probability(k) for k in range(1, 32)])

    def probability(threshold):
        return np.mean([passing[np.sum(row <= threshold)] for row in bounds])

    for asked in (0.2, 0.5, 0.9, 0.99):
        found = _smallest(bounds, test, asked)
        assert probability(found) >= asked > probability(np.nextafter(found, 0))


def test_more_rows_and_a_cap_allow_smaller_thresholds():
    base = ptr.suggest_threshold(1001, 2, **SMALL)
    assert ptr.suggest_threshold(4001, 2, **SMALL) < base / 2
    assert base < ptr.suggest_threshold(1001, 2, cap=5.0, **SMALL) < ptr.suggest_threshold(1001, 2, cap=None, **SMALL)
    assert base < ptr.suggest_threshold(1001, 2, **SMALL | {"epsilon": (1.0, 3.0)})
    assert base < ptr.suggest_threshold(1001, 2, directions=dpd.Directions.uniform(2, 50), **SMALL)


def test_populations_points_and_statistics():
    def scaled(generator, n):
        return 3.0 * generator.standard_normal((n, 2))

    assert ptr.suggest_threshold(1001, 2, population=scaled, **SMALL | {"radius": 15.0}) == pytest.approx(
        ptr.suggest_threshold(1001, 2, **SMALL), rel=0.01
    )
    near = ptr.suggest_threshold(1001, 2, points=[[0.0, 0.0]], **SMALL)
    assert near < ptr.suggest_threshold(1001, 2, points=[[0.0, 0.0], [3.0, 0.0]], **SMALL)
    median = ptr.suggest_threshold(1001, 2, epsilon=4.0, delta=1e-5, statistic=ptr.Median(), population="cauchy")
    assert 0 < median < 0.2
    assert ptr.suggest_threshold(1001, 2, noise="gaussian", **SMALL) > 0
    assert ptr.suggest_threshold(1001, 2, scale="iqr", **SMALL) > 0


def test_it_is_a_function_of_public_numbers():
    assert ptr.suggest_threshold(501, 1, **SMALL) == ptr.suggest_threshold(501, 1, **SMALL)
    assert ptr.suggest_threshold(501, 1, random_seed=5, **SMALL) != ptr.suggest_threshold(501, 1, **SMALL)


@pytest.mark.parametrize("value, expected", [(0.00703, 0.00703), (0.0070301, 0.00704), (9.991, 10.0), (123.4, 124.0)])
def test_rounding_upwards(value, expected):
    assert _round_up(value) == expected


def test_refusals():
    with pytest.raises(ValueError, match="more rows"):
        ptr.suggest_threshold(5, 2, **SMALL)
    with pytest.raises(ValueError, match="No finite threshold"):
        ptr.suggest_threshold(1000, 1, epsilon=4.0, delta=1e-5, statistic=ptr.TrimmedMean(0.0))
    with pytest.raises(ValueError, match="more spread"):
        ptr.suggest_threshold(
            1000, 1, epsilon=4.0, delta=1e-5, statistic=ptr.Median(), population=lambda generator, n: np.zeros((n, 1))
        )
    for options, error, message in (
        ({"population": "uniform"}, ValueError, "population"),
        ({"population": 3}, TypeError, "population"),
        ({"population": lambda generator, n: np.zeros(n)}, ValueError, "shape"),
        ({"pass_probability": 1.0}, ValueError, "pass_probability"),
        ({"pass_probability": "a"}, TypeError, "pass_probability"),
        ({"replicates": 0}, ValueError, "replicates"),
        ({"replicates": 1.5}, TypeError, "replicates: expected an integer"),
        ({"points": pd.DataFrame({"b": [0.0], "a": [1.0]})}, TypeError, "points: .*array"),
        ({"points": "points.csv"}, TypeError, "points: .*array"),
        ({"statistic": "median"}, TypeError, "StableStatistic"),
        ({"radius": None}, TypeError, "radius"),
        ({"scale": "sd"}, ValueError, "scale"),
    ):
        with pytest.raises(error, match=message):
            ptr.suggest_threshold(1001, 2, **SMALL | options)


# Thresholds that say nothing


def table_in(ball, d, center=0.0, cap=2.0):
    rows = (np.random.default_rng(5).normal(size=(501, d)) - center) / ball
    return OutlyingnessTable(rows, np.eye(d), "mad", cap)


def distance_on_a_grid(table, d, beta, cells):
    """Return the distance from the uniform law by the midpoint rule on the cube, cut off at the ball."""
    middles = (np.arange(cells) + 0.5) / cells * 2 - 1
    points = np.array(list(itertools.product(middles, repeat=d)))
    scores = table.values(points[np.sum(points**2, axis=1) <= 1])
    law = np.exp(-beta * scores)
    return 0.5 * np.abs(law / law.sum() - 1 / len(law)).sum()


@pytest.mark.parametrize(("d", "cells"), [(1, 40_000), (2, 400)])
@pytest.mark.parametrize("ball", [3.0, 20.0])
@pytest.mark.parametrize("center", [0.0, 2.0])
def test_the_distance_from_the_uniform_law_is_that_of_a_grid(d, cells, ball, center):
    # Each halving of the volume has 8192 / (20 d) points, 205 or more, so that a mean over one has a standard error of
    # at most .5 / sqrt(205) = .035 of its share. Shares are 1/2, 1/4, ...: sqrt(1/3) .035 = .02 in all, and three times
    # that is allowed. The grid is finer than that.
    table = table_in(ball, d, center)
    sample = _uniform_sample(table, np.random.default_rng(6))
    for beta in (0.3, 2.0, 5.0, 40.0):
        assert _distance_from_uniform(*sample, beta) == pytest.approx(
            distance_on_a_grid(table, d, beta, cells), abs=0.15
        )
    assert _distance_from_uniform(*sample, 0.0) == 0.0


def test_rows_in_a_tiny_part_of_a_large_ball_are_found():
    # In 40 dimensions and a ball of radius 1000 the place where O < 2 has a share of the volume below 1e-80. The law
    # with beta = 200 has a factor e^400 there, and lies there wholly; with beta = 20 it is the uniform one.
    table = table_in(1000.0, 40)
    sample = _uniform_sample(table, np.random.default_rng(6))
    assert _distance_from_uniform(*sample, 200.0) > 0.99 and _distance_from_uniform(*sample, 20.0) < 0.01


def warning_of(*arguments, **options):
    """Return the threshold, and the text of the warning or None."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        threshold = ptr.suggest_threshold(*arguments, **options)
    assert len(caught) <= 1 and all(each.category is UserWarning for each in caught)
    return threshold, str(caught[0].message) if caught else None


@pytest.mark.parametrize(
    ("n", "d", "radius"), [(100, 1, 5.0), (801, 1, 5.0), (801, 1, 50.0), (201, 2, 5.0), (801, 2, 5.0), (801, 2, 50.0)]
)
def test_a_median_that_is_half_a_uniform_draw_warns(n, d, radius):
    options = {"epsilon": 4.0, "delta": 1e-5, "radius": radius, "replicates": 2}
    threshold, message = warning_of(n, d, **options)
    # The rule, by quadrature, on other rows of the same population; the cases are not near its edge.
    rows = np.random.default_rng(8).normal(size=(n, d)) / radius
    table = OutlyingnessTable(rows, np.eye(d), "mad", 2.0)
    distance = distance_on_a_grid(table, d, 2.0 / (2 * threshold), 40_000 if d == 1 else 400)
    assert abs(distance - SHARED) > 0.05
    assert (message is not None) == (distance < SHARED)


def test_the_cure_that_the_warning_names_works():
    # Thresholds follow 1 / n and 1 / epsilon but for their random part, some 5% here. So 1.3 times the numbers must do,
    # and a third of them must not.
    options = {"epsilon": 4.0, "delta": 1e-5, "radius": 50.0, "replicates": 4}
    threshold, message = warning_of(801, 2, **options)
    assert f"threshold = {threshold:g} is uninformative: the released median shares" in message
    (rows,) = re.findall(r"at least (\S+) times as many rows", message)
    (epsilons,) = re.findall(r"at least (\S+) times epsilon = 4,", message)
    assert float(epsilons) == pytest.approx(math.sqrt(float(rows)), rel=0.05) and "delta (now 1e-05)" in message
    assert warning_of(int(1.3 * float(rows) * 801), 2, **options)[1] is None
    assert warning_of(801, 2, **options | {"epsilon": 1.3 * float(epsilons) * 4.0})[1] is None
    assert warning_of(int((1 + (float(rows) - 1) / 3) * 801), 2, **options)[1] is not None
    assert warning_of(801, 2, **options | {"radius": 5.0})[1] is None


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_values_that_noise_hides_warn(noise):
    options = {"epsilon": 4.0, "delta": 1e-5, "noise": noise, "replicates": 2}
    share = {"laplace": math.log(2.0), "gaussian": 0.6745}[noise]
    rows = np.random.default_rng(3).normal(size=(1001, 2)) * [1.0, 3.0]
    for points in ([[0.0, 0.0]], [[0.0, 0.0]] * 12):
        for n in (301, 4001):
            threshold, message = warning_of(n, 2, points=points, **options)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                release = dpd.propose_test_release(
                    rows, points=points, epsilon=4.0, delta=1e-5, noise=noise, threshold=threshold
                )
            assert [str(each.message) for each in caught] == ([message] if message else [])  # the same rule
            moved = share * release.mechanisms[0]["noise_scale"]
            assert (message is not None) == (moved > 1.0)
    assert f"noise moves each of {len(points)} released values" in warning_of(301, 2, points=points, **options)[1]


def test_statistics_that_noise_hides_warn():
    def scaled(generator, n):
        return generator.normal(size=(n, 2)) * [1.0, 1000.0]

    options = {"epsilon": 4.0, "delta": 1e-5, "replicates": 2}
    for statistic in (ptr.Median(), ptr.MAD(), ptr.InterquartileRange(), ptr.TrimmedMean(0.25)):
        for population in ("normal", scaled):
            seen = {n: warning_of(n, 2, statistic=statistic, population=population, **options) for n in (101, 4001)}
            assert seen[4001][1] is None
            threshold, message = seen[101]
            # Two values at epsilon_r = 2: noise of scale threshold, whose median size is log(2) of it. The MAD of the
            # widest column is .67 or 670, but for a few per cent.
            widest = 0.6745 * (1000.0 if population is scaled else 1.0)
            assert (message is not None) == (math.log(2.0) * threshold > widest)


class Share(ptr.StableStatistic):
    name = "share_of_positive_entries"

    def value(self, rows):
        return (rows > 0).mean(axis=0)

    def diameters(self, rows):
        n, shares = len(rows), (rows > 0).mean(axis=0)
        return lambda k: float(np.max(np.minimum(1, shares + k / n) - np.maximum(0, shares - k / n)))


def test_a_statistic_in_units_of_its_own_does_not_warn():
    assert warning_of(101, 1, statistic=Share(), epsilon=1.0, delta=1e-5, replicates=2)[1] is None
