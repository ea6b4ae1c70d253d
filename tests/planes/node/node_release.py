"""The chart, installed with Helm on an empty cluster of one real node.

Nothing schedules pods there but those who test it, so they decide which part starts when.
"""

import asyncio
import contextlib
import dataclasses

from api import names, resources
from api.wire import quantity
from domain.lending import colocation
from tests.e2e import binaries
from tests.planes import raw, real
from tests.planes.install import chart
from tests.planes.node import node, node_cluster, node_files, node_services

NODE = "installed-1"
RELEASE = "koordinator"
PODS = resources.PODS.path(names.NAMESPACE)
PATIENCE = node_cluster.PATIENCE
SCHEDULER = "localhost/koord-test/kube-scheduler"
PROXY = "runtime-proxy"
PARTS = (
    *("agent", "descheduler", "device-daemon", "manager", PROXY, "scheduler"),
    *("webhook", "webhook"),
)
"""Every component, by the label of its pods; of the webhook there are two."""
WEBHOOKS = (resources.MUTATING_WEBHOOKS, resources.VALIDATING_WEBHOOKS)
MADE = (
    resources.NODE_SLOS,
    resources.NODE_METRICS,
    resources.NODE_RESOURCE_TOPOLOGIES,
)
"""Kinds whose objects our processes make."""
ENDED = ("Succeeded", "Failed")
SOCKET = "/run/koord-runtimeproxy/runtimeproxy.sock"
VALUES = (
    "image.pullPolicy=Never",
    "log.format=text",
    f"scheduler.image.repository={SCHEDULER}",
    "scheduler.image.pullPolicy=Never",
    "scheduler.replicas=1",
    "manager.replicas=1",
    "descheduler.replicas=1",
    "webhook.replicas=2",
    "deviceDaemon.enabled=true",
    "agent.settings.kubelet.intervalSeconds=1",
    # Its processors are those of the machine, where other work is done meanwhile.
    "scheduler.config.pluginConfig[0].name=LoadAwareScheduling",
    "scheduler.config.pluginConfig[0].args.usageThresholds.cpu=0",
)


