"""Depths and medians that are known exactly, from tests/data/depth_reference_values.json."""

import json
from pathlib import Path

import numpy as np

FACTS = json.loads((Path(__file__).parents[1] / "data" / "depth_reference_values.json").read_text())
TOYS = FACTS["toy_2d"]
TETRAHEDRON = FACTS["toy_3d"][0]
REAL = {entry["dataset"]: entry for entry in FACTS["real_data"]}


def rows_of(dataset):
    """Return the rows of a real table, which are integers."""
    return np.array(REAL[dataset]["data_int"], dtype=float)
