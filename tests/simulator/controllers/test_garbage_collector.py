"""What happens to dependents when their owner is deleted."""

from typing import Any

import pytest

from simulator.apiserver.storage import object_store
from simulator.controllers import garbage_collector

MAPS = object_store.Collection("", "configmaps")


@pytest.fixture
def store() -> object_store.Objects:
    names = iter(range(1000))
    return object_store.Objects(
        now=lambda: 0.0, uid=lambda: f"u{next(names)}", suffix=lambda: f"{next(names)}"
    )


@pytest.fixture
def collector(store: object_store.Objects) -> garbage_collector.Garbage:
    return garbage_collector.Garbage(store)


def create(store: object_store.Objects, name: str, *owners: str, **meta: Any) -> str:
    references = [
        {"kind": "ConfigMap", "name": uid, "uid": uid, "blockOwnerDeletion": True} for uid in owners
    ]
    body = {"metadata": {"name": name, "namespace": "d", "ownerReferences": references, **meta}}
    return str(store.create(MAPS, body)["metadata"]["uid"])


def names(store: object_store.Objects) -> list[str]:
    return [item["metadata"]["name"] for item in store.list(MAPS).items]


def test_dependents_follow_at_any_depth(
    store: object_store.Objects, collector: garbage_collector.Garbage
) -> None:
    top = create(store, "top")
    middle = create(store, "middle", top)
    create(store, "leaf", middle)
    create(store, "other")
    store.delete(MAPS, "top", "d")
    assert names(store) == ["other"]


def test_a_second_owner_keeps_a_dependent(
    store: object_store.Objects, collector: garbage_collector.Garbage
) -> None:
    create(store, "shared", create(store, "a"), create(store, "b"))
    store.delete(MAPS, "a", "d")
    assert names(store) == ["b", "shared"]
    store.delete(MAPS, "b", "d")
    assert names(store) == []


def test_orphans_stay_without_their_reference(
    store: object_store.Objects, collector: garbage_collector.Garbage
) -> None:
    top = create(store, "top")
    create(store, "leaf", top)
    store.delete(MAPS, "top", "d", object_store.Deletion(policy="Orphan"))
    assert names(store) == ["leaf"]
    assert store.get(MAPS, "leaf", "d")["metadata"]["ownerReferences"] == []


def test_in_the_foreground_the_owner_goes_last(
    store: object_store.Objects, collector: garbage_collector.Garbage
) -> None:
    top = create(store, "top")
    create(store, "leaf", top, finalizers=["koord.sh/hold"])
    store.delete(MAPS, "top", "d", object_store.Deletion(policy="Foreground"))
    assert names(store) == ["leaf", "top"]
    store.modify(MAPS, "leaf", "d", lambda body: body["metadata"].pop("finalizers"))
    assert names(store) == []


def test_what_existed_before_the_collector_is_known(store: object_store.Objects) -> None:
    create(store, "leaf", create(store, "top"))
    garbage_collector.Garbage(store)
    store.delete(MAPS, "top", "d")
    assert names(store) == []


def test_nothing_is_kept_of_owners_that_are_gone(
    store: object_store.Objects, collector: garbage_collector.Garbage
) -> None:
    create(store, "leaf", create(store, "top"))
    store.delete(MAPS, "top", "d")
    assert names(store) == []
    assert not collector._dependents
    assert not collector._places
