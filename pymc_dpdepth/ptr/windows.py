"""How far median and scale can move when k rows are replaced: nested windows from order statistics.

Every window holds the statistic of each table within k rows of x, and the window for k is inside the one for k + 1 of
any neighbour of x (proofs in docs/propose_test_release.md). `x` is always ascending; beyond its ends the order
statistics are minus and plus infinity, since replaced rows may be anywhere.
"""

from __future__ import annotations

import numba
import numpy as np

__all__ = [
    "IQR",
    "MAD",
    "ball_diameter",
    "direction_windows",
    "iqr_window",
    "mad_window",
    "median_window",
    "point_diameter",
]

MAD, IQR = 0, 1
# A unit vector as it is computed is longer than 1 by a few roundings at most.
REACH = 1.0 + 2.0**-40
WIDENING = 2.0**-50  # of the window of a MAD, for each replaced row: more than its roundings
QUARTERS = 4


@numba.njit(cache=True, nogil=True)
def _at(x, i):
    """Return the order statistic at position i, counted from 0."""
    if i < 0:
        return -np.inf
    if i >= x.size:
        return np.inf
    return x[i]


@numba.njit(cache=True, nogil=True)
def median_window(x, k):
    """Return the smallest and the largest median of the tables within k rows; -inf and inf where there is none."""
    low, high = (x.size - 1) // 2, x.size // 2
    return 0.5 * (_at(x, low - k) + _at(x, high - k)), 0.5 * (_at(x, low + k) + _at(x, high + k))


@numba.njit(cache=True, nogil=True)
def _middle_reaches(x, y, c, strictly):
    """Whether (x + y) / 2 >= c (> c if strictly), decided without an error of rounding.

    The rounded sum decides unless it equals 2 c; then what rounding took off does (Knuth's sum in two parts).
    """
    total = x + y
    if total != 2.0 * c:
        return total > 2.0 * c
    part = total - x
    rest = (x - (total - part)) + (y - part)
    return rest > 0.0 or (rest == 0.0 and not strictly)


@numba.njit(cache=True, nogil=True)
def _first_middle(x, span, count, c, strictly):
    """Return the first i < count with (x[i] + x[i + span]) / 2 >= c (> c if strictly), else count; they ascend."""
    low, high = 0, count
    while low < high:
        i = (low + high) // 2
        if _middle_reaches(x[i], x[i + span], c, strictly):
            high = i
        else:
            low = i + 1
    return low


@numba.njit(cache=True, nogil=True)
def _twice_smallest_reach(x, j, a, b):
    """Return twice the least distance within which a center in [a, b] has j rows: min over c of the j-th distance.

    The j rows nearest to c are neighbours x[i], ..., x[i + j - 1], so the distance is the least over i of
    max(c - x[i], x[i + j - 1] - c). Each of these is smallest at the middle of its rows; where that lies left of a it
    is a - x[i] at best, least for the last such i, and likewise on the right. Twice, since a half may be rounded.
    """
    if j < 1:
        return 0.0
    if j > x.size:
        return np.inf
    count = x.size - j + 1
    first, after = _first_middle(x, j - 1, count, a, False), _first_middle(x, j - 1, count, b, True)
    best = np.inf
    if first > 0:
        best = 2.0 * (a - x[first - 1])
    if after < count:
        best = min(best, 2.0 * (x[after + j - 1] - b))
    for i in range(first, after):
        best = min(best, x[i + j - 1] - x[i])
    return best


@numba.njit(cache=True, nogil=True)
def _reach(x, j, c):
    """Return the j-th smallest distance of the rows from c, 1 <= j <= n."""
    i = _first_middle(x, j, x.size - j, c, False)
    return max(c - x[i], x[i + j - 1] - c)


@numba.njit(cache=True, nogil=True)
def _twice_largest_reach(x, j, a, b):
    """Return twice the largest j-th distance from a center in [a, b].

    As a function of c the j-th distance has slopes 1 and -1; it turns from rising to falling where the row that leaves
    the nearest j and the one that enters are equally far, at (x[i] + x[i + j]) / 2, and its value there is half their
    distance. So the maximum is at one of these breakpoints or at an end.
    """
    if j > x.size or np.isinf(a) or np.isinf(b):
        return np.inf
    best = 2.0 * max(_reach(x, j, a), _reach(x, j, b))
    count = x.size - j
    for i in range(_first_middle(x, j, count, a, False), _first_middle(x, j, count, b, True)):
        best = max(best, x[i + j] - x[i])
    return best


@numba.njit(cache=True, nogil=True)
def mad_window(x, k):
    """Return bounds of the median absolute deviation from the median of the tables within k rows.

    Its center lies in the median's window, and from every center the j-th distance of such a table lies between the
    (j-k)-th and the (j+k)-th of x.

    The four distances are each rounded once, wherever their extreme is attained, so that windows of neighbours might
    cross by a part in 2^52. Each is widened by k parts in 2^50: one more part for the next k than covers that. So the
    windows as computed are nested to the bit.
    """
    a, b = median_window(x, k)
    low, high = (x.size - 1) // 2 + 1, x.size // 2 + 1
    wider = 1.0 + k * WIDENING
    smallest = _twice_smallest_reach(x, low - k, a, b) / wider + _twice_smallest_reach(x, high - k, a, b) / wider
    largest = _twice_largest_reach(x, low + k, a, b) * wider + _twice_largest_reach(x, high + k, a, b) * wider
    return smallest / QUARTERS, largest / QUARTERS


