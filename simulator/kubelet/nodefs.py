"""A generated host: the files under /proc, /sys and the cgroup root that a node agent reads.

The counters belong together: what the node used is what the system and all pods used, and
best-effort pods get no more than their cpuset, their quota and what the others left.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from simulator.kubelet import cgroup_names, machines, tree_files

SYSTEM = "system"
"""The name under which load outside of pods is set."""
TICKS_PER_SECOND = 100
PERIOD_US = 100_000
BOOT_ID = "00000000-0000-4000-8000-000000000001"
_UNLIMITED_V1 = "9223372036854771712"


class HostTreeError(ValueError):
    """A host tree was asked for something that a host could not be."""


@dataclasses.dataclass(slots=True)
class _Load:
    """What a volume may use and has used."""

    cpu_milli: int = 0
    memory_bytes: int = 0
    used_ns: int = 0


@dataclasses.dataclass(slots=True)
class _Pod:
    """One pod of the generated host."""

    qos_class: str
    folder: str
    containers: dict[str, str]
    load: _Load = dataclasses.field(default_factory=_Load)


class _Groups:
    """The cgroup part of a generated host: where groups lie and what stands in their files."""

    def __init__(self, root: Path, cpus: int, version: int, naming: cgroup_names.Naming) -> None:
        self.root, self.cpus, self.version, self.naming = root, cpus, version, naming
        self._shown: dict[str, str] = {}
        if version == 2:
            tree_files.write(root / "cgroup.controllers", "cpuset cpu io memory pids\n")
        classes = (naming.qos_folder(name) for name in cgroup_names.QOS_FOLDERS)
        for folder in ["", *naming.above(), *classes]:
            self.make(folder)

    def remove(self, folder: str) -> None:
        """Take a group without children away."""
        for path in self._folders(folder):
            for file in path.iterdir():
                self._shown.pop(str(file), None)
                file.unlink()
            path.rmdir()

    def _folders(self, folder: str) -> Iterator[Path]:
        """The directories of one group: one per controller on v1."""
        if self.version == 2:
            yield self.root / folder
            return
        for controller in ("cpu", "cpuacct", "cpuset", "memory"):
            yield self.root / controller / folder

    def _file(self, folder: str, controller: str, name: str) -> str:
        # Texts: a host has thousands of these files, and each is named once in every step.
        base = f"{self.root}/{controller}" if self.version == 1 else str(self.root)
        return f"{base}/{folder}/{name}" if folder else f"{base}/{name}"

    def _read(self, folder: str, controller: str, name: str) -> str:
        return tree_files.read(self._file(folder, controller, name)).strip()

    def make(self, folder: str) -> None:
        """Create a group with the values that a new one has."""
        files: dict[tuple[str, str], str] = {
            ("cpuset", "cpuset.cpus"): self._inherited_cpus(folder)
        }
        if self.version == 1:
            files |= {
                ("cpu", "cpu.cfs_quota_us"): "-1",
                ("cpu", "cpu.cfs_period_us"): str(PERIOD_US),
                ("cpu", "cpu.shares"): "1024",
                ("cpuacct", "cpuacct.usage"): "0",
                ("memory", "memory.limit_in_bytes"): _UNLIMITED_V1,
                ("memory", "memory.usage_in_bytes"): "0",
                ("memory", "memory.stat"): "",
            }
        else:
            files |= {
                ("cpu", "cpu.max"): f"max {PERIOD_US}",
                ("cpu", "cpu.weight"): "100",
                ("cpu", "cpu.stat"): "",
                ("cpuset", "cpuset.cpus.effective"): _cpu_list(self.cpus),
                ("memory", "memory.max"): "max",
                ("memory", "memory.current"): "0",
                ("memory", "memory.stat"): "",
            }
        for (controller, name), text in files.items():
            tree_files.write(self._file(folder, controller, name), f"{text}\n")

    def _inherited_cpus(self, folder: str) -> str:
        """On v1 a new group starts with the cpus of the one above, on v2 with none of its own."""
        if self.version == 2:
            return "" if folder else _cpu_list(self.cpus)
        if not folder:
            return _cpu_list(self.cpus)
        return self._read(folder.rpartition("/")[0], "cpuset", "cpuset.cpus")

    def write_usage(self, folder: str, used_ns: int, memory: int) -> None:
        """Set what a group has used of the cpu and holds of memory."""
        if self.version == 1:
            self._show(self._file(folder, "cpuacct", "cpuacct.usage"), f"{used_ns}\n")
            self._show(self._file(folder, "memory", "memory.usage_in_bytes"), f"{memory}\n")
            text = (
                "cache 0\nrss 0\ntotal_cache 0\n"
                f"total_rss {memory}\ntotal_inactive_anon 0\ntotal_active_anon {memory}\n"
                "total_inactive_file 0\ntotal_active_file 0\ntotal_unevictable 0\n"
            )
            self._show(self._file(folder, "memory", "memory.stat"), text)
            self._show(
                self._file(folder, "memory", "memory.numa_stat"), machines.numa_stat(1, memory)
            )
            return
        usec = used_ns // 1000
        stat = (
            f"usage_usec {usec}\nuser_usec {usec}\nsystem_usec 0\n"
            "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\n"
        )
        self._show(self._file(folder, "cpu", "cpu.stat"), stat)
        self._show(self._file(folder, "memory", "memory.current"), f"{memory}\n")
        text = (
            f"anon {memory}\nfile 0\ninactive_anon 0\nactive_anon {memory}\n"
            "inactive_file 0\nactive_file 0\nunevictable 0\n"
        )
        self._show(self._file(folder, "memory", "memory.stat"), text)
        self._show(self._file(folder, "memory", "memory.numa_stat"), machines.numa_stat(2, memory))

    def write_effective(self, groups: Sequence[str]) -> None:
        """What the kernel works out: own cpus, or those of the group above."""
        effective = {"": _cpu_list(self.cpus)}
        classes = map(self.naming.qos_folder, cgroup_names.QOS_FOLDERS)
        for folder in [*self.naming.above(), *classes, *groups]:
            own = self._read(folder, "cpuset", "cpuset.cpus")
            effective[folder] = own or effective[folder.rpartition("/")[0]]
            path = self._file(folder, "cpuset", "cpuset.cpus.effective")
            self._show(path, f"{effective[folder]}\n")

    def _show(self, path: str, text: str) -> None:
        """Write a file that only we write, if it changes."""
        if self._shown.get(path) != text:
            self._shown[path] = text
            tree_files.write(path, text)

    def batch_limit(self) -> int:
        """The milli-cores that the groups of best-effort pods allow together."""
        folder = self.naming.qos_folder("BestEffort")
        limit = self.cpus * 1000
        cpuset = _count(self._read(folder, "cpuset", "cpuset.cpus"))
        if cpuset:
            limit = min(limit, cpuset * 1000)
        if self.version == 1:
            quota = self._read(folder, "cpu", "cpu.cfs_quota_us")
        else:
            quota = self._read(folder, "cpu", "cpu.max").split()[0]
        if quota not in ("max", "-1"):
            limit = min(limit, int(quota) * 1000 // PERIOD_US)
        return limit


class HostTree:
    """A folder that looks like a host; `proc`, `sys` and `cgroup` below `root` are its roots."""

    def __init__(
        self,
        root: Path,
        cpus: int,
        memory_bytes: int,
        version: Literal[1, 2] = 2,
        driver: Literal["systemd", "cgroupfs"] = "systemd",
        naming: cgroup_names.Naming | None = None,
    ) -> None:
        if cpus < 1 or memory_bytes < 1 << 20:
            raise HostTreeError("a host needs at least one cpu and 1 MiB of memory")
        self.proc, self.sys, self.cgroup = root / "proc", root / "sys", root / "cgroup"
        self.cpus, self.memory_bytes = cpus, memory_bytes
        self.version, self.driver = version, naming.driver if naming else driver
        self._pods: dict[str, _Pod] = {}
        self._system = _Load()
        self._busy_ns = 0
        self._idle_ns = 0
        # Neighbouring cpus are the two threads of one core.
        places = machines.grid(1, 1, (cpus + 1) // 2, 2, adjacent=True)[:cpus]
        self.build(machines.Machine(places, caches=False, siblings=False))
        self._names = naming or cgroup_names.Naming(driver)
        self._groups = _Groups(self.cgroup, cpus, version, self._names)
        self._gone_ns = dict.fromkeys(self._sums(), 0)
        self._write_counters()

    @property
    def pods(self) -> tuple[str, ...]:
        """The uids of the pods on this host."""
        return tuple(self._pods)

    def add_pod(self, uid: str, qos_class: str, containers: Sequence[str]) -> None:
        """Make the groups of a pod; `containers` are container ids without the runtime's prefix."""
        self._make(uid, qos_class, containers)
        self._write_counters()

    def add_pods(self, pods: Mapping[str, tuple[str, Sequence[str]]]) -> None:
        """Make the groups of many pods at once: by uid, their class and their containers."""
        for uid, (qos_class, containers) in pods.items():
            self._make(uid, qos_class, containers)
        self._write_counters()

    def _make(self, uid: str, qos_class: str, containers: Sequence[str]) -> None:
        if qos_class not in cgroup_names.QOS_FOLDERS:
            known = ", ".join(cgroup_names.QOS_FOLDERS)
            raise HostTreeError(f"qos_class {qos_class!r} is none of {known}")
        pod = self._pods.get(uid)
        if pod is None:
            pod = _Pod(qos_class, self._names.pod_folder(uid, qos_class), {})
            self._pods[uid] = pod
            self._groups.make(pod.folder)
        for container in containers:
            if container not in pod.containers:
                pod.containers[container] = f"{pod.folder}/{self._names.scope(container)}"
                self._groups.make(pod.containers[container])

    def remove_pod(self, uid: str) -> None:
        """Take a pod and its groups away; an unknown uid is ignored."""
        pod = self._pods.pop(uid, None)
        if pod is None:
            return
        for folder in (*pod.containers.values(), pod.folder):
            self._groups.remove(folder)
        # The groups above keep what their former children have used.
        for name in self._above(pod):
            self._gone_ns[name] += pod.load.used_ns
        self._write_counters()

    def set_load(self, name: str, cpu_milli: int, memory_bytes: int) -> None:
        """Say what a pod (by uid) or `system` wants; the files follow at the next advance."""
        if cpu_milli < 0 or memory_bytes < 0:
            raise HostTreeError("a load cannot be negative")
        load = self._system if name == SYSTEM else self._pod(name).load
        load.cpu_milli, load.memory_bytes = cpu_milli, memory_bytes

    def advance(self, seconds: float) -> None:
        """Let time pass: everybody uses what they want as far as the host can give it."""
        nanoseconds = round(seconds * 1e9)
        granted = self._grant()
        busy = 0
        for load, milli in granted:
            used = milli * nanoseconds // 1000
            load.used_ns += used
            busy += used
        self._busy_ns += busy
        self._idle_ns += max(0, self.cpus * nanoseconds - busy)
        self._write_counters()

    def used_cores(self) -> float:
        """How many cores are in use at this moment."""
        return sum(milli for _, milli in self._grant()) / 1000

    def _pod(self, uid: str) -> _Pod:
        if uid not in self._pods:
            raise HostTreeError(f"no pod {uid!r} on this host; add_pod comes first")
        return self._pods[uid]

    def _grant(self) -> list[tuple[_Load, int]]:
        """Share the cpus: online work first, best effort from what its groups and they leave."""
        online = [self._system, *(p.load for p in self._pods.values() if not _best_effort(p))]
        batch = [p.load for p in self._pods.values() if _best_effort(p)]
        capacity = self.cpus * 1000
        result = _scale(online, capacity)
        left = capacity - sum(milli for _, milli in result)
        return result + _scale(batch, min(left, self._groups.batch_limit()))

    def build(self, machine: machines.Machine) -> None:
        """Let the machine be built otherwise; it has to have as many cpus that are online."""
        if len(machine.places) - len(machine.offline) != self.cpus:
            raise HostTreeError(f"the machine must have {self.cpus} cpus that are online")
        self._online = machines.online(machine)
        self._memory_nodes = machines.memory_nodes(machine)
        share = self.memory_bytes // len(self._memory_nodes) >> 20
        machines.write(self.sys, self.proc, dataclasses.replace(machine, node_mib=share))
        tree_files.write(self.proc / "sys/kernel/random/boot_id", f"{BOOT_ID}\n")

    def _write_counters(self) -> None:
        sums = self._sums()
        for name, gone in self._gone_ns.items():
            sums[name][0] += gone
        for pod in self._pods.values():
            load, share = pod.load, len(pod.containers)
            self._groups.write_usage(pod.folder, load.used_ns, load.memory_bytes)
            for position, folder in enumerate(pod.containers.values()):
                used, memory = (
                    _part(value, share, position) for value in (load.used_ns, load.memory_bytes)
                )
                self._groups.write_usage(folder, used, memory)
            for name in self._above(pod):
                sums[name][0] += load.used_ns
                sums[name][1] += load.memory_bytes
        sums[""][0] += self._system.used_ns
        sums[""][1] += self._system.memory_bytes
        for name, (used, memory) in sums.items():
            self._groups.write_usage(name, used, memory)
        if self.version == 2:
            pods = self._pods.values()
            self._groups.write_effective(
                [folder for pod in pods for folder in (pod.folder, *pod.containers.values())]
            )
        self._write_node(sums[""][1])

    def _sums(self) -> dict[str, list[int]]:
        """An empty sum of time and memory for the root and the groups that hold pods."""
        return {
            name: [0, 0] for name in ("", *map(self._names.qos_folder, cgroup_names.QOS_FOLDERS))
        }

    def _above(self, pod: _Pod) -> set[str]:
        """The groups that a pod's use counts in as well."""
        return {"", *map(self._names.qos_folder, ("Guaranteed", pod.qos_class))}

    def _write_node(self, memory: int) -> None:
        ticks = self._busy_ns * TICKS_PER_SECOND // 10**9
        idle = self._idle_ns * TICKS_PER_SECOND // 10**9
        lines = [f"cpu  {ticks} 0 0 {idle} 0 0 0 0 0 0"]
        for position, cpu in enumerate(self._online):
            busy, rest = (_part(value, self.cpus, position) for value in (ticks, idle))
            lines.append(f"cpu{cpu} {busy} 0 0 {rest} 0 0 0 0 0 0")
        lines += ["intr 0", "ctxt 0", "btime 1700000000", "processes 1"]
        tree_files.write(self.proc / "stat", "\n".join(lines) + "\n")
        total, used = self.memory_bytes // 1024, memory // 1024
        available = max(0, total - used)
        cached = available // 10
        meminfo = {
            "MemTotal": total,
            "MemFree": available - cached,
            "MemAvailable": available,
            "Buffers": 0,
            "Cached": cached,
        }
        text = "".join(f"{name + ':':<15} {value:>8} kB\n" for name, value in meminfo.items())
        tree_files.write(self.proc / "meminfo", text)
        for position, number in enumerate(self._memory_nodes):
            parts = (_part(amount, len(self._memory_nodes), position) for amount in (total, used))
            machines.write_memory(self.sys, number, *parts)


def _best_effort(pod: _Pod) -> bool:
    return pod.qos_class == "BestEffort"


def _scale(loads: Sequence[_Load], limit: int) -> list[tuple[_Load, int]]:
    """Grant what is wanted, or in proportion when it is more than the limit."""
    wanted = sum(load.cpu_milli for load in loads)
    if wanted <= limit:
        return [(load, load.cpu_milli) for load in loads]
    return [(load, load.cpu_milli * max(0, limit) // wanted) for load in loads]


def _part(value: int, shares: int, position: int) -> int:
    """Split a whole number evenly so that the parts add up to it."""
    return value // shares + (1 if position < value % shares else 0)


def _cpu_list(count: int) -> str:
    return "0" if count == 1 else f"0-{count - 1}"


def _count(cpus: str) -> int:
    """How many cpus a list such as `0-3,8` names."""
    total = 0
    for part in filter(None, cpus.split(",")):
        first, _, last = part.partition("-")
        total += int(last or first) - int(first) + 1
    return total
