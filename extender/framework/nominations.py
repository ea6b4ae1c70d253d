"""Nominated claims: capacity that is kept for pods which are not placed yet, and who minds it."""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from extender.framework import verdicts, views

NAME: Final = "NominatedPods"
KEPT: Final = verdicts.Status("node has too little beside pods that are nominated to it")
"""Why a node refuses a pod that fits only where a nominated pod is to be placed."""


def ignored(pod: views.PodInfo, view: views.View, row: int) -> tuple[str, ...]:
    """Return the nominated claims of a node that do not stand in a pod's way.

    As kube-scheduler counts them: its own does not, and those of lower priority do not.
    """
    uid, priority = pod.uid, pod.requirements.priority
    # A list, since this is asked about every node that a filter has refused.
    return tuple(
        [
            claim.id
            for claim in view.nominated.get(row, ())
            if claim.pod.requirements.priority < priority
            or uid == claim.pod.uid
            or uid == claim.usable_by
        ]
    )


def seen_by(pod: views.PodInfo, view: views.View, row: int) -> tuple[views.View, int]:
    """Return a view of a node without the nominated claims that a pod ignores, and its row there.

    Where there are none that is the view itself: nothing is copied and no figure computed anew.
    """
    without = ignored(pod, view, row) if row in view.nominated else ()
    return (view.with_claims(row, remove=without), 0) if without else (view, row)


def crowded(
    pod: views.PodInfo, view: views.View, rows: verdicts.Rows, codes: verdicts.Codes
) -> list[int]:
    """Return the places of candidates that pass, but not beside the pods nominated to them.

    kube-scheduler counts nominated pods as well, as long as `status.nominatedNodeName` says so,
    which it clears with every preemption that finds no node. What is kept here stays kept.
    """
    asked = [one for one in pod.requirements.requests if one[1] and one[0] in view.resources]
    places = _nominated(view, rows, codes) if asked else ()
    if not places:
        return []
    chosen = rows[places]
    free = [_free(view, view.resources[name], chosen) for name, _ in asked]
    found = []
    for place, row, *room in zip(places, chosen.tolist(), *free, strict=True):
        kept = view.nominated[row]
        # Most often there is room beside all of them, so that it does not matter whose they are.
        if _is_short(asked, room, kept):
            beside = ignored(pod, view, row)
            others = [claim for claim in kept if claim.id not in beside]
            if others and _is_short(asked, room, others):
                found.append(place)
    return found


def _nominated(view: views.View, rows: verdicts.Rows, codes: verdicts.Codes) -> list[int]:
    """Return the places of candidates that pass and have pods nominated to them."""
    if rows.size == 1:
        return [0] if not codes.item() and rows.item() in view.nominated else []
    concerned = np.zeros(view.known.size, dtype=np.bool_)
    concerned[list(view.nominated)] = True
    return np.flatnonzero(concerned[rows] & (codes == 0)).tolist()


def _free(view: views.View, resource: int, rows: verdicts.Rows) -> list[int]:
    found = view.allocatable[resource].take(rows) - view.requested[resource].take(rows)
    left: list[int] = found.tolist()
    return left


def _is_short(
    asked: Sequence[tuple[str, int]], room: Sequence[int], beside: Iterable[views.Claim]
) -> bool:
    """Whether a node has less room than is asked for beside some claims."""
    for (name, value), left in zip(asked, room, strict=True):
        for claim in beside:
            for other, amount in claim.pod.requirements.requests:
                if other == name:
                    left -= amount
        if left < value:
            return True
    return False
