"""The record: JSON and back, contradictions refused, computed again, unchangeable."""

import copy
import json
import pickle

import numpy as np
import pytest
from extrema_cases import BOUNDS, normal_rows
from test_noisy_sums import Shares, ones

import pymc_dpdepth as dpd
from pymc_dpdepth.extrema import Bernoulli, Gaussian, LinearRegression, Poisson
from pymc_dpdepth.extrema.analysis import outcome

VARIANTS = {
    "plain": {},
    "two, min": {"sided": "two", "extremum": "min", "correction": None},
    "upper": {"sided": "upper", "max_rows_per_unit": 2, "nonfinite": "center"},
    "cv": {"correction": "cv", "folds": 3, "candidates": [0.3, 0.1]},
    "fresh": {"correction": "cv", "final": "fresh", "sided": "two"},
}


def interval(rows=None, **options):
    options = {"family": Gaussian(BOUNDS), "epsilon": {"mean": 1.0, "covariance": 0.5}, "replicates": 99} | options
    return dpd.extrema_interval(normal_rows() if rows is None else rows, **options)


@pytest.fixture(scope="module")
def intervals():
    return {name: interval(**options) for name, options in VARIANTS.items()}


@pytest.mark.parametrize("name", VARIANTS)
def test_json_and_back(name, intervals, tmp_path):
    ci = intervals[name]
    text = ci.to_json(tmp_path / "ci.json")
    assert (tmp_path / "ci.json").read_text() == text
    again = dpd.ExtremaInterval.from_json(tmp_path / "ci.json")
    assert again == ci and again.to_json() == text
    assert (again.lower, again.upper, again.estimate, again.selected) == (ci.lower, ci.upper, ci.estimate, ci.selected)
    assert again.epsilons == ci.epsilons and again.noise_scales == ci.noise_scales
    assert [path.name for path in tmp_path.iterdir()] == ["ci.json"]


@pytest.mark.parametrize("correction", [0.1, "cv"])
@pytest.mark.parametrize(
    "family",
    [
        LinearRegression("x0", "x1", "x2", bounds=BOUNDS),
        LinearRegression("x0", ["x1", "x2"], bounds=BOUNDS, orthogonal=True, variance="moments"),
        Gaussian(BOUNDS, interest=[2, 0]),
        Poisson(bounds=(0, 3)),
    ],
    ids=["residual", "moments", "columns", "counts"],
)
def test_records_of_all_families_can_be_read(family, correction):
    rows = np.abs(np.rint(normal_rows())) if isinstance(family, Poisson) else normal_rows()
    ci = interval(rows, family=family, epsilon=3.0, correction=correction)
    assert dpd.ExtremaInterval.from_dict(json.loads(ci.to_json())) == ci


@pytest.mark.parametrize("name", VARIANTS)
def test_the_seed_gives_the_same_interval_again(name, intervals):
    """From a record, the family is made again, and the whole bootstrap drawn again."""
    ci = intervals[name]
    record = dpd.ExtremaInterval.from_dict(json.loads(ci.to_json()))
    other = record.recompute(bootstrap_seed=ci.bootstrap_seed + 1)
    assert not np.array_equal(other.bootstrap_estimates, ci.bootstrap_estimates)
    assert other.recompute(bootstrap_seed=ci.bootstrap_seed) == ci
    assert record.recompute() == ci


def test_other_settings_from_the_same_sums(intervals):
    ci = intervals["plain"]
    two = ci.recompute(sided="two", ci_prob=0.9)
    assert two.lower == ci.lower and two.upper > two.lower  # half of .1 on each side
    # Hardly any noise, equal means and many replicates, so that the correction counts.
    near = interval(epsilon=1e6, bootstrap_seed=1, replicates=4999)
    assert near.recompute(correction=None).lower > near.lower > near.recompute(correction=0.01).lower
    assert ci.recompute(extremum="min").selected == str(ci.estimates.idxmin().item())
    assert ci.recompute(replicates=199).bootstrap_estimates.shape == (199, 3)
    assert (two.epsilon, two.statistics["mean"].tolist()) == (ci.epsilon, ci.statistics["mean"].tolist())
    with pytest.raises(ValueError, match="folds"):
        ci.recompute(correction="cv")
    with pytest.raises(ValueError, match="at least 199"):
        ci.recompute(ci_prob=0.995)
    cv = intervals["fresh"].recompute(candidates=[0.2, 0.4])
    assert cv.cross_validation.candidates == (0.2, 0.4) and cv.correction in (0.2, 0.4)
    assert (
        intervals["cv"].recompute(correction=0.1).recompute(correction="cv", candidates=[0.1, 0.3]) == intervals["cv"]
    )


