"""A store stays true through everything that can happen to a list or a watch."""

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest

from api import resources
from api.kubernetes import core
from kube.client import client
from kube.informers import informer_set, reflector
from kube.informers import store as stores
from process.runtime import clock as clocks
from process.runtime import metrics, supervise
from tests.kube.informers.reflections import (
    GONE,
    PODS,
    Kept,
    Make,
    Pod,
    added,
    bookmark,
    deleted,
    lists,
    projection,
    watches,
)


async def test_list_by_pages_then_watch(
    server: Any, keep: Callable[..., Kept], pod: Pod, clock: clocks.ManualClock
) -> None:
    server.on(
        "GET",
        PODS,
        server.page([pod("a", 3, node="n1"), pod("idle", 4)], 10, more="second"),
        server.page([pod("b", 5, node="n2")], 10),
        server.watch(
            added(pod("c", 11, node="n1")),
            deleted(pod("a", 12, node="n1")),
            added(pod("idle", 13, node="n3")),
            bookmark(20),
        ),
    )
    kept = keep()
    await kept.caches.synced()
    await server.until(lambda: kept.store.version == 20)
    assert kept.nodes == {"shop/b": "n2", "shop/c": "n1", "shop/idle": "n3"}
    assert lists(server) == [{"limit": "2"}, {"limit": "2", "continue": "second"}]
    (query,) = watches(server)
    assert query["resourceVersion"] == "10"
    assert query["allowWatchBookmarks"] == "true"
    assert 300 <= int(query["timeoutSeconds"]) <= 600
    assert (kept.contact.connected, kept.contact.age, kept.caches.health()) == (True, 0, None)
    await clock.advance(7)
    assert kept.contact.age == 7


async def test_what_a_list_in_progress_delivers_proves_nothing_yet(
    server: Any, keep: Callable[..., Kept], pod: Pod
) -> None:
    """A deletion may come in the middle of a list, while most objects are still missing."""
    early = (added(pod("a", 3, node="n1")), deleted(pod("gone", 8, node="n1")))
    server.on("GET", PODS, server.watch(*early))
    kept = keep(streaming_list=True, silence_seconds=5)
    await server.until(lambda: kept.store.version == 8)
    assert kept.reflector.progress.version == -1
    assert kept.reflector.progress.current_at is None


async def test_streamed_list_goes_on_as_the_watch(
    server: Any, keep: Callable[..., Kept], pod: Pod
) -> None:
    server.on(
        "GET",
        PODS,
        server.watch(
            added(pod("a", 3, node="n1")),
            added(pod("gone", 4, node="n1")),
            # Changes may mix in before the end.
            deleted(pod("gone", 8, node="n1")),
            added(pod("a", 9, node="n3")),
            bookmark(10, ends=True),
            added(pod("b", 11, node="n2")),
        ),
    )
    kept = keep(streaming_list=True)
    await server.until(lambda: kept.store.version == 11)
    assert kept.nodes == {"shop/a": "n3", "shop/b": "n2"}
    (seen,) = server.seen
    assert seen.query["sendInitialEvents"] == "true"
    assert seen.query["resourceVersionMatch"] == "NotOlderThan"
    assert "resourceVersion" not in seen.query


@pytest.mark.parametrize("status", [400, 422])
async def test_streamed_list_that_is_refused_falls_back_to_pages(
    server: Any, keep: Callable[..., Kept], pod: Pod, status: int
) -> None:
    server.on(
        "GET",
        PODS,
        server.refuse(status, "Invalid", "sendInitialEvents is forbidden"),
        server.page([pod("a", 3, node="n1")], 10),
        server.watch(),
    )
    kept = keep(streaming_list=True)
    await server.until(lambda: len(watches(server)) == 2)
    assert kept.nodes == {"shop/a": "n1"}


async def test_server_that_does_not_know_streamed_lists_is_noticed(
    server: Any, keep: Callable[..., Kept], pod: Pod
) -> None:
    server.on(
        "GET",
        PODS,
        server.watch(added(pod("a", 3, node="n1")), bookmark(9)),
        server.page([pod("b", 3, node="n1")], 10),
        server.watch(),
    )
    kept = keep(streaming_list=True)
    await server.until(lambda: len(watches(server)) == 2)
    assert kept.nodes == {"shop/b": "n1"}


