"""The picture of errors: its lines are the numbers, and it may be shown to anyone."""

import io

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import pymc_dpdepth as dpd
from pymc_dpdepth.plot_errors import plot_error

SETTINGS = {"n": [20, 60, 200], "epsilon": [0.5, 2.0], "prior": "normal(0, 3)", "directions": "axes"}
SETTINGS |= {"replicates": 4, "random_seed": 1, "progressbar": False}


def population(generator, n):
    return generator.normal(size=(n, 2))


@pytest.fixture(scope="module")
def errors():
    return dpd.error_grid(population, **SETTINGS)


@pytest.mark.parametrize(("x", "other"), [("n", "epsilon"), ("epsilon", "n")])
def test_lines_are_the_errors(errors, x, other):
    figure = plot_error(errors, x=x)
    (axes,) = figure.axes
    for line, value in zip(axes.containers, errors[other].values, strict=True):
        assert line.get_label() == f"{other} = {value:g}"
        x_drawn, y_drawn = line[0].get_data()
        assert x_drawn.tolist() == errors[x].values.tolist()
        np.testing.assert_array_equal(y_drawn, errors["distance_rms"].sel({other: value}))
    without = [line for line in axes.lines if line.get_linestyle() == ":" or line.get_label() == "without privacy"]
    drawn = {float(y) for line in without for y in line.get_ydata()}
    assert drawn == set(errors["nonprivate_rms"].values.tolist())
    assert "without privacy" in [text.get_text() for text in axes.get_legend().get_texts()]
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert [text.get_text() for text in axes.get_xticklabels()] == [f"{value:g}" for value in errors[x].values]
    assert figure.releasable is True and figure.mark.reason.startswith("made from synthetic rows")
    figure.savefig(io.BytesIO())


def test_a_population_is_computed_first(errors):
    figure = plot_error(population, **SETTINGS)
    first = figure.axes[0].containers[0][0].get_ydata()
    np.testing.assert_array_equal(first, errors["distance_rms"].values[0])


def test_ones_own_axes_and_misuse(errors):
    axes = Figure().add_subplot()
    assert plot_error(errors, ax=axes) is axes.figure and not hasattr(axes.figure, "releasable")
    public = plot_error(errors)
    part = public.add_subfigure(public.add_gridspec(1, 1)[0])
    assert plot_error(errors, ax=part.add_subplot()) is public and public.releasable is True
    with pytest.raises(ValueError, match=r"x: expected one of \('n', 'epsilon'\), got 'd'"):
        plot_error(errors, x="d")
    with pytest.raises(TypeError, match="n: the Dataset of error_grid has these already"):
        plot_error(errors, n=[10])
    with pytest.raises(ValueError, match="the Dataset that dpd.error_grid returned"):
        plot_error(xr.Dataset())
