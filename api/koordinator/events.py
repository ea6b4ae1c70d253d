"""Kubernetes events that the processes post: by whom, on what, and what they mean."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from api.koordinator import event_reasons


class Event(NamedTuple):
    """Which process posts an event, on which kind of object, and what it means."""

    process: str
    about: str
    meaning: str


EVENTS: Final[Mapping[event_reasons.Reason, Event]] = {
    "AdmissionMissed": Event(
        "manager",
        "Pod",
        "The pod was created without the webhook and lacks what a profile would have set.",
    ),
    "AdmissionWouldRefuse": Event(
        "manager",
        "Pod",
        "The pod was created without the webhook, which would have refused it.",
    ),
    "AllocationsOverlap": Event(
        "extender",
        "Pod",
        "Two bound pods hold the same CPUs or devices; the younger one is evicted.",
    ),
    "AnnotationUnreadable": Event(
        "manager",
        "Node, NodeSLO",
        "An annotation of the node cannot be read and is ignored.",
    ),
    "CPUBindingRefused": Event(
        "agent",
        "Pod",
        "The pod claims CPUs of its own that it may not have; the agent ignores the claim.",
    ),
    "CPUDrift": Event("agent", "Pod, Node", "A cgroup uses CPUs that belong to another pod alone."),
    "CPUNormalizationCfgUnmarshalFailed": Event(
        "manager",
        "ConfigMap",
        "This key of the cluster settings cannot be read; the last good value stays in force.",
    ),
    "CheckpointUnreadable": Event(
        "manager",
        "Recommendation",
        "The stored history cannot be read; it begins anew.",
    ),
    "ClassesContradict": Event(
        "manager",
        "ClusterColocationProfile",
        "Priority class and QoS class exclude each other, so pods are refused.",
    ),
    "ColocationCfgUnmarshalFailed": Event(
        "manager",
        "ConfigMap",
        "This key of the cluster settings cannot be read; the last good value stays in force.",
    ),
    "Complete": Event("descheduler", "PodMigrationJob", "The pod was moved."),
    "CreateQuotaFailed": Event(
        "manager",
        "ElasticQuotaProfile",
        "The quota of the profile could not be created.",
    ),
    "Descheduled": Event("descheduler", "Pod, its owner", "The pod is moved to another node."),
    "EntryIgnored": Event(
        "manager",
        "ConfigMap",
        "An entry of the cluster settings is wrong and has no effect.",
    ),
    "Expired": Event(
        "manager",
        "Reservation",
        "The Reservation has reached its end; what it held is free.",
    ),
    "FailedCreateReservation": Event(
        "descheduler",
        "PodMigrationJob",
        "No Reservation for the new pod could be created.",
    ),
    "FailedEvict": Event(
        "descheduler",
        "PodMigrationJob",
        "The Eviction API refused to evict the pod.",
    ),
    "FailedScheduling": Event("manager", "Reservation", "No node has room for the Reservation."),
    "FieldsLeftToOwner": Event(
        "manager",
        "NodeSLO, NodeMetric",
        "Another client owns some fields; the manager leaves them as they are.",
    ),
    "ForbiddenMigratePod": Event(
        "descheduler",
        "PodMigrationJob",
        "The pod must not be moved; the message says why.",
    ),
    "ForeignWriter": Event(
        "agent",
        "Node",
        "Another program keeps changing a cgroup value; the agent no longer restores it.",
    ),
    "GangBelowQuorum": Event(
        "manager",
        "PodGroup, its owner, Pod",
        "A gang that was complete has fewer pods than its minimum.",
    ),
    "GangPlanFailed": Event(
        "extender",
        "Pod",
        "The plan of the gang was given up; the extender plans it again.",
    ),
    "GangQuorumRestored": Event(
        "manager",
        "PodGroup, its owner, Pod",
        "The gang has its minimum again.",
    ),
    "GangRestartDelayed": Event(
        "manager",
        "PodGroup, its owner, Pod",
        "The gang is to restart, but not yet; the message says why.",
    ),
    "GangRestartIncomplete": Event(
        "manager",
        "PodGroup, its owner, Pod",
        "Disruption budgets kept some pods of a gang that restarts.",
    ),
    "GangRestarted": Event(
        "manager",
        "PodGroup, its owner, Pod",
        "The pods of the gang are evicted so that it starts anew.",
    ),
    "GangUnschedulable": Event("extender", "Pod", "There are no places for the whole gang."),
    "GroupFailed": Event(
        "descheduler",
        "PodMigrationJob",
        "Another pod that had to move together with this one cannot move.",
    ),
    "Interference": Event("agent", "Pod", "Neighbours slow the pod down."),
    "InvalidLayers": Event(
        "manager",
        "ClusterNetworkTopology",
        "The layers form no chain; the ones before stay in force.",
    ),
    "InvalidPodGroup": Event("manager", "PodGroup", "The PodGroup cannot be read."),
    "InvalidPodRef": Event(
        "descheduler",
        "PodMigrationJob",
        "The reference to the pod lacks its namespace or name.",
    ),
    "LayersAccepted": Event(
        "manager",
        "ClusterNetworkTopology",
        "The layers form a chain and are in force.",
    ),
    "LendingStarted": Event("manager", "Node", "The node begins to lend batch resources."),
    "LendingStopped": Event("manager", "Node", "The node lends nothing any more."),
    "Migrating": Event("descheduler", "PodMigrationJob", "The job has begun."),
    "MinimumsExceeded": Event(
        "manager",
        "ElasticQuota",
        "The children guarantee more than the quota itself has.",
    ),
    "MissingPod": Event("descheduler", "PodMigrationJob", "The pod is gone."),
    "MissingReservation": Event(
        "descheduler",
        "PodMigrationJob",
        "The Reservation of the job is gone.",
    ),
    "MoveDidNotPay": Event(
        "descheduler",
        "PodMigrationJob, Pod",
        "The move brought less than was expected.",
    ),
    "MoveOutcomeUnknown": Event(
        "descheduler",
        "PodMigrationJob, Pod",
        "What the move brought cannot be told.",
    ),
    "MovePaid": Event("descheduler", "PodMigrationJob, Pod", "The move brought what was expected."),
    "NameConflict": Event("manager", "ElasticQuota", "Two objects claim the same quota name."),
    "NamesUnique": Event(
        "manager",
        "ClusterNetworkTopology",
        "The name of a domain says which one is meant.",
    ),
    "NoSuchNode": Event("manager", "NodeSLO, NodeMetric", "There is no node of this name."),
    "NodesInside": Event(
        "manager",
        "ClusterNetworkTopology",
        "Every node has a place in the network.",
    ),
    "NodesOutside": Event(
        "manager",
        "ClusterNetworkTopology",
        "Some nodes lack a label of a layer.",
    ),
    "NodesRefused": Event(
        "extender",
        "Pod",
        "The extender refuses nodes; the message groups them by reason.",
    ),
    "NodesWouldBeRefused": Event(
        "extender",
        "Pod",
        "In observe mode: the extender would refuse these nodes.",
    ),
    "NotAmplified": Event(
        "manager",
        "Node",
        "The resources of the node are not amplified; the message says why.",
    ),
    "NotNormalized": Event(
        "manager",
        "Node",
        "The CPUs of the node are not normalized; the message says why.",
    ),
    "ParentNotFound": Event("manager", "ElasticQuota", "The parent of the quota does not exist."),
    "ParentRefused": Event("manager", "ElasticQuota", "The named quota cannot be the parent."),
    "PartialGang": Event(
        "extender",
        "Pod",
        "A gang stayed incomplete after an interruption; the pod is evicted.",
    ),
    "Pod Level Resctrl": Event(
        "agent",
        "Pod",
        "The pod got a share of the last-level cache of its own.",
    ),
    "PodNotChanged": Event(
        "manager",
        "ClusterColocationProfile",
        "A waiting pod that the profile selects could not be changed.",
    ),
    "PodsAdmitted": Event(
        "manager",
        "ClusterColocationProfile",
        "Pods that the profile selects are admitted.",
    ),
    "Preempted": Event("extender", "Pod", "The pod is evicted for a pod of higher priority."),
    "Preempting": Event("extender", "Pod", "Pods of lower priority are evicted for this pod."),
    "PreemptionFailed": Event("extender", "Pod", "A preemption for this pod came to nothing."),
    "PriorityClassMissing": Event(
        "manager",
        "ClusterColocationProfile",
        "The priority class does not exist, so pods that the profile selects are refused.",
    ),
    "ProfileAccepted": Event(
        "manager",
        "ClusterColocationProfile",
        "Admission applies the profile.",
    ),
    "ProfileEffective": Event(
        "manager",
        "ClusterColocationProfile",
        "No other profile overrides this one.",
    ),
    "ProfileHalted": Event(
        "descheduler",
        "ConfigMap",
        "Moves of a profile do not pay; it only says what it would move.",
    ),
    "ProfileInvalid": Event(
        "manager",
        "ClusterColocationProfile",
        "Admission cannot apply the profile; the message says why.",
    ),
    "ProfileOverridden": Event(
        "manager",
        "ClusterColocationProfile",
        "Another profile sets the same fields otherwise for all of its pods.",
    ),
    "ProfileUnreadable": Event(
        "manager",
        "ElasticQuotaProfile",
        "The profile cannot be read and makes no quota.",
    ),
    "ProfileWithoutEffect": Event(
        "manager",
        "ClusterColocationProfile",
        "The probability is 0, so no pod is changed.",
    ),
    "QuotaReclaimed": Event(
        "manager",
        "Pod",
        "The pod is evicted because its quota borrowed what another now needs.",
    ),
    "QuotaRevoked": Event(
        "manager",
        "Pod",
        "The pod is evicted because its quota used more than it may for too long.",
    ),
    "RatioIgnored": Event(
        "manager",
        "ElasticQuotaProfile",
        "The resource ratio cannot be read and is ignored.",
    ),
    "ReclaimingQuota": Event(
        "manager",
        "Pod",
        "Borrowers are evicted so that this pod gets what its quota guarantees.",
    ),
    "ReservationExpired": Event(
        "descheduler",
        "PodMigrationJob",
        "The Reservation of the job expired before the pod was evicted.",
    ),
    "ResourceAmplificationCfgUnmarshalFailed": Event(
        "manager",
        "ConfigMap",
        "This key of the cluster settings cannot be read; the last good value stays in force.",
    ),
    "ResourceKeysIgnored": Event(
        "manager",
        "ElasticQuotaProfile",
        "The list of resources cannot be read and is ignored.",
    ),
    "SLOCfgUnmarshalFailed": Event(
        "manager",
        "ConfigMap",
        "A key of the cluster settings cannot be read; the last good value stays in force.",
    ),
    "Scheduled": Event(
        "extender",
        "Reservation",
        "The Reservation has a node and holds its resources there.",
    ),
    "SchedulerConfigRefused": Event(
        "extender",
        "ConfigMap",
        "The plug-in arguments cannot be used; the last good ones stay in force.",
    ),
    "SharedNames": Event(
        "manager",
        "ClusterNetworkTopology",
        "Domains of one layer share a name and count as several.",
    ),
    "Timeout": Event("descheduler", "PodMigrationJob", "The job did not end in time."),
    "TooManyDomains": Event(
        "manager",
        "ClusterNetworkTopology",
        "The status leaves domains out because there are too many.",
    ),
    "Unattended": Event(
        "agent",
        "Node",
        "The agent before this one ended without handing over; nothing was restored meanwhile.",
    ),
    "Unschedulable": Event(
        "descheduler",
        "PodMigrationJob",
        "No node has room for the Reservation of the new pod.",
    ),
    "UpdateQuotaFailed": Event(
        "manager",
        "ElasticQuotaProfile",
        "The quota of the profile could not be updated.",
    ),
    "ValueOutOfRange": Event(
        "manager",
        "ConfigMap",
        "A value of the cluster settings is outside its range and is used all the same.",
    ),
    "WebhookRestored": Event(
        "manager",
        "webhook configuration",
        "An endpoint answers again; the webhook is called again.",
    ),
    "WebhookUnreachable": Event(
        "manager",
        "webhook configuration",
        "No endpoint of the webhook answers.",
    ),
    "WebhookWithdrawn": Event(
        "manager",
        "webhook configuration",
        "No endpoint answered for long; pods are created without the webhook.",
    ),
    "WouldPreempt": Event(
        "extender",
        "Pod",
        "In observe mode: the extender would evict pods of lower priority.",
    ),
    "WouldReclaimQuota": Event(
        "manager",
        "Pod",
        "In observe mode: borrowers would be evicted for this pod.",
    ),
    "WouldRestartGang": Event(
        "manager",
        "PodGroup, its owner, Pod",
        "In observe mode: the gang would restart.",
    ),
    "evictPodFail": Event("agent", "Pod", "The agent could not evict the pod."),
    "evictPodSuccess": Event("agent", "Pod", "The agent evicted the pod to protect the node."),
}
