"""Simulated kubelets over HTTPS, as the API and an agent see them."""

import asyncio
import contextlib
import json

import aiohttp
import pytest
from aiohttp import web

from simulator import link
from simulator.kubelet import kubelet
from tests.planes import raw

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "main", "image": "web:1"}], "nodeName": "n"},
}
PODS = "/api/v1/namespaces/default/pods"


def phase(wanted):
    return lambda pod: pod is not None and pod["status"].get("phase") == wanted


async def test_nodes_register_and_are_ready(assembled, assembled_api):
    node = await assembled_api.get("/api/v1/nodes/n")
    conditions = {c["type"]: c["status"] for c in node["status"]["conditions"]}
    assert conditions["Ready"] == "True"
    assert node["status"]["allocatable"]["cpu"] == "4"
    lease = await assembled_api.get(
        "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n"
    )
    assert lease["spec"]["holderIdentity"] == "n"


async def test_a_heartbeat_keeps_what_others_wrote_on_the_node(assembled, assembled_api):
    body = {"status": {"allocatable": {"kubernetes.io/batch-cpu": "2000"}}}
    await assembled_api.patch("/api/v1/nodes/n/status", body)
    await assembled.kubelets.add(kubelet.Machine("n", cpu=4))
    node = await assembled_api.get("/api/v1/nodes/n")
    assert node["status"]["allocatable"]["kubernetes.io/batch-cpu"] == "2000"


async def test_a_bound_pod_runs_and_its_host_knows_first(assembled, assembled_api, host_log):
    await assembled_api.post(PODS, POD)
    pod = await assembled_api.wait_until(f"{PODS}/web", phase("Running"))
    assert host_log.log == [("started", "n", "web")]
    status = pod["status"]
    assert status["startTime"]
    assert status["qosClass"] == "BestEffort"
    (container,) = status["containerStatuses"]
    assert container["containerID"].startswith("containerd://")
    assert len(container["containerID"]) == len("containerd://") + 64
    ready = {c["type"]: c["status"] for c in status["conditions"]}
    assert ready["Ready"] == "True"


async def test_a_graceful_deletion_is_finished(assembled, assembled_api, host_log):
    await assembled_api.post(PODS, POD)
    await assembled_api.wait_until(f"{PODS}/web", phase("Running"))
    await assembled_api.delete(f"{PODS}/web")
    await assembled_api.wait_until(f"{PODS}/web", lambda pod: pod is None)
    assert host_log.log == [("started", "n", "web"), ("stopped", "n", "web")]


async def test_a_forced_deletion_stops_the_pod_as_well(assembled, assembled_api, host_log):
    await assembled_api.post(PODS, POD)
    await assembled_api.wait_until(f"{PODS}/web", phase("Running"))
    await assembled_api.delete(f"{PODS}/web", gracePeriodSeconds="0")

    async def stopped():
        return ("stopped", "n", "web") in host_log.log

    await raw.eventually(stopped)


async def test_work_ends_after_its_seconds(assembled, assembled_api, host_log):
    body = {**POD, "metadata": {"name": "web", "annotations": {"dev.koord.sh/run-seconds": "0"}}}
    await assembled_api.post(PODS, body)
    pod = await assembled_api.wait_until(f"{PODS}/web", phase("Succeeded"))
    terminated = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert terminated["exitCode"] == 0
    assert host_log.log == [("started", "n", "web"), ("stopped", "n", "web")]


async def fetch(url, token):
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as response:
        return response.status, await response.text()


async def test_an_agent_reads_the_pods_of_its_node(assembled, assembled_api):
    await assembled_api.post(PODS, POD)
    await assembled_api.wait_until(f"{PODS}/web", phase("Running"))
    status, text = await fetch(assembled.kubelets.url("n"), assembled.tokens["koord-manager"])
    assert status == 200
    listed = json.loads(text)
    assert listed["kind"] == "PodList"
    assert [pod["metadata"]["name"] for pod in listed["items"]] == ["web"]
    assert listed["items"][0]["status"]["phase"] == "Running"
    url = assembled.kubelets.url("m")
    _, text = await fetch(url, assembled.token)
    assert json.loads(text)["items"] == []
    _, text = await fetch(f"{url.removesuffix('pods')}configz", assembled.token)
    assert json.loads(text)["kubeletconfig"]["cpuManagerPolicy"] == "none"


