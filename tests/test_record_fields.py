import copy
import json
import operator
from functools import reduce

import numpy as np
import pymc as pm
import pytest

import pymc_dpdepth as dpd

ROWS = np.array([[0.31, -1.2], [0.31, 0.4], [-2.07, 0.9], [1.44, 2.3], [0.05, -0.6]])


@pytest.fixture(scope="module")
def fields():
    """The record of a release with dims, a scalar, a list and an infinite parameter."""
    with pm.Model(coords={"coordinate": ["age", "income"], "city": ["x", "y"]}) as model:
        location = pm.TruncatedNormal("location", 0, [1, 2], lower=-5, upper=np.inf, dims="coordinate")
        pm.Normal("effect", dims="city")
        pm.Normal("scalar")
        directions = dpd.Directions.from_array(np.eye(2)[::-1])
        dpd.exponential_mechanism("median", location, ROWS, epsilon=0.1, directions=directions)
    return dpd.release(model).to_dict()


def changed(fields, path, value):
    """Return a copy with another value at a path; `KeyError` as the value leaves the field out."""
    record = copy.deepcopy(fields)
    *where, last = path
    parent = reduce(operator.getitem, where, record)
    if value is KeyError:
        del parent[last]
    else:
        parent[last] = value
    return record


def every_path(value, path=()):
    if isinstance(value, dict | list):
        for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*path, key)
            yield from every_path(entry, (*path, key))


WRONG = [None, "1", "", [], {}, [["x"]], {"x": 1}, True, -1, 1.5, 10**400, float("nan"), float("inf"), [1, [2]]]


def test_whatever_stands_in_a_field_is_read_or_refused_by_a_value_error(fields):
    """Every field, nested ones too, with every kind of wrong value: no error of another kind, and no wrong record."""
    refused = 0
    for path in every_path(fields):
        for value in (*WRONG, KeyError):
            record = changed(fields, path, value)
            try:
                release = dpd.Release.from_dict(record)
            except ValueError as error:
                assert len(str(error)) > 15
                refused += 1
            else:
                assert isinstance(repr(release), str) and dpd.Release.from_dict(release.to_dict()) == release
    assert refused > 500


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("epsilon",), "1.0", r"epsilon: expected a finite number >= 0, got str"),
        (("max_rows_per_unit",), 0, r"max_rows_per_unit: expected an integer >= 1, got 0"),
        (("max_rows_per_unit",), 1.0, r"max_rows_per_unit: expected an integer"),
        (("sampler",), None, r"sampler: expected a text, got NoneType"),
        (("guarantee",), ["exact"], r"guarantee: expected a text, got list"),
        (("locations",), [], r"locations: expected an object with names, got list"),
        (("locations",), {}, r"locations: expected one location"),
        (("mechanisms",), {}, r"mechanisms: expected a list, got dict"),
        (("mechanisms", 0), "median", r"mechanisms\[0\]: expected an object"),
        (("mechanisms", 0, "n"), "5", r"mechanisms\[0\]\.n: expected an integer >= 0, got str"),
        (("mechanisms", 0, "n"), KeyError, r"mechanisms\[0\]: .*missing \['n'\]"),
        (("mechanisms", 0, "steps"), 3, r"mechanisms\[0\]: .*unknown \['steps'\]"),
        (("mechanisms", 0, "center"), 0.0, r"mechanisms\[0\]\.center: expected a list, got 0\.0"),
        (("mechanisms", 0, "depth"), "halfspace", r"mechanisms\[0\]\.depth: expected an object"),
        (("mechanisms", 0, "depth", "directions", "m"), "2", r"depth\.directions\.m: expected an integer"),
        (("priors",), [], r"priors: expected an object with names"),
        (("priors", "median", 0, "start"), None, r"priors\['median'\]\[0\]\.start: expected an integer"),
        (("priors", "median", 0, "parameters", "sigma"), "1", r"\['sigma'\]: expected a number or one of"),
        (("parameters", "effect", "dims"), "city", r"parameters\['effect'\]\.dims: expected a list"),
        (("parameters", "effect", "dims"), ["city", "city"], r"effect: expected 1 dimensions"),
        (("parameters", "effect", "coords", "city"), ["x"], r"effect: .*labels of the lengths \(2,\)"),
        (("parameters", "effect", "coords", "town"), ["x"], r"'effect'.*others for 'town'"),
        (("parameters", "location", "coords", "coordinate"), ["age", 3, "x"], r"labels of the lengths"),
        (("locations", "median", "dims"), ["x"], r"locations\['median'\]: .*'coordinate'"),
        (("locations", "median", "values"), [1.0, "2"], r"locations\['median'\]\.values\[1\]: .*got str"),
    ],
)
def test_the_message_names_field_expectation_and_what_came(fields, path, value, message):
    with pytest.raises(ValueError, match=message):
        dpd.Release.from_dict(changed(fields, path, value))


def test_labels_that_disagree_are_not_merged(fields):
    """xarray would fill the union of the labels with NaN."""
    record = changed(fields, ("parameters", "scalar"), copy.deepcopy(fields["parameters"]["effect"]))
    record["parameters"]["scalar"]["coords"]["city"] = ["y", "z"]
    with pytest.raises(ValueError, match="the same wherever"):
        dpd.Release.from_dict(record)


def test_deep_nesting_is_a_value_error(fields, tmp_path):
    deep = reduce(lambda inner, _: [inner], range(900), 1.0)
    with pytest.raises(ValueError, match="nested too deeply|finite numbers of one shape"):
        dpd.Release.from_dict(changed(fields, ("parameters", "effect", "values"), deep))
    path = tmp_path / "release.json"
    path.write_text('{"schema": ' + "[" * 100_000 + "]" * 100_000 + "}")
    with pytest.raises(ValueError, match="nested too deeply"):
        dpd.Release.from_json(path)


DEPTHS = [
    dpd.Halfspace(directions=None),
    dpd.IntegratedRankWeighted(directions=dpd.Directions.uniform(2, 5, seed=1)),
    dpd.IntegratedDual(smoothing=2.0),
    dpd.Simplicial(),
    dpd.Spatial(),
    dpd.ModifiedSpatial(),
    dpd.CustomObjective(lambda theta, X: -abs(theta - X.mean(0)).sum().clip(0, 1), lambda n, d: 1.0),
]


@pytest.mark.parametrize("depth", DEPTHS, ids=lambda depth: depth.name)
def test_records_of_all_depths_are_read_back(fields, depth):
    with pm.Model() as model:
        location = pm.Normal("location", 0, 3, shape=2)
        dpd.exponential_mechanism("median", location, ROWS, epsilon=0.1, depth=depth, nonfinite="prior")
    from pymc_dpdepth.mechanism import read_mechanisms

    (mechanism,) = read_mechanisms(model)
    record = changed(fields, ("mechanisms", 0), mechanism.settings.describe())
    assert dpd.Release.from_dict(json.loads(json.dumps(record))).mechanisms[0] == record["mechanisms"][0]
