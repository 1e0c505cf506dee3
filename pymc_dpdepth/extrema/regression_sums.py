"""Columns of a regression on a public grid, the sums that it takes of them, and how far one row moves these sums.

A column is clipped to its public bounds and scaled to [-1, 1], so that noise is in proportion to the range of each
column, and rounded to a multiple of 2^-15. Products of two columns are then integers in units of 2^-30, and their sums
are exact, however they are added up.

Sensitivities, in scaled units. Let x and y be the scaled entries of a row and of the one that replaces it, p = x + y,
q = x - y and t_j = |q_j|, so that |p_j| <= 2 - t_j. As x_i x_j - y_i y_j = (p_i q_j + q_i p_j) / 2, the products i < j
change by at most t_i + t_j - t_i t_j and the squares by at most t_j (2 - t_j). With T = t_1 + ... + t_k the upper
triangle changes by at most

    (k + 1) T - T^2 / 2 - (t_1^2 + ... + t_k^2) / 2  <=  (k + 1) T - (1 + 1/k) T^2 / 2  <=  k (k + 1) / 2.

A column of ones adds the sums of the k columns, which change by T; the sum of its squares is the public number n. So
the sensitivity becomes max_T (k + 2) T - (1 + 1/k) T^2 / 2 = k (k + 2)^2 / (2 (k + 1)). That is less than what k + 1
private columns have, (k + 1) (k + 2) / 2, by the factor 1 - 1/(k + 1)^2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import floor, ldexp
from typing import Any

import numpy as np

from pymc_dpdepth.extrema.statistic import BITS_OF_SUMS, Statistic

__all__ = ["Block", "Scaling", "eigenvalue_floor", "floored", "solve"]

# Rounding a column to this grid adds a variance of at most 4^-15 / 12 to it, below the noise of order 1/n that
# S = X'X / n gets, for every number of rows that is allowed.
BITS = 15
UNIT = 2.0**BITS
LARGEST_N = 2 ** (BITS_OF_SUMS - 2 * BITS)
# Eigenvalues are floored at this share of the standard deviation of the noise. A floor shrinks coefficients towards 0,
# which puts the lower limit of negative ones too high, while without one it is useless where noise drowns the columns.
# benchmarks/bench_extrema_floor.py: at a quarter the coverage is kept and the interval is shorter by factors of 18 to
# 200. At the whole deviation the coverage for ten coefficients -1 falls to .87 or .93, at twice it to .69 or .87.
FLOOR_SHARE = 1 / 4
# Up to here each partial sum of products is an integer below 2^53, so a product of matrices of doubles is exact,
# whatever the order of its additions.
EXACT_ROWS = 2 ** (53 - 2 * BITS)


@dataclass(frozen=True, eq=False)
class Scaling:
    """A fixed map of each entry of a row to an integer in [-2^15, 2^15].

    Attributes
    ----------
    lower, upper : ndarray, shape (d,)
        Public bounds, to which the entries are clipped.
    center, half : ndarray, shape (d,)
        What is taken from an entry, and by what it is divided.
    """

    lower: np.ndarray
    upper: np.ndarray
    center: np.ndarray
    half: np.ndarray

    @classmethod
    def of(cls, bounds: np.ndarray, centered: np.ndarray) -> Scaling:
        """Return the map for bounds of shape (d, 2), and which of the columns are shifted to the middle of theirs."""
        lower, upper = bounds.T
        center = np.where(centered, lower / 2 + upper / 2, 0.0)
        half = np.where(centered, upper / 2 - lower / 2, np.abs(bounds).max(axis=1))
        return cls(lower, upper, center, half)

    def integers(self, rows: np.ndarray) -> np.ndarray:
        """Return rows, shape (m, d), on the grid: doubles that hold integers. Each entry is mapped by itself."""
        scaled = (np.clip(rows, self.lower, self.upper) - self.center) / self.half
        return np.clip(np.rint(scaled * UNIT), -UNIT, UNIT)

    @property
    def ranges(self) -> tuple[np.ndarray, np.ndarray]:
        """Least and largest integers of each column; the map is monotone, step by step."""
        return self.integers(self.lower[None])[0], self.integers(self.upper[None])[0]


@dataclass(frozen=True, eq=False)
class Block:
    """Columns that are fitted together, with or without a column of ones, and the names of their statistics.

    "Gram" is the upper triangle of X'X, by rows, without the square of the ones; "response" is X'y. The ones are first.
    """

    gram: str
    response: str
    positions: tuple[int, ...]  # of the columns in a row, whose first entry is the response
    constant: bool

    @property
    def k(self) -> int:
        """Number of columns, without the ones."""
        return len(self.positions)

    @property
    def gram_sensitivity(self) -> Fraction:
        """L1 sensitivity of the gram statistic in scaled units, for columns of both signs."""
        k = self.k
        return Fraction(k * (k + 2) ** 2, 2 * (k + 1)) if self.constant else Fraction(k * (k + 1), 2)

    def design(self, integers: np.ndarray) -> np.ndarray:
        """Return the columns of a block, with the ones where it has them, on the grid."""
        chosen = integers[:, list(self.positions)]
        return np.column_stack([np.full(len(chosen), UNIT), chosen]) if self.constant else chosen

    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Return which two columns of the design each entry of the gram statistic multiplies."""
        first, second = np.triu_indices(self.k + self.constant)
        return first[self.constant :], second[self.constant :]

    def statistics(self, ranges: tuple[np.ndarray, np.ndarray]) -> tuple[Statistic, ...]:
        """Return the statistics, given the ranges of all columns on the grid."""
        low, high = (self.design(bound[None])[0] for bound in ranges)
        first, second = self.pairs()
        k = self.k
        ends = (low[first], high[first]), (low[second], high[second])
        gram = _products(self.gram, *ends, self.gram_sensitivity, first == second)
        response = _products(self.response, (low, high), (ranges[0][:1], ranges[1][:1]), Fraction(2 * len(low)))
        return (gram, response) if k else (response,)

    def entries(self, integers: np.ndarray, name: str) -> np.ndarray:
        """Return what each row adds to a statistic, exact multiples of 2^-30."""
        design = self.design(integers)
        if name == self.response:
            return design * integers[:, :1] / UNIT**2
        first, second = self.pairs()
        return design[:, first] * design[:, second] / UNIT**2

    def counts(self, integers: np.ndarray, name: str) -> np.ndarray:
        """Return the sums of the rows' entries in units of 2^-30, for at most EXACT_ROWS rows."""
        design = self.design(integers)
        if name == self.response:
            return (integers[:, 0] @ design).astype(np.int64)
        return (design.T @ design)[self.pairs()].astype(np.int64)

    def moments(self, sums: Mapping[str, np.ndarray], n: int) -> dict[str, np.ndarray]:
        """Return means and second moments of sums of shape (..., size), the ones taken out of the others.

        Returns
        -------
        dict
            "mean", shape (..., k), and "response_mean", shape (...): of the columns and of the response where there are
            ones, otherwise 0. "gram", shape (..., k, k), and "cross", shape (..., k): S and X'y / n about these.
        """
        cross = np.asarray(sums[self.response]) / n
        shape, k = cross.shape[:-1], self.k
        triangle = np.asarray(sums[self.gram]) / n if k else np.empty((*shape, 0))
        mean, response_mean = np.zeros((*shape, k)), np.zeros(shape)
        if self.constant:
            mean, triangle = triangle[..., :k], triangle[..., k:]
            response_mean, cross = cross[..., 0], cross[..., 1:]
        gram = np.empty((*shape, k, k))
        first, second = np.triu_indices(k)
        gram[..., first, second] = gram[..., second, first] = triangle
        return {
            "mean": mean,
            "response_mean": response_mean,
            "gram": gram - mean[..., :, None] * mean[..., None, :],
            "cross": cross - mean * response_mean[..., None],
        }

    def simulate(
        self, model: Mapping[str, np.ndarray], n: int, replicates: int, generator: Any
    ) -> dict[str, np.ndarray]:
        """Return sums for responses of the model, the columns being as they are: X'X and X'y of `replicates` tables.

        X'X = n S, and X'y = n (S b + C / sqrt(n)) with C ~ N(0, variance S), ones included.
        """
        gram, mean = model["gram"], model["mean"]
        deviation = np.sqrt(n * model["variance"])
        second = gram + np.outer(mean, mean)
        triangle = n * second[np.triu_indices(self.k)]
        columns = deviation * generator.standard_normal((replicates, self.k)) @ np.linalg.cholesky(gram).T
        cross = n * (gram @ model["coefficients"]) + columns
        if self.constant:
            total = n * model["response_mean"] + deviation * generator.standard_normal((replicates, 1))
            triangle = np.concatenate([n * mean, triangle])
            cross = np.concatenate([total, cross + mean * total], axis=1)
        return {self.gram: np.broadcast_to(triangle, (replicates, len(triangle))), self.response: cross}


