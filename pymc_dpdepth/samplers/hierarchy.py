r"""Exact draws of a normal hierarchy: hyperparameters first, by branch and bound, then each group by its own law.

With theta_g ~ N(mean, scale) given hyperparameters h (means, scales, or both), the joint density of the mechanism is

    prior(h) * prod_g [ mass_h(theta_g) * b^(K_g - count_g(theta_g)) ],

mass_h the masses of the grid of N(mean, scale). Summed over the locations it leaves the marginal of h,

    prior(h) * prod_g Z_g(h),    Z_g(h) = sum over cells of mass_h(cell) * b^(K_g - count_g(cell)),

which has as many dimensions as there are hyperparameters, however many groups there are. It is drawn by branch and
bound on the grid of h: boxes B with upper bounds E(B) of prod_g Z_g are chosen by mass(B) E(B), a cell in them by
prior mass, and the cell is accepted with probability prod_g Z_g(h) / E(B); a box whose cell was rejected is split.
Given h the groups are independent, and each is drawn from its law on the grid of N(mean, scale). That this grid
depends on h costs nothing: h is part of the output, and for every h the grid is there before the rows are.

Choice, cell and acceptance are functions of uniform bits that are drawn as they are needed, with integers where doubles
do not decide, so given valid bounds the law is exact to the bit.

References
----------
.. [1] W. R. Gilks and P. Wild, Adaptive rejection sampling for Gibbs sampling, Applied Statistics 41 (1992) 337-348,
       doi:10.2307/2347565.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pymc_dpdepth.grid import LAST_KEY
from pymc_dpdepth.priors import ProductPrior
from pymc_dpdepth.randomness import DISCARDED_BITS, RandomBits
from pymc_dpdepth.samplers.branch_and_bound import WorkLimitError
from pymc_dpdepth.samplers.cells import draw_cells
from pymc_dpdepth.samplers.choice import FIRST_PRECISION, WORD_BITS, choose, relative_doubles
from pymc_dpdepth.samplers.group_laws import DualFactor, LevelFactor, total_of
from pymc_dpdepth.samplers.leaves import SIDE_ROUNDINGS, Leaves, box_interval, box_significands, split_boxes
from pymc_dpdepth.samplers.weights import ROUNDOFF, Interval, scaled_exponentials

__all__ = ["Component", "HyperTree"]

#: Boxes, and tries without a draw, at which a draw is given up.
LARGEST_TREE, MOST_TRIES = 100_000, 100_000
SMALLEST_BATCH, LARGEST_BATCH = 8, 256
HEAVIEST = 16
# Log constants are right to far less; a draw that this leaves open is decided by integers.
UNDECIDED = 1e-9
LN2 = math.log(2.0)


@dataclass(frozen=True, eq=False, repr=False)
class Component:
    """Coordinates that hyperparameters tie together, with the groups' factors in them.

    Attributes
    ----------
    hyper : ndarray of int
        The hyperparameters that play a part.
    factors : list of LevelFactor or DualFactor
    means, scales : callable
        (hyperparameters (k, H), index of a factor) to means and scales (k, M) of that factor.
    """

    hyper: np.ndarray
    factors: list[LevelFactor | DualFactor]
    means: Callable[[np.ndarray, int], np.ndarray]
    scales: Callable[[np.ndarray, int], np.ndarray]

    def log_bounds(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return upper bounds, at most 0, of the log product of the constants over boxes, ends (k, H)."""
        total = np.zeros(len(low))
        for index, factor in enumerate(self.factors):
            ends = (of(end, index) for of in (self.means, self.scales) for end in (low, high))
            total += factor.log_bounds(*ends)
        return total

    def log_constant(self, values: np.ndarray) -> float:
        """Return the log product of the constants at one point (H,)."""
        return sum(factor.log_constant(*self._at(values, index)) for index, factor in enumerate(self.factors))

    def constant(self, values: np.ndarray, precision: int) -> Interval:
        """Return the product of the constants at one point between integers."""
        product = Interval(1, 1)
        for index, factor in enumerate(self.factors):
            parts = factor.constant(*self._at(values, index), precision)
            product = (product * total_of(parts)).rounded(precision)
        return product

    def _at(self, values: np.ndarray, index: int) -> tuple[np.ndarray, np.ndarray]:
        return self.means(values[None], index)[0], self.scales(values[None], index)[0]


