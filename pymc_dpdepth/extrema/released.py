"""What a call released, before an interval is computed from it: noisy sums and public settings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pymc_dpdepth.extrema.analysis import Settings
from pymc_dpdepth.extrema.noisy_sums import NoisySums

__all__ = ["ReleasedSums"]


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedSums:
    """Noisy sums that were released and paid for, with all that an interval needs beside the family.

    `ExtremaInterval.from_sums` makes the interval. It comes with an `UnfinishedReleaseError`; it may be published.

    Attributes
    ----------
    family : dict
        Public description of the family.
    parameters, columns : tuple of str
        Names of the parameters, and of the columns that were read.
    settings : Settings
        Of the post-processing.
    released : NoisySums or None
        What the interval is computed from; None before anything was released.
    folds : NoisySums or None
        What the correction is chosen by.
    n : int
        Number of rows, public.
    epsilon : float
        Privacy loss of a person that was charged.
    guarantee, neighboring, max_rows_per_unit, nonfinite, simulation
        As in `ExtremaInterval`.
    """

    family: dict[str, Any]
    parameters: tuple[str, ...]
    columns: tuple[str, ...]
    settings: Settings
    n: int
    epsilon: float
    guarantee: str
    neighboring: str
    max_rows_per_unit: int
    nonfinite: str
    simulation: bool
    released: NoisySums | None = None
    folds: NoisySums | None = None

    @property
    def statistics(self) -> dict[str, np.ndarray]:
        """The released noisy sums over all rows, by name, in the units of the values."""
        return {} if self.released is None else dict(self.released.pool().sums)

    def holding(self, releases: list[NoisySums]) -> ReleasedSums:
        """Return the same with what was released: for the interval first, for the choice of the correction last."""
        folds = releases[-1] if self.settings.cross_validated else None
        return replace(self, released=releases[0], folds=folds)

    def __repr__(self) -> str:
        """Show what there is and what it cost."""
        marks = ", simulation" if self.simulation else ""
        return (
            f"<ReleasedSums of {self.family['name']!r}: {sorted(self.statistics)} of {self.n} rows, "
            f"epsilon={self.epsilon:g}, {self.guarantee}{marks}>"
        )
