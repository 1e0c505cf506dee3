import datetime
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xarray as xr

from pymc_dpdepth.tables import Table, apply_nonfinite, read_table

nan = np.nan
RAND_HIE = Path(__file__).parents[1] / "examples" / "data" / "rand_hie_first_year.csv"


def check(table, rows, columns):
    assert isinstance(table, Table)
    assert table.rows.dtype == np.float64
    assert table.rows.flags.c_contiguous and table.rows.flags.owndata
    assert table.columns == tuple(columns)
    assert all(type(name) is str for name in table.columns)
    np.testing.assert_array_equal(table.rows, np.asarray(rows, dtype=float))
    assert table.rows.shape == np.shape(rows)


def refuses(message, data, columns=None, error=ValueError):
    """The error is of exactly the asked class, fits on one line, and carries no chained error that might show a row."""
    with pytest.raises(error, match=message) as caught:
        read_table(data, columns)
    assert type(caught.value) is error
    assert "\n" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


# Arrays and lists


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.float16, np.float32, np.float64, np.longdouble])
def test_arrays_of_every_real_type(dtype):
    check(read_table(np.array([[0, 1], [1, 0], [1, 1]], dtype=dtype)), [[0, 1], [1, 0], [1, 1]], ["x0", "x1"])


def test_arrays_are_copied_and_put_in_row_order():
    for order in "CF":
        data = np.array([[1.0, 2.0], [3.0, 4.0]], order=order)
        before = data.copy()
        table = read_table(data)
        check(table, before, ["x0", "x1"])
        data[:] = -1
        np.testing.assert_array_equal(table.rows, before)
        table.rows[:] = 7
        assert (data == -1).all()


def test_one_dimension_is_one_column():
    for data in (np.array([1, 2]), [1, 2], (1.0, 2.0), range(1, 3), pd.Index([1, 2])):
        check(read_table(data), [[1], [2]], ["x0"])


def test_lists_may_hold_none_booleans_and_large_integers():
    check(read_table([[1, None], [True, 2.5]]), [[1, nan], [1, 2.5]], ["x0", "x1"])
    entries = [Decimal("1.5"), np.float32(2), np.bool_(True), pd.NA, 10**400, -(10**400), 2**70, Decimal("sNaN")]
    check(read_table(entries), [[1.5], [2], [1], [nan], [np.inf], [-np.inf], [2.0**70], [nan]], ["x0"])
    check(read_table(np.array([[2**53 + 1]])), [[2.0**53]], ["x0"])


def test_masked_entries_are_missing():
    data = np.ma.array([[1, 2], [3, 4]], mask=[[0, 1], [0, 0]])
    check(read_table(data), [[1, nan], [3, 4]], ["x0", "x1"])
    check(read_table(np.ma.array([1.0, 2.0], mask=[1, 0])), [[nan], [2]], ["x0"])
    check(read_table(np.ma.array(["?", 2.0], mask=[1, 0], dtype=object)), [[nan], [2]], ["x0"])


def test_zero_rows_are_a_table():
    check(read_table(np.empty((0, 3))), np.empty((0, 3)), ["x0", "x1", "x2"])
    check(read_table([]), np.empty((0, 1)), ["x0"])
    check(read_table(pd.DataFrame(columns=["a", "b"])), np.empty((0, 2)), ["a", "b"])
    check(read_table(pd.DataFrame({"a": [1], "b": ["t"]}).iloc[:0]), np.empty((0, 2)), ["a", "b"])
    check(read_table(pl.DataFrame({"a": [1], "b": ["t"]}).clear()), np.empty((0, 2)), ["a", "b"])


