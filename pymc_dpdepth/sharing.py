"""Trees of draws on their way to a file: in a form that can be written, or stripped of all that is private."""

from __future__ import annotations

import json
from importlib import metadata
from typing import Any

import numpy as np

from pymc_dpdepth.labelled import DELTA, describe_prior, neighboring_of, total_epsilon
from pymc_dpdepth.location_rows import row_variable
from pymc_dpdepth.smc_stats import EXPONENT, has_stages, stages
from pymc_dpdepth.trace_values import mechanisms_of

__all__ = ["strip_private", "writable"]

CONTENTS = "public settings of a model: no draw, and no function of the rows. A draw leaves only as a dpd.Release."
SETTINGS = "public_settings"
# What a sampler's own attributes may say; anything else they hold, times above all, may depend on the rows.
LIBRARIES = ("pymc", "pymc_dpdepth", "nutpie", "numpyro", "blackjax")
STAGE = "stage"
PLAIN = "biufSU"  # NumPy's kinds that netCDF and zarr can hold


def strip_private(idata: Any, *, model: Any = None) -> Any:
    """Return a tree of public settings alone, to share a model without its data.

    What is kept stands on an allow-list: the sampling library, its version where that is the one installed here, and,
    from the model, the public record of each mechanism (depth, directions, epsilon, n, sensitivity, units, column
    names) with its prior, where that is a product of univariate families or a multivariate normal with fixed
    parameters; of other priors, hierarchical ones among them, the list is empty. Nothing else is: no draws, sample
    statistics, log densities, observed or constant data, coordinates, attributes or names of other variables, and no
    numbers of chains and draws, which are often chosen by looking. A draw leaves only as a `Release`.

    Parameters
    ----------
    idata : DataTree
        Any tree of draws. It is left as it is.
    model : pm.Model, optional
        Its model. A tree of draws holds no settings, so without the model the library's name is all that is left.

    Returns
    -------
    DataTree
        Attributes at the root, with the mechanisms and priors as JSON text, and a group "public_settings" with epsilon,
        n, sensitivity and max_rows_per_unit over "mechanism". Both netCDF and zarr can hold it.

    Raises
    ------
    TypeError
        If `idata` is no DataTree, or `model` no model.
    ValueError
        If the model has no mechanism.

    Notes
    -----
    Costs nothing: settings are chosen without the rows. That they were is yours to know: a prior that was read off the
    rows is as private as they are. n is public by definition of the neighbours, replace-one.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_dpdepth as dpd
    >>> with pm.Model() as model:
    ...     location = pm.Normal("location", 0, 10, shape=2)
    ...     _ = dpd.exponential_mechanism("median", location, np.arange(20.0).reshape(10, 2), epsilon=1.0)
    ...     idata = dpd.sample_exact(draws=50)
    >>> shared = dpd.strip_private(idata, model=model)
    >>> "posterior" in shared.children, float(shared["public_settings"]["epsilon"].sel(mechanism="median"))
    (False, 1.0)
    """
    import xarray as xr

    from pymc_dpdepth import __version__

    _check_tree(idata)
    attrs = {"contents": CONTENTS, "made_by": "pymc_dpdepth", "made_by_version": __version__} | _library(idata)
    if model is None:
        return xr.DataTree(xr.Dataset(attrs=attrs))
    mechanisms = mechanisms_of(model)
    settings = [mechanism.settings for mechanism in mechanisms]
    attrs |= {
        "epsilon": total_epsilon(mechanisms),
        "delta": DELTA,
        "neighboring": neighboring_of(mechanisms),
        "mechanisms": json.dumps([one.describe() | {"columns": list(one.columns)} for one in settings]),
        "priors": json.dumps(
            {m.settings.name: describe_prior(row_variable(m.location), m.settings.d) for m in mechanisms}
        ),
    }
    fields = ("epsilon", "n", "sensitivity", "max_rows_per_unit")
    table = xr.Dataset(
        {name: ("mechanism", [getattr(one, name) for one in settings]) for name in fields},
        coords={"mechanism": [one.name for one in settings]},
    )
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=attrs), f"/{SETTINGS}": table})


def _library(idata: Any) -> dict[str, str]:
    """Return the name of the sampling library, if it is a known one, and its version, if that is installed here."""
    posterior = idata.children.get("posterior")
    attrs = {} if posterior is None else posterior.attrs
    name, version = attrs.get("inference_library"), attrs.get("inference_library_version")
    if name not in LIBRARIES:
        return {}
    known = isinstance(version, str) and version == _installed(name)
    return {"inference_library": name} | ({"inference_library_version": version} if known else {})


def _installed(library: str) -> str | None:
    """Return the version that is installed here: a text that comes from no tree, so no number can hide in it."""
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return None


