import json
import math

import numpy as np
import pytest

import pymc_dpdepth as dpd
from pymc_dpdepth import ptr
from pymc_dpdepth.ptr.outlyingness import NO_CAP

ROWS = np.random.default_rng(0).normal(size=(4001, 2))
DIRECTIONS = dpd.Directions.uniform(2, 20)
BUDGET = {"epsilon": 4.0, "delta": 1e-5}
# The breakdowns are 28 and 33 at these thresholds: a refusal has a probability below 1e-9.
MEDIAN = BUDGET | {"threshold": 0.15, "radius": 5.0, "directions": DIRECTIONS}
VALUES = BUDGET | {"threshold": 0.2, "points": [[0.0, 0.0], [1.0, 1.0], [0.0, -2.0]], "directions": DIRECTIONS}


def test_median(ledger):
    release = dpd.propose_test_release(ROWS, ledger=ledger, **MEDIAN)
    assert not release.refused
    assert release.value.dims == ("coordinate",) and list(release.value.coordinate.values) == ["x0", "x1"]
    assert np.linalg.norm(release.value) < 1
    assert (release.epsilon, release.delta, release.guarantee, release.sampler) == (
        4.0,
        1e-5,
        "float64",
        "branch_and_bound",
    )
    assert ledger.charges == [(4.0, 1e-5, "projection_median")]
    assert (release.parameters["location"].values == release.value.values).all()
    (record,) = release.mechanisms
    assert record["cap"] == 2.0 and record["radius"] == [5.0, 5.0] and record["threshold"] == 0.15
    assert record["test_cut"] == pytest.approx(1 + math.log(1 / 2e-5) / 2, abs=1e-5)
    assert record["depth"]["scale"] == "mad" and record["depth"]["directions"]["m"] == 20


def test_refusal_is_an_output_and_is_charged(ledger, tmp_path):
    # B = 1 here: released with probability delta.
    release = dpd.propose_test_release(ROWS[:30], ledger=ledger, **MEDIAN | {"threshold": 1e-4})
    assert release.refused
    assert ledger.charges == [(4.0, 1e-5, "projection_median")]
    assert release.locations == {} and not release.parameters
    with pytest.raises(ValueError, match="refused"):
        _ = release.value
    assert "refused" in repr(release)
    release.to_json(tmp_path / "release.json")
    assert dpd.Release.from_json(tmp_path / "release.json") == release
    record = json.loads((tmp_path / "release.json").read_text())
    record["locations"] = {"projection_median": {"dims": ["coordinate"], "coords": {"coordinate": [0]}, "values": [1]}}
    with pytest.raises(ValueError, match="refused"):
        dpd.Release.from_dict(record)


def test_records_hold_nothing_of_the_rows():
    # Two tables, one refused and one not for each: apart from the value and the answer, the records are equal.
    def settings(release):
        record = release.to_dict()
        record["mechanisms"][0].pop("refused")
        return {k: v for k, v in record.items() if k not in ("locations", "parameters")}

    first = dpd.propose_test_release(ROWS, **MEDIAN)
    second = dpd.propose_test_release(np.zeros((4001, 2)), **MEDIAN)
    assert not first.refused and second.refused
    assert settings(first) == settings(second)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_depth_values(noise, ledger):
    release = dpd.propose_test_release(ROWS, noise=noise, ledger=ledger, **VALUES)
    assert release.value.dims == ("point",) and release.sampler == noise
    assert ((release.value > 0) & (release.value <= 1)).all()
    (record,) = release.mechanisms
    assert record["points"] == VALUES["points"] and record["cap"] == NO_CAP and record["radius"] is None
    expected = dpd.Projection("mad", DIRECTIONS).evaluate(VALUES["points"], ROWS)
    # Noise of scale .3 (Laplace) or .7 (Gaussian) on O, cut off at 0: beyond 15 scales with probability below 1e-6.
    assert 1 / release.value.values == pytest.approx(1 / expected, abs=15 * record["noise_scale"])
    assert dpd.Release.from_dict(release.to_dict()) == release
    assert ledger.charges == [(4.0, 1e-5, "projection_depth")]


def test_points_are_read_by_the_names_of_columns(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS, columns=["a", "b"])
    points = pandas.DataFrame({"b": [3.0, 0.0], "id": 7, "a": [0.0, 1.5]})
    points.to_csv(tmp_path / "points.csv", index=False)
    for given in (points, tmp_path / "points.csv", str(tmp_path / "points.csv"), [[0.0, 3.0], [1.5, 0.0]]):
        release = dpd.propose_test_release(frame, **VALUES | {"points": given})
        assert release.mechanisms[0]["points"] == [[0.0, 3.0], [1.5, 0.0]]
    one = dpd.propose_test_release(frame, columns=["b"], **VALUES | {"points": points, "directions": None})
    assert one.mechanisms[0]["points"] == [[3.0], [0.0]]


