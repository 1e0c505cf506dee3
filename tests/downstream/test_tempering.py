"""Sequential Monte Carlo on a target whose posterior is known."""

import numpy as np
import pytest

from pymc_dpdepth.downstream.tempering import sample

PRIOR = 20.0  # sd of each of two parameters; observations (3, -1) with sd 0.1 and 1
OBSERVED, SD = np.array([3.0, -1.0]), np.array([0.1, 1.0])
PARTICLES = 2000


def log_prior(places):
    return -0.5 * (places**2).sum(axis=1) / PRIOR**2


def log_likelihood(places):
    return -0.5 * (((places - OBSERVED) / SD) ** 2).sum(axis=1)


def rough(places):
    """A stand-in that is off: half a standard deviation to the side, and too wide."""
    return -0.5 * (((places - OBSERVED - 0.5 * SD) / (1.3 * SD)) ** 2).sum(axis=1)


def test_particles_follow_the_estimates_and_not_the_stand_in():
    generator = np.random.default_rng(3)

    def noisy(places):
        """exp(s z - s^2/2) has mean 1: unbiased."""
        return log_likelihood(places) + 0.5 * generator.standard_normal(len(places)) - 0.125

    result = sample(PRIOR * generator.standard_normal((PARTICLES, 2)), log_prior, rough, noisy, generator, PARTICLES)
    shrunk = PRIOR**2 / (PRIOR**2 + SD**2)
    # Errors of a mean and a standard deviation for PARTICLES * share independent draws, five of them.
    few = PARTICLES * result.effective_share / 5
    assert result.effective_share > 0.3
    np.testing.assert_array_less(np.abs(result.places.mean(axis=0) - shrunk * OBSERVED), 5 * SD / np.sqrt(few))
    ratio = result.places.std(axis=0) / (SD * np.sqrt(shrunk))
    np.testing.assert_array_less(np.abs(ratio - 1), 5 / np.sqrt(2 * few))


def test_an_impossible_release_is_refused():
    generator = np.random.default_rng(0)
    with pytest.raises(ValueError, match="units and the priors"):
        sample(
            generator.standard_normal((50, 1)),
            lambda places: -0.5 * places[:, 0] ** 2,
            lambda places: np.full(len(places), -np.inf),
            lambda places: np.zeros(len(places)),
            generator,
        )


@pytest.mark.parametrize("seed", range(4))
def test_a_narrow_peak_on_a_plateau_is_climbed(seed):
    """The plateau has the posterior mass 1e-5 and the prior mass 0.999: the law of a release at a small epsilon."""
    generator = np.random.default_rng(seed)
    height = 20.0

    def likelihood(places):
        # Slopes three standard deviations of a row wide around a peak that is twenty times narrower.
        distance = np.linalg.norm(places - OBSERVED, axis=1)
        return np.logaddexp(0.0, height - 20 * np.minimum(distance, 0.5) - 4 * np.maximum(distance - 0.5, 0.0))

    result = sample(10 * generator.standard_normal((3000, 2)), log_prior, likelihood, likelihood, generator)
    assert len(result.places) == 300
    distance = np.linalg.norm(result.places - OBSERVED, axis=1)
    # The peak exp(-20 |x|) in the plane: |x| is Gamma(2) / 20, with the mean 0.1; 300 draws of 1/10 effective at least.
    assert abs(distance.mean() - 0.1) < 5 * 0.071 / np.sqrt(30)
