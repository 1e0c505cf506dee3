"""Small exact laws for tests/test_errata.py, written from the definitions: no code of the package."""

import math
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product

import numpy as np

# Normal and Laplace


def normal_cdf(x):
    """Return P(Z <= x) of the standard normal law; erfc keeps the lower tail."""
    return math.erfc(-x / math.sqrt(2)) / 2


def laplace_above(t):
    """Return P(W > t) of the Laplace law of scale 1."""
    return math.exp(-t) / 2 if t >= 0 else 1 - math.exp(t) / 2


def laplace_log_ratio(output, centre, other, scale):
    """Return the log ratio of two Laplace densities at one output."""
    return (abs(output - other) - abs(output - centre)) / scale


def gaussian_delta(epsilon, sigma):
    """Return the least delta of N(0, sigma^2) added to a number of sensitivity 1, by its closed form.

    It is P(N(1, s^2) in A) - e^epsilon P(N(0, s^2) in A) for the best set A = {loss > epsilon} (Balle and Wang, 2018).
    """
    return normal_cdf(0.5 / sigma - epsilon * sigma) - math.exp(epsilon) * normal_cdf(-0.5 / sigma - epsilon * sigma)


# Depths at a fixed point of a line, as functions of how many rows are at or below and at or above it


def spatial_mean(point, rows):
    """Return the mean of the signs of point - row."""
    return Fraction(sum((point > row) - (point < row) for row in rows), len(rows))


def spatial(point, rows):
    """Return the spatial depth on a line."""
    return 1 - abs(spatial_mean(point, rows))


def modified_spatial(point, rows):
    """Return the modified spatial depth on a line."""
    return 1 - spatial_mean(point, rows) ** 2


def printed_dual(le, ge, n):
    """Return the mean over u = 1 and u = -1 of F (1 - F), F the closed share."""
    return Fraction(le * (n - le) + ge * (n - ge), 2 * n * n)


def symmetric_dual(le, ge, n):
    """Return F(x) (1 - F(x-)): the form with atoms counted."""
    return Fraction(le * ge, n * n)


def twice_rank_weighted(le, ge, n):
    """Return the integrated rank-weighted depth with the factor 2."""
    return Fraction(2 * min(le, ge), n)


def worst_move(depth, n):
    """Return the largest change of a depth at a fixed point over all tables of n rows on a line and replacements."""
    worst = Fraction(0)
    for below in range(n):  # the other n - 1 rows
        for at in range(n - below):
            above = n - 1 - below - at
            # the replaced row is below, at or above the point
            values = [depth(below + at + (s <= 0), at + above + (s >= 0), n) for s in (-1, 0, 1)]
            worst = max(worst, max(values) - min(values))
    return worst


# The exponential mechanism on a line with a spatial depth


def mass_above_zero(rows, left, right, depth, beta):
    """Return P(theta > 0) for the prior U[left, right] and rows at 0 or outside: the depth is constant on each side."""
    below, above = (abs(end) * math.exp(beta * depth(end / 2, rows)) for end in (left, right))
    return above / (below + above)


# Vectors of depths at the rows


def halfspace_vector(rows):
    """Return the halfspace depths of rows on a line, at the rows."""
    return [Fraction(min(sum(r <= x for r in rows), sum(r >= x for r in rows)), len(rows)) for x in rows]


def simplicial_vector(rows):
    """Return the simplicial depths of rows on a line, at the rows: the share of pairs that enclose each."""
    pairs = math.comb(len(rows), 2)
    return [
        1 - Fraction(math.comb(sum(r < x for r in rows), 2) + math.comb(sum(r > x for r in rows), 2), pairs)
        for x in rows
    ]


def planar_halfspace_counts(rows):
    """Return n times the halfspace depths at planar rows, no three on a line.

    A closed halfplane with X_i on its edge that holds fewest rows can be turned until it is about to take in a row X_j:
    it then holds X_i and one open side of the line through X_i and X_j.
    """
    counts = []
    for i, (a, b) in enumerate(rows):
        fewest = len(rows)
        for j, (c, d) in enumerate(rows):
            if j == i:
                continue
            sides = [(c - a) * (f - b) - (d - b) * (e - a) for k, (e, f) in enumerate(rows) if k not in (i, j)]
            assert 0 not in sides
            fewest = min(fewest, sum(s > 0 for s in sides), sum(s < 0 for s in sides))
        counts.append(1 + fewest)
    return counts


