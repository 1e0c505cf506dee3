"""The release: what is paid, when, what noise is added to what, folds, and families that break the rules."""

import numpy as np
import pytest
from extrema_cases import BOUNDS, normal_rows

import pymc_dpdepth as dpd
from pymc_dpdepth.extrema import Family, Gaussian, Statistic, bounded_statistic
from pymc_dpdepth.extrema.noisy_sums import Folds
from pymc_dpdepth.extrema.rows import read_rows
from pymc_dpdepth.privacy.noise import IntegerNoise
from pymc_dpdepth.randomness import SeededBits, SystemBits

EVEN = {"mean": 0.5, "covariance": 1.5}


@pytest.fixture
def additions(monkeypatch):
    """Record what noise is added to what, and add none."""
    seen = []

    def add(self, counts, bits):
        assert not bits.simulation
        seen.append((self.scale, self.sensitivity, self.epsilon, np.array(counts)))
        return np.array(counts)

    monkeypatch.setattr(IntegerNoise, "add", add)
    return seen


def interval(rows, family=None, epsilon=EVEN, **options):
    options = {"replicates": 99} | options
    return dpd.extrema_interval(rows, family=family or Gaussian(BOUNDS), epsilon=epsilon, **options)


def test_each_sum_gets_noise_once_at_its_scale(additions):
    rows = normal_rows()
    ci = interval(rows)
    family, n = Gaussian(BOUNDS), len(rows)
    assert len(additions) == 2
    for statistic, (scale, sensitivity, epsilon, counts) in zip(
        family.statistics(n, ["a", "b", "c"], {}), additions, strict=True
    ):
        assert (counts == family.counts(rows, statistic, {})).all()
        assert epsilon == EVEN[statistic.name]
        assert sensitivity == statistic.sensitivity
        assert scale == pytest.approx(sensitivity / epsilon, rel=1e-15)
        assert ci.statistics[statistic.name] == pytest.approx(counts * statistic.grid, rel=1e-15)
    assert ci.noise_scales == pytest.approx({"mean": 24.0 / 0.5, "covariance": 96.0 / 1.5})
    assert ci.sensitivities == {"mean": 24.0, "covariance": 96.0}


def changes(additions, rows, neighbour, **options):
    """Return the L1 changes of the integers, all parts together, by release, with their sensitivities."""
    found = []
    for table in (rows, neighbour):
        additions.clear()
        interval(table, **options)
        found.append([counts.astype(object) for *_, counts in additions])
    sensitivities = [sensitivity for _, sensitivity, *_ in additions]
    return [int(np.abs(a - b).sum()) for a, b in zip(*found, strict=True)], sensitivities


def with_fixed_folds(monkeypatch, n, count):
    folds = Folds.at_random(n, count, SeededBits(3))
    monkeypatch.setattr(Folds, "at_random", classmethod(lambda cls, *_: folds))


@pytest.mark.parametrize("options", [{}, {"correction": "cv"}, {"correction": "cv", "final": "fresh"}], ids=str)
def test_neighbours_differ_by_at_most_the_sensitivity_in_integers(additions, monkeypatch, options):
    rows = normal_rows(40)
    with_fixed_folds(monkeypatch, 40, 5)
    reached = 0.0
    for row in ([4.0] * 3, [-4.0] * 3, [1e300] * 3, [0.0] * 3, [4.0, -4.0, 4.0]):
        for old in ([0.0] * 3, [4.0] * 3, rows[0]):
            rows[0] = old
            neighbour = rows.copy()
            neighbour[0] = row
            moved, sensitivities = changes(additions, rows, neighbour, **options)
            assert len(moved) == (4 if options.get("final") else 2)
            assert all(a <= b for a, b in zip(moved, sensitivities, strict=True))
            reached = max(reached, *(a / b for a, b in zip(moved, sensitivities, strict=True)))
    assert reached == 1.0


