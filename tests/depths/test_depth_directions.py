import json

import numpy as np
import pytest

from pymc_dpdepth.depths import Directions, as_directions

# A norm or inner product of d <= 30 doubles, each rounded, of rows of norm 1.
UNIT_TOLERANCE = 30 * 2.0**-52

ALL_KINDS = [
    Directions.axes(5),
    Directions.orthonormal(5, seed=4),
    Directions.uniform(5, 12, seed=4),
    Directions.balanced(5, 12, seed=4),
    Directions.from_array(np.arange(1, 16).reshape(3, 5)),
]


@pytest.mark.parametrize("directions", ALL_KINDS, ids=lambda directions: directions.kind)
def test_rows_are_unit_vectors_of_the_stated_shape_and_cannot_be_changed(directions):
    matrix = directions.matrix()
    assert matrix.shape == (directions.m, directions.d)
    assert matrix.dtype == np.float64
    assert np.max(np.abs(np.sum(matrix**2, axis=1) - 1)) < UNIT_TOLERANCE
    with pytest.raises(ValueError, match="read-only"):
        matrix[0, 0] = 3.0
    assert directions.matrix() is matrix


@pytest.mark.parametrize("directions", ALL_KINDS, ids=lambda directions: directions.kind)
def test_record_is_json_and_array_rows_come_back_to_the_bit(directions):
    record = json.loads(json.dumps(directions.describe()))
    assert (record["kind"], record["d"], record["m"]) == (directions.kind, directions.d, directions.m)
    assert record["seed"] == directions.seed
    if directions.kind == "array":
        assert Directions.from_array(record["rows"]) == directions


def test_random_rows_read_back_as_an_array_are_the_same_rows():
    rows = Directions.uniform(7, 100, seed=2).matrix()
    assert np.array_equal(Directions.from_array(rows).matrix(), rows)


def test_axes_are_the_identity():
    assert np.array_equal(Directions.axes(3).matrix(), np.eye(3))


def test_orthonormal_is_orthonormal_and_changes_with_the_seed():
    q = Directions.orthonormal(30, seed=1).matrix()
    assert np.max(np.abs(q @ q.T - np.eye(30))) < UNIT_TOLERANCE
    assert not np.array_equal(q, Directions.orthonormal(30, seed=2).matrix())


def test_balanced_blocks_are_orthonormal_and_start_with_the_rotation_of_that_seed():
    d, m = 4, 14
    rows = Directions.balanced(d, m, seed=9).matrix()
    for start in range(0, m, d):
        block = rows[start : start + d]
        assert np.max(np.abs(block @ block.T - np.eye(len(block)))) < UNIT_TOLERANCE
    assert np.array_equal(rows[:d], Directions.orthonormal(d, seed=9).matrix())
    assert not np.array_equal(rows[:d], rows[d : 2 * d])


def test_random_kinds_are_spread_evenly_over_the_sphere():
    """The mean of u u^T is I/d. A diagonal entry u_j^2 is Beta(1/2, (d-1)/2) with variance 2 (d-1) / (d^2 (d+2)).

    With m = 20000 and d = 3 its mean has sd 0.0021; off-diagonal entries have variance 1/(d (d+2)), sd 0.0018. Six sd
    for the 12 entries of both kinds keep the family-wise error below 1e-7.
    """
    d, m = 3, 20_000
    for directions in (Directions.uniform(d, m, seed=0), Directions.balanced(d, m, seed=0)):
        u = directions.matrix()
        assert np.max(np.abs(u.T @ u / m - np.eye(d) / d)) < 6 * 0.0022
        assert np.max(np.abs(u.mean(axis=0))) < 6 / np.sqrt(d * m)  # u_j has variance 1/d


def test_first_entry_of_a_rotation_takes_both_signs():
    """A QR factor without its sign correction gives one sign only: 60 seeds of one sign have probability 2^-59."""
    signs = {float(np.sign(Directions.orthonormal(2, seed=seed).matrix()[0, 0])) for seed in range(60)}
    assert signs == {-1.0, 1.0}


