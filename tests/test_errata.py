"""The counterexamples of docs/errata.md, each computed from its definition; the page names the tests."""

import math
import re
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement
from pathlib import Path

import errata_laws as laws
import numpy as np
import pytest

import pymc_dpdepth as dpd
from pymc_dpdepth.depths.vector_sensitivity import sample_sensitivity

PAGE = Path(__file__).parents[1] / "docs" / "errata.md"
EPSILON = 1.0


# Sensitivities at a fixed point


def test_spatial_depth_with_d_over_n_on_a_line():
    # Rows outside the prior's support [-9, 1]; a tenth of the prior's mass is above 0.
    x, y, n, d = [0] * 99 + [10], [0] * 99 + [-10], 100, 1
    # The signs have values in [-1, 1], not in [0, 1]: a mean of n of them moves by 2/n.
    assert laws.spatial_mean(0.5, y) - laws.spatial_mean(0.5, x) == Fraction(2, n)

    def log_ratio(sensitivity):
        first, second = (
            laws.mass_above_zero(rows, -9, 1, laws.spatial, EPSILON / (2 * sensitivity)) for rows in (x, y)
        )
        return math.log(first / second)

    assert log_ratio(d / n) == pytest.approx(1.776, abs=5e-4)
    assert log_ratio(d / n) > EPSILON
    assert log_ratio(dpd.Spatial().sensitivity(n, d)) <= EPSILON


def test_modified_spatial_depth_with_one_over_n():
    x, y, n = [0] * 99 + [1.5], [0] * 99 + [-1.5], 100
    # A squared length changes by more than the length does.
    assert laws.modified_spatial(0.5, x) - laws.modified_spatial(0.5, y) == Fraction(4 * (n - 1), n * n)

    def probabilities(sensitivity):
        beta = EPSILON / (2 * sensitivity)
        return [laws.mass_above_zero(rows, -1, 1, laws.modified_spatial, beta) for rows in (x, y)]

    first, second = probabilities(1 / n)
    assert (first, second) == pytest.approx((0.8787, 0.1213), abs=5e-5)
    assert math.log(first / second) == pytest.approx(1.98, abs=5e-3)
    first, second = probabilities(dpd.ModifiedSpatial().sensitivity(n, 1))
    assert math.log(first / second) <= EPSILON


@pytest.mark.parametrize("n", range(1, 9))
def test_integrated_depths_move_less_than_printed(n):
    # Exhaustive on a line: a depth there depends on how many rows are at or below and at or above the point.
    printed_form = laws.worst_move(laws.printed_dual, n)
    assert printed_form <= Fraction(1, n) < Fraction(3, n)
    assert laws.worst_move(laws.symmetric_dual, n) == Fraction(1, n)
    assert laws.worst_move(laws.twice_rank_weighted, n) == Fraction(2, n) < Fraction(4, n)
    assert dpd.IntegratedDual().sensitivity(n, 1) == pytest.approx(1 / n)
    assert dpd.IntegratedRankWeighted().sensitivity(n, 1) == pytest.approx(1 / n)


@pytest.mark.parametrize("n", range(1, 9))
def test_smoothed_integrated_dual_depth_moves_less_than_printed(n):
    # A row adds a number in [0, 1] to the share; 0 and 1 are the limits of rows far away. All multiples of 1/50.
    others = [Fraction(k, 50) for k in range(50 * (n - 1) + 1)]
    terms = [Fraction(k, 50) for k in range(51)]

    def spread(other):
        depths = [(other + term) / n * (1 - (other + term) / n) for term in terms]
        return max(depths) - min(depths)

    worst = max(map(spread, others))
    assert worst == (Fraction(n - 1, n * n) if n > 1 else Fraction(1, 4))
    assert dpd.IntegratedDual(smoothing=10).sensitivity(n, 1) == pytest.approx(float(worst))
    assert worst < Fraction(3, n)


# Definitions


def test_integrated_rank_weighted_depth_as_printed_is_constant():
    # min(F(x, u), 1 - F(x, -u)) is the strict share, whose mean over u = 1 and u = -1 is 1/2 wherever no row is.
    rows = np.array([-3.0, 0.0, 1.0, 2.0, 7.0])

    def share(x, u):
        return np.mean(rows * u <= x * u)

    printed = [2 * np.mean([min(share(x, u), 1 - share(x, -u)) for u in (1, -1)]) for x in (-50, -1, 0.5, 1.5, 50)]
    np.testing.assert_allclose(printed, 1)
    points = np.array([[-50.0], [0.5], [1.5]])
    np.testing.assert_allclose(dpd.IntegratedRankWeighted().evaluate(points, rows[:, None]), [0, 0.4, 0.4])


