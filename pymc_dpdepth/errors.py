"""Exceptions and warnings that the package raises.

Every message says what was expected, what came, and the cure. No message holds a value of a private row.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

__all__ = [
    "ApproximateSamplingWarning",
    "BudgetExceededError",
    "ImproperMechanismError",
    "InexactReleaseError",
    "NotDifferentiableError",
    "PrivacyLeakWarning",
    "UnboundedSensitivityError",
    "UnfinishedReleaseError",
    "warn_user",
]

PACKAGE_FOLDER = os.path.dirname(__file__) + os.sep


class BudgetExceededError(ValueError):
    """A charge would take the privacy budget past its limit; nothing was drawn."""


class UnboundedSensitivityError(ValueError):
    """The objective's sensitivity does not shrink with n, so the exponential mechanism has no use for it."""


class ImproperMechanismError(ValueError):
    """Prior and objective together do not make a probability density (a flat prior with a bounded depth)."""


class NotDifferentiableError(NotImplementedError):
    """A gradient was asked of a step depth: use slice, SMC or an exact sampler."""


class InexactReleaseError(RuntimeError):
    """A Release was asked of a sampler that only approaches its target, without `accept_asymptotic=True`."""


class UnfinishedReleaseError(RuntimeError):
    """Noisy sums were paid for and released, and what was to follow failed; `released` holds them.

    Attributes
    ----------
    released : ReleasedSums
        What `ExtremaInterval.from_sums` makes the interval of, free of cost, once the family is mended.
    """

    def __init__(self, message: str, released: Any = None):
        super().__init__(message)
        self.released = released


class PrivacyLeakWarning(UserWarning):
    """What was asked for may reveal private rows: a seeded draw, or a prior that was read off the data."""


class ApproximateSamplingWarning(UserWarning):
    """The released draw comes from a sampler whose epsilon is nominal, not proved."""


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line of the user's that called into the package, however deep inside it the warning arises."""
    warnings.warn(message, category, skip_file_prefixes=(PACKAGE_FOLDER,))
