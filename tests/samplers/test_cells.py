"""Drawing cells: the same cell as exact arithmetic for the same bits, near every boundary, and shares by prior mass."""

from fractions import Fraction

import exact_grid
import numpy as np
import pytest
from scipy import stats
from scripted import ScriptedBits, cell_of, word_near

from pymc_dpdepth.grid import cell_count, edge_integer
from pymc_dpdepth.randomness import SeededBits
from pymc_dpdepth.samplers.cells import draw_cells, draw_prior_cells

FLOORS = (exact_grid.NO_END, exact_grid.FINITE_END)
LEVEL = 1e-7  # of one test; about ten of them make a family


def draw(first, last, floors, bits, draws=1):
    runs = [np.full((draws, 1), end, dtype=np.int64) for end in (first, last)]
    return draw_cells(*runs, np.array([floors], dtype=np.int64), bits)[:, 0]


def random_runs(seed, count):
    """Yield runs of positive mass: over all binades, around the median, around the floors, single cells."""
    generator = np.random.default_rng(seed)
    for first, last in np.sort(exact_grid.random_keys(generator, 2 * count, FLOORS[0]).reshape(-1, 2), axis=1).tolist():
        for run in ((first, last), (first, first), (first, first + 3), (0, last), (first, exact_grid.LAST)):
            a, b = run[0], min(run[1], exact_grid.LAST)
            if exact_grid.mass(a, b, *FLOORS) > 0:
                yield a, b


def test_masses_are_whole_numbers_of_the_smallest_unit():
    for first, last in random_runs(1, 60):
        assert Fraction(cell_count(first, last, *FLOORS), 2**1020) == exact_grid.mass(first, last, *FLOORS)
    assert cell_count(0, exact_grid.LAST, *FLOORS) == 2**1020
    assert edge_integer(2.0**-980) == 2**40 and edge_integer(0.0) == 0


def test_the_cell_is_that_of_exact_arithmetic():
    generator = np.random.default_rng(2)
    went_on = 0
    for case, (first, last) in enumerate(random_runs(3, 60)):
        total = exact_grid.mass(first, last, *FLOORS)
        edges = {Fraction(0), Fraction(1)}
        for key in (first, last, exact_grid.FIRST_UPPER, *generator.integers(first, last + 1, size=3).tolist()):
            # Where the order of the numbers meets a cell's end: the lower stretch, then the upper from its far end.
            if first <= key <= last and key < exact_grid.FIRST_UPPER:
                edges.add(exact_grid.mass(first, key, *FLOORS) / total)
            elif first <= key <= last:
                below = exact_grid.mass(first, exact_grid.FIRST_UPPER - 1, *FLOORS) if first < key else 0
                edges.add((max(below, 0) + exact_grid.mass(key, last, *FLOORS)) / total)
        for edge in edges:
            for offset in (-3000, -1, 0, 1, 3000):
                bits = ScriptedBits([word_near(edge, offset)], seed=case)
                (cell,) = draw(first, last, FLOORS, bits)
                assert max(first, FLOORS[0]) <= cell <= min(last, exact_grid.LAST - FLOORS[1])
                low = bits.uniform()
                high = low + Fraction(1, 2 ** (64 * len(bits.given))) * (1 - Fraction(1, 2**64))
                assert cell_of(low, first, last, FLOORS) == cell == cell_of(high, first, last, FLOORS)
                went_on += bits.asked > 1
    assert went_on > 100


def test_a_run_of_one_cell_needs_no_more_bits():
    for key in exact_grid.random_keys(np.random.default_rng(6), 100, FLOORS[0]):
        key = int(min(max(key, FLOORS[0]), exact_grid.LAST - FLOORS[0]))
        bits = ScriptedBits([0, 2**64 - 1, 2**63, 12_345])
        assert (draw(key, key, (FLOORS[0], FLOORS[0]), bits, draws=4) == key).all()


