r"""Prior masses of convex polygons under two independent coordinates, and where in the polygons the mass lies.

A polygon is cut by the prior's medians into four parts, on each of which a coordinate is known by one tail probability
that is at most 1/2, so that neither a far tail nor a thin polygon is lost in a difference from 1. Between two
neighbouring vertices' x the part is bounded by one edge below and one above, and its mass is

    integral of g(v) dv,   g(v) = P(low edge at x(v) < Y < high edge at x(v)),   v the tail probability of x.

The integral is taken over *panels* by the Clenshaw-Curtis rule [1]_ of 17 points and compared with the rule of 9, which
has every second of them; panels are halved until the difference is small. Both edges are monotone and both ends of a
panel are nodes, so no step of g can hide between nodes. Under uniform priors g is linear on each panel, and the masses
are right to rounding.

References
----------
.. [1] L. N. Trefethen, Is Gauss quadrature better than Clenshaw-Curtis? SIAM Review 50 (2008) 67-87,
       doi:10.1137/060659831.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Self

import numpy as np

from pymc_dpdepth.families import CompiledFamily, Family
from pymc_dpdepth.grid import tail_edges

__all__ = ["QUARTERS", "TOLERANCE", "Axis", "Panels", "polygon_masses"]

#: Largest difference of the two rules over the panels of a polygon, relative to its mass. The finer rule, which is the
#: one used, errs by much less.
TOLERANCE = 1e-11
NODES = 16  # panels of the finer rule
# Rounding of one tail probability, relative, with room for the inverse that led to the point.
NOISE = 2.0**-50
# Where panels are halved no more, whatever the two rules say, and the errors tell: steps of g leave a few open panels
# for each edge, while rounding that looks like roughness (of points 1e-9 from the end 1 of a support, say) opens all.
MOST_HALVINGS, MOST_PANELS = 64, 2**14
# A crossing is computed in doubles from an end of its edge no farther from the median than this many interquartile
# ranges, so that it errs by 2^-33 of one at most; otherwise as a rational number.
FAR = 2.0**20
LARGEST_COORDINATE = 2.0**1000
# A region that passes far from the prior has its mass where one tail is small and the other is not yet smaller: halving
# tails themselves would come there too slowly.
OCTAVES, LEAST_TAIL = 2.0**4, 2.0**-1000


@dataclass(frozen=True, eq=False)
class Axis:
    """The prior of one coordinate, by its tails.

    Attributes
    ----------
    family : Family
    parameters : tuple of ndarray, each of shape (w,)
        Those of the block that the coordinate belongs to.
    column : int
        Of the coordinate in its block.
    floors : ndarray of int, shape (2,)
        Of the grid, on the lower and on the upper side.
    """

    family: Family
    parameters: tuple[np.ndarray, ...]
    column: int
    floors: np.ndarray

    def tail(self, x: np.ndarray, upper: bool) -> np.ndarray:
        """Return the lower or the upper tail probability at points, of any shape."""
        with np.errstate(all="ignore"):
            tail = self._apply(lambda values, *parameters: self.family.tails(values, *parameters)[upper], x)
        return np.clip(np.nan_to_num(tail, nan=0.0), 0.0, 0.5)

    def point(self, tail: np.ndarray, upper: bool) -> np.ndarray:
        """Return the points with these lower or upper tail probabilities."""
        with np.errstate(all="ignore"):
            return self._apply(self.family.from_upper if upper else self.family.from_lower, tail)

    def landmarks(self) -> tuple[float, float, float, float]:
        """Return the least point of the grid, the median, the greatest point, and the interquartile range."""
        _, _, far = tail_edges(self.floors, self.floors, self.floors)
        ends = []
        for upper in (False, True):
            outer, inner = self.point(np.array([0.0, far[int(upper)]]), upper)
            ends.append(float(np.clip(outer if np.isfinite(outer) else inner, -LARGEST_COORDINATE, LARGEST_COORDINATE)))
        quartiles = [float(self.point(np.array([1 / 4]), upper)[0]) for upper in (False, True)]
        return ends[0], float(self.point(np.array([0.5]), False)[0]), ends[1], quartiles[1] - quartiles[0]

    def _apply(self, function, x: np.ndarray) -> np.ndarray:
        flat = np.ascontiguousarray(x, dtype=np.float64).reshape(-1, 1)
        with warnings.catch_warnings():  # of SciPy, about points that the rows choose: it would tell of them
            warnings.simplefilter("ignore")
            return self._values(function, flat).reshape(np.shape(x))

    def _values(self, function, flat: np.ndarray) -> np.ndarray:
        if isinstance(self.family, CompiledFamily):  # compiled for all columns of its block
            flat = np.repeat(flat, len(self.parameters[0]) if self.parameters else 1, axis=1)
            return function(flat, *self.parameters)[:, self.column]
        one = (parameter[self.column : self.column + 1] for parameter in self.parameters)
        return function(flat, *one)


# Clipping. Vertices of all polygons stand one polygon after the other, anticlockwise, each with the two points that
# define the line of the edge to the next vertex: a crossing is computed from these, however often an edge has been cut.


@dataclass(frozen=True, eq=False)
class _Polygons:
    vertices: np.ndarray  # (v, 2)
    lines: np.ndarray  # (v, 2, 2)
    owners: np.ndarray  # (v,), ascending

    @classmethod
    def of(cls, polygons: list[np.ndarray]) -> Self:
        owners = np.repeat(np.arange(len(polygons)), [len(polygon) for polygon in polygons])
        vertices = np.concatenate([*polygons, np.empty((0, 2))])
        return cls(vertices, np.stack([vertices, vertices[_successors(owners)]], axis=1), owners)

    def clip(self, axis: int, cut: float, sign: int, far: float) -> Self:
        """Return the parts with sign * (coordinate - cut) >= 0."""
        coordinate = self.vertices[:, axis]
        side = sign * np.sign((coordinate > cut).astype(int) - (coordinate < cut))
        if (side >= 0).all():
            return self
        after = side[_successors(self.owners)]
        kept, crosses = side >= 0, side * after < 0
        counts = kept.astype(int) + crosses
        places = np.cumsum(counts) - counts
        total = int(counts.sum())
        made = _Polygons(np.empty((total, 2)), np.empty((total, 2, 2)), np.repeat(self.owners, counts))
        made.vertices[places[kept]], made.lines[places[kept]] = self.vertices[kept], self.lines[kept]
        along = np.zeros((2, 2))  # two points of the cut
        along[:, axis], along[1, 1 - axis] = cut, 1.0
        new = places[crosses] + kept[crosses]
        made.vertices[new] = _crossings(self.lines[crosses], axis, cut, far)
        made.lines[new] = np.where((side[crosses] > 0)[:, None, None], along, self.lines[crosses])
        # A vertex on the cut whose next one is beyond it opens an edge along the cut.
        opens = (side == 0) & (after < 0)
        made.lines[places[opens]] = along
        return made


def _successors(owners: np.ndarray) -> np.ndarray:
    """Return the index of the next vertex of each vertex's polygon."""
    successors = np.arange(1, len(owners) + 1)
    if len(owners):
        starts = np.flatnonzero(np.append(True, np.diff(owners) != 0))
        successors[np.append(starts[1:], len(owners)) - 1] = starts
    return successors


