import re
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.distributions import transforms

import pymc_dpdepth as dpd
from pymc_dpdepth.mechanism import exponential_mechanism, read_mechanisms, set_up
from pymc_dpdepth.priors import ProductPrior

ROWS = np.array([[0.31, 1412.5], [2.04, 930.25], [-0.77, 1187.1], [1.52, 2210.6], [0.48, 1033.9]])
nan, inf = np.nan, np.inf


def add(location=None, X=ROWS, name="median", **options):
    """Add a mechanism to a new model; `location` builds its location."""
    with pm.Model(coords={"coordinate": ["a", "b"], "three": list("abc")}) as model:
        where = pm.Normal("location", 0, 100, shape=2) if location is None else location()
        exponential_mechanism(name, where, X, **({"epsilon": 1.0} | options))
    return model


def settings_of(**options):
    (mechanism,) = read_mechanisms(add(**options))
    return mechanism.settings


# Refusals


def flat_hyperprior():
    return pm.Normal("location", pm.Flat("center"), 1, shape=2)


def stacked_with_flat():
    return pt.stack([pm.Normal("a"), pm.HalfFlat("b")])


FLAT = {
    "flat": lambda: pm.Flat("location", shape=2),
    "half flat": lambda: pm.HalfFlat("location", shape=2),
    "flat mean": flat_hyperprior,
    "half-flat scale": lambda: pm.Normal("location", 0, pm.HalfFlat("scale"), shape=2),
    "stacked": stacked_with_flat,
    "shifted": lambda: pm.Deterministic("location", pm.Flat("raw", shape=2) + 1),
    "truncated": lambda: pm.Truncated("location", pm.Flat.dist(), lower=0, upper=1, shape=2),
}


@pytest.mark.parametrize("location", FLAT.values(), ids=FLAT)
def test_flat_priors_are_refused(location):
    with pytest.raises(dpd.ImproperMechanismError, match=r"pm\.Flat.*pm\.Normal"):
        add(location)


def test_a_proper_prior_beside_a_flat_variable_is_fine():
    def location():
        pm.Flat("unrelated")
        return pm.Normal("location", 0, 1, shape=2)

    assert add(location)["median"] is not None


@pytest.mark.parametrize("depth", ["projection", dpd.Projection("iqr")], ids=str)
def test_projection_depth_needs_propose_test_release(depth):
    with pytest.raises(dpd.UnboundedSensitivityError, match="propose_test_release"):
        add(depth=depth)


@pytest.mark.parametrize("epsilon", [0, 0.0, -1, -1e-9, nan, inf, -inf, 5e-324, 1e308, 10**400])
def test_epsilon_out_of_range(epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        add(epsilon=epsilon)


@pytest.mark.parametrize("epsilon", [True, np.True_, "1", None, [1.0], np.ones(1), 1j, pt.constant(1.0)])
def test_epsilon_of_another_type(epsilon):
    with pytest.raises(TypeError, match="epsilon"):
        add(epsilon=epsilon)


@pytest.mark.parametrize("epsilon", [1, np.int64(1), np.float32(1), np.float64(1.0)])
def test_epsilon_may_be_any_real_number(epsilon):
    settings = settings_of(epsilon=epsilon)
    assert settings.epsilon == 1.0 and type(settings.epsilon) is float


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "2", None, 10**400, 2**53 + 1])
def test_max_rows_per_unit_is_a_whole_number(value):
    with pytest.raises((ValueError, TypeError), match="max_rows_per_unit"):
        add(max_rows_per_unit=value)


WIDTHS = {
    "vector": lambda: pm.Normal("location", 0, 1, shape=3),
    "dims": lambda: pm.Normal("location", 0, 1, dims="three"),
    "scalar": lambda: pm.Normal("location", 0, 1),
    "hierarchical scalar": lambda: pm.Normal("location", 0, pm.HalfNormal("scale")),
    "multivariate": lambda: pm.MvNormal("location", np.zeros(3), np.eye(3)),
    "stacked": lambda: pt.stack([pm.Normal(name) for name in "abc"]),
    "computed": lambda: pm.Normal("raw", shape=4)[:3],
    "parameters": lambda: pm.Normal("location", np.zeros(3), 1),
}


