import importlib
import sys

import cloudpickle
import numba
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.model.fgraph import clone_model
from pytensor.compile.mode import Mode
from pytensor.gradient import verify_grad
from pytensor.printing import pprint

import pymc_dpdepth as dpd
from pymc_dpdepth import op
from pymc_dpdepth.mechanism import potential, read_mechanisms, set_up
from pymc_dpdepth.op import DepthOp

ROWS = np.array([[0.31, -1.2], [0.31, 0.4], [-2.07, 0.9], [1.44, 2.3], [0.05, -0.6]])
OTHER = ROWS[:, ::-1] * 1.7 - 0.2  # same shape, other numbers
POINTS = np.array([[0.0, 0.0], [0.31, 0.4], [-2.07, 0.9], [40.0, -30.0]])
SMOOTH = dpd.IntegratedDual(smoothing=2.0, directions=dpd.Directions.uniform(2, 5, seed=1))
STEPS = [
    dpd.Halfspace("axes"),
    dpd.Halfspace(directions=dpd.Directions.balanced(2, 4, seed=3)),
    dpd.IntegratedRankWeighted(directions=dpd.Directions.orthonormal(2, seed=2)),
    dpd.IntegratedDual(directions=dpd.Directions.uniform(2, 5, seed=1)),
]
# One mode for each way of evaluation: compiled by numba, and `perform` from Python.
MODES = {"numba": Mode(linker="numba"), "python": Mode(linker="py")}
C_MODE = pytest.param("cvm", marks=pytest.mark.skipif(not pytensor.config.cxx, reason="no C compiler"))


def closeness(theta, X):
    return -pt.mean(pt.minimum(pt.sqrt(pt.sum((X - theta) ** 2, axis=1)), 1.0))


def squares(theta, X):
    return -pt.mean(pt.minimum(pt.sum((X - theta) ** 2, axis=1), 1.0))


def objective(expression=closeness):
    return dpd.CustomObjective(expression, sensitivity=lambda n, d: 1 / n)


def graph(depth, rows=ROWS, epsilon=1.5):
    """Return a free theta, the graph of beta * depth at it, and the settings."""
    settings, _, clean = set_up("m", pm.Normal.dist(0, 3, shape=2), rows, depth=depth, epsilon=epsilon)
    theta = pt.dvector("theta")
    return theta, potential(settings, theta, clean), settings


# Values and gradients


@pytest.mark.parametrize("depth", [*STEPS, SMOOTH], ids=str)
def test_the_value_is_beta_times_the_depth_of_standardised_rows(depth):
    theta, value, settings = graph(depth)
    function = pytensor.function([theta], value)
    center, scale = np.array(settings.center), np.array(settings.scale)
    expected = settings.beta * depth.evaluate((POINTS - center) / scale, (ROWS - center) / scale)
    # A step depth is the same count in both: points that are rows themselves must hit every tie.
    tolerance = 1e-13 if depth.differentiable else 0
    np.testing.assert_allclose([function(point) for point in POINTS], expected, rtol=tolerance, atol=0)
    assert settings.beta == 1.5 / (2 * depth.sensitivity(5, 2))


@pytest.mark.parametrize("mode", [*MODES.values(), C_MODE], ids=[*MODES, "c"])
@pytest.mark.parametrize("depth", [SMOOTH, objective()], ids=["smooth", "custom"])
def test_gradients_agree_with_differences(depth, mode):
    _, _, settings = graph(depth)
    point, rng = [np.array([0.2, -0.3])], np.random.default_rng(0)
    verify_grad(lambda theta: potential(settings, theta, ROWS), point, rng=rng, n_tests=1, mode=mode)


def test_a_gradient_that_is_wrong_by_one_percent_is_noticed(monkeypatch):
    right = DepthOp.pullback
    monkeypatch.setattr(DepthOp, "pullback", lambda *args: [1.01 * right(*args)[0], *right(*args)[1:]])
    _, _, settings = graph(SMOOTH)
    with pytest.raises(pytensor.gradient.GradientError):
        point, rng = [np.array([0.2, -0.3])], np.random.default_rng(0)
        verify_grad(lambda theta: potential(settings, theta, ROWS), point, rng=rng)


