"""Groups of one call: their Potentials, what one joint draw costs, what is recorded and what is refused."""

import json
import warnings

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
import pytest
import xarray as xr
from scipy import stats

import pymc_dpdepth as dpd
from pymc_dpdepth.groups import calls, costs_of_calls
from pymc_dpdepth.mechanism import Mechanism, exponential_mechanism, read_mechanisms
from pymc_dpdepth.samplers import markov

GENERATOR = np.random.default_rng(8)
LABELS = np.array(["a", "b", "c"])[GENERATOR.integers(0, 3, size=60)]
ROWS = GENERATOR.normal(size=(60, 2)) + np.where(LABELS == "a", 4.0, 0.0)[:, None]
COORDS = {"group": ["a", "b", "c", "nobody"], "coordinate": ["x", "y"]}
AXES = {"directions": "axes"}


def independent(name="location"):
    return pm.Normal(name, 0, 5, dims=("group", "coordinate"))


def pooled(name="location"):
    center = pm.Normal(f"{name}_center", 0, 5, dims="coordinate")
    spread = pm.HalfNormal(f"{name}_spread", 2)
    return pm.Normal(name, center, spread, dims=("group", "coordinate"))


def add(prior=independent, X=ROWS, groups=LABELS, coords=COORDS, name="median", **options):
    with pm.Model(coords=coords) as model:
        exponential_mechanism(name, prior(), X, groups=groups, **({"epsilon": 1.0} | AXES | options))
    return model


# Potentials


def test_each_group_has_its_own_potential_with_its_own_beta():
    with pm.Model(coords=COORDS) as model:
        potentials = exponential_mechanism("median", independent(), ROWS, groups=LABELS, epsilon=1.0, **AXES)
    assert {label: potential.name for label, potential in potentials.items()} == {
        label: f"median[{label}]" for label in COORDS["group"]
    }
    mechanisms = read_mechanisms(model)
    place = GENERATOR.normal(size=(4, 2))
    values = [potential.eval({model["location"]: place}) for potential in model.potentials]
    for index, (mechanism, value) in enumerate(zip(mechanisms, values, strict=True)):
        rows = ROWS[LABELS == COORDS["group"][index]]
        np.testing.assert_array_equal(mechanism.rows, rows)
        settings = mechanism.settings
        assert (settings.n, settings.group.label, settings.call) == (len(rows), COORDS["group"][index], "median")
        if not len(rows):
            assert value == settings.beta == 0
            continue
        assert settings.beta == 0.5 * len(rows)  # halfspace depth: sensitivity 1/n
        (depth,) = dpd.Halfspace(directions=dpd.Directions.axes(2)).evaluate(place[index : index + 1], rows)
        assert value == pytest.approx(0.5 * len(rows) * depth)


@pytest.mark.parametrize(
    ("given", "coords"),
    [
        (np.where(LABELS == "a", 1, 2), [1, 2, 3]),
        (np.where(LABELS == "a", 1.0, 2.0), [1, 2, 3]),
        (np.where(LABELS == "a", "1", "2"), [1, 2, 3]),
        (pd.Series(np.where(LABELS == "a", 1, 2)), np.array([1, 2, 3])),
        (pd.Series(np.where(LABELS == "a", "1", "2"), dtype="category"), ["1", "2", "3"]),
        (np.where(LABELS == "a", 1, 2).tolist(), ("1", "2", "3")),
    ],
    ids=["integers", "floats", "texts for integers", "series", "categories", "integers for texts"],
)
def test_labels_are_matched_to_the_coords(given, coords):
    model = add(groups=given, coords={"group": coords, "coordinate": ["x", "y"]})
    assert [m.settings.n for m in read_mechanisms(model)] == [sum(LABELS == "a"), sum(LABELS != "a"), 0]


