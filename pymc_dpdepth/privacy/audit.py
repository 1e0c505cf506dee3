"""Attack a mechanism: a lower bound on its privacy loss from many draws of two neighbouring tables."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pymc_dpdepth.mechanism import NEIGHBORING, positive_integer
from pymc_dpdepth.privacy.audit_events import choose_events
from pymc_dpdepth.privacy.audit_outputs import read_outputs
from pymc_dpdepth.privacy.audit_scores import Scores
from pymc_dpdepth.randomness import SeededBits, SystemBits

__all__ = ["AuditResult", "audit", "check_neighbours"]

# Each of the two directions, and in it each of the two probabilities, may fail.
DIRECTIONS, PROBABILITIES = 2, 2


@dataclass(frozen=True, repr=False)
class AuditResult:
    """What an audit found. On real rows it is itself a function of the private rows, and not releasable.

    A low bound proves nothing: another event, other tables or more draws might show more. A bound above the claimed
    epsilon says that the claim is wrong, and is itself wrong with probability at most 1 - confidence.

    Attributes
    ----------
    epsilon_lower_bound : float
        With the stated confidence the mechanism is not (epsilon, delta)-private for any smaller epsilon; at least 0.
    event : str
        The event that showed it, and on which of the two tables it is the more likely.
    confidence : float
        Probability that the bound is right, both tables' draws and both directions taken together.
    trials : int
        Draws of each table, half of them held out.
    delta : float
        The delta that was granted.
    neighboring : str
        "replace_one".

    Examples
    --------
    >>> from pymc_dpdepth import AuditResult
    >>> AuditResult(0.4, "coordinate 0 <= 1, more likely on X", 0.95, 1000, 0.0)
    <AuditResult: epsilon >= 0.4 with confidence 0.95 (delta=0, 1000 draws of each table, replace_one). On real rows
    this is a function of the private rows and not releasable; a low bound proves nothing.>
    """

    epsilon_lower_bound: float
    event: str
    confidence: float
    trials: int
    delta: float
    neighboring: str = NEIGHBORING

    def __repr__(self) -> str:
        """Show the bound and what it is not; the event's cut points are left to `event`."""
        return (
            f"<AuditResult: epsilon >= {self.epsilon_lower_bound:.4g} with confidence {self.confidence:.10g} "
            f"(delta={self.delta:g}, {self.trials} draws of each table, {self.neighboring}). On real rows this is a "
            "function of the private rows and not releasable; a low bound proves nothing.>"
        )


def audit(
    mechanism: Callable[..., Any],
    X: Any,
    neighbour: Any,
    *,
    trials: int = 10_000,
    confidence: float = 0.95,
    delta: float = 0.0,
    max_rows_per_unit: int = 1,
    random_seed: int | None = None,
    progressbar: bool = True,
) -> AuditResult:
    r"""Bound the privacy loss of a mechanism from below, by attacking it on two neighbouring tables.

    An (epsilon, delta)-private mechanism M satisfies P(M(X) in E) <= exp(epsilon) P(M(Y) in E) + delta for every event
    E and neighbours X, Y. Half of the draws of each table choose an event; the others, which had no part in the choice,
    bound its probabilities, and

        epsilon >= log((P_low(M(X) in E) - delta) / P_high(M(Y) in E)).

    Parameters
    ----------
    mechanism : callable
        Takes a table and returns a Release, a real number or an array of real numbers: everything that would be
        published. Each call is one draw with fresh randomness. If it has a parameter named `draws`, it is called once
        for each table with ``draws=trials`` and returns an array of shape (trials, ...), which is much faster.
    X, neighbour : array_like, DataFrame or path, shape (n, d)
        Two tables of the same shape that differ in at most `max_rows_per_unit` rows; the order of rows does not count.
        They reach the mechanism as they are.
    trials : int
        Draws of each table, at least 2.
    confidence : float
        Probability, in (0, 1), that the bound is right.
    delta : float
        Delta of the claim under attack, in [0, 1).
    max_rows_per_unit : int
        Rows that one person may have, so in how many the tables may differ.
    random_seed : int, optional
        Makes the split into halves reproducible. The mechanism's own randomness is not touched.
    progressbar : bool
        For a mechanism that is called once for each draw.

    Returns
    -------
    AuditResult
        With `epsilon_lower_bound` and the `event`. On real rows it is a function of the private rows: not releasable.

    Raises
    ------
    TypeError
        If an argument is of another type, or an output is no Release, real number or array of real numbers: None, text,
        dates, complex numbers, masked arrays and data frames are none.
    ValueError
        If an argument is not usable, the tables are no neighbours, or the outputs are not of one shape.

    Notes
    -----
    It costs no budget as long as nothing of it leaves the curator; made-up tables are better still. Of a Release its
    whole record is attacked: a field that differs between releases is a coordinate of its own.

    A low bound proves nothing. What an audit does not see: events that are unlikely on both tables (below about
    log(4 / (1 - confidence)) / trials); leaks through more than three scores at once, or, beyond the first 16 numbers
    of an output, through their bits and digits; a shift much smaller than the spread, unless the outputs are short
    decimals or lie on a grid of one of the steps 1, 1e-3, 1e-6, 1e-9 and 2^-10, 2^-20, 2^-30, 2^-40; dependence
    between draws, and what is encrypted or hashed; how long a call took, what it logged or wrote, and whether it
    raised; other tables than these two; an array's shape, data type, attributes and labels outside a Release.

    The confidence is Bonferroni's: one event for each direction (more likely on X, more likely on the
    neighbour), two exact binomial limits [1]_ for each event, each wrong with probability at most
    (1 - confidence) / 4, whatever the dependence between the two tables' draws. Draws of one table must be independent.

    With m held-out draws of each table no audit can report more than about log(m / log(4 / (1 - confidence))).

    References
    ----------
    .. [1] C. J. Clopper and E. S. Pearson, The use of confidence or fiducial limits illustrated in the case of the
           binomial, Biometrika 26 (1934) 404-413, doi:10.1093/biomet/26.4.404.
    .. [2] M. Jagielski, J. Ullman and A. Oprea, Auditing differentially private machine learning: how private is
           private SGD?, NeurIPS 2020, arXiv:2006.07709.

    Examples
    --------
    A "private" mean without noise is caught at once:

    >>> import numpy as np, pymc_dpdepth as dpd
    >>> rows = np.arange(10.0)[:, None]
    >>> other = np.append(rows[:-1], [[50.0]], axis=0)
    >>> found = dpd.audit(lambda table: table.mean(), rows, other, trials=200, random_seed=1, progressbar=False)
    >>> round(found.epsilon_lower_bound, 2)
    3.11
    """
    trials = positive_integer(trials, "trials")
    if trials < 2:
        raise ValueError(f"trials: expected at least 2, one to choose the event and one held out, got {trials}.")
    confidence = _share(confidence, "confidence", above_zero=True)
    delta = _share(delta, "delta")
    if not callable(mechanism):
        raise TypeError(f"mechanism: expected a callable that takes a table, got {type(mechanism).__name__}.")
    check_neighbours(X, neighbour, positive_integer(max_rows_per_unit, "max_rows_per_unit"))
    bits = _split_bits(random_seed)
    outputs, columns = read_outputs(mechanism, (X, neighbour), trials, progressbar)
    half = trials // 2
    parts = [output[np.argsort(bits.words(trials), kind="stable")] for output in outputs]
    training, held_out = [part[:half] for part in parts], [part[half:] for part in parts]

    error = (1.0 - confidence) / (DIRECTIONS * PROBABILITIES)
    scores = Scores.fit(*training, columns)
    events = choose_events(scores, *training, delta, _normal_quantile(error))
    best, words = 0.0, "no event is shown to be more likely on one table than on the other"
    for common, (event, name) in enumerate(zip(events, ("X", "the neighbour"), strict=True)):
        counts = [event.count(held_out[table]) for table in (common, 1 - common)]
        bound = _bound(*counts, trials - half, delta, error)
        if bound > best:
            best, words = bound, f"{event}, more likely on {name}"
    return AuditResult(best, words, confidence, trials, delta)


