"""Prior families against PyMC's own logcdf and icdf, both tails and the grid; and which priors are no product."""

import functools

import exact_grid
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
from scipy import stats

import pymc_dpdepth as dpd
from pymc_dpdepth import families, grid
from pymc_dpdepth.families import CompiledFamily
from pymc_dpdepth.priors import NotAProductPriorError, is_flat, read_prior

# Without compilation; constants that are neither integers nor short binary fractions, so that no parameter is stored
# in float32.
CLOSED = {
    "Normal": functools.partial(pm.Normal.dist, 0.3, 1.7),
    "Uniform": functools.partial(pm.Uniform.dist, -1.3, 7.1),
    "Laplace": functools.partial(pm.Laplace.dist, 0.3, 1.7),
    "Logistic": functools.partial(pm.Logistic.dist, 0.3, 1.7),
    "Cauchy": functools.partial(pm.Cauchy.dist, 0.3, 1.7),
    "Exponential": functools.partial(pm.Exponential.dist, 0.7),
    "HalfNormal": functools.partial(pm.HalfNormal.dist, 1.3),
    "HalfCauchy": functools.partial(pm.HalfCauchy.dist, 1.3),
    "LogNormal": functools.partial(pm.LogNormal.dist, 0.2, 1.3),
    "LogitNormal": functools.partial(pm.LogitNormal.dist, 0.2, 1.3),
    "Gamma": functools.partial(pm.Gamma.dist, 2.2, 1.3),
    "ChiSquared": functools.partial(pm.ChiSquared.dist, 3.3),
    "Beta": functools.partial(pm.Beta.dist, 2.2, 1.3),
    "StudentT": functools.partial(pm.StudentT.dist, 3.3, mu=0.1, sigma=1.3),
    "Gumbel": functools.partial(pm.Gumbel.dist, 0.1, 1.3),
    "Weibull": functools.partial(pm.Weibull.dist, 2.2, 1.3),
    "Kumaraswamy": functools.partial(pm.Kumaraswamy.dist, 2.2, 1.3),
    "TruncatedNormal": functools.partial(pm.TruncatedNormal.dist, 0.1, 1.3, lower=-1.1, upper=3.3),
    "TruncatedNormal, open": functools.partial(pm.TruncatedNormal.dist, 0.1, 1.3, lower=-1.1),
}
COMPILED = {
    "InverseGamma": functools.partial(pm.InverseGamma.dist, 2.2, 1.3),
    "Moyal": functools.partial(pm.Moyal.dist, 0.2, 1.3),
}
PRIORS = CLOSED | COMPILED

# PyMC's icdf of a normal truncated on one side is NaN; an end 46 standard deviations out is as good as none.
REFERENCES = {"TruncatedNormal, open": functools.partial(pm.TruncatedNormal.dist, 0.1, 1.3, lower=-1.1, upper=60.0)}

TAILS = np.array([0.5, 0.4, 0.1, 1e-2, 1e-4, 1e-7])[:, None]
ENDS = {"Uniform": (-1.3, 7.1), "Beta": (0, 1), "Kumaraswamy": (0, 1), "LogitNormal": (0, 1)}
ENDS["TruncatedNormal"] = (-1.1, 3.3)


def read(make, width=1):
    return read_prior(make(shape=width), width)


@functools.cache
def pymc_maps(name):
    """Return PyMC's logcdf and icdf; in plain Python, since compiling all of them would take minutes."""
    variable = REFERENCES.get(name, PRIORS[name])(shape=1)
    value = pt.matrix("value", dtype="float64")
    mode = Mode(linker="py", optimizer="fast_compile")
    return [pytensor.function([value], f(variable, value), mode=mode) for f in (pm.logcdf, pm.icdf)]


@pytest.mark.parametrize("name", PRIORS)
def test_tails_are_those_of_pymc(name):
    prior = read(PRIORS[name])
    (block,) = prior.blocks
    logcdf, icdf = pymc_maps(name)
    with np.errstate(all="ignore"):
        x = np.concatenate([icdf(TAILS), icdf(1.0 - TAILS)])
        expected = np.exp(logcdf(x))
    lower, upper = block.family.tails(x, *block.parameters)
    # PyMC's cdf is right to 1e-7 relatively in places (series and approximations of erf and the incomplete functions);
    # its 1 - cdf loses another 1e-16 absolutely.
    np.testing.assert_allclose(lower, expected, rtol=1e-6, atol=1e-15)
    np.testing.assert_allclose(upper, 1.0 - expected, rtol=1e-6, atol=1e-9)
    assert isinstance(block.family, CompiledFamily) == (name in COMPILED)


