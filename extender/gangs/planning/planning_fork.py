"""One fork of the state on which gangs are planned one after another, kept in step with it. Pure.

Both states say which pod, node or object has changed; before a plan each of these is brought to
what the state itself says. So a plan needs no fork of its own, one that is refused leaves no trace,
and what other plans keep counts as taken without being looked at for every plan.
"""

import dataclasses
from collections.abc import Hashable, Iterator, Sequence
from typing import Final

import msgspec

from extender.framework import pipeline, views
from extender.gangs.planning import changed_nodes, planner
from extender.state import claims, cluster_state, deltas, records

_ROWS: Final = 512
"""Nodes that are copied in one step."""
_CHANGES: Final = 96
"""Changes that are made in one step."""
_LOOKS: Final = 8192
"""Claims that are looked at in one step."""
_SORT_SECONDS: Final = 5.0
"""How long members that are alike are not judged anew on all nodes."""
_POD, _CLAIM, _NODE, _REPORT, _OBJECT, _LENDING = (
    "pod",
    "claim",
    "node",
    "report",
    "object",
    "rules",
)


class PlanningFork:
    """A fork in which the places that plans keep are taken, and sorts of members known on it."""

    def __init__(
        self, cluster: cluster_state.ClusterState, leaving_out: frozenset[str] = frozenset()
    ) -> None:
        """Keep nothing on the fork for plug-ins that are left out: they judge no plan."""
        self._cluster, self._leaving_out = cluster, leaving_out
        self._fork: cluster_state.ClusterState | None = None
        self._changed: dict[tuple[str, Hashable], None] = {}
        self._trackers: Sequence[views.StateTracker] = ()
        """Of the state when the fork was last in step with it."""
        self._sorts = planner.Sorts()
        self._since = 0.0
        self._used = 0.0

    @property
    def fork(self) -> cluster_state.ClusterState:
        """Return the fork; `catch_up` has made it."""
        assert self._fork is not None
        return self._fork

    def close(self) -> None:
        """Keep no fork any longer."""
        if self._fork is not None:
            self._cluster.followers.remove(self._note)
            self._fork = None
            self._changed.clear()
        self._sorts = planner.Sorts()

    def close_idle(self, now: float, seconds: float) -> None:
        """Keep no fork that has not been used for so long."""
        if now - self._used >= seconds:
            self.close()

    # -- in step -----------------------------------------------------------------------------

    def catch_up(self, now: float) -> Iterator[None]:
        """Make the fork what the state is, in steps; nothing is missing after the last one."""
        self._used = now
        trackers = self._cluster.view().trackers
        if self._fork is not None and self._trackers != trackers:
            self.close()
        self._trackers = trackers
        if self._fork is None:
            yield from self._begin()
        if now - self._since >= _SORT_SECONDS:
            self._sorts, self._since = planner.Sorts(), now
        while self._changed:
            for key in list(self._changed)[:_CHANGES]:
                del self._changed[key]
                self._bring(key)
            # The figures of what was changed are computed within the step.
            self.fork.view()
            if self._changed:
                yield

    def _begin(self) -> Iterator[None]:
        """Make the fork, and let what plans keep be taken in it."""
        self._cluster.view()
        self._fork = yield from self._cluster.forking(_ROWS, self._leaving_out)
        self._cluster.followers.append(self._note)
        self.fork.followers.append(self._note)
        for number, claim in enumerate(self.fork.all_claims().values()):
            if claim.evidence == planner.EVIDENCE:
                self._changed[_POD, claim.pod.uid] = None
            if number % _LOOKS == _LOOKS - 1:
                yield
        yield

    def _note(self, delta: deltas.Delta) -> None:
        match delta:
            case deltas.ClaimDelta(ident, before, after):
                claim = after or before
                assert claim is not None
                is_pod = claim.kind in views.FIRM or claim.kind is views.ClaimKind.NOMINATED
                self._changed[(_POD, claim.pod.uid) if is_pod else (_CLAIM, ident)] = None
            case deltas.NodeDelta(name):
                self._changed[_NODE, name] = None
            case deltas.ReportDelta(name):
                self._changed[_REPORT, name] = None
            case deltas.ObjectDelta(deltas.UNSCHEDULED_POD, uid):
                self._changed[_POD, uid] = None
            case deltas.ObjectDelta(kind, key):
                self._changed[_OBJECT, (kind, key)] = None
            case deltas.LendingDelta():
                self._changed[_LENDING, ""] = None

    def _bring(self, key: tuple[str, Hashable]) -> None:
        """Make one thing what it is in the state."""
        cluster, fork = self._cluster, self.fork
        match key:
            case ("pod", str(uid)):
                self._bring_pod(uid)
            case ("claim", str(ident)):
                self._bring_claim(ident, cluster.claim(ident))
            case ("node", str(name)):
                self._apply(deltas.NodeDelta(name, fork.node(name), cluster.node(name)))
                self.forget_sorts()
            case ("report", str(name)):
                self._apply(deltas.ReportDelta(name, fork.report(name), cluster.report(name)))
                self._sorts.changed(name)
            case ("object", (str(kind), str(name))):
                self._bring_object(kind, name)
            case _:
                self._apply(deltas.LendingDelta(fork.rules(), cluster.rules()))
                self._sorts = planner.Sorts()

    def _bring_pod(self, uid: str) -> None:
        cluster, kept = self._cluster, claims.nominated(uid)
        firm, nominated = cluster.claim(uid), cluster.claim(kept)
        if nominated is not None and nominated.evidence == planner.EVIDENCE:
            firm, nominated = firm or planner.firm(nominated), None
        told = cluster.told(deltas.UNSCHEDULED_POD, uid)
        after = told.after if told is not None and firm is None else None
        known = self.fork.told(deltas.UNSCHEDULED_POD, uid)
        before = known.after if known is not None else None
        if before is not after:
            self._apply(deltas.ObjectDelta(deltas.UNSCHEDULED_POD, uid, before, after))
        self._bring_claim(kept, nominated)
        self._bring_claim(uid, firm)

    def _bring_claim(self, ident: str, after: claims.Claim | None) -> None:
        before = self.fork.claim(ident)
        if before is after or (before is not None and after is not None and _alike(before, after)):
            return
        self._apply(deltas.ClaimDelta(ident, before, after))
        for claim in (before, after):
            if claim is not None:
                self._sorts.changed(claim.node)

    def _bring_object(self, kind: str, name: str) -> None:
        known, told = self.fork.told(kind, name), self._cluster.told(kind, name)
        if (
            known is not None
            and told is not None
            and (known.after, known.node)
            == (
                told.after,
                told.node,
            )
        ):
            return
        if known is not None and (told is None or told.node != known.node):
            self._apply(deltas.ObjectDelta(kind, name, known.after, None, known.node))
            known = None
        if told is not None:
            before = known.after if known is not None else None
            self._apply(deltas.ObjectDelta(kind, name, before, told.after, told.node))
        if kind not in changed_nodes.PLANS:
            self._sorts = planner.Sorts()

    def _apply(self, delta: deltas.Delta) -> None:
        """Change the fork, where that is needed, without taking it for a change of a plan."""
        if delta.before is delta.after:
            # It came and went meanwhile.
            return
        followers, self.fork.followers = self.fork.followers, []
        try:
            self.fork.apply(delta)
        finally:
            self.fork.followers = followers

    # -- plans -------------------------------------------------------------------------------

    def planner(
        self,
        plugins: pipeline.Pipeline,
        members: Sequence[planner.Member],
        options: planner.Options,
        now: float,
    ) -> planner.Planner:
        """Return the next plan in the making; what an earlier one kept for its members is free."""
        for member in members:
            self._free(member.pod.uid)
        is_alone = any(one.pod.gang is not None and one.pod.gang.alone for one in members)
        # Members that want a node alone close it for themselves, and not for others.
        sorts = planner.Sorts() if is_alone else self._sorts
        options = dataclasses.replace(options, sorts=sorts)
        return planner.Planner(plugins, self.fork, members, options, now)

    def _free(self, uid: str) -> None:
        if self._cluster.claim(uid) is not None:
            return
        for ident in (uid, claims.nominated(uid)):
            held = self.fork.claim(ident)
            if held is not None:
                self.fork.apply(deltas.ClaimDelta(ident, held, None))
                self._sorts.changed(held.node)

    def forget_sorts(self) -> None:
        """Forget every judged sort: what refuses all nodes may end without any node changing."""
        self._sorts = planner.Sorts()


def _alike(one: claims.Claim, other: claims.Claim) -> bool:
    """Whether two claims hold the same, of a pod that is to be placed, assumed or bound."""
    if one == other:
        return True
    return (
        one.kind in views.FIRM
        and other.kind in views.FIRM
        and (one.node, one.consumes, one.usable_by) == (other.node, other.consumes, other.usable_by)
        and one.allocations == other.allocations
        and _plain(one.pod) == _plain(other.pod)
    )


def _plain(pod: records.PodRecord) -> records.PodRecord:
    """Return a pod without what differs from its plan to its Binding."""
    return msgspec.structs.replace(
        pod, assigned_at=0.0, initialized_at=0.0, fence="", nominated="", preemption="", gang=None
    )
