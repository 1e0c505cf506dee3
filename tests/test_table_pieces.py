"""Files in pieces: the same values as the whole table, the same refusals, and little memory."""

import itertools
import os
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from pymc_dpdepth import table_files
from pymc_dpdepth.table_pieces import open_pieces
from pymc_dpdepth.tables import read_table

SIZES = (1, 2, 3, 100)


def outcome(read):
    """Return what reading gives: the values bit by bit and the names, or the refusal."""
    try:
        rows, columns = read()
    except (ValueError, OSError, ImportError) as error:
        return type(error), str(error)
    return rows.shape, rows.astype(np.float64).tobytes(), columns


def whole(path, columns):
    table = read_table(path, columns)
    return table.rows, table.columns


def in_pieces(path, columns, size):
    file = open_pieces(path, columns, size)
    for _ in range(2):
        pieces = list(file.pieces(size))
        assert all(0 < len(piece) <= size and piece.dtype == np.float64 for piece in pieces)
        assert not any(piece.flags.writeable for piece in pieces)
    rows = np.concatenate([np.empty((0, len(file.columns))), *pieces])
    assert len(rows) == file.n
    if file.finite is not None:
        assert (file.finite == np.isfinite(rows).all(axis=0)).all()
    return rows, file.columns


def compare(path, columns=None):
    """Assert that pieces of any size are the table, or are refused in the same words; return the outcome."""
    expected = outcome(lambda: whole(path, columns))
    for size in SIZES:
        assert outcome(lambda size=size: in_pieces(path, columns, size)) == expected, size
    return expected


