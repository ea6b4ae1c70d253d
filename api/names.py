"""Every label, annotation, resource and object name that the system knows, each spelled once."""

from collections.abc import Mapping
from typing import Final

# --- Installation -------------------------------------------------------------------------------
NAMESPACE: Final = "koordinator-system"
SCHEDULER: Final = "koord-scheduler"
CONFIG_MAP_SLO: Final = "slo-controller-config"
CONFIG_MAP_GPU_TEMPLATES: Final = "gpu-shared-resource-templates"
CONFIG_MAP_SCHEDULER: Final = "koord-scheduler-config"
CONFIG_MAP_SWITCHES: Final = "koord-switches"
CONFIG_MAP_DESCHEDULER: Final = "koord-descheduler-config"
CONFIG_MAP_DESCHEDULER_MEMORY: Final = "koord-descheduler-memory"
CONFIG_MAP_REPORT: Final = "koord-colocation-report"
DEFAULT_NETWORK_TOPOLOGY: Final = "default"
MANAGED_BY: Final = "Koordinator"
INSTALLED: Final[Mapping[str, str]] = {"app.kubernetes.io/part-of": "koord"}
"""Labels of everything that an installation brings; what lacks them is not ours."""

# --- Ours: keys that only this product writes ---------------------------------------------------
PLACEMENT: Final = "koord.sh/placement"
ANNOTATION_PLAN: Final = "koord.sh/plan"
GATE_GANG: Final = "koord.sh/gang"
LEASE_GANG_BACKLOG: Final = "koord-gang-backlog"
"""Held while many members of gangs have a place and kube-scheduler has not tried them yet."""
GATE_QUOTA: Final = "koord.sh/quota"
CONDITION_QUOTA: Final = "koord.sh/QuotaAvailable"
CONDITION_GANG: Final = "koord.sh/GangReady"
ANNOTATION_NUDGE: Final = "koord.sh/nudge"
ANNOTATION_FENCE: Final = "koord.sh/fence"
ANNOTATION_PREEMPTION: Final = "koord.sh/preemption"
ANNOTATION_BARRIER: Final = "koord.sh/barrier"
ANNOTATION_PROFILES: Final = "koord.sh/profiles"
ANNOTATION_CHANGES: Final = "koord.sh/changes"
ANNOTATION_STRATEGIES: Final = "koord.sh/strategies"
INTERFERENCE: Final = "koord.sh/interference"
THROTTLED: Final = "koord.sh/throttled"
"""In percent of periods, among the extensions of a pod in a NodeMetric."""
ANNOTATION_DEVICES: Final = "koord.sh/devices"
LABEL_DEVICE_COUNTS: Final = {
    "gpu": "koord.sh/gpu-count",
    "npu": "koord.sh/npu-count",
    "rdma": "koord.sh/rdma-count",
    "fpga": "koord.sh/fpga-count",
}
ANNOTATION_DEVICES_OFFERED: Final = "koord.sh/devices-offered"
"""Of a Node whose devices the manager offers, so that it takes off nothing that others offer."""
LABEL_DEVICES_TIMESTAMP: Final = "koord.sh/devices-timestamp"
ANNOTATION_WITHDRAWN: Final = "koord.sh/withdrawn"
ANNOTATION_ADMISSION: Final = "koord.sh/admission"
ANNOTATION_SCHEDULERS: Final = "koord.sh/schedulers"
ANNOTATION_CONDITIONS: Final = "koord.sh/conditions"
"""On a NodeResourceTopology, which has no status: its conditions, as a list in JSON."""
LABEL_STAND_IN: Final = "koord.sh/reservation-stand-in"
"""On the pod that stands in for a Reservation while kube-scheduler places it: the name of the
Reservation, or `sha256-` and a digest of it where it is no value of a label."""
ANNOTATION_STAND_IN_NAME: Final = "koord.sh/reservation-name"
ANNOTATION_STAND_IN_UID: Final = "koord.sh/reservation-uid"
ANNOTATION_STAND_IN_GENERATION: Final = "koord.sh/reservation-generation"
ANNOTATION_STAND_IN_PODS: Final = "koord.sh/reservation-pods"
ANNOTATION_STAND_IN_POLICY: Final = "koord.sh/reservation-policy"
ANNOTATION_EXEMPT: Final = "koord.sh/descheduler-exempt"
"""On a pod, its workload or its namespace: the descheduler moves none of these pods."""
ANNOTATION_CAPTURE: Final = "koord.sh/capture"
"""On a Reservation: the attempt to place it that began last; writes of earlier ones fail."""
ANNOTATION_MIGRATION_PROFILE: Final = "koord.sh/migration-profile"
"""On a PodMigrationJob: the profile of the descheduler as whose arguments say it is carried out."""
ANNOTATION_MIGRATION_SOURCE: Final = "koord.sh/migration-source"
"""On a PodMigrationJob: the node that the pod leaves."""
ANNOTATION_MIGRATION_TARGET: Final = "koord.sh/migration-target"
"""On a PodMigrationJob: the node that the pod moves to."""
ANNOTATION_MIGRATION_GAIN: Final = "koord.sh/migration-gain"
"""On a PodMigrationJob: what the move gains, as the round has computed it."""
ANNOTATION_MIGRATION_RECEIPT: Final = "koord.sh/migration-receipt"
"""On a PodMigrationJob: what the move is expected to bring and, measured after it, what it has
brought, as JSON with a `sentence`."""
ANNOTATION_MIGRATION_GROUP: Final = "koord.sh/migration-group"
"""On PodMigrationJobs of pods that move together or not at all."""
ANNOTATION_MIGRATION_GROUP_SIZE: Final = "koord.sh/migration-group-size"
ANNOTATION_MIGRATION_WORKLOAD: Final = "koord.sh/migration-workload"
"""On a PodMigrationJob: uid of the controller of its pod, whose evictions are counted."""

