"""The pod of a preview: one of the snapshot, or one of a file that is put into it. Pure."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from api import resources
from api.kubernetes import core, pod_defaults
from cli import reading
from cli.snapshot import format as formats
from cli.snapshot import projection

Raw = dict[str, Any]

UID: Final = "simulated-pod"
"""UID of a pod that is put into a snapshot."""
_NO_CLASS: Final = core.PriorityClass()


class AskedPodError(ValueError):
    """A pod that cannot be tried; says why and what to do instead."""


class Asked(NamedTuple):
    """A snapshot that holds the pod, without a node."""

    snapshot: formats.Snapshot
    uid: str
    notes: tuple[str, ...] = ()


def body(document: Any) -> Raw | None:
    """Return the Pod of a document, or the one that a workload's pod template makes, else None."""
    if not isinstance(document, dict):
        return None
    if document.get("kind") == "Pod":
        return document
    spec = document.get("spec")
    template = spec.get("template") if isinstance(spec, dict) else None
    if not isinstance(template, dict) or not isinstance(template.get("spec"), dict):
        return None
    written = document.get("metadata") or {}
    metadata = {key: written[key] for key in ("name", "namespace") if written.get(key)}
    metadata = {"name": "tried"} | metadata | (template.get("metadata") or {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def named(snapshot: formats.Snapshot, key: str) -> Asked:
    """Return a pod of the snapshot by namespace/name."""
    for raw in snapshot.of(resources.PODS):
        if key_of(raw) == key:
            if (raw.get("spec") or {}).get("nodeName"):
                raise AskedPodError(
                    f"pod {key} is on node {raw['spec']['nodeName']} already: write it to a file "
                    "and name that with -f to place one more like it"
                )
            return Asked(snapshot, str(raw["metadata"].get("uid", "")), tuple(_gated(raw)))
    raise AskedPodError(f"there is no pod {key}: name another one, or a file with -f")


def added(snapshot: formats.Snapshot, written: Mapping[str, Any], namespace: str) -> Asked:
    """Return a snapshot with one more pod; one that waits under its name is replaced."""
    kept, notes = admitted(snapshot, written, namespace, UID)
    held, replaced = without(snapshot, {key_of(kept)})
    notes += [
        f"pod {key} waits in the cluster; the one of the file takes its place" for key in replaced
    ]
    pods = {**snapshot.objects, resources.PODS.review_name(): (*held, kept)}
    return Asked(msgspec.structs.replace(snapshot, objects=pods), UID, tuple(notes))


def admitted(
    snapshot: formats.Snapshot, written: Mapping[str, Any], namespace: str, uid: str
) -> tuple[Raw, list[str]]:
    """Return a pod of a file as a snapshot keeps it, with its priority, and what to know of it."""
    notes: list[str] = []
    parts = [written.get(part) or {} for part in ("metadata", "spec")]
    if not all(isinstance(part, Mapping) for part in parts):
        raise AskedPodError("the file holds no Pod that can be read: metadata and spec are objects")
    metadata, spec = map(dict, parts)
    metadata |= {"namespace": metadata.get("namespace") or namespace, "uid": uid}
    metadata["name"] = metadata.get("name") or metadata.get("generateName") or "simulated"
    if spec.pop("nodeName", ""):
        notes.append("spec.nodeName of the file is not looked at: a scheduler is to place the pod")
    spec = dict(pod_defaults.with_requests(spec)) | _priority(snapshot, spec)
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    try:
        kept = projection.kept(resources.PODS, body)
    except reading.UNREADABLE as error:
        raise AskedPodError(f"the file holds no Pod that can be read: {error}") from error
    return kept, [*notes, *_gated(kept)]


def without(snapshot: formats.Snapshot, keys: Collection[str]) -> tuple[list[Raw], list[str]]:
    """Return the pods of a snapshot but those that wait under these names, and which these are."""
    held, replaced = [], []
    for raw in snapshot.of(resources.PODS):
        if key_of(raw) in keys and not (raw.get("spec") or {}).get("nodeName"):
            replaced.append(key_of(raw))
        else:
            held.append(raw)
    return held, replaced


def _priority(snapshot: formats.Snapshot, spec: Mapping[str, Any]) -> Raw:
    """Return what admission would write for the priority class."""
    if spec.get("priority") is not None:
        return {}
    wanted = str(spec.get("priorityClassName") or "")
    classes = [
        reading.either(_NO_CLASS, msgspec.convert, raw, core.PriorityClass)
        for raw in snapshot.of(resources.PRIORITY_CLASSES)
    ]
    found = next(
        (one for one in classes if (one.metadata.name == wanted if wanted else one.global_default)),
        None,
    )
    if found is None:
        if wanted:
            raise AskedPodError(
                f"spec.priorityClassName: there is no PriorityClass {wanted}; name one that "
                "exists, or write spec.priority"
            )
        return {}
    policy = spec.get("preemptionPolicy") or found.preemption_policy
    return {"priority": found.value, "preemptionPolicy": policy}


def _gated(raw: Mapping[str, Any]) -> Iterator[str]:
    gates = (raw.get("spec") or {}).get("schedulingGates") or ()
    if gates:
        names = ", ".join(str(one.get("name", "")) for one in gates)
        yield f"no scheduler tries the pod before its gates are open: {names}"


def key_of(raw: Mapping[str, Any]) -> str:
    """Return namespace/name of an object."""
    metadata = raw["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"
