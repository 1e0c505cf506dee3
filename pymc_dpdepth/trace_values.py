"""What a model says of all draws of a trace at once: locations, objectives and log priors. For the curator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pymc_dpdepth.depths.custom import CustomObjective
from pymc_dpdepth.mechanism import ModelMechanism, read_mechanisms, standardized
from pymc_dpdepth.op import ObjectiveOp

__all__ = ["SAMPLE_DIMS", "free_draws", "locations", "log_priors", "mechanisms_of", "objectives", "other_data"]

SAMPLE_DIMS = ("chain", "draw")


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
    """Return the draws of a model's free variables by name, each of shape (chains * draws, ...).

    Raises
    ------
    TypeError
        If there is no posterior group.
    ValueError
        If the draws lack dimensions or variables, or have other shapes than the model's.
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
        if not set(SAMPLE_DIMS) <= set(array.dims):
            wrong.append(name)
            continue
        stacked = array.transpose(*SAMPLE_DIMS, ...).values
        if stacked.shape[2:] != tuple(shapes[name]):
            wrong.append(name)
        values[name] = stacked.reshape(count, *stacked.shape[2:])
    if wrong:
        raise ValueError(
            f"idata: the variables {sorted(wrong)} have other shapes than in the model; pass its own model."
        )
    return values


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