def test_points_that_equal_a_row_are_warned_of():
    with pytest.warns(dpd.PrivacyLeakWarning, match="equals a row"):
        dpd.propose_test_release(ROWS, **VALUES | {"points": ROWS[5:6]})


def test_noise_of_values_grows_with_their_number():
    # Laplace: p * threshold / epsilon_r, rounding to the grid adds less than a part in 1e6.
    scale = dpd.propose_test_release(ROWS, **VALUES).mechanisms[0]["noise_scale"]
    assert 3 * 0.2 / 2.0 <= scale == pytest.approx(3 * 0.2 / 2.0, rel=1e-6)
    parts = dpd.propose_test_release(ROWS, **VALUES | {"epsilon": (3.0, 0.5)}).mechanisms[0]
    assert parts["noise_scale"] == pytest.approx(3 * 0.2 / 0.5, rel=1e-6)
    assert (parts["test_epsilon"], parts["release_epsilon"], parts["epsilon"]) == (3.0, 0.5, 3.5)


def test_delta_of_the_gaussian_version_is_shared():
    values = dpd.propose_test_release(ROWS, noise="gaussian", **VALUES).mechanisms[0]
    assert values["test_delta"] + values["release_delta"] == 1e-5 == values["false_pass"]
    median = dpd.propose_test_release(ROWS, noise="gaussian", **MEDIAN).mechanisms[0]
    assert (median["test_delta"], median["release_delta"], median["false_pass"]) == (1e-5, 0.0, 1e-5)
    laplace = dpd.propose_test_release(ROWS, **VALUES).mechanisms[0]
    assert (laplace["test_delta"], laplace["release_delta"], laplace["false_pass"]) == (0.0, 0.0, 1e-5)


@pytest.mark.filterwarnings("ignore:threshold = 3 is uninformative")
def test_values_are_cut_off_at_zero_and_at_the_cap():
    # Noise of scale 300 on outlyingnesses of about 0: half of them fall below 0, where 1 / (1 + O) would leave [0, 1].
    with pytest.warns(dpd.PrivacyLeakWarning, match="random_seed"):
        release = dpd.propose_test_release(
            ROWS,
            epsilon=(5.0, 1.0),
            delta=1e-5,
            threshold=3.0,
            points=np.zeros((100, 2)),
            cap=4.0,
            random_seed=1,
        )
    values = release.value.values
    assert release.simulation
    assert values.min() >= 0.2 and values.max() == 1.0 and (values == 1.0).sum() > 20 < (values == 0.2).sum()


def test_statistic(ledger):
    rows = {"a": ROWS[:, 0], "b": 100 * ROWS[:, 1]}
    pandas = pytest.importorskip("pandas")
    release = ptr.release_statistic(
        pandas.DataFrame(rows), ptr.TrimmedMean(0.2), threshold=20.0, ledger=ledger, **BUDGET
    )
    assert list(release.value.coordinate.values) == ["a", "b"] and release.sampler == "laplace"
    assert release.mechanisms[0]["statistic"] == {"name": "trimmed_mean", "share": 0.2}
    assert release.mechanisms[0]["noise_scale"] == pytest.approx(2 * 20 / 2, rel=1e-2)
    assert np.abs(release.value.values).max() < 30 * 20
    assert dpd.Release.from_dict(release.to_dict()) == release
    assert ledger.charges == [(4.0, 1e-5, "trimmed_mean")]
    ptr.release_statistic(ROWS, ptr.Median(), threshold=1.0, ledger=ledger, label="first look", **BUDGET)
    assert ledger.charges[1:] == [(4.0, 1e-5, "first look")]
    refused = ptr.release_statistic(ROWS, ptr.Median(), threshold=1e-9, **BUDGET)
    assert refused.refused


def test_rows_in_other_units_give_the_same_release():
    # center and radius set the units: columns in different units, moved and stretched by powers of two.
    stretch, shift = np.array([1024.0, 1 / 64]), np.array([512.0, -3.0])
    with pytest.warns(dpd.PrivacyLeakWarning):
        first = dpd.propose_test_release(ROWS, random_seed=3, **MEDIAN | {"radius": 4.0})
        options = {"radius": 4.0 * stretch, "center": shift, "random_seed": 3}
        second = dpd.propose_test_release(ROWS * stretch + shift, **MEDIAN | options)
    assert (second.value.values - shift) / stretch == pytest.approx(first.value.values, abs=1e-6)