@dataclasses.dataclass(frozen=True)
class Release:
    """What a test of the installed chart talks to."""

    api: raw.Api
    node: node.Node
    image: str
    login: object
    """The kubeconfig of an administrator."""

    async def helm(self, *words):
        """Run Helm on the release's namespace."""
        place = ("--kubeconfig", str(self.login), "--namespace", names.NAMESPACE)
        return await asyncio.to_thread(chart.helm, *words, *place)

    async def install(self):
        """Install the chart on a cluster that knows nothing of it."""
        repository, _, tag = self.image.rpartition(":")
        values = [f"image.repository={repository}", f"image.tag={tag}", *VALUES]
        values += node_cluster.lending()
        values.append(f"scheduler.image.tag=v{binaries.version()}")
        words = [word for one in values for word in ("--set", one)]
        await self.helm("install", RELEASE, str(chart.CHART), "--create-namespace", *words)

    async def pods(self, component):
        """The pods of a component."""
        label = f"app.kubernetes.io/component={component}"
        return (await self.api.get(PODS, labelSelector=label))["items"]

    async def start(self, component):
        """Do what a scheduler would; returns the name of the pod."""
        if component == PROXY:
            await self.api.call("DELETE", f"{PODS}/{PROXY}")
            await self.api.post(PODS, proxy(self.image))
            return PROXY

        async def waiting():
            found = await self.pods(component)
            return [one for one in found if not one["spec"].get("nodeName")]

        name = (await raw.eventually(waiting, PATIENCE))[0]["metadata"]["name"]
        target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        await self.api.post(resources.PODS.path(names.NAMESPACE, name, "binding"), body)
        return name

    async def runs(self, name):
        """Wait until every container of a pod has started."""
        await self.api.wait_until(f"{PODS}/{name}", node_cluster.runs, PATIENCE)

    async def ready(self, name):
        """Wait until a pod is ready, with every container in its first life."""
        try:
            found = await self.api.wait_until(f"{PODS}/{name}", is_ready, PATIENCE)
        except AssertionError as late:
            said = await self.said(name)
            raise AssertionError(f"{late}\n{said}") from late
        statuses = found["status"]["containerStatuses"]
        if any(one["restartCount"] for one in statuses):
            raise AssertionError(f"{name} started more than once\n{self._written(found)}")
        return found

    async def said(self, name):
        """What every container of a pod has written."""
        return self._written(await self.api.get(f"{PODS}/{name}"))

    def _written(self, pod):
        listed = [one["name"] for one in pod["spec"]["containers"]]
        return "\n".join(f"--- {one}\n{self.node.pod_log(pod, one)}" for one in listed)

    async def helm_with_pod(self, component, *words):
        """Run a command of Helm that waits for a pod of its own; return what both said."""
        return await asyncio.gather(
            self.helm(*words, f"--timeout={PATIENCE:.0f}s"), self._life(component)
        )

    async def _life(self, component):
        """Start a pod that ends by itself; returns what it said. Helm removes it when it ended."""
        name = await self.start(component)
        pod = await self.api.get(f"{PODS}/{name}")
        said = [""]

        async def ended():
            found = await self.api.call("GET", f"{PODS}/{name}")
            if found.status == 200:
                said[0] = self._written(pod) or said[0]
            return found.status == 404 or found.body["status"]["phase"] in ENDED

        await raw.eventually(ended, PATIENCE)
        return said[0]

    async def figures(self, component, name):
        """The sum of a figure of each pod of a component, whatever its labels."""
        found = []
        for pod in await self.pods(component):
            ports = pod["spec"]["containers"][0]["ports"]
            (port,) = (one["containerPort"] for one in ports if one["name"] == "metrics")
            url = f"http://{pod['status']['podIP']}:{port}/metrics"
            status, text = await self.node.command(self.node.busybox, "wget", "-q", "-O", "-", url)
            assert status == 0, text
            lines = [line for line in text.splitlines() if line.startswith(f"{name}{{")]
            found.append(sum(float(line.rpartition(" ")[2]) for line in lines))
        return found

    async def result(self):
        """What all components together have made of the cluster, without names and times."""
        api = self.api
        slo = await api.wait_until(resources.NODE_SLOS.path(name=NODE), bool, PATIENCE)
        metrics = resources.NODE_METRICS.path(name=NODE)
        metric = await api.wait_until(metrics, _reported, PATIENCE)
        topology = resources.NODE_RESOURCE_TOPOLOGIES.path(name=NODE)
        zones = await api.wait_until(topology, bool, PATIENCE)
        found = await raw.eventually(self._lends, PATIENCE)
        leases = (await api.get(resources.LEASES.path(names.NAMESPACE)))["items"]
        return {
            "node": [found["status"]["allocatable"], sorted(found["metadata"]["labels"])],
            "slo": slo["spec"],
            "metric": metric["spec"],
            "topology": [zones["topologyPolicies"], [zone["name"] for zone in zones["zones"]]],
            "leases": sorted(one["metadata"]["name"] for one in leases),
            "webhooks": [await self._webhooks(one) for one in WEBHOOKS],
        }

    async def _lends(self):
        """The node, once it lends what the requests of all its pods leave.

        Before, it lends what it lent when some of them had not come yet: a small change waits.
        """
        found = await self.api.get(resources.NODES.path(name=NODE))
        listed = (await self.api.get(resources.PODS.path()))["items"]
        requested = sum(
            quantity.milli(container["resources"].get("requests", {}).get("cpu", 0))
            for pod in listed
            if pod["spec"].get("nodeName") == NODE and pod["status"]["phase"] not in ENDED
            for container in pod["spec"]["containers"]
        )
        offered = found["status"]["allocatable"]
        percent = node_cluster.COLOCATION["overcommitPercent"]
        lent = colocation.lendable(quantity.milli(offered["cpu"]), requested, percent)
        return found if lent and offered.get(names.BATCH_CPU) == str(lent) else None

    async def _webhooks(self, resource):
        found = await self.api.wait_until(resource.path(name="koord-webhook"), bool, PATIENCE)
        for one in found["webhooks"]:
            # The certificate is another one each time.
            assert one["clientConfig"].pop("caBundle")
        return found["webhooks"]

    async def forget(self):
        """End every pod of ours at once, and take away what they have made; new pods wait."""
        await self.api.delete(PODS, gracePeriodSeconds="0")
        above = self.node.group("cpu", "kubepods")

        async def ended():
            # A process that still runs would renew its Lease, and its successor would wait for it.
            return not any(above.glob("**/pod*"))

        await raw.eventually(ended, PATIENCE)
        for resource in (*WEBHOOKS, *MADE):
            await self.api.delete(resource.path())
        await self.api.delete(resources.LEASES.path(names.NAMESPACE))
        gone = {"status": {"allocatable": dict.fromkeys(names.BATCH_RESOURCES)}}
        await self.api.patch(resources.NODES.path(name=NODE, subresource="status"), gone)


