"""Time exact depths of many points against the package data-depth, one thread, in one run, after comparing the values.

    pip install -e ".[peers]"
    python benchmarks/bench_peers.py

Rows and points are standard normal. Each side gets the rows and all points in one call; the time is that of the call
over the number of points, ours with its checks and sorting. Calls of the two sides alternate, and the figure is the
median of the ratios of their times. The peer's spatial depth makes an n x n matrix in every call, so that its time for
a point depends on how many there are.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

import statistics  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable  # noqa: E402
from dataclasses import dataclass  # noqa: E402

import numba  # noqa: E402
import numpy as np  # noqa: E402

from pymc_dpdepth.depths import Depth, Halfspace, Simplicial, Spatial  # noqa: E402

REPEATS = 7
AGREEMENT = 1e-12  # counts over n or C(n, 3), each divided once or summed; spatial: sums of n = 10,000 unit vectors


@dataclass(frozen=True)
class Case:
    """One comparison: a depth of ours, the peer's function, sizes, and the ratio that is asked for."""

    label: str
    depth: Depth
    peer: Callable
    d: int
    n: int
    points: int
    asked: float | None


def cases(peer) -> list[Case]:
    """Return the comparisons. The peer counts simplices in 32 bits, which overflow for more than 1,291 rows."""

    def plain_spatial(points, rows):
        return peer.spatial(points, rows, mah_estimate="none")

    plane, space = Halfspace(directions=None), Halfspace(directions=None)
    return [
        Case("halfspace", plane, peer.halfspace, 2, 1_000, 200, 10.0),
        Case("halfspace", plane, peer.halfspace, 2, 10_000, 100, 10.0),
        Case("halfspace", space, peer.halfspace, 3, 500, 10, 2.0),
        Case("simplicial", Simplicial(), peer.simplicial, 2, 1_000, 200, 3.0),
        Case("spatial", Spatial(), plain_spatial, 10, 10_000, 20, 80.0),
        Case("spatial", Spatial(), plain_spatial, 10, 10_000, 100, None),
    ]


def seconds(function: Callable, *arguments) -> float:
    """Return the time of one call."""
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def compare(case: Case) -> tuple[float, float, float]:
    """Return microseconds per point of ours and of the peer, and the median ratio; stop where values differ."""
    generator = np.random.default_rng(0)
    rows, points = generator.standard_normal((case.n, case.d)), generator.standard_normal((case.points, case.d))
    difference = np.abs(case.depth.evaluate(points, rows) - case.peer(points, rows)).max()
    if difference > AGREEMENT:
        raise SystemExit(f"{case.label}, d = {case.d}, n = {case.n}: values differ by {difference:.2g}.")
    pairs = [(seconds(case.depth.evaluate, points, rows), seconds(case.peer, points, rows)) for _ in range(REPEATS)]
    ours, theirs = (1e6 * statistics.median(times) / case.points for times in zip(*pairs, strict=True))
    return ours, theirs, statistics.median(b / a for a, b in pairs)


def main() -> None:
    """Print the times and ratios of every case."""
    try:
        from depth.model import multivariate as peer
    except ImportError:
        print('The package data-depth is not installed; pip install -e ".[peers]" brings it, with torch (5 GB).')
        sys.exit()
    numba.set_num_threads(1)
    print(f"{'depth':>10} {'d':>3} {'n':>7} {'points':>7} {'ours us':>10} {'peer us':>10} {'ratio':>7} {'asked':>6}")
    for case in cases(peer):
        ours, theirs, ratio = compare(case)
        sizes, asked = f"{case.label:>10} {case.d:>3} {case.n:>7} {case.points:>7}", case.asked or "-"
        print(f"{sizes} {ours:>10.1f} {theirs:>10.1f} {ratio:>7.1f} {asked:>6}", flush=True)


if __name__ == "__main__":
    main()
