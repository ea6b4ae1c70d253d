"""`koord explain` on the running system: cause, figures and remedy of what really happened."""

import json
import re

import pytest

from api import names, resources
from cli.commands import explain
from cli.dev import pod_load
from cli.explain import stories, story_sources


@pytest.fixture
async def node(world):
    """A node of 16 cores with one online service."""
    await world.add_node("a")
    pod = await world.create("web", cpu=8, node="a")
    world.hosts.fix(pod["metadata"]["uid"], pod_load.Use(1000, 2 << 30))
    await world.bound("web")
    await world.until(lambda: world.lent("a") > 11_000, "it lends what is idle")
    return pod["metadata"]["uid"]


def sources(world, **urls):
    reached = {
        "extender": world.extender.health_url,
        "manager": world.processes["manager"].app.health_url,
        "webhook": world.processes["webhook"].app.health_url,
    }
    options = story_sources.Options(urls=reached | urls)
    return story_sources.Sources(world.kube, world.clock, options)


async def story(world, coroutine):
    async with world.flowing():
        told = await coroutine
    assert json.dumps(stories.document(told))
    return told, "\n".join(stories.lines(told))


async def test_a_pod_that_load_refuses(world, node):
    world.hosts.fix(node, pod_load.Use(10_600, 2 << 30))
    await world.until(lambda: world.used("a") >= 10_600, "the report shows the load")
    await world.create("late", cpu=1)
    await world.until(lambda: world.refusal("late"), "it is refused")
    told, text = await story(world, explain.pod(sources(world), "default/late"))
    assert told.verdict == "Pod default/late waits: the only node that was asked refuses it."
    assert "1 refused: node cpu usage exceeds the load-aware threshold (a)." in text
    # 65 % of 16 cores are 10.4, up to 10.479 by rounding; 85 % of a core are expected.
    assert "The nearest miss is a: cpu: 10" in text
    assert " of 16 is used or expected, 0.85 more would pass 65 %." in text
    assert "cores less in use on a" in told.helps[0]
    assert "No ClusterColocationProfile changed it." in text
    assert "Not reached" not in text

    def answered():
        found = world.found(resources.SCHEDULE_EXPLANATIONS, "late", "default")
        return found and found.get("status")

    # What cannot be reached is said and done without: first the extender ...
    await world.until(answered, "the extender has written why")
    nowhere = {"extender": "http://127.0.0.1:9", "manager": ""}
    told, text = await story(world, explain.pod(sources(world, **nowhere), "default/late"))
    assert "As of " in text
    assert "nearest miss a: cpu: 10" in text
    assert "cores less in use on a" in told.helps[0]
    assert "127.0.0.1:9" in missed(told)["extender"]
    # ... then the manager, whose calculation is made here.
    told, text = await story(world, explain.node(sources(world, **nowhere), "a", 0.0))
    assert "no pod of it runs in koordinator-system" in missed(told)["manager"]
    assert f"{names.BATCH_CPU} by policy usage: 16 capacity - 3.2 margin - " in text


def missed(told):
    return {source.name: source.note for source in told.sources if not source.reached}


async def test_pods_for_which_no_node_lends_enough_or_that_validation_refuses(world, node):
    await world.create("whale", cpu=14, batch=True)
    await world.until(lambda: world.refusal("whale"), "it is refused")
    told, text = await story(world, explain.pod(sources(world), "default/whale"))
    assert told.verdict == "Pod default/whale waits: no node takes it."
    assert "ClusterColocationProfile batch matched it and changed it" in text
    assert "labels[koordinator.sh/qosClass] from nothing to BE" in text
    assert f"turned into {names.BATCH_CPU}" in text
    assert "It asks for 14 batch cores and 1.0 GiB of batch memory." in text
    assert "None of 1 nodes has that left to lend." in text
    left = world.lent("a") / 1000
    assert f"The nearest miss is a: it lends {left:g} batch cores, 0 are taken" in text
    assert f"{14 - left:g} are missing." in text
    # Why it lends no more, as the manager calculates it.
    assert "Node a lends " in text
    assert " cores (16 capacity - 3.2 margin - " in text
    assert f"a pod that asks for {left:g} batch cores or less" in told.helps
    await validated(world)


async def validated(world):
    container = {"name": "c", "image": "x:1", "resources": {"requests": {"cpu": "1500m"}}}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "odd", "labels": {names.LABEL_QOS: "LSR"}},
        "spec": {"priorityClassName": "koord-prod", "containers": [container]},
    }
    told, text = await story(world, explain.tried(sources(world), body, "default"))
    assert told.verdict == "Pod default/odd would be refused at admission."
    assert "Webhook vpod.koordinator.sh refused it" in text
    assert '"1500m": LSR binds CPUs: request a whole number of them.' in text
    told, text = await story(world, explain.pod(sources(world), "default/odd"))
    assert not told.found
    assert told.verdict == "There is no pod default/odd: it could not be created."
    assert "when it was tried: pod.spec.containers[*].resources.requests" in text
    assert '"1500m": LSR binds CPUs: request a whole number of them.' in text
    told, text = await story(world, explain.pod(sources(world), "default/other"))
    assert told.verdict == "There is no pod default/other."
    assert "koord explain pod -f FILE" in text
    container["resources"]["requests"]["cpu"] = "2"
    told, text = await story(world, explain.tried(sources(world), body, "default"))
    assert told.verdict == "Pod default/odd would be accepted; it was only tried."


async def test_a_pod_that_was_placed_and_every_term_of_its_node(world, node):
    await world.create("job", cpu=4, batch=True)
    await world.bound("job")
    told, text = await story(world, explain.pod(sources(world), "default/job"))
    assert told.verdict == "Pod default/job is on node a."
    assert "The extender bound it at " in text
    assert "BatchFit granted 4 cpu, 1Gi memory." in text
    assert "Node a lends " in text
    told, text = await story(world, explain.node(sources(world), "a", world.clock.now()))
    assert re.match(r"Node a lends [0-9.]+ cores \(16 capacity - 3\.2 margin - ", told.verdict)
    assert re.search(
        rf"{names.BATCH_CPU} by policy usage: 16 capacity - .* = [0-9.]+ cores\.", text
    )
    assert "batch pods hold 4; " in text
    assert " of 16 cores are in use (" in text
    told, _ = await story(world, explain.node(sources(world), "b", world.clock.now()))
    assert (told.found, told.verdict) == (False, "There is no node b.")
