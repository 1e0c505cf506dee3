"""Private rows in pieces, which can be gone through again and again. Files are never held as a whole."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pymc_dpdepth.table_pieces import FilePieces, open_pieces
from pymc_dpdepth.tables import read_table

__all__ = ["CHUNK_ROWS", "RowSource", "finite_rows", "read_rows"]

CHUNK_ROWS = 2**13
NONFINITE = ("raise", "center")


class RowSource:
    """Private rows with public column names.

    Attributes
    ----------
    n : int
        Number of rows, public.
    columns : tuple of str
        Names of the d columns.
    finite : ndarray of bool, shape (d,), or None
        Whether a column has finite entries alone; None where nobody has looked yet.
    """

    n: int
    columns: tuple[str, ...]
    finite: np.ndarray | None = None

    def chunks(self) -> Iterator[np.ndarray]:
        """Yield the rows as float64, shape (m, d), m > 0, in the same order at every call; they cannot be changed."""
        raise NotImplementedError

    def __repr__(self) -> str:
        """Show the size and the names; never a row."""
        return f"{type(self).__name__}({self.n} rows, columns={self.columns!r})"


class _InMemory(RowSource):
    """Rows of one array."""

    def __init__(self, rows: np.ndarray, columns: tuple[str, ...]):
        self.n, self.columns = len(rows), columns
        self._rows = rows
        self._rows.flags.writeable = False

    def chunks(self) -> Iterator[np.ndarray]:
        for start in range(0, self.n, CHUNK_ROWS):
            yield self._rows[start : start + CHUNK_ROWS]


class _InFile(RowSource):
    """Rows of a file, which is read again at every call."""

    def __init__(self, file: FilePieces):
        self.n, self.columns, self.finite = file.n, file.columns, file.finite
        self._file = file

    def chunks(self) -> Iterator[np.ndarray]:
        yield from self._file.pieces(CHUNK_ROWS)


class _Centered(RowSource):
    """Rows of another source, with a public number in the place of each entry that is not finite."""

    def __init__(self, source: RowSource, centers: np.ndarray):
        self.n, self.columns = source.n, source.columns
        self._source, self._centers = source, centers

    def chunks(self) -> Iterator[np.ndarray]:
        for chunk in self._source.chunks():
            finite = np.isfinite(chunk)
            yield chunk if finite.all() else np.where(finite, chunk, self._centers)


def read_rows(data: Any, columns: Any = None) -> RowSource:
    """Return the rows of an array, a data frame or a file, in the forms that `tables.read_table` takes."""
    if isinstance(data, str | os.PathLike):
        return _InFile(open_pieces(Path(data), columns, CHUNK_ROWS))
    table = read_table(data, columns)
    return _InMemory(table.rows, table.columns)


def finite_rows(source: RowSource, nonfinite: str, centers: Callable[[Sequence[str]], Any]) -> RowSource:
    """Return rows without missing or infinite entries: refused, or a public number put in the place of each.

    Parameters
    ----------
    source : RowSource
    nonfinite : {"raise", "center"}
    centers : callable
        From the names of the columns to a public number for each; asked with "center" alone.
    """
    if nonfinite not in NONFINITE:
        raise ValueError(f'nonfinite: expected "raise" or "center", got {nonfinite!r}.')
    if nonfinite == "center":
        numbers = np.asarray(centers(source.columns), dtype=np.float64)
        if numbers.shape != (len(source.columns),) or not np.isfinite(numbers).all():
            raise ValueError(
                f"centers: expected a finite number for each of {len(source.columns)} columns, got {numbers.shape}."
            )
        return _Centered(source, numbers)
    finite = source.finite
    if finite is None:
        finite = np.ones(len(source.columns), dtype=bool)
        for chunk in source.chunks():
            finite &= np.isfinite(chunk).all(axis=0)
    if not finite.all():
        bad = [source.columns[j] for j in np.flatnonzero(~finite)]
        raise ValueError(
            f"Expected finite numbers; missing or infinite entries in {bad}. Fill them by a rule that looks at one row "
            'alone, or use nonfinite="center", which puts a public number in their place; dropping rows makes their '
            "number private, which the guarantee does not cover."
        )
    return source
