"""Energy test of two samples: whether two sets of independent draws come from one law."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["energy_test"]

BATCH = 256  # permutations at a time, so that memory does not grow with their number
# Equal statistics that were summed in another order differ by rounding, less than this share of a mean distance;
# counting them as equal keeps the test valid.
ROUNDING = 1e-10


def energy_test(first: np.ndarray, second: np.ndarray, permutations: int, generator: Any) -> tuple[float, float]:
    r"""Compare two samples by the energy distance of their ranks.

    With x, y the draws of the two, every coordinate replaced by its rank among all m + k draws,

        T = 2 mean |x - y| - mean |x - x'| - mean |y - y'|,    distance = T / (2 mean |x - y|),

    where the means include pairs of a draw with itself. The distance is 0 for equal samples and near 1 for samples far
    apart; two samples of one law are (1/m + 1/k) / 2 apart on average.

    Parameters
    ----------
    first, second : ndarray, shape (m, d) and (k, d)
        Independent draws each.
    permutations : int
        Random divisions of all draws into m and k with which T is compared.
    generator : numpy Generator

    Returns
    -------
    distance, p_value : float
        p = (1 + number of divisions with a T as large) / (1 + permutations): where both laws are equal and the draws
        independent, P(p <= a) <= a for every a, whatever the law.

    Notes
    -----
    Ranks make the test free of units and of heavy tails, and are computed from all draws without regard to where they
    come from, so that the permutation argument holds [1]_ [2]_.

    References
    ----------
    .. [1] G. J. Szekely and M. L. Rizzo, Energy statistics: a class of statistics based on distances, J. Statist.
           Plann. Inference 143 (2013) 1249-1272, doi:10.1016/j.jspi.2013.03.018.
    .. [2] B. Phipson and G. K. Smyth, Permutation p-values should never be zero, Statist. Appl. Genet. Mol. Biol. 9
           (2010) 39, doi:10.2202/1544-6115.1585.
    """
    from scipy.spatial.distance import pdist, squareform
    from scipy.stats import rankdata

    both = rankdata(np.concatenate([first, second]), axis=0)
    m, k = len(first), len(second)
    distances = squareform(pdist(both))
    signs = np.where(np.arange(m + k) < m, 1.0 / m, -1.0 / k)
    statistic = -signs @ distances @ signs
    across = 2.0 * distances[:m, m:].mean()
    as_large = 0
    for start in range(0, permutations, BATCH):
        shuffled = np.tile(signs, (min(BATCH, permutations - start), 1))
        shuffled = generator.permuted(shuffled, axis=1)
        statistics = -np.einsum("ij,ij->i", shuffled @ distances, shuffled)
        as_large += int((statistics >= statistic - ROUNDING * across).sum())
    distance = float(max(0.0, statistic) / across) if across else 0.0
    return distance, (1.0 + as_large) / (1.0 + permutations)
