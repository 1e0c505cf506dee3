"""The file of a ledger, cut off at every byte, damaged at every byte, and killed after every step of an append."""

import errno
import hashlib
import json
import os
import re
from pathlib import Path

import pytest

from pymc_dpdepth.privacy import ledger_file, ledger_lock
from pymc_dpdepth.privacy.ledger_file import CHARGE, HEAD, TORN, append, create, parse, read
from pymc_dpdepth.privacy.ledger_lock import locked

HEADER = {"epsilon": 3.0, "data_id": "study-7"}
NAME = Path("study.jsonl")


def charge(label):
    return {"kind": CHARGE, "epsilon": 0.1, "label": label}


def labels(contents):
    return [record["label"] for record in contents.records if record["kind"] == CHARGE]


def add(path, label):
    with locked(path, write=True, timeout=5) as descriptor:
        return append(descriptor, read(descriptor, path), charge(label), {"kind": TORN})


def contents_of(path):
    with locked(path, write=False, timeout=5) as descriptor:
        return read(descriptor, path)


@pytest.fixture
def path(tmp_path):
    """Write a ledger of three charges."""
    path = tmp_path / "study.jsonl"
    create(path, HEADER, timeout=5)
    for label in ("one", 'two,"check":"\n', "drei é \ud800"):  # what looks like a check, a line end, half a character
        add(path, label)
    return path


LABELS = ["one", 'two,"check":"\n', "drei é \ud800"]


def test_what_is_written_is_read(path):
    contents = contents_of(path)
    assert labels(contents) == LABELS and contents.tail == b""
    assert [record["number"] for record in contents.records] == [1, 2, 3]
    assert contents.header["data_id"] == "study-7" and contents.header["version"] == 1
    assert path.read_bytes().isascii() and path.read_bytes() == contents.raw


def test_the_chain_is_what_the_documentation_says(path):
    check = ""
    for line in path.read_text().splitlines():
        body = line[: line.rindex(',"check":')]
        check = hashlib.sha256((check + body).encode()).hexdigest()
        assert json.loads(line)["check"] == check


# Cut off and damaged


def test_a_file_cut_off_anywhere_keeps_all_lines_that_have_their_end(path):
    data = path.read_bytes()
    ends = [place.end() for place in re.finditer(b"\n", data)]
    for size in range(len(data)):
        cut = data[:size]
        if size < ends[0] - 1:  # within the header
            with pytest.raises(ValueError, match="ends within its first line"):
                path.write_bytes(cut)
                contents_of(path)
            continue
        contents = parse(cut, NAME)
        # A line that lacks its end alone counts as well: it was durable.
        assert len(contents.records) == sum(size >= end - 1 for end in ends[1:])
        assert contents.raw + contents.tail == cut


@pytest.mark.parametrize(
    "change", [lambda byte: byte ^ 1, lambda byte: 0, lambda byte: 10, lambda byte: 34], ids=range(4)
)
def test_a_changed_byte_is_noticed_or_loses_nothing(path, change):
    data = path.read_bytes()
    accepted = []
    for place in range(len(data)):
        changed = data[:place] + bytes([change(data[place])]) + data[place + 1 :]
        if changed == data:
            continue
        try:
            contents = parse(changed, NAME)
        except ValueError as error:
            assert re.search("was changed, damaged|upgrade", str(error))
        else:
            assert labels(contents) == LABELS
            accepted.append(place)
    assert not accepted or accepted == [len(data) - 1]  # as a power cut may leave the last line end


def test_lines_that_are_missing_doubled_or_moved_are_noticed(path):
    header, *lines = path.read_bytes().splitlines(keepends=True)
    for wrong in ([1, 2], [0, 2], [0, 0, 1, 2], [1, 0, 2], [0, 1, 2, 2]):
        with pytest.raises(ValueError, match=r"line \d of study.jsonl was changed.*Restore the file from a backup"):
            parse(b"".join([header] + [lines[i] for i in wrong]), NAME)
    other = ledger_file.sealed({"schema": ledger_file.SCHEMA, "version": 1, "epsilon": 30.0}, "")[0] + b"\n"
    with pytest.raises(ValueError, match="line 2 of study.jsonl was changed"):
        parse(other + b"".join(lines), NAME)
    # The limit that the documentation states: complete lines missing at the end are not noticed.
    assert len(parse(header + lines[0], NAME).records) == 1


