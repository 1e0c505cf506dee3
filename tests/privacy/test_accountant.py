"""The accountant never lets more through than its budget, and refuses what it cannot account for."""

import copy
import math
import pickle
import threading
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pymc_dpdepth as dpd
from pymc_dpdepth.privacy.charges import PrivacySpent
from pymc_dpdepth.privacy.composition import (
    advanced_composition,
    bounded_range_composition,
    bounded_range_rho,
    epsilon_of_rho,
    pure_rho,
    rho_of_budget,
    rho_to_epsilon,
)
from pymc_dpdepth.privacy.rounding import float_below

ROWS = [[0.31, -1.2], [0.31, 0.4], [-2.07, 0.9], [1.44, 2.3], [0.05, -0.6]]
PRIOR = "normal(0, 3)"


def fill(accountant, limit=10_000, **charge):
    """Charge until the accountant refuses; return how many charges it granted."""
    for count in range(limit):
        try:
            accountant.charge(label="one", **charge)
        except dpd.BudgetExceededError:
            return count
    raise AssertionError("The budget has no end.")


# Sums


def test_ten_charges_of_a_tenth_fit_one_and_eleven_do_not():
    budget = dpd.PrivacyAccountant(epsilon=1.0)
    assert fill(budget, epsilon=0.1) == 10
    assert budget.spent() == PrivacySpent(1.0, 0.0)
    assert budget.remaining().epsilon == 0.0
    with pytest.raises(dpd.BudgetExceededError):
        budget.charge(epsilon=5e-324, label="crumb")


def test_what_is_left_is_the_decimal_that_is_left():
    budget = dpd.PrivacyAccountant(epsilon=1.0, delta=1e-6, composition="basic")
    for tenths in range(9, 0, -1):
        budget.charge(epsilon=0.1, delta=1e-7, label="a tenth")
        assert budget.remaining().epsilon == tenths / 10 and budget.remaining().delta == float(f"{tenths}e-7")
    budget.charge(epsilon=budget.remaining().epsilon, delta=budget.remaining().delta, label="the last tenth")
    assert (budget.remaining().epsilon, budget.remaining().delta) == (0.0, 0.0)


@given(st.fractions(0, 10, max_denominator=10**20))
def test_what_is_rounded_downwards_is_the_largest_that_fits(value):
    below = float_below(value)
    above = math.nextafter(below, math.inf)
    assert Fraction(repr(below)) <= value < Fraction(repr(above))


@given(st.lists(st.floats(1e-9, 3), min_size=1, max_size=12), st.floats(0.1, 5))
@settings(max_examples=25, deadline=None)
def test_no_rounding_lets_more_through_than_the_budget(epsilons, limit):
    for options, cost in (({"epsilon": limit}, lambda e: Fraction(repr(e))), ({"rho": limit}, lambda e: pure_rho(e))):
        budget, left = dpd.PrivacyAccountant(**options), Fraction(repr(limit))
        for epsilon in epsilons:
            fits = Fraction(cost(epsilon)) <= left
            assert budget.would_fit(epsilon=epsilon) == fits
            if fits:
                budget.charge(epsilon=epsilon, label="x")
                left -= Fraction(cost(epsilon))
            else:
                with pytest.raises(dpd.BudgetExceededError):
                    budget.charge(epsilon=epsilon, label="x")
        assert left >= 0


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 1.0},
        {"epsilon": 0.7, "delta": 1e-6},
        {"epsilon": 3.0, "delta": 1e-6, "composition": "zcdp"},
        {"rho": 0.123},
    ],
)
@pytest.mark.parametrize("first", [0.1, 1 / 3, 0.30000000000000004])
def test_what_remains_can_be_spent_and_a_step_more_cannot(options, first):
    for field, tag in (("epsilon", lambda e: ()), ("draw_epsilon", lambda e: (e,))):
        budget = dpd.PrivacyAccountant(**options)
        budget.charge(epsilon=first, label="first", group="north")
        budget.charge(epsilon=first / 3, label="second", bounded_range=(first / 3,))
        left = getattr(budget.remaining("north"), field)
        assert getattr(budget.remaining(), field) == left < getattr(budget.remaining("south"), field)
        more = left * (1 + 1e-15)
        assert not budget.would_fit(epsilon=more, bounded_range=tag(more), group="north")
        budget.charge(epsilon=left, label="rest", bounded_range=tag(left))
        # no further step than the rounding of one charge is left for the group that has spent most
        assert budget.remaining("north").epsilon < 1e-7


