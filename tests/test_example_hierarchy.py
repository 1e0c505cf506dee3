"""The example of pooled medians, run at a small size."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "examples" / "hierarchical_medians.py"


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    """Run the example on 40 people of each of the first 4 plans."""
    folder = tmp_path_factory.mktemp("example")
    command = [sys.executable, "-W", "error", SCRIPT, folder, "40", "4"]
    return folder, subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder).stdout.splitlines()


def test_it_prints_all_plans_and_draws_them(output):
    folder, lines = output
    assert lines[0].split() == ["plan", "people", "separate", "pooled"]
    for plan, line in zip("1234", lines[1:5], strict=True):
        label, people, *medians = line.split()
        assert (label, people) == (plan, "40")
        # Both priors hold values down to exp(-36.7 sd) and up; log1p of what is printed is a finite number.
        assert len(medians) == 2 and all(float(median.replace(",", "")) > -1 for median in medians)
    assert [path.name for path in folder.iterdir()] == ["hierarchical_medians.png"]
    assert (folder / "hierarchical_medians.png").stat().st_size > 10_000


def test_it_says_what_each_release_cost_and_how_it_was_drawn(output):
    _, lines = output
    costs = [re.match(r"(\w+): epsilon = 0.5, replace_one_within_group, (\w+) \((\w+)\)", line) for line in lines[5:7]]
    assert [match.groups() for match in costs] == [
        ("separate", "exact", "segments"),
        ("pooled", "float64", "hierarchy"),
    ]


def test_it_is_short():
    assert len(SCRIPT.read_text().splitlines()) < 100
