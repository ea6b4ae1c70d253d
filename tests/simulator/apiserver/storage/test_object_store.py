"""The versioned store: what writes do to metadata, what watchers see, what is forgotten."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.apiserver.http import api_errors
from simulator.apiserver.storage import lifecycle, object_store

PODS = object_store.PODS
CONFIG_MAPS = object_store.Collection("", "configmaps")
NODES = object_store.Collection("", "nodes")
METRICS = object_store.Collection("slo.koordinator.sh", "nodemetrics")


class Time:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


def counter(prefix: str) -> Callable[[], str]:
    numbers = iter(range(1, 1_000_000))
    return lambda: f"{prefix}{next(numbers)}"


@pytest.fixture
def store(time: Time) -> object_store.Objects:
    return object_store.Objects(now=time, uid=counter("uid-"), suffix=counter("x"), history=100)


def named(name: str, namespace: str = "default", **rest: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, **rest}


def pod(name: str, node: str = "", **rest: Any) -> dict[str, Any]:
    return named(name, spec={"nodeName": node} if node else {}, **rest)


def test_creation_fills_in_what_the_server_owns(store: object_store.Objects) -> None:
    body = {"metadata": {"generateName": "web-", "uid": "forged", "generation": 9}, "spec": {}}
    created = store.create(PODS, body, "default")
    assert created["metadata"] == {
        "generateName": "web-",
        "name": "web-x1",
        "namespace": "default",
        "uid": "uid-1",
        "creationTimestamp": "2023-11-14T22:13:20Z",
        "generation": 1,
        "resourceVersion": "2",
    }
    assert body["metadata"]["uid"] == "forged"


def test_a_name_is_taken_once(store: object_store.Objects) -> None:
    store.create(PODS, pod("a"))
    with pytest.raises(api_errors.FailureError) as caught:
        store.create(PODS, pod("a"))
    assert (caught.value.code, caught.value.reason) == (409, "AlreadyExists")
    assert caught.value.message == 'pods "a" already exists'


@pytest.mark.parametrize(
    ("part", "expected_spec", "expected_status", "expected_labels"),
    [
        pytest.param(object_store.Part.WHOLE, {"v": 2}, {"s": 2}, {"l": "2"}, id="whole"),
        pytest.param(
            object_store.Part.MAIN, {"v": 2}, {"s": 1}, {"l": "2"}, id="main keeps status"
        ),
        pytest.param(
            object_store.Part.STATUS, {"v": 1}, {"s": 2}, {"l": "2"}, id="built-in status"
        ),
        pytest.param(
            object_store.Part.STATUS_ONLY, {"v": 1}, {"s": 2}, {"l": "1"}, id="custom status"
        ),
    ],
)
def test_each_part_changes_only_its_own(
    store: object_store.Objects,
    part: object_store.Part,
    expected_spec: dict[str, int],
    expected_status: dict[str, int],
    expected_labels: dict[str, str],
) -> None:
    first = {"metadata": {"name": "n", "labels": {"l": "1"}}, "spec": {"v": 1}, "status": {"s": 1}}
    second = {"metadata": {"name": "n", "labels": {"l": "2"}}, "spec": {"v": 2}, "status": {"s": 2}}
    store.create(METRICS, first)
    updated = store.update(METRICS, second, part)
    assert updated["spec"] == expected_spec
    assert updated["status"] == expected_status
    assert updated["metadata"]["labels"] == expected_labels
    assert updated["metadata"]["generation"] == (2 if expected_spec == {"v": 2} else 1)


def test_a_stale_version_is_a_conflict_and_an_equal_object_no_write(
    store: object_store.Objects,
) -> None:
    first = store.create(CONFIG_MAPS, named("c", data={"a": "1"}))
    second = store.update(CONFIG_MAPS, {**first, "data": {"a": "2"}})
    with pytest.raises(api_errors.FailureError, match="the object has been modified"):
        store.update(CONFIG_MAPS, {**first, "data": {"a": "3"}})
    assert store.update(CONFIG_MAPS, second) is second
    assert store.version == 3


def test_modify_edits_a_private_copy(store: object_store.Objects) -> None:
    first = store.create(CONFIG_MAPS, named("c", data={"a": "1"}))
    second = store.modify(CONFIG_MAPS, "c", "default", lambda body: body["data"].update(b="2"))
    assert first["data"] == {"a": "1"}
    assert second["data"] == {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    ("body", "grace", "left"),
    [
        pytest.param(pod("p"), None, None, id="unscheduled goes at once"),
        pytest.param(pod("p", "n"), None, 30, id="running gets its default"),
        pytest.param(pod("p", "n"), 5, 5, id="running gets the wanted grace"),
        pytest.param(pod("p", "n"), 0, None, id="zero goes at once"),
        pytest.param(pod("p", "n", status={"phase": "Failed"}), None, None, id="finished"),
    ],
)
def test_pods_on_a_node_are_deleted_gracefully(
    store: object_store.Objects, body: dict[str, Any], grace: int | None, left: int | None
) -> None:
    store.create(PODS, body)
    answer = store.delete(PODS, "p", "default", object_store.Deletion(grace=grace))
    found = store.find(PODS, "p", "default")
    assert answer["metadata"]["deletionGracePeriodSeconds"] == (left or 0)
    if left is None:
        assert found is None
    else:
        assert found is not None
        assert found["metadata"]["deletionGracePeriodSeconds"] == left
        store.delete(PODS, "p", "default", object_store.Deletion(grace=0))
        assert store.find(PODS, "p", "default") is None


def test_a_shorter_period_counts_from_the_first_deletion(
    store: object_store.Objects, time: Time
) -> None:
    store.create(PODS, pod("p", "n"))
    store.delete(PODS, "p", "default", object_store.Deletion(grace=60))
    time.now += 15
    answer = store.delete(PODS, "p", "default", object_store.Deletion(grace=20))
    assert answer["metadata"]["deletionTimestamp"] == lifecycle.timestamp(time.now + 5)
    assert answer["metadata"]["deletionGracePeriodSeconds"] == 20


def test_the_last_finalizer_ends_a_deletion(store: object_store.Objects) -> None:
    body = {"metadata": {"name": "n", "finalizers": ["koord.sh/hold"]}}
    store.create(NODES, body)
    store.delete(NODES, "n")
    marked = store.get(NODES, "n")
    assert marked["metadata"]["deletionTimestamp"] == "2023-11-14T22:13:20Z"
    store.modify(NODES, "n", "", lambda node: node["metadata"].pop("finalizers"))
    assert store.find(NODES, "n") is None


def test_a_namespace_takes_its_contents_along_and_waits_for_them(
    store: object_store.Objects,
) -> None:
    store.create(object_store.NAMESPACES, {"metadata": {"name": "default"}})
    store.create(CONFIG_MAPS, named("c"))
    store.create(PODS, pod("p", "n"))
    store.delete(object_store.NAMESPACES, "default")
    assert store.get(object_store.NAMESPACES, "default")["status"] == {"phase": "Terminating"}
    assert store.find(CONFIG_MAPS, "c", "default") is None
    store.delete(PODS, "p", "default", object_store.Deletion(grace=0))
    assert store.find(object_store.NAMESPACES, "default") is None


@pytest.mark.parametrize(
    ("precondition", "message"),
    [
        pytest.param({"uid": "other"}, "UID in precondition: other", id="uid"),
        pytest.param({"version": "99"}, "ResourceVersion in precondition: 99", id="version"),
    ],
)
def test_deletion_preconditions(
    store: object_store.Objects, precondition: dict[str, str], message: str
) -> None:
    store.create(NODES, {"metadata": {"name": "n"}})
    with pytest.raises(api_errors.FailureError, match=message) as caught:
        store.delete(NODES, "n", how=object_store.Deletion(**precondition))
    assert caught.value.code == 409
    assert store.find(NODES, "n") is not None


def test_history_is_bounded_and_what_was_forgotten_is_gone(store: object_store.Objects) -> None:
    for number in range(150):
        store.create(NODES, {"metadata": {"name": f"n{number}"}})
    with pytest.raises(api_errors.FailureError) as caught:
        store.since(NODES, 1)
    assert (caught.value.code, caught.value.reason) == (410, "Expired")
    assert len(store.since(NODES, store.compacted)) <= 100
    store.compact()
    assert store.since(NODES, store.version) == ()


def test_an_older_listing_is_rewound_from_the_history(store: object_store.Objects) -> None:
    store.create(NODES, {"metadata": {"name": "a"}})
    store.create(NODES, {"metadata": {"name": "b"}})
    before = store.list(NODES)
    store.modify(NODES, "a", "", lambda node: node.update(spec={"x": 1}))
    store.delete(NODES, "b")
    store.create(NODES, {"metadata": {"name": "c"}})
    assert store.list(NODES, at=before.version) == before
    with pytest.raises(api_errors.FailureError, match="Too large resource version"):
        store.list(NODES, at=store.version + 1)


def test_writes_of_listeners_are_seen_in_order_by_all(store: object_store.Objects) -> None:
    seen: list[tuple[str, int]] = []

    def echo(event: object_store.Event) -> None:
        if event.type == "ADDED":
            store.modify(NODES, event.key.name, "", lambda node: node.update(spec={"x": 1}))

    store.subscribe(echo)
    stop = store.subscribe(lambda event: seen.append((event.type, event.version)), NODES)
    store.create(NODES, {"metadata": {"name": "a"}})
    stop()
    store.delete(NODES, "a")
    assert seen == [("ADDED", 2), ("MODIFIED", 3)]


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["create", "update", "status", "delete", "force", "finalize"]),
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["one", "two"]),
        st.integers(0, 3),
    ),
    max_size=40,
)


def perform(store: object_store.Objects, operation: tuple[str, str, str, int]) -> None:
    verb, name, namespace, number = operation
    held = ["koord.sh/hold"] if number == 3 else []
    meta = {"name": name, "namespace": namespace, "finalizers": held}
    body = {"metadata": meta, "spec": {"nodeName": "n", "number": number}, "status": {"s": number}}
    if verb == "create":
        store.create(PODS, body)
    elif verb == "update":
        store.update(PODS, body, object_store.Part.MAIN)
    elif verb == "status":
        store.update(PODS, body, object_store.Part.STATUS_ONLY)
    elif verb == "finalize":
        store.modify(PODS, name, namespace, lambda pod: pod["metadata"].pop("finalizers", None))
    else:
        how = object_store.Deletion(grace=0 if verb == "force" else 7)
        store.delete(PODS, name, namespace, how)


@given(operations=OPERATIONS, start=st.integers(0, 40))
@settings(deadline=None)
def test_a_listing_plus_the_events_since_is_the_next_listing(
    operations: list[tuple[str, str, str, int]], start: int
) -> None:
    store = object_store.Objects(now=Time(), uid=counter("u"), suffix=counter("s"), history=10_000)
    before = store.list(PODS)
    delivered: list[object_store.Event] = []
    refusals: set[int] = set()
    store.subscribe(delivered.append)
    for position, operation in enumerate(operations):
        if position == start:
            before = store.list(PODS)
        try:
            perform(store, operation)
        except api_errors.FailureError as error:
            refusals.add(error.code)
    assert refusals <= {404, 409}
    replayed = {(o["metadata"]["namespace"], o["metadata"]["name"]): o for o in before.items}
    for event in store.since(PODS, before.version):
        identity = (event.key.namespace, event.key.name)
        assert replayed.get(identity) == event.previous
        if event.type == "DELETED":
            del replayed[identity]
        else:
            replayed[identity] = event.object
    now = store.list(PODS)
    assert tuple(replayed[key] for key in sorted(replayed)) == now.items
    assert [event.version for event in delivered] == list(range(2, store.version + 1))
    assert store.list(PODS, at=before.version) == before
