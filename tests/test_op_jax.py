"""The Ops compiled by JAX and by C against numba; what needs JAX skips where it is not installed."""

import subprocess
import sys
import textwrap
from importlib.util import find_spec

import numba
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

import pymc_dpdepth as dpd
from pymc_dpdepth.depths import aggregate
from pymc_dpdepth.mechanism import potential, set_up

ROWS = np.random.default_rng(5).normal(1.0, [1.0, 3.0], size=(40, 2))
ROWS[7] = ROWS[3]  # a tie
POINTS = [np.zeros(2), ROWS[3], np.array([0.4, 1.7]), np.array([400.0, -3e3]), np.array([1e300, -1e300])]
OBLIQUE = dpd.Directions.balanced(2, 6, seed=3)
# Sums of 40 terms of size 1 and products with beta, 10 to 100, hold 12 digits.
TOLERANCE = 1e-10


def closeness(theta, X):
    return -pt.mean(1.0 - pt.exp(-pt.sqrt(1.0 + pt.sum((X - theta) ** 2, axis=1))))


@numba.njit
def slope(theta, *prepared):
    """Return a made-up smooth objective and its gradient: a kernel that JAX can only call."""
    return np.exp(-(theta[0] ** 2)) * prepared[0][0, 0], np.array([-2 * theta[0] * np.exp(-(theta[0] ** 2)), 0.0]) * (
        prepared[0][0, 0]
    )


class Called(dpd.IntegratedDual):
    """A smooth depth of a user's own, with a numba kernel alone."""

    def kernel(self):
        return slope


SMOOTH = {
    "smoothed": dpd.IntegratedDual(smoothing=5.0, directions=OBLIQUE),
    "smoothed axes": dpd.IntegratedDual(smoothing=0.5),
    "spatial": dpd.Spatial(),
    "modified": dpd.ModifiedSpatial(),
    "custom": dpd.CustomObjective(closeness, sensitivity=lambda n, d: 1 / n),
    "called": Called(smoothing=1.0),
}
STEPS = {
    "halfspace": dpd.Halfspace(directions=OBLIQUE),
    "all directions": dpd.Halfspace(directions=None),
    "rank weighted": dpd.IntegratedRankWeighted(directions=OBLIQUE),
    "dual": dpd.IntegratedDual(directions=OBLIQUE),
    "simplicial": dpd.Simplicial(),
}


def graph(depth, rows=ROWS):
    """Return a free theta and the graph of beta * depth at it."""
    settings, _, clean = set_up("m", pm.Normal.dist(0, 3, shape=2), rows, depth=depth, epsilon=2.0)
    theta = pt.dvector("theta")
    return theta, potential(settings, theta, clean)


def value_and_gradient(depth, mode, rows=ROWS):
    theta, value = graph(depth, rows)
    return pytensor.function([theta], [value, pytensor.grad(value, theta)], mode=mode)


def traced(depth, rows=ROWS):
    """Return the JAX function of theta that the samplers of PyMC make: rows are constants in it."""
    jax_sampling = pytest.importorskip("pymc.sampling.jax")
    theta, value = graph(depth, rows)
    function = jax_sampling.get_jaxified_graph([theta], [value])
    return lambda theta: function(theta)[0]


# Values and gradients


BACKENDS = [
    pytest.param("JAX", marks=pytest.mark.skipif(find_spec("jax") is None, reason="no JAX")),
    pytest.param("CVM", marks=pytest.mark.skipif(not pytensor.config.cxx, reason="no C compiler")),
]


