r"""Exact draws along one direction, for any depth that depends on the counts le and ge alone.

Between two neighbouring keys of the rows, and at each key, the counts do not change. With m runs of equal keys the line
falls into m + 1 gaps and m atoms, on each of which the density is the prior times a constant:

    P(segment) ∝ mass(segment) * b^(K - count(le, ge)),

K the largest count and b the base of the weights, exp(-unit) rounded upwards.

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
from pymc_dpdepth.grid import LAST_KEY, cell_count, mass
from pymc_dpdepth.randomness import RandomBits
from pymc_dpdepth.samplers.cells import draw_cells
from pymc_dpdepth.samplers.choice import choose
from pymc_dpdepth.samplers.weights import POWER_ROUNDINGS, Interval, WeightBase, normalise, scaled_power

__all__ = ["SegmentLaw", "segment_counts", "segment_weights", "segments_of"]

# A mass is right to 3 roundings, its product with the power adds one.
SEGMENT_ROUNDINGS = POWER_ROUNDINGS + 4


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
def segment_counts(keys, code):
    """Return the depth's count on the 2n + 1 segments of ascending keys, that of an empty atom included.

    Parameters
    ----------
    keys : ndarray of int64, shape (n,), ascending
    code : int
        Univariate depth, see `pymc_dpdepth.depths.univariate`.

    Returns
    -------
    ndarray of int64, shape (2n + 1,)
    """
    n = keys.size
    counts = np.empty(2 * n + 1, dtype=np.int64)
    start = 0  # first row of the run of ties that row i ends or continues
    for i in range(n):
        if i > 0 and keys[i] != keys[i - 1]:
            start = i
        counts[2 * i] = univariate_count(code, i, n - i)
        counts[2 * i + 1] = univariate_count(code, i + 1, n - start)
    counts[2 * n] = univariate_count(code, n, 0)
    return counts


@numba.njit(cache=True, nogil=True)
def segment_weights(first, last, counts, low_floor, high_floor, powers, power_exponents):
    """Return the weights mass * b^(K - count) of segments, K the largest count of one that is not empty.

    Parameters
    ----------
    first, last, counts : ndarray of int64, shape (m,)
    low_floor, high_floor : int
        Floors of the direction's grid.
    powers, power_exponents : ndarray
        Table of the base, see `WeightBase.table`.

    Returns
    -------
    significands : ndarray of float64, shape (m,)
        In [1, 2), right to SEGMENT_ROUNDINGS roundings, or 0 where the segment has no prior mass.
    exponents : ndarray of int64, shape (m,)
    """
    significands, exponents = np.zeros(counts.size), np.zeros(counts.size, dtype=np.int64)
    top = np.int64(0)
    for i in range(counts.size):
        if last[i] >= first[i]:
            significands[i] = mass(first[i], last[i], low_floor, high_floor)
            if significands[i] > 0.0:
                top = max(top, counts[i])
    for i in range(counts.size):
        if significands[i] > 0.0:
            power, exponent = scaled_power(powers, power_exponents, top - counts[i])
            # The power has a significand in [1, 2), so the product does not underflow.
            significands[i], exponents[i] = normalise(significands[i] * power, exponent)
    return significands, exponents


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
    base : WeightBase
        Of one count.
    largest : int or None
        Where counts are cut off.
    """

    keys: np.ndarray
    floors: np.ndarray
    code: int
    base: WeightBase
    largest: int | None = None

    def counts(self, j: int) -> np.ndarray:
        """Return the counts of direction j's segments, shape (2n + 1,)."""
        counts = segment_counts(self.keys[j], self.code)
        return counts if self.largest is None else np.minimum(counts, self.largest)

    def draw(self, bits: RandomBits, draws: int) -> np.ndarray:
        """Draw cells, shape (draws, M)."""
        count = self.keys.shape[0]
        first, last = np.empty((draws, count), dtype=np.int64), np.empty((draws, count), dtype=np.int64)
        for j in range(count):
            ends = segments_of(self.keys[j])
            counts = self.counts(j)
            weights = segment_weights(*ends, counts, *self.floors[j], *self.base.table)
            chosen = choose(*weights, SEGMENT_ROUNDINGS, lambda p, j=j: self.intervals(j, p), bits, draws)
            first[:, j], last[:, j] = ends[0][chosen], ends[1][chosen]
        return draw_cells(first, last, self.floors, bits)

    def intervals(self, j: int, precision: int) -> list[Interval]:
        """Return the weights of direction j's segments between integers."""
        first, last = (ends.tolist() for ends in segments_of(self.keys[j]))
        counts, floors = self.counts(j).tolist(), self.floors[j].tolist()
        masses = [cell_count(a, b, *floors) if a <= b else 0 for a, b in zip(first, last, strict=True)]
        top = max(count for count, cells in zip(counts, masses, strict=True) if cells)
        # Ties and gaps share counts, and each power is worked out once.
        powers = {c: self.base.power(top - c, precision) for c, cells in zip(counts, masses, strict=True) if cells}
        return [
            Interval.of_cells(cells) * powers[count] if cells else Interval(0, 0)
            for count, cells in zip(counts, masses, strict=True)
        ]