@pytest.mark.parametrize("name", PRIORS)
def test_quantiles_are_those_of_pymc(name):
    (block,) = read(PRIORS[name]).blocks
    _, icdf = pymc_maps(name)
    with np.errstate(all="ignore"):
        lower, upper = icdf(TAILS), icdf(1.0 - TAILS)
    # The same approximations, now in x; PyMC's 1 - v is rounded to 1e-16, which at v = 1e-7 is 1e-9 of the tail. A
    # Cauchy quantile moves as much relatively as its tail, the others less.
    np.testing.assert_allclose(block.family.from_lower(TAILS, *block.parameters), lower, rtol=2e-6, atol=1e-7)
    np.testing.assert_allclose(block.family.from_upper(TAILS, *block.parameters), upper, rtol=2e-6, atol=1e-7)


def is_finite_end(prior, side):
    return int(prior.floors()[0, side]) == exact_grid.FINITE_END


@pytest.mark.parametrize("side", [0, 1], ids=["lower", "upper"])
@pytest.mark.parametrize("name", CLOSED)
def test_both_tails_go_back_and_forth(name, side):
    prior = read(CLOSED[name])
    (block,) = prior.blocks
    finite = is_finite_end(prior, side)
    v = np.array([10.0**-k for k in ((1, 2, 3, 5, 8, 12) if finite else (1, 3, 8, 16, 30, 60, 100, 150))])[:, None]
    x = (block.family.from_upper if side else block.family.from_lower)(v, *block.parameters)
    back = block.family.tails(x, *block.parameters)[side]
    # In a tail: a few ulps of x move log v by at most |x h(x)| ulps, h the hazard rate. That is z^2 = 700 for normal
    # kinds at 1e-150, times 2^-53 and a few: 3e-13; the inverse incomplete functions of scipy have 1e-12 of their own.
    # At a finite end other than 0 the double x itself is only known to 2^-53 |end|, or 1e-16 of the whole cdf.
    end = abs(ENDS.get(name, (1.1, 0))[side]) if finite else 0.0
    np.testing.assert_allclose(back, v, rtol=4e-12, atol=8e-16 * max(end, 1.0) if finite else 0.0)


@pytest.mark.parametrize("name", CLOSED)
def test_keys_to_values_to_keys_moves_by_a_cell_at_most(name):
    prior = read(CLOSED[name])
    generator = np.random.default_rng(1)
    tail = np.exp2(-generator.uniform(1, 12, size=(400, 1)))
    keys = np.array([exact_grid.key_of_tail(v) for v in tail[:, 0].tolist()])[:, None]
    keys = np.where(generator.random((400, 1)) < 0.5, exact_grid.LAST - keys, keys)
    values = prior.values(keys)
    again = prior.keys(values).T
    # Values lie in their cell widened by a quarter of it on either side, and the way back adds about a tenth of a cell.
    # A truncated normal's double near the end -1.1 is only known to 2^-53, which moves u by 2^-54 or so; the narrowest
    # cell here is 2^-41 * 2^-12 = 2^-53 wide: one cell more, and one for the error of its cdf, 1e-16 absolutely.
    assert np.abs(again - keys).max() <= (3 if "Truncated" in name else 1)
    assert (again == keys).mean() > 0.5


@pytest.mark.parametrize("name", CLOSED)
def test_a_short_decimal_that_rows_share_comes_back_as_itself(name):
    prior = read(CLOSED[name])
    generator = np.random.default_rng(2)
    quantiles = prior.blocks[0].family.from_lower(
        generator.uniform(0.02, 0.5, size=(300, 1)), *prior.blocks[0].parameters
    )
    shared = np.round(quantiles, 3)
    shared = shared[(shared != 0.0) & (shared > quantiles.min())][:, None]
    back = prior.values(prior.keys(shared).T)
    assert np.array_equal(back, shared)


