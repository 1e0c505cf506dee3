"""The command line: what a user sees, and that bad input leaves nothing behind."""

import json
import operator
import os
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
    frame.loc[3, "word"] = f"secret {SENTINEL}"
    frame["gap"] = frame["b"].where(frame["b"] > 1)
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    return path


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def assert_refused(result):
    assert result.exit_code == 2, result.output
    assert len(result.stderr.strip().splitlines()) == 1 and result.stderr.startswith("Error: ")
    assert result.stdout == ""
    assert str(SENTINEL) not in result.stderr and "Traceback" not in result.stderr


# What a user sees


def test_median_prints_and_writes(table, tmp_path):
    out = tmp_path / "release.json"
    result = run("median", table, "--columns", "a,b", "--epsilon", 1.5, *PRIOR, "--out", out)
    assert result.exit_code == 0, result.stderr
    release = dpd.Release.from_json(out)
    for name, value in zip(("a", "b"), release.value.values, strict=True):
        assert any(line.split() == [name, repr(float(value))] for line in result.stdout.splitlines())
    for words in (
        "epsilon spent  1.5, once for all columns; delta 0",
        "exact: integers and outward",
        "branch_and_bound: an exact draw",
    ):
        assert words in result.stdout
    assert f"record: {out}" in result.stdout.splitlines()  # in one line, whatever its length
    assert (release.epsilon, release.sampler, release.simulation) == (1.5, "branch_and_bound", False)
    assert result.stderr == ""


def test_without_out_the_user_is_told_that_nothing_is_kept(table):
    result = run("median", table, "--columns", "a", "--epsilon", 1, *PRIOR)
    assert result.exit_code == 0 and "--out FILE keeps it" in result.stdout


def test_parquet_bounds_and_per_column_priors(table, tmp_path):
    parquet = tmp_path / "data.parquet"
    pd.read_csv(table).to_parquet(parquet)
    out = tmp_path / "box.json"
    box = ["--lower", "-10,-5", "--upper", "1e2"]  # a value that begins like an option
    result = run("median", parquet, "--columns", "a,b", "--epsilon", 1, *box, "--out", out)
    assert result.exit_code == 0, result.stderr
    (prior,) = json.loads(out.read_text())["priors"]["median"]
    assert prior["family"] == "Uniform" and prior["parameters"] == {"lower": [-10.0, -5.0], "upper": 100.0}
    priors = ["--prior", "b=half_normal(10)", "--prior", "a=normal(40, 30)"]
    result = run("median", parquet, "--columns", "a,b", "--epsilon", 1, *priors, "--out", out, "--overwrite")
    assert result.exit_code == 0, result.stderr
    assert [block["family"] for block in json.loads(out.read_text())["priors"]["median"]] == ["Normal", "HalfNormal"]


def test_simulation_is_reproducible_and_says_so(table, tmp_path):
    texts = []
    for name in ("one.json", "two.json"):
        out = tmp_path / name
        result = run("median", table, "--columns", "a", "--epsilon", 1, *PRIOR, "--simulate-seed", 7, "--out", out)
        assert result.exit_code == 0
        assert "It is a simulation, not private" in result.stdout
        (note,) = result.stderr.strip().splitlines()
        assert note.startswith("Note: --simulate-seed")
        texts.append(out.read_text())
    assert texts[0] == texts[1] and json.loads(texts[0])["simulation"] is True


def test_plot(table, tmp_path):
    plot = tmp_path / "release.png"
    result = run("median", table, "--columns", "a,b", "--epsilon", 1, *PRIOR, "--plot", plot)
    assert result.exit_code == 0, result.stderr
    assert plot.read_bytes().startswith(b"\x89PNG") and f"picture: {plot}" in result.stdout


def test_max_rows_per_unit_multiplies_the_cost(table):
    result = run("median", table, "--columns", "a", "--epsilon", 0.5, *PRIOR, "--max-rows-per-unit", 3)
    assert result.exit_code == 0
    assert "epsilon spent  1.5, once for all columns, 3 rows per person at 0.5 each" in result.stdout


def test_missing_entries_can_take_the_prior(table, tmp_path):
    out = tmp_path / "release.json"
    arguments = ["median", table, "--columns", "gap", "--epsilon", 1, *PRIOR, "--out", out]
    assert "--nonfinite prior" in run(*arguments).stderr
    assert run(*arguments, "--nonfinite", "prior").exit_code == 0
    assert json.loads(out.read_text())["mechanisms"][0]["nonfinite"] == "prior"


