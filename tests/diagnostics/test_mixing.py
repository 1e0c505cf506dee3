"""Coupled chains: right marginals, a bound above the true distance, and what is said about chains that are stuck."""

import io

import numpy as np
import pymc as pm
import pytest
from rich.console import Console
from scipy import stats

import pymc_dpdepth as dpd
from pymc_dpdepth.diagnostics import coupling
from pymc_dpdepth.diagnostics.coupling import couple_proposals, coupled_step, meeting_time, tune_proposal
from pymc_dpdepth.diagnostics.mixing import _diagnosis, diagnose_mixing
from pymc_dpdepth.diagnostics.starts import draw_starts
from pymc_dpdepth.randomness import curator_generator

# Family-wise level 1e-6 of the Kolmogorov-Smirnov tests of this file, fewer than 20.
LEVEL = 1e-6 / 20
FACTOR = np.array([[0.8, 0.0], [0.5, 1.2]])
ERRORS = 4.0  # Monte Carlo standard errors: one excess in 30,000


# Couplings, right and wrong


def one_point_for_both(first, second, factor, generator):
    proposal, _ = couple_proposals(first, second, factor, generator)
    return proposal, proposal


def ratio_upside_down(first, second, factor, generator):
    gap = np.linalg.solve(factor, first - second)
    noise = generator.standard_normal(len(first))
    shifted = noise + gap
    proposal = first + factor @ noise
    if -generator.standard_exponential() <= 0.5 * (shifted @ shifted - noise @ noise):
        return proposal, proposal
    return proposal, second + factor @ (noise - 2.0 * (gap @ noise) / (gap @ gap) * gap)


def reflected_without_factor(first, second, factor, generator):
    proposal, other = couple_proposals(first, second, factor, generator)
    if other is proposal:
        return proposal, other
    gap = first - second
    noise = np.linalg.solve(factor, proposal - first)
    return proposal, second + factor @ (noise - 2.0 * (gap @ noise) / (gap @ gap) * gap)


WRONG = [one_point_for_both, ratio_upside_down, reflected_without_factor]


def smallest_p_value(couple):
    """Compare each proposal, whitened, with the standard normal it should be, along axes and a diagonal."""
    generator = np.random.default_rng(0)
    first, second = np.array([0.3, -0.2]), np.array([-0.6, 0.4])
    pairs = [couple(first, second, FACTOR, generator) for _ in range(20_000)]
    noises = [
        np.linalg.solve(FACTOR, (np.array(points) - start).T)
        for points, start in zip(zip(*pairs, strict=True), (first, second), strict=True)
    ]
    sums = [[*noise, noise.sum(axis=0) / np.sqrt(2), (noise[0] - noise[1]) / np.sqrt(2)] for noise in noises]
    return min(stats.kstest(line, "norm").pvalue for noise in sums for line in noise)


def test_both_proposals_have_their_own_law():
    assert smallest_p_value(couple_proposals) > LEVEL


@pytest.mark.parametrize("couple", WRONG)
def test_a_coupling_with_a_wrong_law_is_caught(couple):
    assert smallest_p_value(couple) < LEVEL


def test_proposals_coincide_as_often_as_the_laws_allow():
    generator = np.random.default_rng(1)
    first, second = np.array([0.3, -0.2]), np.array([-0.6, 0.4])
    overlap = 2 * stats.norm.sf(np.linalg.norm(np.linalg.solve(FACTOR, first - second)) / 2)
    pairs = [couple_proposals(first, second, FACTOR, generator) for _ in range(10_000)]
    together = np.mean([a is b for a, b in pairs])
    assert abs(together - overlap) < ERRORS * np.sqrt(overlap * (1 - overlap) / 10_000)


def test_chains_that_have_met_stay_together():
    generator = np.random.default_rng(2)
    state = np.array([0.5, 0.1])
    states, logs = (state, state), (-0.13, -0.13)
    for _ in range(50):
        states, logs = coupled_step(lambda x: -0.5 * x @ x, states, logs, FACTOR, generator)
        assert states[0] is states[1]


def test_a_state_without_density_is_never_entered():
    def half_line(state):
        return -state[0] if state[0] > 0 else -np.inf

    generator = np.random.default_rng(3)
    states, logs = (np.array([0.1]), np.array([3.0])), (-0.1, -3.0)
    for _ in range(200):
        states, logs = coupled_step(half_line, states, logs, np.array([[2.0]]), generator)
        assert min(state[0] for state in states) > 0


def test_the_learned_proposals_follow_the_target():
    covariance = np.array([[4.0, 1.9], [1.9, 1.0]])
    precision = np.linalg.inv(covariance)
    starts = np.random.default_rng(4).normal(0, 5, size=(100, 2))
    factor = tune_proposal(lambda x: -0.5 * x @ precision @ x, starts, 5000, np.random.default_rng(5))
    learned = factor @ factor.T
    correlation = learned[0, 1] / np.sqrt(learned[0, 0] * learned[1, 1])
    assert 0.85 < correlation < 1.0  # the target's is .95
    # The best proposals have 2.38^2 / 2 = 2.83 times the target's covariance, and any near it accept about as often.
    assert 1.0 < learned[0, 0] / covariance[0, 0] < 8.0


