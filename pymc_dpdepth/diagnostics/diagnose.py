"""Convergence of the draws of a private median, its sampler's troubles, distance to exact draws. For the curator."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pymc_dpdepth.diagnostics.advice import CAVEATS, advise
from pymc_dpdepth.diagnostics.energy_test import energy_test
from pymc_dpdepth.errors import PrivacyLeakWarning
from pymc_dpdepth.randomness import curator_generator
from pymc_dpdepth.samplers.branch_and_bound import WorkLimitError
from pymc_dpdepth.samplers.exact import NoExactSamplerError
from pymc_dpdepth.smc_stats import has_stages, tempered
from pymc_dpdepth.trace_values import NUMBERS, SAMPLE_DIMS, free_draws, mechanisms_of, not_finite, other_data

__all__ = ["Diagnosis", "ExactComparison", "diagnose"]

SUMMARY_ROWS = 12
# A first-order chain has ESS / draws = (1 - r) / (1 + r) with r the correlation of neighbours. At twice the inverse of
# that the correlation of kept draws is r^(2 (1 + r) / (1 - r)) <= e^-4 = 0.02 for every r; once would leave 0.13.
THINNING = 2.0
FEWEST, MOST = 20, 1000  # draws that are kept for the comparison
PERMUTATIONS = 999
# Names that PyMC, nutpie and NumPyro give to the same thing.
DIVERGED, DEEPEST = ("diverging",), ("reached_max_treedepth", "maxdepth_reached")


@dataclass(frozen=True)
class ExactComparison:
    """Draws of a chain against exact draws of the same model.

    Attributes
    ----------
    distance : float
        Energy distance of the draws' ranks, 0 for equal and near 1 for disjoint samples; on average
        (1/kept + 1/exact_draws) / 2 where the laws are equal.
    p_value : float
        Of the energy test; NaN where fewer than 20 draws were kept, which says nothing.
    kept : int
        Draws of the chains that were compared, thinned until they are nearly independent.
    exact_draws : int
    """

    distance: float
    p_value: float
    kept: int
    exact_draws: int


@dataclass(frozen=True, repr=False, eq=False)
class Diagnosis:
    """What `diagnose` found about draws. For the curator; not releasable, and no certificate of privacy.

    Attributes
    ----------
    sampler : str
        "nuts", "smc", "exact" or "other", as far as the draws tell.
    chains, draws : int
    convergence : DataFrame
        r_hat, ess_bulk and ess_tail of every scalar quantity.
    divergences, tree_depth_hits : int or None
        Over all chains; None where the sampler counts none.
    stages : tuple of int
        Stages of SMC, for each chain; empty for other samplers.
    exponents : tuple of float
        Where the tempering of each chain ended; 1 is the mechanism itself.
    log_evidence : tuple of float
        SMC's estimate of log E_prior[exp(beta * D)], for each chain; no ground for choosing a model.
    independent_proposals : bool
        Whether SMC moved by PyMC's default kernel.
    comparison : ExactComparison or None
    no_comparison : str
        Why there is none.
    not_finite : tuple of str
        Free variables with draws that are NaN or infinite.
    """

    sampler: str
    chains: int
    draws: int
    convergence: Any
    divergences: int | None
    tree_depth_hits: int | None
    stages: tuple[int, ...]
    exponents: tuple[float, ...]
    log_evidence: tuple[float, ...]
    independent_proposals: bool
    comparison: ExactComparison | None
    no_comparison: str
    not_finite: tuple[str, ...] = ()

    @property
    def advice(self) -> list[str]:
        """What to do, most urgent first."""
        return advise(self)

    def summary(self) -> str:
        """Return everything as plain text: the quantities with the fewest effective draws first, then what to do."""
        rows = self._rows()
        width = max([len("quantity"), *(len(row[0]) for row in rows)])
        lines = [self._title(), f"{'quantity':<{width}} {'R-hat':>7} {'ESS bulk':>9} {'ESS tail':>9}"]
        lines += [f"{name:<{width}} {rhat:>7} {bulk:>9} {tail:>9}" for name, rhat, bulk, tail in rows]
        return "\n".join([*lines, *self._details(), "", *self._closing()])

    def _title(self) -> str:
        counts = ((self.chains, "chain"), (self.draws, "draw"))
        chains, draws = (f"{count} {word}{'s' * (count != 1)}" for count, word in counts)
        return f"{chains} of {draws}, {self.sampler}"

    def _rows(self) -> list[tuple[str, str, str, str]]:
        worst = self.convergence.sort_values("ess_bulk").head(SUMMARY_ROWS)
        return [
            (str(row.Index), f"{row.r_hat:.3f}", f"{row.ess_bulk:.0f}", f"{row.ess_tail:.0f}")
            for row in worst.itertuples()
        ]

    def _details(self) -> list[str]:
        lines = []
        hidden = len(self.convergence) - SUMMARY_ROWS
        if hidden > 0:
            lines.append(f"({hidden} more quantities with more effective draws)")
        if self.divergences is not None:
            lines.append(f"divergences: {self.divergences}")
        if self.tree_depth_hits is not None:
            lines.append(f"draws at the maximal tree depth: {self.tree_depth_hits}")
        if self.stages:
            evidence = ", ".join(f"{value:.2f}" for value in self.log_evidence)
            lines.append(f"SMC stages: {', '.join(map(str, self.stages))}; log evidence: {evidence}")
        return [*lines, self._compared()]

    def _compared(self) -> str:
        found = self.comparison
        if found is None:
            return f"no comparison with exact draws: {self.no_comparison}"
        expected = (1.0 / found.kept + 1.0 / found.exact_draws) / 2.0
        text = (
            f"energy distance to {found.exact_draws} exact draws: {found.distance:.4f} ({expected:.4f} on average for "
            f"equal laws), from {found.kept} draws that are nearly independent"
        )
        if np.isnan(found.p_value):
            return f"{text}; too few for a p-value"
        return f"{text}; p = {found.p_value:.3g}"

    def _closing(self) -> list[str]:
        return [*(f"- {line}" for line in self.advice), "", *CAVEATS]

    def __str__(self) -> str:
        """Show the summary."""
        return self.summary()

    def __repr__(self) -> str:
        """Name the object; the figures, which depend on private rows, are left to `summary`."""
        return f"<Diagnosis of {self._title()}; for the curator, not releasable>"

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        """Show the summary as a table with text below."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        yield Text(self._title())
        table = Table(box=SIMPLE_HEAD)
        table.add_column("quantity")
        for name in ("R-hat", "ESS bulk", "ESS tail"):
            table.add_column(name, justify="right")
        for name, *figures in self._rows():
            table.add_row(Text(name), *figures)
        yield table
        yield Text("\n".join([*self._details(), "", *self._closing()]))


