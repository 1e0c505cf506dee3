"""Audits: right mechanisms pass, every planted bug is caught, and the bound is what it says."""

import datetime
import math

import numpy as np
import pandas as pd
import planted_bugs as planted
import pytest
from audits import TRIALS, attack
from scipy import stats

import pymc_dpdepth as dpd
from pymc_dpdepth.privacy.audit import _bound

ONE_BY_ONE = 4000  # draws of a mechanism that is called once for each

# Planted bugs in mechanisms of our own


def test_the_three_forms_agree_without_a_bug():
    generator = np.random.default_rng(1)
    tables = [planted.SMALL_BOX, planted.INNER_POINT, planted.TIED, planted.LESS_TIED]
    tables += [generator.integers(0, planted.SIDE, size=(n, 2)).astype(float) for n in range(1, 8)]
    for rows in tables:
        for epsilon in (0.1, 3.0):
            law = planted.directly(rows, epsilon)
            np.testing.assert_allclose(planted.in_boxes(rows, epsilon), law, atol=1e-12)
            np.testing.assert_allclose(planted.in_rings(rows, epsilon), law, atol=1e-12)


@pytest.mark.parametrize("case", planted.PLANTED, ids=lambda case: f"{case[0]}-{case[1].__name__}")
def test_every_planted_bug_is_caught_and_the_right_mechanism_passes(case):
    bug, make, X, neighbour, epsilon = case
    trials = ONE_BY_ONE if make is planted.one_noisy_count_at_a_time else TRIALS
    wrong, right = (attack(make(epsilon, kind), X, neighbour, trials) for kind in (bug, None))
    assert right.epsilon_lower_bound <= epsilon < wrong.epsilon_lower_bound, (right, wrong)


# The bound


@pytest.mark.parametrize(("common", "rare"), [(900, 10), (1000, 0), (500, 499), (0, 3), (3, 1000)])
@pytest.mark.parametrize("delta", [0.0, 0.05, 0.95])
def test_the_bound_is_clopper_and_pearson_s(common, rare, delta):
    error = 0.0125
    # A two-sided interval at 1 - 2 error has limits that are each wrong with probability `error`.
    low, high = (stats.binomtest(count, 1000).proportion_ci(1 - 2 * error, method="exact") for count in (common, rare))
    expected = max(0.0, math.log((low.low - delta) / high.high)) if low.low > delta else 0.0
    assert _bound(common, rare, 1000, delta, error) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_confidence_is_shared_by_two_directions_and_two_probabilities():
    found = attack(lambda table: table[0, 0], np.zeros((1, 1)), np.ones((1, 1)), 201, confidence=0.95)
    limit = (0.05 / 4) ** (1 / 101)  # of 101 held-out draws out of 101
    assert found.epsilon_lower_bound == pytest.approx(math.log(limit / (1 - limit)), rel=1e-12)


def randomized_response(epsilon, seed):
    generator = np.random.default_rng(seed)

    def mechanism(table, draws):
        keep = generator.random(draws) < 1 / (1 + math.exp(-epsilon))
        return np.where(keep, table[0, 0], 1 - table[0, 0])

    return mechanism


def test_the_bound_is_wrong_no_more_often_than_it_says():
    # At the true loss, 1, a right bound exceeds it with probability at most 1 - confidence = 0.5 in each of 200 audits.
    # The mechanism and the split have the same seed: they must not share a stream.
    X, neighbour, audits = np.zeros((1, 1)), np.ones((1, 1)), 200
    bounds = [
        attack(randomized_response(1.0, seed), X, neighbour, 400, confidence=0.5, random_seed=seed).epsilon_lower_bound
        for seed in range(audits)
    ]
    assert sum(bound > 1.0 for bound in bounds) <= stats.binom.isf(1e-6, audits, 0.5)
    assert np.median(bounds) > 0.5  # and it finds most of the loss


def test_more_draws_and_less_confidence_find_more():
    X, neighbour = np.zeros((1, 1)), np.ones((1, 1))
    options = [(1000, 0.999), (1000, 0.9), (100_000, 0.9)]
    bounds = [attack(randomized_response(2.0, 5), X, neighbour, t, confidence=c) for t, c in options]
    few, sure, many = (bound.epsilon_lower_bound for bound in bounds)
    assert 1.0 < few < sure < many < 2.0


