"""Who has to leave a node so that a pod gets its devices: the least important, and no more."""

from collections.abc import Callable, Sequence

from domain.devices import inventory, pod_devices
from extender.framework import verdicts, views
from extender.plugins.device_share import tracker

Refusal = Callable[[pod_devices.PodDevices, inventory.NodeDevices], verdicts.Status | None]


def choose(
    refusal: Refusal,
    asked: pod_devices.PodDevices,
    node: inventory.NodeDevices,
    claims: Sequence[views.Claim],
    priority: int,
) -> verdicts.Victims | verdicts.Status:
    """Return claims of lower priority that hold devices of the types asked for."""
    held = [(claim, found) for claim in claims if (found := tracker.held_by(claim))]
    lower = [
        (claim, found)
        for claim, found in held
        if claim.pod.requirements.priority < priority and not asked.by_type.keys().isdisjoint(found)
    ]
    lower.sort(key=lambda one: (one[0].pod.requirements.priority, one[0].id))
    leaving: list[views.Claim] = []

    def refused(gone: Sequence[views.Claim]) -> verdicts.Status | None:
        uses = inventory.Uses.of(found for claim, found in held if claim not in gone)
        return refusal(asked, inventory.NodeDevices.of(node.inventory, uses, node.labels))

    status = refused(leaving)
    for claim, _ in lower:
        if status is None:
            break
        leaving.append(claim)
        status = refused(leaving)
    if status is not None:
        return status
    # The most important of them stay where the others are enough.
    for claim in reversed(leaving[:]):
        fewer = [one for one in leaving if one is not claim]
        if refused(fewer) is None:
            leaving = fewer
    return verdicts.Victims(tuple(claim.id for claim in leaving))
