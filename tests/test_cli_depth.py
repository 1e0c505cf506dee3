"""`pymc-dpdepth depth`: the release, its record, charges, and refusals that leave nothing behind."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import pymc_dpdepth as dpd
from pymc_dpdepth.cli import app

SENTINEL = 31.415926535


@pytest.fixture
def table(tmp_path):
    """Write a CSV with a value that must never be printed."""
    frame = pd.DataFrame({"a": np.linspace(20.0, 60.0, 400), "b": np.linspace(0.0, 9.0, 400)})
    frame.loc[3, "a"] = SENTINEL
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture
def points(tmp_path):
    path = tmp_path / "points.csv"
    pd.DataFrame({"b": [4.5, 0.0], "a": [40.0, 20.0]}).to_csv(path, index=False)
    return path


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "study.jsonl"
    dpd.Ledger.create(path, epsilon=30.0, delta=1e-5, data_id="study-7")
    return path


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "120"})


def test_depths_of_points_by_column_name(table, points, ledger, tmp_path):
    out = tmp_path / "release.json"
    result = run(
        "depth", table, "--at", points, "--epsilon", 20, "--ledger", ledger, "--data-id", "study-7", "--out", out
    )
    assert result.exit_code == 0, result.output
    release = dpd.Release.from_json(out)
    # The columns of the points are in another order: (40, 4.5) is in the middle, (20, 0) at the edge. The noise has
    # scale 2 / (400 * 20): 100 scales are exceeded with probability below 1e-43.
    np.testing.assert_allclose(release.value, [0.5, 0.0], atol=0.03)
    assert release.mechanisms[0]["points"] == [[40.0, 4.5], [20.0, 0.0]]
    assert dpd.Ledger(ledger).spent().epsilon == 20.0
    for words in ("released value", "once for all points", "exact", "discrete Laplace noise", str(out)):
        assert words in result.output.replace("\n", " ") or words in "".join(result.output.split("\n"))
    assert str(SENTINEL) not in result.output


def test_options_reach_the_library(table, points, tmp_path):
    out = tmp_path / "release.json"
    arguments = ["--delta", 1e-6, "--depth", "spatial", "--center", "40,5", "--scale", "10,2", "--nonfinite", "center"]
    more = ["--isotonic-from", "40,4.5", "--no-clamp", "--max-rows-per-unit", 2, "--simulate-seed", 3, "--out", out]
    result = run("depth", table, "--at", points, "--epsilon", 1, *arguments, *more)
    assert result.exit_code == 0, result.output
    assert "Note: --simulate-seed makes this draw reproducible" in result.stderr
    release = dpd.Release.from_json(out)
    (record,) = release.mechanisms
    assert (release.epsilon, release.delta, release.sampler, release.simulation) == (2.0, 1e-6, "gaussian", True)
    assert (record["depth"]["name"], record["center"], record["scale"]) == ("spatial", [40.0, 5.0], [10.0, 2.0])
    assert (record["isotonic_from"], record["clamped"], record["nonfinite"]) == ([40.0, 4.5], None, "center")


def test_a_key_and_a_label(table, points, tmp_path):
    key, path = tmp_path / "key.txt", tmp_path / "keyed.jsonl"
    assert run("ledger", "key", key).exit_code == 0
    assert run("ledger", "init", path, "--epsilon", 9, "--data", table, "--key", key).exit_code == 0
    request = ["--at", points, "--epsilon", 1, "--ledger", path, "--key", key]
    assert run("depth", table, *request, "--label", "two places").exit_code == 0
    frame = pd.read_csv(table)
    frame.loc[5, "b"] += 1.0
    other = tmp_path / "other.csv"
    frame.to_csv(other, index=False)
    refused = run("depth", other, *request)
    assert refused.exit_code == 2 and "these rows and this key" in refused.stderr
    alone = run("depth", table, "--at", points, "--epsilon", 1, "--label", "x")
    assert alone.exit_code == 2 and "--label: expected with --ledger PATH" in alone.stderr
    assert [entry["label"] for entry in dpd.Ledger(path).entries()] == ["two places"]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--epsilon", "0"], "epsilon"),
        (["--epsilon", "1", "--delta", "1"], "delta"),
        (["--epsilon", "1", "--depth", "projection"], "projection"),
        (["--epsilon", "1", "--depth", "nothing"], "nothing"),
        (["--epsilon", "1", "--center", "1,2"], "--scale"),
        (["--epsilon", "1", "--center", "1,x", "--scale", "1,1"], "--center"),
        (["--epsilon", "1", "--isotonic-from", "1"], "isotonic_from"),
        (["--epsilon", "1", "--nonfinite", "center"], "--center and --scale"),
        (["--epsilon", "1", "--columns", "a,c"], "'c'"),
        (["--epsilon", "100"], "asks for epsilon=100"),
        (["--epsilon", "1", "--at", "no_such.csv"], "no_such.csv"),
        ([], "epsilon"),
    ],
)
def test_a_refusal_is_one_line_and_leaves_nothing_behind(table, points, ledger, tmp_path, arguments, word):
    out = tmp_path / "release.json"
    result = run("depth", table, "--at", points, "--ledger", ledger, "--data-id", "study-7", "--out", out, *arguments)
    assert result.exit_code == 2
    if arguments:
        assert len(result.stderr.strip().splitlines()) == 1 and result.stderr.startswith("Error: ")
    assert word in result.stderr and str(SENTINEL) not in result.output
    assert not out.exists() and dpd.Ledger(ledger).spent().epsilon == 0.0


def test_the_output_may_not_replace_the_points(table, points):
    result = run("depth", table, "--at", points, "--epsilon", 1, "--out", points, "--overwrite")
    assert result.exit_code == 2 and "the points" in result.stderr
    assert points.read_text().startswith("b,a")


def test_help_names_the_options():
    text = run("depth", "--help").output
    for option in ("--at", "--epsilon", "--delta", "--isotonic-from", "--no-clamp", "--ledger", "--out"):
        assert option in text


def test_a_budget_without_room_for_a_delta_says_so_in_options(table, points, tmp_path):
    ledger = tmp_path / "ledger.jsonl"
    assert run("ledger", "init", ledger, "--rho", 1, "--data-id", "people").exit_code == 0
    options = ["--columns", "a,b", "--epsilon", 1, "--delta", 1e-7, "--ledger", ledger, "--data-id", "people"]
    refused = run("depth", table, "--at", points, *options)
    assert refused.exit_code == 2 and "--composition basic or --charge-delta" in refused.stderr
    assert "PrivacyAccountant" not in refused.stderr
