"""Warn the creator of a pod about what is legal and will probably not do what they expect."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from api import names
from api.koordinator.metadata import annotations, qos
from api.kubernetes import core
from api.wire import base, quantity

MOST: Final = 8
LONGEST: Final = 256
"""The API server cuts what is longer."""

_NATIVE: Final = (names.CPU, names.MEMORY)
_LENT: Final = tuple(qos.TRANSLATION.values())
_WRITTEN_BY_USERS: Final = {
    payload.key: payload
    for payload in (
        annotations.CPU_BURST,
        annotations.CPU_QOS,
        annotations.MEMORY_QOS,
        annotations.BLKIO_QOS,
        annotations.NETWORK_QOS,
        annotations.RESCTRL,
        annotations.OOM_SCORE_ADJ_SPEC,
        annotations.EVICTION_POLICY,
        annotations.RESOURCE_SPEC,
        annotations.NUMA_TOPOLOGY_SPEC,
        annotations.LOAD_SCALING_FACTORS,
        annotations.RESERVATION_AFFINITY,
        annotations.EXACT_MATCH_RESERVATION,
        annotations.DEVICE_HINTS,
        annotations.DEVICE_JOINT,
        annotations.GPU_PARTITION_SPEC,
    )
}


def warnings(pod: core.Pod) -> tuple[str, ...]:
    """Return a sentence per doubt, the most important ones first."""
    labels = pod.metadata.labels
    found = [
        *_labels(labels),
        *_lent(pod),
        *_bound(pod),
        *_payloads(pod.metadata.annotations),
    ]
    return tuple(text[:LONGEST] for text in found[:MOST])


def _labels(labels: Mapping[str, str]) -> Iterator[str]:
    named = labels.get(names.LABEL_QOS)
    if named is not None and qos.qos_of(labels) is qos.QoS.NONE:
        yield (
            f'metadata.labels[{names.LABEL_QOS}]: "{named}" is none of LSE, LSR, LS, BE and '
            "SYSTEM, so the pod has no QoS class"
        )
    named = labels.get(names.LABEL_PRIORITY_CLASS)
    if named is not None and qos.band_of(None, labels) is qos.Band.NONE:
        yield (
            f'metadata.labels[{names.LABEL_PRIORITY_CLASS}]: "{named}" is none of koord-prod, '
            "koord-mid, koord-batch and koord-free; the priority of the pod is not looked at either"
        )
    named = labels.get(names.LABEL_PRIORITY)
    if named and not qos.sub_priority(labels) and named.strip("+-0xX"):
        yield f'metadata.labels[{names.LABEL_PRIORITY}]: "{named}" is no 32-bit integer; 0 is used'


def _lent(pod: core.Pod) -> Iterator[str]:
    instead = qos.TRANSLATION.get(qos.band_of(pod.spec.priority, pod.metadata.labels))
    uses_lent = False
    unseen = names.ANNOTATION_PROFILES not in pod.metadata.annotations
    for group, containers in (
        ("initContainers", pod.spec.init_containers),
        ("containers", pod.spec.containers),
    ):
        for index, container in enumerate(containers):
            path = f"spec.{group}[{index}].resources"
            requests, limits = container.resources.requests, container.resources.limits
            lent = [pair for pair in _LENT if any(name in requests for name in pair.values())]
            uses_lent = uses_lent or bool(lent)
            if instead is not None and unseen and not lent and _states(requests):
                yield (
                    f"{path}.requests: cpu and memory of a {_band(pod)} pod that no "
                    "ClusterColocationProfile selects stay as they are: it takes the place of "
                    "online services instead of what they leave idle"
                )
            for pair in lent:
                yield from _half(pair, requests, limits, path)
    level = pod.spec.resources
    if uses_lent and level is not None and (_states(level.requests) or _states(level.limits)):
        yield (
            "spec.resources: cpu and memory of the pod as a whole are not moved to lent resources, "
            "so the pod asks for both; state them for containers only"
        )


def _half(
    pair: Mapping[str, str], requests: Mapping[str, Any], limits: Mapping[str, Any], path: str
) -> Iterator[str]:
    cpu, memory = pair[names.CPU], pair[names.MEMORY]
    for there, other in ((cpu, memory), (memory, cpu)):
        if there in requests and other not in requests:
            yield f"{path}.requests: {there} without {other}, of which nothing is set aside"
    if memory in requests and memory not in limits:
        yield f"{path}.limits: {memory} has no limit, so only the node ends what it uses"


def _band(pod: core.Pod) -> str:
    return qos.band_of(pod.spec.priority, pod.metadata.labels).value


def _states(amounts: Mapping[str, Any]) -> bool:
    return any(quantity.milli(amounts[name]) > 0 for name in _NATIVE if name in amounts)


def _bound(pod: core.Pod) -> Iterator[str]:
    quality = qos.qos_of(pod.metadata.labels)
    if quality not in (qos.QoS.LSE, qos.QoS.LSR):
        return
    band = qos.band_of_pod(pod)
    if band is not qos.Band.PROD:
        yield (
            f"metadata.labels[{names.LABEL_QOS}]: {quality.value} gets CPUs of its own in the band "
            f"koord-prod only, and this pod is {band.value}; set priorityClassName to koord-prod"
        )
    if qos.kubernetes_qos(pod) != "Guaranteed":
        yield (
            f"spec.containers: {quality.value} without equal requests and limits of cpu and memory "
            "is not Guaranteed, so the kubelet may throttle and evict it"
        )


def _payloads(found: Mapping[str, str]) -> Iterator[str]:
    for key in sorted(found.keys() & _WRITTEN_BY_USERS.keys()):
        try:
            _WRITTEN_BY_USERS[key].read(found)
        except (base.ReadError, RecursionError) as wrong:
            yield f"metadata.annotations: {wrong}"
