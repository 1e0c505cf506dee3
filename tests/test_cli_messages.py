"""Errors that may not be shown name, for each command, the function that shows them to the curator."""

import functools
import re

import pytest
from typer.testing import CliRunner

import pymc_dpdepth
from pymc_dpdepth import cli
from pymc_dpdepth.cli_messages import one_line_errors

QUOTING = "could not convert string to float: '31.4'"

# What each command calls first of the library, and the function of Python that its error should name.
COMMANDS = {
    "median": (["data.csv", "--epsilon", "1", "--prior", "normal(0, 1)"], "pymc_dpdepth.private_median"),
    "depth": (["data.csv", "--at", "points.csv", "--epsilon", "1"], "pymc_dpdepth.private_depth"),
    "ptr-median": (
        ["data.csv", "--epsilon", "1", "--delta", "1e-6", "--threshold", "1", "--radius", "1"],
        "pymc_dpdepth.propose_test_release",
    ),
    "scale-test": (["x.csv", "y.csv", "--epsilon", "1"], "pymc_dpdepth.private_scale_test"),
    "extrema": (
        ["data.csv", "--family", "gaussian", "--bounds", "0,1", "--epsilon", "1"],
        "pymc_dpdepth.extrema_interval",
    ),
    "ledger init": (["study.jsonl", "--epsilon", "1", "--data-id", "x"], "pymc_dpdepth.Ledger.create"),
    "ledger key": (["key.txt"], "pymc_dpdepth.Ledger.create_key"),
    "ledger show": (["study.jsonl"], "pymc_dpdepth.Ledger"),
}


def fail(*arguments, **options):
    raise ValueError(QUOTING)


def commands():
    """Yield all commands of the program by their full names."""
    for group in (cli.app, *(each.typer_instance for each in cli.app.registered_groups)):
        prefix = next((f"{each.name} " for each in cli.app.registered_groups if each.typer_instance is group), "")
        for each in group.registered_commands:
            yield prefix + (each.name or each.callback.__name__)


def test_no_command_is_forgotten_here():
    assert sorted(commands()) == sorted(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_names_its_own_function(command, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    # Modules that are imported by a command must not take a broken name with them, so nothing they import is replaced.
    replaced = "cli_options.table_of table_files.file_kind privacy.ledger.Ledger.create privacy.ledger.Ledger.__init__"
    for name in replaced.split():
        monkeypatch.setattr(f"pymc_dpdepth.{name}", fail)
    monkeypatch.setattr("pymc_dpdepth.privacy.ledger_data.create_key", fail)  # after ledger.py, which copies it
    arguments, function = COMMANDS[command]
    result = CliRunner().invoke(cli.app, [*command.split(), *arguments])
    assert result.exit_code == 2 and len(result.stderr.strip().splitlines()) == 1
    assert "31.4" not in result.stderr and f"; {function} in Python shows it to the curator." in result.stderr
    # What is named exists.
    (named,) = re.findall(r"pymc_dpdepth(\S*) in Python", result.stderr)
    assert callable(functools.reduce(getattr, named.strip(".").split("."), pymc_dpdepth))


def test_a_command_must_say_what_it_is_in_python():
    with pytest.raises(TypeError):
        one_line_errors()
