"""What a diagnosis of draws suggests to do. Curator-side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pymc_dpdepth.diagnostics.diagnose import Diagnosis

__all__ = ["CAVEATS", "advise"]

# Thresholds of Vehtari et al. (2021), doi:10.1214/20-BA1221: R-hat of ranks, effective draws of four chains together.
LARGEST_RHAT, EFFECTIVE_DRAWS, CHAINS = 1.01, 400, 4
DIFFERENT = 0.01  # p-value below which draws are called different from exact ones
# Standard deviation of the log evidence over SMC's chains; beyond it whole populations differ by a factor of e^(1/2) in
# what they make of the same integral, so the particles are too few.
EVIDENCE_SPREAD = 0.5
CAVEATS = (
    "All of this is a function of the private rows: for the curator, not releasable.",
    "None of it certifies privacy: epsilon of a draw of a Markov chain is nominal, whatever R-hat and ESS say.",
)


def advise(found: Diagnosis) -> list[str]:
    """Return what to do, most urgent first; one line that nothing was found if that is so."""
    lines = [*_faults(found), *_law(found), *_nuts(found), *_smc(found), *_chains(found)]
    if not lines:
        lines = ["Nothing was found against these draws, which proves nothing."]
    if found.comparison is not None and found.sampler != "exact":
        lines.append("An exact sampler fits this model: release with dpd.release(model), which needs no chain.")
    return lines


def _faults(found: Diagnosis) -> list[str]:
    lines = []
    if found.not_finite:
        names = ", ".join(found.not_finite)
        lines.append(
            f"Not finite draws of {names}: a fault of their sampler. Use none of these draws, and sample again."
        )
    if found.draws == 1 and found.sampler != "exact":
        lines.append("One draw for each chain says nothing about convergence: take 1,000 or more.")
    return lines


def _law(found: Diagnosis) -> list[str]:
    compared = found.comparison
    if compared is None or not compared.p_value < DIFFERENT:
        return []
    return [
        "The draws differ from exact ones (energy test): do not use them; take dpd.sample_exact and dpd.release(model)."
    ]


def _nuts(found: Diagnosis) -> list[str]:
    lines = []
    if found.divergences:
        lines.append(
            f"{found.divergences} divergences: a region was missed. Raise target_accept to 0.95 or more, or write a "
            "hierarchy without its centre (mu + tau * z)."
        )
    if found.tree_depth_hits:
        lines.append(
            f"{found.tree_depth_hits} draws at the maximal tree depth: steps are too short for the target. Tune "
            "longer, or give coordinates like scales."
        )
    return lines


def _smc(found: Diagnosis) -> list[str]:
    lines = []
    if found.stages and not all(np.isclose(end, 1.0) for end in found.exponents):
        lines.append("SMC did not reach the mechanism (its exponent ended below 1): sample again.")
    if found.independent_proposals:
        lines.append(
            "SMC moved by PyMC's independent proposals, which leave a bias here: pass kernel=pm.smc.kernels.MH."
        )
    if len(found.log_evidence) > 1 and not np.std(found.log_evidence) <= EVIDENCE_SPREAD:
        lines.append("The log evidence differs between the chains of SMC: take more particles, draws=2000 or more.")
    return lines


def _chains(found: Diagnosis) -> list[str]:
    if found.sampler == "exact":
        return []
    lines = []
    table = found.convergence
    if found.chains == 1:
        lines.append(f"One chain has no R-hat: sample {CHAINS}.")
    elif (table["r_hat"] > LARGEST_RHAT).any():
        lines.append(
            f"R-hat is {table['r_hat'].max():.3f} for {table['r_hat'].idxmax()}, above {LARGEST_RHAT}: chains "
            "disagree. Take more draws; under a prior much wider than the rows chains may never find them, and "
            "dpd.diagnose_mixing(model) shows it."
        )
    effective = table[["ess_bulk", "ess_tail"]].min(axis=1)
    if (effective < EFFECTIVE_DRAWS).any():
        lines.append(
            f"{effective.idxmin()} has {effective.min():.0f} effective draws, fewer than {EFFECTIVE_DRAWS}: take more "
            "draws."
        )
    if table.isna().any(axis=None) and found.chains > 1:
        lines.append("Some quantities do not vary, or are too few to be judged.")
    return lines
