"""Have the kernel count pages that are not touched, where it can (kidled)."""

from typing import Final

from agent.model import cgroup_properties, edits, state

SCAN_SECONDS: Final = 5
"""Sixty scans, after which a page counts as cold, take five minutes."""
_R = edits.Role


def decide(picture: state.NodeState) -> edits.Decision:
    """Return how often kidled is to scan, and that groups count those below them."""
    if not {_R.KIDLED_PERIOD.value, _R.KIDLED_HIERARCHY.value} <= picture.kernel.roles:
        return edits.switched_off("the kernel has no kidled")
    reason = "count pages that are not touched"
    wanted = {_R.KIDLED_PERIOD: SCAN_SECONDS, _R.KIDLED_HIERARCHY: 1}
    return edits.Decision(
        f"kidled scans every {SCAN_SECONDS} s", cgroup_properties.numbers("", wanted, reason)
    )
