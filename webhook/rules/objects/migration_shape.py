"""Check PodMigrationJobs: which pod moves, how, and what an update changes."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from api import names
from api.koordinator import migration, scheduling
from api.wire import base
from webhook import review

MODES: Final = ("", migration.RESERVATION_FIRST, migration.EVICT_DIRECTLY)
_BEGUN: Final = "Running"
_ANY_OWNER: Final = [{"object": {"kind": "Pod", "name": "any"}}]
_MOST: Final = 10_000


def check(asked: review.Review, _picture: review.Picture) -> review.Findings:
    """Look at the reference to the pod, the mode, the Reservation, and what an update changes."""
    job = migration.read_pod_migration_job(asked.object)
    faults = (*_written(job), *_template(asked.object), *_group(job), *_changed(asked, job))
    # The controller completes jobs: what it writes is not doubted.
    return review.Findings(tuple(faults), () if asked.old is not None else tuple(_doubts(job)))


def _written(job: migration.PodMigrationJob) -> Iterator[str]:
    spec = job.spec
    if spec.mode not in MODES:
        yield (
            f'spec.mode: Unsupported value: "{spec.mode}": use {", ".join(MODES[1:])}, or leave '
            "it out for the descheduler's default"
        )
    for field in ("namespace", "name"):
        if not getattr(spec.pod_ref, field):
            yield f"spec.podRef.{field}: Required value: which pod moves"
    named = spec.reservation_options.reservation_ref if spec.reservation_options else None
    if named is not None and not named.name:
        yield (
            "spec.reservationOptions.reservationRef.name: Required value: which Reservation is "
            "used; leave reservationRef out to have one created"
        )


def _template(raw: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a Reservation of this template could not be created for."""
    options = review.section(review.section(raw, "spec"), "reservationOptions")
    template = review.section(options, "template")
    if not template:
        return
    spec = review.section(template, "spec")
    # What is missing is filled in from the pod.
    whole = {"template": {"spec": {}}, "owners": _ANY_OWNER, **spec}
    body = {"metadata": review.section(template, "metadata"), "spec": whole}
    try:
        scheduling.read_reservation(body)
    except base.ReadError as wrong:
        text = str(wrong).partition(": ")[2]
        yield f"spec.reservationOptions.template: Invalid value: {text}"
    if "ttl" in spec and "expires" in spec:
        yield "spec.reservationOptions.template.spec: give either ttl or expires, not both"


def _group(job: migration.PodMigrationJob) -> Iterator[str]:
    """Yield how the annotations of a group are wrong, by which its jobs would wait for ever."""
    notes = job.metadata.annotations
    size = notes.get(names.ANNOTATION_MIGRATION_GROUP_SIZE)
    if size is None and names.ANNOTATION_MIGRATION_GROUP not in notes:
        return
    key = f"metadata.annotations[{names.ANNOTATION_MIGRATION_GROUP_SIZE}]"
    short = size is not None and len(size) <= len(str(_MOST))
    if size is None or not (short and size.isascii() and size.isdigit() and int(size) > 0):
        yield f"{key}: Invalid value: how many jobs the group has, from 1 to {_MOST}"
    elif not notes.get(names.ANNOTATION_MIGRATION_GROUP):
        yield (
            f"metadata.annotations[{names.ANNOTATION_MIGRATION_GROUP}]: Required value: the group "
            f"that {names.ANNOTATION_MIGRATION_GROUP_SIZE} is about"
        )


def _changed(asked: review.Review, job: migration.PodMigrationJob) -> Iterator[str]:
    if asked.old is None:
        return
    old, spec = review.section(asked.old, "spec"), job.spec
    before = review.section(old, "podRef")
    named = (before.get("namespace"), before.get("name"))
    if all(named) and named != (spec.pod_ref.namespace, spec.pod_ref.name):
        yield (
            f"spec.podRef: Forbidden: the job moves {named[0]}/{named[1]}; create another job for "
            "another pod"
        )
    uid = before.get("uid")
    if uid and spec.pod_ref.uid != uid:
        yield "spec.podRef.uid: Forbidden: the job moves exactly this pod; create another job"
    phase = review.section(asked.old, "status").get("phase")
    if phase == _BEGUN and (old.get("mode") or "") != spec.mode:
        yield "spec.mode: Forbidden: the job has begun; abort it and create another one"
    options = review.section(old, "reservationOptions")
    used = review.section(options, "reservationRef").get("name")
    now = spec.reservation_options.reservation_ref if spec.reservation_options else None
    if used and (now is None or now.name != used):
        yield (
            f"spec.reservationOptions.reservationRef: Forbidden: the job uses Reservation {used}; "
            "abort it and create another one"
        )


def _doubts(job: migration.PodMigrationJob) -> Iterator[str]:
    options, deletion = job.spec.reservation_options, job.spec.delete_options
    if options is not None and options.reservation_ref is not None and options.template:
        yield "spec.reservationOptions.template: has no effect beside reservationRef"
    if job.spec.mode == migration.EVICT_DIRECTLY and options is not None:
        yield "spec.reservationOptions: has no effect with mode EvictDirectly"
    if deletion is not None and deletion.dry_run:
        yield "spec.deleteOptions.dryRun: has no effect; pause the job instead"
