import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dpdepth as dpd
from pymc_dpdepth.samplers import markov

ROWS = np.random.default_rng(6).normal(0.3, 0.2, size=(30, 2))
IDENTITY = np.eye(2)
NOMINAL = pytest.warns(dpd.ApproximateSamplingWarning, match="nominal")


def normals(*means):
    return [pm.Normal.dist(mean, 1, shape=2) for mean in means]


def squared(value, mu):
    return pm.logp(pm.Normal.dist(mu, 1), value)


def clipped(mu, size):
    return pt.clip(pm.Normal.dist(mu, 1, size=size), -1, 1)


WITH_DENSITY = {
    "mixture": lambda: pm.Mixture.dist([0.5, 0.5], normals(0, 3)),
    "one component in a batch": lambda: pm.Mixture.dist([0.5, 0.5], pm.Normal.dist([0, 3], 1), shape=2),
    "mixture of vectors": lambda: pm.Mixture.dist(
        [0.5, 0.5], [pm.MvNormal.dist(m * np.ones(2), IDENTITY) for m in (0, 1)]
    ),
    "random walk": lambda: pm.GaussianRandomWalk.dist(0, 1, init_dist=pm.Normal.dist(0, 1), steps=1),
    "autoregression": lambda: pm.AR.dist([0.5], sigma=1, init_dist=pm.Normal.dist(0, 1), steps=1),
    "multivariate normal": lambda: pm.MvNormal.dist(np.zeros(2), IDENTITY),
    "Dirichlet": lambda: pm.Dirichlet.dist([1.0, 2.0]),
    "truncated": lambda: pm.Truncated.dist(pm.StudentT.dist(nu=3), lower=-1, upper=None, shape=2),
    "own density": lambda: pm.CustomDist.dist(0.0, logp=squared, shape=2),
}


@pytest.mark.parametrize("name", WITH_DENSITY)
def test_every_prior_with_a_density_has_a_chain(name, monkeypatch, ledger):
    """The chain itself is PyMC's: how it is called, not how it mixes, is looked at here."""
    sampled = []

    def one_draw(model, sampler, bits, progressbar):
        (variable,) = model.free_RVs
        assert np.isfinite(model.compile_logp()(model.initial_point(random_seed=1)))
        sampled.append(sampler)
        import arviz_base

        return arviz_base.from_dict({"posterior": {variable.name: np.full((1, 1, 2), 0.5)}})

    monkeypatch.setattr("pymc_dpdepth.from_model.sample_markov", one_draw)
    with NOMINAL:
        options = {"sampler": "slice", "accept_asymptotic": True, "ledger": ledger, "directions": "axes"}
        release = dpd.private_median(ROWS, epsilon=1.0, prior=WITH_DENSITY[name](), **options)
    assert sampled == ["slice"] and release.value.values.tolist() == [0.5, 0.5] and len(ledger.charges) == 1
    assert list(release.parameters) == ["location"]


def test_a_mixture_is_sampled(monkeypatch):
    for name, value in {"CHAINS": 2, "DRAWS": 10, "TUNE": 10, "PARTICLES": 20}.items():
        monkeypatch.setattr(markov, name, value)
    with NOMINAL:
        release = dpd.private_median(
            ROWS, epsilon=1.0, prior=WITH_DENSITY["mixture"](), accept_asymptotic=True, progressbar=False
        )
    assert release.sampler == "smc" and np.isfinite(release.value).all()


ATOMS, NO_LOGP = "single values with positive probability", "no density that PyMC can compute"
RANDOM, COMPUTED, TWICE = "depend on other random variables", "something computed", "a variable of its own"

