"""Coverage and width of the limits for the largest parameter, beside those of other methods.

Each table draws rows, releases noisy sums once with real noise, and takes all limits from the same bootstrap. A share
of REPETITIONS has a Monte Carlo error of at most .016, and of .007 at .95. "width" is the mean distance of the limit
from the truth, on the covered side positive. "no noise in the bootstrap" shows why replicates need fresh noise.

Run: python benchmarks/coverage.py [gaussian|regression|other|cv|boundary|silent ...] [--repetitions 1000]
"""

from __future__ import annotations

# ruff: noqa: E402
# numba looks for a package of this file's name, and Python looks for it beside the script that runs, so first here.
if __name__ != "__main__":
    raise ImportError("This is a script, not the package coverage.")

import argparse
from fractions import Fraction

import numpy as np

import pymc_dpdepth as dpd
from pymc_dpdepth.extrema.bootstrap import bootstrap_estimates, point_estimates
from pymc_dpdepth.extrema.limits import (
    bonferroni_limits,
    extremum_limits,
    largest_replicates,
    naive_limits,
    plain_limits,
    upper_quantile,
)
from pymc_dpdepth.extrema.noisy_sums import NoisySums, ReleasedStatistic
from pymc_dpdepth.privacy.noise import laplace_noise

REPETITIONS, REPLICATES, K = 1000, 500, 5
ALPHA = Fraction(1, 20)
CORRECTIONS = {"r = 1/30": 1 / 30, "r = 1/10": 1 / 10, "r = 1/5": 1 / 5, "r = 1/3": 1 / 3}


def lower_limits(ci, family):
    """Return the lower limit of each method, and the upper limits, from one release."""
    estimates, replicates, n = ci.estimates.values, ci.bootstrap_estimates, ci.n
    limits = {"naive": naive_limits(estimates, replicates, ALPHA, "lower").lower}
    limits["uncorrected"] = extremum_limits(estimates, replicates, n, None, ALPHA, "lower").lower
    for name, r in CORRECTIONS.items():
        limits[name] = extremum_limits(estimates, replicates, n, r, ALPHA, "lower").lower
    limits["Bonferroni"] = bonferroni_limits(estimates, replicates, ALPHA, "lower").lower
    silent = bootstrap_estimates(family, ci.released.pool(), REPLICATES, np.random.default_rng(0), copies=0)
    for name, r in {"no noise in the bootstrap, uncorrected": None, "the same, r = 1/10": 0.1}.items():
        limits[name] = extremum_limits(estimates, silent, n, r, ALPHA, "lower").lower
    return limits


def upper_limits(ci, family):
    """Return the upper limit of each method; the mirrored quantiles of the bootstrap are not valid."""
    estimates, replicates, n = ci.estimates.values, ci.bootstrap_estimates, ci.n
    limits = {
        "largest of the single upper limits": extremum_limits(estimates, replicates, n, 0.1, ALPHA, "upper").upper,
        "mirrored quantile, uncorrected": plain_limits(estimates, replicates, ALPHA, "upper").upper,
    }
    largest = estimates.max()
    for name, r in CORRECTIONS.items():
        below = upper_quantile(largest - largest_replicates(estimates, replicates, n, r), ALPHA)
        limits[f"mirrored quantile, {name}"] = largest + float(below)
    return limits


def table(title, family, epsilon, draw, truth, repetitions, limits=lower_limits, side=1.0, **options):
    """Print coverage and mean width of each method; `side` is 1 for lower limits."""
    found, reduced = {}, []
    for repetition in range(repetitions):
        rows = draw(np.random.default_rng(repetition))
        ci = dpd.extrema_interval(
            rows, family=family, epsilon=epsilon, replicates=REPLICATES, bootstrap_seed=repetition, **options
        )
        for name, limit in limits(ci, family).items():
            found.setdefault(name, []).append(limit)
        reduced.append(ci.estimate)
    print(f"\n{title}; bias-reduced estimate less the truth {np.mean(reduced) - truth:+.4f}")
    print(f"{'':40} coverage   width")
    for name, values in found.items():
        distance = side * (truth - np.array(values))
        print(f"{name:40} {np.mean(distance >= 0):8.3f} {np.mean(distance):7.4f}", flush=True)


