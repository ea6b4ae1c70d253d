"""The NodeSLO as the API server has it."""

import pytest

from agent.informers import node_objects


@pytest.mark.parametrize(
    ("version", "other", "newer"),
    [("8", "7", True), ("7", "7", True), ("9", "10", False), ("", "7", True), ("x", "7", True)],
    ids=["later", "the same", "stale", "none", "no number"],
)
def test_a_stale_event_does_not_hide_a_later_state(version, other, newer):
    first, second = (node_objects.Stated("u", 1, one) for one in (version, other))
    assert first.newer(second) is newer