@pytest.mark.parametrize("floor", FLOORS)
def test_both_far_tails_can_be_reached(floor):
    # The whole line: U below 1/2 is the lower tail, U from 1/2 on the upper one, each from its far end.
    for words, upper in (([0] * 16, False), ([2**63, *[0] * 16], True)):
        (cell,) = draw(0, exact_grid.LAST, (floor, floor), ScriptedBits(words))
        assert cell == (exact_grid.LAST - floor if upper else floor)


def test_a_far_cell_comes_with_its_mass():
    # The cell of the tail 2^-300 has the numbers U from 2^-300 to 2^-300 (1 + 2^-40).
    key = (exact_grid.BIAS - 300) << exact_grid.CELL_BITS
    words = [0] * 4 + [2 ** (320 - 300)]
    assert draw(0, exact_grid.LAST, FLOORS, ScriptedBits([*words, 0])).tolist() == [key]
    assert draw(0, exact_grid.LAST, FLOORS, ScriptedBits([*words[:4], words[4] - 1, 2**64 - 1])).tolist() == [key - 1]


def chi_square(observed, probabilities):
    """Return the p-value of counts, with bins of fewer than 5 expected put together."""
    expected = probabilities * observed.sum()
    small = expected < 5
    if small.any():
        observed = np.append(observed[~small], observed[small].sum())
        expected = np.append(expected[~small], expected[small].sum())
    if expected[-1] < 1:
        assert observed[-1] <= 10  # Poisson(1): more than 10 has probability 1e-8
        observed, expected = observed[:-1], expected[:-1]
    statistic = ((observed - expected) ** 2 / expected).sum()
    return stats.chi2.sf(statistic, len(expected) - 1)


@pytest.mark.parametrize(
    ("first", "last"),
    [
        (exact_grid.FIRST_UPPER - 3, exact_grid.FIRST_UPPER + 4),
        (((BINADE := exact_grid.BIAS - 30) << 40) - 4, (BINADE << 40) + 3),  # a change of binade: masses 1 and 2
        (exact_grid.LAST - (BINADE << 40) - 2, exact_grid.LAST - (BINADE << 40) + 4),
    ],
)
def test_cells_are_drawn_by_their_mass(first, last):
    keys = draw(first, last, FLOORS, SeededBits(7), draws=20_000)
    masses = [exact_grid.mass(key, key, *FLOORS) for key in range(first, last + 1)]
    shares = np.array([float(m / sum(masses)) for m in masses])
    assert chi_square(np.bincount(keys - first, minlength=last - first + 1), shares) > LEVEL


@pytest.mark.parametrize("seed", range(3))
def test_binades_are_drawn_by_their_mass(seed):
    low, high = -(2 + seed), 5 - seed  # the run [2^low, 1 - 2^-high)
    first = (exact_grid.BIAS + low) << 40
    last = exact_grid.LAST - ((exact_grid.BIAS - high) << 40)
    keys = draw(first, last, FLOORS, SeededBits(seed), draws=50_000)
    edges = [(exact_grid.BIAS + e) << 40 for e in range(low, 0)]
    edges += [exact_grid.LAST - ((exact_grid.BIAS - e) << 40) + 1 for e in range(2, high + 1)]
    masses = [exact_grid.mass(a, b - 1, *FLOORS) for a, b in zip(edges[:-1], edges[1:], strict=True)]
    assert edges[-1] == last + 1
    shares = np.array([float(m / sum(masses)) for m in masses])
    counts = np.histogram(keys, bins=np.array(edges))[0]
    assert counts.sum() == 50_000
    assert chi_square(counts, shares) > LEVEL
    assert chi_square(counts, np.roll(shares, 1)) < LEVEL


def test_the_prior_is_uniform_in_u():
    floors = np.array([FLOORS, FLOORS[::-1]], dtype=np.int64)
    cells = draw_prior_cells(floors, SeededBits(4), 20_000)
    for j in range(2):
        u = [float(exact_grid.left_end(int(cell), *floors[j])) for cell in cells[:2000, j]]
        assert stats.kstest(u, "uniform").pvalue > LEVEL
