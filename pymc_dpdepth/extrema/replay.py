"""A record's numbers, computed again from its noisy sums and its seed.

For a family of the package everything beyond the noisy sums and the settings follows from them: estimates, replicates,
and the criterion by which the correction was chosen. Other machines round otherwise, so numbers may differ a little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pymc_dpdepth.extrema.analysis import analyse
from pymc_dpdepth.extrema.family import Family

if TYPE_CHECKING:
    from pymc_dpdepth.extrema.record import ExtremaInterval

__all__ = ["check_replay", "tolerance"]

# A part of the spread of the replicates, which no reader of a limit would notice. A matrix of condition 10^9, which the
# floors of the families allow for tables of 10^9 rows, turns a rounding of 10^-16 into 10^-7.
OF_SPREAD = 1e-6
# A part of the numbers themselves, some thousand roundings: far from 0 the spread is small beside them.
OF_SIZE = 1e-12


def tolerance(estimates: np.ndarray, replicates: np.ndarray, of_spread: float = OF_SPREAD) -> float:
    """Return how far numbers in the units of the parameters may differ."""
    spread = float(np.abs(replicates - estimates).max())
    return of_spread * spread + OF_SIZE * float(np.abs(replicates).max())


def check_replay(interval: ExtremaInterval, family: Family) -> None:
    """Refuse an interval whose numbers do not follow from its noisy sums and its seed.

    Parameters
    ----------
    interval : ExtremaInterval
        As it was read.
    family : Family
        That of its description.

    Raises
    ------
    ValueError
        Names the field.
    """
    settings = interval.settings
    found = analyse(family, interval.released, interval.folds, settings)
    allowed = tolerance(found.estimates, found.replicates)
    if not np.allclose(found.estimates, interval.estimates.values, rtol=0.0, atol=allowed):
        raise ValueError("estimates: expected those of the released sums, got others.")
    if not np.allclose(found.replicates, interval.bootstrap_estimates, rtol=0.0, atol=allowed):
        raise ValueError(
            "bootstrap: expected the replicates that the record's sums and seed give, got others. If a version of "
            f"NumPy wrote it whose generators draw otherwise than those of {np.__version__}, read it with replay=False."
        )
    if found.cross_validation is None or interval.cross_validation is None:
        return
    # The criterion is a sum of squares of differences, whose rounding errors grow with the numbers they are made of.
    mine, theirs = found.cross_validation.criterion, interval.cross_validation.criterion
    spread = float(np.abs(mine).max())
    size = float(np.abs(found.estimates).max())
    if not np.allclose(mine, theirs, rtol=0.0, atol=OF_SPREAD * spread + OF_SIZE * size * np.sqrt(spread)):
        raise ValueError("criterion: expected the one that the folds' sums and the seed give, got another one.")