# --- QoS, priority and resources ----------------------------------------------------------------
LABEL_QOS: Final = "koordinator.sh/qosClass"
LABEL_PRIORITY: Final = "koordinator.sh/priority"
LABEL_PRIORITY_CLASS: Final = "koordinator.sh/priority-class"
PRIORITY_CLASS_PROD: Final = "koord-prod"
PRIORITY_CLASS_MID: Final = "koord-mid"
PRIORITY_CLASS_BATCH: Final = "koord-batch"

CPU: Final = "cpu"
MEMORY: Final = "memory"
HUGE_PAGES_2M: Final = "hugepages-2Mi"
HUGE_PAGES_1G: Final = "hugepages-1Gi"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"
BATCH_CPU: Final = "kubernetes.io/batch-cpu"
BATCH_MEMORY: Final = "kubernetes.io/batch-memory"
MID_CPU: Final = "kubernetes.io/mid-cpu"
MID_MEMORY: Final = "kubernetes.io/mid-memory"
GPU: Final = "koordinator.sh/gpu"
GPU_CORE: Final = "koordinator.sh/gpu-core"
GPU_MEMORY: Final = "koordinator.sh/gpu-memory"
GPU_MEMORY_RATIO: Final = "koordinator.sh/gpu-memory-ratio"
GPU_SHARED: Final = "koordinator.sh/gpu.shared"
RDMA: Final = "koordinator.sh/rdma"
NETWORK_BANDWIDTH: Final = "koord.sh/network-bandwidth"
FPGA: Final = "koordinator.sh/fpga"
NVIDIA_GPU: Final = "nvidia.com/gpu"
DCU_GPU: Final = "dcu.com/gpu"
AMD_GPU: Final = "amd.com/gpu"
NPU_CORE: Final = "huawei.com/npu-core"
NPU_CPU: Final = "huawei.com/npu-cpu"
NPU_DVPP: Final = "huawei.com/npu-dvpp"
BATCH_RESOURCES: Final = (BATCH_CPU, BATCH_MEMORY)
MID_RESOURCES: Final = (MID_CPU, MID_MEMORY)

