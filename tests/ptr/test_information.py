"""Warnings of propose-test-release by public numbers alone: a test that cannot fail, and releases that say nothing."""

import math
import warnings

import numpy as np
import pytest

import pymc_dpdepth as dpd
from pymc_dpdepth import ptr

ROWS = np.random.default_rng(0).normal(size=(2001, 2))
COST = {"epsilon": 2.0, "delta": 1e-6}


def warnings_of(rows=ROWS, **options):
    """Return the release and the texts of the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        release = dpd.propose_test_release(rows, **COST | options)
    assert all(each.category is UserWarning for each in caught)
    return release, [str(each.message) for each in caught]


def test_a_test_that_every_table_passes_is_warned_of():
    release, (first,) = warnings_of(threshold=2.0, radius=5.0)
    assert not release.refused and "threshold = 2 is not below cap = 2" in first and "suggest_threshold" in first
    wild = np.random.default_rng(1).standard_cauchy((30, 2)) * 1e9
    assert not warnings_of(wild, threshold=5.0, radius=5.0, cap=5.0)[0].refused
    assert not warnings_of(wild, threshold=2.0, radius=5.0)[0].refused
    assert warnings_of(threshold=0.05, radius=5.0)[1] == []


@pytest.mark.parametrize("cap", [0.5, 2.0, 5.0])
def test_a_median_that_is_half_uniform_for_every_table_is_warned_of(cap):
    # The rule, by the best of all densities between exp(-beta cap) and 1 on a ball, searched over its share.
    shares, seen = np.linspace(0.001, 0.999, 999), set()
    for threshold in cap * np.array([0.05, 0.1, 0.2, 0.3, 0.5, 0.9]):
        low = math.exp(-cap / (2 * threshold))
        distance = np.max(shares / (shares + (1 - shares) * low) - shares)
        assert abs(distance - 0.5) > 1e-3
        texts = warnings_of(threshold=float(threshold), radius=5.0, cap=cap)[1]
        assert bool(texts) == (distance < 0.5)
        seen.add(bool(texts))
        if texts:
            assert f"shares {1 - distance:.2g} of its law, or more" in texts[0] and "whatever the rows" in texts[0]
    assert seen == {True, False}


def test_the_warning_does_not_depend_on_the_rows():
    for options in ({"threshold": 0.5, "radius": 5.0}, {"threshold": 0.5, "points": [[0.0, 0.0]] * 5}):
        texts = [warnings_of(rows, **options)[1] for rows in (ROWS, np.zeros((2001, 2)), ROWS * 1e100)]
        assert texts[0] == texts[1] == texts[2] != []


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_values_that_noise_hides_are_warned_of(noise):
    median = {"laplace": math.log(2.0), "gaussian": 0.6745}[noise]
    for threshold in (0.01, 0.1, 0.4, 2.0):
        release, texts = warnings_of(threshold=threshold, points=[[0.0, 0.0], [1.0, 1.0]], noise=noise)
        assert bool(texts) == (median * release.mechanisms[0]["noise_scale"] > 1.0)


def test_a_suggested_threshold_is_not_warned_of():
    # Its own warning knows the population, and comes earlier.
    threshold = ptr.suggest_threshold(4001, 2, radius=5.0, replicates=2, **COST)
    assert warnings_of(np.random.default_rng(2).normal(size=(4001, 2)), threshold=threshold, radius=5.0)[1] == []


def test_nothing_is_said_of_a_statistic_in_units_of_its_own():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ptr.release_statistic(ROWS, ptr.Median(), threshold=50.0, **COST)
