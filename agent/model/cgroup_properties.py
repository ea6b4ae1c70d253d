"""What stands behind the roles of an edit: files, legal values and their texts on v1 and v2. Pure.

Who writes files asks here for the file of a role, the text of a value and whether two texts mean
the same; nothing here touches a file.
"""

import functools
from collections.abc import Mapping
from typing import Final

from agent.model import cgroup_layout, edits
from domain.cpus import cpulists

PERIOD_US: Final = 100_000
_REMEMBERED: Final = 128
_REMEMBERED_LENGTH: Final = 1024
"""Only short texts are remembered, so that what tenants write takes little memory."""
LEAST_SHARES, MOST_SHARES = 2, 262_144
LEAST_WEIGHT, MOST_WEIGHT = 1, 10_000
UNLIMITED: Final = (1 << 63) - 1
# v1 rounds "no limit" down to whole pages.
V1_UNLIMITED: Final = 0x7FFF_FFFF_FFFF_F000
_R, _F = edits.Role, cgroup_layout.File

FILES: Final[Mapping[edits.Role, cgroup_layout.File]] = {
    _R.CPUSET: _F.CPUSET,
    _R.CPU_QUOTA: _F.CPU_QUOTA,
    _R.CPU_BURST: _F.CPU_BURST,
    _R.CPU_SHARES: _F.CPU_SHARES,
    _R.CPU_IDLE: _F.CPU_IDLE,
    _R.CPU_IDENTITY: _F.CPU_IDENTITY,
    _R.MEMORY_LIMIT: _F.MEMORY_LIMIT,
    _R.MEMORY_MIN: _F.MEMORY_MIN,
    _R.MEMORY_LOW: _F.MEMORY_LOW,
    _R.MEMORY_HIGH: _F.MEMORY_HIGH,
    _R.MEMORY_WMARK_RATIO: _F.MEMORY_WMARK_RATIO,
    _R.MEMORY_WMARK_SCALE: _F.MEMORY_WMARK_SCALE,
    _R.MEMORY_WMARK_MIN_ADJ: _F.MEMORY_WMARK_MIN_ADJ,
    _R.MEMORY_PRIORITY: _F.MEMORY_PRIORITY,
    _R.MEMORY_PRIORITY_OOM: _F.MEMORY_PRIORITY_OOM,
    _R.MEMORY_OOM_GROUP: _F.MEMORY_OOM_GROUP,
    _R.PAGE_CACHE_LIMITED: _F.PAGE_CACHE_LIMITED,
    _R.PAGE_CACHE_SIZE: _F.PAGE_CACHE_SIZE,
    _R.PAGE_CACHE_SYNC: _F.PAGE_CACHE_SYNC,
    _R.IO_READ_IOPS: _F.IO_READ_IOPS,
    _R.IO_WRITE_IOPS: _F.IO_WRITE_IOPS,
    _R.IO_READ_BPS: _F.IO_READ_BPS,
    _R.IO_WRITE_BPS: _F.IO_WRITE_BPS,
    _R.IO_WEIGHT: _F.IO_WEIGHT,
    _R.IO_COST_QOS: _F.IO_COST_QOS,
    _R.IO_COST_MODEL: _F.IO_COST_MODEL,
    _R.NET_CLASS_ID: _F.NET_CLASS_ID,
    _R.TERWAY_LIMITS: _F.TERWAY_LIMITS,
    _R.TERWAY_PODS: _F.TERWAY_PODS,
    _R.RESCTRL_L3: _F.RESCTRL_SCHEMATA,
    _R.RESCTRL_MB: _F.RESCTRL_SCHEMATA,
    _R.VM_MIN_FREE_KBYTES: _F.VM_MIN_FREE_KBYTES,
    _R.VM_WATERMARK_SCALE: _F.VM_WATERMARK_SCALE,
    _R.MEMCG_REAP: _F.MEMCG_REAP,
    _R.PAGE_CACHE_LIMITS: _F.PAGE_CACHE_LIMITS,
    _R.KIDLED_PERIOD: _F.KIDLED_PERIOD,
    _R.KIDLED_HIERARCHY: _F.KIDLED_HIERARCHY,
    _R.SCHED_GROUP_IDENTITY: _F.SCHED_GROUP_IDENTITY,
    _R.SCHED_IDLE_SAVER: _F.SCHED_IDLE_SAVER,
    _R.SCHED_CORE: _F.SCHED_CORE,
    _R.SCHED_FEATURE: _F.SCHED_FEATURES,
}
"""The file of each role that is one whole file, or a named part of one."""

