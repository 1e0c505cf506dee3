"""`pymc-dpdepth scale-test`: the outcome, its record, charges, and refusals that leave nothing behind."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import pymc_dpdepth as dpd
from pymc_dpdepth.cli import app
from pymc_dpdepth.scale_test import ScaleTest

SENTINEL = 31.415926535
# 400 rows each at ratio 10 and epsilon 50: the rank sum is some 15 standard deviations from its mean.
SPREAD = 10.0


@pytest.fixture
def tables(tmp_path):
    """Write two CSV files whose columns come in different orders, with a value that must never be printed."""
    rows = np.random.default_rng(7).normal(size=(800, 2))
    rows[3, 0] = SENTINEL
    first, second = tmp_path / "x.csv", tmp_path / "y.csv"
    pd.DataFrame(rows[:400], columns=["a", "b"]).to_csv(first, index=False)
    wide = pd.DataFrame(SPREAD * rows[400:], columns=["a", "b"])
    wide.assign(word="x")[["word", "b", "a"]].to_csv(second, index=False)
    return first, second


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "study.jsonl"
    dpd.Ledger.create(path, epsilon=60.0, delta=1e-5, composition="basic", data_id="study-7")
    return path


def run(*arguments):
    command = ["scale-test", *(str(argument) for argument in arguments)]
    return CliRunner().invoke(app, command, env={"COLUMNS": "120"})


def test_outcome_cost_and_record(tables, ledger, tmp_path):
    out = tmp_path / "test.json"
    charged = ["--ledger", ledger, "--data-id", "study-7"]
    result = run(*tables, "--epsilon", 50, "--alternative", "greater", *charged, "--out", out)
    assert result.exit_code == 0, result.output
    test = ScaleTest.from_json(out)
    assert (test.n, test.m, test.alternative, test.epsilon, test.guarantee) == (400, 400, "greater", 50.0, "exact")
    assert test.p_value < 1e-6
    assert test.depth["name"] == "integrated_rank_weighted"
    shown = {line.split("  ")[0]: line for line in result.stdout.splitlines()}
    assert f"{test.p_value:.6g}" in shown["p-value"] and f"{test.statistic:,}" in shown["statistic"]
    assert "Y is more spread out than X" in shown["alternative"] and "400 of X, 400 of Y" in shown["rows"]
    assert "50, once for both tables; delta 0" in shown["epsilon spent"] and "exact: " in shown["guarantee"]
    assert "normal law" in shown["read from"] and "discrete Laplace noise" in shown["sampler"]
    assert f"record: {out}" in result.stdout.splitlines()
    assert f"ledger charged: {ledger}" in result.stdout.splitlines()
    (entry,) = dpd.Ledger(ledger).entries()
    assert (entry["label"], entry["epsilon"], entry["delta"]) == ("scale_test", 50.0, 0.0)
    assert str(SENTINEL) not in result.output + out.read_text()


def test_options_reach_the_library(tables, ledger, tmp_path):
    out = tmp_path / "test.json"
    more = ["--delta", 1e-6, "--depth", "spatial", "--center", "1,0", "--scale", "10,2", "--nonfinite", "center"]
    charged = ["--ledger", ledger, "--data-id", "study-7", "--label", "spread in May"]
    seeded = ["--max-rows-per-unit", 2, "--simulate-seed", 3]
    result = run(*tables, "--columns", "b,a", "--epsilon", 1, *more, *charged, *seeded, "--out", out)
    assert result.exit_code == 0, result.output
    assert "Note: --simulate-seed makes this draw reproducible" in result.stderr
    assert "It is a simulation, not private" in result.stdout
    test = ScaleTest.from_json(out)
    assert (test.epsilon, test.delta, test.simulation, test.max_rows_per_unit) == (2.0, 1e-6, True, 2)
    (record,) = test.depths.mechanisms
    assert (record["depth"]["name"], record["center"], record["scale"]) == ("spatial", [1.0, 0.0], [10.0, 2.0])
    assert test.depths.sampler == "gaussian" and record["nonfinite"] == "center"
    assert [entry["label"] for entry in dpd.Ledger(ledger).entries()] == ["spread in May"]
    again = tmp_path / "again.json"
    result = run(*tables, "--columns", "b,a", "--epsilon", 1, *more, *seeded, "--out", again)
    assert result.exit_code == 0 and again.read_text() == out.read_text()
    # The same as in Python, whose second sample is read by the names of the first.
    with pytest.warns(dpd.PrivacyLeakWarning):
        expected = dpd.private_scale_test(
            pd.read_csv(tables[0])[["b", "a"]],
            pd.read_csv(tables[1]),
            epsilon=1.0,
            delta=1e-6,
            depth="spatial",
            standardize=([1.0, 0.0], [10.0, 2.0]),
            nonfinite="center",
            max_rows_per_unit=2,
            random_seed=3,
        )
    assert test == expected


def test_directions_and_smoothing(tables, tmp_path):
    out = tmp_path / "test.json"
    options = ["--depth", "integrated_dual", "--smoothing", 2, "--directions", "orthonormal", "--directions-seed", 5]
    result = run(*tables, "--epsilon", 1, *options, "--center", "0,0", "--scale", "1,1", "--out", out)
    assert result.exit_code == 0, result.output
    depth = ScaleTest.from_json(out).depth
    assert depth["smoothing"] == 2.0 and depth["directions"]["kind"] == "orthonormal"
    assert depth["directions"]["seed"] == 5


def test_a_key_names_both_tables_in_one(tables, tmp_path):
    key, path, pooled = tmp_path / "key.txt", tmp_path / "keyed.jsonl", tmp_path / "pooled.csv"
    dpd.Ledger.create_key(key)
    both = [pd.read_csv(each)[["a", "b"]] for each in tables]
    pd.concat(both[::-1]).to_csv(pooled, index=False)  # rows have no order in a fingerprint
    dpd.Ledger.create(path, epsilon=9.0, data=pooled, key=key)
    result = run(*tables, "--epsilon", 1, "--ledger", path, "--key", key)
    assert result.exit_code == 0, result.output
    both[1].loc[3, "b"] += 1.0
    other = tmp_path / "other.csv"
    both[1].to_csv(other, index=False)
    for arguments in ((tables[0], other), (*tables, "--columns", "a"), (tables[0], tables[0])):
        refused = run(*arguments, "--epsilon", 1, "--ledger", path, "--key", key)
        assert refused.exit_code == 2 and "these rows and this key" in refused.stderr
    assert len(dpd.Ledger(path).entries()) == 1


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--epsilon", "0"], "epsilon"),
        (["--epsilon", "1", "--delta", "1"], "delta"),
        (["--epsilon", "1", "--alternative", "more"], "more spread out"),
        (["--epsilon", "1", "--depth", "projection"], "projection"),
        (["--epsilon", "1", "--depth", "nothing"], "nothing"),
        (["--epsilon", "1", "--smoothing", "2"], "--smoothing"),
        (["--epsilon", "1", "--center", "1,2"], "--scale"),
        (["--epsilon", "1", "--nonfinite", "center"], "--center and --scale"),
        (["--epsilon", "1", "--columns", "a,word"], "'word'"),
        (["--epsilon", "1", "--simulate-seed", "-1"], "--simulate-seed"),
        (["--epsilon", "100"], "asks for epsilon=100"),
        ([], "epsilon"),
    ],
)
def test_a_refusal_is_one_line_and_leaves_nothing_behind(tables, ledger, tmp_path, arguments, word):
    out = tmp_path / "test.json"
    result = run(*tables, "--ledger", ledger, "--data-id", "study-7", "--out", out, *arguments)
    assert result.exit_code == 2 and result.stdout == ""
    assert len(result.stderr.strip().splitlines()) == 1 and result.stderr.startswith("Error: ")
    assert word in result.stderr and str(SENTINEL) not in result.output
    assert not out.exists() and dpd.Ledger(ledger).spent().epsilon == 0.0


def test_tables_without_rows_or_names_in_common(tables, tmp_path):
    empty, other = tmp_path / "empty.csv", tmp_path / "other.csv"
    empty.write_text("a,b\n")
    other.write_text("a,c\n1,2\n")
    for arguments, word in (
        ((tables[0], empty), "empty.csv"),
        ((empty, tables[1], "--columns", "a,b"), "empty.csv has column names and no rows"),
        ((tables[0], other), "'b'"),
        ((tables[0], tmp_path / "none.csv"), "none.csv"),
        ((tables[0], tables[1], "--label", "x"), "--label: expected with --ledger"),
    ):
        result = run(*arguments, "--epsilon", 1)
        assert result.exit_code == 2 and word in result.stderr and result.stdout == ""


@pytest.mark.parametrize("position", [0, 1])
def test_the_output_may_not_replace_a_table(tables, position):
    before = tables[position].read_bytes()
    result = run(*tables, "--epsilon", 1, "--out", tables[position], "--overwrite")
    assert result.exit_code == 2 and "expected another file than the" in result.stderr
    assert tables[position].read_bytes() == before


def test_an_existing_record_is_kept_or_replaced(tables, tmp_path):
    out = tmp_path / "test.json"
    out.write_text("keep")
    assert run(*tables, "--epsilon", 1, "--out", out).exit_code == 2 and out.read_text() == "keep"
    assert run(*tables, "--epsilon", 1, "--out", out, "--overwrite").exit_code == 0
    assert json.loads(out.read_text())["schema"] == "pymc_dpdepth.scale_test"
    assert "--out FILE keeps it" in run(*tables, "--epsilon", 1).stdout
