"""Marks of pictures: on the object, in the files, and what happens when things are drawn together."""

import gzip
import io
import pickle
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

import pymc_dpdepth as dpd
from pymc_dpdepth.plot_marks import (
    CURATOR_NOTE,
    RAW_ROWS,
    SYNTHETIC,
    Mark,
    mark_of,
    marked_figure,
    note_curator_side,
    record_mark,
    stamp,
)

ROWS = np.random.default_rng(0).normal(size=(30, 2))
PUBLIC = Mark(True, "made from a test")


def release(**options):
    return dpd.private_median(ROWS, epsilon=1.0, prior="normal(0, 5)", directions="axes", **options)


def text_in(path):
    if path.suffix == ".png":
        with Image.open(path) as picture:
            return picture.text
    return path.read_bytes()


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_files_say_what_the_object_says(tmp_path, suffix):
    path = tmp_path / f"plot.{suffix}"
    figures = {
        "yes: made from a Release and its public prior": dpd.plot_release(release()),
        "no: drawn from raw rows, for the curator only": dpd.plot_depth_contours(ROWS),
    }
    for words, figure in figures.items():
        assert figure.releasable is words.startswith("yes") and figure.mark.text == words
        for write in (lambda: dpd.save_plot(figure, path), lambda: figure.savefig(path, metadata={"Creator": "me"})):  # noqa: B023
            write()
            found = text_in(path)
            assert (found["releasable"] if suffix == "png" else found) == words or words.encode() in found
        path.unlink()


def test_a_png_of_a_release_has_version_and_simulation(tmp_path):
    made = release()
    dpd.save_plot(dpd.plot_release(made), tmp_path / "plot.png", dpi=40)
    with Image.open(tmp_path / "plot.png") as picture:
        assert picture.text["Software"] == f"pymc_dpdepth {made.package_version}"
        assert picture.text["simulation"] == "False" and picture.text["Title"] == "Private release"
        small = picture.size
    dpd.save_plot(dpd.plot_release(made), tmp_path / "plot.png")
    with Image.open(tmp_path / "plot.png") as picture:
        assert picture.size[0] > 3 * small[0]  # 150 dots per inch by default


def test_a_simulation_is_not_releasable():
    with pytest.warns(dpd.PrivacyLeakWarning):
        simulated = release(random_seed=1)
    real = release()
    assert not dpd.plot_release(simulated).releasable and record_mark(real).releasable
    assert not record_mark(real, simulated).releasable and "random_seed" in record_mark(simulated).reason
    unknown = dpd.Release.from_dict(real.to_dict() | {"simulation": "unknown"})
    assert record_mark(real, unknown).simulation == "unknown" and record_mark(real, unknown).releasable


def test_the_stricter_mark_stays():
    figure = dpd.plot_release(release())
    dpd.plot_depth_contours(ROWS, ax=figure.add_subplot())
    assert figure.releasable is False and "together" in figure.mark.reason
    assert not stamp(figure, PUBLIC).releasable
    both = stamp(marked_figure(PUBLIC), SYNTHETIC)
    assert both.releasable and both.mark is SYNTHETIC


SUBFIGURES = {"one": 1, "nested": 2}
DRAWN = {
    "contours": lambda axes: dpd.plot_depth_contours(ROWS, ax=axes),
    "filled": lambda axes: dpd.plot_depth_surface(ROWS, kind="filled", ax=axes),
}


@pytest.mark.parametrize("nested", SUBFIGURES.values(), ids=SUBFIGURES)
@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN)
def test_rows_in_a_subfigure_mark_the_figure_that_is_saved(tmp_path, draw, nested):
    figure = part = dpd.plot_release(release())
    for _ in range(nested):
        part = part.add_subfigure(part.add_gridspec(1, 1)[0])
    assert draw(part.add_subplot()) is figure
    assert figure.releasable is False and "together" in figure.mark.reason
    dpd.save_plot(figure, tmp_path / "plot.png")
    with Image.open(tmp_path / "plot.png") as picture:
        assert picture.text["releasable"].startswith("no: ")