@pytest.mark.parametrize(
    ("make", "value"),
    [
        (functools.partial(pm.Uniform.dist, 0, 500_000), 65_000.0),
        (functools.partial(pm.Uniform.dist, 0, 500_000), 0.0),
        (functools.partial(pm.Uniform.dist, 0, 500_000), 500_000.0),
        (functools.partial(pm.Uniform.dist, 80, 100_000), 80.0),
        (functools.partial(pm.Uniform.dist, -3, 0), 0.0),
        (functools.partial(pm.Normal.dist, 0, 10), 0.0),
        (functools.partial(pm.Normal.dist, 40_000, 30_000), 65_000.0),
        (functools.partial(pm.Normal.dist, 0, 2_000), 65_000.0),  # 32.5 standard deviations
        (functools.partial(pm.Normal.dist, 0, 2_000), -65_000.0),
        (functools.partial(pm.Normal.dist, 7.5, 1.0), 7.5),
        (functools.partial(pm.Exponential.dist, 1 / 30_000), 0.0),
        (functools.partial(pm.Exponential.dist, 1 / 30_000), 65_000.0),
        (functools.partial(pm.LogNormal.dist, 10, 1), 65_000.0),
        (functools.partial(pm.HalfNormal.dist, 30_000), 0.0),
        (functools.partial(pm.Gamma.dist, 2, 1e-4), 65_000.0),
    ],
)
def test_shared_values_of_real_tables(make, value):
    prior = read(make)
    assert prior.values(prior.keys(np.array([[value]])).T).tolist() == [[value]]


def test_values_lie_in_their_cell_widened_by_a_quarter():
    # Uniform on [0, 1): theta is u itself, so cells can be compared without rounding.
    prior = read(functools.partial(pm.Uniform.dist, 0, 1))
    keys = exact_grid.random_keys(np.random.default_rng(3), 600, exact_grid.FINITE_END)[:, None]
    keys = np.clip(keys, exact_grid.FINITE_END, exact_grid.LAST - exact_grid.FINITE_END)
    for key, value in zip(keys[:, 0].tolist(), prior.values(keys)[:, 0].tolist(), strict=True):
        low = exact_grid.left_end(key, exact_grid.FINITE_END, exact_grid.FINITE_END)
        high = exact_grid.left_end(key + 1, exact_grid.FINITE_END, exact_grid.FINITE_END)
        margin = float(high - low) / 4 + 2.0**-53  # upper - width * v is rounded to a double near 1
        assert float(low) - margin <= value <= float(high) + margin


def test_a_value_depends_on_its_own_cell_alone():
    prior = read_prior(pt.concatenate([pm.Normal.dist(0, 3, shape=2), pm.Gamma.dist(2, 1.3, shape=1)]), 3)
    keys = exact_grid.random_keys(np.random.default_rng(4), 300, exact_grid.FINITE_END).reshape(-1, 3)
    keys = np.clip(keys, exact_grid.FINITE_END, exact_grid.LAST - exact_grid.FINITE_END)
    together = prior.values(keys)
    assert together.tolist() == [prior.values(row[None])[0].tolist() for row in keys]


@pytest.mark.parametrize("name", PRIORS)
def test_a_key_depends_on_its_row_alone(name):
    prior = read(PRIORS[name], width=3)
    generator = np.random.default_rng(5)
    n = 347
    (block,) = prior.blocks
    v = np.exp2(-generator.uniform(1.0, 40.0, size=(n, 3)))
    lower = generator.random((n, 3)) < 0.5
    rows = np.where(lower, block.family.from_lower(v, *block.parameters), block.family.from_upper(v, *block.parameters))
    keys = prior.keys(rows)
    order = generator.permutation(n)
    assert np.array_equal(prior.keys(rows[order]), keys[:, order])
    assert np.array_equal(prior.keys(np.asfortranarray(rows)), keys)
    assert np.array_equal(prior.keys(np.repeat(rows, 2, axis=0)[::2]), keys)
    for size in (1, 2, 3, 5, 8, 13):
        parts = [prior.keys(rows[start : start + size]) for start in range(0, 130, size)]
        parts = np.concatenate(parts, axis=1)
        assert np.array_equal(parts, keys[:, : parts.shape[1]])
    assert np.array_equal(prior.keys(np.concatenate([rows, rows[:1] * 3 + 1]))[:, :n], keys)


