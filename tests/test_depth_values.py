"""Private depth values: noise, cost, record, post-processing, refusals before the charge, and attacks."""

import json
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pymc_dpdepth as dpd
from pymc_dpdepth import depth_values
from pymc_dpdepth.depths.vector_sensitivity import sample_sensitivity, values_sensitivity
from pymc_dpdepth.privacy import noise as noise_module
from pymc_dpdepth.privacy.gaussian_calibration import analytic_gaussian_scale

ROWS = np.random.default_rng(1).normal(size=(60, 2)) * [3.0, 1.0] + [10.0, 0.0]
POINTS = np.array([[10.0, 0.0], [11.0, 0.5], [30.0, 4.0]])
COUNTED = ["halfspace", "integrated_rank_weighted", "integrated_dual", "simplicial"]
REAL = ["spatial", "modified_spatial", dpd.IntegratedDual(smoothing=2.0)]
# |Laplace noise| exceeds 60 scales with probability exp(-60), Gaussian noise 12 with 1e-32; some 1000 values below.
FAR = {"laplace": 60.0, "gaussian": 12.0}


@pytest.fixture
def no_noise(monkeypatch):
    """Take the noise away, to see what is made of the values."""
    monkeypatch.setattr(noise_module, "_measurement", lambda *_: Silent())


class Silent:
    """A measurement without noise; its map is that of the noise it stands for where the tests need one."""

    def __call__(self, values):
        return values

    def map(self, distance):
        return 0.0


# Values


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("depth", COUNTED + REAL, ids=str)
def test_values_lie_around_the_depths_at_the_stated_scale(depth, delta):
    release = dpd.private_depth(POINTS, ROWS, depth=depth, epsilon=5.0, delta=delta, clamp=False)
    (record,) = release.mechanisms
    exact = dpd.depths.as_depth(depth)
    truth = exact.evaluate(POINTS, ROWS)
    assert release.value.dims == ("point",) and release.value.shape == (3,)
    assert np.abs(release.value.values - truth).max() < FAR[release.sampler] * record["noise_scale"]
    steps = release.value.values / record["noise_grid"]
    np.testing.assert_allclose(steps, np.rint(steps), rtol=1e-12, atol=1e-6)
    assert release.guarantee == ("exact" if depth in COUNTED else "float64")


@pytest.mark.parametrize("units", [1, 3])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("depth", [*COUNTED, *REAL, dpd.Halfspace(directions=None)], ids=str)
def test_scales_are_those_of_the_proved_sensitivities(depth, delta, units):
    """k GS / epsilon or sqrt(k) GS s, and the vectors' own; rounding adds at most a part in 1e5, never takes away."""
    options = {"depth": depth, "epsilon": 0.7, "delta": delta, "max_rows_per_unit": units}
    made = dpd.depths.as_depth(depth).resolve(2)
    for release, bound in (
        (dpd.private_depth(POINTS, ROWS, **options), values_sensitivity(made, 60, 2, 3)),
        (dpd.private_sample_depths(ROWS, **options), sample_sensitivity(made, 60, 2)),
    ):
        (record,) = release.mechanisms
        if delta:
            expected = units * math.sqrt(bound.l2_squared) * analytic_gaussian_scale(Fraction("0.7") * units, delta)
        else:
            expected = float(bound.l1) / 0.7
        assert expected * (1 - 1e-14) <= record["noise_scale"] <= expected * (1 + 1e-5)
        assert release.epsilon == pytest.approx(0.7 * units, rel=1e-15) and release.delta == delta
        assert record["realised_epsilon"] <= 0.7 and (release.rho is None) == (delta == 0)


def test_gaussian_noise_is_smaller_for_many_points():
    grid = np.column_stack([np.linspace(0, 20, 400), np.zeros(400)])
    laplace, gaussian = (
        dpd.private_depth(grid, ROWS, epsilon=1.0, delta=delta).mechanisms[0]["noise_scale"] for delta in (0, 1e-6)
    )
    assert gaussian < 0.3 * laplace


