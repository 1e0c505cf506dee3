"""Order statistics given counts, and normalisers over them, against direct computations."""

import numpy as np
import pytest
from scipy import stats

from pymc_dpdepth.downstream.order_statistics import (
    box_log_normalisers,
    log_normalisers,
    place_of_first,
    uniform_order_statistics,
)

REPLICATES = 4000


@pytest.mark.parametrize("first", [1, 3, 6])
def test_order_statistics_are_those_of_rows_with_the_given_counts(first):
    n, shares, count = 10, np.array([[0.2, 0.7]]), (4, 9)
    generator = np.random.default_rng(first)
    counts = np.tile(count, (1, REPLICATES, 1)).astype(np.int64)
    drawn = generator.standard_exponential((1, REPLICATES, n + 2 - 2 * first))
    starts = generator.beta(*place_of_first(counts, n, first))
    uniform_order_statistics(shares, counts, n, first, starts, drawn)
    sizes, edges = np.diff([0, *count, n]), [0.0, 0.2, 0.7, 1.0]
    direct = np.concatenate(
        [generator.uniform(edges[i], edges[i + 1], (REPLICATES, sizes[i])) for i in range(3)], axis=1
    )
    direct.sort(axis=1)
    direct = direct[:, first - 1 : n + 1 - first]
    assert (np.diff(drawn[0], axis=1) >= 0).all()
    # Ten + six + one ranks over the three settings and as many gaps: 1e-5 in each is below 4e-4 together.
    for i in range(direct.shape[1]):
        assert stats.ks_2samp(drawn[0, :, i], direct[:, i]).pvalue > 1e-5
        assert i == 0 or stats.ks_2samp(np.diff(drawn[0])[:, i - 1], np.diff(direct)[:, i - 1]).pvalue > 1e-5


def test_normalisers_are_the_sums_that_they_stand_for():
    generator = np.random.default_rng(0)
    for shift in (-12.0, 0.0, 12.0):  # both far tails of the prior and its middle
        rows = np.sort(generator.normal(shift, 1, size=(1, 3, 8)))
        weights = generator.random(9)
        lower, upper = stats.norm.cdf(rows), stats.norm.sf(rows)
        ends = np.concatenate([np.full((1, 3, 1), -np.inf), rows, np.full((1, 3, 1), np.inf)], axis=2)
        direct = np.where(ends[..., 1:] < 0, np.diff(stats.norm.cdf(ends)), -np.diff(stats.norm.sf(ends)))
        np.testing.assert_allclose(log_normalisers(lower, upper, weights), np.log(direct @ weights), rtol=1e-9)
        masses = np.where(
            rows[..., ::-1] < 0,
            stats.norm.cdf(rows[..., ::-1]) - stats.norm.cdf(rows),
            stats.norm.sf(rows) - stats.norm.sf(rows[..., ::-1]),
        )[..., :4]
        both = np.log(weights[0] + (masses**2) @ weights[1:5])
        boxes = box_log_normalisers(np.stack([lower] * 2), np.stack([upper] * 2), weights[:5])
        np.testing.assert_allclose(boxes, both, rtol=1e-9)
