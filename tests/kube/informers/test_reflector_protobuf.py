"""Watches and lists in protobuf end in the same store as those in JSON."""

from collections.abc import Callable
from typing import Any

from api.kubernetes import protobuf_fields
from kube.client import protobuf, wire
from process.runtime import clock as clocks
from tests import protobuf_messages as messages
from tests.kube.informers.reflections import PODS, Kept, Pod, added, lists, projection

BINARY = protobuf.Codec("Pod", protobuf_fields.POD)
BOTH = "application/vnd.kubernetes.protobuf;stream=watch, application/json"


async def test_watch_in_protobuf(
    server: Any, keep: Callable[..., Kept], pod: Pod, clock: clocks.ManualClock
) -> None:
    events = (
        messages.event("ADDED", pod("b", 11, node="n2")),
        messages.event("DELETED", pod("a", 12, node="n1")),
        messages.event("BOOKMARK", {"metadata": {"resourceVersion": "20"}}),
    )
    server.on(
        "GET",
        PODS,
        server.page([pod("a", 3, node="n1")], 10),
        server.watch(*map(messages.frame, events), kind=f"{wire.PROTOBUF};stream=watch"),
    )
    kept = keep(projection(binary=BINARY))
    await server.until(lambda: kept.store.version == 20)
    assert kept.nodes == {"shop/b": "n2"}
    seen = server.calls("GET", PODS)
    assert [one.headers["Accept"] for one in seen] == ["application/json", BOTH]


async def test_list_streamed_in_protobuf(
    server: Any, keep: Callable[..., Kept], pod: Pod, clock: clocks.ManualClock
) -> None:
    notes = {wire.INITIAL_EVENTS_END: "true"}
    end = {"metadata": {"resourceVersion": "10", "annotations": notes}}
    events = (
        messages.event("ADDED", pod("a", 3, node="n1")),
        messages.event("BOOKMARK", end),
        messages.event("MODIFIED", pod("a", 11, node="n2")),
    )
    sent = server.watch(*map(messages.frame, events), kind=f"{wire.PROTOBUF};stream=watch")
    server.on("GET", PODS, sent)
    kept = keep(projection(binary=BINARY), streaming_list=True)
    await kept.caches.synced()
    await server.until(lambda: kept.nodes == {"shop/a": "n2"})


async def test_watch_of_a_server_that_speaks_json_alone(
    server: Any, keep: Callable[..., Kept], pod: Pod, clock: clocks.ManualClock
) -> None:
    server.on("GET", PODS, server.page([], 10), server.watch(added(pod("a", 11, node="n1"))))
    kept = keep(projection(binary=BINARY))
    await server.until(lambda: kept.nodes == {"shop/a": "n1"})


async def test_expired_watch_in_protobuf_lists_again(
    server: Any, keep: Callable[..., Kept], pod: Pod, clock: clocks.ManualClock
) -> None:
    gone = messages.event("ERROR", {"code": 410, "reason": "Expired"}, "Status")
    server.on(
        "GET",
        PODS,
        server.page([], 10),
        server.watch(messages.frame(gone), kind=f"{wire.PROTOBUF};stream=watch"),
        server.page([pod("a", 11, node="n1")], 12),
        server.watch(),
    )
    kept = keep(projection(binary=BINARY))
    await server.go_on(clock, lambda: kept.nodes == {"shop/a": "n1"})
    assert len(lists(server)) == 2
