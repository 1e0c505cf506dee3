"""`posterior_given_release` from end to end."""

import dataclasses
import warnings

import arviz as az
import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dpdepth as dpd
from pymc_dpdepth.downstream.observations import read_release

QUICK = {"draws": 250, "chains": 1, "replicates": 10, "random_seed": 1, "progressbar": False}
TWO_CHAINS = QUICK | {"chains": 2, "replicates": 5}


def population(spread=None, names=("x0",), center=(0.0, 10.0)):
    with pm.Model(coords={"coordinate": list(names)}) as model:
        middle = pm.Normal("center", *center, dims="coordinate")
        scale = pm.HalfNormal("spread", 2) if spread is None else spread
        pm.Deterministic("twice", 2 * middle, dims="coordinate")
        pm.Normal("row", middle, scale, dims="coordinate")
    return model


def simulate(function, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpd.PrivacyLeakWarning)
        return function(*args, random_seed=3, **options)


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(4).normal(3.0, 1.0, size=(400, 2))


@pytest.fixture(scope="module")
def release(rows):
    return simulate(dpd.private_median, rows[:, :1], epsilon=1.0, prior="normal(0, 10)")


def test_it_works_with_arviz_and_says_what_it_is(release):
    idata = dpd.posterior_given_release(release, population(), **(QUICK | {"chains": 2, "draws": 600}))
    assert idata.posterior["population_median"].dims == ("chain", "draw", "coordinate")
    assert idata.posterior["center"].coords["coordinate"].values.tolist() == ["x0"]
    np.testing.assert_allclose(idata.posterior["population_median"], idata.posterior["center"])
    np.testing.assert_allclose(idata.posterior["twice"], 2 * idata.posterior["center"])
    low, high = idata["interval"]["population_median"].values[0]
    assert low < release.value.item() < high
    assert az.summary(idata, var_names=["center"])["r_hat"].astype(float).max() < 1.1
    attributes = idata["interval"].attrs
    assert (attributes["simulation"], attributes["guarantee"], attributes["ci_prob"]) == ("True", "exact", 0.95)
    again = dpd.posterior_given_release(release, population(), **(QUICK | {"chains": 2, "draws": 600}))
    np.testing.assert_array_equal(again.posterior["center"], idata.posterior["center"])


def test_posterior_of_a_known_scale_is_the_one_of_the_asymptotic_law(rows, release):
    # The released median of normal rows is about normal around the center, with variance pi/2 / n of the rows and the
    # mechanism's own: a two-sided exponential of rate (epsilon/2) n f, f the density at the center.
    idata = dpd.posterior_given_release(release, population(spread=1.0), **(QUICK | {"draws": 2000}))
    drawn = idata.posterior["center"].values.ravel()
    n, density = len(rows), stats.norm.pdf(0)
    deviation = np.sqrt(np.pi / 2 / n + 2 / (n * density / 2) ** 2)
    # 2000 draws of 0.3 effective give 0.04 of a deviation; the asymptotic law itself is off by as much.
    assert abs(drawn.mean() - release.value.item()) < 0.2 * deviation
    assert abs(drawn.std() / deviation - 1) < 0.15


def test_a_release_that_the_prior_made_says_nothing(rows):
    """At a tiny epsilon the value is a draw of the mechanism's prior: the posterior is the population's prior."""
    release = simulate(dpd.private_median, rows[:20, :1], epsilon=0.01, prior="normal(500, 1)")
    assert release.value.item() > 400
    idata = dpd.posterior_given_release(release, population(spread=1.0), **QUICK)
    drawn = idata.posterior["center"].values.ravel()
    assert stats.kstest(drawn[::4], stats.norm(0, 10).cdf).pvalue > 1e-3
    assert abs(drawn.mean()) < 5  # and not 500


