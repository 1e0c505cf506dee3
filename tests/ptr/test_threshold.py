import numpy as np
import pytest

import pymc_dpdepth as dpd
from pymc_dpdepth import ptr
from pymc_dpdepth.ptr.stability_test import stability_test
from pymc_dpdepth.ptr.threshold import _round_up, _smallest

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
        ({"replicates": 0}, ValueError, "replicates"),
        ({"statistic": "median"}, TypeError, "StableStatistic"),
        ({"radius": None}, TypeError, "radius"),
        ({"scale": "sd"}, ValueError, "scale"),
    ):
        with pytest.raises(error, match=message):
            ptr.suggest_threshold(1001, 2, **SMALL | options)
