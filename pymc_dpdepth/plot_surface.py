"""The surface of a depth over the plane, solid or as filled contours. It shows raw rows and stays with the curator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pymc_dpdepth.depth_plots import (
    MEDIAN_COLOR,
    RELEASE_COLOR,
    ROW_COLOR,
    color_scale,
    depth_on_grid,
    depth_title,
    dot_area,
    median_point,
    read_plane,
    released_points,
)
from pymc_dpdepth.depths import Depth, Halfspace, as_depth
from pymc_dpdepth.mechanism import positive_integer
from pymc_dpdepth.plot_marks import RAW_ROWS, marked_figure, note_curator_side, stamp
from pymc_dpdepth.record import Release

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_depth_surface"]

KINDS = ("surface", "filled")
GRID = {"surface": 61, "filled": 121}  # points along each axis
LEVELS = 12
SIZE = (6.8, 5.6)  # inches
FLOOR = -0.7  # height of the floor with the rows, as a share of the largest depth
SEEN_FROM = {"elev": 28.0, "azim": -60.0}  # degrees
MARK = 7  # points


def plot_depth_surface(
    X: Any,
    *,
    depth: Depth | str | None = None,
    kind: str = "surface",
    levels: int = LEVELS,
    columns: Any = None,
    release: Release | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw a depth of a table of two columns as a surface, or as filled contours, with the rows. Not releasable.

    The depth is computed on a grid of 61 by 61 points ("surface") or 121 by 121 ("filled"); the steps of a step depth
    are as coarse as the grid. `plot_depth_contours` draws the regions of halfspace depth exactly.

    Parameters
    ----------
    X : array_like, DataFrame or path, shape (n, 2)
        The private rows, n >= 1, in any form that `private_median` takes.
    depth : Depth or str, optional
        An object or a name; by default halfspace depth over all directions. Rows are not standardised first, as a
        mechanism does where the depth depends on units.
    kind : {"surface", "filled"}
        In three dimensions, with contours and the rows on the floor; or filled contours with the rows on top.
    levels : int
        How many contours.
    columns : str, int or sequence of these, optional
        The two columns to draw, where X has more.
    release : Release, optional
        Released locations of two coordinates, in the order of the columns, are marked too.
    ax : matplotlib.axes.Axes, optional
        Where to draw, for "surface" with ``projection="3d"``; by default a new figure, in no window.

    Returns
    -------
    matplotlib.figure.Figure
        The figure of the axes, with `releasable` False; its pictures say so in their metadata.

    Raises
    ------
    ValueError
        If there are not two columns, no rows, or missing or infinite entries, or an argument is out of range.
    TypeError
        If an argument is of the wrong kind.

    Notes
    -----
    Not private: the picture shows the rows, and the surface is a function of them.

    Examples
    --------
    >>> import pymc_dpdepth as dpd
    >>> figure = dpd.plot_depth_surface([[0, 0], [4, 0], [0, 4], [1, 1]], depth="spatial", kind="filled")
    >>> figure.axes[0].get_title(), figure.releasable
    ('spatial depth of 4 rows, on a grid', False)
    """
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"kind: expected one of {KINDS}, got {kind!r}.")
    levels = positive_integer(levels, "levels")
    rows, names = read_plane(X, columns)
    depth = Halfspace(directions=None) if depth is None else as_depth(depth)
    marks = released_points(release)
    solid = kind == "surface"
    if ax is not None and solid != hasattr(ax, "zaxis"):
        needed = 'with projection="3d"' if solid else "in the plane"
        raise ValueError(f"ax: expected axes {needed} for kind={kind!r}.")
    if ax is None:
        ax = marked_figure(RAW_ROWS, figsize=SIZE).add_subplot(projection="3d" if solid else None)
    x, y, values = depth_on_grid(depth, rows, marks, GRID[kind])
    colors = color_scale(ax, values.max())
    (_draw_solid if solid else _draw_filled)(ax, x, y, values, levels, colors)
    floor = (_floor(values),) if solid else ()
    _draw_points(ax, depth, rows, marks, floor)
    ax.set_title(depth_title(depth, len(rows), on_grid=True), fontsize=11)
    ax.set_xlabel(names[0], parse_math=False)
    ax.set_ylabel(names[1], parse_math=False)
    ax.legend(loc="upper left" if solid else "best", fontsize=8)
    note_curator_side(ax)
    return stamp(ax, RAW_ROWS)


def _floor(values: np.ndarray) -> float:
    """Return the height at which the rows are drawn."""
    return FLOOR * (float(values.max()) or 1.0)


def _lines(values: np.ndarray, levels: int) -> np.ndarray:
    """Return equally spaced depths strictly between the least and the largest on the grid; none where all are equal."""
    bottom, top = values.min(), values.max()
    return np.linspace(bottom, top, levels + 2)[1:-1] if bottom < top else np.empty(0)


def _draw_solid(axes: Any, x: np.ndarray, y: np.ndarray, values: np.ndarray, levels: int, colors: Any) -> None:
    """Draw the surface, and its contours on the floor."""
    look = {"cmap": colors.cmap, "norm": colors.norm}
    # Where a depth is at its least all around the rows, a sheet would hide them.
    shown = np.where((values > values.min()) | (values.min() == values.max()), values, np.nan)
    axes.plot_surface(*np.meshgrid(x, y), shown, **look, rstride=1, cstride=1, linewidth=0, alpha=0.85)
    lines = _lines(values, levels)
    if lines.size:
        axes.contour(x, y, values, levels=lines, zdir="z", offset=_floor(values), **look, linewidths=0.9)
    axes.set_zlim(_floor(values), float(values.max()) or 1.0)
    axes.set_zticks([tick for tick in axes.get_zticks() if 0 <= tick <= values.max()])
    axes.set_zlabel("depth")
    axes.view_init(**SEEN_FROM)


def _draw_filled(axes: Any, x: np.ndarray, y: np.ndarray, values: np.ndarray, levels: int, colors: Any) -> None:
    """Draw filled contours and the lines between them."""
    lines = _lines(values, levels)
    if lines.size:
        edges = np.concatenate([[values.min()], lines, [values.max()]])
        axes.contourf(x, y, values, levels=edges, cmap=colors.cmap, norm=colors.norm)
        axes.contour(x, y, values, levels=lines, colors="white", linewidths=0.5, alpha=0.7)


def _draw_points(axes: Any, depth: Depth, rows: np.ndarray, marks: Any, floor: tuple[float, ...]) -> None:
    """Draw rows, median and released points; in three dimensions on the floor."""
    axes.scatter(
        *rows.T, *floor, s=dot_area(len(rows)), color=ROW_COLOR, alpha=0.6, linewidths=0, zorder=3, label="rows"
    )
    white = {"linestyle": "none", "markeredgecolor": "white"}
    median = median_point(depth, rows)
    if median is not None:
        _point(axes, median, floor, marker="P", color=MEDIAN_COLOR, markersize=MARK, zorder=5, label="median", **white)
    for label, point in marks:
        look = {"marker": "*", "color": RELEASE_COLOR, "markersize": 2 * MARK, "zorder": 4}
        _point(axes, point, floor, label=label, **look, **white)


def _point(axes: Any, point: np.ndarray, floor: tuple[float, ...], **look: Any) -> None:
    """Draw one point."""
    axes.plot(*([coordinate] for coordinate in (*point, *floor)), **look)
