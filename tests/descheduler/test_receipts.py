"""A move has a receipt from its decision on, and a profile whose moves do not pay is halted."""

import json

from api import names, resources
from api.wire import durations
from descheduler.receipts.settings import ReceiptSettings
from tests import builders as objects

CONFIGURATION = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerConfiguration
deschedulingInterval: 100s
maxNoOfPodsToEvictTotal: 1
profiles:
- name: even
  plugins:
    balance: {enabled: [{name: LowNodeLoad}]}
  pluginConfig:
  - name: LowNodeLoad
    args:
      lowThresholds: {cpu: 40}
      highThresholds: {cpu: 60}
      anomalyCondition: {consecutiveAbnormalities: 1, consecutiveNormalities: 1}
  - name: MigrationController
    args: {schedulerNames: [default-scheduler], defaultJobMode: EvictDirectly}
"""
SETTINGS = ReceiptSettings(settle_seconds=60, least_moves=1)
MEMORY = names.CONFIG_MAP_DESCHEDULER_MEMORY


class Cluster:
    """Three nodes of ten cores, of which one is hot."""

    def __init__(self, world):
        self.world = world
        self.owner = {}

    async def fill(self):
        world = self.world
        await world.create(resources.NODES, *(objects.a_node(f"n{i}", cpu="10") for i in range(3)))
        template = {"metadata": {"labels": {"app": "web"}}}
        template["spec"] = {"containers": [{"name": "app", "image": "i"}]}
        spec = {"replicas": 4, "selector": {"matchLabels": {"app": "web"}}, "template": template}
        metadata = {"name": "web", "namespace": "default"}
        await world.create(resources.REPLICA_SETS, {"metadata": metadata, "spec": spec})
        uid = world.stored(resources.REPLICA_SETS, "web")["metadata"]["uid"]
        self.owner = {"kind": "ReplicaSet", "name": "web", "uid": uid, "apiVersion": "apps/v1"}
        for number in range(4):
            await self.pod(f"web-{number}", "n0")
        # Pods that are as young as a move may be what it has brought.
        await world.pass_time(5)
        for number in range(3):
            await world.create(resources.NODE_METRICS, objects.a_node_metric(f"n{number}"))
        await self.measure()

    async def pod(self, name, node):
        labels = {"app": "web"}
        pod = objects.a_pod(name, node=node, owner=self.owner, labels=labels)
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        await self.world.create(resources.PODS, pod)

    async def measure(self, **system):
        """Each pod uses two cores, and the system half of one unless it is said."""
        on = {f"n{number}": [] for number in range(3)}
        for pod in self.world.stored(resources.PODS):
            metric = objects.a_pod_metric(pod["metadata"]["name"], cpu="2", memory="1Gi")
            on[pod["spec"]["nodeName"]].append(metric)
        for name, pods in on.items():
            used = {"cpu": system.get(name, "500m"), "memory": "1Gi"}
            now = self.world.clock.now()
            metric = objects.a_node_metric(name, system=used, pods=pods, update_time=now)
            await self.world.status(resources.NODE_METRICS, name, metric["status"])

    async def replace(self, job):
        """Let the pod of a job be where it was to go, as the replica set and scheduler would."""
        notes = job["metadata"]["annotations"]
        name, target = job["spec"]["podRef"]["name"], notes[names.ANNOTATION_MIGRATION_TARGET]
        await self.world.admin.delete(resources.PODS, name, "default")
        await self.pod("web-new", target)
        new = self.world.stored(resources.PODS, "web-new")["metadata"]
        done = {"type": "Eviction", "status": "True", "reason": "EvictComplete"}
        done["lastTransitionTime"] = durations.moment(self.world.clock.now())
        status = {"phase": "Succeeded", "conditions": [done]}
        status["podRef"] = {"namespace": "default", "name": "web-new", "uid": new["uid"]}
        await self.world.status(resources.POD_MIGRATION_JOBS, job["metadata"]["name"], status)

    def receipt(self):
        (job,) = self.world.stored(resources.POD_MIGRATION_JOBS)
        return json.loads(job["metadata"]["annotations"][names.ANNOTATION_MIGRATION_RECEIPT])


async def moved(world, cluster):
    """Wait for a move, and let it be carried out."""
    (job,) = await world.until(lambda: world.stored(resources.POD_MIGRATION_JOBS))
    await world.admin.patch(
        resources.POD_MIGRATION_JOBS, job["metadata"]["name"], {"spec": {"paused": True}}
    )
    expected = cluster.receipt()
    await cluster.replace(job)
    return expected


async def test_a_move_that_pays(world, tmp_path):
    cluster = Cluster(world)
    await cluster.fill()
    async with world.descheduler(tmp_path, CONFIGURATION, receipts=SETTINGS) as running:
        expected = await moved(world, cluster)
        assert expected["before"] == {
            "source": {"cpu": 85.0, "memory": 7.8},
            "target": {"cpu": 5.0, "memory": 1.6},
        }
        assert expected["expected"]["source"]["cpu"] == 65.0
        assert expected["profile"] == "even"
        await world.pass_time(40)
        await cluster.measure()
        await world.pass_time(40)
        told = await world.until(lambda: cluster.receipt().get("outcome"))
        assert running.health.warnings().get("profiles") is None
    assert (told["verdict"], told["now"]["source"]["cpu"]) == ("Paid", 65.0)
    assert cluster.receipt()["sentence"].startswith("paid: n0 cpu 85 % → 65 %")


async def test_a_profile_whose_moves_do_not_pay_is_halted_also_after_a_restart(world, tmp_path):
    cluster = Cluster(world)
    await cluster.fill()
    async with world.descheduler(tmp_path, CONFIGURATION, receipts=SETTINGS) as running:
        expected = await moved(world, cluster)
        await world.pass_time(40)
        target = expected["target"]
        # Something else has made the target hotter than the node that was left.
        await cluster.measure(**{target: "7500m"})
        await world.pass_time(40)
        told = await world.until(lambda: cluster.receipt().get("outcome"))
        assert told["verdict"] == "NotPaid"
        assert "halted until" in running.health.warnings()["profiles"]
        await cluster.measure()
        await world.pass_time(31)
        assert "profile even is halted" in running.rounds.last.message
        assert "would move" in running.rounds.last.message
    assert len(world.stored(resources.POD_MIGRATION_JOBS)) == 1
    (memory,) = [
        one for one in world.stored(resources.CONFIG_MAPS) if one["metadata"]["name"] == MEMORY
    ]
    assert "even" in json.loads(memory["data"]["memory.json"])["breakers"]
    async with world.descheduler(tmp_path, CONFIGURATION, receipts=SETTINGS) as running:
        await world.until(lambda: running.rounds.last.plan)
        assert "profile even is halted" in running.rounds.last.message
