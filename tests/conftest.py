"""What the tests of the PyMC side share. No test may charge a real ledger or leave a file outside its own folder."""

import pymc as pm
import pytest

import pymc_dpdepth as dpd


class RecordingLedger:
    """A ledger that remembers its charges; with a limit it refuses what goes beyond."""

    def __init__(self, limit=float("inf")):
        self.limit = limit
        self.charges = []

    def charge(self, *, epsilon, delta, label, bounded_range=()):
        if sum(charge[0] for charge in self.charges) + epsilon > self.limit:
            raise dpd.BudgetExceededError("The budget does not suffice.")
        self.charges.append((epsilon, delta, label))


@pytest.fixture
def ledger():
    return RecordingLedger()


@pytest.fixture
def empty_ledger():
    return RecordingLedger(limit=0.0)


@pytest.fixture(scope="session")
def model_of():
    """Return a function: rows and a depth to a model with one mechanism "median" on a normal "location"."""

    def build(rows, depth="halfspace", *, epsilon=1.0, mu=0.0, sigma=3.0, coords=None, **options):
        with pm.Model(coords=coords) as model:
            where = {"dims": "coordinate"} if coords else {"shape": len(rows[0])}
            location = pm.Normal("location", mu, sigma, **where)
            dpd.exponential_mechanism("median", location, rows, depth=depth, epsilon=epsilon, **options)
        return model

    return build
