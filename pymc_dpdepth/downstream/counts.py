r"""Counts of rows below the released points, given the population and what was released.

Rows are independent draws of a law with cdf F. The counts N_1 <= ... <= N_k of rows below the points t_1 < ... < t_k
form a Markov chain,

    N_1 ~ Binomial(n, F_1),    N_{i+1} - N_i | N_i ~ Binomial(n - N_i, (F_{i+1} - F_i) / (1 - F_i)),

and what was released at t_i enters as a factor g_i(N_i). The sum of the chain's law times the factors, T, is a forward
sum; a backward pass draws counts from the law that the factors have tilted. For halfspace depth along several axes the
factor couples the columns through the least of their depths, and the sum runs over levels:

    a^min_j h_j = 1 + sum_{l=1}^{H} (a^l - a^(l-1)) [h_j >= l for all j],    h_j = min(N_j, n - N_j),

so that T = sum_l (a^l - a^(l-1)) prod_j P(l <= N_j <= n - l), by the independence of the columns.
"""

from __future__ import annotations

import math

import numba
import numpy as np

__all__ = ["box_counts", "chain_counts", "log_factorials"]

# States whose term is below e^-20 of the largest are left out of sums of chains of two points and more.
ACTIVE = 20.0
SMALLEST = 1e-300  # shares are kept above, so that their logarithms are finite
NOTHING = -math.inf


def log_factorials(n: int) -> np.ndarray:
    """Return log(0!), ..., log(n!)."""
    from scipy.special import gammaln

    return gammaln(np.arange(n + 1) + 1.0)


@numba.njit(cache=True, nogil=True)
def _log_binomial(count, n, log_share, log_rest, factorials):
    """Return the log probability of `count` successes among n."""
    ways = factorials[n] - factorials[count] - factorials[n - count]
    return ways + count * log_share + (n - count) * log_rest


@numba.njit(cache=True, nogil=True)
def _log_sum(terms, size):
    """Return log sum exp of the first `size` terms."""
    top = NOTHING
    for i in range(size):
        top = max(top, terms[i])
    if top == NOTHING:
        return NOTHING
    total = 0.0
    for i in range(size):
        total += math.exp(terms[i] - top)
    return top + math.log(total)


@numba.njit(cache=True, nogil=True)
def _cumulate(terms, size, log_total, passed):
    """Write the partial sums of exp(terms - log_total)."""
    total = 0.0
    for i in range(size):
        total += math.exp(terms[i] - log_total)
        passed[i] = total


@numba.njit(cache=True, nogil=True)
def _pick(terms, size, log_total, uniform):
    """Return an index drawn with weights exp(terms)."""
    passed = 0.0
    last = 0
    for i in range(size):
        share = math.exp(terms[i] - log_total)
        if share > 0.0:
            passed += share
            last = i
            if passed >= uniform:
                return i
    return last


@numba.njit(cache=True, nogil=True)
def _active_states(lower, upper, log_factors, factorials, states, sizes):
    """Write the counts at each point whose own term, binomial times factor, is not negligible."""
    points, n = lower.size, factorials.size - 1
    terms = np.empty(n + 1)
    for i in range(points):
        log_share, log_rest = math.log(max(lower[i], SMALLEST)), math.log(max(upper[i], SMALLEST))
        top = NOTHING
        for count in range(n + 1):
            terms[count] = _log_binomial(count, n, log_share, log_rest, factorials) + log_factors[i, count]
            top = max(top, terms[count])
        sizes[i] = 0
        for count in range(n + 1):
            if terms[count] >= top - ACTIVE:
                states[i, sizes[i]] = count
                sizes[i] += 1


@numba.njit(cache=True, nogil=True)
def _log_steps(lower, upper, i):
    """Return the logs of (F_i - F_{i-1}) / (1 - F_{i-1}) and of its complement, each from the accurate tails."""
    between = lower[i] - lower[i - 1] if lower[i] < upper[i] else upper[i - 1] - upper[i]
    rest = max(upper[i - 1], SMALLEST)
    return math.log(max(between, SMALLEST) / rest), math.log(max(upper[i], SMALLEST) / rest)


