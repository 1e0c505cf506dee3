"""LinearRegression: sums and their sensitivities, estimates against least squares, and the law of the replicates."""

import copy
import itertools
import pickle
import warnings

import numpy as np
import pandas
import pytest

import pymc_dpdepth as dpd
from pymc_dpdepth.extrema import LinearRegression, extrema_interval
from pymc_dpdepth.extrema import regression_sums as sums_of
from pymc_dpdepth.extrema.registry import family_of

BOUNDS = {"y": (-3.0, 9.0), "a": (0.0, 4.0), "b": (-1.0, 1.0), "c": (-20.0, 5.0)}
LAYOUTS = [
    {"intercept": intercept, "orthogonal": orthogonal, "variance": variance}
    for intercept, orthogonal, variance in itertools.product((True, False), (True, False), ("residual", "moments"))
]


def family(interest=("a", "b"), nuisance=("c",), bounds=BOUNDS, **options):
    chosen = {name: bounds[name] for name in ("y", *interest, *nuisance)} if isinstance(bounds, dict) else bounds
    return LinearRegression("y", interest, nuisance, bounds=chosen, **options)


def exact_sums(model, rows):
    """Return all statistics of a family, without noise, and their Statistic objects."""
    released, statistics = {}, {}
    while new := model.statistics(len(rows), model.columns(), released):
        for one in new:
            statistics[one.name] = one
        released |= {one.name: model.counts(rows, one, released) * one.grid for one in new}
    return released, statistics


def small(statistics, factor=1e-9):
    return dict.fromkeys(statistics, factor)


def sample(n, generator, slopes=(0.7, -1.5, 0.1), intercept=2.0, sigma=0.8):
    low, high = np.array([BOUNDS[name] for name in "abc"]).T
    columns = generator.uniform(low, high, (n, 3))
    return np.column_stack([intercept + columns @ slopes + sigma * generator.normal(size=n), columns])


def unit_bounds(k):
    return {"y": (-1.0, 1.0)} | {f"x{j}": (-1.0, 1.0) for j in range(k)}


def unit_family(k, **options):
    return LinearRegression("y", [f"x{j}" for j in range(k)], bounds=unit_bounds(k), **options)


# Sums


@pytest.mark.parametrize("options", LAYOUTS)
def test_fast_sums_are_the_sums_of_the_entries(options):
    generator = np.random.default_rng(1)
    rows = sample(300, generator) + generator.normal(scale=3, size=(300, 4))  # beyond the bounds as well
    model = family(**options)
    released, statistics = exact_sums(model, rows)
    assert tuple(statistics) == model.statistic_names
    for name, one in statistics.items():
        if name == "residual":
            continue
        entries = model.entries(rows, name, {})
        assert (one.counts(entries) * one.grid == entries).all()  # products are on the grid already, and in bounds
        assert (one.counts(entries).sum(axis=0) * one.grid == released[name]).all()
    with pytest.raises(ValueError, match="the name of a sum of products"):
        model.entries(rows, "residual", released)


@pytest.mark.parametrize("options", LAYOUTS)
def test_a_row_adds_the_same_beside_any_other_rows(options):
    generator = np.random.default_rng(2)
    rows = sample(200, generator)
    model = family(**options)
    released, statistics = exact_sums(model, rows)
    for one in statistics.values():
        alone = sum(model.counts(row[None], one, released) for row in rows)
        shuffled = generator.permutation(rows)
        assert (model.counts(rows, one, released) == alone).all()
        assert (model.counts(shuffled[:77], one, released) + model.counts(shuffled[77:], one, released) == alone).all()


@pytest.mark.parametrize("intercept", [True, False])
def test_squared_residuals_are_bit_for_bit_functions_of_one_row(intercept):
    # A product with a matrix would change last bits with the number of rows.
    generator = np.random.default_rng(16)
    rows = generator.uniform(-1, 1, (200, 12))
    model = LinearRegression("y", [f"x{j}" for j in range(11)], bounds=(-1, 1), intercept=intercept)
    _, statistics = exact_sums(model, rows)
    integers = model._scaling.integers(rows)
    together = model._squared_residuals(integers, statistics["residual"])
    alone = [model._squared_residuals(row[None], statistics["residual"])[0] for row in integers]
    assert together.tolist() == alone
    by_matrix = integers[:, 1:] @ statistics["residual"].public[1:]
    assert by_matrix.tolist() != [row[1:] @ statistics["residual"].public[1:] for row in integers]