def writable(idata: Any) -> Any:
    """Return a tree of draws that `to_netcdf` and `to_zarr` can write, also of `pm.sample_smc` with several chains.

    SMC's chains have as many stages as they need, so PyMC stores their statistics as objects, which no file format can
    hold. Here they become tables of numbers over ("chain", "stage"), with NaN behind a chain's last stage; so do those
    of a single chain, whose stages PyMC calls chains. Other arrays of objects become numbers, texts, or tables padded
    with NaN; what is none of these is left out. Attributes that are neither numbers nor texts become JSON text.

    Parameters
    ----------
    idata : DataTree
        Draws of any sampler. It is left as it is.

    Returns
    -------
    DataTree
        A copy. `dpd.diagnose` reads its statistics as before.

    Raises
    ------
    TypeError
        If `idata` is no DataTree, or holds complex numbers, which netCDF cannot.

    Notes
    -----
    The copy is as private as the draws: a file of it stays with the curator. `strip_private` is what may leave. Writing
    takes a backend, ``pip install pymc_dpdepth[io]``; neither it nor this function writes rows, since a tree of draws
    has none unless you put them there.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_dpdepth as dpd
    >>> import arviz_base, xarray as xr
    >>> idata = arviz_base.from_dict({"posterior": {"location": np.zeros((2, 5))}})
    >>> ragged = np.empty(2, dtype=object)
    >>> ragged[:] = [[0.5, 1.0], [0.3, 0.7, 1.0]]
    >>> stats = {"beta": ("chain", ragged), "log_marginal_likelihood": ("chain", ragged)}
    >>> idata["sample_stats"] = xr.Dataset(stats)
    >>> dpd.writable(idata)["sample_stats"]["beta"].shape
    (2, 3)
    """
    import xarray as xr

    _check_tree(idata)
    chains = idata["posterior"].sizes.get("chain", 1) if "posterior" in idata.children else 1
    return xr.DataTree.from_dict({node.path: _plain(node.to_dataset(inherit=False), chains) for node in idata.subtree})


def _check_tree(idata: Any) -> None:
    import xarray as xr

    if not isinstance(idata, xr.DataTree):
        raise TypeError(f"idata: expected a DataTree, got {type(idata).__name__}.")


def _plain(group: Any, chains: int) -> Any:
    """Return a Dataset without arrays of objects."""
    import xarray as xr

    smc = _tables_of_stages(group, chains) if has_stages(group) else {}
    variables = {name: array.variable for name, array in group.data_vars.items() if name not in smc}
    for name, variable in variables.items():
        variables[name] = variable if variable.dtype.kind in PLAIN + "Mm" else _without_objects(str(name), variable)
    variables = {name: variable for name, variable in variables.items() if variable is not None}
    used = {dim for variable in variables.values() for dim in variable.dims}
    # The labels of dims that are gone, the stages that PyMC numbers for each statistic, go with them.
    coords = {name: array for name, array in group.coords.items() if set(array.dims) <= used}
    attrs = {name: _plain_attribute(value) for name, value in group.attrs.items()}
    if smc:
        coords["chain"] = np.arange(chains)
    return xr.Dataset(variables | smc, coords=coords, attrs=attrs)


def _tables_of_stages(group: Any, chains: int) -> dict[str, Any]:
    """Return SMC's statistics as tables (chain, stage)."""
    length = max(len(chain) for chain in stages(group[EXPONENT], chains))
    tables = {}
    for name, array in group.data_vars.items():
        if array.dims[:1] == ("chain",):
            rows = [chain[:length] for chain in stages(array, chains)]
            tables[name] = (("chain", STAGE), _padded(rows, length))
    return tables


def _without_objects(name: str, variable: Any) -> Any:
    """Return a variable of objects as one of numbers or texts, padded where lengths differ, or None."""
    import xarray as xr

    entries = list(variable.values.ravel())
    if any(np.iscomplexobj(entry) for entry in entries):
        raise TypeError(
            f"idata: expected real numbers, {name!r} is complex. Store .real and .imag as two variables, or drop it."
        )
    if all(isinstance(entry, str) for entry in entries):
        return xr.Variable(variable.dims, variable.values.astype(str), variable.attrs)
    try:
        rows = [np.atleast_1d(np.asarray(entry, dtype=np.float64)).ravel() for entry in entries]
    except (TypeError, ValueError):
        return None
    length = max((len(row) for row in rows), default=1)
    table = _padded(rows, length).reshape(*variable.shape, length)
    if length == 1:
        return xr.Variable(variable.dims, table[..., 0], variable.attrs)
    return xr.Variable((*variable.dims, f"{name}_entry"), table, variable.attrs)


def _padded(rows: list[np.ndarray], length: int) -> np.ndarray:
    table = np.full((len(rows), length), np.nan)
    for row, entries in zip(table, rows, strict=True):
        row[: len(entries)] = entries
    return table


def _plain_attribute(value: Any) -> Any:
    """Return an attribute as a number, a text or a list of texts, which netCDF can hold; others as JSON text."""
    if isinstance(value, str | int | float | np.integer | np.floating) and not isinstance(value, bool):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in PLAIN:
        return value
    if isinstance(value, list | tuple) and value and all(isinstance(entry, str) for entry in value):
        return list(value)
    return json.dumps(value, default=str)
