"""What a snapshot keeps of workloads and PodMigrationJobs, and of pods for moves alone. Pure."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from api import resources
from api.kubernetes import core
from descheduler.model import object_projection, pod_object, pod_projection

Raw = dict[str, Any]

KINDS: Final = (*object_projection.KINDS, *object_projection.MORE_KINDS)
"""Controllers of pods that say how many there should be."""
JOBS: Final = resources.POD_MIGRATION_JOBS
ANNOTATIONS: Final = frozenset(
    (*pod_projection.ANNOTATIONS, pod_projection.MIRROR, pod_projection.SOURCE)
)
"""Annotations of pods and workloads that say whether a pod may be moved."""
_JOB_SPEC: Final = ("podRef", "mode", "ttl", "paused")
_JOB_STATUS: Final = ("phase", "reason", "nodeName", "podRef")
_STATE: Final = ("reason", "startedAt", "finishedAt")
_LONGEST: Final = 64


def workload(raw: Mapping[str, Any]) -> object_projection.Controller:
    """Keep how many pods there should be, how many there are, and how they are updated."""
    return msgspec.convert(raw, object_projection.Controller)


def job(raw: Mapping[str, Any], conditions: tuple[core.Condition, ...]) -> Raw:
    """Keep which pod a PodMigrationJob moves, and how far it is."""
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    named = (spec.get("reservationOptions") or {}).get("reservationRef")
    found = {key: spec[key] for key in _JOB_SPEC if key in spec}
    if isinstance(named, Mapping):
        found["reservationOptions"] = {"reservationRef": dict(named)}
    told: Raw = {key: status[key] for key in _JOB_STATUS if key in status}
    if conditions:
        told["conditions"] = msgspec.to_builtins(conditions)
    return {"spec": found, "status": told}


def volume(one: pod_object.Volume) -> pod_object.Volume:
    """Keep the kind of a volume that ties a pod to its node, and the name of a claim."""
    source = one.source
    return pod_object.Volume(
        host_path=None if source.host_path is None else {},
        empty_dir=None if source.empty_dir is None else {},
        persistent_volume_claim=source.persistent_volume_claim,
    )


def state(written: Mapping[str, Any]) -> Raw:
    """Keep in which state a container is, why, and with which code it has ended."""
    for name, said in written.items():
        detail = said if isinstance(said, Mapping) else {}
        found: Raw = {key: str(detail[key])[:_LONGEST] for key in _STATE if key in detail}
        code = detail.get("exitCode")
        if isinstance(code, int):
            found["exitCode"] = code
        return {str(name)[:_LONGEST]: found}
    return {}
