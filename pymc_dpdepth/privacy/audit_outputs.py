"""What a mechanism under audit published, as columns of doubles from which nothing is lost.

A number becomes a double and, where it is an integer that no double holds, what is left of it. Of a Release every field
counts: each entry of its record is a column of its own, unless it is the same in all releases of both tables.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pymc_dpdepth.record import Release

__all__ = ["read_outputs"]

REAL_KINDS = "biuf"
WIDEST = 8  # bytes; a longer float loses bits as a double
HASH_BYTES = 6  # 48 bits, which a double holds
ARRAYS = ("locations", "parameters")


def read_outputs(
    mechanism: Callable[..., Any], tables: tuple[Any, Any], trials: int, progressbar: bool
) -> tuple[list[np.ndarray], list[str]]:
    """Run a mechanism on both tables and return all that it published.

    Parameters
    ----------
    mechanism : callable
    tables : tuple of two tables
    trials : int
    progressbar : bool

    Returns
    -------
    outputs : list of two ndarrays of float64, shape (trials, D)
    names : list of str
        What each of the D columns is.
    """
    if _takes_draws(mechanism):
        arrays = [_drawn_at_once(mechanism, table, trials) for table in tables]
        parts = [_columns(array) for array in arrays]
    else:
        from rich.progress import track

        # In turns, so that what changes with time changes for both tables alike.
        rounds = range(trials)
        if progressbar:
            rounds = track(rounds, description="Audit")
        pairs = [[_published(mechanism(table)) for table in tables] for _ in rounds]
        published = [[pair[table] for pair in pairs] for table in (0, 1)]
        releases = {isinstance(output, dict) for outputs in published for output in outputs}
        if releases == {True}:
            return _release_columns(published)
        if len(releases) > 1 or len({array.shape for part in published for array in part}) > 1:
            _refuse_shapes()
        parts = [_stacked_columns(part) for part in published]
    if parts[0].shape != parts[1].shape or parts[0].shape[1] == 0:
        _refuse_shapes()
    count = parts[0].shape[1] // 2
    names = [f"coordinate {j}" for j in range(count)]
    return _without_copies(parts, names + [f"what no double holds of {name}" for name in names])


def _refuse_shapes() -> None:
    raise ValueError(
        "mechanism: expected outputs of one shape with at least one number for both tables. Pad them, or return the "
        "numbers of interest."
    )


def _takes_draws(mechanism) -> bool:
    try:
        return "draws" in inspect.signature(mechanism).parameters
    except (TypeError, ValueError):  # a builtin without a signature
        return False


def _drawn_at_once(mechanism, table, trials: int) -> np.ndarray:
    array = _array(mechanism(table, draws=trials))
    if array.ndim == 0 or len(array) != trials:
        raise ValueError(
            f"mechanism: expected an array with {trials} draws along its first axis, since it has a parameter "
            f"draws, got shape {array.shape}."
        )
    return array.reshape(trials, -1)


def _published(output: Any) -> np.ndarray | dict[str, Any]:
    """Return one output as a vector, or the entries of a Release's record."""
    return _entries(output) if isinstance(output, Release) else _array(output).ravel()


def _array(output: Any) -> np.ndarray:
    """Return real numbers as they are, in the type that they came in, or refuse what is none."""
    from xarray import DataArray

    if isinstance(output, list | tuple):
        parts = [_array(entry) for entry in output]
        if len({part.shape for part in parts}) > 1:
            _refuse_shapes()
        # Integers and floats in one list would meet in a double, which does not hold every integer.
        whole = {part.dtype.kind in "biu" for part in parts}
        if len(whole) > 1 or len({part.dtype for part in parts} & {np.dtype(np.int64), np.dtype(np.uint64)}) > 1:
            parts = [part.astype(object) for part in parts]
        return np.stack(parts) if parts else np.zeros(0)
    if isinstance(output, bool | int | float | np.ndarray | np.generic | DataArray):
        array = np.asarray(output)
        masked = isinstance(output, np.ma.MaskedArray)
        if not masked and array.dtype.kind in REAL_KINDS and array.dtype.itemsize <= WIDEST:
            return array
    raise TypeError(
        "mechanism: expected a Release, a real number or an array of real numbers of at most 64 bits from it, got "
        f"{_kind(output)}. Return what is published as such an array; NaN may stand for a missing number."
    )


