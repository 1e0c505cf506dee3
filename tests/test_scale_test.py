"""The private scale test: law of the rank sum, size, power, direction, record, cost, and refusals before the charge."""

import itertools
import json
import math
import os
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pymc_dpdepth as dpd
from pymc_dpdepth.scale_test import ScaleTest, rank_sum_test

GENERATOR = np.random.default_rng(6)
X, Y = GENERATOR.normal(size=(40, 2)), GENERATOR.normal(size=(30, 2))


# The law of the rank sum


@pytest.mark.parametrize("n", [1, 3, 4, 6])
@pytest.mark.parametrize("values", [[3, 1, 4, 2, 7, 6, 5], [1, 1, 2, 2, 2, 3, 9], [5, 5, 5, 5, 5, 5, 5]], ids=str)
def test_p_values_are_those_of_all_choices_and_keep_their_level(values, n):
    values = np.array(values, dtype=float)
    ranks = stats.rankdata(values)
    m = len(values) - n
    sums = np.array([ranks[list(second)].sum() for second in itertools.combinations(range(len(values)), m)])
    p_values = {"greater": [], "less": [], "two-sided": []}
    for second in itertools.combinations(range(len(values)), m):
        first = [i for i in range(len(values)) if i not in second]
        ordered = values[[*first, *second]]
        low, high = np.mean(sums <= ranks[list(second)].sum()), np.mean(sums >= ranks[list(second)].sum())
        expected = {"greater": low, "less": high, "two-sided": min(1.0, 2 * min(low, high))}
        for alternative, p_value in expected.items():
            statistic, got, null = rank_sum_test(ordered, n, alternative)
            assert (statistic, null) == (ranks[list(second)].sum(), "exact")
            assert got == pytest.approx(p_value, rel=1e-12)
            p_values[alternative].append(got)
    for found in p_values.values():  # P(p <= a) <= a, at each p that occurs
        found = np.array(found)
        assert all(np.mean(found <= level * (1 + 1e-12)) <= level * (1 + 1e-12) for level in found)


@pytest.mark.parametrize("sizes", [(20, 20), (9, 30), (30, 9), (33, 33)])
def test_without_ties_the_law_is_that_of_scipy(sizes):
    values = np.random.default_rng(2).permutation(sum(sizes)).astype(float)
    for alternative, theirs in (("greater", "less"), ("less", "greater"), ("two-sided", "two-sided")):
        statistic, p_value, null = rank_sum_test(values, sizes[0], alternative)
        other = stats.mannwhitneyu(values[sizes[0] :], values[: sizes[0]], alternative=theirs, method="exact")
        assert null == "exact" and statistic - sizes[1] * (sizes[1] + 1) / 2 == other.statistic
        assert p_value == pytest.approx(other.pvalue, rel=1e-10)


@pytest.mark.parametrize("sizes", [(60, 50), (40, 400), (700, 600)])
def test_of_many_rows_with_ties_the_law_is_the_corrected_normal_one(sizes):
    values = np.random.default_rng(3).integers(0, 12, size=sum(sizes)).astype(float)
    for alternative, theirs in (("greater", "less"), ("less", "greater"), ("two-sided", "two-sided")):
        _, p_value, null = rank_sum_test(values, sizes[0], alternative)
        other = stats.mannwhitneyu(values[sizes[0] :], values[: sizes[0]], alternative=theirs, method="asymptotic")
        assert null == "normal" and p_value == pytest.approx(other.pvalue, rel=1e-10)


def test_the_two_laws_meet_where_one_takes_over():
    # The error of the normal law with a continuity correction is of order 1 / N; at N = 66 it is below .005.
    generator = np.random.default_rng(4)
    for shift in (0.0, 0.3, 0.6):
        values = np.concatenate([generator.normal(shift, size=33), generator.normal(size=33)])
        exact = rank_sum_test(values, 33, "greater")
        normal = stats.mannwhitneyu(values[33:], values[:33], alternative="less", method="asymptotic").pvalue
        assert exact[2] == "exact" and abs(exact[1] - normal) < 0.005
    assert rank_sum_test(np.arange(67.0), 33)[2] == "normal"
    assert rank_sum_test(np.arange(1000.0), 993)[2] == "exact"


def test_equal_values_say_nothing():
    assert rank_sum_test(np.zeros(12), 5)[1] == rank_sum_test(np.zeros(200), 50)[1] == 1.0


# Size and power


