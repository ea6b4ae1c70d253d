"""All pods by uid, by node, by controller and by likeness, kept current change by change.

A snapshot copies four dictionaries and sorts the groups that changed since the last one, so that
150,000 pods cost a round milliseconds.
"""

from collections.abc import Callable, Hashable, Mapping
from typing import Generic, NamedTuple, TypeVar

from descheduler.model import podinfo
from kube.informers import store

W = TypeVar("W", bound=Hashable)
Group = tuple[podinfo.Pod, ...]


class Snapshot(NamedTuple):
    """The pods at one moment."""

    pods: Mapping[str, podinfo.Pod]
    """By uid."""
    on_node: Mapping[str, Group]
    by_controller: Mapping[str, Group]
    alike: Mapping[podinfo.Likeness, Group]
    """Of pods that have a node and have not ended."""


class _Groups(Generic[W]):
    """Pods by a word that each of them has, or has not."""

    def __init__(self, word: Callable[[podinfo.Pod], W | None]) -> None:
        self._word = word
        self._members: dict[W, dict[str, podinfo.Pod]] = {}
        self._sorted: dict[W, Group] = {}
        self._changed: set[W] = set()

    def follow(self, change: store.Change[podinfo.Pod]) -> None:
        """Take in a change of one pod."""
        before = self._word(change.old) if change.old is not None else None
        after = self._word(change.new) if change.new is not None else None
        if before and (before != after or not _is_same(change)):
            self._leave(before, change.old)
        if after and change.new is not None:
            self._members.setdefault(after, {})[change.new.uid] = change.new
            self._changed.add(after)

    def _leave(self, word: W, pod: podinfo.Pod | None) -> None:
        members = self._members.get(word)
        if members is None or pod is None:
            return
        members.pop(pod.uid, None)
        self._changed.add(word)
        if not members:
            del self._members[word]

    def snapshot(self) -> Mapping[W, Group]:
        """Return the groups as they are now, pods by their key."""
        for word in self._changed:
            members = self._members.get(word)
            if members:
                self._sorted[word] = tuple(sorted(members.values(), key=_key))
            else:
                self._sorted.pop(word, None)
        self._changed.clear()
        return self._sorted.copy()


class PodIndex:
    """Follows a store of pods."""

    def __init__(self, pods: store.Store[podinfo.Pod]) -> None:
        self._by_uid: dict[str, podinfo.Pod] = {}
        self._nodes = _Groups[str](lambda pod: pod.node)
        self._controllers = _Groups(_controller)
        self._alike = _Groups(_likeness)
        pods.listen(self._follow)

    def snapshot(self) -> Snapshot:
        """Return all pods as they are now; what is returned does not change."""
        return Snapshot(
            self._by_uid.copy(),
            self._nodes.snapshot(),
            self._controllers.snapshot(),
            self._alike.snapshot(),
        )

    def _follow(self, change: store.Change[podinfo.Pod]) -> None:
        if change.old is not None and not _is_same(change):
            self._by_uid.pop(change.old.uid, None)
        if change.new is not None:
            self._by_uid[change.new.uid] = change.new
        self._nodes.follow(change)
        self._controllers.follow(change)
        self._alike.follow(change)


def _is_same(change: store.Change[podinfo.Pod]) -> bool:
    """Whether the pod is the one of before, not a successor of its name."""
    return change.old is not None and change.new is not None and change.old.uid == change.new.uid


def _controller(pod: podinfo.Pod) -> str:
    owner = pod.controller
    return owner.uid if owner is not None else ""


def _likeness(pod: podinfo.Pod) -> podinfo.Likeness | None:
    return podinfo.likeness(pod) if pod.node and not pod.has_ended else None


def _key(pod: podinfo.Pod) -> str:
    return pod.key
