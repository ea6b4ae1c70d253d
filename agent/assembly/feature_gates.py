"""The feature gates of the agent, by the names that its users know."""

from typing import Final

from process.configuration import features

BE_CPU_SUPPRESS: Final = "BECPUSuppress"
NODE_TOPOLOGY_REPORT: Final = "NodeTopologyReport"
INTERFERENCE: Final = "InterferenceDetection"
HUGE_PAGE_REPORT: Final = "HugePageReport"
_BETA: Final = {
    BE_CPU_SUPPRESS: "Shrink best-effort cpu when the node is busy.",
    "CPUBurst": "Let throttled containers exceed their cpu limit for a while.",
    "RdtResctrl": "Divide cache and memory bandwidth among the classes.",
    "GroupIdentity": "Let the kernel favour the cpu time of a class.",
    "CPUSetAllocator": "Put containers on the cpus that they were given or that are shared.",
    "BatchResource": "Set shares, quota and memory limit of batch pods.",
    INTERFERENCE: "Find pods whose neighbours slow them down, where PSI or CPI is collected.",
    NODE_TOPOLOGY_REPORT: "Say how this node is built and which cpus are shared.",
}
_ALPHA: Final = {
    "BECPUManager": "Keep batch pods on the NUMA nodes that they were placed on.",
    HUGE_PAGE_REPORT: "Say how much memory of each NUMA node is kept as huge pages.",
    "BECPUEvict": "Evict batch pods that get too little cpu.",
    "CPUEvict": "Evict pods of low priority when the node uses too much cpu.",
    "CPUAllocatableEvict": "Evict pods of low priority when too much cpu is requested.",
    "BEMemoryEvict": "Evict batch pods when the node uses too much memory.",
    "MemoryEvict": "Evict pods of low priority when the node uses too much memory.",
    "MemoryAllocatableEvict": "Evict pods of low priority when too much memory is requested.",
    "CgroupReconcile": "Protect and reclaim the memory of a class.",
    "BlkIOReconcile": "Limit and weigh block I/O.",
    "SystemConfig": "Set kernel settings of the node.",
    "CPUNormalization": "Scale quotas on nodes with fast cpus.",
    "CoreSched": "Keep classes off each other's cores.",
    "OOMScoreAdj": "Set the oom score that a pod asks for.",
    "Accelerators": "Find GPUs and other accelerators, tell them in the Device, measure their use.",
    "RDMADevices": "Find RDMA adapters and tell them in the Device.",
    "PSICollector": "Measure how long the tasks of pods and containers wait.",
    "ThrottlingCollector": "Measure how often containers are throttled by their CPU limits.",
    "CPICollector": "Count cycles and instructions of containers.",
    "ColdPageCollector": "Measure memory that is not touched.",
    "ResctrlCollector": "Measure the use of caches and memory bandwidth by the classes.",
    "Resctrl": "Give single pods a share of the cache.",
    "GPUEnvInject": "Hand the GPUs that a pod was given to its containers as variables.",
    "RDMADeviceInject": "Hand the RDMA adapters that a pod was given to its containers.",
    "PodResourcesProxy": "Serve the kubelet's PodResources API with the devices of the scheduler.",
    "TCNetworkQoS": "Share the bandwidth of the node's interface among classes and pods.",
    "TerwayQoS": "Tell Terway the bandwidth of classes and pods.",
}
GATES: Final = tuple(
    features.Gate(name, default=default, stage=stage, description=text)
    for described, default, stage in (
        (_BETA, True, features.Stage.BETA),
        (_ALPHA, False, features.Stage.ALPHA),
    )
    for name, text in described.items()
)


def enabled(gates: features.Gates) -> frozenset[str]:
    """Return the names of the gates that are on."""
    return frozenset(gate.name for gate in GATES if gates.enabled(gate.name))
