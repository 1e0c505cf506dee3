"""Private linear regression where noise drowns the columns: what floor the eigenvalues of X'X need.

Rows: k columns uniform on [-1, 1], n = 1000, y = x'b + N(0, 1) clipped to [-5, 5], all coefficients -1 or all 1; no
intercept, epsilon split evenly. The floor is a share of the standard deviation of the noise in an entry of X'X. Printed
are coverage of the 95% lower limit of the largest coefficient (Monte Carlo error .22 / sqrt(TABLES) = .016) and the
median of its distance from the truth. A floor that is large shrinks coefficients to 0, past negative ones.

Run: python benchmarks/bench_extrema_floor.py
"""

from __future__ import annotations

import numpy as np

import pymc_dpdepth as dpd
from pymc_dpdepth.extrema import regression_sums

TABLES, REPLICATES, N, LARGEST = 200, 200, 1000, 5.0
SHARES = [0.0, 1 / 4, 1 / 2, 1.0, 2.0]


def main():
    """Print one line for each number of columns, epsilon and sign, with coverage and width for each floor."""
    print("k   epsilon  b    " + "".join(f"  floor {share:<5g}   " for share in SHARES))
    kept = regression_sums.FLOOR_SHARE
    for k in (5, 10):
        names = [f"x{j}" for j in range(1, k + 1)]
        bounds = {"x0": (-LARGEST, LARGEST)} | dict.fromkeys(names, (-1, 1))
        family = dpd.extrema.LinearRegression("x0", names, bounds=bounds, intercept=False)
        for epsilon in (0.3, 0.9):
            for b in (-1.0, 1.0):
                cells = []
                for share in SHARES:
                    regression_sums.FLOOR_SHARE = share
                    generator = np.random.default_rng(k)
                    lowers = []
                    for _ in range(TABLES):
                        columns = generator.uniform(-1, 1, (N, k))
                        rows = np.column_stack([columns.sum(axis=1) * b + generator.normal(size=N), columns])
                        ci = dpd.extrema_interval(rows, family=family, epsilon=epsilon, replicates=REPLICATES)
                        lowers.append(ci.lower)
                    gaps = b - np.array(lowers)
                    cells.append(f"{np.mean(gaps >= 0):6.3f} {np.median(gaps):8.2f} ")
                regression_sums.FLOOR_SHARE = kept
                print(f"{k:<3} {epsilon:<8} {b:<5}" + "".join(cells), flush=True)


if __name__ == "__main__":
    main()
