"""Exact draws of a normal hierarchy: the law against quadrature, its privacy loss, its bounds, and what has none."""

import itertools
import json

import numpy as np
import pymc as pm
import pytest
from scipy import stats
from scipy.special import logsumexp

import pymc_dpdepth as dpd
from pymc_dpdepth.exact_model import plan_model
from pymc_dpdepth.grid import LAST_KEY, TAIL_FLOOR_KEY, mass
from pymc_dpdepth.mechanism import exponential_mechanism, read_mechanisms
from pymc_dpdepth.randomness import SeededBits
from pymc_dpdepth.samplers.group_laws import DualFactor, LevelFactor, total_of
from pymc_dpdepth.samplers.hierarchy import Component, HyperTree
from pymc_dpdepth.samplers.weights import WeightBase

SIMULATION = pytest.warns(dpd.PrivacyLeakWarning, match="random_seed")
ONE = {"group": ["a", "b"], "coordinate": ["x"]}
ROWS = np.array([-1.3, -0.2, 0.1, 0.7, 1.9, 2.2, 2.5, 4.0])
LABELS = list("aaaaabbb")


def model_of(rows=ROWS, labels=LABELS, *, coords=None, mean=None, scale=None, **options):
    rows = np.asarray(rows, dtype=float).reshape(len(labels), -1)
    coords = coords or ONE | {"coordinate": list("xyz")[: rows.shape[1]]}
    with pm.Model(coords=coords) as model:
        mean = pm.Normal("mean", 0, 2) if mean is None else mean()
        scale = pm.HalfNormal("scale", 1.5) if scale is None else scale()
        location = pm.Normal("location", mean, scale, dims=("group", "coordinate"))
        exponential_mechanism(
            "median", location, rows, groups=labels, **({"epsilon": 2.0, "directions": "axes"} | options)
        )
    return model


# The law by quadrature, written from its definition: no code of the samplers


def pieces(rows, cuts):
    """Return ends of pieces of a line, a point inside each, and the bin of each between the cuts."""
    ends = np.unique(np.concatenate([rows, cuts]))
    ends = np.concatenate([[ends[0] - 99.0], ends, [ends[-1] + 99.0]])
    inside = 0.5 * (ends[:-1] + ends[1:])
    ends[[0, -1]] = -np.inf, np.inf
    return ends, inside, np.searchsorted(cuts, inside)


def expected(tables, means, scales, depth, epsilon, cuts):
    """Return the probabilities (points of the hyperparameters, bins of group 0, ..., bins of group G).

    All coordinates of a group are binned; `means` and `scales` of shape (K, d), points of equal prior mass.
    """
    law = np.ones(len(means))
    for rows in tables:
        n, d = rows.shape
        lines = [pieces(rows[:, j], cuts) for j in range(d)]
        points = np.array(list(itertools.product(*(inside for _, inside, _ in lines))))
        bins = np.ravel_multi_index(np.array(list(itertools.product(*(b for _, _, b in lines)))).T, [len(cuts) + 1] * d)
        masses = np.ones((len(means), 1))
        for j, (ends, _, _) in enumerate(lines):
            part = np.diff(stats.norm.cdf((ends - means[:, j, None]) / scales[:, j, None]), axis=1)
            masses = (masses[:, :, None] * part[:, None, :]).reshape(len(means), -1)
        weights = masses * np.exp(epsilon / (2 * depth.sensitivity(n, d)) * depth.evaluate(points, rows))
        by_bin = np.stack([weights[:, bins == b].sum(axis=1) for b in range((len(cuts) + 1) ** d)], axis=1)
        law = law[..., None] * by_bin.reshape(len(means), *[1] * (law.ndim - 1), -1)
    return law / law.sum()


MIDPOINTS = (np.arange(160) + 0.5) / 160
CUTS = np.array([0.0, 1.5])


def hyper_bins(values, quantiles):
    return np.searchsorted(quantiles, values)


def normal_and_half_normal():
    mean, scale = (
        part.ravel() for part in np.meshgrid(2 * stats.norm.ppf(MIDPOINTS), 1.5 * stats.halfnorm.ppf(MIDPOINTS))
    )
    return mean[:, None], scale[:, None]


