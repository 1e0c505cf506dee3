"""Pictures. `plot_release` is made from a Release and its public prior alone, so it may leave with the Release."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from pymc_dpdepth.record import Release

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_release", "save_release_plot"]

PANELS = 12  # more would be too small to read
COLUMNS = 3
PANEL_SIZE = (3.6, 2.5)  # inches
QUANTILES = (0.005, 0.995)  # of the prior: the range that a panel shows, stretched to hold the released value
POINTS = 400
EDGE = 0.06  # share of the range left free at either side
METADATA = {"Title": "Private median", "Description": "Releasable: made from a Release and its public prior alone."}
PRIOR_COLOR, VALUE_COLOR = "#8fa8c8", "#b3202c"
DPI = 150


def plot_release(release: Release, *, mechanism: str | None = None) -> Figure:
    """Draw each coordinate's prior density and released value.

    Parameters
    ----------
    release : Release
    mechanism : str, optional
        Which location, where the release holds several.

    Returns
    -------
    matplotlib.figure.Figure
        Not registered with pyplot; save it with ``figure.savefig(path)`` or `save_release_plot`.

    Raises
    ------
    ValueError
        If the release holds several locations and `mechanism` names none of them.

    Notes
    -----
    The picture uses nothing but the Release, so it costs no privacy beyond it. A coordinate whose prior is not recorded
    (not a product of univariate families) is drawn without a density. At most 12 coordinates are drawn.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_dpdepth as dpd
    >>> release = dpd.private_median(np.arange(50.0), epsilon=1.0, prior="normal(0, 100)")
    >>> len(dpd.plot_release(release).axes)
    1
    """
    from matplotlib.figure import Figure

    if mechanism is None and len(release.locations) == 1:
        (mechanism,) = release.locations
    if mechanism not in release.locations:
        raise ValueError(f"mechanism: expected one of {sorted(release.locations)}, got {mechanism!r}.")
    value = release.locations[mechanism]
    names, values = value.coords["coordinate"].values, value.values
    shown = min(len(values), PANELS)
    columns = 2 if shown == 4 else min(shown, COLUMNS)  # noqa: PLR2004
    rows = math.ceil(shown / columns)
    width, height = max(columns, 1.6) * PANEL_SIZE[0], rows * PANEL_SIZE[1] + 0.7
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for j in range(shown):
        _panel(axes[j], str(names[j]), float(values[j]), _density(release.priors.get(mechanism, []), j))
    for unused in axes[shown:]:
        unused.remove()
    figure.suptitle(_title(release, shown, len(values)), fontsize=11)
    return figure


def save_release_plot(release: Release, path: str | os.PathLike, *, mechanism: str | None = None) -> None:
    """Write the picture of a Release as PNG, with metadata that say what it was made from.

    Parameters
    ----------
    release : Release
    path : path
        File to write, ending in .png.
    mechanism : str, optional
        Which location, where the release holds several.
    """
    plot_release(release, mechanism=mechanism).savefig(path, format="png", dpi=DPI, metadata=METADATA)


def _title(release: Release, shown: int, total: int) -> str:
    words = {True: "SIMULATION, not private. ", "unknown": "Trace of unknown origin. "}.get(release.simulation, "")
    part = "" if shown == total else f", first {shown} of {total} coordinates"
    first = f"{words}Private median, epsilon = {release.epsilon:g}, guarantee: {release.guarantee}{part}"
    return f"{first}\nline: released value; shaded: prior"


def _panel(axes: Axes, name: str, value: float, density: tuple[np.ndarray, np.ndarray] | None) -> None:
    """Draw one coordinate."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    if density is not None:
        x, height = density
        axes.fill_between(x, height, color=PRIOR_COLOR, alpha=0.6, linewidth=0, label="prior")
        low, high = min(x[0], value), max(x[-1], value)
        axes.set_ylim(0, 1.3 * height.max())  # room for the number above the curve
    else:
        low, high = value - 1.0, value + 1.0
        axes.set_ylim(0, 1)
    axes.axvline(value, color=VALUE_COLOR, linewidth=1.6)
    free = EDGE * (high - low)
    axes.set_xlim(low - free, high + free)
    right = value > 0.5 * (low + high)
    axes.annotate(
        _number(value),
        (value, 0.97),
        xycoords=("data", "axes fraction"),
        xytext=(-4 if right else 4, 0),
        textcoords="offset points",
        ha="right" if right else "left",
        va="top",
        color=VALUE_COLOR,
        fontsize=9,
    )
    axes.set_title(name, fontsize=10)
    axes.set_yticks([])
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: _number(x)))
    axes.tick_params(labelsize=8)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def _number(x: float) -> str:
    """Return a number with separators and at most five significant digits."""
    return f"{x:,.0f}" if abs(x) >= 1e4 else f"{x:,.5g}"


def _density(prior: list[dict[str, Any]], j: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return points and the prior density of coordinate j, by differences of its tails, or None without a record.

    Nothing is compiled: only families that the package computes itself are drawn.
    """
    from pymc_dpdepth.families import CLOSED_FORMS

    families = {family.name: family for family in CLOSED_FORMS.values()}
    for block in prior:
        if block["start"] <= j < block["stop"] and block["family"] in families:
            family = families[block["family"]]
            parameters = [
                np.asarray([float(entry[j - block["start"]] if isinstance(entry, list) else entry)])
                for entry in (block["parameters"][name] for name in family.parameter_names)
            ]
            x = np.linspace(*(_quantile(family, u, parameters) for u in QUANTILES), POINTS + 1)
            lower, upper = (tail[:, 0] for tail in family.tails(x[:, None], *parameters))
            # Differences of the smaller tail keep their digits on both sides of the median.
            mass = np.where(lower[1:] < upper[1:], np.diff(lower), -np.diff(upper))
            return 0.5 * (x[1:] + x[:-1]), mass / np.diff(x)
    return None


def _quantile(family, u: float, parameters: list[np.ndarray]) -> float:
    tail = np.full((1, 1), min(u, 1.0 - u))
    return float((family.from_lower if u < 0.5 else family.from_upper)(tail, *parameters)[0, 0])  # noqa: PLR2004
