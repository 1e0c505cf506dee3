"""Power-scaling pictures: ArviZ's numbers under our words, without a trace in pyplot."""

import arviz as az
import numpy as np
import pymc as pm
import pytest
from arviz_base.labels import DimCoordLabeller
from matplotlib import pyplot
from PIL import Image

import pymc_dpdepth as dpd
from pymc_dpdepth.plot_marks import CURATOR_NOTE
from pymc_dpdepth.plot_sensitivity import plot_psense

ROWS = np.random.default_rng(0).normal(size=(30, 2))


@pytest.fixture(scope="module")
def idata():
    with pm.Model():
        location = pm.Normal("location", 0, 1, shape=2)
        dpd.exponential_mechanism("median", location, ROWS, epsilon=2.0, directions="axes")
        return dpd.compute_log_prior_and_potential(dpd.sample_exact(200))


def words(plot):
    figure = plot.get_viz("figure")
    texts = [axes.get_title() for axes in figure.axes]
    return " ".join(texts + [text.get_text() for legend in figure.legends for text in legend.get_texts()])


@pytest.mark.parametrize("kind", ["dist", "quantities"])
def test_the_likelihood_is_called_epsilon(idata, kind, tmp_path):
    plot = plot_psense(idata, kind=kind, var_names=["location"])
    assert "epsilon" in words(plot) and "prior" in words(plot) and "likelihood" not in words(plot)
    assert plot.releasable is False and plot.get_viz("figure").releasable is False
    assert plot.get_viz("figure").get_supxlabel() == CURATOR_NOTE
    assert pyplot.get_fignums() == []
    dpd.save_plot(plot, tmp_path / "ours.png")
    plot.savefig(tmp_path / "arviz.png")
    for name in ("ours.png", "arviz.png"):
        with Image.open(tmp_path / name) as picture:
            assert picture.text["releasable"].startswith("no: ")


def test_numbers_are_those_of_arviz(idata):
    options = {"var_names": ["location"], "quantities": ["mean"], "alphas": (0.5, 2.0)}
    ours = plot_psense(idata, kind="quantities", **options)
    theirs = az.plot_psense_quantities(idata, backend="matplotlib", **options)
    pyplot.close("all")
    for a, b in zip(ours.get_viz("figure").axes, theirs.get_viz("figure").axes, strict=True):
        lines = [[line.get_xydata().tolist() for line in axes.lines] for axes in (a, b)]
        assert lines[0] == lines[1] and len(lines[0]) > 1


def test_ones_own_labeller_and_no_legend(idata):
    labeller = DimCoordLabeller()
    plot = plot_psense(idata, var_names=["location"], labeller=labeller)
    assert "component_group: epsilon" in words(plot)
    assert type(labeller) is DimCoordLabeller  # the caller's own is left as it was
    plot = plot_psense(idata, kind="quantities", var_names=["location"], visuals={"legend": False})
    assert not plot.get_viz("figure").legends


def test_figures_of_the_callers_stay_and_ours_go_even_when_arviz_fails(idata):
    mine = pyplot.figure()
    with pytest.raises(Exception):  # noqa: B017
        plot_psense(idata, var_names=["nothing of this name"])
    plot_psense(idata, var_names=["location"])
    assert pyplot.get_fignums() == [mine.number]
    pyplot.close(mine)


def test_misuse_is_refused_with_the_cure(idata):
    with pytest.raises(
        ValueError, match=r"it lacks \['log_prior', 'log_likelihood'\].*compute_log_prior_and_potential"
    ):
        plot_psense(idata.filter(lambda node: node.name == "posterior"))
    with pytest.raises(ValueError, match="kind: expected one of"):
        plot_psense(idata, kind="ecdf")
    with pytest.raises(TypeError, match="backend: expected matplotlib"):
        plot_psense(idata, backend="plotly")
    other = idata.copy()
    other["log_likelihood"].attrs = {}
    with pytest.raises(ValueError, match="of another origin"):
        plot_psense(other)
