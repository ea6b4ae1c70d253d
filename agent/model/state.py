"""NodeState: one immutable picture per tick."""

from collections.abc import Mapping

import msgspec

from api import names
from api.koordinator import resource_names
from api.koordinator.metadata import qos
from api.kubernetes import core
from api.wire import quantity

BEST_EFFORT = "BestEffort"
KATA = "kata"
"""The runtime class whose containers run in a virtual machine."""


class Usage(msgspec.Struct, frozen=True, gc=False):
    """Usage: cpu in cores, memory in bytes; None where there is no figure yet."""

    cpu: float | None = None
    memory: int | None = None


class Processor(msgspec.Struct, frozen=True):
    """One logical cpu that is online, and where it sits; cores are counted through all sockets."""

    cpu: int
    core: int
    socket: int
    node: int
    caches: tuple[int, ...] = ()
    """The caches of its data by level, the private one first; empty where unknown."""


class NumaNode(msgspec.Struct, frozen=True):
    """Memory of one NUMA node in bytes."""

    number: int
    memory: int
    huge: Mapping[str, int] = msgspec.field(default_factory=dict)
    """What of it is kept as huge pages, by the name of the resource."""


class ProcessorInfo(msgspec.Struct, frozen=True):
    """What the processors of this machine are."""

    model: str = "unknown"
    vendor: str = ""
    hyper_threads: bool = False
    turbo: bool = False
    cache_mask: str = ""
    """All ways of the last-level cache, in hexadecimal; empty where it cannot be divided."""


class Machine(msgspec.Struct, frozen=True):
    """How this machine is built."""

    processors: tuple[Processor, ...] = ()
    nodes: tuple[NumaNode, ...] = ()
    info: ProcessorInfo = ProcessorInfo()


class KubeletCpus(msgspec.Struct, frozen=True):
    """How the kubelet of this node hands out cpus."""

    policy: str = ""
    """Of its cpu manager; empty where it was not asked."""
    options: Mapping[str, str] = msgspec.field(default_factory=dict)
    reserved: frozenset[int] = frozenset()
    """Cpus that it never hands out alone."""
    topology: str = "None"
    """How it aligns resources, as a NodeResourceTopology names it."""
    given: tuple["GivenCpus", ...] = ()
    """What it handed out."""
    problems: Mapping[str, str] = msgspec.field(default_factory=dict)
    """What is not known of it, by source, with the reason."""


class GivenCpus(msgspec.Struct, frozen=True):
    """Cpus that a kubelet gave to a pod alone."""

    uid: str
    cpus: frozenset[int]
    namespace: str = ""
    name: str = ""


class ContainerState(msgspec.Struct, frozen=True, gc=False):
    """A container that exists on this node, as its status and its group tell."""

    name: str
    group: str = ""
    """Its control group; empty while it is unknown."""
    container: core.Container = msgspec.field(default_factory=core.Container)
    """What the pod's spec asks for it."""
    running: bool = True
    initial: bool = False
    """Whether it is an init container, sidecars included."""
    usage: Usage = Usage()
    throttled: float | None = None
    """Share of periods in which it was throttled lately, None without a figure."""
    quota_us: int | None = None
    """Cpu time per period, -1 for no limit, None while it is unknown."""

    @property
    def lasts(self) -> bool:
        """Whether it runs as long as its pod does: regular containers and sidecars."""
        return not self.initial or self.container.restart_policy == "Always"


