"""How much work a draw does, counted: the same for neighbours and for tables that have nothing in common.

The compiled kernels are run as the Python that they were written in, and every turn of every loop is counted. What may
follow the rows is named here and in docs/limitations.md: sorting, binary search, the multiplications of one power, one
more box where ties reach above n/2, arithmetic that segments skip for places that ties leave empty, and refinements
with more bits. Of these, sorting and searching are NumPy's and not seen here; the others are bounded below.
"""

import ast
import collections
import inspect
import struct
import sys
import textwrap

import numpy as np
import pymc as pm
import pytest

from pymc_dpdepth import bits, grid
from pymc_dpdepth.depths import Directions, Halfspace, IntegratedDual, IntegratedRankWeighted, univariate
from pymc_dpdepth.mechanism import set_up
from pymc_dpdepth.randomness import SeededBits
from pymc_dpdepth.samplers import boxes, cells, choice, segments, weights
from pymc_dpdepth.samplers.exact import plan_exact

MODULES = (univariate, grid, weights, choice, cells, segments, boxes)
INTRINSICS = {
    "float_to_bits": lambda x: struct.unpack("<q", struct.pack("<d", x))[0],
    "bits_to_float": lambda x: struct.unpack("<d", struct.pack("<q", x))[0],
    "fma": lambda a, b, c: a * b + c,
}
REFINEMENTS = ("_choose_exactly", "_draw_exactly", "intervals", "level_intervals")
N = 24


@pytest.fixture
def kernels(monkeypatch):
    """Replace every compiled kernel of the samplers by its Python; return their code objects."""
    found = {}
    for module in MODULES:
        for name, thing in list(vars(module).items()):
            if hasattr(thing, "py_func"):
                monkeypatch.setattr(module, name, thing.py_func)
                found[thing.py_func.__code__] = thing.py_func
            elif name in INTRINSICS and thing is getattr(bits, name):
                monkeypatch.setattr(module, name, INTRINSICS[name])
    return found


def loop_lines(function):
    """Return the lines of a function's `for` and `while` statements."""
    source, start = inspect.getsourcelines(function)
    tree = ast.parse(textwrap.dedent("".join(source)))
    return {node.lineno + start - 1 for node in ast.walk(tree) if isinstance(node, ast.For | ast.While)}


def work_of(plan, rows, kernels, seed=0, draws=1):
    """Return the counts of calls and of turns of loops, by kernel and line, of one draw; and the refinements."""
    turns, lines = collections.Counter(), {code: loop_lines(function) for code, function in kernels.items()}
    refinements = collections.Counter()

    def trace(frame, event, argument):
        code = frame.f_code
        if event == "call" and code.co_name in REFINEMENTS:
            refinements[code.co_name] += 1
        if code not in lines:
            return None
        if event == "call":
            turns[code.co_name] += 1
        elif event == "line" and frame.f_lineno in lines[code]:
            turns[code.co_name, frame.f_lineno - code.co_firstlineno] += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        plan.draw(rows, SeededBits(seed), draws)
    finally:
        sys.settrace(before)
    return turns, refinements


