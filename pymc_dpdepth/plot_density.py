"""The density of a mechanism against its prior and the non-private median. A function of raw rows, for the curator."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from pymc_dpdepth.mechanism import positive_integer
from pymc_dpdepth.mechanism_law import Law, law_of
from pymc_dpdepth.plot_marks import RAW_ROWS, marked_figure, note_curator_side
from pymc_dpdepth.record import Release

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_mechanism"]

PLANE = 2
MOST_PANELS, COLUMNS = 12, 3
PLANE_SIZE, PANEL_SIZE, TITLE_HEIGHT = (6.8, 6.4), (3.4, 2.3), 0.8  # inches
MARGIN_SHARE = 0.28  # height of a marginal over that of the plane
PRIOR_COLOR, LAW_COLOR, MEDIAN_COLOR, RELEASE_COLOR = "#7a9cc6", "#1b6e6a", "#e08214", "#b3401f"
LAW_MAP, PRIOR_LINES = "BuGn", 6
HEADROOM = 1.12


def plot_mechanism(
    model: Any = None,
    *,
    mechanism: str | None = None,
    idata: Any = None,
    draws: int = 1000,
    release: Release | None = None,
    figsize: tuple[float, float] | None = None,
) -> Figure:
    r"""Draw the density of an exponential mechanism with its prior and the non-private median. Not releasable.

    In one and two dimensions, where there are exact draws and the prior is a product or a `pm.MvNormal`, it is

        density(theta) ∝ exp(beta * D(theta; X)) * prior(theta)

    on a grid of 600, or 140 by 140, cells; otherwise histograms of draws. The frame holds the middle 99% of the draws
    in each coordinate and the median.

    Parameters
    ----------
    model : pm.Model, optional
        With one or more mechanisms. The model on the context stack by default.
    mechanism : str, optional
        Name of the mechanism, such as "median", or "median[label]" of a group; needed where there are several.
    idata : DataTree, optional
        Draws of `pm.sample`, `pm.sample_smc` or `dpd.sample_exact` to show as histograms.
    draws : int
        Exact draws, where none are given.
    release : Release, optional
        A released location of this mechanism is marked too.
    figsize : tuple of float, optional
        Width and height in inches.

    Returns
    -------
    matplotlib.figure.Figure
        In two dimensions the plane with a marginal on each side; otherwise a panel for each coordinate, at most 12.
        `releasable` is False, and its pictures say so in their metadata.

    Raises
    ------
    NoExactSamplerError
        A ValueError, if there are no exact draws and `idata` is left out.
    ValueError, TypeError
        If there is no such mechanism, or an argument does not fit the model.

    Notes
    -----
    Costs no epsilon and is for the curator alone: the density is a function of the rows, and would give them away.

    Values that many rows share are drawn by the exact samplers with their full closed depth, but have no width in a
    density: where that matters, ``idata=dpd.sample_exact()`` shows them.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_dpdepth as dpd
    >>> with pm.Model() as model:
    ...     location = pm.Normal("location", 0, 10, shape=2)
    ...     _ = dpd.exponential_mechanism("median", location, np.arange(20.0).reshape(10, 2), epsilon=1.0)
    ...     figure = dpd.plot_mechanism(draws=200)
    >>> len(figure.axes), figure.releasable
    (3, False)
    """
    import pymc as pm

    draws = positive_integer(draws, "draws")
    law = law_of(pm.modelcontext(model), mechanism, idata, draws)
    released = _released(release, law)
    d = law.mechanism.settings.d
    if law.joint is not None:
        figure = marked_figure(RAW_ROWS, figsize=figsize or PLANE_SIZE)
        plane = _draw_plane(figure, law, released)
    else:
        shown = min(d, MOST_PANELS)
        columns = min(shown, COLUMNS)
        rows = math.ceil(shown / columns)
        size = (max(2 * PANEL_SIZE[0], columns * PANEL_SIZE[0]), rows * PANEL_SIZE[1] + TITLE_HEIGHT)
        figure = marked_figure(RAW_ROWS, figsize=figsize or size)
        for j in range(shown):
            plane = figure.add_subplot(rows, columns, j + 1)
            _draw_marginal(plane, law, j, released)
            plane.set_xlabel(law.mechanism.settings.columns[j], parse_math=False)
        handles, labels = plane.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8)
    figure.suptitle(_title(law), fontsize=11, parse_math=False)
    note_curator_side(plane, above=law.joint is None)
    return figure


def _released(release: Release | None, law: Law) -> np.ndarray | None:
    """Return the released location of the mechanism that is drawn."""
    if release is None:
        return None
    if not isinstance(release, Release):
        raise TypeError(f"release: expected a Release, got {type(release).__name__}; make one with dpd.release.")
    settings = law.mechanism.settings
    array = release.locations.get(settings.call)
    if array is not None and settings.group is not None and settings.group.grouping.dim in array.dims:
        labels = [str(label) for label in array.coords[settings.group.grouping.dim].values]
        array = array[labels.index(settings.group.label)] if settings.group.label in labels else None
    if array is None or array.shape != (settings.d,):
        raise ValueError(f"release: expected a location of {settings.name!r} with {settings.d} coordinates, got none.")
    return np.asarray(array.values)


def _draw_plane(figure: Any, law: Law, released: np.ndarray | None) -> Any:
    """Draw the joint density, and the marginals above and to the right of it."""
    ratios = (1.0, MARGIN_SHARE)
    grid = figure.add_gridspec(2, 2, width_ratios=ratios, height_ratios=ratios[::-1])
    plane = figure.add_subplot(grid[1, 0])
    above, beside = figure.add_subplot(grid[0, 0], sharex=plane), figure.add_subplot(grid[1, 1], sharey=plane)
    x, y = law.edges
    plane.pcolormesh(x, y, law.joint, cmap=LAW_MAP, vmin=0.0)
    if law.joint_prior is not None and np.ptp(law.joint_prior) > 0:
        levels = np.linspace(law.joint_prior.min(), law.joint_prior.max(), PRIOR_LINES + 2)[1:-1]
        middles = [0.5 * (edge[:-1] + edge[1:]) for edge in law.edges]
        plane.contour(*middles, law.joint_prior, levels=levels, colors=PRIOR_COLOR, linewidths=0.9)
    white = {"linestyle": "none", "markeredgecolor": "white"}
    if law.median is not None:
        plane.plot(*([v] for v in law.median[1]), marker="P", color=MEDIAN_COLOR, markersize=9, **white)
    if released is not None:
        plane.plot(*([v] for v in released), marker="*", color=RELEASE_COLOR, markersize=15, **white)
    names = law.mechanism.settings.columns
    plane.set_xlabel(names[0], parse_math=False)
    plane.set_ylabel(names[1], parse_math=False)
    for j, axes in enumerate((above, beside)):
        _draw_marginal(axes, law, j, released, upright=j == 1)
        axes.tick_params(labelbottom=False, labelleft=False)
    handles, labels = above.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8)
    return plane


def _draw_marginal(axes: Any, law: Law, j: int, released: np.ndarray | None, upright: bool = False) -> None:
    """Draw the densities of one coordinate; `upright` with the coordinate along the vertical axis."""
    turned = {"orientation": "horizontal"} if upright else {}
    edges = law.edges[j]
    axes.stairs(law.prior[j], edges, fill=True, color=PRIOR_COLOR, alpha=0.45, label="prior", **turned)
    axes.stairs(law.density[j], edges, color=LAW_COLOR, linewidth=1.6, label="mechanism", **turned)
    line = axes.axhline if upright else axes.axvline
    if law.median is not None:
        line(law.median[1][j], color=MEDIAN_COLOR, linewidth=1.4, label=law.median[0])
    if released is not None:
        line(released[j], color=RELEASE_COLOR, linewidth=1.4, linestyle="--", label="released")
    top = HEADROOM * max(law.density[j].max(), law.prior[j].max())
    (axes.set_xlim if upright else axes.set_ylim)(0.0, top if top > 0 else 1.0)
    (axes.set_ylim if upright else axes.set_xlim)(edges[0], edges[-1])
    (axes.set_xticks if upright else axes.set_yticks)([])
    for side in ("right", "top"):
        axes.spines[side].set_visible(False)


def _title(law: Law) -> str:
    """Return the title."""
    settings = law.mechanism.settings
    depth = settings.depth.name.replace("_", " ")
    cut = f", first {MOST_PANELS} of {settings.d} coordinates" if settings.d > MOST_PANELS else ""
    return f"{settings.name}: {depth}, epsilon {settings.epsilon:g}, n = {settings.n:,}, {law.source}{cut}"
