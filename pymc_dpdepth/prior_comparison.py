"""The same private median under several priors, on synthetic rows: to choose a prior without spending budget."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pymc_dpdepth.errors import PrivacyLeakWarning
from pymc_dpdepth.mechanism import positive_integer, set_up
from pymc_dpdepth.prior_grid_record import PriorGrid, summarise
from pymc_dpdepth.randomness import SeededBits, curator_generator
from pymc_dpdepth.samplers.dispatch import plan_draws
from pymc_dpdepth.trace_values import locations, mechanisms_of

__all__ = ["prior_grid"]

MECHANISM = "median"
PRIOR_DRAWS = 4000  # from which the prior's mass and width are told: within .02 and some per cent
SEEDS = 2**62


@dataclass(frozen=True, eq=False)
class Drawn:
    """Draws under one prior.

    Attributes
    ----------
    theta : ndarray, shape (replicates, draws, k)
        Locations of all mechanisms side by side.
    coordinates : list of str, length k
    outside : ndarray of bool, shape (replicates, draws)
        Whether a location lies outside the range of its rows in some coordinate.
    quartiles : ndarray, shape (2, k)
        Of the rows of all replicates.
    medians : ndarray, shape (replicates, k)
        Coordinatewise medians of the rows of each replicate.
    prior : ndarray, shape (PRIOR_DRAWS, k)
        Draws of the prior.
    """

    theta: np.ndarray
    coordinates: list[str]
    outside: np.ndarray
    quartiles: np.ndarray
    medians: np.ndarray
    prior: np.ndarray


def prior_grid(
    model_builder: Callable[[np.ndarray, Any], Any] | None = None,
    priors: Mapping[str, Any] | Sequence[Any] | None = None,
    *,
    population: Any,
    n: int,
    epsilon: float | None = None,
    depth: Any = None,
    directions: Any = None,
    columns: Sequence[str] | None = None,
    target: Any = None,
    replicates: int = 50,
    draws: int = 20,
    random_seed: int | None = None,
    progressbar: bool = True,
) -> PriorGrid:
    r"""Compare priors of a private median by its error on synthetic rows, so that choosing one costs no budget.

    Tables of n rows are drawn from a population model, the same ones for every prior, and from each table exact draws
    of the mechanism. With theta a draw, t the target and s the interquartile range of the population,

        distance = sqrt(sum_j ((theta_j - t_j) / s_j)^2).

    Parameters
    ----------
    model_builder : callable, optional
        ``model_builder(rows, prior)`` returns a pm.Model with one or more mechanisms on the rows, for models that
        `private_median` has not; the same function then takes the real rows. Left out, the model is that of
        ``private_median(rows, prior=prior, epsilon=epsilon, depth=depth, directions=directions)``.
    priors : mapping of str, or sequence
        What stands for `prior`, by name or in order: without a builder anything that `private_median` takes, such as
        "normal(0, 10)" or a PyMC distribution; with one, whatever it takes.
    population : callable or PyMC distribution
        ``population(generator, n)`` returns n rows, shape (n, d), drawn with a NumPy generator; or the distribution of
        one row, such as ``pm.MvStudentT.dist(...)``. It must be chosen without the private rows.
    n : int
        Rows of a table, as many as the private one has.
    epsilon, depth, directions
        Of the mechanism; depth is "halfspace" by default. Left out with a builder, whose model has its own.
    columns : sequence of str, optional
        Names of the columns, needed where a prior is given by column name.
    target : array_like, optional
        What the location should be near. By default the population's coordinatewise median, estimated from all
        synthetic rows; needed with several mechanisms or groups, for all coordinates of the first, then the second.
    replicates : int
        Tables, at least 2.
    draws : int
        Exact draws from each table; they only make the error known more precisely.
    random_seed : int, optional
        Makes the comparison reproducible. There is no warning, since nothing here is private.
    progressbar : bool

    Returns
    -------
    PriorGrid
        `dataset` has, for each prior, the root mean square distance with its standard error, quantiles of the distance,
        the root mean square error of each coordinate in its own units, the share of draws outside the rows' range, and
        the prior's mass below the target and width in units of s. It prints as a table, by rich too.

    Raises
    ------
    NoExactSamplerError
        A ValueError: there is no exact sampler for one of the priors, such as a hierarchical one.
    ValueError, TypeError
        If an argument is not usable.

    Notes
    -----
    No private row is used, so nothing is charged and the result may be shown to anyone. That holds only as long as the
    population, the priors and n come from public knowledge: a population fitted to private rows makes the comparison,
    and the prior chosen by it, functions of those rows. Nothing here can check that.

    A narrow prior around the target always wins; what the comparison is for is how much a prior that is wide enough to
    be safe costs, and what happens if the population is not where the prior says. Run it under several populations.

    Examples
    --------
    >>> import pymc_dpdepth as dpd
    >>> grid = dpd.prior_grid(
    ...     priors={"near": "normal(0, 3)", "far": "normal(0, 1000)"},
    ...     population=lambda generator, n: generator.standard_t(3, size=(n, 2)),
    ...     n=100, epsilon=0.5, replicates=10, random_seed=1, progressbar=False,
    ... )
    >>> grid.best
    'near'
    >>> grid.dataset["rmse"].dims
    ('prior', 'coordinate')
    """
    named = _named(priors)
    n, draws = positive_integer(n, "n"), positive_integer(draws, "draws")
    replicates = positive_integer(replicates, "replicates")
    if replicates == 1:
        raise ValueError("replicates: expected at least 2, for a standard error; got 1.")
    settings = {"epsilon": epsilon, "depth": depth, "directions": directions}
    _check_settings(model_builder, settings)
    generator = curator_generator(random_seed)
    tables = _tables(population, n, replicates, generator)
    if columns is None:
        columns = [f"x{j}" for j in range(tables.shape[2])]
    elif len(columns) != tables.shape[2]:
        raise ValueError(f"columns: expected {tables.shape[2]} names, as the population has, got {len(columns)}.")
    seeds = generator.integers(SEEDS, size=replicates)
    found = {}
    for name, prior in _progress(named, progressbar):
        with warnings.catch_warnings():
            # A prior that equals a statistic of synthetic rows, and seeds of draws that are no release, leak nothing.
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            if model_builder is None:
                found[name] = _draw_medians(prior, tables, list(columns), settings, draws, seeds)
            else:
                found[name] = _draw_models(model_builder, prior, tables, draws, seeds)
    return _grid(found, target, n)


def _named(priors: Any) -> dict[str, Any]:
    """Return priors by name; texts name themselves."""
    if isinstance(priors, Mapping):
        named = {str(name): prior for name, prior in priors.items()}
    elif isinstance(priors, Sequence) and not isinstance(priors, str):
        names = [prior if isinstance(prior, str) else f"prior {i}" for i, prior in enumerate(priors, start=1)]
        named = dict(zip(names, priors, strict=True))
    else:
        raise TypeError(
            'priors: expected a mapping such as {"narrow": "normal(0, 10)", "wide": "normal(0, 100)"}, or a list; got '
            f"{type(priors).__name__}."
        )
    if not named or len(named) < len(priors):
        raise ValueError("priors: expected one or more, each with a name of its own.")
    return named


def _check_settings(model_builder: Any, settings: dict[str, Any]) -> None:
    """Refuse a mechanism that is described twice, or not at all."""
    if model_builder is None:
        if settings["epsilon"] is None:
            raise ValueError("epsilon: expected a number > 0, the privacy loss of the release; got none.")
        settings["depth"] = "halfspace" if settings["depth"] is None else settings["depth"]
        return
    if not callable(model_builder):
        raise TypeError(
            "model_builder: expected a function of (rows, prior) that returns a pm.Model, or None; got "
            f"{type(model_builder).__name__}. Priors are the second argument."
        )
    given = [name for name, value in settings.items() if value is not None]
    if given:
        raise ValueError(f"{', '.join(given)}: with a model_builder these belong to its model; leave them out here.")


def _tables(population: Any, n: int, replicates: int, generator: Any) -> np.ndarray:
    """Return synthetic tables, shape (replicates, n, d)."""
    from pytensor.tensor.variable import TensorVariable

    if isinstance(population, TensorVariable):
        import pymc as pm

        seed = int(generator.integers(2**32))  # the most that PyMC takes
        rows = pm.draw(population, draws=replicates * n, random_seed=seed, mode="FAST_COMPILE")
        tables = list(np.asarray(rows, dtype=np.float64).reshape(replicates, n, -1))
    elif callable(population):
        tables = [_as_table(population(generator, n)) for _ in range(replicates)]
    else:
        raise TypeError(
            "population: expected a function of (generator, n) that returns n rows, or a PyMC distribution of one row; "
            f"got {type(population).__name__}. Synthetic rows only: never pass private ones."
        )
    shapes = sorted({table.shape for table in tables})
    if len(shapes) > 1 or shapes[0][0] != n or shapes[0][1] < 1:
        raise ValueError(f"population: expected {n} rows of one or more columns at every call, got shapes {shapes}.")
    tables = np.stack(tables)
    if not np.isfinite(tables).all():
        raise ValueError("population: expected finite rows; some entries are missing or infinite.")
    return tables


def _as_table(rows: Any) -> np.ndarray:
    """Return rows as doubles (n, d); one column may come as a vector."""
    array = np.asarray(rows, dtype=np.float64)
    if array.ndim not in (1, 2):
        raise ValueError(f"population: expected rows of shape (n, d), got {array.ndim} dimensions.")
    return array[:, None] if array.ndim == 1 else array


def _progress(named: dict[str, Any], progressbar: bool) -> Iterator[tuple[str, Any]]:
    items = list(named.items())
    if not progressbar:
        return iter(items)
    from rich.progress import track

    return iter(track(items, description="Priors"))


def _draw_medians(prior, tables, columns, settings, draws, seeds) -> Drawn:
    """Draw the private median of each table under one prior; the mechanism is planned once, without the rows."""
    from pymc_dpdepth.median import prior_distribution
    from pymc_dpdepth.tables import Table

    location = prior_distribution(prior, columns)
    public, product, _ = set_up(MECHANISM, location, Table(tables[0], tuple(columns)), **settings)
    plan = plan_draws(public, product, location)
    theta = np.stack([plan.draw(rows, SeededBits(int(seed)), draws) for rows, seed in zip(tables, seeds, strict=True)])
    return _collected([theta], [tables], [location], [columns])


def _draw_models(model_builder, prior, tables, draws, seeds) -> Drawn:
    """Draw the locations of a user's model for each table."""
    from pymc_dpdepth.from_model import sample_exact

    thetas, rows, mechanisms = [], [], []
    for table, seed in zip(tables, seeds, strict=True):
        model = model_builder(table.copy(), prior)
        mechanisms = mechanisms_of(model)
        drawn = sample_exact(draws, model=model, random_seed=int(seed)).posterior
        values = {v.name: drawn[v.name].values[0] for v in model.free_RVs}
        named = all(mechanism.location.name in values for mechanism in mechanisms)
        thetas.append(
            [values[m.location.name].reshape(draws, -1) for m in mechanisms]
            if named
            else locations(mechanisms, model, values)
        )
        rows.append([mechanism.rows for mechanism in mechanisms])
    several = len(mechanisms) > 1
    labels = [[f"{m.settings.name}: {c}" if several else c for c in m.settings.columns] for m in mechanisms]
    return _collected(
        [np.stack(part) for part in zip(*thetas, strict=True)],
        [np.stack(part) for part in zip(*rows, strict=True)],
        [mechanism.location for mechanism in mechanisms],
        labels,
    )


