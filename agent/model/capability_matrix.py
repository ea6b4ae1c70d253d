"""What each strategy can do on this node: with what it was made for, with a substitute, or not.

Pure. The table is made of what the kernel, its groups and the machine offer, and of what this
process may do with it.
"""

import enum
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

import msgspec

from agent.model import edits
from api.wire import untrusted

NET_ADMIN, SYS_PTRACE, SYS_NICE, SYS_RESOURCE = 12, 19, 23, 24
_R = edits.Role


class Verdict(enum.StrEnum):
    """How far a strategy reaches."""

    WORKS = "works"
    SUBSTITUTE = "substitute"
    UNAVAILABLE = "unavailable"


class Facts(msgspec.Struct, frozen=True):
    """What one host offers."""

    kernel: str
    """The kernel's release."""
    version: int
    """Version of the control groups, 0 where there is no group of pods."""
    driver: str
    roles: frozenset[str]
    """The properties that groups and the host have, by the name of their role."""
    writable: bool = True
    """Whether the files of groups may be written."""
    sealed: frozenset[str] = frozenset()
    """The roles whose files are there and cannot be opened for writing from here."""
    processes_writable: bool = True
    """Whether /proc may be written, where the score of a process lies."""
    pressure: bool = False
    """Whether groups say how long their tasks wait (PSI)."""
    reclaim: bool = False
    """Whether the kernel takes memory back from a group when it is asked to."""
    core_scheduling: bool = False
    cache_division: bool = False
    """Whether resctrl is mounted and the processor divides its cache."""
    host_pids: bool = False
    """Whether processes of pods can be named, which takes the host's process ids."""
    capabilities: frozenset[int] = frozenset()
    """The numbers of the capabilities of this process."""


class Row(msgspec.Struct, frozen=True):
    """What one strategy can do, and why no more."""

    strategy: str
    verdict: Verdict
    how: str

    def as_json(self) -> dict[str, Any]:
        """Return the row as it is published."""
        return {"strategy": self.strategy, "verdict": self.verdict.value, "how": self.how}


def matrix(facts: Facts) -> tuple[Row, ...]:
    """Return a row for every strategy of the agent."""
    if not facts.version:
        none = "there is no group of pods: no kubelet has run here, or its groups lie elsewhere"
        return tuple(Row(name, Verdict.UNAVAILABLE, none) for name in _JUDGES)
    rows = []
    for name, judge in _JUDGES.items():
        verdict, how = judge(facts)
        if verdict is not Verdict.UNAVAILABLE:
            verdict, how = _held(facts, name, verdict, how)
        rows.append(Row(name, verdict, how))
    return tuple(rows)


def _held(facts: Facts, name: str, verdict: Verdict, how: str) -> tuple[Verdict, str]:
    """Hold what a strategy could do to what may be written from here."""
    if name in WRITING and not facts.writable:
        return Verdict.UNAVAILABLE, "the files of groups cannot be written from here"
    there = [role for role in _WRITES.get(name, ()) if role.value in facts.roles]
    sealed = [role.value for role in there if role.value in facts.sealed]
    if not sealed:
        return verdict, how
    why = f"{', '.join(sealed)} cannot be written from here: mounted read-only, or forbidden"
    if len(sealed) == len(there):
        return Verdict.UNAVAILABLE, why
    return Verdict.SUBSTITUTE, f"{how}; {why}"


def published(rows: Iterable[Row]) -> str:
    """Return the rows as the annotation of a node holds them."""
    found = {row.strategy: {"verdict": row.verdict.value, "how": row.how} for row in rows}
    return json.dumps(found, sort_keys=True, separators=(",", ":"))


def read(text: str) -> tuple[Row, ...]:
    """Return the rows of the annotation of a node; raises ValueError with what is wrong."""
    try:
        return tuple(
            Row(str(name), Verdict(one["verdict"]), str(one["how"]))
            for name, one in untrusted.parsed(text, "annotation").items()
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"it is no table of strategies: {type(error).__name__} {error}") from error


def _missing(facts: Facts, wanted: Collection[edits.Role]) -> str:
    return ", ".join(role.value for role in wanted if role.value not in facts.roles)


def _files(*wanted: edits.Role) -> Callable[[Facts], tuple[Verdict, str]]:
    def judge(facts: Facts) -> tuple[Verdict, str]:
        if missing := _missing(facts, wanted):
            return Verdict.UNAVAILABLE, f"groups have no {missing}"
        return Verdict.WORKS, f"by {', '.join(role.value for role in wanted)}"

    return judge


