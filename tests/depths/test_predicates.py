"""Exact signs against rational arithmetic, on points that are nearly or exactly degenerate."""

from fractions import Fraction

import numpy as np
import pytest

from pymc_dpdepth.depths.predicates import orient2d, orient3d, sign_of_sum_of_products

TRIALS = 2000


def determinant(rows):
    """Return a determinant of 2 or 3 rows of fractions."""
    if len(rows) == 2:
        return rows[0][0] * rows[1][1] - rows[0][1] * rows[1][0]
    (a, b, c), q, r = rows
    return (
        a * determinant([q[1:], r[1:]])
        - b * determinant([[q[0], q[2]], [r[0], r[2]]])
        + c * determinant([q[:2], r[:2]])
    )


def exact_sign(points):
    """Return the sign of the determinant of the differences to the last point."""
    exact = [[Fraction(float(x)) for x in point] for point in points]
    value = determinant([[x - y for x, y in zip(point, exact[-1], strict=True)] for point in exact[:-1]])
    return (value > 0) - (value < 0)


def nearly_degenerate(generator, d):
    """Return d + 1 points in or beside a hyperplane, some moved by one unit in the last place."""
    kind = generator.integers(4)
    if kind == 0:
        points = generator.integers(-3, 4, size=(d + 1, d)).astype(float)
    else:
        base, spans = generator.normal(size=d), generator.normal(size=(d - 1, d))
        points = base + generator.normal(size=(d + 1, d - 1)) @ spans
    if kind == 2:
        points = points * 0.1 + 0.3
    if kind == 3:
        i, j = generator.integers(d + 1), generator.integers(d)
        points[i, j] = np.nextafter(points[i, j], generator.choice([-np.inf, np.inf]))
    return points * 2.0 ** generator.choice([-300, -40, 0, 40, 300])


@pytest.mark.parametrize(("d", "predicate"), [(2, orient2d), (3, orient3d)])
def test_signs_are_those_of_rational_arithmetic(d, predicate):
    generator = np.random.default_rng(d)
    seen = set()
    for _ in range(TRIALS):
        points = nearly_degenerate(generator, d)
        expected = exact_sign(points)
        assert predicate(*points.ravel()) == expected
        seen.add(expected)
    assert seen == {-1, 0, 1}


@pytest.mark.parametrize(("d", "predicate"), [(2, orient2d), (3, orient3d)])
def test_plain_arithmetic_would_be_wrong_here(d, predicate):
    # The same trials in plain doubles give wrong signs, so the exact branch is needed and is reached.
    generator = np.random.default_rng(d)
    wrong = 0
    for _ in range(TRIALS):
        points = nearly_degenerate(generator, d)
        differences = points[:-1] - points[-1]
        wrong += int(np.sign(determinant(differences.tolist()))) != exact_sign(points)
    assert wrong > 0


def test_repeated_points_and_the_same_line():
    assert orient2d(0.1, 0.1, 0.1, 0.1, 5.0, 7.0) == 0
    assert orient2d(0.0, 0.0, 1.0, 1.0, 1e300, 1e300) == 0
    assert orient2d(0.0, 0.0, 1.0, 1.0, 1e300, np.nextafter(1e300, 2e300)) == exact_sign(
        [(0.0, 0.0), (1.0, 1.0), (1e300, np.nextafter(1e300, 2e300))]
    )
    assert orient3d(*[0.0] * 9, 1.0, 2.0, 3.0) == 0


def anywhere_in_the_doubles(generator, d):
    """Return d + 1 points whose products leave the range of doubles, often degenerate ones."""
    kind = generator.integers(5)
    if kind == 0:
        bits = generator.integers(0, 2**64, size=(d + 1, d), dtype=np.uint64)
        points = bits.view(np.float64)
        points[~np.isfinite(points)] = 0.0
    elif kind == 1:
        # Each coordinate has a scale of its own, which leaves the sign as it is: ties stay ties.
        points = generator.integers(-3, 4, size=(d + 1, d)) * 2.0 ** generator.integers(-1070, 1000, size=(1, d))
    elif kind == 2:
        points = generator.choice([0, 5e-324, -5e-324, 1e-310, 2e-308, 1.0, 1.7e308, -1.7e308], size=(d + 1, d))
    elif kind == 3:
        points = generator.integers(-2, 3, size=(d + 1, d)) * 5e-324
    else:
        points = generator.choice([0.0, 1, 2, 3], size=(d + 1, d)) * generator.choice([1, 1e300, 1e-300], (d + 1, 1))
    if generator.integers(3) == 0:
        i, j = generator.integers(d + 1), generator.integers(d)
        points[i, j] = np.nextafter(points[i, j], generator.choice([-1e308, 1e308]))
    return points


@pytest.mark.parametrize(("d", "predicate"), [(2, orient2d), (3, orient3d)])
def test_no_product_overflows_or_underflows(d, predicate):
    generator = np.random.default_rng(10 + d)
    seen = set()
    for _ in range(TRIALS):
        points = anywhere_in_the_doubles(generator, d)
        expected = exact_sign(points)
        assert predicate(*points.ravel()) == expected
        seen.add(expected)
    assert seen == {-1, 0, 1}


@pytest.mark.parametrize(("d", "predicate"), [(2, orient2d), (3, orient3d)])
def test_signs_follow_the_order_of_the_points(d, predicate):
    generator = np.random.default_rng(20 + d)
    for _ in range(TRIALS // 4):
        points = nearly_degenerate(generator, d)
        swapped = points[[1, 0, *range(2, d + 1)]]
        assert predicate(*swapped.ravel()) == -predicate(*points.ravel())


def test_sums_of_products_that_cancel():
    generator = np.random.default_rng(30)
    seen = set()
    for _ in range(TRIALS):
        factors = generator.normal(size=(6, 3)) * 2.0 ** generator.integers(-340, 340, size=(6, 3))
        factors[3:] = factors[:3, ::-1]
        factors[3:, 0] *= -1.0
        if generator.integers(3):  # else the sum is exactly 0
            factors[5, 0] = np.nextafter(factors[5, 0], generator.choice([-np.inf, np.inf]))
        exact = [[Fraction(float(x)) for x in row] for row in factors]
        total = sum(a * b * c for a, b, c in exact)
        expected = (total > 0) - (total < 0)
        assert sign_of_sum_of_products(factors) == expected
        seen.add(expected)
    assert seen == {-1, 0, 1}
    assert sign_of_sum_of_products(np.zeros((2, 2))) == 0
