"""The command ptr-median: what a user sees, that a refusal is an output, and that bad input leaves nothing behind."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import pymc_dpdepth as dpd
from pymc_dpdepth.cli import app

SENTINEL = 31.415926535
# At these settings the breakdown of the table below is about 40: a refusal has a probability below 1e-12.
PASSING = ["--epsilon", 4, "--delta", 1e-6, "--threshold", 0.3, "--center", "50,5", "--radius", "50,10"]


@pytest.fixture
def table(tmp_path):
    generator = np.random.default_rng(0)
    frame = pd.DataFrame({"a": generator.normal(40, 10, 2001), "b": generator.normal(4, 2, 2001), "word": "x"})
    frame.loc[3, "a"] = SENTINEL
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    return path


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_median_prints_and_writes(table, tmp_path):
    out = tmp_path / "release.json"
    result = run("ptr-median", table, "--columns", "a,b", *PASSING, "--directions", 20, "--out", out)
    assert result.exit_code == 0, result.stderr
    release = dpd.Release.from_json(out)
    assert not release.refused and (release.epsilon, release.delta) == (4.0, 1e-6)
    for name, value in zip(("a", "b"), release.value.values, strict=True):
        assert any(line.split() == [name, repr(float(value))] for line in result.stdout.splitlines())
    (record,) = release.mechanisms
    assert record["radius"] == [50.0, 10.0] and record["depth"]["directions"]["m"] == 20
    assert str(SENTINEL) not in result.output


def test_directions_are_those_of_the_other_commands(table, tmp_path):
    out = tmp_path / "release.json"
    for words, kind in (("balanced:6", "balanced"), ("uniform:6", "uniform"), ("6", "uniform"), ("axes", "axes")):
        result = run(
            *("ptr-median", table, "--columns", "a,b", *PASSING, "--directions", words, "--out", out, "--overwrite")
        )
        assert result.exit_code == 0, result.stderr
        directions = dpd.Release.from_json(out).mechanisms[0]["depth"]["directions"]
        assert (directions["kind"], directions["m"]) == (kind, 2 if kind == "axes" else 6)


def test_refusal_is_an_output(table, tmp_path):
    out = tmp_path / "release.json"
    options = ["--epsilon", "3,1", "--delta", 1e-6, "--threshold", 1e-6, "--radius", 50, "--cap", "none"]
    result = run("ptr-median", table, "--columns", "a,b", *options, "--scale", "iqr", "--out", out)
    assert result.exit_code == 0, result.stderr
    assert "refused" in result.stdout and "epsilon spent  4; delta 1e-06" in result.stdout
    assert dpd.Release.from_json(out).refused
    assert json.loads(out.read_text())["mechanisms"][0]["test_epsilon"] == 3.0


def test_ledger_is_charged(table, tmp_path):
    ledger = tmp_path / "ledger.jsonl"
    budget = ["--epsilon", 5, "--delta", 1e-5, "--composition", "basic", "--data-id", "people"]
    assert run("ledger", "init", ledger, *budget).exit_code == 0
    request = ["ptr-median", table, "--columns", "a,b", *PASSING, "--ledger", ledger, "--data-id", "people"]
    assert run(*request).exit_code == 0
    again = run(*request)
    assert again.exit_code == 2 and "epsilon" in again.stderr


def test_a_key_and_a_label(table, tmp_path):
    key, ledger = tmp_path / "key.txt", tmp_path / "keyed.jsonl"
    assert run("ledger", "key", key).exit_code == 0
    budget = [
        "--epsilon",
        20,
        "--delta",
        1e-4,
        "--composition",
        "basic",
        "--data",
        table,
        "--key",
        key,
        "--columns",
        "a,b",
    ]
    assert run("ledger", "init", ledger, *budget).exit_code == 0
    request = ["--columns", "a", *PASSING, "--center", 50, "--radius", 50, "--ledger", ledger, "--key", key]
    named = run("ptr-median", table, *request, "--label", "ages in May")
    assert named.exit_code == 0, named.stderr
    assert run("ptr-median", table, *request).exit_code == 0
    frame = pd.read_csv(table)
    frame.loc[5, "b"] += 1.0  # a column that is not used; the table is another one all the same
    other = tmp_path / "other.csv"
    frame.to_csv(other, index=False)
    refused = run("ptr-median", other, *request)
    assert refused.exit_code == 2 and "these rows and this key" in refused.stderr
    assert [entry["label"] for entry in dpd.Ledger(ledger).entries()] == ["ages in May", "projection_median"]


def test_a_sampler_may_be_named(table):
    asymptotic = run("ptr-median", table, "--columns", "a,b", *PASSING, "--sampler", "smc")
    assert asymptotic.exit_code == 2 and "--accept-asymptotic" in asymptotic.stderr
    assert "--sampler branch_and_bound" in asymptotic.stderr
    assert run("ptr-median", table, "--columns", "a,b", *PASSING, "--sampler", "branch_and_bound").exit_code == 0


@pytest.mark.parametrize(
    "options, words",
    [
        (["--radius", "x"], "--radius"),
        (["--epsilon", "1,2,3"], "pair"),
        (["--delta", 0.9], "delta"),
        (["--threshold", -1], "threshold"),
        (["--scale", "sd"], "scale"),
        (["--cap", "much"], "--cap"),
        (["--noise", "normal"], "noise"),
        (["--label", "x"], "--ledger"),
        (["--sampler", "nuts"], "sampler"),
        (["--directions", 0], "--directions: expected axes, orthonormal, uniform:M or balanced:M"),
        (["--directions", "north"], "--directions: expected axes, orthonormal, uniform:M or balanced:M"),
        (["--columns", "a,word"], "word"),
    ],
)
def test_bad_input_is_one_line(table, tmp_path, options, words):
    out = tmp_path / "release.json"
    result = run("ptr-median", table, "--columns", "a,b", *PASSING, "--out", out, *options)
    assert result.exit_code == 2 and words in result.stderr, result.output
    assert len(result.stderr.strip().splitlines()) == 1 and result.stdout == ""
    assert not out.exists() and str(SENTINEL) not in result.stderr
