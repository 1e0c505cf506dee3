"""Plots of a Release. They are drawn from the Release and its public prior alone, so they may leave with it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pymc_dpdepth.mechanism_law import cell_masses
from pymc_dpdepth.plot_marks import marked_figure, note_simulation, record_mark, save_plot
from pymc_dpdepth.record import Release

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_release", "readable_number", "save_release_plot"]

MOST_PANELS = 12
COLUMNS = 3
PANEL_WIDTH, PANEL_HEIGHT, TITLE_HEIGHT, SMALLEST_WIDTH = 3.6, 2.3, 0.9, 6.6  # inches

# The x axis shows the middle 99% of the prior, and is extended to the released value.
SHOWN_TAIL = 0.005
CELLS = 800  # of the x axis; the prior's mass in each gives its density
PADDING = 0.04  # of the axis on both sides, so that a line at an end is seen
HEADROOM = 1.35  # height of the axis over the highest density, which leaves room for the number
# A positive prior that spreads over more than four powers of ten is unreadable on a linear axis.
LOG_RATIO = 1e4

SIGNIFICANT = 6
LONGEST_NAME, LONGEST_PRIOR = 30, 44  # characters that fit a panel
PLAIN_BELOW = 1e7  # tick labels of larger numbers would run into each other when written out
PRIOR_COLOR, VALUE_COLOR, TEXT_COLOR = "#7a9cc6", "#b3401f", "#444444"


# Depth values are drawn as dots, with bars as long as nine tenths of the noise: P(|noise| <= length * scale) = .9.
BAR_LENGTHS = {"laplace": math.log(10.0), "gaussian": 1.6448536269514722}
MOST_NAMED_POINTS, LONGEST_POINT = 6, 16  # points whose coordinates fit below the axis, and characters of each
DOTS_WITH_BARS = 60  # beyond, bars run into each other


@dataclass(frozen=True)
class _Panel:
    """One coordinate: its name, its released value, and its prior where the record has it."""

    name: str
    value: float
    family: Any
    parameters: tuple[np.ndarray, ...]
    prior_text: str


@dataclass(frozen=True)
class _PointsPanel:
    """Depth values of one mechanism, with the length of their bars where noise was added to the depth itself."""

    name: str
    values: np.ndarray
    labels: list[str] | None
    bar: float | None


def plot_release(
    release: Release, *, mechanism: str | None = None, figsize: tuple[float, float] | None = None
) -> Figure:
    """Draw the released values: locations over their prior densities, depth values with the size of their noise.

    Parameters
    ----------
    release : Release
        One or several locations. At most 12 coordinates are drawn, the first ones; the title says so. Depth values have
        one panel, with all points.
    mechanism : str, optional
        Draw the location of this mechanism alone.
    figsize : tuple of float, optional
        Width and height in inches.

    Returns
    -------
    matplotlib.figure.Figure
        One panel for each coordinate, in no window; show it in a notebook, or write it with `save_release_plot` or
        ``figure.savefig``. A prior that is not a product of univariate families is not drawn. Bars at depth values are
        as long as 90% of the noise, which is public; there are none where noise was added to the outlyingness. Its
        attribute `releasable` is True, unless the release is a simulation; `dpd.save_plot` writes the mark into files.

    Raises
    ------
    TypeError
        If `release` is not a Release. Plots of a trace or of rows stay with the curator.
    ValueError
        If no location has the name `mechanism`, or there is no value to draw since the test refused it.

    Notes
    -----
    Costs no privacy: the picture is a function of the Release, which is public.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_dpdepth as dpd
    >>> rows = np.arange(20.0).reshape(10, 2)
    >>> release = dpd.private_median(rows, epsilon=1.0, prior=pm.Normal.dist(0, 10, shape=2))
    >>> len(dpd.plot_release(release).axes)
    2
    """
    if not isinstance(release, Release):
        raise TypeError(f"release: expected a Release, got {type(release).__name__}; make one with dpd.release.")
    refused = [record["name"] for record in release.mechanisms if record.get("refused")]
    if mechanism in refused or not release.locations:
        raise ValueError(
            "release: expected a value to draw; the test refused it (release.refused is True), which is an output, and "
            "paid for. Draw releases that are not refused; nothing but the refusal may be read from this one."
        )
    if mechanism is not None and mechanism not in release.locations:
        raise ValueError(f"mechanism: expected one of {sorted(release.locations)}, got {mechanism!r}.")
    drawn = [mechanism] if mechanism is not None else list(release.locations)
    if any(release.locations[name].ndim > 1 for name in drawn):
        raise ValueError(
            f"release: expected locations over one dimension; {drawn} have groups too, which dpd.plot_groups draws."
        )
    panels = list(_panels(release, drawn))
    total = sum(1 if "point" in release.locations[name].dims else release.locations[name].size for name in drawn)
    columns = 2 if len(panels) == 2 * 2 else min(COLUMNS, len(panels))
    rows = math.ceil(len(panels) / columns)
    size = (max(SMALLEST_WIDTH, PANEL_WIDTH * columns), PANEL_HEIGHT * rows + TITLE_HEIGHT)
    figure = marked_figure(record_mark(release), figsize=figsize or size)
    for position, panel in enumerate(panels):
        axes = figure.add_subplot(rows, columns, position + 1)
        (_draw_points if isinstance(panel, _PointsPanel) else _draw_panel)(axes, panel)
    figure.suptitle("\n".join(_title(release, panels, total)), fontsize=11, linespacing=1.4)
    if release.simulation is not False:
        note_simulation(figure, release.simulation)
    return figure


def save_release_plot(
    release: Release,
    path: str | os.PathLike,
    *,
    mechanism: str | None = None,
    figsize: tuple[float, float] | None = None,
) -> None:
    """Write the plot of a Release as a PNG whose metadata say that it may leave.

    Parameters
    ----------
    release : Release
        What to draw.
    path : path
        File to write; its name ends in .png.
    mechanism : str, optional
        Draw the location of this mechanism alone.
    figsize : tuple of float, optional
        Width and height in inches.

    Raises
    ------
    ValueError
        If the name ends in something else; ``dpd.save_plot(dpd.plot_release(release), path)`` writes PDF and SVG, too.
    """
    _require_png(path)
    save_plot(plot_release(release, mechanism=mechanism, figsize=figsize), path)


def _require_png(path: str | os.PathLike) -> Path:
    """Return the path, or refuse a name that ends in something else."""
    path = Path(path)
    if path.suffix.lower() != ".png":
        raise ValueError(f"Expected a name that ends in .png; got {path.name}.")
    return path


def readable_number(value: float) -> str:
    """Return a number with six significant digits, all digits before the point, and commas between thousands."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    magnitude = math.floor(math.log10(abs(value)))
    if not -SIGNIFICANT < magnitude < 2 * SIGNIFICANT:
        return f"{value:.{SIGNIFICANT}g}"
    text = f"{value:,.{max(0, SIGNIFICANT - 1 - magnitude)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _panels(release: Release, drawn: list[str]) -> Iterator[_Panel | _PointsPanel]:
    """Yield the first panels of the locations that are drawn."""
    several = len(drawn) > 1
    left = MOST_PANELS
    for mechanism in drawn:
        array = release.locations[mechanism]
        if "point" in array.dims:
            if left:
                yield _points_panel(release, mechanism)
                left -= 1
            continue
        names = [str(name) for name in array.coords["coordinate"].values[:left]]
        for j, name in enumerate(names):
            family, parameters, text = _prior_of(release.priors.get(mechanism, []), j)
            label = f"{mechanism}: {name}" if several else name
            yield _Panel(label, float(array.values[j]), family, parameters, text)
        left -= len(names)


