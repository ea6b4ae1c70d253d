"""The examples of Reservations that users bring along: a Spark job, a Flink session, a batch."""

import asyncio
import copy
import pathlib

import pytest
import yaml

from cli.explain import reservation_story, stories
from tests.planes import raw
from tests.planes.migration import reserving

FOLDER = pathlib.Path(__file__).parent.parent.parent / "manifests"
SPARK = {"job-id": "spark-123", "app": "spark-executor"}
FLINK = {"flink-job": "batch-20240101", "app": "flink-taskmanager"}
pytestmark = pytest.mark.timeout(300)


def example(name):
    (document,) = [d for d in yaml.safe_load_all((FOLDER / f"{name}.yaml").read_text()) if d]
    document.pop("status", None)
    return document


def on_real(request):
    """Whether all pods of an example are created, which costs too much beside other tests."""
    return request.config.getoption("--plane") == "real"


async def executors(holding, count, rooms):
    """Nodes with room for so many executors each, and a Reservation for each executor."""
    for number, room in enumerate(rooms):
        await holding.here.node(f"n{number}", cpu=str(8 * room), memory=f"{16 * room}Gi")
    document = example("000-reservation-spark-job-reservation-202401")
    for number in range(count):
        await holding.apply(copy.deepcopy(document), f"spark-{number}")


async def test_executors_find_what_was_reserved_and_leave_nothing_behind(holding, request):
    rooms = (7, 7, 6) if on_real(request) else (2, 2, 1)
    count = sum(rooms)
    await executors(holding, count, rooms)
    names = [f"spark-{number}" for number in range(count)]
    places = await asyncio.gather(*map(holding.available, names))
    assert sorted((places.count(node) for node in set(places)), reverse=True) == [*rooms]
    await holding.pod("alien", "1")
    await holding.refused("alien", "Insufficient cpu")
    for number in range(count):
        requests = {"memory": "16Gi"}
        await holding.pod(f"executor-{number}", "8", labels=SPARK, requests=requests)
    done = await asyncio.gather(*(holding.phase(name, "Succeeded") for name in names))
    owners = [one["status"]["currentOwners"] for one in done]
    assert {len(found) for found in owners} == {1}
    assert {found[0]["name"] for found in owners} == {f"executor-{i}" for i in range(count)}
    assert {one["status"]["allocated"]["cpu"] for one in done} == {"8"}
    for name, place, one in zip(names, places, done, strict=True):
        pod = await holding.here.bound(one["status"]["currentOwners"][0]["name"])
        assert pod["spec"]["nodeName"] == place, name
    for number in range(count):
        await holding.here.remove(f"executor-{number}")
    # Nothing is reserved any more: whole nodes are free for others.
    await holding.uses("alien")
    for number, room in enumerate(rooms):
        await holding.pod(f"whole-{number}", str(8 * room - 1))
        await holding.here.bound(f"whole-{number}")
    await holding.consistent()


async def test_what_does_not_fit_is_told_before_the_pods_come(holding):
    await executors(holding, 4, (2, 1))
    found = {}

    async def told():
        found.update(await holding.lines())
        return sorted(words[0] for words in found.values()) == ["Available"] * 3 + ["Pending"]

    await raw.eventually(told, reserving.PATIENCE)
    (short,) = [name for name, words in found.items() if words[0] == "Pending"]
    suffix = short.removeprefix(holding.here.name(""))
    await holding.waits(suffix, "Insufficient cpu")
    seen = await holding.seen()
    story = reservation_story.told(reservation_story.Facts(seen, short))
    text = "\n".join(stories.lines(story))
    assert f"Reservation {short} is Pending and waits: Unschedulable" in text
    assert "pods with labels app=spark-executor and job-id=spark-123." in text
    # Room that becomes free is taken without anybody's action.
    await holding.here.node("n2", cpu="8", memory="16Gi")
    await holding.available(suffix)


async def test_a_flink_session_takes_its_reservation_and_grows_beyond_it(holding, request):
    managers = 100 if on_real(request) else 8
    await holding.here.node("n0")
    await holding.apply(example("000-reservation-flink-job-batch-20240101"), "flink")
    first = await holding.available("flink")
    for number in range(1, 5):
        cpu = 4 * managers // 4
        await holding.here.node(f"n{number}", cpu=str(cpu), memory=f"{2 * cpu}Gi")
    await holding.pod("alien", "5")
    assert (await holding.here.bound("alien"))["spec"]["nodeName"] != first
    await holding.here.remove("alien")
    wanted = {"memory": "8Gi"}
    names = [f"taskmanager-{number}" for number in range(managers)]
    for name in names:
        await holding.pod(name, "4", labels=FLINK, requests=wanted)
    pods = await asyncio.gather(*(holding.here.bound(name, reserving.PATIENCE) for name in names))
    inside = [pod for pod in pods if reserving.ALLOCATED in pod["metadata"].get("annotations", {})]
    assert len(inside) == 1
    assert inside[0]["spec"]["nodeName"] == first
    used = await holding.owned("flink", inside[0]["metadata"]["name"])
    assert (used["status"]["phase"], used["status"]["allocated"]["cpu"]) == ("Available", "4")
    # Its two hours are over.
    await holding.change("flink", ttl="1s")
    await holding.phase("flink", "Failed")
    for name in names:
        pod = await holding.here.bound(name)
        assert not pod["metadata"].get("deletionTimestamp")
        assert pod["status"].get("phase") != "Failed"
    await holding.consistent()


async def test_a_nightly_batch_finds_eight_cores(holding):
    node = await holding.here.node("a", cpu="10", memory="40Gi")
    await holding.apply(example("002-reservation-batch-job-reservation"), "batch")
    await holding.available("batch")
    await holding.pod("service", "3")
    await holding.refused("service", "Insufficient cpu")
    await holding.pod("job", "8", labels={"job-type": "batch"}, requests={"memory": "32Gi"})
    assert await holding.uses("job", "batch") == node
    await holding.phase("batch", "Succeeded")