def test_asymptotic_needs_consent_and_is_labelled(table):
    arguments = ["median", table, "--columns", "a", "--epsilon", 1, *PRIOR, "--sampler", "slice"]
    refused = run(*arguments)
    assert_refused(refused)
    assert "--accept-asymptotic" in refused.stderr
    result = run(*arguments, "--accept-asymptotic")
    assert result.exit_code == 0, result.stderr
    assert "asymptotic: one draw of a Markov chain" in result.stdout and "Note: " in result.stderr
    # What a progress bar counts depends on the rows. It is not part of the output.
    assert "%" not in result.output and "draws/s" not in result.output


def test_depth_options(table, tmp_path):
    out = tmp_path / "release.json"
    common = ["median", table, "--columns", "a,b", "--epsilon", 1, "--prior", "normal(0, 50)", "--out", out]
    weighted = ["--depth", "integrated_rank_weighted", "--directions", "orthonormal", "--directions-seed", 5]
    result = run(*common, *weighted)
    assert result.exit_code == 0, result.stderr
    record = json.loads(out.read_text())
    assert record["sampler"] == "products"
    depth = record["mechanisms"][0]["depth"]
    assert depth["name"] == "integrated_rank_weighted"
    assert depth["directions"] == {"kind": "orthonormal", "d": 2, "m": 2, "seed": 5}
    smoothed = ["--depth", "integrated_dual", "--smoothing", "3", "--directions", "axes", "--overwrite"]
    assert run(*common, *smoothed).exit_code == 0
    assert json.loads(out.read_text())["sampler"] == "branch_and_bound"
    result = run(*common, *smoothed, "--sampler", "slice", "--accept-asymptotic")
    assert result.exit_code == 0, result.stderr
    depth = json.loads(out.read_text())["mechanisms"][0]["depth"]
    assert depth["smoothing"] == 3.0 and depth["directions"]["kind"] == "axes"


def test_a_prior_read_off_the_rows_is_noted(table, tmp_path):
    frame = pd.read_csv(table)
    out = tmp_path / "release.json"
    prior = f"normal({float(frame['b'].mean() + frame['b'].max() / 7)!r}, 50)"
    assert run("median", table, "--columns", "b", "--epsilon", 1, "--prior", prior, "--out", out).stderr == ""
    prior = f"normal({float(frame['a'].mean())!r}, 50)"
    result = run("median", table, "--columns", "a", "--epsilon", 1, "--prior", prior)
    assert result.exit_code == 0
    (note,) = result.stderr.strip().splitlines()
    assert note.startswith("Note: ") and "prior" in note


def test_odd_column_names_are_shown_as_they_are(tmp_path):
    path = tmp_path / "odd.csv"
    long = "a name of more characters than a terminal has columns which has to be folded " * 2
    path.write_text(f'[/red],"one, two",{long.strip()},:smile:\n1,2,3,4\n5,6,7,8\n', encoding="utf-8")
    result = run("median", path, "--columns", '[/red],"one, two",:smile:', "--epsilon", 1, *PRIOR)
    assert result.exit_code == 0, result.stderr
    for name in ("[/red]", "one, two", ":smile:"):
        assert name in result.stdout
    result = run("median", path, "--epsilon", 1, *PRIOR)
    assert result.exit_code == 0, result.stderr
    assert max(len(line) for line in result.stdout.splitlines()) <= 80


def test_wide_tables(tmp_path):
    path = tmp_path / "wide.csv"
    frame = pd.DataFrame(np.zeros((3, 150)), columns=[f"column_{j}" for j in range(150)])
    frame.to_csv(path, index=False)
    result = run("median", path, "--epsilon", 1, "--prior", "normal(0, 1e12)")
    assert result.exit_code == 0, result.stderr
    assert all(f"column_{j} " in result.stdout for j in range(150))
    assert max(len(line) for line in result.stdout.splitlines()) <= 80


# Bad input

