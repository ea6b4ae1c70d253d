"""How a node is emptied: every pod of it has a place first, then they leave one by one. Pure."""

import dataclasses
from collections.abc import Generator, Iterator, Mapping, Sequence

import numpy as np

from descheduler.framework import protocols
from descheduler.framework.filtering import pod_traits
from descheduler.framework.nodes import candidates, node_room
from descheduler.model import picture, podinfo

Emptied = Generator[protocols.Suggestion, protocols.Answer, Mapping[str, str]]
"""Yields suggestions, receives whether each pod leaves, returns where those that do go, by uid."""


@dataclasses.dataclass(frozen=True, slots=True)
class Task:
    """A node to be emptied, and where its pods may go."""

    node: str
    pods: tuple[podinfo.Pod, ...]
    """Those that have to leave."""
    among: node_room.Flags
    """Targets."""
    plugin: str
    reason: str
    cordon: protocols.Cordon | None = None
    dry_run: bool = False


def residents(view: protocols.View, node: str) -> Iterator[podinfo.Pod]:
    """Yield the pods that keep a node from being empty: neither those of it nor those that go."""
    return occupants(view.picture, node)


def occupants(seen: picture.Picture, node: str) -> Iterator[podinfo.Pod]:
    """Yield the same of a picture."""
    return filter(Occupants().holds, seen.on_node.get(node, ()))


class Occupants:
    """Tells pods that keep their nodes from being empty; owners that pods share are read once."""

    __slots__ = ("_daemons",)

    def __init__(self) -> None:
        self._daemons: dict[int, bool] = {}

    def holds(self, pod: podinfo.Pod) -> bool:
        """Whether a pod of the picture is one of them."""
        if pod.phase in podinfo.ENDED or pod.leaves_at >= 0 or pod.is_mirror:
            return False
        key = id(pod.owners)
        is_of_daemon = self._daemons.get(key)
        if is_of_daemon is None:
            is_of_daemon = self._daemons[key] = pod_traits.is_daemon(pod)
        return not is_of_daemon


def largest_first(pods: Sequence[podinfo.Pod], room: node_room.Room) -> list[podinfo.Pod]:
    """Sort pods so that those that are hard to place come first."""
    sizes = {pod.uid: _size(pod, room) for pod in pods}
    return sorted(pods, key=lambda pod: (-sizes[pod.uid], pod.key))


def _size(pod: podinfo.Pod, room: node_room.Room) -> float:
    largest = room.largest
    return sum([amount / largest[name] for name, amount in pod.requests.items() if name in largest])


def places(room: node_room.Room, task: Task) -> dict[str, str] | None:
    """Return a node for each pod by uid, the fullest that takes it; None where one has none.

    The room is left as it was.
    """
    found: list[tuple[podinfo.Pod, str]] = []
    for pod in task.pods:
        target = fullest(room, room.takers(pod) & task.among)
        if not target:
            break
        room.move(pod, target)
        found.append((pod, target))
    for pod, target in found:
        room.take_back(pod, target)
    return {pod.uid: target for pod, target in found} if len(found) == len(task.pods) else None


def fullest(room: node_room.Room, flags: node_room.Flags) -> str:
    """Return the node of which most cpu and memory is requested; empty where no flag is set."""
    rows = np.flatnonzero(flags)
    if not rows.size:
        return ""
    shares = room.shares(("cpu", "memory"))[rows].sum(axis=1)
    return room.names[int(rows[int(np.argmax(shares))])]


def empty(view: protocols.View, room: node_room.Room, task: Task) -> Emptied:
    """Suggest all pods of a node, if each has a place; stop where one stays.

    A limit may let a few of them go in this round and the rest in later ones; a pod that has to
    stay, or fits nowhere, keeps them all.
    """
    moved: dict[str, str] = {}
    # The filters are asked first: it takes longer to find a place for each.
    if not task.pods or not all(candidates.may_leave(view, pod) for pod in task.pods):
        return moved
    if places(room, task) is None:
        return moved
    for at, pod in enumerate(task.pods):
        targets = room.listed(room.takers(pod) & task.among)
        if not targets:
            break
        answer = yield protocols.Suggestion(
            pod,
            task.plugin,
            task.reason,
            protocols.Purpose.EMPTY,
            targets,
            along=() if at else task.pods[1:],
            cordon=task.cordon,
            dry_run=task.dry_run,
        )
        if not answer:
            break
        moved[pod.uid] = where(room, answer, targets)
        room.move(pod, moved[pod.uid])
    return moved


def where(room: node_room.Room, answer: protocols.Answer, targets: Sequence[str]) -> str:
    """Return the node that a pod goes to; the fullest of its targets where that is not said."""
    if isinstance(answer, protocols.Target):
        return answer.node
    return fullest(room, room.flags(targets))
