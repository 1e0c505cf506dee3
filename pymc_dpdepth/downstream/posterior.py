"""The front door: Releases and a model of the population in, a posterior and an interval of its median out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pymc_dpdepth.downstream.likelihood import Randomness, log_likelihood_of, tables_of
from pymc_dpdepth.downstream.observations import DepthValues, Median, assumptions, read_release
from pymc_dpdepth.downstream.population import Population, read_population
from pymc_dpdepth.downstream.stability import errors_of_ends, families_of, largest_r_hat, warn_of_unstable_ends
from pymc_dpdepth.downstream.tempering import POOL, Result, sample
from pymc_dpdepth.errors import warn_user
from pymc_dpdepth.mechanism import positive_integer
from pymc_dpdepth.plot_marks import record_mark
from pymc_dpdepth.randomness import curator_generator
from pymc_dpdepth.record import Release

__all__ = ["posterior_given_release"]

MEDIAN = "population_median"
SEEDS = 2**32
UNLIKELY = 0.01  # a model that makes the release less likely than this contradicts it


def posterior_given_release(
    release: Release | Sequence[Release],
    population_model: Any,
    *,
    row: str | Sequence[str] = "row",
    same_rows: bool = True,
    draws: int = 1000,
    chains: int = 2,
    replicates: int = 50,
    ci_prob: float = 0.95,
    random_seed: int | None = None,
    progressbar: bool = True,
) -> Any:
    r"""Return the posterior of a population's parameters and median, given what was released about n rows of it.

    The rows are unknown, independent draws of the population, and the release is a noisy observation of them, whose law
    is that of the mechanism. For parameters phi with prior p(phi), and a released location r,

        p(phi | r) ∝ p(phi) E_X|phi [ exp(beta D(r; X)) prior(r) / Z(X) ],

    Z(X) the mechanism's normaliser, so that the pull of the mechanism's own prior is accounted for. It is computed from
    the Release alone: post-processing, which costs no privacy.

    Parameters
    ----------
    release : Release or sequence of Release
        A `private_median` of a step depth (halfspace, integrated rank-weighted or dual) in one column or along the axes
        (``directions="axes"``), or a `private_depth` at chosen points of one column. Several of one column, or of
        independent tables, are used together.
    population_model : pm.Model
        The law of one row: a variable `row` whose columns are independent, given the other free variables, the
        parameters. Units are those of the release.
    row : str or sequence of str
        Name of that variable, or the names of one variable for each column, in order.
    same_rows : bool
        Whether several releases were made from one table. False: from tables of different people.
    draws, chains : int
        Draws of each chain; the chains are independent runs.
    replicates : int
        Tables simulated for each estimate of the likelihood. More make the last steps move better; the posterior that
        they approach is the same.
    ci_prob : float
        Probability of the equal-tailed interval of each coordinate.
    random_seed : int, optional
        Of the computation. The Release is public, so a seed does no harm here.
    progressbar : bool
        Show the chains' progress.

    Returns
    -------
    DataTree
        Group "posterior": the parameters, the Deterministics of these, and `population_median` over "coordinate", the
        median of each column of the population. Group "interval": the interval of `population_median`, over
        ("coordinate", "bound"). It works with ArviZ, and may be published with the release.

    Raises
    ------
    TypeError, ValueError
        If a release or the model is of a kind whose law is not worked out, or they do not fit together.

    Warns
    -----
    ApproximateSamplingWarning
        If a release is a draw of a Markov chain.
    UserWarning
        If rows may have had missing entries or one person several rows; if the release contradicts the model; if the
        interval's ends have Monte Carlo errors above a tenth of its width, R-hat of its chains is above 1.05, or the
        particles of a single chain go back to fewer than 20 draws of the prior.

    Notes
    -----
    Free of privacy cost: a function of Releases, public knowledge and fresh randomness. Priors that were chosen with
    another look at the private rows would not be.

    What is exact, and what is approximate (docs/posterior_given_release.md): the sum over the counts of rows below r is
    exact, the rest of the likelihood is an unbiased estimate, so the posterior is exact up to the number of draws (and
    the 7th digit of the likelihood). Assumed: rows are independent, n is the number of people, columns are independent
    and continuous. One median says next to nothing of the scale of the population; the interval is as right as the
    prior of the scale, or as a second release (`private_depth` at two points) makes it.

    References
    ----------
    .. [1] C. Andrieu and G. O. Roberts, The pseudo-marginal approach for efficient Monte Carlo computations, Annals of
           Statistics 37 (2009) 697-725, doi:10.1214/07-AOS574.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_dpdepth as dpd
    >>> rows = np.linspace(20, 60, 500)[:, None]
    >>> release = dpd.private_median(rows, epsilon=1.0, prior="normal(50, 30)")
    >>> with pm.Model() as population:
    ...     center = pm.Normal("center", 50, 30)
    ...     spread = pm.HalfNormal("spread", 20)
    ...     _ = pm.Normal("row", center, spread)
    >>> idata = dpd.posterior_given_release(release, population, replicates=5, progressbar=False)
    >>> sorted(idata.posterior.data_vars), idata["interval"].sizes["bound"]
    (['center', 'population_median', 'spread'], 2)
    """
    draws, chains = positive_integer(draws, "draws"), positive_integer(chains, "chains")
    replicates = positive_integer(replicates, "replicates")
    if draws < 2:  # noqa: PLR2004
        raise ValueError("draws: expected at least 2, since the particles' spread sets the steps; got 1.")
    if isinstance(ci_prob, bool) or not isinstance(ci_prob, int | float) or not 0 < ci_prob < 1:
        raise ValueError(f"ci_prob: expected a number between 0 and 1, got {ci_prob!r}.")
    if not isinstance(same_rows, bool):
        raise TypeError(f"same_rows: expected True or False, got {type(same_rows).__name__}.")
    releases = [release] if isinstance(release, Release) or not isinstance(release, Sequence) else list(release)
    if not releases:
        raise ValueError("release: expected one Release or more, got an empty sequence.")
    observations = [read_release(one) for one in releases]
    population = read_population(population_model, row)
    tables = tables_of(observations, population.d, same_rows)
    columns = _columns(observations, population)
    generator = curator_generator(random_seed)
    stand_in = log_likelihood_of(tables, population, Randomness(None, 1))
    estimate = log_likelihood_of(tables, population, Randomness(generator, replicates))
    results = []
    for _ in _track(chains, progressbar):
        start = population.initial(POOL * draws, int(generator.integers(SEEDS)))
        results.append(sample(start, population.log_prior, stand_in, estimate, generator, draws))
    bound = log_likelihood_of(tables_of(observations, population.d, same_rows, True), population, Randomness(None, 1))
    best = max(float(bound(result.places).max()) for result in results)
    _warn_of_contradiction(best)
    idata = _tree(results, population, columns, ci_prob, releases)
    idata["posterior"].attrs["best_log_ratio"] = best
    return idata


def _columns(observations: Sequence[Median | DepthValues], population: Population) -> list[str]:
    """Return the names of the columns, on which releases and model must agree."""
    named = [observation.columns for observation in observations if observation.columns]
    if any(columns != named[0] for columns in named):
        raise ValueError(f"release: expected releases of the same columns, got {[list(columns) for columns in named]}.")
    if population.columns and named and population.columns != named[0]:
        raise ValueError(
            f"population_model: expected a row with the coords {list(named[0])}, in this order, got "
            f"{list(population.columns)}."
        )
    return list((named or [population.columns or ("0",)])[0])


def _warn_of_contradiction(best: float) -> None:
    """Warn where no parameters explain the releases.

    With q the law of releases that no row has touched, the mean of q / density is 1 under every phi, so the largest
    estimate is below c with a probability of at most c (Markov's inequality, at the phi that is true).
    """
    if best < math.log(UNLIKELY):
        warn_user(
            "The release contradicts the population model: at the best parameters found, such a release has a "
            f"probability of at most exp({best:.0f}), and could only be a draw of the mechanism's prior. Check the "
            "units and the priors of the population model.",
            UserWarning,
        )


def _track(chains: int, progressbar: bool):
    """Return the chains' numbers, with a progress bar where one is wanted."""
    if not progressbar:
        return range(chains)
    from rich.progress import track

    return track(range(chains), description="Sampling chains", transient=True)


def _tree(results: list[Result], population: Population, columns: list[str], ci_prob: float, releases) -> Any:
    """Return draws and interval as a DataTree."""
    import arviz_base
    import xarray as xr

    posterior: dict[str, list] = {}
    medians = []
    for result in results:
        for name, value in population.values(result.places).items():
            posterior.setdefault(name, []).append(value)
        halves = np.full((len(result.places), 1), 0.5)
        medians.append(np.concatenate([law.quantiles(halves) for law in population.rows(result.places)], axis=1))
    data = {name: np.stack(parts) for name, parts in posterior.items()} | {MEDIAN: np.stack(medians)}
    model = population.model
    coords = {dim: list(labels) for dim, labels in model.coords.items() if labels is not None}
    dims = {
        name: [dim or f"{name}_dim_{i}" for i, dim in enumerate(names)]
        for name, names in model.named_vars_to_dims.items()
        if name in data
    }
    coords.setdefault("coordinate", columns)
    idata = arviz_base.from_dict({"posterior": data}, coords=coords, dims=dims | {MEDIAN: ["coordinate"]})
    marks = _marks(releases)
    idata["posterior"].attrs.update(
        marks
        | {
            "inference_library": "pymc_dpdepth",
            "effective_share": min(result.effective_share for result in results),
            "acceptance": min(result.acceptance for result in results),
        }
    )
    tails = [(1 - ci_prob) / 2, (1 + ci_prob) / 2]
    pooled = data[MEDIAN].reshape(-1, len(columns))
    ends = np.quantile(pooled, tails, axis=0).T
    ancestors = [result.ancestors for result in results]
    errors, r_hat, families = (
        errors_of_ends(data[MEDIAN], ancestors, tails),
        largest_r_hat(data[MEDIAN]),
        families_of(ancestors)[1],
    )
    warn_of_unstable_ends(errors, ends, r_hat, families)
    idata["posterior"].attrs.update({"r_hat": r_hat, "effective_ancestors": families})
    interval = xr.Dataset(
        {MEDIAN: (("coordinate", "bound"), ends), "monte_carlo_error": (("coordinate", "bound"), errors)},
        coords={"coordinate": columns, "bound": ["lower", "upper"]},
        attrs=marks | {"ci_prob": ci_prob, "kind": "equal-tailed"},
    )
    idata["interval"] = xr.DataTree(interval)
    return idata


def _marks(releases: Sequence[Release]) -> dict[str, str]:
    """Return what a reader must know of the releases behind a posterior."""
    return {
        "releasable": record_mark(*releases, made_from="Releases alone").text,
        "simulation": ", ".join(str(one.simulation) for one in releases),
        "guarantee": ", ".join(one.guarantee for one in releases),
        "epsilon": ", ".join(f"{one.epsilon:g}" for one in releases),
        "assumed": "; ".join(dict.fromkeys(words for one in releases for words, _ in assumptions(one))),
    }