# Compositions


def test_basic_adds_deltas_too():
    budget = dpd.PrivacyAccountant(epsilon=5, delta=3e-6, composition="basic")
    assert fill(budget, epsilon=1.0, delta=1e-6) == 3
    assert (budget.spent().epsilon, budget.spent().delta, budget.remaining().delta) == (3.0, 3e-6, 0.0)
    assert fill(budget, epsilon=1.0) == 2


@pytest.mark.parametrize("count, zcdp", [(10, 8.776), (50, 23.49)])
def test_draws_of_the_exponential_mechanism_count_in_zcdp(count, zcdp):
    for composition in ("zcdp", "auto"):
        budget = dpd.PrivacyAccountant(epsilon=zcdp, delta=1e-6, composition=composition)
        assert fill(budget, epsilon=1.0, bounded_range=(1.0,)) == count
        spent = budget.spent()
        assert zcdp - 0.01 < spent.epsilon <= zcdp and spent.delta == 1e-6
        assert spent.rho == pytest.approx(count * bounded_range_rho(1.0))
        # without the tag they are no more than pure mechanisms
        untagged = dpd.PrivacyAccountant(epsilon=zcdp, delta=1e-6, composition=composition)
        assert fill(untagged, epsilon=1.0) < count


def test_auto_grants_what_either_sum_grants():
    few = dpd.PrivacyAccountant(epsilon=2.0, delta=1e-6)
    assert fill(few, epsilon=1.0) == 2  # zCDP alone would not grant one
    assert pure_rho(1.0) > rho_of_budget(2.0, 1e-6)
    assert few.spent().epsilon == 2.0 and few.spent().delta == 0.0
    many = dpd.PrivacyAccountant(epsilon=2.0, delta=1e-6)
    granted = fill(many, epsilon=0.02, bounded_range=(0.02,))
    assert granted == int(Fraction(rho_of_budget(2.0, 1e-6)) / Fraction(bounded_range_rho(0.02))) > 100
    pure = dpd.PrivacyAccountant(epsilon=2.0)
    assert fill(pure, epsilon=0.02, bounded_range=(0.02,)) == 100


def test_a_concentrated_release_fits_its_own_rho_to_the_last_bit():
    for rho in (0.123, 0.1, 0.5, 1e-3):
        epsilon = epsilon_of_rho(rho, 7)
        assert fill(dpd.PrivacyAccountant(rho=rho), epsilon=7 * epsilon, bounded_range=(epsilon,) * 7) == 1
    tenth = epsilon_of_rho(0.1, 7)
    assert fill(dpd.PrivacyAccountant(rho=1.0), epsilon=7 * tenth, bounded_range=(tenth,) * 7) == 10
    # and its other statement, (epsilon, delta), is not needed
    stated = rho_to_epsilon(0.1, 1e-6)
    assert fill(dpd.PrivacyAccountant(rho=1.0), epsilon=stated, delta=1e-6, bounded_range=(tenth,) * 7) == 10