@numba.njit(cache=True, nogil=True)
def _forward(lower, upper, log_factors, factorials, states, sizes, alphas):
    """Fill the forward sums of the active states and return the log of T."""
    points, n = lower.size, factorials.size - 1
    terms = np.empty(n + 1)
    for i in range(points):
        if i == 0:
            log_share, log_rest = math.log(max(lower[0], SMALLEST)), math.log(max(upper[0], SMALLEST))
        else:
            log_share, log_rest = _log_steps(lower, upper, i)
        for b in range(sizes[i]):
            count = states[i, b]
            if i == 0:
                reached = _log_binomial(count, n, log_share, log_rest, factorials)
            else:
                size = 0
                for a in range(sizes[i - 1]):
                    before = states[i - 1, a]
                    if before <= count:
                        step = _log_binomial(count - before, n - before, log_share, log_rest, factorials)
                        terms[size] = alphas[i - 1, a] + step
                        size += 1
                reached = _log_sum(terms, size)
            alphas[i, b] = reached + log_factors[i, count]
    return _log_sum(alphas[points - 1], sizes[points - 1])


@numba.njit(cache=True, nogil=True)
def _backward(lower, upper, factorials, states, sizes, alphas, log_total, uniforms, counts):
    """Draw counts from the last point to the first."""
    replicates, points = uniforms.shape
    n, last = factorials.size - 1, points - 1
    terms, passed = np.empty(n + 1), np.empty(sizes[points - 1])
    _cumulate(alphas[last], sizes[last], log_total, passed)
    for m in range(replicates):
        drawn = states[last, min(np.searchsorted(passed, uniforms[m, last]), sizes[last] - 1)]
        counts[m, last] = drawn
        for i in range(last - 1, -1, -1):
            log_share, log_rest = _log_steps(lower, upper, i + 1)
            for a in range(sizes[i]):
                before = states[i, a]
                terms[a] = NOTHING
                if before <= drawn:
                    step = _log_binomial(drawn - before, n - before, log_share, log_rest, factorials)
                    terms[a] = alphas[i, a] + step
            drawn = states[i, _pick(terms, sizes[i], _log_sum(terms, sizes[i]), uniforms[m, i])]
            counts[m, i] = drawn


@numba.njit(cache=True, nogil=True)
def chain_counts(lower, upper, log_factors, factorials, uniforms):
    """Return log T and draws of the tilted counts, for each of P populations.

    Parameters
    ----------
    lower, upper : ndarray of float64, shape (P, k)
        F and 1 - F at the ascending points.
    log_factors : ndarray of float64, shape (k, n + 1)
        log g_i by count.
    factorials : ndarray of float64, shape (n + 1,)
        Of `log_factorials`.
    uniforms : ndarray of float64, shape (P, M, k)

    Returns
    -------
    log_totals : ndarray of float64, shape (P,)
    counts : ndarray of int64, shape (P, M, k)
    """
    populations, replicates, points = uniforms.shape
    n = factorials.size - 1
    log_totals, counts = np.empty(populations), np.zeros((populations, replicates, points), dtype=np.int64)
    states, sizes = np.empty((points, n + 1), dtype=np.int64), np.empty(points, dtype=np.int64)
    alphas = np.empty((points, n + 1))
    for p in range(populations):
        _active_states(lower[p], upper[p], log_factors, factorials, states, sizes)
        log_totals[p] = _forward(lower[p], upper[p], log_factors, factorials, states, sizes, alphas)
        if log_totals[p] == NOTHING and points > 1:
            # The points' own likely counts contradict one another: take all counts between the least and the largest.
            least, most = n, 0
            for i in range(points):
                least, most = min(least, states[i, 0]), max(most, states[i, sizes[i] - 1])
            for i in range(points):
                sizes[i] = most - least + 1
                for b in range(sizes[i]):
                    states[i, b] = least + b
            log_totals[p] = _forward(lower[p], upper[p], log_factors, factorials, states, sizes, alphas)
        if log_totals[p] > NOTHING:
            _backward(lower[p], upper[p], factorials, states, sizes, alphas, log_totals[p], uniforms[p], counts[p])
    return log_totals, counts


