"""What a model says of all draws of a trace at once: locations, objectives and log priors. For the curator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pymc_dpdepth.depths.custom import CustomObjective
from pymc_dpdepth.mechanism import ModelMechanism, read_mechanisms, standardized
from pymc_dpdepth.op import ObjectiveOp

__all__ = [
    "SAMPLE_DIMS",
    "free_draws",
    "in_model_order",
    "locations",
    "log_priors",
    "mechanisms_of",
    "not_finite",
    "objectives",
    "other_data",
]

SAMPLE_DIMS = ("chain", "draw")
NUMBERS = "biuf"  # NumPy's kinds


def mechanisms_of(model: Any) -> list[ModelMechanism]:
    """Return the mechanisms of a model, whatever other data it has: nothing is released here.

    Raises
    ------
    TypeError
        If it is no model.
    ValueError
        If it has no mechanism.
    """
    import pymc as pm

    if not isinstance(model, pm.Model):
        raise TypeError(f"model: expected the pm.Model of the draws, got {type(model).__name__}.")
    return read_mechanisms(model, other_data(model))


def other_data(model: Any) -> list[str]:
    """Return the names of observed variables and of Potentials that are no mechanisms."""
    potentials = [v.name for v in model.potentials if v.owner is None or not isinstance(v.owner.op, ObjectiveOp)]
    return [*(v.name for v in model.observed_RVs), *potentials]


def free_draws(idata: Any, model: Any) -> dict[str, np.ndarray]:
    """Return the draws of a model's free variables by name, each of shape (chains * draws, ...), in the model's order.

    Raises
    ------
    TypeError
        If there is no posterior group, or a free variable's draws are no numbers.
    ValueError
        If the draws lack dimensions or variables, or have other dimensions, labels or shapes than the model's.
    """
    posterior = getattr(idata, "posterior", None)
    if posterior is None:
        raise TypeError(
            f"idata: expected a DataTree with a posterior group, got {type(idata).__name__} without one. pm.sample, "
            "pm.sample_smc and dpd.sample_exact return one."
        )
    if not all(posterior.sizes.get(dim, 0) for dim in SAMPLE_DIMS):
        raise ValueError(
            "idata: expected a posterior with the dimensions chain and draw, each of length 1 or more; got "
            f"{dict(posterior.sizes)}."
        )
    names = [v.name for v in model.free_RVs]
    missing = sorted(set(names) - set(posterior.data_vars))
    if missing:
        raise ValueError(f"idata: the posterior lacks the free variables {missing}; sample them all with this model.")
    count = posterior.sizes["chain"] * posterior.sizes["draw"]
    shapes = model.eval_rv_shapes()
    values, wrong = {}, []
    for name in names:
        array = posterior[name]
        if not set(SAMPLE_DIMS) <= set(array.dims) or array.ndim != len(SAMPLE_DIMS) + len(shapes[name]):
            wrong.append(name)
            continue
        if array.dtype.kind not in NUMBERS:
            raise TypeError(
                f"idata: expected draws of {name!r} that are numbers, got an array of {array.dtype}. For numbers that "
                "are held as objects, dpd.writable(idata) returns them as numbers."
            )
        stacked = in_model_order(array, model).values
        if stacked.shape[2:] != tuple(shapes[name]):
            wrong.append(name)
        values[name] = stacked.reshape(count, *stacked.shape[2:])
    if wrong:
        raise ValueError(
            f"idata: the variables {sorted(wrong)} have other shapes than in the model; pass its own model."
        )
    return values


def not_finite(values: dict[str, np.ndarray]) -> list[str]:
    """Return the names of the variables that have a draw which is NaN or infinite."""
    return sorted(name for name, draws in values.items() if not np.isfinite(draws).all())


def in_model_order(array: Any, model: Any) -> Any:
    """Return draws of one variable as (chain, draw, ...), with its dimensions and their labels in the model's order.

    Dimensions go by their names: those that the model gives, or "<variable>_dim_<axis>", which stands for an axis
    without a name. Entries go by their labels: those of the model's coords; without any, whole numbers from 0 or 1.

    Parameters
    ----------
    array : DataArray
        Of one variable of the model, with the dimensions chain and draw, and as many others as in the model.
    model : pm.Model

    Returns
    -------
    DataArray

    Raises
    ------
    ValueError
        If the order cannot be told: dimensions of other names, or other labels than the model's.
    """
    name = array.name
    own = [dim for dim in array.dims if dim not in SAMPLE_DIMS]
    named = list(model.named_vars_to_dims.get(name) or [None] * len(own))
    found = _axes(own, named, name)
    if None in found:
        raise ValueError(
            f"idata: expected the dimensions {tuple(named)} of {name!r}, as in the model; got {tuple(own)}. Pass the "
            f"draws' own model, or rename them; {name}_dim_0 stands for the first axis."
        )
    for dim, given in zip(found, named, strict=True):
        labels = model.coords.get(given) if dim == given else None
        if dim in array.coords and (dim == given or dim.startswith(f"{name}_dim_")):
            array = array.isel({dim: _order(array.coords[dim].values, labels, dim)})
    return array.transpose(*SAMPLE_DIMS, *found)


def _axes(own: list[str], named: list[str | None], name: str) -> list[str | None]:
    """Return the dimension of draws that is each of the model's axes, None where that cannot be told."""
    automatic = [f"{name}_dim_{i}" for i in range(len(named))]
    found = [
        given if given in own else number if number in own else None
        for given, number in zip(named, automatic, strict=True)
    ]
    left = [dim for dim in own if dim not in found]
    if found.count(None) == len(left) == 1:
        axis = found.index(None)
        if named[axis] is None or left[0] in automatic:
            found[axis] = left[0]
    return found


