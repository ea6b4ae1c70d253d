"""Refuse pods whose QoS class, priority and resources contradict each other."""

from collections.abc import Iterator, Mapping
from typing import Any

from api import names, qos, quantity
from webhook import review

SKIP_PRIORITY = "ColocationProfileSkipValidatingPriority"
"""Gate: the label koordinator.sh/priority may change during the life of a pod."""

RESERVED = "reservation"
COLOCATION = "colocation"

IMMUTABLE = "field is immutable; delete the pod and create it anew"
CPU_FIELD = "pod.spec.containers[*].resources.requests"

REMEDY: Mapping[qos.QoS, str] = {
    qos.QoS.BE: "set priorityClassName to koord-batch, koord-mid or koord-free",
    qos.QoS.LSR: "set priorityClassName to koord-prod",
}


def check(
    asked: review.Review, requests: Mapping[str, int], gates: frozenset[str]
) -> review.Refusal | None:
    """Check a pod; `requests` is what it asks as a whole (cpu in milli, the rest in whole units).

    The first failing group is answered, with every fault in it.
    """
    annotations = _metadata(asked.object, "annotations")
    if names.ANNOTATION_RESERVE_POD in annotations:
        field = f"annotations.{names.ANNOTATION_RESERVE_POD}"
        return review.Refusal(RESERVED, (f"{field}: Forbidden: it is written by the system alone",))
    faults = (*_changed(asked, gates), *_contradictions(asked.object, requests))
    return review.Refusal(COLOCATION, faults) if faults else None


def _changed(asked: review.Review, gates: frozenset[str]) -> Iterator[str]:
    if asked.operation != "UPDATE" or asked.old is None:
        return
    new_labels, old_labels = _metadata(asked.object, "labels"), _metadata(asked.old, "labels")
    if qos.qos_of(new_labels) != qos.qos_of(old_labels):
        value = new_labels.get(names.LABEL_QOS, "")
        yield f'labels.{names.LABEL_QOS}: Invalid value: "{value}": {IMMUTABLE}'
    if _band(asked.object) != _band(asked.old):
        yield f'spec.priority: Invalid value: "{_band(asked.object).value}": {IMMUTABLE}'
    key = names.LABEL_PRIORITY
    if SKIP_PRIORITY in gates:
        return
    if new_labels.get(key, "") != old_labels.get(key, ""):
        yield f'labels.{key}: Invalid value: "{new_labels.get(key, "")}": {IMMUTABLE}'


def _contradictions(pod: review.Pod, requests: Mapping[str, int]) -> Iterator[str]:
    quality, band = qos.qos_of(_metadata(pod, "labels")), _band(pod)
    batch = requests.get(names.BATCH_CPU, 0) or requests.get(names.BATCH_MEMORY, 0)
    if batch and quality is not qos.QoS.BE:
        yield (
            f"labels.{names.LABEL_QOS}: Required value: a pod that requests batch resources must "
            f"carry {names.LABEL_QOS}=BE"
        )
    if not qos.legal(quality, band):
        yield (
            f"Pod: Forbidden: {names.LABEL_QOS}={quality.value} and priorityClass={band.value} "
            f"cannot be used in combination; {REMEDY[quality]}"
        )
    if quality in (qos.QoS.LSR, qos.QoS.LSE):
        cpu = requests.get(names.CPU, 0)
        remedy = f"{quality.value} binds CPUs: request a whole number of them"
        if not cpu:
            yield f"{CPU_FIELD}: Required value: {remedy}"
        elif cpu % 1000:
            yield f'{CPU_FIELD}: Invalid value: "{quantity.format_milli(cpu)}": {remedy}'


def _band(pod: review.Pod) -> qos.Band:
    return qos.band_of((pod.get("spec") or {}).get("priority"), _metadata(pod, "labels"))


def _metadata(pod: review.Pod, part: str) -> Mapping[str, Any]:
    return (pod.get("metadata") or {}).get(part) or {}