def _crossings(lines: np.ndarray, axis: int, cut: float, far: float) -> np.ndarray:
    """Return where lines (k, 2, 2) meet coordinate = cut, shape (k, 2)."""
    quartered = lines / 4  # no difference overflows
    distances = np.abs(quartered[:, :, axis] - cut / 4)
    nearer = np.argmin(distances, axis=1)
    rows = np.arange(len(lines))
    with np.errstate(all="ignore"):
        steps = quartered[:, 1] - quartered[:, 0]
        near = quartered[rows, nearer]
        crossing = 4 * (near[:, 1 - axis] + (cut / 4 - near[:, axis]) * (steps[:, 1 - axis] / steps[:, axis]))
    for i in np.flatnonzero((distances[rows, nearer] > far / 4) & (steps[:, 1 - axis] != 0)):
        (ax, ay), (bx, by) = ((Fraction(float(point[axis])), Fraction(float(point[1 - axis]))) for point in lines[i])
        crossing[i] = float(ay + (by - ay) * (Fraction(cut) - ax) / (bx - ax))
    points = np.empty((len(lines), 2))
    points[:, axis], points[:, 1 - axis] = cut, crossing
    return points


# Panels


@dataclass(frozen=True, eq=False)
class Panels:
    """Stretches of the first coordinate, each between one edge below and one above, on one side of both medians.

    Attributes
    ----------
    owners : ndarray of int, shape (p,)
        The polygon of each panel.
    start, stop : ndarray, shape (p,)
        Tail probabilities of the first coordinate, start < stop.
    edges : ndarray, shape (p, 2, 2, 2)
        The edges below and above, each from left to right.
    masses, highest : ndarray, shape (p,)
        Share of the polygon's mass in the panel, and the largest g at its nodes.
    """

    owners: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    edges: np.ndarray
    masses: np.ndarray
    highest: np.ndarray

    def __getitem__(self, index) -> Panels:
        """Return some of the panels."""
        return Panels(*(getattr(self, part.name)[index] for part in fields(self)))

    @staticmethod
    def join(parts: Iterable[Panels]) -> Panels:
        """Return the panels of all parts."""
        parts = list(parts)
        return Panels(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Panels)))

    def halves(self) -> Panels:
        """Return the lower and the upper halves; those of the logarithms where the panel spans several octaves."""
        middle = self.start + 0.5 * (self.stop - self.start)
        wide = self.stop > OCTAVES * self.start
        logarithmic = np.sqrt(np.maximum(self.start, LEAST_TAIL)) * np.sqrt(self.stop)
        middle = np.where(wide & (logarithmic < middle), logarithmic, middle)
        lower = Panels(self.owners, self.start, middle, self.edges, self.masses, self.highest)
        upper = Panels(self.owners, middle, self.stop, self.edges, self.masses, self.highest)
        return Panels.join([lower, upper])

    def slices(self, tails: np.ndarray, axes: tuple[Axis, Axis], sides: tuple[bool, bool]):
        """Return the stretch of the second coordinate at some points of the first.

        Parameters
        ----------
        tails : ndarray, shape (p, k)
            Of the first coordinate.
        axes, sides
            The two coordinates, and whether each lies above its median.

        Returns
        -------
        start, stop : ndarray, shape (p, k)
            Tail probabilities of the second coordinate, start <= stop.
        """
        x = axes[0].point(tails, sides[0])
        ends = []
        for edge in (self.edges[:, 0], self.edges[:, 1]):
            (left, y_left), (right, y_right) = np.moveaxis(edge, 0, -1)[..., None]
            with np.errstate(all="ignore"):
                share = np.clip((x - left) / (right - left), 0.0, 1.0)
                rest = np.clip((right - x) / (right - left), 0.0, 1.0)
            # From the nearer end, so that it is met exactly.
            rise = y_right - y_left
            ends.append(axes[1].tail(np.where(share <= rest, y_left + share * rise, y_right - rest * rise), sides[1]))
        start, stop = ends[::-1] if sides[1] else ends
        return np.minimum(start, stop), stop


