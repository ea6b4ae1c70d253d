"""Edit, Eviction and Decision: what a decision asks the shell to do."""

import enum
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

PRESENT: Final = "present"
ABSENT: Final = "absent"


class Role(enum.StrEnum):
    """Which property of a group, a process or the host is meant, whatever its file is called."""

    CPUSET = "cpuset"
    CPU_QUOTA = "cpu-quota"
    CPU_BURST = "cpu-burst"
    CPU_SHARES = "cpu-shares"
    CPU_IDLE = "cpu-idle"
    CPU_IDENTITY = "cpu-identity"
    MEMORY_LIMIT = "memory-limit"
    MEMORY_MIN = "memory-min"
    MEMORY_LOW = "memory-low"
    MEMORY_HIGH = "memory-high"
    MEMORY_WMARK_RATIO = "memory-wmark-ratio"
    MEMORY_WMARK_SCALE = "memory-wmark-scale"
    MEMORY_WMARK_MIN_ADJ = "memory-wmark-min-adj"
    MEMORY_PRIORITY = "memory-priority"
    MEMORY_PRIORITY_OOM = "memory-priority-oom"
    MEMORY_OOM_GROUP = "memory-oom-group"
    PAGE_CACHE_LIMITED = "page-cache-limited"
    PAGE_CACHE_SIZE = "page-cache-size"
    PAGE_CACHE_SYNC = "page-cache-sync"
    IO_READ_IOPS = "io-read-iops"
    IO_WRITE_IOPS = "io-write-iops"
    IO_READ_BPS = "io-read-bps"
    IO_WRITE_BPS = "io-write-bps"
    IO_WEIGHT = "io-weight"
    IO_COST_QOS = "io-cost-qos"
    IO_COST_MODEL = "io-cost-model"
    RESCTRL_GROUP = "resctrl-group"
    RESCTRL_L3 = "resctrl-l3"
    RESCTRL_MB = "resctrl-mb"
    VM_MIN_FREE_KBYTES = "vm-min-free-kbytes"
    VM_WATERMARK_SCALE = "vm-watermark-scale"
    MEMCG_REAP = "memcg-reap"
    PAGE_CACHE_LIMITS = "page-cache-limits"
    KIDLED_PERIOD = "kidled-period"
    KIDLED_HIERARCHY = "kidled-hierarchy"
    SCHED_GROUP_IDENTITY = "sched-group-identity"
    SCHED_IDLE_SAVER = "sched-idle-saver"
    SCHED_CORE = "sched-core"
    SCHED_FEATURE = "sched-feature"
    PROCESS_POLICY = "process-policy"
    PROCESS_COOKIE = "process-cookie"
    PROCESS_OOM_SCORE = "process-oom-score"
    PROCESS_RESCTRL = "process-resctrl"
    RESCTRL_MOUNT = "resctrl-mount"
    NET_CLASS_ID = "net-class-id"
    NETWORK_QUEUE = "network-queue"
    NETWORK_LIMIT = "network-limit"
    NETWORK_RULE = "network-rule"
    TERWAY_LIMITS = "terway-limits"
    TERWAY_PODS = "terway-pods"


OF_PROCESSES: Final = frozenset(
    {Role.PROCESS_POLICY, Role.PROCESS_COOKIE, Role.PROCESS_OOM_SCORE, Role.PROCESS_RESCTRL}
)
"""Roles of every process in a group rather than of a file of the group.

A policy is `idle` or `other`. A cookie is the name that all groups of one set of trusted
processes share, empty for the default cookie. An oom score is a number. A resctrl value is the
resctrl group that the threads belong into, empty for the root group.
"""
OF_NETWORK: Final = frozenset({Role.NETWORK_QUEUE, Role.NETWORK_LIMIT, Role.NETWORK_RULE})
"""Roles of a network interface, which go to the kernel and not to a file.

Their groups begin with the network and the interface, `4026531840/eth0`. A queue is the tree of
classes at its root; a limit is the class of one pod, by its number behind the interface; a rule
puts an address, or what the group of a sender says, into a class.
"""
MAKERS: Final = (Role.RESCTRL_MOUNT, Role.RESCTRL_GROUP)
"""Roles that make the files of others, first things first."""
Key = tuple[Role, str]


class Edit(msgspec.Struct, frozen=True, gc=False):
    """A wanted value for one property of one group.

    The value is independent of the cgroup version: a cpu list; microseconds per 100 ms period
    with -1 for no limit; cpu shares of 2..262144; bytes with -1 for no limit; lines of
    `MAJ:MIN amount` where 0 is no limit; `present` for a resctrl group; one line of a schemata; all
    of a file that a program other than the kernel reads. The
    group is a path below the cgroup root, the name of a resctrl group, the name of a scheduler
    feature, or empty for a property of the host. None asks to put back what stood there before
    us, which is nothing to do where we never wrote.
    """

    role: Role
    group: str
    value: str | None
    reason: str
    pod: str = ""
    """The uid of the pod that it is for, where the group does not say so."""

    @property
    def key(self) -> Key:
        """What the edit is about."""
        return self.role, self.group


class Eviction(msgspec.Struct, frozen=True):
    """A pod that has to leave this node."""

    namespace: str
    name: str
    uid: str
    reason: str
    feature: str = ""
    """The feature that asks for it, as the gates call it."""
    figures: Mapping[str, float] = msgspec.field(default_factory=dict)
    """What was measured, by name with the unit at its end."""
    grace_seconds: int | None = None
    """Time to stop in; None leaves it to the pod."""
    own_grace_seconds: int = 30
    """Time that the pod itself takes to stop in, at most."""


class Decision(msgspec.Struct, frozen=True):
    """What one strategy wants of this node, and why.

    What it wanted before and does not name any more is put back, unless nothing could be decided:
    then everything stays as it stands.
    """

    reason: str
    wanted: tuple[Edit, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    figures: Mapping[str, float] = msgspec.field(default_factory=dict)
    decided: bool = True
    unmet: str = ""
    """Why some of what the NodeSLO asks for cannot be carried out on this node."""


def undecided(missing: str) -> Decision:
    """Return the decision of a strategy that waits for something."""
    return Decision(f"waiting for {missing}", decided=False)


def switched_off(why: str) -> Decision:
    """Return the decision of a strategy that wants nothing, so that all it set is put back."""
    return Decision(why)


def impossible(why: str) -> Decision:
    """Return the decision of a strategy that is asked for and cannot work on this node."""
    return Decision(why, unmet=why)


def by_key(wanted: Iterable[Edit]) -> dict[Key, Edit]:
    """Return edits by what they are about; the first one wins, and any value beats a release."""
    found: dict[Key, Edit] = {}
    for edit in wanted:
        key = edit.role, edit.group
        first = found.get(key)
        if first is None or (first.value is None and edit.value is not None):
            found[key] = edit
    return found
