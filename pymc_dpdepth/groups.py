r"""Groups of rows with a location each: labels and coords, a Potential per group, and what one joint draw costs.

With groups g = 1, ..., G of n_g rows, public labels and any prior over the locations, the joint density is

    p(theta) ∝ prior(theta_1, ..., theta_G) * prod_g exp(beta_g * D(theta_g; X_g)),
    beta_g = epsilon / (2 * sensitivity(n_g)).

Replacing one row within its group changes one factor alone, by at most e^(epsilon/2) either way, and the normalising
constant by as much: the joint draw is epsilon-DP, where several mechanisms on the same rows would add up. It is not
parallel composition, since the prior ties the draws to each other; `docs/groups.md` has the proof.
"""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pymc_dpdepth.densities import check_drawable
from pymc_dpdepth.depths.custom import CustomObjective
from pymc_dpdepth.depths.registry import as_depth
from pymc_dpdepth.location_prior import NAMES_SHOWN, PRIOR_DRAWS, PRIOR_SEED, QUARTILES, check_labels
from pymc_dpdepth.location_rows import row_variable
from pymc_dpdepth.mechanism import ModelMechanism, potential, set_up
from pymc_dpdepth.priors import is_flat
from pymc_dpdepth.tables import Table

__all__ = ["Group", "Grouping", "add_groups", "calls", "check_same_rows", "costs_of_calls"]

COORDINATE = "coordinate"  # the name of the other dim of what is released


@dataclass(frozen=True, eq=False)
class Grouping:
    """The groups of one call of `exponential_mechanism`; two calls never share one, whatever they are called.

    Attributes
    ----------
    dim : str
        The location's first dim.
    labels : tuple of str
        The G labels, in the order of the coords.
    """

    dim: str
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Group:
    """One group of a grouping.

    Attributes
    ----------
    grouping : Grouping
    index : int
        Position of its label.
    """

    grouping: Grouping
    index: int

    @property
    def label(self) -> str:
        """The group's label."""
        return self.grouping.labels[self.index]

    @property
    def suffix(self) -> str:
        """What stands behind the call's name in the name of the group's Potential."""
        return f"[{self.label}]"

    def describe(self) -> dict[str, str]:
        """Return the public record."""
        return {"dim": self.grouping.dim, "label": self.label}


def calls(mechanisms: Sequence[ModelMechanism]) -> list[list[ModelMechanism]]:
    """Return the mechanisms that one call made together, the groups of one call being one list, in order."""
    found: dict[Any, list[ModelMechanism]] = {}
    for mechanism in mechanisms:
        group = mechanism.settings.group
        # A model may stand in another one under two names: then its groups are read, and paid for, twice.
        key = mechanism.settings.name if group is None else (mechanism.settings.call, id(group.grouping))
        found.setdefault(key, []).append(mechanism)
    return list(found.values())


def add_groups(name: str, location: Any, table: Table, groups: Any, model: Any, options: dict[str, Any]) -> dict:
    """Add a Potential for each group to the model on the context stack; arguments as for `exponential_mechanism`.

    Nothing is added where an argument is refused.

    Returns
    -------
    dict of str to TensorVariable
        Label to Potential.
    """
    import pymc as pm

    d = len(table.columns)
    grouping, labels = _grouping(name, location, d, model)
    codes = _codes(groups, labels, grouping.dim, len(table.rows))
    by_prior = _standardized_by_prior(d, options)
    units = _units(location, len(labels), d) if by_prior or options["nonfinite"] == "prior" else None
    parts = []
    for index in range(len(labels)):
        group = Group(grouping, index)
        chosen = {"group": group}
        if units is not None:
            chosen["fill"] = units[0][index]
            if by_prior:
                chosen["standardize"] = (units[0][index], units[1][index])
        rows = Table(np.ascontiguousarray(table.rows[codes == index]), table.columns)
        part = location[index]
        settings, _, clean = set_up(name + group.suffix, part, rows, **(options | chosen))
        parts.append((group.label, settings, part, clean))
    if location.ndim > 1:
        check_labels(location, model, table.columns)
    taken = [settings.name for _, settings, _, _ in parts if model.name_for(settings.name) in model.named_vars]
    if taken:
        raise ValueError(f"name: the model has variables {taken} already; choose another name than {name!r}.")
    with model:
        return {
            label: pm.Potential(settings.name, potential(settings, part, rows)) for label, settings, part, rows in parts
        }