LAWS = {
    "halfspace": ("halfspace", 1, {}, normal_and_half_normal),
    "dual": ("integrated_dual", 1, {}, normal_and_half_normal),
    "constant mean": (
        "halfspace",
        1,
        {"mean": lambda: 0.5, "scale": lambda: pm.Gamma("scale", 2.0, 2.0)},
        lambda: (np.full((160, 1), 0.5), stats.gamma.ppf(MIDPOINTS, 2.0, scale=0.5)[:, None]),
    ),
    "two columns, one box": (
        "halfspace",
        2,
        {"mean": lambda: pm.Normal("mean", 0, 2), "scale": lambda: np.array([1.0, 2.0])},
        lambda: (np.repeat(2 * stats.norm.ppf(MIDPOINTS)[:, None], 2, 1), np.tile([1.0, 2.0], (160, 1))),
    ),
    "two columns, one scale": (
        "integrated_rank_weighted",
        2,
        {"mean": lambda: np.array([0.0, 1.0]), "scale": lambda: pm.Uniform("scale", 0, 3)},
        lambda: (np.tile([0.0, 1.0], (160, 1)), np.repeat(3 * MIDPOINTS[:, None], 2, 1)),
    ),
}
DRAWS = 3000


def discrepancy(case, seed):
    """Return the p-value of draws against the law in bins of hyperparameters and locations."""
    depth, d, priors, quadrature = LAWS[case]
    table = ROWS[:, None] if d == 1 else np.c_[ROWS, ROWS[[3, 0, 2, 1, 4, 7, 5, 6]]]
    model = model_of(table, depth=depth, **priors)
    settings = read_mechanisms(model)[0].settings
    means, scales = quadrature()
    tables = [table[[label == name for label in LABELS]] for name in "ab"]
    law = expected(tables, means, scales, settings.depth, 2.0, CUTS)
    with SIMULATION:
        posterior = dpd.sample_exact(DRAWS, model=model, random_seed=seed).posterior
    found, by_hyper = np.zeros(DRAWS, dtype=int), np.zeros(len(means), dtype=int)
    for name, column in (("mean", means[:, 0]), ("scale", scales[:, 0])):
        if name in posterior:
            cuts = np.quantile(column, [0.4, 0.6])
            found = found * 3 + hyper_bins(posterior[name].values[0], cuts)
            by_hyper = by_hyper * 3 + hyper_bins(column, cuts)
    count = by_hyper.max() + 1
    grouped = np.zeros((count, *law.shape[1:]))
    np.add.at(grouped, by_hyper, law)
    locations = np.searchsorted(CUTS, posterior["location"].values[0])  # (draws, G, d)
    cells = [found, *(np.ravel_multi_index(locations[:, g].T, [3] * d) for g in range(2))]
    observed = np.zeros(grouped.shape)
    np.add.at(observed, tuple(cells), 1)
    probabilities = grouped.ravel()
    common = probabilities * DRAWS >= 5
    pooled = [np.append(part[common], part[~common].sum()) for part in (observed.ravel(), probabilities * DRAWS)]
    return stats.chisquare(*pooled).pvalue if pooled[1][-1] > 0 else stats.chisquare(*(p[:-1] for p in pooled)).pvalue


@pytest.mark.parametrize("case", LAWS)
def test_draws_have_the_law_of_the_mechanism(case):
    # 160 midpoints a hyperparameter put the bins' probabilities right to about 1e-3 of themselves, which 3000 draws
    # cannot see. 5 tests of a familywise level of 1e-6.
    assert discrepancy(case, seed=5) > 2e-7


def test_hyperparameters_drawn_from_their_prior_are_noticed(monkeypatch):
    for name, value in {"log_bounds": 0.0, "log_constant": 0.0}.items():
        wrong = (lambda self, low, high: np.zeros(len(low))) if name == "log_bounds" else (lambda self, values: value)
        monkeypatch.setattr(Component, name, wrong)
    assert discrepancy("halfspace", seed=5) < 1e-9


# Privacy: the law that the package's parts make, enumerated on a few hyperparameters and all cells


def log_law(component, hyper, cells):
    """Return log probabilities (hyperparameters, cells of both groups) of the draw.

    The marginal of the hyperparameters comes from the package's constants; the conditional of the locations is written
    from the definition, on cells with masses. An exponential mechanism that is restricted to hyperparameters chosen
    without the rows is one, too.
    """
    marginal = np.array([component.log_constant(values) for values in hyper])
    marginal -= logsumexp(marginal)
    found = []
    for i, values in enumerate(hyper):
        joint = marginal[i]
        for group, factor in enumerate(component.factors):
            keys, (places, masses) = factor.keys(*component._at(values, group))[0], cells[i][group]
            le, ge = (keys[None] <= places[:, None]).sum(1), (keys[None] >= places[:, None]).sum(1)
            counts = np.minimum(le, ge) if isinstance(factor, LevelFactor) else le * ge
            logs = factor.unit * np.minimum(counts, factor.largest) + np.log(masses)
            joint = np.asarray(joint)[..., None] + (logs - logsumexp(logs))
        found.append(joint)
    return found