@pytest.mark.parametrize("name", PRIORS)
def test_rows_outside_the_support_and_far_rows_lie_in_the_outermost_cells(name):
    prior = read(PRIORS[name])
    low, high = prior.floors()[0]
    rows = np.array([[-1e300], [-1e9], [1e9], [1e300]])
    keys = prior.keys(rows)[0]
    assert ((keys >= low) & (keys <= exact_grid.LAST - high)).all()
    assert (np.diff(keys) >= 0).all()
    values = prior.values(keys[:, None])
    assert np.isfinite(values).all()
    if low == exact_grid.FINITE_END:
        assert keys[0] == keys[1] == low
    if high == exact_grid.FINITE_END:
        assert keys[3] == exact_grid.LAST - high


@pytest.mark.parametrize("name", PRIORS)
def test_medians_and_quartiles(name):
    prior = read(PRIORS[name], width=2)
    _, icdf = pymc_maps(name)
    quartiles = icdf(np.array([[0.25], [0.5], [0.75]]))[:, 0]
    center, scale = prior.center_and_scale()
    np.testing.assert_allclose(center, [quartiles[1]] * 2, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(scale, [quartiles[2] - quartiles[0]] * 2, rtol=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        functools.partial(pm.StudentT.dist, 0.3, mu=0, sigma=1),
        functools.partial(pm.StudentT.dist, 1.0, mu=0, sigma=1),
        functools.partial(pm.StudentT.dist, 1e4, mu=0, sigma=1),
        functools.partial(pm.LogNormal.dist, 0.0, 40.0),
        functools.partial(pm.Cauchy.dist, 0.0, 1e30),
        functools.partial(pm.HalfCauchy.dist, 1e30),
    ],
)
def test_wide_priors_give_finite_values_in_every_cell(make):
    prior = read(make)
    low, high = prior.floors()[0]
    keys = np.clip(
        exact_grid.random_keys(np.random.default_rng(6), 200, exact_grid.NO_END), low, exact_grid.LAST - high
    )
    keys = np.sort(np.append(keys, [low, exact_grid.LAST - high]))
    values = prior.values(keys[:, None])[:, 0]
    assert np.isfinite(values).all()
    # Neighbouring cells may take decimals from the quarter cells that they share, so order holds up to half a cell:
    # 4.5e-13 of the tail v. A value moves by |d log x / d log v| times that, at most about 40 (the lognormal's sigma).
    assert (np.diff(values) >= -2e-11 * np.abs(values[1:])).all()


# Compilation


@pytest.fixture
def compilations(monkeypatch):
    """Count compiled functions, whatever name they are asked for by."""
    from pytensor.compile import executor

    made = []
    original = executor.Function.__init__

    def counted(self, *args, **kwargs):
        made.append(self)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(executor.Function, "__init__", counted)
    return made


def through_all_maps(prior):
    prior.keys(np.full((3, prior.d), 0.3))
    prior.values(np.full((2, prior.d), exact_grid.FIRST_UPPER))
    prior.center_and_scale()
    prior.describe()


def test_a_compiled_family_is_compiled_once_whatever_its_parameters(compilations):
    families._compiled_random_variable.cache_clear()
    through_all_maps(read_prior(pm.Moyal.dist(0.2, 1.3, shape=2), 2))
    assert len(compilations) == 2  # logcdf and icdf
    for mu, sigma, width in ((1.0, 2.0, 2), (np.array([0.1, 0.2, 0.3]), 1.5, 3), (0, 1, 1)):
        through_all_maps(read_prior(pm.Moyal.dist(mu, sigma, shape=width), width))
    assert len(compilations) == 2


def test_the_parameters_of_a_compiled_family_are_used():
    sigma = np.array([1.3, 2.6])
    prior = read_prior(pm.Moyal.dist(0.0, sigma), 2)
    assert isinstance(prior.blocks[0].family, CompiledFamily)
    np.testing.assert_allclose(prior.quantile(0.3), stats.moyal(0, sigma).ppf(0.3), rtol=1e-6)


@pytest.mark.parametrize("name", CLOSED)
def test_closed_forms_compile_nothing(compilations, name):
    prior = read(CLOSED[name], width=2)
    through_all_maps(prior)
    assert compilations == []