# The bound against the true distance of a random walk on a normal target

WIDE, WALK, LAG, STEPS = 4.0, 1.0, 20, 400


def true_distances(points=601, reach=20.0):
    """Return d_TV(law after t steps, N(0, 1)), the walk's kernel being a matrix on a grid; start N(0, WIDE^2)."""
    grid = np.linspace(-reach, reach, points)
    width = grid[1] - grid[0]
    target = stats.norm.pdf(grid)
    log_ratio = 0.5 * (grid[:, None] ** 2 - grid[None, :] ** 2)
    move = stats.norm.pdf(grid[None, :] - grid[:, None], scale=WALK) * width * np.exp(np.minimum(0.0, log_ratio))
    move[np.diag_indices(points)] += 1.0 - move.sum(axis=1)
    law = stats.norm.pdf(grid, scale=WIDE) * width
    distances = []
    for _ in range(STEPS + 1):
        distances.append(0.5 * np.abs(law - target * width).sum())
        law = law @ move
    return np.array(distances)


def normal_diagnosis(couple=None, monkeypatch=None, pairs=500):
    if couple is not None:
        monkeypatch.setattr(coupling, "couple_proposals", couple)
    generator = np.random.default_rng(6)
    starts = generator.normal(0, WIDE, size=(pairs, 2, 1))
    times = [
        meeting_time(lambda x: -0.5 * x[0] * x[0], start, np.array([[WALK]]), LAG, STEPS, generator) for start in starts
    ]
    return _diagnosis(np.array(times), LAG, STEPS)


@pytest.fixture(scope="module")
def distances():
    return true_distances()


def test_the_bound_lies_above_the_true_distance_and_falls(distances):
    diagnosis = normal_diagnosis()
    assert diagnosis.met
    # The grid errs by about 1e-4: the start's mass beyond reach is 6e-7, and the midpoint rule is far better.
    assert (diagnosis.bound + ERRORS * diagnosis.standard_error + diagnosis.resolution > distances).all()
    assert (np.diff(diagnosis.bound) <= 0).all()
    assert diagnosis.bound[0] > 0.5 and diagnosis.bound[-1] == 0.0
    # It says something: it is below a tenth by four times the step at which the distance itself is.
    tenth = int(np.argmax(distances < 0.1))
    assert diagnosis.bound[4 * tenth] < 0.1
    assert tenth < diagnosis.steps_until(0.05) < STEPS


def test_a_coupling_that_drags_one_chain_along_gives_a_bound_below_the_distance(distances, monkeypatch):
    diagnosis = normal_diagnosis(one_point_for_both, monkeypatch)
    above = diagnosis.bound + ERRORS * diagnosis.standard_error + diagnosis.resolution
    assert not (above > distances).all()


