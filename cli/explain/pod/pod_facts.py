"""What was read about a pod, before a story is made of it."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from api.koordinator.metrics import nodemetric
from api.kubernetes import core
from cli import reading
from cli.explain import stories
from cli.explain.pod import batch_capacity, quota_layer
from cli.quota import cluster
from cli.reservations import cluster as reserved

Raw = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Facts:
    """What was read about a pod; None or empty where nothing was there or could be read."""

    key: str
    pod: Raw | None = None
    events: Sequence[Raw] = ()
    """Events about the pod."""
    creations: Sequence[Raw] = ()
    """Events about pods of its namespace that could not be created."""
    reviews: Raw | None = None
    """What admission answered about it."""
    explanation: Raw | None = None
    """The ScheduleExplanation about it."""
    page: Raw | None = None
    """What the extender knows of it."""
    offers: Sequence[batch_capacity.Offer] | None = None
    """What nodes have left for batch work; None unless that was looked at."""
    trial: str | None = None
    """The API server's refusal of a pod that was only tried, empty if it was accepted; None for a
    pod that was not tried."""
    quotas: cluster.Cluster | None = None
    """Quotas with their pods and nodes; None where they could not be read."""
    reservations: reserved.Cluster | None = None
    """Reservations as their status has them; None where there are none or they cannot be read."""
    planned: quota_layer.Planned | None = None
    """Whom the extender would evict for it; None where no pod could leave."""
    lending: Raw | None = None
    """Why the node in question lends what it lends."""
    metric: nodemetric.NodeMetric | None = None
    """What the agent of its node reported."""


def wanted(facts: Facts) -> dict[str, int]:
    """Return what the pod asks of lent capacity; nothing where that cannot be read."""
    return reading.either({}, lambda: batch_capacity.asked(read(facts)))


def read(facts: Facts) -> core.Pod:
    """Return the pod; raises what conversion raises for one that has not a pod's shape."""
    return msgspec.convert(facts.pod, core.Pod)


def nearest(facts: Facts) -> str:
    """Return the node that a story should explain: where the pod is, or where it nearly was."""
    return reading.either("", _nearest, facts)


def _nearest(facts: Facts) -> str:
    placed = ((facts.pod or {}).get("spec") or {}).get("nodeName")
    if placed:
        return str(placed)
    groups = ((facts.page or {}).get("present") or {}).get("groups") or ()
    if groups:
        return str(groups[0]["nearest"]["node"])
    if facts.pod is not None and facts.offers is not None:
        return batch_capacity.outlook(wanted(facts), facts.offers).nearest
    return ""


def condition(facts: Facts) -> str:
    """Return what its scheduler says of a pod that it could not place."""
    for one in ((facts.pod or {}).get("status") or {}).get("conditions") or ():
        if one.get("type") == "PodScheduled" and one.get("status") == "False":
            return str(one.get("message") or "")
    return ""


def note(event: Raw) -> str:
    """Return the message of an event."""
    return str(event.get("message") or event.get("note") or "")


def said(event: Raw) -> str:
    """Return the message of an event as a sentence."""
    return stories.ended(note(event))