def _suppress(facts: Facts) -> tuple[Verdict, str]:
    missing = _missing(facts, (_R.CPUSET, _R.CPU_QUOTA))
    if not missing:
        return Verdict.WORKS, "by cpusets or by quota, as the NodeSLO says"
    if _R.CPU_QUOTA.value in facts.roles:
        return Verdict.SUBSTITUTE, f"by quota alone: groups have no {missing}"
    if _R.CPUSET.value in facts.roles:
        return Verdict.SUBSTITUTE, f"by cpusets alone: groups have no {missing}"
    return Verdict.UNAVAILABLE, f"groups have no {missing}"


def _burst(facts: Facts) -> tuple[Verdict, str]:
    if _R.CPU_QUOTA.value not in facts.roles:
        return Verdict.UNAVAILABLE, "groups have no cpu-quota"
    if _R.CPU_BURST.value in facts.roles:
        return Verdict.WORKS, "by the burst of the kernel and by raising quotas for a while"
    return (
        Verdict.SUBSTITUTE,
        "by raising quotas for a while: the kernel (before 5.14) has no burst",
    )


def _identity(facts: Facts) -> tuple[Verdict, str]:
    if _R.CPU_IDENTITY.value in facts.roles:
        return Verdict.WORKS, "by group identity (cpu.bvt_warp_ns)"
    if not facts.host_pids:
        return (
            Verdict.UNAVAILABLE,
            "the kernel has no group identity, and the idle policy in its place takes hostPID",
        )
    if SYS_NICE not in facts.capabilities:
        return (
            Verdict.UNAVAILABLE,
            "the kernel has no group identity, and the idle policy in its place takes CAP_SYS_NICE",
        )
    return Verdict.SUBSTITUTE, "by the idle policy (SCHED_IDLE): the kernel has no group identity"


def _core_scheduling(facts: Facts) -> tuple[Verdict, str]:
    if not facts.core_scheduling:
        return (
            Verdict.UNAVAILABLE,
            "the kernel has no core scheduling, or its cores have one thread each",
        )
    if not facts.host_pids or SYS_PTRACE not in facts.capabilities:
        return Verdict.UNAVAILABLE, "cookies of others take hostPID and CAP_SYS_PTRACE"
    return Verdict.WORKS, "by core scheduling cookies"


def _memory_qos(facts: Facts) -> tuple[Verdict, str]:
    missing = _missing(facts, (_R.MEMORY_MIN, _R.MEMORY_LOW, _R.MEMORY_HIGH))
    if missing:
        why = " on version 1 of the control groups" if facts.version == 1 else ""
        return Verdict.UNAVAILABLE, f"groups have no {missing}{why}"
    if _R.MEMORY_WMARK_RATIO.value in facts.roles:
        return Verdict.WORKS, "by memory.min, low and high, and reclaim in the background"
    asked = facts.reclaim and facts.pressure
    more = ", and memory.reclaim with strategies.reclaim.enable" if asked else ""
    return (
        Verdict.SUBSTITUTE,
        f"by memory.min, low and high; high stands for reclaim in the background{more}",
    )


def _batch(facts: Facts) -> tuple[Verdict, str]:
    if missing := _missing(facts, (_R.CPU_SHARES, _R.CPU_QUOTA)):
        return Verdict.UNAVAILABLE, f"groups have no {missing}"
    if missing := _missing(facts, (_R.MEMORY_LIMIT,)):
        return Verdict.SUBSTITUTE, f"cpu only: groups have no {missing}"
    return Verdict.WORKS, "by shares, quota and memory limit"


def _blkio(facts: Facts) -> tuple[Verdict, str]:
    limits = (_R.IO_READ_BPS, _R.IO_WRITE_BPS, _R.IO_READ_IOPS, _R.IO_WRITE_IOPS)
    if missing := _missing(facts, limits):
        return Verdict.UNAVAILABLE, f"groups have no {missing}"
    if _R.IO_WEIGHT.value not in facts.roles:
        return Verdict.SUBSTITUTE, "limits only: groups have no io-weight"
    return Verdict.WORKS, "by limits and weights"


def _cache(facts: Facts) -> tuple[Verdict, str]:
    if not facts.cache_division:
        return (
            Verdict.UNAVAILABLE,
            "resctrl is not mounted, or the processor has no cat_l3 and mba",
        )
    if not facts.host_pids:
        return Verdict.UNAVAILABLE, "moving threads of pods to resctrl groups takes hostPID"
    return Verdict.WORKS, "by resctrl groups"


def _system(facts: Facts) -> tuple[Verdict, str]:
    wanted = (_R.VM_MIN_FREE_KBYTES, _R.VM_WATERMARK_SCALE)
    if missing := _missing(facts, wanted):
        return Verdict.UNAVAILABLE, f"the kernel has no {missing}, or hides it from here"
    rest = (_R.MEMCG_REAP, _R.PAGE_CACHE_LIMITS, _R.SCHED_IDLE_SAVER)
    if missing := _missing(facts, rest):
        return Verdict.SUBSTITUTE, f"the kernel has no {missing}"
    return Verdict.WORKS, "by all settings"


