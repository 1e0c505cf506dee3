"""Which exact sampler draws a mechanism: chosen from public settings alone."""

from __future__ import annotations

from typing import Any

from pymc_dpdepth.mechanism import Mechanism
from pymc_dpdepth.priors import NotAProductPriorError, ProductPrior
from pymc_dpdepth.samplers.branch_plan import BRANCH_AND_BOUND, MOST_DIMENSIONS, BranchPlan, plan_branch_and_bound
from pymc_dpdepth.samplers.exact import EXACT_SAMPLERS, ExactPlan, NoExactSamplerError, plan_exact
from pymc_dpdepth.samplers.planar import PLANAR, PlanarPlan, plan_planar

__all__ = ["EXACT_DRAWS", "plan_draws"]

#: Samplers that draw from the mechanism's law itself.
EXACT_DRAWS = (*EXACT_SAMPLERS, BRANCH_AND_BOUND, PLANAR)


def plan_draws(
    settings: Mechanism, prior: ProductPrior | NotAProductPriorError, location: Any, sampler: str = "auto"
) -> ExactPlan | BranchPlan | PlanarPlan:
    """Return the exact sampler of a mechanism.

    Parameters
    ----------
    settings : Mechanism
    prior : ProductPrior or NotAProductPriorError
        The location's prior, or why it is not a product.
    location : TensorVariable
        The location itself, whose prior may be a multivariate normal.
    sampler : str
        "auto" takes segments, boxes or products where they fit, and branch and bound in up to five dimensions
        otherwise; another word insists. "planar" must be named: where it fits, branch and bound draws exactly.

    Raises
    ------
    NoExactSamplerError
        With the reason.
    """
    if sampler == BRANCH_AND_BOUND:
        return plan_branch_and_bound(settings, prior, location)
    if sampler == PLANAR:
        return plan_planar(settings, prior, location)
    try:
        return plan_exact(settings, prior, sampler)
    except NoExactSamplerError as reason:
        if sampler != "auto":
            raise
        refusal = str(reason)
    try:
        plan = plan_branch_and_bound(settings, prior, location)
    except NoExactSamplerError as reason:
        raise NoExactSamplerError(f"{refusal}; branch and bound does not fit either: {reason}") from None
    if settings.d > MOST_DIMENSIONS:
        raise NoExactSamplerError(
            f"{refusal}; branch and bound is taken in up to {MOST_DIMENSIONS} dimensions, of which there are "
            f'{settings.d} (sampler="{BRANCH_AND_BOUND}" insists on it, and may end without a draw)'
        )
    return plan
