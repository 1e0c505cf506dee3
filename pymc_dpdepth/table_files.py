"""CSV and Parquet files: public names first, then the private rows.

Errors name the file and its columns, never an entry.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import numpy as np

__all__ = ["OtherTypeError", "csv_header", "csv_pieces", "file_kind", "open_parquet", "parquet_names", "read_csv"]

_KINDS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}
_FIRST_EXACT_PANDAS = (3, 1)  # from here on pandas reads each decimal to the nearest float64 without being asked
# Cells that pandas reads as truth values or as missing, apart from numbers and from the empty cell, which an index has.
_NO_NAMES = frozenset(
    "True TRUE true False FALSE false NA N/A n/a #N/A #NA <NA> NULL null None NaN nan -NaN -nan".split()
) | {"#N/A N/A", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"}
_ARROW_INDEX_PREFIX = "__index_level_"  # the name under which pandas stores an index that has none


class OtherTypeError(Exception):
    """A cell is not of the type that was asked for."""


def file_kind(path: Path) -> str:
    """Return "csv" or "parquet"; refuse other names, folders and files that are not there."""
    if path.is_dir():
        raise ValueError(f"Expected a CSV or Parquet file; {path} is a folder. Name a file in it.")
    if not path.exists():
        raise FileNotFoundError(
            f"Expected a file; there is none at {path}. A relative path starts in the current folder."
        )
    kind = _KINDS.get(path.suffix.lower())
    if kind is None:
        raise ValueError(
            f"Expected a file whose name ends in .csv or .parquet; got {path.name}. Rename it, or read it yourself "
            "and pass the DataFrame."
        )
    return kind


def csv_header(path: Path) -> list[str]:
    """Return the names in the first line that is not blank, without spaces around them; "" for a column without a name.

    The header is read apart from the rows because pandas renames repeated names silently. A first line with a number
    in it, a field that begins like one (a date), a truth value or a mark of a missing value is refused and not shown:
    it may be a private row.
    """
    with _opened(path) as handle:
        header = _first_line(handle)
    if header is None:
        raise ValueError(f"Expected column names in the first line of {path}; the file is empty.")
    if any(_is_number(name) or name[:1].isdigit() or name in _NO_NAMES for name in header):
        raise ValueError(
            f"Expected column names in the first line of {path}; it holds a number, a date, True, False or a mark of a "
            "missing value such as NA, so it may be a row (not shown). Add a line of names on top; a name that is a "
            "number, such as a year, needs a letter before it."
        )
    if len(header) == 1 and any(separator in header[0] for separator in ";\t|"):
        raise ValueError(f"Expected commas between the columns of {path}; got another separator. Write it with commas.")
    return header


def read_csv(path: Path, header: Sequence[str], wanted: Sequence[int]) -> Any:
    """Return the rows of a CSV file as a DataFrame whose labels are the columns' positions.

    All columns are read, those not wanted as text: given a selection, pandas does not notice a row that is too long.
    Numbers become float64 at once, so that the value of a cell does not depend on the type that the other rows suggest.
    """
    every = range(len(header))
    frame = _parse(path, len(header), {j: np.float64 if j in wanted else str for j in every})
    if (
        frame is None
    ):  # some wanted cell is no number: perhaps True or False; text is refused later, by its column's name
        frame = _parse(path, len(header), {j: str for j in every if j not in wanted})
    return frame


def open_parquet(path: Path, buffer: int = 0) -> Any:
    """Return the open file, from which columns can be read one at a time.

    With a buffer, of so many bytes, a column of a row group is read in pieces, too.
    """
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise ImportError('Reading Parquet needs pyarrow: pip install "pymc_dpdepth[parquet]"') from None
    try:
        return parquet.ParquetFile(path, buffer_size=buffer)
    except ValueError:  # pyarrow's errors about content are ValueErrors
        raise ValueError(f"Expected a Parquet file; {path} is empty or not one.") from None


def parquet_names(file: Any) -> list[str]:
    """Return the names of the columns, without an index that pandas stored beside them."""
    return [name for name in file.schema_arrow.names if not name.startswith(_ARROW_INDEX_PREFIX)]


def csv_pieces(path: Path, width: int, dtype: dict[int, type], size: int | None = None) -> Iterator[Any]:
    """Yield the rows behind the header in DataFrames of at most `size` rows, or in one.

    Parameters
    ----------
    path : path
    width : int
        Number of columns.
    dtype : dict of int to type
        Types by position; of the other columns pandas finds one, for each piece.
    size : int, optional
        All rows at once without it.

    Raises
    ------
    OtherTypeError
        If a cell is not of its type.
    ValueError
        If the file is not that of a table.
    """
    import pandas as pd

    options: dict[str, Any] = {"header": None, "names": range(width), "index_col": False, "dtype": dtype}
    # In a file of one column a blank line is a missing value; to skip it would let a missing value change n.
    options["skip_blank_lines"] = width > 1
    if tuple(int(part) for part in pd.__version__.split(".")[:2]) < _FIRST_EXACT_PANDAS:
        options["float_precision"] = "round_trip"
    with _opened(path) as handle:
        _first_line(handle)
        reader = None
        while True:
            try:
                with warnings.catch_warnings():  # a warning is raised where fields beyond the header would be lost
                    warnings.simplefilter("error", pd.errors.ParserWarning)
                    if reader is None:
                        reader = pd.read_csv(handle, low_memory=False, iterator=True, **options)
                    piece = reader.read() if size is None else reader.get_chunk(size)
            except (pd.errors.EmptyDataError, StopIteration):
                return
            except (pd.errors.ParserError, pd.errors.ParserWarning):
                raise ValueError(
                    f"Expected {width} fields, as many as there are names, in each line of {path}; a line has more, or "
                    "an open quotation mark. Repair the file, or read it yourself and pass the DataFrame."
                ) from None
            except UnicodeError:
                raise
            except ValueError:
                raise OtherTypeError from None
            yield piece
            if size is None:
                return


def _parse(path: Path, width: int, dtype: dict[int, type]) -> Any:
    """Return the rows behind the header, or None where a cell is not of the wanted type."""
    import pandas as pd

    try:
        pieces = list(csv_pieces(path, width, dtype))
    except OtherTypeError:
        return None
    return pieces[0] if pieces else pd.DataFrame({j: np.empty(0) for j in range(width)})


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    """Open a CSV file; say in one line what is wrong with its text, without the text."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as handle:
            yield handle
    except UnicodeError:
        raise ValueError(f"Expected text in UTF-8; {path} is in another encoding. Save it again as UTF-8.") from None
    except csv.Error:
        raise ValueError(f"Expected comma-separated values in {path}; its first line cannot be read as such.") from None


def _first_line(handle: TextIO) -> list[str] | None:
    """Read up to the first line that is not blank, and return its fields."""
    for fields in csv.reader(handle):
        if any(field.strip() for field in fields):
            return [field.strip() for field in fields]
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
