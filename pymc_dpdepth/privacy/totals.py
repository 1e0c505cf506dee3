"""What all charges cost together, for everybody and for each group of rows, without a pass over all groups."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from pymc_dpdepth.privacy.charges import Cost

__all__ = ["Limits", "Totals"]


@dataclass(frozen=True)
class Limits:
    """What the sums are compared with; None where a currency is not used.

    Attributes
    ----------
    composition : str
        How costs add up.
    pure, rho : Fraction or None
        A total must be within one of them.
    charge_delta : Fraction
        For charges with a delta of their own.
    conversion_delta : Fraction
        At which rho is converted to epsilon.
    """

    composition: str
    pure: Fraction | None
    rho: Fraction | None
    charge_delta: Fraction
    conversion_delta: Fraction

    def hold(self, total: Cost) -> bool:
        """Tell whether a row's total cost is within the budget."""
        pure = self.pure is not None and total.pure <= self.pure
        concentrated = self.rho is not None and total.rho <= self.rho
        return total.delta <= self.charge_delta and (pure or concentrated)


class Totals:
    """The sum of the charges without a group, and each group's own sum.

    A limit that is met by a cost is met by every cost that is at most as large in all currencies. So for a charge that
    everybody pays it is enough to look at the groups that no other exceeds in all of them: one, where costs differ in
    size only. Sums never fall, so a group that drops out of these comes back by a charge of its own alone.
    """

    def __init__(self):
        self._shared = Cost()
        self._own: dict[str | int, Cost] = {}
        self._largest = [Cost()]

    def add(self, cost: Cost, group: str | int | None) -> None:
        """Add a cost to a group's sum, or without a group to everybody's."""
        if group is None:
            self._shared += cost
            return
        own = self._own[group] = self._own.get(group, Cost()) + cost
        if not any(own.is_within(other) for other in self._largest):
            self._largest = [other for other in self._largest if not other.is_within(own)] + [own]

    def of(self, group: str | int | None = None) -> list[Cost]:
        """Return the totals that a charge to this group would raise, up to those that are within another one."""
        if group is not None:
            return [self._shared + self._own.get(group, Cost())]
        return [self._shared + own for own in self._largest]