def test_permuted_labels_are_rejected_at_the_level():
    # A table with clusters and ties, far from one law; labels given at random make both samples exchangeable. At N = 80
    # the rank sum moves in steps of .0005 in p, and the normal law is off by less than that. The bound is 3 Monte Carlo
    # errors, 3 sqrt(.05 .95 / 500) = .0292; both shares are inside with probability .995. Labels and noise are seeded.
    rows = np.concatenate([X[:30], np.zeros((20, 2)), 8.0 + 3.0 * Y])
    generator, replicates, p_values = np.random.default_rng(5), 500, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpd.PrivacyLeakWarning)
        for seed in range(replicates):
            labels = generator.permutation(len(rows))
            first, second = rows[labels[:45]], rows[labels[45:]]
            test = dpd.private_scale_test(
                first, second, depth="halfspace", directions="axes", epsilon=20.0, random_seed=seed
            )
            p_values.append([test.p_value, ScaleTest.from_release(test.depths, 45, "greater").p_value])
    assert test.null == "normal"
    shares = np.mean(np.array(p_values) <= 0.05, axis=0)
    assert np.abs(shares - 0.05).max() <= 3 * math.sqrt(0.05 * 0.95 / replicates)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_more_spread_out_sample_is_named_by_greater(delta):
    # 400 rows each at ratio 10 and epsilon 50: the noise is below the depths' differences, and the statistic without
    # it is some 15 standard deviations from its mean.
    rows = np.random.default_rng(7).normal(size=(800, 2))
    inner, outer = rows[:400], 10.0 * rows[400:]
    options = {"epsilon": 50.0, "delta": delta}
    assert dpd.private_scale_test(inner, outer, alternative="greater", **options).p_value < 1e-6
    assert dpd.private_scale_test(inner, outer, alternative="less", **options).p_value > 0.999
    assert dpd.private_scale_test(outer, inner, alternative="less", **options).p_value < 1e-6
    assert dpd.private_scale_test(inner, outer, **options).p_value < 1e-6


# Record and cost


def test_the_cost_is_that_of_the_noisy_depths_and_all_else_follows_from_them(ledger):
    test = dpd.private_scale_test(X, Y, epsilon=2.0, ledger=ledger, max_rows_per_unit=3, alternative="less")
    assert ledger.charges == [(6.0, 0.0, "scale_test")]
    assert (test.epsilon, test.delta, test.n, test.m) == (6.0, 0.0, 40, 30)
    assert (test.guarantee, test.neighboring, test.simulation) == ("exact", "replace_one", False)
    assert test.max_rows_per_unit == 3 and test.depth["name"] == "integrated_rank_weighted"
    assert (test.statistic, test.p_value, test.null) == rank_sum_test(test.depths.value.values, 40, "less")
    (record,) = test.depths.mechanisms
    # The proved sensitivity of the vector at all N = 70 rows, 2 (N - 1) / N.
    assert record["n"] == 70 and record["clamped"] is None
    assert record["vector_sensitivity"] == pytest.approx(2 * 69 / 70)
    assert record["noise_scale"] == pytest.approx(2 * 69 / 70 / 2.0)
    dpd.private_scale_test(X, Y, epsilon=2.0, delta=1e-9, ledger=ledger, label="spread of a and b")
    assert ledger.charges[1:] == [(2.0, 1e-9, "spread of a and b")]


def test_the_record_reads_back_and_an_altered_one_is_refused():
    test = dpd.private_scale_test(X, Y, epsilon=2.0)
    record = json.loads(json.dumps(test.to_dict(), allow_nan=False))
    assert ScaleTest.from_dict(record) == test
    for name, value in (
        ("p_value", 0.001),
        ("statistic", 1.0),
        ("epsilon", 0.5),
        ("guarantee", "float64"),
        ("m", 31),
        ("null", "normal2"),
        ("simulation", True),
        ("max_rows_per_unit", 2),
        ("more", 1),
    ):
        with pytest.raises(ValueError, match=f"altered: .*{name}"):
            ScaleTest.from_dict(record | {name: value})
    with pytest.raises(ValueError, match="altered: m, "):  # all else follows from n
        ScaleTest.from_dict(record | {"n": 39})
    for record_of_another_kind in ({"n": 40}, [], None, test.depths.to_dict()):
        with pytest.raises(ValueError, match="schema 'pymc_dpdepth.scale_test'; write one with ScaleTest.to_json"):
            ScaleTest.from_dict(record_of_another_kind)
    depths = dpd.private_depth(X, np.concatenate([Y, Y]), epsilon=1.0)
    with pytest.raises(ValueError, match="private_sample_depths"):
        ScaleTest.from_release(depths, 10)


def test_the_json_file_is_that_of_the_record(tmp_path):
    path = tmp_path / "test.json"
    test = dpd.private_scale_test(X, Y, epsilon=2.0, delta=1e-9, alternative="less")
    text = test.to_json(path)
    assert path.read_text() == text == test.to_json() and json.loads(text) == test.to_dict()
    assert ScaleTest.from_json(path) == test and os.listdir(tmp_path) == ["test.json"]
    record = json.loads(text)
    assert (record["schema"], record["schema_version"]) == ("pymc_dpdepth.scale_test", 1)
    assert record["depths"]["schema"] == "pymc_dpdepth.release"
    # The release inside can be taken out and read by itself; a test is no release.
    assert dpd.Release.from_dict(record["depths"]) == test.depths
    with pytest.raises(ValueError, match="pymc_dpdepth.release"):
        dpd.Release.from_json(path)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "test.json"
    test = dpd.private_scale_test(X, Y, epsilon=2.0)
    before = test.to_json(path)

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pymc_dpdepth.record_files.os.replace", full)
    with pytest.raises(OSError, match="No space"):
        dpd.private_scale_test(X, Y, epsilon=2.0).to_json(path)
    assert os.listdir(tmp_path) == ["test.json"] and path.read_text() == before


