"""Many points at once: a compiled kernel on all cores."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np

__all__ = ["on_all_cores"]

WORTH_A_THREAD = 2**16  # visits of a row, some 5 nanoseconds each: starting threads takes about 100 microseconds
PARTS_PER_THREAD = 4  # so that a thread that is done early finds more to do


def on_all_cores(kernel: Callable, points: np.ndarray, arrays: tuple[np.ndarray, ...], visits: int) -> np.ndarray:
    """Return ``kernel(points, *arrays)``, the points shared out among threads.

    The kernels hold no lock of the interpreter. Plain threads, since numba's own end a process that was forked after
    their first use, or that starts them from two threads at once.

    Parameters
    ----------
    kernel : callable
        Compiled with `nogil`; returns one number for each point.
    points : ndarray, shape (k, d)
    arrays : tuple of ndarray
        What the kernel needs beside the points.
    visits : int
        How often a row is looked at for one point.
    """
    threads = min(numba.config.NUMBA_NUM_THREADS, len(points))
    if threads < 2 or len(points) * visits < WORTH_A_THREAD:
        return kernel(points, *arrays)
    parts = np.array_split(points, min(len(points), threads * PARTS_PER_THREAD))
    with ThreadPoolExecutor(threads) as pool:
        return np.concatenate(list(pool.map(lambda part: kernel(part, *arrays), parts)))
