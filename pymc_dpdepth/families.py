"""Tail maps of univariate prior families: from a value to its tail probability, and back.

A family works in both tails, because the upper one loses all its digits when it is computed as 1 - cdf. The common
families are computed by NumPy and SciPy and need no compilation; any other PyMC distribution with `logcdf` and `icdf`
is compiled once per family, its parameters being inputs of the compiled function, and reaches upper tails down to
2**-42 (7 standard deviations of a normal).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np

from pymc_dpdepth import grid

__all__ = ["Family", "closed_form", "compiled_family"]


class Family(Protocol):
    """Tail maps of one family of distributions on the line; parameters broadcast against the values."""

    name: str
    parameter_names: tuple[str, ...]

    def tails(self, x: np.ndarray, *parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return P(T <= x) and P(T > x), each accurate where it is small."""

    def from_lower(self, v: np.ndarray, *parameters: np.ndarray) -> np.ndarray:
        """Return the point with lower tail v, 0 <= v <= 1/2 (the end of the support at v = 0)."""

    def from_upper(self, v: np.ndarray, *parameters: np.ndarray) -> np.ndarray:
        """Return the point with upper tail v, 0 <= v <= 1/2."""

    def floors(self, d: int, *parameters: np.ndarray) -> tuple[int | np.ndarray, int | np.ndarray]:
        """Return the grid's floors at the lower and the upper side of d coordinates."""


class SymmetricFamily:
    """Location-scale family that is symmetric about its location and unbounded on both sides."""

    def tails(self, x, location, scale):
        """Return both tails by symmetry."""
        z = (x - location) / scale
        small = self.standard_tail(np.abs(z))
        return np.where(z < 0, small, 1.0 - small), np.where(z < 0, 1.0 - small, small)

    def from_lower(self, v, location, scale):
        """Return the point with lower tail v."""
        return location - scale * self.standard_inverse(v)

    def from_upper(self, v, location, scale):
        """Return the point with upper tail v."""
        return location + scale * self.standard_inverse(v)

    def floors(self, d, *parameters):
        """Return the floor of a tail without end on both sides."""
        return grid.TAIL_FLOOR_KEY, grid.TAIL_FLOOR_KEY


class NormalFamily(SymmetricFamily):
    """Normal(mu, sigma)."""

    name = "Normal"
    parameter_names = ("mu", "sigma")

    @staticmethod
    def standard_tail(z):
        """P(N(0, 1) > z)."""
        from scipy.special import ndtr

        return ndtr(-z)

    @staticmethod
    def standard_inverse(v):
        """Return z >= 0 with upper tail v."""
        from scipy.special import ndtri

        return -ndtri(v)


class LaplaceFamily(SymmetricFamily):
    """Laplace(mu, b): tail exp(-z)/2."""

    name = "Laplace"
    parameter_names = ("mu", "b")

    @staticmethod
    def standard_tail(z):
        """P(Laplace(0, 1) > z)."""
        return 0.5 * np.exp(-z)

    @staticmethod
    def standard_inverse(v):
        """Return z >= 0 with upper tail v."""
        with np.errstate(divide="ignore"):
            return -np.log(2.0 * v)


class LogisticFamily(SymmetricFamily):
    """Logistic(mu, s): tail 1 / (1 + exp(z))."""

    name = "Logistic"
    parameter_names = ("mu", "s")

    @staticmethod
    def standard_tail(z):
        """P(Logistic(0, 1) > z)."""
        from scipy.special import expit

        return expit(-z)

    @staticmethod
    def standard_inverse(v):
        """Return z >= 0 with upper tail v."""
        from scipy.special import logit

        return -logit(v)


class CauchyFamily(SymmetricFamily):
    """Cauchy(alpha, beta): tail arctan(1/z)/pi."""

    name = "Cauchy"
    parameter_names = ("alpha", "beta")

    @staticmethod
    def standard_tail(z):
        """P(Cauchy(0, 1) > z)."""
        return np.arctan2(1.0, z) / np.pi

    @staticmethod
    def standard_inverse(v):
        """Return z >= 0 with upper tail v."""
        with np.errstate(divide="ignore"):
            return np.where(v < 0.5, 1.0 / np.tan(np.pi * v), 0.0)