@pytest.mark.parametrize("depth", [STEPS[1], SMOOTH, objective()], ids=["step", "smooth", "custom"])
def test_backends_agree(model_of, depth):
    model = model_of(ROWS, depth)
    modes = [*MODES.values()] + (["CVM"] if pytensor.config.cxx else [])
    results = []
    for mode in modes:
        logp = model.compile_logp(mode=mode)
        results.append([logp({"location": point}) for point in POINTS])
    np.testing.assert_allclose(results[1:], results[:1] * (len(modes) - 1), rtol=0, atol=1e-10)


def test_the_gradient_of_a_model_is_in_the_user_units(model_of):
    model = model_of(ROWS, SMOOTH, mu=1.0, sigma=[2.0, 30.0])
    logp, gradient = model.compile_logp(), model.compile_dlogp()
    for point in POINTS[:3]:
        step = 1e-5  # central differences: error about step^2 = 1e-10 times a third derivative of order 1
        differences = [
            (logp({"location": point + step * e}) - logp({"location": point - step * e})) / (2 * step)
            for e in np.eye(2)
        ]
        np.testing.assert_allclose(gradient({"location": point}), differences, rtol=0, atol=1e-7)


def test_a_second_derivative_is_refused():
    theta, value, _ = graph(SMOOTH)
    gradient = pytensor.grad(value, theta)
    with pytest.raises(dpd.NotDifferentiableError, match="second"):
        pytensor.grad(gradient.sum(), theta)


def make_residual():
    """Return a kernel without options: 1 + 1e16 rounds to 1e16, so it is 0 at 1; where sums are reordered it is 1."""

    @numba.njit
    def residual(theta, *prepared):
        return (theta[0] + 1e16) - 1e16

    return residual


class ResidualDepth(dpd.Halfspace):
    """A depth whose kernel shows how it was compiled."""

    residual = make_residual()

    def kernel(self):
        return self.residual


def test_kernels_in_a_graph_keep_the_order_of_their_arithmetic():
    """Numba hands a caller's fastmath down to functions that do not set it, and PyTensor's functions have it."""
    inheriting = make_residual()
    assert numba.njit(fastmath=True)(lambda x: inheriting(x))(np.ones(2)) == 1
    theta, value, _ = graph(ResidualDepth())
    assert pytensor.function([theta], value)(np.ones(2)) == 0


