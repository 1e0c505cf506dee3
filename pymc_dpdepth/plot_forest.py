"""A forest of groups: what pooled and separate releases say of each. Drawn from Releases alone it may leave."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pymc_dpdepth.plot_marks import RAW_DRAWS, marked_figure, note_curator_side_below, note_simulation, record_mark
from pymc_dpdepth.record import Release

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_groups"]

MOST_PANELS, LONGEST_LABEL = 6, 28  # coordinates, and characters of a group's label, that fit
PANEL_WIDTH, LABEL_WIDTH, ROW_HEIGHT, REST_HEIGHT = 2.9, 1.6, 0.34, 1.5  # inches
BAND = 0.5  # height of the band of a group's series; a group is 1 high
COLORS, MARKERS = ("#b3401f", "#1b6e6a", "#e08214", "#5b4a91", "#555555"), "oDs^v"
LINK_COLOR = "#bbbbbb"
SAMPLE_DIMS = ("chain", "draw")
COORDINATE = "coordinate"


@dataclass(frozen=True, eq=False)
class _Series:
    """One way in which all groups were estimated."""

    name: str
    values: dict[str, np.ndarray]  # label to location
    coordinates: list[str]
    note: str  # what it costs, or that it may not leave
    limits: dict[str, np.ndarray] = field(default_factory=dict)  # label to lower and upper ends, shape (2, d)
    sizes: dict[str, int] = field(default_factory=dict)
    records: tuple[Release, ...] = ()
    center: np.ndarray | None = None


def plot_groups(
    releases: Any,
    *,
    mechanism: str | None = None,
    center: str | None = None,
    var_name: str = "location",
    ci_prob: float = 0.9,
    figsize: tuple[float, float] | None = None,
) -> Figure:
    """Draw the locations of groups as a forest, with several ways of estimating them side by side.

    Parameters
    ----------
    releases : Release or mapping
        Name to series, such as ``{"pooled": release, "separate": {label: release, ...}}``. A series is a Release of a
        mechanism with groups; a Release of one mechanism per group, whose names are the labels; a mapping from label to
        a Release of one location; or a DataTree of draws, for the curator.
    mechanism : str, optional
        Name of the mechanism with groups, where a Release holds several.
    center : str, optional
        A released parameter, such as the mean of the groups, to draw as a line.
    var_name : str
        The location's variable in a DataTree.
    ci_prob : float
        Probability of the equal-tailed interval of draws. A Release has none: it is one draw.
    figsize : tuple of float, optional
        Width and height in inches.

    Returns
    -------
    matplotlib.figure.Figure
        A panel for each coordinate, at most six, and a line for each group, with its number of rows, which is public.
        `releasable` is True where all is drawn from Releases and none is a simulation.

    Raises
    ------
    TypeError
        If a series is of another kind.
    ValueError
        If the series have no group in common or other coordinates, or a name is unknown.

    Notes
    -----
    Costs no privacy where only Releases are drawn. Draws, as of `pm.sample` or `dpd.sample_exact`, were not released:
    with any, the picture stays with the curator. Separate releases of groups that no person is in twice cost the
    largest of their epsilons, and the title says that one.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_dpdepth as dpd
    >>> labels = ["north", "south"]
    >>> with pm.Model(coords={"group": labels, "coordinate": ["a", "b"]}) as model:
    ...     location = pm.Normal("location", 0, 10, dims=("group", "coordinate"))
    ...     _ = dpd.exponential_mechanism(
    ...         "median", location, np.arange(40.0).reshape(20, 2), groups=np.repeat(labels, 10), epsilon=1.0
    ...     )
    >>> release = dpd.release(model)
    >>> figure = dpd.plot_groups({"joint": release})
    >>> figure.releasable, len(figure.axes)
    (True, 2)
    """
    if isinstance(ci_prob, bool) or not isinstance(ci_prob, int | float) or not 0 < ci_prob < 1:
        raise ValueError(f"ci_prob: expected a number between 0 and 1, got {ci_prob!r}.")
    if isinstance(releases, Release):
        releases = {"released": releases}
    if not isinstance(releases, Mapping) or not releases:
        raise TypeError(
            'releases: expected a mapping such as {"pooled": release, "separate": {label: release, ...}}, got '
            f"{type(releases).__name__}."
        )
    series = [_series(str(name), source, mechanism, center, var_name, ci_prob) for name, source in releases.items()]
    labels, coordinates = _common(series)
    records = [record for one in series for record in one.records]
    curator_side = any(not one.records for one in series)
    mark = RAW_DRAWS if curator_side else record_mark(*records, made_from="Releases of groups", title="Private groups")
    shown = min(len(coordinates), MOST_PANELS)
    size = (LABEL_WIDTH + max(PANEL_WIDTH * shown, 2 * PANEL_WIDTH), REST_HEIGHT + ROW_HEIGHT * len(labels))
    figure = marked_figure(mark, figsize=figsize or size)
    panels = figure.subplots(1, shown, sharey=True, squeeze=False)[0]
    for j, axes in enumerate(panels):
        _draw_panel(axes, series, labels, j)
        axes.set_title(coordinates[j], fontsize=10, parse_math=False)
    panels[0].set_yticks(range(len(labels)), [_label(label, series) for label in labels], fontsize=8, parse_math=False)
    panels[0].set_ylim(len(labels) - 0.5, -0.5)
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), fontsize=8)
    cut = f", first {shown} of {len(coordinates)} coordinates" if shown < len(coordinates) else ""
    figure.suptitle(f"Medians of {len(labels)} groups{cut}", fontsize=11)
    simulations = {record.simulation for record in records} - {False}
    if curator_side:
        note_curator_side_below(figure)
    elif simulations:
        note_simulation(figure, True if True in simulations else "unknown")
    return figure


def _series(
    name: str, source: Any, mechanism: str | None, center: str | None, var_name: str, ci_prob: float
) -> _Series:
    """Read one series."""
    if isinstance(source, Release):
        return _of_release(name, source, mechanism, center)
    if isinstance(source, Mapping) and source and all(isinstance(one, Release) for one in source.values()):
        arrays = {str(label): one.value for label, one in source.items()}
        _check_flat(name, arrays)
        sizes = {str(label): _rows_of(one) for label, one in source.items()}
        epsilons = sorted({one.epsilon for one in source.values()})
        note = f"epsilon {epsilons[0]:g} each" if len(epsilons) == 1 else f"epsilon up to {epsilons[-1]:g}"
        return _Series(
            name,
            {label: np.asarray(array.values) for label, array in arrays.items()},
            _names(next(iter(arrays.values()))),
            note,
            sizes={label: size for label, size in sizes.items() if size is not None},
            records=tuple(source.values()),
        )
    if getattr(source, "posterior", None) is not None:
        return _of_draws(name, source.posterior, var_name, ci_prob)
    raise TypeError(
        f"releases[{name!r}]: expected a Release, a mapping of group labels to Releases, or a DataTree of draws, got "
        f"{type(source).__name__}."
    )


def _of_release(name: str, release: Release, mechanism: str | None, center: str | None) -> _Series:
    """Read a Release of groups, or of one mechanism per group."""
    grouped = {call: array for call, array in release.locations.items() if array.ndim > 1}
    if mechanism is not None and mechanism not in grouped:
        raise ValueError(f"mechanism: expected one with groups, {sorted(grouped)}, got {mechanism!r}.")
    if mechanism is None and len(grouped) > 1:
        raise ValueError(f"mechanism: expected the name of one of the mechanisms with groups: {sorted(grouped)}.")
    line, note = _center(release, center), f"epsilon {release.epsilon:g}"
    if not grouped:
        _check_flat(name, release.locations)
        sizes = {record["name"]: record["n"] for record in release.mechanisms if "n" in record}
        values = {label: np.asarray(array.values) for label, array in release.locations.items()}
        names = _names(next(iter(release.locations.values())))
        return _Series(name, values, names, note, {}, sizes, (release,), line)
    call = mechanism or next(iter(grouped))
    array = grouped[call].transpose(..., COORDINATE)
    (dim,) = (dim for dim in array.dims if dim != COORDINATE)
    labels = [str(label) for label in array.coords[dim].values]
    sizes = {
        record["group"]["label"]: record["n"]
        for record in release.mechanisms
        if record.get("group", {}).get("mechanism") == call
    }
    values = dict(zip(labels, np.asarray(array.values), strict=True))
    return _Series(name, values, _names(array), note, {}, sizes, (release,), line)


def _of_draws(name: str, posterior: Any, var_name: str, ci_prob: float) -> _Series:
    """Read draws of a location of groups: their medians and intervals."""
    if var_name not in posterior:
        raise ValueError(f"var_name: expected one of {sorted(map(str, posterior.data_vars))}, got {var_name!r}.")
    array = posterior[var_name].transpose(*SAMPLE_DIMS, ...)
    dims = array.dims[len(SAMPLE_DIMS) :]
    if len(dims) not in (1, 2):
        raise ValueError(f"var_name: expected draws over a dim of groups and one of coordinates, got dims {dims}.")
    labels = [str(label) for label in array[dims[0]].values]
    names = [str(c) for c in array[dims[1]].values] if len(dims) > 1 else [var_name]
    draws = array.values.reshape(-1, len(labels), len(names))
    tail = 0.5 * (1.0 - ci_prob)
    low, middle, high = np.quantile(draws, [tail, 0.5, 1.0 - tail], axis=0)
    limits = {label: np.stack([a, b]) for label, a, b in zip(labels, low, high, strict=True)}
    return _Series(name, dict(zip(labels, middle, strict=True)), names, f"{ci_prob:.0%} of the draws", limits)


def _check_flat(name: str, arrays: Mapping[str, Any]) -> None:
    """Refuse depth values, refusals, and locations of different columns."""
    shapes = {array.dims for array in arrays.values()}
    if shapes != {(COORDINATE,)} or len({tuple(_names(array)) for array in arrays.values()}) > 1:
        raise ValueError(f"releases[{name!r}]: expected locations of the same coordinates, one for each group.")


def _names(array: Any) -> list[str]:
    """Return the names of the coordinates."""
    return [str(name) for name in array.coords[COORDINATE].values]


def _rows_of(release: Release) -> int | None:
    """Return the number of rows of a Release of one mechanism."""
    return release.mechanisms[0].get("n")


def _center(release: Release, center: str | None) -> np.ndarray | None:
    """Return a released parameter that is a line in every panel."""
    if center is None:
        return None
    if center not in release.parameters:
        raise ValueError(f"center: expected one of {sorted(map(str, release.parameters.data_vars))}, got {center!r}.")
    return np.atleast_1d(release.parameters[center].values)


def _common(series: list[_Series]) -> tuple[list[str], list[str]]:
    """Return the groups that any series has, in order, and the coordinates, which all must share."""
    first = series[0]
    for one in series:
        if one.coordinates != first.coordinates:
            raise ValueError(
                f"releases: expected the same coordinates in every series; {one.name!r} has {one.coordinates}, "
                f"{first.name!r} has {first.coordinates}."
            )
        if not set(one.values) & set(first.values):
            raise ValueError(
                f"releases: expected the same groups in every series; {one.name!r} has {sorted(one.values)}, "
                f"{first.name!r} has {sorted(first.values)}."
            )
        if one.center is not None and one.center.shape not in ((1,), (len(first.coordinates),)):
            raise ValueError(f"center: expected one number or {len(first.coordinates)}, got {one.center.shape}.")
    return list(dict.fromkeys(label for one in series for label in one.values)), first.coordinates


def _label(label: str, series: list[_Series]) -> str:
    """Return a group's label with its number of rows, where a release says it."""
    text = " ".join(label.split())
    text = text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 1] + "…"
    sizes = {one.sizes[label] for one in series if label in one.sizes}
    return f"{text} (n = {sizes.pop():,})" if len(sizes) == 1 else text