def test_a_family_of_a_user_is_needed_for_a_new_bootstrap(tmp_path):
    ci = interval(ones(), family=Shares(), epsilon=20.0)
    ci.to_json(tmp_path / "ci.json")
    record = dpd.ExtremaInterval.from_json(tmp_path / "ci.json")
    assert record == ci and record.recompute(sided="two").lower < ci.lower
    with pytest.raises(ValueError, match="pass family="):
        record.recompute(replicates=50)
    with pytest.raises(ValueError, match="pass family="):
        record.recompute(replicates=50, family=Gaussian(BOUNDS))
    assert record.recompute(replicates=50, family=Shares()) == ci.recompute(replicates=50)
    with pytest.raises(ValueError, match="float64"):
        dpd.ExtremaInterval.from_dict(ci.to_dict() | {"guarantee": "exact"})


def test_what_is_in_it(intervals):
    ci = intervals["plain"]
    assert ci.estimates.dims == ("parameter",) and ci.selected == str(ci.estimates.idxmax().item())
    boot = ci.bootstrap
    assert boot["estimates"].dims == ("replicate", "parameter") and boot["extremum"].sizes == {"replicate": 99}
    # The lower limit from the tree, by its definition: (99 + 1) * .95 = 95.
    largest = float(ci.estimates.max())
    assert ci.lower == pytest.approx(2 * largest - np.sort(boot["extremum"].values)[94])
    assert ci.estimate == pytest.approx(2 * largest - float(boot["extremum"].mean()))
    assert (ci.delta, ci.neighboring, ci.guarantee, ci.epsilon) == (0.0, "replace_one", "exact", 1.5)
    record = ci.to_dict()
    assert record["interval"] == "from the lower limit to infinity"
    assert "Bonferroni" in intervals["fresh"].to_dict()["interval"]
    smallest = intervals["two, min"]
    assert smallest.bootstrap["extremum"].values.tolist() == smallest.bootstrap_estimates.min(axis=1).tolist()


GROUPED = {"column": "x0", "by": "x1", "sizes": {1: 30, 2: 20}}


def grouped_rows():
    return np.column_stack([np.arange(50) % 2, np.repeat([1, 2], [30, 20])]).astype(float)


@pytest.mark.parametrize("family", [Bernoulli(**GROUPED), Poisson(bounds=(0, 3), **GROUPED)], ids=["0, 1", "counts"])
def test_with_groups_neighbours_keep_the_group_and_the_record_says_so(family):
    """The sensitivity holds only for them: a row that changes its group moves two counts."""
    ci = interval(grouped_rows(), family=family, epsilon=1.0)
    assert ci.neighboring == ci.to_dict()["neighboring"] == "replace_one_within_group"
    assert "replace_one_within_group" in repr(ci)
    record = json.loads(ci.to_json())
    assert dpd.ExtremaInterval.from_dict(copy.deepcopy(record)) == ci
    with pytest.raises(ValueError, match="neighboring"):
        dpd.ExtremaInterval.from_dict(record | {"neighboring": "replace_one"})
    assert ci.recompute(sided="two", replicates=199).neighboring == "replace_one_within_group"


def test_without_groups_neighbours_are_any_row(intervals):
    columns = interval(np.arange(100).reshape(50, 2) % 2.0, family=Bernoulli(), epsilon=1.0)
    for ci in (columns, intervals["plain"]):
        assert ci.neighboring == "replace_one" and "within" not in repr(ci)
        with pytest.raises(ValueError, match="neighboring"):
            dpd.ExtremaInterval.from_dict(ci.to_dict() | {"neighboring": "replace_one_within_group"})


