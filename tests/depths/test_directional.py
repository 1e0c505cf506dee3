import copy
import dataclasses
import json
import pickle

import numpy as np
import pytest

from pymc_dpdepth.depths import Directions, Halfspace, IntegratedDual, IntegratedRankWeighted, Projection
from pymc_dpdepth.depths.univariate import DUAL, SMOOTHED_DUAL, TUKEY

CLASSES = [Halfspace, IntegratedRankWeighted, IntegratedDual, Projection]


@pytest.mark.parametrize(
    ("depth", "univariate", "aggregation"),
    [
        (Halfspace(), TUKEY, "min"),
        (IntegratedRankWeighted(), TUKEY, "mean"),
        (IntegratedDual(), DUAL, "mean"),
        (IntegratedDual(3.0), SMOOTHED_DUAL, "mean"),
    ],
    ids=repr,
)
def test_a_depth_is_a_univariate_depth_and_an_aggregation(depth, univariate, aggregation):
    assert depth.univariate is univariate
    assert depth.aggregation == aggregation
    assert depth.differentiable is univariate.smoothed
    assert depth.bounded_sensitivity


@pytest.mark.parametrize("depth", CLASSES)
def test_resolve(depth):
    assert depth(directions="axes").resolve(3) == depth(directions=Directions.axes(3))
    assert depth().resolve(5) == depth(directions=Directions.axes(5))
    oblique = depth is Halfspace
    for d in (2, 3, 4):
        assert depth().resolve(d).directions == (Directions.balanced(d, 100) if oblique else Directions.axes(d))
    assert depth().resolve(1) == depth(directions=Directions.axes(1))
    concrete = depth(directions=Directions.uniform(3, 5))
    assert concrete.resolve(3) is concrete
    assert depth(directions=None).resolve(1) == depth(directions=Directions.axes(1))
    assert depth(directions=[[-2.0], [1.0]]).resolve(1) == depth(directions=Directions.axes(1))
    axis = depth(directions=Directions.axes(1))
    assert axis.resolve(1) is axis


@pytest.mark.parametrize("depth", CLASSES)
def test_directions_for_another_dimension_are_refused(depth):
    for directions, d in ((Directions.axes(2), 3), (Directions.from_array(np.eye(2)), 1), (np.eye(3), 2)):
        for call in (
            lambda p: p.resolve(d),
            lambda p: p.prepare(np.zeros((4, d))),
            lambda p: p.evaluate([[0.0] * d], [[0.0] * d]),
        ):
            with pytest.raises(ValueError, match=rf"as many entries as the data have columns, {d}; got"):
                call(depth(directions=directions))


@pytest.mark.parametrize("depth", CLASSES)
def test_all_directions_in_more_than_one_dimension_are_refused_with_the_cure(depth):
    with pytest.raises(ValueError, match=r"Directions.balanced\(4, m\)"):
        depth(directions=None).resolve(4)


@pytest.mark.parametrize("depth", CLASSES)
def test_frozen_hashable_comparable_and_picklable(depth):
    one, other = depth(directions=Directions.uniform(2, 3, seed=1)), depth(directions=Directions.uniform(2, 3, seed=1))
    assert one == other
    assert hash(one) == hash(other)
    assert one != depth(directions=Directions.uniform(2, 3, seed=2))
    assert depth(directions=np.eye(2)) == depth(directions=2 * np.eye(2))
    assert pickle.loads(pickle.dumps(one)) == one == copy.deepcopy(one)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.directions = None
    assert Halfspace() != IntegratedRankWeighted()


@pytest.mark.parametrize("depth", CLASSES)
def test_with_directions_changes_nothing_else(depth):
    assert depth().with_directions([[0.0, 2.0]]) == depth(directions=[[0.0, 1.0]])
    assert IntegratedDual(4.0).with_directions(None) == IntegratedDual(4.0, None)
    assert Projection("iqr").with_directions(None) == Projection("iqr", None)


def test_in_one_dimension_every_direction_set_is_the_axis():
    rows, points = np.arange(6.0)[:, None], np.array([[-1.0], [2.0], [2.5], [5.0]])
    for depth in (Halfspace(), IntegratedRankWeighted(), IntegratedDual(), IntegratedDual(2.0), Projection()):
        expected = depth.evaluate(points, rows)
        for directions in (None, [[-3.0]], Directions.uniform(1, 7), Directions.balanced(1, 4)):
            assert np.array_equal(depth.with_directions(directions).evaluate(points, rows), expected)


def test_describe_is_json():
    assert Halfspace().describe() == {"name": "halfspace", "smoothing": None, "directions": {"kind": "auto"}}
    assert IntegratedRankWeighted(None).describe()["directions"] == {"kind": "all"}
    record = IntegratedDual(10, [[3.0, 4.0]]).describe()
    assert json.loads(json.dumps(record)) == record
    assert record["smoothing"] == 10.0
    assert record["directions"] == {"kind": "array", "d": 2, "m": 1, "seed": None, "rows": [[0.6, 0.8]]}
    balanced = IntegratedDual(directions=Directions.balanced(2, 4, seed=5)).describe()["directions"]
    assert balanced == {"kind": "balanced", "d": 2, "m": 4, "seed": 5}


@pytest.mark.parametrize("smoothing", [0, -1.0, np.nan, np.inf])
def test_smoothing_must_be_finite_and_positive(smoothing):
    with pytest.raises(ValueError, match="smoothing must be finite and above 0"):
        IntegratedDual(smoothing)


@pytest.mark.parametrize("smoothing", ["10", True, [1.0]])
def test_smoothing_must_be_a_number(smoothing):
    with pytest.raises(TypeError, match="smoothing must be a number"):
        IntegratedDual(smoothing)


@pytest.mark.parametrize("smoothing", [1e-200, 1e200])
def test_smoothing_out_of_range_is_refused_with_the_cure(smoothing):
    with pytest.raises(ValueError, match="Rescale the columns"):
        IntegratedDual(smoothing)


def test_smoothing_of_any_number_type_is_the_same_depth():
    assert IntegratedDual(10) == IntegratedDual(10.0) == IntegratedDual(np.float64(10)) == IntegratedDual(np.int64(10))
    assert hash(IntegratedDual(10)) == hash(IntegratedDual(np.float32(10)))
