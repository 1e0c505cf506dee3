"""The Release: the only object that leaves the curator, and its JSON.

A Release is built from an allow-list of fields, each a public input or an output of a differentially private mechanism.
It holds no error bound, step count, run time or diagnostic, since those are functions of the raw rows.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from pymc_dpdepth.frozen import FrozenDict, freeze, read_only, thaw
from pymc_dpdepth.mechanism import NEIGHBORING
from pymc_dpdepth.record_fields import check_record
from pymc_dpdepth.record_files import check_schema, read_record, write_record
from pymc_dpdepth.record_rules import check_rules

if TYPE_CHECKING:
    import xarray

__all__ = ["GUARANTEES", "Release"]

SCHEMA = "pymc_dpdepth.release"
SCHEMA_VERSION = 1

GUARANTEES = {
    "exact": (
        "integers and outward-rounded bounds decide every draw, with the operating system's bits, and the output lies "
        "on a grid chosen without the data: epsilon holds to the bit"
    ),
    "float64": (
        "exact in real arithmetic and run in doubles, the output on a grid chosen without the data: epsilon is "
        "claimed for real arithmetic"
    ),
    "certified": (
        "a fixed number of tries, chosen without the data, with a proved bound on the probability that they miss: "
        "(epsilon, delta) holds together"
    ),
    "asymptotic": "one draw of a Markov chain that only approaches its target: epsilon is nominal, not proved",
}


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """One private draw and the public record of how it was made.

    It cannot be changed: its arrays are read-only copies, and so are its dicts and lists.

    Attributes
    ----------
    locations : dict of str to DataArray
        What each mechanism released: a location, over "coordinate", or depth values, over "point". A mechanism that
        refused (propose-test-release) has none.
    parameters : xarray.Dataset
        All free variables of the model in that draw.
    epsilon, delta : float
        Privacy loss, added up over the model's mechanisms and multiplied by `max_rows_per_unit`.
    rho : float or None
        Cost in zero-concentrated DP, where it was asked for or composed in it; a second statement of the same cost.
    guarantee : {"exact", "float64", "certified", "asymptotic"}
        What stands behind epsilon; `GUARANTEES` has the sentence.
    neighboring : str
        "replace_one": tables of the same number of rows that differ in one; "replace_one_within_group": the label of
        that row is public and the same in both.
    max_rows_per_unit : int
        Rows that one person may have.
    sampler : str
        What made the draw.
    simulation : bool or "unknown"
        True when the draw was seeded, "unknown" when someone else sampled the trace. Only False is a real release.
    mechanisms : tuple of dict
        Public settings of each mechanism.
    priors : dict of str to list
        For each mechanism the prior of its location, where it is a product of univariate families, else empty.
    package_version : str
        Version of the package.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_dpdepth as dpd
    >>> rows = np.arange(20.0).reshape(10, 2)
    >>> release = dpd.private_median(rows, epsilon=1.0, prior=pm.Normal.dist(0, 10, shape=2))
    >>> release.value.dims, release.epsilon, release.guarantee
    (('coordinate',), 1.0, 'exact')
    >>> dpd.Release.from_dict(release.to_dict()) == release
    True
    """

    locations: dict[str, xarray.DataArray]
    parameters: xarray.Dataset
    epsilon: float
    delta: float
    guarantee: str
    max_rows_per_unit: int
    sampler: str
    simulation: bool | str
    mechanisms: tuple[dict[str, Any], ...]
    priors: dict[str, list[dict[str, Any]]]
    neighboring: str = NEIGHBORING
    rho: float | None = None
    package_version: str = ""

    def __post_init__(self):
        """Refuse a guarantee without a meaning, fill in the version, and keep copies that cannot be changed."""
        if self.guarantee not in GUARANTEES:
            raise ValueError(f"guarantee: expected one of {sorted(GUARANTEES)}, got {self.guarantee!r}.")
        if not isinstance(self.simulation, bool) and self.simulation != "unknown":
            raise ValueError('simulation: expected True, False or "unknown".')
        for name in ("epsilon", "delta"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise ValueError(f"{name}: expected a finite number >= 0, got {value!r}.")
        if self.delta >= 1:
            raise ValueError(f"delta: expected a number below 1, got {self.delta!r}; 1 promises nothing.")
        if self.rho is not None and not (isinstance(self.rho, int | float) and 0 <= self.rho < math.inf):
            raise ValueError(f"rho: expected None or a finite number >= 0, got {self.rho!r}.")
        if not self.package_version:
            object.__setattr__(self, "package_version", version("pymc_dpdepth"))
        self.__setstate__(self.__dict__)

    def __setstate__(self, state: dict[str, Any]):
        """Keep read-only copies, also in a copy or after unpickling: NumPy's flags do not travel."""
        locations = FrozenDict({name: read_only(array) for name, array in state["locations"].items()})
        contents = {name: freeze(state[name]) for name in ("mechanisms", "priors")}
        self.__dict__.update(state | contents | {"locations": locations, "parameters": read_only(state["parameters"])})

    @property
    def refused(self) -> bool:
        """Whether the test of propose-test-release refused. That is an output: it is private, and paid for."""
        return any(mechanism.get("refused", False) for mechanism in self.mechanisms)

    @property
    def value(self) -> xarray.DataArray:
        """The location over "coordinate", or the depth values over "point", where there is one mechanism."""
        if not self.locations and self.refused:
            raise ValueError(
                "The test refused to release a value (release.refused is True); its cost is spent all the same. A "
                "larger threshold, chosen without the rows, would be a new release with a new cost."
            )
        if len(self.locations) > 1:
            raise ValueError(
                f"The release holds {len(self.locations)} locations; take one of release.locations: "
                f"{sorted(self.locations)}."
            )
        return next(iter(self.locations.values()))

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain Python objects, with the schema's name and version."""
        return {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "package_version": self.package_version,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "rho": self.rho,
            "guarantee": self.guarantee,
            "guarantee_meaning": GUARANTEES[self.guarantee],
            "neighboring": self.neighboring,
            "max_rows_per_unit": self.max_rows_per_unit,
            "sampler": self.sampler,
            "simulation": self.simulation,
            "locations": {name: _array_record(array) for name, array in self.locations.items()},
            "parameters": {name: _array_record(array) for name, array in self.parameters.data_vars.items()},
            "mechanisms": thaw(self.mechanisms),
            "priors": thaw(self.priors),
        }

    def to_json(self, path: str | os.PathLike | None = None) -> str:
        """Return the record as JSON, and write it to a file if a path is given.

        Parameters
        ----------
        path : path, optional
            File to write. It is replaced at once or not at all.

        Returns
        -------
        str
            The JSON text; numbers read back to the same doubles.
        """
        return write_record(self.to_dict(), path)

    @classmethod
    def from_json(cls, path: str | os.PathLike) -> Release:
        """Read a Release from a JSON file.

        Parameters
        ----------
        path : path
            File written by `to_json`.

        Returns
        -------
        Release

        Raises
        ------
        ValueError
            If the file is not a Release of a version that this package knows, or its fields contradict one another.
        """
        return cls.from_dict(read_record(path, "a Release"))

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Release:
        """Return the Release of a record made by `to_dict`; other fields, and contradictions, are a ValueError."""
        import xarray as xr

        check_schema(record, SCHEMA, SCHEMA_VERSION, "Release.to_json")
        fields = dict(record)
        for derived in ("schema", "schema_version", "guarantee_meaning"):
            fields.pop(derived, None)
        expected = set(cls.__dataclass_fields__)
        if set(fields) != expected:
            raise ValueError(
                f"The record's fields are not those of a Release: missing {sorted(expected - set(fields))}, unknown "
                f"{sorted(set(fields) - expected)}."
            )
        check_record(fields)
        check_rules(fields)
        fields["locations"] = {name: _array_of(name, entry) for name, entry in fields["locations"].items()}
        fields["parameters"] = xr.Dataset(
            {name: _array_of(name, entry) for name, entry in fields["parameters"].items()}
        )
        fields["mechanisms"] = tuple(fields["mechanisms"])
        return cls(**fields)

    def __eq__(self, other: object) -> bool:
        """Compare the records."""
        return isinstance(other, Release) and self.to_dict() == other.to_dict()

    __hash__ = None

    def __repr__(self) -> str:
        """Show what was released and at what cost."""
        marks = {True: ", simulation", "unknown": ", simulation unknown"}.get(self.simulation, "")
        columns = ", ".join(
            ", ".join(str(name) for name in array.coords["coordinate"].values[:6])
            if "coordinate" in array.dims
            else f"{array.size} depth values"
            for array in self.locations.values()
        )
        cost = f"epsilon={self.epsilon:g}, delta={self.delta:g}" + (f", rho={self.rho:g}" if self.rho else "")
        columns = f"[{columns}]" if self.locations or not self.refused else "nothing, the test refused"
        return f"<Release of {columns}: {cost}, {self.guarantee} ({self.sampler}{marks})>"


