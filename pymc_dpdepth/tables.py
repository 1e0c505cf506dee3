"""From what a user holds (arrays, data frames, files) to one float64 table with named columns.

The value of an entry in the table depends on that entry alone, not on other rows, so reading costs no privacy. What is
refused, and what an error says, may depend on the rows: errors are for the curator and must not be forwarded.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pymc_dpdepth import table_columns, table_files

__all__ = ["Table", "apply_nonfinite", "read_table"]

_NAMES_SHOWN = 30  # names that an error lists before it stops


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Private rows with public column names.

    Attributes
    ----------
    rows : ndarray of float64, shape (n, d)
        C-contiguous, and a copy: later changes of the caller's data do not reach it. Missing entries are NaN.
    columns : tuple of str
        The d column names, all different.
    """

    rows: np.ndarray
    columns: tuple[str, ...]

    def __repr__(self) -> str:
        """Show the shape and the names; never a row."""
        return f"Table({len(self.rows)} rows, columns={self.columns!r})"


@dataclass(frozen=True)
class Source:
    """Named columns that are converted one at a time.

    `convert` maps a position to float64 of shape (n,), or raises `table_columns.NotReal`; `labels` are what the caller
    may use to select a column, beside its name. `matrix` is the whole table where it is one array of real numbers.
    `shown` is False where the names may be a row, so that errors count the columns instead of naming them.
    """

    names: list[str]
    labels: Sequence[Hashable]
    convert: Callable[[int], np.ndarray]
    matrix: np.ndarray | None = None
    shown: bool = True

    def listed(self, positions: Sequence[int]) -> str:
        """Return columns for an error: their names, or their numbers from 1."""
        if self.shown:
            return _listed([self.names[position] for position in positions])
        return f"number {', '.join(str(position + 1) for position in positions[:_NAMES_SHOWN])} (names not shown)"


def read_table(data: Any, columns: Any = None) -> Table:
    """Read rows from memory or from a file into one table of float64.

    Parameters
    ----------
    data : array_like, DataFrame, Series, DataArray or path
        - NumPy array, list of rows, or anything with ``__array__``: shape (n, d), or (n,) for one column. The columns
          are called ``x0, x1, ...``. Masked entries and None become NaN.
        - pandas or polars DataFrame or Series, polars LazyFrame, pyarrow Table: nulls become NaN, booleans 0 and 1.
        - xarray DataArray of shape (n, d): the names are the coordinate of the second dimension.
        - path of a ``.csv`` file (UTF-8, commas, names in the first line, which are public) or of a ``.parquet`` file.
          A first line that holds a number, a date, True, False or a mark of a missing value is refused, since it may be
          a row. So may one of other words: an error shows the names in it only if `columns` has one of them, or if all
          columns were read as numbers. For that, a file without rows needs `columns`.
    columns : str, int or sequence of these, optional
        The columns to keep, in this order; by default all. Names, or for arrays also positions from 0.

    Returns
    -------
    Table
        The rows, with NaN and infinities left as they are: see `apply_nonfinite`. Zero rows are a table too.

    Raises
    ------
    ValueError
        If a column is not of real numbers (text, categories, dates, complex), is missing or is named twice, or if the
        shape or the file is not that of a table. The message names columns, which are public, and no entry.
    TypeError
        If `data` is of a kind that is not a table.
    FileNotFoundError
        If there is no such file.
    ImportError
        If a Parquet file is read without pyarrow.

    Notes
    -----
    Every number is rounded to the nearest float64, so integers beyond 2**53 may change in their last digits. Row labels
    (an index) are dropped.

    Examples
    --------
    >>> from pymc_dpdepth.tables import read_table
    >>> read_table([[1.0, 2.0], [3.0, None], [5.0, 6.0]])
    Table(3 rows, columns=('x0', 'x1'))
    """
    source = _recognised(data, columns)
    positions = positions_of(source, columns)
    names = tuple(source.names[position] for position in positions)
    if source.matrix is not None:
        kept = source.matrix if positions == list(range(len(source.names))) else source.matrix[:, positions]
        with np.errstate(over="ignore"):  # a long double beyond float64 becomes infinite, which `nonfinite` deals with
            return Table(np.array(kept, dtype=np.float64, order="C"), names)
    converted, refused = [], {}
    for position in positions:
        try:
            converted.append(source.convert(position))
        except table_columns.NotReal as reason:
            refused[position] = str(reason)
    refuse_columns(source, refused)
    rows = np.empty((len(converted[0]), len(converted)), dtype=np.float64)
    for j, column in enumerate(converted):
        rows[:, j] = column
    return Table(rows, names)


