"""Linear regression from noisy sums: coefficients of interest, nuisance, and two ways to the noise variance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from pymc_dpdepth.extrema.family import Family, Sums
from pymc_dpdepth.extrema.regression_sums import (
    BITS,
    EXACT_ROWS,
    LARGEST_N,
    Block,
    Scaling,
    eigenvalue_floor,
    floored,
    solve,
)
from pymc_dpdepth.extrema.statistic import Statistic, bits_of_entries, bounded_statistic

__all__ = ["LinearRegression"]

RESIDUAL, MOMENTS = "residual", "moments"
SETTINGS = ("response", "interest", "nuisance", "intercept", "orthogonal", "variance", "statistic_names")
# Widths whose quotients, and noise in their units, stay well inside the range of doubles; those of Gaussian.
SMALLEST, LARGEST = 1e-100, 1e100


class LinearRegression(Family):
    r"""Coefficients of a linear model, from noisy X'X and X'y [1]_.

    y = Z b + X g + e with e ~ N(0, sigma^2 I); the interval is for the largest or smallest of the k coefficients b.

    Parameters
    ----------
    response : str
        Name of the column y. The columns of an array are called x0, x1, ...
    interest : str or sequence of str
        The columns Z, whose coefficients are the parameters.
    nuisance : str or sequence of str, optional
        The columns X.
    bounds : pair of float, or dict of str to pair
        Public bounds (low, high), for all columns or for each by its name, low < high. Entries are clipped to them, in
        the units of the column; the model is one of the clipped columns. Noise is in proportion to their distance.
    intercept : bool, optional
        Whether a column of ones is among the nuisance: by default, yes. Its share of X'X that is the public number
        n gets no noise. Columns are then shifted to the middle of their bounds, which changes no slope. Without it no
        column is shifted, since that would be another model, and noise is in proportion to the larger of |low|, |high|.
    orthogonal : bool, optional
        Declare Z'X = 0, by design and known without the rows, for everything in the model beside Z, the ones included
        if there is an intercept. Only Z'Z and Z'y are then needed for b, and get all of their epsilon; Z is not
        shifted. Nuisance columns and the intercept, if there are any, are fitted from noisy sums of their own
        ("nuisance_gram", "nuisance_response"), and serve only to make sigma^2 smaller. Leave them out, with
        intercept=False, to spend nothing on them: their share then counts as noise, and sigma^2 and the interval are
        on the safe side. Nothing is ever computed from coefficients without noise: see docs/errata.md.
    variance : {"residual", "moments"}, optional
        How sigma^2 comes about. "residual": the residual sum of squares at the released coefficients, whose predictions
        are clipped to the bounds of y, with noise; it is too large rather than too small. "moments": y'y with noise,
        less what the released sums say is explained, which is too small rather than too large. In
        benchmarks/bench_extrema_variance.py the first has the smaller error from 1000 rows on.

    Raises
    ------
    ValueError
        If a column is named twice, bounds are not as described, or `variance` is none of the two.

    Notes
    -----
    Each column is scaled to [-1, 1] by its bounds and rounded to multiples of 2^-15 there, so products are integers in
    units of 2^-30. With p columns in scaled units, the L1 sensitivities for replacing one row are

    - "gram", the upper triangle of X'X: p (p + 1) / 2; with k columns and ones, k (k + 2)^2 / (2 (k + 1));
    - "response", X'y: 2 p, ones included; less where y and a column have one sign each;
    - "residual": the least of (1 + sum of |b_j|)^2 in scaled units, and of the squared range of y;
    - "square" (for "moments"), y'y: 1.

    All hold exactly for the integers that are added up: level "exact". `regression_sums.py` has the proof. With common
    bounds |x| <= g, |y| <= z they are g^2 p (p + 1) / 2, 2 p g z, (z + g sum of |b_j|)^2 and z^2, in units of the
    values.

    With S = X'X / n + w_1 / n, symmetric, the estimates are b = S^-1 (X'y + w_2) / n. Eigenvalues of S (with an
    intercept: of S about the means) are raised to at least s/(4n), s the standard deviation of an entry of w_1, and to
    1/n in scaled units, which is what one row at its bounds adds: a floor that depends on no row. sigma^2 is kept
    between the deviation of its own noise by n (or 1/n) and 1, the largest it can be in scaled units. Where the floor
    matters, noise drowns the columns and the interval is very wide: take more rows, fewer columns, or more epsilon.

    A replicate is b* = (S + w_1*/n)^-1 (S b + C*/sqrt(n) + w_2*/n) with C* ~ N(0, sigma^2 S) and fresh noise w_1*, w_2*
    of the same law. It holds the columns fixed; no rows are simulated.

    References
    ----------
    .. [1] X. Fu, Y. Xiang and X. Guo, Differentially private confidence interval for extrema of parameters, 2023.

    Examples
    --------
    >>> import pymc_dpdepth as dpd
    >>> family = dpd.extrema.LinearRegression("y", ["a", "b"], bounds={"y": (-5, 5), "a": (0, 1), "b": (0, 1)})
    >>> family.statistic_names
    ('gram', 'response', 'residual')
    >>> [round(statistic.real_sensitivity, 6) for statistic in family.statistics(1000, ["y", "a", "b"], {})]
    [5.333333, 6.0]
    """

    name = "linear_regression"
    guarantee = "exact"

    def __init__(
        self,
        response: str,
        interest: str | Sequence[str],
        nuisance: str | Sequence[str] = (),
        *,
        bounds: Sequence[float] | Mapping[str, Sequence[float]],
        intercept: bool = True,
        orthogonal: bool = False,
        variance: str = RESIDUAL,
    ):
        self.response = response
        self.interest, self.nuisance = _names(interest, "interest"), _names(nuisance, "nuisance")
        self._columns = (response, *self.interest, *self.nuisance)
        if not isinstance(response, str) or not self.interest or len(set(self._columns)) < len(self._columns):
            raise ValueError(
                "Expected the name of one response and at least one column of interest, each column named once among "
                f"response, interest and nuisance; got {self._columns!r}."
            )
        for word, flag in (("intercept", intercept), ("orthogonal", orthogonal)):
            if not isinstance(flag, bool):
                raise ValueError(f"{word}: expected True or False, got {flag!r}.")
        if variance not in (RESIDUAL, MOMENTS):
            raise ValueError(f'variance: expected "{RESIDUAL}" or "{MOMENTS}", got {variance!r}.')
        self.intercept, self.orthogonal, self.variance = intercept, orthogonal, variance
        self._bounds = _bounds(bounds, self._columns)
        k, width = len(self.interest), len(self._columns)
        centered = np.full(width, intercept)
        if orthogonal:
            centered[1 : k + 1] = False
        self._scaling = Scaling.of(np.array(list(self._bounds.values())), centered)
        inside, outside = tuple(range(1, k + 1)), tuple(range(k + 1, width))
        if not orthogonal:
            self._blocks: tuple[Block, ...] = (Block("gram", "response", inside + outside, intercept),)
        else:
            self._blocks = (Block("gram", "response", inside, False),)
            if outside or intercept:
                self._blocks += (Block("nuisance_gram", "nuisance_response", outside, intercept),)
        last = RESIDUAL if variance == RESIDUAL else "square"
        first = (
            name for block in self._blocks for name in ((block.gram, block.response) if block.k else (block.response,))
        )
        self.statistic_names = (*first, last)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; a setting only once, since sums and record must be of the same settings."""
        if name in SETTINGS and name in self.__dict__:
            raise AttributeError(f"{name}: expected to stay as it is; make another LinearRegression.")
        super().__setattr__(name, value)

    @property
    def bounds(self) -> Mapping[str, tuple[float, float]]:
        """Public bounds of each column, which cannot be changed."""
        return MappingProxyType(self._bounds)

    def columns(self) -> tuple[str, ...]:
        """Return the columns: the response, those of interest, the nuisance."""
        return self._columns

    def parameters(self, columns: Sequence[str]) -> list[str]:
        """Return the names of the columns of interest."""
        if tuple(columns) != self._columns:
            raise ValueError(f"Expected the columns {self._columns!r} in this order; got {tuple(columns)!r}.")
        return list(self.interest)

    def centers(self, columns: Sequence[str]) -> np.ndarray:
        """Return the middle of the bounds of each column."""
        return self._scaling.lower / 2 + self._scaling.upper / 2

    def statistics(self, n: int, columns: Sequence[str], released: Sums) -> tuple[Statistic, ...]:
        """Return the sums of products; once they are released, the residual sum of squares, if it is asked for."""
        if not 1 <= n <= LARGEST_N:
            raise ValueError(f"Expected between 1 and 2^30 rows, so that sums of products fit in 64 bits; got {n}.")
        if self._blocks[0].gram not in released:
            ranges = self._scaling.ranges
            first = tuple(statistic for block in self._blocks for statistic in block.statistics(ranges))
            if self.variance == RESIDUAL:
                return first
            largest = int(np.square(ranges)[:, 0].max())
            grid = 2.0 ** (-2 * BITS)
            return (*first, Statistic("square", 1, grid, np.zeros(1, dtype=np.int64), np.array([largest]), largest))
        if self.variance == MOMENTS or RESIDUAL in released:
            return ()
        return (self._residual(n, released),)

    def later_sensitivities(self, n: int, columns: Sequence[str]) -> dict[str, int]:
        """Return that of the residual: its one entry is at least 0, and has so many bits on its grid."""
        return {RESIDUAL: 2 ** bits_of_entries(n)} if self.variance == RESIDUAL else {}

    def _residual(self, n: int, released: Sums) -> Statistic:
        """Return the statistic of squared residuals at the released coefficients, which come with it.

        They are those of (ones, columns) in scaled units.
        """
        coefficients = np.zeros(len(self._columns))  # the first is that of the ones
        for block in self._blocks:
            moments = block.moments(released, n)
            # The deviation that an epsilon of sqrt(2) gives stands in for that of the noise, which is not known here.
            least = eigenvalue_floor(n, float(block.gram_sensitivity))
            slopes = solve(moments["gram"], moments["cross"], least)
            coefficients[list(block.positions)] = slopes
            coefficients[0] += moments["response_mean"] - (moments["mean"] * slopes).sum()
        low, high = (bound / 2.0**BITS for bound in self._scaling.ranges)
        reach = np.maximum(-low, high)
        most = min(reach[0] + abs(coefficients[0]) + (np.abs(coefficients) * reach)[1:].sum(), high[0] - low[0])
        return replace(bounded_statistic(RESIDUAL, 0.0, most**2, n), public=coefficients)

    def entries(self, rows: np.ndarray, name: str, released: Sums) -> np.ndarray:
        """Return products of a row's scaled entries; the residual's follow from its statistic, in `counts`."""
        integers = self._scaling.integers(rows)
        if name == "square":
            return np.square(integers[:, :1]) / 4.0**BITS
        for block in self._blocks:
            if name in (block.gram, block.response):
                return block.entries(integers, name)
        raise ValueError(f"Expected the name of a sum of products, got {name!r}.")

    def counts(self, rows: np.ndarray, statistic: Statistic, released: Sums) -> np.ndarray:
        """Return the sum of the rows' entries in units of the grid."""
        total = np.zeros(statistic.size, dtype=np.int64)
        for start in range(0, len(rows), EXACT_ROWS):
            integers = self._scaling.integers(rows[start : start + EXACT_ROWS])
            if statistic.name == RESIDUAL:
                total += statistic.counts(self._squared_residuals(integers, statistic)[:, None]).sum(axis=0)
            elif statistic.name == "square":
                total += np.square(integers[:, 0].astype(np.int64)).sum()
            else:
                (block,) = (block for block in self._blocks if statistic.name in (block.gram, block.response))
                total += block.counts(integers, statistic.name)
        return total

    def _squared_residuals(self, integers: np.ndarray, statistic: Statistic) -> np.ndarray:
        """Return each row's squared residual, from elementwise arithmetic alone: it depends on no other row."""
        scaled = integers / 2.0**BITS
        fitted = np.full(len(scaled), statistic.public[0])
        for column, coefficient in zip(scaled.T[1:], statistic.public[1:], strict=True):
            fitted += column * coefficient
        low, high = (bound[0] / 2.0**BITS for bound in self._scaling.ranges)
        return np.square(scaled[:, 0] - np.clip(fitted, low, high))

    def estimates(self, sums: Sums, n: int, deviations: Mapping[str, float]) -> np.ndarray:
        """Return the coefficients of interest, in units of the response per unit of the column."""
        block = self._blocks[0]
        moments = block.moments(sums, n)
        least = eigenvalue_floor(n, deviations[block.gram])
        return self._in_units(solve(moments["gram"], moments["cross"], least))

    def _in_units(self, slopes: np.ndarray) -> np.ndarray:
        """Return the coefficients of interest among scaled ones in the units of the values."""
        k, half = len(self.interest), self._scaling.half
        return slopes[..., :k] * (half[0] / half[1 : k + 1])

    def model(self, sums: Sums, n: int, deviations: Mapping[str, float]) -> dict[str, np.ndarray]:
        """Return the fitted model of the columns of interest (without orthogonality, of all columns), in scaled units.

        Returns
        -------
        dict of str to ndarray
            "gram", floored, "mean", "response_mean", "coefficients" and "variance": of the residual.
        """
        model, explained = {}, np.zeros(())
        for block in self._blocks:
            moments = block.moments(sums, n)
            least = eigenvalue_floor(n, deviations.get(block.gram, 0.0))
            slopes = solve(moments["gram"], moments["cross"], least)
            explained = explained + (moments["cross"] * slopes).sum() + moments["response_mean"] ** 2
            if not model:
                model = {**moments, "gram": floored(moments["gram"], least), "coefficients": slopes}
        last = self.statistic_names[-1]
        variance = np.asarray(sums[last])[0] / n
        if self.variance == MOMENTS:
            variance = variance - explained
        return {**model, "variance": np.clip(variance, min(max(1.0, deviations[last]) / n, 1.0), 1.0)}

    def simulate(
        self, model: Mapping[str, np.ndarray], n: int, replicates: int, generator: Any
    ) -> dict[str, np.ndarray]:
        """Return X'X and X'y for new responses: n S, and n (S b + C / sqrt(n)) with C ~ N(0, sigma^2 S)."""
        return self._blocks[0].simulate(model, n, replicates, generator)

    def describe(self) -> dict[str, Any]:
        """Return the settings: the arguments of the constructor, with bounds for each column."""
        return {
            "name": self.name,
            "response": self.response,
            "interest": list(self.interest),
            "nuisance": list(self.nuisance),
            "bounds": {name: list(pair) for name, pair in self._bounds.items()},
            "intercept": self.intercept,
            "orthogonal": self.orthogonal,
            "variance": self.variance,
        }


