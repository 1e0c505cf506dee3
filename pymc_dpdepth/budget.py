"""Charging a budget before a draw."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

__all__ = ["BudgetLedger", "charge", "check_ledger"]


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


def charge(
    ledger: BudgetLedger | None, *, epsilon: float, delta: float, label: str, bounded_range: tuple[float, ...] = ()
) -> None:
    """Charge a ledger, if there is one. A crash after this line wastes budget; it never creates any."""
    if ledger is not None:
        ledger.charge(epsilon=epsilon, delta=delta, label=label, bounded_range=bounded_range)
