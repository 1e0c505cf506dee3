"""JSON files of records: written at once or not at all, and read without what JSON readers disagree about."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

__all__ = ["check_schema", "read_record", "write_record"]


def write_record(record: dict[str, Any], path: str | os.PathLike | None) -> str:
    """Return a record as JSON, and write it to a file if a path is given.

    Parameters
    ----------
    record : dict
        Plain Python objects.
    path : path or None
        File to write. It is replaced at once or not at all.

    Returns
    -------
    str
        The JSON text; numbers read back to the same doubles.
    """
    text = json.dumps(record, indent=2, allow_nan=False) + "\n"
    if path is not None:
        _write_at_once(Path(path), text)
    return text


def read_record(path: str | os.PathLike, what: str) -> Any:
    """Return what a JSON file holds.

    Parameters
    ----------
    path : path
    what : str
        What the file should be of, for errors, such as "a Release".

    Raises
    ------
    ValueError
        If the file is not JSON, holds NaN or Infinity, or a field twice in one object.
    """

    def refuse_constant(token: str) -> None:
        # Python reads NaN and Infinity though they are not JSON; `write_record` never writes them.
        raise ValueError(f"Expected the JSON of {what}; {token} is not JSON.")

    def refuse_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):  # readers differ in which one they take
            raise ValueError(f"Expected the JSON of {what}; a field stands in it twice.")
        return fields

    text = Path(path).read_text(encoding="utf-8")
    try:
        return json.loads(text, parse_constant=refuse_constant, object_pairs_hook=refuse_twice)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}: expected the JSON of {what}; line {error.lineno} is not JSON.") from None
    except RecursionError:
        raise ValueError(f"{path}: expected the JSON of {what}, got lists nested too deeply.") from None


def check_schema(record: Any, schema: str, version: int, writer: str) -> None:
    """Refuse what is no record of a schema, or of another version.

    Parameters
    ----------
    record : object
        As it was read.
    schema, version : str, int
        What the fields "schema" and "schema_version" should be.
    writer : str
        The function that writes such a record, for the error.
    """
    if not isinstance(record, dict) or record.get("schema") != schema:
        raise ValueError(f"Expected a record with schema {schema!r}; write one with {writer}.")
    known = record.get("schema_version")
    if known != version or not isinstance(known, int) or isinstance(known, bool):  # True == 1
        raise ValueError(
            f"Expected schema_version {version}, got {known!r}; read it with the version of pymc_dpdepth that wrote "
            "it, or a newer one."
        )


def _write_at_once(path: Path, text: str) -> None:
    """Write beside the target and rename, so that a crash leaves the old file or the new one, never half of it."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp", text=True)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        # mkstemp creates files readable by the owner alone; a record is meant to be shared, so it gets the usual
        # rights.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
