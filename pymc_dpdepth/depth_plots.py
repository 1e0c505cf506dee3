"""Plots of a depth in the plane with the rows it is made of. They show raw rows and stay with the curator."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from pymc_dpdepth.depths import Depth, Halfspace, as_depth
from pymc_dpdepth.depths.base import as_rows
from pymc_dpdepth.plot_marks import RAW_ROWS, marked_figure, note_curator_side, stamp
from pymc_dpdepth.record import Release

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "color_scale",
    "depth_on_grid",
    "depth_title",
    "dot_area",
    "median_point",
    "plot_depth_contours",
    "read_plane",
    "released_points",
]

_PLANE = 2
_LINES = 10  # contours by default
_MOST_EXACT = 1000  # rows: n^2 log n steps for polygons and the median, about a second; beyond it a grid is used
_GRID = 121  # points of the depth surface along each axis
_MARGIN = 0.08  # of the rows' range, around them
_SIZE = (6.4, 5.2)  # inches
_COLORS, _LIGHTEST, _SHADES = "Blues", 0.2, 256  # the map's nearly white fifth is left out
ROW_COLOR, MEDIAN_COLOR, RELEASE_COLOR = "#333333", "#e08214", "#b3401f"


def plot_depth_contours(
    X: Any,
    *,
    depth: Depth | str | None = None,
    levels: int | Iterable[float] | None = None,
    columns: Any = None,
    release: Release | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the rows of a table of two columns, contours of their depth, and the median. Not releasable.

    For ``Halfspace(directions=None)`` and up to 1,000 rows the contours are the boundaries of the exact regions
    {x : D(x; X) >= level}. Otherwise they are lines through a surface of depths on a grid of 121 by 121 points, which
    for a step depth are as coarse as the grid; the title says so.

    Parameters
    ----------
    X : array_like, DataFrame or path, shape (n, 2)
        The private rows, n >= 1, in any form that `private_median` takes.
    depth : Depth or str, optional
        An object or a name; by default halfspace depth over all directions. Rows are not standardised first, as a
        mechanism does where the depth depends on units.
    levels : int or iterable of float, optional
        The depths to draw, or how many; by default ten. Exact regions that are empty are left out.
    columns : str, int or sequence of these, optional
        The two columns to draw, where X has more.
    release : Release, optional
        Released locations of two coordinates, in the order of the columns, are marked too.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure, in no window.

    Returns
    -------
    matplotlib.figure.Figure
        The figure of the axes. Where it was made here, a picture saved by ``savefig`` says in its metadata that it is
        not releasable ("releasable" of a PNG, "Subject" of a PDF, "Description" of an SVG); the axes say so anyway.

    Raises
    ------
    ValueError
        If there are not two columns, no rows, or missing or infinite entries, a level is out of range, or the release
        has no location of two coordinates.
    TypeError
        If an argument is of the wrong kind.

    Notes
    -----
    Not private: the picture shows the rows, and each contour, also alone, is a function of them.

    Examples
    --------
    >>> import pymc_dpdepth as dpd
    >>> figure = dpd.plot_depth_contours([[0, 0], [4, 0], [0, 4], [1, 1]], levels=[0.25, 0.5])
    >>> figure.axes[0].get_title()
    'halfspace depth of 4 rows'
    """
    rows, names = read_plane(X, columns)
    depth = Halfspace(directions=None) if depth is None else as_depth(depth)
    asked = _asked(levels)
    marks = released_points(release)
    axes = marked_figure(RAW_ROWS, figsize=_SIZE).add_subplot() if ax is None else ax
    is_exact = isinstance(depth, Halfspace) and depth.directions is None and len(rows) <= _MOST_EXACT
    (_draw_regions if is_exact else _draw_surface)(axes, depth, rows, asked, marks)
    axes.scatter(*rows.T, s=dot_area(len(rows)), color=ROW_COLOR, alpha=0.6, linewidths=0, zorder=3, label="rows")
    median = median_point(depth, rows)
    if median is not None:
        axes.plot(*median, "P", color=MEDIAN_COLOR, markersize=7, markeredgecolor="white", zorder=5, label="median")
    for label, point in marks:
        axes.plot(*point, "*", color=RELEASE_COLOR, markersize=15, markeredgecolor="white", zorder=4, label=label)
    axes.set_title(depth_title(depth, len(rows), on_grid=not is_exact), fontsize=11)
    axes.set_xlabel(names[0], parse_math=False)
    axes.set_ylabel(names[1], parse_math=False)
    axes.legend(loc="best", fontsize=8)
    note_curator_side(axes)
    return stamp(axes, RAW_ROWS)


def read_plane(X: Any, columns: Any) -> tuple[np.ndarray, tuple[str, str]]:
    """Return rows of two columns and the names of these, or refuse other tables."""
    from pymc_dpdepth.tables import read_table

    table = read_table(X, columns)
    rows = as_rows(table.rows)
    if rows.shape[1] != _PLANE or len(rows) == 0:
        raise ValueError(
            f"X must have two columns and at least one row for contours; got shape {rows.shape}. Choose two with "
            "columns=[...]."
        )
    return rows, table.columns


def depth_title(depth: Depth, n: int, *, on_grid: bool) -> str:
    """Return the title of a picture of a depth."""
    count = f"{n:,} row{'s' if n > 1 else ''}"
    return f"{depth.name.replace('_', ' ')} depth of {count}{', on a grid' if on_grid else ''}"


