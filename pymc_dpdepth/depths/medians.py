"""Medians of rows: the spatial median, the maximiser of a smoothed depth, and the coordinatewise median.

None of this is private. Rows are float64 arrays of shape (n, d) with finite entries and n >= 1; see `as_sample`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pymc_dpdepth.depths.base import as_rows

__all__ = ["as_sample", "coordinatewise_median", "median_of_projections", "smoothed_dual_median", "spatial_median"]


def as_sample(X: Any) -> np.ndarray:
    """Return a table as float64, shape (n, d), and refuse one without rows: it has no median.

    Parameters
    ----------
    X : array_like, shape (n, d)
    """
    rows = as_rows(X)
    if len(rows) == 0:
        raise ValueError("X must have at least one row for a median; got none. Check the filter that the rows passed.")
    return rows


def coordinatewise_median(rows: np.ndarray) -> np.ndarray:
    """Return the median of each column, the middle of the two middle entries where n is even.

    It is a deepest point of the halfspace and integrated rank-weighted depths along axes, and the limit, as the
    smoothing gets sharp, of deepest points of the smoothed integrated dual depth.

    Parameters
    ----------
    rows : ndarray of float64, shape (n, d)
    """
    n = len(rows)
    middle = np.partition(rows, [(n - 1) // 2, n // 2], axis=0)
    low, high = middle[(n - 1) // 2], middle[n // 2]
    return np.where(low == high, low, 0.5 * low + 0.5 * high)  # halved first, since the sum may overflow


def median_of_projections(rows: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Return the point whose projections are nearest to the medians of the rows' projections.

    They are those medians where the directions are independent, and the point is the coordinatewise median along axes.

    Parameters
    ----------
    rows : ndarray of float64, shape (n, d)
    directions : ndarray of float64, shape (m, d)
    """
    from pymc_dpdepth.depths.aggregate import project_clamped

    middle = coordinatewise_median(rows)
    wanted = coordinatewise_median(project_clamped(rows, directions).T)
    missing = wanted - project_clamped(middle[None], directions)[:, 0]
    return middle + np.linalg.lstsq(directions, missing)[0] if missing.any() else middle


# The spatial median

MOST_STEPS = 500  # each at least as good as one of Weiszfeld's; some ten are usual, and only ties in doubles need many
SHORTEST_STEP = 2.0**-20  # of Newton's step: a shorter one is no better than Weiszfeld's
SHORTEST_DISTANCE = 1e-300  # of rows of unit size, so that no 1/r is infinite
ROUNDING = 4 * np.finfo(float).eps  # of a unit vector, and of a distance


class _Distances:
    """Sums over the rows at one point: of the distances, of the unit vectors, and of what a step needs.

    With v_i = x - X_i, r_i = |v_i| and s_i = v_i / r_i, over the rows that differ from x.

    Attributes
    ----------
    total : float
        sum r_i, the objective.
    pull : ndarray, shape (d,)
        R = sum s_i, the gradient of the objective where no row equals x.
    force : float
        |R|.
    equal : int
        The number of rows equal to x.
    nearest : ndarray, shape (d,)
        The row nearest to x among those that differ from it; x itself where none does.
    """

    def __init__(self, point: np.ndarray, rows: np.ndarray) -> None:
        self.point = point
        differences = point - rows
        largest = np.abs(differences).max(axis=1)
        apart = largest > 0.0
        differences, largest = differences[apart], largest[apart]
        self.equal = len(rows) - len(differences)
        # Scaled by the largest component, so that no square leaves the range of doubles.
        scaled = differences / largest[:, None]
        lengths = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
        self.units = scaled / lengths[:, None]
        self.distances = np.maximum(largest * lengths, SHORTEST_DISTANCE)
        self.total = float(self.distances.sum())
        self.pull = self.units.sum(axis=0)
        self.force = float(np.sqrt(self.pull @ self.pull))
        self.nearest = rows[apart][self.distances.argmin()] if len(differences) else point

    def is_least(self) -> bool:
        """Whether no direction leads down, to rounding: |R| is at most the number of rows equal to the point [1]_."""
        return self.force <= self.equal + ROUNDING * len(self.units)

    def weiszfeld(self) -> np.ndarray:
        """Return the next point by Weiszfeld's step, as Vardi and Zhang modified it at rows.

        x - (1 - equal / |R|) R / sum_i 1/r_i. It never leads up, and only a median stays in place [1]_.
        """
        return self.point - (1.0 - self.equal / self.force) * self.pull / (1.0 / self.distances).sum()

    def newton(self) -> np.ndarray | None:
        """Return Newton's step -H^-1 R with H = sum_i (I - s_i s_i') / r_i; None where H is not positive definite."""
        inverse = 1.0 / self.distances
        hessian = np.eye(len(self.point)) * inverse.sum() - (self.units * inverse[:, None]).T @ self.units
        try:
            factor = np.linalg.cholesky(hessian)
        except np.linalg.LinAlgError:
            return None
        return -np.linalg.solve(factor.T, np.linalg.solve(factor, self.pull))

    def better_than(self, other: _Distances) -> bool:
        """Whether the objective is lower; where rounding hides that, whether the gradient is shorter."""
        slack = ROUNDING * other.total
        if abs(self.total - other.total) > slack:
            return self.total < other.total
        return max(self.force - self.equal, 0.0) < max(other.force - other.equal, 0.0)


