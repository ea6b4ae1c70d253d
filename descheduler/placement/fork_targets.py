"""Where the scheduler would place pods that leave their nodes, on a fork of its state. Pure.

The plug-ins of the extender judge and score nodes as in a filter call, beside what kube-scheduler's
own filters are known to require; Coscheduling is left out, since it refuses members of gangs that
have no plan. Each move changes the fork, so that the next pod sees what the ones before it took.
Terms of affinity between pods are read from the picture of the round: the fork does not know them.
"""

import collections
from collections.abc import Collection, Iterator, Mapping
from typing import Final

import msgspec
import numpy as np

from api.plugin_args import models
from descheduler.framework import protocols
from descheduler.framework.nodes import pod_affinity
from descheduler.model import picture, podinfo
from descheduler.placement import node_fragments
from domain.quota import placement
from extender.framework import pipeline, verdicts, views
from extender.gangs.planning import in_tree
from extender.state import allocations, claims, cluster_state, deltas, records

LEFT_OUT: Final = models.COSCHEDULING
"""The plug-in that judges no move."""
UNKNOWN: Final = "the pod is not on this node in the state of the scheduler"
NO_CANDIDATES: Final = "no other node is a candidate"
UNSUITABLE: Final = "node(s) didn't match node selector, node affinity or tolerations"
_TRIES: Final = 64
"""Nodes that may turn out not to have the CPUs or devices that a pod needs."""
_MOST_KINDS: Final = 512
"""Kinds of node requirements whose nodes are remembered."""
_MOST_REASONS: Final = 4
_ROOM: Final = "Insufficient {}"

Grants = Mapping[str, verdicts.Grant]


