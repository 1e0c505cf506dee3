"""The ledger: no charge is lost, none is granted twice, and none goes to another data set."""

import json
import os
import pickle
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pymc_dpdepth as dpd
from pymc_dpdepth.privacy import ledger as ledger_module
from pymc_dpdepth.privacy import ledger_file

ROWS = np.array([[31.4159, -1.2], [31.4159, 0.4], [-2.07, 0.9], [1.44, np.nan], [0.0, -0.6]])
SENTINELS = ("31.4159", "2.07", "1.44")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.jsonl"


@pytest.fixture
def ledger(path):
    return dpd.Ledger.create(path, epsilon=3.0, data_id="study-7")


@pytest.fixture
def key(tmp_path):
    path = tmp_path / "key"
    dpd.Ledger.create_key(path)
    return path


def charged(ledger):
    return [(entry["label"], entry["epsilon"]) for entry in ledger.entries()]


# Charging


def test_charges_are_kept_and_the_budget_ends(ledger, path):
    entry = ledger.charge(epsilon=1.0, label="median", bounded_range=(0.5, 0.5))
    assert entry == ledger.entries()[0]
    assert (entry["number"], entry["kind"], entry["bounded_range"], entry["delta"]) == (1, "charge", (0.5, 0.5), 0.0)
    assert entry["package_version"] == dpd.__version__ and entry["time"].endswith("+00:00")
    ledger.charge(epsilon=2, label="median")  # the same again costs again
    before = path.read_bytes()
    with pytest.raises(dpd.BudgetExceededError, match=r"ledger\.remaining\(\) and `pymc-dpdepth ledger show .*jsonl`"):
        ledger.charge(epsilon=1e-6, label="one more")
    assert path.read_bytes() == before
    assert charged(ledger) == charged(dpd.Ledger(path)) == [("median", 1.0), ("median", 2.0)]


def test_what_is_spent_and_left_is_what_the_accountant_says(path):
    budget = {"epsilon": 3.0, "delta": 1e-6, "charge_delta": 1e-7}
    ledger = dpd.Ledger.create(path, **budget, data_id="study-7")
    accountant = dpd.PrivacyAccountant(**budget)
    charges = [
        {"epsilon": 0.3, "label": "a", "bounded_range": (0.3,)},
        {"epsilon": 0.2, "label": "b", "group": "north"},
        {"epsilon": 0.1, "label": "c", "group": "south"},
        {"epsilon": 0.4, "delta": 1e-8, "label": "d"},
    ]
    for charge in charges:
        ledger.charge(**charge)
        accountant.charge(**charge)
        assert ledger.spent() == accountant.spent() and ledger.remaining() == accountant.remaining()
    assert dpd.Ledger(path).spent() == accountant.spent()
    assert [entry["group"] for entry in ledger.entries()] == [None, "north", "south", None]


def test_a_ledger_in_rho(path):
    ledger = dpd.Ledger.create(path, rho=0.25, data_id="study-7")
    ledger.charge(epsilon=1.0, label="median", bounded_range=(1.0,))
    accountant = dpd.PrivacyAccountant(rho=0.25)
    accountant.charge(epsilon=1.0, label="median", bounded_range=(1.0,))
    assert ledger.remaining() == accountant.remaining()
    with pytest.raises(dpd.BudgetExceededError):  # rho = epsilon^2 / 2 where it is not said to be bounded-range
        ledger.charge(epsilon=1.0, label="noise")
    assert len(ledger.entries()) == 1


def test_the_charge_is_on_disk_before_the_draw(ledger, path, monkeypatch):
    from pymc_dpdepth.samplers.exact import ExactPlan

    seen = []

    def crash(*args, **kwargs):
        seen.extend(charged(dpd.Ledger(path)))
        raise ZeroDivisionError

    monkeypatch.setattr(ExactPlan, "draw", crash)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            dpd.private_median(ROWS[:, :1], epsilon=1.0, prior="normal(0, 30)", ledger=ledger)
    assert len(seen) == 1 + 2 + 3 and set(seen) == {("median", 1.0)}
    with pytest.raises(dpd.BudgetExceededError):
        dpd.private_median(ROWS[:, :1], epsilon=1.0, prior="normal(0, 30)", ledger=ledger)
    assert len(seen) == 6  # no draw was tried


