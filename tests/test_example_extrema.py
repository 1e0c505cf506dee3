"""The example of subgroup effects, run as it stands, and its family against definitions."""

import importlib.util
import itertools
import subprocess
import sys
from pathlib import Path

import matplotlib.image
import numpy as np
import pandas as pd
import pytest

import pymc_dpdepth as dpd

SCRIPT = Path(__file__).parents[1] / "examples" / "extrema_subgroups.py"


@pytest.fixture(scope="module")
def example():
    """Import the script without running it."""
    spec = importlib.util.spec_from_file_location("extrema_subgroups", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def true_effects(example):
    """Return the differences of the means of clipped visits, from the definition."""
    frame = pd.read_csv(example.DATA)
    frame["visits"] = frame["mdvis"].clip(0, 12)
    means = frame.groupby(["site", frame["plan"] == 11])["visits"].mean().unstack()
    return (means[True] - means[False]).to_numpy()


def test_the_folder_may_be_new_or_the_current_one_but_no_file(example, tmp_path, monkeypatch):
    released = []
    monkeypatch.setattr(example.dpd, "extrema_interval", lambda *_, **options: released.append(options) or 1 / 0)
    monkeypatch.chdir(tmp_path)
    for arguments in ([], ["new/one"]):
        monkeypatch.setattr(sys, "argv", ["extrema_subgroups.py", *arguments])
        with pytest.raises(ZeroDivisionError):
            example.main()
    assert (tmp_path / "new" / "one").is_dir() and len(released) == 2
    (tmp_path / "file").touch()
    monkeypatch.setattr(sys, "argv", ["extrema_subgroups.py", "file"])
    with pytest.raises(FileExistsError):
        example.main()
    assert len(released) == 2  # nothing more was released


def test_it_writes_and_prints_what_it_says(example, tmp_path):
    command = [sys.executable, "-W", "error", SCRIPT]
    result = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["extrema.json", "extrema.png"]
    interval = dpd.ExtremaInterval.from_json(tmp_path / "extrema.json")
    assert interval.simulation is False and interval.epsilon == sum(example.EPSILON.values()) == 2.0
    assert matplotlib.image.imread(tmp_path / "extrema.png").std() > 0.01
    lines = [line.split() for line in result.stdout.splitlines()]
    shown = {f"{line[0]} {line[1]}": line[2:] for line in lines if line[0] == "site"}
    for name, private, effect in zip(
        interval.parameters, interval.estimates.values, true_effects(example), strict=True
    ):
        assert shown[name][:2] == [f"{private:.2f}", f"{effect:.2f}"]
        assert (shown[name][2:] == ["selected"]) == (name == interval.selected)
    limits = {line[0]: line[1] for line in lines if len(line) == 2}
    assert limits == {name: f"{limit:.2f}" for name, limit in interval.compare()["lower"].items()}
    # Noise has a standard deviation of about .1 in each effect; ten of them.
    assert abs(interval.estimates.values - true_effects(example)).max() < 1.0


def test_without_noise_the_estimates_are_differences_of_means(example):
    family = example.EffectsOfFreeCare()
    ci = dpd.extrema_interval(example.DATA, family=family, epsilon=3e4, replicates=100)
    # Noise of scale 2 * 81 / 10^4 and less, by cells of some hundred people.
    assert ci.estimates.values == pytest.approx(true_effects(example), abs=1e-4)
    assert ci.selected == "site 6"


def test_one_person_moves_the_sums_by_their_sensitivity_at_most(example):
    family = example.EffectsOfFreeCare()
    people = np.array(list(itertools.product([1, 6, 9], [1, 11], [-5, 0, 3, 7, 12, 900])), dtype=float)
    attained = {}
    for statistic in family.statistics(100, family.columns(), {}):
        counts = np.array([family.counts(person[None], statistic, {}) for person in people])
        moved = np.abs(counts[:, None] - counts[None]).sum(axis=-1)
        assert moved.max() <= statistic.sensitivity
        attained[statistic.name] = moved.max() / statistic.sensitivity
    # A person who moves between cells attains the bound, but for one unit of the grid in each entry.
    assert min(attained.values()) > 1 - 1e-6


def test_replicates_have_the_law_of_new_tables_with_these_cells(example):
    family = example.EffectsOfFreeCare()
    generator = np.random.default_rng(1)
    people, mean, deviation = np.full(12, 50.0), np.linspace(-1, 1, 12), np.linspace(1, 3, 12)
    sums = {"people": people, "visits": 50 * mean, "squares": 50 * (deviation**2 + mean**2)}
    drawn = family.simulate(family.model(sums, 600, {"squares": 1.0}), 600, 4000, generator)
    assert (drawn["people"] == people).all()
    # The mean of 4,000 has a relative error of 1/63, the standard deviation of 1/89; five of each, for 24 numbers.
    assert abs(drawn["visits"].mean(axis=0) - 50 * mean).max() < 5 * np.sqrt(50) * 3 / 63
    assert drawn["visits"].std(axis=0) == pytest.approx(np.sqrt(50) * deviation, rel=5 / 89)
    # A variance that noise made negative is that of the noise.
    low = family.model(sums | {"squares": np.zeros(12)}, 600, {"squares": 4.0})
    assert (low["deviation"] == 2.0).all()
