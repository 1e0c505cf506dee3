r"""Exact draws for halfspace depth over orthonormal directions, in any dimension.

The level sets {D >= l/n} are boxes: along direction j, B_l = [x_(l), x_(n+1-l)] in the order of the rows. They are
nested, and with V_l the prior mass of B_l (V_0 = 1) and a = 1/b, b the base of the weights (b = exp(-epsilon/2) rounded
upwards), the density a^(n D) * prior is a mixture of priors restricted to boxes,

    a^k = 1 + sum_{l=1}^{k} (a^l - a^(l-1)),

so level l is drawn with weight V_l (a^l - a^(l-1)), level 0 with weight 1, and then the point from the prior inside the
box: no rejection, no cancellation.

Levels above n/2 are non-empty only through ties. Where they are, every box is the one cell c of the coordinatewise
median, up to the level L = min_j L_j that the ties allow, so their weights add up to V_c (a^L - a^h), h = ceil(n/2).
With H = max(h, L), all weights are multiplied by b^H:

    level 0: b^H,    level l: V_l b^(H-l) (1 - b),    ties: V_c (1 - b^(L-h)).

References
----------
.. [1] J. W. Tukey, Mathematics and the picturing of data, Proc. Int. Congress of Mathematicians 2 (1975) 523-531.
.. [2] K. Ramsay and S. Chenouri, Differentially private depth functions and their associated medians, 2021,
       arXiv:2101.02800.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numba
import numpy as np

from pymc_dpdepth.bits import bits_to_float, float_to_bits
from pymc_dpdepth.grid import EXPONENT_BIAS, LAST_KEY, SIGNIFICAND_BITS, cell_count, mass
from pymc_dpdepth.randomness import RandomBits
from pymc_dpdepth.samplers.cells import draw_cells
from pymc_dpdepth.samplers.choice import choose
from pymc_dpdepth.samplers.weights import (
    ONE_BITS,
    POWER_ROUNDINGS,
    SIGNIFICAND_MASK,
    Interval,
    WeightBase,
    normalise,
    scaled_power,
)

__all__ = ["BoxLaw", "box_masses", "level_weights", "tied_level"]

# Significands lie in [1, 2), so a product of this many stays below the largest double, 2**1024.
LONGEST_PRODUCT = 1000
# A mass is right to 3 roundings, its product with the others adds one.
MASS_ROUNDINGS = 4


@numba.njit(cache=True, nogil=True)
def box_masses(keys, floors):
    """Return V_l for l = 1, ..., ceil(n/2) as significands in [1, 2) and exponents.

    Exponents apart from significands, a box of 1000 directions does not underflow.

    Parameters
    ----------
    keys : ndarray of int64, shape (M, n), ascending along the last axis
    floors : ndarray of int64, shape (M, 2)

    Returns
    -------
    significands : ndarray of float64, shape (ceil(n/2),)
        Right to 4 M roundings.
    exponents : ndarray of int64, shape (ceil(n/2),)
    """
    count, n = keys.shape
    half = (n + 1) // 2
    significands = np.ones(half)
    exponents = np.zeros(half, dtype=np.int64)
    for j in range(count):
        row, low_floor, high_floor = keys[j], floors[j, 0], floors[j, 1]
        for i in range(half):
            bits = float_to_bits(mass(row[i], row[n - 1 - i], low_floor, high_floor))
            exponents[i] += bits >> SIGNIFICAND_BITS
            significands[i] *= bits_to_float((bits & SIGNIFICAND_MASK) | ONE_BITS)
        if (j + 1) % LONGEST_PRODUCT == 0 or j == count - 1:
            for i in range(half):
                significands[i], exponents[i] = normalise(significands[i], exponents[i])
    for i in range(half):
        exponents[i] -= count * EXPONENT_BIAS
    return significands, exponents


@numba.njit(cache=True, nogil=True)
def tied_level(keys):
    """Return the highest non-empty level: ceil(n/2), or the L that ties at the coordinatewise median allow."""
    count, n = keys.shape
    half = (n + 1) // 2
    highest = n
    for j in range(count):
        row = keys[j]
        center = row[half - 1]
        first, end = np.searchsorted(row, center), np.searchsorted(row, center + 1)
        highest = min(highest, max(half, min(end, n - first)))
    return highest


@numba.njit(cache=True, nogil=True)
def _fill_levels(
    significands, exponents, masses, mass_exponents, highest, step, step_exponent, powers, power_exponents
):
    """Write the weights of levels 0, ..., ceil(n/2); `step` is 1 - b."""
    for level in range(masses.size + 1):
        s, e = scaled_power(powers, power_exponents, highest - level)
        if level > 0:
            s *= masses[level - 1] * step
            e += mass_exponents[level - 1] + step_exponent
        significands[level], exponents[level] = normalise(s, e)


def level_weights(
    keys: np.ndarray, floors: np.ndarray, base: WeightBase, highest: int | None = None
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the weights of levels 0, ..., ceil(n/2), and of all higher levels together where ties reach there.

    Parameters
    ----------
    keys : ndarray of int64, shape (M, n), ascending along the last axis
    floors : ndarray of int64, shape (M, 2)
    base : WeightBase
        Of one level, 1/n of depth.
    highest : int, optional
        Level at which depths are cut off, between ceil(n/2) and what the ties of keys allow, its value by default.

    Returns
    -------
    significands : ndarray of float64, shape (ceil(n/2) + 2,)
        In [1, 2), or 0 for the last where ties do not reach above n/2.
    exponents : ndarray of int64, shape (ceil(n/2) + 2,)
    roundings : int
        Bound on the relative error of the significands, in units of 2^-53.
    """
    count, n = keys.shape
    half = (n + 1) // 2
    highest = int(tied_level(keys)) if highest is None else highest
    significands, exponents = np.zeros(half + 2), np.zeros(half + 2, dtype=np.int64)
    masses = box_masses(keys, floors)
    _fill_levels(significands[:-1], exponents[:-1], *masses, highest, *base.scaled_complement(1), *base.table)
    if highest > half:
        center = np.ascontiguousarray(keys[:, half - 1 : half])
        (mass_significand,), (mass_exponent,) = box_masses(center, floors)
        tie, tie_exponent = base.scaled_complement(highest - half)
        significands[-1], exponents[-1] = mass_significand * tie, mass_exponent + tie_exponent
    # Beside masses and powers: 1 - b and its product with the mass, and the product of both with the power.
    return significands, exponents, MASS_ROUNDINGS * count + POWER_ROUNDINGS + 4


