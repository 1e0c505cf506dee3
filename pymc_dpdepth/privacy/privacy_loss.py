"""The exact privacy loss of an exponential mechanism between two tables: no draws, only its law.

The laws are written down from the depth and the prior alone. No code of the samplers is used, so that this can judge
them. Segment masses come from the grid on which every exact draw lives (`pymc_dpdepth.grid`).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pymc_dpdepth.depths.custom import CustomObjective
from pymc_dpdepth.depths.directional import DirectionalDepth
from pymc_dpdepth.depths.directions import Directions
from pymc_dpdepth.mechanism import Mechanism, positive_integer, set_up
from pymc_dpdepth.priors import NotAProductPriorError, ProductPrior
from pymc_dpdepth.privacy.audit import check_neighbours

__all__ = ["PrivacyLoss", "exact_privacy_loss"]

# Pieces of a plane, or nodes of a quadrature: arrays of this length take a few hundred megabytes.
MOST_POINTS = 2**23
POINTS = {1: 2048, 2: 256}
FEWEST_POINTS = 8
# Gauss-Legendre nodes of a panel in one dimension: panels are short beside the width of the logistic.
NODES = 8
# Panels end at the rows and, where the depth is smoothed, at these multiples of 1/smoothing around them.
OFFSETS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
CLOSEST = 0.25
# Binades of the tail probability beyond the farthest row, and the last one of a tail without end (see grid.py).
SPARE_BINADES, LAST_BINADE = 12, 980
CELLS_OF_A_BINADE = 4
ZOOMS, ZOOM_POINTS = 3, 400
LARGEST_LOCATION = 1e300
# Rounding of one sum of a log mass and an exponent, and of the logarithm of the normalising constant.
ROUNDING = 2.0**-50


@dataclass(frozen=True, eq=False, repr=False)
class PrivacyLoss:
    """Largest log ratio of the laws of two neighbouring tables. A function of their rows, hence not releasable.

    A loss below epsilon on two tables proves nothing about others.

    Attributes
    ----------
    max_loss : float
        sup over theta of |log p_X(theta) - log p_Y(theta)|.
    at : ndarray, shape (d,)
        A location where it is reached.
    epsilon : float
        What the mechanism claims for these neighbours.
    method : {"exact", "quadrature"}
        Whether the law was summed piece by piece or integrated numerically.
    error : float
        Exact: a bound on the rounding of doubles. Quadrature: an estimate, the change when the points are halved.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_dpdepth import PrivacyLoss
    >>> PrivacyLoss(0.5, np.zeros(1), 1.0, "exact", 0.0)
    <PrivacyLoss: 0.5 (claimed 1, exact). It is a function of the private rows and not releasable; a small loss on two
    tables proves nothing about others.>
    """

    max_loss: float
    at: np.ndarray
    epsilon: float
    method: str
    error: float

    def __repr__(self) -> str:
        """Show the loss and what it is not; the location is left to `at`."""
        return (
            f"<PrivacyLoss: {self.max_loss:.6g} (claimed {self.epsilon:g}, {self.method}). It is a function of the "
            "private rows and not releasable; a small loss on two tables proves nothing about others.>"
        )


def exact_privacy_loss(
    X: Any,
    neighbour: Any,
    *,
    epsilon: float,
    prior: Any,
    depth: Any = "halfspace",
    directions: Any = None,
    columns: Sequence | None = None,
    nonfinite: str = "raise",
    max_rows_per_unit: int = 1,
    points: int | None = None,
) -> PrivacyLoss:
    r"""Return the largest log ratio of an exponential mechanism's laws for two neighbouring tables of 1 or 2 columns.

    With p_X(theta) = exp(beta D(theta; X)) prior(theta) / Z_X it is

        sup_theta |beta (D(theta; X) - D(theta; Y)) - (log Z_X - log Z_Y)|,

    which an epsilon-private mechanism keeps at or below epsilon for all neighbours X and Y.

    Parameters
    ----------
    X, neighbour : array_like, DataFrame or path, shape (n, d)
        Two tables of the same shape, d = 1 or 2, that differ in at most `max_rows_per_unit` rows, in any order.
    epsilon : float
        Privacy loss that the mechanism claims for one row, > 0.
    prior : PyMC distribution, str, sequence or mapping
        As for `private_median`; a product of univariate priors.
    depth : Depth or str
        As for `private_median`.
    directions : Directions or array_like, optional
        Replaces the directions of the depth.
    columns : sequence of str or int, optional
        Columns to use; all by default.
    nonfinite : {"raise", "prior"}
        As for `private_median`.
    max_rows_per_unit : int
        Rows that one person may have; the claim is this times epsilon.
    points : int, optional
        Resolution of the quadrature, at least 8: panels in one dimension (2048), points of an axis in two (256).

    Returns
    -------
    PrivacyLoss
        With `max_loss`, where it is reached (`at`), and the claimed `epsilon`.

    Raises
    ------
    ValueError, TypeError
        If an argument is not usable, the tables are no neighbours, have more than 2 columns, or the prior is not a
        product.

    Warns
    -----
    PrivacyLeakWarning
        If a parameter of the prior equals a statistic of X.

    Notes
    -----
    Exact, up to the rounding of doubles: depths that depend on the order of the rows alone (d = 1: all but the smoothed
    dual and custom objectives; d = 2: step depths over directions along the axes). Between the rows of both tables
    these are constant, so the law on the dyadic grid of the exact samplers is a finite sum over gaps and atoms (single
    cells, the rows' own), and the supremum a maximum.

    Quadrature: smooth depths in one dimension, by Gauss-Legendre panels in u-space that end at the rows and grow finer
    towards the tails, the supremum being searched between the nodes; and all other depths in two dimensions, by the
    midpoint rule on a grid in u-space, the supremum being searched on that grid and at the rows. A step depth there
    errs by about the share of cells that its steps cross. `error` is an estimate of the quadrature's error, no bound.

    References
    ----------
    .. [1] F. McSherry and K. Talwar, Mechanism design via differential privacy, FOCS 2007, doi:10.1109/FOCS.2007.66.

    Examples
    --------
    Nearly all of epsilon can be lost, a half through the depth and a half through the normalising constant:

    >>> import pymc_dpdepth as dpd
    >>> X, neighbour = [[0.0], [0.001]], [[0.001], [1.0]]
    >>> dpd.exact_privacy_loss(X, neighbour, epsilon=1.0, prior="uniform(0, 1)").max_loss.__round__(3)
    0.999
    """
    from pymc_dpdepth.median import MECHANISM, prior_distribution
    from pymc_dpdepth.tables import read_table

    tables = [read_table(table, columns) for table in (X, neighbour)]
    check_neighbours(tables[0].rows, tables[1].rows, positive_integer(max_rows_per_unit, "max_rows_per_unit"))
    d = len(tables[0].columns)
    if d not in POINTS:
        raise ValueError(f"X: expected 1 or 2 columns, got {d}. Choose columns=[...], or attack with dpd.audit.")
    points = POINTS[d] if points is None else positive_integer(points, "points")
    if points < FEWEST_POINTS:
        raise ValueError(f"points: expected at least {FEWEST_POINTS}, got {points}.")
    location = prior_distribution(prior, tables[0].columns)
    options = {"depth": depth, "epsilon": epsilon, "directions": directions, "nonfinite": nonfinite}
    options["max_rows_per_unit"] = max_rows_per_unit
    settings, product, rows = set_up(MECHANISM, location, tables[0], **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what set_up has to say was said for X
        other = set_up(MECHANISM, location, tables[1], **options)[2]
    if isinstance(product, NotAProductPriorError):
        raise ValueError(f"prior: expected a product of univariate priors; {product}. Attack with dpd.audit instead.")
    if _is_piecewise(settings):
        loss, at, error = _loss_of_pieces(settings, product, (rows, other))
        return PrivacyLoss(loss, at, settings.unit_epsilon, "exact", error)
    loss, at = _loss_by_quadrature(settings, product, (rows, other), points)
    coarse, _ = _loss_by_quadrature(settings, product, (rows, other), points // 2)
    return PrivacyLoss(loss, at, settings.unit_epsilon, "quadrature", abs(loss - coarse))


def _is_piecewise(settings: Mechanism) -> bool:
    """Whether the depth is constant on the pieces into which the rows cut every axis."""
    depth = settings.depth
    if isinstance(depth, DirectionalDepth):
        along_axes = isinstance(depth.directions, Directions) and all(
            np.count_nonzero(direction) == 1 for direction in depth.directions.matrix()
        )
        return not depth.differentiable and (settings.d == 1 or along_axes)
    # In one dimension simplices are intervals and signs are signs: only the order of the rows counts.
    return settings.d == 1 and not isinstance(depth, CustomObjective)


# Pieces


def _loss_of_pieces(settings: Mechanism, prior: ProductPrior, tables) -> tuple[float, np.ndarray, float]:
    """Return the loss, a location where it is reached and a bound on its rounding.

    Keys are integers below 2**52, hence exact doubles in the order of the rows: the depth of a cell among the rows'
    cells is the depth that an exact draw gives it.
    """
    floors = prior.floors()
    keys = [prior.keys(rows) for rows in tables]
    axes = [_pieces(np.concatenate([k[j] for k in keys]), *floors[j]) for j in range(settings.d)]
    _check_size(np.prod([len(cells) for cells, _ in axes]), "the rows cut the plane into too many pieces")
    cells = _tensor([cells for cells, _ in axes])
    log_mass = _tensor([masses for _, masses in axes]).sum(axis=1)
    exponents = [settings.beta * settings.depth.evaluate(cells.astype(np.float64), k.T.astype(float)) for k in keys]
    ratio = (exponents[0] - _log_sum(exponents[0] + log_mass)) - (exponents[1] - _log_sum(exponents[1] + log_mass))
    worst = int(np.argmax(np.abs(ratio)))
    size = max(np.abs(part).max() for part in (*exponents, log_mass))
    return float(abs(ratio[worst])), prior.values(cells[worst : worst + 1])[0], 4 * ROUNDING * (1.0 + size)


def _pieces(keys: np.ndarray, low_floor: int, high_floor: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a cell of every piece of an axis that has prior mass, and the log of that mass."""
    from pymc_dpdepth.grid import LAST_KEY, mass

    cells, masses, below = [], [], 0
    for key in [*np.unique(keys).tolist(), LAST_KEY + 1]:
        for first, last in ((below, key - 1), (key, key)):
            if first <= last <= LAST_KEY:
                share = mass(first, last, low_floor, high_floor)
                if share > 0.0:
                    cells.append(min(max(first, low_floor), LAST_KEY - high_floor))
                    masses.append(np.log(share))
        below = key + 1
    return np.array(cells, dtype=np.int64), np.array(masses)


# Quadrature


def _loss_by_quadrature(settings: Mechanism, prior: ProductPrior, tables, points: int) -> tuple[float, np.ndarray]:
    d = settings.d
    nodes = [_axis_nodes(settings, prior, j, [rows[:, j] for rows in tables], points) for j in range(d)]
    _check_size(np.prod([len(theta) for theta, _ in nodes]), "the quadrature has too many points")
    theta, log_weight = _tensor([t for t, _ in nodes]), _tensor([w for _, w in nodes]).sum(axis=1)
    exponents = [_exponents(settings, theta, rows) for rows in tables]
    constant = _log_sum(exponents[0] + log_weight) - _log_sum(exponents[1] + log_weight)

    def ratio(places):
        first, second = (_exponents(settings, places, rows) for rows in tables)
        return first - second - constant

    found = exponents[0] - exponents[1] - constant
    best = [(abs(found[i]), theta[i]) for i in {int(np.argmax(found)), int(np.argmin(found))}]
    if d == 1:
        best += [_zoom(ratio, theta[:, 0], int(i)) for i in (np.argmax(found), np.argmin(found))]
    inside = _supported(prior, np.concatenate(tables))
    if len(inside):
        at_rows = np.abs(ratio(inside))
        best.append((at_rows.max(), inside[np.argmax(at_rows)]))
    loss, at = max(best, key=lambda pair: pair[0])
    return float(loss), at


def _zoom(ratio, theta: np.ndarray, i: int) -> tuple[float, np.ndarray]:
    """Look for a larger absolute ratio between the neighbours of node i."""
    low, high = theta[max(i - 1, 0)], theta[min(i + 1, len(theta) - 1)]
    for _ in range(ZOOMS):
        places = np.linspace(low, high, ZOOM_POINTS)
        values = np.abs(ratio(places[:, None]))
        i = int(np.argmax(values))
        low, high = places[max(i - 1, 0)], places[min(i + 1, ZOOM_POINTS - 1)]
    return float(values[i]), places[i : i + 1]


def _exponents(settings: Mechanism, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return beta * D, in the mechanism's units."""
    center, scale = np.asarray(settings.center), np.asarray(settings.scale)
    return settings.beta * settings.depth.evaluate((theta - center) / scale, (rows - center) / scale)


def _axis_nodes(settings: Mechanism, prior: ProductPrior, j: int, columns, points: int):
    """Return ascending locations of one axis and the logs of their weights, which sum up to the prior's mass 1."""
    block, parameters = _family(prior, j)
    rows = np.unique(np.concatenate(columns))
    places = rows
    smoothing = getattr(settings.depth, "smoothing", None)
    if smoothing is not None and settings.d == 1:
        steps = np.array(OFFSETS) * settings.scale[j] / smoothing
        places = (rows[:, None] + np.concatenate([-steps, [0.0], steps])).ravel()
        # The logistic has no corners, so of places that are closer than its width one is enough.
        _, first = np.unique(np.rint(places / (CLOSEST * settings.scale[j] / smoothing)), return_index=True)
        places = places[first]
    with np.errstate(all="ignore"):
        tails = [tail[:, 0] for tail in block.family.tails(places[:, None], *parameters)]
    sides = []
    for tail, from_tail in zip(tails, (block.family.from_lower, block.family.from_upper), strict=True):
        tail = tail[(tail > 2.0**-LAST_BINADE) & (tail < 0.5)]
        edges = _tail_panels(points, tail)
        if settings.d == 1:  # where a smooth depth bends
            edges = np.unique(np.concatenate([edges, tail]))
        v, weight = _nodes_of_panels(edges, NODES if settings.d == 1 else 1)
        with np.errstate(all="ignore"):
            theta = from_tail(v[:, None], *parameters)[:, 0]
        sides.append((np.clip(theta, -LARGEST_LOCATION, LARGEST_LOCATION), np.log(weight)))
    (low, low_weight), (high, high_weight) = sides
    return np.concatenate([low, high[::-1]]), np.concatenate([low_weight, high_weight[::-1]])


def _tail_panels(points: int, tails: np.ndarray) -> np.ndarray:
    """Return ascending ends of panels of [0, 1/2]: of width 1/points, and at least a few in every binade.

    The binades end a little beyond the farthest row.
    """
    last = 1 + SPARE_BINADES
    if len(tails):
        last = min(int(-np.log2(tails.min())) + SPARE_BINADES, LAST_BINADE)
    edges = [np.array([0.0])]
    for binade in range(last, 0, -1):
        count = max(CELLS_OF_A_BINADE, int(np.ceil(points * 2.0 ** -(binade + 1))))
        edges.append(2.0 ** -(binade + 1) * (1.0 + np.arange(count) / count))
    return np.concatenate([*edges, [0.5]])


def _nodes_of_panels(edges: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the Gauss-Legendre nodes and weights of all panels; one node is the midpoint rule."""
    x, w = np.polynomial.legendre.leggauss(count)
    width = np.diff(edges)
    nodes = edges[:-1, None] + 0.5 * width[:, None] * (1.0 + x)
    return nodes.ravel(), (0.5 * width[:, None] * w).ravel()


def _family(prior: ProductPrior, j: int):
    """Return the block of coordinate j and that coordinate's parameters."""
    (block,) = [block for block in prior.blocks if block.start <= j < block.stop]
    return block, [parameter[j - block.start : j - block.start + 1] for parameter in block.parameters]


def _supported(prior: ProductPrior, rows: np.ndarray) -> np.ndarray:
    """Return the rows that the prior can reach."""
    inside = np.ones(len(rows), dtype=bool)
    for j in range(prior.d):
        block, parameters = _family(prior, j)
        with np.errstate(all="ignore"):
            lower, upper = block.family.tails(rows[:, j : j + 1], *parameters)
        inside &= (lower[:, 0] > 0.0) & (upper[:, 0] > 0.0)
    return rows[inside]


def _tensor(axes: list[np.ndarray]) -> np.ndarray:
    """Return all combinations of the axes' entries, shape (product of lengths, d)."""
    return np.stack([part.ravel() for part in np.meshgrid(*axes, indexing="ij")], axis=1)


def _log_sum(exponents: np.ndarray) -> float:
    top = exponents.max()
    return float(top + np.log(np.exp(exponents - top).sum()))


def _check_size(count, reason: str) -> None:
    if count > MOST_POINTS:
        raise ValueError(
            f"X: expected a problem of at most {MOST_POINTS} points; {reason}. Take fewer rows or points, or attack "
            "with dpd.audit."
        )