def test_repr(intervals):
    assert "largest of 3 parameters" in repr(intervals["plain"]) and "inf] at 95%" in repr(intervals["plain"])
    assert "smallest" in repr(intervals["two, min"]) and "Bonferroni" in repr(intervals["two, min"])
    assert "simulation" not in repr(intervals["plain"])
    with pytest.warns(dpd.PrivacyLeakWarning):
        assert "simulation" in repr(interval(random_seed=1))


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda ci: pickle.loads(pickle.dumps(ci))])
def test_it_cannot_be_changed(duplicate, intervals):
    ci = duplicate(intervals["cv"])
    assert ci == intervals["cv"]
    with pytest.raises(AttributeError):
        ci.lower = 0.0
    for array in (ci.estimates.values, ci.bootstrap_estimates, ci.bootstrap["estimates"].values):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0
    with pytest.raises(ValueError, match="read-only"):
        ci.statistics["mean"][0] = 0.0
    with pytest.raises(TypeError, match="cannot be changed"):
        ci.family["name"] = "other"


def test_comparison(intervals):
    table = intervals["fresh"].compare()
    assert list(table.columns) == ["lower", "upper"] and table.loc["corrected", "lower"] == intervals["fresh"].lower
    assert table.loc["corrected", "upper"] == intervals["fresh"].upper
    few = intervals["plain"].compare()
    assert list(few.columns) == ["lower"] and few.loc["naive", "lower"] > few.loc["corrected", "lower"]
    # alpha / 3 needs 59 replicates of 99; alpha / 6 on each side needs 119.
    assert np.isfinite(few.loc["bonferroni", "lower"]) and np.isneginf(table.loc["bonferroni", "lower"])


# Records that were altered


def put(*path_and_value):
    *path, last, value = path_and_value

    def change(record):
        for key in path:
            record = record[key]
        record[last] = value(record[last]) if callable(value) else value

    return change


ALTERED = {
    "lower": put("lower", lambda x: x + 0.01),
    "no lower": put("lower", None),
    "estimate": put("estimate", lambda x: x - 0.01),
    "selected": put("selected", lambda x: "x0" if x != "x0" else "x1"),
    "interval": put("interval", "two-sided"),
    "side": put("sided", "upper"),
    "extremum": put("extremum", "min"),
    "word": put("extremum", "biggest"),
    "ci_prob": put("ci_prob", 0.9),
    "ci_prob out of range": put("ci_prob", 1.5),
    "correction": put("correction", 0.2),
    "correction out of range": put("correction", 0.7),
    "choice": put("correction_choice", "none"),
    "choice cv": put("correction_choice", "cv"),
    "n": put("n", 299),
    "n for the correction": lambda record: (put("n", 10)(record), put("release", "rows", [10])(record)),
    "epsilon": put("epsilon", 1.4),
    "more epsilon": put("epsilon", 1.5 * (1 + 1e-6)),
    "delta": put("delta", 1e-6),
    "guarantee": put("guarantee", "float64"),
    "guarantee_meaning": put("guarantee_meaning", "certainly"),
    "neighboring": put("neighboring", "add_or_remove_one"),
    "max_rows_per_unit": put("max_rows_per_unit", 2),
    "nonfinite": put("nonfinite", "prior"),
    "simulation": put("simulation", "no"),
    "distribution": put("distribution", "gaussian"),
    "family": put("family", "bounds", [-5.0, 4.0]),
    "family's arguments": put("family", "other", 1),
    "family's name": put("family", "name", ""),
    "parameters": put("parameters", 0, "x1"),
    "names": put("parameters", 0, "y"),
    "estimates": put("estimates", 1, lambda x: x + 1e-3),
    "estimates, one less": put("estimates", lambda x: x[1:]),
    "replicates": put("replicates", 100),
    "replicate": put("bootstrap", "x1", lambda x: [value + 0.1 for value in x]),
    "one replicate": put("bootstrap", "x1", 0, lambda x: x - 1e-3),
    "seed": put("bootstrap_seed", -1),
    "another seed": put("bootstrap_seed", lambda x: x + 1),
    "rows": put("release", "rows", [150, 150]),
    "sums": put("release", "statistics", "mean", "sums", 0, 0, lambda x: x + 1.0),
    "sums of the nuisance": put("release", "statistics", "covariance", "sums", 0, 0, lambda x: x + 10.0),
    "off the grid": put("release", "statistics", "covariance", "sums", 0, 0, lambda x: x + 2.0**-42),
    "sums of another size": put("release", "statistics", "mean", "sums", 0, lambda x: x[1:]),
    "grid": put("release", "statistics", "mean", "grid", lambda x: 3 * x),
    "finer grid": put("release", "statistics", "mean", "grid", lambda x: x / 2),
    "scale": put("release", "statistics", "mean", "noise_scale", lambda x: x / 2),
    "sensitivity": put("release", "statistics", "mean", "sensitivity", lambda x: x / 2),
    "sensitivity and scale": lambda record: [
        put("release", "statistics", "mean", name, lambda x: x / 2)(record) for name in ("sensitivity", "noise_scale")
    ],
    "epsilon of a statistic": put("release", "statistics", "mean", "epsilon", 0.9),
    "realised": put("release", "statistics", "mean", "realised_epsilon", 1.1),
    "realised nothing": put("release", "statistics", "mean", "realised_epsilon", 0),
    "realised half": put("release", "statistics", "covariance", "realised_epsilon", lambda x: x / 2),
    "columns": put("columns", 0, "y"),
    "a statistic less": put("release", "statistics", lambda x: {"mean": x["mean"]}),
    "no statistic": put("release", "statistics", {}),
    "final": put("final", "fresh"),
    "folds": lambda record: put("fold_release", copy.deepcopy(record["release"]))(record),
    "a criterion": put("cross_validation", {"candidates": [0.1], "criterion": [[0.0, 0.0, 0.0]]}),
    "another field": lambda record: record.update(comment="hello"),
    "a field less": lambda record: record.pop("columns"),
    "version": put("schema_version", 2),
    "schema": put("schema", "pymc_dpdepth.release"),
}


