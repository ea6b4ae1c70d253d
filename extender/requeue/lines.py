"""Pods that compete for something of the cluster as a whole: who comes first, and who was woken.

Whether a pod would pass is judged pod by pod; of many that would, few may find room. So each that
was woken counts as placed until it is tried, and no more are woken than can be bound.
"""

import dataclasses
from collections.abc import Callable, Sequence

import msgspec

from extender.framework import views
from extender.requeue import unschedulable_pods
from extender.state import claims, cluster_state, deltas, records
from kube.informers import store

_LONGEST_SECONDS = 5.0
"""How long a pod counts that was woken and is not tried: its scheduler may be gone."""


def in_line(
    waiters: Sequence[unschedulable_pods.UnschedulablePod],
    line: Callable[[views.PodInfo], str],
) -> list[unschedulable_pods.UnschedulablePod]:
    """Put the pods of each line in order, by priority, then age, in the places that they have."""
    places: dict[str, list[int]] = {}
    for place, waiter in enumerate(waiters):
        if name := line(waiter.request):
            places.setdefault(name, []).append(place)
    ordered = list(waiters)
    for held in places.values():
        best = sorted(
            (waiters[place] for place in held),
            key=lambda one: (-one.request.requirements.priority, one.since),
        )
        for place, waiter in zip(held, best, strict=True):
            ordered[place] = waiter
    return ordered


@dataclasses.dataclass(frozen=True, slots=True)
class _Charge:
    delta: deltas.ClaimDelta
    key: str
    uid: str
    at: float


class Charges:
    """What was woken and counts as placed until it is tried, bound, gone or given up."""

    def __init__(
        self,
        waiting: unschedulable_pods.UnschedulablePods,
        pods: store.Store[records.PodRecord],
        cluster: cluster_state.ClusterState,
    ) -> None:
        self._waiting = waiting
        self._pods = pods
        self._cluster = cluster
        self._held: list[_Charge] = []
        self._shown: tuple[int, tuple[str, ...], views.View] | None = None

    def add(self, pod: records.PodRecord, node: str, now: float) -> None:
        """Count a pod that was woken for a node."""
        ident = claims.nominated(pod.uid)
        claim = claims.Claim(
            ident, claims.ClaimKind.NOMINATED, node, pod, usable_by=pod.uid, evidence="woken"
        )
        self._held.append(_Charge(deltas.ClaimDelta(ident, None, claim), pod.key, pod.uid, now))

    def view(self, now: float) -> tuple[tuple[str, ...], views.View]:
        """Return the uids that count, and the cluster as it is with them."""
        view = self._cluster.view()
        self._held = [one for one in self._held if self._counts(one, now)]
        if not self._held or not view.cluster:
            return (), view
        uids = tuple(one.uid for one in self._held)
        if self._shown is None or self._shown[:2] != (view.version, uids):
            whole = dict(view.cluster)
            for one in self._held:
                views.advance(whole, view.trackers, one.delta)
            self._shown = view.version, uids, msgspec.structs.replace(view, cluster=whole)
        return uids, self._shown[2]

    def _counts(self, one: _Charge, now: float) -> bool:
        if now - one.at >= _LONGEST_SECONDS:
            return False
        if self._cluster.claim(one.uid) is not None or self._cluster.claim(one.delta.id):
            return False
        pod = self._pods.get(one.key)
        if pod is None or pod.uid != one.uid:
            return False
        waiter = self._waiting.get(one.key)
        # One that waits no longer has passed and will be bound at once.
        return waiter is None or waiter.tried_at <= one.at
