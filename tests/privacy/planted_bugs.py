"""Small mechanisms, right and wrong: what an audit must pass, and what it must catch.

The exponential mechanisms have a uniform prior on an 11 x 11 lattice, so that single candidates have visible mass, and
are written in the three forms in which such samplers are written: directly, as a mixture of boxes, and in rings. They
share no code with the package or with one another, agree without a bug (a test says so), and each takes the name of one
bug. Rows are lattice points.
"""

import itertools

import numpy as np

SIDE = 11
NOISE_GRID = 2**10  # points of the noise in one unit of a count
LATTICE = np.array(list(itertools.product(range(SIDE), repeat=2)), dtype=float)

# Pairs of neighbours that lose nearly all that can be lost. Depth 1/2 on a small box for X, on nearly all the rest for
# Y, so that the depth and the normalising constant each move the density by exp(epsilon / 2).
SMALL_BOX = np.array([[0.0, 0.0], [1.0, 10.0]])
LARGE_BOX = np.array([[10.0, 0.0], [1.0, 10.0]])
# The second level is one lattice point for X and nearly the whole square for Y.
INNER_POINT = np.array([[0.0, 0.0], [10.0, 10.0], [1.0, 1.0], [1.0, 1.0]])
INNER_SQUARE = np.array([[0.0, 0.0], [10.0, 10.0], [1.0, 1.0], [10.0, 10.0]])
# The point (5, 5) has depth 3/4 for X, above one half through ties, and 2/4 for Y.
TIED = np.array([[5.0, 5.0], [5.0, 5.0], [5.0, 5.0], [0.0, 0.0]])
LESS_TIED = np.array([[5.0, 5.0], [5.0, 5.0], [0.0, 0.0], [0.0, 0.0]])


def directly(rows, epsilon, bug=None):
    """Return P(candidate) ∝ exp(beta D), D = min over axes and sides of the share of rows, by counting."""
    n = len(rows)
    le = (rows[None] <= LATTICE[:, None]).sum(axis=1)
    ge = (rows[None] >= LATTICE[:, None]).sum(axis=1)
    depth = np.minimum(le, ge).min(axis=1) / n
    sensitivity = 1 / n
    if bug == "sensitivity halved":
        sensitivity = 1 / (2 * n)
    beta = epsilon / (2 * sensitivity)
    if bug == "beta doubled":
        beta = epsilon / sensitivity
    weights = np.exp(beta * depth)
    return weights / weights.sum()


def box(rows, level):
    """Return which candidates lie between the order statistics `level` from below and from above; all at level 0."""
    if level == 0:
        return np.ones(len(LATTICE), dtype=bool)
    ordered, n = np.sort(rows, axis=0), len(rows)
    return ((LATTICE >= ordered[level - 1]) & (LATTICE <= ordered[n - level])).all(axis=1)


def in_boxes(rows, epsilon, bug=None):
    """Return the mixture of uniform laws on boxes, level l with weight V_l (e^(epsilon l/2) - e^(epsilon (l-1)/2))."""
    n = len(rows)
    last = (n + 1) // 2 if bug == "levels stopped at n/2" else n
    law, total = np.zeros(len(LATTICE)), 0.0
    for level in range(last + 1):
        inside = box(rows, level)
        if not inside.any():
            continue
        weight = inside.mean()
        if level > 0:
            weight *= np.exp(epsilon * level / 2) - np.exp(epsilon * (level - 1) / 2)
        elif bug == "bottom level":
            weight *= 1 - np.exp(-epsilon / 2)
        if bug == "box levels off by one" and level > 0 and box(rows, min(level + 1, n)).any():
            inside = box(rows, min(level + 1, n))  # weighed as level l, drawn in the next box
        law += weight * inside / inside.sum()
        total += weight
    return law / total


