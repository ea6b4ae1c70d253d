"""Where the control groups of pods lie and what their files are called. Pure."""

import enum
import re
import sys
from typing import Literal

import msgspec

Version = Literal[1, 2]
Driver = Literal["systemd", "cgroupfs"]
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,252}")
_QOS = {"Guaranteed": "", "Burstable": "burstable", "BestEffort": "besteffort"}
_PLACES = frozenset({"proc", "sys", "terway", "resctrl"})
"""Controllers that stand for places outside of the groups."""
_SCOPES = {
    "docker": "docker",
    "containerd": "cri-containerd",
    "pouch": "pouch",
    "cri-o": "crio",
}


class LayoutError(ValueError):
    """An identity that cannot be part of a path."""


class File(enum.Enum):
    """A file of a group: its controller and name on v1, its name on v2.

    A file that only one version has keeps its name on the other, where it will not be found. The
    controllers `proc`, `sys`, `resctrl` and `terway` stand for places outside of the groups.
    """

    def __init__(self, controller: str, first: str, second: str) -> None:
        # A tick asks for hundreds of paths, and an enum's own value is slow to get.
        self.controller, self.first, self.second = controller, first, second

    CPU_USAGE = ("cpuacct", "cpuacct.usage", "cpu.stat")
    CPU_STAT = ("cpu", "cpu.stat", "cpu.stat")
    MEMORY_CURRENT = ("memory", "memory.usage_in_bytes", "memory.current")
    MEMORY_RECLAIM = ("memory", "memory.reclaim", "memory.reclaim")
    MEMORY_STAT = ("memory", "memory.stat", "memory.stat")
    MEMORY_NUMA_STAT = ("memory", "memory.numa_stat", "memory.numa_stat")
    IDLE_PAGES = ("memory", "memory.idle_page_stats", "memory.idle_page_stats")
    PROCESSES = ("cpu", "cgroup.procs", "cgroup.procs")
    KILL = ("cpu", "cgroup.kill", "cgroup.kill")
    CPU_PRESSURE = ("cpuacct", "cpu.pressure", "cpu.pressure")
    MEMORY_PRESSURE = ("cpuacct", "memory.pressure", "memory.pressure")
    IO_PRESSURE = ("cpuacct", "io.pressure", "io.pressure")
    CPUSET = ("cpuset", "cpuset.cpus", "cpuset.cpus")
    EFFECTIVE_CPUSET = ("cpuset", "cpuset.cpus", "cpuset.cpus.effective")
    CPU_QUOTA = ("cpu", "cpu.cfs_quota_us", "cpu.max")
    CPU_PERIOD = ("cpu", "cpu.cfs_period_us", "cpu.cfs_period_us")
    CPU_BURST = ("cpu", "cpu.cfs_burst_us", "cpu.max.burst")
    CPU_SHARES = ("cpu", "cpu.shares", "cpu.weight")
    CPU_IDLE = ("cpu", "cpu.idle", "cpu.idle")
    CPU_IDENTITY = ("cpu", "cpu.bvt_warp_ns", "cpu.bvt_warp_ns")
    MEMORY_LIMIT = ("memory", "memory.limit_in_bytes", "memory.max")
    MEMORY_MIN = ("memory", "memory.min", "memory.min")
    MEMORY_LOW = ("memory", "memory.low", "memory.low")
    MEMORY_HIGH = ("memory", "memory.high", "memory.high")
    MEMORY_WMARK_RATIO = ("memory", "memory.wmark_ratio", "memory.wmark_ratio")
    MEMORY_WMARK_SCALE = ("memory", "memory.wmark_scale_factor", "memory.wmark_scale_factor")
    MEMORY_WMARK_MIN_ADJ = ("memory", "memory.wmark_min_adj", "memory.wmark_min_adj")
    MEMORY_PRIORITY = ("memory", "memory.priority", "memory.priority")
    MEMORY_PRIORITY_OOM = ("memory", "memory.use_priority_oom", "memory.use_priority_oom")
    MEMORY_OOM_GROUP = ("memory", "memory.oom.group", "memory.oom.group")
    PAGE_CACHE_LIMITED = (
        "memory",
        "memory.pagecache_limit.enable",
        "memory.pagecache_limit.enable",
    )
    PAGE_CACHE_SIZE = ("memory", "memory.pagecache_limit.size", "memory.pagecache_limit.size")
    PAGE_CACHE_SYNC = ("memory", "memory.pagecache_limit.sync", "memory.pagecache_limit.sync")
    IO_READ_IOPS = ("blkio", "blkio.throttle.read_iops_device", "io.max")
    IO_WRITE_IOPS = ("blkio", "blkio.throttle.write_iops_device", "io.max")
    IO_READ_BPS = ("blkio", "blkio.throttle.read_bps_device", "io.max")
    IO_WRITE_BPS = ("blkio", "blkio.throttle.write_bps_device", "io.max")
    IO_BYTES = ("blkio", "blkio.throttle.io_service_bytes_recursive", "io.stat")
    IO_OPERATIONS = ("blkio", "blkio.throttle.io_serviced_recursive", "io.stat")
    IO_WEIGHT = ("blkio", "blkio.cost.weight", "io.weight")
    IO_COST_QOS = ("blkio", "blkio.cost.qos", "io.cost.qos")
    IO_COST_MODEL = ("blkio", "blkio.cost.model", "io.cost.model")
    NET_CLASS_ID = ("net_cls", "net_cls.classid", "net_cls.classid")
    RESCTRL_SCHEMATA = ("resctrl", "schemata", "schemata")
    TERWAY_LIMITS = ("terway", "global_bps_config", "")
    TERWAY_PODS = ("terway", "pod.json", "")
    VM_MIN_FREE_KBYTES = ("proc", "sys/vm/min_free_kbytes", "")
    VM_WATERMARK_SCALE = ("proc", "sys/vm/watermark_scale_factor", "")
    SCHED_GROUP_IDENTITY = ("proc", "sys/kernel/sched_group_identity_enabled", "")
    SCHED_IDLE_SAVER = ("proc", "sys/kernel/sched_idle_saver_wmark", "")
    SCHED_CORE = ("proc", "sys/kernel/sched_core", "")
    MEMCG_REAP = ("sys", "kernel/mm/memcg_reaper/reap_background", "")
    PAGE_CACHE_LIMITS = ("sys", "kernel/mm/pagecache_limit/enabled", "")
    KIDLED_PERIOD = ("sys", "kernel/mm/kidled/scan_period_in_seconds", "")
    KIDLED_HIERARCHY = ("sys", "kernel/mm/kidled/use_hierarchy", "")
    SCHED_FEATURES = ("sys", "kernel/debug/sched_features", "")
    NEW_SCHED_FEATURES = ("sys", "kernel/debug/sched/features", "")


