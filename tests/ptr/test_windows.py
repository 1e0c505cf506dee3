import numpy as np
import pytest
from replaced_rows import iqr, mad, tables_within

from pymc_dpdepth.ptr import windows

WINDOWS = {
    "median": (windows.median_window, np.median),
    "mad": (windows.mad_window, mad),
    "iqr": (windows.iqr_window, iqr),
}
FAR = 1000.0
VALUES = [-FAR, *np.arange(-1.0, 9.0, 0.5), FAR]  # halves of integers: breakpoints of tables of integers, and rows far


def small_tables(seed, count, most):
    generator = np.random.default_rng(seed)
    for _ in range(count):
        yield np.sort(generator.integers(0, 9, generator.integers(1, most + 1))).astype(np.float64)


@pytest.mark.parametrize("name", WINDOWS)
def test_nothing_replaced_gives_the_statistic(name):
    window, statistic = WINDOWS[name]
    for x in small_tables(0, 200, 12):
        assert window(x, 0) == pytest.approx((statistic(x), statistic(x)), abs=1e-12)


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_hold_every_table_within_k_rows(name):
    window, statistic = WINDOWS[name]
    for k, most, count in ((1, 9, 25), (2, 5, 4)):
        for x in small_tables(k, count, most):
            if len(x) < k:
                continue
            found = [statistic(table) for table in tables_within(x, k, VALUES)]
            low, high = window(x, k)
            assert low <= min(found) + 1e-12 and max(found) - 1e-12 <= high


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_are_attained_where_they_are_said_to_be(name):
    # The median's and the IQR's windows are the extremes themselves (n >= 9 leaves room between quartiles, and half of
    # an integer is fine enough for both); that of the MAD may be a little wider.
    window, statistic = WINDOWS[name]
    generator, slack = np.random.default_rng(3), []
    for n in (9, 10, 11, 13):
        x = np.sort(generator.permutation(40)[:n]).astype(np.float64)
        found = [statistic(table) for table in tables_within(x, 1, [-FAR, *np.arange(-1, 41, 0.5), FAR])]
        low, high = window(x, 1)
        slack.append(max(high - max(found), min(found) - low))
    if name == "mad":
        assert max(slack) < 8
    else:
        assert max(slack) == pytest.approx(0, abs=1e-9)