WITHOUT = {
    "censored": (lambda: pm.Censored.dist(pm.Normal.dist(), lower=-1, upper=None, shape=2), f"Censored.*{ATOMS}"),
    "hurdle": (lambda: pm.HurdleGamma.dist(0.5, 1, 1, shape=2), f"Hurdle.*{ATOMS}"),
    "point": (lambda: pm.DiracDelta.dist(np.array([0.5, 0.2])), f"DiracDelta.*{ATOMS}"),
    "mixture with a point": (
        lambda: pm.Mixture.dist([0.5, 0.5], [pm.DiracDelta.dist(0.5, shape=2), *normals(0)]),
        f"Mixture.*{ATOMS}",
    ),
    "clipped": (lambda: pm.CustomDist.dist(0.0, dist=clipped, shape=2), f"CustomDist.*{ATOMS}"),
    "mixture of counts": (
        lambda: pm.Mixture.dist([0.5, 0.5], [pm.Poisson.dist(m, shape=2) for m in (1, 3)]),
        "discrete",
    ),
    "no logp": (
        lambda: pm.CustomDist.dist(0.0, random=lambda mu, rng, size: rng.normal(mu, size=size), shape=2),
        NO_LOGP,
    ),
    "hierarchy": (lambda: pm.Normal.dist(pm.Normal.dist(), 1, shape=2), RANDOM),
    "mixture of hierarchies": (
        lambda: pm.Mixture.dist([0.5, 0.5], [pm.Normal.dist(pm.Normal.dist(), 1, shape=2), *normals(0)]),
        RANDOM,
    ),
    "random weights": (lambda: pm.Mixture.dist(pm.Dirichlet.dist([1.0, 1.0]), normals(0, 3)), RANDOM),
    "random steps": (
        lambda: pm.GaussianRandomWalk.dist(0, pm.HalfNormal.dist(), init_dist=pm.Normal.dist(), steps=1),
        RANDOM,
    ),
    "transformed": (lambda: pt.exp(pm.Normal.dist(shape=2)), COMPUTED),
    "constant": (lambda: pt.constant(np.zeros(2)), COMPUTED),
    "half constant": (lambda: pt.stack([pm.Normal.dist(), pt.constant(0.0)]), COMPUTED),
    "twice the same": (lambda: (lambda one: pt.stack([one, one]))(pm.Normal.dist()), TWICE),
}


@pytest.mark.parametrize("name", WITHOUT)
def test_other_priors_are_refused_for_what_they_are_before_the_charge(name, ledger):
    prior, reason = WITHOUT[name]
    with pytest.raises(ValueError, match=reason):
        dpd.private_median(ROWS, epsilon=1.0, prior=prior(), sampler="slice", accept_asymptotic=True, ledger=ledger)
    assert ledger.charges == []


def test_one_random_variable_in_two_places_is_no_product():
    one = pm.Normal.dist()
    with pytest.raises(dpd.InexactReleaseError, match="stands in two places"):
        dpd.private_median(ROWS, epsilon=1.0, prior=pt.stack([one, one]))


def test_smc_and_spatial_depth_need_a_prior_that_can_be_drawn(ledger):
    options = {"epsilon": 1.0, "accept_asymptotic": True, "ledger": ledger, "progressbar": False}
    for depth in ("halfspace", dpd.Spatial()):
        with pytest.raises(ValueError, match="CustomDist.*no random draws"):
            dpd.private_median(ROWS, depth=depth, prior=WITH_DENSITY["own density"](), **options)
    assert ledger.charges == []


def test_models_are_refused_for_the_same_reasons(ledger):
    options = {"accept_asymptotic": True, "ledger": ledger, "progressbar": False}
    with pm.Model() as model:
        location = pm.Censored("location", pm.Normal.dist(), lower=-1, upper=None, shape=2)
        dpd.exponential_mechanism("median", location, ROWS, epsilon=1.0)
    with pytest.raises(ValueError, match=f"'location' .Censored. .*{ATOMS}"):
        dpd.release(model, **options)
    with pm.Model() as model:
        location = pm.Normal("location", pm.Normal.dist(), 1, shape=2)
        dpd.exponential_mechanism("median", location, ROWS, epsilon=1.0)
    with pytest.raises(ValueError, match="Random variables detected"):
        dpd.release(model, **options)
    assert ledger.charges == []