def changes(first, second):
    """Return the absolute changes of a vector, entry by entry."""
    return [abs(a - b) for a, b in zip(first, second, strict=True)]


def printed_vector_bounds(n):
    """Return the bounds printed in 2021 for halfspace and IRW depth: L1, and L2 in the larger of its two readings."""
    k = (n + 1) // 2 - 1
    return Fraction(2 * k, n), math.sqrt(max(k**2 + k, 2 * k)) / n


def vector_moves(vector, n, distinct=False):
    """Yield the changes of a depth vector over all tables of n rows on a line and all replacements of the last row.

    Depths depend on the weak order alone. The other rows stand at 1, 3, 5, ..., with repetitions unless `distinct`; the
    replaced row stands at one of them or in a gap.
    """
    for others in combinations_with_replacement(range(1, 2 * n - 1, 2), n - 1):
        steps = len(set(others))
        if sorted(set(others)) != list(range(1, 2 * steps, 2)) or (distinct and steps < n - 1):
            continue
        places = range(0, 2 * steps + 1, 2 if distinct else 1)
        vectors = [vector([*others, place]) for place in places]
        yield from (changes(first, second) for first, second in combinations(vectors, 2))


# The median and the rows that must be replaced to move it


def two_tables(m):
    """Return two neighbours of 2 m - 1 rows, in tenths, so that a threshold of 1 is 10."""
    return [0] * m + [6] + [12] * (m - 2), [0] * (m - 1) + [6] + [12] * (m - 1)


def median_breakdown(rows, threshold):
    """Return min{k : replacing k rows can move the median by more than the threshold}, for an odd number of rows.

    With k rows replaced the m-th smallest lies anywhere between x_(m-k) and x_(m+k); m rows move it without a limit.
    """
    x, m = sorted(rows), (len(rows) + 1) // 2
    for k in range(1, m):
        if max(x[m - 1 + k] - x[m - 1], x[m - 1] - x[m - 1 - k]) > threshold:
            return k
    return m


def diameter_breakdown(rows, threshold):
    """Return min{k : two tables within k rows have medians more than the threshold apart}."""
    x, m = sorted(rows), (len(rows) + 1) // 2
    return next((k for k in range(1, m) if x[m - 1 + k] - x[m - 1 - k] > threshold), m)


def breakdowns_by_force(rows, threshold, values):
    """Return both of the above by trying every table with entries in `values`."""
    n, middle = len(rows), len(rows) // 2
    lowest, highest = [math.inf] * (n + 1), [-math.inf] * (n + 1)
    for table in product(values, repeat=n):
        k, median = sum(a != b for a, b in zip(rows, table, strict=True)), sorted(table)[middle]
        lowest[k], highest[k] = min(lowest[k], median), max(highest[k], median)
    own = lowest[0]
    reference = next(k for k in range(1, n + 1) if max(own - lowest[k], highest[k] - own) > threshold)
    diameter = next(k for k in range(1, n + 1) if max(highest[: k + 1]) - min(lowest[: k + 1]) > threshold)
    return reference, diameter


def release_probability(breakdown, epsilon, cut):
    """Return P(breakdown + W / epsilon > cut)."""
    return laplace_above(epsilon * (cut - breakdown))


# Markov chains on the way to their target


def halfspace_weights(rows, candidates, epsilon):
    """Return the weights exp(epsilon count / 2) of the exponential mechanism for candidates on a line."""
    counts = [min(sum(r <= x for r in rows), sum(r >= x for r in rows)) for x in candidates]
    return [math.exp(epsilon * count / 2) for count in counts]


def metropolis_law(weights, start, steps):
    """Return the law of a random walk Metropolis chain on 0, ..., len(weights) - 1 after some steps."""
    size = len(weights)
    kernel = np.zeros((size, size))
    for i, j in product(range(size), repeat=2):
        if abs(i - j) == 1:
            kernel[i, j] = 0.5 * min(1.0, weights[j] / weights[i])
    kernel[np.diag_indices(size)] = 1 - kernel.sum(axis=1)
    return np.linalg.matrix_power(kernel, steps)[start]


def dual_slope(point, row, smoothing):
    """Return the derivative of F (1 - F), F = logistic(smoothing (point - row)), of a table of one row."""
    share = 1 / (1 + math.exp(-smoothing * (point - row)))
    return smoothing * share * (1 - share) * (1 - 2 * share)
