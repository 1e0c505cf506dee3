"""One row of a location that has a group axis: which variable it comes from, and its prior."""

from __future__ import annotations

from typing import Any

import numpy as np

from pymc_dpdepth.graph_values import constant_value
from pymc_dpdepth.priors import is_random

__all__ = ["row_of", "row_variable", "shape_of"]


def row_of(location: Any) -> tuple[Any, int] | None:
    """Return (base, g) where a location is row g of another variable, `base[g]`, else None."""
    from pytensor.tensor.subtensor import Subtensor, get_constant_idx

    node = location.owner
    if node is None or not isinstance(node.op, Subtensor) or len(node.op.idx_list) != 1:
        return None
    (index,) = get_constant_idx(node.op.idx_list, node.inputs, allow_partial=True)
    return (node.inputs[0], int(index)) if isinstance(index, int | np.integer) else None


def row_variable(location: Any) -> Any:
    """Return a variable with the prior of a location's row alone, where the rows are independent; else the location.

    Rows of a stack are the variables that were stacked. Of a random variable whose parameters depend on nothing
    random, a new one is made with the parameters of that row; it is in no model.
    """
    row = row_of(location)
    if row is None:
        return location
    base, index = row
    while base.owner is not None and type(base.owner.op).__name__ == "ViewOp":  # pm.Deterministic
        base = base.owner.inputs[0]
    stacked = _stacked(base)
    if stacked is not None:
        return stacked[index] if index < len(stacked) else location
    return _independent_row(base, index) if is_random(base) else location


def _stacked(base: Any) -> list[Any] | None:
    """Return the variables that `pt.stack` put below each other."""
    from pytensor.tensor.basic import Join, MakeVector
    from pytensor.tensor.elemwise import DimShuffle

    node = base.owner
    if node is not None and isinstance(node.op, MakeVector):
        return list(node.inputs)
    if node is None or not isinstance(node.op, Join) or node.op.axis != 0:
        return None
    parts = []
    for part in node.inputs:
        inner = part.owner
        if inner is None or not isinstance(inner.op, DimShuffle) or inner.op.new_order[:1] != ("x",):
            return None
        if tuple(inner.op.new_order[1:]) != tuple(range(inner.inputs[0].ndim)):
            return None
        parts.append(inner.inputs[0])
    return parts


def _independent_row(base: Any, index: int) -> Any:
    """Return a row of a random variable with constant parameters as a variable of its own, or the row as it is."""
    import pytensor.tensor as pt
    from pytensor.tensor.random.op import RandomVariable
    from pytensor.tensor.random.type import random_generator_type
    from pytensor.tensor.type_other import NoneConst

    node, op = base.owner, base.owner.op
    if not isinstance(op, RandomVariable):
        return base[index]
    shape = shape_of(base)
    batch = shape[: len(shape) - op.ndim_supp]
    parameters = []
    for variable, core in zip(op.dist_params(node), op.ndims_params, strict=True):
        value = constant_value(variable)
        if value is None or not batch:  # random, or one draw whose rows depend on each other
            return base[index]
        inside = value.shape[value.ndim - core :]
        parameters.append(pt.constant(np.broadcast_to(value, (*batch, *inside))[index].astype(np.float64)))
    return op.make_node(random_generator_type(), NoneConst, *parameters).default_output()


def shape_of(variable: Any) -> tuple[int, ...]:
    """Return the shape of a variable, whose lengths are constants or lengths of dims."""
    from pymc.pytensorf import constant_fold

    folded = constant_fold(list(variable.shape), raise_not_constant=False)
    return tuple(int(length if isinstance(length, np.ndarray | np.generic) else length.eval()) for length in folded)
