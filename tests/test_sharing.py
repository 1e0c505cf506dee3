"""Trees that can be written, and trees that may leave: nothing of a row, a draw or a statistic is in the latter."""

import json
import pickle
from importlib import metadata

import arviz_base
import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_dpdepth as dpd
from pymc_dpdepth.sharing import strip_private, writable

SENTINELS = np.array([[123456.789012345, 98765.4321098765], [45678.9012345678, 31415.9265358979]])
LABEL = "sentinel person 77"  # a coordinate of something that is no location


def rows():
    return np.vstack([SENTINELS, np.random.default_rng(0).normal(size=(20, 2))])


def model_of(**options):
    with pm.Model(coords={"coordinate": ["age", "height"], "person": [LABEL, "another"]}) as model:
        location = pm.Normal("location", 0, [1e5, 2e5], dims="coordinate")
        dpd.exponential_mechanism("median", location, rows(), epsilon=1.25, **options)
        pm.Normal("secret_name", 0, 1, dims="person")
    return model


def ragged(lists):
    """Return what PyMC stores for chains with different numbers of stages: a vector of lists."""
    array = np.empty(len(lists), dtype=object)
    array[:] = lists
    return array


EXPONENTS = [[0.25, 1.0], [0.125, 0.5, 1.0]]
EVIDENCES = [[np.nan, -1.5], [np.nan, np.nan, -2.5]]


def smc_stats(shape):
    """Return statistics in the three shapes of `pm.sample_smc`."""
    if shape == "one chain":
        return xr.Dataset({"beta": ("chain", EXPONENTS[0]), "log_marginal_likelihood": ("chain", EVIDENCES[0])})
    if shape == "ragged":
        parts = {"beta": ragged(EXPONENTS), "log_marginal_likelihood": ragged(EVIDENCES)}
        return xr.Dataset({name: ("chain", part) for name, part in parts.items()})
    parts = {"beta": [EXPONENTS[1]] * 2, "log_marginal_likelihood": [EVIDENCES[1]] * 2}
    tables = {name: (("chain", f"{name}_dim_0"), np.array(part, dtype=object)) for name, part in parts.items()}
    return xr.Dataset(tables, coords={"beta_dim_0": [0, 1, 2]}, attrs={"threshold": 0.5, "_t_sampling": 3.25})


def draws(chains=2):
    """Return a tree with private things wherever a tree can hold them."""
    generator = np.random.default_rng(1)
    posterior = {
        "location": generator.normal(size=(chains, 30, 2)),
        "secret_name": generator.normal(size=(chains, 30, 2)),
    }
    tree = arviz_base.from_dict(
        {"posterior": posterior, "observed_data": {"table": SENTINELS}, "constant_data": {"also": SENTINELS}},
        coords={"coordinate": ["age", "height"], "person": [LABEL, "another"]},
        dims={"location": ["coordinate"], "secret_name": ["person"]},
    )
    tree["posterior"].attrs |= {"inference_library": "pymc", "inference_library_version": metadata.version("pymc")}
    tree["posterior"].attrs |= {"sampling_time": SENTINELS[0, 0], "note": f"{SENTINELS[0, 1]}"}
    tree["sample_stats"] = smc_stats("table" if chains > 1 else "one chain")
    tree.attrs["table"] = SENTINELS.ravel()
    return tree


def needles():
    """Return what must not be found: the sentinels and draws, as doubles of either order and as text."""
    numbers = np.concatenate([SENTINELS.ravel(), draws().posterior["location"].values.ravel()])
    found = {LABEL.encode()}
    for number in numbers:
        found |= {np.array(number, dtype="<f8").tobytes(), np.array(number, dtype=">f8").tobytes()}
        found.add(f"{abs(number):.17g}"[:9].encode())
    return found


def leaks(folder):
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    return {path.name for path in files for needle in needles() if needle in path.read_bytes()}


def write(tree, folder, backend):
    """Write a tree as a file that is not compressed, and read it again."""
    if backend == "netcdf":
        pytest.importorskip("h5netcdf", reason="takes pymc_dpdepth[io]")
        tree.to_netcdf(folder / "tree.nc", engine="h5netcdf")
        with xr.open_datatree(folder / "tree.nc", engine="h5netcdf") as read:
            return read.load()
    pytest.importorskip("zarr", reason="takes pymc_dpdepth[io]")
    plain = {
        node.path: {name: {"compressors": None} for name in (*node.data_vars, *node.coords)} for node in tree.subtree
    }
    tree.to_zarr(folder / "tree.zarr", encoding={path: entry for path, entry in plain.items() if entry})
    return xr.open_datatree(folder / "tree.zarr", engine="zarr").load()


BACKENDS = ["netcdf", "zarr"]
zarr_warns = pytest.mark.filterwarnings("ignore:Consolidated metadata", "ignore:.*Zarr V3 specification")