WRONG = {
    "nan": {"epsilon": np.nan},
    "inf": {"epsilon": np.inf},
    "minus": {"epsilon": -0.1},
    "zero": {"epsilon": 0.0},
    "bool": {"epsilon": True},
    "numpy bool": {"epsilon": np.True_},
    "text": {"epsilon": "1"},
    "none": {"epsilon": None},
    "array": {"epsilon": np.ones(1)},
    "huge": {"epsilon": 10**400},
    "delta nan": {"delta": np.nan},
    "delta minus": {"delta": -1e-9},
    "delta one": {"delta": 1.0},
    "delta bool": {"delta": False},
    "range": {"bounded_range": 1.0},
    "range nan": {"bounded_range": (np.nan,)},
    "range bool": {"bounded_range": (True,)},
    "range minus": {"bounded_range": (-1.0,)},
    "range text": {"bounded_range": "1"},
    "label empty": {"label": ""},
    "label bytes": {"label": b"x"},
    "label none": {"label": None},
    "label endless": {"label": "x" * 1001},
    "group": {"group": 3},
    "adjacency": {"neighboring": "add_or_remove_one"},
    "adjacency unknown": {"neighboring": "bounded"},
    "adjacency none": {"neighboring": None},
    "adjacency list": {"neighboring": ["replace_one"]},
    "range zero": {"bounded_range": (0.0,)},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_wrong_charges_are_refused_before_anything_is_written(ledger, path, wrong):
    before = path.read_bytes()
    with pytest.raises((ValueError, TypeError)) as caught:
        ledger.charge(**({"epsilon": 0.5, "label": "x"} | wrong))
    assert type(caught.value) in (ValueError, TypeError)
    assert path.read_bytes() == before
    ledger.charge(epsilon=0.5, label="x")


@pytest.mark.parametrize("label", ["two\nlines\r\n", "Größe 中文 🙂", "\ud800", '"},"check":"', "\0", "x" * 1000])
def test_labels_come_back_as_they_were(ledger, path, label):
    ledger.charge(epsilon=np.float32(0.5), label=label, group=label)
    (entry,) = dpd.Ledger(path).entries()
    assert entry["label"] == entry["group"] == label and entry["epsilon"] == 0.5
    assert path.read_bytes().count(b"\n") == 2


def test_a_clock_that_goes_backwards_changes_nothing(ledger, monkeypatch):
    for moment in ("2030-01-01T00:00:00+00:00", "1999-01-01T00:00:00+00:00"):
        monkeypatch.setattr(ledger_module, "stamp", lambda moment=moment: {"time": moment})
        ledger.charge(epsilon=1.0, label=moment)
    assert [entry["time"][:4] for entry in ledger.entries()] == ["2030", "1999"]
    assert [entry["number"] for entry in ledger.entries()] == [1, 2]


# Processes, threads and kills

CHILD = """
    import sys
    from pymc_dpdepth import BudgetExceededError, Ledger

    ledger = Ledger(sys.argv[1], data_id="study-7")
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        while True:
            entry = ledger.charge(epsilon=1.0, label=f"process {sys.argv[2]}")
            print(entry["number"], flush=True)
    except BudgetExceededError:
        pass
"""
PROCESSES, BUDGET = 8, 100


def start(path, name):
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(CHILD), str(path), str(name)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)