def test_mad_window_against_a_dense_search_over_centers():
    generator = np.random.default_rng(4)
    for _ in range(60):
        n, k = int(generator.integers(7, 30)), int(generator.integers(1, 3))
        x = np.sort(generator.integers(0, 64, n)).astype(np.float64)
        a, b = windows.median_window(x, k)
        centers = np.arange(a, b + 1 / 8, 1 / 8)  # breakpoints of integers are halves, so they are among these
        distances = np.sort(np.abs(x[:, None] - centers), axis=0)
        middle = [(n - 1) // 2, n // 2]
        low = np.mean([distances[i - k].min() for i in middle])
        high = np.mean([distances[i + k].max() for i in middle])
        assert windows.mad_window(x, k) == pytest.approx((low, high), rel=1e-14)  # widened by k 2^-50


def test_breakpoints_inside_the_window_matter():
    # The MAD as a function of its center peaks inside the window; the ends alone would give 4 for the largest.
    x = np.array([0.0, 3.0, 3.5, 4.0, 5.0, 6.0, 10.0, 20.0, 20.0])
    ends = [np.sort(np.abs(x - c))[5] for c in windows.median_window(x, 1)]
    assert ends == [4.0, 4.0] and windows.mad_window(x, 1)[1] == pytest.approx(5.0, rel=1e-14)


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("spread", [3, 12, 10**6])  # many ties, some, none
def test_windows_are_nested_between_neighbours(name, spread):
    # Integers, so halves and quarters are exact and the inclusion holds to the bit.
    window, _ = WINDOWS[name]
    generator = np.random.default_rng(spread)
    for _ in range(800):
        n = int(generator.integers(1, 20))
        x = generator.integers(0, spread, n).astype(np.float64)
        y = x.copy()
        y[generator.integers(n)] = generator.choice([x[generator.integers(n)], -(10.0**9), 10.0**9, spread // 2])
        x, y = np.sort(x), np.sort(y)
        for k in range(n + 1):
            inner, outer = window(x, k), window(y, k + 1)
            assert outer[0] <= inner[0] and inner[1] <= outer[1]
            wider = window(x, k + 1)
            assert wider[0] <= inner[0] and inner[1] <= wider[1]


def tables_of_doubles(generator, n):
    """Return rows that rounding hurts: near one another and far from 0, of all sizes, subnormal, or tied."""
    kind = generator.integers(6)
    if kind == 0:
        return generator.normal(size=n)
    if kind == 1:
        return 1.0 + 2.0**-52 * generator.integers(-4, 5, n)
    if kind == 2:
        return generator.integers(-3, 4, n) * 5e-324
    if kind == 3:
        return 10.0 ** generator.uniform(-5, 5, n) * generator.choice([-1, 1], n)
    if kind == 4:
        return generator.integers(0, 3, n) * generator.choice([0.1, 1e-310, 1e70])
    return np.repeat(generator.normal(size=n), 3)[:n]


def replaced(x, generator):
    y = x.copy()
    others = [x[generator.integers(len(x))], -1e76, 1e76, x.mean(), (x[0] + x[-1]) / 2, np.nextafter(x[0], 9), 0.0]
    y[generator.integers(len(x))] = others[generator.integers(len(others))]
    return y


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_are_nested_to_the_bit_on_doubles(name):
    window, _ = WINDOWS[name]
    generator = np.random.default_rng(7)
    for _ in range(4000):
        x = tables_of_doubles(generator, int(generator.integers(1, 16)))
        x, y = np.sort(x), np.sort(replaced(x, generator))
        assert window(x, 0)[0] == window(x, 0)[1]  # one number, the statistic
        for k in range(len(x) + 1):
            here, there, wider = window(x, k), window(y, k + 1), window(x, k + 1)
            assert there[0] <= here[0] <= here[1] <= there[1]
            assert wider[0] <= here[0] and here[1] <= wider[1]


@pytest.mark.parametrize("cap", [0.5, 2.0, 3.3, 2.0**20])
def test_diameter_over_the_ball_does_not_fall_by_rounding(cap):
    # Windows that grow by as little as a double can, near where the highest value meets the cap.
    generator = np.random.default_rng(8)
    for _ in range(3000):
        a, low = generator.uniform(-1.2, 1.2), generator.uniform(0.01, 1.0) / min(cap, 50.0)
        window = np.array([a, a + generator.choice([0.0, 1e-16, 0.1]), low, low * (1 + generator.choice([0.0, 0.2]))])
        before = windows.ball_diameter(window[None], cap)
        for _ in range(4):
            j = generator.integers(4)
            window[j] = np.nextafter(window[j], [-9.0, 9.0, 0.0, 9.0][j])
            after = windows.ball_diameter(window[None], cap)
            assert before <= after <= cap
            before = after


def test_beyond_half_of_the_rows_anything_is_possible():
    x = np.arange(9.0)
    assert windows.median_window(x, 4) == (0.0, 8.0)
    assert windows.median_window(x, 5) == (-np.inf, np.inf)
    assert windows.mad_window(x, 5) == (0.0, np.inf)
    assert windows.iqr_window(x, 9) == (0.0, np.inf)


def test_diameter_over_the_ball_is_the_supremum_of_its_envelope():
    # Against a dense search over t; the supremum is at a turning point, which the grid meets up to its step.
    generator = np.random.default_rng(5)
    t = np.linspace(-1, 1, 40_001)
    for cap in (0.5, 2.0, 50.0):
        for _ in range(40):
            a = generator.uniform(-1.5, 1.5)
            window = np.array([a, a + generator.exponential(0.1), generator.uniform(0.05, 0.5), 0.0])
            window[3] = window[2] * (1 + generator.exponential(0.3))
            highest = np.minimum(cap, np.maximum(np.abs(t - window[0]), np.abs(t - window[1])) / window[2])
            lowest = np.minimum(cap, np.maximum(0, np.maximum(window[0] - t, t - window[1])) / window[3])
            found = windows.ball_diameter(window[None], cap)
            step = (t[1] - t[0]) / window[2]
            assert np.max(highest - lowest) <= found * (1 + 1e-12) <= np.max(highest - lowest) + 2 * step
