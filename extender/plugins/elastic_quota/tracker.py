"""QuotaState: the forest of quotas and who counts in it, kept in step with the cluster."""

import collections
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from api import names
from api.koordinator import quota as api
from domain import persistent
from domain.quota import model
from domain.quota.tree import forest as forests
from extender.framework import views
from extender.plugins.elastic_quota import uses

NAME: Final = "ElasticQuota"
UNBOUNDED: Final = 1 << 52
"""A limit above this bounds nothing: no cluster has so much, and no pod may ask for more."""
_NOTHING: Final[Mapping[uses.Claimed, int]] = MappingProxyType({})


class Nomination(msgspec.Struct, frozen=True):
    """Quota that is kept for a pod which is not placed yet."""

    uid: str
    """Of the pod that may use it."""
    priority: int
    node: str
    counted: uses.Counted


class Held(msgspec.Struct, frozen=True):
    """What the claims on one node name use; it counts while there is such a node."""

    known: bool = False
    claims: Mapping[uses.Claimed, int] = _NOTHING
    """How many claims there are, by what counts of them."""

    def empty(self) -> bool:
        """Whether there is nothing to remember."""
        return not self.known and not self.claims


class Asked(msgspec.Struct, frozen=True, cache_hash=True):
    """What PreFilter reads of a pod."""

    use: model.PodUse
    quota: str
    """The quota in which it counts."""
    path: tuple[str, ...]
    """That quota and its ancestors."""
    priority: int = 0
    uid: str = ""
    """Only where quota is kept for this very pod."""
    requested: bool = True
    """Whether it counts as requested already; it does once the watch has shown it."""


_HELD_NOTHING: Final = Held()


class QuotaState(msgspec.Struct, frozen=True):
    """All quotas with what their pods use and ask for; a value that is never changed.

    While no quota bounds anybody, pods are counted by node and in no forest: that is cheaper.
    """

    forest: forests.Forest
    """With the pods, where any quota bounds any of them."""
    base: forests.Forest
    """Without any pod."""
    enforced: bool
    """Whether any quota bounds any pod."""
    held: persistent.Map[str, Held] = persistent.Map()
    """By node name."""
    waiting: persistent.Map[str, model.PodUse] = persistent.Map()
    """By uid: the pods without a node, as far as the watch has shown them."""
    nominations: persistent.Map[str, Nomination] = persistent.Map()
    """By the id of the claim."""

    # -- reading ---------------------------------------------------------------------------

    def asked(self, pod: views.PodInfo) -> Asked | None:
        """Return what matters of a pod, None where no quota bounds it."""
        name = self.bounding(pod)
        if not name:
            return None
        use = uses.waiting(pod.requirements, pod.key.partition("/")[0])
        own = any(one.uid == pod.uid for one in self.nominations.values())
        return Asked(
            use=use,
            quota=name,
            path=tuple(self.forest.path(name)),
            priority=pod.requirements.priority,
            uid=pod.uid if own else "",
            requested=pod.uid in self.waiting,
        )

    def bounding(self, pod: views.PodInfo) -> str:
        """Return the quota in which a pod counts, empty where that bounds nothing."""
        namespace = pod.key.partition("/")[0]
        use = uses.waiting(pod.requirements, namespace)
        name = self.forest.name_of(use.quota, namespace)
        if name in names.RESERVED_QUOTAS and not _bounds(self.forest, name):
            return ""
        return name

    def seen_by(self, asked: Asked) -> forests.Forest:
        """Return the forest as a pod sees it: requested itself, and without what it ignores.

        As kube-scheduler counts nominations: its own does not stand in a pod's way, and those of
        lower priority do not.
        """
        found = self.forest
        if not asked.requested:
            found = found.with_pod(None, asked.use)
        for one in self.nominations.values():
            ignored = one.uid == asked.uid or one.priority < asked.priority
            if ignored and self._is_known(one.node):
                found = found.with_pod(one.counted.after, one.counted.before)
        return found

    def shortage(self, asked: Asked) -> model.Shortage | None:
        """Return why a pod may not run for now, None where its quota lets it."""
        use = asked.use
        return self.seen_by(asked).shortage(asked.quota, use.requests, preemptible=use.preemptible)

    def _is_known(self, node: str) -> bool:
        held = self.held.get(node)
        return held is not None and held.known

    # -- changing --------------------------------------------------------------------------

    def with_claim(self, before: views.Claim | None, after: views.Claim | None) -> "QuotaState":
        """Return the state after a claim came, changed or went."""
        was, becomes = _claimed(before), _claimed(after)
        if was == becomes:
            return self
        state = self
        if was is not None:
            state = state.with_held(*was, -1)
        if becomes is not None:
            state = state.with_held(*becomes, 1)
        return state.with_nominations(before, after)

    def with_held(self, node: str, claimed: uses.Claimed, sign: int) -> "QuotaState":
        """Return the state with one more (1) or one less (-1) such claim on a node name."""
        held = self.held.get(node) or _HELD_NOTHING
        present = dict(held.claims)
        present[claimed] = present.get(claimed, 0) + sign
        if not present[claimed]:
            del present[claimed]
        forest = self.forest
        if held.known and self.enforced:
            forest = _count(forest, uses.counted(claimed), sign)
        after = Held(held.known, present)
        kept = self.held.replaced(node, None if after.empty() else after)
        return msgspec.structs.replace(self, forest=forest, held=kept)

    def with_nominations(
        self, before: views.Claim | None, after: views.Claim | None
    ) -> "QuotaState":
        """Return the state with what is kept for pods after a claim came, changed or went."""
        is_kept = _nomination(after)
        if is_kept is None and (before is None or before.id not in self.nominations):
            return self
        kept = self.nominations
        if before is not None and before.id in kept:
            kept = kept.replaced(before.id, None)
        if after is not None and is_kept is not None:
            kept = kept.replaced(after.id, is_kept)
        return msgspec.structs.replace(self, nominations=kept)

    def with_node(
        self, name: str, before: views.NodeRecord | None, after: views.NodeRecord | None
    ) -> "QuotaState":
        """Return the state after a node came, changed or went; its pods come and go with it."""
        was = before.allocatable if before is not None else None
        becomes = after.allocatable if after is not None else None
        base, forest = self.base.with_node(was, becomes), self.forest.with_node(was, becomes)
        held, kept = self.held.get(name) or _HELD_NOTHING, self.held
        if held.known is not (after is not None):
            sign = 1 if after is not None else -1
            for claimed, number in held.claims.items() if self.enforced else ():
                for _ in range(number):
                    forest = _count(forest, uses.counted(claimed), sign)
            found = Held(after is not None, held.claims)
            kept = kept.replaced(name, None if found.empty() else found)
        return msgspec.structs.replace(self, base=base, forest=forest, held=kept)

    def with_waiting(
        self, uid: str, before: views.PodRecord | None, after: views.PodRecord | None
    ) -> "QuotaState":
        """Return the state after a pod without a node came, changed or went."""
        was = uses.waiting(before.requirements, before.namespace) if before is not None else None
        becomes = uses.waiting(after.requirements, after.namespace) if after is not None else None
        if was == becomes:
            return self
        return msgspec.structs.replace(
            self,
            forest=self.forest.with_pod(was, becomes) if self.enforced else self.forest,
            waiting=self.waiting.replaced(uid, becomes),
        )

    def with_quota(self, before: api.Quota | None, after: api.Quota | None) -> "QuotaState":
        """Return the state after an ElasticQuota came, changed or went."""
        base = self.base.with_quota(before, after)
        enforced = base.has_trees or _bounds_reserved(base)
        if not enforced:
            forest = base
        elif self.enforced:
            forest = self.forest.with_quota(before, after)
        else:
            forest = base.with_pods(self._pods())
        return msgspec.structs.replace(self, forest=forest, base=base, enforced=enforced)

    def _pods(self) -> list[tuple[model.PodUse, int]]:
        """Return all pods that count, and how many there are of each."""
        found: collections.Counter[model.PodUse] = collections.Counter(self.waiting.values())
        for held in self.held.values():
            for claimed, number in held.claims.items() if held.known else ():
                counted = uses.counted(claimed)
                found[counted.after] += number
                if counted.before is not None:
                    found[counted.before] -= number
        return list(found.items())


