"""Check ElasticQuotas by themselves, whatever other quotas there are, and complete new ones."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from api import names
from api.koordinator import quota
from api.koordinator.metadata import annotations
from api.wire import base, quantity
from webhook import review

GROUP = "quota"
UNTOUCHABLE: Final = frozenset({names.ROOT_QUOTA, names.SYSTEM_QUOTA})


def complete(asked: review.Review, _picture: review.Picture) -> review.Decision:
    """Write the parent and the weights that readers assume anyway; what is there stays."""
    metadata = review.section(asked.object, "metadata")
    spec = review.section(asked.object, "spec")
    most = spec.get("max") or {}
    labels, notes = (metadata.get(part) or {} for part in ("labels", "annotations"))
    parts = (most, labels, notes)
    if metadata.get("name") == names.ROOT_QUOTA or not all(isinstance(p, Mapping) for p in parts):
        return review.Decision()
    added: dict[str, Any] = {}
    if not labels.get(names.LABEL_QUOTA_PARENT):
        added["labels"] = {**labels, names.LABEL_QUOTA_PARENT: names.ROOT_QUOTA}
    try:
        weight = _weight(notes, most)
    except base.ReadError as wrong:
        return review.Decision(review.Refusal(GROUP, (f"metadata.annotations: {wrong}",)))
    if weight is not None:
        added["annotations"] = {**notes, names.ANNOTATION_QUOTA_WEIGHT: weight}
    return review.Decision(object={**asked.object, "metadata": {**metadata, **added}})


def _weight(notes: Mapping[str, Any], most: Mapping[str, Any]) -> str | None:
    """Return the weights with those that are missing; None if none are."""
    written = notes.get(names.ANNOTATION_QUOTA_WEIGHT)
    if not written:
        return base.encoded(most) if most else None
    if not isinstance(written, str):
        return None
    weight = annotations.QUOTA_WEIGHT.read({names.ANNOTATION_QUOTA_WEIGHT: written}) or {}
    missing = {name: value for name, value in most.items() if name not in weight}
    return base.encoded({**weight, **missing}) if missing else None


def check(asked: review.Review, _picture: review.Picture) -> review.Findings:
    """Check amounts, weights and names of a quota of any group."""
    read = quota.review_elastic_quota(asked.object)
    found = read.value
    faults = [*_untouchable(asked, found), *_amounts(found), *_annotations(asked.object, found)]
    if found.parent == found.name:
        faults.append(
            f"metadata.labels[{names.LABEL_QUOTA_PARENT}]: Invalid value: "
            f'"{found.parent}": a quota cannot be its own parent'
        )
    # What is a fault need not be told twice.
    warnings = tuple(w for w in read.warnings if not w.startswith("annotation"))
    return review.Findings(tuple(faults), warnings)


def _untouchable(asked: review.Review, found: quota.Quota) -> Iterator[str]:
    if asked.operation == "UPDATE" and found.name in UNTOUCHABLE:
        yield f'metadata.name: Forbidden: "{found.name}" is kept by the system'


def _amounts(found: quota.Quota) -> Iterator[str]:
    for field, amounts in (("min", found.minimum), ("max", found.maximum), ("hard", found.hard)):
        for name, value in amounts.items():
            if value < 0:
                text = quantity.text(name, value)
                yield f'spec.{field}[{name}]: Invalid value: "{text}": must not be negative'
    cap = found.cap
    for name, least in found.minimum.items():
        if name not in cap:
            yield (
                f"spec.min[{name}]: Forbidden: spec.max says nothing of {name}; add it there with "
                "at least this amount"
            )
        elif least > cap[name]:
            yield (
                f'spec.min[{name}]: Invalid value: "{quantity.text(name, least)}": above the '
                f"{quantity.text(name, cap[name])} that the quota may ever use"
            )


def _annotations(raw: review.Pod, found: quota.Quota) -> Iterator[str]:
    notes = review.section(review.section(raw, "metadata"), "annotations")
    for payload in (annotations.QUOTA_WEIGHT, annotations.QUOTA_ADMISSION):
        text = notes.get(payload.key)
        if not text:
            continue
        try:
            amounts = quota.amounts(payload.read(notes) or {})
        except base.ReadError as wrong:
            yield f"metadata.annotations: {wrong}"
            continue
        for name, value in amounts.items():
            if value < 0:
                yield (
                    f"metadata.annotations[{payload.key}]: Invalid value: {name} "
                    f"{quantity.text(name, value)}: must not be negative"
                )
    yield from _strict(notes, found)


def _strict(notes: review.Pod, found: quota.Quota) -> Iterator[str]:
    key = names.ANNOTATION_QUOTA_STRICT_KEYS
    if not notes.get(key):
        return
    try:
        strict = annotations.QUOTA_STRICT_KEYS.read(notes) or ()
    except base.ReadError as wrong:
        yield f"metadata.annotations: {wrong}"
        return
    for name in strict:
        used = found.used.get(name)
        if used is not None and found.maximum.get(name, -1) < used:
            yield (
                f"spec.max[{name}]: Forbidden: {quantity.text(name, used)} are used, and "
                f"{key} asks for no less"
            )