@pytest.mark.parametrize("name", ALTERED)
def test_altered_records_are_refused(name, intervals):
    record = json.loads(intervals["plain"].to_json())
    assert dpd.ExtremaInterval.from_dict(copy.deepcopy(record)) == intervals["plain"]
    ALTERED[name](record)
    with pytest.raises(ValueError):
        dpd.ExtremaInterval.from_dict(record)


CHANGED_CHOICES = {
    "r": put("correction", lambda x: 0.4 - x),
    "candidates": put("cross_validation", "candidates", [0.3, 0.1]),
    "criterion": put("cross_validation", "criterion", lambda rows: rows[1:]),
    "criterion, one parameter less": put("cross_validation", "criterion", lambda rows: [row[1:] for row in rows]),
    "criterion's order": put("cross_validation", "criterion", lambda rows: rows[::-1]),
    "no criterion": put("cross_validation", None),
    "a number of the criterion": put("cross_validation", "criterion", 1, 2, lambda x: x + 1e-3),
    "sums of a fold": lambda record: [
        put("release", "statistics", "covariance", "sums", fold, 0, lambda x, by=by: x + by)(record)
        for fold, by in ((0, 64.0), (1, -64.0))  # the same in all
    ],
}


@pytest.fixture(scope="module")
def chosen():
    """With hardly any noise no column is far ahead, so that the candidates have different criteria."""
    ci = interval(epsilon=1e4, **VARIANTS["cv"])
    assert (
        np.abs(np.diff(ci.cross_validation.criterion, axis=0)).max()
        > 1e-4 * np.abs(ci.cross_validation.criterion).max()
    )
    return ci


@pytest.mark.parametrize("name", CHANGED_CHOICES)
def test_altered_choices_are_refused(name, chosen):
    record = json.loads(chosen.to_json())
    assert dpd.ExtremaInterval.from_dict(copy.deepcopy(record)) == chosen
    CHANGED_CHOICES[name](record)
    with pytest.raises(ValueError):
        dpd.ExtremaInterval.from_dict(record)


def forged(ci, drawn=None):
    """Return a record with other replicates, and the limits that follow from them."""
    record = json.loads(ci.to_json())
    drawn = np.full_like(ci.bootstrap_estimates, ci.estimates.max()) if drawn is None else drawn
    limits, reduced, _ = outcome(ci.settings, ci.estimates.values, drawn, ci.n)
    made_up = dict(zip(ci.parameters, drawn.T.tolist(), strict=True))
    return record | {"bootstrap": made_up, "lower": limits.lower, "upper": limits.upper, "estimate": reduced}


@pytest.mark.parametrize("name", VARIANTS)
def test_replicates_are_those_of_the_seed(name, intervals):
    ci = intervals[name]
    record = forged(ci)
    with pytest.raises(ValueError, match="bootstrap: expected the replicates"):
        dpd.ExtremaInterval.from_dict(copy.deepcopy(record))
    # Without the replay they are believed; a bootstrap that is asked for is drawn, also with the seed that was given.
    believed = dpd.ExtremaInterval.from_dict(record, replay=False)
    assert believed != ci and believed.recompute() == believed
    assert believed.recompute(bootstrap_seed=ci.bootstrap_seed) == ci
    assert believed.recompute(replicates=ci.replicates) == ci


