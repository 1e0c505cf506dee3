"""Depth contours of a table in the plane: what is drawn, that it is right, and that it says it may not leave."""

import io
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from matplotlib.figure import Figure
from PIL import Image

import pymc_dpdepth as dpd
from pymc_dpdepth.depth_plots import plot_depth_contours
from pymc_dpdepth.plot_marks import RAW_ROWS

ALL = dpd.Halfspace(directions=None)
ROWS = np.round(np.random.default_rng(1).normal(size=(40, 2)) @ [[3.0, 1.0], [0.0, 2.0]], 2)


def line_called(axes, label):
    return next(line for line in axes.lines if line.get_label() == label)


def unnamed_lines(axes):
    return [line.get_xydata() for line in axes.lines if line.get_label().startswith("_")]


def test_exact_regions_are_drawn_as_they_are():
    figure = plot_depth_contours(ROWS, levels=[0.1, 0.26, 0.49])
    axes, bar = figure.axes
    contours = ALL.regions(ROWS, levels=[4, 11, 20]).contours  # 0.26 * 40 = 10.4
    drawn = unnamed_lines(axes)
    assert len(drawn) == len(contours) == 2  # no point of these rows is 20 deep
    for line, patch, (_, corners) in zip(drawn, axes.patches, contours, strict=True):
        assert np.array_equal(line, corners) and np.array_equal(
            np.unique(patch.get_xy(), axis=0), np.unique(corners, axis=0)
        )
    assert np.array_equal(axes.collections[0].get_offsets(), ROWS)
    assert np.array_equal(line_called(axes, "median").get_xydata()[0], ALL.median(ROWS))
    assert axes.get_title() == "halfspace depth of 40 rows" and bar.get_ylabel() == "depth"
    assert bar.get_ylim() == (0.0, contours[-1][0])


def test_ten_levels_by_default_or_as_many_as_asked():
    deepest = ALL.regions(ROWS).levels[-1]
    # Equal steps from 1 to n / 2, rounded: 1 + 19 i / 9, and 1, 10.5, 20
    for asked, levels in ((None, (1, 3, 5, 7, 9, 12, 14, 16, 18, 20)), (3, (1, 10, 20))):
        levels = [level for level in levels if level <= deepest]
        drawn = unnamed_lines(plot_depth_contours(ROWS, levels=asked).axes[0])
        contours = ALL.regions(ROWS, levels=levels).contours
        assert len(drawn) == len(contours) == len(levels) > 1
        assert all(np.array_equal(line, corners) for line, (_, corners) in zip(drawn, contours, strict=True))


@pytest.mark.parametrize(
    "depth", [dpd.Halfspace(), dpd.Simplicial(), "spatial", dpd.IntegratedDual(smoothing=1.0)], ids=str
)
def test_other_depths_are_a_surface_with_contours(depth):
    axes, bar = plot_depth_contours(ROWS, depth=depth, levels=[0.05, 0.1, 0.2]).axes
    depth = dpd.depths.as_depth(depth)
    assert axes.get_title() == f"{depth.name.replace('_', ' ')} depth of 40 rows, on a grid"
    surface, contours = axes.collections[:2]
    values = surface.get_array()
    y, x = np.divmod(np.arange(values.size), values.shape[1])
    coordinates = surface.get_coordinates()  # corners of cells; points are their middles
    middles = (coordinates[:-1, :-1] + coordinates[1:, 1:]) / 2
    # Middles of edges differ from the points of the grid by rounding, so a step depth may differ by a row at a few.
    near = np.abs(depth.evaluate(middles[y, x], ROWS) - values[y, x].ravel()) < 1e-9
    assert near.mean() > 0.99
    assert contours.levels.tolist() == [0.05, 0.1, 0.2]
    assert bar.get_ylim() == (0.0, values.max())
    if not isinstance(depth, dpd.Simplicial):
        assert np.array_equal(line_called(axes, "median").get_xydata()[0], depth.median(ROWS))


def test_many_rows_get_a_grid(monkeypatch):
    monkeypatch.setattr("pymc_dpdepth.depth_plots._MOST_EXACT", 39)
    axes = plot_depth_contours(ROWS).axes[0]
    assert axes.get_title() == "halfspace depth of 40 rows, on a grid"
    assert len(axes.lines) == 0  # no median either
    assert axes.collections[0].get_array().max() <= 0.5


