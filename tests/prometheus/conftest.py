"""Tests with a real Prometheus: skipped unless asked for, and where there is none."""

import os

import pytest

from tests.planes.programs import prometheus

SWITCH = "KOORD_PROMETHEUS"
# Read before the root conftest cleans the environment of each test.
_ASKED = bool(os.environ.get(SWITCH))


def pytest_collection_modifyitems(items):
    obstacle = prometheus.obstacle() if _ASKED else "needs a Prometheus; run make prometheus"
    for item in items:
        if "tests/prometheus/" in item.nodeid and obstacle:
            item.add_marker(pytest.mark.skip(reason=obstacle))