LEGAL: Final[Mapping[edits.Role, tuple[int, int]]] = {
    _R.CPU_BURST: (0, UNLIMITED),
    _R.CPU_SHARES: (LEAST_SHARES, MOST_SHARES),
    _R.CPU_IDLE: (0, 1),
    _R.CPU_IDENTITY: (-1, 2),
    _R.MEMORY_LIMIT: (-1, UNLIMITED),
    _R.MEMORY_MIN: (0, UNLIMITED),
    _R.MEMORY_LOW: (0, UNLIMITED),
    _R.MEMORY_HIGH: (0, UNLIMITED),
    _R.MEMORY_WMARK_RATIO: (0, 100),
    _R.MEMORY_WMARK_SCALE: (1, 1000),
    _R.MEMORY_WMARK_MIN_ADJ: (-25, 50),
    _R.MEMORY_PRIORITY: (0, 12),
    _R.MEMORY_PRIORITY_OOM: (0, 1),
    _R.MEMORY_OOM_GROUP: (0, 1),
    _R.PAGE_CACHE_LIMITED: (0, 1),
    _R.PAGE_CACHE_SIZE: (0, UNLIMITED),
    _R.PAGE_CACHE_SYNC: (0, 1),
    _R.VM_MIN_FREE_KBYTES: (10_240, 10_485_760),
    _R.VM_WATERMARK_SCALE: (10, 400),
    _R.MEMCG_REAP: (0, 1),
    _R.PAGE_CACHE_LIMITS: (0, 1),
    _R.KIDLED_PERIOD: (0, 86_400),
    _R.KIDLED_HIERARCHY: (0, 1),
    _R.SCHED_GROUP_IDENTITY: (0, 1),
    _R.SCHED_IDLE_SAVER: (0, (1 << 31) - 1),
    _R.SCHED_CORE: (0, 1),
    _R.NET_CLASS_ID: (0, 0xFFFF_FFFF),
    _R.PROCESS_OOM_SCORE: (-1000, 1000),
}
"""Smallest and largest value of the roles that are numbers."""

GROWING: Final = frozenset({_R.CPU_QUOTA, _R.MEMORY_MIN, _R.MEMORY_LOW, _R.MEMORY_HIGH})
"""Amounts of which a group may not have more than the one above it, besides its cpus."""

BY_DEVICE: Final = frozenset(
    {
        *(_R.IO_READ_IOPS, _R.IO_WRITE_IOPS, _R.IO_READ_BPS, _R.IO_WRITE_BPS),
        *(_R.IO_WEIGHT, _R.IO_COST_QOS, _R.IO_COST_MODEL),
    }
)
"""Roles whose file has a line for each device and takes one line per write."""

IO_FIELDS: Final[Mapping[edits.Role, str]] = {
    _R.IO_READ_IOPS: "riops",
    _R.IO_WRITE_IOPS: "wiops",
    _R.IO_READ_BPS: "rbps",
    _R.IO_WRITE_BPS: "wbps",
}
"""What the four limits are called in the one file of v2."""

WHOLE_TEXTS: Final = frozenset({_R.TERWAY_LIMITS, _R.TERWAY_PODS})
"""Roles that are all of a file which a program other than the kernel reads."""

OWN_QUEUE: Final = "htb 4b00:"
"""What is at the root of an interface that we share out; no other program uses that handle."""

TABLES: Final = "tables"
"""The line of such a queue that says that addresses can be looked up."""

_TEXTS: Final = WHOLE_TEXTS | edits.OF_NETWORK
UNSET: Final[Mapping[edits.Role, str]] = {
    _R.CPU_QUOTA: "-1",
    _R.CPU_SHARES: "1024",
    _R.CPU_BURST: "0",
    _R.MEMORY_LIMIT: "-1",
    _R.PROCESS_OOM_SCORE: "0",
}
"""What a new cgroup has of which nothing was requested, as an edit has it; otherwise nothing."""
BYTES: Final = frozenset({_R.MEMORY_LIMIT, _R.MEMORY_MIN, _R.MEMORY_LOW, _R.MEMORY_HIGH})
"""Roles that are amounts of memory."""


def legal(role: edits.Role, value: int) -> bool:
    """Tell whether the kernel would take a number."""
    low, high = LEGAL[role]
    return low <= value <= high


