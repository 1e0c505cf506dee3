"""The lines of a ledger as charges: what is none is refused by name, and booking needs no lock."""

import json

import pytest

import pymc_dpdepth as dpd
from pymc_dpdepth.privacy import ledger_entries, ledger_file
from pymc_dpdepth.privacy.accountant import PrivacyAccountant
from pymc_dpdepth.privacy.ledger_lock import locked

CHARGE = {
    "kind": "charge",
    "number": 1,
    "epsilon": 0.1,
    "delta": 0.0,
    "bounded_range": [],
    "group": None,
    "label": "x",
    "time": "2030-01-01T00:00:00+00:00",
    "package_version": "0.1.0",
}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "study.jsonl"
    dpd.Ledger.create(path, epsilon=3.0, data_id="study-7")
    return path


def add(path, *records):
    """Write lines as another program might, with checks that fit."""
    check = json.loads(path.read_text().splitlines()[-1])["check"]
    for record in records:
        line, check = ledger_file.sealed(record, check)
        with path.open("ab") as file:
            file.write(line + b"\n")


def without(record, field):
    return {name: value for name, value in record.items() if name != field}


WRONG = {
    "no kind": (without(CHARGE, "kind"), "kinds charge and torn.*upgrade"),
    "no epsilon": (without(CHARGE, "epsilon"), "as entry 1 of .*study.jsonl; it lacks 'epsilon'"),
    "no group": (without(CHARGE, "group"), "it lacks 'group'"),
    "minus": (CHARGE | {"epsilon": -5}, "as entry 1 of .*study.jsonl: epsilon: expected a finite number > 0, got -5"),
    "nan": (CHARGE | {"delta": float("inf")}, "study.jsonl: delta: expected a finite number"),
    "huge": (CHARGE | {"epsilon": 10**400}, "study.jsonl: epsilon: expected a finite number"),
    "text": (CHARGE | {"epsilon": "0.1"}, "study.jsonl: epsilon: expected a finite number"),
    "range": (CHARGE | {"bounded_range": 0.1}, "study.jsonl: bounded_range: expected a sequence"),
    "group": (CHARGE | {"group": ["north"]}, "study.jsonl: group: expected a string"),
    "number": (CHARGE | {"number": 2}, "line 2 of .*study.jsonl was changed, damaged, or is not in its place"),
    "no number": (without(CHARGE, "number"), "line 2 of .*study.jsonl was changed"),
}


@pytest.mark.parametrize(("record", "message"), WRONG.values(), ids=WRONG)
def test_a_line_that_is_no_charge_is_refused_by_file_and_number(path, record, message, monkeypatch):
    opened = dpd.Ledger(path, data_id="study-7")
    dumps = json.dumps
    monkeypatch.setattr(ledger_file.json, "dumps", lambda record, **options: dumps(record, separators=(",", ":")))
    add(path, record)
    monkeypatch.undo()
    for use in (lambda: dpd.Ledger(path), opened.entries, opened.spent, lambda: opened.charge(epsilon=0.1, label="y")):
        with pytest.raises(ValueError, match=message) as caught:
            use()
        assert type(caught.value) is ValueError


def test_a_delta_that_the_budget_has_no_room_for_is_refused_by_file_and_number(path):
    add(path, CHARGE | {"delta": 1e-9})
    with pytest.raises(ValueError, match="^Entry 1 of .*study.jsonl: delta: this budget holds charges with delta=0"):
        dpd.Ledger(path).spent()


def test_what_fits_is_read(path):
    add(path, CHARGE, CHARGE | {"number": 2})
    assert dpd.Ledger(path).spent().epsilon == 0.2


def test_a_line_with_a_check_that_is_no_json_is_damage(path):
    check = json.loads(path.read_text().splitlines()[-1])["check"]
    body = b'{"kind":"charge",oops'
    line = body + b',"check":"' + ledger_file._check_of(check, body).encode() + b'"}\n'
    with path.open("ab") as file:
        file.write(line)
    with pytest.raises(ValueError, match="line 2 of .*study.jsonl was changed"):
        dpd.Ledger(path)


@pytest.mark.parametrize("field", [*ledger_entries.BUDGET, "neighboring"])
def test_a_header_without_a_budget_or_an_adjacency_is_refused(path, tmp_path, field):
    header = json.loads(path.read_text())
    other = tmp_path / "other.jsonl"
    kept = {name: header[name] for name in header if name not in ("schema", "version", "check", field)}
    ledger_file.create(other, kept, timeout=5)
    with pytest.raises(ValueError, match=rf"in line 1 of .*other.jsonl; it lacks \['{field}'\].*upgrade"):
        dpd.Ledger(other)
    wrong = tmp_path / "wrong.jsonl"
    ledger_file.create(wrong, kept | {field: [1]}, timeout=5)
    with pytest.raises((ValueError, TypeError), match="[Ll]ine 1 of .*wrong.jsonl: "):
        dpd.Ledger(wrong).spent()


def test_a_ledger_of_no_adjacency_is_refused(path, tmp_path):
    header = json.loads(path.read_text())
    none = tmp_path / "none.jsonl"
    kept = {name: header[name] for name in header if name not in ("schema", "version", "check")}
    ledger_file.create(none, kept | {"neighboring": None}, timeout=5)
    with pytest.raises(ValueError, match="[Ll]ine 1 of .*none.jsonl: neighboring: expected one of.*got None"):
        dpd.Ledger(none)


def test_old_charges_are_booked_before_others_have_to_wait(path, monkeypatch):
    add(path, *(CHARGE | {"number": number} for number in range(1, 6)))
    ledger = dpd.Ledger(path, data_id="study-7")
    held = []

    def watched(self, *, charge=PrivacyAccountant.charge, **cost):
        try:
            with locked(path, write=True, timeout=0):
                held.append(False)
        except TimeoutError:
            held.append(True)
        return charge(self, **cost)

    monkeypatch.setattr(PrivacyAccountant, "charge", watched)
    ledger.charge(epsilon=0.1, label="new")
    assert held == [False] * 5 + [True]
    ledger.charge(epsilon=0.1, label="another")
    assert held == [False] * 5 + [True, True]


def test_lines_that_were_read_are_not_verified_again_unless_they_changed(path, monkeypatch):
    ledger = dpd.Ledger(path, data_id="study-7")
    for _ in range(3):
        ledger.charge(epsilon=0.1, label="x")
    verified = []
    check_of = ledger_file._check_of
    monkeypatch.setattr(ledger_file, "_check_of", lambda *line: verified.append(line) or check_of(*line))
    ledger.spent()
    assert len(verified) == 1  # what follows the last line: nothing
    add(path, CHARGE | {"number": 4})
    verified.clear()
    assert ledger.spent().epsilon == 0.4 and len(verified) == 2
    text = path.read_bytes()
    path.write_bytes(text.replace(b'"epsilon":0.1', b'"epsilon":0.2', 1))
    with pytest.raises(ValueError, match="line 2 of .* was changed"):
        ledger.spent()
    path.write_bytes(text)
    assert ledger.spent().epsilon == 0.4
