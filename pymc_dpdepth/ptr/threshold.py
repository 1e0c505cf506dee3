"""Choosing the threshold of propose-test-release on synthetic rows, so that the private ones have no part in it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from pymc_dpdepth.depths.base import check_size
from pymc_dpdepth.depths.projection import Projection
from pymc_dpdepth.mechanism import positive_integer
from pymc_dpdepth.ptr.information import SHARED, warn_of_hidden_values, warn_uninformative
from pymc_dpdepth.ptr.outlyingness import OutlyingnessTable
from pymc_dpdepth.ptr.proposal import Settings, read_ball, read_cap, read_points, read_projection, read_settings
from pymc_dpdepth.ptr.stability_test import StabilityTest
from pymc_dpdepth.ptr.stable import StableStatistic, WindowStatistic, bound_of, clamped
from pymc_dpdepth.ptr.statistic_checks import check_statistic
from pymc_dpdepth.randomness import curator_generator

__all__ = ["suggest_threshold"]

POPULATIONS = {
    "normal": lambda generator, n, d: generator.standard_normal((n, d)),
    "cauchy": lambda generator, n, d: generator.standard_cauchy((n, d)),
}
# Of the failures that may remain, the share that breakdowns beyond the computed ones may have.
UNSEEN = 1e-3
DIGITS = 3  # a threshold is rounded upwards to as many significant digits

POINTS, SMALLEST_RADIUS = 8192, 2.0**-20  # that stand for the uniform law; the distance of the nearest from the rows
BISECTIONS, NEVER = 20, 1e12  # of the factor that a threshold is too large by


def suggest_threshold(
    n: int,
    d: int,
    epsilon: float | tuple[float, float],
    delta: float,
    *,
    population: str | Callable[[Any, int], Any] = "normal",
    radius: Any = None,
    center: Any = 0.0,
    points: Any = None,
    directions: Any = "auto",
    scale: str = "mad",
    cap: float | str | None = "auto",
    statistic: StableStatistic | None = None,
    noise: str = "laplace",
    pass_probability: float = 0.99,
    replicates: int = 10,
    random_seed: int | None = 0,
) -> float:
    r"""Return the smallest threshold that rows of a population pass the test with, with a given probability.

    Tables of n synthetic rows are drawn, and for each of them the bounds U_k of propose-test-release are computed. The
    probability of passing is the mean over the tables of P(B + noise >= cut), B = min{k: U_k > threshold}. The rows
    that are to be protected have no part in it, so it costs no privacy.

    Parameters
    ----------
    n, d : int
        Numbers of rows and columns.
    epsilon : float or tuple of float
        Total, half of it for the test, or the pair (test, release), as for `propose_test_release`.
    delta : float
        As for `propose_test_release`.
    population : {"normal", "cauchy"} or callable
        What rows like the private ones may look like: independent standard normal, or Cauchy, columns, or a function
        (generator, n) -> rows of shape (n, d). Public knowledge alone.
    radius, center, points, cap
        As for `propose_test_release`, in the units of the population; points as an array, in the order of its columns.
    directions : Directions, "auto" or array_like
        Those of the depth.
    scale : {"mad", "iqr"}
        That of the depth.
    statistic : StableStatistic, optional
        For `ptr.release_statistic`, in place of the projection depth.
    noise : {"laplace", "gaussian"}
        As for `propose_test_release`.
    pass_probability : float
        In (0, 1).
    replicates : int
        Synthetic tables.
    random_seed : int or None
        Of the synthetic rows; nothing private depends on it.

    Returns
    -------
    float
        Rounded upwards to 3 significant digits.

    Raises
    ------
    ValueError
        If no threshold would do, since n is too small for this epsilon and delta, or an argument is not usable.

    Warns
    -----
    UserWarning
        If what is released with this threshold would say next to nothing about the rows, though the test passes: with
        few rows a threshold must be large, and so is what hides the rows. The message says by how much to raise n or
        epsilon.

        - Median: its law, on the last synthetic table, has a total variation distance below 1/2 from the uniform law on
          the ball. So more than half of its draws could as well be made without rows.
        - Depth at points: with probability above 1/2 noise moves an outlyingness by more than 1.
        - A statistic that ships: with probability above 1/2 noise moves a component by more than the median absolute
          deviation of the most spread out column. For statistics of a user's own, whose units are not known, there is
          no warning.

    Examples
    --------
    >>> from pymc_dpdepth import ptr
    >>> ptr.suggest_threshold(2000, 1, epsilon=2.0, delta=1e-6, statistic=ptr.Median(), replicates=3) < 0.1
    True
    """
    n, d = check_size(n, d)
    expected = "pass_probability: expected a number in (0, 1), such as 0.99"
    if isinstance(pass_probability, bool | np.bool_) or not isinstance(pass_probability, Real):
        raise TypeError(f"{expected}, got {type(pass_probability).__name__}.")
    if not 0 < pass_probability < 1:
        raise ValueError(f"{expected}, got {pass_probability!r}.")
    replicates = positive_integer(replicates, "replicates")
    settings = read_settings(epsilon, delta, 1.0, noise, 1)
    with_values = statistic is not None or points is not None
    test = settings.proposal("", (), n, 1 if with_values else 0, {}, largest=1.0).test
    table_of, places = _tables(statistic, directions, scale, d, (center, radius, points, cap))
    draw = _population(population, d)
    last = min(n, test.certain_breakdown(UNSEEN * (1 - pass_probability) / 2))
    if test.pass_probability(last + 1) < pass_probability:
        raise ValueError(
            f"n: with {n} rows the test passes with probability {test.pass_probability(n + 1):.3g} at best, whatever "
            f"the threshold, and {pass_probability:g} was asked for; it needs more rows, or a larger epsilon or delta."
        )
    generator = curator_generator(random_seed)
    bounds = np.empty((replicates, last))
    for i in range(replicates):
        rows = draw(generator, n)
        table = table_of(rows)
        diameter = bound_of(statistic, clamped(rows)) if table is None else table.diameters(places)
        bounds[i] = [diameter(k) for k in range(1, last + 1)]
    threshold = _round_up(_smallest(bounds, test, pass_probability))
    settings = dataclasses.replace(settings, threshold=threshold)
    if table is not None and places is None:
        _warn_of_a_uniform_median(settings, table, generator)
    elif table is not None:
        warn_of_hidden_values(settings, len(places), 1.0, "the scale of its direction")
    elif isinstance(statistic, WindowStatistic):
        spread = np.median(np.abs(rows - np.median(rows, axis=0)), axis=0).max()
        size = len(statistic.labels([str(j) for j in range(d)]))
        warn_of_hidden_values(settings, size, float(spread), "the median absolute deviation of a column")
    return threshold


def _warn_of_a_uniform_median(settings: Settings, table: OutlyingnessTable, generator: Any) -> None:
    """Warn where the median's law on a synthetic table is near the uniform law on the ball."""
    sample = _uniform_sample(table, generator)
    beta = settings.budget.release_epsilon / (2 * settings.threshold)
    distance = _distance_from_uniform(*sample, beta)
    if distance >= SHARED:
        return
    low, high = beta, beta
    while _distance_from_uniform(*sample, high) < SHARED and high < NEVER * beta:
        low, high = high, 2 * high
    for _ in range(BISECTIONS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _distance_from_uniform(*sample, middle) < SHARED else (low, middle)
    shares = f"shares {1 - distance:.2g} of its law with a uniform draw of the ball, which needs no rows"
    warn_uninformative(
        settings, f"the released median {shares}", high / beta, "or a smaller radius, with a center nearer by"
    )


def _uniform_sample(table: OutlyingnessTable, generator: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return outlyingnesses of points of the unit ball, and log weights that make them a sample of the uniform law.

    The rows may fill a tiny part of the ball. So the distances r of the points from the rows' middle are spread evenly
    in log r, which counts each volume as often as its half, and a point's weight is r^d.
    """
    d = table.directions.shape[1]
    centers, _ = table.centers_and_scales()
    # The point whose projections are nearest to the medians.
    middle = np.linalg.lstsq(table.directions, centers, rcond=None)[0]
    shares = (np.arange(POINTS) + generator.random(POINTS)) / POINTS
    radii = (1.0 + np.linalg.norm(middle)) * SMALLEST_RADIUS**shares  # the first factor reaches all of the ball
    ways = generator.standard_normal((POINTS, d))
    points = middle + radii[:, None] * ways / np.linalg.norm(ways, axis=1, keepdims=True)
    inside = np.sum(points**2, axis=1) <= 1.0
    return table.values(points[inside]), d * np.log(radii[inside])


def _distance_from_uniform(outlyingness: np.ndarray, log_weights: np.ndarray, beta: float) -> float:
    """Return the total variation distance of the law with density ~ exp(-beta O) from the uniform law."""
    uniform, law = (np.exp(logs - logs.max()) for logs in (log_weights, log_weights - beta * outlyingness))
    return 0.5 * float(np.abs(law / law.sum() - uniform / uniform.sum()).sum())


def _tables(statistic, directions, scale: str, d: int, shape: tuple) -> tuple[Callable, np.ndarray | None]:
    """Return the function rows -> table of projections (None for a statistic), and the points in the ball's units."""
    if statistic is not None:
        check_statistic(statistic)
        return lambda rows: None, None
    center, radius, points, cap = shape
    depth = read_projection(Projection(scale), directions).resolve(d)
    ball = read_ball(center, radius, d, needed=points is None)
    cap = read_cap(cap, points)
    places = None if points is None else ball.units(read_points(points, d))
    matrix = depth.directions.matrix()
    return lambda rows: OutlyingnessTable(ball.units(rows), matrix, scale, cap), places


def _population(population, d: int) -> Callable:
    """Return the function (generator, n) -> rows of shape (n, d)."""
    if isinstance(population, str):
        if population not in POPULATIONS:
            raise ValueError(f"population: expected one of {sorted(POPULATIONS)} or a function, got {population!r}.")
        return lambda generator, n: POPULATIONS[population](generator, n, d)
    if not callable(population):
        raise TypeError(f"population: expected a word or a function, got {type(population).__name__}.")

    def draw(generator: Any, n: int) -> np.ndarray:
        rows = np.asarray(population(generator, n), dtype=np.float64)
        if rows.shape != (n, d) or not np.isfinite(rows).all():
            raise ValueError(f"population: expected finite rows of shape ({n}, {d}), got shape {rows.shape}.")
        return rows

    return draw


def _smallest(bounds: np.ndarray, test: StabilityTest, probability: float) -> float:
    """Return the least threshold, one of the bounds U_k (replicates, K), at which the mean probability is reached.

    B jumps where the threshold reaches a bound. Where no bound is above it, B is at least K + 1.
    """
    passing = np.array([test.pass_probability(k) for k in range(1, bounds.shape[1] + 2)])

    def reached(threshold: float) -> bool:
        return passing[(bounds <= threshold).sum(axis=1)].mean() >= probability

    candidates = np.unique(bounds)
    low, high = -1, len(candidates) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if reached(candidates[middle]):
            high = middle
        else:
            low = middle
    if not math.isfinite(candidates[high]):
        raise ValueError(
            "No finite threshold lets this population pass: the statistic is unbounded when so few rows are replaced. "
            "Take more rows, a more robust statistic, or a larger epsilon or delta."
        )
    return float(candidates[high])


def _round_up(value: float) -> float:
    """Return the least number of DIGITS significant digits that is not below."""
    if value <= 0:
        raise ValueError("population: its statistic does not move at all; give a population with more spread.")
    rounded = float(f"{value:.{DIGITS - 1}e}")
    if rounded < value:
        rounded = float(f"{value + 10.0 ** (math.floor(math.log10(value)) - DIGITS + 1):.{DIGITS - 1}e}")
    return rounded
