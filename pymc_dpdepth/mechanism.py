"""The exponential mechanism as a `pm.Potential`, and reading it back from a model."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pymc_dpdepth.depths.base import Depth
from pymc_dpdepth.depths.custom import CustomObjective
from pymc_dpdepth.depths.registry import as_depth
from pymc_dpdepth.errors import ImproperMechanismError, PrivacyLeakWarning, UnboundedSensitivityError
from pymc_dpdepth.priors import NotAProductPriorError, ProductPrior, is_flat, read_prior
from pymc_dpdepth.tables import Table, apply_nonfinite, read_table

__all__ = ["Mechanism", "ModelMechanism", "exponential_mechanism", "read_mechanisms", "set_up"]

NEIGHBORING = "replace_one"
# Draws and public seed for the median and quartiles of a prior that has no closed form; the data play no part in them.
PRIOR_DRAWS, PRIOR_SEED = 2000, 0
QUARTILES = (0.25, 0.5, 0.75)
# A parameter with at most this many significant digits was written by a person, not computed from rows.
WRITTEN_DIGITS = 3
EQUAL = 1e-9


@dataclass(frozen=True)
class Mechanism:
    """Public settings of one exponential mechanism: all that shapes it except the rows.

    Attributes
    ----------
    name : str
        Name of its Potential.
    depth : Depth
        With concrete directions.
    epsilon : float
        Privacy loss of one draw when one row is replaced.
    n, d : int
        Numbers of rows and of coordinates, both public.
    max_rows_per_unit : int
        Rows that one person may have.
    center, scale : tuple of float
        What rows and location are standardised by before directions, norms or smoothing apply.
    columns : tuple of str
        Names of the coordinates.
    nonfinite : {"raise", "prior"}
        What was done with non-finite entries.
    """

    name: str
    depth: Depth
    epsilon: float
    n: int
    d: int
    max_rows_per_unit: int
    center: tuple[float, ...]
    scale: tuple[float, ...]
    columns: tuple[str, ...]
    nonfinite: str

    @property
    def sensitivity(self) -> float:
        """Global sensitivity of the depth, replace one row of n."""
        return self.depth.sensitivity(self.n, self.d)

    @property
    def beta(self) -> float:
        """The factor epsilon / (2 * sensitivity); 0 without rows, when the draw comes from the prior."""
        return self.epsilon / (2.0 * self.sensitivity) if self.n else 0.0

    @property
    def unit_epsilon(self) -> float:
        """Privacy loss of one draw for a person with `max_rows_per_unit` rows."""
        return self.max_rows_per_unit * self.epsilon

    def describe(self) -> dict[str, Any]:
        """Return the public record."""
        return {
            "name": self.name,
            "depth": self.depth.describe(),
            "epsilon": self.epsilon,
            "sensitivity": self.sensitivity,
            "n": self.n,
            "center": list(self.center),
            "scale": list(self.scale),
            "nonfinite": self.nonfinite,
        }


@dataclass(frozen=True, eq=False)
class ModelMechanism:
    """A mechanism found in a model's graph: its settings, location variable and raw rows (private)."""

    settings: Mechanism
    location: Any
    rows: np.ndarray

    def __repr__(self) -> str:
        """Show the settings, never the rows."""
        return f"ModelMechanism({self.settings.name!r})"


def set_up(
    name: str,
    location: Any,
    X: Any,
    *,
    depth: Depth | str,
    epsilon: float,
    directions: Any = None,
    columns: Sequence | None = None,
    nonfinite: str = "raise",
    max_rows_per_unit: int = 1,
    standardize: Any = "prior",
) -> tuple[Mechanism, ProductPrior | NotAProductPriorError, np.ndarray]:
    """Check everything that a user passes in and return settings, prior and clean rows.

    Parameters are those of `exponential_mechanism`. In place of the prior comes the reason why it is not a product.
    """
    epsilon = positive(epsilon, "epsilon")
    max_rows_per_unit = positive_integer(max_rows_per_unit, "max_rows_per_unit")
    depth = as_depth(depth)
    if directions is not None:
        depth = depth.with_directions(directions)
    if not depth.bounded_sensitivity:
        raise UnboundedSensitivityError(
            f"The depth {depth.name!r} has sensitivity 1 whatever the number of rows, so the exponential mechanism "
            f"would draw "
            "from the prior. It needs propose-test-release (propose_test_release, not in this version); use halfspace, "
            "integrated_rank_weighted or integrated_dual here."
        )
    _check_location(location)
    table = X if isinstance(X, Table) else read_table(X, columns)
    n, d = table.rows.shape
    depth = depth.resolve(d)
    try:
        prior = read_prior(location, d)
    except NotAProductPriorError as reason:
        prior = reason
    _warn_if_prior_reads_data(location, prior, table)
    center, scale = _standardization(location, prior, d, depth, standardize)
    fill = _center_and_scale(location, prior, d)[0] if nonfinite == "prior" else np.zeros(d)
    rows = apply_nonfinite(table.rows, table.columns, nonfinite, fill)
    settings = Mechanism(
        name, depth, epsilon, n, d, max_rows_per_unit, tuple(center), tuple(scale), table.columns, nonfinite
    )
    return settings, prior, rows


