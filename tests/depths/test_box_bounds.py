"""Upper bounds over boxes: never below the score of a point of the box, and close to it for small boxes."""

import itertools
import math

import numpy as np
import pytensor.tensor as pt
import pytest

from pymc_dpdepth.depths import (
    CustomObjective,
    Directions,
    Halfspace,
    IntegratedDual,
    IntegratedRankWeighted,
    ModifiedSpatial,
    Projection,
    Simplicial,
    Spatial,
)
from pymc_dpdepth.depths.box_bounds import BoxBound
from pymc_dpdepth.depths.simplicial_bounds import _least_missing, _most_on_rays


def closeness(theta, X):
    return -pt.mean(pt.minimum(pt.sqrt(pt.sum((X - theta) ** 2, axis=1)), 1.0))


def closeness_over_box(lower, upper, X):
    away = X - pt.clip(X, lower, upper)
    return -pt.mean(pt.minimum(pt.sqrt(pt.sum(away**2, axis=1)), 1.0)) + 1e-12


def custom():
    return CustomObjective(closeness, sensitivity=lambda n, d: 1 / n, box_bound=closeness_over_box)


CASES = [
    pytest.param(depth, d, id=f"{name}-{d}")
    for name, depth, dimensions in [
        ("halfspace axes", lambda d: Halfspace("axes"), (1, 3)),
        ("halfspace balanced", lambda d: Halfspace(Directions.balanced(d, 7)), (2, 3)),
        ("halfspace all", lambda d: Halfspace(directions=None), (1, 2, 3)),
        ("irw", lambda d: IntegratedRankWeighted(Directions.balanced(d, 7)), (1, 3)),
        ("dual", lambda d: IntegratedDual(directions=Directions.balanced(d, 7)), (2,)),
        ("wide dual", lambda d: IntegratedDual(smoothing=0.5, directions=Directions.balanced(d, 7)), (1, 3)),
        ("smoothed dual", lambda d: IntegratedDual(smoothing=8.0, directions=Directions.balanced(d, 7)), (2,)),
        ("sharp dual", lambda d: IntegratedDual(smoothing=2.0**40), (2,)),
        ("spatial", lambda d: Spatial(), (1, 2, 3, 5)),
        ("modified spatial", lambda d: ModifiedSpatial(), (1, 3)),
        ("simplicial", lambda d: Simplicial(), (1, 2)),
        ("custom", lambda d: custom(), (2,)),
    ]
    for d in dimensions
]

GENERIC, LATTICE, CLUMPS, LINE, FAR, TINY, HUGE = range(7)


