import doctest
import math

import errata_laws as laws
import numpy as np
import pytest
from replaced_rows import iqr, mad, neighbours, tables_within

from pymc_dpdepth import ptr
from pymc_dpdepth.ptr.stable import first_above

STATISTICS = [ptr.Median(), ptr.TrimmedMean(0.25), ptr.InterquartileRange(), ptr.MAD()]
BY_DEFINITION = {
    "median": np.median,
    "trimmed_mean": lambda x: np.mean(np.sort(x)[len(x) // 4 : len(x) - len(x) // 4]),
    "interquartile_range": iqr,
    "median_absolute_deviation": mad,
}


def by_name(statistic):
    return statistic.name


@pytest.mark.parametrize("statistic", STATISTICS, ids=by_name)
def test_values(statistic):
    generator = np.random.default_rng(0)
    for n in (1, 2, 3, 4, 5, 8, 21):
        rows = generator.integers(0, 9, (n, 3)).astype(np.float64)
        assert statistic.value(rows) == pytest.approx([BY_DEFINITION[statistic.name](column) for column in rows.T])


@pytest.mark.parametrize("statistic", STATISTICS, ids=by_name)
def test_diameter_is_not_below_that_of_all_tables(statistic):
    generator = np.random.default_rng(1)
    values = [-1000.0, *np.arange(0, 9.0), 1000.0]
    for k, n in ((1, 5), (1, 8), (2, 5)):
        for _ in range(6):
            x = generator.integers(0, 9, n).astype(np.float64)
            found = [BY_DEFINITION[statistic.name](table) for table in tables_within(x, k, values)]
            assert statistic.diameters(x[:, None])(k) >= max(found) - min(found) - 1e-12


@pytest.mark.parametrize("statistic", STATISTICS, ids=by_name)
def test_breakdown_is_one_sensitive(statistic):
    # Random and worst-case neighbours: ties of rows, rows beyond all others, rows at the center; integers, so that the
    # bounds are nested to the bit (a trimmed mean's sum is rounded once, which keeps order).
    generator, moved = np.random.default_rng(2), 0
    for _ in range(250):
        n, spread = int(generator.integers(1, 40)), int(generator.choice([3, 20, 1000]))
        rows = generator.integers(0, spread, (n, 1)).astype(np.float64)
        values = np.array([[v] for v in (-1e9, 1e9, np.median(rows), rows[0, 0], rows.min(), rows.max(), 0, spread)])
        threshold = float(generator.choice([0.5, 1.0, 2.0, spread / 10, spread / 2]))
        breakdown = statistic.breakdown(rows, threshold)
        for other in neighbours(rows, generator, values, 8):
            change = abs(statistic.breakdown(other, threshold) - breakdown)
            assert change <= 1
            moved += change
    assert moved > 50  # the search reached neighbours that differ


@pytest.mark.parametrize("statistic", STATISTICS, ids=by_name)
def test_diameters_are_nested_between_neighbours(statistic):
    generator = np.random.default_rng(3)
    for _ in range(150):
        n = int(generator.integers(2, 25))
        rows = generator.integers(0, 12, (n, 2)).astype(np.float64)
        for other in neighbours(rows, generator, generator.integers(-20, 30, (5, 2)).astype(np.float64), 3):
            first, second = statistic.diameters(rows), statistic.diameters(other)
            for k in range(1, n):
                assert first(k) <= second(k + 1)
                assert first(k) <= first(k + 1)


def test_counterexample_of_the_printed_breakdown():
    # The printed one is 2 against m on these neighbours (tests/test_errata.py); the diameter moves by 1.
    for m in (5, 1000):
        tables = [np.array(rows, dtype=np.float64)[:, None] / 10 for rows in laws.two_tables(m)]
        assert [laws.median_breakdown(rows, 10) for rows in laws.two_tables(m)] == [2, m]
        assert [ptr.Median().breakdown(table, 1.0) for table in tables] == [2, 1]


def test_breakdown_of_the_median_is_the_diameter_version_itself():
    generator = np.random.default_rng(4)
    for _ in range(200):
        rows = generator.integers(0, 9, 2 * generator.integers(1, 8) - 1).tolist()
        threshold = int(generator.integers(1, 8))
        expected = laws.diameter_breakdown(sorted(rows), threshold)
        assert ptr.Median().breakdown(np.array(rows, dtype=float)[:, None], threshold) == expected


@pytest.mark.parametrize("n", [1, 2, 7, 64, 1000])
def test_first_above_finds_every_place(n):
    for place in {1, 2, 3, n // 2 + 1, n, n + 1}:
        asked = []

        def diameter(k, place=place, asked=asked):
            asked.append(k)
            return 2.0 if k >= place else 1.0

        expected = min(place, n + 1)
        assert first_above(diameter, 1.0, n) == expected
        assert all(1 <= k <= n for k in asked)
        assert len(asked) <= 2 * math.log2(n + 1) + 3


def test_columns_are_taken_together():
    rows = np.column_stack([np.arange(41.0), 10 * np.arange(41.0)])
    both = ptr.Median().breakdown(rows, 45.0)
    assert both == min(ptr.Median().breakdown(rows[:, [j]], 45.0) for j in range(2)) == 3


def test_trimmed_mean_breaks_down_where_its_cut_ends():
    rows = np.zeros((20, 1))
    assert ptr.TrimmedMean(0.2).breakdown(rows, 1e-9) == 5
    assert ptr.TrimmedMean(0.0).breakdown(rows, 1e9) == 1
    assert ptr.TrimmedMean(0.2).describe() == {"name": "trimmed_mean", "share": 0.2}


@pytest.mark.parametrize("share", [-0.1, 0.5, float("nan"), "a", True])
def test_share_is_checked(share):
    with pytest.raises(ValueError, match="share: expected"):
        ptr.TrimmedMean(share)


def test_bad_tables_and_thresholds():
    with pytest.raises(ValueError, match="at least one row"):
        ptr.Median().breakdown(np.empty((0, 1)), 1.0)
    for threshold in (0.0, -1.0, float("inf")):
        with pytest.raises(ValueError, match="threshold"):
            ptr.Median().breakdown([[1.0]], threshold)


def test_names_and_their_examples():
    assert set(dir(ptr)) == set(ptr.__all__)
    with pytest.raises(AttributeError, match="no attribute"):
        ptr.nothing  # noqa: B018
    for name in ptr.__all__:
        thing = getattr(ptr, name)
        assert thing.__doc__ and "Examples\n" in thing.__doc__
        for test in doctest.DocTestFinder(recurse=False).find(thing, name, globs={}):
            assert test.examples
            assert doctest.DocTestRunner(verbose=False).run(test).failed == 0
