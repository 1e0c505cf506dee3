"""Where random bits come from, what they look like, and that a release uses no others."""

import secrets
import warnings

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dpdepth as dpd
from pymc_dpdepth import randomness
from pymc_dpdepth.randomness import RandomBits, SeededBits, SystemBits, random_bits

LEVEL = 1e-6 / 4  # family-wise error of the four statistical tests of this file
ROWS = np.arange(24.0).reshape(12, 2)


class Words(RandomBits):
    """A source that gives the words it was told to give."""

    simulation = True

    def __init__(self, *words):
        self.given = np.array(words, dtype=np.uint64)

    def words(self, count):
        assert count == len(self.given)
        return self.given


@pytest.mark.parametrize("bits", [SystemBits(), SeededBits(1)], ids=["system", "seeded"])
def test_words_are_uniform(bits):
    # The system's bits cannot be seeded: this fails once in 4 million runs by LEVEL.
    words = bits.words(20_000)
    assert stats.kstest(words / 2.0**64, "uniform").pvalue > LEVEL
    # The 64 bits of the words, each 0 or 1 with probability 1/2: a binomial test each, Bonferroni.
    for bit in range(64):
        ones = int(((words >> np.uint64(bit)) & np.uint64(1)).sum())
        assert stats.binomtest(ones, 20_000).pvalue > LEVEL / 64


@pytest.mark.parametrize("bits", [SystemBits(), SeededBits(2)], ids=["system", "seeded"])
def test_an_index_is_uniform_over_the_whole_range(bits):
    counts = np.bincount([bits.index(7) for _ in range(7000)], minlength=7)
    assert len(counts) == 7
    assert stats.chisquare(counts).pvalue > LEVEL
    assert bits.index(1) == 0


def test_an_index_has_no_modulo_bias():
    # A 64-bit word modulo 3 * 2^62 would make those below 2^62 twice as likely: 1/2 instead of 1/3.
    count, draws = 3 * 2**62, 2000
    low = sum(SystemBits().index(count) < 2**62 for _ in range(draws))
    assert stats.binomtest(low, draws, 1 / 3).pvalue > LEVEL


def test_seeds_have_128_bits():
    seeds = [SystemBits().seed() for _ in range(200)]
    assert len(set(seeds)) == 200
    # Each of the 128 bits is 0 in all 200 seeds with probability 2^-200.
    combined = 0
    for seed in seeds:
        assert 0 <= seed < 2**128
        combined |= seed
    assert combined == 2**128 - 1
    assert Words(1, 2).seed() == (1 << 64) | 2


def test_no_seed_gives_the_systems_bits_in_silence():
    bits = random_bits(None)
    assert isinstance(bits, SystemBits)
    assert bits.simulation is False


def test_a_seed_gives_reproducible_bits_and_a_warning():
    with pytest.warns(dpd.PrivacyLeakWarning, match="reproducible"):
        first = random_bits(5)
    with pytest.warns(dpd.PrivacyLeakWarning):
        second = random_bits(np.int64(5))
    assert first.simulation is True
    assert np.array_equal(first.words(10), second.words(10))
    assert first.index(1000) == second.index(1000)
    assert first.seed() == second.seed()
    assert not np.array_equal(SeededBits(6).words(10), SeededBits(5).words(10))


@pytest.mark.parametrize("seed", [-1, 1.0, "0", True, [1]])
def test_other_seeds_are_refused(seed):
    with pytest.raises(ValueError, match="random_seed"):
        random_bits(seed)


def test_a_negative_seed_is_called_negative():
    with pytest.raises(ValueError, match="got a negative one"):
        random_bits(np.int64(-1))
    with pytest.raises(ValueError, match="got str"):
        random_bits("-1")


# Releases


def prior():
    return pm.Normal.dist(10.0, 20.0, shape=2)