def spatial_median(rows: np.ndarray) -> np.ndarray:
    """Return the point with the least sum of Euclidean distances to the rows, to double precision.

    The start is the coordinatewise median: it is the answer already for one column, for rows on a line (where the
    answer is not unique when n is even, and this is the middle), and for rows symmetric about a point. From there on
    each step is the better of Weiszfeld's [1]_, which cannot fail but slows down, and Newton's from there; and whenever
    the nearest row is a minimum itself, that row is the answer.

    Parameters
    ----------
    rows : ndarray of float64, shape (n, d)

    References
    ----------
    .. [1] Y. Vardi and C.-H. Zhang, The multivariate L1-median and associated data depth, PNAS 97 (2000) 1423-1426,
           doi:10.1073/pnas.97.4.1423.
    """
    # A power of two scales exactly, and keeps sums of distances in range.
    exponent = int(np.frexp(np.abs(rows).max())[1])
    rows = np.ldexp(rows, -exponent)
    here = _Distances(coordinatewise_median(rows), rows)
    for _ in range(MOST_STEPS):
        if here.is_least():
            break
        nearest = _Distances(here.nearest, rows)
        if nearest.is_least():
            here = nearest
            break
        best = _Distances(here.weiszfeld(), rows)
        if not best.better_than(here):
            best = here
        best = _newton_step(best, rows)
        moved = np.abs(best.point - here.point).max()
        here = best
        if moved <= ROUNDING * np.abs(here.point).max():
            break
    return np.ldexp(here.point, exponent)


def _newton_step(start: _Distances, rows: np.ndarray) -> _Distances:
    """Return the first better point along Newton's step, halved until there is one; the start itself where none is."""
    step = None if start.equal else start.newton()
    if step is None:
        return start
    length = 1.0
    while length >= SHORTEST_STEP:
        there = _Distances(start.point + length * step, rows)
        if there.better_than(start):
            return there
        length /= 2
    return start


# The maximum of the smoothed integrated dual depth

MOST_RUNGS, LARGEST_RATIO = 16, 4.0  # of a ladder of smoothings from one that sees no single rows to the one asked for
DEEP_ROWS = 5  # that a search starts from besides other points
MOST_HALVINGS = 10  # of steps of about the rows' spread
MOST_PAIRED = 40  # steps of which sums of two are tried as well: 780 sums
IMPROVEMENT = 1e-12  # of a depth: less may be rounding
TOLERANCE = 1e-15  # of steps, sums of squares and gradients: the least that the solver takes is 2.2e-16


