"""What a snapshot says of gangs: how they are declared, and where their members are. Pure."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from api import names, resources
from api.koordinator import scheduling
from api.kubernetes import core
from api.plugin_args import job, models
from api.wire import durations
from cli import reading
from cli.gangs import under_way
from cli.quota import cluster as quota_cluster
from cli.snapshot import format as formats
from domain.gangs import declaration, plan_record, pod_groups, sentences
from domain.gangs import table as tables
from domain.scheduler_settings import documents
from extender.gangs.planning import groups

Raw = Mapping[str, Any]

RUNS, BOUND, PLANNED, WAITS = "runs", "is bound", "has a place", "waits"
LEAVES, SUCCEEDED, FAILED = "is leaving", "has succeeded", "has failed"
STATES: Final = (RUNS, BOUND, PLANNED, WAITS, LEAVES, SUCCEEDED, FAILED)
_PLACED: Final = frozenset({RUNS, BOUND})
RESOURCES: Final = (resources.POD_GROUPS, *resources.NATIVE_POD_GROUPS, resources.PODS)
"""What is read of a cluster to know its gangs."""
_OURS: Final = (resources.GROUP_SHORT, resources.GROUP_SIGS, resources.GROUP_TOPOLOGY)
"""Ends of the names of the kinds that this product installs."""
_NO_PLAN: Final = plan_record.Record("", "", "")
_GANG_KINDS: Final = (resources.POD_GROUPS, resources.NATIVE_POD_GROUPS[0])


@dataclasses.dataclass(frozen=True, slots=True)
class Member:
    """A pod of a gang."""

    pod: core.Pod
    state: str
    """One of `STATES`."""
    node: str = ""
    """Where it is, or is planned."""
    generation: str = ""
    """Of the plan that holds its place; empty without one."""
    until: float = 0.0
    """When its place ends, in seconds of the epoch."""
    plan: plan_record.Record | None = None
    """What is written on it of a plan."""

    @property
    def key(self) -> str:
        """Return namespace/name."""
        return self.pod.metadata.key

    @property
    def counts(self) -> bool:
        """Whether it is there: neither ended nor leaving."""
        return self.state in (RUNS, BOUND, PLANNED, WAITS)

    @property
    def placed(self) -> bool:
        """Whether it is bound."""
        return self.state in _PLACED

    @property
    def created(self) -> float:
        """Return when it was created, 0 where that cannot be read."""
        return reading.either(0.0, durations.timestamp, self.pod.metadata.creation_timestamp or "")

    @property
    def condition(self) -> core.Condition | None:
        """Return what its gang waits for, as the extender wrote it."""
        for one in self.pod.status.conditions:
            if one.type == names.CONDITION_GANG and one.status == "False":
                return one
        return None


@dataclasses.dataclass(frozen=True, slots=True)
class Gang:
    """One gang with its members."""

    declared: declaration.Gang
    members: tuple[Member, ...] = ()
    """By creation and name."""
    written: scheduling.PodGroup | None = None
    """Its PodGroup of scheduling.sigs.k8s.io."""

    @property
    def name(self) -> str:
        """Return namespace/name."""
        return f"{self.declared.namespace}/{self.declared.name}"

    @property
    def native(self) -> bool:
        """Whether a PodGroup of Kubernetes itself declares it."""
        return self.declared.source is declaration.Source.NATIVE

    def count(self, *states: str) -> int:
        """Return how many members are in one of these states."""
        return sum(one.state in states for one in self.members)

    @property
    def present(self) -> tuple[Member, ...]:
        """Return the members that have neither ended nor are leaving."""
        return tuple(one for one in self.members if one.counts)

    @property
    def placed(self) -> int:
        """Return how many members are bound."""
        return self.count(RUNS, BOUND)

    @property
    def missing(self) -> int:
        """Return how many members have to be created before it can start."""
        return max(0, self.declared.min_member - len(self.present) - self.count(SUCCEEDED))

    @property
    def below(self) -> bool:
        """Whether it ran and has fewer members bound, or ended well, than its minimum."""
        least, reached = self.declared.min_member, self.placed + self.count(SUCCEEDED)
        return bool(self.placed) and reached < least and not self.count(PLANNED)

    @property
    def ended(self) -> bool:
        """Whether members existed and none is left."""
        return bool(self.members) and not self.present and not self.count(LEAVES)

    @property
    def labels(self) -> Mapping[str, str]:
        """Return the labels of its PodGroup; without one, those of its first member."""
        if self.written is not None:
            return self.written.metadata.labels
        return self.members[0].pod.metadata.labels if self.members else {}

    @property
    def phase(self) -> str:
        """Return the phase of its PodGroup, empty without one."""
        return self.written.status.phase if self.written is not None else ""

    @property
    def why(self) -> core.Condition | None:
        """Return the latest condition of its members that says what it waits for."""
        found = [one.condition for one in self.present if one.condition is not None]
        return max(found, key=lambda one: one.last_transition_time or "", default=None)

    @property
    def since(self) -> float:
        """Return when its first member that waits was created, 0 where none waits."""
        return min((one.created for one in self.present if one.state == WAITS), default=0.0)

    @property
    def priority(self) -> int:
        """Return the highest priority of its members."""
        return max((one.pod.spec.priority or 0 for one in self.present), default=0)

    def is_being_bound(self, now: float) -> bool:
        """Whether it has a plan though none of its pods shows it, for they have no gates."""
        since = max((one.created for one in self.present), default=0.0)
        waiting = [one.pod for one in self.present if one.state == WAITS]
        return self.why is None and under_way.are_being_bound(waiting, now - since)

    def nodes(self) -> dict[str, int]:
        """Return how many members each node has or is to have, most first."""
        return dict(Counter(one.node for one in self.present if one.node).most_common())


@dataclasses.dataclass(frozen=True, slots=True)
class Cluster:
    """All gangs of a cluster at one moment."""

    gangs: Mapping[str, Gang]
    """By id."""
    table: tables.Table
    """The same as the extender keeps it: which gangs form groups, and which have gathered."""
    now: float
    notes: tuple[str, ...] = ()
    """What could not be read."""
    hidden: frozenset[str] = frozenset()
    """Gangs that nobody asked for, by id."""

    def only(self, takes: Callable[[Gang], bool]) -> "Cluster":
        """Return the same, of which fewer gangs are listed."""
        hidden = frozenset(name for name, one in self.gangs.items() if not takes(one))
        return dataclasses.replace(self, hidden=hidden)

    @property
    def listed(self) -> list[Gang]:
        """Return the gangs that somebody asked for."""
        return [one for name, one in self.gangs.items() if name not in self.hidden]

    def named(self, name: str) -> Gang | None:
        """Return a gang by namespace/name; one of Kubernetes' own only where no other has it."""
        return self.gangs.get(name) or self.gangs.get(name + declaration.NATIVE)

    def group(self, gang: Gang) -> tuple[Gang, ...]:
        """Return the gangs that start together with this one, itself among them."""
        found = self.table.group_of(gang.declared.id)
        return tuple(self.gangs[one.gang.id] for one in found.gangs) if found else (gang,)

    def absent(self, gang: Gang) -> tuple[str, ...]:
        """Return the gangs that this one lists and that do not exist or do not list the same."""
        there = {one.declared.id for one in self.group(gang)}
        return tuple(one for one in declaration.listed(gang.declared) if one not in there)

    def line(self) -> list[tuple[str, ...]]:
        """Return ids of the gang groups that wait for a plan, the first in line first.

        The order is that of the extender.
        """
        waiting = []
        for group in self.table.gathered():
            ids = tuple(one.gang.id for one in group.gangs)
            found = [one for one in map(self.gangs.get, ids) if one and one.count(WAITS)]
            if not all(one.is_being_bound(self.now) for one in found):
                waiting.append((groups.standing(group).order, ids))
        return [ids for _, ids in sorted(waiting)]

    def waits_for(self, gang: Gang) -> sentences.Said | None:
        """Say what a gang waits for, as the extender does; None where none of its members waits."""
        if not gang.count(WAITS):
            return None
        found = self.table.group_of(gang.declared.id)
        said = sentences.gathering(found, gang.declared.id) if found is not None else None
        if said is not None:
            return said
        if (told := gang.why) is not None:
            return sentences.Said(told.reason, told.message)
        if found is not None and gang.is_being_bound(self.now):
            return sentences.being_bound()
        line = self.line()
        place = next((i for i, ids in enumerate(line, 1) if gang.declared.id in ids), 0)
        return sentences.in_line(place, len(line)) if place else None


