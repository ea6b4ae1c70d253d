"""Apply ClusterColocationProfiles to a pod at creation."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from api import colocation, core, names, strategic
from domain import profiles
from webhook import review

GROUP = "profile"


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """A pod after its profiles, and what later steps need to know of them."""

    pod: review.Pod
    applied: tuple[str, ...]
    """Names of the profiles that changed the pod, in the order in which they did."""
    rewrite: bool
    """Whether resources shall be rewritten: a profile matched and none asked to leave them."""


def apply(asked: review.Review, picture: review.Picture) -> Outcome | review.Refusal:
    """Apply every matching profile in name order; a refusal names what is missing or wrong."""
    labels = (asked.object.get("metadata") or {}).get("labels") or {}
    namespace = picture.namespaces.get(asked.namespace)
    # What cannot be evaluated counts as a match, as upstream does.
    matched = [p for p in picture.profiles if profiles.matches(p, namespace, labels) is not False]
    pod: Mapping[str, Any] = asked.object
    applied: list[str] = []
    rewrite = bool(matched)
    for profile in sorted(matched, key=lambda p: p.metadata.name):
        if names.ANNOTATION_SKIP_UPDATE_RESOURCES in profile.metadata.annotations:
            rewrite = False
        if not _chosen(profile, picture.draw):
            continue
        missing = _missing_class(profile, picture)
        if missing:
            return _refusal(profile, missing)
        try:
            pod = _applied(pod, profile, picture)
        except strategic.PatchError as wrong:
            return _refusal(profile, f"spec.patch: {wrong}")
        applied.append(profile.metadata.name)
    return Outcome(pod, tuple(applied), rewrite)


def _refusal(profile: colocation.ClusterColocationProfile, reason: str) -> review.Refusal:
    text = f"ClusterColocationProfile {profile.metadata.name}: {reason}"
    return review.Refusal(GROUP, (text,), code=review.FAILED)


def _chosen(profile: colocation.ClusterColocationProfile, draw: Callable[[str], int]) -> bool:
    percent = profile.percentage
    # No lot is drawn where it would decide nothing.
    return profiles.chosen(percent, 0 if percent in (0, 100) else draw(profile.metadata.name))


def _missing_class(profile: colocation.ClusterColocationProfile, picture: review.Picture) -> str:
    wanted = profile.spec.priority_class_name
    if not wanted or wanted in picture.priority_classes:
        return ""
    return f'spec.priorityClassName: priorityclasses.scheduling.k8s.io "{wanted}" not found'


def _applied(
    pod: review.Pod, profile: colocation.ClusterColocationProfile, picture: review.Picture
) -> review.Pod:
    spec = profile.spec
    metadata = dict(pod.get("metadata") or {})
    labels = dict(metadata.get("labels") or {})
    annotations = dict(metadata.get("annotations") or {})
    labels.update(spec.labels)
    annotations.update(spec.annotations)
    labels.update({new: labels.get(old, "") for old, new in spec.label_keys_mapping.items()})
    annotations.update(
        {new: annotations.get(old, "") for old, new in spec.annotation_keys_mapping.items()}
    )
    for key, suffix in spec.label_suffixes.items():
        if key in labels:
            labels[key] += suffix
    if spec.qos_class:
        labels[names.LABEL_QOS] = spec.qos_class
    if spec.koordinator_priority is not None:
        labels[names.LABEL_PRIORITY] = str(spec.koordinator_priority)
    if labels:
        metadata["labels"] = labels
    if annotations:
        metadata["annotations"] = annotations
    changed = {**pod, "metadata": metadata, "spec": _with_class(pod, spec, picture)}
    if not spec.patch:
        return changed
    patched = strategic.merge(changed, spec.patch)
    try:
        msgspec.convert(patched, core.Pod)
    except msgspec.ValidationError as wrong:
        # Later profiles and every other rule build on the shape of a pod.
        raise strategic.PatchError(f"what it makes of the pod is none: {wrong}") from wrong
    return patched


def _with_class(
    pod: review.Pod, spec: colocation.Spec, picture: review.Picture
) -> Mapping[str, Any]:
    changed = dict(pod.get("spec") or {})
    if spec.scheduler_name:
        changed["schedulerName"] = spec.scheduler_name
    if spec.priority_class_name:
        found = picture.priority_classes[spec.priority_class_name]
        changed["priorityClassName"] = found.name
        changed["priority"] = found.value
        if found.preemption_policy:
            changed["preemptionPolicy"] = found.preemption_policy
        else:
            changed.pop("preemptionPolicy", None)
    return changed
