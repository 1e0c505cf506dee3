import builtins
import string

import numpy as np
import pymc as pm
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pymc_dpdepth.prior_strings import FAMILIES, PriorSpec, build_prior, parse_prior, parse_priors

USUAL = {  # one set of parameters in each family's domain
    "normal": (1, 2),
    "uniform": (-1, 3),
    "laplace": (1, 2),
    "logistic": (1, 2),
    "cauchy": (1, 2),
    "student_t": (4, 1, 2),
    "gumbel": (1, 2),
    "exponential": (3,),
    "half_normal": (3,),
    "half_cauchy": (3,),
    "lognormal": (0.5, 0.25),
    "gamma": (2, 3),
    "beta": (2, 3),
}


def text_of(family, values):
    return f"{family}({', '.join(map(str, values))})"


@pytest.mark.parametrize("family", FAMILIES)
def test_family_agrees_with_pymc_and_has_both_maps(family):
    values = USUAL[family]
    prior = parse_prior(text_of(family, values)).distribution(2)
    same = getattr(pm, FAMILIES[family].distribution).dist(**dict(zip(FAMILIES[family].parameters, values)), shape=2)
    u = np.array([0.2, 0.7])
    x = pm.icdf(prior, u).eval()
    np.testing.assert_array_equal(x, pm.icdf(same, u).eval())
    # PyMC's inverse error function carries about eight digits (HalfNormal); a swapped parameter is off in the first.
    np.testing.assert_allclose(np.exp(pm.logcdf(prior, x).eval()), u, rtol=1e-6)


def test_forms_of_arguments():
    assert parse_prior("normal(0, 100)") == PriorSpec("normal", {"mu": 0.0, "sigma": 100.0})
    assert parse_prior(" normal ( mu = [0, -10] , sigma = 1e5 ) ").parameters == {"mu": (0.0, -10.0), "sigma": 1e5}
    assert parse_prior("normal(sigma=2, mu=+1)").parameters == {"mu": 1.0, "sigma": 2.0}
    assert parse_prior("normal(3, sigma=2)").parameters == {"mu": 3.0, "sigma": 2.0}
    assert list(parse_prior("normal(sigma=2, mu=1)").parameters) == ["mu", "sigma"]
    for spelling in ("Normal(0, 1)", "NORMAL(0,1)"):
        assert parse_prior(spelling).family == "normal"
    for spelling in ("HalfNormal(1)", "half_normal(1)", "halfnormal(1)"):
        assert parse_prior(spelling).family == "half_normal"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "of the form"),
        ("normal", "of the form"),
        ("normal(0, 1", "of the form"),
        ("normal(0, 1) normal(0, 1)", "of the form"),
        ("pm.Normal(0, 1)", "of the form"),
        ("normal(0, 1)(2)", "of the form"),
        ("normal(0, '1')", "of the form"),
        ("normal(0, 10**2)", "of the form"),
        ("normal(0,\n1)", "of the form"),
        ("nоrmal(0, 1)", "of the form"),  # a Cyrillic letter
        ("norml(0, 1)", "Did you mean 'normal'"),
        ("wald(0, 1)", "of the families normal, uniform"),
        ("normal(0)", r"Expected normal\(mu, sigma\); got no sigma"),
        ("normal()", "got no mu and no sigma"),
        ("normal(0, 1, 2)", "got 3 arguments"),
        ("normal(0, sd=1)", "got a parameter 'sd'"),
        ("normal(0, sgma=1)", "Did you mean 'sigma'"),
        ("normal(0, 1, sigma=2)", "got sigma twice"),
        ("normal(0, sigma=1, sigma=2)", "got sigma twice"),
        ("normal(0, x)", "Expected sigma as a number"),
        ("normal(0, nan)", "Expected a finite number for sigma; got nan"),
        ("normal(0, inf)", "Expected a finite number for sigma; got inf"),
        ("normal(0, True)", "Expected sigma as a number"),
        ("normal(0, None)", "Expected sigma as a number"),
        ("normal(0, 1j)", "Expected sigma as a number"),
        ("normal(0, 1 + 1)", "Expected sigma as a number"),
        ("normal(0, --1)", "Expected sigma as a number"),
        ("normal(0, [[1]])", "Expected sigma as a number"),
        ("normal(0, (1, 2))", "Expected sigma as a number"),
        ("normal(0, [1 for i in [1]])", "Expected sigma as a number"),
        ("normal(0, [])", "empty list"),
        ("normal(0, 1e400)", "finite number for sigma"),
        (f"normal(-{'9' * 400}, 1)", "finite number for mu"),
        ("normal(0, 0)", "Expected sigma > 0 in the prior normal; got 0.0"),
        ("normal(0, [1, -2])", "Expected sigma > 0 in the prior normal; got -2.0"),
        ("exponential(-1)", "Expected lam > 0"),
        ("beta(1, 0)", "Expected beta > 0"),
        ("uniform(1, 1)", "Expected lower < upper"),
        ("uniform([0, 5], 3)", "Expected lower < upper in the prior uniform; got 5.0 and 3.0"),
        ("uniform([0, 5], [1, 2, 3])", "as many lower as upper"),
        ("uniform(-1e308, 1e308)", "at a distance"),
        ("normal(0, 1)" + " " * 100_000, "at most 100000 characters"),
    ],
)
def test_bad_text_is_one_clear_line(text, message):
    with pytest.raises(ValueError, match=message) as caught:
        parse_prior(text)
    assert type(caught.value) is ValueError
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 250


