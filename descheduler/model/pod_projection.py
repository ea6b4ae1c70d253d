"""What the descheduler keeps of a pod. Pure.

What a pod's author writes is bounded. A pod that cannot be read in full is kept with what could be,
since it takes room on its node, and carries the reason as its flaw: such a pod stays where it is.
"""

import functools
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from api import names
from api.koordinator.metadata import qos
from api.kubernetes import core
from descheduler.model import pod_object, podinfo, sharing
from domain.gangs import declaration
from domain.pods import resources
from domain.quota import placement

ANNOTATIONS: Final = (
    names.ANNOTATION_EXEMPT,
    names.ANNOTATION_FORCE_EVICT,
    names.ANNOTATION_PREFER_NO_EVICTION,
    names.ANNOTATION_POD_DELETION_COST,
    names.ANNOTATION_EVICTION_COST,
    names.ANNOTATION_SOFT_EVICTION,
)
"""Annotations that are kept, cut where they are long."""
MIRROR: Final = "kubernetes.io/config.mirror"
SOURCE: Final = "kubernetes.io/config.source"
_LONGEST_NOTE: Final = 1024
_MOST_CONDITIONS: Final = 16
_MOST_CONTAINERS: Final = 64
_LONGEST_REASON: Final = 128
_SLOWEST_START: Final = 3600.0
_UNREADABLE: Final = (
    *(ValueError, TypeError, LookupError, AttributeError),
    *(ArithmeticError, RecursionError),
)
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_NO_NOTES: Final[Mapping[str, str]] = {}


class _Template(NamedTuple):
    """What the pods of one template have in common."""

    requests: podinfo.Amounts
    names: tuple[tuple[str, str, str], ...]
    """Name, image and kind of each container."""
    spread: tuple[Mapping[str, object], ...]
    affinity: Mapping[str, object]


class _Placement(NamedTuple):
    """What a pod wants of nodes."""

    wanted: placement.Requirements
    preferred: tuple[Mapping[str, object], ...]


_NO_TEMPLATE: Final = _Template({names.PODS: 1}, (), (), {})
_ANYWHERE: Final = _Placement(placement.NONE, ())


class Projector:
    """Reads pods; what is alike is one object."""

    def __init__(self) -> None:
        self._templates = sharing.Shared()
        self._placements = sharing.Shared()

    def pod(self, pod: pod_object.Pod) -> podinfo.Pod:
        """Return what is kept of a pod."""
        metadata, spec, status = pod.metadata, pod.spec, pod.status
        flaws: list[str] = []
        template, where = self._read(pod, flaws)
        ready = status.condition("Ready")
        kubernetes_qos = _or(flaws, lambda: qos.kubernetes_qos(pod), "")
        return podinfo.Pod(
            key=sys.intern(metadata.key),
            uid=metadata.uid,
            node=sys.intern(spec.node_name),
            phase=sys.intern(status.phase),
            reason=sys.intern(status.reason[:_LONGEST_REASON]),
            priority=spec.priority,
            band=qos.band_with_default(spec.priority, metadata.labels, kubernetes_qos),
            qos=qos.qos_of(metadata.labels),
            kubernetes_qos=sys.intern(kubernetes_qos),
            scheduler_name=sys.intern(spec.scheduler_name),
            labels=sharing.labels(metadata.labels),
            annotations=_kept(metadata.annotations),
            owners=sharing.owners(metadata.owner_references),
            requests=template.requests,
            wanted=where.wanted,
            created=_or(flaws, lambda: sharing.moment_of(metadata.creation_timestamp), -1.0),
            started=_or(flaws, lambda: sharing.moment_of(status.start_time), -1.0),
            leaves_at=_leaves_at(metadata.deletion_timestamp),
            ready=ready is not None and ready.status == "True",
            restarts_cost_seconds=_or(flaws, lambda: _starting(pod, ready), 0.0),
            containers=_or(flaws, lambda: _containers(template.names, status), ()),
            conditions=_or(flaws, lambda: tuple(_conditions(status)), ()),
            is_mirror=MIRROR in metadata.annotations
            or metadata.annotations.get(SOURCE, "api") != "api",
            has_local_storage=any(map(_is_local, spec.volumes)),
            claims=tuple(_claims(spec)),
            has_resource_claims=bool(spec.resource_claims),
            spread=template.spread,
            affinity=template.affinity,
            preferred_nodes=where.preferred,
            gang=_or(flaws, lambda: _gang(pod), ""),
            flaw=flaws[0] if flaws else "",
        )

    def _read(self, pod: pod_object.Pod, flaws: list[str]) -> tuple[_Template, _Placement]:
        spec = pod.spec
        affinity = spec.affinity or {}
        parts = (
            [(one.name, one.image, one.restart_policy, one.resources) for one in spec.containers],
            [
                (one.name, one.image, one.restart_policy, one.resources)
                for one in spec.init_containers
            ],
            (spec.resources, spec.overhead, spec.topology_spread_constraints),
            (affinity.get("podAffinity"), affinity.get("podAntiAffinity")),
        )
        template = _or(
            flaws, lambda: self._templates.get(parts, lambda: _template(pod)), _NO_TEMPLATE
        )
        shape = (spec.node_selector, affinity, spec.tolerations)
        if not any(shape):
            return template, _ANYWHERE
        if any(owner.kind == "DaemonSet" for owner in pod.metadata.owner_references):
            # Each of them names its node.
            return template, _or(flaws, lambda: _placement(spec), _ANYWHERE)
        where = _or(flaws, lambda: self._placements.get(shape, lambda: _placement(spec)), _ANYWHERE)
        return template, where


