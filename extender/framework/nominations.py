"""Nominated claims: capacity that is kept for pods which are not placed yet, and who minds it."""

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
) -> verdicts.Rows:
    """Return the places of candidates that pass, but not beside the pods nominated to them.

    kube-scheduler counts nominated pods as well, as long as `status.nominatedNodeName` says so,
    which it clears with every preemption that finds no node. What is kept here stays kept.
    """
    asked = [
        (view.resources[name], value)
        for name, value in pod.requirements.requests
        if value and name in view.resources
    ]
    concerned = np.isin(rows, list(view.nominated)) & (codes == 0)
    found = []
    for place in np.flatnonzero(concerned).tolist() if asked else ():
        row = int(rows[place])
        beside = set(ignored(pod, view, row))
        room = (view.allocatable[:, row] - view.requested[:, row]).copy()
        others = [claim for claim in view.nominated[row] if claim.id not in beside]
        for claim in others:
            for name, value in claim.pod.requirements.requests:
                if name in view.resources:
                    room[view.resources[name]] -= value
        if others and any(room[column] < value for column, value in asked):
            found.append(place)
    return np.array(found, dtype=np.intp)
