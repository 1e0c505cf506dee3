"""Laplace and Gaussian noise: OpenDP behind one interface, and NumPy for simulations.

All noise is added to integers, so that no rounding of doubles can tell two tables apart. Real numbers are first rounded
to a grid chosen without them. The measurements are OpenDP's `make_laplace` and `make_gaussian` over vectors of 64-bit
integers, which draw the discrete Laplace and the discrete Gaussian law exactly, for the rational number that the scale
is as a double. Their privacy maps are asserted at every draw. docs/private_depths.md has the proofs.

References
----------
Balle and Wang (2018), Improving the Gaussian mechanism for differential privacy, ICML, arXiv:1805.06530.
Canonne, Kamath and Steinke (2020), The discrete Gaussian for differential privacy, NeurIPS, arXiv:2004.00010.
Ghosh, Roughgarden and Sundararajan (2012), Universally utility-maximizing privacy mechanisms, SIAM J. Computing 41.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from pymc_dpdepth.privacy.gaussian_calibration import analytic_gaussian_scale
from pymc_dpdepth.privacy.rounding import CONTEXT, float_above, number, probability, written
from pymc_dpdepth.randomness import RandomBits, curator_generator

__all__ = [
    "GAUSSIAN",
    "LAPLACE",
    "IntegerNoise",
    "RealNoise",
    "gaussian_noise",
    "laplace_noise",
    "real_gaussian_noise",
    "real_laplace_noise",
]

LAPLACE, GAUSSIAN = "laplace", "gaussian"

# Values and noise must fit in 64 bits. OpenDP cuts a sum off at the ends, which is post-processing, but would be seen:
# with these limits it has a probability below exp(-2^5) for Laplace noise and far less for Gaussian noise.
LARGEST_SCALE, LARGEST_COUNT = 2.0**56, 2**61
# What the discrete Gaussian's distance from the rounded Gaussian may cost, as shares of epsilon (or of 1, where epsilon
# is larger) and of delta.
EPSILON_SHARE, DELTA_SHARE = Fraction(1, 2**20), Fraction(1, 2**19)
ROUND_UP = 1 + Decimal("1e-30")
# A grid this much finer than the sensitivity of one value adds a part in 2^30 to it by rounding.
FINER = 30
# Values up to `largest` take at most this many bits on a grid.
BITS_OF_VALUES = 52


@dataclass(frozen=True)
class IntegerNoise:
    """Noise for a vector of integers.

    Attributes
    ----------
    distribution : {"laplace", "gaussian"}
        The discrete law, on multiples of 1 / `refinement`.
    scale : float
        In units of the integers: Laplace density exp(-|x| / scale), or standard deviation. 0 where nothing depends on
        the rows.
    sensitivity : float
        L1 (Laplace) or L2 (Gaussian) sensitivity of the vector that the noise covers, rounded upwards.
    epsilon, delta : float
        What the noise was asked to guarantee.
    rho : float or None
        Gaussian noise: its cost in zero-concentrated DP by OpenDP's privacy map, a second statement of the same cost.
    realised_epsilon : float
        Laplace noise: epsilon by OpenDP's privacy map. Otherwise `epsilon`.
    refinement : int
        A power of two.
    """

    distribution: str
    scale: float
    sensitivity: float
    epsilon: float
    delta: float
    rho: float | None
    realised_epsilon: float
    refinement: int = 1

    def add(self, counts: np.ndarray, bits: RandomBits) -> np.ndarray:
        """Return counts with noise, in units of 1 / `refinement`.

        Parameters
        ----------
        counts : ndarray of int64, shape (k,)
            At most 2^61 / `refinement` in size; what is larger is cut off there.
        bits : RandomBits
            Seeded bits make a simulation, drawn by NumPy. Otherwise OpenDP's own cryptographic generator draws.

        Returns
        -------
        ndarray of int64, shape (k,)
        """
        limit = LARGEST_COUNT // self.refinement
        counts = np.clip(np.asarray(counts, dtype=np.int64), -limit, limit) * self.refinement
        if not self.scale or not len(counts):
            return counts
        if bits.simulation:
            return counts + self.simulate(counts.shape, curator_generator(bits.seed()))
        # The plan asserted the map of the same measurement when it was made.
        scale = self.scale * self.refinement
        return np.array(_measurement(self.distribution, scale)(counts.tolist()), dtype=np.int64)

    def simulate(self, shape: int | tuple[int, ...], generator: Any) -> np.ndarray:
        """Return noise of the same law, without a count under it: for simulations, such as a parametric bootstrap.

        It protects nothing, since the generator can be replayed; `add` is what protects a count.

        Parameters
        ----------
        shape : int or tuple of int
            As many independent draws.
        generator : NumPy Generator

        Returns
        -------
        ndarray of int64
            In units of 1 / `refinement`: differences of geometric numbers for Laplace noise, exactly its discrete law
            in real arithmetic, or rounded Gaussian noise.
        """
        scale = self.scale * self.refinement
        if not scale:
            return np.zeros(shape, dtype=np.int64)
        if self.distribution == LAPLACE:
            first, second = (np.floor(generator.exponential(scale, shape)) for _ in range(2))
            return (first - second).astype(np.int64)
        return np.rint(generator.normal(0.0, scale, shape)).astype(np.int64)

    @property
    def standard_deviation(self) -> float:
        """Standard deviation in units of the integers; for Laplace noise sqrt(2 q) / (1 - q), q = exp(-1 / scale)."""
        if not self.scale or self.distribution == GAUSSIAN:
            return self.scale
        return math.sqrt(2) * math.exp(-0.5 / self.scale) / -math.expm1(-1 / self.scale)


@dataclass(frozen=True)
class RealNoise:
    """Noise for a vector of real numbers, by rounding to a grid and noise on its integers.

    Attributes
    ----------
    integers : IntegerNoise
        The noise in units of the grid; it covers what rounding adds to the sensitivity.
    grid : float
        A power of two, chosen without the values.
    largest : float
        Values beyond it in size are cut off there, a fixed map.
    """

    integers: IntegerNoise
    grid: float
    largest: float

    @property
    def scale(self) -> float:
        """Scale of the noise in the units of the values."""
        return self.integers.scale * self.grid

    @property
    def output_grid(self) -> float:
        """The numbers that come out are multiples of this."""
        return self.grid / self.integers.refinement

    def add(self, values: Any, bits: RandomBits) -> np.ndarray:
        """Return values with noise.

        Parameters
        ----------
        values : array_like of float, shape (k,)
            No NaN.
        bits : RandomBits

        Returns
        -------
        ndarray of float64, shape (k,)
        """
        values = np.clip(np.asarray(values, dtype=np.float64), -self.largest, self.largest)
        if np.isnan(values).any():
            raise ValueError("values: expected numbers, got NaN; decide on missing values before noise is added.")
        counts = np.rint(values / self.grid).astype(np.int64)  # the division by a power of two is exact
        return self.integers.add(counts, bits) * self.output_grid


def laplace_noise(sensitivity: int | Fraction, epsilon: float | Fraction) -> IntegerNoise:
    """Return discrete Laplace noise that makes a vector of integers epsilon-private.

    Parameters
    ----------
    sensitivity : int
        The largest sum of absolute changes of the integers; a fraction is rounded up.
    epsilon : float
        Privacy loss, > 0.

    Returns
    -------
    IntegerNoise

    Raises
    ------
    ValueError
        If an argument is out of range, or the noise would not fit in 64 bits.
    """
    asked = number(epsilon, "epsilon")
    sensitivity = math.ceil(sensitivity)
    if sensitivity < 0:
        raise ValueError(f"sensitivity: expected a number >= 0, got {sensitivity}.")
    limit = float(asked)
    if not sensitivity:
        return IntegerNoise(LAPLACE, 0.0, 0.0, limit, 0.0, None, 0.0)
    scale = _fitting(float_above(sensitivity / written(asked)))
    if sensitivity > LARGEST_COUNT:
        raise ValueError(f"sensitivity: expected at most 2^61 on the grid of integers, got {sensitivity:.3g}.")
    realised = _measurement(LAPLACE, scale).map(sensitivity)
    while realised > limit:  # the map rounds upwards, beyond a limit that is met exactly
        scale = math.nextafter(scale, math.inf)
        realised = _measurement(LAPLACE, scale).map(sensitivity)
    return IntegerNoise(LAPLACE, scale, float_above(Fraction(sensitivity)), limit, 0.0, None, realised)


def gaussian_noise(
    squared_sensitivity: int | Fraction, size: int, epsilon: float | Fraction, delta: float, *, largest: int
) -> IntegerNoise:
    """Return discrete Gaussian noise that makes a vector of integers (epsilon, delta)-private, for every epsilon.

    The scale is that of the analytic calibration [1]_ at an epsilon smaller by a part in 2^20 and a delta smaller by
    one in 2^19. The difference covers the distance of the discrete Gaussian law from that of rounded Gaussian noise,
    on a grid that is refined until it does.

    Parameters
    ----------
    squared_sensitivity : int or Fraction
        The largest sum of squared changes of the integers.
    size : int
        Length of the vector.
    epsilon, delta : float
        Privacy loss, > 0, and delta, in [1e-199, 1).
    largest : int
        Public bound of the integers' sizes.

    Returns
    -------
    IntegerNoise

    Raises
    ------
    ValueError
        If an argument is out of range, or the noise would not fit in 64 bits.

    References
    ----------
    .. [1] B. Balle and Y.-X. Wang, Improving the Gaussian mechanism for differential privacy, ICML 2018,
           arXiv:1805.06530.
    """
    asked, probability_of = written(number(epsilon, "epsilon")), written(probability(delta))
    if squared_sensitivity < 0:
        raise ValueError(f"squared_sensitivity: expected a number >= 0, got {squared_sensitivity}.")
    if not squared_sensitivity:
        return IntegerNoise(GAUSSIAN, 0.0, 0.0, float(asked), float(delta), 0.0, float(asked))
    unit = analytic_gaussian_scale(asked * (1 - EPSILON_SHARE), probability_of * (1 - DELTA_SHARE))
    sensitivity = root_above(Fraction(squared_sensitivity))
    scale = _fitting(float_above(Fraction(sensitivity) * Fraction(unit)))
    refinement = 1
    while scale * refinement < _least_scale(size, float(asked), probability_of):
        refinement *= 2
    _fitting(scale * refinement)
    if largest * refinement > LARGEST_COUNT:
        raise ValueError(
            f"Gaussian noise of so small a scale, {scale:.3g} on a grid where values reach {largest:.3g}, would not "
            "fit in 64 bits: epsilon is too large for it. Ask for a smaller epsilon, or take delta=0 for Laplace noise."
        )
    rho = _measurement(GAUSSIAN, scale * refinement).map(sensitivity * refinement)
    expected = Fraction(sensitivity) ** 2 / (2 * Fraction(scale) ** 2)
    if not expected <= Fraction(rho) <= expected * (1 + Fraction(1, 2**40)):
        raise RuntimeError(f"OpenDP's privacy map says rho = {rho}, expected {float(expected)}; nothing was drawn.")
    return IntegerNoise(GAUSSIAN, scale, sensitivity, float(asked), float(delta), rho, float(asked), refinement)


def real_laplace_noise(sensitivity: float | Fraction, size: int, epsilon: float, *, largest: float) -> RealNoise:
    """Return noise that makes a vector of real numbers epsilon-private: Laplace noise on a grid.

    Parameters
    ----------
    sensitivity : float or Fraction
        L1 sensitivity of the numbers as they come.
    size : int
        Length of the vector.
    epsilon : float
        Privacy loss, > 0.
    largest : float
        Public bound of their size.

    Returns
    -------
    RealNoise

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_dpdepth.privacy.noise import real_laplace_noise
    >>> from pymc_dpdepth.randomness import random_bits
    >>> noise = real_laplace_noise(0.5, 3, 1.0, largest=10.0)
    >>> noise.add(np.array([1.0, 2.0, 3.0]), random_bits(None)).shape, round(noise.scale, 6)
    ((3,), 0.5)
    """
    exact = Fraction(number(sensitivity, "sensitivity"))
    grid = _grid(exact / max(size, 1), largest)
    # Two values that differ by c on a grid of step g are rounded to integers that differ by at most c / g + 1.
    return RealNoise(laplace_noise(exact / Fraction(grid) + size, epsilon), grid, float(largest))


def real_gaussian_noise(
    sensitivity: float | Fraction, size: int, epsilon: float, delta: float, *, largest: float
) -> RealNoise:
    """Return noise that makes a vector of real numbers (epsilon, delta)-private: Gaussian noise on a grid.

    Parameters
    ----------
    sensitivity : float or Fraction
        L2 sensitivity of the numbers as they come.
    size : int
        Length of the vector.
    epsilon, delta : float
        Privacy loss, > 0, and delta, in (0, 1).
    largest : float
        Public bound of their size.

    Returns
    -------
    RealNoise

    Examples
    --------
    >>> from pymc_dpdepth.privacy.noise import real_gaussian_noise
    >>> round(real_gaussian_noise(0.5, 3, 1.0, 1e-6, largest=10.0).scale, 4)
    2.1123
    """
    exact = Fraction(number(sensitivity, "sensitivity"))
    grid = _grid(exact / Fraction(root_above(Fraction(max(size, 1)))), largest)
    # By the triangle inequality: the changes, and up to 1 in each of the values by rounding.
    total = exact / Fraction(grid) + Fraction(root_above(Fraction(size)))
    reach = math.ceil(Fraction(largest) / Fraction(grid))
    return RealNoise(gaussian_noise(total**2, size, epsilon, delta, largest=reach), grid, float(largest))


def root_above(value: Fraction) -> float:
    """Return a double that is not below the square root of a number >= 0."""
    root = CONTEXT.sqrt(CONTEXT.divide(Decimal(value.numerator), Decimal(value.denominator)))
    nearest = float(root)
    return nearest if Fraction(nearest) ** 2 >= value else float_above(CONTEXT.multiply(root, ROUND_UP))


def _grid(change: Fraction, largest: float) -> float:
    """Return the step of a grid for values that change by about this much and are at most `largest` in size."""
    finest = math.frexp(number(largest, "largest"))[1] - BITS_OF_VALUES
    return math.ldexp(1.0, max(math.frexp(float(change))[1] - 1 - FINER, finest))


def _fitting(scale: float) -> float:
    """Return a scale, or refuse it where the noise would not fit in 64 bits."""
    if not scale <= LARGEST_SCALE:
        raise ValueError(
            f"The noise would have scale {scale:.3g} on its grid of integers, beyond 2^56: epsilon (or delta) is too "
            "small for this many values. Ask for a larger epsilon, or for fewer values."
        )
    return scale


def _least_scale(size: int, epsilon: float, delta: Fraction) -> float:
    """Return from what scale on discrete and rounded Gaussian noise are near enough (docs/private_depths.md).

    The log ratio of the two laws, added up over the values, is at most size (t^2 + 1) / (24 scale^2) but for an event
    whose probability, 2 size exp(-t^2 / 2), is below delta exp(-epsilon) 2^-21.
    """
    log_miss = epsilon + math.log(2 * size) - math.log(delta.numerator) + math.log(delta.denominator) + 21 * math.log(2)
    t = math.sqrt(2 * log_miss) + 1 / 2  # the half is more than rounding to an integer takes away, at any scale >= 1
    allowed = min(epsilon, 1.0) * float(EPSILON_SHARE) / 2
    # The factor covers the normalising constants, 1 + 3 exp(-2 pi^2 scale^2), and the doubles of this function.
    return max(1024.0, 1.01 * math.sqrt(size * (t * t + 1) / (24 * allowed)))


def _measurement(distribution: str, scale: float) -> Any:
    """Return OpenDP's measurement over vectors of 64-bit integers."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian, make_laplace
    from opendp.metrics import l1_distance, l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")  # OpenDP's word for parts whose proofs its committee has not voted on
    domain = vector_domain(atom_domain(T="i64"))
    if distribution == LAPLACE:
        return make_laplace(domain, l1_distance(T="i64"), scale=scale)
    return make_gaussian(domain, l2_distance(T="f64"), scale=scale)
