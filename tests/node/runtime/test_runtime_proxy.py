"""kubelet, CRI proxy, containerd: pods live as without the proxy, whichever of them is killed.

The kubelet has no API server here: its pods come from files, and it answers on its own port.
"""

import asyncio
import collections
import functools
import os
import pathlib
import random
import re
import sys
import time

import pytest
import pytest_asyncio

from api import names
from api.koordinator import runtime_hooks
from runtimeproxy.cri import messages
from tests.planes import raw
from tests.planes.node import node, node_cluster, node_groups
from tests.planes.runtime import agent_beside, kubelet_streams, static_pods
from tests.runtimeproxy import stand_in, test_passing

NODE = "proxied-1"
SOAK = bool(os.environ.get("KOORD_SOAK"))
PATIENCE = static_pods.PATIENCE
STAGE = runtime_hooks.Stage
WINDOWS, CALLS = 8 if SOAK else 4, 250
MESSAGES = int(os.environ.get("KOORD_CRI_MESSAGES", "0")) or (10_000 if SOAK else 300)
# It would look for registries, of which there are none.
PATHS = tuple(path for path in test_passing.PATHS if not path.endswith("/PullImage"))
IDENTITY = re.compile(r"[0-9a-f]{64}")
CALL_SECONDS, ADDED_SECONDS = 0.001, 0.002
REGISTERED_SECONDS = 2.0
QUOTA = "/sys/fs/cgroup/cpu/cpu.cfs_quota_us"
# The processors count as twice as fast as others.
WANTED, REQUESTED = "born 25000", "born 50000"
LISTS = "output=1&command=ls"
SERVES = "while :; do echo pong | nc -l -p 8080; done & while :; do echo tick; sleep 0.2; done"


class World(static_pods.Pods):
    """A node whose kubelet talks to the proxy, and a hook server that leaves a mark."""

    def __init__(self, real_node, hooks):
        super().__init__(real_node)
        self.hooks = hooks

    async def stream(self, path, sent=""):
        """What a stream of the kubelet says, opened from inside the node."""
        url = f"https://127.0.0.1:10250{path}"
        script = (sys.executable, kubelet_streams.__file__)
        status, said = await self.node.command(*script, url, "none", sent)
        assert status == 0, said
        return said


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def world(programs, tmp_path_factory):
    place = tmp_path_factory.mktemp("proxied") / "node"
    await node_groups.remove_stale()
    place.mkdir()
    real_node = node.Node(NODE, place, programs, proxied=True)
    hooks = stand_in.HookServer(place / "hooks.sock")
    try:
        real_node.groups.create()
        await real_node.start_root()
        await real_node.start_containerd()
        await real_node.start_proxy()
        await hooks.start()
        for stage in STAGE:
            hooks.respond(stage)
        hooks.respond(STAGE.PRE_CREATE_CONTAINER, marked)
        hooks.register(place / "hookserver.d")
        await asyncio.sleep(REGISTERED_SECONDS)
        await real_node.start_lone_kubelet()
        yield World(real_node, hooks)
    finally:
        await hooks.kill()
        await real_node.stop()


def marked(asked):
    """Everything as it is but for the shares, and one variable more."""
    limits = asked.container_resources
    return {
        "container_envs": {**dict(asked.container_envs), "HOOKED": asked.pod_meta.name},
        "container_resources": {"oom_score_adj": limits.oom_score_adj, "cpu_shares": 777},
    }


async def test_a_pod_lives_its_whole_life_through_the_proxy(world):
    init = node_cluster.shell("first", container={"command": ["sh", "-c", "echo $HOOKED"]})
    world.put("whole", command=f"echo born $HOOKED; {SERVES}", initContainers=[init])
    # The first instruction of each container already has what the hook server added.
    await world.until_says("whole", f"born whole-{NODE}")
    assert world.said("whole", "first").strip() == f"whole-{NODE}"
    path = f"default/whole-{NODE}"
    assert (await world.stream(f"/exec/{path}/main?{LISTS}")).startswith("bin\n")
    assert "tick" in await world.stream(f"/attach/{path}/main?output=1")
    logs = await world.stream(f"/containerLogs/{path}/main?limitBytes=100")
    assert logs.startswith(f"born whole-{NODE}\n")
    assert await world.stream(f"/portForward/{path}?port=8080", "ping\n") == "pong\n"
    await world.emptied()

    async def told():
        asked = {stage for stage, one in world.hooks.requests if "whole" in one.pod_meta.name}
        return asked >= set(STAGE) - {STAGE.PRE_UPDATE_CONTAINER_RESOURCES}

    await raw.eventually(told, PATIENCE)


async def test_an_update_reaches_the_cgroup_of_a_running_container(world):
    world.put("resized", command="echo up; sleep 100000")
    await world.until_says("resized", "up")
    (container,) = await world.containers()
    world.hooks.respond(
        STAGE.PRE_UPDATE_CONTAINER_RESOURCES,
        lambda asked: {"container_resources": {"cpu_quota": 60_000, "cpu_period": 100_000}},
    )
    world.hooks.register(world.node.workdir / "hookserver.d")
    async with world.cri(proxied=True) as cri:
        await cri.cri(
            *("UpdateContainerResources", "UpdateContainerResourcesRequest"),
            container_id=container.id,
            linux={"cpu_shares": 512},
        )
    (folder,) = world.node.group("cpu").rglob(container.id)
    assert node_groups.figure(folder, "cpu.shares") == 512
    assert node_groups.figure(folder, "cpu.cfs_quota_us") == 60_000
    await world.emptied()


