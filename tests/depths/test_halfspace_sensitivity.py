"""The sensitivity 1/n of halfspace depth over all directions: attacks, and the same attacks on a bound too small."""

import itertools
from fractions import Fraction

import attacks
import numpy as np
import pymc as pm
import pytest
from brute_force_halfspace import count_in_plane, count_in_space
from pytensor.compile.mode import Mode

import pymc_dpdepth as dpd
from pymc_dpdepth.depths import Halfspace

ALL = Halfspace(directions=None)
TOO_SMALL = Fraction(105, 100)


def space():
    """Return the corners and the center of a cube as row values, and points at and between them."""
    values = [*itertools.product((0.0, 2.0), repeat=3), (1.0, 1.0, 1.0)]
    return np.array(values), np.array(list(itertools.product((0.0, 1.0, 2.0), repeat=3)))


SEARCHES = {1: attacks.line, 2: lambda n: attacks.plane(), 3: lambda n: space()}
SIZES = [*((n, 1) for n in range(1, 6)), *((n, 2) for n in range(1, 5)), *((n, 3) for n in range(1, 4))]


@pytest.mark.parametrize(("n", "d"), SIZES)
def test_every_small_table_and_neighbour(n, d):
    worst = attacks.exhaustive(ALL, n, *SEARCHES[d](n))
    assert worst == Fraction(1, n)
    assert not attacks.breaks(worst, Fraction(1, n))
    assert attacks.breaks(worst, Fraction(1, n) / TOO_SMALL)


@pytest.mark.parametrize(("n", "d"), [(1, 2), (2, 2), (7, 2), (30, 2), (1, 3), (4, 3), (12, 3)])
def test_random_search_with_climbing(n, d):
    worst = attacks.adversarial(ALL, n, d, trials=300, seed=n + d)
    assert not attacks.breaks(worst, Fraction(1, n))
    assert attacks.breaks(worst, Fraction(1, n) / TOO_SMALL)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("n", [1, 2, 9, 50])
def test_the_bound_is_reached_by_a_row_that_moves_to_the_point(n, d):
    rows = np.full((n, d), -1.0)
    moved = rows.copy()
    moved[n // 2] = 0.0
    before, after = (ALL.evaluate(np.zeros((1, d)), table)[0] for table in (rows, moved))
    assert before == 0.0
    assert after == 1 / n == ALL.sensitivity(n, d)


def model_of(rows):
    d = rows.shape[1]
    with pm.Model() as model:
        location = pm.Normal("location", [1.0, -2.0, 0.0][:d], [3.0, 0.5, 1.0][:d], shape=d)
        potential = dpd.exponential_mechanism("median", location, rows, depth=ALL, epsilon=2.0)
    return model, potential


# The compiled graph is the same for both dimensions: the kernel branches. `perform` from Python saves its compilation.
@pytest.mark.parametrize(
    ("d", "count", "mode"), [(2, count_in_plane, None), (3, count_in_space, Mode(linker="py"))], ids=["plane", "space"]
)
def test_the_potential_of_a_model(d, count, mode):
    whole = np.random.default_rng(1).integers(-3, 4, size=(20, d))
    model, potential = model_of(whole.astype(float))
    value = model.compile_logp(vars=[potential], mode=mode)
    beta = 2.0 / (2 * (1 / 20))
    for point in ([0, 0, 0], [1, -1, 0], [-2, 0, 1], [9, 9, 9], whole[0].tolist()):
        point = np.array(point[:d])
        assert value({"location": point.astype(float)}) == pytest.approx(beta * count(point, whole) / 20, rel=1e-15)


def test_a_model_is_drawn_by_branch_and_bound():
    model, _ = model_of(np.random.default_rng(2).standard_normal((10, 2)))
    assert dpd.release(model).sampler == "branch_and_bound"
