"""What a NodeResourceTopology says of itself: whether its zones count, or what is wrong. Pure.

The kind belongs to the Node Topology API and has no status, so that a definition of another author
would drop one. Its conditions stand in an annotation, in the form that a status would have; there
is no generation in them, because every figure that changes in a zone counts as a new one.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from api import names, resources
from api.koordinator import topology
from api.wire import base, untrusted
from domain import conditions, wording
from kube.informers import store
from manager.reconcile import actions, outcomes

ACCEPTED: Final = "Accepted"
"""Whether its zones count when lending and placing."""
_TYPES: Final = (ACCEPTED,)
_RESOURCE: Final = resources.NODE_RESOURCE_TOPOLOGIES
_LONGEST: Final = 500


class NodeTopology(msgspec.Struct, frozen=True):
    """A NodeResourceTopology as far as its conditions are concerned."""

    name: str
    uid: str
    zones: int
    """That say how much cpu or memory they have."""
    owned: bool
    """Whether it goes with a Node."""
    fault: str = ""
    """Why it cannot be read."""
    written: str | None = None
    """The annotation as it stands."""


def projected(raw: Mapping[str, Any]) -> NodeTopology:
    """Project a NodeResourceTopology."""
    metadata = raw["metadata"]
    owners = metadata.get("ownerReferences") or ()
    found = NodeTopology(
        str(metadata["name"]),
        str(metadata.get("uid", "")),
        0,
        owned=any(isinstance(one, Mapping) and one.get("kind") == "Node" for one in owners),
        written=base.section(metadata, "annotations").get(names.ANNOTATION_CONDITIONS),
    )
    try:
        read = topology.read_node_resource_topology(raw)
    except store.UNREADABLE as error:
        return msgspec.structs.replace(found, fault=str(error)[:_LONGEST])
    telling = [
        zone
        for zone in read.zones
        if any(item.name in (names.CPU, names.MEMORY) for item in zone.resources)
    ]
    return msgspec.structs.replace(found, zones=len(telling))


def planned(found: NodeTopology, *, has_node: bool, now: float) -> actions.Plan:
    """Plan the annotation; nothing where it says already what is so."""
    judged = _judged(found, has_node=has_node)
    present = _present(found.written)
    about = (_RESOURCE, "", found.name, found.uid)
    told = tuple(outcomes.told(about, present, (judged,)))
    said = conditions.merged(present, (judged,), now, types=_TYPES)
    if said is None:
        return actions.Plan(judged.message, told)
    body = {
        "metadata": {
            "uid": found.uid,
            "annotations": {names.ANNOTATION_CONDITIONS: base.encoded(said)},
        }
    }
    return actions.Plan(judged.message, (actions.Merge(_RESOURCE, found.name, body), *told))


def _judged(found: NodeTopology, *, has_node: bool) -> outcomes.Condition:
    if found.fault:
        return outcomes.Condition(ACCEPTED, False, "TopologyUnreadable", found.fault)
    if not has_node and not found.owned:
        note = f"there is no node {found.name}, so this NodeResourceTopology has no effect"
        return outcomes.Condition(ACCEPTED, False, "NoSuchNode", note)
    if not found.zones:
        note = "no zone says how much cpu or memory it has, so that the node has no zones"
        return outcomes.Condition(ACCEPTED, False, "ZonesEmpty", note)
    note = f"its {wording.count(found.zones, 'zone counts', 'zones count')}"
    return outcomes.Condition(ACCEPTED, True, "TopologyAccepted", note)


def _present(written: str | None) -> Any:
    try:
        return untrusted.parsed(written or "[]", names.ANNOTATION_CONDITIONS)
    except base.ReadError:
        return None
