"""The certified sampler: its law against exact enumeration, its exact (epsilon, delta), refusals, record and charge."""

import json
import math
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pymc as pm
import pytest
from exact_laws import counts, neighbours, partition, tables
from scipy import stats

import pymc_dpdepth as dpd
from pymc_dpdepth.depths import (
    Directions,
    Halfspace,
    IntegratedDual,
    IntegratedRankWeighted,
    ModifiedSpatial,
    Simplicial,
    Spatial,
)
from pymc_dpdepth.mechanism import set_up
from pymc_dpdepth.privacy.rounding import to_decimal
from pymc_dpdepth.randomness import SeededBits
from pymc_dpdepth.samplers import certified
from pymc_dpdepth.samplers.certified import CertifiedPlan, largest_score, plan_certified, tries_for
from pymc_dpdepth.samplers.exact import NoExactSamplerError

# Family-wise level 1e-6 of the chi-square tests of this file, fewer than 20.
LEVEL = 1e-6 / 20
DELTA = 1e-3
STEP_DEPTHS = [Halfspace("axes"), IntegratedRankWeighted(), IntegratedDual()]


def plan_of(rows, depth, epsilon=1.0, delta=DELTA, prior=None, rows_per_unit=1):
    prior = pm.Normal.dist(0, 2, shape=rows.shape[1]) if prior is None else prior
    settings, product, rows = set_up("m", prior, rows, depth=depth, epsilon=epsilon, max_rows_per_unit=rows_per_unit)
    return plan_certified(settings, product, prior, delta), rows


# The law of a table on the pieces between its rows, and those of its neighbours


def base_of(plan):
    return decimal_of(Fraction(plan.base.numerator, 2**plan.base.shift))


def decimal_of(fraction):
    return Decimal(fraction.numerator) / Decimal(fraction.denominator)


def law_of(plan, piece_counts, masses, tries=None):
    """Return the probabilities of pieces to 28 digits: (1 - q) P + q Q, tries accepted with b^(top - count)."""
    top = largest_score(plan.settings, plan.counts)
    tries = plan.tries if tries is None else tries
    base = base_of(plan)
    accepted = [base ** (top - int(k)) * mass for k, mass in zip(piece_counts, masses, strict=True)]
    total = sum(accepted)
    missed = (1 - total) ** tries
    return [(1 - missed) * a / total + missed * mass for a, mass in zip(accepted, masses, strict=True)]


def line_law(plan, rows, values, **options):
    """Return the pieces of the line that all values cut, and the law of a table of the line on them."""
    floors = plan.frame.floors()[0]
    axis = partition(plan.frame.keys(np.array(values)[:, None])[0], floors)
    keys = plan.frame.keys(np.array(rows, dtype=float)[:, None])[0]
    masses = [decimal_of(mass) for mass in axis.masses]
    return axis, law_of(plan, counts(plan.settings.depth.name, axis.first, keys.tolist()), masses, **options)


@pytest.mark.parametrize("tries", [1, 3, 40])
@pytest.mark.parametrize("depth", STEP_DEPTHS, ids=lambda depth: depth.name)
def test_the_law_is_that_of_exact_enumeration(depth, tries, monkeypatch):
    monkeypatch.setattr(certified, "BATCH", 1009)  # draws and batches end at different places
    rows = np.array([-1.0, 0.5, 0.5, 2.0, 40.0])
    plan, table = plan_of(rows[:, None], depth, epsilon=2.0)
    plan = replace(plan, tries=tries)
    axis, law = line_law(plan, rows, rows)
    draws = plan.draw(table, SeededBits(tries), 20_000 if tries < 40 else 5_000)
    keys = plan.frame.keys(draws)[0]
    pieces = np.searchsorted(axis.last, keys)
    observed = np.bincount(pieces, minlength=len(law))
    expected = len(draws) * np.array([float(p) for p in law])
    seen = expected > 5  # atoms are single cells, of which only the tied one may be seen
    assert observed[~seen].sum() <= 5 * (~seen).sum()
    assert stats.chisquare(observed[seen], expected[seen] * observed[seen].sum() / expected[seen].sum()).pvalue > LEVEL
    _, other = line_law(plan, rows, rows, tries=400 * tries)
    other = len(draws) * np.array([float(p) for p in other])
    if tries < 40:  # the power: the law without misses is told apart
        wrong = stats.chisquare(observed[seen], other[seen] * observed[seen].sum() / other[seen].sum())
        assert wrong.pvalue < LEVEL


