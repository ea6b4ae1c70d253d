"""Services and controllers whose selectors give pods the system's default spread constraints."""

from collections.abc import Mapping
from typing import Any, Final

from api.kubernetes import core
from domain.scoring import terms

_CONTROLLERS: Final = {
    ("v1", "ReplicationController"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
}
_MOST: Final = 4096
_MOST_LABELS: Final = 64
"""Labels of a pod of which the selector is kept, longer than the pod may be there."""
_Labels = tuple[tuple[str, str], ...]
_Owner = tuple[str, str] | None
"""Kind and name of a controller that spreads its pods."""


class WorkloadIndex:
    """Selectors by namespace, and the merged selector of each shape of pod."""

    def __init__(self) -> None:
        self._services: dict[str, dict[str, Mapping[str, str]]] = {}
        self._controllers: dict[tuple[str, str, str], terms.Selector] = {}
        self._merged: dict[str, dict[tuple[_Owner, _Labels], terms.Selector]] = {}

    def set_service(self, namespace: str, name: str, selector: Mapping[str, str] | None) -> None:
        """Note a Service; one without a selector selects nothing."""
        self._merged.pop(namespace, None)
        if selector:
            self._services.setdefault(namespace, {})[name] = selector
        else:
            self.remove_service(namespace, name)

    def remove_service(self, namespace: str, name: str) -> None:
        """Forget a Service."""
        self._merged.pop(namespace, None)
        services = self._services.get(namespace, {})
        services.pop(name, None)
        if not services:
            self._services.pop(namespace, None)

    def set_controller(
        self, kind: str, namespace: str, name: str, selector: Mapping[str, Any] | None
    ) -> None:
        """Note a controller; the selector of a ReplicationController is a plain map of labels."""
        if kind == "ReplicationController":
            read: terms.Selector | None = terms.Selector(terms.equalities(selector or {}))
        else:
            read = terms.selector(selector)
        key = (kind, namespace, name)
        if self._controllers.get(key) == read:
            return
        self._merged.pop(namespace, None)
        if read is None:
            self._controllers.pop(key, None)
        else:
            self._controllers[key] = read

    def remove_controller(self, kind: str, namespace: str, name: str) -> None:
        """Forget a controller."""
        self._merged.pop(namespace, None)
        self._controllers.pop((kind, namespace, name), None)

    def knows_controller(self, metadata: core.ObjectMeta) -> bool:
        """Tell whether the controller of a pod is known, where it has one that spreads its pods."""
        owner = _owner(metadata)
        return owner is None or (owner[0], metadata.namespace, owner[1]) in self._controllers

    def selector(self, metadata: core.ObjectMeta) -> terms.Selector | None:
        """Return the selector by which a pod is spread; None where nothing selects it."""
        namespace, owner = metadata.namespace, _owner(metadata)
        if namespace not in self._services and owner is None:
            return None
        if len(metadata.labels) > _MOST_LABELS:
            found = self._merge(namespace, owner, metadata.labels)
            return found if found.requirements else None
        if namespace not in self._merged and len(self._merged) >= _MOST:
            self._merged.clear()
        known = self._merged.setdefault(namespace, {})
        key = (owner, tuple(sorted(metadata.labels.items())))
        kept = known.get(key)
        if kept is None:
            if len(known) >= _MOST:
                known.clear()
            kept = known[key] = self._merge(namespace, owner, metadata.labels)
        return kept if kept.requirements else None

    def _merge(self, namespace: str, owner: _Owner, labels: Mapping[str, str]) -> terms.Selector:
        pairs: dict[str, str] = {}
        for selector in self._services.get(namespace, {}).values():
            if all(labels.get(key) == value for key, value in selector.items()):
                pairs |= selector
        requirements = set(terms.equalities(pairs))
        if owner is not None:
            kind, name = owner
            controller = self._controllers.get((kind, namespace, name))
            if controller is not None:
                requirements |= set(controller.requirements)
        return terms.Selector(
            tuple(sorted(requirements, key=lambda one: (one.key, one.operator, one.values)))
        )


def _owner(metadata: core.ObjectMeta) -> _Owner:
    owner = metadata.controller
    if owner is None or (owner.api_version, owner.kind) not in _CONTROLLERS:
        return None
    return owner.kind, owner.name