def _points_panel(release: Release, mechanism: str) -> _PointsPanel:
    """Return the panel of depth values."""
    values = np.asarray(release.locations[mechanism].values)
    (record,) = (record for record in release.mechanisms if record["name"] == mechanism)
    labels = None
    if "points" in record and len(values) <= MOST_NAMED_POINTS:
        labels = [_cut(f"({', '.join(f'{x:.3g}' for x in point)})", LONGEST_POINT) for point in record["points"]]
    # Noise with a vector sensitivity is that of depth values; propose-test-release adds it to the outlyingness.
    in_depth = "vector_sensitivity" in record and release.sampler in BAR_LENGTHS
    bar = BAR_LENGTHS[release.sampler] * record["noise_scale"] if in_depth else None
    return _PointsPanel(mechanism, values, labels, bar)


def _prior_of(blocks: list[dict[str, Any]], j: int) -> tuple[Any, tuple[np.ndarray, ...], str]:
    """Return the family, the parameters and the text of coordinate j's prior, rebuilt from the record."""
    for block in blocks:
        if block["start"] <= j < block["stop"]:
            numbers = {
                name: float(value[j - block["start"]] if isinstance(value, list) else value)
                for name, value in block["parameters"].items()
            }
            parameters = tuple(np.array([number]) for number in numbers.values())
            return _family(block["family"], parameters), parameters, _prior_text(block["family"], numbers)
    return None, (), "no univariate prior on record"


