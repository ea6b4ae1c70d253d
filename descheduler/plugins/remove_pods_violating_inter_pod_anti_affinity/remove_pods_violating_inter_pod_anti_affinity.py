"""Move pods that run where the required anti-affinity of another pod forbids them to be placed."""

from typing import Final

from descheduler.configuration.arguments import compliance
from descheduler.framework import protocols
from descheduler.framework.nodes import candidates, node_room
from descheduler.framework.pods import pod_order
from descheduler.model import nodeinfo
from descheduler.plugins.remove_pods_violating_inter_pod_anti_affinity import repulsion

NAME: Final = "RemovePodsViolatingInterPodAntiAffinity"


class RemovePodsViolatingInterPodAntiAffinity:
    """The pod that is repelled leaves, of two that repel each other the less important one.

    It leaves only where a node takes it that no anti-affinity, its own included, forbids.
    """

    name = NAME

    def __init__(self, arguments: compliance.RemovePodsViolatingInterPodAntiAffinityArgs) -> None:
        self._arguments = arguments

    def deschedule(self, view: protocols.View, memory: protocols.Memory) -> protocols.Suggestions:
        """Suggest pods that are repelled where they are, the least important first."""
        del memory
        known = repulsion.Repulsion(view.picture)
        nodes = {node.name: node for node in view.nodes}
        found = [
            pod
            for pod in known.repelled()
            if pod.node in nodes and candidates.covers(self._arguments, pod)
        ]
        if not found:
            return protocols.NO_MEMORY
        room = node_room.Room(view)
        for pod in pod_order.ordered(found):
            if view.limits.exhausted():
                return candidates.stopped(view)
            # Another one may have left meanwhile.
            by = known.repels(pod, nodes[pod.node])
            if not by:
                continue
            targets: tuple[str, ...] = ()
            if not candidates.is_limited(view, pod):
                if not candidates.may_leave(view, pod):
                    continue
                targets = room.listed(room.takers(pod))
                if not targets:
                    continue
            reason = f"anti-affinity of pod {view.picture.pods[by].key} forbids it here"
            answer = yield protocols.Suggestion(
                pod, NAME, reason, protocols.Purpose.COMPLY, targets
            )
            if answer:
                target = _target(view, answer)
                known.move(pod, target)
                room.move(pod, target.name if target is not None else "")
        return protocols.NO_MEMORY


def _target(view: protocols.View, answer: protocols.Answer) -> nodeinfo.Node | None:
    if isinstance(answer, protocols.Target):
        return view.picture.nodes.get(answer.node)
    return None
