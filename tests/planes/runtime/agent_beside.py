"""A real agent beside a real containerd: a process of its own, with what it asks around it.

The API server that names its settings is a stand-in, and so is the kubelet unless there is a whole
node; the container runtime, its cgroups and the processors are those of this machine.
"""

import contextlib
import json
import os
import pathlib

import yarl
from aiohttp import web

from api import names, resources
from api.kubernetes import crds
from process.runtime import clock as clocks
from simulator.apiserver import apiserver
from simulator.processes import children, credentials
from tests.planes import raw
from tests.planes.node import node_network
from tests.planes.processes import processes

NODE = "node-1"
PATIENCE = 60.0
PORT = 9316
"""Where the agent of a whole node tells how it is, in the network of that node."""
RATIO = "2.00"
"""How much faster the processors of a whole node count, so that quotas are halved there."""
ADAPTER = "0000:3b:00.0"
GATES = ("GPUEnvInject", "RDMADeviceInject", "OOMScoreAdj", "BlkIOReconcile")
DEVICES = {"infiniband_verbs/uverbs0": "1:5", "misc/rdma_cm": "1:3"}
"""Device files of an adapter that is not there, by the numbers of /dev/zero and /dev/null."""
SLO = {
    "cpuBurstStrategy": {"policy": "cpuBurstOnly", "cpuBurstPercent": 100},
    "resourceQOSStrategy": {
        "lsClass": {"cpuQOS": {"enable": True, "groupIdentity": 2}},
        "beClass": {"cpuQOS": {"enable": True, "groupIdentity": -1}},
    },
}
_CONNECTED, _SAMPLES = "NRI is connected", "koord_agent_nri_answer_seconds_bucket"


class Agent:
    """The process, and the pods that its kubelet names."""

    def __init__(self, folder, runtime, api, port):
        self.pods = {}
        self.asked = 0
        """How often the kubelet was asked for its pods, in this life of the agent."""
        self.runtime = runtime
        self.state = folder / "state"
        (folder / "sys").mkdir()
        _adapter(folder / "sys")
        made = {
            "nodeName": NODE,
            "host": {
                "state": str(self.state),
                "kubeletRoot": runtime.groups.name,
                "sys": str(folder / "sys"),
            },
            "kubelet": {
                "url": f"http://127.0.0.1:{port}",
                "intervalSeconds": 1,
                "fallBack": False,
            },
            "onStop": "put-back",
            "nri": {"socket": str(runtime.nri)},
            "strategies": {"mode": "enforce"},
            "featureGates": dict.fromkeys(GATES, True),
        }
        path = folder / "agent.yaml"
        path.write_text(json.dumps(made))
        self.process = processes.Process(
            *(folder, "agent", "agent", api.url, api.ca, api.token, f"--config={path}"),
            serves=False,
        )
        self._log = folder / "agent.log"

    def knows(self, *pods):
        """Let the kubelet name pods."""
        self.pods |= {pod["metadata"]["uid"]: pod for pod in pods}

    @property
    def connections(self):
        """How often a conversation with the runtime has begun, over all of its lives."""
        return self.process.log.count(_CONNECTED) if self._log.exists() else 0

    async def start(self):
        """Start it and wait until it enforces and the runtime asks it."""
        before, self.asked = self.connections, 0
        await self.process.start()

        async def enforces():
            assert self.process.alive, self.process.log[-4000:]
            return await self.process.figure("koord_agent_journal_entries") > 0

        await raw.eventually(enforces, PATIENCE)
        await self.connected(before + 1)

    async def taken(self):
        """Wait until the agent has taken the pods that its kubelet names now.

        A kubelet names a pod before it starts anything; here both happen at one moment.
        """
        first = self.asked + 1

        async def has_taken():
            lists = await self.process.figure("koord_agent_pod_lists_total", source="kubelet")
            return lists >= first

        await raw.eventually(has_taken, PATIENCE)

    async def connected(self, times):
        """Wait until the runtime asks for the so-manieth time."""

        async def is_connected():
            return self.connections >= times

        await raw.eventually(is_connected, PATIENCE)

    async def answers(self, *methods):
        """The number of answers so far, and how many took no longer than each bound."""
        _, text = await self.process.page("/metrics")
        found = {}
        for name, shown, value in processes.FIGURE.findall(text):
            if name == _SAMPLES and any(f'method="{one}"' in shown for one in methods):
                bound = shown.partition('le="')[2].partition('"')[0]
                found[bound] = found.get(bound, 0) + round(float(value))
        return found.get("+Inf", 0), found


