"""Everything that k replaced rows can do to a small table, by trying it."""

from itertools import combinations, combinations_with_replacement

import numpy as np


def tables_within(rows, k, values):
    """Yield the tables that have k of the rows replaced by some of the values (by themselves too, so by fewer)."""
    rows = list(rows)
    for places in combinations(range(len(rows)), k):
        kept = [row for i, row in enumerate(rows) if i not in places]
        for new in combinations_with_replacement(values, k):
            yield np.array(kept + list(new), dtype=np.float64)


def mad(values):
    return np.median(np.abs(values - np.median(values)))


def iqr(values):
    low, high = np.quantile(values, [0.25, 0.75])
    return high - low


def outlyingness(table, points, directions, scale, cap):
    """Return min(cap, O) at points by the definition, 0/0 = 0."""
    found = np.zeros(len(points))
    for u in directions:
        projections = table @ u
        spread = mad(projections) if scale == "mad" else iqr(projections)
        distances = np.abs(points @ u - np.median(projections))
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.maximum(found, np.where(distances > 0, distances / spread, 0.0))
    return np.minimum(found, cap)


def neighbours(rows, generator, values, count):
    """Yield tables with one row replaced, by one of the values."""
    for _ in range(count):
        other = rows.copy()
        other[generator.integers(len(rows))] = values[generator.integers(len(values))]
        yield other
