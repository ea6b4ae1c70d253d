"""A real agent on real cgroups: killed and restarted in an outage, then uninstalled after a resize.

Every 100 ms the limits, the cpus and the class are read from the files; on cgroup v1 as well as v2.
"""

import asyncio
import contextlib
import json
import os
import subprocess
from pathlib import Path

import pytest
from aiohttp import web

from agent.apply import journal
from agent.model import edits
from agent.observe.node import boot
from agent.store import heartbeat
from api import resources
from api.kubernetes import crds
from process.runtime import clock as clocks
from process.runtime import supervise
from simulator import faults
from simulator.apiserver import apiserver
from tests.planes import raw
from tests.planes.processes import processes

ROOT = Path("/sys/fs/cgroup")
V2 = (ROOT / "cgroup.controllers").exists()
CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory")
NODE, MIB = "node-1", 1 << 20
PATIENCE = 300 if V2 else 60
OUTAGE_SECONDS = 30.0 if V2 else 8.0
SLO = {
    "resourceUsedThresholdWithBE": {
        "enable": True,
        "cpuSuppressThresholdPercent": 0,
        "cpuSuppressPolicy": "cfsQuota",
    }
}
FILES = {
    "quota": ("cpu", "cpu.cfs_quota_us", "cpu.max"),
    "shares": ("cpu", "cpu.shares", "cpu.weight"),
    "cpus": ("cpuset", "cpuset.cpus", "cpuset.cpus"),
    "memory": ("memory", "memory.limit_in_bytes", "memory.max"),
}


class Tree:
    """Cgroups of two pods below one of our own, as a kubelet without systemd makes them."""

    def __init__(self, base):
        self.base = base
        self.best_effort = f"{base}/kubepods/besteffort"
        self.lent, self.lent_pod = (
            f"{self.best_effort}/podlent/c-lent",
            f"{base}/kubepods/besteffort/podlent",
        )
        self.bound, self.bound_pod = (
            f"{base}/kubepods/podbound/c-bound",
            f"{base}/kubepods/podbound",
        )
        self.sleepers = []

    def create(self):
        for group in (self.lent, self.bound, f"{self.base}/kubepods/burstable"):
            for root in self.roots():
                self.make(root, group)
        for group in (self.lent, self.bound):
            sleeper = subprocess.Popen(["sleep", "1000"])
            self.sleepers.append(sleeper)
            for root in self.roots():
                (root / group / "cgroup.procs").write_text(str(sleeper.pid))
        for group in (self.bound_pod, self.bound):
            self.write("quota", group, quota(1))

    @staticmethod
    def roots():
        return [ROOT] if V2 else [ROOT / name for name in CONTROLLERS]

    @staticmethod
    def make(root, group):
        folder = root
        for part in Path(group).parts:
            above, folder = folder, folder / part
            if V2:
                (above / "cgroup.subtree_control").write_text("+cpuset +cpu +memory +io +pids")
            folder.mkdir(exist_ok=True)
            for name in ("cpuset.mems", "cpuset.cpus"):
                if root.name == "cpuset" and not (folder / name).read_text().strip():
                    (folder / name).write_text((above / name).read_text())

    def path(self, what, group):
        hierarchy, first, second = FILES[what]
        return ROOT / group / second if V2 else ROOT / hierarchy / group / first

    def write(self, what, group, text):
        self.path(what, group).write_text(text)

    def snapshot(self):
        """Everything that an agent could have written in these cgroups."""
        groups = (self.best_effort, self.lent_pod, self.lent, self.bound_pod, self.bound)
        return {(what, group): self.read(what, group) for what in FILES for group in groups}

    def read(self, what, group):
        """What stands in a file; no cpus of its own stand for those of the cgroup above."""
        path = self.path(what, group)
        text = path.read_text().strip()
        if what == "cpus" and not text:
            # A cgroup with processes takes no empty list, so that undo writes what it stands for.
            return path.with_name("cpuset.cpus.effective").read_text().strip()
        return text

    def remove(self):
        for sleeper in self.sleepers:
            sleeper.kill()
            sleeper.wait()
        for root in self.roots():
            for folder, _, _ in os.walk(root / self.base, topdown=False):
                with contextlib.suppress(FileNotFoundError):
                    Path(folder).rmdir()


