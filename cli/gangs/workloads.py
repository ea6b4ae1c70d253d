"""The pods that controllers would create of the objects in a file, by their kind. Pure.

Controllers name pods differently from release to release; here they are ``WORKLOAD-ROLE-NUMBER``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from api import names, resources

Raw = dict[str, Any]

MOST_PODS: Final = 4096
"""Pods that one file may stand for."""
_VOLCANO: Final = "batch.volcano.sh"
_RAY: Final = {"RayJob": "rayClusterSpec", "RayService": "rayClusterConfig"}
_REPLICATED: Final = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"})


class WorkloadError(ValueError):
    """An object whose pods cannot be told; names the field and what to write."""


class Role(NamedTuple):
    """Equal pods of one workload."""

    name: str
    """Such as ``worker``; empty where a workload has one kind of pod only."""
    pods: int
    template: Mapping[str, Any]


class Expanded(NamedTuple):
    """What a file holds."""

    pods: tuple[Raw, ...] = ()
    groups: tuple[Raw, ...] = ()
    """PodGroups, of either API group."""
    notes: tuple[str, ...] = ()


def expand(documents: Sequence[Mapping[str, Any]]) -> Expanded:
    """Return the pods of all workloads, and PodGroups; other kinds are named and left out."""
    pods: list[Raw] = []
    groups: list[Raw] = []
    notes: list[str] = []
    for document in documents:
        kind = str(document.get("kind") or "")
        if kind == resources.POD_GROUPS.kind:
            groups.append(dict(document))
            continue
        roles = _roles(document, notes)
        if roles is None:
            notes.append(f"{kind or 'an object without a kind'} {_name(document)} has no pods")
            continue
        for role in roles:
            if len(pods) + role.pods > MOST_PODS:
                raise WorkloadError(
                    f"{kind} {_name(document)}: with it the file stands for more than {MOST_PODS} "
                    "pods; try a part of them"
                )
            pods += _pods(document, role)
    return Expanded(tuple(pods), tuple(groups), tuple(dict.fromkeys(notes)))


def _roles(document: Mapping[str, Any], notes: list[str]) -> Sequence[Role] | None:
    """Return the equal pods of a workload; None for what is none."""
    kind, spec = str(document.get("kind") or ""), _mapping(document.get("spec"))
    if kind == "Pod":
        return [Role("", 1, document)]
    if kind == "Job" and _group(document) == _VOLCANO:
        return list(_volcano(document, spec, notes))
    reader = _READERS.get(kind)
    if reader is not None:
        return list(reader(spec))
    for key, written in spec.items():
        # Every kind of training job has its own word: pytorchReplicaSpecs, mpiReplicaSpecs.
        if key.endswith("ReplicaSpecs"):
            return list(_replica_specs(f"spec.{key}", _mapping(written)))
    if isinstance(spec.get("template"), Mapping):
        return [Role("", _count("spec.replicas", spec.get("replicas")), spec["template"])]
    return None


def _job(spec: Mapping[str, Any]) -> Iterator[Role]:
    """Yield the pods of a Job that run at a time."""
    count = _count("spec.parallelism", spec.get("parallelism"))
    if spec.get("completions") is not None:
        count = min(count, _count("spec.completions", spec["completions"]))
    yield Role("", count, _mapping(spec.get("template")))


def _job_set(spec: Mapping[str, Any]) -> Iterator[Role]:
    for one in _list(spec.get("replicatedJobs")):
        name = str(one.get("name") or "")
        jobs = _count(f"spec.replicatedJobs[{name}].replicas", one.get("replicas"))
        for role in _job(_mapping(_mapping(one.get("template")).get("spec"))):
            yield Role(name, jobs * role.pods, role.template)


def _cron_job(spec: Mapping[str, Any]) -> Iterator[Role]:
    yield from _job(_mapping(_mapping(spec.get("jobTemplate")).get("spec")))


def _replica_specs(field: str, written: Mapping[str, Any]) -> Iterator[Role]:
    for name, one in written.items():
        replica = _mapping(one)
        count = _count(f"{field}.{name}.replicas", replica.get("replicas"))
        yield Role(str(name).lower(), count, _mapping(replica.get("template")))


def _ray_cluster(spec: Mapping[str, Any]) -> Iterator[Role]:
    yield Role("head", 1, _mapping(_mapping(spec.get("headGroupSpec")).get("template")))
    for one in _list(spec.get("workerGroupSpecs")):
        name = str(one.get("groupName") or "worker")
        field = f"spec.workerGroupSpecs[{name}]"
        replicas = one.get("replicas", one.get("minReplicas"))
        count = _count(f"{field}.replicas", replicas)
        count *= _count(f"{field}.numOfHosts", one.get("numOfHosts"))
        yield Role(name, count, _mapping(one.get("template")))


def _ray(field: str) -> Callable[[Mapping[str, Any]], Iterator[Role]]:
    return lambda spec: _ray_cluster(_mapping(spec.get(field)))


def _replicated(spec: Mapping[str, Any]) -> Iterator[Role]:
    count = _count("spec.replicas", spec.get("replicas"))
    yield Role("", count, _mapping(spec.get("template")))


_READERS: Final[Mapping[str, Callable[[Mapping[str, Any]], Iterator[Role]]]] = {
    "Job": _job,
    "CronJob": _cron_job,
    "JobSet": _job_set,
    "RayCluster": _ray_cluster,
    **{kind: _ray(field) for kind, field in _RAY.items()},
    **dict.fromkeys(_REPLICATED, _replicated),
}


def _volcano(
    document: Mapping[str, Any], spec: Mapping[str, Any], notes: list[str]
) -> Iterator[Role]:
    """Yield the tasks of a Volcano job; its minAvailable becomes annotations of a gang."""
    tasks = [
        Role(
            str(one.get("name") or ""),
            _count(f"spec.tasks[{one.get('name')}].replicas", one.get("replicas")),
            _mapping(one.get("template")),
        )
        for one in _list(spec.get("tasks"))
    ]
    total = sum(task.pods for task in tasks)
    least = _count("spec.minAvailable", spec.get("minAvailable"), total)
    gang = {
        names.ANNOTATION_GANG_NAME: _name(document),
        names.ANNOTATION_GANG_MIN_AVAILABLE: str(least or total),
    }
    notes.append(
        f"the Volcano job {_name(document)} is tried as a gang with minAvailable {least or total}; "
        "in a cluster, annotations of its pods have to say so"
    )
    for task in tasks:
        metadata = _mapping(task.template.get("metadata"))
        annotations = gang | dict(_mapping(metadata.get("annotations")))
        yield task._replace(
            template={**task.template, "metadata": {**metadata, "annotations": annotations}}
        )


def _pods(document: Mapping[str, Any], role: Role) -> Iterator[Raw]:
    if not isinstance(role.template.get("spec"), Mapping):
        where = f" of {role.name}" if role.name else ""
        raise WorkloadError(
            f"{document.get('kind')} {_name(document)}: the pod template{where} has no spec"
        )
    workload = _mapping(document.get("metadata"))
    written = _mapping(role.template.get("metadata"))
    shared = {"namespace": workload["namespace"]} if workload.get("namespace") else {}
    prefix = "-".join(filter(None, (_name(document), role.name)))
    alone = document.get("kind") == "Pod"
    for number in range(role.pods):
        name = _name(document) if alone else f"{prefix}-{number}"
        metadata = {**shared, **written, "name": name}
        yield {
            "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": role.template["spec"],
        }  # fmt: skip


def _name(document: Mapping[str, Any]) -> str:
    metadata = _mapping(document.get("metadata"))
    return str(metadata.get("name") or metadata.get("generateName") or "tried").rstrip("-")


def _group(document: Mapping[str, Any]) -> str:
    return str(document.get("apiVersion") or "").partition("/")[0]


def _mapping(written: Any) -> Mapping[str, Any]:
    return written if isinstance(written, Mapping) else {}


def _list(written: Any) -> list[Mapping[str, Any]]:
    found = written if isinstance(written, Sequence) and not isinstance(written, str) else ()
    return [one for one in found if isinstance(one, Mapping)]


def _count(field: str, written: Any, default: int = 1) -> int:
    """Return a number of pods; 1 where none is written."""
    if written is None:
        return default
    if not isinstance(written, int) or isinstance(written, bool) or not 0 <= written <= 1 << 31:
        raise WorkloadError(f"{field}: {str(written)[:40]!r} is no number of pods; write 0 or more")
    return written
