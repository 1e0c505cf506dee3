"""Other samplers and compilers of the same models, as extras: they agree with PyMC's own, and leave no row on disk."""

import contextlib
import os
import subprocess
import sys
import textwrap
import zlib
from importlib.util import find_spec

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

import pymc_dpdepth as dpd

ROWS = np.random.default_rng(5).normal(1.0, [1.0, 3.0], size=(40, 2))
DEPTHS = {
    "smoothed": dpd.IntegratedDual(smoothing=5.0),
    "spatial": dpd.Spatial(),
    "custom": dpd.CustomObjective(lambda t, X: pt.exp(-((X - t) ** 2).sum(1)).mean(), lambda n, d: 1 / n),
}

# Samplers


@pytest.mark.parametrize("sampler", ["nutpie", "numpyro"])
@pytest.mark.filterwarnings("ignore::Warning:(nutpie|numpyro|jax|equinox|pymc)")
@pytest.mark.parametrize("name", DEPTHS)
def test_other_nuts_samplers_sample_the_model(name, sampler):
    pytest.importorskip(sampler)
    with pm.Model() as model:
        location = pm.Normal("location", 0, 3, shape=2)
        dpd.exponential_mechanism("median", location, ROWS, depth=DEPTHS[name], epsilon=20.0)
    quiet = {"chains": 2, "cores": 1, "progressbar": False, "compute_convergence_checks": False}
    with model:
        idata, reference = (
            pm.sample(draws=1000, tune=500, nuts_sampler=word, random_seed=3, **quiet) for word in (sampler, "pymc")
        )
    assert set(idata.posterior.data_vars) == {"location"}
    for group in ("constant_data", "observed_data"):
        assert group not in idata.children or not idata[group].data_vars
    # 2,000 draws with some 1,000 effective ones: a standard error of sd / 30 each; 5 of their difference are sd / 4.
    mean, other = (trace.posterior["location"].mean(("chain", "draw")).values for trace in (idata, reference))
    sd = reference.posterior["location"].std(("chain", "draw")).values
    assert (np.abs(mean - other) < sd / 4).all()


# No row on disk

SETUP = """
    import logging, sys
    import numpy as np, pymc as pm, pytensor.tensor as pt
    import pymc_dpdepth as dpd

    logging.basicConfig(level=logging.INFO)
    folder = sys.argv[1]
    rows = np.array([[123456.789012345, 98765.4321098765], [45678.9012345678, 31415.9265358979]])

    def model_of(depth):
        with pm.Model() as model:
            location = pm.Normal("location", 0, [1000, 2000], shape=2)
            dpd.exponential_mechanism("median", location, rows, depth=depth, epsilon=1.0, standardize=None)
        return model

    custom = dpd.CustomObjective(lambda t, X: -pt.mean(pt.minimum(abs(X - t).sum(1), 1.0)), lambda n, d: 1 / n)
    smooth = dpd.IntegratedDual(smoothing=1e-4)
    quiet = {"draws": 5, "tune": 5, "chains": 1, "cores": 1, "progressbar": False, "random_seed": 1}
"""
CACHED = """
    import jax
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
    jax.config.update("jax_traceback_filtering", "off")
"""
WORK = """
    for depth in DEPTHS:
        model, point = model_of(depth), {"location": np.zeros(2)}
        for mode in MODES:
            model.compile_logp(mode=mode)(point)
            if depth.differentiable:
                model.compile_dlogp(mode=mode)(point)
        for sampler in SAMPLERS if depth.differentiable else []:
            with model:
                pm.sample(nuts_sampler=sampler, **quiet)
"""


def run(folder, *parts):
    """Run code whose caches and temporary files go to an empty folder; return its exit code and last line."""
    code = "".join(textwrap.dedent(part) for part in parts)
    flags = f"base_compiledir={folder}/pytensor"
    caches = {"PYTENSOR_FLAGS": flags, "NUMBA_CACHE_DIR": f"{folder}/numba", "TMPDIR": str(folder)}
    done = subprocess.run([sys.executable, "-c", code, str(folder)], env=os.environ | caches, capture_output=True)
    (folder / "printed.txt").write_bytes(done.stdout + done.stderr)
    return done.returncode, done.stderr.decode().strip().split("\n")[-1]


def leaks(folder):
    """Return the files that hold an entry of a row, of either sign; JAX compresses what it keeps."""
    numbers = np.array([123456.789012345, 98765.4321098765, 45678.9012345678, 31415.9265358979])
    needles = [number.tobytes() for number in (*numbers, *-numbers)] + [
        f"{number:.17g}"[:9].encode() for number in numbers
    ]
    found = set()
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            with contextlib.suppress(zlib.error):
                content = zlib.decompress(content)
            found |= {path.name for needle in needles if needle in content}
    return found


@pytest.mark.parametrize("backend", ["jax", "nutpie", "c"])
def test_nothing_of_a_row_is_left_on_disk(tmp_path, backend):
    if backend == "c" and not pytensor.config.cxx:
        pytest.skip("no C compiler")
    # An empty folder makes PyTensor compile its own C code first, most of a minute: left to environments with extras.
    pytest.importorskip({"c": "jax"}.get(backend, backend))
    numpyro = ["numpyro"] if find_spec("numpyro") else []
    modes, samplers, depths = {
        "jax": (["JAX"], numpyro, "dpd.Spatial(), smooth, custom, dpd.Halfspace()"),
        "nutpie": ([], ["nutpie"], "smooth, custom"),
        "c": (["CVM"], [], "custom,"),  # other depths are no C code
    }[backend]
    code, last = run(tmp_path, SETUP, f"\nMODES, SAMPLERS, DEPTHS = {modes}, {samplers}, ({depths})\n", WORK)
    assert code == 0, last
    assert leaks(tmp_path) == set()
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".txt"]


def test_jax_with_a_cache_on_disk_is_refused(tmp_path):
    """Rows that are constants of a JAX program would be written to its persistent cache."""
    pytest.importorskip("jax")
    trace = """
    from pymc.sampling.jax import get_jaxified_logp
    jaxified = get_jaxified_logp(model_of(dpd.Spatial()))
    program = jax.jit(jax.grad(lambda x: jaxified([x])))
    """
    code, last = run(tmp_path, SETUP, CACHED, trace, "\nprogram(np.zeros(2))\n")
    assert code != 0 and "jax_enable_compilation_cache" in last
    assert leaks(tmp_path) == set()
    # Without the refusal they are found there, so the search can find them.
    planted = tmp_path / "planted"
    planted.mkdir()
    allow = "\nfrom pymc_dpdepth import op_jax\nop_jax.refuse_to_store = lambda *arguments: None\n"
    code, last = run(planted, SETUP, CACHED, allow, trace, "\nprogram(np.zeros(2))\n")
    assert code == 0, last
    assert leaks(planted)