def level_intervals(
    keys: np.ndarray, floors: np.ndarray, base: WeightBase, precision: int, highest: int | None = None
) -> list[Interval]:
    """Return the same weights between integers, in the same order."""
    n = keys.shape[1]
    half = (n + 1) // 2
    highest = int(tied_level(keys)) if highest is None else highest
    spare = precision + 2 * (len(keys) + half).bit_length()
    step = base.complement(1, spare)
    weights = [Interval(0, 0)] * (half + 2)
    power = base.power(highest - half, spare)
    for level in range(half, 0, -1):
        box = _box_interval(keys[:, level - 1].tolist(), keys[:, n - level].tolist(), floors, spare)
        weights[level] = (box * step * power).rounded(spare)
        power = (power * base.power(1, spare)).rounded(spare)
    weights[0] = power
    if highest > half:
        center = keys[:, half - 1].tolist()
        weights[-1] = _box_interval(center, center, floors, spare) * base.complement(highest - half, spare)
    return weights


def _box_interval(first, last, floors, precision: int) -> Interval:
    """Return the prior mass of a box of cells."""
    parts = [Interval.of_cells(cell_count(*ends)) for ends in zip(first, last, *floors.T.tolist(), strict=True)]
    return functools.reduce(lambda box, side: (box * side).rounded(precision), parts, Interval(1, 1))


@dataclass(frozen=True, eq=False, repr=False)  # a repr would show the rows' keys
class BoxLaw:
    """Law of the halfspace exponential mechanism over M orthonormal directions.

    Attributes
    ----------
    keys : ndarray of int64, shape (M, n)
        Ascending keys of the rows along each direction, n >= 1.
    floors : ndarray of int64, shape (M, 2)
    base : WeightBase
        Of one level: b >= exp(-epsilon/2).
    highest : int or None
        Level at which depths are cut off, see `level_weights`.
    """

    keys: np.ndarray
    floors: np.ndarray
    base: WeightBase
    highest: int | None = None

    def draw(self, bits: RandomBits, draws: int) -> np.ndarray:
        """Draw cells, shape (draws, M)."""
        weights = level_weights(self.keys, self.floors, self.base, self.highest)
        levels = choose(*weights, self.intervals, bits, draws)
        return draw_cells(*self.boxes(levels), self.floors, bits)

    def intervals(self, precision: int) -> list[Interval]:
        """Return the weights of the levels between integers."""
        return level_intervals(self.keys, self.floors, self.base, precision, self.highest)

    def boxes(self, levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the first and last cells of the boxes of levels, each of shape (len(levels), M)."""
        n = self.keys.shape[1]
        half = (n + 1) // 2
        left = np.clip(levels - 1, 0, half - 1)
        right = np.where(levels > half, half - 1, n - 1 - left)
        inside = (levels > 0)[:, None]
        first = np.where(inside, self.keys[:, left].T, 0)
        return first, np.where(inside, self.keys[:, right].T, LAST_KEY)
