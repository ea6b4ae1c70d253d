"""Whether gangs would fit as things are, where, and what is missing: by the extender's planner.

The plug-ins of the extender and its planner of gangs decide. kube-scheduler's part is its filters
for resources, ports, node selectors, node affinity and taints.
"""

import dataclasses
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from api import names, resources
from api.koordinator import topology
from api.wire import base
from cli import reading
from cli.gangs import asked_gang, remedies, victims
from cli.gangs import cluster as clusters
from cli.placement import whole_extender
from cli.quota import cluster as quota_cluster
from cli.quota import preemptor, simulation
from cli.snapshot import format as formats
from domain.gangs import table as tables
from domain.topology import layers
from domain.topology import tree as trees
from extender.gangs.network import network_plan
from extender.gangs.planning import groups, planner
from extender.gangs.preemption import search
from extender.state import claims, cluster_state, deltas


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """The node of one member."""

    pod: str
    node: str
    allocated: tuple[str, ...] = ()
    """Plug-ins that would allocate something to it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Refused:
    """Nodes that refuse the first member without a node, for one reason."""

    by: str
    reason: str
    nodes: int


@dataclasses.dataclass(frozen=True, slots=True)
class Preview:
    """The answer for one gang group."""

    gangs: tuple[str, ...]
    """Names of the gangs that start together."""
    needed: int
    """Members that have to be placed together now."""
    members: int
    """Members without a node."""
    priority: int
    nodes: int
    """How many nodes there are."""
    fits: bool
    places: tuple[Place, ...] = ()
    """Of the plan; where it does not fit, of as many members as find a node."""
    left: tuple[str, ...] = ()
    """Members beyond the minimum for which there is no node."""
    tightest: str = ""
    """Member that finds no node first."""
    refused: tuple[Refused, ...] = ()
    """What refuses that member, the reason of most nodes first."""
    sentence: str = ""
    """The same as the extender writes it on the members."""
    scattered: bool = False
    """Whether members find nodes that are too far from each other in the network."""
    helps: tuple[str, ...] = ()
    """What would make it fit, each on its own."""
    leaving: victims.Leaving = victims.NOBODY
    """Who would be evicted for it."""
    before: tuple[str, ...] = ()
    """Gang groups that are planned before this one."""
    since: float = 0.0
    """Since when it waits, in seconds of the epoch; 0 for a gang of a file."""

    def spread(self) -> Mapping[str, int]:
        """Return how many members each node takes, most first."""
        found = Counter(place.node for place in self.places)
        return dict(sorted(found.items(), key=lambda one: (-one[1], one[0])))


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """The answers for all gang groups that were asked about."""

    previews: tuple[Preview, ...]
    now: float
    notes: tuple[str, ...] = ()


def preview(asked: asked_gang.Asked, plugins: tuple[str, ...] = ()) -> Answer:
    """Plan the groups one after another; `plugins` are enabled besides those of the settings."""
    cluster = quota_cluster.build(asked.snapshot)
    whole = whole_extender.build(asked.snapshot, cluster, plugins)
    state = whole.extender.state
    there = [one for one in simulation.nodes(cluster) if state.node(one.name) is not None]
    preemptor.Preemptor(cluster, whole.extender).follow(preemptor.present(cluster, there))
    gangs = clusters.build(asked.snapshot)
    _keep_places(cluster, whole, gangs)
    notes = [*asked.notes, *cluster.notes, *whole.notes]
    tree = _network(asked.snapshot, state, notes)
    line = gangs.line()
    allowed = clusters.arguments(asked.snapshot).enable_preemption
    preempting = victims.companions(gangs) if allowed else None
    found = []
    for ids in asked.groups:
        group = tuple(gangs.gangs[one] for one in ids)
        together = gangs.table.group_of(ids[0])
        case = _Case(cluster, whole, group, together, tree, cluster.now, preempting)
        one, state = case.planned(state)
        place = line.index(ids) if ids in line else 0
        before = tuple(
            ", ".join(gangs.gangs[each].name for each in first) for first in line[:place]
        )
        found.append(dataclasses.replace(one, before=before))
    return Answer(tuple(found), cluster.now, tuple(dict.fromkeys(notes)))


def _network(
    snapshot: formats.Snapshot, state: cluster_state.ClusterState, notes: list[str]
) -> trees.Tree | None:
    """Bring the layers of the network into the state, and return the domains that nodes form.

    None: the arguments of the plug-in say that gangs are placed without a network.
    """
    kind = deltas.CLUSTER_NETWORK_TOPOLOGY
    found: layers.Layers | None = None
    for raw in snapshot.of(resources.CLUSTER_NETWORK_TOPOLOGIES):
        name = raw["metadata"]["name"]
        if name != names.DEFAULT_NETWORK_TOPOLOGY:
            continue
        try:
            written: dict[str, Any] = {
                part: raw[part] for part in ("metadata", "spec") if part in raw
            }
            found = layers.read(topology.read_cluster_network_topology(written).spec)
        except (*reading.UNREADABLE, base.ReadError) as error:
            notes.append(f"ClusterNetworkTopology {name} cannot be read and is left out: {error}")
        else:
            state.apply(deltas.ObjectDelta(kind, name, None, found))
    if not clusters.arguments(snapshot).places_by_network:
        return None
    nodes = [(name, state.node(name)) for name in state.nodes()]
    return trees.Tree.of(found, [(name, node.labels) for name, node in nodes if node is not None])


def _keep_places(
    cluster: quota_cluster.Cluster, whole: whole_extender.Whole, gangs: clusters.Cluster
) -> None:
    """Keep what plans of gangs that are under way hold, as the extender does."""
    state = whole.extender.state
    for gang in gangs.gangs.values():
        for member in gang.members:
            uid = member.pod.metadata.uid
            ident = claims.nominated(uid)
            if member.state != clusters.PLANNED or state.node(member.node) is None:
                continue
            record = whole.extender.records.pod(cluster.raw[uid])
            if record is None:
                continue
            kept = claims.Claim(
                ident, claims.ClaimKind.NOMINATED, member.node,
                msgspec.structs.replace(record, node=member.node),
                usable_by=uid, evidence=planner.EVIDENCE,
            )  # fmt: skip
            state.apply(deltas.ClaimDelta(ident, state.claim(ident), kept))


@dataclasses.dataclass(frozen=True, slots=True)
class _Case:
    """One gang group in one state."""

    cluster: quota_cluster.Cluster
    whole: whole_extender.Whole
    group: tuple[clusters.Gang, ...]
    together: tables.Group | None
    """The same group as the extender keeps it."""
    tree: trees.Tree | None
    now: float
    preempting: victims.Companions | None
    """Which pods are evicted together; None: no pod leaves for a gang."""

    def planned(
        self, state: cluster_state.ClusterState
    ) -> tuple[Preview, cluster_state.ClusterState]:
        """Return the answer, and the state in which the next group is planned."""
        members = self._members()
        needed = self._needed()
        fork = state.fork()
        found = self._plan(fork, members, needed)
        asked = Preview(
            tuple(gang.name for gang in self.group),
            sum(needed.values()),
            len(members),
            max(gang.priority for gang in self.group),
            len(state.nodes()),
            isinstance(found, planner.Plan),
            since=min((gang.since for gang in self.group if gang.since), default=0.0),
        )
        keys = {member.pod.uid: member.pod.key for member in members}
        if isinstance(found, planner.Plan):
            left = tuple(keys[uid] for uid in found.left)
            return dataclasses.replace(asked, places=_places(found), left=left), fork
        alone = state.fork()
        most = self._plan(alone, members, {})
        assert isinstance(most, planner.Plan), "a plan that needs nothing is never refused"
        shortage = remedies.Shortage(members, needed, found, most, alone, self.now)
        return dataclasses.replace(
            asked,
            places=_places(most),
            left=tuple(keys[uid] for uid in most.left),
            tightest=found.member,
            refused=tuple(Refused(*one) for one in found.reasons),
            sentence=found.sentence,
            scattered=found.plugin == network_plan.NAME,
            leaving=self._leaving(state, members, needed),
            helps=tuple(remedies.helps(self.cluster, self.whole, shortage)),
        ), state

    def _leaving(
        self,
        state: cluster_state.ClusterState,
        members: tuple[planner.Member, ...],
        needed: Mapping[str, int],
    ) -> victims.Leaving:
        """Return who would be evicted."""
        if self.preempting is None:
            return victims.Leaving(reason=victims.SWITCHED_OFF)
        wanted = state, members, sum(needed.values()), self._maker(members, needed)
        return victims.sought(self.cluster, self.whole, self.preempting, wanted)

    def _maker(self, members: tuple[planner.Member, ...], needed: Mapping[str, int]) -> search.Make:
        options, line = planner.Options(needed), self.whole.extender.pipeline
        network = network_plan.wanted(self.together, self.tree) if self.together else None

        def make(fork: cluster_state.ClusterState) -> search.Made:
            if network is None or not any(needed.values()):
                return planner.Planner(line, fork, members, options, self.now)
            return network_plan.NetworkPlanner(line, fork, members, options, network, self.now)

        return make

    def _needed(self) -> dict[str, int]:
        """Return by gang how many members have to find a node, as the extender counts them."""
        group = self.together
        if group is None:
            return {gang.declared.id: gang.declared.min_member for gang in self.group}
        return {
            entry.gang.id: groups.needed(entry, ever_bound=group.ever_bound)
            for entry in group.gangs
        }

    def _plan(
        self,
        fork: cluster_state.ClusterState,
        members: tuple[planner.Member, ...],
        needed: Mapping[str, int],
    ) -> planner.Found:
        options, line = planner.Options(needed), self.whole.extender.pipeline
        network = network_plan.wanted(self.together, self.tree) if self.together else None
        if network is None or not any(needed.values()):
            return planner.plan(line, fork, members, options, self.now)
        made = network_plan.NetworkPlanner(line, fork, members, options, network, self.now)
        for _ in made.steps():
            pass
        found = made.result
        assert found is not None
        if isinstance(found, planner.Plan):
            self._occupy(fork, members, found)
        return found

    def _occupy(
        self,
        fork: cluster_state.ClusterState,
        members: tuple[planner.Member, ...],
        found: planner.Plan,
    ) -> None:
        """Count the members of a plan on their nodes."""
        places = {one.pod.uid: one.node for one in found.placements}
        chosen = [member for member in members if member.pod.uid in places]
        options = planner.Options({}, places=places)
        planner.plan(self.whole.extender.pipeline, fork, chosen, options, self.now)

    def _members(self) -> tuple[planner.Member, ...]:
        """Return the members without a node."""
        found = []
        for gang in self.group:
            for member in gang.present:
                record = self.whole.extender.records.pod(self.cluster.raw[member.pod.metadata.uid])
                if not member.placed and record is not None:
                    found.append(planner.Member(record, gang.declared.id))
        return tuple(found)


def _places(found: planner.Plan) -> tuple[Place, ...]:
    return tuple(
        Place(one.pod.key, one.node, tuple(sorted(one.granted))) for one in found.placements
    )
