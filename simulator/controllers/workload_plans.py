"""What Deployments, ReplicaSets and Jobs need next; pure, and small on purpose.

A Deployment owns one ReplicaSet per template and moves to a new one at once, without a rolling
update. A Job runs `completions` pods, `parallelism` at a time.
"""

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Object = Mapping[str, Any]
HASH_LABEL = "pod-template-hash"
BACKOFF_LIMIT = 6


@dataclasses.dataclass(frozen=True, slots=True)
class Create:
    """Make an object."""

    plural: str
    namespace: str
    body: dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Delete:
    """Delete an object."""

    plural: str
    namespace: str
    name: str
    uid: str


@dataclasses.dataclass(frozen=True, slots=True)
class Patch:
    """Merge into an object or into its status."""

    plural: str
    namespace: str
    name: str
    body: dict[str, Any]
    subresource: str = ""


Step = Create | Delete | Patch


@dataclasses.dataclass(frozen=True, slots=True)
class World:
    """Everything that the plans look at."""

    deployments: tuple[Object, ...] = ()
    replica_sets: tuple[Object, ...] = ()
    jobs: tuple[Object, ...] = ()
    pods: tuple[Object, ...] = ()


def steps(world: World, now: str) -> list[Step]:
    """Return what to write next, nothing when all is as wished; `now` is a timestamp."""
    found: list[Step] = []
    for deployment in world.deployments:
        if not _leaving(deployment):
            found += _deployment(deployment, _owned(world.replica_sets, deployment))
    for replica_set in world.replica_sets:
        if not _leaving(replica_set):
            found += _replica_set(replica_set, _owned(world.pods, replica_set))
    for job in world.jobs:
        if not _leaving(job):
            found += _job(job, _owned(world.pods, job), now)
    return found


def template_hash(template: Object) -> str:
    """A short name for a pod template."""
    text = json.dumps(template, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def _deployment(deployment: Object, owned: list[Object]) -> Iterator[Step]:
    meta, spec = deployment["metadata"], deployment["spec"]
    short = template_hash(spec["template"])
    name = f"{meta['name']}-{short}"
    current = next((item for item in owned if item["metadata"]["name"] == name), None)
    wanted = spec.get("replicas", 1)
    if current is None:
        yield Create("replicasets", meta["namespace"], _revision(deployment, name, short, wanted))
    for item in owned:
        replicas = wanted if item is current else 0
        if item["spec"].get("replicas", 1) != replicas:
            yield _scaled(item, replicas)
    counted = (current or {}).get("status", {})
    ready = counted.get("readyReplicas", 0)
    status = {
        "observedGeneration": meta.get("generation", 1),
        "replicas": sum(item.get("status", {}).get("replicas", 0) for item in owned),
        "updatedReplicas": counted.get("replicas", 0),
        "readyReplicas": ready,
        "availableReplicas": ready,
        "unavailableReplicas": max(0, wanted - ready),
    }
    yield from _status("deployments", deployment, status)


def _revision(deployment: Object, name: str, short: str, replicas: int) -> dict[str, Any]:
    spec = deployment["spec"]
    template = spec["template"]
    labels = {**(template.get("metadata", {}).get("labels") or {}), HASH_LABEL: short}
    selector = spec.get("selector") or {}
    match = {**(selector.get("matchLabels") or {}), HASH_LABEL: short}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "labels": labels,
            "ownerReferences": [_reference("apps/v1", "Deployment", deployment)],
        },
        "spec": {
            "replicas": replicas,
            "selector": {**selector, "matchLabels": match},
            "template": {
                **template,
                "metadata": {**template.get("metadata", {}), "labels": labels},
            },
        },
    }


def _scaled(replica_set: Object, replicas: int) -> Patch:
    meta = replica_set["metadata"]
    body = {"spec": {"replicas": replicas}}
    return Patch("replicasets", meta["namespace"], meta["name"], body)


