"""The picture of an interval: what it draws, and that it may leave."""

import matplotlib.image
import numpy as np
import pytest
from extrema_cases import BOUNDS, normal_rows
from matplotlib.figure import Figure

import pymc_dpdepth as dpd
from pymc_dpdepth.extrema.plot import MOST_PARAMETERS


def interval(k=3, **options):
    rows = normal_rows(n=2000, k=k, mu=np.linspace(0, 1, k))
    return dpd.extrema_interval(rows, family=dpd.extrema.Gaussian(bounds=BOUNDS), epsilon=20.0, **options)


def drawn_ends(axes, height):
    """Return the ends of the longest line at a height."""
    lines = [line.get_xdata() for line in axes.lines if len(line.get_xdata()) == 2 and line.get_ydata()[0] == height]
    return max(lines, key=np.ptp)


def labels(axes):
    return [label.get_text() for label in axes.get_yticklabels()]


@pytest.mark.parametrize("sided", ["lower", "upper", "two"])
@pytest.mark.parametrize("extremum", ["max", "min"])
def test_limits_of_each_method_are_drawn(sided, extremum):
    ci = interval(sided=sided, extremum=extremum)
    figure = ci.plot()
    assert isinstance(figure, Figure)
    (axes,) = figure.axes
    order = np.argsort(ci.estimates.values)[:: -1 if extremum == "max" else 1]
    assert labels(axes)[:3] == [f"x{j}" for j in order]
    assert labels(axes)[3:] == ["naive, not valid", "uncorrected, not valid", "corrected", "Bonferroni"]
    compared = ci.compare()
    for height, (_, limits) in enumerate(compared.iterrows(), start=3):
        left, right = drawn_ends(axes, height)
        assert left == limits.get("lower", axes.get_xlim()[0]) and right == limits.get("upper", axes.get_xlim()[1])
    dots = {line.get_ydata()[0]: line.get_xdata()[0] for line in axes.lines if line.get_marker() in ("o", "D")}
    assert dots == {**dict(enumerate(ci.estimates.values[order])), 5: ci.estimate}
    assert f"{ci.selected}, correction r = 0.1" in axes.get_title(loc="left")
    assert ("Bonferroni" in axes.get_title(loc="left")) == (sided == "two")


def test_single_intervals_hold_their_estimates():
    ci = interval()
    (axes,) = ci.plot().axes
    for height, j in enumerate(np.argsort(-ci.estimates.values)):
        left, right = drawn_ends(axes, height)
        moved = ci.bootstrap_estimates[:, j] - ci.estimates.values[j]
        # Order statistics 1951 of 2000 on both sides, of error .025 each.
        assert left == ci.estimates.values[j] - np.sort(moved)[1950]
        assert right == ci.estimates.values[j] + np.sort(-moved)[1950]


def test_the_axes_may_be_the_users_and_no_window_is_opened():
    figure = Figure()
    axes = figure.add_subplot(1, 2, 2)
    assert interval().plot(ax=axes) is figure and len(axes.lines) > 3
    # What else a figure of the user's holds is not known, so nothing says that it may leave.
    assert not getattr(figure, "releasable", False)
    import matplotlib.pyplot as plt

    assert not plt.get_fignums()


def test_in_a_subfigure_the_figure_that_is_saved_is_marked_and_returned():
    figure = dpd.plot_depth_contours(np.arange(8.0).reshape(4, 2))
    axes = figure.add_subfigure(figure.add_gridspec(1, 1)[0]).add_subplot()
    assert interval().plot(ax=axes) is figure and figure.releasable is False


def test_of_many_parameters_the_most_extreme_are_drawn():
    ci = interval(k=MOST_PARAMETERS + 5)
    (axes,) = ci.plot().axes
    assert len(labels(axes)) == MOST_PARAMETERS + 4 and labels(axes)[0] == ci.selected
    assert f"the most extreme {MOST_PARAMETERS} drawn" in axes.get_title(loc="left")


def test_a_limit_that_needs_more_replicates_reaches_to_the_end():
    ci = interval(replicates=25)  # 1 - .05 / 3 of 25 is beyond the largest
    (axes,) = ci.plot().axes
    assert ci.compare().loc["bonferroni", "lower"] == -np.inf
    assert tuple(drawn_ends(axes, 6)) == axes.get_xlim()


def test_without_correction_the_picture_says_so():
    (axes,) = interval(correction=None).plot().axes
    assert "this one: no correction" in labels(axes) and "correction none" in axes.get_title(loc="left")


def test_a_saved_picture_says_whether_it_may_leave(tmp_path):
    path = tmp_path / "interval.png"
    figure = interval().plot()
    assert figure.releasable is True
    dpd.save_plot(figure, path)
    raw = path.read_bytes()
    assert b"releasable\x00yes: made from an ExtremaInterval, which is public" in raw and b"simulation\x00False" in raw
    assert matplotlib.image.imread(path).std() > 0.01
    with pytest.warns(dpd.PrivacyLeakWarning):
        seeded = interval(random_seed=1).plot()
    assert seeded.releasable is False and "SIMULATION" in seeded.axes[0].get_xlabel()
    dpd.save_plot(seeded, path)
    assert b"releasable\x00no: " in path.read_bytes() and b"simulation\x00True" in path.read_bytes()


def test_names_are_drawn_as_they_are(tmp_path):
    pandas = pytest.importorskip("pandas")
    names = ["$x_1$", "a" * 60, "line\nend"]
    frame = pandas.DataFrame(normal_rows(), columns=names)
    ci = dpd.extrema_interval(frame, family=dpd.extrema.Gaussian(bounds=BOUNDS), epsilon=20.0)
    (axes,) = ci.plot().axes
    assert {"$x_1$", "a" * 23 + "…", "line end"} <= set(labels(axes))
    dpd.save_plot(ci.plot(), tmp_path / "x.png")
