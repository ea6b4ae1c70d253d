"""Record batch resources in an annotation that the node agent reads."""

from collections.abc import Mapping
from typing import Any

from api import names
from api.wire import base
from webhook import review

RECORDED = (names.BATCH_CPU, names.BATCH_MEMORY)


def record(pod: review.Pod) -> review.Pod:
    """Write what the regular containers ask of batch-cpu and batch-memory.

    What is written there already is never read: the author of the pod wrote it.
    """
    metadata, annotations = _annotated(pod)
    text = base.encoded(wanted) if (wanted := _wanted(pod)) else "{}"
    written = annotations.get(names.ANNOTATION_EXTENDED_RESOURCE_SPEC)
    if written == text or (written is None and not wanted):
        return pod
    changed = {**annotations, names.ANNOTATION_EXTENDED_RESOURCE_SPEC: text}
    return {**pod, "metadata": {**metadata, "annotations": changed}}


def without(pod: review.Pod) -> review.Pod:
    """Take the annotation off a pod for which nothing is recorded."""
    metadata, annotations = _annotated(pod)
    if names.ANNOTATION_EXTENDED_RESOURCE_SPEC not in annotations:
        return pod
    kept = {**annotations}
    del kept[names.ANNOTATION_EXTENDED_RESOURCE_SPEC]
    return {**pod, "metadata": {**metadata, "annotations": kept}}


def _annotated(pod: review.Pod) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    metadata = pod.get("metadata") or {}
    return metadata, metadata.get("annotations") or {}


def _wanted(pod: review.Pod) -> Mapping[str, Any]:
    containers: dict[str, Any] = {}
    for container in (pod.get("spec") or {}).get("containers") or ():
        resources = container.get("resources") or {}
        found = {}
        for part in ("limits", "requests"):
            amounts = resources.get(part) or {}
            asked = {name: amounts[name] for name in RECORDED if name in amounts}
            if asked:
                found[part] = asked
        if found:
            containers[container.get("name", "")] = found
    return {"containers": containers} if containers else {}
