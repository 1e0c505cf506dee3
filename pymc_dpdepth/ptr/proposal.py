"""What is public about one propose-test-release, and the checks of what a user passes in."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pymc_dpdepth.depths.base import as_points, positive_number
from pymc_dpdepth.depths.projection import Projection
from pymc_dpdepth.mechanism import MOST_ROWS_PER_UNIT, positive_integer
from pymc_dpdepth.privacy.noise import LAPLACE, RealNoise, real_gaussian_noise, real_laplace_noise
from pymc_dpdepth.privacy.rounding import float_below
from pymc_dpdepth.ptr.ball_median import Ball
from pymc_dpdepth.ptr.outlyingness import NO_CAP
from pymc_dpdepth.ptr.stability_test import NOISES, Budget, StabilityTest, read_budget, stability_test, unit_cost
from pymc_dpdepth.tables import Table, read_table

__all__ = [
    "Proposal",
    "Settings",
    "finite_rows",
    "read_ball",
    "read_cap",
    "read_points",
    "read_projection",
    "read_rows",
    "read_settings",
    "read_vector",
]

#: Cap of the outlyingness where the median is sought, in units of the scale.
MEDIAN_CAP = 2.0
#: The grids of noise for thresholds in this range are doubles.
THRESHOLDS = (1e-100, 1e100)
NAMES_SHOWN = 30  # names that an error lists before it stops
ROOT_ROOM = 1e-15  # a root and a product are wrong by less


@dataclass(frozen=True, eq=False)
class Proposal:
    """What is public about one propose-test-release.

    Attributes
    ----------
    name : str
        Of what is released.
    columns : tuple of str
    n : int
    budget : Budget
    test : StabilityTest
    values_noise : RealNoise or None
        None where the exponential mechanism releases.
    threshold : float
    max_rows_per_unit : int
    record : dict
        Further public settings.
    """

    name: str
    columns: tuple[str, ...]
    n: int
    budget: Budget
    test: StabilityTest
    values_noise: RealNoise | None
    threshold: float
    max_rows_per_unit: int
    record: dict[str, Any]

    @property
    def beta(self) -> float:
        """The factor epsilon_r / (2 threshold) of the exponential mechanism, rounded downwards."""
        return float_below(Fraction(self.budget.release_epsilon) / (2 * Fraction(self.threshold)))

    def describe(self, refused: bool) -> dict[str, Any]:
        """Return the public record of the mechanism and its answer."""
        noise = self.values_noise
        scales = {"noise_scale": noise.scale, "noise_grid": noise.output_grid} if noise else {}
        return (
            {
                "name": self.name,
                "n": self.n,
                "epsilon": self.budget.epsilon,
                "delta": self.budget.delta,
                "max_rows_per_unit": self.max_rows_per_unit,
                "sensitivity": self.threshold,
                "threshold": self.threshold,
                "release_epsilon": self.budget.release_epsilon,
                "release_delta": noise.integers.delta if noise else 0.0,
                "refused": refused,
            }
            | self.test.describe()
            | scales
            | self.record
        )


@dataclass(frozen=True)
class Settings:
    """Checked settings that do not depend on the shape of the table."""

    budget: Budget
    threshold: float
    noise: str
    max_rows_per_unit: int

    def proposal(
        self, name: str, columns: tuple[str, ...], n: int, size: int, record: dict, largest: float = 0.0
    ) -> Proposal:
        """Return the proposal; with a size, that of so many values with noise.

        With Gaussian noise, test and values cost half of delta each; the false pass, which is counted apart from them
        (docs/propose_test_release.md), may have all of it.
        """
        budget = self.budget
        share = budget.delta / 2 if size else budget.delta
        test = stability_test(self.noise, budget.test_epsilon, share, budget.delta)
        values_noise = None
        if size and self.noise == LAPLACE:
            total = size * Fraction(self.threshold)
            values_noise = real_laplace_noise(total, size, budget.release_epsilon, largest=largest)
        elif size:
            total = float(np.nextafter(np.sqrt(size) * self.threshold * (1 + ROOT_ROOM), np.inf))
            values_noise = real_gaussian_noise(total, size, budget.release_epsilon, share, largest=largest)
        return Proposal(
            name, tuple(columns), n, budget, test, values_noise, self.threshold, self.max_rows_per_unit, record
        )


def read_settings(epsilon, delta, threshold, noise, max_rows_per_unit) -> Settings:
    """Return the checked settings of budget, threshold and noise."""
    if noise not in NOISES:
        got = repr(noise) if isinstance(noise, str) else type(noise).__name__
        raise ValueError(f"noise: expected one of {NOISES}, got {got}.")
    rows_per_unit = positive_integer(max_rows_per_unit, "max_rows_per_unit")
    if rows_per_unit > MOST_ROWS_PER_UNIT:
        raise ValueError("max_rows_per_unit must lie between 1 and 2^53; got more. No table has as many rows.")
    budget = read_budget(epsilon, delta)
    unit_cost(budget, rows_per_unit)
    threshold = positive_number(threshold, "threshold")
    if not THRESHOLDS[0] <= threshold <= THRESHOLDS[1]:
        raise ValueError(
            f"threshold: expected a number between {THRESHOLDS[0]:g} and {THRESHOLDS[1]:g}, got {threshold:g}; "
            "change the units of the rows."
        )
    return Settings(budget, threshold, noise, rows_per_unit)


def read_rows(X: Any, columns: Sequence | None) -> Table:
    """Return the table of at least one row."""
    table = X if isinstance(X, Table) else read_table(X, columns)
    if not len(table.rows):
        raise ValueError("X: expected at least one row, got none: there is nothing to release.")
    return table


def finite_rows(table: Table, nonfinite: str, center: np.ndarray) -> np.ndarray:
    """Return the rows, non-finite entries refused or set to the center; a replacement looks at one entry alone."""
    if nonfinite not in ("raise", "center"):
        raise ValueError(f'nonfinite: expected "raise" or "center", got {nonfinite!r}.')
    finite = np.isfinite(table.rows)
    if finite.all():
        return table.rows
    if nonfinite == "raise":
        bad = [table.columns[j] for j in np.flatnonzero(~finite.all(axis=0))]
        raise ValueError(
            f"Expected finite numbers; missing or infinite entries in {', '.join(map(repr, bad[:NAMES_SHOWN]))}. Use "
            'nonfinite="center" to put the public center in their place, or fill them by a rule that looks at one row '
            "alone; dropping rows makes their number private, which the guarantee does not cover."
        )
    return np.ascontiguousarray(np.where(finite, table.rows, center))


def read_projection(depth: Any, directions: Any) -> Projection:
    """Return the projection depth, with other directions if some are given."""
    if isinstance(depth, str) and depth == Projection.name:
        depth = Projection()
    if not isinstance(depth, Projection):
        got = repr(depth) if isinstance(depth, str) else type(depth).__name__
        raise TypeError(
            f'depth: expected Projection("mad") or Projection("iqr"), got {got}. Other depths have a small global '
            "sensitivity and need no test: use private_median or private_depth."
        )
    return depth if directions is None else depth.with_directions(directions)


def read_vector(value: Any, d: int, name: str) -> np.ndarray:
    """Return d finite numbers, from as many or from one."""
    if any(isinstance(one, bool | np.bool_) for one in np.ravel(np.asarray(value, dtype=object))):
        raise TypeError(f"{name}: expected a number, or {d} numbers, one for each column, got True or False.")
    try:
        vector = np.broadcast_to(np.asarray(value, dtype=np.float64), (d,)).copy()
    except (TypeError, ValueError):
        raise ValueError(f"{name}: expected a number, or {d} numbers, one for each column.") from None
    if not np.isfinite(vector).all():
        raise ValueError(f"{name}: expected finite numbers.")
    return vector


def read_ball(center: Any, radius: Any, d: int, needed: bool) -> Ball:
    """Return the ball; without a radius, where none is needed, one of radius 1 for the units alone."""
    if radius is None and needed:
        raise TypeError(
            "radius: expected how far from center the median may lie, chosen without the rows, such as radius=5.0; got "
            "None."
        )
    radii = read_vector(1.0 if radius is None else radius, d, "radius")
    if not (radii > 0).all():
        raise ValueError("radius: expected numbers above 0.")
    return Ball(read_vector(center, d, "center"), radii)


def read_points(points: Any, d: int) -> np.ndarray:
    """Return points of shape (p, d), p >= 1, where there are no columns whose names a table could have."""
    if isinstance(points, str | os.PathLike) or hasattr(points, "columns"):
        raise TypeError(
            f"points: expected an array of shape (p, {d}), in the order of the columns, got {type(points).__name__}; "
            "there is no table here whose names tell the order. Pass its numbers, such as points.to_numpy()."
        )
    array = as_points(points, d)
    if not len(array):
        raise ValueError("points: expected at least one point, got none.")
    return array


def read_cap(cap: Any, points: Any) -> float:
    """Return the cap as a number."""
    if isinstance(cap, str):
        if cap != "auto":
            raise ValueError(f'cap: expected a number, None or "auto", got {cap!r}.')
        return MEDIAN_CAP if points is None else NO_CAP
    if cap is None:
        return NO_CAP
    cap = positive_number(cap, "cap")
    if cap > NO_CAP:
        raise ValueError(f"cap: expected at most 2^20, which is as good as no cap (None); got {cap:g}.")
    return cap