def test_eight_processes_that_race_for_a_budget_of_100_spend_100(path):
    ledger = dpd.Ledger.create(path, epsilon=BUDGET, data_id="study-7")
    children = [start(path, name) for name in range(PROCESSES)]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.stdin.write("go\n")
    outputs = [child.communicate()[0] for child in children]
    assert all(child.returncode == 0 for child in children)
    numbers = [int(number) for output in outputs for number in output.split()]
    assert sorted(numbers) == list(range(1, BUDGET + 1))
    assert [entry["number"] for entry in ledger.entries()] == list(range(1, BUDGET + 1))
    assert ledger.spent() == dpd.Ledger(path).spent()
    with pytest.raises(dpd.BudgetExceededError):
        ledger.charge(epsilon=1e-3, label="101st")


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")
def test_kill_9_loses_no_charge_that_was_granted(path):
    dpd.Ledger.create(path, epsilon=1e6, data_id="study-7")
    moments = random.Random(4)
    granted = []
    for name in range(8):
        child = start(path, name)
        child.stdout.readline()
        child.stdin.write("go\n")
        first = child.stdout.readline()  # it is in the middle of its work
        time.sleep(moments.uniform(0.0, 0.03))
        child.kill()
        with child:  # `communicate` would lose what `readline` has read ahead
            rest = child.stdout.read()
        numbers = [int(number) for number in (first + rest).split()]
        assert child.returncode == -signal.SIGKILL and numbers
        granted += numbers
        ledger = dpd.Ledger(path, data_id="study-7")  # whatever the kill left opens
        entries = {entry["number"]: entry for entry in ledger.entries() if entry["kind"] == "charge"}
        assert set(granted) <= set(entries)
        assert all(entries[number]["label"] == f"process {name}" for number in numbers)
    assert len(granted) == len(set(granted))
    # What was not granted and counts all the same is at most the one charge that each kill interrupted.
    assert len(entries) - len(granted) <= 8
    ledger.charge(epsilon=1.0, label="after")