@pytest.mark.parametrize("version", [0, 2, True, 1.0, "1", None])
def test_records_of_other_versions_are_refused(version):
    record = dpd.private_scale_test(X, Y, epsilon=2.0).to_dict()
    with pytest.raises(ValueError, match="schema_version 1"):
        ScaleTest.from_dict(record | {"schema_version": version})


def test_records_with_contradictions_inside_are_refused(tmp_path):
    record = dpd.private_scale_test(X, Y, epsilon=2.0).to_dict()
    depths = record["depths"]
    for wrong, message in (
        ({"depths": depths | {"epsilon": 0.5}}, "epsilon"),  # below what its mechanism costs
        ({"depths": depths | {"guarantee": "asymptotic"}}, "guarantee"),
        ({"depths": depths | {"schema_version": 2}}, "schema_version"),
        ({"depths": 3}, "schema"),
        ({"n": 0}, "both samples"),
        ({"n": 40.0}, "both samples"),
        ({"alternative": "more"}, "alternative"),
        ({"p_value": "small"}, "altered: p_value"),
        ({"p_value": record["p_value"] * (1 + 1e-6)}, "altered: p_value"),
    ):
        with pytest.raises(ValueError, match=message):
            ScaleTest.from_dict(record | wrong)
    for name in record:
        with pytest.raises(ValueError, match=name):
            ScaleTest.from_dict({field: value for field, value in record.items() if field != name})
    rounded = record | {"p_value": float(np.nextafter(record["p_value"], 0.0))}
    assert ScaleTest.from_dict(rounded).to_dict() == record
    path = tmp_path / "test.json"
    for text in ("{", '{"schema": NaN}', '{"n": 1, "n": 2}', "[" * 100_000):
        path.write_text(text)
        with pytest.raises(ValueError, match="JSON of a scale test"):
            ScaleTest.from_json(path)


def test_the_second_sample_is_read_by_the_names_of_the_first():
    frame = pd.DataFrame(X, columns=["a", "b"])
    other = pd.DataFrame({"b": Y[:, 1], "unused": 0.0, "a": Y[:, 0]})
    with pytest.warns(dpd.PrivacyLeakWarning, match="random_seed"):
        tests = [
            dpd.private_scale_test(*pair, epsilon=1.0, random_seed=1)
            for pair in ((X, Y), (frame, other), (frame, Y), (frame, other[["a", "b"]]))
        ]
    assert all(test == tests[0] for test in tests)


# Refusals


@pytest.mark.parametrize(
    ("pair", "options", "error", "message"),
    [
        ((X, Y), {"alternative": "more"}, ValueError, "more spread out"),
        ((X, Y), {"epsilon": 0.0}, ValueError, "epsilon"),
        ((X, Y), {"depth": dpd.Projection("mad")}, dpd.UnboundedSensitivityError, "propose_test_release"),
        ((X, Y[:, :1]), {}, ValueError, "Y: expected 2 columns"),
        ((X, Y[:0]), {}, ValueError, "Y: expected at least one row"),
        ((X[:0], Y), {}, ValueError, "X: expected at least one row"),
        ((X, np.where(Y > 1, np.nan, Y)), {}, ValueError, "missing or infinite"),
        ((X, Y), {"label": 3}, (TypeError, ValueError), "label"),
    ],
)
def test_bad_input_is_refused_before_the_charge(pair, options, error, message, ledger):
    with pytest.raises(error, match=message):
        dpd.private_scale_test(*pair, **({"epsilon": 1.0, "ledger": ledger} | options))
    assert ledger.charges == []


@pytest.mark.parametrize("n", [0, 5, -1, True, 2.0])
def test_both_samples_need_a_value(n):
    with pytest.raises(ValueError, match="both samples"):
        rank_sum_test(np.arange(5.0), n)


def test_an_empty_budget_stops_the_test(empty_ledger):
    with pytest.raises(dpd.BudgetExceededError):
        dpd.private_scale_test(X, Y, epsilon=1.0, ledger=empty_ledger)


def test_one_row_in_each_sample_and_one_column_work():
    test = dpd.private_scale_test([[1.0]], [[2.0]], epsilon=1.0)
    assert (test.n, test.m, test.null) == (1, 1, "exact") and test.p_value == 1.0