def _bound(common: int, rare: int, size: int, delta: float, error: float) -> float:
    """Return log((P_low - delta) / P_high) from counts among `size` draws, 0 where it is negative."""
    from scipy.special import betainccinv, betaincinv

    # Clopper and Pearson: the count k has P(K >= k) = I_p(k, size - k + 1), which at the lower limit is the error.
    low = betaincinv(common, size - common + 1, error) if common > 0 else 0.0
    high = betainccinv(rare + 1, size - rare, error) if rare < size else 1.0
    return max(0.0, math.log((low - delta) / high)) if low > delta else 0.0


def _normal_quantile(error: float) -> float:
    from scipy.special import ndtri

    return float(-ndtri(error))


def check_neighbours(X: Any, neighbour: Any, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of two tables, or refuse tables that differ in shape or, as multisets, in more than `most` rows.

    Parameters
    ----------
    X, neighbour : array_like, DataFrame or path, shape (n, d)
    most : int
    """
    from pymc_dpdepth.tables import read_table

    tables = [read_table(table).rows for table in (X, neighbour)]
    if tables[0].shape != tables[1].shape:
        raise ValueError(
            "neighbour: expected a table of the same shape as X, got another one. Neighbours have the same columns and "
            "the same public number of rows; replace a row instead of adding or dropping one."
        )
    # 0.0 turns -0.0 into 0.0; NaN has one bit pattern per table, since read_table makes it.
    counters = [Counter(row.tobytes() for row in np.where(np.isnan(rows), np.nan, rows) + 0.0) for rows in tables]
    if (counters[0] - counters[1]).total() > most:
        allowed = "one row" if most == 1 else f"max_rows_per_unit = {most} rows"
        raise ValueError(
            f"neighbour: expected a table that differs from X in at most {allowed}, the order left aside; these differ "
            "in more. Replace fewer rows, or say max_rows_per_unit=... if one person may have several."
        )
    return tables[0], tables[1]


def _split_bits(random_seed: int | None) -> SystemBits | SeededBits:
    """Return the bits of the split: no release depends on them, so a seed here needs no warning."""
    if random_seed is None:
        return SystemBits()
    if isinstance(random_seed, bool) or not isinstance(random_seed, int | np.integer) or random_seed < 0:
        raise ValueError(f"random_seed: expected None or a non-negative int, got {type(random_seed).__name__}.")
    # The mechanism under attack may have been seeded with the same number. Were the split made from the same stream, it
    # would sort the draws by their own randomness; so the stream is another one.
    digest = hashlib.sha256(f"split of an audit: {int(random_seed)}".encode()).digest()
    return SeededBits(int.from_bytes(digest))


def _share(value: Any, name: str, *, above_zero: bool = False) -> float:
    """Return a number of [0, 1), or of (0, 1)."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{name}: expected a number, got {type(value).__name__}.")
    value = float(value)
    if not (0.0 < value < 1.0 or value == 0.0 and not above_zero):
        raise ValueError(f"{name}: expected a number in {'(0, 1)' if above_zero else '[0, 1)'}, got {value}.")
    return value
