"""PodMigrationJobs: which pods move, from where to where, and how it went. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from api.koordinator import migration
from manager.console.views import paging

_LONGEST: Final = 512
_UNDER_WAY: Final = ("", "Pending", "Running")


class Migration(msgspec.Struct, frozen=True):
    """One PodMigrationJob."""

    name: str
    pod: str
    """namespace/name."""
    mode: str
    phase: str
    paused: bool
    to_node: str
    reason: str
    message: str
    created: float


def projected(raw: Mapping[str, Any]) -> Migration:
    """Project a PodMigrationJob."""
    read = migration.read_pod_migration_job(raw)
    pod, status = read.spec.pod_ref, read.status
    return Migration(
        read.metadata.name,
        f"{pod.namespace}/{pod.name}",
        read.spec.mode,
        status.phase or "Pending",
        read.spec.paused,
        status.node_name,
        status.reason[:_LONGEST],
        status.message[:_LONGEST],
        read.metadata.creation_timestamp or 0.0,
    )


def document(found: Iterable[Migration], wanted: paging.Asked) -> dict[str, Any]:
    """Return the jobs: those under way first, then the youngest."""
    every = [one for one in found if wanted.text in f"{one.name} {one.pod} {one.to_node}".lower()]
    phases: dict[str, int] = {}
    for one in every:
        phases[one.phase] = phases.get(one.phase, 0) + 1
    if wanted.kind:
        every = [one for one in every if one.phase == wanted.kind]
    every.sort(key=lambda one: (one.phase not in _UNDER_WAY, -one.created, one.name))
    return {**paging.page(every, wanted, msgspec.structs.asdict), "phases": phases}
