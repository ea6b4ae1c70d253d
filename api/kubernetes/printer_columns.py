"""What ``kubectl get`` prints of each custom resource."""

import dataclasses
from typing import Any, Final

from api import names

Manifest = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """One column that ``kubectl get`` prints."""

    name: str
    path: str
    type: str = "string"
    description: str = ""
    wide: bool = False
    """Whether only ``kubectl get -o wide`` prints it."""

    def manifest(self) -> Manifest:
        """Return the column as a definition holds it."""
        column: Manifest = {"name": self.name, "type": self.type, "jsonPath": self.path}
        if self.description:
            column["description"] = self.description
        return {**column, "priority": 1} if self.wide else column


_AGE: Final = Column("Age", ".metadata.creationTimestamp", "date")


def _held(condition: str, description: str) -> Column:
    """Return a column with the status of a condition."""
    path = f'.status.conditions[?(@.type=="{condition}")].status'
    return Column(condition, path, description=description)


def _reason(condition: str) -> Column:
    """Return a wide column with the message of a condition."""
    path = f'.status.conditions[?(@.type=="{condition}")].message'
    return Column("Message", path, description="The condition in full", wide=True)


_RUNTIME: Final = "usable now; it grows with what its pods ask for"


def _quota_columns(resource: str, word: str, runtime: str) -> tuple[Column, ...]:
    """Return what is shown of one resource of a quota; `runtime` is the field of its runtime."""
    shown = Column(f"{word} runtime", f"{runtime}.{resource}", description=f"{word} {_RUNTIME}")
    return (
        Column(word, f".status.used.{resource}", description=f"{word} requested by its pods"),
        *((shown,) if runtime else ()),
        Column(f"{word} min", f".spec.min.{resource}", description=f"{word} that is guaranteed"),
        Column(
            f"{word} max", f".spec.max.{resource}", description=f"{word} that is never exceeded"
        ),
    )


