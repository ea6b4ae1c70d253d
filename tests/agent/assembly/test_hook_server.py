"""An agent beside a CRI proxy that asks it: real sockets, a generated host."""

import contextlib
import json

import msgspec
import pydantic
import pytest
from grpclib import GRPCError, client

from agent import settings as agent_settings
from agent.apply import journal
from api.koordinator import runtime_hooks
from tests.agent import test_app
from tests.agent.assembly import test_nri

STAGE = runtime_hooks.Stage
world = test_app.world
enforced = test_nri.enforced


class Proxy:
    """Asks as a CRI proxy does."""

    def __init__(self, path):
        self.channel = client.Channel(path=str(path))

    async def ask(self, stage, **fields):
        request, response = (
            runtime_hooks.CLASSES[kind] for kind in (stage.request, stage.response)
        )
        method = client.UnaryUnaryMethod(self.channel, stage.path, request, response)
        return await method(request(**fields), timeout=60)

    async def container(
        self, stage, uid="batch", identity="", labels=None, annotations=None, **limits
    ):
        return await self.ask(
            stage,
            pod_labels=labels or {},
            pod_annotations=annotations or {},
            pod_meta={"name": uid, "uid": uid, "namespace": "default"},
            container_meta={"name": "app", "id": identity},
            pod_cgroup_parent=f"kubepods-besteffort-pod{uid}.slice",
            container_resources={"cpu_quota": test_nri.REQUESTED, "cpu_period": 100_000, **limits},
            container_envs={"OWN": "1"},
        )


@contextlib.asynccontextmanager
async def serving(world, **changed):
    hooks = {
        "enable": True,
        "socket": str(world.folder / "hooks.sock"),
        "folder": str(world.folder / "hookserver.d"),
        **changed,
    }
    chosen = {**test_nri.ENFORCING, "nri": {"enable": False}, "hook_server": hooks}
    chosen["feature_gates"] = {"GPUEnvInject": True}
    proxy = Proxy(world.folder / "hooks.sock")
    async with world.agent(**chosen) as agent:
        file = world.folder / "hookserver.d/koordlet.json"
        await world.until_ticking(lambda: file.exists() and agent.ticks.picture)
        try:
            yield agent, proxy, json.loads(file.read_text())
        finally:
            proxy.channel.close()


async def test_a_container_gets_its_limits_and_is_given_back_as_requested(world, enforced, new_pod):
    world.add_pod(test_nri.batch(new_pod), 100)
    _, file = test_nri.cpu_max(world)
    async with serving(world) as (agent, proxy, registered):
        assert registered == {
            "remote-endpoint": "/var/run/koordlet/koordlet.sock",
            "failure-policy": "Ignore",
            "runtime-hooks": [
                *("PreRunPodSandbox", "PreCreateContainer", "PreStartContainer"),
                "PreUpdateContainerResources",
            ],
        }
        await world.until_ticking(lambda: agent.ticks.picture.pods)
        found = await proxy.container(STAGE.PRE_CREATE_CONTAINER)
        limits = found.container_resources
        assert (limits.cpu_quota, limits.cpu_shares) == (150_000, 1536)
        assert limits.memory_limit_in_bytes == 1 << 30
        assert dict(found.container_envs) == {"OWN": "1"}
        echoed = await proxy.container(STAGE.PRE_START_CONTAINER, identity="c-batch")
        assert echoed.container_resources.cpu_quota == test_nri.REQUESTED
        file.write_text("150000 100000\n")
        await world.seconds(2)
        assert agent.health.warnings().get("nri") is None
        counted = {"event": "create", "result": "adjusted"}
        assert test_nri.figure(agent, "koord_agent_nri_answers_total", **counted) == 1
        held = (world.folder / "state" / journal.NAME).read_text()
        assert f'"cpu-quota","{file.parent.relative_to(world.tree.cgroup)}"' in held
        updated = await proxy.container(
            STAGE.PRE_UPDATE_CONTAINER_RESOURCES, identity="c-batch", cpu_shares=2
        )
        assert updated.container_resources.cpu_shares == 1536
    assert file.read_text().split()[0] == str(test_nri.REQUESTED)


