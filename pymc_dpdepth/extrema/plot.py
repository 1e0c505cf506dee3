"""Picture of an interval. It is drawn from the record alone, so it may leave with it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from pymc_dpdepth.extrema.limits import naive_limits
from pymc_dpdepth.plot_marks import marked_figure, record_mark, root_figure, stamp

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pymc_dpdepth.extrema.record import ExtremaInterval

__all__ = ["plot_interval"]

MOST_PARAMETERS, LONGEST_NAME = 25, 24  # rows, and characters of a name, that fit
WIDTH, ROW_HEIGHT, REST_HEIGHT = 7.2, 0.27, 1.5  # inches
PADDING = 0.06  # of the axis on both sides
SELECTED_COLOR, OTHER_COLOR, LIMIT_COLOR, ALERT_COLOR, TEXT_COLOR = (
    "#b3401f",
    "#7a9cc6",
    "#333333",
    "#b00020",
    "#444444",
)
METHODS = {
    "naive": "naive, not valid",
    "uncorrected": "uncorrected, not valid",
    "corrected": "corrected",
    "bonferroni": "Bonferroni",
}


def plot_interval(interval: ExtremaInterval, *, ax: Axes | None = None) -> Figure:
    """Draw private estimates with their single intervals, and the limits of each method for the extremum.

    Parameters
    ----------
    interval : ExtremaInterval
        At most 25 parameters are drawn, those with the most extreme estimates; the title says so.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure, in no window.

    Returns
    -------
    matplotlib.figure.Figure
        The figure of the axes. Its attribute `releasable` is True, unless the interval is a simulation; where `ax` was
        given it is what else is drawn in the figure that decides. `dpd.save_plot` writes the mark into files.

    Notes
    -----
    Costs no privacy: the picture is a function of the record, which is public. An interval for a single parameter is
    two-sided, from its own bootstrap, and holds for a parameter that was chosen beforehand.
    """
    from pymc_dpdepth.plots import readable_number

    signed = interval.settings.sign * interval.estimates.values
    drawn = np.argsort(-signed, kind="stable")[:MOST_PARAMETERS]
    compared = interval.compare()
    rows = len(drawn) + len(compared)
    mark = record_mark(interval, made_from="an ExtremaInterval, which is public", title="Private confidence interval")
    if ax is None:
        ax = marked_figure(mark, figsize=(WIDTH, REST_HEIGHT + ROW_HEIGHT * rows)).add_subplot()
    else:
        stamp(ax, mark)
    singles = [_single(interval, j) for j in drawn]
    ends = np.concatenate([np.ravel(singles), compared.to_numpy().ravel(), [interval.estimate]])
    low, high = ends[np.isfinite(ends)].min(), ends[np.isfinite(ends)].max()
    margin = PADDING * (high - low) or 1.0
    low, high = low - margin, high + margin
    for height, (j, single) in enumerate(zip(drawn, singles, strict=True)):
        color = SELECTED_COLOR if interval.parameters[j] == interval.selected else OTHER_COLOR
        _draw_range(ax, height, *single, (low, high), color)
        ax.plot(interval.estimates.values[j], height, "o", color=color, markersize=5)
    for height, (name, limits) in enumerate(compared.iterrows(), start=len(drawn)):
        weight = 2.6 if name == "corrected" else 1.2
        _draw_range(
            ax, height, limits.get("lower", -math.inf), limits.get("upper", math.inf), (low, high), LIMIT_COLOR, weight
        )
    corrected = len(drawn) + list(compared.index).index("corrected")
    ax.plot(interval.estimate, corrected, "D", color=LIMIT_COLOR, markersize=4.5)
    ax.axhline(len(drawn) - 0.5, color=TEXT_COLOR, linewidth=0.6)
    methods = METHODS if interval.correction is not None else METHODS | {"corrected": "this one: no correction"}
    names = [_cut(interval.parameters[j]) for j in drawn] + [methods[name] for name in compared.index]
    ax.set_yticks(range(rows), names, fontsize=8, parse_math=False)
    ax.set_ylim(rows - 0.4, -0.6)
    ax.set_xlim(low, high)
    ax.tick_params(axis="x", labelsize=8)
    for side in ("right", "top"):
        ax.spines[side].set_visible(False)
    title = "\n".join(_title(interval, len(drawn), readable_number))
    ax.set_title(title, fontsize=10, loc="left", linespacing=1.4, parse_math=False)
    note = "dot: private estimate with its single interval; diamond: bias-reduced estimate of the extremum"
    ax.set_xlabel(note, fontsize=8, color=TEXT_COLOR)
    if interval.simulation:
        ax.set_xlabel("SIMULATION: not a release", color=ALERT_COLOR, fontsize=11, fontweight="bold")
    return root_figure(ax)


def _single(interval: ExtremaInterval, j: int) -> tuple[float, float]:
    """Return the two-sided limits of one parameter from its own bootstrap."""
    one = [int(j)]
    limits = naive_limits(
        interval.estimates.values[one], interval.bootstrap_estimates[:, one], interval.settings.alpha, "two"
    )
    return limits.lower, limits.upper


def _draw_range(
    ax: Any, height: int, lower: float, upper: float, shown: tuple[float, float], color: str, weight: float = 1.6
) -> None:
    """Draw a line between two limits with a bar at each; where one is infinite, to the end of the axis and an arrow."""
    left, right = max(lower, shown[0]), min(upper, shown[1])
    ax.plot([left, right], [height, height], color=color, linewidth=weight, solid_capstyle="butt", clip_on=False)
    for limit, end, arrow in ((lower, left, "<"), (upper, right, ">")):
        ax.plot(end, height, "|" if math.isfinite(limit) else arrow, color=color, markersize=7, clip_on=False)


def _title(interval: ExtremaInterval, shown: int, written: Any) -> list[str]:
    """Return the lines of the title."""
    which = "Largest" if interval.extremum == "max" else "Smallest"
    low, high = (None if limit is None else written(limit) for limit in (interval.lower, interval.upper))
    limits = f"at most {high}" if low is None else f"at least {low}" if high is None else f"from {low} to {high}"
    total = len(interval.parameters)
    cut = f", the most extreme {shown} drawn" if shown < total else ""
    bonferroni = ", Bonferroni" if interval.sided == "two" else ""
    correction = "none" if interval.correction is None else f"r = {interval.correction:.3g}"
    return [
        f"{which} of {total} parameters{cut}: {limits} ({100 * interval.ci_prob:g}%{bonferroni})",
        f"selected {_cut(interval.selected)}, correction {correction}; epsilon {interval.epsilon:g}, guarantee "
        f"{interval.guarantee}",
    ]


def _cut(text: str) -> str:
    """Return text on one line, cut where it would not fit."""
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 1] + "…"
