"""The depths by name. A new depth adds one line here."""

from __future__ import annotations

from typing import Any

from pymc_dpdepth.depths.base import Depth
from pymc_dpdepth.depths.directional import IntegratedDual, IntegratedRankWeighted
from pymc_dpdepth.depths.halfspace import Halfspace
from pymc_dpdepth.depths.projection import Projection
from pymc_dpdepth.depths.simplicial import Simplicial
from pymc_dpdepth.depths.spatial import ModifiedSpatial, Spatial

__all__ = ["DEPTHS", "as_depth"]

DEPTHS: dict[str, type[Depth]] = {
    depth.name: depth
    for depth in (
        Halfspace,
        IntegratedRankWeighted,
        IntegratedDual,
        Projection,
        Simplicial,
        Spatial,
        ModifiedSpatial,
    )
}


def as_depth(depth: Any) -> Depth:
    """Return a depth given as an object or by its name.

    Parameters
    ----------
    depth : Depth or str
        A name gives the depth with its default options.

    Raises
    ------
    ValueError
        If no depth has that name.
    TypeError
        If neither a depth nor a name came.

    Examples
    --------
    >>> from pymc_dpdepth.depths import as_depth
    >>> as_depth("halfspace")
    Halfspace(directions='auto')
    """
    if isinstance(depth, Depth):
        return depth
    if isinstance(depth, str):
        if depth in DEPTHS:
            return DEPTHS[depth]()
        raise ValueError(f"Expected a depth object or one of the names {', '.join(sorted(DEPTHS))}; got {depth!r}.")
    if isinstance(depth, type) and issubclass(depth, Depth):
        raise TypeError(f"Expected a depth object; got the class {depth.__name__}. Call it: {depth.__name__}().")
    raise TypeError(f"Expected a depth object or a name ({', '.join(sorted(DEPTHS))}); got {type(depth).__name__}.")
