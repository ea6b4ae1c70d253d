"""Hook servers change what the runtime gets, or keep it from getting anything."""

import asyncio

import pytest
from grpclib import GRPCError, const

from api.koordinator import runtime_hooks
from runtimeproxy.cri import messages
from tests import patience
from tests import protobuf_messages as wire

STAGE = runtime_hooks.Stage
_LATER = wire.field(500, b"of a later release")


def sent(world, name):
    """The latest request of a method that the runtime got."""
    kind = {"StartContainer": "ContainerRequest"}.get(name, f"{name}Request")
    return messages.read(kind, world.runtime.asked(name)[-1])


async def test_a_pod_gets_what_the_hook_server_adds(world):
    world.hooks.respond(
        STAGE.PRE_RUN_POD_SANDBOX,
        lambda asked: {
            "labels": {"added": "yes", "kept": "hook"},
            "annotations": {"note": asked.pod_meta.name},
            "cgroup_parent": "/elsewhere",
        },
    )
    world.hooks.register(world.registered)
    async with world.proxy():
        await world.kubelet().run_pod(labels={"kept": "kubelet", "own": "1"})
    config = sent(world, "RunPodSandbox").config
    assert dict(config.labels) == {"added": "yes", "kept": "hook", "own": "1"}
    assert dict(config.annotations) == {"note": "pod-u1"}
    assert config.linux.cgroup_parent == "/elsewhere"
    _, asked = world.hooks.requests[0]
    assert (asked.pod_meta.uid, asked.cgroup_parent) == ("u1", "/kubepods/podu1")


async def test_a_container_gets_resources_and_variables_in_their_order(world):
    def wanted(asked):
        limits = {"cpu_shares": 512, "cpuset_cpus": "0-3", "unified": {"cpu.max.burst": "9"}}
        return {
            "container_resources": {
                **limits,
                "oom_score_adj": asked.container_resources.oom_score_adj,
            },
            "container_envs": {**dict(asked.container_envs), "B": "2+", "NEW": "n"},
            "container_annotations": {"by": "hook"},
        }

    world.hooks.respond(STAGE.PRE_CREATE_CONTAINER, wanted)
    world.hooks.register(world.registered)
    async with world.proxy():
        kubelet = world.kubelet()
        pod = await kubelet.run_pod(annotations={"of": "pod"})
        await kubelet.create(pod, envs=(("C", "3"), ("B", "2"), ("A", "1")))
    config = sent(world, "CreateContainer").config
    limits = config.linux.resources
    assert (limits.cpu_shares, limits.oom_score_adj, limits.cpuset_cpus) == (512, 900, "0-3")
    assert dict(limits.unified) == {"cpu.max.burst": "9"}
    assert [(one.key, one.value) for one in config.envs] == [
        ("C", "3"),
        ("B", "2+"),
        ("A", "1"),
        ("NEW", "n"),
    ]
    assert dict(config.annotations) == {"by": "hook"}
    _, asked = world.hooks.requests[-1]
    assert (dict(asked.pod_annotations), asked.pod_cgroup_parent) == (
        {"of": "pod"},
        "/kubepods/podu1",
    )
    assert (asked.container_meta.name, asked.container_meta.id) == ("main", "")


async def test_fields_of_later_releases_stay_where_a_request_is_changed(world):
    world.hooks.respond(STAGE.PRE_RUN_POD_SANDBOX, lambda _: {"annotations": {"by": "hook"}})
    world.hooks.register(world.registered)
    linux = wire.field(1, b"/kubepods") + _LATER
    config = wire.field(1, wire.field(1, b"pod") + _LATER) + wire.field(8, linux) + _LATER
    async with world.proxy():
        await world.kubelet().call(messages.path("RunPodSandbox"), wire.field(1, config) + _LATER)
    got = world.runtime.asked("RunPodSandbox")[-1]
    assert got.count(_LATER) == 4
    assert dict(messages.read("RunPodSandboxRequest", got).config.annotations) == {"by": "hook"}


async def test_an_update_carries_what_the_hook_server_changes_of_all_that_the_container_has(world):
    """The server sees the shares of the creation; of them only a change reaches the runtime."""

    def wanted(asked):
        echoed = {"cpu_shares": asked.container_resources.cpu_shares, "oom_score_adj": 900}
        return {"container_resources": {**echoed, "cpuset_cpus": "4-5", "cpu_quota": 150_000}}

    world.hooks.respond(STAGE.PRE_UPDATE_CONTAINER_RESOURCES, wanted)
    world.hooks.register(world.registered)
    async with world.proxy():
        kubelet = world.kubelet()
        container = await kubelet.create(await kubelet.run_pod(), resources={"cpu_shares": 700})
        await kubelet.cri(
            *("UpdateContainerResources", "UpdateContainerResourcesRequest"),
            container_id=container,
            linux={"cpuset_cpus": "0-7"},
        )
    got = sent(world, "UpdateContainerResources").linux
    assert (got.cpuset_cpus, got.cpu_quota, got.HasField("cpu_shares")) == ("4-5", 150_000, False)
    assert world.hooks.requests[-1][1].container_resources.cpu_shares == 700