@pytest.mark.parametrize(
    ("node", "token", "expected"),
    [
        pytest.param("n", "wrong", 401, id="stranger"),
        pytest.param("elsewhere", None, 404, id="unknown node"),
    ],
)
async def test_a_kubelet_refuses(assembled, node, token, expected):
    status, _ = await fetch(assembled.kubelets.url(node), token or assembled.token)
    assert status == expected


async def test_a_removed_node_stops_its_pods(assembled, assembled_api, host_log):
    await assembled_api.post(PODS, POD)
    await assembled_api.wait_until(f"{PODS}/web", phase("Running"))
    await assembled.kubelets.remove("n")
    assert ("stopped", "n", "web") in host_log.log
    assert (await assembled_api.call("GET", "/api/v1/nodes/n")).status == 404


async def test_a_silent_node_does_nothing_more(assembled, assembled_api, host_log):
    assembled.kubelets.silence("n")
    await assembled_api.post(PODS, POD)
    await assembled_api.post(
        PODS, {**POD, "metadata": {"name": "b"}, "spec": {**POD["spec"], "nodeName": "m"}}
    )
    await assembled_api.wait_until(f"{PODS}/b", phase("Running"))
    assert host_log.log == [("started", "m", "b")]


class LateServer:
    """An API server of one pod whose answers to the kubelet come after what its watch tells."""

    def __init__(self, told):
        self._told = told
        self._events = asyncio.Queue()
        self.meta = {"name": "web", "namespace": "default", "uid": "1"}
        self.answered = asyncio.Event()

    def show(self, kind, **meta):
        pod = {**POD, "metadata": {**self.meta, "resourceVersion": "2", **meta}, "status": {}}
        self._events.put_nowait({"type": kind, "object": pod})

    async def list_or_watch(self, request):
        if "watch" not in request.query:
            return web.json_response({"metadata": {"resourceVersion": "1"}, "items": []})
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(json.dumps(await self._events.get()).encode() + b"\n")

    async def report(self, request):
        status = (await request.json())["status"]
        await self._told(self)
        self.answered.set()
        meta = {**self.meta, "resourceVersion": "3"}
        return web.json_response({**POD, "metadata": meta, "status": status})

    async def anything(self, request):
        return web.json_response({})


@contextlib.asynccontextmanager
async def kubelets_of(server, host_log, clock):
    app = web.Application()
    app.router.add_get("/api/v1/pods", server.list_or_watch)
    app.router.add_patch("/api/v1/namespaces/default/pods/web/status", server.report)
    app.router.add_route("*", "/{path:.*}", server.anything)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    hooks = kubelet.Hooks(host_log.started, host_log.stopped)
    try:
        async with aiohttp.ClientSession() as session:
            client = link.Link(session, f"http://127.0.0.1:{runner.addresses[0][1]}", clock)
            async with kubelet.running(client, kubelet.Options(), hooks, clock) as kubelets:
                await kubelets.add(kubelet.Machine("n"))
                yield kubelets
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("kind", "meta"),
    [
        pytest.param("DELETED", {"resourceVersion": "4"}, id="gone"),
        pytest.param(
            "MODIFIED",
            {"resourceVersion": "4", "deletionTimestamp": "2026-01-01T00:00:00Z"},
            id="being deleted",
        ),
    ],
)
async def test_a_late_answer_to_a_report_revives_no_pod(host_log, clock, kind, meta):
    async def overtaken(server):
        server.show(kind, **meta)

        async def heard():
            known = kubelets._pods.get("1")
            return known is None or known["metadata"]["resourceVersion"] == "4"

        await raw.eventually(heard)

    server = LateServer(overtaken)
    async with kubelets_of(server, host_log, clock) as kubelets:
        server.show("ADDED")
        await server.answered.wait()

        async def idle():
            return not kubelets._busy

        await raw.eventually(idle)
        assert kubelets.pods_of("n") == []
    assert host_log.log == [("started", "n", "web"), ("stopped", "n", "web")]
