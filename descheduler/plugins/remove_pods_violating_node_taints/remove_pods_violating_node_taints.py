"""Move pods from nodes that were tainted after the pods had been placed there."""

from collections.abc import Sequence
from typing import Final

from api import names
from api.kubernetes import core, selectors
from descheduler.configuration.arguments import compliance
from descheduler.framework import protocols
from descheduler.framework.nodes import candidates
from descheduler.framework.pods import pod_order
from descheduler.model import nodeinfo, podinfo

NAME: Final = "RemovePodsViolatingNodeTaints"
_CORDONED: Final = core.Taint(key=names.TAINT_UNSCHEDULABLE, effect="NoSchedule")


class RemovePodsViolatingNodeTaints:
    """Looks at taints of the effect NoSchedule, and PreferNoSchedule where that is asked for.

    A cordoned node has the taint `node.kubernetes.io/unschedulable`. NoExecute is enforced by
    Kubernetes itself.
    """

    name = NAME

    def __init__(self, arguments: compliance.RemovePodsViolatingNodeTaintsArgs) -> None:
        self._arguments = arguments
        softer = {"PreferNoSchedule"} if arguments.include_prefer_no_schedule else set()
        self._effects = frozenset({"NoSchedule"} | softer)

    def deschedule(self, view: protocols.View, memory: protocols.Memory) -> protocols.Suggestions:
        """Suggest pods that do not tolerate a taint of their node, the least important first."""
        del memory
        taints = {node.name: self._counted(node) for node in view.nodes}
        found = [
            (pod, intolerable)
            for node, pod in candidates.active(view, self._arguments)
            if taints[node.name] and (intolerable := _intolerable(pod, taints[node.name]))
        ]
        found.sort(key=lambda one: pod_order.key(one[0]))
        return candidates.in_turn(view, (_suggestion(pod, taint) for pod, taint in found))

    def _counted(self, node: nodeinfo.Node) -> tuple[core.Taint, ...]:
        written = [taint for taint in node.taints if taint.key != _CORDONED.key]
        all_of_them = written if node.is_schedulable else [*written, _CORDONED]
        return tuple(
            one for one in all_of_them if one.effect in self._effects and self._is_meant(one)
        )

    def _is_meant(self, taint: core.Taint) -> bool:
        names = {taint.key, f"{taint.key}={taint.value}"}
        if self._arguments.included_taints:
            return not names.isdisjoint(self._arguments.included_taints)
        return names.isdisjoint(self._arguments.excluded_taints)


def _intolerable(pod: podinfo.Pod, taints: Sequence[core.Taint]) -> core.Taint | None:
    tolerations = pod.wanted.tolerations
    return next(
        (
            taint
            for taint in taints
            if not any(selectors.tolerates(one, taint) for one in tolerations)
        ),
        None,
    )


def _suggestion(pod: podinfo.Pod, taint: core.Taint) -> protocols.Suggestion:
    name = f"{taint.key}={taint.value}" if taint.value else taint.key
    reason = f"taint {name}:{taint.effect} is not tolerated"
    return protocols.Suggestion(pod, NAME, reason, protocols.Purpose.COMPLY)
