"""Which hierarchies are planned: how many hyperparameters they have, copies of a model, casts, and other draws."""

import copy

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dpdepth as dpd
from pymc_dpdepth.exact_model import plan_model
from pymc_dpdepth.mechanism import exponential_mechanism, read_mechanisms

GENERATOR = np.random.default_rng(6)
LABELS = list("aaaaabbb")
TABLE = GENERATOR.normal(size=(len(LABELS), 5))


def normal(name, d):
    return pm.Normal(name, 0, 2, dims="coordinate" if d > 1 else None)


def half_normal(name, d):
    return pm.HalfNormal(name, 1.0, dims="coordinate" if d > 1 else None)


def hierarchy(d=1, depth="halfspace", mean=normal, scale=half_normal, groups=("a", "b"), **options):
    with pm.Model(coords={"group": list(groups), "coordinate": list("vwxyz")[:d]}) as model:
        location = pm.Normal("location", mean("mean", d), scale("scale", d), dims=("group", "coordinate"))
        exponential_mechanism(
            "median",
            location,
            TABLE[:, :d],
            groups=LABELS,
            depth=depth,
            **({"directions": "axes", "epsilon": 1.0} | options),
        )
    return model


def plan(model, sampler="auto"):
    return plan_model(model, read_mechanisms(model), sampler).plans[0].plan


# Hyperparameters


def test_too_many_hyperparameters_are_refused_before_the_charge(ledger):
    assert plan(hierarchy(2)).together == 4
    with pytest.raises(dpd.InexactReleaseError, match='6 hyperparameters .* more than 4: .*sampler="hierarchy"'):
        dpd.release(hierarchy(3), ledger=ledger)
    assert plan(hierarchy(3), "hierarchy").together == 6
    for sampler in ("auto", "hierarchy"):
        refusal = pytest.raises((dpd.InexactReleaseError, dpd.NoExactSamplerError), match="8 .* integrated_rank_weigh")
        with refusal as caught:
            dpd.release(hierarchy(4), sampler=sampler, ledger=ledger)
        assert "wait" not in str(caught.value)
    assert ledger.charges == []


def test_columns_that_share_nothing_count_apart_where_the_depth_is_a_mean():
    for depth in ("integrated_dual", "integrated_rank_weighted"):
        assert plan(hierarchy(5, depth)).together == 2
        tied = hierarchy(5, depth, scale=lambda name, d: half_normal(name, 1))
        with pytest.raises(dpd.NoExactSamplerError, match="6 hyperparameters"):
            plan(tied)
        assert plan(tied, "hierarchy").together == 6


# Copies


def far_apart():
    labels = [label for label in "dbac" for _ in range(20)]
    rows = np.repeat([0.0, 100.0, 200.0, 300.0], 20) + np.tile(np.linspace(-0.1, 0.1, 20), 4)
    with pm.Model(coords={"group": list("dbac")}) as model:
        location = pm.Normal("location", pm.Normal("mean", 150, 10), pm.Uniform("scale", 0, 300), dims="group")
        exponential_mechanism("median", location, rows, groups=labels, epsilon=30.0)
    return model


COPIES = {"none": lambda m: m, "clone": pm.model.fgraph.clone_model, "do": lambda m: pm.do(m, {}), "copy": copy.copy}


@pytest.mark.parametrize("how", COPIES)
def test_copies_of_a_model_have_the_draw_and_the_labels_of_the_model(how):
    model = COPIES[how](far_apart())
    assert [m.settings.group.label for m in read_mechanisms(model)] == list("dbac")
    release = dpd.release(model)
    assert release.sampler == "hierarchy" and release.value.coords["group"].values.tolist() == list("dbac")
    np.testing.assert_allclose(release.value.values[:, 0], [0, 100, 200, 300], atol=5)
    assert dpd.Release.from_dict(release.to_dict()) == release


# Casts


def test_a_cast_that_changes_values_is_not_looked_through():
    def whole(name, d):
        return pt.cast(pt.cast(pm.Normal(name, 0, 2), "int64"), "float64")

    def same(name, d):
        return pt.cast(pm.Normal(name, 0, 2), "float64")

    for casts in ({"mean": whole}, {"scale": lambda name, d: pt.cast(pm.HalfNormal(name), "int32")}):
        with pytest.raises(dpd.NoExactSamplerError, match="neither a constant nor"):
            plan(hierarchy(**casts))
    assert plan(hierarchy(mean=same)).together == 2


def test_a_location_cast_to_integers_has_no_exact_draw():
    for cast in ("int64", "float32"):
        with pm.Model() as model:
            location = pt.cast(pm.Normal("base", 0, 5, shape=1), cast)
            exponential_mechanism("median", location, TABLE[:, 0], epsilon=1.0)
        with pytest.raises(dpd.NoExactSamplerError):
            dpd.sample_exact(3, model=model)


# Beside others


def test_a_mechanism_without_groups_is_drawn_beside_a_hierarchy():
    for sampler in ("auto", "hierarchy"):
        model = hierarchy()
        with model:
            exponential_mechanism("whole", pm.Normal("other", 0, 1, shape=1), TABLE[:, 1], epsilon=0.5)
        release = dpd.release(model, sampler=sampler)
        assert release.sampler == "hierarchy+segments" and release.epsilon == 1.5


def test_a_hierarchy_without_groups_says_what_it_needs(ledger):
    with pm.Model() as model:
        exponential_mechanism("median", pm.Normal("location", 0, 1, shape=1), TABLE[:, 0], epsilon=1.0)
    with pytest.raises(dpd.NoExactSamplerError, match="groups=labels"):
        dpd.release(model, sampler="hierarchy", ledger=ledger)
    with pytest.raises(dpd.NoExactSamplerError, match="groups=labels"):
        dpd.private_median(
            TABLE[:, :1], epsilon=1.0, prior=pm.Normal.dist(0, 1, shape=1), sampler="hierarchy", ledger=ledger
        )
    assert ledger.charges == []


def test_a_hyperparameter_of_another_length_has_no_exact_draw():
    with pm.Model(coords={"group": ["a", "b"], "coordinate": ["x", "y"], "one": [0]}) as model:
        location = pm.Normal("location", pm.Normal("mean", dims="one"), 1.0, dims=("group", "coordinate"))
        exponential_mechanism("median", location, TABLE[:, :2], groups=LABELS, directions="axes", epsilon=1.0)
    with pytest.raises(dpd.NoExactSamplerError, match="neither a constant nor"):
        plan(model)


@pytest.mark.parametrize("depth", ["halfspace", "integrated_dual"])
@pytest.mark.parametrize("epsilon", [1400.0, 1500.0, 1e4, 1e70])
def test_a_large_epsilon_has_a_draw(depth, epsilon):
    assert np.isfinite(dpd.release(hierarchy(depth=depth, epsilon=epsilon)).value).all()
