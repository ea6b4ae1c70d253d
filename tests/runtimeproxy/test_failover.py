"""Hook server, runtime and proxy die in turn: what runs goes on, and later calls succeed again."""

import asyncio
import json
import os

import aiohttp
import pytest
from grpclib import GRPCError
from grpclib.exceptions import StreamTerminatedError

from api.koordinator import runtime_hooks
from runtimeproxy import app
from runtimeproxy.cri import messages
from tests import patience

STAGE = runtime_hooks.Stage
LOST = (ConnectionError, FileNotFoundError, StreamTerminatedError, GRPCError)


def changing(world, policy="Ignore"):
    world.hooks.respond(STAGE.PRE_RUN_POD_SANDBOX, lambda _: {"annotations": {"by": "hook"}})
    world.hooks.register(world.registered, policy)


def by_hook(world):
    """Which of the pods that the runtime got carry what the hook server adds."""
    read = [
        messages.read("RunPodSandboxRequest", one) for one in world.runtime.asked("RunPodSandbox")
    ]
    return [bool(dict(one.config.annotations)) for one in read]


async def until(world, condition):
    return await patience.until(condition, lambda: world.clock.advance(0.5))


async def test_pods_start_without_a_dead_hook_server_and_with_it_when_it_is_back(world):
    changing(world)
    async with world.proxy():
        kubelet = world.kubelet()
        await kubelet.run_pod()
        await world.hooks.kill()
        await kubelet.run_pod()
        await world.hooks.start()
        await kubelet.run_pod()
    assert by_hook(world) == [True, False, True]


async def test_a_hook_server_that_dies_while_it_is_asked_holds_nothing(world):
    begun = asyncio.Event()

    async def never():
        begun.set()
        await asyncio.get_running_loop().create_future()

    world.hooks.respond(STAGE.PRE_RUN_POD_SANDBOX, lambda _: never())
    world.hooks.register(world.registered)
    async with world.proxy():
        call = asyncio.create_task(world.kubelet().run_pod())  # noqa: TID251 - ends with the test
        await begun.wait()
        await world.hooks.kill()
        await call
    assert by_hook(world) == [False]


async def test_while_the_runtime_is_away_calls_fail_and_afterwards_they_succeed(world):
    changing(world)
    async with world.proxy() as running:
        kubelet = world.kubelet()
        pod = await kubelet.run_pod()
        await world.runtime.kill()
        for _ in range(2):
            with pytest.raises(LOST):
                await kubelet.call(messages.path("Version"), b"")
        assert "runtime" in running.proxy.problem
        await world.runtime.start()
        await kubelet.call(messages.path("Version"), b"")
        assert running.proxy.problem is None
        # What was known of its pods still is.
        await kubelet.create(pod)
    assert by_hook(world) == [True]


async def test_a_runtime_that_dies_in_a_call_ends_the_call(world):
    begun = asyncio.Event()

    async def never():
        begun.set()
        await asyncio.get_running_loop().create_future()

    async with world.proxy():
        world.runtime.answers[messages.path("RunPodSandbox")] = lambda _: never()
        kubelet = world.kubelet()
        call = asyncio.create_task(kubelet.run_pod())  # noqa: TID251 - ends with the test
        await begun.wait()
        await world.runtime.kill()
        with pytest.raises(LOST):
            await call


async def test_the_proxy_listens_before_the_runtime_does(world):
    await world.runtime.kill()
    async with world.proxy(listed=False) as running:
        kubelet = world.kubelet()
        with pytest.raises(LOST):
            await kubelet.call(messages.path("Version"), b"")
        page = f"{running.url}/readyz"
        async with aiohttp.ClientSession() as session, session.get(page) as answer:
            assert answer.status == 503
            assert "runtime.sock" in await answer.text()
        await world.runtime.start()
        await kubelet.call(messages.path("Version"), b"")
        await until(world, lambda: running.proxy.restored)


async def test_lists_of_the_runtime_that_cannot_be_read_hold_no_call(world):
    world.runtime.answers[messages.path("ListPodSandbox")] = b"\xff"
    changing(world)
    async with world.proxy(listed=False) as running:
        await world.kubelet().run_pod()
        assert not running.proxy.restored
        del world.runtime.answers[messages.path("ListPodSandbox")]
        await until(world, lambda: running.proxy.restored)
    assert by_hook(world) == [True]


def listed(world):
    """A runtime with one pod and container of earlier, and what a verbose status tells of them."""
    about = {"name": "pod", "uid": "u7", "namespace": "default"}
    item = {"id": "s7", "metadata": about, "labels": {"old": "yes"}}
    container = {"id": "c7", "pod_sandbox_id": "s7", "metadata": {"name": "main"}}
    info = {"config": {"linux": {"cgroup_parent": "/kubepods/podu7"}}}
    config = {
        "linux": {"resources": {"cpu_shares": 300, "cpuset_cpus": "1"}},
        "envs": [{"key": "A", "value": "1"}],
    }
    limits = {"linux": {"cpu_shares": 400}}
    world.runtime.answers |= {
        messages.path(name): messages.new(kind, **fields).SerializeToString()
        for name, kind, fields in (
            ("ListPodSandbox", "ListPodSandboxResponse", {"items": [item]}),
            ("ListContainers", "ListContainersResponse", {"containers": [container]}),
            ("PodSandboxStatus", "PodSandboxStatusResponse", {"info": {"info": json.dumps(info)}}),
            (
                *("ContainerStatus", "ContainerStatusResponse"),
                {"status": {"resources": limits}, "info": {"info": json.dumps({"config": config})}},
            ),
        )
    }


