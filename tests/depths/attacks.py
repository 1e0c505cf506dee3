"""Searches for two tables that differ in one row and a point where a depth moves by more than its sensitivity claims.

Every attack returns the worst |D(x; X) - D(x; Y)| it found. `breaks` compares that with a claim. A step depth is
compared in whole counts, so that no tolerance is needed.
"""

import itertools
from fractions import Fraction

import numpy as np

# Counts are recovered from depths: count / unit in doubles, with one rounding, times the unit is the count to this
# tolerance as long as units stay below 1e6 (they do in these tests).
COUNT_TOLERANCE = 1e-8
SMOOTH_SLACK = 1e-14  # n <= 40 terms of at most 1 summed in doubles, then F (1 - F) <= 1/4: 40 * 2^-53 / 4 and its like


def unit(depth, n, d):
    """Return the count that stands for depth 1 of a step depth."""
    resolved = depth.resolve(d)
    directions = resolved.directions.m if resolved.aggregation == "mean" else 1
    return n**resolved.univariate.power * directions


def values(depth, points, rows):
    """Return depths as floats (smooth) or whole counts (step)."""
    depths = depth.evaluate(points, rows)
    if depth.differentiable:
        return depths
    scaled = depths * unit(depth, len(rows), rows.shape[1])
    counts = np.rint(scaled)
    assert np.max(np.abs(scaled - counts), initial=0.0) < COUNT_TOLERANCE
    return counts.astype(np.int64)


def as_difference(depth, worst, n, d):
    return float(worst) if depth.differentiable else Fraction(int(worst), unit(depth, n, d))


def breaks(worst, claim):
    """Return whether a difference that was found is above a claimed sensitivity (a Fraction or float)."""
    if isinstance(worst, Fraction):
        return worst > Fraction(claim)
    return worst > float(claim) + SMOOTH_SLACK


def exhaustive(depth, n, row_values, points):
    """Try every multiset of n rows from row_values, every neighbour of it, at every point.

    In one dimension n + 1 values give every weak order of the n rows and the replacing one.
    """
    row_values, points = np.asarray(row_values, dtype=float), np.asarray(points, dtype=float)
    tables = list(itertools.combinations_with_replacement(range(len(row_values)), n))
    index = {table: i for i, table in enumerate(tables)}
    found = np.array([values(depth, points, row_values[list(table)]) for table in tables])
    worst = 0
    for table in tables:
        neighbours = {
            tuple(sorted((*table[:i], new, *table[i + 1 :]))) for i in range(n) for new in range(len(row_values))
        }
        others = found[[index[neighbour] for neighbour in neighbours]]
        worst = max(worst, np.abs(others - found[index[table]]).max())
    return as_difference(depth, worst, n, row_values.shape[1])


def line(n):
    """Return n + 1 row values on a line, and points at, between and beyond them."""
    return np.arange(n + 1.0)[:, None], np.arange(-0.5, n + 1, 0.5)[:, None]


def plane():
    """Return the 3 x 3 grid of row values in the plane, and points at, between and beyond them."""
    values = list(itertools.product((0.0, 1.0, 2.0), repeat=2))
    return np.array(values), np.array(list(itertools.product(np.arange(-0.5, 2.6, 0.5), repeat=2)))


def adversarial(depth, n, d, trials, seed):
    """Search at random, from structured starts, and climb from the worst pair.

    Starts: clouds of every width from 0 (all rows tied) to far, centred at or beside the point; the replaced row goes
    to the point itself, within one last bit of it, to the other side, or anywhere.
    """
    generator = np.random.default_rng(seed)
    best, state = -1, None
    for trial in range(trials):
        if state is None or trial % 2 == 0:
            rows, new = _start(generator, n, d)
        else:
            rows, new = _step(generator, *state)
        other = rows.copy()
        other[0] = new
        points = np.vstack([np.zeros((1, d)), rows[:3], new, (rows[:1] + new) / 2, generator.standard_normal((2, d))])
        worst = np.abs(values(depth, points, rows) - values(depth, points, other)).max()
        if worst >= best:
            best, state = worst, (rows, new)
    return as_difference(depth, best, n, d)


def _start(generator, n, d):
    width = generator.choice([0.0, 1e-300, 2.0**-52, 0.01, 1.0, 100.0])
    center = generator.choice([0.0, 1e-3, 1.0, 1e3]) * generator.standard_normal(d)
    rows = center + width * generator.standard_normal((n, d))
    kind = generator.integers(4)
    if kind == 0:
        new = np.zeros(d)
    elif kind == 1:
        new = np.nextafter(np.zeros(d), generator.choice([-1.0, 1.0], size=d))
    elif kind == 2:
        new = -rows[0]
    else:
        new = generator.choice([0.1, 1.0, 1e6]) * generator.standard_normal(d)
    return rows, new


def _step(generator, rows, new):
    rows, new = rows.copy(), new.copy()
    i = generator.integers(len(rows))
    size = generator.choice([1e-3, 0.1, 1.0])
    if generator.integers(2):
        rows[i] = rows[generator.integers(len(rows))]  # a tie
    else:
        rows[i] += size * generator.standard_normal(rows.shape[1])
    if generator.integers(2):
        new += size * generator.standard_normal(rows.shape[1])
    return rows, new
