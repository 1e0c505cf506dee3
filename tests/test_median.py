import numpy as np
import pandas as pd
import polars as pl
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

import pymc_dpdepth as dpd
from pymc_dpdepth.median import prior_distribution
from pymc_dpdepth.samplers import markov
from pymc_dpdepth.samplers.exact import NoExactSamplerError

# 60 rows around (40, 900) with ties, and far from every prior's own centre, so that a column mix-up shows.
GENERATOR = np.random.default_rng(20)
ROWS = np.column_stack([GENERATOR.normal(40, 2, 60).round(), GENERATOR.normal(900, 20, 60).round()])
FRAME = pd.DataFrame(ROWS, columns=["age", "income"])
NEAR = {"age": (30, 50), "income": (800, 1000)}  # a draw at epsilon = 50 lies inside, see `check`
SMOOTH = dpd.IntegratedDual(smoothing=10.0)
NOMINAL = pytest.warns(dpd.ApproximateSamplingWarning, match="nominal")
SIMULATION = pytest.warns(dpd.PrivacyLeakWarning, match="random_seed")


AXES = dpd.Directions.axes(2)


def median(data=FRAME, **options):
    return dpd.private_median(data, **({"epsilon": 50.0, "prior": "normal(0, [100, 2000])"} | options))


def check(release, columns=("age", "income")):
    """All 60 rows lie inside NEAR, so outside the depth is 0 on one axis and beta * D loses about 50 * 60 / 4."""
    assert release.value.dims == ("coordinate",)
    assert release.value.coords["coordinate"].values.tolist() == list(columns)
    for column, value in zip(columns, release.value.values, strict=True):
        low, high = NEAR[column]
        assert low < value < high, column


@pytest.fixture
def short_chains(monkeypatch):
    for name, value in {"CHAINS": 2, "DRAWS": 10, "TUNE": 10, "PARTICLES": 20}.items():
        monkeypatch.setattr(markov, name, value)


# Priors

PRIORS = {
    "distribution": lambda: pm.Normal.dist([0, 100], [100, 2000]),
    "shape": lambda: pm.Normal.dist(0, 2000, shape=2),
    "text": lambda: "uniform(0, [100, 5000])",
    "list of distributions": lambda: [pm.Uniform.dist(0, 100), pm.Normal.dist(0, 2000)],
    "list of texts": lambda: ["uniform(0, 100)", "normal(0, 2000)"],
    "tuple of both": lambda: ("laplace(0, 50)", pm.Gamma.dist(2, 0.002)),
    "vectors of length 1": lambda: [pm.Normal.dist(0, 100, shape=1), pm.Cauchy.dist(0, 100, shape=1)],
    "dict": lambda: {"income": "lognormal(6, 1)", "age": pm.HalfNormal.dist(60)},
    "concatenated": lambda: pt.concatenate([pm.Normal.dist(0, 99, shape=1), pm.Uniform.dist(0, 5000, shape=1)]),
    "stacked": lambda: pt.stack([pm.Logistic.dist(0, 50), pm.StudentT.dist(nu=3, mu=0, sigma=900)]),
    "positive": lambda: pm.HalfNormal.dist(2000, shape=2),
    "truncated": lambda: pm.TruncatedNormal.dist(0, 2000, lower=0, shape=2),
}


@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
def test_forms_of_a_prior(prior):
    release = median(prior=prior(), directions=AXES)
    check(release)
    assert (release.guarantee, release.sampler, release.simulation) == ("exact", "boxes", False)
    assert sum(block["stop"] - block["start"] for block in release.priors["median"]) == 2


def test_a_dict_goes_by_name_and_a_list_by_position():
    by_name = median(prior={"income": "normal(0, 2000)", "age": "normal(0, 100)"}).priors["median"]
    by_place = median(prior=["normal(0, 100)", "normal(0, 2000)"]).priors["median"]
    assert by_name == by_place
    assert [block["parameters"]["sigma"] for block in by_name] == [100.0, 2000.0]


@pytest.mark.parametrize(
    "prior", [lambda: pm.Normal.dist(0, 100), lambda: "normal(0, 100)", lambda: [pm.Uniform.dist(0, 99)]]
)
def test_a_scalar_prior_with_one_column(prior):
    release = median(FRAME[["age"]], prior=prior())
    check(release, ["age"])
    assert release.sampler == "segments" and release.parameters["location"].dims == ("coordinate",)


