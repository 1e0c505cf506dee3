"""The Gaussian family: sensitivities by enumeration and attack, exact sums, estimates, the floor, settings."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from extrema_cases import BOUNDS, normal_rows

import pymc_dpdepth as dpd
from pymc_dpdepth.extrema import Gaussian, gaussian
from pymc_dpdepth.extrema.gaussian import EXACT_ROWS

MOST = np.finfo(np.float64).max
# Half-widths of unequal columns, and middles that are no multiples of a grid.
WIDTHS = ((1.0,), (1.0, 1.0), (3.0, 0.7), (1.0, 0.3, 0.1), (2.0, 2.0, 2.0, 2.0), (1.0, 1.0, 0.5, 0.01, 1.0))


def family_of_widths(half, middle=0.1):
    half = np.asarray(half)
    return Gaussian((middle - half, middle + half))


def statistics(family, n, k):
    return family.statistics(n, [f"x{j}" for j in range(k)], {})


def largest_change(family, statistic, rows):
    """Return the largest L1 change, in units of the grid, that replacing one of these rows by another makes."""
    counts = np.array([family.counts(row[None], statistic, {}) for row in rows])
    return max(int(np.abs(counts - one).sum(axis=1).max()) for one in counts)


def rows_on_levels(half, levels, middle=0.1):
    return middle + np.array(list(itertools.product(levels, repeat=len(half)))) * np.asarray(half)


@pytest.mark.parametrize("half", WIDTHS, ids=str)
def test_sensitivities_by_enumeration(half):
    """All pairs of rows with entries at the ends, the middle and between: no change is larger, and one is as large."""
    k = len(half)
    levels = {1: 101, 2: 21, 3: 7, 4: 5, 5: 3}[k]
    family = family_of_widths(half)
    rows = rows_on_levels(half, np.linspace(-1, 1, levels))
    for statistic in statistics(family, 100, k):
        assert largest_change(family, statistic, rows) == statistic.sensitivity
    mean, covariance = statistics(family, 100, k)
    # The formulas of the real numbers, but for rounding of half-widths to units of some 2^-30 and 2^-20 of the widest.
    assert mean.real_sensitivity == pytest.approx(2 * sum(half), rel=1e-8)
    assert covariance.real_sensitivity == pytest.approx((sum(half) ** 2 + sum(h * h for h in half)) / 2, rel=1e-5)


def test_a_sensitivity_that_is_too_small_is_found_by_the_enumeration():
    """Printed bugs to plant: half of the ranges for the means; ranges of squares alone for the products."""
    half = (1.0, 1.0, 1.0)
    family = family_of_widths(half)
    rows = rows_on_levels(half, (-1.0, 0.0, 1.0))
    mean, covariance = statistics(family, 100, 3)
    assert largest_change(family, mean, rows) > 3 * round(1 / mean.grid)
    unit = round(1 / math.sqrt(covariance.grid))
    assert largest_change(family, covariance, rows) > 3 * unit**2
    assert largest_change(family, covariance, rows) > covariance.sensitivity / 1.05
    # The sum of the ranges of the products would be a third too large for nothing.
    assert int((covariance.upper - covariance.lower).sum()) == 9 * unit**2 > covariance.sensitivity == 6 * unit**2


@pytest.mark.parametrize("n", [1, 2, 100, 10**6, 10**9, 10**12])
@pytest.mark.parametrize("bounds", [(-4.0, 4.0), (0.0, 1e-7), (1e9, 1e9 + 1), (-1e99, 9e99), ([0.0, -5], [1e6, 5])])
def test_no_row_however_wild_moves_the_sums_by_more(n, bounds):
    k = 2
    family = Gaussian(bounds)
    generator = np.random.default_rng(int(n) % 1000)
    lower, upper = (np.broadcast_to(np.asarray(bound, dtype=float), (k,)) for bound in bounds)
    ends = [lower, upper, np.nextafter(lower, -MOST), np.nextafter(upper, MOST), (lower + upper) / 2]
    wild = [np.full(k, value) for value in (MOST, -MOST, 0.0, -0.0, 5e-324, 1.0)] + [np.array([MOST, -MOST])]
    inside = generator.uniform(lower, upper, (30, k))
    rows = np.array([*ends, *wild, *inside, *generator.choice([*ends, *wild], (20, k))[:, :, 0]])
    for statistic in statistics(family, n, k):
        counts = np.array([family.counts(row[None], statistic, {}) for row in rows])
        assert (counts >= statistic.lower).all() and (counts <= statistic.upper).all()
        assert largest_change(family, statistic, rows) <= statistic.sensitivity
        # n such rows fit in 60 bits.
        assert int(np.abs([statistic.lower, statistic.upper]).max()) * n <= 2**60


def exact_sums(rows, statistic, bounds, times):
    """Return the sums in Python's integers, of rows that come so many times, each entry rounded as a fraction."""
    k = rows.shape[1]
    lower, upper = (Fraction(bound) for bound in bounds)
    grid = Fraction(statistic.grid if statistic.name == "mean" else math.sqrt(statistic.grid))
    most = round((upper - lower) / 2 / grid)
    units = [
        [max(-most, min(most, round((Fraction(x) - (lower + upper) / 2) / grid))) for x in row] for row in rows.tolist()
    ]
    if statistic.name == "mean":
        return [sum(row[j] * m for row, m in zip(units, times, strict=True)) for j in range(k)]
    pairs = [(i, j) for i in range(k) for j in range(i, k)]
    return [sum(row[i] * row[j] * m for row, m in zip(units, times, strict=True)) for i, j in pairs]


