"""Silence, outages and resources that a server does not know: what a store keeps through them."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from api import resources
from process.runtime import clock as clocks
from process.runtime import supervise
from tests.kube.informers.reflections import (
    GONE,
    PODS,
    Kept,
    Make,
    Pod,
    added,
    bookmark,
    lists,
    projection,
    watches,
)


async def test_silent_stream_is_opened_again_at_once(
    server: Any, keep: Callable[..., Kept], pod: Pod, clock: clocks.ManualClock
) -> None:
    """Nothing tells a dead connection from a quiet resource but opening it again."""
    server.on(
        "GET",
        PODS,
        server.page([], 10),
        server.watch(bookmark(11), then="hold"),
        server.watch(added(pod("a", 12, node="n1")), then="hold"),
    )
    kept = keep()
    await server.until(lambda: kept.contact.connected)
    clock._move(80)
    await server.until(lambda: kept.store.version == 12)
    assert [query["resourceVersion"] for query in watches(server)] == ["10", "11"]
    assert (clock.sleepers, kept.caches.health()) == (0, None)


async def _connected(server: Any, kept: Kept, opened: int) -> None:
    """Wait for the watch of this number."""
    await server.until(lambda: kept.contact.connected and len(watches(server)) == opened)


async def _silent_twice(server: Any, kept: Kept, clock: clocks.ManualClock) -> None:
    """Let two watches in a row tell nothing for so long that they are opened again."""
    for opened in (1, 2):
        await _connected(server, kept, opened)
        clock._move(80)


async def test_server_that_was_set_back_to_a_backup_is_listed_again(
    server: Any, keep: Callable[..., Kept], pod: Pod, clock: clocks.ManualClock
) -> None:
    """A watch from a version that is yet to come tells nothing, for hours or for ever."""
    server.on(
        "GET",
        PODS,
        server.page([pod("late", 9, node="n1")], 10),
        server.watch(bookmark(500), then="hold"),
        server.watch(then="hold"),
        server.page([pod("early", 3, node="n2")], 30),
        server.page([pod("early", 3, node="n2")], 30),
        server.watch(added(pod("new", 31, node="n3")), then="hold"),
    )
    kept = keep()
    await server.until(lambda: kept.store.version == 500)
    await _silent_twice(server, kept, clock)
    await server.until(lambda: kept.store.version == 31)
    assert kept.nodes == {"shop/early": "n2", "shop/new": "n3"}
    assert lists(server)[1] == {"limit": "1"}
    assert watches(server)[-1]["resourceVersion"] == "30"


async def test_an_event_of_the_same_moment_keeps_nothing_from_being_listed_again(
    server: Any, keep: Callable[..., Kept], pod: Pod
) -> None:
    server.on(
        "GET",
        PODS,
        server.page([pod("lost", 9, node="n1")], 10),
        server.watch(added(pod("new", 11, node="n2")), then="hold"),
        server.page([pod("new", 11, node="n2")], 12),
        server.watch(then="hold"),
    )
    kept = keep()
    kept.store.listen(lambda change: kept.reflector.relist() if change.new == "n2" else None)
    await server.until(lambda: len(watches(server)) == 2)
    assert kept.nodes == {"shop/new": "n2"}


@pytest.mark.parametrize("failure", ["drop", "starts"])
async def test_server_that_was_set_back_in_an_outage_without_a_refused_connection_is_listed_again(
    server: Any,
    keep: Callable[..., Kept],
    pod: Pod,
    clock: clocks.ManualClock,
    failure: str,
) -> None:
    """It may be back before the first pause is over, and a proxy before it accepts connections."""
    ends = server.watch(bookmark(500), then="drop" if failure == "drop" else "end")
    starting = [] if failure == "drop" else [server.refuse(503)]
    server.on(
        "GET",
        PODS,
        server.page([pod("late", 9, node="n1")], 10),
        ends,
        *starting,
        server.page([pod("early", 3, node="n2")], 30),
        server.page([pod("early", 3, node="n2")], 30),
        server.watch(added(pod("new", 31, node="n3")), then="hold"),
    )
    kept = keep()
    await server.go_on(clock, lambda: kept.store.version == 31)
    assert kept.nodes == {"shop/early": "n2", "shop/new": "n3"}
    assert lists(server)[1] == {"limit": "1"}
    assert watches(server)[-1]["resourceVersion"] == "30"


async def test_every_watch_lists_again_after_a_backup_however_late_it_notices(
    server: Any, watched: Make, supervisor: supervise.Supervisor, clock: clocks.ManualClock
) -> None:
    """Connections that die without a word are noticed one after the other."""
    caches, noticed = watched(), asyncio.Event()
    pods = caches.add(projection())
    metrics = caches.add(projection(resource=resources.NODE_METRICS, type=dict, project=str))

    async def late(request: web.Request) -> web.StreamResponse:
        await noticed.wait()
        return await server.refuse(503)(request)

    server.on("GET", PODS, server.page([], 10), server.watch(bookmark(500), then="drop"),
              *[server.page([], 30)] * 2, server.watch(bookmark(35)))  # fmt: skip
    told = server.watch(added(metric("a", 490)), then="end")
    server.on("GET", METRICS, server.page([], 10), told, late,
              *[server.page([metric("b", 5)], 36)] * 2, server.watch())  # fmt: skip
    caches.start(supervisor)
    await server.until(lambda: "a" in metrics)
    await server.go_on(clock, lambda: pods.version == 35)
    noticed.set()
    await server.go_on(clock, lambda: list(metrics.keys()) == ["b"])


async def test_after_an_outage_an_object_that_is_nested_without_end_hides_no_version(
    server: Any, keep: Callable[..., Kept], clock: clocks.ManualClock
) -> None:
    """It is the first one of the list, of which only the version is wanted."""
    deep = '{"metadata":{"name":"a","uid":"a"},"spec":' + "[" * 5000 + "]" * 5000 + "}"
    newest = server.text('{"items":[' + deep + '],"metadata":{"resourceVersion":"11"}}')
    server.on("GET", METRICS, server.page([], 10), server.watch(bookmark(11), then="drop"),
              newest, server.watch(bookmark(12)))  # fmt: skip
    kept = keep(projection(resource=resources.NODE_METRICS, type=dict, project=str))
    await server.go_on(clock, lambda: kept.store.version == 12)


async def test_narrow_selections_ask_the_memory_of_the_server_first(
    server: Any, keep: Callable[..., Kept], pod: Pod, clock: clocks.ManualClock
) -> None:
    """Thousands of agents do so at once."""
    server.on(
        "GET",
        PODS,
        server.page([], 10),
        server.watch(bookmark(500), then="hold"),
        server.watch(then="hold"),
        server.page([], 500),
        server.watch(added(pod("new", 501, node="n3")), then="hold"),
    )
    kept = keep(projection(from_cache=True))
    await server.until(lambda: kept.store.version == 500)
    await _silent_twice(server, kept, clock)
    await server.until(lambda: kept.store.version == 501)
    assert lists(server)[1:] == [{"limit": "1", "resourceVersion": "0"}]
    assert watches(server)[-1]["resourceVersion"] == "500"


async def test_dead_connection_is_told_to_readiness(
    server: Any, keep: Callable[..., Kept], pod: Pod, clock: clocks.ManualClock
) -> None:
    server.on(
        "GET",
        PODS,
        server.page([], 10),
        server.watch(bookmark(11), then="hold"),
        server.refuse(503),
        server.page([], 11),
        server.watch(added(pod("a", 12, node="n1")), then="hold"),
    )
    kept = keep()
    await server.until(lambda: kept.contact.connected)
    assert kept.caches.health() is None
    clock._move(75)
    # After real seconds of silence it is opened again, which fails.
    await server.until(lambda: clock.sleepers == 1)
    assert "pods not heard of for 75 s (503" in (kept.caches.health() or "")
    assert kept.caches.stale() == kept.caches.health()
    assert kept.caches.unlisted() is None
    await server.go_on(clock, lambda: kept.store.version == 12)
    assert kept.caches.health() is None


METRICS = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics"


def metric(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": name, "resourceVersion": str(version)}}


async def test_resource_that_is_not_installed_is_empty_told_and_tried_again(
    server: Any, keep: Callable[..., Kept], clock: clocks.ManualClock
) -> None:
    server.on("GET", METRICS, *[server.refuse(404)] * 8, server.page([metric("a", 5)], 10),
              server.watch(bookmark(11)))  # fmt: skip
    kept = keep(projection(resource=resources.NODE_METRICS, type=dict, project=str))
    await server.until(lambda: clock.sleepers == 1)
    # Once may be an API server that has just begun.
    assert not kept.store.synced
    assert "nodemetrics.slo.koordinator.sh not listed yet" in (kept.caches.health() or "")
    await server.go_on(clock, lambda: kept.store.synced)
    assert kept.caches.missing() == "nodemetrics.slo.koordinator.sh is not installed"
    await kept.caches.synced()
    for _ in range(3):
        await clock.advance(clock.next_wake or 0)
        await server.until(lambda: clock.sleepers == 1)
        assert kept.caches.health() is None
    await server.go_on(clock, lambda: "a" in kept.store)
    await server.until(lambda: kept.contact.connected)
    assert (kept.caches.missing(), kept.caches.health()) == (None, None)


async def test_no_start_waits_for_a_resource_that_most_clusters_do_not_serve(
    server: Any, keep: Callable[..., Kept], clock: clocks.ManualClock
) -> None:
    server.on("GET", METRICS, *[server.refuse(404)] * 3, server.page([metric("a", 5)], 10),
              server.watch(bookmark(11)))  # fmt: skip
    kept = keep(projection(resource=resources.NODE_METRICS, type=dict, project=str, optional=True))
    await server.until(lambda: kept.store.synced)
    assert (kept.caches.missing(), kept.caches.health()) == (None, None)
    # It is asked for more and more seldom; others tell whether the server answers.
    clock._move(1000)
    assert (kept.caches.stale(), kept.caches.health()) == (None, None)
    await server.go_on(clock, lambda: "a" in kept.store)


async def test_resource_that_is_unknown_for_a_moment_keeps_its_objects(
    server: Any, keep: Callable[..., Kept], clock: clocks.ManualClock
) -> None:
    server.on("GET", METRICS, server.page([metric("a", 5)], 10), server.watch(GONE),
              *[server.refuse(404)] * 3, server.page([metric("a", 5)], 10),
              server.watch(bookmark(11)))  # fmt: skip
    kept = keep(projection(resource=resources.NODE_METRICS, type=dict, project=str))
    await server.go_on(clock, lambda: kept.store.version == 11)
    assert [change.new is None for change in kept.changes] == [False]


async def test_resource_that_stays_unknown_loses_its_objects(
    server: Any, keep: Callable[..., Kept], clock: clocks.ManualClock
) -> None:
    server.on("GET", METRICS, server.page([metric("a", 5)], 10), server.watch(GONE),
              *[server.refuse(404)] * 40)  # fmt: skip
    kept = keep(projection(resource=resources.NODE_METRICS, type=dict, project=str))
    began = clock.monotonic()
    await server.go_on(clock, lambda: bool(kept.caches.missing()))
    assert clock.monotonic() - began >= 60
    assert len(kept.store) == 0


async def test_built_in_resource_that_is_unknown_is_not_taken_for_empty(
    server: Any, keep: Callable[..., Kept], clock: clocks.ManualClock
) -> None:
    server.on("GET", PODS, *[server.refuse(404)] * 40)
    kept = keep()
    await server.go_on(clock, lambda: len(lists(server)) == 12)
    assert (kept.store.synced, kept.caches.missing()) == (False, None)


@pytest.mark.parametrize("grants", [False, True], ids=["plain", "grants"])
async def test_what_grants_is_not_trusted_while_deletions_may_be_missed(
    server: Any, keep: Callable[..., Kept], pod: Pod, clock: clocks.ManualClock, grants: bool
) -> None:
    """Pages of a list that does not end are news, but tell nothing of what is gone."""
    more = server.page([pod("a", 3, node="n1")], 30, more="next")
    server.on("GET", PODS, server.page([], 10), server.watch(GONE), *[more] * 3, server.hold())
    kept = keep(projection(grants=grants))
    await server.go_on(clock, lambda: len(lists(server)) == 5)
    assert kept.caches.health() is None
    clock._move(75)
    kept.contact.heard()
    told = kept.caches.health() or ""
    assert ("pods not confirmed for" in told) is grants


async def test_streamed_list_that_never_ends_falls_back_to_pages(
    server: Any, keep: Callable[..., Kept], pod: Pod
) -> None:
    server.on(
        "GET",
        PODS,
        server.watch(added(pod("a", 3, node="n1")), then="hold"),
        server.page([pod("b", 4, node="n1")], 10),
        server.watch(),
    )
    kept = keep(streaming_list=True)
    await kept.caches.synced()
    assert kept.nodes == {"shop/b": "n1"}


async def test_failures_back_off_but_never_end(
    server: Any, keep: Callable[..., Kept], pod: Pod, clock: clocks.ManualClock
) -> None:
    server.on("GET", PODS, server.refuse(403, "Forbidden", "not allowed"))
    kept = keep()
    pauses = []
    for _ in range(40):
        await server.until(lambda: clock.sleepers == 1)
        pauses.append(clock.next_wake or 0)
        await clock.advance(pauses[-1])
    assert pauses[0] < 1
    assert max(pauses) <= 30
    assert min(pauses[-10:]) >= 15
    assert "pods not listed yet (403 Forbidden: not allowed)" in (kept.caches.health() or "")
    assert kept.caches.unlisted() == kept.caches.health()
    assert kept.caches.stale() is None
    server.on("GET", PODS, server.page([pod("a", 3, node="n1")], 10), server.watch(bookmark(12)))
    await server.go_on(clock, lambda: kept.store.version == 12)
    assert kept.contact.error == ""
    assert kept.nodes == {"shop/a": "n1"}


async def test_after_an_outage_the_first_word_of_the_server_is_followed_soon(
    server: Any, keep: Callable[..., Kept], pod: Pod, clock: clocks.ManualClock
) -> None:
    """A long outage makes pauses long; what the server says once it is back does not wait them."""
    kept = keep()
    server.on("GET", PODS, server.page([], 10), server.refuse(503, "ServiceUnavailable"))
    await server.go_on(clock, lambda: kept.contact.failures >= 9)
    await server.until(lambda: clock.sleepers == 1)
    assert 5 <= (clock.next_wake or 0) <= 10
    server.on(
        "GET",
        PODS,
        server.refuse(429, "TooManyRequests", "starts", **{"Retry-After": "1"}),
        server.refuse(410, "Expired"),
        server.page([pod("a", 3, node="n1")], 40),
        server.watch(),
    )
    pauses = []
    while kept.store.version != 40:
        await server.until(lambda: clock.sleepers == 1 or kept.store.version == 40)
        pauses.append(clock.next_wake or 0)
        await clock.advance(pauses[-1])
    assert 1.4 <= pauses[1] <= 1.8
    assert 0.4 <= pauses[2] <= 0.8
    assert kept.nodes == {"shop/a": "n1"}


@pytest.mark.parametrize("seconds", [-5, 10**12, 10**400], ids=["past", "for ever", "no float"])
async def test_patience_that_nobody_has_is_bounded(
    server: Any, keep: Callable[..., Kept], clock: clocks.ManualClock, seconds: int
) -> None:
    status = b'{"kind":"Status","code":429,"details":{"retryAfterSeconds":%d}}' % seconds
    asked = server.watch(b'{"type":"ERROR","object":' + status + b"}", then="end")
    server.on("GET", PODS, server.page([], 10), asked, server.watch(bookmark(12)))
    kept = keep()
    await server.until(lambda: clock.sleepers == 1)
    assert 0 < (clock.next_wake or 0) < 610
    await server.go_on(clock, lambda: kept.store.version == 12)


async def test_built_in_resource_that_the_embedded_control_plane_does_not_have_is_empty(
    server: Any, keep: Callable[..., Kept], clock: clocks.ManualClock
) -> None:
    """It refuses what it does not know by name, with 501."""
    server.on("GET", PODS, *[server.refuse(501)] * 40)
    kept = keep(projection(optional=True))
    await server.go_on(clock, lambda: kept.store.synced)
    assert (kept.caches.health(), kept.caches.missing()) == (None, None)
