"""Checks decide readiness, warnings do not."""

import pytest

from process.http.health import Health


def test_ready_as_long_as_no_check_fails() -> None:
    health, reasons = Health(), {"caches": "not synced", "lease": None}
    assert health.ready
    health.add("caches", lambda: reasons["caches"])
    health.add("lease", lambda: reasons["lease"])
    health.warn("certificate", lambda: "ends soon")
    assert health.failing() == {"caches": "not synced"}
    assert not health.ready
    reasons["caches"] = None
    assert health.ready
    assert health.warnings() == {"certificate": "ends soon"}


def test_names_are_unique_until_removed() -> None:
    health = Health()
    health.add("caches", lambda: "no")
    for add in (health.add, health.warn):
        with pytest.raises(ValueError, match="caches exists already"):
            add("caches", lambda: None)
    health.remove("caches")
    health.remove("caches")
    health.warn("caches", lambda: "no")
    assert health.ready
    assert health.names == ()
