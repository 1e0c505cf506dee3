"""Bits that a test chooses, and the index and the cell that exact arithmetic gives for them: no code of the package."""

from fractions import Fraction

import exact_grid
import numpy as np

from pymc_dpdepth.randomness import RandomBits

WORD = 2**64


class ScriptedBits(RandomBits):
    """Give the words in order, then words of a seeded generator; count what was asked for."""

    simulation = True

    def __init__(self, words, seed=0):
        self.script = list(words)
        self.asked = 0
        self.given = []
        self._generator = np.random.default_rng(seed)

    def words(self, count):
        words = [
            self.script.pop(0) if self.script else int(self._generator.integers(0, WORD, dtype=np.uint64))
            for _ in range(count)
        ]
        self.asked += count
        self.given += words
        return np.array(words, dtype=np.uint64)

    def uniform(self):
        """Return the number in [0, 1) whose first bits are all words given so far; later bits are zero."""
        return sum((Fraction(word, WORD ** (i + 1)) for i, word in enumerate(self.given)), Fraction(0))


def word_near(share, offset):
    """Return the 64-bit word whose number is next to a share in [0, 1], moved by `offset`."""
    return min(max(int(share * WORD) + offset, 0), WORD - 1)


def index_of(uniform, weights):
    """Return the first i with uniform * total < the sum of weights 0..i, all fractions."""
    total, running = sum(weights), Fraction(0)
    for i, weight in enumerate(weights):
        running += weight
        if uniform * total < running:
            return i
    raise AssertionError("uniform >= 1")


def cell_of(uniform, first, last, floors):
    """Return the cell of a run that a uniform names: lower stretch first, then the upper one from its far end."""
    below = (
        exact_grid.mass(first, min(last, exact_grid.FIRST_UPPER - 1), *floors) if first < exact_grid.FIRST_UPPER else 0
    )
    above = exact_grid.mass(max(first, exact_grid.FIRST_UPPER), last, *floors) if last >= exact_grid.FIRST_UPPER else 0
    place = uniform * (below + above)
    if place < below:
        return tail_cell(exact_grid.tail_edge(first, floors[0]) + place, floors[0])
    place += exact_grid.tail_edge(exact_grid.LAST - last, floors[1]) - below
    return exact_grid.LAST - tail_cell(place, floors[1])


def tail_cell(v, floor):
    """Return the largest lower-side cell whose left end is at most v, by bisection; never one beyond the floor."""
    low, high = floor, exact_grid.FIRST_UPPER
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if exact_grid.tail_edge(middle, floor) <= v else (low, middle)
    return low