# What may leave


def test_only_what_stands_on_the_list_is_kept():
    shared = strip_private(draws(), model=model_of())
    assert set(shared.children) == {"public_settings"}
    assert not shared.data_vars and not shared.coords
    assert set(shared.attrs) == {
        *("contents", "made_by", "made_by_version", "inference_library", "inference_library_version"),
        *("epsilon", "delta", "neighboring", "mechanisms", "priors"),
    }
    table = shared["public_settings"]
    assert set(table.variables) == {"mechanism", "epsilon", "n", "sensitivity", "max_rows_per_unit"}
    assert not table.attrs
    assert table["epsilon"].item() == 1.25 and table["n"].item() == 22


def test_the_record_is_enough_to_build_the_mechanism_again():
    model = model_of(max_rows_per_unit=3)
    shared = strip_private(draws(), model=model)
    release = dpd.release(model)
    record = json.loads(shared.attrs["mechanisms"])[0]
    assert record.pop("columns") == ["x0", "x1"]
    released = json.loads(release.to_json())
    assert record.items() <= released["mechanisms"][0].items()
    assert json.loads(shared.attrs["priors"]) == released["priors"]
    assert shared.attrs["epsilon"] == release.epsilon == 3.75
    assert shared.attrs["neighboring"] == release.neighboring


def test_without_a_model_the_library_is_all_that_is_left():
    shared = strip_private(draws())
    assert not shared.children
    assert set(shared.attrs) == {
        *("contents", "made_by", "made_by_version", "inference_library", "inference_library_version"),
    }


@pytest.mark.parametrize("name", ["inference_library", "inference_library_version"])
def test_an_attribute_that_no_sampler_wrote_is_left_out(name):
    tree = draws()
    tree["posterior"].attrs[name] = f"{SENTINELS[0, 0]} years"
    assert name not in strip_private(tree).attrs


@pytest.mark.parametrize("version", ["98765.4321.9", "1.80.75", "6.4.0.post98765", 98765.4321, np.array([1.0, 2.0])])
def test_only_the_version_that_is_installed_is_kept(version):
    tree = draws()
    tree["posterior"].attrs["inference_library_version"] = version
    attrs = strip_private(tree).attrs
    assert attrs["inference_library"] == "pymc" and "inference_library_version" not in attrs
    tree["posterior"].attrs |= {"inference_library": "blackjax", "inference_library_version": ""}  # none is installed
    assert "inference_library_version" not in strip_private(tree).attrs


def test_of_a_hierarchical_prior_the_list_is_empty():
    with pm.Model() as model:
        location = pm.Normal("location", pm.Normal("mu", 0, 5), pm.HalfNormal("tau", 5), shape=2)
        dpd.exponential_mechanism("median", location, rows(), epsilon=1.0)
    assert json.loads(strip_private(draws(), model=model).attrs["priors"]) == {"median": []}


def test_nothing_private_is_in_any_byte(tmp_path):
    shared = strip_private(draws(), model=model_of())
    content = pickle.dumps(shared.to_dict()) + repr(shared).encode() + json.dumps(shared.attrs).encode()
    assert not [needle for needle in needles() if needle in content]
    planted = pickle.dumps(draws().to_dict())
    assert [needle for needle in needles() if needle in planted]


@zarr_warns
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_file_of_it_holds_nothing_private_and_reads_back(tmp_path, backend):
    shared = strip_private(draws(), model=model_of())
    read = write(shared, tmp_path, backend)
    assert leaks(tmp_path) == set()
    assert read["public_settings"].to_dataset().equals(shared["public_settings"].to_dataset())
    assert json.loads(read.attrs["mechanisms"]) == json.loads(shared.attrs["mechanisms"])


def test_the_tree_itself_is_left_as_it_is():
    tree = draws()
    before = pickle.dumps(tree.to_dict())
    strip_private(tree, model=model_of())
    writable(tree)
    assert pickle.dumps(tree.to_dict()) == before


def test_groups_are_recorded_each():
    labels = np.repeat(["x", "y"], 11)
    with pm.Model(coords={"group": ["x", "y"], "coordinate": ["a", "b"]}) as model:
        location = pm.Normal("location", 0, 1e5, dims=("group", "coordinate"))
        dpd.exponential_mechanism("median", location, rows(), groups=labels, epsilon=1.0, directions="axes")
    shared = strip_private(draws(), model=model)
    assert list(shared["public_settings"]["mechanism"].values) == ["median[x]", "median[y]"]
    assert shared.attrs["epsilon"] == 1.0


COMPLEX = {
    "array": np.ones(2, complex),
    "objects": np.array([np.complex128(1j), 2.0], object),
    "Python's": np.array([1j, 2], object),
}


