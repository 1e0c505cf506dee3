r"""Exact draws for any depth that has bounds over boxes, in a few dimensions.

The grid of u-space is cut into boxes B with upper bounds u(B) of the score k, and the density b^(-k) * prior lies under
the envelope b^(-u(B)) * prior. A box is chosen with weight mass(B) b^(K - u(B)), a cell in it by prior mass, and the
cell is accepted with probability b^(u(B) - k); otherwise the box is split and the envelope sinks. Whatever boxes the
history has left, an accepted cell has the mechanism's law, so the draw is exact; the tree only decides how long it
takes. It is kept between draws.

Counted depths are weighed by integer powers of the rational base, masses are integers, and the choice, the cell and the
acceptance are functions of uniform bits that are drawn as they are needed: the law is exact to the bit. Other scores
are doubles; their law is that of exp(beta D) with D as computed, and its weights are doubles ("float64").

References
----------
.. [1] W. R. Gilks and P. Wild, Adaptive rejection sampling for Gibbs sampling, Applied Statistics 41 (1992) 337-348,
       doi:10.2307/2347565.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pymc_dpdepth.depths.box_bounds import BoxBound
from pymc_dpdepth.grid import LAST_KEY
from pymc_dpdepth.randomness import DISCARDED_BITS, RandomBits
from pymc_dpdepth.samplers.cells import draw_cells
from pymc_dpdepth.samplers.choice import WORD_BITS, accept, choose
from pymc_dpdepth.samplers.leaves import SIDE_ROUNDINGS, Leaves, box_interval, split_boxes
from pymc_dpdepth.samplers.weights import (
    POWER_ROUNDINGS,
    ROUNDOFF,
    Interval,
    WeightBase,
    scaled_exponentials,
    scaled_powers,
)

__all__ = ["LARGEST_TREE", "BranchAndBound", "WorkLimitError"]

#: Boxes, and tries, at which a draw is given up.
LARGEST_TREE, MOST_TRIES = 1_000_000, 20_000_000
SMALLEST_BATCH, LARGEST_BATCH = 32, 1024
BOXES_PER_PROPOSAL = 8  # a batch is drawn from one envelope, so it stays small beside the tree
# Shares of the rows on either side of the first cuts: boxes of order statistics around the middle of the rows.
SAFE = 1e-9  # relative: far above the rounding errors of a logarithm and a quotient
FIRST_CUTS = (0.0, 1 / 64, 1 / 16, 1 / 4)


class WorkLimitError(RuntimeError):
    """Branch and bound has grown its tree to the limit without a draw.

    Whether that happens depends on the rows: the refusal itself must not be published, and the charge stays.
    """


class BranchAndBound:
    """The tree of one table's law, and draws from it.

    Parameters
    ----------
    bound : BoxBound
    base : WeightBase or None
        Of one count; None for a depth that is not counted.
    beta : float
        Exponent of the depth, for one that is not counted.
    floors : ndarray of int64, shape (d, 2)
    points : callable
        Cells (k, d) to points in the units of the bound.
    enclose : callable
        First and last cells of boxes (k, d) to low and high ends (k, d) that enclose all their points.
    row_keys : ndarray of int64, shape (d, n)
        Ascending cells of the rows along each coordinate, for the first cuts.
    """

    def __init__(
        self,
        bound: BoxBound,
        base: WeightBase | None,
        beta: float,
        floors: np.ndarray,
        points: Callable,
        enclose: Callable,
        row_keys: np.ndarray,
    ) -> None:
        self._bound, self._base, self._beta = bound, base, beta
        self._points, self._enclose = points, enclose
        first, last = floors[:, 0][None], (LAST_KEY - floors[:, 1])[None]
        top = self._upper(first, last)
        self._top = top[0]
        self._leaves = Leaves(floors, self._weigh, top.dtype.type)
        self._leaves.add(first, last, top)
        self._cut_at_rows(row_keys)

    def draw(self, bits: RandomBits, draws: int) -> np.ndarray:
        """Draw cells, shape (draws, d).

        Raises
        ------
        WorkLimitError
        """
        leaves, found, count, tries = self._leaves, [], 0, 0
        while count < draws:
            batch = min(max(SMALLEST_BATCH, len(leaves) // BOXES_PER_PROPOSAL), LARGEST_BATCH)
            weights = leaves.significands, leaves.exponents
            chosen = choose(*weights, self._roundings, self._intervals, bits, batch)
            cells = draw_cells(leaves.first[chosen], leaves.last[chosen], leaves.floors, bits)
            taken = self._accept(cells, leaves.bounds[chosen], bits)
            found.append(cells[taken][: draws - count])
            count += len(found[-1])
            self._split(np.unique(chosen[~taken]))
            tries = tries + batch if not taken.any() else 0
            if (len(leaves) > LARGEST_TREE or tries > MOST_TRIES) and count < draws:
                raise WorkLimitError(
                    f"Branch and bound stopped at {LARGEST_TREE} boxes or {MOST_TRIES} tries without a draw. What was "
                    "charged stays charged, and the refusal must not be published: whether it comes depends on the "
                    'rows. Choose other directions (directions="auto" in place of all directions), another depth or '
                    "fewer dimensions; halfspace along axes is drawn without a tree."
                )
        return np.concatenate(found)

    def __len__(self) -> int:
        """Return the number of boxes; a function of the rows, which stays with the curator."""
        return len(self._leaves)

    # Weights

    def _weigh(self, significands, exponents, bounds):
        """Return mass * b^(top - bound), or mass * exp(beta (bound - top))."""
        if self._base is not None:
            return scaled_powers(significands, exponents, self._top - bounds, *self._base.table)
        return scaled_exponentials(significands, exponents, self._beta * (bounds - self._top))

    @property
    def _roundings(self) -> int:
        return SIDE_ROUNDINGS * len(self._leaves.floors) + POWER_ROUNDINGS + 1

    def _intervals(self, precision: int) -> list[Interval]:
        """Return the weights between integers; doubles that are not counted stand for themselves."""
        leaves = self._leaves
        if self._base is None:
            return [
                Interval.of_double(s, e)
                for s, e in zip(leaves.significands.tolist(), leaves.exponents.tolist(), strict=True)
            ]
        powers = {}
        for bound in set(leaves.bounds.tolist()):
            powers[bound] = self._base.power(int(self._top) - bound, precision)
        return [
            box_interval(first, last, leaves.floors, precision) * powers[bound]
            for first, last, bound in zip(leaves.first, leaves.last, leaves.bounds.tolist(), strict=True)
        ]

    # Bounds

    def _upper(self, first: np.ndarray, last: np.ndarray) -> np.ndarray:
        low, high = self._enclose(first, last)
        return self._bound.upper(low, high)

    def _accept(self, cells: np.ndarray, bounds: np.ndarray, bits: RandomBits) -> np.ndarray:
        """Accept each cell with probability b^(bound - score), or exp(beta (score - bound))."""
        words = bits.words(len(cells))
        counted = self._base is not None
        unit = float(self._base.unit) if counted else self._beta
        # U >= head 2^-53, so a score is surely rejected where (bound - score) * unit > -ln(head 2^-53).
        heads = (words >> np.uint64(DISCARDED_BITS)).astype(np.float64)
        with np.errstate(divide="ignore"):
            room = -np.log(heads * ROUNDOFF) / unit
        least = bounds - room * (1.0 + SAFE) - (1.0 if counted else SAFE)
        if counted:
            least = np.maximum(np.floor(least), 0.0).astype(np.int64)
        scores = self._bound.score(self._points(cells), least)
        if (scores > bounds).any():
            raise ValueError(
                "A score exceeds its box bound, so there is no exact draw: the bound of the depth is wrong."
            )
        if counted:
            return accept(bounds - scores, self._base, words, bits)
        return words * 2.0**-WORD_BITS < np.exp(self._beta * (scores - bounds))

    # Splitting

    def _split(self, index: np.ndarray) -> None:
        """Split boxes by their longest sides; a box of one cell gets its score as its bound."""
        leaves = self._leaves
        first, last = leaves.first[index], leaves.last[index]
        low, high = self._enclose(first, last)
        axes, cells = split_boxes(first, last, low, high, self._bound.influence, leaves.floors)
        splittable = axes >= 0
        single = ~splittable
        if single.any():
            lowest = np.full(int(single.sum()), np.iinfo(np.int64).min if self._base is not None else -np.inf)
            scores = self._bound.score(self._points(first[single]), lowest)
            leaves.replace(index[single], first[single], last[single], np.minimum(scores, leaves.bounds[index[single]]))
        self._cut(index[splittable], axes[splittable], cells[splittable])

    def _cut(self, index: np.ndarray, axes: np.ndarray, cells: np.ndarray) -> None:
        """Cut boxes along one axis each, behind a cell; the first part takes the box's place."""
        if not len(index):
            return
        leaves, rows = self._leaves, np.arange(len(index))
        first, last, bounds = leaves.first[index], leaves.last[index], leaves.bounds[index]
        first_of_second, last_of_first = first.copy(), last.copy()
        last_of_first[rows, axes], first_of_second[rows, axes] = cells, cells + 1
        upper = self._upper(np.concatenate([first, first_of_second]), np.concatenate([last_of_first, last]))
        # A part is bounded by the whole, too.
        upper = np.minimum(upper, np.concatenate([bounds, bounds]))
        leaves.replace(index, first, last_of_first, upper[: len(index)])
        leaves.add(first_of_second, last, upper[len(index) :])

    def _cut_at_rows(self, row_keys: np.ndarray) -> None:
        """Cut off what lies outside of order statistics of the rows, from far to near."""
        d, n = row_keys.shape
        core = 0
        for share in FIRST_CUTS if n else ():
            rank = math.floor(share * n)
            for j in range(d):
                for inside in (False, True):  # keep what is above the low order statistic, then what is below the high
                    cell = row_keys[j, n - 1 - rank] if inside else row_keys[j, rank] - 1
                    if self._leaves.first[core, j] <= cell < self._leaves.last[core, j]:
                        self._cut(np.array([core]), np.array([j]), np.array([cell]))
                        core = core if inside else len(self._leaves) - 1
