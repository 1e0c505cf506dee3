"""Exact laws of the exponential mechanism on the grid, by brute force: depths by direct counting, masses as fractions.

A *partition* cuts every axis at the keys of all rows that matter (of two neighbouring tables, say) into atoms (single
cells) and gaps, so that no law of these tables can tell the cells of a piece apart other than by prior mass. Nothing
here comes from the samplers; `law_of_segments` and `law_of_boxes` read off what *they* would draw, piece by piece.
"""

import functools
import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import exact_grid
import numpy as np
import pymc as pm

from pymc_dpdepth.depths import Halfspace, IntegratedDual, IntegratedRankWeighted
from pymc_dpdepth.mechanism import set_up
from pymc_dpdepth.priors import read_prior
from pymc_dpdepth.samplers.boxes import level_weights
from pymc_dpdepth.samplers.exact import plan_exact
from pymc_dpdepth.samplers.segments import segment_counts, segment_weights, segments_of
from pymc_dpdepth.samplers.weights import WeightBase

DEPTHS = {
    "halfspace": Halfspace,
    "integrated_rank_weighted": IntegratedRankWeighted,
    "integrated_dual": IntegratedDual,
}


# The package's plan and keys


@functools.cache
def plan_of(depth, n, d, epsilon, prior, directions=None):
    """Return the exact plan of a mechanism over n rows; `prior` is "normal" (standard) or "uniform" (on [-1, 1])."""
    location = {"normal": pm.Normal.dist(0, 1, shape=d), "uniform": pm.Uniform.dist(-1, 1, shape=d)}[prior]
    options = {"directions": "axes" if directions is None else directions}
    settings, product, _ = set_up("m", location, np.zeros((n, d)), depth=DEPTHS[depth](), epsilon=epsilon, **options)
    return plan_exact(settings, product)


def keys_of(plan, rows):
    """Return the rows' keys along each direction in ascending order, shape (M, n)."""
    keys = plan.frame.keys(np.asarray(rows, dtype=float))
    keys.sort(axis=1)
    return keys


@functools.cache
def floors_of(prior, d):
    location = {"normal": pm.Normal.dist(0, 1, shape=d), "uniform": pm.Uniform.dist(-1, 1, shape=d)}[prior]
    return read_prior(location, d).floors()


# Partitions


@dataclass(frozen=True)
class Axis:
    """Pieces of one axis: first and last cells, and masses as fractions; pieces without mass are left out."""

    first: np.ndarray
    last: np.ndarray
    masses: list
    floors: tuple

    @property
    def log_masses(self):
        return np.array([log_of(m) for m in self.masses])


def log_of(fraction):
    return math.log(fraction.numerator) - math.log(fraction.denominator)


def partition(keys, floors):
    """Cut one axis at the given keys."""
    low_floor, high_floor = (int(f) for f in floors)
    pieces, below = [], 0
    for key in sorted({int(k) for k in keys}):
        pieces += [(below, key - 1), (key, key)]
        below = key + 1
    pieces.append((below, exact_grid.LAST))
    pieces = [(a, b, exact_grid.mass(a, b, low_floor, high_floor)) for a, b in pieces if a <= b]
    pieces = [piece for piece in pieces if piece[2] > 0]
    first, last, masses = zip(*pieces, strict=True)
    assert sum(masses) == 1
    return Axis(np.array(first), np.array(last), list(masses), (low_floor, high_floor))


# The law by direct counting


def counts(name, piece_first, row_keys):
    """Return the univariate counts of every piece of an axis: min(le, ge), or le * ge."""
    le = np.array([sum(1 for key in row_keys if key <= cell) for cell in piece_first.tolist()])
    ge = np.array([sum(1 for key in row_keys if key >= cell) for cell in piece_first.tolist()])
    return le * ge if name == "integrated_dual" else np.minimum(le, ge)


def brute_force_law(name, epsilon, axes, row_keys, beta_factor=1.0):
    """Return log probabilities of the product of the axes' pieces, shape (pieces of axis 1, pieces of axis 2, ...).

    density = exp(beta D) prior with beta = epsilon / (2 GS) = epsilon n / 2, since GS = 1/n for the three depths.
    """
    n, d = len(row_keys[0]), len(axes)
    beta = beta_factor * epsilon * n / 2
    per_axis = [counts(name, axis.first, keys) for axis, keys in zip(axes, row_keys, strict=True)]
    shapes = [[-1 if k == j else 1 for k in range(d)] for j in range(d)]
    per_axis = [c.reshape(shape) for c, shape in zip(per_axis, shapes, strict=True)]
    if name == "halfspace":
        depth = functools.reduce(np.minimum, per_axis) / n
    elif name == "integrated_rank_weighted":
        depth = sum(per_axis) / (n * d)
    else:
        depth = sum(per_axis) / (n**2 * d)
    log_mass = sum(axis.log_masses.reshape(shape) for axis, shape in zip(axes, shapes, strict=True))
    return normalised(beta * depth + log_mass)


