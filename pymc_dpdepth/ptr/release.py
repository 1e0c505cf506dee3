"""The front doors of propose-test-release: projection depth values, projection-depth median, and any statistic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pymc_dpdepth.budget import BudgetLedger, charge, check_data, labelled, warn_if_delta_is_large
from pymc_dpdepth.depth_inputs import check_flag, read_points, warn_if_points_are_rows
from pymc_dpdepth.depths.projection import Projection
from pymc_dpdepth.errors import ApproximateSamplingWarning, warn_user
from pymc_dpdepth.from_model import check_sampler, require_consent
from pymc_dpdepth.ptr.ball_median import BALL_SAMPLERS, SMC, draw_by_branch_and_bound, draw_by_smc, exact_in
from pymc_dpdepth.ptr.information import warn_by_public_numbers
from pymc_dpdepth.ptr.outlyingness import OutlyingnessTable
from pymc_dpdepth.ptr.proposal import (
    Proposal,
    finite_rows,
    read_ball,
    read_cap,
    read_projection,
    read_rows,
    read_settings,
    read_vector,
)
from pymc_dpdepth.ptr.stability_test import unit_cost
from pymc_dpdepth.ptr.stable import Diameter, StableStatistic, bound_of, clamped, first_above
from pymc_dpdepth.ptr.statistic_checks import check_statistic, read_statistic, value_of
from pymc_dpdepth.randomness import RandomBits, random_bits
from pymc_dpdepth.record import Release
from pymc_dpdepth.samplers.branch_plan import BRANCH_AND_BOUND, MOST_DIMENSIONS

if TYPE_CHECKING:
    import xarray

__all__ = ["propose_test_release", "release_statistic"]

MEDIAN, VALUES = "projection_median", "projection_depth"
# Released values of a statistic are cut off beyond this many thresholds; on the grid that this leaves, rounding adds
# less than a part in 2000 to the noise.
MOST_THRESHOLDS = 2.0**40


def propose_test_release(
    X: Any,
    *,
    epsilon: float | tuple[float, float],
    delta: float,
    threshold: float,
    radius: Any = None,
    center: Any = 0.0,
    points: Any = None,
    depth: Projection | str = "projection",
    directions: Any = None,
    cap: float | str | None = "auto",
    noise: str = "laplace",
    columns: Sequence | None = None,
    sampler: str = "auto",
    nonfinite: str = "raise",
    max_rows_per_unit: int = 1,
    accept_asymptotic: bool = False,
    ledger: BudgetLedger | None = None,
    label: str | None = None,
    random_seed: int | None = None,
    progressbar: bool = True,
) -> Release:
    r"""Release the projection-depth median, or projection depth at points, where a private test finds it stable.

    With O(v; X) = min(cap, max_u |v.u - med_u| / scale_u) and B(X) the least number k of replaced rows for which two
    tables within k rows of X might have outlyingnesses more than `threshold` apart (an upper bound U_k of their
    distance, from nested windows of order statistics, decides), it is released iff

        B(X) + W / epsilon_t > 1 + log(1 / (2 delta)) / epsilon_t,    W standard Laplace,

    and what is released is a draw of the density ∝ exp(-epsilon_r O(v) / (2 threshold)) on the ball, or 1 / (1 + O) at
    p points with noise of scale p * threshold / epsilon_r on O.

    Parameters
    ----------
    X : array_like, DataFrame or path, shape (n, d)
        Private table with one row for each unit. n is public.
    epsilon : float or tuple of float
        Total, half of it for the test, or the pair (epsilon_t, epsilon_r).
    delta : float
        In (0, 0.5), far below 1/n.
    threshold : float
        > 0, in units of the outlyingness; never from X. `ptr.suggest_threshold` finds one on synthetic rows.
    radius : float or array_like, shape (d,)
        The median is sought where |(v - center) / radius| <= 1; public. With several radii rows are divided by them
        before directions apply. Not needed with points.
    center : float or array_like, shape (d,)
        Public center of the ball.
    points : array_like or DataFrame, shape (p, d), optional
        Where the depth is released, chosen without X; then no median is. A data frame, or the path of a CSV or Parquet
        file, is read by the names of X's columns; an array has them in the same order.
    depth : Projection or "projection"
        Scale ("mad" or "iqr") and directions; the same directions serve test and release.
    directions : Directions or array_like, optional
        Replaces the directions of the depth. The default, "auto", is the axes.
    cap : float, "auto" or None
        Outlyingness above it counts as it; public. "auto" is 2 for the median, none for points. None is 2^20.
    noise : {"laplace", "gaussian"}
        Of the test, and of depth values.
    columns : sequence of str or int, optional
        Columns to use; all by default.
    sampler : {"auto", "branch_and_bound", "smc"}
        For the median: "auto" is branch and bound, a draw of the law itself, in up to 5 dimensions.
    nonfinite : {"raise", "center"}
        Refuse non-finite entries before anything is charged, or set them to `center`.
    max_rows_per_unit : int
        Largest number of rows m that one person may have: the cost becomes m epsilon and delta (1 + e^epsilon + ... +
        e^((m-1) epsilon)).
    accept_asymptotic : bool
        Allow sequential Monte Carlo, whose epsilon is nominal.
    ledger : BudgetLedger, optional
        Charged before the test. A `Ledger` that was opened with a key checks that X are its rows.
    label : str, optional
        What the ledger calls the charge, by default what is released. It is public and must not come from the rows.
    random_seed : int, optional
        For simulation; warns and is recorded.
    progressbar : bool
        For sequential Monte Carlo.

    Returns
    -------
    Release
        `refused` is True where the test did not pass: an output, not an error, and charged all the same. Otherwise
        `value` is the median over "coordinate" or the depths over "point".

    Raises
    ------
    InexactReleaseError
        If only sequential Monte Carlo could draw and `accept_asymptotic` is False.
    ValueError, TypeError
        If an argument is not usable. Nothing has been charged.

    Warns
    -----
    PrivacyLeakWarning
        If delta >= 1/n, a seed is given, or a point equals a row, so that it may have been read off it; for curators,
        as that warning depends on the rows.
    ApproximateSamplingWarning
        If the draw comes from sequential Monte Carlo.
    UserWarning
        If public numbers alone show that the release says next to nothing about the rows: the threshold is not below
        the cap, so that every table passes; the median's law shares more than half with a uniform draw of the ball
        whatever the rows, as tanh(epsilon_r cap / (8 threshold)) < 1/2; or noise moves an outlyingness by more than 1
        with probability above 1/2.

    Notes
    -----
    (epsilon, delta)-DP, epsilon = epsilon_t + epsilon_r, for neighbours that differ in one replaced row; the proof,
    and that of the Gaussian version, is in docs/propose_test_release.md. The printed mechanism [1]_ compares with X
    itself, and is not private (docs/errata.md). Guarantee "float64".

    References
    ----------
    .. [1] K. Ramsay and S. Chenouri, Differentially private depth functions and their associated medians, 2021,
           arXiv:2101.02800, Mechanisms 7 and 9.
    .. [2] C. Dwork and J. Lei, Differential privacy and robust statistics, STOC 2009, doi:10.1145/1536414.1536466.

    Examples
    --------
    >>> import numpy as np, pymc_dpdepth as dpd
    >>> rows = np.column_stack([np.linspace(-2, 2, 4001), np.linspace(-2, 2, 4001) ** 3 / 4])
    >>> release = dpd.propose_test_release(rows, epsilon=2.0, delta=1e-6, threshold=0.2, radius=5.0)
    >>> release.refused, release.value.sizes["coordinate"], release.epsilon, release.delta
    (False, 2, 2.0, 1e-06)
    """
    ledger = labelled(ledger, label)
    check_data(ledger, X)
    check_sampler(sampler, BALL_SAMPLERS)
    check_flag("accept_asymptotic", accept_asymptotic)
    check_flag("progressbar", progressbar)
    settings = read_settings(epsilon, delta, threshold, noise, max_rows_per_unit)
    table = read_rows(X, columns)
    n, d = table.rows.shape
    resolved = read_projection(depth, directions).resolve(d)
    ball = read_ball(center, radius, d, needed=points is None)
    cap = read_cap(cap, points)
    rows = finite_rows(table, nonfinite, ball.center)
    where = None if points is None else read_points(points, table.columns)
    places = None if where is None else ball.units(where)
    exact = points is not None or exact_in(d, sampler)
    if not exact:
        require_consent(
            accept_asymptotic,
            f"branch and bound is taken in up to {MOST_DIMENSIONS} dimensions, of which there are {d} "
            f'(sampler="{BRANCH_AND_BOUND}" insists on it)',
        )
    record = {
        "depth": resolved.describe(),
        "cap": cap,
        "radius": None if radius is None else ball.radius.tolist(),
        "center": ball.center.tolist(),
        "scale": ball.radius.tolist(),
        "nonfinite": nonfinite,
    }
    if points is None:
        proposal = settings.proposal(MEDIAN, table.columns, n, 0, record)
    else:
        record["points"] = where.tolist()
        proposal = settings.proposal(VALUES, table.columns, n, len(places), record, largest=cap)
        warn_if_points_are_rows(where, rows)

    def propose() -> tuple[Diameter, Callable]:
        projected = OutlyingnessTable(ball.units(rows), resolved.directions.matrix(), resolved.scale, cap)
        if points is not None:
            return projected.diameters(places), lambda bits: _depths(proposal, projected.values(places), bits)

        def draw(bits: RandomBits) -> xarray.DataArray:
            if exact:
                (value,) = draw_by_branch_and_bound(projected, rows, ball, proposal.beta, bits)
            else:
                value = draw_by_smc(projected, ball, proposal.beta, bits, progressbar)
            return _array(value, "coordinate", list(table.columns))

        return projected.diameters(None), draw

    warn_by_public_numbers(settings, cap, None if points is None else len(places))
    if not exact:
        warn_user(
            "The released draw comes from sequential Monte Carlo: epsilon is nominal, not proved.",
            ApproximateSamplingWarning,
        )
    sampled_by = proposal.test.noise.distribution if points is not None else BRANCH_AND_BOUND if exact else SMC
    return _test_and_release(proposal, propose, sampled_by, exact, ledger, random_seed)


def release_statistic(
    X: Any,
    statistic: StableStatistic,
    *,
    epsilon: float | tuple[float, float],
    delta: float,
    threshold: float,
    noise: str = "laplace",
    columns: Sequence | None = None,
    nonfinite: str = "raise",
    center: Any = 0.0,
    max_rows_per_unit: int = 1,
    ledger: BudgetLedger | None = None,
    label: str | None = None,
    random_seed: int | None = None,
) -> Release:
    r"""Release a stable statistic with noise in proportion to a threshold, where a private test finds it stable.

    Released iff B(X) + W / epsilon_t > 1 + log(1 / (2 delta)) / epsilon_t, with B(X) = statistic.breakdown(X,
    threshold); then each of the p components comes with Laplace noise of scale p * threshold / epsilon_r.

    Parameters
    ----------
    X : array_like, DataFrame or path, shape (n, d)
        Private table with one row for each unit. n is public.
    statistic : StableStatistic
        `ptr.Median()`, `ptr.TrimmedMean(0.1)`, `ptr.InterquartileRange()`, `ptr.MAD()`, or the user's own.
    epsilon : float or tuple of float
        Total, half of it for the test, or the pair (epsilon_t, epsilon_r).
    delta : float
        In (0, 0.5), far below 1/n.
    threshold : float
        > 0, in the units of the statistic, chosen without X: as far as it may move for its noise to cover it. Values
        beyond 2^40 thresholds are cut off there.
    noise : {"laplace", "gaussian"}
        Of test and release. Gaussian noise grows with sqrt(p), and takes half of delta for each.
    columns : sequence of str or int, optional
        Columns to use; all by default.
    nonfinite : {"raise", "center"}
        Refuse non-finite entries before anything is charged, or set them to `center`.
    center : float or array_like, shape (d,)
        Public value for missing entries.
    max_rows_per_unit : int
        Largest number of rows m that one person may have: the cost becomes m epsilon and delta (1 + e^epsilon + ... +
        e^((m-1) epsilon)).
    ledger : BudgetLedger, optional
        Charged before the test. A `Ledger` that was opened with a key checks that X are its rows.
    label : str, optional
        What the ledger calls the charge, by default what is released. It is public and must not come from the rows.
    random_seed : int, optional
        For simulation; warns and is recorded.

    Returns
    -------
    Release
        `refused` is True where the test did not pass: an output, not an error, and charged all the same. Otherwise
        `value` holds the components over "coordinate".

    Raises
    ------
    ValueError, TypeError
        If an argument is not usable, or a statistic of the user's own does not return what `ptr.StableStatistic` says.
        Nothing has been charged.

    Warns
    -----
    PrivacyLeakWarning
        If delta >= 1/n, or a seed is given.

    Notes
    -----
    (epsilon, delta)-DP for neighbours that differ in one replaced row (docs/propose_test_release.md).

    References
    ----------
    .. [1] V.-E. Brunel and M. Avella-Medina, Propose, test, release: differentially private estimation with high
           probability, 2020, arXiv:2002.08774.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_dpdepth import ptr
    >>> rows = np.linspace(0, 100, 2001)
    >>> release = ptr.release_statistic(rows, ptr.Median(), epsilon=2.0, delta=1e-6, threshold=5.0)
    >>> release.refused, release.value.sizes["coordinate"]
    (False, 1)
    """
    ledger = labelled(ledger, label)
    check_data(ledger, X)
    check_statistic(statistic)
    settings = read_settings(epsilon, delta, threshold, noise, max_rows_per_unit)
    table = read_rows(X, columns)
    n, d = table.rows.shape
    center = read_vector(center, d, "center")
    rows = clamped(finite_rows(table, nonfinite, center))
    known = read_statistic(statistic, table.columns)
    record = {
        "statistic": known.description,
        "center": center.tolist(),
        "scale": [1.0] * d,
        "nonfinite": nonfinite,
    }
    largest = settings.threshold * MOST_THRESHOLDS
    proposal = settings.proposal(known.name, table.columns, n, len(known.labels), record, largest=largest)

    def propose() -> tuple[Diameter, Callable]:
        values, known_value = value_of(statistic, rows, len(known.labels))

        def draw(bits: RandomBits) -> xarray.DataArray:
            return _array(proposal.values_noise.add(values, bits), "coordinate", known.labels)

        if not known_value:
            return lambda k: np.inf, draw  # what is not known is not stable
        return bound_of(statistic, rows), draw

    return _test_and_release(proposal, propose, proposal.test.noise.distribution, True, ledger, random_seed)


def _depths(proposal: Proposal, outlyingness: np.ndarray, bits: RandomBits) -> xarray.DataArray:
    """Return 1 / (1 + O) of noisy outlyingnesses, cut off at 0 and the cap: post-processing."""
    noisy = np.clip(proposal.values_noise.add(outlyingness, bits), 0.0, proposal.record["cap"])
    return _array(1.0 / (1.0 + noisy), "point", list(range(len(noisy))))


def _array(values: np.ndarray, dim: str, labels: list) -> xarray.DataArray:
    import xarray as xr

    return xr.DataArray(values, dims=[dim], coords={dim: labels})


def _test_and_release(
    proposal: Proposal, propose: Callable, sampler: str, exact: bool, ledger: BudgetLedger | None, random_seed
) -> Release:
    """Charge, test, and draw where the test passes; the record says no more of the rows than the answer.

    The breakdown, and a statistic's value, are computed before the charge: what may raise there costs nothing, and
    afterwards there is noise, and the draw of a median, alone.
    """
    import xarray as xr

    cost = unit_cost(proposal.budget, proposal.max_rows_per_unit)
    warn_if_delta_is_large(cost[1], proposal.n)
    bits = random_bits(random_seed)
    diameter, draw = propose()
    breakdown = first_above(diameter, proposal.threshold, proposal.n)
    charge(ledger, epsilon=cost[0], delta=cost[1], label=proposal.name)
    refused = not proposal.test.passes(breakdown, bits)
    locations = {} if refused else {proposal.name: draw(bits)}
    is_median = proposal.name == MEDIAN and not refused
    return Release(
        locations=locations,
        parameters=xr.Dataset({"location": locations[MEDIAN]} if is_median else {}),
        epsilon=cost[0],
        delta=cost[1],
        guarantee="float64" if exact else "asymptotic",
        max_rows_per_unit=proposal.max_rows_per_unit,
        sampler=sampler,
        simulation=bits.simulation,
        mechanisms=(proposal.describe(refused),),
        priors={proposal.name: []},
    )
