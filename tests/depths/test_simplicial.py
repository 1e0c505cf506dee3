"""Simplicial depth against its definition, published counts and hard cases; truth is rational arithmetic."""

import itertools
import json
import math
import subprocess
import sys

import numpy as np
import pymc as pm
import pytest
from brute_force_simplicial import simplicial_count
from pytensor.compile.mode import Mode
from reference_values import REAL, TETRAHEDRON, TOYS

import pymc_dpdepth as dpd
from pymc_dpdepth.depths import Simplicial, as_depth

SIMPLICIAL = Simplicial()
PYTHON = Mode(linker="py")


def counts(points, rows):
    """Return the counts of simplices behind the depths, which must be the counts over C(n, d + 1) to the last bit."""
    rows = np.asarray(rows, dtype=float)
    total = math.comb(len(rows), rows.shape[1] + 1)
    depths = SIMPLICIAL.evaluate(points, rows)
    if not total:
        assert not depths.any()
        return [0] * len(depths)
    found = [round(depth * total) for depth in depths]
    assert depths.tolist() == [count / total for count in found]  # below 2^53 here, so that one rounding is left
    return found


def count_by_angle(point, rows):
    """Return the count of closed triangles from all cross products of integers, each missing one by its first row."""
    rows = np.asarray(rows, dtype=np.int64)
    vectors = rows - np.asarray(point, dtype=np.int64)
    vectors = vectors[vectors.any(axis=1)]
    cross = np.multiply.outer(vectors[:, 0], vectors[:, 1])
    cross -= cross.T
    same_ray = (cross == 0) & (vectors @ vectors.T > 0)
    followers = (cross > 0).sum(axis=1) + np.triu(same_ray, 1).sum(axis=1)
    return math.comb(len(rows), 3) - sum(math.comb(int(k), 2) for k in followers)


# Published counts


@pytest.mark.parametrize("toy", TOYS.values(), ids=TOYS)
def test_toys(toy):
    queries = toy["queries"]
    assert counts([query["z"] for query in queries], toy["X"]) == [query["SD_closed_count"] for query in queries]


def test_a_toy_in_space():
    assert counts([TETRAHEDRON["z"]], TETRAHEDRON["X"]) == [TETRAHEDRON["SD_closed_count"]] == [1]


@pytest.mark.parametrize("table", REAL.values(), ids=REAL)
def test_real_tables_at_rows_mean_and_median(table):
    """The mean and the coordinatewise median come as integers, times n and times 2; so do the rows here."""
    rows, facts = np.array(table["data_int"]), table["exact"]
    at_rows = counts(rows, rows)
    assert at_rows == facts["SD_closed_count_at_each_point"]
    deepest = facts["simplicial_deepest_data_point"]
    assert np.argmax(at_rows) == deepest["index0"]
    assert counts([deepest["point"]], rows) == [deepest["count"]] == [max(at_rows)]
    assert counts([facts["mean_times_n"]], rows * len(rows)) == [facts["HD_SD_count_at_mean"][1]]
    assert counts([facts["coordwise_median_times2"]], rows * 2) == [facts["HD_SD_count_at_cwmed"][1]]


# The definition, in fractions


