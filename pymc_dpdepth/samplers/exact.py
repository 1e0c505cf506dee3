"""Exact draws of one mechanism: which sampler there is, and its draws on the grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pymc_dpdepth.depths.directional import DirectionalDepth
from pymc_dpdepth.mechanism import Mechanism
from pymc_dpdepth.priors import NotAProductPriorError, ProductPrior
from pymc_dpdepth.randomness import RandomBits
from pymc_dpdepth.samplers.frames import AxisFrame, NoFrameError, RotatedFrame, find_frame

__all__ = ["EXACT_SAMPLERS", "ExactPlan", "NoExactSamplerError", "draw_prior", "plan_exact"]

EXACT_SAMPLERS = ("segments", "boxes", "products")


class NoExactSamplerError(ValueError):
    """There is no exact sampler for this prior, depth and direction set; the message says why."""


@dataclass(frozen=True, eq=False)
class ExactPlan:
    """An exact sampler of one mechanism, chosen from public settings alone.

    Attributes
    ----------
    sampler : {"segments", "boxes", "products"}
    settings : Mechanism
    frame : AxisFrame or RotatedFrame
    """

    sampler: str
    settings: Mechanism
    frame: AxisFrame | RotatedFrame

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
            cells[:, free] = _draw_cells(floors[free], bits, draws)
        return self.frame.locations(cells)

    def _law(self, keys: np.ndarray, floors: np.ndarray):
        from pymc_dpdepth.samplers.boxes import BoxLaw
        from pymc_dpdepth.samplers.segments import SegmentLaw

        if self.sampler == "boxes":
            return BoxLaw(keys, floors, self.settings.epsilon)
        univariate = self.settings.depth.univariate
        # beta * D = sum over M directions of beta / (M * denominator) * count
        unit = self.settings.beta / (len(keys) * univariate.denominator(self.settings.n))
        return SegmentLaw(keys, floors, univariate.code, unit)


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
    return prior.values(_draw_cells(prior.floors(), bits, draws))


def _draw_cells(floors: np.ndarray, bits: RandomBits, draws: int) -> np.ndarray:
    """Draw cells by prior mass, shape (draws, len(floors))."""
    from pymc_dpdepth.grid import LAST_KEY, draw_keys

    first = np.zeros((draws, len(floors)), dtype=np.int64)
    return draw_keys(first, first + LAST_KEY, floors, bits.uniforms((2, *first.shape)))