def _kind(output: Any) -> str:
    if isinstance(output, int):
        return "an integer beyond 64 bits"
    dtype = getattr(output, "dtype", None)
    return type(output).__name__ + (f" of {dtype}" if isinstance(dtype, np.dtype) else "")


def _columns(array: np.ndarray) -> np.ndarray:
    """Return the nearest doubles of shape (k, D), and beside them what is left of integers, shape (k, 2 D)."""
    if array.dtype.kind == "O":
        heads = array.astype(np.float64)
        whole = np.frompyfunc(lambda value: isinstance(value, int), 1, 1)(array).astype(bool)
        rest = np.zeros(array.shape)
        rest[whole] = [value - int(head) for value, head in zip(array[whole], heads[whole], strict=True)]
    elif array.dtype.kind in "iu" and array.dtype.itemsize == WIDEST:
        return _columns(array.astype(object)) if _beyond_doubles(array) else _columns(array.astype(np.float64))
    else:
        heads, rest = array.astype(np.float64), np.zeros(array.shape)
    return np.concatenate([heads, rest], axis=1)


def _beyond_doubles(array: np.ndarray) -> bool:
    largest = 2 ** np.finfo(np.float64).nmant
    return bool(array.size) and (int(array.max()) > largest or int(array.min()) < -largest)


def _stacked_columns(rows: list[np.ndarray]) -> np.ndarray:
    if len({row.dtype for row in rows}) > 1:
        rows = [row.astype(object) for row in rows]
    return _columns(np.array(rows))


def _entries(release: Release) -> dict[str, Any]:
    """Return path -> entry of a Release's record, the draw first."""
    record = release.to_dict()
    entries = {name: record.pop(name) for name in ARRAYS} | record
    return {path: value for name, entry in entries.items() for path, value in _leaves(entry, name)}


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from _leaves(entry, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for j, entry in enumerate(value):
            yield from _leaves(entry, f"{path}[{j}]")
    else:
        yield path, value


def _release_columns(published: list[list[dict[str, Any]]]) -> tuple[list[np.ndarray], list[str]]:
    """Return the columns of releases: numbers of the draw, and every other entry that is not always the same."""
    paths = dict.fromkeys(path for part in published for entries in part for path in entries)
    columns, names = [], []
    for path in paths:
        values = [[entries.get(path) for entries in part] for part in published]
        known = [value for part in values for value in part if value is not None]
        number = all(isinstance(value, int | float) and not isinstance(value, bool) for value in known)
        drawn = path.startswith(ARRAYS) and ".values" in path
        if not drawn and len({_text(value) for part in values for value in part}) == 1:
            continue
        if not number:
            values = [[_hash(value) for value in part] for part in values]
        pair = [
            _columns(np.array([np.nan if value is None else value for value in part], dtype=object)[:, None])
            for part in values
        ]
        columns.append(pair)
        name = path if number else f"hash of {path}"
        names.append([name, f"what no double holds of {name}"])
    parts = [np.concatenate([pair[table] for pair in columns], axis=1) for table in (0, 1)] if columns else []
    if not columns:  # releases that never differ, such as refusals on both tables
        parts = [np.zeros((len(part), 1)) for part in published]
        names = [["anything"]]
    return _without_copies(parts, [name for pair in names for name in pair])


def _text(value: Any) -> str:
    return json.dumps(value, default=repr)


def _hash(value: Any) -> int | None:
    """Return a number for a text or another entry that is none: a fixed function, whatever else was drawn."""
    return None if value is None else int.from_bytes(hashlib.sha256(_text(value).encode()).digest()[:HASH_BYTES])


def _without_copies(parts: list[np.ndarray], names: list[str]) -> tuple[list[np.ndarray], list[str]]:
    """Return each column once: a Release holds its location also as a parameter, and most remainders are all 0."""
    pooled = np.concatenate(parts).T
    first = {column.tobytes(): j for j, column in reversed(list(enumerate(pooled)))}
    kept = sorted(first.values())
    rest = [j for j in kept if not (names[j].startswith("what no double holds") and not pooled[j].any())]
    return [np.ascontiguousarray(part[:, rest]) for part in parts], [names[j] for j in rest]