@numba.njit(cache=True, nogil=True)
def _quartile(x, quarter, shift):
    """Return a quartile by linear interpolation at (n-1) quarter / 4, its order statistics moved by `shift`."""
    position = (x.size - 1) * quarter
    i, part = position // QUARTERS, (position % QUARTERS) / QUARTERS
    if part == 0.0:
        return _at(x, i + shift)
    return (1.0 - part) * _at(x, i + shift) + part * _at(x, i + 1 + shift)


@numba.njit(cache=True, nogil=True)
def iqr_window(x, k):
    """Return bounds of the interquartile range of the tables within k rows.

    A replaced row moves the two quartiles apart by one place of one of them, or together likewise, never one place of
    both: the ends are attained at a split of k between the quartiles.
    """
    apart = ((x.size - 1) * 3) // QUARTERS - (x.size - 1) // QUARTERS  # places from the first to the third quartile
    if apart < 2:
        smallest, largest = _quartile(x, 3, -k) - _quartile(x, 1, k), _quartile(x, 3, k) - _quartile(x, 1, -k)
        return max(0.0, smallest), max(0.0, largest)  # interpolation of subnormal numbers may lose their order
    smallest, largest = np.inf, 0.0
    for low in range(k + 1):
        smallest = min(smallest, _quartile(x, 3, low - k) - _quartile(x, 1, low))
        largest = max(largest, _quartile(x, 3, k - low) - _quartile(x, 1, -low))
    return (0.0 if k > apart - 2 else max(0.0, smallest)), largest


@numba.njit(cache=True, nogil=True)
def direction_windows(ordered, k, scale):
    """Return the windows of median and scale along each direction.

    Parameters
    ----------
    ordered : ndarray of float64, shape (m, n)
        Projections, ascending along each direction.
    k : int
        Replaced rows; 0 gives the statistics themselves, twice.
    scale : {MAD, IQR}

    Returns
    -------
    ndarray of float64, shape (m, 4)
        Smallest and largest median, smallest and largest scale.
    """
    windows = np.empty((ordered.shape[0], 4))
    for u in range(ordered.shape[0]):
        windows[u, 0], windows[u, 1] = median_window(ordered[u], k)
        if scale == MAD:
            windows[u, 2], windows[u, 3] = mad_window(ordered[u], k)
        else:
            windows[u, 2], windows[u, 3] = iqr_window(ordered[u], k)
    return windows


@numba.njit(cache=True, nogil=True)
def _quotient(distance, scale):
    """Return an outlyingness; none at distance 0 and, like 1/0, infinite where the scale alone is 0."""
    if distance <= 0.0:
        return 0.0
    if scale <= 0.0:
        return np.inf
    return distance / scale


@numba.njit(cache=True, nogil=True)
def _highest(t, window, cap):
    """Return the largest capped outlyingness at t along one direction, over medians and scales in the windows."""
    return min(cap, _quotient(max(t - window[0], window[1] - t), window[2]))


@numba.njit(cache=True, nogil=True)
def _lowest(t, window, cap):
    """Return the smallest one."""
    return min(cap, _quotient(max(window[0] - t, t - window[1]), window[3]))


@numba.njit(cache=True, nogil=True)
def _is_open(window):
    """Whether a window is unbounded, or reaches a scale of 0: then the outlyingness can be anything up to the cap."""
    return window[2] <= 0.0 or np.isinf(window[0]) or np.isinf(window[1])


@numba.njit(cache=True, nogil=True)
def ball_diameter(windows, cap):
    """Return an upper bound of how far the capped outlyingness of two tables differs, over the unit ball.

    |max_u O_u - max_u O'_u| <= max_u |O_u - O'_u|, and along one direction, at t in [-1, 1], both values lie between
    `_lowest` and `_highest`. Right of the windows' middle their difference rises until the highest value meets the cap,
    at t = a + cap * (smallest scale), and does not rise afterwards; left of it likewise. Where that is inside the ball
    the highest value is the cap, and not what a division makes of it: so the bound does not fall as windows grow.
    """
    largest = 0.0
    for u in range(windows.shape[0]):
        window = windows[u]
        if _is_open(window):
            return cap
        room = cap * window[2]
        right, left = window[0] + room, window[1] - room
        t = min(max(right, -REACH), REACH)
        highest = cap if right <= REACH else _highest(t, window, cap)
        largest = max(largest, highest - _lowest(t, window, cap))
        t = min(max(left, -REACH), REACH)
        highest = cap if left >= -REACH else _highest(t, window, cap)
        largest = max(largest, highest - _lowest(t, window, cap))
    return largest


@numba.njit(cache=True, nogil=True)
def point_diameter(windows, targets, cap):
    """Return an upper bound of how far the capped outlyingness of two tables differs at the worst of some points.

    At one point both maxima over directions lie between the maximum of the lowest and that of the highest values.

    Parameters
    ----------
    windows : ndarray, shape (m, 4)
    targets : ndarray, shape (p, m)
        Projections of the points.
    cap : float
    """
    largest = 0.0
    for p in range(targets.shape[0]):
        low = high = 0.0
        for u in range(windows.shape[0]):
            if _is_open(windows[u]):
                high = cap
            else:
                high = max(high, _highest(targets[p, u], windows[u], cap))
            low = max(low, _lowest(targets[p, u], windows[u], cap))
        largest = max(largest, high - low)
    return largest