def eigenvalue_floor(n: int, deviation: float) -> float:
    """Return the floor of the eigenvalues of S, from the standard deviation of the noise in an entry of n S.

    It depends on no row: a quarter of the deviation, by n, and at least 1/n, what one row at its bounds adds.
    """
    return max(FLOOR_SHARE * deviation, 1.0) / n


def floored(gram: np.ndarray, least: float) -> np.ndarray:
    """Return symmetric matrices, shape (..., k, k), with eigenvalues below `least` replaced by it."""
    matrices = gram.reshape(-1, *gram.shape[-2:]).copy()
    low = np.flatnonzero(np.linalg.eigvalsh(matrices).min(axis=-1, initial=np.inf) < least)
    values, vectors = np.linalg.eigh(matrices[low])
    raised = (vectors * np.maximum(values, least)[:, None, :]) @ vectors.swapaxes(-1, -2)
    matrices[low] = (raised + raised.swapaxes(-1, -2)) / 2
    return matrices.reshape(gram.shape)


def solve(gram: np.ndarray, cross: np.ndarray, least: float) -> np.ndarray:
    """Return the solutions of gram b = cross, shape (..., k), with the eigenvalues of gram floored."""
    try:  # nearly always nothing is to be floored, and a root of the difference costs a tenth of its eigenvalues
        np.linalg.cholesky(gram - least * np.eye(gram.shape[-1]))
    except np.linalg.LinAlgError:
        gram = floored(gram, least)
    return np.linalg.solve(gram, cross[..., None])[..., 0]


def _products(
    name: str,
    first: tuple[np.ndarray, np.ndarray],
    second: tuple[np.ndarray, np.ndarray],
    bound: Fraction,
    square: np.ndarray | bool = False,
) -> Statistic:
    """Return the statistic of products of integers in two ranges, with a proved bound in scaled units."""
    corners = np.array([a * b for a in first for b in second])
    low, high = corners.min(axis=0), corners.max(axis=0)
    low = np.where(square & (low < 0), 0.0, low).astype(np.int64)
    high = high.astype(np.int64)
    most = min(int((high - low).sum()), floor(bound * int(UNIT) ** 2))
    return Statistic(name, len(low), ldexp(1.0, -2 * BITS), low, high, most)