def test_a_complete_last_line_is_never_dropped(path):
    data = path.read_bytes()
    for tail in (b"\n", b"{}\n", b'{"kind":"charge"\n', b"\0\0\n", data.splitlines(keepends=True)[-1][5:]):
        with pytest.raises(ValueError, match="line 5 of study.jsonl was changed"):
            parse(data + tail, NAME)


def test_line_ends_of_another_system_are_damage(path):
    with pytest.raises(ValueError, match="line 1 of study.jsonl was changed"):
        parse(path.read_bytes().replace(b"\n", b"\r\n"), NAME)


# Torn lines

TAILS = {
    "short": b'{"kind":"charge","numb',
    "long": b'{"kind":"charge","label":"' + b"x" * 3000,
    "zeros": bytes(700),
    "noise": bytes(range(128, 256)) * 8,
    "a check": b'{"kind":"charge","check":"' + b"0" * 64 + b'"}',
    "half a check": b'{"kind":"charge","check":"' + b"0" * 40,
}


@pytest.mark.parametrize("tail", TAILS.values(), ids=TAILS)
def test_a_torn_line_is_kept_to_be_seen_and_costs_nothing(path, tail):
    with path.open("ab") as file:
        file.write(tail)
    before = path.read_bytes()
    contents = contents_of(path)
    assert labels(contents) == LABELS and contents.tail == tail
    assert path.read_bytes() == before  # reading repairs nothing
    add(path, "four")
    contents = contents_of(path)
    assert labels(contents) == [*LABELS, "four"] and contents.tail == b""
    *_, torn, four = contents.records
    assert (torn["kind"], torn["number"], torn["bytes"], four["number"]) == (TORN, 4, len(tail), 5)
    text = tail.decode("latin-1")
    assert torn["text"] == (text[:500] if text.isascii() and text.isprintable() else "")


class Disk:
    """Stands for `os` in the module: writes byte by byte, and keeps the file as it was after each step."""

    def __init__(self, path, limit=None):
        self.path, self.states, self.limit = path, [], limit

    def __getattr__(self, name):
        return getattr(os, name)

    def keep(self):
        self.states.append(self.path.read_bytes())

    def write(self, descriptor, data):
        if self.limit is not None and os.lseek(descriptor, 0, os.SEEK_CUR) >= self.limit:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = os.write(descriptor, data[:1])
        self.keep()
        return written

    def ftruncate(self, descriptor, size):
        os.ftruncate(descriptor, size)
        self.keep()

    def fsync(self, descriptor):
        os.fsync(descriptor)
        self.keep()


STARTS = TAILS | {"clean": b"", "without a line end": None, "zero as line end": "zero"}