def _family(name: str, parameters: tuple[np.ndarray, ...]) -> Any:
    """Return the tail maps of a family; None where its name and parameters do not determine it (pm.Truncated)."""
    from pymc_dpdepth.families import CLOSED_FORMS, compiled_family

    for family in CLOSED_FORMS.values():
        if family.name == name:
            return family
    import pymc
    from pytensor.tensor.random.op import RandomVariable
    from pytensor.tensor.random.type import random_generator_type
    from pytensor.tensor.type_other import NoneConst

    op = getattr(getattr(pymc, name, None), "rv_op", None)
    if not isinstance(op, RandomVariable):
        return None
    variable = op.make_node(random_generator_type(), NoneConst, *parameters).default_output()
    return compiled_family(variable, parameters)[0]


def _prior_text(family: str, numbers: dict[str, float]) -> str:
    """Return the prior as text that fits under a panel."""
    named = f"prior {family}({', '.join(f'{name}={number:,.6g}' for name, number in numbers.items())})"
    short = f"prior {family}({', '.join(f'{number:,.4g}' for number in numbers.values())})"
    return named if len(named) <= LONGEST_PRIOR else _cut(short, LONGEST_PRIOR)


def _title(release: Release, panels: list[_Panel | _PointsPanel], total: int) -> Iterator[str]:
    """Yield the lines of the title."""
    shown, points = len(panels), [panel for panel in panels if isinstance(panel, _PointsPanel)]
    what = "depth values" if len(points) == shown else "values" if points or _statistics(release) else "median"
    subject = f"Simulated private {what}" if release.simulation is True else f"Private {what}"
    cut = f", first {shown} of {total:,} columns" if shown < total else ""
    yield f"{subject}{cut}: epsilon {release.epsilon:g}, delta {release.delta:g}"
    nominal = ", epsilon is nominal" if release.guarantee == "asymptotic" else ""
    bars = ", bar: 90% of the noise" if any(_has_bars(panel) for panel in points) else ""
    dots = [f"dot: released value{bars}"] if points else []
    lines = ["line: released value, shaded: prior"] if len(points) < shown else []
    yield f"guarantee {release.guarantee} ({release.sampler}){nominal}; {'; '.join(lines + dots)}"


def _statistics(release: Release) -> bool:
    """Whether a statistic was released that need not be a median."""
    return any("statistic" in record for record in release.mechanisms)


def _has_bars(panel: _PointsPanel) -> bool:
    """Whether bars are drawn."""
    return panel.bar is not None and len(panel.values) <= DOTS_WITH_BARS