def test_arrays_are_selected_by_position_or_name():
    data = np.arange(6.0).reshape(2, 3)
    check(read_table(data, [2, "x0"]), data[:, [2, 0]], ["x2", "x0"])
    check(read_table(data, 1), data[:, [1]], ["x1"])
    check(read_table(data, "x1"), data[:, [1]], ["x1"])
    check(read_table(data, np.array([1, 0])), data[:, [1, 0]], ["x1", "x0"])
    for bad in (3, -1, "income", True, 1.5, [0]):
        refuses("Expected one of the columns 'x0', 'x1', 'x2'; got", data, [bad])
    refuses("one came twice", data, [0, "x0"])
    refuses("at least one column", data, [])
    refuses("at least one column", np.empty((3, 0)))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.zeros((2, 2, 2)), "got 3 dimensions"),
        (np.float64(3), "got 0 dimensions"),
        ([[1, 2], [3]], "rows of different lengths"),
        (np.array([["a", "b"]]), "'x0' holds text; 'x1' holds text"),
        ([[1, "secret"], [2, "3"]], "column 'x1' holds text.*to_numeric"),
        ([[1, b"secret"]], "column 'x1' holds text"),
        (np.array([[1, 1j]]), "'x0' holds complex"),
        ([[1, 1j]], "column 'x1' holds complex"),
        (np.array(["2024-01-01"], dtype="datetime64[D]"), "'x0' holds dates or times.*days since"),
        ([[1, datetime.date(2024, 1, 1)]], "column 'x1' holds dates"),
        ([[1, {}]], "column 'x1' holds objects"),
        (np.array([(1, 2)], dtype=[("a", int), ("b", int)]), "'x0' holds objects"),
    ],
)
def test_arrays_that_are_not_tables_of_numbers(data, message):
    assert "secret" not in refuses(message, data)


@pytest.mark.parametrize("data", [3, 2.5, {"a": [1]}, {1, 2}, None, b"abc", (i for i in range(3)), object()])
def test_other_kinds_are_refused(data):
    refuses("Expected an array, a list of rows, a DataFrame", data, error=TypeError)


def test_repr_shows_no_row():
    table = read_table([[271828.0, 314159.0]])
    assert repr(table) == str(table) == "Table(1 rows, columns=('x0', 'x1'))"


# pandas


def test_pandas_types_with_and_without_missing_values():
    frame = pd.DataFrame(
        {
            "plain": [1, 2, 3],
            "float": [1.5, nan, np.inf],
            "bool": [True, False, True],
            "Int": pd.array([1, pd.NA, 3], dtype="Int64"),
            "Float": pd.array([1.5, pd.NA, 3], dtype="Float64"),
            "boolean": pd.array([True, pd.NA, False], dtype="boolean"),
            "arrow": pd.array([1, None, 3], dtype="int64[pyarrow]"),
            "arrow_bool": pd.array([True, None, False], dtype="bool[pyarrow]"),
            "sparse": pd.arrays.SparseArray([0.0, 1.0, 0.0]),
            7: np.array([1, 2, 3], dtype=np.uint8),
        },
        index=["p", "q", "r"],
    )
    before = frame.copy()
    expected = [
        [1, 1.5, 1, 1, 1.5, 1, 1, 1, 0, 1],
        [2, nan, 0, nan, nan, nan, nan, nan, 1, 2],
        [3, np.inf, 1, 3, 3, 0, 3, 0, 0, 3],
    ]
    table = read_table(frame)
    check(table, expected, [str(name) for name in frame.columns])
    pd.testing.assert_frame_equal(frame, before)
    check(read_table(frame, [7, "plain"]), [[1, 1], [2, 2], [3, 3]], ["7", "plain"])
    check(read_table(frame, "7"), [[1], [2], [3]], ["7"])
    table.rows[:] = -1
    pd.testing.assert_frame_equal(frame, before)


def test_pandas_series():
    check(read_table(pd.Series([1, 2], name="age")), [[1], [2]], ["age"])
    check(read_table(pd.Series([1.0, 2.0])), [[1], [2]], ["x0"])


