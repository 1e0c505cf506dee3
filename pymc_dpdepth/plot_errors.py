"""Errors of a private median against n and epsilon. Made of synthetic rows, so it may be shown to anyone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pymc_dpdepth.plot_marks import SYNTHETIC, marked_figure, stamp
from pymc_dpdepth.synthetic_errors import CONTENTS, error_grid

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_error"]

SIZE = (6.4, 4.4)  # inches
COLORS, LIGHTEST, DARKEST = "viridis", 0.0, 0.85
NONPRIVATE_COLOR = "#333333"
NOISE = 2.0  # standard errors drawn on either side
ALONG = {"n": ("epsilon", "rows n"), "epsilon": ("n", "epsilon")}


def plot_error(population: Any, *, x: str = "n", ax: Axes | None = None, **settings: Any) -> Figure:
    """Draw the error of a private median against the number of rows, or epsilon, on synthetic rows.

    Parameters
    ----------
    population : callable, PyMC distribution or xarray.Dataset
        As `error_grid` takes it; or the Dataset that `error_grid` returned, to draw it again.
    x : {"n", "epsilon"}
        What the horizontal axis is; there is a line for each value of the other.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure, in no window.
    **settings : dict
        Of `error_grid`: n, epsilon, prior and so on. None with a Dataset.

    Returns
    -------
    matplotlib.figure.Figure
        Root mean square distances from the target in interquartile ranges of the population, on logarithmic axes, with
        two standard errors; the error of the tables' own coordinatewise medians, without privacy, is a black line.
        `releasable` is True, as no private row is in it; where `ax` was given, what else is in the figure decides, and
        a figure that this package did not make gets no mark.

    Raises
    ------
    NoExactSamplerError
        A ValueError, if this prior and depth have no exact sampler.
    ValueError, TypeError
        If an argument is not usable.

    Notes
    -----
    No private row is used, so nothing is charged; the population must be chosen without them.

    Examples
    --------
    >>> import pymc_dpdepth as dpd
    >>> figure = dpd.plot_error(
    ...     lambda generator, n: generator.normal(size=(n, 2)), n=[50, 500], epsilon=[0.5, 2.0], prior="normal(0, 5)",
    ...     directions="axes", replicates=10, random_seed=1, progressbar=False,
    ... )
    >>> figure.releasable, figure.axes[0].get_xlabel()
    (True, 'rows n')
    """
    import xarray as xr

    if x not in ALONG:
        raise ValueError(f"x: expected one of {tuple(ALONG)}, got {x!r}.")
    if isinstance(population, xr.Dataset):
        errors = population
        if settings:
            raise TypeError(f"{', '.join(settings)}: the Dataset of error_grid has these already; leave them out.")
        if errors.attrs.get("contents") != CONTENTS or "distance_rms" not in errors:
            raise ValueError("population: expected the Dataset that dpd.error_grid returned, got another one.")
    else:
        errors = error_grid(population, **settings)
    if ax is None:
        ax = marked_figure(SYNTHETIC, figsize=SIZE).add_subplot()
    line_dim, label = ALONG[x]
    _draw_lines(ax, errors, x, line_dim)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xticks(errors[x].values, [f"{value:g}" for value in errors[x].values])
    ax.set_xticks([], minor=True)
    ax.set_xlabel(label)
    ax.set_ylabel("rms distance, in interquartile ranges")
    ax.set_title(f"Error of a private median, {errors.attrs['replicates']} synthetic tables", fontsize=11)
    ax.legend(fontsize=8)
    for side in ("right", "top"):
        ax.spines[side].set_visible(False)
    return stamp(ax, SYNTHETIC)


def _draw_lines(axes: Any, errors: Any, x: str, line_dim: str) -> None:
    """Draw a line for each value of the other dimension, and those without privacy."""
    from matplotlib import colormaps

    values = errors[line_dim].values
    shades = colormaps[COLORS](np.linspace(DARKEST, LIGHTEST, len(values)))
    for value, color in zip(values, shades, strict=True):
        one = errors.sel({line_dim: value})
        rms, noise = one["distance_rms"].values, NOISE * one["standard_error"].values
        # On a logarithmic axis a bar must not reach 0.
        below = np.minimum(noise, 0.9 * rms)
        axes.errorbar(
            one[x].values,
            rms,
            yerr=[below, noise],
            color=color,
            marker="o",
            markersize=4,
            label=f"{line_dim} = {value:g}",
        )
        if x == "epsilon":  # each n has its own error without privacy
            axes.axhline(float(one["nonprivate_rms"]), color=color, linestyle=":", linewidth=1.2)
    if x == "epsilon":
        axes.plot([], [], ":", color=NONPRIVATE_COLOR, label="without privacy")
    else:
        axes.plot(errors["n"].values, errors["nonprivate_rms"].values, color=NONPRIVATE_COLOR, label="without privacy")
