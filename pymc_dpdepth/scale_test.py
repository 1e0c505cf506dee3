"""A private rank test of scale: is one sample more spread out than another, by ranks of noisy pooled depths."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pymc_dpdepth.budget import BudgetLedger, labelled
from pymc_dpdepth.depth_values import SAMPLE, private_sample_depths
from pymc_dpdepth.depths.base import Depth
from pymc_dpdepth.record import Release
from pymc_dpdepth.record_files import check_schema, read_record, write_record
from pymc_dpdepth.tables import Table, read_table

__all__ = ["ScaleTest", "pooled_table", "private_scale_test", "rank_sum_test"]

SCHEMA, SCHEMA_VERSION = "pymc_dpdepth.scale_test", 1

SCALE_TEST = "scale_test"
ALTERNATIVES = ("two-sided", "greater", "less")
EXACT, NORMAL = "exact", "normal"

# The exact law counts choices of rows in 64-bit integers, one pass over its table for each row: at this many rows at
# most 7 of them may be in the smaller sample, so the law takes some 1000 * 8 * 14000 additions.
MOST_CHOICES, MOST_ROWS_OF_EXACT_LAW = 2**63 - 1, 1000
ROUNDING = 1e-9  # of a p-value that is computed again
CONTINUITY = 0.5  # half the distance of two rank sums
MOMENT = 12  # a uniform choice of k of the ranks 1, ..., N has a sum of variance k (N - k) (N + 1) / 12


@dataclass(frozen=True, eq=False)
class ScaleTest:
    """The outcome of a private scale test, which may be published, and the release that it was computed from.

    Attributes
    ----------
    statistic : float
        Sum of the midranks of the m noisy depths of Y among all n + m; small where Y lies outside.
    p_value : float
        Probability, where both samples have one law, of a statistic at least as far out in the alternative's sense.
    alternative : {"two-sided", "greater", "less"}
        "greater": Y is more spread out than X.
    null : {"exact", "normal"}
        The law that the p-value was read from.
    n, m : int
        Rows of X and of Y, public.
    depths : Release
        The noisy depths, the rows of X first. The privacy cost is theirs; all else was computed from them.

    Examples
    --------
    >>> import numpy as np, pymc_dpdepth as dpd
    >>> X, Y = np.linspace(-1, 1, 40)[:, None], np.linspace(-9, 9, 30)[:, None]
    >>> test = dpd.private_scale_test(X, Y, epsilon=5.0)
    >>> test.n, test.m, test.epsilon, test.guarantee, type(test).from_dict(test.to_dict()) == test
    (40, 30, 5.0, 'exact', True)
    """

    statistic: float
    p_value: float
    alternative: str
    null: str
    n: int
    m: int
    depths: Release

    @classmethod
    def from_release(cls, release: Release, n: int, alternative: str = "two-sided") -> ScaleTest:
        """Test again from noisy depths that were released: post-processing, free of privacy cost.

        A p-value holds for the alternative that was chosen before the data were seen.

        Parameters
        ----------
        release : Release
            What `private_sample_depths` gave for the pooled table, the first sample first, with `clamp=False`.
        n : int
            Rows of the first sample.
        alternative : {"two-sided", "greater", "less"}
            As in `private_scale_test`.

        Returns
        -------
        ScaleTest
        """
        if not isinstance(release, Release) or [record["name"] for record in release.mechanisms] != [SAMPLE]:
            raise ValueError("release: expected the Release of private_sample_depths, of the pooled rows' own depths.")
        values = np.asarray(release.value.values)
        statistic, p_value, null = rank_sum_test(values, n, alternative)
        return cls(statistic, p_value, alternative, null, int(n), len(values) - int(n), release)

    @property
    def epsilon(self) -> float:
        """Privacy loss, multiplied by `max_rows_per_unit`."""
        return self.depths.epsilon

    @property
    def delta(self) -> float:
        """The delta of the guarantee."""
        return self.depths.delta

    @property
    def guarantee(self) -> str:
        """What stands behind epsilon, as in `Release`."""
        return self.depths.guarantee

    @property
    def neighboring(self) -> str:
        """Tables of the same size that differ in one row, here the pooled table with the row's sample kept."""
        return self.depths.neighboring

    @property
    def max_rows_per_unit(self) -> int:
        """Rows that one person may have, in both samples together."""
        return self.depths.max_rows_per_unit

    @property
    def simulation(self) -> bool | str:
        """True where the noise was seeded; only False is a real release."""
        return self.depths.simulation

    @property
    def depth(self) -> dict[str, Any]:
        """The depth and its directions, as in the record of the release."""
        return self.depths.mechanisms[0]["depth"]

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python objects, fit for JSON: the outcome, and under "depths" the record of the release."""
        outcome = ("statistic", "p_value", "alternative", "null", "n", "m")
        cost = ("epsilon", "delta", "guarantee", "neighboring", "max_rows_per_unit", "simulation")
        schema = {"schema": SCHEMA, "schema_version": SCHEMA_VERSION}
        return schema | {name: getattr(self, name) for name in outcome + cost} | {"depths": self.depths.to_dict()}

    def to_json(self, path: str | os.PathLike | None = None) -> str:
        """Return the record as JSON, and write it to a file if a path is given.

        Parameters
        ----------
        path : path, optional
            File to write. It is replaced at once or not at all.

        Returns
        -------
        str
            The JSON text; numbers read back to the same doubles.
        """
        return write_record(self.to_dict(), path)

    @classmethod
    def from_json(cls, path: str | os.PathLike) -> ScaleTest:
        """Read a scale test from a JSON file.

        Parameters
        ----------
        path : path
            File written by `to_json`.

        Returns
        -------
        ScaleTest

        Raises
        ------
        ValueError
            If the file is not a scale test of a version that this package knows, or its outcome is not that of its
            depths.
        """
        return cls.from_dict(read_record(path, "a scale test"))

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> ScaleTest:
        """Read what `to_dict` wrote; the outcome is computed again, and a record that says otherwise is refused."""
        check_schema(record, SCHEMA, SCHEMA_VERSION, "ScaleTest.to_json")
        missing = sorted({"depths", "n", "alternative"} - set(record))
        if missing:
            raise ValueError(f"Expected the record of a scale test; it has no {', '.join(missing)}.")
        test = cls.from_release(Release.from_dict(record["depths"]), record["n"], record["alternative"])
        made, said = test.to_dict(), dict(record)
        p_value = said.get("p_value")
        # Other versions of SciPy may round the normal law's tail in another way.
        if isinstance(p_value, float) and math.isclose(p_value, test.p_value, rel_tol=ROUNDING):
            said["p_value"] = test.p_value
        if made != said:
            differ = sorted(str(name) for name in made.keys() | said.keys() if made.get(name) != said.get(name))
            raise ValueError(f"The record's outcome is not that of its depths; altered: {', '.join(differ)}.")
        return test

    def __eq__(self, other: object) -> bool:
        """Compare the records."""
        return isinstance(other, ScaleTest) and self.to_dict() == other.to_dict()

    __hash__ = None


def private_scale_test(
    X: Any,
    Y: Any,
    *,
    depth: Depth | str = "integrated_rank_weighted",
    epsilon: float,
    delta: float = 0.0,
    alternative: str = "two-sided",
    directions: Any = None,
    columns: Sequence | None = None,
    standardize: Any = None,
    nonfinite: str = "raise",
    max_rows_per_unit: int = 1,
    ledger: BudgetLedger | None = None,
    label: str | None = None,
    random_seed: int | None = None,
) -> ScaleTest:
    r"""Test whether one sample is more spread out than another, by ranks of noisy depths.

    The depths of all N = n + m rows in the pooled table are released with noise (`private_sample_depths`). The
    statistic is Wilcoxon's rank sum of the second sample,

        W = sum over j of R(n + j),  R the midranks of the N noisy depths,

    small where the rows of Y lie outside, so have low depths. All that follows the noise is free of privacy cost.

    Parameters
    ----------
    X, Y : array_like, DataFrame or path, shapes (n, d) and (m, d)
        Private rows of the two samples, in the same units; n and m are public, and so is the order of the rows. A data
        frame or file Y is read by the names of X's columns; an array has them in the same order.
    depth : Depth or str
        As in `private_sample_depths`.
    epsilon : float
        Privacy loss of the test, > 0.
    delta : float
        0 adds Laplace noise; above 0, and far below 1/N, Gaussian noise.
    alternative : {"two-sided", "greater", "less"}
        What is suspected instead of one common law. "greater": the scale of Y is greater than that of X, so the depths
        of Y are lower. "less": it is less. It is about the second sample; in `scipy.stats.ansari` it is about the
        first.
    directions : Directions or array_like, optional
        Replaces the directions of the depth.
    columns : sequence of str or int, optional
        Columns of X and Y to use.
    standardize : tuple of array_like, optional
        A public (center, scale), applied to all rows first.
    nonfinite : {"raise", "center"}
        Refuse rows with non-finite entries before anything is charged, or set these entries to the public center of
        `standardize`.
    max_rows_per_unit : int
        Largest number k of rows that one person may have in both samples together; the cost is (k epsilon, delta).
    ledger : BudgetLedger, optional
        Charged before noise is drawn. A `Ledger` that was opened with a key checks the pooled table: the columns used,
        with the rows of X and those of Y.
    label : str, optional
        What the ledger calls the charge, by default "scale_test". It is public and must not come from the rows.
    random_seed : int, optional
        For simulation; warns and is recorded.

    Returns
    -------
    ScaleTest
        `statistic`, `p_value`, the cost, and in `depths` the Release of the noisy depths.

    Raises
    ------
    UnboundedSensitivityError
        If the sensitivity of the depth does not fall with the number of rows (projection).
    ValueError, TypeError
        If an argument is not usable. In every case nothing has been charged.

    Warns
    -----
    PrivacyLeakWarning
        If a seed is given, or delta is 1/N or more.

    Notes
    -----
    epsilon-DP, or (epsilon, delta)-DP, for pooled tables that differ in one row, replaced by another row of the same
    sample.

    If all N rows are independent with one law, every order of the noisy depths is equally likely, ties included, since
    depths of the pooled table and noise treat all rows alike. So given the noisy depths, W is the sum of m of the N
    midranks, chosen at random; the p-value is exact for this law where C(N, m) < 2^63 (all samples with N <= 66) and N
    <= 1000, and P(p-value <= a) <= a for every a. Beyond, W is taken as normal with mean m (N + 1) / 2 and variance

        n m / 12 * (N + 1 - sum over ties of (t^3 - t) / (N (N - 1))),

    t the number of equal values, with a correction of 1/2 for continuity. Ties are not broken at random: that would add
    noise, and the outcome could not be computed again from the release.

    The noise costs power: docs/private_depths.md has a table. Samples in different places differ in their depths too;
    subtract public centers, each from its own sample, to test the scale alone.

    References
    ----------
    .. [1] K. Ramsay and S. Chenouri, Differentially private depth functions and their associated medians, 2021,
           arXiv:2101.02800.
    .. [2] R. Y. Liu and K. Singh, A quality index based on data depth and multivariate rank tests, Journal of the
           American Statistical Association 88 (1993) 252-260.

    Examples
    --------
    >>> import numpy as np, pymc_dpdepth as dpd
    >>> rows = np.stack([np.sin(np.arange(400.0)), np.cos(2 * np.arange(400.0))], axis=1)
    >>> test = dpd.private_scale_test(rows, 10 * rows, epsilon=10.0, alternative="greater")
    >>> test.p_value < 0.05, test.n, test.m, test.guarantee
    (True, 400, 400, 'exact')
    """
    _check_alternative(alternative)
    ledger = labelled(ledger, (SCALE_TEST if ledger is not None else None) if label is None else label)
    pooled, n = pooled_table(X, Y, columns)
    release = private_sample_depths(
        pooled,
        depth=depth,
        epsilon=epsilon,
        delta=delta,
        directions=directions,
        clamp=False,  # cutting the values would make ties of the lowest and the highest
        standardize=standardize,
        nonfinite=nonfinite,
        max_rows_per_unit=max_rows_per_unit,
        ledger=ledger,
        random_seed=random_seed,
    )
    # From here on the rows play no part.
    return ScaleTest.from_release(release, n, alternative)


def rank_sum_test(values: np.ndarray, n: int, alternative: str = "two-sided") -> tuple[float, float, str]:
    """Return Wilcoxon's rank sum of the values after the first n, its p-value, and the law that it was read from.

    Parameters
    ----------
    values : array_like, shape (n + m,)
        Public numbers, as they are after the noise.
    n : int
        Values of the first sample.
    alternative : {"two-sided", "greater", "less"}
        "greater" is a small rank sum, as in `private_scale_test`: low depths, a greater scale.

    Returns
    -------
    statistic, p_value : float
    null : {"exact", "normal"}
    """
    from scipy.special import ndtr

    _check_alternative(alternative)
    values = np.asarray(values, dtype=np.float64)
    integer = isinstance(n, int | np.integer) and not isinstance(n, bool)
    if values.ndim != 1 or not integer or not 0 < n < len(values):
        raise ValueError(
            f"n: expected an integer between 0 and the number of values, got {n!r}; both samples need one."
        )
    _, place, ties = np.unique(values, return_inverse=True, return_counts=True)
    # Twice the midrank is an integer: first + last rank of the values that are equal.
    doubled = (2 * np.cumsum(ties) - ties + 1)[place]
    total, m = len(values), len(values) - int(n)
    observed = int(doubled[n:].sum())
    if total <= MOST_ROWS_OF_EXACT_LAW and math.comb(total, m) <= MOST_CHOICES:
        low, high = _exact_tails(doubled, m, observed)
        null = EXACT
    else:
        mean = m * (total + 1) / 2
        untied = total + 1 - float(np.sum(ties.astype(np.float64) ** 3 - ties)) / (total * (total - 1))
        deviation = math.sqrt(max(n * m * untied / MOMENT, 0.0))
        distance = observed / 2 - mean
        # Where all values are equal, the sum is known beforehand and says nothing.
        low, high = (
            float(ndtr((side * distance + CONTINUITY) / deviation)) if deviation else 1.0 for side in (1.0, -1.0)
        )
        null = NORMAL
    p_value = {"greater": low, "less": high, "two-sided": min(1.0, 2 * min(low, high))}[alternative]
    return observed / 2, p_value, null


def _exact_tails(doubled: np.ndarray, m: int, observed: int) -> tuple[float, float]:
    """Return P(S <= observed) and P(S >= observed), S the sum of m of the numbers, chosen at random without return."""
    n = len(doubled) - m
    if n < m:  # the sum of the other sample, of fewer numbers, is what is left
        low, high = _exact_tails(doubled, n, int(doubled.sum()) - observed)
        return high, low
    # choices[k, s]: ways to choose k of the numbers seen so far with sum s.
    choices = np.zeros((m + 1, int(np.sort(doubled)[-m:].sum()) + 1), dtype=np.int64)
    choices[0, 0] = 1
    for number in doubled.tolist():
        # NumPy makes a copy of the right side where it overlaps, so every number is used at most once.
        choices[1:, number:] += choices[:-1, : choices.shape[1] - number]
    counts, ways = choices[m], math.comb(len(doubled), m)
    return int(counts[: observed + 1].sum()) / ways, int(counts[observed:].sum()) / ways


def _check_alternative(alternative: Any) -> None:
    """Refuse another alternative."""
    if not isinstance(alternative, str) or alternative not in ALTERNATIVES:
        raise ValueError(
            f"alternative: expected one of {ALTERNATIVES}, got {alternative!r}. "
            '"greater" means that Y is more spread out than X.'
        )


def pooled_table(X: Any, Y: Any, columns: Any = None) -> tuple[Table, int]:
    """Return the table of both samples, the rows of X first, and the number of these."""
    first = X if isinstance(X, Table) else read_table(X, columns)
    if isinstance(Y, Table):
        second = Y
    else:
        named = isinstance(Y, str | os.PathLike) or hasattr(Y, "columns")
        second = read_table(Y, list(first.columns) if named else columns)
    if len(first.columns) != len(second.columns):
        raise ValueError(
            f"Y: expected {len(first.columns)} columns, as many as X has, got {len(second.columns)}. Select the same "
            "ones with columns=[...]."
        )
    for name, table in (("X", first), ("Y", second)):
        if not len(table.rows):
            raise ValueError(f"{name}: expected at least one row in each sample, got none.")
    return Table(np.concatenate([first.rows, second.rows]), first.columns), len(first.rows)
