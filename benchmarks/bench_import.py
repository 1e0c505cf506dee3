"""What `import pymc_dpdepth` adds to `import pymc`.

Fresh processes, in turn; the figure is the median ratio of their CPU times for "import pymc, pymc_dpdepth" and "import
pymc". Touching every public name is shown too, since names load on first use.

Run: python benchmarks/bench_import.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys

RUNS = 9
TIMER = "import time; start = time.process_time(); {}; print(time.process_time() - start)"
BASE = "import pymc"
PACKAGE = "import pymc, pymc_dpdepth"
EVERYTHING = "import pymc, pymc_dpdepth as dpd; [getattr(dpd, name) for name in dpd.__all__]"


def seconds(statement):
    """Return the CPU seconds of a statement in a fresh process."""
    command = [sys.executable, "-c", TIMER.format(statement)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    """Print the ratios."""
    rows = [[seconds(statement) for statement in (BASE, PACKAGE, EVERYTHING)] for _ in range(RUNS + 1)][1:]
    print(f"import pymc: {statistics.median(base for base, _, _ in rows):.2f} s")
    print(f"with pymc_dpdepth / without: {statistics.median(p / b for b, p, _ in rows):.3f}   (asked: at most 1.15)")
    print(f"with all its names touched / without: {statistics.median(e / b for b, _, e in rows):.3f}")


if __name__ == "__main__":
    main()
