"""Bernoulli and Poisson: sums and sensitivities, sizes of groups, and the law of the replicates."""

import itertools
import pickle
import warnings
from fractions import Fraction

import numpy as np
import pandas
import pytest

import pymc_dpdepth as dpd
from pymc_dpdepth.extrema import Bernoulli, Poisson, extrema_interval
from pymc_dpdepth.extrema.limits import extremum_limits
from pymc_dpdepth.extrema.registry import family_of

SIZES = {3: 40, 7: 25, -1: 35}
DEVIATIONS = {"count": 1.0}
ALPHA = Fraction(1, 20)


def grouped(cls=Bernoulli, **options):
    return cls("y", by="site", sizes=SIZES, **options)


def group_rows(generator, rates=(0.2, 0.5, 0.9)):
    """Return rows (y, site) with y of 0 and 1, in random order."""
    codes = np.repeat(list(SIZES), list(SIZES.values()))
    counted = generator.random(len(codes)) < np.repeat(rates, list(SIZES.values()))
    return generator.permutation(np.column_stack([counted, codes]))


def worst_change(family, rows, columns, same_group=False):
    (one,) = family.statistics(10, columns, {})
    counts = [family.counts(row[None], one, {}) for row in rows]
    pairs = [
        (first, second)
        for (i, first), (j, second) in itertools.combinations(enumerate(counts), 2)
        if not same_group or rows[i][1] == rows[j][1]
    ]
    return max(int(np.abs(first - second).sum()) for first, second in pairs), one.sensitivity


# Sums and sensitivities


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_one_row_moves_all_its_columns(k):
    rows = np.array(list(itertools.product((0.0, 1.0), repeat=k)))
    assert worst_change(Bernoulli(), rows, ["x"] * k) == (k, k)


def test_a_row_of_poisson_counts_moves_by_the_bound_in_each_column():
    rows = np.array(list(itertools.product((0.0, 1.0, 4.0, 5.0, 99.0), repeat=2)))
    assert worst_change(Poisson(bounds=(0, 4)), rows, ["a", "b"]) == (8, 8)


def test_a_row_moves_its_own_group_alone():
    rows = np.array([(y, code) for y in (0.0, 1.0) for code in SIZES])
    assert worst_change(grouped(), rows, ["y", "site"], same_group=True) == (1, 1)
    rows = np.array([(y, code) for y in (0.0, 2.0, 50.0) for code in SIZES])
    assert worst_change(grouped(Poisson, bounds=(0, 9)), rows, ["y", "site"], same_group=True) == (9, 9)
    # Why the groups must be public: a row that could change its group moves two counts.
    assert worst_change(grouped(Poisson, bounds=(0, 9)), rows, ["y", "site"])[0] == 18


def test_sums_and_estimates():
    generator = np.random.default_rng(1)
    rows = group_rows(generator)
    family = grouped()
    (one,) = family.statistics(100, ["y", "site"], {})
    counts = family.counts(rows, one, {})
    expected = [rows[rows[:, 1] == code, 0].mean() for code in SIZES]
    assert family.estimates({"count": counts}, 100, DEVIATIONS) == pytest.approx(expected, rel=1e-15)
    table = generator.poisson([0.5, 2.0, 6.0], (100, 3)).astype(float)
    family = Poisson(bounds=(0, 5))
    (one,) = family.statistics(100, ["a", "b", "c"], {})
    clipped = np.minimum(table, 5).mean(axis=0)
    assert family.estimates({"count": family.counts(table, one, {})}, 100, DEVIATIONS) == pytest.approx(clipped)
    assert family.statistics(100, ["a", "b", "c"], {"count": clipped}) == ()


# Rows that do not fit


@pytest.mark.parametrize(
    ("family", "rows", "message"),
    [
        (Bernoulli(), [[0.0], [2.0]], "0 or 1 .* 'y'"),
        (Poisson(bounds=(0, 5)), [[1.5]], "whole numbers .* 'y'"),
        (Poisson(bounds=(0, 5)), [[-1.0]], "whole numbers .* 'y'"),
        (Bernoulli("y", by="site", sizes={1: 1, 2: 1}), [[1.0, 1.0], [0.5, 2.0]], "0 or 1 .* 'y'"),
        (Bernoulli("y", by="site", sizes={1: 1, 2: 1}), [[1.0, 1.0], [1.0, 3.0]], "another code came"),
        (Bernoulli("y", by="site", sizes={1: 1, 2: 2}), [[1.0, 1.0], [1.0, 2.0]], r"groups \[2\] have other sizes"),
    ],
)
def test_rows_that_do_not_fit_are_refused_before_any_charge(family, rows, message, ledger):
    frame = pandas.DataFrame(rows, columns=["y", "site"][: len(rows[0])])
    with pytest.raises(ValueError, match=message):
        extrema_interval(frame, family=family, epsilon=1.0, ledger=ledger)
    assert ledger.charges == []


