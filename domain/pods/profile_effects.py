"""What a ClusterColocationProfile makes of an object, and how that differs from what was there."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from api import names
from api.koordinator import colocation
from api.kubernetes import core
from api.kubernetes.patching import strategic
from domain.pods import renamed_resources

JSON = Any
Object = Mapping[str, JSON]

# A value that is longer than this is named in the record and not repeated.
_LONGEST: Final = 256
_PARTS: Final = ("labels", "annotations", "spec")


@dataclasses.dataclass(frozen=True, slots=True)
class PriorityClass:
    """What a profile copies from a PriorityClass."""

    name: str
    value: int
    preemption_policy: str = ""


class Effect(NamedTuple):
    """One field that a profile changed; None stands for a field that is not there."""

    by: str
    part: str
    """labels, annotations, spec or patch."""
    field: str
    before: JSON
    after: JSON

    @property
    def path(self) -> str:
        """Return the field as people write it."""
        if self.part == "patch":
            return self.field
        return f"spec.{self.field}" if self.part == "spec" else f"{self.part}[{self.field}]"


class Applied(NamedTuple):
    """An object after one profile."""

    object: Object
    effects: tuple[Effect, ...]


class EffectError(ValueError):
    """A profile that cannot be applied; names its field."""


def marked(metadata: Object, profile: colocation.ClusterColocationProfile) -> Object:
    """Give an object the labels and annotations of a profile."""
    spec = profile.spec
    changed: dict[str, JSON] = {}
    if spec.annotations or spec.annotation_keys_mapping:
        annotations = {**(metadata.get("annotations") or {}), **spec.annotations}
        annotations.update(
            {new: annotations.get(old, "") for old, new in spec.annotation_keys_mapping.items()}
        )
        changed["annotations"] = annotations
    labels = {**(metadata.get("labels") or {}), **spec.labels}
    if spec.label_keys_mapping:
        labels.update({new: labels.get(old, "") for old, new in spec.label_keys_mapping.items()})
    for key, suffix in spec.label_suffixes.items():
        if key in labels:
            labels[key] += suffix
    if spec.qos_class:
        labels[names.LABEL_QOS] = spec.qos_class
    if spec.koordinator_priority is not None:
        labels[names.LABEL_PRIORITY] = str(spec.koordinator_priority)
    if labels:
        changed["labels"] = labels
    return {**metadata, **changed}


def classed(
    pod_spec: Object, spec: colocation.Spec, classes: Mapping[str, PriorityClass]
) -> Object:
    """Give the spec of a pod the scheduler and the priority class of a profile."""
    if not spec.scheduler_name and not spec.priority_class_name:
        return pod_spec
    changed = dict(pod_spec)
    if spec.scheduler_name:
        changed["schedulerName"] = spec.scheduler_name
    if spec.priority_class_name:
        found = classes.get(spec.priority_class_name)
        if found is None:
            named = f'priorityclasses.scheduling.k8s.io "{spec.priority_class_name}" not found'
            raise EffectError(f"spec.priorityClassName: {named}")
        changed["priorityClassName"] = found.name
        changed["priority"] = found.value
        if found.preemption_policy:
            changed["preemptionPolicy"] = found.preemption_policy
        else:
            changed.pop("preemptionPolicy", None)
    return changed


def on_pod(
    pod: Object,
    profile: colocation.ClusterColocationProfile,
    classes: Mapping[str, PriorityClass],
) -> Applied:
    """Apply a profile to a pod."""
    before, body = pod.get("metadata") or {}, pod.get("spec") or {}
    metadata, spec = marked(before, profile), classed(body, profile.spec, classes)
    effects = [*_told(profile.name, before, metadata), *_changed(profile.name, "spec", body, spec)]
    changed: Object = {**pod, "metadata": metadata, "spec": spec}
    if profile.spec.patch:
        changed = _patched(changed, _present(profile.spec.patch), core.Pod)
        effects += _told(profile.name, metadata, changed["metadata"])
        effects += _patch_fields(profile.name, profile.spec.patch)
    return Applied(changed, tuple(effects))


def on_reservation(
    reservation: Object,
    profile: colocation.ClusterColocationProfile,
    classes: Mapping[str, PriorityClass],
) -> Applied:
    """Apply a profile to a Reservation: marks on itself, scheduler and class on its template."""
    before, body = reservation.get("metadata") or {}, reservation.get("spec") or {}
    metadata = marked(before, profile)
    changed: Object = {**reservation, "metadata": metadata}
    effects = list(_told(profile.name, before, metadata))
    template = body.get("template")
    if isinstance(template, Mapping):
        inner = template.get("spec") or {}
        spec = classed(inner, profile.spec, classes)
        effects += _changed(profile.name, "spec", inner, spec)
        changed = {**changed, "spec": {**body, "template": {**template, "spec": spec}}}
    if profile.spec.patch:
        changed = _patched(changed, profile.spec.patch, _Marked)
        effects += _told(profile.name, metadata, changed.get("metadata") or {})
        effects += _patch_fields(profile.name, profile.spec.patch)
    return Applied(changed, tuple(effects))


class _Template(msgspec.Struct, frozen=True):
    spec: dict[str, Any] | None = None


class _Placed(msgspec.Struct, frozen=True):
    template: _Template | None = None


class _Marked(msgspec.Struct, frozen=True):
    metadata: core.ObjectMeta = core.ObjectMeta()
    spec: _Placed = _Placed()


def unreadable(reservation: Object) -> str:
    """Return why something has not the shape of a Reservation, nothing if it has."""
    try:
        msgspec.convert(reservation, _Marked)
    except msgspec.ValidationError as wrong:
        return str(wrong)
    return ""


def _present(patch: JSON) -> JSON:
    """Name resources as the pod does by now, so that the patch meets what the pod asks for."""
    return renamed_resources.in_pod(patch) if isinstance(patch, Mapping) else patch


def _patched(changed: Object, patch: JSON, shape: type[msgspec.Struct]) -> Object:
    try:
        if not isinstance(patch, Mapping):
            raise strategic.PatchError("must be an object")
        patched = strategic.merge(changed, patch)
        # Later profiles and every other rule build on the shape of the object.
        msgspec.convert(patched, shape)
    except strategic.PatchError as wrong:
        raise EffectError(f"spec.patch: {wrong}") from wrong
    except msgspec.ValidationError as wrong:
        raise EffectError(f"spec.patch: what it makes of the object is none: {wrong}") from wrong
    return {"metadata": {}, "spec": {}, **patched}


def _told(by: str, before: Object, after: Object) -> list[Effect]:
    found: list[Effect] = []
    for part in ("labels", "annotations"):
        old, new = before.get(part) or {}, after.get(part) or {}
        if old is not new:
            found += _changed(by, part, old, new)
    return found


def _changed(by: str, part: str, before: Object, after: Object) -> list[Effect]:
    if before is after:
        return []
    found = [
        Effect(by, part, key, before.get(key), value)
        for key, value in after.items()
        if before.get(key) != value
    ]
    gone = before.keys() - after.keys()
    return found + [Effect(by, part, key, before[key], None) for key in sorted(gone)]


def _patch_fields(by: str, patch: Mapping[str, JSON]) -> Iterator[Effect]:
    for section, fields in patch.items():
        if section != "metadata" and isinstance(fields, Mapping):
            yield from (Effect(by, "patch", f"{section}.{field}", None, None) for field in fields)


def record(effects: Iterable[Effect]) -> dict[str, JSON]:
    """Return effects by profile as a JSON object that can be kept on the changed object."""
    kept: dict[str, Any] = {}
    for effect in effects:
        parts = kept.setdefault(effect.by, {})
        if effect.part == "patch":
            parts.setdefault("patch", []).append(effect.field)
            continue
        fields = parts.setdefault(effect.part, {})
        first = fields.get(effect.field)
        values = [first[0] if first else effect.before, effect.after]
        short = all(len(value) <= _LONGEST for value in values if isinstance(value, str))
        fields[effect.field] = values if short and first != [] else []
    return kept


def joined(older: JSON, newer: Mapping[str, JSON], among: Iterable[str]) -> dict[str, JSON]:
    """Return two records of these profiles as one; `newer` was taken with restored metadata.

    What was in the spec before only the older one knows.
    """
    before = older if isinstance(older, Mapping) else {}
    merged: dict[str, JSON] = {}
    for by in among:
        known, added = before.get(by), newer.get(by) or {}
        known = known if isinstance(known, Mapping) else None
        parts = added if known is None else {**_without(added, "spec"), **known}
        for part in ("labels", "annotations"):
            fields = parts.get(part)
            if isinstance(fields, Mapping) and part in added:
                parts = {**parts, part: {**fields, **added[part]}}
        if parts:
            merged[by] = parts
    return merged


def _without(parts: Mapping[str, JSON], name: str) -> Mapping[str, JSON]:
    return {part: fields for part, fields in parts.items() if part != name}


def effects_in(kept: JSON) -> Iterator[Effect]:
    """Yield the effects of a record in their order; what is no record yields nothing."""
    for by, parts in kept.items() if isinstance(kept, Mapping) else ():
        for part in _PARTS:
            fields = parts.get(part) if isinstance(parts, Mapping) else None
            for field, values in fields.items() if isinstance(fields, Mapping) else ():
                if isinstance(values, list) and len(values) == 2:
                    yield Effect(by, part, field, *values)


def restored(metadata: Object, effects: Sequence[Effect]) -> Object:
    """Return metadata as it was before these effects, as far as it was not changed since."""
    if not effects:
        return metadata
    touched = {effect.part for effect in effects} & {"labels", "annotations"}
    parts = {part: dict(metadata.get(part) or {}) for part in touched}
    for effect in reversed(effects):
        values = parts.get(effect.part)
        if values is None or values.get(effect.field) != effect.after:
            continue
        if effect.before is None:
            values.pop(effect.field, None)
        elif isinstance(effect.before, str):
            values[effect.field] = effect.before
    kept = {name: value for name, value in metadata.items() if name not in parts}
    return {**kept, **{name: value for name, value in parts.items() if value}}
