"""One draw by Markov chains: NUTS, slice and SMC of PyMC. The guarantee is asymptotic, whatever R-hat says."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import Any

from pymc_dpdepth.randomness import RandomBits

__all__ = ["MARKOV_SAMPLERS", "choose_markov", "sample_markov"]

MARKOV_SAMPLERS = ("nuts", "slice", "smc")
CHAINS = 4
DRAWS, TUNE = 1000, 1000
PARTICLES = 2000


def choose_markov(mechanisms: list[Any], sampler: str = "auto") -> str:
    """Return the sampler: NUTS for smooth depths, SMC for step depths, which cannot get stuck in one flat piece."""
    if sampler != "auto":
        return sampler
    return "nuts" if all(mechanism.settings.depth.differentiable for mechanism in mechanisms) else "smc"


def sample_markov(model: Any, sampler: str, bits: RandomBits, progressbar: bool) -> Any:
    """Sample a model by Markov chains.

    Parameters
    ----------
    model : pm.Model
    sampler : {"nuts", "slice", "smc"}
    bits : RandomBits
        Seeds the chains with 128 bits each; PyMC's own seeds have 30, which can be searched.
    progressbar : bool

    Returns
    -------
    DataTree
        Curator-side.
    """
    import pymc as pm

    from pymc_dpdepth.samplers.smc_kernel import BatchedMetropolis

    seeds = [bits.seed() for _ in range(CHAINS)]
    # Divergences, R-hat and acceptance rates are functions of the rows and certify nothing: none is logged.
    quiet = {"random_seed": seeds, "chains": CHAINS, "progressbar": progressbar, "compute_convergence_checks": False}
    with model, _silenced("pymc"):
        if sampler == "smc":
            # PyMC's independent proposals leave a bias of several standard errors at this size, Metropolis steps
            # much less (benchmarks/oracle_mcmc.py compares with exact draws).
            return pm.sample_smc(draws=PARTICLES, kernel=BatchedMetropolis, cores=1, **quiet)
        step = pm.NUTS() if sampler == "nuts" else pm.Slice()
        return pm.sample(draws=DRAWS, tune=TUNE, step=step, cores=1, **quiet)


@contextmanager
def _silenced(name: str):
    """Raise a logger's level to errors for a while."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
