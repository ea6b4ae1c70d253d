"""Events are counted, cut and posted without holding anybody up."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web

from kube.client import client
from kube.controllers import recorder
from process.runtime import clock as clocks
from process.runtime import metrics, supervise

EVENTS = "/apis/events.k8s.io/v1/namespaces/shop/events"
NODE_EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
POD = recorder.Regarding("v1", "Pod", "a", "shop", "uid-a")
NODE = recorder.Regarding("v1", "Node", "n1")


@pytest.fixture
def registry() -> metrics.Registry:
    return metrics.Registry()


@pytest.fixture
async def make(
    connect: Callable[..., client.Client],
    clock: clocks.ManualClock,
    rng: Any,
    registry: metrics.Registry,
    supervisor: supervise.Supervisor,
) -> AsyncIterator[Callable[..., recorder.Recorder]]:
    async with connect(registry=registry) as api:

        def build(**rates: Any) -> recorder.Recorder:
            made = recorder.Recorder(
                *(api, "koord-manager", clock),
                instance="host-1",
                rng=rng,
                rates=recorder.Rates(**rates),
            )
            made.start(supervisor)
            return made

        yield build
        await supervisor.stop()


def count(registry: metrics.Registry, result: str) -> float:
    labels = {"component": "koord-manager", "result": result}
    return registry.value("koord_kube_events_total", labels) or 0


async def test_event_as_the_api_wants_it(
    server: Any, make: Any, clock: clocks.ManualClock, registry: metrics.Registry
) -> None:
    server.on("POST", EVENTS, server.json({}, 201))
    assert make().event(POD, "Warning", "Refused", "too hot", "Filter")
    await server.until(lambda: count(registry, "posted") == 1)
    (seen,) = server.calls("POST")
    name = seen.body["metadata"].pop("name")
    assert name.startswith("a.")
    assert seen.body == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": "shop"},
        "eventTime": "2023-11-14T22:13:20.000000Z",
        "reportingController": "koord-manager",
        "reportingInstance": "host-1",
        "action": "Filter",
        "reason": "Refused",
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "a",
            "namespace": "shop",
            "uid": "uid-a",
        },
        "note": "too hot",
        "type": "Warning",
    }


async def test_repetitions_are_counted_in_the_event_that_is_there(
    server: Any, make: Any, clock: clocks.ManualClock, registry: metrics.Registry
) -> None:
    server.on("POST", NODE_EVENTS, server.json({}, 201))
    events = make()
    events.event(NODE, "Normal", "Lent", "3 cores")
    await server.until(lambda: count(registry, "posted") == 1)
    name = server.seen[0].body["metadata"]["name"]
    server.on("PATCH", f"{NODE_EVENTS}/{name}", server.json({}))
    for _ in range(500):
        assert events.event(NODE, "Normal", "Lent", "3 cores")
    await clock.settle()
    assert len(server.seen) == 1
    await clock.advance(30)
    await server.until(lambda: count(registry, "posted") == 2)
    (seen,) = server.calls("PATCH")
    assert seen.body == {
        "series": {"count": 501, "lastObservedTime": "2023-11-14T22:13:20.000000Z"}
    }
    # Another note is another event; the same one much later is a new event.
    events.event(NODE, "Normal", "Lent", "4 cores")
    await clock.advance(400)
    events.event(NODE, "Normal", "Lent", "3 cores")
    await server.until(lambda: count(registry, "posted") == 4)
    assert len(server.calls("POST")) == 3


async def test_flood_about_one_object_is_cut(
    server: Any, make: Any, clock: clocks.ManualClock, registry: metrics.Registry
) -> None:
    server.on("POST", EVENTS, server.json({}, 201))
    server.on("POST", NODE_EVENTS, server.json({}, 201))
    events = make(burst=3, refill_seconds=100)
    told = [events.event(POD, "Normal", "R", f"note {number}") for number in range(10)]
    assert told == [True] * 3 + [False] * 7
    assert events.event(NODE, "Normal", "R", "another object")
    assert count(registry, "dropped") == 7
    await clock.advance(100)
    assert events.event(POD, "Normal", "R", "later")
    assert not events.event(POD, "Normal", "R", "even later")
    await server.until(lambda: count(registry, "posted") == 5)


async def test_memory_is_bounded_and_old_series_make_room(
    server: Any, make: Any, clock: clocks.ManualClock, registry: metrics.Registry
) -> None:
    server.on("POST", EVENTS, server.json({}, 201))
    events = make(most_series=5)
    pods = [POD._replace(name=f"p{number}") for number in range(20)]
    assert sum(events.event(pod, "Normal", "R", "n") for pod in pods) == 5
    await server.until(lambda: count(registry, "posted") == 5)
    await clock.advance(360 * 30)
    assert sum(events.event(pod, "Normal", "R", "n") for pod in pods[10:]) == 5
    assert len(events._series) <= 5
    assert len(events._buckets) <= 10
    await server.until(lambda: count(registry, "posted") == 10)


@pytest.mark.parametrize(
    ("status", "tries", "result"),
    [(403, 1, "refused"), (422, 1, "refused"), (500, 6, "lost"), (404, 6, "lost")],
)
async def test_event_that_cannot_be_posted_is_given_up(
    server: Any,
    make: Any,
    clock: clocks.ManualClock,
    registry: metrics.Registry,
    status: int,
    tries: int,
    result: str,
) -> None:
    server.on("POST", EVENTS, server.refuse(status))
    events = make()
    events.event(POD, "Normal", "R", "n")
    await server.go_on(clock, lambda: count(registry, result))
    assert count(registry, result) == 1
    assert len(server.seen) == tries
    assert not events._series


async def test_event_that_expired_is_created_again(
    server: Any, make: Any, clock: clocks.ManualClock, registry: metrics.Registry
) -> None:
    server.on("POST", EVENTS, server.refuse(409, "AlreadyExists"), server.json({}, 201))
    events = make()
    events.event(POD, "Normal", "R", "n")
    # It was there already: an earlier try had arrived.
    await server.until(lambda: count(registry, "posted") == 1)
    events.event(POD, "Normal", "R", "n")
    await clock.advance(30)
    await server.until(lambda: len(server.calls("PATCH")) == 1 and clock.sleepers == 1)
    await clock.advance(5)
    await server.until(lambda: count(registry, "posted") == 2)
    assert server.calls("POST")[-1].body["series"]["count"] == 2


def test_reference_and_limits() -> None:
    assert NODE.reference() == {"apiVersion": "v1", "kind": "Node", "name": "n1"}
    assert recorder._clip("short") == "short"
    long = recorder._clip("ü" * 1000)
    assert len(long.encode()) <= 1024
    assert long.endswith("ü...")


async def test_namespaces_share_the_series_where_they_run_short(
    server: Any, make: Any, clock: clocks.ManualClock, registry: metrics.Registry
) -> None:
    server.on("POST", EVENTS, server.json({}, 201))
    server.on("POST", NODE_EVENTS, server.json({}, 201))
    events = make(most_series=8, burst=100)
    pods = [POD._replace(name=f"p{number}") for number in range(20)]
    told = [events.event(pod, "Normal", "Flood", "x") for pod in pods]
    assert told == [True] * 8 + [False] * 12
    assert [events.event(NODE, "Normal", f"Quiet{number}", "x") for number in range(6)] == (
        [True] * 4 + [False] * 2
    )
    await server.until(lambda: len(server.calls("POST")) == 8)
    assert {seen.body["reason"] for seen in server.calls("POST")} == {
        "Flood", *(f"Quiet{number}" for number in range(4))
    }  # fmt: skip
    # Who came first stays.
    assert {s.body["regarding"]["name"] for s in server.calls("POST")} == {
        "n1", "p0", "p1", "p2", "p3"
    }  # fmt: skip


async def test_nothing_is_remembered_of_what_gave_way_while_it_was_posted(
    server: Any, make: Any, registry: metrics.Registry
) -> None:
    gone = asyncio.Event()

    async def refused_late(request: web.Request) -> web.StreamResponse:
        await gone.wait()
        return await server.refuse(500)(request)

    server.on("POST", EVENTS, server.json({}, 201), refused_late)
    server.on("POST", NODE_EVENTS, server.json({}, 201))
    events = make(most_series=2)
    for name in ("a", "b"):
        events.event(POD._replace(name=name), "Normal", "R", "x")
    await server.until(lambda: len(server.calls("POST", EVENTS)) == 2)
    # The latest event of the namespace with more of them gives way, which is the one under way.
    assert events.event(NODE, "Normal", "R", "x")
    gone.set()
    await server.until(lambda: count(registry, "posted") == 2)
    assert events._queue._failures == {}
