"""Binomial coefficients C(k, 2), C(k, 3) and C(k, 4) as numba kernels in 64-bit integers, 0 where k is too small."""

from __future__ import annotations

import numba

__all__ = ["pairs", "quadruples", "triples"]


@numba.njit(cache=True, nogil=True)
def pairs(k):
    """Return C(k, 2) with no larger value on the way: k/2 times k-1 for even k, (k-1)/2 times k for odd k."""
    return (k >> 1) * ((k - 1) | 1)


@numba.njit(cache=True, nogil=True)
def triples(k):
    """Return C(k, 3), with no intermediate value above C(k, 2) or the result; one of k, k-1, k-2 is a multiple of 3."""
    if (k - 2) % 3 == 0:
        return pairs(k) * ((k - 2) // 3)
    return pairs(k) // 3 * (k - 2)


@numba.njit(cache=True, nogil=True)
def quadruples(k):
    """Return C(k, 4)."""
    return triples(k) * (k - 3) // (2 + 2)
