"""No row on disk, in a trace or in a message.

A process with fresh caches runs every front door on a table of recognisable numbers. Then all bytes that it left
behind are searched for every number of the table, and for every number that only the table could have given (its
standardised, projected and sorted forms), as doubles of either byte order and as decimal text.
"""

import os
import pickle
import subprocess
import sys
import textwrap
import traceback

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import pymc_dpdepth as dpd
from pymc_dpdepth.mechanism import read_mechanisms

SENTINELS = [
    [123456.789012345, 98765.4321098765],
    [45678.9012345678, 31415.9265358979],
    [27182.8182845904, 16180.3398874989],
]
DIGITS = 8  # of a decimal text; the numbers of one run that are no rows do not share so many with one

SETUP = f"""
    import logging, pickle, sys, warnings
    import numpy as np, pymc as pm, pytensor, pytensor.tensor as pt
    import pymc_dpdepth as dpd

    logging.basicConfig(level=logging.DEBUG)
    rows, folder = np.array({SENTINELS!r}), sys.argv[1]
"""
WORK = """
    warnings.simplefilter("ignore", dpd.PrivacyLeakWarning)
    warnings.simplefilter("ignore", dpd.ApproximateSamplingWarning)

    def model_of(depth):
        with pm.Model(coords={"coordinate": ["a", "b"]}) as model:
            location = pm.Normal("location", 0, [1000, 2000], dims="coordinate")
            dpd.exponential_mechanism("median", location, rows, depth=depth, epsilon=1.0)
        return model

    custom = dpd.CustomObjective(lambda t, X: -pt.mean(pt.minimum(abs(X - t).sum(1), 1.0)), lambda n, d: 1 / n)
    rotated = dpd.Directions.orthonormal(2, seed=1)
    smooth = dpd.IntegratedDual(smoothing=1.0, directions=rotated)
    depths = [dpd.Halfspace(), dpd.IntegratedDual(directions=rotated), custom, smooth]
    short = {"draws": 5, "tune": 5, "chains": 1, "cores": 1, "progressbar": False, "nuts_sampler": "pymc"}
    traces = []
    for depth in depths:
        model = model_of(depth)
        point = {"location": np.zeros(2)}
        model.compile_logp()(point), model.compile_logp(mode="FAST_COMPILE")(point)
        print(model, model.str_repr(), model["median"], pytensor.dprint(model.logp(), file="str", print_type=True))
        if depth.differentiable:
            model.compile_dlogp()(point)
        if depth is smooth:
            with model:
                traces.append(pm.sample(random_seed=1, **short))
        if not depth.differentiable:
            traces.append(dpd.sample_exact(20, model=model, random_seed=1))
            dpd.release(model, random_seed=1).to_json(f"{folder}/release_{len(traces)}.json")
    with model_of("halfspace"):
        traces.append(pm.sample(random_seed=1, **short))
        traces.append(pm.sample_smc(draws=5, chains=1, cores=1, progressbar=False, random_seed=1))
    dpd.private_median(rows, epsilon=1.0, prior="normal(0, 1000)", random_seed=1).to_json(f"{folder}/median.json")
    dpd.private_median(rows, epsilon=1.0, prior=pm.Kumaraswamy.dist(1, 2, shape=2), random_seed=1)
    trees = [{name: group.to_dataset().to_dict() for name, group in trace.children.items()} for trace in traces]
    with open(f"{folder}/traces.pickle", "wb") as file:
        pickle.dump(trees, file)
"""
PLANTED = """
    with pm.Model() as model:
        location = pm.Normal("location", 0, 1000, shape=2)
        pm.Potential("careless", -pt.mean(abs(pt.constant(rows) - location)))
    model.compile_logp()({"location": np.zeros(2)})
"""


