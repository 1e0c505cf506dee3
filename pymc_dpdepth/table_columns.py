"""From one column, of any library, to float64: the entries that are numbers, and NaN where one is missing."""

from __future__ import annotations

import csv
import datetime
import decimal
import io
import numbers
from typing import Any

import numpy as np

__all__ = ["CURES", "REAL_KINDS", "NotReal", "from_array", "from_arrow", "from_csv", "from_pandas", "from_polars"]

REAL_KINDS = "biuf"  # numpy's kinds of dtype: boolean, signed, unsigned, floating

CURES = {
    "text": "convert text to numbers (pandas.to_numeric)",
    "categories": "replace categories by numbers that mean something, such as a 0/1 column for each",
    "dates or times": "replace dates and times by a number, such as days since a fixed day",
    "complex numbers": "split complex numbers into real and imaginary parts",
    "objects": "convert objects to numbers (.astype('Float64') keeps missing values)",
}

_KIND_WORDS = {
    "U": "text",
    "S": "text",
    "T": "text",
    "M": "dates or times",
    "m": "dates or times",
    "c": "complex numbers",
}


class NotReal(Exception):
    """A column does not hold real numbers; the argument is a key of `CURES`."""


def from_array(values: np.ndarray) -> np.ndarray:
    """Convert a one-dimensional array; objects are read entry by entry, so that None and large integers work."""
    kind = values.dtype.kind
    if kind in REAL_KINDS:
        with np.errstate(over="ignore"):  # a long double beyond float64 becomes infinite, which `nonfinite` deals with
            return values.astype(np.float64)
    if kind == "O":
        return np.array([_number(entry) for entry in values], dtype=np.float64)
    raise NotReal(_KIND_WORDS.get(kind, "objects"))


def _number(entry: Any) -> float:
    """Convert one entry of a list or of an array of objects."""
    if entry is None or entry is np.ma.masked or type(entry).__name__ == "NAType":  # the class of pandas.NA
        return np.nan
    if isinstance(entry, numbers.Real | decimal.Decimal | np.bool_):
        try:
            return float(entry)
        except OverflowError:  # an integer beyond the range of float64
            return np.inf if entry > 0 else -np.inf
        except ValueError:  # a signalling NaN of decimal
            return np.nan
    if isinstance(entry, str | bytes):
        raise NotReal("text")
    if isinstance(entry, datetime.date | datetime.time | datetime.timedelta | np.datetime64 | np.timedelta64):
        raise NotReal("dates or times")
    raise NotReal("complex numbers" if isinstance(entry, numbers.Complex) else "objects")


def from_pandas(series: Any) -> np.ndarray:
    """Convert a pandas Series, nullable types included. The type alone decides, except that no entry has no type."""
    from pandas.api import types

    dtype = series.dtype
    if isinstance(dtype, types.CategoricalDtype):
        raise NotReal("categories")
    if types.is_complex_dtype(dtype):
        raise NotReal("complex numbers")
    if types.is_bool_dtype(dtype) or types.is_numeric_dtype(dtype):
        with np.errstate(over="ignore"):
            return series.to_numpy(dtype=np.float64, na_value=np.nan)
    if len(series) == 0:
        return np.empty(0)
    if dtype.kind in "mM" or isinstance(dtype, types.PeriodDtype | types.IntervalDtype):
        raise NotReal("dates or times")
    if types.is_object_dtype(dtype) and types.infer_dtype(series) != "string":
        raise NotReal("objects")
    raise NotReal("text" if types.is_string_dtype(dtype) else "objects")


def from_csv(series: Any) -> np.ndarray:
    """Convert a column of a CSV file whose type pandas found out.

    It takes for text or objects also numbers among which are integers of many digits, and truth values of which some
    are missing. Read as numbers, which is the rule for CSV files, they are no text.
    """
    import pandas as pd
    from pandas.api import types

    if types.is_bool_dtype(series.dtype) or types.is_numeric_dtype(series.dtype):
        return from_pandas(series)
    if types.infer_dtype(series, skipna=True) == "boolean":
        return series.astype(np.float64).to_numpy()
    text = io.StringIO(newline="")
    csv.writer(text).writerows([[cell] for cell in series.dropna()])
    text.seek(0)
    converted = np.full(len(series), np.nan)
    try:
        present = pd.read_csv(text, header=None, dtype=np.float64, low_memory=False)[0].to_numpy()
    except ValueError:
        raise NotReal("text") from None
    found = series.notna().to_numpy()
    if len(present) < found.sum():  # pandas skips cells of blanks alone, which it otherwise takes for text
        raise NotReal("text")
    converted[found] = present
    return converted


def from_polars(series: Any) -> np.ndarray:
    """Convert a polars Series, without pyarrow."""
    import polars

    dtype = series.dtype
    if dtype.is_numeric() or dtype in (polars.Boolean, polars.Null):
        return series.cast(polars.Float64).fill_null(np.nan).to_numpy()
    if dtype in (polars.Categorical, polars.Enum):
        raise NotReal("categories")
    if len(series) == 0:
        return np.empty(0)
    raise NotReal("text" if dtype == polars.String else "dates or times" if dtype.is_temporal() else "objects")


def from_arrow(column: Any) -> np.ndarray:
    """Convert a column of a pyarrow Table."""
    import pyarrow as pa

    kind = column.type
    numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean, pa.types.is_null)
    if any(matches(kind) for matches in numeric):
        return column.cast(pa.float64(), safe=False).to_numpy()
    if pa.types.is_dictionary(kind):
        raise NotReal("categories")
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        raise NotReal("text")
    raise NotReal("dates or times" if pa.types.is_temporal(kind) else "objects")