def _grouping(name: str, location: Any, d: int, model: Any) -> tuple[Grouping, list[Any]]:
    """Return the groups that the location's first dim names, and their labels as the coords have them."""
    from pytensor.tensor.variable import TensorVariable

    if not isinstance(location, TensorVariable) or location.ndim not in ((1, 2) if d == 1 else (2,)):
        got = f"{location.ndim} axes" if isinstance(location, TensorVariable) else type(location).__name__
        raise ValueError(
            f'location: expected a variable with an axis of groups and one of {d} coordinates, dims=("group", '
            f'"coordinate") (or dims="group" alone where there is one column), got {got}.'
        )
    dims = model.named_vars_to_dims.get(location.name) or ()
    labels = model.coords.get(dims[0]) if dims else None
    if labels is None:
        raise ValueError(
            "location: expected a first dim whose coords are the groups' labels; give the model "
            'coords={"group": labels} and the location dims=("group", "coordinate").'
        )
    if dims[0] == COORDINATE:
        raise ValueError(f"location: expected another name than {COORDINATE!r} for the dim of the groups.")
    labels = [label.item() if isinstance(label, np.generic) else label for label in labels]
    texts = tuple(str(label) for label in labels)
    if len({_plain(label) for label in labels}) < len(texts) or len(set(texts)) < len(texts) or "" in texts:
        raise ValueError(
            f"coords[{dims[0]!r}]: expected labels that all differ and are not empty; got some twice (as 2 and 2.0)."
        )
    if any(_is_missing(label) for label in labels) or any("/" in text for text in texts):
        raise ValueError(
            f"coords[{dims[0]!r}]: expected labels that are not missing (None, NaN, NA) and hold no '/', which no "
            "name of a Potential may hold; rename them."
        )
    return Grouping(str(dims[0]), texts), labels


def _codes(groups: Any, labels: list[Any], dim: str, n: int) -> np.ndarray:
    """Return the position of each row's label among the coords, or name the unknown ones; labels are public."""
    given = np.asarray(groups, dtype=object)
    if given.shape != (n,):
        raise ValueError(f"groups: expected one label for each of the {n} rows, got the shape {given.shape}.")
    places = {_plain(label): index for index, label in enumerate(labels)}
    texts = {str(label): index for index, label in enumerate(labels)}
    if any(_is_missing(label) for label in given.tolist()):
        raise ValueError(
            "groups: expected a label for each row; some are missing (None, NaN, NA). Leave the rows out, or give "
            "them a group of their own by a text."
        )
    codes, unknown = np.empty(n, dtype=np.int64), {}
    for i, label in enumerate(given.tolist()):
        label = _plain(label)
        code = places.get(label, texts.get(str(label)))
        if code is None:
            unknown[str(label)] = True
        else:
            codes[i] = code
    if unknown:
        raise ValueError(
            f"groups: expected labels that are coords of {dim!r}, {list(texts)[:NAMES_SHOWN]}; unknown are "
            f"{list(unknown)[:NAMES_SHOWN]}. Add them to the coords (which must not be read off private rows)."
        )
    return codes


def _plain(label: Any) -> Any:
    """Return a label as a dict can find it: 2.0 and 2 are the same, True and 1 are not, nor False and 0."""
    if isinstance(label, np.generic):
        label = label.item()
    is_number = isinstance(label, numbers.Real) and not isinstance(label, bool)
    return label if isinstance(label, str) or is_number else str(label)


def _is_missing(label: Any) -> bool:
    """Whether a label is None, NaN, or what pandas writes for them."""
    if isinstance(label, np.generic):
        label = label.item()
    if label is None or type(label).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(label, numbers.Real) and label != label


def check_same_rows(X: Any, groups: Any) -> None:
    """Refuse labels and a table of pandas whose indexes differ: by position a row would get another row's label."""
    indexes = [getattr(thing, "index", None) for thing in (X, groups)]
    if all(callable(getattr(index, "equals", None)) for index in indexes) and not indexes[0].equals(indexes[1]):
        raise ValueError(
            "groups: expected the index of X, since both have one. Take labels and rows from one table, or pass "
            "groups.to_numpy() if they are in the order of the rows."
        )


def _standardized_by_prior(d: int, options: dict[str, Any]) -> bool:
    """Whether the prior's units play a part; what is wrong with an argument is `set_up`'s to say."""
    depth = as_depth(options["depth"])
    if options["directions"] is not None:
        depth = depth.with_directions(options["directions"])
    if not depth.bounded_sensitivity or isinstance(depth, CustomObjective):
        return False
    standardize = options["standardize"]
    return isinstance(standardize, str) and standardize == "prior" and not depth.resolve(d).unit_free


def _units(location: Any, count: int, d: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return medians and interquartile ranges (G, d) of a prior that ties groups together, from publicly seeded draws.

    None where the rows of the location are independent: then `set_up` knows them in closed form.
    """
    import pymc as pm

    if is_flat(location):  # `set_up` refuses it
        return None
    if all(row_variable(part) is not part for part in (location[index] for index in range(count))):
        return None
    check_drawable([location])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Numba will use object mode")
        draws = np.asarray(pm.draw(location, draws=PRIOR_DRAWS, random_seed=PRIOR_SEED))
    low, center, high = np.quantile(draws.reshape(PRIOR_DRAWS, count, d), QUARTILES, axis=0)
    scale = high - low
    return center, np.where(np.isfinite(scale) & (scale > 0), scale, 1.0)


def costs_of_calls(mechanisms: Sequence[ModelMechanism]) -> list[float]:
    """Return what one draw of each call costs a person: the most of its groups, since a row is in one of them."""
    return [max(mechanism.settings.unit_epsilon for mechanism in call) for call in calls(mechanisms)]