def test_printed_integrated_dual_depth_does_not_see_an_atom():
    rows, n = [0] * 8 + [-1, 1], 10
    counts = {x: (sum(r <= x for r in rows), sum(r >= x for r in rows)) for x in (0, 0.5)}
    assert [laws.printed_dual(*counts[x], n) for x in (0, 0.5)] == [Fraction(9, 100)] * 2
    assert [laws.symmetric_dual(*counts[x], n) for x in (0, 0.5)] == [Fraction(81, 100), Fraction(9, 100)]
    computed = dpd.IntegratedDual().evaluate(np.array([[0.0], [0.5]]), np.array(rows, float)[:, None])
    np.testing.assert_allclose(computed, [0.81, 0.09])


def test_adjacency_by_one_element_of_difference_has_no_pairs():
    tables = list(combinations_with_replacement(range(4), 3))
    sizes = {sum(abs(x.count(v) - y.count(v)) for v in range(4)) for x in tables for y in tables}
    assert sizes == {0, 2, 4, 6}


# Depths of the rows themselves


@pytest.mark.parametrize("n", range(2, 9))
def test_halfspace_depths_of_the_rows_on_a_line(n):
    # Exhaustive over the weak orders on a line; IRW depth is the same there.
    distinct = laws.vector_moves(laws.halfspace_vector, n, distinct=True)
    assert max(map(sum, distinct)) == laws.printed_vector_bounds(n)[0]  # right without ties
    moves = list(laws.vector_moves(laws.halfspace_vector, n))
    first, second = max(map(sum, moves)), max(sum(c * c for c in move) for move in moves)
    assert first == Fraction(2 * (n - 1), n)
    assert second == Fraction(n - 1, n)
    ours = sample_sensitivity(dpd.Halfspace(directions="axes"), n, 1)
    assert (ours.l1, ours.l2_squared) == (first, second)
    printed_first, printed_second = laws.printed_vector_bounds(n)
    assert first >= 2 * printed_first
    assert math.sqrt(second) > 1.5 * printed_second
    half = (n + 1) // 2  # the largest readings of the digits that are lost after the minus signs
    assert n < 4 or (first > Fraction(2 * half, n) and second > Fraction(half**2 + half, n * n))


def test_halfspace_depths_of_rows_in_the_plane_without_ties():
    others, before, after = [(1, 6), (-1, -6), (3, 1), (-4, -8), (-1, 9)], (0, 2), (23, -19)
    counts = [laws.planar_halfspace_counts([*others, row]) for row in (before, after)]
    assert counts == [[1, 1, 1, 1, 1, 3], [2, 2, 2, 1, 1, 1]]
    assert (
        Fraction(sum(laws.changes(*counts)), 6) == Fraction(5, 6) > laws.printed_vector_bounds(6)[0] == Fraction(2, 3)
    )
    for row, expected in zip((before, after), counts, strict=True):
        table = np.array([*others, row], float)
        np.testing.assert_allclose(6 * dpd.Halfspace(directions=None).evaluate(table, table), expected)


@pytest.mark.parametrize("n", range(2, 9))
def test_simplicial_depths_of_the_rows(n):
    moves = list(laws.vector_moves(laws.simplicial_vector, n))
    d, other = 1, Fraction(2 * (n - 2), n * (n - 1))
    own = 1 - Fraction(d + 1, n)
    assert sample_sensitivity(dpd.Simplicial(), n, d).l1 == own + (n - 1) * other
    assert max(move[-1] for move in moves) == own
    assert max(max(move[:-1]) for move in moves) == other
    first, second = max(map(sum, moves)), max(sum(c * c for c in move) for move in moves)
    assert first <= own + (n - 1) * other
    assert second <= own**2 + (n - 1) * other**2
    largest = {2: 0, 3: 1, 4: "7/6", 5: "13/10", 6: "7/5", 7: "10/7", 8: "3/2"}
    assert first == Fraction(largest[n])
    # The printed L2 bound, with the squares that the copy lost, holds on a line.
    assert second <= own**2 + Fraction(d + 1, n) ** 2


