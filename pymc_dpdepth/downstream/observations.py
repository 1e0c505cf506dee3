"""What a Release says of a population: its points, and the law of what was released given the rows' counts there.

Everything here is read from the public record of a Release.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pymc_dpdepth.depths.directional import IntegratedDual, IntegratedRankWeighted
from pymc_dpdepth.depths.halfspace import Halfspace
from pymc_dpdepth.depths.univariate import TUKEY_CODE, UnivariateDepth
from pymc_dpdepth.errors import ApproximateSamplingWarning, warn_user
from pymc_dpdepth.families import CLOSED_FORMS, Family
from pymc_dpdepth.privacy.noise import GAUSSIAN, LAPLACE
from pymc_dpdepth.record import Release
from pymc_dpdepth.samplers.exact import CONCENTRATED

__all__ = ["DepthValues", "Median", "assumptions", "read_release"]

STEP_DEPTHS = {depth.name: depth for depth in (Halfspace, IntegratedRankWeighted, IntegratedDual)}
FAMILIES = {family.name: family for family in CLOSED_FORMS.values()}


@dataclass(frozen=True)
class Median:
    """A location released by the exponential mechanism along the axes.

    Attributes
    ----------
    values : ndarray, shape (d,)
    columns : tuple of str
    n : int
    univariate : UnivariateDepth
        Of each column's counts.
    rate : float
        Exponent of one count in a column: the weight of a gap is exp(rate * count).
    coupled : bool
        Whether the least depth of the columns counts (halfspace, d > 1). Otherwise the columns are independent draws.
    priors : tuple of (Family, tuple of float)
        The mechanism's prior in each column.
    """

    values: np.ndarray
    columns: tuple[str, ...]
    n: int
    univariate: UnivariateDepth
    rate: float
    coupled: bool
    priors: tuple[tuple[Family, tuple[float, ...]], ...]

    def log_factors(self) -> np.ndarray:
        """Return rate * (count - largest count) for 0, ..., n rows below, the factor of the tilted counts."""
        below = np.arange(self.n + 1)
        counts = np.minimum(below, self.n - below) if self.univariate.code == TUKEY_CODE else below * (self.n - below)
        return self.rate * (counts - counts.max())


@dataclass(frozen=True)
class DepthValues:
    """Depths of points in one column, released with noise.

    Attributes
    ----------
    points, values : ndarray, shape (k,)
    columns : tuple of str
        Empty: the record of depth values names no columns.
    n : int
    univariate : UnivariateDepth
    noise : {"laplace", "gaussian"}
    scale, grid : float
        Scale and step of the noise, in units of the depth.
    bounds : tuple of float or None
        What the noisy values were brought into.
    """

    points: np.ndarray
    values: np.ndarray
    n: int
    univariate: UnivariateDepth
    noise: str
    scale: float
    grid: float
    bounds: tuple[float, float] | None
    columns: tuple[str, ...] = ()

    def log_factors(self) -> np.ndarray:
        """Return the log probability of each value for 0, ..., n rows below its point, shape (k, n + 1).

        A value at a bound stands for all noisy values beyond it.
        """
        from scipy import stats

        below = np.arange(self.n + 1)
        counts = np.minimum(below, self.n - below) if self.univariate.code == TUKEY_CODE else below * (self.n - below)
        depths = counts / self.univariate.denominator(self.n)
        law = (stats.norm if self.noise == GAUSSIAN else stats.laplace)(loc=depths, scale=self.scale)
        low, high = self.bounds or (-np.inf, np.inf)
        half = self.grid / 2
        factors = np.empty((len(self.values), self.n + 1))
        for i, value in enumerate(self.values):
            if value <= low:
                factors[i] = law.logcdf(low + half)
            elif value >= high:
                factors[i] = law.logsf(high - half)
            else:
                factors[i] = law.logpdf(value)
        return factors


def read_release(release: Any) -> Median | DepthValues:
    """Return what a Release says.

    Raises
    ------
    TypeError, ValueError
        If it is not a Release, holds nothing, or is of a kind whose law given the population is not worked out here.
    """
    if not isinstance(release, Release):
        raise TypeError(
            f"release: expected a Release (dpd.Release.from_json reads one), got {type(release).__name__}. A trace or "
            "a table is private and has no place here."
        )
    if release.refused:
        raise ValueError("release: its test refused, so it holds no value that could speak of the population.")
    if len(release.mechanisms) != 1:
        raise ValueError(
            f"release: expected one mechanism in a Release, got {len(release.mechanisms)}; make a Release of each."
        )
    (record,) = release.mechanisms
    if "statistic" in record:
        raise ValueError(
            "release: the law of propose-test-release is not worked out here; expected a private_median or a "
            "private_depth."
        )
    depth = record["depth"]
    if depth["name"] not in STEP_DEPTHS or depth.get("smoothing"):
        raise ValueError(
            f"release: expected a step depth ({', '.join(STEP_DEPTHS)}), got {depth['name']!r}"
            f"{' with smoothing' if depth.get('smoothing') else ''}; its law given the counts of rows is not worked "
            "out here."
        )
    if release.guarantee == "asymptotic":
        warn_user(
            "The release is a draw of a Markov chain, which only approaches the mechanism's law; the posterior takes "
            "that law as if it had been reached.",
            ApproximateSamplingWarning,
        )
    univariate = STEP_DEPTHS[depth["name"]]().univariate
    if record["n"] < 1:
        raise ValueError("release: it was made from no rows, so it says nothing of the population.")
    read = _read_depth_values if "noise_scale" in record else _read_median
    observed = read(release, record, univariate)
    for _, message in assumptions(release):
        if message:
            warn_user(message, UserWarning)
    return observed


def assumptions(release: Release) -> list[tuple[str, str]]:
    """Return what a posterior takes for granted of a release's rows, each with a warning where it may be untrue."""
    people, missing = release.max_rows_per_unit, release.mechanisms[0]["nonfinite"] == "prior"
    several = (
        f"The release allows for up to {people} rows of one person, which are not independent draws of the population. "
        "The posterior takes all rows for independent, as if each person had one; else its intervals are too narrow."
    )
    replaced = (
        'The release was made with nonfinite="prior": missing and infinite entries, whose number is private, were '
        "replaced by the prior's center, which pulls the median. The posterior takes for granted that no entry was "
        "missing; else its intervals are shifted."
    )
    return [("rows are independent; each person has one row", several if people > 1 else "")] + [
        ("no entry was missing", replaced)
    ] * missing


