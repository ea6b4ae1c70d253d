"""One installation on a real control plane, from rendered manifests to processes that work.

Every process runs with the arguments, settings and account of its pod template.
"""

import asyncio
import json
import os
import signal

import aiohttp
import msgspec
import yaml
import yarl as url

from api import names, resources
from api.koordinator.metadata import qos
from api.kubernetes import core
from process.http import ports
from process.runtime import clock as clocks
from process.runtime import supervise
from simulator import link
from simulator.kubelet import kubelet, nodefs, pod_states
from tests.e2e import binaries as builds
from tests.planes import raw
from tests.planes.devices import pci_tree
from tests.planes.install import chart, grants, installed
from tests.planes.processes import accounts, connections, services

PATIENCE = 60.0
NAMESPACE = names.NAMESPACE
CONTROL, WORKER = MACHINES = ("control", "worker")
# Silences of a second are long enough for the extender to write on its own pod. Shorter ones would
# let every refusal wake the refused pod, since that write is an event for the scheduler.
SILENT = "--freshness.idle_seconds=1"
STATIC = "koord-extender-control"
COMPONENTS = {"extender": "scheduler", "kube-scheduler": "scheduler"}
"""The component whose pod a container belongs to, where it has another name."""
MINE = "app.kubernetes.io/part-of=koord"


class Nodes:
    """Simulated nodes; when a pod of ours ends there, so does the process that stands for it."""

    def __init__(self, folder):
        self.host = nodefs.HostTree(folder, 16, 64 << 30)
        self.host.set_load(nodefs.SYSTEM, 200, 1 << 30)
        adapter = pci_tree.PciTree(self.host.sys).add_adapter("0000:d8:00.0", "mlx5_0")
        self.port = adapter / "infiniband/mlx5_0/ports/1/state"
        self.processes = {}

    @property
    def hooks(self):
        return kubelet.Hooks(on_pod_started=self._started, on_pod_stopped=self._stopped)

    def _started(self, node, pod):
        if node == WORKER:
            read = msgspec.convert(pod, core.Pod)
            ids = [
                pod_states.container_id(pod, one.name).partition("://")[2]
                for one in read.spec.containers
            ]
            self.host.add_pod(read.metadata.uid, qos.kubernetes_qos(read), ids)

    def _stopped(self, node, pod):
        for child in self.processes.pop(pod["metadata"]["name"], ()):
            # At once, so that nothing is written after the pod is gone.
            os.killpg(child.pid, signal.SIGKILL)
        if node == WORKER:
            self.host.remove_pod(pod["metadata"]["uid"])


def decides(file, url):
    """Flags by which the extender knows the scheduler that calls it."""
    return (
        f"--scheduler.config-file={file}",
        f"--scheduler.version={builds.version()}",
        f"--scheduler.extender-url={url}",
    )


