"""The commands of a ledger, and `median --ledger`: what is charged, and that a refusal leaves nothing behind."""

import json
import subprocess
import sys
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import pymc_dpdepth as dpd
from pymc_dpdepth.cli import app

SENTINEL = 31.415926535
NAMED = ("--data-id", "study-7")


@pytest.fixture
def table(tmp_path):
    """Write a CSV with a value that must never be printed."""
    frame = pd.DataFrame({"a": np.linspace(20.0, 60.0, 40), "b": np.linspace(0.0, 9.0, 40)})
    frame.loc[3, "a"] = SENTINEL
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "study.jsonl"
    dpd.Ledger.create(path, epsilon=3.0, data_id="study-7")
    return path


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "120"})


def median(table, *more, epsilon=1.0):
    return run("median", table, "--columns", "a", "--epsilon", epsilon, "--prior", "uniform(0, 100)", *more)


def assert_refused(result, *words):
    assert result.exit_code == 2, result.output
    assert len(result.stderr.strip().splitlines()) == 1 and result.stderr.startswith("Error: ")
    assert result.stdout == "" and str(SENTINEL) not in result.stderr and "Traceback" not in result.stderr
    for word in words:
        assert word in result.stderr


# init and show


def test_init_makes_a_ledger_and_shows_it(tmp_path):
    path = tmp_path / "new.jsonl"
    result = run("ledger", "init", path, "--epsilon", 3, "--delta", 1e-6, "--data-id", "study-7")
    assert result.exit_code == 0, result.stderr
    assert f"ledger: {path}" in result.stdout.splitlines()  # in one line, so that it can be copied
    header = dpd.Ledger(path, data_id="study-7").describe()
    assert (header["epsilon"], header["delta"], header["neighboring"]) == (3.0, 1e-6, "replace_one")
    lines = [line.split() for line in result.stdout.splitlines()]
    for words in (["epsilon", "3.0"], ["delta", "1e-06"], ["data", "id", "study-7"], ["neighboring", "replace_one"]):
        assert words in lines


def test_init_in_rho_and_with_a_composition(tmp_path):
    path = tmp_path / "rho.jsonl"
    assert run("ledger", "init", path, "--rho", 0.5, "--data-id", "x").exit_code == 0
    assert dpd.Ledger(path).describe()["rho"] == 0.5
    path = tmp_path / "basic.jsonl"
    assert run("ledger", "init", path, "--epsilon", 2, "--composition", "basic", "--data-id", "x").exit_code == 0
    assert dpd.Ledger(path).describe()["composition"] == "basic"


BAD_INIT = {
    "no budget": ["--data-id", "x"],
    "no name": ["--epsilon", "1"],
    "key without table": ["--epsilon", "1", "--key", "key.txt"],
    "columns without table": ["--epsilon", "1", "--data-id", "x", "--columns", "a"],
    "zero": ["--epsilon", "0", "--data-id", "x"],
    "empty name": ["--epsilon", "1", "--data-id", ""],
    "nan": ["--epsilon", "nan", "--data-id", "x"],
    "minus": ["--epsilon", "-1", "--data-id", "x"],
    "text": ["--epsilon", "much", "--data-id", "x"],
    "two budgets": ["--epsilon", "1", "--rho", "1", "--data-id", "x"],
    "delta": ["--epsilon", "1", "--delta", "2", "--data-id", "x"],
    "composition": ["--epsilon", "1", "--composition", "hopeful", "--data-id", "x"],
}


@pytest.mark.parametrize("options", BAD_INIT.values(), ids=BAD_INIT)
def test_bad_input_makes_no_ledger(tmp_path, options):
    path = tmp_path / "new.jsonl"
    assert_refused(run("ledger", "init", path, *options))
    assert not path.exists()


def test_init_overwrites_nothing(ledger):
    before = ledger.read_bytes()
    again = run("ledger", "init", ledger, "--epsilon", 9, "--data-id", "study-7")
    assert_refused(again, "exists and is not overwritten")
    assert ledger.read_bytes() == before


