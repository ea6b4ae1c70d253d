"""Real control groups that look like a kubelet's, real processes, and an agent's loop on them.

Version 1: a subtree of our own below every controller. Version 2: the root of a machine of our own.
How much the node uses is what its groups use: what else runs on the machine does not count.
"""

import contextlib
import dataclasses
import os
import pathlib
import signal
import subprocess

import msgspec

from agent import enforced, layout, observation, planner, ticks
from api import core
from domain import cpulists, node_slo
from process import clock as clocks
from process import metrics
from tests.planes import raw

ROOT = pathlib.Path("/sys/fs/cgroup")
CONTROLLERS = ("cpu", "cpuacct", "cpuset", "blkio", "memory")
TICK = 0.5
CLASSES = {"Guaranteed": "", "Burstable": "burstable", "BestEffort": "besteffort"}
LABELS = {"Guaranteed": "LSR", "Burstable": "LS", "BestEffort": "BE"}
GATES = frozenset(
    {"BECPUSuppress", "BatchResource", "CPUBurst", "CPUSetAllocator", "CgroupReconcile"}
    | {"BEMemoryEvict", "GroupIdentity", "CPUEvict"}
)


def version():
    """The version of this machine's control groups."""
    return 2 if (ROOT / "cgroup.controllers").exists() else 1


class Groups:
    """Groups of one node; what is made is removed again."""

    def __init__(self, base):
        self.version = version()
        self.base = base if self.version == 1 else ""
        self.layout = layout.Layout(str(ROOT), self.version, "cgroupfs", self.base)
        self.processes = []
        self.made = set()
        for name in CLASSES:
            self.make(self.layout.qos_group(name))

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
        """End a process and what it started."""
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdin.close()
        self.processes.remove(process)

    def limit(self, group, quota_us):
        """Limit a group as a runtime does, from the limit of its container."""
        text = str(quota_us) if self.version == 1 else f"{quota_us} 100000"
        pathlib.Path(self.layout.path(layout.File.CPU_QUOTA, group)).write_text(text)

    def text(self, file, group):
        """Return what stands in a file of a group."""
        return pathlib.Path(self.layout.path(file, group)).read_text().strip()

    def cpu_seconds(self):
        """Return the cpu time of all pods together."""
        top = self.layout.qos_group("Guaranteed")
        text = self.text(layout.File.CPU_USAGE, top)
        if self.version == 1:
            return int(text) / 1e9
        return int(dict(line.split() for line in text.splitlines())["usage_usec"]) / 1e6

    def throttled(self, group):
        """Return how many periods a group was throttled in, and for how many seconds."""
        lines = (line.split() for line in self.text(layout.File.CPU_STAT, group).splitlines())
        found = {name: int(value) for name, value in lines}
        seconds = found.get("throttled_usec", found.get("throttled_time", 0) / 1e3) / 1e6
        return found["nr_throttled"], seconds

    async def remove(self):
        """End every process and remove every group."""
        for process in list(self.processes):
            self.stop(process)
        left = sorted(self.made, key=lambda one: -len(one.parts))

        async def gone():
            for folder in left:
                # A process that was just killed may still be on its way out.
                with contextlib.suppress(OSError):
                    folder.rmdir()
            return not any(folder.exists() for folder in left)

        await raw.eventually(gone, 30.0)


class Node:
    """An agent's loop on such groups, with a NodeSLO and pods as they are told."""

    def __init__(self, groups, folder, mode=planner.Mode.ENFORCE):
        self.groups = groups
        self.pods = {}
        self.clock = clocks.SystemClock()
        self.proc = folder / "proc"
        self.proc.mkdir()
        (self.proc / "cpuinfo").write_text("")
        boot = self.proc / "sys/kernel/random"
        boot.mkdir(parents=True)
        (boot / "boot_id").write_text("boot\n")
        self._account()
        self.observer = observation.Observer(
            observation.Roots(str(self.proc), "/sys", str(ROOT)), TICK
        )
        self.observer.layout = groups.layout
        self.known = observation.Known(node=_node(), pods=())
        self.loop = ticks.Ticks(
            self.observer,
            lambda: self.known,
            self.clock,
            ticks.Figures(metrics.Registry()),
            ticks.Habits(
                folder / "state", writing=True, gates=GATES, default=mode, tick_seconds=TICK
            ),
        )

    def enforce(self, **spec):
        """Let the node enforce what a NodeSLO with this spec says."""
        complete = node_slo.of_spec(spec)
        self._know(thresholds=enforced.thresholds(complete), enforced=enforced.read(complete))

    def pod(self, uid, kind, resources=None, **annotations):
        """Add a pod with one container; returns the groups of both."""
        raw = {
            "metadata": {
                "name": uid,
                "namespace": "default",
                "uid": uid,
                "labels": {"koordinator.sh/qosClass": LABELS[kind]},
                "annotations": annotations,
            },
            "spec": {"containers": [{"name": "app", "resources": resources or {}}]},
            "status": {
                "phase": "Running",
                "qosClass": kind,
                "containerStatuses": [
                    {
                        "name": "app",
                        "containerID": f"containerd://c-{uid}",
                        "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
                    }
                ],
            },
        }
        pod = self.groups.layout.pod_group(uid, kind)
        container = self.groups.layout.container_group(pod, f"containerd://c-{uid}")
        self.groups.make(container)
        self.pods[uid] = msgspec.convert(raw, core.Pod)
        self._know(pods=tuple(self.pods.values()))
        return pod, container

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
        raise AssertionError(f"not so after {seconds} s: {self.loop.decided}")

    def _know(self, **changes):
        self.known = dataclasses.replace(self.known, **changes)

    def _account(self):
        """Write what the node used so far: the time of its pods, nothing else."""
        ticks_used = int(self.groups.cpu_seconds() * os.sysconf("SC_CLK_TCK"))
        (self.proc / "stat").write_text(f"cpu  {ticks_used} 0 0 1000000 0 0 0 0 0 0\n")
        (self.proc / "meminfo").write_text(
            "MemTotal: 8388608 kB\nMemFree: 6291456 kB\nMemAvailable: 6291456 kB\n"
            "Buffers: 0 kB\nCached: 0 kB\nSReclaimable: 0 kB\n"
        )


def _node():
    amounts = {"cpu": str(os.cpu_count()), "memory": "8Gi"}
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
