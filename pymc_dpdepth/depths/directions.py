"""Sets of directions: the public unit vectors that rows and points are projected on.

A direction set is chosen without looking at the rows: it is a kind, a dimension and a public seed, or an array that the
user gives. Such a set leaves a depth's sensitivity as it is (docs/sensitivity.md).
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import numpy as np

__all__ = ["Directions", "as_directions"]

AUTO = "auto"
#: The axes, whatever the dimension turns out to be.
AXES = "axes"

_KINDS = ("axes", "orthonormal", "uniform", "balanced", "array")

# Random direction sets are built once for each (kind, d, m, seed); a model rarely holds more than a few.
_CACHED_MATRICES = 32

# A row whose norm is this close to 1 is a unit row already: normalising it again would only change its last bits, and
# directions read back from a record would differ from those that were used.
_UNIT_TOLERANCE = 8 * np.finfo(np.float64).eps


@dataclass(frozen=True)
class Directions:
    """A public set of unit vectors; each stands for itself and its opposite.

    Build one with `axes`, `orthonormal`, `uniform`, `balanced` or `from_array`. Two sets are equal, and have equal
    hashes, when their kind, dimension, number and seed agree (for arrays: when their unit rows agree to the bit).

    Attributes
    ----------
    kind : {"axes", "orthonormal", "uniform", "balanced", "array"}
        How the vectors are made.
    d : int
        Dimension of the space.
    m : int
        Number of directions.
    seed : int or None
        Public seed of a random kind; None for axes and arrays.

    Examples
    --------
    >>> from pymc_dpdepth.depths import Directions
    >>> Directions.axes(2).matrix().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    >>> Directions.balanced(3, 12, seed=7).m
    12
    """

    kind: Literal["axes", "orthonormal", "uniform", "balanced", "array"]
    d: int
    m: int
    seed: int | None = None
    row_bytes: bytes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Refuse a kind that no rule makes."""
        if self.kind not in _KINDS:
            raise ValueError(f"The kind of a direction set is one of {', '.join(_KINDS)}; got {self.kind!r}.")

    @classmethod
    def axes(cls, d: int) -> Directions:
        """Return the d coordinate axes.

        Parameters
        ----------
        d : int
            Dimension.
        """
        d = _positive_integer(d, "d")
        return cls("axes", d, d)

    @classmethod
    def orthonormal(cls, d: int, seed: int = 0) -> Directions:
        """Return the d rows of one random rotation, uniform on the orthogonal group.

        Parameters
        ----------
        d : int
            Dimension.
        seed : int
            Public seed, at least 0.
        """
        d = _positive_integer(d, "d")
        return cls("orthonormal", d, d, _seed(seed))

    @classmethod
    def uniform(cls, d: int, m: int, seed: int = 0) -> Directions:
        """Return m independent directions, uniform on the sphere.

        Parameters
        ----------
        d : int
            Dimension.
        m : int
            Number of directions.
        seed : int
            Public seed, at least 0.
        """
        return cls("uniform", _positive_integer(d, "d"), _positive_integer(m, "m"), _seed(seed))

    @classmethod
    def balanced(cls, d: int, m: int, seed: int = 0) -> Directions:
        """Return the first m rows of stacked random rotations.

        Every block of d rows is orthonormal, so a mean over the directions varies less than over m independent ones.
        The first block is `orthonormal(d, seed)`.

        Parameters
        ----------
        d : int
            Dimension.
        m : int
            Number of directions; the last block is cut when d does not divide m.
        seed : int
            Public seed, at least 0.
        """
        return cls("balanced", _positive_integer(d, "d"), _positive_integer(m, "m"), _seed(seed))

    @classmethod
    def from_array(cls, array: Any) -> Directions:
        """Return the rows of an array, each divided by its Euclidean norm.

        Parameters
        ----------
        array : array_like, shape (m, d)
            One direction in each row; finite, no row of zeros. It must be chosen without looking at the private rows.

        Raises
        ------
        ValueError
            If the array is not two-dimensional, is empty, or has a zero or non-finite row.
        """
        rows = np.array(array, dtype=np.float64, order="C")
        if rows.ndim != 2 or 0 in rows.shape:
            raise ValueError(
                f"An array of directions has shape (m, d), one direction in each row, m and d at least 1; got "
                f"{rows.shape}."
            )
        usable = np.isfinite(rows).all(axis=1) & (rows != 0).any(axis=1)
        if not usable.all():
            bad = np.flatnonzero(~usable).tolist()
            raise ValueError(
                f"Directions must be finite and not zero; these rows of the array are not: {bad}. Drop them."
            )
        # Scaling by the largest entry first keeps the squares in range, and makes a multiple of an axis exactly an
        # axis.
        largest = np.max(np.abs(rows), axis=1, keepdims=True)
        scaled = rows / largest
        scaled_norm = np.sqrt(np.sum(scaled * scaled, axis=1, keepdims=True))
        norm = np.minimum(largest, 2.0) * scaled_norm  # the norm where it can be 1; capped so as not to overflow
        unit = np.abs(norm - 1) <= _UNIT_TOLERANCE
        several = np.count_nonzero(rows, axis=1, keepdims=True) > 1
        rows = np.where(unit & several, rows, scaled / scaled_norm)
        rows += 0.0  # -0.0 becomes 0.0, so that equal directions have equal bytes
        return cls("array", rows.shape[1], rows.shape[0], None, rows.tobytes())

    def matrix(self) -> np.ndarray:
        """Return the unit vectors as the rows of a read-only array.

        Returns
        -------
        ndarray of float64, shape (m, d)
        """
        return _matrix(self)

    def describe(self) -> dict[str, Any]:
        """Return a public record of the set that JSON can hold.

        Returns
        -------
        dict
            `kind`, `d`, `m`, `seed`, and for an array its unit `rows`; `from_array(rows)` gives the same set again.
        """
        record: dict[str, Any] = {"kind": self.kind, "d": self.d, "m": self.m, "seed": self.seed}
        if self.kind == "array":
            record["rows"] = self.matrix().tolist()
        return record