_HARD: Final = "Ceiling beside max; the smaller counts"
_QUOTA_PREFIX: Final = names.LABEL_QUOTA_NAME.removesuffix("/name").replace(".", "\\.")
_QUOTA_PARENT: Final = Column(
    "Parent",
    f".metadata.labels.{_QUOTA_PREFIX}/parent",
    description="The quota above it",
    wide=True,
)
QUOTA: Final = (
    *_quota_columns(names.CPU, "CPU", ""),
    *_quota_columns(names.MEMORY, "Memory", ""),
    Column(
        "Runtime",
        f".metadata.annotations.{_QUOTA_PREFIX}/runtime",
        description=f"What is {_RUNTIME}",
    ),
    _QUOTA_PARENT,
    _AGE,
)
SHORT_QUOTA: Final = (
    *_quota_columns(names.CPU, "CPU", ".status.allocatedQuota"),
    *_quota_columns(names.MEMORY, "Memory", ".status.allocatedQuota"),
    Column("CPU hard", ".spec.hard.cpu", description=_HARD, wide=True),
    Column("Memory hard", ".spec.hard.memory", description=_HARD, wide=True),
    Column(
        "Priority", ".spec.priority", "integer", "Who borrows first; larger goes before smaller"
    ),
    _QUOTA_PARENT,
    _AGE,
)
RESERVATION: Final = (
    Column("Phase", ".status.phase", description="The phase of the reservation"),
    _AGE,
    Column("Node", ".status.nodeName"),
    Column("TTL", ".spec.ttl"),
    Column("Expires", ".spec.expires"),
    Column("CPU", ".status.allocatable.cpu", description="CPU that is reserved"),
    Column("CPU used", ".status.allocated.cpu", description="CPU that its owners request"),
    Column("Memory", ".status.allocatable.memory", description="Memory that is reserved"),
    Column("Memory used", ".status.allocated.memory", description="Memory that owners request"),
    Column(
        "Reason",
        '.status.conditions[?(@.status=="False")].reason',
        description="Why it has no node, or keeps nothing any more",
    ),
    Column(
        "Owner", ".status.currentOwners[0].name", description="The first owner by uid", wide=True
    ),
    Column("Policy", ".spec.allocatePolicy", wide=True),
    Column("Once", ".spec.allocateOnce", "boolean", "Whether one owner uses it up", wide=True),
    Column(
        "Message",
        '.status.conditions[?(@.status=="False")].message',
        description="The reason in full",
        wide=True,
    ),
)
MIGRATION: Final = (
    Column("Phase", ".status.phase", description="The phase of the migration"),
    Column("Status", ".status.status", description="The last step of the migration"),
    _AGE,
    Column("Node", ".status.nodeName"),
    Column("Reservation", ".spec.reservationOptions.reservationRef.name"),
    Column("PodNamespace", ".spec.podRef.namespace"),
    Column("Pod", ".spec.podRef.name"),
    Column("NewPod", ".status.podRef.name"),
    Column("TTL", ".spec.ttl"),
)
RECOMMENDATION: Final = (
    _AGE,
    Column("Type", ".spec.target.type"),
    Column("Kind", ".spec.target.workload.kind"),
    Column("Name", ".spec.target.workload.name"),
    Column("LastUpdateTime", ".status.updateTime", "date"),
    _held("Ready", "Whether requests are recommended"),
    _reason("Ready"),
)
PROFILE: Final = (
    _held("Accepted", "Whether admission can apply it"),
    _held("Ready", "Whether admission lets in the pods that it selects"),
    _held("Effective", "Whether no other profile overrides it"),
    Column("QoS", ".spec.qosClass", description="QoS class given to matching pods"),
    Column("PriorityClass", ".spec.priorityClassName"),
    Column("Scheduler", ".spec.schedulerName"),
    Column("Probability", ".spec.probability", description="Share of matching pods changed"),
    _AGE,
    _reason("Ready"),
)
SLO: Final = (
    Column("Suppress", ".spec.resourceUsedThresholdWithBE.enable", "boolean"),
    Column("CPU threshold", ".spec.resourceUsedThresholdWithBE.cpuSuppressThresholdPercent",
           "integer", "Use of the node's CPU above which batch work is held back, in percent"),
    Column("CPU burst", ".spec.cpuBurstStrategy.policy"),
    _held("Enforced", "Whether the agent enforces all of it"),
    _AGE,
    _reason("Enforced"),
)  # fmt: skip
METRIC: Final = (
    Column("CPU", ".status.nodeMetric.nodeUsage.resources.cpu", description="CPU in use"),
    Column("Memory", ".status.nodeMetric.nodeUsage.resources.memory", description="In use"),
    Column("Reported", ".status.updateTime", "date", "When the agent wrote it"),
    _AGE,
)
DEVICE: Final = (
    Column("Type", ".spec.devices[0].type", description="Type of the first device"),
    _held("Healthy", "Whether all devices of the node are healthy"),
    _AGE,
    _reason("Healthy"),
)
NETWORK: Final = (
    _held("Accepted", "Whether the layers form a chain"),
    Column("Top layer", ".status.detailStatus[0].topologyInfo.topologyLayer"),
    Column("Nodes", ".status.detailStatus[0].nodeNum", "integer", "Nodes below the top"),
    _AGE,
    _reason("Accepted"),
)
EXPLANATION: Final = (
    Column("Pod", ".spec.questionObjectKey", description="Namespace and name of the pod"),
    Column("Schedulable", ".status.schedulable", "boolean"),
    _held("Current", "Whether the answer is there and true"),
    Column("Updated", ".status.lastUpdateTime", "date"),
    _AGE,
    _reason("Current"),
)
GROUP: Final = (
    Column("Phase", ".status.phase", description="The phase of the gang"),
    Column("MinMember", ".spec.minMember", "integer", "Pods that start together or not at all"),
    Column("Scheduled", ".status.scheduled", "integer", "Pods that have a node"),
    Column("Running", ".status.running", "integer", "Pods that run"),
    Column(
        "Quorum",
        '.status.conditions[?(@.type=="Quorum")].reason',
        description="Whether a gang that was complete still has its minimum",
    ),
    _AGE,
    Column("Succeeded", ".status.succeeded", "integer", "Pods that ended well", wide=True),
    Column("Failed", ".status.failed", "integer", "Pods that failed", wide=True),
    Column("Scheduling", ".status.scheduleStartTime", "date", "When scheduling began", wide=True),
    Column("Owner", ".status.occupiedBy", description="Workloads whose pods they are", wide=True),
    Column(
        "Message",
        '.status.conditions[?(@.type=="Quorum")].message',
        description="How many pods are lost",
        wide=True,
    ),
)
QUOTA_PROFILE: Final = (
    Column("Quota", ".spec.quotaName", description="Root quota that is kept"),
    Column("Ratio", ".spec.resourceRatio"),
    Column("Nodes", ".status.nodes", "integer", "Nodes that are selected"),
    Column("CPU", ".status.guaranteed.cpu", description="CPU that the quota guarantees"),
    Column("Memory", ".status.guaranteed.memory", description="Memory that it guarantees"),
    _held("Ready", "Whether the quota is as it should be"),
    _AGE,
    _reason("Ready"),
)
TOPOLOGY: Final = (
    Column("Policy", ".topologyPolicies[0]", description="Policy of the kubelet"),
    Column("First zone", ".zones[0].name"),
    _AGE,
    Column(
        "Conditions",
        f".metadata.annotations.{names.ANNOTATION_CONDITIONS.replace('.', chr(92) + '.')}",
        description="Whether its zones count, as JSON",
        wide=True,
    ),
)