def diagnose(idata: Any, *, model: Any = None, exact_draws: int = 500, random_seed: int | None = None) -> Diagnosis:
    """Look at draws of a model of private medians: whether chains have converged, and to the right law.

    R-hat and effective sample sizes (bulk and tail), divergences and tree depths of NUTS, stages and evidence of SMC;
    and, where an exact sampler fits the model, the distance of the draws to exact ones by an energy test. Nothing of it
    is releasable, and none of it certifies privacy: epsilon of a chain's draw is nominal however good these figures
    look.

    Parameters
    ----------
    idata : DataTree
        Draws of `pm.sample`, `pm.sample_smc` or `dpd.sample_exact`.
    model : pm.Model, optional
        Their model, with at least one mechanism. The model on the context stack by default.
    exact_draws : int
        Exact draws to compare with; 0 makes no comparison.
    random_seed : int, optional
        Makes the comparison reproducible. There is no warning, since nothing of it may leave anyway.

    Returns
    -------
    Diagnosis
        Printed as text, or as a table by rich; `advice` names what to do.

    Raises
    ------
    TypeError, ValueError
        If the draws are not draws of the model, the model has no mechanism, or an argument is not usable.

    Notes
    -----
    R-hat and effective sizes are those of [1]_. The energy test compares all free variables together, by their ranks,
    with a permutation p-value. That needs independent draws, so of chains only every k-th draw is kept, k = 2 * draws /
    (smallest effective size), at most 1,000 of them: neighbours are then correlated by some .02, and the p-value is
    right up to that. Where fewer than 20 draws would be kept there is no p-value. For SMC effective sizes are a rough
    guide, since particles share ancestors: a small p-value of a single run may come from that. A large p-value proves
    nothing; the test sees differences down to some 1 / sqrt(kept) of the spread.

    The exact draws are drawn for this comparison and thrown away; they stay with the curator, so they cost nothing.

    References
    ----------
    .. [1] A. Vehtari, A. Gelman, D. Simpson, B. Carpenter and P.-C. Bürkner, Rank-normalization, folding, and
           localization: an improved R-hat, Bayesian Analysis 16 (2021) 667-718, doi:10.1214/20-BA1221.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_dpdepth as dpd
    >>> with pm.Model() as model:
    ...     location = pm.Normal("location", 0, 10, shape=2)
    ...     _ = dpd.exponential_mechanism("median", location, np.arange(20.0).reshape(10, 2), epsilon=1.0)
    ...     idata = dpd.sample_exact(draws=200, chains=4)
    ...     diagnosis = dpd.diagnose(idata)
    >>> diagnosis
    <Diagnosis of 4 chains of 200 draws, exact; for the curator, not releasable>
    >>> diagnosis.comparison.exact_draws
    500
    """
    import pymc as pm

    if isinstance(exact_draws, bool) or not isinstance(exact_draws, int | np.integer) or exact_draws < 0:
        raise ValueError("exact_draws: expected an integer >= 0, of which 500 is a good choice.")
    generator = curator_generator(random_seed)
    model = pm.modelcontext(model)
    mechanisms_of(model)
    values = free_draws(idata, model)
    convergence = _convergence(idata)
    facts = _sampler_facts(idata)
    step = 1 if facts["sampler"] == "exact" else _thinning(idata.posterior.sizes, convergence)
    wrong = tuple(not_finite(values))
    if wrong and exact_draws:
        comparison, reason = None, "draws that are not finite have no ranks"
    else:
        comparison, reason = _compare(values, idata.posterior.sizes, step, model, int(exact_draws), generator)
    return Diagnosis(
        **facts,
        chains=idata.posterior.sizes["chain"],
        draws=idata.posterior.sizes["draw"],
        convergence=convergence,
        comparison=comparison,
        no_comparison=reason,
        not_finite=wrong,
    )


