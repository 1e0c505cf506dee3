"""Where chains start that are to find each other: spread over the prior and over the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from pymc_dpdepth.mechanism import ModelMechanism, read_mechanisms
from pymc_dpdepth.op import ObjectiveOp
from pymc_dpdepth.priors import NotAProductPriorError, read_prior

__all__ = ["draw_starts"]

SHARE_AT_ROWS = 0.5


def draw_starts(model: Any, count: int, generator: Any) -> np.ndarray:
    """Draw independent starts: from the prior, and with probability 1/2 with each location at one of its rows.

    Parameters
    ----------
    model : pm.Model
    count : int
    generator : numpy Generator

    Returns
    -------
    ndarray, shape (count, d)
        In PyMC's unconstrained space, variables one after the other as in ``model.value_vars``.
    """
    import pymc as pm
    from pymc.initial_point import make_initial_point_expression

    graphs = make_initial_point_expression(
        free_rvs=model.free_RVs,
        rvs_to_transforms=model.rvs_to_transforms,
        initval_strategies={},
        default_strategy="prior",
        return_transformed=True,
    )
    drawn = pm.draw(graphs, draws=count, random_seed=generator)
    values = {v: np.array(value, dtype=np.float64) for v, value in zip(model.free_RVs, drawn, strict=True)}
    at_rows = np.flatnonzero(generator.random(count) < SHARE_AT_ROWS)
    for mechanism in _mechanisms(model):
        if len(mechanism.rows):
            rows = mechanism.rows[generator.integers(len(mechanism.rows), size=len(at_rows))]
            _move_to(rows, at_rows, mechanism, model, values)
    return np.concatenate([values[v].reshape(count, -1) for v in model.free_RVs], axis=1)


def _mechanisms(model) -> list[ModelMechanism]:
    """Return the mechanisms of a model, none for a model without; other data do not matter here."""
    own = [v for v in model.potentials if v.owner is not None and isinstance(v.owner.op, ObjectiveOp)]
    others = [v.name for v in (*model.observed_RVs, *model.potentials) if v not in own]
    return read_mechanisms(model, others) if own else []


def _move_to(rows, where, mechanism, model, values) -> None:
    """Set the variables that a location consists of to rows, where the prior's support holds those."""
    for variable, columns in _parts(mechanism, model):
        moved = _unconstrained(rows[:, columns], variable, model)
        if moved is None or moved[0].size != values[variable][0].size:
            continue
        inside = np.isfinite(moved).all(axis=1)
        values[variable][where[inside]] = moved[inside].reshape(-1, *values[variable].shape[1:])


def _parts(mechanism: ModelMechanism, model) -> list[tuple[Any, Any]]:
    """Return the free variables that are parts of a location, with their columns."""
    try:
        blocks = read_prior(mechanism.location, mechanism.settings.d).blocks
    except NotAProductPriorError:
        return [(mechanism.location, slice(None))] if mechanism.location in model.free_RVs else []
    return [(block.variable, block.columns) for block in blocks if block.variable in model.free_RVs]


def _unconstrained(rows: np.ndarray, variable, model) -> np.ndarray | None:
    """Return rows in unconstrained space, shape (k, width), or None where the transform depends on random variables."""
    import pytensor
    from pymc.pytensorf import rvs_in_graph

    transform = model.rvs_to_transforms[variable]
    if transform is None:
        return rows
    value = variable.type()
    graph = transform.forward(value, *variable.owner.inputs)
    if rvs_in_graph([graph]):
        return None
    function = pytensor.function([value], graph, mode="FAST_COMPILE")
    shape = () if variable.ndim == 0 else rows.shape[1:]
    with np.errstate(all="ignore"):  # a row outside of the support
        return np.array([np.ravel(function(row.reshape(shape))) for row in rows])