def test_delta_is_granted():
    # With probability 0.1 the table itself comes out: (0, 0.1)-private, and not epsilon-private at all.
    generator = np.random.default_rng(6)

    def leaks(table, draws):
        return np.where(generator.random(draws) < 0.1, table[0, 0], 7.0)

    X, neighbour = np.zeros((1, 1)), np.ones((1, 1))
    assert attack(leaks, X, neighbour).epsilon_lower_bound > 4
    assert attack(leaks, X, neighbour, delta=0.1).epsilon_lower_bound == 0.0


# Outputs and events


def test_an_atom_in_the_middle_is_an_event():
    generator = np.random.default_rng(7)

    def mechanism(table, draws):
        # The atom 0 is hidden among normal numbers on both sides, with the same median.
        return np.where(generator.random(draws) < table[0, 0], 0.0, generator.normal(size=draws))

    found = attack(mechanism, np.array([[0.2]]), np.array([[0.01]]))
    # Zero is also the one value without digits, or with 16 bits of 0 at its end.
    assert found.epsilon_lower_bound > 2.3
    assert "coordinate 0" in found.event and found.event.endswith(" 0, more likely on X")


def test_missing_and_infinite_outputs_are_events():
    def mechanism(value):
        def draw(table, draws):
            outputs = np.full((draws, 2), 0.5)
            outputs[: int(draws * table[0, 0]), 1] = value
            return outputs

        return draw

    for value, word in ((np.nan, "coordinate 1 missing"), (np.inf, "coordinate 1"), (-np.inf, "coordinate 1")):
        found = attack(mechanism(value), np.array([[0.5]]), np.zeros((1, 1)))
        assert found.epsilon_lower_bound > 5 and word in found.event


