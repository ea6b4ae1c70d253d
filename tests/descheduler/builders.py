"""Short builders of what the descheduler keeps: pods, nodes, measured use, and pictures of them.

Amounts are quantities as in objects: `cpu="500m"`, `memory="2Gi"`. A name without a namespace is in
`default`. Any other field of the model may be given by its name.
"""

import collections
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from api.koordinator import migration
from api.koordinator.metadata import qos
from api.kubernetes import core, meta
from api.wire import quantity
from descheduler.model import nodeinfo, objects, picture, podinfo
from domain.quota import placement

NOW: Final = 1_700_000_000.0
"""The moment of a picture unless another one is given."""
AN_HOUR_AGO: Final = NOW - 3600


def amounts(written: Mapping[str, quantity.Written] | None = None, **more: Any) -> podinfo.Amounts:
    """Return amounts by resource: `amounts(cpu="500m", memory="1Gi")`."""
    return quantity.amounts({**(written or {}), **more})


def key(name: str) -> str:
    """Return namespace/name."""
    return name if "/" in name else f"default/{name}"


def owner(text: str) -> core.OwnerReference:
    """Return a controlling owner from `Kind/name`; its uid is its name."""
    kind, _, name = text.partition("/")
    version = "v1" if kind == "ReplicationController" else "apps/v1"
    return core.OwnerReference(version, kind, name, name, controller=True)


def pod(
    name: str = "web-0",
    node: str = "",
    *,
    cpu: quantity.Written = "1",
    memory: quantity.Written = "1Gi",
    requests: Mapping[str, quantity.Written] | None = None,
    controller: str = "ReplicaSet/web",
    selector: Mapping[str, str] | None = None,
    affinity: Mapping[str, Any] | None = None,
    tolerations: Sequence[core.Toleration] = (),
    **fields: Any,
) -> podinfo.Pod:
    """A pod; with a node it runs there and is ready.

    `requests` replaces cpu and memory; `controller=""` makes a bare pod; `uid` is `uid-` and the
    name unless it is given. `selector`, `affinity` and `tolerations` become `wanted`,
    and what of the affinity is about pods becomes `affinity`.
    """
    asked = {"cpu": cpu, "memory": memory} if requests is None else requests
    spec = core.PodSpec(
        node_selector=dict(selector or {}),
        affinity=dict(affinity) if affinity else None,
        tolerations=tuple(tolerations),
    )
    labels = fields.get("labels", {})
    kubernetes_qos = fields.setdefault("kubernetes_qos", "Burstable")
    defaults: dict[str, Any] = {
        "uid": f"uid-{key(name).removeprefix('default/').replace('/', '-')}",
        "phase": "Running" if node else "Pending",
        "ready": bool(node),
        "band": qos.band_with_default(fields.get("priority"), labels, kubernetes_qos),
        "qos": qos.qos_of(labels),
        "scheduler_name": "default-scheduler",
        "owners": (owner(controller),) if controller else (),
        "requests": {**amounts(asked), "pods": 1},
        "wanted": placement.requirements(spec),
        "affinity": {kind: of for kind, of in (affinity or {}).items() if kind != "nodeAffinity"},
        "created": AN_HOUR_AGO,
        "started": AN_HOUR_AGO if node else -1.0,
    }
    return podinfo.Pod(key=key(name), node=node, **{**defaults, **fields})


def node(
    name: str = "node-0",
    *,
    cpu: quantity.Written = "16",
    memory: quantity.Written = "64Gi",
    pods: int = 110,
    more: Mapping[str, quantity.Written] | None = None,
    **fields: Any,
) -> nodeinfo.Node:
    """A ready node, labelled with its host name; `more` are further resources it offers.

    `ready=False` and `schedulable=False` are short for `is_ready` and `is_schedulable`.
    """
    offered = {**amounts(cpu=cpu, memory=memory), **amounts(more), "pods": pods}
    fields["labels"] = {"kubernetes.io/hostname": name, **fields.get("labels", {})}
    for short in ("ready", "schedulable"):
        if short in fields:
            fields[f"is_{short}"] = fields.pop(short)
    fields.setdefault("allocatable", offered)
    fields.setdefault("capacity", fields["allocatable"])
    return nodeinfo.Node(name=name, uid=fields.pop("uid", f"uid-{name}"), **fields)