async def test_streamed_list_finds_what_was_deleted_in_the_gap(
    server: Any, keep: Callable[..., Kept], pod: Pod, clock: clocks.ManualClock
) -> None:
    server.on(
        "GET",
        PODS,
        server.watch(
            added(pod("a", 3, node="n1")),
            added(pod("b", 4, node="n1")),
            bookmark(10, ends=True),
            GONE,
        ),
        server.watch(added(pod("b", 4, node="n1")), bookmark(30, ends=True)),
    )
    kept = keep(streaming_list=True)
    await server.go_on(clock, lambda: kept.store.version == 30)
    assert kept.nodes == {"shop/b": "n1"}
    assert kept.changes[-1] == stores.Change("shop/a", "n1", None)
    assert len(kept.changes) == 3


@pytest.mark.parametrize("how", ["status", "event"])
async def test_gone_lists_again_and_finds_the_deletions(
    server: Any, keep: Callable[..., Kept], pod: Pod, clock: clocks.ManualClock, how: str
) -> None:
    gone = server.refuse(410, "Expired") if how == "status" else server.watch(GONE)
    server.on(
        "GET",
        PODS,
        server.page([pod("a", 3, node="n1"), pod("b", 4, node="n1")], 10),
        gone,
        server.page([pod("b", 4, node="n1"), pod("a", 25, uid="another", node="n2")], 30),
        server.watch(),
    )
    kept = keep()
    await server.go_on(clock, lambda: len(watches(server)) == 2)
    assert kept.nodes == {"shop/a": "n2", "shop/b": "n1"}
    # The pod that is there under the old name is another one; the one that stayed is no news.
    assert kept.changes[2:] == [
        stores.Change("shop/a", "n1", None),
        stores.Change("shop/a", None, "n2"),
    ]
    assert watches(server)[-1]["resourceVersion"] == "30"


async def test_dropped_stream_resumes_where_it_was_without_a_list(
    server: Any, keep: Callable[..., Kept], pod: Pod, clock: clocks.ManualClock
) -> None:
    """Only the newest version is asked for, since the server may have been set back meanwhile."""
    server.on(
        "GET",
        PODS,
        server.page([], 10),
        server.watch(added(pod("a", 11, node="n1")), then="drop"),
        server.page([pod("a", 11, node="n1")], 11),
        server.watch(added(pod("a", 11, node="n1")), added(pod("b", 12, node="n1")), then="hold"),
    )
    kept = keep()
    await server.go_on(clock, lambda: kept.store.version == 12)
    assert lists(server)[1:] == [{"limit": "1"}]
    assert [query["resourceVersion"] for query in watches(server)] == ["10", "11"]
    assert len(kept.changes) == 2


async def test_watch_that_ends_in_good_order_is_opened_at_once(
    server: Any, keep: Callable[..., Kept], pod: Pod, clock: clocks.ManualClock
) -> None:
    server.on(
        "GET",
        PODS,
        server.page([], 10),
        server.watch(bookmark(15), then="end"),
        server.watch(then="hold"),
    )
    keep()
    await server.until(lambda: len(watches(server)) == 2)
    assert clock.sleepers == 0
    assert watches(server)[-1]["resourceVersion"] == "15"


async def test_server_that_ends_every_watch_at_once_is_not_hammered(
    server: Any, keep: Callable[..., Kept], clock: clocks.ManualClock
) -> None:
    page, watch = server.page([], 10), server.watch(then="end")
    server.on("GET", PODS, *[page, watch] * 4)
    keep()
    pauses = []
    for number in range(1, 5):
        await server.until(lambda n=number: len(watches(server)) == n and clock.sleepers == 1)
        pauses.append(clock.next_wake or 0)
        await clock.advance(pauses[-1])
    assert pauses[0] >= 0.4
    assert pauses[3] >= 2


@pytest.mark.parametrize("line", [b'{"type":"ADDED"', b"nonsense", b'{"type":"NEWS","object":{}}'])
async def test_nonsense_on_the_watch_lists_again(
    server: Any, keep: Callable[..., Kept], pod: Pod, clock: clocks.ManualClock, line: bytes
) -> None:
    server.on(
        "GET",
        PODS,
        server.page([], 10),
        server.watch(line),
        server.page([pod("a", 11, node="n1")], 20),
        server.watch(),
    )
    kept = keep()
    await server.go_on(clock, lambda: kept.store.version == 20)
    assert kept.nodes == {"shop/a": "n1"}


async def test_pages_that_expire_are_taken_in_one_piece(
    server: Any, keep: Callable[..., Kept], pod: Pod
) -> None:
    server.on(
        "GET",
        PODS,
        server.page([pod("a", 3, node="n1")], 10, more="second"),
        server.refuse(410, "Expired"),
        server.page([pod("b", 4, node="n1")], 30),
        server.watch(),
    )
    kept = keep()
    await kept.caches.synced()
    assert kept.nodes == {"shop/b": "n1"}
    assert lists(server)[-1] == {}


