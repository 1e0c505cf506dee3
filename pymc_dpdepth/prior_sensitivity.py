"""Prior sensitivity of a private median: what ArviZ's power-scaling needs of a trace. For the curator."""

from __future__ import annotations

from typing import Any

import numpy as np

from pymc_dpdepth.mechanism import ModelMechanism
from pymc_dpdepth.trace_values import (
    SAMPLE_DIMS,
    free_draws,
    in_model_order,
    locations,
    log_priors,
    mechanisms_of,
    not_finite,
    objectives,
)

__all__ = ["compute_log_prior_and_potential"]

LIKELIHOOD_MEANS = (
    "beta * depth of each mechanism. Scaling it by alpha scales epsilon by alpha: the likelihood row of psense is the "
    "sensitivity of the draws to epsilon, and no likelihood of the rows."
)
PRIOR_MEANS = "log density of each free variable given its parents, without Jacobians: sensitivity to the prior."
# ArviZ fits a law to the tail of the log densities and refuses one whose values are all the same, as under a uniform
# prior and in the deepest region of a step depth. Ties are broken by this share of the largest value: far above a
# double's rounding, and far below anything that matters to a weight.
TIE_BREAK = 2.0**-36
GOLDEN = (5.0**0.5 - 1.0) / 2.0  # the multiples of it modulo 1 all differ and spread evenly
CURATOR_SIDE = {"curator_side": "not releasable", "inference_library": "pymc_dpdepth"}


def compute_log_prior_and_potential(idata: Any, *, model: Any = None, extend_inferencedata: bool = True) -> Any:
    r"""Add the groups `log_prior` and `log_likelihood` to draws, so that ArviZ's prior sensitivity works on them.

    For a draw theta, `log_prior` holds log p(theta_v | parents) of each free variable v, and `log_likelihood` holds

        beta * D(location(theta); X),    beta = epsilon / (2 * sensitivity),

    of each mechanism, under the name of its Potential. `az.psense_summary`, `az.plot_psense_dist` and
    `az.plot_psense_quantities` then work as for any model. They raise the prior, or exp(beta * D), to a power alpha
    near 1; since alpha * beta belongs to alpha * epsilon, **the "likelihood" row means sensitivity to epsilon**.

    Parameters
    ----------
    idata : DataTree
        Draws of `pm.sample`, `pm.sample_smc` or `dpd.sample_exact`, of all free variables.
    model : pm.Model, optional
        The model of the draws, with at least one mechanism. The model on the context stack by default.
    extend_inferencedata : bool
        Add the groups to `idata` itself, in place of groups of these names that it may have; or leave it as it is and
        return a tree of the two groups alone.

    Returns
    -------
    DataTree
        `idata` itself, or the two groups.

    Raises
    ------
    TypeError
        If `idata` has no posterior or `model` is no model.
    ValueError
        If the model has no mechanism, or the draws lack free variables, have other shapes, dimensions or labels, or are
        not finite. Nothing is added then.

    Notes
    -----
    Costs no epsilon, and is for the curator alone: both groups, and all that ArviZ makes of them, are functions of the
    private rows. A prior that is chosen by looking at them is no prior; `prior_grid` compares priors on synthetic rows.

    With hierarchical priors `log_prior` holds the location's prior given the hyperparameters, and theirs. To scale the
    hyperpriors alone, as [1]_ advises, name them: ``az.psense_summary(idata, prior_var_names=["mu", "tau"])``. With
    several mechanisms, or groups, ``likelihood_var_names=`` picks Potentials; without it all epsilons are scaled
    together. Observed variables with public data and Potentials that are no mechanisms are left out.

    ArviZ's plots of power-scaling fail on a posterior of a single variable (arviz-plots 1.3). To such a posterior the
    location of each mechanism is added once more, under the name of its Potential; ``var_names=["location"]`` plots
    one of the two.

    Where draws share a value, as under a uniform prior and for step depths, ArviZ could not fit its tails; such values
    are moved apart by up to 1.5e-11 of the largest (of 1, if that is more).

    ArviZ's words about likelihoods then read so. "potential strong prior / weak likelihood": epsilon and n are too
    small for the rows to matter, and a release would be a draw of the prior. "potential prior-data conflict": both
    matter; a wider prior or a larger epsilon would move the draws.

    References
    ----------
    .. [1] N. Kallioinen, T. Paananen, P.-C. Bürkner and A. Vehtari, Detecting and diagnosing prior and likelihood
           sensitivity with power-scaling, Statistics and Computing 34 (2024) 57, doi:10.1007/s11222-023-10366-5.

    Examples
    --------
    >>> import arviz as az, numpy as np, pymc as pm, pymc_dpdepth as dpd
    >>> with pm.Model() as model:
    ...     location = pm.Normal("location", 0, 10, shape=2)
    ...     _ = dpd.exponential_mechanism("median", location, np.arange(20.0).reshape(10, 2), epsilon=5.0)
    ...     idata = dpd.sample_exact(draws=500)
    ...     idata = dpd.compute_log_prior_and_potential(idata)
    >>> list(az.psense_summary(idata).columns)
    ['prior', 'likelihood', 'diagnosis']
    >>> idata["log_likelihood"]["median"].shape
    (1, 500)
    """
    import pymc as pm
    import xarray as xr

    model = pm.modelcontext(model)
    mechanisms = mechanisms_of(model)
    values = free_draws(idata, model)
    wrong = not_finite(values)
    if wrong:
        raise ValueError(
            f"idata: expected finite draws; those of {wrong} hold NaN or infinite ones, a fault of their sampler. "
            "Sample again; dpd.diagnose says more."
        )
    points = locations(mechanisms, model, values)
    potentials = {
        mechanism.settings.name: objectives(mechanism, theta)
        for mechanism, theta in zip(mechanisms, points, strict=True)
    }
    groups = {
        "log_prior": _labelled(log_priors(model, values), idata.posterior, model, PRIOR_MEANS),
        "log_likelihood": _labelled(potentials, idata.posterior, model, LIKELIHOOD_MEANS),
    }
    if not extend_inferencedata:
        return xr.DataTree.from_dict(groups)
    for name, group in groups.items():
        idata[name] = group
    if len(idata.posterior.data_vars) == 1:
        _add_locations(idata, model, mechanisms, points)
    return idata


