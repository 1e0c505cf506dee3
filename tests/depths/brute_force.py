"""Depths straight from their definitions, in pure Python: no NumPy, no sorting, no code of the package.

`exact_dot` is rational arithmetic on the doubles as they are. `double_dot` is the documented rule for a computed
projection: clamp to 2^256, multiply, add from the first coordinate to the last, in IEEE doubles.
"""

from decimal import Decimal, localcontext
from fractions import Fraction

CLAMP = 2.0**256
DIGITS = 60


def exact_dot(row, u):
    return sum((Fraction(float(x)) * Fraction(float(w)) for x, w in zip(row, u, strict=True)), Fraction(0))


def double_dot(row, u):
    if sum(w != 0 for w in u) == 1:
        return next(float(w) * float(x) for x, w in zip(row, u, strict=True) if w != 0)
    total = 0.0
    for x, w in zip(row, u, strict=True):
        total = total + float(w) * max(-CLAMP, min(CLAMP, float(x)))
    return total


def count_pair(point, rows, u, dot):
    t = dot(point, u)
    z = [dot(row, u) for row in rows]
    return sum(1 for v in z if v <= t), sum(1 for v in z if v >= t)


def halfspace(point, rows, directions, dot=exact_dot):
    if not len(rows):
        return Fraction(0)
    return Fraction(min(min(count_pair(point, rows, u, dot)) for u in directions), len(rows))


def integrated_rank_weighted(point, rows, directions, dot=exact_dot):
    if not len(rows):
        return Fraction(0)
    total = sum(min(count_pair(point, rows, u, dot)) for u in directions)
    return Fraction(total, len(rows) * len(directions))


def integrated_dual(point, rows, directions, dot=exact_dot):
    if not len(rows):
        return Fraction(0)
    total = Fraction(0)
    for u in directions:
        le, ge = count_pair(point, rows, u, dot)
        total += Fraction(le * ge, len(rows) ** 2)
    return total / len(directions)


STEP_DEPTHS = {
    "halfspace": halfspace,
    "integrated_rank_weighted": integrated_rank_weighted,
    "integrated_dual": integrated_dual,
}


def as_decimal(fraction):
    return Decimal(fraction.numerator) / Decimal(fraction.denominator)


def smoothed_dual(point, rows, directions, s):
    """Return the value in DIGITS decimal digits; the point may hold Fractions."""
    with localcontext() as context:
        context.prec = DIGITS
        total = Decimal(0)
        for u in directions:
            weights = [Fraction(float(w)) for w in u]
            t = sum((Fraction(x) * w for x, w in zip(point, weights, strict=True)), Fraction(0))
            share = Decimal(0)
            for row in rows:
                exponent = as_decimal(Fraction(s) * (t - exact_dot(row, u)))
                share += 1 / (1 + (-exponent).exp())
            share /= len(rows)
            total += share * (1 - share)
        return total / len(directions)


def smoothed_dual_gradient(point, rows, directions, s):
    """Return central differences of `smoothed_dual`, so small a step that only the double rounding of the kernel is
    left.

    The step h is 1e-15 / s; the truncation error is of order s (s h)^2 = 1e-30 s, the cancellation 10^-DIGITS / h.
    """
    h = Fraction(1, 10**15) / Fraction(s)
    point = [Fraction(float(x)) for x in point]
    gradient = []
    for j in range(len(point)):
        up, down = list(point), list(point)
        up[j] += h
        down[j] -= h
        difference = smoothed_dual(up, rows, directions, s) - smoothed_dual(down, rows, directions, s)
        gradient.append(float(difference / as_decimal(2 * h)))
    return gradient


def median(values):
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def quantile(values, p):
    """Return the quantile by linear interpolation between the order statistics at (n - 1) p."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * Fraction(p)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def projection(point, rows, directions, scale):
    if not len(rows):
        return 0.0
    largest = Fraction(0)
    for u in directions:
        z = [exact_dot(row, u) for row in rows]
        center = median(z)
        if scale == "mad":
            spread = median([abs(v - center) for v in z])
        else:
            spread = quantile(z, Fraction(3, 4)) - quantile(z, Fraction(1, 4))
        distance = abs(exact_dot(point, u) - center)
        if distance and not spread:
            return 0.0
        if distance:
            largest = max(largest, distance / spread)
    return float(1 / (1 + largest))