async def test_others_run_between_slices_of_a_long_list(
    server: Any, keep: Callable[..., Kept], pod: Pod, supervisor: supervise.Supervisor
) -> None:
    """A list that comes in one piece is taken in and ended by slices."""
    pods = [pod(f"p{number}", number + 1, node="n1") for number in range(600)]
    server.on("GET", PODS, server.page(pods, 9_000), server.watch())
    kept = keep()
    sizes: set[int] = set()

    async def look() -> None:
        while True:
            sizes.add(len(kept.store))
            await asyncio.sleep(0)

    supervisor.start("look", look)
    await kept.caches.synced()
    assert {80, 200, 400, 600} <= sizes


async def test_narrow_selection_is_listed_from_the_servers_memory(
    server: Any, keep: Callable[..., Kept], pod: Pod, clock: clocks.ManualClock
) -> None:
    fields = "spec.nodeName=n1"
    server.on(
        "GET",
        PODS,
        server.page([pod("a", 3, node="n1")], 10),
        server.watch(GONE),
        # An API server that lags behind answers with an older list than what we know ...
        server.page([], 8),
        # ... so it is asked for the agreed one.
        server.page([pod("a", 3, node="n1"), pod("b", 12, node="n1")], 13),
        server.watch(),
    )
    kept = keep(projection(fields=fields))
    await server.go_on(clock, lambda: kept.store.version == 13)
    versions = [query.get("resourceVersion") for query in lists(server)]
    assert versions == ["0", "10", None]
    assert all(query["fieldSelector"] == fields for query in lists(server))
    assert [change.new for change in kept.changes] == ["n1", "n1"]


async def test_server_whose_memory_stays_behind_is_asked_for_the_agreed_list(
    server: Any, keep: Callable[..., Kept], pod: Pod, clock: clocks.ManualClock
) -> None:
    """As after a restored backup: the version that we know lies in a future that never comes."""
    too_large = server.refuse(504, "Timeout", "Too large resource version")
    server.on(
        "GET",
        PODS,
        server.page([pod("a", 3, node="n1")], 900),
        server.watch(GONE),
        *[too_large] * 5,
        server.page([pod("b", 4, node="n1")], 20),
        server.watch(),
    )
    kept = keep(projection(fields="spec.nodeName=n1"))
    await server.go_on(clock, lambda: kept.nodes == {"shop/b": "n1"})
    assert "resourceVersion" not in lists(server)[-1]
    assert kept.store.version == 20


async def test_unreadable_object_is_left_out_and_counted(
    server: Any, connect: Callable[..., client.Client], clock: clocks.ManualClock, pod: Pod,
    rng: random.Random, pace: reflector.Pace, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    bad = pod("bad", 4)
    bad["spec"] = []
    server.on("GET", PODS, server.page([bad, pod("a", 3, node="n1")], 10), server.watch())
    registry = metrics.Registry()
    async with connect(registry=registry) as api, supervise.Supervisor() as running:
        kept = informer_set.InformerSet(api, clock, rng=rng, pace=pace)
        target = kept.add(projection())
        kept.start(running)
        await kept.synced()
        assert dict(target.items()) == {"shop/a": "n1"}
    labels = {"resource": "pods"}
    assert registry.value("koord_kube_unreadable_objects_total", labels) == 1
    assert registry.value("koord_kube_lists_total", labels) == 1
    assert registry.value("koord_kube_store_objects", labels) == 1
    assert "shop/bad" in caplog.text


async def test_whole_structs_and_raw_dicts(server: Any, watched: Make, pod: Pod) -> None:
    everything = watched()
    pods = everything.add(reflector.whole(resources.PODS, core.Pod, namespace="shop"))
    raw = everything.add(reflector.raw(resources.NODES, labels="pool=batch"))
    node = {"metadata": {"name": "n1", "resourceVersion": "2"}, "spec": {"taints": []}}
    server.on("GET", "/api/v1/namespaces/shop/pods", server.page([pod("a", 3)], 10), server.watch())
    server.on("GET", "/api/v1/nodes", server.page([node], 10), server.watch())
    async with supervise.Supervisor() as running:
        assert everything.health() == "pods not listed yet; nodes not listed yet"
        everything.start(running)
        await everything.synced()
        found = pods.get("shop/a")
        assert found is not None
        assert found.metadata.uid == "uid-a"
        assert raw.get("n1") == node
        assert server.calls("GET", "/api/v1/nodes")[0].query["labelSelector"] == "pool=batch"