@pytest.mark.parametrize("mode", BACKENDS)
@pytest.mark.parametrize("name", SMOOTH)
def test_values_and_gradients_are_those_of_numba(name, mode):
    ours, theirs = (value_and_gradient(SMOOTH[name], m) for m in ("NUMBA", mode))
    for point in POINTS if name != "custom" else POINTS[:4]:  # squares of 1e300 overflow in an expression
        for expected, got in zip(ours(point), theirs(point), strict=True):
            assert np.isfinite(expected).all()
            np.testing.assert_allclose(got, expected, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("name", STEPS)
def test_step_depths_count_the_same_ties(name):
    pytest.importorskip("jax")
    theta, value = graph(STEPS[name])
    ours, theirs = (pytensor.function([theta], value, mode=mode) for mode in ("NUMBA", "JAX"))
    for point in [*POINTS, *ROWS[:10]]:
        assert float(ours(point)) == float(theirs(point))


@pytest.mark.parametrize("name", SMOOTH)
def test_jax_differentiates_what_it_compiled(name):
    jax = pytest.importorskip("jax")
    expected = value_and_gradient(SMOOTH[name], "NUMBA")
    function = traced(SMOOTH[name])
    compiled = jax.jit(jax.value_and_grad(function))
    forward = jax.jit(jax.jacfwd(function))
    for point in POINTS[:4]:
        value, gradient = expected(point)
        for got in (*compiled(point), forward(point)):
            reference = value if np.ndim(got) == 0 else gradient
            np.testing.assert_allclose(got, reference, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("name", [*SMOOTH, *STEPS])
def test_jax_maps_over_points(name):
    jax = pytest.importorskip("jax")
    depth, points = (SMOOTH | STEPS)[name], np.array([*POINTS[:4], *ROWS])
    theta, value = graph(depth)
    ours = pytensor.function([theta], value)
    mapped = jax.jit(jax.vmap(traced(depth)))(points)
    np.testing.assert_allclose(mapped, [ours(point) for point in points], rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("name", ["smoothed", "spatial", "modified"])
def test_second_derivatives_are_those_of_differences(name):
    jax = pytest.importorskip("jax")
    function = traced(SMOOTH[name])
    point, step = POINTS[2], 1e-5  # an error of step^2 times a fourth derivative, and rounding of 1e-13 / step
    gradient = jax.jit(jax.grad(function))
    differences = [(gradient(point + step * e) - gradient(point - step * e)) / (2 * step) for e in np.eye(2)]
    np.testing.assert_allclose(jax.hessian(function)(point), differences, atol=1e-6)


def test_a_gradient_that_is_wrong_by_one_percent_is_noticed(monkeypatch):
    pytest.importorskip("jax")
    from pymc_dpdepth import op_jax

    def wrong(theta, columns):
        value, gradient = op_jax.spatial_depth(theta, columns)
        return value, 1.01 * gradient

    kernel = dpd.Spatial().kernel()
    monkeypatch.setitem(op_jax.NATIVE, kernel, wrong)
    with pytest.raises(AssertionError):
        test_values_and_gradients_are_those_of_numba("spatial", "JAX")


def test_a_point_that_is_a_row_meets_it_after_standardising():
    """XLA turns a division by a constant into a product, which misses the row by one bit; see `op_jax._divided`."""
    jax = pytest.importorskip("jax")
    theta, value = graph(dpd.Spatial())
    ours = pytensor.function([theta], value)
    expected = [ours(row) for row in ROWS]  # a missed row moves one by beta / n = 0.5
    compiled, mapped = jax.jit(traced(dpd.Spatial())), jax.jit(jax.vmap(traced(dpd.Spatial())))
    np.testing.assert_allclose([compiled(row) for row in ROWS], expected, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(mapped(ROWS), expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("name", [*SMOOTH, *STEPS])
@pytest.mark.parametrize("rows", [ROWS[:0], ROWS[:1]], ids=["none", "one"])
def test_no_row_and_one_row(name, rows):
    pytest.importorskip("jax")
    if name == "called" or (name == "custom" and len(rows) == 0):
        pytest.skip("these need a row")
    theta, value = graph((SMOOTH | STEPS)[name], rows)
    ours, theirs = (pytensor.function([theta], value, mode=mode) for mode in ("NUMBA", "JAX"))
    for point in POINTS[:3]:
        np.testing.assert_allclose(theirs(point), ours(point), rtol=TOLERANCE, atol=TOLERANCE)


# Refusals


@pytest.mark.parametrize("name", STEPS)
def test_the_gradient_of_a_step_depth_is_refused_with_the_cures(name):
    jax = pytest.importorskip("jax")
    with pytest.raises(dpd.NotDifferentiableError) as caught:
        jax.jit(jax.grad(traced(STEPS[name])))(POINTS[0])
    for word in ("Slice", "smc", "sample_exact", "release", "smoothing", STEPS[name].name):
        assert word in str(caught.value)


def test_every_smooth_depth_of_the_package_is_written_in_jax():
    pytest.importorskip("jax")
    from pymc_dpdepth import op_jax

    kernels = {depth.resolve(2).kernel() for name, depth in SMOOTH.items() if name not in ("custom", "called")}
    assert kernels == set(op_jax.NATIVE)
    assert aggregate.mean_smoothed_depth in kernels


# Imports


def test_jax_is_imported_by_those_who_use_it():
    code = """
        import sys
        import numpy as np, pymc as pm, pymc_dpdepth as dpd
        before = "jax" in sys.modules
        with pm.Model() as model:
            location = pm.Normal("location", 0, 3, shape=2)
            dpd.exponential_mechanism("median", location, np.eye(2), depth=dpd.Spatial(), epsilon=1.0)
        model.compile_logp()({"location": np.zeros(2)})
        print(before, "jax" in sys.modules, "pymc_dpdepth.op_jax" in sys.modules)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["False"] * 3
