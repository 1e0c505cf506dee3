"""Properties that every exact draw has, whatever the table: through the front doors, over tables made to be awkward.

Draws are checked against what must hold exactly, so no test here has a tolerance for chance.
"""

import decimal
import json
import math
from fractions import Fraction

import exact_grid
import numpy as np
import pymc as pm
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from properties_tables import (
    DEPTHS,
    FAMILIES,
    PRIORS,
    Case,
    cases,
    cases_and_neighbours,
    cases_and_rows,
    directions_of,
    median,
    prior_of,
    scripted,
    tables,
)
from test_exact_law import box_masses, representatives, segment_masses

import pymc_dpdepth as dpd
from pymc_dpdepth.families import CLOSED_FORMS
from pymc_dpdepth.priors import read_prior
from pymc_dpdepth.privacy.composition import rho_to_epsilon
from pymc_dpdepth.samplers.boxes import BoxLaw
from pymc_dpdepth.samplers.segments import SegmentLaw
from pymc_dpdepth.samplers.weights import WeightBase

ONE_ULP = Fraction(1, 2**52)


def examples(count):
    """Return settings that give the same examples in every run and leave no file."""
    return settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def test_the_priors_are_of_every_closed_family():
    names = {read_prior(prior_of(name, 1), 1).blocks[0].family.name for name in FAMILIES}
    assert names == {family.name for family in CLOSED_FORMS.values()}


# The draw


@pytest.mark.parametrize("name", PRIORS)
def test_every_table_gives_a_point_of_the_public_grid(name):
    @examples(8)
    @given(cases_and_rows(priors=(name,)))
    def check(case_and_rows):
        case, rows = case_and_rows
        drawn = median(case, rows)
        (cells,) = drawn.cells
        assert cells.shape == (1, case.d) and ((cells >= 0) & (cells <= exact_grid.LAST)).all()
        # A frame of another table stands for the same cell by the same number.
        assert np.array_equal(drawn.value, case.plan().frame.locations(cells)[0])
        assert np.isfinite(drawn.value).all() and len(drawn.charges) == 1
        assert drawn.release.sampler == case.sampler and drawn.release.guarantee == "exact"
        assert dpd.Release.from_dict(json.loads(drawn.release.to_json())) == drawn.release

    check()


@pytest.mark.parametrize("name", sorted(set(FAMILIES) - {"truncated_normal"}))
def test_a_released_number_lies_in_its_own_cell_or_beside_it(name):
    # A row at the released number so counts where the draw fell. (scipy's truncated normal is not that accurate.)
    prior = read_prior(prior_of(name, 1), 1)

    @examples(8)
    @given(tables(3, 1, st.floats(-40.0, 40.0)), st.integers(0, 2**32))
    def check(rows, seed):
        drawn = median(Case(3, 1, name, seed=seed, budget=(("epsilon", 1.0),)), rows)
        (((cell,),),) = drawn.cells
        ((key,),) = prior.keys(drawn.value[None])
        assert abs(key - cell) <= 1

    check()


@examples(40)
@given(cases_and_rows(), st.randoms(use_true_random=False))
def test_the_order_of_rows_and_the_sign_of_zero_do_not_matter(case_and_rows, random):
    case, rows = case_and_rows
    order = list(range(case.n))
    random.shuffle(order)
    first, second = median(case, rows), median(case, np.where(rows == 0.0, -rows, rows)[order])
    assert first.release == second.release and np.array_equal(first.cells, second.cells)


@examples(40)
@given(cases_and_rows())
def test_rows_enter_through_their_keys_alone(case_and_rows):
    case, rows = case_and_rows
    frame = case.plan().frame
    keys = frame.keys(rows)
    # Other rows with the same keys: the numbers of the rows' own cells, wherever they name just these cells.
    full = np.full((case.d, case.n), exact_grid.FIRST_UPPER)
    full[frame.active] = keys
    others = frame.locations(full.T) if case.n else rows
    others = np.where((frame.keys(others) == keys).all(axis=0)[:, None], others, rows)
    assert median(case, rows).release == median(case, others).release


