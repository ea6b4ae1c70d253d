"""Every change that the state of the cluster can undergo, and how each is undone."""

from typing import Final

import msgspec

from domain.usage import load
from extender.state import claims, lending, records

UNSCHEDULED_POD: Final = "UnscheduledPod"
"""Kind of an `ObjectDelta` about the `PodRecord` of a pod without a node; its key is the uid."""
ELASTIC_QUOTA: Final = "ElasticQuota"
"""Kind of an `ObjectDelta` about a quota of any group; its key is group/namespace/name."""

CLUSTER_NETWORK_TOPOLOGY: Final = "ClusterNetworkTopology"
"""Kind of an `ObjectDelta` about the `Layers` of the network; its key is the object's name."""
UNSCHEDULED_MEMBER: Final = "UnscheduledMember"
"""What plug-ins name that want `UNSCHEDULED_POD` of members of gangs only."""
POD_GROUP: Final = "PodGroup"
"""Kind of an `ObjectDelta` about a `domain.gangs.pod_groups.PodGroup`; its key is the gang's id."""

DEVICE: Final = "Device"
"""Kind of an `ObjectDelta` about the `Inventory` of a node; its key is the name of the node."""
DEVICES_ELSEWHERE: Final = "DevicesElsewhere"
"""Kind of an `ObjectDelta` about the devices of a node that another allocator gave away, as
`Elsewhere`; its key is the node's name."""
GPU_TEMPLATES: Final = "GPUTemplates"
"""Kind of an `ObjectDelta` about the templates of NPUs; its key is the ConfigMap's name."""
GANG_PLAN: Final = "GangPlan"
"""Kind of an `ObjectDelta` about the `gang_facts.GangPlan` of a gang group; its key is the id of
the group. It tells Permit which generation is in force, and why one was given up."""
NODE_TOPOLOGY: Final = "NodeResourceTopology"
"""Kind of an `ObjectDelta` about the `NodeTopology` of a node; its key is the node's name."""


class ClaimDelta(msgspec.Struct, frozen=True):
    """A claim was made, changed, moved to another node, or ended."""

    id: str
    before: claims.Claim | None
    after: claims.Claim | None


class NodeDelta(msgspec.Struct, frozen=True):
    """A node came, went or changed."""

    name: str
    before: records.NodeRecord | None
    after: records.NodeRecord | None


class ReportDelta(msgspec.Struct, frozen=True):
    """The agent of a node measured something new, or its report is gone."""

    name: str
    before: load.Report | None
    after: load.Report | None


class ObjectDelta(msgspec.Struct, frozen=True):
    """An object of a kind that only plug-ins know came, went or changed."""

    kind: str
    key: str
    before: msgspec.Struct | None
    after: msgspec.Struct | None
    node: str = ""
    """The node whose figures depend on it, empty if none does."""


class LendingDelta(msgspec.Struct, frozen=True):
    """The rules by which nodes lend what they do not use have changed."""

    before: lending.LendingRules
    after: lending.LendingRules


Delta = ClaimDelta | NodeDelta | ReportDelta | ObjectDelta | LendingDelta


def inverse(delta: Delta) -> Delta:
    """Return the delta that undoes another."""
    match delta:
        case ClaimDelta(ident, held, holds):
            return ClaimDelta(ident, holds, held)
        case NodeDelta(name, was, becomes):
            return NodeDelta(name, becomes, was)
        case ReportDelta(name, older, newer):
            return ReportDelta(name, newer, older)
        case ObjectDelta(kind, key, known, told, node):
            return ObjectDelta(kind, key, told, known, node)
        case LendingDelta(old, new):
            return LendingDelta(new, old)


class StaleError(Exception):
    """A delta that was made for another state than the one it is applied to."""
