"""The PyTensor Ops that carry a scaled objective, beta * D(theta; X), into a model's graph.

The rows and what the kernel needs of them are *inputs* of the Op (shared variables), so two models with different data
never share a compiled constant, and nothing of the rows reaches PyTensor's compile cache on disk. What the release path
must know (depth, epsilon, n, ...) is the Op's `settings`: it stays in the graph when a model is cloned or intervened
on, where a Python attribute of the model would be lost.
"""

from __future__ import annotations

import hashlib
import inspect
from functools import lru_cache
from pathlib import Path

import numpy as np
from pytensor.compile.mode import optdb
from pytensor.gradient import DisconnectedType
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import GraphRewriter
from pytensor.tensor.type import dscalar, dvector

from pymc_dpdepth.depths.base import Depth
from pymc_dpdepth.errors import NotDifferentiableError

__all__ = ["DepthOp", "ExpressionOp", "ObjectiveOp"]

THETA, ROWS = 0, 1
# A numba function without these options inherits them from its caller, and what PyTensor compiles allows sums to be
# reordered and divisions to become products. Kernels inherit from what is compiled with these, so that they compute in
# a graph what they compute by themselves.
STRICT = {"fastmath": False, "error_model": "python"}


def no_gradient_error(depth: Depth) -> NotDifferentiableError:
    """Return the error for whoever asks a step depth for its gradient."""
    return NotDifferentiableError(
        f"The depth {depth.name!r} is a step function of the location and has no gradient, so NUTS and HMC cannot "
        "sample it. Use step=pm.Slice(), pm.sample_smc(), an exact draw (dpd.sample_exact, dpd.release), or a smooth "
        "depth such as IntegratedDual(smoothing=10)."
    )


class ObjectiveOp(Op):
    """A scaled objective of the exponential mechanism; subclasses say how it is computed.

    Parameters
    ----------
    settings : hashable
        Public settings of the mechanism, read back by `pymc_dpdepth.mechanism`; `settings.depth` is the depth.
    """

    __props__ = ("settings",)
    default_output = 0

    def __init__(self, settings):
        self.settings = settings

    @property
    def depth(self) -> Depth:
        """The depth of the mechanism."""
        return self.settings.depth

    def location(self, node: Apply) -> Variable:
        """Return the location variable of an application."""
        return node.inputs[THETA]

    def rows(self, node: Apply) -> np.ndarray:
        """Return the raw rows of an application, shape (n, d)."""
        return node.inputs[ROWS].get_value(borrow=True)

    def __str__(self):
        """Show the depth alone: a graph printed by accident holds no row."""
        return f"{type(self).__name__}({self.depth.name})"


class DepthOp(ObjectiveOp):
    """beta * D((theta - center) / scale; prepared rows), with the gradient as a second output where there is one.

    Inputs: theta (d,), the raw rows (n, d), beta (), center (d,), scale (d,), then the depth's prepared arrays.
    """

    def make_node(self, theta, rows, beta, center, scale, *prepared):
        """Build the application; value, and gradient for a differentiable depth."""
        outputs = [dscalar(), dvector()] if self.depth.differentiable else [dscalar()]
        return Apply(self, [theta, rows, beta, center, scale, *prepared], outputs)

    def infer_shape(self, node, input_shapes):
        """Return () and the shape of theta."""
        return [(), input_shapes[THETA]][: len(node.outputs)]

    def connection_pattern(self, node):
        """Only theta is differentiated."""
        return [[i == THETA] * len(node.outputs) for i in range(len(node.inputs))]

    def perform(self, node, inputs, output_storage):
        """Evaluate through the same kernel as the numba backend."""
        theta, _, beta, center, scale, *prepared = inputs
        result = self.depth.kernel()((theta - center) / scale, *prepared)
        if self.depth.differentiable:
            value, gradient = result
            output_storage[1][0] = beta * gradient / scale
        else:
            value = result
        output_storage[0][0] = np.asarray(beta * value, dtype=np.float64)

    def pullback(self, inputs, outputs, cotangents):
        """Return the cotangent of theta, the second output times that of the value."""
        if not self.depth.differentiable:
            raise no_gradient_error(self.depth)
        if not isinstance(cotangents[1].type, DisconnectedType):
            raise NotDifferentiableError(
                f"The depth {self.depth.name!r} has a first derivative alone; a second one was asked for. Use a "
                "sampler that needs no more than the gradient."
            )
        return [cotangents[0] * outputs[1], *(DisconnectedType()() for _ in inputs[1:])]


