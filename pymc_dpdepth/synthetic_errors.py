"""Errors of a private median for several numbers of rows and epsilons, on synthetic rows: to plan without data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from pymc_dpdepth.depths.medians import coordinatewise_median
from pymc_dpdepth.mechanism import positive_integer
from pymc_dpdepth.prior_comparison import prior_grid
from pymc_dpdepth.randomness import curator_generator

__all__ = ["error_grid"]

SEEDS = 2**62
REFERENCE_ROWS = 100_000  # by which the population's median and spread are told, where they are not given
QUARTILES = (0.25, 0.75)
CONTENTS = "synthetic rows alone"


def error_grid(
    population: Any,
    *,
    n: int | Iterable[int],
    epsilon: float | Iterable[float],
    prior: Any,
    depth: Any = "halfspace",
    directions: Any = None,
    columns: Sequence[str] | None = None,
    target: Any = None,
    replicates: int = 50,
    draws: int = 5,
    random_seed: int | None = None,
    progressbar: bool = True,
) -> Any:
    r"""Return errors of a private median against n and epsilon, on synthetic tables of a population.

    For each n, tables are drawn from the population, the same ones for every epsilon, and from each table exact draws
    theta. With the target t and the interquartile range s_j of the population's coordinate j,

        distance = sqrt(sum_j ((theta_j - t_j) / s_j)^2).

    Parameters
    ----------
    population : callable or PyMC distribution
        ``population(generator, n)`` returns n rows, shape (n, d), drawn with a NumPy generator; or the distribution of
        one row. It must be chosen without the private rows.
    n : int or iterable of int
        Numbers of rows.
    epsilon : float or iterable of float
        Privacy losses of one draw.
    prior, depth, directions
        Of the mechanism, as `private_median` takes them.
    columns : sequence of str, optional
        Names of the columns, needed where the prior is given by column name.
    target : array_like, optional
        What the location should be near; by default the coordinatewise median of 100,000 rows of the population.
    replicates : int
        Tables for each n, at least 2.
    draws : int
        Exact draws from each table; they only make the error known more precisely.
    random_seed : int, optional
        Makes the errors reproducible. There is no warning, since nothing here is private.
    progressbar : bool

    Returns
    -------
    xarray.Dataset
        Over "epsilon" and "n": `distance_rms` with its `standard_error`, and `rmse` (also over "coordinate") in the
        columns' units. Over "n": `nonprivate_rms`, the same of the tables' own coordinatewise medians. Over
        "coordinate": `target` and `spread`.

    Raises
    ------
    NoExactSamplerError
        A ValueError, if this prior and depth have no exact sampler.
    ValueError, TypeError
        If an argument is not usable.

    Notes
    -----
    No private row is used, so nothing is charged. That holds as long as the population and the prior are public
    knowledge; nothing here can check it. Run it under several populations: where the rows are not as you think, the
    errors are not either.

    Examples
    --------
    >>> import pymc_dpdepth as dpd
    >>> errors = dpd.error_grid(
    ...     lambda generator, n: generator.normal(size=(n, 2)), n=[50, 500], epsilon=[0.5, 2.0], prior="normal(0, 5)",
    ...     directions="axes", replicates=10, random_seed=1, progressbar=False,
    ... )
    >>> errors["distance_rms"].dims
    ('epsilon', 'n')
    >>> bool((errors["distance_rms"].sel(n=500) < errors["distance_rms"].sel(n=50)).all())
    True
    """
    sizes = _ascending(n, "n", lambda value: positive_integer(value, "n"))
    epsilons = _ascending(epsilon, "epsilon", float)
    generator = curator_generator(random_seed)
    source = population if callable(population) else _sampler(population)
    reference = np.asarray(source(generator, REFERENCE_ROWS), dtype=np.float64)
    if reference.ndim not in (1, 2) or len(reference) != REFERENCE_ROWS:
        raise ValueError(f"population: expected {REFERENCE_ROWS:,} rows when asked for them, got {reference.shape}.")
    reference = reference.reshape(REFERENCE_ROWS, -1)
    if target is None:
        target = coordinatewise_median(reference)
    spread = np.subtract(*np.quantile(reference, QUARTILES[::-1], axis=0))
    spread = np.where(spread > 0, spread, 1.0)
    settings = {"depth": depth, "directions": directions, "columns": columns, "target": target}
    settings |= {"replicates": replicates, "draws": draws, "progressbar": False}
    seeds = {size: int(generator.integers(SEEDS)) for size in sizes}
    cells, tables = {}, {}
    for size, one in _progress([(size, one) for size in sizes for one in epsilons], progressbar):
        seen: list[np.ndarray] = []
        grid = prior_grid(
            priors={"prior": prior},
            population=_recording(source, seen),
            n=size,
            epsilon=one,
            random_seed=seeds[size],
            **settings,
        )
        cells[one, size] = grid.dataset["error"].isel(prior=0)
        tables[size] = seen
    return _dataset(cells, tables, epsilons, sizes, spread, grid.dataset["target"])


def _ascending(values: Any, name: str, convert: Callable[[Any], Any]) -> list[Any]:
    """Return one or several values as an ascending list without repetition."""
    if isinstance(values, str | bytes):
        raise TypeError(f"{name}: expected a number or a list of numbers, got {type(values).__name__}.")
    listed = list(values) if isinstance(values, Iterable) else [values]
    if not listed:
        raise ValueError(f"{name}: expected one number or more, got none.")
    return sorted({convert(value) for value in listed})


def _sampler(distribution: Any) -> Callable[[Any, int], np.ndarray]:
    """Return a function of (generator, n) that draws rows of a PyMC distribution, which is compiled once."""
    from pytensor.tensor.variable import TensorVariable

    if not isinstance(distribution, TensorVariable):
        raise TypeError(
            "population: expected a function of (generator, n) that returns n rows, or a PyMC distribution of one row; "
            f"got {type(distribution).__name__}. Synthetic rows only: never pass private ones."
        )
    import pymc as pm

    pools: list[np.ndarray] = []

    def sample(generator: Any, n: int) -> np.ndarray:
        # One large draw is the population from then on: each table is drawn from its rows.
        if not pools:
            seed = int(generator.integers(2**32))  # the most that PyMC takes
            drawn = pm.draw(distribution, draws=REFERENCE_ROWS, random_seed=seed, mode="FAST_COMPILE")
            pools.append(np.asarray(drawn, dtype=np.float64).reshape(REFERENCE_ROWS, -1))
        return pools[0] if n == REFERENCE_ROWS else pools[0][generator.integers(REFERENCE_ROWS, size=n)]

    return sample


def _recording(source: Callable[[Any, int], Any], seen: list[np.ndarray]) -> Callable[[Any, int], Any]:
    """Return the population, which keeps the tables that it gives."""

    def sample(generator: Any, n: int) -> Any:
        rows = source(generator, n)
        seen.append(np.asarray(rows, dtype=np.float64))
        return rows

    return sample


def _progress(cells: list[tuple[int, float]], progressbar: bool) -> Iterable[tuple[int, float]]:
    if not progressbar:
        return cells
    from rich.progress import track

    return track(cells, description="Errors")


def _dataset(cells: dict, tables: dict, epsilons: list, sizes: list, spread: np.ndarray, target: Any) -> Any:
    """Return the root mean square errors of all cells; tables are independent, draws of one table are not."""
    import xarray as xr

    errors = np.array([[cells[one, size].values for size in sizes] for one in epsilons])  # (e, n, replicate, draw, d)
    of_tables = ((errors / spread) ** 2).sum(axis=-1).mean(axis=-1)
    rms = np.sqrt(of_tables.mean(axis=-1))
    with np.errstate(divide="ignore", invalid="ignore"):
        # By the delta method, as for `prior_grid`.
        standard_error = of_tables.std(axis=-1, ddof=1) / np.sqrt(of_tables.shape[-1]) / (2.0 * rms)
    medians = [np.array([coordinatewise_median(rows.reshape(len(rows), -1)) for rows in tables[n]]) for n in sizes]
    nonprivate = [np.sqrt((((m - target.values) / spread) ** 2).sum(axis=1).mean()) for m in medians]
    return xr.Dataset(
        {
            "distance_rms": (("epsilon", "n"), rms),
            "standard_error": (("epsilon", "n"), standard_error),
            "rmse": (("epsilon", "n", "coordinate"), np.sqrt((errors**2).mean(axis=(2, 3)))),
            "nonprivate_rms": ("n", nonprivate),
            "target": target,
            "spread": ("coordinate", spread),
        },
        coords={"epsilon": epsilons, "n": sizes, "coordinate": target.coords["coordinate"].values},
        attrs={"contents": CONTENTS, "replicates": of_tables.shape[-1]},
    )