def test_one_column_needs_no_axis_of_coordinates():
    model = add(lambda: pm.Normal("location", 0, 5, dims="group"), X=ROWS[:, 0])
    release = dpd.release(model)
    assert release.value.dims == ("group", "coordinate") and release.value.shape == (4, 1)
    assert release.parameters["location"].dims == ("group",) and release.sampler == "segments"
    np.testing.assert_array_equal(release.value.values[:, 0], release.parameters["location"])


REFUSED = {
    "unknown label": (lambda: add(groups=np.where(LABELS == "a", "z", LABELS)), "unknown are .'z'"),
    "missing label": (lambda: add(groups=np.where(LABELS == "a", None, LABELS)), "missing"),
    "too few labels": (lambda: add(groups=LABELS[:-1]), "one label for each of the 60 rows"),
    "one label": (lambda: add(groups="a"), "one label for each"),
    "no axis of groups": (lambda: add(lambda: pm.Normal("location", shape=2)), "an axis of groups"),
    "no dims": (lambda: add(lambda: pm.Normal("location", shape=(4, 2))), "first dim"),
    "no random variable": (lambda: add(lambda: 3.0), "got float"),
    "twice": (lambda: add(coords=COORDS | {"group": ["a", "b", "c", "a"]}), "labels that all differ"),
    "name of the other dim": (
        lambda: add(lambda: pm.Normal("location", dims="coordinate"), ROWS[:, 0], coords={"coordinate": list("abc")}),
        "another name",
    ),
    "columns": (lambda: add(X=np.c_[ROWS, ROWS]), "expected 4 coordinates"),
    "columns in another order": (lambda: add(X=pd.DataFrame(ROWS, columns=["y", "x"])), "one order"),
    "flat": (lambda: add(lambda: pm.Flat("location", dims=("group", "coordinate"))), "flat prior"),
    "flat hyperprior": (
        lambda: add(lambda: pm.Normal("location", pm.Flat("m"), 1, dims=("group", "coordinate")), nonfinite="prior"),
        "flat prior",
    ),
    "epsilon": (lambda: add(epsilon=-1.0), "epsilon"),
    "standardize": (lambda: add(standardize="no", depth=dpd.Spatial(), directions=None), "standardize"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_usable_is_refused(case):
    call, match = REFUSED[case]
    with pytest.raises((ValueError, TypeError), match=match):
        call()


def test_a_refused_call_leaves_no_potential_behind():
    with pm.Model(coords=COORDS) as model:
        location = independent()
        rows = ROWS.copy()
        rows[np.flatnonzero(LABELS == "c")[0], 0] = np.nan  # the last group with rows
        with pytest.raises(ValueError, match="finite"):
            exponential_mechanism("median", location, rows, groups=LABELS, epsilon=1.0)
        assert model.potentials == []
        exponential_mechanism("median", location, ROWS, groups=LABELS, epsilon=1.0)
        with pytest.raises(ValueError, match="another name"):
            exponential_mechanism("median", location, ROWS, groups=LABELS, epsilon=1.0)


def test_missing_entries_become_the_prior_s_median_of_their_group():
    rows = ROWS.copy()
    rows[0] = np.nan
    where = COORDS["group"].index(LABELS[0])
    medians = np.arange(8.0).reshape(4, 2)
    model = add(lambda: pm.Normal("location", medians, 5, dims=("group", "coordinate")), rows, nonfinite="prior")
    np.testing.assert_array_equal(read_mechanisms(model)[where].rows[0], medians[where])


def test_smooth_depths_are_standardised_by_the_marginal_prior_of_each_group():
    means = np.array([0.0, 100.0, 200.0, 300.0])[:, None]

    def prior():
        return pm.Normal("location", means + pm.Normal("shift", 0, 3), 4, dims=("group", "coordinate"))

    model = add(prior, depth=dpd.IntegratedDual(smoothing=1.0), directions=None)
    for mechanism, mean in zip(read_mechanisms(model), means[:, 0], strict=True):
        # Normal with sd 5: of 2000 draws the median has sd 1.25 * 5 / sqrt(2000) = .14, the IQR of 6.74 about .18.
        np.testing.assert_allclose(mechanism.settings.center, mean, atol=0.8)
        np.testing.assert_allclose(mechanism.settings.scale, 6.745, atol=1.0)


# Cost


def test_groups_of_one_call_cost_the_most_of_them_and_calls_add_up(ledger):
    with pm.Model(coords=COORDS | {"other": ["a", "b", "c"]}) as model:
        exponential_mechanism("first", independent(), ROWS, groups=LABELS, epsilon=0.5, max_rows_per_unit=3, **AXES)
        second = pm.Normal("second", 0, 5, dims=("other", "coordinate"))
        exponential_mechanism("other", second, ROWS, groups=LABELS, epsilon=0.25, **AXES)
        exponential_mechanism("whole", pm.Normal("third", 0, 5, shape=2), ROWS, epsilon=0.125, **AXES)
    mechanisms = read_mechanisms(model)
    assert [len(call) for call in calls(mechanisms)] == [4, 3, 1]
    assert costs_of_calls(mechanisms) == [1.5, 0.25, 0.125]
    release = dpd.release(model, ledger=ledger)
    assert release.epsilon == 1.875 and ledger.charges == [(1.875, 0.0, "first, other, whole")]
    assert set(release.locations) == {"first", "other", "whole"} and release.max_rows_per_unit == 3
    assert release.neighboring == "replace_one_within_group"
    assert dpd.Release.from_dict(json.loads(release.to_json())) == release


def test_a_bounded_range_is_charged_once_for_a_call():
    with dpd.PrivacyAccountant(epsilon=0.6, delta=1e-6) as budget:
        dpd.release(add(epsilon=0.5), ledger=budget)
        assert budget.spent().epsilon == pytest.approx(0.5)


def test_the_same_call_in_two_submodels_is_two_mechanisms():
    with pm.Model(coords=COORDS) as outer:
        for name in ("men", "women"):
            with pm.Model(name=name):
                exponential_mechanism("median", independent(), ROWS, groups=LABELS, epsilon=0.5, **AXES)
    assert costs_of_calls(read_mechanisms(outer)) == [0.5, 0.5]
    release = dpd.release(outer)
    assert set(release.locations) == {"men::median", "women::median"} and release.epsilon == 1.0
    assert dpd.Release.from_dict(json.loads(release.to_json())) == release


def test_copies_of_a_model_keep_a_call_together():
    model = add()
    with pm.Model(coords=COORDS):
        pass
    for copy in (pm.do(model, {}), pm.model.fgraph.clone_model(model)):
        (cost,) = costs_of_calls(read_mechanisms(copy))
        assert cost == 1.0
        assert dpd.release(copy).epsilon == 1.0


def tied(rows, depth):
    def prior():
        return pm.Normal("location", pm.Normal("center"), pm.HalfNormal("spread"), dims="group")

    groups = ["p", "p", "p", "q", "q"]
    return add(
        prior, np.array(rows, float), groups, {"group": ["p", "q"]}, depth=depth, standardize=None, directions=None
    )


def log_law(model, grid):
    """Return the log law of center, spread and the two locations, restricted to the points of a grid."""
    center, spread, *locations = grid.T
    log_law = stats.norm.logpdf(center) + stats.halfnorm.logpdf(spread)
    for mechanism, location in zip(read_mechanisms(model), locations, strict=True):
        settings = mechanism.settings
        place, rows = ((values - settings.center) / settings.scale for values in (location[:, None], mechanism.rows))
        log_law += stats.norm.logpdf(location, center, spread) + settings.beta * settings.depth.evaluate(place, rows)
    return log_law - np.logaddexp.reduce(log_law)


@pytest.mark.parametrize("depth", ["halfspace", dpd.IntegratedDual(smoothing=3.0)], ids=["step", "smooth"])
def test_one_joint_draw_of_a_hierarchy_is_epsilon_private(depth, monkeypatch):
    # The law restricted to the points of a grid is an exponential mechanism, too, so its loss must stay below epsilon.
    places = np.linspace(-1.3, 1.3, 13)
    grid = np.stack(np.meshgrid([-0.5, 0.5], [0.3, 2.0], places, places), axis=-1).reshape(-1, 4)
    pairs = [([-1, -1, -1, 1, 1], [1, -1, -1, 1, 1]), ([0, 0, 0, -1, -1], [0, 0, 0, -1, 1])]

    def loss():
        return max(np.abs(np.subtract(*(log_law(tied(rows, depth), grid) for rows in pair))).max() for pair in pairs)

    assert 0.2 < loss() <= 1.0 + 1e-9
    # A beta from the rows of four such groups instead of the group's own is noticed.
    honest = Mechanism.sensitivity.fget
    monkeypatch.setattr(Mechanism, "sensitivity", property(lambda self: honest(self) / 4))
    assert loss() > 1.0


# Draws


def test_independent_groups_are_drawn_as_if_each_were_alone():
    draws = 4000
    with pytest.warns(dpd.PrivacyLeakWarning, match="random_seed"):
        together = dpd.sample_exact(draws, model=add(), random_seed=3).posterior["location"].values[0]
    for index, label in enumerate(COORDS["group"]):
        with pm.Model() as alone:
            location = pm.Normal("location", 0, 5, shape=2)
            exponential_mechanism("median", location, ROWS[LABELS == label], epsilon=1.0, **AXES)
        with pytest.warns(dpd.PrivacyLeakWarning, match="random_seed"):
            single = dpd.sample_exact(draws, model=alone, random_seed=100 + index).posterior["location"].values[0]
        for j in range(2):  # 8 tests of a familywise level of 1e-6
            assert stats.ks_2samp(together[:, index, j], single[:, j]).pvalue > 1e-6 / 8
    # Draws of different groups are independent: correlations of sd 1/sqrt(draws), 24 of them, 6 sds.
    correlations = np.corrcoef(together.reshape(draws, -1).T) - np.eye(8)
    across = np.kron(1 - np.eye(4), np.ones((2, 2)))
    assert np.abs(correlations * across).max() < 6 / np.sqrt(draws)


def stacked():
    parts = [pm.Normal("p", 0, 3, shape=2), pm.Uniform("q", -9, 9, shape=2), pm.Laplace("r", 0, 1, shape=2)]
    return pm.Deterministic(
        "location", pt.stack([*parts, pm.Normal("s", 50, 1, shape=2)]), dims=("group", "coordinate")
    )


def correlated():
    covariance = np.array([[4.0, 1.0], [1.0, 4.0]])
    return pm.MvNormal("location", np.zeros(2), covariance, dims=("group", "coordinate"))


PLANS = {
    "boxes": (independent, AXES, "boxes"),
    "products": (independent, AXES | {"depth": "integrated_dual"}, "products"),
    "stacked": (stacked, AXES, "boxes"),
    "branch and bound": (correlated, {"directions": None}, "branch_and_bound"),
    "smooth": (independent, {"depth": dpd.Spatial(), "directions": None}, "branch_and_bound"),
}


@pytest.mark.parametrize("case", PLANS)
def test_every_independent_prior_has_an_exact_draw(case):
    prior, options, sampler = PLANS[case]
    release = dpd.release(add(prior, **options))
    assert release.sampler == sampler and release.guarantee == ("float64" if case == "smooth" else "exact")
    assert release.value.dims == ("group", "coordinate")
    assert release.value.coords["group"].values.tolist() == COORDS["group"]
    assert release.value.coords["coordinate"].values.tolist() == ["x", "y"]
    assert release.epsilon == 1.0 and len(release.mechanisms) == 4
    assert dpd.Release.from_dict(json.loads(release.to_json())) == release
    if case == "stacked":
        np.testing.assert_array_equal(release.parameters["q"], release.value.sel(group="b"))
        assert release.value.sel(group="nobody").min() > 40


def test_a_row_without_a_group_of_its_own_is_refused():
    with pm.Model(coords=COORDS) as model:
        exponential_mechanism("median", independent()[1], ROWS, epsilon=1.0, **AXES)
    with pytest.raises(dpd.NoExactSamplerError, match="belong to no group"):
        dpd.sample_exact(3, model=model)


@pytest.mark.parametrize("sampler", ["nuts", "smc", "slice", "trace"])
def test_chains_release_all_groups_at_the_cost_of_one(sampler, monkeypatch, ledger):
    for name, value in {"CHAINS": 2, "DRAWS": 10, "TUNE": 10, "PARTICLES": 20}.items():
        monkeypatch.setattr(markov, name, value)
    smooth = {"depth": dpd.IntegratedDual(smoothing=1.0), "directions": None} if sampler == "nuts" else AXES
    model = add(lambda: pm.Deterministic("shifted", pooled() + 1.0, dims=("group", "coordinate")), **smooth)
    source, options = model, {"sampler": sampler, "progressbar": False}
    if sampler == "trace":
        values = {v.name: GENERATOR.uniform(1, 2, size=(1, 5, *model.eval_rv_shapes()[v.name])) for v in model.free_RVs}
        source, options = az.from_dict({"posterior": values}), {"model": model}
    with pytest.warns(dpd.ApproximateSamplingWarning, match="nominal"):
        release = dpd.release(source, accept_asymptotic=True, ledger=ledger, **options)
    assert release.guarantee == "asymptotic" and release.epsilon == 1.0 and len(ledger.charges) == 1
    np.testing.assert_array_equal(release.value.values, release.parameters["location"].values + 1.0)
    assert dpd.Release.from_dict(json.loads(release.to_json())) == release


def trace_of(model):
    """Return a trace in which a value tells its place: the index of the group, and that of the column in tenths."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        idata = dpd.sample_exact(3, model=model)
    posterior = idata.posterior.to_dataset()
    return posterior.assign(location=0 * posterior["location"] + np.arange(4.0)[:, None] + [0.0, 0.1])


REORDERED = {
    "as it is": lambda p: p,
    "groups turned": lambda p: p.isel(group=[3, 1, 0, 2]),
    "columns turned": lambda p: p.isel(coordinate=[1, 0]),
    "dims turned": lambda p: p.assign(location=p["location"].transpose("coordinate", "draw", "group", "chain")),
    "without labels": lambda p: p.drop_vars(["group", "coordinate"]),
}


@pytest.mark.filterwarnings("ignore::pymc_dpdepth.ApproximateSamplingWarning")
@pytest.mark.parametrize("how", REORDERED)
def test_a_trace_is_aligned_to_the_model_by_its_labels(how):
    model = add(pooled)
    trace = xr.DataTree.from_dict({"posterior": REORDERED[how](trace_of(model))})
    release = dpd.release(trace, model=model, accept_asymptotic=True)
    assert release.value.coords["group"].values.tolist() == COORDS["group"]
    np.testing.assert_array_equal(release.value, np.arange(4.0)[:, None] + [0.0, 0.1])


MISLABELLED = {
    "other groups": lambda p: p.assign_coords(group=list("pqrs")),
    "numbers for groups": lambda p: p.assign_coords(group=range(4)),
    "a group twice": lambda p: p.assign_coords(group=["a", "a", "b", "nobody"]),
    "other columns": lambda p: p.assign_coords(coordinate=["x", "z"]),
    "another dim": lambda p: p.rename(group="plan"),
    "fewer groups": lambda p: p.isel(group=[0, 1]),
}


@pytest.mark.parametrize("how", MISLABELLED)
def test_a_trace_with_other_labels_is_refused_before_the_charge(how, ledger):
    model = add(pooled)
    trace = xr.DataTree.from_dict({"posterior": MISLABELLED[how](trace_of(model))})
    with pytest.raises(ValueError, match="trace's"):
        dpd.release(trace, model=model, accept_asymptotic=True, ledger=ledger)
    assert ledger.charges == []


@pytest.mark.filterwarnings("ignore::pymc_dpdepth.ApproximateSamplingWarning")
def test_a_trace_without_groups_is_aligned_by_its_coordinates():
    with pm.Model(coords={"coordinate": ["x", "y"]}) as model:
        location = pm.Normal("location", 0, 5, dims="coordinate")
        exponential_mechanism("median", location, ROWS, epsilon=1.0)
        posterior = dpd.sample_exact(3).posterior.to_dataset()
    posterior = posterior.assign(location=0 * posterior["location"] + [1.0, 2.0]).isel(coordinate=[1, 0])
    release = dpd.release(xr.DataTree.from_dict({"posterior": posterior}), model=model, accept_asymptotic=True)
    assert release.value.sel(coordinate="x") == 1.0 and release.value.sel(coordinate="y") == 2.0


def test_a_hierarchy_without_an_exact_sampler_needs_consent(ledger):
    model = add(pooled, depth=dpd.IntegratedDual(smoothing=1.0), directions=None)
    with pytest.raises(dpd.InexactReleaseError, match="accept_asymptotic"):
        dpd.release(model, ledger=ledger)
    assert ledger.charges == []


# Records


@pytest.fixture(scope="module")
def record():
    return dpd.release(add()).to_dict()


def changed(record, *path_and_value):
    *path, last, value = path_and_value
    copy = json.loads(json.dumps(record))
    place = copy
    for step in path:
        place = place[step]
    place[last] = value
    return copy


TAMPERED = {
    "epsilon of all": (("epsilon", 0.5), "epsilon: expected at least 1"),
    "relation": (("neighboring", "replace_one"), "neighboring"),
    "epsilon of one": (("mechanisms", 1, "epsilon", 0.5), "one epsilon for all groups"),
    "rows of a person": (("mechanisms", 0, "max_rows_per_unit", 2), "max_rows_per_unit"),
    "depth": (("mechanisms", 2, "depth", {"name": "spatial"}), "one depth"),
    "label": (("mechanisms", 0, "group", "label", "b"), "named median"),
    "name": (("mechanisms", 0, "name", "median"), "priors"),
    "dim": (("mechanisms", 0, "group", "dim", "plan"), "dim"),
    "call": (("mechanisms", 0, "group", "mechanism", "mean"), "locations"),
    "field": (("mechanisms", 0, "group", {"label": "a"}), "group: expected the fields"),
    "labels": (("locations", "median", "coords", "group", list("bac") + ["nobody"]), "labels"),
    "order of dims": (("locations", "median", "dims", ["coordinate", "group"]), "dimensions"),
    "value": (("locations", "median", "values", [[0.5, 0.5]] * 4), "parameters"),
}


@pytest.mark.parametrize("case", TAMPERED)
def test_records_of_groups_that_contradict_themselves_are_refused(record, case):
    change, match = TAMPERED[case]
    assert dpd.Release.from_dict(record).to_dict() == record
    with pytest.raises(ValueError, match=match):
        dpd.Release.from_dict(changed(record, *change))


def test_groups_cannot_be_made_of_mechanisms_of_their_own(record):
    with pm.Model() as model:
        for name in ("median[a]", "median[b]"):
            exponential_mechanism(name, pm.Normal(f"of {name}", shape=2), ROWS, epsilon=1.0, **AXES)
    release = dpd.release(model).to_dict()
    assert release["epsilon"] == 2.0
    with pytest.raises(ValueError, match="epsilon: expected at least 2"):
        dpd.Release.from_dict(changed(release, "epsilon", 1.0))


def test_no_row_and_no_label_of_a_row_is_in_what_leaves():
    rows = ROWS.copy()
    rows[7] = 0.123456789123, 0.987654321987
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = dpd.release(add(X=rows)).to_json() + repr(read_mechanisms(add(X=rows)))
    assert "0.1234567891" not in text and "0.9876543219" not in text
