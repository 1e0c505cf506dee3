"""The picture of a mechanism: what is drawn where, and that it stays with the curator."""

import io
import sys

import numpy as np
import pymc as pm
import pytest

import pymc_dpdepth as dpd
from pymc_dpdepth.mechanism_law import private_median_point
from pymc_dpdepth.plot_density import MOST_PANELS, plot_mechanism
from pymc_dpdepth.plot_marks import CURATOR_NOTE
from pymc_dpdepth.trace_values import mechanisms_of

ROWS = np.random.default_rng(0).normal(size=(30, 2))


def build(d=2, rows=None, **options):
    with pm.Model() as model:
        location = pm.Normal("location", 0, 5, shape=d)
        rows = np.resize(ROWS, (30, d)) if rows is None else rows
        dpd.exponential_mechanism("median", location, rows, epsilon=1.0, directions="axes", **options)
    return model


def test_the_plane_has_its_marginals_beside_it():
    model = build()
    release = dpd.release(model)
    figure = plot_mechanism(model, draws=100, release=release)
    plane, above, beside = figure.axes
    (mesh,) = [c for c in plane.collections if hasattr(c, "get_coordinates")]
    joint = mesh.get_array()
    for j, axes in enumerate((above, beside)):
        values, edges, _ = axes.patches[1].get_data()  # prior first
        np.testing.assert_allclose(values, (joint.T if j == 0 else joint) @ np.diff(plane_edges(mesh, 1 - j)))
        assert np.allclose(edges, plane_edges(mesh, j))
    (mechanism,) = mechanisms_of(model)
    points = [line.get_xydata()[0].tolist() for line in plane.lines]
    assert points == [private_median_point(mechanism)[1].tolist(), release.value.values.tolist()]
    assert figure.get_suptitle() == "median: halfspace, epsilon 1, n = 30, on a grid"
    assert figure.releasable is False and CURATOR_NOTE in [text.get_text() for text in plane.texts]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "prior",
        "mechanism",
        "non-private median",
        "released",
    ]
    figure.savefig(io.BytesIO())


def plane_edges(mesh, axis):
    corners = mesh.get_coordinates()
    return corners[0, :, 0] if axis == 0 else corners[:, 0, 1]


def test_other_dimensions_have_a_panel_for_each_coordinate():
    one = plot_mechanism(build(1), draws=100)
    assert len(one.axes) == 1 and len(one.axes[0].patches) == 2
    many = plot_mechanism(build(14), draws=50)
    assert len(many.axes) == MOST_PANELS and "first 12 of 14 coordinates" in many.get_suptitle()
    assert [axes.get_xlabel() for axes in many.axes][:2] == ["x0", "x1"]
    many.savefig(io.BytesIO())


def test_draws_of_a_trace_and_the_context():
    with build() as model:
        idata = dpd.sample_exact(60)
        figure = plot_mechanism(idata=idata)
    assert "60 draws of a trace" in figure.get_suptitle()
    mesh = figure.axes[0].collections[0]
    area = np.outer(np.diff(plane_edges(mesh, 1)), np.diff(plane_edges(mesh, 0)))
    counts = mesh.get_array() * area * 60
    np.testing.assert_allclose(counts, counts.round(), atol=1e-9)
    with pytest.raises(TypeError, match="posterior"):
        plot_mechanism(model, idata=ROWS)


def test_a_released_group_is_marked():
    with pm.Model(coords={"group": ["a", "b"]}) as model:
        location = pm.Normal("location", 0, 5, shape=(2, 2), dims=("group", "coordinate"))
        groups = ["a", "b"] * 15
        dpd.exponential_mechanism("m", location, ROWS, groups=groups, epsilon=1.0, directions="axes")
    release = dpd.release(model)
    figure = plot_mechanism(model, mechanism="m[b]", release=release, draws=100)
    star = figure.axes[0].lines[-1].get_xydata()[0]
    assert star.tolist() == release.value.sel(group="b").values.tolist()


def test_misuse_is_refused_with_the_cure():
    model = build()
    other = dpd.private_median(ROWS[:, :1], epsilon=1.0, prior="normal(0, 5)")
    for arguments, error, message in (
        ({"draws": 0}, ValueError, "draws"),
        ({"mechanism": "nope"}, ValueError, r"expected one of \['median'\], got 'nope'"),
        ({"release": ROWS, "draws": 5}, TypeError, "expected a Release, got ndarray"),
        ({"release": other, "draws": 5}, ValueError, "a location of 'median' with 2 coordinates"),
    ):
        with pytest.raises(error, match=message):
            plot_mechanism(model, **arguments)
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or pyplot.get_fignums() == []