def test_each_composition_uses_the_statement_that_serves_it():
    draws = (0.5,) * 8
    pure = dpd.PrivacyAccountant(epsilon=4.0)
    assert fill(pure, epsilon=2.0, delta=1e-6, bounded_range=draws) == 1  # 8 * 0.5
    basic = dpd.PrivacyAccountant(epsilon=4.0, delta=1e-6, composition="basic")
    assert fill(basic, epsilon=2.0, delta=1e-6, bounded_range=draws) == 1
    assert (basic.spent().epsilon, basic.spent().delta) == (2.0, 1e-6)
    stated = dpd.PrivacyAccountant(epsilon=1.0)
    assert fill(stated, epsilon=0.5, bounded_range=(1.0,)) == 2  # whichever of two pure statements is smaller
    assert fill(dpd.PrivacyAccountant(epsilon=1.0), epsilon=1.0, bounded_range=(0.25,)) == 4


def test_charge_delta_keeps_a_part_of_delta_for_charges():
    budget = dpd.PrivacyAccountant(epsilon=3.0, delta=1e-6, charge_delta=4e-7)
    assert budget.remaining().rho == rho_of_budget(3.0, Fraction(6, 10**7))
    assert fill(budget, epsilon=0.1, delta=1e-7) == 4
    assert budget.remaining().delta == 0.0
    assert budget.spent().epsilon == 0.4 and budget.spent().delta == 4e-7
    budget.charge(epsilon=1e-3, label="pure")
    budget.charge(epsilon=1e-3, label="pure again")
    whole = dpd.PrivacyAccountant(epsilon=3.0, delta=1e-6, charge_delta=1e-6)
    assert whole.remaining().rho is None and whole.remaining().epsilon == 3.0


def test_a_first_charge_with_a_delta_of_its_own_makes_auto_basic():
    budget = dpd.PrivacyAccountant(epsilon=3.0, delta=1e-6)
    assert budget.remaining().delta == 1e-6 and budget.remaining().rho == pytest.approx(rho_of_budget(3.0, 1e-6))
    assert budget.would_fit(epsilon=2.0, delta=1e-6) and not budget.would_fit(epsilon=2.0, delta=1.1e-6)
    budget.charge(epsilon=2.0, delta=6e-7, label="propose-test-release")
    assert budget.remaining().rho is None and budget.remaining().delta == 4e-7
    # From here on it is basic composition: epsilons and deltas add up, and no sum of rho grants anything.
    assert fill(budget, epsilon=0.01, bounded_range=(0.01,)) == 100
    assert not budget.would_fit(epsilon=0.0, delta=5e-7) and budget.would_fit(epsilon=0.0, delta=4e-7)
    assert (budget.spent().epsilon, budget.spent().delta, budget.spent().rho) == (3.0, 6e-7, None)
    basic = dpd.PrivacyAccountant(epsilon=3.0, delta=1e-6)
    basic.charge(epsilon=1.0, delta=5e-7, label="first")
    basic.charge(epsilon=2.0, delta=5e-7, bounded_range=(0.5,) * 8, label="by its other statement, as basic takes it")
    assert basic.spent().delta == 1e-6


def test_only_the_first_charge_decides():
    # Later, the choice could depend on outputs: deltas on some paths and concentrated composition on the others would
    # cost up to twice delta. So neither a refused first charge nor a question decides, and a granted one does for good.
    budget = dpd.PrivacyAccountant(epsilon=3.0, delta=1e-6)
    with pytest.raises(dpd.BudgetExceededError):
        budget.charge(epsilon=1.0, delta=2e-6, label="too much")
    assert budget.would_fit(epsilon=1.0, delta=1e-6)
    budget.charge(epsilon=1.0, bounded_range=(1.0,), label="median")
    assert budget.remaining().delta == 0.0
    for ask in (budget.charge, budget.would_fit):
        with pytest.raises(ValueError, match="first charge.*composition='basic' or a charge_delta"):
            ask(epsilon=1.0, delta=1e-9, **({"label": "test"} if ask == budget.charge else {}))
    assert fill(budget, epsilon=0.02, bounded_range=(0.02,)) > 100  # by rho, which knows no sum of epsilons
    own = dpd.PrivacyAccountant(epsilon=3.0, delta=1e-6)
    own.charge(epsilon=1.0, delta=1e-6, label="by group", group="a")
    own.charge(epsilon=1.0, delta=1e-6, label="by group", group="b")
    assert own.spent().delta == 1e-6