def test_the_bound_counts_lags_until_the_meeting():
    diagnosis = _diagnosis(np.array([5, 12]), 5, 14)
    first = [1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    second = [3, 3, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 0, 0, 0]
    terms = np.array([first, second])
    assert diagnosis.bound.tolist() == np.minimum(terms.mean(axis=0), 1.0).tolist()
    np.testing.assert_allclose(diagnosis.standard_error, terms.std(axis=0, ddof=1) / np.sqrt(2), atol=1e-12)


def test_few_pairs_do_not_show_small_distances():
    diagnosis = _diagnosis(np.full(30, 4), 10, 20)
    assert diagnosis.resolution == 0.1 and diagnosis.upper[-1] == 0.1
    assert diagnosis.steps_until(0.1) == 4
    with pytest.raises(ValueError, match="repetitions >= 3 / distance"):
        diagnosis.steps_until(0.05)
    assert _diagnosis(np.full(30, 20), 10, 20).steps_until(0.1) == 20
    assert "below 0.1 from step 4 on" in diagnosis.advice


def test_a_bound_that_does_not_come_down_says_run_longer():
    diagnosis = _diagnosis(np.full(100, 25), 10, 20)
    assert diagnosis.steps_until(0.05) is None
    assert "Run longer" in diagnosis.advice


# Models


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(3).normal(1.0, 1.0, size=(20, 2))


def test_a_mechanism_that_mixes(rows):
    with pm.Model():
        location = pm.Normal("location", 0.0, 3.0, shape=2)
        dpd.exponential_mechanism("median", location, rows, depth=dpd.IntegratedDual(smoothing=5.0), epsilon=2.0)
        options = {"repetitions": 60, "tune": 300, "random_seed": 1, "progressbar": False}
        diagnosis = diagnose_mixing(**options)
        again = diagnose_mixing(**options)
    assert diagnosis.met and diagnosis.lag == 200 and diagnosis.bound.shape == (2001,)
    assert 0 < diagnosis.steps_until(0.05) < 1000
    assert (diagnosis.meeting_times == again.meeting_times).all()
    for text in (str(diagnosis), shown(diagnosis)):
        for words in ("Run a chain", "dpd.sample_exact", "not NUTS", "no guarantee", "not releasable", "no privacy"):
            assert words in text
    assert not any(character.isdigit() for character in repr(diagnosis).replace("60 pairs", ""))


def shown(diagnosis):
    file = io.StringIO()
    Console(file=file, width=200).print(diagnosis)
    return file.getvalue()


def test_a_chain_that_is_stuck_between_two_far_modes():
    with pm.Model() as model:
        pm.Mixture("x", [0.5, 0.5], [pm.Normal.dist(-20, 1), pm.Normal.dist(20, 1)])
    diagnosis = diagnose_mixing(model, steps=200, repetitions=20, tune=200, random_seed=2, progressbar=False)
    assert not diagnosis.met
    assert (diagnosis.bound == 1.0).all() and (diagnosis.upper == 1.0).all()
    assert np.isnan(diagnosis.standard_error).all()
    assert diagnosis.steps_until(0.5) is None
    assert "did not meet in 200 steps" in diagnosis.summary() and "stuck in separate modes" in diagnosis.summary()
    assert "Use an exact sampler" in diagnosis.summary()


def test_a_peak_at_the_rows_that_chains_from_the_prior_miss():
    # Prior sd 100 and rows around (150, 150): a third of the exact law lies within 10 of the rows, and of 20 draws of
    # the prior none. Chains from the prior alone would agree with each other.
    rows = np.random.default_rng(2).normal(150.0, 1.0, size=(30, 2))
    with pm.Model() as model:
        location = pm.Normal("location", 0.0, 100.0, shape=2)
        dpd.exponential_mechanism("median", location, rows, depth=dpd.Spatial(), epsilon=2.0)
    diagnosis = diagnose_mixing(model, steps=200, repetitions=20, tune=200, random_seed=5, progressbar=False)
    assert not diagnosis.met and "dpd.sample_exact" in diagnosis.advice


def test_starts_are_at_the_prior_and_at_the_rows():
    rows = np.array([[2.5, 7.0], [3.0, 7.5], [-1.0, 8.0]])  # the last one lies outside the first prior's support
    with pm.Model() as model:
        pm.HalfNormal("s", 2.0)
        low = pm.Uniform("low", 0.0, 4.0)
        high = pm.Normal("high", 0.0, 1.0)
        dpd.exponential_mechanism("median", pm.math.stack([low, high]), rows, depth="spatial", epsilon=1.0)
    starts = draw_starts(model, 2000, np.random.default_rng(0))
    s, low, high = np.exp(starts[:, 0]), 4.0 / (1.0 + np.exp(-starts[:, 1])), starts[:, 2]
    moved = high > 6.0  # far from the prior
    assert abs(moved.mean() - 0.5) < ERRORS * np.sqrt(0.25 / 2000)
    near = np.abs(np.stack([low, high], axis=1)[moved, None] - rows).max(axis=2) < 1e-9
    assert (near[:, :2].any(axis=1) | (high[moved] == 8.0)).all() and near[:, :2].any(axis=0).all()
    assert stats.kstest(s, stats.halfnorm(scale=2.0).cdf).pvalue > LEVEL
    assert stats.kstest(low[~moved], stats.uniform(0, 4).cdf).pvalue > LEVEL
    assert stats.kstest(low[high == 8.0], stats.uniform(0, 4).cdf).pvalue > LEVEL
    with pm.Model() as vector:
        location = pm.MvNormal("location", np.zeros(2), np.eye(2))
        dpd.exponential_mechanism("median", location, rows, depth="spatial", epsilon=1.0)
    starts = draw_starts(vector, 300, np.random.default_rng(1))
    assert (starts[starts[:, 1] > 6.0][:, None] == rows).all(axis=2).any(axis=1).all()


def test_transforms_and_several_variables():
    # HalfNormal and Uniform live on transformed scales; without a mechanism the start is their own law, so
    # the chain is at its target from the first step and only the coupling takes time.
    with pm.Model() as model:
        pm.Uniform("u", 0.0, 1.0, shape=2)
        pm.HalfNormal("s", 2.0)
    diagnosis = diagnose_mixing(model, steps=1000, repetitions=40, tune=500, random_seed=3, progressbar=False)
    assert diagnosis.met and diagnosis.bound[-1] == 0.0


def test_seeds_make_no_warning_and_bad_input_is_refused(rows):
    assert curator_generator(7).integers(10**9) == np.random.default_rng(7).integers(10**9)
    assert curator_generator(None).integers(10**9) != curator_generator(None).integers(10**9)
    with pm.Model() as model:
        location = pm.Normal("location", 0.0, 3.0, shape=2)
        dpd.exponential_mechanism("median", location, rows, epsilon=2.0)
    for wrong in ({"steps": 0}, {"lag": -1}, {"repetitions": 1}, {"random_seed": -1}, {"tune": 1.5}):
        with pytest.raises((ValueError, TypeError), match=next(iter(wrong))):
            diagnose_mixing(model, progressbar=False, **wrong)
    with pm.Model() as discrete:
        pm.Poisson("k", 3.0)
    with pytest.raises(ValueError, match="discrete"):
        diagnose_mixing(discrete, progressbar=False)