def _array_record(array: xarray.DataArray) -> dict[str, Any]:
    """Return an array's dims, coords and values as lists."""
    return {
        "dims": [str(dim) for dim in array.dims],
        "coords": {str(dim): array.coords[dim].values.tolist() for dim in array.dims if dim in array.coords},
        "values": np.asarray(array.values).tolist(),
    }


def _array_of(name: str, entry: dict[str, Any]) -> xarray.DataArray:
    import xarray as xr

    if not isinstance(entry, dict) or set(entry) != {"dims", "coords", "values"}:
        raise ValueError(f"{name}: expected an array's dims, coords and values.")
    try:
        values = np.asarray(entry["values"])
    except ValueError:  # lists of different lengths
        values = np.asarray(None)
    if values.dtype.kind not in "iuf" or not np.isfinite(values).all():
        raise ValueError(f"{name}: expected finite numbers of one shape.")
    lengths = dict(zip(entry["dims"], values.shape, strict=False))
    labels = {dim: len(coord) for dim, coord in entry["coords"].items()}
    if len(lengths) != values.ndim or len(entry["dims"]) != values.ndim or labels.items() - lengths.items():
        raise ValueError(
            f"{name}: expected {values.ndim} dimensions of different names, and labels of the lengths {values.shape}."
        )
    return xr.DataArray(values, dims=entry["dims"], coords=entry["coords"], name=name)