def test_releases_with_a_delta_fit_the_budgets_of_the_readme(tmp_path):
    rows = np.random.default_rng(0).normal(size=(1001, 1))
    cost = {"epsilon": 2.0, "delta": 1e-6}
    dpd.Ledger.create(tmp_path / "study.jsonl", epsilon=3.0, delta=1e-6, data_id="study-7")
    for budget in (
        dpd.PrivacyAccountant(epsilon=3.0, delta=1e-6),
        dpd.Ledger(tmp_path / "study.jsonl", data_id="study-7"),
    ):
        dpd.propose_test_release(rows, threshold=0.2, radius=5.0, ledger=budget, **cost)
        dpd.private_median(rows, epsilon=1.0, prior="normal(0, 5)", ledger=budget)
        with pytest.raises(dpd.BudgetExceededError):
            dpd.private_median(rows, epsilon=0.1, prior="normal(0, 5)", ledger=budget)
    again = dpd.Ledger(tmp_path / "study.jsonl", data_id="study-7")
    assert (again.spent().epsilon, again.spent().delta, again.remaining().epsilon) == (3.0, 1e-6, 0.0)
    gaussian = dpd.PrivacyAccountant(epsilon=3.0, delta=1e-6)
    dpd.private_depth([[0.0]], rows, epsilon=1.0, delta=1e-7, ledger=gaussian)
    assert gaussian.remaining().delta == 9e-7


# Plans


def test_a_plan_is_fixed_beforehand_and_used_up():
    plan = [1.0] * 9 + [0.5]
    cost = bounded_range_composition(plan, 1e-6)
    budget = dpd.PrivacyAccountant(epsilon=cost, delta=1e-6, composition="bounded_range", planned=iter(plan))
    with pytest.raises(dpd.BudgetExceededError, match=r"needs planned epsilons \[0.7\].*remaining\(\)"):
        budget.charge(epsilon=0.7, label="unplanned", bounded_range=(0.7,))
    budget.charge(epsilon=0.5, label="a", bounded_range=(0.5,))
    budget.charge(epsilon=3.0, label="b", bounded_range=(1.0, 1.0, 1.0))
    assert budget.spent().epsilon == bounded_range_composition([0.5, 1, 1, 1], 1e-6)
    assert budget.remaining().planned == (1.0,) * 6
    assert (budget.remaining().epsilon, budget.remaining().draw_epsilon) == (0.0, 1.0)
    assert not budget.would_fit(epsilon=7, bounded_range=(1.0,) * 7)
    assert fill(budget, epsilon=1.0, bounded_range=(1.0,)) == 6
    assert budget.spent().epsilon == cost and budget.remaining().planned == ()


def test_a_bounded_range_plan_takes_tagged_charges_only():
    budget = dpd.PrivacyAccountant(epsilon=9, delta=1e-6, composition="bounded_range", planned=[1.0])
    with pytest.raises(ValueError, match="^bounded_range: expected the epsilons of the exponential-mechanism draws"):
        budget.charge(epsilon=1.0, label="noise")
    assert budget.charges == ()


def test_an_advanced_plan_takes_pure_charges():
    cost = advanced_composition([0.1] * 100, 1e-6)
    budget = dpd.PrivacyAccountant(epsilon=cost, delta=1e-6, composition="advanced", planned=[0.1] * 100)
    assert fill(budget, epsilon=0.1) == 100
    assert budget.spent() == PrivacySpent(cost, 1e-6)
    mixed = dpd.PrivacyAccountant(epsilon=9, delta=1e-6, composition="advanced", planned=[0.1] * 3 + [0.4])
    assert mixed.spent().epsilon == mixed.spent().delta == 0.0
    mixed.charge(epsilon=0.2, delta=1e-7, label="draws", bounded_range=(0.1, 0.1))
    mixed.charge(epsilon=0.4, label="two draws in one pure statement", bounded_range=(0.3, 0.3))
    assert mixed.remaining().planned == (0.1,) and mixed.remaining().epsilon == 0.1