def _order(found: np.ndarray, labels: Sequence[Any] | None, dim: str) -> np.ndarray:
    """Return where each of the model's labels stands among those of the draws."""
    import pandas as pd

    as_found = np.arange(len(found))
    if labels is None:
        # Only numbers of positions say where an entry belongs.
        counted = found.dtype.kind in "iu" and any(np.array_equal(np.sort(found), as_found + k) for k in (0, 1))
        return np.argsort(found) if counted else as_found
    there, wanted = pd.Index(found), pd.Index(list(labels))
    if not there.isin(wanted).all():  # files hold labels of several types as text
        there, wanted = there.map(str), wanted.map(str)
    if there.equals(wanted):
        return as_found
    if not (there.is_unique and wanted.is_unique and len(there) == len(wanted) and there.isin(wanted).all()):
        raise ValueError(
            f"idata: expected the labels of the model along {dim!r}, in any order; got others. Pass the draws' own "
            "model, and all of their entries."
        )
    return there.get_indexer(wanted)


def locations(mechanisms: Sequence[ModelMechanism], model: Any, values: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Return the location of each mechanism at given draws of the free variables, each of shape (draws, d)."""
    variables = {v: values[v.name] for v in model.free_RVs}
    found = _over_draws([mechanism.location for mechanism in mechanisms], variables)
    return [
        np.asarray(theta, dtype=np.float64).reshape(len(theta), mechanism.settings.d)
        for theta, mechanism in zip(found, mechanisms, strict=True)
    ]


def objectives(mechanism: ModelMechanism, theta: np.ndarray) -> np.ndarray:
    """Return beta * D(theta; X) for each of the locations (draws, d), what the mechanism's Potential is there."""
    settings, depth = mechanism.settings, mechanism.settings.depth
    if isinstance(depth, CustomObjective):
        return settings.beta * depth.evaluate(theta, mechanism.rows)
    center, scale = np.asarray(settings.center), np.asarray(settings.scale)
    prepared = depth.prepare(standardized(mechanism.rows, center, scale))
    result = depth.batch_kernel()(np.ascontiguousarray((theta - center) / scale), *prepared)
    return settings.beta * (result[0] if depth.differentiable else result)


def log_priors(model: Any, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the log density of each free variable given its parents, in its own space: no Jacobian of a transform.

    Elementwise, as `pm.stats.compute_log_prior` gives it, but for all draws in one call.
    """
    from pymc.logprob.basic import conditional_logp

    names = {rv: rv.type(name=rv.name) for rv in model.free_RVs}
    if not names:
        return {}
    densities = conditional_logp(names)
    found = _over_draws(
        [densities[value] for value in names.values()], {value: values[value.name] for value in names.values()}
    )
    return {rv.name: density for rv, density in zip(names, found, strict=True)}


def _over_draws(graphs: list[Any], values: dict[Any, np.ndarray]) -> list[np.ndarray]:
    """Evaluate graphs at many values of their variables at once, each result of shape (draws, ...)."""
    import pytensor
    import pytensor.tensor as pt
    from pytensor.graph.replace import vectorize_graph

    batched = {v: pt.tensor(dtype=v.type.dtype, shape=(None, *v.type.shape)) for v in values}
    outputs = vectorize_graph(graphs, batched) if batched else graphs
    # Elementwise operations on whole arrays: NumPy does them as fast as what would take seconds to compile.
    function = pytensor.function(list(batched.values()), outputs, mode="FAST_COMPILE", on_unused_input="ignore")
    results = function(*(np.asarray(value, dtype=v.type.dtype) for v, value in values.items()))
    draws = len(next(iter(values.values()))) if values else 1
    # What depends on no variable comes out once.
    return [
        result if output.ndim > graph.ndim else np.broadcast_to(result, (draws, *np.shape(result)))
        for result, output, graph in zip(results, outputs, graphs, strict=True)
    ]
