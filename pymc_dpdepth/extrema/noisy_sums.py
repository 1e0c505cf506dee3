"""The release behind an interval: sums of the rows' entries as integers, charged once, with discrete Laplace noise.

Rows may be split into folds at random. Each fold's sums then get noise at the full epsilon of their statistic, for a
replaced row is in one fold; and the sum of the folds' noisy sums, which costs nothing more, has as many noises in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from pymc_dpdepth.extrema.family import Family, Sums
from pymc_dpdepth.extrema.rows import RowSource
from pymc_dpdepth.extrema.statistic import BITS_OF_SUMS, Statistic
from pymc_dpdepth.privacy.noise import IntegerNoise, laplace_noise
from pymc_dpdepth.randomness import RandomBits

__all__ = ["Folds", "NoisySums", "PooledSums", "ReleasedStatistic", "release_sums"]


@dataclass(frozen=True, eq=False)
class ReleasedStatistic:
    """Noisy sums of one statistic, and the public settings of their noise.

    Attributes
    ----------
    grid : float
        A power of two; the sums are multiples of it.
    sensitivity : int
        L1 sensitivity in units of the grid.
    noise : IntegerNoise
        The law of the noise in each entry, in units of the grid.
    sums : ndarray, shape (parts, size)
        For each part of the rows, in the units of the values.
    """

    grid: float
    sensitivity: int
    noise: IntegerNoise
    sums: np.ndarray

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise in an entry of one part, in the units of the values."""
        return self.noise.standard_deviation * self.grid

    def simulate_noise(self, copies: int, replicates: int, generator: Any) -> np.ndarray:
        """Return sums of `copies` noises of the same law, shape (replicates, size), in the units of the values."""
        total = np.zeros((replicates, self.sums.shape[1]), dtype=np.int64)
        for _ in range(copies):
            total += self.noise.simulate(total.shape, generator)
        return total * self.grid


@dataclass(frozen=True, eq=False)
class PooledSums:
    """Noisy sums of some parts together: what all that follows is computed from.

    Attributes
    ----------
    n : int
        Rows of the parts.
    copies : int
        How many noises are in each entry.
    released : dict of str to ReleasedStatistic
        All parts.
    sums : dict of str to ndarray, shape (size,)
        Of these parts.
    """

    n: int
    copies: int
    released: Mapping[str, ReleasedStatistic]
    sums: Sums

    @property
    def deviations(self) -> dict[str, float]:
        """Standard deviation of the noise in each entry, by the name of the statistic."""
        return deviations(self.released, self.copies)


def deviations(released: Mapping[str, ReleasedStatistic], copies: int) -> dict[str, float]:
    """Return the standard deviation of the sum of `copies` noises, by the name of the statistic."""
    return {name: math.sqrt(copies) * one.deviation for name, one in released.items()}


@dataclass(frozen=True, eq=False)
class NoisySums:
    """All statistics of all parts: public.

    Attributes
    ----------
    rows : tuple of int
        Number of rows of each part.
    released : dict of str to ReleasedStatistic
    """

    rows: tuple[int, ...]
    released: Mapping[str, ReleasedStatistic]

    def pool(self, parts: Sequence[int] | None = None) -> PooledSums:
        """Return the sums of some parts, by default of all."""
        parts = list(range(len(self.rows))) if parts is None else list(parts)
        sums = {name: one.sums[parts].sum(axis=0) for name, one in self.released.items()}
        return PooledSums(sum(self.rows[part] for part in parts), len(parts), self.released, _frozen(sums))


