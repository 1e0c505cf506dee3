"""Checks of a location's prior, and the units that it sets for rows and location.

Everything here looks at the prior alone, except for the warning about a prior that was read off the rows.
"""

from __future__ import annotations

import warnings

import numpy as np

from pymc_dpdepth.depths.base import Depth
from pymc_dpdepth.depths.custom import CustomObjective
from pymc_dpdepth.errors import ImproperMechanismError, PrivacyLeakWarning
from pymc_dpdepth.priors import NotAProductPriorError, ProductPrior, is_flat
from pymc_dpdepth.tables import Table

__all__ = ["center_and_scale", "check_location", "check_width", "standardization", "warn_if_prior_reads_data"]

# Draws and public seed for the median and quartiles of a prior that has no closed form; the data play no part in them.
PRIOR_DRAWS, PRIOR_SEED = 2000, 0
QUARTILES = (0.25, 0.5, 0.75)
# A parameter with at most this many significant digits was written by a person, not computed from rows.
WRITTEN_DIGITS = 3
EQUAL = 1e-9


def check_location(location) -> None:
    """Refuse a location that is no variable, has several axes, or has a flat prior."""
    from pytensor.tensor.variable import TensorVariable

    if not isinstance(location, TensorVariable):
        raise TypeError(
            f"location: expected a PyMC random variable, got {type(location).__name__}; define it in the model first, "
            f"for "
            "example pm.Normal('location', 0, 10, shape=d)."
        )
    if location.ndim > 1:
        raise ValueError(f"location: expected one axis, over the coordinates, got {location.ndim}.")
    if is_flat(location):
        raise ImproperMechanismError(
            "location: a flat prior (pm.Flat, pm.HalfFlat) with a bounded depth does not make a probability density. "
            "Give it "
            "a proper prior chosen without the data, such as pm.Normal or pm.Uniform on a public range."
        )


def check_width(location, d: int) -> None:
    """Refuse a location whose number of coordinates is not that of the table's columns."""
    from pymc.pytensorf import constant_fold

    width = 1 if location.ndim == 0 else location.type.shape[0]
    if width is None:
        (folded,) = constant_fold([location.shape[0]], raise_not_constant=False)
        width = int(folded if isinstance(folded, np.ndarray | np.generic) else folded.eval())
    if width != d:
        raise ValueError(
            f"location: expected {d} coordinates, one for each column, got {width}; set its shape or dims, or choose "
            "columns=[...]."
        )


def standardization(location, prior, d: int, depth: Depth, standardize):
    """Return center and scale, each of shape (d,)."""
    unchanged = np.zeros(d), np.ones(d)
    if isinstance(standardize, str) and standardize == "prior":
        if isinstance(depth, CustomObjective) or _along_axes(depth):
            return unchanged
        center, scale = center_and_scale(location, prior, d)
        return center, np.where(np.isfinite(scale) & (scale > 0), scale, 1.0)
    if standardize is None:
        return unchanged
    try:
        center, scale = (np.broadcast_to(np.asarray(part, dtype=np.float64), (d,)).copy() for part in standardize)
    except (TypeError, ValueError):
        raise ValueError(
            f'standardize: expected "prior", None or a pair (center, scale) of {d} numbers each, got '
            f"{type(standardize).__name__}."
        ) from None
    if not (np.isfinite(center).all() and np.isfinite(scale).all() and (scale > 0).all()):
        raise ValueError("standardize: expected finite centers and finite scales > 0.")
    return center, scale


def _along_axes(depth: Depth) -> bool:
    """Whether units make no difference: a step depth whose directions are all along axes."""
    directions = getattr(depth, "directions", None)
    if depth.differentiable or directions is None:
        return False
    return bool((np.count_nonzero(directions.matrix(), axis=1) == 1).all())


def center_and_scale(location, prior, d: int):
    """Return median and interquartile range of a prior; where it is not a product, by simulation with a public seed."""
    if isinstance(prior, ProductPrior):
        return prior.center_and_scale()
    import pymc as pm

    draws = np.asarray(pm.draw(location, draws=PRIOR_DRAWS, random_seed=PRIOR_SEED)).reshape(PRIOR_DRAWS, d)
    low, center, high = np.quantile(draws, QUARTILES, axis=0)
    return center, high - low


def warn_if_prior_reads_data(
    location, prior: ProductPrior | NotAProductPriorError, table: Table, stacklevel: int
) -> None:
    """Warn where the prior seems to come from the rows. No value is named."""
    from pytensor.compile.sharedvalue import SharedVariable
    from pytensor.graph.traversal import ancestors
    from pytensor.tensor.type import TensorType

    for variable in ancestors([location]):
        if isinstance(variable, SharedVariable) and isinstance(variable.type, TensorType) and variable.ndim > 0:
            warnings.warn(
                f"The prior of the location depends on the shared variable {variable.name or '(unnamed)'}. A prior "
                f"must be "
                "chosen without the private rows; if that variable holds public numbers, pass them as constants.",
                PrivacyLeakWarning,
                stacklevel=stacklevel,
            )
    computed = [
        (block, parameter, ~_written(parameter))
        for block in (prior.blocks if isinstance(prior, ProductPrior) else ())
        for parameter in block.parameters
    ]
    if not table.rows.size or not any(unwritten.any() for _, _, unwritten in computed):
        return
    statistics = _statistics(table.rows)
    for block, parameter, unwritten in computed:
        for word, statistic in statistics.items():
            same = unwritten & np.isclose(parameter, statistic[block.columns], rtol=EQUAL, atol=0.0)
            if same.any():
                columns = [table.columns[block.start + int(i)] for i in np.flatnonzero(same)]
                warnings.warn(
                    f"A parameter of the prior equals the {word} of the rows in column {columns}. A prior that is "
                    f"read off "
                    "the private rows breaks the guarantee; choose it from public knowledge.",
                    PrivacyLeakWarning,
                    stacklevel=stacklevel,
                )


def _statistics(rows: np.ndarray) -> dict[str, np.ndarray]:
    """Return what a prior might have been read off; NaN where a column has no finite entry."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return {
            "mean": np.nanmean(rows, axis=0),
            "median": np.nanmedian(rows, axis=0),
            "standard deviation": np.nanstd(rows, axis=0),
            "sample standard deviation": np.nanstd(rows, axis=0, ddof=1),
            "minimum": np.nanmin(rows, axis=0),
            "maximum": np.nanmax(rows, axis=0),
        }


def _written(parameter: np.ndarray) -> np.ndarray:
    """Whether each number has few significant digits."""
    rounded = np.array([float(f"{value:.{WRITTEN_DIGITS}g}") for value in parameter])
    return rounded == parameter
