"""Replaces names in what a snapshot says of CPUs, NUMA nodes and devices. Pure.

Numbers of CPUs, NUMA nodes and devices, PCI addresses and models stay; identifiers of devices and
the names of pods are replaced.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from api import names, resources
from cli.snapshot import substitutes
from domain.devices import dynamic_resources

Raw = dict[str, Any]

_WITHOUT_NAMES: Final = (
    names.ANNOTATION_RESOURCE_STATUS,
    names.ANNOTATION_RESOURCE_SPEC,
    names.ANNOTATION_NUMA_TOPOLOGY_SPEC,
    names.ANNOTATION_DEVICE_JOINT,
    names.ANNOTATION_GPU_PARTITION_SPEC,
    names.ANNOTATION_GPU_PARTITIONS,
    names.ANNOTATION_AMPLIFICATION,
    names.ANNOTATION_RAW_ALLOCATABLE,
    names.ANNOTATION_CPU_TOPOLOGY,
    names.ANNOTATION_CPU_MANAGER_POLICY,
    names.ANNOTATION_NODE_RESERVATION,
    names.ANNOTATION_SYSTEM_QOS,
)
"""Annotations of pods, Reservations, nodes, topologies and Devices that hold no names."""


def annotations(written: Mapping[str, str], given: substitutes.Names) -> Raw:
    """Return the annotations about CPUs and devices; one that is no JSON document is left out."""
    read = {key: _document(written[key]) for key in _WITHOUT_NAMES if key in written}
    found = {key: written[key] for key, document in read.items() if document is not None}
    for key, rename in _RENAMED.items():
        document = _document(written.get(key, ""))
        if document is not None:
            found[key] = json.dumps(rename(document, given))
    return found


def _document(text: str) -> Any:
    try:
        found = json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict | list) else None


def _allocated(document: Any, given: substitutes.Names) -> Any:
    """Rename the devices that a pod was given."""
    if not isinstance(document, dict):
        return {}
    return {
        kind: [_identified(one, given) for one in listed if isinstance(one, dict)]
        for kind, listed in document.items()
        if isinstance(listed, list)
    }


def _hints(document: Any, given: substitutes.Names) -> Any:
    """Rename the label values by which a pod selects devices."""
    return substitutes.selectors(document, given)


def _pods(document: Any, given: substitutes.Names) -> Any:
    """Rename the pods to which the kubelet gave CPUs."""
    kinds = (("name", "pod"), ("namespace", "namespace"), ("uid", "uid"))
    return [
        {**one, **{key: given.of(kind, str(one[key])) for key, kind in kinds if key in one}}
        for one in document
        if isinstance(one, dict)
    ]


_RENAMED: Final[Mapping[str, Callable[[Any, substitutes.Names], Any]]] = {
    names.ANNOTATION_DEVICE_ALLOCATED: _allocated,
    names.ANNOTATION_DEVICE_HINT: _hints,
    names.ANNOTATION_POD_CPU_ALLOCS: _pods,
}


def _identified(one: Mapping[str, Any], given: substitutes.Names) -> Raw:
    found = dict(one)
    for key in ("id", "uuid"):
        if isinstance(found.get(key), str):
            found[key] = given.of("device", found[key])
    return found


def _device(one: Raw, given: substitutes.Names) -> None:
    """Rename the devices that a Device object lists, and the values of their labels."""
    spec = one.get("spec") or {}
    listed = spec.get("devices") or ()
    one["spec"] = {
        "devices": [_of_device(each, given) for each in listed if isinstance(each, dict)]
    }


def _of_device(one: Mapping[str, Any], given: substitutes.Names) -> Raw:
    found = _identified(one, given)
    _relabel(found, given)
    groups = found.get("vfGroups")
    if isinstance(groups, list):
        found["vfGroups"] = [dict(group) for group in groups if isinstance(group, dict)]
        for group in found["vfGroups"]:
            _relabel(group, given)
    return found


def _relabel(one: Raw, given: substitutes.Names) -> None:
    labels = one.get("labels")
    if isinstance(labels, dict):
        one["labels"] = {key: given.value(key, str(value)) for key, value in labels.items()}


def _topology(_one: Raw, _given: substitutes.Names) -> None:
    """Leave policies and zones as they are: they name NUMA nodes by number."""


def _node_metric(one: Raw, given: substitutes.Names) -> None:
    """Rename the pods whose usage a NodeMetric tells."""
    status = dict(one.get("status") or {})
    for key in ("podsMetric", "podMetrics"):
        listed = status.get(key) or ()
        status[key] = [_used(each, given) for each in listed if isinstance(each, dict)]
    one["status"] = status


def _used(one: Mapping[str, Any], given: substitutes.Names) -> Raw:
    kinds = (("name", "pod"), ("namespace", "namespace"))
    found = {**one, **{key: given.of(kind, str(one[key])) for key, kind in kinds if key in one}}
    if isinstance(found.get("podRef"), dict):
        found["podRef"] = _used(found["podRef"], given)
    return found


def _slice(one: Raw, given: substitutes.Names) -> None:
    """Rename node, pool and devices of a ResourceSlice; numbers of PCI addresses stay."""
    spec = dict(one.get("spec") or {})
    if isinstance(spec.get("pool"), dict):
        spec["pool"] = {**spec["pool"], "name": given.of("pool", str(spec["pool"].get("name")))}
    if spec.get("nodeName"):
        spec["nodeName"] = given.of("node", str(spec["nodeName"]))
    listed = spec.get("devices") or ()
    spec["devices"] = [_offered(each, given) for each in listed if isinstance(each, dict)]
    one["spec"] = spec


def _offered(one: Mapping[str, Any], given: substitutes.Names) -> Raw:
    found = {**one, "name": given.of("offer", str(one.get("name")))}
    if found.get("nodeName"):
        found["nodeName"] = given.of("node", str(found["nodeName"]))
    attributes = found.get("attributes") or {}
    for key, value in attributes.items() if isinstance(attributes, dict) else ():
        is_uuid = key.rpartition("/")[2] in dynamic_resources.UUIDS
        if is_uuid and isinstance(value, dict) and isinstance(value.get("string"), str):
            found["attributes"] = found["attributes"] | {
                key: {"string": given.of("device", value["string"])}
            }
    return found


def _claim(one: Raw, given: substitutes.Names) -> None:
    """Rename the devices that a ResourceClaim was given."""
    allocation = (one.get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or ()
    kinds = (("pool", "pool"), ("device", "offer"))
    renamed = [
        {**each, **{key: given.of(kind, str(each[key])) for key, kind in kinds if key in each}}
        for each in results
        if isinstance(each, dict)
    ]
    one["status"] = {"allocation": {"devices": {"results": renamed}}} if renamed else {}


RENAMERS: Final[Mapping[str, Callable[[Raw, substitutes.Names], None]]] = {
    resources.DEVICES.review_name(): _device,
    resources.NODE_METRICS.review_name(): _node_metric,
    resources.RESOURCE_SLICES.review_name(): _slice,
    resources.RESOURCE_CLAIMS.review_name(): _claim,
    resources.NODE_RESOURCE_TOPOLOGIES.review_name(): _topology,
}
"""What is renamed of an object besides its metadata, by resource."""