def test_a_subfigure_stands_for_its_figure():
    figure = marked_figure(RAW_ROWS)
    part = figure.subfigures(1, 2)[0]
    assert stamp(part, PUBLIC) is figure and figure.releasable is False and mark_of(part) is None
    plain = Figure()
    assert stamp(plain.subfigures().add_subplot(), PUBLIC) is plain and mark_of(plain) is None


def test_a_figure_of_the_callers_gets_no_mark_that_lets_it_leave(tmp_path):
    figure = Figure()
    assert stamp(figure, PUBLIC) is figure and mark_of(figure) is None
    with pytest.raises(ValueError, match="without a mark.*savefig"):
        dpd.save_plot(figure, tmp_path / "plot.png")
    stamp(figure, RAW_ROWS)
    assert figure.releasable is False and not stamp(figure, PUBLIC).releasable
    dpd.save_plot(figure, tmp_path / "plot.png")
    with Image.open(tmp_path / "plot.png") as picture:
        assert picture.text["releasable"].startswith("no: ")


def test_misuse_writes_nothing(tmp_path):
    figure = marked_figure(PUBLIC)
    for name in ("plot.jpg", "plot"):
        with pytest.raises(ValueError, match=r"ends in .png, .pdf or .svg; got plot"):
            dpd.save_plot(figure, tmp_path / name)
    with pytest.raises(TypeError, match="expected a matplotlib Figure.*got ndarray"):
        dpd.save_plot(ROWS, tmp_path / "plot.png")
    assert not list(tmp_path.iterdir())


def test_marked_figures_can_be_pickled_and_have_no_window():
    figure = marked_figure(RAW_ROWS)
    figure.add_subplot().plot([1, 2])
    copy = pickle.loads(pickle.dumps(figure))
    assert copy.mark == RAW_ROWS and copy.releasable is False and type(copy) is type(figure)
    picture = io.BytesIO()
    copy.savefig(picture)
    with Image.open(picture) as opened:
        assert opened.text["releasable"] == RAW_ROWS.text
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or pyplot.get_fignums() == []


@pytest.mark.parametrize("scale", [1.0, 1e9])
def test_a_figure_of_a_release_can_be_pickled(scale):
    made = dpd.private_median(scale * ROWS, epsilon=1.0, prior=f"normal(0, {5 * scale})", directions="axes")
    figure = dpd.plot_release(made)
    copy = pickle.loads(pickle.dumps(figure))
    assert copy.releasable is True
    ticks = [[one.xaxis.get_major_formatter()(7.0 * scale, 0) for one in each.axes] for each in (figure, copy)]
    assert ticks[0] == ticks[1] == 2 * [{1.0: "7", 1e9: "7e+09"}[scale]]


def test_a_format_without_room_for_the_mark_is_refused_for_what_stays(tmp_path):
    curator_side, public = marked_figure(RAW_ROWS), dpd.plot_release(release())
    for name in ("plot.jpg", "plot.webp", "plot.tif", "plot.raw"):
        with pytest.raises(ValueError, match="savefig: expected .png, .pdf, .svg.*not releasable"):
            curator_side.savefig(tmp_path / name)
    with pytest.raises(ValueError, match="got jpeg"):
        curator_side.savefig(io.BytesIO(), format="jpeg")
    assert not list(tmp_path.iterdir())
    public.savefig(tmp_path / "plot.jpg")  # one that may leave says less than it could, which harms nobody
    assert (tmp_path / "plot.jpg").exists()
    for kind in ("svgz", "eps", "ps"):
        curator_side.savefig(tmp_path / f"plot.{kind}")
    assert RAW_ROWS.text.encode() in (tmp_path / "plot.eps").read_bytes()
    assert RAW_ROWS.text.encode() in gzip.decompress((tmp_path / "plot.svgz").read_bytes())


def test_the_note_stands_in_its_corner():
    axes = marked_figure(RAW_ROWS).subplots(1, 2)
    for one, above in zip(axes, (False, True), strict=True):
        note_curator_side(one, above=above)
        (text,) = one.texts
        assert text.get_text() == CURATOR_NOTE and (text.get_position()[1] > 0.5) is above
