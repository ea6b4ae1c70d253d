"""A small company's cluster in which something happens on every dashboard, in virtual time."""

from api import names, resources
from cli.dev import pod_load
from descheduler import app as deschedulers
from descheduler import settings as descheduler_settings
from kube.client import access as accesses
from manager import app as managers
from manager import settings as manager_settings
from simulator.kubelet import kubelet
from tests.planes.devices import device_nodes
from tests.system import world as worlds

NODES = ("node-1", "node-2", "node-3")
GPU_NODES = ("gpu-1", "gpu-2")
SPARE = "node-4"
"""It joins while others are busy."""
GPU = "nvidia.com/gpu"
SHAPE = device_nodes.Shape(cores=8, gpus=4)
TEAMS = {"search": ("24", "96Gi", "4"), "ads": ("12", "48Gi", "2")}
DESCHEDULER = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerConfiguration
deschedulingInterval: 30s
profiles:
- name: even
  plugins:
    balance: {enabled: [{name: LowNodeLoad}]}
  pluginConfig:
  - name: LowNodeLoad
    args:
      lowThresholds: {cpu: 40}
      highThresholds: {cpu: 60}
      anomalyCondition: {consecutiveAbnormalities: 2, consecutiveNormalities: 1}
  - name: MigrationController
    args:
      schedulerNames: [default-scheduler, koord-scheduler]
      objectLimiters: {workload: {duration: 10m, burst: 1}}
