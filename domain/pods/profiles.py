"""Which ClusterColocationProfiles concern a pod, and what of them a stored pod does not show."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from api import names
from api.koordinator import colocation
from api.koordinator.metadata import qos
from api.kubernetes import selectors

Profile = colocation.ClusterColocationProfile


@dataclasses.dataclass(frozen=True, slots=True)
class Stored:
    """What of a stored pod tells whether profiles were applied to it."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    priority_class: str
    scheduler: str
    band: qos.Band
    native: bool
    """Whether a container asks for native cpu or memory."""


def matches(
    profile: Profile, namespace: Mapping[str, str] | None, labels: Mapping[str, str]
) -> bool:
    """Tell whether a profile selects a pod; a namespace that is not known counts as selected."""
    spec = profile.spec
    if (
        spec.namespace_selector is not None
        and namespace is not None
        and not selectors.matches(spec.namespace_selector, namespace)
    ):
        return False
    return spec.selector is None or selectors.matches(spec.selector, labels)


def chosen(percent: int, lot: int) -> bool:
    """Tell whether a profile with this chance changes a pod that drew this lot in [0, 100)."""
    return percent > 0 and (percent == 100 or lot <= percent)


def is_certain(profile: Profile) -> bool:
    """Tell whether a profile changes every pod that it selects, whatever lot is drawn."""
    return chosen(profile.percentage, 99)


def passed_by(profiles: Iterable[Profile], pod: Stored, *, rewrites: bool) -> str:
    """Return why a stored pod cannot have met these profiles at its creation, else nothing.

    All of them select the pod. Nothing is said of what another program may have changed since:
    a label that is gone counts only when no trace at all is left.
    """
    if names.ANNOTATION_PROFILES in pod.annotations:
        return ""
    in_order = sorted(profiles, key=lambda one: one.metadata.name)
    wanted, unknown = _wanted(in_order)
    lacking = [
        f"{field} is not {value!r}"
        for field, value in wanted.items()
        if field not in unknown and _shown(pod, field) != value
    ]
    fixed = [text for text in lacking if text.startswith("spec.")]
    known = [field for field in wanted if field not in unknown]
    if rewrites and _is_unwritten(in_order, pod):
        fixed.append("its containers ask for native cpu or memory")
    if fixed:
        return f"{', '.join(fixed)}"
    if lacking and len(lacking) == len(known):
        return f"{', '.join(lacking)}"
    return ""


def _is_unwritten(profiles: Sequence[Profile], pod: Stored) -> bool:
    return (
        any(map(is_certain, profiles))
        and pod.native
        and pod.band in qos.TRANSLATION
        and not any(
            names.ANNOTATION_SKIP_UPDATE_RESOURCES in one.metadata.annotations for one in profiles
        )
    )


def _wanted(profiles: Sequence[Profile]) -> tuple[dict[str, str], set[str]]:
    """Return the values that profiles in this order give for sure, and what cannot be told."""
    wanted: dict[str, str] = {}
    unknown: set[str] = set()
    for profile in profiles:
        if profile.percentage <= 0:
            continue
        sets = dict(given(profile.spec))
        if is_certain(profile):
            wanted |= sets
            unknown -= sets.keys()
        else:
            unknown |= sets.keys()
        unknown |= set(_derived(profile.spec))
    return wanted, unknown


def given(spec: colocation.Spec) -> Iterator[tuple[str, str]]:
    """Yield each field that a profile sets to a value of its own."""
    for key, value in spec.labels.items():
        yield _label(key), value
    for key, value in spec.annotations.items():
        yield _annotation(key), value
    if spec.qos_class:
        yield _label(names.LABEL_QOS), spec.qos_class
    if spec.koordinator_priority is not None:
        yield _label(names.LABEL_PRIORITY), str(spec.koordinator_priority)
    if spec.scheduler_name:
        yield "spec.schedulerName", spec.scheduler_name
    if spec.priority_class_name:
        yield "spec.priorityClassName", spec.priority_class_name


def _derived(spec: colocation.Spec) -> Iterator[str]:
    """Yield each field whose value depends on the pod that was sent, or on a patch."""
    yield from map(_label, spec.label_keys_mapping.values())
    yield from map(_annotation, spec.annotation_keys_mapping.values())
    yield from map(_label, spec.label_suffixes)
    patch = spec.patch if isinstance(spec.patch, Mapping) else {}
    metadata, body = _mapping(patch, "metadata"), _mapping(patch, "spec")
    yield from map(_label, _mapping(metadata, "labels"))
    yield from map(_annotation, _mapping(metadata, "annotations"))
    yield from (f"spec.{field}" for field in body)


def _mapping(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = document.get(key)
    return found if isinstance(found, Mapping) else {}


def _label(key: str) -> str:
    return f"metadata.labels[{key}]"


def _annotation(key: str) -> str:
    return f"metadata.annotations[{key}]"


def _shown(pod: Stored, field: str) -> str | None:
    if field == "spec.schedulerName":
        return pod.scheduler
    if field == "spec.priorityClassName":
        return pod.priority_class
    kind, _, key = field.removesuffix("]").partition("[")
    source = pod.labels if kind.endswith("labels") else pod.annotations
    return source.get(key)