class HyperTree:
    """The tree of one component's hyperparameters, and draws of them.

    Parameters
    ----------
    prior : ProductPrior
        Of all hyperparameters.
    component : Component
    """

    def __init__(self, prior: ProductPrior, component: Component) -> None:
        self._prior, self._component = prior, component
        self._hyper = component.hyper
        floors = prior.floors()
        self._whole = floors[:, 0], LAST_KEY - floors[:, 1]
        self._outermost = [prior.values(end[None])[0] for end in self._whole]
        first, last = (end[self._hyper][None] for end in self._whole)
        self._leaves = Leaves(floors[self._hyper], scaled_exponentials, np.float64)
        self._leaves.add(first, last, self._bounds(first, last))

    def __len__(self) -> int:
        """Return the number of boxes; a function of the rows, which stays with the curator."""
        return len(self._leaves)

    def draw(self, bits: RandomBits, draws: int) -> np.ndarray:
        """Draw cells of the component's hyperparameters, shape (draws, number of them).

        Raises
        ------
        WorkLimitError
        """
        leaves, found, count, tries = self._leaves, [], 0, 0
        while count < draws:
            batch = min(max(SMALLEST_BATCH, draws - count), LARGEST_BATCH)
            roundings = SIDE_ROUNDINGS * len(self._hyper) + 1
            chosen = choose(leaves.significands, leaves.exponents, roundings, self._intervals, bits, batch)
            cells = draw_cells(leaves.first[chosen], leaves.last[chosen], leaves.floors, bits)
            taken = self._accept(cells, leaves.bounds[chosen], bits)
            found.append(cells[taken][: draws - count])
            count += len(found[-1])
            tries = tries + batch if not taken.any() else 0
            if (len(leaves) > LARGEST_TREE or tries > MOST_TRIES) and count < draws:
                raise WorkLimitError(
                    f"Branch and bound of the hyperparameters stopped at {LARGEST_TREE} boxes or {MOST_TRIES} tries "
                    "without a draw. What was charged stays charged, and the refusal must not be published: whether "
                    "it comes depends on the rows. Take fewer hyperparameters, or priors nearer to what is known."
                )
            rejected = chosen[~taken]
            if not taken.any():  # the envelope is far too high: the boxes that make most of it are split, too
                weights = relative_doubles(leaves.significands, leaves.exponents)
                rejected = np.concatenate([rejected, np.argsort(weights)[-HEAVIEST:]])
            if len(rejected):
                self._split(np.unique(rejected))
        return np.concatenate(found)

    def values(self, cells: np.ndarray) -> np.ndarray:
        """Return the numbers of cells of the component's hyperparameters, shape (k, H); others have any number."""
        return self._prior.values(self._all(cells, self._whole[0]))

    # Weights

    def _intervals(self, precision: int) -> list[Interval]:
        """Return the weights of the boxes between integers; a bound is the double that stands for it."""
        leaves = self._leaves
        ones, zeros = np.ones(len(leaves)), np.zeros(len(leaves), dtype=np.int64)
        bounds = zip(*(part.tolist() for part in scaled_exponentials(ones, zeros, leaves.bounds)), strict=True)
        return [
            box_interval(first, last, leaves.floors, precision) * Interval.of_double(*bound)
            for first, last, bound in zip(leaves.first, leaves.last, bounds, strict=True)
        ]

    def _all(self, cells: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return cells of all hyperparameters, with given ones beside those of the component."""
        whole = np.repeat(others[None], len(cells), axis=0)
        whole[:, self._hyper] = cells
        return whole

    def _bounds(self, first: np.ndarray, last: np.ndarray) -> np.ndarray:
        # The outermost cells have finite numbers like all others, but reach to the ends of the support: they are
        # enclosed by themselves.
        lowest, highest = (end[self._hyper] for end in self._whole)
        inner_first = np.where((first == lowest) & (last > lowest), first + 1, first)
        inner_last = np.where((last == highest) & (inner_first < last), last - 1, last)
        low, high = self._prior.enclose(self._all(inner_first, self._whole[0]), self._all(inner_last, self._whole[1]))
        for moved, number in zip((inner_first > first, inner_last < last), self._outermost, strict=True):
            places = np.zeros(low.shape, dtype=bool)
            places[:, self._hyper] = moved
            low, high = np.where(places, np.minimum(low, number), low), np.where(places, np.maximum(high, number), high)
        single = (first == last).all(axis=1)
        if single.any():  # `enclose` knows a box of one cell only where all hyperparameters have one
            low[single] = high[single] = self.values(first[single])
        return self._component.log_bounds(low, high)

    # Acceptance

    def _accept(self, cells: np.ndarray, bounds: np.ndarray, bits: RandomBits) -> np.ndarray:
        """Accept each cell with probability prod Z / E, E the double that stands for exp(bound)."""
        words, values = bits.words(len(cells)), self.values(cells)
        taken = np.zeros(len(cells), dtype=bool)
        # A point is a box, too: where U E is at or above its bound the constant need not be known.
        heads = (words >> np.uint64(DISCARDED_BITS)).astype(np.float64)
        highest = np.exp(np.minimum(self._component.log_bounds(values, values) - bounds, 0.0) + UNDECIDED)
        for i in np.flatnonzero(heads * ROUNDOFF < highest):
            word = int(words[i])
            head = word >> DISCARDED_BITS
            log_ratio = self._component.log_constant(values[i]) - bounds[i]
            if log_ratio > UNDECIDED:
                raise ValueError("A constant exceeds its box bound, so there is no exact draw: the bound is wrong.")
            if (head + 1) * ROUNDOFF <= math.exp(log_ratio - UNDECIDED):
                taken[i] = True
            elif head * ROUNDOFF < math.exp(log_ratio + UNDECIDED):
                taken[i] = self._accept_exactly(values[i], bounds[i], word, bits)
        return taken

    def _accept_exactly(self, values: np.ndarray, bound: float, uniform: int, bits: RandomBits) -> bool:
        """Go on with the 64 bits `uniform` of U in integers: whether U E < prod Z."""
        significands, exponents = scaled_exponentials(np.ones(1), np.zeros(1, dtype=np.int64), np.array([bound]))
        envelope = Interval.of_double(float(significands[0]), int(exponents[0]))
        length, precision = WORD_BITS, FIRST_PRECISION
        while True:
            product = self._component.constant(values, precision)
            unit = min(product.exponent, envelope.exponent - length)
            low, high = product.ends(unit)
            (whole, _) = Interval(envelope.low, envelope.low, envelope.exponent - length).ends(unit)
            if (uniform + 1) * whole <= low:
                return True
            if uniform * whole >= high:
                return False
            uniform, length = uniform << WORD_BITS | int(bits.words(1)[0]), length + WORD_BITS
            precision = max(precision, 2 * length)

    # Splitting

    def _split(self, index: np.ndarray) -> None:
        """Split boxes along the hyperparameter that lowers the envelope most; boxes of one cell stay."""
        leaves, cuts = self._leaves, []
        first, last = leaves.first[index], leaves.last[index]
        for axis in range(len(self._hyper)):
            along = np.zeros(first.shape)
            along[:, axis] = 1.0
            axes, cells = split_boxes(first, last, np.zeros_like(along), along, along[0], leaves.floors)
            rows = np.flatnonzero(axes == axis)
            cuts.append((rows, np.full(len(rows), axis), cells[rows]))
        rows, axes, cells = (np.concatenate(parts) for parts in zip(*cuts, strict=True))
        if not len(rows):
            return
        left_last, right_first = last[rows].copy(), first[rows].copy()
        every = np.arange(len(rows))
        left_last[every, axes], right_first[every, axes] = cells, cells + 1
        upper = self._bounds(np.concatenate([first[rows], right_first]), np.concatenate([left_last, last[rows]]))
        # A part is bounded by the whole, too.
        left, right = np.minimum(upper.reshape(2, -1), leaves.bounds[index][rows])
        weights = np.logaddexp(
            self._log_mass(first[rows], left_last) + left, self._log_mass(right_first, last[rows]) + right
        )
        order = np.lexsort((weights, rows))
        best = order[np.concatenate([[True], np.diff(rows[order]) > 0])]  # the cut of least weight of each box
        leaves.replace(index[rows[best]], first[rows[best]], left_last[best], left[best])
        leaves.add(right_first[best], last[rows[best]], right[best])

    def _log_mass(self, first: np.ndarray, last: np.ndarray) -> np.ndarray:
        significands, exponents = box_significands(first, last, self._leaves.floors)
        return np.log(significands) + exponents * LN2
