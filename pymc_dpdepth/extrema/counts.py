"""Proportions and rates from noisy counts, one for each column or one for each of several disjoint groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pymc_dpdepth.extrema.family import Family, Sums
from pymc_dpdepth.extrema.statistic import Statistic
from pymc_dpdepth.frozen import FrozenDict
from pymc_dpdepth.mechanism import NEIGHBORING, NEIGHBORING_IN_GROUPS

__all__ = ["Bernoulli", "Poisson"]

# Doubles hold all integers up to here.
LARGEST_COUNT = 2**53
# NumPy draws random folds of groups up to here.
LARGEST_TOTAL = 10**9
# Replicates are drawn as if so many more counted and so many more uncounted rows had been seen. A count at its bound
# would vary not at all otherwise, and one near it too little. 4 is the least whole number with which a column of zeros
# gets the limit 3 / n of the rule of three (P(Poisson(3) = 0) = .05) as its upper 95% limit: P(Poisson(4) <= 1) = .09,
# but P(Poisson(4) = 0) = .02. Measured coverage is in docs/extrema.md, "Near the boundary".
ADDED = 4


class _Counts(Family):
    """What Bernoulli and Poisson share: sums of integers between public bounds, and their means.

    A subclass draws sums of its law in `_centered_sums`.
    """

    guarantee = "exact"
    statistic_names = ("count",)
    _law = ""  # what the entries must be, for errors

    def __init__(self, high: int, column: str | None, by: str | None, sizes: Any, labels: Any):
        self._high, self.column, self.by = high, column, by
        self.sizes: Mapping[int, int] | None = None
        self.labels: Mapping[int, str] | None = None
        if (by is None) != (sizes is None) or (by is None) != (column is None):
            raise ValueError(
                f"Expected column=, by= and sizes= together for disjoint groups, or none of them for a parameter of "
                f"each column; got column={column!r}, by={by!r}, sizes {'not ' if sizes is None else ''}given. Select "
                "columns with columns=[...] of the interval."
            )
        if by is None:
            if labels is not None:
                raise ValueError("labels: expected only with by=, since columns have names; leave it out.")
            return
        if not isinstance(column, str) or not isinstance(by, str) or column == by:
            raise ValueError(f"Expected the names of two columns, got column={column!r}, by={by!r}.")
        self.sizes = FrozenDict(_sizes(sizes))
        self.labels = FrozenDict(_labels(labels, self.sizes, by))

    @property
    def neighboring(self) -> str:
        """Which tables are neighbours: with groups, those that differ in a row of the same group."""
        return NEIGHBORING if self.by is None else NEIGHBORING_IN_GROUPS

    def columns(self) -> tuple[str, ...] | None:
        """Return the counted column and that of the groups, or None for all columns."""
        return None if self.by is None else (self.column, self.by)

    def parameters(self, columns: Sequence[str]) -> list[str]:
        """Return the names of the columns, or of the groups."""
        return list(columns) if self.labels is None else list(self.labels.values())

    def check(self, pieces: Iterable[np.ndarray], columns: Sequence[str]) -> None:
        """Refuse entries that are no counts, unknown codes of groups, and sizes that differ from those given."""
        codes = np.fromiter(() if self.sizes is None else self.sizes, dtype=np.float64)
        found, total = np.zeros(len(codes), dtype=np.int64), 0
        for rows in pieces:
            counted = rows if self.sizes is None else rows[:, :1]
            for name, column in zip(columns, counted.T, strict=False):
                if not self._valid(column):
                    raise ValueError(f"Expected {self._law} in column {name!r}; another number came.")
            if self.sizes is not None:
                found += (rows[:, 1:] == codes).sum(axis=0)
                total += len(rows)
        if self.sizes is None:
            return
        if found.sum() < total:
            raise ValueError(
                f"Expected in column {self.by!r} only the codes of groups that are in sizes=; another code came. Codes "
                "are public: add the group with its size, or leave its rows out."
            )
        wrong = [code for code, size in zip(self.sizes, found, strict=True) if self.sizes[code] != size]
        if wrong:
            raise ValueError(
                f"Expected as many rows of each group as sizes= says; the groups {wrong!r} have other sizes. Sizes "
                "must be public: correct them, if they are, or do not use by=."
            )

    def _valid(self, column: np.ndarray) -> bool:
        raise NotImplementedError

    def statistics(self, n: int, columns: Sequence[str], released: Sums) -> tuple[Statistic, ...]:
        """Return the sums: one row moves each column's, or only that of its own group."""
        if not 1 <= n * self._high <= LARGEST_COUNT:
            raise ValueError(f"Expected between 1 row and 2^53 / {self._high} rows, got {n}.")
        if released:
            return ()
        size = len(self.parameters(columns))
        moved = size if self.sizes is None else 1
        low, high = np.zeros(size, dtype=np.int64), np.full(size, self._high, dtype=np.int64)
        return (Statistic("count", size, 1.0, low, high, moved * self._high),)

    def entries(self, rows: np.ndarray, name: str, released: Sums) -> np.ndarray:
        """Return the counts of each row, cut off at the bound; with groups, in the place of its group."""
        if self.sizes is None:
            return np.clip(rows, 0, self._high)
        member = rows[:, 1:] == np.fromiter(self.sizes, dtype=np.float64)
        return np.where(member, np.clip(rows[:, :1], 0, self._high), 0)

    def _rows(self, n: int) -> np.ndarray:
        """Return the number of rows behind each parameter, to be broadcast; in folds of the rows, the expected one."""
        if self.sizes is None:
            return np.array([float(n)])
        sizes = np.fromiter(self.sizes.values(), dtype=np.float64)
        return sizes * (n / sizes.sum())

    def estimates(self, sums: Sums, n: int, deviations: Mapping[str, float]) -> np.ndarray:
        """Return means: noisy counts by the numbers of rows, not cut off, so that noise does not shift them."""
        return np.asarray(sums["count"]) / self._rows(n)

    def model(self, sums: Sums, n: int, deviations: Mapping[str, float]) -> dict[str, np.ndarray]:
        """Return the noisy "estimate" and the "mean" from which rows are drawn, drawn away from the boundary."""
        rows = self._rows(n)
        estimate = self.estimates(sums, n, deviations)
        return {"estimate": estimate, "mean": self._away(rows * np.clip(estimate, 0.0, float(self._high)), rows)}

    def simulate(
        self, model: Mapping[str, np.ndarray], n: int, replicates: int, generator: Any
    ) -> dict[str, np.ndarray]:
        """Return sums that vary as those of the model do, but about the noisy sums.

        The center is the estimate, even beyond its bounds, where noise alone can bring it: the distance of replicates
        from the estimate is that of the estimate from the parameter.
        """
        shape = (replicates, len(model["mean"]))
        if self.sizes is None:
            rows = np.full(shape, n)
        else:
            sizes = list(self.sizes.values())
            rows = np.broadcast_to(np.array(sizes), shape)
            if n != sum(sizes):  # folds are drawn at random, whatever the groups
                rows = generator.multivariate_hypergeometric(sizes, n, size=replicates, method="marginals")
        return {"count": self._draw(generator, rows, model["mean"]) + rows * (model["estimate"] - model["mean"])}

    def _away(self, counts: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return means from counts within their bounds, after ADDED more of each kind."""
        raise NotImplementedError

    def _draw(self, generator: Any, rows: np.ndarray, mean: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def describe(self) -> dict[str, Any]:
        """Return the settings; groups as lists of [code, size] and of [code, label], since JSON has no other keys."""
        if self.sizes is None or self.labels is None:
            return {"name": self.name}
        return {
            "name": self.name,
            "column": self.column,
            "by": self.by,
            "sizes": [list(pair) for pair in self.sizes.items()],
            "labels": [list(pair) for pair in self.labels.items()],
        }


class Bernoulli(_Counts):
    """Proportions: of each of k columns of 0 and 1, or of one column in each of k disjoint groups.

    p_j = (count_j + w_j) / n_j with discrete Laplace noise w_j.

    Parameters
    ----------
    column : str, optional
        With groups: the name of the column of 0 and 1. The columns of an array are called x0, x1, ...
    by : str, optional
        With groups: the name of a column of integers that say of which group a row is. Text has to be replaced by
        codes first (``codes, names = pandas.factorize(frame["site"], sort=True)``, if all names are public).
    sizes : dict of int to int, optional
        With groups: the public code of each group and its public number of rows, at least 1. Also as a list of pairs.
    labels : dict of int to str, optional
        What the groups are called in the interval, by code. Otherwise "site=1" and so on.

    Raises
    ------
    ValueError
        If arguments do not fit together; when rows are read, if an entry is neither 0 nor 1, a code is unknown, or a
        group has another size than given. Nothing has been charged by then. Such an error depends on the rows: it is
        for the curator.

    Notes
    -----
    One statistic, "count", of exact integers: level "exact". Without groups its L1 sensitivity is k for replacing a
    row. With groups it is 1, by parallel composition, for which **neighbours keep the group of every row**: who is in
    which group, and how many are, is treated as public. Where a person's group is private, do not use `by`.

    Replicates draw count_j* from the binomial law of n_j rows, plus fresh noise, with the probability (count_j + 4) /
    (n_j + 8) and then moved to the mean p_j [1]_. With p_j itself a proportion near 0 or 1 would vary too little, and
    one at 0 or 1 not at all; docs/extrema.md has the coverage. A noisy proportion outside [0, 1] is not cut off: it
    varies about itself as one at 0 or 1 does. Columns are drawn as if independent, given that only their counts are
    released; if large values in columns come together, the interval for the maximum is wider than it need be,
    otherwise it may be too narrow. (Gaussian estimates covariances.) Groups are independent.

    In the folds of correction="cv" a group's size is random and not released; sums there are divided by the expected
    sizes, and replicates draw the sizes too (multivariate hypergeometric). The choice of r is less certain for it.

    References
    ----------
    .. [1] A. Agresti and B. A. Coull, Approximate is better than "exact" for interval estimation of binomial
           proportions, The American Statistician 52, 1998, for the idea: they add 2 + 2, for two sides at once, and
           move the estimate too.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc_dpdepth as dpd
    >>> family = dpd.extrema.Bernoulli("visited", by="site", sizes={1: 600, 2: 400}, labels={1: "Seattle", 2: "Dayton"})
    >>> family.parameters(["visited", "site"])
    ['Seattle', 'Dayton']
    >>> (statistic,) = family.statistics(1000, ["visited", "site"], {})
    >>> statistic.sensitivity
    1
    >>> family.estimates({"count": np.array([303, 98])}, 1000, {"count": 1.4})
    array([0.505, 0.245])
    """

    name = "bernoulli"
    _law = "0 or 1 (False or True)"

    def __init__(
        self,
        column: str | None = None,
        *,
        by: str | None = None,
        sizes: Mapping[int, int] | Sequence[Sequence[int]] | None = None,
        labels: Mapping[int, str] | Sequence[Sequence[Any]] | None = None,
    ):
        super().__init__(1, column, by, sizes, labels)

    def _valid(self, column: np.ndarray) -> bool:
        return bool(((column == 0) | (column == 1)).all())

    def _away(self, counts: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return (counts + ADDED) / (rows + 2 * ADDED)

    def _draw(self, generator: Any, rows: np.ndarray, mean: np.ndarray) -> np.ndarray:
        return generator.binomial(rows, mean)


class Poisson(_Counts):
    """Rates per row: of each of k columns of counts, or of one column in each of k disjoint groups.

    rate_j = (total_j + w_j) / n_j with discrete Laplace noise w_j, where counts are clipped to a public bound.

    Parameters
    ----------
    bounds : pair of int
        (0, high): counts above `high` are clipped to it. It should be so large that clipping is rare: the parameter is
        the mean of the clipped counts.
    column, by, sizes, labels : optional
        Disjoint groups, as in `Bernoulli`.

    Raises
    ------
    ValueError
        If arguments do not fit together; when rows are read, if an entry is negative or no whole number, a code is
        unknown, or a group has another size than given. Nothing has been charged by then.

    Notes
    -----
    One statistic, "count", of exact integers: level "exact". Its L1 sensitivity is k high, or high with groups, in the
    sense of `Bernoulli`, whose notes on neighbours, independent columns and folds apply.

    Replicates draw total_j* from the Poisson law with mean total_j + 4, moved to the mean n_j rate_j, plus fresh noise;
    without the 4 small totals would vary too little, as in `Bernoulli`. That leaves out what clipping
    takes away from the variance, so it is too large rather than too small. Counts that vary more than Poisson counts
    do, as numbers of visits to a doctor, make the interval too narrow: use Gaussian, which estimates the variance.

    Examples
    --------
    >>> import pymc_dpdepth as dpd
    >>> family = dpd.extrema.Poisson(bounds=(0, 20))
    >>> (statistic,) = family.statistics(1000, ["a", "b", "c"], {})
    >>> statistic.sensitivity
    60
    """

    name = "poisson"
    _law = "whole numbers 0, 1, 2, ..."

    def __init__(
        self,
        column: str | None = None,
        *,
        bounds: Sequence[int],
        by: str | None = None,
        sizes: Mapping[int, int] | Sequence[Sequence[int]] | None = None,
        labels: Mapping[int, str] | Sequence[Sequence[Any]] | None = None,
    ):
        try:
            low, high = (int(bound) if int(bound) == bound else -1 for bound in bounds)
        except (TypeError, ValueError, OverflowError):
            low = high = -1
        if low != 0 or not 1 <= high <= LARGEST_COUNT:
            raise ValueError(f"bounds: expected (0, high) with a whole number high >= 1, got {bounds!r}.")
        super().__init__(high, column, by, sizes, labels)
        self.bounds = (0, high)

    def _valid(self, column: np.ndarray) -> bool:
        return bool(((column >= 0) & (np.floor(column) == column)).all())

    def _away(self, counts: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return (counts + ADDED) / rows

    def _draw(self, generator: Any, rows: np.ndarray, mean: np.ndarray) -> np.ndarray:
        return generator.poisson(rows * mean)

    def describe(self) -> dict[str, Any]:
        """Return the settings, with the bounds."""
        return {**super().describe(), "bounds": list(self.bounds)}


def _whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and abs(int(value)) <= LARGEST_COUNT


def _sizes(sizes: Any) -> dict[int, int]:
    """Return public sizes by code."""
    try:
        pairs = [tuple(pair) for pair in (sizes.items() if isinstance(sizes, Mapping) else sizes)]
    except TypeError:
        pairs = []
    valid = all(len(pair) == 2 and all(map(_whole, pair)) and pair[1] >= 1 for pair in pairs)
    valid = valid and sum(pair[1] for pair in pairs) < LARGEST_TOTAL
    if not pairs or not valid or len({pair[0] for pair in pairs}) < len(pairs):
        raise ValueError(
            f"sizes: expected the number of rows, from 1 to less than 10^9 in all, of each group by its code, as "
            f"{{1: 600, 2: 400}}; got {sizes!r}. Codes are integers: replace text by codes, and give names "
            "with labels={1: ...}."
        )
    return {int(code): int(size) for code, size in pairs}


def _labels(labels: Any, sizes: Mapping[int, int], by: str) -> dict[int, str]:
    """Return what the groups are called, in the order of their sizes."""
    named = {code: f"{by}={code}" for code in sizes} if labels is None else labels
    try:
        named = dict(named)
    except (TypeError, ValueError):
        named = {}
    texts = [named.get(code) for code in sizes]
    if set(named) != set(sizes) or not all(isinstance(text, str) for text in texts) or len(set(texts)) < len(texts):
        raise ValueError(
            f"labels: expected a text, each another, for each code in sizes= ({list(sizes)!r}); got {labels!r}."
        )
    return dict(zip(sizes, texts, strict=True))
