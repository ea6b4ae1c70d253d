"""Renames what snapshots hold of moves: PodMigrationJobs, claims, annotations of pods. Pure."""

from collections.abc import Mapping
from typing import Any

from cli.snapshot import substitutes, workloads

Raw = dict[str, Any]


def annotations(written: Mapping[str, str], given: substitutes.Names) -> Raw:
    """Keep what says whether a pod may be moved; words and numbers of the API stay."""
    return {
        key: given.value(key, value)
        for key, value in written.items()
        if key in workloads.ANNOTATIONS
    }


def volumes(spec: Raw, given: substitutes.Names) -> None:
    """Rename the claims in the volumes of a pod."""
    if spec.get("volumes"):
        spec["volumes"] = [_volume(one, given) for one in spec["volumes"]]


def _volume(one: Mapping[str, Any], given: substitutes.Names) -> Raw:
    claim = one.get("persistentVolumeClaim")
    if not isinstance(claim, Mapping):
        return dict(one)
    name = given.of("claim", str(claim.get("claimName", "")))
    return {**one, "persistentVolumeClaim": {"claimName": name}}


def job(one: Raw, given: substitutes.Names) -> None:
    """Rename the pod, the node and the Reservation of a PodMigrationJob."""
    spec, status = dict(one.get("spec") or {}), dict(one.get("status") or {})
    for part in (spec, status):
        if isinstance(part.get("podRef"), Mapping):
            part["podRef"] = substitutes.reference("pod", part["podRef"], given)
    kept = (spec.get("reservationOptions") or {}).get("reservationRef")
    if isinstance(kept, Mapping):
        spec["reservationOptions"] = {
            "reservationRef": substitutes.reference("reservation", kept, given)
        }
    if status.get("nodeName"):
        status["nodeName"] = given.of("node", str(status["nodeName"]))
    one["spec"], one["status"] = spec, status
