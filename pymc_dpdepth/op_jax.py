"""The Ops of `pymc_dpdepth.op` in JAX: what numpyro, blackjax and `mode="JAX"` compile.

Smooth depths of the package are written in JAX, so that they are traced, compiled, mapped and differentiated like any
other function. Their first derivative is the formula of the numba kernel, not what JAX would make of the value: it also
holds where a norm has no derivative. All other depths, step depths among them, call the numba kernel from JAX: a step
depth counts ties, and XLA may fuse a product with a sum, which moves the last bit of a projection and undoes a tie.

Nothing imports this module before a graph with such an Op is rewritten for JAX (`pymc_dpdepth.op`); to convert a graph
by `jax_funcify` without rewriting it, import this module first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from pytensor.link.jax.dispatch.basic import jax_funcify

from pymc_dpdepth.depths import aggregate, spatial_kernels
from pymc_dpdepth.op import DepthOp, ExpressionOp, no_gradient_error

__all__ = ["NATIVE", "depth_function"]


def mean_smoothed_depth(theta, ordered, factors, directions, parameters):
    """Return value and gradient as `depths.aggregate.mean_smoothed_depth` does, from its parameters."""
    m, n = ordered.shape
    if n == 0:
        return jnp.zeros(()), jnp.zeros_like(theta)
    s = parameters[0]
    clamp = aggregate.CLAMP
    projected = jnp.clip(directions @ jnp.clip(theta, -clamp, clamp), -clamp, clamp)
    y = s * (projected[:, None] - ordered)
    p, q = jax.nn.sigmoid(y), jax.nn.sigmoid(-y)
    share, slope = p.mean(axis=1), (p * q).mean(axis=1)
    return (share * (1.0 - share)).mean(), s / m * (((1.0 - 2.0 * share) * slope) @ directions)


def spatial_depth(theta, columns):
    """Return value and gradient as `depths.spatial_kernels.spatial_depth` does, from its parameters."""
    if columns.shape[1] == 0:
        return jnp.zeros(()), jnp.zeros_like(theta)
    length, pulled = _length_and_pullback(theta, columns)
    return jnp.maximum(1.0 - length, 0.0), jnp.where(length > 0.0, -pulled / _or_one(length), 0.0)


def modified_spatial_depth(theta, columns):
    """Return value and gradient as `depths.spatial_kernels.modified_spatial_depth` does, from its parameters."""
    if columns.shape[1] == 0:
        return jnp.zeros(()), jnp.zeros_like(theta)
    length, pulled = _length_and_pullback(theta, columns)
    return jnp.maximum(1.0 - length * length, 0.0), -2.0 * pulled


def _length_and_pullback(theta, columns):
    """Return |m| and J m, where m = mean_i s_i, J = mean_i (I - s_i s_i') / r_i; see `depths.spatial_kernels`.

    Differences are scaled by their largest component first, so that no square overflows. A row equal to the point adds
    nothing to either. Divisors that are 0 become 1 before they divide: JAX differentiates both sides of a `where`.
    """
    clamp = spatial_kernels.CLAMP
    away = jnp.clip(theta, -clamp, clamp)[:, None] - columns
    largest = jnp.abs(away).max(axis=0)
    off = largest > 0.0
    scaled = away / _or_one(largest)
    norms = jnp.sqrt(jnp.where(off, (scaled * scaled).sum(axis=0), 1.0))
    units = scaled / norms
    inverse = jnp.where(off, jnp.minimum(1.0 / norms / _or_one(largest), spatial_kernels.LARGEST_INVERSE), 0.0)
    mean = units.mean(axis=1)
    squared = (mean * mean).sum()
    length = jnp.where(squared > 0.0, jnp.sqrt(_or_one(squared)), 0.0)
    return length, ((mean[:, None] - units * (mean @ units)) * inverse).mean(axis=1)


def _or_one(x):
    return jnp.where(x > 0.0, x, 1.0)


#: JAX functions by the numba kernel that they stand for, with the same parameters and results.
NATIVE: dict[Any, Callable] = {
    aggregate.mean_smoothed_depth: mean_smoothed_depth,
    spatial_kernels.spatial_depth: spatial_depth,
    spatial_kernels.modified_spatial_depth: modified_spatial_depth,
}


def depth_function(depth: Any) -> Callable:
    """Return a JAX function of (theta, *prepared): the value, or (value, gradient) for a differentiable depth.

    The derivative of the value is the gradient. That of a step depth is refused.
    """
    kernel = depth.kernel()
    native = NATIVE.get(kernel) if depth.differentiable else None
    evaluate = native or _called_back(kernel, depth.differentiable)

    def function(theta, *prepared):
        # Functions of theta alone: in a custom_jvp of all arguments, arrays that are known would not be known any more.
        @jax.custom_jvp
        def value(theta):
            result = evaluate(theta, *prepared)
            return result[0] if depth.differentiable else result

        @value.defjvp
        def derivative(primals, tangents):
            if not depth.differentiable:
                raise no_gradient_error(depth)
            at_theta, gradient = evaluate(*primals, *prepared)
            return at_theta, gradient @ tangents[0]

        @jax.custom_jvp
        def called_gradient(theta):
            return evaluate(theta, *prepared)[1]

        @called_gradient.defjvp
        def unknown(primals, tangents):
            # Whoever differentiates the value meets this too, and does not use it; who uses it must not take it for 0.
            return called_gradient(*primals), jnp.full(primals[0].shape, jnp.nan) * tangents[0].sum()

        if not depth.differentiable:
            return value(theta)
        return value(theta), evaluate(theta, *prepared)[1] if native else called_gradient(theta)

    return function


def _called_back(kernel: Any, differentiable: bool) -> Callable:
    """Return a JAX function that calls a numba kernel in this process.

    Arrays that are known when JAX traces stay with Python: they are no constants of the compiled program.
    """

    def evaluate(*arguments):
        result = kernel(*(np.ascontiguousarray(argument) for argument in arguments))
        return result if differentiable else np.float64(result)

    def called(theta, *prepared):
        value = jax.ShapeDtypeStruct((), np.float64)
        shapes = (value, jax.ShapeDtypeStruct(theta.shape, np.float64)) if differentiable else value
        if any(isinstance(array, jax.core.Tracer) for array in prepared):
            return jax.pure_callback(evaluate, shapes, theta, *prepared, vmap_method="sequential")
        known = [np.asarray(array) for array in prepared]
        return jax.pure_callback(lambda theta: evaluate(theta, *known), shapes, theta, vmap_method="sequential")

    return called


def _divided(away, scale):
    """Return away / scale as IEEE arithmetic has it, so that a point that is a row meets that row.

    XLA multiplies by the reciprocal of a divisor that is a constant, or the same for all points of a batch. This one is
    neither, as far as it can see: it depends on the point, as NaN where that is NaN.
    """
    return away / jax.lax.optimization_barrier(jnp.where(away == away, scale, jnp.nan))


def refuse_to_store(theta: Any, arrays: Any) -> None:
    """Refuse to compile a program with private constants while JAX keeps compiled programs on disk."""
    constants = isinstance(theta, jax.core.Tracer) and not all(isinstance(a, jax.core.Tracer) for a in arrays)
    if constants and jax.config.jax_compilation_cache_dir and jax.config.jax_enable_compilation_cache:
        raise RuntimeError(
            "The rows would be constants of a program that JAX keeps on disk, in its persistent compilation cache, "
            "where no raw row may be. Expected no such cache; got jax_compilation_cache_dir set. Turn it off: "
            'jax.config.update("jax_enable_compilation_cache", False).'
        )


@jax_funcify.register(DepthOp)
def jax_depth(op, node=None, **kwargs):
    """Return beta * D((theta - center) / scale) as a JAX function, with the gradient where there is one."""
    depth = depth_function(op.depth)

    def objective(theta, rows, beta, center, scale, *prepared):
        refuse_to_store(theta, prepared)
        result = depth(_divided(theta - center, scale), *prepared)
        if not op.depth.differentiable:
            return beta * result
        value, gradient = result
        return beta * value, beta * gradient / scale

    return objective


@jax_funcify.register(ExpressionOp)
def jax_expression(op, node=None, **kwargs):
    """Return the user's expression, which JAX differentiates itself."""

    def objective(theta, rows, expression):
        refuse_to_store(theta, [rows])
        return expression

    return objective
