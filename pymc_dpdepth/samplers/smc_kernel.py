"""Sequential Monte Carlo whose particles are evaluated together, by compiled code on all cores.

`pm.sample_smc` calls two compiled functions from Python for every particle and step. For a depth, those calls take
several times as long as what they compute (benchmarks/bench_smc.py). Here a numba loop around the same two functions
takes a whole population, so that the numbers, and with one seed the draws, are those of `pm.smc.kernels.MH`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.core.dispatcher import Dispatcher
from pymc.smc.kernels import MH, Pearson

from pymc_dpdepth.depths.threads import on_all_cores
from pymc_dpdepth.op import STRICT

__all__ = ["BatchedMetropolis"]

# PyMC's rule for when the steps of a stage suffice: go on while most coordinates still move away from where they began.
MOST_COORDINATES = 0.9
FEWEST_PARTICLES = 2


class BatchedMetropolis(MH):
    r"""Metropolis kernel for `pm.sample_smc` that evaluates all particles in one call.

    The particles follow the tempered laws

        p_b(theta) ∝ prior(theta) * exp(b * beta * D(theta; X)),    b from 0 to 1,

    with the proposals, the tuning and the stages of `pm.smc.kernels.MH`: with the same seed the draws are the same,
    number by number. Only the time differs. Any model that PyTensor compiles by numba, its default, is evaluated by a
    compiled loop, on several threads where that pays; in other modes particles are evaluated one by one.

    A trace stays with the curator: k of its draws cost k * epsilon, and the guarantee is asymptotic. `release` with
    ``sampler="smc"`` uses this kernel.

    Parameters
    ----------
    *args, **kwargs
        Those of `pm.smc.kernels.MH`; `pm.sample_smc` passes them on: `draws`, `threshold` (share of effective particles
        that sets the next stage, in (0, 1)), `correlation_threshold` (the smaller, the more steps in a stage).

    Raises
    ------
    ValueError
        If the threshold is not between 0 and 1, or there are too few particles for a covariance.

    References
    ----------
    .. [1] P. Del Moral, A. Doucet and A. Jasra, Sequential Monte Carlo samplers, Journal of the Royal Statistical
           Society B 68 (2006) 411-436, doi:10.1111/j.1467-9868.2006.00553.x.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_dpdepth as dpd
    >>> rows = np.arange(20.0).reshape(10, 2)
    >>> with pm.Model() as model:
    ...     location = pm.Normal("location", 0, 10, shape=2)
    ...     potential = dpd.exponential_mechanism("median", location, rows, epsilon=1.0)
    ...     quiet = {"progressbar": False, "compute_convergence_checks": False}
    ...     idata = pm.sample_smc(200, kernel=dpd.BatchedMetropolis, chains=2, cores=1, random_seed=1, **quiet)
    >>> dict(idata.posterior["location"].sizes)
    {'chain': 2, 'draw': 200, 'location_dim_0': 2}
    """

    _log_densities: Callable | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the compiled loop: a worker process compiles its own."""
        return {name: value for name, value in vars(self).items() if name != "_log_densities"}

    def set_rng(self, rng: Any) -> None:
        """Take a generator; log densities hold none, so that their compiled functions are kept from chain to chain."""
        self.rng = rng

    def _initialize_kernel(self) -> None:
        """Take the start, or draw from the prior, and evaluate all particles."""
        if self.draws < FEWEST_PARTICLES:
            raise ValueError(
                f"draws: expected at least {FEWEST_PARTICLES} particles, whose covariance scales the proposals; got "
                f"{self.draws}. 1,000 or more are a good choice."
            )
        start = self.start or self.initialize_population()
        columns = [np.reshape(start[variable.name], (self.draws, -1)) for variable in self.variables]
        self.tempered_posterior = np.concatenate(columns, axis=1).astype(np.float64)
        self.likelihood_logp, self.prior_logp = self._evaluate(self.tempered_posterior)

    def mutate(self) -> None:
        """Move all particles by Metropolis steps, until they hardly move further from where the stage began."""
        self.n_steps = 1  # PyMC counts one more than it takes
        since_start, previous = Pearson(self.tempered_posterior), 2.0
        accepted_share, moves = np.zeros(self.draws), True
        while moves:
            log_uniform = np.log(self.rng.random(self.draws))
            steps = self.proposal_dist(num_draws=self.draws, rng=self.rng)
            proposal = self.tempered_posterior + steps * self.proposal_scales[:, None]
            likelihood, prior = self._evaluate(proposal)
            tempered = prior + likelihood * self.beta
            accepted = log_uniform < tempered - self.tempered_posterior_logp
            for held, proposed in (
                (self.tempered_posterior, proposal),
                (self.likelihood_logp, likelihood),
                (self.prior_logp, prior),
                (self.tempered_posterior_logp, tempered),
            ):
                held[accepted] = proposed[accepted]
            accepted_share += accepted
            self.n_steps += 1
            correlation = since_start.get(self.tempered_posterior)
            moves = np.mean(previous - correlation > self.correlation_threshold) > MOST_COORDINATES
            previous = correlation
        self.chain_acc_rate = accepted_share / (self.n_steps - 1)

    def _evaluate(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return log likelihoods (the mechanism's and any other Potential's) and log priors of points (k, size)."""
        if self._log_densities is None:
            self._log_densities = _both(self.likelihood_logp_func, self.prior_logp_func)
        values = self._log_densities(np.ascontiguousarray(points))
        return values[:, 0].copy(), values[:, 1].copy()


def _both(*functions: Any) -> Callable:
    """Return a function of points (k, size) to the values (k, 2) of two PyTensor functions of one point."""
    compiled = [getattr(function.vm, "jit_fn", None) for function in functions]
    if not all(isinstance(function, Dispatcher) for function in compiled):
        return lambda points: np.array([[function(point) for function in functions] for point in points])
    first, second = compiled
    # What the functions take beside a point; nothing sets it while the particles move.
    shared = [tuple(variable.get_value(borrow=True) for variable in function.get_shared()) for function in functions]

    @numba.njit(nogil=True, **STRICT)
    def evaluate(points, of_first, of_second):
        values = np.empty((points.shape[0], 2))
        for i in range(points.shape[0]):
            values[i, 0] = first(points[i], *of_first)[0].item()
            values[i, 1] = second(points[i], *of_second)[0].item()
        return values

    visits = sum(np.size(array) for arrays in shared for array in arrays)
    return lambda points: on_all_cores(evaluate, points, tuple(shared), visits)
