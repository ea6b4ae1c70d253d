import itertools

import pytest

from api import resources
from simulator.apiserver.storage import object_store
from simulator.scheduler import diagnosis, intree, placements


@pytest.fixture
def store(clock):
    serial = itertools.count()
    return object_store.Objects(
        now=clock.now, uid=lambda: f"uid-{next(serial)}", suffix=lambda: str(next(serial))
    )


@pytest.fixture
def writer(store, clock):
    return placements.Writer(store, clock)


def test_a_pod_that_is_gone_is_not_bound(writer, pod_info):
    with pytest.raises(diagnosis.AttemptError, match="not found"):
        writer.bind(pod_info("ghost"), "n")


def test_a_pod_that_leaves_is_not_bound(writer, store, pod):
    body = pod()
    body["metadata"]["finalizers"] = ["koord.sh/test"]
    seen = intree.read_pod(store.create(resources.PODS, body, "a"))
    store.delete(resources.PODS, "x", "a")
    with pytest.raises(diagnosis.AttemptError, match="being deleted"):
        writer.bind(seen, "n")
    assert "nodeName" not in store.get(resources.PODS, "x", "a")["spec"]


def test_a_pod_that_was_made_anew_is_not_bound(writer, store, pod):
    seen = intree.read_pod(store.create(resources.PODS, pod(), "a"))
    store.delete(resources.PODS, "x", "a")
    store.create(resources.PODS, pod(), "a")
    with pytest.raises(diagnosis.AttemptError, match="Precondition failed"):
        writer.bind(seen, "n")
    assert "nodeName" not in store.get(resources.PODS, "x", "a")["spec"]


def test_only_the_last_events_are_counted_up(writer, store, pod_info):
    store.create(resources.NAMESPACES, {"metadata": {"name": "a"}})
    for number in range(placements.MOST_NOTED + 2):
        writer.placed(pod_info(f"x{number}"), "n")
    writer.placed(pod_info("x0"), "n")
    writer.placed(pod_info("x9"), "n")
    events = store.list(resources.CORE_EVENTS, "a").items
    counts = [one.get("series", {}).get("count") for one in events]
    assert len(events) == placements.MOST_NOTED + 3
    assert counts.count(2) == 1
    assert len(writer._noted) == placements.MOST_NOTED