def test_threads_and_objects_share_a_ledger(path):
    first = dpd.Ledger.create(path, epsilon=40, data_id="study-7")
    second = dpd.Ledger(path, data_id="study-7")
    refusals = []

    def work(ledger):
        try:
            while True:
                ledger.charge(epsilon=1.0, label="x")
                ledger.remaining()
        except dpd.BudgetExceededError:
            refusals.append(1)

    threads = [threading.Thread(target=work, args=(ledger,)) for ledger in (first, first, first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refusals) == 4 and len(first.entries()) == len(second.entries()) == 40


def test_a_ledger_can_be_sent_to_another_process(ledger, path):
    ledger.charge(epsilon=1.0, label="here")
    copy = pickle.loads(pickle.dumps(ledger))
    copy.charge(epsilon=1.0, label="there")
    ledger.charge(epsilon=1.0, label="here")
    assert [label for label, _ in charged(ledger)] == ["here", "there", "here"]


def test_a_held_lock_is_waited_for_and_then_told(ledger, path):
    hasty = dpd.Ledger(path, timeout=0.01, data_id="study-7")
    with ledger_module.locked(path, write=True, timeout=0):
        with pytest.raises(TimeoutError, match="longer timeout to Ledger"):
            hasty.charge(epsilon=1.0, label="x")
    hasty.charge(epsilon=1.0, label="x")
    assert len(ledger.entries()) == 1


# Damage


def test_a_torn_line_costs_nothing_and_stays_visible(ledger, path):
    ledger.charge(epsilon=1.0, label="whole")
    with path.open("ab") as file:
        file.write(b'{"kind":"charge","epsilon":2.0,')
    spent = ledger.spent()
    (_, torn) = dpd.Ledger(path).entries()
    assert (torn["kind"], torn["label"], torn["epsilon"]) == (
        "torn",
        "incomplete line of 31 bytes; never granted if a crash left it",
        0.0,
    )
    ledger.charge(epsilon=2.0, label="next")
    assert [entry["kind"] for entry in ledger.entries()] == ["charge", "torn", "charge"]
    assert ledger.entries()[1]["label"] == torn["label"] and ledger.spent() != spent
    assert pd.DataFrame(ledger.entries())["epsilon"].sum() == 3.0
    assert '{\\"kind\\":\\"charge\\",\\"epsilon\\":2.0,"' in path.read_text()


def test_an_edited_charge_is_refused(ledger, path):
    ledger.charge(epsilon=2.0, label="x")
    ledger.charge(epsilon=0.5, label="y")
    text = path.read_text()
    for old, new in (
        ('"epsilon":2.0', '"epsilon":0.2'),
        ('"epsilon":0.5', '"epsilon":0.1'),
        ('"epsilon":3.0', '"epsilon":9'),
    ):
        path.write_text(text.replace(old, new))
        for use in (lambda: dpd.Ledger(path), ledger.spent, lambda: ledger.charge(epsilon=0.1, label="z")):
            with pytest.raises(ValueError, match="was changed.*Restore the file from a backup"):
                use()
    path.write_text(text)
    ledger.charge(epsilon=0.5, label="z")


def test_an_open_ledger_notices_that_lines_are_gone(ledger, path, tmp_path):
    ledger.charge(epsilon=1.0, label="x")
    backup = path.read_bytes()
    ledger.charge(epsilon=1.0, label="y")
    whole = path.read_bytes()
    path.write_bytes(backup)
    for use in (ledger.remaining, lambda: ledger.charge(epsilon=1.0, label="z")):
        with pytest.raises(ValueError, match="some are gone, or it is another ledger now"):
            use()
    path.unlink()
    with pytest.raises(FileNotFoundError, match="restore it from a backup"):
        ledger.charge(epsilon=1.0, label="z")
    dpd.Ledger.create(path, epsilon=3.0, data_id="study-7")
    with pytest.raises(ValueError, match="open that one anew"):
        ledger.charge(epsilon=1.0, label="z")
    path.write_bytes(whole)
    ledger.charge(epsilon=1.0, label="z")


def test_a_charge_that_cannot_be_written_is_not_granted(ledger, path, monkeypatch):
    before = path.read_bytes()

    def full(descriptor, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ledger_file.os, "write", full)
    with pytest.raises(OSError, match="cannot be written to .*No space left on device. Free some space; nothing"):
        ledger.charge(epsilon=3.0, label="x")
    monkeypatch.undo()
    assert path.read_bytes() == before
    ledger.charge(epsilon=3.0, label="x")


@pytest.mark.parametrize("kind", ["refund", None])
def test_records_of_an_unknown_kind_are_refused(ledger, path, kind):
    with ledger_module.locked(path, write=True, timeout=1) as descriptor:
        contents = ledger_file.read(descriptor, path)
        ledger_file.append(descriptor, contents, {"kind": kind, "epsilon": -1.0}, {})
    with pytest.raises(ValueError, match="kinds charge and torn.*upgrade"):
        dpd.Ledger(path)


# The data set and the adjacency


def test_another_data_set_is_refused(ledger, path):
    assert dpd.Ledger(path, data_id="study-7").describe()["data_id"] == "study-7"
    with pytest.raises(ValueError, match="data_id='study-8'.*is of 'study-7'.*make one with Ledger.create"):
        dpd.Ledger(path, data_id="study-8")
    with pytest.raises(ValueError, match="expected both, or neither"):
        dpd.Ledger(path, data=ROWS)
    with pytest.raises(TypeError, match="data_id: expected text"):
        dpd.Ledger(path, data_id=7)


def test_another_table_is_refused_by_its_fingerprint(path, key):
    dpd.Ledger.create(path, epsilon=1.0, data=ROWS, key=key)
    changed = ROWS.copy()
    changed[2, 0] = np.nextafter(changed[2, 0], 0)
    frame = pd.DataFrame(ROWS[::-1], columns=["x0", "x1"])
    for same in (ROWS, ROWS[[4, 2, 0, 1, 3]], frame, np.where(ROWS == 0, -0.0, ROWS)):
        dpd.Ledger(path, data=same, key=key)
    renamed = frame.rename(columns={"x0": "y0"})
    for other in (changed, ROWS[:4], ROWS[[0, 0, 1, 2, 3]], ROWS[:, ::-1], ROWS[:, :1], renamed):
        with pytest.raises(ValueError, match="the ledger of these rows and this key") as caught:
            dpd.Ledger(path, data=other, key=key)
        assert not any(number in str(caught.value) for number in SENTINELS)
    with pytest.raises(ValueError, match="these rows and this key"):
        dpd.Ledger(path, data=ROWS, key=b"k" * 32)
    with pytest.raises(ValueError, match="names its data set by a fingerprint; pass data= and key="):
        dpd.Ledger(path, data_id="study-7")


def test_both_names_are_checked(path, key):
    dpd.Ledger.create(path, epsilon=1.0, data_id="study-7", data=ROWS, key=key)
    dpd.Ledger(path, data_id="study-7", data=ROWS, key=key)
    with pytest.raises(ValueError, match="these rows"):
        dpd.Ledger(path, data_id="study-7", data=ROWS[1:], key=key)
    with pytest.raises(ValueError, match="study-8"):
        dpd.Ledger(path, data_id="study-8", data=ROWS, key=key)


def test_a_ledger_without_a_fingerprint_says_so(ledger, path, key):
    with pytest.raises(ValueError, match="names its data set by data_id"):
        dpd.Ledger(path, data=ROWS, key=key)


def test_fingerprints_need_the_key(key, tmp_path):
    other = tmp_path / "other"
    dpd.Ledger.create_key(other)
    names = {dpd.Ledger.fingerprint(ROWS, secret) for secret in (key, other, b"k" * 32)}
    assert len(names) == 3 and all(len(name) == 64 for name in names)
    assert dpd.Ledger.fingerprint(ROWS, bytes.fromhex(key.read_text())) == dpd.Ledger.fingerprint(ROWS, str(key))
    assert dpd.Ledger.fingerprint(ROWS, key, columns=["x1"]) != dpd.Ledger.fingerprint(ROWS, key)
    assert dpd.Ledger.fingerprint(np.zeros((0, 2)), key) != dpd.Ledger.fingerprint(np.zeros((0, 1)), key)


def test_keys(key, tmp_path):
    secret = key.read_text().strip()
    assert len(bytes.fromhex(secret)) == 32
    if os.name == "posix":
        assert key.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError, match="not overwritten"):
        dpd.Ledger.create_key(key)
    short = tmp_path / "short"
    short.write_text("abc123")
    text = tmp_path / "text"
    text.write_text("é no key", encoding="utf-8")
    for wrong in (short, text, b"k" * 31, tmp_path / "missing", 3):
        with pytest.raises((ValueError, FileNotFoundError, TypeError), match="key: ") as caught:
            dpd.Ledger.fingerprint(ROWS, wrong)
        assert "abc123" not in str(caught.value)