def _slabs(polygons: _Polygons, axis: Axis, upper: bool) -> Panels:
    """Cut polygons at the first coordinates of their vertices."""
    vertices, owners = polygons.vertices, polygons.owners
    order = np.lexsort((vertices[:, 0], owners))
    x, owner = vertices[order, 0], owners[order]
    fresh = np.append(True, (np.diff(owner) != 0) | (np.diff(x) != 0))[: len(x)]
    ranks = np.empty(len(x), dtype=np.int64)
    ranks[order] = np.cumsum(fresh) - 1
    x, owner = x[fresh], owner[fresh]
    slabs = np.flatnonzero(owner[1:] == owner[:-1])
    after = _successors(owners)
    edges = np.empty((len(slabs), 2, 2, 2))
    for place, (first, last) in enumerate(((np.arange(len(ranks)), after), (after, np.arange(len(ranks))))):
        # Anticlockwise, edges below go to the right. An edge covers the ranks from its left end on.
        chosen = ranks[first] < ranks[last]
        first, last = first[chosen], last[chosen]
        by_rank = np.argsort(ranks[first], kind="stable")
        covering = by_rank[np.searchsorted(ranks[first][by_rank], slabs, side="right") - 1] if len(slabs) else by_rank
        edges[:, place, 0], edges[:, place, 1] = vertices[first[covering]], vertices[last[covering]]
    tails = axis.tail(x, upper)
    ends = np.stack([tails[slabs], tails[slabs + 1]])
    panels = Panels(owner[slabs], ends.min(axis=0), ends.max(axis=0), edges, np.zeros(len(slabs)), np.zeros(len(slabs)))
    return panels[panels.stop > panels.start]


