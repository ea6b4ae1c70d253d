import contextlib
import json

from api import names, resources
from descheduler.informers import watched
from descheduler.model import objects as model
from descheduler.model import pod_object
from kube.client import wire
from process.runtime import supervise
from tests import builders as objects


@contextlib.asynccontextmanager
async def watching(world):
    async with world.client("koord-descheduler") as api, supervise.Supervisor("test") as tasks:
        found = watched.Watched(api, world.clock, names.NAMESPACE)
        found.start(tasks)
        await found.members.synced()
        yield found


def owned(kind, name, owner=None, **spec):
    metadata = {"name": name, "namespace": "default"}
    if owner is not None:
        reference = {"apiVersion": "apps/v1", "kind": owner["kind"], "controller": True}
        named = {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
        metadata["ownerReferences"] = [{**reference, **named}]
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    selector = {"matchLabels": {"app": name}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": metadata,
        "spec": {"selector": selector, "template": template, **spec},
    }


async def test_what_a_round_sees_of_a_cluster(world):
    await world.create(resources.NODES, objects.a_node("n1", cpu="8"))
    await world.create(resources.DEPLOYMENTS, owned("Deployment", "web", replicas=5))
    deployment = world.stored(resources.DEPLOYMENTS, "web")
    await world.create(resources.REPLICA_SETS, owned("ReplicaSet", "web-1", deployment, replicas=2))
    replica_set = world.stored(resources.REPLICA_SETS, "web-1")
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1"}
    owner["uid"] = replica_set["metadata"]["uid"]
    await world.create(resources.PODS, objects.a_pod("web-1-a", node="n1", owner=owner))
    usage = objects.a_pod_metric("web-1-a", cpu="2", memory="1Gi")
    await world.create(
        resources.NODE_METRICS, objects.a_node_metric("n1", system={"cpu": "1"}, pods=[usage])
    )
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1},
    }
    await world.create(resources.POD_DISRUPTION_BUDGETS, budget)
    job = {
        "apiVersion": "scheduling.koordinator.sh/v1alpha1",
        "kind": "PodMigrationJob",
        "metadata": {"name": "j"},
        "spec": {"podRef": {"namespace": "default", "name": "web-1-a"}},
    }
    async with watching(world) as found:
        before = found.picture(7.0)
        await world.create(resources.POD_MIGRATION_JOBS, job)
        await world.until(lambda: "j" in found.jobs)
        seen = found.picture(8.0)
    assert (before.now, before.jobs) == (7.0, {})
    (pod,) = seen.pods.values()
    assert seen.on_node == {"n1": (pod,)}
    assert seen.by_controller == {owner["uid"]: (pod,)}
    assert seen.nodes["n1"].allocatable["cpu"] == 8000
    assert seen.usage["n1"].by_pod == {pod.key: {"cpu": 2000, "memory": 1 << 30}}
    assert seen.workloads[owner["uid"]].replicas == 5
    assert [one.selector for one in seen.budgets] == [budget["spec"]["selector"]]
    assert seen.jobs["j"].pod_key == pod.key
    assert names.NAMESPACE in seen.namespaces


async def test_what_keeps_pods_where_they_are(world):
    kept = {"name": "kept", "annotations": {names.ANNOTATION_EXEMPT: "true"}}
    await world.create(resources.NAMESPACES, {"metadata": kept})
    priority = {"metadata": {"name": "high"}, "value": 9000}
    await world.create(resources.PRIORITY_CLASSES, priority)
    group = {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 3}}
    await world.create(resources.POD_GROUPS, group)
    async with watching(world) as found:
        await world.until(lambda: found.picture(0.0).gangs)
        seen = found.picture(0.0)
    assert seen.exempt_namespaces == {"kept"}
    assert seen.priorities["high"] == 9000
    assert seen.gangs == {"default/g": model.Gang("default/g", 3)}


async def test_a_pod_that_cannot_be_read_keeps_its_room_and_hides_no_other_one(world):
    odd = objects.a_pod("odd", node="n1")
    odd["metadata"]["creationTimestamp"] = "a long time ago"
    await world.create(resources.PODS, objects.a_pod("good", node="n1"))
    async with watching(world) as found:
        stored = world.stored(resources.PODS, "good")
        reader = wire.Reader(pod_object.Pod, found.all_pods.project)
        line = {"type": "ADDED", "object": {**odd, "metadata": {**odd["metadata"], "uid": "odd"}}}
        item = reader.event(json.dumps(line).encode()).item
        found.all_pods.put(item.meta, item.value)
        seen = found.picture(0.0)
    assert stored["metadata"]["uid"] in seen.pods
    good, odd = seen.on_node["n1"]
    assert (good.flaw, odd.name) == ("", "odd")
    assert "a long time ago" in odd.flaw
    assert odd.requests["cpu"] == 1000
