"""Means of columns, for rows of a multivariate normal law: clipped to a public box, with an unknown covariance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pymc_dpdepth.extrema.family import Family, Sums
from pymc_dpdepth.extrema.statistic import BITS_OF_ENTRIES, BITS_OF_SUMS, Statistic, power_of_two_above

__all__ = ["Gaussian"]

MEAN, COVARIANCE = "mean", "covariance"

# For the products, half of the widest range takes at most this many bits on the grid. A product of two entries is then
# an integer of at most 2^40 in size, and every sum of at most 2^13 of them, in whatever order and grouping, one of at
# most 2^53: doubles hold all of these, so a product of matrices of doubles that adds up products (as BLAS does, with
# fused operations or without) makes no rounding error.
BITS_OF_ROWS = 20
EXACT_ROWS = 2 ** (53 - 2 * BITS_OF_ROWS)
# D1 and D2 take about this many bits at most, which leaves room for the noise of an epsilon down to 2^-12 in 64 bits.
BITS_OF_SENSITIVITY = 44
# Widths whose squares, and those of their grids, stay well inside the range of doubles.
SMALLEST, LARGEST = 1e-100, 1e100


class Gaussian(Family):
    r"""Means mu_j of the columns, for rows of N(mu, Sigma).

    Rows are clipped to a public box with middle c and half-widths h_j. x - c is rounded twice, to public grids: for
    usual n and k to u, in steps e of some 2^-30 of the widest h_j, and to v, in steps g of 2^-20 of it. Released are
    the sums of u, with L1 sensitivity D1 = 2 (h_1 + ... + h_k), and the upper triangle of the sum of v v', with
    D2 = ((h_1 + ... + h_k)^2 + h_1^2 + ... + h_k^2) / 2, the sum of h_i h_j over i <= j. With noise w1, w2,

        mu = c + (sum u + w1) / n,   Sigma = (sum v v' + w2) / n - (mu - c)(mu - c)',

    and in the bootstrap the means are drawn from N(mu, Sigma / n). Variances are first raised by g (h_j + g / 4) +
    n e^2, for the rounding. Noise may take Sigma out of the positive definite matrices. So its eigenvalues are raised
    to at least f, the standard deviation of an entry of w2 / n, or the least of what the variances were raised by; then
    rows and columns are scaled, so that the variances are again what they were before, or f where that is more.

    Parameters
    ----------
    bounds : tuple of two numbers or of two arrays
        Public (lower, upper), the same for all columns of interest or one number for each, in the units of the data.
        Chosen without the rows. **The parameters are the means of the clipped rows**, so bounds that cut off much of
        one side move them.
    interest : sequence of str or int, optional
        The columns of interest; the others are not even read, since the bootstrap needs the covariance of these alone.
        By default all columns of the data.

    Notes
    -----
    Proof of D2. Let x and y be the entries v of a row and of the one that replaces it, p = x + y, q = x - y. Then
    x_i x_j - y_i y_j = (p_i q_j + q_i p_j) / 2 and |p_i| + |q_i| = 2 max(|x_i|, |y_i|) <= 2 h_i. So over all pairs
    (i, j) the absolute changes add up to at most (sum |p_i|)(sum |q_i|) <= (sum h_i)^2, and over the pairs i = j to at
    most sum h_i^2. The upper triangle has half of both together. It is attained for x = h, y = 0. On the grid the same
    holds with integers, so both sensitivities are exact: the level is "exact".

    The floor f is public: it depends on n, epsilon and the bounds. Where a variance is below it, the noise drowns it,
    and an estimate that noise made too small would make the interval too short. Raising eigenvalues alone would raise
    the variances, too, and make the interval too long where there are many columns.

    **Choose units in which the boxes are about equally wide.** Noise has the same size in all means, that of the widest
    box, in which a narrow column is lost; and so has rounding. The limits allow for both. |v - u| <= (g + e) / 2, so
    the mean of v^2 is below that of u^2 by at most some (g / 2)(2 h_j + g / 2), to which it comes only where the
    entries of a column keep to a few values. A mean is wrong by at most e / 2. With a standard error s, a 95% limit
    is off by less than e / 2 + 1.645 (s - sqrt(s^2 + e^2)), since e^2 was added to s^2; that is at most .08 s, which
    makes .95 to .94, at s = 3 e. Noise alone is a hundred times as large as e / 2 where n epsilon is below 10^7.

    Neither the means nor the limits are cut off at the bounds: if the noise took an estimate beyond one of them,
    cut-off replicates would all be equal, and the interval too short.

    References
    ----------
    .. [1] X. Fu, Y. Xiang and X. Guo, Differentially private confidence interval for extrema of parameters, 2023.

    Examples
    --------
    >>> import pymc_dpdepth as dpd
    >>> dpd.extrema.Gaussian(bounds=(-4, 4)).describe()
    {'name': 'gaussian', 'bounds': [-4.0, 4.0], 'interest': None}
    """

    name = "gaussian"
    statistic_names = (MEAN, COVARIANCE)
    guarantee = "exact"

    def __init__(self, bounds: Any, interest: Sequence[str | int] | str | int | None = None):
        self._lower, self._upper = _read_bounds(bounds)
        if interest is not None:
            interest = [interest] if isinstance(interest, str | int | np.integer) else list(interest)
            interest = [int(label) if isinstance(label, np.integer) else label for label in interest]
            if not interest or len(set(interest)) < len(interest):
                raise ValueError(f"interest: expected one or more different columns, got {interest!r}.")
        self._interest = interest

    def columns(self) -> list[str | int] | None:
        """Return the columns of interest; None for all."""
        return None if self._interest is None else list(self._interest)

    def parameters(self, columns: Sequence[str]) -> list[str]:
        """Return the names of the columns, whose means are the parameters."""
        self._box(len(columns))
        return list(columns)

    def centers(self, columns: Sequence[str]) -> np.ndarray:
        """Return the middle of the bounds."""
        return self._middle(len(columns))

    def statistics(self, n: int, columns: Sequence[str], released: Sums) -> tuple[Statistic, ...]:
        """Return both statistics."""
        if released:
            return ()
        k = len(columns)
        fine, grid = self._grids(n, k)
        ends, units = (_units(self._half(k), step) for step in (fine, grid))
        first, second = np.triu_indices(k)
        products = units[first] * units[second]
        integers = [int(unit) for unit in units]
        triangle = (sum(integers) ** 2 + sum(unit**2 for unit in integers)) // 2
        return (
            Statistic(MEAN, k, fine, -ends, ends, 2 * sum(int(end) for end in ends)),
            Statistic(COVARIANCE, len(products), grid**2, np.where(first == second, 0, -products), products, triangle),
        )

    def counts(self, rows: np.ndarray, statistic: Statistic, released: Sums) -> np.ndarray:
        """Return the sums on the grid, exactly; rows are rounded first, so that products are integers."""
        total = np.zeros(statistic.size, dtype=np.int64)
        k = rows.shape[1]
        grid = statistic.grid if statistic.name == MEAN else math.sqrt(statistic.grid)  # of a power of 4: exact
        middle, most = self._middle(k), _units(self._half(k), grid).astype(np.float64)
        for start in range(0, len(rows), EXACT_ROWS):
            some = _integers(rows[start : start + EXACT_ROWS], middle, grid, most)
            sums = some.sum(axis=0) if statistic.name == MEAN else (some.T @ some)[np.triu_indices(k)]
            total += sums.astype(np.int64)
        return total

    def estimates(self, sums: Sums, n: int, deviations: Mapping[str, float]) -> np.ndarray:
        """Return the means."""
        mean = np.asarray(sums[MEAN])
        return self._middle(mean.shape[-1]) + mean / n

    def model(self, sums: Sums, n: int, deviations: Mapping[str, float]) -> dict[str, np.ndarray]:
        """Return "mean", less the middle of the box, and "covariance", positive definite."""
        mean = np.asarray(sums[MEAN]) / n
        covariance = np.empty((len(mean), len(mean)))
        first, second = np.triu_indices(len(mean))
        covariance[first, second] = covariance[second, first] = np.asarray(sums[COVARIANCE]) / n
        covariance -= np.outer(mean, mean)
        # Some parts of the rows alone may have finer grids here than they were rounded to, if there are above 2^20
        # rows: that concerns the choice of r by folds alone, and by little.
        fine, grid = self._grids(n, len(mean))
        rounding = grid * (self._half(len(mean)) + grid / 4) + n * fine**2
        covariance[np.diag_indices_from(covariance)] += rounding
        floor = max(deviations[COVARIANCE] / n, float(rounding.min()))
        values, vectors = np.linalg.eigh(covariance)
        raised = (vectors * np.maximum(values, floor)) @ vectors.T
        scale = np.sqrt(np.maximum(np.diag(covariance), floor) / np.diag(raised))
        return {"mean": mean, "covariance": raised * np.outer(scale, scale)}

    def simulate(
        self, model: Mapping[str, np.ndarray], n: int, replicates: int, generator: Any
    ) -> dict[str, np.ndarray]:
        """Return sums of n rows, drawn from their own law, N(n mu, n Sigma)."""
        covariance = model["covariance"]
        # Cholesky's root is unique, so that a seed gives the same sums on all machines; eigenvectors have arbitrary
        # signs. The part in 10^12 keeps a matrix positive definite that rounding made singular.
        root = np.sqrt(n) * np.linalg.cholesky(covariance + 1e-12 * np.diag(np.diag(covariance)))
        normal = generator.standard_normal((replicates, len(covariance)))
        return {MEAN: n * model["mean"] + normal @ root.T}

    def describe(self) -> dict[str, Any]:
        """Return the arguments."""
        bounds = [bound.tolist() for bound in (self._lower, self._upper)]
        return {"name": self.name, "bounds": bounds, "interest": self._interest}

    def _box(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the bounds of k columns."""
        if self._lower.ndim and len(self._lower) != k:
            raise ValueError(
                f"bounds: expected one pair of numbers, or arrays of {k}, one for each column of interest; got "
                f"{len(self._lower)}. Select the columns with interest=[...]."
            )
        return np.broadcast_to(self._lower, (k,)), np.broadcast_to(self._upper, (k,))

    def _middle(self, k: int) -> np.ndarray:
        lower, upper = self._box(k)
        return lower / 2 + upper / 2

    def _half(self, k: int) -> np.ndarray:
        lower, upper = self._box(k)
        return upper / 2 - lower / 2

    def _grids(self, n: int, k: int) -> tuple[float, float]:
        """Return the grids of the rows for the means and for the products: powers of two.

        n entries or products fit in the bits of a sum, and what one row moves all of them by in those of D1 or D2.
        """
        widest = power_of_two_above(float(self._half(k).max()))
        for_sums = BITS_OF_SUMS - power_of_two_above(max(n, 1))
        for_mean = BITS_OF_SENSITIVITY - power_of_two_above(2 * k)
        for_products = BITS_OF_SENSITIVITY - power_of_two_above(k * (k + 1) / 2)
        fine = min(BITS_OF_ENTRIES, for_sums, for_mean)
        coarse = min(BITS_OF_ROWS, for_sums // 2, for_products // 2)
        return math.ldexp(1.0, widest - fine), math.ldexp(1.0, widest - coarse)


def _integers(rows: np.ndarray, middle: np.ndarray, grid: float, most: np.ndarray) -> np.ndarray:
    """Return rows on the grid, as doubles that hold integers: a fixed map of each entry by itself."""
    with np.errstate(over="ignore"):  # what is infinite is cut off
        units = rows - middle
        units *= 1 / grid  # a power of two: exact
    np.rint(units, out=units)
    return np.minimum(np.maximum(units, -most, out=units), most, out=units)


def _units(half: np.ndarray, grid: float) -> np.ndarray:
    """Return half-widths in units of the grid, rounded as rows are."""
    return np.rint(half / grid).astype(np.int64)


def _read_bounds(bounds: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return checked lower and upper bounds, numbers or arrays of one length."""
    expected = "bounds: expected a public pair (lower, upper) of numbers, or of arrays with a number for each column"
    try:
        lower, upper = (np.array(bound, dtype=np.float64) for bound in bounds)
        lower, upper = (bound.copy() for bound in np.broadcast_arrays(lower, upper))
    except (TypeError, ValueError):
        raise ValueError(f"{expected}, such as (-4, 4); got {type(bounds).__name__}.") from None
    width = upper - lower
    if lower.ndim > 1 or not lower.size or not np.isfinite([lower, upper]).all() or not (width > 0).all():
        raise ValueError(f"{expected}, lower < upper, all finite.")
    if not ((width > SMALLEST) & (np.abs([lower, upper]) < LARGEST)).all():
        raise ValueError(f"{expected}, of widths above {SMALLEST:g} and sizes below {LARGEST:g}. Choose other units.")
    for bound in (lower, upper):
        bound.flags.writeable = False
    return lower, upper
