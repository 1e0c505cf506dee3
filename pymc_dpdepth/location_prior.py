"""Checks of a location's prior, and the units that it sets for rows and location.

Everything here looks at the prior alone, except for the warning about a prior that was read off the rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

import numpy as np

from pymc_dpdepth.densities import check_drawable
from pymc_dpdepth.depths.base import Depth
from pymc_dpdepth.depths.custom import CustomObjective
from pymc_dpdepth.errors import ImproperMechanismError, PrivacyLeakWarning, warn_user
from pymc_dpdepth.priors import NotAProductPriorError, ProductPrior, is_flat, is_random
from pymc_dpdepth.tables import Table

__all__ = [
    "center_and_scale",
    "check_labels",
    "check_location",
    "check_registered",
    "check_width",
    "standardization",
    "warn_if_prior_reads_data",
]

# Draws and public seed for the median and quartiles of a prior that has no closed form; the data play no part in them.
PRIOR_DRAWS, PRIOR_SEED = 2000, 0
QUARTILES = (0.25, 0.5, 0.75)
# A parameter with at most this many significant digits was written by a person, not computed from rows.
WRITTEN_DIGITS = 3
EQUAL = 1e-9
NAMES_SHOWN = 30  # names that an error lists before it stops


def check_location(location) -> None:
    """Refuse a location that is no variable, has several axes, or has a flat prior."""
    from pytensor.tensor.variable import TensorVariable

    if not isinstance(location, TensorVariable):
        raise TypeError(
            f"location: expected a PyMC random variable, got {type(location).__name__}; define it in the model first, "
            "for example pm.Normal('location', 0, 10, shape=d)."
        )
    if location.ndim > 1:
        raise ValueError(f"location: expected one axis, over the coordinates, got {location.ndim}.")
    if is_flat(location):
        raise ImproperMechanismError(
            "location: a flat prior (pm.Flat, pm.HalfFlat) with a bounded depth does not make a probability density. "
            "Give it a proper prior chosen without the data, such as pm.Normal or pm.Uniform on a public range."
        )


def check_registered(location, model) -> None:
    """Refuse a location made of random variables that are not in the model: chains would not sample them."""
    known, pending = set(model.basic_RVs), [location]
    while pending:
        node = getattr(variable := pending.pop(), "owner", None)
        if node is None or variable in known:
            continue
        if is_random(variable):
            raise ValueError(
                "location: expected random variables of the model, got a distribution that is not in it. Define it "
                "with a name inside the model, for example pm.Normal('location', 0, 10, shape=d), without .dist."
            )
        pending.extend(node.inputs)


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


def check_labels(location, model, columns: Sequence[str]) -> None:
    """Refuse coords that give a coordinate of the location the name of another column of the table.

    A model pairs coordinates and columns by position, so the released values would carry each other's names. Coords
    that name something else than columns are fine.
    """
    dims = (model.named_vars_to_dims.get(location.name) or ())[-1:]  # before it comes the axis of groups
    labels = model.coords.get(dims[0]) if dims else None
    if labels is None:
        return
    labels = [str(label) for label in labels]
    # An array's columns are called x0, x1, ...; labels that count from x1 mean the same columns.
    unnamed = tuple(columns) == tuple(f"x{j}" for j in range(len(columns)))
    crossed = [label for label, column in zip(labels, columns, strict=True) if label != column and label in columns]
    if crossed and not (unnamed and set(labels) != set(columns)):
        raise ValueError(
            f"location: its coords {labels[:NAMES_SHOWN]} name other columns than those of the table in the same "
            f"places, {list(columns[:NAMES_SHOWN])}. Bring them into one order: pass columns=[...] in the order of the "
            "coords, or write the coords (and the prior) in the order of the columns."
        )


def standardization(location, prior, d: int, depth: Depth, standardize):
    """Return center and scale, each of shape (d,)."""
    unchanged = np.zeros(d), np.ones(d)
    if isinstance(standardize, str) and standardize == "prior":
        if isinstance(depth, CustomObjective) or depth.unit_free:
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


def center_and_scale(location, prior, d: int):
    """Return median and interquartile range of a prior; where it is not a product, by simulation with a public seed."""
    if isinstance(prior, ProductPrior):
        return prior.center_and_scale()
    import pymc as pm

    check_drawable([location])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Numba will use object mode")  # how PyTensor draws is of no concern here
        draws = np.asarray(pm.draw(location, draws=PRIOR_DRAWS, random_seed=PRIOR_SEED)).reshape(PRIOR_DRAWS, d)
    low, center, high = np.quantile(draws, QUARTILES, axis=0)
    return center, high - low


def warn_if_prior_reads_data(location, prior: ProductPrior | NotAProductPriorError, standardize, table: Table) -> None:
    """Warn where the prior, or the standardisation, seems to come from the rows. No value is named."""
    from pytensor.compile.sharedvalue import SharedVariable
    from pytensor.graph.traversal import ancestors
    from pytensor.tensor.type import TensorType

    for variable in ancestors([location]):
        if not (isinstance(variable, SharedVariable) and isinstance(variable.type, TensorType)):
            continue
        if variable.ndim or variable.type.numpy_dtype.kind == "f":  # a whole number alone may be the length of a dim
            warn_user(
                f"The prior of the location depends on the shared variable {variable.name or '(unnamed)'}. A prior "
                "must be chosen without the private rows; if that variable holds public numbers, pass them as "
                "constants.",
                PrivacyLeakWarning,
            )
    numbers = [("A parameter of the prior", values) for values in _prior_numbers(location, prior, len(table.columns))]
    if isinstance(standardize, tuple | list):
        numbers += [("standardize", np.asarray(part, dtype=np.float64)) for part in standardize]
    numbers = [(what, np.broadcast_to(values, len(table.columns))) for what, values in numbers]
    if not len(table.rows) or all(_written(values).all() for _, values in numbers):
        return
    statistics = _statistics(table.rows)
    for what, values in numbers:
        for word, statistic in statistics.items():
            with np.errstate(all="ignore"):  # a warning of an overflow would tell of a far row
                same = ~_written(values) & np.isclose(values, statistic, rtol=EQUAL, atol=0.0)
            if same.any():
                columns = [table.columns[j] for j in np.flatnonzero(same)]
                warn_user(
                    f"{what} equals the {word} of the rows in column {columns}. What is read off the private rows "
                    "breaks the guarantee; choose it from public knowledge.",
                    PrivacyLeakWarning,
                )


def _prior_numbers(location, prior, d: int) -> Iterator[np.ndarray]:
    """Yield the numbers of a prior, each of shape () or (d,), NaN in columns that have no such number."""
    from pytensor.graph.basic import Constant
    from pytensor.graph.traversal import ancestors
    from pytensor.tensor.type import TensorType

    if isinstance(prior, ProductPrior):
        for k in range(max(len(block.parameters) for block in prior.blocks)):
            values = np.full(d, np.nan)
            for block in prior.blocks:
                if k < len(block.parameters):
                    values[block.columns] = block.parameters[k]
            yield values
        return
    for variable in ancestors([location]):
        if isinstance(variable, Constant) and isinstance(variable.type, TensorType):
            values = np.asarray(variable.data)
            if values.dtype.kind == "f" and (values.size == 1 or values.shape == (d,)):
                yield values.astype(np.float64).reshape(values.shape if values.size > 1 else ())


def _statistics(rows: np.ndarray) -> dict[str, np.ndarray]:
    """Return what a prior might have been read off, by column and overall; NaN where no entry is finite."""
    words = {
        "mean": np.nanmean,
        "median": np.nanmedian,
        "standard deviation": np.nanstd,
        "sample standard deviation": lambda rows, axis: np.nanstd(rows, axis=axis, ddof=1),
        "minimum": np.nanmin,
        "maximum": np.nanmax,
    }
    d = rows.shape[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        statistics = {word: statistic(rows, axis=0) for word, statistic in words.items()}
        if d > 1:
            overall = {f"overall {word}": statistic(rows, axis=None) for word, statistic in words.items()}
            statistics |= {word: np.full(d, value) for word, value in overall.items()}
    return statistics


def _written(parameter: np.ndarray) -> np.ndarray:
    """Whether each number has few significant digits."""
    rounded = np.array([float(f"{value:.{WRITTEN_DIGITS}g}") for value in parameter])
    return (rounded == parameter) | np.isnan(parameter)
