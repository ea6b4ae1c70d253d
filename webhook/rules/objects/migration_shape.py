"""Check PodMigrationJobs: which pod moves, and how."""

from collections.abc import Iterator
from typing import Final

from api.koordinator import migration
from webhook import review

MODES: Final = ("", migration.RESERVATION_FIRST, migration.EVICT_DIRECTLY)


def check(asked: review.Review, _picture: review.Picture) -> review.Findings:
    """Look at the reference to the pod and at the mode."""
    job = migration.read_pod_migration_job(asked.object)
    return review.Findings(tuple(_faults(asked, job)), ())


def _faults(asked: review.Review, job: migration.PodMigrationJob) -> Iterator[str]:
    spec = job.spec
    if spec.mode not in MODES:
        yield (
            f'spec.mode: Unsupported value: "{spec.mode}": use {", ".join(MODES[1:])}, or leave '
            "it out for the descheduler's default"
        )
    for field in ("namespace", "name"):
        if not getattr(spec.pod_ref, field):
            yield f"spec.podRef.{field}: Required value: which pod moves"
    if asked.old is None:
        return
    before = review.section(review.section(asked.old, "spec"), "podRef")
    named = (before.get("namespace"), before.get("name"))
    if all(named) and named != (spec.pod_ref.namespace, spec.pod_ref.name):
        yield (
            f"spec.podRef: Forbidden: the job moves {named[0]}/{named[1]}; create another job for "
            "another pod"
        )
