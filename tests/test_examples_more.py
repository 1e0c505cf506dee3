"""Examples about choices, run as they stand at a small size: what they print and draw, and what their files say."""

import re
import subprocess
import sys
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[1]


def run(name, folder, *arguments):
    """Run an example with warnings as errors, check that it writes its one picture, and return what it prints."""
    command = [sys.executable, "-W", "error", ROOT / "examples" / f"{name}.py", folder, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    assert [path.name for path in folder.iterdir()] == [f"{name}.png"]
    return result.stdout


def releasable(path):
    with Image.open(path) as picture:
        assert picture.size[0] > 500
        return picture.text["releasable"]


def test_choosing_depth_shows_what_outliers_do(tmp_path):
    printed = run("choosing_depth", tmp_path, "100", "4")
    errors = {}
    for block in printed.strip().split("\n\n"):
        heading, *lines = block.splitlines()
        found = {line[2:28].strip(): float(line[28:].split()[0]) for line in lines}
        errors[heading.split(":")[0]] = found
    assert list(errors) == ["normal", "10% far away", "no mean"] and all(len(found) == 7 for found in errors.values())
    # The tables come from a fixed seed. The mean of contaminated rows is biased by 0.8 in each column, 0.6 of the
    # interquartile range of about 1.4 to 1.5, so some 0.75 in all; its noise over 100 rows is below 0.15 and averages
    # over 4 tables. The median's bias is that of the quantile at 5/9 of a normal: 0.14 deviations.
    assert 0.5 < errors["10% far away"]["mean, not private"] < 1.0
    assert errors["10% far away"]["median, not private"] < 0.4
    # A private median at n * epsilon = 100 may come from the prior, but rarely: it is nearer than the prior's draws,
    # whose distance is 10 sqrt(2) / 1.4 = 10.
    assert 0 < errors["normal"]["halfspace, axes"] < 5
    assert releasable(tmp_path / "choosing_depth.png").startswith("yes: made from synthetic rows")


def test_choosing_prior_compares_all_choices(tmp_path):
    printed = run("choosing_prior", tmp_path, "60", "3")
    assert printed.startswith("6 priors, 3 synthetic tables of 60 rows")
    assert "vague" in printed and "raw units" in printed and "Made of synthetic rows" in printed
    assert releasable(tmp_path / "choosing_prior.png").startswith("yes: ")


def test_nuts_is_compared_with_exact_draws(tmp_path):
    printed = run("nuts_against_exact", tmp_path, "100", "2")
    assert printed.startswith("\nPrior of width 2\n4 chains of 100 draws, nuts")
    (distance,) = re.findall(r"energy distance to 500 exact draws: (\d\.\d+)", printed)
    # Where the chains are right the distance is about (1/kept + 1/500) / 2, below .03 for 20 kept draws or more; that
    # of draws of the prior alone, eight times as wide as the law, is .18.
    assert float(distance) < 0.1
    assert releasable(tmp_path / "nuts_against_exact.png").startswith("no: ")
