"""Keep what Reservations hold from pods that may not use them, and give it to those that may.

Which Reservation a pod uses is written as `scheduling.koordinator.sh/reservation-allocated`
together with its node.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from api import names
from api.koordinator import scheduling
from api.plugin_args import job
from domain.reservations import matching, model, operating, owners
from extender.framework import verdicts, views
from extender.plugins.reservation import (
    allocation,
    concerned,
    diagnosis,
    judged_nodes,
    judgement,
    tracker,
)
from extender.plugins.reservation.allocation import NAME
from extender.plugins.reservation.judgement import Asked

_NO_WISHES: Final = matching.Wishes()


class Ignored:
    """The extended resources that Reservations do not count."""

    def __init__(self, resources: Sequence[str] = (), groups: Sequence[str] = ()) -> None:
        self._resources, self._groups = frozenset(resources), frozenset(groups)

    def rest(self, requests: views.Pairs) -> views.Pairs:
        """Return what is left of the requests of a pod."""
        if not self._resources and not self._groups:
            return requests
        return tuple(one for one in requests if not self._is(one[0]))

    def _is(self, name: str) -> bool:
        return name in self._resources or name.partition("/")[0] in self._groups


def read_arguments(written: job.ReservationArgs) -> Ignored:
    """Return what complete arguments of a scheduler configuration say."""
    return Ignored(written.ignored_resources, written.ignored_resource_groups)


class Reservation(allocation.Codec):
    """Filter, score and reserve by the Reservations of each node."""

    name = NAME
    columns = tracker.COLUMNS
    pod_labels = allocation.LABELS
    pod_annotations = allocation.ANNOTATIONS
    expires = False

    def __init__(self, ignored: Ignored | None = None, *, owners_leave: bool = False) -> None:
        """Take the resources that do not count, and whether owners preempt lesser ones."""
        self._ignored, self._owners_leave = ignored or Ignored(), owners_leave
        self._judged = judged_nodes.JudgedNodes()
        self._concerned = concerned.Concerned()
        self._owned = concerned.Owned()

    # -- state -------------------------------------------------------------------------------

    def node(self, info: views.NodeInfo) -> views.Figures:
        """Return what is left of a node to other pods, and its Reservations."""
        return tracker.node(info)

    def start(self) -> tracker.Reservations:
        """Return what is known of an empty cluster."""
        return tracker.Reservations()

    def cluster(self, old: tracker.Reservations, delta: views.Delta) -> tracker.Reservations:
        """Return which pods may use which Reservations after a change."""
        return tracker.advanced(old, delta)

    # -- PreFilter, Filter -------------------------------------------------------------------

    def pre_filter(self, pod: views.PodInfo, view: views.View) -> Asked | verdicts.Status | None:
        """Read what the pod says about Reservations, and which it is an owner of."""
        known = tracker.cluster(view)
        if names.LABEL_STAND_IN in pod.labels:
            # It has the labels of the pods to come, and takes room for them beside what is kept.
            return self._stand_in(pod) if known.count else None
        wishes = allocation.wishes(pod.requirements)
        if isinstance(wishes, verdicts.Status):
            return wishes
        if not known.count and wishes.affinity is None:
            return None
        this = owners.Pod(pod.namespace, pod.name, pod.uid, pod.labels, pod.owners)
        # What acts as a Reservation takes a place of its own, even as an owner of others.
        unowned = wishes.ignores or operating.is_one(pod.labels)
        found = () if unowned else self._owned.of(known.index, this)
        return self._asked(pod, wishes, found, known.orders if found else ())

    def _stand_in(self, pod: views.PodInfo) -> Asked:
        policy = dict(pod.requirements.inputs).get(names.ANNOTATION_STAND_IN_POLICY)
        asked = self._asked(pod)
        if policy is None:
            return asked
        return msgspec.structs.replace(asked, names_policy=policy != scheduling.NO_POLICY)

    def _asked(
        self,
        pod: views.PodInfo,
        wishes: matching.Wishes = _NO_WISHES,
        found: tuple[str, ...] = (),
        orders: tuple[int, ...] = (),
    ) -> Asked:
        requests = self._ignored.rest(pod.requirements.requests)
        return Asked(requests, pod.requirements.host_ports, wishes, found, orders)

    def passes_all(self, prepared: Asked, view: views.View, now: float) -> bool:
        """Whether no node has too little left even for a pod that uses no Reservation."""
        del now
        if prepared.wishes.ignores or prepared.chosen:
            return True
        lowest = view.lowest(NAME)
        if lowest is None or prepared.wishes.affinity is not None:
            return False
        if prepared.names_policy is not None and lowest[tracker.HELD] < 0:
            return False
        if _is_odd(prepared) and lowest[tracker.OTHERS] < 0:
            return False
        return all(lowest[column] >= value for _, column, value in _columns(prepared))

    def filter(
        self, prepared: Asked, view: views.View, rows: verdicts.Rows, now: float
    ) -> verdicts.Verdict | None:
        """Refuse nodes on which the pod would take what is kept for others."""
        del now
        if prepared.wishes.ignores or prepared.chosen:
            return None
        figures = view.gathered(NAME, rows)
        codes = np.zeros(rows.size, dtype=np.int16)
        if prepared.wishes.affinity is not None:
            codes[:] = judgement.CODES[judgement.NO_MATCH]
        for name, column, value in _columns(prepared):
            short = (figures[column] < value) & (codes == 0)
            codes[short] = judgement.CODES[judgement.of_node(name)]
        looked_at = self._concerned.among(prepared, view, rows)
        if _is_odd(prepared):
            looked_at = looked_at | (figures[tracker.OTHERS] < 0)
        if prepared.names_policy is not None:
            looked_at = looked_at | (figures[tracker.HELD] < 0)
        places = looked_at.nonzero()[0]
        if places.size:
            codes[places] = self._judged.numbers(prepared, view, rows[places]) & judged_nodes.CODE
        return verdicts.Verdict(codes, judgement.STATUSES)

    # -- Score, nomination, Reserve ----------------------------------------------------------

    def score(
        self, prepared: Asked, view: views.View, rows: verdicts.Rows, now: float
    ) -> verdicts.Score | None:
        """Put nodes with a Reservation for the pod before all others, by order and fullness."""
        del now
        if not prepared.owners:
            return None
        tiers = self._numbers(prepared, view, rows) >> judged_nodes.TIER
        return verdicts.Score(np.zeros_like(tiers), tiers=tiers) if tiers.any() else None

    def allocating(
        self, prepared: Asked, view: views.View, rows: verdicts.Rows
    ) -> verdicts.Flags | None:
        """Return on which candidates a Reservation for the pod holds CPUs or devices."""
        if not tracker.cluster(view).allocating:
            return None
        return _flags(self._numbers(prepared, view, rows), judged_nodes.ALLOCATES)

    def serving(self, prepared: Asked, view: views.View, rows: verdicts.Rows) -> verdicts.Flags:
        """Return on which candidates the pod fits into a Reservation."""
        return _flags(self._numbers(prepared, view, rows), judged_nodes.ANY_TIER)

    def ranks(
        self, prepared: Asked, view: views.View, rows: verdicts.Rows
    ) -> verdicts.Column | None:
        """Return how early Reservations come by their order into which the pod fits."""
        if not prepared.orders:
            return None
        return judgement.ranks(self._numbers(prepared, view, rows) >> judged_nodes.TIER)

    def _numbers(self, prepared: Asked, view: views.View, rows: verdicts.Rows) -> verdicts.Column:
        numbers = np.zeros(rows.size, dtype=np.int64)
        places = self._concerned.among(prepared, view, rows).nonzero()[0]
        if places.size:
            numbers[places] = self._judged.numbers(prepared, view, rows[places])
        return numbers

    def nominees(self, prepared: Asked, view: views.View, row: int) -> Iterator[verdicts.Nominee]:
        """Yield the Reservations that take the pod, the best first, then the node alone."""
        here = tracker.of(view, row)
        into = self._judged.one(prepared, here).into
        for one in into:
            yield verdicts.Nominee(
                one.claim,
                msgspec.structs.replace(prepared, chosen=one.claim),
                one.held.reservation.policy is model.Policy.RESTRICTED,
            )
        if not into or prepared.wishes.affinity is not None:
            return
        alone = msgspec.structs.replace(prepared, alone=True)
        if judgement.judge(alone, here).status is None:
            yield verdicts.Nominee("", alone)

    def reserve(
        self,
        pod: views.PodInfo,
        prepared: Asked,
        view: views.View,
        row: int,
        grants: Mapping[str, msgspec.Struct],
    ) -> verdicts.Grant | verdicts.Status | None:
        """Grant the Reservation that was nominated; nothing where the pod uses the node alone."""
        del pod, row, grants
        lent = view.lent
        if lent is None or lent.claim.id != prepared.chosen:
            return judgement.NONE_FITS if prepared.wishes.affinity is not None else None
        found = views.offered(lent.claim)
        assert found is not None
        told = diagnosis.told(found.name, lent)
        return verdicts.Grant(allocation.Used(found.name, found.uid), figures=told)

    # -- preemption, requeue, people ---------------------------------------------------------

    def victims(
        self, prepared: Asked, view: views.View, row: int
    ) -> verdicts.Victims | verdicts.Status:
        """Name the pods that hold what the pod asks for, of the node or of a Reservation.

        What an owner frees stays with its Reservation, so it is of use to other owners alone, and
        only where Reservations may preempt.
        """
        return verdicts.Victims(
            tuple(
                claim.id
                for claim in view.node(row).claims
                if claim.kind is not views.ClaimKind.RESERVATION
                and (self._owners_leave or not claim.consumes)
                and judgement.holds(prepared, claim)
            )
        )

    def could_help(self, prepared: Asked | None, delta: views.Delta) -> bool:
        """Look again when a Reservation or a pod comes, changes or goes, and at nodes."""
        del prepared
        match delta:
            case views.ClaimDelta(_, before, after):
                return before is not None or (
                    after is not None and after.kind is views.ClaimKind.RESERVATION
                )
            case views.NodeDelta(_, was, becomes):
                return (
                    was is None
                    or becomes is None
                    or (was.allocatable, was.labels) != (becomes.allocatable, becomes.labels)
                )
            case _:
                return False

    def shortage(
        self, prepared: Asked, view: views.View, rows: verdicts.Rows, now: float
    ) -> verdicts.Shares:
        """Say what share of its requests the pod lacks."""
        del now
        found = [tracker.of(view, row) for row in rows.tolist()]
        return np.array(diagnosis.shortage(prepared, found), dtype=np.float64)

    def diagnose(
        self, prepared: Asked, view: views.View, row: int, now: float
    ) -> verdicts.Diagnosis:
        """Show what Reservations keep, and why those of the pod do not take it."""
        del now
        return diagnosis.diagnosis(prepared, tracker.of(view, row), view.names[row])

    def inspect(self, facts: views.NodeInfo) -> Mapping[str, Any]:
        """Return the Reservations of a node."""
        found = tracker.node(facts)[1]
        return diagnosis.inspected(found if isinstance(found, tracker.NodeReservations) else None)


def _columns(prepared: Asked) -> list[tuple[str, int, int]]:
    """Return name, column and amount of what the pod takes that has a column."""
    found = [
        (name, tracker.COLUMN_OF[name], value)
        for name, value in prepared.requests
        if name in tracker.COLUMN_OF
    ]
    return [*found, (model.PODS, tracker.COLUMN_OF[model.PODS], 1)]


def _flags(numbers: verdicts.Column, mask: int) -> verdicts.Flags:
    found: verdicts.Flags = (numbers & mask) != 0
    return found


def _is_odd(prepared: Asked) -> bool:
    """Whether the pod takes what has no column."""
    return bool(prepared.host_ports) or any(
        name not in tracker.COLUMN_OF for name, _ in prepared.requests
    )
