"""The grid against rational arithmetic, and the normal kernel against accurate tails."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import exact_grid
import numpy as np
import pytest
from scipy import special

from pymc_dpdepth import grid
from pymc_dpdepth.decimals import shortest_decimal

FLOORS = [exact_grid.FINITE_END, exact_grid.NO_END]
ULP = 2.0**-53  # half the spacing of doubles at 1: one rounding
CELL = 2.0**-40  # widest relative width of a cell; the narrowest is half of it


def test_the_grid_has_the_constants_of_its_definition():
    assert grid.FIRST_UPPER_KEY == exact_grid.FIRST_UPPER
    assert grid.LAST_KEY == exact_grid.LAST
    assert (grid.FLOOR_KEY, grid.TAIL_FLOOR_KEY) == tuple(FLOORS)


# Masses


def across(first, last):
    return first < exact_grid.FIRST_UPPER <= last


@pytest.mark.parametrize("low_floor", FLOORS)
@pytest.mark.parametrize("high_floor", FLOORS)
def test_masses_are_right_to_one_rounding_on_one_side_and_two_across(low_floor, high_floor):
    generator = np.random.default_rng(1)
    pairs = np.sort(exact_grid.random_keys(generator, 2000, low_floor).reshape(-1, 2), axis=1)
    met = set()
    for first, last in pairs:
        exact = exact_grid.mass(int(first), int(last), low_floor, high_floor)
        computed = Fraction(grid.mass(first, last, low_floor, high_floor))
        # One side: the tails are doubles and their difference is one rounding. Across: each half-line's share is one
        # rounding, their sum another; all terms are positive, so relative errors add up to two.
        roundings = 2 if across(first, last) else 1
        assert abs(computed - exact) <= Fraction(roundings * ULP) * exact * (1 + Fraction(1, 2**50))
        met.add((first < exact_grid.FIRST_UPPER, last < exact_grid.FIRST_UPPER, exact == 0))
    assert {(True, True, False), (True, False, False), (False, False, False)} <= met


@pytest.mark.parametrize("low_floor", FLOORS)
@pytest.mark.parametrize("high_floor", FLOORS)
def test_the_total_mass_is_one_and_cells_beyond_a_floor_have_none(low_floor, high_floor):
    assert grid.mass(0, grid.LAST_KEY, low_floor, high_floor) == 1.0
    assert grid.mass(0, grid.FIRST_UPPER_KEY - 1, low_floor, high_floor) == 0.5
    assert grid.mass(grid.FIRST_UPPER_KEY, grid.LAST_KEY, low_floor, high_floor) == 0.5
    assert grid.mass(0, low_floor - 1, low_floor, high_floor) == 0.0
    assert grid.mass(grid.LAST_KEY - high_floor + 1, grid.LAST_KEY, low_floor, high_floor) == 0.0
    assert grid.mass(low_floor, low_floor, low_floor, high_floor) > 0.0
    highest = grid.LAST_KEY - high_floor
    assert grid.mass(highest, highest, low_floor, high_floor) > 0.0


def test_no_cell_at_or_inside_a_floor_has_a_subnormal_mass():
    for floor in FLOORS:
        for key in (floor, floor + 1, grid.LAST_KEY - floor, grid.LAST_KEY - floor - 1):
            assert grid.mass(key, key, floor, floor) >= np.finfo(float).tiny


def test_adjacent_runs_add_up():
    generator = np.random.default_rng(2)
    for low, middle, high in np.sort(exact_grid.random_keys(generator, 900, FLOORS[0]).reshape(-1, 3), axis=1):
        parts = grid.mass(low, middle, *FLOORS) + grid.mass(middle + 1, high, *FLOORS) if middle < high else None
        if parts is not None:
            # Two parts of two roundings each, one rounding of their sum, against two of the whole: 5 ulps.
            assert parts == pytest.approx(grid.mass(low, high, *FLOORS), rel=5 * ULP, abs=0.0)


# Tails and keys


def test_tail_edges_are_the_ends_of_the_cell():
    generator = np.random.default_rng(3)
    keys = exact_grid.random_keys(generator, 500, FLOORS[0])
    upper, near, far = grid.tail_edges(keys, FLOORS[0], FLOORS[1])
    for key, is_upper, low, high in zip(keys.tolist(), upper, near, far, strict=True):
        assert is_upper == (key >= exact_grid.FIRST_UPPER)
        folded, floor = (exact_grid.LAST - key, FLOORS[1]) if is_upper else (key, FLOORS[0])
        assert Fraction(low) == exact_grid.tail_edge(folded, floor)
        assert Fraction(high) == exact_grid.tail_edge(folded + 1, -1)


def test_tail_keys_hold_their_tail_and_are_clamped_to_the_floors():
    generator = np.random.default_rng(4)
    v = np.exp2(-generator.uniform(1.001, 60, size=300))
    lower = grid.tail_keys(v, 1.0 - v, FLOORS[0], FLOORS[1])
    upper = grid.tail_keys(1.0 - v, v, FLOORS[0], FLOORS[1])
    for tail, low, high in zip(v.tolist(), lower.tolist(), upper.tolist(), strict=True):
        assert low == max(exact_grid.key_of_tail(tail), FLOORS[0])
        assert high == exact_grid.LAST - max(exact_grid.key_of_tail(tail), FLOORS[1])


@pytest.mark.parametrize(
    ("lower", "upper", "key"),
    [
        (0.0, 1.0, FLOORS[0]),
        (-0.0, 1.0, FLOORS[0]),
        (-1e-20, 1.0, FLOORS[0]),
        (1.0, 0.0, exact_grid.LAST - FLOORS[0]),
        (0.5, 0.5, exact_grid.FIRST_UPPER),
        (np.nextafter(0.5, 0.0), 0.5, exact_grid.FIRST_UPPER - 1),
        (0.6, 0.6, exact_grid.FIRST_UPPER),  # tails that do not add up still give a key
        (np.nan, np.nan, exact_grid.FIRST_UPPER),
    ],
)
def test_tail_keys_of_edge_cases(lower, upper, key):
    (computed,) = grid.tail_keys(np.array([lower]), np.array([upper]), FLOORS[0], FLOORS[0])
    assert computed == key


# The normal kernel


def normal_keys(x, mu=0.0, sigma=1.0):
    rows = np.asarray(x, dtype=float).reshape(-1, 1)
    keys = np.empty((1, len(rows)), dtype=np.int64)
    grid.normal_keys(rows, np.array([mu]), np.array([sigma]), keys)
    return keys[0]


def accurate_normal_tail(z):
    """Return Q(z) = erfcx(z / sqrt 2) / 2 * exp(-z^2 / 2), the exponential in decimals.

    erfcx is right to a few ulps; rounding z / sqrt 2 moves it by less than one more.
    """
    with localcontext() as context:
        context.prec = 40
        return Decimal(float(special.erfcx(z / math.sqrt(2.0)))) / 2 * (-(Decimal(z) ** 2) / 2).exp()


def test_normal_keys_are_within_a_cell_of_accurate_tails():
    z = np.concatenate([np.linspace(1e-9, 36.49, 1500), np.exp2(-np.linspace(3, 30, 60)), [36.5]])
    upper, lower = normal_keys(z), normal_keys(-z)
    assert (upper + lower == exact_grid.LAST).all()
    worst = 0.0
    for value, key in zip(z.tolist(), lower.tolist(), strict=True):
        tail = accurate_normal_tail(value)
        low, high = (exact_grid.tail_edge(key + step, -1) for step in (0, 1))
        width = float(high - low)
        distance = max(float(low - Fraction(tail)), float(Fraction(tail) - high), 0.0)
        worst = max(worst, distance / width)
    # The kernel's relative error is at most 1.7e-13 at 36.5 sds (z^2/2 = 666 is rounded to 6e-14 and so is the
    # reduced exponent; elsewhere the interpolant's 1e-13 dominates), the narrowest cell 4.5e-13: less than half a cell.
    assert worst < 0.5


def test_normal_keys_agree_with_ndtr_on_one_scale_and_another():
    generator = np.random.default_rng(8)
    for mu, sigma in ((0.0, 1.0), (1e6, 3e-3), (-7e-9, 1e-12), (12.0, 1e150)):
        x = mu + sigma * generator.uniform(-36, 36, size=400)
        z = (x - mu) / sigma
        computed = normal_keys(x, mu, sigma)
        folded = np.where(computed < exact_grid.FIRST_UPPER, computed, exact_grid.LAST - computed)
        reference = np.array([exact_grid.key_of_tail(v) for v in special.ndtr(-np.abs(z)).tolist()])
        assert np.abs(folded - reference).max() <= 1
        assert ((computed < exact_grid.FIRST_UPPER) == (z < 0)).all()


def test_normal_keys_never_decrease_by_more_than_rounding():
    z = np.sort(np.random.default_rng(9).uniform(-38, 38, size=200_000))
    # Neighbours are 4e-4 apart, which is at least 4e-4 |z| Q or 4e-4 phi(0) in the tail: 1e8 cells. Rounding moves a
    # key by less than one.
    keys = normal_keys(z)
    inside = np.abs(z) < 36.5
    assert (np.diff(keys[inside]) >= 0).all()
    assert (np.diff(keys) >= 0).all()


def test_rows_beyond_the_last_standard_deviations_share_a_cell_and_the_median_is_the_first_upper_one():
    far = normal_keys([36.5, 37.0, 40.0, 1e5, 1e300, np.finfo(float).max])
    assert (far == far[0]).all() and far[0] < exact_grid.LAST - exact_grid.NO_END
    assert (normal_keys([-36.5, -1e300]) == exact_grid.LAST - far[0]).all()
    assert normal_keys([0.0, -0.0, 5e-324]).tolist() == [exact_grid.FIRST_UPPER] * 3
    assert normal_keys([-5e-324, -1e-20]).tolist() == [exact_grid.FIRST_UPPER - 1] * 2
    assert (normal_keys([-1.7e308, 1.7e308], mu=1.7e308, sigma=1e-3)[0] == exact_grid.LAST - far[0]).all()


def test_a_normal_key_depends_on_its_row_alone():
    generator = np.random.default_rng(10)
    n, d = 1311, 3
    rows = generator.normal(size=(n, d)) * np.exp2(generator.uniform(-40, 5.2, size=(n, d)))
    mu, sigma = np.array([0.0, 0.1, -3.0]), np.array([1.0, 1.3, 0.7])

    def keys_of(table):
        keys = np.empty((d, len(table)), dtype=np.int64)
        grid.normal_keys(table, mu, sigma, keys)
        return keys

    keys = keys_of(rows)
    order = generator.permutation(n)
    assert np.array_equal(keys_of(rows[order]), keys[:, order])
    assert np.array_equal(keys_of(np.asfortranarray(rows)), keys)
    assert np.array_equal(keys_of(rows[::-1]), keys[:, ::-1])
    assert np.array_equal(keys_of(np.repeat(rows, 2, axis=1)[:, ::2]), keys)
    for start, stop in ((0, 1), (5, 12), (500, 513), (511, 1026), (1310, 1311)):
        assert np.array_equal(keys_of(rows[start:stop]), keys[:, start:stop])
    longer = np.concatenate([generator.normal(size=(7, d)) * 1e200, rows, [[0.0] * d]])
    assert np.array_equal(keys_of(longer)[:, 7:-1], keys)


# Decimals


def fewest_digits(low, high):
    """Return the fewest significant digits of a decimal in [low, high], 0 < low <= high, in rational arithmetic."""
    low, high = Fraction(low), Fraction(high)
    top = math.floor(math.log10(high)) + 1
    for digits in range(1, 18):
        for magnitude in (top - 1, top, top + 1):  # the logarithm may round across a power of ten
            step = Fraction(10) ** (magnitude - digits)
            multiple = math.floor(high / step)
            if multiple * step >= low and multiple <= 10**digits:
                return digits
    return 18


def significant_digits(x):
    return len(Decimal(repr(x)).normalize().as_tuple().digits)


def test_shortest_decimals_are_inside_and_shortest():
    generator = np.random.default_rng(11)
    middle = np.exp2(generator.uniform(-60, 60, size=3000))
    width = middle * np.exp2(-generator.uniform(1, 50, size=3000))
    low, high = middle - width, middle + width
    for sign in (1.0, -1.0):
        ends = (low, high) if sign > 0 else (-high, -low)
        decimal = shortest_decimal(*ends)
        assert ((decimal >= ends[0]) & (decimal <= ends[1])).all()
        for value, a, b in zip(np.abs(decimal).tolist(), low.tolist(), high.tolist(), strict=True):
            # Beyond 15 digits a decimal and its double differ by as much as the ends do; no fewer are promised there.
            fewest = fewest_digits(a, b)
            assert significant_digits(value) <= fewest or fewest > 15


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (-1e-9, 1e-9, 0.0),
        (0.0, 1e-300, 0.0),
        (-1e-300, 0.0, 0.0),
        (64999.99999, 65000.00001, 65000.0),
        (-65000.00001, -64999.99999, -65000.0),
        (0.0999999, 0.1000001, 0.1),
        (9.4, 11.0, 10.0),
        (-np.inf, -3.25, -3.25),
        (7.125, np.inf, 7.125),
        (0.1, 0.1, 0.1),
        (1e300, 1.00001e300, 1e300),
        (1.5e-320, 1.5e-320, 1.5e-320),
        (1.2345678901234567, 1.2345678901234567, 1.2345678901234567),
        (1.1e-25 * (1 - 1e-12), 1.1e-25 * (1 + 1e-12), 1.1e-25),  # 11 / 10^26 in doubles is another number
        (7.3e-290 * (1 - 1e-12), 7.3e-290 * (1 + 1e-12), 7.3e-290),
        (8.90576756007874e-09, 8.90576756007876e-09, 8.90576756007875e-09),
        (3.17e45 * (1 - 1e-12), 3.17e45 * (1 + 1e-12), 3.17e45),
    ],
)
def test_shortest_decimals_of_edge_cases(low, high, expected):
    (value,) = shortest_decimal(np.array([low]), np.array([high]))
    assert value == expected


def test_a_decimal_depends_on_its_own_interval_alone():
    generator = np.random.default_rng(12)
    middle = generator.normal(size=(40, 5)) * np.exp2(generator.uniform(-30, 30, size=(40, 5)))
    width = np.abs(middle) * np.exp2(-generator.uniform(1, 52, size=(40, 5)))
    together = shortest_decimal(middle - width, middle + width)
    alone = [
        shortest_decimal(np.array([[m - w]]), np.array([[m + w]]))[0, 0]
        for m, w in zip(middle.ravel(), width.ravel(), strict=True)
    ]
    assert together.ravel().tolist() == alone


def test_a_subnormal_sigma_gives_keys_on_the_grid():
    rows = np.array([[0.0], [1e-310], [-1e-310], [1.0], [-1e308]])
    keys = np.empty((1, 5), dtype=np.int64)
    grid.normal_keys(rows, np.zeros(1), np.array([1e-310]), keys)
    assert (keys >= exact_grid.NO_END).all() and (keys <= exact_grid.LAST - exact_grid.NO_END).all()
    assert keys[0, 0] in (exact_grid.FIRST_UPPER, exact_grid.FIRST_UPPER - 1)
    assert keys[0, 2] < keys[0, 0] < keys[0, 1]