SCALED = {
    "normal": lambda s, d: pm.Normal.dist(0.75 * s, 10 * s, shape=d),
    "uniform": lambda s, d: pm.Uniform.dist(-s, 3 * s, shape=d),
    "laplace": lambda s, d: pm.Laplace.dist(s, 10 * s, shape=d),
    "logistic": lambda s, d: pm.Logistic.dist(s, 10 * s, shape=d),
    "cauchy": lambda s, d: pm.Cauchy.dist(s, 10 * s, shape=d),
    "exponential": lambda s, d: pm.Exponential.dist(0.5 / s, shape=d),
    "half_normal": lambda s, d: pm.HalfNormal.dist(10 * s, shape=d),
    "half_cauchy": lambda s, d: pm.HalfCauchy.dist(10 * s, shape=d),
    "gamma": lambda s, d: pm.Gamma.dist(2.0, 1 / s, shape=d),
    "student_t": lambda s, d: pm.StudentT.dist(3.0, mu=s, sigma=10 * s, shape=d),
    "gumbel": lambda s, d: pm.Gumbel.dist(s, 10 * s, shape=d),
    "weibull": lambda s, d: pm.Weibull.dist(1.5, 10 * s, shape=d),
    "truncated_normal": lambda s, d: pm.TruncatedNormal.dist(0.0, s, lower=-s, upper=2 * s, shape=d),
}


@pytest.mark.filterwarnings("ignore:A parameter of the prior equals")  # by chance
@examples(60)
@given(st.data(), st.sampled_from(sorted(SCALED)), st.sampled_from([-60, -3, 1, 10, 60]))
def test_a_power_of_two_scales_draws(data, name, power):
    case = data.draw(cases(priors=(name,)))
    # Multiples of 2^-10: what scales them and what standardises them rounds nothing, or the same.
    rows = data.draw(tables(case.n, case.d, st.integers(-(2**30), 2**30).map(lambda k: k / 2**10)))
    plain, scaled = (median(case, rows * s, prior=SCALED[name](np.full(case.d, s), case.d)) for s in (1.0, 2.0**power))
    # Along axes the cells are the same, and each is shown as the shortest decimal in it, which a power of two changes.
    assert np.array_equal(plain.cells, scaled.cells)
    if case.kind.startswith("rotated"):
        assert np.array_equal(plain.value * 2.0**power, scaled.value)


@examples(60)
@given(cases_and_rows(), st.sampled_from([0, 2**64 - 1]), st.sampled_from([1, 40, 400]))
@example((Case(5, 2, budget=(("epsilon", 2.0**256),)), np.eye(5, 2)), 0, 400)
@example((Case(5, 2, budget=(("epsilon", 2.0**256),)), np.eye(5, 2)), 2**64 - 1, 400)
@example((Case(5, 2, budget=(("epsilon", 2.0**-256),)), np.eye(5, 2)), 2**64 - 1, 400)
@example((Case(5, 1, depth="integrated_dual", budget=(("epsilon", 2.0**256),)), np.eye(5, 1)), 0, 400)
def test_runs_of_equal_bits_end_in_a_point_too(case_and_rows, word, length):
    # U next to 0 or next to 1: the doubles cannot decide, and integers go on with more words until they can.
    case, rows = case_and_rows
    drawn = median(case, rows, words=[word] * length)
    assert np.isfinite(drawn.value).all()
    assert np.array_equal(drawn.value, case.plan().frame.locations(drawn.cells[0])[0])


def test_all_bits_equal_draw_the_ends():
    # The first words choose the segment, the next ones the cell. Next to 0 that is the outermost cell; next to 1 the
    # choice of the last segment takes all words of ones, and the cell comes from those after them.
    case = Case(3, 1, budget=(("epsilon", 1.0),))
    rows = np.array([[-1.0], [0.0], [1.0]])
    (((lowest,),),), (((highest,),),) = (median(case, rows, words=[word] * 200).cells for word in (0, 2**64 - 1))
    assert lowest == exact_grid.NO_END
    assert highest > case.plan().frame.keys(rows).max()


# The guarantee


@examples(60)
@given(cases_and_neighbours())
def test_neighbours_share_all_that_is_public_but_the_draw(case_and_tables):
    case, x, y = case_and_tables
    first, second = median(case, x), median(case, y)
    assert first.public == second.public and first.charges == second.charges
    assert [a.dims for a in first.release.locations.values()] == [a.dims for a in second.release.locations.values()]
    assert first.release.value.coords.equals(second.release.value.coords)
    assert np.isfinite([first.value, second.value]).all()


def exp_below(epsilon):
    """Return a rational number below e^epsilon, by less than one part in 10^50."""
    with decimal.localcontext(decimal.Context(prec=60)):
        return Fraction(decimal.Decimal(epsilon).exp().next_minus())


