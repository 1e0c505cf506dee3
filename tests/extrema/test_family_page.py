"""The family of docs/extrema_family.md: its code runs, and does what the page says."""

import re
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "extrema_family.md"
SMALL = {"total": 1e-6, "log": 1e-6}


@pytest.fixture(scope="module")
def page():
    """Return the names that the page's code block defines."""
    (block,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    names = {}
    exec(compile(block, str(PAGE), "exec"), names)
    return names


def test_the_interval_is_as_the_page_says(page, capsys):
    ci = page["ci"]
    # A real release. The mean of the third column has a deviation of sqrt(4.5 / 5000) = .03, and noise of scale
    # 3 * 15 / 2 in a sum of 5000 rows one of .0064.
    assert ci.selected == "x2"
    assert 2.7 < ci.lower < ci.upper < 3.3
    assert (ci.epsilon, ci.guarantee) == (2.5, "float64")
    assert ci.epsilons == {"total": 2.0, "log": 0.5}


def test_a_record_is_computed_again_with_the_family(page, tmp_path):
    ci, family = page["ci"], page["Gamma"](0.01, 15.0)
    ci.to_json(tmp_path / "ci.json")
    read = page["dpd"].ExtremaInterval.from_json(tmp_path / "ci.json")
    assert read.recompute(ci_prob=0.9, family=family).lower >= ci.lower


def test_without_noise_the_model_is_that_of_the_rows(page):
    rows = np.random.default_rng(2).gamma(3.0, [0.5, 1.0], (4000, 2))
    family = page["Gamma"](1e-3, 100.0)
    sums = {one.name: family.counts(rows, one, {}) * one.grid for one in family.statistics(4000, ["a", "b"], {})}
    model = family.model(sums, 4000, SMALL)
    assert model["mean"] == pytest.approx(rows.mean(axis=0), rel=1e-6)
    # The maximum-likelihood shape has a deviation of about sqrt(2) a / sqrt(2 * 4000) = .05, and Minka's form 1.5%.
    assert float(model["shape"]) == pytest.approx(3.0, abs=5 * 0.05 + 0.045)


def test_one_row_moves_no_sum_by_more_than_its_sensitivity(page):
    family = page["Gamma"](0.5, 8.0)
    corners = np.array([(a, b) for a in (0.0, 0.5, 3.0, 8.0, 1e9) for b in (0.0, 0.5, 3.0, 8.0, 1e9)])
    for one in family.statistics(100, ["a", "b"], {}):
        counts = np.array([family.counts(row[None], one, {}) for row in corners])
        worst = max(int(np.abs(counts - row).sum(axis=1).max()) for row in counts)
        assert worst == one.sensitivity


def test_replicates_have_the_law_of_sums_over_new_rows(page):
    generator, n, replicates = np.random.default_rng(3), 50, 4000
    family = page["Gamma"](1e-6, 1e6)
    model = {"estimate": np.array([2.0, 3.0]), "mean": np.array([2.0, 3.0]), "shape": np.array(1.5)}
    drawn = family.simulate(model, n, replicates, generator)["total"]
    brute = generator.gamma(1.5, np.array([2.0, 3.0]) / 1.5, (replicates, n, 2)).sum(axis=1)
    spread = brute.std(axis=0)
    # Within 5 standard errors, for means and for variances.
    assert np.abs((drawn.mean(axis=0) - brute.mean(axis=0)) / spread).max() < 5 * np.sqrt(2 / replicates)
    assert np.abs(drawn.var(axis=0) / spread**2 - 1).max() < 5 * np.sqrt(2 * 2.2 / replicates)
    totals = generator.normal(100, 10, (20, 2))
    together = family.estimates({"total": totals}, n, SMALL)
    assert (together == np.array([family.estimates({"total": row}, n, SMALL) for row in totals])).all()
