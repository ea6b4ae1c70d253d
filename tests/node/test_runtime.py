"""A real containerd asks the agent's side of NRI; no kubelet and no control plane.

The first process of each container reads its own cgroup and its environment, so that nothing that
is set a moment later can be seen. `KOORD_NODE_BIRTHS` says how many containers come and go.
"""

import asyncio
import os
import time

import msgspec
import pytest
import pytest_asyncio

from agent.apply import deliveries, enforcer
from agent.hooks import batch_resources
from agent.hooks.cpu import cpuset
from agent.hooks.devices import gpu_env
from agent.hooks.lifecycle import stages
from agent.model import cgroup_layout
from agent.model.cpus import shared_pools
from agent.nri import link, session
from agent.serve import container_events, snapshots
from api import names
from api.kubernetes import core
from tests.planes import containerd_alone

BIRTHS = int(os.environ.get("KOORD_NODE_BIRTHS", "0")) or 60
MOST_SECONDS = 0.05
"""What an answer may delay a container by; it shares its interpreter with the client here."""
BATCH = {"kubernetes.io/batch-cpu": "500", "kubernetes.io/batch-memory": "64Mi"}
WANTED = ("512", "50000", str(64 << 20))
UNLIMITED = str(0x7FFFFFFFFFFFF000)
REQUESTED = ("2", "-1", UNLIMITED)
GPU = {"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100"}
GIVEN = (
    '{"gpu":[{"minor":3,"resources":{"koordinator.sh/gpu-core":"100",'
    '"koordinator.sh/gpu-memory-ratio":"100"}}]}'
)
POISON = {
    names.ANNOTATION_DEVICE_ALLOCATED: "[" * 60_000,
    names.ANNOTATION_RESOURCE_STATUS: '{"cpuset":"0-999999999"}',
    "node.koordinator.sh/extended-resource-spec": '{"containers":[]}',
    "koordinator.sh/oom-score-adj": "9" * 60_000,
}


class Agent:
    """What the agent answers by: pods that its latest list has named, and rules of a tick."""

    def __init__(self, runtime):
        self.runtime = runtime
        self.layout = cgroup_layout.Layout(
            "/sys/fs/cgroup", 1, "cgroupfs", base=runtime.groups.name
        )
        pools = shared_pools.Pools((shared_pools.Pool(0, 0, frozenset({0})),))
        rules = stages.freeze(
            [
                cpuset.HOOK.bind(cpuset.Rule(cpuset.Known(pools))),
                batch_resources.HOOK.bind(batch_resources.Rule()),
                gpu_env.HOOK.bind(None),
            ]
        )
        self.state = runtime.folder / "state"
        self.state.mkdir()
        self.kept = deliveries.Deliveries(self.state, "boot")
        self.events = container_events.Events(time.monotonic, self.kept.add)
        self.empty = container_events.Snapshot(rules, cgroup_version=1, layout=self.layout)
        self.events.snapshot = self.empty
        self.seconds = []
        self.link = None

    def knows(self, *pods):
        self.events.snapshot = snapshots.with_pods(self.empty, pods)

    async def connect(self):
        self.link = link.Link(
            str(self.runtime.nri),
            lambda: session.Session("koord", "00", container_events.EVENTS, self.events),
        )
        self.link.answered = self.answered
        self.link.start()
        await self.connected(1)

    async def connected(self, times):
        async with asyncio.timeout(containerd_alone.PATIENCE):
            # Another thread connects.
            while self.link.connections < times:  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    def answered(self, method, seconds):
        if method == "CreateContainer":
            self.seconds.append(seconds)

    def close(self):
        if self.link is not None:
            self.link.close()
        self.kept.close()


def pod(uid, kubernetes_qos, quality, asked=None, annotations=None):
    raw = {
        "metadata": {
            "name": f"name-{uid}",
            "namespace": "default",
            "uid": uid,
            "labels": {names.LABEL_QOS: quality},
            "annotations": annotations or {},
        },
        "spec": {
            "nodeName": "n",
            "containers": [
                {"name": name, "resources": {"requests": asked or {}, "limits": asked or {}}}
                for name in ("app", *(f"c{number}" for number in range(BIRTHS)))
            ],
        },
        "status": {"phase": "Pending", "qosClass": kubernetes_qos},
    }
    return msgspec.convert(raw, core.Pod)


