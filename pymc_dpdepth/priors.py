"""Reading a PyMC prior as a product of univariate families, and its map to the grid of u-space."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pymc_dpdepth.decimals import shortest_decimal
from pymc_dpdepth.families import (
    CompiledFamily,
    Family,
    NormalFamily,
    ScipyFamily,
    TruncatedNormalFamily,
    closed_form,
    compiled_family,
)
from pymc_dpdepth.graph_values import constant_value
from pymc_dpdepth.grid import LAST_KEY

__all__ = ["Block", "NotAProductPriorError", "ProductPrior", "is_flat", "is_random", "read_prior"]

QUARTILE = 0.25
# An atom may be mapped into the cell beside its own when cdf and icdf differ in their last digits (by at most 1e-13 of
# the 9e-13 of a cell, see grid.py), so the number that stands for a cell may lie this share of a cell outside it.
MARGIN = 0.25
LARGEST = float(np.finfo(np.float64).max)
FLAT_NAMES = {"flat", "half_flat"}


class NotAProductPriorError(ValueError):
    """The location's prior is not a product of univariate distributions with known parameters."""


@dataclass(frozen=True, eq=False)
class Block:
    """Coordinates start, ..., stop - 1 of the location: independent draws of one family.

    Attributes
    ----------
    family : Family
    parameters : tuple of ndarray, each of shape (stop - start,)
    start, stop : int
    variable : object
        The PyTensor random variable.
    scalar : bool
        Whether the variable is a scalar (its one coordinate has no axis of its own).
    record : dict
        Public description.
    """

    family: Family
    parameters: tuple[np.ndarray, ...]
    start: int
    stop: int
    variable: object
    scalar: bool
    record: dict

    @property
    def columns(self) -> slice:
        """The block's coordinates."""
        return slice(self.start, self.stop)

    @property
    def name(self) -> str | None:
        """Name of the variable in its model."""
        return self.variable.name


