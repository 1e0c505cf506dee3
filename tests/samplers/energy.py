"""The two-sample energy test, with a p-value by permutation: no code of the package."""

import numpy as np


def energy_test(one, other, permutations=1999, seed=0):
    """Return the energy distance of two samples of equal size, shape (k, d), and its p-value.

    The distance is 2 E|X - Y| - E|X - X'| - E|Y - Y'|, 0 for equal laws alone (Szekely and Rizzo, 2013,
    doi:10.1016/j.jspi.2013.03.018). With s = +1 for a draw of the first and -1 for one of the second it is
    -s' D s / k^2, D the matrix of distances. Draws within a sample must be independent.
    """
    assert one.shape == other.shape
    both = np.concatenate([one, other])
    between = np.sqrt(((both[:, None] - both[None]) ** 2).sum(axis=-1))
    signs = np.repeat([1.0, -1.0], len(one))
    generator = np.random.default_rng(seed)
    shuffled = np.stack([signs, *(generator.permutation(signs) for _ in range(permutations))])
    distances = -np.einsum("ij,ij->i", shuffled @ between, shuffled) / len(one) ** 2
    # Under the null all permutations, the given one among them, are equally likely; rounding must not break a tie.
    rank = (distances >= distances[0] * (1 - 1e-12)).sum()
    return distances[0], rank / (permutations + 1)


def thinned(draws, count):
    """Return `count` draws, evenly spread over all chains, of draws of shape (chain, draw, d)."""
    flat = draws.reshape(-1, draws.shape[-1])
    assert len(flat) % count == 0
    return flat[:: len(flat) // count]