def _clenshaw_curtis(count: int) -> np.ndarray:
    """Return the weights on [0, 1] of the nodes (1 - cos(pi k / count)) / 2, count even."""
    angles = np.pi * np.arange(count + 1) / count
    j = np.arange(1, count // 2 + 1)
    terms = np.where(j == count // 2, 1.0, 2.0) / (4.0 * j**2 - 1.0)
    weights = (1.0 - np.cos(2.0 * np.outer(angles, j)) @ terms) / count
    weights[[0, -1]] /= 2.0
    return weights


SHARES = (1.0 - np.cos(np.pi * np.arange(NODES + 1) / NODES)) / 2.0
FINE, COARSE = _clenshaw_curtis(NODES), _clenshaw_curtis(NODES // 2)

QUARTERS = ((False, False), (False, True), (True, False), (True, True))


def polygon_masses(
    polygons: list[np.ndarray], axes: tuple[Axis, Axis]
) -> tuple[np.ndarray, np.ndarray, dict[tuple[bool, bool], Panels]]:
    """Return the prior masses of convex polygons, and their panels.

    Parameters
    ----------
    polygons : list of ndarray, each of shape (v, 2)
        Vertices anticlockwise; points, segments and polygons without vertices have no mass.
    axes : tuple of Axis

    Returns
    -------
    log_masses : ndarray, shape (len(polygons),)
        Logarithms, -inf where there is no mass.
    errors : ndarray, shape (len(polygons),)
        Estimates of the relative errors of the masses, those of rounding left out.
    panels : dict
        Panels by whether the first and the second coordinate lie above the medians.
    """
    landmarks = [axis.landmarks() for axis in axes]
    whole = _Polygons.of(polygons)
    for j, (low, _, high, scale) in enumerate(landmarks):
        whole = whole.clip(j, low, 1, FAR * scale).clip(j, high, -1, FAR * scale)
    panels = {}
    for upper in (False, True):
        half = whole.clip(0, landmarks[0][1], 1 if upper else -1, FAR * landmarks[0][3])
        for above in (False, True):
            quarter = half.clip(1, landmarks[1][1], 1 if above else -1, FAR * landmarks[1][3])
            panels[upper, above] = _slabs(quarter, axes[0], upper)
    # Far in both tails a mass may be less than the least double: panels are measured in units of their polygon's.
    units = np.zeros((2, len(polygons)))
    for sides, part in panels.items():
        np.maximum.at(units[0], part.owners, part.stop)
        corners = axes[1].tail(part.edges[..., 1].reshape(-1, 4), sides[1])
        np.maximum.at(units[1], part.owners, corners.max(axis=1, initial=0.0))
    units[units == 0.0] = 1.0
    panels, masses, errors = _refine(panels, axes, units)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_masses = np.log(masses) + np.log(units).sum(axis=0)
        return log_masses, np.where(masses > 0, errors / masses, 0.0), panels


def _refine(panels: dict, axes: tuple[Axis, Axis], units: np.ndarray):
    """Halve panels until their masses are known; return them, and the polygons' masses and errors in their units."""
    count = units.shape[1]
    closed = {sides: [] for sides in QUARTERS}
    masses, errors = np.zeros(count), np.zeros(count)
    pieces = sum(np.bincount(part.owners, minlength=count) for part in panels.values())
    most = max(MOST_PANELS, 2 * int(np.sum(pieces)))
    for halving in range(MOST_HALVINGS + 1):
        measured = {sides: _measure(part, axes, sides, units) for sides, part in panels.items()}
        # What is there for certain: where g is steep a first estimate may be far above the mass that is found later.
        certain = ((p.owners, np.maximum(p.masses - error, 0.0)) for p, error, _ in measured.values())
        total = masses + sum(np.bincount(*pair, minlength=count) for pair in certain)
        allowed = TOLERANCE * total / np.maximum(pieces, 1)
        last = halving == MOST_HALVINGS or sum(len(part.owners) for part in panels.values()) > most
        panels = {}
        for sides, (part, error, noise) in measured.items():
            done = (error <= np.maximum(allowed[part.owners], noise)) | last
            closed[sides].append(part[done])
            masses += np.bincount(part.owners[done], part.masses[done], minlength=count)
            errors += np.bincount(part.owners[done], error[done], minlength=count)
            panels[sides] = part[~done].halves()
        if not any(len(part.owners) for part in panels.values()):
            break
    joined = {sides: Panels.join(parts) for sides, parts in closed.items()}
    return joined, masses, errors


def _measure(part: Panels, axes: tuple[Axis, Axis], sides: tuple[bool, bool], units: np.ndarray):
    """Return the panels with their masses, the differences of the two rules, and what rounding can make of these."""
    width = part.stop - part.start
    tails = part.start[:, None] + width[:, None] * SHARES
    start, stop = part.slices(tails, axes, sides)
    heights = stop - start
    scaled = heights / units[1][part.owners][:, None]
    size = width / units[0][part.owners]
    masses = scaled @ FINE * size
    error = np.abs(scaled[:, ::2] @ COARSE * size - masses)
    # A tail T of y is rounded by NOISE of itself, and a tail v of x by NOISE of itself, which changes T by |dT/dv| v:
    # integrals of T dv and of v |dT|. As lower sums, since both may fall by hundreds of orders of magnitude between two
    # nodes, and what is not noise must not pass for it.
    moves = np.abs(np.diff(start, axis=1)) + np.abs(np.diff(stop, axis=1))
    lower = np.minimum(stop[:, :-1], stop[:, 1:])
    noise = NOISE * (lower * np.diff(tails, axis=1) + moves * tails[:, :-1]).sum(axis=1)
    noise = noise / units[1][part.owners] / units[0][part.owners]
    made = Panels(part.owners, part.start, part.stop, part.edges, masses, heights.max(axis=1, initial=0.0))
    return made, error, noise