def test_missing_entries(ledger):
    rows = ROWS.copy()
    rows[3, 1] = np.nan
    with pytest.raises(ValueError, match="'x1'.*nonfinite=\"center\""):
        dpd.propose_test_release(rows, ledger=ledger, **MEDIAN)
    assert not ledger.charges
    release = dpd.propose_test_release(rows, nonfinite="center", ledger=ledger, **MEDIAN)
    assert release.mechanisms[0]["nonfinite"] == "center" and not release.refused


def test_several_rows_per_person(ledger):
    release = dpd.propose_test_release(ROWS, max_rows_per_unit=2, ledger=ledger, **MEDIAN | {"epsilon": 1.0})
    delta = pytest.approx(1e-5 * (1 + math.e))
    assert (release.epsilon, release.delta, release.max_rows_per_unit) == (2.0, delta, 2)
    assert ledger.charges == [(2.0, delta, "projection_median")]


def test_more_than_five_dimensions_take_smc_if_agreed_to(ledger, monkeypatch):
    monkeypatch.setattr("pymc_dpdepth.samplers.markov.PARTICLES", 200)
    rows = np.random.default_rng(1).normal(size=(2001, 6))
    options = BUDGET | {"threshold": 0.3, "radius": 5.0, "ledger": ledger}
    with pytest.raises(dpd.InexactReleaseError):
        dpd.propose_test_release(rows, **options)
    assert not ledger.charges
    with pytest.warns(dpd.ApproximateSamplingWarning):
        release = dpd.propose_test_release(rows, accept_asymptotic=True, progressbar=False, **options)
    assert (release.guarantee, release.sampler) == ("asymptotic", "smc")
    assert not release.refused and np.linalg.norm(release.value) < 5
    assert len(ledger.charges) == 1


def test_large_delta_warns():
    with pytest.warns(dpd.PrivacyLeakWarning, match="not below 1/n"):
        dpd.propose_test_release(ROWS, **MEDIAN | {"delta": 10 / 4001})


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"threshold": 0.0}, ValueError, "threshold"),
        ({"threshold": float("nan")}, ValueError, "threshold"),
        ({"epsilon": (1.0,)}, ValueError, "pair"),
        ({"delta": 0.0}, ValueError, "delta"),
        ({"delta": 0.7}, ValueError, "delta"),
        ({"radius": None}, TypeError, "radius"),
        ({"radius": -1.0}, ValueError, "radius"),
        ({"radius": [1.0, 2.0, 3.0]}, ValueError, "radius"),
        ({"center": float("inf")}, ValueError, "center"),
        ({"cap": 0.0}, ValueError, "cap"),
        ({"cap": "none"}, ValueError, "cap"),
        ({"cap": 2.0**21}, ValueError, "cap"),
        ({"noise": "normal"}, ValueError, "noise"),
        ({"depth": "halfspace"}, TypeError, "private_median"),
        ({"depth": dpd.Halfspace()}, TypeError, "Projection"),
        ({"directions": dpd.Directions.axes(3)}, ValueError, "directions"),
        ({"sampler": "nuts"}, ValueError, "sampler"),
        ({"points": [[0.0]]}, ValueError, "points"),
        ({"points": np.empty((0, 2))}, ValueError, "points"),
        ({"nonfinite": "drop"}, ValueError, "nonfinite"),
        ({"max_rows_per_unit": 0}, ValueError, "max_rows_per_unit"),
        ({"columns": ["y"]}, ValueError, "columns"),
        ({"random_seed": -1}, ValueError, "random_seed"),
        ({"delta": 0.0}, ValueError, r"delta: expected a number in \(0, 0.5\).*1e-6"),
        ({"delta": -1.0}, ValueError, r"delta: expected a number in \(0, 0.5\).*1e-6"),
        ({"delta": float("nan")}, ValueError, r"delta: expected a number in \(0, 0.5\).*1e-6"),
        ({"delta": "1e-6"}, TypeError, r"delta: expected a number in \(0, 0.5\).*1e-6, got str"),
        ({"delta": True}, TypeError, "delta"),
        ({"threshold": 1e300}, ValueError, r"threshold: expected.*1e-100 and 1e\+100"),
        ({"threshold": 5e-324}, ValueError, r"threshold: expected.*1e-100 and 1e\+100"),
        ({"max_rows_per_unit": 2_000_000}, ValueError, "delta: for 2000000 rows per person"),
        ({"max_rows_per_unit": 2**53}, ValueError, "delta: for 9007199254740992 rows per person"),
        ({"radius": True}, TypeError, "radius"),
        ({"center": [True, False]}, TypeError, "center"),
        ({"accept_asymptotic": "yes"}, TypeError, "accept_asymptotic"),
        ({"progressbar": "x"}, TypeError, "progressbar"),
        ({"points": "nowhere.csv"}, FileNotFoundError, "nowhere.csv"),
        ({"points": {"z": [3.0], "q": [0.0]}}, ValueError, "points: .*'x0'"),
    ],
)
def test_bad_input_is_refused_before_a_charge(options, error, message, ledger):
    if isinstance(options.get("points"), dict):
        options = {"points": pytest.importorskip("pandas").DataFrame(options["points"])}
    with pytest.raises(error, match=message):
        dpd.propose_test_release(ROWS[:100], ledger=ledger, **MEDIAN | options)
    assert not ledger.charges
    if options.keys() & {"threshold", "delta", "max_rows_per_unit"}:
        with pytest.raises(error, match=message):
            ptr.release_statistic(ROWS, ptr.Median(), ledger=ledger, **BUDGET | {"threshold": 1.0} | options)
    assert not ledger.charges