def test_misuse_of_plans_is_refused():
    cost = bounded_range_composition([1.0] * 10, 1e-6)
    with pytest.raises(dpd.BudgetExceededError, match="^planned: the plan costs epsilon=7.71.*Plan fewer"):
        dpd.PrivacyAccountant(math.nextafter(cost, 0), 1e-6, composition="bounded_range", planned=[1.0] * 10)
    for composition in ("advanced", "bounded_range"):
        with pytest.raises(ValueError, match="^planned: expected the epsilons of all charges to come"):
            dpd.PrivacyAccountant(epsilon=1, delta=1e-6, composition=composition)
        with pytest.raises(ValueError, match="expected a budget with delta > 0"):
            dpd.PrivacyAccountant(epsilon=1, composition=composition, planned=[1.0])
        with pytest.raises(ValueError, match=r"^epsilons\[0\]: expected a finite number > 0"):
            dpd.PrivacyAccountant(epsilon=1, delta=1e-6, composition=composition, planned=[math.nan])
        with pytest.raises(ValueError, match="^charge_delta: expected 0"):
            dpd.PrivacyAccountant(1, 1e-6, composition=composition, planned=[0.1], charge_delta=1e-7)
        budget = dpd.PrivacyAccountant(1, 1e-6, composition=composition, planned=[0.1])
        with pytest.raises(ValueError, match="^group: expected None"):
            budget.charge(epsilon=0.1, label="x", bounded_range=(0.1,), group="north")
    with pytest.raises(ValueError, match="^planned: .*use 'auto'"):
        dpd.PrivacyAccountant(epsilon=1, planned=[1.0])


# Groups


def test_a_row_pays_for_its_own_group_and_for_what_has_none():
    budget = dpd.PrivacyAccountant(epsilon=1.0)
    budget.charge(epsilon=0.5, label="all")
    for group in ("north", "south", 3):
        budget.charge(epsilon=0.5, label="group", group=group)
        with pytest.raises(dpd.BudgetExceededError):
            budget.charge(epsilon=0.1, label="again", group=group)
    assert budget.spent().epsilon == 1.0
    assert budget.remaining("east").epsilon == 0.5
    assert budget.remaining().epsilon == budget.remaining("north").epsilon == 0.0
    assert not budget.would_fit(epsilon=0.1) and budget.would_fit(epsilon=0.5, group="east")


def test_groups_in_zcdp_take_the_worst_group():
    budget = dpd.PrivacyAccountant(rho=1.0)
    budget.charge(epsilon=1.0, label="a", group="a")
    budget.charge(epsilon=0.5, label="b", group="b")
    assert budget.spent().rho == pure_rho(1.0)
    assert budget.spent().epsilon == 1.0
    assert budget.remaining("b").rho == pytest.approx(1 - pure_rho(0.5))
    assert budget.remaining().rho == pytest.approx(1 - pure_rho(1.0))


@pytest.mark.parametrize("group", [math.nan, 1.5, ["north"], ("a",), True])
def test_labels_that_could_differ_from_themselves_or_be_taken_for_others_are_refused(group):
    budget = dpd.PrivacyAccountant(epsilon=1)
    for use in (
        lambda: budget.charge(epsilon=0.1, label="x", group=group),
        lambda: budget.would_fit(epsilon=0.1, group=group),
        lambda: budget.remaining(group),
    ):
        with pytest.raises(TypeError, match="^group: expected a string or an integer"):
            use()


# Refusals