def exponential_mechanism(
    name: str,
    location: Any,
    X: Any,
    *,
    depth: Depth | str = "halfspace",
    epsilon: float,
    directions: Any = None,
    columns: Sequence | None = None,
    nonfinite: str = "raise",
    max_rows_per_unit: int = 1,
    standardize: Any = "prior",
    model: Any = None,
) -> Any:
    r"""Add an exponential mechanism to a model, as a Potential beta * depth(location; X).

    With beta = epsilon / (2 * sensitivity) and the location's prior it defines the density

        p(theta) ∝ exp(beta * D(theta; X)) * prior(theta).

    The model is an ordinary PyMC model from here on. Everything that is sampled from it stays with the curator; what
    may leave is one draw, as a `Release`.

    Parameters
    ----------
    name : str
        Name of the Potential.
    location : TensorVariable, shape (d,) or ()
        A random variable of the model, or built from some; its prior is chosen without looking at X.
    X : array_like, DataFrame or path, shape (n, d)
        Private rows, one for each unit, in the units of the location. The number of rows is public.
    depth : Depth or str
        Objective, large in the middle of the rows.
    epsilon : float
        Privacy loss of one draw, > 0.
    directions : Directions or array_like, optional
        Replaces the directions of the depth.
    columns : sequence, optional
        Columns of X to use.
    nonfinite : {"raise", "prior"}
        Refuse rows with non-finite entries, or set those entries to the prior's median.
    max_rows_per_unit : int
        Largest number of rows that one person may have; the cost of a draw is this times epsilon.
    standardize : {"prior", None} or tuple of array_like
        Rows and location are standardised by the prior's median and interquartile range before directions or smoothing
        apply ("prior"), by a public (center, scale), or not at all (None). It does not change the sensitivity. A step
        depth along axes is not standardised, since that would change nothing.
    model : pm.Model, optional
        The model on the context stack by default.

    Returns
    -------
    TensorVariable
        The Potential.

    Raises
    ------
    ImproperMechanismError
        If the prior is flat: a depth is bounded, so the density would not be proper.
    UnboundedSensitivityError
        If the depth needs propose-test-release.
    ValueError, TypeError
        If an argument is not usable.

    Warns
    -----
    PrivacyLeakWarning
        If a parameter of the prior equals a statistic of X, or depends on a shared variable.

    Notes
    -----
    One draw is epsilon-DP for neighbours that differ in one replaced row, the number of rows being public [1]_. Several
    mechanisms in one model add up. k draws cost k * epsilon.

    References
    ----------
    .. [1] F. McSherry and K. Talwar, Mechanism design via differential privacy, FOCS 2007, doi:10.1109/FOCS.2007.66.
    .. [2] K. Ramsay and S. Chenouri, Differentially private depth functions and their associated medians, 2021,
           arXiv:2101.02800.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_dpdepth as dpd
    >>> rows = np.arange(20.0).reshape(10, 2)
    >>> with pm.Model() as model:
    ...     location = pm.Normal("location", 0, 10, shape=2)
    ...     potential = dpd.exponential_mechanism("median", location, rows, depth="halfspace", epsilon=1.0)
    >>> potential.name
    'median'
    """
    import pymc as pm

    model = pm.modelcontext(model)
    settings, _, rows = set_up(
        name,
        location,
        X,
        depth=depth,
        epsilon=epsilon,
        directions=directions,
        columns=columns,
        nonfinite=nonfinite,
        max_rows_per_unit=max_rows_per_unit,
        standardize=standardize,
    )
    with model:
        return pm.Potential(name, potential(settings, location, rows))