@pytest.mark.parametrize(
    ("values", "what"),
    [
        (pd.Categorical(["secret", "b"]), "categories"),
        (pd.Categorical([1, 2]), "categories"),
        (pd.Categorical([True, False]), "categories"),
        (["secret", "b"], "text"),
        (pd.array(["secret", None], dtype="string"), "text"),
        (np.array(["secret", None], dtype=object), "text"),
        (np.array([1, "secret"], dtype=object), "objects"),
        (np.array([True, None], dtype=object), "objects.*Float64"),
        (pd.to_datetime(["2024-01-01", "2024-01-02"]), "dates or times"),
        (pd.to_datetime(["2024-01-01", "2024-01-02"]).tz_localize("UTC"), "dates or times"),
        (pd.to_timedelta([1, 2], unit="D"), "dates or times"),
        (pd.period_range("2024", periods=2, freq="D"), "dates or times"),
        ([1j, 2], "complex numbers"),
    ],
)
def test_pandas_columns_refused_by_name_unless_left_out(values, what):
    frame = pd.DataFrame({"a": [1, 2], "bad one": values})
    message = refuses(f"column 'bad one' holds {what}", frame)
    assert "secret" not in message and "columns=[...]" in message
    check(read_table(frame, ["a"]), [[1], [2]], ["a"])


