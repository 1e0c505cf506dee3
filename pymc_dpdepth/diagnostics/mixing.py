"""How far a Markov chain still is from its target after so many steps, estimated with pairs of chains that meet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pymc_dpdepth.densities import check_sampleable
from pymc_dpdepth.diagnostics.coupling import meeting_time, tune_proposal
from pymc_dpdepth.diagnostics.starts import draw_starts
from pymc_dpdepth.mechanism import positive_integer
from pymc_dpdepth.randomness import curator_generator

__all__ = ["MixingDiagnosis", "diagnose_mixing"]

KERNEL = "random-walk Metropolis, started from the prior and at rows of the mechanisms"
#: Distance at which the summary calls a chain mixed.
MIXED = 0.05
ERRORS = 2.0  # Monte Carlo standard errors that an upper limit lies above its estimate
# With none of k pairs apart, the probability of being apart is below 3/k with 95% confidence: (1 - 3/k)^k ~ e^-3.
RULE_OF_THREE = 3.0
SUMMARY_ROWS = 6
STARTS_TO_TUNE = 200  # draws of the prior whose spread is the first guess at the proposals'
CAVEATS = (
    f"What was measured is {KERNEL}: not NUTS, slice or SMC, which mix at their own rates on the same target.",
    "It is an estimate and no guarantee: a mode that no start has reached is not seen.",
    "It is a function of the private rows: not releasable. It certifies no privacy; only an exact draw has a proof.",
)


@dataclass(frozen=True, repr=False, eq=False)
class MixingDiagnosis:
    """Estimated distance of a random-walk Metropolis chain to its target. For the curator; not releasable.

    Attributes
    ----------
    bound : ndarray, shape (steps + 1,)
        Estimated upper bound on the total variation distance between the chain after t = 0, 1, ... steps and the
        target, at most 1. It is 1 throughout if some pair did not meet: nothing better is known then.
    standard_error : ndarray, shape (steps + 1,)
        Its Monte Carlo standard error; NaN if some pair did not meet.
    meeting_times : ndarray of int, shape (repetitions,)
        Steps that each pair made together until it met; -1 where it did not.
    lag : int
        Steps by which one chain of each pair was ahead.
    """

    bound: np.ndarray
    standard_error: np.ndarray
    meeting_times: np.ndarray
    lag: int

    @property
    def met(self) -> bool:
        """Whether all pairs have met."""
        return bool((self.meeting_times > 0).all())

    @property
    def resolution(self) -> float:
        """The smallest distance that so many pairs can tell from 0: 3 / repetitions."""
        return min(1.0, RULE_OF_THREE / len(self.meeting_times))

    @property
    def upper(self) -> np.ndarray:
        """The bound with its Monte Carlo error on top: two standard errors, and at least the resolution."""
        if not self.met:
            return np.ones_like(self.bound)
        return np.minimum(1.0, np.maximum(self.bound + ERRORS * self.standard_error, self.resolution))

    def steps_until(self, distance: float = MIXED) -> int | None:
        """Return the first step from which on `upper` is at most a distance, or None if there is none.

        Parameters
        ----------
        distance : float
            In total variation, from `resolution` to 1.

        Raises
        ------
        ValueError
            If so few pairs cannot tell the distance from 0.
        """
        if not self.resolution <= distance <= 1.0:
            raise ValueError(
                f"distance: expected {self.resolution:.3g} to 1 with {len(self.meeting_times)} repetitions, got "
                f"{distance}. A smaller one takes repetitions >= 3 / distance."
            )
        far = np.flatnonzero(self.upper > distance)
        first = int(far[-1]) + 1 if len(far) else 0
        return first if first < len(self.bound) else None

    @property
    def advice(self) -> str:
        """What was found and what to do about it."""
        apart, pairs = int((self.meeting_times < 0).sum()), len(self.meeting_times)
        exact = "Use an exact sampler: dpd.sample_exact(model=model) draws, or says why none fits"
        if apart:
            return (
                f"{apart} of {pairs} pairs did not meet in {len(self.bound) - 1} steps, so there is no bound: the "
                f"chain is slow, or stuck in separate modes. {exact}. Otherwise raise steps."
            )
        distance = max(MIXED, self.resolution)
        enough = self.steps_until(distance)
        if enough is None:
            return f"The distance is not below {distance:g} after {len(self.bound) - 1} steps. Run longer. {exact}."
        return (
            f"The distance is estimated to be below {distance:g} from step {enough} on. Run a chain of this kind for "
            f"longer than that, and keep none of its first {enough} draws. {exact}."
        )

    def summary(self) -> str:
        """Return bound, meeting times and what to do, as plain text."""
        lines = [f"Total variation distance to the target, {KERNEL}", f"{'step':>10} {'bound':>8} {'error':>8}"]
        lines += [f"{step:>10} {bound:>8.3f} {error:>8.3f}" for step, bound, error in self._rows()]
        return "\n".join([*lines, self._meetings(), "", self.advice, *CAVEATS])

    def _rows(self) -> list[tuple[int, float, float]]:
        """Return steps, evenly spread up to the last meeting, with bounds and errors."""
        last = max(self.meeting_times.max(), 1) if self.met else len(self.bound) - 1
        steps = np.unique(np.linspace(0, last, SUMMARY_ROWS).round().astype(int))
        return [(int(step), float(self.bound[step]), float(self.standard_error[step])) for step in steps]

    def _meetings(self) -> str:
        times = self.meeting_times[self.meeting_times > 0]
        text = f"{len(times)} of {len(self.meeting_times)} pairs met, lag {self.lag}"
        if len(times):
            text += f"; steps together until then: median {np.median(times):g}, largest {times.max()}"
        return text + f". Distances below {self.resolution:.2g} cannot be told from 0."

    def __str__(self) -> str:
        """Show the summary."""
        return self.summary()

    def __repr__(self) -> str:
        """Name the object; the figures, which depend on private rows, are left to `summary`."""
        return f"<MixingDiagnosis of {len(self.meeting_times)} pairs of chains; for the curator, not releasable>"

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        """Show the summary as a table with text below."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table

        yield f"Total variation distance to the target, {KERNEL}"
        table = Table(box=SIMPLE_HEAD)
        for name in ("step", "bound", "error"):
            table.add_column(name, justify="right")
        for step, bound, error in self._rows():
            table.add_row(str(step), f"{bound:.3f}", f"{error:.3f}")
        yield table
        yield "\n".join([self._meetings(), "", self.advice, *CAVEATS])


