r"""Concentrated release: one exact draw for each direction, composed in zero-concentrated DP.

The joint mechanism spends one epsilon on all M directions at once, so each of them has to do with about epsilon / M.
Independent draws at epsilon_1 each are M exponential mechanisms, each of them bounded-range, and cost

    rho = M (k - 1 - ln k),    k = epsilon_1 / (e^epsilon_1 - 1),

about M epsilon_1^2 / 8 (`privacy.composition.bounded_range_rho`). For a given rho, epsilon_1 falls with sqrt(M) where
the joint draw's share falls with M. Each draw is the exact one-dimensional one, so the guarantee stays exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from pymc_dpdepth.depths.base import positive_number
from pymc_dpdepth.mechanism import LARGEST_EPSILON, SMALLEST_EPSILON, Mechanism
from pymc_dpdepth.priors import NotAProductPriorError, ProductPrior
from pymc_dpdepth.privacy.composition import (
    basic_composition,
    bounded_range_rho,
    epsilon_of_rho,
    rho_of_budget,
    rho_to_epsilon,
)
from pymc_dpdepth.privacy.rounding import float_above, probability, written
from pymc_dpdepth.samplers.exact import CONCENTRATED, ExactPlan, plan_exact

__all__ = ["AskedBudget", "Cost", "cost_of", "plan_concentrated", "prefers_concentrated", "read_budget"]

# Below this ratio of summed epsilons the joint draw errs no more (benchmarks/bench_concentrated.py): it takes one
# minimum over the directions where the separate draws are independent.
LEAST_GAIN = 1.5


@dataclass(frozen=True)
class AskedBudget:
    """What a caller allows one release to cost, for neighbours that differ in one row.

    Attributes
    ----------
    joint_epsilon : float
        Epsilon of one joint draw of that cost.
    rho : float or None
        Largest zCDP cost of a concentrated release; None where only pure epsilon is allowed.
    epsilon, delta : float or None, float
        As asked; epsilon is None where rho was asked for.
    """

    joint_epsilon: float
    rho: float | None
    epsilon: float | None
    delta: float


@dataclass(frozen=True)
class Cost:
    """What a release costs a person: (epsilon, delta), for a concentrated one rho too, and the draws it consists of."""

    epsilon: float
    delta: float
    rho: float | None
    bounded_range: tuple[float, ...]


def read_budget(epsilon, delta, rho) -> AskedBudget:
    """Check epsilon, delta and rho as `private_median` takes them."""
    if (epsilon is None) == (rho is None):
        raise ValueError(
            "epsilon, rho: expected one of them, epsilon=1.0 (with delta=1e-6 or not) or rho=0.1, got "
            f"{'both' if rho is not None else 'neither'}."
        )
    delta = float(probability(delta, zero=True))
    if rho is not None:
        if delta:
            raise ValueError("delta: goes with epsilon; zero-concentrated DP (rho) has none. Leave one of them out.")
        rho = positive_number(rho, "rho")
        joint = epsilon_of_rho(rho)
        if not SMALLEST_EPSILON <= joint <= LARGEST_EPSILON:  # an error about epsilon would not say what to change
            raise ValueError(
                f"rho: expected a cost of a draw with epsilon between 2^-256 and 2^256, got rho={rho!r}. Useful values "
                "are 1e-5 to 100."
            )
        return AskedBudget(joint, rho, None, 0.0)
    epsilon = positive_number(epsilon, "epsilon")
    return AskedBudget(epsilon, rho_of_budget(epsilon, delta) if delta else None, epsilon, delta)


def plan_concentrated(
    settings: Mechanism, prior: ProductPrior | NotAProductPriorError, rho: float, epsilon: float | None = None
) -> ExactPlan:
    """Return the concentrated plan of a mechanism's depth, directions and prior at a cost of rho.

    Where a pure epsilon is allowed as well, M draws at epsilon / M cost no more; with few directions that is more.

    Raises
    ------
    NoExactSamplerError
        If there is no frame in which prior and directions are products.
    """
    joint = plan_exact(settings, prior)
    directions = len(joint.frame.active)
    each = epsilon_of_rho(rho, directions)
    if epsilon is not None:
        share = epsilon / directions
        while directions * written(share) > written(epsilon):
            share = math.nextafter(share, 0.0)
        each = max(each, share)
    return replace(joint, sampler=CONCENTRATED, direction_epsilon=each)


def prefers_concentrated(joint: ExactPlan, concentrated: ExactPlan) -> bool:
    """Whether the concentrated plan is expected to err less: a rule of the number of directions and the budget alone.

    The rows that one direction of the joint draw is off are about those of a one-dimensional draw at epsilon / M.
    """
    return sum(concentrated.draw_epsilons) > LEAST_GAIN * joint.settings.epsilon and len(joint.frame.active) > 1


def cost_of(plan: ExactPlan, budget: AskedBudget) -> Cost:
    """Return what a person with `max_rows_per_unit` rows pays for one draw.

    m rows are m steps of one row each, and the ranges of the log ratio add up: a draw at epsilon is bounded-range at m
    epsilon, too.
    """
    rows = plan.settings.max_rows_per_unit
    draws = tuple(float_above(rows * written(epsilon)) for epsilon in plan.draw_epsilons)
    pure = basic_composition(draws)
    if plan.sampler != CONCENTRATED:
        # One joint draw: pure, whatever delta was allowed.
        return Cost(pure, 0.0, bounded_range_rho(pure) if budget.epsilon is None else None, draws)
    rho = float_above(len(draws) * written(bounded_range_rho(draws[0])))
    if budget.epsilon is None:
        return Cost(pure, 0.0, rho, draws)
    # For one row the conversion cannot exceed what was asked for: rho was chosen so.
    epsilon = budget.epsilon if rows == 1 else min(rho_to_epsilon(rho, budget.delta), pure)
    return Cost(epsilon, budget.delta, rho, draws)
