"""The exact privacy loss against laws worked out by other means: fractions, closed forms, adaptive quadrature."""

import itertools
import math
from fractions import Fraction

import exact_grid
import numpy as np
import pymc as pm
import pytest
from scipy import integrate, stats

import pymc_dpdepth as dpd
from pymc_dpdepth.depths.univariate import UnivariateDepth

STEP = ["halfspace", "integrated_rank_weighted", "integrated_dual"]
FLOOR = exact_grid.FINITE_END


def loss(X, neighbour, epsilon=1.0, prior="uniform(0, 1)", **options):
    return dpd.exact_privacy_loss(X, neighbour, epsilon=epsilon, prior=prior, **options)


# Step depths, exactly


def key_of(x):
    """Return the cell of a number in (0, 1) under a uniform prior on (0, 1)."""
    return exact_grid.key_of_tail(x) if x < 0.5 else exact_grid.LAST - exact_grid.key_of_tail(1 - x)


def brute_force(X, Y, epsilon, name):
    """Return the largest log ratio over all pieces of (0, 1)^d, with rational masses and depths counted one by one."""
    d, n = len(X[0]), len(X)
    keys = [[[key_of(row[j]) for row in table] for j in range(d)] for table in (X, Y)]
    axes = []
    for j in range(d):
        below, pieces = 0, []
        for cut in sorted({*keys[0][j], *keys[1][j]}):
            pieces += [(below, cut - 1), (cut, cut)]
            below = cut + 1
        pieces.append((below, exact_grid.LAST))
        masses = [exact_grid.mass(a, b, FLOOR, FLOOR) if a <= b else 0 for a, b in pieces]
        axes.append([(b, m) for (_, b), m in zip(pieces, masses, strict=True) if m])
    logs = []
    for table in keys:
        weights = []
        for piece in itertools.product(*axes):
            pairs = [
                (sum(k <= cell for k in column), sum(k >= cell for k in column))
                for (cell, _), column in zip(piece, table, strict=True)
            ]
            if name == "halfspace":
                depth = Fraction(min(min(pair) for pair in pairs), n)
            elif name == "integrated_rank_weighted":
                depth = Fraction(sum(min(pair) for pair in pairs), n * d)
            else:
                depth = Fraction(sum(le * ge for le, ge in pairs), n * n * d)
            mass = math.prod(m for _, m in piece)
            # beta = epsilon / (2 GS), GS = 1/n
            weights.append((float(epsilon * n / 2 * depth), mass))
        total = math.fsum(math.exp(exponent) * mass for exponent, mass in weights)
        logs.append([exponent - math.log(total) for exponent, _ in weights])
    return max(abs(p - q) for p, q in zip(*logs, strict=True))


def tables_of(d, n, seed):
    generator = np.random.default_rng(seed)
    X = generator.choice([0.05, 0.25, 0.5, 0.9, float(generator.uniform(0.1, 0.9))], size=(n, d))
    Y = generator.permutation(X)
    Y[generator.integers(n)] = generator.choice([0.05, 0.3, 0.97], size=d)
    return X, Y


@pytest.mark.parametrize("name", STEP)
@pytest.mark.parametrize("d", [1, 2])
def test_step_depths_against_fractions(name, d):
    for seed, n in enumerate((1, 2, 3, 4, 5)):
        for epsilon in (0.3, 4.0):
            X, Y = tables_of(d, n, seed)
            found = loss(X, Y, epsilon, depth=name, directions="axes")
            assert found.method == "exact" and found.error < 1e-11
            assert found.max_loss == pytest.approx(brute_force(X.tolist(), Y.tolist(), epsilon, name), abs=1e-10)
            assert found.max_loss <= epsilon + found.error


@pytest.mark.parametrize("name", [*STEP, "simplicial", "spatial", "modified_spatial"])
def test_no_pair_of_small_tables_loses_more_than_epsilon(name):
    # All tables of up to 4 rows on five places, tied ones included, and all replacements of a row.
    places, epsilon, worst = [0.001, 0.3, 0.5, 0.999], 1.0, 0.0
    for n in (1, 2, 3, 4):
        for others in itertools.combinations_with_replacement(places, n - 1):
            for a, b in itertools.combinations(places, 2):
                found = loss(np.array([*others, a])[:, None], np.array([*others, b])[:, None], epsilon, depth=name)
                assert found.method == "exact" and found.max_loss <= epsilon + found.error
                worst = max(worst, found.max_loss)
    assert worst > 0.4


