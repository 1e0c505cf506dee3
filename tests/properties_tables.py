"""Tables, priors and mechanisms for `test_properties.py`, and the one way in which it draws from them."""

import contextlib
import functools
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import numpy as np
import pymc as pm
from hypothesis import strategies as st

import pymc_dpdepth as dpd
from pymc_dpdepth.mechanism import set_up
from pymc_dpdepth.samplers.concentrated import plan_concentrated, read_budget
from pymc_dpdepth.samplers.exact import plan_exact
from pymc_dpdepth.samplers.frames import AxisFrame, RotatedFrame

sys.path.append(str(Path(__file__).parent / "samplers"))
from scripted import ScriptedBits  # noqa: E402

LARGEST, SMALLEST = np.finfo(float).max, 5e-324

# Priors. Numbers are arrays: PyMC casts Python's numbers to float32 on the way, which warns of overflow. They have at
# most three digits, so that none is taken for a statistic of the rows that it happens to equal.


def _numbers(d, *values):
    return [np.full(d, float(value)) for value in values]


def _prior(distribution, *values, **named):
    """Return a function from d to a prior of independent columns."""

    def build(d):
        words = dict(zip(named, _numbers(d, *named.values()), strict=True))
        return distribution.dist(*_numbers(d, *values), **words, shape=d)

    return build


#: One of every family in closed form, with parameters of everyday size.
FAMILIES = {
    "normal": _prior(pm.Normal, 0, 10),
    "uniform": _prior(pm.Uniform, -1, 1),
    "laplace": _prior(pm.Laplace, 0, 10),
    "logistic": _prior(pm.Logistic, 1, 10),
    "cauchy": _prior(pm.Cauchy, 0, 10),
    "exponential": _prior(pm.Exponential, 0.5),
    "half_normal": _prior(pm.HalfNormal, 10),
    "half_cauchy": _prior(pm.HalfCauchy, 10),
    "lognormal": _prior(pm.LogNormal, 0, 2),
    "gamma": _prior(pm.Gamma, 2, 1),
    "beta": _prior(pm.Beta, 2, 3),
    "student_t": _prior(pm.StudentT, 3, mu=0, sigma=10),
    "gumbel": _prior(pm.Gumbel, 0, 10),
    "weibull": _prior(pm.Weibull, 1.5, 10),
    "truncated_normal": _prior(pm.TruncatedNormal, 0, 1, lower=-1, upper=2),
    "kumaraswamy": _prior(pm.Kumaraswamy, 2, 3),
    "logit_normal": _prior(pm.LogitNormal, 0, 1),
}
#: Far from all rows, or as large and as small as doubles go, or with shapes that pile mass up at an end.
EXTREMES = {
    "normal_far": _prior(pm.Normal, 1e6, 1),
    "normal_huge": _prior(pm.Normal, 0, 1e308),
    "normal_tiny": _prior(pm.Normal, 0, 1e-300),
    "uniform_far": _prior(pm.Uniform, 1e6, 1.01e6),
    "uniform_huge": _prior(pm.Uniform, -8e307, 8e307),
    "uniform_subnormal": _prior(pm.Uniform, 0, 1e-310),
    "laplace_huge": _prior(pm.Laplace, 0, 1e307),
    "logistic_subnormal": _prior(pm.Logistic, 0, 1e-310),
    "cauchy_huge": _prior(pm.Cauchy, 0, 1e300),
    "cauchy_tiny": _prior(pm.Cauchy, 0, 1e-300),
    "half_normal_huge": _prior(pm.HalfNormal, 1e307),
    "lognormal_wide": _prior(pm.LogNormal, 0, 200),
    "gamma_spiked": _prior(pm.Gamma, 0.01, 1),
    "beta_spiked": _prior(pm.Beta, 0.05, 0.05),
    "student_t_heavy": _prior(pm.StudentT, 0.3, mu=0, sigma=10),
    "gumbel_huge": _prior(pm.Gumbel, 0, 1e306),
    "weibull_spiked": _prior(pm.Weibull, 0.05, 10),
    "truncated_tail": _prior(pm.TruncatedNormal, 0, 1, lower=20, upper=21),
}
PRIORS = FAMILIES | EXTREMES


@functools.cache
def prior_of(name, d):
    return PRIORS[name](d)


# Mechanisms

DEPTHS = {
    "halfspace": dpd.Halfspace("axes"),
    "integrated_rank_weighted": dpd.IntegratedRankWeighted(),
    "integrated_dual": dpd.IntegratedDual(),
}
KINDS = ("axes", "one axis", "rotated", "rotated, few")


@functools.cache
def directions_of(kind, d):
    if kind == "axes":
        return dpd.Directions.axes(d)
    if kind == "one axis":
        return dpd.Directions.from_array(np.eye(d)[-1:])
    matrix = dpd.Directions.orthonormal(d, seed=2).matrix()
    return dpd.Directions.from_array(matrix if kind == "rotated" else matrix[:-1])