def test_equal_when_kind_and_seed_agree():
    assert Directions.uniform(3, 5, seed=1) == Directions.uniform(3, 5, seed=1)
    assert hash(Directions.uniform(3, 5, seed=1)) == hash(Directions.uniform(3, 5, seed=1))
    distinct = {
        Directions.axes(3),
        Directions.axes(4),
        Directions.orthonormal(3),
        Directions.orthonormal(3, seed=1),
        Directions.uniform(3, 3),
        Directions.uniform(3, 4),
        Directions.balanced(3, 3),
        Directions.from_array(np.eye(3)),
        Directions.from_array(np.eye(3)[:2]),
    }
    assert len(distinct) == 9


def test_equal_arrays_are_equal_whatever_their_scale_order_or_zero_sign():
    rows = np.array([[3.0, 0.0], [0.0, -2.0]])
    same = Directions.from_array(np.asfortranarray(rows * 5))
    assert Directions.from_array(rows) == same
    assert hash(Directions.from_array(rows)) == hash(same)
    assert Directions.from_array([[1.0, -0.0]]) == Directions.from_array([[1.0, 0.0]])


def test_the_given_array_is_copied():
    array = np.eye(2)
    directions = Directions.from_array(array)
    array[0] = [0.0, 1.0]
    assert np.array_equal(directions.matrix(), np.eye(2))


@pytest.mark.parametrize("scale", [5e-324, 2.0**-600, 1 / 3, 1 + 2.0**-52, 7.0, 2.0**600, 1.7e308])
def test_a_multiple_of_an_axis_is_exactly_an_axis(scale):
    assert np.array_equal(Directions.from_array([[0.0, -scale, 0.0]]).matrix(), [[0.0, -1.0, 0.0]])


@pytest.mark.parametrize("scale", [2.0**-600, 1.0, 2.0**600])
def test_rows_of_any_scale_are_normalised(scale):
    matrix = Directions.from_array([[3 * scale, 4 * scale]]).matrix()
    assert np.max(np.abs(matrix - [[0.6, 0.8]])) < UNIT_TOLERANCE


@pytest.mark.parametrize("array", [[[0.0, 0.0]], [[1.0, 0.0], [np.nan, 1.0]], [[np.inf, 1.0]]])
def test_zero_and_non_finite_rows_are_refused_by_their_index(array):
    with pytest.raises(ValueError, match=rf"not: \[{len(array) - 1}\]"):
        Directions.from_array(array)


@pytest.mark.parametrize("array", [[1.0, 2.0], np.empty((0, 2)), np.empty((2, 0)), np.ones((1, 2, 3))])
def test_arrays_of_other_shapes_are_refused(array):
    with pytest.raises(ValueError, match=r"shape \(m, d\)"):
        Directions.from_array(array)


def test_sizes_and_seeds_are_checked():
    with pytest.raises(ValueError, match="d must be an integer of at least 1; got 0"):
        Directions.axes(0)
    with pytest.raises(ValueError, match="m must be an integer of at least 1"):
        Directions.uniform(2, 0)
    with pytest.raises(ValueError, match="seed must be an integer of at least 0"):
        Directions.orthonormal(2, seed=-1)
    with pytest.raises(TypeError, match="seed must be an integer; got float"):
        Directions.balanced(2, 3, seed=0.5)
    with pytest.raises(ValueError, match="one of axes"):
        Directions("rotation", 2, 2)
    assert Directions.uniform(np.int64(2), np.int32(3), seed=np.int64(1)) == Directions.uniform(2, 3, seed=1)


def test_as_directions():
    assert as_directions(None) is None
    assert as_directions("auto") == "auto"
    axes = Directions.axes(2)
    assert as_directions(axes) is axes
    assert as_directions([[2.0, 0.0]]) == Directions.from_array([[1.0, 0.0]])
    with pytest.raises(ValueError, match=r"Use Directions.axes\(d\)"):
        as_directions("orthonormal")


def test_repr_holds_no_bytes():
    assert repr(Directions.from_array(np.eye(2))) == "Directions(kind='array', d=2, m=2, seed=None)"