def cells_of(keys):
    """Return one cell of each piece between keys, and the pieces' masses."""
    cells, masses, below = [], [], 0
    for key in [*np.unique(keys).tolist(), LAST_KEY + 1]:
        for first, last in ((below, key - 1), (key, key)):
            if first <= last <= LAST_KEY and (share := mass(first, last, TAIL_FLOOR_KEY, TAIL_FLOOR_KEY)) > 0:
                cells.append(min(max(first, TAIL_FLOOR_KEY), LAST_KEY - TAIL_FLOOR_KEY))
                masses.append(share)
        below = key + 1
    return np.array(cells), np.array(masses)


PAIRS = [
    ([-1.0, -1.0, -1.0, 1.0, 1.0], [1.0, -1.0, -1.0, 1.0, 1.0]),
    ([0.0, 0.1, 0.2, 3.0, 3.1], [0.0, 0.1, 0.2, 3.0, -3.1]),
    ([0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 9.0, 0.0, 0.0]),
]


def loss(depth):
    """Return the largest log ratio for neighbours, over a grid of hyperparameters and all cells of both groups."""
    hyper = np.array(list(itertools.product([-1.0, 0.0, 0.4, 3.0], [1e-13, 0.3, 1.0, 1e13])))
    worst = 0.0
    for pair in PAIRS:
        components = []
        for rows in pair:
            model = model_of(rows, list("aaabb"), depth=depth)
            mechanisms = read_mechanisms(model)
            (planned,) = plan_model(model, mechanisms, "auto").plans
            plan = planned.plan
            components.append(plan._component([m.rows for m in mechanisms], plan._coordinates[0])[1])
        cells = [
            [
                cells_of(np.concatenate([c.factors[group].keys(*c._at(values, group))[0] for c in components]))
                for group in range(2)
            ]
            for values in hyper
        ]
        laws = [log_law(component, hyper, cells) for component in components]
        worst = max(worst, max(np.abs(first - second).max() for first, second in zip(*laws, strict=True)))
    return worst


@pytest.mark.parametrize("depth", ["halfspace", "integrated_dual"])
def test_the_joint_draw_is_epsilon_private(depth, monkeypatch):
    assert 1.0 < loss(depth) <= 2.0 + 1e-9
    # Hyperparameters that are drawn with the constants counted four times are noticed.
    honest = Component.log_constant
    monkeypatch.setattr(Component, "log_constant", lambda self, values: 4 * honest(self, values))
    assert loss(depth) > 2.0 + 1e-3


def test_rows_that_share_a_cell_gain_no_depth():
    # At a scale of 1e15 all rows lie in one cell, but they are not equal, so the cell is no deeper than their middle.
    rows = np.array([[0.0, 1.0, 2.0, 3.0, 4.0]])
    for factor, deepest in (
        (LevelFactor(rows, WeightBase.of_epsilon(1.0, 1)), 3),
        (DualFactor(rows, WeightBase.of_epsilon(1.0, 5)), 9),
    ):
        assert factor.largest == deepest
        assert np.exp(factor.log_constant(np.zeros(1), np.full(1, 1e15))) < np.exp(-factor.unit * (deepest - 1)) + 1e-9
    tied = np.array([[0.0, 2.0, 2.0, 2.0, 4.0]])
    assert LevelFactor(tied, WeightBase.of_epsilon(1.0, 1)).largest == 4
    assert DualFactor(tied, WeightBase.of_epsilon(1.0, 5)).largest == 16


# Bounds