def test_another_adjacency_is_refused(path, ledger, tmp_path):
    dpd.Ledger(path, neighboring="replace_one")
    with pytest.raises(ValueError, match="Costs of the two do not add up"):
        dpd.Ledger(path, neighboring="add_or_remove_one")
    with pytest.raises(ValueError, match="neighboring: expected one of"):
        dpd.Ledger(path, neighboring="bounded")
    other = dpd.Ledger.create(tmp_path / "o", epsilon=1.0, data_id="x", neighboring="add_or_remove_one")
    with pytest.raises(ValueError, match="is for 'add_or_remove_one'"):  # what the package releases is for replace_one
        dpd.private_median(ROWS[:, :1], epsilon=1.0, prior="normal(0, 30)", ledger=other)
    with pytest.raises(ValueError, match="neighboring: expected one of .* got None"):  # no way around the check
        other.charge(epsilon=1.0, label="x", neighboring=None)
    assert other.entries() == []
    other.charge(epsilon=1.0, label="x", neighboring="add_or_remove_one")


def test_messages_say_which_numbers_are_allowed(path, ledger):
    for wrong in (0, -1.0):
        with pytest.raises(ValueError, match="^epsilon: expected a finite number > 0"):
            dpd.Ledger.create(path.with_name("other"), epsilon=wrong, data_id="x")
        with pytest.raises(ValueError, match="^epsilon: expected a finite number > 0"):
            ledger.charge(epsilon=wrong, label="x")
    with pytest.raises(ValueError, match="^delta: expected a finite number >= 0"):
        dpd.Ledger.create(path.with_name("other"), epsilon=1.0, delta=-1.0, data_id="x")
    for group in (3, [], True):
        with pytest.raises(TypeError, match="^group: expected text"):
            ledger.remaining(group)


