"""Univariate depths of a point among n numbers, as functions of two counts.

For a point t among the numbers z_1, ..., z_n let

    le = #{i : z_i <= t},    ge = #{i : z_i >= t} = n - #{i : z_i < t}.

The depth is an integer function of (le, ge) over a fixed denominator, so a computed depth is an exact count and one
division. `docs/sensitivity.md` proves the sensitivities.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba

__all__ = ["DUAL", "SMOOTHED_DUAL", "TUKEY", "UnivariateDepth", "univariate_count"]

TUKEY_CODE = 0
DUAL_CODE = 1


@numba.njit(cache=True, nogil=True)
def univariate_count(code, le, ge):
    """Return the depth of the count pair in units of 1/n (code 0, Tukey: min) or 1/n^2 (code 1, dual: product)."""
    if code == TUKEY_CODE:
        return min(le, ge)
    return le * ge


@dataclass(frozen=True)
class UnivariateDepth:
    """A univariate depth: its code for the kernels, its unit and its sensitivity.

    Attributes
    ----------
    code : int
        What `univariate_count` computes: 0 is min(le, ge), 1 is le * ge.
    name : str
        "tukey" or "dual".
    power : int
        The count is divided by ``n**power``.
    smoothed : bool
        Whether the two shares are logistic means F and 1 - F instead of counts.
    """

    code: int
    name: str
    power: int
    smoothed: bool = False

    def denominator(self, n: int) -> int:
        """Return n**power, the number that the count is divided by."""
        return n**self.power

    def sensitivity_count(self, n: int) -> int:
        """Return the sensitivity in counts: 1 (Tukey) or n (dual); for step depths."""
        if self.smoothed:
            raise ValueError("A smoothed depth is not counted; use sensitivity(n).")
        return 0 if n == 0 else n ** (self.power - 1)

    def sensitivity(self, n: int) -> float:
        """Return the global sensitivity of replacing one of n numbers: 1/n; smoothed, (n-1)/n^2 and 1/4 at n = 1."""
        if n == 0:
            return 0.0
        if not self.smoothed:
            return 1 / n
        return 1 / 4 if n == 1 else (n - 1) / n**2

    def upper_bound(self, n: int) -> float:
        """Return the supremum over all numbers and points: 1 when all numbers equal the point, 1/4 when smoothed."""
        if n == 0:
            return 0.0
        return 1 / 4 if self.smoothed else 1.0


TUKEY = UnivariateDepth(TUKEY_CODE, "tukey", power=1)
DUAL = UnivariateDepth(DUAL_CODE, "dual", power=2)
SMOOTHED_DUAL = UnivariateDepth(DUAL_CODE, "dual", power=2, smoothed=True)
