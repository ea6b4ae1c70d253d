"""The scheduling cycle of one pod: what PreFilter prepared, shared by all calls about it."""

import collections
from collections.abc import Hashable, Mapping
from typing import Any, Protocol

import msgspec

from extender.framework import verdicts, views


class Refusal(msgspec.Struct, frozen=True, gc=False):
    """A status together with the plug-in that gave it."""

    plugin: str
    status: verdicts.Status


class Cycle(msgspec.Struct, frozen=True, gc=False):
    """One pod and what every plug-in prepared for it."""

    pod: views.PodInfo
    prepared: Mapping[str, Any]
    """By plug-in; one that has nothing to say about the pod is not in it."""
    refused: Refusal | None = None
    """The status of PreFilter that refuses the pod on every node."""

    @property
    def concerned(self) -> tuple[str, ...]:
        """Return the names of those that have something to say about the pod."""
        return tuple(self.prepared)

    @property
    def key(self) -> Hashable:
        """Return what a verdict depends on besides the view and the time: equal for pods alike."""
        return frozenset(self.prepared.items()), self.refused


class Preparing(Protocol):
    """The part of the pipeline that prepares."""

    @property
    def pre_filters(self) -> tuple[Any, ...]:
        """Return the plug-ins; others once they were replaced."""

    def cycle(self, pod: views.PodInfo, view: views.View) -> Cycle:
        """Let all of them read a pod."""


_Kept = tuple[int, tuple[Any, ...], Cycle]


class Cycles:
    """The cycles of the last pods, as long as neither the pod nor the state changes.

    Filter, prioritize and repeated calls about one pod prepare it once.
    """

    def __init__(self, most: int = 64) -> None:
        self._most = most
        self._kept: collections.OrderedDict[str, _Kept] = collections.OrderedDict()
        """By the uid of the pod."""

    def get(self, plugins: Preparing, pod: views.PodInfo, view: views.View) -> Cycle:
        """Return the cycle of a pod on a view of the live state."""
        found = self._kept.get(pod.uid)
        if found is not None and found[0] == view.version and found[1] is plugins.pre_filters:
            made = found[2]
            if made.pod is pod or made.pod == pod:
                return made
        made = plugins.cycle(pod, view)
        self._kept.pop(pod.uid, None)
        self._kept[pod.uid] = view.version, plugins.pre_filters, made
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return made