@contextlib.asynccontextmanager
async def inside(real_node, nri=None):
    """Let an agent be a service of a whole node; `start_inside` it.

    The runtime asks it at the socket `nri`; without one the CRI proxy of the node does.
    """
    async with settings_from(**{names.ANNOTATION_CPU_NORMALIZATION: RATIO}) as api:
        port = yarl.URL(api.url).port
        door = node_network.listen(real_node.pid, "127.0.0.1", port)
        async with node_network.forwarding(door, "127.0.0.1", port):
            login = real_node.workdir / "agent-login.json"
            login.touch(mode=0o600)
            login.write_text(json.dumps(credentials.kubeconfig(api.url, api.ca, api.token)))
            made = _inside(real_node.workdir, nri)
            (real_node.workdir / "agent.yaml").write_text(json.dumps(made))
            yield


def _inside(workdir, nri):
    socket = f"{workdir}/agent.sock"
    hooks = {"enable": nri is None, "socket": socket, "hostSocket": socket}
    return {
        "nodeName": NODE,
        "host": {"state": f"{workdir}/agent"},
        "kubelet": {"verify": "off", "intervalSeconds": 1, "fallBack": False},
        "nri": {"enable": nri is not None, **({"socket": str(nri)} if nri else {})},
        "hookServer": {**hooks, "folder": f"{workdir}/hookserver.d"},
        "strategies": {"mode": "enforce"},
        "featureGates": {"CPUNormalization": True},
        "health": {"host": "127.0.0.1", "port": PORT},
    }


async def start_inside(real_node):
    """Start the agent, also again, and wait until it is ready."""
    login = f"--kubeconfig={real_node.workdir}/agent-login.json"
    child = await real_node.start_service(
        *("agent", "agent", login, f"--config={real_node.workdir}/agent.yaml")
    )

    async def is_ready():
        said = await real_node.page("127.0.0.1", PORT, "/readyz")
        return said.startswith("{") and json.loads(said)["ready"]

    await children.ready(child, is_ready, clock=clocks.SystemClock())


def _adapter(sys):
    """A sysfs that is this machine's but for an adapter more."""
    (sys / "class").mkdir()
    own = {"class", "bus", "misc", "infiniband_verbs"}
    for found in (*pathlib.Path("/sys").iterdir(), *pathlib.Path("/sys/class").iterdir()):
        if found.name not in own:
            (sys / found.relative_to("/sys")).symlink_to(found)
    for place, numbers in DEVICES.items():
        (sys / "class" / place).mkdir(parents=True)
        (sys / "class" / place / "dev").write_text(f"{numbers}\n")
    (sys / "bus/pci/devices" / ADAPTER / "infiniband_verbs/uverbs0").mkdir(parents=True)


def _install(api, annotations):
    for definition in crds.definitions():
        if definition["spec"]["names"]["kind"] in {"NodeMetric", "NodeSLO"}:
            api.objects.create(resources.CRDS, definition)
    amounts = {"cpu": str(os.cpu_count()), "memory": "4Gi"}
    for resource, body in (
        (resources.NODES, {"status": {"capacity": amounts, "allocatable": amounts}}),
        (resources.NODE_METRICS, {"spec": {}}),
        (resources.NODE_SLOS, {"spec": SLO}),
    ):
        meta = {"apiVersion": resource.api_version, "kind": resource.kind}
        about = {"name": NODE, "annotations": annotations if resource is resources.NODES else {}}
        api.objects.create(resource, {**meta, "metadata": about, **body})


@contextlib.asynccontextmanager
async def settings_from(**annotations):
    """An API server that holds what an agent asks for; annotations are those of the Node."""
    async with apiserver.running(clock=clocks.SystemClock()) as api:
        _install(api, annotations)
        yield api


@contextlib.asynccontextmanager
async def running(folder, runtime):
    """An agent that is asked by a containerd."""
    holder = {}

    async def pods(_request):
        holder["agent"].asked += 1
        return web.json_response({"items": list(holder["agent"].pods.values())})

    async def configuration(_request):
        return web.json_response({"kubeletconfig": {"cpuManagerPolicy": "none"}})

    pages = web.Application()
    pages.router.add_get("/pods", pods)
    pages.router.add_get("/configz", configuration)
    runner = web.AppRunner(pages)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        async with settings_from() as api:
            agent = holder["agent"] = Agent(folder, runtime, api, runner.addresses[0][1])
            try:
                yield agent
            finally:
                await agent.process.kill()
    finally:
        await runner.cleanup()