class Layout(msgspec.Struct, frozen=True):
    """How this host arranges its groups."""

    root: str
    version: Version
    driver: Driver
    base: str = ""
    """Folder above the groups of pods, empty for the root."""
    proc: str = "/proc"
    sys: str = "/sys"
    prefix: str = ""
    """What the slices begin with where a kubelet under systemd has a `--cgroup-root`."""
    hybrid: bool = False
    """Whether version 2 is mounted beside version 1, at `unified`."""

    terway: str = ""
    """Folder of the files that Terway reads; empty where not set."""

    def __str__(self) -> str:
        """Return the sentence for people."""
        beside = " with v2 beside it" if self.hybrid else ""
        below = f", below {self.base}" if self.base else ""
        return f"cgroup v{self.version}{beside}, {self.driver}{below}"

    def qos_group(self, kubernetes_qos: str) -> str:
        """Return the group that holds the pods of a kubelet QoS class."""
        part = _QOS.get(kubernetes_qos)
        if part is None:
            raise LayoutError(f"{kubernetes_qos!r} is no QoS class of a kubelet")
        if self.driver == "systemd":
            top = self._top
            path = f"{top}.slice/{top}-{part}.slice" if part else f"{top}.slice"
        else:
            path = f"kubepods/{part}" if part else "kubepods"
        return f"{self.base}/{path}" if self.base else path

    def pod_group(self, uid: str, kubernetes_qos: str) -> str:
        """Return the group of a pod; it follows the kubelet's class, never a label."""
        above = self.qos_group(kubernetes_qos)
        _check(uid, "uid of a pod")
        if self.driver == "cgroupfs":
            return inner(above, f"pod{uid}")
        part = _QOS[kubernetes_qos]
        prefix = f"{self._top}-{part}" if part else self._top
        return inner(above, f"{prefix}-pod{uid.replace('-', '_')}.slice")

    def container_group(self, pod_group: str, container_id: str) -> str:
        """Return the group of a container, from its id as a pod's status writes it."""
        runtime, found, identity = container_id.partition("://")
        if not found or runtime not in _SCOPES:
            known = ", ".join(_SCOPES)
            raise LayoutError(f"container id {container_id[:80]!r} begins with none of {known}")
        _check(identity, "id of a container")
        if self.driver == "cgroupfs":
            # CRI-O names what runs beside a container by the same id, and keeps them apart.
            return inner(pod_group, f"{'crio-' if runtime == 'cri-o' else ''}{identity}")
        return inner(pod_group, f"{_SCOPES[runtime]}-{identity}.scope")

    def path(self, file: File, group: str) -> str:
        """Return the path of a file of a group."""
        controller, first, second = file.controller, file.first, file.second
        if controller not in _PLACES:
            if self.version == 1:
                return f"{self.root}/{controller}/{group}/{first}"
            return f"{self.root}/{group}/{second}"
        if controller in ("proc", "sys"):
            # A property of the host: the group, if any, only names a part of the file.
            return f"{self.proc if controller == 'proc' else self.sys}/{first}"
        if controller == "terway":
            return f"{self.terway}/{first}" if self.terway else ""
        return "/".join(filter(None, (self.sys, "fs/resctrl", group, first)))

    def host_group(self, base: str, parent: str, relative: str) -> str:
        """Return the group of a process outside of pods, from how a NodeSLO names it."""
        above = {
            "Kubepods": "Guaranteed",
            "KubepodsBurstable": "Burstable",
            "KubepodsBesteffort": "BestEffort",
        }.get(base)
        parts = [self.qos_group(above) if above else self.base, parent, relative]
        path = "/".join(part.strip("/") for part in parts if part.strip("/"))
        if not path or any(part in ("..", ".", "") for part in path.split("/")):
            raise LayoutError(f"{path[:80]!r} cannot be the group of a host application")
        return path

    def folder(self, file: File, group: str) -> str:
        """Return the directory of a group, in the hierarchy of that file."""
        return self.path(file, group).rpartition("/")[0]

    @property
    def _top(self) -> str:
        return f"{self.prefix}-kubepods" if self.prefix else "kubepods"


