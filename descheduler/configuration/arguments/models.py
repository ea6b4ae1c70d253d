"""Plug-in to the model of its arguments: one visible table."""

from collections.abc import Mapping
from typing import Final

from api.plugin_args.arguments import Arguments
from descheduler.configuration.arguments import (
    compliance,
    evictor,
    load,
    migration,
    packing,
    utilization,
)

MIGRATION_CONTROLLER: Final = "MigrationController"
DEFAULT_EVICTOR: Final = "DefaultEvictor"
LOW_NODE_LOAD: Final = "LowNodeLoad"
CUSTOM_PRIORITY: Final = "CustomPriority"
FRAGMENTATION_AWARE: Final = "FragmentationAware"
SCALE_DOWN_BIN_PACK: Final = "ScaleDownBinPack"
HIGH_NODE_UTILIZATION: Final = "HighNodeUtilization"
LOW_NODE_UTILIZATION: Final = "LowNodeUtilization"
POD_LIFE_TIME: Final = "PodLifeTime"
FAILED_PODS: Final = "RemoveFailedPods"
DUPLICATES: Final = "RemoveDuplicates"
TOO_MANY_RESTARTS: Final = "RemovePodsHavingTooManyRestarts"
INTER_POD_ANTI_AFFINITY: Final = "RemovePodsViolatingInterPodAntiAffinity"
NODE_AFFINITY: Final = "RemovePodsViolatingNodeAffinity"
NODE_TAINTS: Final = "RemovePodsViolatingNodeTaints"
TOPOLOGY_SPREAD: Final = "RemovePodsViolatingTopologySpreadConstraint"

MODELS: Final[Mapping[str, type[Arguments]]] = {
    MIGRATION_CONTROLLER: migration.MigrationControllerArgs,
    DEFAULT_EVICTOR: evictor.DefaultEvictorArgs,
    LOW_NODE_LOAD: load.LowNodeLoadArgs,
    CUSTOM_PRIORITY: packing.CustomPriorityArgs,
    FRAGMENTATION_AWARE: packing.FragmentationAwareArgs,
    SCALE_DOWN_BIN_PACK: packing.ScaleDownBinPackArgs,
    HIGH_NODE_UTILIZATION: utilization.HighNodeUtilizationArgs,
    LOW_NODE_UTILIZATION: utilization.LowNodeUtilizationArgs,
    POD_LIFE_TIME: compliance.PodLifeTimeArgs,
    FAILED_PODS: compliance.RemoveFailedPodsArgs,
    DUPLICATES: compliance.RemoveDuplicatesArgs,
    TOO_MANY_RESTARTS: compliance.RemovePodsHavingTooManyRestartsArgs,
    INTER_POD_ANTI_AFFINITY: compliance.RemovePodsViolatingInterPodAntiAffinityArgs,
    NODE_AFFINITY: compliance.RemovePodsViolatingNodeAffinityArgs,
    NODE_TAINTS: compliance.RemovePodsViolatingNodeTaintsArgs,
    TOPOLOGY_SPREAD: compliance.RemovePodsViolatingTopologySpreadConstraintArgs,
}
