"""Gangs: the gangs of the cluster with their members, and the plans that are in force."""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from api import names
from api.kubernetes import core
from domain import persistent
from domain.gangs import declaration, plan_record, pod_groups, policy
from domain.gangs import table as tables
from domain.topology import layers as chains
from domain.topology import tree as trees
from extender.framework import views
from extender.plugins.coscheduling import selected_pods

NAME: Final = "Coscheduling"
EVIDENCE: Final = "gang"
"""Evidence of a nomination that a gang's plan has made."""
_NO_PLANS: Final[persistent.Map[str, "Plan"]] = persistent.Map()


class Plan(msgspec.Struct, frozen=True):
    """The plan of a gang group, and where each of its members goes."""

    plan: views.GangPlan
    nodes: Mapping[str, str]
    """Node by uid; empty once the plan was given up."""


class Gangs(msgspec.Struct, frozen=True):
    """All gangs and the plans of their groups; a value that is never changed."""

    table: tables.Table = tables.Table()
    plans: persistent.Map[str, Plan] = _NO_PLANS
    """By the id of the gang group."""
    network: trees.Tree | None = None
    """The network that nodes form; None: gangs are placed without one."""
    selected: selected_pods.Counts = selected_pods.NONE
    """The pods that run with a network-topology-selector; none where there is no network."""

    # -- reading ---------------------------------------------------------------------------

    def gathered(self) -> Iterator[tables.Group]:
        """Yield the groups that are complete and have members without a node, in no order."""
        return self.table.gathered()

    def group(self, listed: tuple[str, ...]) -> tables.Group | None:
        """Return a gang group by the ids that it lists, None where no gang belongs to it."""
        return self.table.group(listed)

    def plan(self, group: str) -> Plan | None:
        """Return the plan of a group that is in force, or the last one that was given up."""
        return self.plans.get(group)

    def node(self, group: str, uid: str) -> str:
        """Return where the plan that is in force places a member, empty where nowhere."""
        found = self.plans.get(group)
        return found.nodes.get(uid, "") if found is not None else ""

    def satisfied(self, group: tables.Group, arriving: str = "") -> bool:
        """Whether every gang that the group lists has its quorum by its match policy.

        `arriving` is the gang of a pod that counts as if it were assumed.
        """
        ever = group.ever_bound
        for gang in group.id.split(","):
            entry = self.table.get(gang)
            if entry is None or not entry.gang.initialised:
                return False
            if gang in group.elsewhere and entry.is_placed:
                # It starts without this group, and may run long since.
                continue
            waiting = self._waiting(group, entry, arriving)
            if not policy.satisfied(entry.gang, waiting, entry.counts.bound, ever):
                return False
        return True

    def _waiting(self, group: tables.Group, entry: tables.Entry, arriving: str) -> int:
        """Return how many members of a gang count as waiting at Permit."""
        waiting = entry.counts.assumed + (entry.gang.id == arriving)
        if entry.gang.match_policy is not declaration.MatchPolicy.ONLY_WAITING:
            return waiting
        # Those of the plan that are bound already were let go together with these.
        plan = self.plans.get(group.id)
        found = plan.nodes if plan is not None and entry.counts.bound else ()
        return waiting + sum(self._is_bound(entry, uid) for uid in found)

    @staticmethod
    def _is_bound(entry: tables.Entry, uid: str) -> bool:
        member = entry.member(uid)
        return member is not None and member.state is tables.State.BOUND

    # -- changing --------------------------------------------------------------------------

    def with_selected(self, before: views.Claim | None, after: views.Claim | None) -> "Gangs":
        """Return the value after a claim, perhaps of a pod with a selector, came or went."""
        if self.network is None:
            return self
        found = selected_pods.after(self.selected, before, after)
        return self if found is self.selected else msgspec.structs.replace(self, selected=found)

    def with_plan(self, group: str, after: views.GangPlan | None) -> "Gangs":
        """Return the value after a plan was made, changed, given up or forgotten."""
        found = None
        if after is not None:
            found = Plan(after, {} if after.refusal else after.nodes)
        return msgspec.structs.replace(self, plans=self.plans.replaced(group, found))

    def with_pod_group(
        self,
        before: pod_groups.PodGroup | None,
        after: pod_groups.PodGroup | None,
        defaults: declaration.Defaults,
    ) -> "Gangs":
        """Return the value after a PodGroup came, changed or went."""
        if after is not None:
            found = self.table.with_pod_group(after.gang(defaults), begun=after.begun)
        elif before is not None:
            found = self.table.without_pod_group(before.gang_id)
        else:
            return self
        return msgspec.structs.replace(self, table=found)

    def with_fact(self, before: tables.Member | None, after: tables.Member | None) -> "Gangs":
        """Return the value after a fact about a member came, changed or went."""
        if before == after:
            return self
        found = self.table
        # The new one first: a gang that has one member only does not go and come back.
        if after is not None:
            found = found.with_member(after)
        if before is not None:
            found = found.without_member(before)
        return msgspec.structs.replace(self, table=found)


