"""More nodes in a snapshot, each a copy of one that is there without its work. Pure."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from api import names, resources
from api.wire import quantity
from cli import reading
from cli.simulation import change
from cli.snapshot import format as formats

MOST_NODES: Final = 10_000
"""Nodes that may be added."""


def grown(snapshot: formats.Snapshot, count: int, like: str) -> change.Changed:
    """Return a snapshot with so many more nodes, each like one that is there, without its work.

    A copy has the DaemonSet pods of its pattern and reports what these and the system use; nothing
    is predicted for it yet.
    """
    if not 1 <= count <= MOST_NODES:
        raise change.ChangeError(f"--nodes {count}: write a number from 1 to {MOST_NODES}")
    nodes = {one["metadata"]["name"]: one for one in snapshot.of(resources.NODES)}
    if like not in nodes:
        some = ", ".join(sorted(nodes)[:5])
        raise change.ChangeError(f"--like {like}: there is no such node; there are {some}")
    pattern = _Pattern.of(snapshot, nodes[like])
    added: dict[str, list[formats.Raw]] = {}
    taken = set(nodes)
    for number in range(1, count + 1):
        name = f"{like}-copy-{number}"
        if name in taken:
            raise change.ChangeError(
                f"--like {like}: there is a node {name} already; copy another one"
            )
        for resource, raw in pattern.copied(name):
            added.setdefault(resource.review_name(), []).append(raw)
    objects = dict(snapshot.objects)
    for key, more in added.items():
        objects[key] = (*objects.get(key, ()), *more)
    said = f"{count} nodes like {like} are added" if count > 1 else f"a node like {like} is added"
    return change.Changed(msgspec.structs.replace(snapshot, objects=objects), (said,))


@dataclasses.dataclass(frozen=True, slots=True)
class _Pattern:
    """A node, with everything that a copy of it would have."""

    name: str
    node: formats.Raw
    daemons: tuple[formats.Raw, ...]
    metric: formats.Raw | None
    described: tuple[tuple[resources.Resource, formats.Raw], ...]
    """Its topology and devices."""

    @classmethod
    def of(cls, snapshot: formats.Snapshot, node: formats.Raw) -> "_Pattern":
        """Collect what belongs to a node."""
        name = node["metadata"]["name"]

        def named(resource: resources.Resource) -> Iterator[formats.Raw]:
            yield from (one for one in snapshot.of(resource) if one["metadata"]["name"] == name)

        daemons = tuple(
            one
            for one in snapshot.of(resources.PODS)
            if (one.get("spec") or {}).get("nodeName") == name and _is_daemon(one)
        )
        kinds = (resources.NODE_RESOURCE_TOPOLOGIES, resources.DEVICES)
        described = tuple((kind, one) for kind in kinds for one in named(kind))
        metric = next(named(resources.NODE_METRICS), None)
        return cls(name, node, daemons, metric, described)

    def copied(self, name: str) -> Iterator[tuple[resources.Resource, formats.Raw]]:
        """Yield the objects of one more node."""
        yield resources.NODES, self._node(name)
        renamed = {}
        for pod in self.daemons:
            metadata = pod["metadata"]
            own = f"{metadata['name']}-{name}"
            renamed[change.key_of(pod)] = own
            changed = {**metadata, "name": own, "uid": f"{metadata.get('uid', '')}-{name}"}
            spec = {**pod["spec"], "nodeName": name}
            yield resources.PODS, {**pod, "metadata": changed, "spec": spec}
        for kind, one in self.described:
            yield kind, {**one, "metadata": _renamed(one, name)}
        if self.metric is not None:
            yield resources.NODE_METRICS, _reported(self.metric, renamed, name)

    def _node(self, name: str) -> formats.Raw:
        metadata = _renamed(self.node, name)
        labels = dict(metadata.get("labels") or {})
        if names.LABEL_HOSTNAME in labels:
            labels[names.LABEL_HOSTNAME] = name
        return {**self.node, "metadata": {**metadata, "labels": labels}}


def _is_daemon(pod: formats.Raw) -> bool:
    owners = pod["metadata"].get("ownerReferences") or ()
    return any(one.get("kind") == "DaemonSet" for one in owners)


def _renamed(raw: formats.Raw, name: str) -> formats.Raw:
    metadata = raw["metadata"]
    return {**metadata, "name": name, "uid": f"{metadata.get('uid', '')}-{name}"}


def _reported(metric: formats.Raw, renamed: Mapping[str, str], name: str) -> formats.Raw:
    """Return what the agent of an idle copy reports: the system, and DaemonSet pods."""
    status = metric.get("status") or {}
    node = status.get("nodeMetric") or {}
    system = dict((node.get("systemUsage") or {}).get("resources") or {})
    pods = []
    for one in status.get("podsMetric") or ():
        own = renamed.get(f"{one.get('namespace', '')}/{one.get('name', '')}")
        if own is not None:
            pods.append({**one, "name": own})
    used = _summed([system, *((one.get("podUsage") or {}).get("resources") or {} for one in pods)])
    kept: formats.Raw = {
        "updateTime": status.get("updateTime"),
        "podsMetric": pods,
        "nodeMetric": {"nodeUsage": {"resources": used}, "systemUsage": {"resources": system}},
    }
    return {**metric, "metadata": _renamed(metric, name), "status": kept}


def _summed(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    total: dict[str, int] = {}
    for part in parts:
        for key, written in part.items():
            total[key] = total.get(key, 0) + reading.either(0, quantity.amount, key, written)
    return quantity.texts(total)
