"""Halfspace counts from the definition: every order of the rows by a direction, in exact arithmetic.

Rows and point are arrays of Python integers, of Fractions, or of int64 where all products stay far below 2^63. A count
of rows on the closed side of a plane changes only where the normal vector is orthogonal to a row's vector, and the
smallest is taken by a normal vector that is orthogonal to none. All of those are, up to signs of products, a corner of
the arrangement of these orthogonal lines or planes moved a little, first along one of them and then off it.
"""

from fractions import Fraction

import numpy as np


def as_fractions(array):
    return np.array([[Fraction(float(x)) for x in row] for row in np.atleast_2d(array)], dtype=object)


def as_integers(point, rows):
    """Return a point and rows of doubles as Python integers, all multiplied by the same power of two."""
    exact = as_fractions(np.vstack([np.atleast_2d(point), rows]))
    power = max(x.denominator for x in exact.ravel())  # every denominator is a power of two
    whole = np.array([[int(x * power) for x in row] for row in exact], dtype=object)
    return whole[0], whole[1:]


def vectors(point, rows):
    """Return the number of rows equal to the point, and the vectors of the others."""
    differences = rows - point
    zero = (differences == 0).all(axis=1)
    return int(zero.sum()), differences[~zero]


def count_in_plane(point, rows):
    equal, v = vectors(point, rows)
    if len(v) == 0:
        return equal
    along = v[:, 0][:, None] * v[:, 0] + v[:, 1][:, None] * v[:, 1]
    across = v[:, 0][:, None] * v[:, 1] - v[:, 1][:, None] * v[:, 0]
    fewest = len(v)
    for turn in (1, -1):
        on_side = (np.where(across == 0, turn * along, across) > 0).sum(axis=1)
        fewest = min(fewest, on_side.min(), (len(v) - on_side).min())
    return equal + int(fewest)


def cross(a, b):
    return np.stack(
        [
            a[:, 1] * b[:, 2] - a[:, 2] * b[:, 1],
            a[:, 2] * b[:, 0] - a[:, 0] * b[:, 2],
            a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0],
        ],
        axis=1,
    )


def inner(a, b):
    return sum(a[:, j][:, None] * b[:, j] for j in range(3))


def count_in_space(point, rows):
    equal, v = vectors(point, rows)
    if len(v) == 0:
        return equal
    planes = np.vstack([v, np.eye(3, dtype=int).astype(rows.dtype)])  # the axes make corners where rows are too few
    i, j = np.triu_indices(len(planes), 1)
    corners = cross(planes[i], planes[j])
    use = (corners != 0).any(axis=1)
    i, j, corners = i[use], j[use], corners[use]
    fewest = len(v)
    for first in (planes[i], planes[j]):
        at = inner(corners, v)
        along = inner(cross(corners, first), v)
        off = inner(first, v)
        for one in (1, -1):
            for two in (1, -1):
                side = np.where(at != 0, at, np.where(along != 0, one * along, two * off))
                on_side = (side > 0).sum(axis=1)
                fewest = min(fewest, on_side.min(), (len(v) - on_side).min())
    return equal + int(fewest)
