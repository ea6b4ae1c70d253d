"""The claims of a plan in the ledger: placed for all members or for none, and released together."""

import dataclasses
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from extender.framework import pipeline, views
from extender.gangs.planning import changed_nodes, in_tree, planner
from extender.state import allocations, deltas, gang_facts, ledger, records

_TOGETHER: Final = 48
"""Claims that are placed in one step."""
_TRIES: Final = 4
"""Nodes that pass filters and may yet have nothing to grant, before none is looked for."""


@dataclasses.dataclass(frozen=True, slots=True)
class Holding:
    """Places and releases what is kept for the members of gangs."""

    books: ledger.Ledger
    judging: Callable[[], pipeline.Pipeline]
    """Returns the plug-ins that judge a member."""

    # -- claims ----------------------------------------------------------------------------

    def place(
        self,
        plan: Sequence[planner.Placement],
        until: float,
        since: changed_nodes.ChangedNodes,
        now: float,
    ) -> Iterator[str]:
        """Keep every place of a plan, in steps; each yields why that is impossible, if it is.

        `since` says what has changed since the plan was begun. A place on another node is as it was
        found, and not judged again, but for members that more depends on than their nodes.
        """
        cluster = self.books.cluster
        depending: dict[Hashable, bool] = {}
        """What was found of members that are alike, until others may change the state."""
        for number, one in enumerate(plan):
            if number and number % _TOGETHER == 0:
                # The figures of what was changed are computed here, not by the next call.
                cluster.view()
                yield ""
                depending.clear()
            if number % _TOGETHER == 0:
                since.look(cluster.view())
            granted: allocations.Allocations | str = one.granted
            if since.concerns(one.node) or (since.any() and self._depends(one, depending)):
                granted = self.judged(one, now)
            if isinstance(granted, str):
                yield f"{one.pod.key} no longer fits {one.node}: {granted}"
                return
            with since.own():
                self.books.nominate(
                    one.pod, one.node, evidence=planner.EVIDENCE, expires_at=until, granted=granted
                )
        cluster.view()

    def _depends(self, one: planner.Placement, known: dict[Hashable, bool]) -> bool:
        """Whether other nodes matter for a member: to its quota, or to what is kept for it."""
        pod = one.pod
        key = pod.namespace, pod.requirements, tuple(pod.labels.items()), pod.owners
        if key not in known:
            view = self.books.cluster.view(one.node)
            asked = self.judging().cycle(views.PodInfo.of(pod), view)
            matters = any(name in view.cluster for name in asked.prepared)
            known[key] = matters or asked.refused is not None
        return known[key]

    def judged(self, one: planner.Placement, now: float) -> allocations.Allocations | str:
        """Judge a place on the state as it is now; return what is granted, or why it is refused."""
        view = self.books.cluster.view(one.node)
        row = view.rows.get(one.node)
        if row is None:
            return "the node is gone"
        kept = [
            claim
            for claim in view.nominated.get(row, ())
            if claim.evidence == planner.EVIDENCE or claim.pod.uid == one.pod.uid
        ]
        if kept:
            others = [planner.firm(claim) for claim in kept if claim.pod.uid != one.pod.uid]
            view, row = view.with_claims(row, others, {claim.id for claim in kept}), 0
        pod = one.pod
        required = in_tree.Requirement(
            self.books.cluster, pod.requirements, planner.node_requirements_of(pod)
        )
        if why := required.refusal(view, row, view.node(row).claims):
            return why
        plugins = self.judging()
        asked = plugins.cycle(views.PodInfo.of(one.pod), view)
        refusal = plugins.filter(asked, view, pipeline.alone(row), now).refusal(0)
        if refusal is not None:
            return refusal.status.text
        granted = plugins.reserve(asked, view, row)
        if isinstance(granted, pipeline.Refusal):
            return granted.status.text
        held = {name: grant.allocation for name, grant in granted.items() if grant.allocation}
        return held or allocations.NONE

    def release(self, uids: Iterable[str]) -> None:
        """Keep nothing for these members any longer; one that is assumed stays where it is."""
        for uid in uids:
            claim = self.books.nominations.get(uid)
            if claim is not None and claim.evidence == planner.EVIDENCE:
                self.books.withdraw(uid)

    def move(self, places: Mapping[str, planner.Placement]) -> None:
        """Keep other places for members from now on, by uid, instead of those that they had."""
        until = {uid: self.books.nominations[uid].expires_at for uid in places}
        if len(places) > 1:
            # Each may get what another one has, so all of it is given back first.
            self.release(places)
        for uid, one in places.items():
            self.books.nominate(
                one.pod,
                one.node,
                evidence=planner.EVIDENCE,
                expires_at=until[uid],
                granted=one.granted,
            )

    def best(
        self, pod: records.PodRecord, gang: str, nodes: Iterable[str], now: float
    ) -> planner.Placement | None:
        """Return the best of some nodes for a member that may be placed anywhere, None of none."""
        view, plugins = self.books.cluster.view(), self.judging()
        found = [row for one in nodes if (row := view.rows.get(one)) is not None]
        rows = np.array(found, dtype=np.intp)
        asked = plugins.cycle(views.PodInfo.of(pod), view)
        rows = rows[plugins.filter(asked, view, rows, now).codes == 0]
        required = in_tree.Requirement(
            self.books.cluster, pod.requirements, planner.node_requirements_of(pod)
        )
        points = plugins.score(asked, view, rows, now) + 0.999 * required.share(view, rows)
        for row in rows[np.argsort(-points, kind="stable")][:_TRIES].tolist():
            one = planner.Placement(pod, gang, view.names[row], {})
            granted = self.judged(one, now)
            if not isinstance(granted, str):
                return dataclasses.replace(one, granted=granted)
        return None

    def crowded(self, pod: records.PodRecord, own: Collection[str], now: float) -> int:
        """Return on how many nodes there is no room for a pod beside what is kept for others.

        kube-scheduler does not know of that. `own` are nodes that are not asked about.
        """
        view, plugins = self.books.cluster.view(), self.judging()
        kept = [row for row in view.nominated if view.names[row] not in own]
        if not kept:
            return 0
        asked = plugins.cycle(views.PodInfo.of(pod), view)
        outcome = plugins.filter(asked, view, np.array(kept, dtype=np.intp), now)
        return int(np.count_nonzero(outcome.codes))

    def kept(self, uid: str) -> str:
        """Return the node that is kept for a member, empty where none is."""
        claim = self.books.nominations.get(uid)
        return claim.node if claim is not None and claim.evidence == planner.EVIDENCE else ""

    # -- the plan in force, as plug-ins see it -----------------------------------------------

    def tell(self, group: str, plan: gang_facts.GangPlan | None) -> None:
        """Tell plug-ins which plan of a group is in force, or why it was given up."""
        told = self.books.cluster.told(deltas.GANG_PLAN, group)
        before = told.after if told is not None else None
        if before != plan:
            self.books.cluster.apply(deltas.ObjectDelta(deltas.GANG_PLAN, group, before, plan))

    def tell_moved(self, group: str, places: Mapping[str, str]) -> None:
        """Tell plug-ins where some members of a plan in force are placed from now on, by uid."""
        plan = self.told(group)
        if plan is not None:
            nodes = plan.nodes
            for uid, node in places.items():
                nodes = nodes.replaced(uid, node)
            self.tell(group, msgspec.structs.replace(plan, nodes=nodes))

    def told(self, group: str) -> gang_facts.GangPlan | None:
        """Return what plug-ins were told of a group."""
        told = self.books.cluster.told(deltas.GANG_PLAN, group)
        plan = told.after if told is not None else None
        assert plan is None or isinstance(plan, gang_facts.GangPlan)
        return plan