def test_the_refusal_says_what_was_asked_what_is_left_and_where_to_look():
    budget = dpd.PrivacyAccountant(epsilon=1.0)
    budget.charge(epsilon=0.75, label="first")
    with pytest.raises(dpd.BudgetExceededError) as refusal:
        budget.charge(epsilon=0.5, label="second")
    for part in ("'second'", "epsilon=0.5", "epsilon=0.25", "remaining()", "Nothing was charged"):
        assert part in str(refusal.value)
    assert [charge.label for charge in budget.charges] == ["first"]
    assert budget.spent().epsilon == 0.75
    assert repr(budget) == "PrivacyAccountant(epsilon=1.0, delta=0.0, composition='auto'): 1 charges"


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 3.0},
        {"epsilon": 3.0, "delta": 1e-6, "charge_delta": 0.0},
        {"epsilon": 3.0, "delta": 1e-6, "composition": "zcdp"},
        {"rho": 1.0},
        {"epsilon": 3.0, "delta": 1e-6, "composition": "advanced", "planned": [1.0]},
    ],
)
def test_a_delta_that_has_no_room_is_refused_with_the_cure(options):
    budget = dpd.PrivacyAccountant(**options)
    with pytest.raises(ValueError, match="^delta: this budget holds.*composition='basic' or a charge_delta"):
        budget.charge(epsilon=1.0, delta=1e-9, label="test")
    assert budget.charges == () and budget.spent().epsilon == 0.0


HUGE = 10**5000  # its decimal digits are more than Python converts to text
BAD = [-1.0, math.nan, math.inf, -math.inf, True, np.bool_(False), np.nan, "1", None, 1j, [1.0], HUGE, Fraction(HUGE)]


@pytest.mark.parametrize("bad", BAD, ids=range(len(BAD)))
def test_bad_numbers_are_refused_by_name_and_nothing_is_charged(bad):
    budget = dpd.PrivacyAccountant(epsilon=3.0, delta=1e-3, composition="basic")
    for name in ("epsilon", "delta"):
        with pytest.raises((TypeError, ValueError), match=f"^{name}: expected a finite number"):
            budget.charge(**{"epsilon": 1.0, "label": "x", name: bad})
    with pytest.raises((TypeError, ValueError), match=r"^bounded_range\[1\]: expected a finite number"):
        budget.charge(epsilon=1.0, label="x", bounded_range=(1.0, bad))
    assert budget.charges == ()
    for name in ("epsilon", "delta", "rho", "charge_delta"):
        if bad is not None or name == "delta":
            options = {"epsilon": 1.0} if name != "rho" else {}
            with pytest.raises((TypeError, ValueError), match=f"^{name}: expected a finite number"):
                dpd.PrivacyAccountant(**(options | {name: bad}))


def test_other_bad_charges_and_budgets():
    budget = dpd.PrivacyAccountant(epsilon=1.0)
    with pytest.raises(ValueError, match="^epsilon: expected a finite number > 0"):
        budget.charge(epsilon=0, label="x")
    with pytest.raises(ValueError, match="^delta: expected a number below 1"):
        budget.charge(epsilon=1, delta=1.0, label="x")
    with pytest.raises(TypeError, match="^label: expected a string"):
        budget.charge(epsilon=1.0, label=None)
    for bad in ("1", 1.0):
        with pytest.raises(TypeError, match="^bounded_range: expected a sequence"):
            budget.charge(epsilon=1.0, label="x", bounded_range=bad)
    with pytest.raises(ValueError, match="got neither"):
        dpd.PrivacyAccountant()
    with pytest.raises(ValueError, match="got both"):
        dpd.PrivacyAccountant(epsilon=1, rho=1)
    with pytest.raises(ValueError, match="^composition: expected one of"):
        dpd.PrivacyAccountant(epsilon=1, composition="best")
    for options in ({"delta": 1e-6}, {"composition": "basic"}, {"composition": "advanced", "planned": [1]}):
        with pytest.raises(ValueError, match="with a budget in rho"):
            dpd.PrivacyAccountant(rho=1, **options)
    with pytest.raises(ValueError, match="expected a budget with delta > 0"):
        dpd.PrivacyAccountant(epsilon=1, composition="zcdp")
    for options in ({"charge_delta": 2e-6}, {"charge_delta": 1e-6, "composition": "zcdp"}):
        with pytest.raises(ValueError, match="^charge_delta: expected at most"):
            dpd.PrivacyAccountant(epsilon=1, delta=1e-6, **options)


