"""A privacy budget for several releases in one process."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from pymc_dpdepth.errors import BudgetExceededError
from pymc_dpdepth.privacy import charges
from pymc_dpdepth.privacy.charges import ZERO, Charge, Cost, PrivacyRemaining, PrivacySpent
from pymc_dpdepth.privacy.composition import (
    advanced_composition,
    bounded_range_composition,
    bounded_range_rho,
    pure_rho,
    rho_of_budget,
    rho_to_epsilon,
)
from pymc_dpdepth.privacy.rounding import float_above, float_below, largest, number, probability, written
from pymc_dpdepth.privacy.totals import Limits, Totals

__all__ = ["PrivacyAccountant"]

PLANNED = {"advanced": advanced_composition, "bounded_range": bounded_range_composition}
COMPOSITIONS = ("auto", "basic", "zcdp", *PLANNED)


class PrivacyAccountant:
    """A privacy budget that is fixed beforehand and refuses every charge that would take it past its limit.

    Give it as `ledger=` to `private_median` or `release`. It lives in one process and is thread-safe; it cannot be
    copied or pickled, since two copies would spend the same budget. A budget that several processes share, or that
    must survive a crash, needs a ledger in a file.

    Parameters
    ----------
    epsilon, delta : float, optional
        The budget: everything that is charged is (epsilon, delta)-DP together. With delta = 0 it is pure.
    rho : float, optional
        The budget in zero-concentrated DP, instead of epsilon and delta.
    composition : {"auto", "basic", "zcdp", "advanced", "bounded_range"}
        How costs add up.

        - "basic": epsilons add up, and deltas.
        - "zcdp": each charge counts in rho (`bounded_range_rho` for draws of exponential mechanisms, `pure_rho`
          otherwise), against the rho that a budget (epsilon, delta) allows by the conversion of Canonne, Kamath and
          Steinke (2020).
        - "auto": a charge is granted while "basic" or "zcdp" grants it, which is valid too (see Notes). With a pure
          budget it is "basic", with a budget in rho "zcdp". So it is if the first charge has a delta of its own
          (propose-test-release, Gaussian noise): "basic" from then on, for all charges.
        - "advanced", "bounded_range": the optimal composition of pure or bounded-range mechanisms, for a list of
          epsilons that `planned` fixes beforehand.
    planned : sequence of float, optional
        For "advanced" and "bounded_range" only: the epsilons of all charges to come. Their composed cost must fit the
        budget now; afterwards each charge uses one of them up, in any order, and others are refused. With
        "bounded_range" you promise more: that all those mechanisms, not only their epsilons, are fixed before any of
        them is run, and each charge must be tagged `bounded_range`.
    charge_delta : float, optional
        The part of delta that is kept for charges with a delta of their own. It is fixed beforehand because the rho
        budget is derived from the rest. By default all of delta for "basic" and 0 otherwise; with "auto" the first
        charge decides, as said above.

    Raises
    ------
    BudgetExceededError
        If the planned epsilons cost more than the budget; by `charge`, if a charge does not fit.
    ValueError, TypeError
        If the budget is not one, or a charge is of a kind that it cannot hold.

    Notes
    -----
    "basic", "zcdp" and "auto" are privacy filters (Rogers, Roth, Ullman and Vadhan 2016): mechanisms, their epsilons
    and the moment to stop may all depend on what was released before, and the budget still holds. For sums of rho see
    Feldman and Zrnic (2021) and Whitehouse, Ramdas, Rogers and Wu (2023). For "auto": sums never fall, so on each path
    one of the two conditions held all the way; paths on which the sum of epsilons did have a likelihood ratio of at
    most e^epsilon, and the others are paths of the mechanism that stops where the rho budget ends, which adds at most
    delta. docs/composition.md has the proof with `charge_delta`, and says why the first charge alone may decide.

    "advanced" allows adaptively chosen mechanisms, "bounded_range" does not (Dong, Durfee and Rogers 2020). Stopping
    early, skipping and the order are free in both: all planned outputs can be thought of as drawn beforehand.

    `spent()` is for your books. What may be published is the budget: where charges were chosen by looking at earlier
    outputs, the sum at the moment of stopping is not a guarantee in (epsilon, delta) or rho, only the limit is.

    Groups are disjoint sets of rows with public labels. A charge with `group=` pays for a release that sees the rows of
    that group alone; a row is in one group, so its cost is that group's sum plus the charges without a group, and the
    budget holds for the worst group.

    Numbers are read as the decimals that were written, and sums are exact: ten charges of 0.1 fit a budget of 1.0,
    eleven do not. (The double 0.1 is above one tenth by a part in 10^17; the guarantee holds for the doubles with
    epsilon and rho multiplied by 1 + 2^-51.)

    References
    ----------
    Rogers, Roth, Ullman and Vadhan (2016), Privacy odometers and filters: pay-as-you-go composition, NeurIPS.
    Feldman and Zrnic (2021), Individual privacy accounting via a Renyi filter, NeurIPS.
    Whitehouse, Ramdas, Rogers and Wu (2023), Fully-adaptive composition in differential privacy, ICML.
    Dong, Durfee and Rogers (2020), Optimal differential privacy composition for exponential mechanisms and the cost of
    adaptivity, ICML.

    Examples
    --------
    >>> import pymc_dpdepth as dpd
    >>> with dpd.PrivacyAccountant(epsilon=3) as budget:
    ...     release = dpd.private_median([[0.1], [0.4], [0.9]], epsilon=1.0, prior="normal(0, 5)", ledger=budget)
    >>> budget.spent().epsilon, budget.remaining().epsilon
    (1.0, 2.0)
    """

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float = 0.0,
        rho: float | None = None,
        composition: str = "auto",
        *,
        planned: Sequence[float] | None = None,
        charge_delta: float | None = None,
    ):
        if composition not in COMPOSITIONS:
            raise ValueError(f"composition: expected one of {', '.join(COMPOSITIONS)}, got {composition!r}.")
        if (epsilon is None) == (rho is None):
            raise ValueError(
                "Expected a budget in epsilon (with delta, if you like) or in rho, got "
                f"{'neither' if rho is None else 'both'}. Give epsilon=1.0, or epsilon=1.0, delta=1e-6, or rho=0.1."
            )
        self.composition = composition
        self.epsilon = None if epsilon is None else number(epsilon, "epsilon")
        self.delta = probability(delta, zero=True)
        self.rho = None if rho is None else number(rho, "rho")
        self._lock = threading.RLock()
        self._closed, self._open_blocks = False, 0
        self._charges: list[Charge] = []
        self._totals = Totals()
        self._check_kind()
        self._limits = self._read_limits(charge_delta)
        # Nothing has been released before the first charge, so that it may choose between two ways to count.
        self._first_may_choose = self.composition == "auto" and charge_delta is None and self.delta > 0
        self._plan = self._read_plan(planned)

    def _check_kind(self) -> None:
        """Refuse a composition that says nothing about this kind of budget."""
        if self.rho is not None and (self.delta or self.composition not in ("auto", "zcdp")):
            raise ValueError(
                "Expected delta=0 and composition 'auto' or 'zcdp' with a budget in rho, got "
                f"delta={self.delta!r} and {self.composition!r}. Give the budget as epsilon and delta instead."
            )
        if self.rho is None and self.composition in ("zcdp", *PLANNED) and not self.delta:
            raise ValueError(
                f"composition={self.composition!r}: expected a budget with delta > 0, got delta=0. Give a delta far "
                "below 1/n, such as 1e-6, or use composition='basic'."
            )

    def _read_limits(self, charge_delta: float | None) -> Limits:
        """Return what the sums are compared with."""
        delta = written(self.delta)
        if charge_delta is None:
            kept = delta if self.composition == "basic" else ZERO
        else:
            kept = written(probability(charge_delta, "charge_delta", zero=True))
        if kept > delta or (self.composition == "zcdp" and 0 < delta <= kept):
            raise ValueError(
                f"charge_delta: expected at most the budget's delta={self.delta!r}, and less for 'zcdp', which "
                f"converts at the rest; got {charge_delta!r}."
            )
        if kept and self.composition in PLANNED:
            raise ValueError(f"charge_delta: expected 0 with composition={self.composition!r}, got {charge_delta!r}.")
        pure = written(self.epsilon) if self.rho is None and self.composition != "zcdp" else None
        rho = None
        if self.rho is not None:
            rho = written(self.rho)
        elif self.composition in ("auto", "zcdp") and delta > kept:
            rho = Fraction(rho_of_budget(self.epsilon, delta - kept))
        return Limits(self.composition, pure, rho, kept, delta - kept)

    def _limits_for(self, asked: Charge) -> Limits:
        """Return the limits that hold once a charge is granted."""
        if self._first_may_choose and not self._charges and asked.delta and not asked.bounded_range:
            return Limits("basic", self._limits.pure, None, written(self.delta), ZERO)
        return self._limits

    def _read_plan(self, planned: Sequence[float] | None) -> Counter | None:
        """Return how often each planned epsilon may be charged, if the composition needs a plan."""
        if (self.composition in PLANNED) != (planned is not None):
            raise ValueError(
                "planned: expected the epsilons of all charges to come with composition 'advanced' or "
                f"'bounded_range', and only there; got planned={planned!r} and composition={self.composition!r}. They "
                "hold for a list that is fixed beforehand; for charges chosen on the way use 'auto'."
            )
        if planned is None:
            return None
        charges.check_sequence(planned, "planned", "the epsilons of all charges to come")
        planned = tuple(planned)
        cost = PLANNED[self.composition](planned, self.delta)
        if cost > self.epsilon:  # as doubles: a budget that was computed as this very cost is enough
            raise BudgetExceededError(
                f"planned: the plan costs epsilon={cost!r} at delta={self.delta!r} and the budget is "
                f"epsilon={self.epsilon!r}. Plan fewer or smaller charges."
            )
        return Counter(written(number(value, "planned")) for value in planned)

    # Charging

    def charge(
        self,
        *,
        epsilon: float,
        delta: float = 0.0,
        label: str,
        bounded_range: Sequence[float] = (),
        group: str | int | None = None,
    ) -> None:
        """Record a cost before the draw that it pays for, or refuse it and record nothing.

        Parameters
        ----------
        epsilon, delta : float
            One valid statement of the cost.
        label : str
            What it pays for.
        bounded_range : sequence of float
            A second valid statement of the same cost: the release consists of single draws of exponential mechanisms
            with these epsilons. Nothing else may be tagged: no Laplace noise, no propose-test-release, no certified
            draw.
        group : str or int, optional
            The public label of the group of rows that the release looks at.

        Raises
        ------
        BudgetExceededError
            If what is left does not suffice, or the `with` block of this accountant has ended.
        ValueError, TypeError
            If the charge is malformed, or has a delta that the budget has no room for by its kind.
        """
        asked = charges.read_charge(epsilon, delta, label, bounded_range, group)
        with self._lock:
            limits = self._limits_for(asked)
            self._check_room(asked, limits)
            if self._closed:
                raise BudgetExceededError(
                    f"The charge {label!r} came after the end of this accountant's `with` block; remaining() tells "
                    "what was left. Make the release inside the block, or use an accountant without `with`."
                )
            if self._plan is not None:
                self._plan -= self._planned_entries(asked)
            else:
                self._totals.add(self._fitting_cost(asked, limits), group)
            self._limits = limits
            self._charges.append(asked)

    def would_fit(
        self, *, epsilon: float, delta: float = 0.0, bounded_range: Sequence[float] = (), group: str | int | None = None
    ) -> bool:
        """Tell whether `charge` would grant this now; malformed charges raise as they do there."""
        asked = charges.read_charge(epsilon, delta, "a question", bounded_range, group)
        with self._lock:
            limits = self._limits_for(asked)
            self._check_room(asked, limits)
            try:
                self._fitting_cost(asked, limits) if self._plan is None else self._planned_entries(asked)
            except BudgetExceededError:
                return False
            return not self._closed

    def _check_room(self, asked: Charge, limits: Limits) -> None:
        """Refuse a charge of a kind that this budget has no room for."""
        if asked.delta and not asked.bounded_range and not limits.charge_delta:
            decided = ", since its first charge was one" if self._first_may_choose and self._charges else ""
            raise ValueError(
                f"delta: this budget holds charges with delta=0 or single exponential-mechanism draws{decided}; "
                f"{asked.label!r} has delta={asked.delta!r}. Give PrivacyAccountant an epsilon and a delta, with "
                "composition='basic' or a charge_delta."
            )
        if self._plan is not None and asked.group is not None:
            raise ValueError(
                f"group: expected None with composition={self.composition!r}, whose plan knows no groups; got a group. "
                "Use composition='auto', or one accountant for each group."
            )
        if self.composition == "bounded_range" and not asked.bounded_range:
            raise ValueError(
                "bounded_range: expected the epsilons of the exponential-mechanism draws, got none for "
                f"{asked.label!r}. composition='bounded_range' holds for such draws only; use 'advanced' for other "
                "pure mechanisms."
            )

    def _fitting_cost(self, asked: Charge, limits: Limits) -> Cost:
        """Return the first cost that fits, or refuse."""
        for cost in charges.costs_of(asked, limits.composition, concentrated=limits.rho is not None):
            if all(limits.hold(total + cost) for total in self._totals.of(asked.group)):
                return cost
        left = self.remaining(asked.group)
        draws = f" in draws at {asked.bounded_range}" if asked.bounded_range else ""
        rho = "" if left.rho is None else f", rho={left.rho!r}"
        raise BudgetExceededError(
            f"The charge {asked.label!r} asks for epsilon={asked.epsilon!r}, delta={asked.delta!r}{draws}; left for "
            f"one more charge: epsilon={left.epsilon!r} (an exponential-mechanism draw: {left.draw_epsilon!r}), "
            f"delta={left.delta!r}{rho}. Nothing was charged. Ask for less; remaining() tells what is left."
        )

    def _planned_entries(self, asked: Charge) -> Counter:
        """Return the entries of the plan that a charge uses up, or refuse."""
        entries = Counter(map(written, self._entries_of(asked)))
        if not entries <= self._plan:
            raise BudgetExceededError(
                f"The charge {asked.label!r} needs planned epsilons {sorted(map(float, entries.elements()))}; left in "
                f"the plan are {list(self.remaining().planned)}. Nothing was charged. Charge what was planned; "
                "remaining() tells what is left."
            )
        return entries

    def _entries_of(self, charge: Charge) -> tuple[float, ...]:
        """Return the epsilons that a charge takes from the plan."""
        by_draws = self.composition == "bounded_range" or charge.delta
        return charge.bounded_range if by_draws else (charge.epsilon,)

    # Looking

    @property
    def charges(self) -> tuple[Charge, ...]:
        """The charges that were granted, in their order."""
        return tuple(self._charges)

    def spent(self) -> PrivacySpent:
        """Return what the charges so far cost, for the worst group; for your books, see the class's notes.

        With a concentrated budget in (epsilon, delta) the epsilon is the smaller of the sum and of the conversion at
        delta - charge_delta.
        """
        with self._lock:
            if self._plan is not None:
                used = [value for charge in self._charges for value in self._entries_of(charge)]
                return PrivacySpent(PLANNED[self.composition](used, self.delta), float(self.delta) if used else 0.0)
            totals = self._totals.of()
        epsilon, delta = 0.0, ZERO
        for total in totals:
            one, own = float_above(total.pure), total.delta
            if self._limits.rho is not None and self._limits.conversion_delta > 0:
                converted = rho_to_epsilon(total.rho, self._limits.conversion_delta)
                if converted < one:
                    one, own = converted, own + self._limits.conversion_delta
            epsilon, delta = max(epsilon, one), max(delta, own)
        rho = None if self._limits.rho is None else float_above(max(total.rho for total in totals))
        return PrivacySpent(epsilon, float_above(delta), rho)

    def remaining(self, group: str | int | None = None) -> PrivacyRemaining:
        """Return what one more charge may ask for, in a group or (without one) of everybody."""
        charges.check_group(group)
        with self._lock:
            if self._plan is not None:
                planned = tuple(sorted(map(float, self._plan.elements())))
                most = max(planned, default=0.0)
                return PrivacyRemaining(0.0 if self.composition == "bounded_range" else most, most, 0.0, None, planned)
            totals = self._totals.of(group)
        epsilon = min(self._largest_charge(total, pure_rho) for total in totals)
        draw = min(self._largest_charge(total, bounded_range_rho) for total in totals)
        free = self._first_may_choose and not self._charges
        kept = written(self.delta) if free else self._limits.charge_delta
        delta = float_below(kept - max(total.delta for total in totals))
        rho = None
        if self._limits.rho is not None:
            rho = float_below(max(self._limits.rho - max(total.rho for total in totals), ZERO))
        return PrivacyRemaining(epsilon, draw, delta, rho)

    def _largest_charge(self, total: Cost, cost: Any) -> float:
        """Return the largest epsilon that may be added to a total, where an epsilon costs so much rho."""
        most = 0.0
        if self._limits.pure is not None and total.pure < self._limits.pure:
            most = float_below(self._limits.pure - total.pure)
        if self._limits.rho is not None and total.rho < self._limits.rho:
            rest = self._limits.rho - total.rho
            most = max(most, largest(lambda epsilon: Fraction(cost(epsilon)) <= rest, math.sqrt(2 * rest)))
        return most

    # As a context

    def __enter__(self) -> PrivacyAccountant:
        """Open a block, perhaps within another one; nothing is reset."""
        with self._lock:
            if self._closed:
                raise BudgetExceededError(
                    "This accountant's `with` block has ended; remaining() tells what was left. Make a new accountant "
                    "for a new budget."
                )
            self._open_blocks += 1
        return self

    def __exit__(self, *exception: Any) -> None:
        """Close the accountant with its outermost block: what is left stays readable and can no longer be spent."""
        with self._lock:
            self._open_blocks -= 1
            self._closed = self._open_blocks == 0

    def __reduce__(self) -> Any:
        """Refuse to be copied or pickled."""
        raise TypeError(
            "A PrivacyAccountant cannot be copied or pickled: two copies would spend the same budget. Share the one "
            "object between threads; several processes need a ledger in a file."
        )

    def __repr__(self) -> str:
        """Return the budget and the number of charges."""
        budget = f"rho={self.rho!r}" if self.rho is not None else f"epsilon={self.epsilon!r}, delta={self.delta!r}"
        return f"PrivacyAccountant({budget}, composition={self.composition!r}): {len(self._charges)} charges"