def test_pieces_beyond_the_exact_range_are_added_as_integers(monkeypatch):
    rows = sample(100, np.random.default_rng(3))
    model = family()
    whole, _ = exact_sums(model, rows)
    monkeypatch.setattr("pymc_dpdepth.extrema.regression.EXACT_ROWS", 7)
    pieces, _ = exact_sums(model, rows)
    assert all((whole[name] == pieces[name]).all() for name in whole)
    # Up to EXACT_ROWS rows at the bounds, all partial sums are integers that doubles hold.
    assert sums_of.EXACT_ROWS * sums_of.UNIT**2 <= 2**53


# Sensitivities


def worst_change(model, one, rows, released):
    """Return the largest L1 change of the sum over all pairs of the rows."""
    counts = np.array([model.counts(row[None], one, released) for row in rows])
    return max(int(np.abs(counts - row).sum(axis=1).max()) for row in counts)


@pytest.mark.parametrize(("k", "intercept"), [(1, False), (2, False), (3, False), (1, True), (2, True), (3, True)])
def test_sensitivities_hold_and_are_attained_on_a_lattice(k, intercept):
    # The proof's extreme pair is x = 1 and y = -1/(k + 1) with ones, y = 0 without.
    values = sorted({-1.0, 1.0, -1 / (k + 1), 1 / (k + 1), 0.0})
    rows = np.array([(y, *x) for y in (-1.0, 0.0, 1.0) for x in itertools.product(values, repeat=k)])
    model = unit_family(k, intercept=intercept, variance="moments")
    for one in model.statistics(10, model.columns(), {}):
        worst = worst_change(model, one, rows, {})
        # -1/(k + 1) is rounded to the grid, which moves a sum of (k + 1)(k + 2) products by less than so many units
        # of 2^-15; the smallest gap to another candidate, such as k (k + 1) / 2 with ones, is far larger.
        assert one.sensitivity - (k + 1) * (k + 2) * sums_of.UNIT <= worst <= one.sensitivity
    expected = k * (k + 2) ** 2 / (2 * (k + 1)) if intercept else k * (k + 1) / 2
    gram, response, square = model.statistics(10, model.columns(), {})
    assert gram.real_sensitivity == pytest.approx(expected, abs=1e-8)
    assert (response.real_sensitivity, square.real_sensitivity) == (2 * (k + intercept), 1)


@pytest.mark.parametrize("intercept", [True, False])
def test_sensitivities_hold_for_random_neighbours(intercept):
    generator = np.random.default_rng(4)
    for k in (1, 2, 4, 6):
        model = unit_family(k, intercept=intercept, variance="moments")
        # Corners, edges and inner points, also beyond the bounds.
        rows = np.where(
            generator.random((300, k + 1)) < 0.6,
            generator.choice([-1.0, 0.0, 1.0], (300, k + 1)),
            generator.uniform(-1.5, 1.5, (300, k + 1)),
        )
        for one in model.statistics(10, model.columns(), {}):
            assert worst_change(model, one, rows, {}) <= one.sensitivity


def test_one_sided_columns_need_less_noise_for_the_response():
    model = LinearRegression("y", ["a", "b"], bounds=(0, 1), intercept=False)
    gram, response = model.statistics(10, model.columns(), {})
    assert (gram.real_sensitivity, response.real_sensitivity) == (3, 2)
    rows = np.array(list(itertools.product((0.0, 0.5, 1.0), repeat=3)))
    assert [worst_change(model, one, rows, {}) for one in (gram, response)] == [gram.sensitivity, response.sensitivity]


@pytest.mark.parametrize("intercept", [True, False])
def test_residuals_at_released_coefficients_move_by_their_sensitivity_at_most(intercept):
    generator = np.random.default_rng(5)
    corners = np.array(list(itertools.product((-1.0, 0.0, 1.0), repeat=3)))
    for scale in (0.05, 0.3, 2.0):
        table = np.clip(generator.uniform(-1, 1, (60, 3)) * [scale, 1, 1], -1, 1)
        model = unit_family(2, intercept=intercept)
        released, statistics = exact_sums(model, table)
        one = statistics["residual"]
        rows = np.concatenate([corners, generator.uniform(-1, 1, (200, 3))])
        worst = worst_change(model, one, rows, released)
        assert worst <= one.sensitivity
        # Some corner has the largest residual, and a row near the fit nearly none.
        assert worst > 0.97 * one.sensitivity
        reach = 1 + np.abs(one.public).sum()
        assert one.real_sensitivity == pytest.approx(min(reach, 2) ** 2, rel=1e-6)