class PodState(msgspec.Struct, frozen=True, gc=False):
    """A pod on this node and its latest usage."""

    pod: core.Pod
    kubernetes_qos: str
    usage: Usage = Usage()
    cpus: frozenset[int] = frozenset()
    """The cpus that the pod has to itself, as far as its claim holds; empty for none."""
    group: str = ""
    """Its control group; empty while it is unknown."""
    quota_us: int | None = None
    """Cpu time per period of the whole pod, -1 for no limit, None while it is unknown."""
    containers: tuple[ContainerState, ...] = ()
    """The containers that have an id, in the order of the statuses, init containers last."""
    sandbox: str = ""
    """The group of the pause container; empty where it is unknown."""
    demoted: bool = False
    """Whether its label SYSTEM does not count, since its namespace is none of the system's."""
    must_leave: bool = False
    """Whether it cannot keep itself from eviction."""

    @property
    def inside(self) -> tuple[ContainerState, ...]:
        """The containers whose groups lie on this host: none of those in a virtual machine."""
        return () if self.pod.spec.runtime_class_name == KATA else self.containers

    @property
    def active(self) -> bool:
        """Whether the pod runs or is about to."""
        return self.pod.status.phase in ("Pending", "Running")

    @property
    def effective_qos(self) -> qos.QoS:
        """The class that the pod's label names, or the one its Kubernetes class stands for."""
        labels = {} if self.demoted else self.pod.metadata.labels
        return qos.qos_with_default(labels, self.kubernetes_qos)

    @property
    def qos(self) -> qos.QoS:
        """The class that the pod's label names, or none."""
        return qos.QoS.NONE if self.demoted else qos.qos_of(self.pod.metadata.labels)

    @property
    def best_effort(self) -> bool:
        """Whether the pod is suppressed: labelled so, or best effort for the kubelet."""
        return self.qos is qos.QoS.BE or self.kubernetes_qos == BEST_EFFORT


class HostApplication(msgspec.Struct, frozen=True):
    """A process outside of Kubernetes that NodeSLO names."""

    name: str
    best_effort: bool
    cpu: float | None = None
    memory: int | None = None
    priority: str = ""
    """The priority band that the NodeSLO gives it."""
    qos: str = ""
    """The QoS class that the NodeSLO gives it."""
    group: str = ""
    """Its control group; empty while it is unknown."""


class Group(msgspec.Struct, frozen=True, gc=False):
    """One control group of best-effort work: 0 the class itself, 1 a pod, 2 a container.

    What lies deeper was made by the container inside itself.
    """

    path: str
    depth: int
    cpus: frozenset[int]
    """Its own cpus; empty where it takes those of the group above."""


class BestEffort(msgspec.Struct, frozen=True):
    """The groups of best-effort work as they stand now; None where the kernel lacks the file."""

    groups: tuple[Group, ...]
    cpus: frozenset[int] | None
    """The cpus that best-effort work may run on at this moment."""
    quota_us: int | None
    """Cpu time per period, -1 for no limit."""