def _draw_panel(axes: Any, series: list[_Series], labels: list[str], j: int) -> None:
    """Draw one coordinate of all groups."""
    step = BAND / max(len(series) - 1, 1)
    offsets = [step * (k - 0.5 * (len(series) - 1)) for k in range(len(series))]
    for height, label in enumerate(labels):  # what the series say of one group is linked
        points = [
            (one.values[label][j], height + o) for one, o in zip(series, offsets, strict=True) if label in one.values
        ]
        axes.plot(*zip(*points, strict=True), color=LINK_COLOR, linewidth=1.0, zorder=1)
    for k, (one, offset) in enumerate(zip(series, offsets, strict=True)):
        color, marker = COLORS[k % len(COLORS)], MARKERS[k % len(MARKERS)]
        places = [(labels.index(label) + offset, label) for label in one.values]
        heights = [height for height, _ in places]
        for height, label in places:
            if label in one.limits:
                axes.plot(one.limits[label][:, j], [height, height], color=color, linewidth=1.6, zorder=2)
        values = [one.values[label][j] for _, label in places]
        axes.plot(values, heights, marker, color=color, markersize=5.5, zorder=3, label=f"{one.name}: {one.note}")
        if one.center is not None and math.isfinite(value := float(one.center[j if one.center.size > 1 else 0])):
            axes.axvline(value, color=color, linestyle="--", linewidth=1.0, zorder=0)
    axes.grid(axis="y", color="#eeeeee", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8, left=False)
    for side in ("right", "top", "left"):
        axes.spines[side].set_visible(False)
