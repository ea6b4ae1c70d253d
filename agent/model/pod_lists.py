"""Lists of pods as the kubelet and the API server answer them: one bad pod hides no other. Pure."""

import msgspec

from api.kubernetes import core
from domain import wording

UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)
"""What decoding raises."""
_NAMED = 3


class ListError(ValueError):
    """An answer that is no list of pods; the text says why."""


class PodList(msgspec.Struct, frozen=True):
    """The pods of an answer, its version, and what could not be read of it."""

    pods: tuple[core.Pod, ...] = ()
    version: str = ""
    problem: str = ""
    """How many pods could not be read, and why the first of them; empty where all could."""


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""


class _Answer(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()
    items: tuple[core.Pod, ...] | None = None


class _Apart(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()
    items: tuple[msgspec.Raw, ...] | None = None


def read(body: bytes) -> PodList:
    """Read an answer; pods that cannot be read are left out and named. Raises ListError."""
    try:
        answer = msgspec.json.decode(body, type=_Answer)
        return PodList(answer.items or (), answer.metadata.resource_version)
    except UNREADABLE:
        return _one_by_one(body)


def unchanged_kept(before: tuple[core.Pod, ...], now: tuple[core.Pod, ...]) -> tuple[core.Pod, ...]:
    """Return a new list with the very objects of the one before for all pods that are the same.

    What was computed from a pod, or from the list where all are the same, can then be kept by the
    object, and a list takes no memory anew.
    """
    known = {pod.metadata.uid: pod for pod in before}
    earlier = (known.get(pod.metadata.uid, pod) for pod in now)
    found = tuple(old if _same(old, new) else new for old, new in zip(earlier, now, strict=True))
    pairs = zip(before, found, strict=False)
    stands = len(before) == len(found) and all(old is new for old, new in pairs)
    return before if stands else found


def _same(one: core.Pod, other: core.Pod) -> bool:
    try:
        return one == other
    except RecursionError:
        return False


def _one_by_one(body: bytes) -> PodList:
    try:
        answer = msgspec.json.decode(body, type=_Apart)
    except UNREADABLE as error:
        raise ListError(str(error)) from error
    pods, problems = [], []
    for place, item in enumerate(answer.items or ()):
        try:
            pods.append(msgspec.json.decode(item, type=core.Pod))
        except UNREADABLE as error:
            problems.append(f"pod {place} of the list: {error}")
    if problems and not pods:
        raise ListError(problems[0])
    unread = wording.count(len(problems), "pod", "pods")
    said = f"{unread} cannot be read: {'; '.join(problems[:_NAMED])}"
    return PodList(tuple(pods), answer.metadata.resource_version, said if problems else "")
