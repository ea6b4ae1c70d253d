"""A healthy cluster to break, and the question what a check says about it."""

import dataclasses

import pytest

from cli.doctor.checkup import checks, findings
from tests.planes.install import checkups


@pytest.fixture(scope="session")
def healthy():
    return checkups.healthy()


@pytest.fixture
def found(healthy):
    """Return the names of what is found when some facts are others, without what is fine."""

    def ask(**changes):
        known = dataclasses.replace(healthy, **changes)
        return {
            finding.check: finding
            for finding in checks.examine(known)
            if finding.severity is not findings.Severity.OK
        }

    return ask