def refuse_columns(source: Source, refused: dict[int, str]) -> None:
    """Refuse columns, by position, that do not hold real numbers but what is a key of `table_columns.CURES`."""
    if refused:
        found = "; ".join(f"{source.listed([position])} holds {what}" for position, what in refused.items())
        cures = ", ".join(table_columns.CURES[what] for what in dict.fromkeys(refused.values()))
        raise ValueError(f"Expected real numbers; column {found}. Leave it out with columns=[...], or {cures}.")


def apply_nonfinite(rows: np.ndarray, columns: Sequence[str], nonfinite: str, center: Any) -> np.ndarray:
    """Deal with missing and infinite entries before anything is computed from the rows.

    Parameters
    ----------
    rows : ndarray of float64, shape (n, d)
        The private rows; not changed.
    columns : sequence of str
        Their d names, for the error.
    nonfinite : {"raise", "prior"}
        "raise" refuses a table with a non-finite entry; "prior" puts the prior's centre in its place. The replacement
        looks at one entry alone, so neighbouring tables stay neighbours, and nothing is revealed.
    center : array_like, shape () or (d,)
        The prior's centre (its median), chosen without looking at the rows.

    Returns
    -------
    ndarray of float64, shape (n, d)
        The rows themselves when they are finite.

    Raises
    ------
    ValueError
        If `nonfinite` is another word, or is "raise" and an entry is not finite. That an error was raised is itself
        information about the rows: keep it on the curator's side, or use "prior" in what runs unattended.
    """
    if nonfinite not in ("raise", "prior"):
        raise ValueError(f'nonfinite must be "raise" or "prior"; got {nonfinite!r}.')
    finite = np.isfinite(rows)
    if finite.all():
        return rows
    if nonfinite == "raise":
        bad = [columns[j] for j in np.flatnonzero(~finite.all(axis=0))]
        raise ValueError(
            f'Expected finite numbers; missing or infinite entries in {_listed(bad)}. Use nonfinite="prior" to put the '
            "prior's centre in their place, or fill them by a rule that looks at one row alone; dropping rows makes "
            "their number private, which the guarantee does not cover."
        )
    center = np.broadcast_to(np.asarray(center, dtype=np.float64), rows.shape[1:])
    if not np.isfinite(center).all():
        raise ValueError(
            "The prior's centre must be finite to stand in for missing entries; give a prior with a median."
        )
    return np.ascontiguousarray(np.where(finite, rows, center))


def _recognised(data: Any, columns: Any) -> Source:
    """Recognise the kind of data. A library whose object was passed is imported already, so none is imported to ask."""
    if isinstance(data, str | os.PathLike):
        return _file(Path(data), columns)
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    arrow, xarray = sys.modules.get("pyarrow"), sys.modules.get("xarray")
    if pandas is not None and isinstance(data, pandas.Series):
        data = data.to_frame("x0" if data.name is None else data.name)
    if pandas is not None and isinstance(data, pandas.DataFrame):
        return labelled_source(
            list(data.columns),
            lambda j: table_columns.from_pandas(data.iloc[:, j]),
            data.to_numpy() if (data.dtypes == np.float64).all() else None,
        )
    if polars is not None and isinstance(data, polars.Series):
        data = data.alias(data.name or "x0").to_frame()
    if polars is not None and isinstance(data, polars.LazyFrame):
        data = data.collect()
    if polars is not None and isinstance(data, polars.DataFrame):
        return labelled_source(data.columns, lambda j: table_columns.from_polars(data.to_series(j)))
    if arrow is not None and isinstance(data, arrow.Table):
        return labelled_source(data.column_names, lambda j: table_columns.from_arrow(data.column(j)))
    if xarray is not None and isinstance(data, xarray.DataArray):
        return _dataarray(data)
    if isinstance(data, Sequence) and not isinstance(data, bytes | bytearray) or hasattr(data, "__array__"):
        return _array(data)
    raise TypeError(
        f"Expected an array, a list of rows, a DataFrame, or the path of a CSV or Parquet file; got "
        f"{type(data).__name__}. For named columns in a dict pass pandas.DataFrame(data)."
    )


def labelled_source(labels: Sequence[Hashable], convert: Any, matrix: np.ndarray | None = None) -> Source:
    """Return columns under the labels that the caller may use."""
    return Source([str(label) for label in labels], labels, convert, matrix)


def _file(path: Path, columns: Any) -> Source:
    if table_files.file_kind(path) == "parquet":
        file = table_files.open_parquet(path)
        names = table_files.parquet_names(file)
        return labelled_source(names, lambda j: table_columns.from_arrow(file.read([names[j]]).column(names[j])))
    header, named = csv_source(path, columns)
    frame = table_files.read_csv(path, header, positions_of(named, columns))
    refuse_no_rows(path, named, len(frame))
    return replace(named, convert=lambda j: table_columns.from_csv(frame[j]))