class ForkTargets:
    """Finds a node for one pod after another; implements `protocols.Targets`."""

    def __init__(
        self,
        plugins: pipeline.Pipeline,
        fork: cluster_state.ClusterState,
        seen: picture.Picture,
    ) -> None:
        self._plugins = pipeline.without(plugins, LEFT_OUT)
        self._fork, self._now = fork, seen.now
        self._affinity = pod_affinity.PodAffinity(seen, fork.view().names)
        self._granted: dict[tuple[str, str], Grants] = {}
        """By uid and node: what plug-ins would allocate, of the answers given so far."""
        self._eligible: dict[placement.OfNodes, verdicts.Flags] = {}
        self._ranks: verdicts.Rows | None = None
        self._done: list[deltas.Delta] = []
        """What moves have changed."""
        self._placed: list[tuple[int, podinfo.Pod, str]] = []
        """Pods that moves have placed, each with the number of deltas before and its old node."""

    # -- finding ---------------------------------------------------------------------------

    def target(
        self, pod: podinfo.Pod, among: Collection[str] | None, without: Collection[str]
    ) -> protocols.Target | protocols.NoTarget:
        """Return the best node for a pod once it has left its own, which is never the answer."""
        claim = self._fork.claim(pod.uid)
        if claim is None or claim.node != pod.node or claim.kind not in views.FIRM:
            return protocols.NoTarget(UNKNOWN)
        self._fork.apply(deltas.ClaimDelta(claim.id, claim, None))
        try:
            return self._target(_Leaving(pod, claim.pod), among, {*without, pod.node})
        finally:
            self._fork.apply(deltas.ClaimDelta(claim.id, None, claim))

    def _target(
        self, leaving: "_Leaving", among: Collection[str] | None, without: Collection[str]
    ) -> protocols.Target | protocols.NoTarget:
        view = self._fork.view()
        rows = self._candidates(view, among, without)
        if not rows.size:
            return protocols.NoTarget(NO_CANDIDATES)
        refused: collections.Counter[str] = collections.Counter()
        candidates = rows.size
        asked = self._plugins.cycle(leaving.info, view)
        rows = self._with_room(leaving, view, rows, refused)
        if rows.size:
            rows = self._passing(asked, view, rows, refused)
        required = in_tree.Requirement(self._fork, leaving.record.requirements, leaving.pod.wanted)
        tries = _TRIES
        for row, score in self._ranked(asked, view, rows, required):
            if why := required.refusal(view, row):
                refused[why] += 1
                continue
            granted = self._plugins.reserve(asked, view, row)
            if not isinstance(granted, pipeline.Refusal):
                node = view.names[row]
                self._granted[leaving.pod.uid, node] = granted
                held = node_fragments.held(self._fork, node, _allocated(granted))
                return protocols.Target(node, score, held)
            refused[granted.status.text] += 1
            tries -= 1
            if not tries:
                break
        return protocols.NoTarget(_sentence(candidates, refused))

    def _candidates(
        self, view: views.View, among: Collection[str] | None, without: Collection[str]
    ) -> verdicts.Rows:
        """Return the rows of the nodes that are looked at, in the order of the table."""
        if among is None:
            chosen = view.known.copy()
        else:
            chosen = np.zeros(view.known.size, dtype=np.bool_)
            chosen[[view.rows[name] for name in among if name in view.rows]] = True
            chosen &= view.known
        chosen[[view.rows[name] for name in without if name in view.rows]] = False
        return np.flatnonzero(chosen)

    def _with_room(
        self,
        leaving: "_Leaving",
        view: views.View,
        rows: verdicts.Rows,
        refused: collections.Counter[str],
    ) -> verdicts.Rows:
        """Return the rows that kube-scheduler's filters let pass, as far as columns tell."""
        eligible = self._suitable(view, leaving.pod.wanted).take(rows)
        refused[UNSUITABLE] += int(np.count_nonzero(~eligible))
        rows = rows[eligible]
        for name, value in leaving.record.requirements.requests:
            column = view.resources.get(name)
            if column is None or not value:
                continue
            left = view.allocatable[column].take(rows) - view.requested[column].take(rows)
            has_room = left >= value
            refused[_ROOM.format(name)] += int(np.count_nonzero(~has_room))
            rows = rows[has_room]
        for why, flags in self._affinity.refused(leaving.pod).items():
            forbidden = flags.take(rows)
            refused[why] += int(np.count_nonzero(forbidden))
            rows = rows[~forbidden]
        return rows

    def _suitable(self, view: views.View, wanted: placement.Requirements) -> verdicts.Flags:
        """Return by row whether labels and taints of the node let the pod run there."""
        found = self._eligible.get(wanted.of_nodes)
        if found is None:
            found = np.zeros(view.known.size, dtype=np.bool_)
            for row in np.flatnonzero(view.known).tolist():
                name = view.names[row]
                node = self._fork.node(name)
                found[row] = node is not None and placement.eligible(
                    wanted, name, node.labels, node.taints
                )
            if len(self._eligible) >= _MOST_KINDS:
                self._eligible.clear()
            self._eligible[wanted.of_nodes] = found
        return found

    def _passing(
        self,
        asked: pipeline.Cycle,
        view: views.View,
        rows: verdicts.Rows,
        refused: collections.Counter[str],
    ) -> verdicts.Rows:
        """Return the rows that every plug-in lets pass."""
        outcome = self._plugins.filter(asked, view, rows, self._now)
        counts = np.bincount(outcome.codes, minlength=len(outcome.refusals) + 1).tolist()
        for refusal, count in zip(outcome.refusals, counts[1:], strict=True):
            refused[refusal.status.text] += count
        passing: verdicts.Rows = rows[outcome.codes == 0]
        return passing

    def _ranked(
        self,
        asked: pipeline.Cycle,
        view: views.View,
        rows: verdicts.Rows,
        required: in_tree.Requirement,
    ) -> Iterator[tuple[int, int]]:
        """Yield rows and scores, the best first; of equals that with the larger free share."""
        if not rows.size:
            return
        scores = self._plugins.score(asked, view, rows, self._now)
        keys = (self._by_name(view).take(rows), -required.share(view, rows), -scores)
        for place in np.lexsort(keys).tolist():
            yield int(rows[place]), int(scores[place])

    def _by_name(self, view: views.View) -> verdicts.Rows:
        """Return the place of every row among all names: the order of arrival has no say."""
        if self._ranks is None:
            self._ranks = np.empty(len(view.names), dtype=np.intp)
            self._ranks[np.argsort(np.array(view.names))] = np.arange(len(view.names))
        return self._ranks

    # -- moving ----------------------------------------------------------------------------

    def move(self, pod: podinfo.Pod, node: str) -> None:
        """Let the pod be on that node from here on, with what plug-ins allocate to it there.

        A pod that the state does not know changes nothing.
        """
        claim = self._fork.claim(pod.uid)
        if claim is None:
            return
        self._place(pod, node)
        grants = self._granted.pop((pod.uid, node), None)
        self._do(deltas.ClaimDelta(claim.id, claim, None))
        if grants is None:
            grants = self._reserved(claim.pod, node)
        granted = _allocated(grants)
        record = msgspec.structs.replace(
            _waiting(claim.pod), node=node, assigned_at=self._now, allocations=granted
        )
        consumes = allocations.consumed(granted) if granted else ""
        after = claims.Claim(
            claim.id, claims.ClaimKind.ASSUMED, node, record, granted, consumes=consumes
        )
        self._do(deltas.ClaimDelta(claim.id, None, after))
        for grant in grants.values():
            for change in grant.changes:
                self._do(change)

    def _reserved(self, record: records.PodRecord, node: str) -> Grants:
        view = self._fork.view()
        row = view.rows.get(node)
        if row is None:
            return {}
        asked = self._plugins.cycle(views.PodInfo.of(_waiting(record)), view)
        found = self._plugins.reserve(asked, view, row)
        return {} if isinstance(found, pipeline.Refusal) else found

    def remove(self, pod: podinfo.Pod) -> None:
        """Let the pod be gone from here on."""
        claim = self._fork.claim(pod.uid)
        if claim is not None:
            self._place(pod, "")
            self._do(deltas.ClaimDelta(claim.id, claim, None))

    def _place(self, pod: podinfo.Pod, node: str) -> None:
        self._placed.append((len(self._done), pod, self._affinity.place(pod, node)))

    def mark(self) -> int:
        """Return a mark to which moves can be taken back."""
        return len(self._done)

    def undo(self, mark: int) -> None:
        """Take all moves back that were made since a mark."""
        self._fork.undo(self._done[mark:])
        del self._done[mark:]
        while self._placed and self._placed[-1][0] >= mark:
            _, pod, before = self._placed.pop()
            self._affinity.place(pod, before)

    def _do(self, delta: deltas.Delta) -> None:
        self._fork.apply(delta)
        self._done.append(delta)


