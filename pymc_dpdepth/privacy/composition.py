"""What several releases cost together: basic, advanced, concentrated and bounded-range composition.

Every epsilon and rho that a function here returns is rounded upwards, every parameter that it recommends
(`epsilon_of_rho`, `rho_of_budget`) downwards; numbers are read as written, see `rounding.py`. docs/composition.md
compares the statements.

Notation: P and Q are the output laws on two neighbouring tables, L = ln dP/dQ. A mechanism is epsilon-DP if |L| <=
epsilon for all neighbours, and epsilon-bounded-range if L takes values in an interval of length epsilon, wherever
that lies: the exponential mechanism at epsilon = 2 GS beta has L = beta (D_X - D_Y) - const and D_X - D_Y in [-GS,
GS], so it is both.

References
----------
Bun and Steinke (2016), Concentrated differential privacy: simplifications, extensions, and lower bounds, TCC.
Canonne, Kamath and Steinke (2020), The discrete Gaussian for differential privacy, NeurIPS.
Dong, Durfee and Rogers (2020), Optimal differential privacy composition for exponential mechanisms and the cost of
adaptivity, ICML.
Harrison and Manurangsi (2026), Exact zCDP characterizations for fundamental differentially private mechanisms, FORC.
Kairouz, Oh and Viswanath (2015), The composition theorem for differential privacy, ICML.
Murtagh and Vadhan (2018), The complexity of computing the optimal composition of differential privacy, Theory of
Computing 14(8).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

from pymc_dpdepth.privacy.rounding import (
    CONTEXT,
    GUARD,
    float_above,
    largest,
    number,
    probability,
    to_decimal,
    written,
)

__all__ = [
    "advanced_composition",
    "basic_composition",
    "bounded_range_composition",
    "bounded_range_rho",
    "concentrated_composition",
    "epsilon_of_rho",
    "pure_rho",
    "rho_of_budget",
    "rho_to_epsilon",
]

SMALL = 1e-10  # below it the leading term, an upper bound, is right to 20 digits, and the formulas would lose theirs
NEGLIGIBLE = Decimal("1e-50")  # above the absolute error of a handful of logarithms with 60 digits
ATOMS = 20_000  # largest number of different total losses that advanced composition enumerates
DRAWS = 1_000  # largest number of draws whose optimal bounded-range cost is computed; the work grows with its square
KEPT = 4_096  # costs that are kept: a ledger has many charges at few epsilons, and 60 digits take their time
LARGE = 1e6  # sums of epsilon beyond it get no exact composition, which would be of no use


def bounded_range_rho(epsilon: float) -> float:
    """Return the smallest rho such that every epsilon-bounded-range mechanism is rho-zCDP.

    rho = k - 1 - ln k with k = epsilon / (e^epsilon - 1); about epsilon^2 / 8, and never above it.

    Proof. Zero-concentrated DP asks for (alpha - 1) D_alpha(P|Q) = ln E_Q e^(alpha L) <= rho alpha (alpha - 1), all
    alpha > 1. By convexity E_Q e^(alpha L), given E_Q e^L = 1 and L in [a, a + epsilon], is largest when L sits on
    the two ends; maximised over a its logarithm is K(alpha) = T(alpha) - T(alpha - 1) - T(1), where b = epsilon / 2
    and T(x) = x ln(sinh(b x) / x). Hence K is the integral of T'' over x + y, x in [0, 1], y in [0, alpha - 1], and
    T''(z) / z = b^2 (1 - (coth bz - 1/(bz))^2), which decreases in z. So K / (alpha (alpha - 1)) is half the mean of
    T''(z)/z under the density proportional to z times that of x + y. As alpha grows that law moves to the right (its
    ratio to the law at alpha = 1, density 2z on [0, 1], increases), so the mean is largest as alpha -> 1, where it is
    T'(1) - T'(0) = ln(sinh b / b) + b coth b - 1 = k - 1 - ln k, the largest Kullback-Leibler divergence. Harrison and
    Manurangsi (2026) find the same value; Dong, Durfee and Rogers (2020) have that divergence.
    """
    return _bounded_range_rho(number(epsilon, "epsilon"))


@functools.lru_cache(KEPT, typed=True)  # a double and the fraction it is equal to are read as different numbers
def _bounded_range_rho(kept: float | Fraction) -> float:
    with localcontext(CONTEXT):
        exact = to_decimal(kept)
        if kept < SMALL:
            return float_above(exact * exact / 8)
        b = exact / 2
        q = (-exact).exp()
        log_sinh_over_b = b + ((1 - q) / exact).ln()
        return float_above((log_sinh_over_b + b * (1 + q) / (1 - q) - 1) * (1 + GUARD))


def epsilon_of_rho(rho: float, draws: int = 1) -> float:
    """Return the largest epsilon at which so many epsilon-bounded-range draws are rho-zCDP together."""
    limit = written(number(rho, "rho"))
    if isinstance(draws, bool) or not isinstance(draws, int) or draws < 1:
        raise ValueError(f"draws: expected an integer >= 1, got {draws!r}.")

    def fits(epsilon: float) -> bool:
        return draws * Fraction(bounded_range_rho(epsilon)) <= limit

    return largest(fits, math.sqrt(8 * float(limit / draws)))


def pure_rho(epsilon: float) -> float:
    """Return the smallest rho such that every epsilon-DP mechanism is rho-zCDP: epsilon tanh(epsilon / 2).

    At most epsilon^2 / 2, the bound of Bun and Steinke (2016, proposition 1.4).

    Proof. Randomised response has the largest Renyi divergences (Kairouz, Oh and Viswanath 2015: every other
    mechanism is a function of it). For it ln E_Q e^(alpha L) has a second derivative in alpha that is symmetric about
    1/2 and falls away from there, and divided by alpha (alpha - 1) it is that derivative's mean over the intervals
    [1 - r, 1 + (alpha - 1) r], r in [0, 1] with density 2r, halved. A larger alpha adds points to the right of 1, where
    the derivative is below all its values on [0, 1]; so the supremum is at alpha -> 1, where it is the
    Kullback-Leibler divergence epsilon tanh(epsilon / 2).
    """
    return _pure_rho(number(epsilon, "epsilon"))


@functools.lru_cache(KEPT, typed=True)
def _pure_rho(kept: float | Fraction) -> float:
    with localcontext(CONTEXT):
        exact = to_decimal(kept)
        if kept < SMALL:
            return float_above(exact * exact / 2)
        q = (-exact).exp()
        return min(float_above(exact * (1 - q) / (1 + q) * (1 + GUARD)), float_above(exact))


def rho_to_epsilon(rho: float, delta: float) -> float:
    """Return the epsilon at which rho-zCDP implies (epsilon, delta)-DP.

    The smallest of rho alpha + ln(1/(alpha delta)) / (alpha - 1) + ln(1 - 1/alpha) over alpha > 1, each of which is
    valid (Canonne, Kamath and Steinke 2020). Its derivative vanishes where
    rho (alpha - 1)^2 = ln(1/(alpha delta)), whose left side grows while the right side falls.
    """
    kept, small = number(rho, "rho", zero=True), probability(delta)
    if kept == 0:
        return 0.0
    with localcontext(CONTEXT):
        exact, log_delta = to_decimal(kept), to_decimal(small).ln()
        log_rho, cap = float(exact.ln()), float(-log_delta)
        low, high = -750.0 + min(0.0, -log_rho / 2), cap  # of ln(alpha - 1)
        for _ in range(100):  # halvings: enough for every double
            middle = (low + high) / 2
            gap = cap - (math.log1p(math.exp(middle)) if middle < 700 else middle)
            low, high = (middle, high) if gap > 0 and log_rho + 2 * middle < math.log(gap) else (low, middle)
        step = Decimal(low).exp()
        alpha = 1 + step
        # ln(alpha) / (alpha - 1) >= 1 / alpha; the quotient itself would lose its digits at a tiny step
        slope = 1 / alpha if step < Decimal("1e-20") else alpha.ln() / step
        value = exact * alpha - log_delta / step - slope + (step / alpha).ln()
        return float_above(max(value * (1 + GUARD) + NEGLIGIBLE, Decimal(0)))


def rho_of_budget(epsilon: float, delta: float) -> float:
    """Return the largest rho whose `rho_to_epsilon` at this delta is at most epsilon."""
    limit = written(number(epsilon, "epsilon"))
    small = probability(delta)
    return largest(lambda rho: rho_to_epsilon(rho, small) <= limit, float(limit))


def basic_composition(epsilons: Iterable[float]) -> float:
    """Return the sum of the epsilons: pure DP, whether or not mechanisms and epsilons are chosen adaptively."""
    return float_above(sum((written(e) for e in _numbers(epsilons)), Fraction(0)))


def concentrated_composition(epsilons: Iterable[float], delta: float, *, bounded_range: bool = True) -> float:
    """Return the epsilon at delta of mechanisms composed in zCDP; they may be chosen adaptively.

    Each counts `bounded_range_rho`, or `pure_rho` where they are not bounded-range. The sum of rho is exact.
    """
    cost = bounded_range_rho if bounded_range else pure_rho
    counts = Counter(_numbers(epsilons))
    small = probability(delta)
    total = sum((many * Fraction(cost(e)) for e, many in counts.items()), Fraction(0))
    return min(rho_to_epsilon(total, small), basic_composition(counts.elements()))


def advanced_composition(epsilons: Iterable[float], delta: float) -> float:
    """Return the epsilon at delta of epsilon_j-DP mechanisms, chosen adaptively, with epsilons fixed beforehand.

    Every such mechanism is a function of randomised response, P(L = epsilon_j) = e^epsilon_j / (1 + e^epsilon_j), P(L
    = -epsilon_j) the rest (Kairouz, Oh and Viswanath 2015), and adaptivity does not matter, since all responses could
    be drawn beforehand. With S_m the m largest values of the total loss, delta(epsilon) = max_m P(S_m) - e^epsilon
    Q(S_m), so the smallest epsilon is max_m ln((P(S_m) - delta) / Q(S_m)): exact. With more than 20,000 different
    totals (many different epsilons: the general problem is #P-complete, Murtagh and Vadhan 2018) the concentrated
    bound is returned instead, which is at most sum epsilon_j tanh(epsilon_j/2) + sqrt(2 sum epsilon_j^2 ln(1/delta)).
    """
    counts = Counter(_numbers(epsilons))
    small = probability(delta, zero=True)
    basic = basic_composition(counts.elements())
    if small == 0 or not counts:
        return basic
    if math.prod(many + 1 for many in counts.values()) > ATOMS or basic > LARGE or min(counts) < SMALL:
        return concentrated_composition(counts.elements(), small, bounded_range=False)
    with localcontext(CONTEXT):
        classes = [_response_losses(to_decimal(e), many) for e, many in counts.items()]
        atoms = [
            (sum((loss for loss, _ in choice), Decimal(0)), math.prod((p for _, p in choice), start=Decimal(1)))
            for choice in itertools.product(*classes)
        ]
        atoms.sort(reverse=True)
        target = to_decimal(small)
        above_p, above_q, odds = Decimal(0), Decimal(0), Decimal(1)
        for loss, p in atoms:
            above_p += p
            above_q += p * (-loss).exp()
            odds = max(odds, (above_p * (1 + GUARD) - target) / above_q)
        return min(float_above(odds.ln() * (1 + GUARD)), basic)


def _response_losses(epsilon: Decimal, many: int) -> list[tuple[Decimal, Decimal]]:
    """Return the losses of so many randomised responses, with their probabilities under P."""
    q = (-epsilon).exp()
    p = (1 / (1 + q)) ** many
    losses = []
    for low in range(many + 1):
        losses.append(((many - 2 * low) * epsilon, p))
        p *= q * (many - low) / (low + 1)
    return losses


def bounded_range_composition(epsilons: Iterable[float], delta: float) -> float:
    """Return the epsilon at delta of bounded-range mechanisms that are ALL fixed before any of them is run.

    Not only their epsilons: which scores they draw by must not depend on earlier outputs; adaptive choice costs more
    (Dong, Durfee and Rogers 2020). For equal epsilons the value is the smallest possible one, by their theorem.

    Proof. A mechanism with L in [t - epsilon, t] is at worst a bit that has L = t with P(t) = (1 - e^(t - epsilon)) /
    (1 - e^-epsilon) = e^t Q(t). With total T = sum t_j and N the number of low bits, L > epsilon_g is N <= l, where l
    depends on T only. For T fixed, P(N <= l) - e^epsilon_g Q(N <= l) is linear and falling in e^t_i + e^t_j at every
    pair with t_i + t_j fixed, so equal offsets are the worst; then N is binomial, and the derivative in t vanishes
    once, at t = (epsilon_g + (l + 1) epsilon) / (k + 1). delta(epsilon_g) is the maximum over l, and epsilon_g is
    found by Newton steps and checked against every l before it is returned.

    For unequal epsilons the value is an upper bound: the smaller of the concentrated one and of the optimum for as many
    draws at the largest epsilon. More than 1,000 draws get the concentrated bound.
    """
    counts = Counter(_numbers(epsilons))
    small = probability(delta, zero=True)
    basic = basic_composition(counts.elements())
    if small == 0 or not counts:
        return basic
    bound = concentrated_composition(counts.elements(), small)
    draws, worst = counts.total(), max(counts)
    if draws > DRAWS or draws * worst > LARGE or worst < SMALL:
        return bound
    with localcontext(CONTEXT):
        return min(_equal_bounded_range(draws, to_decimal(worst), to_decimal(small), bound), bound)


def _equal_bounded_range(draws: int, epsilon: Decimal, delta: Decimal, bound: float) -> float:
    """Return the optimal non-adaptive epsilon of equal bounded-range draws, or a bound that is already known."""
    bits = _WorstBits(draws, epsilon)
    answer, log_odds = 0.0, Decimal(0)
    excess, level, p, q = bits.worst(log_odds, range(draws))
    while excess > delta:
        # delta, a maximum of lines in e^epsilon_g, is convex: Newton steps from the left never pass the root
        while True:
            step = ((p - delta) / q).ln() - log_odds
            log_odds += step
            if step < Decimal("1e-25"):
                break
            _, level, p, q = bits.worst(log_odds, range(max(level - 1, 0), min(level + 2, draws)))
        answer = max(float_above(log_odds * (1 + GUARD)), math.nextafter(answer, math.inf))
        if answer >= bound:
            return bound
        log_odds = Decimal(answer)
        excess, level, p, q = bits.worst(log_odds, range(draws))
    return answer


class _WorstBits:
    """The worst mechanisms of `bounded_range_composition`: k equal bits with losses t and t - epsilon."""

    def __init__(self, draws: int, epsilon: Decimal):
        self.draws, self.epsilon, self.low = draws, epsilon, (-epsilon).exp()
        self.ratios = [Decimal(draws - i) / (i + 1) for i in range(draws)]
        self.powers = [self.low**i for i in range(draws)]

    def worst(self, log_odds: Decimal, levels: Sequence[int]) -> tuple[Decimal, int, Decimal, Decimal]:
        """Return the largest delta at epsilon_g = log_odds, its level l, and P and Q of N <= l there."""
        odds = log_odds.exp()
        found = (Decimal(-1), 0, Decimal(0), Decimal(1))
        for level in levels:
            p, q = self.below(level, (log_odds + (level + 1) * self.epsilon) / (self.draws + 1))
            found = max(found, (p * (1 + Decimal("1e-40")) - odds * q, level, p, q))
        return found

    def below(self, level: int, offset: Decimal) -> tuple[Decimal, Decimal]:
        """Return P(N <= level) and Q(N <= level) at t = offset; an offset beyond epsilon has no high bits left."""
        if offset >= self.epsilon:
            return Decimal(0), Decimal(1)
        x = offset.exp()
        odds = (x - 1) / (1 - self.low * x)  # of a low bit, under Q
        term, sum_p, sum_q = Decimal(1), Decimal(0), Decimal(0)
        for i in range(level + 1):
            sum_p += term * self.powers[i]
            sum_q += term
            term *= odds * self.ratios[i]
        none = ((1 / x - self.low) / (1 - self.low)) ** self.draws
        return none * x**self.draws * sum_p, none * sum_q


def _numbers(epsilons: Iterable[float]) -> list[float | Fraction]:
    """Return a list of checked epsilons."""
    if isinstance(epsilons, str | bytes) or not isinstance(epsilons, Iterable):
        raise TypeError(f"epsilons: expected a sequence of numbers > 0, got {type(epsilons).__name__}.")
    return [number(value, f"epsilons[{index}]") for index, value in enumerate(epsilons)]