def test_folds_get_the_full_epsilon_and_fresh_sums_a_half_each(additions):
    rows = normal_rows(43)
    ci = interval(rows, correction="cv", folds=4)
    assert [epsilon for *_, epsilon, _ in additions] == [0.5, 1.5]
    assert [counts.size for *_, counts in additions] == [4 * 3, 4 * 6]
    assert ci.released.rows == (11, 11, 11, 10) and ci.epsilons == EVEN and ci.epsilon == 2.0
    assert ci.folds is ci.released
    # No noise here, so the folds add up to the whole.
    assert ci.statistics["mean"] == pytest.approx(interval(rows).statistics["mean"], rel=1e-15)
    additions.clear()
    ci = interval(rows, correction="cv", folds=4, final="fresh")
    assert [epsilon for *_, epsilon, _ in additions] == [0.25, 0.75, 0.25, 0.75]
    assert [counts.size for *_, counts in additions] == [3, 6, 4 * 3, 4 * 6]
    assert ci.epsilons == EVEN and ci.epsilon == 2.0
    assert ci.released.rows == (43,) and ci.folds.rows == (11, 11, 11, 10)


def test_folds_are_of_equal_sizes_and_random():
    """Each row is in a fold with equal probability: 4,000 splits of 7 rows into 3, sd of a share .0075, 6 sd."""
    assert Folds.at_random(7, 3, SystemBits()).sizes == (3, 2, 2)
    bits = SeededBits(1)
    labels = np.array([Folds.at_random(7, 3, bits).labels for _ in range(4000)])
    assert (np.sort(labels, axis=1) == [0, 0, 0, 1, 1, 2, 2]).all()
    for part, share in enumerate((3 / 7, 2 / 7, 2 / 7)):
        assert np.abs((labels == part).mean(axis=0) - share).max() < 6 * 0.0079
    # Two rows are in the same fold with probability (3 * 2 + 2 + 2) / (7 * 6).
    together = (labels[:, 0] == labels[:, 6]).mean()
    assert abs(together - 10 / 42) < 6 * 0.0068
    pieces = list(Folds.at_random(7, 3, bits).split(read_rows(np.arange(7.0)[:, None])))
    assert sorted(np.concatenate([some for _, some in pieces])[:, 0]) == list(range(7))


def test_the_charge_comes_before_the_noise_and_after_the_sums(additions, ledger):
    order = []

    class Watched(Gaussian):
        name = "watched"

        def counts(self, *arguments):
            order.append("sum")
            return super().counts(*arguments)

    charge = ledger.charge
    ledger.charge = lambda **cost: (order.append("charge"), charge(**cost), order.append(f"noise {len(additions)}"))
    interval(normal_rows(), Watched(BOUNDS), ledger=ledger, max_rows_per_unit=3)
    assert order == ["sum", "sum", "charge", "noise 0"]
    assert ledger.charges == [(6.0, 0.0, "extrema_interval")] and len(additions) == 2


def test_a_refusal_leaves_nothing(additions, empty_ledger):
    with pytest.raises(dpd.BudgetExceededError):
        interval(normal_rows(), ledger=empty_ledger)
    assert not additions and not empty_ledger.charges


# A family of a user


class Shares(Family):
    """Shares of ones, and in a second stage how many rows have more ones than the noisy mean."""

    name = "shares"
    guarantee = "exact"  # it says so itself, which the record does not believe
    statistic_names = ("ones", "many")

    def statistics(self, n, columns, released):
        if not released:
            return (bounded_statistic("ones", [0] * len(columns), [1] * len(columns), n),)
        return () if "many" in released else (bounded_statistic("many", [0], [1], n),)

    def later_sensitivities(self, n, columns):
        return {"many": bounded_statistic("many", [0], [1], n).sensitivity}

    def entries(self, rows, name, released):
        if name == "ones":
            return rows
        return (rows.sum(axis=1, keepdims=True) > released["ones"].sum() / 40).astype(float)

    def estimates(self, sums, n, deviations):
        return sums["ones"] / n

    def model(self, sums, n, deviations):
        return {"share": np.clip(sums["ones"] / n, 0.01, 0.99)}

    def simulate(self, model, n, replicates, generator):
        return {"ones": generator.binomial(n, model["share"], (replicates, len(model["share"]))).astype(float)}


def ones(n=40, k=3, seed=2):
    return (np.random.default_rng(seed).random((n, k)) < [0.2, 0.5, 0.8][:k]).astype(float)