def in_rings(rows, epsilon, bug=None):
    """Return the law over rings {D = k/n}, ring k with weight e^(epsilon k/2) (V_k - V_(k+1))."""
    n = len(rows)
    # "n/2 is the largest depth": true without ties. The tied candidates are left out of every ring.
    last = n // 2 if bug == "levels stopped at n/2" else n
    law = np.zeros(len(LATTICE))
    for k in range(last + 1):
        ring = box(rows, k) & ~(box(rows, k + 1) if k < n else np.zeros(len(LATTICE), dtype=bool))
        law += np.exp(epsilon * k / 2) * ring
    return law / law.sum()


def drawn(law, epsilon, bug=None, seed=0):
    """Return a mechanism that draws lattice points from a law."""
    generator = np.random.default_rng(seed)

    def mechanism(table, draws):
        return LATTICE[generator.choice(len(LATTICE), size=draws, p=law(np.asarray(table), epsilon, bug))]

    return mechanism


def laplace(generator, scale, size=None):
    """Return Laplace noise on a grid on which counts lie.

    In bare doubles the set of possible sums depends on the count (I. Mironov, On significance of the least significant
    bits for differential privacy, CCS 2012, doi:10.1145/2382196.2382264), and an audit sees it in the low bits.
    """
    return np.round(generator.laplace(scale=scale, size=size) * NOISE_GRID) / NOISE_GRID


def noisy_count(epsilon, bug=None, seed=0):
    """Return a mechanism: the number of rows left of 5, of sensitivity 1, with Laplace noise of scale 1 / epsilon."""
    generator = np.random.default_rng(seed)
    scale = epsilon if bug == "noise scale inverted" else 1 / epsilon

    def mechanism(table, draws):
        return (np.asarray(table)[:, 0] < 5).sum() + laplace(generator, scale, draws)

    return mechanism


def two_noisy_counts(epsilon, bug=None, seed=0):
    """Return a mechanism: for both columns the number of rows below 5, each with its own noise at epsilon / 2.

    With a reused seed both get the same noise, and their difference is the data's.
    """
    generator = np.random.default_rng(seed)

    def mechanism(table, draws):
        seeds = generator.integers(2**63, size=2)
        if bug == "seed reused":
            seeds[1] = seeds[0]
        noise = [laplace(np.random.default_rng(seed), 2 / epsilon, draws) for seed in seeds]
        return np.stack([(np.asarray(table)[:, j] < 5).sum() + noise[j] for j in (0, 1)], axis=1)

    return mechanism


def one_noisy_count_at_a_time(epsilon, bug=None, seed=0):
    """Return the noisy count as a function that is called once per release; with a reused seed it repeats itself."""
    generator = np.random.default_rng(seed)

    def mechanism(table):
        source = np.random.default_rng(seed) if bug == "seed reused" else generator
        return float((np.asarray(table)[:, 0] < 5).sum() + laplace(source, 1 / epsilon))

    return mechanism


#: Name of the bug, mechanism, X, neighbour, epsilon.
PLANTED = [
    ("beta doubled", lambda *a: drawn(directly, *a), SMALL_BOX, LARGE_BOX, 1.0),
    ("sensitivity halved", lambda *a: drawn(directly, *a), SMALL_BOX, LARGE_BOX, 1.0),
    ("bottom level", lambda *a: drawn(in_boxes, *a), SMALL_BOX, LARGE_BOX, 0.2),
    ("box levels off by one", lambda *a: drawn(in_boxes, *a), INNER_POINT, INNER_SQUARE, 1.0),
    ("levels stopped at n/2", lambda *a: drawn(in_rings, *a), TIED, LESS_TIED, 1.0),
    ("noise scale inverted", noisy_count, SMALL_BOX, LARGE_BOX, 0.25),
    ("seed reused", two_noisy_counts, SMALL_BOX, LARGE_BOX, 1.0),
    ("seed reused", one_noisy_count_at_a_time, SMALL_BOX, LARGE_BOX, 1.0),
]
