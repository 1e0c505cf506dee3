"""The private test of propose-test-release: whether the breakdown is far enough above 1 for a release.

With the breakdown B, which one replaced row moves by at most 1, it passes iff B + noise >= cut. Where two neighbours'
statistics differ by more than the threshold, both have B = 1, and the test passes with probability `false_pass` at
most. The proofs are in docs/propose_test_release.md.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal, Overflow, localcontext
from numbers import Real
from typing import Any

import numpy as np

from pymc_dpdepth.privacy.noise import GAUSSIAN, LAPLACE, IntegerNoise, gaussian_noise, laplace_noise
from pymc_dpdepth.privacy.rounding import CONTEXT, GUARD, float_above, number, to_decimal, written
from pymc_dpdepth.randomness import RandomBits

__all__ = ["NOISES", "Budget", "StabilityTest", "read_budget", "stability_test", "unit_cost"]

NOISES = (LAPLACE, GAUSSIAN)
# A breakdown is a whole number of rows, its noise a multiple of 1 / PARTS: so fine that rounding costs nothing.
PARTS = 2**20
MOST_ROWS = 2**32  # a larger breakdown counts as this one
QUANTILE_ROOM = 1e-12  # of a logarithm; the normal functions used are right to a few parts in 1e15
SPLIT = "epsilon=2.0 (half for the test) or epsilon=(0.5, 1.5)"


@dataclass(frozen=True)
class Budget:
    """What one propose-test-release costs when one row is replaced.

    Attributes
    ----------
    test_epsilon, release_epsilon : float
    delta : float
    """

    test_epsilon: float
    release_epsilon: float
    delta: float

    @property
    def epsilon(self) -> float:
        """The sum of both parts."""
        return float_above(written(self.test_epsilon) + written(self.release_epsilon))


def read_budget(epsilon, delta) -> Budget:
    """Return a checked budget; `epsilon` is the total, halved, or the pair of parts."""
    if isinstance(epsilon, tuple | list):
        if len(epsilon) != 2:
            raise ValueError(f"epsilon: expected a total or a pair (test, release), got {len(epsilon)} parts: {SPLIT}.")
        test, release = (float(number(part, "epsilon")) for part in epsilon)
    else:
        test = release = float(number(epsilon, "epsilon")) / 2
    expected = "delta: expected a number in (0, 0.5), far below 1/n, such as 1e-6"
    if isinstance(delta, bool | np.bool_) or not isinstance(delta, Real):
        raise TypeError(f"{expected}, got {type(delta).__name__}.")
    if not 0 < float(delta) < 1 / 2:
        raise ValueError(f"{expected}, got {float(delta):g}.")
    delta = float(delta)
    if not (test > 0 and release > 0):
        raise ValueError(f"epsilon: expected two parts above 0, got {test:g} and {release:g}; pass {SPLIT}.")
    return Budget(test, release, delta)


def unit_cost(budget: Budget, max_rows_per_unit: int) -> tuple[float, float]:
    """Return (epsilon, delta) for a person with m rows: (m e, delta (1 + e^e + ... + e^((m-1) e))).

    By m steps of one row each: P(S) <= e^e P_1(S) + delta <= e^(2e) P_2(S) + (1 + e^e) delta, and so on.
    """
    epsilon = float_above(max_rows_per_unit * written(budget.epsilon))
    if max_rows_per_unit == 1:
        return epsilon, budget.delta
    delta = math.inf
    with localcontext(CONTEXT), suppress(Overflow):
        one = to_decimal(budget.epsilon)
        growth = ((one * max_rows_per_unit).exp() - 1) / (one.exp() - 1)
        delta = float_above(to_decimal(budget.delta) * growth * (1 + GUARD))
    if not delta < 1:
        grown = f"to {delta:.3g}" if delta < math.inf else "beyond all doubles"
        raise ValueError(
            f"delta: for {max_rows_per_unit} rows per person it grows {grown}, which promises nothing; take a smaller "
            "delta or epsilon."
        )
    return epsilon, delta


@dataclass(frozen=True)
class StabilityTest:
    """The test, made of public numbers alone.

    Attributes
    ----------
    noise : IntegerNoise
        For a breakdown in units of 1 / `PARTS`, which one replaced row moves by at most `PARTS`.
    cut_parts : int
        The test passes iff the noisy breakdown is at least 1 + cut_parts / (PARTS * refinement) rows.
    false_pass : float
        Bound of the probability that it passes at a breakdown of 1.
    """

    noise: IntegerNoise
    cut_parts: int
    false_pass: float

    @property
    def cut(self) -> float:
        """The cut in rows."""
        return 1.0 + self.cut_parts / self._row

    @property
    def scale(self) -> float:
        """The scale of the noise in rows."""
        return self.noise.scale / PARTS

    @property
    def _row(self) -> int:
        """One row in units of the noisy breakdown."""
        return PARTS * self.noise.refinement

    def passes(self, breakdown: int, bits: RandomBits) -> bool:
        """Return the private answer for a breakdown; integers decide."""
        (noisy,) = self.noise.add(np.array([min(breakdown, MOST_ROWS) * PARTS]), bits).tolist()
        return noisy >= self._row + self.cut_parts

    def pass_probability(self, breakdown: int) -> float:
        """Return the probability that the test passes at a breakdown, up to the grid of the noise."""
        x = (self.cut - breakdown) / self.scale
        if self.noise.distribution == GAUSSIAN:
            return 0.5 * math.erfc(x / math.sqrt(2.0))
        return 0.5 * math.exp(-x) if x > 0 else 1.0 - 0.5 * math.exp(x)

    def certain_breakdown(self, failure: float) -> int:
        """Return a breakdown at which the test fails with probability `failure` at most, for failure < 1/2."""
        room = math.log(0.5 / failure)
        if self.noise.distribution == GAUSSIAN:
            room = math.sqrt(2.0 * room)  # P(Z > x) <= exp(-x^2 / 2) / 2
        return math.ceil(self.cut + self.scale * room)

    def describe(self) -> dict[str, Any]:
        """Return the public record of the test."""
        return {
            "noise": self.noise.distribution,
            "test_epsilon": self.noise.epsilon,
            "test_delta": self.noise.delta,
            "test_scale": self.scale,
            "test_cut": self.cut,
            "false_pass": self.false_pass,
        }


def stability_test(noise: str, epsilon: float, delta: float, false_pass: float) -> StabilityTest:
    """Return the test whose privacy is (epsilon, delta) and whose false-pass probability is at most `false_pass`.

    Parameters
    ----------
    noise : {"laplace", "gaussian"}
        With Laplace noise delta plays no part.
    epsilon, delta, false_pass : float
    """
    if noise == LAPLACE:
        drawn = laplace_noise(PARTS, epsilon)
        return StabilityTest(drawn, laplace_cut(drawn.scale, false_pass), false_pass)
    drawn = gaussian_noise(PARTS**2, 1, epsilon, delta, largest=MOST_ROWS * PARTS)
    return StabilityTest(drawn, gaussian_cut(drawn.scale * drawn.refinement, false_pass), false_pass)


def laplace_cut(scale: float, false_pass: float) -> int:
    """Return the least h with P(N >= h) <= false_pass for discrete Laplace noise, P(N = x) ~ exp(-|x| / scale).

    P(N >= h) = q^h / (1 + q) for h >= 1, q = exp(-1 / scale).
    """
    one = 1 / Decimal(scale)
    with localcontext(CONTEXT):
        room = -to_decimal(false_pass).ln() - (1 + (-one).exp()).ln()
        return max(1, math.ceil(room / one * (1 + GUARD)))


def gaussian_cut(scale: float, false_pass: float) -> int:
    """Return an h with P(N >= h) <= false_pass for discrete Gaussian noise, P(N = x) ~ exp(-x^2 / (2 scale^2)).

    The sum over x >= h is at most the integral from h - 1, and the sum over all x is at least scale * sqrt(2 pi), by
    Poisson's formula. So P(N >= h) <= P(Z >= (h - 1) / scale), Z standard normal.
    """
    from scipy.special import log_ndtr, ndtri_exp

    asked = math.log(false_pass) - QUANTILE_ROOM
    z = -float(ndtri_exp(asked))
    while log_ndtr(-z) > asked:
        z += QUANTILE_ROOM * max(1.0, z)
    return 2 + math.ceil(scale * z)
