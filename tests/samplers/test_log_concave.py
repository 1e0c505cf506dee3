"""Smoothed dual depth under tight normal priors: curvature against brute force, the envelope, and the law."""

import math

import numpy as np
import pymc as pm
import pytest
from scipy import stats
from scripted import ScriptedBits

from pymc_dpdepth.depths import Directions, IntegratedDual, Spatial
from pymc_dpdepth.mechanism import set_up, standardized
from pymc_dpdepth.randomness import SeededBits
from pymc_dpdepth.samplers.certified import plan_certified
from pymc_dpdepth.samplers.log_concave import (
    GRADIENT_ROOM,
    LARGEST_CURVATURE,
    LARGEST_SLOPE,
    SMALLEST_CURVATURE,
    NotLogConcaveError,
    middle_of_group,
    normal_variates,
    plan_log_concave,
)

# Family-wise level 1e-6 of the Kolmogorov-Smirnov tests of this file, fewer than 20.
LEVEL = 1e-6 / 20


def target_of(rows, smoothing=0.3, epsilon=1.0, prior=None, directions=None):
    d = rows.shape[1]
    prior = pm.Normal.dist(1.0, 2.0, shape=d) if prior is None else prior
    depth = IntegratedDual(
        smoothing=smoothing, directions=Directions.balanced(d, 6) if directions is None else directions
    )
    settings, product, rows = set_up("m", prior, rows, depth=depth, epsilon=epsilon)
    plan = plan_certified(settings, product, prior, 1e-6)
    center, scale = np.array(settings.center), np.array(settings.scale)
    return plan, depth.prepare(standardized(rows, center, scale)), rows


# Curvature of F (1 - F)


def derivatives(t, z, s=1.0):
    """Return the first and second derivative of F (1 - F) at t in closed form, F a mean of logistics at z."""
    p = 1 / (1 + np.exp(-s * (t - z)))
    share, slope, bend = p.mean(), s * (p * (1 - p)).mean(), s**2 * (p * (1 - p) * (1 - 2 * p)).mean()
    return slope * (1 - 2 * share), bend * (1 - 2 * share) - 2 * slope**2


def test_the_curvature_of_any_mean_of_logistics_lies_between_the_bounds_and_reaches_them():
    generator = np.random.default_rng(1)
    seen = []
    for _ in range(20_000):
        n = generator.integers(1, 7)
        z = generator.normal(0, generator.choice([0.5, 2, 10]), size=n) + generator.normal(0, 3)
        seen.append(derivatives(0.0, z))
    # One row at t = 0 has v = 1/4; where p (1 - p) = 1/12 the curvature v - 6 v^2 is 1/24, where 1/6 the slope largest.
    seen += [derivatives(0.0, np.full(3, math.log(1 / p - 1))) for p in (0.5, *_shares(1 / 12), *_shares(1 / 6))]
    slopes, bends = np.array(seen).T
    assert SMALLEST_CURVATURE - 1e-12 <= bends.min() <= SMALLEST_CURVATURE + 1e-9
    assert LARGEST_CURVATURE - 1e-9 <= bends.max() <= LARGEST_CURVATURE + 1e-12
    assert LARGEST_SLOPE - 1e-9 <= np.abs(slopes).max() <= LARGEST_SLOPE + 1e-12


def _shares(v):
    root = math.sqrt(1 - 4 * v)
    return (1 - root) / 2, (1 + root) / 2