def test_large_units_take_a_grid_and_stay_exact(monkeypatch):
    monkeypatch.setattr(depth_values, "LARGEST_UNIT", 10)
    release = dpd.private_depth(POINTS, ROWS, epsilon=50.0, clamp=False)
    (record,) = release.mechanisms
    assert release.guarantee == "exact" and math.log2(record["noise_grid"]) % 1 == 0
    assert 3 / 60 / 50 <= record["noise_scale"] <= 3 / 60 / 50 * (1 + 1e-8)
    np.testing.assert_allclose(
        release.value, dpd.Halfspace("axes").evaluate(POINTS, ROWS), atol=60 * record["noise_scale"]
    )


def test_depths_that_cannot_move_are_released_without_noise():
    assert dpd.private_sample_depths(np.ones((1, 2)), epsilon=1.0).value.values.tolist() == [1.0]
    assert dpd.private_depth([[0.0, 1.0]], np.empty((0, 2)), epsilon=1.0).value.values.tolist() == [0.0]
    few = dpd.private_depth([[1.0, 1.0]], np.ones((2, 2)), depth="simplicial", epsilon=1.0)
    assert few.value.values.tolist() == [0.0] and few.mechanisms[0]["noise_scale"] == 0.0


def test_the_sample_noise_does_not_vanish():
    scales = [
        dpd.private_sample_depths(np.arange(n, dtype=float)[:, None], epsilon=1.0).mechanisms[0]["noise_scale"]
        for n in (10, 1000)
    ]
    assert scales == pytest.approx([1.8, 1.998])
    assert "does not vanish" in dpd.private_sample_depths.__doc__


# Record


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_json_round_trip(tmp_path, delta):
    release = dpd.private_depth(
        POINTS,
        ROWS,
        depth="spatial",
        epsilon=0.1,
        delta=delta,
        isotonic_from=[10.0, 0.0],
        standardize=([10, 0], [3, 1]),
    )
    back = dpd.Release.from_json(release.to_json(tmp_path / "x.json") and tmp_path / "x.json")
    assert back == release and back.value.identical(release.value.rename(back.value.name))
    (record,) = json.loads(release.to_json())["mechanisms"]
    assert record["points"] == POINTS.tolist() and record["isotonic_from"] == [10.0, 0.0]
    assert record["clamped"] == [0.0, 1.0] and record["center"] == [10.0, 0.0]
    assert repr(release).startswith("<Release of [3 depth values]: epsilon=0.1, ")
    assert str(ROWS[0, 0]) not in release.to_json()


def test_sample_record_holds_no_rows():
    release = dpd.private_sample_depths(ROWS, epsilon=1.0)
    assert dpd.Release.from_dict(release.to_dict()) == release and "points" not in release.mechanisms[0]
    assert not any(repr(float(x)) in release.to_json() for x in ROWS.ravel())


@pytest.mark.parametrize("function", ["private_depth", "private_sample_depths"])
def test_what_is_charged_is_what_is_recorded(ledger, function):
    call = getattr(dpd, function)
    arguments = (POINTS, ROWS) if function == "private_depth" else (ROWS,)
    release = call(*arguments, epsilon=0.1, delta=1e-6, max_rows_per_unit=3, ledger=ledger)
    assert [charged[:2] for charged in ledger.charges] == [(release.epsilon, release.delta)] == [(0.3, 1e-6)]


def test_the_label_of_the_charge(ledger):
    dpd.private_depth(POINTS, ROWS, epsilon=1.0, ledger=ledger)
    dpd.private_sample_depths(ROWS, epsilon=1.0, ledger=ledger, label="table 3")
    assert [charged[2] for charged in ledger.charges] == ["depth", "table 3"]


def test_noise_is_not_tagged_as_an_exponential_mechanism():
    class Strict:
        def charge(self, **what):
            assert not what.get("bounded_range")
            self.charged = what

    strict = Strict()
    dpd.private_depth(POINTS, ROWS, epsilon=1.0, ledger=strict)
    assert strict.charged["epsilon"] == 1.0


def test_a_ledger_of_another_table_is_asked_before_anything_is_charged(ledger):
    def check_data(data):
        assert data is ROWS
        raise ValueError("The ledger is of another table.")

    ledger.check_data = check_data
    with pytest.raises(ValueError, match="another table"):
        dpd.private_depth(POINTS, ROWS, epsilon=1.0, ledger=ledger)
    assert ledger.charges == []