def test_norms_are_mixed_in_the_order_of_the_vector_sensitivity():
    # All rows at 0, one replaced: the L1 change of the halfspace depths, against the square printed for it (K = 1).
    n = 100
    change = sum(laws.changes(laws.halfspace_vector([0] * n), laws.halfspace_vector([0] * (n - 1) + [1])))
    assert change == Fraction(2 * (n - 1), n)
    assert change**2 > Fraction(1, n) + 1
    # Laplace noise for that change: its Euclidean length is of the order sqrt(n), its L1 length of the order n.
    generator = np.random.default_rng(20)
    for size in (1_000, 100_000):
        noise = generator.laplace(scale=2 * (size - 1) / size, size=size)
        # Means of |W| and W^2 at scale b are b and 2 b^2, with standard deviations b and sqrt(20) b^2; b <= 2 and six
        # standard errors (2e-9 each).
        assert np.sqrt(np.sum(noise**2)) <= math.sqrt(8 * size * (1 + 6 * math.sqrt(5 / size)))
        assert abs(np.sum(np.abs(noise)) / size - 2) <= 6 * 2 / math.sqrt(size) + 2 * 2 / size
        assert np.sqrt(np.sum(noise**2)) < 0.2 * size


# Propose-test-release


@pytest.mark.parametrize("m", [2, 3, 4])
def test_breakdowns_agree_with_all_tables(m):
    for rows in laws.two_tables(m):
        by_force = laws.breakdowns_by_force(rows, 10, (-100, 0, 6, 12, 100))
        assert by_force == (laws.median_breakdown(rows, 10), laws.diameter_breakdown(rows, 10))


def test_truncated_breakdown_point_is_not_one_sensitive():
    m, delta = 1000, 1e-6
    x, y = laws.two_tables(m)
    assert (Counter(x) - Counter(y), Counter(y) - Counter(x)) == ({0: 1}, {12: 1})
    assert (laws.median_breakdown(x, 10), laws.median_breakdown(y, 10)) == (2, m)
    # The cut as it stands in our copy, the cut with the 1 that other places of the paper have, and the exact one.
    cuts = [math.log(2 / delta), 1 + math.log(2 / delta), 1 + math.log(1 / (2 * delta))]
    released_x = [laws.release_probability(2, EPSILON, cut) for cut in cuts]
    released_y = [laws.release_probability(m, EPSILON, cut) for cut in cuts]
    assert released_x == pytest.approx([1.85e-6, 6.8e-7, 2.72e-6], rel=5e-3)
    for first, second in zip(released_x, released_y, strict=True):
        assert 1 - second < 1e-15
        assert second > math.exp(2 * EPSILON) * first + delta
    # One row at .6 in place of 0, and both tables are as far apart as can be: 1 against m.
    assert [laws.median_breakdown([0] * (m - 1) + [row] + [12] * (m - 1), 10) for row in (0, 6)] == [1, m]


def test_diameter_breakdown_is_one_sensitive():
    values, threshold, n = (0, 3, 6, 9, 12), 10, 7
    worst = {laws.median_breakdown: 0, laws.diameter_breakdown: 0}
    for others in combinations_with_replacement(values, n - 1):
        for breakdown in worst:
            found = [breakdown([*others, value], threshold) for value in values]
            worst[breakdown] = max(worst[breakdown], max(found) - min(found))
    assert worst == {laws.median_breakdown: 3, laws.diameter_breakdown: 1}
    assert [laws.diameter_breakdown(rows, 10) for rows in laws.two_tables(1000)] == [2, 1]


@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_cut_of_propose_test_release(delta, epsilon):
    # A breakdown of 1 must be released with probability delta at most.
    printed, exact = (1 + math.log(ratio) / epsilon for ratio in (2 / delta, 1 / (2 * delta)))
    assert laws.release_probability(1, epsilon, printed) == pytest.approx(delta / 4)
    assert laws.release_probability(1, epsilon, exact) == pytest.approx(delta)
    assert printed - exact == pytest.approx(math.log(4) / epsilon)
    # In the proof the refusal is counted where the noisy breakdown exceeds the cut; the mechanism refuses below it.
    refused = 1 - laws.release_probability(1, epsilon, printed)
    assert refused > 1 - delta > laws.release_probability(1, epsilon, printed)


# Noise


