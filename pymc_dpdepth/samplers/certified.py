r"""Draws with a fixed number of tries and a proved (epsilon, delta), for any depth that is bounded.

A try proposes a point and accepts it with a known probability; an accepted one has the exponential mechanism's law P.
All of N tries are made, the first accepted one is taken, and a draw of the prior Q if there is none. With q the
probability that none is accepted, the law is (1 - q) P + q Q. N is chosen from public quantities so that q is small for
every table, and is always used up: the work says nothing of the rows beyond what one evaluation of the depth does.

*From the prior.* theta ~ Q is accepted with probability a(theta) = exp(beta (D(theta) - osc)), osc the supremum of the
depth over all points and tables, so that a >= p0 = exp(-beta osc). The release is (epsilon, delta)-DP with

    delta = (1 - e^(epsilon/2) p0)^N,

less than q may be, and not (1 + e^epsilon) times it: for neighbours a_X <= e^(epsilon/2) a_Y everywhere, and the
density to Q, a S(E a) + q with S(p) = (1 - (1 - p)^N) / p, moves by more than a factor e^epsilon only where E a_X
exceeds e^(epsilon/2) p0, and then by no more than q_X beyond it (docs/privacy_guarantee.md). Counted depths are
accepted by exact powers of the rational base, so that only the tries that are missing cost delta.

*From a normal envelope* (`log_concave`): delta = e^epsilon q, computed in doubles.

References
----------
.. [1] J. von Neumann, Various techniques used in connection with random digits, National Bureau of Standards Applied
       Mathematics Series 12 (1951) 36-38.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from pymc_dpdepth.mechanism import Mechanism, standardized
from pymc_dpdepth.normal_vector import NormalVector, read_normal_vector
from pymc_dpdepth.priors import NotAProductPriorError, ProductPrior
from pymc_dpdepth.privacy.rounding import CONTEXT, GUARD, to_decimal, written
from pymc_dpdepth.randomness import RandomBits
from pymc_dpdepth.samplers.box_frames import NormalBoxFrame, ProductBoxFrame
from pymc_dpdepth.samplers.cells import draw_prior_cells
from pymc_dpdepth.samplers.choice import WORD_BITS, accept
from pymc_dpdepth.samplers.concentrated import Cost
from pymc_dpdepth.samplers.exact import NoExactSamplerError
from pymc_dpdepth.samplers.log_concave import LogConcaveTarget, NotLogConcaveError, middle_of_group, plan_log_concave
from pymc_dpdepth.samplers.weights import WeightBase

__all__ = ["CERTIFIED", "MOST_TRIES", "CertifiedPlan", "plan_certified", "tries_for"]

CERTIFIED = "certified"
#: Tries beyond which there is no certified draw. Each is an evaluation of the depth.
MOST_TRIES = 10**7
BATCH = 2**14
# Below this log acceptance probability a number of tries has more digits than `tries_for` carries.
LOWEST_LOG = -80
# Whole numbers up to here are right after a few roundings of doubles.
SURE_INTEGER = 2.0**48
# A depth in doubles may exceed its supremum by rounding, not by more.
SCORE_ROOM = 1e-9


@dataclass(frozen=True, eq=False)
class CertifiedPlan:
    """The certified sampler of one mechanism, chosen from public settings alone.

    Attributes
    ----------
    settings : Mechanism
    frame : ProductBoxFrame or NormalBoxFrame
    delta : float
    tries : int
        N; 0 where no row can matter.
    counts : int or None
        Counts by which one row moves the depth, for a counted depth.
    target : LogConcaveTarget or None
        Where proposals come from a normal envelope.
    """

    settings: Mechanism
    frame: ProductBoxFrame | NormalBoxFrame
    delta: float
    tries: int
    counts: int | None
    target: LogConcaveTarget | None

    sampler = CERTIFIED
    guarantee = CERTIFIED

    @property
    def prior(self) -> ProductPrior | NormalVector:
        """The prior of the location."""
        return self.frame.prior

    @property
    def cost(self) -> Cost:
        """What a person pays: (epsilon, delta). The law is not bounded-range, so no accountant may count it as that."""
        return Cost(self.settings.unit_epsilon, self.delta, None, ())

    def draw(self, rows: np.ndarray, bits: RandomBits, draws: int) -> np.ndarray:
        """Draw locations, shape (draws, d), by `tries` tries for each, whatever the rows are."""
        floors = self.frame.floors()
        # The prior's draw is made in any case.
        cells, missing = draw_prior_cells(floors, bits, draws), np.ones(draws, dtype=bool)
        if self.target is not None:
            cells = middle_of_group(cells)
        propose = self._proposals(rows) if self.tries else None
        total = draws * self.tries
        for start in range(0, total, BATCH):
            proposed, taken = propose(bits, min(BATCH, total - start))
            accepted = np.flatnonzero(taken)
            owners, first = np.unique((start + accepted) // max(self.tries, 1), return_index=True)
            new = missing[owners]
            cells[owners[new]] = proposed[accepted[first[new]]]
            missing[owners] = False
        return self.frame.locations(cells)

    @functools.cached_property
    def base(self) -> WeightBase:
        """Base of the weights of a counted depth."""
        return WeightBase.of(_unit(self.settings, self.counts))

    def describe(self) -> dict[str, Any]:
        """Return the public record of the mechanism, with the number of tries."""
        share = float(bool(self.tries))
        if self.counts and self.target is None and self.tries:
            share = self.base.realised_share
        proposals = "prior" if self.target is None else "normal envelope"
        record = {"realised_epsilon": share * self.settings.epsilon, "tries": self.tries, "proposals": proposals}
        return self.settings.describe() | record

    def _proposals(self, rows: np.ndarray) -> Callable:
        """Return the function (bits, count) -> cells and whether each is accepted."""
        center, scale = np.asarray(self.settings.center), np.asarray(self.settings.scale)
        units = standardized(rows, center, scale)
        if self.target is not None:
            prepared = self.settings.depth.prepare(units)
            envelope = self.target.envelope(prepared)
            return lambda bits, count: self.target.propose(envelope, prepared, bits, count)
        score, floors = self._scores(units), self.frame.floors()

        def propose(bits: RandomBits, count: int) -> tuple[np.ndarray, np.ndarray]:
            cells = draw_prior_cells(floors, bits, count)
            scores = score(standardized(self.frame.locations(cells), center, scale))
            return cells, self._accept(scores, bits)

        return propose

    def _scores(self, units: np.ndarray) -> Callable:
        """Return the function of points that gives their counts, or their depths where the depth is not counted."""
        if self.counts is None:
            return lambda points: self.settings.depth.evaluate(points, units)
        bound = self.settings.depth.box_bound(units)
        # least = 0: no score may stop early.
        return lambda points: bound.score(points, np.zeros(len(points), dtype=np.int64))

    def _accept(self, scores: np.ndarray, bits: RandomBits) -> np.ndarray:
        """Accept with probability b^(top - count), or exp(beta (depth - supremum))."""
        words = bits.words(len(scores))
        top = largest_score(self.settings, self.counts)
        if (scores > top * (1.0 + (0.0 if self.counts else SCORE_ROOM))).any():
            raise ValueError("A depth exceeds its supremum, so there is no certified draw: upper_bound is wrong.")
        if self.counts:
            return accept(top - scores, self.base, words, bits)
        return words * 2.0**-WORD_BITS < np.exp(self.settings.beta * np.minimum(scores - top, 0.0))


def largest_score(settings: Mechanism, counts: int | None) -> int | float:
    """Return the supremum of the depth over all points and tables; in counts for a counted depth, rounded upwards.

    `counts` of them are worth the sensitivity, so the depth u is worth counts * u / sensitivity, a whole number.
    """
    supremum = settings.depth.upper_bound(settings.n, settings.d)
    if not counts:
        return supremum
    nearest = counts * (supremum / settings.sensitivity)
    return round(nearest) if nearest < SURE_INTEGER else math.ceil(nearest * (1.0 + 1.0 / SURE_INTEGER))


def _unit(settings: Mechanism, counts: int) -> Fraction:
    """Return the exponent of one count."""
    return min(Fraction(settings.epsilon), written(settings.epsilon)) / (2 * counts)


def tries_for(log_acceptance: Decimal, log_miss: Decimal) -> int:
    """Return the smallest N with (1 - p)^N <= q, for ln p and ln q, rounded upwards."""
    with localcontext(CONTEXT):
        miss = 1 - log_acceptance.exp() * (1 - GUARD)
        if not 0 < miss < 1:
            return 1
        return max(1, math.ceil(log_miss / miss.ln() * (1 + GUARD)))


def plan_certified(
    settings: Mechanism, prior: ProductPrior | NotAProductPriorError, location: Any, delta: float
) -> CertifiedPlan:
    """Return the certified sampler of a mechanism: from the prior or from a normal envelope, whichever tries less.

    Parameters
    ----------
    settings : Mechanism
    prior : ProductPrior or NotAProductPriorError
        The location's prior, or why it is not a product.
    location : TensorVariable
        The location itself, whose prior may be a multivariate normal.
    delta : float

    Raises
    ------
    ValueError
        If delta is 0.
    NoExactSamplerError
        If the prior does not fit, or more than `MOST_TRIES` tries would be needed.
    """
    if not delta > 0:
        raise ValueError(
            'sampler="certified" ends after a fixed number of tries, which costs a delta; pass delta=1e-6 (below 1/n) '
            "beside epsilon."
        )
    frame = _frame(settings, prior, location)
    counts = _counts(settings)
    if not settings.sensitivity:  # no row can matter
        return CertifiedPlan(settings, frame, delta, 0, counts, None)
    if math.isinf(settings.depth.upper_bound(settings.n, settings.d)):
        raise NoExactSamplerError(
            f"the depth {settings.depth.name!r} has no known supremum, which a certified draw needs"
        )
    log_acceptance = _log_acceptance(settings, counts)
    log_delta = to_decimal(delta).ln(CONTEXT)
    plans = []
    if log_acceptance > LOWEST_LOG:
        plans.append(CertifiedPlan(settings, frame, delta, tries_for(log_acceptance, log_delta), counts, None))
    try:
        target = plan_log_concave(settings, frame.prior)
    except NotLogConcaveError as reason:
        why_not = str(reason)
    else:
        log_miss = log_delta - to_decimal(settings.unit_epsilon)
        tries = tries_for(Decimal(target.log_acceptance), log_miss)
        why_not = f"its tries are accepted with probability {math.exp(target.log_acceptance):.1e} at worst"
        plans.append(CertifiedPlan(settings, frame, delta, tries, counts, target))
    plan = min(plans, key=lambda plan: plan.tries, default=None)
    if plan is None or plan.tries > MOST_TRIES:
        raise NoExactSamplerError(_hopeless(settings, delta, float(-log_acceptance), why_not))
    return plan


def _frame(settings: Mechanism, prior, location) -> ProductBoxFrame | NormalBoxFrame:
    if isinstance(prior, ProductPrior):
        return ProductBoxFrame(prior)
    try:
        return NormalBoxFrame(read_normal_vector(location, settings.d))
    except NotAProductPriorError:
        raise NoExactSamplerError(str(prior)) from None


def _counts(settings: Mechanism) -> int | None:
    """Return how many counts one row moves the depth by, or None for a depth that is not counted."""
    try:
        return settings.depth.box_bound(np.zeros((settings.n, settings.d))).sensitivity_count
    except TypeError:  # no bounds over boxes: its values are doubles
        return None


def _log_acceptance(settings: Mechanism, counts: int | None) -> Decimal:
    """Return a lower bound of -beta * (supremum - sensitivity), the logarithm of e^(epsilon/2) p0; at most 0."""
    top = largest_score(settings, counts)
    if counts:
        worth = _unit(settings, counts) * (top - counts)
    else:
        worth = Fraction(settings.beta) * (Fraction(top) - Fraction(settings.sensitivity))
    return -to_decimal(max(worth, Fraction(0))) * (1 + GUARD)


def _hopeless(settings: Mechanism, delta: float, exponent: float, why_not: str) -> str:
    digits = (exponent + math.log(-math.log(delta))) / math.log(10)
    return (
        f"a certified draw from the prior would take about 10^{digits:.0f} tries to miss with probability {delta:g} at "
        f"most, and {MOST_TRIES} are allowed: with epsilon = {settings.epsilon:g} and n = {settings.n} only "
        f"exp(-{exponent:.3g}) of them are accepted at worst; nor does the log-concave sampler help: {why_not}. "
        "Take a smaller epsilon or fewer rows, a depth with a smaller range (IntegratedDual(smoothing=s) has 1/4, with "
        'a small s it is log-concave), or sampler="auto"'
    )
