"""Exact draws of a whole model: a plan for each of its mechanisms, and the prior for the variables beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pymc_dpdepth.groups import calls
from pymc_dpdepth.location_rows import row_of, row_variable
from pymc_dpdepth.mechanism import ModelMechanism
from pymc_dpdepth.priors import NotAProductPriorError, ProductPrior, read_prior
from pymc_dpdepth.randomness import RandomBits
from pymc_dpdepth.samplers.branch_plan import BranchPlan
from pymc_dpdepth.samplers.dispatch import plan_draws
from pymc_dpdepth.samplers.exact import ExactPlan, NoExactSamplerError, draw_prior
from pymc_dpdepth.samplers.hierarchy_plan import HIERARCHY, HierarchyPlan, plan_hierarchy
from pymc_dpdepth.samplers.normal_hierarchy import read_hierarchy

__all__ = ["ExactModel", "plan_model"]


@dataclass(frozen=True, eq=False)
class PlannedMechanism:
    """One mechanism, its plan, and where its location's values go.

    Attributes
    ----------
    mechanism : ModelMechanism
    plan : ExactPlan or BranchPlan
    base : str or None
        Name of the variable that the location is a row of; None where it consists of variables of its own.
    row : int
    """

    mechanism: ModelMechanism
    plan: ExactPlan | BranchPlan
    base: str | None
    row: int

    @property
    def mechanisms(self) -> list[ModelMechanism]:
        """The one mechanism."""
        return [self.mechanism]

    def records(self) -> list[dict[str, Any]]:
        """Return the public records of the mechanisms."""
        return [self.plan.describe()]

    def draw(self, bits: RandomBits, draws: int, values: dict[str, np.ndarray], shapes: dict[str, tuple[int, ...]]):
        """Return locations (draws, d) by mechanism, and add the values of free variables."""
        theta = self.plan.draw(self.mechanism.rows, bits, draws)
        self._place(theta, values, shapes)
        return {self.mechanism.settings.name: theta}

    def _place(self, theta: np.ndarray, values: dict[str, np.ndarray], shapes: dict[str, tuple[int, ...]]) -> None:
        """Put locations (draws, d) into the values of the free variables."""
        if self.base is not None:
            whole = values.setdefault(self.base, np.empty((len(theta), *shapes[self.base])))
            whole[:, self.row] = theta.reshape(whole[:, self.row].shape)
            return
        for block in self.plan.prior.blocks:
            part = theta[:, block.columns]
            values[block.name] = part[:, 0] if block.scalar else part


@dataclass(frozen=True, eq=False)
class PlannedHierarchy:
    """The groups of one call under a normal hierarchy.

    Attributes
    ----------
    mechanisms : list of ModelMechanism
        In the order of the location's rows.
    plan : HierarchyPlan
    """

    mechanisms: list[ModelMechanism]
    plan: HierarchyPlan

    base = None

    def records(self) -> list[dict[str, Any]]:
        """Return the public records of the groups."""
        return self.plan.describe()

    def draw(self, bits: RandomBits, draws: int, values: dict[str, np.ndarray], shapes: dict[str, tuple[int, ...]]):
        """Return locations (draws, d) by group, and add the values of hyperparameters and location."""
        hyper, theta = self.plan.draw([mechanism.rows for mechanism in self.mechanisms], bits, draws)
        for block in self.plan.hierarchy.prior.blocks:
            part = hyper[:, block.columns]
            values[block.name] = part[:, 0] if block.scalar else part
        location = self.plan.hierarchy.location
        values[location.name] = theta[:, :, 0] if location.ndim == 1 else theta
        return {mechanism.settings.name: theta[:, g] for g, mechanism in enumerate(self.mechanisms)}


@dataclass(frozen=True, eq=False)
class ExactModel:
    """Exact draws of all free variables of a model.

    Attributes
    ----------
    plans : list of PlannedMechanism or PlannedHierarchy
    others : dict of str to ProductPrior
        Free variables that no mechanism has as its location: they come from their prior.
    shapes : dict of str to tuple of int
        Of the variables whose rows are locations.
    """

    plans: list[PlannedMechanism | PlannedHierarchy]
    others: dict[str, ProductPrior]
    shapes: dict[str, tuple[int, ...]]

    def draw(self, bits: RandomBits, draws: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Return the locations of the mechanisms (draws, d) and the values of the free variables, by name."""
        locations, values = {}, {}
        for planned in self.plans:
            locations |= planned.draw(bits, draws, values, self.shapes)
        for name, prior in self.others.items():
            part = draw_prior(prior, bits, draws)
            values[name] = part[:, 0] if prior.blocks[0].scalar else part
        return locations, values

    @property
    def sampler(self) -> str:
        """The samplers of all mechanisms, in one word."""
        return "+".join(sorted({planned.plan.sampler for planned in self.plans}))

    def describe(self) -> list[dict[str, Any]]:
        """Return the public records of the mechanisms, by call."""
        return [record for planned in self.plans for record in planned.records()]

    @property
    def guarantee(self) -> str:
        """The weakest level of the mechanisms' draws."""
        return "exact" if all(planned.plan.guarantee == "exact" for planned in self.plans) else "float64"