def table(kind, n, d, generator):
    """Return rows of one kind: without ties, on a small lattice, clumped, on a line, with far rows, at odd scales."""
    rows = generator.standard_normal((n, d))
    if kind == LATTICE:
        rows = generator.integers(-2, 3, (n, d)).astype(float)
    elif kind == CLUMPS:
        rows = rows[generator.integers(0, 1 + n // 4, n)] + (generator.random((n, 1)) < 1 / 2) * 2.0**-50
    elif kind == LINE:
        rows = generator.standard_normal((n, 1)) * (np.arange(d) + 1.0)
    elif kind == FAR:
        rows[: n // 3] *= 10.0 ** generator.uniform(3, 300, (n // 3, 1))
    elif kind == TINY:
        rows *= 2.0**-40
    elif kind == HUGE:
        rows *= 2.0**200
    return rows


def boxes(rows, count, generator):
    """Return boxes around rows, middles of rows and places between, degenerate to huge; and points of each box."""
    d = rows.shape[1]
    anchors = np.concatenate([rows, np.zeros((1, d)), np.median(rows, axis=0, keepdims=True)]) if len(rows) else None
    anchors = np.zeros((1, d)) if anchors is None else anchors
    one, other = (anchors[generator.integers(0, len(anchors), count)] for _ in range(2))
    share = generator.choice([0.0, 1 / 2, 1.0, 0.3], (count, 1))
    center = one * share + other * (1 - share)
    scale = np.median(np.abs(rows - np.median(rows, axis=0))) if len(rows) else 1.0
    scale = scale if scale > 0 else 1.0
    size = scale * 10.0 ** generator.uniform(-12, 2, (count, 1)) * generator.choice([0.0, 1.0, 1.0, 1.0], (count, d))
    low, high = center - size * generator.random((count, d)), center + size * generator.random((count, d))
    corner = np.where(generator.random((count, d)) < 1 / 2, low, high)
    inside = low + (high - low) * generator.random((count, d))
    # The rows and the middle, put into the box: on its faces, or where they are if they are in it.
    clipped = np.clip(one, low, high)
    middle = np.clip(np.median(anchors, axis=0), low, high)
    points = [low, high, low / 2 + high / 2, corner, np.clip(inside, low, high), clipped, middle]
    return low, high, np.stack(points, axis=1)


def excess(bound, low, high, points):
    """Return the bounds of boxes less the largest score of the points of each."""
    count, each, d = points.shape
    least = bound.score(low, np.full(count, -(2**62) if bound.sensitivity_count is not None else -np.inf))
    scores = bound.score(points.reshape(-1, d), np.repeat(least * 0 - 10, each)).reshape(count, each)
    return bound.upper(low, high) - scores.max(axis=1)


@pytest.mark.parametrize("kind", range(7))
@pytest.mark.parametrize(("build", "d"), CASES)
def test_no_point_of_a_box_scores_above_its_bound(build, d, kind):
    generator = np.random.default_rng([kind, d, 17])
    for n in (0, 1, 2, 3, 4, 40):
        rows = table(kind, n, d, generator)
        bound = build(d).box_bound(rows)
        few = 12 if isinstance(build(d), CustomObjective) else 60
        assert (excess(bound, *boxes(rows, few, generator)) >= 0).all()


class _Planted(BoxBound):
    """A bound that is too small: that of the center of a box, and a little for its size."""

    def __init__(self, bound):
        self._bound, self.sensitivity_count, self.influence = bound, bound.sensitivity_count, bound.influence

    def upper(self, low, high):
        return self._bound.upper(low / 2 + high / 2, low / 2 + high / 2)

    def score(self, points, least):
        return self._bound.score(points, least)


@pytest.mark.parametrize(("build", "d"), CASES)
def test_a_bound_that_is_too_small_is_caught(build, d):
    generator = np.random.default_rng(3)
    rows = table(GENERIC, 40, d, generator)
    assert (excess(_Planted(build(d).box_bound(rows)), *boxes(rows, 60, generator)) < 0).any()


@pytest.mark.parametrize("kind", (GENERIC, LATTICE))
@pytest.mark.parametrize(("build", "d"), CASES)
def test_the_score_is_the_depth_in_its_unit(build, d, kind):
    generator = np.random.default_rng(5)
    depth = build(d)
    for n in (0, 1, 2, 9):
        rows = table(kind, n, d, generator)
        points = np.concatenate([generator.standard_normal((9, d)), rows])
        bound, depths = depth.box_bound(rows), depth.evaluate(points, rows)
        if bound.sensitivity_count is None:
            assert bound.score(points, np.full(len(points), -np.inf)).tolist() == depths.tolist()
            continue
        scores = bound.score(points, np.full(len(points), -1))
        assert np.issubdtype(scores.dtype, np.integer)
        # The count of depth 1 is the unit: as many sensitivities as the depth's own one goes into 1.
        unit = {"simplicial": math.comb(n, d + 1), "integrated_dual": n**2}.get(depth.name, n)
        unit *= len(depth.resolve(d).directions.matrix()) if depth.name.startswith("integrated") else 1
        assert depths.tolist() == [score / unit if unit else 0.0 for score in scores.tolist()]
        assert bound.sensitivity_count / unit == pytest.approx(depth.sensitivity(n, d)) if unit else True


@pytest.mark.parametrize(("build", "d"), CASES)
def test_a_score_below_the_least_stays_below_it_and_others_are_exact(build, d):
    generator = np.random.default_rng(6)
    rows = table(GENERIC, 60, d, generator)
    bound = build(d).box_bound(rows)
    points = generator.standard_normal((200, d)) * 0.7
    exact = bound.score(points, np.full(len(points), -10, dtype=bound.score(points[:1], np.zeros(1, int)).dtype))
    least = generator.permutation(exact)
    scores = bound.score(points, least)
    assert (scores[exact >= least] == exact[exact >= least]).all()
    assert (scores[exact < least] < least[exact < least]).all()
    assert 0 < (exact < least).sum() < len(points)


@pytest.mark.parametrize(("build", "d"), CASES)
def test_bounds_shrink_to_the_score_as_boxes_shrink(build, d):
    generator = np.random.default_rng(7)
    rows = table(GENERIC, 60, d, generator)
    bound = build(d).box_bound(rows)
    points = generator.standard_normal((20, d)) * 0.3
    scores = bound.score(points, np.full(len(points), -10))
    uppers = [bound.upper(points - h, points + h) for h in (1.0, 0.1, 1e-3, 0.0)]
    for wide, narrow in zip(uppers, uppers[1:], strict=False):
        assert (wide - narrow).mean() >= -1e-12
    step = np.issubdtype(uppers[0].dtype, np.integer)
    gap = (uppers[-1] - scores).mean()
    if step:
        # The least of fixed directions is not that of all: it may be two rows off, of some 20. A tie is allowed for in
        # the tables of counts, so a place with as few rows to one side may be a row.
        unit = bound.sensitivity_count
        assert gap <= 2.5 * unit
        assert (uppers[0] - scores).mean() > 3 * gap
    else:
        assert gap < 1e-4
        assert (uppers[2] - scores).mean() < 0.02
        assert (uppers[0] - scores).mean() > 10 * (uppers[2] - scores).mean()


@pytest.mark.parametrize(("build", "d"), CASES)
def test_influence_is_positive(build, d):
    generator = np.random.default_rng(8)
    for kind in range(7):
        for n in (0, 1, 5):
            influence = build(d).box_bound(table(kind, n, d, generator)).influence
            assert influence.shape == (d,)
            assert np.isfinite(influence).all() and (influence > 0).all()


@pytest.mark.parametrize("build", [Spatial, ModifiedSpatial, Simplicial])
@pytest.mark.parametrize("huge", [np.finfo(np.float64).max, 1e200])
def test_rows_of_any_size_give_no_warning_and_a_finite_influence(build, huge):
    # A warning of an overflow, given after the charge, would tell of a far row.
    tiny = 1e-300 * np.array([[0.0, 0.0], [1.0, 1.0], [-1.0, 1.0], [1.0, -1.0]])
    flat = [[1e-300, -1e200], [0.0, 5e-324], [0.0, 1.0]]
    for rows in (np.vstack([tiny, [[huge, 1.0]]]), flat):
        bound = build().resolve(2).box_bound(np.array(rows, dtype=float))
        assert np.isfinite(bound.influence).all() and bound.influence.min() > 0


@pytest.mark.parametrize("turned", [False, True])
def test_a_row_as_good_as_on_the_side_of_a_box_is_seen_under_half_a_turn(turned):
    # The row in the middle of a side, 1e-300 or one rounding off it, is seen under angles pi apart after rounding.
    for row, side in ((0.0, 1e-300), (0.25 - 2.0**-54, 0.25)):
        rows = np.array([[side - 0.478, 0.739], [side + 0.229, 1.134], [-1e3, 1.03], [row, 0.179]])
        low, high = np.array([[side, -1.0]]), np.array([[side, 1.0]])
        if turned:
            rows, low, high = (array[:, ::-1].copy() for array in (rows, low, high))
        bound = Simplicial().resolve(2).box_bound(rows)
        inside = np.linspace(low[0], high[0], 101)
        scores = bound.score(inside, np.full(101, -1))
        assert scores.max() > 0 and bound.upper(low, high)[0] >= scores.max()


def test_spatial_bounds_cancel_what_opposite_rows_do():
    """Over a box of half-width h a unit vector turns by up to h / |v|, but the sum of 400 by far less."""
    generator = np.random.default_rng(9)
    half = generator.standard_normal((200, 3))
    rows = np.concatenate([half, -half])
    bound, place, h = Spatial().box_bound(rows), np.array([[0.0, 1.0, 0.0]]), 0.01
    corners = place + h * np.stack(np.meshgrid(*[[-1, 1]] * 3), axis=-1).reshape(-1, 3)
    best = bound.score(corners, np.zeros(8)).max()
    # The slope is taken up to the second order: r^2 mean(1 / |v|^2) is some 3 h^2, and a row in the box adds 2 / n.
    assert 0 <= bound.upper(place - h, place + h)[0] - best < 10 * h**2 + 2 / len(rows)


def test_simplicial_bounds_cancel_what_one_row_loses_and_another_gains():
    """Each of 300 rows may pass some h / |v| n / pi others: without cancelling that is about n h / 2 sensitivities."""
    generator = np.random.default_rng(11)
    rows = generator.standard_normal((300, 2))
    bound, h = Simplicial().box_bound(rows), 0.05
    places = generator.standard_normal((20, 2)) * 0.1
    gaps = (bound.upper(places - h, places + h) - bound.score(places, np.zeros(20))) / bound.sensitivity_count
    assert gaps.min() >= 0
    assert gaps.mean() < len(rows) * h / 10


def test_least_missing_triangles_by_brute_force():
    generator = np.random.default_rng(12)
    for _ in range(200):
        fewest = generator.integers(0, 4, 4)
        most = fewest + generator.integers(0, 4, 4)
        total = int(generator.integers(0, most.sum() + 1))
        ranges = (range(a, b + 1) for a, b in zip(fewest.tolist(), most.tolist(), strict=True))
        truth = min(sum(math.comb(k, 2) for k in ks) for ks in itertools.product(*ranges) if sum(ks) >= total)
        # The level is searched among 0, ..., m - 1: with k_i up to 6 of m = 4 rows it may stop short, never beyond.
        assert _least_missing(fewest, most, total) <= truth
        small = np.minimum(most, 3)
        if total <= small.sum() and (fewest <= small).all():
            ranges = (range(a, b + 1) for a, b in zip(fewest.tolist(), small.tolist(), strict=True))
            truth = min(sum(math.comb(k, 2) for k in ks) for ks in itertools.product(*ranges) if sum(ks) >= total)
            assert _least_missing(fewest, small, total) == truth


def test_bounds_along_rays_count_every_row_on_one():
    lattice = np.array([[x, y] for x in range(-1, 2) for y in range(-1, 2)], dtype=float)
    # From a corner two others are on each of three rays; from the center and the sides' middles at most two are.
    assert _most_on_rays(lattice.T.copy()).tolist() == [2, 2, 2, 2, 1, 2, 2, 2, 2]
    # One ray to the left and to the right of 0, whose keys are on either side of the jump from 4 to 0.
    assert _most_on_rays(np.array([[0.0, 1.0, 2.0, 3.0], [0.0, 0.0, -(2.0**-60), 2.0**-60]])).tolist()[0] == 3
    assert _most_on_rays(np.zeros((2, 3))).tolist() == [0, 0, 0]


def test_simplicial_counts_leave_32_bits():
    generator = np.random.default_rng(10)
    rows = generator.standard_normal((3000, 2))
    bound = Simplicial().box_bound(rows)
    box = np.array([[-1e-9, -1e-9]]), np.array([[1e-9, 1e-9]])
    score = bound.score(np.zeros((1, 2)), np.zeros(1, dtype=np.int64))[0]
    # A point of depth about 1/4 of C(3000, 3) = 4,495,501,000 triangles.
    assert score > 1.1e9
    assert score <= bound.upper(*box)[0] < score * 1.001
    assert bound.sensitivity_count == math.comb(2999, 2)


def test_depths_without_a_bound_say_so():
    with pytest.raises(TypeError, match="'projection' has no box bound"):
        Projection().box_bound(np.zeros((3, 2)))
    with pytest.raises(TypeError, match="'simplicial' has a box bound for up to two columns; got 3"):
        Simplicial().box_bound(np.zeros((9, 3)))
    with pytest.raises(TypeError, match="'custom' has no box bound, which branch and bound needs. Give"):
        CustomObjective(closeness, sensitivity=0.5).box_bound(np.zeros((3, 2)))


def test_a_custom_bound_is_checked_and_compiled_once():
    built = []

    def over_box(lower, upper, X):
        built.append(lower)
        return closeness_over_box(lower, upper, X)

    objective = CustomObjective(closeness, sensitivity=0.5, box_bound=over_box)
    for n in (1, 2):
        objective.box_bound(np.zeros((n, 2))).upper(np.zeros((3, 2)), np.ones((3, 2)))
    assert len(built) == 1
    assert objective != CustomObjective(closeness, sensitivity=0.5)
    with pytest.raises(TypeError, match="box_bound must be a function of"):
        CustomObjective(closeness, sensitivity=0.5, box_bound=1.0)
    for wrong, message in [(lambda a, b, X: 1.0, "box bound of 'custom' must return"), (lambda a, b, X: a, "a scalar")]:
        with pytest.raises(TypeError, match=message):
            CustomObjective(closeness, sensitivity=0.5, box_bound=wrong).box_bound(np.zeros((3, 2)))
    infinite = CustomObjective(closeness, sensitivity=0.5, box_bound=lambda a, b, X: pt.sum(X) * np.inf)
    with pytest.raises(ValueError, match="must be finite"):
        infinite.box_bound(np.ones((3, 2))).upper(np.zeros((1, 2)), np.ones((1, 2)))