BAD = {
    "missing column": ["--columns", "a,nosuch", "--epsilon", "1", *PRIOR],
    "text column": ["--columns", "word", "--epsilon", "1", *PRIOR],
    "all columns, one text": ["--epsilon", "1", *PRIOR],
    "missing entries": ["--columns", "gap", "--epsilon", "1", *PRIOR],
    "epsilon zero": ["--columns", "a", "--epsilon", "0", *PRIOR],
    "epsilon negative": ["--columns", "a", "--epsilon", "-1", *PRIOR],
    "epsilon nan": ["--columns", "a", "--epsilon", "nan", *PRIOR],
    "epsilon infinite": ["--columns", "a", "--epsilon", "inf", *PRIOR],
    "epsilon a word": ["--columns", "a", "--epsilon", "one", *PRIOR],
    "epsilon missing": ["--columns", "a", *PRIOR],
    "no prior": ["--columns", "a", "--epsilon", "1"],
    "half a box": ["--columns", "a", "--epsilon", "1", "--lower", "0"],
    "prior and box": ["--columns", "a", "--epsilon", "1", *PRIOR, "--lower", "0", "--upper", "1"],
    "box upside down": ["--columns", "a", "--epsilon", "1", "--lower", "5", "--upper", "1"],
    "box without width": ["--columns", "a", "--epsilon", "1", "--lower", "5", "--upper", "5"],
    "box upside down in one column": ["--columns", "a,b", "--epsilon", "1", "--lower", "0,5", "--upper", "9,1"],
    "box of the wrong length": ["--columns", "a,b", "--epsilon", "1", "--lower", "0,0,0", "--upper", "9"],
    "box of words": ["--columns", "a", "--epsilon", "1", "--lower", "low", "--upper", "1"],
    "box of nan": ["--columns", "a", "--epsilon", "1", "--lower", "nan", "--upper", "1"],
    "huge rows per unit": ["--columns", "a", "--epsilon", "1", *PRIOR, "--max-rows-per-unit", "1" + "0" * 400],
    "box without end": ["--columns", "a", "--epsilon", "1", "--lower", "0", "--upper", "inf"],
    "prior of the wrong length": ["--columns", "a,b", "--epsilon", "1", "--prior", "normal([0, 1, 2], 5)"],
    "prior for another column": ["--columns", "a", "--epsilon", "1", "--prior", "b=normal(0, 5)"],
    "prior for one of two columns": ["--columns", "a,b", "--epsilon", "1", "--prior", "b=normal(0, 5)"],
    "two priors for a column": [
        "--columns",
        "a",
        "--epsilon",
        "1",
        "--prior",
        "a=normal(0, 5)",
        "--prior",
        "a=gumbel(0,1)",
    ],
    "prior that is code": ["--columns", "a", "--epsilon", "1", "--prior", "__import__('os').getcwd()"],
    "unknown family": ["--columns", "a", "--epsilon", "1", "--prior", "flat()"],
    "column twice": ["--columns", "a,a", "--epsilon", "1", *PRIOR],
    "empty column name": ["--columns", "a,", "--epsilon", "1", *PRIOR],
    "no column name": ["--columns", "", "--epsilon", "1", *PRIOR],
    "unknown depth": ["--columns", "a", "--epsilon", "1", *PRIOR, "--depth", "deep"],
    "projection depth": ["--columns", "a", "--epsilon", "1", *PRIOR, "--depth", "projection"],
    "smoothing of a step depth": ["--columns", "a", "--epsilon", "1", *PRIOR, "--smoothing", "3"],
    "negative smoothing": [
        "--columns",
        "a",
        "--epsilon",
        "1",
        *PRIOR,
        "--depth",
        "integrated_dual",
        "--smoothing",
        "-3",
    ],
    "unknown directions": ["--columns", "a", "--epsilon", "1", *PRIOR, "--directions", "north"],
    "negative seed of directions": [
        *("--columns", "a,b", "--epsilon", "1", *PRIOR, "--directions", "orthonormal", "--directions-seed", "-1")
    ],
    "unknown sampler": ["--columns", "a", "--epsilon", "1", *PRIOR, "--sampler", "magic"],
    "sampler that does not fit": ["--columns", "a", "--epsilon", "1", *PRIOR, "--sampler", "boxes"],
    "NUTS on a step depth": ["--columns", "a", "--epsilon", "1", *PRIOR, "--sampler", "nuts", "--accept-asymptotic"],
    "no consent to a chain": ["--columns", "a", "--epsilon", "1", *PRIOR, "--sampler", "smc"],
    "unknown nonfinite": ["--columns", "a", "--epsilon", "1", *PRIOR, "--nonfinite", "drop"],
    "no rows per unit": ["--columns", "a", "--epsilon", "1", *PRIOR, "--max-rows-per-unit", "0"],
    "negative seed": ["--columns", "a", "--epsilon", "1", *PRIOR, "--simulate-seed", "-1"],
    "unknown option": ["--columns", "a", "--epsilon", "1", *PRIOR, "--sigma", "3"],
    "picture of another kind": ["--columns", "a", "--epsilon", "1", *PRIOR, "--plot", "picture.pdf"],
}


