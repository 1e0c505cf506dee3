"""Random-walk Metropolis chains in pairs: each chain by itself moves by the plain kernel, and the two meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["couple_proposals", "coupled_step", "meeting_time", "metropolis_step", "tune_proposal"]

# Of a random walk on a normal target: the acceptance rate, and the scale 2.38 / sqrt(d), at which it mixes fastest
# (Roberts, Gelman and Gilks, 1997, doi:10.1214/aoap/1034625254).
BEST_ACCEPTANCE, BEST_SCALE = 0.234, 2.38
# Weight of step k in what is learned while tuning is k^-0.6: learning fades, but any distance can still be covered
# (Robbins and Monro, 1951, doi:10.1214/aoms/1177729586).
FADING = 0.6
SMALLEST_SHARE = 1e-6  # of the start's variances, added to the learned covariance so that it stays regular


def metropolis_step(log_density: Callable, state: np.ndarray, log_here: float, factor: np.ndarray, generator: Any):
    """Move one chain: propose state + factor z with z standard normal, accept with min(1, density ratio).

    Returns
    -------
    state : ndarray, shape (d,)
    log_here : float
        Log density there.
    """
    proposal = state + factor @ generator.standard_normal(len(state))
    log_there = log_density(proposal)
    if -generator.standard_exponential() < log_there - log_here:
        return proposal, log_there
    return state, log_here


def couple_proposals(
    first: np.ndarray, second: np.ndarray, factor: np.ndarray, generator: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Draw from N(first, S) and N(second, S), S = factor factor', equal with the largest possible probability.

    The reflection-maximal coupling: with z standard normal and g = factor^-1 (first - second), both are first +
    factor z with probability min(1, phi(z + g) / phi(z)); otherwise the second uses z reflected in the plane normal to
    g (Bou-Rabee, Eberle and Zimmer, 2020, doi:10.1214/19-AAP1528). The same object is returned twice where they are
    equal.

    Both have their law: reflecting keeps the standard normal, and the density of z + g, min(phi(z), phi(z + g)) seen
    from the second, is filled up to phi by the reflected z, whose density there is (phi(z) - phi(z + g))+ mirrored.
    """
    gap = np.linalg.solve(factor, first - second)
    noise = generator.standard_normal(len(first))
    shifted = noise + gap
    proposal = first + factor @ noise
    if -generator.standard_exponential() <= 0.5 * (noise @ noise - shifted @ shifted):
        return proposal, proposal
    reflected = noise - 2.0 * (gap @ noise) / (gap @ gap) * gap
    return proposal, second + factor @ reflected


def coupled_step(log_density: Callable, states, logs, factor: np.ndarray, generator: Any):
    """Move two chains by coupled proposals and one common uniform number.

    Parameters
    ----------
    log_density : callable
    states : pair of ndarray, shape (d,)
    logs : pair of float
        Log densities of the states.
    factor : ndarray, shape (d, d)
    generator : numpy Generator

    Returns
    -------
    states, logs
        The same object twice where both have accepted one proposal: the chains have met.
    """
    first, second = couple_proposals(*states, factor, generator)
    log_first = log_density(first)
    log_second = log_first if second is first else log_density(second)
    log_uniform = -generator.standard_exponential()
    moves = log_uniform < log_first - logs[0], log_uniform < log_second - logs[1]
    return (
        (first if moves[0] else states[0], second if moves[1] else states[1]),
        (log_first if moves[0] else logs[0], log_second if moves[1] else logs[1]),
    )


def meeting_time(log_density: Callable, starts, factor: np.ndarray, lag: int, steps: int, generator: Any) -> int:
    """Run one chain for `lag` steps alone, then both together; return the steps together until they meet, or -1.

    Parameters
    ----------
    log_density : callable
        Of a vector, up to a constant.
    starts : pair of ndarray, shape (d,)
        Independent draws of the start's law.
    factor : ndarray, shape (d, d)
        Of the proposals' covariance, factor factor'.
    lag, steps : int
        Steps of the first chain alone, and the most steps together.
    generator : numpy Generator
    """
    ahead, log_ahead = starts[0], log_density(starts[0])
    for _ in range(lag):
        ahead, log_ahead = metropolis_step(log_density, ahead, log_ahead, factor, generator)
    states, logs = (ahead, starts[1]), (log_ahead, log_density(starts[1]))
    for step in range(1, steps + 1):
        states, logs = coupled_step(log_density, states, logs, factor, generator)
        if states[0] is states[1]:
            return step
    return -1


def tune_proposal(log_density: Callable, starts: np.ndarray, steps: int, generator: Any) -> np.ndarray:
    """Learn the factor of the proposals' covariance from one chain; it is fixed afterwards.

    The covariance is learned from the chain's path, its scale from the acceptance rate (Andrieu and Thoms, 2008,
    doi:10.1007/s11222-008-9110-y, algorithm 4).

    Parameters
    ----------
    log_density : callable
    starts : ndarray, shape (k, d)
        Draws of the start's law: the first one starts the chain, and their spread is the first guess.
    steps : int
    generator : numpy Generator

    Returns
    -------
    ndarray, shape (d, d)
    """
    d = starts.shape[1]
    low, high = np.quantile(starts, [0.25, 0.75], axis=0)  # a spread that also a Cauchy prior has
    first_guess = np.diag(np.where(high > low, high - low, 1.0) ** 2)
    mean, covariance, log_scale = starts[0], first_guess.copy(), np.log(BEST_SCALE / np.sqrt(d))
    state, log_here = starts[0], log_density(starts[0])
    factor = np.exp(log_scale) * np.linalg.cholesky(covariance)
    for step in range(1, steps + 1):
        proposal = state + factor @ generator.standard_normal(d)
        log_there = log_density(proposal)
        # A density that is zero or undefined there is a rejection.
        rate = np.exp(min(0.0, log_there - log_here)) if log_there > -np.inf else 0.0
        if generator.random() < rate:
            state, log_here = proposal, log_there
        weight = (step + 1.0) ** -FADING
        log_scale += weight * (rate - BEST_ACCEPTANCE)
        away = state - mean
        mean = mean + weight * away
        covariance = covariance + weight * (np.outer(away, away) - covariance)
        factor = np.exp(log_scale) * np.linalg.cholesky(covariance + SMALLEST_SHARE * first_guess)
    return factor
