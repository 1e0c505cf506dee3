"""Confidence intervals for the extremum of several parameters, from noisy sums and a parametric bootstrap.

The names load on first use.
"""

from importlib import import_module

_HOMES = {
    "Bernoulli": "counts",
    "ExtremaInterval": "record",
    "Family": "family",
    "Gaussian": "gaussian",
    "LinearRegression": "regression",
    "Poisson": "counts",
    "ReleasedSums": "released",
    "Statistic": "statistic",
    "bounded_statistic": "statistic",
    "extrema_interval": "interval",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str):
    """Import a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return list(__all__)
