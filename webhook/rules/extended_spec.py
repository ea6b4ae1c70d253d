"""Record batch resources in an annotation that the node agent reads."""

import json
from collections.abc import Mapping
from typing import Any

from api import base, names
from webhook import review

GROUP = "resources"
RECORDED = (names.BATCH_CPU, names.BATCH_MEMORY)


def record(pod: review.Pod) -> review.Pod | review.Refusal:
    """Write what the regular containers ask of batch-cpu and batch-memory; nothing if unchanged."""
    metadata = pod.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    written = annotations.get(names.ANNOTATION_EXTENDED_RESOURCE_SPEC)
    try:
        before = json.loads(written) if written is not None else {}
    except ValueError as wrong:
        field = f"metadata.annotations[{names.ANNOTATION_EXTENDED_RESOURCE_SPEC}]"
        return review.Refusal(
            GROUP, (f"{field}: {wrong}; remove it or write JSON",), code=review.FAILED
        )
    wanted = _wanted(pod)
    if wanted == before:
        return pod
    text = base.encoded(wanted)
    changed = {**annotations, names.ANNOTATION_EXTENDED_RESOURCE_SPEC: text}
    return {**pod, "metadata": {**metadata, "annotations": changed}}


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
