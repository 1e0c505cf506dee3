"""Events for an audit: sets of outputs that one table gives more often than its neighbour, chosen on training draws.

An event is up to three intervals, lo < score <= hi, each on one score of the output. The scores are the coordinates
(intervals on them are thresholds, boxes and, one value wide, atoms), the differences of pairs of coordinates (noise
that was used twice cancels there), the largest and the smallest standardised coordinate (boxes and corners in many
dimensions) and a logistic classifier with squares and products (half-spaces and quadrics).

Everything here is chosen on the training draws. Held-out draws only count how often a finished event happens, so a poor
choice makes an audit weak, never wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Event", "Scores", "choose_event"]

#: An event is the intersection of at most this many intervals.
MOST_INTERVALS = 3
#: Differences of pairs of coordinates, and products in the classifier, are made up to this many coordinates.
MOST_PAIRED = 8
# Cut points of a score: equal shares of the training draws, and the far tails.
EQUAL_SHARES = 48
TAIL_SHARES = (0.0005, 0.001, 0.002, 0.005, 0.01)
# A value that this share of the training draws has is an atom, and gets a cell of its own.
ATOM_SHARE, MOST_ATOMS = 0.002, 24
# Standardised coordinates are cut here, so that a heavy tail does not decide the classifier.
FARTHEST = 10.0
RIDGE, NEWTON_STEPS = 1e-3, 8
FARTHEST_LOGIT = 30.0


@dataclass(frozen=True, eq=False)
class Scores:
    """Numbers computed from an output, the same for training and held-out draws.

    Attributes
    ----------
    center, scale : ndarray, shape (D,)
        Median and spread of the training outputs.
    weights : ndarray
        Coefficients of the logistic classifier.
    """

    center: np.ndarray
    scale: np.ndarray
    weights: np.ndarray

    @classmethod
    def fit(cls, first: np.ndarray, second: np.ndarray) -> Scores:
        """Fit to training outputs of the two tables, each of shape (k, D)."""
        pooled = np.concatenate([first, second])
        known = np.where(np.isfinite(pooled), pooled, np.nan)
        known[:, np.isnan(known).all(axis=0)] = 0.0
        low, center, high = np.nanquantile(known, [0.25, 0.5, 0.75], axis=0)
        spread = np.nanstd(known - center, axis=0)
        scale = np.where(high > low, high - low, np.where(spread > 0, spread, 1.0))
        scores = cls(center, scale, np.zeros(0))
        design = scores._design(scores._standardised(pooled))
        labels = np.repeat([1.0, 0.0], [len(first), len(second)])
        return cls(center, scale, _logistic(design, labels))

    @property
    def names(self) -> list[str]:
        """What each score is, in words."""
        count = len(self.center)
        names = [f"coordinate {j}" for j in range(count)] + [f"coordinate {j} missing" for j in range(count)]
        if count <= MOST_PAIRED:
            names += [f"coordinate {i} - coordinate {j}" for i, j in _pairs(count)]
        return [*names, "largest standardised coordinate", "smallest standardised coordinate", "logistic score"]

    def __call__(self, outputs: np.ndarray) -> np.ndarray:
        """Return the scores of outputs of shape (k, D), shape (scores, k)."""
        missing = np.isnan(outputs)
        # An infinite output is an output: it becomes the largest double, so that differences of two stay numbers.
        largest = np.finfo(np.float64).max / 4
        clean = np.clip(np.where(missing, self.center, outputs), -largest, largest)
        standard = self._standardised(outputs)
        scores = [*clean.T, *missing.T.astype(np.float64)]
        if len(self.center) <= MOST_PAIRED:
            scores += [clean[:, i] - clean[:, j] for i, j in _pairs(len(self.center))]
        return np.array([*scores, standard.max(axis=1), standard.min(axis=1), self._design(standard) @ self.weights])

    def _standardised(self, outputs: np.ndarray) -> np.ndarray:
        largest = np.finfo(np.float64).max / 4
        clean = np.clip(np.where(np.isnan(outputs), self.center, outputs), -largest, largest)
        with np.errstate(over="ignore"):
            return np.clip((clean - self.center) / self.scale, -FARTHEST, FARTHEST)

    @staticmethod
    def _design(z: np.ndarray) -> np.ndarray:
        """Return 1, z_i, z_i^2 and, in few dimensions, z_i z_j."""
        columns = [np.ones(len(z)), *z.T, *(z**2).T]
        if z.shape[1] <= MOST_PAIRED:
            columns += [z[:, i] * z[:, j] for i, j in _pairs(z.shape[1])]
        return np.stack(columns, axis=1)


@dataclass(frozen=True, eq=False, repr=False)  # its cut points are functions of the draws
class Event:
    """The outputs whose scores lie in all of some intervals, lo < score <= hi.

    Attributes
    ----------
    scores : Scores
    intervals : tuple of (int, float, float)
        Index of a score, lo and hi.
    """

    scores: Scores
    intervals: tuple[tuple[int, float, float], ...]

    def count(self, outputs: np.ndarray) -> int:
        """Return how many outputs of shape (k, D) lie in the event."""
        scores = self.scores(outputs)
        inside = np.ones(len(outputs), dtype=bool)
        for index, low, high in self.intervals:
            inside &= (scores[index] > low) & (scores[index] <= high)
        return int(inside.sum())

    def __str__(self) -> str:
        """Return the event in words."""
        names = self.scores.names
        parts = []
        for index, low, high in self.intervals:
            if high == np.nextafter(low, np.inf):
                parts.append(f"{names[index]} = {high:.6g}")
            else:
                left = "" if low == -np.inf else f"{low:.6g} < "
                right = "" if high == np.inf else f" <= {high:.6g}"
                parts.append(f"{left}{names[index]}{right}")
        return " and ".join(parts) or "any output"


def choose_event(scores: Scores, common: np.ndarray, rare: np.ndarray, delta: float, z: float) -> Event:
    """Choose an event that is likely for `common` and unlikely for `rare`.

    Intervals are added one at a time, each the one that most raises an approximate lower bound on
    log((P_common - delta) / P_rare) on the training draws.

    Parameters
    ----------
    scores : Scores
    common, rare : ndarray, shape (k, D)
        Training outputs.
    delta : float
    z : float
        Standard normal quantile of each of the two probabilities' bounds.
    """
    first, second = scores(common), scores(rare)
    cuts = [_cuts(np.concatenate([a, b])) for a, b in zip(first, second, strict=True)]
    bins = [[np.searchsorted(c, part, side="left") for c, part in zip(cuts, s, strict=True)] for s in (first, second)]
    kept = [np.ones(len(common), dtype=bool), np.ones(len(rare), dtype=bool)]
    intervals, reached = [], 0.0
    for _ in range(MOST_INTERVALS):
        best = None
        for index, edges in enumerate(cuts):
            sums = [
                np.concatenate([[0], np.cumsum(np.bincount(part[index][inside], minlength=len(edges) + 1))])
                for part, inside in zip(bins, kept, strict=True)
            ]
            # Entry (i, j), i < j: the interval of the bins i, ..., j - 1.
            a, b = (s[None, :] - s[:, None] for s in sums)
            value = np.triu(_approximate_bound(a, len(common), b, len(rare), delta, z), 1)
            place = np.unravel_index(np.argmax(value), value.shape)
            if value[place] > reached:
                reached, best = float(value[place]), (index, *place)
        if best is None:
            break
        index, i, j = best
        edges = np.concatenate([[-np.inf], cuts[index], [np.inf]])
        intervals.append((index, float(edges[i]), float(edges[j])))
        for part, inside in zip(bins, kept, strict=True):
            inside &= (part[index] >= i) & (part[index] < j)
    return Event(scores, tuple(intervals))


def _cuts(score: np.ndarray) -> np.ndarray:
    """Return the ends of a score's intervals: quantiles, and both sides of every atom."""
    shares = np.concatenate([np.linspace(0, 1, EQUAL_SHARES + 1), TAIL_SHARES, 1 - np.array(TAIL_SHARES)])
    cuts = np.quantile(score, shares, method="inverted_cdf")
    values, counts = np.unique(score, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:MOST_ATOMS]
    atoms = values[order][counts[order] > max(1.0, ATOM_SHARE * len(score))]
    return np.unique(np.concatenate([cuts, atoms, np.nextafter(atoms, -np.inf)]))