def test_the_law_in_the_plane_over_oblique_directions():
    rows = np.array([[0.0, 0.0], [1.0, 1.0], [-1.0, 2.0], [1.0, 1.0]])
    depth = IntegratedRankWeighted(directions=Directions.balanced(2, 6))
    plan, table = plan_of(rows, depth, epsilon=2.0)
    plan = replace(plan, tries=4)
    draws = plan.draw(table, SeededBits(3), 20_000)
    # Quantiles of the normalised law by importance from the prior: 1,000,000 points, right to about 0.002.
    x = np.random.default_rng(1).normal(0, 2, size=(1_000_000, 2))
    units = plan.settings.scale
    accepted = np.exp(plan.settings.beta * (plan.settings.depth.evaluate(x / units, rows / units) - 1.0))
    missed = (1 - accepted.mean()) ** 4
    weights = (1 - missed) * accepted / accepted.mean() + missed
    for direction in ([1, 0], [0, 1], [1, -1]):
        t, order = x @ direction, np.argsort(x @ direction)
        cdf = np.cumsum(weights[order]) / weights.sum()
        distance = np.abs(np.searchsorted(np.sort(draws @ direction), t[order]) / len(draws) - cdf).max()
        assert distance < 0.01 + 2.95 / math.sqrt(len(draws))  # 2 exp(-2 * 2.95^2) = 6e-8


# The exact (epsilon, delta)

VALUES = [-20.0, -0.5, 0.0, 1.0]


def worst_pair(plan, values=VALUES, tries=None):
    """Return the largest sum over pieces of max(P - e^epsilon P', 0), and the largest ratio P / P', all neighbours."""
    laws = {
        table: line_law(plan, [values[i] for i in table], values, tries=tries)[1]
        for table in tables(values, plan.settings.n)
    }
    delta, ratio, bound = Decimal(0), Decimal(0), Decimal(plan.settings.epsilon).exp()
    for table, law in laws.items():
        for other in neighbours(table, len(values)):
            pairs = list(zip(law, laws[other], strict=True))
            delta = max(delta, sum(max(p - bound * q, 0) for p, q in pairs))
            ratio = max(ratio, max(p / q for p, q in pairs))
    return float(delta), float(ratio)


@pytest.mark.parametrize("depth", STEP_DEPTHS, ids=lambda depth: depth.name)
@pytest.mark.parametrize(("n", "epsilon", "delta"), [(3, 1.5, 0.2), (3, 1.5, 1e-3), (6, 3.0, 1e-3), (6, 3.0, 0.5)])
def test_epsilon_and_delta_hold_exactly(depth, n, epsilon, delta):
    plan, _ = plan_of(np.zeros((n, 1)), depth, epsilon=epsilon, delta=delta)
    least = math.exp(-plan.settings.beta)  # probability that a try is accepted, at worst
    stated = (1 - math.exp(epsilon / 2) * least) ** plan.tries
    assert stated <= delta * (1 + 1e-9)
    assert plan.tries == 1 or delta < (1 - math.exp(epsilon / 2) * least) ** (plan.tries - 1) * (1 + 1e-9)
    realised, ratio = worst_pair(plan)
    assert realised <= stated
    # The pure statement of docs/privacy_guarantee.md.
    missed = (1 - least) ** plan.tries
    assert ratio <= (math.exp(epsilon) + math.exp(epsilon / 2) * missed / (1 - missed)) * (1 + 1e-9)


