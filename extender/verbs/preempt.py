"""The preempt verb: which victims that kube-scheduler proposes may leave, and who else has to.

kube-scheduler tries only its own filters. Per node the proposed victims are taken out of a what-if,
every filter of ours runs, and victims of lower priority on that node are added where plug-ins
need them. A node is dropped where that does not help, or where a pod must not be a victim.

kube-scheduler evicts pods of one node. Where that would leave members of a gang on other nodes, too
few of them to go on, the node is dropped as long as there is another one: the gang would lose its
work, and its pods would hold what they have. Where there is no other node the gang is no shield.
"""

import dataclasses
from collections.abc import Mapping
from typing import Final

import msgspec
import numpy as np

from api.kubernetes import extender as wire
from extender.framework import verdicts, views
from extender.framework.eviction import trial
from extender.preemption import nominated_place, proposed_victims
from extender.requeue import unschedulable_pods
from extender.state import claims
from extender.verbs import parts, response

_PREEMPTION = msgspec.json.Decoder(wire.PreemptionArgs)
MOST_NODES: Final = 256
"""Nodes of one call that are looked at; what comes after them is dropped."""
_LATELY_SECONDS: Final = 10.0

_Proposed = dict[str, wire.MetaVictims]


def answer(on: parts.Parts, body: bytes, now: float) -> bytes:
    """Answer a preempt call."""
    try:
        asked = _PREEMPTION.decode(body)
        proposed = _proposed(asked)
        requirements = on.projector.requirements(asked.pod)
    except parts.BAD_INPUT as error:
        return response.failure(f"preempt: the request cannot be read: {error}")
    pod = views.PodInfo.read(asked.pod, requirements)
    if on.switches.enforces:
        proposed = _confirmed(on, pod, proposed, now)
    leaving = {
        node: frozenset(one.uid for one in found.pods or ()) for node, found in proposed.items()
    }
    if leaving:
        on.waits.preempts(pod.key, unschedulable_pods.Preemptor(pod.uid, leaving, now))
    return parts.ENCODER.encode(wire.PreemptionResult(proposed))


def _proposed(asked: wire.PreemptionArgs) -> _Proposed:
    proposed = dict(asked.node_name_to_meta_victims or {})
    for node, offered in (asked.node_name_to_victims or {}).items():
        pods = tuple(wire.MetaPod(pod.metadata.uid) for pod in offered.pods or ())
        proposed[node] = wire.MetaVictims(pods, offered.violations)
    return {node: found for node, found in proposed.items() if found.pods}


def _confirmed(on: parts.Parts, pod: views.PodInfo, proposed: _Proposed, now: float) -> _Proposed:
    """Return the nodes whose victims may leave, with all that have to; perhaps none."""
    view = on.cluster.view()
    if _has_place(on, pod, view):
        # Others are leaving for it already, or have just left.
        return {}
    late = _was_late(on, pod, view, proposed, now) or _elsewhere(on, pod, view, proposed, now)
    if late and on.preemptions.put_off(pod.uid):
        # A sample must not cost innocents their place: the next one begins at other nodes.
        on.preemptions.requeue(pod.key)
        return {}
    first = dict(list(proposed.items())[:MOST_NODES])
    trials = _Trials(on, pod, view, now)
    broken = {node for node, offered in first.items() if trials.breaks(node, offered)}
    whole = trials.completed({node: v for node, v in first.items() if node not in broken})
    found = whole or trials.completed({node: first[node] for node in broken}, whole=False)
    behind = not found and any(trials.is_behind(node, offered) for node, offered in first.items())
    if behind and on.preemptions.put_off(pod.uid):
        # kube-scheduler has seen these pods start, or others go, before us, and waits for no event.
        on.preemptions.requeue(pod.key)
    return found


def _has_place(on: parts.Parts, pod: views.PodInfo, view: views.View) -> bool:
    """Whether a place is kept for a pod at which kube-scheduler has not looked since it is free.

    As long as it counts those that have left it, it asks about other nodes alone.
    """
    waiter, found = on.waits.get(pod.key), on.preemptions.get(pod.uid)
    if found is None or on.preemptions.stands(pod.uid, waiter.tried_at if waiter else 0.0):
        return found is not None
    row = view.rows.get(found.record.node)
    return row is not None and waiter is not None and not waiter.asks(row)