def ratios(plan, x, y, factor=1):
    """Return the largest and the smallest ratio of the laws of two tables on the grid, exactly; for "concentrated" one
    pair for each direction. `factor` plants a wrong beta."""
    floors = plan.frame.floors()[plan.frame.active]
    base = plan.base if factor == 1 else WeightBase.of(plan.base.unit * factor)
    keys = [np.sort(plan.frame.keys(rows), axis=1) for rows in (x, y)]
    lines = [representatives([key[j] for key in keys], floor) for j, floor in enumerate(floors.tolist())]
    if plan.sampler == "boxes":
        corners = [cells for cells in np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, len(lines))]
        p, q = (box_masses(BoxLaw(key, floors, base), [c.tolist() for c in corners]) for key in keys)
        found = [a / b for a, b in zip(p, q, strict=True)]
        return [(max(found), min(found))]
    code, pairs = plan.settings.depth.univariate.code, []
    for j, line in enumerate(lines):
        p, q = (segment_masses(SegmentLaw(key[j : j + 1], floors[j : j + 1], code, base), line) for key in keys)
        found = [a / b for a, b in zip(p, q, strict=True)]
        pairs.append((max(found), min(found)))
    if plan.sampler == "concentrated":
        return pairs
    # Independent directions: any of their ratios may meet.
    return [(math.prod(high for high, _ in pairs), math.prod(low for _, low in pairs))]


@examples(150)
@given(cases_and_neighbours(st.sampled_from([-1e300, -1.0, -0.0, 0.0, 1.0, 1e300]) | st.floats(-3, 3), most_d=2))
def test_neighbours_lose_at_most_epsilon_to_the_bit(case_and_tables):
    # More than epsilon-DP: the log ratio ranges over an interval of length epsilon, as `bounded_range` tells ledgers.
    # Since the laws add up to 1, that interval holds 0, so each log ratio is within epsilon.
    case, x, y = case_and_tables
    if case.sampler == "boxes" and case.n > 3:  # fractions over a plane of cells take long
        case, x, y = Case(**vars(case) | {"n": 3}), x[:3], y[:3]
    plan = case.plan(x)
    for (high, low), epsilon in zip(ratios(plan, x, y), plan.draw_epsilons, strict=True):
        assert low <= 1 <= high <= low * exp_below(epsilon)


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("kind", ["one axis", "axes"])
def test_epsilon_holds_where_it_is_nearly_spent_and_twice_the_beta_loses_more(depth, kind):
    # Rows at one end, so that most prior mass lies beside them; one crosses over along both axes.
    case = Case(3, 2, "uniform", depth, kind)
    x = np.full((3, 2), -1 + 1e-3)
    y = x.copy()
    x[2], y[2] = -1.0, 1.0
    plan = case.plan(x)
    ((high, low),) = ratios(plan, x, y)
    assert exp_below(1.0) < high / low <= exp_below(2.0)
    ((high, low),) = ratios(plan, x, y, factor=2)
    assert high > low * exp_below(2.0)


# The cost


def rho_of(epsilon):
    """Return k - 1 - ln k, k = epsilon / (e^epsilon - 1), to 40 digits, of the decimal that names a double."""
    with decimal.localcontext(decimal.Context(prec=60)):
        epsilon = decimal.Decimal(repr(epsilon))
        k = epsilon / (epsilon.exp() - 1)
        return k - 1 - k.ln()


def enough(cost, times, epsilon):
    """Whether a cost covers times * epsilon, as a double or as the decimal that names it, by at most a rounding."""
    exactly = times * Fraction(str(epsilon))
    low, high = sorted([Fraction(cost), Fraction(str(cost))])
    return exactly <= high and low <= exactly * (1 + ONE_ULP)