def test_a_second_release_tells_the_scale(rows, release):
    wrong = population()
    alone = dpd.posterior_given_release(release, wrong, **(QUICK | {"draws": 1000}))
    second = simulate(dpd.private_depth, [[2.0], [4.0]], rows[:, :1], epsilon=1.0)
    both = dpd.posterior_given_release([release, second], wrong, **TWO_CHAINS)
    deviations = [np.log(idata.posterior["spread"]).std().item() for idata in (alone, both)]
    assert deviations[0] > 0.5 and deviations[1] < 0.15
    assert abs(np.log(both.posterior["spread"]).mean().item()) < 5 * deviations[1]


def test_columns_and_independent_tables(rows):
    both = simulate(dpd.private_median, rows, epsilon=2.0, prior="normal(0, 10)", directions="axes", columns=[0, 1])
    model = population(spread=1.0, names=both.value.coordinate.values.tolist())
    idata = dpd.posterior_given_release(both, model, **TWO_CHAINS)
    assert np.all(np.abs(idata.posterior["population_median"].mean(("chain", "draw")) - 3.0) < 0.5)
    other = simulate(dpd.private_median, rows + 0.01, epsilon=2.0, prior="normal(0, 10)", directions="axes")
    pair = dpd.posterior_given_release([both, other], model, same_rows=False, **TWO_CHAINS)
    widths = [np.ptp(tree["interval"]["population_median"].values, axis=1) for tree in (idata, pair)]
    assert np.all(widths[1] < 0.9 * widths[0])  # sqrt(1/2) = 0.71 of the width, and the quantiles' error


def test_rows_of_several_variables(rows):
    release = simulate(dpd.private_median, np.exp(rows), epsilon=2.0, prior="lognormal(3, 2)", directions="axes")
    with pm.Model() as model:
        centers = pm.Normal("centers", 0, 5, shape=2)
        pm.LogNormal("age", centers[0], 1.0)
        pm.LogNormal("income", centers[1], 1.0)
    idata = dpd.posterior_given_release(release, model, row=["age", "income"], **TWO_CHAINS)
    np.testing.assert_allclose(idata.posterior["population_median"], np.exp(idata.posterior["centers"]), rtol=1e-12)


def test_noise_and_bounds_of_depth_values():
    rows = np.linspace(0, 1, 50)[:, None]
    release = simulate(dpd.private_depth, [[-1.0], [0.5]], rows, epsilon=2.0, delta=1e-6)
    observed = dataclasses.replace(read_release(release), values=np.array([0.0, 0.4]))
    factors = observed.log_factors()
    scale, depths = release.mechanisms[0]["noise_scale"], np.minimum(np.arange(51), 50 - np.arange(51)) / 50
    assert (release.sampler, observed.bounds) == ("gaussian", (0.0, 1.0))
    # A value at the bound 0 stands for all noisy values below, so a depth far above makes it unlikely.
    half = release.mechanisms[0]["noise_grid"] / 2
    np.testing.assert_allclose(factors[0], stats.norm.logcdf(half, depths, scale))
    np.testing.assert_allclose(factors[1], stats.norm.logpdf(0.4, depths, scale))


