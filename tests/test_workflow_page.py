"""What docs/bayesian_workflow.md shows, run as it stands."""

import logging
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "bayesian_workflow.md"


@pytest.mark.filterwarnings("ignore:Number of tail draws")
def test_the_code_of_the_page_runs(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(logging.getLogger("pymc"), "level", logging.ERROR)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    assert len(blocks) == 6
    space = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), space)
    printed = capsys.readouterr().out
    for shown in ("synthetic tables of 500 rows", "SMC stages", "likelihood", "public settings of a model"):
        assert shown in printed
    assert list(tmp_path.iterdir()) == []