def test_a_family_of_a_user_with_two_stages(additions, ledger):
    ci = interval(ones(), Shares(), 3.0, ledger=ledger)
    assert ci.epsilons == {"ones": 1.5, "many": 1.5} and ledger.charges == [(3.0, 0.0, "extrema_interval")]
    assert ci.guarantee == "float64" and ci.selected == "x2"
    assert ci.statistics["ones"] == pytest.approx(ones().sum(axis=0))
    many = (ones().sum(axis=1) > ones().sum() / 40).sum()
    assert ci.statistics["many"] == pytest.approx([many])
    assert interval(ones(), Shares(), {"ones": 1.0, "many": 0.5}).epsilon == 1.5


def test_the_second_stage_of_folds_sees_the_sum_of_all(additions):
    seen = []

    class Watched(Shares):
        def entries(self, rows, name, released):
            seen.append({key: value.copy() for key, value in released.items()})
            return super().entries(rows, name, released)

    interval(ones(), Watched(), 3.0, correction="cv", folds=4)
    late = [known["ones"] for known in seen if known]
    assert len(late) == 4 and all((known == late[0]).all() for known in late)
    assert late[0] == pytest.approx(ones().sum(axis=0))


GOOD = bounded_statistic("ones", [0] * 3, [1] * 3, 40)


def changed(**fields):
    return Statistic(**{name: getattr(GOOD, name) for name in Statistic.__dataclass_fields__} | fields)


class Louder(Statistic):
    """Its counts are beyond its own bounds."""

    def counts(self, entries):
        return np.full((len(entries), self.size), 2**40)


@pytest.mark.parametrize(
    ("statistic", "words"),
    [
        (changed(name="other"), "one of"),
        (changed(grid=0.3), "power of two"),
        (changed(grid=-0.5), "power of two"),
        (changed(sensitivity=0), "integer >= 1"),
        (changed(sensitivity=1.5), "integer >= 1"),
        (changed(sensitivity=True), "integer >= 1"),
        (changed(sensitivity=int(GOOD.upper[0]) - 1), "single entry"),
        (changed(size=3.0), "size"),
        (changed(lower=GOOD.upper + 1), "lower <= upper"),
        (changed(lower=GOOD.lower.astype(float)), "64-bit integers"),
        (changed(size=2), "64-bit integers"),
        (changed(upper=np.full(3, 2**58)), "coarser"),
        ("ones", "objects of Statistic"),
        (Louder(**vars(GOOD)), "objects of Statistic itself"),
    ],
    ids=str,
)
def test_statistics_of_a_family_are_checked_before_the_charge(statistic, words, additions, ledger):
    class Broken(Shares):
        def statistics(self, n, columns, released):
            return (statistic,)

    with pytest.raises((ValueError, TypeError), match=words):
        interval(ones(), Broken(), 1.0, ledger=ledger)
    assert not ledger.charges and not additions


def test_a_statistic_twice_or_never():
    class Twice(Shares):
        def statistics(self, n, columns, released):
            return (GOOD, GOOD)

    class Never(Shares):
        def statistics(self, n, columns, released):
            return () if released else (GOOD,)

    with pytest.raises(ValueError, match="twice"):
        interval(ones(), Twice(), 1.0)
    with pytest.raises(ValueError, match="many"):
        interval(ones(), Never(), 1.0)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        (lambda rows: rows * np.nan, "NaN"),
        (lambda rows: rows[:, :1], "shape"),
        (len, "shape"),
        (lambda rows: None, "numbers"),
        (lambda rows: rows.astype(complex), "numbers"),
        (lambda rows: rows.astype(object), "numbers"),
        # A row moves what all the copies of it are added up to; noise covers one.
        (lambda rows: np.repeat(rows, 100, axis=0), "40 rows"),
        (lambda rows: rows.sum(axis=0, keepdims=True), "40 rows"),
    ],
)
def test_entries_of_a_family_are_checked_before_the_charge(entries, words, ledger):
    class Broken(Shares):
        def entries(self, rows, name, released):
            return entries(rows)

    with pytest.raises((ValueError, TypeError), match=words):
        interval(ones(), Broken(), 1.0, ledger=ledger)
    assert not ledger.charges


