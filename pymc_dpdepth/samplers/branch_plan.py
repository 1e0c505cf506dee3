"""Exact draws of one mechanism by branch and bound: where it fits, its frame, and what it spends."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from pymc_dpdepth.mechanism import Mechanism, standardized
from pymc_dpdepth.normal_vector import NormalVector, read_normal_vector
from pymc_dpdepth.priors import NotAProductPriorError, ProductPrior
from pymc_dpdepth.randomness import RandomBits
from pymc_dpdepth.samplers.box_frames import NormalBoxFrame, ProductBoxFrame
from pymc_dpdepth.samplers.branch_and_bound import BranchAndBound
from pymc_dpdepth.samplers.cells import draw_prior_cells
from pymc_dpdepth.samplers.exact import NoExactSamplerError
from pymc_dpdepth.samplers.weights import WeightBase

__all__ = ["BRANCH_AND_BOUND", "BranchPlan", "plan_branch_and_bound"]

BRANCH_AND_BOUND = "branch_and_bound"
#: Dimensions in which branch and bound is taken without being asked for; the work grows fast with them.
MOST_DIMENSIONS = 5


@dataclass(frozen=True, eq=False)
class BranchPlan:
    """Branch and bound for one mechanism, chosen from public settings alone.

    Attributes
    ----------
    settings : Mechanism
    frame : ProductBoxFrame or NormalBoxFrame
    counted : bool
        Whether the depth is counted, so that the draw is exact to the bit.
    """

    settings: Mechanism
    frame: ProductBoxFrame | NormalBoxFrame
    counted: bool

    sampler = BRANCH_AND_BOUND

    @property
    def prior(self) -> ProductPrior | NormalVector:
        """The prior of the location."""
        return self.frame.prior

    @property
    def guarantee(self) -> str:
        """The level of a draw: to the bit where scores are counts and boxes surely hold their locations."""
        return "exact" if self.counted and self.prior.is_monotone else "float64"

    @property
    def draw_epsilons(self) -> tuple[float, ...]:
        """Epsilon of the one exponential-mechanism draw."""
        return (self.settings.epsilon,)

    def draw(self, rows: np.ndarray, bits: RandomBits, draws: int) -> np.ndarray:
        """Draw locations, shape (draws, d); the tree is kept between them.

        Raises
        ------
        WorkLimitError
            If the tree has reached its limit before a draw.
        """
        floors = self.frame.floors()
        if not self.settings.sensitivity:  # no row can matter
            return self.frame.locations(draw_prior_cells(floors, bits, draws))
        center, scale = np.asarray(self.settings.center), np.asarray(self.settings.scale)
        row_keys = self.frame.keys(rows)
        row_keys.sort(axis=1)
        tree = BranchAndBound(
            self.settings.depth.box_bound(standardized(rows, center, scale)),
            self.base,
            self.settings.beta,
            floors,
            lambda cells: standardized(self.frame.locations(cells), center, scale),
            lambda first, last: tuple(standardized(e, center, scale) for e in self.frame.enclose(first, last)),
            row_keys,
        )
        return self.frame.locations(tree.draw(bits, draws))

    @functools.cached_property
    def base(self) -> WeightBase | None:
        """Base of the weights of a counted depth."""
        if not self.counted:
            return None
        counts = self.settings.depth.box_bound(np.zeros((self.settings.n, self.settings.d))).sensitivity_count
        return WeightBase.of_epsilon(self.settings.epsilon, counts)

    def describe(self) -> dict[str, Any]:
        """Return the public record of the mechanism and of what its draw spends."""
        spends = bool(self.settings.sensitivity)
        share = self.base.realised_share if spends and self.counted else float(spends)
        return self.settings.describe() | {"realised_epsilon": share * self.settings.epsilon}


def plan_branch_and_bound(
    settings: Mechanism, prior: ProductPrior | NotAProductPriorError, location: Any
) -> BranchPlan:
    """Return the plan of branch and bound for a mechanism.

    Raises
    ------
    NoExactSamplerError
        If the depth has no bounds over boxes, or the prior is neither a product nor a multivariate normal.
    """
    try:
        counted = settings.depth.box_bound(np.zeros((0, settings.d))).sensitivity_count is not None
    except TypeError as reason:
        raise NoExactSamplerError(str(reason)) from None
    if isinstance(prior, ProductPrior):
        return BranchPlan(settings, ProductBoxFrame(prior), counted)
    try:
        return BranchPlan(settings, NormalBoxFrame(read_normal_vector(location, settings.d)), counted)
    except NotAProductPriorError:
        raise NoExactSamplerError(str(prior)) from None
