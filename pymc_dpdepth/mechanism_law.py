"""The density of a mechanism and of its prior in a frame that holds nearly all of it. For the curator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pymc_dpdepth.depths import Halfspace
from pymc_dpdepth.depths.medians import coordinatewise_median
from pymc_dpdepth.location_rows import row_variable
from pymc_dpdepth.mechanism import ModelMechanism, standardized
from pymc_dpdepth.normal_vector import NormalVector, read_normal_vector
from pymc_dpdepth.priors import NotAProductPriorError, ProductPrior, read_prior
from pymc_dpdepth.trace_values import free_draws, locations, mechanisms_of, objectives

__all__ = ["Law", "cell_masses", "law_of", "private_median_point"]

PLANE = 2
CELLS = {1: 600, PLANE: 140}  # of the grid along each axis
BINS, PLANE_BINS = 80, 40  # of draws along each axis
PRIOR_DRAWS, PRIOR_SEED = 20_000, 0
TAIL = 0.005  # of the draws, outside the frame on either side of an axis
PADDING = 0.12  # of the frame on both sides
MOST_EXACT = 1000  # rows whose exact halfspace median takes no longer than a second


@dataclass(frozen=True, eq=False)
class Law:
    """Densities of one mechanism's location in a frame.

    Attributes
    ----------
    mechanism : ModelMechanism
    edges : list of ndarray
        Of the cells along each coordinate.
    density, prior : list of ndarray
        Of each coordinate, over its cells; areas are probabilities.
    joint, joint_prior : ndarray or None
        In the plane, shape (cells of y, cells of x); the prior's only where it is known in closed form.
    source : str
        What the densities were made from.
    median : (str, ndarray) or None
        The non-private median and what it is.
    """

    mechanism: ModelMechanism
    edges: list[np.ndarray]
    density: list[np.ndarray]
    prior: list[np.ndarray]
    joint: np.ndarray | None
    joint_prior: np.ndarray | None
    source: str
    median: tuple[str, np.ndarray] | None


def law_of(model: Any, name: str | None, idata: Any, draws: int) -> Law:
    """Return the law of a mechanism: on a grid where that is possible, else of draws.

    Parameters
    ----------
    model : pm.Model
    name : str or None
        Of the mechanism; None where there is only one.
    idata : DataTree or None
        Draws to show instead of exact ones.
    draws : int
        Exact draws, by which the frame is chosen too.

    Raises
    ------
    NoExactSamplerError
        A ValueError, if there are no exact draws of this model and none were given.
    ValueError, TypeError
        If there is no such mechanism, or the draws do not fit the model.
    """
    mechanism = _named(mechanisms_of(model), name)
    theta, source = _draws(model, mechanism, idata, draws)
    median = private_median_point(mechanism)
    edges = _frame(theta, median)
    prior = _closed_form(mechanism) if idata is None and mechanism.settings.d in CELLS else None
    if prior is not None:
        return _on_grid(mechanism, prior, theta, edges, median)
    return _of_draws(mechanism, theta, edges, source, median)


def private_median_point(mechanism: ModelMechanism) -> tuple[str, np.ndarray] | None:
    """Return the median of the rows that the mechanism is about, and its name; it is not private. None without rows."""
    settings, rows = mechanism.settings, mechanism.rows
    if not len(rows):
        return None
    center, scale = np.asarray(settings.center), np.asarray(settings.scale)
    depths = [settings.depth]
    if isinstance(settings.depth, Halfspace) and settings.d == PLANE:
        depths.append(Halfspace(directions=None))  # many directions have no median of their own, but nearly this one
    for depth in depths:
        if isinstance(depth, Halfspace) and depth.directions is None and len(rows) > MOST_EXACT:
            continue
        try:
            return "non-private median", center + scale * depth.median(standardized(rows, center, scale))
        except TypeError:  # no median of this depth, or none for its directions
            continue
    return "non-private median of each column", coordinatewise_median(rows)


def cell_masses(family: Any, parameters: tuple[np.ndarray, ...], edges: np.ndarray) -> np.ndarray:
    """Return the mass of a univariate family in each cell between edges; parameters of shape (1,)."""
    lower, upper = (tail.ravel() for tail in family.tails(edges[:, None], *parameters))
    # The difference of the smaller tail keeps its digits.
    return np.maximum(np.where(lower[:-1] < upper[1:], np.diff(lower), -np.diff(upper)), 0.0)


def _named(mechanisms: list[ModelMechanism], name: str | None) -> ModelMechanism:
    """Return the mechanism with a name, or the only one."""
    names = [mechanism.settings.name for mechanism in mechanisms]
    if name is None and len(names) == 1:
        return mechanisms[0]
    if name not in names:
        raise ValueError(f"mechanism: expected one of {names}, got {name!r}.")
    return mechanisms[names.index(name)]


def _draws(model: Any, mechanism: ModelMechanism, idata: Any, draws: int) -> tuple[np.ndarray, str]:
    """Return draws of the location (draws, d), and where they come from."""
    from pymc_dpdepth.from_model import sample_exact
    from pymc_dpdepth.samplers.exact import NoExactSamplerError

    source = "draws of a trace"
    if idata is None:
        try:
            idata, source = sample_exact(draws, model=model), "exact draws"
        except NoExactSamplerError as reason:
            raise NoExactSamplerError(f"No exact draws to show: {reason}. Pass idata=pm.sample() instead.") from None
    (theta,) = locations([mechanism], model, free_draws(idata, model))
    return theta, f"{len(theta):,} {source}"


def _frame(theta: np.ndarray, median: Any) -> list[np.ndarray]:
    """Return the edges of cells, for each coordinate, that hold the middle 99% of the draws and the median."""
    low, high = np.quantile(theta, [TAIL, 1.0 - TAIL], axis=0)
    if median is not None:
        low, high = np.minimum(low, median[1]), np.maximum(high, median[1])
    width = np.where(high > low, high - low, np.maximum(np.abs(low), 1.0))
    cells = CELLS.get(theta.shape[1], BINS)
    return [np.linspace(a - PADDING * w, b + PADDING * w, cells + 1) for a, b, w in zip(low, high, width, strict=True)]


def _closed_form(mechanism: ModelMechanism) -> ProductPrior | NormalVector | None:
    """Return the location's prior, where its density is known. Exact draws exist, so no other variable is in it."""
    variable, d = row_variable(mechanism.location), mechanism.settings.d
    for read in (read_prior, read_normal_vector):
        try:
            return read(variable, d)
        except NotAProductPriorError:
            continue
    return None


