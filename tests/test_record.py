import copy
import json
import os
import re

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_dpdepth as dpd
from pymc_dpdepth import record_files
from pymc_dpdepth.mechanism import exponential_mechanism

ROWS = np.array([[0.31, -1.2], [0.31, 0.4], [-2.07, 0.9], [1.44, 2.3], [0.05, -0.6]])
EXTREME = [5e-324, -0.0, 1.7976931348623157e308, 0.1, 1 / 3, -2.2250738585072014e-308, 123456.789012345]

SETTINGS = {
    "name": "median",
    "depth": {"name": "halfspace", "smoothing": None, "directions": None},
    "epsilon": 1.0,
    "max_rows_per_unit": 1,
    "sensitivity": 0.2,
    "n": 5,
    "center": [0.0, 0.0],
    "scale": [1.0, 1.0],
    "nonfinite": "raise",
}


def made(values=(1.5, -2.0), **changes):
    columns = [f"c{j}" for j in range(len(values))]
    value = xr.DataArray(np.array(values), dims=["coordinate"], coords={"coordinate": columns})
    fields = {
        "locations": {"median": value},
        "parameters": xr.Dataset({"location": value}),
        "epsilon": 1.0,
        "delta": 0.0,
        "guarantee": "exact",
        "max_rows_per_unit": 1,
        "sampler": "boxes",
        "simulation": False,
        "mechanisms": (SETTINGS,),
        "priors": {"median": []},
    }
    return dpd.Release(**(fields | changes))


@pytest.fixture(scope="module")
def real():
    """A release with two mechanisms, scalars, dims and an infinite parameter of a prior."""
    with pm.Model(coords={"coordinate": ["age", "income"]}) as model:
        location = pm.TruncatedNormal("location", 0, [1, 2], lower=-5, upper=np.inf, dims="coordinate")
        exponential_mechanism("median", location, ROWS, epsilon=0.1)
        exponential_mechanism("scalar", pm.Cauchy("other", 0, 1), ROWS[:, 0], epsilon=0.2, depth="integrated_dual")
        pm.Normal("nuisance", shape=3)
    return dpd.release(model)


# Round trip


def bits(array):
    return np.asarray(array, dtype=np.float64).tobytes()


def test_json_round_trip_to_the_bit(tmp_path):
    release = made(EXTREME)
    path = tmp_path / "release.json"
    text = release.to_json(path)
    assert path.read_text() == text == release.to_json()
    back = dpd.Release.from_json(path)
    assert back == release and bits(back.value) == bits(EXTREME)
    assert back.to_json() == text
    assert back.value.identical(release.value.rename("median")) and back.parameters["location"].dims == ("coordinate",)
    assert dpd.Release.from_json(str(path)) == release


def test_a_difference_in_the_last_bit_is_a_difference():
    assert made([1.0, 2.0]) != made([1.0, np.nextafter(2.0, 3.0)])
    assert made() != "release" and made() == made()
    with pytest.raises(TypeError):
        hash(made())


def test_a_real_release_survives(real, tmp_path):
    real.to_json(tmp_path / "release.json")
    back = dpd.Release.from_json(tmp_path / "release.json")
    assert back == real and back.to_dict() == real.to_dict()
    assert back.parameters["other"].dims == () and back.parameters["nuisance"].shape == (3,)
    assert bits(back.locations["median"]) == bits(real.locations["median"])
    assert back.locations["median"].coords["coordinate"].values.tolist() == ["age", "income"]
    (block,) = back.priors["median"]
    assert block["family"] == "TruncatedNormal" and block["parameters"]["upper"] == "inf"


def test_json_is_json(real):
    def refuse(token):
        raise AssertionError(token)

    assert json.loads(real.to_json(), parse_constant=refuse)["schema"] == "pymc_dpdepth.release"
    with pytest.raises(ValueError, match="JSON"):
        made([np.nan, 1.0]).to_json()


# The allow-list: what leaves the curator is this and nothing else. A new key needs a reason why it is either a public
# input or the output of a private mechanism; a bound, a step count, a time or a diagnostic of the draw is neither.

