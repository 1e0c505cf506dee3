"""Masses of regions against areas in fractions, closed forms and another quadrature."""

import math

import numpy as np
import pymc as pm
import pytest
from planar_laws import DEPTH, ROWS, SMALL, exact_masses, law_of, plan_of, uniform
from scipy import integrate, stats

from pymc_dpdepth.samplers.polygon_masses import FINE, SHARES, TOLERANCE, polygon_masses


@pytest.mark.parametrize("half_width", [2, 0.75, 0.3, 1e-9, 1e9])
@pytest.mark.parametrize("rows", [SMALL, ROWS], ids=["ties", "normal"])
def test_masses_under_a_uniform_prior_are_areas(rows, half_width):
    law = law_of(rows, uniform(half_width), epsilon=1e-3)
    wanted = exact_masses(rows, half_width)
    assert law.levels.tolist() == list(wanted)
    for log_mass, mass in zip(law.log_masses, wanted.values(), strict=True):
        # Tails are rounded by 2^-54, so a region whose sides are s in them errs by about 2^-50 / s, relatively.
        slack = 1e-13 + 2.0**-48 / math.sqrt(float(mass)) if mass else 0
        assert math.exp(log_mass) == pytest.approx(float(mass), rel=slack, abs=0)


def test_masses_under_a_normal_prior_are_those_of_quadrature_over_x():
    law = law_of(ROWS, pm.Normal.dist(0.1, 0.7, shape=2), epsilon=0.1)
    regions, prior = DEPTH.regions(ROWS), stats.norm(0.1, 0.7)
    for level, log_mass, error in zip(law.levels, law.log_masses, law.errors, strict=True):
        polygon = regions.polygon(level)
        turn = int(np.argmax(polygon[:, 0]))  # the first vertex has the least x
        below, above = polygon[: turn + 1], np.vstack([polygon[turn:], polygon[:1]])[::-1]

        def height(x, below=below, above=above):
            low, high = (np.interp(x, *chain.T) for chain in (below, above))
            return prior.pdf(x) * (prior.cdf(high) - prior.cdf(low))

        knots = np.unique(polygon[:, 0])
        parts = [
            integrate.quad(height, a, b, epsrel=1e-13, epsabs=0)[0] for a, b in zip(knots[:-1], knots[1:], strict=True)
        ]
        assert math.exp(log_mass) == pytest.approx(math.fsum(parts), rel=1e-11)
        assert error <= 2 * TOLERANCE


