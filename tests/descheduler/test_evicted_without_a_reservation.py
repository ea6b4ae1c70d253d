"""EvictDirectly keeps no place: a pod that fits nowhere leaves only where its plug-in lets it."""

import pytest

from api import resources
from tests import builders as objects

CONFIGURATION = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerConfiguration
deschedulingInterval: 10s
profiles:
- name: even
  plugins:
    balance: {enabled: [{name: LowNodeLoad}]}
  pluginConfig:
  - name: LowNodeLoad
    args:
      nodeFit: FITS
      lowThresholds: {cpu: 40}
      highThresholds: {cpu: 60}
      anomalyCondition: {consecutiveAbnormalities: 1}
  - name: MigrationController
    args: {schedulerNames: [default-scheduler], defaultJobMode: EvictDirectly}
"""
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def term(app):
    selector = {"matchLabels": {"app": app}}
    return {REQUIRED: [{"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}]}


NOWHERE = {
    "anti-affinity": {"affinity": {"podAntiAffinity": term("db")}},
    "affinity": {"affinity": {"podAffinity": term("cache")}},
    "selector": {"nodeSelector": {"only": "here"}},
}
ANYWHERE = {
    "no affinity": {},
    "anti-affinity to none": {"affinity": {"podAntiAffinity": term("mail")}},
}


async def hot(world, wanted):
    """Three nodes, of which the first is hot; a cache is there, and a database on the others."""
    for number in range(3):
        node = objects.a_node(f"n{number}", cpu="10")
        node["metadata"].setdefault("labels", {})["kubernetes.io/hostname"] = f"n{number}"
        await world.create(resources.NODES, node)
        app = "db" if number else "cache"
        there = objects.a_pod(f"{app}-{number}", node=f"n{number}", labels={"app": app})
        await world.create(resources.PODS, there)
    template = {"metadata": {"labels": {"app": "web"}}}
    template["spec"] = {"containers": [{"name": "app", "image": "i"}]}
    spec = {"replicas": 5, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    metadata = {"name": "web", "namespace": "default"}
    await world.create(resources.REPLICA_SETS, {"metadata": metadata, "spec": spec})
    uid = world.stored(resources.REPLICA_SETS, "web")["metadata"]["uid"]
    owner = {"kind": "ReplicaSet", "name": "web", "uid": uid, "apiVersion": "apps/v1"}
    usages = []
    for number in range(4):
        pod = objects.a_pod(f"web-{number}", node="n0", owner=owner, labels={"app": "web"})
        pod["spec"] |= wanted
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        await world.create(resources.PODS, pod)
        usages.append(objects.a_pod_metric(f"web-{number}", cpu="2", memory="1Gi"))
    for number in range(3):
        used = {"cpu": "500m", "memory": "1Gi"}
        pods, now = ([] if number else usages), world.clock.now()
        metric = objects.a_node_metric(f"n{number}", system=used, pods=pods, update_time=now)
        await world.create(resources.NODE_METRICS, metric)


def stays(pod):
    return "deletionTimestamp" not in pod["metadata"]


@pytest.mark.parametrize("finds_targets", [True, False], ids=["targets", "no targets"])
@pytest.mark.parametrize(
    ("wanted", "fits", "leaves"),
    [
        *(pytest.param(one, True, False, id=name) for name, one in NOWHERE.items()),
        *(pytest.param(one, False, True, id=f"{name}, off") for name, one in NOWHERE.items()),
        *(pytest.param(one, True, True, id=name) for name, one in ANYWHERE.items()),
    ],
)
async def test_a_pod_leaves(world, tmp_path, wanted, fits, leaves, finds_targets):
    await hot(world, wanted)
    text = CONFIGURATION.replace("FITS", str(fits).lower())
    async with world.descheduler(tmp_path, text, finds_targets=finds_targets) as running:
        plan = await world.until(lambda: running.rounds.last.plan)
        await world.pass_time(8)
    left = [pod for pod in world.stored(resources.PODS) if stays(pod)]
    assert (len(left) < 7) is bool(plan.moves) is leaves
