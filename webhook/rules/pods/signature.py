"""Record on a pod which profiles changed it, and what they changed."""

from collections.abc import Mapping
from typing import Any

import msgspec

from api import names
from api.wire import base
from webhook import review


def signed(pod: review.Pod, applied: tuple[str, ...], record: Mapping[str, Any]) -> review.Pod:
    """Name the profiles on the pod, which tells later that it did not slip through.

    `record` says what they and everything else here made of it.
    """
    metadata = pod.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    told = {names.ANNOTATION_PROFILES: ",".join(applied)}
    if record:
        told[names.ANNOTATION_CHANGES] = base.encoded(record)
    if all(annotations.get(key) == text for key, text in told.items()):
        return pod
    return {**pod, "metadata": {**metadata, "annotations": {**annotations, **told}}}


def earlier(pod: review.Pod) -> Mapping[str, Any]:
    """Return the record that an earlier pass left, an empty one if there is none to be read."""
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    if names.ANNOTATION_PROFILES not in annotations:
        return {}
    try:
        found = msgspec.json.decode(annotations.get(names.ANNOTATION_CHANGES, "{}"))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}
    return found if isinstance(found, Mapping) else {}