def run(folder, *parts):
    """Run code with caches and output in an empty folder; return what it printed."""
    code = "".join(textwrap.dedent(part) for part in parts)
    caches = {"PYTENSOR_FLAGS": f"base_compiledir={folder}/pytensor", "NUMBA_CACHE_DIR": f"{folder}/numba"}
    done = subprocess.run([sys.executable, "-c", code, str(folder)], env=os.environ | caches, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    (folder / "printed.txt").write_bytes(done.stdout + done.stderr)


def private_numbers():
    """Return the table's numbers, and those made of it that enter a graph."""
    rows = np.array(SENTINELS)
    numbers = [rows]
    rotated = dpd.Directions.orthonormal(2, seed=1)
    for depth in (dpd.Halfspace(), dpd.IntegratedDual(smoothing=1.0, directions=rotated)):
        with pm.Model():
            location = pm.Normal("location", 0, [1000, 2000], shape=2)
            dpd.exponential_mechanism("median", location, rows, depth=depth, epsilon=1.0)
            (mechanism,) = read_mechanisms(pm.modelcontext(None))
        standardised = (rows - mechanism.settings.center) / np.array(mechanism.settings.scale)
        numbers += [standardised, *(a for a in depth.prepare(standardised) if a.shape[-1] == len(rows))]
    flat = np.unique(np.concatenate([np.ravel(array) for array in numbers]))
    return flat[np.abs(flat) > 3]  # factors that are 0, 1 or public


def patterns(numbers):
    found = {}
    for number in numbers:
        for dtype in ("<f8", ">f8"):
            found[np.array(number, dtype=dtype).tobytes()] = f"{number} as {dtype}"
        text = f"{abs(number):.17g}"
        found[text[: DIGITS + 1].encode()] = f"{number} as text"
    return found


def leaks(folder, needles):
    """Return the files that hold a needle."""
    found = set()
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            found |= {(path.name, what) for needle, what in needles.items() if needle in content}
    return found


def test_nothing_of_a_row_is_left_on_disk(tmp_path):
    run(tmp_path, SETUP, WORK)
    numbers = private_numbers()
    assert len(numbers) > 20
    assert leaks(tmp_path, patterns(numbers)) == set()
    # The search looked at something: compiled code of both kinds, the records and the traces.
    for suffix in ("numba/**/*.nbc", "pytensor/**/*.nbc", "*.json"):
        assert list(tmp_path.glob(suffix)), suffix
    trees = pickle.loads((tmp_path / "traces.pickle").read_bytes())
    assert len(trees) == 5
    for tree in trees:
        held = {name for name, group in tree.items() if group["data_vars"]}  # PyMC may add a group without variables
        assert held <= {"posterior", "sample_stats"}
        assert set(tree["posterior"]["data_vars"]) == {"location"}


def test_a_constant_in_a_graph_would_be_found(tmp_path):
    run(tmp_path, SETUP, PLANTED)
    found = leaks(tmp_path, patterns(np.ravel(SENTINELS)))
    assert any("<f8" in what for _, what in found)


@pytest.mark.parametrize("number", [SENTINELS[0][0], -SENTINELS[1][1]])
@pytest.mark.parametrize("dtype", ["<f8", ">f8", "text", "json"])
def test_every_form_would_be_found(tmp_path, number, dtype):
    forms = {"text": str(number).encode(), "json": f'[{number}, "x"]'.encode()}
    content = forms[dtype] if dtype in forms else np.array([0.0, number], dtype=dtype).tobytes()
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "file.bin").write_bytes(b"before" + content + b"after")
    assert leaks(tmp_path, patterns([number]))
    assert not leaks(tmp_path, patterns([number * 1.5]))


# Messages

ROWS = np.array(SENTINELS)
NAMED = pd.DataFrame(ROWS, columns=["age", "income"])
BROKEN = np.where(ROWS == ROWS[1, 1], np.nan, ROWS)
TEXT = NAMED.astype(object).where(NAMED != ROWS[0, 0], "123456.789012345 euro")
PRIOR = "normal(0, 1000)"


def median(data=ROWS, **options):
    return dpd.private_median(data, **({"epsilon": 1.0, "prior": PRIOR} | options))


def written(name, text):
    def call(tmp_path):
        (tmp_path / name).write_text(text)
        return median(tmp_path / name)

    return call


def in_model(build):
    def call(tmp_path):
        with pm.Model() as model:
            location = pm.Normal("location", 0, 1000, shape=2)
            dpd.exponential_mechanism("median", location, ROWS, epsilon=1.0)
            build(model)
        return dpd.release(model)

    return call


