"""The exponential mechanism as a `pm.Potential`, and reading it back from a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pymc_dpdepth.depths.base import Depth, positive_number
from pymc_dpdepth.depths.custom import CustomObjective
from pymc_dpdepth.depths.registry import as_depth
from pymc_dpdepth.errors import UnboundedSensitivityError
from pymc_dpdepth.graph_values import is_lossless_cast
from pymc_dpdepth.location_prior import (
    center_and_scale,
    check_labels,
    check_location,
    check_registered,
    check_width,
    standardization,
    warn_if_prior_reads_data,
)
from pymc_dpdepth.location_rows import row_variable
from pymc_dpdepth.priors import NotAProductPriorError, ProductPrior, read_prior
from pymc_dpdepth.privacy.rounding import float_above, written
from pymc_dpdepth.tables import Table, apply_nonfinite, read_table

__all__ = ["Mechanism", "ModelMechanism", "exponential_mechanism", "read_mechanisms", "set_up"]

NEIGHBORING = "replace_one"
NEIGHBORING_IN_GROUPS = "replace_one_within_group"  # the label of a row is public and stays as it is
# Within these, beta = epsilon / (2 * sensitivity) and epsilon * n stay ordinary doubles for every table in memory.
SMALLEST_EPSILON, LARGEST_EPSILON = 2.0**-256, 2.0**256
MOST_ROWS_PER_UNIT = 2**53  # times epsilon it is a double without a further rounding of its own
LARGEST = np.finfo(np.float64).max


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
    group : Group or None
        Which group of which call it is; all groups of one call together cost the largest of their epsilons.
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
    group: Any = None

    @property
    def sensitivity(self) -> float:
        """Global sensitivity of the depth, replace one row of n."""
        return self.depth.sensitivity(self.n, self.d)

    @property
    def beta(self) -> float:
        """The factor epsilon / (2 * sensitivity); 0 where no row can matter (no rows), and the draw is the prior's."""
        return self.epsilon / (2.0 * self.sensitivity) if self.sensitivity else 0.0

    @property
    def unit_epsilon(self) -> float:
        """Privacy loss of one draw for a person with `max_rows_per_unit` rows."""
        return float_above(self.max_rows_per_unit * written(self.epsilon))

    @property
    def call(self) -> str:
        """Name of the call that made it: its own, without the group's label."""
        return self.name if self.group is None else self.name.removesuffix(self.group.suffix)

    def describe(self) -> dict[str, Any]:
        """Return the public record."""
        group = {} if self.group is None else {"group": {"mechanism": self.call} | self.group.describe()}
        return {
            "name": self.name,
            "depth": self.depth.describe(),
            "epsilon": self.epsilon,
            "max_rows_per_unit": self.max_rows_per_unit,
            "sensitivity": self.sensitivity,
            "n": self.n,
            "center": list(self.center),
            "scale": list(self.scale),
            "nonfinite": self.nonfinite,
        } | group


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
    fill: np.ndarray | None = None,
    group: Any = None,
) -> tuple[Mechanism, ProductPrior | NotAProductPriorError, np.ndarray]:
    """Check everything that a user passes in and return settings, prior and clean rows.

    Parameters are those of `exponential_mechanism`, for one group of rows; `fill` is the prior's median, where it is
    known already. In place of the prior comes the reason why it is not a product.
    """
    epsilon = positive_number(epsilon, "epsilon")
    if not SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON:
        raise ValueError(f"epsilon must lie between 2^-256 and 2^256; got {epsilon}. Useful values are 0.01 to 100.")
    max_rows_per_unit = positive_integer(max_rows_per_unit, "max_rows_per_unit")
    if max_rows_per_unit > MOST_ROWS_PER_UNIT:
        raise ValueError("max_rows_per_unit must lie between 1 and 2^53; got more. No table has as many rows.")
    depth = as_depth(depth)
    if directions is not None:
        depth = depth.with_directions(directions)
    if not depth.bounded_sensitivity:
        raise UnboundedSensitivityError(
            f"The depth {depth.name!r} has sensitivity 1 whatever the number of rows, so the exponential mechanism "
            "would draw from the prior. It needs propose-test-release: propose_test_release; or use halfspace, "
            "integrated_rank_weighted or integrated_dual here."
        )
    check_location(location)
    table = X if isinstance(X, Table) else read_table(X, columns)
    n, d = table.rows.shape
    depth = depth.resolve(d)
    check_width(location, d)
    try:
        prior = read_prior(row_variable(location), d)
    except NotAProductPriorError as reason:
        prior = reason
    center, scale = standardization(location, prior, d, depth, standardize)
    warn_if_prior_reads_data(location, prior, standardize, table)
    if fill is None:
        fill = center_and_scale(location, prior, d)[0] if nonfinite == "prior" else np.zeros(d)
    rows = apply_nonfinite(table.rows, table.columns, nonfinite, fill)
    settings = Mechanism(
        name, depth, epsilon, n, d, max_rows_per_unit, tuple(center), tuple(scale), table.columns, nonfinite, group
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
    groups: Any = None,
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
    location : TensorVariable, shape (d,) or (); with groups (G, d) or (G,)
        A random variable of the model, or built from some; its prior is chosen without looking at X. With groups its
        first dim, such as "group", has the group's labels as coords, and any prior over the groups will do.
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
    groups : array_like, shape (n,), optional
        Public label of each row, one of the coords of the location's first dim. Each group has a location of its own
        and a Potential of its own, called "name[label]". A group without rows draws from its prior.
    model : pm.Model, optional
        The model on the context stack by default.

    Returns
    -------
    TensorVariable or dict of str to TensorVariable
        The Potential; with groups, that of each label.

    Raises
    ------
    ImproperMechanismError
        If the prior is flat: a depth is bounded, so the density would not be proper.
    UnboundedSensitivityError
        If the depth needs propose-test-release.
    ValueError, TypeError
        If an argument is not usable, or if the location's coords name the columns of X in another order.

    Warns
    -----
    PrivacyLeakWarning
        If a parameter of the prior, or of `standardize`, equals a statistic of X, or if the prior depends on a shared
        variable.

    Notes
    -----
    One draw is epsilon-DP for neighbours that differ in one replaced row, the number of rows being public [1]_. Several
    mechanisms in one model add up. k draws cost k * epsilon.

    With `groups` neighbours differ in one row replaced within its group, the labels and the groups' sizes being public.
    One joint draw of all groups is epsilon-DP, not G epsilon: the replaced row changes one term of

        p(theta) ∝ prior(theta) * prod_g exp(beta_g * D(theta_g; X_g)),    beta_g = epsilon / (2 * sensitivity(n_g)),

    by a factor within e^(+-epsilon/2), and with it the normalising constant. That holds under any prior, also one
    that ties the groups to each other (partial pooling). In general the cost is the largest epsilon of a group.

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

    if not isinstance(name, str) or not name:
        got = "an empty text" if name == "" else type(name).__name__
        raise TypeError(f"name: expected a text, the name of the Potential, got {got}.")
    model = pm.modelcontext(model)
    check_registered(location, model)
    options = {
        "depth": depth,
        "epsilon": epsilon,
        "directions": directions,
        "nonfinite": nonfinite,
        "max_rows_per_unit": max_rows_per_unit,
        "standardize": standardize,
    }
    if groups is not None:
        from pymc_dpdepth.groups import add_groups, check_same_rows

        check_same_rows(X, groups)
        return add_groups(name, location, read_table(X, columns), groups, model, options)
    settings, _, rows = set_up(name, location, X, columns=columns, **options)
    check_labels(location, model, settings.columns)
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
    prepared = [pytensor.shared(array) for array in depth.prepare(standardized(rows, center, scale))]
    return DepthOp(settings)(
        theta,
        shared_rows,
        pt.constant(settings.beta, dtype="float64"),
        pt.constant(center),
        pt.constant(scale),
        *prepared,
    )


def standardized(rows: np.ndarray, center: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return (rows - center) / scale, with what overflows set to the largest double of its sign, row by row.

    No warning is given: that one of the rows is huge is private.
    """
    with np.errstate(all="ignore"):
        standardized = (rows - center) / scale
    return np.clip(standardized, -LARGEST, LARGEST, out=standardized)


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
    from pymc_dpdepth.op import ObjectiveOp

    _refuse_other_uses(model)
    found, foreign = [], [variable.name for variable in model.observed_RVs]
    for variable in model.potentials:
        node = variable.owner
        if node is not None and isinstance(node.op, ObjectiveOp):
            # A model inside another one puts its own name before the Potential's.
            settings = replace(node.op.settings, name=variable.name)
            found.append(ModelMechanism(settings, _unwrapped(node.op.location(node)), node.op.rows(node)))
        else:
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
            f"private data, epsilon does not cover them: remove them. If they are public, pass public={unlisted}."
        )
    return _in_order(found)


def _in_order(found: list[ModelMechanism]) -> list[ModelMechanism]:
    """Return mechanisms with the groups of a call together, in the order of their labels; copies of a model turn it."""
    places: dict[Any, int] = {}
    keys = []
    for position, mechanism in enumerate(found):
        group = mechanism.settings.group
        call = mechanism.settings.name if group is None else (mechanism.settings.call, id(group.grouping))
        keys.append((places.setdefault(call, position), 0 if group is None else group.index))
    return [found[i] for i in sorted(range(len(found)), key=keys.__getitem__)]


def _refuse_other_uses(model) -> None:
    """Refuse a model in which anything but its own Potential, once, depends on the objective of a mechanism."""
    from pytensor.graph.traversal import ancestors

    from pymc_dpdepth.op import ObjectiveOp

    def is_objective(variable) -> bool:
        return variable.owner is not None and isinstance(variable.owner.op, ObjectiveOp)

    seen = set()
    for variable in (*model.basic_RVs, *model.potentials):
        own = is_objective(variable) and variable not in seen
        seen.add(variable)
        if any(is_objective(v) for v in ancestors(variable.owner.inputs if own else [variable])):
            raise ValueError(
                f"{variable.name!r} uses the objective of a mechanism again, so the density is not the one that "
                "epsilon was computed for. Add each mechanism once, through exponential_mechanism, and use its "
                "Potential nowhere else."
            )


def _unwrapped(location):
    """Undo the `atleast_1d` and cast of `potential`, to reach the user's variable."""
    from pytensor.tensor.elemwise import DimShuffle

    def keeps_values(node) -> bool:
        return isinstance(node.op, DimShuffle) or is_lossless_cast(node)

    while location.name is None and location.owner is not None and keeps_values(location.owner):
        location = location.owner.inputs[0]
    return location


def positive_integer(value: Any, name: str) -> int:
    """Return an integer >= 1, or refuse it."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name}: expected an integer >= 1, got {type(value).__name__}.")
    if value < 1:
        raise ValueError(f"{name}: expected an integer >= 1, got {value}.")
    return int(value)
