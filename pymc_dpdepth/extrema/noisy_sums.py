"""The release behind an interval: sums of the rows' entries as integers, charged once, with discrete Laplace noise.

Rows may be split into folds at random. Each fold's sums then get noise at the full epsilon of their statistic, for a
replaced row is in one fold; and the sum of the folds' noisy sums, which costs nothing more, has as many noises in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from pymc_dpdepth.extrema.family import Family, Sums
from pymc_dpdepth.extrema.rows import RowSource
from pymc_dpdepth.extrema.statistic import BITS_OF_SUMS, Statistic
from pymc_dpdepth.privacy.noise import IntegerNoise, laplace_noise
from pymc_dpdepth.randomness import RandomBits

__all__ = ["Folds", "NoisySums", "PendingSums", "PooledSums", "ReleasedStatistic", "Stages"]


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


class PendingSums:
    """Sums of all releases of a call, computed and planned for before the charge; `finish` adds the noise.

    Parameters
    ----------
    family : Family
    rows : RowSource
        Without missing entries.
    plans : sequence of (Folds, dict of str to float)
        For each release how the rows are split, and the epsilon of each statistic.
    """

    def __init__(self, family: Family, rows: RowSource, plans: Sequence[tuple[Folds, Mapping[str, float]]]):
        self._runs = [_Run(family, rows, folds, epsilons) for folds, epsilons in plans]
        for run in self._runs:
            run.compute()

    def finish(self, bits: RandomBits) -> None:
        """Add the noise, which must have been paid for."""
        for run in self._runs:
            run.finish(bits)

    @property
    def released(self) -> list[NoisySums]:
        """What has been released so far, for each plan."""
        return [run.released for run in self._runs]

    @property
    def missing(self) -> list[str]:
        """Names of statistics that are not released yet."""
        return sorted({name for run in self._runs for name in run.missing})


class Stages:
    """A family's statistics, stage by stage, with the noise of each; that of later stages is planned with the first.

    Parameters
    ----------
    family : Family
    n : int
        Number of rows.
    columns : sequence of str
    epsilons : mapping of str to float
        By the names of all statistics.
    """

    def __init__(self, family: Family, n: int, columns: Sequence[str], epsilons: Mapping[str, float]):
        self._family, self._n, self._columns, self._epsilons = family, n, columns, epsilons
        self._later: dict[str, int] = {}

    def next(self, known: dict[str, np.ndarray]) -> list[tuple[Statistic, IntegerNoise]]:
        """Return the statistics that follow the noisy sums which are known, none if all are."""
        found = self._family.statistics(self._n, self._columns, _frozen(dict(known)))
        if not isinstance(found, tuple | list):
            raise TypeError(
                "statistics: expected a tuple of Statistic from the family, empty when all are released, got "
                f"{type(found).__name__}."
            )
        statistics = [_checked(statistic, self._n, set(self._epsilons) - set(known)) for statistic in found]
        names = {statistic.name for statistic in statistics}
        if len(names) < len(statistics):
            raise ValueError("statistics: expected each of the family's statistics once, one came twice.")
        if not statistics and set(known) != set(self._epsilons):
            raise ValueError(
                f"statistics: expected all of {sorted(self._epsilons)} from the family, got {sorted(known)}; their "
                "epsilons are charged. Name in statistic_names what is released."
            )
        if not known:
            self._later = _later(self._family, self._n, self._columns, set(self._epsilons) - names)
            for name, most in self._later.items():
                self._noise(name, most)  # or it is refused, before the charge
        for statistic in statistics:
            if known and statistic.sensitivity > self._later[statistic.name]:
                raise ValueError(
                    f"{statistic.name}: expected a sensitivity of at most {self._later[statistic.name]}, as the family "
                    f"declared in later_sensitivities, got {statistic.sensitivity}."
                )
        return [(one, self._noise(one.name, one.sensitivity)) for one in statistics]

    def _noise(self, name: str, sensitivity: int) -> IntegerNoise:
        """Return the noise of a statistic, or say of which one it cannot be."""
        try:
            return laplace_noise(sensitivity, self._epsilons[name])
        except ValueError as error:
            raise ValueError(f"epsilon of {name!r}: {error}") from None


class _Run:
    """One release, in stages: later statistics may depend on the noisy sums of earlier ones."""

    def __init__(self, family: Family, rows: RowSource, folds: Folds, epsilons: Mapping[str, float]):
        self._family, self._rows, self._folds, self._epsilons = family, rows, folds, epsilons
        self._stages = Stages(family, rows.n, rows.columns, epsilons)
        self._released: dict[str, ReleasedStatistic] = {}
        # Without noise; never leaves this object.
        self._pending: list[tuple[Statistic, IntegerNoise, np.ndarray]] = []

    @property
    def released(self) -> NoisySums:
        """What has been released so far."""
        return NoisySums(self._folds.sizes, dict(self._released))

    @property
    def missing(self) -> set[str]:
        """Names of statistics that are not released yet."""
        return set(self._epsilons) - set(self._released)

    def compute(self) -> None:
        """Compute the next statistics, if there are any, without noise."""
        known = {name: one.sums.sum(axis=0) for name, one in self._released.items()}
        planned = self._stages.next(known)
        totals = [np.zeros((len(self._folds.sizes), one.size), dtype=np.int64) for one, _ in planned]
        released = _frozen(known)
        for part, some in self._folds.split(self._rows) if planned else ():
            for (statistic, _), total in zip(planned, totals, strict=True):
                counts = self._family.counts(some, statistic, released)
                total[part] += _checked_counts(counts, statistic, len(some))
        self._pending = [(one, noise, total) for (one, noise), total in zip(planned, totals, strict=True)]

    def finish(self, bits: RandomBits) -> None:
        """Add the noise, stage by stage."""
        while self._pending:
            for statistic, noise, counts in self._pending:
                noisy = noise.add(counts.ravel(), bits).reshape(counts.shape)
                # From here on the rows play no part in this statistic.
                sums = noisy * statistic.grid
                sums.flags.writeable = False
                self._released[statistic.name] = ReleasedStatistic(statistic.grid, statistic.sensitivity, noise, sums)
            self.compute()


def _later(family: Family, n: int, columns: Sequence[str], names: set[str]) -> dict[str, int]:
    """Return the declared sensitivities of later statistics."""
    found = family.later_sensitivities(n, columns)
    if not isinstance(found, Mapping) or set(found) != names or not all(type(most) is int for most in found.values()):
        raise ValueError(
            f"later_sensitivities: expected from the family an integer for each of {sorted(names)}, which do not come "
            "with the first statistics: the largest sensitivity that each can have, in units of its grid, whatever is "
            "released before. Their noise is planned before the charge."
        )
    return dict(found)


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