@pytest.mark.parametrize("depth", ["halfspace", dpd.IntegratedDual(smoothing=1.0)], ids=["step", "smooth"])
@pytest.mark.parametrize("location", WIDTHS.values(), ids=WIDTHS)
def test_a_location_has_one_coordinate_for_each_column(location, depth):
    with pytest.raises(ValueError, match=r"expected 2 coordinates, one for each column, got [13]"):
        add(location, depth=depth)


@pytest.mark.parametrize("location", [WIDTHS["dims"], WIDTHS["multivariate"]], ids=["dims", "multivariate"])
def test_a_single_column_does_not_stretch_over_a_wide_location(location):
    with pytest.raises(ValueError, match=r"expected 1 coordinates, one for each column, got 3"):
        add(location, X=ROWS[:, :1])


def test_a_matrix_is_no_location():
    with pytest.raises(ValueError, match="one axis"):
        add(lambda: pm.Normal("location", shape=(2, 2)))


@pytest.mark.parametrize("location", [None, [0.0, 1.0], np.zeros(2), ROWS, "location"], ids=type)
def test_a_location_is_a_variable(location):
    with pm.Model(), pytest.raises(TypeError, match=r"location: .*pm\.Normal"):
        exponential_mechanism("median", location, ROWS, epsilon=1.0)


@pytest.mark.parametrize(
    ("depth", "error"),
    [("half_space", ValueError), ("", ValueError), (dpd.Halfspace, TypeError), (None, TypeError), (1, TypeError)],
)
def test_unknown_depths(depth, error):
    with pytest.raises(error, match="halfspace|Halfspace"):
        add(depth=depth)


@pytest.mark.parametrize("name", [None, 3, "", b"median"])
def test_a_name_is_a_text(name):
    with pytest.raises(TypeError, match="name: expected a text"):
        add(name=name)


def test_a_name_is_used_once_and_a_model_is_needed():
    model = add()
    with model, pytest.raises(ValueError, match="median"):
        exponential_mechanism("median", model["location"], ROWS, epsilon=1.0)
    with pytest.raises(TypeError, match="context"):
        exponential_mechanism("median", pm.Normal.dist(shape=2), ROWS, epsilon=1.0)
    another = pm.Model()
    with another:
        location = pm.Normal("location", shape=2)
    exponential_mechanism("median", location, ROWS, epsilon=1.0, model=another)
    assert [potential.name for potential in another.potentials] == ["median"]


def test_a_refused_mechanism_leaves_the_model_as_it_was():
    with pm.Model() as model:
        location = pm.Normal("location", shape=3)
        with pytest.raises(ValueError, match="coordinates"):
            exponential_mechanism("median", location, ROWS, epsilon=1.0)
    assert model.potentials == [] and list(model.named_vars) == ["location"]


@pytest.mark.parametrize("X", [pt.as_tensor(ROWS), pytensor.shared(ROWS)], ids=["tensor", "shared"])
def test_rows_are_not_tensors(X):
    with pytest.raises(TypeError, match="array, a list of rows, a DataFrame"):
        add(X=X)


# Non-finite entries


@pytest.mark.parametrize("bad", [nan, inf, -inf])
def test_nonfinite_entries_are_refused_by_column_and_cure(bad):
    rows = ROWS.copy()
    rows[2, 1] = bad
    frame = pd.DataFrame(rows, columns=["age", "income"])
    with pytest.raises(ValueError, match="income") as caught:
        add(X=frame)
    message = str(caught.value)
    assert 'nonfinite="prior"' in message and "age" not in message
    assert not re.search(r"\d", message)  # neither a value nor the number of the row


@pytest.mark.parametrize("nonfinite", ["drop", None, True, "RAISE"])
def test_other_policies_are_refused(nonfinite):
    with pytest.raises(ValueError, match='"raise" or "prior"'):
        add(nonfinite=nonfinite)


def test_imputation_by_the_median_of_the_prior():
    rows = ROWS.copy()
    rows[2, 1], rows[0, 0], rows[0, 1] = nan, inf, -inf

    def product():
        return pt.stack([pm.Uniform("a", -4, 10), pm.Exponential("b", lam=0.001)])

    (mechanism,) = read_mechanisms(add(product, rows, nonfinite="prior"))
    expected = rows.copy()
    expected[~np.isfinite(rows)] = [3.0, 1000 * np.log(2), 1000 * np.log(2)]
    np.testing.assert_allclose(mechanism.rows, expected, rtol=1e-15)
    assert np.isnan(rows[2, 1])  # the caller's own rows are left alone
    assert mechanism.settings.nonfinite == "prior"


