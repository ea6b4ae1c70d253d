"""Fields of built-in kinds in protobuf: what watches in protobuf read of a pod, by message.

A field is written as `name type number`, with the name that it has in JSON. `?` marks a field
whose zero differs from its absence; any other zero is left out, as JSON leaves it out. `[]` is a
list, `{}` a map by string. Numbers never change between releases, and fields that are not named
are skipped.
"""

from collections.abc import Mapping
from typing import Final

EVENT: Final[Mapping[str, str]] = {
    "WatchEvent": "type string 1, object RawExtension 2",
    "RawExtension": "raw bytes 1",
    "Unknown": "typeMeta TypeMeta 1, raw bytes 2",
    "TypeMeta": "apiVersion string 1, kind string 2",
    "Status": (
        "status string 2, message string 3, reason string 4, details StatusDetails 5, code int32 6"
    ),
    "StatusDetails": "name string 1, group string 2, kind string 3, retryAfterSeconds int32 5",
}
"""The envelope of an event, and the object of one that is an error."""

_METADATA: Final[Mapping[str, str]] = {
    "Time": "seconds int64? 1",
    "Quantity": "string string 1",
    "ObjectMeta": (
        "name string 1, generateName string 2, namespace string 3, uid string 5, "
        "resourceVersion string 6, generation int64 7, creationTimestamp Time 8, "
        "deletionTimestamp Time 9, labels string{} 11, annotations string{} 12, "
        "ownerReferences OwnerReference[] 13"
    ),
    "OwnerReference": (
        "kind string 1, name string 3, uid string 4, apiVersion string 5, controller bool? 6"
    ),
    "LabelSelector": "matchLabels string{} 1, matchExpressions LabelSelectorRequirement[] 2",
    "LabelSelectorRequirement": "key string 1, operator string 2, values string[] 3",
}

_AFFINITY: Final[Mapping[str, str]] = {
    "Affinity": (
        "nodeAffinity NodeAffinity 1, podAffinity PodAffinity 2, podAntiAffinity PodAffinity 3"
    ),
    "NodeAffinity": (
        "requiredDuringSchedulingIgnoredDuringExecution NodeSelector 1, "
        "preferredDuringSchedulingIgnoredDuringExecution PreferredSchedulingTerm[] 2"
    ),
    "PreferredSchedulingTerm": "weight int32 1, preference NodeSelectorTerm 2",
    "NodeSelector": "nodeSelectorTerms NodeSelectorTerm[] 1",
    "NodeSelectorTerm": (
        "matchExpressions NodeSelectorRequirement[] 1, matchFields NodeSelectorRequirement[] 2"
    ),
    "NodeSelectorRequirement": "key string 1, operator string 2, values string[] 3",
    "PodAffinity": (
        "requiredDuringSchedulingIgnoredDuringExecution PodAffinityTerm[] 1, "
        "preferredDuringSchedulingIgnoredDuringExecution WeightedPodAffinityTerm[] 2"
    ),
    "WeightedPodAffinityTerm": "weight int32 1, podAffinityTerm PodAffinityTerm 2",
    "PodAffinityTerm": (
        "labelSelector LabelSelector 1, namespaces string[] 2, topologyKey string 3, "
        "namespaceSelector LabelSelector 4, matchLabelKeys string[] 5, mismatchLabelKeys string[] 6"
    ),
}

POD: Final[Mapping[str, str]] = {
    **_METADATA,
    **_AFFINITY,
    "Pod": "metadata ObjectMeta 1, spec PodSpec 2, status PodStatus 3",
    "PodSpec": (
        "containers Container[] 2, restartPolicy string 3, terminationGracePeriodSeconds int64? 4, "
        "activeDeadlineSeconds int64? 5, nodeSelector string{} 7, serviceAccountName string 8, "
        "nodeName string 10, hostNetwork bool 11, affinity Affinity 18, schedulerName string 19, "
        "initContainers Container[] 20, tolerations Toleration[] 22, priorityClassName string 24, "
        "priority int32? 25, runtimeClassName string? 29, preemptionPolicy string? 31, "
        "overhead Quantity{} 32, topologySpreadConstraints TopologySpreadConstraint[] 33, "
        "resourceClaims PodResourceClaim[] 39, schedulingGates PodSchedulingGate[] 38, "
        "resources ResourceRequirements 40, schedulingGroup PodSchedulingGroup 43"
    ),
    "PodSchedulingGroup": "podGroupName string 1",
    "Container": (
        "name string 1, image string 2, ports ContainerPort[] 6, "
        "resources ResourceRequirements 8, restartPolicy string? 24"
    ),
    "ContainerPort": "hostPort int32 2, protocol string 4, hostIP string 5",
    "ResourceRequirements": "limits Quantity{} 1, requests Quantity{} 2",
    "Toleration": (
        "key string 1, operator string 2, "
        "value string 3, effect string 4, tolerationSeconds int64? 5"
    ),
    "PodSchedulingGate": "name string? 1",
    "TopologySpreadConstraint": "topologyKey string 2, whenUnsatisfiable string 3",
    "PodResourceClaim": "name string 1",
    "PodStatus": (
        "phase string 1, conditions PodCondition[] 2, "
        "reason string 4, podIP string 6, startTime Time 7, "
        "containerStatuses ContainerStatus[] 8, qosClass string 9, "
        "initContainerStatuses ContainerStatus[] 10, nominatedNodeName string 11, "
        "allocatedResources Quantity{} 19, resources ResourceRequirements 20"
    ),
    "PodCondition": (
        "type string 1, status string 2, "
        "lastTransitionTime Time 4, reason string 5, message string 6"
    ),
    "ContainerStatus": (
        "name string 1, state ContainerState 2, ready bool 4, restartCount int32 5, "
        "containerID string 8, started bool? 9, allocatedResources Quantity{} 10, "
        "resources ResourceRequirements 11"
    ),
    "ContainerState": (
        "waiting ContainerStateWaiting 1, running ContainerStateRunning 2, "
        "terminated ContainerStateTerminated 3"
    ),
    "ContainerStateWaiting": "reason string 1, message string 2",
    "ContainerStateRunning": "startedAt Time 1",
    "ContainerStateTerminated": (
        "exitCode int32? 1, signal int32 2, reason string 3, message string 4, startedAt Time 5, "
        "finishedAt Time 6, containerID string 7"
    ),
}
"""What is read of pods that may have a node: everything of `core.Pod`."""

POD_WITH_VOLUMES: Final[Mapping[str, str]] = {
    **POD,
    "PodSpec": f"{POD['PodSpec']}, volumes Volume[] 1",
    "PodStatus": f"{POD['PodStatus']}, ephemeralContainerStatuses ContainerStatus[] 13",
    "TopologySpreadConstraint": (
        "maxSkew int32 1, topologyKey string 2, whenUnsatisfiable string 3, "
        "labelSelector LabelSelector 4, minDomains int32? 5, nodeAffinityPolicy string? 6, "
        "nodeTaintsPolicy string? 7, matchLabelKeys string[] 8"
    ),
    "Volume": "name string 1, volumeSource VolumeSource 2",
    "VolumeSource": (
        "hostPath HostPath 1, emptyDir EmptyDir 2, "
        "persistentVolumeClaim PersistentVolumeClaimSource 10"
    ),
    "HostPath": "path string 1",
    "EmptyDir": "medium string 1",
    "PersistentVolumeClaimSource": "claimName string 1",
}
"""The same with volumes, ephemeral containers and topology spread as a whole.

A volume's source is a part of it here; JSON has its fields beside the name.
"""
