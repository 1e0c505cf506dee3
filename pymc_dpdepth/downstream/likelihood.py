r"""The likelihood of released values: an unbiased estimate whose sharp part is exact.

The likelihood of parameters phi, given a released r, is the mean of the mechanism's density over the tables that the
population may have given,

    L(phi) = E_X|phi [ g(N(X)) / Z(X) ],    Z(X) = sum over the gaps between rows of (prior mass) * g(gap),

with N the rows below r and g(N) = exp(beta D). Of these, g(N) is sharp: it moves by a factor exp(epsilon / 2) with
every row, so that a mean over simulated tables would rest on the few whose median lies near r. It is taken out:

    L(phi) = T(phi) * E_N~tilted E_X|N,phi [ 1 / Z(X) ],    T(phi) = sum_N P(N | phi) g(N),

T summed exactly and the mean estimated from M tables, drawn given N. Only the rows near the middle matter to Z. The
same holds for several releases from one table: the counts at their points are a chain (`counts`), and the mean is
that of the product of the 1 / Z.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pymc_dpdepth.downstream.counts import box_counts, chain_counts, log_factorials
from pymc_dpdepth.downstream.observations import DepthValues, Median
from pymc_dpdepth.downstream.order_statistics import (
    box_log_normalisers,
    log_normalisers,
    place_of_first,
    uniform_order_statistics,
)
from pymc_dpdepth.downstream.population import Population, RowLaw

__all__ = ["Randomness", "log_likelihood_of", "tables_of"]

# Ranks whose weight is below e^-15 of the largest, and below that by what the prior mass of the middle may be, are left
# out of Z: a share of about 1e-7.
LEFT_OUT, MARGIN_OF_MASS = 15.0, 8.0
# Numbers of the order statistics of one chunk of parameter values: 8 MB.
CHUNK = 2**20


@dataclass(frozen=True)
class Randomness:
    """Where an estimate gets its numbers from.

    Attributes
    ----------
    generator : NumPy Generator or None
        None replaces every draw by its middle: one typical table, a smooth and cheap stand-in for the estimate.
    replicates : int
        Tables M for each parameter value.
    """

    generator: Any
    replicates: int

    def uniforms(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return uniform numbers."""
        return np.full(shape, 0.5) if self.generator is None else self.generator.random(shape)

    def exponentials(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return standard exponential numbers."""
        return np.ones(shape) if self.generator is None else self.generator.standard_exponential(shape)

    def betas(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return Beta(a, b) numbers."""
        return a / (a + b) if self.generator is None else self.generator.beta(a, b)


class Table:
    """What was released from one table of rows, and its likelihood.

    Parameters
    ----------
    observations : sequence of Median and DepthValues
        All of the same n.
    least_outside : bool
        Whether gaps outside the window get the weight of the outermost, a lower bound of Z and so an upper one of the
        likelihood, and not that of the window's neighbours, an upper bound of Z.
    """

    def __init__(self, observations: Sequence[Median | DepthValues], least_outside: bool = False):
        self.observations = list(observations)
        self.n = self.observations[0].n
        self.medians = [o for o in self.observations if isinstance(o, Median)]
        self.coupled = any(median.coupled for median in self.medians)
        self.factorials = log_factorials(self.n)
        self.first = min((_first_rank(median) for median in self.medians), default=0)
        self.window = self.n + 2 - 2 * self.first if self.medians else 0
        self.weights = [np.exp(m.log_factors()[self.first - 1 : self.first + self.window]) for m in self.medians]
        self.outside = 0 if least_outside else self.first - 1  # depth's count outside the window
        for median, weights in zip(self.medians, self.weights, strict=True):
            weights[[0, -1]] = np.exp(median.log_factors()[self.outside])
        width = len(self.medians[0].values) if self.medians else 1
        self.columns = [] if self.coupled else [self._factors(j) for j in range(width)]

    def log_likelihood(self, laws: Sequence[RowLaw], randomness: Randomness) -> np.ndarray:
        """Return log of the estimate for P parameter values, shape (P,).

        It is the density of what was released over that of a release that no row has touched: a draw of the mechanism's
        prior, the noisy depth of a uniform count. Over such releases its mean is 1, whatever the parameters.
        """
        if self.coupled:
            return self._of_boxes(laws, randomness)
        log_totals, log_inverses = 0.0, 0.0
        for j, law in enumerate(laws):
            totals, inverses = self._of_column(j, law, randomness)
            log_totals, log_inverses = log_totals + totals, log_inverses + inverses
        return log_totals + _log_mean(log_inverses)

    def _of_column(self, j: int, law: RowLaw, randomness: Randomness) -> tuple[np.ndarray, Any]:
        """Return log T (P,) and the log of prod 1/Z (P, M) for one column."""
        points, factors = self.columns[j]
        lower, upper = law.tails(points)
        uniforms = randomness.uniforms((len(lower), randomness.replicates, len(points)))
        log_totals, counts = chain_counts(lower, upper, factors, self.factorials, uniforms)
        if not self.medians:
            return log_totals, np.zeros((len(lower), randomness.replicates))
        rows = law.quantiles(self._order_statistics(lower, counts, randomness))
        log_inverses = 0.0
        for median, weights in zip(self.medians, self.weights, strict=True):
            log_inverses = log_inverses - log_normalisers(*_prior_tails(median, j, rows), weights)
        return log_totals, log_inverses

    def _factors(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the ascending points of column j and their factors by count; equal points share one."""
        points, factors = [], []
        for observation in self.observations:
            if isinstance(observation, Median):
                points.append(observation.values[j])
                factors.append(observation.log_factors())
            else:
                points += observation.points.tolist()
                logs = observation.log_factors()
                factors += list(logs - _log_mean(logs)[:, None])
        distinct, places = np.unique(points, return_inverse=True)
        summed = np.zeros((len(distinct), self.n + 1))
        np.add.at(summed, places, np.array(factors))
        return distinct, summed

    def _of_boxes(self, laws: Sequence[RowLaw], randomness: Randomness) -> np.ndarray:
        (median,) = self.medians
        tails = [law.tails(median.values[j : j + 1]) for j, law in enumerate(laws)]
        lower, upper = (np.concatenate(side, axis=1) for side in zip(*tails, strict=True))
        d = lower.shape[1]
        uniforms = randomness.uniforms((len(lower), randomness.replicates, d + 1))
        log_totals, counts = box_counts(lower, upper, median.rate, self.factorials, uniforms)
        priors = []
        for j, law in enumerate(laws):
            one = np.ascontiguousarray(lower[:, j : j + 1]), np.ascontiguousarray(counts[:, :, j : j + 1])
            priors.append(_prior_tails(median, j, law.quantiles(self._order_statistics(*one, randomness))))
        half = self.n // 2
        levels = np.arange(self.first, half + 1)
        weights = np.exp(median.rate * (levels - half)) * -np.expm1(-median.rate)
        outside = np.exp(median.rate * (self.outside - half))
        low, high = (np.stack(side) for side in zip(*priors, strict=True))
        logs = box_log_normalisers(low, high, np.concatenate([[outside], weights]))
        return log_totals + _log_mean(-logs)

    def _order_statistics(self, lower: np.ndarray, counts: np.ndarray, randomness: Randomness) -> np.ndarray:
        """Return cdf values of the rows of the window's ranks, shape (P, M, W)."""
        starts = randomness.betas(*place_of_first(counts, self.n, self.first))
        places = randomness.exponentials((*counts.shape[:2], self.window))
        uniform_order_statistics(lower, counts, self.n, self.first, starts, places)
        return places


def _first_rank(median: Median) -> int:
    """Return the first rank of the window, which is symmetric about the middle."""
    d = len(median.values) if median.coupled else 1
    least = -LEFT_OUT - d * (np.log(median.n + 1.0) + MARGIN_OF_MASS)
    # Gap i lies below row i + 1.
    return min(int(np.argmax(median.log_factors() >= least)) + 1, (median.n + 1) // 2)


def _prior_tails(median: Median, j: int, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mechanism prior's tails at rows."""
    family, parameters = median.priors[j]
    with np.errstate(all="ignore"):
        lower, upper = family.tails(rows, *parameters)
    return np.ascontiguousarray(lower), np.ascontiguousarray(upper)


def _log_mean(logs: np.ndarray) -> np.ndarray:
    """Return log mean exp along the last axis."""
    top = logs.max(axis=-1)
    return top + np.log(np.exp(logs - top[..., None]).mean(axis=-1))


def tables_of(
    observations: Sequence[Median | DepthValues], d: int, same_rows: bool, least_outside: bool = False
) -> list[Table]:
    """Sort observations by the table they come from; see `Table` for `least_outside`.

    Raises
    ------
    ValueError
        If they can't come from one table, or their joint law is not worked out here.
    """
    for observation in observations:
        width = 1 if isinstance(observation, DepthValues) else len(observation.values)
        if width != d:
            raise ValueError(f"population_model: expected a row with as many columns as the release, {width}, got {d}.")
    if not same_rows:
        return [Table([observation], least_outside) for observation in observations]
    sizes = {observation.n for observation in observations}
    if len(sizes) > 1:
        raise ValueError(
            f"release: expected releases of one table, of the same number of rows, got {sorted(sizes)}; pass "
            "same_rows=False for tables of different people."
        )
    table = Table(observations, least_outside)
    if table.coupled and len(observations) > 1:
        raise ValueError(
            "release: halfspace medians of several columns couple these, and the joint law of two from one table is "
            'not worked out here; expected one, or medians of depth="integrated_rank_weighted", or one column.'
        )
    return [table]


def log_likelihood_of(
    tables: Sequence[Table], population: Population, randomness: Randomness
) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function from places (P, size) to the log of the estimate (P,)."""
    numbers = max((table.window * population.d for table in tables), default=1) * randomness.replicates
    chunk = max(1, CHUNK // max(numbers, 1))

    def evaluate(places: np.ndarray) -> np.ndarray:
        logs = np.zeros(len(places))
        for part in _chunks(len(places), chunk):
            laws = population.rows(places[part])
            for table in tables:
                logs[part] += table.log_likelihood(laws, randomness)
        return np.where(np.isnan(logs), -np.inf, logs)

    return evaluate


def _chunks(count: int, size: int) -> Iterator[slice]:
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))
