"""Time SMC with the batched kernel against PyMC's Metropolis kernel, on the same model and seeds, in one run.

    python benchmarks/bench_smc.py

Halfspace depth on its default directions, n = 1,000 normal rows, d = 2, epsilon = 1, 2,000 particles. Both kernels give
the same draws, which is checked. Columns: seconds of `pm.sample_smc` by the clock and of the processor, for one chain
and for the four chains that a release takes; what share of PyMC's seconds goes into the calls of its two compiled
functions; and the microseconds of one evaluation by such a call and inside a batch. Medians over runs in turn.
"""

from __future__ import annotations

import logging
import statistics
import time

import numpy as np
import pymc as pm

import pymc_dpdepth as dpd
from pymc_dpdepth.samplers.smc_kernel import BatchedMetropolis

N, D, PARTICLES, REPEATS = 1_000, 2, 2_000, 3
QUIET = {"cores": 1, "progressbar": False, "compute_convergence_checks": False}
KERNELS = {"PyMC": pm.smc.kernels.MH, "batched": BatchedMetropolis}


class Counting(pm.smc.kernels.MH):
    """PyMC's kernel, with the time and the number of its calls."""

    seconds, calls = 0.0, 0

    def initialize(self, start, rng):
        """Wrap the compiled functions where a chain starts."""
        super().initialize(start, rng)
        self.likelihood_logp_func = self._counted(self.likelihood_logp_func)
        self.prior_logp_func = self._counted(self.prior_logp_func)

    @staticmethod
    def _counted(function):
        def counted(point):
            start = time.perf_counter()
            value = function(point)
            Counting.seconds += time.perf_counter() - start
            Counting.calls += 1
            return value

        return counted


def model_of():
    """Return the model."""
    rows = np.random.default_rng(0).normal(1.0, 1.0, size=(N, D))
    with pm.Model() as model:
        location = pm.Normal("location", 0.0, 3.0, shape=D)
        dpd.exponential_mechanism("median", location, rows, depth="halfspace", epsilon=1.0)
    return model


def run(model, kernel, chains):
    """Return the draws, and the seconds by the clock and of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    with model:
        idata = pm.sample_smc(PARTICLES, kernel=kernel, chains=chains, random_seed=list(range(chains)), **QUIET)
    times = time.perf_counter() - clock, time.process_time() - processor
    return idata.posterior["location"].values, times


def microseconds(model):
    """Return the microseconds of one evaluation of log prior and log likelihood by calls, and in a batch."""
    with model:
        kernel = BatchedMetropolis(draws=PARTICLES, random_seed=1)
    points = np.random.default_rng(1).normal(1.0, 0.5, size=(PARTICLES, D))
    kernel._evaluate(points)
    times = {"calls": [], "batch": []}
    for _ in range(REPEATS):
        start = time.perf_counter()
        one_by_one = [
            (float(kernel.likelihood_logp_func(point)), float(kernel.prior_logp_func(point))) for point in points
        ]
        middle = time.perf_counter()
        batch = kernel._evaluate(points)
        times["batch"].append(time.perf_counter() - middle)
        times["calls"].append(middle - start)
        assert (np.transpose(batch) == one_by_one).all()
    return {name: statistics.median(seconds) / PARTICLES * 1e6 for name, seconds in times.items()}


def main():
    """Print the table."""
    logging.getLogger("pymc").setLevel(logging.ERROR)
    model = model_of()
    run(model, Counting, 1)  # compiles, too
    Counting.seconds, Counting.calls = 0.0, 0
    _, (clock, _) = run(model, Counting, 1)
    print(f"halfspace, n = {N}, d = {D}, {PARTICLES} particles")
    print(f"PyMC's kernel, one chain: {Counting.calls} calls, {Counting.seconds / clock:.0%} of its {clock:.1f} s")
    print("microseconds of an evaluation:", {name: round(value, 2) for name, value in microseconds(model).items()})
    print(f"{'chains':>7} {'kernel':>8} {'clock s':>8} {'processor s':>12} {'first s':>8} {'ratio':>6}")
    for chains in (1, 4):
        results = {name: [] for name in KERNELS}
        for _ in range(REPEATS):
            draws = {}
            for name, kernel in KERNELS.items():
                draws[name], times = run(model, kernel, chains)
                results[name].append(times)
            np.testing.assert_array_equal(*draws.values())
        medians = {name: np.median(times, axis=0) for name, times in results.items()}
        for name, (clock, processor) in medians.items():
            ratio = medians["PyMC"][0] / clock
            print(f"{chains:>7} {name:>8} {clock:>8.2f} {processor:>12.2f} {results[name][0][0]:>8.2f} {ratio:>6.1f}")


if __name__ == "__main__":
    main()
