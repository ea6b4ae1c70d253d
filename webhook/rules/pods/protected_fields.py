"""Keep what schedulers and admission write on a Pod out of the hands of its author."""

from collections.abc import Iterator

from api import names
from api.koordinator.metadata import protected_metadata
from webhook import review

GROUP = "protected"
LONGEST = 256
"""The API server cuts warnings that are longer."""


def strip(pod: review.Pod) -> tuple[review.Pod, tuple[str, ...]]:
    """Take what a scheduler decided about another pod off a new one, with a warning.

    Pods restored from a backup and copied manifests carry it.
    """
    annotations = review.section(review.section(pod, "metadata"), "annotations")
    found = [key for key in protected_metadata.STRIPPED if key in annotations]
    if not found:
        return pod, ()
    kept = {key: value for key, value in annotations.items() if key not in found}
    metadata = {**pod["metadata"], "annotations": kept}
    warning = f"metadata.annotations: removed, only schedulers write {', '.join(found)}"
    return {**pod, "metadata": metadata}, (warning[:LONGEST],)


def stands_in(asked: review.Review, writers: review.Writers) -> bool:
    """Whether it is the stand-in of a Reservation, written by an account that may write one.

    It never runs: profiles, quotas and checks concern the pods that will use the Reservation.
    """
    labels = review.section(review.section(asked.object, "metadata"), "labels")
    return names.LABEL_STAND_IN in labels and _may_write(asked, writers)


def check(asked: review.Review, writers: review.Writers) -> review.Refusal | None:
    """Refuse a pod, an update or a Binding that writes protected fields for another account."""
    if _may_write(asked, writers):
        return None
    found = tuple(_written(asked))
    if not found:
        return None
    reason = f"{', '.join(found)}: Forbidden: only schedulers and admission may write this"
    return review.Refusal(GROUP, (reason,), code=review.FORBIDDEN)


def _may_write(asked: review.Review, writers: review.Writers) -> bool:
    return asked.user in writers.accounts or not writers.groups.isdisjoint(asked.groups)


def _written(asked: review.Review) -> Iterator[str]:
    metadata = review.section(asked.object, "metadata")
    if asked.subresource == "binding" or asked.resource == ("", "bindings"):
        yield from protected_metadata.bound(metadata)
    elif asked.old is None:
        yield from protected_metadata.created(metadata)
    else:
        before = review.section(asked.old, "metadata")
        is_bound = bool(review.section(asked.old, "spec").get("nodeName"))
        yield from protected_metadata.changed(before, metadata, bound=is_bound)