async def test_generated_messages_are_answered_as_containerd_itself_does(world):
    """Status and response of each are those of a call without the proxy."""
    differ, statuses = {}, collections.Counter()
    async with world.cri(proxied=True) as proxied, world.cri(proxied=False) as plain:
        for number in range(MESSAGES):
            drawn = random.Random(number)
            path, request = drawn.choice(PATHS), test_passing.generated(drawn)
            found, expected = await compared(proxied, plain, path, request)
            statuses[getattr(expected[0], "name", "OK")] += 1
            if _without_ids(found) != _without_ids(expected):
                differ[number, path] = found, expected
    print(dict(statuses))
    assert differ == {}
    assert len(statuses) > 2


async def compared(proxied, plain, path, request):
    """What a call comes to with the proxy, and without it before and after alike.

    Pods of other tests may be ending meanwhile: then it is asked again.
    """
    async with asyncio.timeout(PATIENCE):
        while True:
            before, found, after = [
                await test_passing.outcome(cri, path, request) for cri in (plain, proxied, plain)
            ]
            if _without_ids(before) == _without_ids(after):
                return found, before


def _without_ids(found):
    """What a call has come to, without the ids that the runtime has drawn and the order of maps."""
    first, second = found
    if isinstance(second, str):
        return first, IDENTITY.sub("", second)
    return [sorted(one) for one in first], second


async def test_a_call_takes_little_longer_through_the_proxy_and_little_of_a_processor(world):
    """Calls go by turns with and without it, so that what else happens strikes both."""
    version, before = messages.path("Version"), processor_seconds(world.node.proxy_pid)
    added = []
    async with world.cri(proxied=True) as proxied, world.cri(proxied=False) as plain:
        for _ in range(WINDOWS):
            waits = [], []
            for _ in range(CALLS):
                for cri, seconds in zip((proxied, plain), waits, strict=True):
                    begin = time.perf_counter()
                    await cri.call(version, b"")
                    seconds.append(time.perf_counter() - begin)
            (median, p99), (without, p99_without) = map(quantiles, waits)
            added.append((p99 - p99_without, median - without))
    taken = (processor_seconds(world.node.proxy_pid) - before) / (WINDOWS * CALLS)
    longer = ", ".join(f"{p99 * 1e3:.2f} ms (p99), {p50 * 1e3:.2f} ms" for p99, p50 in added)
    print(f"longer by {longer}; {taken * 1e3:.3f} ms of processor time per call")
    assert 0 < taken < CALL_SECONDS
    # What else happens on the machine only adds to it.
    assert min(added)[0] < ADDED_SECONDS


def quantiles(seconds):
    found = sorted(seconds)
    return found[len(found) // 2], found[int(len(found) * 0.99)]


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def hooked(world):
    """The same, with the agent as the hook server in place of the stand-in."""
    await world.hooks.kill()
    async with agent_beside.inside(world.node):
        await agent_beside.start_inside(world.node)
        await asyncio.sleep(REGISTERED_SECONDS)
        yield world


def limited(world, name):
    """Let an online pod exist whose first instruction says what CFS quota it has."""
    asked = {"cpu": "500m", "memory": "16Mi"}
    world.put(
        name,
        command=f"echo born $(cat {QUOTA}); sleep 100000",
        labels={names.LABEL_QOS: "LS"},
        resources={"requests": {"cpu": "100m"}, "limits": asked},
    )


async def born(world, name):
    """What the first instruction of a pod has read."""
    await world.until_says(name, "born")
    return world.said(name).strip()


@pytest.mark.parametrize("victim", ["proxy", "agent", "containerd"])
async def test_whichever_is_killed_pods_start_and_others_run_on(hooked, victim):
    """Pods with limits are created all the time: before a kill, during it and after it."""
    stays = f"stays-{victim}"
    limited(hooked, stays)
    assert await born(hooked, stays) == WANTED
    before = {one.id for one in await hooked.containers()}
    made = [f"{victim}-{number}" for number in range(6)]
    for number, name in enumerate(made):
        limited(hooked, name)
        if number == 1:
            await hooked.node.kill(victim)
        if number == 3:
            await asyncio.sleep(REGISTERED_SECONDS)
            await start(hooked, victim)
    seen = [await born(hooked, name) for name in made]
    # Whoever is asked while the agent is gone goes on without it.
    assert set(seen) <= ({WANTED, REQUESTED} if victim == "agent" else {WANTED})
    after = {one.id for one in await hooked.containers()}
    assert before <= after
    await raw.eventually(functools.partial(halved, hooked, after), PATIENCE)
    said = await hooked.stream(f"/exec/default/{stays}-{NODE}/main?{LISTS}")
    assert said.startswith("bin\n")
    await hooked.emptied()


async def start(world, victim):
    if victim == "agent":
        await agent_beside.start_inside(world.node)
    elif victim == "proxy":
        await world.node.start_proxy()
    else:
        await world.node.run_containerd()


async def halved(world, identities):
    """Whether containers have the quotas of a faster node by now."""
    found = {one.name: one for one in world.node.group("cpu").rglob("*") if one.name in identities}
    quotas = [node_groups.figure(found[one], "cpu.cfs_quota_us") for one in identities]
    return quotas == [25_000] * len(identities)