# Old spellings that readers replace; the new name wins when both are present.
DEPRECATED_RESOURCES: Final[Mapping[str, str]] = {
    "koordinator.sh/batch-cpu": BATCH_CPU,
    "koordinator.sh/batch-memory": BATCH_MEMORY,
    "kubernetes.io/rdma": RDMA,
    "kubernetes.io/fpga": FPGA,
    "kubernetes.io/gpu": GPU,
    "kubernetes.io/gpu-core": GPU_CORE,
    "kubernetes.io/gpu-memory": GPU_MEMORY,
    "kubernetes.io/gpu-memory-ratio": GPU_MEMORY_RATIO,
}

# --- Pod: scheduling ----------------------------------------------------------------------------
LABEL_PREEMPTION_POLICY: Final = "scheduling.koordinator.sh/preemption-policy"
LABEL_DISABLE_PREEMPTIBLE: Final = "scheduling.koordinator.sh/disable-preemptible"
LABEL_SCHEDULER_NAME: Final = "scheduling.koordinator.sh/scheduler-name"
LABEL_QUESTIONED_OBJECT_KEY: Final = "scheduling.koordinator.sh/questioned-object-key"
LABEL_TOPOLOGY_KEY_TO_EXPLAIN: Final = "scheduling.koordinator.sh/topology-key-to-explain"
LABEL_OPERATING_MODE: Final = "scheduling.koordinator.sh/operating-mode"
LABEL_MUTATING_UPDATE: Final = "pod.koordinator.sh/mutating-update"
LABEL_SKIP_ENHANCED_VALIDATION: Final = "pod.koordinator.sh/skip-enhanced-validation"
LABEL_BINDING_ADMISSION_BYPASS: Final = "koordinator.sh/binding-admission-bypass"
ANNOTATION_REPLACE_RESOURCES: Final = "pod.koordinator.sh/replace-resources"
ANNOTATION_EXTENDED_RESOURCE_SPEC: Final = "node.koordinator.sh/extended-resource-spec"
ANNOTATION_RESOURCE_SPEC: Final = "scheduling.koordinator.sh/resource-spec"
ANNOTATION_RESOURCE_STATUS: Final = "scheduling.koordinator.sh/resource-status"
ANNOTATION_NUMA_TOPOLOGY_SPEC: Final = "scheduling.koordinator.sh/numa-topology-spec"
ANNOTATION_LOAD_SCALING_FACTORS: Final = "scheduling.koordinator.sh/load-estimated-scaling-factors"
ANNOTATION_LOAD_SECONDS_AFTER_SCHEDULED: Final = (
    "scheduling.koordinator.sh/load-estimated-seconds-after-pod-scheduled"
)
ANNOTATION_LOAD_SECONDS_AFTER_INITIALIZED: Final = (
    "scheduling.koordinator.sh/load-estimated-seconds-after-initialized"
)
ANNOTATION_SCHEDULING_HINT: Final = "internal.scheduling.koordinator.sh/scheduling-hint"
ANNOTATION_SCHEDULING_HINT_OLD: Final = "scheduling.koordinator.sh/scheduling-hint"
ANNOTATION_NETWORK_TOPOLOGY_SELECTOR: Final = "scheduling.koordinator.sh/network-topology-selector"

# --- Pod: on the node ---------------------------------------------------------------------------
LABEL_CORE_SCHED_GROUP: Final = "koordinator.sh/core-sched-group-id"
LABEL_CORE_SCHED_POLICY: Final = "koordinator.sh/core-sched-policy"
ANNOTATION_CPU_BURST: Final = "koordinator.sh/cpuBurst"
ANNOTATION_CPU_QOS: Final = "koordinator.sh/cpuQOS"
ANNOTATION_MEMORY_QOS: Final = "koordinator.sh/memoryQOS"
ANNOTATION_BLKIO_QOS: Final = "koordinator.sh/blkioQOS"
ANNOTATION_NETWORK_QOS: Final = "koordinator.sh/networkQOS"
ANNOTATION_RESCTRL: Final = "node.koordinator.sh/resctrl"
ANNOTATION_OOM_SCORE_ADJ: Final = "koordinator.sh/oom-score-adj"
ANNOTATION_OOM_SCORE_ADJ_SPEC: Final = "koordinator.sh/oom-score-adj-spec"
LABEL_SKIP_HOOK_SERVER: Final = "runtimeproxy.koordinator.sh/skip-hookserver"