def build(snapshot: formats.Snapshot) -> Cluster:
    """Read the gangs of a snapshot; an object that cannot be read is named and left out."""
    odd = list(snapshot.unreadable)
    defaults = settings(arguments(snapshot))
    found = {gang.declared.id: gang for gang in _of_groups(snapshot, defaults, odd)}
    table = tables.Table()
    for gang in found.values():
        table = table.with_pod_group(gang.declared, begun=_begun(gang))
    members: dict[str, list[Member]] = {}
    now = reading.either(0.0, durations.timestamp, snapshot.taken_at)
    for raw in snapshot.of(resources.PODS):
        read = reading.either(None, member, raw, now)
        if read is None:
            odd.append(f"Pod {reading.either('', _key, raw)}")
        elif read[0]:
            members.setdefault(read[0], []).append(read[1])
    for ident, found_members in members.items():
        held = sorted(_with_plans(found_members, now), key=lambda one: (one.created, one.key))
        known = found.get(ident)
        if known is None:
            known = Gang(_declared(held, defaults))
        found[ident] = dataclasses.replace(known, members=tuple(held))
        for one in held:
            if one.counts:
                table = table.with_member(_fact(one, defaults))
    return Cluster(dict(sorted(found.items())), table, now, tuple(_notes(snapshot, odd)))


