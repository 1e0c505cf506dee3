"""What a comparison of priors found, as a Dataset and a table. Made of synthetic rows alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["PriorGrid", "summarise"]

QUANTILES = (0.5, 0.9)
NOISE = 2.0  # standard errors within which two priors are not told apart
FOOTNOTES = (
    "*: as good as the best, up to two standard errors of the paired difference.",
    "distance: of a draw from the target, in interquartile ranges of the population; rms with its standard error.",
    "outside: share of draws outside the range of their rows, which the mechanism has missed.",
    "width, below: interquartile range of the prior over that of the population; its mass below the target.",
    "Made of synthetic rows, so no budget was spent. If population or priors came from private rows, this is private.",
)


@dataclass(frozen=True, repr=False, eq=False)
class PriorGrid:
    """Errors of the same private median under several priors, on synthetic rows.

    Attributes
    ----------
    dataset : xarray.Dataset
        Over "prior": `distance_rms`, its `standard_error`, `distance_quantile` (prior, quantile), `rmse` (prior,
        coordinate) in the columns' units, `outside`, `prior_width` and `prior_below` (prior, coordinate), `as_good`
        (not worse than the best by more than two standard errors of the paired difference), and `error` (prior,
        replicate, draw, coordinate). Besides `target` and `spread` (coordinate), and `nonprivate_rms`, the distance of
        the rows' own coordinatewise median.
    """

    dataset: Any

    @property
    def best(self) -> str:
        """The prior with the smallest root mean square distance; others may be `as_good`."""
        return str(self.dataset["prior"].values[int(np.argmin(self.dataset["distance_rms"].values))])

    def summary(self) -> str:
        """Return the comparison as plain text, the best prior first."""
        rows = [_HEADER, *self._rows()]
        widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADER))]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
            for row in rows
        ]
        return "\n".join([self._title(), *(line.rstrip() for line in lines), self._reference(), "", *FOOTNOTES])

    def _title(self) -> str:
        sizes = self.dataset.sizes
        return (
            f"{sizes['prior']} priors, {sizes['replicate']} synthetic tables of {self.dataset.attrs['n']} rows, "
            f"{sizes['draw']} exact draws of each"
        )

    def _reference(self) -> str:
        return f"distance of the rows' own coordinatewise median: {float(self.dataset['nonprivate_rms']):.3g} (rms)"

    def _rows(self) -> list[tuple[str, ...]]:
        rows = []
        for i in np.argsort(self.dataset["distance_rms"].values):
            one = self.dataset.isel(prior=int(i))
            rms, error = float(one["distance_rms"]), float(one["standard_error"])
            quantiles = [f"{float(q):.3g}" for q in one["distance_quantile"]]
            mark = " *" if bool(one["as_good"]) else ""
            width, below = one["prior_width"].values, one["prior_below"].values
            rows.append(
                (
                    str(one["prior"].item()) + mark,
                    f"{rms:.3g} ± {error:.2g}",
                    *quantiles,
                    f"{100 * float(one['outside']):.3g}%",
                    _span(width, "{:.2g}"),
                    _span(below, "{:.2f}"),
                )
            )
        return rows

    def __str__(self) -> str:
        """Show the summary."""
        return self.summary()

    def __repr__(self) -> str:
        """Name the priors and the best one."""
        return f"<PriorGrid of {self._title()}; best {self.best!r}>"

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        """Show the summary as a table with text below."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        yield Text(self._title())
        table = Table(box=SIMPLE_HEAD)
        for column, name in enumerate(_HEADER):
            table.add_column(name, justify="right" if column else "left")
        for row in self._rows():
            table.add_row(*(Text(cell) for cell in row))
        yield table
        yield Text("\n".join([self._reference(), "", *FOOTNOTES]))


_HEADER = ("prior", "distance", *(f"{q:.0%}" for q in QUANTILES), "outside", "width", "below")


def _span(values: np.ndarray, form: str) -> str:
    """Return the numbers of all coordinates as one, or as their range."""
    low, high = form.format(values.min()), form.format(values.max())
    return low if low == high else f"{low} to {high}"


def summarise(found: dict[str, Any], target: np.ndarray, n: int) -> PriorGrid:
    """Return the comparison of draws under several priors.

    Parameters
    ----------
    found : dict of str to Drawn
    target : ndarray, shape (k,)
    n : int
    """
    import xarray as xr

    first = next(iter(found.values()))
    spread = first.quartiles[1] - first.quartiles[0]
    spread = np.where(spread > 0, spread, 1.0)
    errors = np.stack([drawn.theta - target for drawn in found.values()])
    squares = ((errors / spread) ** 2).sum(axis=3)  # (prior, replicate, draw)
    of_tables = squares.mean(axis=2)
    rms = np.sqrt(of_tables.mean(axis=1))
    replicates = of_tables.shape[1]
    # The tables are independent, the draws of one table are not. By the delta method an error of the mean square is
    # twice the root times the error of the root.
    with np.errstate(divide="ignore", invalid="ignore"):
        standard_error = of_tables.std(axis=1, ddof=1) / np.sqrt(replicates) / (2.0 * rms)
    paired = of_tables - of_tables[rms.argmin()]
    noise = NOISE * paired.std(axis=1, ddof=1) / np.sqrt(replicates)
    nonprivate = (((first.medians - target) / spread) ** 2).sum(axis=1)
    priors = [drawn.prior for drawn in found.values()]
    widths = [np.subtract(*np.quantile(prior, [0.75, 0.25], axis=0)) / spread for prior in priors]
    below = [(prior < target).mean(axis=0) for prior in priors]
    dataset = xr.Dataset(
        {
            "distance_rms": ("prior", rms),
            "standard_error": ("prior", standard_error),
            "distance_quantile": (("prior", "quantile"), np.quantile(np.sqrt(squares), QUANTILES, axis=(1, 2)).T),
            "rmse": (("prior", "coordinate"), np.sqrt((errors**2).mean(axis=(1, 2)))),
            "as_good": ("prior", paired.mean(axis=1) <= noise),
            "outside": ("prior", [float(drawn.outside.mean()) for drawn in found.values()]),
            "prior_width": (("prior", "coordinate"), np.stack(widths)),
            "prior_below": (("prior", "coordinate"), np.stack(below)),
            "error": (("prior", "replicate", "draw", "coordinate"), errors),
            "target": ("coordinate", target),
            "spread": ("coordinate", spread),
            "nonprivate_rms": float(np.sqrt(nonprivate.mean())),
        },
        coords={"prior": list(found), "coordinate": first.coordinates, "quantile": list(QUANTILES)},
        attrs={"n": n, "contents": "synthetic rows alone"},
    )
    return PriorGrid(dataset)
