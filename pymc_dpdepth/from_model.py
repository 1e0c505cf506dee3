"""From a PyMC model with exponential mechanisms to exact draws, which stay with the curator, and to a Release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pymc_dpdepth.budget import BudgetLedger, charge, check_ledger, labelled
from pymc_dpdepth.densities import check_sampleable
from pymc_dpdepth.errors import ApproximateSamplingWarning, InexactReleaseError, warn_user
from pymc_dpdepth.exact_model import plan_model
from pymc_dpdepth.groups import calls, costs_of_calls
from pymc_dpdepth.labelled import DELTA, build_release, to_datatree, total_epsilon
from pymc_dpdepth.location_rows import row_of
from pymc_dpdepth.mechanism import ModelMechanism, positive_integer, read_mechanisms
from pymc_dpdepth.randomness import RandomBits, random_bits
from pymc_dpdepth.record import Release
from pymc_dpdepth.samplers.dispatch import EXACT_DRAWS
from pymc_dpdepth.samplers.exact import NoExactSamplerError
from pymc_dpdepth.samplers.hierarchy_plan import HIERARCHY
from pymc_dpdepth.samplers.markov import MARKOV_SAMPLERS, choose_markov, sample_markov

__all__ = ["SAMPLERS", "check_sampler", "exact_or_consent", "release", "sample_exact"]

EXACT_OF_MODELS = (*EXACT_DRAWS, HIERARCHY)
SAMPLERS = ("auto", *EXACT_OF_MODELS, *MARKOV_SAMPLERS)


def sample_exact(
    draws: int = 1000,
    *,
    chains: int = 1,
    model: Any = None,
    sampler: str = "auto",
    public: Sequence[str] = (),
    random_seed: int | None = None,
) -> Any:
    """Draw independently from a model of exponential mechanisms, without MCMC.

    The draws are for the curator: to look at the mechanism's law, or to check an MCMC sampler. k draws that leave would
    cost k * epsilon; use `release` for the one that does.

    Parameters
    ----------
    draws : int
        Draws of each chain.
    chains : int
        The draws are independent; chains only give the shape that ArviZ expects.
    model : pm.Model, optional
        The model on the context stack by default.
    sampler : {"auto", "segments", "boxes", "products", "branch_and_bound", "planar", "hierarchy"}
        "auto" takes the one that fits; another word insists on it.
    public : sequence of str
        Names of observed variables and other Potentials without private data. Exact draws are not available with any.
    random_seed : int, optional
        For simulation; warns.

    Returns
    -------
    DataTree
        Group "posterior" with all free variables and Deterministics, dimensions (chain, draw, ...).

    Raises
    ------
    NoExactSamplerError
        A ValueError that says why there is no exact sampler for this model.

    Notes
    -----
    Each draw is epsilon-DP for neighbours that differ in one replaced row, on the grid of u-space: to the bit for
    depths that are counted, in doubles for spatial and smoothed ones.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_dpdepth as dpd
    >>> with pm.Model() as model:
    ...     location = pm.Normal("location", 0, 10, shape=2)
    ...     _ = dpd.exponential_mechanism("median", location, np.arange(20.0).reshape(10, 2), epsilon=1.0)
    ...     idata = dpd.sample_exact(draws=50)
    >>> idata.posterior["location"].shape
    (1, 50, 2)
    """
    import pymc as pm

    draws, chains = positive_integer(draws, "draws"), positive_integer(chains, "chains")
    check_sampler(sampler, ("auto", *EXACT_OF_MODELS))
    model = pm.modelcontext(model)
    mechanisms = read_mechanisms(model, public)
    exact = plan_model(model, mechanisms, sampler)
    bits = random_bits(random_seed)
    _, values = exact.draw(bits, chains * draws)
    posterior = {name: value.reshape(chains, draws, *value.shape[1:]) for name, value in values.items()}
    return to_datatree(model, posterior, bits.simulation)


def release(
    source: Any,
    model: Any = None,
    *,
    sampler: str = "auto",
    accept_asymptotic: bool = False,
    ledger: BudgetLedger | None = None,
    label: str | None = None,
    public: Sequence[str] = (),
    random_seed: int | None = None,
    progressbar: bool = True,
) -> Release:
    """Make a Release: one draw that may leave the curator, and the record of its cost.

    Parameters
    ----------
    source : pm.Model or DataTree
        A model with exponential mechanisms, of which one exact draw is taken; or a trace of such a model, of which one
        draw is picked at random.
    model : pm.Model, optional
        The model of a trace.
    sampler : str
        "auto" takes "segments", "boxes", "products", "branch_and_bound" or "hierarchy" (groups under a normal
        hierarchy) where one fits, and otherwise, if `accept_asymptotic` allows it, "nuts" for a smooth depth or "smc"
        for a step depth. "slice" is available too.
    accept_asymptotic : bool
        Allow a draw of a Markov chain, whose epsilon is nominal.
    ledger : BudgetLedger, optional
        Charged before the draw.
    label : str, optional
        What the ledger calls the charge, by default the names of the mechanisms. It is public and must not come from
        the rows.
    public : sequence of str
        Names of observed variables and other Potentials of the model that hold no private data.
    random_seed : int, optional
        For simulation; warns.
    progressbar : bool
        For Markov chains.

    Returns
    -------
    Release

    Raises
    ------
    InexactReleaseError
        If the draw would come from a Markov chain and `accept_asymptotic` is False. Nothing is charged.
    ValueError, TypeError
        If the model or an argument is not usable. Nothing is charged.

    Warns
    -----
    ApproximateSamplingWarning
        If the draw comes from a Markov chain.

    Notes
    -----
    Costs the sum of the mechanisms' epsilon, times the rows that one person may have; delta is 0. The groups of one
    call are one mechanism. Neighbours differ in one replaced row, with groups in one replaced within its group. Asking
    again draws again and costs again.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_dpdepth as dpd
    >>> with pm.Model(coords={"coordinate": ["a", "b"]}) as model:
    ...     location = pm.Normal("location", 0, 10, dims="coordinate")
    ...     _ = dpd.exponential_mechanism("median", location, np.arange(20.0).reshape(10, 2), epsilon=1.0)
    >>> dpd.release(model).value.sizes["coordinate"]
    2
    """
    import pymc as pm

    check_ledger(ledger)
    ledger = labelled(ledger, label)
    check_sampler(sampler, SAMPLERS)
    if not isinstance(source, pm.Model):
        _check_is_trace(source)
        if sampler != "auto":
            raise ValueError("sampler: a trace has been sampled already; leave sampler out, or pass the model alone.")
        return _release_trace(source, model, accept_asymptotic, ledger, public, random_seed)
    if model is not None and model is not source:
        raise ValueError("model: pass either dpd.release(model) or dpd.release(idata, model=model).")
    mechanisms = read_mechanisms(source, public)
    exact = exact_or_consent(lambda: plan_model(source, mechanisms, sampler), sampler, accept_asymptotic)
    return _release_model(source, mechanisms, exact, sampler, ledger, random_seed, progressbar)


def _release_model(model, mechanisms, exact, sampler, ledger, random_seed, progressbar) -> Release:
    """Charge, draw and record."""
    bits = random_bits(random_seed)
    if exact is not None:
        _charge(ledger, mechanisms, bounded_range=tuple(costs_of_calls(mechanisms)))
        locations, values = exact.draw(bits, 1)
        first = {name: value[0] for name, value in locations.items()}
        parameters = {name: value[0] for name, value in values.items()}
        return build_release(
            model, mechanisms, first, parameters, exact.sampler, exact.guarantee, bits.simulation, exact.describe()
        )
    chosen = choose_markov(mechanisms, sampler)
    check_sampleable(model, chosen)
    _charge(ledger, mechanisms)
    _warn_asymptotic()
    idata = sample_markov(model, chosen, bits, progressbar)
    parameters = _pick(_read_trace(idata, model), bits)
    return build_release(
        model,
        mechanisms,
        _locations_at(model, mechanisms, parameters),
        parameters,
        chosen,
        "asymptotic",
        bits.simulation,
    )


def _release_trace(idata, model, accept_asymptotic, ledger, public, random_seed) -> Release:
    """Release one draw of a trace."""
    import pymc as pm

    if not isinstance(model, pm.Model):
        raise TypeError("model: a trace holds no epsilon; pass its model too, dpd.release(idata, model=model, ...).")
    mechanisms = read_mechanisms(model, public)
    check_sampleable(model)
    draws = _read_trace(idata, model)
    require_consent(accept_asymptotic, "the draw would come from a trace, and dpd.release(model) is what draws exactly")
    bits = random_bits(random_seed)
    _charge(ledger, mechanisms)
    _warn_asymptotic()
    parameters = _pick(draws, bits)
    simulation = True if bits.simulation else "unknown"
    locations = _locations_at(model, mechanisms, parameters)
    return build_release(model, mechanisms, locations, parameters, "trace", "asymptotic", simulation)


def check_sampler(sampler: Any, known: tuple[str, ...]) -> None:
    """Refuse anything but one of the known words; what came is shown only if it is a word."""
    if not isinstance(sampler, str) or sampler not in known:
        got = repr(sampler) if isinstance(sampler, str) else type(sampler).__name__
        raise ValueError(f"sampler: expected one of {known}, got {got}.")


def exact_or_consent(find: Callable[[], Any], sampler: str, accept_asymptotic: bool) -> Any:
    """Return the exact sampler that `find` finds, or None where a Markov chain is to draw and was agreed to.

    A sampler that the user named is never replaced by another one.
    """
    if sampler in MARKOV_SAMPLERS:
        require_consent(accept_asymptotic, f"sampler={sampler!r} is a Markov chain")
        return None
    try:
        return find()
    except NoExactSamplerError as reason:
        if sampler != "auto":
            raise
        require_consent(accept_asymptotic, str(reason))
        return None


def require_consent(accept_asymptotic: bool, reason: str) -> None:
    """Refuse a Markov chain that was not asked for; nothing has been charged."""
    if not isinstance(accept_asymptotic, bool):
        raise TypeError(f"accept_asymptotic: expected True or False, got {type(accept_asymptotic).__name__}.")
    if not accept_asymptotic:
        raise InexactReleaseError(
            f"No exact draw: {reason}. A Markov chain only approaches the mechanism's law, so its epsilon is nominal. "
            "Change the depth, directions or prior so that an exact sampler fits (halfspace along axes fits every "
            "product prior), or pass accept_asymptotic=True."
        )


def _warn_asymptotic() -> None:
    warn_user(
        "The released draw comes from a Markov chain: epsilon is nominal, not proved. R-hat and ESS do not certify "
        "privacy.",
        ApproximateSamplingWarning,
    )


def _charge(ledger, mechanisms: list[ModelMechanism], bounded_range: tuple[float, ...] = ()) -> None:
    """Charge before the draw. Only exact draws are bounded-range: what a chain has approached is not."""
    label = ", ".join(call[0].settings.call for call in calls(mechanisms))
    charge(ledger, epsilon=total_epsilon(mechanisms), delta=DELTA, label=label, bounded_range=bounded_range)


def _check_is_trace(idata) -> None:
    """Refuse what is neither a model nor a trace."""
    if getattr(idata, "posterior", None) is None:
        raise TypeError(f"Expected a pm.Model or a trace with a posterior group, got {type(idata).__name__}.")


def _read_trace(idata, model) -> dict[str, Any]:
    """Return the draws of the free variables in the model's order; refuse a trace that is not one of the model."""
    posterior = idata.posterior
    if not all(posterior.sizes.get(dim, 0) for dim in ("chain", "draw")):
        raise ValueError("The trace has no draws; expected the dimensions chain and draw, each of length 1 or more.")
    missing = sorted(v.name for v in model.free_RVs if v.name not in posterior)
    if missing:
        raise ValueError(f"The trace lacks the free variables {missing}; sample them all with this model.")
    shapes = model.eval_rv_shapes()
    return {v.name: _aligned(posterior, v.name, model, tuple(shapes[v.name])) for v in model.free_RVs}