FIELDS = {
    "schema", "schema_version", "package_version",  # constants of the package
    "epsilon", "delta", "rho", "neighboring", "max_rows_per_unit",  # public inputs
    "guarantee", "guarantee_meaning", "sampler", "simulation",  # chosen from public settings alone
    "mechanisms", "priors",  # public inputs
    "locations", "parameters",  # outputs of the mechanism
}  # fmt: skip
MECHANISM = {"name", "depth", "epsilon", "max_rows_per_unit", "sensitivity", "n", "center", "scale", "nonfinite"}
MECHANISM |= {"realised_epsilon"}  # of epsilon, n, depth and directions alone
ARRAY = {"dims", "coords", "values"}


def test_the_allow_list(real):
    fields = real.to_dict()
    assert set(fields) == FIELDS
    assert all(set(mechanism) == MECHANISM for mechanism in fields["mechanisms"])
    assert all(set(mechanism["depth"]) == {"name", "smoothing", "directions"} for mechanism in fields["mechanisms"])
    for group in ("locations", "parameters"):
        assert all(set(array) == ARRAY for array in fields[group].values())
    assert set(fields["locations"]) == set(fields["priors"]) == {"median", "scalar"}
    assert set(fields["parameters"]) == {"location", "other", "nuisance"}
    assert all(set(b) == {"family", "parameters", "start", "stop"} for p in fields["priors"].values() for b in p)


def test_all_but_the_draw_is_the_same_for_other_rows():
    """What is public cannot differ between tables of one size."""
    records = []
    for rows in (ROWS, ROWS * 1e6 + 7, np.zeros((5, 2))):
        for depth in ("halfspace", "integrated_dual"):
            fields = dpd.private_median(rows, epsilon=1.0, prior="normal(0, 3)", depth=depth).to_dict()
            drawn = (fields.pop("locations")["median"], fields.pop("parameters")["location"])
            assert drawn[0]["values"] == drawn[1]["values"]
            records.append(fields)
    assert records[0] == records[2] == records[4] and records[1] == records[3] == records[5]


# What is refused


def test_other_versions_are_refused():
    for version in (0, 2, "1", None, 1.5):
        with pytest.raises(ValueError, match="schema_version 1"):
            dpd.Release.from_dict(made().to_dict() | {"schema_version": version})
    for schema in ("other", None, 1):
        with pytest.raises(ValueError, match=r"pymc_dpdepth\.release"):
            dpd.Release.from_dict(made().to_dict() | {"schema": schema})
    for thing in (None, [], "x", 1):
        with pytest.raises(ValueError, match=r"pymc_dpdepth\.release"):
            dpd.Release.from_dict(thing)


DERIVED = {"schema", "schema_version", "guarantee_meaning"}


@pytest.mark.parametrize("field", sorted(FIELDS - DERIVED))
def test_missing_fields_are_refused(field):
    fields = made().to_dict()
    del fields[field]
    with pytest.raises(ValueError, match=rf"missing \['{field}'\]"):
        dpd.Release.from_dict(fields)


@pytest.mark.parametrize("field", ["steps", "run_time", "log_density", "rows", "idata"])
def test_unknown_fields_are_refused(field):
    with pytest.raises(ValueError, match=rf"unknown \['{field}'\]"):
        dpd.Release.from_dict(made().to_dict() | {field: 3})
    with pytest.raises(TypeError, match=field):
        made(**{field: 3})


@pytest.mark.parametrize(
    "change",
    [
        {"guarantee": "certain"},
        {"guarantee": "perfect"},
        {"simulation": "maybe"},
        {"simulation": 1},
        {"simulation": None},
        {"epsilon": "1"},
        {"epsilon": -1.0},
        {"epsilon": float("nan")},
        {"epsilon": float("inf")},
        {"epsilon": True},
        {"delta": None},
    ],
    ids=str,
)
def test_fields_out_of_their_range(change):
    (name,) = change
    with pytest.raises(ValueError, match=name):
        made(**change)
    with pytest.raises(ValueError, match=name):
        dpd.Release.from_dict(made().to_dict() | change)


