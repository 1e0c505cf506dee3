"""docs/api.md lists every public name once, with what it costs, and its links and references lead somewhere."""

import re
from pathlib import Path

import pytest

import pymc_dpdepth as dpd

DOCS = Path(__file__).parents[1] / "docs"
TEXT = (DOCS / "api.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in TEXT.splitlines()
    if line.startswith("| `")
]
LISTED = [row[0].strip("`") for row in ROWS]
PUBLIC = [*dpd.__all__, *(f"ptr.{name}" for name in dpd.ptr.__all__), *(f"extrema.{n}" for n in dpd.extrema.__all__)]
SHORT_TABLES = 2  # columns of the tables of errors and of commands


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_has_one_line(name):
    assert LISTED.count(name) == 1, f"docs/api.md has {LISTED.count(name)} lines that begin with | `{name}` |"


def test_every_line_says_what_it_costs_and_leads_to_a_page():
    assert len(ROWS) > 60
    for name, *cells in ROWS:
        assert all(cells[:3]), name
        if len(cells) >= SHORT_TABLES:
            assert "](" in cells[2], f"{name} has no page"


def test_links_lead_to_pages_and_headings():
    for page, heading in re.findall(r"\]\(([\w.]+)(?:#([\w-]+))?\)", TEXT):
        text = (DOCS / page).read_text(encoding="utf-8")
        headings = [re.sub(r"[^\w -]", "", line.lstrip("# ").lower()).replace(" ", "-") for line in text.splitlines()]
        assert not heading or heading in headings, f"{page} has no heading {heading}"


def test_references_are_listed_and_used():
    body, listed = TEXT.split("## References")
    used, known = (set(re.findall(r"\[([A-Z]+\d\d)\]", part)) for part in (body, listed))
    assert used == known