def test_what_is_not_text_is_refused():
    with pytest.raises(ValueError, match="as text"):
        parse_prior(3)


ALPHABET = string.ascii_letters + string.digits + "_+-.,=()[] "


def never_runs_code(text):
    """Parse with every builtin that could run code taken away from the parser's reach: only ValueError may come out."""

    def forbidden(*args, **kwargs):
        raise AssertionError("code was run")

    with pytest.MonkeyPatch.context() as patch:
        for name in ("eval", "exec", "open", "print", "input"):
            patch.setattr(builtins, name, forbidden)
        try:
            spec = parse_prior(text)
        except ValueError:
            return None
    assert spec.family in FAMILIES
    return spec


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.one_of(st.text(max_size=60), st.text(ALPHABET, max_size=60)))
@example("__import__('os').system('true')")
@example("print(1)")
@example("normal(print(1), 1)")
@example("normal(*[0, 1])")
@example("normal(**{})")
@example("\x00")
@example("normal(0\x00, 1)")
@example("normal(0, \N{FULLWIDTH DIGIT ONE})")
@example("\ud800")
@example("normal" + "(" * 5000)
@example("normal(" + "[" * 5000)
@example("normal(0, " + "-" * 50_000 + "1)")
@example("normal(0, " + "not " * 20_000 + "1)")
@example("normal" + "(0)" * 30_000)
@example("normal(0, 0" + ".a" * 40_000 + ")")
@example("normal(0, " + "9" * 90_000 + ")")
@example("normal(0, 1if 1else 1)")
@example("normal(0, 0x1for x in 1)")
@example("normal(lambda: 0, 1)")
@example("normal(0, 1)" + "=1" * 1000)
def test_any_text_gives_a_spec_or_a_value_error(text):
    never_runs_code(text)


numbers = st.floats(-1e100, 1e100)
scales = st.floats(1e-100, 1e100)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.one_of(numbers, st.lists(numbers, min_size=1, max_size=4)),
    st.one_of(scales, st.lists(scales, min_size=1, max_size=4)),
)
def test_text_of_a_spec_is_read_back_exactly(mu, sigma):
    spec = never_runs_code(f"normal(mu={mu!r}, sigma={sigma!r})")
    assert spec.parameters == {
        "mu": tuple(mu) if isinstance(mu, list) else mu,
        "sigma": tuple(sigma) if isinstance(sigma, list) else sigma,
    }
    again = parse_prior(str(spec))
    assert again == spec
    assert hash(again) == hash(spec)