class _Leaving:
    """A pod on its way, as the descheduler and as the scheduler see it."""

    __slots__ = ("info", "pod", "record")

    def __init__(self, pod: podinfo.Pod, placed: records.PodRecord) -> None:
        self.pod, self.record = pod, _waiting(placed)
        self.info = views.PodInfo.of(self.record)


def _allocated(grants: Grants) -> allocations.Allocations:
    """Return what plug-ins allocate, without those that allocate nothing."""
    held = {name: one.allocation for name, one in grants.items() if one.allocation is not None}
    return held or allocations.NONE


def _waiting(placed: records.PodRecord) -> records.PodRecord:
    """Return a pod as its successor will come: without a node, and with nothing allocated."""
    return msgspec.structs.replace(
        placed,
        node="",
        assigned_at=-1.0,
        initialized_at=-1.0,
        leaves_at=-1.0,
        allocations=records.NONE,
        unreadable=(),
        gang=None,
        offers=None,
    )


def _sentence(nodes: int, refused: collections.Counter[str]) -> str:
    """Return why no node takes a pod, as kube-scheduler words it."""
    ranked = sorted(((count, why) for why, count in refused.items() if count), reverse=True)
    told = ", ".join(f"{count} {why}" for count, why in ranked[:_MOST_REASONS])
    return f"0/{nodes} nodes are available: {told}"
