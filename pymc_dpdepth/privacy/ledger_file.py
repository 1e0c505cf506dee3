"""The file of a ledger: chained lines, locks, and appends that a crash cannot take back.

One line is one record of JSON in ASCII. Its last field, "check", is the SHA-256 of the check of the line before (of
nothing for the first line) followed by the bytes of the line up to that field. An edited, missing, doubled or moved
line breaks the chain. It has no key, and cannot tell that complete lines are missing at the end (an old backup).

An append first makes the line durable without its line end, and then the line end, which is one byte. So whatever a
crash leaves behind is read without doubt:

- a last line without a line end whose check fits was durable: it counts, at worst for a charge that was never granted;
- a last line without a line end whose check fails is torn: if a crash left it, its charge was never granted. The next
  append puts a record of kind "torn" in its place. (A copy that was cut off, or an editor, may leave the same bytes of
  a charge that was granted; nothing in the file tells the two apart.)
- a line with a line end whose check fails was damaged afterwards: it may hold a granted charge, and is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pymc_dpdepth.privacy.ledger_lock import created

if sys.platform == "darwin":
    import fcntl

__all__ = ["Contents", "SCHEMA", "VERSION", "append", "create", "entry", "read"]

SCHEMA, VERSION = "pymc_dpdepth ledger", 1
CHARGE, TORN = "charge", "torn"  # kinds of records
HEAD = f'{{"schema":"{SCHEMA}",'.encode()
CHECK, CLOSE = b',"check":"', b'"}'
CHECK_LENGTH = 2 * hashlib.sha256().digest_size
TORN_SHOWN = 500  # characters of a torn line that are kept to be read
BLOCK = 1 << 20  # bytes per read


@dataclass(frozen=True)
class Contents:
    """What a ledger's file holds, verified.

    Attributes
    ----------
    raw : bytes
        The verified lines. Every later state of the file begins with them.
    header : dict
        The first line.
    records : tuple of dict
        The other lines.
    check : str
        The check of the last verified line.
    tail : bytes
        A torn line behind them; usually empty.
    """

    raw: bytes
    header: dict[str, Any]
    records: tuple[dict[str, Any], ...]
    check: str
    tail: bytes


def read(descriptor: int, path: Path, known: Contents | None = None) -> Contents:
    """Read and verify an open ledger.

    Parameters
    ----------
    descriptor : int
        As `locked` yields it.
    path : Path
        Its name, for errors.
    known : Contents, optional
        What was read before: lines that are still the same bytes are not verified again.

    Returns
    -------
    Contents
        All lines.

    Raises
    ------
    ValueError
        If it is no ledger, is damaged, or comes from a newer version. No message quotes the file.
    """
    os.lseek(descriptor, 0, os.SEEK_SET)
    data = os.read(descriptor, BLOCK)
    if HEAD.startswith(data):
        raise ValueError(_unborn(path))
    if not data.startswith(HEAD):
        raise ValueError(
            f"Expected a ledger; {path} is another kind of file, or was rewritten by another program. Make a "
            "ledger with Ledger.create(path, ...) or `pymc-dpdepth ledger init PATH`."
        )
    blocks = [data]
    while block := os.read(descriptor, BLOCK):
        blocks.append(block)
    return parse(b"".join(blocks), path, known)


def parse(data: bytes, path: Path, known: Contents | None = None) -> Contents:
    """Verify the bytes of a ledger; see `read`."""
    if known is None or not known.raw.endswith(b"\n") or not data.startswith(known.raw):
        known = Contents(b"", {}, (), "", b"")
    *lines, rest = data[len(known.raw) :].split(b"\n")
    records = [known.header, *known.records] if known.raw else []
    check = known.check
    for line in lines:
        if not records:
            _refuse_newer(line, path)
        record, check = _verified(line, check)
        if record is None or (records and record.get("number") != len(records)):
            raise ValueError(_damaged(path, len(records) + 1))
        records.append(record)
    end = len(data) - len(rest)
    # What `rest` holds up to its first check (text escapes its quotes, so it is one): a line that lacks its end alone.
    line = rest[: rest.find(CHECK) + len(CHECK) + CHECK_LENGTH + len(CLOSE)] if CHECK in rest else b""
    record, check_of_line = _verified(line, check)
    if record is not None and records and record.get("number") != len(records):
        raise ValueError(_damaged(path, len(records) + 1))
    if record is not None and not rest[len(line) :].strip(b"\0"):  # a power cut may leave a zero for the line end
        records.append(record)
        check, end, rest = check_of_line, end + len(line), b""
    elif record is not None:  # no crash leaves anything else behind a whole line
        raise ValueError(_damaged(path, len(records) + 1))
    if not records:
        raise ValueError(_unborn(path))
    return Contents(data[:end], records[0], tuple(records[1:]), check, rest)


def append(descriptor: int, contents: Contents, record: dict[str, Any], torn: dict[str, Any]) -> Contents:
    """Append a record; when this returns, it is on disk. An error means that it is not counted.

    Parameters
    ----------
    descriptor : int
        Open for writing, and locked since `contents` was read.
    contents : Contents
        What the file holds.
    record, torn : dict
        The fields of the record, and those that a torn line before it gets, without number and check.

    Returns
    -------
    Contents
        What the file holds now.
    """
    raw = contents.raw
    if not raw.endswith(b"\n"):  # durable, but the line end is missing
        _write(descriptor, len(raw), b"\n")
        _sync(descriptor)
        raw += b"\n"
    number, check, added = len(contents.records), contents.check, []
    for fields in [torn | _torn_text(contents.tail)] * bool(contents.tail) + [record]:
        number += 1
        numbered = {"kind": fields["kind"], "number": number} | fields
        line, check = sealed(numbered, check)
        _commit(descriptor, len(raw), line, keep=fields["kind"] == TORN)
        added.append(numbered)
        raw += line + b"\n"
    return Contents(raw, contents.header, contents.records + tuple(added), check, b"")


def create(path: Path, header: dict[str, Any], timeout: float) -> None:
    """Write a new file with a header, durably; an existing file is never touched.

    The lock is held until file and folder are on the disk. So if either fails, the file can be removed again without
    removing a charge.

    Parameters
    ----------
    path : Path
        Where.
    header : dict
        The fields behind schema and version.
    timeout : float
        Seconds to wait for the lock.
    """
    with created(path, timeout) as descriptor:
        _commit(descriptor, 0, sealed({"schema": SCHEMA, "version": VERSION} | header, "")[0], keep=False)
        _sync_folder(path.parent)


def sealed(record: dict[str, Any], previous: str) -> tuple[bytes, str]:
    """Return the line of a record, without a line end, and its check."""
    body = json.dumps(record, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()[:-1]
    check = _check_of(previous, body)
    return body + CHECK + check.encode() + CLOSE, check


def entry(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record with the fields that all entries have."""
    label = record.get("label", f"incomplete line of {record.get('bytes')} bytes; never granted if a crash left it")
    cost = {"epsilon": record.get("epsilon", 0.0), "delta": record.get("delta", 0.0)}
    named = {"number": record["number"], "kind": record["kind"], "time": record.get("time"), "label": label}
    rest = {"bounded_range": tuple(record.get("bounded_range", ())), "group": record.get("group")}
    return named | cost | rest | {"package_version": record.get("package_version")}


