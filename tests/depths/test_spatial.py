"""Spatial depths against plain Python, their sensitivities under attack, and what too small a sensitivity breaks."""

import itertools
import json
import math
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pymc as pm
import pytest
from attacks import breaks, exhaustive

import pymc_dpdepth as dpd
from pymc_dpdepth.depths import ModifiedSpatial, Spatial
from pymc_dpdepth.depths.spatial_kernels import BLOCK, CLAMP
from pymc_dpdepth.depths.threads import WORTH_A_THREAD

BOTH = [Spatial(), ModifiedSpatial()]
FACTS = json.loads((Path(__file__).parent / "spatial_reference.json").read_text())["data"]
# Sums of n <= 50 unit vectors: n roundings of 2^-53 in the sum and as many in the terms.
CLOSE = 1e-13


def plain(point, rows, squared):
    """Return the depth by the formula, with exactly rounded sums."""
    units = []
    for row in rows:
        difference = [Fraction(float(a)) - Fraction(float(b)) for a, b in zip(point, row, strict=True)]
        largest = max(abs(x) for x in difference)
        if largest == 0:
            units.append([0.0] * len(point))
            continue
        scaled = [float(x / largest) for x in difference]
        norm = math.hypot(*scaled)
        units.append([x / norm for x in scaled])
    mean = [math.fsum(column) / len(rows) for column in zip(*units, strict=True)]
    length = math.hypot(*mean)
    return 1.0 - (length**2 if squared else length)


@pytest.mark.parametrize("depth", BOTH, ids=lambda depth: depth.name)
@pytest.mark.parametrize("d", [1, 2, 3, 10])
def test_values_on_ties_points_at_rows_and_far_scales(depth, d):
    generator = np.random.default_rng(d)
    for n in (1, 2, 3, 20):
        rows = generator.integers(-2, 3, size=(n, d)).astype(float)
        points = np.concatenate([rows[:3], generator.normal(size=(1, d)), np.full((1, d), 100.0)])
        for scale in (1.0, 1e-9, 2.0**40, 1e-300, 1e300):
            found = depth.evaluate(points * scale, rows * scale)
            expected = [plain(p * scale, rows * scale, depth.name == "modified_spatial") for p in points]
            np.testing.assert_allclose(found, np.maximum(expected, 0.0), rtol=0, atol=CLOSE)


def test_known_values():
    # A peer drops rows whose difference to the point sums to zero, and so gives another number here.
    assert Spatial().evaluate([[0, 0]], [[1, -1], [2, -2], [3, 1], [0, 5]])[0] == pytest.approx(0.4088, abs=5e-5)
    square = [[0, 0], [1, 0], [1, 1], [0, 1]]
    np.testing.assert_allclose(Spatial().evaluate(square, square), 1 - (1 + math.sqrt(2)) / 4, rtol=0, atol=CLOSE)
    assert Spatial().evaluate([[0.5, 0.5]], square)[0] == pytest.approx(1.0, abs=CLOSE)
    # A row that is there three times counts three times.
    once, thrice = (Spatial().evaluate([[5.0]], [[x] for x in rows])[0] for rows in ([0, 10, 20], [0, 0, 0, 10, 20]))
    assert (once, thrice) == (pytest.approx(2 / 3), pytest.approx(4 / 5))
    assert Spatial().evaluate([[1.0, 7.0]], [[0.0, 7.0], [3.0, 7.0]])[0] == 1.0  # a constant column


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact["dataset"])
def test_values_of_real_tables(fact):
    rows = np.array(fact["rows"], dtype=float)
    points = np.vstack([rows, rows.mean(axis=0), np.median(rows, axis=0)])
    expected = [*fact["at_each_row"], fact["at_mean"], fact["at_coordinatewise_median"]]
    np.testing.assert_allclose(Spatial().evaluate(points, rows), expected, rtol=0, atol=CLOSE)
    squared = 1.0 - (1.0 - np.array(expected)) ** 2
    np.testing.assert_allclose(ModifiedSpatial().evaluate(points, rows), squared, rtol=0, atol=CLOSE)