def test_nearly_all_of_epsilon_is_lost_in_the_worst_case():
    for epsilon in (0.1, 1.0, 5.0):
        found = loss([[0.0], [1e-6]], [[1e-6], [1.0]], epsilon)
        # r = e^(epsilon/2) on 1e-6 of the prior for X, on the rest for the neighbour: log r + log(Z_Y / Z_X).
        m, r = 1e-6, math.exp(epsilon / 2)
        expected = math.log(r) + math.log((m + (1 - m) * r) / (m * r + 1 - m))
        assert found.max_loss == pytest.approx(expected, abs=1e-9)
        assert 0.99 * epsilon < found.max_loss <= epsilon
        assert 0 <= found.at[0] <= 1e-6


def test_ties_far_rows_and_many_rows():
    rows = np.full((1000, 1), 30.0)  # 30 sds from the prior's centre
    other = rows.copy()
    other[0] = -1e300
    for name in STEP:
        found = loss(rows, other, 2.0, "normal(0, 1)", depth=name)
        assert 0.9 < found.max_loss <= 2.0 + found.error
    assert loss(np.zeros((3, 1)), np.zeros((3, 1))).max_loss == 0.0


# A wrong sensitivity


def test_a_halved_sensitivity_is_caught(monkeypatch):
    X, Y = [[0.0], [0.001]], [[0.001], [1.0]]
    assert loss(X, Y).max_loss <= 1.0
    right = UnivariateDepth.sensitivity
    monkeypatch.setattr(UnivariateDepth, "sensitivity", lambda self, n: right(self, n) / 2)
    assert loss(X, Y).max_loss > 1.9


def test_modified_spatial_depth_at_1_over_n_is_not_private(monkeypatch):
    # The counterexample of docs/sensitivity.md: P_X(theta > 0) = .8787 and P_Y = .1213.
    X = np.append(np.zeros(99), 1.5)[:, None]
    options = {"prior": "uniform(-1, 1)", "depth": "modified_spatial"}
    assert loss(X, -X, **options).max_loss <= 1.0
    monkeypatch.setattr(dpd.ModifiedSpatial, "sensitivity", lambda self, n, d: 1 / n)
    assert loss(X, -X, **options).max_loss == pytest.approx(math.log(0.8787 / 0.1213), abs=1e-3)


# Smooth depths


def dual_by_hand(theta, rows, s):
    share = (1 / (1 + np.exp(-s * (theta - rows)))).mean()
    return share * (1 - share)


@pytest.mark.parametrize("smoothing", [0.5, 3.0, 40.0])
def test_a_smooth_depth_against_adaptive_quadrature(smoothing):
    X, Y = np.array([-0.5, 0.1, 0.2]), np.array([-0.5, 0.1, 4.0])
    epsilon, n = 6.0, 3
    beta = epsilon * n**2 / (2 * (n - 1))
    prior = stats.norm(0.2, 1.5)
    scale = 2 * 1.5 * stats.norm.ppf(0.75)  # smoothing is in units of the prior's interquartile range

    def exponent(theta, rows):
        return beta * dual_by_hand(theta, rows, smoothing / scale)

    constants = [
        math.log(
            integrate.quad(
                lambda theta, rows=rows: math.exp(exponent(theta, rows)) * prior.pdf(theta),
                *(-12, 12),
                points=sorted({*X, *Y}),
                limit=500,
                epsabs=1e-12,
            )[0]
        )
        for rows in (X, Y)
    ]
    fine = np.linspace(-8, 8, 40_001)
    ratios = [exponent(t, X) - exponent(t, Y) - constants[0] + constants[1] for t in fine]
    depth = dpd.IntegratedDual(smoothing=smoothing)
    found = loss(X[:, None], Y[:, None], epsilon, "normal(0.2, 1.5)", depth=depth)
    assert found.method == "quadrature" and found.error < 1e-10
    # A grid of step h finds a maximum to 2nd order: here h = 4e-4 and the curvature is below s^2 beta.
    assert found.max_loss == pytest.approx(np.abs(ratios).max(), abs=1e-4)
    assert found.max_loss >= np.abs(ratios).max() - 1e-9
    assert 0.1 < found.max_loss <= epsilon
    at = exponent(found.at[0], X) - exponent(found.at[0], Y) - constants[0] + constants[1]
    assert abs(at) == pytest.approx(found.max_loss, abs=1e-8)


