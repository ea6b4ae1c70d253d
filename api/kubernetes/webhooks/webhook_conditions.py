"""matchConditions of our webhooks: CEL expressions, and what they say in Python.

The API server evaluates the expression before it calls a webhook. The simulator has no CEL: it
evaluates the function beside it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from api import names

Object = Mapping[str, Any]


class Condition(NamedTuple):
    """Whether the API server asks a webhook about a write."""

    expression: str
    holds: Callable[[Object | None, Object | None], bool]
    """The same of object and oldObject."""


_PARTS: Final = ("annotations", "labels")
_GATES: Final = "schedulingGates"

# Kubelets write the status of pods all the time, and never their annotations or labels.
_MARKED: Final = (
    "oldObject == null || ['annotations', 'labels'].exists(part, "
    "(part in object.metadata) != (part in oldObject.metadata) || "
    "(part in object.metadata && object.metadata[part] != oldObject.metadata[part]))"
)
# Controllers remove finalizers and open scheduling gates all the time. The extender opens those of
# gangs together with the record of the plan, which no check but the protection of fields reads.
_POD_CHANGED: Final = (
    "oldObject == null || ('labels' in object.metadata) != ('labels' in oldObject.metadata) || "
    "('labels' in object.metadata && object.metadata.labels != oldObject.metadata.labels) || "
    "[[object, oldObject], [oldObject, object]].exists(pair, 'annotations' in pair[0].metadata && "
    f"pair[0].metadata.annotations.exists(key, key != '{names.ANNOTATION_PLAN}' && "
    "!('annotations' in pair[1].metadata && key in pair[1].metadata.annotations && "
    "pair[1].metadata.annotations[key] == pair[0].metadata.annotations[key]))) || "
    "object.spec.exists(field, field != 'schedulingGates' && "
    "(!(field in oldObject.spec) || object.spec[field] != oldObject.spec[field])) || "
    "oldObject.spec.exists(field, field != 'schedulingGates' && !(field in object.spec))"
)

QUOTA_LABELS: Final = (
    names.LABEL_QUOTA_PARENT,
    names.LABEL_QUOTA_IS_PARENT,
    names.LABEL_QUOTA_TREE,
)
QUOTA_ANNOTATIONS: Final = (
    names.ANNOTATION_QUOTA_NAMESPACES,
    names.ANNOTATION_QUOTA_WEIGHT,
    names.ANNOTATION_QUOTA_ADMISSION,
    names.ANNOTATION_QUOTA_STRICT_KEYS,
)
"""What is checked of an ElasticQuota beside its spec."""


def _differs(part: str, keys: Sequence[str]) -> str:
    """Return the expression that one of some labels or annotations differs, absent like empty."""
    now, before = (
        f"('{part}' in {one}.metadata && key in {one}.metadata.{part} ? "
        f"{one}.metadata.{part}[key] : '')"
        for one in ("object", "oldObject")
    )
    return f"{list(keys)}.exists(key, {now} != {before})"


# The manager writes figures on quotas all the time, and admission charges them for each pod where
# it denies: into annotations and the status, which not every CRD has as a subresource.
_QUOTA_CHANGED: Final = (
    "object == null || oldObject == null || ('spec' in object) != ('spec' in oldObject) || "
    "('spec' in object && object.spec != oldObject.spec) || "
    f"{_differs('labels', QUOTA_LABELS)} || {_differs('annotations', QUOTA_ANNOTATIONS)}"
)


def _marked(now: Object | None, before: Object | None) -> bool:
    if now is None or before is None:
        return True
    return any(now["metadata"].get(part) != before["metadata"].get(part) for part in _PARTS)


def _pod_changed(now: Object | None, before: Object | None) -> bool:
    if now is None or before is None:
        return True
    if now["metadata"].get("labels") != before["metadata"].get("labels"):
        return True
    if _notes(now) != _notes(before):
        return True
    fields = (now["spec"].keys() | before["spec"].keys()) - {_GATES}
    return any(now["spec"].get(field) != before["spec"].get(field) for field in fields)


def _notes(pod: Object) -> Mapping[str, Any]:
    found = pod["metadata"].get("annotations") or {}
    return {key: value for key, value in found.items() if key != names.ANNOTATION_PLAN}


def _quota_changed(now: Object | None, before: Object | None) -> bool:
    if now is None or before is None:
        return True
    return now.get("spec") != before.get("spec") or any(
        _text(now, part, key) != _text(before, part, key)
        for part, keys in (("labels", QUOTA_LABELS), ("annotations", QUOTA_ANNOTATIONS))
        for key in keys
    )


def _text(found: Object, part: str, key: str) -> str:
    return str((found["metadata"].get(part) or {}).get(key, ""))


MARKED: Final = Condition(_MARKED, _marked)
"""An object that is new, or whose annotations or labels change."""
POD_CHANGED: Final = Condition(_POD_CHANGED, _pod_changed)
"""A pod that is new, or whose annotations, labels or spec change; its scheduling gates and the
record of the plan of its gang apart."""
QUOTA_CHANGED: Final = Condition(_QUOTA_CHANGED, _quota_changed)
"""An ElasticQuota that is new or deleted, or of which changes what is checked: not its figures."""

BY_EXPRESSION: Final[Mapping[str, Condition]] = {
    one.expression: one for one in (MARKED, POD_CHANGED, QUOTA_CHANGED)
}
