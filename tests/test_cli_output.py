"""What commands print, and the package's notes that they pass on."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import pymc_dpdepth as dpd
from pymc_dpdepth import cli_output


@pytest.mark.parametrize("text", ["[bold]name[/bold]", "größe", "a\x1b[31mb", "one\ntwo"])
def test_cells_are_text_and_nothing_else(text, capsys):
    cli_output.print_facts({"name": text})
    shown = capsys.readouterr().out
    plain = text.replace("\x1b", " ").replace("\n", " ")
    assert shown.split("  ", 1)[1].strip() == plain and "\x1b" not in shown


def test_letters_that_the_terminal_lacks_become_question_marks(monkeypatch):
    class Plain:
        encoding = "ascii"

    monkeypatch.setattr(cli_output.sys, "stdout", Plain())
    assert str(cli_output.cell("größe")) == "gr??e"


def test_files_are_named_in_one_line_each(capsys):
    long = Path("folder") / ("x" * 200)
    cli_output.print_files({"record": long, "picture": None, "ledger charged": Path("y")})
    assert capsys.readouterr().out.splitlines() == [f"record: {long}", "ledger charged: y"]
    cli_output.print_files({"record": None})
    assert "--out FILE keeps it" in capsys.readouterr().out
    cli_output.print_files({"ledger": None})  # a command without a record says nothing of one
    assert capsys.readouterr().out == ""


def test_notes_are_the_packages_own_in_the_words_of_the_options(capsys):
    with cli_output.library_notes() as notes:
        warnings.warn("someone else's", UserWarning, stacklevel=1)
        warnings.warn("random_seed makes a draw\nreproducible", dpd.PrivacyLeakWarning, stacklevel=1)
    assert notes == ["--simulate-seed makes a draw reproducible"]
    cli_output.print_notes(notes)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "Note: --simulate-seed makes a draw reproducible\n")
    with pytest.raises(KeyError), cli_output.library_notes():
        raise KeyError("x")


def test_tables_keep_their_rows(capsys):
    cli_output.print_table([{"header": "one"}, {"header": "two", "justify": "right"}], [("a", "1"), ("b", "[2]")])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["one", "two"] in lines and ["a", "1"] in lines and ["b", "[2]"] in lines


def test_cost_of_several_rows_per_person():
    release = dpd.private_depth([[0.0]], np.arange(50.0), epsilon=0.5, max_rows_per_unit=3)
    facts = cli_output.cost_facts(release, "all points")
    assert facts["epsilon spent"] == "1.5, once for all points, 3 rows per person at 0.5 each; delta 0"
    assert facts["guarantee"].startswith("exact: ") and "simulation" not in facts


def test_a_failed_write_says_that_epsilon_is_spent(tmp_path):
    class Result:
        epsilon = 1.5

        def to_json(self, path):
            raise OSError(28, "No space left on device")

    with pytest.raises(ValueError, match="No space left on device. Count its epsilon, 1.5, as spent"):
        cli_output.write(Result(), tmp_path / "x.json")
    cli_output.write(Result(), None)  # nothing to write
