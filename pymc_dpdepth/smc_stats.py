"""What SMC writes about its stages, in the three shapes that it does it in. For the curator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["has_stages", "stages", "tempered"]

# Statistics that `pm.sample_smc` writes once for each stage; the name of the exponent there is PyMC's.
EXPONENT, EVIDENCE = "beta", "log_marginal_likelihood"


def has_stages(sample_stats: Any) -> bool:
    """Whether statistics are those of SMC."""
    return sample_stats is not None and {EXPONENT, EVIDENCE} <= set(sample_stats.data_vars)


def stages(array: Any, chains: int) -> list[np.ndarray]:
    """Return a statistic of SMC as one array of stages for each chain.

    PyMC writes a table (chains, stages) of objects where all chains have as many stages, a vector of lists where they
    have not, and for a single chain the stages alone, along a dimension that it calls "chain".

    Parameters
    ----------
    array : DataArray
    chains : int
        Chains of the posterior.

    Returns
    -------
    list of ndarray of float64, length `chains`
        What is no number becomes NaN; stages of NaN that `writable` has put behind a chain's last are still there.
    """
    values = np.asarray(array.values)
    if values.ndim == 1 and not any(isinstance(entry, Sequence | np.ndarray) for entry in values):
        values = values[None] if chains == 1 else values[:, None]
    return [np.array([_number(entry) for entry in chain], dtype=np.float64) for chain in values]


def tempered(sample_stats: Any, chains: int) -> list[tuple[int, float, float]]:
    """Return the number of stages of each chain, its last exponent, and its log evidence."""
    found = []
    for exponent, evidence in zip(
        stages(sample_stats[EXPONENT], chains), stages(sample_stats[EVIDENCE], chains), strict=True
    ):
        exponent, evidence = (values[np.isfinite(values)] for values in (exponent, evidence))
        last = [float(values[-1]) if values.size else np.nan for values in (exponent, evidence)]
        found.append((int(exponent.size), *last))
    return found


def _number(entry: Any) -> float:
    """Return an entry as a float, NaN for what is none."""
    values = np.ravel(entry)
    if values.size != 1 or values.dtype.kind not in "fiub" and not isinstance(values[0], int | float | np.number):
        return np.nan
    return float(values[0])