def quota(cores):
    return f"{cores * 100_000} 100000" if V2 else str(cores * 100_000)


def pod(name, kind, quality, asked, annotations=None):
    resources_ = {"requests": asked, "limits": asked}
    own = {key: text for key, text in asked.items() if "/" not in key}
    status = {"name": "app", "containerID": f"containerd://c-{name}"}
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "labels": {"koordinator.sh/qosClass": quality},
            "annotations": annotations or {},
        },
        "spec": {"containers": [{"name": "app", "resources": resources_}]},
        "status": {
            "phase": "Running",
            "qosClass": kind,
            "containerStatuses": [{**status, "resources": {"requests": own, "limits": own}}],
        },
    }


def lent():
    asked = {"kubernetes.io/batch-cpu": "500", "kubernetes.io/batch-memory": str(64 * MIB)}
    return pod("lent", "BestEffort", "BE", asked)


def bound(cores):
    asked = {"cpu": str(cores), "memory": "64Mi"}
    last = max(os.sched_getaffinity(0))
    status = {"scheduling.koordinator.sh/resource-status": json.dumps({"cpuset": str(last)})}
    return pod("bound", "Guaranteed", "LSR", asked, status)


class World:
    """An API server that may be away, a kubelet that then believes nobody, and an agent."""

    def __init__(self, tree, plane, trouble, agent, pods, folder):
        self.folder = folder
        self.tree, self.plane, self.trouble = tree, plane, trouble
        self.agent, self.pods, self.kubelet_status = agent, pods, 200
        self.seen, self.readings = {}, 0

    async def sample(self):
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            for key, text in self.tree.snapshot().items():
                self.seen.setdefault(key, set()).add(text)
            self.readings += 1
            due += 0.1
            await asyncio.sleep(max(0.0, due - loop.time()))

    async def until(self, condition, why):
        async def check():
            assert self.agent.alive, self.agent.log[-4000:]
            return condition()

        try:
            await raw.eventually(check, PATIENCE)
        except TimeoutError:
            shown = json.dumps({str(k): v for k, v in self.tree.snapshot().items()}, indent=1)
            raise AssertionError(f"{why}\n{shown}\n{self.agent.log[-6000:]}") from None

    def holds(self):
        """Whether limits, cpus and the class are as the agent wants them."""
        now = self.tree.snapshot()
        memory = {now["memory", group] for group in (self.tree.lent, self.tree.lent_pod)}
        alone = str(max(os.sched_getaffinity(0)))
        unlimited = "max 100000" if V2 else "-1"
        return (
            memory == {str(64 * MIB)}
            and now["cpus", self.tree.bound] == alone
            and now["quota", self.tree.bound] == unlimited
            and now["quota", self.tree.best_effort].split()[0] == "2000"
        )

    def marked(self):
        """Whether the agent has left a mark that it looks after the node."""
        return (self.folder / heartbeat.NAME).exists()

    def kept(self, role, group):
        """What the journal says has to be put back one day."""
        found = journal.Journal(self.folder, boot.boot_id("/proc"))
        found.load()
        return found.get(role, group).previous

    def outage(self):
        self.trouble.add(faults.Rule(faults.Refuse(503)))
        self.kubelet_status = 401

    def over(self):
        self.trouble.clear()
        self.kubelet_status = 200


def settings(folder, base, port):
    modes = dict.fromkeys(("batch-resources", "cpuset", "cpu-suppress"), "enforce")
    made = {
        "nodeName": NODE,
        "host": {"state": str(folder / "state"), "kubeletRoot": base},
        "kubelet": {
            "url": f"http://127.0.0.1:{port}",
            "intervalSeconds": 1,
            "fallBack": False,
            "configuration": False,
        },
        "strategies": {"mode": "off", "modes": modes},
    }
    path = folder / "agent.yaml"
    path.write_text(json.dumps(made))
    return f"--config={path}"