def numbers(
    group: str, wanted: Mapping[edits.Role, int | None], reason: str
) -> tuple[edits.Edit, ...]:
    """Return the edits of one group; what is unset or what no kernel takes is left out."""
    return tuple(
        edits.Edit(role, group, str(value), reason)
        for role, value in wanted.items()
        if value is not None and legal(role, value)
    )


def shares(milli: int) -> int:
    """Return the cpu shares of an amount of cpu."""
    if milli <= 0:
        return LEAST_SHARES
    return min(max(milli * 1024 // 1000, LEAST_SHARES), MOST_SHARES)


def quota(milli: int) -> int:
    """Return the quota in microseconds of an amount of cpu, -1 for none."""
    amount = milli * PERIOD_US // 1000
    return -1 if milli <= 0 or amount <= 0 else max(amount, 1000)


def weight(cpu_shares: int) -> int:
    """Return the weight on v2 that cpu shares stand for."""
    amount = 1 + (cpu_shares - 2) * 9999 // 262142
    return min(max(amount, LEAST_WEIGHT), MOST_WEIGHT)


def render(role: edits.Role, value: str, version: cgroup_layout.Version) -> str:
    """Return the text that sets a value of an edit on a host of this cgroup version."""
    if role is _R.CPU_QUOTA and version == 2:
        return f"{'max' if value == '-1' else value} {PERIOD_US}"
    if role is _R.CPU_SHARES and version == 2:
        return str(weight(int(value)))
    if role in BYTES and value in ("-1", str(UNLIMITED)):
        return "max" if version == 2 else "-1" if role is _R.MEMORY_LIMIT else str(UNLIMITED)
    return value


def same(role: edits.Role, one: str, other: str) -> bool:
    """Tell whether two texts mean the same to the kernel."""
    if one == other or role in _TEXTS:
        return one == other
    if len(one) + len(other) > _REMEMBERED_LENGTH:
        return _equal(role, one, other)
    return _remembered_equal(role, one, other)


def _equal(role: edits.Role, one: str, other: str) -> bool:
    return _meaning(role, one) == _meaning(role, other)


_remembered_equal = functools.lru_cache(_REMEMBERED)(_equal)
"""When the cpus of a class change, the same two texts are compared for each of its groups."""


def amount(role: edits.Role, text: str) -> int | None:
    """Return the number in the text of a quota or a memory value, None where there is none.

    A quota is given for a period of 100 ms, whatever period stands behind it.
    """
    words = text.split()
    if not words:
        return None
    if words[0] == "max" or (words[0] == "-1" and role in GROWING | BYTES):
        return UNLIMITED
    try:
        value = int(words[0])
    except ValueError:
        return None
    if role in BYTES and value >= V1_UNLIMITED:
        return UNLIMITED
    if role is _R.CPU_QUOTA and len(words) > 1 and words[1].isdigit() and int(words[1]):
        return value * PERIOD_US // int(words[1])
    return value


def cpus(text: str) -> frozenset[int] | None:
    """Read a cpu list that stands in a file; None where it is none."""
    try:
        return cpulists.parse(text)
    except cpulists.CpuListError:
        return None


def both(one: str, other: str) -> str | None:
    """Return the cpus of two lists together; None where the first one has all, or one has none."""
    if len(one) + len(other) > _REMEMBERED_LENGTH:
        return _both(one, other)
    return _remembered_both(one, other)


def _both(one: str, other: str) -> str | None:
    now, then = cpus(one), cpus(other)
    return None if not now or not then or then <= now else cpulists.text(now | then)


_remembered_both = functools.lru_cache(_REMEMBERED)(_both)


def devices(text: str) -> dict[str, str]:
    """Read the lines of a file with one line per device."""
    lines = (line.split(None, 1) for line in text.splitlines())
    return {words[0]: " ".join(words[1:]).strip() for words in lines if len(words) == 2}


def _meaning(role: edits.Role, text: str) -> object:
    if role is _R.CPUSET:
        found = cpus(text)
        return text if found is None else found
    if role in BY_DEVICE:
        return {name: value for name, value in devices(text).items() if value not in ("0", "max")}
    if role in (_R.RESCTRL_L3, _R.RESCTRL_MB):
        return _domains(text)
    value = amount(role, text)
    return text if value is None else value


def _domains(text: str) -> dict[str, str]:
    """Read `L3:0=f;1=ff` by cache; the kernel pads masks with zeros."""
    _, _, parts = text.strip().partition(":")
    pairs = (part.partition("=") for part in parts.split(";") if part)
    return {cache.strip(): value.strip().lstrip("0") or "0" for cache, _, value in pairs}