def test_a_statistic_that_forgets_the_clipping_of_predictions_is_found():
    # With coefficients of size 50 the residual of a row is at most 2 in scaled units, not 101.
    model = unit_family(1, intercept=False)
    released = {"gram": np.array([10.0]), "response": np.array([500.0])}
    (one,) = model.statistics(10, model.columns(), released)
    assert one.public[1] == pytest.approx(50)
    assert one.real_sensitivity == pytest.approx(4)
    unclipped = (1 - 50 * -1) ** 2
    assert unclipped > one.real_sensitivity
    assert model.counts(np.array([[1.0, -1.0]]), one, released) == one.sensitivity


def test_nuisance_is_never_fitted_to_the_rows_without_noise():
    # The pair of docs/errata.md: with a fitted nuisance one row moves the residual sum of squares from 0 to 49. Here
    # the coefficients come from what was released, the same for both tables.
    first = np.column_stack([np.ones(50), np.array([1.0, -1.0] * 24 + [0.0, 0.0]), np.full(50, 1e-3)])
    second = first.copy()
    second[-1] = 0.0, 0.0, 1.0
    fitted = [np.linalg.lstsq(table[:, 1:], table[:, 0])[0] for table in (first, second)]
    plain = [((table[:, 0] - table[:, 1:] @ b) ** 2).sum() for table, b in zip((first, second), fitted, strict=True)]
    assert plain[0] == pytest.approx(0, abs=1e-9) and plain[1] == pytest.approx(48.998, abs=1e-3)
    for options in ({}, {"orthogonal": True}):
        model = LinearRegression("y", "z", "x", bounds=(-1, 1), intercept=False, **options)
        for table in (first, second):
            released, statistics = exact_sums(model, table)
            one = statistics["residual"]
            moved = [int(model.counts(rows, one, released)[0]) for rows in (first, second)]
            assert abs(moved[1] - moved[0]) <= one.sensitivity
            assert one.real_sensitivity <= 4 + 1e-8


# Estimates


@pytest.mark.parametrize("options", LAYOUTS)
def test_without_noise_the_estimates_are_least_squares(options):
    rows = sample(2000, np.random.default_rng(6), intercept=2.0 if options["intercept"] else 0.0)
    rows = np.clip(rows, *np.array(list(BOUNDS.values())).T)
    if options["orthogonal"]:  # make Z'X = 0: the other column of interest and the ones too, as for a balanced design
        signs = np.where(np.arange(2000) % 2 == 0, 1.0, -1.0)
        rows = np.repeat(rows[:500], 4, axis=0)
        rows[:, 2] = signs  # b is in balance with all columns but y
        interest, nuisance = ("b",), ("c",)
        rows[:, 0] = np.clip(rows[:, 0] + 0.5 * signs, *BOUNDS["y"])
    else:
        interest, nuisance = ("a", "b"), ("c",)
    model = family(interest, nuisance, **options)
    table = rows[:, [list(BOUNDS).index(name) for name in model.columns()]]
    released, statistics = exact_sums(model, table)
    design = np.column_stack([np.ones(len(table)), table[:, 1:]]) if options["intercept"] else table[:, 1:]
    expected, (squares,), *_ = np.linalg.lstsq(design, table[:, 0])
    k = len(interest)
    # An entry is rounded by up to 2^-16 of its half range; over 2000 rows such errors nearly cancel.
    first = int(options["intercept"])
    assert model.estimates(released, 2000, small(statistics)) == pytest.approx(expected[first : first + k], abs=5e-5)
    variance = model.model(released, 2000, small(statistics))["variance"] * model._scaling.half[0] ** 2
    assert variance == pytest.approx(squares / 2000, rel=1e-3)