@dataclass(frozen=True)
class Case:
    """A mechanism without its rows: all of it is public."""

    n: int
    d: int
    prior: str = "normal"
    depth: str = "halfspace"
    kind: str = "axes"
    budget: tuple = (("epsilon", 2.0),)
    concentrated: bool = False
    m: int = 1
    seed: int = 0

    @property
    def directions(self):
        return directions_of(self.kind, self.d)

    @property
    def count(self):
        return len(self.directions.matrix())

    @property
    def sampler(self):
        """The sampler that DESIGN names for this mechanism."""
        if self.concentrated:
            return "concentrated"
        return "segments" if self.count == 1 else "boxes" if self.depth == "halfspace" else "products"

    def plan(self, rows=None, prior=None):
        """Return the plan, by default of a table of zeros: what it shows is public."""
        asked = read_budget(*(dict(self.budget).get(word, default) for word, default in BUDGET))
        settings, product, _ = set_up(
            "median",
            prior_of(self.prior, self.d) if prior is None else prior,
            np.zeros((self.n, self.d)) if rows is None else rows,
            depth=DEPTHS[self.depth],
            directions=self.directions,
            epsilon=asked.joint_epsilon,
            max_rows_per_unit=self.m,
        )
        return plan_concentrated(settings, product, asked.rho) if self.concentrated else plan_exact(settings, product)


BUDGET = (("epsilon", None), ("delta", 0.0), ("rho", None))
PURE = st.sampled_from([0.01, 0.3, 1.0, 2.0, 50.0]).map(lambda epsilon: (("epsilon", epsilon),))
COMPOSED = st.sampled_from([(("rho", 0.123),), (("rho", 3.0),), (("epsilon", 1.0), ("delta", 1e-9))])


@st.composite
def cases(draw, least_n=0, most_d=3, priors=tuple(PRIORS), most_m=3):
    """Draw a mechanism; rotated directions come with normal priors, the only ones that they fit."""
    d = draw(st.integers(1, most_d))
    normal = [name for name in priors if name.startswith("normal")]
    kind = draw(st.sampled_from(KINDS[:1] if d == 1 else KINDS if normal else KINDS[:2]))
    if kind.startswith("rotated"):
        priors = normal
    concentrated = draw(st.booleans())
    return Case(
        n=draw(st.integers(least_n, 5)),
        d=d,
        prior=draw(st.sampled_from(priors)),
        depth=draw(st.sampled_from(tuple(DEPTHS))),
        kind=kind,
        budget=draw(COMPOSED if concentrated else PURE),
        concentrated=concentrated,
        m=draw(st.integers(1, most_m)),
        seed=draw(st.integers(0, 2**32)),
    )


# Tables

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 65000.0, 1e6, 1e16, 1e154, 1e300, LARGEST, 1e-300, 2.0**-1022, SMALLEST]
ENTRY = (
    st.sampled_from([*SPECIAL, *(-x for x in SPECIAL)])
    | st.floats(-40.0, 40.0)
    | st.floats(allow_nan=False, allow_infinity=False)
)


@st.composite
def tables(draw, n, d, entry=ENTRY):
    """Draw n rows of d columns: free ones, few different ones, or with a constant column."""
    style = draw(st.sampled_from(["free", "tied", "constant column", "one row repeated"]))
    row = st.lists(entry, min_size=d, max_size=d)
    if style == "tied":
        row = st.sampled_from(draw(st.lists(row, min_size=2, max_size=2)))
    if style == "one row repeated":
        row = st.just(draw(row))
    rows = np.array([draw(row) for _ in range(n)], dtype=float).reshape(n, d)
    if style == "constant column":
        rows[:, draw(st.integers(0, d - 1))] = draw(entry)
    return rows


@st.composite
def cases_and_rows(draw, **limits):
    case = draw(cases(**limits))
    return case, draw(tables(case.n, case.d))


@st.composite
def cases_and_neighbours(draw, entry=ENTRY, **limits):
    """Draw a mechanism and two tables that differ in one row."""
    case = draw(cases(least_n=1, **limits))
    x = draw(tables(case.n, case.d, entry))
    y = x.copy()
    y[draw(st.integers(0, case.n - 1))] = draw(st.lists(entry, min_size=case.d, max_size=case.d))
    return case, x, y


# Draws


@dataclass
class Drawn:
    """What came out of a front door, with what a test may look at behind it."""

    release: dpd.Release = None
    charges: list = field(default_factory=list)
    cells: list = field(default_factory=list)
    bits: ScriptedBits = None

    @property
    def value(self):
        return self.release.value.values

    @property
    def public(self):
        """Return the record without the draw, as JSON so that NaN or a NumPy number would show."""
        record = {k: v for k, v in self.release.to_dict().items() if k not in ("locations", "parameters")}
        return json.dumps(record, allow_nan=False)

    def charge(self, **cost):
        """Remember a charge; it must come before the first random bit."""
        assert self.bits.asked == 0
        self.charges.append(cost)


@contextlib.contextmanager
def scripted(case, words=()):
    """Let the front doors draw from words that a test knows, charge a list, and show the cells that they draw."""
    drawn = Drawn(bits=ScriptedBits(words, seed=case.seed))

    def watched(frame):
        locations = frame.locations

        def wrapper(self, keys):
            drawn.cells.append(keys.copy())
            return locations(self, keys)

        return mock.patch.object(frame, "locations", wrapper)

    with (
        mock.patch("pymc_dpdepth.median.random_bits", lambda random_seed: drawn.bits),
        mock.patch("pymc_dpdepth.from_model.random_bits", lambda random_seed: drawn.bits),
        watched(AxisFrame),
        watched(RotatedFrame),
    ):
        yield drawn


def median(case, rows, *, prior=None, words=(), **options):
    """Draw through `private_median`."""
    with scripted(case, words) as drawn:
        drawn.release = dpd.private_median(
            rows,
            **dict(case.budget),
            prior=prior_of(case.prior, case.d) if prior is None else prior,
            depth=DEPTHS[case.depth],
            directions=case.directions,
            sampler="concentrated" if case.concentrated else "auto" if "epsilon" in dict(case.budget) else case.sampler,
            max_rows_per_unit=case.m,
            ledger=drawn,
            **options,
        )
    return drawn
