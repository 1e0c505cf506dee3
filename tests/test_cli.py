"""The command line: what a user sees, and that bad input leaves nothing behind."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import pymc_dpdepth as dpd
from pymc_dpdepth.cli import app

SENTINEL = 31.415926535
PRIOR = ["--prior", "uniform(0, 100)"]


@pytest.fixture
def table(tmp_path):
    """Write a CSV with a text column, a column with a gap, and a value that must never be printed."""
    frame = pd.DataFrame({"a": np.linspace(20.0, 60.0, 40), "b": np.linspace(0.0, 9.0, 40), "word": ["x"] * 40})
    frame.loc[3, "a"] = SENTINEL
    frame["gap"] = frame["b"].where(frame["b"] > 1)
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    return path


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_median_prints_and_writes(table, tmp_path):
    out = tmp_path / "release.json"
    result = run("median", table, "--columns", "a,b", "--epsilon", 1.5, *PRIOR, "--out", out)
    assert result.exit_code == 0, result.stderr
    release = dpd.Release.from_json(out)
    for name, value in zip(("a", "b"), release.value.values, strict=True):
        assert name in result.stdout and repr(float(value)) in result.stdout
    assert "epsilon spent: 1.5" in result.stdout and "float64" in result.stdout
    assert (release.epsilon, release.sampler, release.simulation) == (1.5, "boxes", False)
    assert result.stderr == ""


def test_parquet_bounds_and_per_column_priors(table, tmp_path):
    parquet = tmp_path / "data.parquet"
    pd.read_csv(table).to_parquet(parquet)
    out = tmp_path / "box.json"
    result = run("median", parquet, "--columns", "a,b", "--epsilon", 1, "--lower", "0,-5", "--upper", 100, "--out", out)
    assert result.exit_code == 0, result.stderr
    (prior,) = json.loads(out.read_text())["priors"]["median"]
    assert prior["family"] == "Uniform" and prior["parameters"] == {"lower": [0.0, -5.0], "upper": 100.0}
    priors = ["--prior", "a=normal(40, 30)", "--prior", "b=half_normal(10)"]
    result = run("median", parquet, "--columns", "a,b", "--epsilon", 1, *priors, "--out", out, "--overwrite")
    assert result.exit_code == 0, result.stderr
    assert [block["family"] for block in json.loads(out.read_text())["priors"]["median"]] == ["Normal", "HalfNormal"]


def test_simulation_is_reproducible_and_says_so(table, tmp_path):
    texts = []
    for name in ("one.json", "two.json"):
        out = tmp_path / name
        result = run("median", table, "--columns", "a", "--epsilon", 1, *PRIOR, "--simulate-seed", 7, "--out", out)
        assert result.exit_code == 0
        assert "simulation" in result.stdout and len(result.stderr.strip().splitlines()) == 1
        texts.append(out.read_text())
    assert texts[0] == texts[1] and json.loads(texts[0])["simulation"] is True


def test_max_rows_per_unit_multiplies_the_cost(table):
    result = run("median", table, "--columns", "a", "--epsilon", 0.5, *PRIOR, "--max-rows-per-unit", 3)
    assert result.exit_code == 0 and "epsilon spent: 1.5" in result.stdout


def test_asymptotic_needs_consent_and_is_labelled(table):
    arguments = ["median", table, "--columns", "a", "--epsilon", 1, *PRIOR, "--sampler", "slice"]
    assert run(*arguments).exit_code == 2
    result = run(*arguments, "--accept-asymptotic")
    assert result.exit_code == 0, result.stderr
    assert "guarantee: asymptotic" in result.stdout and "Note:" in result.stderr


BAD = {
    "missing column": ["--columns", "a,nosuch", "--epsilon", "1", *PRIOR],
    "text column": ["--columns", "word", "--epsilon", "1", *PRIOR],
    "all columns, one text": ["--epsilon", "1", *PRIOR],
    "missing entries": ["--columns", "gap", "--epsilon", "1", *PRIOR],
    "epsilon zero": ["--columns", "a", "--epsilon", "0", *PRIOR],
    "epsilon negative": ["--columns", "a", "--epsilon", "-1", *PRIOR],
    "epsilon nan": ["--columns", "a", "--epsilon", "nan", *PRIOR],
    "epsilon a word": ["--columns", "a", "--epsilon", "one", *PRIOR],
    "epsilon missing": ["--columns", "a", *PRIOR],
    "no prior": ["--columns", "a", "--epsilon", "1"],
    "half a box": ["--columns", "a", "--epsilon", "1", "--lower", "0"],
    "prior and box": ["--columns", "a", "--epsilon", "1", *PRIOR, "--lower", "0", "--upper", "1"],
    "box upside down": ["--columns", "a", "--epsilon", "1", "--lower", "5", "--upper", "1"],
    "box of words": ["--columns", "a", "--epsilon", "1", "--lower", "low", "--upper", "1"],
    "prior of the wrong length": ["--columns", "a,b", "--epsilon", "1", "--prior", "normal([0, 1, 2], 5)"],
    "prior for another column": ["--columns", "a", "--epsilon", "1", "--prior", "b=normal(0, 5)"],
    "prior that is code": ["--columns", "a", "--epsilon", "1", "--prior", "__import__('os').getcwd()"],
    "unknown family": ["--columns", "a", "--epsilon", "1", "--prior", "flat()"],
    "column twice": ["--columns", "a,a", "--epsilon", "1", *PRIOR],
    "empty column name": ["--columns", "a,", "--epsilon", "1", *PRIOR],
    "unknown depth": ["--columns", "a", "--epsilon", "1", *PRIOR, "--depth", "deep"],
    "projection depth": ["--columns", "a", "--epsilon", "1", *PRIOR, "--depth", "projection"],
    "unknown sampler": ["--columns", "a", "--epsilon", "1", *PRIOR, "--sampler", "magic"],
    "sampler that does not fit": ["--columns", "a", "--epsilon", "1", *PRIOR, "--sampler", "boxes"],
    "unknown nonfinite": ["--columns", "a", "--epsilon", "1", *PRIOR, "--nonfinite", "drop"],
    "no rows per unit": ["--columns", "a", "--epsilon", "1", *PRIOR, "--max-rows-per-unit", "0"],
    "negative seed": ["--columns", "a", "--epsilon", "1", *PRIOR, "--simulate-seed", "-1"],
    "unknown option": ["--columns", "a", "--epsilon", "1", *PRIOR, "--sigma", "3"],
}


@pytest.mark.parametrize("arguments", BAD.values(), ids=BAD)
def test_bad_input_is_one_line_and_leaves_nothing(arguments, table, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    result = run("median", table, *arguments, "--out", folder / "release.json")
    assert_refused(result)
    assert list(folder.iterdir()) == []


def assert_refused(result):
    assert result.exit_code == 2
    assert len(result.stderr.strip().splitlines()) == 1 and result.stderr.startswith("Error: ")
    assert result.stdout == ""
    assert str(SENTINEL) not in result.stderr and "Traceback" not in result.stderr


@pytest.mark.parametrize("content", ["", "\n", "a,b\n"], ids=["nothing", "a line end", "a header alone"])
def test_empty_files(content, tmp_path):
    path = tmp_path / "empty.csv"
    path.write_text(content)
    assert_refused(run("median", path, "--epsilon", 1, *PRIOR))


def test_files_that_are_not_there_or_not_files(tmp_path):
    assert_refused(run("median", tmp_path / "none.csv", "--epsilon", 1, *PRIOR))
    assert_refused(run("median", tmp_path, "--epsilon", 1, *PRIOR))


def test_targets_are_checked_before_the_draw(table, tmp_path, monkeypatch):
    monkeypatch.setattr("pymc_dpdepth.median.private_median", lambda *a, **k: pytest.fail("drawn"))
    arguments = ["median", table, "--columns", "a", "--epsilon", 1, *PRIOR, "--out"]
    assert_refused(run(*arguments, tmp_path / "nosuch" / "release.json"))
    assert_refused(run(*arguments, tmp_path))
    existing = tmp_path / "there.json"
    existing.write_text("keep")
    assert_refused(run(*arguments, existing))
    assert existing.read_text() == "keep"


def test_unexpected_errors_are_one_line_too(table, monkeypatch):
    def broken(*arguments, **settings):
        raise RuntimeError("first\nsecond")

    monkeypatch.setattr("pymc_dpdepth.median.private_median", broken)
    assert_refused(run("median", table, "--columns", "a", "--epsilon", 1, *PRIOR))


def test_help_and_version_in_a_process():
    command = [sys.executable, "-m", "pymc_dpdepth.cli"]
    text = subprocess.run([*command, "median", "--help"], capture_output=True, text=True, check=True).stdout
    assert "--prior" in text and "Example" in text
    text = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True).stdout
    assert dpd.__version__ in text
    code = "import sys, pymc_dpdepth.cli; sys.exit('pymc' in sys.modules or 'pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
