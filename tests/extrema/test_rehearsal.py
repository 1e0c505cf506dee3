"""What would fail after the charge fails before it, with made-up sums; and what fails all the same loses no sums."""

import copy
import json
import pickle

import numpy as np
import pandas as pd
import pytest
from extrema_cases import BOUNDS, normal_rows
from test_noisy_sums import Shares, ones

import pymc_dpdepth as dpd
from pymc_dpdepth.extrema import Bernoulli, Gaussian, LinearRegression, bounded_statistic


def interval(rows, family, epsilon=20.0, **options):
    return dpd.extrema_interval(rows, family=family, epsilon=epsilon, **({"replicates": 99} | options))


class Plain(Shares):
    """Shares of ones, with one statistic."""

    name = "plain"
    statistic_names = ("ones",)

    def statistics(self, n, columns, released):
        return () if released else super().statistics(n, columns, released)

    def later_sensitivities(self, n, columns):
        return {}


def made(method, function, base=Plain):
    """Return a family with one method in the place of its own."""
    return type("Odd", (base,), {method: function})()


BROKEN = {
    "no model": ("model", lambda self, sums, n, deviations: 1 / 0, "ZeroDivisionError"),
    "no simulation": ("simulate", lambda self, model, n, replicates, generator: {}, "ones"),
    "one table": ("simulate", lambda self, model, n, replicates, generator: {"ones": np.ones(3)}, "shape"),
    "estimates of one": ("estimates", lambda self, sums, n, deviations: sums["ones"][..., :1], "parameters"),
    "infinite": ("estimates", lambda self, sums, n, deviations: sums["ones"] + np.inf, "floor"),
    "fewer parameters": ("parameters", lambda self, columns: ["a", "b"], "parameters"),
    "more parameters": ("parameters", lambda self, columns: ["a", "b", "c", "d"], "parameters"),
    "an empty name": ("parameters", lambda self, columns: ["a", "b", ""], "text"),
    "no parameters": ("parameters", lambda self, columns: None, "parameters"),
    "an array": ("describe", lambda self: {"name": "plain", "x": np.ones(2)}, "describe"),
    "NaN": ("describe", lambda self: {"name": "plain", "x": [1.0, float("nan")]}, "describe"),
    "a NumPy integer": ("describe", lambda self: {"name": "plain", "x": np.int64(1)}, "describe"),
    "an object": ("describe", lambda self: {"name": "plain", "x": object()}, "describe"),
    "a number for a name": ("describe", lambda self: {"name": "plain", "x": {1: 2}}, "describe"),
    "no description": ("describe", lambda self: None, "describe"),
    "no name": ("describe", lambda self: {}, "describe"),
    "another name": ("describe", lambda self: {"name": "other"}, "describe"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_family_that_would_fail_afterwards_is_refused_before_the_charge(name, ledger):
    method, function, words = BROKEN[name]
    with pytest.raises(ValueError, match=words):
        interval(ones(), made(method, function), ledger=ledger)
    assert not ledger.charges
    assert interval(ones(), Plain(), ledger=ledger).n == 40 and len(ledger.charges) == 1


@pytest.mark.parametrize(
    ("rows", "family"),
    [
        (pd.DataFrame(normal_rows(), columns=["", "b", "c"]), Gaussian(BOUNDS)),
        (
            np.column_stack([np.ones(50), np.repeat([1, 2], 25)]),
            Bernoulli("x0", by="x1", sizes={1: 25, 2: 25}, labels={1: "", 2: "b"}),
        ),
    ],
    ids=["column", "label"],
)
def test_empty_names_are_refused_before_the_charge(rows, family, ledger):
    with pytest.raises(ValueError, match="text|empty"):
        interval(rows, family, ledger=ledger)
    assert not ledger.charges


def test_tuples_in_a_description_are_lists_in_the_record():
    family = made("describe", lambda self: {"name": "plain", "bounds": (0, [1, (2, 3)])})
    ci = interval(ones(), family)
    record = dpd.ExtremaInterval.from_dict(json.loads(ci.to_json()))
    assert record == ci and record.to_dict()["family"]["bounds"] == [0, [1, [2, 3]]]
    assert record.recompute(replicates=50, family=family).replicates == 50


def test_the_rehearsal_reads_no_row_and_draws_no_noise_of_the_release(monkeypatch):
    """The made-up sums are the same whatever the rows: nothing but public numbers goes in."""
    seen = []

    class Watched(Plain):
        def model(self, sums, n, deviations):
            seen.append(sums["ones"].copy())
            return super().model(sums, n, deviations)

    for rows in (ones(), 1 - ones(), ones()):
        interval(rows, Watched())
    calls = len(seen) // 3
    assert calls >= 2 and len(seen) == 3 * calls  # a rehearsal, then the release
    firsts = seen[::calls]
    assert all((first == firsts[0]).all() for first in firsts)
    assert firsts[0] == pytest.approx([20.0] * 3, abs=6)  # in the middle of 0 and 40, with noise of scale 3 / 20
    assert not (seen[calls - 1] == seen[2 * calls - 1]).all()


# Noise of later statistics


@pytest.mark.parametrize("options", [{}, {"intercept": False}, {"orthogonal": True}], ids=str)
def test_noise_of_the_residual_is_planned_before_the_charge(options, ledger):
    rows = normal_rows(k=3)
    family = LinearRegression("x0", ["x1", "x2"], bounds=BOUNDS, **options)
    shares = dict.fromkeys(family.statistic_names, 1.0)
    with pytest.raises(ValueError, match="larger epsilon"):
        interval(rows, family, shares | {"residual": 1e-9}, ledger=ledger)
    assert not ledger.charges
    # 2^30 / 2^56 = 1.5e-8 is the least epsilon that noise of 64 bits has for it.
    interval(rows, family, shares | {"residual": 2e-8}, ledger=ledger)
    assert len(ledger.charges) == 1


@pytest.mark.parametrize("n", [1, 1000, 2**30])
def test_no_residual_is_more_sensitive_than_declared(n):
    family = LinearRegression("y", ["a", "b"], bounds={"y": (0, 1e5), "a": (-1, 1), "b": (2, 3)})
    largest = family.later_sensitivities(n, family.columns())["residual"]
    generator = np.random.default_rng(1)
    reached = 0
    first = family.statistics(n, family.columns(), {})
    for size in (0.0, 0.1, 1.0, 10.0):
        for _ in range(50):
            released = {one.name: size * n * generator.normal(size=one.size) for one in first}
            (residual,) = family.statistics(n, family.columns(), released)
            reached = max(reached, residual.sensitivity)
    assert largest / 2 < reached <= largest


class Undeclared(Shares):
    def later_sensitivities(self, n, columns):
        return {}


class Unclear(Shares):
    def later_sensitivities(self, n, columns):
        return {"many": 2.5}


class Unknown(Shares):
    def later_sensitivities(self, n, columns):
        return {"many": 2**30, "few": 1}


@pytest.mark.parametrize("family", [Undeclared(), Unclear(), Unknown()], ids=lambda family: type(family).__name__)
def test_later_statistics_are_declared_before_the_charge(family, ledger):
    with pytest.raises(ValueError, match="later_sensitivities"):
        interval(ones(), family, ledger=ledger)
    assert not ledger.charges


def test_a_later_statistic_is_not_more_sensitive_than_declared(ledger):
    class Louder(Shares):
        def later_sensitivities(self, n, columns):
            return {"many": bounded_statistic("many", [0], [1], n).sensitivity - 1}

    with pytest.raises(ValueError, match="declared"):
        interval(ones(), Louder(), ledger=ledger)
    assert not ledger.charges


# What fails all the same


class Late(Plain):
    """Fails with sums that are not made up, as a floor that was forgotten may."""

    broken = True

    def estimates(self, sums, n, deviations):
        estimates = super().estimates(sums, n, deviations)
        far = estimates.ndim == 1 and abs(estimates[0] - 0.5) > 0.15
        return estimates + np.inf if far and self.broken else estimates


class Mended(Late):
    broken = False


def test_released_sums_are_not_lost(ledger):
    """The share of ones in the first column is .2, and noise of scale 3 / 20 / 40 is far too small to hide that."""
    with pytest.raises(dpd.UnfinishedReleaseError, match=r"from_sums\(family, error.released\)") as caught:
        interval(ones(), Late(), ledger=ledger, sided="two", max_rows_per_unit=2)
    assert isinstance(caught.value.__cause__, FloatingPointError)
    released = caught.value.released
    assert len(ledger.charges) == 1 and released.epsilon == 40.0
    assert released.statistics["ones"] == pytest.approx(ones().sum(axis=0), abs=3)  # 20 scales
    assert "ones" in repr(released) and "UnfinishedReleaseError" not in repr(released)
    with pytest.raises(ValueError, match="read-only"):
        released.statistics["ones"][0] = 0.0
    ci = dpd.ExtremaInterval.from_sums(Mended(), released)
    assert len(ledger.charges) == 1
    assert (ci.epsilon, ci.sided, ci.n, ci.max_rows_per_unit, ci.guarantee) == (40.0, "two", 40, 2, "float64")
    assert ci.estimates.values == pytest.approx(released.statistics["ones"] / 40)
    assert dpd.ExtremaInterval.from_dict(json.loads(ci.to_json())) == ci
    # The same bootstrap again, also after the error has travelled.
    again = pickle.loads(pickle.dumps(released))
    assert (
        dpd.ExtremaInterval.from_sums(Mended(), again)
        == ci
        == dpd.ExtremaInterval.from_sums(Mended(), copy.deepcopy(caught.value).released)
    )


def test_sums_are_for_the_family_that_they_were_released_for():
    with pytest.raises(dpd.UnfinishedReleaseError) as caught:
        interval(ones(), Late())
    for family in (Gaussian(BOUNDS), Shares()):
        with pytest.raises(ValueError, match="family: expected"):
            dpd.ExtremaInterval.from_sums(family, caught.value.released)


def test_folds_are_not_lost_either():
    with pytest.raises(dpd.UnfinishedReleaseError) as caught:
        interval(ones(), Late(), correction="cv", final="fresh", folds=3, epsilon=50.0)
    released = caught.value.released
    assert released.folds.rows == (14, 13, 13) and released.released.rows == (40,)
    assert dpd.ExtremaInterval.from_sums(Mended(), released).correction_choice == "cv"


@pytest.mark.parametrize("method", ["entries", "statistics"])
def test_what_a_later_stage_does_not_reach_is_said(method, ledger):
    """Rows of the second stage cannot be had without the rows; the first stage's sums are there, and paid for."""
    started = []

    class Stops(Shares):
        def entries(self, rows, name, released):
            started.append(name)
            if name == "many" and method == "entries":
                raise RuntimeError("3.14")
            return super().entries(rows, name, released)

        def statistics(self, n, columns, released):
            if released and started and method == "statistics":
                raise RuntimeError("3.14")
            return super().statistics(n, columns, released)

    with pytest.raises(dpd.UnfinishedReleaseError, match="'many'") as caught:
        interval(ones(), Stops(), ledger=ledger)
    assert "3.14" not in str(caught.value) and len(ledger.charges) == 1
    released = caught.value.released
    assert set(released.statistics) == {"ones"}
    with pytest.raises(ValueError, match="many"):
        dpd.ExtremaInterval.from_sums(Shares(), released)


def test_before_the_charge_errors_hold_no_sums(empty_ledger):
    with pytest.raises(dpd.BudgetExceededError):
        interval(ones(), Late(), ledger=empty_ledger)
