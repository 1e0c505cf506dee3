"""Propose-test-release: statistics without a useful global sensitivity, released where a private test lets them pass.

The names load on first use.
"""

from importlib import import_module

_HOMES = {
    "InterquartileRange": ("stable", "InterquartileRange"),
    "MAD": ("stable", "MedianAbsoluteDeviation"),
    "Median": ("stable", "Median"),
    "MedianAbsoluteDeviation": ("stable", "MedianAbsoluteDeviation"),
    "StableStatistic": ("stable", "StableStatistic"),
    "TrimmedMean": ("stable", "TrimmedMean"),
    "propose_test_release": ("release", "propose_test_release"),
    "release_statistic": ("release", "release_statistic"),
    "suggest_threshold": ("threshold", "suggest_threshold"),
}

__all__ = sorted(_HOMES)


def __getattr__(name: str):
    """Import a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _HOMES[name]
    value = getattr(import_module(f"{__name__}.{module}"), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return list(__all__)
