"""Warn the creator of a pod about a gang that cannot be read or would never start."""

from collections.abc import Iterator

from api import names
from api.kubernetes import core
from domain.gangs import declaration, option_texts
from webhook import review

_LEAST = (names.LABEL_POD_GROUP_MIN_AVAILABLE, names.ANNOTATION_GANG_MIN_AVAILABLE)


def warnings(pod: core.Pod, namespace: str, picture: review.Picture) -> Iterator[str]:
    """Yield a sentence per doubt about the gang of a new pod, the most important ones first."""
    labels, notes = pod.metadata.labels, pod.metadata.annotations
    gang = declaration.of_pod(
        namespace, labels, notes, declaration.Defaults(), pod.spec.scheduling_group
    )
    if gang is None:
        yield from _without_name(labels, notes)
        return
    if gang.name == declaration.NO_NAME:
        yield "the name of its gang is no name of an object, so the pod waits for ever"
    elif not gang.initialised and not gang.source.needs_object:
        yield from _minimum(labels)
    elif not gang.source.needs_object:
        yield from _size(gang, notes)
    if gang.source is not declaration.Source.NATIVE:
        yield from _scheduler(pod.spec.scheduler_name, picture)
    yield from _names(gang, labels, notes, pod.spec.scheduling_group)
    for key, fault in option_texts.faults(namespace, notes):
        yield f"metadata.annotations[{key}]: {fault}"


def _without_name(labels: dict[str, str], notes: dict[str, str]) -> Iterator[str]:
    for part, values, key in (
        ("labels", labels, names.LABEL_POD_GROUP_MIN_AVAILABLE),
        ("annotations", notes, names.ANNOTATION_GANG_MIN_AVAILABLE),
    ):
        if values.get(key):
            yield (
                f"metadata.{part}[{key}]: has no effect without the name of a gang; set the "
                f"annotation {names.ANNOTATION_GANG_NAME}"
            )


def _minimum(labels: dict[str, str]) -> Iterator[str]:
    label, note = _LEAST
    at = f"labels[{label}]" if labels.get(label) else f"annotations[{note}]"
    yield (
        f"metadata.{at}: is missing or no decimal integer of 32 bits, so the gang waits for ever; "
        "write how many pods start together"
    )


def _scheduler(named: str, picture: review.Picture) -> Iterator[str]:
    schedulers = sorted(picture.gang_schedulers)
    if picture.plans_gangs and schedulers and named not in schedulers:
        yield (
            f"spec.schedulerName: {named} does not place gangs as a whole; name "
            f"{' or '.join(schedulers)}"
        )


def _size(gang: declaration.Gang, notes: dict[str, str]) -> Iterator[str]:
    if gang.min_member <= 1:
        least = gang.min_member
        yield f"the minimum of its gang is {least}, so its pods do not wait for each other"
    total = option_texts.int32(option_texts.text(notes, names.ANNOTATION_GANG_TOTAL))
    if total is not None and total < gang.min_member:
        yield (
            f"metadata.annotations[{names.ANNOTATION_GANG_TOTAL}]: {total} is below the minimum; "
            f"{gang.min_member} is used"
        )


def _names(
    gang: declaration.Gang,
    labels: dict[str, str],
    notes: dict[str, str],
    native: core.SchedulingGroup | None,
) -> Iterator[str]:
    """Tell which of several names counts."""
    given = (
        (f"metadata.labels[{names.LABEL_POD_GROUP}]", labels.get(names.LABEL_POD_GROUP)),
        (f"metadata.labels[{names.LABEL_POD_GROUP_OLD}]", labels.get(names.LABEL_POD_GROUP_OLD)),
        (
            f"metadata.annotations[{names.ANNOTATION_GANG_NAME}]",
            notes.get(names.ANNOTATION_GANG_NAME),
        ),
        ("spec.schedulingGroup", native.pod_group_name if native is not None else ""),
    )
    found = [(where, name) for where, name in given if name]
    for where, name in found[1:]:
        if name != found[0][1] or where == "spec.schedulingGroup":
            yield f"{where}: {name[:80]} has no effect beside {found[0][0]}; the gang is {gang.id}"