BAD_PRIORS = {
    "missing": (None, TypeError, "chosen without the data"),
    "number": (3.0, TypeError, "float"),
    "array": (np.zeros(2), TypeError, "ndarray"),
    "scalar for two columns": (lambda: pm.Normal.dist(0, 1), ValueError, "expected 2 coordinates"),
    "too long": (lambda: pm.Normal.dist(0, 1, shape=3), ValueError, "expected 2 coordinates"),
    "long list": (["normal(0, 1)"] * 3, ValueError, "expected 2 entries"),
    "empty list": ([], ValueError, "expected 2 entries"),
    "long text": ("normal([0, 1, 2], 1)", ValueError, "2"),
    "missing name": ({"age": "normal(0, 1)"}, ValueError, r"missing \['income'\]"),
    "unknown name": ({"age": "normal(0, 1)", "incom": "normal(0, 1)"}, ValueError, r"unknown \['incom'\]"),
    "keys of two types": ({3: "normal(0, 1)", "x": "normal(0, 1)"}, ValueError, r"unknown \['3', 'x'\]"),
    "bad entry": (["normal(0, 1)", 3.0], TypeError, "income"),
    "matrix entry": (lambda: ["normal(0, 1)", pm.Normal.dist(shape=(1, 1))], TypeError, "income"),
    "vector entry": (lambda: ["normal(0, 1)", pm.Normal.dist(shape=2)], ValueError, "coordinates"),
    "flat": (lambda: pm.Flat.dist(shape=2), dpd.ImproperMechanismError, "flat"),
    "flat entry": (lambda: ["normal(0, 1)", pm.HalfFlat.dist()], dpd.ImproperMechanismError, "flat"),
    "bad text": ("normal(0)", ValueError, "normal"),
    "code": ("__import__('os')", ValueError, "prior"),
    "discrete": (lambda: pm.Poisson.dist(3, shape=2), dpd.InexactReleaseError, "discrete"),
    "multivariate": (lambda: pm.Dirichlet.dist(np.ones(2)), dpd.InexactReleaseError, "multivariate"),
}


@pytest.mark.parametrize("bad", BAD_PRIORS)
def test_bad_priors(bad):
    prior, error, match = BAD_PRIORS[bad]
    with pytest.raises(error, match=match):
        median(prior=prior() if callable(prior) else prior)


def test_a_hierarchical_prior_belongs_into_a_model():
    prior = pm.Normal.dist(pm.Normal.dist(), 1, shape=2)
    with pytest.raises(dpd.InexactReleaseError):
        median(prior=prior)
    with pytest.raises(ValueError, match="PyMC model.*exponential_mechanism"):
        median(prior=prior, accept_asymptotic=True)


def test_a_prior_read_off_the_data_warns():
    with pytest.warns(dpd.PrivacyLeakWarning, match="mean") as caught:
        median(prior=pm.Normal.dist(ROWS.mean(0), 100))
    assert "income" in str(caught[0].message) and str(round(ROWS[:, 1].mean())) not in str(caught[0].message)


@pytest.mark.parametrize("depth", ["halfspace", SMOOTH], ids=["exact", "chain"])
@pytest.mark.parametrize(
    "prior", [PRIORS["distribution"], PRIORS["stacked"], PRIORS["positive"]], ids=["normal", "stacked", "positive"]
)
@pytest.mark.filterwarnings("ignore::pymc_dpdepth.errors.ApproximateSamplingWarning")
def test_the_user_s_prior_stays_as_it_was(depth, prior, short_chains):
    mine = prior()
    before = pytensor.dprint(mine, file="str", id_type="")
    values = pm.draw(mine, random_seed=1)
    with pm.Model(coords={"coordinate": ["p", "q", "r"]}) as outer:  # neither its context nor its coords matter
        pm.Normal("location")
        options = {"sampler": "nuts" if depth is SMOOTH else "auto", "accept_asymptotic": True, "progressbar": False}
        inside = median(prior=mine, depth=depth, **options)
    again = median(prior=mine, depth=depth, **options)
    assert list(outer.named_vars) == ["location"] and outer.potentials == []
    assert mine.name is None and pytensor.dprint(mine, file="str", id_type="") == before
    np.testing.assert_array_equal(pm.draw(mine, random_seed=1), values)
    for release in (inside, again):
        assert release.value.coords["coordinate"].values.tolist() == ["age", "income"]


