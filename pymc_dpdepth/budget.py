"""Charging a budget before a draw."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from pymc_dpdepth.errors import PrivacyLeakWarning, warn_user
from pymc_dpdepth.privacy.ledger_arguments import public_text

__all__ = ["BudgetLedger", "charge", "check_data", "check_ledger", "labelled", "warn_if_delta_is_large"]


@runtime_checkable
class BudgetLedger(Protocol):
    """Whatever keeps a privacy budget: its `charge` raises when the budget does not suffice."""

    def charge(self, *, epsilon: float, delta: float, label: str, bounded_range: tuple[float, ...] = ()) -> Any:
        """Record a cost, durably, before the draw that it pays for; raise `BudgetExceededError` to refuse it.

        `(epsilon, delta)` is one valid statement of the cost. Where `bounded_range` is not empty it is a second one of
        the same cost: the release consists of single draws of exponential mechanisms with these epsilons.
        """


def check_ledger(ledger: Any) -> None:
    """Refuse an object that cannot be charged, before anything is computed."""
    if ledger is not None and (isinstance(ledger, type) or not isinstance(ledger, BudgetLedger)):
        got = (
            f"the class {ledger.__name__}; make an object of it" if isinstance(ledger, type) else type(ledger).__name__
        )
        raise TypeError(
            "ledger: expected None or an object with a method charge(*, epsilon, delta, label, bounded_range), got "
            f"{got}."
        )


class _Labelled:
    """A ledger in which all charges get the same label."""

    def __init__(self, ledger: BudgetLedger, label: str):
        self._ledger, self._label = ledger, label
        if hasattr(ledger, "check_data"):
            self.check_data = ledger.check_data

    def charge(self, *, label: str, **cost: Any) -> Any:
        """Charge the ledger under the label that was chosen."""
        return self._ledger.charge(label=self._label, **cost)


def labelled(ledger: BudgetLedger | None, label: str | None) -> BudgetLedger | None:
    """Return a ledger in which every charge is called by the user's label; without one, the ledger itself."""
    check_ledger(ledger)
    if label is None:
        return ledger
    if ledger is None:
        raise ValueError("label: expected with ledger=, whose charge it names; leave it out.")
    return _Labelled(ledger, public_text("label", label))


def check_data(ledger: Any, data: Any) -> None:
    """Have a ledger that can tell tables apart check the one that is about to be used.

    Such a ledger has a method `check_data(data)` that raises for other rows than its own; `Ledger` has one.
    """
    if ledger is not None and hasattr(ledger, "check_data"):
        ledger.check_data(data)


def charge(
    ledger: BudgetLedger | None, *, epsilon: float, delta: float, label: str, bounded_range: tuple[float, ...] = ()
) -> None:
    """Charge a ledger, if there is one. A crash after this line wastes budget; it never creates any."""
    if ledger is not None:
        ledger.charge(epsilon=epsilon, delta=delta, label=label, bounded_range=bounded_range)


def warn_if_delta_is_large(delta: float, n: int) -> None:
    """Warn where delta is not below 1/n, for n rows."""
    if delta and delta * n >= 1:
        warn_user(
            f"delta = {delta:g} is not below 1/n = 1/{n}: publishing one row in full, picked at random, would satisfy "
            "it. Take delta far below 1/n.",
            PrivacyLeakWarning,
        )
