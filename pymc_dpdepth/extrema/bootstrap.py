"""The parametric bootstrap: new sums from the estimated model, with fresh noise of the law that the release had.

It reads noisy sums alone, so it is post-processing and free of cost. Its generator may be seeded, since nothing that it
draws hides a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pymc_dpdepth.extrema.family import Family
from pymc_dpdepth.extrema.noisy_sums import PooledSums, deviations

__all__ = ["bootstrap_estimates", "point_estimates"]


def point_estimates(family: Family, pooled: PooledSums) -> np.ndarray:
    """Return the estimates of the parameters of interest, shape (k,)."""
    return _checked(family.estimates(pooled.sums, pooled.n, pooled.deviations))


def bootstrap_estimates(
    family: Family,
    pooled: PooledSums,
    replicates: int,
    generator: Any,
    *,
    n: int | None = None,
    copies: int | None = None,
) -> np.ndarray:
    """Return estimates from simulated noisy sums.

    Parameters
    ----------
    family : Family
    pooled : PooledSums
        Noisy sums, from which the model is estimated.
    replicates : int
        Number R of simulated tables.
    generator : NumPy Generator
    n, copies : int, optional
        Rows of a simulated table, and how many noises its sums get; by default as in `pooled`.

    Returns
    -------
    ndarray, shape (R, k)
    """
    n, copies = pooled.n if n is None else n, pooled.copies if copies is None else copies
    model = family.model(pooled.sums, pooled.n, pooled.deviations)
    noisy: Mapping[str, np.ndarray] = {
        name: sums + pooled.released[name].simulate_noise(copies, replicates, generator)
        for name, sums in family.simulate(model, n, replicates, generator).items()
    }
    return _checked(family.estimates(noisy, n, deviations(pooled.released, copies)))


def _checked(estimates: np.ndarray) -> np.ndarray:
    """Return estimates, or refuse such as no interval can be made of."""
    estimates = np.asarray(estimates, dtype=np.float64)
    if not np.isfinite(estimates).all():
        raise FloatingPointError(
            "The family made estimates that are not finite of noisy sums. The sums were released and paid for; give "
            "the family's estimates a floor, so that every sum has finite ones."
        )
    return estimates