def gaussian(repetitions):
    """Rows of N(mu, I), clipped at 4."""
    family, epsilon = dpd.extrema.Gaussian(bounds=(-4, 4)), {"mean": 1.0, "covariance": 1.0}
    for means, name in [(np.zeros(K), "equal means"), (np.linspace(0, 1, K), "means 0, .25, .5, .75, 1")]:
        for n in (1000, 5000):
            title = f"Gaussian, k = {K}, {name}, n = {n}, epsilon = 1 + 1"
            table(title, family, epsilon, lambda g, n=n, m=means: m + g.normal(size=(n, K)), means.max(), repetitions)


def regression(repetitions):
    """Rows x of U[-1, 1]^5, y = x'b + N(0, 1), clipped at 5."""
    names, y = [f"x{j}" for j in range(K)], f"x{K}"
    bounds = dict.fromkeys(names, (-1, 1)) | {y: (-5, 5)}
    for intercept, variance in ((False, "residual"), (False, "moments"), (True, "residual")):
        family = dpd.extrema.LinearRegression(y, names, bounds=bounds, intercept=intercept, variance=variance)
        epsilon = dict(zip(family.statistic_names, (2.0, 2.0, 1.0), strict=True))
        for coefficients, name in [(np.zeros(K), "equal coefficients"), (np.linspace(0, 1, K), "0, .25, .5, .75, 1")]:

            def draw(generator, b=coefficients):
                X = generator.uniform(-1, 1, size=(1000, K))
                return np.column_stack([X, X @ b + generator.normal(size=1000)])

            kind = f"{variance}, {'with' if intercept else 'no'} intercept"
            title = f"Regression ({kind}), k = {K}, {name}, n = 1000, epsilon = 2 + 2 + 1"
            table(title, family, epsilon, draw, coefficients.max(), repetitions)


def other(repetitions):
    """Upper limits, and proportions and rates."""
    family, epsilon = dpd.extrema.Gaussian(bounds=(-4, 4)), {"mean": 1.0, "covariance": 1.0}
    for means, name in [(np.zeros(K), "equal means"), (np.linspace(0, 1, K), "means 0, .25, .5, .75, 1")]:
        title = f"Upper limits: Gaussian, k = {K}, {name}, n = 1000, epsilon = 1 + 1"
        table(
            title,
            family,
            epsilon,
            lambda g, m=means: m + g.normal(size=(1000, K)),
            means.max(),
            repetitions,
            upper_limits,
            -1.0,
        )
    table(
        f"Bernoulli, k = {K}, all .3, n = 1000, epsilon = 1",
        dpd.extrema.Bernoulli(),
        1.0,
        lambda g: g.binomial(1, 0.3, size=(1000, K)).astype(float),
        0.3,
        repetitions,
    )
    table(
        f"Poisson, k = {K}, all 2, counts up to 15, n = 1000, epsilon = 1",
        dpd.extrema.Poisson(bounds=(0, 15)),
        1.0,
        lambda g: g.poisson(2.0, size=(1000, K)).astype(float),
        2.0,
        repetitions,
    )


def cv(repetitions):
    """Let cross-validation choose the correction."""
    family, epsilon = dpd.extrema.Gaussian(bounds=(-4, 4)), {"mean": 1.0, "covariance": 1.0}
    for means, name in [(np.zeros(K), "equal means"), (np.linspace(0, 1, K), "means 0, .25, .5, .75, 1")]:
        for final in ("sum", "fresh"):
            title = f'correction="cv", final="{final}": Gaussian, k = {K}, {name}, n = 5000, epsilon = 1 + 1'

            def chosen(ci, family):
                corrections.append(ci.correction)
                return {'"cv"': ci.lower}

            corrections = []
            table(
                title,
                family,
                epsilon,
                lambda g, m=means: m + g.normal(size=(5000, K)),
                means.max(),
                repetitions,
                chosen,
                correction="cv",
                final=final,
            )
            values, times = np.unique(corrections, return_counts=True)
            print("chosen r:", {f"{r:.3f}": int(count) for r, count in zip(values, times, strict=True)})


