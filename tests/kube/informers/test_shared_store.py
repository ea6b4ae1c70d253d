"""Views of one watch hold what stores with watches of their own would hold."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import resources
from api.kubernetes import core
from kube.client import wire
from kube.informers import informer_set, reflector, shared_store, store
from process.runtime import supervise

PROJECTIONS: tuple[Callable[[int], Any], ...] = (
    lambda number: number,
    lambda number: None if number % 3 == 0 else f"odd {number % 2}",
    lambda number: 6 // number,
)
"""One that keeps everything, one that leaves something out, and one that fails on 0."""


def content(kept: store.Store[Any]) -> tuple[dict[str, Any], int, bool]:
    return dict(kept.items()), kept.version, kept.synced


class Alone:
    """A store whose reflector reads for it alone."""

    def __init__(self, project: Callable[[int], Any]) -> None:
        self.kept: store.Store[Any] = store.Store()
        self._project = project

    def read(self, number: int) -> Any:
        try:
            return self._project(number)
        except ArithmeticError:
            return None


def read(shared: shared_store.SharedStore[int], number: int) -> shared_store.Values:
    try:
        return shared.project(number)
    except store.PartlyUnreadableError as partly:
        return partly.value


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(("put", "put", "remove", "list", "bookmark")),
        st.sampled_from("abc"),
        st.integers(0, 5),
        st.integers(0, 3),
    ),
    max_size=30,
)


@given(EVENTS)
def test_views_hold_what_stores_of_their_own_would_hold(events) -> None:
    shared: shared_store.SharedStore[int] = shared_store.SharedStore()
    views = [shared.view(project) for project in PROJECTIONS]
    alone = [Alone(project) for project in PROJECTIONS]
    for version, (kind, key, number, back) in enumerate(events, 5):
        at = version - back
        meta = store.Meta(key, f"uid-{number % 2}", at)
        match kind:
            case "put":
                shared.put(meta, read(shared, number))
                for one in alone:
                    one.kept.put(meta, one.read(number))
            case "remove":
                shared.remove(key, at)
                for one in alone:
                    one.kept.remove(key, at)
            case "bookmark":
                shared.bookmark(at)
                for one in alone:
                    one.kept.bookmark(at)
            case "list":
                listed = store.Meta(key, f"uid-{number % 2}", version)
                shared.accept(listed, read(shared, number))
                shared.finish({key}, version)
                for one in alone:
                    one.kept.accept(listed, one.read(number))
                    one.kept.finish({key}, version)
        assert [content(view) for view in views] == [content(one.kept) for one in alone]
    assert len(shared) == max(len(view) for view in views)
    assert shared.synced == views[0].synced


def test_a_listener_that_fails_hides_an_object_from_its_own_view_only() -> None:
    shared: shared_store.SharedStore[int] = shared_store.SharedStore()
    weak, firm = shared.view(int), shared.view(int)
    faults: list[str] = []
    shared.faults = lambda key, _error: faults.append(key)

    def fails(change: store.Change[int]) -> None:
        if change.new == 3:
            raise ValueError("three")

    weak.listen(fails)
    shared.put(store.Meta("a", "u", 1), (1, 1))
    shared.put(store.Meta("b", "u", 2), (3, 3))
    assert (dict(weak.items()), dict(firm.items())) == ({"a": 1}, {"a": 1, "b": 3})
    assert faults == ["b"]


def test_an_object_that_cannot_be_read_at_all_is_in_no_view() -> None:
    shared: shared_store.SharedStore[int] = shared_store.SharedStore()
    views = [shared.view(int), shared.view(str)]
    shared.put(store.Meta("a", "u", 1), (1, "1"))
    shared.put(store.Meta("a", "u", 2), None)
    assert [len(view) for view in views] == [0, 0]
    assert "a" not in shared


def test_no_view_is_taken_of_a_watch_that_has_begun() -> None:
    shared: shared_store.SharedStore[int] = shared_store.SharedStore()
    shared.view(int)
    shared.put(store.Meta("a", "u", 1), (1,))
    with pytest.raises(RuntimeError, match="before the watch starts"):
        shared.view(str)


def test_what_one_view_cannot_read_others_see_and_it_is_said() -> None:
    shared: shared_store.SharedStore[Any] = shared_store.SharedStore()
    shared.view(lambda pod: pod.metadata.name)
    shared.view(lambda pod: int(pod.metadata.labels["size"]))
    reader: wire.Reader[Any] = wire.Reader(core.Pod, shared.project)
    line = b'{"type":"ADDED","object":{"metadata":{"name":"p","labels":{"size":"big"}}}}'
    told = reader.event(line)
    assert isinstance(told, wire.Event)
    assert told.item.value == ("p", None)
    assert told.item.flaw.startswith("ValueError: invalid literal")


async def test_one_list_and_watch_feed_all_views(server: Any, watched: Any, pod: Any) -> None:
    members: informer_set.InformerSet = watched()
    shared: shared_store.SharedStore[core.Pod] = shared_store.SharedStore()
    uids = shared.view(lambda found: found.metadata.uid)
    nodes = shared.view(lambda found: found.spec.node_name or None)
    members.add(reflector.Projection(resources.PODS, core.Pod, shared.project), shared)
    server.on(
        "GET",
        "/api/v1/pods",
        server.page([pod("a", 3, node="n1"), pod("b", 4)], 10),
        server.watch(),
    )
    async with supervise.Supervisor() as running:
        members.start(running)
        await members.synced()
        assert dict(uids.items()) == {"shop/a": "uid-a", "shop/b": "uid-b"}
        assert dict(nodes.items()) == {"shop/a": "n1"}
        assert uids.synced
        assert nodes.synced
        assert len(server.calls("GET", "/api/v1/pods")) <= 2
