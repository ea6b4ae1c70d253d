"""What the strategies of a node are set to, as plain values that decisions take.

Pure. A percentage is a whole number; None means not set, which mostly leaves a feature
inert.
"""

from collections.abc import Mapping

import msgspec

from api.koordinator.metadata import qos


class Bounds(msgspec.Struct, frozen=True):
    """Where something begins and where it ends, in percent."""

    threshold: int | None = None
    lower: int | None = None


class CpuEviction(msgspec.Struct, frozen=True):
    """When pods leave because cpu is short."""

    used: Bounds = Bounds()
    requested: Bounds = Bounds()
    satisfaction: Bounds = Bounds()
    """Upper and lower bound of what best effort gets of what it asks for; `threshold` is upper."""
    best_effort_usage: int = 90
    window_seconds: int | None = None
    best_effort: bool = False
    """Whether usage evicts best effort where no highest priority is set, without opting in."""
    by_allocatable: bool = False
    """Whether satisfaction is measured by what the node lends rather than by the real limit."""
    highest_priority: int | None = None
    highest_priority_requested: int | None = None
    pressure: int | None = None
    """Share of time in percent that tasks must wait for cpu before usage evicts anybody."""


class MemoryEviction(msgspec.Struct, frozen=True):
    """When pods leave because memory is short."""

    used: Bounds = Bounds(threshold=70)
    requested: Bounds = Bounds()
    all_requested: int | None = None
    """Bound on everything requested against allocatable; ours, beside the upstream fields."""
    highest_priority: int | None = None
    highest_priority_requested: int | None = None


class Burst(msgspec.Struct, frozen=True):
    """How a throttled container may exceed its limit for a while."""

    policy: str = "none"
    cpu_percent: int | None = 1000
    quota_percent: int | None = 300
    quota_period_seconds: int | None = -1


class NodeBurst(msgspec.Struct, frozen=True):
    """Bursting on a node."""

    every: Burst = Burst()
    share_pool_percent: int = 50
    ratio: float | None = None
    """How much faster the cpus are than the standard, where quotas are scaled by it."""
    most: Burst | None = None
    """The most that a pod may ask for; None for anything."""


class Memory(msgspec.Struct, frozen=True):
    """How the memory of a class is protected and reclaimed; None leaves a file alone."""

    min_percent: int | None = None
    low_percent: int | None = None
    throttling_percent: int | None = None
    wmark_ratio: int | None = None
    wmark_scale: int | None = None
    wmark_min_adj: int | None = None
    priority_enable: int | None = None
    priority: int | None = None
    oom_group: int | None = None
    page_cache_enable: bool | None = None
    page_cache_percent: int | None = None
    page_cache_size: int | None = None
    page_cache_sync: bool | None = None


NO_MEMORY = Memory(0, 0, 0, 0, 50, 0, 0, 0, 0)
"""Every protection taken back."""
_ONLINE_MEMORY = Memory(0, 0, 0, 95, 20, -25, 0, 0, 0)
DEFAULT_MEMORY: Mapping[qos.QoS, Memory] = {
    qos.QoS.LSE: _ONLINE_MEMORY,
    qos.QoS.LSR: _ONLINE_MEMORY,
    qos.QoS.LS: _ONLINE_MEMORY,
    qos.QoS.BE: Memory(0, 0, 0, 95, 20, 50, 0, 0, 0),
    qos.QoS.SYSTEM: NO_MEMORY,
}
"""What a pod that asks for `auto` gets, by class."""


class Cpu(msgspec.Struct, frozen=True):
    """How the kernel favours the cpu time of a class."""

    enable: bool = False
    identity: int = 0
    idle: bool = False
    expeller: bool = False


class Cache(msgspec.Struct, frozen=True):
    """Which part of the last-level cache and of memory bandwidth a class may use."""

    enable: bool = False
    start_percent: int = 0
    end_percent: int = 100
    bandwidth_percent: int | None = 100


class Device(msgspec.Struct, frozen=True):
    """Limits and weight of one block device; None leaves a figure at its default."""

    name: str
    kind: str = "device"
    read_iops: int | None = None
    write_iops: int | None = None
    read_bps: int | None = None
    write_bps: int | None = None
    weight: int | None = None
    read_latency: int | None = None
    write_latency: int | None = None
    read_latency_percent: int | None = None
    write_latency_percent: int | None = None
    user_model: bool = False
    model: tuple[int, int, int, int, int, int] = (1, 1, 1, 1, 1, 1)
    """Bytes, sequential and random operations per second: of reads, then of writes."""


