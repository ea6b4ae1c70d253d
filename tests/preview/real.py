"""Runs a case on the whole system in virtual time, and says what `simulate` had said before."""

import asyncio
import dataclasses
import json
from typing import NamedTuple

from api import names, resources
from cli.quota import changes, cluster, preemptor
from cli.snapshot import reader
from domain.quota.simulation import what_if
from simulator.apiserver.storage import lifecycle
from tests import builders
from tests.preview import cases

LONG_SECONDS = 120.0
"""Longer than reclaim rests for a quota after an eviction."""
QUIET_SECONDS = 36.0
"""Longer than a pod that found no node waits until another one like it tries."""
_NOBODY_WAITS_SECONDS = 6.0
_FLUSH_SECONDS = 25.0
"""Instead of five minutes."""
_STEP = 6.0
_RENEWED_SECONDS = 6.0


RACES = {
    "kube-scheduler called preempt after the extender had made a plan of its own; which of both"
    " comes first is open where some nodes lack room and on others only the quota refuses": {
        "own_first": True
    },
    "pods whose gates the change has opened came before a pod that no node had taken: a change of"
    " quotas alone wakes such a pod a moment later": {"refused": what_if.Refused.TRIED_LAST},
    "pods whose gates the change has opened came before a pod that no node had taken, which was"
    " tried again when a pod left": {"refused": what_if.Refused.SLEEP},
}
"""What may happen in either order: why, and how it is played the other way round."""


class Events(NamedTuple):
    """Who started and runs on, and who was evicted, by names of pods."""

    starts: frozenset
    evictions: frozenset

    def __str__(self):
        return f"starts {sorted(self.starts)}, evicted {sorted(self.evictions)}"


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """What was said and what happened."""

    said: Events
    happened: Events
    why: str = ""
    """Why something else happened, empty where that is not known."""

    @property
    def equal(self):
        return self.said == self.happened

    @property
    def eventful(self):
        return any(self.happened)

    def difference(self):
        """Return both sides of what differs, in one line."""
        return f"{self.happened}; said were {self.said}"


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
    start_pods(world)
    # What the scheduler tries again after a while shall be tried before everything counts as quiet.
    world.plane.scheduler.queue.flush_seconds = _FLUSH_SECONDS
    # Admission lets pods wait once it has seen the lease of the gate opener renewed.
    await world.pass_time(_RENEWED_SECONDS)


def start_pods(world):
    """Say of every pod with a node that it runs, and since when, as a kubelet does."""
    objects, loop = world.plane.objects, asyncio.get_running_loop()

    def start(name, since):
        def change(pod):
            pod["status"] |= {"phase": "Running", "startTime": since}

        if objects.find(resources.PODS, name, "default") is not None:
            objects.modify(resources.PODS, name, "default", change)

    def follow(event):
        pod = event.object
        ours = event.key[:2] == (resources.PODS.group, resources.PODS.plural)
        if not ours or event.type == "DELETED" or pod["metadata"]["namespace"] != "default":
            return
        if pod["spec"].get("nodeName") and "startTime" not in pod["status"]:
            loop.call_soon(start, pod["metadata"]["name"], lifecycle.timestamp(world.clock.now()))

    objects.subscribe(follow)


async def run(world, case):
    """Create a case, ask what a change would do, make the change, and look what happened."""
    for name, cores in case.nodes:
        await post(world, resources.NODES, "", builders.a_node(name, cpu=str(cores)))
    for quota in case.quotas:
        await post(world, of(quota), "default", quota)
    await world.pass_time(1.0)
    for pod in case.pods:
        # Of pods that started in the same second kube-scheduler may evict either.
        await world.pass_time(1.0)
        made = await post(world, resources.PODS, "default", pod)
        gated = {"name": names.GATE_QUOTA} in made["spec"].get("schedulingGates", ())
        assert gated or names.LABEL_QUOTA_NAME not in pod["metadata"]["labels"]
    await quiet(world)
    before = placed(world)
    asked = await question(world, case)
    said = asked.answer()
    change(world, case)
    await quiet(world)
    happened = events(before, placed(world))
    if happened != said:
        await quiet(world, LONG_SECONDS)
        happened = events(before, placed(world))
    races = RACES.items() if said != happened else ()
    why = next((why for why, other in races if asked.answer(**other) == happened), "")
    return Result(said, happened, why)


def events(before, after):
    """Return who started and who was evicted between two looks at all pods."""
    return Events(
        frozenset(name for name, node in after.items() if node and not before[name]),
        frozenset(before) - frozenset(after),
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Question:
    """A cluster with changed quotas, as `koord simulate quota` plays it."""

    cluster: cluster.Cluster
    changed: changes.Changed
    names: dict
    """Of pods, by uid."""

    def answer(self, **how):
        """Return what is said."""
        played = dataclasses.replace(self.cluster, forest=self.changed.forest)
        outcome = preemptor.play(played, 3600.0, {}, self.changed.more, **how)
        started = {self.names[one.uid] for one in outcome.starts}
        evicted = frozenset(self.names[one.uid] for one in outcome.evictions)
        return Events(frozenset(started - evicted), evicted)


async def question(world, case):
    """Return the question what the changes would do to the state of this moment."""
    async with world.flowing():
        snapshot = await reader.taken(world.kube, world.clock)
    found = cluster.build(snapshot)
    changed = changes.apply(found.forest, found.quotas, case.flags)
    called = {
        one["metadata"]["uid"]: one["metadata"]["name"] for one in snapshot.of(resources.PODS)
    }
    return Question(found, changed, called)


def change(world, case):
    """Make all changes at one moment, as the question has them.

    Made through the API, one after the other, the first might let a pod go that the second holds.
    """
    for flag in case.flags:
        left, _, value = flag.partition("=")
        name, field, *key = left.split(".")
        quota = next(one for one in case.quotas if one["metadata"]["name"] == name)
        stored = world.plane.objects.get(of(quota), name, "default")
        amount = {**stored["spec"].get(field, {}), key[0]: value} if key else int(value)
        spec = {**stored["spec"], field: amount}
        world.plane.objects.update(of(quota), {**stored, "spec": spec})


async def clear(world, case):
    """Delete what a case has created."""
    for name in placed(world):
        await remove(world, resources.PODS, "default", name)
    for quota in case.quotas:
        await remove(world, of(quota), "default", quota["metadata"]["name"])
    for name, _ in case.nodes:
        await remove(world, resources.NODES, "", name)
    await world.pass_time(1.0)


async def quiet(world, seconds=QUIET_SECONDS):
    """Let time pass until nothing has moved for a while."""
    seen, since, enough = None, 0.0, seconds
    while since < enough:
        await world.pass_time(_STEP)
        present = placed(world)
        since = since + _STEP if present == seen else 0.0
        # Only for a pod that waits anything happens later.
        enough = _NOBODY_WAITS_SECONDS if all(present.values()) else seconds
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
        return await world.api.post(resource.path(namespace), body)


async def remove(world, resource, namespace, name):
    async with world.flowing():
        query = {"gracePeriodSeconds": "0"}
        answer = await world.api.call("DELETE", resource.path(namespace, name), query=query)
    # Somebody may have been evicted between the look and the call.
    assert answer.status in (200, 202, 404), answer
