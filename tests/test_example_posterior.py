"""The example of a Bayesian analysis downstream of a Release, run as it stands, at a small size."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_second_release_narrows_the_interval_and_tells_the_spread(tmp_path):
    script = ROOT / "examples" / "posterior_given_release.py"
    command = [sys.executable, "-W", "error", script, tmp_path, "400", "400"]
    result = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    first, alone, both = result.stdout.splitlines()
    numbers = [[float(number) for number in re.findall(r"-?\d+\.\d+", line)] for line in (alone, both)]
    # Center 124, spread 16, 400 people: a median's standard deviation is 1.0 from the sampling, and the noise of
    # epsilon = 0.5 has exponential tails of mean 2 / (0.5 n f) = 0.4. The depths' noise is 0.02, the spread's error 1.
    released = float(re.findall(r"-?\d+\.\d+", first)[0])
    assert abs(released - 124) < 10
    for center, low, high, _, _ in numbers:
        assert low < center < high and high - low < 40
    (*_, wide), (*_, spread, narrow) = numbers
    assert narrow < 5 < wide and abs(spread - 16) < 10
    assert [path.name for path in tmp_path.iterdir()] == ["posterior.png"]


def test_the_page_runs_as_it_stands():
    text = (ROOT / "docs" / "posterior_given_release.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    names = {}
    exec(block, names)  # warnings are errors, so the interval is stable and nothing is taken for granted in silence
    idata = names["idata"]
    low, high = idata["interval"]["population_median"].values[0]
    # 1000 rows, scale 15, epsilon 1: a deviation of 0.6 from the rows and of 0.1 from the noise; the scale is unknown.
    assert 124 - 20 < low < high < 124 + 20
    # "0.99 and more": what the page says of the default number of replicates.
    assert re.search(r"it was 0\.99 and more", text) and idata.posterior.attrs["effective_share"] > 0.98
