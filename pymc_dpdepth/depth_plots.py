"""Plots of a depth in the plane with the rows it is made of. They show raw rows and stay with the curator."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from pymc_dpdepth.depths import Depth, Halfspace, as_depth
from pymc_dpdepth.depths.base import as_rows
from pymc_dpdepth.record import Release

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["NOT_RELEASABLE", "plot_depth_contours"]

NOT_RELEASABLE = "no: drawn from raw rows, for the curator only"
_NOTE = "curator only, not releasable"
# The word of each format's metadata that may hold a free text; other formats have none.
_METADATA_WORDS = {"png": "releasable", "pdf": "Subject", "svg": "Description", "ps": "Creator", "eps": "Creator"}

_PLANE = 2
_LINES = 10  # contours by default
_MOST_EXACT = 1000  # rows: n^2 log n steps for polygons and the median, about a second; beyond it a grid is used
_GRID = 121  # points of the depth surface along each axis
_MARGIN = 0.08  # of the rows' range, around them
_SIZE, _RESOLUTION = (6.4, 5.2), 150  # inches; dots per inch
_COLORS, _LIGHTEST, _SHADES = "Blues", 0.2, 256  # the map's nearly white fifth is left out
_ROW_COLOR, _MEDIAN_COLOR, _RELEASE_COLOR, _NOTE_COLOR = "#333333", "#e08214", "#b3401f", "#b00020"


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
    from pymc_dpdepth.tables import read_table

    table = read_table(X, columns)
    rows = as_rows(table.rows)
    if rows.shape[1] != _PLANE or len(rows) == 0:
        raise ValueError(
            f"X must have two columns and at least one row for contours; got shape {rows.shape}. Choose two with "
            "columns=[...]."
        )
    depth = Halfspace(directions=None) if depth is None else as_depth(depth)
    asked = _asked(levels)
    marks = _released(release)
    axes = _new_axes() if ax is None else ax
    is_exact = isinstance(depth, Halfspace) and depth.directions is None and len(rows) <= _MOST_EXACT
    (_draw_regions if is_exact else _draw_surface)(axes, depth, rows, asked, marks)
    axes.scatter(*rows.T, s=_dot_area(len(rows)), color=_ROW_COLOR, alpha=0.6, linewidths=0, zorder=3, label="rows")
    _mark_median(axes, depth, rows)
    for label, point in marks:
        axes.plot(*point, "*", color=_RELEASE_COLOR, markersize=15, markeredgecolor="white", zorder=4, label=label)
    grid = "" if is_exact else ", on a grid"
    count = f"{len(rows):,} row{'s' if len(rows) > 1 else ''}"
    axes.set_title(f"{depth.name.replace('_', ' ')} depth of {count}{grid}", fontsize=11)
    axes.set_xlabel(table.columns[0], parse_math=False)
    axes.set_ylabel(table.columns[1], parse_math=False)
    axes.legend(loc="best", fontsize=8)
    axes.annotate(
        _NOTE,
        (1.0, 0.0),
        xycoords="axes fraction",
        xytext=(-4, 4),
        textcoords="offset points",
        ha="right",
        va="bottom",
        fontsize=8,
        color=_NOTE_COLOR,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.5},
        zorder=6,
    )
    return axes.figure


def _new_axes() -> Axes:
    """Return axes in a figure whose files say that they may not leave."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    class CuratorFigure(Figure):
        """A figure drawn from raw rows."""

        def savefig(self, fname: Any, *, metadata: dict[str, Any] | None = None, **options: Any) -> None:
            """Save the figure as matplotlib does, with a word in the metadata of formats that have room for it."""
            named = os.path.splitext(os.fspath(fname))[1][1:] if isinstance(fname, str | os.PathLike) else ""
            kind = (options.get("format") or named or rcParams["savefig.format"]).lower()
            if kind in _METADATA_WORDS:
                metadata = {**(metadata or {}), _METADATA_WORDS[kind]: NOT_RELEASABLE}
            super().savefig(fname, metadata=metadata, **{"dpi": _RESOLUTION, **options})

    return CuratorFigure(figsize=_SIZE, layout="constrained").add_subplot()


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


def _released(release: Release | None) -> list[tuple[str, np.ndarray]]:
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
    colors = _color_scale(axes, contours[-1][0] if contours else 1.0)
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


def _draw_surface(axes: Any, depth: Depth, rows: np.ndarray, asked: int | list[float], marks: Any) -> None:
    """Draw lines through the depths on a grid over the rows and what else is marked."""
    shown = np.vstack([rows, *(point for _, point in marks)])
    low, high = shown.min(axis=0), shown.max(axis=0)
    margin = np.where(high > low, _MARGIN * (high - low), 1.0)
    x, y = np.linspace(low - margin, high + margin, _GRID).T
    points = np.stack(np.meshgrid(x, y), axis=-1)
    values = depth.evaluate(points.reshape(-1, _PLANE), rows).reshape(points.shape[:2])
    bottom, top = values.min(), values.max()
    lines = np.linspace(bottom, top, asked + 2)[1:-1] if isinstance(asked, int) else asked
    colors = _color_scale(axes, top)
    if bottom < top:
        axes.pcolormesh(x, y, values, cmap=colors.cmap, norm=colors.norm, alpha=0.35, shading="nearest", linewidth=0)
        inside = [line for line in lines if bottom < line < top]
        if inside:
            axes.contour(x, y, values, levels=inside, cmap=colors.cmap, norm=colors.norm, linewidths=1.2)


def _color_scale(axes: Any, deepest: float) -> Any:
    """Add a color bar of depths from 0, and return its map from depths to colors."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    shades = ListedColormap(colormaps[_COLORS](np.linspace(_LIGHTEST, 1.0, _SHADES)))
    colors = ScalarMappable(Normalize(0.0, deepest if deepest > 0 else 1.0), shades)
    axes.figure.colorbar(colors, ax=axes, label="depth")
    return colors


def _mark_median(axes: Any, depth: Depth, rows: np.ndarray) -> None:
    """Mark the median, where the depth has one; that of exact halfspace depth takes long where rows are many."""
    if isinstance(depth, Halfspace) and depth.directions is None and len(rows) > _MOST_EXACT:
        return
    try:
        point = depth.median(rows)
    except TypeError:  # no median of this depth, or none for its directions
        return
    axes.plot(*point, "P", color=_MEDIAN_COLOR, markersize=7, markeredgecolor="white", zorder=5, label="median")


def _dot_area(n: int) -> float:
    """Return the area of a row's dot in square points, smaller where rows are many."""
    return max(3.0, 22.0 - 3.0 * math.log10(n) ** 2)