def test_show(ledger):
    opened = dpd.Ledger(ledger, data_id="study-7")
    opened.charge(epsilon=0.75, label="first [bold]\nline \x1b[31m é", group="north")
    opened.charge(epsilon=0.5, label="second")
    before = ledger.read_bytes()
    result = run("ledger", "show", ledger)
    assert result.exit_code == 0, result.stderr
    assert ledger.read_bytes() == before
    assert "first [bold] line  [31m é" in result.stdout and "\x1b" not in result.stdout
    rows = [line.split() for line in result.stdout.splitlines()]
    assert any(row[:1] == ["1"] and row[-3:] == ["north", "0.75", "0.0"] for row in rows)
    assert any(row[:1] == ["2"] and row[-3:] == ["second", "0.5", "0.0"] for row in rows)
    assert any(row and row[0] == "remaining" for row in rows) and any(row and row[0] == "spent" for row in rows)


def test_show_as_json(ledger):
    opened = dpd.Ledger(ledger, data_id="study-7")
    opened.charge(epsilon=0.75, label="first\nline", bounded_range=(0.75,))
    result = run("ledger", "show", ledger, "--json")
    assert result.exit_code == 0, result.stderr
    shown = json.loads(result.stdout)
    assert shown["data_id"] == "study-7" and shown["epsilon"] == 3.0
    assert shown["entries"] == json.loads(json.dumps(opened.entries()))
    assert shown["spent"] == json.loads(json.dumps(asdict(opened.spent())))
    assert shown["remaining"] == json.loads(json.dumps(asdict(opened.remaining())))


def test_show_tells_of_a_torn_line(ledger):
    with ledger.open("ab") as file:
        file.write(b'{"kind":"cha')
    result = run("ledger", "show", ledger)
    assert result.exit_code == 0 and "incomplete line of 12 bytes; never granted" in result.stdout


def test_show_refuses_what_is_no_ledger(table, ledger, tmp_path):
    assert_refused(run("ledger", "show", table), "another kind of file", "ledger init")
    assert_refused(run("ledger", "show", tmp_path), "is a folder")
    assert_refused(run("ledger", "show", tmp_path / "missing"), "there is no")
    ledger.write_bytes(ledger.read_bytes().replace(b"3.0", b"9.0"))
    assert_refused(run("ledger", "show", ledger), "line 1", "Restore the file from a backup")


# median --ledger


def test_median_charges_the_ledger(table, ledger, tmp_path):
    out = tmp_path / "release.json"
    result = median(table, "--ledger", ledger, "--data-id", "study-7", "--out", out)
    assert result.exit_code == 0, result.stderr
    assert f"ledger charged: {ledger}" in result.stdout.splitlines()
    again = median(table, "--ledger", ledger, *NAMED, "--label", "again, in May", epsilon=0.5)
    assert again.exit_code == 0, again.stderr
    entries = dpd.Ledger(ledger).entries()
    assert [(entry["label"], entry["epsilon"]) for entry in entries] == [("median", 1.0), ("again, in May", 0.5)]
    assert str(SENTINEL) not in ledger.read_text()


def test_a_refused_charge_writes_nothing(table, ledger, tmp_path):
    out, plot = tmp_path / "release.json", tmp_path / "release.png"
    before = ledger.read_bytes()
    result = median(table, "--ledger", ledger, *NAMED, "--out", out, "--plot", plot, epsilon=3.5)
    assert_refused(result, "ledger.remaining()", f"pymc-dpdepth ledger show {ledger}", "Nothing was charged")
    assert not out.exists() and not plot.exists() and ledger.read_bytes() == before


