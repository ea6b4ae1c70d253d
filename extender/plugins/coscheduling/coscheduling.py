"""Place the members of a gang where its plan wants them, and let them be bound together only."""

from collections.abc import Mapping

import msgspec
import numpy as np

from api import names
from domain import wording
from domain.gangs import declaration
from domain.topology import tree as trees
from extender.framework import verdicts, views
from extender.plugins.coscheduling import asked, lone_pods, pages, reasons, selected_pods, tracker

NAME = tracker.NAME
Asked = asked.Asked


class Coscheduling(lone_pods.Ranker, pages.Pages):
    """Filter lets a member pass on its planned node, Permit holds it until the quorum is there.

    No member is placed before its whole gang group has a plan. Members of a group that stands
    already, by their match policies, are placed as pods of their own.
    """

    name = NAME
    columns = 0
    pod_labels = declaration.LABELS
    pod_annotations = (*declaration.ANNOTATIONS, names.ANNOTATION_NETWORK_TOPOLOGY_SELECTOR)
    kinds = (
        views.CLUSTER_NETWORK_TOPOLOGY,
        views.UNSCHEDULED_MEMBER,
        views.POD_GROUP,
        views.GANG_PLAN,
    )
    expires = False

    def __init__(
        self, defaults: declaration.Defaults, *, network: bool = True, preempts: bool = False
    ) -> None:
        """`network`: whether gangs are placed by the layers of the network.

        `preempts`: whether pods of lower priority leave for a gang that finds no room.
        """
        super().__init__()
        self.preempts = preempts
        self._defaults = defaults
        self._network = network

    # -- what is known of the cluster ------------------------------------------------------

    def node(self, info: views.NodeInfo) -> tuple[tuple[int, ...], None]:
        """Keep nothing of a node: a gang is of the cluster as a whole."""
        del info
        return (), None

    def start(self) -> tracker.Gangs:
        """Return the gangs of an empty cluster."""
        return tracker.Gangs(network=trees.Tree() if self._network else None)

    def cluster(self, old: tracker.Gangs, delta: views.Delta) -> tracker.Gangs:
        """Return the gangs after a change."""
        return tracker.advanced(old, delta, self._defaults)

    def needs(self, value: tracker.Gangs | None) -> bool:
        """Always want members: only these are delivered, so that other pods cost nothing."""
        del value
        return True

    # -- extension points ------------------------------------------------------------------

    def pre_filter(self, pod: views.PodInfo, view: views.View) -> Asked | verdicts.Status | None:
        """Find where the plan places a member; refuse it everywhere while there is no plan."""
        wanted = pod.requirements
        if not (wanted.is_member or wanted.network_selector):
            return None
        gang = tracker.declared(wanted, pod.namespace, self._defaults)
        if gang is None:
            near = lone_pods.near(pod, tracker.gangs(view))
            return Asked(near=near) if near is not None else None
        gangs = tracker.gangs(view)
        entry = gangs.table.get(gang.id)
        if entry is None:
            return reasons.UNKNOWN
        listed = declaration.listed(entry.gang)
        group = gangs.group(listed)
        if group is None:
            return reasons.UNKNOWN
        plan = gangs.plan(group.id)
        if plan is not None and (node := plan.nodes.get(pod.uid, "")):
            return Asked(gang.id, listed, node, len(plan.nodes))
        if gangs.satisfied(group, arriving=gang.id):
            near = lone_pods.near(pod, gangs) if lone_pods.is_topology_free(group) else None
            return Asked(gang.id, listed, near=near)
        if group.missing:
            return reasons.gathering(group, gang.id)
        if plan is not None and plan.plan.refusal:
            return reasons.without_plan(plan.plan)
        return reasons.NO_PLAN

    def filter(
        self, prepared: Asked, view: views.View, rows: verdicts.Rows, now: float
    ) -> verdicts.Verdict | None:
        """Refuse every node but the planned one."""
        del now
        if not prepared.node:
            return None
        planned = view.rows.get(prepared.node, -1)
        return verdicts.Verdict((rows != planned).astype(np.int16), (reasons.ELSEWHERE,))

    def passes_all(self, prepared: Asked, view: views.View, now: float) -> bool:
        """Whether the pod may go anywhere."""
        del view, now
        return not prepared.node

    def shortage(
        self, prepared: Asked, view: views.View, rows: verdicts.Rows, now: float
    ) -> verdicts.Shares:
        """Say that nothing is lacking: another node keeps what the member needs."""
        del prepared, view, now
        return np.zeros(rows.size)

    def diagnose(
        self, prepared: Asked, view: views.View, row: int, now: float
    ) -> verdicts.Diagnosis:
        """Name the planned node."""
        del row, now
        return self.diagnose_pod(prepared, view)

    def diagnose_pod(self, prepared: Asked, view: views.View) -> verdicts.Diagnosis:
        """Return where the member is placed, and how many of its gang have arrived.

        Of a pod with a selector: on how many nodes it finds others.
        """
        gangs = tracker.gangs(view)
        if prepared.near is not None and not prepared.gang:
            found = selected_pods.existing(gangs.selected, prepared.near)
            count = sum(found.values())
            return verdicts.Diagnosis(
                f"{wording.count(count, 'pod', 'pods')} with its network-topology-selector "
                f"{wording.form(count, 'runs', 'run')}, on "
                f"{wording.count(len(found), 'node', 'nodes')}; nodes near "
                f"{wording.form(count, 'it', 'them')} score higher"
            )
        entry = gangs.table.get(prepared.gang)
        if entry is None:
            return verdicts.Diagnosis("")
        counts, least = entry.counts, entry.gang.min_member
        there = counts.assumed + counts.bound
        have = wording.form(there, "has arrived or is", "have arrived or are")
        arrived = f"{there} of {wording.count(least, 'member', 'members')} {have} bound"
        where = f"planned on {prepared.node}, " if prepared.node else ""
        return verdicts.Diagnosis(f"gang {prepared.gang}: {where}{arrived}")

    def reserve(
        self,
        pod: views.PodInfo,
        prepared: Asked,
        view: views.View,
        row: int,
        grants: Mapping[str, msgspec.Struct],
    ) -> verdicts.Grant | None:
        """Record which gangs the member is bound with, where there is more than one member.

        Of a member that has no record of its plan, or one of another extender, it also writes that:
        an extender that starts later knows by it whether others of that plan are left.
        """
        del grants
        if not prepared.gang:
            return None
        told = {"gang": prepared.gang, "members": str(prepared.count)}
        if prepared.count < 2:
            return verdicts.Grant(figures=told)
        group, count = prepared.group, str(prepared.count)
        notes = {
            names.ANNOTATION_BIND_GANG_GROUP: group,
            names.ANNOTATION_BIND_GANG_MEMBERS: count,
            names.ANNOTATION_BIND_GANG_GROUP_OLD: group,
            names.ANNOTATION_BIND_GANG_MEMBERS_OLD: count,
        }
        if prepared.node:
            notes |= tracker.renewed_record(view, group, pod, view.names[row])
        return verdicts.Grant(figures=told, annotations=notes)

    def permit(
        self, pod: views.PodInfo, prepared: Asked, view: views.View, now: float
    ) -> verdicts.Permission:
        """Hold a member until every gang of its group has its quorum by its match policy."""
        if not prepared.gang:
            return verdicts.Allow()
        gangs = tracker.gangs(view)
        group, key = gangs.group(prepared.listed), prepared.group
        entry = gangs.table.get(prepared.gang)
        plan = gangs.plan(key)
        if group is None or entry is None:
            return verdicts.Reject(reasons.given_up(plan.plan if plan else None), wakes=(key,))
        if gangs.satisfied(group):
            return verdicts.Allow(wakes=(key,))
        if not prepared.node:
            return verdicts.Reject(reasons.NO_PLAN)
        if plan is None or plan.nodes.get(pod.uid, "") != prepared.node:
            return verdicts.Reject(reasons.given_up(plan.plan if plan else None), wakes=(key,))
        until = min(now + entry.gang.wait_seconds, plan.plan.until)
        is_strict = entry.gang.mode is declaration.Mode.STRICT
        return verdicts.Wait(until, key, reasons.late(group), together=is_strict)

    def could_help(self, prepared: Asked | None, delta: views.Delta) -> bool:
        """Look again when the group is planned, or its node comes back.

        What PreFilter refuses stays refused as long as it prepares nothing else: then the pod is
        judged anew without a hint.
        """
        if prepared is None:
            return False
        match delta:
            case views.NodeDelta(name):
                return name == prepared.node
            case views.ObjectDelta(views.GANG_PLAN, group):
                return group == prepared.group
            case _:
                return False

    def line(self, pod: views.PodInfo, view: views.View) -> str:
        """Let planned members of one group be woken at once, without a pause after an attempt."""
        gang = tracker.declared(pod.requirements, pod.namespace, self._defaults)
        gangs = tracker.gangs(view)
        entry = gangs.table.get(gang.id) if gang is not None else None
        if entry is None:
            return ""
        group = ",".join(declaration.listed(entry.gang))
        return f"gang group {group}" if gangs.node(group, pod.uid) else ""

    def frees(self, delta: views.Delta) -> bool:
        """A plan that was made: its members are woken within milliseconds.

        One whose members only exchange places frees nothing.
        """
        match delta:
            case views.ObjectDelta(views.GANG_PLAN, _, before, views.GangPlan() as plan):
                known = before.generation if isinstance(before, views.GangPlan) else ""
                return not plan.refusal and plan.generation != known
            case _:
                return False

    def protects(
        self, pod: views.PodInfo, view: views.View, victim: views.Claim
    ) -> verdicts.Status | None:
        """Keep the members that a plan has bound until the others have followed.

        Not longer: else a gang of one would make any pod impossible to preempt.
        """
        del pod
        wanted, namespace = victim.pod.requirements, victim.pod.namespace
        gang = tracker.declared(wanted, namespace, self._defaults)
        gangs = tracker.gangs(view)
        entry = gangs.table.get(gang.id) if gang is not None else None
        if entry is None:
            return None
        listed = declaration.listed(entry.gang)
        arriving = gangs.node(",".join(listed), victim.pod.uid) and entry.counts.pending
        return reasons.PLANNED if arriving else None

    def companions(self, view: views.View, claim: views.Claim) -> tuple[verdicts.Quorum, ...]:
        """Return the gangs of the group of a member that are bound together; none if NonStrict."""
        gang = tracker.declared(claim.pod.requirements, claim.pod.namespace, self._defaults)
        found = tracker.gangs(view).table.quorums(gang.id) if gang is not None else ()
        return tuple(verdicts.Quorum(least, placed) for least, placed in found)