def test_folds_of_their_own_are_checked_too(intervals):
    record = json.loads(intervals["fresh"].to_json())
    record["fold_release"]["statistics"]["mean"]["sums"][0][0] += 32.0
    with pytest.raises(ValueError, match="criterion"):
        dpd.ExtremaInterval.from_dict(record)


def test_the_last_digits_of_other_machines_are_allowed(intervals):
    """A part in 10^6 of the spread of the replicates; limits that differ by so little are the same to any reader."""
    ci = intervals["plain"]
    spread = float(np.abs(ci.bootstrap_estimates - ci.estimates.values).max())
    moved = forged(ci, ci.bootstrap_estimates + 1e-8 * spread)
    assert dpd.ExtremaInterval.from_dict(copy.deepcopy(moved)).to_dict() == moved
    with pytest.raises(ValueError, match="bootstrap"):
        dpd.ExtremaInterval.from_dict(forged(ci, ci.bootstrap_estimates + 1e-4 * spread))
    # Limits follow from the replicates that stand there, on any machine.
    with pytest.raises(ValueError, match="lower"):
        dpd.ExtremaInterval.from_dict(moved | {"lower": moved["lower"] + 1e-7 * spread})


def test_no_offset_hides_a_change():
    """What is compared is the spread: far from 0 a part in 10^6 of the numbers would be many times that."""
    far = interval(normal_rows() + 1e6, family=Gaussian((1e6 - 4, 1e6 + 4)))
    record = json.loads(far.to_json())
    assert dpd.ExtremaInterval.from_dict(copy.deepcopy(record)) == far
    for name in ("lower", "estimate"):
        with pytest.raises(ValueError, match=name):
            dpd.ExtremaInterval.from_dict(record | {name: record[name] + 1e-3})
    for change in (put("bootstrap", "x1", 0, lambda x: x - 1e-3), put("estimates", 1, lambda x: x + 1e-3)):
        changed = copy.deepcopy(record)
        change(changed)
        with pytest.raises(ValueError):
            dpd.ExtremaInterval.from_dict(changed)


def test_replicates_do_not_depend_on_the_signs_of_eigenvectors(intervals, monkeypatch):
    """They are arbitrary, so two machines may differ in them."""
    ci = intervals["plain"]
    eigh = np.linalg.eigh

    def mirrored(matrix):
        values, vectors = eigh(matrix)
        return values, vectors * np.where(np.arange(len(values)) % 2, 1.0, -1.0)

    monkeypatch.setattr(np.linalg, "eigh", mirrored)
    assert np.allclose(ci.recompute(bootstrap_seed=ci.bootstrap_seed).bootstrap_estimates, ci.bootstrap_estimates)


@pytest.mark.parametrize("change", [put("columns", ["y", "x1"]), put("family", "by", "site"), put("family", "by", "")])
def test_columns_are_those_of_the_groups(change):
    ci = interval(grouped_rows(), family=Bernoulli(**GROUPED), epsilon=1.0)
    record = json.loads(ci.to_json())
    change(record)
    with pytest.raises(ValueError, match="columns"):
        dpd.ExtremaInterval.from_dict(record)


def test_of_a_family_of_a_user_the_replicates_are_believed():
    """Its code is not there. With it, they are drawn again."""
    ci = interval(ones(), family=Shares(), epsilon=20.0)
    believed = dpd.ExtremaInterval.from_dict(forged(ci))
    assert believed.lower != ci.lower
    assert believed.recompute(bootstrap_seed=ci.bootstrap_seed, family=Shares()) == ci
    record = json.loads(ci.to_json())
    for name in ("lower", "epsilon", "n"):
        with pytest.raises(ValueError):
            dpd.ExtremaInterval.from_dict(record | {name: record[name] + 1})


def test_no_half_of_a_file_is_left(tmp_path, monkeypatch, intervals):
    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        intervals["plain"].to_json(tmp_path / "ci.json")
    assert not list(tmp_path.iterdir())


def test_files_that_are_no_intervals(tmp_path):
    path = tmp_path / "ci.json"
    for text in ("", "[]", '{"schema": 1, "schema": 2}', '{"lower": NaN}'):
        path.write_text(text)
        with pytest.raises(ValueError):
            dpd.ExtremaInterval.from_json(path)