def refused_release():
    return simulate(dpd.propose_test_release, np.zeros((30, 1)), epsilon=1.0, delta=1e-6, threshold=1e-9, radius=1.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda rows: rows, "expected a Release"),
        (lambda rows: [], "empty sequence"),
        (lambda rows: refused_release(), "refused"),
        (lambda rows: simulate(dpd.private_sample_depths, rows[:, :1], epsilon=1.0), "chosen points"),
        (lambda rows: simulate(dpd.private_depth, [[0, 0]], rows, epsilon=1.0), "one column"),
        (lambda rows: simulate(dpd.private_depth, [[0]], rows[:, :1], epsilon=1.0, isotonic_from=[0]), "rays"),
        (lambda rows: simulate(dpd.private_median, rows, epsilon=1.0, prior="normal(0, 9)"), "directions=.axes."),
        (lambda rows: simulate(dpd.private_median, rows, epsilon=1.0, prior="normal(0, 9)", depth="spatial"), "step"),
        (lambda rows: simulate(dpd.private_median, rows, epsilon=1.0, prior="normal(0, 9)", directions="axes"), "many"),
    ],
)
def test_releases_whose_law_is_not_known_are_refused(rows, make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        dpd.posterior_given_release(make(rows[:30]), population(), **QUICK)


def test_releases_that_do_not_belong_together_are_refused(rows, release):
    fewer = simulate(dpd.private_median, rows[:50, :1], epsilon=1.0, prior="normal(0, 10)")
    with pytest.raises(ValueError, match="same_rows=False"):
        dpd.posterior_given_release([release, fewer], population(), **QUICK)
    pair = [simulate(dpd.private_median, rows, epsilon=1.0, prior="normal(0, 9)", directions="axes")] * 2
    with pytest.raises(ValueError, match="couple"):
        dpd.posterior_given_release(pair, population(names=("x0", "x1")), **QUICK)
    with pytest.raises(ValueError, match="in this order"):
        dpd.posterior_given_release(release, population(names=("age",)), **QUICK)


def test_models_that_are_no_population_are_refused(release):
    with pm.Model() as bare:
        pm.Normal("row", 0, 1)
    with pm.Model() as tied:
        pm.MvNormal("row", pm.Normal("center", 0, 1, shape=1), np.eye(1))
    with pm.Model() as unknown:
        pm.SkewNormal("row", mu=pm.Normal("center", 0, 1), sigma=1, alpha=1)
    with pm.Model() as observed:
        pm.Normal("row", pm.Normal("center", 0, 1), 1, observed=0.0)
    with pm.Model() as discrete:
        pm.Normal("row", pm.Poisson("center", 3), 1)
    with pm.Model() as computed:
        pm.Deterministic("row", pm.Normal("center", 0, 1) + 1)
        pm.Normal("other", 0, 1)
    with pm.Model() as backwards:
        pm.Normal("center", pm.Normal("row", 0, 1), 1)
    for model, message in (
        (bare, "at least one parameter"),
        (tied, "independent columns"),
        (unknown, "not known"),
        (observed, "no observed"),
        (discrete, "discrete"),
        (computed, "computed"),
        (backwards, "depends on the row"),
        (3, "pm.Model"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            dpd.posterior_given_release(release, model, **QUICK)
    with pytest.raises(ValueError, match="expected the name"):
        dpd.posterior_given_release(release, population(), row="person", **QUICK)


def simulated(rows, **options):
    return simulate(dpd.private_median, rows, **({"epsilon": 1.0, "prior": "normal(0, 10)"} | options))


def test_entries_that_may_have_been_missing_are_warned_of(rows):
    with_missing = np.where(np.arange(400)[:, None] < 100, np.nan, rows[:, :1])
    release = simulate(dpd.private_median, with_missing, epsilon=1.0, prior="normal(0, 10)", nonfinite="prior")
    with pytest.warns(UserWarning, match='nonfinite="prior".*no entry was missing') as caught:
        idata = dpd.posterior_given_release(release, population(spread=1.0), **QUICK)
    assert len(caught) == 1
    assert idata["interval"].attrs["assumed"].endswith("no entry was missing")
    plain = dpd.posterior_given_release(simulated(rows[:, :1]), population(spread=1.0), **QUICK)
    assert "missing" not in plain["interval"].attrs["assumed"]


def test_people_with_several_rows_are_warned_of(rows):
    release = simulated(rows[:, :1], max_rows_per_unit=4)
    with pytest.warns(UserWarning, match="up to 4 rows of one person.*too narrow") as caught:
        idata = dpd.posterior_given_release(release, population(spread=1.0), **QUICK)
    assert len(caught) == 1
    assert "each person has one row" in idata["interval"].attrs["assumed"]


@pytest.mark.parametrize(
    ("marks", "word"), [((False,), "yes: "), ((True,), "no: "), ((False, True), "no: "), (("unknown",), "yes: ")]
)
def test_what_is_made_from_a_simulation_is_not_releasable(release, marks, word):
    releases = [dpd.Release.from_dict(release.to_dict() | {"simulation": mark}) for mark in marks]
    idata = dpd.posterior_given_release(releases, population(spread=1.0), **QUICK)
    for group in ("posterior", "interval"):
        assert idata[group].attrs["releasable"].startswith(word)
    assert idata["interval"].attrs["simulation"] == ", ".join(map(str, marks))


def bounded(low, high):
    with pm.Model() as model:
        pm.Normal("row", pm.Uniform("center", low, high), 1.0)
    return model


def test_a_population_that_contradicts_the_release_is_warned_of(rows):
    value = simulated(rows[:, :1])
    with pytest.warns(UserWarning, match="contradicts.*units"):
        idata = dpd.posterior_given_release(value, bounded(100, 110), **QUICK)
    # The release lies below all rows; the mechanism would have to draw there, at exp(-epsilon n / 4) of the middle's
    # weight, which its prior has below 10 standard deviations: exp(-100 + 11**2 / 2 + about 5).
    assert -60 < idata.posterior.attrs["best_log_ratio"] < -20
    both = simulate(dpd.private_median, rows, epsilon=2.0, prior="normal(0, 10)", directions="axes")
    with pm.Model() as model:
        pm.Normal("row", pm.Uniform("center", 100, 110, shape=2), 1.0)
    with pytest.warns(UserWarning, match="contradicts"):
        dpd.posterior_given_release(both, model, **QUICK)
    depths = simulate(dpd.private_depth, [[2.0], [4.0]], rows[:, :1], epsilon=1.0)
    with pytest.warns(UserWarning, match="contradicts"):
        dpd.posterior_given_release(depths, bounded(100, 110), **QUICK)


def test_where_nothing_contradicts_nothing_is_warned_of(rows):
    """Neither a model whose prior reaches the release, nor a release that its mechanism's prior may well have made."""
    for release, model in (
        (simulated(rows[:, :1]), bounded(2, 100)),
        (simulated(rows[:20, :1], epsilon=0.01, prior="normal(500, 1)"), bounded(2, 10)),
        (simulated(rows[:, :1], epsilon=1.0, prior="normal(500, 1)"), bounded(2, 10)),
        (simulate(dpd.private_depth, [[2.0], [4.0]], rows[:, :1], epsilon=1.0), bounded(2, 10)),
    ):
        assert dpd.posterior_given_release(release, model, **QUICK).posterior.attrs["best_log_ratio"] > -2


def test_an_interval_that_another_seed_would_change_is_warned_of(release):
    with pm.Model() as vague:
        pm.Normal("row", pm.Normal("center", 0, 1e6), pm.HalfNormal("spread", 1e3))
    with pytest.warns(UserWarning, match="not stable"):
        dpd.posterior_given_release(release, vague, **QUICK)
    settled = dpd.posterior_given_release(release, population(spread=1.0), **(QUICK | {"chains": 2}))
    assert settled.posterior.attrs["r_hat"] < 1.05 and settled.posterior.attrs["effective_ancestors"] > 50
    interval = settled["interval"]
    width = np.ptp(interval["population_median"].values)
    # 500 particles of a nearly normal law: sqrt(p (1 - p) / 500) / f(q) / 3.92 = 0.03 of the width, if all independent.
    assert np.all((interval["monte_carlo_error"] / width > 0.01) & (interval["monte_carlo_error"] / width < 0.1))


def test_a_draw_of_a_markov_chain_is_labelled(release):
    record = release.to_dict() | {"guarantee": "asymptotic", "sampler": "slice"}
    with pytest.warns(dpd.ApproximateSamplingWarning):
        idata = dpd.posterior_given_release(dpd.Release.from_dict(record), population(spread=1.0), **QUICK)
    assert idata["interval"].attrs["guarantee"] == "asymptotic"


def test_arguments_are_checked(release):
    for wrong in ({"ci_prob": 1.5}, {"draws": 1}, {"chains": 0}, {"same_rows": "yes"}, {"random_seed": -1}):
        with pytest.raises((ValueError, TypeError), match=next(iter(wrong))):
            dpd.posterior_given_release(release, population(), **(QUICK | wrong))
