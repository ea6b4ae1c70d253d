"""The harness itself: real binaries, real clients, and our kubelets on a real API server."""

import asyncio
import json

import aiohttp
import pytest

from process.runtime import clock as clocks
from simulator import link
from simulator.kubelet import kubelet
from tests.planes import world
from tests.planes.scheduler import scripted


@pytest.fixture
def plane(real_plane):
    return real_plane


async def test_every_program_runs(plane, api):
    names = {"etcd", "kube-apiserver", "kube-controller-manager"}
    assert names <= set(plane.binaries.pids())
    assert (await api.get("/version"))["gitVersion"].startswith("v1.")


async def test_kubectl_uses_the_kubeconfig(kubectl):
    listed = json.loads(await kubectl("get", "namespaces", "--output=json"))
    assert "kube-system" in [item["metadata"]["name"] for item in listed["items"]]


async def test_the_scheduler_takes_several_profiles(plane, here):
    async with scripted.listening(here.api) as extender:
        names = ("default-scheduler", "koord-scheduler")
        await plane.start_scheduler(extender.url, scheduler_names=names)
        try:
            await here.node("a")
            for name in names:
                await here.pod(name, schedulerName=name)
                await here.bound(name)
                assert extender.of("bind", name)
        finally:
            await plane.stop_scheduler()


async def test_all_nodes_are_sent_where_that_is_configured(plane, here):
    async with scripted.listening(here.api) as extender:
        await plane.start_scheduler(extender.url, percentage_of_nodes_to_score=100)
        try:
            await asyncio.gather(*(here.node(f"n{number}") for number in range(150)))
            await here.known(extender)
        finally:
            await plane.stop_scheduler()


async def test_a_sample_is_sent_by_default(here, extender):
    await asyncio.gather(*(here.node(f"n{number}") for number in range(150)))
    asked = []
    # The first pods may come before the scheduler knows all nodes.
    for name in ("v", "w", "x", "y"):
        await here.pod(name)
        await here.bound(name)
        asked.append(frozenset(extender.of("filter", name)[0].body["NodeNames"]))
    assert max(len(names) for names in asked) == 100
    assert len(set(asked)) > 1


class Kubelets:
    """Simulated kubelets on the real API server, with what they told."""

    def __init__(self):
        self.log = []
        self.hooks = kubelet.Hooks(self.started, self.stopped)

    def started(self, node, pod):
        self.log.append(("started", pod["metadata"]["name"]))

    def stopped(self, node, pod):
        self.log.append(("stopped", pod["metadata"]["name"]))


async def test_simulated_kubelets_serve_a_real_control_plane(plane, here, stock):
    told = Kubelets()
    clock = clocks.SystemClock()
    options = kubelet.Options(tokens=frozenset({"agent"}))
    machine = kubelet.Machine(here.name("m"), labels={"world": here.id})
    async with (
        link.connected(plane.server, plane.ca, plane.token, clock=clock, agent="test") as client,
        kubelet.running(client, options, told.hooks, clock) as kubelets,
    ):
        await kubelets.add(machine)
        here.nodes.append(machine.name)
        body = here.pod_body("web", annotations={"dev.koord.sh/run-seconds": "1"})
        await here.api.post(here.path("pods"), body)
        await here.pod("stays", terminationGracePeriodSeconds=30)
        await here.wait("web", lambda pod: pod["status"]["phase"] == "Succeeded")
        await here.wait("stays", lambda pod: pod["status"]["phase"] == "Running")
        headers = {"Authorization": "Bearer agent"}
        async with (
            aiohttp.ClientSession() as session,
            session.get(kubelets.url(machine.name), headers=headers) as response,
        ):
            listed = await response.json()
        assert [pod["metadata"]["name"] for pod in listed["items"]] == ["stays"]
        await here.api.delete(here.path("pods", "stays"))
        await here.wait("stays", lambda pod: pod is None)
    assert set(told.log) == {
        ("started", "web"),
        ("stopped", "web"),
        ("started", "stays"),
        ("stopped", "stays"),
    }


async def test_a_world_leaves_nothing_behind(plane, api):
    async with world.opened(plane, api) as opened:
        node = await opened.node("a")
        await opened.pod("web")
    assert (await api.call("GET", f"/api/v1/nodes/{node}")).status == 404
    await api.wait_until(f"/api/v1/namespaces/{opened.namespace}", lambda found: found is None, 90)


async def test_a_stranger_is_refused(plane, api):
    assert (await api.as_user("nobody").call("GET", "/api/v1/nodes")).status == 401
