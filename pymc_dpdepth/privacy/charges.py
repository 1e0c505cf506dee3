"""Charges against a privacy budget, what they cost, and what is spent and left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from typing import Any

from pymc_dpdepth.privacy.composition import bounded_range_rho, pure_rho
from pymc_dpdepth.privacy.rounding import number, probability, written

__all__ = [
    "Charge",
    "Cost",
    "PrivacyRemaining",
    "PrivacySpent",
    "check_group",
    "check_sequence",
    "costs_of",
    "read_charge",
]

ZERO = Fraction(0)


@dataclass(frozen=True)
class Charge:
    """One charge that was granted, as `PrivacyAccountant.charge` got it."""

    label: str
    epsilon: float
    delta: float
    bounded_range: tuple[float, ...]
    group: str | int | None


@dataclass(frozen=True)
class PrivacySpent:
    """What the charges so far cost, rounded upwards; `rho` is None where no concentrated cost is kept."""

    epsilon: float
    delta: float
    rho: float | None = None


@dataclass(frozen=True)
class PrivacyRemaining:
    """What one more charge may ask for, rounded downwards.

    Attributes
    ----------
    epsilon : float
        The largest epsilon of one more pure charge.
    draw_epsilon : float
        The largest epsilon of one more single draw of an exponential mechanism (`bounded_range=(draw_epsilon,)`).
    delta : float
        What is left for charges that have a delta of their own; before the first charge to an accountant with
        composition "auto", what that one may have.
    rho : float or None
        What is left of the concentrated budget, if there is one.
    planned : tuple of float
        The planned epsilons that were not charged yet.
    """

    epsilon: float
    draw_epsilon: float
    delta: float
    rho: float | None = None
    planned: tuple[float, ...] = ()


@dataclass(frozen=True)
class Cost:
    """A sum of costs in the three currencies, exactly."""

    pure: Fraction = ZERO
    rho: Fraction = ZERO
    delta: Fraction = ZERO

    def __add__(self, other: Cost) -> Cost:
        """Add in every currency."""
        return Cost(self.pure + other.pure, self.rho + other.rho, self.delta + other.delta)

    def is_within(self, other: Cost) -> bool:
        """Tell whether this is at most as large in every currency."""
        return self.pure <= other.pure and self.rho <= other.rho and self.delta <= other.delta


def read_charge(epsilon: Any, delta: Any, label: Any, bounded_range: Any, group: Any) -> Charge:
    """Return a checked charge."""
    if not isinstance(label, str):
        raise TypeError(f"label: expected a string that says what is paid for, got {type(label).__name__}.")
    check_sequence(bounded_range, "bounded_range", "the epsilons of single exponential-mechanism draws, or ()")
    check_group(group)
    draws = tuple(number(value, f"bounded_range[{index}]") for index, value in enumerate(bounded_range))
    delta = probability(delta, zero=True)
    return Charge(label, number(epsilon, "epsilon", zero=delta > 0), delta, draws, group)


def check_group(group: Any) -> None:
    """Refuse what is not the label of a group, or None.

    Labels that are not equal to themselves, such as NaN, would open a new group with every charge; True is equal to 1.
    """
    if isinstance(group, bool) or not (group is None or isinstance(group, str | Integral)):
        raise TypeError(f"group: expected a string or an integer, got {type(group).__name__}. Give the public label.")


def check_sequence(values: Any, name: str, expected: str) -> None:
    """Refuse what is no sequence of epsilons."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(
            f"{name}: expected a sequence of epsilons, {expected}, got {type(values).__name__}. Give a tuple such as "
            "(0.5, 0.5)."
        )


def costs_of(charge: Charge, composition: str, *, concentrated: bool = True) -> list[Cost]:
    """Return the costs that a charge may be booked at, the preferred one first.

    Where no rho is kept it is not computed: `concentrated` is False, and rho 0.

    Only "basic", which has one currency, may book the statement (epsilon, delta) of tagged draws; the proof for "auto"
    needs the same delta in both currencies.
    """
    stated = written(charge.epsilon)
    rho = Fraction(pure_rho(charge.epsilon)) if stated and concentrated else ZERO
    if not charge.bounded_range:
        return [Cost(stated, rho, written(charge.delta))]
    pure = sum(map(written, charge.bounded_range), ZERO)
    many = Counter(charge.bounded_range) if concentrated else {}
    ranged = sum((count * Fraction(bounded_range_rho(value)) for value, count in many.items()), ZERO)
    if not charge.delta:
        return [Cost(min(pure, stated), min(ranged, rho))]
    costs = [Cost(pure, ranged)]
    if composition == "basic" and stated < pure:
        costs.insert(0, Cost(stated, rho, written(charge.delta)))
    return costs
