import pytest

from pymc_dpdepth.depths.univariate import DUAL, SMOOTHED_DUAL, TUKEY, univariate_count


def test_counts_by_code():
    assert [univariate_count(TUKEY.code, le, ge) for le, ge in ((0, 4), (3, 2), (4, 4))] == [0, 2, 4]
    assert [univariate_count(DUAL.code, le, ge) for le, ge in ((0, 4), (3, 2), (4, 4))] == [0, 6, 16]


def test_the_product_is_taken_in_64_bits():
    n = 3_000_000_000
    assert univariate_count(DUAL.code, n, n) == n**2 <= 2**63 - 1


@pytest.mark.parametrize("depth", [TUKEY, DUAL])
def test_denominator_is_the_count_of_a_point_where_all_rows_are(depth):
    for n in (1, 2, 9):
        assert univariate_count(depth.code, n, n) == depth.denominator(n)
        assert depth.sensitivity(n) == depth.sensitivity_count(n) / depth.denominator(n) == 1 / n
        assert depth.upper_bound(n) == 1.0
    assert depth.sensitivity_count(0) == 0
    assert depth.sensitivity(0) == 0.0 == depth.upper_bound(0)


@pytest.mark.parametrize("depth", [TUKEY, DUAL])
@pytest.mark.parametrize("n", range(1, 12))
def test_sensitivity_count_is_the_largest_move_of_any_count_pair(depth, n):
    """A row is below, at or above the point. Try all splits of n rows in three, and every change of one row."""

    def count(below, equal, above):
        return univariate_count(depth.code, below + equal, equal + above)

    worst = 0
    for below in range(n + 1):
        for equal in range(n + 1 - below):
            split = (below, equal, n - below - equal)
            for source in range(3):
                for target in range(3):
                    if split[source]:
                        moved = list(split)
                        moved[source] -= 1
                        moved[target] += 1
                        worst = max(worst, abs(count(*moved) - count(*split)))
    assert worst == depth.sensitivity_count(n)


def test_smoothed_dual():
    assert SMOOTHED_DUAL.smoothed
    assert [SMOOTHED_DUAL.sensitivity(n) for n in (0, 1, 2, 10)] == [0.0, 0.25, 0.25, 0.09]
    assert [SMOOTHED_DUAL.upper_bound(n) for n in (0, 1, 10)] == [0.0, 0.25, 0.25]
    with pytest.raises(ValueError, match="not counted"):
        SMOOTHED_DUAL.sensitivity_count(3)


@pytest.mark.parametrize("n", range(1, 9))
def test_smoothed_sensitivity_is_the_largest_move_of_a_share(n):
    """F = (S + p) / n, S in [0, n-1] from the other rows, p in [0, 1] from this one: a grid of both, ends included."""
    steps = 40
    shares = [k / steps for k in range(steps * (n - 1) + 1)]
    worst = 0.0
    for others in shares:
        values = [(others + p / steps) / n * (1 - (others + p / steps) / n) for p in range(steps + 1)]
        worst = max(worst, max(values) - min(values))
    assert worst == pytest.approx(SMOOTHED_DUAL.sensitivity(n), abs=1e-14)