# The bootstrap


def assert_same_law(ours, brute):
    """Compare means and covariances of two samples of equal size, within 5 standard errors."""
    spread, count = brute.std(axis=0), len(ours)
    assert np.abs((ours.mean(axis=0) - brute.mean(axis=0)) / spread).max() < 5 * np.sqrt(2 / count)
    gap = (np.cov(ours.T) - np.cov(brute.T)) / np.outer(spread, spread)
    # A product of two standardised counts has variance up to 2, and more by their kurtosis: 3 covers it here.
    assert np.abs(gap).max() < 5 * np.sqrt(2 * 3 / count)


@pytest.mark.parametrize("layout", ["columns", "groups"])
@pytest.mark.parametrize("cls", [Bernoulli, Poisson])
def test_replicates_have_the_law_of_new_rows(cls, layout):
    generator, replicates = np.random.default_rng(2), 4000
    options = {} if cls is Bernoulli else {"bounds": (0, 50)}
    mean = np.array([0.2, 0.5, 0.9])
    family = cls(**options) if layout == "columns" else grouped(cls, **options)
    sizes = np.array([100] * 3 if layout == "columns" else list(SIZES.values()))
    model = family.model({"count": mean * sizes}, 100, DEVIATIONS)
    ours = family.simulate(model, 100, replicates, generator)["count"]
    draw = (lambda n, p: generator.random((replicates, n)) < p) if cls is Bernoulli else None
    draw = draw or (lambda n, rate: generator.poisson(rate, (replicates, n)))
    # Rows with 4 more of each kind, moved to the mean of those that there are.
    away = (mean * sizes + 4) / (sizes + (8 if cls is Bernoulli else 0))
    brute = np.column_stack([draw(n, p).sum(axis=1) for n, p in zip(sizes, away, strict=True)])
    assert_same_law(ours, brute + sizes * (mean - away))


@pytest.mark.parametrize("n", [20, 80])
def test_replicates_of_folds_draw_the_groups_too(n):
    generator, replicates = np.random.default_rng(3), 4000
    mean, sizes = np.array([0.2, 0.5, 0.9]), np.array(list(SIZES.values()))
    family = grouped()
    model = family.model({"count": mean * sizes * n / 100}, n, DEVIATIONS)
    assert model["estimate"] == pytest.approx(mean)
    ours = family.simulate(model, n, replicates, generator)["count"]
    codes, away = np.repeat(np.arange(3), sizes), (mean * sizes * n / 100 + 4) / (sizes * n / 100 + 8)
    brute = np.empty((replicates, 3))
    for row in brute:
        chosen = generator.permutation(codes)[:n]
        counted = np.bincount(chosen[generator.random(n) < away[chosen]], minlength=3)
        row[:] = counted + np.bincount(chosen, minlength=3) * (mean - away)
    assert_same_law(ours, brute)


@pytest.mark.parametrize("family", [Bernoulli(), Poisson(bounds=(0, 5))], ids=["bernoulli", "poisson"])
def test_estimates_at_and_beyond_the_bounds_vary_about_themselves(family):
    """As counts of 4 would: with a variance of 4, less a part of 4 / 100 for proportions, within 5 standard errors."""
    model = family.model({"count": np.array([-3.0, 0.0, 50.0, 100.0, 104.0])}, 100, DEVIATIONS)
    drawn = family.simulate(model, 100, 4000, np.random.default_rng(4))["count"]
    spread = drawn.std(axis=0)
    assert np.abs((drawn.mean(axis=0) - [-3, 0, 50, 100, 104]) / spread).max() < 5 / np.sqrt(4000)
    ends = [0, 1, 3, 4] if family.name == "bernoulli" else [0, 1]
    # The kurtosis of Poisson(4) is 3 + 1/4, so a variance has a relative error of sqrt((2 + 1/4) / R).
    assert spread[ends] ** 2 == pytest.approx(4, rel=0.1 + 5 * np.sqrt(2.25 / 4000))


