"""Short builders of API objects in their JSON shape, with sane defaults."""

from collections.abc import Mapping, Sequence
from typing import Any

from api import names, resources
from api.wire import durations

Object = dict[str, Any]


def a_pod(
    name: str = "p",
    namespace: str = "default",
    *,
    cpu: str = "1",
    memory: str = "1Gi",
    node: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    priority: int | None = None,
    requests: Mapping[str, str] | None = None,
    limits: Mapping[str, str] | None = None,
    phase: str = "Pending",
    scheduler: str = "default-scheduler",
    owner: Mapping[str, Any] | None = None,
    created: float = 0.0,
    gates: Sequence[str] = (),
    tolerations: Sequence[Mapping[str, Any]] = (),
    spec: Mapping[str, Any] | None = None,
) -> Object:
    """A pod with one container; ``requests`` replaces cpu and memory as a whole."""
    wanted = {"cpu": cpu, "memory": memory} if requests is None else dict(requests)
    demands: Object = {"requests": wanted}
    if limits is not None:
        demands["limits"] = dict(limits)
    body: Object = {
        "schedulerName": scheduler,
        "containers": [{"name": "app", "image": "registry.k8s.io/pause:3.9", "resources": demands}],
    }
    if node:
        body["nodeName"] = node
    if priority is not None:
        body["priority"] = priority
    if gates:
        body["schedulingGates"] = [{"name": gate} for gate in gates]
    if tolerations:
        body["tolerations"] = [dict(item) for item in tolerations]
    metadata = _metadata(name, namespace, labels, annotations, created)
    if owner is not None:
        metadata["ownerReferences"] = [{"controller": True, **owner}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {**body, **(spec or {})},
        "status": {"phase": "Running" if node and phase == "Pending" else phase},
    }


def a_node(
    name: str = "node-1",
    *,
    cpu: str = "16",
    memory: str = "64Gi",
    pods: str = "110",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    extra: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    unschedulable: bool = False,
    ready: bool = True,
) -> Object:
    """A node; ``extra`` adds resources to capacity and allocatable."""
    offers = {"cpu": cpu, "memory": memory, "pods": pods, **(extra or {})}
    spec: Object = {}
    if taints:
        spec["taints"] = [dict(taint) for taint in taints]
    if unschedulable:
        spec["unschedulable"] = True
    all_labels = {names.LABEL_HOSTNAME: name, **(labels or {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": _metadata(name, "", all_labels, annotations, 0.0),
        "spec": spec,
        "status": {
            "capacity": dict(offers),
            "allocatable": dict(offers),
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def a_pod_metric(
    name: str, namespace: str = "default", *, cpu: str, memory: str, band: str = "", qos: str = ""
) -> Object:
    """The usage of one pod, as it stands in a NodeMetric."""
    return {
        "name": name,
        "namespace": namespace,
        "podUsage": {"resources": {"cpu": cpu, "memory": memory}},
        "priority": band,
        "qos": qos,
    }


def a_node_metric(
    name: str = "node-1",
    *,
    cpu: str = "4",
    memory: str = "16Gi",
    pods: Sequence[Mapping[str, Any]] = (),
    update_time: float = 0.0,
    system: Mapping[str, str] | None = None,
    aggregated: Mapping[str, Mapping[str, Mapping[str, str]]] | None = None,
    reclaimable: Mapping[str, str] | None = None,
    interval: int = 60,
) -> Object:
    """A report of a node's usage; ``aggregated`` is duration to statistic to amounts."""
    node: Object = {"nodeUsage": {"resources": {"cpu": cpu, "memory": memory}}}
    if system is not None:
        node["systemUsage"] = {"resources": dict(system)}
    if aggregated is not None:
        node["aggregatedNodeUsages"] = [
            {
                "duration": duration,
                "usage": {kind: {"resources": dict(item)} for kind, item in usage.items()},
            }
            for duration, usage in aggregated.items()
        ]
    status: Object = {
        "updateTime": durations.moment(update_time),
        "nodeMetric": node,
        "podsMetric": [dict(pod) for pod in pods],
    }
    if reclaimable is not None:
        status["prodReclaimableMetric"] = {"resource": {"resources": dict(reclaimable)}}
    spec = {
        "metricCollectPolicy": {
            "aggregateDurationSeconds": 300,
            "reportIntervalSeconds": interval,
            "nodeMemoryCollectPolicy": "usageWithoutPageCache",
        }
    }
    return an_object(resources.NODE_METRICS, name, spec=spec, status=status)


def a_profile(
    name: str = "profile",
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Object:
    """A colocation profile; keyword arguments are the fields of its spec by wire name."""
    return an_object(
        resources.COLOCATION_PROFILES, name, labels=labels, annotations=annotations, spec=spec
    )


def a_config_map(
    name: str = names.CONFIG_MAP_SLO,
    namespace: str = names.NAMESPACE,
    *,
    data: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
) -> Object:
    """A configuration map."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(name, namespace, labels, None, 0.0),
        "data": dict(data or {}),
    }


def a_priority_class(name: str, value: int, *, preempts: bool = True) -> Object:
    """A priority class."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "preemptionPolicy": "PreemptLowerPriority" if preempts else "Never",
    }


def a_reservation(
    name: str = "reservation",
    *,
    cpu: str = "1",
    memory: str = "1Gi",
    owner_labels: Mapping[str, str] | None = None,
    status: Mapping[str, Any] | None = None,
    created: float = 0.0,
    **spec: Any,
) -> Object:
    """A reservation of one container's requests for pods with some labels."""
    demands = {"requests": {"cpu": cpu, "memory": memory}}
    body = {
        "template": {"spec": {"containers": [{"name": "app", "resources": demands}]}},
        "owners": [{"labelSelector": {"matchLabels": dict(owner_labels or {"app": "p"})}}],
        **spec,
    }
    made = an_object(resources.RESERVATIONS, name, spec=body, status=status)
    made["metadata"]["creationTimestamp"] = durations.moment(created)
    return made


def a_quota(
    name: str = "quota",
    namespace: str = "default",
    *,
    minimum: Mapping[str, str] | None = None,
    maximum: Mapping[str, str] | None = None,
    resource: resources.Resource = resources.ELASTIC_QUOTAS,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Object:
    """An elastic quota of one of the three groups."""
    body = {"min": dict(minimum or {}), "max": dict(maximum or {}), **spec}
    return an_object(resource, name, namespace, labels=labels, annotations=annotations, spec=body)


def an_object(
    resource: resources.Resource,
    name: str,
    namespace: str = "",
    *,
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Object:
    """An object of any kind."""
    made: Object = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": _metadata(name, namespace, labels, annotations, 0.0),
    }
    if spec is not None:
        made["spec"] = dict(spec)
    if status is not None:
        made["status"] = dict(status)
    return made


def _metadata(
    name: str,
    namespace: str,
    labels: Mapping[str, str] | None,
    annotations: Mapping[str, str] | None,
    created: float,
) -> Object:
    metadata: Object = {
        "name": name,
        "uid": f"uid-{namespace}-{name}" if namespace else f"uid-{name}",
        "creationTimestamp": durations.moment(created),
    }
    if namespace:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = dict(labels)
    if annotations:
        metadata["annotations"] = dict(annotations)
    return metadata
