"""Let a node offer more cpu and memory than its kubelet reports, by the ratios it carries."""

import copy
from typing import Any

import msgspec

from api import names
from api.kubernetes import core
from domain.lending import amplification
from webhook import review

GROUP = "amplification"


def apply(asked: review.Review, _picture: review.Picture) -> review.Decision:
    """Turn a changed status of a node into what the node offers.

    Ratios that cannot be parsed are refused when they are written; the report of a kubelet that
    finds them there passes as it is, since a node that cannot report would be given up.
    """
    try:
        before, after = (
            msgspec.convert(node, core.Node, strict=True)
            for node in (asked.old or {}, asked.object)
        )
        change = amplification.amplified(before, after)
    except ValueError as wrong:
        if asked.old is not None and _marks(asked.old) == _marks(asked.object):
            return review.Decision(warnings=(f"what the node offers is not amplified: {wrong}",))
        return review.Decision(review.Refusal(GROUP, (str(wrong),)))
    return review.Decision(object=_changed(asked.object, change) if change else None)


def _marks(node: review.Pod) -> tuple[Any, ...]:
    found = review.section(review.section(node, "metadata"), "annotations")
    keys = (names.ANNOTATION_AMPLIFICATION, names.ANNOTATION_RAW_ALLOCATABLE)
    return tuple(found.get(key) for key in keys)


def _changed(node: review.Pod, change: amplification.Reported) -> review.Pod:
    made: dict[str, Any] = copy.deepcopy(dict(node))
    annotations = made.setdefault("metadata", {}).setdefault("annotations", {})
    if change.raw is not None:
        annotations[names.ANNOTATION_RAW_ALLOCATABLE] = change.raw
    elif names.ANNOTATION_RAW_ALLOCATABLE in annotations:
        del annotations[names.ANNOTATION_RAW_ALLOCATABLE]
    if not annotations:
        del made["metadata"]["annotations"]
    if change.allocatable:
        made["status"]["allocatable"].update(change.allocatable)
    return made
