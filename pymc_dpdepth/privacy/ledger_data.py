"""Naming the table of a ledger by a keyed fingerprint.

A plain hash of the rows is no name: whoever reads it can hash a table that they guess, neighbours of the real one
included, and see which is right. It reveals the rows as surely as a copy of them does to someone who knows all but one.
HMAC-SHA256 with a secret key is a pseudorandom function: without the key its values say nothing about the table, beyond
whether two tables that were named with the same key are equal.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["create_key", "fingerprint"]

KEY_BYTES = 32  # as long as a SHA-256, which is what HMAC's security is measured by
DOMAIN = b"pymc_dpdepth table 1\n"


def create_key(path: str | os.PathLike) -> None:
    """Write a new secret key of 256 bits from the operating system, readable by its owner alone.

    Keep it apart from the ledger, and as secret as the rows: with it, a guess of the rows can be tested.

    Parameters
    ----------
    path : path-like
        A new file; an existing one is never overwritten.

    Raises
    ------
    FileExistsError
        If the file exists.
    """
    path = Path(path)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise FileExistsError(
            f"Expected a new file for the key; {path} exists and is not overwritten. Use it, or choose another name."
        ) from None
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secrets.token_hex(KEY_BYTES) + "\n")
        file.flush()
        os.fsync(file.fileno())


def fingerprint(data: Any, key: str | os.PathLike | bytes, columns: Any = None) -> str:
    """Return a name of a table that says nothing about its rows to those without the key.

    The HMAC-SHA256 of the column names and the rows as doubles, in whatever order the rows come. (A plain hash
    would let anyone test a guessed table.) With the same key, equal tables have equal names and others do not.

    Parameters
    ----------
    data : table
        As for `private_median`.
    key : path-like or bytes
        A file that `create_key` wrote, or at least 32 random bytes.
    columns : optional
        The columns to use, all by default.

    Returns
    -------
    str
        64 hexadecimal digits.

    Raises
    ------
    ValueError, TypeError, FileNotFoundError
        If the table or the key cannot be read. No message shows either.
    """
    from pymc_dpdepth.tables import Table, read_table

    secret = _secret(key)
    table = data if isinstance(data, Table) else read_table(data, columns)
    rows = table.rows + 0.0  # a copy, in which -0.0 is 0.0
    rows[np.isnan(rows)] = np.nan  # NaN has many bit patterns
    rows = np.ascontiguousarray(rows, dtype="<f8")
    n, d = rows.shape
    # Rows have no order. As bytes they sort in an order that means nothing, but is the same for the same rows.
    ordered = np.sort(rows.view(np.dtype((np.void, rows.itemsize * d))).reshape(n))
    # The JSON ends at its only line end and holds n and d, so no two tables share these bytes.
    head = json.dumps({"rows": n, "columns": table.columns}, ensure_ascii=True).encode() + b"\n"
    return hmac.new(secret, DOMAIN + head + ordered.tobytes(), hashlib.sha256).hexdigest()


def _secret(key: str | os.PathLike | bytes) -> bytes:
    """Return the bytes of a key. No error shows what was read."""
    if isinstance(key, bytes | bytearray):
        if len(key) < KEY_BYTES:
            raise ValueError(f"key: expected at least {KEY_BYTES} random bytes, got {len(key)}; see Ledger.create_key.")
        return bytes(key)
    if not isinstance(key, str | os.PathLike):
        raise TypeError(f"key: expected the path of a key file, or bytes; got {type(key).__name__}.")
    try:
        secret = bytes.fromhex(Path(key).read_text(encoding="ascii"))
    except FileNotFoundError:
        raise FileNotFoundError(f"key: there is no file {key}; make one with Ledger.create_key(path).") from None
    except ValueError:
        secret = b""
    if len(secret) < KEY_BYTES:
        raise ValueError(
            f"key: expected the file {key} to hold at least {2 * KEY_BYTES} hexadecimal digits, as Ledger.create_key "
            "writes them."
        )
    return secret
