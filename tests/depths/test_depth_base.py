import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pymc_dpdepth
from pymc_dpdepth.depths import Halfspace, IntegratedDual, IntegratedRankWeighted, Projection
from pymc_dpdepth.errors import NotDifferentiableError

DEPTHS = [Halfspace(), IntegratedRankWeighted(), IntegratedDual(), IntegratedDual(2.0), Projection()]
SECRET = 123456.789


@pytest.fixture(params=DEPTHS, ids=repr)
def depth(request):
    return request.param


def test_lists_frames_integers_and_booleans_are_accepted(depth):
    rows = [[0, 1], [1, 0], [1, 1]]
    expected = depth.evaluate([[1.0, 1.0]], np.array(rows, dtype=float))
    assert np.array_equal(depth.evaluate([[1, 1]], rows), expected)
    assert np.array_equal(depth.evaluate([[True, True]], np.array(rows, dtype=bool)), expected)
    assert np.array_equal(depth.evaluate(np.ones((1, 2), np.float32), np.array(rows, np.uint8, order="F")), expected)


def test_inputs_are_left_as_they_were(depth):
    rows, points = np.array([[3.0, 1.0], [1.0, 2.0], [2.0, 0.0]]), np.array([[1.0, 1.0]])
    copies = rows.copy(), points.copy()
    depth.evaluate(points, rows)
    assert np.array_equal(rows, copies[0])
    assert np.array_equal(points, copies[1])


def test_no_points_and_no_rows(depth):
    assert depth.evaluate(np.empty((0, 2)), [[1.0, 2.0]]).shape == (0,)
    assert depth.evaluate([[1.0, 2.0], [0.0, 0.0]], np.empty((0, 2))).tolist() == [0.0, 0.0]


def test_the_order_of_rows_does_not_matter(depth):
    generator = np.random.default_rng(0)
    rows, points = generator.integers(0, 4, size=(20, 2)).astype(float), generator.standard_normal((5, 2))
    assert np.array_equal(depth.evaluate(points, rows), depth.evaluate(points, rows[::-1]))


def test_one_dimensional_points_are_refused_with_the_cure(depth):
    with pytest.raises(ValueError, match=r"points\[None, :\] for one point"):
        depth.evaluate([1.0, 2.0], [[1.0, 2.0]])
    with pytest.raises(ValueError, match=r"points\[:, None\] for many numbers"):
        depth.evaluate([1.0, 2.0], [[1.0], [2.0]])
    with pytest.raises(ValueError, match=r"X\[:, None\]"):
        depth.evaluate([[1.0]], [1.0, 2.0])


def test_widths_must_agree(depth):
    with pytest.raises(ValueError, match="as many columns as X, 2; got 3"):
        depth.evaluate([[1.0, 2.0, 3.0]], [[1.0, 2.0]])
    with pytest.raises(ValueError, match="at least one column"):
        depth.evaluate(np.empty((1, 0)), np.empty((3, 0)))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_non_finite_entries_are_refused_by_column_and_no_value_is_shown(depth, bad):
    with pytest.raises(ValueError, match=r"X must be finite; .* index \[1\]") as caught:
        depth.evaluate([[0.0, 0.0]], [[SECRET, bad], [SECRET, 0.0]])
    assert str(SECRET) not in str(caught.value)
    with pytest.raises(ValueError, match=r"points must be finite; .* index \[0\]"):
        depth.evaluate([[bad, 0.0]], [[1.0, 2.0]])


def test_text_and_complex_entries_are_refused(depth):
    with pytest.raises(TypeError, match="X must hold real numbers") as caught:
        depth.evaluate([[0.0]], [["private"]])
    assert "private" not in str(caught.value)
    with pytest.raises(TypeError, match="points must hold real numbers"):
        depth.evaluate([[1j]], [[1.0]])


@pytest.mark.parametrize("masked", [np.ma.array, lambda data, mask: list(np.ma.array(data, mask=mask))])
def test_masked_entries_are_missing(depth, masked):
    data, nothing = [[SECRET, 1], [0, 2]], [[False, False]] * 2
    assert np.array_equal(depth.evaluate([[1, 1]], masked(data, mask=nothing)), depth.evaluate([[1, 1]], data))
    hidden = masked(data, mask=[[True, False], [False, False]])
    with pytest.raises(ValueError, match=r"X must be finite; missing .* index \[0\]") as caught:
        depth.evaluate([[1, 1]], hidden)
    assert str(SECRET) not in str(caught.value)
    with pytest.raises(ValueError, match=r"points must be finite; missing .* index \[0\]"):
        depth.evaluate(hidden, [[1, 1]])


def test_nullable_columns_are_accepted_where_nothing_is_missing(depth):
    frame = pd.DataFrame({"a": [3, 1, 2], "b": [True, False, True], "c": [0.5, 1.5, 2.5]})
    expected = depth.evaluate([[1, 1, 1]], frame.to_numpy(dtype=float))
    for nullable in (frame.convert_dtypes(), frame.astype({"a": "Int64"}), frame.astype("Float32")):
        assert np.array_equal(depth.evaluate([[1, 1, 1]], nullable), expected)
    nullable = frame.convert_dtypes()
    nullable.loc[1, "a"] = pd.NA
    with pytest.raises(ValueError, match=r"X must be finite; missing .* index \[0\]"):
        depth.evaluate([[1, 1, 1]], nullable)
    with pytest.raises(TypeError, match="X must hold real numbers"):
        depth.evaluate([[1, 1]], pd.DataFrame({"a": [1, 2], "b": ["1", "2"]}).convert_dtypes())


def test_ragged_lists_are_refused_by_name(depth):
    with pytest.raises(ValueError, match="X must be a table; got rows, or entries, of different lengths"):
        depth.evaluate([[0.0]], [[1.0, 2.0], [3.0]])
    with pytest.raises(ValueError, match="points must be a table"):
        depth.evaluate([[1.0, 2.0], [3.0]], [[1.0, 2.0]])


def test_long_doubles_beyond_doubles_are_infinite(depth):
    with pytest.raises(ValueError, match=r"X must be finite; .* index \[0\]"):  # and no warning of an overflow
        depth.evaluate([[0.0]], np.array([["1e400"]]).astype(np.longdouble))


@pytest.mark.parametrize("step", [depth for depth in DEPTHS if not depth.differentiable], ids=repr)
def test_step_depths_have_no_gradient_and_the_error_names_what_to_use(step):
    with pytest.raises(NotDifferentiableError) as caught:
        step.value_and_gradient([[0.0]], [[1.0]])
    for word in ("pm.Slice", "pm.sample_smc", "sample_exact", "IntegratedDual(smoothing=s)"):
        assert word in str(caught.value)


def test_importing_the_depths_loads_neither_numba_nor_pytensor():
    """In a fresh interpreter; the package itself is left out, only its folder is searched."""
    folder = Path(pymc_dpdepth.__file__).parent
    script = (
        "import sys, types\n"
        "package = types.ModuleType('pymc_dpdepth')\n"
        f"package.__path__ = [{str(folder)!r}]\n"
        "sys.modules['pymc_dpdepth'] = package\n"
        "import pymc_dpdepth.depths\n"
        "pymc_dpdepth.depths.Halfspace(), pymc_dpdepth.depths.as_depth('projection').sensitivity(3, 2)\n"
        "print(sorted({'numba', 'pytensor', 'pymc', 'scipy'} & set(sys.modules)))\n"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
