"""The surface of a depth: its values, the rows on its floor, and that it stays with the curator."""

import io

import numpy as np
import pytest
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d.axes3d import Axes3D

import pymc_dpdepth as dpd
from pymc_dpdepth.plot_marks import CURATOR_NOTE
from pymc_dpdepth.plot_surface import GRID, plot_depth_surface

ROWS = np.round(np.random.default_rng(1).normal(size=(40, 2)) @ [[3.0, 1.0], [0.0, 2.0]], 2)


def line_called(axes, label):
    return next(line for line in axes.lines if line.get_label() == label)


@pytest.mark.parametrize("depth", ["spatial", dpd.Halfspace(), None], ids=str)
def test_the_surface_is_the_depth(depth, monkeypatch):
    drawn = []
    plain = Axes3D.plot_surface
    monkeypatch.setattr(
        Axes3D, "plot_surface", lambda axes, *xyz, **look: drawn.append(xyz) or plain(axes, *xyz, **look)
    )
    figure = plot_depth_surface(ROWS, depth=depth)
    ((x, y, z),) = drawn
    assert x.shape == (GRID["surface"],) * 2
    depth = dpd.Halfspace(directions=None) if depth is None else dpd.depths.as_depth(depth)
    expected = depth.evaluate(np.column_stack([x.ravel(), y.ravel()]), ROWS).reshape(x.shape)
    assert np.array_equal(np.isnan(z), expected == expected.min())  # the sheet around the rows is left out
    assert np.array_equal(z[~np.isnan(z)], expected[~np.isnan(z)])
    for grid, column in ((x, ROWS[:, 0]), (y, ROWS[:, 1])):
        assert grid.min() < column.min() and grid.max() > column.max()
    assert figure.releasable is False and CURATOR_NOTE in [text.get_text() for text in figure.axes[0].texts]


def test_rows_median_and_release_lie_on_the_floor():
    release = dpd.private_median(ROWS, epsilon=1.0, prior="normal(0, 5)", directions="axes")
    axes = plot_depth_surface(ROWS, depth="spatial", release=release).axes[0]
    rows = next(c for c in axes.collections if c.get_label() == "rows")
    x, y, z = rows._offsets3d
    assert np.array_equal(np.column_stack([x, y]), ROWS) and set(z) == {axes.get_zlim()[0]}
    for label, point in (("median", dpd.Spatial().median(ROWS)), ("released", release.value.values)):
        drawn = np.ravel(line_called(axes, label).get_data_3d())
        assert drawn.tolist() == [*point, axes.get_zlim()[0]]
    assert min(axes.get_zticks()) >= 0


def test_filled_contours_have_the_rows_on_top():
    figure = plot_depth_surface(ROWS, kind="filled", levels=4)
    axes = figure.axes[0]
    filled, lines = axes.collections[:2]
    assert len(filled.levels) == 6 and len(lines.levels) == 4
    assert np.array_equal(axes.collections[-1].get_offsets(), ROWS)
    assert np.array_equal(line_called(axes, "median").get_xydata()[0], dpd.Halfspace(directions=None).median(ROWS))
    assert figure.releasable is False


@pytest.mark.parametrize("kind", ["surface", "filled"])
@pytest.mark.parametrize("rows", [[[1.0, 2.0]], [[1.0, 2.0]] * 3, [[0, 0], [1, 1], [2, 2]]], ids=len)
def test_degenerate_tables(kind, rows):
    plot_depth_surface(rows, kind=kind).savefig(io.BytesIO())


def test_a_depth_that_is_zero_everywhere_is_drawn():
    plot_depth_surface([[0.0, 0.0], [1.0, 1.0]], depth="simplicial", kind="filled").savefig(io.BytesIO())


def test_misuse_is_refused_with_the_cure():
    flat, solid = Figure().add_subplot(), Figure().add_subplot(projection="3d")
    for arguments, error, message in (
        ({"kind": "solid"}, ValueError, "kind: expected one of"),
        ({"levels": 0}, ValueError, "levels"),
        ({"ax": flat}, ValueError, 'projection="3d"'),
        ({"ax": solid, "kind": "filled"}, ValueError, "in the plane"),
        ({"X": np.eye(3)}, ValueError, "two columns"),
        ({"release": ROWS}, TypeError, "expected a Release"),
    ):
        with pytest.raises(error, match=message):
            plot_depth_surface(**{"X": ROWS, **arguments})
    assert plot_depth_surface(ROWS, ax=flat, kind="filled") is flat.figure and flat.figure.releasable is False