def test_a_shift_of_columns_changes_no_slope_with_an_intercept():
    rows = sample(500, np.random.default_rng(7))
    shifts = np.array([10.0, -3.0, 50.0, 7.0])
    moved = {name: tuple(np.add(BOUNDS[name], shift)) for name, shift in zip(BOUNDS, shifts, strict=True)}
    estimates = []
    for bounds, table in ((BOUNDS, rows), (moved, rows + shifts)):
        model = family(bounds=bounds)
        released, statistics = exact_sums(model, table)
        estimates.append(model.estimates(released, 500, small(statistics)))
    assert estimates[0] == pytest.approx(estimates[1], abs=1e-4)


def test_nuisance_left_out_of_an_orthogonal_design_counts_as_noise():
    generator = np.random.default_rng(8)
    z = np.tile([1.0, 1.0, -1.0, -1.0], 250)
    x = np.tile([1.0, -1.0, 1.0, -1.0], 250)
    y = 0.5 * z + 0.8 * x + 0.3 * generator.normal(size=1000)
    table = np.column_stack([y, z, x])
    sizes = []
    for nuisance, variance in itertools.product(((), "x"), ("residual", "moments")):
        model = LinearRegression(
            "y", "z", nuisance, bounds=(-3, 3), intercept=False, orthogonal=True, variance=variance
        )
        released, statistics = exact_sums(model, table[:, : len(model.columns())])
        assert model.estimates(released, 1000, small(statistics)) == pytest.approx([0.5], abs=0.03)
        sizes.append(float(model.model(released, 1000, small(statistics))["variance"]) * 9)
    assert sizes[:2] == pytest.approx([0.64 + 0.09] * 2, rel=0.1)
    assert sizes[2:] == pytest.approx([0.09] * 2, rel=0.1)


def noisy(released, generator, scale, replicates):
    return {name: total + scale * generator.laplace(size=(replicates, len(total))) for name, total in released.items()}


@pytest.mark.parametrize("options", LAYOUTS)
def test_all_replicates_at_once_are_as_one_by_one(options):
    generator = np.random.default_rng(9)
    model = family(**options)
    released, statistics = exact_sums(model, sample(50, generator))
    deviations = small(statistics, 8.0)
    many = noisy(released, generator, 6.0, 40)
    singly = [model.estimates({name: total[i] for name, total in many.items()}, 50, deviations) for i in range(40)]
    together = model.estimates(many, 50, deviations)
    assert together == pytest.approx(np.array(singly), rel=1e-9)
    block = model._blocks[0]
    lowest = np.linalg.eigvalsh(block.moments(many, 50)["gram"]).min(axis=-1)
    floor = sums_of.eigenvalue_floor(50, 8.0)
    assert 0 < (lowest < floor).sum() < 40  # both paths were taken


def test_eigenvalues_are_floored_and_others_stay():
    generator = np.random.default_rng(10)
    matrices = generator.normal(size=(30, 4, 4))
    matrices = matrices + matrices.swapaxes(-1, -2)
    matrices[:10] = np.eye(4)
    raised = sums_of.floored(matrices, 0.25)
    assert (raised[:10] == matrices[:10]).all()
    values, vectors = np.linalg.eigh(matrices)
    expected = (vectors * np.maximum(values, 0.25)[:, None]) @ vectors.swapaxes(-1, -2)
    assert raised == pytest.approx(expected, abs=1e-12)
    cross = generator.normal(size=(30, 4))
    solved = sums_of.solve(matrices, cross, 0.25)
    assert solved == pytest.approx(np.linalg.solve(expected, cross[..., None])[..., 0], rel=1e-9)
    assert sums_of.eigenvalue_floor(100, 40.0) == 40 / 4 / 100 and sums_of.eigenvalue_floor(100, 1e-6) == 1 / 100


def test_variance_is_kept_between_its_noise_and_the_range():
    for variance, name in (("residual", "residual"), ("moments", "square")):
        model = family(variance=variance)
        released, statistics = exact_sums(model, sample(100, np.random.default_rng(11)))
        deviations = small(statistics, 3.0)
        for total, expected in ((-50.0, 3 / 100), (1e6, 1.0)):
            assert model.model(released | {name: np.array([total])}, 100, deviations)["variance"] == expected
        # Noise beyond all information still gives a model that can be simulated from.
        swamped = {key: value + 1e6 * (-1) ** np.arange(len(value)) for key, value in released.items()}
        fitted = model.model(swamped, 100, small(statistics, 1e6))
        drawn = model.simulate(fitted, 100, 20, np.random.default_rng(12))
        assert np.isfinite(model.estimates(drawn, 100, small(statistics, 1e6))).all()