def test_prior_distribution_leaves_a_vector_alone():
    mine = pm.Normal.dist(0, 1, shape=2)
    assert prior_distribution(mine, ["a", "b"]) is mine


def test_blocks_of_a_concatenated_prior_work_with_chains(short_chains):
    prior = pt.concatenate([pm.Normal.dist(40, 9, shape=2), pm.Uniform.dist(0, 5000, shape=1)])
    rows = np.column_stack([ROWS[:, 0], ROWS])
    with NOMINAL:
        release = median(rows, prior=prior, sampler="slice", accept_asymptotic=True, progressbar=False)
    assert release.value.shape == (3,) and list(release.parameters) == ["location"]


# Data


@pytest.mark.parametrize(
    "data",
    [FRAME, pl.DataFrame({"age": ROWS[:, 0], "income": ROWS[:, 1]}), FRAME.astype("Int64")],
    ids=["pandas", "polars", "nullable"],
)
def test_data_frames_keep_their_names(data):
    check(median(data))


@pytest.mark.parametrize("data", [ROWS, ROWS.tolist(), [tuple(row) for row in ROWS]], ids=["array", "lists", "tuples"])
def test_bare_rows_get_names(data):
    release = median(data)
    assert release.value.coords["coordinate"].values.tolist() == ["x0", "x1"]
    assert 30 < release.value.values[0] < 50 and 800 < release.value.values[1] < 1000


def test_files(tmp_path):
    FRAME.assign(city="x").to_csv(tmp_path / "people.csv", index=False)
    FRAME.to_parquet(tmp_path / "people.parquet")
    check(median(tmp_path / "people.csv", columns=["age", "income"]))
    check(median(str(tmp_path / "people.parquet")))
    check(median(tmp_path / "people.csv", columns=["income", "age"], prior="normal(0, 2000)"), ["income", "age"])


def test_missing_entries():
    frame = FRAME.copy()
    frame.loc[3, "age"] = np.nan
    with pytest.raises(ValueError, match="age"):
        median(frame)
    check(median(frame, nonfinite="prior"))


@pytest.mark.parametrize("n", [0, 1, 2])
def test_tiny_tables(n):
    release = median(FRAME.iloc[:n])
    assert np.isfinite(release.value).all() and release.epsilon == 50.0
    assert release.mechanisms[0]["n"] == n


def test_ties_come_out_as_themselves():
    rows = np.full((40, 2), [12.25, 65000.0])
    release = median(rows, prior="uniform(0, [20, 1e5])")
    assert release.value.values.tolist() == [12.25, 65000.0]


# Depths, directions, samplers


@pytest.mark.parametrize("depth", ["halfspace", "integrated_rank_weighted", "integrated_dual"])
@pytest.mark.parametrize("rotated", [False, True], ids=["axes", "rotated"])
def test_every_depth_has_an_exact_draw_on_orthonormal_directions(depth, rotated):
    options = {"directions": dpd.Directions.orthonormal(2, seed=1) if rotated else AXES}
    release = median(depth=depth, epsilon=500.0, **options)
    check(release)
    assert release.sampler == ("boxes" if depth == "halfspace" else "products")
    record = release.mechanisms[0]["depth"]
    assert record["name"] == depth and record["directions"]["kind"] == ("orthonormal" if rotated else "axes")


def test_depth_objects_and_directions_that_replace_theirs():
    depth = dpd.IntegratedRankWeighted(directions=dpd.Directions.uniform(2, 9, seed=0))
    with pytest.raises(NoExactSamplerError, match="orthonormal"):
        median(depth=depth, sampler="products")
    assert median(depth=depth).sampler == "branch_and_bound"
    check(median(depth=depth, directions=dpd.Directions.axes(2), epsilon=500.0))
    check(median(depth=depth, directions=np.eye(2)[::-1], epsilon=500.0))


def test_one_direction_leaves_the_rest_to_the_prior():
    release = median(directions=[[1.0, 0.0]], prior=[pm.Normal.dist(0, 100), pm.Normal.dist(-5e6, 1)])
    assert release.sampler == "segments"
    assert 30 < release.value.values[0] < 50 and abs(release.value.values[1] + 5e6) < 50