def tables(d):
    """Return tables of one size: two neighbours, tied ones, spread ones, and rows beyond the prior's last cells."""
    generator = np.random.default_rng(1)
    rows = generator.normal(size=(N, d))
    neighbour = rows.copy()
    neighbour[7] = -3.0
    return {
        "rows": rows,
        "neighbour": neighbour,
        "all tied": np.full((N, d), 0.3),
        "two values": np.repeat([[0.0] * d, [5.0] * d], N // 2, axis=0),
        "spread": 10.0 ** generator.uniform(-8, 1, size=(N, d)),
        "outside": np.full((N, d), 1e12) * generator.choice([-1, 1], size=(N, 1)),
        "descending": -np.sort(-rows, axis=0),
    }


CASES = {
    "segments": (Halfspace("axes"), 1),
    "segments of the dual": (IntegratedDual(), 1),
    "boxes": (Halfspace("axes"), 3),
    "rotated boxes": (Halfspace(directions=Directions.orthonormal(3)), 3),
    "products": (IntegratedRankWeighted(directions=Directions.orthonormal(2)), 2),
}
# Calls that ties make or spare: see the tests below.
FOLLOW_TIES = {"scaled_power", "mass", "normalise", "lower_edge", "box_masses"}


def works(name, kernels):
    depth, d = CASES[name]
    settings, product, _ = set_up("m", pm.Normal.dist(0, 2, shape=d), np.zeros((N, d)), depth=depth, epsilon=1.0)
    plan = plan_exact(settings, product)
    plan.base.table  # public, and kept
    return plan, {table: work_of(plan, rows, kernels) for table, rows in tables(d).items()}


def kernel_of(key):
    return key if isinstance(key, str) else key[0]


@pytest.mark.parametrize("name", CASES)
def test_every_loop_turns_as_often_for_every_table(name, kernels):
    _, counted = works(name, kernels)
    plain = {
        table: {key: count for key, count in turns.items() if kernel_of(key) not in FOLLOW_TIES}
        for table, (turns, _) in counted.items()
    }
    first = plain["rows"]
    assert sum(first.values()) > 20 * N
    for table, turns in plain.items():
        assert turns == first, table


@pytest.mark.parametrize("name", ["boxes", "rotated boxes"])
def test_boxes_do_the_same_arithmetic_and_one_more_box_for_ties(name, kernels):
    plan, counted = works(name, kernels)
    half = (N + 1) // 2
    # n/2 levels of d sides each, the powers of levels 0, ..., n/2, and the median's cell where ties reach above n/2.
    for table, (turns, _) in counted.items():
        extra = turns["box_masses"] - 1
        assert extra == (boxes.tied_level(np.sort(plan.frame.keys(tables(3)[table]), axis=1)) > half)
        sides = turns["mass"]
        assert sides == 3 * (half + extra)
        assert turns["scaled_power"] == half + 1


def test_segments_skip_the_arithmetic_of_empty_places_alone(kernels):
    plan, counted = works("segments", kernels)
    for table, (turns, _) in counted.items():
        keys = np.sort(plan.frame.keys(tables(1)[table]), axis=1)[0]
        first, last = segments.segments_of(keys)
        assert turns["mass"] == (last >= first).sum() <= 2 * N + 1
        assert turns["scaled_power"] <= turns["mass"]
    # Rows that are all different leave no atom empty, and every gap between neighbours in the order has cells.
    assert counted["rows"][0]["mass"] == counted["neighbour"][0]["mass"] == counted["spread"][0]["mass"] == 2 * N + 1


@pytest.mark.parametrize("name", CASES)
def test_a_power_takes_at_most_as_many_turns_as_its_count_has_binary_digits(name, kernels):
    plan, counted = works(name, kernels)
    largest = N * N if "dual" in name else N
    for turns, _ in counted.values():
        loops = sum(count for key, count in turns.items() if isinstance(key, tuple) and key[0] == "scaled_power")
        # The loop's line is met once more at its end.
        assert loops <= turns["scaled_power"] * (largest.bit_length() + 1)


def test_refinements_are_rare(kernels):
    settings, product, rows = set_up(
        "m", pm.Normal.dist(0, 2, shape=2), tables(2)["rows"], depth=Halfspace("axes"), epsilon=1.0
    )
    plan = plan_exact(settings, product)
    _, refinements = work_of(plan, rows, kernels, draws=500)
    # A cell has 2^-40 of its binade and the words show 53 bits: one in some thousand to some ten draws, by the box.
    assert refinements["_choose_exactly"] == 0 and refinements["_draw_exactly"] <= 150


def test_the_count_sees_a_loop_that_follows_the_rows(kernels, monkeypatch):
    def until_the_middle(keys, code):
        turned = 0
        while turned < keys.size and keys[turned] < grid.FIRST_UPPER_KEY:
            turned += 1
        return original(keys, code)

    original = segments.segment_counts
    monkeypatch.setattr(segments, "segment_counts", until_the_middle)
    _, counted = works("segments", kernels | {until_the_middle.__code__: until_the_middle})
    loops = {
        table: sum(count for key, count in turns.items() if isinstance(key, tuple) and key[0] == "until_the_middle")
        for table, (turns, _) in counted.items()
    }
    assert len(set(loops.values())) > 1