def test_the_charge_comes_before_the_noise(monkeypatch, ledger, empty_ledger):
    def crash(*_):
        raise RuntimeError("power cut")

    monkeypatch.setattr(noise_module.IntegerNoise, "add", crash)
    with pytest.raises(RuntimeError, match="power cut"):
        dpd.private_depth(POINTS, ROWS, epsilon=1.0, ledger=ledger)
    assert len(ledger.charges) == 1
    with pytest.raises(dpd.BudgetExceededError):
        dpd.private_depth(POINTS, ROWS, epsilon=1.0, ledger=empty_ledger)


# Refusals and warnings

HOLED = ROWS.copy()
HOLED[4, 1] = np.nan
REFUSED = {
    "epsilon": (ValueError, {"epsilon": 0.0}, "epsilon"),
    "delta": (ValueError, {"delta": 1.0}, "delta"),
    "projection": (dpd.UnboundedSensitivityError, {"depth": "projection"}, "propose_test_release"),
    "custom": (TypeError, {"depth": dpd.CustomObjective(lambda t, X: t.sum() + X.sum(), 1.0)}, "proved sensitivity"),
    "standardize": (ValueError, {"standardize": "prior"}, "standardize"),
    "scale": (ValueError, {"standardize": (0.0, 0.0)}, "scales > 0"),
    "missing": (ValueError, {"X": HOLED}, "x1"),
    "center": (ValueError, {"nonfinite": "center"}, "standardize=\\(center, scale\\)"),
    "word": (ValueError, {"nonfinite": "prior"}, "nonfinite"),
    "units": (ValueError, {"max_rows_per_unit": 0}, "max_rows_per_unit"),
    "clamp": (TypeError, {"clamp": "yes"}, "clamp"),
    "label": (ValueError, {"label": "study", "ledger": None}, "label"),
    "seed": (ValueError, {"random_seed": -1}, "random_seed"),
    "too small an epsilon": (ValueError, {"epsilon": 1e-30}, "larger epsilon"),
    "many simplices": (ValueError, {"X": np.zeros((501, 3)), "depth": "simplicial", "points": np.zeros((1, 3))}, "500"),
}
REFUSED_POINTS = {
    "width": (ValueError, {"points": [[1.0, 2.0, 3.0]]}, "as many columns"),
    "none": (ValueError, {"points": np.empty((0, 2))}, "at least one point"),
    "nan": (ValueError, {"points": [[1.0, np.nan]]}, "finite"),
    "names": (ValueError, {"points": pd.DataFrame({"x0": [1.0], "b": [2.0]})}, "x1"),
    "names say which table": (ValueError, {"points": pd.DataFrame({"z": [1.0], "q": [2.0]})}, "points: .*'x0'"),
    "rays": (ValueError, {"isotonic_from": [1.0]}, "isotonic_from"),
    "rays by a word": (ValueError, {"isotonic_from": "xx"}, "isotonic_from: expected 2 finite numbers.*text"),
    "rays from nowhere": (ValueError, {"isotonic_from": [0.0, np.nan]}, "isotonic_from: .*not finite"),
}


@pytest.mark.parametrize("sample", [False, True])
@pytest.mark.parametrize("case", [*REFUSED, *REFUSED_POINTS])
def test_bad_input_is_refused_before_the_charge(ledger, case, sample):
    if sample and case in REFUSED_POINTS:
        case = "epsilon"
    error, changes, words = (REFUSED | REFUSED_POINTS)[case]
    arguments = {"points": POINTS, "X": ROWS, "epsilon": 1.0, "ledger": ledger} | changes
    if sample:
        arguments.pop("points")
    with pytest.raises(error, match=words) as caught:
        (dpd.private_sample_depths if sample else dpd.private_depth)(**arguments)
    assert ledger.charges == [] and str(ROWS[0, 0])[:8] not in str(caught.value)


def test_no_rows_have_no_depths_of_their_own(ledger):
    with pytest.raises(ValueError, match="at least one row"):
        dpd.private_sample_depths(np.empty((0, 2)), epsilon=1.0, ledger=ledger)
    assert ledger.charges == []


