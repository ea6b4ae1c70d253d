"""The gangs of a simulation: those of a snapshot, or of a file that is put into it. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from api import names, resources
from cli import reading
from cli.gangs import cluster as clusters
from cli.gangs import workloads
from cli.placement import asked_pod
from cli.snapshot import format as formats
from cli.snapshot import projection
from domain import wording
from domain.gangs import declaration

Raw = dict[str, Any]
Groups = tuple[tuple[str, ...], ...]

_PREFIX: Final = asked_pod.UID
"""Begins the uid of pods that are put into a snapshot."""
_TRIED: Final = "tried"
"""Name of the gang of pods that declare none."""
_NATIVE: Final = {one.api_version: one for one in resources.NATIVE_POD_GROUPS}


class AskedGangError(ValueError):
    """A gang that cannot be tried; says why and what to do instead."""


class Asked(NamedTuple):
    """A snapshot that holds the gangs with all members that they need."""

    snapshot: formats.Snapshot
    groups: Groups
    """Ids of gangs that are planned together, group by group, in the order of planning."""
    notes: tuple[str, ...] = ()


def named(snapshot: formats.Snapshot, name: str) -> Asked:
    """Return a gang of the snapshot by namespace/name, with the gangs of its group."""
    found = clusters.build(snapshot)
    gang = found.named(name)
    if gang is None:
        near = [one.name for one in found.gangs.values() if one.declared.name in name]
        there = f"; there is {near[0]}" if near else ""
        raise AskedGangError(f"there is no gang {name}{there}: name another one, or a file with -f")
    if not gang.members:
        raise AskedGangError(f"gang {name} has no pods yet: write them to a file and name that")
    if not gang.count(clusters.WAITS, clusters.PLANNED):
        raise AskedGangError(
            f"no member of gang {name} waits for a node: write it to a file to place one more"
        )
    return _whole(snapshot, (gang.declared.id,), [])


def of_file(
    snapshot: formats.Snapshot, documents: Sequence[Mapping[str, Any]], namespace: str
) -> Asked:
    """Return a snapshot with the pods and PodGroups of a file; what waits under a name leaves."""
    try:
        expanded = workloads.expand(documents)
    except workloads.WorkloadError as error:
        raise AskedGangError(str(error)) from error
    notes = list(expanded.notes)
    pods = [
        _pod(snapshot, raw, namespace, number, notes) for number, raw in enumerate(expanded.pods)
    ]
    alone = [raw for raw in pods if _gang_of(raw) is None]
    if alone:
        _declare(alone)
        count = len(alone)
        notes.append(
            f"{wording.count(count, 'pod of the file declares', 'pods of the file declare')} no "
            f"gang; {wording.form(count, 'it is', 'they are')} tried as one gang of "
            f"{wording.count(count, 'member', 'members')}"
        )
    groups = [_pod_group(raw, namespace) for raw in expanded.groups]
    changed = _with_groups(_with_pods(snapshot, pods, notes), groups)
    ids = dict.fromkeys(filter(None, map(_gang_of, pods))) or dict.fromkeys(map(_id_of, groups))
    if not ids:
        raise AskedGangError("the file holds neither pods nor a PodGroup: name another one")
    return _whole(changed, tuple(ids), notes)


def _pod(
    snapshot: formats.Snapshot, raw: Mapping[str, Any], namespace: str, number: int,
    notes: list[str],
) -> Raw:  # fmt: skip
    metadata = {**(raw.get("metadata") or {}), "creationTimestamp": snapshot.taken_at}
    try:
        kept, told = asked_pod.admitted(
            snapshot, {**raw, "metadata": metadata}, namespace, f"{_PREFIX}-{number}"
        )
    except asked_pod.AskedPodError as error:
        raise AskedGangError(str(error)) from error
    notes += told
    return kept


def _declare(alone: Sequence[Raw]) -> None:
    """Make pods that declare no gang members of one."""
    for raw in alone:
        raw["metadata"]["annotations"] = {
            **(raw["metadata"].get("annotations") or {}),
            names.ANNOTATION_GANG_NAME: _TRIED,
            names.ANNOTATION_GANG_MIN_AVAILABLE: str(len(alone)),
        }


def _gang_of(raw: Mapping[str, Any]) -> str | None:
    """Return the id of the gang of a pod, None without one."""
    read = reading.either(None, clusters.member, raw, 0.0)
    return read[0] or None if read is not None else None


def _pod_group(raw: Mapping[str, Any], namespace: str) -> Raw:
    metadata = reading.either({}, dict, raw.get("metadata") or {})
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        raise AskedGangError("PodGroup: metadata.name is missing or no text; write one")
    metadata["namespace"] = metadata.get("namespace") or namespace
    version = str(raw.get("apiVersion") or "")
    resource = _NATIVE.get(version, resources.POD_GROUPS)
    if resource.api_version != version:
        known = ", ".join((resources.POD_GROUPS.api_version, *_NATIVE))
        raise AskedGangError(f"PodGroup {name}: apiVersion {version[:80]!r} is none of {known}")
    try:
        kept = projection.kept(resource, {**raw, "metadata": metadata})
        clusters.of_group(kept, declaration.Defaults())
    except reading.UNREADABLE as error:
        raise AskedGangError(f"PodGroup {name} cannot be read: {error}") from error
    return kept


def _id_of(raw: Mapping[str, Any]) -> str:
    native = declaration.NATIVE if raw["apiVersion"] in _NATIVE else ""
    return asked_pod.key_of(raw) + native


def _with_pods(
    snapshot: formats.Snapshot, pods: Sequence[Raw], notes: list[str]
) -> formats.Snapshot:
    held, replaced = asked_pod.without(snapshot, set(map(asked_pod.key_of, pods)))
    if replaced:
        told = wording.form(
            len(replaced),
            "1 pod that waits in the cluster has a name of the file; that of the file takes its "
            "place",
            f"{len(replaced)} pods that wait in the cluster have names of the file; those of the "
            "file take their places",
        )
        notes.append(told)
    found = {**snapshot.objects, resources.PODS.review_name(): (*held, *pods)}
    return msgspec.structs.replace(snapshot, objects=found)


def _with_groups(snapshot: formats.Snapshot, groups: Sequence[Raw]) -> formats.Snapshot:
    """Put PodGroups in, in the place of those of the same name."""
    found = dict(snapshot.objects)
    for raw in groups:
        resource = _NATIVE.get(raw["apiVersion"], resources.POD_GROUPS)
        before = found.get(resource.review_name(), ())
        others = [one for one in before if asked_pod.key_of(one) != asked_pod.key_of(raw)]
        found[resource.review_name()] = (*others, raw)
    return msgspec.structs.replace(snapshot, objects=found)


def _whole(snapshot: formats.Snapshot, ids: Sequence[str], notes: list[str]) -> Asked:
    """Add the members that do not exist yet, and put gangs that start together into groups."""
    found = clusters.build(snapshot)
    groups: dict[tuple[str, ...], None] = {}
    more: list[Raw] = []
    for ident in ids:
        gang = found.gangs.get(ident)
        if gang is None:
            raise AskedGangError(f"{ident} is no gang: its PodGroup states no minimum of pods")
        together = found.group(gang) or (gang,)
        group = tuple(one.declared.id for one in together)
        if group in groups:
            continue
        groups[group] = None
        notes += [
            f"gang {absent} of its group does not exist here or lists others, so it is left out"
            for absent in found.absent(gang)
        ]
        for one in together:
            more += _missing(snapshot, one, notes)
    pods = (*snapshot.of(resources.PODS), *more)
    objects = {**snapshot.objects, resources.PODS.review_name(): pods}
    whole = msgspec.structs.replace(snapshot, objects=objects)
    return Asked(whole, tuple(groups), tuple(dict.fromkeys(notes)))


def _missing(snapshot: formats.Snapshot, gang: clusters.Gang, notes: list[str]) -> Iterator[Raw]:
    """Yield copies of the last member for those that a gang needs and that do not exist."""
    if not gang.declared.initialised:
        raise AskedGangError(
            f"gang {gang.name} states no minimum of pods: write min-available, or its PodGroup"
        )
    if not gang.present:
        raise AskedGangError(f"gang {gang.name} has no pods: write them to the file as well")
    if not gang.missing:
        return
    if gang.missing > workloads.MOST_PODS:
        raise AskedGangError(f"gang {gang.name} lacks {gang.missing} members, too many to try")
    last = gang.present[-1]
    tried = wording.form(
        gang.missing,
        "does not exist; it is tried as a copy",
        "do not exist; they are tried as copies",
    )
    members = wording.count(gang.missing, "member", "members")
    notes.append(f"{members} of gang {gang.name} {tried} of {last.key}")
    for raw in snapshot.of(resources.PODS):
        if raw["metadata"].get("uid") == last.pod.metadata.uid:
            yield from (_copy(raw, gang, number) for number in range(gang.missing))


def _copy(raw: Raw, gang: clusters.Gang, number: int) -> Raw:
    metadata = {
        **raw["metadata"],
        "name": f"{gang.declared.name}-missing-{number}",
        "uid": f"{_PREFIX}-{gang.declared.id}-{number}",
        "annotations": {
            key: value
            for key, value in (raw["metadata"].get("annotations") or {}).items()
            if key != names.ANNOTATION_PLAN
        },
    }
    spec = {key: value for key, value in (raw.get("spec") or {}).items() if key != "nodeName"}
    return {**raw, "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}