def attacks(generator, count):
    """Yield factors with boxes of means and scales: ties, near ties, far rows, tiny and huge scales."""
    for _ in range(count):
        n, d, epsilon = (
            int(generator.integers(1, 20)),
            int(generator.integers(1, 3)),
            float(10 ** generator.uniform(-2, 2)),
        )
        rows = generator.normal(size=(d, n)) * 10 ** generator.uniform(-3, 3)
        kind = generator.integers(0, 4)
        if kind == 1:
            rows = np.round(rows)
        elif kind == 2:
            rows = rows[:, :1] + 10 ** generator.uniform(-14, -9) * generator.normal(size=(d, n))
        elif kind == 3:
            rows[:, : n // 2] = rows[:, :1]
        rows.sort(axis=1)
        center = generator.choice(rows.ravel()) + generator.choice([0, 1, 30]) * generator.normal()
        width = np.exp(8 * generator.normal()) * generator.choice([0, 1])
        scale, factor = (
            np.exp(generator.choice([1, 5, 30]) * generator.normal()),
            np.exp(generator.choice([0.0, 0.1, 3.0])),
        )
        ends = center - width, center + width, scale / factor * generator.choice([0, 1, 1, 1]), scale * factor
        yield LevelFactor(rows, WeightBase.of_epsilon(epsilon, d)), ends
        yield DualFactor(rows[:1], WeightBase.of_epsilon(epsilon, n)), ends


def excess(factors):
    """Return by how much a log constant exceeds its bound at most, at points of the boxes."""
    generator, worst = np.random.default_rng(11), -np.inf
    for factor, (mean_low, mean_high, scale_low, scale_high) in factors:
        d = len(factor.rows)
        (bound,) = factor.log_bounds(*(np.full((1, d), end) for end in (mean_low, mean_high, scale_low, scale_high)))
        near = np.clip(generator.choice(factor.rows.ravel()), mean_low, mean_high)
        for mean in (mean_low, mean_high, near, generator.uniform(mean_low, mean_high)):
            for scale in (scale_low, scale_high, generator.uniform(scale_low, scale_high)):
                worst = max(worst, factor.log_constant(np.full(d, mean), np.full(d, scale)) - bound)
    return worst


def test_no_constant_exceeds_its_bound(monkeypatch):
    factors = list(attacks(np.random.default_rng(10), 1000))
    assert excess(factors) <= 1e-12  # the rounding of a sum that is 1
    # A bound that forgets that keys are rounded to cells is noticed.
    monkeypatch.setattr("pymc_dpdepth.samplers.group_laws.MARGIN", -1e-3)
    assert excess(factors) > 1e-6


def test_bounds_close_in_on_the_constants():
    generator = np.random.default_rng(12)
    rows = np.sort(generator.normal(size=(1, 40)))
    for factor in (LevelFactor(rows, WeightBase.of_epsilon(1.0, 1)), DualFactor(rows, WeightBase.of_epsilon(1.0, 40))):
        for mean, scale in ((0.0, 1.0), (0.3, 0.1), (5.0, 2.0)):
            at = np.full((1, 1), mean), np.full((1, 1), scale)
            (bound,) = factor.log_bounds(at[0], at[0], at[1], at[1])
            # Joined levels add a few parts in a hundred, see JOINED and JOINED_SHARE.
            assert 0 < bound - factor.log_constant(at[0][0], at[1][0]) < 0.1


def test_constants_between_integers_hold_the_doubles():
    for factor, _ in attacks(np.random.default_rng(13), 20):
        d = len(factor.rows)
        mean, scale = np.full(d, factor.rows.mean()), np.full(d, 1.0 + factor.rows.std())
        total = total_of(factor.constant(mean, scale, 256))
        assert total.low <= total.high and (total.high - total.low) * 2**200 < total.high
        digits = total.high.bit_length()
        log = np.log(total.high / 2**digits) + (digits + total.exponent) * np.log(2)
        assert log == pytest.approx(factor.log_constant(mean, scale), abs=1e-11, rel=1e-13)


def test_acceptance_by_integers_is_that_of_doubles(monkeypatch):
    model = model_of()
    mechanisms = read_mechanisms(model)
    (planned,) = plan_model(model, mechanisms, "hierarchy").plans
    rows = [mechanism.rows for mechanism in mechanisms]

    def draw():
        return planned.plan.draw(rows, SeededBits(4), 20)

    by_doubles = draw()
    # With nothing decided by doubles all tries that could be accepted go through the integers, from the same bits.
    monkeypatch.setattr("pymc_dpdepth.samplers.hierarchy.UNDECIDED", 50.0)
    calls = []
    honest = HyperTree._accept_exactly
    monkeypatch.setattr(HyperTree, "_accept_exactly", lambda *args: calls.append(1) or honest(*args))
    for first, second in zip(by_doubles, draw(), strict=True):
        np.testing.assert_array_equal(first, second)
    assert len(calls) >= 20


def test_a_bound_that_is_too_small_is_noticed(monkeypatch):
    honest = Component.log_bounds
    monkeypatch.setattr(
        Component,
        "log_bounds",
        lambda self, low, high: np.where((low == high).all(1), 0.0, honest(self, low, high) - 3.0),
    )
    with pytest.raises(ValueError, match="the bound is wrong"):
        for _ in range(50):
            dpd.sample_exact(20, model=model_of())


# Releases


def test_a_release_has_hyperparameters_and_locations(ledger):
    model = model_of(scale=lambda: pm.Exponential("scale", 1.0), coords=ONE | {"group": ["a", "b", "nobody"]})
    release = dpd.release(model, ledger=ledger)
    assert (release.sampler, release.guarantee, release.epsilon) == ("hierarchy", "exact", 2.0)
    assert set(release.parameters) == {"mean", "scale", "location"} and len(ledger.charges) == 1
    np.testing.assert_array_equal(release.value, release.parameters["location"])
    assert [m["realised_epsilon"] for m in release.mechanisms] == pytest.approx([2.0, 2.0, 0.0])
    assert dpd.Release.from_dict(json.loads(release.to_json())) == release
    assert dpd.release(model_of()).guarantee == "float64"  # scipy's inverse of the half-normal cdf is not certified


def test_dims_of_groups_alone_and_several_columns():
    with pm.Model(coords={"group": ["a", "b"]}) as model:
        location = pm.Normal("location", pm.Normal("mean", 0, 2), pm.Uniform("scale", 0, 3), dims="group")
        exponential_mechanism("median", location, ROWS, groups=LABELS, epsilon=1.0)
        pm.Deterministic("range", location[1] - location[0])
    idata = dpd.sample_exact(7, model=model)
    assert idata.posterior["location"].dims == ("chain", "draw", "group") and "range" in idata.posterior
    wide = np.c_[ROWS, ROWS[::-1], ROWS**2]
    by_column = {
        "mean": lambda: pm.Normal("mean", 0, 2, dims="coordinate"),
        "scale": lambda: pm.HalfNormal("scale", 1.0, dims="coordinate"),
    }
    for depth in ("integrated_rank_weighted", "integrated_dual", "halfspace"):
        release = dpd.release(model_of(wide[:, : 2 if depth == "halfspace" else 3], depth=depth, **by_column))
        assert release.sampler == "hierarchy" and release.parameters["scale"].dims == ("coordinate",)


def test_a_seeded_draw_is_a_simulation_and_others_are_not_reproducible():
    model = model_of()
    with SIMULATION:
        first, second = (dpd.release(model, random_seed=3) for _ in range(2))
    assert first == second and first.simulation is True
    assert dpd.release(model) != dpd.release(model)


def three_levels():
    return pm.Normal("mean", pm.Normal("top"), 1)


REFUSED = {
    "smooth depth": (
        lambda: model_of(depth=dpd.IntegratedDual(smoothing=1.0), directions=None),
        "step depth over the axes",
    ),
    "directions": (
        lambda: model_of(np.c_[ROWS, ROWS], directions=dpd.Directions.balanced(2, 10, 0)),
        "all axes as directions",
    ),
    "one axis": (lambda: model_of(np.c_[ROWS, ROWS], directions=[[1.0, 0.0]]), "all axes as directions"),
    "three levels": (lambda: model_of(mean=three_levels), "depends on another random variable"),
    "mean of each group": (lambda: model_of(mean=lambda: pm.Normal("mean", shape=(2, 1))), "neither a constant nor"),
    "computed scale": (lambda: model_of(scale=lambda: pm.math.exp(pm.Normal("log_scale"))), "neither a constant nor"),
    "negative scale": (lambda: model_of(scale=lambda: pm.Normal("scale", 5.0, 1.0)), "negative numbers"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_hierarchies_have_no_exact_draw(case, ledger):
    build, match = REFUSED[case]
    with pytest.raises(dpd.InexactReleaseError, match=match):
        dpd.release(build(), ledger=ledger)
    with pytest.raises(dpd.NoExactSamplerError, match=match):
        dpd.sample_exact(3, model=build(), sampler="hierarchy")
    assert ledger.charges == []


def test_a_shared_hyperparameter_and_foreign_potentials_are_refused():
    with pm.Model(coords=ONE) as model:
        mean = pm.Normal("mean")
        for name in ("first", "second"):
            location = pm.Normal(name, mean, 1.0, dims=("group", "coordinate"))
            exponential_mechanism(f"of {name}", location, ROWS, groups=LABELS, epsilon=1.0)
    with pytest.raises(dpd.NoExactSamplerError, match="share the variable 'mean'"):
        dpd.sample_exact(3, model=model)


def test_no_row_is_in_a_repr():
    plan = plan_model(model := model_of(), mechanisms := read_mechanisms(model), "auto").plans[0].plan
    _, component = plan._component([m.rows for m in mechanisms], plan._coordinates[0])
    assert "1.3" not in repr(component) + repr(component.factors[0]) + repr(HyperTree(plan.hierarchy.prior, component))
