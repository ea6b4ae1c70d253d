"""Watches of what nothing but scores depends on; while they are not synced nothing is decided."""

import dataclasses
from typing import Any, Final

import msgspec

from api import resources
from api.kubernetes import core
from domain.scoring.indexes import affinity, workloads
from extender.scoring import decider
from kube.informers import informer_set, reflector, store
from process.runtime import clock as clocks

_BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
_CHECK_SECONDS: Final = 1.0
_CONTROLLERS: Final = (
    resources.REPLICA_SETS,
    resources.STATEFUL_SETS,
    resources.REPLICATION_CONTROLLERS,
)


class _Spec(core.Wire, frozen=True, gc=False):
    selector: dict[str, Any] | None = None
    replicas: int = 1
    volume_name: str = ""
    extended_resource_name: str | None = None


class _Status(core.Wire, frozen=True, gc=False):
    replicas: int = 0


class _Object(core.Wire, frozen=True, gc=False):
    """Any of the watched kinds, with the few fields that are read."""

    metadata: core.ObjectMeta = core.ObjectMeta()
    spec: _Spec = _Spec()
    status: _Status = _Status()


class Selecting(msgspec.Struct, frozen=True):
    """A Service or a controller, with its selector."""

    kind: str
    namespace: str
    name: str
    selector: dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Watched:
    """The stores."""

    services: store.Store[Selecting]
    controllers: tuple[store.Store[Selecting], ...]
    namespaces: store.Store[core.Namespace]
    bound_claims: store.Store[str]
    device_classes: store.Store[str]


def add(members: informer_set.InformerSet) -> Watched:
    """Add everything that is watched."""

    def selecting(resource: resources.Resource) -> store.Store[Selecting]:
        def project(found: _Object) -> Selecting | None:
            # One that runs nothing has no pods to be placed; old ReplicaSets are many.
            if not found.spec.selector or not (found.spec.replicas or found.status.replicas):
                return None
            metadata = found.metadata
            return Selecting(resource.kind, metadata.namespace, metadata.name, found.spec.selector)

        return members.add(reflector.Projection(resource, _Object, project))

    return Watched(
        services=selecting(resources.SERVICES),
        controllers=tuple(map(selecting, _CONTROLLERS)),
        namespaces=members.add(
            reflector.Projection(resources.NAMESPACES, core.Namespace, _labelled)
        ),
        bound_claims=members.add(
            reflector.Projection(resources.PERSISTENT_VOLUME_CLAIMS, _Object, _bound)
        ),
        device_classes=members.add(
            reflector.Projection(
                resources.DEVICE_CLASSES, _Object, lambda one: one.spec.extended_resource_name
            )
        ),
    )


def connect(
    watched: Watched,
    members: informer_set.InformerSet,
    terms: affinity.TermIndex,
    clock: clocks.Clock,
) -> decider.Caches:
    """Let every change reach the indexes; return what a decision reads."""
    index = workloads.WorkloadIndex()
    devices: set[str] = set()

    def namespace(change: store.Change[core.Namespace]) -> None:
        if change.new is not None:
            terms.set_namespace(change.key, change.new.metadata.labels)
        else:
            terms.remove_namespace(change.key)

    def device_class(_: store.Change[str]) -> None:
        devices.clear()
        devices.update(watched.device_classes)

    watched.services.listen(lambda change: _service(index, change))
    for one in watched.controllers:
        one.listen(lambda change: _controller(index, change))
    watched.namespaces.listen(namespace)
    watched.device_classes.listen(device_class)
    return decider.Caches(index, watched.bound_claims, devices, Synced(members, clock))


def _service(index: workloads.WorkloadIndex, change: store.Change[Selecting]) -> None:
    if change.new is not None:
        index.set_service(change.new.namespace, change.new.name, change.new.selector)
    elif change.old is not None:
        index.remove_service(change.old.namespace, change.old.name)


def _controller(index: workloads.WorkloadIndex, change: store.Change[Selecting]) -> None:
    if change.new is not None:
        one = change.new
        index.set_controller(one.kind, one.namespace, one.name, one.selector)
    elif change.old is not None:
        index.remove_controller(change.old.kind, change.old.namespace, change.old.name)


class Synced:
    """Whether every cache is to be trusted, looked at once a second at most."""

    def __init__(self, members: informer_set.InformerSet, clock: clocks.Clock) -> None:
        self._members, self._clock = members, clock
        self._until, self._answer = -1.0, False

    def __call__(self) -> bool:
        """Return whether they are."""
        now = self._clock.monotonic()
        if now >= self._until or not self._answer:
            self._answer = self._members.health() is None
            self._until = now + _CHECK_SECONDS
        return self._answer


def _labelled(found: core.Namespace) -> core.Namespace:
    return core.Namespace(core.ObjectMeta(name=found.metadata.name, labels=found.metadata.labels))


def _bound(claim: _Object) -> str | None:
    """Return the key of a claim that is bound for good, as the scheduler sees it."""
    metadata = claim.metadata
    is_bound = claim.spec.volume_name and _BIND_COMPLETED in metadata.annotations
    return metadata.key if is_bound else None
