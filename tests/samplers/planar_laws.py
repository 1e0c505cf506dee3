"""The planar sampler's laws and plans for tests, and exact masses of regions under uniform priors."""

from fractions import Fraction

import numpy as np
import pymc as pm

from pymc_dpdepth.depths import Halfspace
from pymc_dpdepth.mechanism import set_up
from pymc_dpdepth.samplers.dispatch import plan_draws

DEPTH = Halfspace(directions=None)
ROWS = np.random.default_rng(3).normal(size=(40, 2))
SMALL = np.array([[0, 0], [4, 1], [1, 5], [-2, 3], [2, 2], [2, 2], [-1, -4], [5, -2], [0.5, 1], [3, 3], [6, 6]]) / 4


def plan_of(rows, prior, epsilon=1.0, sampler="planar"):
    settings, product, rows = set_up("m", prior, rows, depth=DEPTH, epsilon=epsilon)
    return plan_draws(settings, product, prior, sampler), rows


def law_of(rows, prior, epsilon=1.0):
    plan, rows = plan_of(rows, prior, epsilon)
    return plan.law(rows)


def uniform(half_width=2):
    return pm.Uniform.dist(-half_width, half_width, shape=2)


def clipped(polygon, box):
    """Clip a polygon of fractions to [-box, box]^2, one half-plane after the other."""
    for axis in (0, 1):
        for sign in (1, -1):
            kept = []
            for p, q in zip(polygon, polygon[1:] + polygon[:1], strict=True):
                a, b = box - sign * p[axis], box - sign * q[axis]
                if a >= 0:
                    kept.append(p)
                if a * b < 0:
                    kept.append(tuple(x + (y - x) * a / (a - b) for x, y in zip(p, q, strict=True)))
            polygon = kept
    return polygon


def area(polygon):
    pairs = zip(polygon, polygon[1:] + polygon[:1], strict=True)
    return sum((p[0] * q[1] - p[1] * q[0] for p, q in pairs), Fraction(0)) / 2


def exact_masses(rows, half_width):
    """Return {level: V_l} under a uniform prior, as fractions."""
    regions, box = DEPTH.regions(rows), Fraction(half_width)
    return {k: area(clipped(regions.exact_polygon(k), box)) / (2 * box) ** 2 for k in regions.levels}