@pytest.mark.parametrize("arguments", BAD.values(), ids=BAD)
def test_bad_input_is_one_line_and_leaves_nothing(arguments, table, tmp_path, monkeypatch):
    folder = tmp_path / "out"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert_refused(run("median", table, *arguments, "--out", folder / "release.json"))
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("content", ["", "\n", "a,b\n"], ids=["nothing", "a line end", "a header alone"])
def test_empty_files(content, tmp_path):
    path = tmp_path / "empty.csv"
    path.write_text(content)
    assert_refused(run("median", path, "--epsilon", 1, *PRIOR))


def test_files_that_are_not_there_or_not_tables(tmp_path):
    assert_refused(run("median", tmp_path / "none.csv", "--epsilon", 1, *PRIOR))
    assert_refused(run("median", tmp_path, "--epsilon", 1, *PRIOR))
    for name, content in (("ragged.csv", b"a\n1,2\n3\n"), ("latin.csv", b"a\n\xe9\n"), ("broken.parquet", b"PAR1")):
        path = tmp_path / name
        path.write_bytes(content)
        assert_refused(run("median", path, "--epsilon", 1, *PRIOR))


def test_commands_and_arguments_are_checked():
    assert_refused(run("mean", "data.csv"))
    assert_refused(run("median"))


@pytest.fixture
def no_draw(monkeypatch):
    """Fail a test that draws."""
    monkeypatch.setattr("pymc_dpdepth.median.private_median", lambda *a, **k: pytest.fail("drawn"))


@pytest.mark.parametrize("option", ["--out", "--plot"])
def test_targets_are_checked_before_the_draw(option, table, tmp_path, no_draw):
    arguments = ["median", table, "--columns", "a", "--epsilon", 1, *PRIOR, option]
    assert_refused(run(*arguments, tmp_path / "nosuch" / "release.png"))
    assert_refused(run(*arguments, table / "release.png"))  # in a file, not a folder
    assert_refused(run(*arguments, tmp_path))
    existing = tmp_path / "there.png"
    existing.write_text("keep")
    assert_refused(run(*arguments, existing))
    assert existing.read_text() == "keep"


def test_record_and_picture_are_two_files(table, tmp_path, no_draw):
    same = tmp_path / "one.png"
    assert_refused(run("median", table, "--columns", "a", "--epsilon", 1, *PRIOR, "--out", same, "--plot", same))


def test_the_private_table_is_never_replaced(table, tmp_path, no_draw):
    before = table.read_bytes()
    link = tmp_path / "link.json"
    link.symlink_to(table)
    for target in (table, link):
        arguments = ["--columns", "a", "--epsilon", 1, *PRIOR, "--out", target, "--overwrite"]
        assert_refused(run("median", table, *arguments))
    assert table.read_bytes() == before


@pytest.mark.skipif(os.name != "posix", reason="POSIX devices")
def test_devices_are_not_replaced(table, no_draw):
    arguments = ["--columns", "a", "--epsilon", 1, *PRIOR, "--out", os.devnull, "--overwrite"]
    assert_refused(run("median", table, *arguments))


