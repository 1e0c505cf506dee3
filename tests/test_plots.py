"""The picture of a Release: what it shows, and that odd input does not break it."""

import sys
import warnings

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from scipy import stats

import pymc_dpdepth as dpd
from pymc_dpdepth.plots import HEADROOM, plot_release, readable_number, save_release_plot

ROWS = np.column_stack([np.linspace(1.0, 9.0, 50), np.linspace(100.0, 900.0, 50)])


def release(prior="normal([5, 500], [5, 400])", rows=ROWS):
    return dpd.private_median(rows, epsilon=1.0, prior=prior, directions=dpd.Directions.axes(np.shape(rows)[1]))


def curve_of(axes):
    """Return the density that a panel shows; the other line is the released value."""
    (curve,) = [line for line in axes.lines if len(line.get_xdata()) > 2]
    return curve.get_data()


def texts_of(axes):
    return [text.get_text() for text in axes.texts]


def test_each_panel_shows_its_prior_and_value():
    made = release()
    figure = plot_release(made)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["x0", "x1"]
    for axes, value, mean in zip(figure.axes, made.value.values, (5, 500), strict=True):
        assert value in [line.get_xdata()[0] for line in axes.lines]
        assert texts_of(axes) == [readable_number(value)]
        low, high = axes.get_xlim()
        assert low < value < high and low < mean < high
    assert figure.axes[1].get_xlabel() == "prior Normal(mu=500, sigma=400)"
    title = figure.get_suptitle()
    assert "epsilon 1" in title and "exact (boxes)" in title and "imulat" not in title


def test_simulations_are_marked():
    with pytest.warns(dpd.PrivacyLeakWarning):
        made = dpd.private_median(ROWS, epsilon=1.0, prior="normal(0, 500)", random_seed=1)
    figure = plot_release(made)
    assert "Simulated" in figure.get_suptitle() and "SIMULATION" in figure.get_supxlabel()
    record = made.to_dict() | {"simulation": "unknown"}
    assert "unknown" in plot_release(dpd.Release.from_dict(record)).get_supxlabel()
    assert plot_release(release()).get_supxlabel() == ""


@pytest.mark.parametrize(
    ("prior", "expected"),
    [
        ("normal(5, 5)", stats.norm(5, 5)),
        ("lognormal(1, 0.5)", stats.lognorm(0.5, scale=np.e)),
        ("gamma(3, 0.5)", stats.gamma(3, scale=2)),
        ("logistic(5, 2)", stats.logistic(5, 2)),
        ("student_t(3, 5, 2)", stats.t(3, 5, 2)),
        ("gumbel(5, 2)", stats.gumbel_r(5, 2)),
        (pm.Moyal.dist(5, 2), stats.moyal(5, 2)),  # no closed form in the package: compiled by PyMC
    ],
)
def test_density_is_the_priors(prior, expected):
    (axes,) = plot_release(release(prior, ROWS[:, :1])).axes
    x, height = curve_of(axes)
    # Mass over width errs by f'' h^2 / 24 in a cell of width h; the axis has 800 cells over at most 25 scales of these
    # families, and |f''| <= 4 max f / scale^2: below 4 (25/800)^2 / 24 = 2e-4 of the maximum.
    np.testing.assert_allclose(height, expected.pdf(x), atol=2e-4 * expected.pdf(x).max())
    low, high = axes.get_xlim()
    assert low <= expected.ppf(0.005) and high >= expected.ppf(0.995)
    assert axes.get_ylim() == (0.0, HEADROOM * height.max())


def test_a_finite_support_is_shown_whole():
    (axes,) = plot_release(release("uniform(0, 10)", ROWS[:, :1])).axes
    x, height = curve_of(axes)
    # The two cells that hold an end are the only ones with neither 0 nor the full density.
    inside = (x > 0.05) & (x < 9.95)
    np.testing.assert_allclose(height[inside], 0.1, rtol=1e-9)
    low, high = axes.get_xlim()
    assert low < 0 and high > 10 and height[0] == height[-1] == 0
    width = x[1] - x[0]
    assert np.sum(height) * width == pytest.approx(1.0, abs=1e-9)


def test_a_positive_prior_over_many_magnitudes_gets_a_log_axis():
    (axes,) = plot_release(release("lognormal(3, 3)", ROWS[:, :1])).axes
    assert axes.get_xscale() == "log"
    x, height = curve_of(axes)
    # Density of log theta, normal(3, 3): areas are probabilities on the axis that is shown.
    np.testing.assert_allclose(height, stats.norm(3, 3).pdf(np.log(x)), atol=1e-5)
    (axes,) = plot_release(release("lognormal(3, 0.3)", ROWS[:, :1])).axes
    assert axes.get_xscale() == "linear"