def _approximate_bound(a, m, b, k, delta: float, z: float):
    """Return log((p_low - delta) / q_high), at least 0, with Wilson's limits p_low of a/m and q_high of b/k."""

    def limit(count, size, side):
        share = np.clip(count, 0, size) / size
        middle = share + z**2 / (2 * size)
        half = z * np.sqrt(share * (1 - share) / size + z**2 / (4 * size**2))
        return (middle + side * half) / (1 + z**2 / size)

    low, high = limit(a, m, -1) - delta, limit(b, k, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(low > 0, np.maximum(np.log(low / high), 0.0), 0.0)


def _logistic(design: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the coefficients of a logistic regression with a small ridge, by Newton's method."""
    weights = np.zeros(design.shape[1])
    ridge = RIDGE * len(design) * np.eye(design.shape[1])
    for _ in range(NEWTON_STEPS):
        logits = np.clip(design @ weights, -FARTHEST_LOGIT, FARTHEST_LOGIT)
        probability = 1 / (1 + np.exp(-logits))
        curvature = (design * (probability * (1 - probability))[:, None]).T @ design + ridge
        weights = weights + np.linalg.solve(curvature, design.T @ (labels - probability) - ridge @ weights)
    return weights


def _pairs(count: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(count) for j in range(i)]