def as_directions(directions: Any) -> Directions | Literal["auto", "axes"] | None:
    """Coerce what a user may write for directions.

    Parameters
    ----------
    directions : Directions, "auto", "axes", None or array_like of shape (m, d)
        A word is left to be settled when the dimension is known; None means all directions.

    Returns
    -------
    Directions, "auto", "axes" or None

    Raises
    ------
    ValueError
        If another word came, or an array that holds no directions.
    """
    if directions is None or isinstance(directions, Directions):
        return directions
    if isinstance(directions, str):
        if directions in (AUTO, AXES):
            return directions
        raise ValueError(
            f'directions must be "auto", "axes", None, a Directions object or an array of shape (m, d); got '
            f"{directions!r}. Use Directions.axes(d), .orthonormal(d, seed), .uniform(d, m, seed) or .balanced(d, m, "
            "seed)."
        )
    return Directions.from_array(directions)


@lru_cache(maxsize=_CACHED_MATRICES)
def _matrix(directions: Directions) -> np.ndarray:
    d, m = directions.d, directions.m
    if directions.kind == "array":
        # A view on immutable bytes: read-only from the start.
        return np.frombuffer(directions.row_bytes, dtype=np.float64).reshape(m, d)
    if directions.kind == "axes":
        rows = np.eye(d)
    elif directions.kind == "uniform":
        rows = np.random.default_rng(directions.seed).standard_normal((m, d))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    else:  # orthonormal is one block of balanced
        generator = np.random.default_rng(directions.seed)
        blocks = [_rotation(d, generator) for _ in range(math.ceil(m / d))]
        rows = np.ascontiguousarray(np.vstack(blocks)[:m])
    rows.flags.writeable = False
    return rows


def _rotation(d: int, generator: np.random.Generator) -> np.ndarray:
    """Draw a Haar-distributed orthogonal matrix.

    The QR factor of a normal matrix is Haar once the diagonal of R is made positive: F. Mezzadri, How to generate
    random matrices from the classical compact groups, Notices of the AMS 54 (2007) 592-604, arXiv:math-ph/0609050.
    """
    q, r = np.linalg.qr(generator.standard_normal((d, d)))
    return (q * np.where(np.diag(r) < 0, -1.0, 1.0)).T


def _positive_integer(value: Any, name: str) -> int:
    number = _integer(value, name)
    if number < 1:
        raise ValueError(f"{name} must be an integer of at least 1; got {number}.")
    return number


def _seed(value: Any) -> int:
    number = _integer(value, "seed")
    if number < 0:
        raise ValueError(f"seed must be an integer of at least 0; got {number}.")
    return number


def _integer(value: Any, name: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer; got {type(value).__name__}.") from None
