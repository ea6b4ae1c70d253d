"""kubelet, CRI proxy, containerd: pods live as without the proxy, whichever of them is killed.

The kubelet has no API server here: its pods come from files, and it answers on its own port.
"""

import asyncio
import collections
import contextlib
import functools
import json
import os
import pathlib
import random
import re
import sys

import pytest
import pytest_asyncio

from api import names
from api.koordinator import runtime_hooks
from runtimeproxy.cri import messages
from tests import protobuf_messages as wire
from tests.planes import (
    agent_beside,
    kubelet_streams,
    node,
    node_cluster,
    node_groups,
    raw,
)
from tests.runtimeproxy import stand_in, test_passing

NODE = "proxied-1"
SOAK = bool(os.environ.get("KOORD_SOAK"))
PATIENCE = 120.0
STAGE = runtime_hooks.Stage
CALLS = 2000
MESSAGES = int(os.environ.get("KOORD_CRI_MESSAGES", "0")) or (10_000 if SOAK else 300)
# It would look for registries, of which there are none.
PATHS = tuple(path for path in test_passing.PATHS if not path.endswith("/PullImage"))
IDENTITY = re.compile(r"[0-9a-f]{64}")
CALL_SECONDS = 0.001
REGISTERED_SECONDS = 2.0
QUOTA = "/sys/fs/cgroup/cpu/cpu.cfs_quota_us"
# The processors count as twice as fast as others.
WANTED, REQUESTED = "born 25000", "born 50000"
LISTS = "output=1&command=ls"
SERVES = "while :; do echo pong | nc -l -p 8080; done & while :; do echo tick; sleep 0.2; done"


# A filter by state: what has exited stays until the kubelet collects it, once a minute.
RUNNING = wire.field(1, wire.field(2, wire.field(1, 1)))


class World:
    """A node whose kubelet talks to the proxy, and a hook server that leaves a mark."""

    def __init__(self, real_node, hooks):
        self.node, self.hooks = real_node, hooks

    def put(self, name, **spec):
        """Let a pod exist."""
        made = node_cluster.pod(name, **spec)
        made |= {"apiVersion": "v1", "kind": "Pod"}
        made["metadata"]["namespace"] = "default"
        (self.node.workdir / "static" / f"{name}.json").write_text(json.dumps(made))

    async def emptied(self):
        """Let no pod exist any longer, and wait until none of them runs."""
        for file in (self.node.workdir / "static").glob("*.json"):
            file.unlink()

        async def gone():
            return not await self.containers()

        await raw.eventually(gone, PATIENCE)

    def said(self, name, container="main"):
        """What a container has written, all its lives together."""
        folder = self.node.workdir / "pod-logs"
        files = sorted(folder.glob(f"default_{name}-{NODE}_*/{container}/*.log"))
        lines = "\n".join(file.read_text() for file in files).splitlines()
        return "\n".join(line.split(" ", 3)[-1] for line in lines)

    async def until_says(self, name, words):
        async def says():
            return words in self.said(name)

        await raw.eventually(says, PATIENCE)

    @contextlib.asynccontextmanager
    async def cri(self, *, proxied):
        path = self.node.proxy_socket if proxied else self.node.containerd_socket
        made = stand_in.Kubelet(str(path))
        yield made
        made.close()

    async def containers(self):
        """The containers that run, as containerd says without the proxy."""
        async with self.cri(proxied=False) as cri:
            found, _ = await cri.call(messages.path("ListContainers"), RUNNING)
        return messages.read("ListContainersResponse", found[0]).containers

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
            found = [await test_passing.outcome(cri, path, request) for cri in (proxied, plain)]
            statuses[getattr(found[1][0], "name", "OK")] += 1
            if len({repr(_without_ids(one)) for one in found}) > 1:
                differ[number, path] = found
    print(dict(statuses))
    assert differ == {}
    assert len(statuses) > 2


def _without_ids(found):
    """What a call has come to, without the ids that the runtime has drawn and the order of maps."""
    first, second = found
    if isinstance(second, str):
        return first, IDENTITY.sub("", second)
    return [sorted(one) for one in first], second


async def test_a_call_costs_the_proxy_less_than_a_millisecond_of_processor_time(world):
    """What the proxy adds to the latency of calls is measured by `make bench ARGS=cri-proxy`."""
    async with world.cri(proxied=True) as cri:
        await cri.call(messages.path("Version"), b"")
        before = processor_seconds(world.node.proxy_pid)
        for _ in range(CALLS):
            await cri.call(messages.path("Version"), b"")
        taken = (processor_seconds(world.node.proxy_pid) - before) / CALLS
    print(f"{taken * 1e3:.3f} ms of processor time per call")
    assert 0 < taken < CALL_SECONDS


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