@dataclass(frozen=True, eq=False, repr=False)
class Folds:
    """Which part each row is in; the sizes are public, the assignment is random and never leaves.

    Attributes
    ----------
    sizes : tuple of int
        As equal as they can be.
    labels : ndarray of int, shape (n,), or None
        None where there is one part.
    """

    sizes: tuple[int, ...]
    labels: np.ndarray | None

    @classmethod
    def whole(cls, n: int) -> Folds:
        """Return the one part of all rows."""
        return cls((n,), None)

    @classmethod
    def at_random(cls, n: int, count: int, bits: RandomBits) -> Folds:
        """Return a random split, all splits of these sizes being equally likely (but for a tie of two 64-bit keys)."""
        labels = np.empty(n, dtype=np.int32)
        labels[np.argsort(bits.words(n), kind="stable")] = np.arange(n) % count
        return cls(tuple(n // count + (part < n % count) for part in range(count)), labels)

    def split(self, rows: RowSource) -> Iterator[tuple[int, np.ndarray]]:
        """Yield pieces of the rows, none of them empty, with the part that they belong to."""
        start = 0
        for chunk in rows.chunks():
            labels = None if self.labels is None else self.labels[start : start + len(chunk)]
            start += len(chunk)
            for part in range(len(self.sizes)):
                some = chunk if labels is None else chunk[labels == part]
                if len(some):
                    yield part, some
        if start != rows.n:
            raise ValueError(f"Expected the {rows.n} rows that there were at first, got {start}; the file changed.")


def release_sums(
    family: Family,
    rows: RowSource,
    plans: Sequence[tuple[Folds, Mapping[str, float]]],
    pay: Callable[[], None],
    bits: RandomBits,
) -> list[NoisySums]:
    """Release the family's statistics once for each plan, all paid for at once, before any noise is drawn.

    Parameters
    ----------
    family : Family
    rows : RowSource
        Without missing entries.
    plans : sequence of (Folds, dict of str to float)
        How the rows are split, and the epsilon of each statistic.
    pay : callable
        Charges the budget, or raises. Called after the first statistics of all plans were computed.
    bits : RandomBits

    Returns
    -------
    list of NoisySums
        One for each plan.
    """
    runs = [_Run(family, rows, folds, epsilons) for folds, epsilons in plans]
    for run in runs:
        run.compute()
    pay()
    return [run.finish(bits) for run in runs]


class _Run:
    """One release, in stages: later statistics may depend on the noisy sums of earlier ones."""

    def __init__(self, family: Family, rows: RowSource, folds: Folds, epsilons: Mapping[str, float]):
        self._family, self._rows, self._folds, self._epsilons = family, rows, folds, epsilons
        self._released: dict[str, ReleasedStatistic] = {}
        # Without noise; never leaves this object.
        self._pending: list[tuple[Statistic, IntegerNoise, np.ndarray]] = []

    def _known(self) -> Sums:
        """Return the noisy sums so far, of all rows."""
        return _frozen({name: one.sums.sum(axis=0) for name, one in self._released.items()})

    def compute(self) -> bool:
        """Compute the next statistics, without noise; False if there are none."""
        known = self._known()
        found = self._family.statistics(self._rows.n, self._rows.columns, known)
        if not isinstance(found, tuple | list):
            raise TypeError(
                f"statistics: expected a tuple of Statistic from the family, empty when all are released, got "
                f"{type(found).__name__}."
            )
        statistics = [_checked(statistic, self._rows.n, set(self._epsilons) - set(known)) for statistic in found]
        if len({statistic.name for statistic in statistics}) < len(statistics):
            raise ValueError("statistics: expected each of the family's statistics once, one came twice.")
        if not statistics and set(known) != set(self._epsilons):
            raise ValueError(
                f"statistics: expected all of {sorted(self._epsilons)} from the family, got {sorted(known)}; their "
                "epsilons are charged. Name in statistic_names what is released."
            )
        noises = [laplace_noise(one.sensitivity, self._epsilons[one.name]) for one in statistics]
        totals = [np.zeros((len(self._folds.sizes), one.size), dtype=np.int64) for one in statistics]
        for part, some in self._folds.split(self._rows) if statistics else ():
            for statistic, total in zip(statistics, totals, strict=True):
                total[part] += _checked_counts(self._family.counts(some, statistic, known), statistic, len(some))
        self._pending = list(zip(statistics, noises, totals, strict=True))
        return bool(statistics)

    def finish(self, bits: RandomBits) -> NoisySums:
        """Add the noise, stage by stage."""
        while self._pending:
            for statistic, noise, counts in self._pending:
                noisy = noise.add(counts.ravel(), bits).reshape(counts.shape)
                # From here on the rows play no part in this statistic.
                sums = noisy * statistic.grid
                sums.flags.writeable = False
                self._released[statistic.name] = ReleasedStatistic(statistic.grid, statistic.sensitivity, noise, sums)
            self.compute()
        return NoisySums(self._folds.sizes, dict(self._released))


def _checked(statistic: Statistic, n: int, expected: set[str]) -> Statistic:
    """Return a copy of a statistic that cannot be changed; refuse one whose noise would not cover its sums."""
    if type(statistic) is not Statistic:  # a subclass may map entries to anything
        raise TypeError(
            f"statistics: expected objects of Statistic itself from the family, got {type(statistic).__name__}."
        )
    name, size = statistic.name, statistic.size
    if name not in expected:
        raise ValueError(f"statistics: expected one of {sorted(expected)} from the family, got {name!r}.")
    lower, upper = np.array(statistic.lower), np.array(statistic.upper)
    if type(size) is not int or size < 1:
        raise ValueError(f"{name}: expected a size that is an integer >= 1, got {size!r}.")
    if (lower.dtype, upper.dtype) != (np.int64, np.int64) or not lower.shape == upper.shape == (size,):
        raise ValueError(f"{name}: expected bounds of 64-bit integers, {size} each.")
    if (lower > upper).any():
        raise ValueError(f"{name}: expected lower <= upper.")
    grid = statistic.grid
    if not isinstance(grid, int | float) or grid <= 0 or math.frexp(grid)[0] != 0.5:
        raise ValueError(f"{name}: expected a grid that is a power of two, got {grid!r}.")
    largest = max(abs(int(bound)) for bounds in (lower, upper) for bound in (bounds.min(), bounds.max()))
    if largest * max(n, 1) > 2**BITS_OF_SUMS:
        raise ValueError(f"{name}: expected sums of at most 2^{BITS_OF_SUMS} on the grid; take a coarser one.")
    sensitivity, widest = statistic.sensitivity, int((upper - lower).max())
    if type(sensitivity) is not int or sensitivity < int(widest > 0):
        raise ValueError(
            f"{name}: expected a sensitivity that is an integer >= 1, in units of the grid, or 0 where no entry can "
            f"change; got {sensitivity!r}."
        )
    if sensitivity < widest:
        raise ValueError(
            f"{name}: expected a sensitivity of at least {widest}, the range of a single entry in units of the grid, "
            f"got {sensitivity}. If entries cannot reach lower and upper, bring these closer."
        )
    public = None if statistic.public is None else np.array(statistic.public)
    for array in (lower, upper, public):
        if array is not None:
            array.flags.writeable = False
    return Statistic(name, size, float(grid), lower, upper, sensitivity, public)


def _checked_counts(counts: np.ndarray, statistic: Statistic, rows: int) -> np.ndarray:
    """Return sums of so many rows, or refuse such as no rows within the bounds can have; no value is shown."""
    name, size = statistic.name, statistic.size
    if not isinstance(counts, np.ndarray) or counts.dtype != np.int64 or counts.shape != (size,):
        got = f"{counts.dtype} of shape {counts.shape}" if isinstance(counts, np.ndarray) else type(counts).__name__
        raise TypeError(f"{name}: expected an array of {size} 64-bit integers from the family's counts, got {got}.")
    if ((counts < rows * statistic.lower) | (counts > rows * statistic.upper)).any():
        raise ValueError(
            f"{name}: expected sums from the family's counts that lie between `lower` and `upper` of the statistic, "
            "times the number of rows; at least one is outside."
        )
    return counts


def _frozen(sums: dict[str, np.ndarray]) -> Sums:
    """Return sums that a family cannot write into."""
    for array in sums.values():
        array.flags.writeable = False
    return MappingProxyType(sums)
