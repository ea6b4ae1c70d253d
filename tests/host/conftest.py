"""Tests on this very machine: skipped unless asked for, obligatory when asked for."""

import os

import pytest

SWITCH = "KOORD_HOST"
# Read before the root conftest cleans the environment of each test.
_ASKED = bool(os.environ.get(SWITCH))
# An emulated machine is many times slower.
SECONDS = 600 if os.environ.get("KOORD_GUEST") else 120


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/host/" not in item.nodeid:
            continue
        item.add_marker(pytest.mark.host)
        # A signal lets the test remove its groups; the other method ends the process at once.
        item.add_marker(pytest.mark.timeout(SECONDS, method="signal"))
        if not _ASKED:
            item.add_marker(pytest.mark.skip(reason="writes to real cgroups; run make host"))


@pytest.fixture(autouse=True)
def _root():
    assert os.geteuid() == 0, "make host needs root: it creates and removes control groups"
