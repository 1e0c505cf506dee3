"""What README and examples show, run as they stand."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

import pymc_dpdepth as dpd
from pymc_dpdepth.cli import app

ROOT = Path(__file__).parents[1]


def test_quickstart_writes_what_it_says(tmp_path):
    script = ROOT / "examples" / "quickstart.py"
    result = subprocess.run(
        [sys.executable, "-W", "error", script, tmp_path], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    release = dpd.Release.from_json(tmp_path / "release.json")
    assert release.guarantee == "exact" and release.simulation is False
    assert sorted(path.name for path in tmp_path.iterdir()) == ["release.json", "release.png"]
    for name in release.value.coordinate.values:
        assert str(name) in result.stdout
    assert "release.json" in result.stdout and "release.png" in result.stdout


def test_consistency_prints_errors_that_are_small_and_draws_them(tmp_path):
    # Three releases at each n: all three refuse with probability 1e-6. The bounds are ten times the root mean square
    # errors at n = 4000 (.008, .03, .09), where the rows' part is normal and the noise's has exponential tails.
    script = ROOT / "examples" / "consistency.py"
    command = [sys.executable, "-W", "error", script, tmp_path, "16000", "3"]
    result = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    lines = [line.split() for line in result.stdout.splitlines()]
    assert [line[0] for line in lines] == ["n", "4000", "16000", "slope"]
    for _, _, values, median, ptr_median in lines[1:3]:
        assert 0 < float(values) < 0.08 and 0 < float(median) < 0.3 and 0 < float(ptr_median) < 0.9
    assert [path.name for path in tmp_path.iterdir()] == ["consistency.png"]


def test_readme_code_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert len(blocks) >= 2
    names = {}
    for block in blocks:
        exec(block, names)
    assert names["release"].guarantee == "exact"
    assert dpd.Release.from_json(tmp_path / "release.json") == names["release"]


def test_readme_command_runs(tmp_path, monkeypatch):
    (command,) = re.findall(
        r"^    pymc-dpdepth (.*?[^\\])\n", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL
    )
    arguments = shlex.split(command.replace("\\\n", " "))
    assert arguments[0] == "median"
    arguments[1] = str(ROOT / arguments[1])
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["release.json", "release.png"]


def test_readme_names_the_two_commands_first():
    text = (ROOT / "README.md").read_text()
    assert 0 < text.index("make demo") < text.index("make test") < text.index("pip install") < text.index("```python")


def test_readme_links_lead_somewhere():
    for target in re.findall(r"\]\((?!http)([^)]+)\)", (ROOT / "README.md").read_text()):
        assert (ROOT / target).exists(), target