# --- Pod: eviction and migration ----------------------------------------------------------------
LABEL_EVICTION_ENABLED: Final = "koordinator.sh/eviction-enabled"
LABEL_EVICT_POLICY: Final = "koordinator.sh/evict-policy"
ANNOTATION_EVICTION_POLICY: Final = "koordinator.sh/eviction-policy"
ANNOTATION_EVICTION_PRIORITY: Final = "koordinator.sh/eviction-priority"
ANNOTATION_EVICTION_COST: Final = "scheduling.koordinator.sh/eviction-cost"
ANNOTATION_SOFT_EVICTION: Final = "scheduling.koordinator.sh/soft-eviction"
ANNOTATION_JOB_CREATED_BY: Final = "koordinator.sh/job-created-by"
ANNOTATION_EVICT_REASON: Final = "koordinator.sh/evict-reason"
ANNOTATION_EVICT_TRIGGER: Final = "koordinator.sh/evict-trigger"
ANNOTATION_PASSED_ARBITRATION: Final = "descheduler.koordinator.sh/passed-arbitration"
ANNOTATION_FORCE_EVICT: Final = "descheduler.alpha.kubernetes.io/evict"
LABEL_DRAIN: Final = "koord.sh/drain"
"""On a PodMigrationJob: the node that `koord drain` empties by it."""
ANNOTATION_PREFER_NO_EVICTION: Final = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
ANNOTATION_POD_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
LABEL_CREATED_BY: Final = "app.kubernetes.io/created-by"
LABEL_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
LABEL_PART_OF: Final = "app.kubernetes.io/part-of"
LABEL_COMPONENT: Final = "app.kubernetes.io/component"

# --- Gangs --------------------------------------------------------------------------------------
LABEL_POD_GROUP: Final = "pod-group.scheduling.sigs.k8s.io"
LABEL_POD_GROUP_OLD: Final = "pod-group.scheduling.sigs.k8s.io/name"
LABEL_POD_GROUP_MIN_AVAILABLE: Final = "pod-group.scheduling.sigs.k8s.io/min-available"
ANNOTATION_POD_GROUP_MATCH_POLICY: Final = "pod-group.scheduling.sigs.k8s.io/match-policy"
ANNOTATION_GANG_NAME: Final = "gang.scheduling.koordinator.sh/name"
ANNOTATION_GANG_MIN_AVAILABLE: Final = "gang.scheduling.koordinator.sh/min-available"
ANNOTATION_GANG_TOTAL: Final = "gang.scheduling.koordinator.sh/total-number"
ANNOTATION_GANG_MODE: Final = "gang.scheduling.koordinator.sh/mode"
ANNOTATION_GANG_WAITING_TIME: Final = "gang.scheduling.koordinator.sh/waiting-time"
ANNOTATION_GANG_GROUPS: Final = "gang.scheduling.koordinator.sh/groups"
ANNOTATION_GANG_MATCH_POLICY: Final = "gang.scheduling.koordinator.sh/match-policy"
ANNOTATION_GANG_TIMEOUT: Final = "gang.scheduling.koordinator.sh/timeout"
ANNOTATION_GANG_NETWORK_TOPOLOGY: Final = "gang.scheduling.koordinator.sh/network-topology-spec"
ANNOTATION_GANG_NETWORK_INDEX: Final = "gang.scheduling.koordinator.sh/network-topology-index"
ANNOTATION_GANG_REPAIR: Final = "koord.sh/gang-repair"
ANNOTATION_BIND_GANG_GROUP: Final = "internal.scheduling.koordinator.sh/bind-gang-group-id"
ANNOTATION_BIND_GANG_MEMBERS: Final = "internal.scheduling.koordinator.sh/bind-gang-member-count"
ANNOTATION_BIND_GANG_GROUP_OLD: Final = "scheduling.koordinator.sh/bind-gang-group-id"
ANNOTATION_BIND_GANG_MEMBERS_OLD: Final = "scheduling.koordinator.sh/bind-gang-member-count"

