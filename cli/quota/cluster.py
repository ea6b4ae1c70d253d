"""What a snapshot says of quota: the forest with its pods and nodes. Pure.

Pods, nodes and quotas are read by the functions of the manager, so that a simulation starts from
what the controllers see.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from api import names, resources
from api.koordinator import quota as quotas
from api.kubernetes import core
from api.plugin_args import job
from api.wire import durations
from cli import reading
from cli.doctor.checkup import facts
from cli.snapshot import format as formats
from domain.pods import resources as amounts
from domain.quota import configuration, model
from domain.quota.tree import forest as forests
from manager.quota import objects

RECLAIM_SWITCH: Final = "quota-reclaim"
"""Key among the live switches."""


@dataclasses.dataclass(frozen=True, slots=True)
class Cluster:
    """Everything that quota decisions are made of, at one moment."""

    forest: forests.Forest
    quotas: Mapping[str, quotas.Quota]
    """By group/namespace/name, every ElasticQuota that can be read."""
    pods: Mapping[str, objects.QuotaPod]
    """By uid, every pod that has not ended."""
    raw: Mapping[str, core.Pod]
    """By uid, every pod, also those that have ended."""
    nodes: Mapping[str, core.Node]
    now: float
    arguments: job.ElasticQuotaArgs = dataclasses.field(default_factory=job.ElasticQuotaArgs)
    """The arguments of plug-in ElasticQuota."""
    home: str = names.NAMESPACE
    """The namespace in which Koord runs, whose pods no quota holds."""
    reclaims: bool = True
    """Whether borrowers are evicted: not where a live switch says otherwise."""
    reservations: tuple[Mapping[str, Any], ...] = ()
    """Reservations."""
    budgets: tuple[Mapping[str, Any], ...] = ()
    """PodDisruptionBudgets."""
    notes: tuple[str, ...] = ()
    """What could not be read, and conflicts of quotas."""

    def quota_of(self, pod: objects.QuotaPod) -> str:
        """Return the name of the quota that a pod is charged to."""
        return self.forest.name_of(*pod.origin)

    def of_quota(self, name: str) -> list[objects.QuotaPod]:
        """Return the pods of a quota and its descendants, by key."""
        found = [pod for pod in self.pods.values() if name in self.forest.path(self.quota_of(pod))]
        if not found:
            found = [pod for pod in self.pods.values() if self.quota_of(pod) == name]
        return sorted(found, key=lambda pod: pod.key)


def build(snapshot: formats.Snapshot) -> Cluster:
    """Build the forest of a snapshot; an object that cannot be read is named and left out."""
    odd = list(snapshot.unreadable)
    found = {one.identity: one for one in _quotas(snapshot, odd)}
    nodes = {node.metadata.name: node for node in _each(snapshot, resources.NODES, core.Node, odd)}
    raw = {pod.metadata.uid: pod for pod in _each(snapshot, resources.PODS, core.Pod, odd)}
    pods = _pods(raw, odd)
    written = arguments(snapshot)
    forest = forests.Forest.empty(model.rules(written))
    for quota in found.values():
        forest = forest.with_quota(None, quota)
    for node in nodes.values():
        offered = reading.either({}, amounts.node_allocatable, node)
        forest = forest.with_node(None, objects.pairs(offered))
    for pod in pods.values():
        if not pod.node or pod.node in nodes:
            forest = forest.with_pod(None, pod.use)
    return Cluster(
        forest=forest,
        quotas=found,
        pods=pods,
        raw=raw,
        nodes=nodes,
        now=_moment(snapshot.taken_at),
        arguments=written,
        home=_home(snapshot),
        reservations=snapshot.of(resources.RESERVATIONS),
        budgets=snapshot.of(resources.POD_DISRUPTION_BUDGETS),
        reclaims=enforces(snapshot, RECLAIM_SWITCH),
        notes=tuple(_notes(snapshot, odd)),
    )


def labels(snapshot: formats.Snapshot) -> dict[tuple[str, str, str], Mapping[str, str]]:
    """Return the labels of every quota by API version, namespace and name."""
    found: dict[tuple[str, str, str], Mapping[str, str]] = {}
    for resource in resources.QUOTA_RESOURCES:
        for raw in snapshot.of(resource):
            metadata = reading.either({}, facts.section, raw, "metadata")
            key = (str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))
            found[resource.api_version, *key] = reading.either(
                {}, facts.section, metadata, "labels"
            )
    return found


def arguments(snapshot: formats.Snapshot) -> job.ElasticQuotaArgs:
    """Return the arguments that ConfigMap koord-scheduler-config states."""
    found = reading.either(None, configuration.read, settings(snapshot, names.CONFIG_MAP_SCHEDULER))
    stated = found.arguments if found is not None else None
    return stated if stated is not None else job.ElasticQuotaArgs()


def enforces(snapshot: formats.Snapshot, key: str) -> bool:
    """Whether a live switch leaves something in force."""
    mode = str(settings(snapshot, names.CONFIG_MAP_SWITCHES).get(key, "enforce"))
    return mode.strip().lower() == "enforce"


def settings(snapshot: formats.Snapshot, name: str) -> Mapping[str, str]:
    """Return the data of a ConfigMap of the installation, empty where there is none."""
    for raw in snapshot.of(resources.CONFIG_MAPS):
        if raw["metadata"]["name"] == name:
            return reading.either({}, dict, raw.get("data") or {})
    return {}


def _home(snapshot: formats.Snapshot) -> str:
    """Return the namespace from which a snapshot has its ConfigMaps; by default where it has none.

    Only those of the installation are in it.
    """
    found = (raw["metadata"].get("namespace") for raw in snapshot.of(resources.CONFIG_MAPS))
    return next((name for name in found if name and isinstance(name, str)), names.NAMESPACE)


def _pods(raw: Mapping[str, core.Pod], odd: list[str]) -> dict[str, objects.QuotaPod]:
    shapes = objects.Shapes()
    found: dict[str, objects.QuotaPod] = {}
    for uid, pod in raw.items():
        if pod.finished:
            continue
        read = reading.either(None, shapes.pod, pod)
        if read is None:
            odd.append(f"Pod {pod.metadata.key}")
        else:
            found[uid] = read
    return found


def _quotas(snapshot: formats.Snapshot, odd: list[str]) -> Iterator[quotas.Quota]:
    for resource in resources.QUOTA_RESOURCES:
        for raw in snapshot.of(resource):
            whole = {**raw, "apiVersion": resource.api_version, "kind": resource.kind}
            read = reading.either(None, objects.quota, whole)
            if read is None:
                odd.append(f"{resource.review_name()} {_key(raw)}")
            else:
                yield read.quota


def _each(
    snapshot: formats.Snapshot, resource: resources.Resource, kind: type[Any], odd: list[str]
) -> Iterator[Any]:
    for raw in snapshot.of(resource):
        read = reading.either(None, msgspec.convert, raw, kind)
        if read is None:
            odd.append(f"{resource.kind} {_key(raw)}")
        else:
            yield read


def _key(raw: Mapping[str, Any]) -> str:
    metadata = raw["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}".strip("/")


def _notes(snapshot: formats.Snapshot, odd: list[str]) -> Iterator[str]:
    for one in odd:
        yield f"{one} cannot be read and is left out"
    for what, why in sorted(snapshot.unread.items()):
        # That a group is not installed is how most clusters are.
        if why != formats.NOT_INSTALLED or what == resources.PODS.plural:
            yield f"{what} could not be read: {why}"


def _moment(written: str) -> float:
    return reading.either(0.0, durations.timestamp, written)
