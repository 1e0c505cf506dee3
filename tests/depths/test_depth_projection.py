import brute_force
import numpy as np
import pytest

from pymc_dpdepth.depths import Directions, Projection

# Projections p of d <= 3 terms carry errors up to 4 * 2^-52 |p|, and |p| < 4 here. The outlyingness o = distance/scale
# then moves by at most 2 * 16 * 2^-52 (1 + o) / scale, and the depth 1 / (1 + o) by at most this over the scale.
ROUNDING = 32 * 2.0**-52


@pytest.mark.parametrize("scale", ["mad", "iqr"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 13])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_equals_rational_arithmetic_from_the_definition(scale, n, d):
    generator = np.random.default_rng(n + 20 * d)
    rows = generator.standard_normal((n, d))
    points = np.vstack([rows, generator.standard_normal((6, d))])
    for directions in (Directions.axes(d), Directions.balanced(d, 2 * d + 1, seed=3)):
        depth = Projection(scale, directions)
        found = depth.evaluate(points, rows)
        us = directions.matrix()
        expected = [brute_force.projection(point, rows.tolist(), us.tolist(), scale) for point in points.tolist()]
        smallest_scale = (
            depth.prepare(rows)[1].min() if n > 1 else 1.0
        )  # one row has scale 0, and a depth of 0 or 1 exactly
        assert found.tolist() == pytest.approx(expected, abs=ROUNDING / smallest_scale)


@pytest.mark.parametrize("scale", ["mad", "iqr"])
def test_equals_rational_arithmetic_on_ties_exactly_on_axes(scale):
    """Small integers: medians, scales and distances are exact, so only the two divisions round."""
    generator = np.random.default_rng(1)
    for n in (2, 3, 6, 9):
        rows = generator.integers(-1, 2, size=(n, 2)).astype(float)
        points = np.array([[a, b] for a in (-1.0, -0.5, 0.0, 0.5, 1.0) for b in (-1.0, 0.0, 0.5)])
        expected = [brute_force.projection(p, rows.tolist(), np.eye(2).tolist(), scale) for p in points.tolist()]
        assert Projection(scale).evaluate(points, rows).tolist() == pytest.approx(expected, rel=2.0**-51)


@pytest.mark.parametrize("scale", ["mad", "iqr"])
def test_zero_scale_is_depth_one_at_the_median_and_zero_elsewhere(scale):
    rows = np.array([[2.0, 0.0], [2.0, 1.0], [2.0, -1.0]])
    assert Projection(scale).evaluate([[2.0, 0.0], [2.0 + 2**-50, 0.0]], rows).tolist() == [1.0, 0.0]
    oblique = Projection(scale, Directions.balanced(2, 5))
    same = np.repeat(rows[1:2] / 3, 7, axis=0)
    assert oblique.evaluate(np.vstack([same[:1], same[:1] + 1]), same).tolist() == [1.0, 0.0]


def test_far_rows_and_points_give_numbers_between_zero_and_one():
    rows = np.array([[1.7e308], [-1.7e308], [0.0], [1.0]])
    for scale in ("mad", "iqr"):
        values = Projection(scale).evaluate([[1.7e308], [0.5], [-1e300]], rows)
        assert np.all((values >= 0) & (values <= 1))


def test_shift_and_scale_change_nothing():
    """Powers of two and small integers keep every operation exact."""
    generator = np.random.default_rng(2)
    rows, points = generator.integers(-9, 10, size=(11, 2)), generator.integers(-9, 10, size=(5, 2))
    for scale in ("mad", "iqr"):
        expected = Projection(scale).evaluate(points, rows)
        assert np.array_equal(Projection(scale).evaluate(points * 8.0 + 64, rows * 8.0 + 64), expected)


def test_public_facts():
    depth = Projection("iqr", Directions.axes(2))
    assert not depth.differentiable
    assert not depth.bounded_sensitivity
    assert depth.sensitivity(10_000, 3) == depth.upper_bound(10_000, 3) == 1.0
    assert depth.describe() == {
        "name": "projection",
        "scale": "iqr",
        "smoothing": None,
        "directions": {"kind": "axes", "d": 2, "m": 2, "seed": None},
    }
    with pytest.raises(ValueError, match='scale must be "mad" or "iqr"'):
        Projection("sd")