@pytest.mark.parametrize(
    ("sampler", "options"),
    [
        ("auto", {}),
        ("boxes", {}),
        ("products", {"depth": "integrated_dual", "epsilon": 500.0}),
        ("segments", {"columns": ["age"], "prior": "normal(0, 100)"}),
    ],
)
def test_exact_samplers_by_name(sampler, options):
    release = median(sampler=sampler, **options)
    check(release, options.get("columns", ("age", "income")))
    assert release.guarantee == "exact"
    assert release.sampler == ("branch_and_bound" if sampler == "auto" else sampler)


@pytest.mark.parametrize("sampler", ["segments", "products"])
def test_a_sampler_that_does_not_fit_says_which_does(sampler):
    with pytest.raises(NoExactSamplerError, match="boxes"):
        median(sampler=sampler, accept_asymptotic=True)


@pytest.mark.parametrize(
    ("sampler", "depth", "chosen"),
    [("nuts", SMOOTH, "nuts"), ("slice", "halfspace", "slice"), ("smc", "halfspace", "smc")],
)
def test_chains_need_consent(short_chains, sampler, depth, chosen):
    options = {"sampler": sampler, "depth": depth, "progressbar": False}
    with pytest.raises(dpd.InexactReleaseError, match="accept_asymptotic"):
        median(**options)
    with NOMINAL:
        release = median(accept_asymptotic=True, **options)
    assert (release.guarantee, release.sampler, release.simulation) == ("asymptotic", chosen, False)
    assert list(release.parameters) == ["location"]
    np.testing.assert_array_equal(release.parameters["location"], release.value)
    assert release.value.coords["coordinate"].values.tolist() == ["age", "income"]


def test_nuts_on_a_step_depth():
    with pytest.raises(dpd.NotDifferentiableError):
        median(sampler="nuts", accept_asymptotic=True)


@pytest.mark.parametrize("sampler", ["gibbs", "", None, "NUTS", "certain", 3, np.zeros(3)])
def test_unknown_samplers(sampler):
    with pytest.raises(ValueError, match="sampler: expected one of"):
        median(sampler=sampler)


# The record


def test_the_record():
    release = median(epsilon=0.5, max_rows_per_unit=4)
    assert (release.epsilon, release.delta, release.max_rows_per_unit) == (2.0, 0.0, 4)
    assert (release.neighboring, release.guarantee) == ("replace_one", "exact")
    assert list(release.locations) == ["median"] and release.value is release.locations["median"]
    np.testing.assert_array_equal(release.parameters["location"], release.value)
    (mechanism,) = release.mechanisms
    assert mechanism["n"] == 60 and mechanism["epsilon"] == 0.5 and mechanism["sensitivity"] == 1 / 60
    (block,) = release.priors["median"]
    assert block["family"] == "Normal" and block["parameters"] == {"mu": 0.0, "sigma": [100.0, 2000.0]}


def test_a_seed_reproduces_and_warns():
    releases = []
    for _ in range(2):
        with SIMULATION:
            releases.append(median(random_seed=11))
    assert releases[0] == releases[1] and releases[0].simulation is True
    with SIMULATION:
        assert median(random_seed=12) != releases[0]


def test_without_a_seed_nothing_repeats():
    np.random.seed(0)  # noqa: NPY002
    first = median(epsilon=1.0)
    np.random.seed(0)  # noqa: NPY002
    second = median(epsilon=1.0)
    assert (first.value.values != second.value.values).all()


@pytest.mark.parametrize("depth", ["halfspace", SMOOTH], ids=["exact", "chain"])
def test_warnings_point_at_the_caller(depth, short_chains):
    prior = pm.Normal.dist(ROWS.mean(0), 100)
    with pytest.warns() as caught:
        sampler = "nuts" if depth is SMOOTH else "auto"
        options = {"sampler": sampler, "accept_asymptotic": True, "progressbar": False}
        median(random_seed=1, prior=prior, depth=depth, **options)
    ours = [w for w in caught if issubclass(w.category, (dpd.PrivacyLeakWarning, dpd.ApproximateSamplingWarning))]
    assert len(ours) == 2 + (depth is SMOOTH) and {w.filename for w in ours} == {__file__}