BE = pod("batch", "BestEffort", "BE", BATCH)
LS = pod("online", "Burstable", "LS", {"cpu": "1"})
WITH_GPU = pod("gpu", "Burstable", "LS", GPU, {names.ANNOTATION_DEVICE_ALLOCATED: GIVEN})


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def runtime(programs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("containerd") / "c"
    async with containerd_alone.running(folder, programs) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def agent(runtime):
    made = Agent(runtime)
    made.knows(BE, LS)
    await made.connect()
    yield made
    made.close()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def batch(runtime, agent):
    return await runtime.run_pod("batch", "BestEffort")


def limits(seen):
    return seen.shares, seen.quota, seen.memory


async def test_a_batch_container_starts_within_its_limits(runtime, agent, batch):
    assert limits(await runtime.born(batch, "app")) == WANTED


async def test_an_online_container_starts_on_the_shared_cpus(runtime, agent):
    online = await runtime.run_pod("online", "Burstable")
    assert (await runtime.born(online, "app")).cpus == "0"


async def test_a_container_starts_with_the_gpu_that_its_pod_was_given(runtime, agent):
    agent.knows(BE, LS, pod_with_one_container(WITH_GPU))
    found = await runtime.born(await runtime.run_pod("gpu", "Burstable"), "app")
    assert "NVIDIA_VISIBLE_DEVICES=3" in found.environment


def pod_with_one_container(found):
    spec = msgspec.structs.replace(found.spec, containers=found.spec.containers[:1])
    return msgspec.structs.replace(found, spec=spec)


@pytest.mark.parametrize("is_listed", [True, False])
async def test_a_poisoned_pod_starts_and_changes_nothing_for_others(
    runtime, agent, batch, is_listed
):
    uid = f"poison-{is_listed}".lower()
    poisoned = pod(uid, "BestEffort", "BE", {}, POISON)
    agent.knows(BE, LS, *([poisoned] if is_listed else []))
    labels = {names.LABEL_QOS: "BE"}
    sandbox = await runtime.run_pod(uid, "BestEffort", labels, POISON)
    assert limits(await runtime.born(sandbox, "app")) == REQUESTED
    assert limits(await runtime.born(batch, f"after-{uid}")) == REQUESTED
    assert limits(await runtime.born(batch, "app")) == WANTED
    assert agent.link.current.failures == 0


async def test_no_container_fails_while_the_agent_is_gone_and_the_runtime_restarts(
    runtime, agent, batch
):
    agent.seconds.clear()
    third = BIRTHS // 3
    waves = [range(third), range(third, 2 * third), range(2 * third, BIRTHS)]
    found = []
    for number, wave in enumerate(waves):
        if number == 1:
            agent.link.close()
        if number == 2:
            await agent.connect()
            await runtime.kill()
            await runtime.start()
            await agent.connected(2)
        connections = agent.link.connections
        found.append([limits(await runtime.born(batch, f"c{one}")) for one in wave])
        # The runtime has closed no connection while it asked.
        assert agent.link.connections == connections
    assert [set(wave) for wave in found] == [{WANTED}, {REQUESTED}, {WANTED}]
    times = sorted(agent.seconds)
    print(
        f"{sum(map(len, found))} containers, {len(times)} answers, median "
        f"{times[len(times) // 2] * 1e3:.2f} ms, p99 {times[int(len(times) * 0.99)] * 1e3:.2f} ms"
    )
    assert times[int(len(times) * 0.99)] <= MOST_SECONDS


async def test_what_was_requested_is_put_back(runtime, agent, batch):
    one = await runtime.start_container(batch, "app", ["sleep", "100000"])
    folder = runtime.group("BestEffort", "batch")
    files = [
        runtime.groups.folders[0].parent.parent / place
        for place in (
            f"cpu/{folder}/{one.container_id}/cpu.shares",
            f"cpu/{folder}/{one.container_id}/cpu.cfs_quota_us",
            f"memory/{folder}/{one.container_id}/memory.limit_in_bytes",
        )
    ]
    assert tuple(file.read_text().strip() for file in files) == WANTED
    # The agent was killed before a tick: the next one finds what was delivered.
    following = enforcer.Enforcer(agent.state, writing=True)
    assert following.start(agent.layout, "boot").problem == ""
    assert following.entries >= len(files)
    outcome = following.put_back("the agent is uninstalled")
    assert outcome.failures == 0, outcome.records
    following.close()
    assert tuple(file.read_text().strip() for file in files) == REQUESTED