@pytest.mark.parametrize(
    "prior",
    [
        lambda: pm.Normal.dist(0, 10, shape=2),
        lambda: pm.Uniform.dist([-10, -5], 10),
        lambda: [pm.Normal.dist(0, 1), pm.Uniform.dist(-3, 3)],
        lambda: "normal(0, 10)",
    ],
)
@pytest.mark.parametrize("depth", ["halfspace", "integrated_dual"])
def test_a_release_under_normal_and_uniform_priors_compiles_nothing(compilations, prior, depth):
    dpd.private_median(np.arange(8.0).reshape(4, 2), epsilon=1.0, prior=prior(), depth=depth)
    assert compilations == []


# Shapes of priors


def test_parameters_may_differ_between_coordinates():
    prior = read_prior(pm.Normal.dist(np.array([0.0, 100.0]), np.array([1.0, 7.0])), 2)
    np.testing.assert_allclose(prior.quantile(0.5), [0.0, 100.0])
    np.testing.assert_allclose(prior.quantile(stats.norm.cdf(1)), [1.0, 107.0])


def mixed_parts():
    return [pm.Normal.dist(1.0, 2.0, shape=2), pm.Uniform.dist(-3.0, 5.0, shape=1), pm.Gamma.dist(2.2, 1.3, shape=1)]


def test_concatenated_priors_are_blocks_in_order():
    prior = read_prior(pt.concatenate(mixed_parts()), 4)
    assert [(b.family.name, b.start, b.stop) for b in prior.blocks] == [
        ("Normal", 0, 2),
        ("Uniform", 2, 3),
        ("Gamma", 3, 4),
    ]
    np.testing.assert_allclose(prior.quantile(0.5), [1.0, 1.0, 1.0, stats.gamma(2.2, scale=1 / 1.3).median()])
    assert not prior.is_normal
    rows = np.array([[1.0, 3.0, 4.0, 2.0], [0.0, -1.0, -2.5, 0.3]])
    keys = prior.keys(rows)
    for start, make in ((0, pm.Normal.dist(1.0, 2.0, shape=2)), (2, pm.Uniform.dist(-3.0, 5.0, shape=1))):
        width = int(make.type.shape[0])
        assert np.array_equal(read_prior(make, width).keys(rows[:, start : start + width]), keys[start : start + width])


def test_stacked_scalars_and_deterministics_are_read():
    scalars = [pm.Normal.dist(0.0, 1.0), pm.Uniform.dist(0.0, 3.0)]
    for location in (pt.stack(scalars), pt.concatenate([x[None] for x in scalars])):
        prior = read_prior(location, 2)
        assert [b.family.name for b in prior.blocks] == ["Normal", "Uniform"]
        assert all(b.scalar for b in prior.blocks)
    with pm.Model():
        first, second = pm.Normal("first", 0.0, 1.0), pm.Uniform("second", 0.0, 3.0, shape=2)
        location = pm.Deterministic("location", pt.concatenate([first[None], second]))
        assert [b.name for b in read_prior(location, 3).blocks] == ["first", "second"]


def test_a_model_variable_with_dims_is_read():
    with pm.Model(coords={"coordinate": ["a", "b", "c"]}):
        location = pm.Normal("location", 0.0, 2.0, dims="coordinate")
        prior = read_prior(location, 3)
        assert prior.d == 3 and prior.is_normal


def test_a_described_prior_is_plain_numbers():
    prior = read_prior(
        pt.concatenate([pm.Normal.dist([1.0, 2.0], 3.0), pm.TruncatedNormal.dist(0, 1, lower=0, shape=1)]), 3
    )
    assert prior.describe() == [
        {"family": "Normal", "parameters": {"mu": [1.0, 2.0], "sigma": 3.0}, "start": 0, "stop": 2},
        {
            "family": "TruncatedNormal",
            "parameters": {"mu": 0.0, "sigma": 1.0, "lower": 0.0, "upper": "inf"},
            "start": 2,
            "stop": 3,
        },
    ]


@pytest.mark.parametrize("d", [1, 3])
def test_a_prior_of_another_length_is_refused(d):
    with pytest.raises(ValueError, match="coordinates"):
        read_prior(pm.Normal.dist(0, 1, shape=2), d)
    with pytest.raises(ValueError, match="coordinates|parameter of shape"):
        read_prior(pm.Normal.dist([0.0, 1.0], 1), d)


