"""Events for an audit: sets of outputs that one table gives more often than its neighbour, chosen on training draws.

An event is up to three intervals, lo < score <= hi, each on one score of the output (`audit_scores`): thresholds, boxes
and, one value wide, atoms.

Everything here is chosen on the training draws. Held-out draws only count how often a finished event happens, so a poor
choice makes an audit weak, never wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pymc_dpdepth.privacy.audit_scores import Scores

__all__ = ["Event", "choose_events"]

#: An event is the intersection of at most this many intervals.
MOST_INTERVALS = 3
# Cut points of a score: equal shares of the training draws, and the far tails.
EQUAL_SHARES = 48
TAIL_SHARES = (0.0005, 0.001, 0.002, 0.005, 0.01)
# A value that this share of the training draws has is an atom, and gets a cell of its own.
ATOM_SHARE, MOST_ATOMS = 0.002, 24

# A fine score must do this much better than a coarse one: there are many of them, and the best of many on the training
# draws is in part the luckiest.
FINE_CREDIT = 0.9


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
        scores = self.scores.some({index for index, _, _ in self.intervals}, outputs)
        inside = np.ones(len(outputs), dtype=bool)
        for index, low, high in self.intervals:
            inside &= (scores[index] > low) & (scores[index] <= high)
        return int(inside.sum())

    def __str__(self) -> str:
        """Return the event in words."""
        names = self.scores.names
        parts = []
        for index, low, high in self.intervals:
            if low == _just_below(high):
                parts.append(f"{names[index]} = {high:.6g}")
            else:
                left = "" if low == -np.inf else f"{low:.6g} < "
                right = "" if high == np.inf else f" <= {high:.6g}"
                parts.append(f"{left}{names[index]}{right}")
        return " and ".join(parts) or "any output"


def choose_events(scores: Scores, first: np.ndarray, second: np.ndarray, delta: float, z: float) -> tuple[Event, Event]:
    """Choose an event that is likely for the first table and unlikely for the second, and one the other way round.

    Intervals are added one at a time, each the one that most raises an approximate lower bound on
    log((P_common - delta) / P_rare) on the training draws.

    Parameters
    ----------
    scores : Scores
    first, second : ndarray, shape (k, D)
        Training outputs of the two tables.
    delta : float
    z : float
        Standard normal quantile of each of the two probabilities' bounds.
    """
    values = [scores(first), scores(second)]
    cuts = {}
    for index, pair in enumerate(zip(*values, strict=True)):
        ends = _cuts(np.concatenate(pair))
        if len(ends):
            cuts[index] = ends
    bins = [{index: np.searchsorted(c, part[index], side="left") for index, c in cuts.items()} for part in values]
    sizes = len(first), len(second)
    likely_first = _choose(scores, cuts, bins, sizes, delta, z)
    return likely_first, _choose(scores, cuts, bins[::-1], sizes[::-1], delta, z)


def _choose(scores: Scores, cuts: dict, bins: list[dict], sizes: tuple[int, int], delta: float, z: float) -> Event:
    """Choose an event from the bins of each score; the first table is the one that it shall be likely for."""
    kept = [np.ones(size, dtype=bool) for size in sizes]
    intervals, reached, coarse = [], 0.0, scores.coarse
    for _ in range(MOST_INTERVALS):
        best, credited, found = None, 0.0, reached
        for index, edges in cuts.items():
            sums = [
                np.concatenate([[0], np.cumsum(np.bincount(part[index][inside], minlength=len(edges) + 1))])
                for part, inside in zip(bins, kept, strict=True)
            ]
            # Entry (i, j), i < j: the interval of the bins i, ..., j - 1.
            a, b = (s[None, :] - s[:, None] for s in sums)
            value = np.triu(_approximate_bound(a, sizes[0], b, sizes[1], delta, z), 1)
            place = np.unravel_index(np.argmax(value), value.shape)
            credit = value[place] * (1.0 if index < coarse else FINE_CREDIT)
            if value[place] > reached and credit > credited:
                found, credited, best = float(value[place]), credit, (index, *place)
        if best is None:
            break
        reached = found
        index, i, j = best
        edges = np.concatenate([[-np.inf], cuts[index], [np.inf]])
        intervals.append((index, float(edges[i]), float(edges[j])))
        for part, inside in zip(bins, kept, strict=True):
            inside &= (part[index] >= i) & (part[index] < j)
    return Event(scores, tuple(intervals))


def _cuts(score: np.ndarray) -> np.ndarray:
    """Return the ends of a score's intervals: quantiles, and both sides of every atom; none where all are equal."""
    ordered = np.sort(score)
    if ordered[0] == ordered[-1]:
        return ordered[:0]
    shares = np.concatenate([np.linspace(0, 1, EQUAL_SHARES + 1), TAIL_SHARES, 1 - np.array(TAIL_SHARES)])
    cuts = ordered[np.maximum(np.ceil(shares * len(ordered)).astype(int) - 1, 0)]
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    values, counts = ordered[first], np.diff(first, append=len(ordered))
    order = np.argsort(-counts, kind="stable")[:MOST_ATOMS]
    atoms = values[order][counts[order] > max(1.0, ATOM_SHARE * len(score))]
    return np.unique(np.concatenate([cuts, atoms, _just_below(atoms)]))


def _just_below(value):
    """Return the next smaller double; below the smallest one it is minus infinity, which is no accident."""
    with np.errstate(over="ignore"):
        return np.nextafter(value, -np.inf)


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