@numba.njit(cache=True, nogil=True)
def _add_log_insides(logs, shares, levels):
    """Add the logs of P(l <= N <= n - l) to the levels l, summed from the middle outwards: no cancellation.

    `shares` are the probabilities over their largest. Where these underflow, a running largest term takes over.
    """
    n = logs.size - 1
    half = n // 2
    largest = logs[half]
    for level in range(half + 1):
        largest = max(largest, logs[level], logs[n - level])
    plain = shares[half] > SMALLEST
    top, inside = (largest, 0.0) if plain else (NOTHING, 0.0)
    for level in range(half, -1, -1):
        if plain:
            inside += shares[level] + (shares[n - level] if level != n - level else 0.0)
        else:
            outer = max(logs[level], logs[n - level])
            if outer > top:
                inside, top = inside * math.exp(top - outer), outer
            inside += math.exp(logs[level] - top) + (math.exp(logs[n - level] - top) if level != n - level else 0.0)
        levels[level] += top + math.log(inside)


@numba.njit(cache=True, nogil=True)
def _draw_within(cumulated, logs, level, uniform):
    """Return a count in level, ..., n - level, with weights exp(logs)."""
    n = logs.size - 1
    below = cumulated[level - 1] if level > 0 else 0.0
    width = cumulated[n - level] - below
    if width <= 0.0:  # underflow far from the bulk, where the end nearer to it has all the weight
        return level if logs[level] >= logs[n - level] else n - level
    return min(max(np.searchsorted(cumulated, below + uniform * width), level), n - level)


@numba.njit(cache=True, nogil=True)
def box_counts(lower, upper, rate, factorials, uniforms):
    """Return log T, relative to the depth of a middle, and draws of the tilted counts of d coupled columns.

    Parameters
    ----------
    lower, upper : ndarray of float64, shape (P, d)
        F and 1 - F of each column at the released value.
    rate : float
        log a, the exponent of one level.
    factorials : ndarray of float64, shape (n + 1,)
    uniforms : ndarray of float64, shape (P, M, d + 1)

    Returns
    -------
    log_totals : ndarray of float64, shape (P,)
        log(T / a^floor(n/2)).
    counts : ndarray of int64, shape (P, M, d)
    """
    populations, replicates, width = uniforms.shape
    d, n = width - 1, factorials.size - 1
    half = n // 2
    log_totals, counts = np.empty(populations), np.empty((populations, replicates, d), dtype=np.int64)
    logs, cumulated, shares = np.empty((d, n + 1)), np.empty((d, n + 1)), np.empty(n + 1)
    levels, passed = np.empty(half + 1), np.empty(half + 1)
    log_step = math.log(-math.expm1(-rate)) if rate > 0.0 else NOTHING
    for p in range(populations):
        for level in range(half + 1):
            levels[level] = rate * (level - half) + (log_step if level > 0 else 0.0)
        for j in range(d):
            log_share, log_rest = math.log(max(lower[p, j], SMALLEST)), math.log(max(upper[p, j], SMALLEST))
            top = NOTHING
            for count in range(n + 1):
                logs[j, count] = _log_binomial(count, n, log_share, log_rest, factorials)
                top = max(top, logs[j, count])
            total = 0.0
            for count in range(n + 1):
                shares[count] = math.exp(logs[j, count] - top)
                total += shares[count]
                cumulated[j, count] = total
            _add_log_insides(logs[j], shares, levels)
        log_totals[p] = _log_sum(levels, half + 1)
        _cumulate(levels, half + 1, log_totals[p], passed)
        for m in range(replicates):
            level = min(np.searchsorted(passed, uniforms[p, m, d]), half)
            for j in range(d):
                counts[p, m, j] = _draw_within(cumulated[j], logs[j], level, uniforms[p, m, j])
    return log_totals, counts