def _draw_panel(axes: Any, panel: _Panel) -> None:
    """Draw one prior density, and the value as a line with its number."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    low, high = _shown_range(panel)
    log = panel.family is not None and low > 0 and high / low > LOG_RATIO
    edges = _edges(low, high, log)
    if panel.family is not None:
        centers, density = _density(panel, edges, log)
        axes.fill_between(centers, density, color=PRIOR_COLOR, alpha=0.45, linewidth=0)
        axes.plot(centers, density, color=PRIOR_COLOR, linewidth=1.0)
        axes.set_ylim(0.0, HEADROOM * density.max())
    axes.axvline(panel.value, color=VALUE_COLOR, linewidth=1.6)
    if log:
        axes.set_xscale("log")
    else:
        largest = max(abs(edges[0]), abs(edges[-1]))
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.xaxis.set_major_formatter(FuncFormatter(_plain_tick if largest < PLAIN_BELOW else _short_tick))
    axes.set_xlim(edges[0], edges[-1])
    _write_number(axes, panel.value)
    axes.set_title(_cut(panel.name, LONGEST_NAME), loc="left", fontsize=10, fontweight="bold", parse_math=False)
    axes.set_xlabel(panel.prior_text, fontsize=8, color=TEXT_COLOR, parse_math=False)
    axes.set_yticks([])
    axes.tick_params(axis="x", labelsize=8)
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)


def _plain_tick(x: float, _: int) -> str:  # by name, so that figures can be pickled
    return f"{x:,.6g}"


def _short_tick(x: float, _: int) -> str:
    return f"{x:.3g}"


def _draw_points(axes: Any, panel: _PointsPanel) -> None:
    """Draw depth values as dots over the number of their point, or its coordinates."""
    from matplotlib.ticker import MaxNLocator

    where = np.arange(len(panel.values))
    few = len(where) <= DOTS_WITH_BARS
    if _has_bars(panel):
        axes.errorbar(where, panel.values, yerr=panel.bar, fmt="none", ecolor=PRIOR_COLOR, elinewidth=1.6)
    axes.plot(where, panel.values, "o" if few else ".", color=VALUE_COLOR, markersize=5 if few else 2, linestyle="none")
    axes.axhline(0.0, color=TEXT_COLOR, linewidth=0.6)
    axes.set_xlim(-0.5, len(where) - 0.5)
    axes.set_title(_cut(panel.name, LONGEST_NAME), loc="left", fontsize=10, fontweight="bold", parse_math=False)
    axes.set_ylabel("depth", fontsize=8, color=TEXT_COLOR)
    if panel.labels is None:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("number of the point", fontsize=8, color=TEXT_COLOR)
    else:
        axes.set_xticks(where, panel.labels)
        axes.set_xlabel("point", fontsize=8, color=TEXT_COLOR)
    axes.tick_params(labelsize=8)
    for side in ("right", "top"):
        axes.spines[side].set_visible(False)


def _shown_range(panel: _Panel) -> tuple[float, float]:
    """Return the ends of the x axis."""
    if panel.family is None:
        half = abs(panel.value) / 2.0 or 1.0
        return panel.value - half, panel.value + half
    tail = np.array([[SHOWN_TAIL]])
    low = panel.family.from_lower(tail, *panel.parameters).item()
    high = panel.family.from_upper(tail, *panel.parameters).item()
    return min(low, panel.value), max(high, panel.value)


def _edges(low: float, high: float, log: bool) -> np.ndarray:
    """Return the edges of equal cells from below `low` to above `high`, equal in log x where `log` says so."""
    if log:
        padding = (high / low) ** PADDING
        return np.geomspace(low / padding, high * padding, CELLS + 1)
    padding = PADDING * (high - low)
    return np.linspace(low - padding, high + padding, CELLS + 1)


def _density(panel: _Panel, edges: np.ndarray, log: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return cell middles and the prior's mass over the width of each cell, so that areas are probabilities."""
    mass = cell_masses(panel.family, panel.parameters, edges)
    scale = np.log(edges) if log else edges
    centers = np.sqrt(edges[:-1] * edges[1:]) if log else 0.5 * (edges[:-1] + edges[1:])
    return centers, mass / np.diff(scale)


def _write_number(axes: Any, value: float) -> None:
    """Write the value beside its line, on the side with more room, above the density."""
    fraction = axes.transAxes.inverted().transform(axes.transData.transform((value, 0.0)))[0]
    left = fraction < 0.5
    axes.annotate(
        readable_number(value),
        (value, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(4 if left else -4, -2),
        textcoords="offset points",
        ha="left" if left else "right",
        va="top",
        fontsize=9,
        color=VALUE_COLOR,
        fontweight="bold",
    )


def _cut(text: str, longest: int) -> str:
    """Return text on one line, cut where it would not fit."""
    text = " ".join(text.split())
    return text if len(text) <= longest else text[: longest - 1] + "…"