# What is no product


def hierarchical():
    with pm.Model():
        scale = pm.HalfNormal("scale", 1)
        return pm.Normal("location", 0, scale, shape=2)


def transformed():
    return pm.math.exp(pm.Normal.dist(0, 1, shape=2))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (hierarchical, "depends on another random variable"),
        (transformed, "computed from other variables"),
        (lambda: pm.MvNormal.dist(np.zeros(2), np.eye(2)), "multivariate"),
        (lambda: pm.Dirichlet.dist(np.ones(2)), "multivariate"),
        (
            lambda: pm.Mixture.dist([0.5, 0.5], [pm.Normal.dist(0, 1), pm.Normal.dist(3, 1)], shape=2),
            "Mixture|Marginal",
        ),
        (lambda: pm.Wald.dist(1, 1, shape=2), "icdf"),
        (lambda: pm.SkewNormal.dist(alpha=1, mu=0, sigma=1, shape=2), "logcdf"),
        (lambda: pm.Poisson.dist(3, shape=2), "discrete"),
        (lambda: pm.Truncated.dist(pm.Gamma.dist(2.0, 1.0), lower=0.5, shape=2), "icdf"),
        (lambda: pt.concatenate([pm.Normal.dist(0, 1, shape=1), 2 * pm.Normal.dist(0, 1, shape=1)]), "computed"),
    ],
)
def test_other_priors_are_refused_with_the_reason(make, reason):
    with pytest.raises(NotAProductPriorError, match=reason):
        read_prior(make(), 2)


@pytest.mark.parametrize("make", [lambda: pm.Flat.dist(shape=2), lambda: pm.HalfFlat.dist(shape=2)])
def test_flat_priors_are_refused(make):
    assert is_flat(make())
    with pytest.raises(dpd.ImproperMechanismError, match="proper prior"):
        dpd.private_median(np.zeros((3, 2)), epsilon=1.0, prior=make())


def test_a_flat_ancestor_is_found():
    with pm.Model():
        hidden = pm.Flat("hidden")
        assert is_flat(pm.Normal("location", hidden, 1, shape=2))
        assert not is_flat(pm.Normal("other", 0, 1, shape=2))


def test_the_outer_cells_of_a_finite_end_hold_the_end_point():
    prior = read(functools.partial(pm.Uniform.dist, 2.0, 3.0))
    ends = prior.values(np.array([[grid.FLOOR_KEY], [grid.LAST_KEY - grid.FLOOR_KEY]]))
    assert ends.tolist() == [[2.0], [3.0]]
    assert prior.keys(np.array([[2.0], [1.0], [3.0], [9.0]])).tolist() == [
        [grid.FLOOR_KEY, grid.FLOOR_KEY, grid.LAST_KEY - grid.FLOOR_KEY, grid.LAST_KEY - grid.FLOOR_KEY]
    ]


# Shared variables


def shifted_by_data():
    with pm.Model() as model:
        center, spread = pm.Data("center", [0.0, 100.0]), pm.Data("spread", 50.0)
        location = pm.Normal("location", center, 2 * spread)
        dpd.exponential_mechanism("median", location, np.zeros((5, 2)), epsilon=1.0, directions="axes")
    return model


@pytest.mark.filterwarnings("ignore:The prior of the location depends on the shared:pymc_dpdepth.PrivacyLeakWarning")
def test_data_in_a_prior_are_read_at_the_draw_and_recorded():
    model = shifted_by_data()
    first = dpd.release(model)
    with model:
        pm.set_data({"center": [1e9, -1e9], "spread": 0.25})
    second = dpd.release(model)
    drawn = dpd.sample_exact(5, model=model).posterior["location"].values
    assert first.guarantee != "asymptotic" and first.sampler == second.sampler == "boxes"
    assert first.priors["median"][0]["parameters"] == {"mu": [0.0, 100.0], "sigma": 100.0}
    assert second.priors["median"][0]["parameters"] == {"mu": [1e9, -1e9], "sigma": 0.5}
    # All rows lie at one end of the second prior; a grid of the normal ends 40 standard deviations out.
    for values in (second.value.values, drawn):
        assert np.abs(values - [1e9, -1e9]).max() < 25