def _reported(found):
    return found and (found.get("status") or {}).get("nodeMetric")


def is_ready(pod):
    """Whether a pod is there and ready."""
    return pod is not None and node_cluster.is_ready(pod)


def proxy(image):
    """The CRI proxy as a pod of the image: a second socket beside the runtime's own."""
    mounts = {"runtime": "/run/containerd", "proxy": "/run/koord-runtimeproxy"}
    probe = {"httpGet": {"path": "/readyz", "port": 9319}, "periodSeconds": 1}
    return {
        "metadata": {"name": PROXY, "labels": {"app.kubernetes.io/component": PROXY}},
        "spec": {
            "nodeName": NODE,
            "automountServiceAccountToken": False,
            "containers": [
                {
                    "name": PROXY,
                    "image": image,
                    "imagePullPolicy": "Never",
                    "args": [
                        PROXY,
                        f"--koord-runtimeproxy-endpoint={SOCKET}",
                        f"--remote-runtime-service-endpoint={node.CONTAINERD}",
                        "--health.host=0.0.0.0",
                    ],
                    "readinessProbe": probe,
                    # Sockets of runtimes belong to root.
                    "securityContext": {"runAsUser": 0, "readOnlyRootFilesystem": True},
                    "volumeMounts": [
                        *({"name": name, "mountPath": path} for name, path in mounts.items()),
                        {"name": "tmp", "mountPath": "/tmp"},
                    ],
                }
            ],
            "volumes": [
                *(
                    {"name": name, "hostPath": {"path": path, "type": "DirectoryOrCreate"}}
                    for name, path in mounts.items()
                ),
                {"name": "tmp", "emptyDir": {}},
            ],
        },
    }


async def load(real_node, image):
    """Bring the images that the chart names to the node."""
    name = f"{SCHEDULER}:v{binaries.version()}"
    file = real_node.workdir / "kube-scheduler.tar"
    program = binaries.find(binaries.version()) / "kube-scheduler"
    command = ["kube-scheduler"]
    node_files.archive(file, name, program, command, called="kube-scheduler", applets=())
    await real_node.load(file)
    file.unlink()
    await real_node.load(image)


@contextlib.asynccontextmanager
async def running(folder, programs, image):
    """An empty cluster whose API server reaches the pods of its one node; and their images.

    `image` is the archive of ours and its name.
    """
    archive, name = image
    flag, socket = node_services.egress(folder / "egress")
    options = {
        "node_lifecycle": True,
        "users": [node.user(NODE)],
        "apiserver_flags": ["--enable-admission-plugins=NodeRestriction", flag],
    }
    control_plane = binaries.build(binaries.version())
    loop = asyncio.get_running_loop()
    async with contextlib.AsyncExitStack() as stack:
        enter = stack.enter_async_context
        plane = await enter(real.running(control_plane, folder / "plane", **options))
        real_node = await enter(node.running(NODE, folder / "node", programs, plane))
        await enter(node_services.proxying(socket, real_node.pid))
        served = await enter(node_services.naming(loop, real_node))
        api = await enter(raw.connected(plane.server, plane.ca, plane.token))
        login = plane.binaries.write_kubeconfig(folder / "admin.json")
        made = Release(api, real_node, name, login)
        await asyncio.gather(load(real_node, archive), made.install())
        webhook = (names.NAMESPACE, "koord-webhook")
        await enter(node_services.reachable(api, real_node, served, *webhook))
        yield made
