"""Sums over groups: the few that are looked at decide as all of them would, and their number stays small."""

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

import pymc_dpdepth as dpd
from pymc_dpdepth.privacy.charges import Cost
from pymc_dpdepth.privacy.composition import _bounded_range_rho, _pure_rho
from pymc_dpdepth.privacy.totals import Totals

amounts = st.integers(0, 4).map(Fraction)
costs = st.builds(Cost, amounts, amounts, amounts)


@given(st.lists(st.tuples(costs, st.sampled_from([None, "a", "b", "c", "d"])), max_size=12), costs, st.booleans())
@settings(max_examples=200, deadline=None)
def test_the_largest_totals_decide_as_all_of_them_do(charges, limit, either):
    totals, shared, own = Totals(), Cost(), {}

    def fits(total):  # as an accountant with two currencies, or with one of them, decides
        pure, rho = total.pure <= limit.pure, total.rho <= limit.rho
        return total.delta <= limit.delta and ((pure or rho) if either else pure)

    for cost, group in charges:
        totals.add(cost, group)
        if group is None:
            shared += cost
        else:
            own[group] = own.get(group, Cost()) + cost
        everyone = [shared, *(shared + one for one in own.values())]
        looked_at = totals.of()
        assert set(looked_at) <= set(everyone)
        assert all(any(one.is_within(other) for other in looked_at) for one in everyone)
        assert all(map(fits, looked_at)) == all(map(fits, everyone))
        for name in ("a", "nobody"):
            assert totals.of(name) == [shared + own.get(name, Cost())]


def test_the_work_does_not_grow_with_the_number_of_groups(monkeypatch):
    additions = []
    add = Cost.__add__
    monkeypatch.setattr(Cost, "__add__", lambda self, other: additions.append(1) or add(self, other))
    budget = dpd.PrivacyAccountant(epsilon=1e3, delta=1e-6)
    for i in range(200):
        budget.charge(epsilon=0.5 + i / 1000, label="x", group=f"group {i}")
        budget.charge(epsilon=0.5, label="x")
    assert 400 <= len(additions) < 400 * 5
    assert len(budget._totals.of()) == 1
    assert budget.spent().epsilon < 200 * 0.5 + 0.5 + 199 / 1000 + 1e-9


def test_costs_that_are_kept_are_kept_by_the_number_that_was_written():
    # 0.7 is read as seven tenths. The double lies below that by a part in 10^17, and stands for itself as a fraction.
    for cost in (_bounded_range_rho, _pure_rho):
        for value in (0.7, Fraction(0.7), Fraction(7, 10), 0.7):
            assert cost(value) == cost.__wrapped__(value)
        assert cost.cache_info().hits >= 1
    assert Fraction(0.7) == 0.7 and Fraction(0.7) != Fraction(7, 10)
