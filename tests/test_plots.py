"""The picture of a Release."""

import sys

import numpy as np
import pytest

import pymc_dpdepth as dpd
from pymc_dpdepth.plots import _density, plot_release, save_release_plot

ROWS = np.column_stack([np.linspace(1.0, 9.0, 50), np.linspace(100.0, 900.0, 50)])


def release(prior="normal([5, 500], [5, 400])", rows=ROWS):
    return dpd.private_median(rows, epsilon=1.0, prior=prior)


def test_each_panel_shows_its_prior_and_value():
    made = release()
    figure = plot_release(made)
    assert [axes.get_title() for axes in figure.axes] == ["x0", "x1"]
    for axes, value in zip(figure.axes, made.value.values, strict=True):
        (line,) = axes.lines
        assert line.get_xdata()[0] == value
        low, high = axes.get_xlim()
        assert low < value < high
        assert len(axes.collections) == 1
    assert "epsilon = 1" in figure.get_suptitle() and "SIMULATION" not in figure.get_suptitle()


def test_simulations_are_marked():
    with pytest.warns(dpd.PrivacyLeakWarning):
        made = dpd.private_median(ROWS, epsilon=1.0, prior="normal(0, 500)", random_seed=1)
    assert "SIMULATION" in plot_release(made).get_suptitle()


@pytest.mark.parametrize(
    ("prior", "scipy_name", "arguments"),
    [
        ("normal(5, 5)", "norm", {"loc": 5, "scale": 5}),
        ("uniform(0, 10)", "uniform", {"loc": 0, "scale": 10}),
        ("lognormal(1, 0.5)", "lognorm", {"s": 0.5, "scale": np.e}),
        ("half_normal(4)", "halfnorm", {"scale": 4}),
        ("gamma(2, 0.5)", "gamma", {"a": 2, "scale": 2}),
        ("exponential(0.2)", "expon", {"scale": 5}),
    ],
)
def test_density_is_the_priors(prior, scipy_name, arguments):
    from scipy import stats

    made = release(prior, ROWS[:, :1])
    x, height = _density(made.priors["median"], 0)
    # A difference quotient over a cell of width h errs by f'' h^2 / 24: with 400 cells below 1e-4 of the maximum.
    expected = getattr(stats, scipy_name)(**arguments).pdf(x)
    np.testing.assert_allclose(height, expected, atol=1e-4 * expected.max())


def test_many_coordinates_and_priors_without_a_record():
    rows = np.tile(ROWS[:, :1], (1, 40))
    figure = plot_release(release("normal(5, 5)", rows))
    assert len(figure.axes) == 12 and "first 12 of 40" in figure.get_suptitle()
    record = release().to_dict()
    record["priors"] = {"median": []}
    figure = plot_release(dpd.Release.from_dict(record))
    assert all(len(axes.collections) == 0 for axes in figure.axes)


def test_png_says_what_it_is_made_of(tmp_path):
    path = tmp_path / "release.png"
    save_release_plot(release(), path)
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG") and b"made from a Release and its public prior alone" in data


def test_no_global_state():
    plot_release(release())
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or pyplot.get_fignums() == []


def test_unknown_mechanism_is_refused():
    with pytest.raises(ValueError, match="median"):
        plot_release(release(), mechanism="mean")
