r"""Exact draws for halfspace depth over orthonormal directions, in any dimension.

The level sets {D >= l/n} are boxes: along direction j, B_l = [x_(l), x_(n+1-l)] in the order of the rows. They are
nested, and with V_l the prior mass of B_l (V_0 = 1) the density exp(epsilon/2 * n D) * prior is a mixture of priors
restricted to boxes,

    exp(epsilon k / 2) = 1 + sum_{l=1}^{k} (exp(epsilon l / 2) - exp(epsilon (l-1) / 2)),

so level l is drawn with weight V_l (exp(epsilon l/2) - exp(epsilon (l-1)/2)), level 0 with weight 1, and then the point
from the prior inside the box: no rejection, no cancellation.

Levels above n/2 are non-empty only through ties. Where they are, every box is the one cell c of the coordinatewise
median, up to the level L = min_j L_j that the ties allow, so their weights add up to V_c (exp(epsilon L/2) -
exp(epsilon h/2)), h = ceil(n/2).

References
----------
.. [1] J. W. Tukey, Mathematics and the picturing of data, Proc. Int. Congress of Mathematicians 2 (1975) 523-531.
.. [2] K. Ramsay and S. Chenouri, Differentially private depth functions and their associated medians, 2021,
       arXiv:2101.02800.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numba
import numpy as np

from pymc_dpdepth.bits import bits_to_float, float_to_bits
from pymc_dpdepth.grid import EXPONENT_BIAS, LAST_KEY, SIGNIFICAND_BITS, draw_keys, mass
from pymc_dpdepth.randomness import RandomBits
from pymc_dpdepth.samplers.segments import cumulative_weights, draw_indices

__all__ = ["BoxLaw", "box_log_masses", "level_log_weights", "tied_level"]

SIGNIFICAND_MASK = (1 << SIGNIFICAND_BITS) - 1
ONE_BITS = EXPONENT_BIAS << SIGNIFICAND_BITS
# Significands lie in [1, 2), so a product of this many stays below the largest double, 2**1024.
LONGEST_PRODUCT = 1000


@numba.njit(cache=True, nogil=True)
def box_log_masses(keys, floors):
    """Return log V_l for l = 1, ..., ceil(n/2).

    The product over directions is kept as significand and exponent, so a box of d = 1000 directions does not underflow
    and only one logarithm per level is needed.

    Parameters
    ----------
    keys : ndarray of int64, shape (M, n), ascending along the last axis
    floors : ndarray of int64, shape (M, 2)

    Returns
    -------
    ndarray of float64, shape (ceil(n/2),)
    """
    count, n = keys.shape
    half = (n + 1) // 2
    significands = np.ones(half)
    exponents = np.zeros(half, dtype=np.int64)
    log_masses = np.zeros(half)
    for j in range(count):
        row, low_floor, high_floor = keys[j], floors[j, 0], floors[j, 1]
        for i in range(half):
            bits = float_to_bits(mass(row[i], row[n - 1 - i], low_floor, high_floor))
            exponents[i] += bits >> SIGNIFICAND_BITS
            significands[i] *= bits_to_float((bits & SIGNIFICAND_MASK) | ONE_BITS)
        if (j + 1) % LONGEST_PRODUCT == 0:
            for i in range(half):
                log_masses[i] += np.log(significands[i])
                significands[i] = 1.0
    for i in range(half):
        log_masses[i] += np.log(significands[i]) + (exponents[i] - count * EXPONENT_BIAS) * math.log(2.0)
    return log_masses


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


def level_log_weights(keys: np.ndarray, floors: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the log weights of levels 0, ..., ceil(n/2), and of all higher levels together where ties reach there.

    Parameters
    ----------
    keys : ndarray of int64, shape (M, n), ascending along the last axis
    floors : ndarray of int64, shape (M, 2)
    epsilon : float
        Privacy loss of one draw.

    Returns
    -------
    ndarray of float64, shape (ceil(n/2) + 2,)
    """
    n = keys.shape[1]
    half = (n + 1) // 2
    levels = np.arange(1, half + 1)
    weights = np.full(half + 2, -np.inf)
    weights[0] = 0.0
    # exp(epsilon l/2) - exp(epsilon (l-1)/2) = exp(epsilon l/2) (1 - exp(-epsilon/2))
    weights[1:-1] = box_log_masses(keys, floors) + epsilon * levels / 2 + math.log(-math.expm1(-epsilon / 2))
    highest = int(tied_level(keys))
    if highest > half:
        center = np.ascontiguousarray(keys[:, half - 1 : half])
        (log_mass,) = box_log_masses(center, floors)
        weights[-1] = log_mass + epsilon * highest / 2 + math.log(-math.expm1(-epsilon * (highest - half) / 2))
    return weights


@dataclass(frozen=True, eq=False, repr=False)  # a repr would show the rows' keys
class BoxLaw:
    """Law of the halfspace exponential mechanism over M orthonormal directions.

    Attributes
    ----------
    keys : ndarray of int64, shape (M, n)
        Ascending keys of the rows along each direction, n >= 1.
    floors : ndarray of int64, shape (M, 2)
    epsilon : float
    """

    keys: np.ndarray
    floors: np.ndarray
    epsilon: float

    def draw(self, bits: RandomBits, draws: int) -> np.ndarray:
        """Draw cells, shape (draws, M)."""
        count, n = self.keys.shape
        half = (n + 1) // 2
        cumulative = cumulative_weights(level_log_weights(self.keys, self.floors, self.epsilon))
        levels = draw_indices(cumulative, bits.uniforms((draws,)))
        left = np.clip(levels - 1, 0, half - 1)
        right = np.where(levels > half, half - 1, n - 1 - left)
        inside = (levels > 0)[:, None]
        first = np.where(inside, self.keys[:, left].T, 0)
        last = np.where(inside, self.keys[:, right].T, LAST_KEY)
        return draw_keys(first, last, self.floors, bits.uniforms((2, draws, count)))
