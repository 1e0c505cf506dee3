"""Exact draws of one mechanism: which sampler there is, and its draws on the grid."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from pymc_dpdepth.depths.directional import DirectionalDepth
from pymc_dpdepth.mechanism import Mechanism
from pymc_dpdepth.priors import NotAProductPriorError, ProductPrior
from pymc_dpdepth.privacy.composition import basic_composition
from pymc_dpdepth.randomness import RandomBits
from pymc_dpdepth.samplers.boxes import BoxLaw
from pymc_dpdepth.samplers.cells import draw_prior_cells
from pymc_dpdepth.samplers.frames import AxisFrame, NoFrameError, RotatedFrame, find_frame
from pymc_dpdepth.samplers.segments import SegmentLaw
from pymc_dpdepth.samplers.weights import WeightBase

__all__ = ["CONCENTRATED", "EXACT_SAMPLERS", "ExactPlan", "NoExactSamplerError", "draw_prior", "plan_exact"]

EXACT_SAMPLERS = ("segments", "boxes", "products")
CONCENTRATED = "concentrated"


class NoExactSamplerError(ValueError):
    """There is no exact sampler for this prior, depth and direction set; the message says why."""


@dataclass(frozen=True, eq=False)
class ExactPlan:
    """An exact sampler of one mechanism, chosen from public settings alone.

    Attributes
    ----------
    sampler : {"segments", "boxes", "products", "concentrated"}
    settings : Mechanism
    frame : AxisFrame or RotatedFrame
    direction_epsilon : float or None
        Of each direction's own draw, for "concentrated".
    """

    sampler: str
    settings: Mechanism
    frame: AxisFrame | RotatedFrame
    direction_epsilon: float | None = None

    guarantee = "exact"

    @property
    def prior(self) -> ProductPrior:
        """The prior of the location."""
        return self.frame.prior

    @property
    def draw_epsilons(self) -> tuple[float, ...]:
        """Epsilons of the single exponential-mechanism draws that one draw of the plan consists of."""
        if self.sampler == CONCENTRATED:
            return (self.direction_epsilon,) * len(self.frame.active)
        return (self.settings.epsilon,)

    def draw(self, rows: np.ndarray, bits: RandomBits, draws: int) -> np.ndarray:
        """Draw locations.

        Parameters
        ----------
        rows : ndarray, shape (n, d)
            Private rows.
        bits : RandomBits
        draws : int

        Returns
        -------
        ndarray, shape (draws, d)
            Points of the data-independent grid.
        """
        floors = self.frame.floors()
        active = self.frame.active
        free = np.setdiff1d(np.arange(self.settings.d), active) if self.settings.n else np.arange(self.settings.d)
        cells = np.empty((draws, self.settings.d), dtype=np.int64)
        if self.settings.n:
            keys = self.frame.keys(rows)
            keys.sort(axis=1)
            cells[:, active] = self._law(keys, floors[active]).draw(bits, draws)
        if free.size:
            cells[:, free] = draw_prior_cells(floors[free], bits, draws)
        return self.frame.locations(cells)

    @functools.cached_property
    def base(self) -> WeightBase:
        """Base of the weights: that of one level for boxes, of one count of one direction otherwise.

        The exponent of the mechanism is beta = epsilon / (2 GS). The directions of a mean share it, and GS is worth
        `sensitivity_count` counts of each of them; a minimum moves by at most one count altogether. A concentrated
        release gives each direction an epsilon of its own.
        """
        univariate, directions = self.settings.depth.univariate, 1
        if self.sampler == "products":
            directions = len(self.frame.active)
        counts = directions * univariate.sensitivity_count(self.settings.n)
        return WeightBase.of_epsilon(self.draw_epsilons[0], counts)

    def describe(self) -> dict[str, Any]:
        """Return the public record of the mechanism and of what its draw spends."""
        record = self.settings.describe()
        share = self.base.realised_share if self.settings.n else 0.0
        if self.sampler == CONCENTRATED:
            record |= {"epsilon": basic_composition(self.draw_epsilons), "direction_epsilon": self.direction_epsilon}
        return record | {"realised_epsilon": share * record["epsilon"]}

    def _law(self, keys: np.ndarray, floors: np.ndarray) -> BoxLaw | SegmentLaw:
        if self.sampler == "boxes":
            return BoxLaw(keys, floors, self.base)
        return SegmentLaw(keys, floors, self.settings.depth.univariate.code, self.base)


def plan_exact(settings: Mechanism, prior: ProductPrior | NotAProductPriorError, sampler: str = "auto") -> ExactPlan:
    """Return the exact sampler of a mechanism.

    Parameters
    ----------
    settings : Mechanism
    prior : ProductPrior or NotAProductPriorError
        The location's prior, or why it is not a product.
    sampler : str
        "auto", or the one that must be used.

    Raises
    ------
    NoExactSamplerError
        If there is none, or if the one asked for does not fit.
    """
    depth = settings.depth
    if not isinstance(depth, DirectionalDepth):
        raise NoExactSamplerError(f"the depth {depth.name!r} is not made of univariate depths along directions")
    if depth.differentiable:
        raise NoExactSamplerError("a smoothed depth is not a step function; smoothing=None has exact draws")
    if depth.directions is None:
        raise NoExactSamplerError(f"the depth {depth.name!r} over all directions has no exact sampler")
    if isinstance(prior, NotAProductPriorError):
        raise NoExactSamplerError(str(prior))
    try:
        frame = find_frame(settings, prior)
    except NoFrameError as reason:
        raise NoExactSamplerError(str(reason)) from None
    one = len(frame.active) == 1
    fitting = "segments" if one else "boxes" if depth.aggregation == "min" else "products"
    if sampler not in ("auto", fitting):
        raise NoExactSamplerError(
            f"sampler={sampler!r} does not fit {depth.name!r} here; the exact sampler is {fitting!r}"
        )
    return ExactPlan(fitting, settings, frame)


def draw_prior(prior: ProductPrior, bits: RandomBits, draws: int) -> np.ndarray:
    """Draw from a product prior on the same grid, shape (draws, d)."""
    return prior.values(draw_prior_cells(prior.floors(), bits, draws))
