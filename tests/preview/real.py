"""Runs a case on the whole system in virtual time, and says what `simulate` had said before."""

import dataclasses
import json

from api import names, resources
from cli.quota import changes, cluster, preemptor
from cli.snapshot import reader
from domain.quota.simulation import what_if
from tests import builders
from tests.preview import cases

QUIET_SECONDS = 36.0
"""Longer than a pod that found no node waits until another one like it tries."""
_STEP = 6.0


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """What was said and what happened, by names of pods."""

    starts: frozenset
    said_starts: frozenset
    evictions: frozenset
    said_evictions: frozenset

    @property
    def equal(self):
        return (self.starts, self.evictions) == (self.said_starts, self.said_evictions)

    def difference(self):
        """Return both sides of what differs, in one line."""
        return (
            f"starts {sorted(self.starts)}, said {sorted(self.said_starts)}; "
            f"evicted {sorted(self.evictions)}, said {sorted(self.said_evictions)}"
        )


async def prepare(world):
    """Create what all cases share."""
    for value in cases.PRIORITIES:
        await post(world, resources.PRIORITY_CLASSES, "", {
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": f"preview-{value}"}, "value": value,
        })  # fmt: skip
    # No agent reports these nodes; this is about quotas, not about load.
    entry = {"name": "LoadAwareScheduling", "args": {"filterExpiredNodeMetrics": False}}
    # Reclaim shall come before everything counts as quiet.
    grace = {"name": "ElasticQuota", "args": {"delayEvictTime": "10s"}}
    profile = {"schedulerName": "koord-scheduler", "pluginConfig": [entry, grace]}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    await post(world, resources.CONFIG_MAPS, names.NAMESPACE, {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": names.CONFIG_MAP_SCHEDULER},
        "data": {names.CONFIG_MAP_SCHEDULER: json.dumps(document)},
    })  # fmt: skip


async def run(world, case):
    """Create a case, ask what a change would do, make the change, and look what happened."""
    for name, cores in case.nodes:
        await post(world, resources.NODES, "", builders.a_node(name, cpu=str(cores)))
    for quota in case.quotas:
        await post(world, of(quota), "default", quota)
    await world.pass_time(1.0)
    for pod in case.pods:
        await post(world, resources.PODS, "default", pod)
    await quiet(world)
    before = placed(world)
    said = await predict(world, case)
    for flag in case.flags:
        await change(world, case, flag)
    await quiet(world)
    after = placed(world)
    gone = frozenset(before) - frozenset(after)
    started = frozenset(name for name, node in after.items() if node and not before[name])
    called = {pod["metadata"]["uid"]: pod["metadata"]["name"] for pod in said.raw}
    return Result(
        started,
        frozenset(called[one.uid] for one in said.outcome.starts),
        gone,
        frozenset(called[one.uid] for one in said.outcome.evictions),
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Said:
    outcome: what_if.Outcome
    raw: tuple


async def predict(world, case):
    """Return what `koord simulate quota` says of the changes, on the state of this moment."""
    async with world.flowing():
        snapshot = await reader.taken(world.kube, world.clock)
    found = cluster.build(snapshot)
    changed = changes.apply(found.forest, found.quotas, case.flags)
    played = dataclasses.replace(found, forest=changed.forest)
    outcome = preemptor.play(played, 3600.0, {}, changed.more)
    return Said(outcome, snapshot.of(resources.PODS))


async def change(world, case, flag):
    """Make a change through the API."""
    left, _, value = flag.partition("=")
    name, field, *key = left.split(".")
    quota = next(one for one in case.quotas if one["metadata"]["name"] == name)
    spec = {field: int(value)} if not key else {field: {key[0]: value}}
    async with world.flowing():
        await world.api.patch(of(quota).path("default", name), {"spec": spec})


async def clear(world, case):
    """Delete what a case has created."""
    for name in placed(world):
        await remove(world, resources.PODS, "default", name)
    for quota in case.quotas:
        await remove(world, of(quota), "default", quota["metadata"]["name"])
    for name, _ in case.nodes:
        await remove(world, resources.NODES, "", name)
    await world.pass_time(1.0)


async def quiet(world):
    """Let time pass until nothing has moved for a while."""
    seen, since = None, 0.0
    while since < QUIET_SECONDS:
        await world.pass_time(_STEP)
        present = placed(world)
        since = since + _STEP if present == seen else 0.0
        seen = present


def placed(world):
    """Return the node of every pod, by name; empty for one that waits."""
    return {
        pod["metadata"]["name"]: pod["spec"].get("nodeName", "")
        for pod in world.pods()
        if pod["metadata"]["namespace"] == "default"
    }


def of(quota):
    return next(one for one in resources.QUOTA_RESOURCES if one.api_version == quota["apiVersion"])


async def post(world, resource, namespace, body):
    async with world.flowing():
        await world.api.post(resource.path(namespace), body)


async def remove(world, resource, namespace, name):
    async with world.flowing():
        query = {"gracePeriodSeconds": "0"}
        answer = await world.api.call("DELETE", resource.path(namespace, name), query=query)
    # Somebody may have been evicted between the look and the call.
    assert answer.status in (200, 202, 404), answer