@pytest.mark.parametrize("depth", STEP_DEPTHS[:2], ids=lambda depth: depth.name)
def test_tries_for_a_supremum_that_is_too_small_are_caught(depth, monkeypatch):
    right, _ = plan_of(np.zeros((8, 1)), depth, epsilon=3.0)
    monkeypatch.setattr(type(depth), "upper_bound", lambda self, n, d: 0.75)
    wrong, _ = plan_of(np.zeros((8, 1)), depth, epsilon=3.0)
    monkeypatch.undo()
    assert wrong.tries < right.tries / 10
    assert worst_pair(right, VALUES[:3])[0] <= DELTA < worst_pair(right, VALUES[:3], wrong.tries)[0]


def test_a_depth_above_its_supremum_is_noticed(monkeypatch):
    monkeypatch.setattr(Halfspace, "upper_bound", lambda self, n, d: 0.5)
    plan, _ = plan_of(np.zeros((4, 1)), Halfspace("axes"), epsilon=0.5)
    assert plan._accept(np.array([2]), SeededBits(1)).all()
    with pytest.raises(ValueError, match="exceeds its supremum"):
        plan._accept(np.array([3]), SeededBits(1))


# Tries


def test_the_number_of_tries_is_the_smallest_that_will_do():
    for exponent in ("0.01", "0.7", "3", "14.5", "40"):
        for delta in (0.3, 1e-6, 1e-300):
            log_miss = to_decimal(delta).ln()
            tries = tries_for(-Decimal(exponent), log_miss)
            with localcontext() as context:
                context.prec = 80
                step = (1 - (-Decimal(exponent)).exp()).ln()
                assert tries * step <= log_miss or tries == 1
                assert tries == 1 or (tries - 1) * step > log_miss * (1 + Decimal("1e-20"))
    assert tries_for(Decimal(0), to_decimal(1e-6).ln()) == 1


