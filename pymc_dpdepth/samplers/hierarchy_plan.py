"""Exact draws of the groups of one call under a normal hierarchy: where they fit, and what they spend."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from pymc_dpdepth.depths.directional import DirectionalDepth
from pymc_dpdepth.depths.univariate import TUKEY_CODE
from pymc_dpdepth.families import NormalFamily
from pymc_dpdepth.grid import TAIL_FLOOR_KEY
from pymc_dpdepth.mechanism import Mechanism
from pymc_dpdepth.priors import Block, ProductPrior
from pymc_dpdepth.randomness import RandomBits
from pymc_dpdepth.samplers.cells import draw_prior_cells
from pymc_dpdepth.samplers.exact import NoExactSamplerError
from pymc_dpdepth.samplers.group_laws import DualFactor, LevelFactor
from pymc_dpdepth.samplers.hierarchy import Component, HyperTree
from pymc_dpdepth.samplers.normal_hierarchy import NormalHierarchy
from pymc_dpdepth.samplers.weights import WeightBase

__all__ = ["HIERARCHY", "HierarchyPlan", "plan_hierarchy"]

HIERARCHY = "hierarchy"
# Hyperparameters that are drawn together. The boxes that a draw takes grow by some ten times with every two of them:
# seconds with 4, a minute with 6, and with 10 the limit of the tree was reached after minutes. So "auto" takes up to
# the first number, and the sampler by its name up to the second.
MOST_BY_ITSELF, MOST_HYPERPARAMETERS = 4, 6


@dataclass(frozen=True, eq=False)
class HierarchyPlan:
    """Exact draws of hyperparameters and of all groups' locations, chosen from public settings alone.

    Attributes
    ----------
    settings : tuple of Mechanism
        One for each group, in the order of the location's rows.
    hierarchy : NormalHierarchy
    """

    settings: tuple[Mechanism, ...]
    hierarchy: NormalHierarchy

    sampler = HIERARCHY

    @property
    def guarantee(self) -> str:
        """The level of a draw: to the bit where boxes surely hold their hyperparameters."""
        return "exact" if self.hierarchy.prior.is_monotone else "float64"

    def draw(self, rows: list[np.ndarray], bits: RandomBits, draws: int) -> tuple[np.ndarray, np.ndarray]:
        """Draw hyperparameters and locations.

        Parameters
        ----------
        rows : list of ndarray, shape (n_g, d)
            Private rows of the groups.
        bits : RandomBits
        draws : int

        Returns
        -------
        hyper : ndarray, shape (draws, H)
        locations : ndarray, shape (draws, G, d)

        Raises
        ------
        WorkLimitError
            If a tree of boxes has reached its limit before a draw.
        """
        prior, d = self.hierarchy.prior, self.settings[0].d
        hyper_cells = np.empty((draws, prior.d), dtype=np.int64)
        parts = [self._component(rows, coordinates) for coordinates in self._coordinates]
        for _, component in parts:
            hyper_cells[:, component.hyper] = HyperTree(prior, component).draw(bits, draws)
        hyper = prior.values(hyper_cells)
        means, scales = self._at(hyper, self.hierarchy.mean), self._at(hyper, self.hierarchy.scale)
        cells = np.empty((draws, len(rows), d), dtype=np.int64)
        floors = np.full((d, 2), TAIL_FLOOR_KEY, dtype=np.int64)
        for group in range(len(rows)):
            if not self.settings[group].n:
                cells[:, group] = draw_prior_cells(floors, bits, draws)
        for places, component in parts:
            for (group, coordinates), factor in zip(places, component.factors, strict=True):
                for i in range(draws):
                    at = means[i, group, coordinates], scales[i, group, coordinates]
                    cells[i, group, coordinates] = factor.draw(*at, bits)
        # The map from a cell to its number is elementwise, so all draws are as many coordinates.
        flat = Block(NormalFamily(), (means.ravel(), scales.ravel()), 0, cells.size, None, False, {})
        return hyper, ProductPrior((flat,)).values(cells.reshape(1, -1)).reshape(cells.shape)

    @functools.cached_property
    def bases(self) -> tuple[WeightBase | None, ...]:
        """Bases of the groups' weights; the directions of a mean share one row's effect, as in `ExactPlan.base`."""
        depth = self.settings[0].depth
        directions = self.settings[0].d if depth.aggregation == "mean" else 1
        return tuple(
            WeightBase.of_epsilon(one.epsilon, directions * depth.univariate.sensitivity_count(one.n))
            if one.n
            else None
            for one in self.settings
        )

    def describe(self) -> list[dict[str, Any]]:
        """Return the public records of the groups and of what the draw spends."""
        return [
            one.describe() | {"realised_epsilon": (base.realised_share if base is not None else 0.0) * one.epsilon}
            for one, base in zip(self.settings, self.bases, strict=True)
        ]

    @functools.cached_property
    def _coordinates(self) -> list[list[np.ndarray]]:
        """The coordinates by component, and within it those of each factor: alone, or all where the depth is a minimum.

        Coordinates that share a hyperparameter are one component.
        """
        d = self.settings[0].d
        if self.settings[0].depth.aggregation == "min":
            return [[np.arange(d)]]
        sets = [{at for at in (self.hierarchy.mean.at[j], self.hierarchy.scale.at[j]) if at >= 0} for j in range(d)]
        found: list[tuple[set, list[np.ndarray]]] = []
        for j in range(d):
            joined, coordinates = set(sets[j]), [np.array([j])]
            apart = []
            for other, members in found:
                if joined & other:
                    joined, coordinates = joined | other, members + coordinates
                else:
                    apart.append((other, members))
            found = [*apart, (joined, coordinates)]
        return [coordinates for _, coordinates in found]

    def _component(self, rows: list[np.ndarray], coordinates: list[np.ndarray]):
        """Return a component, and the group and coordinates of each of its factors."""
        kind = LevelFactor if self.settings[0].depth.univariate.code == TUKEY_CODE else DualFactor
        places, factors = [], []
        for group, one in enumerate(self.settings):
            for members in coordinates if one.n else ():
                places.append((group, members))
                factors.append(kind(np.sort(rows[group][:, members].T, axis=1), self.bases[group]))
        mean, scale = self.hierarchy.mean, self.hierarchy.scale
        return places, Component(
            self._hyper(coordinates),
            factors,
            lambda hyper, index: mean.values(hyper, *places[index]),
            lambda hyper, index: scale.values(hyper, *places[index]),
        )

    def _hyper(self, coordinates: list[np.ndarray]) -> np.ndarray:
        """Return the places of the hyperparameters of a component."""
        used = {
            at for of in (self.hierarchy.mean, self.hierarchy.scale) for c in coordinates for at in of.at[c].tolist()
        }
        return np.array(sorted(used - {-1}), dtype=np.int64)

    @property
    def together(self) -> int:
        """The most hyperparameters that one tree of boxes has to draw."""
        return max(len(self._hyper(coordinates)) for coordinates in self._coordinates)

    def _at(self, hyper: np.ndarray, parameter) -> np.ndarray:
        """Return means or scales of all groups and coordinates, shape (draws, G, d)."""
        every = np.arange(self.settings[0].d)
        return np.stack([parameter.values(hyper, g, every) for g in range(len(self.settings))], axis=1)


def plan_hierarchy(settings: list[Mechanism], hierarchy: NormalHierarchy, sampler: str = HIERARCHY) -> HierarchyPlan:
    """Return the plan of the groups of one call.

    Raises
    ------
    NoExactSamplerError
        If the depth is not a step depth over all axes, or if too many hyperparameters are drawn together.
    """
    depth, d = settings[0].depth, settings[0].d
    if not isinstance(depth, DirectionalDepth) or depth.differentiable or depth.directions is None:
        raise NoExactSamplerError(
            f"the depth {depth.name!r} has no exact draw under a hierarchy; a step depth over the axes has one "
            '(halfspace, integrated_rank_weighted or integrated_dual with directions="axes")'
        )
    directions = depth.directions.matrix()
    axes = {int(np.argmax(np.abs(direction))) for direction in directions}
    if np.count_nonzero(directions) != len(directions) or len(axes) != len(directions) or len(axes) != d:
        raise NoExactSamplerError('an exact draw under a hierarchy needs all axes as directions (directions="axes")')
    for group in range(len(settings)):
        scales = hierarchy.scale.constants[group][hierarchy.scale.at < 0]
        if (scales <= 0).any() or not np.isfinite(scales).all():
            raise ValueError("location: expected scales > 0.")
    plan = HierarchyPlan(tuple(settings), hierarchy)
    _refuse_long_work(plan, sampler)
    return plan


def _refuse_long_work(plan: HierarchyPlan, sampler: str) -> None:
    """Refuse, before the charge and by public settings alone, what would take minutes or end without a draw."""
    count, most = plan.together, MOST_HYPERPARAMETERS if sampler == HIERARCHY else MOST_BY_ITSELF
    if count <= most:
        return
    cures = ["let columns share means or scales (scalar ones), or make some of them constants"]
    if plan.settings[0].depth.aggregation == "min":
        cures.append(
            "take integrated_rank_weighted or integrated_dual, which are drawn column by column where columns share no "
            "hyperparameter"
        )
    if count <= MOST_HYPERPARAMETERS:
        cures.append(f'pass sampler="{HIERARCHY}" and wait some minutes')
    raise NoExactSamplerError(
        f"{count} hyperparameters would be drawn together, and an exact draw takes too long with more than {most}: "
        f"{'; or '.join(cures)}"
    )
