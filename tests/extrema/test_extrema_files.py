"""Intervals of files: the sums of the rows in memory, bit for bit, without the table in memory."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from extrema_cases import BOUNDS

import pymc_dpdepth as dpd
from pymc_dpdepth.extrema import rows as rows_module
from pymc_dpdepth.extrema.noisy_sums import Folds
from pymc_dpdepth.extrema.rows import read_rows
from pymc_dpdepth.randomness import random_bits
from pymc_dpdepth.tables import read_table

N = 700
REGRESSION = dpd.extrema.LinearRegression("c", ["a", "b"], bounds=BOUNDS)
GROUPS = dpd.extrema.Bernoulli("seen", by="site", sizes={1: N - 200, 2: 200})


@pytest.fixture(params=["csv", "parquet"])
def data(request, tmp_path, monkeypatch):
    """Return a table in memory and the path of a file with it, which is read in pieces of 64 rows."""
    if request.param == "parquet":
        pytest.importorskip("pyarrow")
    monkeypatch.setattr(rows_module, "CHUNK_ROWS", 64)
    generator = np.random.default_rng(3)
    frame = pd.DataFrame(generator.normal(size=(N, 3)) * [1, 2, 0.1], columns=list("abc"))
    frame["seen"] = generator.integers(0, 2, N).astype(bool)
    frame["site"] = np.repeat([1, 2], [N - 200, 200])
    path = tmp_path / f"data.{request.param}"
    frame.to_csv(path, index=False) if request.param == "csv" else frame.to_parquet(path, row_group_size=100)
    return frame, path


@pytest.fixture
def sizes_of_pieces(monkeypatch):
    """Note the sizes of all pieces, and make reading the whole table of a file fail."""

    def in_memory(data, columns):
        assert not isinstance(data, Path), "the whole table was asked for"
        return read_table(data, columns)

    monkeypatch.setattr("pymc_dpdepth.extrema.rows.read_table", in_memory)
    sizes = []
    split = Folds.split

    def noted(self, rows):
        for part, some in split(self, rows):
            sizes.append(len(some))
            yield part, some

    monkeypatch.setattr(Folds, "split", noted)
    return sizes


def sums(family, source, columns):
    """Return the integer sums of the first statistics and, at coefficients of zero noise, of the later ones."""
    released, found = {}, []
    while statistics := family.statistics(source.n, columns, released):
        for statistic in statistics:
            counts = [family.counts(chunk, statistic, dict(released)) for chunk in source.chunks()]
            found.append(np.sum(counts, axis=0))
        released |= {
            one.name: total * one.grid for one, total in zip(statistics, found[-len(statistics) :], strict=True)
        }
    return found


@pytest.mark.parametrize(
    ("family", "columns"),
    [
        (dpd.extrema.Gaussian(bounds=BOUNDS), ["b", "a", "c"]),
        (REGRESSION, REGRESSION.columns()),
        (GROUPS, GROUPS.columns()),
        (dpd.extrema.Poisson(bounds=(0, 5)), ["site", "seen"]),
    ],
    ids=["gaussian", "regression", "bernoulli", "poisson"],
)
def test_sums_are_those_in_memory(data, family, columns):
    frame, path = data
    there, here = read_rows(path, columns), read_rows(frame, columns)
    for one, other in zip(sums(family, there, columns), sums(family, here, columns), strict=True):
        assert one.dtype == np.int64 and (one == other).all()
    (piece, *_) = there.chunks()
    assert len(piece) == 64 and not piece.flags.writeable


@pytest.mark.parametrize("correction", [0.1, "cv"])
@pytest.mark.parametrize("family", [REGRESSION, GROUPS], ids=["two stages", "checked rows"])
def test_a_release_never_holds_the_table(data, sizes_of_pieces, family, correction):
    frame, path = data
    options = {"family": family, "epsilon": 5.0, "correction": correction, "replicates": 100, "random_seed": 1}
    with pytest.warns(dpd.PrivacyLeakWarning):
        streamed = dpd.extrema_interval(path, **options)
    # In folds pieces are shared out.
    assert max(sizes_of_pieces) <= 64 and sum(sizes_of_pieces) == N * (2 if family is REGRESSION else 1)
    with pytest.warns(dpd.PrivacyLeakWarning):
        assert dpd.extrema_interval(frame, **options) == streamed


def test_missing_entries_of_a_file(data, tmp_path):
    frame, path = data
    frame.loc[[3, 690], "b"] = [np.nan, np.inf]
    frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path)
    gaussian = dpd.extrema.Gaussian(bounds=BOUNDS)
    with pytest.raises(ValueError, match=r"missing or infinite entries in \['b'\]"):
        dpd.extrema_interval(path, family=gaussian, epsilon=1.0, columns=["a", "b"])
    options = {"family": gaussian, "epsilon": 1.0, "columns": ["a", "b"], "nonfinite": "center", "random_seed": 1}
    with pytest.warns(dpd.PrivacyLeakWarning):
        assert dpd.extrema_interval(path, **options) == dpd.extrema_interval(frame, **options)


def test_a_file_that_grows_is_refused_before_any_charge(data, monkeypatch):
    frame, path = data
    budget = dpd.PrivacyAccountant(epsilon=9.0)

    def grown(source, nonfinite, centers):
        with path.open("ab") as file:
            file.write(b"1,2,3,True,1\n")
        return source

    monkeypatch.setattr("pymc_dpdepth.extrema.interval.finite_rows", grown)
    with pytest.raises(ValueError, match="changed while it was read"):
        dpd.extrema_interval(
            path, family=dpd.extrema.Gaussian(bounds=BOUNDS), epsilon=1.0, columns=["a", "b"], ledger=budget
        )
    assert budget.spent().epsilon == 0.0


def test_folds_of_a_file_are_those_of_the_rows(data):
    frame, path = data
    folds = Folds.at_random(N, 3, random_bits(None))
    columns = ["a", "b"]
    parts = [[], [], []]
    for part, some in folds.split(read_rows(path, columns)):
        parts[part].append(some)
    for part, pieces in enumerate(parts):
        assert (np.concatenate(pieces) == frame[columns].to_numpy()[folds.labels == part]).all()
