"""Replaces what people named in a snapshot, the same name by the same substitute. Pure.

Kept are keys of labels, resource names, amounts, times, and the values of labels and annotations
that mean something to a program. What else people wrote becomes ``pod-1``, ``namespace-2`` or
``value-3``; a selector still finds what it found.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from api import names, resources
from cli.snapshot import format as formats
from cli.snapshot import gang_renaming, hardware_renaming, substitutes, workload_renaming, workloads

Raw = dict[str, Any]

_KIND_OF: Final = {
    "pods": "pod",
    "nodes": "node",
    "namespaces": "namespace",
    "priorityclasses.scheduling.k8s.io": "class",
    "poddisruptionbudgets.policy": "budget",
    resources.ELASTIC_QUOTA_PROFILES.review_name(): "profile",
    resources.RESERVATIONS.review_name(): "reservation",
    resources.NODE_RESOURCE_TOPOLOGIES.review_name(): "node",
    resources.DEVICES.review_name(): "node",
    resources.NODE_METRICS.review_name(): "node",
    resources.RESOURCE_SLICES.review_name(): "slice",
    resources.RESOURCE_CLAIMS.review_name(): "claim",
    resources.POD_GROUPS.review_name(): gang_renaming.KIND,
    resources.NATIVE_POD_GROUPS[0].review_name(): gang_renaming.KIND,
    resources.CLUSTER_NETWORK_TOPOLOGIES.review_name(): "network",
    **{one.review_name(): "quota" for one in resources.QUOTA_RESOURCES},
    **{one.review_name(): "owner" for one in workloads.KINDS},
    workloads.JOBS.review_name(): "job",
}
_RENAMERS: Final = {
    **hardware_renaming.RENAMERS,
    workloads.JOBS.review_name(): workload_renaming.job,
}
"""What is renamed of an object besides its metadata, by resource."""
_LEAVE_OUT: Final = {gang_renaming.KIND: gang_renaming.pod_group, "network": gang_renaming.network}


def renamed(snapshot: formats.Snapshot) -> formats.Snapshot:
    """Return the snapshot with substitutes for names; two snapshots share none of them."""
    given = substitutes.Names()
    found = {
        resource: tuple(_object(resource, dict(one), given) for one in objects)
        for resource, objects in snapshot.objects.items()
    }
    return msgspec.structs.replace(snapshot, objects=found, unreadable=(), redaction="names")


def _object(resource: str, one: Raw, given: substitutes.Names) -> Raw:
    if resource == resources.CONFIG_MAPS.review_name():
        one["metadata"] = _home(one["metadata"], given)
        return one
    kind = _KIND_OF.get(resource, "object")
    one["metadata"] = _metadata(kind, one["metadata"], given)
    if resource == "pods":
        one["spec"] = _pod_spec(one.get("spec") or {}, given)
        one["status"] = _pod_status(one.get("status") or {}, given)
    elif kind in {"budget", "profile"}:
        one["spec"] = substitutes.selectors(one.get("spec") or {}, given)
        if isinstance(one["spec"].get("quotaName"), str):
            one["spec"]["quotaName"] = given.of("quota", one["spec"]["quotaName"])
    elif kind == "quota" and isinstance(one.get("status"), Mapping):
        one["status"] = {k: v for k, v in one["status"].items() if k != "conditions"}
    elif resource in _RENAMERS:
        _RENAMERS[resource](one, given)
    elif kind in _LEAVE_OUT:
        _LEAVE_OUT[kind](one)
    elif kind == "node":
        one["spec"] = _node_spec(one.get("spec") or {}, given)
    elif kind == "reservation":
        one["spec"] = _reservation_spec(one.get("spec") or {}, given)
        one["status"] = _reservation_status(one.get("status") or {}, given)
    return one


def _home(metadata: Mapping[str, Any], given: substitutes.Names) -> Raw:
    """Replace the namespace of a ConfigMap, which tells which pods are those of Koord."""
    if "namespace" not in metadata:
        return dict(metadata)
    return {**metadata, "namespace": given.of("namespace", metadata["namespace"])}


def _metadata(kind: str, metadata: Mapping[str, Any], given: substitutes.Names) -> Raw:
    found = dict(metadata)
    found["name"] = given.of(kind, found["name"])
    found.pop("generateName", None)
    if "namespace" in found:
        found["namespace"] = given.of("namespace", found["namespace"])
    if "uid" in found:
        found["uid"] = given.of("uid", found["uid"])
    for part in ("labels", "annotations"):
        written = found.get(part) or {}
        if written:
            found[part] = _texts(part, written, given)
    if found.get("ownerReferences"):
        found["ownerReferences"] = [_owner(owner, given) for owner in found["ownerReferences"]]
    return found


def _texts(part: str, written: Mapping[str, str], given: substitutes.Names) -> Raw:
    if part == "labels":
        return {key: given.value(key, value) for key, value in written.items()}
    # What schedulers wrote names nodes and pods inside; only what quotas say is needed.
    kept = {
        key: value
        for key, value in written.items()
        if key.startswith("quota.scheduling.koordinator.sh/")
    }
    kept |= _of_reservations(written, given)
    kept |= hardware_renaming.annotations(written, given)
    kept |= gang_renaming.annotations(written, given)
    kept |= workload_renaming.annotations(written, given)
    bound = kept.pop(names.ANNOTATION_QUOTA_NAMESPACES, "")
    if bound:
        kept[names.ANNOTATION_QUOTA_NAMESPACES] = json.dumps(
            [given.of("namespace", name) for name in _list(bound)]
        )
    return kept


def _of_reservations(written: Mapping[str, str], given: substitutes.Names) -> Raw:
    """Keep which Reservation a pod uses, may use, or is the stand-in of."""
    found: Raw = {}
    for key in (names.ANNOTATION_RESERVATION_ALLOCATED, names.ANNOTATION_RESERVATION_AFFINITY):
        try:
            named = json.loads(written.get(key, "null"))
        except (ValueError, RecursionError):
            continue
        if isinstance(named, dict):
            selected = substitutes.selectors(named, given, "reservation")
            found[key] = json.dumps(substitutes.reference("reservation", selected, given))
    if names.ANNOTATION_STAND_IN_UID in written:
        uid = written[names.ANNOTATION_STAND_IN_UID]
        found[names.ANNOTATION_STAND_IN_UID] = given.of("uid", uid)
    for key in (names.ANNOTATION_EXACT_MATCH_RESERVATION, names.ANNOTATION_RESERVATION_RESTRICTED):
        # They name resources.
        found |= {key: written[key]} if key in written else {}
    return found


def _reservation_spec(spec: Mapping[str, Any], given: substitutes.Names) -> Raw:
    found = dict(spec)
    template = found.get("template")
    if isinstance(template, Mapping):
        metadata = _metadata("pod", {"name": "", **(template.get("metadata") or {})}, given)
        found["template"] = {
            "metadata": metadata,
            "spec": _pod_spec(template.get("spec") or {}, given),
        }
    found["owners"] = [_reservation_owner(one, given) for one in found.get("owners") or ()]
    if found.get("taints"):
        found["taints"] = [_taint(one, given) for one in found["taints"]]
    return found


def _reservation_owner(one: Mapping[str, Any], given: substitutes.Names) -> Raw:
    found: Raw = substitutes.selectors(one, given)
    for part, kind in (("object", "pod"), ("controller", "owner")):
        if isinstance(found.get(part), Mapping):
            found[part] = substitutes.reference(kind, found[part], given)
    return found


def _reservation_status(status: Mapping[str, Any], given: substitutes.Names) -> Raw:
    found = {key: value for key, value in status.items() if key != "conditions"}
    if found.get("nodeName"):
        found["nodeName"] = given.of("node", found["nodeName"])
    if found.get("currentOwners"):
        found["currentOwners"] = [
            substitutes.reference("pod", one, given) for one in found["currentOwners"]
        ]
    return found


def _list(text: str) -> Iterable[str]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else ()


def _owner(owner: Mapping[str, Any], given: substitutes.Names) -> Raw:
    found = dict(owner)
    found["name"] = given.of("owner", str(owner.get("name", "")))
    found["uid"] = given.of("uid", str(owner.get("uid", "")))
    return found


def _pod_spec(spec: Mapping[str, Any], given: substitutes.Names) -> Raw:
    found = dict(spec)
    if found.get("nodeName"):
        found["nodeName"] = given.of("node", found["nodeName"])
    if found.get("schedulingGroup"):
        name = str(found["schedulingGroup"].get("podGroupName", ""))
        found["schedulingGroup"] = {"podGroupName": given.of(gang_renaming.KIND, name)}
    if found.get("priorityClassName"):
        found["priorityClassName"] = given.of("class", found["priorityClassName"])
    for part in ("containers", "initContainers"):
        if found.get(part):
            found[part] = [
                {**one, "name": f"container-{i}"} for i, one in enumerate(found[part], 1)
            ]
    if found.get("nodeSelector"):
        found["nodeSelector"] = {k: given.value(k, v) for k, v in found["nodeSelector"].items()}
    for part in ("affinity", "topologySpreadConstraints"):
        if found.get(part):
            found[part] = substitutes.selectors(found[part], given)
    workload_renaming.volumes(found, given)
    if found.get("tolerations"):
        found["tolerations"] = [_taint(one, given) for one in found["tolerations"]]
    return found


def _pod_status(status: Mapping[str, Any], given: substitutes.Names) -> Raw:
    found = dict(status)
    if found.get("nominatedNodeName"):
        found["nominatedNodeName"] = given.of("node", found["nominatedNodeName"])
    if found.get("conditions"):
        found["conditions"] = [
            {key: value for key, value in one.items() if key != "message"}
            for one in found["conditions"]
        ]
    if found.get("containerStatuses"):
        found["containerStatuses"] = [
            {**one, "name": f"container-{i}"} for i, one in enumerate(found["containerStatuses"], 1)
        ]
    return found


def _node_spec(spec: Mapping[str, Any], given: substitutes.Names) -> Raw:
    found = dict(spec)
    if found.get("taints"):
        found["taints"] = [_taint(one, given) for one in found["taints"]]
    return found


def _taint(one: Mapping[str, Any], given: substitutes.Names) -> Raw:
    found = dict(one)
    if isinstance(found.get("value"), str):
        found["value"] = given.value(str(found.get("key", "")), found["value"])
    return found
