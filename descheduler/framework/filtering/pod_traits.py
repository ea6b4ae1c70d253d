"""Traits of pods that filters ask about. Pure."""

from collections.abc import Mapping
from typing import Final

from api import names
from descheduler.configuration.arguments import parts
from descheduler.model import podinfo

SYSTEM_CRITICAL: Final = 2_000_000_000
"""Least priority of pods that the system needs: that of system-cluster-critical."""
BUILT_IN: Final[Mapping[str, int]] = {
    "system-cluster-critical": SYSTEM_CRITICAL,
    "system-node-critical": SYSTEM_CRITICAL + 1000,
}
NEVER: Final = "2147483647"
"""The eviction cost of pods that are never evicted."""


def is_forced(pod: podinfo.Pod) -> bool:
    """Whether an annotation asks for its eviction, whatever the checks and limits say."""
    return names.ANNOTATION_FORCE_EVICT in pod.annotations


def is_daemon(pod: podinfo.Pod) -> bool:
    """Whether it belongs to a DaemonSet, which runs one on every node."""
    for owner in pod.owners:  # noqa: SIM110 - a generator takes four times as long
        if owner.kind == "DaemonSet":
            return True
    return False


def is_system_critical(pod: podinfo.Pod) -> bool:
    """Whether the system needs it."""
    return pod.priority is not None and pod.priority >= SYSTEM_CRITICAL


def never_leaves(pod: podinfo.Pod) -> bool:
    """Whether its eviction cost forbids every eviction."""
    return pod.annotations.get(names.ANNOTATION_EVICTION_COST) == NEVER


def threshold(written: parts.PriorityThreshold | None, known: Mapping[str, int]) -> int | None:
    """Return from which priority on pods stay, None where all may leave.

    Of a PriorityClass that does not exist nobody knows the value; then no priority is low enough.
    """
    if written is None:
        return None
    if not written.name:
        return written.value
    return known.get(written.name, BUILT_IN.get(written.name, -(2**31)))