class UniformFamily:
    """Uniform(lower, upper): both ends are finite."""

    name = "Uniform"
    parameter_names = ("lower", "upper")

    def tails(self, x, lower, upper):
        """Return both tails; 0 and 1 outside the interval."""
        width = upper - lower
        return np.clip((x - lower) / width, 0.0, 1.0), np.clip((upper - x) / width, 0.0, 1.0)

    def from_lower(self, v, lower, upper):
        """Return the point with lower tail v."""
        return lower + (upper - lower) * v

    def from_upper(self, v, lower, upper):
        """Return the point with upper tail v."""
        return upper - (upper - lower) * v

    def floors(self, d, *parameters):
        """Return the floor of a finite end on both sides."""
        return grid.FLOOR_KEY, grid.FLOOR_KEY


class ExponentialFamily:
    """Exponential with the given scale = 1/lam: finite lower end 0."""

    name = "Exponential"
    parameter_names = ("scale",)

    def tails(self, x, scale):
        """Return both tails."""
        z = np.maximum(x, 0.0) / scale
        return -np.expm1(-z), np.exp(-z)

    def from_lower(self, v, scale):
        """Return the point with lower tail v."""
        return -scale * np.log1p(-v)

    def from_upper(self, v, scale):
        """Return the point with upper tail v."""
        with np.errstate(divide="ignore"):
            return -scale * np.log(v)

    def floors(self, d, *parameters):
        """Return a finite lower end and an unbounded upper one."""
        return grid.FLOOR_KEY, grid.TAIL_FLOOR_KEY


@dataclass(frozen=True)
class ScipyFamily:
    """A family whose four maps (cdf, sf, ppf, isf) scipy.stats computes, each accurate in its tail.

    `arguments` turns the parameters of the PyMC random variable into (shapes, loc, scale) of scipy's distribution.
    """

    name: str
    parameter_names: tuple[str, ...]
    distribution: str
    arguments: Callable[..., tuple[tuple, np.ndarray | float, np.ndarray | float]]

    def _frozen(self, parameters):
        from scipy import stats

        shapes, loc, scale = self.arguments(*parameters)
        return getattr(stats, self.distribution)(*shapes, loc=loc, scale=scale)

    def tails(self, x, *parameters):
        """Return both tails."""
        frozen = self._frozen(parameters)
        return frozen.cdf(x), frozen.sf(x)

    def from_lower(self, v, *parameters):
        """Return the point with lower tail v."""
        return self._frozen(parameters).ppf(v)

    def from_upper(self, v, *parameters):
        """Return the point with upper tail v."""
        return self._frozen(parameters).isf(v)

    def floors(self, d, *parameters):
        """Return the floors: a finite end of the support is a cell of its own."""
        return tuple(
            np.where(np.isfinite(end), grid.FLOOR_KEY, grid.TAIL_FLOOR_KEY)
            for end in self._frozen(parameters).support()
        )


def _truncated_normal(mu, sigma, lower, upper):
    return ((lower - mu) / sigma, (upper - mu) / sigma), mu, sigma


class TruncatedNormalFamily(ScipyFamily):
    """TruncatedNormal(mu, sigma, lower, upper)."""

    def from_upper(self, v, mu, sigma, lower, upper):
        """Return the point with upper tail v, through the mirror image: scipy's isf is ppf(1 - v) here."""
        return -self.from_lower(v, -mu, sigma, -upper, -lower)


class StudentTFamily(ScipyFamily):
    """StudentT(nu, mu, sigma)."""

    def floors(self, d, nu, mu, sigma):
        """Return the floor of a tail that ends where scipy does.

        It squares x, so |x| stays below 2**512 = 1e154. The tail there is about x**-nu, and 2**-500 is as far as the
        inverse is right for nu >= 1; a little less leaves room for the constants.
        """
        exponent = np.maximum(grid.FINITE_END, np.floor(480.0 * np.minimum(nu, 1.0))).astype(np.int64)
        floor = (grid.EXPONENT_BIAS - exponent) << grid.CELL_BITS
        return floor, floor