def test_what_do_has_fixed_is_constant():
    with pm.Model() as model:
        center, spread = pm.Normal("center", 0, 100, shape=2), pm.HalfNormal("spread", 10)
        location = pm.Normal("location", center, spread)
        dpd.exponential_mechanism("median", location, np.zeros((5, 2)), epsilon=1.0)
    fixed = dpd.release(pm.do(model, {"center": [3.0, 4.0], "spread": 2.0}))
    assert fixed.guarantee != "asymptotic"
    assert fixed.priors["median"][0]["parameters"] == {"mu": [3.0, 4.0], "sigma": 2.0}
    for half in ({"center": [3.0, 4.0]}, {"spread": 2.0}):
        with pytest.raises(dpd.InexactReleaseError, match="depends on another random variable"):
            dpd.release(pm.do(model, half))


@pytest.mark.parametrize(
    "parameter", [pytensor.shared(2.5), pt.exp(pytensor.shared(np.log([2.5, 2.5])))], ids=["scalar", "computed"]
)
def test_shared_parameters_of_every_kind_of_prior(parameter):
    for make in (
        pm.HalfNormal.dist,
        pm.InverseGamma.dist,
        lambda a, shape: pm.Truncated.dist(pm.Normal.dist(0, a), -1, 1, shape=shape),
    ):
        positional = (parameter, 1.3) if make is pm.InverseGamma.dist else (parameter,)
        plain = (2.5, 1.3) if make is pm.InverseGamma.dist else (2.5,)
        shared, constant = (read_prior(make(*given, shape=2), 2) for given in (positional, plain))
        np.testing.assert_allclose(shared.quantile(0.3), constant.quantile(0.3), rtol=1e-12)


def test_a_random_shared_variable_is_no_constant():
    generator = pt.random.rng()
    with pytest.raises(NotAProductPriorError, match="another random variable"):
        read_prior(
            pm.Normal.dist(
                pt.random.normal(0, pytensor.shared(1.0), rng=generator, return_next_rng=True)[1], 1, shape=2
            ),
            2,
        )
    with pytest.raises(NotAProductPriorError, match="another random variable"):
        read_prior(pm.Normal.dist(pt.scalar(), 1, shape=2), 2)


# Enclosures of runs of cells

ENCLOSED = {
    "normal": lambda: pm.Normal.dist(0, 1, shape=1),
    "uniform": lambda: pm.Uniform.dist(-1, 1, shape=1),
    "cauchy": lambda: pm.Cauchy.dist(0, 1, shape=1),
    "lognormal": lambda: pm.LogNormal.dist(0, 1, shape=1),
    "gamma": lambda: pm.Gamma.dist(0.3, 1, shape=1),
    "beta": lambda: pm.Beta.dist(0.5, 0.5, shape=1),
    "student": lambda: pm.StudentT.dist(nu=3, mu=0, sigma=1, shape=1),
    "truncated": lambda: pm.TruncatedNormal.dist(0, 1, lower=-1, upper=2, shape=1),
    "pareto": lambda: pm.Pareto.dist(1.5, 1, shape=1),
    "moyal": lambda: pm.Moyal.dist(0, 1, shape=1),
}


@pytest.mark.parametrize("name", ENCLOSED)
def test_enclosures_hold_the_numbers_of_their_cells(name):
    prior = read_prior(ENCLOSED[name](), 1)
    ((low_floor, high_floor),) = prior.floors()
    least, most = int(low_floor), grid.LAST_KEY - int(high_floor)
    generator = np.random.default_rng(5)
    # Runs of all lengths, also to the outermost cells and within the last stretches before them.
    near = np.exp2(generator.uniform(0, 40, size=3000)).astype(np.int64)
    first = np.concatenate([generator.integers(least, most, 2000), most - near, np.full(500, least), [most, least]])
    length = np.exp2(generator.uniform(0, 41, size=len(first))).astype(np.int64)
    last = np.minimum(first + length, most)
    last[2500:4000] = most
    inside = first + (generator.random(len(first)) * (last - first + 1)).astype(np.int64)
    low, high = prior.enclose(first[:, None], last[:, None])
    for cells in (first, last, np.clip(inside, first, last)):
        values = prior.values(cells[:, None])
        assert (low <= values).all() and (values <= high).all()
    assert prior.is_monotone == (name in ("normal", "uniform", "cauchy"))