@dataclasses.dataclass(frozen=True, slots=True)
class _Trials:
    """What-ifs for one pod."""

    on: parts.Parts
    pod: views.PodInfo
    view: views.View
    now: float

    def at(self, node: str, *, whole: bool = True) -> trial.Trial | None:
        """Return one of a node, None where it is not known."""
        row = self.view.rows.get(node)
        if row is None:
            return None
        return trial.Trial(self.on.plugins, self.pod, self.view, row, self.now, whole=whole)

    def breaks(self, node: str, offered: wire.MetaVictims) -> bool:
        """Whether members of a gang would be left on other nodes."""
        what_if = self.at(node) if self.on.plugins.companions else None
        return what_if is not None and proposed_victims.breaks(what_if, _uids(offered))

    def is_behind(self, node: str, offered: wire.MetaVictims) -> bool:
        """Whether the watch has yet to show a proposed victim on its node, or shows it gone."""
        row = self.view.rows.get(node)
        there = () if row is None else self.view.node(row).claims
        shown = {claim.id for claim in there if claim.kind is views.ClaimKind.BOUND}
        return not shown.issuperset(_uids(offered))

    def completed(self, proposed: _Proposed, *, whole: bool = True) -> _Proposed:
        """Return the nodes whose victims may leave, with all that have to."""
        found, budgets = {}, self.on.preemptions.budgets()
        for node, offered in proposed.items():
            what_if, uids = self.at(node, whole=whole), _uids(offered)
            chosen = None if what_if is None else proposed_victims.completed(what_if, uids, budgets)
            if chosen is not None:
                extra = budgets.violating(chosen[len(uids) :])
                pods = tuple(wire.MetaPod(claim.id) for claim in chosen)
                found[node] = wire.MetaVictims(pods, offered.violations + len(extra))
        return found


def _uids(offered: wire.MetaVictims) -> list[str]:
    return [one.uid for one in offered.pods or ()]


def _was_late(
    on: parts.Parts,
    pod: views.PodInfo,
    view: views.View,
    proposed: Mapping[str, wire.MetaVictims],
    now: float,
) -> bool:
    """Whether a pod was refused at its nominated node for the sake of pods that are going.

    kube-scheduler, which has seen them leave before us, would have pods of other nodes leave too.
    """
    claim, waiter = on.cluster.claim(claims.nominated(pod.uid)), _just_tried(on, pod, now)
    if claim is None or claim.node in proposed or waiter is None:
        return False
    row = view.rows.get(claim.node)
    if row is None or not waiter.asks(row):
        return False
    return nominated_place.takes(on.plugins, pod, view, row, now)


def _just_tried(
    on: parts.Parts, pod: views.PodInfo, now: float
) -> unschedulable_pods.UnschedulablePod | None:
    """Return what is known of a pod that kube-scheduler has just asked about."""
    waiter = on.waits.get(pod.key)
    if waiter is None or waiter.request.uid != pod.uid:
        return None
    return waiter if now - waiter.tried_at <= _LATELY_SECONDS else None


def _elsewhere(
    on: parts.Parts,
    pod: views.PodInfo,
    view: views.View,
    proposed: Mapping[str, wire.MetaVictims],
    now: float,
) -> bool:
    """Whether a node may take the pod that kube-scheduler has not looked at in this attempt."""
    waiter = _just_tried(on, pod, now)
    if waiter is None:
        return False
    asked = waiter.rows(view)
    if asked.size < unschedulable_pods.SMALLEST_SAMPLE:
        return False
    others = view.known.copy()
    others[asked] = False
    others[[view.rows[node] for node in proposed if node in view.rows]] = False
    rows = np.flatnonzero(others & _fits(pod, view))
    if not rows.size:
        return False
    cycle = on.plugins.cycle(pod, view)
    return not on.plugins.filter(cycle, view, rows, now).codes.all()


def _fits(pod: views.PodInfo, view: views.View) -> verdicts.Flags:
    """Return which nodes have room as the scheduler counts it."""
    room = view.allocatable - view.requested
    fits = np.ones(view.known.size, dtype=np.bool_)
    for name, value in pod.requirements.requests:
        if name in view.resources:
            fits &= room[view.resources[name]] >= value
    return fits