FAMILIES = {
    "normal": (pm.Normal.dist(1, 2, shape=2), stats.norm(1, 2)),
    "uniform": (pm.Uniform.dist(-1, 3, shape=2), stats.uniform(-1, 4)),
    "laplace": (pm.Laplace.dist(1, 2, shape=2), stats.laplace(1, 2)),
    "cauchy": (pm.Cauchy.dist(1, 2, shape=2), stats.cauchy(1, 2)),
    "gamma": (pm.Gamma.dist(2, 1, shape=2), stats.gamma(2)),
    "beta": (pm.Beta.dist(0.5, 2, shape=2), stats.beta(0.5, 2)),
    "exponential": (pm.Exponential.dist(1, shape=2), stats.expon()),
    "student": (pm.StudentT.dist(nu=3, mu=1, sigma=2, shape=2), stats.t(3, 1, 2)),
    "compiled": (pm.Moyal.dist(0, 1, shape=2), stats.moyal()),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_a_rectangle_has_the_product_of_two_masses_under_every_family(name):
    # The region of level 1 of the 4 corners is the rectangle.
    prior, wanted = FAMILIES[name]
    for (a, b), (c, d) in (((-0.5, 0.3), (0.1, 2.5)), ((0.2, 0.9), (0.25, 0.250001)), ((-100.0, 100.0), (0.4, 0.5))):
        law = law_of([[a, c], [b, c], [b, d], [a, d]], prior, epsilon=1e-3)
        parts = [wanted.cdf(high) - wanted.cdf(low) for low, high in ((a, b), (c, d))]
        # The reference is a difference of doubles below 1, and compiled upper tails are right to 2^-53, too.
        slack = 1e-9 if min(parts) > 1e-3 else 1e-8
        assert math.exp(law.log_masses[0]) == pytest.approx(parts[0] * parts[1], rel=slack)


def test_masses_far_in_both_tails_do_not_underflow():
    prior = pm.Normal.dist(0, 1, shape=2)
    law = law_of([[30, -33], [31, -33], [31, -32], [30, -32]], prior, epsilon=1e-3)
    wanted = stats.norm.logsf(30) + stats.norm.logcdf(-32)  # tails of one unit more are e^-30 of these
    assert wanted < -960
    assert law.log_masses[0] == pytest.approx(wanted, rel=1e-12)


def test_an_oblique_strip_has_the_mass_of_the_rotated_coordinate():
    # Under N(0, I), |x cos t + y sin t - a| < w has the mass of an interval; the strip ends far outside.
    for angle in (0.3, 0.785, 1.57, 2.2):
        u, v = np.array([math.cos(angle), math.sin(angle)]), np.array([-math.sin(angle), math.cos(angle)])
        for center, width in ((0.4, 0.1), (-2.0, 1e-6), (0.0, 3.0)):
            corners = [(center + s * width) * u + t * v for s in (-1, 1) for t in (-60, 60)]
            law = law_of(np.array(corners), pm.Normal.dist(0, 1, shape=2), epsilon=1e-3)
            mass = stats.norm.cdf(center + width) - stats.norm.cdf(center - width)
            # Corners of size 60 are rounded by 2^-48, and so are the sides of the strip.
            assert math.exp(law.log_masses[0]) == pytest.approx(mass, rel=1e-11 + 2.0**-46 / width)


def test_edges_between_rows_near_the_largest_doubles():
    # Both ends of an edge lie at 1e300, and it passes the prior: a crossing that doubles compute is off by 1e284.
    far = 1e300
    triangle = [[-far, -far], [far, far], [far, -far]]
    wide = [[-far, -far], [far, far], [far, -far], [-far, 0.5]]
    normal, cauchy = pm.Normal.dist(0, 1, shape=2), pm.Cauchy.dist(0, 1, shape=2)
    for prior in (normal, cauchy, pm.MvNormal.dist(np.zeros(2), 1e-8 * np.eye(2))):
        # Half of the prior lies below y = x. The edge from (-far, 1/2) to (far, far) passes x = 0 at far / 2.
        assert math.exp(law_of(triangle, prior, epsilon=1e-3).log_masses[0]) == pytest.approx(0.5, rel=1e-10)
    # That edge has slope 1/2, so its height above the left end is not seen within the prior: x > -far is all there is.
    assert math.exp(law_of(wide, normal, epsilon=1e-3).log_masses[0]) == pytest.approx(1.0, rel=1e-10)


def test_multivariate_normal_masses():
    # With independent coordinates it is the product prior; a linear map of rows and prior changes no mass.
    mean = np.array([0.2, -0.1])
    one = law_of(ROWS, pm.Normal.dist(mean, 0.7), epsilon=0.1)
    matrix = np.array([[3.0, 1.0], [-2.0, 5.0]])
    for prior, rows in (
        (pm.MvNormal.dist(mean, 0.49 * np.eye(2)), ROWS),
        (pm.MvNormal.dist(matrix @ mean, 0.49 * matrix @ matrix.T), ROWS @ matrix.T),
        (pm.MvNormal.dist(1e-9 * mean, 0.49e-18 * np.eye(2)), 1e-9 * ROWS),
    ):
        np.testing.assert_allclose(law_of(rows, prior, epsilon=0.1).log_masses, one.log_masses, rtol=0, atol=1e-11)


def test_the_rule_integrates_polynomials():
    for degree in range(17):
        assert FINE @ SHARES**degree == pytest.approx(1 / (degree + 1), rel=1e-14)


@pytest.mark.parametrize("distance", [3.0, 17.0, 34.0])
@pytest.mark.parametrize("angle", [0.0001, 0.2, 0.785, 1.3, 2.5, 4.0])
def test_a_region_that_passes_far_from_the_prior(distance, angle):
    # The half-plane x cos t + y sin t > r, but for its ends: its mass is that of a normal tail, e^-583 at 34, and comes
    # from a small part of panels on which tails range over hundreds of orders of magnitude.
    u, v = np.array([math.cos(angle), math.sin(angle)]), np.array([-math.sin(angle), math.cos(angle)])
    corners = [distance * u - 1e3 * v, distance * u + 1e3 * v, 1e3 * u]
    law = law_of(np.array(corners), pm.Normal.dist(0, 1, shape=2), epsilon=1e-3)
    # Corners of size 1e3 are rounded by 2^-44, and the tail falls by r times that.
    assert law.log_masses[0] == pytest.approx(stats.norm.logsf(distance), abs=1e-10)
    assert law.errors[0] < 1e-9


def test_a_step_near_the_end_of_a_panel_is_seen():
    # An edge leaves the prior of y, narrow beside that of x, within the last 0.1% of a panel.
    prior = pm.Normal.dist([0.0, 0.0], [1.0, 1e-6])
    rows = [[-1.0, -1.0], [1.0, -1.0], [1.0, -0.001], [-1.0, 1.0]]
    mass = math.exp(law_of(rows, prior, epsilon=1e-3).log_masses[0])
    crossing = 1 - 0.002 / 1.001  # where the upper edge meets y = 0; it is symmetric there but for 1e-6 of slope
    assert mass == pytest.approx(stats.norm.cdf(crossing) - stats.norm.cdf(-1), rel=1e-9)


def test_no_polygons_have_no_masses():
    plan, _ = plan_of(ROWS, uniform())
    log_masses, errors, panels = polygon_masses([], plan._coordinates([])[1])
    assert log_masses.shape == errors.shape == (0,) and all(len(part.owners) == 0 for part in panels.values())
