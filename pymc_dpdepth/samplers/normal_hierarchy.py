"""A normal hierarchy over groups, read from the prior of a location, and whether its mechanism has an exact draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pymc_dpdepth.graph_values import constant_value, is_lossless_cast
from pymc_dpdepth.location_rows import shape_of
from pymc_dpdepth.priors import NotAProductPriorError, ProductPrior, is_random, read_prior
from pymc_dpdepth.samplers.exact import NoExactSamplerError

__all__ = ["NormalHierarchy", "Parameter", "read_hierarchy"]


@dataclass(frozen=True, eq=False)
class Parameter:
    """Means, or scales, of the locations: a constant for each group and coordinate, or a hyperparameter of each.

    Attributes
    ----------
    at : ndarray of int, shape (d,)
        Position among the hyperparameters, or -1 for a constant.
    constants : ndarray, shape (G, d)
    """

    at: np.ndarray
    constants: np.ndarray

    def values(self, hyper: np.ndarray, group: int, coordinates: np.ndarray) -> np.ndarray:
        """Return the parameters (k, M) of a group's coordinates at hyperparameters (k, H)."""
        values = np.empty((len(hyper), len(coordinates)))
        for m, j in enumerate(coordinates):
            values[:, m] = self.constants[group, j] if self.at[j] < 0 else hyper[:, self.at[j]]
        return values


@dataclass(frozen=True, eq=False)
class NormalHierarchy:
    """location[g, j] ~ Normal(mean_j, scale_j) given hyperparameters with a product prior.

    Attributes
    ----------
    location : TensorVariable, shape (G, d) or (G,)
    prior : ProductPrior
        Of the hyperparameters.
    mean, scale : Parameter
    """

    location: Any
    prior: ProductPrior
    mean: Parameter
    scale: Parameter


def read_hierarchy(location: Any, shape: tuple[int, int]) -> NormalHierarchy:
    """Read the prior of a location with groups.

    Parameters
    ----------
    location : TensorVariable
    shape : tuple of int
        Groups and coordinates.

    Raises
    ------
    NoExactSamplerError
        With the reason why it is not a normal hierarchy.
    """
    from pytensor.tensor.random.basic import NormalRV

    if not is_random(location) or not isinstance(location.owner.op, NormalRV):
        raise NoExactSamplerError(
            "an exact draw of groups that depend on each other needs location = pm.Normal(mean, scale, ...) with "
            "random mean or scale"
        )
    variables: list[Any] = []
    parameters = [
        _parameter(graph, shape, location.ndim, variables, start)
        for graph, start in zip(location.owner.op.dist_params(location.owner), (0, 1), strict=True)
    ]
    widths = [1 if v.ndim == 0 else shape[1] for v in variables]
    if not variables:
        raise NoExactSamplerError("the parameters of the location are constants")
    starts = np.concatenate([[0], np.cumsum(widths)])
    read = []
    for at, constants in parameters:
        place = np.full(shape[1], -1) if at is None else starts[at] + np.arange(shape[1]) * (widths[at] > 1)
        read.append(Parameter(place.astype(np.int64), constants))
    prior = _hyperprior(variables, int(starts[-1]))
    floors = prior.floors()
    low, _ = prior.enclose(floors[:, 0][None], floors[:, 0][None] + 1)
    if any(low[0, at] < 0 for at in read[1].at if at >= 0):
        raise NoExactSamplerError("the prior of the scale holds negative numbers; expected one such as pm.HalfNormal")
    return NormalHierarchy(location, prior, *read)


def _parameter(graph: Any, shape: tuple[int, int], ndim: int, variables: list[Any], start: int):
    """Return (index among the variables, constants) of a parameter; a new variable is added to them."""
    value = constant_value(graph)
    if value is not None:
        value = np.asarray(value, dtype=np.float64)
        value = value.reshape(-1, 1) if ndim == 1 and value.ndim == 1 else value  # dims ("group",) alone
        return None, np.broadcast_to(value, shape)
    variable, axes = _broadcast(graph)
    by_coordinate = variable.ndim == 1 and ndim == 2 and axes in (("x", 0), (0,))  # noqa: PLR2004
    by_coordinate = by_coordinate and is_random(variable) and shape_of(variable) == (shape[1],)
    if not is_random(variable) or not (variable.ndim == 0 or by_coordinate):
        word = ("mean", "scale")[start]
        raise NoExactSamplerError(
            f"the {word} of the location is neither a constant nor a random variable for all groups (one, or one for "
            "each coordinate)"
        )
    if variable not in variables:
        variables.append(variable)
    return variables.index(variable), np.full(shape, np.nan)


def _broadcast(graph: Any) -> tuple[Any, tuple]:
    """Return the variable behind new axes, names and casts that keep its values, and its axes."""
    from pytensor.tensor.elemwise import DimShuffle

    axes = tuple(range(graph.ndim))
    while graph.owner is not None and not is_random(graph):
        op = graph.owner.op
        if isinstance(op, DimShuffle):
            axes = tuple("x" if axis == "x" else op.new_order[axis] for axis in axes)
        elif not (type(op).__name__ == "ViewOp" or is_lossless_cast(graph.owner)):
            break
        graph = graph.owner.inputs[0]
    return graph, axes


def _hyperprior(variables: list[Any], width: int) -> ProductPrior:
    """Return the prior of all hyperparameters, one after the other."""
    import pytensor.tensor as pt

    parts = [pt.atleast_1d(variable) for variable in variables]
    try:
        return read_prior(pt.concatenate(parts) if len(parts) > 1 else parts[0], width)
    except NotAProductPriorError as reason:
        raise NoExactSamplerError(f"a hyperparameter: {reason}") from None