@pytest.mark.parametrize("tail", STARTS.values(), ids=STARTS)
def test_a_kill_after_any_step_of_an_append_loses_no_charge_and_leaves_a_working_file(path, tail, monkeypatch):
    data = path.read_bytes()
    path.write_bytes(data + tail if isinstance(tail, bytes) else data[:-1] + (b"\0" if tail else b""))
    disk = Disk(path)
    monkeypatch.setattr(ledger_file, "os", disk)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # hundreds of them; what is tested is the order of writes
    add(path, "four")
    monkeypatch.undo()
    assert len(disk.states) > 130  # each byte of the line is a state
    counted = []
    for state in dict.fromkeys(disk.states):
        contents = parse(state, NAME)
        counted.append(labels(contents))
        assert counted[-1] in (LABELS, [*LABELS, "four"])
    assert counted[-1] == [*LABELS, "four"] and counted == sorted(counted, key=len)
    for state in disk.states[:: len(disk.states) // 20]:
        path.write_bytes(state)
        before = labels(contents_of(path))
        add(path, "five")
        assert labels(contents_of(path)) == [*before, "five"]


@pytest.mark.parametrize("room", [0, 1, 50, 10_000])
def test_a_full_disk_refuses_and_leaves_the_file_as_it_was(path, room, monkeypatch):
    before = path.read_bytes()
    monkeypatch.setattr(ledger_file, "os", Disk(path, limit=len(before) + room))
    if room == 10_000:  # the last case checks that the others fail for want of room
        add(path, "four")
        return
    with pytest.raises(OSError, match="No space left"):
        add(path, "four")
    monkeypatch.undo()
    assert path.read_bytes() == before
    add(path, "four")
    assert labels(contents_of(path)) == [*LABELS, "four"]


def test_a_full_disk_without_room_for_the_line_end_grants_nothing(path, monkeypatch):
    size = len(path.read_bytes())
    add(path, "four")
    line = len(path.read_bytes()) - size - 1
    five = len(path.read_bytes()) + line
    monkeypatch.setattr(ledger_file, "os", Disk(path, limit=five))
    with pytest.raises(OSError, match="No space left"):
        add(path, "five")
    monkeypatch.undo()
    assert labels(contents_of(path)) == [*LABELS, "four"]


# Creating


def test_create_overwrites_nothing_and_cleans_up(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="not overwritten.*stays spent"):
        create(path, HEADER, timeout=5)
    assert path.read_text() == "mine"
    dangling = tmp_path / "link"
    dangling.symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileExistsError):
        create(dangling, HEADER, timeout=5)
    with pytest.raises(FileNotFoundError, match="make it first"):
        create(tmp_path / "missing" / "b.jsonl", HEADER, timeout=5)
    full = tmp_path / "full.jsonl"
    monkeypatch.setattr(ledger_file, "os", Disk(full, limit=20))
    with pytest.raises(OSError, match="No space left"):
        create(full, HEADER, timeout=5)
    assert not full.exists()


