"""Real control groups that look like a kubelet's, real processes, and an agent's loop on them.

Version 1: a subtree of our own below every controller, as a kubelet with cgroupfs makes it.
Version 2: the root of a machine of our own, as systemd makes it, or several subtrees side by side.
How much the node uses is what its groups use: what else runs on the machine does not count.
"""

import contextlib
import dataclasses
import os
import pathlib
import re
import signal
import subprocess

import msgspec

from agent.decide import planner
from agent.host import files
from agent.loop import ticks
from agent.model import cgroup_layout, slo_settings, strategy_settings
from agent.observe import observation
from agent.observe.cgroups import cgroup_files
from api.koordinator.metadata import qos
from api.kubernetes import core
from api.wire import quantity
from domain.cluster_settings import node_slo
from domain.cpus import cpulists
from process.runtime import clock as clocks
from process.runtime import metrics
from tests.planes import raw

ROOT = pathlib.Path("/sys/fs/cgroup")
CONTROLLERS = ("cpu", "cpuacct", "cpuset", "blkio", "memory")
TICK = 0.5
BURN = "while :; do :; done"
CLASSES = {"Guaranteed": "", "Burstable": "burstable", "BestEffort": "besteffort"}
LABELS = {"Guaranteed": "LSR", "Burstable": "LS", "BestEffort": "BE"}
GATES = frozenset(
    {"BECPUSuppress", "BatchResource", "CPUBurst", "CPUSetAllocator", "CgroupReconcile"}
    | {"BEMemoryEvict", "GroupIdentity", "CPUEvict"}
)
LARGEST_SHARES = "262144"
LEFT = re.compile(r"koord-[a-z-]+[0-9]?-([0-9]+)")
"""The groups of one run of tests, with the process that made them."""
MIB = 1 << 20
NO_PRESSURE = strategy_settings.Pressure()


def sweep():
    """End what runs of tests have left that were killed, and remove their groups."""
    for root in (ROOT / name for name in CONTROLLERS):
        for left in root.glob("koord-*") if version() == 1 else ():
            found = LEFT.fullmatch(left.name)
            if found is None or pathlib.Path("/proc", found[1]).exists():
                continue
            for folder in sorted((left, *left.rglob("*/")), reverse=True):
                with contextlib.suppress(OSError):
                    for pid in (folder / "cgroup.procs").read_text().split():
                        os.kill(int(pid), signal.SIGKILL)
                with contextlib.suppress(OSError):
                    folder.rmdir()


def version():
    """The version of this machine's control groups."""
    return 2 if (ROOT / "cgroup.controllers").exists() else 1


def has_both():
    """Whether version 2 stands beside version 1, without controllers."""
    return version() == 1 and (ROOT / "unified/cgroup.procs").exists()


