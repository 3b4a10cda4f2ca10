"""Soak and adversary tests: a short form in every run of the tests, the long one with BRAIDED_SOAK=1 (`make soak`)."""

import os

LONG = os.environ.get("BRAIDED_SOAK") == "1"


def either(short, long):
    """Return what is for the form that runs."""
    return long if LONG else short