class KumaraswamyFamily:
    """Kumaraswamy(a, b): upper tail (1 - x^a)^b on [0, 1]."""

    name = "Kumaraswamy"
    parameter_names = ("a", "b")

    def tails(self, x, a, b):
        """Return both tails."""
        with np.errstate(divide="ignore"):
            log_upper = b * np.log1p(-(np.clip(x, 0.0, 1.0) ** a))
        return -np.expm1(log_upper), np.exp(log_upper)

    def from_lower(self, v, a, b):
        """Return the point with lower tail v."""
        return (-np.expm1(np.log1p(-v) / b)) ** (1.0 / a)

    def from_upper(self, v, a, b):
        """Return the point with upper tail v."""
        with np.errstate(divide="ignore"):
            return (-np.expm1(np.log(v) / b)) ** (1.0 / a)

    def floors(self, d, *parameters):
        """Return the floor of a finite end on both sides."""
        return grid.FLOOR_KEY, grid.FLOOR_KEY


class LogitNormalFamily:
    """LogitNormal(mu, sigma): expit of a normal variable."""

    name = "LogitNormal"
    parameter_names = ("mu", "sigma")

    def tails(self, x, mu, sigma):
        """Return both tails."""
        from scipy.special import logit, ndtr

        z = (logit(np.clip(x, 0.0, 1.0)) - mu) / sigma
        return ndtr(z), ndtr(-z)

    def from_lower(self, v, mu, sigma):
        """Return the point with lower tail v."""
        from scipy.special import expit, ndtri

        return expit(mu + sigma * ndtri(v))

    def from_upper(self, v, mu, sigma):
        """Return the point with upper tail v."""
        from scipy.special import expit, ndtri

        return expit(mu - sigma * ndtri(v))

    def floors(self, d, *parameters):
        """Return the floor of a finite end on both sides."""
        return grid.FLOOR_KEY, grid.FLOOR_KEY


#: Families without compilation, by the name of PyTensor's random variable, or of its class where PyMC composes it of
#: others; their parameters are those of its Op.
CLOSED_FORMS = {
    "normal": NormalFamily(),
    "uniform": UniformFamily(),
    "laplace": LaplaceFamily(),
    "logistic": LogisticFamily(),
    "cauchy": CauchyFamily(),
    "exponential": ExponentialFamily(),
    "halfnormal": ScipyFamily("HalfNormal", ("loc", "sigma"), "halfnorm", lambda loc, sigma: ((), loc, sigma)),
    "halfcauchy": ScipyFamily("HalfCauchy", ("beta",), "halfcauchy", lambda beta: ((), 0.0, beta)),
    "lognormal": ScipyFamily("LogNormal", ("mu", "sigma"), "lognorm", lambda mu, sigma: ((sigma,), 0.0, np.exp(mu))),
    "gamma": ScipyFamily("Gamma", ("alpha", "scale"), "gamma", lambda alpha, scale: ((alpha,), 0.0, scale)),
    "beta": ScipyFamily("Beta", ("alpha", "beta"), "beta", lambda alpha, beta: ((alpha, beta), 0.0, 1.0)),
    "t": StudentTFamily("StudentT", ("nu", "mu", "sigma"), "t", lambda nu, mu, sigma: ((nu,), mu, sigma)),
    "gumbel": ScipyFamily("Gumbel", ("mu", "beta"), "gumbel_r", lambda mu, beta: ((), mu, beta)),
    "weibull": ScipyFamily("Weibull", ("alpha", "beta"), "weibull_min", lambda alpha, beta: ((alpha,), 0.0, beta)),
    "truncated_normal": TruncatedNormalFamily(
        "TruncatedNormal", ("mu", "sigma", "lower", "upper"), "truncnorm", _truncated_normal
    ),
    "kumaraswamy": KumaraswamyFamily(),
    "LogitNormal": LogitNormalFamily(),
}


def closed_form(op) -> Family | None:
    """Return the closed form of a random variable's Op, or None."""
    return CLOSED_FORMS.get(getattr(op, "name", None) or type(op).__name__)


