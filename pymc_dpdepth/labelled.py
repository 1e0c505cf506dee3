"""Labels of a model put on bare arrays: Releases over "coordinate", and ArviZ trees of exact draws."""

from __future__ import annotations

import numpy as np

from pymc_dpdepth.groups import calls, costs_of_calls
from pymc_dpdepth.location_rows import row_of, row_variable
from pymc_dpdepth.mechanism import NEIGHBORING, NEIGHBORING_IN_GROUPS, ModelMechanism
from pymc_dpdepth.normal_vector import read_normal_vector
from pymc_dpdepth.priors import NotAProductPriorError, read_prior
from pymc_dpdepth.privacy.composition import basic_composition
from pymc_dpdepth.record import Release

__all__ = ["DELTA", "build_release", "describe_prior", "neighboring_of", "to_datatree", "total_epsilon"]

DELTA = 0.0  # the exponential mechanism is pure


def build_release(model, mechanisms, locations, parameters, sampler, guarantee, simulation, records=None) -> Release:
    """Put a draw and the public settings into a Release; `records` replaces the mechanisms' own."""
    import xarray as xr

    arrays = {call[0].settings.call: _location(model, call, locations) for call in calls(mechanisms)}
    priors = {m.settings.name: describe_prior(row_variable(m.location), m.settings.d) for m in mechanisms}
    dataset = xr.Dataset({name: _parameter(model, name, value) for name, value in parameters.items()})
    return Release(
        locations=arrays,
        parameters=dataset,
        epsilon=total_epsilon(mechanisms),
        delta=DELTA,
        guarantee=guarantee,
        max_rows_per_unit=max(m.settings.max_rows_per_unit for m in mechanisms),
        sampler=sampler,
        simulation=simulation,
        mechanisms=tuple(records or (m.settings.describe() for m in mechanisms)),
        priors=priors,
        neighboring=neighboring_of(mechanisms),
    )


def neighboring_of(mechanisms: list[ModelMechanism]) -> str:
    """Return the word for the tables between which a draw of all mechanisms is private."""
    return NEIGHBORING_IN_GROUPS if any(mechanism.settings.group for mechanism in mechanisms) else NEIGHBORING


def _location(model, call: list[ModelMechanism], locations: dict[str, np.ndarray]):
    """Return the location that a call released, over "coordinate", with groups over their dim, too."""
    import xarray as xr

    coords = {"coordinate": _coordinate_names(model, call[0])}
    values = [locations[mechanism.settings.name] for mechanism in call]
    group = call[0].settings.group
    if group is None:
        return xr.DataArray(values[0], dims=["coordinate"], coords=coords)
    coords[group.grouping.dim] = [mechanism.settings.group.label for mechanism in call]
    return xr.DataArray(np.stack(values), dims=[group.grouping.dim, "coordinate"], coords=coords)


def describe_prior(location, d: int) -> list[dict]:
    """Return the public record of a prior that is a product or a multivariate normal, and nothing for others."""
    for read in (read_prior, read_normal_vector):
        try:
            return read(location, d).describe()
        except NotAProductPriorError:
            continue
    return []


def total_epsilon(mechanisms: list[ModelMechanism]) -> float:
    """Return the sum over calls of the largest epsilon of a call's groups, for a person, rounded upwards."""
    return basic_composition(costs_of_calls(mechanisms))


def _coordinate_names(model, mechanism: ModelMechanism) -> list[str]:
    """Return the model's labels of the location, or the names of the table's columns."""
    location, axes = mechanism.location, 1
    if mechanism.settings.group is not None:
        row = row_of(location)
        location, axes = (location, 1) if row is None else (row[0], 2)
    dims = model.named_vars_to_dims.get(location.name) or ()
    labels = model.coords.get(dims[-1]) if len(dims) == axes and dims[-1] is not None else None
    return [str(name) for name in (labels if labels is not None else mechanism.settings.columns)]


def _parameter(model, name: str, value: np.ndarray):
    import xarray as xr

    dims = [dim or f"{name}_dim_{i}" for i, dim in enumerate(model.named_vars_to_dims.get(name) or [None] * value.ndim)]
    coords = {dim: [str(c) for c in model.coords[dim]] for dim in dims if model.coords.get(dim) is not None}
    return xr.DataArray(value, dims=dims, coords=coords)


def to_datatree(model, posterior: dict[str, np.ndarray], simulation: bool):
    """Return a DataTree with the free variables and the model's Deterministics."""
    import arviz_base
    import pymc as pm

    coords = {dim: list(labels) for dim, labels in model.coords.items() if labels is not None}
    dims = {
        name: [dim or f"{name}_dim_{i}" for i, dim in enumerate(names)]
        for name, names in model.named_vars_to_dims.items()
        if name in posterior
    }
    idata = arviz_base.from_dict({"posterior": posterior}, coords=coords, dims=dims)
    if model.deterministics:
        pm.compute_deterministics(idata, model=model, extend_dataset=True, progressbar=False)
    idata["posterior"].attrs.update(
        {"inference_library": "pymc_dpdepth", "curator_side": "not releasable", "simulation": str(simulation)}
    )
    return idata
