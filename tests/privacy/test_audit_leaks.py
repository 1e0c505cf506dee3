"""Leaks that the size of a number does not show: low bits, digits, signs, infinities, big integers, other fields."""

import dataclasses

import numpy as np
import pytest
import xarray as xr
from audits import attack

import pymc_dpdepth as dpd
from pymc_dpdepth.privacy.audit_outputs import _array, _columns
from pymc_dpdepth.privacy.audit_scores import _decimal, _low_bits, _off_grids

X, NEIGHBOUR = np.array([[0.0], [3.0]]), np.array([[1.0], [3.0]])
TRIALS = 4000
# Of 2000 held-out draws of which none, or all, lie in an event: log(limit / (1 - limit)), limit = (1e-8 / 4)^(1/2000).
SHOWN = 4.5


def leak(make, seed=1):
    """Return the mechanism make(generator, draws, bit): the bit is a row's, and nothing may depend on it."""
    generator = np.random.default_rng(seed)
    return lambda table, draws: make(generator, draws, int(np.asarray(table)[0, 0]))


def shifted_decimals(generator, draws, bit):
    return np.round(generator.normal(size=draws), 3) + 1e-9 * (bit + 3) / 2


def shifted_grid(generator, draws, bit):
    return np.round(generator.normal(size=draws) * 2**20) / 2**20 + 1e-9 * (bit + 3) / 2


def parity_of_the_last_digit(generator, draws, bit):
    return np.round(2 * generator.integers(10_000, size=draws) + bit) / 1000


def parity_of_an_integer(generator, draws, bit):
    return 2 * generator.integers(10_000, size=draws) + bit


def last_bit_of_the_significand(generator, draws, bit):
    return (generator.normal(size=draws).view(np.int64) & -2 | bit).view(np.float64)


def short_or_long_decimals(generator, draws, bit):
    return np.round(generator.normal(size=draws), 3 + 3 * bit)


def beyond_2_to_53(generator, draws, bit):
    return np.full(draws, 2**53 + bit)


def unsigned_beyond_2_to_63(generator, draws, bit):
    return np.full(draws, 2**63 + bit, dtype=np.uint64)


def infinite_or_huge(generator, draws, bit):
    return np.full(draws, np.inf if bit else np.finfo(float).max)


def huge_or_huger(generator, draws, bit):
    return np.full(draws, -1.7e308 if bit else -1.6e308)


def sign_of_zero(generator, draws, bit):
    return np.full(draws, -0.0 if bit else 0.0)


def payload_of_nan(generator, draws, bit):
    return np.full(draws, np.nan).view(np.int64).__or__(bit).view(np.float64)


LEAKS = [
    shifted_decimals, shifted_grid, parity_of_the_last_digit, parity_of_an_integer, last_bit_of_the_significand,
    short_or_long_decimals, beyond_2_to_53, unsigned_beyond_2_to_63, infinite_or_huge, huge_or_huger, sign_of_zero,
    payload_of_nan,
]  # fmt: skip


@pytest.mark.parametrize("make", LEAKS, ids=lambda make: make.__name__)
def test_what_the_size_of_a_number_does_not_show_is_an_event(make):
    assert attack(leak(make), X, NEIGHBOUR, TRIALS).epsilon_lower_bound > SHOWN
    # The same output for both tables is no leak.
    assert attack(leak(lambda *args: make(*args[:2], 0)), X, NEIGHBOUR, TRIALS).epsilon_lower_bound == 0.0


def test_integers_one_at_a_time_are_read_whole():
    for make in (lambda bit: 2**53 + bit, lambda bit: [0.5, 2**60 + bit], lambda bit: np.int64(2**53 + bit)):
        found = attack(lambda table, make=make: make(int(table[0, 0])), X, NEIGHBOUR, 400)
        assert found.epsilon_lower_bound > 2 and "what no double holds" in found.event


@pytest.fixture(scope="module")
def release():
    return dpd.private_median(np.zeros((4, 2)), epsilon=1.0, prior="normal(0, 1)")


def set_epsilon(made, bit):
    (mechanism,) = made.mechanisms
    return dataclasses.replace(made, mechanisms=({**mechanism, "realised_epsilon": 0.5 + bit / 4},))


def set_version(made, bit):
    return dataclasses.replace(made, package_version=f"1.0.{bit}")


def set_labels(made, bit):
    value = made.value.assign_coords(coordinate=["a", f"b{bit}"])
    return dataclasses.replace(made, locations={"median": value})


def set_another_variable(made, bit):
    other = {"other": xr.DataArray(2.0)} if bit else {}
    return dataclasses.replace(made, parameters=made.parameters.assign(other))


@pytest.mark.parametrize("change", [set_epsilon, set_version, set_labels, set_another_variable])
def test_every_field_of_a_release_is_attacked(release, change):
    def mechanism(table):
        return change(release, int(table[0, 0]))

    assert attack(mechanism, X, NEIGHBOUR, 400).epsilon_lower_bound > 2
    assert attack(lambda table: change(release, 1), X, NEIGHBOUR, 400).epsilon_lower_bound == 0.0


def test_the_event_names_the_field(release):
    found = attack(lambda table: set_epsilon(release, int(table[0, 0])), X, NEIGHBOUR, 400)
    assert "mechanisms[0].realised_epsilon" in found.event


def test_arrays_are_read_to_the_last_bit():
    values = [2**53 + 1, -(2**63), 2**64 - 1, 3, 0.1, True]
    columns = _columns(_array(values)[:, None])
    assert [int(a) + int(b) for a, b in columns[:4]] == values[:4]
    assert columns[4:].tolist() == [[0.1, 0.0], [1.0, 0.0]]
    assert _array(xr.DataArray([1.0, 2.0])).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0, ("0", 0)), (-1200.0, ("12", -2)), (0.05, ("5", 2)), (1.25, ("125", 2)), (1e-7, ("1", 7)),
        (1.5e300, ("15", -299)), (np.nan, ("", 0)), (-np.inf, ("", 0)), (5e-324, ("5", 324)),
    ],
)  # fmt: skip
def test_digits(value, expected):
    assert _decimal(float(value)) == expected


def test_bits_and_grids_by_hand():
    outputs = np.array([[1.0 + 2.0**-52], [1.5], [1.0], [-3.0]])
    *low, zeros = _low_bits(outputs, 0)
    assert [part.tolist() for part in low] == [[1, 0, 0, 0]] * len(low)
    assert zeros.tolist() == [0, 51, 52, 51]
    off = _off_grids(np.array([[3.25], [-3.25], [2.75], [np.inf]]), 0)
    assert off[0].tolist() == [0.25, -0.25, -0.25, 0.0] and not np.any(off[4:])