def test_imputation_where_the_prior_is_not_a_product():
    rows = ROWS.copy()
    rows[:, 0] = nan

    def location():
        return pm.MvNormal("location", [5.0, 0.0], np.diag([0.01, 1.0]))

    first, second = (read_mechanisms(add(location, rows, nonfinite="prior"))[0].rows for _ in range(2))
    np.testing.assert_array_equal(first, second)
    # Median of 2000 normals of sd 0.1: its own sd is 0.1 * sqrt(pi / 2 / 2000) = 0.0028; six of these.
    assert np.abs(first[:, 0] - 5).max() < 0.017


# A prior that was read off the rows


def described(location=None, X=ROWS, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        add(location, X, **options)
    assert all(entry.category is dpd.PrivacyLeakWarning for entry in caught)
    assert all(entry.filename == __file__ for entry in caught)  # it points at the user's line
    messages = [str(entry.message) for entry in caught]
    for message in messages:
        assert not re.search(r"\d", message.replace("x0", "").replace("x1", "")), "no value of a row"
    return messages


READ_OFF = {
    "mean": lambda: pm.Normal("l", ROWS.mean(0), 100),
    "median": lambda: pm.Normal("l", np.median(ROWS, 0), 100),
    "standard deviation": lambda: pm.Normal("l", 0, ROWS.std(0)),
    "sample standard deviation": lambda: pm.Normal("l", 0, ROWS.std(0, ddof=1)),
    "minimum": lambda: pm.Uniform("l", ROWS.min(0), 1e4),
    "maximum": lambda: pm.Uniform("l", -1e4, ROWS.max(0)),
    "overall mean": lambda: pm.Normal("l", ROWS.mean(), 100, shape=2),
    "overall standard deviation": lambda: pm.Normal("l", 0, ROWS.std(), shape=2),
}


@pytest.mark.parametrize("word", READ_OFF)
def test_a_prior_equal_to_a_statistic_warns(word):
    messages = described(READ_OFF[word])
    assert any(re.search(rf"the {word} of the rows in column", message) for message in messages)


def test_the_warning_names_the_one_column():
    def location():
        return pt.stack([pm.Normal("a", 0, 1), pm.Normal("b", ROWS[:, 1].mean(), 100)])

    (message,) = described(location)
    assert "['x1']" in message


@pytest.mark.parametrize(
    "location",
    [
        lambda: pm.MvNormal("l", ROWS.mean(0), np.eye(2)),
        lambda: pm.Normal("l", pm.Normal("center", ROWS[:, 1].mean(), 1), 1, shape=2),
        lambda: pm.Normal("raw", shape=2) * 100 + pt.constant(ROWS.mean(0)),
    ],
    ids=["multivariate", "hyperprior", "shift"],
)
def test_the_warning_reaches_priors_that_are_no_products(location):
    assert any("mean" in message for message in described(location))


@pytest.mark.parametrize("value", [ROWS.mean(0), 0.5], ids=["vector", "scalar"])
def test_a_prior_on_a_shared_variable_warns(value):
    for shared in (lambda: pytensor.shared(value), lambda: pm.Data("center", value)):
        assert any("shared variable" in m for m in described(lambda: pm.Normal("l", shared(), 1, shape=2)))  # noqa: B023


def test_standardising_by_the_rows_warns():
    messages = described(depth=dpd.IntegratedDual(smoothing=1.0), standardize=(ROWS.mean(0), ROWS.std(0)))
    assert [m for m in messages if "standardize equals the mean" in m]
    assert [m for m in messages if "standardize equals the standard deviation" in m]


@pytest.mark.parametrize("X", [ROWS, np.array([[0.0, 1200.0], [10.0, 1200.0], [10.0, 0.0]]), np.zeros((0, 2))])
@pytest.mark.parametrize(
    "location",
    [
        lambda: pm.Normal("l", [0, 1200], [10, 2.5e4]),
        lambda: pm.Uniform("l", 0, [10, 1200], dims="coordinate"),
        lambda: pm.MvNormal("l", [0.0, 1200.0], np.eye(2)),
        lambda: pm.Normal("l", pm.Normal("center", 10, 1200), 10, shape=2),
    ],
    ids=["normal", "uniform", "multivariate", "hierarchical"],
)
def test_round_numbers_do_not_warn(location, X):
    assert described(location, X) == []


# Forms of rows and of locations


def test_a_scalar_location_with_one_column():
    model = add(lambda: pm.Normal("location", 0, 2), ROWS[:, 0], epsilon=2.0)
    (mechanism,) = read_mechanisms(model)
    assert mechanism.location is model["location"] and mechanism.rows.shape == (5, 1)
    value = model.compile_logp(vars=model.potentials)({"location": 0.4})
    assert value == pytest.approx(2.0 * 5 / 2 * 2 / 5)  # beta = epsilon n / 2, two rows of five below


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_data_frames_and_chosen_columns(make):
    frame = make({"age": ROWS[:, 0], "city": list("abcde"), "income": ROWS[:, 1]})
    (mechanism,) = read_mechanisms(add(X=frame, columns=["income", "age"]))
    assert mechanism.settings.columns == ("income", "age")
    np.testing.assert_array_equal(mechanism.rows, ROWS[:, ::-1])
    with pytest.raises(ValueError, match="city"):
        add(lambda: pm.Normal("location", shape=3), frame)


def test_later_changes_of_the_caller_do_not_reach_the_mechanism():
    rows = ROWS.copy()
    (mechanism,) = read_mechanisms(add(X=rows))
    rows[:] = 0
    np.testing.assert_array_equal(mechanism.rows, ROWS)


LOCATIONS = {
    "stack": lambda: pt.stack([pm.Normal("a", 0, 5), pm.Normal("b", 0, 500)]),
    "concatenate": lambda: pt.concatenate([pm.Normal("a", 0, 5, shape=1), pm.Normal("b", 0, 500)[None]]),
    "deterministic": lambda: pm.Deterministic("d", pt.stack([pm.Normal("a", 0, 5), pm.Normal("b", 0, 500)])),
    "dims": lambda: pm.Normal("a", 0, [5, 500], dims="coordinate"),
}


@pytest.mark.parametrize("location", LOCATIONS.values(), ids=LOCATIONS)
def test_locations_built_from_variables_are_read_as_products(location):
    with pm.Model(coords={"coordinate": ["a", "b"]}):
        _, prior, _ = set_up("m", location(), ROWS, depth="integrated_dual", epsilon=1.0)
    assert isinstance(prior, ProductPrior) and prior.is_normal
    np.testing.assert_allclose(prior.center_and_scale()[1], 1.3489795003921634 * np.array([5, 500]), rtol=1e-14)


COMPUTED = {
    "exp": lambda: pt.exp(pm.Normal("raw", shape=2)),
    "negative": lambda: -pm.Normal("raw", shape=2),
    "shifted": lambda: pm.Normal("raw", shape=2) + 3,
    "subset": lambda: pm.Normal("raw", shape=3)[:2],
    "deterministic": lambda: pm.Deterministic("d", pt.exp(pm.Normal("raw", shape=2))),
    "inside a stack": lambda: pt.stack([pt.exp(pm.Normal("raw")), pm.Normal("b")]),
}


@pytest.mark.parametrize("location", COMPUTED.values(), ids=COMPUTED)
def test_a_computed_location_is_not_taken_for_what_it_is_computed_from(location):
    model = add(location)
    with pytest.raises(ValueError, match="computed"):
        dpd.sample_exact(5, model=model)
    with pytest.raises(dpd.InexactReleaseError, match="computed"):
        dpd.release(model)


@pytest.mark.parametrize(
    "location",
    [lambda: pm.Poisson("l", 3, shape=2), lambda: pm.DiscreteUniform("l", 0, 9, shape=2)],
    ids=["poisson", "uniform"],
)
def test_discrete_priors_have_no_exact_draw(location):
    with pytest.raises(dpd.InexactReleaseError, match="discrete"):
        dpd.release(add(location))


def test_a_transform_that_cuts_the_prior_has_no_exact_draw():
    ordered = add(lambda: pm.Normal("l", shape=2, transform=transforms.ordered))
    with pytest.raises(ValueError, match="transform"):
        dpd.sample_exact(5, model=ordered)
    other = add()
    with other:
        pm.Normal("sorted", shape=2, transform=transforms.ordered)
    with pytest.raises(ValueError, match="transform"):
        dpd.sample_exact(5, model=other)
    untransformed = add(lambda: pm.Uniform("l", 0, 1, shape=2, default_transform=None))
    assert dpd.sample_exact(5, model=untransformed).posterior["l"].shape == (1, 5, 2)


# Scale and cost


@pytest.mark.parametrize("n", [1, 2, 3, 10])
@pytest.mark.parametrize(
    ("depth", "sensitivity"),
    [
        (dpd.Halfspace(), lambda n: 1 / n),
        (dpd.IntegratedRankWeighted(), lambda n: 1 / n),
        (dpd.IntegratedDual(), lambda n: 1 / n),
        (dpd.IntegratedDual(smoothing=3.0), lambda n: (n - 1) / n**2 if n > 1 else 1 / 4),
    ],
    ids=["halfspace", "irw", "idd", "smooth"],
)
def test_beta(n, depth, sensitivity):
    settings = settings_of(X=np.zeros((n, 2)), depth=depth, epsilon=0.3)
    assert settings.beta == pytest.approx(0.3 / (2 * sensitivity(n)), rel=1e-15)


def test_no_rows_leave_the_prior(model_of):
    for depth in ("halfspace", dpd.IntegratedDual(smoothing=1.0)):
        model = add(X=np.zeros((0, 2)), depth=depth)
        assert read_mechanisms(model)[0].settings.beta == 0
        for point in (np.zeros(2), np.array([3.0, -80.0])):
            prior = model.compile_logp(vars=[model["location"]])({"location": point})
            assert model.compile_logp()({"location": point}) == prior
    assert np.abs(add(X=np.zeros((0, 2)), depth=depth).compile_dlogp()({"location": np.zeros(2)})).max() == 0
    draws = dpd.sample_exact(2000, model=add(X=np.zeros((0, 2)))).posterior["location"].values.reshape(-1, 2)
    # The sd of 2000 normals of sd 100 has sd 100 / sqrt(4000) = 1.58, their mean 2.24; six of each.
    assert np.abs(draws.std(axis=0) - 100).max() < 9.5 and np.abs(draws.mean(axis=0)).max() < 13.5


def test_rows_of_one_person_multiply_the_cost():
    settings = settings_of(max_rows_per_unit=4, epsilon=0.5)
    assert (settings.epsilon, settings.unit_epsilon) == (0.5, 2.0)


def test_the_cost_of_several_rows_is_never_rounded_down():
    # Numbers are read as written (privacy.rounding): 0.57 is 57/100, and 0.3 is 3/10.
    for m, epsilon in ((100, 0.57), (3, 0.1), (7, 0.3), (49, 1.1)):
        location = pm.Normal.dist(0, 1, shape=1)
        settings, *_ = set_up("m", location, np.zeros((5, 1)), depth="halfspace", epsilon=epsilon, max_rows_per_unit=m)
        exact = m * Fraction(repr(epsilon))
        assert exact <= Fraction(repr(settings.unit_epsilon)) <= exact * (1 + Fraction(1, 2**51))


SMOOTH = dpd.IntegratedDual(smoothing=1.0, directions=dpd.Directions.orthonormal(2, seed=0))
IQR = 2 * 0.6744897501960817


@pytest.mark.parametrize(
    ("depth", "standardize", "center", "scale"),
    [
        (SMOOTH, "prior", [3, 0], [IQR * 2, IQR * 50]),
        (dpd.Halfspace(directions=dpd.Directions.axes(2)), "prior", [0, 0], [1, 1]),  # units make no difference
        ("halfspace", "prior", [3, 0], [IQR * 2, IQR * 50]),
        (dpd.Halfspace(directions=SMOOTH.directions), "prior", [3, 0], [IQR * 2, IQR * 50]),
        (SMOOTH, None, [0, 0], [1, 1]),
        (SMOOTH, (1, 2), [1, 1], [2, 2]),
        (SMOOTH, ([1, 2], [3, 4]), [1, 2], [3, 4]),
        (SMOOTH, (np.array([1, 2]), 4), [1, 2], [4, 4]),
    ],
)
def test_standardisation(depth, standardize, center, scale):
    settings = settings_of(location=lambda: pm.Normal("l", [3, 0], [2, 50]), depth=depth, standardize=standardize)
    np.testing.assert_allclose(settings.center, center, rtol=1e-14)
    np.testing.assert_allclose(settings.scale, scale, rtol=1e-14)


@pytest.mark.parametrize(
    "standardize",
    ["data", True, 1.0, (1,), (1, 2, 3), ([1, 2, 3], 1), (0, 0), (0, -1), (nan, 1), (0, inf), ("a", 1)],
    ids=str,
)
def test_other_standardisations_are_refused(standardize):
    with pytest.raises(ValueError, match="standardize"):
        add(depth=SMOOTH, standardize=standardize)


def test_the_public_record_holds_public_facts_only():
    record = settings_of(depth=SMOOTH, epsilon=0.3, max_rows_per_unit=2).describe()
    assert set(record) == {
        "name", "depth", "epsilon", "max_rows_per_unit", "sensitivity", "n", "center", "scale", "nonfinite"
    }  # fmt: skip
    same = settings_of(X=ROWS[::-1] * 7 + 1, depth=SMOOTH, epsilon=0.3, max_rows_per_unit=2).describe()
    assert record == same


# Models that are not what epsilon was computed for


def test_foreign_parts_of_a_model_are_refused_unless_public():
    model = add()
    with model:
        pm.Normal("seen", model["location"].sum(), 1, observed=0.3)
        pm.Potential("extra", -(model["location"] ** 2).sum())
    for public in ((), ["seen"], ["extra"]):
        with pytest.raises(ValueError, match=r"public=\[") as caught:
            read_mechanisms(model, public)
        assert all((name in str(caught.value)) == (name not in public) for name in ("seen", "extra"))
    assert len(read_mechanisms(model, ["extra", "seen"])) == 1
    for call in (lambda: dpd.release(model), lambda: dpd.sample_exact(5, model=model)):
        with pytest.raises(ValueError, match="seen"):
            call()
    with pytest.raises(ValueError, match="change the prior"):
        dpd.sample_exact(5, model=model, public=["seen", "extra"])


@pytest.mark.parametrize("public", [["nobody"], ["median"], ["location"], "median"])
def test_unknown_public_names_are_refused(public):
    with pytest.raises(ValueError, match="public"):
        read_mechanisms(add(), public)


def twice(model):
    pm.Potential("again", 2 * model["median"])


def same(model):
    pm.Potential("again", model["median"])


def mean_of_a_variable(model):
    pm.Normal("again", model["median"], 1e-6)


def through_a_deterministic(model):
    pm.Normal("again", pm.Deterministic("shown", model["median"]), 1e-6)


def observed(model):
    pm.Normal("again", model["median"], 1.0, observed=0.0)


def location_of_another(model):
    where = pm.Deterministic("moved", model["location"] + model["median"])
    exponential_mechanism("again", where, ROWS, epsilon=1.0)


@pytest.mark.parametrize("misuse", [twice, same, mean_of_a_variable, through_a_deterministic, observed])
def test_an_objective_is_used_once(misuse):
    model = add()
    with model:
        misuse(model)
    for public in ((), ["again"]):
        with pytest.raises(ValueError, match="again.*objective of a mechanism again"):
            read_mechanisms(model, public)


def test_an_objective_does_not_move_the_location_of_another():
    model = add()
    with model, pytest.warns(dpd.PrivacyLeakWarning, match="shared variable"):
        location_of_another(model)
    with pytest.raises(ValueError, match="again.*objective of a mechanism again"):
        read_mechanisms(model)


def test_showing_the_log_density_to_the_curator_is_fine():
    model = add()
    with model:
        pm.Deterministic("shown", model["median"])
    assert len(read_mechanisms(model)) == 1
    made = dpd.release(model)
    assert "shown" not in made.parameters and "shown" not in made.to_json()


def test_a_model_without_a_mechanism_is_refused():
    with pm.Model() as model:
        pm.Normal("location")
    with pytest.raises(ValueError, match="no exponential mechanism"):
        dpd.release(model)


@pytest.mark.parametrize(
    "prior",
    [
        lambda: pm.Normal.dist(0, -1, shape=1),
        lambda: pm.Normal.dist(0, 0, shape=1),
        lambda: pm.Normal.dist(np.nan, 1, shape=1),
        lambda: pm.Normal.dist(0, np.inf, shape=1),
        lambda: pm.Uniform.dist(3, 1, shape=1),
        lambda: pm.Uniform.dist(-np.inf, 1, shape=1),
        lambda: pm.Gamma.dist(-1, 1, shape=1),
    ],
)
def test_parameters_that_make_no_distribution_are_refused(prior, ledger):
    # PyMC builds such a variable without a word; its draws would be nan, or the prior's mirror image.
    with pytest.raises(ValueError, match="quartiles"):
        dpd.private_median(np.arange(5.0), epsilon=1.0, prior=prior(), ledger=ledger)
    assert ledger.charges == []
