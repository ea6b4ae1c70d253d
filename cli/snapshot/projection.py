"""What a snapshot keeps of each object: a list of fields, never a list of exceptions. Pure.

Containers lose their images, commands and environments, conditions their messages, nodes their
addresses. Annotations of Koordinator and our own stay, and those that say whether a pod may move.
Texts that stay pass the redaction of support bundles.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from api import names, resources
from api.koordinator import scheduling
from api.koordinator.metrics import nodemetric_structs
from api.kubernetes import core
from api.kubernetes import dynamic_resources as dra
from cli.doctor import redaction
from cli.snapshot import workloads
from descheduler.model import pod_object
from domain.devices import dynamic_resources
from domain.gangs import sentences

Raw = dict[str, Any]

LONGEST_NOTE: Final = 16 << 10
"""Characters of an annotation that is kept."""
LONGEST_TOPOLOGY: Final = 512 << 10
"""Characters of an annotation of a NodeResourceTopology, whose CPUs are a long list."""
_KEPT: Final = workloads.ANNOTATIONS | {names.ANNOTATION_POD_GROUP_MATCH_POLICY}
"""Annotations of other domains that decisions read."""
_TOLD: Final = frozenset({names.CONDITION_GANG, names.CONDITION_QUOTA})
"""Conditions of pods whose messages are kept: our own, which say what a pod waits for."""
_DOMAINS: Final = ("koordinator.sh", "koord.sh")


def ours(key: str) -> bool:
    """Whether a label or annotation is Koordinator's or our own."""
    prefix = key.partition("/")[0]
    return any(prefix == domain or prefix.endswith(f".{domain}") for domain in _DOMAINS)


def kept(resource: resources.Resource, raw: Mapping[str, Any]) -> Raw:
    """Return the part of an object that a snapshot keeps; ValueError where it has no such shape."""
    reduce = _REDUCERS.get(resource, _custom)
    return reduce(raw)


def _lean(read: msgspec.Struct) -> Raw:
    found: Raw = msgspec.to_builtins(read)
    return found


def _metadata(metadata: core.ObjectMeta, longest: int = LONGEST_NOTE) -> core.ObjectMeta:
    return msgspec.structs.replace(
        metadata,
        resource_version="",
        labels={key: redaction.text(value) for key, value in metadata.labels.items()},
        annotations={
            key: redaction.text(value)
            for key, value in metadata.annotations.items()
            if (ours(key) or key in _KEPT) and len(value) <= longest
        },
    )


def _conditions(conditions: tuple[core.Condition, ...]) -> tuple[core.Condition, ...]:
    return tuple(msgspec.structs.replace(one, message=_message(one)) for one in conditions)


def _message(one: core.Condition) -> str:
    """Return what is kept of a message; of others' that a pod was refused for want of a plan."""
    if one.type in _TOLD:
        return redaction.text(one.message)
    return sentences.NO_PLAN if sentences.is_about_no_plan(one.message) else ""


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
        restart_count=status.restart_count,
        state=workloads.state(status.state),
        allocated_resources=status.allocated_resources,
        resources=status.resources,
    )