def _begun(gang: Gang) -> bool:
    """Whether the status of a PodGroup says that members were bound once."""
    return gang.written is not None and pod_groups.has_begun(gang.written.status)


def _fact(one: Member, defaults: declaration.Defaults) -> tables.Member:
    state = tables.State.BOUND if one.placed else tables.State.WAITING
    if one.state == PLANNED:
        state = tables.State.NOMINATED
    priority = one.pod.spec.priority or 0
    return tables.Member(
        _of_pod(one.pod, defaults), one.pod.metadata.uid, one.key, one.node, state,
        priority, one.created,
    )  # fmt: skip


def arguments(snapshot: formats.Snapshot) -> job.CoschedulingArgs:
    """Return the arguments of plug-in Coscheduling that ConfigMap koord-scheduler-config states."""
    data = quota_cluster.settings(snapshot, names.CONFIG_MAP_SCHEDULER)
    written = reading.either(None, documents.read, data)
    found = written.settings if written is not None else None
    stated = found.arguments.get(models.COSCHEDULING) if found is not None else None
    return stated if isinstance(stated, job.CoschedulingArgs) else job.CoschedulingArgs()


def settings(stated: job.CoschedulingArgs) -> declaration.Defaults:
    """Return what holds where a gang does not say."""
    policy = declaration.MatchPolicy(stated.default_match_policy)
    return declaration.Defaults(stated.default_timeout, policy)


def _of_groups(
    snapshot: formats.Snapshot, defaults: declaration.Defaults, odd: list[str]
) -> Iterator[Gang]:
    for resource in _GANG_KINDS:
        for raw in snapshot.of(resource):
            try:
                read = of_group(raw, defaults)
            except reading.UNREADABLE:
                odd.append(f"PodGroup {reading.either('', _key, raw)}")
                continue
            if read is not None:
                yield read