def renewed_record(
    view: views.View, group: str, pod: views.PodInfo, node: str
) -> Mapping[str, str]:
    """Return the record of the plan that is in force for a member, where it has another or none."""
    plan = gangs(view).plan(group)
    whole = plan.plan.record if plan is not None else None
    found = plan_record.renewed(pod.plan, whole, node, pod.uid) if whole is not None else None
    return {names.ANNOTATION_PLAN: plan_record.encode(found)} if found is not None else {}


def gangs(view: views.View) -> Gangs:
    """Return the gangs as a view shows them."""
    found = view.cluster[NAME]
    assert isinstance(found, Gangs)
    return found


def _networked(old: Gangs, delta: views.Delta) -> Gangs:
    """Return the value after a node or the layers of the network changed."""
    if old.network is None:
        return old
    found = old.network
    match delta:
        case views.NodeDelta(name, _, after):
            found = found.with_node(name, after.labels if after is not None else None)
        case views.ObjectDelta(_, _, _, layers):
            assert layers is None or isinstance(layers, chains.Layers)
            found = found.with_layers(layers)
        case _:
            pass
    return old if found is old.network else msgspec.structs.replace(old, network=found)


def advanced(old: Gangs, delta: views.Delta, defaults: declaration.Defaults) -> Gangs:
    """Return the value after any change of the cluster."""
    match delta:
        case views.ClaimDelta(_, before, after):
            if not (_concerns(before) or _concerns(after)):
                return old
            found = old.with_fact(_held(before, defaults), _held(after, defaults))
            return found.with_selected(before, after)
        case views.ObjectDelta(views.UNSCHEDULED_POD, _, gone, come):
            assert gone is None or isinstance(gone, views.PodRecord)
            assert come is None or isinstance(come, views.PodRecord)
            return old.with_fact(_waiting(gone, defaults), _waiting(come, defaults))
        case views.ObjectDelta(views.POD_GROUP, _, known, told):
            assert known is None or isinstance(known, pod_groups.PodGroup)
            assert told is None or isinstance(told, pod_groups.PodGroup)
            return old.with_pod_group(known, told, defaults)
        case views.ObjectDelta(views.GANG_PLAN, group, _, plan):
            assert plan is None or isinstance(plan, views.GangPlan)
            return old.with_plan(group, plan)
        case views.NodeDelta() | views.ObjectDelta(views.CLUSTER_NETWORK_TOPOLOGY):
            return _networked(old, delta)
        case _:
            return old


def declared(
    wanted: views.PodRequirements, namespace: str, defaults: declaration.Defaults
) -> declaration.Gang | None:
    """Return the gang that a pod declares, None where it declares none."""
    return _declared(wanted, namespace, defaults) if wanted.is_member else None


@views.PodRequirements.remembered(4096)
def _declared(
    wanted: views.PodRequirements, namespace: str, defaults: declaration.Defaults
) -> declaration.Gang | None:
    texts = dict(wanted.inputs)
    named = wanted.scheduling_group
    native = core.SchedulingGroup(pod_group_name=named) if named else None
    # What plug-ins read of a pod holds labels and annotations; no name is one of each here.
    return declaration.of_pod(namespace, texts, texts, defaults, native)


def _concerns(claim: views.Claim | None) -> bool:
    """Whether a claim is of a member or of a pod with a selector; most are of neither."""
    if claim is None:
        return False
    wanted = claim.pod.requirements
    return wanted.is_member or bool(wanted.network_selector)


def _held(claim: views.Claim | None, defaults: declaration.Defaults) -> tables.Member | None:
    """Return what a claim says of a member; what other plug-ins keep for it says nothing.

    A bound member that is terminating is none any more: those that replace the members of a gang
    that leaves as a whole would be placed one by one meanwhile.
    """
    if claim is None or not claim.pod.requirements.is_member or claim.kind not in _STATES:
        return None
    if claim.kind is views.ClaimKind.NOMINATED and claim.evidence != EVIDENCE:
        return None
    if claim.kind is views.ClaimKind.BOUND and claim.pod.leaves_at >= 0:
        return None
    return _fact(claim.pod, _STATES[claim.kind], claim.node, defaults)


def _waiting(pod: views.PodRecord | None, defaults: declaration.Defaults) -> tables.Member | None:
    return _fact(pod, tables.State.WAITING, "", defaults) if pod is not None else None


def _fact(
    pod: views.PodRecord, state: tables.State, node: str, defaults: declaration.Defaults
) -> tables.Member | None:
    wanted = pod.requirements
    # No call and no namespace for the many that declare none.
    gang = _declared(wanted, pod.namespace, defaults) if wanted.is_member else None
    if gang is None:
        return None
    return tables.Member(
        gang=gang,
        uid=pod.uid,
        key=pod.key,
        node=node,
        state=state,
        priority=wanted.priority,
        created=pod.gang.created_at if pod.gang is not None else -1.0,
    )


_STATES: Final = {
    views.ClaimKind.NOMINATED: tables.State.NOMINATED,
    views.ClaimKind.ASSUMED: tables.State.ASSUMED,
    views.ClaimKind.BOUND: tables.State.BOUND,
}
