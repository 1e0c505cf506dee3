"""The forest of groups: which numbers it draws, and that it leaves only where all of them were released."""

import io

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import pymc_dpdepth as dpd
from pymc_dpdepth.plot_forest import plot_groups
from pymc_dpdepth.plot_marks import CURATOR_NOTE, picture_bytes

LABELS = ["north", "south", "west"]
SIZES = [10, 20, 30]
GROUPS = np.repeat(LABELS, SIZES)
ROWS = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])


def model():
    with pm.Model(coords={"group": LABELS, "coordinate": ["a", "b"]}) as built:
        location = pm.Normal("location", 0, 5, dims=("group", "coordinate"))
        pm.Normal("mu", 0, 1)
        dpd.exponential_mechanism("m", location, ROWS, groups=GROUPS, epsilon=0.5, directions="axes")
    return built


@pytest.fixture(scope="module")
def pooled():
    return dpd.release(model())


@pytest.fixture(scope="module")
def separate():
    options = {"prior": "normal(0, 5)", "directions": "axes"}
    return {label: dpd.private_median(ROWS[label == GROUPS], epsilon=0.25, **options) for label in LABELS}


def drawn(axes):
    """Return the points of each series by its legend's text, in the order of the groups."""
    return {
        line.get_label(): line.get_xydata()
        for line in axes.lines
        if not line.get_label().startswith("_") and line.get_marker()
    }


def test_each_series_is_drawn_where_it_is(pooled, separate):
    figure = plot_groups({"pooled": pooled, "separate": separate})
    assert [axes.get_title() for axes in figure.axes] == ["a", "b"]
    for axes, name in zip(figure.axes, "ab", strict=True):
        series = drawn(axes)
        assert list(series) == ["pooled: epsilon 0.5", "separate: epsilon 0.25 each"]
        one, other = series.values()
        assert np.array_equal(one[:, 0], pooled.value.sel(coordinate=name))
        assert other[:, 0].tolist() == [r.value.sel(coordinate=name).item() for r in separate.values()]
        assert one[:, 1].round().tolist() == other[:, 1].round().tolist() == [0, 1, 2]  # halves would be ambiguous
        links = [line.get_xydata() for line in axes.lines if line.get_marker() == "None" and len(line.get_xdata()) == 2]
        assert np.array_equal(links[2], [one[2], other[2]])
    ticks = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert ticks == ["north (n = 10)", "south (n = 20)", "west (n = 30)"]
    assert figure.axes[0].get_ylim() == (2.5, -0.5)  # the first group at the top
    assert figure.releasable is True and figure.mark.reason == "made from Releases of groups"
    assert figure.get_supxlabel() == ""


def test_the_picture_is_a_function_of_the_releases(pooled, separate):
    first = plot_groups({"pooled": pooled, "separate": separate})
    again = {label: dpd.Release.from_dict(one.to_dict()) for label, one in separate.items()}
    second = plot_groups({"pooled": dpd.Release.from_dict(pooled.to_dict()), "separate": again})
    assert picture_bytes(first, "png", {}) == picture_bytes(second, "png", {})


def test_a_single_release_and_a_line_at_a_parameter(pooled):
    figure = plot_groups(pooled, center="mu", mechanism="m")
    lines = [line for line in figure.axes[1].lines if line.get_linestyle() == "--"]
    assert [set(line.get_xdata()) for line in lines] == [{pooled.parameters["mu"].item()}]
    assert list(drawn(figure.axes[0])) == ["released: epsilon 0.5"]


def test_one_mechanism_for_each_group():
    with pm.Model() as several:
        for label in LABELS[:2]:
            location = pm.Normal(f"{label}_location", 0, 5, shape=2)
            dpd.exponential_mechanism(label, location, ROWS[label == GROUPS], epsilon=0.5, directions="axes")
    release = dpd.release(several)
    figure = plot_groups({"separate": release})
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["north (n = 10)", "south (n = 20)"]
    points = drawn(figure.axes[0])["separate: epsilon 1"]
    assert points[:, 0].tolist() == [release.locations[label].values[0] for label in LABELS[:2]]


def test_draws_make_it_curator_side(pooled):
    with model():
        idata = dpd.sample_exact(200)
    figure = plot_groups({"release": pooled, "law": idata}, ci_prob=0.5)
    assert figure.releasable is False and figure.get_supxlabel() == CURATOR_NOTE
    values = idata.posterior["location"].values[0, :, :, 0]
    points = drawn(figure.axes[0])["law: 50% of the draws"]
    np.testing.assert_allclose(points[:, 0], np.median(values, axis=0))
    intervals = [line.get_xdata() for line in figure.axes[0].lines if line.get_linewidth() == 1.6]
    np.testing.assert_allclose(intervals, np.quantile(values, [0.25, 0.75], axis=0).T)
    figure.savefig(io.BytesIO())


@pytest.mark.filterwarnings("ignore::pymc_dpdepth.PrivacyLeakWarning")
def test_simulations_are_marked(pooled):
    simulated = dpd.release(model(), random_seed=1)
    figure = plot_groups({"a": pooled, "b": simulated})
    assert figure.releasable is False and "SIMULATION" in figure.get_supxlabel()


def test_plot_release_sends_groups_here(pooled):
    with pytest.raises(ValueError, match="dpd.plot_groups"):
        dpd.plot_release(pooled)


def test_misuse_is_refused_with_the_cure(pooled, separate):
    other = dpd.private_median(ROWS[["a"]], epsilon=1.0, prior="normal(0, 5)")
    depths = dpd.private_depth([[0.0, 0.0]], ROWS, epsilon=1.0, directions="axes")
    for arguments, error, message in (
        (([pooled],), TypeError, "releases: expected a mapping"),
        (({},), TypeError, "releases: expected a mapping"),
        (({"x": ROWS},), TypeError, r"releases\['x'\]: expected a Release.*got DataFrame"),
        (({"x": {"north": other}, "y": separate},), ValueError, r"same coordinates.*'y' has \['a', 'b'\]"),
        (({"x": {"east": separate["north"]}, "y": separate},), ValueError, "same groups"),
        (({"x": {"north": depths}},), ValueError, "locations of the same coordinates"),
    ):
        with pytest.raises(error, match=message):
            plot_groups(*arguments)
    for options, message in (
        ({"mechanism": "n"}, r"mechanism: expected one with groups, \['m'\], got 'n'"),
        ({"center": "tau"}, r"center: expected one of \['location', 'mu'\], got 'tau'"),
        ({"ci_prob": 1.0}, "ci_prob"),
    ):
        with pytest.raises(ValueError, match=message):
            plot_groups(pooled, **options)
