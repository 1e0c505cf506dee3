import pytest

from pymc_dpdepth.depths import (
    DEPTHS,
    Depth,
    Halfspace,
    IntegratedDual,
    IntegratedRankWeighted,
    ModifiedSpatial,
    Projection,
    Simplicial,
    Spatial,
    as_depth,
)


def test_every_name_gives_its_depth():
    assert DEPTHS == {
        "halfspace": Halfspace,
        "integrated_rank_weighted": IntegratedRankWeighted,
        "integrated_dual": IntegratedDual,
        "projection": Projection,
        "simplicial": Simplicial,
        "spatial": Spatial,
        "modified_spatial": ModifiedSpatial,
    }
    for name, depth in DEPTHS.items():
        assert as_depth(name) == depth()
        assert as_depth(name).name == name
        assert isinstance(as_depth(name), Depth)


def test_a_depth_is_returned_as_it_is():
    depth = IntegratedDual(3.0)
    assert as_depth(depth) is depth


def test_unknown_names_are_refused_and_the_known_ones_listed():
    known = "halfspace, integrated_dual, integrated_rank_weighted, modified_spatial, projection, simplicial, spatial"
    with pytest.raises(ValueError, match=f"{known}; got 'tukey'"):
        as_depth("tukey")


def test_other_objects_are_refused():
    with pytest.raises(TypeError, match=r"Call it: Halfspace\(\)"):
        as_depth(Halfspace)
    with pytest.raises(TypeError, match="got NoneType"):
        as_depth(None)


@pytest.mark.parametrize("depth", [*DEPTHS, IntegratedDual(smoothing=2.0)], ids=str)
def test_every_record_has_a_name_and_says_what_smoothing_and_directions_are(depth):
    """A depth without smoothing or directions says None; only what a depth has beside them is an extra word."""
    record = as_depth(depth).describe()
    assert {"name", "smoothing", "directions"} <= set(record) <= {"name", "smoothing", "directions", "scale"}