def _convergence(idata: Any) -> Any:
    """Return R-hat and effective sizes of all numbers of the posterior as a DataFrame; NaN for what has none."""
    import arviz as az

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of quantities that do not vary, whose NaN the advice speaks of
        numbers = [name for name, array in idata.posterior.data_vars.items() if array.dtype.kind in NUMBERS]
        table = az.summary(idata, var_names=numbers, kind="diagnostics", round_to="none")
    return table[["r_hat", "ess_bulk", "ess_tail"]].astype(float)


def _sampler_facts(idata: Any) -> dict[str, Any]:
    """Return what the sampler wrote down about itself."""
    sample_stats = getattr(idata, "sample_stats", None)
    facts: dict[str, Any] = {
        "sampler": "exact" if idata.posterior.attrs.get("inference_library") == "pymc_dpdepth" else "other",
        "divergences": _count(sample_stats, DIVERGED),
        "tree_depth_hits": _count(sample_stats, DEEPEST),
        "stages": (),
        "exponents": (),
        "log_evidence": (),
        "independent_proposals": False,
    }
    if has_stages(sample_stats):
        stages, exponents, evidence = zip(*tempered(sample_stats, idata.posterior.sizes["chain"]), strict=True)
        facts |= {"sampler": "smc", "stages": stages, "exponents": exponents, "log_evidence": evidence}
        # PyMC's Metropolis kernel tunes the scale of its proposals; the independent one has none.
        facts["independent_proposals"] = "mean_proposal_scale" not in sample_stats
    elif facts["divergences"] is not None:
        facts["sampler"] = "nuts"
    return facts


def _count(sample_stats: Any, names: tuple[str, ...]) -> int | None:
    """Return how often something happened, under the first of its names that was written down."""
    name = next((name for name in names if sample_stats is not None and name in sample_stats), None)
    return None if name is None else int(sample_stats[name].sum())


def _compare(values, sizes, step, model, exact_draws, generator) -> tuple[ExactComparison | None, str]:
    """Return the comparison with exact draws, or why there is none."""
    from pymc_dpdepth.from_model import sample_exact

    if not exact_draws:
        return None, "none was asked for"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeakWarning)  # of the seed: these draws leave this function never
            drawn = sample_exact(
                exact_draws, model=model, public=other_data(model), random_seed=int(generator.integers(2**62))
            )
    except NoExactSamplerError as reason:
        return None, str(reason)
    except WorkLimitError:
        return None, "branch and bound gave up before it had the draws"
    exact = free_draws(drawn, model)
    first, second = (
        np.concatenate([draws[v.name].reshape(len(draws[v.name]), -1) for v in model.free_RVs], axis=1)
        for draws in (values, exact)
    )
    kept = _kept(first, sizes, step)
    distance, p_value = energy_test(kept, second, PERMUTATIONS, generator)
    if len(kept) < FEWEST:
        p_value = np.nan
    return ExactComparison(distance, p_value, len(kept), len(second)), ""


def _thinning(sizes: Any, convergence: Any) -> int:
    """Return the k of the k-th draws of a chain that are nearly independent."""
    total = math.prod(sizes[dim] for dim in SAMPLE_DIMS)
    effective = np.nanmin([total, *convergence["ess_bulk"], *convergence["ess_tail"]])
    return math.ceil(THINNING * total / effective)


def _kept(draws: np.ndarray, sizes: Any, step: int) -> np.ndarray:
    """Return every k-th draw of each chain, from the last one backwards, and at most `MOST` of them."""
    chains, length = (sizes[dim] for dim in SAMPLE_DIMS)
    step = min(length, max(step, math.ceil(chains * length / MOST)))
    return draws.reshape(chains, length, -1)[:, ::-1][:, ::step].reshape(-1, draws.shape[1])