@pytest.mark.parametrize("values", COMPLEX.values(), ids=COMPLEX)
def test_complex_numbers_are_refused_and_not_halved(values):
    tree = draws()
    tree["sample_stats"] = xr.Dataset({"wave": ("k", values)})
    with pytest.raises(TypeError, match="'wave' is complex"):
        writable(tree)


def test_what_is_no_tree_or_no_model_is_refused():
    with pytest.raises(TypeError, match="expected a DataTree, got dict"):
        strip_private({})
    with pytest.raises(TypeError, match="expected a DataTree, got Dataset"):
        writable(xr.Dataset())
    with pytest.raises(TypeError, match="expected the pm.Model"):
        strip_private(draws(), model="model")
    with pm.Model() as plain:
        pm.Normal("location")
    with pytest.raises(ValueError, match="no exponential mechanism"):
        strip_private(draws(), model=plain)


# What can be written


def with_stats(shape):
    tree = draws(1 if shape == "one chain" else 2)
    tree["sample_stats"] = smc_stats(shape)
    return tree


TABLES = {
    "one chain": [EXPONENTS[0]],
    "table": [EXPONENTS[1], EXPONENTS[1]],
    "ragged": [[*EXPONENTS[0], np.nan], EXPONENTS[1]],
}


@pytest.mark.parametrize("shape", TABLES)
def test_stages_become_a_table_of_chains_and_stages(shape):
    stats = writable(with_stats(shape))["sample_stats"]
    assert stats["beta"].dims == stats["log_marginal_likelihood"].dims == ("chain", "stage")
    assert stats["beta"].dtype == np.float64
    np.testing.assert_array_equal(stats["beta"], TABLES[shape])
    assert set(stats.coords) == {"chain"}


@pytest.mark.parametrize("shape", TABLES)
def test_writable_trees_are_writable_twice(shape):
    once = writable(with_stats(shape))
    assert writable(once).identical(once)


def test_objects_become_numbers_or_texts_or_are_left_out():
    tree = draws()
    entries = {
        "number": np.array([1, 2.5], dtype=object),
        "text": np.array(["a", "bc"], dtype=object),
        "list": ragged([[1.0], [2.0, 3.0]]),
        "thing": np.array([object(), None], dtype=object),
    }
    tree["sample_stats"] = xr.Dataset(
        {name: ("chain", entry) for name, entry in entries.items()}, attrs={"none": None, "yes": True, "dims": []}
    )
    stats = writable(tree)["sample_stats"]
    assert set(stats.data_vars) == {"number", "text", "list"}
    np.testing.assert_array_equal(stats["number"], [1.0, 2.5])
    np.testing.assert_array_equal(stats["list"], [[1.0, np.nan], [2.0, 3.0]])
    assert list(stats["text"].values) == ["a", "bc"]
    assert stats.attrs == {"none": "null", "yes": "true", "dims": "[]"}


@pytest.fixture(scope="module")
def sampled():
    """Draws of a model without sentinels in them: the draws are private, and the rows are not there at all."""
    with pm.Model() as model:
        location = pm.Normal("location", 0, 1e5, shape=2)
        dpd.exponential_mechanism("median", location, rows(), directions="axes", epsilon=10.0)
        options = {"chains": 2, "cores": 1, "progressbar": False, "random_seed": 1, "compute_convergence_checks": False}
        idata = pm.sample_smc(draws=40, kernel=pm.smc.kernels.MH, **options)
    return dpd.compute_log_prior_and_potential(idata, model=model), model


@zarr_warns
@pytest.mark.parametrize("backend", BACKENDS)
def test_draws_of_several_chains_of_smc_are_written_without_a_row(tmp_path, backend, sampled):
    pytest.importorskip({"netcdf": "h5netcdf", "zarr": "zarr"}[backend], reason="takes pymc_dpdepth[io]")
    idata, model = sampled
    read = write(writable(idata), tmp_path, backend)
    assert read["posterior"].to_dataset().equals(idata["posterior"].to_dataset())
    sentinels = {np.array(x, dtype="<f8").tobytes() for x in SENTINELS.ravel()}
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files for needle in sentinels if needle in path.read_bytes()]
    stats = [dpd.diagnose(tree, model=model, exact_draws=0).stages for tree in (idata, read)]
    assert stats[0] == stats[1] and min(stats[0]) > 1


@zarr_warns
@pytest.mark.parametrize("backend", BACKENDS)
def test_ragged_statistics_are_what_cannot_be_written_without_it(tmp_path, backend):
    tree = xr.DataTree.from_dict({"sample_stats": smc_stats("ragged")})
    with pytest.raises(ValueError, match="array of size 1"):
        write(tree, tmp_path, backend)


@zarr_warns
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_search_finds_what_a_file_holds(tmp_path, backend):
    write(writable(draws()), tmp_path, backend)
    assert leaks(tmp_path)
