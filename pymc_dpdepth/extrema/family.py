"""What a family of distributions must offer for confidence intervals of the extremum of its parameters.

The interval works from noisy sums alone. A family says which sums, how far a row moves them, how estimates follow from
them, and how they would vary if the estimated model were true. docs/extrema_family.md works through an example.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pymc_dpdepth.extrema.statistic import Statistic
from pymc_dpdepth.mechanism import NEIGHBORING

__all__ = ["Family", "Sums"]

# Noisy sums in the units of the values, shape (..., size), by the name of the statistic.
Sums = Mapping[str, np.ndarray]


class Family:
    """A family of distributions with k parameters of interest; subclass it to add one.

    A subclass sets `name` and `statistic_names` and overrides `statistics`, `entries`, `estimates`, `model` and
    `simulate`. Its objects hold public settings only.

    Attributes
    ----------
    name : str
        What the record calls the family.
    statistic_names : tuple of str
        Names of all statistics, in the order of their release: the keys of the split of epsilon.
    guarantee : {"exact", "float64"}
        "exact" where a row's part of `counts` is known to be a function of that row alone, bit for bit, whatever rows
        stand beside it (elementwise arithmetic is, a matrix product of doubles is not, unless they hold integers). It
        cannot be checked, so the record of a family of a user says "float64" whatever stands here.
    neighboring : {"replace_one", "replace_one_within_group"}
        Between which tables the sensitivities hold: those that differ in any one row, or in a row whose group is public
        and stays as it is.

    Notes
    -----
    A row's entries are rounded to a public grid and cut off at public bounds, and then added up as integers, so the
    sensitivity of a sum is that of the integers and holds exactly, if each row's entries depend on that row alone.
    Discrete Laplace noise of scale sensitivity / epsilon is added to each statistic. Replacing one row costs the sum of
    the statistics' epsilons.

    Types, shapes and the range of each sum are checked before anything is charged. That a row's entries look at no
    other row, that an own `counts` is a sum over rows, and that an own `sensitivity=` was proved cannot be checked:
    where one of them is wrong, the release is not private, whatever epsilon says.
    """

    name: str = ""
    statistic_names: tuple[str, ...] = ()
    guarantee: str = "float64"
    neighboring: str = NEIGHBORING

    def columns(self) -> Sequence[str | int] | None:
        """Return the columns that the family reads, in the order in which `entries` gets them; None for all."""
        return None

    def parameters(self, columns: Sequence[str]) -> list[str]:
        """Return the names of the k parameters of interest, given the names of the columns; check their number."""
        return list(columns)

    def centers(self, columns: Sequence[str]) -> np.ndarray:
        """Return a public number for each column that stands in for a missing entry with nonfinite="center"."""
        raise ValueError(
            'nonfinite="center" needs a public center of each column, and this family gives none. Use '
            'nonfinite="raise", or give the family a method centers(columns).'
        )

    def check(self, pieces: Iterable[np.ndarray], columns: Sequence[str]) -> None:
        """Refuse rows that do not fit the public settings (codes that are no 0 or 1, sizes of groups that differ).

        Called once, before anything is charged, with all rows in pieces of shape (m, d), without missing entries: a
        file is not held as a whole. What is refused depends on the rows, so the error is for the curator; its message
        holds names of columns and no entry of a row.
        """

    def statistics(self, n: int, columns: Sequence[str], released: Sums) -> tuple[Statistic, ...]:
        """Return the statistics that are released next.

        Parameters
        ----------
        n : int
            Number of rows.
        columns : sequence of str
            Names of the columns.
        released : mapping of str to ndarray
            Noisy sums that are there already: empty at first. Later statistics may depend on them, as on any public
            number.

        Returns
        -------
        tuple of Statistic
            Empty when all are released.
        """
        raise NotImplementedError

    def later_sensitivities(self, n: int, columns: Sequence[str]) -> Mapping[str, int]:
        """Return the largest sensitivity that each statistic of a later stage can have.

        Needed of a family whose `statistics` come in stages: the noise of all is planned before anything is charged.

        Parameters
        ----------
        n, columns
            As in `statistics`.

        Returns
        -------
        mapping of str to int
            By the names of all statistics that do not come with the first ones: in units of the grid, an upper bound
            whatever is released before. Up to there, 2^56 epsilon has room for noise in 64 bits.
        """
        return {}

    def entries(self, rows: np.ndarray, name: str, released: Sums) -> np.ndarray:
        """Return what each row adds to a statistic.

        Parameters
        ----------
        rows : ndarray of float64, shape (m, d)
            Some of the private rows, without missing entries. Clip them to public bounds here.
        name : str
            Which statistic.
        released : mapping of str to ndarray
            As in `statistics`.

        Returns
        -------
        ndarray, shape (m, size)
            Real numbers, no NaN. Each row of it may depend on the same row of `rows` alone: **privacy rests on it**.
        """
        raise NotImplementedError

    def counts(self, rows: np.ndarray, statistic: Statistic, released: Sums) -> np.ndarray:
        """Return the sum of the rows' entries in units of the grid; override it for speed alone.

        Parameters
        ----------
        rows, released
            As in `entries`.
        statistic : Statistic
            Which statistic, with its grid and its bounds.

        Returns
        -------
        ndarray of int64, shape (size,)
            Between m `lower` and m `upper` for m rows, which is checked. That it is a sum over the rows, with entries
            between `lower` and `upper` and each of one row alone, cannot be: **privacy rests on it**.
        """
        entries = statistic.counts(self.entries(rows, statistic.name, released))
        if len(entries) != len(rows):
            raise ValueError(
                f"{statistic.name}: expected entries of each of {len(rows)} rows from the family, got {len(entries)}. "
                "The noise covers one row of entries for each row of data."
            )
        return entries.sum(axis=0)

    def estimates(self, sums: Sums, n: int, deviations: Mapping[str, float]) -> np.ndarray:
        """Return the estimates of the parameters of interest.

        Parameters
        ----------
        sums : mapping of str to ndarray, shape (..., size)
            Noisy sums; leading dimensions are replicates, which must be computed at once. In replicates, those that
            `simulate` gives.
        n : int
            Number of rows.
        deviations : mapping of str to float
            Public: the standard deviation of the noise in each entry of a sum, in its units. Floors may depend on it.

        Returns
        -------
        ndarray, shape (..., k)
        """
        raise NotImplementedError

    def model(self, sums: Sums, n: int, deviations: Mapping[str, float]) -> dict[str, np.ndarray]:
        """Return all parameters of the estimated model, those of interest and others, as `simulate` needs them."""
        raise NotImplementedError

    def simulate(
        self, model: Mapping[str, np.ndarray], n: int, replicates: int, generator: Any
    ) -> dict[str, np.ndarray]:
        """Return sums, without noise, as they would come out in new tables of n rows of the estimated model.

        Parameters
        ----------
        model : mapping of str to ndarray
            What `model` returned.
        n : int
            Rows of a new table.
        replicates : int
            Number R of new tables.
        generator : NumPy Generator
            For this post-processing; it never touches the noise of the release.

        Returns
        -------
        dict of str to ndarray, shape (R, size)
            For each statistic that `estimates` reads. Draw from the law of the sum itself where it is known: no rows
            need to be simulated.
        """
        raise NotImplementedError

    def describe(self) -> dict[str, Any]:
        """Return the public settings as plain Python objects, for the record.

        Under "name" the name. A family of the package has all arguments that made it beside it, so that a record read
        from a file can make it again.
        """
        return {"name": self.name}
