"""Numbers as they were written, and results rounded to the safe side.

A privacy parameter is read as the decimal that was written, the shortest one that names its double: 0.1 is one tenth,
so that ten charges of 0.1 are exactly 1. A double differs from that decimal by at most a part in 2^53, so a guarantee
that is stated for the decimals holds for the doubles with every epsilon and rho multiplied by 1 + 2^-51.

Results are computed with `DIGITS` decimal digits. `exp` and `ln` of the standard library's decimals are correctly
rounded, so a result of a few thousand positive terms is right to far more digits than `GUARD` gives away before it is
rounded to the safe side.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal, DivisionByZero, InvalidOperation, Overflow
from fractions import Fraction
from numbers import Real
from typing import Any

__all__ = [
    "CONTEXT",
    "DIGITS",
    "GUARD",
    "float_above",
    "float_below",
    "largest",
    "number",
    "probability",
    "to_decimal",
    "written",
]

DIGITS = 60
CONTEXT = Context(prec=DIGITS, Emin=-(10**15), Emax=10**15, traps=[InvalidOperation, DivisionByZero, Overflow])
GUARD = Decimal("1e-30")  # relative; the formulas lose at most 22 of the 60 digits to cancellation


def number(value: Any, name: str, *, zero: bool = False) -> float | Fraction:
    """Return a positive finite number (or zero, where allowed) as a Python float, or as the Fraction it is."""
    expected = "a finite number >= 0" if zero else "a finite number > 0"
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_") or not isinstance(value, Real):
        raise TypeError(f"{name}: expected {expected}, got {type(value).__name__}. Give a float such as 1.0.")
    try:
        kept = float(value)
    except OverflowError:  # an integer or a fraction; its digits may fill pages
        raise ValueError(
            f"{name}: expected {expected}, got one beyond all doubles. Give a float such as 1.0."
        ) from None
    kept = value if isinstance(value, Fraction) else kept
    if not (math.isfinite(kept) and (kept > 0 or (zero and kept == 0))):
        raise ValueError(f"{name}: expected {expected}, got {value!r}. Give a float such as 1.0.")
    return kept


def probability(value: Any, name: str = "delta", *, zero: bool = False) -> float | Fraction:
    """Return a number below 1 that `number` accepts."""
    kept = number(value, name, zero=zero)
    if kept >= 1:
        raise ValueError(f"{name}: expected a number below 1, got {value!r}. Take far less than 1/n, such as 1e-6.")
    return kept


def written(value: float | Fraction) -> Fraction:
    """Return the shortest decimal that names a double; a Fraction stands for itself."""
    return value if isinstance(value, Fraction) else Fraction(repr(value))


def to_decimal(value: float | Fraction) -> Decimal:
    """Return a written number with `DIGITS` digits; a double's decimal has at most 17 and is exact."""
    kept = written(value)
    return CONTEXT.divide(Decimal(kept.numerator), Decimal(kept.denominator))


def float_above(value: Fraction | Decimal) -> float:
    """Return the smallest double that is not below a number >= 0; infinity beyond the largest.

    A sum of written numbers that is itself what a double's decimal says stays that: 0.1 + 0.2 is 0.3.
    """
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf
    same = isinstance(value, Fraction) and written(nearest) == value
    return nearest if same or nearest >= value else math.nextafter(nearest, math.inf)


def float_below(value: Fraction) -> float:
    """Return the largest double whose written decimal is not above a number >= 0.

    The decimal is what a charge or a budget counts as: a tenth is left as 0.1, though that double is a little larger.
    """
    nearest = float(value)
    while nearest > 0 and written(nearest) > value:
        nearest = math.nextafter(nearest, 0.0)
    return nearest


def largest(fits: Callable[[float], bool], guess: float) -> float:
    """Return the largest double that fits, of a monotone condition that 0 meets and large numbers do not."""
    low = high = max(guess, math.ulp(0.0))
    while high < math.inf and fits(high):
        low, high = high, high * 2
    while low > 0 and not fits(low):
        low, high = low / 2, low
    while True:
        middle = low + (high - low) / 2 if high < math.inf else math.nextafter(high, 0.0)
        if not low < middle < high:
            return low
        low, high = (middle, high) if fits(middle) else (low, middle)