class RefusedCpus(msgspec.Struct, frozen=True):
    """A pod that claims cpus which it cannot have."""

    uid: str
    namespace: str
    name: str
    claim: str
    """What its annotation says."""
    reason: str

    @property
    def key(self) -> str:
        """Return ``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class SystemQos(msgspec.Struct, frozen=True):
    """The cpus that a node has for SYSTEM pods."""

    cpus: frozenset[int]
    exclusive: bool = True


class Reserved(msgspec.Struct, frozen=True):
    """What the node keeps from its pods, cpu in milli."""

    milli_cpu: int = 0
    cpus: frozenset[int] = frozenset()
    """Cpus that an administrator reserved."""
    system_cpus: frozenset[int] = frozenset()
    """Cpus that belong to system processes alone."""
    kubelet_cpus: frozenset[int] = frozenset()
    """Cpus that the kubelet handed out to containers alone."""
    static_cpu_manager: bool = False
    """Whether the kubelet hands out exclusive cpus itself."""
    system_qos: SystemQos | None = None
    """Where SYSTEM pods run, whether or not they are alone there; None where not set."""
    problems: Mapping[str, str] = msgspec.field(default_factory=dict)
    """What cannot be honoured, by source, with the reason."""


class Pressure(msgspec.Struct, frozen=True):
    """Share of the last ten seconds in which some task waited, in percent.

    None where the kernel does not say.
    """

    cpu: float | None = None
    memory: float | None = None
    memory_full: float | None = None
    """Share in which every task waited for memory."""
    io: float | None = None


class Kernel(msgspec.Struct, frozen=True):
    """What the kernel of this host offers."""

    roles: frozenset[str] = frozenset()
    """The properties that groups or the host have, by the name of their role."""
    core_scheduling: bool = False
    """Whether processes can share a cookie that keeps others from their core."""
    mountable_caches: bool = False
    """Whether the cache could be divided if resctrl were mounted, and it may be mounted."""


class Caches(msgspec.Struct, frozen=True):
    """The last-level caches of this machine, where they can be divided."""

    ids: tuple[int, ...]
    mask: int
    """All ways of one cache."""
    vendor: str = ""
    """Who made the processor, as it calls itself."""
    groups: Mapping[str, float] = msgspec.field(default_factory=dict)
    """The groups that exist, with the wall clock of their making."""


class Network(msgspec.Struct, frozen=True):
    """Through what this node talks to others."""

    interface: str = ""
    """That of the default route; empty where there is none."""
    namespace: str = ""
    """Which network of the kernel it is in."""
    queue: str = ""
    """What orders its packets, as `tc` writes it."""
    addresses: frozenset[str] = frozenset()
    """Every address of this network."""
    permitted: bool = False
    """Whether this process may change queues."""
    problem: str = ""
    """Why nothing is known, empty where it is."""


class Thresholds(msgspec.Struct, frozen=True):
    """How far best-effort work may go, in percent of the node."""

    enable: bool
    cpu_suppress_percent: int = 65
    cpu_suppress_min_percent: int | None = None
    cpu_suppress_policy: str = "cpuset"


class NodeState(msgspec.Struct, frozen=True):
    """Everything that a decision may look at, read once per tick."""

    at: float
    """Wall clock of the reading, in seconds since the epoch."""
    node: core.Node | None = None
    thresholds: Thresholds | None = None
    usage: Usage = Usage()
    system: Usage = Usage()
    pods: tuple[PodState, ...] = ()
    qos_groups: Mapping[str, str] = msgspec.field(default_factory=dict)
    """The group of each Kubernetes QoS class; that of `Guaranteed` holds the others as well."""
    lost_pods_cpu: float = 0.0
    """Cores used by cgroups whose pod is unknown."""
    host_applications: tuple[HostApplication, ...] = ()
    best_effort: BestEffort | None = None
    numa: tuple[NumaNode, ...] = ()
    """Memory by NUMA node."""
    processor_info: ProcessorInfo = ProcessorInfo()
    kubelet: KubeletCpus | None = KubeletCpus()
    """How the kubelet hands out cpus; None while it was asked and has not said."""
    pods_known: bool = False
    """Whether the kubelet has named its pods."""
    processors: tuple[Processor, ...] = ()
    reserved: Reserved = Reserved()
    refused_cpus: tuple[RefusedCpus, ...] = ()
    """Pods that claim cpus which they cannot have."""
    pressure: Pressure = Pressure()
    """How long tasks of the whole node wait."""
    online_pressure: Pressure = Pressure()
    """How long tasks of online pods wait, best effort left out."""
    disks: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Device numbers of disks, `MAJ:MIN`, by `device:PATH`, `volumegroup:NAME` or
    `podvolume:UID/NAME`."""
    kernel: Kernel = Kernel()
    caches: Caches | None = None
    network: Network | None = None
    """None before the first look, which is taken only where its bandwidth is shared."""
    pod_groups: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Groups of pods on disk with the Kubernetes class they lie in, also unknown ones;
    looked for only where the kernel ranks groups."""
    settled: bool = False
    """Whether the pods are known and each of their groups has a figure by now."""
    problems: Mapping[str, str] = msgspec.field(default_factory=dict)
    """What could not be read, by source, with the reason."""

    @property
    def capacity_milli(self) -> int:
        """The node's cpu in milli, zero while the Node is unknown."""
        if self.node is None:
            return 0
        return core_amount(self.node.status.capacity, names.CPU)


def core_amount(resources: core.ResourceList, name: str) -> int:
    """Return one amount of a resource list, zero where it is missing."""
    from_list = resource_names.current(resources).get(name)
    return 0 if from_list is None else quantity.amount(name, from_list)