def plan_model(model: Any, mechanisms: list[ModelMechanism], sampler: str) -> ExactModel:
    """Return the exact sampler of a whole model.

    Raises
    ------
    NoExactSamplerError
        With the reason why there is none.
    """
    names = {mechanism.settings.name for mechanism in mechanisms}
    foreign = [v.name for v in (*model.observed_RVs, *model.potentials) if v.name not in names]
    if foreign:
        raise NoExactSamplerError(f"{foreign} change the prior of the location, and exact draws need the prior itself")
    if sampler == HIERARCHY and all(mechanism.settings.group is None for mechanism in mechanisms):
        raise NoExactSamplerError(
            f'sampler="{HIERARCHY}" draws groups that a prior ties together, and no mechanism has groups; pass '
            "exponential_mechanism(..., groups=labels)"
        )
    plans: list[PlannedMechanism | PlannedHierarchy] = []
    taken: set[Any] = set()
    for call in calls(mechanisms):
        plans.extend(_plan_call(model, call, sampler, taken))
    bases = {planned.base for planned in plans if planned.base is not None}
    drawn = {key if isinstance(key, str) else key[0] for key in taken}
    shapes = {name: shape for name, shape in model.eval_rv_shapes().items() if name in bases} if bases else {}
    for name in bases:
        missing = set(range(shapes[name][0])) - {key[1] for key in taken if key[0] == name and isinstance(key, tuple)}
        if missing:
            raise NoExactSamplerError(f"the rows {sorted(missing)} of {name!r} belong to no group of a mechanism")
    others = {v.name: _other_prior(v, model) for v in model.free_RVs if v.name not in drawn}
    return ExactModel(plans, others, shapes)


def _plan_call(model: Any, call: list[ModelMechanism], sampler: str, taken: set[Any]) -> list:
    """Return the plans of one call's mechanisms, one by one where their priors are independent."""
    grouped = call[0].settings.group is not None
    if sampler == HIERARCHY and not grouped:  # beside groups, one without is drawn as ever
        sampler = "auto"
    if sampler != HIERARCHY:
        before = set(taken)
        try:
            return [_plan_mechanism(model, mechanism, sampler, taken) for mechanism in call]
        except NoExactSamplerError as reason:
            if not grouped or sampler != "auto":
                raise
            refusal = f"{reason}; "
        taken.clear()
        taken.update(before)
    else:
        refusal = ""
    try:
        return [_plan_hierarchy(model, call, sampler, taken)]
    except NoExactSamplerError as reason:
        raise NoExactSamplerError(f"{refusal}{reason}") from None


def _plan_hierarchy(model: Any, call: list[ModelMechanism], sampler: str, taken: set[Any]) -> PlannedHierarchy:
    """Return the plan of one call's groups under a normal hierarchy."""
    rows = [row_of(mechanism.location) for mechanism in call]
    base = rows[0][0] if rows[0] is not None else None
    if base not in model.free_RVs or any(row is None or row[0] is not base for row in rows):
        raise NoExactSamplerError("the location is not one free variable of the model with a row for each group")
    if [index for _, index in rows] != list(range(model.eval_rv_shapes()[base.name][0])):
        raise NoExactSamplerError("rows of the location belong to no group of the mechanism")
    settings = [mechanism.settings for mechanism in call]
    hierarchy = read_hierarchy(base, (len(call), settings[0].d))
    for variable in (base, *(block.variable for block in hierarchy.prior.blocks)):
        if variable not in model.free_RVs:
            raise NoExactSamplerError("a hyperparameter is not a free variable of the model")
        _refuse_restricting_transform(variable, model)
        if any(variable.name == (key if isinstance(key, str) else key[0]) for key in taken):
            raise NoExactSamplerError(f"two mechanisms share the variable {variable.name!r}")
        taken.add(variable.name)
    return PlannedHierarchy(call, plan_hierarchy(settings, hierarchy, sampler))


def _plan_mechanism(model: Any, mechanism: ModelMechanism, sampler: str, taken: set[Any]) -> PlannedMechanism:
    """Return the plan of one mechanism; `taken` gets what its location consists of."""
    location = row_variable(mechanism.location)
    try:
        prior = read_prior(location, mechanism.settings.d)
    except NotAProductPriorError as reason:
        prior = reason
    plan = plan_draws(mechanism.settings, prior, location, sampler)
    row = row_of(mechanism.location)
    base, index = row if row is not None and row[0] in model.free_RVs else (None, 0)
    parts = [(base, (base.name, index))] if base is not None else [(b.variable, b.name) for b in plan.prior.blocks]
    for variable, key in parts:
        if variable not in model.free_RVs:
            raise NoExactSamplerError("the location is not a free variable of the model")
        _refuse_restricting_transform(variable, model)
        if key in taken or isinstance(key, tuple) and variable.name in taken:
            raise NoExactSamplerError(f"two mechanisms share the variable {variable.name!r}")
        taken.add(key)
    return PlannedMechanism(mechanism, plan, None if base is None else base.name, index)


def _other_prior(variable, model) -> ProductPrior:
    """Return the prior of a free variable without a mechanism."""
    if variable.ndim > 1 or variable.type.dtype != "float64":
        raise NoExactSamplerError(f"the variable {variable.name!r} is not a real scalar or vector")
    _refuse_restricting_transform(variable, model)
    width = 1 if variable.ndim == 0 else int(model.eval_rv_shapes()[variable.name][0])
    try:
        return read_prior(variable, width)
    except NotAProductPriorError as reason:
        raise NoExactSamplerError(f"variable {variable.name!r}: {reason}") from None


def _refuse_restricting_transform(variable, model) -> None:
    """Refuse a transform of the user's: one such as `ordered` cuts the prior down to a part of its support."""
    from pymc.distributions.transforms import _default_transform

    transform = model.rvs_to_transforms.get(variable)
    if transform is not None and type(transform) is not type(_default_transform(variable.owner.op, variable)):
        raise NoExactSamplerError(f"the variable {variable.name!r} has a transform that may restrict its prior")
