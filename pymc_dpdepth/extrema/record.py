"""The interval as a record that may be published, and its JSON."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from pymc_dpdepth.extrema.analysis import SEEDS, Settings, analyse, comparison, outcome, read_settings
from pymc_dpdepth.extrema.cross_validation import CANDIDATES, CrossValidation
from pymc_dpdepth.extrema.family import Family
from pymc_dpdepth.extrema.limits import largest_replicates
from pymc_dpdepth.extrema.noisy_sums import NoisySums
from pymc_dpdepth.extrema.record_fields import SCHEMA, SCHEMA_VERSION, check_outcome, fields_of, to_record
from pymc_dpdepth.extrema.registry import described, family_of
from pymc_dpdepth.extrema.released import ReleasedSums
from pymc_dpdepth.extrema.replay import check_replay
from pymc_dpdepth.frozen import freeze, read_only, thaw
from pymc_dpdepth.mechanism import NEIGHBORING
from pymc_dpdepth.randomness import random_bits
from pymc_dpdepth.record_files import check_schema, read_record, write_record

if TYPE_CHECKING:
    import pandas
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["ExtremaInterval"]

LAPLACE = "laplace"
KEEP: Any = object()  # None is a correction
# Fields that are known before the release, and that nothing computed from it changes.
PUBLIC = ("columns", "n", "epsilon", "guarantee", "neighboring", "max_rows_per_unit", "nonfinite", "simulation")


@dataclass(frozen=True, eq=False, repr=False)
class ExtremaInterval:
    """A private confidence interval for the largest or smallest of several parameters, and what it was computed from.

    It cannot be changed, and may be published as a whole: noisy sums, public settings, and what follows from them.

    Attributes
    ----------
    lower, upper : float or None
        Limits, in the units of the parameters; None where that side was not asked for.
    estimate : float
        Bias-reduced estimate of the extremum. Biased downwards (for a minimum upwards) where the parameters are well
        separated.
    selected : str
        The parameter with the extreme estimate.
    estimates : DataArray
        Private estimates over "parameter".
    bootstrap_estimates : ndarray, shape (replicates, k)
        Their bootstrap replicates; `bootstrap` has them with names.
    settings : Settings
        Of the post-processing: `extremum`, `ci_prob`, `sided`, `correction` and the others are also found here.
    released : NoisySums
        What was released and the interval is computed from; `statistics` has the sums.
    folds : NoisySums or None
        What was released to choose the correction by.
    cross_validation : CrossValidation or None
        The criterion of that choice.
    n : int
        Number of rows, public.
    columns : tuple of str
        Columns that were read.
    epsilon : float
        Privacy loss of a person, all releases together, `max_rows_per_unit` included.
    guarantee : {"exact", "float64"}
        What stands behind epsilon, as in `Release`.
    neighboring : str
        "replace_one": tables of the same number of rows that differ in one. "replace_one_within_group": in one whose
        group is public and stays as it is (`Bernoulli` and `Poisson` with by=).
    max_rows_per_unit : int
        Rows that one person may have.
    nonfinite : {"raise", "center"}
        What was done with missing entries.
    simulation : bool
        True where the noise was seeded; only False is a real release.
    family : dict
        Public description of the family.
    package_version : str
        Version of the package.

    Examples
    --------
    >>> import numpy as np, pymc_dpdepth as dpd
    >>> rows = np.sin(np.arange(6000.0)).reshape(2000, 3) + [0.0, 0.5, 2.0]
    >>> ci = dpd.extrema_interval(rows, family=dpd.extrema.Gaussian(bounds=(-4, 4)), epsilon=20.0)
    >>> ci.recompute(sided="two", ci_prob=0.9).upper > ci.lower  # free of cost
    True
    >>> list(ci.compare().index)
    ['naive', 'uncorrected', 'corrected', 'bonferroni']
    """

    family: dict[str, Any]
    columns: tuple[str, ...]
    settings: Settings
    released: NoisySums
    folds: NoisySums | None
    cross_validation: CrossValidation | None
    estimates: xarray.DataArray
    bootstrap_estimates: np.ndarray
    n: int
    epsilon: float
    guarantee: str
    max_rows_per_unit: int
    nonfinite: str
    simulation: bool
    neighboring: str = NEIGHBORING
    package_version: str = ""
    lower: float | None = field(init=False)
    upper: float | None = field(init=False)
    estimate: float = field(init=False)
    selected: str = field(init=False)

    def __post_init__(self):
        """Compute the outcome, and keep copies that cannot be changed."""
        limits, reduced, position = outcome(self.settings, self.estimates.values, self.bootstrap_estimates, self.n)
        derived = {
            "lower": limits.lower,
            "upper": limits.upper,
            "estimate": reduced,
            "selected": self.parameters[position],
            "package_version": self.package_version or version("pymc_dpdepth"),
        }
        self.__setstate__(self.__dict__ | derived)

    def __setstate__(self, state: dict[str, Any]):
        """Keep read-only copies, also in a copy or after unpickling: NumPy's flags do not travel."""
        replicates = np.array(state["bootstrap_estimates"], dtype=np.float64)
        replicates.flags.writeable = False
        kept = {"estimates": read_only(state["estimates"]), "bootstrap_estimates": replicates}
        self.__dict__.update(state | kept | {"family": freeze(state["family"])})

    @classmethod
    def from_sums(cls, family: Family, released: ReleasedSums) -> ExtremaInterval:
        """Return the interval of noisy sums: post-processing, free of cost.

        Parameters
        ----------
        family : Family
            That the sums were released for, mended where it failed; it describes itself as before.
        released : ReleasedSums
            As an `UnfinishedReleaseError` holds them.

        Raises
        ------
        ValueError
            If the family is another one, or not all of its statistics were released.
        """
        import xarray as xr

        if described(family) != thaw(released.family):
            raise ValueError(f"family: expected the one that {released!r} describes, got {family.name!r}.")
        settings = released.settings
        needed = [released.released] + ([released.folds] if settings.cross_validated else [])
        missing = {name for sums in needed for name in set(family.statistic_names) - set(sums.released if sums else ())}
        if missing:
            raise ValueError(f"released: expected sums of all statistics, {sorted(missing)} were not released.")
        if settings.bootstrap_seed is None:
            settings = settings.seeded(random_bits(None).index(SEEDS))
        found = analyse(family, released.released, released.folds, settings)
        names = list(released.parameters)
        if found.estimates.shape != (len(names),):
            raise ValueError(
                f"estimates: expected {len(names)} from the family, one for each of its parameters, got shape "
                f"{found.estimates.shape}."
            )
        interval = cls(
            settings=found.settings,
            cross_validation=found.cross_validation,
            estimates=xr.DataArray(found.estimates, dims=["parameter"], coords={"parameter": names}),
            bootstrap_estimates=found.replicates,
            **{name: getattr(released, name) for name in (*PUBLIC, "family", "released", "folds")},
        )
        object.__setattr__(interval, "_family", family)
        return interval

    @property
    def parameters(self) -> list[str]:
        """Names of the parameters of interest."""
        return [str(name) for name in self.estimates.coords["parameter"].values]

    @property
    def delta(self) -> float:
        """Laplace noise has none."""
        return 0.0

    @property
    def extremum(self) -> str:
        """Whether the interval is for the largest or the smallest parameter: "max" or "min"."""
        return self.settings.extremum

    @property
    def ci_prob(self) -> float:
        """Nominal probability that the interval holds the extremum."""
        return self.settings.ci_prob

    @property
    def sided(self) -> str:
        """Which limits were asked for: "lower", "upper", or "two", both at half of the error (Bonferroni)."""
        return self.settings.sided

    @property
    def correction(self) -> float | None:
        """The correction r that was used; None for the plain bootstrap."""
        return self.settings.correction

    @property
    def correction_choice(self) -> str:
        """How r was chosen: "fixed", "none" or "cv"."""
        return self.settings.correction_choice

    @property
    def replicates(self) -> int:
        """Number of bootstrap replicates."""
        return self.settings.replicates

    @property
    def bootstrap_seed(self) -> int:
        """The seed of the bootstrap, which hides nothing."""
        return self.settings.bootstrap_seed

    @property
    def statistics(self) -> dict[str, np.ndarray]:
        """The released noisy sums over all rows, by name, in the units of the values."""
        return dict(self.released.pool().sums)

    @property
    def epsilons(self) -> dict[str, float]:
        """Epsilon of each statistic, for one row, in the order of release."""
        releases = [self.released] + ([self.folds] if self.folds not in (None, self.released) else [])
        return {name: sum(each.released[name].noise.epsilon for each in releases) for name in self.released.released}

    @property
    def sensitivities(self) -> dict[str, float]:
        """L1 sensitivity of each statistic, in the units of its values."""
        return {name: one.sensitivity * one.grid for name, one in self.released.released.items()}

    @property
    def noise_scales(self) -> dict[str, float]:
        """Scale of each noise, in the units of the values; with folds there are as many noises in a sum."""
        return {name: one.noise.scale * one.grid for name, one in self.released.released.items()}

    @property
    def bootstrap(self) -> xarray.DataTree:
        """The replicates: "estimates" over (replicate, parameter), and "extremum", corrected, over replicate."""
        import xarray as xr

        signed = self.settings.sign * self.bootstrap_estimates
        corrected = largest_replicates(self.settings.sign * self.estimates.values, signed, self.n, self.correction)
        dataset = xr.Dataset(
            {
                "estimates": (("replicate", "parameter"), self.bootstrap_estimates),
                "extremum": ("replicate", self.settings.sign * corrected),
            },
            coords={"parameter": self.parameters, "replicate": np.arange(self.replicates)},
        )
        return xr.DataTree(dataset, name="bootstrap")

    def compare(self) -> pandas.DataFrame:
        """Return limits of other methods beside this one's, from the same replicates: free of cost.

        Returns
        -------
        DataFrame
            "naive" takes the selected parameter as if it had been chosen beforehand, "uncorrected" is the plain
            bootstrap of the extremum (its limit on the outer side is the mirrored quantile); neither is valid.
            "corrected" is this interval. "bonferroni" holds for all parameters at once; infinite where there are too
            few replicates for it.
        """
        import pandas as pd

        found = comparison(self.settings, self.estimates.values, self.bootstrap_estimates, self.n)
        table = pd.DataFrame(
            [(each.lower, each.upper) for each in found.values()], index=list(found), columns=["lower", "upper"]
        ).astype(float)
        return table if self.sided == "two" else table[[self.sided]]

    def plot(self, *, ax: Axes | None = None) -> Figure:
        """Draw the estimates with their single intervals, and the limits of each method: free of cost.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure, in no window.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from pymc_dpdepth.extrema.plot import plot_interval

        return plot_interval(self, ax=ax)

    def recompute(
        self,
        *,
        extremum: str = KEEP,
        sided: str = KEEP,
        ci_prob: float = KEEP,
        correction: float | str | None = KEEP,
        candidates: Any = KEEP,
        replicates: int = KEEP,
        bootstrap_seed: int = KEEP,
        family: Family | None = None,
    ) -> ExtremaInterval:
        """Return the interval with other settings, from the same noisy sums: free of cost.

        The probability holds for settings that were chosen before the results were seen.

        Parameters
        ----------
        extremum, sided, ci_prob, correction, candidates : optional
            As in `extrema_interval`. "cv" needs folds that were released.
        replicates, bootstrap_seed : optional
            For a new bootstrap, which is drawn whenever one of them is given. Without them the replicates are kept.
        family : Family, optional
            What draws a new bootstrap; needed if the record was read from a file and the family is not of the package.

        Returns
        -------
        ExtremaInterval
        """
        old = self.settings
        asked = "cv" if old.cross_validated else old.correction
        new = read_settings(
            _kept(extremum, old.extremum),
            _kept(ci_prob, old.ci_prob),
            _kept(sided, old.sided),
            _kept(correction, asked),
            _kept(replicates, old.replicates),
            _kept(candidates, old.candidates or CANDIDATES),
            _kept(bootstrap_seed, old.bootstrap_seed),
        )
        if new.cross_validated and self.folds is None:
            raise ValueError('correction: "cv" needs the noisy sums of folds, and none were released; pass a number.')
        same = (new.extremum, new.candidates, new.replicates, new.bootstrap_seed) == (
            old.extremum,
            old.candidates,
            old.replicates,
            old.bootstrap_seed,
        )
        if replicates is KEEP and bootstrap_seed is KEEP and (same or not new.cross_validated):
            chosen = self.cross_validation if new.cross_validated else None
            return self._with(new if chosen is None else new.chosen(chosen.choice), chosen)
        family = family or getattr(self, "_family", None) or family_of(self.family)
        if family is None or described(family) != thaw(self.family):
            raise ValueError(
                f"family: expected the family {self.family['name']!r} that made this record, to draw a new bootstrap; "
                "pass family=."
            )
        sums = {name: getattr(self, name) for name in (*PUBLIC, "family", "released", "folds")}
        return ExtremaInterval.from_sums(family, ReleasedSums(parameters=tuple(self.parameters), settings=new, **sums))

    def _with(self, settings: Settings, chosen: CrossValidation | None) -> ExtremaInterval:
        """Return the interval with other settings and the same replicates."""
        interval = ExtremaInterval(
            family=self.family,
            settings=settings,
            released=self.released,
            folds=self.folds,
            cross_validation=chosen,
            estimates=self.estimates,
            bootstrap_estimates=self.bootstrap_estimates,
            package_version=self.package_version,
            **{name: getattr(self, name) for name in PUBLIC},
        )
        if hasattr(self, "_family"):
            object.__setattr__(interval, "_family", self._family)
        return interval

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain Python objects, with the schema's name and version."""
        return to_record(self)

    def to_json(self, path: str | os.PathLike | None = None) -> str:
        """Return the record as JSON, and write it to a file if a path is given, at once or not at all."""
        return write_record(self.to_dict(), path)

    @classmethod
    def from_json(cls, path: str | os.PathLike, *, replay: bool = True) -> ExtremaInterval:
        """Read an interval from a file that `to_json` wrote, with the checks and the arguments of `from_dict`."""
        return cls.from_dict(read_record(path, "an ExtremaInterval"), replay=replay)

    @classmethod
    def from_dict(cls, record: dict[str, Any], *, replay: bool = True) -> ExtremaInterval:
        """Return the interval of a record made by `to_dict`; other fields, and contradictions, are a ValueError.

        Parameters
        ----------
        record : dict
        replay : bool
            Whether the bootstrap is drawn again from the record's sums and seed, to compare it. False believes the
            replicates and the criterion: for a record by a version of NumPy whose generators draw otherwise.

        Notes
        -----
        For a family of the package all that can be computed is computed again: sensitivities, scales, the cost,
        estimates, replicates, the criterion, limits. What no reader can check is what went before: that these are the
        noisy sums of a table, with noise of the law that the record names (`simulation`), and that `package_version`,
        `nonfinite` and `max_rows_per_unit` are true. Of a family of a user, whose code is not there, replicates,
        estimates, parameters and sensitivities are believed too: `recompute` with family= and bootstrap_seed= draws
        them again.
        """
        check_schema(record, SCHEMA, SCHEMA_VERSION, "ExtremaInterval.to_json")
        interval = cls(**fields_of(record))
        check_outcome(interval, record)
        family = family_of(record["family"])
        if replay and family is not None:
            check_replay(interval, family)
        return interval

    def __eq__(self, other: object) -> bool:
        """Compare the records."""
        return isinstance(other, ExtremaInterval) and self.to_dict() == other.to_dict()

    __hash__ = None

    def __repr__(self) -> str:
        """Show the interval and its cost."""
        which = "largest" if self.extremum == "max" else "smallest"
        low = "-inf" if self.lower is None else f"{self.lower:.4g}"
        high = "inf" if self.upper is None else f"{self.upper:.4g}"
        marks = ", simulation" if self.simulation else ""
        marks += "" if self.neighboring == NEIGHBORING else f", {self.neighboring}"
        bonferroni = ", Bonferroni" if self.sided == "two" else ""
        return (
            f"<ExtremaInterval of the {which} of {len(self.parameters)} parameters: [{low}, {high}] at "
            f"{100 * self.ci_prob:g}%{bonferroni}, selected {self.selected!r}: epsilon={self.epsilon:g}, "
            f"{self.guarantee} ({LAPLACE}{marks})>"
        )


def _kept(value: Any, old: Any) -> Any:
    return old if value is KEEP else value
