"""Exact signs against rational arithmetic, on points that are nearly or exactly degenerate."""

from fractions import Fraction

import numpy as np
import pytest

from pymc_dpdepth.depths.predicates import orient2d, orient3d

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