# --- Reservations -------------------------------------------------------------------------------
ANNOTATION_RESERVATION_AFFINITY: Final = "scheduling.koordinator.sh/reservation-affinity"
ANNOTATION_RESERVATION_ALLOCATED: Final = "scheduling.koordinator.sh/reservation-allocated"
LABEL_RESERVATION_ORDER: Final = "scheduling.koordinator.sh/reservation-order"
LABEL_RESERVATION_IGNORED: Final = "scheduling.koordinator.sh/reservation-ignored"
ANNOTATION_RESERVATION_RESTRICTED: Final = (
    "scheduling.koordinator.sh/reservation-restricted-options"
)
ANNOTATION_EXACT_MATCH_RESERVATION: Final = "scheduling.koordinator.sh/exact-match-reservation"
LABEL_PRE_ALLOCATION_REQUIRED: Final = "scheduling.koordinator.sh/pre-allocation-required"
LABEL_PRE_ALLOCATABLE: Final = "pod.koordinator.sh/is-pre-allocatable"
ANNOTATION_PRE_ALLOCATABLE_PRIORITY: Final = "pod.koordinator.sh/pre-allocatable-priority"
ANNOTATION_RESERVATION_OWNERS: Final = "scheduling.koordinator.sh/reservation-owners"
ANNOTATION_RESERVATION_CURRENT_OWNER: Final = "scheduling.koordinator.sh/reservation-current-owner"
ANNOTATION_RESERVATION_RESIZE: Final = "scheduling.koordinator.sh/reservation-resize-allocatable"
ANNOTATION_RESERVE_POD: Final = "scheduling.koordinator.sh/reserve-pod"
ANNOTATION_RESERVATION_NAME: Final = "scheduling.koordinator.sh/reservation-name"
ANNOTATION_RESERVATION_NODE: Final = "scheduling.koordinator.sh/reservation-node"
ANNOTATION_IS_PRE_ALLOCATION: Final = "scheduling.koordinator.sh/is-pre-allocation"

# --- Devices ------------------------------------------------------------------------------------
LABEL_GPU_ISOLATION_PROVIDER: Final = "koordinator.sh/gpu-isolation-provider"
ANNOTATION_DEVICE_ALLOCATED: Final = "scheduling.koordinator.sh/device-allocated"
ANNOTATION_DEVICE_HINT: Final = "scheduling.koordinator.sh/device-allocate-hint"
ANNOTATION_DEVICE_JOINT: Final = "scheduling.koordinator.sh/device-joint-allocate"
ANNOTATION_GPU_PARTITION_SPEC: Final = "scheduling.koordinator.sh/gpu-partition-spec"
ANNOTATION_GPU_PARTITIONS: Final = "scheduling.koordinator.sh/gpu-partitions"
LABEL_GPU_PARTITION_POLICY: Final = "node.koordinator.sh/gpu-partition-policy"
LABEL_GPU_VENDOR: Final = "node.koordinator.sh/gpu-vendor"
LABEL_GPU_MODEL: Final = "node.koordinator.sh/gpu-model"
LABEL_GPU_DRIVER: Final = "node.koordinator.sh/gpu-driver-version"
LABEL_SECONDARY_DEVICE_PLANNED: Final = "node.koordinator.sh/secondary-device-well-planned"
ANNOTATION_BIND_TIMESTAMP: Final = "scheduling.koordinator.sh/bind-timestamp"
ANNOTATION_GPU_MINORS: Final = "scheduling.koordinator.sh/gpu-minors"
LABEL_HAMI_NODE: Final = "hami.io/vgpu-node"
ANNOTATION_HAMI_LOCK: Final = "hami.io/mutex.lock"
ANNOTATION_CAMBRICON_LOCK: Final = "cambricon.com/dsmlu.lock"
ANNOTATION_HUAWEI_PREDICATE_TIME: Final = "predicate-time"
ANNOTATION_HUAWEI_ASCEND_310P: Final = "huawei.com/Ascend310P"
ANNOTATION_CAMBRICON_ASSIGNED: Final = "CAMBRICON_DSMLU_ASSIGHED"
ANNOTATION_CAMBRICON_PROFILE: Final = "CAMBRICON_DSMLU_PROFILE"
ANNOTATION_METAX_ALLOCATED: Final = "metax-tech.com/gpu-devices-allocated"

