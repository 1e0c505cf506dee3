"""Labels of groups: which are one, which are missing, and labels and rows of different indexes."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest

from pymc_dpdepth.mechanism import exponential_mechanism, read_mechanisms

ROWS = pd.DataFrame({"x": [0.0, 1.0, 2.0], "y": [5.0, 6.0, 7.0]}, index=[3, 4, 5])


def add(groups, labels, rows=None):
    with pm.Model(coords={"group": labels, "coordinate": ["x", "y"]}) as model:
        location = pm.Normal("location", 0, 5, dims=("group", "coordinate"))
        exponential_mechanism("median", location, ROWS.to_numpy() if rows is None else rows, groups=groups, epsilon=1.0)
    return model


def rows_of(model):
    return [mechanism.rows[:, 0].tolist() for mechanism in read_mechanisms(model)]


def test_false_and_zero_are_two_labels_and_two_is_one():
    assert rows_of(add(np.array([False, 0, False], dtype=object), [False, 0])) == [[0.0, 2.0], [1.0]]
    assert rows_of(add(np.array([True, 1, True], dtype=object), [1, True])) == [[1.0], [0.0, 2.0]]
    with pytest.raises(ValueError, match="all differ"):
        add([2, 2.0, 2], [2, 2.0])


MISSING = [None, float("nan"), np.float64("nan"), pd.NA, pd.NaT, np.datetime64("NaT", "D")]


@pytest.mark.parametrize("missing", MISSING, ids=str)
def test_a_missing_label_joins_no_group(missing):
    for name in {str(missing), "None", "nan", "<NA>"}:
        with pytest.raises(ValueError, match="some are missing"):
            add(["a", missing, "a"], ["a", name])
    with pytest.raises(ValueError, match="not missing"):
        add(["a", "a", "a"], ["a", missing])
    assert rows_of(add(["a", "nan", "a"], ["a", "nan"])) == [[0.0, 2.0], [1.0]]  # a text is a text


def test_a_label_that_no_name_may_hold_is_refused_by_us():
    with pytest.raises(ValueError, match="coords.*rename"):
        add(["a/b"] * 3, ["a/b", "c"])


def test_labels_and_rows_of_pandas_have_one_index():
    labels = pd.Series(["b", "a", "a"], index=[3, 4, 5])
    assert rows_of(add(labels, ["a", "b"], ROWS)) == [[1.0, 2.0], [0.0]]
    assert rows_of(add(labels, ["a", "b"])) == [[1.0, 2.0], [0.0]]  # an array has no index
    for other in ([5, 4, 3], [0, 1, 2]):
        with pytest.raises(ValueError, match="index of X"):
            add(labels.set_axis(other), ["a", "b"], ROWS)
        assert rows_of(add(labels.set_axis(other).to_numpy(), ["a", "b"], ROWS)) == [[1.0, 2.0], [0.0]]