def test_a_kernel_that_changed_is_compiled_anew(tmp_path, monkeypatch):
    """PyTensor keeps compiled functions on disk by their key alone, so the key must change with the source."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for constant in ("0.25", "0.5"):
        source = f"import numba\n\n@numba.njit\ndef kernel(theta, *prepared):\n    return {constant}\n"
        (tmp_path / "changing_kernel.py").write_text(source)
        sys.modules.pop("changing_kernel", None)
        kernel = importlib.import_module("changing_kernel").kernel
        depth = type("Changing", (dpd.Halfspace,), {"kernel": lambda self, kernel=kernel: kernel})()
        theta, value, settings = graph(depth)
        assert pytensor.function([theta], value)(np.ones(2)) == settings.beta * float(constant)


def test_a_kernel_without_a_file_is_not_kept():
    scope = {}
    exec("def kernel(theta, *prepared):\n    return 0.5", scope)
    kernel = numba.njit(scope["kernel"])
    theta, value, settings = graph(type("Typed", (dpd.Halfspace,), {"kernel": lambda self: kernel})())
    assert op._cache_key(value.owner.op, value.owner) is None
    assert pytensor.function([theta], value)(np.ones(2)) == settings.beta / 2


def test_the_key_covers_the_sources_of_the_package(monkeypatch):
    _, value, _ = graph(SMOOTH)
    before = op._cache_key(value.owner.op, value.owner)
    monkeypatch.setattr(op, "_digest_of_sources", lambda: "another")
    assert op._cache_key(value.owner.op, value.owner) != before


@pytest.mark.parametrize("epsilon", [0.8, 1.0])  # beta = 2 and 2.5 are single-precision numbers, which PyTensor likes
def test_values_are_doubles_in_every_mode(model_of, epsilon):
    theta, value, settings = graph(SMOOTH, epsilon=epsilon)
    for mode in [*MODES.values(), "FAST_COMPILE"]:
        out = pytensor.function([theta], value, mode=mode)(POINTS[0])
        assert out.dtype == np.float64
        assert float(out) != float(np.float32(out))


# No confusion between models


@pytest.mark.parametrize("depth", [STEPS[0], SMOOTH, objective()], ids=["step", "smooth", "custom"])
def test_models_of_one_shape_keep_their_own_rows(model_of, depth):
    first, second = model_of(ROWS, depth), model_of(OTHER, depth)
    compiled = [first.compile_logp(), second.compile_logp(), first.compile_logp(), second.compile_logp()]
    values = np.array([[float(logp({"location": point})) for logp in compiled] for point in POINTS[:3]])
    prior = pm.logp(pm.Normal.dist(0, 3, shape=2), POINTS[:3]).eval().sum(axis=1)
    for rows, columns in ((ROWS, [0, 2]), (OTHER, [1, 3])):
        _, value, settings = graph(depth, rows, epsilon=1.0)
        center, scale = np.array(settings.center), np.array(settings.scale)
        depths = depth.evaluate((POINTS[:3] - center) / scale, (rows - center) / scale)
        for column in columns:
            np.testing.assert_allclose(values[:, column] - prior, settings.beta * depths, rtol=0, atol=1e-10)
    assert (values[:, 0] != values[:, 1]).any()


def test_the_same_rows_at_another_epsilon_give_another_density(model_of):
    low, high = model_of(ROWS, SMOOTH, epsilon=1.0), model_of(ROWS, SMOOTH, epsilon=3.0)
    prior = pm.logp(pm.Normal.dist(0, 3, shape=2), POINTS[0]).eval().sum()
    values = [float(m.compile_logp()({"location": POINTS[0]})) - prior for m in (low, high)]
    assert values[1] == pytest.approx(3 * values[0], rel=1e-12)


def test_custom_objectives_of_one_arity_do_not_share_code(model_of):
    models = [model_of(ROWS, objective(f)) for f in (closeness, squares, closeness)]
    values = [float(model.compile_logp()({"location": POINTS[0]})) for model in models]
    prior = pm.logp(pm.Normal.dist(0, 3, shape=2), POINTS[0]).eval().sum()
    beta = 1.0 * len(ROWS) / 2
    distances = np.linalg.norm(ROWS - POINTS[0], axis=1)
    expected = [-np.minimum(distances, 1).mean(), -np.minimum(distances**2, 1).mean()]
    np.testing.assert_allclose(np.subtract(values, prior), beta * np.take(expected, [0, 1, 0]), rtol=1e-12)
    assert read_mechanisms(models[1])[0].settings.depth.expression is squares


def test_a_custom_objective_is_not_overwritten_by_what_follows_it():
    """The Op hands its input on; nothing that comes after may work in place on it."""
    theta, value, _ = graph(objective())
    inner = value.owner.inputs[-1]
    for mode in MODES.values():
        function = pytensor.function([theta], [value + 1, 2 * inner, pt.exp(value), inner - value], mode=mode)
        plus, twice, exponential, zero = (float(v) for v in function(np.array([0.1, 0.2])))
        np.testing.assert_allclose([plus - 1, np.log(exponential)], twice / 2, rtol=1e-12)
        assert zero == 0


# Reading back


@pytest.mark.parametrize("depth", [STEPS[0], SMOOTH, objective()], ids=["step", "smooth", "custom"])
def test_copies_of_a_model_keep_the_mechanism(model_of, depth):
    model = model_of(ROWS, depth, epsilon=0.7)
    with model:
        pm.Normal("other")
    (original,) = read_mechanisms(model)
    copies = {
        "clone": clone_model(model),
        "copy": model.copy(),
        "do": pm.do(model, {"other": 3.0}),
        "pickle": cloudpickle.loads(cloudpickle.dumps(model)),
    }
    for word, copy in copies.items():
        (mechanism,) = read_mechanisms(copy)
        assert mechanism.location is copy["location"], word
        np.testing.assert_array_equal(mechanism.rows, ROWS)
        assert mechanism.settings.epsilon == 0.7 and mechanism.settings.n == 5
        point = {"location": POINTS[1]} | ({} if word == "do" else {"other": 0.0})
        reference = model.compile_logp(vars=[model["location"], *model.potentials])({"location": POINTS[1], "other": 0})
        value = copy.compile_logp(vars=[copy["location"], *copy.potentials])(point)
        assert float(value) == pytest.approx(float(reference), abs=1e-12), word
    assert original.settings == read_mechanisms(copies["clone"])[0].settings
    observed = pm.observe(model, {"other": 1.0})
    assert read_mechanisms(observed, public=["other"])[0].settings == original.settings
    with pytest.raises(ValueError, match="other"):
        read_mechanisms(observed)


# Step depths


@pytest.mark.parametrize("step_depth", STEPS, ids=str)
def test_nuts_on_a_step_depth_names_the_cures(model_of, step_depth):
    with model_of(ROWS, step_depth), pytest.raises(dpd.NotDifferentiableError) as caught:
        pm.sample(step=pm.NUTS(), chains=1, progressbar=False, nuts_sampler="pymc")
    for word in ("Slice", "smc", "sample_exact", "release", "smoothing", step_depth.name):
        assert word in str(caught.value)
    assert isinstance(caught.value, NotImplementedError)


@pytest.mark.parametrize("d", [1, 2])
def test_the_default_sampler_runs_on_a_step_depth(model_of, d):
    with model_of(ROWS[:, :d]):
        idata = pm.sample(draws=20, tune=20, chains=1, cores=1, progressbar=False, nuts_sampler="pymc", random_seed=1)
    assert idata.posterior["location"].shape == (1, 20, d)
    assert np.isfinite(idata.posterior["location"]).all()
    assert "tree_depth" not in idata.sample_stats


def test_the_default_sampler_of_a_smooth_depth_is_nuts(model_of):
    with model_of(ROWS, SMOOTH):
        idata = pm.sample(draws=20, tune=20, chains=1, cores=1, progressbar=False, nuts_sampler="pymc", random_seed=1)
    assert "tree_depth" in idata.sample_stats


# What is shown


@pytest.mark.parametrize("depth", [STEPS[0], SMOOTH, objective()], ids=["step", "smooth", "custom"])
def test_nothing_that_prints_shows_a_row(model_of, depth):
    rows = np.array([[123456.789012345, 98765.4321098], [45678.9012345, 31415.926535]])
    model = model_of(rows, depth, sigma=1e5)
    value = model["median"]
    (mechanism,) = read_mechanisms(model)
    shown = [repr(model), str(model), model.str_repr(), repr(value), str(value), pprint(value)]
    shown += [repr(mechanism), str(mechanism), repr(mechanism.settings), repr(value.owner.op), str(value.owner.op)]
    shown += [str(vars(model)), str(value.owner), *(f"{v} {v!r}" for v in value.owner.inputs)]
    shown += [pytensor.dprint(what, file="str", print_type=True) for what in (value, model.logp())]
    shown += [pytensor.dprint(model.compile_logp().f, file="str", print_type=True)]
    text = "\n".join(shown)
    assert "median" in text and "DepthOp" in text or "ExpressionOp" in text
    for start in ("123456.7", "98765.4", "45678.9", "31415.9", "1.2345", "9.8765", "4.5678", "3.1415"):
        assert start not in text


def test_shapes_are_known_without_evaluating():
    theta, value, _ = graph(SMOOTH)
    gradient = value.owner.outputs[1]
    function = pytensor.function([theta], [value.shape.sum(), gradient.shape[0]])
    assert not any(isinstance(node.op, DepthOp) for node in function.maker.fgraph.toposort())
    assert [int(v) for v in function(np.zeros(2))] == [0, 2]
