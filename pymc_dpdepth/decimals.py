"""The decimal with the fewest digits between two numbers: what stands for a cell of the grid."""

from __future__ import annotations

import numpy as np

__all__ = ["shortest_decimal"]

LONGEST_DECIMAL = 17  # significant digits that tell any two doubles apart
EXACT_POWER = 22  # 10**22 is the largest power of ten that is a double


def shortest_decimal(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the decimal with the fewest significant digits in [low, high], elementwise.

    An infinite end (a tail of probability 0) gives way to the finite one; two of them to the largest double.
    """
    low, high = np.where(np.isfinite(low), low, high), np.where(np.isfinite(high), high, low)
    largest = np.finfo(np.float64).max
    low, high = np.clip(low, -largest, largest), np.clip(high, -largest, largest)
    middle = low + 0.5 * (high - low)
    with np.errstate(divide="ignore", invalid="ignore"):
        magnitude = np.where(middle == 0.0, 0.0, np.floor(np.log10(np.abs(middle))))
    result, open_ = middle.copy(), np.ones(middle.shape, dtype=bool)
    zero = (low <= 0.0) & (high >= 0.0)
    result[zero], open_[zero] = 0.0, False
    for digits in range(1, LONGEST_DECIMAL):
        if not open_.any():
            break
        places = (digits - 1 - magnitude).astype(int)
        with np.errstate(over="ignore", invalid="ignore"):
            # Multiply by an exact power of ten on the side where it is one: x = round(m * 10^p) / 10^p.
            power = 10.0 ** np.abs(places)
            decimal = np.where(places >= 0, np.rint(middle * power) / power, np.rint(middle / power) * power)
        far = open_ & (np.abs(places) > EXACT_POWER)
        decimal[far] = [float(f"{value:.{digits - 1}e}") for value in middle[far]]
        hit = open_ & (decimal >= low) & (decimal <= high)
        result[hit] = decimal[hit]
        open_ &= ~hit
    return result
