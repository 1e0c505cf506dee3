"""CSV and Parquet files in pieces, so that a table is never held: the values and the refusals of `tables.read_table`.

A first pass over a CSV file counts the rows and finds out which columns hold numbers; further passes read numbers
alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pymc_dpdepth import table_columns, table_files
from pymc_dpdepth.tables import csv_source, labelled_source, positions_of, refuse_columns, refuse_no_rows

__all__ = ["FilePieces", "open_pieces"]

BUFFER = 2**18  # bytes of a Parquet column that are read at once
BOOLEANS, NUMBERS, TEXT = "booleans", "numbers", "text"


class FilePieces:
    """Rows of a file, which can be gone through again and again.

    Attributes
    ----------
    n : int
        Number of rows.
    columns : tuple of str
        Names of the d columns that were asked for.
    finite : ndarray of bool, shape (d,), or None
        Whether a column has finite entries alone, where the first pass found that out.
    """

    n: int
    columns: tuple[str, ...]
    finite: np.ndarray | None = None

    def __init__(self, path: Path):
        self._path, self._state = path, _state(path)

    def pieces(self, size: int) -> Iterator[np.ndarray]:
        """Yield the rows as float64, in pieces of at most `size` rows, shape (m, d), m > 0, which cannot be changed.

        Raises
        ------
        ValueError
            If the file is no longer the one that was opened.
        """
        count = 0
        self._check(count)
        for piece in self._read(size):
            count += len(piece)
            piece.flags.writeable = False
            yield piece
        self._check(count - self.n)

    def _read(self, size: int) -> Iterator[np.ndarray]:
        raise NotImplementedError

    def _check(self, surplus: int) -> None:
        if surplus or _state(self._path) != self._state:
            raise ValueError(
                f"Expected {self._path} to stay as it was when it was opened; it changed while it was read. Make a "
                "copy that nothing writes into."
            )


def open_pieces(path: Path, columns: Any, size: int) -> FilePieces:
    """Open a file; the arguments and what is refused are those of `tables.read_table`.

    Parameters
    ----------
    path : path
        Of a .csv or .parquet file.
    columns : str, int or sequence of these, or None
        The columns to keep, in this order.
    size : int
        Rows of a piece in the first pass.
    """
    return _Parquet(path, columns) if table_files.file_kind(path) == "parquet" else _Csv(path, columns, size)


def _state(path: Path) -> tuple[int, ...]:
    """Return what differs after a file was written or replaced."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ino


class _Csv(FilePieces):
    """Rows of a CSV file."""

    def __init__(self, path: Path, columns: Any, size: int):
        super().__init__(path)
        self._header, source = csv_source(path, columns)
        self._positions = positions_of(source, columns)
        self.columns = tuple(source.names[position] for position in self._positions)
        self.n = 0
        self.finite = np.ones(len(self._positions), dtype=bool)
        kinds: list[set[str]] = [set() for _ in self._positions]
        others = {j: str for j in range(len(self._header)) if j not in self._positions}
        for frame in table_files.csv_pieces(path, len(self._header), others, size):
            if frame.empty:
                continue
            self.n += len(frame)
            for place, position in enumerate(self._positions):
                kind, finite = _look_at(frame[position])
                kinds[place] |= kind
                self.finite[place] &= finite
        refuse_no_rows(path, source, self.n)
        # Truth values are 1 and 0, but not among numbers: "True" below "1" is text, whichever piece each is in.
        wrong = [place for place, kind in enumerate(kinds) if TEXT in kind or len(kind) > 1]
        refuse_columns(source, {self._positions[place]: TEXT for place in wrong})

    def _read(self, size: int) -> Iterator[np.ndarray]:
        wanted = {j: np.float64 if j in self._positions else str for j in range(len(self._header))}
        try:
            for frame in table_files.csv_pieces(self._path, len(self._header), wanted, size):
                if not frame.empty:
                    yield np.stack([frame[position].to_numpy() for position in self._positions], axis=1)
        except table_files.OtherTypeError:
            self._check(1)


def _look_at(column: Any) -> tuple[set[str], bool]:
    """Return what a piece of a CSV column holds, nothing where all of it is missing, and whether it is finite."""
    from pandas.api import types

    try:
        values = table_columns.from_csv(column)
    except table_columns.NotReal:
        return {TEXT}, True
    finite = bool(np.isfinite(values).all())
    if np.isnan(values).all():
        return set(), finite
    return {BOOLEANS if types.infer_dtype(column, skipna=True) == "boolean" else NUMBERS}, finite


class _Parquet(FilePieces):
    """Rows of a Parquet file; the schema says what its columns hold."""

    def __init__(self, path: Path, columns: Any):
        super().__init__(path)
        import pyarrow as pa

        with table_files.open_parquet(path) as file:
            names = table_files.parquet_names(file)
            self.n = file.metadata.num_rows
            kinds = {name: file.schema_arrow.field(j).type for j, name in enumerate(file.schema_arrow.names)}
        source = labelled_source(names, None)
        positions = positions_of(source, columns)
        self.columns = tuple(names[position] for position in positions)
        refused = {}
        for position in positions:
            try:
                table_columns.from_arrow(pa.chunked_array([], type=kinds[names[position]]))
            except table_columns.NotReal as reason:
                refused[position] = str(reason)
        refuse_columns(source, refused)

    def _read(self, size: int) -> Iterator[np.ndarray]:
        import pyarrow as pa

        with table_files.open_parquet(self._path, BUFFER) as file:
            for batch in file.iter_batches(batch_size=size, columns=list(self.columns)):
                if len(batch):
                    table = pa.Table.from_batches([batch])
                    yield np.stack([table_columns.from_arrow(table.column(name)) for name in self.columns], axis=1)