@pytest.mark.parametrize(
    "entry",
    [
        [1.0],
        {"dims": ["coordinate"], "values": [1.0]},
        {"dims": ["coordinate"], "coords": {}, "values": ["1"]},
        {"dims": ["coordinate"], "coords": {}, "values": [[1.0], [1.0, 2.0]]},
        {"dims": ["coordinate"], "coords": {}, "values": [None]},
        {"dims": ["coordinate"], "coords": {}, "values": [True]},
        {"dims": ["coordinate"], "coords": {}, "values": [float("inf")]},
        {"dims": ["coordinate"], "coords": {}, "values": [1.0], "attrs": {"steps": 3}},
    ],
    ids=str,
)
def test_arrays_of_another_form(entry):
    for group in ("locations", "parameters"):
        with pytest.raises(ValueError, match="median"):
            dpd.Release.from_dict(made().to_dict() | {group: {"median": entry}})


@pytest.mark.parametrize("text", ["", "not json", "{", "[1, 2", '{"epsilon": NaN}', "\x00"])
def test_files_that_are_not_json(tmp_path, text):
    path = tmp_path / "release.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="expected|Expected"):
        dpd.Release.from_json(path)


@pytest.mark.parametrize("text", ["[]", "{}", "3", "null", '{"schema": "pymc_dpdepth.release"}'])
def test_files_that_are_json_but_no_release(tmp_path, text):
    path = tmp_path / "release.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="schema"):
        dpd.Release.from_json(path)


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        dpd.Release.from_json(tmp_path / "none.json")


# Writing


@pytest.mark.parametrize("step", ["replace", "fdopen", "chmod"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, step):
    path = tmp_path / "release.json"
    made([1.0, 2.0]).to_json(path)
    before = path.read_bytes()

    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(record_files.os, step, fail)
    with pytest.raises(OSError, match="disk full"):
        made([3.0, 4.0]).to_json(path)
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["release.json"] and path.read_bytes() == before


def test_a_failed_first_write_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr(record_files.os, "replace", lambda *args: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        made().to_json(tmp_path / "release.json")
    assert os.listdir(tmp_path) == []


def test_a_release_that_is_no_json_does_not_touch_the_file(tmp_path):
    path = tmp_path / "release.json"
    made().to_json(path)
    with pytest.raises(ValueError, match="JSON"):
        made([np.inf, 1.0]).to_json(path)
    assert dpd.Release.from_json(path) == made() and os.listdir(tmp_path) == ["release.json"]


def test_a_second_release_replaces_the_first_and_can_be_read_by_others(tmp_path):
    path = tmp_path / "release.json"
    made([1.0, 2.0]).to_json(path)
    made([3.0, 4.0]).to_json(path)
    assert dpd.Release.from_json(path).value.values.tolist() == [3.0, 4.0]
    mask = os.umask(0)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask
    with pytest.raises(FileNotFoundError):
        made().to_json(tmp_path / "no folder" / "release.json")


# Showing


def test_repr(real):
    assert repr(made()) == "<Release of [c0, c1]: epsilon=1, delta=0, exact (boxes)>"
    assert repr(made(simulation=True)).endswith("(boxes, simulation)>")
    assert repr(made(simulation="unknown")).endswith("(boxes, simulation unknown)>")
    assert "age, income" in repr(real) and "0.3" in repr(real)
    assert not re.search(r"\d\.\d{4}", repr(real))  # not the draw itself: what prints by accident is dull


def test_one_value_or_a_choice(real):
    assert made().value.values.tolist() == [1.5, -2.0]
    with pytest.raises(ValueError, match=r"2 locations.*median.*scalar"):
        real.value  # noqa: B018


def test_a_record_is_not_the_release_s_own_memory():
    release = made()
    fields = release.to_dict()
    reference = copy.deepcopy(fields)
    fields["locations"]["median"]["values"][0] = 99.0
    fields["mechanisms"][0]["epsilon"] = 99.0
    fields["priors"]["other"] = []
    assert release.to_dict() == reference


def test_a_release_is_frozen():
    with pytest.raises(AttributeError):
        made().epsilon = 0.1
