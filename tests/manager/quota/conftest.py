from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from api import names, resources
from api.kubernetes import core
from domain.quota.model import Rules
from kube.informers import store
from manager.model import projections
from manager.quota import book, objects
from tests import builders

PREFIX = "quota.scheduling.koordinator.sh/"


def a_quota(
    name: str,
    namespace: str = "default",
    *,
    group: resources.Resource = resources.ELASTIC_QUOTAS,
    least: Mapping[str, str] | None = None,
    most: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    created: float = 1.0,
    version: int = 1,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """An ElasticQuota of any group; labels and annotations by the last part of their names."""
    return {
        "apiVersion": group.api_version,
        "kind": group.kind,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"{group.group}-{namespace}-{name}",
            "resourceVersion": str(version),
            "creationTimestamp": builders.durations.moment(created),
            "labels": {PREFIX + key: value for key, value in (labels or {}).items()},
            "annotations": {PREFIX + key: value for key, value in (annotations or {}).items()},
        },
        "spec": {"min": dict(least or {}), "max": dict(most or {}), **spec},
        "status": dict(status or {}),
    }


class Cluster:
    """A book fed by hand, as informers would."""

    def __init__(self, rules: Rules | None = None) -> None:
        self.stores = book.Stores(
            {resource: store.Store() for resource in resources.QUOTA_RESOURCES},
            store.Store(),
            store.Store(),
        )
        self.faults: list[str] = []
        for seen in (*self.stores.quotas.values(), self.stores.pods):
            seen.faults = lambda key, error: self.faults.append(f"{key}: {error!r}")
        self.book = book.Book(self.stores, rules or Rules())
        self.shapes = objects.Shapes()
        self.version = 0

    def _meta(self, raw: Mapping[str, Any]) -> store.Meta:
        self.version += 1
        metadata = raw["metadata"]
        key = "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
        return store.Meta(key, metadata["uid"], self.version)

    def quota(self, raw: dict[str, Any]) -> None:
        meta = self._meta(raw)
        raw["metadata"]["resourceVersion"] = str(meta.version)
        for resource, seen in self.stores.quotas.items():
            if resource.api_version == raw["apiVersion"]:
                seen.put(meta, objects.quota(raw))

    def drop_quota(self, key: str, group: resources.Resource = resources.ELASTIC_QUOTAS) -> None:
        self.version += 1
        self.stores.quotas[group].remove(key, self.version)

    def pod(self, name: str, namespace: str = "default", *, uid: str = "", **given: Any) -> None:
        labels = dict(given.pop("labels", {}))
        if quota := given.pop("quota", ""):
            labels[names.LABEL_QUOTA_NAME] = quota
        raw = builders.a_pod(name, namespace, labels=labels, **given)
        raw["metadata"]["uid"] = uid or f"uid-{namespace}-{name}"
        meta = self._meta(raw)
        raw["metadata"]["resourceVersion"] = str(meta.version)
        self.stores.pods.put(meta, self.shapes.pod(msgspec.convert(raw, core.Pod)))

    def drop_pod(self, name: str, namespace: str = "default") -> None:
        self.version += 1
        self.stores.pods.remove(f"{namespace}/{name}", self.version)

    def node(self, name: str, cpu: str = "100", memory: str = "100Gi", **given: Any) -> None:
        offers = {"cpu": cpu, "memory": memory, "pods": "110", **given.pop("extra", {})}
        raw = {
            "metadata": {"name": name, "uid": name, "labels": given.pop("labels", {})},
            "spec": given,
            "status": {
                "allocatable": dict(offers),
                "capacity": dict(offers),
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        self.stores.nodes.put(self._meta(raw), projections.node(msgspec.convert(raw, core.Node)))

    def drop_node(self, name: str) -> None:
        self.version += 1
        self.stores.nodes.remove(name, self.version)

    def used(self, name: str, resource: str = "cpu") -> int:
        found = self.book.forest.figures(name)
        assert found is not None
        return found.used[resource]

    def asked(self, name: str, resource: str = "cpu") -> int:
        found = self.book.forest.figures(name)
        assert found is not None
        return found.child_request[resource]


@pytest.fixture
def cluster() -> Cluster:
    """A cluster without anything in it."""
    return Cluster()