class Groups:
    """Groups of one node; what is made is removed again."""

    def __init__(self, base, driver="", *, nested=False):
        sweep()
        self.version = version()
        self.base = base if self.version == 1 or nested else ""
        chosen = driver or ("cgroupfs" if self.version == 1 else "systemd")
        hybrid = has_both()
        self.layout = cgroup_layout.Layout(
            str(ROOT), self.version, chosen, self.base, hybrid=hybrid
        )
        self.processes = []
        self.made = set()
        self.kept = files.Kept()
        for name in CLASSES:
            self.make(self.layout.qos_group(name))
        self.system = self.make(f"{base}/system" if self.base else "system.slice")
        if self.version == 1:
            # Whatever else runs on this machine must not decide how much our processes get.
            self.write(cgroup_layout.File.CPU_SHARES, base, LARGEST_SHARES)

    def make(self, group):
        """Create a group below every controller, as a runtime does."""
        for root in self._roots():
            folder = root
            for part in pathlib.PurePosixPath(group).parts:
                if self.version == 2:
                    enable = folder / "cgroup.subtree_control"
                    enable.write_text("+cpuset +cpu +io +memory +pids")
                above, folder = folder, folder / part
                if not folder.exists():
                    folder.mkdir()
                    self.made.add(folder)
                for name in ("cpuset.mems", "cpuset.cpus") if root.name == "cpuset" else ():
                    if not (folder / name).read_text().strip():
                        (folder / name).write_text((above / name).read_text())
        return group

    def _roots(self):
        return [ROOT] if self.version == 2 else [ROOT / name for name in CONTROLLERS]

    def hold(self, group, size):
        """Start a process that holds so much memory: one that waits for the end of its input."""
        # What the shells themselves hold is about this much.
        size = max(size - MIB // 2, 1)
        return self.start(group, f"{{ head -c {size} /dev/zero; sleep 10000; }} | tail -c {size}")

    def burn(self, group, cores=None):
        """Start a process that burns cpu, no more than so many cores."""
        if cores is not None:
            self.limit(group, max(int(cores * 100_000), 1000))
        return self.start(group, BURN)

    def start(self, group, script):
        """Start a shell script in a group."""
        waits = f"read go; {script}"
        process = subprocess.Popen(
            ["/bin/sh", "-c", waits],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.processes.append(process)
        for root in self._roots():
            (root / group / "cgroup.procs").write_text(str(process.pid))
        process.stdin.write(b"go\n")
        process.stdin.flush()
        return process

    def stop(self, process):
        """End a process and what it started, if it has not ended by itself."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdin.close()
        self.processes.remove(process)

    async def run(self, group, script, seconds=100):
        """Run a shell script in a group to its end; returns its exit code."""
        process = self.start(group, script)

        async def ended():
            return process.poll() is not None

        await raw.eventually(ended, seconds)
        self.stop(process)
        return process.returncode

    def limit(self, group, quota_us):
        """Limit a group as a runtime does, from the limit of its container."""
        text = str(quota_us) if self.version == 1 else f"{quota_us} 100000"
        self.write(cgroup_layout.File.CPU_QUOTA, group, text)

    def write(self, file, group, text):
        """Write into a file of a group."""
        pathlib.Path(self.layout.path(file, group)).write_text(text)

    def text(self, file, group):
        """Return what stands in a file of a group."""
        return pathlib.Path(self.layout.path(file, group)).read_text().strip()

    def cpu_seconds(self, *groups):
        """Return the cpu time of groups; of all pods and of the system when none is named."""
        return sum(map(self._reader().cpu_seconds, groups or self._tops()))

    def memory(self, *groups):
        """Return the memory of groups without page cache; of all when none is named."""
        reader = self._reader()
        return sum(reader.memory(group).without_cache for group in groups or self._tops())

    def _tops(self):
        return self.layout.qos_group("Guaranteed"), self.system

    def _reader(self):
        return cgroup_files.Cgroups(self.layout, self.kept)

    def throttled(self, group):
        """Return how many periods a group was throttled in, and for how many seconds."""
        lines = (
            line.split() for line in self.text(cgroup_layout.File.CPU_STAT, group).splitlines()
        )
        found = {name: int(value) for name, value in lines}
        seconds = found.get("throttled_usec", found.get("throttled_time", 0) / 1e3) / 1e6
        return found["nr_throttled"], seconds

    async def remove(self):
        """End every process and remove every group."""
        for process in list(self.processes):
            self.stop(process)
        self.kept.close()
        await self.drop(self.made)

    async def drop(self, folders):
        """Remove groups, those below first."""
        left = sorted(folders, key=lambda one: -len(one.parts))

        async def gone():
            for folder in left:
                # A process that was just killed may still be on its way out.
                with contextlib.suppress(OSError):
                    folder.rmdir()
            return not any(folder.exists() for folder in left)

        await raw.eventually(gone, 30.0)
        self.made -= set(left)

    async def end(self, group):
        """End what runs in a group and below it, and remove it, as a kubelet and a runtime do."""
        folders = [one for one in self.made if f"{one}/".startswith(self._prefixes(group))]
        for process in list(self.processes):
            if any(str(process.pid) in self._inside(one) for one in folders):
                self.stop(process)
        await self.drop(folders)

    def _prefixes(self, group):
        return tuple(f"{root / group}/" for root in self._roots())

    @staticmethod
    def _inside(folder):
        return (folder / "cgroup.procs").read_text().split()


@dataclasses.dataclass(frozen=True)
class Setup:
    """What kind of node it is."""

    gates: frozenset[str] = GATES
    mode: planner.Mode = planner.Mode.ENFORCE
    pressure: strategy_settings.Pressure = NO_PRESSURE
    capacity: dict[str, str] | None = None
    """The cpus of this machine and 8 GiB when absent."""


class Node:
    """An agent's loop on such groups, with a NodeSLO and pods as they are told."""

    def __init__(self, groups, folder, setup=None):
        setup = setup or Setup()
        self.groups = groups
        self.pods = {}
        self.clock = clocks.SystemClock()
        self.proc = folder / "proc"
        boot = self.proc / "sys/kernel/random"
        boot.mkdir(parents=True)
        (self.proc / "cpuinfo").write_text("")
        (boot / "boot_id").write_text("boot\n")
        body = _node(setup.capacity or {"cpu": str(os.cpu_count()), "memory": "8Gi"})
        self.total = quantity.whole(body.status.capacity["memory"])
        self.known = observation.Known(node=body, pods=())
        self._account()
        self.observer = observation.Observer(
            observation.Roots(str(self.proc), "/sys", str(ROOT)), TICK
        )
        self.observer.layout = groups.layout
        self.loop = ticks.Ticks(
            self.observer,
            lambda: self.known,
            self.clock,
            ticks.Figures(metrics.Registry()),
            ticks.Habits(
                folder / "state",
                writing=True,
                gates=setup.gates,
                default=setup.mode,
                pressure=setup.pressure,
                tick_seconds=TICK,
            ),
        )

    def enforce(self, **spec):
        """Let the node enforce what a NodeSLO with this spec says."""
        complete = node_slo.of_spec(spec)
        self._know(
            thresholds=slo_settings.thresholds(complete), enforced=slo_settings.read(complete)
        )

    def pod(self, uid, kind, resources=None, **annotations):
        """Add a pod with one container; returns the groups of both."""
        body = {
            "metadata": {
                "name": uid,
                "namespace": "default",
                "uid": uid,
                "labels": {"koordinator.sh/qosClass": LABELS[kind]},
                "annotations": annotations,
            },
            "spec": {"containers": [{"name": "app", "resources": resources or {}}]},
            "status": {"phase": "Running", "qosClass": kind},
        }
        pod, (container,) = self.add(body)
        return pod, container

    def add(self, body, runtime="containerd"):
        """Add a pod as the API server has it; returns its group and those of its containers."""
        uid = body["metadata"]["uid"]
        identities = {
            one["name"]: f"{runtime}://c-{uid}-{one['name']}"
            for one in body["spec"].get("containers", ())
        }
        statuses = [
            {
                "name": name,
                "containerID": identity,
                "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
            }
            for name, identity in identities.items()
        ]
        status = {**body.get("status", {}), "containerStatuses": statuses}
        found = msgspec.convert({**body, "status": status}, core.Pod)
        group = self.groups.layout.pod_group(uid, qos.kubernetes_qos(found))
        containers = [
            self.groups.make(self.groups.layout.container_group(group, identity))
            for identity in identities.values()
        ]
        self.pods[uid] = found
        self._know(pods=tuple(self.pods.values()))
        return group, containers

    async def remove(self, uid):
        """End a pod: first its processes and its groups, then nobody knows it any more."""
        pod = self.pods[uid]
        await self.groups.end(self.groups.layout.pod_group(uid, qos.kubernetes_qos(pod)))
        del self.pods[uid]
        self._know(pods=tuple(self.pods.values()))

    def uninstall(self):
        """Put everything back and end, as an agent does that no other follows."""
        if self.loop.enforcer.entries:
            self.loop.put_back("uninstalled")
        self.loop.stop()

    async def seconds(self, count):
        """Let the loop tick in real time."""
        for _ in range(round(count / TICK)):
            await self.clock.sleep(TICK)
            self.tick()
        return self.loop.picture

    def tick(self):
        """Look, decide and apply once."""
        self._account()
        self.loop.tick()

    async def until(self, condition, seconds):
        """Tick until something is so; returns how long it took."""
        begin = self.clock.monotonic()
        while self.clock.monotonic() - begin < seconds:
            await self.clock.sleep(TICK)
            self.tick()
            if condition():
                return self.clock.monotonic() - begin
        said = {name: one.reason for name, one in self.loop.decisions.items()}
        raise AssertionError(f"not so after {seconds} s: {said}")

    def _know(self, **changes):
        self.known = msgspec.structs.replace(self.known, **changes)

    def _account(self):
        """Write what the node used so far: what its pods and its system did, nothing else."""
        ticks_used = int(self.groups.cpu_seconds() * os.sysconf("SC_CLK_TCK"))
        (self.proc / "stat").write_text(f"cpu  {ticks_used} 0 0 1000000 0 0 0 0 0 0\n")
        total = self.total // 1024
        free = max(total - self.groups.memory() // 1024, 0)
        (self.proc / "meminfo").write_text(
            f"MemTotal: {total} kB\nMemFree: {free} kB\nMemAvailable: {free} kB\n"
            "Buffers: 0 kB\nCached: 0 kB\nSReclaimable: 0 kB\n"
        )


def _node(amounts):
    return msgspec.convert(
        {
            "metadata": {"name": "node"},
            "status": {"capacity": amounts, "allocatable": amounts},
        },
        core.Node,
    )


def all_cpus():
    """The cpus of this machine, as a list of the kernel."""
    name = "cpuset/cpuset.cpus" if version() == 1 else "cpuset.cpus.effective"
    return cpulists.text(cpulists.parse((ROOT / name).read_text().strip()))