# The bootstrap


@pytest.mark.parametrize("intercept", [True, False])
def test_replicates_have_the_law_of_new_responses_on_the_same_columns(intercept):
    generator = np.random.default_rng(13)
    n, replicates = 40, 10_000
    rows = sample(n, generator)
    model = family(intercept=intercept)
    released, statistics = exact_sums(model, rows)
    fitted = model.model(released, n, small(statistics))
    drawn = model.simulate(fitted, n, replicates, generator)
    # Brute force: new responses for the scaled columns as they are, and their products with the columns.
    block = model._blocks[0]
    design = block.design(model._scaling.integers(rows)) / sums_of.UNIT
    center = fitted["response_mean"] + (design[:, int(intercept) :] - fitted["mean"]) @ fitted["coefficients"]
    noise = np.sqrt(fitted["variance"]) * generator.standard_normal((replicates, n))
    brute = (center + noise) @ design
    assert drawn["gram"] == pytest.approx(np.broadcast_to(released["gram"], drawn["gram"].shape), abs=1e-8)
    ours = drawn["response"]
    # Means and covariances of both samples, in units of the root variances, within 5 of their standard errors: 20
    # comparisons at 6e-7 each.
    root = np.sqrt(np.diag(np.cov(brute.T)))
    assert np.abs((ours.mean(axis=0) - brute.mean(axis=0)) / root).max() < 5 * np.sqrt(2 / replicates)
    gap = (np.cov(ours.T) - np.cov(brute.T)) / np.outer(root, root)
    assert np.abs(gap).max() < 5 * np.sqrt(2 * 2 / replicates)
    # And the estimates that follow vary as least squares does: sigma^2 (X'X)^-1.
    varied = np.cov(model.estimates(drawn, n, small(statistics)).T)
    half = model._scaling.half
    units = half[0] / half[1:3]
    first = int(intercept)
    exact = np.linalg.inv(design.T @ design)[first : first + 2, first : first + 2] * float(fitted["variance"])
    deviations = units * np.sqrt(np.diag(exact))
    gap = (varied - exact * np.outer(units, units)) / np.outer(deviations, deviations)
    assert np.abs(gap).max() < 5 * np.sqrt(2 / replicates)


# The interval as a whole


def test_coverage_of_the_lower_limit():
    # Five equal coefficients, |x| <= 1, sigma = 1, |y| <= 5, n = 1000, epsilon 2, 2 and 1: the corrected limit covers
    # about .94 and the uncorrected one about .84. Of 150 tables, binomial: P(corrected < 130) < 1e-4 at .94, and
    # P(uncorrected > 141) < 1e-4 at .84.
    generator = np.random.default_rng(14)
    names = [f"x{j}" for j in range(1, 6)]
    model = LinearRegression("x0", names, bounds={"x0": (-5, 5)} | dict.fromkeys(names, (-1, 1)), intercept=False)
    covered, plain, tables = 0, 0, 150
    for table in range(tables):
        columns = generator.uniform(-1, 1, (1000, 5))
        rows = np.column_stack([columns.sum(axis=1) * 0.3 + generator.normal(size=1000), columns])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dpd.PrivacyLeakWarning)
            ci = extrema_interval(
                rows,
                family=model,
                epsilon={"gram": 2, "response": 2, "residual": 1},
                replicates=300,
                random_seed=table,
            )
        covered += ci.lower <= 0.3
        plain += ci.recompute(correction=None).lower <= 0.3
    assert covered >= 130
    assert plain <= 141 and plain < covered


def test_an_interval_of_a_large_table_finds_the_largest_coefficient(tmp_path):
    rows = sample(20_000, np.random.default_rng(15))
    model = family(("a", "b", "c"), (), variance="moments")
    ci = extrema_interval(pandas.DataFrame(rows, columns=list(BOUNDS)), family=model, epsilon=50.0, sided="two")
    # A real release. Noise of scale 9.4 / (50 / 3) in sums of about 20,000 / 3 moves the coefficient by parts in 10^3,
    # and its sampling deviation is .8 / sqrt(20,000) / 1.15 = .005.
    assert ci.selected == "a" and ci.guarantee == "exact"
    assert 0.65 < ci.lower < ci.upper < 0.75
    ci.to_json(tmp_path / "ci.json")
    assert dpd.ExtremaInterval.from_json(tmp_path / "ci.json").family == model.describe()


