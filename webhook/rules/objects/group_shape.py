"""Check PodGroups: gangs that would never wait, or wait in vain."""

from collections.abc import Iterator, Mapping
from typing import Any

from api import names
from api.koordinator import scheduling
from domain.gangs import declaration, option_texts
from webhook import review


def check(asked: review.Review, _picture: review.Picture) -> review.Findings:
    """Look at the least number of pods and at the options in annotations."""
    group = scheduling.read_pod_group(asked.object)
    least = group.spec.min_member
    faults = []
    if least < 0:
        faults.append(f'spec.minMember: Invalid value: "{least}": must not be negative')
    notes = review.section(review.section(asked.object, "metadata"), "annotations")
    warnings = [*_size(group, notes), *_without_effect(group, notes)]
    warnings += [
        f"metadata.annotations[{key}]: {fault}{_instead(key, least)}"
        for key, fault in option_texts.faults(asked.namespace, notes)
        if key != names.ANNOTATION_GANG_WAITING_TIME
    ]
    warnings += _group(asked, notes)
    return review.Findings(tuple(faults), tuple(warnings))


def _size(group: scheduling.PodGroup, notes: Mapping[str, Any]) -> Iterator[str]:
    least = group.spec.min_member
    if least in (0, 1):
        yield f"spec.minMember: {least}, so its pods do not wait for each other"
    total = option_texts.int32(option_texts.text(notes, names.ANNOTATION_GANG_TOTAL))
    if total is not None and total < least:
        yield (
            f"metadata.annotations[{names.ANNOTATION_GANG_TOTAL}]: {total} is below minMember; "
            f"{least} is used"
        )


def _instead(key: str, least: int) -> str:
    return f" and {least} is used" if key == names.ANNOTATION_GANG_TOTAL else ""


def _without_effect(group: scheduling.PodGroup, notes: Mapping[str, Any]) -> Iterator[str]:
    seconds = group.spec.schedule_timeout_seconds
    if seconds is not None and seconds <= 0:
        yield f"spec.scheduleTimeoutSeconds: {seconds} is not positive; the default is used"
    if notes.get(names.ANNOTATION_GANG_WAITING_TIME):
        yield (
            f"metadata.annotations[{names.ANNOTATION_GANG_WAITING_TIME}]: has no effect on a "
            "PodGroup; set spec.scheduleTimeoutSeconds"
        )
    for key in (names.ANNOTATION_GANG_NAME, names.ANNOTATION_GANG_MIN_AVAILABLE):
        if notes.get(key):
            yield (
                f"metadata.annotations[{key}]: has no effect on a PodGroup; its name and "
                "spec.minMember count"
            )
    if group.spec.min_resources:
        yield "spec.minResources: has no effect; the requests of the pods count"


def _group(asked: review.Review, notes: Mapping[str, Any]) -> Iterator[str]:
    listed = option_texts.gang_ids(option_texts.text(notes, names.ANNOTATION_GANG_GROUPS))
    metadata = review.section(asked.object, "metadata")
    own = declaration.unknown(
        asked.namespace, str(metadata.get("name")), declaration.Source.POD_GROUP
    ).id
    if listed is not None and own not in listed:
        yield (
            f"metadata.annotations[{names.ANNOTATION_GANG_GROUPS}]: does not list {own} itself; "
            "it is added"
        )