def csv_source(path: Path, columns: Any) -> tuple[list[str], Source]:
    """Return the first line of a CSV file, and its columns, which cannot be converted yet."""
    header = table_files.csv_header(path)
    if columns is None and "" in header:
        raise ValueError(
            f"Expected a name for each column of {path}; column {header.index('') + 1} has none, as an index "
            "that pandas wrote. Name it, or select the others with columns=[...]."
        )
    # A first line of words may be a row of a table of words. It is known to hold names where the caller knows one of
    # them, or once all its columns have been read as numbers.
    asked = [] if columns is None else [columns] if isinstance(columns, str | int | np.integer) else list(columns)
    names = [name or f"(column {j + 1}, without a name)" for j, name in enumerate(header)]
    return header, replace(labelled_source(names, None), shown=any(label in header for label in asked))


def refuse_no_rows(path: Path, source: Source, n: int) -> None:
    """Refuse a CSV file without rows whose names are not known to be names."""
    if not n and not source.shown:
        raise ValueError(
            f"Expected rows below the column names in {path}; there are none, so the one line may be a row (not "
            "shown). If it holds names, pass them as columns=[...]."
        )


def _dataarray(data: Any) -> Source:
    source = _array(data.to_numpy())
    names = source.names
    if data.ndim == 1:
        names = names if data.name is None else [str(data.name)]
    elif data.dims[1] in data.coords:
        names = [str(label) for label in data.coords[data.dims[1]].to_numpy()]
    return replace(source, names=names)


def _array(data: Any) -> Source:
    """Arrays and nested lists."""
    masked = isinstance(data, np.ma.MaskedArray)
    try:
        values = data if masked else np.asarray(data)
        if values.dtype.kind not in table_columns.REAL_KINDS and not hasattr(data, "__array__"):
            values = np.array(data, dtype=object)  # NumPy turns [[1, "a"]] into text; as objects the columns keep apart
    except ValueError:
        raise ValueError("Expected rows of one length; got rows of different lengths.") from None
    if values.ndim == 1:
        values = values.reshape(-1, 1)
    if values.ndim != 2:
        raise ValueError(
            f"Expected shape (n, d), one row for each unit, or (n,) for one column; got {values.ndim} dimensions."
        )

    def convert(j: int) -> np.ndarray:
        column = np.ma.getdata(values[:, j])
        if not masked:
            return table_columns.from_array(column)
        hidden = np.ma.getmaskarray(values[:, j])
        if column.dtype.kind == "O":  # what a mask hides need not be a number
            return table_columns.from_array(np.where(hidden, None, column))
        return np.where(hidden, np.nan, table_columns.from_array(column))

    width = range(values.shape[1])
    matrix = None if masked or values.dtype.kind not in table_columns.REAL_KINDS else values
    return Source([f"x{j}" for j in width], width, convert, matrix)


def positions_of(source: Source, columns: Any) -> list[int]:
    """Return the positions of the wanted columns."""
    names = source.names
    if len(set(names)) < len(names):
        counts = Counter(names)
        repeated = [
            j for j, name in enumerate(names) if counts[name] > 1 and (names.index(name) == j or not source.shown)
        ]
        raise ValueError(
            f"Expected column names that all differ; {source.listed(repeated)} came more than once. Rename them."
        )
    if columns is None:
        chosen = list(range(len(names)))
    else:
        asked = [columns] if isinstance(columns, str | int | np.integer) else list(columns)
        chosen = [_position(source, label) for label in asked]
    if not chosen:
        raise ValueError("Expected at least one column; got none.")
    if len(set(chosen)) < len(chosen):
        raise ValueError("Expected each column once in columns=[...]; one came twice. Leave out the second.")
    return chosen


def _position(source: Source, label: Any) -> int:
    """Return the position of one column, by its label or its name."""
    if not isinstance(label, bool | np.bool_):  # True == 1 would select the second column of an array
        for known in (source.labels, source.names):
            if label in known:
                return known.index(label)
    if not source.shown:
        raise ValueError(
            f"Expected one of the {len(source.names)} names in the first line of the file; got {label!r}. They are not "
            "shown, since none of them was asked for, so the first line may be a row: look into the file."
        )
    close = difflib.get_close_matches(str(label), source.names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"Expected one of the columns {_listed(source.names)}; got {label!r}.{hint}")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:_NAMES_SHOWN])
    return shown if len(names) <= _NAMES_SHOWN else f"{shown} and {len(names) - _NAMES_SHOWN} more"