def start(rules: model.Rules) -> QuotaState:
    """Return the state of an empty cluster."""
    forest = forests.Forest.empty(rules)
    return QuotaState(forest, forest, _bounds_reserved(forest))


def advanced(old: QuotaState, delta: views.Delta) -> QuotaState:
    """Return the state after any change of the cluster."""
    match delta:
        case views.ClaimDelta(_, before, after):
            return old.with_claim(before, after)
        case views.NodeDelta(name, was, becomes):
            return old.with_node(name, was, becomes)
        case views.ObjectDelta(views.UNSCHEDULED_POD, uid, gone, come):
            assert gone is None or isinstance(gone, views.PodRecord)
            assert come is None or isinstance(come, views.PodRecord)
            return old.with_waiting(uid, gone, come)
        case views.ObjectDelta(views.ELASTIC_QUOTA, _, known, told):
            assert known is None or isinstance(known, api.Quota)
            assert told is None or isinstance(told, api.Quota)
            return old.with_quota(known, told)
        case _:
            return old


def _claimed(claim: views.Claim | None) -> tuple[str, uses.Claimed] | None:
    """Return where and what of a claim counts; the capacity of a reservation is no pod's request.

    How it counts is read only where a quota bounds somebody.
    """
    if claim is None or claim.kind is views.ClaimKind.RESERVATION:
        return None
    pod = claim.pod
    return claim.node, (pod.requirements, pod.namespace, claim.kind is views.ClaimKind.NOMINATED)


def _nomination(claim: views.Claim | None) -> Nomination | None:
    if claim is None or claim.kind is not views.ClaimKind.NOMINATED:
        return None
    pod = claim.pod
    counted = uses.nominated(pod.requirements, pod.namespace)
    return Nomination(claim.usable_by, pod.requirements.priority, claim.node, counted)


def _count(forest: forests.Forest, counted: uses.Counted, sign: int) -> forests.Forest:
    if sign > 0:
        return forest.with_pod(counted.before, counted.after)
    return forest.with_pod(counted.after, counted.before)


def _bounds(forest: forests.Forest, name: str) -> bool:
    """Whether a quota outside the trees bounds anything."""
    written = forest.quota(name)
    rules = forest.rules
    most = rules.default_max if name == names.DEFAULT_QUOTA else rules.system_max
    cap = written.cap if written is not None and written.cap else most
    return any(amount < UNBOUNDED for amount in cap.values())


def _bounds_reserved(forest: forests.Forest) -> bool:
    return any(_bounds(forest, name) for name in (names.DEFAULT_QUOTA, names.SYSTEM_QUOTA))