def _add_locations(idata: Any, model: Any, mechanisms: list[ModelMechanism], points: list[np.ndarray]) -> None:
    """Add each mechanism's location to the posterior, under the name of its Potential."""
    import xarray as xr

    posterior = idata["posterior"]
    shape = tuple(posterior.sizes[dim] for dim in SAMPLE_DIMS)
    for mechanism, theta in zip(mechanisms, points, strict=True):
        name = mechanism.settings.name
        dim, labels = _coordinate_dim(posterior, model, mechanism)
        # The labels put the values, which are in the model's order, into the order of the posterior.
        array = xr.DataArray(theta.reshape(*shape, -1), dims=[*SAMPLE_DIMS, dim])
        posterior[name] = array if labels is None else array.assign_coords({dim: labels})


def _coordinate_dim(posterior: Any, model: Any, mechanism: ModelMechanism) -> tuple[str, Any]:
    """Return the dim of the location's coordinates and their labels, if any, where the posterior has such a dim."""
    location = mechanism.location.name
    if location in posterior:
        array = in_model_order(posterior[location], model)
        dim = str(array.dims[-1])
        if dim not in SAMPLE_DIMS and array.sizes[dim] == mechanism.settings.d:
            return dim, array.coords[dim].values if dim in array.coords else None
    return f"{mechanism.settings.name}_dim_0", None


def _labelled(values: dict[str, np.ndarray], posterior: Any, model: Any, meaning: str) -> Any:
    """Return values (chains * draws, ...) as a Dataset with the chains and draws of the posterior."""
    import arviz_base

    shape = tuple(posterior.sizes[dim] for dim in SAMPLE_DIMS)
    coords = {dim: posterior[dim].values for dim in SAMPLE_DIMS if dim in posterior.coords}
    coords |= {dim: list(labels) for dim, labels in model.coords.items() if labels is not None}
    dims = {
        name: [dim or f"{name}_dim_{i}" for i, dim in enumerate(model.named_vars_to_dims[name])]
        for name in values
        if name in model.named_vars_to_dims
    }
    return arviz_base.dict_to_dataset(
        {name: _apart(value).reshape(*shape, *value.shape[1:]) for name, value in values.items()},
        coords=coords,
        dims=dims,
        sample_dims=list(SAMPLE_DIMS),
        skip_event_dims=True,
        attrs=CURATOR_SIDE | {"meaning": meaning},
    )


def _apart(values: np.ndarray) -> np.ndarray:
    """Return values (draws, ...) of which no two draws have the same total; see `TIE_BREAK`."""
    draws = len(values)
    totals = values.reshape(draws, -1).sum(axis=1)
    finite = totals[np.isfinite(totals)]  # a draw outside the prior's support stays at -inf
    if len(np.unique(finite)) == len(finite):
        return values
    steps = TIE_BREAK * max(1.0, np.abs(finite).max()) * (np.arange(draws) * GOLDEN % 1.0)
    return values + steps.reshape(draws, *[1] * (values.ndim - 1))
