"""Values of variables of a PyTensor graph that nothing random stands behind."""

from __future__ import annotations

import numpy as np

__all__ = ["constant_value", "is_lossless_cast"]


def constant_value(variable) -> np.ndarray | None:
    """Return the value of a variable that depends on constants and shared variables alone, else None.

    Shared variables (`pm.Data`, and what `pm.do` fixes) have the value that they hold now.
    """
    from pymc.pytensorf import constant_fold
    from pytensor.graph.basic import Constant
    from pytensor.tensor.elemwise import DimShuffle

    if isinstance(variable, Constant):
        return np.asarray(variable.data)
    variable = _with_shared_values(variable)
    if variable is None:
        return None
    if isinstance(variable, Constant):
        return np.asarray(variable.data)
    if variable.owner is not None and isinstance(variable.owner.op, DimShuffle):
        inner = constant_value(variable.owner.inputs[0])
        if inner is not None and inner.ndim <= 1:
            return inner.reshape(-1) if variable.ndim else inner
    (folded,) = constant_fold([variable], raise_not_constant=False)
    return np.asarray(folded) if isinstance(folded, np.ndarray | np.generic) else None


def _with_shared_values(variable):
    """Return a variable with constants in the place of shared variables, or None if something else stands behind it.

    A random ancestor, or any other use of a generator, has a generator behind it, which is no tensor.
    """
    import pytensor.tensor as pt
    from pytensor.compile.sharedvalue import SharedVariable
    from pytensor.graph.basic import Constant
    from pytensor.graph.replace import graph_replace
    from pytensor.graph.traversal import graph_inputs
    from pytensor.tensor.type import TensorType

    values = {}
    for root in graph_inputs([variable]):
        if isinstance(root, SharedVariable) and isinstance(root.type, TensorType):
            values[root] = pt.constant(root.get_value(), dtype=root.type.dtype)
        elif not isinstance(root, Constant):
            return None
    if variable in values:
        return values[variable]
    return graph_replace(variable, values, strict=False) if values else variable


def is_lossless_cast(node) -> bool:
    """Whether a node of a graph casts to float64, which keeps a value; other casts may cut digits, or an integer out.

    An integer beyond 2^53 loses digits, too, but what is discrete has no exact draw whatever is made of it.
    """
    from pytensor.scalar.basic import Cast
    from pytensor.tensor.elemwise import Elemwise

    is_cast = isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, Cast)
    return is_cast and node.outputs[0].type.dtype == "float64" and not node.inputs[0].type.dtype.startswith("complex")