@pytest.mark.parametrize(
    ("depth", "top"),
    [
        (Halfspace("axes"), 7),
        (Halfspace(directions=None), 7),
        (IntegratedRankWeighted(directions=Directions.balanced(2, 5)), 7 * 6),
        (IntegratedDual(), 49 * 2),
        (Simplicial(), math.comb(7, 3)),
        (IntegratedDual(smoothing=2.0), 0.25),
        (Spatial(), 1.0),
        (ModifiedSpatial(), 1.0),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_largest_score_is_reached_by_no_more_than_rows_that_are_all_equal(depth, top):
    plan, rows = plan_of(np.full((7, 2), 0.5), depth)
    directions = getattr(plan.settings.depth, "directions", None)
    if isinstance(depth, IntegratedRankWeighted):
        top = 7 * len(directions.matrix())
    assert largest_score(plan.settings, plan.counts) == top
    units = (rows - np.array(plan.settings.center)) / np.array(plan.settings.scale)
    score = plan._scores(units)(units[:1])[0]
    assert score == top if not isinstance(depth, Spatial | ModifiedSpatial) else 0 < score <= top


def test_every_table_costs_the_same_evaluations(monkeypatch):
    made = []
    original = CertifiedPlan._accept
    monkeypatch.setattr(CertifiedPlan, "_accept", lambda self, s, bits: made.append(len(s)) or original(self, s, bits))
    generator = np.random.default_rng(5)
    one = generator.normal(size=(10, 2))
    other = one.copy()
    other[3] = 1e6
    for depth in (Halfspace(directions=Directions.balanced(2, 8)), Spatial()):
        work = []
        for rows in (one, other, np.zeros((10, 2)), np.full((10, 2), 1e200)):
            plan, rows = plan_of(rows, depth, epsilon=0.5)
            made.clear()
            plan.draw(rows, SeededBits(3), 1)
            work.append(list(made))
        assert all(entry == work[0] for entry in work) and sum(work[0]) == plan.tries


# The front door


class Charges:
    """A ledger that keeps what it is charged."""

    def __init__(self):
        self.charges = []

    def charge(self, *, epsilon, delta, label, bounded_range=()):
        self.charges.append((epsilon, delta, label, bounded_range))


ROWS = np.random.default_rng(3).normal(size=(10, 2))


def certified_median(rows=ROWS, ledger=None, **options):
    options = {"epsilon": 1.0, "delta": 1e-6, "prior": "normal(0, 2)", "sampler": "certified"} | options
    return dpd.private_median(rows, ledger=ledger, **options)


@pytest.mark.parametrize("depth", [Halfspace("axes"), Spatial(), IntegratedDual(smoothing=0.1)], ids=lambda d: d.name)
def test_record_charge_and_json(depth, tmp_path):
    ledger = Charges()
    release = certified_median(depth=depth, ledger=ledger, max_rows_per_unit=2)
    assert (release.guarantee, release.sampler) == ("certified", "certified")
    assert (release.epsilon, release.delta, release.rho) == (2.0, 1e-6, None)
    assert ledger.charges == [(2.0, 1e-6, "median", ())]
    record = release.mechanisms[0]
    assert record["tries"] >= 1 and record["realised_epsilon"] <= record["epsilon"] == 1.0
    assert record["proposals"] == ("normal envelope" if depth.differentiable and depth.name != "spatial" else "prior")
    release.to_json(tmp_path / "release.json")
    assert dpd.Release.from_json(tmp_path / "release.json") == release
    other = certified_median(np.full((10, 2), 7.0), depth=depth, max_rows_per_unit=2).to_dict()
    for entry in (own := json.loads(json.dumps(release.to_dict()))), other:
        del entry["locations"], entry["parameters"]
    assert own == json.loads(json.dumps(other))


def test_a_real_accountant_is_charged_both():
    accountant = dpd.PrivacyAccountant(epsilon=3.0, delta=1e-5, composition="basic")
    certified_median(ledger=accountant, depth="spatial")
    spent = accountant.spent()
    assert (spent.epsilon, spent.delta) == (1.0, 1e-6)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"delta": 0.0}, ValueError, "pass delta=1e-6"),
        ({"epsilon": None, "delta": 0.0, "rho": 0.1}, ValueError, "pass delta=1e-6"),
        ({"epsilon": 20.0}, NoExactSamplerError, r"about 10\^4\d tries.*only exp\(-90\).*smoothing=s"),
        ({"epsilon": 1e4}, NoExactSamplerError, "tries"),
        ({"depth": IntegratedDual(smoothing=9.0), "epsilon": 30.0}, NoExactSamplerError, "must be below 1"),
        (
            {"depth": dpd.CustomObjective(lambda t, X: -((t - X.mean(0)) ** 2).sum(), 1.0)},
            NoExactSamplerError,
            "supremum",
        ),
    ],
    ids=["no delta", "rho", "hopeless", "beyond all", "curved", "custom"],
)
def test_refusals_cost_nothing(options, error, message):
    ledger = Charges()
    with pytest.raises(error, match=message):
        certified_median(ledger=ledger, **options)
    assert ledger.charges == []


def test_it_is_never_taken_without_being_asked_for():
    for depth in (Spatial(), Halfspace("axes"), IntegratedDual(smoothing=0.1)):
        assert certified_median(sampler="auto", depth=depth).sampler != "certified"


def test_a_table_without_rows_is_a_draw_of_the_prior():
    plan, rows = plan_of(np.empty((0, 2)), Halfspace("axes"))
    assert plan.tries == 0 and plan.describe()["realised_epsilon"] == 0.0
    draws = plan.draw(rows, SeededBits(1), 3000)
    assert stats.kstest(draws[:, 0] / 2, "norm").pvalue > LEVEL


def test_a_multivariate_normal_prior():
    prior = pm.MvNormal.dist(np.zeros(2), np.array([[4.0, 3.0], [3.0, 4.0]]))
    release = certified_median(prior=prior, depth="spatial")
    assert release.priors["median"][0]["family"] == "MvNormal" and release.guarantee == "certified"
