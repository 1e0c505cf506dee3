"""Statistics of a user's own: what is wrong with one is found before the charge, and nothing depends on rows after."""

import math

import numpy as np
import pytest

import pymc_dpdepth as dpd
from pymc_dpdepth import ptr
from pymc_dpdepth.depths.aggregate import CLAMP
from pymc_dpdepth.ptr.stable import first_above

ROWS = np.random.default_rng(0).normal(size=(500, 2))
COST = {"epsilon": 2.0, "delta": 1e-6, "threshold": 0.5}
SHIPPED = [ptr.Median(), ptr.TrimmedMean(0.1), ptr.InterquartileRange(), ptr.MAD()]


class Own(ptr.StableStatistic):
    """A statistic that never moves, so that the test always passes (U_k = 0 and B = n + 1)."""

    name = "own"

    def __init__(self, values=(1.0, 2.0), diameter=lambda k: 0.0, labels=("a", "b"), described=None, name="own"):
        self.values, self.diameter, self.given, self.described, self.name = values, diameter, labels, described, name

    def value(self, rows):
        return self.values

    def diameters(self, rows):
        return self.diameter

    def labels(self, columns):
        return self.given

    def describe(self):
        return {"name": "own"} if self.described is None else self.described


class Raising(Own):
    def value(self, rows):
        raise RuntimeError("a bug")


class Mutating(Own):
    def diameters(self, rows):
        rows[:] = 0.0
        return self.diameter


WRONG = {
    "components": (Own(values=np.zeros(7)), ValueError, r"value.*2 components"),
    "a number": (Own(values=3.0), ValueError, r"value.*2 components"),
    "ragged": (Own(values=[[1.0], [1.0, 2.0]]), TypeError, r"value.*numbers"),
    "text": (Own(values=["x", "y"]), TypeError, r"value.*numbers"),
    "bound is text": (Own(diameter=lambda k: "wide"), TypeError, r"diameters.*got str"),
    "bound is a vector": (Own(diameter=lambda k: np.zeros(2)), TypeError, r"diameters.*got ndarray"),
    "no function": (Own(diameter=0.5), TypeError, r"diameters.*function"),
    "object in the record": (Own(described={"name": "own", "parameters": {"x": object()}}), ValueError, r"describe"),
    "own keys": (Own(described={"name": "own", "epsilon": 0.1}), ValueError, r"describe.*parameters"),
    "no name in the record": (Own(described={}), ValueError, r"describe.*name"),
    "record is a list": (Own(described=["own"]), ValueError, r"describe"),
    "another name in the record": (Own(described={"name": "median"}), ValueError, r"describe.*name"),
    "name is a number": (Own(name=5), TypeError, r"name.*text.*got int"),
    "empty name": (Own(name=""), ValueError, r"name"),
    "taken name": (Own(name="projection_median", described={"name": "projection_median"}), ValueError, r"name"),
    "label is a number": (Own(labels=[1, 2]), TypeError, r"labels"),
    "labels twice": (Own(labels=["a", "a"]), ValueError, r"labels.*different"),
    "no labels": (Own(labels=[]), ValueError, r"labels"),
    "raising": (Raising(), RuntimeError, "a bug"),
    "rows changed": (Mutating(), ValueError, "read-only"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_statistic_is_refused_before_the_charge(case, ledger):
    statistic, error, words = WRONG[case]
    rows = ROWS.copy()
    with pytest.raises(error, match=words):
        ptr.release_statistic(rows, statistic, ledger=ledger, **COST)
    assert not ledger.charges and (rows == ROWS).all()


def test_a_class_without_a_name_is_refused(ledger):
    class Nameless(ptr.StableStatistic):
        value, diameters = Own.value, Own.diameters

    with pytest.raises(TypeError, match="name"):
        ptr.release_statistic(ROWS, Nameless(), ledger=ledger, **COST)
    assert not ledger.charges


def test_a_right_one_is_released_and_its_record_is_read_back():
    described = {"name": "own", "parameters": {"share": 0.25, "steps": [1, 2]}}
    release = ptr.release_statistic(ROWS, Own(described=described), **COST)
    assert not release.refused and dpd.Release.from_dict(release.to_dict()) == release


def test_a_bound_that_is_no_number_counts_as_infinite():
    # With B = 1 the test passes with probability delta.
    nan = Own(diameter=lambda k: math.nan)
    assert first_above(nan.diameter, 0.5, 500) == 1 == nan.breakdown(ROWS, 0.5)
    assert ptr.release_statistic(ROWS, nan, **COST).refused
    later = Own(diameter=lambda k: 0.0 if k < 7 else math.nan)
    assert first_above(later.diameter, 0.5, 500) == 7 == later.breakdown(ROWS, 0.5)


def test_a_value_that_is_no_number_is_not_stable(ledger, monkeypatch):
    nan = Own(values=[1.0, math.nan])
    assert ptr.release_statistic(ROWS, nan, ledger=ledger, **COST).refused and len(ledger.charges) == 1
    # Where the test passes all the same, with probability delta, nothing may raise.
    monkeypatch.setattr("pymc_dpdepth.ptr.stability_test.StabilityTest.passes", lambda *_: True)
    release = ptr.release_statistic(ROWS, nan, ledger=ledger, **COST)
    assert np.abs(release.value.values).max() < 100
    endless = ptr.release_statistic(ROWS, Own(values=[-math.inf, math.inf]), ledger=ledger, **COST)
    assert np.isfinite(endless.value.values).all()


@pytest.mark.parametrize("statistic", SHIPPED, ids=lambda statistic: statistic.name)
def test_huge_entries_are_clamped_and_nothing_overflows(statistic, ledger):
    # Sums of such rows overflow, and differences become inf - inf: entries beyond 2^256 count as that.
    generator = np.random.default_rng(1)
    for _ in range(20):
        rows = generator.choice([1.7e308, -1.7e308, 0.0, 1.0], (41, 2))
        values, bound = statistic.value(rows), statistic.diameters(rows)
        bounds = [bound(k) for k in range(1, 42)]
        assert np.isfinite(values).all() and not np.isnan(bounds).any() and bounds == sorted(bounds)
        assert (values == statistic.value(np.clip(rows, -CLAMP, CLAMP))).all()
        other = rows.copy()
        other[generator.integers(41)] = generator.choice([1.7e308, -1.7e308], 2)
        assert np.abs(values - statistic.value(other)).max() <= bounds[0]
        ptr.release_statistic(rows, statistic, ledger=ledger, **COST)
    assert len(ledger.charges) == 20


def test_two_huge_rows_do_not_move_a_trimmed_mean():
    rows = np.zeros((500, 1))
    rows[:2] = 1.7e308
    release = ptr.release_statistic(rows, ptr.TrimmedMean(0.1), **COST)
    assert not release.refused and abs(release.value.item()) < 30


def test_everything_private_is_computed_before_the_charge():
    class Watching(Own):
        def value(self, rows):
            assert not charged
            return self.values

        def diameters(self, rows):
            def bound(k):
                assert not charged
                return 0.0

            return bound

    charged = []

    class Keeping:
        def charge(self, **what):
            charged.append(what)

    assert not ptr.release_statistic(ROWS, Watching(), ledger=Keeping(), **COST).refused
    assert len(charged) == 1
