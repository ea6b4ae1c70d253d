"""A real extender process is killed with SIGKILL in the middle of a bind, and started again."""

import asyncio
import contextlib
import json

import aiohttp
import pytest

from api import names, resources
from api.kubernetes import crds, scheduler_config
from process.http import ports
from simulator import cluster
from simulator.kubelet import kubelet
from simulator.processes import credentials
from tests import patience
from tests.planes import raw
from tests.planes.processes import forking, gate

# Two starts of a real process: seconds on a quiet machine, which a busy one must not cut short.
pytestmark = pytest.mark.timeout(60)
NODES = ("a", "b")
# Its modules take a second to import: once, and not at each start.
FORKING = forking.Server("extender")
PODS = "/api/v1/namespaces/default/pods"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "job"},
    "spec": {
        "containers": [
            {"name": "main", "image": "x:1", "resources": {"requests": {"cpu": "2"}}},
        ]
    },
}


class Extender:
    """`python -m extender` as a child process, with a gate to the API server."""

    def __init__(self, folder, plane, uplink):
        self._folder = folder
        self._port, self._health = ports.take(2)
        self._config = folder / "kubeconfig"
        entry = credentials.kubeconfig(uplink.url, plane.ca, plane.token)
        self._config.write_text(json.dumps(entry))
        self.url = f"http://127.0.0.1:{self._port}"
        self.health_url = f"http://127.0.0.1:{self._health}"
        self.child = None

    async def start(self):
        command = ["extender", f"--kubeconfig={self._config}"]
        command += [f"--server.port={self._port}", f"--health.port={self._health}"]
        self.child = FORKING.start("extender", command, self._folder)

    async def kill(self):
        if self.child is not None:
            await self.child.kill()
            self.child = None


@pytest.fixture
async def plane():
    machines = [kubelet.Machine(name, cpu=4) for name in NODES]
    async with cluster.running(cluster.Options(machines=machines)) as running:
        yield running


@pytest.fixture
async def api(plane):
    async with raw.connected(plane.server, plane.ca, plane.token) as client:
        for document in crds.documents().values():
            await client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", document)
        yield client


@pytest.fixture
async def uplink(plane):
    async with gate.opened(plane.server, plane.ca) as opened:
        yield opened


@pytest.fixture
async def extender(tmp_path, plane, api, uplink):
    process = Extender(tmp_path, plane, uplink)
    await process.start()
    try:
        await listening(process)
        await plane.start_scheduler(scheduler_config.Options(process.url, max_backoff_seconds=1))
        yield process
    finally:
        await plane.stop_scheduler()
        await process.kill()


async def listening(process):
    """Wait until the process says that it is ready."""
    async with aiohttp.ClientSession() as session:

        async def ready():
            with contextlib.suppress(aiohttp.ClientError):
                async with session.get(f"{process.health_url}/readyz") as answer:
                    return answer.status == 200
            return False

        await raw.eventually(ready)


@pytest.mark.parametrize("written", [False, True], ids=["before the write", "after the write"])
async def test_a_bind_survives_the_death_of_its_process(plane, api, uplink, extender, written):
    reached, bound = asyncio.Event(), []

    async def hold(call):
        if call.is_binding:
            reached.set()
            await asyncio.Event().wait()

    def note(event):
        before = (event.previous or {}).get("spec", {}).get("nodeName")
        node = event.object["spec"].get("nodeName")
        if node and not before:
            bound.append(node)

    stop = plane.objects.subscribe(note, resources.PODS)
    setattr(uplink, "after" if written else "before", hold)
    await api.post(PODS, POD)
    await asyncio.wait_for(reached.wait(), patience.SECONDS)
    assert len(bound) == int(written)
    await extender.kill()
    uplink.reset()
    await extender.start()
    pod = await api.wait_until(f"{PODS}/job", lambda pod: pod["spec"].get("nodeName"))
    await listening(extender)
    stop()
    assert bound == [pod["spec"]["nodeName"]]
    placement = json.loads(pod["metadata"]["annotations"][names.PLACEMENT])
    assert placement["node"] == pod["spec"]["nodeName"]
    assert len([call for call in uplink.calls if call.is_binding]) == 2 - int(written)
    # Nothing stays counted that is not there: the room is exactly what the pod left.
    await api.post(PODS, with_cpu("fills", "2", pod["spec"]["nodeName"]))
    await api.wait_until(f"{PODS}/fills", lambda found: found["spec"].get("nodeName"))


def with_cpu(name, cpu, node):
    body = json.loads(json.dumps(POD))
    body["metadata"]["name"] = name
    body["spec"]["nodeSelector"] = {names.LABEL_HOSTNAME: node}
    body["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
    return body