def diagnose_mixing(
    model: Any = None,
    *,
    steps: int = 2000,
    lag: int | None = None,
    repetitions: int = 100,
    tune: int = 1000,
    random_seed: int | None = None,
    progressbar: bool = True,
) -> MixingDiagnosis:
    r"""Estimate how far a Markov chain is from a model's law after t steps, by pairs of chains that meet.

    Two random-walk Metropolis chains X and Y start independently, each from the prior or, with probability 1/2, with
    the locations of the mechanisms at one of their rows; X runs `lag` steps L alone, then both
    move by coupled proposals until they are equal, from some time tau = L + k on. Then

        d_TV(law of X_t, target) <= E[max(0, ceil((tau - L - t) / L))],

    which is averaged over independent pairs. It is an estimate about this one kernel. It is no guarantee, it is not
    about NUTS, slice or SMC, it certifies no privacy, and, like every diagnostic on private rows, it stays with the
    curator and never enters a Release.

    Parameters
    ----------
    model : pm.Model, optional
        Free variables with a density. The model on the context stack by default.
    steps : int
        Most steps that a pair makes together. If one pair has not met by then, there is no bound.
    lag : int, optional
        By default a tenth of `steps`. A longer one gives a sharper bound; it should not be shorter than a typical
        meeting time.
    repetitions : int
        Independent pairs, at least 2. Distances below 3 / repetitions cannot be told from 0.
    tune : int
        Steps of a chain from which the covariance of the proposals is learned beforehand; it is fixed in the pairs.
    random_seed : int, optional
        Makes the result reproducible. There is no warning, since nothing of it may leave anyway.
    progressbar : bool

    Returns
    -------
    MixingDiagnosis
        `bound` for t = 0, ..., steps with `standard_error`, `meeting_times`, `steps_until`, and a `summary` that says
        what to do.

    Raises
    ------
    ValueError, TypeError
        If an argument is not usable, or the model has free variables without a density.

    Notes
    -----
    The chains move in PyMC's unconstrained space; total variation does not depend on that. The bound holds for the
    mean over pairs [1]_ [2]_, for chains with the same start as these; its estimate has the error given. Proposals are
    coupled by reflection [3]_, so that they coincide as often as they can.

    Modes that no start reaches are not seen. That is why half of the chains start at rows: under a prior that is far
    wider than the rows, chains from the prior alone agree with each other and miss the peak at the rows altogether, as
    NUTS and SMC do there, without a divergence. A location that is computed from free variables starts from the prior.

    References
    ----------
    .. [1] N. Biswas, P. E. Jacob and P. Vanetti, Estimating convergence of Markov chains with L-lag couplings,
           NeurIPS 2019, arXiv:1905.09971.
    .. [2] P. E. Jacob, J. O'Leary and Y. F. Atchade, Unbiased Markov chain Monte Carlo methods with couplings,
           J. R. Statist. Soc. B 82 (2020) 543-600, doi:10.1111/rssb.12336.
    .. [3] N. Bou-Rabee, A. Eberle and R. Zimmer, Coupling and convergence for Hamiltonian Monte Carlo, Ann. Appl.
           Probab. 30 (2020) 1209-1250, doi:10.1214/19-AAP1528.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_dpdepth as dpd
    >>> with pm.Model() as model:
    ...     location = pm.Normal("location", 0, 10, shape=2)
    ...     _ = dpd.exponential_mechanism("m", location, np.arange(20.0).reshape(10, 2), depth="spatial", epsilon=1.0)
    >>> diagnosis = dpd.diagnose_mixing(model, repetitions=20, tune=200, random_seed=0, progressbar=False)
    >>> bool(diagnosis.met), diagnosis.bound.shape
    (True, (2001,))
    """
    import pymc as pm

    steps, repetitions = positive_integer(steps, "steps"), positive_integer(repetitions, "repetitions")
    tune = positive_integer(tune, "tune")
    lag = max(1, steps // 10) if lag is None else positive_integer(lag, "lag")
    if repetitions < 2:
        raise ValueError("repetitions: expected at least 2, for a standard error, got 1.")
    generator = curator_generator(random_seed)
    model = pm.modelcontext(model)
    check_sampleable(model)
    log_density = _log_density(model)
    starts = draw_starts(model, 2 * repetitions + STARTS_TO_TUNE, generator)
    factor = tune_proposal(log_density, starts[2 * repetitions :], tune, generator)
    rounds = range(repetitions)
    if progressbar:
        from rich.progress import track

        rounds = track(rounds, description="Pairs of chains")
    times = [meeting_time(log_density, starts[2 * k : 2 * k + 2], factor, lag, steps, generator) for k in rounds]
    return _diagnosis(np.array(times), lag, steps)


def _diagnosis(times: np.ndarray, lag: int, steps: int) -> MixingDiagnosis:
    """Return the bound that meeting times give."""
    if (times < 0).any():
        return MixingDiagnosis(np.ones(steps + 1), np.full(steps + 1, np.nan), times, lag)
    # ceil((tau - L - t) / L) in integers: the sum over j >= 1 of the indicators that X_(t + j L) and Y_(t + (j-1) L),
    # whose laws are those of one chain L steps apart, have not met; the triangle inequality does the rest.
    total, squares, t = np.zeros(steps + 1), np.zeros(steps + 1), np.arange(steps + 1)
    for time in times:
        term = np.maximum(0, -((t - time) // lag))
        total += term
        squares += term**2
    pairs = len(times)
    mean = total / pairs
    # Sums of integers are exact in doubles, so the variance of terms that are all equal is 0 up to rounding.
    variance = np.maximum(0.0, squares - total * mean) / (pairs - 1)
    return MixingDiagnosis(np.minimum(1.0, mean), np.sqrt(variance / pairs), times, lag)


def _log_density(model) -> Callable[[np.ndarray], float]:
    """Compile the model's log density as a function of one vector, in unconstrained space."""
    from pymc.pytensorf import compile as compile_function
    from pymc.pytensorf import join_nonshared_inputs

    point = model.initial_point()
    (graph,), vector = join_nonshared_inputs(point, [model.logp()], model.value_vars, {})
    function = compile_function([vector], graph)
    function.trust_input = True
    return lambda state: float(function(state))