def test_a_column_of_zeros_or_ones_has_the_limits_of_the_rule_of_three():
    """3 / n, the parameter with P(no count) = .05, and 1 - 3 / n."""
    counts = {0: 3.0, 1000: 997.0}
    for count, limit in counts.items():
        family, generator = Bernoulli(), np.random.default_rng(5)
        model = family.model({"count": np.array([float(count)])}, 1000, DEVIATIONS)
        replicates = family.simulate(model, 1000, 2000, generator)["count"]
        sided = "upper" if count == 0 else "lower"
        found = extremum_limits(np.array([float(count)]), replicates, 1000, 0.1, ALPHA, sided)
        # Draws of the binomial law with 4 / 1008: whole numbers, whose mean was moved by 1000 * 4 / 1008.
        assert getattr(found, sided) == pytest.approx(limit, abs=0.05)


def test_all_replicates_at_once_are_as_one_by_one():
    counts = np.random.default_rng(6).normal(20, 5, (30, 3))
    for family in (Bernoulli(), Poisson(bounds=(0, 5)), grouped(), grouped(Poisson, bounds=(0, 5))):
        together = family.estimates({"count": counts}, 100, DEVIATIONS)
        singly = [family.estimates({"count": row}, 100, DEVIATIONS) for row in counts]
        assert (together == np.array(singly)).all()


# The interval as a whole


def coverage(family, draw, truth, columns, epsilon=1.0, tables=150):
    """Return how many corrected and uncorrected 95% lower limits are below the largest parameter."""
    covered, plain = 0, 0
    for seed in range(tables):
        frame = pandas.DataFrame(draw(np.random.default_rng([seed, 7])), columns=columns)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dpd.PrivacyLeakWarning)
            ci = extrema_interval(frame, family=family, epsilon=epsilon, replicates=300, random_seed=seed)
        covered += ci.lower <= truth
        plain += ci.recompute(correction=None).lower <= truth
    return covered, plain


# Of 150 tables P(covered < 128) < 1e-4 at .93, which the corrected limit has for equal parameters, within a binomial
# law; P(plain > 143) < 1e-4 at .85.
LEAST, MOST_PLAIN = 128, 143


def test_coverage_of_the_largest_proportion_of_columns():
    covered, plain = coverage(
        Bernoulli(), lambda generator: generator.random((1000, 5)) < 0.4, 0.4, list("abcde"), epsilon=2.0
    )
    assert covered >= LEAST and plain <= min(covered, MOST_PLAIN)


def limits_without_noise(family, draw, k, sided, tables=200, n=1000):
    """Return limits of the largest mean of k columns of tables, at 95%."""
    found = []
    for seed in range(tables):
        generator = np.random.default_rng([seed, 8])
        counts = draw(generator, (n, k)).sum(axis=0).astype(float)
        estimates, model = counts / n, family.model({"count": counts}, n, DEVIATIONS)
        replicates = family.simulate(model, n, 300, generator)["count"] / n
        found.append(getattr(extremum_limits(estimates, replicates, n, 0.1, ALPHA, sided), sided))
    return np.array(found)


# Exact coverage of one column with a mean of m uncounted rows is at least .90 for every m (sums of the Poisson law of
# what is uncounted, for limits at order statistics); of 200 tables P(covered < 162) < 1e-4 then. Five equal columns
# have .92 and more.
@pytest.mark.parametrize("k", [1, 5])
@pytest.mark.parametrize("uncounted", [1.0, 2.9, 4.5, 10.0])
def test_coverage_near_the_boundary(k, uncounted):
    p = 1 - uncounted / 1000
    ones = limits_without_noise(Bernoulli(), lambda generator, shape: generator.random(shape) < p, k, "lower")
    assert (ones <= p).sum() >= 162
    rare = limits_without_noise(Bernoulli(), lambda generator, shape: generator.random(shape) >= p, k, "upper")
    assert (rare >= 1 - p).sum() >= 162
    few = limits_without_noise(
        Poisson(bounds=(0, 3)), lambda generator, shape: generator.poisson(1 - p, shape), k, "upper"
    )
    assert (few >= 1 - p).sum() >= 162