def _asked(levels: Any) -> int | list[float]:
    """Return how many levels to draw, or the levels, ascending."""
    if levels is None:
        return _LINES
    if isinstance(levels, bool | str | bytes):
        raise TypeError(f"levels: expected a number of contours, or a list of depths; got {type(levels).__name__}.")
    if isinstance(levels, int | np.integer):
        if levels < 1:
            raise ValueError(f"levels: expected at least one contour; got {levels}.")
        return int(levels)
    try:
        depths = sorted({float(level) for level in levels})
    except (TypeError, ValueError):
        raise TypeError("levels: expected a number of contours, or a list of depths such as [0.1, 0.2].") from None
    if not depths or not all(map(math.isfinite, depths)):
        raise ValueError("levels: expected at least one depth, all of them finite.")
    return depths


def released_points(release: Release | None) -> list[tuple[str, np.ndarray]]:
    """Return the label and the point of each released location in the plane."""
    if release is None:
        return []
    if not isinstance(release, Release):
        raise TypeError(f"release: expected a Release, got {type(release).__name__}; make one with dpd.release.")
    found = {name: array.values for name, array in release.locations.items() if array.size == _PLANE}
    if not found:
        raise ValueError("release: expected a location of two coordinates, got none. Leave it out.")
    return [("released" if len(found) == 1 else f"released: {name}", point) for name, point in found.items()]


def _draw_regions(axes: Any, depth: Halfspace, rows: np.ndarray, asked: int | list[float], _: Any) -> None:
    """Draw the exact regions, each filled over those that hold it."""
    n = len(rows)
    if isinstance(asked, int):
        # Without ties no region is deeper than n / 2, rounded up; the deepest is at least a third of n deep.
        counts = {round(count) for count in np.linspace(1, (n + 1) // 2, asked)}
    else:
        if not 0.0 < asked[0] <= asked[-1] <= 1.0:
            raise ValueError("levels: expected halfspace depths above 0 and at most 1.")
        counts = {_count(level, n) for level in asked}
    contours = depth.regions(rows, sorted(counts)).contours
    colors = color_scale(axes, contours[-1][0] if contours else 1.0)
    for level, corners in contours:
        color = colors.to_rgba(level)
        axes.fill(*corners.T, facecolor=color, alpha=0.35, linewidth=0)
        axes.plot(*corners.T, color=color, linewidth=1.2, marker="o" if len(corners) <= _PLANE else None, markersize=4)


def _count(level: float, n: int) -> int:
    """Return the smallest k with k / n >= level, as the depth itself is divided."""
    k = min(max(math.ceil(level * n), 1), n)
    while k > 1 and (k - 1) / n >= level:
        k -= 1
    return k if k / n >= level else k + 1


def depth_on_grid(depth: Depth, rows: np.ndarray, marks: Any, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return depths (count, count) at the points (x[j], y[i]) of a grid over the rows and what else is marked."""
    shown = np.vstack([rows, *(point for _, point in marks)])
    low, high = shown.min(axis=0), shown.max(axis=0)
    margin = np.where(high > low, _MARGIN * (high - low), 1.0)
    x, y = np.linspace(low - margin, high + margin, count).T
    points = np.stack(np.meshgrid(x, y), axis=-1)
    return x, y, depth.evaluate(points.reshape(-1, _PLANE), rows).reshape(points.shape[:2])


def _draw_surface(axes: Any, depth: Depth, rows: np.ndarray, asked: int | list[float], marks: Any) -> None:
    """Draw lines through the depths on a grid over the rows and what else is marked."""
    x, y, values = depth_on_grid(depth, rows, marks, _GRID)
    bottom, top = values.min(), values.max()
    lines = np.linspace(bottom, top, asked + 2)[1:-1] if isinstance(asked, int) else asked
    colors = color_scale(axes, top)
    if bottom < top:
        axes.pcolormesh(x, y, values, cmap=colors.cmap, norm=colors.norm, alpha=0.35, shading="nearest", linewidth=0)
        inside = [line for line in lines if bottom < line < top]
        if inside:
            axes.contour(x, y, values, levels=inside, cmap=colors.cmap, norm=colors.norm, linewidths=1.2)


def color_scale(axes: Any, deepest: float) -> Any:
    """Add a color bar of depths from 0, and return its map from depths to colors."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    shades = ListedColormap(colormaps[_COLORS](np.linspace(_LIGHTEST, 1.0, _SHADES)))
    colors = ScalarMappable(Normalize(0.0, deepest if deepest > 0 else 1.0), shades)
    axes.figure.colorbar(colors, ax=axes, label="depth")
    return colors


def median_point(depth: Depth, rows: np.ndarray) -> np.ndarray | None:
    """Return the median, where the depth has one; that of exact halfspace depth takes long where rows are many."""
    if isinstance(depth, Halfspace) and depth.directions is None and len(rows) > _MOST_EXACT:
        return None
    try:
        return depth.median(rows)
    except TypeError:  # no median of this depth, or none for its directions
        return None


def dot_area(n: int) -> float:
    """Return the area of a row's dot in square points, smaller where rows are many."""
    return max(3.0, 22.0 - 3.0 * math.log10(n) ** 2)