def potential(settings: Mechanism, location: Any, rows: np.ndarray) -> Any:
    """Return the graph of beta * depth(location; rows). The rows enter as anonymous shared variables."""
    import pytensor
    import pytensor.tensor as pt

    from pymc_dpdepth.op import DepthOp, ExpressionOp

    theta = pt.atleast_1d(location).astype("float64")
    shared_rows = pytensor.shared(rows)
    depth = settings.depth
    if isinstance(depth, CustomObjective):
        return ExpressionOp(settings)(theta, shared_rows, settings.beta * depth.build(theta, shared_rows))
    center, scale = np.asarray(settings.center), np.asarray(settings.scale)
    prepared = [pytensor.shared(array) for array in depth.prepare((rows - center) / scale)]
    return DepthOp(settings)(
        theta, shared_rows, pt.constant(settings.beta), pt.constant(center), pt.constant(scale), *prepared
    )


def read_mechanisms(model: Any, public: Sequence[str] = ()) -> list[ModelMechanism]:
    """Return the mechanisms of a model, read from the graphs of its Potentials.

    Parameters
    ----------
    model : pm.Model
    public : sequence of str
        Names of observed variables and of other Potentials that hold no private data.

    Returns
    -------
    list of ModelMechanism

    Raises
    ------
    ValueError
        If the model has no mechanism, or if it has observed variables or Potentials of unknown origin: what they bring
        in is not accounted for in epsilon.
    """
    from pytensor.graph.traversal import ancestors

    from pymc_dpdepth.op import ObjectiveOp

    found, foreign = [], [variable.name for variable in model.observed_RVs]
    for variable in model.potentials:
        node = variable.owner
        if node is not None and isinstance(node.op, ObjectiveOp):
            location = node.op.location(node)
            found.append(ModelMechanism(node.op.settings, _unwrapped(location), node.op.rows(node)))
            continue
        if any(v.owner is not None and isinstance(v.owner.op, ObjectiveOp) for v in ancestors([variable])):
            raise ValueError(
                f"The Potential {variable.name!r} uses the objective of a mechanism again, so the density is not the "
                f"one "
                "that epsilon was computed for. Add each mechanism once, through exponential_mechanism."
            )
        foreign.append(variable.name)
    if not found:
        raise ValueError(
            "The model has no exponential mechanism; add one with dpd.exponential_mechanism(name, location, X, ...)."
        )
    names = [mechanism.settings.name for mechanism in found]
    unknown = sorted(set(public) - set(foreign))
    if unknown:
        raise ValueError(
            f"public: {unknown} are not observed variables or other Potentials of the model; those are {foreign}."
        )
    unlisted = sorted(set(foreign) - set(public))
    if unlisted:
        raise ValueError(
            f"The model has observed variables or Potentials besides the mechanisms {names}: {unlisted}. If they hold "
            f"private "
            f"data, epsilon does not cover them: remove them. If they are public, pass public={unlisted}."
        )
    return found


def _unwrapped(location):
    """Undo the `atleast_1d` and cast of `potential`, to reach the user's variable."""
    from pytensor.tensor.elemwise import DimShuffle, Elemwise

    node = location.owner
    while (
        node is not None
        and location.name is None
        and isinstance(node.op, DimShuffle | Elemwise)
        and len(node.inputs) == 1
    ):
        location = node.inputs[0]
        node = location.owner
    return location


def positive(value: Any, name: str) -> float:
    """Return a finite number > 0 as a float, or refuse it."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{name}: expected a number > 0, got {type(value).__name__}.")
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name}: expected a finite number > 0, got {value}.")
    return float(value)


def positive_integer(value: Any, name: str) -> int:
    """Return an integer >= 1, or refuse it."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name}: expected an integer >= 1, got {type(value).__name__}.")
    if value < 1:
        raise ValueError(f"{name}: expected an integer >= 1, got {value}.")
    return int(value)


def _check_location(location) -> None:
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


def _standardization(location, prior, d: int, depth: Depth, standardize):
    """Return center and scale, each of shape (d,)."""
    unchanged = np.zeros(d), np.ones(d)
    if isinstance(standardize, str) and standardize == "prior":
        if isinstance(depth, CustomObjective) or _along_axes(depth):
            return unchanged
        center, scale = _center_and_scale(location, prior, d)
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


def _center_and_scale(location, prior, d: int):
    """Return median and interquartile range of a prior; where it is not a product, by simulation with a public seed."""
    if isinstance(prior, ProductPrior):
        return prior.center_and_scale()
    import pymc as pm

    draws = np.asarray(pm.draw(location, draws=PRIOR_DRAWS, random_seed=PRIOR_SEED)).reshape(PRIOR_DRAWS, -1)
    if draws.shape[1] != d:
        raise ValueError(f"location: expected {d} coordinates, one for each column, got {draws.shape[1]}.")
    low, center, high = np.quantile(draws, QUARTILES, axis=0)
    return center, high - low


def _warn_if_prior_reads_data(location, prior, table: Table) -> None:
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
                stacklevel=4,
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
                    stacklevel=4,
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
