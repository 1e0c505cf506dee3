"""Records whose fields contradict one another are refused; every kind of record that the package writes is not."""

import copy
import json
import pickle

import arviz as az
import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_dpdepth as dpd
from pymc_dpdepth import ptr
from pymc_dpdepth.mechanism import exponential_mechanism

ROWS = np.random.default_rng(1).normal(size=(60, 2))
PRIOR = "normal(0, 3)"
TWO = dpd.Directions.orthonormal(2, seed=3)


def median(depth="halfspace", sampler="auto", rows=ROWS, **options):
    options = {"epsilon": 1.0} | options
    options = {name: value for name, value in options.items() if value is not None}
    return lambda: dpd.private_median(rows, prior=PRIOR, depth=depth, sampler=sampler, **options)


def two_mechanisms():
    with pm.Model() as model:
        parts = [pm.Normal("a", 0, 3), pm.Normal("b", 0, 3)]
        exponential_mechanism("first", pm.math.stack(parts), ROWS, epsilon=0.1, max_rows_per_unit=3)
        exponential_mechanism("second", pm.Normal("other", 0, 3), ROWS[:, 0], epsilon=0.2)
        pm.Normal("nuisance")
    return dpd.release(model)


def of_a_trace():
    with pm.Model() as model:
        location = pm.Normal("location", 0, 3, shape=2)
        exponential_mechanism("median", 2 * location, ROWS, epsilon=1.0, depth="integrated_dual")
    values = np.random.default_rng(3).normal(size=(2, 20, 2))
    idata = az.from_dict({"posterior": {"location": values}})
    with pytest.warns(dpd.ApproximateSamplingWarning):
        return dpd.release(idata, model=model, accept_asymptotic=True)


def chains(sampler, monkeypatch):
    from pymc_dpdepth.samplers import markov

    for name in ("DRAWS", "TUNE", "PARTICLES"):
        monkeypatch.setattr(markov, name, 20)
    with pytest.warns(dpd.ApproximateSamplingWarning):
        return median(dpd.IntegratedDual(smoothing=1.0), sampler, accept_asymptotic=True, progressbar=False)()


WIDE = np.random.default_rng(2).normal(size=(400, 6))
KINDS = {
    "segments": median(rows=ROWS[:, :1]),
    "boxes": median(max_rows_per_unit=7, epsilon=0.1),
    "products": median(dpd.IntegratedRankWeighted(directions=TWO)),
    "branch_and_bound": median(dpd.Halfspace(directions=dpd.Directions.uniform(2, 5, seed=1)), "branch_and_bound"),
    "branch_and_bound, smoothed": median(dpd.IntegratedDual(smoothing=1.0), "branch_and_bound"),
    "planar": median(dpd.Halfspace(directions=None), "planar"),
    "certified": median(sampler="certified", delta=1e-6, rows=ROWS[:8], max_rows_per_unit=2, epsilon=0.5),
    "concentrated": median(sampler="concentrated", delta=1e-6, rows=WIDE),
    "concentrated, three rows": median(sampler="concentrated", delta=1e-6, rows=WIDE, max_rows_per_unit=3),
    "concentrated, small": median(sampler="concentrated", delta=1e-9, rows=WIDE, epsilon=1e-3, max_rows_per_unit=2),
    "concentrated, rho": median(sampler="concentrated", epsilon=None, rho=0.1, rows=WIDE, max_rows_per_unit=2),
    "joint, rho": median(epsilon=None, rho=0.1, rows=ROWS[:, :1]),
    "joint, delta": median(delta=1e-6, rows=ROWS[:, :1]),
    "no rows": median(rows=ROWS[:0]),
    "two mechanisms": two_mechanisms,
    "trace": of_a_trace,
    "depth values": lambda: dpd.private_depth([[0.0, 0.0], [1.0, 1.0]], ROWS, epsilon=1.0, max_rows_per_unit=2),
    "depth values, delta": lambda: dpd.private_depth([[0.0, 0.0]], ROWS, depth="spatial", epsilon=1.0, delta=1e-6),
    "rows' depths": lambda: dpd.private_sample_depths(ROWS, epsilon=1.0),
    "statistic": lambda: ptr.release_statistic(
        WIDE, ptr.Median(), epsilon=2.0, delta=1e-6, threshold=5.0, max_rows_per_unit=2
    ),
    "statistic, gaussian": lambda: ptr.release_statistic(
        WIDE, ptr.MAD(), epsilon=(1.0, 0.5), delta=1e-6, threshold=5.0, noise="gaussian"
    ),
    "refusal": lambda: ptr.release_statistic(ROWS[:5], ptr.Median(), epsilon=0.1, delta=1e-6, threshold=1e-6),
}