@pytest.mark.parametrize("depth", BOTH, ids=lambda depth: depth.name)
def test_differences_at_both_ends_of_the_doubles(depth):
    smallest, largest = 5e-324, CLAMP
    rows = np.array([[0.0, 0.0], [1.0, 1.0], [smallest, 3 * smallest], [-largest, largest], [1e160, 1.0]])
    points = np.concatenate([rows, [[smallest, 0.0], [1e-200, -2e-200], [largest, largest / 2]]])
    expected = [plain(point, rows, depth.name == "modified_spatial") for point in points]
    values, gradients = depth.value_and_gradient(points, rows)
    np.testing.assert_allclose(values, expected, rtol=0, atol=CLOSE)
    assert np.isfinite(gradients).all()
    # In many dimensions the length of a difference may overflow where no entry of it does.
    far = np.full((1, 100), np.finfo(float).max)
    assert depth.evaluate(far, -far)[0] == pytest.approx(0.0, abs=CLOSE)


@pytest.mark.parametrize("depth", BOTH, ids=lambda depth: depth.name)
def test_entries_beyond_the_clamp_count_as_the_clamp(depth):
    far = np.array([[1.2e308, 0.0], [-1.7e308, 1.0], [1.5e307, -CLAMP]])
    near = np.clip(far, -CLAMP, CLAMP)
    assert np.array_equal(depth.evaluate(far, far[:2]), depth.evaluate(near, near[:2]))
    assert depth.evaluate([[1.2e308]], [[1.7e308]])[0] == 1.0 and depth.evaluate([[CLAMP / 2]], [[1.7e308]])[0] == 0.0


@pytest.mark.parametrize("depth", BOTH, ids=lambda depth: depth.name)
def test_gradient_at_any_scale(depth):
    # D(c x; c X) = D(x; X), so that the gradient at scale c is that at scale 1 over c.
    generator = np.random.default_rng(8)
    rows, points = generator.integers(-3, 4, size=(300, 3)).astype(float), generator.normal(size=(4, 3))
    points[0] = rows[0]
    _, expected = depth.value_and_gradient(points, rows)
    for exponent in (-480, -400, -40, 40, 400, 480, 1000):
        _, found = depth.value_and_gradient(points * 2.0**exponent, rows * 2.0**exponent)
        np.testing.assert_allclose(found * 2.0**exponent, expected, rtol=1e-12, atol=CLOSE)