def test_pandas_names_must_differ_and_exist():
    refuses("'a' came more than once", pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"]), ["b"])
    refuses("'1' came more than once", pd.DataFrame([[1, 2]], columns=[1, "1"]))
    frame = pd.DataFrame({"age": [1], "income": [2]})
    refuses("Expected one of the columns 'age', 'income'; got 'incom'. Did you mean 'income'", frame, ["age", "incom"])
    refuses(r"got 'zzz'\.$", frame, "zzz")
    wide = pd.DataFrame(np.zeros((1, 100))).add_prefix("column")
    assert len(refuses("and 70 more; got 'zzz'", wide, "zzz")) < 600


# polars, pyarrow, xarray


def test_polars_types_with_and_without_missing_values():
    frame = pl.DataFrame(
        {
            "int": [1, None, 3],
            "float": [1.5, nan, None],
            "bool": [True, None, False],
            "null": [None, None, None],
            "decimal": [Decimal("1.5"), None, Decimal("2")],
        }
    )
    expected = [[1, 1.5, 1, nan, 1.5], [nan, nan, nan, nan, nan], [3, nan, 0, nan, 2]]
    check(read_table(frame), expected, frame.columns)
    check(read_table(frame.lazy(), ["bool", "int"]), np.array(expected)[:, [2, 0]], ["bool", "int"])
    check(read_table(frame["int"]), [[1], [nan], [3]], ["int"])
    check(read_table(pl.Series([1, 2])), [[1], [2]], ["x0"])


@pytest.mark.parametrize(
    ("series", "what"),
    [
        (pl.Series(["secret"]), "text"),
        (pl.Series(["secret"], dtype=pl.Categorical), "categories"),
        (pl.Series(["secret"], dtype=pl.Enum(["secret"])), "categories"),
        (pl.Series([datetime.date(2024, 1, 1)]), "dates or times"),
        (pl.Series([datetime.timedelta(1)]), "dates or times"),
        (pl.Series([[1]]), "objects"),
        (pl.Series([{"a": 1}]), "objects"),
    ],
)
def test_polars_columns_refused_by_name_unless_left_out(series, what):
    frame = pl.DataFrame({"a": [1], "bad": series})
    assert "secret" not in refuses(f"column 'bad' holds {what}", frame)
    check(read_table(frame, "a"), [[1]], ["a"])


def test_polars_needs_no_pyarrow_and_neither_library_is_imported_for_arrays():
    code = """
import sys
sys.modules["pyarrow"] = None
from pymc_dpdepth.tables import read_table
read_table([[1.0]])
assert not {"pandas", "polars", "xarray", "pymc"} & set(sys.modules), "imported for an array"
import polars
assert read_table(polars.DataFrame({"a": [1, None], "b": [True, False]})).rows[0].tolist() == [1, 1]
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_pyarrow_table():
    table = pa.table({"a": [1, None], "b": [True, False], "c": [0.5, 1.5]})
    check(read_table(table), [[1, 1, 0.5], [nan, 0, 1.5]], "abc")


def test_xarray():
    data = xr.DataArray([[1.0, 2.0], [3.0, 4.0]], dims=("person", "trait"), coords={"trait": ["height", "weight"]})
    check(read_table(data), data, ["height", "weight"])
    check(read_table(data, ["weight", 0]), [[2, 1], [4, 3]], ["weight", "height"])
    check(read_table(data.drop_vars("trait")), data, ["x0", "x1"])
    check(read_table(data[:, 0].drop_vars("trait").rename("height")), [[1], [3]], ["height"])
    refuses("got 3 dimensions", xr.DataArray(np.zeros((1, 1, 1))))


# Files


def write(tmp_path, text, name="data.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_csv(tmp_path):
    path = write(tmp_path, "\ufeffage, income ,vip,note\r\n40,1e3,True,secret\r\n\r\n,-inf,False,7\r\n41,NA,True,\r\n")
    check(read_table(path, ["income", "age", "vip"]), [[1e3, 40, 1], [-np.inf, nan, 0], [nan, 41, 1]],
          ["income", "age", "vip"])  # fmt: skip
    check(read_table(str(path), "age"), [[40], [nan], [41]], ["age"])
    assert "secret" not in refuses("column 'note' holds text", path, ["age", "note"])
    refuses("Did you mean 'income'", path, ["age", "incom"])


def test_csv_numbers_are_the_nearest_float64_whatever_the_other_rows_hold(tmp_path):
    rng = np.random.default_rng(20)
    numbers = [repr(float(x)) for x in rng.normal(size=500) * 10.0 ** rng.integers(-300, 300, size=500)]
    numbers += [f"{x:.25f}" for x in rng.random(500)] + ["9007199254740993", "1" * 30, "2.4703282292062328e-324"]
    for column in (numbers, numbers[-3:-1]):  # the second has integers alone
        table = read_table(write(tmp_path, "\n".join(["a", *column])))
        check(table, [[float(number)] for number in column], ["a"])


def test_csv_booleans_may_be_missing(tmp_path):
    check(read_table(write(tmp_path, "a,b\nTrue,1\n,2\nfalse,3\n")), [[1, 1], [nan, 2], [0, 3]], "ab")


def test_csv_blank_lines(tmp_path):
    check(read_table(write(tmp_path, "\n \na,b\n\n1,2\n\n3,4\n")), [[1, 2], [3, 4]], "ab")
    check(read_table(write(tmp_path, "a\n1\n\n3\n")), [[1], [nan], [3]], "a")  # the blank is a missing value


def test_csv_with_names_alone_has_zero_rows(tmp_path):
    check(read_table(write(tmp_path, "a,b\n"), ["a", "b"]), np.empty((0, 2)), "ab")
    check(read_table(write(tmp_path, "a,b"), ["a", "b"]), np.empty((0, 2)), "ab")
    refuses("may be a row", write(tmp_path, "a,b\n"))


SECRET_ROWS = {
    "words": "Smith,Bonn,deaf\nJones,Ulm,blind\n",
    "one column": "Smith\nJones\n",
    "one row": "Smith,deaf\n",
    "one row, no line end": "Smith,deaf",
    "twice the same": "deaf,deaf\nblind,deaf\n",
    "missing": "Smith,NA\nJones,43\n",
    "other mark of missing": "Smith,n/a\nJones,43\n",
    "truth": "Smith,TRUE\nJones,FALSE\n",
    "without a number": "Smith,\nJones,43\n",
    "number in one row alone": "Smith,deaf\nJones,43\n",
}


@pytest.mark.parametrize("columns", [None, "age", ["age", "Jon"], [0], "Smit"], ids=str)
@pytest.mark.parametrize("rows", SECRET_ROWS)
def test_a_first_line_that_may_be_a_row_is_not_shown(tmp_path, rows, columns):
    with pytest.raises(ValueError) as caught:
        read_table(write(tmp_path, SECRET_ROWS[rows]), columns)
    shown = str(caught.value).replace(str(tmp_path), "").replace("'Smit'", "").replace("'Jon'", "")
    assert not any(word in shown for word in ("Smith", "Bonn", "deaf", "Jones", "Ulm", "blind", "43"))
    assert "first line" in shown or "column" in shown


def test_columns_of_a_csv_are_counted_until_a_name_is_known(tmp_path):
    path = write(tmp_path, "age,note,city\n40,x,y\n")
    refuses("column number 2 .names not shown. holds text; number 3", path)
    refuses("Expected one of the 3 names", path, "agee")
    refuses("column 'note' holds text", path, ["age", "note"])
    refuses("one of the columns 'age', 'note', 'city'; got 'town'", path, ["age", "town"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("\n \n", "the file is empty"),
        ("a,b,a\n1,2,3\n", "number 1, 3 .names not shown. came more than once"),
        ("a,b, a\n1,2,3\n", "number 1, 3 .names not shown. came more than once"),
        (",a\n0,1\n", "column 1 has none, as an index"),
        ("a;b\n1;2\n", "another separator"),
        ("a\tb\n1\t2\n", "another separator"),
        ("a,b\n1,2\n3,4,777\n", "Expected 2 fields"),
        ("a,b\n1,2,777\n3,4,777\n", "Expected 2 fields"),
        ('a,b\n1,"777\n', "Expected 2 fields"),
        ("777,8\n1,2\n", "it may be a row"),
        ("777,abc\n1,x\n", "it may be a row"),
        ("a,b\n1,777x\n", "column number 2 .names not shown. holds text"),
        ("a,b\n1,777\n2,x\n", "column number 2 .names not shown. holds text"),
        ("a,b\nTrue,1\n0.777,2\n", "column number 1 .names not shown. holds text"),
        (b"a,b\n1,\xff\n", "UTF-8"),
        (b"\xff\xfea,b\n1,2\n", "UTF-8"),
        ("a,b\n1,2\n".encode("utf-16"), "UTF-8"),
        ('"' + "a" * 200_000, "cannot be read"),
    ],
)
def test_bad_csv_is_one_clear_line_without_a_value(tmp_path, text, message):
    assert "777" not in refuses(message, write(tmp_path, text)).replace(str(tmp_path), "")


def test_a_row_too_long_is_noticed_when_few_columns_are_wanted(tmp_path):
    refuses("Expected 2 fields", write(tmp_path, "a,b\n1,2\n3,4,5\n"), ["a"])


def test_csv_index_column_can_be_left_out(tmp_path):
    check(read_table(write(tmp_path, ",a\n0,1\n1,2\n"), "a"), [[1], [2]], "a")


def test_paths_that_are_not_files_of_rows(tmp_path):
    refuses("Expected a file; there is none", tmp_path / "gone.csv", error=FileNotFoundError)
    refuses("Expected a file; there is none", "gone.csv", error=FileNotFoundError)
    refuses("is a folder", tmp_path)
    refuses("ends in .csv or .parquet; got data.txt", write(tmp_path, "a\n1\n", "data.txt"))
    check(read_table(write(tmp_path, "a\n1\n", "DATA.CSV")), [[1]], "a")


def test_parquet(tmp_path):
    frame = pd.DataFrame(
        {"a": [1, 2], "flag": pd.array([True, None], dtype="boolean"), "a.b": [0.5, nan], "note": ["secret", "t"]},
        index=[5, 9],
    )
    path = tmp_path / "data.parquet"
    frame.to_parquet(path)
    check(read_table(path, ["a.b", "a", "flag"]), [[0.5, 1, 1], [nan, 2, nan]], ["a.b", "a", "flag"])
    assert "secret" not in refuses("column 'note' holds text", path)
    refuses("Did you mean 'flag'", path, ["flags"])
    frame.drop(columns="note").to_parquet(path)
    check(read_table(path), [[1, 1, 0.5], [2, nan, nan]], ["a", "flag", "a.b"])  # the index is not a column
    pq.write_table(pa.table({"a": pa.array([1], pa.int64())}).slice(1), tmp_path / "none.pq")
    check(read_table(tmp_path / "none.pq"), np.empty((0, 1)), "a")
    times = pa.table({"c": pa.array(["x"]).dictionary_encode(), "d": [datetime.date(2024, 1, 1)], "e": [[1]]})
    pq.write_table(times, path)
    refuses("'c' holds categories; 'd' holds dates or times; 'e' holds objects", path)
    pq.write_table(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]), path)
    refuses("'a' came more than once", path)


def test_bad_parquet_and_no_pyarrow(tmp_path, monkeypatch):
    refuses("is empty or not one", write(tmp_path, "", "data.parquet"))
    refuses("is empty or not one", write(tmp_path, "a,b\n1,2\n", "data.parquet"))
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    refuses(re.escape('pip install "pymc_dpdepth[parquet]"'), tmp_path / "data.parquet", error=ImportError)


# Missing values


def test_finite_rows_pass_untouched():
    rows = np.ones((2, 2))
    assert apply_nonfinite(rows, ("a", "b"), "raise", nan) is rows
    assert apply_nonfinite(np.empty((0, 2)), ("a", "b"), "raise", 0).shape == (0, 2)


def test_raise_names_columns_and_cures_but_no_value():
    rows = np.array([[777.0, 777.0, nan], [nan, 777.0, np.inf], [777.0, 777.0, -np.inf]])
    with pytest.raises(ValueError, match="in 'a', 'c'.*nonfinite=\"prior\".*number private") as caught:
        apply_nonfinite(rows, ("a", "b", "c"), "raise", 0.0)
    assert "777" not in str(caught.value) and "\n" not in str(caught.value)


def test_prior_puts_the_centre_in():
    rows = np.array([[1.0, nan], [np.inf, 2.0], [-np.inf, 3.0]])
    before = rows.copy()
    filled = apply_nonfinite(rows, ("a", "b"), "prior", [10, 20])
    np.testing.assert_array_equal(filled, [[1, 20], [10, 2], [10, 3]])
    np.testing.assert_array_equal(rows, before)
    assert filled.flags.c_contiguous
    np.testing.assert_array_equal(apply_nonfinite(rows, ("a", "b"), "prior", 5.0)[:2], [[1, 5], [5, 2]])
    with pytest.raises(ValueError, match="centre must be finite"):
        apply_nonfinite(rows, ("a", "b"), "prior", [nan, 0])


@pytest.mark.parametrize("word", ["drop", "ignore", None, True])
def test_other_words_are_refused_before_the_rows_are_looked_at(word):
    with pytest.raises(ValueError, match='must be "raise" or "prior"'):
        apply_nonfinite(np.ones((1, 1)), ("a",), word, 0.0)


# The data of the examples


def test_rand_hie():
    columns = ("plan", "site", "female", "age", "income", "meddol", "mdvis", "disea")
    table = read_table(RAND_HIE)
    assert table.columns == columns
    assert table.rows.shape == (5912, 8)  # the number of persons in the source
    assert RAND_HIE.stat().st_size < 500_000
    assert np.isfinite(table.rows).all()
    plan, site, female, age, income, meddol, mdvis, _ = table.rows.T
    assert round(np.mean(meddol == 0), 4) == 0.2055
    assert set(plan) == set(range(1, 20)) - {12} and set(site) == set(range(1, 7)) and set(female) == {0, 1}
    assert age.max() < 63 and income.max() < 30_000
    for whole in (plan, site, income, mdvis):
        assert (whole == np.round(whole)).all()
    assert table.rows.tolist() == sorted(table.rows.tolist())  # the order says nothing that the rows do not
