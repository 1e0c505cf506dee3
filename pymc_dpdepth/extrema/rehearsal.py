"""A rehearsal of all that follows a charge, with made-up sums in the place of the rows'.

A family of a user may fail in its model, its simulation or its description. Once the budget is charged that would be
too late. So everything is gone through beforehand, as far as the reading of the record, with sums that are made of
public numbers: of rows in the middle of their bounds, with noise of the law that the release will have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from pymc_dpdepth.extrema.bootstrap import check_memory, width_of_replicates
from pymc_dpdepth.extrema.family import Family
from pymc_dpdepth.extrema.noisy_sums import NoisySums, ReleasedStatistic, Stages
from pymc_dpdepth.extrema.record import ExtremaInterval
from pymc_dpdepth.extrema.released import ReleasedSums
from pymc_dpdepth.randomness import curator_generator

__all__ = ["rehearse"]

SEED = 0
REPLICATES = 3


def rehearse(
    family: Family, draft: ReleasedSums, splits: Sequence[tuple[tuple[int, ...], Mapping[str, float]]]
) -> None:
    """Refuse a family that fails with made-up sums.

    Parameters
    ----------
    family : Family
    draft : ReleasedSums
        All that is known before the release.
    splits : sequence of (tuple of int, dict of str to float)
        For each release the numbers of rows of its parts, and the epsilons of the statistics.

    Raises
    ------
    ValueError
        Says what failed. Nothing has been charged.
    """
    few = min(draft.settings.replicates, max(REPLICATES, draft.settings.least_replicates))
    settings = replace(draft.settings, replicates=few, bootstrap_seed=SEED)
    releases = [_made_up(family, draft, rows, epsilons) for rows, epsilons in splits]
    try:
        interval = ExtremaInterval.from_sums(family, replace(draft, settings=settings).holding(releases))
        ExtremaInterval.from_dict(interval.to_dict(), replay=False)
        width = width_of_replicates(family, releases[0].pool(), curator_generator(SEED))
    except Exception as error:
        raise ValueError(
            "family: expected methods that lead from noisy sums to an interval; with made-up sums, as of rows in the "
            f"middle of their bounds, {type(error).__name__} came: {error} Nothing was charged."
        ) from error
    check_memory(draft.settings.replicates, width)


def _made_up(family: Family, draft: ReleasedSums, rows: tuple[int, ...], epsilons: Mapping[str, float]) -> NoisySums:
    """Return sums that no row went into."""
    generator = curator_generator(SEED)
    stages = Stages(family, draft.n, draft.columns, epsilons)
    released: dict[str, ReleasedStatistic] = {}
    while planned := stages.next({name: one.sums.sum(axis=0) for name, one in released.items()}):
        for statistic, noise in planned:
            counts = np.multiply.outer(np.array(rows), statistic.lower // 2 + statistic.upper // 2)
            sums = (counts + noise.simulate(counts.shape, generator)) * statistic.grid
            sums.flags.writeable = False
            released[statistic.name] = ReleasedStatistic(statistic.grid, statistic.sensitivity, noise, sums)
    return NoisySums(rows, released)
