"""Gangs that move as a whole, where one member alone would leave a rest without quorum. Pure."""

import dataclasses

from descheduler.framework import protocols
from descheduler.framework.filtering import safeguards
from descheduler.model import picture, podinfo

Members = tuple[podinfo.Pod, ...]


class WholeGangs:
    """Which pods leave together with one that is suggested."""

    def __init__(self, seen: picture.Picture, *, enabled: bool) -> None:
        self._gangs = safeguards.Gangs(seen)
        self._enabled = enabled

    def others(self, pod: podinfo.Pod, migrating: protocols.Migrating) -> Members:
        """Return the members that have to leave with a pod; none where their quorum holds."""
        if not self._enabled or not pod.gang:
            return ()
        moving = self._gangs.moving(pod, migrating)
        if moving or not self._gangs.breaks(pod, moving):
            return ()
        return tuple(one for one in self._gangs.members(pod.gang) if one.uid != pod.uid)

    def joined(
        self, suggestion: protocols.Suggestion, others: Members, migrating: protocols.Migrating
    ) -> protocols.Suggestion:
        """Return a suggestion with all pods that would leave for it.

        Of a node that is to be emptied, the gangs of its other pods need targets as well.
        """
        found = {one.uid: one for one in suggestion.along}
        for pod in suggestion.along:
            found |= {one.uid: one for one in self.others(pod, migrating)}
        if suggestion.along:
            found |= {one.uid: one for one in others}
        found.pop(suggestion.pod.uid, None)
        return dataclasses.replace(suggestion, along=tuple(found.values()), gang=others)


def placed(
    suggestion: protocols.Suggestion, target: str, targets: protocols.Targets
) -> list[protocols.Target | None] | protocols.NoTarget:
    """Return targets of the other members once one has its own; nothing has moved afterwards.

    None of them takes its place on the node that is left. One that no node takes has the target
    None where the suggestion needs none.
    """
    pod, mark = suggestion.pod, targets.mark()
    found: list[protocols.Target | None] = []
    try:
        _move(pod, target, targets)
        for one in suggestion.gang:
            place = targets.target(one, None, (pod.node,))
            if isinstance(place, protocols.Target):
                targets.move(one, place.node)
                found.append(place)
            elif suggestion.needs_target:
                return protocols.NoTarget(f"{one.key}: {place.reason}")
            else:
                targets.remove(one)
                found.append(None)
        return found
    finally:
        targets.undo(mark)


def _move(pod: podinfo.Pod, target: str, targets: protocols.Targets) -> None:
    if target:
        targets.move(pod, target)
    else:
        targets.remove(pod)
