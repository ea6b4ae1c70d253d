"""All quotas, pods and nodes of the cluster as one forest, kept in step by informers.

Every replica keeps it, so that a new leader starts warm. It is read within one turn of the event
loop; who decides over an await reads it again afterwards.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from api import resources
from domain.quota.model import Rules
from domain.quota.tree.forest import Forest
from kube.informers import store
from manager.model import projections
from manager.quota import objects

POD: Final = "pod"
NODE: Final = "node"
QUOTA: Final = "quota"
RULES: Final = "rules"


class Changed(NamedTuple):
    """What has changed: kind, key (uid of a pod, name of a node, group/namespace/name of a quota).

    `before` and `after` are values of `objects`; None where there was or is nothing.
    """

    kind: str
    key: str
    before: Any = None
    after: Any = None


Listener = Callable[[Changed], None]


@dataclasses.dataclass(frozen=True, slots=True)
class Stores:
    """What the forest is made of, as informers keep it."""

    quotas: Mapping[resources.Resource, store.Store[objects.QuotaObject]]
    """One for each group; that of a group whose CRD is not installed stays empty."""
    pods: store.Store[objects.QuotaPod]
    nodes: store.Store[projections.Node]


class Book:
    """The forest and what it was made of.

    Attributes:
        forest: all quotas with what their pods request and use.
        stores: the informers that it follows.
        pods: by uid, every pod that has not ended.
        nodes: by name.
        quotas: by group/namespace/name, every ElasticQuota that can be read.
        waiting: uids of the pods without a node.
    """

    def __init__(self, stores: Stores, rules: Rules) -> None:
        self.stores = stores
        self.forest: Forest = Forest.empty(rules)
        self.pods: dict[str, objects.QuotaPod] = {}
        self.nodes: dict[str, objects.QuotaNode] = {}
        self.quotas: dict[str, objects.QuotaObject] = {}
        self.waiting: set[str] = set()
        self._by_node: dict[str, set[str]] = {}
        self._by_origin: dict[tuple[str, str], set[str]] = {}
        self._gone: set[str] = set()
        self._listeners: list[Listener] = []
        for seen in stores.quotas.values():
            seen.listen(self._quota_changed)
        stores.nodes.listen(self._node_changed)
        stores.pods.listen(self._pod_changed)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Tell a listener every change from now on; return how to stop.

        A change of only the version and our condition is no change of the pod.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def set_rules(self, rules: Rules) -> None:
        """Count by other rules from now on."""
        before = self.forest.rules
        if rules != before:
            self.forest = self.forest.with_rules(rules)
            self._tell(Changed(RULES, "", before, rules))

    def synced(self) -> None:
        """Take in that all lists are complete: a node that none of them holds is gone.

        Pods of such nodes hold nothing, although it may take minutes until they are deleted.
        """
        for name in [name for name in self._by_node if name not in self.nodes]:
            self._leave(name)

    def name_of(self, pod: objects.QuotaPod) -> str:
        """Return the quota that a pod is charged to; empty where there is none."""
        return self.forest.name_of(*pod.origin)

    def on_node(self, name: str) -> tuple[objects.QuotaPod, ...]:
        """Return the pods of a node."""
        return tuple(self.pods[uid] for uid in self._by_node.get(name, ()))

    def of_quota(self, name: str) -> tuple[objects.QuotaPod, ...]:
        """Return the pods that are charged to a quota itself, not to those below it."""
        return tuple(
            self.pods[uid]
            for origin, uids in self._by_origin.items()
            if self.forest.name_of(*origin) == name
            for uid in uids
        )

    def counts(self, pod: objects.QuotaPod) -> bool:
        """Whether a pod is charged: not when its node is gone."""
        return pod.node not in self._gone

    def _tell(self, changed: Changed) -> None:
        for listener in tuple(self._listeners):
            listener(changed)

    # A store may leave out an object on which another listener fails and then say that it went;
    # so what was taken in before is known here, and never what the store says was there.

    def _pod_changed(self, change: store.Change[objects.QuotaPod]) -> None:
        found = change.new or change.old
        assert found is not None
        before, after = self.pods.get(found.uid), change.new
        if before is None and after is None:
            return
        if before is not None and after is not None and _same(before, after):
            self.pods[found.uid] = after
            return
        self.forest = self.forest.with_pod(self._use(before), self._use(after))
        if before is not None:
            self._unindex(before)
        if after is None:
            del self.pods[found.uid]
        else:
            self.pods[found.uid] = after
            self._index(after)
        if before is not None and before.node not in self._by_node:
            self._gone.discard(before.node)
        self._tell(Changed(POD, found.uid, before, after))

    def _use(self, pod: objects.QuotaPod | None) -> Any:
        return pod.use if pod is not None and self.counts(pod) else None

    def _index(self, pod: objects.QuotaPod) -> None:
        self._by_origin.setdefault(pod.origin, set()).add(pod.uid)
        if pod.node:
            self._by_node.setdefault(pod.node, set()).add(pod.uid)
        else:
            self.waiting.add(pod.uid)

    def _unindex(self, pod: objects.QuotaPod) -> None:
        _discard(self._by_origin, pod.origin, pod.uid)
        self.waiting.discard(pod.uid)
        if pod.node:
            _discard(self._by_node, pod.node, pod.uid)

    def _node_changed(self, change: store.Change[projections.Node]) -> None:
        name, found = change.key, change.new
        before = self.nodes.get(name)
        after = (
            None
            if found is None
            else objects.QuotaNode(
                name, found.labels, objects.pairs(found.offered), found.schedulable, found.taints
            )
        )
        if before == after:
            return
        self.forest = self.forest.with_node(
            None if before is None else before.allocatable,
            None if after is None else after.allocatable,
        )
        if after is None:
            del self.nodes[name]
            self._leave(name)
        else:
            self.nodes[name] = after
            self._come_back(name)
        self._tell(Changed(NODE, name, before, after))

    def _leave(self, name: str) -> None:
        if name in self._gone or name not in self._by_node:
            return
        for pod in self.on_node(name):
            self.forest = self.forest.with_pod(pod.use, None)
        self._gone.add(name)

    def _come_back(self, name: str) -> None:
        if name not in self._gone:
            return
        self._gone.discard(name)
        for pod in self.on_node(name):
            self.forest = self.forest.with_pod(None, pod.use)

    def _quota_changed(self, change: store.Change[objects.QuotaObject]) -> None:
        found = change.new or change.old
        assert found is not None
        key = found.quota.identity
        before, after = self.quotas.get(key), change.new
        if before is None and after is None:
            return
        old = None if before is None else before.quota
        new = None if after is None else after.quota
        if old != new:
            self.forest = self.forest.with_quota(old, new)
        if after is None:
            del self.quotas[key]
        else:
            self.quotas[key] = after
        self._tell(Changed(QUOTA, key, before, after))


def _same(before: objects.QuotaPod, after: objects.QuotaPod) -> bool:
    """Whether two states of a pod differ only in the version and in our condition."""
    return before is after or all(
        getattr(before, field) == getattr(after, field) for field in _COMPARED
    )


_COMPARED: Final = tuple(
    field
    for field in objects.QuotaPod.__struct_fields__
    if field not in ("resource_version", "told")
)


def _discard(index: dict[Any, set[str]], word: Any, uid: str) -> None:
    kept = index.get(word)
    if kept is not None:
        kept.discard(uid)
        if not kept:
            del index[word]