def test_numpy_scalars_and_fractions_are_numbers():
    budget = dpd.PrivacyAccountant(epsilon=np.float64(1), delta=np.float64(1e-6))
    budget.charge(epsilon=np.int64(1) / 2, delta=np.float64(0), label="x", bounded_range=np.array([0.25, 0.25]))
    budget.charge(epsilon=Fraction(1, 3), label="y")
    assert budget.spent().epsilon == pytest.approx(5 / 6)
    assert type(budget.charges[0].bounded_range[0]) is float


@pytest.mark.parametrize("planned", [5, 0.5, "0.5", b"0.5", True])
def test_a_plan_that_is_no_list_is_refused_by_name(planned):
    with pytest.raises(
        TypeError, match="^planned: expected a sequence of epsilons, the epsilons of all charges to come, got"
    ):
        dpd.PrivacyAccountant(epsilon=1, delta=1e-6, composition="advanced", planned=planned)


# As a ledger


def test_releases_charge_it_and_the_block_closes_it():
    with dpd.PrivacyAccountant(epsilon=1.0) as budget:
        dpd.private_median(ROWS, epsilon=0.75, prior=PRIOR, ledger=budget)
        with pytest.raises(dpd.BudgetExceededError, match="remaining"):
            dpd.private_median(ROWS, epsilon=0.5, prior=PRIOR, ledger=budget)
    assert [(c.label, c.epsilon) for c in budget.charges] == [("median", 0.75)]
    with pytest.raises(dpd.BudgetExceededError, match="after the end of this accountant's `with` block"):
        dpd.private_median(ROWS, epsilon=0.1, prior=PRIOR, ledger=budget)
    assert not budget.would_fit(epsilon=0.1)
    assert budget.remaining().epsilon == 0.25  # still to be read
    with pytest.raises(dpd.BudgetExceededError, match="has ended"), budget:
        pass


def test_the_block_closes_after_an_error_and_resets_nothing_on_entry():
    budget = dpd.PrivacyAccountant(epsilon=1.0)
    budget.charge(epsilon=0.5, label="before")
    with pytest.raises(KeyError), budget:
        assert budget.spent().epsilon == 0.5
        raise KeyError
    assert not budget.would_fit(epsilon=0.1)


def test_a_block_within_a_block_does_not_close_the_outer_one():
    with dpd.PrivacyAccountant(epsilon=1.0) as budget:
        with budget as same:
            same.charge(epsilon=0.25, label="inner")
        budget.charge(epsilon=0.25, label="outer")
    with pytest.raises(dpd.BudgetExceededError, match="after the end"):
        budget.charge(epsilon=0.25, label="late")
    assert [charge.label for charge in budget.charges] == ["inner", "outer"]


def test_threads_never_spend_more_than_the_budget():
    budget = dpd.PrivacyAccountant(epsilon=2.0, delta=1e-6)
    limit = fill(dpd.PrivacyAccountant(epsilon=2.0, delta=1e-6), epsilon=0.1, bounded_range=(0.1,))
    start, granted = threading.Barrier(8), []

    def race():
        start.wait()
        granted.append(fill(budget, epsilon=0.1, bounded_range=(0.1,)))

    threads = [threading.Thread(target=race) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(granted) == len(budget.charges) == limit > 20


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_budget_cannot_be_doubled(duplicate):
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        duplicate(dpd.PrivacyAccountant(epsilon=1.0))


# Documentation


def test_headings_of_the_docstring_stand_on_lines_of_their_own():
    lines = [line.strip() for line in dpd.PrivacyAccountant.__doc__.splitlines()]
    for heading in ("Parameters", "Raises", "Notes", "References", "Examples"):
        assert lines[lines.index(heading) + 1] == "-" * len(heading)
