"""Warnings of a release that says next to nothing about the rows, though its test passes.

Where public numbers alone show that, `propose_test_release` warns; `suggest_threshold` knows a population as well.
"""

from __future__ import annotations

import math

from pymc_dpdepth.errors import warn_user
from pymc_dpdepth.privacy.noise import GAUSSIAN
from pymc_dpdepth.ptr.proposal import Settings

__all__ = ["SHARED", "warn_by_public_numbers", "warn_of_hidden_values", "warn_uninformative"]

# A median is uninformative where its law shares more than this with the uniform law on the ball, a value where noise
# moves it by more than its spread with this probability.
SHARED = 0.5
LAPLACE_MEDIAN, NORMAL_MEDIAN = math.log(2.0), 0.6744897501960817  # of the size of noise with scale 1


def warn_by_public_numbers(settings: Settings, cap: float, points: int | None) -> None:
    """Warn where the release of a median, or of depths at so many points, says next to nothing whatever the rows."""
    if _warn_of_an_empty_test(settings, cap):
        return
    if points is None:
        _warn_of_a_flat_law(settings, cap)
    else:
        warn_of_hidden_values(settings, points, 1.0, "the scale of its direction")


def _warn_of_an_empty_test(settings: Settings, cap: float) -> bool:
    """Warn where every table passes the test, since no outlyingness exceeds the cap; return whether it did."""
    if settings.threshold < cap:
        return False
    warn_user(
        f"threshold = {settings.threshold:g} is not below cap = {cap:g}: outlyingnesses never differ by more than the "
        "cap, so the test passes for every table, and what is released says next to nothing of the rows. Take a "
        "smaller threshold; ptr.suggest_threshold finds one on synthetic rows.",
        UserWarning,
    )
    return True


def _warn_of_a_flat_law(settings: Settings, cap: float) -> None:
    """Warn where a median's law is near the uniform law on the ball for every table.

    Its density, proportional to exp(-beta O) with O in [0, cap], varies by a factor of at most K = exp(beta cap). With
    1 on a share s of the ball and 1 / K elsewhere the total variation distance from the uniform law is s / (s + (1 -
    s) / K) - s; it is largest at s = 1 / (1 + sqrt(K)), and tanh(beta cap / 4) there, and other laws in this range are
    nearer. So 1 - tanh(beta cap / 4) of its law, at least, is shared.
    """
    beta = settings.budget.release_epsilon / (2 * settings.threshold)
    distance = math.tanh(beta * cap / 4)
    if distance < SHARED:
        what = f"the released median shares {1 - distance:.2g} of its law, or more, with a uniform draw of the ball"
        ratio = 4 * math.atanh(SHARED) / (beta * cap)
        warn_uninformative(settings, f"{what}, whatever the rows", ratio, "or a larger cap")


def warn_of_hidden_values(settings: Settings, size: int, spread: float, what: str) -> None:
    """Warn where noise moves each of `size` values by more than the spread with probability above 1/2."""
    noise = settings.proposal("", (), 1, size, {}, largest=settings.threshold).values_noise
    median = noise.scale * (NORMAL_MEDIAN if settings.noise == GAUSSIAN else LAPLACE_MEDIAN)
    if median > spread:
        moved = (
            f"noise moves each of {size} released values by more than {median:.2g}, {median / spread:.2g} times {what}"
        )
        warn_uninformative(settings, f"in half of all releases {moved}", median / spread, "or fewer values")


def warn_uninformative(settings: Settings, what: str, ratio: float, more: str) -> None:
    """Warn with the cure: what hides the rows is threshold / epsilon, near 1 / (n epsilon^2), times a factor."""
    budget = settings.budget
    warn_user(
        f"threshold = {settings.threshold:g} is uninformative: {what}. It would have to be {ratio:.2g} times smaller. "
        f"Thresholds fall about as 1 / (n epsilon), and what they hide as 1 / (n epsilon^2): take at least {ratio:.2g} "
        f"times as many rows, or at least {math.sqrt(ratio):.2g} times epsilon = {budget.epsilon:g}, {more}. A larger "
        f"delta (now {budget.delta:g}) helps as its logarithm does, and must stay far below 1/n.",
        UserWarning,
    )