def test_a_ledger_that_was_opened_by_its_path_alone_is_for_reading(path, ledger, key):
    ledger.charge(epsilon=1.0, label="x")
    reader = dpd.Ledger(path)
    assert reader.spent() == ledger.spent() and reader.entries() == ledger.entries()
    before = path.read_bytes()
    for use in (
        lambda: reader.charge(epsilon=1.0, label="y"),
        lambda: dpd.private_median(ROWS[:, :1], epsilon=1.0, prior="normal(0, 30)", ledger=reader),
    ):
        with pytest.raises(ValueError, match=r"opened by its path alone.*Open it with Ledger\(path, data_id="):
            use()
    assert path.read_bytes() == before
    other = path.with_name("other.jsonl")
    dpd.Ledger.create(other, epsilon=1.0, data=ROWS, key=key).charge(epsilon=0.5, label="x")
    dpd.Ledger(other, data=ROWS, key=key).charge(epsilon=0.5, label="y")


def test_a_median_of_other_rows_than_the_ledgers_is_refused(path, key):
    frame = pd.DataFrame({"a": ROWS[:, 0], "b": ROWS[:, 0] + 1, "name": list("vwxyz")})
    dpd.Ledger.create(path, epsilon=1.0, data=frame, key=key, columns=["a", "b"])
    ledger = dpd.Ledger(path, data=frame[["b", "a", "name"]], key=key)
    assert ledger.describe()["data_columns"] == ["a", "b"]
    other = frame.assign(a=frame["a"] + 1)

    def median(data, ledger=ledger):
        return dpd.private_median(data, columns=["b"], epsilon=0.25, prior="normal(0, 30)", ledger=ledger)

    before = path.read_bytes()
    for wrong in (other, frame[["b", "name"]], frame[1:]):
        with pytest.raises(ValueError, match="ledger of these rows and this key|'a'") as caught:
            median(wrong)
        assert not any(number in str(caught.value) for number in SENTINELS)
    assert path.read_bytes() == before
    median(frame)
    median(frame[::-1])
    copy = pickle.loads(pickle.dumps(ledger))  # the key is in a file
    with pytest.raises(ValueError, match="ledger of these rows"):
        median(other, copy)
    median(frame, copy)
    in_memory = dpd.Ledger(path, data=frame, key=bytes.fromhex(key.read_text()))
    assert key.read_text().strip() not in repr(pickle.dumps(in_memory))
    with pytest.raises(ValueError, match="key: expected at least 32"):  # refused rather than not checked
        median(frame, pickle.loads(pickle.dumps(in_memory)))
    median(frame, in_memory)
    assert len(in_memory.entries()) == 4


# Making and showing

NO_BUDGET = {
    "nothing": {},
    "both": {"epsilon": 1.0, "rho": 0.1},
    "nan": {"epsilon": np.nan},
    "bool": {"epsilon": True},
    "minus": {"epsilon": -1.0},
    "inf": {"rho": np.inf},
    "delta": {"epsilon": 1.0, "delta": 1.5},
    "composition": {"epsilon": 1.0, "composition": "hopeful"},
    "no name": {"epsilon": 1.0, "data_id": None},
    "empty name": {"epsilon": 1.0, "data_id": ""},
    "adjacency": {"epsilon": 1.0, "neighboring": "bounded"},
    "no adjacency": {"epsilon": 1.0, "neighboring": None},
    "columns without rows": {"epsilon": 1.0, "columns": ["x0"]},
    "huge": {"epsilon": 10**400},
    "zero": {"rho": 0.0},
    "rows without key": {"epsilon": 1.0, "data": ROWS},
    "timeout": {"epsilon": 1.0, "timeout": -1},
}


@pytest.mark.parametrize("options", NO_BUDGET.values(), ids=NO_BUDGET)
def test_what_is_no_budget_makes_no_file(path, options):
    with pytest.raises((ValueError, TypeError)):
        dpd.Ledger.create(path, **({"data_id": "study-7"} | options))
    assert not path.exists()


