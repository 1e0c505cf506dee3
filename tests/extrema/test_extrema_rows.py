"""Rows in pieces: the same at every pass, unchangeable, with missing entries refused or replaced."""

import numpy as np
import pytest

from pymc_dpdepth.extrema.rows import CHUNK_ROWS, finite_rows, read_rows


def all_rows(source):
    return np.concatenate([np.empty((0, len(source.columns))), *source.chunks()])


def test_pieces_are_the_rows_in_order_again_and_again():
    rows = np.arange(2.0 * (2 * CHUNK_ROWS + 5)).reshape(-1, 2)
    source = read_rows(rows)
    for _ in range(2):
        pieces = list(source.chunks())
        assert max(map(len, pieces)) <= CHUNK_ROWS and min(map(len, pieces)) > 0
        assert (np.concatenate(pieces) == rows).all()
    assert (all_rows(source) == rows).all() and (source.n, source.columns) == (len(rows), ("x0", "x1"))
    assert repr(source).endswith("rows, columns=('x0', 'x1'))")
    with pytest.raises(ValueError, match="read-only"):
        pieces[0][0, 0] = 1.0


def test_missing_entries():
    rows = np.array([[1.0, np.nan], [np.inf, 2.0], [3.0, 4.0]])
    asked = []

    def centers(columns):
        asked.append(tuple(columns))
        return [10.0, 20.0]

    with pytest.raises(ValueError, match="\\['x0', 'x1'\\]"):
        finite_rows(read_rows(rows), "raise", centers)
    assert not asked
    source = finite_rows(read_rows(rows), "center", centers)
    for _ in range(2):
        assert np.concatenate(list(source.chunks())).tolist() == [[1.0, 20.0], [10.0, 2.0], [3.0, 4.0]]
    assert all_rows(source).shape == (3, 2) and asked == [("x0", "x1")]
    whole = finite_rows(read_rows(rows[2:]), "raise", centers)
    assert all_rows(whole).tolist() == [[3.0, 4.0]]
    for wrong in ([1.0], [np.nan, 1.0]):
        with pytest.raises(ValueError, match="centers"):
            finite_rows(read_rows(rows), "center", lambda columns, wrong=wrong: wrong)


def test_no_rows():
    source = read_rows(np.empty((0, 2)))
    assert list(source.chunks()) == [] and source.n == 0