@pytest.mark.parametrize("epsilon, sigma", [(0.5, 2.0), (1.0, 0.7), (10.0, 0.53)])
def test_delta_of_gaussian_noise_by_quadrature(epsilon, sigma):
    outputs = np.linspace(-12 * sigma, 1 + 12 * sigma, 400_001)
    densities = [np.exp(-(((outputs - mean) / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi)) for mean in (1, 0)]
    delta = np.sum(np.maximum(densities[0] - math.exp(epsilon) * densities[1], 0)) * (outputs[1] - outputs[0])
    assert delta == pytest.approx(laws.gaussian_delta(epsilon, sigma), rel=1e-3)


@pytest.mark.parametrize("delta, kept, broken", [(0.1, 5, 6), (0.01, 6, 7), (1e-3, 7, 8), (1e-6, 8, 9)])
def test_classical_gaussian_noise_breaks_its_delta_for_large_epsilon(delta, kept, broken):
    def realised(epsilon):
        return laws.gaussian_delta(epsilon, math.sqrt(2 * math.log(1.25 / delta)) / epsilon)

    assert all(realised(epsilon) <= delta for epsilon in [*np.linspace(0.05, 1, 20), *range(2, kept + 1)])
    assert realised(broken) > delta
    assert realised(20) > 2 * delta
    # The package's noise for one depth, in units of its sensitivity, keeps delta where the classical one breaks it.
    for epsilon in (1.0, broken, 20.0):
        (record,) = dpd.private_depth([[0.0]], np.arange(2000.0), epsilon=epsilon, delta=delta / 2000).mechanisms
        ours = laws.gaussian_delta(epsilon, record["noise_scale"] / record["vector_sensitivity"])
        assert ours <= delta / 2000 and ours == pytest.approx(delta / 2000, rel=1e-3)


# Composition


def test_parallel_composition_needs_public_parts():
    # Two cells, one row: it moves from one to the other. Each count is epsilon-private, the pair of them 2 epsilon.
    x, y, output = (1, 0), (0, 1), (2.0, -1.0)
    losses = [laws.laplace_log_ratio(output[cell], x[cell], y[cell], 1 / EPSILON) for cell in (0, 1)]
    assert losses == pytest.approx([EPSILON, EPSILON])
    assert sum(losses) == pytest.approx(2 * EPSILON)


def test_folds_beside_the_full_table_cost_twice():
    # The row's fold and the whole table are both published with fresh noise.
    loss = sum(laws.laplace_log_ratio(5.0, 1, 0, 1 / EPSILON) for _ in ("fold", "table"))
    assert loss == pytest.approx(2 * EPSILON)
    # When the table's sum is the sum of the noisy folds it is a function of them: one term is left.
    assert laws.laplace_log_ratio(5.0, 1, 0, 1 / EPSILON) == pytest.approx(EPSILON)


# Extrema of parameters


def test_nuisance_fitted_to_the_rows():
    # y = z b + x g + e, |x|, |y|, |z| <= 1, Z'X = 0 and Z'y = 0 in both tables; only the last row is replaced.
    t = Fraction(1, 1000)
    z = [1, -1] * 24 + [0, 0]
    tables = [([t] * 50, [1] * 50), ([t] * 49 + [1], [1] * 49 + [0])]

    def residual_sum(x, y, b, g):
        return sum((yi - zi * b - xi * g) ** 2 for xi, yi, zi in zip(x, y, z, strict=True))

    def fitted(x, y):
        assert (
            sum(xi * zi for xi, zi in zip(x, z, strict=True)) == sum(yi * zi for yi, zi in zip(y, z, strict=True)) == 0
        )
        return Fraction(sum(xi * yi for xi, yi in zip(x, y, strict=True)), sum(xi * xi for xi in x))

    sums = [residual_sum(x, y, 0, fitted(x, y)) for x, y in tables]
    assert sums[0] == 0 and 48.99 < sums[1] < 49
    for b in (Fraction(-1, 3), 2):  # whatever private b is plugged in, as Z'X = Z'y = 0
        assert (
            residual_sum(*tables[1], b, fitted(*tables[1])) - residual_sum(*tables[0], b, fitted(*tables[0])) == sums[1]
        )
    # With coefficients that do not depend on the rows the change is at most (1 + |b| + |g|)^2.
    for g in (-1, 0, 1):
        assert abs(residual_sum(*tables[1], 0, g) - residual_sum(*tables[0], 0, g)) <= (1 + abs(g)) ** 2


def test_correction_with_the_number_of_coordinates_loses_coverage():
    # Five equal means, n = 1000, r = 0.1, no privacy noise: how often the 95% lower limit is at most the maximum.
    generator, n, k, r, tables = np.random.default_rng(3), 1000, 5, 0.1, 3000
    estimates = generator.standard_normal((tables, k))  # sqrt(n) times the estimates
    replicates = generator.standard_normal((2000, k))
    best = estimates.max(axis=1, keepdims=True)

    def coverage(rows):
        shifted = estimates + (1 - rows ** (r - 0.5)) * (best - estimates)
        gaps = np.sort([np.max(table + replicates, axis=1) - top[0] for table, top in zip(shifted, best, strict=True)])
        return np.mean(best[:, 0] - gaps[:, 1899] <= 0)  # the 1,900th of 2,000 is the 95% quantile

    assert (1 - k ** (r - 0.5), 1 - n ** (r - 0.5)) == pytest.approx((0.475, 0.937), abs=5e-4)
    # Standard errors of tables and of shared replicates are .0065 and .008 at .85, .01 together: three of them.
    assert (coverage(n), coverage(k)) == pytest.approx((0.937, 0.849), abs=0.03)


def extremum_of_separate_means(r, tables=3000):
    """Return sqrt(n) times the largest estimates less the largest mean, and sorted max_j(b*_j + d_j) - m.

    Means 0, .25, .5, .75, 1 of unit normal columns, n = 1000, no privacy noise.
    """
    generator, n, k = np.random.default_rng(3), 1000, 5
    means = math.sqrt(n) * np.linspace(0, 1, k)
    estimates = means + generator.standard_normal((tables, k))
    replicates = generator.standard_normal((2000, k))
    best = estimates.max(axis=1, keepdims=True)
    shifted = estimates + (1 - n ** (r - 0.5)) * (best - estimates)
    gaps = np.sort([np.max(table + replicates, axis=1) - top[0] for table, top in zip(shifted, best, strict=True)])
    return best[:, 0] - means[-1], gaps


@pytest.mark.parametrize(("r", "mirrored"), [(1 / 30, 0.636), (0.1, 0.715), (0.2, 0.841)])
def test_mirrored_upper_limit_loses_coverage(r, mirrored):
    error, gaps = extremum_of_separate_means(r)
    # The 101st of 2,000 is the 5% quantile. Standard errors of tables and of shared replicates: .009 and .01 together
    # .013 at .64, less at .84; three of them.
    assert np.mean(error - gaps[:, 100] >= 0) == pytest.approx(mirrored, abs=0.04)
    # The limit of the largest estimate by itself covers: its error is a standard normal one.
    assert np.mean(error + 1.645 >= 0) == pytest.approx(0.95, abs=0.012)
    assert np.mean(error - gaps[:, 1899] <= 0) >= 0.95 - 0.012  # the lower limit is valid


def test_bias_reduced_estimate_is_too_low_where_means_differ():
    for r, bias in ((1 / 30, -0.0219), (0.1, -0.0163)):
        error, gaps = extremum_of_separate_means(r)
        # The mean of 3,000 tables has a standard error of 1 / sqrt(3000), in these units less than .0006.
        assert np.mean(error - gaps.mean(axis=1)) / math.sqrt(1000) == pytest.approx(bias, abs=4 * 0.0006)
        assert abs(np.mean(error)) / math.sqrt(1000) < 4 * 0.0006  # the largest estimate itself has none


def test_noisy_covariances_are_indefinite():
    generator, k = np.random.default_rng(3), 5
    scale = k * (k + 1) / 2 * 4**2  # the upper triangle of x x' in the box [-4, 4]^5, epsilon = 1
    shares = []
    for n in (100, 1000):
        noise = np.triu(generator.laplace(scale=scale, size=(500, k, k)))
        noise += np.triu(noise, 1).swapaxes(1, 2)
        shares.append(np.mean(np.linalg.eigvalsh(np.eye(k) + noise / n).min(axis=1) < 0))
    # A share of 500 has a standard error of .022; three of them.
    assert shares == pytest.approx([1.0, 0.48], abs=0.07)


# Sampling


def test_metropolis_chain_before_its_target():
    # Ten rows at 2, or one of them at 0; halfspace depth, candidates -3, ..., 3, uniform prior, epsilon 1; start at 0.
    x, y = (laws.halfspace_weights(rows, range(-3, 4), EPSILON) for rows in ([2] * 10, [2] * 9 + [0]))

    def loss(steps):
        first, second = (laws.metropolis_law(weight, 3, steps) for weight in (x, y))
        if np.any((first > 0) != (second > 0)):
            return math.inf
        both = first > 0
        return np.max(np.abs(np.log(first[both] / second[both])))

    assert [loss(steps) for steps in (1, 2, 3)] == [math.inf] * 3
    assert [loss(5), loss(10), loss(30)] == pytest.approx([5.694, 1.445, 0.562], abs=1e-3)
    target = np.abs(np.log(np.array(x) / sum(x)) - np.log(np.array(y) / sum(y)))
    assert loss(20_000) == pytest.approx(target.max(), abs=1e-6) == pytest.approx(0.962, abs=1e-3)


def test_langevin_step_has_no_epsilon():
    # One row at 0.1 or -0.1, smoothing 10, prior N(0, 1), start 0, step h = 0.1: one step is N(+-shift, 2 h).
    step, beta = 0.1, EPSILON / (2 * dpd.IntegratedDual(smoothing=10).sensitivity(1, 1))
    shift = step * beta * laws.dual_slope(0.0, 0.1, 10)
    assert laws.dual_slope(0.0, -0.1, 10) == pytest.approx(-laws.dual_slope(0.0, 0.1, 10))
    # log ratio at theta = 2 shift theta / (2 h), without a limit
    beyond = EPSILON * step / abs(shift)
    ratio = [abs((theta + shift) ** 2 - (theta - shift) ** 2) / (4 * step) for theta in (beyond, 10 * beyond)]
    assert ratio == pytest.approx([EPSILON, 10 * EPSILON])
    delta = laws.gaussian_delta(EPSILON, math.sqrt(2 * step) / (2 * abs(shift)))
    assert delta == pytest.approx(0.0667, abs=1e-4)


# Rates and formulas


def test_upper_bounds_on_epsilon_do_not_give_consistency():
    # epsilon = 1/n^2 is O of every rate allowed. Halfspace depth, prior U[-10, 10]: P(|theta| < 1) stays at .1.
    def near(n, epsilon):
        rows, points = np.linspace(-1, 1, n), np.linspace(-10, 10, 20_001)[1:] - 0.0005
        depth = np.minimum(np.searchsorted(rows, points, "right"), n - np.searchsorted(rows, points))
        weights = np.exp(epsilon / 2 * (depth - depth.max()))
        return np.sum(weights[np.abs(points) < 1]) / np.sum(weights)

    for n in (11, 101, 1001):
        assert near(n, n**-2.0) == pytest.approx(0.1, abs=0.1 * math.expm1(1 / n))
    assert near(1001, 1.0) > 0.999


def test_density_with_population_and_sample_depth_does_not_integrate_to_one():
    # Rows -1, 0, 1; F standard normal; prior U[-3, 3]; epsilon 1; beta = n epsilon / 2.
    rows, beta = [-1, 0, 1], 1.5
    points = np.linspace(-3, 3, 60_001)[1:] - 5e-5
    sample = np.array([min(sum(r <= x for r in rows), sum(r >= x for r in rows)) / 3 for x in points])
    population = np.array([laws.normal_cdf(-abs(x)) for x in points])
    mass = np.sum(np.exp(-beta * (0.5 - population))) / np.sum(np.exp(-beta * (0.5 - sample)))
    assert mass == pytest.approx(1.0296, abs=5e-4)


def test_discrepancy_of_the_integrated_dual_depth_needs_the_root():
    # d = 1, variance 4, t = 1: F and 1 - F must add up to 1.
    variance, t = 4.0, 1.0
    below, printed, right = (laws.normal_cdf(z) for z in (-t / 2, t / variance, t / math.sqrt(variance)))
    assert below + right == pytest.approx(1)
    assert below + printed == pytest.approx(0.907, abs=5e-4)
    assert (0.25 - below * printed, 0.25 - below * right) == pytest.approx((0.0653, 0.0367), abs=5e-5)


def test_set_of_near_maximisers_has_its_sign_reversed():
    # Seven equally likely candidates, density proportional to exp(epsilon q): the bound with {q >= max - t} holds.
    scores = np.array([0, 1, 2, 3, 2, 1, 0])
    law = np.exp(EPSILON * scores) / np.sum(np.exp(EPSILON * scores))
    for t in (0.25, 0.5, 1.0, 1.25):
        assert not np.any(scores - scores.max() >= 2 * t)  # as printed
        near = np.mean(scores >= scores.max() - t)
        assert 0 < np.sum(law[scores.max() - scores > 2 * t]) <= math.exp(-t * EPSILON) / near


# The page


def test_page_names_each_test_and_no_other():
    written = set(re.findall(r"`(test_\w+)`", PAGE.read_text()))
    here = {name for name in globals() if name.startswith("test_")} - {"test_page_names_each_test_and_no_other"}
    assert written == here