def _or(flaws: list[str], read: Any, otherwise: Any) -> Any:
    """Return what can be read; what cannot is noted, and something else stands in its place."""
    try:
        return read()
    except _UNREADABLE as error:
        flaws.append(f"{type(error).__name__}: {error}"[:_LONGEST_NOTE])
        return otherwise


def _template(pod: pod_object.Pod) -> _Template:
    spec = pod.spec
    affinity = spec.affinity or {}
    requests = {
        sys.intern(name): amount for name, amount in resources.pod_requests(pod).items() if amount
    }
    return _Template(
        {**requests, names.PODS: 1},
        tuple(
            (sys.intern(one.name), sys.intern(one.image), kind)
            for kind, listed in (("init", spec.init_containers), ("main", spec.containers))
            for one in listed[:_MOST_CONTAINERS]
        ),
        tuple(spec.topology_spread_constraints),
        {name: affinity[name] for name in ("podAffinity", "podAntiAffinity") if affinity.get(name)},
    )


def _placement(spec: core.PodSpec) -> _Placement:
    nodes = (spec.affinity or {}).get("nodeAffinity") or {}
    return _Placement(placement.requirements(spec), tuple(nodes.get(_PREFERRED) or ()))


def _kept(written: Mapping[str, str]) -> Mapping[str, str]:
    found = {name: written[name][:_LONGEST_NOTE] for name in ANNOTATIONS if name in written}
    return found or _NO_NOTES


def _leaves_at(written: str | None) -> float:
    """Return when a pod has to be gone; a moment that cannot be read is long past."""
    try:
        return sharing.moment_of(written)
    except ValueError:
        return 0.0


def _starting(pod: pod_object.Pod, ready: core.Condition | None) -> float:
    """Return how long a pod took to become ready; not known once a container has restarted."""
    if ready is None or ready.status != "True" or not ready.last_transition_time:
        return 0.0
    if any(one.restart_count for one in pod.status.container_statuses):
        return 0.0
    took = sharing.moment(ready.last_transition_time) - sharing.moment_of(
        pod.metadata.creation_timestamp
    )
    return min(max(took, 0.0), _SLOWEST_START)


def _conditions(status: core.PodStatus) -> Iterator[podinfo.Condition]:
    for one in status.conditions[:_MOST_CONDITIONS]:
        yield podinfo.Condition(
            sys.intern(one.type),
            sys.intern(one.status),
            sys.intern(one.reason[:_LONGEST_REASON]),
            sharing.moment_of(one.last_transition_time),
        )


def _containers(
    listed: tuple[tuple[str, str, str], ...], status: pod_object.PodStatus
) -> tuple[podinfo.Container, ...]:
    """Return the containers with their states; ephemeral ones are known by their status."""
    ephemeral = tuple(
        (one.name, "", "ephemeral")
        for one in status.ephemeral_container_statuses[:_MOST_CONTAINERS]
    )
    states = {
        one.name: one
        for one in (
            *status.ephemeral_container_statuses,
            *status.init_container_statuses,
            *status.container_statuses,
        )
    }
    return _same(
        tuple(
            _container(name, image, kind, states.get(name))
            for name, image, kind in (*listed, *ephemeral)
        )
    )


def _container(
    name: str, image: str, kind: str, status: core.ContainerStatus | None
) -> podinfo.Container:
    if status is None:
        return podinfo.Container(name, image, kind)
    state, said = next(iter(status.state.items()), ("", None))
    detail: Mapping[str, Any] = said if isinstance(said, dict) else {}
    code = detail.get("exitCode")
    return podinfo.Container(
        name,
        image,
        kind,
        restarts=status.restart_count,
        state=sys.intern(state),
        reason=sys.intern(str(detail.get("reason", ""))[:_LONGEST_REASON]),
        exit_code=code if isinstance(code, int) else None,
    )


@functools.lru_cache(maxsize=32_768)
def _same(containers: tuple[podinfo.Container, ...]) -> tuple[podinfo.Container, ...]:
    return containers


def _is_local(volume: pod_object.Volume) -> bool:
    source = volume.source
    return source.host_path is not None or source.empty_dir is not None


def _claims(spec: pod_object.PodSpec) -> Iterator[str]:
    for volume in spec.volumes:
        claim = volume.source.persistent_volume_claim
        if claim is not None:
            yield claim.claim_name


def _gang(pod: pod_object.Pod) -> str:
    metadata = pod.metadata
    found = declaration.membership(
        metadata.namespace, metadata.labels, metadata.annotations, pod.spec.scheduling_group
    )
    return sys.intern(found[0]) if found is not None else ""
