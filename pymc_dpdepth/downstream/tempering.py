r"""Sequential Monte Carlo over a few parameters, with a cheap stand-in first and unbiased estimates last.

Particles go from the prior to prior * S, S the stand-in of the likelihood, by tempering: each stage takes as much of
log S as leaves an effective sample of one half, resamples, and moves by random-walk Metropolis steps. Then each
particle gets an unbiased estimate of the likelihood, is weighted by estimate / S, resampled, and moved by pseudo-
marginal Metropolis steps, in which a proposal comes with an estimate of its own. The law of the particles so
approaches the posterior itself as their number grows, whatever the number of tables in an estimate and however rough
the stand-in.

References
----------
.. [1] C. Andrieu and G. O. Roberts, The pseudo-marginal approach for efficient Monte Carlo computations, Annals of
       Statistics 37 (2009) 697-725, doi:10.1214/07-AOS574.
.. [2] P. Del Moral, A. Doucet and A. Jasra, Sequential Monte Carlo samplers, Journal of the Royal Statistical Society B
       68 (2006) 411-436, doi:10.1111/j.1467-9868.2006.00553.x.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Result", "sample"]

EFFECTIVE_SHARE = 0.5
#: Prior draws for each particle, of which the first stage takes its particles.
POOL = 10
# This share of the proposals is narrower by a factor drawn log-uniformly down to 10^-3. Where the release may come from
# the mechanism's prior, the likelihood has a plateau around a narrow peak, which steps of one width would not climb.
LOCAL_SHARE, DECADES = 0.5, 3.0
# Steps of a stage: enough that a particle stays where it was with at most this probability, within limits.
STAYS, FEWEST_STEPS, MOST_STEPS = 0.1, 4, 15
ACCEPTANCE = 0.3  # aimed at; the optimum is 0.44 in one dimension and falls to 0.234
LARGEST_STAGES = 200
BISECTIONS = 60
Log = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Result:
    """Particles and how they got there.

    Attributes
    ----------
    places : ndarray, shape (P, size)
        Equally weighted.
    stages : int
    effective_share : float
        Effective sample over P when the stand-in gave way to the estimates.
    acceptance : float
        Of the pseudo-marginal steps.
    ancestors : ndarray of int, shape (P,)
        The draw of the prior that each particle goes back to.
    """

    places: np.ndarray
    stages: int
    effective_share: float
    acceptance: float
    ancestors: np.ndarray


def sample(
    start: np.ndarray, log_prior: Log, stand_in: Log, estimate: Log, generator: Any, particles: int | None = None
) -> Result:
    """Return particles of prior * likelihood.

    Parameters
    ----------
    start : ndarray, shape (K, size)
        Draws of the prior, K of them; several for each particle find a narrow peak.
    log_prior, stand_in, estimate : callable
        From places (P, size) to logs (P,); `estimate` is random, and its exponential is unbiased up to a constant.
    generator : NumPy Generator
    particles : int, optional
        P; by default K / POOL.

    Raises
    ------
    ValueError
        If no draw of the prior has a likelihood above 0.
    """
    places, priors, logs = start, log_prior(start), stand_in(start)
    if not np.isfinite(logs).any():
        raise ValueError(
            "No draw of the population's prior could have given the release. Check the units and the priors of the "
            "population model."
        )
    particles = particles or max(len(start) // POOL, 2)
    walk = _Walk(generator, places.shape[1])
    power, stages, ancestors = 0.0, 0, np.arange(len(start))
    while power < 1.0:
        if stages == LARGEST_STAGES:
            raise ValueError(f"The posterior was not reached in {stages} stages; narrow the population's prior.")
        step = _largest_step(logs, 1.0 - power, EFFECTIVE_SHARE * particles / len(logs))
        power, stages = min(power + step, 1.0), stages + 1
        chosen = _resampled(step * logs, generator, particles)
        places, priors, logs, ancestors = places[chosen], priors[chosen], logs[chosen], ancestors[chosen]
        places, priors, logs, _ = walk.stage(places, priors, logs, log_prior, stand_in, power, MOST_STEPS)
    estimates = estimate(places)
    ratio = estimates - logs
    chosen, share = _resampled(ratio, generator, particles), _effective_share(ratio)
    # The weights have done the correction already; the steps only part what was resampled more than once.
    most = FEWEST_STEPS + math.ceil((1 - share) * MOST_STEPS)
    places, _, _, acceptance = walk.stage(
        places[chosen], priors[chosen], estimates[chosen], log_prior, estimate, 1.0, most
    )
    return Result(places, stages, share, acceptance, ancestors[chosen])


class _Walk:
    """Random-walk Metropolis steps of all particles, whose width adapts between steps."""

    def __init__(self, generator: Any, size: int):
        self.generator = generator
        self.scale = 2.38 / math.sqrt(size)  # Roberts, Gelman and Gilks 1997, for a normal target

    def stage(self, places, priors, logs, log_prior: Log, log_target: Log, power: float, most: int):
        """Return places, priors, logs and the share of accepted proposals after a stage's steps."""
        count, size = places.shape
        covariance = np.cov(places, rowvar=False).reshape(size, size)
        spread = np.diag(covariance)
        factor = np.linalg.cholesky(covariance + np.diag(1e-9 * spread + 1e-300))
        taken, accepted, steps = 0, 0.0, FEWEST_STEPS
        while taken < steps:
            local = self.generator.random(count) < LOCAL_SHARE
            widths = self.scale * np.where(local, 10.0 ** (-DECADES * self.generator.random(count)), 1.0)
            proposed = places + widths[:, None] * (self.generator.standard_normal((count, size)) @ factor.T)
            new_priors = log_prior(proposed)
            new_logs = np.full(count, -np.inf)
            possible = np.isfinite(new_priors)
            new_logs[possible] = log_target(proposed[possible])
            with np.errstate(invalid="ignore"):
                gain = new_priors - priors + power * (new_logs - logs)
            moved = np.log(self.generator.random(count)) < gain
            places = np.where(moved[:, None], proposed, places)
            priors, logs = np.where(moved, new_priors, priors), np.where(moved, new_logs, logs)
            share, taken = moved[~local].mean() if not local.all() else ACCEPTANCE, taken + 1
            accepted += float(share)
            self.scale *= math.exp(share - ACCEPTANCE)
            mean = accepted / taken
            needed = most if mean <= 0 else math.ceil(math.log(STAYS) / math.log1p(-min(mean, 0.999)))
            steps = min(max(needed, FEWEST_STEPS), most)
        return places, priors, logs, accepted / taken


def _effective_share(logs: np.ndarray) -> float:
    """Return (sum w)^2 / (P sum w^2) for weights w = exp(logs)."""
    weights = np.exp(logs - logs.max())
    return float(weights.sum() ** 2 / (len(weights) * (weights**2).sum()))


def _largest_step(logs: np.ndarray, most: float, least_share: float) -> float:
    """Return the largest power, up to `most`, at which the effective share is still `least_share`."""
    if _effective_share(most * logs) >= least_share:
        return most
    # Where most particles are impossible the share cannot reach it; a tiny power drops them.
    low, high = 0.0, most
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        if _effective_share(middle * logs) >= least_share:
            low = middle
        else:
            high = middle
    return high


def _resampled(logs: np.ndarray, generator: Any, count: int) -> np.ndarray:
    """Return `count` indices drawn with weights exp(logs), by systematic resampling."""
    weights = np.exp(logs - logs.max())
    places = (generator.random() + np.arange(count)) / count
    passed = np.cumsum(weights)
    return np.minimum(np.searchsorted(passed, places * passed[-1]), len(logs) - 1)