async def test_a_pod_is_echoed_and_its_cgroup_written(world, enforced, new_pod):
    world.add_pod(test_nri.batch(new_pod), 100)
    file, _ = test_nri.cpu_max(world)
    async with serving(world) as (agent, proxy, _):
        await world.until_ticking(lambda: agent.ticks.picture.pods)
        found = await proxy.ask(
            STAGE.PRE_RUN_POD_SANDBOX,
            pod_meta={"name": "batch", "uid": "batch"},
            labels={"a": "b"},
            cgroup_parent="/x",
        )
        assert (dict(found.labels), found.cgroup_parent) == ({"a": "b"}, "/x")
        await world.until_ticking(lambda: file.read_text().split()[0] == "150000")


async def test_a_container_starts_once_the_cgroup_of_its_pod_is_written(world, enforced, new_pod):
    """Where the pod had its sandbox before there was an agent; the container has no cgroup yet."""
    async with serving(world) as (agent, proxy, _):
        await world.seconds(3)
        world.add_pod(test_nri.batch(new_pod), 0)
        file, of_container = test_nri.cpu_max(world)
        spec = '{"containers":{"app":{"limits":{"kubernetes.io/batch-cpu":"1500"}}}}'
        await proxy.container(
            STAGE.PRE_START_CONTAINER,
            identity="c-batch",
            labels={"koordinator.sh/qosClass": "BE"},
            annotations={"node.koordinator.sh/extended-resource-spec": spec},
        )
        assert file.read_text().split()[0] == "150000"
        assert of_container.read_text().split()[0] == "max"
        counted = {"event": "start", "result": "adjusted"}
        assert test_nri.figure(agent, "koord_agent_nri_answers_total", **counted) == 1


ALLOCATED = "scheduling.koordinator.sh/device-allocated"


def with_devices(pod, text):
    metadata = msgspec.structs.replace(pod.metadata, annotations={ALLOCATED: text})
    return msgspec.structs.replace(pod, metadata=metadata)


async def test_devices_reach_a_container_as_variables(world, enforced, new_pod):
    whole = {"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100"}
    pod = new_pod("batch", "BestEffort")
    (container,) = pod.spec.containers
    asked = msgspec.structs.replace(container.resources, requests=whole, limits=whole)
    container = msgspec.structs.replace(container, resources=asked)
    spec = msgspec.structs.replace(pod.spec, containers=(container,), node_name="node-1")
    pod = msgspec.structs.replace(pod, spec=spec)
    allocated = json.dumps({"gpu": [{"minor": 1, "resources": whole}]})
    world.add_pod(with_devices(pod, allocated), 100)
    async with serving(world) as (agent, proxy, _):
        await world.until_ticking(lambda: agent.ticks.picture.pods)
        found = await proxy.container(STAGE.PRE_CREATE_CONTAINER)
        assert dict(found.container_envs) == {"OWN": "1", "NVIDIA_VISIBLE_DEVICES": "1"}


async def test_stages_can_be_left_out_and_a_hook_without_an_answer_can_be_an_error(
    world, enforced, new_pod
):
    world.add_pod(with_devices(test_nri.batch(new_pod), "{"), 100)
    changed = {"plugin_failure_policy": "Fail", "disable_stages": ["PreStartContainer"]}
    async with serving(world, **changed) as (agent, proxy, registered):
        assert "PreStartContainer" not in registered["runtime-hooks"]
        await world.until_ticking(lambda: agent.ticks.picture.pods)
        with pytest.raises(GRPCError, match="the log of the agent says why"):
            await proxy.container(STAGE.PRE_CREATE_CONTAINER)


def test_one_of_the_two_asks():
    with pytest.raises(pydantic.ValidationError, match=r"needs nri.enable=false"):
        agent_settings.Settings.model_validate({"node_name": "n", "hook_server": {"enable": True}})
