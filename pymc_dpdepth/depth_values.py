"""Private depth values, of points chosen without the data and of the rows themselves, by Laplace or Gaussian noise."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from pymc_dpdepth.budget import BudgetLedger, charge, labelled
from pymc_dpdepth.depth_inputs import (
    DepthInputs,
    check_flag,
    read_inputs,
    read_points,
    start_of_rays,
    warn_if_points_are_rows,
)
from pymc_dpdepth.depths.base import Depth
from pymc_dpdepth.depths.vector_sensitivity import (
    VectorSensitivity,
    count_unit,
    sample_sensitivity,
    values_sensitivity,
)
from pymc_dpdepth.privacy.noise import (
    IntegerNoise,
    RealNoise,
    gaussian_noise,
    laplace_noise,
    real_gaussian_noise,
    real_laplace_noise,
    root_above,
)
from pymc_dpdepth.privacy.rounding import float_above, written
from pymc_dpdepth.randomness import random_bits
from pymc_dpdepth.record import Release

__all__ = ["private_depth", "private_sample_depths"]

VALUES, SAMPLE = "depth", "sample_depths"

# Up to here count / N is a double from which the count is read back without an error; beyond, the values are rounded.
LARGEST_UNIT = 2**50
# Two conversions of integers and a division, each with a relative error of 2^-53, of a depth that is at most 1.
ROUNDING_OF_COUNTS = Fraction(1, 2**51)
# An allowance for the rounding in real depths: a sum of n terms of size 1 has an error of some n^2 2^-53, its mean n
# 2^-53, and each term has a few roundings of its own. It is not proved for every table, hence the level "float64".
TERMS_OF_REAL_DEPTHS, ROUNDING_OF_TERMS = 1024, Fraction(1, 2**52)

EQUAL_DIRECTIONS = 1e-9  # points belong to one ray where their unit vectors from its start agree to this


def private_depth(
    points: Any,
    X: Any,
    *,
    depth: Depth | str = "halfspace",
    epsilon: float,
    delta: float = 0.0,
    directions: Any = None,
    columns: Sequence | None = None,
    clamp: bool = True,
    isotonic_from: Any = None,
    standardize: Any = None,
    nonfinite: str = "raise",
    max_rows_per_unit: int = 1,
    ledger: BudgetLedger | None = None,
    label: str | None = None,
    random_seed: int | None = None,
) -> Release:
    r"""Release the depth of points that were chosen without the data.

    When one of n rows is replaced, the depth of a point moves by at most the global sensitivity GS, some 1/n. So k
    depths get Laplace noise of scale k GS / epsilon, or, with delta > 0, Gaussian noise of standard deviation sqrt(k)
    GS s, where s is the least with

        Phi(1/(2s) - epsilon s) - exp(epsilon) Phi(-1/(2s) - epsilon s) <= delta.

    Parameters
    ----------
    points : array_like or DataFrame, shape (k, d)
        One point in each row, in the units of X, chosen without looking at X. A data frame, or the path of a CSV or
        Parquet file, is read by the names of X's columns; an array has them in the same order.
    X : array_like, DataFrame or path, shape (n, d)
        Private rows, one for each unit; n is public.
    depth : Depth or str
        "halfspace", "integrated_rank_weighted", "integrated_dual", "simplicial", "spatial", "modified_spatial", or an
        object.
    epsilon : float
        Privacy loss of all k values together, > 0.
    delta : float
        0 adds Laplace noise; above 0, and far below 1/n, Gaussian noise, which is smaller for many points.
    directions : Directions or array_like, optional
        Replaces the directions of the depth.
    columns : sequence of str or int, optional
        Columns of X to use.
    clamp : bool
        Bring the noisy values into [0, largest depth that any table has]: post-processing, free of cost. False keeps
        them unbiased.
    isotonic_from : array_like of shape (d,), optional
        A public point. Values at points on one ray from it are replaced by the nearest ones, in least squares, that do
        not increase with the distance from it: post-processing. The depth itself falls along rays for halfspace depth
        from a deepest point; for integrated rank-weighted depth and the smoothed dual depth from a point that is a
        median in each direction. For the others, and from other points, it need not, and this adds a bias.
    standardize : tuple of array_like, optional
        A public (center, scale), applied to rows and points first. For depths that depend on units: spatial depths,
        smoothed ones, directions that are not axes.
    nonfinite : {"raise", "center"}
        Refuse rows with non-finite entries before anything is charged, or set these entries to the public center of
        `standardize`.
    max_rows_per_unit : int
        Largest number m of rows that one person may have; the cost is (m epsilon, delta).
    ledger : BudgetLedger, optional
        Charged before noise is drawn. A `Ledger` that was opened with a key checks that X are its rows.
    label : str, optional
        What the ledger calls the charge, by default "depth". It is public and must not come from the rows.
    random_seed : int, optional
        For simulation; warns and is recorded.

    Returns
    -------
    Release
        `value` holds the k depths over "point".

    Raises
    ------
    UnboundedSensitivityError
        If the sensitivity of the depth does not fall with n (projection).
    ValueError, TypeError
        If an argument is not usable. In every case nothing has been charged.

    Warns
    -----
    PrivacyLeakWarning
        If a point equals a row, so that it may have been read off it; for curators, as the warning depends on the rows.
        If a seed is given, or delta is 1/n or more.

    Notes
    -----
    epsilon-DP, or (epsilon, delta)-DP, for neighbours that differ in one replaced row. Depths that are counts
    (halfspace, integrated rank-weighted, integrated dual, simplicial) are released as noisy integers over a public
    number, at level "exact": sensitivity, noise and output are integers, and no double is rounded before the noise. The
    other depths are rounded to a grid first, at level "float64". docs/private_depths.md has the proofs.

    References
    ----------
    .. [1] K. Ramsay and S. Chenouri, Differentially private depth functions and their associated medians, 2021,
           arXiv:2101.02800.
    .. [2] B. Balle and Y.-X. Wang, Improving the Gaussian mechanism for differential privacy, ICML 2018,
           arXiv:1805.06530.

    Examples
    --------
    >>> import numpy as np, pymc_dpdepth as dpd
    >>> rows = np.column_stack([np.linspace(-1, 1, 1001), np.linspace(1, -1, 1001)])
    >>> release = dpd.private_depth([[0.0, 0.0], [0.5, 0.5]], rows, epsilon=10.0)
    >>> release.value.dims, release.guarantee, bool(abs(release.value[0] - 0.5) < 0.1)
    (('point',), 'exact', True)
    """
    ledger = labelled(ledger, label)
    inputs = read_inputs(
        X, depth, directions, columns, standardize, epsilon, delta, nonfinite, max_rows_per_unit, ledger
    )
    where = read_points(points, inputs.table.columns)
    start = None if isotonic_from is None else start_of_rays(isotonic_from, inputs.size[1])
    check_flag("clamp", clamp)
    n, d = inputs.size
    noise, unit = _plan(inputs, values_sensitivity(inputs.depth, n, d, len(where)), len(where))
    warn_if_points_are_rows(where, inputs.rows)
    return _release(
        VALUES, inputs, noise, unit, inputs.evaluate(where), clamp, ledger, random_seed, points=where, start=start
    )


def private_sample_depths(
    X: Any,
    *,
    depth: Depth | str = "halfspace",
    epsilon: float,
    delta: float = 0.0,
    directions: Any = None,
    columns: Sequence | None = None,
    clamp: bool = True,
    standardize: Any = None,
    nonfinite: str = "raise",
    max_rows_per_unit: int = 1,
    ledger: BudgetLedger | None = None,
    label: str | None = None,
    random_seed: int | None = None,
) -> Release:
    r"""Release the vector of the rows' own depths, D(X_1; X), ..., D(X_n; X).

    **The noise does not vanish as n grows.** The replaced row may go from the middle to the edge, which moves its own
    depth by nearly the whole range, and every other depth moves too. So each of the n values gets Laplace noise of
    scale L1 / epsilon, with L1 near 2 for halfspace depth, or Gaussian noise of standard deviation near s: the single
    depths stay hidden, and only statistics of many of them, such as ranks of two groups, can be read.

    Parameters
    ----------
    X : array_like, DataFrame or path, shape (n, d)
        Private rows, one for each unit; n is public, and so is the order of the rows.
    depth : Depth or str
        As in `private_depth`.
    epsilon : float
        Privacy loss of all n values together, > 0.
    delta : float
        0 adds Laplace noise; above 0, and far below 1/n, Gaussian noise.
    directions : Directions or array_like, optional
        Replaces the directions of the depth.
    columns : sequence of str or int, optional
        Columns of X to use.
    clamp : bool
        Bring the noisy values into [0, largest depth]. False keeps them unbiased, as rank statistics need.
    standardize : tuple of array_like, optional
        A public (center, scale), applied to the rows first.
    nonfinite : {"raise", "center"}
        Refuse rows with non-finite entries before anything is charged, or set these entries to the public center of
        `standardize`.
    max_rows_per_unit : int
        Largest number m of rows that one person may have; the cost is (m epsilon, delta).
    ledger : BudgetLedger, optional
        Charged before noise is drawn. A `Ledger` that was opened with a key checks that X are its rows.
    label : str, optional
        What the ledger calls the charge, by default "sample_depths". It is public and must not come from the rows.
    random_seed : int, optional
        For simulation; warns and is recorded.

    Returns
    -------
    Release
        `value` holds the n depths over "point", in the order of the rows.

    Raises
    ------
    UnboundedSensitivityError
        If the sensitivity of the depth does not fall with n (projection).
    ValueError, TypeError
        If an argument is not usable. In every case nothing has been charged.

    Warns
    -----
    PrivacyLeakWarning
        If a seed is given, or delta is 1/n or more.

    Notes
    -----
    epsilon-DP, or (epsilon, delta)-DP, for tables that differ in one row, replaced at its place. The order must not
    depend on private entries: a table that was sorted by one of them tells a rank with every place.

    For halfspace, integrated rank-weighted and integrated dual depth, along any directions or all, L1 = 2 (n-1) / n and
    L2 = sqrt((n-1) / n), and both are reached. docs/private_depths.md has the others and the proofs. The values printed
    in [1]_ are too small where rows may tie.

    References
    ----------
    .. [1] K. Ramsay and S. Chenouri, Differentially private depth functions and their associated medians, 2021,
           arXiv:2101.02800.

    Examples
    --------
    >>> import numpy as np, pymc_dpdepth as dpd
    >>> release = dpd.private_sample_depths(np.linspace(0, 1, 50)[:, None], epsilon=2.0, clamp=False)
    >>> release.value.sizes["point"], round(release.mechanisms[0]["noise_scale"], 6)
    (50, 0.98)
    """
    ledger = labelled(ledger, label)
    inputs = read_inputs(
        X, depth, directions, columns, standardize, epsilon, delta, nonfinite, max_rows_per_unit, ledger
    )
    check_flag("clamp", clamp)
    n, d = inputs.size
    if n == 0:
        raise ValueError("X: expected at least one row, since the rows' own depths are released; got none.")
    noise, unit = _plan(inputs, sample_sensitivity(inputs.depth, n, d), n)
    return _release(SAMPLE, inputs, noise, unit, inputs.evaluate(None), clamp, ledger, random_seed)


def _plan(
    inputs: DepthInputs, sensitivity: VectorSensitivity, size: int
) -> tuple[IntegerNoise, int] | tuple[RealNoise, None]:
    """Return the noise, and the number N that counts are divided by; both are public."""
    n, d = inputs.size
    units = inputs.max_rows_per_unit
    # Rows of one person that are replaced one after another move the values by so many times the sensitivity, at a cost
    # of so many times epsilon. For Laplace noise both factors cancel.
    epsilon = units * written(inputs.epsilon)
    unit = count_unit(inputs.depth, n, d)
    if unit is not None and unit <= LARGEST_UNIT:
        if not inputs.delta:
            return laplace_noise(sensitivity.l1 * unit, inputs.epsilon), unit
        squared = sensitivity.l2_squared * (unit * units) ** 2
        return gaussian_noise(squared, size, epsilon, inputs.delta, largest=unit), unit
    rounding = ROUNDING_OF_COUNTS if unit is not None else (n + TERMS_OF_REAL_DEPTHS) * ROUNDING_OF_TERMS
    largest = 1.0
    if not inputs.delta:
        return real_laplace_noise(sensitivity.l1 + 2 * rounding * size, size, inputs.epsilon, largest=largest), None
    l2 = Fraction(root_above(sensitivity.l2_squared)) + 2 * rounding * Fraction(root_above(Fraction(size)))
    return real_gaussian_noise(l2 * units, size, epsilon, inputs.delta, largest=largest), None


def _release(name, inputs: DepthInputs, noise, unit, values, clamp, ledger, seed, points=None, start=None) -> Release:
    """Charge, add noise once, and record. The values come in without noise."""
    import xarray as xr

    n, d = inputs.size
    bits = random_bits(seed)
    cost = float_above(inputs.max_rows_per_unit * written(inputs.epsilon))
    record = _describe(name, inputs, noise, unit)
    if points is not None:
        record |= {"points": points.tolist(), "isotonic_from": None if start is None else start.tolist()}
    bounds = [0.0, inputs.depth.upper_bound(n, d)]
    record["clamped"] = bounds if clamp else None
    counts = None if unit is None else np.rint(values * unit).astype(np.int64)
    # Noise is no draw of an exponential mechanism, so it is not tagged as one.
    charge(ledger, epsilon=cost, delta=inputs.delta, label=name)
    noisy = noise.add(values, bits) if unit is None else noise.add(counts, bits) / (unit * noise.refinement)
    # From here on the rows play no part.
    if start is not None:
        noisy = _decreasing_along_rays(noisy, points, start)
    if clamp:
        noisy = np.clip(noisy, *bounds)
    array = xr.DataArray(noisy, dims=["point"], coords={"point": np.arange(len(noisy))})
    integers = noise if isinstance(noise, IntegerNoise) else noise.integers
    return Release(
        locations={name: array},
        parameters=xr.Dataset(),
        epsilon=cost,
        delta=inputs.delta,
        rho=integers.rho,
        guarantee="exact" if count_unit(inputs.depth, n, d) is not None else "float64",
        max_rows_per_unit=inputs.max_rows_per_unit,
        sampler=integers.distribution,
        simulation=bits.simulation,
        mechanisms=(record,),
        priors={},
    )


def _describe(name: str, inputs: DepthInputs, noise: IntegerNoise | RealNoise, unit: int | None) -> dict[str, Any]:
    """Return the public record; scales, grid and sensitivity are in units of the depth."""
    n, d = inputs.size
    integers, step = (noise, 1 / unit) if isinstance(noise, IntegerNoise) else (noise.integers, noise.grid)
    return {
        "name": name,
        "depth": inputs.depth.describe(),
        "epsilon": inputs.epsilon,
        "delta": inputs.delta,
        "realised_epsilon": integers.realised_epsilon if not inputs.delta else inputs.epsilon,
        "max_rows_per_unit": inputs.max_rows_per_unit,
        "sensitivity": inputs.depth.sensitivity(n, d),
        "vector_sensitivity": integers.sensitivity * step,
        "noise_scale": integers.scale * step,
        "noise_grid": step / integers.refinement,
        "n": n,
        "center": inputs.center.tolist(),
        "scale": inputs.scale.tolist(),
        "nonfinite": inputs.nonfinite,
    }


def _decreasing_along_rays(values: np.ndarray, points: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return the nearest values that do not increase along rays; the start itself is raised to the first of each."""
    from scipy.optimize import isotonic_regression

    with np.errstate(all="ignore"):
        away = points - start
        distance = np.linalg.norm(away, axis=1)
        units = away / distance[:, None]
    result, left = values.copy(), distance > 0
    while left.any():
        first = int(np.argmax(left))
        ray = left & (np.abs(units - units[first]).max(axis=1) <= EQUAL_DIRECTIONS)
        ray[first] = True
        members = np.flatnonzero(ray)
        members = members[np.argsort(distance[members], kind="stable")]
        result[members] = isotonic_regression(values[members], increasing=False).x
        left &= ~ray
    at_start = distance == 0
    if at_start.any() and not at_start.all():
        result[at_start] = np.maximum(values[at_start].mean(), result[~at_start].max())
    return result