@examples(80)
@given(cases(most_m=1000), st.data())
def test_a_release_charges_once_and_enough(case, data):
    drawn = median(case, data.draw(tables(case.n, case.d)))
    release, (charged,) = drawn.release, drawn.charges
    asked = dict(case.budget)
    assert (charged["epsilon"], charged["delta"]) == (release.epsilon, release.delta)
    assert charged["label"] == "median" and release.max_rows_per_unit == case.m
    (mechanism,) = release.mechanisms
    assert mechanism["n"] == case.n and mechanism["max_rows_per_unit"] == case.m
    assert (1 - 1e-9) * mechanism["epsilon"] <= mechanism["realised_epsilon"] <= mechanism["epsilon"] or case.n == 0
    if not case.concentrated:
        assert enough(charged["epsilon"], case.m, asked["epsilon"])
        assert charged["bounded_range"] == (charged["epsilon"],)
        assert (release.delta, release.rho, mechanism["epsilon"]) == (0.0, None, asked["epsilon"])
        return
    one = mechanism["direction_epsilon"]
    assert len(charged["bounded_range"]) == case.count and len(set(charged["bounded_range"])) == 1
    (each,) = set(charged["bounded_range"])
    assert enough(each, case.m, one)
    # What the draws of one row cost meets what was asked for; that of m rows is what the Release says.
    if "rho" in asked:
        assert (1 - 1e-9) * asked["rho"] <= case.count * rho_of(one) <= asked["rho"]
        assert release.delta == 0.0 and enough(release.epsilon, case.count, each)
    else:
        assert release.delta == asked["delta"]
        cheaper = min(rho_to_epsilon(release.rho, asked["delta"]), sum(charged["bounded_range"]) * (1 + 1e-15))
        assert cheaper <= release.epsilon * (1 + 1e-15)
        assert release.epsilon == pytest.approx(asked["epsilon"] if case.m == 1 else cheaper, rel=1e-14)
    assert case.count * rho_of(each) <= max(decimal.Decimal(release.rho), decimal.Decimal(repr(release.rho)))
    assert release.rho <= float(case.count * rho_of(each)) * (1 + 1e-9)


# What is not finite

HOLES = st.sampled_from([math.nan, math.inf, -math.inf])


@examples(50)
@given(cases_and_rows(least_n=1), st.data())
def test_entries_that_are_not_finite_count_as_the_median_of_the_prior(case_and_rows, data):
    case, rows = case_and_rows
    center = read_prior(prior_of(case.prior, case.d), case.d).center_and_scale()[0]
    filled = rows.copy()
    for i, j in data.draw(st.sets(st.tuples(st.integers(0, case.n - 1), st.integers(0, case.d - 1)), min_size=1)):
        rows[i, j], filled[i, j] = data.draw(HOLES), center[j]
    drawn = median(case, rows, nonfinite="prior")
    assert drawn.release == median(case, filled, nonfinite="prior").release
    assert np.isfinite(drawn.value).all()


@examples(30)
@given(cases(least_n=1), st.data())
def test_entries_that_are_not_finite_are_refused_before_the_charge(case, data):
    # Entries that could not stand in a message by chance.
    rows = np.full((case.n, case.d), 7.25319e77)
    j = data.draw(st.integers(0, case.d - 1))
    rows[data.draw(st.integers(0, case.n - 1)), j] = data.draw(HOLES)
    with scripted(case) as drawn, pytest.raises(ValueError, match=f"missing or infinite entries in 'x{j}'") as error:
        dpd.private_median(
            rows, epsilon=1.0, prior=prior_of(case.prior, case.d), max_rows_per_unit=case.m, ledger=drawn
        )
    assert drawn.charges == [] and drawn.bits.asked == 0
    assert "7.25" not in str(error.value) and "nan" not in str(error.value)


# Models


@examples(15)
@given(cases_and_rows(priors=("normal", "normal_far", "normal_tiny"), most_m=2))
def test_models_draw_what_the_front_door_draws(case_and_rows):
    case, rows = case_and_rows
    if case.concentrated:
        case = Case(**vars(case) | {"concentrated": False, "budget": (("epsilon", 1.0),)})
    mu, sigma = {"normal": (0, 10), "normal_far": (1e6, 1), "normal_tiny": (0, 1e-300)}[case.prior]
    with pm.Model() as model:
        location = pm.Normal("location", np.full(case.d, float(mu)), np.full(case.d, float(sigma)), shape=case.d)
        dpd.exponential_mechanism(
            "median",
            location,
            rows,
            depth=DEPTHS[case.depth],
            directions=directions_of(case.kind, case.d),
            epsilon=dict(case.budget)["epsilon"],
            max_rows_per_unit=case.m,
        )
    expected = median(case, rows)
    with scripted(case) as drawn:
        drawn.release = dpd.release(model, ledger=drawn)
    assert drawn.public == expected.public and drawn.charges == expected.charges
    assert drawn.release.value.equals(expected.release.value)
    assert np.array_equal(drawn.release.parameters["location"], expected.value)
    draws = 3
    with scripted(case) as curator:
        idata = dpd.sample_exact(draws=draws, model=model)
    (cells,) = curator.cells
    values = idata.posterior["location"].values
    assert values.shape == (1, draws, case.d)
    assert np.array_equal(values[0], case.plan().frame.locations(cells))
    assert curator.charges == []