class CompiledFamily:
    """A PyMC distribution with `logcdf` and `icdf`, known through two compiled functions of (values, *parameters)."""

    def __init__(self, name: str, parameter_names: tuple[str, ...], logcdf, icdf):
        self.name = name
        self.parameter_names = parameter_names
        self._logcdf = logcdf
        self._icdf = icdf

    def tails(self, x, *parameters):
        """Return both tails; the upper one is 1 - cdf, good to 2**-53."""
        logcdf = np.minimum(self._logcdf(np.asarray(x, dtype=np.float64), *parameters), 0.0)
        return np.exp(logcdf), -np.expm1(logcdf)

    def from_lower(self, v, *parameters):
        """Return the point with lower tail v."""
        return self._icdf(v, *parameters)

    def from_upper(self, v, *parameters):
        """Return the point with upper tail v."""
        return self._icdf(1.0 - v, *parameters)

    def floors(self, d, *parameters):
        """Return the floors: a finite lower end is found by asking for the quantile of 0."""
        (lowest,) = self._icdf(np.zeros((1, d)), *parameters)
        # 1 - v cannot be told from 1 below 2**-53, so the upper side always ends at the floor.
        return np.where(np.isfinite(lowest), grid.FLOOR_KEY, grid.TAIL_FLOOR_KEY), grid.FLOOR_KEY


@cache
def _compiled_random_variable(op, parameter_count: int) -> CompiledFamily:
    """Compile a RandomVariable Op once: two variables of one family share it whatever their parameters are.

    The parameters are doubles even where the user gave small integers, whose arithmetic PyTensor would do in float32.
    """
    import pymc as pm
    import pytensor
    import pytensor.tensor as pt
    from pytensor.tensor.random.type import random_generator_type
    from pytensor.tensor.type_other import NoneConst

    value = pt.vector("value", dtype="float64")
    parameters = [pt.vector(f"parameter_{i}", dtype="float64") for i in range(parameter_count)]
    variable = op.make_node(random_generator_type(), NoneConst, *parameters).default_output()
    compiled = [
        pytensor.function([value, *parameters], expression(variable, value), on_unused_input="ignore")
        for expression in (pm.logcdf, pm.icdf)
    ]

    def flattened(function):
        def evaluate(x, *columns):
            flat = (np.broadcast_to(column, x.shape).reshape(-1) for column in columns)
            return function(np.ascontiguousarray(x).reshape(-1), *flat).reshape(x.shape)

        return evaluate

    names = tuple(parameter.name for parameter in parameters)
    return CompiledFamily(type(op).__name__.removesuffix("RV"), names, *map(flattened, compiled))


def compiled_family(variable, parameters: tuple[np.ndarray, ...]) -> tuple[Family, bool]:
    """Compile the maps of a univariate random variable.

    Parameters
    ----------
    variable : TensorVariable
        A random variable whose distribution has `logcdf` and `icdf`.
    parameters : tuple of ndarray
        Values of its parameters. Infinite ones (an open end of a truncation) choose formulas at compile time, so they
        are compiled in.

    Returns
    -------
    family : Family
    takes_parameters : bool
        True when the family is shared by all variables of its kind and takes their parameters; False when the constants
        of this variable are compiled in (symbolic distributions such as `pm.Truncated`).

    Raises
    ------
    NotImplementedError
        If PyMC has no `logcdf` or no `icdf` for this distribution.
    """
    import pymc as pm
    import pytensor
    import pytensor.tensor as pt
    from pytensor.tensor.random.op import RandomVariable

    op = variable.owner.op
    if isinstance(op, RandomVariable) and all(np.isfinite(p).all() for p in parameters):
        return _compiled_random_variable(op, len(parameters)), True
    value = pt.matrix("value", dtype="float64")
    logcdf, icdf = (
        pytensor.function([value], expression(variable, value), on_unused_input="ignore")
        for expression in (pm.logcdf, pm.icdf)
    )
    return (
        CompiledFamily(
            type(op).__name__.removesuffix("RV"), (), lambda x, *_: logcdf(x), lambda v, *_: icdf(np.atleast_2d(v))
        ),
        False,
    )
