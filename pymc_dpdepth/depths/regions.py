"""Depth regions of halfspace depth in the plane: nested convex polygons, and the deepest point.

The region of level k is {x : D(x; X) >= k / n}, D over all directions. Vertices are crossings of lines through rows,
and so rational numbers for the doubles given: `DepthRegions.exact_polygon` returns them.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

__all__ = ["DepthRegions", "centroid", "deepest_region", "depth_regions"]

# A vertex is computed with an error this much smaller than itself before it is rounded to a double; others are computed
# as rational numbers and rounded once.
_BEFORE_ROUNDING = 2.0**-60
_NO_LINE = -1


@dataclass(frozen=True, eq=False)
class DepthRegions:
    """Nested convex regions {x : D(x; X) >= k / n} of halfspace depth over all directions. Curator-side.

    Attributes
    ----------
    n : int
        Number of rows.
    levels : tuple of int
        The levels k, ascending.
    vertices : tuple of ndarray, shape (v, 2)
        The vertices of each level's region, anticlockwise, from the one with the least coordinates; two for a
        segment, one for a point, none where no point is that deep. They are within a unit in the last place.

    Examples
    --------
    >>> from pymc_dpdepth.depths import Halfspace
    >>> regions = Halfspace(directions=None).regions([[0, 0], [2, 0], [2, 2], [0, 2]])
    >>> regions.levels, regions.polygon(1).tolist(), regions.deepest.tolist()
    ((1, 2), [[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]], [[1.0, 1.0]])
    """

    n: int
    levels: tuple[int, ...] = field(repr=False)
    vertices: tuple[np.ndarray, ...] = field(repr=False)
    _exact: tuple[_Crossings, ...] = field(repr=False)

    def polygon(self, level: int) -> np.ndarray:
        """Return the vertices of {x : D(x; X) >= level / n}.

        Parameters
        ----------
        level : int
            One of `levels`, or a level deeper than all of them where the last one is empty or was not chosen.

        Returns
        -------
        ndarray, shape (v, 2)

        Raises
        ------
        ValueError
            If the level was not computed.
        """
        return self.vertices[self._index(level)]

    def exact_polygon(self, level: int) -> list[tuple[Fraction, Fraction]]:
        """Return the vertices of `polygon` as rational numbers.

        Parameters
        ----------
        level : int
            One of `levels`.
        """
        return self._exact[self._index(level)].vertices()

    @property
    def deepest(self) -> np.ndarray:
        """The vertices of the deepest region that is not empty, among the levels; shape (v, 2)."""
        return next((polygon for polygon in reversed(self.vertices) if len(polygon)), np.empty((0, 2)))

    @property
    def contours(self) -> tuple[tuple[float, np.ndarray], ...]:
        """The boundary of each region that is not empty: its depth k / n, and its vertices with the first repeated."""
        pairs = zip(self.levels, self.vertices, strict=True)
        return tuple((level / self.n, np.vstack([polygon, polygon[:1]])) for level, polygon in pairs if len(polygon))

    def _index(self, level: int) -> int:
        level = _level(level, self.n)
        if level not in self.levels:
            raise ValueError(
                f"level: expected one of the levels that were computed, got {level}. Ask for it with regions(X, "
                "levels=[...])."
            )
        return self.levels.index(level)


@dataclass(frozen=True, eq=False)
class _Crossings:
    """The vertices of one region: doubles where they are exact, else two directed lines (ax, ay, bx, by) that cross."""

    coords: np.ndarray = field(repr=False)
    lines: np.ndarray = field(repr=False)
    is_exact: np.ndarray = field(repr=False)

    def vertices(self) -> list[tuple[Fraction, Fraction]]:
        """Return the vertices as rational numbers."""
        return [
            _as_fractions(self.coords[i]) if self.is_exact[i] else _crossing(*self.lines[i])
            for i in range(len(self.coords))
        ]


class _Arrangement:
    """The distinct rows of a table and all lines through two of them."""

    def __init__(self, rows: np.ndarray, units: np.ndarray):
        from pymc_dpdepth.depths.row_lines import lines_through_rows

        self.n = len(rows)
        points, weights = np.unique(rows + 0.0, axis=0, return_counts=True)  # -0.0 becomes 0.0
        # With w rows at a point, a line through it that avoids the others has at most (n - w) / 2 of them on one side.
        self.deepest_level = (self.n + int(weights.max())) // 2
        ends, sides, keys = lines_through_rows(np.ascontiguousarray(points.T), weights, units)
        self.order = np.argsort(keys, kind="stable")
        self.on_one_line = len(ends) < 2
        self.ordered = np.repeat(points, weights, axis=0)  # along the line, where there is only one
        (left, bottom), (right, top) = points.min(axis=0), points.max(axis=0)
        corners = np.array([[left, bottom], [right, bottom], [right, top], [left, top]])
        m = len(points)
        self.points = np.ascontiguousarray(np.vstack([points, corners]).T)
        self.ends = np.vstack([ends, [[m, m + 1], [m + 1, m + 2], [m + 2, m + 3], [m + 3, m]]]).astype(np.int32)
        self.sides = sides
        self.edges = 2 * (len(ends) + np.arange(4))

    def regions(self, levels: list[int]) -> list[_Crossings]:
        """Return the regions of ascending levels."""
        if self.on_one_line:
            return [self._segment(level) for level in levels]
        from pymc_dpdepth.depths.regions_kernels import cut_levels

        slots = np.full(max(levels) + 1, -1, dtype=np.int64)
        slots[levels] = np.arange(len(levels))
        coords, lines, stops = cut_levels(self.points, self.ends, self.sides, self.order, slots, self.edges)
        rows_of_line = np.moveaxis(self.points[:, self.ends], 0, -1)  # line, end, coordinate
        start, made = 0, []
        for stop in stops:
            made.append(self._crossings(coords[start:stop], lines[start:stop], rows_of_line))
            start = stop
        return made

    def _crossings(self, coords: np.ndarray, lines: np.ndarray, rows_of_line: np.ndarray) -> _Crossings:
        corners, error = coords[:, :2].copy(), coords[:, 3]
        crossing = rows_of_line[lines >> 1].reshape(-1, 2, 4)  # a reversed line crosses another at the same point
        for i in np.flatnonzero(~(error <= _BEFORE_ROUNDING * np.abs(corners).min(axis=1))):
            corners[i] = [float(x) for x in _crossing(*crossing[i])]
        first = np.lexsort((corners[:, 1], corners[:, 0]))[:1]
        turn = np.roll(np.arange(len(corners)), -int(first[0])) if len(corners) else first
        return _Crossings(corners[turn], crossing[turn], error[turn] == 0.0)

    def _segment(self, level: int) -> _Crossings:
        """Return the rows of ranks level and n + 1 - level along the line, in their order."""
        low, high = self.ordered[level - 1], self.ordered[self.n - level]
        empty = 2 * level > self.n + 1 and (low != high).any()
        corners = np.empty((0, 2)) if empty else np.unique([low, high], axis=0)
        return _Crossings(corners, np.zeros((len(corners), 2, 4)), np.ones(len(corners), dtype=bool))


def depth_regions(rows: np.ndarray, units: np.ndarray, levels: Iterable[int] | None) -> DepthRegions:
    """Return the regions of the levels of a table (n, 2), n >= 1; None for all levels that are not empty."""
    n = len(rows)
    if levels is not None and not isinstance(levels, Iterable):
        raise TypeError(f"levels: expected a list of levels, got {type(levels).__name__}. Use levels=[k] for one.")
    chosen = None if levels is None else sorted({_level(level, n) for level in levels})
    if chosen is not None and not chosen:
        raise ValueError("levels: expected at least one level, got none. Leave it out for all levels.")
    arrangement = _Arrangement(rows, units)
    asked = list(range(1, arrangement.deepest_level + 1)) if chosen is None else chosen
    exact = arrangement.regions(asked)
    if chosen is None:
        exact = [region for region in exact if len(region.coords)]
    return DepthRegions(n, tuple(asked[: len(exact)]), tuple(region.coords for region in exact), tuple(exact))


def deepest_region(rows: np.ndarray, units: np.ndarray) -> list[tuple[Fraction, Fraction]]:
    """Return the vertices of the deepest region of a table (n, 2), n >= 1, as rational numbers."""
    arrangement = _Arrangement(rows, units)
    low, high = 1, arrangement.deepest_level  # a region that is not empty, and the last that may be
    deepest = arrangement.regions([low])[0]
    while low < high:
        middle = (low + high + 1) // 2
        region = arrangement.regions([middle])[0]
        if len(region.coords):
            low, deepest = middle, region
        else:
            high = middle - 1
    return deepest.vertices()


def centroid(polygon: list[tuple[Fraction, Fraction]]) -> tuple[Fraction, Fraction]:
    """Return the centroid of a convex polygon, the middle of a segment, or the point itself.

    The triangles from the first vertex p_0 have twice the areas a_i = (p_i - p_0) x (p_{i+1} - p_0), and the centroid
    is p_0 + sum a_i (p_i + p_{i+1} - 2 p_0) / (3 sum a_i).
    """
    x0, y0 = polygon[0]
    arms = [(x - x0, y - y0) for x, y in polygon[1:]]
    if len(arms) < 2:
        return x0 + sum(x for x, _ in arms) / Fraction(2), y0 + sum(y for _, y in arms) / Fraction(2)
    pairs = list(zip(arms, arms[1:], strict=False))
    areas = [a[0] * b[1] - a[1] * b[0] for a, b in pairs]
    total = 3 * sum(areas)
    return (
        x0 + sum(area * (a[0] + b[0]) for area, (a, b) in zip(areas, pairs, strict=True)) / total,
        y0 + sum(area * (a[1] + b[1]) for area, (a, b) in zip(areas, pairs, strict=True)) / total,
    )


def _level(level: Any, n: int) -> int:
    """Return a level as an integer; refuse other types and what is not in 1, ..., n."""
    try:
        number = operator.index(level)
    except TypeError:
        raise TypeError(f"level: expected an integer, a number of rows; got {type(level).__name__}.") from None
    if not 1 <= number <= n:
        raise ValueError(f"level: expected a number of rows between 1 and n = {n}, got {number}.")
    return number


def _as_fractions(point: np.ndarray) -> tuple[Fraction, Fraction]:
    return Fraction(float(point[0])), Fraction(float(point[1]))


def _crossing(one: np.ndarray, other: np.ndarray) -> tuple[Fraction, Fraction]:
    """Return where the lines through (ax, ay), (bx, by) of each cross."""
    ax, ay, bx, by = (Fraction(float(x)) for x in one)
    px, py, qx, qy = (Fraction(float(x)) for x in other)
    dx, dy, ex, ey = bx - ax, by - ay, qx - px, qy - py
    ratio = ((px - ax) * ey - (py - ay) * ex) / (dx * ey - dy * ex)
    return ax + ratio * dx, ay + ratio * dy