UNITS = int(GOOD.upper[0])  # of an entry 1


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        (lambda rows: np.int64(10), "64-bit integers"),  # would be added to each of the sums
        (lambda rows: np.zeros((1, 3), dtype=np.int64), "64-bit integers"),
        (lambda rows: rows.sum(axis=0), "64-bit integers"),
        (lambda rows: [1, 2, 3], "64-bit integers"),
        (lambda rows: None, "64-bit integers"),
        (lambda rows: np.full(3, len(rows) * UNITS + 1), "between"),
        (lambda rows: np.array([0, 0, -1]), "between"),
        (lambda rows: np.full(3, 2**62), "between"),
    ],
)
def test_sums_of_a_family_are_checked_before_the_charge(counts, words, ledger):
    class Broken(Shares):
        def counts(self, rows, statistic, released):
            return counts(rows)

    with pytest.raises((ValueError, TypeError), match=words):
        interval(ones(), Broken(), 1.0, ledger=ledger)
    assert not ledger.charges


def test_sums_at_their_largest_are_allowed(additions):
    class Fast(Shares):
        def counts(self, rows, statistic, released):
            return len(rows) * statistic.upper

    assert interval(ones(), Fast(), 1.0).statistics["ones"] == pytest.approx([40.0] * 3)


@pytest.mark.parametrize("found", [None, GOOD, {"ones": GOOD}], ids=["nothing", "one", "dict"])
def test_statistics_come_as_a_tuple(found, ledger):
    class Broken(Shares):
        def statistics(self, n, columns, released):
            return found

    with pytest.raises(TypeError, match="statistics: expected a tuple"):
        interval(ones(), Broken(), 1.0, ledger=ledger)
    assert not ledger.charges


@pytest.mark.parametrize("names", ["ones", ("ones", 1), ("ones", ""), (), ("ones", "ones"), None], ids=str)
def test_names_of_statistics_are_texts_in_a_tuple(names, ledger):
    class Broken(Shares):
        statistic_names = names

    with pytest.raises(ValueError, match="statistic_names"):
        interval(ones(), Broken(), 1.0, ledger=ledger)
    assert not ledger.charges


def test_a_family_cannot_change_a_statistic_after_the_check(additions):
    """What the noise was planned for is what entries are cut off at."""
    kept = bounded_statistic("ones", [0] * 3, [1] * 3, 40)

    class Changing(Shares):
        def statistics(self, n, columns, released):
            return super().statistics(n, columns, released) if released else (kept,)

        def entries(self, rows, name, released):
            kept.upper[...] = 5 * UNITS
            return 5 * super().entries(rows, name, released)

    assert interval(ones(), Changing(), 1.0).statistics["ones"] == pytest.approx(ones().sum(axis=0))


def test_entries_beyond_the_bounds_are_cut_off(additions):
    class Wild(Shares):
        def entries(self, rows, name, released):
            return np.where(super().entries(rows, name, released) > 0, np.inf, -1e300)

    assert interval(ones(), Wild(), 1.0).statistics["ones"] == pytest.approx(ones().sum(axis=0))


def test_a_family_cannot_write_into_what_it_is_given(additions):
    class Writing(Shares):
        def entries(self, rows, name, released):
            rows[0] = 0
            return rows

    with pytest.raises(ValueError, match="read-only"):
        interval(ones(), Writing(), 1.0)


def test_a_family_may_refuse_rows_before_the_charge(ledger):
    class Picky(Shares):
        def check(self, pieces, columns):
            assert np.concatenate(list(pieces)).shape == (40, 3) and list(columns) == ["x0", "x1", "x2"]
            raise ValueError("codes")

    with pytest.raises(ValueError, match="codes"):
        interval(ones(), Picky(), 1.0, ledger=ledger)
    assert not ledger.charges


def test_estimates_that_are_not_finite_are_refused():
    class Infinite(Shares):
        def estimates(self, sums, n, deviations):
            return sums["ones"] * np.inf

    with pytest.raises(ValueError, match="floor"), np.errstate(invalid="ignore"):
        interval(ones(), Infinite(), 1.0)