def test_a_value_far_from_the_prior_is_shown():
    record = release("normal(0, 1)", ROWS[:, :1]).to_dict()
    for where in (record["locations"]["median"], record["parameters"]["location"]):
        where["values"] = [1e6]
    (axes,) = plot_release(dpd.Release.from_dict(record)).axes
    assert axes.get_xlim()[1] > 1e6 and texts_of(axes) == ["1,000,000"]


def test_many_coordinates():
    rows = np.tile(ROWS[:, :1], (1, 100))
    figure = plot_release(release("normal(5, 5)", rows))
    assert len(figure.axes) == 12 and "first 12 of 100 columns" in figure.get_suptitle()


@pytest.mark.parametrize(
    "prior",
    [[], [{"family": "Truncated", "parameters": {"parameter_0": 1.0}, "start": 0, "stop": 2}]],
    ids=["none on record", "not determined by its record"],
)
def test_priors_that_cannot_be_drawn(prior):
    record = release().to_dict()
    record["priors"] = {"median": prior}
    made = dpd.Release.from_dict(record)
    for axes, value in zip(plot_release(made).axes, made.value.values, strict=True):
        assert [line.get_xdata()[0] for line in axes.lines] == [value]
        assert len(axes.collections) == 0


def test_infinite_parameters():
    made = release(pm.TruncatedNormal.dist(0, 10, lower=0, shape=1), ROWS[:, :1])
    (axes,) = plot_release(made).axes
    x, height = curve_of(axes)
    assert height[x < x[0] - x[1]].max() == 0  # all cells below the one that holds the end, 0
    assert "inf" in axes.get_xlabel()


def test_several_locations():
    with pm.Model() as model:
        for name, width in (("first", 2), ("second", 1)):
            location = pm.Normal(f"{name}_location", 0, 500, shape=width)
            dpd.exponential_mechanism(name, location, ROWS[:, :width], epsilon=0.5)
    made = dpd.release(model)
    titles = [axes.get_title(loc="left") for axes in plot_release(made).axes]
    assert titles == ["first: x0", "first: x1", "second: x0"]
    (axes,) = plot_release(made, mechanism="second").axes
    assert axes.get_title(loc="left") == "x0"
    with pytest.raises(ValueError, match="second"):
        plot_release(made, mechanism="third")


def test_only_a_release_is_drawn():
    with pytest.raises(TypeError, match="Release"):
        plot_release(ROWS)


def test_odd_column_names(tmp_path):
    names = ["$a_b$ [red] {x", "so long a name that it would run into the next panel\nand a line", "年齢", "$"]
    made = release("normal(0, 500)", pd.DataFrame(np.tile(ROWS, (1, 2)), columns=names))
    titles = [axes.get_title(loc="left") for axes in plot_release(made).axes]
    assert titles[0] == names[0] and len(titles[1]) == 30 and "\n" not in titles[1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save_release_plot(made, tmp_path / "release.png")


def test_png_says_what_it_is_made_of(tmp_path):
    from PIL import Image

    path = tmp_path / "release.png"
    save_release_plot(release(), path)
    with Image.open(path) as picture:
        assert picture.text["releasable"] == "yes: made from a Release and its public prior"
        assert picture.text["simulation"] == "False"
        pixels = np.asarray(picture.convert("L"))
    assert pixels.min() < 128 < pixels.max()
    with pytest.raises(ValueError, match="png"):
        save_release_plot(release(), tmp_path / "release.pdf")
    assert [file.name for file in tmp_path.iterdir()] == ["release.png"]


def test_numbers_do_not_run_over_their_panel(tmp_path):
    """The number stands on the side of its line that has more room."""
    record = release("uniform([0, 0], [1e9, 1e9])").to_dict()
    for where in (record["locations"]["median"], record["parameters"]["location"]):
        where["values"] = [1.0, 999_999_999.0]
    figure = plot_release(dpd.Release.from_dict(record))
    figure.savefig(tmp_path / "drawn.png")
    for axes in figure.axes:
        frame, text = axes.get_window_extent(), axes.texts[0].get_window_extent()
        assert frame.x0 <= text.x0 and text.x1 <= frame.x1


def test_no_global_state():
    plot_release(release())
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or pyplot.get_fignums() == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (2.0, "2"),
        (22.067112, "22.0671"),
        (-7918.62, "-7,918.62"),
        (1234567.8, "1,234,568"),
        (100000.0, "100,000"),
        (0.000123456, "0.000123456"),
        (1e-9, "1e-09"),
        (1.5e20, "1.5e+20"),
    ],
)
def test_readable_numbers(value, text):
    assert readable_number(value) == text


