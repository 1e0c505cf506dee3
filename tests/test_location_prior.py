import warnings

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import pymc_dpdepth as dpd
from pymc_dpdepth.mechanism import exponential_mechanism, read_mechanisms

FRAME = pd.DataFrame({"age": [31.0, 47.0, 52.0], "income": [1e4, 2e4, 4e4], "height": [160.0, 170.0, 180.0]})


def released_names(coords, X, **options):
    with pm.Model(coords={"coordinate": coords}) as model:
        location = pm.Normal("location", 0, 1e4, dims="coordinate")
        exponential_mechanism("median", location, X, epsilon=1.0, **options)
    return dpd.release(model).value.coords["coordinate"].values.tolist()


@pytest.mark.parametrize(
    "coords",
    [["income", "age", "height"], ["income", "height", "age"], ["age", "height", "weight"]],
    ids=["swapped", "turned", "shifted"],
)
def test_coords_in_another_order_than_the_columns_are_refused(coords):
    """A release would give each value the name of another column."""
    with pytest.raises(ValueError) as caught:
        released_names(coords, FRAME)
    assert str(coords) in str(caught.value) and str(list(FRAME)) in str(caught.value)
    assert "columns=[...]" in str(caught.value)


def test_the_cure_for_another_order():
    order = ["income", "age", "height"]
    assert released_names(order, FRAME, columns=order) == order


@pytest.mark.parametrize("coords", [["a", "b", "c"], ["age", "income", "height"], ["AGE", "b", "height"], [0, 1, 2]])
def test_coords_that_name_something_else_stay(coords):
    assert released_names(coords, FRAME) == [str(label) for label in coords]


def test_names_of_an_array_are_positions():
    assert released_names(["x1", "x2", "x3"], FRAME.to_numpy()) == ["x1", "x2", "x3"]
    with pytest.raises(ValueError, match="one order"):
        released_names(["x1", "x0", "x2"], FRAME.to_numpy())


@pytest.mark.parametrize("depth", [dpd.Spatial(), dpd.IntegratedDual(smoothing=1.0), dpd.ModifiedSpatial()], ids=str)
def test_huge_rows_give_no_warning(depth):
    """A warning of an overflow would tell of a far row. The others count as before: near them the depth is above 0."""
    rows = np.array([[1.7e308, -1.7e308], [0.1, 0.2], [-0.1, 0.1], [0.0, -0.2], [0.2, 0.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pm.Model() as model:
            location = pm.Normal("location", 0, 1e-3, shape=2)
            potential = exponential_mechanism("median", location, rows, depth=depth, epsilon=1.0)
    (mechanism,) = read_mechanisms(model)
    for theta in ([0.0, 0.0], [0.05, -0.1]):
        value = potential.eval({location: np.array(theta)})
        assert 0.0 < value <= mechanism.settings.beta