def usage(
    node_name: str = "node-0",
    system: Mapping[str, quantity.Written] | None = None,
    pods: Mapping[str, Mapping[str, quantity.Written]] | None = None,
    **fields: Any,
) -> nodeinfo.Usage:
    """What a NodeMetric says: `usage("n", {"cpu": "1"}, {"web-0": {"cpu": "2"}})`."""
    fields.setdefault("updated_at", NOW)
    return nodeinfo.Usage(
        node=node_name,
        system=amounts(system),
        by_pod={key(name): amounts(used) for name, used in (pods or {}).items()},
        **fields,
    )


def workload(name: str = "web", replicas: int = 1, **fields: Any) -> objects.Workload:
    """A ReplicaSet whose uid is its name."""
    fields.setdefault("kind", "ReplicaSet")
    fields.setdefault("uid", name.rpartition("/")[2])
    return objects.Workload(key=key(name), replicas=replicas, **fields)


def budget(
    name: str = "web", allowed: int = 0, labels: Mapping[str, str] | None = None
) -> objects.Budget:
    """A PodDisruptionBudget of the pods with these labels, of all pods without."""
    selector = {"matchLabels": dict(labels)} if labels else {}
    return objects.Budget(key(name), selector, allowed)


def job(
    name: str = "job",
    pod_name: str = "web-0",
    *,
    uid: str = "",
    phase: str = "",
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **fields: Any,
) -> objects.Job:
    """A PodMigrationJob of a pod; `spec` and `status` hold more fields of their models."""
    namespace, _, bare = key(pod_name).partition("/")
    ref = meta.ObjectReference(namespace=namespace, name=bare, uid=uid or f"uid-{bare}")
    defaults: dict[str, Any] = {
        "uid": f"uid-{name}",
        "version": "1",
        "created": NOW,
        "annotations": {},
        "labels": {},
    }
    return objects.Job(
        name=name,
        spec=migration.Spec(pod_ref=ref, **(spec or {})),
        status=migration.Status(phase=phase, **(status or {})),
        **{**defaults, **fields},
    )


def picture_of(
    nodes: Iterable[nodeinfo.Node] = (),
    pods: Iterable[podinfo.Pod] = (),
    usages: Iterable[nodeinfo.Usage] = (),
    *,
    workloads: Iterable[objects.Workload] | None = None,
    jobs: Iterable[objects.Job] = (),
    **fields: Any,
) -> picture.Picture:
    """A picture with its indexes.

    Without `workloads` every controller that pods name exists, with as many replicas as there are
    pods of it.
    """
    by_uid = {one.uid: one for one in pods}
    on_node, of = collections.defaultdict(list), collections.defaultdict(list)
    alike = collections.defaultdict(list)
    for one in by_uid.values():
        if one.node:
            on_node[one.node].append(one)
        if one.node and not one.has_ended:
            alike[podinfo.likeness(one)].append(one)
        if one.controller is not None:
            of[one.controller.uid].append(one)
    controllers = _controllers(of) if workloads is None else workloads
    fields.setdefault("namespaces", {one.namespace: {} for one in by_uid.values()})
    return picture.Picture(
        now=fields.pop("now", NOW),
        nodes={one.name: one for one in nodes},
        pods=by_uid,
        on_node={name: tuple(found) for name, found in on_node.items()},
        alike={key: tuple(found) for key, found in alike.items()},
        usage={one.node: one for one in usages},
        workloads={one.uid: one for one in controllers},
        by_controller={uid: tuple(found) for uid, found in of.items()},
        jobs={one.name: one for one in jobs},
        **fields,
    )


def _controllers(of: Mapping[str, Sequence[podinfo.Pod]]) -> Iterable[objects.Workload]:
    for uid, members in of.items():
        named = members[0].controller
        assert named is not None
        full = f"{members[0].namespace}/{named.name}"
        yield objects.Workload(uid, named.kind, full, len(members))
