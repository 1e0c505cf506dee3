"""Attacks on what is released: an audit of the noisy sums, and what a record must not hold."""

import numpy as np
import pytest
from audits import attack

import pymc_dpdepth as dpd
from pymc_dpdepth.extrema import Gaussian
from pymc_dpdepth.privacy.noise import laplace_noise
from pymc_dpdepth.randomness import SystemBits

EPSILON = {"mean": 1.0, "covariance": 1.0}
TOTAL = 2.0
TRIALS = 10_000
# One row goes from the middle to an end of the box: the second moment moves by all of D2, the mean by half of D1. From
# end to end the mean moves by all of D1, and the second moment not at all.
X, Y, Z = (np.array([[first], [1.0], [0.3]]) for first in (0.0, 1.0, -1.0))


def noisy_sums(error=1.0):
    """Return a mechanism: the sums of the Gaussian family with the noise of the release, scales divided by `error`."""
    family = Gaussian((-1.0, 1.0))

    def mechanism(table, draws):
        rows, parts = np.asarray(table), []
        for statistic in family.statistics(len(rows), ["a"], {}):
            noise = laplace_noise(statistic.sensitivity, error * EPSILON[statistic.name])
            counts = np.tile(family.counts(rows, statistic, {}), draws)
            parts.append(noise.add(counts, SystemBits()).reshape(draws, -1) * statistic.grid)
        return np.concatenate(parts, axis=1)

    return mechanism


@pytest.mark.parametrize("pair", [(X, Y), (Y, Z)], ids=["to the end", "from end to end"])
def test_an_audit_finds_no_more_than_epsilon(pair):
    assert attack(noisy_sums(), *pair, trials=TRIALS).epsilon_lower_bound <= TOTAL


def test_an_audit_catches_noise_that_was_halved():
    """The loss of the pair is 1/2 + 1 with the right noise, and 1 + 2 with half of it."""
    assert attack(noisy_sums(error=2.0), X, Y, trials=TRIALS).epsilon_lower_bound > TOTAL


def test_the_loss_of_the_integer_law_is_within_epsilon_and_reaches_it():
    """The discrete Laplace law at every output: log ratios add up to |change| / scale, here at most epsilon exactly."""
    family = Gaussian((-1.0, 1.0))
    losses = []
    for table, neighbour in ((X, Y), (Y, Z), (X, Z)):
        loss = 0.0
        for statistic in family.statistics(3, ["a"], {}):
            noise = laplace_noise(statistic.sensitivity, EPSILON[statistic.name])
            change = family.counts(table, statistic, {}) - family.counts(neighbour, statistic, {})
            loss += int(np.abs(change).sum()) / noise.scale
        losses.append(loss)
    assert losses == pytest.approx([0.5 + 1.0, 1.0, 0.5 + 1.0], rel=1e-12)
    assert max(losses) <= TOTAL


def test_a_record_holds_no_row_and_errors_hold_none(tmp_path):
    rows = np.random.default_rng(1).normal(size=(50, 2))
    rows[7] = [0.123456789, -0.987654321]
    ci = dpd.extrema_interval(rows, family=Gaussian((-1, 1)), epsilon=1.0, replicates=99, correction="cv")
    text = ci.to_json(tmp_path / "ci.json") + repr(ci) + str(ci.bootstrap) + str(ci.compare())
    assert "0.12345678" not in text and "0.98765432" not in text
    assert "labels" not in text  # which fold a row was in stays unknown


def test_releases_of_one_table_differ():
    rows = np.zeros((20, 2))
    family = Gaussian((-1, 1))
    first, second = (dpd.extrema_interval(rows, family=family, epsilon=1.0, bootstrap_seed=1) for _ in range(2))
    for name in ("mean", "covariance"):
        assert (first.statistics[name] != second.statistics[name]).all()


def test_noise_has_its_scale_from_end_to_end():
    """Noise of 60 releases with 10 entries each: the mean of |noise| is the scale, with relative error 1 / sqrt(600).

    Six of these are .245; a halved or doubled noise is far outside. The noise is the operating system's.
    """
    rows, family = np.zeros((20, 10)), Gaussian((-1, 1))
    found = [dpd.extrema_interval(rows, family=family, epsilon=2.0, replicates=19) for _ in range(60)]
    sizes = np.abs([ci.statistics["mean"] for ci in found]).mean()
    assert sizes == pytest.approx(20.0, rel=0.245)
    sizes = np.abs([ci.statistics["covariance"] for ci in found]).mean()
    assert sizes == pytest.approx(55.0, rel=0.245)
