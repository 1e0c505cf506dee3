"""What a picture is made of, and so whether it may leave: a mark on the plot object, and in the metadata of its files.

A figure made only from Releases, or only from synthetic rows, may be shown to anyone. One that is drawn from raw rows
or from draws that were not released stays with the curator. The mark says which; it protects nothing by itself.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "CURATOR_NOTE",
    "RAW_DRAWS",
    "RAW_ROWS",
    "SYNTHETIC",
    "Mark",
    "mark_of",
    "marked_figure",
    "note_curator_side",
    "note_curator_side_below",
    "note_simulation",
    "picture_bytes",
    "record_mark",
    "root_figure",
    "save_plot",
    "stamp",
]

RESOLUTION = 150  # dots per inch of a saved picture
FORMATS = ("png", "pdf", "svg")
# The words of each format's metadata that may hold the title and a free text; other formats have none.
_TITLE_WORDS = {"png": "Title", "pdf": "Title", "svg": "Title", "svgz": "Title"}
_MARK_WORDS = {"png": "releasable", "pdf": "Subject", "svg": "Description", "svgz": "Description"}
_MARK_WORDS |= {"ps": "Creator", "eps": "Creator"}

CURATOR_NOTE = "curator only, not releasable"
_NOTE_COLOR, _NOTE_SIZE = "#b00020", 8
SIMULATED = "drawn from a simulation, which whoever knows its random_seed can repeat"
BOTH = "drawn together with what is not releasable"


@dataclass(frozen=True)
class Mark:
    """Whether a picture may leave, and why.

    Attributes
    ----------
    releasable : bool
    reason : str
        What it is drawn from.
    title : str
        Title of a file's metadata.
    simulation : bool, "unknown" or None
        Of the record that is drawn; None where there is none.
    version : str
        Of the package that made the record.
    """

    releasable: bool
    reason: str
    title: str = ""
    simulation: bool | str | None = None
    version: str = ""

    @property
    def text(self) -> str:
        """What the metadata of a file say."""
        return f"{'yes' if self.releasable else 'no'}: {self.reason}"

    def metadata(self, kind: str) -> dict[str, str]:
        """Return the metadata of a file in a format; empty where the format has none."""
        words = {}
        if kind in _TITLE_WORDS and self.title:
            words[_TITLE_WORDS[kind]] = self.title
        if kind == "png":
            if self.version:
                words["Software"] = f"pymc_dpdepth {self.version}"
            if self.simulation is not None:
                words["simulation"] = str(self.simulation)
        if kind in _MARK_WORDS:
            words[_MARK_WORDS[kind]] = self.text
        return words


RAW_ROWS = Mark(False, "drawn from raw rows, for the curator only")
RAW_DRAWS = Mark(False, "drawn from draws that were not released, for the curator only")
SYNTHETIC = Mark(True, "made from synthetic rows of a population that was chosen without private ones")


def record_mark(*records: Any, made_from: str = "a Release and its public prior", title: str = "Private release"):
    """Return the mark of a picture that is made from public records alone.

    Parameters
    ----------
    *records : Release or ExtremaInterval
        What is drawn, one or more: anything with `simulation` and `package_version`.
    made_from : str
        What they are, in words.
    title : str

    Returns
    -------
    Mark
        Not releasable where a record is a simulation: it could be repeated, so it hides nothing.
    """
    simulations = [record.simulation for record in records]
    versions = ", ".join(sorted({record.package_version for record in records}))
    if any(simulation is True for simulation in simulations):
        return Mark(False, SIMULATED, title, True, versions)
    simulation = "unknown" if "unknown" in simulations else False
    return Mark(True, f"made from {made_from}", title, simulation, versions)


def marked_figure(mark: Mark, **options: Any) -> Figure:
    """Return an empty figure, in no window, whose files say whether they may leave.

    Parameters
    ----------
    mark : Mark
    **options
        Of `matplotlib.figure.Figure`.

    Returns
    -------
    matplotlib.figure.Figure
        With the attributes `mark` and `releasable`; pictures that its ``savefig`` writes as PNG, PDF, SVG or PostScript
        have the mark in their metadata. Where it is not releasable other formats, which could not say so, are refused.
    """
    figure = _figure_class()(**{"layout": "constrained", **options})
    return stamp(figure, mark)


def stamp(figure: Any, mark: Mark) -> Any:
    """Mark a plot object, or add what was drawn on it to its mark; return it.

    Axes and subfigures stand for the figure that holds them, which is what is saved: that one is marked and returned. A
    figure of someone else's may hold anything, so it gets no mark that lets it leave. One that had a mark keeps the
    stricter of the two.
    """
    figure = root_figure(figure)
    old = mark_of(figure)
    own = isinstance(figure, _MarkedFigure)
    if old is None and mark.releasable and not own:
        return figure
    if old is not None and old.releasable != mark.releasable:
        mark = Mark(False, BOTH, old.title)
    figure.mark, figure.releasable = mark, mark.releasable
    return figure


def root_figure(artist: Any) -> Any:
    """Return the figure that holds axes or a subfigure, however deep; a plot object of another library as it is."""
    while hasattr(artist, "get_figure") and artist.figure is not artist:
        artist = artist.figure  # matplotlib 3.9 has no get_figure(root=True)
    return artist


def mark_of(plot: Any) -> Mark | None:
    """Return the mark of a plot object, or None."""
    mark = getattr(plot, "mark", None)
    return mark if isinstance(mark, Mark) else None


def save_plot(plot: Any, path: str | os.PathLike, **options: Any) -> None:
    """Write a plot as PNG, PDF or SVG, with its mark in the metadata: whether it may leave, and why.

    Parameters
    ----------
    plot : matplotlib.figure.Figure or arviz_plots.PlotCollection
        What a plot function of this package returned. `plot.releasable` is what the file will say.
    path : path
        The format is told by its ending: .png, .pdf or .svg. "releasable" of a PNG, "Subject" of a PDF and
        "Description" of an SVG hold the mark.
    **options : dict
        Of ``Figure.savefig``, such as dpi.

    Returns
    -------
    None

    Raises
    ------
    TypeError
        If `plot` is no plot object.
    ValueError
        If it has no mark, or the name ends in something else. Nothing is written then.

    Notes
    -----
    Costs no privacy: a plot made from Releases is a function of public values. The mark knows what this package has
    drawn; what else was added to the figure's axes is the caller's to know.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_dpdepth as dpd
    >>> rows = np.arange(20.0).reshape(10, 2)
    >>> release = dpd.private_median(rows, epsilon=1.0, prior=pm.Normal.dist(0, 10, shape=2))
    >>> figure = dpd.plot_release(release)
    >>> figure.releasable
    True
    >>> dpd.save_plot(figure, "release.pdf")
    """
    from matplotlib.figure import Figure

    figure = plot if isinstance(plot, Figure) else _figure_of(plot)
    mark = mark_of(plot) or mark_of(figure)
    if mark is None:
        raise ValueError(
            "plot: expected one that a plot function of this package made; got one without a mark, so other things may "
            "be drawn on it. Decide yourself whether it may leave, and write it with figure.savefig(path)."
        )
    path = Path(path)
    kind = path.suffix[1:].lower()
    if kind not in FORMATS:
        raise ValueError(f"path: expected a name that ends in .png, .pdf or .svg; got {path.name}.")
    path.write_bytes(picture_bytes(figure, kind, mark.metadata(kind), **options))


def picture_bytes(figure: Figure, kind: str, metadata: dict[str, str], **options: Any) -> bytes:
    """Return a figure as the bytes of a file, so that nothing is written unless it is drawn to the end."""
    given = options.pop("metadata", None) or {}
    picture = BytesIO()
    with warnings.catch_warnings():
        # A column name may hold letters that the font lacks; they are drawn as boxes.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(picture, **{"dpi": RESOLUTION, **options}, format=kind, metadata={**given, **metadata})
    return picture.getvalue()


def note_curator_side(axes: Any, *, above: bool = False) -> None:
    """Write on the picture itself, in the lower right corner or the upper one, that it stays with the curator."""
    write = axes.text2D if hasattr(axes, "text2D") else axes.text
    write(
        0.99,
        0.99 if above else 0.01,
        CURATOR_NOTE,
        transform=axes.transAxes,
        ha="right",
        va="top" if above else "bottom",
        fontsize=_NOTE_SIZE,
        color=_NOTE_COLOR,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.5},
        zorder=6,
    )


def note_curator_side_below(figure: Figure) -> None:
    """Write below all panels that the picture stays with the curator."""
    figure.supxlabel(CURATOR_NOTE, color=_NOTE_COLOR, fontsize=_NOTE_SIZE, x=0.99, ha="right")


def note_simulation(figure: Figure, simulation: bool | str) -> None:
    """Write on the picture that the draw could be repeated, or that nobody knows."""
    words = "SIMULATION: not a release" if simulation is True else "simulation unknown: someone else sampled the trace"
    figure.supxlabel(words, color=_NOTE_COLOR, fontsize=11, fontweight="bold")


def _figure_of(plot: Any) -> Any:
    """Return the figure of a PlotCollection that matplotlib draws."""
    if type(plot).__name__ != "PlotCollection" or getattr(plot, "backend", None) != "matplotlib":
        raise TypeError(
            f"plot: expected a matplotlib Figure, or a PlotCollection drawn by matplotlib, got {type(plot).__name__}."
        )
    return plot.get_viz("figure")


class _MarkedFigure:
    """What is added to a figure. matplotlib is imported where it is used, so the class itself is put together later."""

    mark: Mark | None = None
    releasable: bool | None = None

    def savefig(self, fname: Any, *, metadata: dict[str, Any] | None = None, **options: Any) -> None:
        """Save the figure as matplotlib does, with the mark in the metadata of formats that have room for it.

        Raises
        ------
        ValueError
            If the figure is not releasable and the format could not say so.
        """
        from matplotlib import rcParams

        named = os.path.splitext(os.fspath(fname))[1][1:] if isinstance(fname, str | os.PathLike) else ""
        kind = (options.get("format") or named or rcParams["savefig.format"]).lower()
        if self.mark is not None and not self.mark.releasable and kind not in _MARK_WORDS:
            raise ValueError(
                f"savefig: expected .png, .pdf, .svg or PostScript, whose metadata say that this figure is not "
                f"releasable; got {kind}, which could not say it."
            )
        words = {} if self.mark is None else self.mark.metadata(kind)
        if words:
            title = {key: value for key, value in words.items() if key == "Title"}  # one's own title may replace it
            metadata = {**title, **(metadata or {}), **{k: v for k, v in words.items() if k not in title}}
        super().savefig(fname, metadata=metadata, **{"dpi": RESOLUTION, **options})


@cache
def _figure_class() -> type:
    """Return the class of marked figures."""
    from matplotlib.figure import Figure

    # Under a name that a pickle finds again, through `__getattr__`.
    return type("MarkedFigure", (_MarkedFigure, Figure), {"__module__": __name__, "__doc__": "A figure with a mark."})


def __getattr__(name: str) -> Any:
    """Return `MarkedFigure`, which needs matplotlib, when it is first used."""
    if name == "MarkedFigure":
        return _figure_class()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
