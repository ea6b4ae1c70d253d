"""The pods of a node by a watch of the API server, where the kubelet is not asked for them."""

import pytest
from aiohttp import web

from agent import settings as agent_settings
from agent.informers import kubelet_client as kubelets
from agent.informers import pod_source as agent_pods
from agent.informers import pod_watch
from api import resources
from kube.client import access, client
from kube.informers import informer_set
from process.runtime import supervise
from process.runtime.clock import ManualClock
from simulator.apiserver import apiserver
from simulator.apiserver.storage import object_store
from tests import patience
from tests.agent import test_app

MIRROR = {
    "kubernetes.io/config.mirror": "hash-of-the-file",
    "kubernetes.io/config.source": "file",
}
NODE = test_app.NODE
world = test_app.world


def pod(name, node=NODE, annotations=None):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "annotations": annotations or {}},
        "spec": {"nodeName": node, "containers": [{"name": "app", "image": "app"}]},
    }


async def answer(path):
    return f"the kubelet's {path}".encode()


@pytest.fixture
async def watched():
    clock = ManualClock(1_767_225_600.0)
    async with apiserver.running(clock=clock) as plane:
        given = access.Access(plane.url, plane.ca, access.StaticToken(plane.token))
        async with client.Client(given, clock=clock, user_agent="test") as kube:
            store = informer_set.InformerSet(kube, clock)
            found = pod_watch.WatchedPods(store, NODE, answer, ["stats/summary"])
            assert (found.age, found.source, found.pods) == (None, agent_pods.NOBODY, ())
            assert "not been listed" in found.problem
            async with supervise.Supervisor("test") as tasks:
                store.start(tasks)
                await store.synced()
                yield plane, found


async def test_the_watch_tells_the_pods_of_this_node_and_of_no_other(watched):
    plane, found = watched
    plane.objects.create(resources.PODS, pod("here"))
    plane.objects.create(resources.PODS, pod("elsewhere", "node-2"))
    await patience.arrives(lambda: found.pods)
    assert [one.metadata.name for one in found.pods] == ["here"]
    assert found.pods is found.pods
    assert (found.source, found.problem, found.age) == (agent_pods.API_SERVER, "", 0.0)
    how = object_store.Deletion(grace=0)
    plane.objects.delete(resources.PODS, "here", "shop", how)
    await patience.arrives(lambda: not found.pods)


async def test_a_static_pod_is_known_by_the_uid_of_its_cgroup(watched):
    plane, found = watched
    plane.objects.create(resources.PODS, pod("static", annotations=MIRROR))
    await patience.arrives(lambda: found.pods)
    assert [one.metadata.uid for one in found.pods] == ["hash-of-the-file"]


async def test_no_pod_takes_the_cgroup_of_another_by_calling_itself_its_mirror(watched):
    plane, found = watched
    victim = plane.objects.create(resources.PODS, pod("victim"))["metadata"]["uid"]
    claim = {**MIRROR, "kubernetes.io/config.mirror": victim}
    own = plane.objects.create(resources.PODS, pod("liar", annotations=claim))["metadata"]["uid"]
    await patience.arrives(lambda: len(found.pods) == 2)
    assert {one.metadata.name: one.metadata.uid for one in found.pods} == {
        "victim": victim,
        "liar": own,
    }


async def test_the_kubelet_is_asked_for_nothing_but_what_was_given(watched):
    _, found = watched
    assert await found.get("stats/summary") == b"the kubelet's stats/summary"
    with pytest.raises(kubelets.KubeletError, match=r"kubelet\.podsFrom is apiServer"):
        await found.get("configz")


async def test_an_agent_without_any_permission_on_kubelets_enforces(world):
    world.kubelet_status = 403
    world.create(resources.NODE_SLOS, {"spec": test_app.THRESHOLDS})
    chosen = agent_settings.KubeletSettings(url="https://127.0.0.1:1", pods_from="apiServer")
    async with world.agent(kubelet=chosen) as agent:
        body = pod("batch")
        body["metadata"]["labels"] = {"koordinator.sh/qosClass": "BE"}
        created = world.plane.objects.create(resources.PODS, body)
        world.tree.add_pod(created["metadata"]["uid"], "BestEffort", ["c"])
        await world.until_ticking(lambda: agent.ticks.picture and agent.ticks.picture.pods)
        assert [one.pod.metadata.name for one in agent.ticks.picture.pods] == ["batch"]
        assert "kubelet" not in agent.health.failing()
        assert "kubelet.podsFrom is apiServer" in str(agent.health.warnings())


@pytest.fixture
async def kubelet():
    """A kubelet that answers anything, and notes what it was asked for."""
    asked = []

    async def answer(request):
        asked.append(request.path)
        return web.json_response({})

    pages = web.Application()
    pages.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(pages)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}", asked
    await runner.cleanup()


@pytest.mark.parametrize(("network", "paths"), [("kubelet", {"/stats/summary"}), ("none", set())])
async def test_the_kubelet_is_asked_only_for_the_network_and_where_that_is_set(
    world, kubelet, network, paths
):
    url, asked = kubelet
    chosen = agent_settings.KubeletSettings(url=url, pods_from="apiServer")
    measure = agent_settings.MeasureSettings(network=network, network_seconds=1)
    async with world.agent(kubelet=chosen, measure=measure) as agent:
        await world.until_ticking(lambda: agent.ticks.picture)
        await world.until_ticking(lambda: paths <= set(asked))
        assert "stats/summary" not in str(agent.health.warnings())
    assert set(asked) == paths