# --- Node ---------------------------------------------------------------------------------------
LABEL_CPU_RECLAIM_RATIO: Final = "node.koordinator.sh/cpu-reclaim-ratio"
LABEL_MEMORY_RECLAIM_RATIO: Final = "node.koordinator.sh/memory-reclaim-ratio"
LABEL_MID_CPU_RESERVED_RATIO: Final = "node.koordinator.sh/mid-static-cpu-reserved-ratio"
LABEL_MID_MEMORY_RESERVED_RATIO: Final = "node.koordinator.sh/mid-static-memory-reserved-ratio"
LABEL_CPU_NORMALIZATION: Final = "node.koordinator.sh/cpu-normalization-enabled"
LABEL_CPU_BIND_POLICY: Final = "node.koordinator.sh/cpu-bind-policy"
LABEL_NUMA_ALLOCATE_STRATEGY: Final = "node.koordinator.sh/numa-allocate-strategy"
LABEL_NUMA_TOPOLOGY_POLICY: Final = "node.koordinator.sh/numa-topology-policy"
LABEL_NUMA_RESERVATION: Final = "node.koordinator.sh/enable-numa-reservation"
ANNOTATION_COLOCATION_STRATEGY: Final = "node.koordinator.sh/colocation-strategy"
ANNOTATION_NODE_RESERVATION: Final = "node.koordinator.sh/reservation"
ANNOTATION_SYSTEM_QOS: Final = "node.koordinator.sh/system-qos-resource"
ANNOTATION_NETWORK_BANDWIDTH: Final = "node.koordinator.sh/network-bandwidth"
ANNOTATION_CPU_NORMALIZATION: Final = "node.koordinator.sh/cpu-normalization-ratio"
ANNOTATION_AMPLIFICATION: Final = "node.koordinator.sh/resource-amplification-ratio"
ANNOTATION_RAW_ALLOCATABLE: Final = "node.koordinator.sh/raw-allocatable"
ANNOTATION_USAGE_THRESHOLDS: Final = "scheduling.koordinator.sh/usage-thresholds"
ANNOTATION_ORIGIN_ALLOCATABLE: Final = "node.koordinator.sh/originExtendedAllocatable"
ANNOTATION_THIRD_PARTY: Final = "node.koordinator.sh/thirdPartyAllocations"

# --- NodeResourceTopology -----------------------------------------------------------------------
ANNOTATION_CPU_TOPOLOGY: Final = "node.koordinator.sh/cpu-topology"
ANNOTATION_POD_CPU_ALLOCS: Final = "node.koordinator.sh/pod-cpu-allocs"
ANNOTATION_CPU_SHARED_POOLS: Final = "node.koordinator.sh/cpu-shared-pools"
ANNOTATION_BE_CPU_SHARED_POOLS: Final = "node.koordinator.sh/be-cpu-shared-pools"
ANNOTATION_CPU_MANAGER_POLICY: Final = "kubelet.koordinator.sh/cpu-manager-policy"
ANNOTATION_CPU_BASIC_INFO: Final = "node.koordinator.sh/cpu-basic-info"