def model_of_rows():
    with pm.Model() as model:
        location = pm.Normal("location", 10.0, 20.0, shape=2)
        dpd.exponential_mechanism("median", location, ROWS, epsilon=0.1)
    return model


def releases():
    model = model_of_rows()
    return {
        "private_median": lambda: dpd.private_median(ROWS, epsilon=0.1, prior=prior()),
        "release": lambda: dpd.release(model),
        "segments": lambda: dpd.private_median(ROWS[:, :1], epsilon=0.1, prior="normal(10, 20)"),
        "products": lambda: dpd.private_median(ROWS, epsilon=0.1, prior=prior(), depth="integrated_dual"),
        "rotated": lambda: dpd.private_median(
            ROWS, epsilon=0.1, prior=prior(), directions=dpd.Directions.orthonormal(2)
        ),
        "empty": lambda: dpd.private_median(ROWS[:0], epsilon=0.1, prior=prior()),
    }


NAMES = ("private_median", "release", "segments", "products", "rotated", "empty")


@pytest.mark.parametrize("name", NAMES)
def test_a_release_is_a_function_of_the_systems_bytes(monkeypatch, name):
    make = releases()[name]
    asked = []

    def counted(generator):
        def token_bytes(count):
            asked.append(count)
            return generator.bytes(count)

        return token_bytes

    values = []
    for seed in (1, 1, 2):
        monkeypatch.setattr(secrets, "token_bytes", counted(np.random.default_rng(seed)))
        values.append(make().value.values.tolist())
    assert asked
    assert values[0] == values[1]
    assert values[0] != values[2]


@pytest.mark.parametrize("name", NAMES)
def test_two_releases_differ(name):
    # Both draws take fresh bits; the law has thousands of cells of similar mass, so two equal draws are unlikelier
    # than 1e-6.
    make = releases()[name]
    assert make().value.values.tolist() != make().value.values.tolist()


@pytest.mark.parametrize("name", NAMES)
def test_a_release_neither_reads_nor_moves_the_global_generator(name):
    make = releases()[name]
    values = []
    for _ in range(2):
        np.random.seed(3)  # noqa: NPY002 the global generator is what this test is about
        before = np.random.get_state()  # noqa: NPY002
        values.append(make().value.values.tolist())
        after = np.random.get_state()  # noqa: NPY002
        assert before[0] == after[0] and np.array_equal(before[1], after[1]) and before[2:] == after[2:]
    assert values[0] != values[1]


def test_a_release_does_not_warn_and_is_no_simulation():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dpd.private_median(ROWS, epsilon=0.1, prior=prior()).simulation is False
    with pytest.warns(dpd.PrivacyLeakWarning):
        assert dpd.private_median(ROWS, epsilon=0.1, prior=prior(), random_seed=1).simulation is True


def test_the_draw_picked_from_a_trace_is_chosen_by_secrets(monkeypatch):
    import arviz_base

    model = model_of_rows()
    draws = np.arange(4 * 50 * 2.0).reshape(4, 50, 2)
    idata = arviz_base.from_dict({"posterior": {"location": draws}})
    picked = {}
    monkeypatch.setattr(secrets, "randbelow", lambda count: picked.setdefault(count, count - 1))
    with pytest.warns(dpd.ApproximateSamplingWarning):
        made = dpd.release(idata, model=model, accept_asymptotic=True)
    assert picked == {4: 3, 50: 49}
    assert made.value.values.tolist() == draws[3, 49].tolist()


def test_chains_of_a_release_are_seeded_by_128_system_bits(monkeypatch):
    from pymc_dpdepth.samplers import markov

    seen = {}
    monkeypatch.setattr(pm, "sample_smc", lambda **options: seen.update(options))
    monkeypatch.setattr(secrets, "token_bytes", lambda count: b"\xff" * count)
    markov.sample_markov(model_of_rows(), "smc", randomness.SystemBits(), False)
    assert seen["random_seed"] == [2**128 - 1] * seen["chains"]
