"""Remove pods that restart again and again, so that they start anew, on another node if need be."""

from typing import Final

from descheduler.configuration.arguments import compliance
from descheduler.framework import protocols
from descheduler.framework.nodes import candidates
from descheduler.framework.pods import pod_states
from descheduler.model import podinfo
from domain import wording

NAME: Final = "RemovePodsHavingTooManyRestarts"


class RemovePodsHavingTooManyRestarts:
    """Adds the restarts of the containers of a pod up."""

    name = NAME

    def __init__(self, arguments: compliance.RemovePodsHavingTooManyRestartsArgs) -> None:
        self._arguments = arguments
        self._kinds = pod_states.kinds(arguments.including_init_containers)

    def deschedule(self, view: protocols.View, memory: protocols.Memory) -> protocols.Suggestions:
        """Suggest pods, the one with the most restarts first."""
        del memory
        least = self._arguments.pod_restart_threshold
        found = [
            (restarts, pod)
            for _, pod in candidates.active(view, self._arguments)
            if (restarts := self._restarts(pod)) >= least and self._state_counts(pod)
        ]
        found.sort(key=lambda one: (-one[0], one[1].key))
        return candidates.in_turn(view, (self._suggestion(pod, count) for count, pod in found))

    def _restarts(self, pod: podinfo.Pod) -> int:
        return sum(one.restarts for one in pod_states.containers(pod, self._kinds))

    def _state_counts(self, pod: podinfo.Pod) -> bool:
        wanted = self._arguments.states
        if not wanted or pod.phase in wanted:
            return True
        found = pod_states.containers(pod, self._kinds)
        return any(one.state == "waiting" and one.reason in wanted for one in found)

    def _suggestion(self, pod: podinfo.Pod, restarts: int) -> protocols.Suggestion:
        least = self._arguments.pod_restart_threshold
        times = wording.count(restarts, "time", "times")
        reason = f"containers restarted {times}, podRestartThreshold is {least}"
        return protocols.Suggestion(pod, NAME, reason, protocols.Purpose.REMOVE)