def of_group(raw: Raw, defaults: declaration.Defaults) -> Gang | None:
    """Return the gang of a PodGroup of either API group, None for a native one of another kind."""
    metadata = msgspec.convert(raw.get("metadata") or {}, core.ObjectMeta)
    if str(raw.get("apiVersion") or "").startswith(resources.GROUP_SIGS):
        written = scheduling.read_pod_group(raw)
        return Gang(
            declaration.of_pod_group(
                metadata.namespace, metadata.name, metadata.annotations, written.spec, defaults
            ),
            written=written,
        )
    found = declaration.of_native(
        metadata.namespace, metadata.name, metadata.annotations, raw.get("spec") or {}, defaults
    )
    return None if found is None else Gang(found)


def member(raw: Raw, now: float) -> tuple[str, Member]:
    """Return the id of the gang of a pod, empty without one, and what it is in it."""
    pod = msgspec.convert(raw, core.Pod)
    metadata = pod.metadata
    named = declaration.membership(
        metadata.namespace, metadata.labels, metadata.annotations, pod.spec.scheduling_group
    )
    if named is None:
        return "", Member(pod, WAITS)
    # What may be obeyed of a plan, the extender alone decides.
    plan = plan_record.read(metadata.annotations.get(names.ANNOTATION_PLAN, "")) or _NO_PLAN
    state = _state(pod, plan, now)
    node = pod.spec.node_name or (plan.node if state == PLANNED else "")
    return named[0], Member(pod, state, node, plan.generation, plan.until, plan)


def _with_plans(members: list[Member], now: float) -> Iterator[Member]:
    """Yield members, with the plan of those that only the records on bound ones list."""
    listed = under_way.listed((one.plan for one in members if one.placed), now)
    for one in members:
        plan = listed.get(plan_record.digest(one.pod.metadata.uid)) if listed else None
        kept = (PLANNED, "", plan.generation, plan.until) if plan is not None else ()
        yield Member(one.pod, *kept) if kept and one.state == WAITS else one


def _state(pod: core.Pod, plan: plan_record.Record, now: float) -> str:
    if pod.finished:
        return SUCCEEDED if pod.status.phase == "Succeeded" else FAILED
    if pod.metadata.deletion_timestamp:
        return LEAVES
    if pod.spec.node_name:
        return RUNS if pod.status.phase == "Running" else BOUND
    return PLANNED if plan.node and plan.until > now else WAITS


def _declared(members: Iterable[Member], defaults: declaration.Defaults) -> declaration.Gang:
    """Return what the oldest member declares that declares a gang by itself.

    Where only a PodGroup has the settings and does not exist, the name of the gang is known alone.
    """
    found = [_of_pod(one.pod, defaults) for one in members]
    whole = [one for one in found if one.initialised and not one.source.needs_object]
    first = (whole or found)[0]
    if first.source.needs_object:
        return declaration.unknown(first.namespace, first.name, first.source)
    return first


def _of_pod(pod: core.Pod, defaults: declaration.Defaults) -> declaration.Gang:
    metadata = pod.metadata
    found = declaration.of_pod(
        metadata.namespace, metadata.labels, metadata.annotations, defaults,
        pod.spec.scheduling_group,
    )  # fmt: skip
    if found is None:
        raise ValueError(f"pod {metadata.key} declares no gang")
    return found


def _key(raw: Raw) -> str:
    metadata = raw["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}".strip("/")


def _notes(snapshot: formats.Snapshot, odd: Iterable[str]) -> Iterator[str]:
    for one in odd:
        yield f"{one} cannot be read and is left out"
    for what, why in sorted(snapshot.unread.items()):
        # A kind of others that is not installed has no objects: nothing is missing.
        if what.endswith(_OURS) or why != formats.NOT_INSTALLED:
            yield f"{what} could not be read: {why}"