@dataclass(frozen=True, eq=False)
class ProductPrior:
    """Independent univariate priors of the d coordinates of a location.

    Attributes
    ----------
    blocks : tuple of Block
        In coordinate order.
    """

    blocks: tuple[Block, ...]

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return self.blocks[-1].stop

    @property
    def is_normal(self) -> bool:
        """Whether every coordinate is normal."""
        return all(isinstance(block.family, NormalFamily) for block in self.blocks)

    def floors(self) -> np.ndarray:
        """Return the grid's floors, shape (d, 2): lower and upper side of each coordinate."""
        floors = np.empty((self.d, 2), dtype=np.int64)
        for block in self.blocks:
            width = block.stop - block.start
            floors[block.columns, 0], floors[block.columns, 1] = block.family.floors(width, *block.parameters)
        return floors

    def keys(self, rows: np.ndarray) -> np.ndarray:
        """Map rows to grid keys, one row at a time.

        Parameters
        ----------
        rows : ndarray, shape (n, d), finite

        Returns
        -------
        ndarray of int64, shape (d, n)
        """
        from pymc_dpdepth.grid import normal_keys, tail_keys

        keys = np.empty((self.d, rows.shape[0]), dtype=np.int64)
        floors = self.floors()
        for block in self.blocks:
            part = rows[:, block.columns]
            if isinstance(block.family, NormalFamily):
                normal_keys(part, *block.parameters, keys[block.columns])
                continue
            with np.errstate(all="ignore"):  # a warning of an overflow would tell of a far row
                lower, upper = block.family.tails(part, *block.parameters)
            for column in range(part.shape[1]):
                j = block.start + column
                keys[j] = tail_keys(
                    np.ascontiguousarray(lower[:, column]), np.ascontiguousarray(upper[:, column]), *floors[j]
                )
        return keys

    def values(self, keys: np.ndarray) -> np.ndarray:
        """Return the number that stands for each cell: the shortest decimal in it.

        The map is fixed before the data are seen. A value that many rows share (65000) so comes out as itself.

        Parameters
        ----------
        keys : ndarray of int64, shape (k, d)

        Returns
        -------
        ndarray of float64, shape (k, d)
        """
        near, far, upper = self._margins(keys)
        ends = [self._numbers(tail, upper) for tail in (near, far)]
        return shortest_decimal(np.minimum(*ends), np.maximum(*ends))

    def enclose(self, first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return numbers between which `values` of all cells of runs lie.

        Parameters
        ----------
        first, last : ndarray of int64, shape (k, d)
            Inclusive ends of runs of cells.

        Returns
        -------
        low, high : ndarray of float64, shape (k, d), finite
        """
        ends = []
        for keys, lowest in ((first, True), (last, False)):
            near, far, upper = self._margins(keys, wide=True)
            ends.append(self._numbers(np.where(upper == lowest, far, near), upper))
        low, high = (np.clip(end, -LARGEST, LARGEST) for end in ends)
        # The number of an outermost cell lies among those of the cells inside it, since the infinite end of its tail
        # gives way in `values`: runs that end there are widened to hold it.
        (lowest_cell, lowest), (highest_cell, highest) = self._outermost
        for reached, number in ((first <= lowest_cell, lowest), (last >= highest_cell, highest)):
            low = np.where(reached, np.minimum(low, number), low)
            high = np.where(reached, np.maximum(high, number), high)
        one = (first == last).all(axis=1)
        if one.any():  # a run of one cell is its number
            low[one] = high[one] = self.values(first[one])
        return low, high

    @cached_property
    def _outermost(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """The outermost cell of each coordinate and its number, on the lower and on the upper side."""
        floors = self.floors()
        return [(cells, self.values(cells[None])[0]) for cells in (floors[:, 0], LAST_KEY - floors[:, 1])]

    @property
    def is_monotone(self) -> bool:
        """Whether `enclose` is known to hold every number: inverse cdfs are right to far less than a cell's margin."""
        return all(_inverse_error(block.family) == (0.0, 0.0) for block in self.blocks)

    def _margins(self, keys: np.ndarray, wide: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the tails at both ends of cells with their margins, and whether they are upper tails."""
        from pymc_dpdepth.grid import tail_edges

        floors = self.floors()
        upper, near, far = tail_edges(keys, floors[:, 0], floors[:, 1])
        margin = MARGIN * (far - near)
        if wide:
            cells, absolute = self._inverse_errors()
            margin = margin + cells * (far - near) + absolute
        return np.maximum(near - margin, 0.0), np.minimum(far + margin, 0.5), upper

    def _inverse_errors(self) -> tuple[np.ndarray, np.ndarray]:
        """Return by how many cells, and by how much of a tail, the inverse cdfs may be off, each of shape (d,)."""
        errors = np.empty((2, self.d))
        for block in self.blocks:
            errors[:, block.columns] = np.array(_inverse_error(block.family))[:, None]
        return errors[0], errors[1]

    def _numbers(self, tails: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """Return the numbers with these lower tails, or upper tails, shape (k, d)."""
        numbers = np.empty(tails.shape)
        for block in self.blocks:
            columns = block.columns
            with np.errstate(all="ignore"):
                numbers[:, columns] = np.where(
                    upper[:, columns],
                    block.family.from_upper(tails[:, columns], *block.parameters),
                    block.family.from_lower(tails[:, columns], *block.parameters),
                )
        return numbers

    def quantile(self, probability: float) -> np.ndarray:
        """Return the quantiles of all coordinates, shape (d,)."""
        quantiles = np.empty(self.d)
        for block in self.blocks:
            from_tail = block.family.from_lower if probability <= 0.5 else block.family.from_upper  # noqa: PLR2004
            tail = np.full((1, block.stop - block.start), min(probability, 1.0 - probability))
            quantiles[block.columns] = from_tail(tail, *block.parameters)
        return quantiles

    def center_and_scale(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the median and the interquartile range of every coordinate, the package's units."""
        scale = self.quantile(1.0 - QUARTILE) - self.quantile(QUARTILE)
        for block in self.blocks:
            if isinstance(block.family, NormalFamily):  # free of the rounding of a difference beside a large mean
                with np.errstate(over="ignore"):
                    scale[block.columns] = 2.0 * block.family.standard_inverse(QUARTILE) * block.parameters[1]
        return self.quantile(0.5), scale

    def describe(self) -> list[dict]:
        """Return the public record of the prior."""
        return [dict(block.record, start=block.start, stop=block.stop) for block in self.blocks]


def _inverse_error(family: Family) -> tuple[float, float]:
    """Return by how many cells and by how much of a tail an inverse cdf may be off; 0 where it is known far better."""
    if isinstance(family, TruncatedNormalFamily):
        return 0.0, 1e-7
    if isinstance(family, CompiledFamily):  # the upper tail v goes in as 1 - v, with a rounding
        return 1024.0, 2.0**-53
    return (4.0 if isinstance(family, ScipyFamily) else 0.0), 0.0


def is_random(variable) -> bool:
    """Whether a variable is the draw of a distribution, simple or composed, and not computed from others."""
    from pymc.distributions.distribution import SymbolicRandomVariable
    from pytensor.tensor.random.op import RandomVariable

    return variable.owner is not None and isinstance(variable.owner.op, RandomVariable | SymbolicRandomVariable)


def is_flat(location) -> bool:
    """Whether an improper prior (`pm.Flat`, `pm.HalfFlat`) is among the ancestors of a variable."""
    from pytensor.compile.builders import OpFromGraph
    from pytensor.graph.traversal import ancestors

    ops = [variable.owner.op for variable in ancestors([location]) if variable.owner is not None]
    if any(getattr(op, "name", None) in FLAT_NAMES for op in ops):
        return True
    # A symbolic distribution, such as pm.Truncated, keeps what it is made of in a graph of its own.
    return any(is_flat(output) for op in ops if isinstance(op, OpFromGraph) for output in op.fgraph.outputs)


def read_prior(location, d: int) -> ProductPrior:
    """Read the prior of a location variable as a product of univariate families.

    Parameters
    ----------
    location : TensorVariable
        A random variable, or a stack or concatenation of random variables, whose parameters depend on constants and
        shared variables alone; a shared one has the value that it holds at this call.
    d : int
        Number of coordinates.

    Returns
    -------
    ProductPrior

    Raises
    ------
    NotAProductPriorError
        With the reason, if the prior is anything else.
    ValueError
        If the location does not have d coordinates, or a parameter makes no distribution (sigma <= 0, an infinite
        interval).
    """
    blocks, start = [], 0
    for variable in components(location):
        if any(variable is block.variable for block in blocks):
            raise NotAProductPriorError("one random variable stands in two places, so its coordinates are equal")
        block = _read_block(variable, start, 1 if variable.ndim == 0 else _width(variable, location, d))
        blocks.append(block)
        start = block.stop
    if start != d:
        raise ValueError(
            f"location: expected {d} coordinates, one for each column, got {start}; set its shape or dims."
        )
    prior = ProductPrior(tuple(blocks))
    _check_proper(prior)
    return prior


def _check_proper(prior: ProductPrior) -> None:
    """Refuse parameters that make no distribution: its quartiles are not three finite numbers in order."""
    with np.errstate(all="ignore"):
        quartiles = np.array([prior.quantile(QUARTILE), prior.quantile(0.5), prior.quantile(1.0 - QUARTILE)])
        steps = np.diff(quartiles, axis=0)
    proper = np.isfinite(quartiles).all(axis=0) & (steps > 0).all(axis=0)
    for block in prior.blocks:
        if not proper[block.columns].all():
            names = ", ".join(block.record["parameters"])
            raise ValueError(
                "location: expected a prior whose quartiles are three finite numbers in order; the parameters "
                f"({names}) of {block.record['family']} do not make one. Check their signs, their order, and that they "
                "are finite."
            )


def components(location) -> Iterator:
    """Yield the random variables whose values make up a location, in order."""
    from pytensor.tensor.basic import Join, MakeVector
    from pytensor.tensor.elemwise import DimShuffle

    node = location.owner
    op = node.op if node is not None else None
    if isinstance(op, MakeVector):
        for part in node.inputs:
            yield from components(part)
    elif isinstance(op, Join):
        for part in node.inputs:
            yield from components(part)
    elif isinstance(op, DimShuffle) and location.ndim == 1 and node.inputs[0].ndim == 0:
        yield from components(node.inputs[0])
    elif type(op).__name__ == "ViewOp":  # pm.Deterministic
        yield from components(node.inputs[0])
    else:
        yield location


def _width(variable, location, d: int) -> int:
    """Return the length of a vector component: its static shape, or what is asked of the only one."""
    if variable.ndim > 1:
        raise NotAProductPriorError(f"the location has {variable.ndim} axes; an exact sampler needs one")
    if variable.type.shape[0] is not None:
        return variable.type.shape[0]
    if variable is location:
        return d
    from pymc.pytensorf import constant_fold

    return int(constant_fold([variable.shape[0]], raise_not_constant=False)[0].eval())


def _read_block(variable, start: int, width: int) -> Block:
    """Read one random variable."""
    node = variable.owner
    if not is_random(variable):
        raise NotAProductPriorError("the location is computed from other variables, not a random variable itself")
    family_name = type(node.op).__name__.removesuffix("RV")
    if variable.type.numpy_dtype.kind != "f":
        raise NotAProductPriorError(f"{family_name} is discrete; exact draws need a prior with a density")
    if node.op.ndim_supp:
        raise NotAProductPriorError(f"{family_name} is a multivariate prior, not a product of univariate ones")
    if any(getattr(node.op, "ndims_params", None) or ()):
        raise NotAProductPriorError(f"{family_name} takes vectors as parameters")
    parameters = _constant_parameters(node, family_name, width)
    family = closed_form(node.op)
    takes_parameters = True
    if family is None:
        try:
            family, takes_parameters = compiled_family(variable, parameters)
        except NotImplementedError:
            raise NotAProductPriorError(f"PyMC has no logcdf or no icdf for {family_name}") from None
    names = family.parameter_names or tuple(f"parameter_{i}" for i in range(len(parameters)))
    record = {
        "family": family.name,
        "parameters": {
            name: _json_number(value[0]) if (value == value[0]).all() else [_json_number(v) for v in value]
            for name, value in zip(names, parameters, strict=True)
        },
    }
    used = parameters if takes_parameters else ()
    return Block(family, used, start, start + width, variable, variable.ndim == 0, record)


def _constant_parameters(node, family_name: str, width: int) -> tuple[np.ndarray, ...]:
    """Return the parameters as arrays of shape (width,), or refuse those that depend on another variable."""
    from pytensor.tensor.random.op import RandomVariable
    from pytensor.tensor.type import TensorType

    if isinstance(node.op, RandomVariable):
        variables = node.op.dist_params(node)
    else:
        # Symbolic distributions: all tensor inputs but the size, an integer vector.
        variables = [v for v in node.inputs if isinstance(v.type, TensorType) and not _is_size(v)]
    parameters = []
    for variable in variables:
        value = constant_value(variable)
        if value is None:
            raise NotAProductPriorError(f"a parameter of {family_name} depends on another random variable")
        try:
            parameters.append(np.ascontiguousarray(np.broadcast_to(value.astype(np.float64), (width,))))
        except ValueError:
            raise ValueError(
                f"location: {family_name} has a parameter of shape {value.shape}, but {width} coordinates are expected."
            ) from None
    return tuple(parameters)


def _json_number(value: float) -> float | str:
    """Return a number that JSON can hold; an infinite parameter becomes the word inf or -inf."""
    return float(value) if np.isfinite(value) else str(float(value))


def _is_size(variable) -> bool:
    return variable.ndim == 1 and variable.type.dtype == "int64"