def assert_read_back(release):
    record = json.loads(release.to_json())
    assert dpd.Release.from_dict(record) == release and dpd.Release.from_dict(record).to_dict() == record


@pytest.mark.filterwarnings("ignore:delta = .* is not below 1/n")
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_record_is_read_back(kind):
    assert_read_back(KINDS[kind]())


@pytest.mark.parametrize("sampler", ["nuts", "smc", "slice"])
def test_records_of_chains_are_read_back(sampler, monkeypatch):
    release = chains(sampler, monkeypatch)
    assert release.sampler == sampler
    assert_read_back(release)


@pytest.fixture(scope="module")
def records():
    """Records to change, made once."""
    names = ("boxes", "certified", "concentrated", "two mechanisms", "trace", "depth values, delta", "statistic")
    return {name: KINDS[name]().to_dict() for name in names}


@pytest.mark.parametrize(
    ("kind", "path", "value", "match"),
    [
        ("boxes", "sampler", "nuts", "guarantee: expected one that goes with the sampler 'nuts', got 'exact'"),
        ("boxes", "sampler", "trace", "guarantee"),
        ("boxes", "sampler", "boxes+smc", "guarantee"),
        ("boxes", "sampler", "certified", "guarantee"),
        ("boxes", "guarantee", "asymptotic", "guarantee"),
        ("boxes", "guarantee", "certified", "guarantee"),
        ("certified", "guarantee", "exact", "guarantee"),
        ("trace", "guarantee", "float64", "guarantee"),
        ("trace", "simulation", False, "simulation: expected True"),
        ("boxes", "delta", 2.0, "delta: expected a number below 1"),
        ("certified", "delta", 1.0, "delta: expected a number below 1"),
        ("boxes", "delta", 1e-6, "delta: expected 0"),
        ("depth values, delta", "delta", 0.0, "delta: expected a number below 1 and not below a mechanism's"),
        ("statistic", "delta", 1e-7, "delta"),
        ("boxes", "epsilon", 0.001, r"epsilon: expected at least 0\.7"),
        ("boxes", "epsilon", 0.6999999, "epsilon"),
        ("two mechanisms", "epsilon", 0.4999, r"epsilon: expected at least 0\.5"),
        ("certified", "epsilon", 0.5, "epsilon: expected at least 1"),
        ("depth values, delta", "epsilon", 0.5, "epsilon"),
        ("statistic", "epsilon", 2.0, "epsilon: expected at least 4"),
        ("concentrated", "epsilon", 0.99, "epsilon: expected at least .* what rho"),
        ("concentrated", "rho", 0.001, "rho: expected at least"),
        ("concentrated", "rho", None, "rho: expected it"),
        ("boxes", "max_rows_per_unit", 1, "max_rows_per_unit"),
        ("boxes", "max_rows_per_unit", 8, "max_rows_per_unit"),
        ("boxes", "mechanisms", [], "mechanisms: expected one or more"),
        ("boxes", "priors", {}, "priors: expected those of the mechanisms"),
        ("boxes", "priors", {"other": []}, "priors"),
        ("boxes", "neighboring", "x", "neighboring: expected 'replace_one'"),
        ("boxes", "schema_version", True, "schema_version 1"),
        ("boxes", "schema_version", 1.0, "schema_version 1"),
        ("boxes", ("mechanisms", 0, "realised_epsilon"), 0.2, "realised_epsilon"),
        ("boxes", ("mechanisms", 0, "max_rows_per_unit"), 1, "max_rows_per_unit"),
        ("boxes", ("mechanisms", 0, "name"), "other", "locations: expected one of each mechanism"),
        ("boxes", ("parameters", "location", "values", 0), 0.123, "parameters: expected the numbers"),
        ("boxes", ("locations", "median", "values", 1), 0.123, "parameters: expected the numbers"),
        ("two mechanisms", ("parameters", "a", "values"), 0.123, "parameters: expected the numbers of .*first"),
        ("statistic", ("mechanisms", 0, "refused"), True, "locations"),
    ],
)
def test_contradictions_are_refused(records, kind, path, value, match):
    record = copy.deepcopy(records[kind])
    *where, last = (path,) if isinstance(path, str) else path
    parent = record
    for key in where:
        parent = parent[key]
    assert parent[last] != value or type(parent[last]) is not type(value)
    parent[last] = value
    with pytest.raises(ValueError, match=match):
        dpd.Release.from_dict(record)


