"""Nominated claims: capacity that is kept for pods which are not placed yet, and who minds it."""

from extender.framework import views


def ignored(pod: views.PodInfo, view: views.View, row: int) -> tuple[str, ...]:
    """Return the nominated claims of a node that do not stand in a pod's way.

    As kube-scheduler counts them: its own does not, and those of lower priority do not.
    """
    return tuple(
        claim.id
        for claim in view.nominated.get(row, ())
        if pod.uid in (claim.pod.uid, claim.usable_by)
        or claim.pod.requirements.priority < pod.requirements.priority
    )


def seen_by(pod: views.PodInfo, view: views.View, row: int) -> tuple[views.View, int]:
    """Return a view of a node without the nominated claims that a pod ignores, and its row there.

    Where there are none that is the view itself: nothing is copied and no figure computed anew.
    """
    without = ignored(pod, view, row) if row in view.nominated else ()
    return (view.with_claims(row, remove=without), 0) if without else (view, row)
