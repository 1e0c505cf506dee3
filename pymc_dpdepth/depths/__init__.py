"""Depth functions: definitions, compiled kernels and proved sensitivities.

A depth is large in the middle of the rows and small outside. Nothing here is private by itself: see `Depth`.
"""

from pymc_dpdepth.depths.base import Depth
from pymc_dpdepth.depths.custom import CustomObjective
from pymc_dpdepth.depths.directional import DirectionalDepth, IntegratedDual, IntegratedRankWeighted
from pymc_dpdepth.depths.directions import Directions, as_directions
from pymc_dpdepth.depths.halfspace import Halfspace
from pymc_dpdepth.depths.projection import Projection
from pymc_dpdepth.depths.registry import DEPTHS, as_depth
from pymc_dpdepth.depths.simplicial import Simplicial
from pymc_dpdepth.depths.spatial import ModifiedSpatial, Spatial

__all__ = [
    "DEPTHS",
    "CustomObjective",
    "Depth",
    "DirectionalDepth",
    "Directions",
    "Halfspace",
    "IntegratedDual",
    "IntegratedRankWeighted",
    "Projection",
    "ModifiedSpatial",
    "Simplicial",
    "Spatial",
    "as_depth",
    "as_directions",
]
