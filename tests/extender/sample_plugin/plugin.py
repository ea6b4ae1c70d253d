"""Slots: give pods numbered slots of a node, aligned with NUMA nodes, up to a cap per team."""

from collections.abc import Iterable, Mapping

import msgspec
import numpy as np

from extender.framework import claim_index, verdicts, views
from extender.framework.nodes import hints
from tests.extender.sample_plugin import allocation, tracker
from tests.extender.sample_plugin.allocation import NAME, Slots, Wanted

CAPPED = verdicts.Status("team holds as many slots as it may")
TOO_FEW = verdicts.Status("node has too few free slots")
FOREIGN = verdicts.Status("node keeps its slots for another team")
SCATTERED = verdicts.Status("free slots are not where the NUMA topology policy wants them")
INCOMPLETE = verdicts.Status("others of the barrier did not get a place in time")
TOGETHER = verdicts.Status("it belongs to a barrier")
PATIENCE_SECONDS = 10.0
STATUSES = (TOO_FEW,)


class SlotsPlugin(allocation.Codec, tracker.Tracker):
    """Every extension point, on top of the codec and the state tracker."""

    pod_labels = (allocation.TEAM,)
    pod_annotations = (allocation.BARRIER,)
    expires = False

    def __init__(self, cap: int) -> None:
        """`cap` is how many slots one team may hold in the whole cluster."""
        self._cap = cap

    # -- PreFilter, Filter -----------------------------------------------------------------

    def pre_filter(self, pod: views.PodInfo, view: views.View) -> Wanted | verdicts.Status | None:
        """Read the pod; refuse it everywhere while its team is at its cap."""
        wanted = allocation.wanted(pod.requirements)
        if wanted is None:
            return None
        holders = view.cluster[NAME]
        assert isinstance(holders, tracker.Holders)
        if wanted.team and holders.by_team.get(wanted.team, 0) + wanted.count > self._cap:
            return CAPPED
        return wanted

    def filter(
        self, prepared: Wanted, view: views.View, rows: verdicts.Rows, now: float
    ) -> verdicts.Verdict:
        """Refuse nodes with too few free slots."""
        del now
        free = view.figures[NAME][tracker.FREE, rows]
        return verdicts.Verdict((free < prepared.count).astype(np.int16), STATUSES)

    def passes_all(self, prepared: Wanted, view: views.View, now: float) -> bool:
        """Whether even the node with the fewest free slots has enough."""
        del now
        lowest = view.lowest(NAME)
        return lowest is not None and lowest[tracker.FREE] >= prepared.count

    def filter_node(self, prepared: Wanted, view: views.View, row: int) -> verdicts.Status | None:
        """Refuse nodes that are kept for another team."""
        owner = view.node(row).node.labels.get(tracker.DEDICATED, "")
        return FOREIGN if owner not in ("", prepared.team) else None

    def shortage(
        self, prepared: Wanted, view: views.View, rows: verdicts.Rows, now: float
    ) -> verdicts.Shares:
        """Say what share of the slots is lacking."""
        del now
        free = view.figures[NAME][tracker.FREE, rows]
        lacking: verdicts.Shares = np.maximum(prepared.count - free, 0) / prepared.count
        return lacking

    def diagnose(
        self, prepared: Wanted, view: views.View, row: int, now: float
    ) -> verdicts.Diagnosis:
        """Show how many slots are free, and for how many the pods of the team wait."""
        del now
        holders = view.cluster[NAME]
        assert isinstance(holders, tracker.Holders)
        free = int(view.figures[NAME][tracker.FREE, row])
        lacking = max(prepared.count - free, 0)
        helps = (f"{lacking} slots given back on {view.names[row]}",) if lacking else ()
        waited = holders.wanted.get(prepared.team, 0)
        text = f"asks {prepared.count} slots, {free} are free, the team waits for {waited}"
        return verdicts.Diagnosis(text, helps)

    # -- Score -------------------------------------------------------------------------------

    def score(
        self, prepared: Wanted, view: views.View, rows: verdicts.Rows, now: float
    ) -> verdicts.Score:
        """Fill nodes up, those that are dedicated to the team before all others."""
        del now
        figures = view.figures[NAME]
        dedicated = figures[tracker.TEAM, rows] == tracker.mark(prepared.team)
        tiers = (dedicated & bool(prepared.team)).astype(np.int64)
        return verdicts.Score(
            figures[tracker.FREE, rows], more_is_better=False, scale=True, tiers=tiers
        )

    # -- NUMA hints --------------------------------------------------------------------------

    def topology(self, prepared: Wanted | None, view: views.View, row: int) -> hints.Topology:
        """Return the policy that the node's labels name."""
        del prepared
        found = _slots(view, row)
        return found.topology if found else hints.Topology()

    def needs_trial(
        self, prepared: Wanted, view: views.View, rows: verdicts.Rows
    ) -> verdicts.Flags:
        """Try an allocation where slots lie on several NUMA nodes."""
        del prepared
        found = [_slots(view, row) for row in rows.tolist()]
        return np.array(
            [one is not None and one.topology.numa_nodes > 1 for one in found], np.bool_
        )

    def alike(self, view: views.View, rows: verdicts.Rows) -> verdicts.Column:
        """Return a digest of the slots: an allocation depends on nothing else of a node."""
        return np.array([hash(_slots(view, row)) for row in rows.tolist()], np.int64)

    def hints(
        self, prepared: Wanted, view: views.View, row: int
    ) -> Mapping[str, tuple[verdicts.NumaHint, ...]]:
        """Return the masks with enough free slots; the narrowest possible are preferred."""
        found = _slots(view, row)
        if found is None:
            return {allocation.RESOURCE: ()}
        width = found.topology.numa_nodes
        ever = msgspec.structs.replace(found, taken=frozenset())
        masks = range(1, 1 << width)
        enough = [mask for mask in masks if len(ever.free_in(mask)) >= prepared.count]
        narrowest = min((mask.bit_count() for mask in enough), default=0)
        return {
            allocation.RESOURCE: tuple(
                verdicts.NumaHint(mask, mask.bit_count() == narrowest)
                for mask in enough
                if len(found.free_in(mask)) >= prepared.count
            )
        }

    def allocate(
        self, prepared: Wanted, view: views.View, row: int, mask: int
    ) -> Slots | verdicts.Status:
        """Take the lowest free slots of the NUMA nodes chosen."""
        found = _slots(view, row)
        free = found.free_in(mask) if found else []
        return Slots(tuple(free[: prepared.count])) if len(free) >= prepared.count else SCATTERED

    # -- Reserve, Permit -----------------------------------------------------------------------

    def reserve(
        self,
        pod: views.PodInfo,
        prepared: Wanted,
        view: views.View,
        row: int,
        grants: Mapping[str, msgspec.Struct],
    ) -> verdicts.Grant:
        """Tell the slots that were allocated, and end what a preemption kept for the pod."""
        slots = grants[NAME]
        assert isinstance(slots, Slots)
        kept = [
            views.ClaimDelta(claim.id, claim, None)
            for claim in view.node(row).claims
            if claim.kind is views.ClaimKind.NOMINATED and claim.usable_by == pod.uid
        ]
        told = {"slots": ",".join(map(str, slots.numbers)), "team": prepared.team}
        return verdicts.Grant(slots, tuple(kept), told)

    def permit(
        self, pod: views.PodInfo, prepared: Wanted, view: views.View, now: float
    ) -> verdicts.Permission:
        """Let the pods of a barrier be bound once all of them have a place."""
        del pod
        if not prepared.barrier:
            return verdicts.Allow()
        holders = view.cluster[NAME]
        assert isinstance(holders, tracker.Holders)
        if len(holders.arrived.get(prepared.barrier, ())) >= prepared.members:
            return verdicts.Allow(wakes=(prepared.barrier,))
        return verdicts.Wait(now + PATIENCE_SECONDS, prepared.barrier, INCOMPLETE)

    # -- preemption, requeue -------------------------------------------------------------------

    def victims(
        self, prepared: Wanted, view: views.View, row: int
    ) -> verdicts.Victims | verdicts.Status:
        """Name the pods that hold slots; where even all of them are too few, none would help."""
        holders = [claim for claim in view.node(row).claims if tracker.slots_of(claim)]
        free = int(view.figures[NAME][tracker.FREE, row])
        if free + sum(len(tracker.slots_of(claim)) for claim in holders) < prepared.count:
            return TOO_FEW
        return verdicts.Victims(tuple(claim.id for claim in holders))

    def group(self, claim: views.Claim) -> str:
        """Let the slots that a team holds be found, wherever they are."""
        asked = allocation.wanted(claim.pod.requirements)
        return asked.team if asked and tracker.slots_of(claim) else ""

    def potential(
        self, pod: views.PodInfo, view: views.View, groups: claim_index.Groups
    ) -> Iterable[views.Claim]:
        """Let a team that is at its cap give slots of any node back."""
        del view
        asked = allocation.wanted(pod.requirements)
        return groups.get(asked.team, {}).values() if asked and asked.team else ()

    def protects(
        self, pod: views.PodInfo, view: views.View, victim: views.Claim
    ) -> verdicts.Status | None:
        """Keep pods of a barrier: the others of it would have been bound in vain."""
        del pod, view
        asked = allocation.wanted(victim.pod.requirements)
        return TOGETHER if asked and asked.barrier else None

    def could_help(self, prepared: Wanted | None, delta: views.Delta) -> bool:
        """Slots that are given back, or a node that changes."""
        del prepared
        match delta:
            case views.ClaimDelta():
                return delta.before is not None and bool(tracker.slots_of(delta.before))
            case views.NodeDelta():
                return True
            case _:
                return False

    def line(self, pod: views.PodInfo, view: views.View) -> str:
        """Pods of one team compete for what it may still hold."""
        del view
        wanted = allocation.wanted(pod.requirements)
        return wanted.team if wanted else ""

    def frees(self, delta: views.Delta) -> bool:
        """Slots that are given back."""
        return isinstance(delta, views.ClaimDelta) and self.could_help(None, delta)


def _slots(view: views.View, row: int) -> tracker.NodeSlots | None:
    found = view.sparse(NAME, row)
    return found if isinstance(found, tracker.NodeSlots) else None
