"""The PodMigrationJob of a pod that a round wants to move. Pure."""

import collections
import dataclasses
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, Final

from api import names, resources
from api.koordinator import migration
from api.wire import durations
from descheduler.framework import objective, protocols
from descheduler.framework.planning import round_plan
from descheduler.migration.plan import facts
from descheduler.model import podinfo

EVICTOR: Final = "MigrationController"
"""The evict plug-in whose moves become jobs."""
_LONGEST: Final = 1024
"""Characters of a reason."""
_NAMES: Final = uuid.UUID("6b2e1f5e-4f0a-4c0f-9d59-4f6d0a5c1e77")


@dataclasses.dataclass(frozen=True, slots=True)
class Wanted:
    """A pod that is to move, and why."""

    pod: podinfo.Pod
    plugin: str
    reason: str
    purpose: protocols.Purpose = protocols.Purpose.BALANCE
    target: str = ""
    """The node that it is to move to; empty: any other one."""
    gain: str = ""
    """What the move gains, for people."""
    group: str = ""
    """Pods that move together or not at all."""
    group_size: int = 0
    profile: str = ""
    """The profile that wants it to move; empty where a person does."""


def of_moves(moves: Iterable[round_plan.Move], round_started: float) -> list[Wanted]:
    """Return what becomes of the moves of a round; pods of one gang move together.

    What is only reported, or leaves by another plug-in, is left out.
    """
    mine = [one for one in moves if one.evictor == EVICTOR and not one.dry_run]
    gangs = collections.Counter(one.suggestion.pod.gang for one in mine)
    return [_of_move(one, gangs, round_started) for one in mine]


def _of_move(move: round_plan.Move, gangs: Mapping[str, int], round_started: float) -> Wanted:
    suggestion, worth = move.suggestion, move.worth
    gang, size = suggestion.pod.gang, gangs[suggestion.pod.gang]
    together = bool(gang) and size > 1
    return Wanted(
        suggestion.pod,
        suggestion.plugin,
        suggestion.reason,
        suggestion.purpose,
        target=move.target,
        gain=_gain(worth),
        group=f"{gang}@{round_started:.0f}" if together else "",
        group_size=size if together else 0,
        profile=move.profile,
    )


def _gain(worth: objective.Accepted) -> str:
    if not worth.gain:
        return ""
    figures = ", ".join(f"{key} {value:.4g}" for key, value in sorted(worth.figures.items()))
    return f"{worth.gain:.4g} for {worth.cost:.4g}{f' ({figures})' if figures else ''}"


def name(pod: podinfo.Pod, round_started: float) -> str:
    """Return the name of a job: the same whenever the same round tries to create it again."""
    return str(uuid.uuid5(_NAMES, f"{pod.uid}/{round_started:.3f}"))


def body(
    called: str, wanted: Wanted, defaults: facts.Defaults, created_by: str = ""
) -> dict[str, Any]:
    """Return the object to create; any process may carry it on, not only the one that created it.

    It says all that the defaults say, so that it is carried out as it was decided.
    """
    pod, kind = wanted.pod, resources.POD_MIGRATION_JOBS
    controller = pod.controller
    notes = {
        names.ANNOTATION_EVICT_REASON: wanted.reason[:_LONGEST],
        names.ANNOTATION_EVICT_TRIGGER: wanted.plugin,
        names.ANNOTATION_JOB_CREATED_BY: created_by,
        names.ANNOTATION_MIGRATION_PROFILE: wanted.profile,
        names.ANNOTATION_MIGRATION_SOURCE: pod.node,
        names.ANNOTATION_MIGRATION_TARGET: wanted.target,
        names.ANNOTATION_MIGRATION_GAIN: wanted.gain[:_LONGEST],
        names.ANNOTATION_MIGRATION_GROUP: wanted.group,
        names.ANNOTATION_MIGRATION_GROUP_SIZE: str(wanted.group_size) if wanted.group else "",
        names.ANNOTATION_MIGRATION_WORKLOAD: controller.uid if controller is not None else "",
    }
    spec: dict[str, Any] = {
        "podRef": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": pod.namespace,
            "name": pod.name,
            "uid": pod.uid,
        },
        "mode": _mode(wanted, defaults),
        "ttl": durations.text(defaults.ttl),
    }
    if defaults.delete_options:
        spec["deleteOptions"] = dict(defaults.delete_options)
    metadata: dict[str, Any] = {
        "name": called,
        "annotations": {k: v for k, v in notes.items() if v},
    }
    if defaults.eviction_policy:
        metadata["labels"] = {names.LABEL_EVICT_POLICY: defaults.eviction_policy}
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": metadata,
        "spec": spec,
    }


def _mode(wanted: Wanted, defaults: facts.Defaults) -> str:
    """A pod that has failed, or that only has to go, needs no place elsewhere first."""
    if wanted.purpose is protocols.Purpose.REMOVE or wanted.pod.has_ended:
        return migration.EVICT_DIRECTLY
    return defaults.mode