def test_sums_are_exact_where_doubles_are_at_their_limit(monkeypatch):
    """More rows than one exact product holds, nearly all of 2^20 - 1 units: the sum is odd and above 2^53."""
    near = 4.0 - 2.0**-18
    few = np.array([[near, near], [0.1, -3.9], [4.0, -4.0], [1e-9, 2.5], [-4, -4], [3.999999, 1.000001]])
    times = [2 * EXACT_ROWS + 3, 1, 1, 1, 1, 1]
    rows = np.repeat(few, times, axis=0)
    family = Gaussian(BOUNDS)
    for statistic in statistics(family, 2**20, 2):
        found = family.counts(rows, statistic, {})
        assert found.dtype == np.int64
        assert found.tolist() == exact_sums(few, statistic, BOUNDS, times)
        # In halves, or in another order: the same.
        halves = family.counts(rows[:7777], statistic, {}) + family.counts(rows[7777:], statistic, {})
        assert (halves == found).all() and (family.counts(rows[::-1], statistic, {}) == found).all()
    covariance = statistics(family, 2**20, 2)[1]
    monkeypatch.setattr(gaussian, "EXACT_ROWS", len(rows))
    assert family.counts(rows[: times[0]], covariance, {})[0] != times[0] * (2**20 - 1) ** 2


def test_a_row_is_rounded_alone():
    rows = normal_rows(50, 4, seed=3) * 3
    family = Gaussian(BOUNDS)
    for statistic in statistics(family, 50, 4):
        one_by_one = sum(family.counts(row[None], statistic, {}) for row in rows)
        assert (one_by_one == family.counts(rows, statistic, {})).all()


def test_estimates_without_noise_are_the_moments_of_the_clipped_rows():
    rows = normal_rows(500, 3, mu=[0.0, 3.0, -1.0])
    bounds = ([-4.0, -1.0, -2.0], [4.0, 5.0, 2.0])
    family, n = Gaussian(bounds), len(rows)
    sums = {one.name: family.counts(rows, one, {}) * one.grid for one in statistics(family, n, 3)}
    deviations = {"mean": 0.0, "covariance": 0.0}
    clipped = np.clip(rows, *bounds)
    assert family.estimates(sums, n, deviations) == pytest.approx(clipped.mean(axis=0), abs=1e-6)
    model = family.model(sums, n, deviations)
    assert model["mean"] == pytest.approx(clipped.mean(axis=0) - np.array([0.0, 2.0, 0.0]), abs=1e-6)
    # For rounding, variances are raised by the widest h^2 2^-20 or a little more.
    assert model["covariance"] == pytest.approx(np.cov(clipped.T, bias=True), abs=2e-5)
    assert (np.diag(model["covariance"]) > clipped.var(axis=0)).all()
    stacked = {name: np.stack([one, 2 * one]) for name, one in sums.items()}
    assert family.estimates(stacked, n, deviations).shape == (2, 3)