@pytest.fixture
async def world(tmp_path):
    if not V2 and not all((ROOT / name / "cgroup.procs").exists() for name in CONTROLLERS):
        pytest.skip("this machine has neither cgroup v2 nor v1 with cpu, cpuset and memory")
    tree = Tree(f"koord-restart-{os.getpid()}")
    clock, pods, holder = clocks.SystemClock(), [lent(), bound(1)], {}

    async def list_pods(_request):
        return web.json_response({"items": pods}, status=holder["world"].kubelet_status)

    pages = web.Application()
    pages.router.add_get("/pods", list_pods)
    runner = web.AppRunner(pages)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    trouble = faults.Faults(clock)
    try:
        tree.create()
        async with apiserver.running(clock=clock, options=apiserver.Options(faults=trouble)) as api:
            install(api)
            flags = settings(tmp_path, tree.base, runner.addresses[0][1])
            agent = processes.Process(
                tmp_path, "agent", "agent", api.url, api.ca, api.token, flags, serves=False
            )
            world = holder["world"] = World(tree, api, trouble, agent, pods, tmp_path / "state")
            try:
                yield world
            finally:
                await agent.kill()
    finally:
        tree.remove()
        await runner.cleanup()
    assert not any((root / tree.base).exists() for root in tree.roots())


def install(api):
    for definition in crds.definitions():
        if definition["spec"]["names"]["kind"] in {"NodeMetric", "NodeSLO"}:
            api.objects.create(resources.CRDS, definition)
    cores = str(os.cpu_count())
    amounts = {"cpu": cores, "memory": "4Gi"}
    for resource, body in (
        (resources.NODES, {"status": {"capacity": amounts, "allocatable": amounts}}),
        (resources.NODE_METRICS, {"spec": {}}),
        (resources.NODE_SLOS, {"spec": SLO}),
    ):
        meta = {"apiVersion": resource.api_version, "kind": resource.kind}
        api.objects.create(resource, {**meta, "metadata": {"name": NODE}, **body})


async def test_killed_in_an_outage_resized_and_uninstalled(world):
    tree, agent = world.tree, world.agent
    before = tree.snapshot()
    await agent.start()
    await world.until(world.holds, "it never held what it should")
    # One that is killed in its first look has left no mark for the next.
    await world.until(world.marked, "it never was through with its first look")
    held = tree.snapshot()
    async with supervise.Supervisor("samples") as samples:
        samples.start("sample", world.sample)
        world.outage()
        await agent.kill()
        await asyncio.sleep(2)
        await agent.start()
        begun = asyncio.get_running_loop().time()

        async def looked():
            return await agent.figure("koord_agent_journal_entries") > 0

        await raw.eventually(looked, PATIENCE)
        left = OUTAGE_SECONDS - (asyncio.get_running_loop().time() - begun)
        await asyncio.sleep(max(0.0, left))
    changed = {key: texts for key, texts in world.seen.items() if texts != {held[key]}}
    gap = await agent.figure("koord_agent_unattended_seconds")
    print(f"{world.readings} readings of {len(world.seen)} files; nobody was here for {gap:.1f} s")
    assert changed == {}
    assert world.readings >= 20
    assert gap >= 2
    # What others change is restored, though nobody answers, and is not what is put back.
    tree.write("memory", tree.lent, str(128 * MIB))
    await world.until(world.holds, "a foreign value stood in the outage")
    memory = before["memory", tree.lent]
    await world.until(
        lambda: world.kept(edits.Role.MEMORY_LIMIT, tree.lent) in ("-1", "max", memory),
        "the journal keeps what somebody unknown wrote",
    )
    world.over()
    # An in-place resize: the kubelet writes, and tells later.
    for group in (tree.bound_pod, tree.bound):
        tree.write("quota", group, quota(2))
    world.pods[1] = bound(2)
    await world.until(world.holds, "a resized quota took over")
    await world.until(
        lambda: world.kept(edits.Role.CPU_QUOTA, tree.bound) == quota(2),
        "the journal never followed the resize",
    )
    await world.until(world.holds, "a resized quota took over")
    world.trouble.add(faults.Rule(faults.Refuse(404), resource="daemonsets.apps"))
    await agent.stop()
    after = tree.snapshot()
    differ = {key: (text, after[key]) for key, text in before.items() if after[key] != text}
    now = (quota(1), quota(2))
    assert differ == {("quota", tree.bound_pod): now, ("quota", tree.bound): now}
    assert "there is no DaemonSet" in agent.log