@pytest.mark.parametrize("smoothing", [1e-3, 1e6])
def test_extreme_smoothing_and_far_rows(smoothing):
    depth = dpd.IntegratedDual(smoothing=smoothing)
    X = np.append(np.full(99, 20.0), 21.5)[:, None]
    found = loss(X, np.append(X[:-1], [[18.5]], axis=0), 5.0, "normal(0, 1)", depth=depth)
    assert found.error < 1e-6 and found.max_loss <= 5.0
    assert found.max_loss > 2.4 or smoothing < 1


def test_a_smooth_depth_in_the_plane_factorises_over_the_axes():
    X = np.array([[0.0, 1.0], [0.5, -1.0], [2.0, 0.3]])
    Y = np.vstack([X[:-1], [[-2.0, 4.0]]])
    depth, epsilon = dpd.IntegratedDual(smoothing=2.0), 3.0
    plane = loss(X, Y, epsilon, "normal(0, 1)", depth=depth)
    # exp(beta (D_1 + D_2) / 2): each axis is a mechanism of its own at epsilon / 2; positive parts of the log ratio
    # add up, and so do negative ones, but one axis may lose on the other side: so an inequality.
    axes = [loss(X[:, j : j + 1], Y[:, j : j + 1], epsilon / 2, "normal(0, 1)", depth=depth) for j in (0, 1)]
    assert plane.method == "quadrature" and plane.error < 1e-3
    assert max(a.max_loss for a in axes) - 1e-3 < plane.max_loss <= sum(a.max_loss for a in axes) + 1e-3
    finer = loss(X, Y, epsilon, "normal(0, 1)", depth=depth, points=600)
    assert abs(finer.max_loss - plane.max_loss) < 2 * plane.error + 1e-9


def test_halfspace_depth_over_all_directions():
    # Three rows: depth 1/3 on the triangle, 0 outside, and beta / 3 = epsilon / 2. The neighbour's triangle lies inside
    # that of X, so the log ratio is log r - c on the rest of the larger one and -c elsewhere, c = log(Z_X / Z_Y).
    X, Y = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.array([[0.0, 0.0], [0.2, 0.0], [0.0, 1.0]])
    r = math.exp(0.5)
    c = math.log((1 + 0.5 * (r - 1)) / (1 + 0.1 * (r - 1)))
    found = loss(X, Y, depth=dpd.Halfspace(directions=None))
    assert found.method == "quadrature"
    assert found.max_loss == pytest.approx(max(math.log(r) - c, c), abs=0.01)


def test_rotated_directions_against_the_axes():
    # Under an isotropic normal prior a rotated table loses what the table loses along the axes, which is exact.
    directions = dpd.Directions.orthonormal(2, seed=5)
    X = np.array([[0.0, 0.1], [-1.0, 0.4], [0.6, -0.7]])
    Y = np.vstack([X[:-1], [[2.0, 2.0]]])
    for name in ("halfspace", "integrated_rank_weighted"):
        exact = loss(X, Y, 1.0, "normal(0, 1)", depth=name, directions="axes")
        turned = [rows @ directions.matrix() for rows in (X, Y)]
        found = loss(*turned, 1.0, "normal(0, 1)", depth=name, directions=directions)
        assert (exact.method, found.method) == ("exact", "quadrature")
        assert found.max_loss == pytest.approx(exact.max_loss, abs=0.01)


def test_a_custom_objective():
    import pytensor.tensor as pt

    def closeness(theta, X):
        return -pt.mean(pt.minimum(abs(X[:, 0] - theta[0]), 1.0))

    depth = dpd.CustomObjective(closeness, sensitivity=lambda n, d: 1 / n)
    found = loss([[0.0], [0.5]], [[0.0], [9.0]], 1.0, "normal(0, 1)", depth=depth)
    assert found.method == "quadrature" and 0.2 < found.max_loss <= 1.0 and found.error < 1e-6