def sums_of(covariance, mean, n):
    moments = np.asarray(covariance) + np.outer(mean, mean)
    return {"mean": n * np.asarray(mean), "covariance": n * moments[np.triu_indices(len(moments))]}


def test_a_covariance_that_noise_made_indefinite_is_repaired():
    """Positive definite, with the estimated variances, or the floor where they are below it."""
    family, n = Gaussian(BOUNDS), 100
    noisy = np.array([[1.0, 1.4, 0.2], [1.4, 1.0, -0.9], [0.2, -0.9, -0.3]])
    sums = sums_of(noisy, [0.5, 0.0, -1.0], n)
    deviations = {"mean": 3.0, "covariance": 25.0}
    fixed = family.model(sums, n, deviations)["covariance"]
    assert np.diag(fixed) == pytest.approx([1.0, 1.0, 0.25], abs=2e-5)
    assert np.linalg.eigvalsh(fixed).min() > 0 and fixed == pytest.approx(fixed.T)
    definite = np.array([[1.0, 0.3, 0.0], [0.3, 2.0, 0.1], [0.0, 0.1, 0.5]])
    kept = family.model(sums_of(definite, [0.5, 0.0, -1.0], n), n, deviations)["covariance"]
    assert kept == pytest.approx(definite, abs=2e-5)
    assert (np.diag(kept) > np.diag(definite)).all()


def test_sums_of_simulated_tables_have_the_law_of_the_model():
    """Mean n mu and covariance n Sigma, within 6 standard errors of R draws: sqrt(2 / R) for a variance."""
    family, n, replicates = Gaussian(BOUNDS), 50, 20_000
    covariance = np.array([[1.0, 0.8], [0.8, 2.0]])
    model = {"mean": np.array([0.5, -1.0]), "covariance": covariance}
    drawn = family.simulate(model, n, replicates, np.random.default_rng(5))["mean"]
    assert np.abs(drawn.mean(axis=0) - n * model["mean"]).max() < 6 * math.sqrt(2 * n / replicates)
    assert np.abs(np.cov(drawn.T) / n - covariance).max() < 6 * 2 * math.sqrt(2 / replicates)


def limits_of(rows, family, epsilon, seed=1, **options):
    with pytest.warns(dpd.PrivacyLeakWarning):
        return dpd.extrema_interval(rows, family=family, epsilon=epsilon, random_seed=seed, replicates=500, **options)


def test_a_column_far_narrower_than_another_is_not_rounded_away():
    """Its mean is on a grid of 10^6 2^-31, and the limits, which noise of the wide box makes wide, hold."""
    generator = np.random.default_rng(9)
    rows = np.column_stack([0.2 + 0.01 * generator.normal(size=20_000), generator.uniform(4e5, 6e5, 20_000)])
    family = Gaussian(([0.0, 0.0], [1.0, 1e6]))
    mean = statistics(family, len(rows), 2)[0]
    released = family.counts(rows, mean, {}) * mean.grid / len(rows) + 0.5
    assert released[0] == pytest.approx(np.clip(rows[:, 0], 0, 1).mean(), abs=mean.grid / 2) and mean.grid < 5e-4
    # Scale D1 / (n epsilon / 2) = 10^-3: noise below 12 of them but for exp(-12).
    ci = limits_of(rows, family, 1e5, extremum="min", sided="two")
    assert ci.lower < 0.2 < ci.upper and ci.estimates.values[0] == pytest.approx(0.2, abs=0.012)
    # Without a box that is 10^6 times as wide the same column is known far better.
    alone = limits_of(rows[:, :1], Gaussian((0.0, 1.0)), 1e5, extremum="min", sided="two")
    assert alone.upper - alone.lower < (ci.upper - ci.lower) / 10


