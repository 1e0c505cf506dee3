"""A multivariate normal prior with known parameters, read from a PyMC variable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pymc_dpdepth.graph_values import constant_value
from pymc_dpdepth.grid import TAIL_FLOOR_KEY
from pymc_dpdepth.priors import Block, NotAProductPriorError, is_random

__all__ = ["NormalVector", "read_normal_vector"]

SYMMETRIC = 1e-9  # relative; a covariance that was computed is symmetric up to rounding


@dataclass(frozen=True, eq=False)
class NormalVector:
    """location = mean + L z, z independent standard normal.

    Attributes
    ----------
    mean : ndarray, shape (d,)
    factor : ndarray, shape (d, d)
        L, the lower Cholesky factor of the covariance.
    variable : object
        The PyTensor random variable.
    """

    mean: np.ndarray
    factor: np.ndarray
    variable: object

    #: The inverse of the normal cdf is right to far less than a cell's margin.
    is_monotone = True

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The one variable that the location is."""
        record = self.describe()[0]
        return (Block(None, (), 0, len(self.mean), self.variable, False, record),)

    def floors(self) -> np.ndarray:
        """Return the grid's floors along z, shape (d, 2)."""
        return np.full((len(self.mean), 2), TAIL_FLOOR_KEY, dtype=np.int64)

    def describe(self) -> list[dict[str, Any]]:
        """Return the public record of the prior; the factor row by row."""
        parameters = {"mu": self.mean.tolist(), "factor": self.factor.ravel().tolist()}
        return [{"family": "MvNormal", "parameters": parameters, "start": 0, "stop": len(self.mean)}]


def read_normal_vector(location, d: int) -> NormalVector:
    """Read a `pm.MvNormal` whose parameters depend on constants and shared variables alone.

    Raises
    ------
    NotAProductPriorError
        If the variable is something else, or its covariance has no Cholesky factor.
    ValueError
        If a parameter is not finite or the covariance is not symmetric.
    """
    from pytensor.tensor.random.basic import MvNormalRV

    if not is_random(location) or not isinstance(location.owner.op, MvNormalRV):
        raise NotAProductPriorError("the prior is neither a product of univariate distributions nor pm.MvNormal")
    mean, covariance = (constant_value(parameter) for parameter in location.owner.op.dist_params(location.owner))
    if mean is None or covariance is None:
        raise NotAProductPriorError("a parameter of MvNormal depends on another variable")
    if mean.ndim > 1 or covariance.shape != (d, d):
        raise NotAProductPriorError("MvNormal has batch dimensions")
    symmetric = np.allclose(covariance, covariance.T, rtol=SYMMETRIC, atol=0.0)
    if not (np.isfinite(mean).all() and np.isfinite(covariance).all() and symmetric):
        raise ValueError(
            "location: expected an MvNormal with a finite mean and a finite symmetric covariance; check mu and cov."
        )
    try:
        factor = np.linalg.cholesky(np.asarray(covariance, dtype=np.float64))
    except np.linalg.LinAlgError:
        raise NotAProductPriorError("the covariance of MvNormal is not positive definite") from None
    return NormalVector(np.broadcast_to(np.asarray(mean, dtype=np.float64), (d,)).copy(), factor, location)