def normalised(log_weights):
    """Return log probabilities; fsum adds up without rounding."""
    top = log_weights.max()
    return log_weights - (top + math.log(math.fsum(np.exp(log_weights - top).ravel())))


def worst_log_ratio(log_p, log_q):
    """Return max |log p - log q| over pieces; pieces that neither law can give do not count, others must be in both."""
    both = np.isfinite(log_p) & np.isfinite(log_q)
    assert (np.isfinite(log_p) == np.isfinite(log_q)).all()
    return float(np.abs(log_p[both] - log_q[both]).max())


# What the samplers would draw


def spread(first, last, axis, log_weight):
    """Return log probabilities of an axis's pieces when the run first..last is drawn, then a cell in it by mass."""
    inside = (axis.first >= first) & (axis.last <= last)
    outside = (axis.last < first) | (axis.first > last)
    assert (inside | outside | (axis.log_masses == -np.inf)).all(), "a run cuts through a piece"
    total = log_of(exact_grid.mass(int(first), int(last), *axis.floors))
    return np.where(inside, axis.log_masses + log_weight - total, -np.inf)


def log_of_scaled(significands, exponents):
    """Return the logarithms of weights that are kept as significand and exponent."""
    with np.errstate(divide="ignore"):
        return np.log(significands) + exponents * math.log(2.0)


def segment_log_weights(law, j=0):
    """Return the log weights that a SegmentLaw draws the segments of direction j with."""
    ends, counts = segments_of(law.keys[j]), segment_counts(law.keys[j], law.code)
    return log_of_scaled(*segment_weights(*ends, counts, *law.floors[j], *law.base.table))


def level_log_weights(law, unit_factor=1):
    """Return the log weights that a BoxLaw draws its levels with, relative to level 0; `unit_factor` plants a bug."""
    base = law.base if unit_factor == 1 else WeightBase.of(law.base.unit * Fraction(unit_factor))
    significands, exponents, _ = level_weights(law.keys, law.floors, base)
    weights = log_of_scaled(significands, exponents)
    return weights - weights[0]


def law_of_segments(law, axis, j=0):
    """Return log probabilities of an axis's pieces under a SegmentLaw's direction j."""
    first, last = segments_of(law.keys[j])
    weights = normalised(segment_log_weights(law, j))
    parts = [
        spread(a, b, axis, w) for a, b, w in zip(first.tolist(), last.tolist(), weights, strict=True) if w > -np.inf
    ]
    return np.logaddexp.reduce(parts, axis=0)


def boxes_of(law, weights):
    """Return the levels of positive weight, and the first and last cells of their boxes."""
    levels = np.flatnonzero(weights > -np.inf)
    return levels, *law.boxes(levels)


def law_of_boxes(law, axes, weights):
    """Return log probabilities of the product of the axes' pieces under a BoxLaw with these level log weights."""
    levels, first, last = boxes_of(law, weights)
    shares = normalised(weights)
    parts = []
    for level, a, b in zip(levels, first.tolist(), last.tolist(), strict=True):
        per_axis = [spread_box(x, y, axis) for x, y, axis in zip(a, b, axes, strict=True)]
        parts.append(shares[level] + functools.reduce(np.add.outer, per_axis))
    return np.logaddexp.reduce(parts, axis=0)


def spread_box(first, last, axis):
    """Spread the side of a box; a draw at the floor stands for all cells beyond it."""
    low_floor, high_floor = axis.floors
    first = 0 if first <= low_floor else first
    last = exact_grid.LAST if last >= exact_grid.LAST - high_floor else last
    return spread(first, last, axis, 0.0)


# Tables


def tables(points, n):
    """Return all tables of n rows as multisets of point indices."""
    return list(itertools.combinations_with_replacement(range(len(points)), n))


def neighbours(table, count):
    """Yield the multisets that differ from a table in one row."""
    for i, new in itertools.product(range(len(table)), range(count)):
        if new != table[i]:
            yield tuple(sorted((*table[:i], new, *table[i + 1 :])))