def _cold_pages(facts: Facts) -> tuple[Verdict, str]:
    wanted = (_R.KIDLED_PERIOD, _R.KIDLED_HIERARCHY)
    if missing := _missing(facts, wanted):
        return Verdict.UNAVAILABLE, f"the kernel has no {missing}, or hides it from here"
    return Verdict.WORKS, "by scans of kidled"


def _oom_score(facts: Facts) -> tuple[Verdict, str]:
    if not facts.host_pids:
        return Verdict.UNAVAILABLE, "processes of pods can be named with hostPID only"
    if not facts.processes_writable:
        return Verdict.UNAVAILABLE, "/proc cannot be written from here: it is mounted read-only"
    if SYS_RESOURCE not in facts.capabilities:
        return Verdict.SUBSTITUTE, "scores can be raised; lowering one takes CAP_SYS_RESOURCE"
    return Verdict.WORKS, "by the oom score of every process"


def _network_qos(facts: Facts) -> tuple[Verdict, str]:
    if NET_ADMIN not in facts.capabilities:
        return Verdict.UNAVAILABLE, "queues of an interface take CAP_NET_ADMIN and hostNetwork"
    if missing := _missing(facts, (_R.NET_CLASS_ID,)):
        return (
            Verdict.SUBSTITUTE,
            f"by the addresses of pods; those on the host's network stay apart: no {missing}",
        )
    return Verdict.WORKS, "by classes of the interface, addresses and groups of pods"


def _terway_qos(facts: Facts) -> tuple[Verdict, str]:
    if _missing(facts, (_R.TERWAY_PODS,)):
        return Verdict.UNAVAILABLE, "there is no folder of Terway's files (host.terwayQos)"
    return Verdict.WORKS, "by the files that Terway reads"


def _evict(facts: Facts) -> tuple[Verdict, str]:
    if facts.pressure:
        return Verdict.WORKS, "by usage, by requests and by pressure (PSI)"
    return Verdict.SUBSTITUTE, "by usage and by requests; the kernel says no pressure (psi=1)"


_JUDGES: Final[Mapping[str, Callable[[Facts], tuple[Verdict, str]]]] = {
    "cpu-suppress": _suppress,
    "cpuset": _files(_R.CPUSET),
    "core-sched": _core_scheduling,
    "group-identity": _identity,
    "batch-resources": _batch,
    "cpu-burst": _burst,
    "cpu-normalization": _files(_R.CPU_QUOTA),
    "memory-qos": _memory_qos,
    "block-io": _blkio,
    "cache": _cache,
    "system": _system,
    "oom-score": _oom_score,
    "network-qos": _network_qos,
    "terway-qos": _terway_qos,
    "cold-pages": _cold_pages,
    "cpu-evict": _evict,
    "memory-evict": _evict,
}
STRATEGIES: Final = tuple(_JUDGES)
"""The names of all strategies."""
_NOT_OF_GROUPS: Final = frozenset(
    {"cpu-evict", "memory-evict", "oom-score", "core-sched", "network-qos", "terway-qos"}
)
WRITING: Final = frozenset(_JUDGES) - _NOT_OF_GROUPS
_WRITES: Final[Mapping[str, tuple[edits.Role, ...]]] = {
    "cpu-suppress": (_R.CPUSET, _R.CPU_QUOTA),
    "cpuset": (_R.CPUSET,),
    "group-identity": (_R.CPU_IDENTITY,),
    "batch-resources": (_R.CPU_SHARES, _R.CPU_QUOTA, _R.MEMORY_LIMIT),
    "cpu-burst": (_R.CPU_QUOTA, _R.CPU_BURST),
    "cpu-normalization": (_R.CPU_QUOTA,),
    "memory-qos": (_R.MEMORY_MIN, _R.MEMORY_LOW, _R.MEMORY_HIGH, _R.MEMORY_WMARK_RATIO),
    "block-io": (
        *(_R.IO_READ_BPS, _R.IO_WRITE_BPS),
        *(_R.IO_READ_IOPS, _R.IO_WRITE_IOPS, _R.IO_WEIGHT),
    ),
    "cache": (_R.RESCTRL_L3,),
    "system": (
        *(_R.VM_MIN_FREE_KBYTES, _R.VM_WATERMARK_SCALE),
        *(_R.MEMCG_REAP, _R.PAGE_CACHE_LIMITS, _R.SCHED_IDLE_SAVER),
    ),
    "cold-pages": (_R.KIDLED_PERIOD, _R.KIDLED_HIERARCHY),
    "network-qos": (_R.NET_CLASS_ID,),
    "terway-qos": (_R.TERWAY_PODS,),
}
"""What each strategy writes, besides what no file is."""
