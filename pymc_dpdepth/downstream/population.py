"""A PyMC model of one row as a population: its parameters' prior, and the law of a row given them.

The model has a variable `row`, the law of one row: independent columns, given the other free variables, which are the
population's parameters. Everything is evaluated for many parameter values at a time, on the scale on which PyMC
samplers work (transformed to the real line).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pymc_dpdepth.families import CLOSED_FORMS, Family, closed_form
from pymc_dpdepth.priors import components, is_random

__all__ = ["Population", "RowLaw", "read_population"]


@dataclass(frozen=True, eq=False)
class RowLaw:
    """One column's law for P parameter values.

    Attributes
    ----------
    family : Family
    parameters : tuple of ndarray, each of shape (P,)
    """

    family: Family
    parameters: tuple[np.ndarray, ...]

    def tails(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return F and 1 - F at k points, each of shape (P, k)."""
        with np.errstate(all="ignore"):
            lower, upper = self.family.tails(points[None, :], *(p[:, None] for p in self.parameters))
        return np.ascontiguousarray(lower), np.ascontiguousarray(upper)

    def quantiles(self, shares: np.ndarray) -> np.ndarray:
        """Return the points with cdf values of shape (P, ...)."""
        parameters = [p.reshape(-1, *[1] * (shares.ndim - 1)) for p in self.parameters]
        tail = np.minimum(shares, 1.0 - shares)
        with np.errstate(all="ignore"):
            return np.where(
                shares < 0.5,
                self.family.from_lower(tail, *parameters),
                self.family.from_upper(tail, *parameters),
            )


@dataclass(frozen=True, eq=False)
class Population:
    """Compiled functions of a population model.

    Attributes
    ----------
    model : pm.Model
    names : tuple of str
        Of the parameters and of the Deterministics that depend on them alone.
    d : int
        Columns of a row.
    columns : tuple of str or None
        Labels of the row's columns, where the model gives them.
    shapes : tuple of tuple of int
        Shapes of the transformed parameters.
    """

    model: Any
    names: tuple[str, ...]
    d: int
    columns: tuple[str, ...] | None
    shapes: tuple[tuple[int, ...], ...]
    families: tuple[tuple[Family, int, int], ...]
    evaluate: Any
    start: Any

    @property
    def size(self) -> int:
        """Number of real parameters."""
        return sum(int(np.prod(shape)) for shape in self.shapes)

    def _split(self, places: np.ndarray) -> list[np.ndarray]:
        """Return the transformed parameters at places of shape (P, size)."""
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes])[:-1]
        return [
            np.ascontiguousarray(part).reshape(-1, *shape)
            for part, shape in zip(np.split(places, ends, axis=1), self.shapes, strict=True)
        ]

    def initial(self, count: int, seed: int) -> np.ndarray:
        """Return draws of the prior on the real line, shape (count, size)."""
        import pymc as pm

        try:
            drawn = pm.draw(list(self.start), draws=count, random_seed=seed, mode=_mode())
        except NotImplementedError as error:
            raise ValueError(
                "population_model: expected parameters whose priors can be drawn from; one of them has no random draws."
            ) from error
        return np.concatenate([np.asarray(part, dtype=np.float64).reshape(count, -1) for part in drawn], axis=1)

    def log_prior(self, places: np.ndarray) -> np.ndarray:
        """Return the log prior density on the real line, shape (P,)."""
        with np.errstate(all="ignore"):
            density = self.evaluate[0](*self._split(places))[0]
        return np.broadcast_to(np.asarray(density, dtype=np.float64), (len(places),))

    def rows(self, places: np.ndarray) -> list[RowLaw]:
        """Return each column's law."""
        count = len(places)
        with np.errstate(all="ignore"):
            values = iter(self.evaluate[1](*self._split(places)))
        laws = []
        for family, width, number in self.families:
            columns = []
            for _ in range(number):
                value = np.asarray(next(values), dtype=np.float64)
                value = value.reshape(len(value), -1)  # one number for all columns of the block, or one for each
                columns.append(np.broadcast_to(value, (count, width)))
            laws += [RowLaw(family, tuple(np.ascontiguousarray(c[:, j]) for c in columns)) for j in range(width)]
        return laws

    def values(self, places: np.ndarray) -> dict[str, np.ndarray]:
        """Return parameters and Deterministics as the model's user sees them, by name, shape (P, ...)."""
        values = (np.asarray(value) for value in self.evaluate[2](*self._split(places)))
        shaped = (np.broadcast_to(value, (len(places), *value.shape[1:])) for value in values)
        return dict(zip(self.names, shaped, strict=True))


def read_population(model: Any, row: str | Sequence[str]) -> Population:
    """Read a population model.

    Parameters
    ----------
    model : pm.Model
    row : str or sequence of str
        Name of the variable that is one row, or of one variable for each column, in order.

    Raises
    ------
    TypeError, ValueError
        If the model is not one of a row with independent columns whose law is known here.
    """
    import pymc as pm

    if not isinstance(model, pm.Model):
        raise TypeError(
            f"population_model: expected a pm.Model with a variable {row!r}, the law of one row given the parameters, "
            f"got {type(model).__name__}."
        )
    if model.observed_RVs or model.potentials:
        names = [variable.name for variable in (*model.observed_RVs, *model.potentials)]
        raise ValueError(
            f"population_model: expected no observed variables and no Potentials, got {names}. What was observed is "
            "the release; a mechanism's model holds private rows and has no place here."
        )
    parts = _row_parts(model, row)
    parameters = [variable for variable in model.free_RVs if variable not in parts]
    _check(model, parameters, parts)
    blocks, graphs = [], []
    row_shapes = model.eval_rv_shapes()
    for part in parts:
        family = closed_form(part.owner.op)
        given = list(part.owner.op.dist_params(part.owner))
        width = 1 if part.ndim == 0 else int(np.prod(tuple(row_shapes[part.name])))
        blocks.append((family, width, len(given)))
        graphs += given
    shown = [*parameters, *_deterministics(model, parts)]
    evaluate, shapes = _compile(model, parameters, graphs, shown)
    return Population(
        model=model,
        names=tuple(variable.name for variable in shown),
        d=sum(width for _, width, _ in blocks),
        columns=_labels(model, parts),
        shapes=shapes,
        families=tuple(blocks),
        evaluate=evaluate,
        start=tuple(_transformed(model, variable) for variable in parameters),
    )