"""


class Company(worlds.World):
    """The system with a descheduler, and hands that create what teams create."""

    def _manager(self, access):
        chosen = manager_settings.Settings.model_validate({"health": worlds.local()})
        return managers.running(chosen, access=access, clock=self.clock)

    async def assemble(self):
        await super().assemble()
        callers = {names.ANNOTATION_SCHEDULERS: "default-scheduler,koord-scheduler"}
        metadata = {"name": names.CONFIG_MAP_SCHEDULER, "annotations": callers}
        await self.make(resources.CONFIG_MAPS, {"metadata": metadata, "data": {}}, names.NAMESPACE)
        file = self.folder / "descheduler.yaml"
        file.write_text(DESCHEDULER)
        chosen = descheduler_settings.Settings.model_validate(
            {"configuration": file, "mode": "enforce", "health": worlds.local()}
        )

        def running(access):
            return deschedulers.running(chosen, access=access, clock=self.clock)

        await self._add("descheduler", running)

    async def make(self, resource, body, namespace=""):
        """Create one object."""
        head = {"apiVersion": resource.api_version, "kind": resource.kind}
        async with self.flowing():
            return await self.kube.create(resource, {**head, **body}, namespace)

    async def gpu_node(self, name):
        """A node whose device plug-in offers GPUs, and the Device that says which."""
        machine = kubelet.Machine(name, cpu=16, memory_gib=64, extended={GPU: str(SHAPE.gpus)})
        async with self.flowing():
            await self.hosts.add(self.plane.kubelets, machine, accesses.Access(self.plane.server))
        await self.until(lambda: self.lent(name) >= 0, f"{name} lends")
        await self.make(resources.DEVICES, device_nodes.device(name, SHAPE))

    async def work(self, name, cpu, *, labels=None, memory="2Gi", **spec):
        """One pod of a team."""
        amounts = {"cpu": str(cpu), "memory": memory, **spec.pop("more", {})}
        container = {"name": "main", "image": "registry.example/main:1",
                     "resources": {"requests": amounts, "limits": amounts}}  # fmt: skip
        body = {
            "metadata": {"name": name, "labels": labels or {}},
            "spec": {"containers": [container], "terminationGracePeriodSeconds": 0,
                     "priorityClassName": "koord-prod", **spec},
        }  # fmt: skip
        return await self.make(resources.PODS, body, "default")

    async def service(self, name, replicas, cpu):
        """A Deployment of online pods."""
        amounts = {"requests": {"cpu": str(cpu), "memory": "2Gi"}}
        container = {"name": "main", "image": "registry.example/main:1", "resources": amounts}
        pod = {"containers": [container], "terminationGracePeriodSeconds": 0}
        labels = {"app": name}
        template = {"metadata": {"labels": labels},
                    "spec": {**pod, "priorityClassName": "koord-prod"}}  # fmt: skip
        spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
        body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}}
        async with self.flowing():
            path = "/apis/apps/v1/namespaces/default/deployments"
            await self.api.post(path, body | {"spec": spec})


async def play(world):
    """Half an hour: services, batch work, teams with quotas, GPUs, gangs, a hot node."""
    for node in NODES:
        await world.add_node(node)
    for node in GPU_NODES:
        await world.gpu_node(node)
    await world.service("web", 6, 3)
    await world.pass_time(60)
    await _teams(world)
    for number in range(6):
        await world.create(f"batch-{number}", cpu=2 + number % 2, batch=True)
    await world.pass_time(90)
    await _gangs(world)
    await _reservations(world)
    await world.pass_time(90)
    await _gpus(world)
    await world.pass_time(60)
    await _hot(world)
    await world.pass_time(480)


async def _teams(world):
    amounts = ("36", "144Gi", "6")
    quotas = {"company": ("", amounts), **{team: ("company", own) for team, own in TEAMS.items()}}
    for name, (parent, (cpu, memory, gpus)) in quotas.items():
        labels = {names.LABEL_QUOTA_IS_PARENT: "false" if parent else "true"}
        if parent:
            labels[names.LABEL_QUOTA_PARENT] = parent
        least = {"cpu": cpu, "memory": memory, GPU: gpus}
        most = {"cpu": "48", "memory": "192Gi", GPU: "8"}
        body = {"metadata": {"name": name, "labels": labels}, "spec": {"min": least, "max": most}}
        await world.make(resources.ELASTIC_QUOTAS, body, "default")
    for number in range(4):
        await world.work(f"ads-{number}", 4, labels={names.LABEL_QUOTA_NAME: "ads"})
    await world.work("search-0", 4, labels={names.LABEL_QUOTA_NAME: "search"})
    await world.work("ads-large", 46, labels={names.LABEL_QUOTA_NAME: "ads"}, memory="8Gi")


async def _gangs(world):
    for gang, cpu in (("train", 1), ("huge", 15)):
        body = {"metadata": {"name": gang}, "spec": {"minMember": 4}}
        await world.make(resources.POD_GROUPS, body, "default")
        for number in range(4):
            labels = {"pod-group.scheduling.sigs.k8s.io": gang}
            await world.work(f"{gang}-{number}", cpu, labels=labels)


async def _reservations(world):
    owners = [{"labelSelector": {"matchLabels": {"job": "nightly"}}}]
    for name, cpu, more in (("nightly", 2, {}), ("gpus", 1, {GPU: "1"}), ("never", 60, {GPU: "7"})):
        amounts = {"cpu": str(cpu), "memory": "4Gi", **more}
        container = {"name": "c", "image": "i", "resources": {"requests": amounts, "limits": more}}
        template = {"spec": {"containers": [container], "priorityClassName": "koord-prod"}}
        spec = {"template": template, "owners": owners, "ttl": "24h", "allocateOnce": False}
        await world.make(resources.RESERVATIONS, {"metadata": {"name": name}, "spec": spec})
    await world.pass_time(30)
    await world.work("nightly-run", 1, labels={"job": "nightly"})


async def _gpus(world):
    for number, team in enumerate(("search", "ads", "ads")):
        labels = {names.LABEL_QUOTA_NAME: team}
        await world.work(f"infer-{number}", 1, labels=labels, more={GPU: "2"})
    half = {names.GPU_CORE: "50", names.GPU_MEMORY_RATIO: "50"}
    await world.work("notebook", 1, more=half)
    await world.pass_time(60)
    sick = device_nodes.device(GPU_NODES[0], SHAPE, sick=range(SHAPE.gpus))
    async with world.flowing():
        await world.kube.patch(resources.DEVICES, GPU_NODES[0], {"spec": sick["spec"]})


async def _hot(world):
    busy = [pod for pod in world.pods() if pod["spec"].get("nodeName") == NODES[0]
            and pod["metadata"].get("labels", {}).get("app") == "web"]  # fmt: skip
    for pod in busy:
        world.hosts.fix(pod["metadata"]["uid"], pod_load.Use(7000, 1 << 30))
    await world.pass_time(60)
    await world.add_node(SPARE)