def _on_grid(mechanism: ModelMechanism, prior: Any, theta: np.ndarray, edges: list[np.ndarray], median: Any) -> Law:
    """Return densities ∝ exp(beta * D) * prior at the middles of cells."""
    widths = [np.diff(edge) for edge in edges]
    middles = [0.5 * (edge[:-1] + edge[1:]) for edge in edges]
    points = np.stack(np.meshgrid(*middles), axis=-1)  # (y, x, 2) in the plane, (x, 1) in one dimension
    shape = points.shape[:-1]
    points = points.reshape(-1, len(edges))
    area = np.prod(np.stack(np.meshgrid(*widths), axis=-1), axis=-1)
    margins = [_prior_masses(prior, j, edge) for j, edge in enumerate(edges)]
    if isinstance(prior, NormalVector):
        prior_density = _normal_density(prior, points).reshape(shape)
    else:
        prior_density = np.prod(np.stack(np.meshgrid(*margins), axis=-1), axis=-1) / area
    with np.errstate(divide="ignore"):
        log_density = np.log(prior_density) + objectives(mechanism, points).reshape(shape)
    inside = np.all([(column >= e[0]) & (column <= e[-1]) for column, e in zip(theta.T, edges, strict=True)], axis=0)
    joint = np.exp(log_density - log_density.max())
    joint *= inside.mean() / (joint * area).sum()
    plane = len(edges) == PLANE
    density = [joint.T @ widths[1], joint @ widths[0]] if plane else [joint]
    return Law(
        mechanism,
        edges,
        density,
        [mass / width for mass, width in zip(margins, widths, strict=True)],
        joint if plane else None,
        prior_density if plane else None,
        "on a grid",
        median,
    )


def _prior_masses(prior: ProductPrior | NormalVector, j: int, edges: np.ndarray) -> np.ndarray:
    """Return the prior mass of coordinate j in each cell."""
    if isinstance(prior, NormalVector):
        from scipy.special import ndtr

        z = (edges - prior.mean[j]) / np.linalg.norm(prior.factor[j])
        return np.where(z[:-1] < 0, np.diff(ndtr(z)), -np.diff(ndtr(-z)))
    (block,) = (block for block in prior.blocks if block.start <= j < block.stop)
    parameters = tuple(parameter[j - block.start : j - block.start + 1] for parameter in block.parameters)
    return cell_masses(block.family, parameters, edges)


def _normal_density(prior: NormalVector, points: np.ndarray) -> np.ndarray:
    """Return the density of a multivariate normal prior at points (k, d)."""
    z = np.linalg.solve(prior.factor, (points - prior.mean).T)
    volume = np.abs(np.prod(np.diag(prior.factor))) * (2.0 * np.pi) ** (len(prior.mean) / 2.0)
    return np.exp(-0.5 * (z**2).sum(axis=0)) / volume


def _of_draws(mechanism: ModelMechanism, theta: np.ndarray, fine: list[np.ndarray], source: str, median: Any) -> Law:
    """Return histograms of draws of the mechanism, and of draws of the prior with a public seed."""
    import pymc as pm

    bins = PLANE_BINS if len(fine) == PLANE else BINS
    edges = [np.linspace(edge[0], edge[-1], bins + 1) for edge in fine]
    drawn = pm.draw(mechanism.location, draws=PRIOR_DRAWS, random_seed=PRIOR_SEED, mode="FAST_COMPILE")
    drawn = np.reshape(drawn, (PRIOR_DRAWS, len(edges)))
    joint = None
    if len(edges) == PLANE:
        counts, _, _ = np.histogram2d(theta[:, 1], theta[:, 0], bins=(edges[1], edges[0]))
        joint = counts / (len(theta) * np.outer(np.diff(edges[1]), np.diff(edges[0])))
    return Law(mechanism, edges, _histograms(theta, edges), _histograms(drawn, edges), joint, None, source, median)


def _histograms(draws: np.ndarray, edges: list[np.ndarray]) -> list[np.ndarray]:
    """Return the densities of each column of draws over its cells; draws outside count for the total."""
    return [
        np.histogram(column, edge)[0] / (len(draws) * np.diff(edge))
        for column, edge in zip(draws.T, edges, strict=True)
    ]
