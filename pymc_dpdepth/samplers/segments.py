r"""Exact draws along one direction, for any depth that depends on the counts le and ge alone.

Between two neighbouring keys of the rows, and at each key, the counts do not change. With m runs of equal keys the line
falls into m + 1 gaps and m atoms, on each of which the density is the prior times a constant:

    P(segment) ∝ mass(segment) * exp(unit * count(le, ge)).

A segment is drawn with these weights, then a cell in it by prior mass. The work depends on n alone: gap i and atom i
are visited for every row i, and carry the weight 0 where a tie leaves them empty.

The same law serves a mean over orthonormal directions in a frame in which the prior is a product (`products`): the
density factorises, exp(beta * mean_u D_u) = prod_u exp(beta/M * D_u), so each direction is an independent segment draw.

References
----------
.. [1] F. McSherry and K. Talwar, Mechanism design via differential privacy, FOCS 2007, doi:10.1109/FOCS.2007.66.
.. [2] K. Ramsay and S. Chenouri, Differentially private depth functions and their associated medians, 2021,
       arXiv:2101.02800.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from pymc_dpdepth.depths.univariate import univariate_count
from pymc_dpdepth.grid import LAST_KEY, draw_keys, mass
from pymc_dpdepth.randomness import RandomBits

__all__ = ["SegmentLaw", "segment_log_weights", "segments_of"]


@numba.njit(cache=True, nogil=True)
def segments_of(keys):
    """Return the first and last cells of the 2n + 1 segments of ascending keys; empty segments have last < first.

    Segment 2i is the gap below row i, segment 2i + 1 the atom whose last row is i, segment 2n the gap above all rows.
    """
    n = keys.size
    first, last = np.empty(2 * n + 1, dtype=np.int64), np.empty(2 * n + 1, dtype=np.int64)
    below = np.int64(0)
    for i in range(n):
        first[2 * i], last[2 * i] = below, keys[i] - 1
        first[2 * i + 1] = keys[i]
        last[2 * i + 1] = keys[i] if i == n - 1 or keys[i + 1] != keys[i] else keys[i] - 1
        below = keys[i] + 1
    first[2 * n], last[2 * n] = below, LAST_KEY
    return first, last


@numba.njit(cache=True, nogil=True)
def segment_log_weights(keys, low_floor, high_floor, code, unit):
    """Return log(mass) + unit * count of the segments of ascending keys, -inf for empty ones.

    Parameters
    ----------
    keys : ndarray of int64, shape (n,), ascending
    low_floor, high_floor : int
        Floors of the direction's grid.
    code : int
        Univariate depth, see `pymc_dpdepth.depths.univariate`.
    unit : float
        Exponent that one count is worth.

    Returns
    -------
    ndarray of float64, shape (2n + 1,)
    """
    n = keys.size
    first, last = segments_of(keys)
    weights = np.full(2 * n + 1, -np.inf)
    start = 0  # first row of the run of ties that row i ends or continues
    for i in range(n + 1):
        if last[2 * i] >= first[2 * i]:
            cells = mass(first[2 * i], last[2 * i], low_floor, high_floor)
            if cells > 0.0:
                weights[2 * i] = np.log(cells) + unit * univariate_count(code, i, n - i)
        if i == n:
            break
        if i > 0 and keys[i] != keys[i - 1]:
            start = i
        if last[2 * i + 1] >= first[2 * i + 1]:
            cells = mass(first[2 * i + 1], last[2 * i + 1], low_floor, high_floor)
            weights[2 * i + 1] = np.log(cells) + unit * univariate_count(code, i + 1, n - start)
    return weights


@numba.njit(cache=True, nogil=True)
def cumulative_weights(log_weights):
    """Return running sums of exp(log_weights - max), with Kahan's correction so that many small terms are not lost.

    A weight of 0 leaves the sum as it is, correction included, so that its index is never drawn.
    """
    top = log_weights.max()
    sums = np.empty(log_weights.size)
    total, lost = 0.0, 0.0
    for i in range(log_weights.size):
        weight = np.exp(log_weights[i] - top)
        if weight > 0.0:
            term = weight - lost
            new = total + term
            lost = (new - total) - term
            total = new
        sums[i] = total
    return sums


def draw_indices(cumulative: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """Return indices drawn with the weights whose running sums are given; an index of weight 0 never comes."""
    last_positive = np.searchsorted(cumulative, cumulative[-1], side="left")
    return np.minimum(np.searchsorted(cumulative, uniforms * cumulative[-1], side="right"), last_positive)


@dataclass(frozen=True, eq=False, repr=False)  # a repr would show the rows' keys
class SegmentLaw:
    """Independent segment laws of one or more directions.

    Attributes
    ----------
    keys : ndarray of int64, shape (M, n)
        Ascending keys of the rows along each direction.
    floors : ndarray of int64, shape (M, 2)
    code : int
        Univariate depth.
    unit : float
        Exponent that one count is worth.
    """

    keys: np.ndarray
    floors: np.ndarray
    code: int
    unit: float

    def draw(self, bits: RandomBits, draws: int) -> np.ndarray:
        """Draw cells, shape (draws, M)."""
        count = self.keys.shape[0]
        uniforms = bits.uniforms((3, draws, count))
        cells = np.empty((draws, count), dtype=np.int64)
        for j in range(count):
            first, last = segments_of(self.keys[j])
            log_weights = segment_log_weights(self.keys[j], *self.floors[j], self.code, self.unit)
            chosen = draw_indices(cumulative_weights(log_weights), uniforms[0, :, j])
            cells[:, j : j + 1] = draw_keys(
                first[chosen, None], last[chosen, None], self.floors[j : j + 1], uniforms[1:, :, j : j + 1]
            )
        return cells