def _verified(line: bytes, previous: str) -> tuple[dict[str, Any] | None, str]:
    """Return the record of a line and its check, or None where the line does not follow the one before."""
    body, _, rest = line.rpartition(CHECK)
    check = _check_of(previous, body)
    if rest != check.encode() + CLOSE:
        return None, ""
    try:
        return json.loads(body + b"}"), check
    except ValueError:  # the check of what another program wrote
        return None, ""


def _check_of(previous: str, body: bytes) -> str:
    return hashlib.sha256(previous.encode() + body).hexdigest()


def _refuse_newer(line: bytes, path: Path) -> None:
    """Refuse a newer schema before its checks, which may be made in another way."""
    try:
        version = json.loads(line)["version"]
    except (ValueError, KeyError, TypeError):
        return  # damaged, as its check will say
    if isinstance(version, int) and version > VERSION:
        raise ValueError(
            f"Expected a ledger of schema version {VERSION}; {path} has {version}. It was made by a newer "
            "pymc_dpdepth; upgrade this one."
        )


def _unborn(path: Path) -> str:
    return (
        f"Expected a ledger; {path} is empty or ends within its first line. If it was just being created, delete it "
        "and create it again; if it has held charges, restore it from a backup."
    )


def _damaged(path: Path, number: int) -> str:
    return (
        f"Expected an unbroken ledger; line {number} of {path} was changed, damaged, or is not in its place. It may "
        "hold a charge, so nothing is granted. Restore the file from a backup that has every line, or, if there is "
        "none, treat the budget as spent."
    )


def _torn_text(tail: bytes) -> dict[str, Any]:
    """Return what is kept of a torn line: its text, unless a power cut left other bytes there."""
    text = tail.decode("latin-1")
    return {"bytes": len(tail), "text": text[:TORN_SHOWN] if text.isascii() and text.isprintable() else ""}


# Writing


def _commit(descriptor: int, offset: int, line: bytes, keep: bool) -> None:
    """Make a line durable, then its line end. After an error the line does not count; `keep` leaves its remains."""
    try:
        os.ftruncate(descriptor, offset + len(line))  # a torn line may be longer; nothing may follow a whole line
        _write(descriptor, offset, line)
        _sync(descriptor)
        _write(descriptor, offset + len(line), b"\n")
        _sync(descriptor)
    except BaseException:
        if not keep:
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, offset)
        raise


def _write(descriptor: int, offset: int, data: bytes) -> None:
    os.lseek(descriptor, offset, os.SEEK_SET)
    while data:  # a full disk or a signal may cut a write short
        data = data[os.write(descriptor, data) :]


def _sync(descriptor: int) -> None:
    """Bring a file to the disk; on macOS fsync alone leaves it in the disk's own cache."""
    if sys.platform == "darwin":
        with contextlib.suppress(OSError):  # network file systems know fsync alone
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)


def _sync_folder(folder: Path) -> None:
    """Bring the name of a new file to the disk; Windows does this by itself."""
    if sys.platform != "win32":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