# Settings


@pytest.mark.parametrize("options", LAYOUTS)
def test_a_description_makes_the_family_again(options):
    model = family(**options)
    again = family_of(model.describe())
    assert isinstance(again, LinearRegression) and again.describe() == model.describe()
    assert again.statistic_names == model.statistic_names and model.parameters(model.columns()) == ["a", "b"]
    assert model.centers(model.columns()) == pytest.approx([3.0, 2.0, 0.0, -7.5])


def test_the_statistics_that_each_declaration_pays_for():
    names = {
        (): ("gram", "response", "residual"),
        ("orthogonal",): ("gram", "response", "nuisance_gram", "nuisance_response", "residual"),
    }
    for flags, expected in names.items():
        assert family(**dict.fromkeys(flags, True)).statistic_names == expected
    ones_alone = family(nuisance=(), orthogonal=True)
    assert ones_alone.statistic_names == ("gram", "response", "nuisance_response", "residual")
    nothing_else = family(nuisance=(), orthogonal=True, intercept=False, variance="moments")
    assert nothing_else.statistic_names == ("gram", "response", "square")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"response": 3}, "name of one response"),
        ({"interest": ()}, "at least one column of interest"),
        ({"interest": ("a", "a")}, "each column named once"),
        ({"nuisance": "y"}, "each column named once"),
        ({"interest": [0, 1]}, "called x0, x1"),
        ({"interest": 5}, "interest: expected the name"),
        ({"variance": "rss"}, "variance: expected"),
        ({"intercept": 1}, "intercept: expected True or False"),
        ({"bounds": (1, 1)}, "low < high"),
        ({"bounds": (0, np.inf)}, "two finite numbers"),
        ({"bounds": 3}, "two finite numbers"),
        ({"bounds": {"y": (0, 1)}}, r"missing are \['a', 'b'\]"),
        ({"bounds": dict.fromkeys("yabz", (0, 1))}, r"unknown are \['z'\]"),
    ],
)
def test_settings_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        LinearRegression(**{"response": "y", "interest": ["a", "b"], "bounds": (0, 1)} | arguments)


@pytest.mark.parametrize("pair", [(-1e100, 1.0), (0.0, 1e101), (0.0, 1e-100), (-1e308, 1e308), (0, 10**400)])
def test_bounds_are_of_sizes_that_units_can_be_computed_with(pair):
    """The unit of a slope is a quotient of two of them."""
    for bounds in ({"y": pair, "a": (0, 1)}, {"y": (0, 1), "a": pair}):
        with pytest.raises(ValueError, match="1e-100|two finite numbers"):
            LinearRegression("y", "a", bounds=bounds)
    extreme = LinearRegression("y", "a", bounds={"y": (-9e99, 9e99), "a": (0, 2e-100)})
    table = pandas.DataFrame({"y": np.zeros(50), "a": np.zeros(50)})
    ci = dpd.extrema_interval(table, family=extreme, epsilon=1.0, replicates=19)
    assert np.isfinite([ci.lower, ci.estimate]).all()


def test_rows_beyond_what_fits_in_a_sum_are_refused():
    model = family()
    for n in (0, 2**30 + 1):
        with pytest.raises(ValueError, match="2\\^30 rows"):
            model.statistics(n, model.columns(), {})
    with pytest.raises(ValueError, match="in this order"):
        model.parameters(["a", "y", "b", "c"])


def test_settings_cannot_be_changed():
    """The record follows them, and the sums the settings of the constructor."""
    model = family()
    before, changed = model.describe(), {}
    for name in (
        "response",
        "interest",
        "nuisance",
        "bounds",
        "intercept",
        "orthogonal",
        "variance",
        "statistic_names",
    ):
        with pytest.raises(AttributeError):
            setattr(model, name, "x")
        changed[name] = getattr(model, name)
    with pytest.raises(TypeError):
        changed["bounds"]["y"] = (-1.0, 1.0)
    model.describe()["bounds"]["y"][0] = 5.0
    assert model.describe() == before
    again = pickle.loads(pickle.dumps(copy.deepcopy(model)))
    assert again.describe() == before and again.statistic_names == model.statistic_names
