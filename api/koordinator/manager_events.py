"""Kubernetes events that the manager posts: on what, and what they mean."""

from collections.abc import Mapping
from typing import Final

from api.koordinator import event_reasons

MEANINGS: Final[Mapping[event_reasons.Reason, tuple[str, str]]] = {
    "AdmissionMissed": (
        "Pod",
        "The pod was created without the webhook and lacks what admission would have set.",
    ),
    "AdmissionWouldRefuse": (
        "Pod",
        "The pod was created without the webhook, which would have refused it.",
    ),
    "AnnotationUnreadable": (
        "Node, NodeSLO",
        "An annotation or a label of the node cannot be read and is ignored.",
    ),
    "CPUNormalizationCfgUnmarshalFailed": (
        "ConfigMap",
        "This key of the cluster settings cannot be read; the last good value stays in force.",
    ),
    "CheckpointUnreadable": (
        "Recommendation",
        "The stored history cannot be read; it begins anew.",
    ),
    "ClassesContradict": (
        "ClusterColocationProfile",
        "Priority class and QoS class exclude each other, so pods are refused.",
    ),
    "ColocationCfgUnmarshalFailed": (
        "ConfigMap",
        "This key of the cluster settings cannot be read; the last good value stays in force.",
    ),
    "CreateQuotaFailed": ("ElasticQuotaProfile", "The quota of the profile could not be created."),
    "DeviceUnreadable": (
        "Device",
        "The object cannot be read; the node is taken to have no devices.",
    ),
    "DevicesHealthy": ("Device", "No device of the node is sick."),
    "DevicesListed": ("Device", "The devices of the node are known."),
    "DevicesUnhealthy": ("Device", "Devices of the node are not healthy; pods get none of them."),
    "EntryIgnored": ("ConfigMap", "An entry of the cluster settings is wrong and has no effect."),
    "Expired": ("Reservation", "The Reservation has reached its end; what it held is free."),
    "FailedScheduling": ("Reservation", "No node has room for the Reservation."),
    "FieldsLeftToOwner": (
        "NodeSLO, NodeMetric",
        "Another client owns some fields; the manager leaves them as they are.",
    ),
    "FiguresReported": ("Recommendation", "Requests are recommended by what the pods use."),
    "GangBelowQuorum": (
        "PodGroup, its owner, Pod",
        "A gang that was complete has fewer pods than its minimum.",
    ),
    "GangQuorumRestored": ("PodGroup, its owner, Pod", "The gang has its minimum again."),
    "GangRestartDelayed": (
        "PodGroup, its owner, Pod",
        "The gang is to restart, but not yet; the message says why.",
    ),
    "GangRestartIncomplete": (
        "PodGroup, its owner, Pod",
        "Disruption budgets kept some pods of a gang that restarts.",
    ),
    "GangRestarted": (
        "PodGroup, its owner, Pod",
        "The pods of the gang are evicted so that it starts anew.",
    ),
    "InvalidLayers": (
        "ClusterNetworkTopology",
        "The layers form no chain; the ones before stay in force.",
    ),
    "InvalidPodGroup": ("PodGroup", "The PodGroup cannot be read."),
    "LayersAccepted": ("ClusterNetworkTopology", "The layers form a chain and are in force."),
    "LendingStarted": ("Node", "The node begins to lend batch resources."),
    "LendingStopped": ("Node", "The node lends nothing any more."),
    "MinimumsCovered": ("ElasticQuota", "The min of the quota covers that of its children again."),
    "MinimumsExceeded": ("ElasticQuota", "The children guarantee more than the quota itself has."),
    "NameConflict": ("ElasticQuota", "Two objects claim the same quota name."),
    "NamesUnique": ("ClusterNetworkTopology", "The name of a domain says which one is meant."),
    "NoFiguresYet": ("Recommendation", "No agent has reported what the pods use."),
    "NoNodesSelected": (
        "ElasticQuotaProfile",
        "No node carries the labels, so the quota guarantees nothing.",
    ),
    "NoPodsMatched": ("Recommendation", "No running pod belongs to the target."),
    "NoSuchNode": ("NodeSLO, NodeMetric, NodeResourceTopology", "There is no node of this name."),
    "NodesInside": ("ClusterNetworkTopology", "Every node has a place in the network."),
    "NodesOutside": ("ClusterNetworkTopology", "Some nodes lack a label of a layer."),
    "NodesSelected": ("ElasticQuotaProfile", "The profile selects nodes."),
    "NotAmplified": ("Node", "The resources of the node are not amplified; the message says why."),
    "NotNormalized": ("Node", "The CPUs of the node are not normalized; the message says why."),
    "ParentNotFound": ("ElasticQuota", "The parent of the quota does not exist."),
    "ParentRefused": ("ElasticQuota", "The named quota cannot be the parent."),
    "PodNotChanged": (
        "ClusterColocationProfile",
        "A waiting pod that the profile selects could not be changed.",
    ),
    "PodsAdmitted": ("ClusterColocationProfile", "Pods that the profile selects are admitted."),
    "PriorityClassMissing": (
        "ClusterColocationProfile",
        "The priority class does not exist, so pods that the profile selects are refused.",
    ),
    "ProfileAccepted": ("ClusterColocationProfile", "Admission applies the profile."),
    "ProfileEffective": ("ClusterColocationProfile", "No other profile overrides this one."),
    "ProfileInvalid": (
        "ClusterColocationProfile",
        "Admission cannot apply the profile; the message says why.",
    ),
    "ProfileOverridden": (
        "ClusterColocationProfile",
        "Another profile sets the same fields otherwise for all of its pods.",
    ),
    "ProfileUnreadable": ("ElasticQuotaProfile", "The profile cannot be read and makes no quota."),
    "ProfileWithoutEffect": (
        "ClusterColocationProfile",
        "The probability is 0, so no pod is changed.",
    ),
    "QuotaCounted": ("ElasticQuota", "The object is what the quota of its name is."),
    "QuotaKept": ("ElasticQuotaProfile", "The quota of the profile is as large as its nodes."),
    "QuotaPlaced": ("ElasticQuota", "The quota stands below its parent again."),
    "QuotaProfileAccepted": ("ElasticQuotaProfile", "All that the profile says is followed."),
    "QuotaReclaimed": (
        "Pod",
        "The pod is evicted because its quota borrowed what another now needs.",
    ),
    "QuotaRevoked": (
        "Pod",
        "The pod is evicted because its quota used more than it may for too long.",
    ),
    "RatioIgnored": ("ElasticQuotaProfile", "The resource ratio cannot be read and is ignored."),
    "ReclaimingQuota": (
        "Pod",
        "Borrowers are evicted so that this pod gets what its quota guarantees.",
    ),
    "ResourceAmplificationCfgUnmarshalFailed": (
        "ConfigMap",
        "This key of the cluster settings cannot be read; the last good value stays in force.",
    ),
    "ResourceKeysIgnored": (
        "ElasticQuotaProfile",
        "The list of resources cannot be read and is ignored.",
    ),
    "SLOCfgUnmarshalFailed": (
        "ConfigMap",
        "A key of the cluster settings cannot be read; the last good value stays in force.",
    ),
    "SharedNames": (
        "ClusterNetworkTopology",
        "Domains of one layer share a name and count as several.",
    ),
    "TargetUnreadable": ("Recommendation", "The target cannot be read; the message says why."),
    "TooManyDomains": (
        "ClusterNetworkTopology",
        "The status leaves domains out because there are too many.",
    ),
    "TopologyAccepted": ("NodeResourceTopology", "The zones of the node count."),
    "TopologyUnreadable": (
        "NodeResourceTopology",
        "The object cannot be read; the message says why.",
    ),
    "UpdateQuotaFailed": ("ElasticQuotaProfile", "The quota of the profile could not be updated."),
    "ValueOutOfRange": (
        "ConfigMap",
        "A value of the cluster settings is outside its range and is used all the same.",
    ),
    "WebhookRestored": (
        "webhook configuration",
        "An endpoint answers again; the webhook is called again.",
    ),
    "WebhookUnreachable": ("webhook configuration", "No endpoint of the webhook answers."),
    "WebhookWithdrawn": (
        "webhook configuration",
        "No endpoint answered for long; pods are created without the webhook.",
    ),
    "WouldReclaimQuota": ("Pod", "In observe mode: borrowers would be evicted for this pod."),
    "WouldRestartGang": ("PodGroup, its owner, Pod", "In observe mode: the gang would restart."),
    "ZonesEmpty": ("NodeResourceTopology", "No zone says how much CPU or memory it has."),
}