def _read_median(release: Release, record: dict, univariate: UnivariateDepth) -> Median:
    value = release.value
    d = value.size
    if d > 1 and not _along_axes(record["depth"]["directions"], d):
        raise ValueError(
            'release: expected directions along the axes where there are several columns (directions="axes" in '
            f"private_median), got {record['depth']['directions']['kind']!r}. Over other directions the normaliser of "
            "the mechanism has no sum over the rows' ranks."
        )
    coupled = d > 1 and record["depth"]["name"] == Halfspace.name and release.sampler != CONCENTRATED
    spent = record.get("realised_epsilon", record["epsilon"])
    # A mean over directions, or draws of a concentrated release, share epsilon among the columns.
    epsilon = spent if coupled else spent / d
    return Median(
        values=np.asarray(value.values, dtype=np.float64),
        columns=tuple(str(name) for name in value.coords["coordinate"].values),
        n=record["n"],
        univariate=univariate,
        rate=epsilon / (2 * univariate.sensitivity_count(record["n"])),
        coupled=coupled,
        priors=_read_priors(release.priors[record["name"]], d),
    )


def _along_axes(directions: dict, d: int) -> bool:
    """Whether a direction set is all axes, each once."""
    if directions["kind"] == "axes":
        return True
    rows = np.asarray(directions.get("rows") or np.zeros((0, d)))
    used = np.argmax(rows != 0, axis=1) if len(rows) else []
    return bool((np.count_nonzero(rows, axis=1) == 1).all()) and sorted(used) == list(range(d))


def _read_priors(blocks: list, d: int) -> tuple[tuple[Family, tuple[float, ...]], ...]:
    """Return family and parameters of each column's prior."""
    priors: list = [None] * d
    for block in blocks:
        family = FAMILIES.get(block["family"])
        if family is None:
            raise ValueError(
                f"release: the mechanism's prior has a {block['family']} part, which can't be rebuilt from the record; "
                f"expected one of {', '.join(sorted(FAMILIES))}."
            )
        width = block["stop"] - block["start"]
        parameters = [
            np.broadcast_to(np.asarray(block["parameters"][name], float), (width,)) for name in family.parameter_names
        ]
        for i in range(width):
            priors[block["start"] + i] = (family, tuple(float(parameter[i]) for parameter in parameters))
    if any(prior is None for prior in priors):
        raise ValueError(
            "release: its record holds no product prior of all columns, and the posterior needs the mechanism's prior."
        )
    return tuple(priors)


def _read_depth_values(release: Release, record: dict, univariate: UnivariateDepth) -> DepthValues:
    points = np.asarray(record.get("points", []), dtype=np.float64)
    if not points.size:
        raise ValueError("release: expected depths of chosen points (private_depth); the rows' own depths have none.")
    if points.shape[1] != 1:
        raise ValueError(
            f"release: expected depth values in one column, got {points.shape[1]}; the counts at points of several "
            "columns are not worked out here."
        )
    if record.get("isotonic_from") is not None:
        raise ValueError("release: depth values made decreasing along rays have no simple law; expected plain ones.")
    order = np.argsort(points[:, 0], kind="stable")
    return DepthValues(
        points=points[order, 0],
        values=np.asarray(release.value.values, dtype=np.float64)[order],
        n=record["n"],
        univariate=univariate,
        noise=GAUSSIAN if release.sampler == GAUSSIAN else LAPLACE,
        scale=record["noise_scale"],
        grid=record["noise_grid"],
        bounds=None if record.get("clamped") is None else tuple(record["clamped"]),
    )
