"""One setting for all audits of the suite.

False alarms: an audit of a right mechanism reports more than its true epsilon with probability at most 1 - CONFIDENCE =
1e-8. The suite makes fewer than 100 such audits, so all of them together pass with probability above 1 - 1e-6; seeds
are fixed, so they do so every time.
"""

import pymc_dpdepth as dpd

CONFIDENCE = 1 - 1e-8
TRIALS = 40_000


def attack(mechanism, X, neighbour, trials=TRIALS, **options):
    options = {"confidence": CONFIDENCE, "random_seed": 1, "progressbar": False} | options
    return dpd.audit(mechanism, X, neighbour, trials=trials, **options)