def _pick(draws: dict[str, Any], bits: RandomBits) -> dict[str, np.ndarray]:
    """Return the free variables of one draw, whose index is uniform and never looked at."""
    sizes = next(iter(draws.values())).sizes
    chain, draw = bits.index(sizes["chain"]), bits.index(sizes["draw"])
    return {name: np.asarray(array.isel(chain=chain, draw=draw).values) for name, array in draws.items()}


def _aligned(posterior, name: str, model, shape: tuple[int, ...]):
    """Return a variable of a trace with the model's order of dims, and of labels along each, or refuse the trace."""
    array = posterior[name]
    found = [dim for dim in array.dims if dim not in ("chain", "draw")]
    unnamed = [f"{name}_dim_{i}" for i in range(len(shape))]  # what ArviZ calls them
    dims = [dim or other for dim, other in zip(model.named_vars_to_dims.get(name) or unnamed, unnamed, strict=True)]
    if set(found) == set(unnamed):
        dims = unnamed
    if set(found) != set(dims) or len(array.dims) != len(shape) + 2:
        raise ValueError(
            f"The trace's variable {name!r} has dimensions {found} besides chain and draw; expected {dims}, of the "
            "model's shapes. Pass the trace's own model, or rename the dimensions."
        )
    array = array.transpose("chain", "draw", *dims)
    if array.shape[2:] != shape:
        raise ValueError(
            f"The trace's variable {name!r} has another shape than in the model; expected the shapes of its own model."
        )
    for dim, length in zip(dims, shape, strict=True):
        labels = model.coords.get(dim)
        expected = [str(label) for label in (range(length) if labels is None else labels)]
        texts = [str(label) for label in array.coords[dim].values.tolist()] if dim in array.coords else expected
        if sorted(texts) != sorted(expected) or len(set(texts)) < length:
            raise ValueError(
                f"The trace's labels of {dim!r} are not the model's, so which value belongs to which is not known; "
                "pass the trace's own model, or give the trace the model's coords."
            )
        if texts != expected:
            array = array.isel({dim: [texts.index(text) for text in expected]})
    return array


def _locations_at(model, mechanisms, parameters: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Evaluate the locations at given values of the free variables."""
    known = dict(parameters)  # values of variables that were sampled, and of those that are computed from them
    locations = {}
    for mechanism in mechanisms:
        row = row_of(mechanism.location)
        variable, index = row if row is not None else (mechanism.location, ...)
        name = variable.name
        value = known.get(name) if name is not None else None
        if value is None:
            value = _evaluate(variable, model, parameters)
            if name is not None:
                known[name] = value
        value = np.asarray(value, dtype=np.float64)[index]
        locations[mechanism.settings.name] = np.atleast_1d(value)
    return locations


def _evaluate(variable, model, parameters: dict[str, np.ndarray]) -> np.ndarray:
    """Return the value of a variable that is computed from the free ones."""
    from pymc.pytensorf import compile as compile_function

    inputs = list(model.free_RVs)
    function = compile_function(inputs, variable, on_unused_input="ignore", allow_input_downcast=True)
    return function(*(parameters[v.name] for v in inputs))