class _SmoothedShares:
    """The shares F_u = mean_i sigma(s (x - X_i).u) less 1/2, and their derivatives, for rows of about unit spread.

    The depth mean_u F_u (1 - F_u) is 1/4 - mean_u (F_u - 1/2)^2: its maximum is a problem of least squares.
    """

    def __init__(self, rows: np.ndarray, directions: np.ndarray) -> None:
        from pymc_dpdepth.depths.aggregate import project_clamped

        self.directions = directions
        self.ordered = np.sort(project_clamped(rows, directions), axis=1)

    def residuals(self, point: np.ndarray, smoothing: float) -> np.ndarray:
        """Return F_u - 1/2 for each direction."""
        from scipy.special import expit

        places = self.directions @ point
        shares = [expit(smoothing * (t - z)).mean() for t, z in zip(places, self.ordered, strict=True)]
        return np.array(shares) - 0.5

    def derivatives(self, point: np.ndarray, smoothing: float) -> np.ndarray:
        """Return the derivatives of the residuals, shape (m, d): s mean_i sigma (1 - sigma) u for each u."""
        from scipy.special import expit

        places = self.directions @ point
        arguments = (smoothing * (t - z) for t, z in zip(places, self.ordered, strict=True))
        slopes = np.array([smoothing * (expit(a) * expit(-a)).mean() for a in arguments])
        return slopes[:, None] * self.directions

    def climb(self, point: np.ndarray, smoothing: float) -> np.ndarray:
        """Return a local maximum of the depth, or a point of a plateau, no less deep than the point given."""
        from scipy.optimize import least_squares

        tolerances = dict.fromkeys(("ftol", "xtol", "gtol"), TOLERANCE)
        # On plateaus the solver divides by singular values that are nearly 0; a step it can't make is not taken.
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            found = least_squares(self.residuals, point, self.derivatives, args=(smoothing,), **tolerances).x
        return found if self.loss(found, smoothing) < self.loss(point, smoothing) else point

    def loss(self, point: np.ndarray, smoothing: float) -> float:
        """Return mean_u (F_u - 1/2)^2: 1/4 less the depth."""
        return float(np.mean(self.residuals(point, smoothing) ** 2))

    def search_around(self, point: np.ndarray, smoothing: float) -> np.ndarray:
        """Return the best point that steps along directions and axes lead to, from about the spread to short ones.

        Where these are few, sums of two are steps too: plateaus may meet in between. It needs no derivatives, which are
        0 on the plateaus of a sharp depth.
        """
        from pymc_dpdepth.depths.aggregate import mean_smoothed_depths, smoothing_block, smoothing_factors

        width = smoothing_block(smoothing)
        factors = smoothing_factors(self.ordered, smoothing, width)
        prepared = self.ordered, factors, self.directions, np.array([smoothing, width])
        steps = np.concatenate([self.directions, np.eye(len(point))])
        steps = np.concatenate([steps, -steps])
        if len(steps) <= MOST_PAIRED:
            one, other = np.triu_indices(len(steps), 1)
            steps = np.concatenate([steps, steps[one] + steps[other]])
        deepest = mean_smoothed_depths(point[None], *prepared)[0][0]
        for halvings in range(MOST_HALVINGS):
            while True:
                there = point + steps / 2.0**halvings
                depths = mean_smoothed_depths(there, *prepared)[0]
                best = depths.argmax()
                if depths[best] <= deepest + IMPROVEMENT:
                    break
                point, deepest = there[best], depths[best]
        return point

    def deep_rows(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows that are deepest without smoothing."""
        from pymc_dpdepth.depths.aggregate import mean_depths
        from pymc_dpdepth.depths.univariate import DUAL

        distinct = np.unique(rows, axis=0)
        depths = mean_depths(distinct, self.ordered, self.directions, np.array([DUAL.code]))
        return distinct[np.argsort(-depths, kind="stable")[:DEEP_ROWS]]


def smoothed_dual_median(rows: np.ndarray, directions: np.ndarray, smoothing: float) -> np.ndarray:
    """Return a point of largest smoothed integrated dual depth, the deepest that a search from several starts finds.

    The depth is not concave, and flat between rows where s is large. So one search goes down a ladder of smoothings,
    from one as wide as the rows to s, each from where the last ended; others start from the coordinatewise median, the
    point nearest to the medians of all projections, and the deepest rows. Where there are no more directions than
    columns, and they are independent, the depth there is 1/4, which no point exceeds.

    Parameters
    ----------
    rows : ndarray of float64, shape (n, d)
    directions : ndarray of float64, shape (m, d)
    smoothing : float
    """
    from pymc_dpdepth.depths.aggregate import CLAMP

    rows = np.clip(rows, -CLAMP, CLAMP)
    center = coordinatewise_median(rows)
    spread = np.median(np.abs(rows - center), axis=0).max() or np.abs(rows - center).max()
    if spread == 0.0:
        return center
    with np.errstate(over="ignore"):  # entries far out are clamped again
        rows = np.clip((rows - center) / spread, -CLAMP, CLAMP)
    smoothing *= spread
    shares = _SmoothedShares(rows, directions)
    rungs = min(max(math.ceil(math.log(smoothing, LARGEST_RATIO)), 0), MOST_RUNGS)
    middle = np.zeros(rows.shape[1])
    starts = [middle, median_of_projections(rows, directions), *shares.deep_rows(rows)]
    for rung in range(rungs):
        middle = shares.climb(middle, smoothing ** (rung / rungs))
    found = [shares.climb(start, smoothing) for start in [*starts, middle]]
    best = min(found, key=lambda point: shares.loss(point, smoothing))
    if any(shares.loss(point, smoothing) > shares.loss(best, smoothing) + IMPROVEMENT for point in found):
        found = [shares.climb(shares.search_around(point, smoothing), smoothing) for point in found]
        best = min(found, key=lambda point: shares.loss(point, smoothing))
    return center + spread * best
