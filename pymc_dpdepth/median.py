"""The front door: a table and a prior in, one private median out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pymc_dpdepth.budget import BudgetLedger, charge, check_data, check_ledger, labelled, warn_if_delta_is_large
from pymc_dpdepth.densities import check_prior_parts
from pymc_dpdepth.depths.directions import AUTO, Directions
from pymc_dpdepth.depths.registry import as_depth
from pymc_dpdepth.from_model import SAMPLERS, check_sampler, exact_or_consent, release
from pymc_dpdepth.mechanism import Mechanism, potential, set_up
from pymc_dpdepth.prior_strings import PriorSpec, build_prior
from pymc_dpdepth.priors import components, is_random
from pymc_dpdepth.randomness import random_bits
from pymc_dpdepth.record import Release
from pymc_dpdepth.samplers.branch_plan import BranchPlan
from pymc_dpdepth.samplers.certified import CERTIFIED, CertifiedPlan, plan_certified
from pymc_dpdepth.samplers.concentrated import (
    AskedBudget,
    Cost,
    cost_of,
    plan_concentrated,
    prefers_concentrated,
    read_budget,
)
from pymc_dpdepth.samplers.dispatch import plan_draws
from pymc_dpdepth.samplers.exact import CONCENTRATED, EXACT_SAMPLERS, ExactPlan, NoExactSamplerError, plan_exact
from pymc_dpdepth.samplers.hierarchy_plan import HIERARCHY
from pymc_dpdepth.tables import Table, read_table

__all__ = ["private_median"]

LOCATION, MECHANISM = "location", "median"


def private_median(
    data: Any,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    prior: Any,
    depth: Any = "halfspace",
    directions: Any = None,
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
    r"""Release one differentially private multivariate median.

    One draw of the exponential mechanism

        p(theta) ∝ exp(beta * D(theta; X)) * prior(theta),    beta = epsilon / (2 * sensitivity of D).

    Parameters
    ----------
    data : array_like, DataFrame or path, shape (n, d)
        Private table with one row for each unit: NumPy array, nested list, pandas or polars DataFrame, or the path of a
        CSV or Parquet file. n is public.
    epsilon : float
        Privacy loss, > 0.
    delta : float
        0 is pure epsilon-DP. With delta > 0, far below 1/n, the release may be a concentrated one: an exact draw for
        each direction, composed in zero-concentrated DP, which costs (epsilon, delta) together.
    rho : float, optional
        In place of epsilon: the cost in zero-concentrated DP.
    prior : PyMC distribution, str, sequence or mapping
        Where the median may lie, chosen without looking at the data, in the units of the columns: a distribution of
        shape d such as ``pm.Normal.dist(0, 10, shape=d)``; text such as "normal(0, 100)" or "uniform(0, [80, 1e5])"; or
        one distribution or text for each column, in order or by column name.
    depth : Depth or str
        "halfspace", "integrated_rank_weighted", "integrated_dual", "spatial", "modified_spatial", "simplicial", or an
        object.
    directions : Directions, str or array_like, optional
        Replaces the directions of the depth. By default halfspace depth takes 100 balanced directions for two to four
        columns, in units of the prior, and the axes for more; the other depths take the axes. "axes" gives every
        column a median of its own, whatever its units, and is drawn at once.
    columns : sequence of str or int, optional
        Columns to use; all by default.
    sampler : {"auto", "segments", "boxes", "products", "branch_and_bound", "planar", "concentrated", "certified",
            "nuts", "slice", "smc"}
        "auto" takes a sampler that draws from the law itself: to the bit ("exact") for every depth that is counted, in
        doubles ("float64") for spatial and smoothed depths; the Release says which. With delta or rho it chooses
        between the joint draw and the concentrated release, by the number of directions and the budget alone. It never
        takes a Markov chain without `accept_asymptotic`. "certified", with delta > 0, makes a fixed number of tries, so
        that the running time hardly depends on the rows; it is refused where n * epsilon is large.
    nonfinite : {"raise", "prior"}
        Refuse non-finite entries before anything is charged, or set them to the prior's median.
    max_rows_per_unit : int
        Largest number of rows that one person may have; the cost is this times epsilon.
    accept_asymptotic : bool
        Allow a Markov chain where there is no exact sampler; its epsilon is nominal.
    ledger : BudgetLedger, optional
        Charged before the draw. A `Ledger` that was opened with a key checks that `data` are its rows.
    label : str, optional
        What the ledger calls the charge, by default "median". It is public and must not come from the rows.
    random_seed : int, optional
        For simulation; warns and is recorded.
    progressbar : bool
        For Markov chains.

    Returns
    -------
    Release
        `value` holds the median over "coordinate".

    Raises
    ------
    InexactReleaseError
        If only a Markov chain could draw it and `accept_asymptotic` is False.
    UnboundedSensitivityError, ImproperMechanismError
        If the depth or the prior does not make a private mechanism.
    NoExactSamplerError
        A ValueError: the exact sampler that was asked for does not fit.
    ValueError, TypeError
        If an argument is not usable. In every case nothing has been charged.

    Warns
    -----
    PrivacyLeakWarning
        If a seed is given, or a parameter of the prior equals a statistic of the data.
    ApproximateSamplingWarning
        If the draw comes from a Markov chain.

    Notes
    -----
    Pure epsilon-DP where delta = 0, for neighbours that differ in one replaced row; otherwise (epsilon, delta)-DP, or
    rho-zCDP. With exact samplers the guarantee is "exact": it holds to the bit, on a grid chosen without the data.
    Rows that you filter out before make n private; it is then part of what must be protected.

    The concentrated release gives each of M directions an exponential mechanism of its own at epsilon_1, where M (k - 1
    - ln k) = rho, k = epsilon_1 / (exp(epsilon_1) - 1): each draw is bounded-range. Its error grows with sqrt(M), that
    of the joint draw with M.

    References
    ----------
    .. [1] K. Ramsay and S. Chenouri, Differentially private depth functions and their associated medians, 2021,
           arXiv:2101.02800.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_dpdepth as dpd
    >>> rows = np.column_stack([np.linspace(20, 60, 500), np.linspace(1e4, 5e4, 500)])
    >>> release = dpd.private_median(
    ...     rows, epsilon=1.0, prior=[pm.Normal.dist(40, 30), pm.Uniform.dist(0, 1e5)]
    ... )
    >>> release.value.sizes["coordinate"], release.sampler
    (2, 'branch_and_bound')
    """
    import xarray as xr

    check_ledger(ledger)
    ledger = labelled(ledger, label)
    check_data(ledger, data)
    check_sampler(sampler, (*SAMPLERS, CONCENTRATED, CERTIFIED))
    if sampler == HIERARCHY:
        raise NoExactSamplerError(
            f'sampler="{HIERARCHY}" draws groups that a prior ties together, and private_median has one group; build a '
            "model with exponential_mechanism(..., groups=labels) and pass it to release"
        )
    budget = read_budget(epsilon, delta, rho)
    table = data if isinstance(data, Table) else read_table(data, columns)
    if directions is None:
        directions = _directions_of(sampler, depth, len(table.columns))
    location = prior_distribution(prior, table.columns)
    settings, product, rows = set_up(
        MECHANISM,
        location,
        table,
        depth=depth,
        epsilon=budget.joint_epsilon,
        directions=directions,
        nonfinite=nonfinite,
        max_rows_per_unit=max_rows_per_unit,
    )
    warn_if_delta_is_large(budget.delta, settings.n)
    plan = exact_or_consent(lambda: _plan(settings, product, location, budget, sampler), sampler, accept_asymptotic)
    if plan is not None:
        cost = plan.cost if isinstance(plan, CertifiedPlan) else cost_of(plan, budget)
        return _exact_release(plan, rows, cost, ledger, random_seed)
    model = _model(settings, location, rows)
    made = release(
        model,
        sampler=sampler,
        accept_asymptotic=accept_asymptotic,
        ledger=ledger,
        random_seed=random_seed,
        progressbar=progressbar,
    )
    return replace(made, parameters=xr.Dataset({LOCATION: made.value}))


def _directions_of(sampler: str, depth: Any, d: int) -> Directions | None:
    """Return the axes where a sampler was named that needs them and the depth leaves its directions open."""
    depth = as_depth(depth)
    named = sampler in (*EXACT_SAMPLERS, CONCENTRATED)
    return Directions.axes(d) if named and getattr(depth, "directions", None) == AUTO else None


def prior_distribution(prior: Any, columns: Sequence[str]) -> Any:
    """Return a prior, in any of the forms that `private_median` takes, as an unregistered variable of shape (d,)."""
    import pytensor.tensor as pt
    from pytensor.tensor.variable import TensorVariable

    if prior is None:
        raise TypeError(
            "prior: expected where the median may lie, chosen without the data, such as pm.Normal.dist(0, 10, "
            "shape=d) or "
            '"uniform(0, 100)"; got None.'
        )
    if isinstance(prior, TensorVariable):
        if prior.ndim == 0 and len(columns) == 1:
            return prior[None]
        return prior
    if isinstance(prior, str | PriorSpec):
        return build_prior(prior, columns)
    if isinstance(prior, Mapping):
        unknown, missing = sorted(map(str, set(prior) - set(columns))), sorted(set(columns) - set(prior))
        if unknown or missing:  # as text, since keys of several types have no order
            raise ValueError(f"prior: expected one entry for each column; missing {missing}, unknown {unknown}.")
        prior = [prior[column] for column in columns]
    if isinstance(prior, Sequence) and not isinstance(prior, str):
        if len(prior) != len(columns):
            raise ValueError(f"prior: expected {len(columns)} entries, one for each column, got {len(prior)}.")
        parts = [_scalar(entry, column) for entry, column in zip(prior, columns, strict=True)]
        return pt.concatenate(parts) if len(parts) > 1 else parts[0]
    raise TypeError(
        f"prior: expected a PyMC distribution, text, or one of these for each column, got {type(prior).__name__}."
    )


def _scalar(entry: Any, column: str):
    """Return one column's prior as a variable of shape (1,)."""
    from pytensor.graph.replace import clone_replace
    from pytensor.tensor.random.type import RandomGeneratorType
    from pytensor.tensor.variable import TensorVariable

    if isinstance(entry, str | PriorSpec):
        entry = build_prior(entry, [column])
    if not isinstance(entry, TensorVariable) or entry.ndim > 1:
        raise TypeError(f"prior of column {column!r}: expected a scalar PyMC distribution or text.")
    # One prior may stand in several places of a list: each column needs a variable of its own.
    generators = [v for v in entry.owner.inputs if isinstance(v.type, RandomGeneratorType)] if entry.owner else []
    entry = clone_replace(entry, {generator: generator.clone() for generator in generators}, rebuild_strict=False)
    return entry[None] if entry.ndim == 0 else entry


