"""What a server says in lists and watches, and a store that follows it."""

import dataclasses
from collections.abc import Callable
from typing import Any

from api import resources
from api.kubernetes import core
from kube.client import wire
from kube.informers import informer_set, reflector, watch_health
from kube.informers import store as stores

PODS = "/api/v1/pods"
Pod = Callable[..., dict[str, Any]]
Make = Callable[..., informer_set.InformerSet]


def added(told: Any) -> dict[str, Any]:
    return {"type": "ADDED", "object": told}


def deleted(told: Any) -> dict[str, Any]:
    return {"type": "DELETED", "object": told}


def bookmark(version: int, *, ends: bool = False) -> dict[str, Any]:
    annotations = {wire.INITIAL_EVENTS_END: "true"} if ends else {}
    metadata = {"resourceVersion": str(version), "annotations": annotations}
    return {"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": metadata}}


GONE = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}


def projection(**changes: Any) -> reflector.Projection[str]:
    kept: reflector.Projection[str] = reflector.Projection(
        resources.PODS, core.Pod, lambda pod: pod.spec.node_name or None
    )
    return dataclasses.replace(kept, **changes)


@dataclasses.dataclass
class Kept:
    """A store, its reflector, and what a listener was told."""

    store: stores.Store[str]
    reflector: reflector.Reflector[str]
    caches: informer_set.InformerSet
    changes: list[stores.Change[str]]

    @property
    def contact(self) -> watch_health.WatchHealth:
        return self.reflector.contact

    @property
    def nodes(self) -> dict[str, str]:
        return dict(self.store.items())


def watches(server: Any) -> list[dict[str, str]]:
    return [seen.query for seen in server.calls("GET", PODS, watch="true")]


def lists(server: Any) -> list[dict[str, str]]:
    return [seen.query for seen in server.calls("GET", PODS) if "watch" not in seen.query]
