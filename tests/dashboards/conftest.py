"""Dashboards over a real Prometheus: skipped unless asked for, and where there is none."""

import os
import pathlib

import pytest

from tests.planes.programs import prometheus

SWITCH, PICTURES = "KOORD_PROMETHEUS", "KOORD_PICTURES"
# Read before the root conftest cleans the environment of each test.
_ASKED, _PICTURES = bool(os.environ.get(SWITCH)), os.environ.get(PICTURES, "")


@pytest.fixture(scope="session")
def with_prometheus():
    """Go on only where there is a Prometheus, and it is asked for."""
    obstacle = prometheus.obstacle() if _ASKED else "needs a Prometheus; run make prometheus"
    if obstacle:
        pytest.skip(obstacle)


@pytest.fixture(scope="session")
def pictures(tmp_path_factory):
    """Where pictures are written: into the manual only where that is asked for."""
    return pathlib.Path(_PICTURES) if _PICTURES else tmp_path_factory.mktemp("pictures")