def test_coverage_of_the_largest_rate_of_groups():
    sizes = dict.fromkeys(range(5), 200)
    codes = np.repeat(np.arange(5), 200)
    covered, plain = coverage(
        Poisson("y", by="g", sizes=sizes, bounds=(0, 20)),
        lambda generator: np.column_stack([generator.poisson(3.0, 1000), codes]),
        3.0,
        ["y", "g"],
    )
    assert covered >= LEAST and plain <= min(covered, MOST_PLAIN)


def test_an_interval_names_the_group_and_costs_epsilon_once(ledger):
    frame = pandas.DataFrame(group_rows(np.random.default_rng(8)), columns=["y", "site"])
    frame = pandas.concat([frame] * 50)
    sizes = {code: 50 * size for code, size in SIZES.items()}
    family = Bernoulli("y", by="site", sizes=sizes, labels={3: "north", 7: "south", -1: "east"})
    ci = extrema_interval(frame, family=family, epsilon=5.0, ledger=ledger, sided="two", correction="cv")
    # A real release: noise of scale 1/5 in a group of 1,750.
    assert ci.selected == "east" and ci.guarantee == "exact"
    assert ci.lower < frame.y[frame.site == -1].mean() + 0.01 and ci.upper > 0.8
    assert [charge[0] for charge in ledger.charges] == [5.0]


# Settings


@pytest.mark.parametrize(
    "family",
    [
        Bernoulli(),
        Poisson(bounds=(0, 7)),
        grouped(),
        grouped(Poisson, bounds=(0, 7), labels=[[3, "a"], [7, "b"], [-1, "c"]]),
    ],
)
def test_a_description_makes_the_family_again(family):
    again = family_of(family.describe())
    assert type(again) is type(family) and again.describe() == family.describe()


def test_names_of_the_parameters():
    assert Bernoulli().columns() is None and Bernoulli().parameters(["a", "b"]) == ["a", "b"]
    assert grouped().columns() == ("y", "site")
    assert grouped().parameters(["y", "site"]) == ["site=3", "site=7", "site=-1"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"by": "site"}, "together"),
        ({"column": "y", "by": "site"}, "together"),
        ({"sizes": {1: 3}}, "together"),
        ({"labels": {1: "a"}}, "only with by="),
        ({"column": "y", "by": "y", "sizes": {1: 3}}, "two columns"),
        ({"column": 0, "by": "y", "sizes": {1: 3}}, "two columns"),
        ({"column": "y", "by": "s", "sizes": {}}, "sizes: expected"),
        ({"column": "y", "by": "s", "sizes": 5}, "sizes: expected"),
        ({"column": "y", "by": "s", "sizes": {"a": 5}}, "Codes are integers"),
        ({"column": "y", "by": "s", "sizes": {1: 0}}, "sizes: expected"),
        ({"column": "y", "by": "s", "sizes": {1: 2.0}}, "sizes: expected"),
        ({"column": "y", "by": "s", "sizes": [[1, 2], [1, 3]]}, "sizes: expected"),
        ({"column": "y", "by": "s", "sizes": {1: 10**9}}, "sizes: expected"),
        ({"column": "y", "by": "s", "sizes": {1: 2, 2: 2}, "labels": {1: "a"}}, "labels: expected"),
        ({"column": "y", "by": "s", "sizes": {1: 2, 2: 2}, "labels": {1: "a", 2: "a"}}, "labels: expected"),
        ({"column": "y", "by": "s", "sizes": {1: 2, 2: 2}, "labels": 5}, "labels: expected"),
    ],
)
def test_settings_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Bernoulli(**arguments)


@pytest.mark.parametrize("bounds", [(1, 5), (0, 0), (0, 2.5), 5, (0, np.inf), (0, np.nan), ("a", "b"), (0, 1, 2)])
def test_bounds_of_counts_are_whole_numbers_from_0(bounds):
    with pytest.raises(ValueError, match=r"bounds: expected \(0, high\)"):
        Poisson(bounds=bounds)


def test_sums_of_counts_stay_exact():
    with pytest.raises(ValueError, match="rows, got"):
        Poisson(bounds=(0, 2**52)).statistics(3, ["a"], {})


def test_public_settings_cannot_be_changed_after_construction():
    family = Bernoulli("y", by="g", sizes={1: 3, 2: 4})
    for settings in (family.sizes, family.labels):
        with pytest.raises(TypeError, match="cannot be changed"):
            settings[1] = 5
    assert pickle.loads(pickle.dumps(family)).describe() == family.describe()