class ExpressionOp(ObjectiveOp):
    """A user's expression, passed through unchanged, so that the mechanism can be found in the graph.

    Inputs: theta, the raw rows (n, d), and the scaled expression ().
    """

    # The output is the expression's own memory: nothing may work in place on it while the expression is needed.
    view_map = {0: [2]}

    def make_node(self, theta, rows, expression):
        """Build the application; one scalar."""
        return Apply(self, [theta, rows, expression.astype("float64")], [dscalar()])

    def infer_shape(self, node, input_shapes):
        """Return ()."""
        return [()]

    def connection_pattern(self, node):
        """Only the expression is connected."""
        return [[False], [False], [True]]

    def perform(self, node, inputs, output_storage):
        """Return the expression's value."""
        output_storage[0][0] = inputs[-1]

    def pullback(self, inputs, outputs, cotangents):
        """Hand the cotangent on to the expression."""
        return [DisconnectedType()(), DisconnectedType()(), cotangents[0]]


def _cache_key(op: ObjectiveOp, node: Apply) -> str | None:
    """Name the compiled function: its source and arity alone, so that other data or another epsilon reuse it.

    None, for a kernel of the user's whose source is not in a file, keeps PyTensor from storing it.
    """
    text = f"pymc_dpdepth {type(op).__name__} {len(node.inputs)} {_digest_of_sources()}"
    if isinstance(op, DepthOp):
        kernel = op.depth.kernel().py_func
        text += f" {kernel.__module__}.{kernel.__qualname__}"
        if not str(kernel.__module__).startswith("pymc_dpdepth."):
            try:
                text += hashlib.sha256(Path(inspect.getfile(kernel)).read_bytes()).hexdigest()
            except (OSError, TypeError):
                return None
    return hashlib.sha256(text.encode()).hexdigest()


@lru_cache
def _digest_of_sources() -> str:
    """Return a digest of all source that a kernel may use: PyTensor keeps what it compiled on disk, across versions."""
    package = Path(__file__).parent
    digest = hashlib.sha256()
    for path in (package / "op.py", package / "bits.py", *sorted((package / "depths").glob("*.py"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _register_numba() -> None:
    import numba
    from pytensor.link.numba.dispatch.basic import register_funcify_and_cache_key

    @register_funcify_and_cache_key(DepthOp)
    def numba_depth(op, node=None, **kwargs):
        kernel = op.depth.kernel()

        if op.depth.differentiable:

            @numba.njit(**STRICT)
            def objective(theta, rows, beta, center, scale, *prepared):
                value, gradient = kernel((theta - center) / scale, *prepared)
                return np.asarray(beta.item() * value), beta.item() * gradient / scale

        else:

            @numba.njit(**STRICT)
            def objective(theta, rows, beta, center, scale, *prepared):
                return np.asarray(beta.item() * kernel((theta - center) / scale, *prepared))

        return objective, _cache_key(op, node)

    @register_funcify_and_cache_key(ExpressionOp)
    def numba_expression(op, node=None, **kwargs):
        @numba.njit(**STRICT)
        def objective(theta, rows, expression):
            return expression

        return objective, _cache_key(op, node)


class _DispatchToJax(GraphRewriter):
    """Load the JAX form of the Ops when a graph that holds one is rewritten for JAX; the graph stays as it is."""

    def apply(self, fgraph):
        if any(isinstance(node.op, ObjectiveOp) for node in fgraph.apply_nodes):
            from pymc_dpdepth import op_jax  # noqa: F401


_register_numba()
# Only the rewrites of JAX modes have this tag, so that JAX is imported by those who use it.
optdb.register("pymc_dpdepth_dispatch_to_jax", _DispatchToJax(), "jax", position=0)