def _plan(
    settings: Mechanism, prior, location, budget: AskedBudget, sampler: str
) -> ExactPlan | BranchPlan | CertifiedPlan:
    """Return the joint plan or the concentrated one, by public quantities alone."""
    if sampler == CERTIFIED:
        return plan_certified(settings, prior, location, budget.delta)
    if budget.rho is None:
        if sampler == CONCENTRATED:
            raise ValueError(
                'sampler="concentrated" composes its draws in zero-concentrated DP; pass delta=1e-6 (below 1/n) beside '
                "epsilon, or rho= in its place."
            )
        return plan_draws(settings, prior, location, sampler)
    if sampler not in ("auto", CONCENTRATED):
        return plan_draws(settings, prior, location, sampler)
    try:
        concentrated = plan_concentrated(settings, prior, budget.rho, budget.epsilon)
    except NoExactSamplerError:
        if sampler == CONCENTRATED:
            raise
        return plan_draws(settings, prior, location)
    joint = plan_exact(settings, prior)
    return concentrated if sampler == CONCENTRATED or prefers_concentrated(joint, concentrated) else joint


def _exact_release(plan: ExactPlan | BranchPlan | CertifiedPlan, rows, cost: Cost, ledger, random_seed) -> Release:
    """Charge, draw once and record; no PyMC model is built."""
    import xarray as xr

    settings = plan.settings
    bits = random_bits(random_seed)
    record = plan.describe()
    charge(
        ledger,
        epsilon=cost.epsilon,
        delta=cost.delta,
        label=settings.name,
        bounded_range=cost.bounded_range,
    )
    (theta,) = plan.draw(rows, bits, 1)
    value = xr.DataArray(theta, dims=["coordinate"], coords={"coordinate": list(settings.columns)})
    return Release(
        locations={settings.name: value},
        parameters=xr.Dataset({LOCATION: value}),
        epsilon=cost.epsilon,
        delta=cost.delta,
        rho=cost.rho,
        guarantee=plan.guarantee,
        max_rows_per_unit=settings.max_rows_per_unit,
        sampler=plan.sampler,
        simulation=bits.simulation,
        mechanisms=(record,),
        priors={settings.name: plan.prior.describe()},
    )


def _model(settings: Mechanism, location: Any, rows: np.ndarray):
    """Return the PyMC model of a mechanism. The prior is copied: registering it would change the user's."""
    import pymc as pm
    from pytensor.graph.replace import clone_replace

    check_prior_parts(list(components(location)))
    location = clone_replace(location, rebuild_strict=False)
    # model=None: inside a `with pm.Model()` of the user's, the private mechanism must not join that model.
    with pm.Model(coords={"coordinate": list(settings.columns)}, model=None) as model:
        if is_random(location):
            model.register_rv(location, LOCATION, dims=("coordinate",))
        else:
            parts = list(components(location))
            labels = settings.columns if len(parts) == settings.d else range(len(parts))
            for part, label in zip(parts, labels, strict=True):
                model.register_rv(part, f"{LOCATION}_{label}")
            location = pm.Deterministic(LOCATION, location, dims=("coordinate",))
        pm.Potential(settings.name, potential(settings, location, rows))
    return model
