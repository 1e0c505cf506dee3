r"""Draws of a strongly log-concave target: smoothed integrated dual depth under a tight normal prior.

In the units of the prior, z ~ N(0, I), the target is exp(-phi(z)) with

    phi(z) = |z|^2 / 2 - beta D(z),    D = mean_u g_u(w_u . z),    g = F (1 - F),

F a mean of n logistics sigma(s (t - z_i)), and w_u the direction u in these units. Whatever the rows are,

    -s^2 / 8 <= g'' <= s^2 / 24,

both ends being reached (docs/privacy_guarantee.md has the proof). With Sigma = mean_u w_u w_u' and its eigenvalues
lambda_k, the curvature of phi therefore lies, along the eigenvectors, between

    m_k = 1 - beta s^2 lambda_k / 24    and    L_k = 1 + beta s^2 lambda_k / 8.

Where all m_k > 0, any point z0 with gradient g of phi gives a normal density above the target and one below,

    phi(z0) + g.(z - z0) + (z - z0)' m (z - z0) / 2  <=  phi(z)  <=  the same with L,

so a proposal from N(z0 - g / m, 1 / m) is accepted with probability at least

    prod_k sqrt(m_k / L_k) * exp(-sum_k g_k^2 (1 / m_k - 1 / L_k) / 2).

The gradient is made small by a fixed number of steps whose contraction is known, so that the bound is public.

References
----------
.. [1] Y. Nesterov, Lectures on convex optimization, 2nd edition, Springer 2018, theorem 2.1.15,
       doi:10.1007/978-3-319-91578-4.
.. [2] L. Devroye, Non-uniform random variate generation, Springer 1986, section II.3,
       doi:10.1007/978-1-4613-8643-8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pymc_dpdepth.depths.directional import IntegratedDual
from pymc_dpdepth.grid import normal_keys
from pymc_dpdepth.mechanism import Mechanism
from pymc_dpdepth.normal_vector import NormalVector
from pymc_dpdepth.priors import ProductPrior
from pymc_dpdepth.randomness import RandomBits

__all__ = ["LogConcaveTarget", "NotLogConcaveError", "normal_variates", "plan_log_concave"]

# Bounds of (F (1 - F))'' / s^2, and |(F (1 - F))'| / s <= max of v sqrt(1 - 4 v), v = F'/s <= 1/4: 1 / (6 sqrt 3).
LARGEST_CURVATURE, SMALLEST_CURVATURE = 1 / 24, -1 / 8
LARGEST_SLOPE = 1.0 / (6.0 * math.sqrt(3.0))
# What the remaining gradient may take off the logarithm of the acceptance probability, and rounding of the constants.
GRADIENT_ROOM, CONSTANTS_ROOM = 2.0**-20, 2.0**-30
MOST_STEPS = 10_000
# The proposals of two tables are two sets of doubles, some 2^12 to each cell of the grid. Cells are put together in
# groups of 2^12, so that what tells the sets apart is 2^-24 of a group's probability; 28 bits of u are left.
GROUP_BITS = 12
# A draw that falls above its envelope by more than rounding shows a wrong bound.
ENVELOPE_ROOM = 1e-9
WORD_BITS, FRACTION_BITS, SIGN_BIT = 64, 52, 63


class NotLogConcaveError(ValueError):
    """The target is not known to be strongly log-concave; the message says why."""


@dataclass(frozen=True, eq=False)
class LogConcaveTarget:
    """Public constants of one mechanism, and draws for a table.

    Attributes
    ----------
    settings : Mechanism
    offset, matrix : ndarray, shapes (d,) and (d, d)
        Points in the units of the depth are offset + matrix y; y ~ N(0, I) under the prior, along the eigenvectors.
    rotation : ndarray, shape (d, d)
        z = rotation y are the prior's own standard normal coordinates.
    least, most : ndarray, shape (d,)
        m and L.
    steps : int
        Gradient steps to the mode.
    log_acceptance : float
        Lower bound of the logarithm of the probability that a proposal is accepted, for every table.
    """

    settings: Mechanism
    offset: np.ndarray
    matrix: np.ndarray
    rotation: np.ndarray
    least: np.ndarray
    most: np.ndarray
    steps: int
    log_acceptance: float

    def envelope(self, prepared: tuple) -> tuple[np.ndarray, float]:
        """Return the mean y1 of the proposals and the number c with phi(y) >= c + (y - y1)' m (y - y1) / 2."""
        y = np.zeros(len(self.least))
        for _ in range(self.steps):
            _, gradient = self.potential(y[None], prepared)
            y = y - 2.0 / (self.least + self.most) * gradient[0]
        (value,), (gradient,) = self.potential(y[None], prepared)
        return y - gradient / self.least, value - 0.5 * (gradient**2 / self.least).sum()

    def potential(self, y: np.ndarray, prepared: tuple) -> tuple[np.ndarray, np.ndarray]:
        """Return phi and its gradient at points, shapes (k,) and (k, d)."""
        points = self.offset + y @ self.matrix.T
        values, gradients = self.settings.depth.batch_kernel()(points, *prepared)
        beta = self.settings.beta
        return 0.5 * (y**2).sum(axis=1) - beta * values, y - beta * gradients @ self.matrix

    def propose(self, envelope: tuple, prepared: tuple, bits: RandomBits, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the cells of proposals, shape (count, d), and whether each is accepted."""
        middle, lowest = envelope
        steps = normal_variates(bits, count * len(self.least)).reshape(count, -1)
        y = middle + steps / np.sqrt(self.least)
        excess = self.potential(y, prepared)[0] - lowest - 0.5 * (steps**2).sum(axis=1)
        if (excess < -ENVELOPE_ROOM * (1.0 + self.settings.beta)).any():
            raise ValueError("The target exceeds its normal envelope: the bound of the depth's curvature is wrong.")
        uniform = bits.words(count) * 2.0**-WORD_BITS
        return self.cells(y), uniform < np.exp(-np.maximum(excess, 0.0))

    def cells(self, y: np.ndarray) -> np.ndarray:
        """Return the cells of the prior's grid that points fall into, the middle one of their group."""
        z = np.ascontiguousarray(y @ self.rotation.T)
        keys = np.empty(z.T.shape, dtype=np.int64)
        normal_keys(z, np.zeros(z.shape[1]), np.ones(z.shape[1]), keys)
        return middle_of_group(np.ascontiguousarray(keys.T))


def middle_of_group(cells: np.ndarray) -> np.ndarray:
    """Return the middle cell of the group of 2^12 cells that each cell is in."""
    return (cells >> GROUP_BITS << GROUP_BITS) + (1 << (GROUP_BITS - 1))


def plan_log_concave(settings: Mechanism, prior: ProductPrior | NormalVector) -> LogConcaveTarget:
    """Return the constants of a mechanism, from public settings alone.

    Raises
    ------
    NotLogConcaveError
        If depth or prior do not fit, or the curvature of beta * D may exceed the prior's precision.
    """
    depth = settings.depth
    if not (isinstance(depth, IntegratedDual) and depth.differentiable):
        raise NotLogConcaveError("only IntegratedDual(smoothing=s) has a known curvature")
    mean, factor = _normal_parameters(prior)
    scale = np.asarray(settings.scale)
    directions = depth.directions.matrix() @ (factor / scale[:, None])
    eigenvalues, rotation = np.linalg.eigh(directions.T @ directions / len(directions))
    strength = settings.beta * depth.smoothing**2 * np.maximum(eigenvalues, 0.0)
    least, most = 1.0 - LARGEST_CURVATURE * strength, 1.0 - SMALLEST_CURVATURE * strength
    if not least.min() > 0.0:
        raise NotLogConcaveError(
            f"beta * s^2 * lambda / 24, the curvature that the depth may have, is {1.0 - least.min():.3g} in units of "
            "the prior's precision and must be below 1"
        )
    steps, loss = _steps(settings, directions @ rotation, least, most)
    log_acceptance = 0.5 * float(np.log(least / most).sum()) - loss - CONSTANTS_ROOM * len(least)
    offset = (mean - np.asarray(settings.center)) / scale
    matrix = factor / scale[:, None] @ rotation
    return LogConcaveTarget(settings, offset, matrix, rotation, least, most, steps, log_acceptance)


def _normal_parameters(prior: ProductPrior | NormalVector) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and factor of a normal prior."""
    if isinstance(prior, NormalVector):
        return prior.mean, prior.factor
    if not prior.is_normal:
        raise NotLogConcaveError("the prior is not normal")
    mean, sigma = (np.concatenate([block.parameters[k] for block in prior.blocks]) for k in (0, 1))
    return mean, np.diag(sigma)


def _steps(settings: Mechanism, directions: np.ndarray, least: np.ndarray, most: np.ndarray) -> tuple[int, float]:
    """Return the gradient steps and what the gradient that is left takes off the log acceptance probability, at most.

    Where coordinate k is stretched by c_k = sqrt((m_k + L_k) / 2), the curvature lies between 1 - r and 1 + r with
    r = max (L_k - m_k) / (L_k + m_k), and a step y - g / c^2 shortens the way to the mode by r. So after T steps
    |g / c| is at most (1 + r) / (1 - r) r^T times its value at the start, which |g'| <= s / (6 sqrt 3) bounds.
    """
    stretch = np.sqrt((least + most) / 2.0)
    rate = float(((most - least) / (most + least)).max())
    slopes = np.abs(directions / stretch).mean(axis=0) * settings.beta * settings.depth.smoothing * LARGEST_SLOPE
    start = float(np.linalg.norm(slopes)) * (1.0 + rate) / (1.0 - rate)
    worth = 0.5 * float((stretch**2 * (most - least) / (most * least)).max())
    if not worth * start**2 > GRADIENT_ROOM:
        return 0, GRADIENT_ROOM
    steps = math.ceil(math.log(worth * start**2 / GRADIENT_ROOM) / (-2.0 * math.log(rate))) + 1
    if steps > MOST_STEPS:
        raise NotLogConcaveError(f"the mode is found only after {steps} steps, since the curvature may nearly vanish")
    return steps, GRADIENT_ROOM


def normal_variates(bits: RandomBits, count: int) -> np.ndarray:
    """Return standard normal doubles, by the inverse of a tail probability that has 53 significant bits however small.

    The binade of the tail is 2^-(k+2) with probability 2^-(k+1), k the number of leading zeros of a word.
    """
    from scipy.special import ndtri

    words = bits.words(2 * count).reshape(2, count)
    # 53 bits are a double without rounding; if all are 0 (2^-53) the lowest binade stands for the rest.
    leading = (words[0] >> np.uint64(WORD_BITS - FRACTION_BITS - 1)).astype(np.float64)
    binade = np.frexp(np.maximum(leading, 1.0))[1] - (FRACTION_BITS + 1)
    fraction = (words[1] & np.uint64((1 << FRACTION_BITS) - 1)).astype(np.float64) * 2.0**-FRACTION_BITS
    tails = np.ldexp(1.0 + fraction, binade - 2)
    return np.where(words[1] >> np.uint64(SIGN_BIT), -1.0, 1.0) * ndtri(tails)
