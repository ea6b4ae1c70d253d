"""An installation of the committed manifests for `koord doctor` to examine, and to break.

Pods run on simulated kubelets, and our processes in this event loop.
"""

import contextlib
import json

import yaml

from agent import settings as agent_settings
from api import names, resources
from cli.commands import doctor
from cli.dev import all_in_one, fleet
from cli.doctor import survey
from cli.doctor.checkup import findings
from cli.install import apply
from kube.client import access as accesses
from kube.client import client as clients
from process.runtime import clock as clocks
from simulator import link
from simulator.kubelet import kubelet
from tests.planes import raw, real
from tests.planes.install import plain

PATIENCE = 60.0
NAMESPACE = names.NAMESPACE
NODES = ("doctor-a", "doctor-b")
SHOP = "shop"
API_SERVERS = ("127.0.0.1/32",)
PROFILE = {
    "apiVersion": "config.koordinator.sh/v1alpha1",
    "kind": "ClusterColocationProfile",
    "metadata": {"name": "doctor"},
    "spec": {
        "namespaceSelector": {"matchLabels": {names.LABEL_NAMESPACE_NAME: SHOP}},
        "qosClass": "BE",
        "priorityClassName": "koord-batch",
    },
}


class Patient:
    """An installation, and the doctor's and the vandal's hands."""

    def __init__(self, api, kube, clock, stack):
        self.api = api
        self.kube = kube
        self.clock = clock
        self.stack = stack
        self.processes = contextlib.AsyncExitStack()
        self.extender = ""
        """Where the extender shows whether it is ready."""

    async def findings(self):
        options = survey.Options()
        return await doctor.examine(self.kube, self.clock, options, lambda _text: None)

    async def told(self):
        """What is worse than a note, by name."""
        rank = findings.Severity.INFO.rank
        return {f.check: f for f in await self.findings() if f.severity.rank > rank}

    async def exactly(self, *wanted, first=None):
        """Examine until just these findings are made, `first` before each time; returns them."""
        told = {}

        async def found():
            nonlocal told
            if first is not None:
                await first()
            told = await self.told()
            return set(told) == set(wanted)

        try:
            await raw.eventually(found, PATIENCE)
        except TimeoutError:
            seen = "\n".join(doctor.lines(list(told.values())))
            pods = await self.api.get(resources.PODS.path(NAMESPACE))
            seen += json.dumps([(p["metadata"]["name"], p["status"]) for p in pods["items"]])
            raise AssertionError(f"not exactly {wanted}:\n{seen}") from None
        return told

    async def put(self, resource, body):
        """Write an object back as it was."""
        metadata = {
            key: value
            for key, value in body["metadata"].items()
            if key in ("name", "namespace", "labels", "annotations")
        }
        path = resource.path(metadata.get("namespace", ""))
        await self.api.post(path, {**body, "metadata": metadata})

    async def callers(self, *blocks):
        """Tell the webhook from where API servers call, as `networkPolicy.apiServerBlocks` does."""
        path = resources.CONFIG_MAPS.path(NAMESPACE, "koord-webhook")
        written = yaml.safe_load((await self.api.get(path))["data"]["settings.yaml"])
        written["server"] = written.get("server", {}) | {"callerBlocks": list(blocks)}
        await self.api.patch(path, {"data": {"settings.yaml": yaml.safe_dump(written)}})


@contextlib.asynccontextmanager
async def installed(binaries, folder):
    """A control plane of its own with everything installed and running."""
    clock = clocks.SystemClock()
    async with contextlib.AsyncExitStack() as stack:
        enter = stack.enter_async_context
        plane = await enter(real.running(binaries, folder / "plane"))
        access = accesses.Access(plane.server, plane.ca, accesses.StaticToken(plane.token))
        api = await enter(raw.connected(plane.server, plane.ca, plane.token))
        kube = await enter(clients.Client(access, clock=clock, limits=doctor.LIMITS))
        it = Patient(api, kube, clock, stack)
        await enter(it.processes)
        await apply.definitions(kube, clock)
        for document in plain.documents("beside"):
            await plain.apply(api, document)
        await it.callers(*API_SERVERS)
        # The settings in it switch colocation on.
        await apply.everything(kube, apply.documents("foundation.yaml"))
        await api.post(resources.NAMESPACES.path(), {"metadata": {"name": SHOP}})
        await apply.one(kube, PROFILE)
        running = await it.processes.enter_async_context(
            all_in_one.running(all_in_one.Options(folder), access=access, clock=clock)
        )
        it.extender = dict(running.apps())["extender"].health_url
        # Without an extender: a busy machine must not keep the pods of the installation away.
        await plane.start_scheduler("")
        await machines(stack, plane, access, folder, clock)
        yield it


async def machines(stack, plane, access, folder, clock):
    """Two nodes with agents, whose kubelets run whatever is bound to them."""
    report = agent_settings.ReportSettings(interval_seconds=2, aggregate_seconds=8)
    hosts = fleet.Fleet(fleet.Options(folder / "hosts", report=report), clock)
    hosts.admit(plane.token)
    client = await stack.enter_async_context(
        link.connected(plane.server, plane.ca, plane.token, clock=clock, agent="koord-kubelet")
    )
    options = kubelet.Options(tokens=frozenset({plane.token}))
    kubelets = await stack.enter_async_context(kubelet.running(client, options, hosts.hooks, clock))
    await stack.enter_async_context(hosts.living())
    for name in NODES:
        await hosts.add(kubelets, kubelet.Machine(name, cpu=16, memory_gib=64), access)