def _collected(thetas, tables, priors, columns) -> Drawn:
    """Put the mechanisms of a model side by side."""
    outside = [
        ((theta < rows.min(axis=1)[:, None]) | (theta > rows.max(axis=1)[:, None])).any(axis=2)
        for theta, rows in zip(thetas, tables, strict=True)
        if rows.shape[1]
    ]
    pooled = [rows.reshape(-1, rows.shape[2]) for rows in tables]
    return Drawn(
        theta=np.concatenate(thetas, axis=2),
        coordinates=[name for names in columns for name in names],
        outside=np.any(outside, axis=0) if outside else np.zeros(thetas[0].shape[:2], dtype=bool),
        quartiles=np.concatenate([np.quantile(rows, [0.25, 0.75], axis=0) for rows in pooled], axis=1),
        medians=np.concatenate([np.median(rows, axis=1) for rows in tables], axis=1),
        prior=_prior_draws(priors),
    )


def _prior_draws(priors: list[Any]) -> np.ndarray:
    """Return draws of the locations from their prior, with a public seed."""
    import pymc as pm

    drawn = pm.draw(priors, draws=PRIOR_DRAWS, random_seed=0, mode="FAST_COMPILE")
    return np.concatenate([np.reshape(part, (PRIOR_DRAWS, -1)) for part in drawn], axis=1)


def _grid(found: dict[str, Drawn], target: Any, n: int) -> PriorGrid:
    """Put the draws under all priors together."""
    first = next(iter(found.values()))
    if any(drawn.coordinates != first.coordinates for drawn in found.values()):
        raise ValueError("model_builder: expected models with the same mechanisms and columns for every prior.")
    if target is None:
        if any(": " in name for name in first.coordinates):
            raise ValueError(
                f"target: expected {len(first.coordinates)} numbers, for {first.coordinates}: with several mechanisms "
                "the population alone does not tell what each location should be near."
            )
        target = np.median(first.medians, axis=0)
    target = np.asarray(target, dtype=np.float64)
    if target.shape != (len(first.coordinates),) or not np.isfinite(target).all():
        raise ValueError(
            f"target: expected {len(first.coordinates)} finite numbers, for {first.coordinates}; got the shape "
            f"{target.shape}."
        )
    return summarise(found, target, n)
