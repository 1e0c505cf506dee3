"""Make rand_hie_first_year.csv from the person-level file of the RAND Health Insurance Experiment.

    python examples/data/make_rand_hie.py path/to/statsmodels/datasets/randhie/src/randhie.csv

The source ships in the PyPI package statsmodels. It holds one row for each person and year; this keeps each person's
first year, so that one row is one person and replacing a row protects a person.
"""

import sys
from pathlib import Path

import pandas as pd

COLUMNS = ["plan", "site", "female", "age", "income", "meddol", "mdvis", "disea"]
CENTS = 2  # decimals of the fractional columns; the source's further digits are single-precision noise
OUTPUT = Path(__file__).with_name("rand_hie_first_year.csv")


def first_year(source: str) -> pd.DataFrame:
    """Read the person-year file and keep one row per person, without the person id and in no order of persons."""
    table = pd.read_csv(source).sort_values(["zper", "year"]).drop_duplicates("zper", keep="first")
    table = table.rename(columns={"xage": "age"})[COLUMNS]
    if table.isna().any(axis=None):
        raise ValueError("expected no missing value in the kept columns")
    whole = ["plan", "site", "female", "income", "mdvis"]
    table[whole] = table[whole].round().astype("int64")
    table = table.round({"age": CENTS, "meddol": CENTS, "disea": CENTS})
    return table.sort_values(COLUMNS)  # by value: the order of rows then carries nothing beyond the rows themselves


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    first_year(sys.argv[1]).to_csv(OUTPUT, index=False)