@pytest.mark.parametrize("depth", BOTH, ids=lambda depth: depth.name)
def test_many_points_give_what_one_gives(depth):
    # Enough work for several threads, 8 entries being one visit, with numbers of rows around the size of a block.
    generator = np.random.default_rng(9)
    for n in (1, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 7):
        rows = generator.integers(-5, 6, size=(n, 3)).astype(float)
        points = np.resize(generator.integers(-5, 6, size=(500, 3)), (8 * WORTH_A_THREAD // (n * 3) + 2, 3)).astype(
            float
        )
        values, gradients = depth.value_and_gradient(points, rows)
        np.testing.assert_array_equal(depth.evaluate(points, rows), values)
        for i in (0, len(points) - 1):
            value, gradient = depth.kernel()(points[i], *depth.prepare(rows))
            assert value == values[i] == pytest.approx(plain(points[i], rows, depth is BOTH[1]), abs=CLOSE)
            np.testing.assert_array_equal(gradient, gradients[i])


FORKED = """
import multiprocessing, warnings
import numpy as np
from pymc_dpdepth.depths import Spatial

warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside other threads; those here have ended
rows = np.random.default_rng(0).normal(size=(2000, 3))

def evaluate(i):
    return Spatial().evaluate(rows, rows).sum()

if __name__ == "__main__":
    here = evaluate(0)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(evaluate, range(2)).get(timeout=100) == [here, here]
    print("done")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked safely on Linux alone")
def test_a_forked_process_can_evaluate(tmp_path):
    script = tmp_path / "forked.py"
    script.write_text(FORKED)
    result = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=200)
    assert result.stdout.strip() == "done", result.stderr


@pytest.mark.parametrize("depth", BOTH, ids=lambda depth: depth.name)
def test_bad_input_is_named(depth):
    rows = np.zeros((3, 2))
    for points, text in (([[np.nan, 0]], "finite"), ([0.0, 0.0], "points"), ([[0.0]], "columns")):
        with pytest.raises(ValueError, match=text):
            depth.evaluate(points, rows)
    assert depth.evaluate([[1.0]], np.empty((0, 1)))[0] == 0.0
    with pytest.raises(TypeError, match="directions"):
        depth.with_directions("auto")


@pytest.mark.parametrize("depth", BOTH, ids=lambda depth: depth.name)
def test_gradient_is_the_derivative(depth):
    generator = np.random.default_rng(5)
    for d in (1, 2, 6):
        rows, points = generator.normal(size=(17, d)), generator.normal(size=(5, d))
        values, gradients = depth.value_and_gradient(points, rows)
        step = (
            1e-6  # differences err by step^2 f''' / 6 + 2^-52 / step, both below 1e-8 for unit-scale rows off the point
        )
        for j in range(d):
            moved = np.eye(d)[j] * step
            slope = (depth.evaluate(points + moved, rows) - depth.evaluate(points - moved, rows)) / (2 * step)
            np.testing.assert_allclose(gradients[:, j], slope, rtol=0, atol=1e-6)
        np.testing.assert_array_equal(values, depth.evaluate(points, rows))


@pytest.mark.parametrize("depth", BOTH, ids=lambda depth: depth.name)
def test_gradient_is_finite_at_rows_and_at_the_median(depth):
    rows = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.0, 0.0]])
    _, gradients = depth.value_and_gradient(np.concatenate([rows, [[0.5, 0.5]]]), rows)
    assert np.isfinite(gradients).all()
    _, gradients = depth.value_and_gradient([[0.5, 0.5]], rows[:4])
    np.testing.assert_allclose(gradients, 0.0, rtol=0, atol=CLOSE)


def claims(depth, n):
    """Return the exact sensitivity."""
    if n == 1:
        return Fraction(1)
    return Fraction(2, n) if isinstance(depth, Spatial) else Fraction(4 * (n - 1), n**2)


LINE = np.arange(-2.0, 3.0)[:, None]
PLANE = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 2.0], [3.0, 3.0]])


@pytest.mark.parametrize("depth", BOTH, ids=lambda depth: depth.name)
@pytest.mark.parametrize(("n", "rows"), [*((n, LINE) for n in range(1, 7)), *((n, PLANE) for n in range(1, 5))])
def test_sensitivity_is_reached_and_never_passed(depth, n, rows):
    points = np.concatenate([rows, rows + 0.5, rows - 0.25])
    worst = exhaustive(depth, n, rows, points)
    claim = claims(depth, n)
    assert depth.sensitivity(n, rows.shape[1]) == pytest.approx(float(claim), rel=1e-15)
    assert not breaks(worst, claim)
    assert breaks(worst, claim / Fraction(105, 100))


@pytest.mark.parametrize("depth", BOTH, ids=lambda depth: depth.name)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_random_search_finds_nothing_worse(depth, d):
    generator = np.random.default_rng(d)
    for n in (1, 2, 5, 30):
        for _ in range(60):
            rows = generator.standard_cauchy(size=(n, d))
            if generator.random() < 0.5:
                rows[:] = rows[0]  # all in one place: the sum of the others is as long as it can be
            other = rows.copy()
            other[generator.integers(n)] = generator.standard_cauchy(size=d) * 10.0 ** generator.integers(-3, 4)
            points = np.concatenate([rows[:3], other[:3], generator.standard_cauchy(size=(20, d))])
            change = np.abs(depth.evaluate(points, rows) - depth.evaluate(points, other)).max()
            assert change <= depth.sensitivity(n, d) + CLOSE


def half_line_probability(rows, beta, depth):
    """Return P(theta > 0) under the prior U[-1, 1], by exact integration: the depth is constant between rows."""
    edges = np.unique(np.concatenate([[-1.0, 0.0, 1.0], rows[np.abs(rows) < 1.0]]))
    middles = 0.5 * (edges[1:] + edges[:-1])
    weights = np.diff(edges) * np.exp(beta * depth.evaluate(middles[:, None], rows[:, None]))
    return weights[middles > 0].sum() / weights.sum()


X, Y = (np.array([0.0] * 99 + [far]) for far in (1.5, -1.5))


def test_the_printed_sensitivity_of_modified_spatial_depth_is_not_private():
    # n = 100, d = 1, epsilon = 1. With the printed 1/n the log ratio is 1.98; the proved 4 (n-1)/n^2 keeps it below 1.
    printed = half_line_probability(X, 1.0 / (2 * 1 / 100), ModifiedSpatial())
    assert printed == pytest.approx(0.8787, abs=5e-5)
    other = half_line_probability(Y, 1.0 / (2 * 1 / 100), ModifiedSpatial())
    assert other == pytest.approx(0.1213, abs=5e-5)
    assert math.log(printed / other) == pytest.approx(1.98, abs=5e-3)
    beta = 1.0 / (2 * ModifiedSpatial().sensitivity(100, 1))
    ours = [half_line_probability(rows, beta, ModifiedSpatial()) for rows in (X, Y)]
    assert abs(math.log(ours[0] / ours[1])) <= 1.0


def test_the_printed_sensitivity_of_spatial_depth_is_not_private_in_one_dimension():
    # The same tables: the printed d/n is half of 2/n, so beta is twice what it may be.
    printed = [half_line_probability(rows, 1.0 / (2 * 1 / 100), Spatial()) for rows in (X, Y)]
    assert abs(math.log(printed[0] / printed[1])) > 1.0
    beta = 1.0 / (2 * Spatial().sensitivity(100, 1))
    ours = [half_line_probability(rows, beta, Spatial()) for rows in (X, Y)]
    assert abs(math.log(ours[0] / ours[1])) <= 1.0


@pytest.mark.parametrize("depth", BOTH, ids=lambda depth: depth.name)
def test_exact_privacy_loss_on_the_line(depth):
    # All neighbours among few tables, cell by cell: the log ratio of the densities is at most epsilon.
    epsilon, places = 1.0, [-1.5, -0.5, 0.0, 0.3, 1.5]
    cells = np.linspace(-1, 1, 41)
    cells = 0.5 * (cells[1:] + cells[:-1])
    for n in (1, 2, 3):
        beta = epsilon / (2 * depth.sensitivity(n, 1))
        logs = {}
        for rows in itertools.combinations_with_replacement(places, n):
            exponent = beta * depth.evaluate(cells[:, None], np.array(rows)[:, None])
            logs[rows] = exponent - np.log(np.exp(exponent).mean())
        worst = 0.0
        for rows in logs:
            for i, new in itertools.product(range(n), places):
                other = tuple(sorted((*rows[:i], new, *rows[i + 1 :])))
                worst = max(worst, np.abs(logs[rows] - logs[other]).max())
        assert worst <= epsilon + 1e-12


def test_a_mechanism_with_spatial_depth():
    rows = np.random.default_rng(0).normal([1000.0, 0.001], [50.0, 0.0001], size=(40, 2))
    with pm.Model() as model:
        location = pm.Normal("location", [900.0, 0.0], [200.0, 0.01], shape=2)
        dpd.exponential_mechanism("median", location, rows, depth="spatial", epsilon=8.0)
        # Units do not decide: rows and location are standardised by the prior.
        logp, dlogp = model.compile_logp(), model.compile_dlogp()
        point, step = np.array([990.0, 0.0009]), np.array([1e-3, 1e-8])
        slope = [
            (logp({"location": point + s}) - logp({"location": point - s})) / (2 * s[j])
            for j, s in enumerate(np.diag(step))
        ]
        np.testing.assert_allclose(dlogp({"location": point}), slope, rtol=1e-5)
        assert np.isfinite(dlogp({"location": rows[0]})).all()
        idata = pm.sample(
            draws=100,
            tune=100,
            chains=1,
            cores=1,
            nuts_sampler="pymc",
            progressbar=False,
            random_seed=[1],
            compute_convergence_checks=False,
        )
    assert np.isfinite(idata.posterior["location"].values).all()
    assert dpd.release(model).sampler == "branch_and_bound"


def test_a_private_median_by_spatial_depth():
    rows = np.random.default_rng(1).normal([1000.0, 0.001], [100.0, 0.005], size=(200, 2))
    asked = {"epsilon": 8.0, "prior": pm.Normal.dist([900.0, 0.0], [200.0, 0.01], shape=2), "depth": "spatial"}
    exact = dpd.private_median(rows, **asked)
    assert (exact.guarantee, exact.sampler) == ("float64", "branch_and_bound")
    with pytest.raises(dpd.InexactReleaseError):
        dpd.private_median(rows, sampler="nuts", **asked)
    with pytest.warns(dpd.ApproximateSamplingWarning):
        chain = dpd.private_median(rows, sampler="nuts", accept_asymptotic=True, progressbar=False, **asked)
    assert chain.guarantee == "asymptotic"
    # beta = epsilon n / 4 = 400: a point one standard deviation of the rows off, some 0.4 less deep, has e^-160 times
    # the density of the middle.
    for release in (exact, chain):
        error = (release.value.values - [1000.0, 0.001]) / [100.0, 0.005]
        assert np.abs(error).max() < 1.0
