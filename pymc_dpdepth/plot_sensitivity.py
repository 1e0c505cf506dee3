"""ArviZ's plots of power-scaling for private medians, which say epsilon for likelihood. For the curator."""

from __future__ import annotations

import copy
from typing import Any

from pymc_dpdepth.plot_marks import RAW_DRAWS, marked_figure, note_curator_side_below, stamp
from pymc_dpdepth.prior_sensitivity import LIKELIHOOD_MEANS

__all__ = ["plot_psense"]

KINDS = ("dist", "quantities")
GROUPS = ("log_prior", "log_likelihood")
COMPONENT, LIKELIHOOD, EPSILON = "component_group", "likelihood", "epsilon"


def plot_psense(idata: Any, *, kind: str = "dist", **options: Any) -> Any:
    """Draw how a mechanism's draws react to a stronger or weaker prior, and to a larger or smaller epsilon.

    `az.plot_psense_dist` or `az.plot_psense_quantities`, with the component that they call "likelihood" called
    "epsilon": it is beta * D, and its power alpha belongs to alpha * epsilon.

    Parameters
    ----------
    idata : DataTree
        What `dpd.compute_log_prior_and_potential` returned.
    kind : {"dist", "quantities"}
        Densities with intervals, or means and standard deviations against alpha.
    **options : dict
        Of the function of ArviZ, such as var_names, alphas, prior_var_names, visuals; not `backend`: matplotlib draws.

    Returns
    -------
    arviz_plots.PlotCollection
        Its figure (``plot.get_viz("figure")``) is in no window and not known to pyplot; ``plot.savefig`` and
        `dpd.save_plot` write it. `releasable` is False.

    Raises
    ------
    ValueError
        If `idata` lacks the groups that `dpd.compute_log_prior_and_potential` adds, or has a likelihood of rows.
    TypeError
        If another backend is asked for.

    Notes
    -----
    Costs no epsilon and is for the curator alone: the draws and their densities are functions of the private rows.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_dpdepth as dpd
    >>> with pm.Model() as model:
    ...     location = pm.Normal("location", 0, 10, shape=2)
    ...     _ = dpd.exponential_mechanism("median", location, np.arange(20.0).reshape(10, 2), epsilon=5.0)
    ...     idata = dpd.compute_log_prior_and_potential(dpd.sample_exact(draws=300))
    >>> plot = dpd.plot_psense(idata, kind="quantities", var_names=["location"])
    >>> plot.releasable
    False
    """
    import arviz_plots
    from matplotlib import pyplot

    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"kind: expected one of {KINDS}, got {kind!r}.")
    if options.pop("backend", "matplotlib") != "matplotlib":
        raise TypeError(
            "backend: expected matplotlib, which alone writes the mark; call az.plot_psense_dist for others."
        )
    _check(idata)
    labeller = _relabelled(options.pop("labeller", None))
    visuals = dict(options.pop("visuals", None) or {})
    legend = visuals.get("legend", {})
    if kind == "quantities" and legend is not False:  # the components are its legend; of "dist" they are its columns
        visuals["legend"] = {"title": "power of", "labeller": labeller, **legend}
    if "plot_collection" not in options:
        figure_class = type(marked_figure(RAW_DRAWS))
        given = options.get("figure_kwargs", {})
        options["figure_kwargs"] = {"FigureClass": figure_class, "layout": "constrained", **given}
    draw = arviz_plots.plot_psense_dist if kind == "dist" else arviz_plots.plot_psense_quantities
    known = set(pyplot.get_fignums())
    try:
        plot = draw(idata, backend="matplotlib", labeller=labeller, visuals=visuals, **options)
    finally:  # arviz-plots makes its figures by pyplot, which would keep them
        for number in set(pyplot.get_fignums()) - known:
            pyplot.close(number)
    figure = stamp(plot.get_viz("figure"), RAW_DRAWS)
    note_curator_side_below(figure)
    return stamp(plot, RAW_DRAWS)


def _check(idata: Any) -> None:
    """Refuse draws without log densities, and a likelihood that is none of ours."""
    missing = [name for name in ("posterior", *GROUPS) if getattr(idata, name, None) is None]
    if missing:
        raise ValueError(
            f"idata: expected a DataTree with the groups {GROUPS}, it lacks {missing}. Add them with "
            "dpd.compute_log_prior_and_potential(idata, model=model)."
        )
    if idata["log_likelihood"].attrs.get("meaning") != LIKELIHOOD_MEANS:
        raise ValueError(
            "idata: expected log_likelihood as dpd.compute_log_prior_and_potential adds it; this one is of another "
            "origin, so it is no epsilon. Use az.plot_psense_dist for likelihoods."
        )


def _relabelled(labeller: Any) -> Any:
    """Return a labeller, by default ArviZ's own, that calls the likelihood component epsilon."""
    from arviz_base.labels import BaseLabeller

    labeller = copy.copy(BaseLabeller() if labeller is None else labeller)
    base = type(labeller)

    def dim_coord_to_str(self, dim, coord_val, coord_idx):
        ours = dim == COMPONENT and coord_val == LIKELIHOOD
        return base.dim_coord_to_str(self, dim, EPSILON if ours else coord_val, coord_idx)

    labeller.__class__ = type("EpsilonLabeller", (base,), {"dim_coord_to_str": dim_coord_to_str})
    return labeller