# Arguments and result


def test_forms_of_a_prior_and_columns():
    X, Y = np.array([[0.0, 5.0], [0.001, 6.0]]), np.array([[1.0, 5.0], [0.001, 6.0]])
    expected = loss(X[:, :1], Y[:, :1]).max_loss
    for prior in ("uniform(0, 1)", pm.Uniform.dist(0, 1, shape=1), [pm.Uniform.dist(0, 1)], {"x0": "uniform(0, 1)"}):
        assert loss(X, Y, prior=prior, columns=["x0"]).max_loss == expected
    assert loss(X, Y[::-1], columns=["x0"]).max_loss == expected  # the order of the rows does not count


def test_missing_entries_and_several_rows_per_person():
    X, Y = np.array([[np.nan], [0.2], [0.3]]), np.array([[0.9], [0.2], [0.3]])
    with pytest.raises(ValueError, match="x0"):
        loss(X, Y)
    assert 0 < loss(X, Y, nonfinite="prior").max_loss <= 1.0
    two = loss([[0.0], [0.0], [0.1], [0.1]], [[1.0], [1.0], [0.1], [0.1]], max_rows_per_unit=2)
    assert two.epsilon == 2.0 and 1.5 < two.max_loss <= 2.0


@pytest.mark.parametrize(
    ("X", "Y", "options", "error", "match"),
    [
        ([[0.0], [1.0]], [[2.0], [3.0]], {}, ValueError, "at most one row"),
        ([[0.0]], [[0.0], [1.0]], {}, ValueError, "same shape"),
        (np.zeros((2, 3)), np.zeros((2, 3)), {}, ValueError, "1 or 2 columns"),
        ([[0.0]], [[1.0]], {"points": 4}, ValueError, "points"),
        ([[0.0]], [[1.0]], {"points": 9.5}, TypeError, "points"),
        ([[0.0]], [[1.0]], {"epsilon": 0.0}, ValueError, "epsilon"),
        ([[0.0]], [[1.0]], {"depth": "projection"}, dpd.UnboundedSensitivityError, "propose-test-release"),
        ([[0.0]], [[1.0]], {"depth": "mode"}, ValueError, "mode"),
        ([[0.0]], [[1.0]], {"prior": None}, TypeError, "prior"),
        ([[0.0]], [[1.0]], {"prior": pm.Flat.dist(shape=1)}, dpd.ImproperMechanismError, "flat"),
        (
            np.zeros((2, 2)),
            np.zeros((2, 2)),
            {"prior": pm.MvNormal.dist(np.zeros(2), np.eye(2))},
            ValueError,
            "multivariate.*dpd.audit",
        ),
        (
            np.zeros((2, 2)),
            np.ones((2, 2)) * [[0], [1]],
            {"depth": "spatial", "points": 5000},
            ValueError,
            "too many points",
        ),
        (np.eye(2000)[:, :2], np.eye(2000)[:, :2], {}, None, None),
    ],
)
def test_bad_arguments(X, Y, options, error, match):
    if error is None:
        assert loss(X, Y, **options).max_loss == 0.0
        return
    with pytest.raises(error, match=match):
        loss(X, Y, **options)


def test_too_many_pieces_say_so():
    rows = np.random.default_rng(1).random((1500, 2))
    with pytest.raises(ValueError, match="too many pieces"):
        loss(rows, rows, directions="axes")


def test_a_prior_read_off_the_rows_warns_once():
    X = np.random.default_rng(2).normal(size=(9, 1))
    with pytest.warns(dpd.PrivacyLeakWarning, match="mean") as caught:
        loss(X, X[::-1], prior=pm.Normal.dist([X.mean()], 1.0))
    assert len(caught) == 1


def test_the_result_says_what_it_is():
    found = loss([[0.0], [0.001]], [[0.001], [1.0]])
    assert found.epsilon == 1.0 and found.at.shape == (1,)
    for text in (repr(found), dpd.PrivacyLoss.__doc__):
        assert "not releasable" in " ".join(text.split()) and "proves nothing" in " ".join(text.split())