def slices(path: str) -> tuple[str, str]:
    """Return the folder of a group as systemd names its slices, and what slices in it begin with.

    A dash in a part of the path would separate slices, so the kubelet writes another sign for it.
    """
    parts = [part.replace("-", "_") for part in path.split("/") if part]
    names = ["-".join(parts[: count + 1]) for count in range(len(parts))]
    return "/".join(f"{name}.slice" for name in names), "-".join(parts)


def runtime_of(container: str) -> str:
    """Return the runtime that names a container's id, or its group, so; empty where many do."""
    name, found, _ = container.partition("://")
    if found:
        return name if name in _SCOPES else ""
    for runtime, prefix in _SCOPES.items():
        if container.startswith(f"{prefix}-") and (
            container.endswith(".scope") or runtime == "cri-o"
        ):
            return runtime
    return ""


def inner(group: str, name: str) -> str:
    """Return a group inside another one: one text for each, since hundreds of ticks name it."""
    return sys.intern(f"{group}/{name}")


def is_of_pod(name: str) -> bool:
    """Tell whether a group below that of a class is one of a pod, by its name."""
    return name.startswith("pod") or (name.endswith(".slice") and "-pod" in name)


def accompanies(name: str) -> bool:
    """Tell whether a group beside those of containers holds what watches one of them."""
    return name.startswith("crio-conmon-")


def _check(identity: str, what: str) -> None:
    if not _SAFE.fullmatch(identity):
        raise LayoutError(f"{identity[:80]!r} cannot be the {what}")
