"""Simplicial depth from its definition: every simplex of d + 1 rows, in rational arithmetic; no code of the package.

A point lies in the convex hull of finitely many points if and only if it lies in the hull of some of them that are
affinely independent (Caratheodory). In such a hull its barycentric coordinates are unique, so one linear system with
`Fraction` entries settles it. That covers degenerate simplices: their hulls are segments and points.
"""

import itertools
from fractions import Fraction
from functools import cache


def barycentric(vertices):
    """Return the weights, adding up to 1, that take the vertices to 0; None where there are none or several."""
    size = len(vertices)
    system = [[Fraction(v[j]) for v in vertices] + [Fraction(0)] for j in range(len(vertices[0]))]
    system.append([Fraction(1)] * (size + 1))
    for column in range(size):
        pivot = next((i for i in range(column, len(system)) if system[i][column]), None)
        if pivot is None:
            return None  # affinely dependent
        system[column], system[pivot] = system[pivot], system[column]
        lead = system[column][column]
        system[column] = [entry / lead for entry in system[column]]
        for i, row in enumerate(system):
            if i != column and row[column]:
                factor = row[column]
                system[i] = [a - factor * b for a, b in zip(row, system[column], strict=True)]
    if any(row[size] for row in system[size:]):
        return None  # 0 is off the affine hull
    return [row[size] for row in system[:size]]


@cache
def hull_contains_zero(vertices):
    """Return whether the convex hull of the vertices, a sorted tuple of tuples, contains 0."""
    for size in range(1, len(vertices) + 1):
        for chosen in itertools.combinations(vertices, size):
            weights = barycentric(chosen)
            if weights is not None and min(weights) >= 0:
                return True
    return False


def simplicial_count(point, rows):
    """Return how many of the simplices with vertices among the rows contain the point."""
    d = len(point)
    relative = [tuple(Fraction(a) - Fraction(b) for a, b in zip(row, point, strict=True)) for row in rows]
    relative.sort()  # combinations of a sorted list are sorted, so that equal simplices are looked up once
    return sum(hull_contains_zero(simplex) for simplex in itertools.combinations(relative, d + 1))
