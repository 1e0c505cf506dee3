"""What commands read from the text of their options."""

import pytest
import typer
from typer.testing import CliRunner

import pymc_dpdepth as dpd
from pymc_dpdepth import cli_options as take


@pytest.mark.parametrize(
    ("text", "names"), [(None, None), ("a", ["a"]), (" a , b", ["a", "b"]), ('"a, b",c', ["a, b", "c"])]
)
def test_names_of_columns(text, names):
    assert take.names_of(text) == names


@pytest.mark.parametrize("text", ["", "a,", ",", " ,b"])
def test_empty_names_are_refused(text):
    with pytest.raises(ValueError, match="--columns: expected names separated by commas"):
        take.names_of(text)


def test_numbers_name_their_option():
    assert take.numbers_of("1,-2e3", "--at") == [1.0, -2000.0]
    assert take.one_or_many("3", "--radius") == 3.0 and take.one_or_many("3,4", "--radius") == [3.0, 4.0]
    for read in (take.numbers_of, take.one_or_many):
        for text in ("", "1,x", "1,,2"):
            with pytest.raises(ValueError, match="--radius: expected a number"):
                read(text, "--radius")


def test_center_and_scale_belong_together():
    assert take.standardize_of(None, None) is None
    assert take.standardize_of("1,2", "3,4") == ([1.0, 2.0], [3.0, 4.0])
    for half in (("1", None), (None, "1")):
        with pytest.raises(ValueError, match="--center and --scale"):
            take.standardize_of(*half)


def test_depths_by_name():
    assert take.depth_of("spatial", None, None, 0, d=2) == dpd.Spatial()
    rotated = take.depth_of("integrated_dual", 2.0, "orthonormal", 5, d=3)
    assert rotated == dpd.IntegratedDual(smoothing=2.0, directions=dpd.Directions.orthonormal(3, 5))
    assert take.depth_of("halfspace", None, "axes", 0, d=3) == dpd.Halfspace(directions=dpd.Directions.axes(3))
    for options, word in ((("halfspace", 2.0, None, 0), "--smoothing"), (("spatial", None, "axes", 0), "--directions")):
        with pytest.raises(ValueError, match=word):
            take.depth_of(*options, d=2)


def test_directions_by_word():
    made = {
        "axes": dpd.Directions.axes(2),
        "orthonormal": dpd.Directions.orthonormal(2, 7),
        "uniform:50": dpd.Directions.uniform(2, 50, 7),
        "balanced:9": dpd.Directions.balanced(2, 9, 7),
    }
    for text, directions in made.items():
        assert take.directions_of(text, 7, 2) == directions
        assert take.depth_of("halfspace", None, text, 7, d=2) == dpd.Halfspace(directions)
    for text in ("north", "uniform", "uniform:", "uniform:x", "uniform:0", "balanced:-1", "axes:3", "uniform:1.5", ""):
        with pytest.raises(ValueError, match="--directions: expected axes, orthonormal, uniform:M or balanced:M"):
            take.directions_of(text, 7, 2)


def test_a_table_needs_a_row(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,b\n1,2\n")
    assert take.table_of(path, ["b"]).rows.tolist() == [[2.0]]
    path.write_text("a,b\n")
    with pytest.raises(ValueError, match="column names and no rows"):
        take.table_of(path, ["a"])


def test_a_command_is_made_of_the_options():
    app, seen = typer.Typer(), {}

    @app.command()
    def command(
        data: take.Data,
        columns: take.Columns = None,
        depth_name: take.DepthName = "halfspace",
        max_rows_per_unit: take.MaxRowsPerUnit = 1,
        ledger: take.LedgerPath = None,
        out: take.Out = None,
        overwrite: take.Overwrite = False,
    ) -> None:
        seen.update(locals())

    arguments = ["x.csv", "--depth", "spatial", "--max-rows-per-unit", "3", "--columns", "a,b", "--overwrite"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert str(seen["data"]) == "x.csv" and (seen["depth_name"], seen["max_rows_per_unit"]) == ("spatial", 3)
    assert seen["overwrite"] is True and seen["ledger"] is None and seen["columns"] == "a,b"
