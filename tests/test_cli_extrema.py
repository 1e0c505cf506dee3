"""`pymc-dpdepth extrema`: limits, their record and picture, charges, and refusals that leave nothing behind."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import pymc_dpdepth as dpd
from pymc_dpdepth.cli import app

SENTINEL = 3.1415926535
GAUSSIAN = ["--family", "gaussian", "--bounds", "-4,4"]


@pytest.fixture
def table(tmp_path):
    """Write a CSV file of three columns with means 0, .2 and 2, with a value that must never be printed."""
    rows = np.random.default_rng(7).normal(size=(2000, 3)) + [0.0, 0.2, 2.0]
    rows[3, 0] = SENTINEL
    path = tmp_path / "people.csv"
    frame = pd.DataFrame(rows, columns=["a", "b", "c"])
    frame.assign(word="x", site=np.repeat([1, 2], 1000), seen=np.tile([0, 1], 1000)).to_csv(path, index=False)
    return path


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "study.jsonl"
    dpd.Ledger.create(path, epsilon=60.0, composition="basic", data_id="study-7")
    return path


def run(*arguments):
    return CliRunner().invoke(app, ["extrema", *(str(argument) for argument in arguments)], env={"COLUMNS": "120"})


def facts(result):
    return {line.split("  ")[0]: line for line in result.stdout.splitlines()}


def test_limits_cost_record_and_picture(table, ledger, tmp_path):
    out, picture = tmp_path / "interval.json", tmp_path / "interval.png"
    charged = ["--ledger", ledger, "--data-id", "study-7", "--out", out, "--plot", picture]
    result = run(table, *GAUSSIAN, "--columns", "b,c", "--epsilon", "mean=30,covariance=20", *charged)
    assert result.exit_code == 0, result.output
    interval = dpd.ExtremaInterval.from_json(out)
    assert (interval.n, interval.epsilons) == (2000, {"mean": 30.0, "covariance": 20.0})
    assert (interval.epsilon, interval.guarantee, interval.selected) == (50.0, "exact", "c")
    shown = facts(result)
    assert f"from {interval.lower:,.6g} to inf" in shown["largest of 2"]
    assert f"{interval.estimate:,.6g}, bias-reduced" in shown["estimate"] and "c, the parameter" in shown["selected"]
    for name, limit in interval.compare()["lower"].items():
        (line,) = (line for line in result.stdout.splitlines() if line.strip().lower().startswith(name + ":"))
        assert line.split()[-1] == f"{limit:,.6g}"
    assert "50, once for everything shown (mean 30, covariance 20); delta 0" in shown["epsilon spent"]
    assert "exact: " in shown["guarantee"] and str(interval.bootstrap_seed) in shown["bootstrap"]
    (entry,) = dpd.Ledger(ledger).entries()
    assert (entry["label"], entry["epsilon"]) == ("extrema_interval", 50.0)
    assert picture.read_bytes()[:4] == b"\x89PNG"
    for written in (f"record: {out}", f"picture: {picture}", f"ledger charged: {ledger}"):
        assert written in result.stdout.splitlines()
    assert str(SENTINEL)[:6] not in result.output + out.read_text()


def test_options_reach_the_library(table, ledger, tmp_path):
    out = tmp_path / "interval.json"
    options = ["--extremum", "min", "--ci-prob", 0.9, "--sided", "two", "--correction", "cv", "--candidates", "0.1,0.2"]
    options += ["--folds", 4, "--final", "fresh", "--replicates", 300, "--bootstrap-seed", 5, "--nonfinite", "center"]
    options += ["--max-rows-per-unit", 2, "--simulate-seed", 3]
    charged = ["--ledger", ledger, "--data-id", "study-7", "--label", "best in May"]
    named = ["--family", "gaussian", "--bounds", "c=-1,5", "--bounds", "a=-4,4"]
    result = run(table, *named, "--epsilon", 10, *options, *charged, "--out", out)
    assert result.exit_code == 0, result.output
    assert "Note: --simulate-seed makes this draw reproducible" in result.stderr
    assert "It is a simulation, not private" in result.stdout and "Bonferroni" in facts(result)["probability"]
    assert "times 2 rows per person" in result.stdout and "chosen by cross-validation" in result.stdout
    family = dpd.extrema.Gaussian(bounds=([-1, -4], [5, 4]))
    with pytest.warns(dpd.PrivacyLeakWarning):
        expected = dpd.extrema_interval(
            table,
            family=family,
            epsilon=10.0,
            columns=["c", "a"],
            extremum="min",
            ci_prob=0.9,
            sided="two",
            correction="cv",
            candidates=[0.1, 0.2],
            folds=4,
            final="fresh",
            replicates=300,
            bootstrap_seed=5,
            nonfinite="center",
            max_rows_per_unit=2,
            random_seed=3,
        )
    assert dpd.ExtremaInterval.from_json(out) == expected
    (entry,) = dpd.Ledger(ledger).entries()
    assert (entry["label"], entry["epsilon"]) == ("best in May", 20.0)


FAMILIES = {
    "regression": (
        "--response c --interest a,b --nuisance site --bounds a=-4,4 --bounds b=-4,4 --bounds c=-4,4 --bounds site=1,2 "
        "--no-intercept --orthogonal --variance moments",
        lambda: dpd.extrema.LinearRegression(
            "c",
            ["a", "b"],
            "site",
            bounds={"a": (-4, 4), "b": (-4, 4), "c": (-4, 4), "site": (1, 2)},
            intercept=False,
            orthogonal=True,
            variance="moments",
        ),
    ),
    "bernoulli": (
        "--response seen --by site --sizes 1=1000,2=1000 --labels 1=Seattle,2=Dayton",
        lambda: dpd.extrema.Bernoulli("seen", by="site", sizes={1: 1000, 2: 1000}, labels={1: "Seattle", 2: "Dayton"}),
    ),
    "poisson": ("--columns site,seen --bounds 0,3", lambda: dpd.extrema.Poisson(bounds=(0, 3))),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_families(table, tmp_path, name):
    out = tmp_path / "interval.json"
    options, family = FAMILIES[name]
    result = run(table, "--family", name, *options.split(), "--epsilon", 5, "--correction", "none", "--out", out)
    assert result.exit_code == 0, result.output
    interval = dpd.ExtremaInterval.from_json(out)
    assert interval.family == family().describe() and interval.correction is None
    assert (
        "this interval, without a correction: not valid" in result.stdout and "not valid" in facts(result)["correction"]
    )
    assert ("stays in its group" in result.stdout) == (name == "bernoulli")


BAD = [
    (["--family", "normal", "--epsilon", "1"], "--family: expected one of gaussian"),
    (["--family", "gaussian", "--epsilon", "1"], "--bounds: expected the public bounds"),
    (["--family", "gaussian", "--bounds", "4", "--epsilon", "1"], "--bounds: expected two numbers"),
    (["--family", "gaussian", "--bounds", "4,-4", "--epsilon", "1"], "lower < upper"),
    (["--family", "gaussian", "--bounds", "a=0,1", "--bounds", "0,1", "--epsilon", "1"], "got both"),
    (["--family", "gaussian", "--bounds", "a=0,1", "--bounds", "a=0,1", "--epsilon", "1"], "a column came twice"),
    (["--family", "gaussian", "--bounds", "a=0,1", "--columns", "a,b", "--epsilon", "1"], "one pair for each of"),
    ([*GAUSSIAN, "--epsilon", "1", "--by", "site"], "--by: expected with --family bernoulli or poisson"),
    ([*GAUSSIAN, "--columns", "a,word", "--epsilon", "1"], "'word'"),
    ([*GAUSSIAN, "--columns", "a,d", "--epsilon", "1"], "'d'"),
    ([*GAUSSIAN, "--columns", "a,b", "--epsilon", "much"], "--epsilon: expected a number, or NAME=NUMBER"),
    ([*GAUSSIAN, "--columns", "a,b", "--epsilon", "0"], "epsilon"),
    ([*GAUSSIAN, "--columns", "a,b", "--epsilon", "mean=1"], "['covariance', 'mean']"),
    ([*GAUSSIAN, "--columns", "a,b", "--epsilon", "mean=1,mean=1"], "one came twice"),
    ([*GAUSSIAN, "--columns", "a,b", "--epsilon", "100"], "asks for epsilon=100"),
    ([*GAUSSIAN, "--columns", "a,b", "--epsilon", "1", "--correction", "0.7"], "(0, 0.5)"),
    ([*GAUSSIAN, "--columns", "a,b", "--epsilon", "1", "--correction", "r"], "--correction: expected a number between"),
    ([*GAUSSIAN, "--columns", "a,b", "--epsilon", "1", "--candidates", "0.1"], "--candidates: expected only with"),
    ([*GAUSSIAN, "--columns", "a,b", "--epsilon", "1", "--folds", "5"], "only with --correction cv, got with"),
    (
        [*GAUSSIAN, "--columns", "a,b", "--epsilon", "1", "--correction", "none", "--folds", "1", "--final", "junk"],
        "--folds, --final: expected only with --correction cv, got with --correction none",
    ),
    ([*GAUSSIAN, "--columns", "a,b", "--epsilon", "1", "--correction", "cv", "--folds", "1"], "folds: expected at"),
    ([*GAUSSIAN, "--columns", "a,b", "--epsilon", "1", "--correction", "cv", "--final", "junk"], "final: expected"),
    (
        [*GAUSSIAN, "--columns", "a,b", "--epsilon", "1", "--correction", "cv", "--candidates", "x"],
        "--candidates: expected",
    ),
    ([*GAUSSIAN, "--columns", "a,b", "--epsilon", "1", "--ci-prob", "2"], "--ci-prob"),
    ([*GAUSSIAN, "--columns", "a,b", "--epsilon", "1", "--replicates", "5"], "replicates"),
    ([*GAUSSIAN, "--columns", "a,b", "--epsilon", "1", "--bootstrap-seed", "-1"], "--bootstrap-seed"),
    ([*GAUSSIAN, "--columns", "a,b", "--epsilon", "1", "--simulate-seed", "-1"], "--simulate-seed"),
    (["--family", "regression", "--bounds", "0,1", "--epsilon", "1"], "--response: expected with --family regression"),
    (
        ["--family", "regression", "--response", "c", "--interest", "a,", "--bounds", "0,1", "--epsilon", "1"],
        "--interest: expected a list",
    ),
    (
        ["--family", "regression", "--response", "c", "--interest", "a", "--bounds", "0,1", "--columns", "a"],
        "Missing option '--epsilon'",
    ),
    (["--family", "bernoulli", "--bounds", "0,1", "--epsilon", "1"], "--bounds: expected none"),
    (["--family", "bernoulli", "--by", "site", "--epsilon", "1"], "--by: expected together with --response"),
    (["--family", "bernoulli", "--columns", "a", "--epsilon", "1"], "0 or 1"),
    (
        ["--family", "bernoulli", "--response", "seen", "--by", "site", "--sizes", "1=1,2", "--epsilon", "1"],
        "--sizes: expected CODE=ROWS",
    ),
    (
        ["--family", "bernoulli", "--response", "seen", "--by", "site", "--sizes", "1=1000,2=999", "--epsilon", "1"],
        "as --sizes says",
    ),
    (["--family", "poisson", "--bounds", "0,1.5", "--columns", "seen", "--epsilon", "1"], "whole number high >= 1"),
    ([*GAUSSIAN], "epsilon"),
]


@pytest.mark.parametrize(("arguments", "word"), BAD, ids=range(len(BAD)))
def test_a_refusal_is_one_line_and_leaves_nothing_behind(table, ledger, tmp_path, arguments, word):
    out = tmp_path / "interval.json"
    result = run(table, "--ledger", ledger, "--data-id", "study-7", "--out", out, *arguments)
    assert result.exit_code == 2 and result.stdout == ""
    assert len(result.stderr.strip().splitlines()) == 1 and result.stderr.startswith("Error: ")
    assert word in result.stderr and str(SENTINEL) not in result.output
    assert not out.exists() and dpd.Ledger(ledger).spent().epsilon == 0.0


def test_files_that_may_not_be_written(table, tmp_path):
    before = table.read_bytes()
    options = [*GAUSSIAN, "--columns", "a,b", "--epsilon", "1"]
    for more, word in (
        (["--out", table, "--overwrite"], "expected another file than the private table"),
        (["--plot", tmp_path / "picture.pdf"], "--plot: expected a name that ends in .png"),
        (["--out", tmp_path / "none" / "x.json"], "does not exist"),
    ):
        result = run(table, *options, *more)
        assert result.exit_code == 2 and word in result.stderr and result.stdout == ""
    out = tmp_path / "interval.json"
    out.write_text("keep")
    assert run(table, *options, "--out", out).exit_code == 2 and out.read_text() == "keep"
    assert run(table, *options, "--out", out, "--overwrite").exit_code == 0
    assert dpd.ExtremaInterval.from_json(out).columns == ("a", "b") and table.read_bytes() == before


def test_a_key_names_the_table(table, tmp_path):
    key, path = tmp_path / "key.txt", tmp_path / "keyed.jsonl"
    dpd.Ledger.create_key(key)
    frame = pd.read_csv(table).drop(columns="word")
    frame.to_csv(table, index=False)
    dpd.Ledger.create(path, epsilon=9.0, data=table, key=key)
    options = [*GAUSSIAN, "--columns", "a,b", "--epsilon", "1", "--ledger", path, "--key", key]
    result = run(table, *options)
    assert result.exit_code == 0, result.output
    frame.loc[5, "c"] += 1.0  # a column that is not used
    frame.to_csv(table, index=False)
    assert run(table, *options).exit_code == 2 and len(dpd.Ledger(path).entries()) == 1
