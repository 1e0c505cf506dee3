"""Numbers computed from one output, whose intervals are an audit's events.

Coarse scores see what a statistician would look at: coordinates, differences of pairs of them, the largest and the
smallest standardised coordinate, a logistic classifier. Fine scores see what a value carries besides its size: its sign
bit, infinities, the low bits of its significand, its decimals, and where it lies between the points of a grid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

__all__ = ["Scores"]

#: Differences of pairs of coordinates, and products in the classifier, are made up to this many coordinates.
MOST_PAIRED = 8
#: Fine scores are made for this many coordinates, the first ones.
MOST_FINE = 16
# Standardised coordinates are cut here, so that a heavy tail does not decide the classifier.
FARTHEST = 10.0
RIDGE, NEWTON_STEPS = 1e-3, 8
FARTHEST_LOGIT = 30.0
LARGEST = np.finfo(np.float64).max
STORED_BITS = np.finfo(np.float64).nmant
#: Numbers of low bits of the significand that are read together.
LOW_BITS = (1, 2, 3, 4, 8, 16, 32)
#: Steps of grids on which outputs may lie; how far off the grid one lies is then a score.
GRID_STEPS = {f"1e-{k}": 10.0**-k for k in (0, 3, 6, 9)} | {f"2^-{k}": 2.0**-k for k in (10, 20, 30, 40)}

Group = tuple[list[str], Callable[[np.ndarray], Sequence[np.ndarray]]]


@dataclass(frozen=True, eq=False)
class Scores:
    """Numbers computed from an output, the same for training and held-out draws.

    Attributes
    ----------
    columns : list of str
        What each of the D numbers of an output is.
    center, scale : ndarray, shape (D,)
        Median and spread of the training outputs.
    weights : ndarray
        Coefficients of the logistic classifier.
    places : ndarray of int, shape (at most D,)
        Most decimals of each coordinate among the training outputs.
    """

    columns: list[str]
    center: np.ndarray
    scale: np.ndarray
    weights: np.ndarray
    places: np.ndarray

    @classmethod
    def fit(cls, first: np.ndarray, second: np.ndarray, columns: list[str]) -> Scores:
        """Fit to training outputs of the two tables, each of shape (k, D)."""
        pooled = np.concatenate([first, second])
        known = np.where(np.isfinite(pooled), pooled, np.nan)
        known[:, np.isnan(known).all(axis=0)] = 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            low, center, high = np.nanquantile(known, [0.25, 0.5, 0.75], axis=0, method="inverted_cdf")
            spread = np.nanstd(known - center, axis=0)
            scale = np.where(high > low, high - low, spread)
        scale = np.where(np.isfinite(scale) & (scale > 0), scale, 1.0)
        places = np.array([max(_decimal(x)[1] for x in column.tolist()) for column in pooled.T[:MOST_FINE]])
        scores = cls(columns, center, scale, np.zeros(0), places)
        design = scores._design(scores._standardised(pooled))
        labels = np.repeat([1.0, 0.0], [len(first), len(second)])
        return cls(columns, center, scale, _logistic(design, labels), places)

    @property
    def names(self) -> list[str]:
        """What each score is, in words."""
        return [name for names, _ in self._groups() for name in names]

    def __call__(self, outputs: np.ndarray) -> list[np.ndarray]:
        """Return the scores of outputs of shape (k, D), each of shape (k,)."""
        return [np.asarray(score, dtype=np.float64) for _, make in self._groups() for score in make(outputs)]

    @property
    def coarse(self) -> int:
        """How many scores are coarse; these come first."""
        return sum(len(names) for names, _ in self._coarse_groups())

    def some(self, indices: set[int], outputs: np.ndarray) -> dict[int, np.ndarray]:
        """Return index -> score for a few of them."""
        found, start = {}, 0
        for names, make in self._groups():
            wanted = indices & set(range(start, start + len(names)))
            if wanted:
                group = make(outputs)
                found |= {index: np.asarray(group[index - start], dtype=np.float64) for index in wanted}
            start += len(names)
        return found

    def _groups(self) -> list[Group]:
        """Return the scores in groups that are computed together."""
        return self._coarse_groups() + self._fine_groups()

    def _coarse_groups(self) -> list[Group]:
        names, count = self.columns, len(self.columns)
        groups: list[Group] = [([name], partial(self._coordinate, j=j)) for j, name in enumerate(names)]
        groups += [([f"{name} missing"], partial(_missing, j=j)) for j, name in enumerate(names)]
        if count <= MOST_PAIRED:
            groups += [([f"{names[i]} - {names[j]}"], partial(self._difference, i=i, j=j)) for i, j in _pairs(count)]
        groups.append((["largest standardised coordinate", "smallest standardised coordinate"], self._extremes))
        groups.append((["logistic score"], lambda outputs: [self._design(self._standardised(outputs)) @ self.weights]))
        return groups

    def _fine_groups(self) -> list[Group]:
        groups: list[Group] = []
        for j, name in enumerate(self.columns[:MOST_FINE]):
            groups.append(([f"sign bit of {name}", f"infinity of {name}"], partial(_special, j=j)))
            bits = [f"last {k} bits of {name}" for k in LOW_BITS]
            groups.append(([*bits, f"zeros at the end of the bits of {name}"], partial(_low_bits, j=j)))
            digits = ["decimals", "digits", "last digit", "parity of the last digit"]
            place = f"digit {self.places[j]} places after the point"
            digits = [f"{word} of {name}" for word in (*digits, place, f"parity of the {place}")]
            groups.append((digits, partial(_digits, j=j, places=int(self.places[j]))))
            groups.append(([f"{name} off the grid of {step}" for step in GRID_STEPS], partial(_off_grids, j=j)))
        return groups

    def _clean(self, outputs: np.ndarray, j: int | slice, largest: float = LARGEST) -> np.ndarray:
        """Return finite numbers, in which a missing one is the centre; whether it was missing is another score."""
        return np.clip(np.where(np.isnan(outputs[:, j]), self.center[j], outputs[:, j]), -largest, largest)

    def _coordinate(self, outputs: np.ndarray, j: int) -> list[np.ndarray]:
        return [self._clean(outputs, j)]

    def _difference(self, outputs: np.ndarray, i: int, j: int) -> list[np.ndarray]:
        with np.errstate(over="ignore"):
            difference = self._clean(outputs, i) - self._clean(outputs, j)
        return [np.clip(difference, -LARGEST, LARGEST)]

    def _extremes(self, outputs: np.ndarray) -> list[np.ndarray]:
        standard = self._standardised(outputs)
        return [standard.max(axis=1), standard.min(axis=1)]

    def _standardised(self, outputs: np.ndarray) -> np.ndarray:
        # A quarter of the largest double, so that the difference from the centre is a number.
        clean = self._clean(outputs, slice(None), LARGEST / 4)
        with np.errstate(over="ignore"):
            return np.clip((clean - np.clip(self.center, -LARGEST / 4, LARGEST / 4)) / self.scale, -FARTHEST, FARTHEST)

    @staticmethod
    def _design(z: np.ndarray) -> np.ndarray:
        """Return 1, z_i, z_i^2 and, in few dimensions, z_i z_j."""
        columns = [np.ones(len(z)), *z.T, *(z**2).T]
        if z.shape[1] <= MOST_PAIRED:
            columns += [z[:, i] * z[:, j] for i, j in _pairs(z.shape[1])]
        return np.stack(columns, axis=1)


def _missing(outputs: np.ndarray, j: int) -> list[np.ndarray]:
    return [np.isnan(outputs[:, j])]


def _special(outputs: np.ndarray, j: int) -> list[np.ndarray]:
    """Return the sign bit, which tells -0.0 from 0.0, and 1 or -1 for the infinities, 0 for finite numbers."""
    column = outputs[:, j]
    return [np.signbit(column), np.isposinf(column).astype(np.float64) - np.isneginf(column)]


def _low_bits(outputs: np.ndarray, j: int) -> list[np.ndarray]:
    """Return the low bits of the significand, those of a NaN too, and how many of them are 0 at the end."""
    bits = np.ascontiguousarray(outputs[:, j]).view(np.int64) & (2**STORED_BITS - 1)
    lowest = np.where(bits, bits & -bits, 2**STORED_BITS)
    return [*(bits & (2**k - 1) for k in LOW_BITS), np.log2(lowest)]


def _digits(outputs: np.ndarray, j: int, places: int) -> list[np.ndarray]:
    """Return what the shortest decimal that reads back to the double shows: its decimals and its last digits."""
    scores = np.zeros((len(outputs), 6))
    for row, x in zip(scores, outputs[:, j].tolist(), strict=True):
        digits, decimals = _decimal(x)
        last, at_place = (int(digits[-1]), _digit(digits, decimals - places)) if digits else (-1, -1)
        row[:] = decimals, len(digits), last, last % 2, at_place, at_place % 2
    return list(scores.T)


def _decimal(x: float) -> tuple[str, int]:
    """Return the digits of |x| without zeros at their end, and how many of them come after the point.

    Fewer than 0 come after it where zeros before it were dropped: 1200 is ("12", -2). No digits for NaN and infinities.
    """
    text = repr(abs(x))
    if text in ("inf", "nan"):
        return "", 0
    significand, _, exponent = text.partition("e")
    whole, _, part = significand.partition(".")
    digits = (whole + part).lstrip("0")
    kept = digits.rstrip("0")
    if not kept:
        return "0", 0
    return kept, len(part) - int(exponent or 0) - (len(digits) - len(kept))


def _digit(digits: str, behind: int) -> int:
    """Return the digit that stands `behind` digits before the last one; 0 where there is none."""
    return int(digits[-1 - behind]) if 0 <= behind < len(digits) else 0


def _off_grids(outputs: np.ndarray, j: int) -> list[np.ndarray]:
    """Return x - step * round(x / step) for each step; 0 for NaN and infinities."""
    column = np.where(np.isfinite(outputs[:, j]), outputs[:, j], 0.0)
    scores = []
    for step in GRID_STEPS.values():
        off = np.fmod(column, step)  # exact, as no quotient is rounded
        scores.append(np.where(np.abs(off) > step / 2, off - np.copysign(step, off), off))
    return scores


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