def _replica_set(replica_set: Object, owned: list[Object]) -> Iterator[Step]:
    meta, spec = replica_set["metadata"], replica_set["spec"]
    live = [pod for pod in owned if not _finished(pod) and not _leaving(pod)]
    wanted = spec.get("replicas", 1)
    reference = _reference("apps/v1", "ReplicaSet", replica_set)
    for _ in range(wanted - len(live)):
        yield _pod(replica_set, spec["template"], reference)
    # Who does not run yet is missed least.
    for pod in sorted(live, key=_ready)[: max(0, len(live) - wanted)]:
        yield _gone(pod)
    ready = sum(_ready(pod) for pod in live)
    status = {
        "observedGeneration": meta.get("generation", 1),
        "replicas": len(live),
        "fullyLabeledReplicas": len(live),
        "readyReplicas": ready,
        "availableReplicas": ready,
    }
    yield from _status("replicasets", replica_set, status)


def _job(job: Object, owned: list[Object], now: str) -> Iterator[Step]:
    meta, spec = job["metadata"], job["spec"]
    old = job.get("status", {})
    if any(c.get("status") == "True" for c in old.get("conditions") or ()):
        return
    succeeded = sum(_phase(pod) == "Succeeded" for pod in owned)
    failed = sum(_phase(pod) == "Failed" for pod in owned)
    live = [pod for pod in owned if not _finished(pod) and not _leaving(pod)]
    parallel = spec.get("parallelism", 1)
    completions = spec.get("completions", parallel)
    status: dict[str, Any] = {
        "startTime": old.get("startTime") or now,
        "active": len(live),
        "succeeded": succeeded,
        "failed": failed,
        "ready": sum(_ready(pod) for pod in live),
    }
    if succeeded >= completions:
        status |= {"completionTime": now, "conditions": [_ended("Complete", now)]}
    elif failed > spec.get("backoffLimit", BACKOFF_LIMIT):
        status["conditions"] = [_ended("Failed", now, "BackoffLimitExceeded")]
        for pod in live:
            yield _gone(pod)
    elif not spec.get("suspend"):
        missing = min(parallel, completions - succeeded) - len(live)
        for _ in range(missing):
            reference = _reference("batch/v1", "Job", job)
            yield _pod(job, spec["template"], reference, {"job-name": meta["name"]})
    yield from _status("jobs", job, status)


def _pod(
    owner: Object, template: Object, reference: dict[str, Any], labels: Mapping[str, str] = {}
) -> Create:
    meta = template.get("metadata") or {}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": f"{owner['metadata']['name']}-",
            "labels": {**(meta.get("labels") or {}), **labels},
            "annotations": dict(meta.get("annotations") or {}),
            "ownerReferences": [reference],
        },
        "spec": dict(template["spec"]),
    }
    return Create("pods", owner["metadata"]["namespace"], body)


def _gone(pod: Object) -> Delete:
    meta = pod["metadata"]
    return Delete("pods", meta["namespace"], meta["name"], meta["uid"])


def _status(plural: str, item: Object, wanted: Mapping[str, Any]) -> Iterator[Patch]:
    old = item.get("status") or {}
    if any(old.get(key, 0) != value for key, value in wanted.items()):
        meta = item["metadata"]
        body = {"status": dict(wanted)}
        yield Patch(plural, meta["namespace"], meta["name"], body, "status")


def _ended(kind: str, now: str, reason: str = "") -> dict[str, Any]:
    condition = {"type": kind, "status": "True", "lastTransitionTime": now, "lastProbeTime": now}
    return {**condition, "reason": reason} if reason else condition


def _reference(version: str, kind: str, owner: Object) -> dict[str, Any]:
    meta = owner["metadata"]
    return {
        "apiVersion": version,
        "kind": kind,
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _owned(items: Iterable[Object], owner: Object) -> list[Object]:
    uid = owner["metadata"]["uid"]
    return [
        item
        for item in items
        if any(ref["uid"] == uid for ref in item["metadata"].get("ownerReferences") or ())
    ]


def _leaving(item: Object) -> bool:
    return "deletionTimestamp" in item["metadata"]


def _phase(pod: Object) -> str:
    return str((pod.get("status") or {}).get("phase", ""))


def _finished(pod: Object) -> bool:
    return _phase(pod) in ("Succeeded", "Failed")


def _ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)