def test_the_bound_holds_for_the_worst_moments():
    # 8 g'' = 2 a^2 - 1 + 2 m2 - 2 a m3 - m2^2 in the moments of 1 - 2 p; searched over all mixtures of three points.
    generator = np.random.default_rng(2)
    points, weights = generator.uniform(-1, 1, size=(200_000, 3)), generator.dirichlet(np.full(3, 0.5), size=200_000)
    points[: len(points) // 2, 0] = 1.0
    a, m2, m3 = ((weights * points**k).sum(axis=1) for k in (1, 2, 3))
    bends = (2 * a**2 - 1 + 2 * m2 - 2 * a * m3 - m2**2) / 8
    assert 0.98 * LARGEST_CURVATURE < bends.max() <= LARGEST_CURVATURE
    assert bends.min() >= SMALLEST_CURVATURE


def hessian(target, y, prepared, step=1e-4):
    """Return the Hessian of phi at a point by differences of its gradient."""
    d = len(y)
    ends = np.concatenate([y + step * np.eye(d), y - step * np.eye(d)])
    gradients = target.potential(ends, prepared)[1]
    return (gradients[:d] - gradients[d:]) / (2 * step)


TABLES = {
    "spread": np.random.default_rng(3).normal(1, 3, size=(30, 2)),
    "two heaps": np.repeat([[-4.0, 1.0], [6.0, 2.0]], [20, 10], axis=0),
    "equal": np.full((30, 2), 1.5),
    "far": np.full((30, 2), [1e300, -50.0]),
}


@pytest.mark.parametrize("rows", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("smoothing", [0.4, 1.2])
def test_hessians_and_the_envelope(rows, smoothing):
    prior = pm.MvNormal.dist(np.array([1.0, 0.0]), np.array([[4.0, 2.0], [2.0, 3.0]]))
    plan, prepared, _ = target_of(rows, smoothing, epsilon=0.5, prior=prior)
    settings = plan.settings
    target = plan_log_concave(settings, plan.frame.prior)
    assert 0 < target.least.min() < 0.99
    generator = np.random.default_rng(4)
    points = generator.normal(0, 2, size=(40, 2))
    for y in points:
        matrix = hessian(target, y, prepared)
        assert np.linalg.eigvalsh(matrix - np.diag(target.least)).min() > -1e-6
        assert np.linalg.eigvalsh(np.diag(target.most) - matrix).min() > -1e-6
    middle, lowest = target.envelope(prepared)
    values = target.potential(points, prepared)[0]
    assert (values - lowest >= 0.5 * ((points - middle) ** 2 * target.least).sum(axis=1) - 1e-10).all()
    # What is left of the gradient takes no more off the acceptance probability than was reckoned with.
    mode = middle
    for _ in range(20 * target.steps + 20):
        mode = mode - 2 / (target.least + target.most) * target.potential(mode[None], prepared)[1][0]
    assert abs(lowest - target.potential(mode[None], prepared)[0][0]) <= GRADIENT_ROOM
    taken = np.concatenate([target.propose((middle, lowest), prepared, SeededBits(seed), 4000)[1] for seed in range(2)])
    bound = math.exp(target.log_acceptance)
    assert taken.mean() > bound - 5 * math.sqrt(bound / len(taken))


def test_the_constants_are_those_of_the_formula():
    # One direction along an axis: w = sd / iqr = 1 / 1.349, so lambda = w^2 and m = 1 - beta s^2 w^2 / 24.
    rows = np.zeros((50, 1))
    plan, _, _ = target_of(rows, 0.5, directions=Directions.axes(1))
    target = plan.target
    strength = 50**2 / (2 * 49) * 0.25 / (2 * stats.norm.ppf(0.75)) ** 2
    assert target.least[0] == pytest.approx(1 - strength / 24, rel=1e-12)
    assert target.most[0] == pytest.approx(1 + strength / 8, rel=1e-12)
    least = math.sqrt(target.least[0] / target.most[0]) * (1 - 2e-6)
    assert target.log_acceptance == pytest.approx(math.log(least), abs=2e-6)
    # (epsilon, delta) with delta = e^epsilon q.
    assert math.e * (1 - math.exp(target.log_acceptance)) ** plan.tries <= 1e-6 * (1 + 1e-9)
    assert math.e * (1 - math.exp(target.log_acceptance)) ** (plan.tries - 1) > 1e-6 * (1 - 1e-9)


def test_a_curvature_that_is_too_small_is_noticed(monkeypatch):
    monkeypatch.setattr("pymc_dpdepth.samplers.log_concave.LARGEST_CURVATURE", 1e-3)
    # Rows so far off that the mode lies where the curvature of the depth is the largest, p (1 - p) = 1/12.
    rows = np.full((200, 1), 116.0)
    plan, prepared, _ = target_of(rows, 0.427, epsilon=2.0, prior=pm.Normal.dist(1.0, 10.0, shape=1))
    with pytest.raises(ValueError, match="exceeds its normal envelope"):
        plan.target.propose(plan.target.envelope(prepared), prepared, SeededBits(1), 20_000)


def test_draws_on_a_line_have_the_density():
    rows = np.random.default_rng(5).normal(4, 1, size=(400, 1))
    plan, prepared, table = target_of(rows, 0.45, epsilon=1.0)
    assert plan.target is not None and plan.describe()["proposals"] == "normal envelope"
    draws = plan.draw(table, SeededBits(2), 4000)[:, 0]
    x = np.linspace(-12, 14, 200_001)
    scale, center = plan.settings.scale[0], plan.settings.center[0]
    depth = plan.settings.depth.evaluate(((x - center) / scale)[:, None], (table - center) / scale)
    density = np.exp(plan.settings.beta * depth) * stats.norm(1, 2).pdf(x)
    cdf = np.cumsum(density) / density.sum()
    assert stats.kstest(draws, lambda t: np.interp(t, x, cdf)).pvalue > LEVEL
    assert stats.kstest(draws, stats.norm(1, 2).cdf).pvalue < LEVEL  # the prior is told apart


def test_draws_without_an_accepted_try_are_draws_of_the_prior(monkeypatch):
    rows = np.random.default_rng(5).normal(4, 1, size=(400, 1))
    plan, _, table = target_of(rows, 0.45)
    refuse = lambda self, envelope, prepared, bits, count: (np.zeros((count, 1), np.int64), np.zeros(count, bool))  # noqa: E731
    monkeypatch.setattr("pymc_dpdepth.samplers.log_concave.LogConcaveTarget.propose", refuse)
    draws = plan.draw(table, SeededBits(2), 4000)[:, 0]
    assert stats.kstest(draws, stats.norm(1, 2).cdf).pvalue > LEVEL


def test_what_does_not_fit_is_refused_with_its_reason():
    for prior, depth, message in (
        (pm.Uniform.dist(0, 1, shape=2), IntegratedDual(smoothing=0.1), "not normal"),
        (pm.Normal.dist(0, 1, shape=2), IntegratedDual(), "known curvature"),
        (pm.Normal.dist(0, 1, shape=2), Spatial(), "known curvature"),
        (pm.Normal.dist(0, 1, shape=2), IntegratedDual(smoothing=5.0), "must be below 1"),
    ):
        settings, product, _ = set_up("m", prior, np.zeros((50, 2)), depth=depth, epsilon=1.0)
        with pytest.raises(NotLogConcaveError, match=message):
            plan_log_concave(settings, product)


# Normal variates and groups of cells


def test_normal_variates():
    draws = normal_variates(SeededBits(1), 200_000)
    assert stats.kstest(draws, "norm").pvalue > LEVEL
    # Words with 0, 3 and 60 leading zeros, of which 53 bits are looked at, and a fraction of 1/2.
    half = 1 << 51
    for zeros, binade in ((0, -2), (3, -5), (52, -54), (60, -54)):
        (z,) = normal_variates(ScriptedBits([1 << (63 - zeros), half | 1 << 63]), 1)
        assert z > 0 and stats.norm.sf(z) == pytest.approx(1.5 * 2.0**binade, rel=1e-12)


def test_groups_are_fixed_runs_of_cells():
    cells = np.random.default_rng(1).integers(0, 2**50, size=1000)
    middles = middle_of_group(cells)
    assert (np.abs(middles - cells) <= 2**11).all() and (middle_of_group(middles) == middles).all()