class Network(msgspec.Struct, frozen=True):
    """Bandwidth of a class: a number is percent of the node's, a text bits per second."""

    enable: bool = False
    ingress_request: int | str = 0
    ingress_limit: int | str = 0
    """The most that it may receive; 0 is no limit."""
    egress_request: int | str = 0
    egress_limit: int | str = 0
    """The most that it may send; 0 is no limit."""


class Classes(msgspec.Struct, frozen=True):
    """Settings of the classes, by class; a class that is absent is left alone."""

    cpu: Mapping[qos.QoS, Cpu] = msgspec.field(default_factory=dict)
    memory: Mapping[qos.QoS, Memory] = msgspec.field(default_factory=dict)
    cache: Mapping[qos.QoS, Cache] = msgspec.field(default_factory=dict)
    devices: Mapping[qos.QoS, tuple[Device, ...]] = msgspec.field(default_factory=dict)
    root_devices: tuple[Device, ...] = ()
    network: Mapping[qos.QoS, Network] = msgspec.field(default_factory=dict)
    network_policy: str = ""
    """Empty or `tc`, or `terway-qos`."""
    cpu_policy: str = ""
    """Empty or `groupIdentity`, or `coreSched`."""

    @property
    def by_identity(self) -> bool:
        """Whether classes are told apart by group identity."""
        return self.cpu_policy in ("", "groupIdentity")

    @property
    def by_core(self) -> bool:
        """Whether classes are told apart by core scheduling."""
        return self.cpu_policy == "coreSched"

    @property
    def by_terway(self) -> bool:
        """Whether Terway, and not the agent, limits the network."""
        return self.network_policy == "terway-qos"


class System(msgspec.Struct, frozen=True):
    """Kernel settings of the whole node; None leaves them alone."""

    min_free_factor: int | None = None
    watermark_scale: int | None = None
    memcg_reap: int | None = None
    page_cache_limits: int | None = None
    group_identity: int | None = None
    idle_saver: int | None = None
    features: Mapping[str, bool] = msgspec.field(default_factory=dict)
    bandwidth: int = 0
    """What the node can send and receive, in bits per second; 0 where unknown."""


class Pressure(msgspec.Struct, frozen=True):
    """A trigger of our own: how long tasks may wait before best effort gives way, in percent."""

    enable: bool = False
    cpu_percent: float = 40.0
    memory_percent: float = 20.0
    """Share of the last ten seconds in which online tasks waited for the resource."""
    suppress_step_percent: int = 10
    """How much of the node best effort loses for each second of cpu pressure."""


class Overrides(msgspec.Struct, frozen=True):
    """The most that labels and annotations of pods may ask for; by default anything."""

    bounded: bool = False
    """Whether anything below holds; where a figure is None, what the pod's class has does."""
    burst: Burst = Burst()
    memory: Memory = Memory()
    """The highest `min_percent`, `low_percent` and `priority`, the lowest `wmark_min_adj`."""
    identity: int | None = None
    oom_score: int | None = None
    """The lowest; where it is None, or lower than what the kubelet gives, that counts."""
    cache: Cache | None = None
    """The range that a pod's own share may lie in beside that of its class."""
    refuse_eviction: bool = True
    system_namespaces: frozenset[str] = frozenset()
    """Where the class SYSTEM counts."""

    def is_system(self, namespace: str) -> bool:
        """Tell whether pods of a namespace may have the class SYSTEM."""
        return not self.bounded or namespace in self.system_namespaces


OWN_CLASS: Mapping[qos.QoS, qos.QoS] = {
    qos.QoS.LSE: qos.QoS.LSR,
    qos.QoS.LSR: qos.QoS.LSR,
    qos.QoS.LS: qos.QoS.LS,
    qos.QoS.BE: qos.QoS.BE,
    qos.QoS.SYSTEM: qos.QoS.SYSTEM,
}
"""The class whose settings a class has."""


class Strategies(msgspec.Struct, frozen=True):
    """Everything that a node enforces beside the suppression of cpu."""

    cpu_eviction: CpuEviction = CpuEviction()
    memory_eviction: MemoryEviction = MemoryEviction()
    evicting: bool = False
    """Whether pods may be evicted at all."""
    burst: NodeBurst = NodeBurst()
    classes: Classes = msgspec.field(default_factory=Classes)
    system: System = msgspec.field(default_factory=System)
    overrides: Overrides = Overrides()
