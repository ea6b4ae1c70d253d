"""What a snapshot keeps of each object: a list of fields, never a list of exceptions. Pure.

Containers lose their images, commands and environments, conditions their messages, nodes their
addresses; of annotations only Koordinator's and our own stay. Texts that stay pass the redaction of
support bundles.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from api import names, resources
from api.kubernetes import core
from cli.doctor import redaction

Raw = dict[str, Any]

LONGEST_NOTE: Final = 16 << 10
"""Characters of an annotation that is kept."""
_DOMAINS: Final = ("koordinator.sh", "koord.sh")


def ours(key: str) -> bool:
    """Whether a label or annotation is Koordinator's or our own."""
    prefix = key.partition("/")[0]
    return any(prefix == domain or prefix.endswith(f".{domain}") for domain in _DOMAINS)


def kept(resource: resources.Resource, raw: Mapping[str, Any]) -> Raw:
    """Return the part of an object that a snapshot keeps; ValueError where it has no such shape."""
    reduce = _REDUCERS.get(resource, _custom)
    return reduce(raw)


def _lean(read: core.Wire) -> Raw:
    found: Raw = msgspec.to_builtins(read)
    return found


def _metadata(metadata: core.ObjectMeta) -> core.ObjectMeta:
    return msgspec.structs.replace(
        metadata,
        resource_version="",
        labels={key: redaction.text(value) for key, value in metadata.labels.items()},
        annotations={
            key: redaction.text(value)
            for key, value in metadata.annotations.items()
            if ours(key) and len(value) <= LONGEST_NOTE
        },
    )


def _conditions(conditions: tuple[core.Condition, ...]) -> tuple[core.Condition, ...]:
    return tuple(msgspec.structs.replace(one, message="") for one in conditions)


def _container(container: core.Container) -> core.Container:
    return core.Container(
        name=container.name,
        resources=container.resources,
        restart_policy=container.restart_policy,
    )


def _container_status(status: core.ContainerStatus) -> core.ContainerStatus:
    return core.ContainerStatus(
        name=status.name,
        ready=status.ready,
        state=_ended(status.state),
        allocated_resources=status.allocated_resources,
        resources=status.resources,
    )


def _ended(state: Mapping[str, Any]) -> Raw:
    """Keep when a container ended, which tells how long pods of its owner run."""
    ended = state.get("terminated")
    if not isinstance(ended, Mapping):
        return {}
    moments = {key: str(ended[key])[:40] for key in ("startedAt", "finishedAt") if key in ended}
    return {"terminated": moments}


def _pod(raw: Mapping[str, Any]) -> Raw:
    pod = msgspec.convert(raw, core.Pod)
    spec = msgspec.structs.replace(
        pod.spec,
        containers=tuple(map(_container, pod.spec.containers)),
        init_containers=tuple(map(_container, pod.spec.init_containers)),
        service_account_name="",
    )
    status = core.PodStatus(
        phase=pod.status.phase,
        reason=pod.status.reason,
        qos_class=pod.status.qos_class,
        nominated_node_name=pod.status.nominated_node_name,
        conditions=_conditions(pod.status.conditions),
        container_statuses=tuple(map(_container_status, pod.status.container_statuses)),
        start_time=pod.status.start_time,
    )
    return _lean(core.Pod(_metadata(pod.metadata), spec, status))


def _node(raw: Mapping[str, Any]) -> Raw:
    node = msgspec.convert(raw, core.Node)
    spec = core.NodeSpec(unschedulable=node.spec.unschedulable, taints=node.spec.taints)
    status = core.NodeStatus(
        capacity=node.status.capacity,
        allocatable=node.status.allocatable,
        conditions=_conditions(node.status.conditions),
    )
    return _lean(core.Node(_metadata(node.metadata), spec, status))


def _namespace(raw: Mapping[str, Any]) -> Raw:
    return _lean(core.Namespace(_metadata(msgspec.convert(raw, core.Namespace).metadata)))


def _priority_class(raw: Mapping[str, Any]) -> Raw:
    found = msgspec.convert(raw, core.PriorityClass)
    return _lean(msgspec.structs.replace(found, metadata=_metadata(found.metadata)))


def _budget(raw: Mapping[str, Any]) -> Raw:
    found = msgspec.convert(raw, core.PodDisruptionBudget)
    return _lean(msgspec.structs.replace(found, metadata=_metadata(found.metadata)))


def _config_map(raw: Mapping[str, Any]) -> Raw:
    found = msgspec.convert(raw, core.ConfigMap)
    data = {key: redaction.text(value) for key, value in found.data.items()}
    return _lean(core.ConfigMap(_metadata(found.metadata), data))


def _custom(raw: Mapping[str, Any]) -> Raw:
    """Keep the whole spec and status of a custom resource of ours."""
    metadata = _metadata(msgspec.convert(raw.get("metadata") or {}, core.ObjectMeta))
    found = {"apiVersion": raw.get("apiVersion", ""), "kind": raw.get("kind", "")}
    found |= {"metadata": _lean(metadata)}
    parts = {part: redaction.thing(raw[part]) for part in ("spec", "status") if part in raw}
    return found | parts


_REDUCERS: Final[Mapping[resources.Resource, Callable[[Mapping[str, Any]], Raw]]] = {
    resources.PODS: _pod,
    resources.NODES: _node,
    resources.NAMESPACES: _namespace,
    resources.PRIORITY_CLASSES: _priority_class,
    resources.POD_DISRUPTION_BUDGETS: _budget,
    resources.CONFIG_MAPS: _config_map,
}

RESOURCES: Final = (
    resources.PODS,
    resources.NODES,
    resources.NAMESPACES,
    resources.PRIORITY_CLASSES,
    resources.POD_DISRUPTION_BUDGETS,
    *resources.QUOTA_RESOURCES,
    resources.ELASTIC_QUOTA_PROFILES,
)
"""What a snapshot holds, besides the settings."""
SETTINGS: Final = (names.CONFIG_MAP_SCHEDULER, names.CONFIG_MAP_SLO, names.CONFIG_MAP_SWITCHES)
"""ConfigMaps of the installation that it holds."""
