"""The energy test: p-values that are right whatever the law, differences that it sees, and invariance to units."""

import numpy as np
import pytest
from scipy import stats

from pymc_dpdepth.diagnostics.energy_test import energy_test

LAWS = {
    "normal": lambda g, m: g.normal(size=(m, 2)),
    "cauchy": lambda g, m: g.standard_cauchy(size=(m, 2)) * [1.0, 1e6],
    "atoms": lambda g, m: g.integers(3, size=(m, 2)).astype(float),
}
REPETITIONS, PERMUTATIONS = 200, 99


@pytest.mark.parametrize("law", LAWS)
def test_p_values_of_one_law_are_not_too_small(law):
    """P(p <= a) <= a: the number of p <= a is binomial at most; each of the 3 checks of 3 laws fails once in 1e7."""
    generator = np.random.default_rng(3)
    draw = LAWS[law]
    p_values = np.array(
        [energy_test(draw(generator, 30), draw(generator, 50), PERMUTATIONS, generator)[1] for _ in range(REPETITIONS)]
    )
    for level in (0.02, 0.1, 0.5):
        assert (p_values <= level).sum() <= stats.binom.isf(1e-7, REPETITIONS, level)
    assert p_values.min() < 0.1  # and they do vary


def test_a_shift_a_scale_and_a_correlation_are_seen():
    generator = np.random.default_rng(4)
    first = generator.normal(size=(300, 2))
    plain = generator.normal(size=(300, 2))
    correlated = plain @ np.linalg.cholesky([[1.0, 0.8], [0.8, 1.0]]).T
    for other in (plain + [0.0, 0.5], plain * 2.0, correlated):
        assert energy_test(first, other, 999, generator)[1] == 1 / 1000
    assert energy_test(first, plain, 999, generator)[1] > 0.01


def test_the_distance_runs_from_equal_to_disjoint():
    generator = np.random.default_rng(5)
    first = generator.normal(size=(100, 1))
    assert energy_test(first, first, 9, generator) == pytest.approx((0.0, 1.0), abs=1e-12)
    assert energy_test(first, first + 100.0, 9, generator)[0] > 0.3
    assert energy_test(np.zeros((5, 2)), np.zeros((7, 2)), 9, generator) == (0.0, 1.0)
    # Of one law the mean of T is (1/m + 1/k) E|x - y| and the distance half of that over E|x - y|. It is a sum of
    # squares; 100 means of it spread by less than their mean, so a band of a third is three standard errors and more.
    distances = [
        energy_test(generator.normal(size=(40, 1)), generator.normal(size=(60, 1)), 1, generator)[0] for _ in range(100)
    ]
    assert np.mean(distances) == pytest.approx((1 / 40 + 1 / 60) / 2, rel=1 / 3)


def test_units_do_not_matter():
    first, second = np.random.default_rng(6).normal(size=(2, 40, 2))
    plain = energy_test(first, second, 99, np.random.default_rng(7))
    stretched = energy_test(np.exp(first) * [1.0, 1e5], np.exp(second) * [1.0, 1e5], 99, np.random.default_rng(7))
    assert plain == stretched