def covered(family, epsilon, draw, truth, repetitions, extremum="max"):
    """Return coverage and mean width of the lower and of the upper limit, each at 95%, as text.

    Sums get noise of the law of a release, from NumPy: with so many cells a release for each table would take hours.
    """
    generator, found = np.random.default_rng(1), []
    for _ in range(repetitions):
        rows = draw(generator).astype(float)
        released = {}
        for one in family.statistics(len(rows), [f"x{j}" for j in range(rows.shape[1])], {}):
            noise = laplace_noise(one.sensitivity, epsilon)
            sums = family.counts(rows, one, {}) + noise.simulate((1, one.size), generator)
            released[one.name] = ReleasedStatistic(one.grid, one.sensitivity, noise, sums * one.grid)
        pooled = NoisySums((len(rows),), released).pool()
        estimates = point_estimates(family, pooled)
        replicates = bootstrap_estimates(family, pooled, REPLICATES, generator)
        sign = 1.0 if extremum == "max" else -1.0
        limits = [
            getattr(extremum_limits(sign * estimates, sign * replicates, len(rows), 0.1, ALPHA, side), side)
            for side in ("lower", "upper")
        ]
        found.append(limits if extremum == "max" else [-limit for limit in reversed(limits)])
    below, above = (np.array(found) - truth).T * np.array([[-1], [1]])
    return "  ".join(f"{np.mean(side >= 0):.3f} {np.mean(side):.4f}" for side in (below, above))


def boundary(repetitions):
    """Proportions and rates near their bounds, where the noise is small beside a count, too."""
    print("\nLower limit: coverage, width; upper limit: coverage, width. n = 1000, r = 1/10.")
    for name, shares in (("five equal p", np.ones(K)), ("p ahead of four of p / 2", np.array([1, 0.5, 0.5, 0.5, 0.5]))):
        for p in (0.003, 0.3, 0.9, 0.99, 0.997, 0.999):
            for epsilon in (1.0, 5.0, 20.0, 1e6):
                family = dpd.extrema.Bernoulli()
                values = covered(family, epsilon, lambda g, p=p * shares: g.random((1000, K)) < p, p, repetitions)
                print(f"Bernoulli, {name} = {p}, epsilon = {epsilon:g}".ljust(60), values, flush=True)
    sizes, codes = dict.fromkeys(range(6), 500), np.repeat(np.arange(6), 500)
    groups = {"by": "x1", "sizes": sizes}
    for epsilon in (1.0, 2.0, 5.0, 1e6):
        for family, p in ((dpd.extrema.Bernoulli, 0.004), (dpd.extrema.Poisson, 0.01)):
            binary = family is dpd.extrema.Bernoulli
            family = family("x0", **groups) if binary else family("x0", bounds=(0, 3), **groups)

            def draw(generator, p=p, binary=binary):
                values = generator.random(3000) < p if binary else generator.poisson(p, 3000)
                return np.column_stack([values, codes])

            title = f"{family.name}, least of six groups of 500, all {p}, epsilon = {epsilon:g}"
            print(title.ljust(60), covered(family, epsilon, draw, p, repetitions, "min"), flush=True)


def silent(repetitions):
    """Five equal parameters without any noise, ten times as many tables: what the correction, skew and n leave."""
    print("\nCoverage without noise of lower limits with " + ", ".join(CORRECTIONS))
    for n in (1000, 5000, 100_000):
        for p in (None, 0.1, 0.3, 0.5, 0.7, 0.9):
            family, generator, hits = dpd.extrema.Bernoulli(), np.random.default_rng(n), np.zeros(len(CORRECTIONS))
            for _ in range(10 * repetitions):
                if p is None:
                    estimates = generator.normal(size=K) / np.sqrt(n)
                    replicates = estimates + generator.normal(size=(REPLICATES, K)) / np.sqrt(n)
                else:
                    sums = {"count": generator.binomial(n, p, K).astype(float)}
                    estimates = family.estimates(sums, n, {})
                    drawn = family.simulate(family.model(sums, n, {}), n, REPLICATES, generator)
                    replicates = family.estimates(drawn, n, {})
                lower = [
                    extremum_limits(estimates, replicates, n, r, ALPHA, "lower").lower for r in CORRECTIONS.values()
                ]
                hits += np.array(lower) <= (p or 0.0)
            kind = "normal" if p is None else f"Bernoulli({p})"
            print(f"n = {n}, {kind}".ljust(30), *(f"{share:.3f}" for share in hits / (10 * repetitions)), flush=True)


TABLES = {
    "gaussian": gaussian,
    "regression": regression,
    "other": other,
    "cv": cv,
    "boundary": boundary,
    "silent": silent,
}


def main():
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    asked = parser.parse_args()
    for name in asked.tables:
        TABLES[name](asked.repetitions)


if __name__ == "__main__":
    main()