def test_an_existing_ledger_is_never_overwritten(ledger, path):
    ledger.charge(epsilon=3.0, label="all")
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="a budget that is spent stays spent"):
        dpd.Ledger.create(path, epsilon=3.0, data_id="study-7")
    assert path.read_bytes() == before


def test_the_composition_is_fixed_in_the_file(ledger, path):
    assert dpd.PrivacyAccountant(epsilon=3.0).composition == ledger.describe()["composition"] is not None
    assert json.loads(path.read_text().splitlines()[0])["composition"] == ledger.describe()["composition"]


def test_nothing_shown_is_secret(path, key, tmp_path, monkeypatch):
    ledger = dpd.Ledger.create(path, epsilon=1.0, delta=1e-9, data=ROWS, key=key)
    name, secret = dpd.Ledger.fingerprint(ROWS, key), key.read_text().strip()
    shown = repr(ledger) + str(ledger.describe()) + str(ledger.entries())
    assert name not in shown and secret not in shown and "epsilon=1.0, delta=1e-09" in repr(ledger)
    text = path.read_text()
    assert name in text and secret not in text and not any(number in text for number in SENTINELS)


def test_the_path_is_the_one_of_the_opening(ledger, path, tmp_path, monkeypatch):
    monkeypatch.chdir(path.parent)
    relative = dpd.Ledger(path.name, data_id="study-7")
    monkeypatch.chdir("/")
    relative.charge(epsilon=1.0, label="x")
    assert relative.path == path and len(ledger.entries()) == 1
    for wrong in (None, 3):
        with pytest.raises(TypeError, match="path: expected the name of a file, got (NoneType|int)"):
            dpd.Ledger(wrong)
    with pytest.raises(ValueError, match="path: expected the name of a file, got empty text"):
        dpd.Ledger("")


def test_a_plan_is_kept_in_the_file(path):
    options = {"epsilon": 3.0, "delta": 1e-6, "composition": "bounded_range", "planned": [1, 0.5, 0.5]}
    ledger = dpd.Ledger.create(path, **options, data_id="study-7")
    ledger.charge(epsilon=0.5, label="one", bounded_range=(0.5,))
    assert dpd.Ledger(path).remaining().planned == (0.5, 1.0)
    with pytest.raises(dpd.BudgetExceededError, match="Charge what was planned"):
        ledger.charge(epsilon=0.7, label="two", bounded_range=(0.7,))
    with pytest.raises(dpd.BudgetExceededError, match="Plan fewer"):
        dpd.Ledger.create(path.with_name("other"), **options | {"planned": [1] * 50}, data_id="study-7")
    assert not path.with_name("other").exists()


def test_fractions_are_rounded_to_the_safe_side(path):
    third = Fraction(1, 3)
    ledger = dpd.Ledger.create(path, epsilon=third, data_id="study-7")
    assert Fraction(ledger.describe()["epsilon"]) < third
    with pytest.raises(dpd.BudgetExceededError):
        ledger.charge(epsilon=third, label="x")
    assert Fraction(ledger.charge(epsilon=third / 2, label="x")["epsilon"]) > third / 2


def test_entries_that_no_longer_fit_leave_nothing_to_spend(ledger, path):
    """As after an upgrade to a version that composes with more caution."""
    ledger.charge(epsilon=1.0, label="x")
    with ledger_module.locked(path, write=True, timeout=1) as descriptor:
        contents = ledger_file.read(descriptor, path)
        ledger_file.append(descriptor, contents, contents.records[0] | {"number": 2, "epsilon": 2.5}, {})
    for use in (ledger.spent, ledger.remaining, lambda: ledger.charge(epsilon=0.1, label="y")):
        with pytest.raises(dpd.BudgetExceededError, match="up to number 2 cost more.*Treat the budget as spent"):
            use()
    assert len(ledger.entries()) == 2


def test_a_symbolic_link_is_the_same_ledger(ledger, path, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(path)
    dpd.Ledger(link, data_id="study-7").charge(epsilon=3.0, label="x")
    with pytest.raises(dpd.BudgetExceededError):
        ledger.charge(epsilon=0.1, label="y")