# --- Quotas -------------------------------------------------------------------------------------
ROOT_QUOTA: Final = "koordinator-root-quota"
SYSTEM_QUOTA: Final = "koordinator-system-quota"
DEFAULT_QUOTA: Final = "koordinator-default-quota"
RESERVED_QUOTAS: Final = frozenset({ROOT_QUOTA, SYSTEM_QUOTA, DEFAULT_QUOTA})
LABEL_QUOTA_NAME: Final = "quota.scheduling.koordinator.sh/name"
LABEL_QUOTA_PREEMPTIBLE: Final = "quota.scheduling.koordinator.sh/preemptible"
LABEL_QUOTA_IS_PARENT: Final = "quota.scheduling.koordinator.sh/is-parent"
LABEL_QUOTA_PARENT: Final = "quota.scheduling.koordinator.sh/parent"
LABEL_QUOTA_LENT: Final = "quota.scheduling.koordinator.sh/allow-lent-resource"
LABEL_QUOTA_TREE: Final = "quota.scheduling.koordinator.sh/tree-id"
LABEL_QUOTA_IS_ROOT: Final = "quota.scheduling.koordinator.sh/is-root"
LABEL_QUOTA_PROFILE: Final = "quota.scheduling.koordinator.sh/profile"
LABEL_QUOTA_IGNORE_DEFAULT_TREE: Final = "quota.scheduling.koordinator.sh/ignore-default-tree"
LABEL_QUOTA_FORCE_UPDATE: Final = "quota.scheduling.koordinator.sh/allow-force-update"
ANNOTATION_QUOTA_WEIGHT: Final = "quota.scheduling.koordinator.sh/shared-weight"
ANNOTATION_QUOTA_NAMESPACES: Final = "quota.scheduling.koordinator.sh/namespaces"
ANNOTATION_QUOTA_RUNTIME: Final = "quota.scheduling.koordinator.sh/runtime"
ANNOTATION_QUOTA_REQUEST: Final = "quota.scheduling.koordinator.sh/request"
ANNOTATION_QUOTA_CHILD_REQUEST: Final = "quota.scheduling.koordinator.sh/child-request"
ANNOTATION_QUOTA_GUARANTEED: Final = "quota.scheduling.koordinator.sh/guaranteed"
ANNOTATION_QUOTA_ALLOCATED: Final = "quota.scheduling.koordinator.sh/allocated"
ANNOTATION_QUOTA_NON_PREEMPTIBLE_REQUEST: Final = (
    "quota.scheduling.koordinator.sh/non-preemptible-request"
)
ANNOTATION_QUOTA_NON_PREEMPTIBLE_USED: Final = (
    "quota.scheduling.koordinator.sh/non-preemptible-used"
)
ANNOTATION_QUOTA_TOTAL: Final = "quota.scheduling.koordinator.sh/total-resource"
ANNOTATION_QUOTA_UNSCHEDULABLE: Final = "quota.scheduling.koordinator.sh/unschedulable-resource"
ANNOTATION_QUOTA_RESOURCE_KEYS: Final = "quota.scheduling.koordinator.sh/resource-keys"
ANNOTATION_QUOTA_ADMISSION: Final = "quota.scheduling.koordinator.sh/admission"
ANNOTATION_QUOTA_STRICT_KEYS: Final = (
    "quota.scheduling.koordinator.sh/max-strict-check-resource-keys"
)

# --- Profiles, configuration, namespaces --------------------------------------------------------
ANNOTATION_SKIP_UPDATE_RESOURCES: Final = "config.koordinator.sh/skip-update-resources"
LABEL_CONTROLLER_MANAGED: Final = "config.koordinator.sh/controller-managed"
LABEL_CONFIG_MAP_TYPE: Final = "koordinator.sh/configmap-type"
LABEL_CONTROL_PLANE: Final = "control-plane"
LABEL_VIRTUAL_NODE: Final = "type"

# --- Taken from Kubernetes ----------------------------------------------------------------------
LABEL_HOSTNAME: Final = "kubernetes.io/hostname"
LABEL_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
ANNOTATION_API_APPROVED: Final = "api-approved.kubernetes.io"
TAINT_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
DEFAULT_SCHEDULER: Final = "default-scheduler"
