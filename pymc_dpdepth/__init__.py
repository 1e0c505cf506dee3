"""Differentially private multivariate medians as PyMC models, with exact draws.

The public names load on first use, so that importing the package costs next to nothing beside PyMC.
"""

from importlib import import_module

_HOMES = {
    "private_median": "median",
    "private_depth": "depth_values",
    "private_sample_depths": "depth_values",
    "private_scale_test": "scale_test",
    "posterior_given_release": "downstream.posterior",
    "exponential_mechanism": "mechanism",
    "sample_exact": "from_model",
    "release": "from_model",
    "Release": "record",
    "Directions": "depths",
    "Halfspace": "depths",
    "IntegratedDual": "depths",
    "IntegratedRankWeighted": "depths",
    "Projection": "depths",
    "Simplicial": "depths",
    "Spatial": "depths",
    "ModifiedSpatial": "depths",
    "CustomObjective": "depths",
    "audit": "privacy.audit",
    "AuditResult": "privacy.audit",
    "exact_privacy_loss": "privacy.privacy_loss",
    "PrivacyLoss": "privacy.privacy_loss",
    "propose_test_release": "ptr.release",
    "compute_log_prior_and_potential": "prior_sensitivity",
    "prior_grid": "prior_comparison",
    "PriorGrid": "prior_grid_record",
    "strip_private": "sharing",
    "writable": "sharing",
    "extrema_interval": "extrema.interval",
    "ExtremaInterval": "extrema.record",
    "PrivacyAccountant": "privacy.accountant",
    "diagnose_mixing": "diagnostics.mixing",
    "diagnose": "diagnostics.diagnose",
    "plot_release": "plots",
    "plot_depth_contours": "depth_plots",
    "plot_depth_surface": "plot_surface",
    "plot_mechanism": "plot_density",
    "plot_error": "plot_errors",
    "error_grid": "synthetic_errors",
    "plot_groups": "plot_forest",
    "plot_psense": "plot_sensitivity",
    "save_plot": "plot_marks",
    "Ledger": "privacy.ledger",
    "NoExactSamplerError": "samplers.exact",
    "BatchedMetropolis": "samplers.smc_kernel",
    "ApproximateSamplingWarning": "errors",
    "BudgetExceededError": "errors",
    "ImproperMechanismError": "errors",
    "InexactReleaseError": "errors",
    "NotDifferentiableError": "errors",
    "PrivacyLeakWarning": "errors",
    "UnboundedSensitivityError": "errors",
    "UnfinishedReleaseError": "errors",
}

_SUBPACKAGES = ("extrema", "ptr")

__all__ = sorted(_HOMES)
__version__ = "0.1.0"


def __getattr__(name: str):
    """Import a public name when it is first used."""
    if name in _SUBPACKAGES:
        return import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return [*__all__, *_SUBPACKAGES, "__version__"]
