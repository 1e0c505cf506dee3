r"""Draws for halfspace depth over all directions of the plane, from its nested regions: no tree and no bound.

The regions R_l = {D >= l/n} are nested convex polygons. With V_l the prior mass of R_l (V_0 = 1), the density
e^(epsilon n D / 2) * prior is a mixture of priors restricted to regions, since

    e^(epsilon k / 2) = 1 + sum_{l=1}^{k} (e^(epsilon l / 2) - e^(epsilon (l - 1) / 2)).

So level 0 is drawn with weight 1, level l with weight V_l (e^(epsilon l / 2) - e^(epsilon (l - 1) / 2)), and then the
point from the prior in the region.

What is exact and what is not ("float64"): the vertices are right to a rounding. Masses come from quadrature, whose
relative error is estimated to be below 1e-9 and was below 2e-11 against closed forms, beside the rounding of tail
probabilities, 2^-53 of each; so a region whose sides are s in these has a mass that is right to about 2^-50 / s.
Logarithms of weights are doubles, and the choice among them uses 53 random bits. In a region the panel is drawn by its
mass, the first coordinate by rejection from the prior in the panel and the second by inversion, which is the prior's
law in the region up to rounding. Points are then replaced by the number of their cell of the grid. Regions outwards of
the last one whose weight matters, which have less than 1e-20 of all weight together, are left out.

The law is the continuous one: a point or a segment has no mass, so that a value that many rows share, and the only
regions of rows on one line, are missed. Branch and bound draws cells of the grid, and finds them; it is the one to
trust where regions are hardly wider than cells, 2^-40 of a tail.

References
----------
.. [1] J. W. Tukey, Mathematics and the picturing of data, Proc. Int. Congress of Mathematicians 2 (1975) 523-531.
.. [2] F. McSherry and K. Talwar, Mechanism design via differential privacy, FOCS 2007, doi:10.1109/FOCS.2007.66.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pymc_dpdepth.depths.halfspace import Halfspace
from pymc_dpdepth.families import NormalFamily
from pymc_dpdepth.grid import tail_keys
from pymc_dpdepth.mechanism import Mechanism
from pymc_dpdepth.normal_vector import NormalVector, read_normal_vector
from pymc_dpdepth.priors import NotAProductPriorError, ProductPrior
from pymc_dpdepth.randomness import DISCARDED_BITS, RandomBits
from pymc_dpdepth.samplers.box_frames import NormalBoxFrame, ProductBoxFrame
from pymc_dpdepth.samplers.cells import draw_prior_cells
from pymc_dpdepth.samplers.exact import NoExactSamplerError
from pymc_dpdepth.samplers.polygon_masses import QUARTERS, Axis, Panels, polygon_masses
from pymc_dpdepth.samplers.weights import ROUNDOFF

__all__ = ["PLANAR", "PlanarLaw", "PlanarPlan", "level_log_weights", "plan_planar"]

PLANAR = "planar"
PLANE = 2
#: Rows at most: the lines through two of them take some 60 n^2 bytes.
MOST_ROWS = 10_000
#: Share of all weight that the levels left out may have together.
NEGLIGIBLE = 1e-20
LEVELS_AT_ONCE = 128
LEVEL_ZERO = 0.0  # logarithm of its weight
# Within a panel, g is compared with this much times its largest value at the 17 nodes. Panels are halved until the rule
# of 9 points is right to 1e-11 of the polygon's mass, so g is smooth there and comes nowhere near that height; where it
# did, on panels of less mass than that, it would be cut off.
ROOM = 1.5


def level_log_weights(levels: np.ndarray, log_masses: np.ndarray, unit: float) -> np.ndarray:
    """Return log(V_l (e^(unit l) - e^(unit (l - 1)))) for levels l >= 1.

    Parameters
    ----------
    levels : ndarray of int
    log_masses : ndarray
        log V_l.
    unit : float
        epsilon / 2.
    """
    return log_masses + unit * levels + math.log(-math.expm1(-unit))


class PlanarLaw:
    """The law of one table, and draws from it.

    Parameters
    ----------
    levels : ndarray of int, shape (k,)
        Ascending, >= 1.
    polygons : list of ndarray, each of shape (v, 2)
        The region of each level in coordinates that are independent under the prior.
    axes : tuple of Axis
        Their priors.
    unit : float
        epsilon / 2, the exponent of one level.

    Attributes
    ----------
    levels : ndarray of int
        Those that were not left out; ascending.
    log_masses, errors : ndarray
        log V_l and the estimated relative error of V_l, for these levels.
    log_weights : ndarray
        Of these levels; that of level 0 is 0.
    """

    def __init__(self, levels: np.ndarray, polygons: list[np.ndarray], axes: tuple[Axis, Axis], unit: float) -> None:
        self._axes = axes
        parts, total, stop = [], LEVEL_ZERO, len(levels)
        # From the deepest level outwards. Levels 0, ..., l have at most e^(unit l) of weight together, as V_l <= 1.
        while stop and unit * levels[stop - 1] > total + math.log(NEGLIGIBLE):
            start = max(0, stop - LEVELS_AT_ONCE)
            log_masses, errors, panels = polygon_masses(polygons[start:stop], axes)
            log_weights = level_log_weights(levels[start:stop], log_masses, unit)
            total = np.logaddexp.reduce(log_weights, initial=total)
            parts.insert(0, (start, log_masses, errors, log_weights, panels))
            stop = start
        self.levels = levels[stop:]
        self.log_masses, self.errors, self.log_weights = (
            np.concatenate([np.empty(0), *(part[i] for part in parts)]) for i in (1, 2, 3)
        )
        self._collect(stop, parts, total)

    def draw(self, floors: np.ndarray, bits: RandomBits, draws: int) -> np.ndarray:
        """Draw cells of the grid, shape (draws, 2); level 0 is the prior itself."""
        panel = np.searchsorted(self._steps, uniforms(bits, draws) * self._steps[-1], side="right")
        cells = np.empty((draws, PLANE), dtype=np.int64)
        outside = np.flatnonzero(panel == 0)
        cells[outside] = draw_prior_cells(floors, bits, len(outside))
        for sides, first, panels in self._parts:
            which = np.flatnonzero((panel > first) & (panel <= first + len(panels.owners)))
            tails = _draw_in(panels[panel[which] - first - 1], self._axes, sides, bits)
            for j in range(PLANE):
                ends = (1.0 - tails[:, j], tails[:, j]) if sides[j] else (tails[:, j], 1.0 - tails[:, j])
                cells[which, j] = tail_keys(*ends, *floors[j])
        return cells

    def _collect(self, left_out: int, parts: list, total: float) -> None:
        """Put all panels one after the other behind level 0, with the running sum of their weights."""
        weights, self._parts, first = [[math.exp(LEVEL_ZERO - total)]], [], 0
        for start, _, _, log_weights, panels in parts:
            for sides in QUARTERS:
                part = panels[sides]
                # Masses of panels are shares of their polygon's in one unit, whatever it is.
                sums = sum(np.bincount(p.owners, p.masses, minlength=len(log_weights)) for p in panels.values())
                shares = part.masses / np.where(sums > 0, sums, 1.0)[part.owners]
                weights.append(np.exp(log_weights - total)[part.owners] * shares)
                self._parts.append((sides, first, part))
                first += len(part.owners)
        self._steps = np.cumsum(np.concatenate(weights))


def _draw_in(panels: Panels, axes: tuple[Axis, Axis], sides: tuple[bool, bool], bits: RandomBits) -> np.ndarray:
    """Draw one point of each panel by prior mass; return its tail probabilities, shape (k, 2)."""
    tails = np.empty((len(panels.owners), PLANE))
    waiting = np.arange(len(tails))
    while len(waiting):
        there = panels[waiting]
        along, level, across = uniforms(bits, 3 * len(waiting)).reshape(3, -1)
        first = there.start + along * (there.stop - there.start)
        start, stop = (end[:, 0] for end in there.slices(first[:, None], axes, sides))
        taken = level * (ROOM * there.highest) < stop - start
        tails[waiting[taken], 0] = first[taken]
        tails[waiting[taken], 1] = (start + across * (stop - start))[taken]
        waiting = waiting[~taken]
    return tails


def uniforms(bits: RandomBits, count: int) -> np.ndarray:
    """Return uniform multiples of 2^-53 in [0, 1)."""
    return (bits.words(count) >> np.uint64(DISCARDED_BITS)).astype(np.float64) * ROUNDOFF


@dataclass(frozen=True, eq=False)
class PlanarPlan:
    """The planar sampler of one mechanism, chosen from public settings alone.

    Attributes
    ----------
    settings : Mechanism
    frame : ProductBoxFrame or NormalBoxFrame
    """

    settings: Mechanism
    frame: ProductBoxFrame | NormalBoxFrame

    sampler = PLANAR
    guarantee = "float64"

    @property
    def prior(self) -> ProductPrior | NormalVector:
        """The prior of the location."""
        return self.frame.prior

    @property
    def draw_epsilons(self) -> tuple[float, ...]:
        """Epsilon of the one exponential-mechanism draw."""
        return (self.settings.epsilon,)

    def draw(self, rows: np.ndarray, bits: RandomBits, draws: int) -> np.ndarray:
        """Draw locations, shape (draws, 2)."""
        cells = self.law(rows).draw(self.frame.floors(), bits, draws)
        return self.frame.locations(cells)

    def law(self, rows: np.ndarray) -> PlanarLaw:
        """Return the law of a table. Curator-side."""
        levels, polygons = np.empty(0, dtype=np.int64), []
        if len(rows):
            regions = Halfspace(directions=None).regions(rows)
            levels, polygons = np.array(regions.levels, dtype=np.int64), list(regions.vertices)
        return PlanarLaw(levels, *self._coordinates(polygons), self.settings.epsilon / 2)

    def _coordinates(self, polygons: list[np.ndarray]) -> tuple[list[np.ndarray], tuple[Axis, Axis]]:
        """Return polygons in coordinates that are independent under the prior, and the priors of these."""
        floors = self.frame.floors()
        if isinstance(self.prior, ProductPrior):
            places = [(block, j) for block in self.prior.blocks for j in range(block.stop - block.start)]
            axes = tuple(Axis(b.family, b.parameters, j, f) for (b, j), f in zip(places, floors, strict=True))
            return polygons, axes
        # z = L^-1 (theta - mean), in a unit, a power of two, in which no double overflows.
        inverse = np.linalg.inv(self.prior.factor)
        unit = 2.0 ** -max(0, 3 + math.ceil(math.log2(np.abs(inverse).max())))
        (p, _), (q, r) = inverse * (4 * unit)
        quartered = [polygon / 4 - self.prior.mean / 4 for polygon in polygons]
        mapped = [np.column_stack([x * p, x * q + y * r]) for x, y in (polygon.T for polygon in quartered)]
        axis = NormalFamily(), (np.zeros(1), np.full(1, unit)), 0
        return mapped, (Axis(*axis, floors[0]), Axis(*axis, floors[1]))

    def describe(self) -> dict[str, Any]:
        """Return the public record of the mechanism and of what its draw spends."""
        spent = self.settings.epsilon if self.settings.sensitivity else 0.0
        return self.settings.describe() | {"realised_epsilon": spent}


def plan_planar(settings: Mechanism, prior: ProductPrior | NotAProductPriorError, location: Any) -> PlanarPlan:
    """Return the plan of the planar sampler for a mechanism.

    Raises
    ------
    NoExactSamplerError
        If the depth is not halfspace over all directions of the plane, there are too many rows, or the prior is neither
        a product nor a multivariate normal.
    """
    if not isinstance(settings.depth, Halfspace) or settings.depth.directions is not None or settings.d != PLANE:
        raise NoExactSamplerError(
            f'sampler="{PLANAR}" draws halfspace depth over all directions of two columns, Halfspace(directions=None); '
            f"got the depth {settings.depth.name!r} of {settings.d} columns, or directions. "
            'sampler="auto" finds what fits'
        )
    if settings.n > MOST_ROWS:
        raise NoExactSamplerError(
            f'sampler="{PLANAR}" holds all lines through two rows, and takes up to {MOST_ROWS} rows; got {settings.n}. '
            'sampler="branch_and_bound" has no such limit'
        )
    if isinstance(prior, ProductPrior):
        return PlanarPlan(settings, ProductBoxFrame(prior))
    try:
        return PlanarPlan(settings, NormalBoxFrame(read_normal_vector(location, settings.d)))
    except NotAProductPriorError:
        raise NoExactSamplerError(str(prior)) from None