def test_numbers_beyond_all_doubles_are_refused(records):
    record = copy.deepcopy(records["boxes"])
    record["max_rows_per_unit"] = record["mechanisms"][0]["max_rows_per_unit"] = 10**400
    with pytest.raises(ValueError, match=r"at most 2\^53"):
        dpd.Release.from_dict(record)


def test_two_mechanisms_of_one_name_are_refused(records):
    record = copy.deepcopy(records["two mechanisms"])
    record["mechanisms"][1]["name"] = "first"
    with pytest.raises(ValueError, match="a name of its own"):
        dpd.Release.from_dict(record)


@pytest.mark.parametrize("field", ["epsilon", "values", "family"])
def test_a_field_that_stands_twice_is_refused(records, tmp_path, field):
    text = json.dumps(records["boxes"])
    path = tmp_path / "release.json"
    path.write_text(text.replace(f'"{field}": ', f'"{field}": 0.001, "{field}": ', 1))
    with pytest.raises(ValueError, match="stands in it twice"):
        dpd.Release.from_json(path)


# A Release cannot be changed


@pytest.mark.parametrize("again", [lambda r: r, copy.copy, copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))])
def test_what_a_release_holds_cannot_be_changed(records, again):
    release = again(dpd.Release.from_dict(records["two mechanisms"]))
    changes = [
        lambda: release.mechanisms[0].__setitem__("epsilon", 0.001),
        lambda: release.mechanisms[0].update(epsilon=0.001),
        lambda: release.mechanisms[0].pop("epsilon"),
        lambda: release.mechanisms[0].__ior__({"epsilon": 0.001}),
        lambda: release.mechanisms[0]["depth"].clear(),
        lambda: release.mechanisms[0]["center"].append(1.0),
        lambda: release.mechanisms[0]["center"].__setitem__(0, 1.0),
        lambda: release.priors.setdefault("x", []),
        lambda: release.priors["first"].sort(),
        lambda: release.locations.__setitem__("first", release.locations["second"]),
        lambda: release.locations.__delitem__("first"),
    ]
    for change in changes:
        with pytest.raises(TypeError, match="cannot be changed"):
            change()
    for array in (release.locations["first"], release.parameters["a"]):
        with pytest.raises(ValueError, match="read-only"):
            array.values[...] = 0.0
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0
    assert release.to_dict() == records["two mechanisms"]


def test_the_maker_keeps_arrays_and_dicts_of_their_own(records):
    made = dpd.Release.from_dict(records["boxes"])
    value, settings = made.value.copy(deep=True), made.to_dict()["mechanisms"][0]
    release = dpd.Release(
        locations={"median": value},
        parameters=xr.Dataset({"location": value}),
        epsilon=1.0,
        delta=0.0,
        guarantee="exact",
        max_rows_per_unit=7,
        sampler="boxes",
        simulation=False,
        mechanisms=(settings,),
        priors={"median": []},
    )
    before = release.to_dict()
    value[:] = 0.0
    settings["epsilon"] = 0.001
    assert release.to_dict() == before


def test_a_delta_of_1_is_refused_when_a_release_is_made(records):
    with pytest.raises(ValueError, match="delta: expected a number below 1"):
        dpd.Release.from_dict(records["boxes"] | {"delta": 1})
