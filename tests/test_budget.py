"""The ledger is charged before the draw, once, and never for what is refused."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import pymc_dpdepth as dpd
from pymc_dpdepth import from_model
from pymc_dpdepth.budget import charge, check_ledger
from pymc_dpdepth.mechanism import exponential_mechanism
from pymc_dpdepth.samplers.branch_plan import BranchPlan
from pymc_dpdepth.samplers.exact import ExactPlan

ROWS = np.array([[0.31, -1.2], [0.31, 0.4], [-2.07, 0.9], [1.44, 2.3], [0.05, -0.6]])
SMOOTH = dpd.IntegratedDual(smoothing=2.0)
PRIOR = "normal(0, 3)"
INCOMPLETE = np.where(ROWS == 0.9, np.nan, ROWS)


class Crash(Exception):
    """Stands for whatever may go wrong in the middle of a draw."""


def crash(*args, **kwargs):
    raise Crash


def trace_of(model):
    import arviz as az

    return az.from_dict({"posterior": {"location": np.zeros((1, 2, 2))}})


def test_the_cost_is_charged_once(ledger, model_of):
    dpd.private_median(ROWS, epsilon=0.5, prior=PRIOR, max_rows_per_unit=3, ledger=ledger)
    model = model_of(ROWS, epsilon=0.25)
    with model:
        exponential_mechanism("second", pm.Normal("elsewhere", 0, 3, shape=2), ROWS, epsilon=1.0, max_rows_per_unit=2)
    made = dpd.release(model, ledger=ledger)
    assert ledger.charges == [(1.5, 0.0, "median"), (2.25, 0.0, "median, second")]
    assert made.epsilon == 2.25


# Crashes after the charge

AXES = {"directions": dpd.Directions.axes(2)}

DRAWS = {
    "median": (ExactPlan, "draw", lambda model, **o: dpd.private_median(ROWS, epsilon=1.0, prior=PRIOR, **AXES, **o)),
    "model": (ExactPlan, "draw", lambda model, **o: dpd.release(model("integrated_dual"), **o)),
    "branch and bound": (BranchPlan, "draw", lambda model, **o: dpd.release(model(SMOOTH), **o)),
    "chains": (
        from_model,
        "sample_markov",
        lambda model, **o: dpd.release(model(SMOOTH), sampler="nuts", accept_asymptotic=True, **o),
    ),
    "median by chains": (
        from_model,
        "sample_markov",
        lambda model, **o: dpd.private_median(
            ROWS, epsilon=1.0, prior=PRIOR, depth=SMOOTH, sampler="nuts", accept_asymptotic=True, **o
        ),
    ),
    "trace": (
        from_model,
        "_pick",
        lambda model, **o: dpd.release(trace_of(model), model=model(SMOOTH), accept_asymptotic=True, **o),
    ),
}


@pytest.mark.filterwarnings("ignore::pymc_dpdepth.errors.ApproximateSamplingWarning")
@pytest.mark.parametrize("where", DRAWS)
def test_the_charge_comes_before_the_draw(where, ledger, empty_ledger, model_of, monkeypatch):
    owner, name, call = DRAWS[where]
    monkeypatch.setattr(owner, name, crash)

    def model(depth):
        return model_of(ROWS, depth)

    with pytest.raises(Crash):
        call(model, ledger=ledger)
    assert ledger.charges == [(1.0, 0.0, "median")]  # the crash wasted the budget; it did not give it back
    with pytest.raises(dpd.BudgetExceededError):  # and not Crash: no draw was tried
        call(model, ledger=empty_ledger)
    assert empty_ledger.charges == []


# Refusals cost nothing


def median(data=ROWS, **options):
    return lambda ledger, model_of: dpd.private_median(
        data, ledger=ledger, **({"epsilon": 1.0, "prior": PRIOR} | options)
    )


def released(depth="halfspace", change=None, **options):
    def call(ledger, model_of):
        model = model_of(ROWS, depth)
        if change is not None:
            with model:
                change(model)
        return dpd.release(model, ledger=ledger, **options)

    return call


def from_trace(trace, **options):
    return lambda ledger, model_of: dpd.release(
        trace, model=model_of(ROWS, SMOOTH), ledger=ledger, **({"accept_asymptotic": True} | options)
    )


REFUSALS = {
    "epsilon 0": median(epsilon=0),
    "epsilon nan": median(epsilon=np.nan),
    "epsilon tiny": median(epsilon=5e-324),
    "epsilon huge": median(epsilon=1e308),
    "epsilon text": median(epsilon="1"),
    "no prior": median(prior=None),
    "prior too long": median(prior=["normal(0, 1)"] * 3),
    "prior text": median(prior="normal(0)"),
    "prior flat": median(prior=pm.Flat.dist(shape=2)),
    "prior too wide": median(prior=pm.Normal.dist(shape=3)),
    "prior too wide mv": median(prior=pm.MvNormal.dist(np.zeros(3), np.eye(3)), accept_asymptotic=True),
    "prior column": median(prior={"x0": "normal(0, 1)"}),
    "prior hierarchical": median(prior=pm.Normal.dist(pm.Normal.dist(), 1, shape=2), accept_asymptotic=True),
    "prior of another type": median(prior=3.0),
    "depth unknown": median(depth="tukey"),
    "depth projection": median(depth="projection"),
    "depth smooth": median(depth=SMOOTH, sampler="products"),
    "directions": median(directions=np.ones((2, 3))),
    "all directions": median(depth=dpd.Halfspace(directions=None), sampler="boxes"),
    "directions rotated": median(directions=dpd.Directions.uniform(2, 5, seed=1), sampler="boxes"),
    "six dimensions": median(np.zeros((5, 6)), depth="spatial"),
    "sampler unknown": median(sampler="gibbs"),
    "sampler does not fit": median(sampler="segments"),
    "sampler chain": median(sampler="smc"),
    "nuts on a step depth": median(sampler="nuts", accept_asymptotic=True),
    "nonfinite": median(INCOMPLETE),
    "nonfinite policy": median(nonfinite="drop"),
    "rows per unit": median(max_rows_per_unit=0),
    "seed": median(random_seed=-1),
    "no file": median("missing.csv"),
    "text column": median(pd.DataFrame({"a": ["x", "y"], "b": [1.0, 2.0]})),
    "unknown column": median(columns=["x7"]),
    "three axes": median(np.zeros((2, 2, 2))),
    "no columns": median(np.zeros((2, 0))),
    "model smooth": released(SMOOTH, sampler="nuts"),
    "model sampler": released(sampler="segments"),
    "model unknown sampler": released(sampler="gibbs"),
    "model chain": released(sampler="slice"),
    "model nuts": released(sampler="nuts", accept_asymptotic=True),
    "model seed": released(random_seed=1.5),
    "model public": released(public=["nobody"]),
    "model observed": released(change=lambda model: pm.Normal("seen", 0, 1, observed=1.0)),
    "model potential": released(change=lambda model: pm.Potential("extra", -model["location"].sum())),
    "model misuse": released(change=lambda model: pm.Potential("again", 2 * model["median"])),
    "model other": released(change=lambda model: pm.Poisson("count", 3)),
    "trace of nothing": from_trace(None),
    "trace without consent": from_trace(trace_of(None), accept_asymptotic=False),
    "trace with sampler": from_trace(trace_of(None), sampler="nuts"),
    "trace public": from_trace(trace_of(None), public=["nobody"]),
    "trace seed": from_trace(trace_of(None), random_seed="a"),
    "trace without model": lambda ledger, model_of: dpd.release(trace_of(None), ledger=ledger),
}


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_refusal_costs_nothing(refusal, ledger, model_of):
    expected = (ValueError, TypeError, RuntimeError, NotImplementedError, FileNotFoundError)
    with pytest.raises(expected):
        REFUSALS[refusal](ledger, model_of)
    assert ledger.charges == []


def test_the_list_of_refusals_would_notice_a_charge(ledger, model_of):
    median()(ledger, model_of)
    released()(ledger, model_of)
    assert len(ledger.charges) == 2


# Ledgers


class Misnamed:
    def spend(self, *, epsilon, delta, label):
        raise AssertionError


CLASSES = [dpd.Ledger, dpd.PrivacyAccountant]


@pytest.mark.parametrize("wrong", [1.0, "ledger.json", {}, Misnamed(), object(), *CLASSES], ids=range(7))
def test_other_objects_are_no_ledgers(wrong, model_of):
    for call in (
        lambda: dpd.private_median(ROWS, epsilon=1.0, prior=PRIOR, ledger=wrong),
        lambda: dpd.release(model_of(ROWS), ledger=wrong),
        lambda: check_ledger(wrong),
    ):
        with pytest.raises(TypeError, match=r"ledger.*charge\(\*, epsilon, delta, label, bounded_range\)"):
            call()


def test_a_label_of_the_users_names_the_charge(model_of, tmp_path):
    ledger = dpd.Ledger.create(tmp_path / "study.jsonl", epsilon=9.0, data_id="study-7")
    dpd.private_median(ROWS, epsilon=1.0, prior=PRIOR, ledger=ledger, label="age, 2030")
    dpd.release(model_of(ROWS), ledger=ledger, label="a model")
    dpd.release(model_of(ROWS), ledger=ledger)
    assert [entry["label"] for entry in ledger.entries()] == ["age, 2030", "a model", "median"]
    for call in (
        lambda **options: dpd.private_median(ROWS, epsilon=1.0, prior=PRIOR, **options),
        lambda **options: dpd.release(model_of(ROWS), **options),
    ):
        with pytest.raises(ValueError, match="^label: expected with ledger="):
            call(label="x")
        for wrong in ("", "x" * 1001, 3):
            with pytest.raises((ValueError, TypeError), match="^label: expected"):
                call(label=wrong, ledger=ledger)
    assert len(ledger.entries()) == 3


class KnowsItsTable:
    """A ledger of another kind that can tell tables apart."""

    def __init__(self):
        self.charges = []

    def check_data(self, data):
        if data is not ROWS:
            raise ValueError("other rows")

    def charge(self, **cost):
        self.charges.append(cost["label"])


def test_a_ledger_that_can_tell_tables_apart_is_asked_before_the_charge():
    ledger = KnowsItsTable()
    for label in (None, "mine"):
        with pytest.raises(ValueError, match="other rows"):
            dpd.private_median(ROWS.copy(), epsilon=1.0, prior=PRIOR, ledger=ledger, label=label)
        assert ledger.charges == []
    dpd.private_median(ROWS, epsilon=1.0, prior=PRIOR, ledger=ledger)
    dpd.private_median(ROWS, epsilon=1.0, prior=PRIOR, ledger=ledger, label="mine")
    assert ledger.charges == ["median", "mine"]


def test_no_ledger_is_no_charge():
    check_ledger(None)
    assert charge(None, epsilon=1.0, delta=0.0, label="x") is None