def test_missing_entries_take_the_public_center():
    release = dpd.private_depth(POINTS, HOLED, epsilon=1.0, nonfinite="center", standardize=([10, 0], [3, 1]))
    assert release.mechanisms[0]["nonfinite"] == "center"


def test_a_point_that_equals_a_row_is_warned_of():
    with pytest.warns(dpd.PrivacyLeakWarning, match="equals a row") as caught:
        dpd.private_depth(ROWS[:2], ROWS, epsilon=1.0)
    assert len(caught) == 1 and str(ROWS[0, 0])[:8] not in str(caught[0].message)
    whole = np.round(ROWS)  # whole numbers are written by people; a grid of them meets such rows
    dpd.private_depth(whole[:2], whole, epsilon=1.0)


def test_a_large_delta_is_warned_of():
    with pytest.warns(dpd.PrivacyLeakWarning, match="1/n"):
        dpd.private_depth(POINTS, ROWS, epsilon=1.0, delta=0.1)


def test_simulation_repeats_and_says_so():
    with pytest.warns(dpd.PrivacyLeakWarning, match="reproducible"):
        first, second = (dpd.private_sample_depths(ROWS, epsilon=1.0, random_seed=4) for _ in range(2))
    assert first == second and first.simulation is True
    assert dpd.private_sample_depths(ROWS, epsilon=1.0) != dpd.private_sample_depths(ROWS, epsilon=1.0)


# Inputs


def test_points_are_read_by_the_names_of_columns():
    frame = pd.DataFrame(ROWS, columns=["age", "income"])
    points = pd.DataFrame({"income": POINTS[:, 1], "id": 7, "age": POINTS[:, 0]})
    release = dpd.private_depth(points, frame, epsilon=1.0)
    assert release.mechanisms[0]["points"] == POINTS.tolist()
    release = dpd.private_depth(points, frame, epsilon=1.0, columns=["income"])
    assert release.mechanisms[0]["points"] == POINTS[:, 1:].tolist()


def test_standardisation_is_that_of_rows_and_points(no_noise):
    options = {"depth": "spatial", "epsilon": 1.0}
    units = dpd.private_depth(POINTS, ROWS, standardize=([10.0, 0.0], [4.0, 0.5]), **options)
    expected = dpd.Spatial().evaluate((POINTS - [10, 0]) / [4, 0.5], (ROWS - [10, 0]) / [4, 0.5])
    # The values are rounded to a grid of a step below the sensitivity, 2/60, over 2^30.
    np.testing.assert_allclose(units.value, expected, rtol=0, atol=2 / 60 / 2**30)
    assert not np.allclose(dpd.private_depth(POINTS, ROWS, **options).value, expected, atol=1e-3)


def test_without_noise_counted_depths_come_out_as_they_are(no_noise):
    for depth in COUNTED:
        expected = dpd.depths.as_depth(depth).evaluate(ROWS, ROWS)
        np.testing.assert_array_equal(dpd.private_sample_depths(ROWS, depth=depth, epsilon=1.0).value, expected)


# Post-processing


def test_clamping():
    grid = np.column_stack([np.linspace(0, 20, 200), np.full(200, 9.0)])
    free = dpd.private_depth(grid, ROWS, epsilon=0.1, clamp=False).value.values
    held = dpd.private_depth(grid, ROWS, epsilon=0.1).value.values
    smooth = dpd.private_depth(grid, ROWS, epsilon=0.1, depth=dpd.IntegratedDual(smoothing=1.0)).value.values
    assert free.min() < 0 and free.max() > 1  # noise of scale 33 at 200 points
    assert held.min() == 0 and held.max() == 1 and smooth.max() == 0.25


def test_values_along_rays_are_the_nearest_that_do_not_increase():
    points = np.array(
        [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [0.0, 1.0], [0.0, 5.0], [-2.0, 0.0], [-1.0, 0.0]]
    )
    values = np.array([0.3, 0.2, 0.6, 0.1, 0.5, 0.4, 0.1, 0.2])
    found = depth_values._decreasing_along_rays(values, points, np.zeros(2))
    np.testing.assert_allclose(found, [0.5, 0.4, 0.4, 0.1, 0.5, 0.4, 0.1, 0.2], atol=1e-15)