# Depth values and refusals

POINTS = [[5.0, 500.0], [1.0, 100.0], [20.0, 0.0]]


def bars_of(axes):
    """Return the lower and upper ends of the bars, shape (k, 2)."""
    return np.array([[segment[:, 1].min(), segment[:, 1].max()] for segment in axes.collections[0].get_segments()])


@pytest.mark.parametrize(("delta", "law"), [(0.0, stats.laplace), (1e-6, stats.norm)])
def test_depth_values_are_dots_with_the_size_of_the_noise(delta, law, tmp_path):
    made = dpd.private_depth(POINTS, ROWS, epsilon=2.0, delta=delta, directions="axes", clamp=False)
    figure = plot_release(made)
    (axes,) = figure.axes
    (dots,) = [line for line in axes.lines if line.get_marker() == "o"]
    assert dots.get_xdata().tolist() == [0, 1, 2] and (dots.get_ydata() == made.value.values).all()
    assert [label.get_text() for label in axes.get_xticklabels()] == ["(5, 500)", "(1, 100)", "(20, 0)"]
    # The bar is nine tenths of the noise on either side of the value.
    half = law.ppf(0.95) * made.mechanisms[0]["noise_scale"]
    expected = np.stack([made.value.values - half, made.value.values + half], axis=1)
    np.testing.assert_allclose(bars_of(axes), expected, rtol=1e-9)
    title = figure.get_suptitle()
    assert title.startswith("Private depth values: epsilon 2, delta ") and "bar: 90% of the noise" in title
    assert "prior" not in title and f"({made.sampler})" in title
    save_release_plot(made, tmp_path / "depths.png")
    assert (tmp_path / "depths.png").read_bytes().startswith(b"\x89PNG")


def test_depths_of_many_points_have_numbers_and_no_bars():
    made = dpd.private_sample_depths(np.tile(ROWS, (4, 1)), epsilon=2.0)
    (axes,) = plot_release(made).axes
    (dots,) = [line for line in axes.lines if len(line.get_xdata()) > 2]
    assert len(dots.get_xdata()) == 200 and (dots.get_ydata() == made.value.values).all()
    assert len(axes.collections) == 0 and axes.get_xlabel() == "number of the point"
    assert all(float(label.get_text().replace("\N{MINUS SIGN}", "-")).is_integer() for label in axes.get_xticklabels())
    assert "bar" not in plot_release(made).get_suptitle()


# The breakdowns of these rows are 68 or more at this threshold, the cut is 8: a refusal has a probability below 1e-50.
PTR = {"epsilon": 4.0, "delta": 1e-6}
MANY = np.random.default_rng(0).normal(size=(2001, 2))


def test_what_passed_a_test_is_drawn():
    depths = dpd.propose_test_release(MANY, points=[[0.0, 0.0], [1.0, 1.0]], threshold=0.6, **PTR)
    figure = plot_release(depths)
    (axes,) = figure.axes
    # The noise is on the outlyingness, so that no bar of one length would be right.
    assert len(axes.collections) == 0 and "bar" not in figure.get_suptitle()
    assert "Private depth values" in figure.get_suptitle()
    median = dpd.propose_test_release(MANY, radius=5.0, threshold=0.6, **PTR)
    figure = plot_release(median)
    assert [texts_of(axes) for axes in figure.axes] == [[readable_number(value)] for value in median.value.values]
    assert "Private median" in figure.get_suptitle()
    statistic = dpd.ptr.release_statistic(MANY, dpd.ptr.MAD(), threshold=0.6, **PTR)
    assert "Private values" in plot_release(statistic).get_suptitle() and len(plot_release(statistic).axes) == 2


@pytest.mark.parametrize("options", [{"radius": 5.0}, {"points": [[0.0, 0.0]]}], ids=["median", "values"])
def test_a_refusal_has_no_picture_and_says_why(options, tmp_path):
    # B = 1 for rows without a scale: released with probability 1e-6.
    refused = dpd.propose_test_release(np.zeros((30, 2)), threshold=0.1, **PTR, **options)
    assert refused.refused
    path = tmp_path / "refused.png"
    for draw in (
        lambda: plot_release(refused),
        lambda: plot_release(refused, mechanism=refused.mechanisms[0]["name"]),
        lambda: save_release_plot(refused, path),
    ):
        with pytest.raises(ValueError, match=r"the test refused it \(release.refused is True\).*Draw releases that"):
            draw()
    assert not path.exists()