def test_released_locations_are_marked():
    release = dpd.private_median(ROWS, epsilon=1.0, prior=pm.Normal.dist(0, 5, shape=2))
    axes = plot_depth_contours(ROWS, release=release).axes[0]
    assert np.array_equal(line_called(axes, "released").get_xydata()[0], release.value.values)
    one = dpd.private_median(ROWS[:, :1], epsilon=1.0, prior=pm.Normal.dist(0, 5, shape=1))
    with pytest.raises(ValueError, match="a location of two coordinates"):
        plot_depth_contours(ROWS, release=one)
    with pytest.raises(TypeError, match="expected a Release, got ndarray"):
        plot_depth_contours(ROWS, release=ROWS)


def test_columns_are_chosen_and_named():
    frame = pd.DataFrame(np.column_stack([ROWS, ROWS[:, 0]]), columns=["$a$", "b", "c"])
    axes = plot_depth_contours(frame, columns=["b", "$a$"]).axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("b", "$a$")
    assert np.array_equal(axes.collections[0].get_offsets(), ROWS[:, ::-1])


@pytest.mark.parametrize("name", ["depth.png", "depth.pdf", "depth.svg"])
def test_a_saved_picture_says_that_it_may_not_leave(tmp_path, name):
    figure = plot_depth_contours(ROWS)
    figure.savefig(tmp_path / name, metadata={"Title": "mine"})
    if name.endswith("png"):
        with Image.open(tmp_path / name) as picture:
            assert picture.text["releasable"] == RAW_ROWS.text and picture.text["Title"] == "mine"
            pixels = np.asarray(picture.convert("L"))
        assert pixels.min() < 128 < pixels.max()
    else:
        assert RAW_ROWS.text.encode() in (tmp_path / name).read_bytes()
    buffer = io.BytesIO()
    figure.savefig(buffer)
    with Image.open(buffer) as picture:
        assert picture.text["releasable"] == RAW_ROWS.text
    with pytest.raises(ValueError, match="got jpg"):  # has no metadata, so the mark would be lost
        figure.savefig(buffer, format="jpg")


def test_ones_own_axes():
    figure = Figure()
    axes = figure.add_subplot()
    assert plot_depth_contours(ROWS, ax=axes) is figure
    assert "curator only, not releasable" in [text.get_text() for text in axes.texts]


@pytest.mark.parametrize(
    "rows",
    [[[1.0, 2.0]], [[1.0, 2.0]] * 3, [[0, 0], [1, 1], [2, 2], [3, 3]], [[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]]],
    ids=["one row", "one point", "one line", "a deepest row"],
)
@pytest.mark.parametrize("depth", [None, "halfspace", "spatial"])
def test_degenerate_tables(rows, depth):
    figure = plot_depth_contours(rows, depth=depth)
    figure.savefig(io.BytesIO())
    assert np.array_equal(figure.axes[0].collections[-1].get_offsets(), rows)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"X": np.eye(3)}, ValueError, r"two columns and at least one row for contours; got shape \(3, 3\)"),
        ({"X": np.empty((0, 2))}, ValueError, "at least one row"),
        ({"X": [[0.0, np.nan]]}, ValueError, r"must be finite.*\[1\]"),
        ({"depth": "nope"}, ValueError, "one of the names"),
        ({"levels": [0.0, 0.2]}, ValueError, "above 0 and at most 1"),
        ({"levels": [1.5]}, ValueError, "above 0 and at most 1"),
        ({"levels": [np.nan]}, ValueError, "all of them finite"),
        ({"levels": []}, ValueError, "at least one depth"),
        ({"levels": 0}, ValueError, "at least one contour"),
        ({"levels": "many"}, TypeError, "a number of contours, or a list of depths"),
        ({"levels": 0.5}, TypeError, r"a list of depths such as \[0.1, 0.2\]"),
    ],
)
def test_misuse_is_refused_with_the_cure(arguments, error, message):
    with pytest.raises(error, match=message):
        plot_depth_contours(**{"X": ROWS, **arguments})


def test_no_global_state():
    plot_depth_contours(ROWS)
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or pyplot.get_fignums() == []
    assert not list(Path().glob("*depth*.png"))