class Installation:
    """One installation on one control plane, from the chart to processes that work."""

    def __init__(self, plane, api, kubectl, folder, stack):
        self.plane = plane
        self.api = api
        self.kubectl = kubectl
        self.folder = folder
        self._stack = stack
        self.documents = []
        self.manifests = None
        self.tokens, self.pods = {}, {}
        # Of the extender.
        self.own_pod = ""
        self.nodes = None
        self.kubelets = None
        self.extender = ""
        self.kubelet_token = folder / "kubelet-token"
        self.health = {}
        self._watched = []
        self.called = {}
        """The roles that each component called, by the name of the component."""
        (self.review_port,) = ports.take(1)

    async def install(self, text, mode):
        """Apply rendered manifests and run what they ask for."""
        self.documents = chart.documents(text)
        self.manifests = installed.Manifests(self.documents)
        await installed.apply(self.api, self.kubectl, [d for d in self.documents if not is_hook(d)])
        await self.allowed()
        await self.machines()
        pair = self.beside if mode == "beside" else self.in_place
        await asyncio.gather(
            self.webhook(), self.manager(), pair(), self.agent(), self.descheduler()
        )

    async def allowed(self):
        """Wait until the API server knows what the roles grant; it learns of it by watches."""
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        given = grants.granted([one for one in self.documents if not is_hook(one)])
        questions = [grants.review(grant) for grant in given]

        async def known():
            answers = [await self.api.post(path, question) for question in questions]
            return all(answer["status"]["allowed"] for answer in answers)

        await raw.eventually(known, PATIENCE)

    async def machines(self):
        enter = self._stack.enter_async_context
        clock = clocks.SystemClock()
        plane = self.plane
        self.nodes = Nodes(self.folder / "host")
        client = await enter(
            link.connected(plane.server, plane.ca, plane.token, clock=clock, agent="kubelets")
        )
        options = kubelet.Options(tokens=frozenset({"agent"}))
        self.kubelets = await enter(kubelet.running(client, options, self.nodes.hooks, clock))
        for name in MACHINES:
            await self.kubelets.add(kubelet.Machine(name, cpu=16, memory_gib=64))
        supervisor = await enter(supervise.Supervisor("hosts"))

        async def time_passes():
            while True:
                await clock.sleep(0.5)
                self.nodes.host.advance(0.5)

        async def calls():
            while True:
                await clock.sleep(0.3)
                self._look()

        supervisor.start("time", time_passes)
        supervisor.start("calls", calls)

    def _look(self):
        """Note whom the processes have connections to."""
        roles = {
            url.URL(self.plane.server).port: connections.API_SERVER,
            url.URL(self.kubelets.url(WORKER)).port: connections.KUBELET,
            self.review_port: connections.WEBHOOK,
        }
        if self.extender:
            # Within the pod, where no policy applies.
            roles[url.URL(self.extender).port] = ""
        for component, pid in self._watched:
            ports = connections.opened(pid)
            called = {roles.get(port, f"port {port}") for port in ports} - {""}
            self.called.setdefault(component, set()).update(called)

    async def _run(self, component, kind, container, *flags, node=CONTROL, **place):
        """Run a container of a workload under its account; returns the URL of its health."""
        template = self.manifests.template(kind, f"koord-{component}")
        folder = self.folder / f"{component}-{container}"
        login, pod, token = await installed.login(
            self.plane,
            self.api,
            template,
            component,
            folder,
            placed=lambda pod: self._bind(pod, node),
        )
        self.tokens[component], self.pods[component] = token, pod
        (port,) = ports.take(1)
        health = ("--health.host=127.0.0.1", f"--health.port={port}")
        here = installed.Place(
            folder=folder,
            program=installed.OURS,
            flags=(f"--kubeconfig={login}", *health, *flags),
            fields=(("metadata.name", pod), ("spec.nodeName", node), ("status.hostIP", "::1")),
            **place,
        )
        command = self.manifests.command(template, container, here)
        await self._start(pod, container, command, folder, f"http://127.0.0.1:{port}/readyz")
        self.health[component] = f"http://127.0.0.1:{port}"
        return self.health[component]

    async def page(self, component, word):
        """Wait until the metrics of a process hold a word."""

        async def told():
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"{self.health[component]}/metrics") as answer,
            ):
                return word in await answer.text()

        try:
            await raw.eventually(told, PATIENCE)
        except TimeoutError:
            said = "\n".join(one.tail() for one in self.nodes.processes[self.pods[component]])
            raise AssertionError(f"metrics of {component} lack {word}: {said}") from None

    async def _start(self, pod, name, command, folder, probe):
        child = await installed.start(self._stack, name, command, folder, probe)
        self._watched.append((COMPONENTS.get(name, name), child.pid))
        self.nodes.processes.setdefault(pod, []).append(child)

    async def end(self, component):
        """End a component as a kubelet does, with time to end in order; returns its last lines."""
        ended = self.nodes.processes.pop(self.pods[component])
        for child in ended:
            await child.stop(20.0)
        return "\n".join(child.tail() for child in ended)

    async def _bind(self, pod, node):
        """Do what the cluster's own scheduler would, which does not run here."""
        path = resources.PODS.path(NAMESPACE, pod, "binding")
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target}
        answer = await self.api.call("POST", path, body)
        assert answer.status in (201, 409), answer.message

    async def webhook(self):
        port, folder = self.review_port, self.folder / "served"
        # Nothing routes to Services here but the API server, which is told the address.
        service = resources.SERVICES.path(NAMESPACE, "koord-webhook")
        await self.api.patch(service, {"spec": {"selector": None}})
        await services.point(self.api, NAMESPACE, "koord-webhook", port)
        await self._run(
            "webhook",
            "Deployment",
            "webhook",
            f"--server.port={port}",
            f"--certificates.folder={folder}",
        )
        for resource in (resources.MUTATING_WEBHOOKS, resources.VALIDATING_WEBHOOKS):
            await self.api.wait_until(
                resource.path(name="koord-webhook"), lambda found: found is not None, PATIENCE
            )

    async def manager(self):
        # There is no DNS here that knows Services.
        address = services.own_address()
        flags = {
            "probe-url": f"https://{address}:{self.review_port}",
            "probe-seconds": 1,
            "period-seconds": 0.3,
            "away-seconds": 3,
        }
        words = [f"--admission.{name}={value}" for name, value in flags.items()]
        await self._run("manager", "Deployment", "manager", *words)
        lease = resources.LEASES.path(NAMESPACE, "koordinator-manager")
        await self.api.wait_until(
            lease, lambda found: found and found["spec"].get("holderIdentity"), PATIENCE
        )

    async def descheduler(self):
        file = self.folder / "descheduler-descheduler/configuration/koord-descheduler-config"
        await self._run("descheduler", "Deployment", "descheduler", f"--configuration={file}")
        lease = resources.LEASES.path(NAMESPACE, "koord-descheduler")
        await self.api.wait_until(
            lease, lambda found: found and found["spec"].get("holderIdentity"), PATIENCE
        )

    async def beside(self):
        (port, scheduler) = ports.take(2)
        self.extender = f"http://127.0.0.1:{port}"
        # Plain manifests do not know the version; the chart takes that of the scheduler's image.
        read = self.folder / "scheduler-extender" / "scheduler" / "scheduler.yaml"
        flags = (f"--server.port={port}", SILENT, *decides(read, "http://127.0.0.1:9211"))
        await self._run("scheduler", "Deployment", "extender", *flags)
        self.own_pod = self.pods["scheduler"]
        template = self.manifests.template("Deployment", "koord-scheduler")
        folder = self.folder / "kube-scheduler"
        login, pod, _ = await installed.login(self.plane, self.api, template, "scheduler", folder)

        def edit(_name, text):
            config = yaml.safe_load(text)
            config["clientConnection"]["kubeconfig"] = str(login)
            for entry in config["extenders"]:
                entry["urlPrefix"] = self.extender
            return yaml.safe_dump(config)

        binary = builds.find(builds.version()) / "kube-scheduler"
        here = installed.Place(
            folder=folder,
            program=(str(binary),),
            flags=(
                *("--bind-address=127.0.0.1", f"--secure-port={scheduler}"),
                *(f"--authentication-kubeconfig={login}", f"--authorization-kubeconfig={login}"),
                f"--cert-dir={folder}",
            ),
            edit=edit,
        )
        command = self.manifests.command(template, "kube-scheduler", here)
        probe = f"https://127.0.0.1:{scheduler}/healthz"
        await self._start(pod, "kube-scheduler", command, folder, probe)
        lease = resources.LEASES.path(NAMESPACE, "koord-scheduler")
        await self.api.wait_until(
            lease, lambda found: found and found["spec"].get("holderIdentity"), PATIENCE
        )

    async def in_place(self):
        """The extender as a static pod has it: beside the host's scheduler, with a kubeconfig."""
        (port, health) = ports.take(2)
        self.extender = f"http://127.0.0.1:{port}"
        folder = self.folder / "extender"
        folder.mkdir()
        # The kubelet shows a static pod to the API server under this name.
        mirror = {"metadata": {"name": STATIC}, "spec": {"schedulerName": "none"}}
        mirror["spec"]["containers"] = [{"name": "extender", "image": "koord"}]
        await self.api.post(resources.PODS.path(NAMESPACE), mirror)
        gone = resources.PODS.path(NAMESPACE, STATIC)
        self._stack.push_async_callback(self.api.delete, gone, gracePeriodSeconds="0")
        self.own_pod = STATIC
        token = await accounts.token(self.api, NAMESPACE, "koord-extender")
        self.tokens["scheduler"] = token
        login = self.plane.write_kubeconfig(folder / "login.json", token=token)
        command = (
            *(*installed.OURS, "extender", f"--kubeconfig={login}", f"--server.port={port}"),
            *(f"--health.port={health}", f"--instance={STATIC}", SILENT),
            *decides(folder / "scheduler.yaml", self.extender),
        )
        config = yaml.safe_load((chart.DEPLOY / "scheduler" / "in-place.yaml").read_text())
        for entry in config["extenders"]:
            entry["urlPrefix"] = self.extender
            # Mutual TLS has tests of its own.
            entry.pop("enableHTTPS", None)
            entry.pop("tlsConfig", None)
        (folder / "scheduler.yaml").write_text(yaml.safe_dump(config))
        probe = f"http://127.0.0.1:{health}/readyz"
        await self._start("static", "extender", command, folder, probe)
        await self.plane.start_scheduler(config)
        self._stack.push_async_callback(self.plane.stop_scheduler)

    async def agent(self):
        token = self.kubelet_token
        token.write_text("agent")
        host = self.nodes.host
        url = self.kubelets.url(WORKER).removesuffix("/pods")
        flags = [f"--host.{root}={getattr(host, root)}" for root in ("proc", "sys", "cgroup")]
        await self._run(
            "agent",
            "DaemonSet",
            "agent",
            *flags,
            f"--host.state={self.folder / 'state'}",
            f"--host.lasting={self.folder / 'lasting'}",
            *self._kubelet_folder(),
            f"--kubelet.token-file={token}",
            f"--kubelet.url={url}",
            "--kubelet.verify=off",
            "--kubelet.interval-seconds=1",
            "--kubelet.fall-back-seconds=1",
            node=WORKER,
        )

    def of_kubelet(self):
        """What the chart tells the agent about its kubelet."""
        text = self.manifests.get("ConfigMap", "koord-agent")["data"]["settings.yaml"]
        return yaml.safe_load(text)["kubelet"]

    def _kubelet_folder(self):
        """The flag for the folder of a kubelet that hands out no cpus, if the agent reads it."""
        if "folder" not in self.of_kubelet():
            return ()
        folder = self.folder / "kubelet"
        folder.mkdir()
        notes = {"policyName": "none", "defaultCpuSet": "", "checksum": 1353318690}
        (folder / "cpu_manager_state").write_text(json.dumps(notes))
        return (f"--kubelet.folder={folder}",)


def is_hook(document, when=""):
    """Whether Helm applies this only at that moment; at any without one."""
    found = document["metadata"].get("annotations", {}).get("helm.sh/hook", "")
    return found == when if when else bool(found)
