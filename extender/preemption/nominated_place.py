"""The node to which kube-scheduler has nominated a pod: whether it takes the pod before long. Pure.

While it does, no other pod has to leave for the pod.
"""

from extender.framework import pipeline, views
from extender.framework.eviction import trial


def is_awaited(
    plugins: pipeline.Pipeline, pod: views.PodInfo, view: views.View, row: int, now: float
) -> bool:
    """Whether pods of lower priority are leaving a node, and it takes a pod once they have left."""
    priority = pod.requirements.priority
    leaving = [
        claim
        for claim in view.node(row).claims
        if claim.pod.leaves_at >= 0 and claim.pod.requirements.priority < priority
    ]
    if not leaving:
        return False
    what_if = trial.Trial(plugins, pod, view, row, now, whole=False)
    what_if.remove(leaving)
    return what_if.passes()


def takes(
    plugins: pipeline.Pipeline, pod: views.PodInfo, view: views.View, row: int, now: float
) -> bool:
    """Whether a node takes a pod by now, or once those that are leaving it have left."""
    if trial.Trial(plugins, pod, view, row, now).passes():
        return True
    return is_awaited(plugins, pod, view, row, now)