@pytest.mark.filterwarnings("ignore:threshold = 1e.100 is")
@pytest.mark.parametrize("threshold", [1e-100, 1e100])
def test_the_smallest_and_the_largest_thresholds_work(threshold, monkeypatch):
    monkeypatch.setattr("pymc_dpdepth.ptr.stability_test.StabilityTest.passes", lambda *_: True)
    rows = ROWS * threshold
    release = ptr.release_statistic(rows, ptr.Median(), threshold=threshold, **BUDGET)
    assert np.abs(release.value.values).max() < 30 * threshold
    assert dpd.propose_test_release(ROWS[:50], **VALUES | {"threshold": threshold}).value.sizes["point"] == 3
    assert np.isfinite(dpd.propose_test_release(ROWS[:50], **MEDIAN | {"threshold": threshold}).value).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda ledger: dpd.propose_test_release(ROWS, ledger=ledger, **MEDIAN),
        lambda ledger: dpd.propose_test_release(ROWS, ledger=ledger, label="first look", **VALUES),
        lambda ledger: ptr.release_statistic(ROWS, ptr.Median(), threshold=1.0, ledger=ledger, **BUDGET),
    ],
    ids=["median", "values with a label", "statistic"],
)
def test_a_ledger_that_knows_its_table_is_asked_before_anything_is_computed(make, ledger, monkeypatch):
    seen = []

    def check_data(data):
        assert not ledger.charges
        seen.append(data)

    ledger.check_data = check_data
    make(ledger)
    assert len(ledger.charges) == 1 and len(seen) == 1 and seen[0] is ROWS

    def refuse(data):
        raise ValueError("another table")

    def computed(*arguments, **options):
        raise AssertionError("the rows were read before the ledger was asked")

    ledger.check_data = refuse
    monkeypatch.setattr("pymc_dpdepth.ptr.release.read_rows", computed)
    with pytest.raises(ValueError, match="another table"):
        make(ledger)
    assert len(ledger.charges) == 1


def test_a_key_binds_the_ledger_to_the_rows(tmp_path):
    dpd.Ledger.create_key(tmp_path / "key")
    named = {"data": ROWS, "key": tmp_path / "key"}
    ledger = dpd.Ledger.create(tmp_path / "study.jsonl", epsilon=20.0, delta=1e-4, composition="basic", **named)
    dpd.propose_test_release(ROWS, ledger=ledger, **MEDIAN)
    neighbour = ROWS.copy()
    neighbour[7, 0] += 1.0
    with pytest.raises(ValueError, match="these rows and this key"):
        dpd.propose_test_release(neighbour, ledger=ledger, **MEDIAN)
    with pytest.raises(ValueError, match="these rows and this key"):
        ptr.release_statistic(neighbour, ptr.Median(), threshold=1.0, ledger=ledger, **BUDGET)
    assert [entry["label"] for entry in ledger.entries()] == ["projection_median"]


def test_other_refusals(ledger, empty_ledger):
    with pytest.raises(ValueError, match="at least one row"):
        dpd.propose_test_release(np.empty((0, 2)), ledger=ledger, **MEDIAN)
    with pytest.raises(TypeError, match="StableStatistic"):
        ptr.release_statistic(ROWS, "median", threshold=1.0, ledger=ledger, **BUDGET)
    with pytest.raises(TypeError, match="ledger"):
        dpd.propose_test_release(ROWS, ledger=object(), **MEDIAN)
    assert not ledger.charges
    with pytest.raises(dpd.BudgetExceededError):
        dpd.propose_test_release(ROWS, ledger=empty_ledger, **MEDIAN)
