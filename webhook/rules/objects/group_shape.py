"""Check PodGroups: gangs that would never wait, or wait in vain."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from api import names
from api.koordinator import scheduling
from api.koordinator.metadata import annotations
from api.wire import base
from webhook import review

MODES: Final = ("Strict", "NonStrict")
MATCH_POLICIES: Final = ("only-waiting", "waiting-and-running", "once-satisfied")


def check(asked: review.Review, _picture: review.Picture) -> review.Findings:
    """Look at the least number of pods and at the options in annotations."""
    group = scheduling.read_pod_group(asked.object)
    faults = []
    if group.spec.min_member < 0:
        faults.append(
            f'spec.minMember: Invalid value: "{group.spec.min_member}": must not be negative'
        )
    notes = review.section(review.section(asked.object, "metadata"), "annotations")
    warnings = [*_size(group, notes), *_options(notes)]
    return review.Findings(tuple(faults), tuple(warnings))


def _size(group: scheduling.PodGroup, notes: Mapping[str, Any]) -> Iterator[str]:
    least = group.spec.min_member
    if least in (0, 1):
        yield f"spec.minMember: {least}, so its pods do not wait for each other"
    try:
        total = annotations.integer(notes, names.ANNOTATION_GANG_TOTAL)
    except base.ReadError as wrong:
        yield f"metadata.annotations: {wrong}; {least} is used"
        return
    if total is not None and total < least:
        yield (
            f"metadata.annotations[{names.ANNOTATION_GANG_TOTAL}]: {total} is below minMember; "
            f"{least} is used"
        )


def _options(notes: Mapping[str, Any]) -> Iterator[str]:
    for key, known in (
        (names.ANNOTATION_GANG_MODE, MODES),
        (names.ANNOTATION_GANG_MATCH_POLICY, MATCH_POLICIES),
        (names.ANNOTATION_POD_GROUP_MATCH_POLICY, MATCH_POLICIES),
    ):
        named = notes.get(key)
        if named and named not in known:
            yield (
                f'metadata.annotations[{key}]: "{named}" is none of {", ".join(known)}; the '
                "default is used"
            )
    for payload in (annotations.GANG_GROUPS, annotations.GANG_NETWORK_TOPOLOGY):
        try:
            payload.read(notes)
        except base.ReadError as wrong:
            yield f"metadata.annotations: {wrong}; it is ignored"