@pytest.mark.parametrize("value", [0.3, 0.3 + 2.0**-22, -3.999999, 4.0, 5.0])
@pytest.mark.parametrize("epsilon", [1e4, 1e17, 1e300])
def test_limits_of_constant_columns_allow_for_rounding(value, epsilon):
    """Where there is no noise and no spread to speak of, the limits still lie on either side of the truth."""
    rows = np.full((5000, 2), value)
    ci = limits_of(rows, Gaussian(BOUNDS), epsilon, sided="two")
    truth = min(value, 4.0)
    assert ci.lower < truth < ci.upper and ci.upper - ci.lower < 1e-3


def test_rounding_of_the_products_never_lowers_a_variance():
    """Of rows that keep to two values, each rounded the same way in the products alone, with a tiny true variance."""
    family = Gaussian(BOUNDS)
    n = 4000
    mean, covariance = statistics(family, n, 1)
    step = math.sqrt(covariance.grid)
    deviations = {"mean": 0.0, "covariance": 0.0}
    smallest = math.inf
    for cells in (0.0, 0.3, 0.49, 0.51, 0.9):
        for apart in (0.0, 0.3, 40.0):
            low = 3.5 + cells * step
            rows = np.repeat([low, low + apart * step], n // 2)[:, None]
            sums = {one.name: family.counts(rows, one, {}) * one.grid for one in (mean, covariance)}
            raised = family.model(sums, n, deviations)["covariance"][0, 0]
            assert raised > rows.var()
            smallest = min(smallest, sums["covariance"][0] / n - (sums["mean"][0] / n) ** 2 - rows.var())
    # The allowance is needed: rounding took nearly all that it can, g |u| = g 3.5 of g (4 + g / 4), from a variance.
    assert smallest < -0.8 * 3.5 * step


def test_a_limit_allows_for_rounding_of_the_mean():
    """With 2^40 rows, e = 2^-20 of the box, and a mean just between two steps that was rounded the wrong way."""
    family, n = Gaussian(BOUNDS), 2**40
    mean, _ = statistics(family, n, 1)
    deviations = {"mean": 0.0, "covariance": 0.0}
    sums = {"mean": np.zeros(1), "covariance": np.zeros(1)}
    error = math.sqrt(family.model(sums, n, deviations)["covariance"][0, 0] / n)
    assert mean.grid <= error < 1.1 * mean.grid  # so 1.645 errors are more than e / 2


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ((1.0, 1.0), "lower < upper"),
        ((2.0, 1.0), "lower < upper"),
        ((0.0, math.inf), "finite"),
        ((0.0, math.nan), "finite"),
        ((0.0, 1e200), "units"),
        ((0.0, 1e-200), "units"),
        (3.0, "got float"),
        ((1, 2, 3), "got tuple"),
        (("a", "b"), "got tuple"),
        (([0, 0], [1, 1, 1]), "got tuple"),
        (([], []), "lower < upper"),
    ],
)
def test_bounds_are_checked(bounds, words):
    with pytest.raises(ValueError, match=words):
        Gaussian(bounds)


def test_columns_of_interest():
    assert Gaussian(BOUNDS).columns() is None
    assert Gaussian(BOUNDS, interest="a").columns() == ["a"]
    assert Gaussian(BOUNDS, interest=np.array([2, 0])).describe()["interest"] == [2, 0]
    for wrong in ([], ["a", "a"]):
        with pytest.raises(ValueError, match="interest"):
            Gaussian(BOUNDS, interest=wrong)
    with pytest.raises(ValueError, match="arrays of 3"):
        Gaussian(([0, 0], [1, 1])).parameters(["a", "b", "c"])