def small_tables(d, cases, sizes, largest, seed):
    """Yield tables of small integers, with ties, duplicates, antipodal and collinear rows, and points among them.

    Points are on half-integers; all is doubled, so that they are integers too.
    """
    generator = np.random.default_rng(seed)
    for case in range(cases):
        n = int(generator.integers(0, sizes))
        rows = 2 * generator.integers(-largest, largest + 1, size=(n, d))
        point = generator.integers(-2 * largest, 2 * largest + 1, size=d)
        if case % 3 == 0:
            point = 2 * (point // 2)
        if case % 4 == 0 and n:
            point = rows[0]
        if case % 5 == 0 and d > 1:
            rows[:, case % d] = point[case % d] if case % 2 else 0  # all in a line or plane, with the point or not
        if case % 7 == 0 and n > 1:
            rows[n // 2 :] = 2 * point - rows[: n - n // 2]  # antipodal
        yield point, rows


@pytest.mark.parametrize(
    ("d", "cases", "sizes", "largest"), [(1, 1500, 9, 4), (2, 4000, 9, 2), (2, 300, 9, 50), (3, 1200, 8, 1)]
)
def test_every_simplex_of_small_integer_tables(d, cases, sizes, largest):
    for point, rows in small_tables(d, cases, sizes, largest, seed=d):
        expected = simplicial_count(point.tolist(), rows.tolist())
        assert counts([point], rows) == [expected], (point, rows)


def test_every_simplex_of_tables_with_larger_integers_in_space():
    for point, rows in small_tables(3, 60, 7, 50, seed=5):
        assert counts([point], rows) == [simplicial_count(point.tolist(), rows.tolist())]


@pytest.mark.parametrize("d", [2, 3])
def test_close_calls_of_doubles_are_those_of_rational_arithmetic(d):
    """Multiples of 0.1 and 0.7 lie near common lines and planes, and on them only after rounding."""
    generator = np.random.default_rng(d)
    for _ in range(150 if d == 2 else 25):
        steps = generator.integers(-3, 4, size=(7, 1))
        rows = 0.1 + steps * np.array([[0.1, 0.7, 0.3]])[:, :d]
        if d == 3:
            rows += generator.integers(-1, 2, size=(7, 1)) * np.array([[0.2, 0.1, 0.6]])
        point = np.full(d, 0.1)
        points = [point, np.nextafter(point, 1.0), np.nextafter(point, [-1.0, *[1.0] * (d - 1)])]
        assert counts(points, rows) == [simplicial_count(p.tolist(), rows.tolist()) for p in points]


@pytest.mark.parametrize("scale", [2.0**-40, 2.0**40, 1e-9])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_units_do_not_matter(d, scale):
    generator = np.random.default_rng(17)
    rows, points = generator.standard_normal((30, d)), generator.standard_normal((6, d)) / 2
    points = np.vstack([points, rows[:4], np.zeros((1, d))])
    expected = counts(points, rows)
    assert counts(scale * points, scale * rows) == expected  # 1e-9 rounds, but no row is so close to a side of these
    integers, queries = generator.integers(-4, 5, (30, d)), generator.integers(-2, 3, (6, d))
    expected = counts(queries, integers)
    assert len(set(expected)) > 1
    shift = np.array([2**20, -(10**6), 12345])[:d]
    assert counts(queries + shift, integers + shift) == expected
    if d == 3:
        return
    assert counts(scale * queries, scale * integers) == expected or scale == 1e-9


@pytest.mark.parametrize("d", [1, 2, 3])
def test_entries_at_the_ends_of_the_doubles(d):
    cube = np.array(list(itertools.product((-1.0, 0.0, 1.0), repeat=d)))[:14]
    points = np.vstack([cube[3:8], np.zeros((1, d)), np.full((1, d), 0.5)])
    expected = counts(points, cube)
    for scale in (1e308, 2.0**1023, 2.0**600, 2.0**-600, 2.0**-1073):
        assert counts(scale * points, scale * cube) == expected, scale


# Large tables


def test_counts_beyond_32_bits():
    """C(n, 3) alone overflows 32 bits from n = 1,292 on.

    At the centre of an angularly symmetric law the mean is 1/4 whatever one vertex is. So only triangles that share
    two vertices or more are correlated, the variance is at most (3 (n - 3) + 1) (1/4 * 3/4) / C(n, 3) < 4e-7, and 0.01
    is more than 15 standard deviations.
    """
    rows = np.random.default_rng(1).standard_normal((3_000, 2))
    assert SIMPLICIAL.evaluate([[0.0, 0.0]], rows)[0] == pytest.approx(1 / 4, abs=0.01)
    integers = np.rint(1e5 * rows).astype(np.int64)
    points = [[0, 0], integers[0], [50_000, 20_000]]
    assert counts(points, integers) == [count_by_angle(point, integers) for point in points]


@pytest.mark.parametrize("point", [(0, 0), (1, 3), (10**8, 10**8 + 7), (3, 10**7), (-4, 0), (10**8, 0)])
def test_many_ties_and_crowded_angles(point):
    generator = np.random.default_rng(2)
    grid = generator.integers(-4, 5, size=(600, 2))
    line = np.arange(-300, 300)[:, None] * np.array([[1, 2]])
    crowded = np.vstack([generator.integers(10**6, 10**6 + 500, size=(400, 2)), [[0, 10**8]], -grid[:50]])
    for rows in (grid, line, crowded, np.vstack([grid, line, crowded])):
        assert counts([point], rows) == [count_by_angle(point, rows)]


def test_the_largest_counts_fit():
    from pymc_dpdepth.depths.binomials import pairs, quadruples, triples

    for k in (*range(9), 2_642_245, 2_642_246, 3_810_777, 3_810_778, 3_810_779):
        assert triples(k) == math.comb(k, 3)
    assert math.comb(3_810_779, 3) <= np.iinfo(np.int64).max < math.comb(3_810_780, 3)
    assert [quadruples(k) for k in (*range(6), 500)] == [math.comb(k, 4) for k in (*range(6), 500)]
    assert pairs(2**32) == math.comb(2**32, 2)


# Analytic facts


@pytest.mark.parametrize("n", [3, 4, 5, 6, 8, 9, 31, 100, 200_000, 200_001])
def test_centre_of_a_polygon(n):
    """Around a regular n-gon's centre; the corners are rounded, which keeps their angular order and antipodal pairs."""
    turns = 2 * np.pi * np.arange(n if n % 2 else n // 2) / n
    corners = np.rint(2**30 * np.column_stack([np.cos(turns), np.sin(turns)]))
    if n % 2:
        expected = n * (n**2 - 1) // 24
    else:
        corners = np.vstack([corners, -corners])
        expected = math.comb(n, 3) - n * math.comb(n // 2 - 1, 2)
    assert counts([[0, 0]], corners) == [expected]


def test_corners_of_a_simplex_and_a_cross():
    for d in (1, 2, 3):
        simplex = np.vstack([np.zeros((1, d)), np.eye(d)])
        assert counts([np.full(d, 1 / 8), np.zeros(d), np.full(d, 2.0)], simplex) == [1, 1, 0]
    # An octahedron: every four of its six corners hold an antipodal pair, so its centre is in all C(6, 4) tetrahedra.
    octahedron = np.vstack([np.eye(3), -np.eye(3)])
    assert counts([[0, 0, 0]], octahedron) == [15]
    # A corner is in those that it is a vertex of.
    assert counts([[1, 0, 0]], octahedron) == [math.comb(5, 3)]


def test_symmetric_rows_in_space():
    """Antipodal pairs in general position: four rows with a pair among them contain 0. Of the 16 choices of signs of
    four rows without one, 2 make the coefficients of their only linear relation of one sign."""
    half = np.random.default_rng(3).integers(-1000, 1001, size=(9, 3))
    rows = np.vstack([half, -half])
    without_pair = math.comb(9, 4) * 2**4
    assert counts([[0, 0, 0]], rows) == [math.comb(18, 4) - without_pair + math.comb(9, 4) * 2]


# Traps


def test_a_single_tetrahedron_counts():
    tetrahedron = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    inside, corner, on_edge, on_face = [0.1, 0.1, 0.1], [1, 0, 0], [0.5, 0.5, 0], [0.25, 0.25, 0]
    assert SIMPLICIAL.evaluate([inside, corner, on_edge, on_face], tetrahedron).tolist() == [1.0, 1.0, 1.0, 1.0]
    assert SIMPLICIAL.evaluate([[0.4, 0.4, 0.4], [0.25, 0.25, -1e-300]], tetrahedron).tolist() == [0.0, 0.0]


def test_a_row_itself_in_space():
    rows = np.random.default_rng(4).integers(-5, 6, size=(9, 3))
    assert counts(rows, rows) == [simplicial_count(row.tolist(), rows.tolist()) for row in rows]
    assert min(counts(rows, rows)) >= math.comb(8, 3)


def test_multiplicities_count():
    assert counts([[0], [5]], [[0], [0], [0], [10], [20]]) == [9, 6]
    assert counts([[0], [5]], [[0], [10], [20]]) == [2, 2]


@pytest.mark.parametrize("d", [2, 3])
def test_a_constant_column(d):
    rows = np.zeros((9, d))
    rows[:, 0] = np.arange(9)
    for shift in (0.0, 0.1):
        flat = rows + np.array([0.0, *[shift] * (d - 1)])
        # Every d + 1 rows that are not all on one side of the fifth one.
        assert counts([flat[4], flat[4] + 1e-9], flat) == [math.comb(9, d + 1) - 2 * math.comb(4, d + 1), 0]


@pytest.mark.parametrize("d", [1, 2, 3])
def test_too_few_rows_and_all_rows_equal(d):
    point = np.zeros((1, d))
    for n in range(d + 1):
        assert SIMPLICIAL.evaluate(point, np.zeros((n, d))).tolist() == [0.0]
        assert SIMPLICIAL.sensitivity(n, d) == SIMPLICIAL.upper_bound(n, d) == 0.0
    for n in (d + 1, d + 5):
        assert SIMPLICIAL.evaluate([*point, [1e-300] * d], np.zeros((n, d))).tolist() == [1.0, 0.0]
        assert SIMPLICIAL.upper_bound(n, d) == 1.0


@pytest.mark.parametrize("n", [63, 64, 65, 66, 67, 130])
def test_rows_on_both_sides_of_a_word_in_space(n):
    """Points of the moment curve (t, t^2, t^3) are in convex position, so one is in the tetrahedra it is a vertex of.

    No four of them, or three and the origin (t = 0), are in a plane."""
    rows = np.array([[t, t**2, t**3] for t in range(1, n + 1)], dtype=float)
    assert counts([rows[0], rows[-1], [0.0, 0.0, 0.0]], rows) == [math.comb(n - 1, 3)] * 2 + [0]
    both = np.vstack([rows, -rows])  # four rows without an antipodal pair: as in `test_symmetric_rows_in_space`
    expected = math.comb(2 * n, 4) - math.comb(n, 4) * 14
    assert counts([[0, 0, 0]], both) == [expected]


# Inputs, the registry and many points


def test_unusable_inputs_are_refused_by_name():
    rows = np.arange(12.0).reshape(6, 2)
    with pytest.raises(ValueError, match=r"points must have shape \(k, d\).*points\[None, :\]"):
        SIMPLICIAL.evaluate([0.0, 1.0], rows)
    with pytest.raises(ValueError, match="as many columns as X, 2; got 3"):
        SIMPLICIAL.evaluate([[0.0, 1.0, 2.0]], rows)
    with pytest.raises(ValueError, match=r"X must be finite; .* index \[1\]"):
        SIMPLICIAL.evaluate([[0.0, 1.0]], [[0.0, np.nan]])
    with pytest.raises(ValueError, match=r"points must be finite; .* index \[0\]"):
        SIMPLICIAL.evaluate([[np.nan, 1.0]], rows)
    with pytest.raises(TypeError, match="'simplicial' has no directions"):
        SIMPLICIAL.with_directions(dpd.Directions.axes(2))


def test_sizes_beyond_the_limits_are_refused_with_the_cure():
    with pytest.raises(ValueError, match="up to 3 columns; got 4. Choose columns, or use .* halfspace"):
        SIMPLICIAL.evaluate(np.zeros((1, 4)), np.zeros((6, 4)))
    with pytest.raises(ValueError, match="up to 500 rows.*got 501. Choose two columns, or use halfspace"):
        SIMPLICIAL.evaluate(np.zeros((1, 3)), np.zeros((501, 3)))
    assert SIMPLICIAL.prepare(np.zeros((500, 3)))[0].shape == (3, 500)
    too_many = np.broadcast_to(np.zeros((1, 2)), (3_810_780, 2))
    with pytest.raises(ValueError, match=r"C\(n, 3\) simplices.*got n = 3810780 rows. Use halfspace"):
        SIMPLICIAL.prepare(too_many)


def test_the_registry_and_the_public_record():
    assert as_depth("simplicial") == SIMPLICIAL == dpd.Simplicial()
    assert SIMPLICIAL.unit_free and not SIMPLICIAL.differentiable
    assert SIMPLICIAL.resolve(3) is SIMPLICIAL
    assert json.loads(json.dumps(SIMPLICIAL.describe()))["name"] == "simplicial"


@pytest.mark.parametrize(("n", "d", "k"), [(2_000, 1, 300), (500, 2, 301), (40, 3, 37)])
def test_many_points_on_all_cores_are_the_same_as_one_by_one(n, d, k):
    generator = np.random.default_rng(6)
    rows, points = generator.standard_normal((n, d)), generator.standard_normal((k, d))
    kernel, prepared = SIMPLICIAL.kernel(), SIMPLICIAL.prepare(rows)
    expected = [kernel(point, *prepared) for point in points]
    assert len(set(expected)) > 1
    assert SIMPLICIAL.evaluate(points, rows).tolist() == expected


FORKED = """
import multiprocessing, warnings
import numpy as np
from pymc_dpdepth.depths import Simplicial
rows = np.random.default_rng(0).standard_normal((2_000, 2))
def evaluate(_):
    return Simplicial().evaluate(rows[:100], rows).sum()
if __name__ == "__main__":
    here = evaluate(0)
    warnings.simplefilter("ignore", DeprecationWarning)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(evaluate, range(2)).get(timeout=100) == [here, here]
    print("done")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked safely on Linux alone")
def test_a_forked_process_can_evaluate(tmp_path):
    script = tmp_path / "forked.py"
    script.write_text(FORKED)
    result = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=200)
    assert result.stdout.strip() == "done", result.stderr


# In a model


def value_of_potential(rows, mode):
    """Return the Potential of simplicial depth, epsilon 2, as a function of a point of the location."""
    with pm.Model() as model:
        location = pm.Normal("location", 0, 3, shape=rows.shape[1])
        potential = dpd.exponential_mechanism("median", location, rows, depth="simplicial", epsilon=2.0)
    function = model.compile_logp(vars=[potential], mode=mode)
    return lambda point: float(function({"location": point}))


# The compiled graph is the same for every d: the kernel branches. `perform` from Python saves its compilation.
@pytest.mark.parametrize(("d", "mode"), [(1, PYTHON), (2, None), (3, PYTHON)], ids=["line", "plane", "space"])
def test_the_potential_of_a_model(d, mode):
    rows = np.random.default_rng(7).integers(-3, 4, size=(12, d)).astype(float)
    value = value_of_potential(rows, mode)
    beta = 2.0 / (2 * (d + 1) / 12)
    points = np.vstack([rows[0], np.zeros(d), np.full(d, 0.5)])
    depths = SIMPLICIAL.evaluate(points, rows)
    assert depths.any()
    assert [value(point) for point in points] == pytest.approx((beta * depths).tolist(), rel=1e-15)


def test_a_model_with_too_few_rows_is_its_prior():
    value = value_of_potential(np.ones((2, 2)), PYTHON)
    assert [value(point) for point in (np.ones(2), np.zeros(2))] == [0.0, 0.0]