def _names(names: Any, word: str) -> tuple[str, ...]:
    """Return one name or several as a tuple."""
    listed = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, Sequence) else None
    if listed is None or not all(isinstance(name, str) for name in listed):
        raise ValueError(
            f"{word}: expected the name of a column or a list of names, got {names!r}. The columns of an array are "
            "called x0, x1, ..."
        )
    return listed


def _bounds(bounds: Any, columns: tuple[str, ...]) -> dict[str, tuple[float, float]]:
    """Return public bounds for each column, by its name."""
    if not isinstance(bounds, Mapping):
        bounds = dict.fromkeys(columns, bounds)
    if set(bounds) != set(columns):
        missing, unknown = sorted(set(columns) - set(bounds)), sorted(map(str, set(bounds) - set(columns)))
        raise ValueError(
            f"bounds: expected one pair for each of the columns {columns!r}; missing are {missing}, unknown are "
            f"{unknown}. Bounds are public: take them from what is known without the rows."
        )
    checked = {}
    for name in columns:
        try:
            low, high = (float(bound) for bound in bounds[name])
        except (TypeError, ValueError, OverflowError):
            low = high = np.nan
        if not (np.isfinite([low, high]).all() and low < high):
            raise ValueError(f"bounds: expected two finite numbers low < high for {name!r}, got {bounds[name]!r}.")
        if max(abs(low), abs(high)) >= LARGEST or high - low <= SMALLEST:
            raise ValueError(
                f"bounds: expected a width above {SMALLEST:g} and sizes below {LARGEST:g} for {name!r}, got "
                f"{bounds[name]!r}. Choose other units."
            )
        checked[name] = (low, high)
    return checked
