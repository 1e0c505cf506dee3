"""Whether a prior, or a model, has a density that Markov chains can sample. Asked before anything is charged."""

from __future__ import annotations

import warnings
from typing import Any

from pymc_dpdepth.errors import ImproperMechanismError
from pymc_dpdepth.priors import is_flat, is_random

__all__ = ["check_drawable", "check_prior_parts", "check_sampleable"]

# Scalar operations that send intervals to single points.
MAKE_ATOMS = frozenset({"Clip", "RoundHalfToEven", "RoundHalfAwayFromZero", "Floor", "Ceil", "Trunc", "Sign"})
PUBLIC_SEED = 0  # of a draw that is thrown away


def flaw_of_density(variable) -> str | None:
    """Return why a random variable has no density, as the end of a sentence about it, or None if it has one."""
    if variable.type.numpy_dtype.kind != "f":
        return "is discrete"
    if has_atoms(variable):
        return "takes single values with positive probability, so it has no density"
    if _log_density(variable) is None:
        return "has no density that PyMC can compute"
    return None


def has_atoms(variable) -> bool:
    """Whether a random variable, by the way it is made, takes single values with positive probability."""
    from pymc.distributions.distribution import DiracDeltaRV, SymbolicRandomVariable
    from pytensor.tensor.elemwise import Elemwise

    op = variable.owner.op
    if isinstance(op, DiracDeltaRV):
        return True
    if not isinstance(op, SymbolicRandomVariable):
        return False
    # The parts of a composed distribution (the components of a mixture, the first step of a walk) are inputs of it.
    if any(is_random(part) and has_atoms(part) for part in variable.owner.inputs):
        return True
    scalar_ops = (node.op.scalar_op for node in op.fgraph.apply_nodes if isinstance(node.op, Elemwise))
    return any(type(scalar_op).__name__ in MAKE_ATOMS for scalar_op in scalar_ops)


def _log_density(variable):
    """Return the graph of a variable's log density at a fresh value, or None where PyMC derives none."""
    import pymc as pm
    from pymc.distributions.simulator import SimulatorRV

    if isinstance(variable.owner.op, SimulatorRV):  # its logp compares simulated data with given data
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of random parameters, which `check_prior_parts` looks for
            return pm.logp(variable, variable.type())
    except (NotImplementedError, RuntimeError):
        return None


def check_prior_parts(parts: list) -> None:
    """Refuse a prior that cannot be put into a model as it is; `parts` are what its coordinates consist of.

    Parameters
    ----------
    parts : list of TensorVariable
        As `priors.components` yields them.

    Raises
    ------
    ValueError
        If a part is not a distribution, stands in two places, has no density, or has parameters that are random.
    """
    from pymc.pytensorf import rvs_in_graph

    for part in parts:
        if not is_random(part):
            raise ValueError(
                "prior: expected a distribution, got something computed. Write a transformed variable as "
                "pm.CustomDist.dist(..., dist=...), or as a PyMC model with dpd.exponential_mechanism in it."
            )
        flaw = flaw_of_density(part)
        if flaw is not None:
            raise ValueError(f"prior: expected distributions with a density; {_family(part)} {flaw}.")
        # Random variables that a composed distribution consists of (the components of a mixture, the first step of a
        # walk) do not stand in its log density; parameters that are random do.
        if rvs_in_graph(_log_density(part)):
            raise ValueError(
                "prior: its parameters depend on other random variables; write the hierarchy as a PyMC model and add "
                "dpd.exponential_mechanism to it."
            )
    if len(set(parts)) < len(parts):
        raise ValueError(
            "prior: expected a variable of its own for each coordinate; one random variable stands in two places, so "
            "the coordinates would be equal. Define it twice."
        )


def check_sampleable(model: Any, sampler: str | None = None) -> None:
    """Refuse a model that a Markov chain cannot sample or has no law for.

    Parameters
    ----------
    model : pm.Model
    sampler : {"nuts", "slice", "smc"}, optional
        What is to sample it; None for a trace that is there already.

    Raises
    ------
    ImproperMechanismError
        If a free variable has a flat prior and no observed variable makes up for it.
    NotDifferentiableError
        If NUTS is to sample a step depth.
    ValueError
        If there are no free variables, or one of them has no density or, for SMC, cannot be drawn from.
    """
    if not model.free_RVs:
        raise ValueError("The model has no free variables, so there is nothing to draw; do not fix the location.")
    discrete = sorted(v.name for v in model.free_RVs if v.type.numpy_dtype.kind != "f")
    if discrete:
        raise ValueError(f"The free variables {discrete} are discrete; expected priors with a density.")
    if not model.observed_RVs and any(is_flat(v) for v in model.free_RVs):
        raise ImproperMechanismError(
            "A free variable of the model has a flat prior (pm.Flat, pm.HalfFlat), so there is no probability density "
            "to draw from; give it a proper prior."
        )
    for variable in model.free_RVs:
        flaw = flaw_of_density(variable)
        if flaw is not None:
            raise ValueError(
                f"The free variable {variable.name!r} ({_family(variable)}) {flaw}; expected priors with a density."
            )
    model.dlogp() if sampler == "nuts" else model.logp()  # PyMC's own errors, should there be any, come here
    if sampler == "smc":  # which starts from draws of the prior
        check_drawable(model.free_RVs)


def check_drawable(variables) -> None:
    """Refuse distributions that PyMC has no random draws of."""
    import pymc as pm

    try:
        pm.draw(list(variables), random_seed=PUBLIC_SEED, mode="FAST_COMPILE")  # not worth compiling
    except NotImplementedError:
        families = sorted({_family(variable) for variable in variables if is_random(variable)})
        raise ValueError(
            f"Expected priors that PyMC can draw from; one of {families} has no random draws. Give it a random "
            'function, or take sampler="slice" with a halfspace depth, which needs none.'
        ) from None


def _family(variable) -> str:
    return (
        type(variable.owner.op).__name__.removesuffix("RV").lstrip("_") if variable.owner is not None else "a constant"
    )
