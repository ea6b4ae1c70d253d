"""A strategy that fails is kept from the others, and a pod that makes it fail from the rest. Pure.

A decision takes all pods of a node at once. Where it raises, the pods are halved until those are
found without which it does not. It then decides with those made plain: they keep their class,
cpus and cgroups, so that no pod is given what is theirs, and ask for nothing.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from agent.decide import catalogue
from agent.model import edits, state
from api.kubernetes import core
from domain import wording

MOST_PROBES: Final = 64
"""How often a strategy is tried in one tick; 250 pods with one culprit take at most 17."""
AGAIN_SECONDS: Final = 60.0
"""A pod that was left out is tried again after this time, and as soon as it changes."""
_LONGEST: Final = 200


class Skipped(msgspec.Struct, frozen=True):
    """A pod that a strategy leaves out."""

    pod: state.PodState
    reason: str
    until: float

    def holds(self, pod: state.PodState, now: float) -> bool:
        """Tell whether a pod is still left out."""
        return now < self.until and pod.pod == self.pod.pod

    def has(self, edit: edits.Edit) -> bool:
        """Tell whether an edit is of this pod."""
        return edit.pod == self.pod.pod.metadata.uid or edit.group in _groups(self.pod)


class Outcome(msgspec.Struct, frozen=True):
    """What became of one decision."""

    decision: edits.Decision
    skipped: Mapping[str, Skipped] = {}
    """Pods that were left out, by uid."""
    failure: str = ""
    """Why the strategy could not decide at all; empty where it could."""


def decide(
    strategy: catalogue.Strategy,
    look: catalogue.Look,
    before: edits.Decision | None = None,
    skipped: Mapping[str, Skipped] | None = None,
) -> Outcome:
    """Let a strategy decide; for pods that it leaves out, what it wanted before stands."""
    left_out = _still(look, skipped or {})
    found, failure = _tried(strategy.decide, _plainly(look, left_out))
    if found is None:
        until = look.now + AGAIN_SECONDS
        culprits = _culprits(strategy.decide, _plainly(look, left_out))
        left_out |= {pod.pod.metadata.uid: Skipped(pod, why, until) for pod, why in culprits}
        if culprits:
            found, failure = _tried(strategy.decide, _plainly(look, left_out))
    if found is None and left_out:
        found, failure = _tried(strategy.decide, _without(look, left_out))
    if found is not None:
        return Outcome(_kept(found, before, left_out), left_out)
    failed = edits.Decision(f"failed, what it set stands: {failure}", decided=False)
    return Outcome(failed, left_out, failure)


def _tried(decider: catalogue.Decider, look: catalogue.Look) -> tuple[edits.Decision | None, str]:
    try:
        return decider(look), ""
    except Exception as error:  # noqa: BLE001 - whatever one strategy meets stays its own
        return None, _said(error)


def _still(look: catalogue.Look, skipped: Mapping[str, Skipped]) -> dict[str, Skipped]:
    if not skipped:
        return {}
    return {
        pod.pod.metadata.uid: known
        for pod in look.picture.pods
        if (known := skipped.get(pod.pod.metadata.uid)) is not None and known.holds(pod, look.now)
    }


def _plainly(look: catalogue.Look, left_out: Mapping[str, Skipped]) -> catalogue.Look:
    if not left_out:
        return look
    pods = look.picture.pods
    return _with(look, [_plain(p) if p.pod.metadata.uid in left_out else p for p in pods])


def _plain(pod: state.PodState) -> state.PodState:
    """Return a pod that asks for nothing and has what it has."""
    replace, whole = msgspec.structs.replace, pod.pod
    spec = replace(
        whole.spec,
        containers=tuple(core.Container(one.name) for one in whole.spec.containers),
        init_containers=tuple(core.Container(one.name) for one in whole.spec.init_containers),
        resources=None,
        overhead={},
    )
    bare = replace(whole, metadata=replace(whole.metadata, annotations={}), spec=spec)
    inner = tuple(replace(one, container=core.Container(one.name)) for one in pod.containers)
    return replace(pod, pod=bare, containers=inner)


def _without(look: catalogue.Look, left_out: Mapping[str, Skipped]) -> catalogue.Look:
    if not left_out:
        return look
    pods = tuple(pod for pod in look.picture.pods if pod.pod.metadata.uid not in left_out)
    return _with(look, pods)


def _with(look: catalogue.Look, pods: Sequence[state.PodState]) -> catalogue.Look:
    picture = msgspec.structs.replace(look.picture, pods=tuple(pods))
    return msgspec.structs.replace(look, picture=picture)


def _kept(
    found: edits.Decision, before: edits.Decision | None, left_out: Mapping[str, Skipped]
) -> edits.Decision:
    if not left_out:
        return found

    def concerns(edit: edits.Edit) -> bool:
        return any(one.has(edit) for one in left_out.values())

    others = tuple(edit for edit in found.wanted if not concerns(edit))
    stood = before.wanted if before is not None else ()
    evictions = tuple(one for one in found.evictions if one.uid not in left_out)
    named = "; ".join(f"{one.pod.pod.metadata.key}: {one.reason}" for one in left_out.values())
    pods = wording.count(len(left_out), "pod", "pods")
    reason = f"{found.reason}; {pods} left out: {named[:_LONGEST]}"
    wanted = (*others, *(edit for edit in stood if concerns(edit)))
    return msgspec.structs.replace(found, reason=reason, wanted=wanted, evictions=evictions)


def _culprits(decider: catalogue.Decider, look: catalogue.Look) -> list[tuple[state.PodState, str]]:
    """Return the pods that make a strategy fail alone, with what it says; none if it is no pod."""
    probes = _Probes(decider, look)
    if probes.failure(()):
        return []
    return list(_search(look.picture.pods, probes.failure))


def _search(
    pods: Sequence[state.PodState], failure: Callable[[Sequence[state.PodState]], str]
) -> list[tuple[state.PodState, str]]:
    said = failure(pods)
    if not said:
        return []
    if len(pods) == 1:
        return [(pods[0], said)]
    middle = len(pods) // 2
    return [*_search(pods[:middle], failure), *_search(pods[middle:], failure)]


class _Probes:
    """Tries a strategy on some of the pods; a copy of it, since the others may remember."""

    def __init__(self, decider: catalogue.Decider, look: catalogue.Look) -> None:
        self._decider, self._look, self._left = decider, look, MOST_PROBES

    def failure(self, pods: Sequence[state.PodState]) -> str:
        """Return what the strategy says to these pods, nothing where it decides."""
        if self._left <= 0:
            return ""
        self._left -= 1
        return _tried(copy.copy(self._decider), _with(self._look, pods))[1]


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:_LONGEST]


def _groups(pod: state.PodState) -> frozenset[str]:
    inner = (container.group for container in pod.containers)
    return frozenset(filter(None, (pod.group, pod.sandbox, *inner)))