def _row_parts(model, row) -> list:
    """Return the random variables that make up a row."""
    names = [row] if isinstance(row, str) else list(row)
    missing = [name for name in names if name not in model.named_vars]
    if missing or not names:
        raise ValueError(
            f"row: expected the name of the variable that is one row, got {missing}; the model has "
            f"{sorted(model.named_vars)}. Write the population as a PyMC model, and one row of it as its variable "
            '"row": pm.Normal("row", mu, sigma).'
        )
    parts = [part for name in names for part in components(model.named_vars[name])]
    for part in parts:
        if not is_random(part) or part not in model.free_RVs:
            raise ValueError(f"row: expected random variables of the model; {part.name or row!r} is computed.")
        family = type(part.owner.op).__name__.removesuffix("RV")
        if getattr(part.owner.op, "ndim_supp", 0):
            raise ValueError(
                f"row: {family} ties the columns to one another; expected independent columns given the parameters, "
                "each of one of the families " + ", ".join(sorted(f.name for f in CLOSED_FORMS.values()))
            )
        if closed_form(part.owner.op) is None or not hasattr(part.owner.op, "dist_params"):
            raise ValueError(
                f"row: the quantiles of {family} are not known here; expected one of "
                + ", ".join(sorted(f.name for f in CLOSED_FORMS.values()))
            )
        if part.ndim > 1:
            raise ValueError(f"row: expected a number or a vector, one entry for each column, got {part.ndim} axes.")
    return parts


def _check(model, parameters, parts) -> None:
    """Refuse parameters that are discrete, flat or depend on the row, and columns that depend on one another."""
    from pytensor.graph.traversal import ancestors

    if not parameters:
        raise ValueError("population_model: expected at least one parameter with a prior besides the row, got none.")
    for variable in parameters:
        if variable.type.numpy_dtype.kind != "f":
            raise ValueError(f"population_model: the parameter {variable.name!r} is discrete; expected densities.")
        if type(variable.owner.op).__name__ in ("FlatRV", "HalfFlatRV"):
            raise ValueError(
                f"population_model: the prior of {variable.name!r} is flat, which is no distribution: particles start "
                "as draws of it. Expected a proper one; a wide one, such as pm.Normal(0, 1000), does for vague."
            )
        if set(parts) & set(ancestors([variable])):
            raise ValueError(
                f"population_model: {variable.name!r} depends on the row; expected the row to depend on it."
            )
    for part in parts:
        others = [other.name for other in parts if other is not part and other in set(ancestors([part]))]
        if others:
            raise ValueError(
                f"row: {part.name!r} depends on {others}, another column of the row; expected columns that are "
                "independent given the parameters."
            )


def _deterministics(model, parts) -> list:
    """Return the Deterministics of the parameters alone."""
    from pytensor.graph.traversal import ancestors

    return [variable for variable in model.deterministics if not set(parts) & set(ancestors([variable]))]


def _labels(model, parts) -> tuple[str, ...] | None:
    """Return the labels of the row's columns, where its one variable has a dimension with coordinates."""
    (first, *more) = parts
    dims = model.named_vars_to_dims.get(first.name) or ()
    labels = model.coords.get(dims[0]) if len(dims) == 1 and not more else None
    return None if labels is None else tuple(str(label) for label in labels)


def _transformed(model, variable):
    """Return the graph of a parameter on the real line, as a random variable."""
    transform = model.rvs_to_transforms.get(variable)
    return variable if transform is None else transform.forward(variable, *variable.owner.inputs)


def _compile(model, parameters, graphs, shown) -> tuple[tuple, tuple]:
    """Return functions of many transformed parameter values: prior density, row parameters and shown values.

    Every result has a first axis for the parameter values, of length 1 where it does not depend on them.
    """
    import pytensor
    import pytensor.tensor as pt
    from pytensor.graph.replace import vectorize_graph
    from pytensor.graph.traversal import ancestors

    values = [model.rvs_to_values[variable] for variable in parameters]
    point = model.initial_point()
    shapes = tuple(np.shape(point[value.name]) for value in values)
    density = model.logp(vars=parameters, jacobian=True, sum=True)
    groups = [[density], *(model.replace_rvs_by_values(list(group)) for group in (graphs, shown))]
    batched = [pt.tensor(value.name, dtype=value.dtype, shape=(None, *value.type.shape)) for value in values]
    functions = []
    for group in groups:
        # By what it depends on, not by its number of axes: a constant for each column looks like one for each draw.
        varies = [bool(set(values) & set(ancestors([graph]))) for graph in group]
        many = vectorize_graph(group, dict(zip(values, batched, strict=True)))
        many = [graph if moves else pt.shape_padleft(graph) for graph, moves in zip(many, varies, strict=True)]
        functions.append(pytensor.function(batched, many, mode=_mode(), on_unused_input="ignore"))
    return tuple(functions), shapes


def _mode():
    """Return PyTensor's mode for whole arrays: Python's linker, so nothing is compiled and the loops are NumPy's."""
    from pytensor.compile.mode import Mode

    return Mode(linker="py", optimizer="fast_compile")