def test_creating_syncs_the_file_and_its_folder(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    path = tmp_path / "a.jsonl"
    create(path, HEADER, timeout=5)
    assert synced == [path.stat().st_ino, path.stat().st_ino, tmp_path.stat().st_ino]
    synced.clear()
    add(path, "one")
    assert synced == [path.stat().st_ino] * 2  # the line, then its end


@pytest.mark.parametrize("step", ["_sync_folder", "_sync"])
def test_nobody_can_charge_a_new_file_before_it_stays(tmp_path, step, monkeypatch):
    path = tmp_path / "a.jsonl"
    tried = []

    def charge_and_fail(*args):
        if path.read_bytes().endswith(b"\n"):  # the last of the syncs
            with pytest.raises(TimeoutError):  # whoever is told that it charged must not lose the file
                with locked(path, write=True, timeout=0):
                    raise AssertionError
            tried.append(step)
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(ledger_file, step, charge_and_fail)
    with pytest.raises(OSError, match="Input/output error"):
        create(path, HEADER, timeout=5)
    assert tried == [step] and list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    create(path, HEADER, timeout=5)
    add(path, "one")


def test_a_file_system_without_locks_gets_no_ledger(tmp_path, monkeypatch):
    def fail(descriptor, write):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(ledger_lock, "_try_lock", fail)
    with pytest.raises(OSError, match="Keep the ledger on a local disk"):
        create(tmp_path / "a.jsonl", HEADER, timeout=5)
    assert list(tmp_path.iterdir()) == []


# What is no ledger


@pytest.mark.parametrize("data", [b"age,income\n31.4,2\n", b"\xff\xfe\0\0", b"{}", b"\n", b'{"schema":"other"}\n'])
def test_other_files_are_refused_without_being_quoted(tmp_path, data):
    path = tmp_path / "other"
    path.write_bytes(data)
    with pytest.raises(ValueError, match="another kind of file.*ledger init") as caught:
        contents_of(path)
    assert "31.4" not in str(caught.value) and path.read_bytes() == data


@pytest.mark.parametrize("data", [b"", HEAD[:5], HEAD, HEAD + b'"version":1'])
def test_an_empty_file_is_told_apart(tmp_path, data):
    path = tmp_path / "empty"
    path.write_bytes(data)
    with pytest.raises(ValueError, match="create it again.*restore it from a backup"):
        contents_of(path)


def test_a_newer_schema_is_refused_whatever_its_checks_are():
    line = HEAD + b'"version":2,"mac":"of another kind"}\n{"whatever":1}\n'
    with pytest.raises(ValueError, match="schema version 1; study.jsonl has 2.*upgrade"):
        parse(line, NAME)


def test_things_that_are_no_files(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder"):
        contents_of(tmp_path)
    with pytest.raises(FileNotFoundError, match="Ledger.create"):
        contents_of(tmp_path / "missing")
    with pytest.raises(OSError, match="cannot be read: Not a directory"):
        (tmp_path / "file").write_text("x")
        contents_of(tmp_path / "file" / "ledger")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ValueError, match="a device or a pipe"):  # and no waiting for a writer
            contents_of(tmp_path / "pipe")


# Locks


def test_readers_share_and_a_writer_excludes_all(path):
    with locked(path, write=False, timeout=0), locked(path, write=False, timeout=0):
        with pytest.raises(TimeoutError, match="holds its lock. Nothing has been charged"):
            with locked(path, write=True, timeout=0):
                raise AssertionError
    with locked(path, write=True, timeout=0):
        for write in (True, False):
            with pytest.raises(TimeoutError):
                with locked(path, write=write, timeout=0.01):
                    raise AssertionError
    with locked(path, write=True, timeout=0):
        pass


def test_every_name_of_a_file_has_the_same_lock(path, tmp_path):
    soft, hard = tmp_path / "soft", tmp_path / "hard"
    soft.symlink_to(path)
    os.link(path, hard)
    with locked(path, write=True, timeout=0):
        for name in (soft, hard):
            with pytest.raises(TimeoutError):
                with locked(name, write=True, timeout=0):
                    raise AssertionError
    add(soft, "four")
    add(hard, "five")
    assert labels(contents_of(path)) == [*LABELS, "four", "five"] and soft.is_symlink()


def test_an_error_under_the_lock_frees_it(path):
    with pytest.raises(ZeroDivisionError):
        with locked(path, write=True, timeout=0):
            raise ZeroDivisionError
    with locked(path, write=True, timeout=0):
        pass


def test_a_file_that_was_replaced_while_waiting_is_opened_again(path, tmp_path, monkeypatch):
    other = tmp_path / "other"
    create(other, {"data_id": "other"}, timeout=5)
    attempts = []

    def replace_once(descriptor, write, lock=ledger_lock._try_lock):
        if not attempts:
            os.replace(other, path)
        attempts.append(write)
        return lock(descriptor, write)

    monkeypatch.setattr(ledger_lock, "_try_lock", replace_once)
    assert contents_of(path).header["data_id"] == "other" and len(attempts) == 2


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOTSUP])
def test_a_file_system_without_locks_is_refused(path, code, monkeypatch):
    def fail(descriptor, write):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(ledger_lock, "_try_lock", fail)
    with pytest.raises(OSError, match="Keep the ledger on a local disk; nothing has been charged"):
        add(path, "four")


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS])
def test_a_read_only_file_can_be_read_and_not_charged(path, code, monkeypatch):
    def only_reading(name, flags, *rest, really=os.open):
        if flags & os.O_RDWR:
            raise OSError(code, os.strerror(code), str(name))
        return really(name, flags, *rest)

    monkeypatch.setattr(os, "open", only_reading)
    assert labels(contents_of(path)) == LABELS
    with pytest.raises(OSError, match="cannot be written: .*nothing has been charged"):
        add(path, "four")