BAD = {
    "nan": lambda tmp_path: median(BROKEN),
    "infinite": lambda tmp_path: median(np.where(np.isnan(BROKEN), np.inf, BROKEN)),
    "text": lambda tmp_path: median(TEXT),
    "text rows": lambda tmp_path: median([["123456.789012345", 1.0], ["x", 2.0]]),
    "text array": lambda tmp_path: median(ROWS.astype(str)),
    "bytes": lambda tmp_path: median(ROWS.tobytes()),
    "complex": lambda tmp_path: median(ROWS + 0j),
    "ragged": lambda tmp_path: median([[123456.789012345], [98765.4321098765, 2.0]]),
    "dates": lambda tmp_path: median(ROWS.astype("datetime64[s]")),
    "objects": lambda tmp_path: median([[{"salary": 123456.789012345}, 1.0]]),
    "dict": lambda tmp_path: median({"age": ROWS[:, 0].tolist()}),
    "categories": lambda tmp_path: median(NAMED.astype(str).astype("category")),
    "one number": lambda tmp_path: median(ROWS[0, 0]),
    "too many axes": lambda tmp_path: median(ROWS[None]),
    "csv text": written("a.csv", "age,income\n123456.789012345x,1\n2,3\n"),
    "csv ragged": written("b.csv", "age,income\n123456.789012345,1\n98765.4321098765\n1,2,31415.9265358979\n"),
    "csv without header": written("c.csv", "123456.789012345,1\n,2\n"),
    "csv missing": written("d.csv", "age,income\n123456.789012345,\n98765.4321098765,2\n"),
    "csv quotes": written("e.csv", 'age,income\n"123456.789012345,1\n2,3\n'),
    "not parquet": written("f.parquet", "123456.789012345"),
    "prior too long": lambda tmp_path: median(prior=["normal(0, 1)"] * 3),
    "prior is the table": lambda tmp_path: median(prior=ROWS),
    "prior is a frame": lambda tmp_path: median(prior=NAMED),
    "epsilon is the table": lambda tmp_path: median(epsilon=ROWS),
    "depth is the table": lambda tmp_path: median(depth=ROWS),
    "ledger is the table": lambda tmp_path: median(ledger=ROWS),
    "directions of another d": lambda tmp_path: median(directions=np.eye(3)),
    "nuts": lambda tmp_path: median(sampler="nuts", accept_asymptotic=True),
    "chain": lambda tmp_path: median(depth=dpd.IntegratedDual(smoothing=1.0), sampler="nuts"),
    "sampler": lambda tmp_path: median(sampler="segments"),
    "release of the table": lambda tmp_path: dpd.release(ROWS, model=ROWS),
    "record of the table": lambda tmp_path: dpd.Release.from_dict({"rows": ROWS.tolist()}),
    "foreign observed": in_model(lambda model: pm.Normal("seen", 0, 1, observed=ROWS[:, 0])),
    "foreign potential": in_model(lambda model: pm.Potential("extra", (ROWS * model["location"]).sum())),
    "misuse": in_model(lambda model: pm.Potential("again", 2 * model["median"])),
    "wrong width": in_model(lambda model: dpd.exponential_mechanism("b", pm.Normal("l", shape=3), ROWS, epsilon=1.0)),
    "swapped": in_model(lambda model: dpd.exponential_mechanism("b", ROWS, model["location"], epsilon=1.0)),
    "depth points": lambda tmp_path: dpd.Halfspace().evaluate(BROKEN, ROWS),
    "depth rows": lambda tmp_path: dpd.Halfspace().evaluate(ROWS, BROKEN),
    "depth text": lambda tmp_path: dpd.Halfspace().evaluate(ROWS, TEXT),
    "depth widths": lambda tmp_path: dpd.Halfspace().evaluate(ROWS[:, :1], ROWS),
    "depth gradient": lambda tmp_path: dpd.Halfspace().value_and_gradient(ROWS, ROWS),
}
STARTS = ("123456", "98765.4", "98,765", "45678.9", "31415.9", "27182.8", "16180.3", "1.2345", "9.8765")


@pytest.mark.parametrize("name", BAD)
def test_no_message_shows_a_row(name, tmp_path):
    with pytest.raises(Exception) as caught:  # noqa: PT011
        BAD[name](tmp_path)
    # Messages of the error and of all that led to it, as a user would see them; not the lines of this file.
    shown = [str(caught.value), repr(caught.value)]
    error = caught.value
    while error is not None:
        shown += traceback.format_exception_only(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    text = "\n".join(shown)
    assert not [start for start in STARTS if start in text], text


def test_a_message_with_a_row_would_be_noticed():
    shown = f"{ROWS} {ROWS.tolist()} {ROWS[0, 0]!r} {ROWS[0, 0]:.3f} {NAMED}"
    assert all(any(start in part for start in STARTS) for part in (str(ROWS), str(ROWS.tolist()), str(NAMED), shown))
