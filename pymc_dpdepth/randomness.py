"""Random bits for releases and, apart from them, for simulations.

A release must not be reproducible by anyone, so its bits come from the operating system through `secrets` and enter
the numba kernels as arrays; a numba or NumPy generator seeded with 32 or 64 bits could be searched. Seeded bits exist
for simulation alone, and everything made with them carries `simulation=True`.
"""

from __future__ import annotations

import secrets

import numpy as np

from pymc_dpdepth.errors import PrivacyLeakWarning, warn_user

__all__ = ["RandomBits", "SeededBits", "SystemBits", "curator_generator", "random_bits"]

WORD_BYTES = 8
DOUBLE_BITS = 53  # significand of a double
DISCARDED_BITS = 64 - DOUBLE_BITS
SEED_BITS = 128


class RandomBits:
    """A source of uniform random words; subclasses say where the bits come from."""

    simulation: bool

    def words(self, count: int) -> np.ndarray:
        """Return `count` independent uniform 64-bit words."""
        raise NotImplementedError

    def index(self, count: int) -> int:
        """Return a uniform integer in 0, ..., count - 1, without modulo bias."""
        raise NotImplementedError

    def seed(self) -> int:
        """Return a 128-bit integer to seed a sampler that draws its own numbers (MCMC)."""
        high, low = (int(word) for word in self.words(2))
        return (high << SEED_BITS // 2) | low


class SystemBits(RandomBits):
    """Bits of the operating system's generator, through `secrets`."""

    simulation = False

    def words(self, count: int) -> np.ndarray:
        """Return `count` independent uniform 64-bit words."""
        return np.frombuffer(secrets.token_bytes(WORD_BYTES * count), dtype=np.uint64)

    def index(self, count: int) -> int:
        """Return a uniform integer in 0, ..., count - 1."""
        return secrets.randbelow(count)


class SeededBits(RandomBits):
    """Reproducible bits, for simulation: whoever knows the seed can undo the privacy of the draw."""

    simulation = True

    def __init__(self, random_seed: int):
        self._generator = np.random.default_rng(random_seed)

    def words(self, count: int) -> np.ndarray:
        """Return `count` independent uniform 64-bit words."""
        return self._generator.integers(0, 2**64, size=count, dtype=np.uint64)

    def index(self, count: int) -> int:
        """Return a uniform integer in 0, ..., count - 1."""
        return int(self._generator.integers(count))


def random_bits(random_seed: int | None) -> RandomBits:
    """Return the system's bits, or seeded ones with a warning.

    Parameters
    ----------
    random_seed : int or None
        None for a real release. An integer makes the draw reproducible, hence not private: for simulation only.

    Returns
    -------
    RandomBits
        The source of bits.

    Warns
    -----
    PrivacyLeakWarning
        If a seed is given.
    """
    if random_seed is None:
        return SystemBits()
    _check_seed(random_seed)
    warn_user(
        "random_seed makes this draw reproducible: anyone who knows the seed can undo its privacy. "
        "It is recorded with simulation=True; leave random_seed out for a release.",
        PrivacyLeakWarning,
    )
    return SeededBits(int(random_seed))


def curator_generator(random_seed: int | None) -> np.random.Generator:
    """Return a NumPy generator for simulations whose results stay with the curator, never for a release.

    A seed gives no warning here, since nothing that is drawn with the generator leaves.

    Parameters
    ----------
    random_seed : int or None
        None seeds it with 128 bits of the operating system.

    Returns
    -------
    numpy.random.Generator
    """
    if random_seed is None:
        return np.random.default_rng(SystemBits().seed())
    _check_seed(random_seed)
    return np.random.default_rng(int(random_seed))


def _check_seed(random_seed) -> None:
    """Refuse anything but a non-negative integer."""
    integer = isinstance(random_seed, int | np.integer) and not isinstance(random_seed, bool)
    if not integer or random_seed < 0:
        got = "a negative one" if integer else type(random_seed).__name__
        raise ValueError(
            f"random_seed: expected None or a non-negative int, got {got}; "
            "leave it out for a release, pass an int for a simulation."
        )