def test_bad_input_charges_nothing(table, ledger, tmp_path):
    before = ledger.read_bytes()
    assert_refused(median(table, "--ledger", ledger, "--data-id", "study-8"), "study-8")
    assert_refused(median(table, "--ledger", ledger, *NAMED, "--sampler", "slice"), "--accept-asymptotic")
    assert_refused(median(table, "--ledger", ledger, *NAMED, "--out", tmp_path))
    assert_refused(median(table, "--ledger", ledger, *NAMED, epsilon=0))
    assert_refused(median(table, *NAMED), "--data-id", "--ledger")
    assert_refused(median(table, "--key", tmp_path / "key"), "--key", "--ledger")
    assert_refused(median(table, "--label", "x"), "--label", "--ledger")
    assert_refused(median(table, "--ledger", ledger), "--data-id NAME", "--key FILE", f"ledger show {ledger}")
    assert_refused(median(table, "--ledger", ledger, *NAMED, "--label", ""), "label: expected 1 to 1,000 characters")
    assert_refused(median(table, "--ledger", tmp_path / "missing", *NAMED), "ledger init")
    assert_refused(median(table, "--ledger", table, *NAMED), "another kind of file")
    assert ledger.read_bytes() == before


def test_the_ledger_is_no_target(table, ledger):
    before = ledger.read_bytes()
    for option in ("--out", "--plot"):
        refused = median(table, "--ledger", ledger, *NAMED, option, ledger, "--overwrite")
        assert_refused(refused, f"{option}: expected another file than the ledger")
    assert ledger.read_bytes() == before


def test_a_key_names_the_table(table, tmp_path):
    key, path = tmp_path / "key.txt", tmp_path / "keyed.jsonl"
    made = run("ledger", "key", key)
    assert made.exit_code == 0 and made.stdout == f"key: {key}\n"
    assert_refused(run("ledger", "key", key), "not overwritten")
    init = ("ledger", "init", path, "--epsilon", 3, "--data", table, "--key", key)
    assert run(*init).exit_code == 0
    result = median(table, "--ledger", path, "--key", key)
    assert result.exit_code == 0, result.stderr
    frame = pd.read_csv(table)
    frame["b"] += 1.0  # a column that is not used; the table is another one all the same
    other = tmp_path / "other.csv"
    frame.to_csv(other, index=False)
    before = path.read_bytes()
    assert_refused(median(other, "--ledger", path, "--key", key), "the ledger of these rows and this key")
    assert_refused(median(table, "--ledger", path, *NAMED), "a fingerprint", "--key")
    assert_refused(median(table, "--ledger", path), "--key FILE")
    assert_refused(median(table, "--ledger", path, "--key", key, "--out", key, "--overwrite"), "than the key")
    assert path.read_bytes() == before and key.read_text().strip() not in path.read_text()
    some = tmp_path / "some.jsonl"
    made = run("ledger", "init", some, "--epsilon", 3, "--data", table, "--key", key, "--columns", "a")
    assert made.exit_code == 0, made.stderr
    assert median(other, "--ledger", some, "--key", key).exit_code == 0  # its column is the same
    assert len(dpd.Ledger(some).entries()) == len(dpd.Ledger(path).entries()) == 1


def test_the_installed_command(table, tmp_path):
    path = tmp_path / "study.jsonl"

    def command(*arguments):
        line = [sys.executable, "-m", "pymc_dpdepth.cli", *map(str, arguments)]
        return subprocess.run(line, capture_output=True, text=True)

    assert command("ledger", "init", path, "--epsilon", 1, "--data-id", "study-7").returncode == 0
    asked = ("median", table, "--columns", "a", "--epsilon", 2, "--prior", "uniform(0, 100)")
    refused = command(*asked, "--ledger", path, *NAMED)
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
    assert "ledger.remaining()" in refused.stderr
    shown = command("ledger", "show", path, "--json")
    assert shown.returncode == 0 and json.loads(shown.stdout)["entries"] == []
    usage = command("ledger", "show")
    assert (usage.returncode, usage.stderr.count("\n")) == (2, 1)
