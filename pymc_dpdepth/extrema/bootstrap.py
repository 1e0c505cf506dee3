"""The parametric bootstrap: new sums from the estimated model, with fresh noise of the law that the release had.

It reads noisy sums alone, so it is post-processing and free of cost. Its generator may be seeded, since nothing that it
draws hides a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from pymc_dpdepth.extrema.family import Family
from pymc_dpdepth.extrema.noisy_sums import PooledSums, deviations

__all__ = ["LARGEST_BOOTSTRAP", "bootstrap_estimates", "check_memory", "point_estimates", "width_of_replicates"]

# Numbers in one array of replicates, half a gibibyte of doubles; a bootstrap holds some five such arrays at a time.
LARGEST_BOOTSTRAP = 2**26


def check_memory(replicates: int, width: int) -> None:
    """Refuse more replicates, of so many numbers each, than memory is planned for."""
    if replicates * width > LARGEST_BOOTSTRAP:
        raise ValueError(
            f"replicates: expected at most {LARGEST_BOOTSTRAP // width}, since each has {width} numbers, got "
            f"{replicates}."
        )


def point_estimates(family: Family, pooled: PooledSums) -> np.ndarray:
    """Return the estimates of the parameters of interest, shape (k,)."""
    estimates = _real(family.estimates(pooled.sums, pooled.n, pooled.deviations), "estimates")
    if estimates.ndim != 1 or not len(estimates):
        raise ValueError(
            f"estimates: expected from the family a vector with an entry for each of its parameters, got shape "
            f"{estimates.shape}."
        )
    return _finite(estimates)


def bootstrap_estimates(
    family: Family,
    pooled: PooledSums,
    replicates: int,
    generator: Any,
    *,
    n: int | None = None,
    copies: int | None = None,
) -> np.ndarray:
    """Return estimates from simulated noisy sums.

    Parameters
    ----------
    family : Family
    pooled : PooledSums
        Noisy sums, from which the model is estimated.
    replicates : int
        Number R of simulated tables.
    generator : NumPy Generator
    n, copies : int, optional
        Rows of a simulated table, and how many noises its sums get; by default as in `pooled`.

    Returns
    -------
    ndarray, shape (R, k)
    """
    n, copies = pooled.n if n is None else n, pooled.copies if copies is None else copies
    k = len(point_estimates(family, pooled))
    check_memory(replicates, k)
    model = family.model(pooled.sums, pooled.n, pooled.deviations)
    simulated = _simulated(family.simulate(model, n, replicates, generator), pooled, replicates)
    check_memory(replicates, k + sum(sums.shape[1] for sums in simulated.values()))
    noisy = _Watched(
        {
            name: sums + pooled.released[name].simulate_noise(copies, replicates, generator)
            for name, sums in simulated.items()
        }
    )
    try:
        found = family.estimates(noisy, n, deviations(pooled.released, copies))
    except KeyError as error:
        if not noisy.missing:
            raise
        raise ValueError(
            f"simulate: expected sums of all that `estimates` reads, {sorted(noisy.read | noisy.missing)}, from the "
            f"family, got {sorted(simulated)}."
        ) from error
    estimates = _real(found, "estimates")
    if estimates.shape != (replicates, k):
        raise ValueError(
            f"estimates: expected shape {(replicates, k)} from the family, one row for each replicate of the sums, got "
            f"{estimates.shape}."
        )
    if noisy.read != set(simulated):
        raise ValueError(
            f"simulate: expected sums of what `estimates` reads alone, {sorted(noisy.read)}, got {sorted(simulated)}; "
            "leave the others out."
        )
    return _finite(estimates)


def width_of_replicates(family: Family, pooled: PooledSums, generator: Any) -> int:
    """Return how many numbers a replicate has: its sums and its estimates."""
    model = family.model(pooled.sums, pooled.n, pooled.deviations)
    simulated = _simulated(family.simulate(model, pooled.n, 1, generator), pooled, 1)
    return len(point_estimates(family, pooled)) + sum(sums.shape[1] for sums in simulated.values())


class _Watched(Mapping):
    """Simulated sums that remember which of them were read."""

    def __init__(self, sums: Mapping[str, np.ndarray]):
        self._sums = sums
        self.read: set[str] = set()
        self.missing: set[str] = set()

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._sums:
            self.missing.add(name)
            raise KeyError(name)
        self.read.add(name)
        return self._sums[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sums)

    def __len__(self) -> int:
        return len(self._sums)


def _simulated(simulated: Any, pooled: PooledSums, replicates: int) -> dict[str, np.ndarray]:
    """Return simulated sums of the right shapes: others would broadcast to replicates of another law."""
    if not isinstance(simulated, Mapping):
        raise TypeError(
            f"simulate: expected a dict of arrays by the names of statistics from the family, got "
            f"{type(simulated).__name__}."
        )
    unknown = sorted(map(str, set(simulated) - set(pooled.released)))
    if unknown:
        raise ValueError(f"simulate: expected sums of the statistics {sorted(pooled.released)}, got {unknown}.")
    checked = {}
    for name, sums in simulated.items():
        expected = (replicates, *pooled.sums[name].shape)
        checked[name] = _real(sums, f"simulate of {name!r}")
        if checked[name].shape != expected:
            raise ValueError(
                f"simulate: expected sums {name!r} of shape {expected} from the family, a row for each replicate, got "
                f"{checked[name].shape}."
            )
    return checked


def _real(numbers: Any, what: str) -> np.ndarray:
    """Return real numbers as doubles."""
    array = np.asarray(numbers)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{what}: expected real numbers from the family, got {array.dtype}.")
    return array.astype(np.float64, copy=False)


def _finite(estimates: np.ndarray) -> np.ndarray:
    """Return estimates, or refuse such as no interval can be made of."""
    if not np.isfinite(estimates).all():
        raise FloatingPointError(
            "The family made estimates that are not finite of noisy sums; give them a floor, so that every sum has "
            "finite ones."
        )
    return estimates
