"""Draws of the projection-depth median: density ~ exp(-beta * min(O(v), cap)) on a public ball.

Branch and bound draws it exactly in a few dimensions; beyond them sequential Monte Carlo approaches it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pymc_dpdepth.mechanism import standardized
from pymc_dpdepth.ptr.outlyingness import OutlyingnessBound, OutlyingnessTable
from pymc_dpdepth.randomness import RandomBits
from pymc_dpdepth.samplers.branch_plan import BRANCH_AND_BOUND, MOST_DIMENSIONS

__all__ = ["BALL_SAMPLERS", "Ball", "draw_by_branch_and_bound", "draw_by_smc"]

SMC = "smc"
BALL_SAMPLERS = ("auto", BRANCH_AND_BOUND, SMC)


@dataclass(frozen=True, eq=False)
class Ball:
    """The public set that the median is sought in: |(v - center) / radius| <= 1, an ellipsoid where the radii differ.

    Attributes
    ----------
    center, radius : ndarray, shape (d,)
    """

    center: np.ndarray
    radius: np.ndarray

    def units(self, rows: np.ndarray) -> np.ndarray:
        """Return rows in the units of the ball, each by itself."""
        return standardized(rows, self.center, self.radius)


def exact_in(d: int, sampler: str) -> bool:
    """Whether branch and bound draws: up to 5 dimensions, or wherever it is asked for."""
    return sampler == BRANCH_AND_BOUND or (sampler == "auto" and d <= MOST_DIMENSIONS)


def draw_by_branch_and_bound(
    table: OutlyingnessTable, rows: np.ndarray, ball: Ball, beta: float, bits: RandomBits, draws: int = 1
) -> np.ndarray:
    """Return draws, shape (draws, d): points of the grid of a uniform prior on the box around the ball.

    Raises
    ------
    WorkLimitError
        If the tree has reached its limit before a draw.
    """
    import pymc as pm

    from pymc_dpdepth.priors import read_prior
    from pymc_dpdepth.samplers.box_frames import ProductBoxFrame
    from pymc_dpdepth.samplers.branch_and_bound import BranchAndBound

    d = len(ball.center)
    box = pm.Uniform.dist(ball.center - ball.radius, ball.center + ball.radius, shape=d)
    frame = ProductBoxFrame(read_prior(box, d))
    row_keys = frame.keys(rows)
    row_keys.sort(axis=1)
    tree = BranchAndBound(
        OutlyingnessBound(table),
        None,
        beta,
        frame.floors(),
        lambda cells: ball.units(frame.locations(cells)),
        lambda first, last: tuple(ball.units(end) for end in frame.enclose(first, last)),
        row_keys,
    )
    return frame.locations(tree.draw(bits, draws))


def draw_by_smc(table: OutlyingnessTable, ball: Ball, beta: float, bits: RandomBits, progressbar: bool) -> np.ndarray:
    """Return one of the particles of sequential Monte Carlo, shape (d,), picked by an index that is never looked at.

    A point of the unit ball is g / sqrt(|g|^2 + 2 e), g standard normal and e standard exponential, uniform on the ball
    [1]_; so the sampler starts on the ball in any dimension.

    References
    ----------
    .. [1] F. Barthe, O. Guedon, S. Mendelson and A. Naor, A probabilistic approach to the geometry of the l_p^n ball,
           Annals of Probability 33 (2005) 480-513, doi:10.1214/009117904000000874.
    """
    import pymc as pm
    import pytensor
    import pytensor.tensor as pt

    from pymc_dpdepth.samplers.markov import sample_markov

    d = len(ball.center)
    centers, scales = table.centers_and_scales()
    # 0 / tiny is 0 and anything else over it is beyond every cap: the convention for a scale of 0.
    scales = np.maximum(scales, np.finfo(np.float64).tiny)
    # model=None: inside a `with pm.Model()` of the user's, the private mechanism must not join that model.
    with pm.Model(model=None) as model:
        normal, exponential = pm.Normal("normal", shape=d), pm.Exponential("exponential", 1.0)
        point = normal / pt.sqrt(pt.sum(normal**2) + 2.0 * exponential)
        distances = pt.abs(pt.dot(pt.constant(table.directions), point) - pytensor.shared(centers))
        outlyingness = pt.minimum(table.cap, pt.max(distances / pytensor.shared(scales)))
        pm.Potential("mechanism", -beta * outlyingness)
    posterior = sample_markov(model, SMC, bits, progressbar).posterior
    index = {"chain": bits.index(posterior.sizes["chain"]), "draw": bits.index(posterior.sizes["draw"])}
    g, e = (np.asarray(posterior[name].isel(index).values) for name in ("normal", "exponential"))
    return ball.center + ball.radius * (g / np.sqrt(np.sum(g * g) + 2.0 * e))