async def test_updates_that_overlap_are_both_remembered(world):
    """As those of the kubelet's cpu manager and of a resize, which know nothing of each other."""
    world.hooks.respond(STAGE.PRE_UPDATE_CONTAINER_RESOURCES)
    world.hooks.register(world.registered)
    both, name = asyncio.Event(), "UpdateContainerResources"

    async def answered(_request):
        if len(world.runtime.asked(name)) == 2:
            both.set()
        await both.wait()
        return b""

    world.runtime.answers[messages.path(name)] = answered
    async with world.proxy():
        kubelet = world.kubelet()
        container = await kubelet.create(await kubelet.run_pod())

        async def update(**linux):
            await kubelet.cri(name, f"{name}Request", container_id=container, linux=linux)

        await asyncio.gather(update(cpu_quota=1000), update(cpuset_cpus="1"))
        await update(memory_limit_in_bytes=1 << 20)
    shown = world.hooks.requests[-1][1].container_resources
    assert (shown.cpu_quota, shown.cpuset_cpus) == (1000, "1")


async def test_hooks_after_a_call_run_once_it_succeeded(world):
    for stage in (STAGE.PRE_START_CONTAINER, STAGE.POST_START_CONTAINER, STAGE.POST_STOP_CONTAINER):
        world.hooks.respond(stage)
    world.hooks.register(world.registered)
    async with world.proxy() as running:
        kubelet = world.kubelet()
        container = await kubelet.create(await kubelet.run_pod())
        world.runtime.answers[messages.path("StopContainer")] = GRPCError(
            const.Status.INTERNAL, "no"
        )
        with pytest.raises(GRPCError, match="no"):
            await kubelet.stop(container)
        world.runtime.answers[messages.path("StopContainer")] = b""
        for call in (kubelet.start, kubelet.stop, kubelet.stop):
            await call(container)
        await until(world, lambda: len(world.hooks.requests) == 3)
        assert not running.proxy._interceptor.store.containers
    assert [stage for stage, _ in world.hooks.requests] == [
        STAGE.PRE_START_CONTAINER,
        STAGE.POST_START_CONTAINER,
        STAGE.POST_STOP_CONTAINER,
    ]
    assert {asked.container_meta.id for _, asked in world.hooks.requests} == {container}


async def until(world, condition):
    return await patience.until(condition, lambda: world.clock.advance(0.1))


async def test_pods_with_the_label_are_never_asked_about(world):
    world.hooks.respond(STAGE.PRE_RUN_POD_SANDBOX, lambda _: {"annotations": {"by": "hook"}})
    world.hooks.respond(STAGE.PRE_CREATE_CONTAINER)
    world.hooks.register(world.registered)
    changed = {"runtime_hook_server_key": "skip", "runtime_hook_server_val": "please"}
    async with world.proxy(**changed):
        kubelet = world.kubelet()
        await kubelet.create(await kubelet.run_pod(labels={"skip": "please"}))
        assert not world.hooks.requests
        await kubelet.create(await kubelet.run_pod(labels={"skip": "no"}))
        assert len(world.hooks.requests) == 2


@pytest.mark.parametrize(
    ("policy", "passes"), [("Fail", False), ("Ignore", True), ("", True)], ids=str
)
async def test_a_failed_hook_server_means_what_its_policy_says(world, policy, passes):
    failed = GRPCError(const.Status.INTERNAL, "no rules yet")
    world.hooks.respond(STAGE.PRE_RUN_POD_SANDBOX, lambda _: failed)
    world.hooks.register(world.registered, policy)
    async with world.proxy():
        kubelet = world.kubelet()
        if passes:
            await kubelet.run_pod()
        else:
            with pytest.raises(GRPCError, match="hook server err: INTERNAL: no rules yet") as found:
                await kubelet.run_pod()
            assert found.value.status is const.Status.UNKNOWN
        assert len(world.runtime.asked("RunPodSandbox")) == passes
        # The connection lives on.
        await kubelet.call(messages.path("Version"), b"")


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
async def test_a_hook_server_that_does_not_answer_holds_a_call_for_the_time_limit_only(
    world, policy
):
    async def never():
        await asyncio.get_running_loop().create_future()

    world.hooks.respond(STAGE.PRE_RUN_POD_SANDBOX, lambda _: never())
    world.hooks.register(world.registered, policy)
    async with world.proxy():
        call = asyncio.create_task(world.kubelet().run_pod())  # noqa: TID251 - ends with the test
        await until(world, lambda: world.hooks.requests)
        # Other calls do not wait for it.
        await world.kubelet().call(messages.path("Version"), b"")
        assert not call.done()
        await until(world, call.done)
        if policy == "Fail":
            with pytest.raises(GRPCError, match="no response within 2 s"):
                await call
        else:
            await call


@pytest.mark.parametrize(
    "nonsense", [b"\xff\xff", wire.field(4, b"\xff\xff")], ids=["no-protobuf", "no-resources"]
)
async def test_a_response_that_cannot_be_read_counts_as_a_failure(world, nonsense):
    world.hooks.answers[STAGE.PRE_RUN_POD_SANDBOX.path] = nonsense
    world.hooks.register(world.registered)
    async with world.proxy() as running:
        await world.kubelet().run_pod()
        assert "PreRunPodSandbox" in running.proxy._interceptor._servers.problem