def test_a_folder_that_takes_no_files_is_noticed_before_the_draw(table, tmp_path, no_draw, monkeypatch):
    def refuse(*arguments, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pymc_dpdepth.cli_output.tempfile.TemporaryFile", refuse)
    result = run("median", table, "--columns", "a", "--epsilon", 1, *PRIOR, "--out", tmp_path / "release.json")
    assert_refused(result)
    assert "Permission denied" in result.stderr


def test_a_failure_after_the_draw_says_that_epsilon_is_spent(table, tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(dpd.Release, "to_json", full)
    result = run("median", table, "--columns", "a", "--epsilon", 1, *PRIOR, "--out", tmp_path / "release.json")
    assert_refused(result)
    assert "No space left" in result.stderr and "spent" in result.stderr


# Errors that nobody foresaw


def raising(error):
    def broken(*arguments, **settings):
        raise error

    return broken


def test_messages_of_other_code_are_not_shown(table, monkeypatch):
    quoting = ValueError(f"could not convert\nstring to float: '{SENTINEL}'")
    monkeypatch.setattr("pymc_dpdepth.median.private_median", raising(quoting))
    result = run("median", table, "--columns", "a", "--epsilon", 1, *PRIOR)
    assert_refused(result)
    assert "ValueError" in result.stderr and "could not convert" not in result.stderr


def test_messages_of_failing_calls_inside_the_package_are_not_shown(table, monkeypatch):
    # A built-in has no frame of its own, so the innermost frame is the package's, but no raise statement of its own.
    monkeypatch.setattr("pymc_dpdepth.median.check_ledger", operator.methodcaller(str(SENTINEL)))
    result = run("median", table, "--columns", "a", "--epsilon", 1, *PRIOR)
    assert_refused(result)
    assert "AttributeError in pymc_dpdepth.median" in result.stderr


@pytest.mark.parametrize("error", [RuntimeError(""), MemoryError(), KeyError(SENTINEL), ZeroDivisionError("x")])
def test_unexpected_errors_are_one_line(error, table, monkeypatch):
    monkeypatch.setattr("pymc_dpdepth.median.private_median", raising(error))
    result = run("median", table, "--columns", "a", "--epsilon", 1, *PRIOR)
    assert_refused(result)
    assert type(error).__name__ in result.stderr


# As a process


def test_help_and_version_in_a_process():
    command = [sys.executable, "-m", "pymc_dpdepth.cli"]
    text = subprocess.run([*command, "median", "--help"], capture_output=True, text=True, check=True).stdout
    assert "--prior" in text and "For instance" in text
    text = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True).stdout
    assert dpd.__version__ in text
    heavy = "{'pymc', 'pandas', 'numpy', 'numba', 'matplotlib', 'scipy'}"
    code = f"import sys, pymc_dpdepth.cli; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_process_leaves_with_code_2_and_one_line(table, tmp_path):
    command = [sys.executable, "-m", "pymc_dpdepth.cli", "median", table, "--columns", "word", "--epsilon", "1", *PRIOR]
    result = subprocess.run([*command, "--out", tmp_path / "release.json"], capture_output=True, text=True)
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.startswith("Error: ") and result.stderr.count("\n") == 1
    assert str(SENTINEL) not in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]


def test_a_terminal_without_unicode_still_gets_the_release(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("größe\n1\n2\n", encoding="utf-8")
    command = [sys.executable, "-m", "pymc_dpdepth.cli", "median", path, "--epsilon", "1", *PRIOR]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (result.returncode, result.stderr) == (0, "") and "gr??e" in result.stdout


def test_a_first_line_with_a_date_may_be_a_row_and_is_not_shown(tmp_path):
    path = tmp_path / "names.csv"
    path.write_text("Smith,1980-01-02\nJones,1977-07-07\n")
    result = run("median", path, "--epsilon", 1, *PRIOR)
    assert_refused(result)
    assert "Smith" not in result.stderr and "1980" not in result.stderr


def test_a_first_line_of_words_may_be_a_row_and_is_not_shown(tmp_path):
    path = tmp_path / "names.csv"
    path.write_text("Smith,Bonn,deaf\nJones,Ulm,blind\n")
    for columns in ([], ["--columns", "age"], ["--columns", "Smit,Bon"]):
        result = run("median", path, "--epsilon", 1, *PRIOR, *columns)
        assert_refused(result)
        assert not any(word in result.stderr.replace("'Smit'", "") for word in ("Smith", "Bonn", "deaf"))


# Delta and rho


def test_rho_and_delta_are_recorded(table, tmp_path):
    out = tmp_path / "release.json"
    result = run("median", table, "--columns", "a,b", "--rho", 0.1, *PRIOR, "--sampler", "concentrated", "--out", out)
    assert result.exit_code == 0, result.stderr
    release = dpd.Release.from_json(out)
    assert release.sampler == "concentrated" and release.rho <= 0.1 and release.delta == 0
    shown = " ".join(result.stdout.split())
    assert "the same cost in zCDP: rho 0.1" in shown and "an exact draw for each direction" in shown
    result = run(
        "median", table, "--columns", "a,b", "--epsilon", 1, "--delta", 1e-6, *PRIOR, "--out", out, "--overwrite"
    )
    assert result.exit_code == 0, result.stderr
    assert dpd.Release.from_json(out).epsilon == 1.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "--epsilon 1 (with --delta 1e-6 or not) or --rho 0.1"),
        (("--epsilon", 1, "--rho", 1), "--epsilon 1 (with --delta 1e-6 or not) or --rho 0.1"),
        (("--rho", 0.1, "--delta", 1e-6), "delta"),
        (("--epsilon", 1, "--sampler", "concentrated"), "--rho in its place"),
        (("--rho", "nan"), "rho"),
    ],
)
def test_budgets_that_make_no_sense_are_one_line(table, options, words):
    result = run("median", table, "--columns", "a,b", *PRIOR, *options)
    assert result.exit_code == 2 and result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert words in line
