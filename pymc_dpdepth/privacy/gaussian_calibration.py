"""The scale of Gaussian noise for a given (epsilon, delta), for every epsilon, rounded to the safe side.

Noise of standard deviation s on a value of L2 sensitivity 1 is (epsilon, delta)-private exactly where

    Phi(1/(2s) - epsilon s) - exp(epsilon) Phi(-1/(2s) - epsilon s) <= delta

(Balle and Wang 2018, Theorem 8). The two terms nearly cancel. With y = epsilon s - 1/(2s), h = 1/s and the Mills ratio
R(x) = (1 - Phi(x)) / phi(x), and since phi(y + h) exp(epsilon) = phi(y), the left side is

    phi(y) (R(y) - R(y + h)),

which is computed with so many digits that dozens are left after the subtraction.

References
----------
B. Balle and Y.-X. Wang (2018), Improving the Gaussian mechanism for differential privacy: analytical calibration and
optimal denoising, ICML, arXiv:1805.06530.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from pymc_dpdepth.privacy.rounding import float_above, number, probability, written

__all__ = ["analytic_gaussian_scale", "gaussian_delta"]

SPARE_DIGITS = 80  # beside the digits that the subtraction loses
ROUND_UP = 1 + Decimal("1e-30")  # far above all rounding errors, far below the spacing of doubles
LEAST_DELTA = Fraction(1, 10**200)  # no use needs less, and digits grow with it
# Up to here the series of R is used, which loses x^2 / (2 ln 10) < 8 digits; beyond, the continued fraction is fast.
SERIES_UP_TO = 6
# Beyond y = 100 the left side is below exp(-y^2/2) < 1e-2000, and below y = -100 it is 1 to as many digits.
FAR, NEXT_TO_NOTHING = 100, Decimal("1e-2000")


def gaussian_delta(epsilon: float | Fraction, scale: float | Fraction) -> float:
    """Return the least delta of Gaussian noise on a value of L2 sensitivity 1, rounded upwards.

    Parameters
    ----------
    epsilon : float
        Privacy loss, > 0.
    scale : float
        Standard deviation of the noise, > 0, in units of the sensitivity.

    Returns
    -------
    float

    References
    ----------
    .. [1] B. Balle and Y.-X. Wang, Improving the Gaussian mechanism for differential privacy, ICML 2018,
           arXiv:1805.06530.

    Examples
    --------
    >>> from pymc_dpdepth.privacy.gaussian_calibration import gaussian_delta
    >>> round(gaussian_delta(1.0, 1.0), 4)
    0.1269
    """
    return float_above(min(Decimal(1), _delta(written(number(epsilon, "epsilon")), Fraction(number(scale, "scale")))))


@lru_cache(maxsize=256)
def analytic_gaussian_scale(epsilon: float | Fraction, delta: float | Fraction) -> float:
    """Return the least standard deviation of Gaussian noise that is (epsilon, delta)-private, rounded upwards.

    Parameters
    ----------
    epsilon : float
        Privacy loss, > 0; any size, unlike in the classical formula sqrt(2 ln(1.25/delta)) / epsilon.
    delta : float
        In [1e-200, 1).

    Returns
    -------
    float
        In units of the L2 sensitivity: the smallest double that meets the condition.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range.

    References
    ----------
    .. [1] B. Balle and Y.-X. Wang, Improving the Gaussian mechanism for differential privacy, ICML 2018,
           arXiv:1805.06530.

    Examples
    --------
    >>> from pymc_dpdepth.privacy.gaussian_calibration import analytic_gaussian_scale
    >>> round(analytic_gaussian_scale(1.0, 1e-6), 4)
    4.2247
    """
    exact = written(number(epsilon, "epsilon")), written(probability(delta))
    if exact[1] < LEAST_DELTA:
        raise ValueError("delta: expected at least 1e-200 for Gaussian noise; take delta=0 for Laplace noise.")

    def fits(scale: float) -> bool:
        return Fraction(_delta(exact[0], Fraction(scale))) <= exact[1]

    # From y = 0, by doubling or halving until the condition turns over, and then by halves.
    low = high = 1 / math.sqrt(2 * max(float(exact[0]), 1e-300))
    while not fits(high):
        low, high = high, high * 2
    while low > 0 and fits(low):
        low, high = low / 2, low
    while low < (middle := low + (high - low) / 2) < high:
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _delta(epsilon: Fraction, scale: Fraction) -> Decimal:
    """Return the left side of the condition, rounded upwards by a part in 1e30."""
    low = epsilon * scale - 1 / (2 * scale)
    if low > FAR:
        return NEXT_TO_NOTHING
    if low < -FAR:
        return Decimal(1)
    # R(y) - R(y + h) is smaller than R by about h, so log10(1/h) digits are lost.
    digits = SPARE_DIGITS + max(0, math.frexp(float(scale))[1])
    with localcontext(Context(prec=digits, Emin=-(10**15), Emax=10**15)):
        y, h = _quotient(low), _quotient(1 / scale)
        density = (-y * y / 2).exp() / (2 * _pi(digits)).sqrt()
        return max(density * (_mills_ratio(y, digits) - _mills_ratio(y + h, digits)), Decimal(0)) * ROUND_UP


def _quotient(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _mills_ratio(x: Decimal, digits: int) -> Decimal:
    """Return (1 - Phi(x)) / phi(x)."""
    if x > SERIES_UP_TO:
        return _mills_by_fraction(x, digits)
    half = (_pi(digits) / 2).sqrt() * (x * x / 2).exp()  # 1 / (2 phi(x))
    if x < -SERIES_UP_TO:
        return 2 * half - _mills_by_fraction(-x, digits)
    # Phi(x) - 1/2 = phi(x) (x + x^3/3 + x^5/(3 5) + ...), terms of one sign
    term = total = x
    odd, least = 1, Decimal(10) ** (-digits)
    while abs(term) > least:
        odd += 2
        term *= x * x / odd
        total += term
    return half - total


def _mills_by_fraction(x: Decimal, digits: int) -> Decimal:
    """Return 1/(x + 1/(x + 2/(x + 3/(x + ...)))) for x > 0; consecutive convergents enclose the value."""
    length = 2 * digits
    while True:
        even, odd = x, x
        for k in range(length, 0, -1):
            even = x + k / even
        for k in range(length + 1, 0, -1):
            odd = x + k / odd
        if abs(even - odd) <= even * Decimal(10) ** (5 - digits):
            return 1 / even
        length *= 2


@lru_cache(maxsize=64)
def _pi(digits: int) -> Decimal:
    """Return pi by Machin's formula, 16 arctan(1/5) - 4 arctan(1/239)."""
    one = 10 ** (digits + 10)

    def arctan(inverse: int) -> int:
        power = total = one // inverse
        k, sign = 1, 1
        while power:
            power //= inverse * inverse
            k, sign = k + 2, -sign
            total += sign * (power // k)
        return total

    return Decimal(16 * arctan(5) - 4 * arctan(239)) / Decimal(one)