@pytest.mark.parametrize("before", [True, False], ids=["before-the-proxy", "unseen-by-the-proxy"])
async def test_containers_that_the_proxy_did_not_create_have_their_hooks_too(world, before):
    """From before it started, or created in a call whose response it did not see."""
    if before:
        listed(world)
    world.hooks.respond(
        STAGE.PRE_UPDATE_CONTAINER_RESOURCES,
        lambda asked: {"container_resources": {"cpu_shares": 999, "cpuset_cpus": "1"}},
    )
    world.hooks.register(world.registered)
    async with world.proxy():
        listed(world)
        await world.kubelet().cri(
            *("UpdateContainerResources", "UpdateContainerResourcesRequest"),
            container_id="c7",
            linux={"cpu_quota": 1000},
        )
    _, asked = world.hooks.requests[0]
    assert (asked.pod_meta.uid, dict(asked.pod_labels)) == ("u7", {"old": "yes"})
    assert asked.pod_cgroup_parent == "/kubepods/podu7"
    assert (asked.container_resources.cpu_shares, asked.container_resources.cpu_quota) == (
        400,
        1000,
    )
    assert (asked.container_resources.cpuset_cpus, dict(asked.container_envs)) == ("1", {"A": "1"})
    request = world.runtime.asked("UpdateContainerResources")[0]
    assert messages.read("UpdateContainerResourcesRequest", request).linux.cpu_shares == 999


async def updated(world, **linux):
    name = "UpdateContainerResources"
    await world.kubelet().cri(name, f"{name}Request", container_id="c7", linux=linux)


async def test_a_status_from_before_an_update_does_not_replace_what_the_update_left(world):
    listed(world)
    world.hooks.respond(STAGE.PRE_UPDATE_CONTAINER_RESOURCES)
    world.hooks.register(world.registered)
    path, overtaken = messages.path("ContainerStatus"), asyncio.Event()
    told = world.runtime.answers[path]

    async def late(_request):
        world.runtime.answers[path] = told
        await overtaken.wait()
        return told

    world.runtime.answers[path] = late
    async with world.proxy(), asyncio.TaskGroup() as both:
        both.create_task(updated(world, cpu_quota=1000))
        await until(world, lambda: world.runtime.asked("ContainerStatus"))
        await updated(world, cpuset_cpus="5")
        overtaken.set()
    shown = [asked.container_resources for _, asked in world.hooks.requests]
    assert [(one.cpuset_cpus, one.cpu_quota) for one in shown] == [("5", 0), ("5", 1000)]


async def test_an_update_without_a_hook_does_not_hide_what_the_runtime_knows(world):
    listed(world)
    world.hooks.respond(STAGE.POST_STOP_CONTAINER)
    world.hooks.register(world.registered)
    async with world.proxy():
        await updated(world, cpu_quota=1000)
        await world.kubelet().stop("c7")
        await until(world, lambda: world.hooks.requests)
    _, asked = world.hooks.requests[0]
    assert asked.container_resources.cpu_shares == 400


async def test_registrations_follow_the_folder_and_a_broken_file_counts_as_before(world):
    changing(world)
    file = world.registered / "koordlet.json"
    good = file.read_text()
    async with world.proxy() as running:
        kubelet = world.kubelet()
        await kubelet.run_pod()
        file.write_text("{")
        folder = running.proxy._interceptor._servers._folder
        await until(world, lambda: "koordlet.json" in folder.problems)
        await kubelet.run_pod()
        file.unlink()
        await until(world, lambda: not folder.known)
        await kubelet.run_pod()
        file.write_text(good)
        await until(world, lambda: folder.known)
        await kubelet.run_pod()
    assert by_hook(world) == [True, True, False, True]


async def test_a_pipe_among_the_registrations_holds_no_call(world):
    changing(world)
    os.mkfifo(world.registered / "a-pipe.json")
    async with world.proxy() as running:
        await world.kubelet().run_pod()
        assert "no file" in running.proxy._interceptor._servers._folder.problems["a-pipe.json"]
    assert by_hook(world) == [True]


async def test_a_stopped_container_is_forgotten_whatever_is_learned_of_it_afterwards(world):
    listed(world)
    world.hooks.respond(STAGE.POST_STOP_CONTAINER)
    world.hooks.register(world.registered)
    async with world.proxy() as running:
        await world.kubelet().stop("c7")
        await until(world, lambda: world.hooks.requests)
        assert not running.proxy._interceptor.store.containers


async def test_a_socket_that_a_killed_proxy_left_is_replaced_and_a_used_one_is_not(world):
    async with world.proxy():
        with pytest.raises(app.ListenError, match="another process listens there"):
            async with world.proxy(listed=False):
                raise AssertionError("two proxies listen")
        await world.kubelet().run_pod()
    path = world.folder / "run/proxy.sock"
    assert not path.exists()
    server = await asyncio.start_unix_server(lambda *_: None, str(path))
    server.close()
    async with world.proxy():
        assert path.stat().st_mode & 0o777 == 0o660
        await world.kubelet().run_pod()