def test_corners_in_many_dimensions_are_events():
    generator, d = np.random.default_rng(8), 12

    def mechanism(table, draws):
        return generator.random((draws, d)) ** (1 - 0.5 * table[0, 0])

    # Coordinates of density 2 t against 1: one alone gives log 2 at most.
    assert attack(mechanism, np.ones((1, 1)), np.zeros((1, 1)), TRIALS // 2).epsilon_lower_bound > 2.0


def test_releases_are_read_whole():
    rows = np.linspace(0, 1, 10).reshape(5, 2)
    seen = []

    def mechanism(table):
        release = dpd.private_median(table, epsilon=1.0, prior="normal(0, 1)")
        seen.append((table is rows, release))
        return release

    found = attack(mechanism, rows, rows[::-1], 20, confidence=0.95)
    assert found.epsilon_lower_bound == 0.0
    assert [of_rows for of_rows, _ in seen] == [True, False] * 20  # in turns


@pytest.mark.parametrize(
    ("output", "error", "match"),
    [
        (lambda table: "text", TypeError, "str"),
        (lambda table: {"a": 1}, TypeError, "dict"),
        (lambda table: None, TypeError, "got NoneType"),
        (lambda table: "3", TypeError, "got str"),
        (lambda table: ["3", "4"], TypeError, "got str"),
        (lambda table: np.array(["3"]), TypeError, "got ndarray of <U1"),
        (lambda table: np.datetime64("2020-01-01"), TypeError, "got datetime64"),
        (lambda table: np.array(["2020-01-01"], dtype="datetime64[D]"), TypeError, r"got ndarray of datetime64\[D\]"),
        (lambda table: datetime.date(2020, 1, 1), TypeError, "got date"),
        (lambda table: [1.0, None], TypeError, "got NoneType"),
        (lambda table: np.array([1.0, None]), TypeError, "got ndarray of object"),
        (lambda table: 1j, TypeError, "got complex"),
        (lambda table: 2**64, TypeError, "got an integer beyond 64 bits"),
        (lambda table: np.ma.masked_array([1.0, 2.0], [False, True]), TypeError, "got MaskedArray"),
        (lambda table: [np.ma.masked_array([1.0], [True])], TypeError, "got MaskedArray"),
        (lambda table, draws: np.ma.masked_array(np.zeros(draws), False), TypeError, "got MaskedArray"),
        (lambda table: pd.DataFrame({"a": [1.0]}), TypeError, "got DataFrame"),
        (lambda table: [1.0, [2.0]], ValueError, "one shape"),
        (lambda table: np.zeros(int(table[0, 0]) + 1), ValueError, "one shape"),
        (lambda table: np.zeros(0), ValueError, "at least one number"),
        (lambda table, draws: np.zeros(draws + 1), ValueError, "draws along its first axis"),
        (lambda table, draws: 1.0, ValueError, "draws along its first axis"),
        (3.0, TypeError, "callable"),
    ],
)
def test_unusable_mechanisms(output, error, match):
    with pytest.raises(error, match=match):
        attack(output, np.array([[1.0]]), np.array([[2.0]]), 20)


# Arguments


@pytest.mark.parametrize(
    ("X", "neighbour", "options", "match"),
    [
        (np.zeros((3, 2)), np.zeros((2, 2)), {}, "same shape"),
        (np.zeros((3, 2)), np.zeros((3, 1)), {}, "same shape"),
        ([[0.0], [1.0], [2.0]], [[3.0], [4.0], [2.0]], {}, "at most one row"),
        ([[0.0], [0.0]], [[1.0], [1.0]], {}, "at most one row"),
        ([[0.0], [1.0], [2.0]], [[3.0], [4.0], [5.0]], {"max_rows_per_unit": 2}, "max_rows_per_unit = 2"),
        ([["a"]], [["a"]], {}, "real numbers"),
    ],
)
def test_tables_that_are_no_neighbours(X, neighbour, options, match):
    with pytest.raises(ValueError, match=match):
        attack(lambda table, draws: np.zeros(draws), X, neighbour, 20, **options)


def test_neighbours_in_any_order():
    mechanism = randomized_response(1.0, 1)
    X = np.array([[0.0, -0.0], [1.0, np.nan], [0.0, 5.0]])
    for neighbour in (X[::-1], np.array([[9.0, 9.0], [0.0, 5.0], [0.0, 0.0]])):
        assert attack(mechanism, X, neighbour, 20).trials == 20
    assert attack(mechanism, X, X + 1.0, 20, max_rows_per_unit=3).trials == 20


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"trials": 0}, ValueError, "trials"),
        ({"trials": 1}, ValueError, "trials"),
        ({"trials": 10.0}, TypeError, "trials"),
        ({"trials": True}, TypeError, "trials"),
        ({"confidence": 1.0}, ValueError, r"confidence.*\(0, 1\)"),
        ({"confidence": 0.0}, ValueError, "confidence"),
        ({"confidence": "high"}, TypeError, "confidence"),
        ({"delta": 1.0}, ValueError, r"delta.*\[0, 1\)"),
        ({"delta": -0.1}, ValueError, "delta"),
        ({"delta": float("nan")}, ValueError, "delta"),
        ({"max_rows_per_unit": 0}, ValueError, "max_rows_per_unit"),
        ({"random_seed": -1}, ValueError, "random_seed"),
        ({"random_seed": 0.5}, ValueError, "random_seed"),
    ],
)
def test_bad_arguments(options, error, match):
    def never(table):
        raise AssertionError("drawn before the arguments were checked")

    with pytest.raises(error, match=match):
        attack(never, [[0.0]], [[1.0]], **options)


def test_the_split_is_seeded_or_not():
    X, neighbour = np.zeros((1, 1)), np.ones((1, 1))
    same = [attack(randomized_response(1.0, 3), X, neighbour, 1000, random_seed=4) for _ in range(2)]
    assert same[0] == same[1]
    fresh = {
        attack(randomized_response(1.0, 3), X, neighbour, 1000, random_seed=None).epsilon_lower_bound for _ in range(4)
    }
    assert len(fresh) > 1


def test_the_result_says_what_it_is():
    found = attack(randomized_response(3.0, 3), np.zeros((1, 1)), np.ones((1, 1)), 1000, confidence=0.9)
    assert (found.confidence, found.trials, found.delta, found.neighboring) == (0.9, 1000, 0.0, "replace_one")
    assert "coordinate 0" in found.event and "more likely on" in found.event
    for text in (repr(found), dpd.AuditResult.__doc__):
        assert "not releasable" in " ".join(text.split()) and "proves nothing" in " ".join(text.split())
    assert "coordinate" not in repr(found)  # the cut points come from the draws


def test_the_progress_bar_is_for_one_draw_at_a_time(capsys):
    attack(lambda table: 0.0, [[0.0]], [[1.0]], 20, progressbar=True)
    assert "Audit" in capsys.readouterr().out
    attack(lambda table: 0.0, [[0.0]], [[1.0]], 20)
    assert capsys.readouterr().out == ""