def write(tmp_path, text, name="data.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


TABLES = {
    "numbers": "a,b\n1,2\n3.5,-4e-300\n0.1,1e400\n9007199254740993,18446744073709551616\n",
    "missing": "a,b\n,2\nNA,NaN\n1,\ninf,-Infinity\n",
    "truth values": "a,b\nTrue,1\nFALSE,2\ntrue,3\n",
    "truth values, one missing": "a,b\nTrue,1\n,2\nFalse,3\n",
    "long integers, one missing": "a,b\n123456789012345678901234567890,1\n,-1\n1,9223372036854775808\n",
    "a column without entries": "a,b\n1,\n2,\n3,\n",
    "blank lines, one column": "a\n1\n\n2\n\n",
    "blank lines, two columns": "\n\na,b\n1,2\n\n3,4\n\n\n5,6",
    "quoted": '"a","b, c"\n"1","2"\n" 3 ",4\n',
    "carriage returns": "a,b\r\n1,2\r\n3,4\r\n",
    "mark of UTF-8": b"\xef\xbb\xbfa,b\n1,2\n",
    "short rows": "a,b\n1\n2,3\n4\n",
    "commas at the ends": "a,b\n1,2,\n3,4,\n",
    "an index without a name": ",a\n0,1\n1,2\n",
    "no rows": "a,b\n",
    "no lines": "",
    "a number in the first line": "a,3\n1,2\n",
    "a name twice": "a,a\n1,2\n",
    "semicolons": "a;b\n1;2\n",
    "another encoding": "a,b\n1,2\n3,ä\n".encode("latin-1"),
    "an open quotation mark": 'a,b\n1,2\n"3,4\n5,6\n',
    "text": "a,b\n1,x\n2,y\n3,4\n",
    "text at the end": "a,b\n1,2\n3,4\n5,six\n7,8\n",
    "text in both": "a,b\nx,1\n2,y\n3,4\n",
    "truth values, then numbers": "a,b\nTrue,1\nFalse,2\n1,3\n0,4\n",
    "numbers, then truth values": "a,b\n0,1\n1,2\n,3\nTrue,4\n",
    "truth values, then text": "a,b\nTrue,1\n,2\nmaybe,3\n",
    "a cell of blanks": "a,b\n1,2\n  ,3\n4,5\n",
    "a cell of blanks and one number": "a,b\n,\n1,2\n\t,3\n",
    "a cell of blanks and truth values": 'a,b\nTrue,1\n"  ",2\nFalse,3\n',
    "a line of blanks, one column": "a\n1\n  \n2\n3\n",
    "a line of blanks, two columns": "a,b\n1,2\n  \n3,4\n",
    "odd numbers": "a,b\n1_0,0x10\n2,3\n",
}


@pytest.mark.parametrize("columns", [None, ["b"], ["b", "a"], ["a", "z"], ["a", "a"], [], "a", [0]], ids=str)
@pytest.mark.parametrize("name", TABLES)
def test_csv_files_are_read_or_refused_as_at_once(tmp_path, name, columns):
    compare(write(tmp_path, TABLES[name]), columns)


def test_what_is_refused_and_what_is_read():
    # The comparison above says little if all files were refused.
    assert {"numbers", "missing", "quoted", "short rows", "truth values, one missing"} < set(TABLES)


@pytest.mark.parametrize("name", ["numbers", "missing", "quoted", "truth values, one missing", "no rows"])
def test_odd_tables_are_read(tmp_path, name):
    expected = outcome(lambda: whole(write(tmp_path, TABLES[name]), None))
    assert isinstance(expected[0], tuple) or name == "no rows"


@pytest.mark.parametrize("name", [name for name in TABLES if "of blanks" in name])
def test_a_cell_of_blanks_is_text(tmp_path, name):
    """It is refused by the column's name; but pandas skips a line of blanks where there are more columns."""
    kind, message = outcome(lambda: whole(write(tmp_path, TABLES[name]), ["a"]))[:2]
    if name == "a line of blanks, two columns":
        assert kind == (2, 1)
    else:
        assert kind is ValueError and "'a'" in message and "text" in message


@pytest.mark.parametrize("extra", [",9", ",", ",,", ",9,9"])
def test_a_row_too_long_is_noticed_wherever_it_is(tmp_path, extra):
    lines = [f"{j},{j}" for j in range(7)]
    for place in range(len(lines)):
        long = [line + extra * (j == place) for j, line in enumerate(lines)]
        expected = compare(write(tmp_path, "\n".join(["a,b", *long])), ["a"])
        assert expected[0] is ValueError or extra == ","


def test_columns_mixed_at_random(tmp_path):
    # Cells of all kinds in random order: what pandas thinks of a column must not depend on where pieces end.
    cells = ["1", "0", "0.5", "", "True", "False", "x", "1e400", "18446744073709551616"]
    generator = np.random.default_rng(1)
    refused = 0
    for _ in range(60):
        kinds = generator.choice(cells, size=(2, 3))
        rows = [",".join(generator.choice(kinds[column]) for column in range(2)) for _ in range(6)]
        refused += compare(write(tmp_path, "\n".join(["a,b", *rows])), ["a", "b"])[0] is ValueError
    assert 5 < refused < 55


@pytest.mark.filterwarnings("ignore:invalid value")
def test_parquet_files_are_read_or_refused_as_at_once(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {
        "integer": pyarrow.array([1, None, 2**53 + 1, -3, 5]),
        "small": pyarrow.array([0.5, float("nan"), float("inf"), None, 1], pyarrow.float32()),
        "truth": pyarrow.array([True, None, False, True, True]),
        "nothing": pyarrow.nulls(5),
        "decimal": pyarrow.array([1, 2, 3, 4, None], pyarrow.decimal128(5, 1)),
        "a.b": pyarrow.array([1.0, 2, 3, 4, 5]),
        "word": pyarrow.array(["a", "b", None, "d", "e"]),
        "kind": pyarrow.array(["a", "b", "a", "b", "a"]).dictionary_encode(),
        "day": pyarrow.array([0, 1, 2, 3, 4], pyarrow.date32()),
        "pair": pyarrow.array([{"x": 1}] * 5),
    }
    path = tmp_path / "data.parquet"
    parquet.write_table(pyarrow.table(columns), path, row_group_size=2)
    numeric = ["integer", "small", "truth", "nothing", "decimal", "a.b"]
    for choice in (None, numeric, numeric[::-1], "truth", ["integer", "word"], ["kind", "day", "pair"], ["none"]):
        compare(path, choice)
    assert isinstance(outcome(lambda: whole(path, numeric))[0], tuple)
    pd.DataFrame({"a": [1.0, 2.0]}, index=["x", "y"]).to_parquet(path)
    compare(path)
    pd.DataFrame({"a": np.empty(0), "b": np.empty(0, dtype=object)}).to_parquet(path)
    compare(path, ["a"])
    compare(path)
    compare(write(tmp_path, b"no table", "bad.parquet"))
    compare(write(tmp_path, b"", "empty.parquet"))


def test_files_that_are_none(tmp_path):
    for path in (tmp_path, tmp_path / "none.csv", write(tmp_path, "a\n1\n", "data.txt")):
        compare(path)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_memory_stays_that_of_a_piece(tmp_path, kind):
    # 400,000 rows of 4 doubles are 12.8 MB. A piece of 4,096 rows is 0.13 MB; Python objects of a piece, the buffers of
    # the readers and the code that is compiled on the way are allowed another 3 MB.
    n, size, d = 400_000, 4096, 4
    path = tmp_path / f"data.{kind}"
    frame = pd.DataFrame(np.tile(np.arange(1.0 * d), (n, 1)), columns=list("abcd"))
    if kind == "csv":
        path.write_text("a,b,c,d\n" + "0.0,1.0,2.0,3.0\n" * n)
        allocated = table_files  # pandas allocates through Python
    else:
        pyarrow = pytest.importorskip("pyarrow")
        frame.to_parquet(path, row_group_size=n)
        allocated = pyarrow.default_memory_pool()
    del frame
    small = tmp_path / f"small.{kind}"
    (pd.DataFrame({"a": [1.0]}).to_csv if kind == "csv" else pd.DataFrame({"a": [1.0]}).to_parquet)(small, index=False)
    list(open_pieces(small, None, size).pieces(size))  # what is imported and allocated once
    before = allocated.bytes_allocated() if kind == "parquet" else 0
    tracemalloc.start()
    file = open_pieces(path, None, size)
    total, arrow = np.zeros(d), 0
    for piece in file.pieces(size):
        total += piece.sum(axis=0)
        if kind == "parquet":
            arrow = max(arrow, allocated.bytes_allocated() - before)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert file.n == n and total.tolist() == [0.0, n, 2.0 * n, 3.0 * n]
    assert peak < 3e6 < 8 * n * d / 4 and arrow < 3e6


def test_a_file_that_changes_is_noticed(tmp_path):
    path = write(tmp_path, "a,b\n" + "1,2\n" * 10)
    file = open_pieces(path, None, 4)
    pieces = file.pieces(4)
    next(pieces)
    before = path.stat()
    path.write_text("a,b\n" + "3,4\n" * 10)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    with pytest.raises(ValueError, match="changed while it was read"):
        list(itertools.islice(pieces, 10))
    with pytest.raises(ValueError, match="changed while it was read"):
        next(file.pieces(4))
    # Noticed by the rows alone.
    path.write_text("a,b\n" + "1,x\n" * 9)
    file._state = (path.stat().st_size, path.stat().st_mtime_ns, path.stat().st_ino)
    with pytest.raises(ValueError, match="changed while it was read"):
        list(file.pieces(4))
    path.write_text("a,b\n" + "1,2\n" * 9)
    file._state = (path.stat().st_size, path.stat().st_mtime_ns, path.stat().st_ino)
    with pytest.raises(ValueError, match="changed while it was read"):
        list(file.pieces(4))