def _pod(raw: Mapping[str, Any]) -> Raw:
    pod = msgspec.convert(raw, pod_object.Pod)
    spec = msgspec.structs.replace(
        pod.spec,
        containers=tuple(map(_container, pod.spec.containers)),
        init_containers=tuple(map(_container, pod.spec.init_containers)),
        service_account_name="",
        volumes=tuple(workloads.volume(one) for one in pod.spec.volumes if one.ties_to_node),
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


def _reservation(raw: Mapping[str, Any]) -> Raw:
    """Keep spec and status; of the pod template what is kept of a pod."""
    found = _custom(raw)
    spec = found.get("spec")
    if isinstance(spec, dict) and isinstance(spec.get("template"), Mapping):
        template = scheduling.without_nulls(dict(raw["spec"]["template"]))
        lean = _pod(template)
        kept = {part: lean[part] for part in ("metadata", "spec") if part in lean}
        found["spec"] = {**spec, "template": kept}
    return found


def _topology(raw: Mapping[str, Any]) -> Raw:
    """Keep policies, and the amounts of each zone; the CPUs stand in an annotation."""
    metadata = msgspec.convert(raw.get("metadata") or {}, core.ObjectMeta)
    found: Raw = {"apiVersion": raw.get("apiVersion", ""), "kind": raw.get("kind", "")}
    found["metadata"] = _lean(_metadata(metadata, LONGEST_TOPOLOGY))
    found["topologyPolicies"] = [str(one)[:64] for one in raw.get("topologyPolicies") or ()]
    found["zones"] = [
        {part: redaction.thing(zone[part]) for part in _ZONE if part in zone}
        for zone in raw.get("zones") or ()
    ]
    return found


def _device(raw: Mapping[str, Any]) -> Raw:
    """Keep the devices of a node; the status repeats what stands on the pods."""
    found = _custom({key: part for key, part in raw.items() if key != "status"})
    for one in (found.get("spec") or {}).get("devices") or ():
        one.pop("conditions", None)
    return found


def _custom(raw: Mapping[str, Any]) -> Raw:
    """Keep the whole spec and status of a custom resource of ours."""
    metadata = _metadata(msgspec.convert(raw.get("metadata") or {}, core.ObjectMeta))
    found = {"apiVersion": raw.get("apiVersion", ""), "kind": raw.get("kind", "")}
    found |= {"metadata": _lean(metadata)}
    parts = {part: redaction.thing(raw[part]) for part in ("spec", "status") if part in raw}
    return found | parts


class _Reclaimable(core.Wire, frozen=True, gc=False):
    resource: nodemetric_structs.Resources = nodemetric_structs.Resources()


class _HostApplication(core.Wire, frozen=True, gc=False):
    priority: str = ""
    usage: nodemetric_structs.Resources = nodemetric_structs.Resources()


class _Measured(nodemetric_structs.Status, frozen=True, gc=False):
    """What was measured, with what only lending is calculated from."""

    prod_reclaimable_metric: _Reclaimable | None = None
    host_application_metric: tuple[_HostApplication, ...] = ()


class _NodeMetric(nodemetric_structs.NodeMetric, frozen=True, gc=False):
    status: _Measured = _Measured()


def _node_metric(raw: Mapping[str, Any]) -> Raw:
    """Keep what load and lending are read from, and when it was measured."""
    read = msgspec.convert(raw, _NodeMetric)
    return _kind_of(raw) | _lean(msgspec.structs.replace(read, metadata=_metadata(read.metadata)))


def _workload(raw: Mapping[str, Any]) -> Raw:
    found = workloads.workload(raw)
    return _kind_of(raw) | _lean(msgspec.structs.replace(found, metadata=_metadata(found.metadata)))


def _job(raw: Mapping[str, Any]) -> Raw:
    """Keep which pod is moved, and how far that is; the template of its Reservation is left out."""
    metadata = _metadata(msgspec.convert(raw.get("metadata") or {}, core.ObjectMeta))
    written = (raw.get("status") or {}).get("conditions") or ()
    conditions = _conditions(msgspec.convert(written, tuple[core.Condition, ...]))
    parts = redaction.thing(workloads.job(raw, conditions))
    return _kind_of(raw) | {"metadata": _lean(metadata), **parts}


def _slice(raw: Mapping[str, Any]) -> Raw:
    """Keep which devices a driver offers on nodes, by what identifies them."""
    read = dra.read_slice(raw)
    devices = tuple(
        msgspec.structs.replace(
            one,
            attributes={key: value for key, value in one.attributes.items() if _identifies(key)},
        )
        for one in read.spec.devices
    )
    spec = msgspec.structs.replace(read.spec, devices=devices)
    return _kind_of(raw) | _lean(
        msgspec.structs.replace(read, metadata=_metadata(read.metadata), spec=spec)
    )


def _identifies(attribute: str) -> bool:
    return attribute.rpartition("/")[2] in dynamic_resources.UUIDS | dynamic_resources.ADDRESSES


def _claim(raw: Mapping[str, Any]) -> Raw:
    """Keep which devices a claim was given."""
    read = dra.read_claim(raw)
    return _kind_of(raw) | _lean(msgspec.structs.replace(read, metadata=_metadata(read.metadata)))


def _kind_of(raw: Mapping[str, Any]) -> Raw:
    return {"apiVersion": raw.get("apiVersion", ""), "kind": raw.get("kind", "")}


_REDUCERS: Final[Mapping[resources.Resource, Callable[[Mapping[str, Any]], Raw]]] = {
    resources.PODS: _pod,
    resources.NODES: _node,
    resources.NAMESPACES: _namespace,
    resources.PRIORITY_CLASSES: _priority_class,
    resources.POD_DISRUPTION_BUDGETS: _budget,
    resources.CONFIG_MAPS: _config_map,
    resources.RESERVATIONS: _reservation,
    resources.NODE_RESOURCE_TOPOLOGIES: _topology,
    resources.DEVICES: _device,
    resources.NODE_METRICS: _node_metric,
    resources.RESOURCE_SLICES: _slice,
    resources.RESOURCE_CLAIMS: _claim,
    workloads.JOBS: _job,
    **dict.fromkeys(workloads.KINDS, _workload),
}
_ZONE: Final = ("name", "type", "resources")

RESOURCES: Final = (
    resources.PODS,
    resources.NODES,
    resources.NAMESPACES,
    resources.PRIORITY_CLASSES,
    resources.POD_DISRUPTION_BUDGETS,
    *resources.QUOTA_RESOURCES,
    resources.ELASTIC_QUOTA_PROFILES,
    resources.RESERVATIONS,
    resources.NODE_RESOURCE_TOPOLOGIES,
    resources.DEVICES,
    resources.NODE_METRICS,
    resources.RESOURCE_SLICES,
    resources.RESOURCE_CLAIMS,
    resources.POD_GROUPS,
    *resources.NATIVE_POD_GROUPS,
    resources.CLUSTER_NETWORK_TOPOLOGIES,
    *workloads.KINDS,
    workloads.JOBS,
)
"""What a snapshot holds, besides the settings."""
EXTENDER_SETTINGS: Final = "koord-extender"
"""ConfigMap with the settings of the extender, which name its plug-ins."""
SETTINGS: Final = (
    names.CONFIG_MAP_SCHEDULER,
    names.CONFIG_MAP_SLO,
    names.CONFIG_MAP_SWITCHES,
    names.CONFIG_MAP_GPU_TEMPLATES,
    EXTENDER_SETTINGS,
    names.CONFIG_MAP_DESCHEDULER,
)
"""ConfigMaps of the installation that it holds."""