def test_rays_reduce_the_error_of_halfspace_depth_from_its_deepest_point():
    rows = np.linspace(-1, 1, 201)[:, None]
    points = np.linspace(-1, 1, 81)[:, None] + 1e-4
    truth = dpd.Halfspace("axes").evaluate(points, rows)
    options = {"epsilon": 2.0, "clamp": False}
    free, along = (
        dpd.private_depth(points, rows, isotonic_from=start, **options).value.values for start in (None, [0.0])
    )
    # Noise of scale 0.2: mean squares .08 +- .01 without and a fraction of it with; factor 2 leaves 6 deviations.
    assert ((along - truth) ** 2).mean() < 0.5 * ((free - truth) ** 2).mean()
    assert (np.diff(along[:40]) >= 0).all() and (np.diff(along[41:]) <= 0).all()


# Attacks

# The worst pair of the sensitivity's proof: all rows at 0, one of them far away, seen at 0.
TIED = np.zeros((5, 1))
APART = np.array([[9.0], [0.0], [0.0], [0.0], [0.0]])


def draws_of(sample, epsilon):
    """Return a mechanism that makes many draws at once, the values by the front door's own plan."""

    def mechanism(table, draws):
        inputs = depth_values.read_inputs(table, "halfspace", None, None, None, epsilon, 0.0, "raise", 1, None)
        where = None if sample else np.zeros((1, 1))
        bound = sample_sensitivity(inputs.depth, 5, 1) if sample else values_sensitivity(inputs.depth, 5, 1, 1)
        plan, unit = depth_values._plan(inputs, bound, 5 if sample else 1)
        values = inputs.evaluate(where)
        counts = np.tile(np.rint(values * unit).astype(np.int64), draws)
        return plan.add(counts, depth_values.random_bits(None)).reshape(draws, -1) / unit

    return mechanism


@pytest.mark.parametrize("sample", [False, True])
def test_an_audit_finds_nothing_above_epsilon(sample):
    # A true claim is exceeded with probability at most 1e-6.
    found = dpd.audit(
        draws_of(sample, 1.0), TIED, APART, trials=8000, confidence=1 - 1e-6, random_seed=1, progressbar=False
    )
    assert found.epsilon_lower_bound <= 1.0
    assert sample or found.epsilon_lower_bound > 0.5


@pytest.mark.parametrize("sample", [False, True])
def test_an_audit_catches_an_inverted_scale(monkeypatch, sample):
    right = noise_module._measurement
    monkeypatch.setattr(noise_module, "_measurement", lambda kind, scale: right(kind, 1 / scale))
    monkeypatch.setattr(
        depth_values,
        "laplace_noise",
        lambda l1, epsilon: noise_module.IntegerNoise(
            "laplace", float(l1) / epsilon, float(l1), epsilon, 0.0, None, epsilon
        ),
    )
    found = dpd.audit(
        draws_of(sample, 0.25), TIED, APART, trials=4000, confidence=0.999, random_seed=1, progressbar=False
    )
    assert found.epsilon_lower_bound > 1.0


def test_an_audit_catches_the_point_sensitivity_on_a_sample_vector(monkeypatch):
    # Five values, each covered as one fixed point is: L1 moves by 8 counts, noise for 1.
    monkeypatch.setattr("test_depth_values.sample_sensitivity", lambda depth, n, d: values_sensitivity(depth, n, d, 1))
    found = dpd.audit(draws_of(True, 0.5), TIED, APART, trials=4000, confidence=0.999, random_seed=1, progressbar=False)
    assert found.epsilon_lower_bound > 0.6


def test_exact_law_of_one_value_loses_epsilon_and_no_more():
    """P(value = v) on neighbours, from the stated law: the ratio is at most exp(epsilon), and reaches it nearly."""
    release = dpd.private_depth([[0.0]], TIED, epsilon=0.8)
    (record,) = release.mechanisms
    scale = Fraction(record["noise_scale"]) * 5
    counts = [round(float(dpd.Halfspace("axes").evaluate([[0.0]], rows)[0]) * 5) for rows in (TIED, APART)]
    assert counts == [5, 4]
    ratio = abs(counts[0] - counts[1]) / scale
    assert ratio <= Fraction("0.8") * (1 + Fraction(1, 2**51)) and ratio > Fraction("0.7999999")