def test_a_thousand_columns_fit():
    values = [repr(float(value)) for value in np.random.default_rng(0).normal(size=1000)]
    spec = parse_prior(f"normal(mu=[{', '.join(values)}], sigma={[1.5] * 1000})")
    assert spec.distribution(1000).type.shape == (1000,)


def test_one_prior_for_all_columns():
    spec = parse_priors("normal(0, [1, 2])", ["a", "b"])
    assert spec == parse_priors(["normal(0, [1, 2])"], ("a", "b")) == parse_prior("normal(0, [1, 2])")
    with pytest.raises(ValueError, match=r"Expected 3 numbers in sigma=\[...\] of the prior normal, .* got 2"):
        parse_priors("normal(0, [1, 2])", ["a", "b", "c"])
    with pytest.raises(ValueError, match="Expected 3 numbers"):
        spec.distribution(3)


def test_one_prior_for_each_column():
    specs = parse_priors(["b = uniform(0, 9)", "a=normal(mu=0, sigma=1)"], ["a", "b"])
    assert list(specs) == ["a", "b"]
    assert specs["b"] == parse_prior("uniform(0, 9)")
    odd = parse_priors(["a=b=normal(0, 1)", "a=normal(0, 2)", "normal=normal(0, 3)"], ["a", "a=b", "normal"])
    assert [specs.parameters["sigma"] for specs in odd.values()] == [2.0, 1.0, 3.0]
    assert list(parse_priors(["a=normal(0, 1)"], ["a"])) == ["a"]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "Expected a prior; got none"),
        (["a=normal(0, 1)"], "got none for 'b'"),
        (["a=normal(0, 1)", "c=normal(0, 1)"], "one of the columns 'a, b'; got 'c'"),
        (["c=normal(0, 1)"], "one of the columns 'a, b'; got 'c'"),
        (["a=normal(0, 1)", "a=normal(0, 1)"], "got two for 'a'"),
        (["normal(0, 1)", "normal(0, 1)"], "without a column"),
        (["a=normal(0, 1)", "normal(mu=0, sigma=1)"], "without a column"),
        (["a=normal(0, [1, 2])", "b=normal(0, 1)"], "Expected 1 number in sigma"),
        (["a=normal(0)", "b=normal(0, 1)"], "got no sigma"),
    ],
)
def test_bad_sets_of_priors_are_one_clear_line(texts, message):
    with pytest.raises(ValueError, match=message) as caught:
        parse_priors(texts, ["a", "b"])
    assert "\n" not in str(caught.value)


def test_built_priors_are_pymc_distributions():
    columns = ["a", "b"]
    u = np.array([0.25, 0.75])
    one = build_prior(["a=normal(1, 2)", "b=normal(3, [4])"], columns)
    expected = pm.Normal.dist([1, 3], [2, 4], shape=2)
    np.testing.assert_array_equal(pm.icdf(one, u).eval(), pm.icdf(expected, u).eval())
    mixed = build_prior(["a=normal(1, 2)", "b=uniform(0, 8)"], columns)
    assert list(mixed) == columns
    assert mixed["b"].type.shape == (1,)
    np.testing.assert_array_equal(pm.icdf(mixed["b"], u[:1]).eval(), [2.0])
    spec = parse_prior("laplace(0, 1)")
    assert build_prior(spec, columns).type.shape == (2,)
    with pytest.raises(ValueError, match="for each of the columns"):
        build_prior({"a": spec}, columns)
    with pytest.raises(ValueError, match="of one column"):
        build_prior({"a": spec, "b": parse_prior("laplace(0, [1, 2])")}, columns)
